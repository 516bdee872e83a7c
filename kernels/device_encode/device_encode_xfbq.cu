// xfbq on a GPU: norms, factors, codes in one kernel. Bound by memory for floats: about 12 + 3 *
// bits instructions for 32 numbers; the second look at a row comes from the caches.
#include "kernels/device_encode/device_encode_rows.cuh"

namespace bsw
{
namespace
{

struct xfbq_arguments {
    const void *numbers;
    uint32_t num_rows, dims, words, bits;
    float scale;
    uint32_t *planes;
    uint8_t *faults;
};

#if !defined(__CUDACC__)
inline void check_pointers_of(const xfbq_arguments &a)
{
    emulation::check_device_pointer(a.numbers, "numbers");
    emulation::check_device_pointer(a.planes, "planes");
    emulation::check_device_pointer(a.faults, "faults");
}
#endif

template <int BITS, class T>
__device__ __forceinline__ void code_rows(const xfbq_arguments &a, const row_group &group,
                                          const float (&factors)[group_rows])
{
    const int end = 1 << (BITS - 1);
    const T *from = static_cast<const T *>(a.numbers) + static_cast<size_t>(group.first) * a.dims;
    uint32_t *planes = planes_of_group(a.planes, BITS, a.words, group);
    for (uint32_t word = 0; word < a.words; word++) {
        const uint32_t i = word * 32 + threadIdx.x % warp_lanes;
        T row[group_rows] = {};
        unsigned codes[group_rows];
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            if (group.good >> r & 1 && i < a.dims) row[r] = from[r * a.dims + i];
        }
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            const float scaled = __fmul_rn(__fmul_rn(to_float(row[r]), factors[r]), a.scale);
            const int f = clipped_floor(__fmul_rn(scaled, static_cast<float>(end)), end);
            const bool is_there = group.exists >> r & 1 && i < a.dims;
            codes[r] = is_there ? static_cast<unsigned>(end - 1 - f) : 0;
        }
        store_word<BITS>(codes, a.words, word, planes);
    }
}

template <class T>
__global__ void __launch_bounds__(encode_threads)
    encode_xfbq(const __grid_constant__ xfbq_arguments a)
{
    row_group group;
    if (!find_group(a.num_rows, &group)) return;
    const float factor =
        prepare_rows(static_cast<const T *>(a.numbers), a.dims, true, a.faults, group);
    float factors[group_rows];
#pragma unroll
    for (int r = 0; r < group_rows; r++) factors[r] = of_row(factor, r);
    switch (a.bits) {
    case 1:
        return code_rows<1, T>(a, group, factors);
    case 2:
        return code_rows<2, T>(a, group, factors);
    case 3:
        return code_rows<3, T>(a, group, factors);
    case 4:
        return code_rows<4, T>(a, group, factors);
    case 5:
        return code_rows<5, T>(a, group, factors);
    case 6:
        return code_rows<6, T>(a, group, factors);
    case 7:
        return code_rows<7, T>(a, group, factors);
    default:
        return code_rows<8, T>(a, group, factors);
    }
}

auto kernel_of(bsw_vector_type type)
{
    switch (type) {
    case BSW_VECTOR_FLOAT16:
        return encode_xfbq<half_bits>;
    case BSW_VECTOR_UINT8:
        return encode_xfbq<uint8_t>;
    case BSW_VECTOR_INT8:
        return encode_xfbq<int8_t>;
    default:
        return encode_xfbq<float>;
    }
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_encode_xfbq(const struct bsw_device_raw_rows *rows, float scale,
                                      uint32_t bits, uint32_t *planes, uint8_t *faults,
                                      bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_source(*rows) || bits < 1 || bits > BSW_MAX_CODE_BITS)
        return cudaErrorInvalidValue;
    if (rows->num_rows == 0) return cudaSuccess;
    const xfbq_arguments a = {rows->numbers, rows->num_rows, rows->dims, (rows->dims + 31) / 32,
                              bits,          scale,          planes,     faults};
    return launch({dim3(num_encode_blocks(rows->num_rows)), dim3(encode_threads), 0, stream},
                  kernel_of(rows->type), a);
}
