// SPDX-License-Identifier: Apache-2.0
// What scans over tiles of unpacked documents share: shapes of tiles, their way into shared memory,
// and the products. device_matrix_scan.cu says how it works.
#ifndef BITSWEEP_KERNELS_MATRIX_TILE_CUH
#define BITSWEEP_KERNELS_MATRIX_TILE_CUH

#include "kernels/device_scan/device_tuning.h"
#include "kernels/device_scan/device_unpack.cuh"
#include "kernels/device_scan/scan_arguments.cuh"

namespace bsw
{

// What is compiled; device_tuning.h has what is chosen at a launch.
constexpr struct {
    uint32_t threads;     // of a block
    uint32_t chunk_words; // of a row that are in shared memory at a time, when it has more
} tuning = {256, 4};

constexpr uint32_t block_warps = tuning.threads / 32;
constexpr uint32_t word_bytes = 32; // of unpacked dimensions

// Rows of 16 queries and columns of 8 documents of one warp; how many warps share the documents.
template <int QUERY_TILES_, int QUERY_WARPS_, int ROW_TILES_> struct matrix_shape {
    static constexpr int query_tiles = QUERY_TILES_, row_tiles = ROW_TILES_;
    static constexpr uint32_t query_warps = QUERY_WARPS_, row_warps = block_warps / QUERY_WARPS_;
    static constexpr uint32_t queries = 16 * query_tiles * query_warps;
    static constexpr uint32_t rows = 8 * row_tiles * row_warps;
    static constexpr uint32_t bundles = rows / warp_rows;
    static constexpr uint32_t row_word_bytes = rows * word_bytes;
    static constexpr uint32_t query_word_bytes = queries * word_bytes;
};

typedef matrix_shape<1, 1, 2> few_queries;  // 16 x 128 rows
typedef matrix_shape<1, 4, 8> some_queries; // 64 x 128
typedef matrix_shape<2, 8, 8> many_queries; // 256 x 64

inline uint32_t choose_tile(const bsw_device_tuning &own, uint32_t num_queries)
{
    uint32_t i = 0;
    while (i + 1 < BSW_MATRIX_TILES && own.tile_queries[i] < num_queries) i++;
    return i;
}

// Operands in the block's shared memory, word after word of 32 dimensions, so that all places of a
// lane are constants of the shape from its first on.
// - Rows: the first 16 bytes of the word of every row, then the second 16 of every row. ldmatrix
//   reads eight rows that follow each other, which spreads them over all banks.
// - Queries: 64 bytes for two that are 8 apart, which share rows of mma: 16 for each of the four
//   lanes, bytes 4*t .. 4*t + 3 of the first's 16 and of the second's, then of both's second 16.
struct matrix_shared {
    uint8_t *rows, *queries; // [words] of row_word_bytes, query_word_bytes
};

__host__ __device__ __forceinline__ uint32_t words_at_a_time(uint32_t padded_dims)
{
    const uint32_t words = padded_dims / 32;
    return words < tuning.chunk_words ? words : tuning.chunk_words;
}

// 16 bytes of a row.
template <class SHAPE>
__device__ __forceinline__ uint4 *row_piece(const matrix_shared &shared, uint32_t row,
                                            uint32_t piece)
{
    return reinterpret_cast<uint4 *>(shared.rows) + piece * SHAPE::rows + row;
}

template <class SHAPE>
__device__ __forceinline__ uint32_t query_of(uint32_t first_query, uint32_t warp, uint32_t lane,
                                             int tile, int half)
{
    return first_query + warp % SHAPE::query_warps * (16 * SHAPE::query_tiles) +
           static_cast<uint32_t>(16 * tile + 8 * half) + lane / 4;
}

// 16 bytes of a query.
template <class SHAPE>
__device__ __forceinline__ void store_query_piece(const matrix_shared &shared, uint32_t query,
                                                  uint32_t piece, const uint4 &value)
{
    const uint32_t pair = query / 16 * 8 + query % 8;
    uint32_t *out = reinterpret_cast<uint32_t *>(shared.queries +
                                                 piece / 2 * SHAPE::query_word_bytes + pair * 64) +
                    piece % 2 * 2 + query / 8 % 2;
    out[0] = value.x;
    out[4] = value.y;
    out[8] = value.z;
    out[12] = value.w;
}

// Words [first_word, first_word + num_words) of the block's queries. number_of(i): query i of these
// in the batch; there is none where the batch has none.
template <class SHAPE, class NUMBER_OF>
__device__ __forceinline__ void load_queries(const scan_arguments &a, const NUMBER_OF &number_of,
                                             uint32_t first_word, uint32_t num_words,
                                             const matrix_shared &shared)
{
    const uint32_t pieces = num_words * 2; // of 16 bytes, of one query
    for (uint32_t i = threadIdx.x; i < SHAPE::queries * pieces; i += tuning.threads) {
        const uint32_t own = i / pieces, piece = i % pieces, query = number_of(own);
        uint4 value = make_uint4(0, 0, 0, 0);
        if (query < a.queries.num_queries)
            value = __ldg(reinterpret_cast<const uint4 *>(a.queries.components +
                                                          static_cast<size_t>(query) *
                                                              a.codes.layout.padded_dims +
                                                          first_word * word_bytes) +
                          piece);
        store_query_piece<SHAPE>(shared, own, piece, value);
    }
}

// One lane's word of the padded dimensions of a bundle. BITS: of the codes, which have one segment;
// 0: of any codes.
template <int BITS>
__device__ __forceinline__ void load_word(const bsw_device_codes &codes, uint32_t bundle,
                                          uint32_t word, uint32_t lane, uint32_t (&bytes)[8])
{
    if constexpr (BITS > 0) {
        const uint32_t words = codes.layout.segments[0].words;
        unpack_word<BITS>(codes.planes[0] +
                              (static_cast<size_t>(bundle) * BITS * words + word) * warp_rows +
                              lane,
                          words, bytes);
    } else {
        uint32_t s = 0;
        while (s + 1 < codes.layout.num_segments &&
               codes.layout.segments[s + 1].padded_dim <= word * 32)
            s++;
        const uint32_t bits = codes.layout.segments[s].bits, words = codes.layout.segments[s].words;
        const uint32_t own = word - codes.layout.segments[s].padded_dim / 32;
        unpack_word_of(bits,
                       codes.planes[s] +
                           (static_cast<size_t>(bundle) * bits * words + own) * warp_rows + lane,
                       words, bytes);
    }
}

// The same words of a tile's documents: a warp a word of a bundle. Bundles from `end` on are 0, and
// valid_rows leaves their rows out. BITS: as load_word.
template <class SHAPE, int BITS = 0>
__device__ __forceinline__ void unpack_tile(const scan_arguments &a, uint32_t first_bundle,
                                            uint32_t end, uint32_t first_word, uint32_t num_words,
                                            const matrix_shared &shared)
{
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t i = threadIdx.x / 32; i < SHAPE::bundles * num_words; i += block_warps) {
        const uint32_t own = i % SHAPE::bundles, word = i / SHAPE::bundles;
        uint32_t bytes[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        if (first_bundle + own < end)
            load_word<BITS>(a.codes, bundle_of(a, first_bundle + own), first_word + word, lane,
                            bytes);
        uint4 *out = row_piece<SHAPE>(shared, own * warp_rows + lane, 2 * word);
        out[0] = make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
        out[SHAPE::rows] = make_uint4(bytes[4], bytes[5], bytes[6], bytes[7]);
    }
}

template <class SHAPE> struct accumulators {
    int sums[SHAPE::query_tiles][SHAPE::row_tiles][4]; // of u * q
};

// A word of a warp's queries and rows as mma takes them.
template <class SHAPE>
__device__ __forceinline__ void load_query_operands(const matrix_shared &shared, uint32_t word,
                                                    uint32_t warp, uint32_t lane,
                                                    unsigned (&q)[SHAPE::query_tiles][4])
{
    const uint4 *first =
        reinterpret_cast<const uint4 *>(shared.queries + word * SHAPE::query_word_bytes) +
        warp % SHAPE::query_warps * (32 * SHAPE::query_tiles) + lane;
#pragma unroll
    for (int m = 0; m < SHAPE::query_tiles; m++) {
        const uint4 four = first[32 * m];
        q[m][0] = four.x;
        q[m][1] = four.y;
        q[m][2] = four.z;
        q[m][3] = four.w;
    }
}

// Loads operands of the rows' tiles n and n + 1.
template <class SHAPE>
__device__ __forceinline__ void load_row_operands(const matrix_shared &shared, uint32_t word,
                                                  uint32_t warp, uint32_t lane, int n,
                                                  unsigned (&u)[2][2])
{
    static_assert(SHAPE::row_tiles % 2 == 0, "two at a time");
    const uint32_t row =
        warp / SHAPE::query_warps * (8 * SHAPE::row_tiles) + lane / 16 * 8 + lane % 8;
    unsigned four[4];
    load_matrices(four, row_piece<SHAPE>(shared, row, 2 * word + lane / 8 % 2) + 8 * n);
    u[0][0] = four[0];
    u[0][1] = four[1];
    u[1][0] = four[2];
    u[1][1] = four[3];
}

template <class SHAPE>
__device__ __forceinline__ void multiply_word(const matrix_shared &shared, uint32_t word,
                                              uint32_t warp, uint32_t lane,
                                              accumulators<SHAPE> &acc)
{
    unsigned q[SHAPE::query_tiles][4];
    load_query_operands<SHAPE>(shared, word, warp, lane, q);
#pragma unroll
    for (int n = 0; n < SHAPE::row_tiles; n += 2) {
        unsigned u[2][2];
        load_row_operands<SHAPE>(shared, word, warp, lane, n, u);
#pragma unroll
        for (int i = 0; i < 2 * SHAPE::query_tiles; i++)
            mma_s8_u8(acc.sums[i / 2][n + i % 2], q[i / 2], u[i % 2]);
    }
}

// IS_UNROLLED: some 8 instructions less for a word. With as many sums as of 256 queries these would
// be moved from register to register.
template <class SHAPE, bool IS_UNROLLED>
__device__ __forceinline__ void multiply_tile(const matrix_shared &shared, uint32_t num_words,
                                              uint32_t warp, uint32_t lane,
                                              accumulators<SHAPE> &acc)
{
    if constexpr (IS_UNROLLED) {
#pragma unroll
        for (uint32_t word = 0; word < tuning.chunk_words; word++) {
            if (word == num_words) break;
            multiply_word<SHAPE>(shared, word, warp, lane, acc);
        }
    } else {
#pragma unroll 1
        for (uint32_t word = 0; word < num_words; word++)
            multiply_word<SHAPE>(shared, word, warp, lane, acc);
    }
}

} // namespace bsw

#endif
