// SPDX-License-Identifier: Apache-2.0
// Plain C on short vectors: what a compiler makes of it for any CPU.
#include "kernels/limits/limits_loops.h"

typedef uint16_t words16 __attribute__((vector_size(16)));
typedef uint32_t words32 __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(16)));

#define START_INT(i) \
    {                \
        0            \
    }
#define START_FLOAT(i) \
    {                  \
        i, i, i, i     \
    }
#define START_DOUBLE(i) \
    {                   \
        i, i            \
    }
#define STEP_INT(s, a, b)  ((s) + (a) * (b)) // in 16 bits, which wrap
#define STEP_HALF(s, a, b) ((s) * (a) + (b))

static inline words32 step_popcount(words32 s, words32 a, words32 b)
{
    (void)b;
    words32 x = a - (a >> 1 & 0x55555555u);
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0fu;
    x += x >> 8;
    return s + ((x + (x >> 16)) & 63u);
}

LIMITS_PEAK(int8, words16, START_INT, STEP_INT, LIMITS_U - (words16){0},
            (uint16_t)LIMITS_Q - (words16){0}, uint16_t, (uint16_t)(steps *LIMITS_U *LIMITS_Q), 8)
LIMITS_PEAK(float32, floats, START_FLOAT, STEP_HALF, 0.5f - (floats){0}, 0.5f - (floats){0}, float,
            1.0f, 4)
LIMITS_PEAK(float64, doubles, START_DOUBLE, STEP_HALF, 0.5 - (doubles){0}, 0.5 - (doubles){0},
            double, 1.0, 2)
LIMITS_PEAK(popcount, words32, START_INT, step_popcount, LIMITS_WORD - (words32){0}, {0}, uint32_t,
            (uint32_t)(steps *LIMITS_BITS), 4)

LIMITS_TABLE(bsw_limits_reference, "reference")

BSW_KERNEL_TABLE_GET(limits,
                     BSW_KERNEL_AVX2(limits) BSW_KERNEL_AVX512(limits) BSW_KERNEL_NEON(limits))
