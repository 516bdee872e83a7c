#include "kernels/refine/refine.h"

const struct bsw_refine_table *bsw_refine_table_get(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= BSW_CPU_AVX512) return &bsw_refine_avx512;
    if (level >= BSW_CPU_AVX2) return &bsw_refine_avx2;
#else
    (void)level;
#endif
    return &bsw_refine_reference;
}
