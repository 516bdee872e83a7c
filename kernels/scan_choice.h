// Which scan family serves a batch, by measurement: from how many queries on the int8 units beat
// bit planes, for each CPU level. Measured with bench_matrix_scan at 128 dims, 2 and 3 bits, 6
// query bits.
#ifndef BITSWEEP_KERNELS_SCAN_CHOICE_H
#define BITSWEEP_KERNELS_SCAN_CHOICE_H

#include <stddef.h>

#include "common/cpu_level.h"

static const size_t bsw_matrix_from_queries[BSW_CPU_NUM_LEVELS] = {
    [BSW_CPU_REFERENCE] = 2,
    [BSW_CPU_AVX2] = 4,
    [BSW_CPU_AVX512] = 4,
};

#endif
