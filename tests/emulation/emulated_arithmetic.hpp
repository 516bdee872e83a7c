// SPDX-License-Identifier: Apache-2.0
// Scalar intrinsics and atomics. Roundings are those of the host's IEEE arithmetic: compile with
// -ffp-contract=off.
#ifndef BITSWEEP_EMULATION_EMULATED_ARITHMETIC_HPP
#define BITSWEEP_EMULATION_EMULATED_ARITHMETIC_HPP

#include <cmath>
#include <cstring>

#include "common/codes/half.h"
#include "emulated_thread.hpp"

inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}

inline int __ffs(int v)
{
    return __builtin_ffs(v);
}

// __fadd_rn, __dadd_rn and so on.
#define EMULATED_ARITHMETIC(T, LETTER, FMA) \
    inline T __##LETTER##add_rn(T a, T b)   \
    {                                       \
        return a + b;                       \
    }                                       \
    inline T __##LETTER##sub_rn(T a, T b)   \
    {                                       \
        return a - b;                       \
    }                                       \
    inline T __##LETTER##mul_rn(T a, T b)   \
    {                                       \
        return a * b;                       \
    }                                       \
    inline T __##LETTER##div_rn(T a, T b)   \
    {                                       \
        return a / b;                       \
    }                                       \
    inline T __##LETTER##sqrt_rn(T v)       \
    {                                       \
        return std::sqrt(v);                \
    }                                       \
    inline T FMA(T a, T b, T c)             \
    {                                       \
        return std::fma(a, b, c);           \
    }
EMULATED_ARITHMETIC(float, f, __fmaf_rn)
EMULATED_ARITHMETIC(double, d, __fma_rn)

// Within one unit in the last place of CUDA's, which is correctly rounded.
inline float __frsqrt_rn(float v)
{
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(v)));
}

inline float __fadd_rd(float a, float b)
{
    const float sum = a + b;
    // The exact sum's distance from the rounded one (Knuth, TwoSum).
    const float back = sum - a, rest = (a - (sum - back)) + (b - back);
    return rest < 0 ? std::nextafter(sum, -HUGE_VALF) : sum;
}

// The poorest that CUDA allows: two units off, up or down, and nothing of a divisor beyond 2^126.
inline float __fdividef(float a, float b)
{
    unsigned bits;
    memcpy(&bits, &b, sizeof bits);
    const float quotient = a / b, towards = __builtin_popcount(bits) % 2 ? HUGE_VALF : 0;
    if (std::fabs(b) > 0x1p126f) return std::isinf(a) ? NAN : 0;
    if (!std::isfinite(quotient) || quotient == 0) return quotient;
    return std::nextafter(std::nextafter(quotient, towards), towards);
}

inline int __vimin3_s32(int a, int b, int c)
{
    const int least = a < b ? a : b;
    return least < c ? least : c;
}

// v within the range of int.
inline int __float2int_rn(float v)
{
    return static_cast<int>(std::nearbyint(v));
}

inline int __float2int_rd(float v)
{
    return static_cast<int>(std::floor(v));
}

inline float __int2float_rn(int v)
{
    return static_cast<float>(v);
}

// __float_as_uint and so on: the same bits as another type.
#define EMULATED_BITS(FROM, NAME, TO)           \
    inline TO NAME(FROM v)                      \
    {                                           \
        TO out;                                 \
        __builtin_memcpy(&out, &v, sizeof out); \
        return out;                             \
    }
EMULATED_BITS(float, __float_as_uint, unsigned)
EMULATED_BITS(float, __float_as_int, int)
EMULATED_BITS(unsigned, __uint_as_float, float)
EMULATED_BITS(int, __int_as_float, float)
EMULATED_BITS(double, __double_as_longlong, long long)
EMULATED_BITS(long long, __longlong_as_double, double)

// The larger of each pair of unsigned halves.
inline unsigned __vmaxu2(unsigned a, unsigned b)
{
    return std::max(a & 0xffff0000u, b & 0xffff0000u) | std::max(a & 0xffffu, b & 0xffffu);
}

inline unsigned __vminu2(unsigned a, unsigned b)
{
    return std::min(a & 0xffff0000u, b & 0xffff0000u) | std::min(a & 0xffffu, b & 0xffffu);
}

// The upper word of (high, low), shifted to the left by as much modulo 32.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by)
{
    const uint64_t both = static_cast<uint64_t>(high) << 32 | low;
    return static_cast<unsigned>(both << (by & 31) >> 32);
}

// Four of the eight bytes of (high, low); selectors without the bit that copies signs.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selectors)
{
    const uint64_t bytes = static_cast<uint64_t>(high) << 32 | low;
    unsigned out = 0;
    for (int i = 0; i < 4; i++)
        out |= static_cast<unsigned>(bytes >> 8 * (selectors >> 4 * i & 7) & 0xff) << 8 * i;
    return out;
}

template <class T> T __ldg(const T *place)
{
    return *place;
}

template <class A, class B> constexpr auto min(A a, B b)
{
    using C = std::common_type_t<A, B>;
    return C(a) < C(b) ? C(a) : C(b);
}

template <class A, class B> constexpr auto max(A a, B b)
{
    using C = std::common_type_t<A, B>;
    return C(a) < C(b) ? C(b) : C(a);
}

[[noreturn]] inline void __trap()
{
    emulation::fail("__trap()");
}

// Atomics are relaxed, as CUDA's. The value's type follows the place's.
namespace emulation
{
template <class T> using same = std::common_type_t<T>;
}

template <class T> T atomicAdd(T *place, emulation::same<T> v)
{
    static_assert(std::is_integral_v<T>, "sums of floats depend on the order: not used here");
    emulation::may_yield();
    return __atomic_fetch_add(place, v, __ATOMIC_RELAXED);
}

template <class T> T atomicMin(T *place, emulation::same<T> v)
{
    emulation::may_yield();
    T old = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (v < old && !__atomic_compare_exchange_n(place, &old, v, false, __ATOMIC_RELAXED,
                                                   __ATOMIC_RELAXED)) {
    }
    return old;
}

template <class T> T atomicMax(T *place, emulation::same<T> v)
{
    emulation::may_yield();
    T old = __atomic_load_n(place, __ATOMIC_RELAXED);
    while (old < v && !__atomic_compare_exchange_n(place, &old, v, false, __ATOMIC_RELAXED,
                                                   __ATOMIC_RELAXED)) {
    }
    return old;
}

template <class T> T atomicOr(T *place, emulation::same<T> v)
{
    emulation::may_yield();
    return __atomic_fetch_or(place, v, __ATOMIC_RELAXED);
}

template <class T> T atomicCAS(T *place, emulation::same<T> expected, emulation::same<T> v)
{
    emulation::may_yield();
    __atomic_compare_exchange_n(place, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

namespace emulation
{
inline uint16_t float_to_half(float v)
{
    const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
    if (std::isnan(v)) return 0x7fff;
    if (std::fabs(v) >= 65520.0f) return sign | 0x7c00;
    return static_cast<uint16_t>(sign | bsw_half_nearest(std::fabs(v)));
}
} // namespace emulation

inline float __double2float_rn(double v)
{
    return static_cast<float>(v);
}

inline int __double2int_rn(double v)
{
    return static_cast<int>(std::nearbyint(v));
}

inline double __int2double_rn(int v)
{
    return v;
}

#endif
