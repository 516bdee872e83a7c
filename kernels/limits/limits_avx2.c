// SPDX-License-Identifier: Apache-2.0
// Multiply-adds of bytes are vpmaddubsw, two products to 16 bits, which wrap; popcounts are lookups
// of half bytes.
#define VECTOR_BYTES 32
#include "kernels/limits/limits_loops.h"

#include <immintrin.h>

#define START_INT(i)         _mm256_setzero_si256()
#define START_FLOAT(i)       _mm256_set1_ps(i)
#define START_DOUBLE(i)      _mm256_set1_pd(i)
#define STEP_INT(s, a, b)    _mm256_add_epi16(s, _mm256_maddubs_epi16(a, b))
#define STEP_FLOAT(s, a, b)  _mm256_fmadd_ps(s, a, b)
#define STEP_DOUBLE(s, a, b) _mm256_fmadd_pd(s, a, b)

static inline __m256i step_popcount(__m256i s, __m256i a, __m256i table)
{
    const __m256i low = _mm256_set1_epi8(15);
    __m256i x = _mm256_shuffle_epi8(table, _mm256_and_si256(a, low));
    __m256i y = _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(a, 4), low));
    return _mm256_add_epi64(s, _mm256_sad_epu8(_mm256_add_epi8(x, y), _mm256_setzero_si256()));
}

#define BIT_COUNTS                                                                                 \
    _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, \
                     2, 3, 2, 3, 3, 4)

LIMITS_PEAK(int8, __m256i, START_INT, STEP_INT, _mm256_set1_epi8(LIMITS_U),
            _mm256_set1_epi8(LIMITS_Q), uint16_t, (uint16_t)(steps * 2 * LIMITS_U * LIMITS_Q), 32)
LIMITS_PEAK(float32, __m256, START_FLOAT, STEP_FLOAT, _mm256_set1_ps(0.5f), _mm256_set1_ps(0.5f),
            float, 1.0f, 8)
LIMITS_PEAK(float64, __m256d, START_DOUBLE, STEP_DOUBLE, _mm256_set1_pd(0.5), _mm256_set1_pd(0.5),
            double, 1.0, 4)
LIMITS_PEAK(popcount, __m256i, START_INT, step_popcount, _mm256_set1_epi32((int)LIMITS_WORD),
            BIT_COUNTS, uint64_t, steps * 2 * LIMITS_BITS, 8)

LIMITS_TABLE(bsw_limits_avx2, "avx2")
