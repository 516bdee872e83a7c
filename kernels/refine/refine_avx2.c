// The 32 lanes are eight registers of 4 doubles; type and metric are constants of each copy of the
// loop. The end of a row is copied to a block of zeros: fma(0, 0, s) leaves s as it is, because no
// lane is ever -0 (refine_avx512.c has the reason).
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

INLINE size_t number_bytes(enum bsw_vector_type type)
{
    return type == BSW_VECTOR_FLOAT32 ? 4 : type == BSW_VECTOR_FLOAT16 ? 2 : 1;
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

static void avx2_to_double(enum bsw_vector_type type, const void *numbers, size_t n, double *out)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) _mm256_storeu_pd(out + i, load_group(type, numbers, i));
    if (i == n) return;
    char rest[16] = {0};
    double four[4];
    memcpy(rest, (const char *)numbers + i * number_bytes(type), (n - i) * number_bytes(type));
    _mm256_storeu_pd(four, load_group(type, rest, 0));
    memcpy(out + i, four, (n - i) * sizeof *out);
}

INLINE void add_group(enum bsw_metric metric, __m256d x, __m256d q, __m256d *sum, __m256d *norm)
{
    if (metric == BSW_METRIC_L2) {
        __m256d difference = _mm256_sub_pd(x, q);
        *sum = _mm256_fmadd_pd(difference, difference, *sum);
    } else {
        *sum = _mm256_fmadd_pd(x, q, *sum);
    }
    if (metric == BSW_METRIC_COSINE) *norm = _mm256_fmadd_pd(x, x, *norm);
}

// The numbers from i on, fewer than 32; none: nothing.
INLINE void add_rest(enum bsw_metric metric, enum bsw_vector_type type, const void *row,
                     const double *query, size_t i, size_t dims, __m256d sums[8], __m256d norms[8])
{
    char row_rest[128] = {0};
    double query_rest[32] = {0};
    size_t bytes = number_bytes(type);
    if (i == dims) return;
    memcpy(row_rest, (const char *)row + i * bytes, (dims - i) * bytes);
    memcpy(query_rest, query + i, (dims - i) * sizeof *query);
    for (size_t g = 0; g < 8; g++)
        add_group(metric, load_group(type, row_rest, 4 * g), _mm256_loadu_pd(query_rest + 4 * g),
                  &sums[g], &norms[g]);
}

static double avx2_squared_norm(const double *numbers, size_t dims)
{
    __m256d s[8];
    for (size_t g = 0; g < 8; g++) s[g] = _mm256_setzero_pd();
    size_t i = 0;
    for (; i + 32 <= dims; i += 32) {
        for (size_t g = 0; g < 8; g++) {
            __m256d x = _mm256_loadu_pd(numbers + i + 4 * g);
            s[g] = _mm256_fmadd_pd(x, x, s[g]);
        }
    }
    double rest[32] = {0};
    memcpy(rest, numbers + i, (dims - i) * sizeof *rest);
    for (size_t g = 0; g < 8; g++) {
        __m256d x = _mm256_loadu_pd(rest + 4 * g);
        s[g] = _mm256_fmadd_pd(x, x, s[g]);
    }
    return tree_sum(s);
}

#include "kernels/refine/refine_rows.h"

const struct bsw_refine_table bsw_refine_avx2 = {
    .level = "avx2",
    .to_double = avx2_to_double,
    .squared_norm = avx2_squared_norm,
    .value = value,
};
