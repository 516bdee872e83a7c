// SPDX-License-Identifier: Apache-2.0
// How few_scan.cuh goes through the codes: shapes, queries in shared memory, steps and their
// products.
#ifndef BITSWEEP_KERNELS_FEW_STEPS_CUH
#define BITSWEEP_KERNELS_FEW_STEPS_CUH

#include "kernels/device_scan/few_unpack.cuh"
#include "kernels/device_scan/key_terms.cuh"

namespace bsw
{

namespace few
{

constexpr struct {
    uint32_t threads;     // of a block
    uint32_t most_shared; // bytes that any launch may have
} tuning = {256, 48 << 10};

constexpr uint32_t most_queries = 32, most_own_bits = 4;
constexpr uint32_t row_lanes = 4, lane_rows = 4;

// Blocks fewer on a multiprocessor, whose threads then have more registers: compilers for 8.x need
// a few more.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int fewer_blocks = 1;
#else
constexpr int fewer_blocks = 0;
#endif

// QUERIES: 8, 16 or 32. BITS: of codes of one segment, 1 to 4; 0: of any. SLOTS: a step has as many
// words; of any codes two words, or one of more than four bits. WORDS: of the whole code, which is
// one step then; 0: of any.
template <int QUERIES, int BITS_, key_kind KIND_, int WORDS = 0> struct few_shape {
    static constexpr int queries = QUERIES, tiles = QUERIES / 8, bits = BITS_, whole = WORDS;
    static constexpr key_kind kind = KIND_;
    static constexpr bool has_terms = KIND_ == key_kind::small_float && QUERIES > 8;
    static constexpr int planes = BITS_ > 0 ? BITS_ : field_planes;
    static constexpr int slots = BITS_ == 1 ? 8 : BITS_ == 2 ? 4 : BITS_ == 3 ? 3 : 2;
    static constexpr int least_blocks = QUERIES == 8                   ? 3 - fewer_blocks
                                        : QUERIES == 16                ? 2
                                        : KIND_ == key_kind::any_float ? 1
                                                                       : 2 - fewer_blocks;
};

// ---- queries ----

// Shared memory: key_query [queries], then what lanes multiply with, [words][tiles][32].
template <class SHAPE> struct few_shared {
    key_query *keys;
    uint2 *components;
};

inline size_t shared_bytes(uint32_t queries, uint32_t padded_dims)
{
    return queries * (sizeof(key_query) + static_cast<size_t>(padded_dims));
}

template <class SHAPE, class QUERIES>
__device__ __forceinline__ void load_queries(const scan_arguments &a, const QUERIES &queries,
                                             const few_shared<SHAPE> &shared)
{
    const uint32_t dims = a.codes.layout.padded_dims;
    for (uint32_t i = threadIdx.x; i < dims * SHAPE::tiles; i += tuning.threads) {
        const uint32_t lane = i % 32, tile = i / 32 % SHAPE::tiles, word = i / 32 / SHAPE::tiles;
        const uint32_t query = queries.number(tile * 8 + lane / row_lanes);
        uint2 own = {0, 0};
        if (query < a.queries.num_queries) {
            const uint32_t *from = reinterpret_cast<const uint32_t *>(
                a.queries.components + static_cast<size_t>(query) * dims + word * 32);
            own = {__ldg(from + lane % row_lanes), __ldg(from + 4 + lane % row_lanes)};
        }
        shared.components[i] = own;
    }
    if (SHAPE::has_terms && threadIdx.x < SHAPE::queries)
        shared.keys[threadIdx.x] = load_key_query(queries, threadIdx.x);
    __syncthreads();
}

// ---- steps ----

// A step: from which bundle of the part, and which word of which segment.
struct few_place {
    uint32_t bundle, segment, word;
};

// Which bundles of the part a warp takes: first, first + step ... below last.
struct few_work {
    uint32_t first, last, step;
};

__device__ __forceinline__ bool begins_bundle(const few_place &place)
{
    return place.segment == 0 && place.word == 0;
}

template <class SHAPE>
__device__ __forceinline__ uint32_t bits_at(const scan_arguments &a, const few_place &place)
{
    return SHAPE::bits > 0 ? SHAPE::bits : a.codes.layout.segments[place.segment].bits;
}

template <class SHAPE> __device__ __forceinline__ uint32_t words_of(const bsw_segment &segment)
{
    return SHAPE::whole > 0 ? SHAPE::whole : segment.words;
}

template <class SHAPE>
__device__ __forceinline__ few_place next_place(const scan_arguments &a, uint32_t step,
                                                few_place place)
{
    const bool is_one = SHAPE::bits == 0 && bits_at<SHAPE>(a, place) > field_planes;
    if (SHAPE::whole > 0) {
        place.bundle += step;
        return place;
    }
    place.word += is_one ? 1 : SHAPE::slots;
    if (place.word < a.codes.layout.segments[place.segment].words) return place;
    place.word = 0;
    if (SHAPE::bits == 0 && ++place.segment < a.codes.layout.num_segments) return place;
    place.segment = 0;
    place.bundle += step;
    return place;
}

// What a lane has of a step: planes, of least weight first.
template <class SHAPE> struct few_codes {
    uint4 planes[SHAPE::slots][SHAPE::planes];
};

// What keys of a bundle take beside: scales, as halves, and biases of the lane's four rows, or with
// terms those of row `lane`, in the first places.
struct few_rows {
    uint32_t mask, scales[2];
    float biases[lane_rows];
};

template <class SHAPE>
__device__ __forceinline__ void fetch_rows(const scan_arguments &a, uint32_t bundle, few_rows &out)
{
    const uint32_t lane = threadIdx.x % 32, place = bundle * warp_rows;
    if (SHAPE::has_terms) {
        out.mask = __ldg(a.codes.masks + bundle);
        out.scales[0] = __ldg(a.codes.scales + place + lane);
        out.biases[0] = __ldg(a.codes.biases + place + lane);
    } else if (SHAPE::kind != key_kind::integer) {
        const uint32_t row = place + lane / row_lanes * lane_rows;
        const uint2 halves = __ldg(reinterpret_cast<const uint2 *>(a.codes.scales + row));
        const float4 biases = __ldg(reinterpret_cast<const float4 *>(a.codes.biases + row));
        out.scales[0] = halves.x;
        out.scales[1] = halves.y;
        out.biases[0] = biases.x;
        out.biases[1] = biases.y;
        out.biases[2] = biases.z;
        out.biases[3] = biases.w;
    }
}

// Words of one segment's codes whose bits the shape knows; from: the first one's plane 0.
template <class SHAPE>
__device__ __forceinline__ void fetch_own(const uint4 *from, uint32_t words, uint32_t num_left,
                                          few_codes<SHAPE> &out)
{
#pragma unroll
    for (int i = SHAPE::planes - 1; i >= 0; i--, from += words * 8) {
#pragma unroll
        for (int s = 0; s < SHAPE::slots; s++)
            if (s == 0 || static_cast<uint32_t>(s) < num_left)
                out.planes[s][i] = __ldg(from + s * 8);
    }
}

// For any codes. Planes that there are none of are 0: of the second slot, if there is but one word,
// all.
template <class SHAPE>
__device__ __forceinline__ void fetch_any(const uint4 *from, uint32_t bits, uint32_t words,
                                          uint32_t num_left, few_codes<SHAPE> &out)
{
    const bool is_one = bits > field_planes;
    const uint32_t upper = is_one ? bits - field_planes : num_left > 1 ? bits : 0;
    const uint4 *last = from + (bits - 1) * words * 8;
    const uint4 *second = is_one ? last - field_planes * words * 8 : last + 8;
#pragma unroll
    for (uint32_t i = 0; i < field_planes; i++) {
        const uint4 none = {0, 0, 0, 0};
        const size_t back = static_cast<size_t>(i) * words * 8;
        out.planes[0][i] = i < bits ? __ldg(last - back) : none;
        out.planes[SHAPE::slots - 1][i] = i < upper ? __ldg(second - back) : none;
    }
}

template <class SHAPE>
__device__ __forceinline__ void fetch(const scan_arguments &a, const few_place &place,
                                      few_codes<SHAPE> &out)
{
    const bsw_segment &segment = a.codes.layout.segments[place.segment];
    const uint32_t bits = bits_at<SHAPE>(a, place), words = words_of<SHAPE>(segment);
    const uint32_t bundle = bundle_of(a, place.bundle);
    const uint4 *from = reinterpret_cast<const uint4 *>(a.codes.planes[place.segment]) +
                        static_cast<size_t>(bundle) * (bits * words * 8) + place.word * 8 +
                        threadIdx.x % 32 / row_lanes;
    if (SHAPE::bits > 0)
        fetch_own<SHAPE>(from, words, words - place.word, out);
    else
        fetch_any<SHAPE>(from, bits, words, words - place.word, out);
}

// ---- products ----

// sums[n][m][j]: row 4*g + 2*m + j / 2, query 8*n + 2*t + j % 2.
template <class SHAPE> struct few_sums {
    int of[SHAPE::tiles][2][4];
};

__device__ __forceinline__ uint32_t word_of_row(const uint4 &words, int row)
{
    return row == 0 ? words.x : row == 1 ? words.y : row == 2 ? words.z : words.w;
}

template <class SHAPE>
__device__ __forceinline__ uint32_t fields_of(const few_codes<SHAPE> &codes, int slot, int row,
                                              const field_turns &turns)
{
    uint32_t planes[SHAPE::planes];
#pragma unroll
    for (int i = 0; i < SHAPE::planes; i++) planes[i] = word_of_row(codes.planes[slot][i], row);
    return join_planes<SHAPE::planes>(planes, turns);
}

// Four rows' bytes of a word times the queries'; components: the lane's of the word.
template <class SHAPE>
__device__ __forceinline__ void multiply_word(const field_bytes (&rows)[lane_rows],
                                              const uint2 *components, few_sums<SHAPE> &sums)
{
#pragma unroll
    for (int n = 0; n < SHAPE::tiles; n++) {
        const uint2 query = components[n * 32];
#pragma unroll
        for (int m = 0; m < 2; m++) {
            const field_bytes &one = rows[2 * m], &two = rows[2 * m + 1];
            mma_u8_s8(sums.of[n][m], {one.first, two.first, one.second, two.second},
                      {query.x, query.y});
        }
    }
}

template <class SHAPE>
__device__ __forceinline__ void multiply_slot(const few_codes<SHAPE> &codes, int slot,
                                              const field_turns &turns, const uint2 *components,
                                              few_sums<SHAPE> &sums)
{
    field_bytes rows[lane_rows];
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++)
        rows[r] = bytes_of<SHAPE::planes>(fields_of<SHAPE>(codes, slot, r, turns));
    multiply_word<SHAPE>(rows, components, sums);
}

// One word of more than four bits.
template <class SHAPE>
__device__ __forceinline__ void multiply_both(const few_codes<SHAPE> &codes,
                                              const field_turns &turns, const uint2 *components,
                                              few_sums<SHAPE> &sums)
{
    field_bytes rows[lane_rows];
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++)
        rows[r] = bytes_of(fields_of<SHAPE>(codes, 0, r, turns),
                           fields_of<SHAPE>(codes, SHAPE::slots - 1, r, turns));
    multiply_word<SHAPE>(rows, components, sums);
}

template <class SHAPE>
__device__ __forceinline__ void
multiply_step(const scan_arguments &a, const few_place &place, const few_codes<SHAPE> &codes,
              const field_turns &turns, const few_shared<SHAPE> &shared, few_sums<SHAPE> &sums)
{
    const bsw_segment &segment = a.codes.layout.segments[place.segment];
    const uint32_t num_left = words_of<SHAPE>(segment) - place.word;
    const uint32_t first = SHAPE::bits > 0 ? place.word : segment.padded_dim / 32 + place.word;
    const uint2 *components = shared.components + first * (SHAPE::tiles * 32) + threadIdx.x % 32;
    if (SHAPE::bits == 0 && segment.bits > field_planes) {
        multiply_both<SHAPE>(codes, turns, components, sums);
        return;
    }
#pragma unroll
    for (int s = 0; s < SHAPE::slots; s++) {
        if (s > 0 && static_cast<uint32_t>(s) >= num_left) break;
        multiply_slot<SHAPE>(codes, s, turns, components + s * (SHAPE::tiles * 32), sums);
    }
}

} // namespace few

} // namespace bsw

#endif
