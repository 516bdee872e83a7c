#include "coordinator/exact_pairs.h"

#include <math.h>

#include "common/memory.h"

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
