// SPDX-License-Identifier: Apache-2.0
// A vocabulary of lanes, in which elementwise kernels have one body for all levels. `floats` is a
// register of LANES numbers, `lane_bits` their bits, `lane_marks` tells of each lane yes or no; + -
// * are the compiler's. Nothing is there where a file is compiled for no level (CMakeLists.txt).
#ifndef BITSWEEP_KERNELS_LANES_H
#define BITSWEEP_KERNELS_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512VNNI__)

#define LEVEL avx512
#define LANES 16
typedef __m512 floats;
typedef __mmask16 lane_marks;
// The bits of floats, by a cast; a number beside them stands for all lanes.
typedef uint32_t lane_bits __attribute__((vector_size(64)));

INLINE floats every(float x)
{
    return _mm512_set1_ps(x);
}
INLINE floats load(const float *from)
{
    return _mm512_loadu_ps(from);
}
INLINE void store(float *to, floats x)
{
    _mm512_storeu_ps(to, x);
}
INLINE lane_marks first_marks(size_t n) // of lanes below n
{
    return (lane_marks)_bzhi_u32(0xffff, n < LANES ? (unsigned)n : LANES);
}
INLINE floats load_some(const float *from, size_t n) // the first n; the others are +0, not read
{
    return _mm512_maskz_loadu_ps(first_marks(n), from);
}
INLINE void store_some(float *to, size_t n, floats x)
{
    _mm512_mask_storeu_ps(to, first_marks(n), x);
}
INLINE float tree_sum(floats s) // s[j] += s[j + h] for h = LANES / 2 .. 1
{
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
INLINE floats multiply_add(floats a, floats b, floats sum) // a b + sum, rounded once
{
    return _mm512_fmadd_ps(a, b, sum);
}
INLINE floats larger(floats a, floats b) // b where a is not above it
{
    return _mm512_max_ps(a, b);
}
INLINE floats smaller(floats a, floats b) // b where a is not below it
{
    return _mm512_min_ps(a, b);
}
INLINE lane_marks below(floats a, floats b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
INLINE lane_marks at_most(floats a, floats b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
INLINE floats choose(lane_marks which, floats yes, floats no)
{
    return _mm512_mask_mov_ps(no, which, yes);
}
INLINE lane_bits choose_bits(lane_marks which, lane_bits yes, lane_bits no)
{
    return (lane_bits)_mm512_mask_mov_epi32((__m512i)no, which, (__m512i)yes);
}
INLINE floats only(lane_marks which, floats x) // +0 elsewhere
{
    return _mm512_maskz_mov_ps(which, x);
}
INLINE floats load_shorts(const uint16_t *from)
{
    __m256i shorts = _mm256_loadu_si256((const __m256i *)(const void *)from);
    return _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(shorts));
}
INLINE void store_bytes(uint8_t *to, floats x) // of 0 to 255, without their fractions
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(x)));
}
INLINE floats nearest_halves(floats x) // of at most 65504 in size; ties to even
{
    return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
INLINE uint32_t bits_of(lane_marks which) // bit i: lane i
{
    return which;
}
INLINE uint32_t word_of(const lane_marks which[2]) // of 32 lanes
{
    return (uint32_t)which[0] | (uint32_t)which[1] << 16;
}

#elif defined(__AVX2__)

#define LEVEL avx2
#define LANES 8
typedef __m256 floats;
typedef __m256 lane_marks;
typedef uint32_t lane_bits __attribute__((vector_size(32)));

INLINE floats every(float x)
{
    return _mm256_set1_ps(x);
}
INLINE floats load(const float *from)
{
    return _mm256_loadu_ps(from);
}
INLINE void store(float *to, floats x)
{
    _mm256_storeu_ps(to, x);
}
INLINE lane_marks first_marks(size_t n)
{
    const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return (lane_marks)_mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), places);
}
INLINE floats load_some(const float *from, size_t n)
{
    return n >= LANES ? load(from) : _mm256_maskload_ps(from, (__m256i)first_marks(n));
}
INLINE void store_some(float *to, size_t n, floats x)
{
    if (n >= LANES)
        store(to, x);
    else
        _mm256_maskstore_ps(to, (__m256i)first_marks(n), x);
}
INLINE float tree_sum(floats s)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
INLINE floats multiply_add(floats a, floats b, floats sum)
{
    return _mm256_fmadd_ps(a, b, sum);
}
INLINE floats larger(floats a, floats b)
{
    return _mm256_max_ps(a, b);
}
INLINE floats smaller(floats a, floats b)
{
    return _mm256_min_ps(a, b);
}
INLINE lane_marks below(floats a, floats b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
INLINE lane_marks at_most(floats a, floats b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
INLINE floats choose(lane_marks which, floats yes, floats no)
{
    return _mm256_blendv_ps(no, yes, which);
}
INLINE lane_bits choose_bits(lane_marks which, lane_bits yes, lane_bits no)
{
    return (lane_bits)_mm256_blendv_epi8((__m256i)no, (__m256i)yes, (__m256i)which);
}
INLINE floats only(lane_marks which, floats x)
{
    return _mm256_and_ps(x, which);
}
INLINE floats load_shorts(const uint16_t *from)
{
    __m128i shorts = _mm_loadu_si128((const __m128i *)(const void *)from);
    return _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(shorts));
}
INLINE void store_bytes(uint8_t *to, floats x)
{
    __m256i all = _mm256_cvttps_epi32(x);
    __m128i shorts =
        _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(shorts, shorts));
}
INLINE floats nearest_halves(floats x)
{
    return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
INLINE uint32_t bits_of(lane_marks which)
{
    return (uint32_t)_mm256_movemask_ps(which);
}
INLINE uint32_t word_of(const lane_marks which[4])
{
    return bits_of(which[0]) | bits_of(which[1]) << 8 | bits_of(which[2]) << 16 |
           bits_of(which[3]) << 24;
}

#elif defined(__aarch64__)

#include <arm_neon.h>

#include "kernels/neon_mask.h"

#define LEVEL neon
#define LANES 4
typedef float32x4_t floats;
typedef uint32x4_t lane_marks;
typedef uint32x4_t lane_bits;

INLINE floats every(float x)
{
    return vdupq_n_f32(x);
}
INLINE floats load(const float *from)
{
    return vld1q_f32(from);
}
INLINE void store(float *to, floats x)
{
    vst1q_f32(to, x);
}
INLINE lane_marks first_marks(size_t n)
{
    const uint32x4_t places = {0, 1, 2, 3};
    return vcltq_u32(places, vdupq_n_u32((uint32_t)n));
}
INLINE floats load_some(const float *from, size_t n)
{
    float rest[LANES] = {0};
    if (n >= LANES) return load(from);
    memcpy(rest, from, n * sizeof *rest);
    return load(rest);
}
INLINE void store_some(float *to, size_t n, floats x)
{
    memcpy(to, &x, n < LANES ? n * sizeof *to : sizeof x);
}
INLINE float tree_sum(floats s)
{
    float32x2_t two = vadd_f32(vget_low_f32(s), vget_high_f32(s));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
INLINE floats multiply_add(floats a, floats b, floats sum)
{
    return vfmaq_f32(sum, a, b);
}
INLINE floats larger(floats a, floats b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
INLINE floats smaller(floats a, floats b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}
INLINE lane_marks below(floats a, floats b)
{
    return vcltq_f32(a, b);
}
INLINE lane_marks at_most(floats a, floats b)
{
    return vcleq_f32(a, b);
}
INLINE floats choose(lane_marks which, floats yes, floats no)
{
    return vbslq_f32(which, yes, no);
}
INLINE lane_bits choose_bits(lane_marks which, lane_bits yes, lane_bits no)
{
    return vbslq_u32(which, yes, no);
}
INLINE floats only(lane_marks which, floats x)
{
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), which));
}
INLINE floats load_shorts(const uint16_t *from)
{
    return vcvtq_f32_u32(vmovl_u16(vld1_u16(from)));
}
INLINE void store_bytes(uint8_t *to, floats x)
{
    uint16x4_t shorts = vmovn_u32(vcvtq_u32_f32(x));
    uint8x8_t bytes = vmovn_u16(vcombine_u16(shorts, shorts));
    memcpy(to, &bytes, LANES);
}
INLINE floats nearest_halves(floats x)
{
    return vcvt_f32_f16(vcvt_f16_f32(x));
}
INLINE uint32_t bits_of(lane_marks which)
{
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(which, bits));
}
INLINE uint32_t word_of(const lane_marks which[8])
{
    return bsw_neon_word_mask(which);
}

#endif

#if defined(LANES)

#define WORD (32 / LANES) // registers of 32 lanes

// max(0, x), no branch.
INLINE float positive(float x)
{
#if defined(__AVX2__)
    return _mm_cvtss_f32(_mm_max_ss(_mm_set_ss(x), _mm_setzero_ps()));
#else
    return x > 0.0f ? x : 0.0f;
#endif
}

// The name of a family's table of this level, and the level's own.
#define LEVEL_NAME(family, level)  bsw_##family##_##level
#define LEVEL_PASTE(family, level) LEVEL_NAME(family, level)
#define LEVEL_TABLE(family)        LEVEL_PASTE(family, LEVEL)
#define LEVEL_QUOTE(level)         #level
#define LEVEL_QUOTED(level)        LEVEL_QUOTE(level)
#define LEVEL_TEXT                 LEVEL_QUOTED(LEVEL)

#endif
#endif
