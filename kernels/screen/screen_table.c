#include "kernels/screen/screen.h"

const struct bsw_screen_table *bsw_screen_table_get(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= BSW_CPU_AVX512) return &bsw_screen_avx512;
    if (level >= BSW_CPU_AVX2) return &bsw_screen_avx2;
#else
    (void)level;
#endif
    return &bsw_screen_reference;
}
