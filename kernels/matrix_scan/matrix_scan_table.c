#include "kernels/matrix_scan/matrix_scan.h"

const struct bsw_matrix_scan_table *bsw_matrix_scan_table_get(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= BSW_CPU_AVX512) return &bsw_matrix_scan_avx512;
    if (level >= BSW_CPU_AVX2) return &bsw_matrix_scan_avx2;
#else
    (void)level;
#endif
    return &bsw_matrix_scan_reference;
}
