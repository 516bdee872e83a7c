#include "kernels/scan_tuning.h"

#include <stddef.h>

#include "kernels/scan_tuning_avx2.h"
#include "kernels/scan_tuning_avx512.h"
#include "kernels/scan_tuning_reference.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const struct {
    const struct bsw_scan_tuning *rows;
    size_t num;
} tables[BSW_CPU_NUM_LEVELS] = {
    [BSW_CPU_REFERENCE] = {bsw_scan_tuning_reference, LENGTH(bsw_scan_tuning_reference)},
    [BSW_CPU_AVX2] = {bsw_scan_tuning_avx2, LENGTH(bsw_scan_tuning_avx2)},
    [BSW_CPU_AVX512] = {bsw_scan_tuning_avx512, LENGTH(bsw_scan_tuning_avx512)},
};

// How far apart two positive numbers are, as a ratio >= 1.
static double ratio(double a, double b)
{
    return a > b ? a / b : b / a;
}

struct bsw_scan_tuning bsw_scan_tuning_of(enum bsw_cpu_level level,
                                          const struct bsw_code_layout *layout)
{
    double dims = layout->padded_dims, bits = bsw_layout_row_bytes(layout) * 8 / dims;
    const struct bsw_scan_tuning *best = &tables[level].rows[0];
    for (size_t i = 1; i < tables[level].num; i++) {
        const struct bsw_scan_tuning *row = &tables[level].rows[i];
        double by_bits = ratio(row->bits, bits), best_by_bits = ratio(best->bits, bits);
        if (by_bits < best_by_bits ||
            (by_bits == best_by_bits && ratio(row->dims, dims) < ratio(best->dims, dims)))
            best = row;
    }
    return *best;
}
