// SPDX-License-Identifier: Apache-2.0
// Numbers of tables of product codes on a device: kernels/table_scan/table_formats.h for device
// code, and those of some queries side by side in shared memory. Same bits.
#ifndef BITSWEEP_KERNELS_TABLE_NUMBERS_CUH
#define BITSWEEP_KERNELS_TABLE_NUMBERS_CUH

#include "kernels/cuda_switch.cuh"
#include "kernels/table_scan/table_formats.h"

namespace bsw
{

enum class number_kind { float32, float16, float8, signed_float8 };

template <number_kind KIND>
constexpr int number_bytes = KIND == number_kind::float32   ? 4
                             : KIND == number_kind::float16 ? 2
                                                            : 1;

// What distinguishes the types of one kind.
struct number_format {
    uint32_t shift; // of 8-bit types: 15 + E
    uint32_t first; // bits of the least number that has a cell of its own
    uint32_t base;  // what is added to a shifted byte
    uint32_t unit;  // 2^shift: a product and sum are one instruction
};

inline number_format format_of(enum bsw_table_type type, bool is_signed)
{
    const uint32_t exponent_bits = bsw_float8_exponent_bits(type);
    const uint32_t bias = (1u << (exponent_bits - 1)) - 1;
    return {15 + exponent_bits, 0x3f800000u - (bias << 23),
            is_signed ? bsw_float8_signed_base(exponent_bits) : bsw_float8_base(exponent_bits),
            1u << (15 + exponent_bits)};
}

// ---- powers of two ----

// bsw_table_exponent, of the bits of the largest number.
__device__ __forceinline__ int table_exponent(enum bsw_table_type type, uint32_t largest)
{
    if (type == BSW_TABLE_FLOAT32 || largest == 0) return 0;
    const int biased = static_cast<int>(largest >> 23);
    if (biased == 0) return BSW_TABLE_MOST_EXPONENT;
    int top = type == BSW_TABLE_FLOAT16 ? 15 : type == BSW_TABLE_E5M3 ? 16 : 9;
    if (type == BSW_TABLE_E4M4 && (largest & 0x7fffffu) >= 0x780000u) top--;
    const int found = top - (biased - 126);
    return found > BSW_TABLE_MOST_EXPONENT    ? BSW_TABLE_MOST_EXPONENT
           : found < -BSW_TABLE_MOST_EXPONENT ? -BSW_TABLE_MOST_EXPONENT
                                              : found;
}

// ---- one number ----

__device__ __forceinline__ uint32_t byte_of(const number_format &format, uint32_t bits)
{
    if (bits < format.first) return 0;
    const uint32_t byte = (bits - format.first) >> format.shift;
    return byte > 255 ? 255 : byte;
}

template <number_kind KIND>
__device__ __forceinline__ uint32_t encode_number(const number_format &format, float value)
{
    const uint32_t bits = __float_as_uint(value);
    if (KIND == number_kind::float32) return bits;
    if (KIND == number_kind::float16) return float_to_half(value);
    if (KIND == number_kind::float8) return byte_of(format, bits);
    return (byte_of(format, bits & 0x7fffffffu) & 0xfeu) | (value < 0.0f ? 1u : 0u);
}

template <number_kind KIND>
__device__ __forceinline__ float decode_number(const number_format &format, uint32_t number)
{
    if (KIND == number_kind::float32) return __uint_as_float(number);
    if (KIND == number_kind::float16) return half_to_float(static_cast<uint16_t>(number));
    if (KIND == number_kind::float8) return __uint_as_float(number * format.unit + format.base);
    return __uint_as_float(((number & 0xfeu) * format.unit + format.base) | number << 31);
}

// ---- those of some queries, side by side ----

template <int BYTES> struct entry_of;
template <> struct entry_of<1> {
    typedef uint8_t type;
};
template <> struct entry_of<2> {
    typedef uint16_t type;
};
template <> struct entry_of<4> {
    typedef uint32_t type;
};
template <> struct entry_of<8> {
    typedef uint2 type;
};
template <> struct entry_of<16> {
    typedef uint4 type;
};

__device__ __forceinline__ uint32_t word_of(uint32_t entry, int)
{
    return entry;
}
__device__ __forceinline__ uint32_t word_of(const uint2 &entry, int i)
{
    return i == 0 ? entry.x : entry.y;
}
__device__ __forceinline__ uint32_t word_of(const uint4 &entry, int i)
{
    return i == 0 ? entry.x : i == 1 ? entry.y : i == 2 ? entry.z : entry.w;
}

// Number i of an entry.
template <int BYTES, class ENTRY>
__device__ __forceinline__ uint32_t take_number(const ENTRY &entry, int i)
{
    const uint32_t word = word_of(entry, i * BYTES / 4);
    if (BYTES == 4) return word;
    if (BYTES == 1 && sizeof entry >= 4) return __byte_perm(word, 0, 0x4440 + i % 4);
    return word >> (i * BYTES % 4 * 8) & ((1u << (8 * BYTES % 32)) - 1);
}

template <class ENTRY> __device__ __forceinline__ ENTRY entry_from(const uint32_t (&words)[4])
{
    return static_cast<ENTRY>(words[0]);
}
template <> __device__ __forceinline__ uint2 entry_from<uint2>(const uint32_t (&words)[4])
{
    return make_uint2(words[0], words[1]);
}
template <> __device__ __forceinline__ uint4 entry_from<uint4>(const uint32_t (&words)[4])
{
    return make_uint4(words[0], words[1], words[2], words[3]);
}

template <int BYTES, int QUERIES>
__device__ __forceinline__ typename entry_of<BYTES * QUERIES>::type
make_entry(const uint32_t (&numbers)[QUERIES])
{
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < QUERIES; i++) words[i * BYTES / 4] |= numbers[i] << (i * BYTES % 4 * 8);
    return entry_from<typename entry_of<BYTES * QUERIES>::type>(words);
}

} // namespace bsw

#endif
