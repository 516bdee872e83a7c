// SPDX-License-Identifier: Apache-2.0
// Look-ups of table_scan on AVX2: those of 8-bit codes are loads; those of 4-bit codes are shuffles
// of the bytes of 16 numbers, 32 rows at a time.
#include "kernels/table_scan/table_scan_lanes.h"

#define WIDE 4 // registers of sums of a bundle

// Registers of a bundle's numbers hold rows 4i to 4i + 3 and 16 + 4i to 19 + 4i.
struct wide {
    __m256 k[WIDE];
};

// Byte `place` of each of 16 numbers, twice.
INLINE __m256i bytes_of(const float *numbers, size_t place)
{
    const uint8_t *bytes = (const uint8_t *)numbers;
    uint8_t sixteen[16];
    for (size_t j = 0; j < 16; j++) sixteen[j] = bytes[j * sizeof *numbers + place];
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)sixteen));
}

INLINE struct wide shuffle_up(const __m256i *table, __m256i codes)
{
    struct wide found;
    __m256i b[4];
    for (size_t i = 0; i < 4; i++) b[i] = _mm256_shuffle_epi8(table[i], codes);
    __m256i low = _mm256_unpacklo_epi8(b[0], b[1]), high = _mm256_unpackhi_epi8(b[0], b[1]);
    __m256i low2 = _mm256_unpacklo_epi8(b[2], b[3]), high2 = _mm256_unpackhi_epi8(b[2], b[3]);
    found.k[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(low, low2));
    found.k[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(low, low2));
    found.k[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(high, high2));
    found.k[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(high, high2));
    return found;
}

#define GROUP 4 // bundles that share the shuffled bytes of a table

// Rows of a register back in their order.
INLINE void store_wide(const struct wide *s, float *sums)
{
    for (int k = 0; k < WIDE; k++) {
        _mm_storeu_ps(sums + 4 * k, _mm256_castps256_ps128(s->k[k]));
        _mm_storeu_ps(sums + 16 + 4 * k, _mm256_extractf128_ps(s->k[k], 1));
    }
}

INLINE void sums_of_halves(const struct bsw_code_table *table, const uint8_t *codes,
                           size_t bundle_bytes, size_t num_bundles, float *sums)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    const float *numbers = table->numbers;
    struct wide s[GROUP];
    for (size_t g = 0; g < num_bundles; g++)
        for (int k = 0; k < WIDE; k++) s[g].k[k] = _mm256_setzero_ps();
    for (uint32_t p = 0; p < table->parts; p++, numbers += 16) {
        __m256i bytes[4];
        for (size_t i = 0; i < 4; i++) bytes[i] = bytes_of(numbers, i);
        for (size_t g = 0; g < num_bundles; g++) {
            const uint8_t *at = codes + g * bundle_bytes + p / 2 * BSW_BUNDLE_ROWS;
            __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)at);
            if (p % 2) both = _mm256_srli_epi16(both, 4);
            struct wide found = shuffle_up(bytes, _mm256_and_si256(both, nibble));
            for (int k = 0; k < WIDE; k++) s[g].k[k] = _mm256_add_ps(s[g].k[k], found.k[k]);
        }
    }
    for (size_t g = 0; g < num_bundles; g++) store_wide(&s[g], sums + g * BSW_BUNDLE_ROWS);
}

static void sums(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                 size_t num_bundles, float *out)
{
    if (table->bits == 8) {
        sums_by_loads(table, codes, bundle_bytes, num_bundles, out);
        return;
    }
    for (size_t b = 0; b < num_bundles; b += GROUP) {
        size_t left = num_bundles - b;
        sums_of_halves(table, codes + b * bundle_bytes, bundle_bytes, left < GROUP ? left : GROUP,
                       out + b * BSW_BUNDLE_ROWS);
    }
}

const struct bsw_table_scan_table bsw_table_scan_avx2 = {.level = "avx2",
                                                         .products = products,
                                                         .nearest = nearest,
                                                         .distances = distances,
                                                         .round_numbers = round_numbers,
                                                         .sums = sums,
                                                         .sums_at = sums_at,
                                                         .filter = filter};
