// SPDX-License-Identifier: Apache-2.0
// A vocabulary of lanes, in which elementwise kernels have one body for all levels. `floats` is a
// register of LANES numbers, `integers` one of 32 bits each, `marks` tells of each lane yes or no;
// + - * are the compiler's. Nothing is there where a file is compiled for no level
// (CMakeLists.txt).
#ifndef BITSWEEP_KERNELS_LANES_H
#define BITSWEEP_KERNELS_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#if defined(__AVX512VNNI__)

#include <immintrin.h>

#define LEVEL avx512
#define LANES 16
typedef __m512 floats;
typedef __m512i integers;
typedef __mmask16 marks;

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
INLINE marks below(floats a, floats b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
INLINE marks at_most(floats a, floats b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
INLINE floats choose(marks which, floats yes, floats no)
{
    return _mm512_mask_mov_ps(no, which, yes);
}
INLINE floats only(marks which, floats x) // +0 elsewhere
{
    return _mm512_maskz_mov_ps(which, x);
}
INLINE integers choose_integers(marks which, integers yes, integers no)
{
    return _mm512_mask_mov_epi32(no, which, yes);
}
INLINE uint32_t bits_of(marks which) // bit i: lane i
{
    return which;
}
INLINE integers every_integer(int32_t x)
{
    return _mm512_set1_epi32(x);
}
INLINE integers add_integers(integers a, integers b)
{
    return _mm512_add_epi32(a, b);
}

#elif defined(__AVX2__)

#include <immintrin.h>

#define LEVEL avx2
#define LANES 8
typedef __m256 floats;
typedef __m256i integers;
typedef __m256 marks;

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
INLINE marks below(floats a, floats b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
INLINE marks at_most(floats a, floats b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
INLINE floats choose(marks which, floats yes, floats no)
{
    return _mm256_blendv_ps(no, yes, which);
}
INLINE floats only(marks which, floats x)
{
    return _mm256_and_ps(x, which);
}
INLINE integers choose_integers(marks which, integers yes, integers no)
{
    return _mm256_blendv_epi8(no, yes, _mm256_castps_si256(which));
}
INLINE uint32_t bits_of(marks which)
{
    return (uint32_t)_mm256_movemask_ps(which);
}
INLINE integers every_integer(int32_t x)
{
    return _mm256_set1_epi32(x);
}
INLINE integers add_integers(integers a, integers b)
{
    return _mm256_add_epi32(a, b);
}

#elif defined(__aarch64__)

#include <arm_neon.h>

#define LEVEL neon
#define LANES 4
typedef float32x4_t floats;
typedef int32x4_t integers;
typedef uint32x4_t marks;

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
INLINE marks below(floats a, floats b)
{
    return vcltq_f32(a, b);
}
INLINE marks at_most(floats a, floats b)
{
    return vcleq_f32(a, b);
}
INLINE floats choose(marks which, floats yes, floats no)
{
    return vbslq_f32(which, yes, no);
}
INLINE floats only(marks which, floats x)
{
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), which));
}
INLINE integers choose_integers(marks which, integers yes, integers no)
{
    return vbslq_s32(which, yes, no);
}
INLINE uint32_t bits_of(marks which)
{
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(which, bits));
}
INLINE integers every_integer(int32_t x)
{
    return vdupq_n_s32(x);
}
INLINE integers add_integers(integers a, integers b)
{
    return vaddq_s32(a, b);
}

#endif

#if defined(LANES)

// The name of a family's table of this level, and the level's own.
#define LEVEL_NAME(family, level)  bsw_##family##_##level
#define LEVEL_PASTE(family, level) LEVEL_NAME(family, level)
#define LEVEL_TABLE(family)        LEVEL_PASTE(family, LEVEL)
#define LEVEL_QUOTE(level)         #level
#define LEVEL_QUOTED(level)        LEVEL_QUOTE(level)
#define LEVEL_TEXT                 LEVEL_QUOTED(LEVEL)

#endif
#endif
