// SPDX-License-Identifier: Apache-2.0
// What a progressive scan wants of its queries: a warp a query.
#include <cmath>

#include "kernels/device_scan/device_key.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t stage_threads = 128;

struct stage_arguments {
    bsw_code_layout layout;
    bsw_device_queries queries;
    uint32_t stage_words;
    double tail_unit;
    int32_t *constants;
    float *reaches;
};

DEVICE_POINTERS(stage_arguments, a.queries, a.constants, a.reaches)

// Above 2^100 a bound could overflow. In double as on the CPU: the unit may be any power of two.
__device__ float reach_of(const stage_arguments &a, uint32_t query, uint32_t squares)
{
    const double reach = static_cast<double>(__ldg(a.queries.scales + query)) * a.tail_unit *
                         sqrt(static_cast<double>(squares)) * (1 + 0x1p-20);
    return reach <= 0x1p100 ? static_cast<float>(reach) : __uint_as_float(0x7f800000u);
}

// Sum and sum of squares of a word's 32 components.
__device__ __forceinline__ void sum_word(const int8_t *components, int *sum, uint32_t *squares)
{
    for (uint32_t i = 0; i < 32; i++) {
        const int q = __ldg(components + i);
        *sum += q;
        *squares += static_cast<uint32_t>(q * q);
    }
}

__global__ void __launch_bounds__(stage_threads)
    stage_queries(const __grid_constant__ stage_arguments a)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t query = (blockIdx.x * stage_threads + threadIdx.x) / 32;
    if (query >= a.queries.num_queries) return;
    const int8_t *components =
        a.queries.components + static_cast<size_t>(query) * a.layout.padded_dims;
    int constant = 0;
    uint32_t beyond = 0; // at most 65,536 * 127^2
    for (uint32_t word = lane; word < a.layout.padded_dims / 32; word += 32) {
        uint32_t s = 0, squares = 0;
        int sum = 0;
        while (s + 1 < a.layout.num_segments && a.layout.segments[s + 1].padded_dim <= word * 32)
            s++;
        sum_word(components + word * 32, &sum, &squares);
        if (word < a.stage_words)
            constant += sum * ((1 << a.layout.segments[s].bits) - 1);
        else
            beyond += squares;
    }
    const unsigned total = __reduce_add_sync(all_lanes, static_cast<unsigned>(constant));
    const unsigned squares = __reduce_add_sync(all_lanes, beyond);
    if (lane > 0) return;
    a.constants[query] = static_cast<int32_t>(total);
    a.reaches[query] = reach_of(a, query, squares);
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_stage_queries(const struct bsw_code_layout *layout, uint32_t stage_dims,
                                        double tail_unit, const struct bsw_device_queries *queries,
                                        int32_t *constants, float *reaches, bsw_stream stream)
{
    using namespace bsw;
    if (stage_dims % 32 != 0 || stage_dims < 32 || stage_dims >= layout->padded_dims ||
        queries->num_queries > INT32_MAX || !queries->scales)
        return cudaErrorInvalidValue;
    if (queries->num_queries == 0) return cudaSuccess;
    const stage_arguments a = {*layout, *queries, stage_dims / 32, tail_unit, constants, reaches};
    const uint32_t blocks = (queries->num_queries - 1) / (stage_threads / 32) + 1;
    return launch({dim3(blocks), dim3(stage_threads), 0, stream}, stage_queries, a);
}

#ifdef BITSWEEP_WITHOUT_HOPPER // no code for sm_90a: no device is a Hopper GPU
extern "C" int bsw_device_has_hopper_stage(const struct bsw_code_layout *, uint32_t)
{
    return 0;
}

extern "C" int bsw_device_progressive_scan_hopper(const struct bsw_device_codes *,
                                                  const struct bsw_device_stage *,
                                                  const struct bsw_device_part *,
                                                  const struct bsw_device_queries *,
                                                  const struct bsw_device_lists *, bsw_stream)
{
    return cudaErrorInvalidValue;
}
#endif
