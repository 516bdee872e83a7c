// SPDX-License-Identifier: Apache-2.0
// Numbers that tables of product codes may have: float32, float16, and two floats of 8 bits after
// Ootomo and Naruse (Custom 8-bit floating point value format for reducing shared memory bank
// conflict in approximate nearest neighbor search).
//
// With E bits of exponent, V = 8 - E and bias = 2^(E-1) - 1 (e5m3: 15, e4m4: 7) a byte u stands
// for the middle of a cell of positive numbers; there is no 0, no NaN, no infinity, no subnormal:
//   encode(v) = 0                            v < 2^-bias
//             = 255                          v >= 2^(bias + 1) (2 - 2^-V)
//             = (bits(v) + (bias << 23) - 0x3f800000) >> (15 + E)   else: truncated
//   decode(u) = the float of bits (0x3f800000 | 0x00400000 >> V) - (bias << 23) + (u << (15 + E))
// so that encode(decode(u)) = u. Cells reach from 2^-15 to 131,072 (e5m3) and 2^-7 to 512 (e4m4);
// within them the relative error is at most 1/16 and 1/32.
// Signed tables keep |v| without its last bit, in whose place the sign stands; decode gives the
// middle of the wider cell, and errors are twice as large.
//
// Tables are scaled by a power of two so that their largest number lies in the highest cells
// (bsw_table_exponent), which is exact and undone in the key: ranges of 8 bits then begin at the
// table's own largest number. That is ours, not the paper's.
#ifndef BITSWEEP_KERNELS_TABLE_FORMATS_H
#define BITSWEEP_KERNELS_TABLE_FORMATS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/c_linkage.h"
#include "common/codes/half.h"

BSW_C_BEGIN

enum bsw_table_type {
    BSW_TABLE_FLOAT32,
    BSW_TABLE_FLOAT16,
    BSW_TABLE_E5M3,
    BSW_TABLE_E4M4,
    BSW_NUM_TABLE_TYPES
};
#define BSW_TABLE_NAMES "float32|float16|e5m3|e4m4"
// A type, or what is best: choices of an option.
enum bsw_table_choice {
    BSW_TABLE_CHOICE_AUTO,
    BSW_TABLE_CHOICE_FLOAT32,
    BSW_TABLE_CHOICE_FLOAT16,
    BSW_TABLE_CHOICE_E5M3,
    BSW_TABLE_CHOICE_E4M4
};
#define BSW_TABLE_CHOICES "auto|" BSW_TABLE_NAMES
static inline enum bsw_table_type bsw_table_chosen(enum bsw_table_choice choice)
{
    return choice == BSW_TABLE_CHOICE_AUTO ? BSW_TABLE_FLOAT32
                                           : (enum bsw_table_type)((int)choice - 1);
}
const char *bsw_table_name(enum bsw_table_type type);

static inline size_t bsw_table_number_bytes(enum bsw_table_type type)
{
    return type == BSW_TABLE_FLOAT32 ? 4 : type == BSW_TABLE_FLOAT16 ? 2 : 1;
}

// E of the 8-bit types.
static inline uint32_t bsw_float8_exponent_bits(enum bsw_table_type type)
{
    return type == BSW_TABLE_E5M3 ? 5 : 4;
}

// What is added to the shifted byte, of numbers without sign.
static inline uint32_t bsw_float8_base(uint32_t exponent_bits)
{
    uint32_t bias = (1u << (exponent_bits - 1)) - 1;
    return (0x3f800000u | 0x00400000u >> (8 - exponent_bits)) - (bias << 23);
}

// The same of signed ones: the middle of two cells.
static inline uint32_t bsw_float8_signed_base(uint32_t exponent_bits)
{
    uint32_t bias = (1u << (exponent_bits - 1)) - 1;
    return (0x3f800000u | 0x00800000u >> (8 - exponent_bits)) - (bias << 23);
}

// v >= 0, no NaN.
static inline uint8_t bsw_float8_encode(uint32_t exponent_bits, float v)
{
    uint32_t bias = (1u << (exponent_bits - 1)) - 1, bits;
    memcpy(&bits, &v, sizeof bits);
    uint32_t first = 0x3f800000u - (bias << 23); // bits of 2^-bias; of positive floats in order
    if (bits < first) return 0;
    uint32_t u = (bits - first) >> (15 + exponent_bits);
    return (uint8_t)(u > 255 ? 255 : u);
}

static inline float bsw_float8_decode(uint32_t exponent_bits, uint8_t u)
{
    uint32_t bits = bsw_float8_base(exponent_bits) + ((uint32_t)u << (15 + exponent_bits));
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline uint8_t bsw_float8_encode_signed(uint32_t exponent_bits, float v)
{
    return (uint8_t)((bsw_float8_encode(exponent_bits, fabsf(v)) & 0xfeu) | (v < 0));
}

static inline float bsw_float8_decode_signed(uint32_t exponent_bits, uint8_t u)
{
    uint32_t bits =
        bsw_float8_signed_base(exponent_bits) + ((uint32_t)(u & 0xfeu) << (15 + exponent_bits));
    float v;
    memcpy(&v, &bits, sizeof v);
    return u & 1 ? -v : v;
}

// Tables are multiplied by 2^this before they are converted. largest: of |numbers|, finite. Then it
// is within [2^14, 2^15) for float16, [2^15, 2^16) for e5m3, [248, 496) for e4m4; where it is so
// small or large that a float32 could not undo it, less or more.
#define BSW_TABLE_MOST_EXPONENT 120
static inline int bsw_table_exponent(enum bsw_table_type type, float largest)
{
    int exponent;
    if (type == BSW_TABLE_FLOAT32 || largest == 0.0f) return 0;
    float fraction = frexpf(largest, &exponent);
    int top = type == BSW_TABLE_FLOAT16 ? 15 : type == BSW_TABLE_E5M3 ? 16 : 9;
    if (type == BSW_TABLE_E4M4 && fraction >= 496.0f / 512.0f) top--;
    int found = top - exponent;
    return found > BSW_TABLE_MOST_EXPONENT    ? BSW_TABLE_MOST_EXPONENT
           : found < -BSW_TABLE_MOST_EXPONENT ? -BSW_TABLE_MOST_EXPONENT
                                              : found;
}

static inline float bsw_table_power(int exponent)
{
    return ldexpf(1.0f, exponent);
}

BSW_C_END
#endif
