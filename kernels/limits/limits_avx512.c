// SPDX-License-Identifier: Apache-2.0
#define VECTOR_BYTES 64
#include "kernels/limits/limits_loops.h"

#include <immintrin.h>

#define START_INT(i)         _mm512_setzero_si512()
#define START_FLOAT(i)       _mm512_set1_ps(i)
#define START_DOUBLE(i)      _mm512_set1_pd(i)
#define STEP_INT(s, a, b)    _mm512_dpbusd_epi32(s, a, b)
#define STEP_FLOAT(s, a, b)  _mm512_fmadd_ps(s, a, b)
#define STEP_DOUBLE(s, a, b) _mm512_fmadd_pd(s, a, b)

static inline __m512i step_popcount(__m512i s, __m512i a, __m512i b)
{
    (void)b;
    return _mm512_add_epi32(s, _mm512_popcnt_epi32(a));
}

LIMITS_PEAK(int8, __m512i, START_INT, STEP_INT, _mm512_set1_epi8(LIMITS_U),
            _mm512_set1_epi8(LIMITS_Q), uint32_t, (uint32_t)(steps * 4 * LIMITS_U * LIMITS_Q), 64)
LIMITS_PEAK(float32, __m512, START_FLOAT, STEP_FLOAT, _mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f),
            float, 1.0f, 16)
LIMITS_PEAK(float64, __m512d, START_DOUBLE, STEP_DOUBLE, _mm512_set1_pd(0.5), _mm512_set1_pd(0.5),
            double, 1.0, 8)
LIMITS_PEAK(popcount, __m512i, START_INT, step_popcount, _mm512_set1_epi32((int)LIMITS_WORD),
            _mm512_setzero_si512(), uint32_t, (uint32_t)(steps *LIMITS_BITS), 16)

LIMITS_TABLE(bsw_limits_avx512, "avx512")
