#include "kernels/select/select.h"

const struct bsw_select_table *bsw_select_table_get(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= BSW_CPU_AVX512) return &bsw_select_avx512;
    if (level >= BSW_CPU_AVX2) return &bsw_select_avx2;
#else
    (void)level;
#endif
    return &bsw_select_reference;
}
