// SPDX-License-Identifier: Apache-2.0
// matrix_scan on AVX2.
//
// vpmaddubsw multiplies bytes and adds pairs into 16 bits, which two products of 255 * 128
// overflow. How much documents and queries really use is found once a tile: with queries of 6 bits,
// codes of 3 bits leave room for 37 pairs, those of 5 for 8 and of 8 for one; where there is none
// bytes are widened to 16 bits first. A block is up to 6 queries against 16 rows.
#define BLOCK_QUERIES 6
#include "kernels/matrix_scan/matrix_scan_256.h"

// Adds in place. Left to itself gcc loads all queries first, has too few registers for the sums
// then and adds to one of them in memory, which takes twice the time.
INLINE void accumulate(__m256i *sums, __m256i products)
{
    __asm__ volatile("vpaddw %1, %0, %0" : "+x"(*sums) : "x"(products));
}

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
            accumulate(&part[j][0], _mm256_maddubs_epi16(low, q));
            accumulate(&part[j][1], _mm256_maddubs_epi16(high, q));
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

const struct bsw_matrix_scan_table bsw_matrix_scan_avx2 = {
    .level = "avx2",
    .unpack = unpack,
    .unpack_query = unpack_query,
    .scan = scan,
    .scan_staged = scan_staged,
};
