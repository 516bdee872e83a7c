// SPDX-License-Identifier: Apache-2.0
// Sums in 16 bits of 16 rows with up to 6 queries, for levels with AVX2: what matrix_scan and
// coarse_scan have where so few bits tell a sum.
//
// Sums are variables and not arrays, which gcc would keep in memory: 12 of them, two loads and a
// broadcast are the 16 registers there are.
#ifndef BITSWEEP_KERNELS_NARROW_BLOCK_AVX2_H
#define BITSWEEP_KERNELS_NARROW_BLOCK_AVX2_H

#if defined(__AVX2__) // nothing elsewhere

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define NARROW_INLINE  static inline __attribute__((always_inline))
#define NARROW_QUERIES 6
#define NARROW_ROWS    16

NARROW_INLINE __m256i narrow_load(const void *bytes)
{
    return _mm256_load_si256((const __m256i *)bytes);
}

NARROW_INLINE __m256i narrow_broadcast(const int8_t *components)
{
    int32_t four;
    memcpy(&four, components, sizeof four);
    return _mm256_set1_epi32(four);
}

// Adds in place. Left to itself gcc loads all queries first, has too few registers for the sums
// then and adds to one of them in memory, which takes twice the time.
NARROW_INLINE void narrow_add(__m256i *sums, __m256i products)
{
    __asm__ volatile("vpaddw %1, %0, %0" : "+x"(*sums) : "x"(products));
}

#define NARROW_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#define NARROW_START(j) __m256i low##j = _mm256_setzero_si256(), high##j = _mm256_setzero_si256();
#define NARROW_STEP(j)                                                         \
    if (j < num) {                                                             \
        __m256i query = narrow_broadcast(components + (size_t)j * dims + dim); \
        narrow_add(&low##j, _mm256_maddubs_epi16(low, query));                 \
        narrow_add(&high##j, _mm256_maddubs_epi16(high, query));               \
    }
#define NARROW_PIN(j) \
    if (j < num) __asm__("" : "+x"(low##j), "+x"(high##j));

// Defines low0 .. low5 and high0 .. high5: sums of rows 0-7 and 8-15, two of 16 bits each, whose
// sum modulo 2^16 is the row's, with the first `num` of the queries. In scope: bytes, of 16 rows as
// matrix_scan lays them; components, [num][dims]; dims; num, a constant.
#define NARROW_SUMS                                                 \
    NARROW_EACH(NARROW_START)                                       \
    for (size_t dim = 0; dim < dims; dim += 4) {                    \
        __m256i low = narrow_load(bytes + NARROW_ROWS * dim),       \
                high = narrow_load(bytes + NARROW_ROWS * dim + 32); \
        NARROW_EACH(NARROW_STEP)                                    \
    }                                                               \
    NARROW_EACH(NARROW_PIN)

#endif
#endif
