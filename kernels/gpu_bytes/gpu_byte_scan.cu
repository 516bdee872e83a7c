// SPDX-License-Identifier: Apache-2.0
// Rows of bytes against a batch of queries, all of it or a part (gpu_byte_rows.cuh).
#include "kernels/gpu_bytes/gpu_byte_rows.cuh"

namespace bsw
{
namespace
{

typedef byte_shape<1, 1, 4> few_queries;  // 16 x 256 rows
typedef byte_shape<4, 1, 1> some_queries; // 64 x 256
typedef byte_shape<4, 2, 1> many_queries; // 128 x 128

struct operand_arguments {
    uint32_t num_queries, row_words;
    uint32_t num_words; // of all operands
    const uint32_t *words;
    uint32_t *operands;
};

DEVICE_POINTERS(operand_arguments, a.words, a.operands)

// ---- queries ----

// Operands are [tiles][steps][32 lanes][4 words]: of rows g and g + 8, word t of the step, then
// word t + 4 of both.
__global__ void __launch_bounds__(byte_threads)
    lay_out_queries(const __grid_constant__ operand_arguments a)
{
    const uint32_t i = blockIdx.x * byte_threads + threadIdx.x;
    if (i >= a.num_words) return;
    const uint32_t lane = i / 4 % warp_rows, step = i / (4 * warp_rows);
    const uint32_t num_steps = a.row_words / step_words;
    const uint32_t query = step / num_steps * tile_queries + lane / 4 + i % 2 * 8;
    const uint32_t word = step % num_steps * step_words + lane % 4 + i / 2 % 2 * 4;
    a.operands[i] = query < a.num_queries
                        ? __ldg(a.words + static_cast<size_t>(query) * a.row_words + word)
                        : 0;
}

// ---- the scan ----

// Queries that follow each other.
struct batch_work {
    const byte_arguments &a;
    uint32_t first_query, lane;
    const uint4 *operands; // of the lane
    uint32_t tiles[4];     // in steps from the first operand on

    __device__ __forceinline__ uint32_t query(uint32_t i) const
    {
        return first_query + i < a.scan.queries.num_queries ? first_query + i : UINT32_MAX;
    }

    __device__ __forceinline__ uint32_t row(uint32_t bundle, uint32_t i) const
    {
        return a.scan.codes.first_row + bundle * warp_rows + i;
    }

    __device__ __forceinline__ void load_operands(uint32_t step, int tile, unsigned (&out)[4]) const
    {
        const uint4 four = __ldg(operands + (static_cast<size_t>(tiles[tile]) + step) * warp_rows);
        out[0] = four.x;
        out[1] = four.y;
        out[2] = four.z;
        out[3] = four.w;
    }
};

template <class SHAPE>
__global__ void __launch_bounds__(byte_threads, 2)
    scan_bytes(const __grid_constant__ byte_arguments a)
{
    const uint32_t lane = threadIdx.x % warp_rows, warp = threadIdx.x / warp_rows;
    const uint32_t begin = blockIdx.x / a.scan.num_groups * a.scan.chunk;
    const uint32_t end =
        a.scan.num_bundles - begin < a.scan.chunk ? a.scan.num_bundles : begin + a.scan.chunk;
    const uint32_t last_tile = (a.scan.queries.num_queries - 1) / tile_queries;
    const uint32_t first_query = blockIdx.x % a.scan.num_groups * SHAPE::queries +
                                 warp % SHAPE::query_warps * SHAPE::warp_queries;
    if (first_query >= a.scan.queries.num_queries) return;
    batch_work work = {a,
                       first_query,
                       lane,
                       reinterpret_cast<const uint4 *>(a.scan.queries.components) + lane,
                       {}};
#pragma unroll
    for (int m = 0; m < SHAPE::tiles; m++) // tiles that are not there have no queries
        work.tiles[m] = min(first_query / tile_queries + static_cast<uint32_t>(m), last_tile) *
                        (a.scan.codes.layout.padded_dims / step_dims);
    scan_bundles<SHAPE>(a, work, begin + warp / SHAPE::query_warps, end, lane);
}

// ---- launches ----

template <class SHAPE> cudaError_t launch_bytes(byte_arguments &a, bsw_stream stream)
{
    launch_shape shape = {dim3(), dim3(byte_threads), 0, stream};
    cudaError_t error =
        plan_blocks(a.scan, {SHAPE::queries, SHAPE::bundles, bsw_device_tuning_current()->matrix},
                    scan_bytes<SHAPE>, shape);
    return error ? error : launch(shape, scan_bytes<SHAPE>, a);
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_byte_queries(uint32_t num_queries, uint32_t padded_dims,
                                       const int8_t *bytes, int8_t *operands, bsw_stream stream)
{
    using namespace bsw;
    const size_t words = bsw_device_byte_operand_bytes(num_queries, padded_dims) / 4;
    if (padded_dims < step_dims || padded_dims % step_dims || words > INT32_MAX)
        return cudaErrorInvalidValue;
    if (num_queries == 0) return cudaSuccess;
    const operand_arguments a = {num_queries, padded_dims / 4, static_cast<uint32_t>(words),
                                 reinterpret_cast<const uint32_t *>(bytes),
                                 reinterpret_cast<uint32_t *>(operands)};
    const uint32_t blocks = (a.num_words + byte_threads - 1) / byte_threads;
    return launch({dim3(blocks), dim3(byte_threads), 0, stream}, lay_out_queries, a);
}

extern "C" int bsw_device_byte_scan(const struct bsw_device_codes *codes,
                                    const struct bsw_device_part *part,
                                    const struct bsw_device_queries *queries, int factor,
                                    const struct bsw_device_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_byte_scan(*codes, *part, *queries, factor, *lists)) return cudaErrorInvalidValue;
    if (part->first == part->last || queries->num_queries == 0) return cudaSuccess;
    byte_arguments a = {{*codes, *queries, *lists, *part, num_bundles_of(*part), 0, 0, 0},
                        static_cast<uint32_t>(factor)};
    if (queries->num_queries <= few_queries::queries) return launch_bytes<few_queries>(a, stream);
    if (queries->num_queries <= some_queries::queries) return launch_bytes<some_queries>(a, stream);
    return launch_bytes<many_queries>(a, stream);
}
