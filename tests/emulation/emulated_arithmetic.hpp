// Scalar intrinsics and atomics. Roundings are those of the host's IEEE arithmetic: compile with
// -ffp-contract=off.
#ifndef BITSWEEP_EMULATION_EMULATED_ARITHMETIC_HPP
#define BITSWEEP_EMULATION_EMULATED_ARITHMETIC_HPP

#include <cmath>

#include "emulated_thread.hpp"

inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}

inline int __popcll(unsigned long long v)
{
    return __builtin_popcountll(v);
}

inline int __ffs(int v)
{
    return __builtin_ffs(v);
}

inline int __clz(int v)
{
    return v ? __builtin_clz(static_cast<unsigned>(v)) : 32;
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    shift &= 31;
    return shift ? (high << shift) | (low >> (32 - shift)) : high;
}

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    shift &= 31;
    return shift ? (low >> shift) | (high << (32 - shift)) : low;
}

inline float __fmul_rn(float a, float b)
{
    return a * b;
}

// Within one unit in the last place of CUDA's, which is correctly rounded.
inline float __frsqrt_rn(float v)
{
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(v)));
}

inline float __fdiv_rn(float a, float b)
{
    return a / b;
}

inline float __fadd_rn(float a, float b)
{
    return a + b;
}

inline float __fmaf_rn(float a, float b, float c)
{
    return std::fma(a, b, c);
}

inline float __fsub_rn(float a, float b)
{
    return a - b;
}

inline float __fsqrt_rn(float v)
{
    return std::sqrt(v);
}

// v within the range of int.
inline int __float2int_rd(float v)
{
    return static_cast<int>(std::floor(v));
}

inline float __int2float_rn(int v)
{
    return static_cast<float>(v);
}

inline unsigned __float_as_uint(float v)
{
    unsigned bits;
    __builtin_memcpy(&bits, &v, sizeof bits);
    return bits;
}

inline float __uint_as_float(unsigned bits)
{
    float v;
    __builtin_memcpy(&v, &bits, sizeof v);
    return v;
}

inline float __int_as_float(int bits)
{
    return __uint_as_float(static_cast<unsigned>(bits));
}

inline int __float_as_int(float v)
{
    return static_cast<int>(__float_as_uint(v));
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

inline void __threadfence()
{
    emulation::may_yield();
}

inline void __threadfence_block()
{
    emulation::may_yield();
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

template <class T> T atomicSub(T *place, emulation::same<T> v)
{
    emulation::may_yield();
    return __atomic_fetch_sub(place, v, __ATOMIC_RELAXED);
}

template <class T> T atomicOr(T *place, emulation::same<T> v)
{
    emulation::may_yield();
    return __atomic_fetch_or(place, v, __ATOMIC_RELAXED);
}

template <class T> T atomicAnd(T *place, emulation::same<T> v)
{
    emulation::may_yield();
    return __atomic_fetch_and(place, v, __ATOMIC_RELAXED);
}

template <class T> T atomicExch(T *place, emulation::same<T> v)
{
    emulation::may_yield();
    return __atomic_exchange_n(place, v, __ATOMIC_RELAXED);
}

template <class T> T atomicCAS(T *place, emulation::same<T> expected, emulation::same<T> v)
{
    emulation::may_yield();
    __atomic_compare_exchange_n(place, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
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

// ---- float64 ----

inline double __dadd_rn(double a, double b)
{
    return a + b;
}

inline double __dsub_rn(double a, double b)
{
    return a - b;
}

inline double __dmul_rn(double a, double b)
{
    return a * b;
}

inline double __ddiv_rn(double a, double b)
{
    return a / b;
}

inline double __dsqrt_rn(double v)
{
    return std::sqrt(v);
}

inline double __fma_rn(double a, double b, double c)
{
    return std::fma(a, b, c);
}

inline long long __double_as_longlong(double v)
{
    long long bits;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
}
inline double __longlong_as_double(long long bits)
{
    double v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
}
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
