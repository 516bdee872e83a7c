// SPDX-License-Identifier: Apache-2.0
// What a caller gets a family's functions by: the best of its tables up to a level.
#ifndef BITSWEEP_KERNELS_KERNEL_TABLE_H
#define BITSWEEP_KERNELS_KERNEL_TABLE_H

#include "common/base/cpu_level.h"

// A family's table of a level, as an argument of BSW_KERNEL_TABLE_GET; nothing where the level is
// of another architecture.
#define BSW_KERNEL_AVX2(family)    BSW_ON_X86([BSW_CPU_AVX2] = &bsw_##family##_avx2, )
#define BSW_KERNEL_AVXVNNI(family) BSW_ON_X86([BSW_CPU_AVXVNNI] = &bsw_##family##_avxvnni, )
#define BSW_KERNEL_AVX512(family)  BSW_ON_X86([BSW_CPU_AVX512] = &bsw_##family##_avx512, )
#define BSW_KERNEL_NEON(family)    BSW_ON_ARM([BSW_CPU_NEON] = &bsw_##family##_neon, )
#define BSW_KERNEL_I8MM(family)    BSW_ON_ARM([BSW_CPU_I8MM] = &bsw_##family##_i8mm, )

// Declares bsw_FAMILY_table_get, which gives the table for a level that this CPU has (a level that
// the family has no table for gives the next lower one: see its `level`), and the tables
// themselves, one a file; ask the function, which knows what is built in.
#define BSW_KERNEL_LEVELS(family)                                                          \
    const struct bsw_##family##_table *bsw_##family##_table_get(enum bsw_cpu_level level); \
    extern const struct bsw_##family##_table bsw_##family##_reference;                     \
    extern const struct bsw_##family##_table bsw_##family##_avx2;                          \
    extern const struct bsw_##family##_table bsw_##family##_avxvnni;                       \
    extern const struct bsw_##family##_table bsw_##family##_avx512;                        \
    extern const struct bsw_##family##_table bsw_##family##_neon;                          \
    extern const struct bsw_##family##_table bsw_##family##_i8mm

// Defines bsw_FAMILY_table_get of a family with these tables besides the reference:
// BSW_KERNEL_TABLE_GET(limits, BSW_KERNEL_AVX2(limits) BSW_KERNEL_AVX512(limits))
#define BSW_KERNEL_TABLE_GET(family, entries)                                             \
    const struct bsw_##family##_table *bsw_##family##_table_get(enum bsw_cpu_level level) \
    {                                                                                     \
        static const struct bsw_##family##_table *const tables[BSW_CPU_NUM_LEVELS] = {    \
            [BSW_CPU_REFERENCE] = &bsw_##family##_reference, entries};                    \
        int best = (int)level;                                                            \
        while (!tables[best]) best--;                                                     \
        return tables[best];                                                              \
    }

#endif
