// SPDX-License-Identifier: Apache-2.0
// The 32 lanes are eight registers of 4 doubles; type and metric are constants of each copy of the
// loop.
#include <immintrin.h>
#include <string.h>

#include "kernels/refine/refine.h"

#define INLINE static inline __attribute__((always_inline))

#define LANES  4
typedef __m256d lanes;

// Numbers i .. i+3 as float64.
INLINE __m256d load_group(enum bsw_vector_type type, const void *numbers, size_t i)
{
    const char *bytes = numbers;
    int32_t four_bytes;
    switch (type) {
    case BSW_VECTOR_FLOAT32:
        return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_loadu_si128((const void *)(bytes + 4 * i))));
    case BSW_VECTOR_FLOAT16:
        return _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const void *)(bytes + 2 * i))));
    case BSW_VECTOR_UINT8:
        memcpy(&four_bytes, bytes + i, sizeof four_bytes);
        return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four_bytes)));
    case BSW_VECTOR_INT8:
        memcpy(&four_bytes, bytes + i, sizeof four_bytes);
        return _mm256_cvtepi32_pd(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four_bytes)));
    default:
        return _mm256_setzero_pd();
    }
}

// s[j] += s[j + h] for h = 16, 8, 4, 2, 1.
INLINE double tree_sum(const __m256d s[8])
{
    __m256d even = _mm256_add_pd(_mm256_add_pd(s[0], s[4]), _mm256_add_pd(s[2], s[6]));
    __m256d odd = _mm256_add_pd(_mm256_add_pd(s[1], s[5]), _mm256_add_pd(s[3], s[7]));
    __m256d four = _mm256_add_pd(even, odd);
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

INLINE __m256d multiply_add(__m256d a, __m256d b, __m256d sum)
{
    return _mm256_fmadd_pd(a, b, sum);
}

#include "kernels/refine/refine_rows.h"

const struct bsw_refine_table bsw_refine_avx2 = {
    .level = "avx2",
    .to_double = to_double,
    .squared_norm = squared_norm,
    .value = value,
};
