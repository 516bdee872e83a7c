#include "kernels/limits/limits.h"

const struct bsw_limits_table *bsw_limits_table_get(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= BSW_CPU_AVX512) return &bsw_limits_avx512;
    if (level >= BSW_CPU_AVX2) return &bsw_limits_avx2;
#else
    (void)level;
#endif
    return &bsw_limits_reference;
}
