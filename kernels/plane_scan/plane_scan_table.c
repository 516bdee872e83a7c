#include "kernels/plane_scan/plane_scan.h"

const struct bsw_plane_scan_table *bsw_plane_scan_table_get(enum bsw_cpu_level level)
{
#if defined(__x86_64__)
    if (level >= BSW_CPU_AVX512) return &bsw_plane_scan_avx512;
    if (level >= BSW_CPU_AVX2) return &bsw_plane_scan_avx2;
#else
    (void)level;
#endif
    return &bsw_plane_scan_reference;
}
