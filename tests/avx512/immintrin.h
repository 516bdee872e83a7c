// SPDX-License-Identifier: Apache-2.0
// Stands before the compiler's <immintrin.h> where AVX-512 kernels are compiled for a CPU without
// it: SIMDe has most of their intrinsics in portable C, the rest of what they use is here, by
// Intel's description of each. A lane of a vector is an element of an array; a lane whose bit of
// the mask is 0 is not read from memory, nor written.
#ifndef BITSWEEP_TESTS_AVX512_IMMINTRIN_H
#define BITSWEEP_TESTS_AVX512_IMMINTRIN_H

// Names that SIMDe has as macros are defined once more, of which system headers need no warning.
#pragma GCC system_header

#include_next <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#define EMULATED static inline __attribute__((always_inline))

// What kernels ask the compiler for after this header.
#define __AVX512VNNI__ 1
// Only hints on registers stand in them, and no register of this CPU is as wide.
#define __asm__(...)

// NAME(A, B, ...) for every lane i that the mask has.
#define EACH_LANE(mask, lanes, statement) \
    for (int i = 0; i < (lanes); i++) {   \
        if ((mask) >> i & 1) statement;   \
    }
#define LANES(type, array, vector)             \
    type array[sizeof(vector) / sizeof(type)]; \
    memcpy(array, &(vector), sizeof(vector))
#define VECTOR(vector_type, array)                    \
    vector_type vector_of_##array;                    \
    memcpy(&vector_of_##array, array, sizeof(array)); \
    return vector_of_##array

#define EMULATED_LOAD(name, vector, element)                                     \
    EMULATED vector emulated##name(uint64_t mask, const void *from)              \
    {                                                                            \
        element lanes[sizeof(vector) / sizeof(element)] = {0};                   \
        EACH_LANE(mask, (int)(sizeof(vector) / sizeof(element)),                 \
                  memcpy(&lanes[i], (const element *)from + i, sizeof lanes[i])) \
        VECTOR(vector, lanes);                                                   \
    }
EMULATED_LOAD(_mm512_maskz_loadu_epi64, __m512i, uint64_t)
EMULATED_LOAD(_mm512_maskz_loadu_ps, __m512, float)
EMULATED_LOAD(_mm512_maskz_load_ps, __m512, float)
EMULATED_LOAD(_mm512_maskz_loadu_epi32, __m512i, uint32_t)
EMULATED_LOAD(_mm512_maskz_loadu_pd, __m512d, double)
EMULATED_LOAD(_mm512_maskz_loadu_epi8, __m512i, uint8_t)
EMULATED_LOAD(_mm_maskz_loadu_epi8, __m128i, uint8_t)
EMULATED_LOAD(_mm_maskz_loadu_epi16, __m128i, uint16_t)
EMULATED_LOAD(_mm256_maskz_loadu_ps, __m256, float)
EMULATED_LOAD(_mm256_maskz_loadu_epi32, __m256i, uint32_t)
EMULATED_LOAD(_mm256_maskz_loadu_epi16, __m256i, uint16_t)
#define _mm512_maskz_loadu_epi64 emulated_mm512_maskz_loadu_epi64
#define _mm512_maskz_loadu_ps    emulated_mm512_maskz_loadu_ps
#define _mm512_maskz_load_ps     emulated_mm512_maskz_load_ps
#define _mm512_maskz_loadu_epi32 emulated_mm512_maskz_loadu_epi32
#define _mm512_maskz_loadu_pd    emulated_mm512_maskz_loadu_pd
#define _mm512_maskz_loadu_epi8  emulated_mm512_maskz_loadu_epi8
#define _mm_maskz_loadu_epi8     emulated_mm_maskz_loadu_epi8
#define _mm_maskz_loadu_epi16    emulated_mm_maskz_loadu_epi16
#define _mm256_maskz_loadu_ps    emulated_mm256_maskz_loadu_ps
#define _mm256_maskz_loadu_epi32 emulated_mm256_maskz_loadu_epi32
#define _mm256_maskz_loadu_epi16 emulated_mm256_maskz_loadu_epi16

#define EMULATED_STORE(name, vector, element)                            \
    EMULATED void emulated##name(void *to, uint64_t mask, vector from)   \
    {                                                                    \
        LANES(element, lanes, from);                                     \
        EACH_LANE(mask, (int)(sizeof(vector) / sizeof(element)),         \
                  memcpy((element *)to + i, &lanes[i], sizeof lanes[i])) \
    }
EMULATED_STORE(_mm512_mask_storeu_epi64, __m512i, uint64_t)
EMULATED_STORE(_mm512_mask_storeu_ps, __m512, float)
EMULATED_STORE(_mm512_mask_storeu_pd, __m512d, double)
EMULATED_STORE(_mm256_mask_storeu_epi32, __m256i, uint32_t)
#define _mm512_mask_storeu_epi64 emulated_mm512_mask_storeu_epi64
#define _mm512_mask_storeu_ps    emulated_mm512_mask_storeu_ps
#define _mm512_mask_storeu_pd    emulated_mm512_mask_storeu_pd
#define _mm256_mask_storeu_epi32 emulated_mm256_mask_storeu_epi32

// lane: the new lane from x.
#define EMULATED_CONVERSION(name, from, from_element, to, to_element, lane) \
    EMULATED to emulated##name(from a)                                      \
    {                                                                       \
        LANES(from_element, all, a);                                        \
        to_element lanes[sizeof(to) / sizeof(to_element)];                  \
        for (size_t i = 0; i < sizeof(to) / sizeof(to_element); i++) {      \
            from_element x = all[i];                                        \
            lanes[i] = (to_element)(lane);                                  \
        }                                                                   \
        VECTOR(to, lanes);                                                  \
    }
EMULATED_CONVERSION(_mm512_cvtepi32_ps, __m512i, int32_t, __m512, float, x)
EMULATED_CONVERSION(_mm512_cvtps_pd, __m256, float, __m512d, double, x)
EMULATED_CONVERSION(_mm512_cvtepi32_pd, __m256i, int32_t, __m512d, double, x)
EMULATED_CONVERSION(_mm512_cvtepi32_epi8, __m512i, uint32_t, __m128i, uint8_t, x)
EMULATED_CONVERSION(_mm512_cvtepu8_epi32, __m128i, uint8_t, __m512i, uint32_t, x)
EMULATED_CONVERSION(_mm512_cvtepu8_epi16, __m256i, uint8_t, __m512i, uint16_t, x)
EMULATED_CONVERSION(_mm512_cvtepu16_epi32, __m256i, uint16_t, __m512i, uint32_t, x)
EMULATED_CONVERSION(_mm512_cvttps_epi32, __m512, float, __m512i, int32_t,
                    _mm_cvttss_si32(_mm_set_ss(x)))
EMULATED_CONVERSION(_mm512_floor_epi32, __m512, float, __m512i, int32_t,
                    _mm_cvtss_si32(_mm_set_ss(floorf(x))))
#define _mm512_cvtepi32_ps    emulated_mm512_cvtepi32_ps
#define _mm512_cvtps_pd       emulated_mm512_cvtps_pd
#define _mm512_cvtepi32_pd    emulated_mm512_cvtepi32_pd
#define _mm512_cvtepi32_epi8  emulated_mm512_cvtepi32_epi8
#define _mm512_cvtepu8_epi32  emulated_mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi16  emulated_mm512_cvtepu8_epi16
#define _mm512_cvtepu16_epi32 emulated_mm512_cvtepu16_epi32
#define _mm512_cvttps_epi32   emulated_mm512_cvttps_epi32

#define EMULATED_COMPARE(name, vector, element, op)                     \
    EMULATED uint32_t emulated##name(uint32_t mask, vector a, vector b) \
    {                                                                   \
        LANES(element, x, a);                                           \
        LANES(element, y, b);                                           \
        uint32_t found = 0;                                             \
        EACH_LANE(mask, (int)(sizeof(vector) / sizeof(element)),        \
                  found |= (uint32_t)(x[i] op y[i]) << i)               \
        return found;                                                   \
    }
EMULATED_COMPARE(_mm512_mask_cmpgt_epu64_mask, __m512i, uint64_t, >)
EMULATED_COMPARE(_mm512_mask_cmpge_epu64_mask, __m512i, uint64_t, >=)
EMULATED_COMPARE(_mm512_mask_cmpeq_epu64_mask, __m512i, uint64_t, ==)
EMULATED_COMPARE(_mm512_mask_cmpge_ps_mask, __m512, float, >=)
EMULATED_COMPARE(_mm256_mask_cmpgt_epi16_mask, __m256i, int16_t, >)
EMULATED_COMPARE(_mm256_mask_cmple_epu16_mask, __m256i, uint16_t, <=)
#define _mm512_mask_cmpgt_epu64_mask  emulated_mm512_mask_cmpgt_epu64_mask
#define _mm512_mask_cmpge_epu64_mask  emulated_mm512_mask_cmpge_epu64_mask
#define _mm512_mask_cmpeq_epu64_mask  emulated_mm512_mask_cmpeq_epu64_mask
#define _mm512_cmpgt_epu64_mask(a, b) emulated_mm512_mask_cmpgt_epu64_mask(0xff, a, b)
#define _mm256_cmpgt_epi16_mask(a, b) emulated_mm256_mask_cmpgt_epi16_mask(0xffff, a, b)
#define _mm256_cmple_epu16_mask(a, b) emulated_mm256_mask_cmple_epu16_mask(0xffff, a, b)

EMULATED __m512 emulated_mm512_cvtph_ps(__m256i a)
{
    __m256 lanes[2] = {_mm256_cvtph_ps(_mm256_castsi256_si128(a)),
                       _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1))};
    VECTOR(__m512, lanes);
}
#define _mm512_cvtph_ps emulated_mm512_cvtph_ps

EMULATED __m512i emulated_mm512_srai_epi32(__m512i a, unsigned count)
{
    LANES(int32_t, x, a);
    EACH_LANE(0xffff, 16, x[i] = x[i] >> (count > 31 ? 31 : count))
    VECTOR(__m512i, x);
}
#define _mm512_srai_epi32 emulated_mm512_srai_epi32

EMULATED __m512 emulated_mm512_mask3_fmadd_ps(__m512 a, __m512 b, __m512 c, uint32_t mask)
{
    LANES(float, x, a);
    LANES(float, y, b);
    LANES(float, z, c);
    EACH_LANE(mask, 16, z[i] = fmaf(x[i], y[i], z[i]))
    VECTOR(__m512, z);
}
#define _mm512_mask3_fmadd_ps emulated_mm512_mask3_fmadd_ps

EMULATED __mmask32 emulated_mm512_kunpackw(uint32_t high, uint32_t low)
{
    return high << 16 | (low & 0xffff);
}
#define _mm512_kunpackw emulated_mm512_kunpackw

EMULATED int emulated_mm512_reduce_add_epi32(__m512i a)
{
    LANES(uint32_t, x, a);
    uint32_t sum = 0;
    EACH_LANE(0xffff, 16, sum += x[i])
    return (int)sum;
}
#define _mm512_reduce_add_epi32 emulated_mm512_reduce_add_epi32

EMULATED int emulated_mm512_reduce_max_epi32(__m512i a)
{
    LANES(int32_t, x, a);
    int32_t most = x[0];
    EACH_LANE(0xffff, 16, most = x[i] > most ? x[i] : most)
    return most;
}
#define _mm512_reduce_max_epi32 emulated_mm512_reduce_max_epi32

EMULATED int64_t emulated_mm512_mask_reduce_or_epi64(uint32_t mask, __m512i a)
{
    LANES(int64_t, x, a);
    int64_t bits = 0;
    EACH_LANE(mask, 8, bits |= x[i])
    return bits;
}
#define _mm512_mask_reduce_or_epi64 emulated_mm512_mask_reduce_or_epi64
#define _mm512_reduce_or_epi64(a)   emulated_mm512_mask_reduce_or_epi64(0xff, a)

EMULATED __m256 emulated_mm512_extractf32x8_ps(__m512 a, int half)
{
    LANES(__m256, x, a);
    return x[half];
}
#define _mm512_extractf32x8_ps emulated_mm512_extractf32x8_ps

EMULATED __m512i emulated_mm512_zextsi256_si512(__m256i a)
{
    __m256i x[2] = {a, _mm256_setzero_si256()};
    VECTOR(__m512i, x);
}
#define _mm512_zextsi256_si512 emulated_mm512_zextsi256_si512

EMULATED __m256i emulated_mm256_mask_add_epi8(__m256i otherwise, uint32_t mask, __m256i a,
                                              __m256i b)
{
    LANES(uint8_t, x, otherwise);
    LANES(uint8_t, y, a);
    LANES(uint8_t, z, b);
    EACH_LANE(mask, 32, x[i] = (uint8_t)(y[i] + z[i]))
    VECTOR(__m256i, x);
}
#define _mm256_mask_add_epi8 emulated_mm256_mask_add_epi8

EMULATED __m256i emulated_mm256_maskz_sub_epi8(uint32_t mask, __m256i a, __m256i b)
{
    LANES(uint8_t, x, a);
    LANES(uint8_t, y, b);
    EACH_LANE(UINT32_MAX, 32, x[i] = mask >> i & 1 ? (uint8_t)(x[i] - y[i]) : 0)
    VECTOR(__m256i, x);
}
#define _mm256_maskz_sub_epi8   emulated_mm256_maskz_sub_epi8

#define _store_mask16(to, mask) (*(to) = (__mmask16)(mask))
#define _load_mask16(from)      (*(from))

// Only this rounding is there.
#define _mm512_cvt_roundps_epi32(a, rounding)                                                     \
    ({                                                                                            \
        _Static_assert((rounding) == (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC), "rounds down"); \
        emulated_mm512_floor_epi32(a);                                                            \
    })

EMULATED __m512i emulated_mm512_maskz_cvtps_epi32(uint32_t mask, __m512 a)
{
    LANES(float, x, a);
    int32_t lanes[16] = {0};
    EACH_LANE(mask, 16, lanes[i] = _mm_cvtss_si32(_mm_set_ss(x[i])))
    VECTOR(__m512i, lanes);
}
#define _mm512_maskz_cvtps_epi32 emulated_mm512_maskz_cvtps_epi32

EMULATED __m512 emulated_mm512_shuffle_f32x4(__m512 a, __m512 b, int places)
{
    LANES(__m128, x, a);
    LANES(__m128, y, b);
    __m128 lanes[4] = {x[places & 3], x[places >> 2 & 3], y[places >> 4 & 3], y[places >> 6 & 3]};
    VECTOR(__m512, lanes);
}
#define _mm512_shuffle_f32x4 emulated_mm512_shuffle_f32x4

EMULATED __m512i emulated_mm512_mask_i32gather_epi32(__m512i otherwise, uint32_t mask,
                                                     __m512i places, const void *from, int scale)
{
    LANES(int32_t, x, otherwise);
    LANES(int32_t, at, places);
    EACH_LANE(mask, 16, memcpy(&x[i], (const char *)from + (ptrdiff_t)at[i] * scale, 4))
    VECTOR(__m512i, x);
}
#define _mm512_mask_i32gather_epi32 emulated_mm512_mask_i32gather_epi32

#define _mm512_mask_cmp_ps_mask(mask, a, b, how)                         \
    ({                                                                   \
        _Static_assert((how) == _CMP_GE_OQ, "not below, and not a NaN"); \
        emulated_mm512_mask_cmpge_ps_mask(mask, a, b);                   \
    })

EMULATED __m256i emulated_mm512_halves(__m512 a)
{
    LANES(__m256, x, a);
    return _mm256_setr_m128i(_mm256_cvtps_ph(x[0], _MM_FROUND_TO_NEAREST_INT),
                             _mm256_cvtps_ph(x[1], _MM_FROUND_TO_NEAREST_INT));
}
// Only this rounding is there.
#define _mm512_cvtps_ph(a, rounding)                                                  \
    ({                                                                                \
        _Static_assert((rounding) == (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), \
                       "rounds to nearest");                                          \
        emulated_mm512_halves(a);                                                     \
    })

#endif
