#include "kernels/scan_tuning.h"

#include <stddef.h>

#include "kernels/scan_tuning_avx2.h"
#include "kernels/scan_tuning_avx512.h"
#include "kernels/scan_tuning_reference.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define TABLE(level)                                                                              \
    {                                                                                             \
        bsw_scan_tuning_##level, LENGTH(bsw_scan_tuning_##level), bsw_scan_tuning_##level##_bits, \
            LENGTH(bsw_scan_tuning_##level##_bits)                                                \
    }

static const struct {
    const struct bsw_scan_tuning_row *rows;
    size_t num_rows;
    const uint32_t *bits;
    size_t num_bits;
} tables[BSW_CPU_NUM_LEVELS] = {
    [BSW_CPU_REFERENCE] = TABLE(reference), [BSW_CPU_AVX2] = TABLE(avx2),
    [BSW_CPU_AVX512] = TABLE(avx512),
    [BSW_CPU_NEON] = TABLE(avx2), // not measured on Arm yet: avx2 is the nearest
    [BSW_CPU_I8MM] = TABLE(avx2),
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
    const struct bsw_scan_tuning_row *rows = tables[level].rows, *row = rows;
    const uint32_t *numbers = tables[level].bits;
    size_t column = 0;
    for (size_t i = 1; i < tables[level].num_bits; i++)
        if (ratio(numbers[i], bits) < ratio(numbers[column], bits)) column = i;
    for (size_t i = 1; i < tables[level].num_rows; i++)
        if (ratio(rows[i].dims, dims) < ratio(row->dims, dims)) row = &rows[i];
    return (struct bsw_scan_tuning){.dims = row->dims,
                                    .bits = numbers[column],
                                    .matrix_from_queries = row->matrix_from_queries[column],
                                    .tile_kib = row->tile_kib,
                                    .stage_overhead = row->stage_overhead,
                                    .finish_factor = row->finish_factor};
}
