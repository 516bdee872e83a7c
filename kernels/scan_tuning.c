#include "kernels/scan_tuning.h"

#include <stddef.h>

static const struct bsw_scan_tuning reference_rows[] = {
    {128, 2, 2, 32, 6, 2},
};
static const struct bsw_scan_tuning avx2_rows[] = {
    {128, 2, 4, 32, 6, 4},
};
static const struct bsw_scan_tuning avx512_rows[] = {
    {128, 2, 4, 32, 4, 4},
};

static const struct {
    const struct bsw_scan_tuning *rows;
    size_t num;
} tables[BSW_CPU_NUM_LEVELS] = {
    [BSW_CPU_REFERENCE] = {reference_rows, sizeof reference_rows / sizeof reference_rows[0]},
    [BSW_CPU_AVX2] = {avx2_rows, sizeof avx2_rows / sizeof avx2_rows[0]},
    [BSW_CPU_AVX512] = {avx512_rows, sizeof avx512_rows / sizeof avx512_rows[0]},
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
