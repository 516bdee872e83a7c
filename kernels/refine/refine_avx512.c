// SPDX-License-Identifier: Apache-2.0
// The 32 lanes are four registers of 8 doubles; type and metric are constants of each copy of the
// loop.
//
// Lanes past the end of a row read as zero through masks, and fma(0, 0, s) leaves s as it is: only
// s = -0 would change, and no lane is ever -0. It starts at +0; +0 plus a product of either zero is
// +0; a sum that cancels is +0; and nothing underflows to -0, since products of numbers that were
// float32 are multiples of 2^-298.
#include <immintrin.h>

#include "kernels/refine/refine.h"

#define INLINE static inline __attribute__((always_inline))

#define MASKED_LOADS
#define LANES 8
typedef __m512d lanes;

// Numbers i .. i+7 as float64.
INLINE __m512d load_group(enum bsw_vector_type type, const void *numbers, size_t i)
{
    const char *bytes = numbers;
    switch (type) {
    case BSW_VECTOR_FLOAT32:
        return _mm512_cvtps_pd(_mm256_loadu_ps((const void *)(bytes + 4 * i)));
    case BSW_VECTOR_FLOAT16:
        return _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128((const void *)(bytes + 2 * i))));
    case BSW_VECTOR_UINT8:
        return _mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(bytes + i))));
    case BSW_VECTOR_INT8:
        return _mm512_cvtepi32_pd(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(bytes + i))));
    default:
        return _mm512_setzero_pd();
    }
}

// The same; numbers whose bit in `valid` is 0 are not read and give 0.
INLINE __m512d load_some(enum bsw_vector_type type, const void *numbers, size_t i, __mmask8 valid)
{
    const char *bytes = numbers;
    switch (type) {
    case BSW_VECTOR_FLOAT32:
        return _mm512_cvtps_pd(_mm256_maskz_loadu_ps(valid, bytes + 4 * i));
    case BSW_VECTOR_FLOAT16:
        return _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_maskz_loadu_epi16(valid, bytes + 2 * i)));
    case BSW_VECTOR_UINT8:
        return _mm512_cvtepi32_pd(_mm256_cvtepu8_epi32(_mm_maskz_loadu_epi8(valid, bytes + i)));
    case BSW_VECTOR_INT8:
        return _mm512_cvtepi32_pd(_mm256_cvtepi8_epi32(_mm_maskz_loadu_epi8(valid, bytes + i)));
    default:
        return _mm512_setzero_pd();
    }
}

// Which of the numbers i .. i+7 are below n.
INLINE __mmask8 valid_lanes(size_t i, size_t n)
{
    if (i >= n) return 0;
    return n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : (__mmask8)0xff;
}

// s[j] += s[j + h] for h = 16, 8, 4, 2, 1.
INLINE double tree_sum(const __m512d s[4])
{
    __m512d eight = _mm512_add_pd(_mm512_add_pd(s[0], s[2]), _mm512_add_pd(s[1], s[3]));
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

INLINE __m512d multiply_add(__m512d a, __m512d b, __m512d sum)
{
    return _mm512_fmadd_pd(a, b, sum);
}

static void to_double(enum bsw_vector_type type, const void *numbers, size_t n, double *out)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) _mm512_storeu_pd(out + i, load_group(type, numbers, i));
    __mmask8 valid = valid_lanes(i, n);
    _mm512_mask_storeu_pd(out + i, valid, load_some(type, numbers, i, valid));
}

static double squared_norm(const double *numbers, size_t dims)
{
    __m512d s[4] = {_mm512_setzero_pd(), _mm512_setzero_pd(), _mm512_setzero_pd(),
                    _mm512_setzero_pd()};
    for (size_t i = 0; i < dims; i += 32) {
        for (size_t g = 0; g < 4; g++) {
            size_t first = i + 8 * g;
            __m512d x = _mm512_maskz_loadu_pd(valid_lanes(first, dims), numbers + first);
            s[g] = _mm512_fmadd_pd(x, x, s[g]);
        }
    }
    return tree_sum(s);
}

INLINE void add_group(enum bsw_metric metric, lanes x, lanes q, lanes *sum, lanes *norm);

// The numbers from i on, fewer than 32; none: nothing.
INLINE void add_rest(enum bsw_metric metric, enum bsw_vector_type type, const void *row,
                     const double *query, size_t i, size_t dims, __m512d sums[4], __m512d norms[4])
{
    for (size_t g = 0; g < 4; g++, i += 8) {
        if (i >= dims) return;
        __mmask8 valid = valid_lanes(i, dims);
        __m512d x = load_some(type, row, i, valid);
        add_group(metric, x, _mm512_maskz_loadu_pd(valid, query + i), &sums[g], &norms[g]);
    }
}

#include "kernels/refine/refine_rows.h"

const struct bsw_refine_table bsw_refine_avx512 = {
    .level = "avx512",
    .to_double = to_double,
    .squared_norm = squared_norm,
    .value = value,
};
