// SPDX-License-Identifier: Apache-2.0
// matrix_scan on AVX2 with VNNI: desktops since Alder Lake and Zen 5, which have no AVX-512 or need
// none. vpdpbusd multiplies and adds four bytes into 32 bits, whatever the codes, so a block of 6
// queries against 16 rows is 12 accumulators, and for 4 dimensions 8 loads to 12 dot products.
#define BLOCK_QUERIES 6
#include "kernels/matrix_scan/matrix_scan_256.h"

#if defined(__AVXVNNI__)
#define DOT_BYTES _mm256_dpbusd_avx_epi32
#else
#define DOT_BYTES _mm256_dpbusd_epi32 // the same on AVX-512: a test runs it there
#endif

// Sums as variables, pinned behind the loop: gcc 12 keeps copies of them in memory otherwise.
#define EACH_QUERY(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#define START_QUERY(j) __m256i low##j = _mm256_setzero_si256(), high##j = _mm256_setzero_si256();
#define STEP_QUERY(j)                                                                      \
    if (j < num) {                                                                         \
        __m256i q = broadcast_four(factors->components + (size_t)j * factors->stride + i); \
        low##j = DOT_BYTES(low##j, low, q);                                                \
        high##j = DOT_BYTES(high##j, high, q);                                             \
    }
#define END_QUERY(j)                               \
    if (j < num) {                                 \
        __asm__("" : "+x"(low##j), "+x"(high##j)); \
        sums[j][0] = low##j;                       \
        sums[j][1] = high##j;                      \
    }

INLINE void add_products(const struct factors *factors, block_sums sums, const size_t num)
{
    const uint8_t *rows = factors->rows;
    EACH_QUERY(START_QUERY)
    for (size_t i = 0; i < factors->dims; i += 4, rows += 64) {
        __m256i low = load(rows), high = load(rows + 32);
        __asm__("" : "+x"(low), "+x"(high)); // loaded once
        EACH_QUERY(STEP_QUERY)
    }
    EACH_QUERY(END_QUERY)
}

static size_t tile_form(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries)
{
    (void)queries;
    (void)tile;
    return 0; // no sum is narrow
}

const struct bsw_matrix_scan_table bsw_matrix_scan_avxvnni = {
    .level = "avxvnni",
    .unpack = unpack,
    .unpack_query = unpack_query,
    .scan = scan,
    .scan_staged = scan_staged,
};
