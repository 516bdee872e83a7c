// SPDX-License-Identifier: Apache-2.0
// Query planes to the bytes that the matrix scan multiplies. A block a query, a thread a word.
#include "kernels/device_scan/device_key.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t unpack_threads = 128;

struct unpack_arguments {
    bsw_code_layout layout;
    uint32_t query_bits, query_words;
    const uint32_t *words;
    int8_t *components;
    int32_t *constants;
};

DEVICE_POINTERS(unpack_arguments, a.words, a.components, a.constants)

// Component `dim` of the 32 that a word of each plane holds: (2^Bq - 1) - 2u.
__device__ __forceinline__ int component_at(const uint32_t *planes, uint32_t words,
                                            uint32_t query_bits, uint32_t dim)
{
    int u = 0;
    for (uint32_t i = 0; i < query_bits; i++)
        u = 2 * u + static_cast<int>(__ldg(planes + i * words) >> dim & 1);
    return (1 << query_bits) - 1 - 2 * u;
}

// Word `word` of the padded dimensions; returns the sum of its components times 2^B - 1.
__device__ int unpack_word(const unpack_arguments &a, const uint32_t *query, uint32_t word,
                           int8_t *out)
{
    uint32_t s = 0;
    while (s + 1 < a.layout.num_segments && a.layout.segments[s + 1].padded_dim <= word * 32) s++;
    const uint32_t first = a.layout.segments[s].padded_dim / 32, own = word - first;
    const uint32_t words = a.layout.segments[s].words, dims = a.layout.segments[s].dims;
    const uint32_t *planes = query + first * a.query_bits + own;
    int sum = 0;
    for (uint32_t place = 0; place < 32; place++) {
        const uint32_t dim = 8 * (place % 4) + place / 4;
        const int q = own * 32 + dim < dims ? component_at(planes, words, a.query_bits, dim) : 0;
        out[place] = static_cast<int8_t>(q);
        sum += q;
    }
    return sum * ((1 << a.layout.segments[s].bits) - 1);
}

__global__ void __launch_bounds__(unpack_threads)
    unpack_queries(const __grid_constant__ unpack_arguments a)
{
    __shared__ unsigned sums[unpack_threads / 32];
    const uint32_t *query = a.words + static_cast<size_t>(blockIdx.x) * a.query_words;
    int8_t *out = a.components + static_cast<size_t>(blockIdx.x) * a.layout.padded_dims;
    int sum = 0;
    for (uint32_t word = threadIdx.x; word < a.layout.padded_dims / 32; word += unpack_threads)
        sum += unpack_word(a, query, word, out + word * 32);
    const unsigned of_warp = __reduce_add_sync(all_lanes, static_cast<unsigned>(sum));
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = of_warp;
    __syncthreads();
    if (threadIdx.x > 0) return;
    unsigned total = 0;
    for (unsigned w = 0; w < unpack_threads / 32; w++) total += sums[w];
    a.constants[blockIdx.x] = static_cast<int32_t>(total);
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_unpack_queries(const struct bsw_code_layout *layout, uint32_t num_queries,
                                         uint32_t query_bits, uint32_t query_words,
                                         const uint32_t *words, int8_t *components,
                                         int32_t *constants, bsw_stream stream)
{
    using namespace bsw;
    if (query_bits < 1 || query_bits > BSW_MAX_QUERY_BITS || num_queries > INT32_MAX ||
        query_words < bsw_layout_query_words(layout, query_bits))
        return cudaErrorInvalidValue;
    if (num_queries == 0) return cudaSuccess;
    const unpack_arguments a = {*layout, query_bits, query_words, words, components, constants};
    return launch({dim3(num_queries), dim3(unpack_threads), 0, stream}, unpack_queries, a);
}
