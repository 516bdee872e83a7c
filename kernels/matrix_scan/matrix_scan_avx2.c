// SPDX-License-Identifier: Apache-2.0
// matrix_scan on AVX2.
//
// vpmaddubsw multiplies bytes and adds pairs into 16 bits, which two products of 255 * 128
// overflow. How much documents and queries really use is found once a tile: with queries of 6 bits,
// codes of 3 bits leave room for 37 pairs, those of 5 for 8 and of 8 for one; where there is none
// bytes are widened to 16 bits first. A block is up to 6 queries against 16 rows.
#define BLOCK_QUERIES 6
#include "kernels/matrix_scan/matrix_scan_256.h"
#include "kernels/matrix_scan/narrow_block_avx2.h"

// Adds the products of `dims` dimensions, few enough for 16 bits.
INLINE void multiply_narrow(const uint8_t *rows, const int8_t *components, size_t stride,
                            size_t dims, block_sums sums, const size_t num)
{
    const __m256i ones = _mm256_set1_epi16(1);
    block_sums part;
    for (size_t j = 0; j < num; j++) part[j][0] = part[j][1] = _mm256_setzero_si256();
    for (size_t i = 0; i < dims; i += 4, rows += 64) {
        __m256i low = load(rows), high = load(rows + 32);
        for (size_t j = 0; j < num; j++) {
            __m256i q = broadcast_four(components + j * stride + i);
            narrow_add(&part[j][0], _mm256_maddubs_epi16(low, q));
            narrow_add(&part[j][1], _mm256_maddubs_epi16(high, q));
        }
    }
    for (size_t j = 0; j < num; j++) {
        for (size_t h = 0; h < 2; h++)
            sums[j][h] = _mm256_add_epi32(sums[j][h], _mm256_madd_epi16(part[j][h], ones));
    }
}

// Even and odd bytes apart, as 16 bits each.
INLINE __m256i add_wide(__m256i sum, __m256i u, __m256i even, __m256i odd)
{
    __m256i low = _mm256_and_si256(u, _mm256_set1_epi16(0xff));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(low, even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_srli_epi16(u, 8), odd));
}

// The same for any codes and any number of dimensions.
INLINE void multiply_wide(const uint8_t *rows, const int8_t *components, size_t stride, size_t dims,
                          block_sums sums, const size_t num)
{
    for (size_t i = 0; i < dims; i += 4, rows += 64) {
        for (size_t j = 0; j < num; j++) {
            __m256i q = broadcast_four(components + j * stride + i);
            __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8);
            __m256i odd = _mm256_srai_epi16(q, 8);
            sums[j][0] = add_wide(sums[j][0], load(rows), even, odd);
            sums[j][1] = add_wide(sums[j][1], load(rows + 32), even, odd);
        }
    }
}

INLINE void add_products(const struct factors *factors, block_sums sums, const size_t num)
{
    const size_t dims = factors->dims, step = factors->form, stride = factors->stride;
    if (step == 0) {
        multiply_wide(factors->rows, factors->components, stride, dims, sums, num);
        return;
    }
    for (size_t i = 0; i < dims; i += step)
        multiply_narrow(factors->rows + HALF_ROWS * i, factors->components + i, stride,
                        dims - i < step ? dims - i : step, sums, num);
}

// The least 2^n - 1 that no byte is above.
static unsigned most_of(__m256i bytes)
{
    unsigned bits = 0;
    while (bits < 8 && !_mm256_testz_si256(bytes, _mm256_set1_epi8((char)(0xffu << bits)))) bits++;
    return (1u << bits) - 1;
}

// Dimensions whose products can be added in 16 bits: two of each 4 in a lane, each product at most
// what the largest byte and the largest component give; a multiple of 4, or 0.
static size_t tile_form(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries)
{
    size_t bytes = bsw_matrix_tile_bytes(tile->padded_dims, tile->num_bundles),
           numbers = queries->num_queries * tile->padded_dims;
    __m256i rows = _mm256_setzero_si256(), components = _mm256_setzero_si256();
    for (size_t i = 0; i < bytes; i += 32) rows = _mm256_or_si256(rows, load(tile->bytes + i));
    for (size_t i = 0; i < numbers; i += 32)
        components = _mm256_or_si256(components, _mm256_abs_epi8(load(queries->components + i)));
    unsigned most = 2 * most_of(rows) * most_of(components);
    return most > 0 ? 4 * (INT16_MAX / most) : tile->padded_dims;
}

// ---- keys of narrow sums ----
//
// Where 16 bits hold the sums over all dimensions, as of codes whose later dimensions have fewer
// bits, sums and keys stay in registers: nothing is widened on the way, and no filter reads
// integers again.

#define MOST_DIMS 512 // that such sums are tried for

// No byte of four dimensions of any row is above what this has, four bytes over and over.
static __m256i group_most(const struct bsw_matrix_tile *tile, size_t dim)
{
    const uint8_t *bytes = tile->bytes + HALF_ROWS * dim;
    __m256i most = _mm256_setzero_si256();
    for (size_t half = 0; half < 2 * tile->num_bundles; half++) {
        const uint8_t *group = bytes + half * HALF_ROWS * tile->padded_dims;
        most = _mm256_or_si256(most, _mm256_or_si256(load(group), load(group + 32)));
    }
    most = _mm256_or_si256(most, _mm256_permute4x64_epi64(most, 0x4e));
    most = _mm256_or_si256(most, _mm256_shuffle_epi32(most, 0x4e));
    return _mm256_or_si256(most, _mm256_shuffle_epi32(most, 0xb1));
}

// Whether 16 bits hold a query's sums: two of each four dimensions are in a lane.
static int fits_narrow(const int8_t *components, const int8_t *most, size_t dims)
{
    __m256i sums = _mm256_setzero_si256(); // they saturate
    for (size_t i = 0; i < dims; i += 32) {
        __m256i products =
            _mm256_maddubs_epi16(_mm256_abs_epi8(load(components + i)), load(most + i));
        sums = _mm256_adds_epi16(sums, products);
    }
    __m128i eight = _mm_adds_epi16(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    __m128i four = _mm_adds_epi16(eight, _mm_srli_si128(eight, 8));
    uint32_t two = (uint32_t)_mm_cvtsi128_si32(_mm_adds_epi16(four, _mm_srli_si128(four, 4)));
    return (two & 0xffff) < INT16_MAX && two >> 16 < INT16_MAX;
}

static int are_narrow(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries)
{
    _Alignas(32) int8_t most[MOST_DIMS];
    size_t dims = tile->padded_dims;
    __m256i all = _mm256_setzero_si256();
    if (dims > MOST_DIMS) return 0;
    for (size_t d = 0; d < dims; d += 4) {
        __m256i group = group_most(tile, d);
        int32_t four = _mm_cvtsi128_si32(_mm256_castsi256_si128(group));
        memcpy(most + d, &four, sizeof four);
        all = _mm256_or_si256(all, group);
    }
    if (_mm256_movemask_epi8(all)) return 0; // a byte above 127
    for (size_t q = 0; q < queries->num_queries; q++)
        if (!fits_narrow(queries->components + q * dims, most, dims)) return 0;
    return 1;
}

// A half bundle against a block of queries.
struct narrow_half {
    const uint8_t *rows;
    const uint16_t *scales;
    const float *biases;
    uint32_t mask, first_row;
};

struct narrow_block {
    const int8_t *components;
    size_t dims;
    const int32_t *constants;
    const float *scales;
    float least[BLOCK_QUERIES]; // keys that are wanted
    struct bsw_matrix_output *outputs;
};

// Appends those of 16 rows whose bit in pass is 1. Seldom.
static __attribute__((noinline)) void append_half(__m256 low, __m256 high, uint32_t pass,
                                                  uint32_t first_row,
                                                  struct bsw_matrix_output *output)
{
    _Alignas(32) float keys[HALF_ROWS];
    uint64_t *items = output->items + output->count;
    _mm256_store_ps(keys, _mm256_add_ps(low, _mm256_setzero_ps()));
    _mm256_store_ps(keys + 8, _mm256_add_ps(high, _mm256_setzero_ps()));
    output->count += (size_t)__builtin_popcount(pass);
    for (; pass; pass &= pass - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(pass);
        *items++ = bsw_candidate_pack(bsw_score_from_float(keys[lane]), first_row + lane);
    }
}

// Keys of 8 rows, as filter_affine has them: constant - 2 * sum.
INLINE __m256 narrow_keys(__m256i sums, __m256i constant, __m256 scale, const uint16_t *scales,
                          const float *biases)
{
    __m256i dots = _mm256_add_epi32(constant, _mm256_madd_epi16(sums, _mm256_set1_epi16(-2)));
    __m256 rows = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(const void *)scales));
    return _mm256_fmadd_ps(scale, _mm256_mul_ps(rows, _mm256_cvtepi32_ps(dots)),
                           _mm256_load_ps(biases));
}

INLINE void filter_half(__m256i low, __m256i high, const struct narrow_half *half,
                        const struct narrow_block *block, size_t j)
{
    const __m256i constant = _mm256_set1_epi32(block->constants[j]);
    const __m256 scale = _mm256_set1_ps(block->scales[j]), least = _mm256_set1_ps(block->least[j]);
    __m256 low_keys = narrow_keys(low, constant, scale, half->scales, half->biases);
    __m256 high_keys = narrow_keys(high, constant, scale, half->scales + 8, half->biases + 8);
    unsigned low_pass = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(low_keys, least, _CMP_GE_OQ));
    unsigned high_pass = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(high_keys, least, _CMP_GE_OQ));
    uint32_t pass = (low_pass | high_pass << 8) & half->mask;
    if (__builtin_expect(pass != 0, 0))
        append_half(low_keys, high_keys, pass, half->first_row, &block->outputs[j]);
}

#define END_QUERY(j) \
    if (j < num) filter_half(low##j, high##j, half, block, j);

INLINE void scan_half(const struct narrow_half *half, const struct narrow_block *block,
                      const size_t num)
{
    const uint8_t *bytes = half->rows;
    const int8_t *components = block->components;
    const size_t dims = block->dims;
    NARROW_SUMS
    NARROW_EACH(END_QUERY)
}

// Bundles [first, last) for num queries from number q on.
INLINE void scan_halves(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries, size_t q, size_t first,
                        size_t last, struct bsw_matrix_output *outputs, const size_t num)
{
    const size_t dims = tile->padded_dims;
    struct narrow_block block = {queries->components + q * dims,
                                 dims,
                                 queries->constants + q,
                                 queries->scales + q,
                                 {0},
                                 outputs + q};
    for (size_t j = 0; j < num; j++) block.least[j] = bsw_float_limit(outputs[q + j].limit);
    for (size_t half = 2 * first; half < 2 * last; half++) {
        size_t row = half * HALF_ROWS;
        const struct narrow_half rows = {tile->bytes + row * dims, tile->scales + row,
                                         tile->biases + row,
                                         tile->masks[half / 2] >> half % 2 * HALF_ROWS & 0xffff,
                                         tile->first_row + (uint32_t)row};
        scan_half(&rows, &block, num);
    }
}

static void scan_narrow(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs)
{
    if (tile->offsets || !tile->scales || !are_narrow(tile, queries)) {
        scan(tile, queries, outputs);
        return;
    }
    for (size_t b = 0; b < tile->num_bundles; b += BLOCK_BUNDLES) {
        size_t left = tile->num_bundles - b,
               last = b + (left < BLOCK_BUNDLES ? left : BLOCK_BUNDLES), num = queries->num_queries,
               q = 0;
        for (; q + 6 <= num; q += 6) scan_halves(tile, queries, q, b, last, outputs, 6);
        if (q + 3 <= num) {
            scan_halves(tile, queries, q, b, last, outputs, 3);
            q += 3;
        }
        for (; q < num; q++) scan_halves(tile, queries, q, b, last, outputs, 1);
    }
}

const struct bsw_matrix_scan_table bsw_matrix_scan_avx2 = {
    .level = "avx2",
    .unpack = unpack,
    .unpack_query = unpack_query,
    .scan = scan_narrow,
    .scan_staged = scan_staged,
};
