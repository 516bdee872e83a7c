// SPDX-License-Identifier: Apache-2.0
#include "coordinator/truth/exact_pairs.h"

#include <math.h>

#include "common/base/memory.h"

static enum bsw_status open_files(struct bsw_exact_pairs *pairs, const char *base,
                                  const char *queries, struct bsw_row_range query_rows,
                                  struct bsw_error *err)
{
    BSW_TRY(bsw_vectors_open(base, BSW_ALL_ROWS, &pairs->base, err));
    BSW_TRY(bsw_queries_open(queries, query_rows, &pairs->queries, err));
    if (bsw_vectors_dims(pairs->base) != bsw_vectors_dims(pairs->queries)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, %s has %u", queries,
                        bsw_vectors_dims(pairs->queries), base, bsw_vectors_dims(pairs->base));
    }
    return BSW_OK;
}

enum bsw_status bsw_exact_pairs_open(struct bsw_exact_pairs *pairs, const char *base,
                                     const char *queries, struct bsw_row_range query_rows,
                                     enum bsw_metric metric, enum bsw_cpu_level level,
                                     struct bsw_error *err)
{
    *pairs = (struct bsw_exact_pairs){.metric = metric, .refine = bsw_refine_table_get(level)};
    BSW_TRY(open_files(pairs, base, queries, query_rows, err));
    size_t dims = bsw_vectors_dims(pairs->base);
    BSW_TRY(bsw_allocate(&pairs->raw, dims, sizeof(float), "row", err)); // the widest numbers
    return bsw_allocate(&pairs->query, dims, sizeof(double), "query", err);
}

void bsw_exact_pairs_close(struct bsw_exact_pairs *pairs)
{
    bsw_free(&pairs->query);
    bsw_free(&pairs->raw);
    bsw_vectors_close(&pairs->queries);
    bsw_vectors_close(&pairs->base);
}

enum bsw_status bsw_exact_pairs_take_query(struct bsw_exact_pairs *pairs, uint64_t query,
                                           struct bsw_error *err)
{
    size_t dims = bsw_vectors_dims(pairs->queries);
    BSW_TRY(bsw_vectors_read(pairs->queries, bsw_vectors_first_row(pairs->queries) + query, 1,
                             pairs->raw, err));
    pairs->refine->to_double(bsw_vectors_type(pairs->queries), pairs->raw, dims, pairs->query);
    pairs->query_norm = pairs->refine->squared_norm(pairs->query, dims);
    return BSW_OK;
}

enum bsw_status bsw_exact_pairs_values(struct bsw_exact_pairs *pairs, const int64_t *ids,
                                       size_t count, double *values, struct bsw_error *err)
{
    size_t dims = bsw_vectors_dims(pairs->base);
    for (size_t i = 0; i < count; i++) {
        values[i] = NAN;
        if (ids[i] < 0) continue;
        BSW_TRY(bsw_vectors_read(pairs->base, (uint64_t)ids[i], 1, pairs->raw, err));
        values[i] = pairs->refine->value(pairs->metric, bsw_vectors_type(pairs->base), pairs->raw,
                                         pairs->query, pairs->query_norm, dims);
    }
    return BSW_OK;
}

enum bsw_status bsw_exact_pairs_judge(struct bsw_exact_pairs *pairs, uint64_t query,
                                      const struct bsw_recall *recall, double *values,
                                      struct bsw_recall_query *out, struct bsw_error *err)
{
    out->values = values;
    BSW_TRY(bsw_exact_pairs_take_query(pairs, query, err));
    BSW_TRY(bsw_exact_pairs_values(pairs, out->ids, recall->width, values, err));
    BSW_TRY(bsw_exact_pairs_values(pairs, out->true_ids, 1, &out->first_value, err));
    return bsw_exact_pairs_values(pairs, out->true_ids + recall->k - 1, 1, &out->last_value, err);
}

enum bsw_status bsw_exact_pairs_check(const struct bsw_exact_pairs *pairs, const char *file,
                                      const struct bsw_results *results, struct bsw_error *err)
{
    uint64_t num_rows = bsw_vectors_source_rows(pairs->base);
    for (size_t i = 0; i < (size_t)(results->num_queries * results->k); i++) {
        if (results->ids[i] < 0 || (uint64_t)results->ids[i] < num_rows) continue;
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu has id %lld, %s has %llu rows",
                        file, (unsigned long long)(i / results->k), (long long)results->ids[i],
                        bsw_vectors_name(pairs->base), (unsigned long long)num_rows);
    }
    return BSW_OK;
}
