// matrix_scan on AVX2.
//
// vpmaddubsw multiplies bytes and adds pairs into 16 bits, which two products of 255 * 128
// overflow. How much the documents really use is found once a tile: codes of up to 4 bits leave
// room for 8 pairs, 5 for 4, 6 for 2, 7 for one; 8-bit codes are widened to 16 bits first. A block
// is up to 4 queries against 16 rows.
#define BLOCK_QUERIES 4
#include "kernels/matrix_scan/matrix_scan_256.h"

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
            part[j][0] = _mm256_add_epi16(part[j][0], _mm256_maddubs_epi16(low, q));
            part[j][1] = _mm256_add_epi16(part[j][1], _mm256_maddubs_epi16(high, q));
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
        multiply_narrow(factors->rows + HALF_ROWS * i, factors->components + i, stride, step, sums,
                        num);
}

// Dimensions whose products can be added in 16 bits, at 2 * 128 * (2^bits - 1) a pair: 32 where
// codes have up to 4 bits, 4 with 7; 0 with 8.
static size_t tile_form(const struct bsw_matrix_tile *tile)
{
    size_t bytes = bsw_matrix_tile_bytes(tile->padded_dims, tile->num_bundles);
    __m256i all = _mm256_setzero_si256();
    for (size_t i = 0; i < bytes; i += 32) all = _mm256_or_si256(all, load(tile->bytes + i));
    for (unsigned bits = 4; bits < 8; bits++) {
        __m256i above = _mm256_set1_epi8((char)(0xff << bits));
        if (_mm256_testz_si256(all, above)) return (size_t)32 >> (bits - 4);
    }
    return 0;
}

const struct bsw_matrix_scan_table bsw_matrix_scan_avx2 = {
    .level = "avx2",
    .unpack = unpack,
    .unpack_query = unpack_query,
    .scan = scan,
    .scan_staged = scan_staged,
};
