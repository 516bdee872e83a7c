// What a caller gets a family's functions by: the best of its tables up to a level.
#ifndef BITSWEEP_KERNELS_KERNEL_TABLE_H
#define BITSWEEP_KERNELS_KERNEL_TABLE_H

#include "common/base/cpu_level.h"

// Declares bsw_FAMILY_table_get, which gives the table for a level (a level not built in gives the
// next lower one: see its `level`), and the tables themselves, one a file; ask the function, which
// knows what is built in.
#define BSW_KERNEL_LEVELS(family)                                                          \
    const struct bsw_##family##_table *bsw_##family##_table_get(enum bsw_cpu_level level); \
    extern const struct bsw_##family##_table bsw_##family##_reference;                     \
    extern const struct bsw_##family##_table bsw_##family##_avx2;                          \
    extern const struct bsw_##family##_table bsw_##family##_avx512

#if defined(__x86_64__)
#define BSW_KERNEL_TABLES(family) \
    &bsw_##family##_reference, &bsw_##family##_avx2, &bsw_##family##_avx512
#else
#define BSW_KERNEL_TABLES(family) \
    &bsw_##family##_reference, &bsw_##family##_reference, &bsw_##family##_reference
#endif

// Defines bsw_FAMILY_table_get.
#define BSW_KERNEL_TABLE_GET(family)                                                      \
    const struct bsw_##family##_table *bsw_##family##_table_get(enum bsw_cpu_level level) \
    {                                                                                     \
        static const struct bsw_##family##_table *const tables[BSW_CPU_NUM_LEVELS] = {    \
            BSW_KERNEL_TABLES(family)};                                                   \
        return tables[level];                                                             \
    }

#endif
