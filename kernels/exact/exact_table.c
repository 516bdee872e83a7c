#include "kernels/exact/exact.h"

const struct bsw_exact_table *bsw_exact_table_get(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= BSW_CPU_AVX512) return &bsw_exact_avx512;
    if (level >= BSW_CPU_AVX2) return &bsw_exact_avx2;
#else
    (void)level;
#endif
    return &bsw_exact_reference;
}
