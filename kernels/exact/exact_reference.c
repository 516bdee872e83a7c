// The oracle: exact.h's definitions pair by pair.
#include <math.h>

#include "kernels/exact/exact.h"
#include "kernels/kernel_sums.h"
#include "kernels/kernel_table.h"
#include "kernels/refine/refine_value.h"

static double pair_key(enum bsw_metric metric, double sum, const double *row_norms, size_t r,
                       const double *query_norms, size_t q)
{
    int cosine = metric == BSW_METRIC_COSINE;
    double row_norm = cosine ? row_norms[r] : 0.0, query_norm = cosine ? query_norms[q] : 0.0;
    return bsw_metric_key(metric, bsw_refine_value(metric, sum, row_norm, query_norm));
}

static double sum_double(enum bsw_metric metric, const double *row, const double *query,
                         size_t dims)
{
    double s[BSW_SUM_LANES] = {0};
    for (size_t i = 0; i < dims; i++) {
        size_t lane = i % BSW_SUM_LANES;
        double difference = row[i] - query[i];
        s[lane] = metric == BSW_METRIC_L2 ? fma(difference, difference, s[lane])
                                          : fma(row[i], query[i], s[lane]);
    }
    return bsw_tree_sum_double(s);
}

static void reference_keys_double(enum bsw_metric metric, const double *rows, size_t num_rows,
                                  const double *row_norms, const double *queries,
                                  size_t num_queries, const double *query_norms, size_t dims,
                                  double *keys)
{
    for (size_t q = 0; q < num_queries; q++) {
        for (size_t r = 0; r < num_rows; r++) {
            double sum = sum_double(metric, rows + r * dims, queries + q * dims, dims);
            keys[q * num_rows + r] = pair_key(metric, sum, row_norms, r, query_norms, q);
        }
    }
}

const struct bsw_exact_table bsw_exact_reference = {
    .level = "reference",
    .keys_double = reference_keys_double,
};

BSW_KERNEL_TABLE_GET(exact)
