#include "kernels/merge/merge.h"

const struct bsw_merge_table *bsw_merge_table_get(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= BSW_CPU_AVX512) return &bsw_merge_avx512;
    if (level >= BSW_CPU_AVX2) return &bsw_merge_avx2;
#else
    (void)level;
#endif
    return &bsw_merge_reference;
}
