#include "kernels/encode/encode.h"

const struct bsw_encode_table *bsw_encode_table_get(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= BSW_CPU_AVX512) return &bsw_encode_avx512;
    if (level >= BSW_CPU_AVX2) return &bsw_encode_avx2;
#else
    (void)level;
#endif
    return &bsw_encode_reference;
}
