// SPDX-License-Identifier: Apache-2.0
// The first step of saq on a GPU: norms, factors, rows less the mean. Bound by memory.
#include "kernels/device_encode/device_encode_rows.cuh"

namespace bsw
{
namespace
{

struct center_arguments {
    const void *numbers;
    const float *mean;
    uint32_t num_rows, dims;
    bool is_cosine, has_norms;
    float *centered, *mean_dots;
    uint8_t *faults;
};

DEVICE_POINTERS(center_arguments, a.numbers, a.mean, a.centered, a.mean_dots, a.faults)

template <class T>
__global__ void __launch_bounds__(encode_threads)
    center_rows(const __grid_constant__ center_arguments a)
{
    row_group group;
    if (!find_group(a.num_rows, &group)) return;
    const T *numbers = static_cast<const T *>(a.numbers);
    const float factor = prepare_rows(numbers, a.dims, a.is_cosine, a.faults, group);
    float factors[group_rows], dots[group_rows] = {};
#pragma unroll
    for (int r = 0; r < group_rows; r++) factors[r] = of_row(factor, r);
    const size_t first = static_cast<size_t>(group.first) * a.dims;
    const uint32_t lane = threadIdx.x % warp_lanes;
    for (uint32_t i = lane; i < a.dims; i += warp_lanes) {
        const float mean = a.mean[i];
        T row[group_rows] = {};
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            if (group.good >> r & 1) row[r] = numbers[first + r * a.dims + i];
        }
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            const float o = __fsub_rn(__fmul_rn(to_float(row[r]), factors[r]), mean);
            dots[r] = __fmaf_rn(a.has_norms ? o : mean, o, dots[r]);
            if (group.exists >> r & 1) a.centered[first + r * a.dims + i] = o;
        }
    }
    const float dot = tree_sum(dots);
    const uint32_t own = lane / lanes_per_row;
    if (lane % lanes_per_row == 0 && group.exists >> own & 1) a.mean_dots[group.first + own] = dot;
}

// In the order of enum bsw_vector_type.
void (*const kernels[])(center_arguments) = {center_rows<float>, center_rows<half_bits>,
                                             center_rows<uint8_t>, center_rows<int8_t>};

} // namespace
} // namespace bsw

extern "C" int bsw_device_saq_center(const struct bsw_saq_frame *frame,
                                     const struct bsw_device_raw_rows *rows, float *centered,
                                     float *mean_dots, uint8_t *faults, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_source(*rows) || rows->dims != bsw_saq_row_dims(frame))
        return cudaErrorInvalidValue;
    if (rows->num_rows == 0) return cudaSuccess;
    const center_arguments a = {rows->numbers,
                                frame->mean,
                                rows->num_rows,
                                rows->dims,
                                bsw_has_unit_rows(frame->metric) != 0,
                                bsw_saq_has_norms(frame) != 0,
                                centered,
                                mean_dots,
                                faults};
    return launch({dim3(num_encode_blocks(rows->num_rows)), dim3(encode_threads), 0, stream},
                  kernels[rows->type], a);
}
