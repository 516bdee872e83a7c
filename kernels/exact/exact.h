// exact: the refine values of a whole tile of rows against a tile of queries, for neighbours of a
// sample held in memory. (Ground truth streams: kernels/screen, kernels/matrix_scan.)
//
// The same numbers as kernels/refine, bit for bit, with rows and queries converted once and kept in
// registers across several pairs. A pair costs dims fused multiply-adds in float64 plus a tree.
#ifndef BITSWEEP_KERNELS_EXACT_H
#define BITSWEEP_KERNELS_EXACT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/codes/metric.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bsw_exact_table {
    const char *level;

    // keys[q * num_rows + r] = bsw_metric_key(metric, value of row r and query q), the value as
    // kernels/refine defines it. rows [num_rows][dims] and queries [num_queries][dims] in float64
    // (from refine's to_double), dense, 64-byte aligned base. row_norms and query_norms: squared
    // norms in lanes and tree (cosine alone; may be NULL otherwise).
    void (*keys_double)(enum bsw_metric metric, const double *rows, size_t num_rows,
                        const double *row_norms, const double *queries, size_t num_queries,
                        const double *query_norms, size_t dims, double *keys);
};

// The table for a level; a level not built in gives the next lower one (see its `level`).
const struct bsw_exact_table *bsw_exact_table_get(enum bsw_cpu_level level);

// The levels themselves, one a file; ask bsw_exact_table_get, which knows what is built in.
extern const struct bsw_exact_table bsw_exact_reference;
#if defined(__x86_64__)
extern const struct bsw_exact_table bsw_exact_avx2;
extern const struct bsw_exact_table bsw_exact_avx512;
#endif

#ifdef __cplusplus
}
#endif
#endif
