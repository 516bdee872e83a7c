// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "common/files/result_file.h"
#include "common/rows/vectors.h"
#include "coordinator/job/conversion.h"
#include "coordinator/job/sidecar.h"

// Keeps the queries of --rows, at the front.
static enum bsw_status cut_queries(const struct bsw_conversion *o, struct bsw_results *results,
                                   struct bsw_error *err)
{
    uint64_t first = o->rows.first, last = o->rows.last;
    if (last == UINT64_MAX) last = results->num_queries;
    if (first >= last || last > results->num_queries) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--rows %llu:%llu: %s has %llu queries",
                        (unsigned long long)first, (unsigned long long)last, o->in,
                        (unsigned long long)results->num_queries);
    }
    size_t skip = (size_t)(first * results->k), count = (size_t)((last - first) * results->k);
    memmove(results->ids, results->ids + skip, count * sizeof *results->ids);
    if (results->values)
        memmove(results->values, results->values + skip, count * sizeof *results->values);
    results->num_queries = last - first;
    return BSW_OK;
}

// Ids as int32, in place of the int64.
static enum bsw_status narrow_ids(const struct bsw_conversion *o, struct bsw_results *results,
                                  struct bsw_error *err)
{
    size_t count = (size_t)(results->num_queries * results->k);
    for (size_t i = 0; i < count; i++) {
        if (results->ids[i] > INT32_MAX) {
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu has id %lld, %s holds 32 bits",
                            o->in, (unsigned long long)(i / results->k), (long long)results->ids[i],
                            o->out);
        }
        int32_t id = (int32_t)results->ids[i];
        memcpy((char *)results->ids + i * sizeof id, &id, sizeof id);
    }
    return BSW_OK;
}

// FILE.json of what was cut out.
static enum bsw_status copy_facts(const struct bsw_conversion *o, struct bsw_error *err)
{
    int is_part = o->rows.first != 0 || o->rows.last != UINT64_MAX;
    return bsw_sidecar_copy(o->in, o->out, is_part, o->rows.first, o->force, err);
}

static enum bsw_status open_matrix(const struct bsw_conversion *o, const char *path,
                                   enum bsw_vector_type type, const struct bsw_results *results,
                                   const void *numbers, bsw_vector_writer **out,
                                   struct bsw_error *err)
{
    uint32_t k = results->k > UINT32_MAX ? UINT32_MAX : (uint32_t)results->k;
    BSW_TRY(bsw_vector_writer_create(path, type, k, results->num_queries, o->force, out, err));
    return bsw_vector_writer_put(*out, 0, (size_t)results->num_queries, numbers, err);
}

// Both files are whole before either has its name; the ids come last.
static enum bsw_status write_ids(const struct bsw_conversion *o, struct bsw_results *results,
                                 struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    bsw_vector_writer *ids = NULL, *values = NULL;
    int has_values = bsw_split_values_path(o->out, path) && results->values;
    BSW_TRY(narrow_ids(o, results, err));
    enum bsw_status status =
        open_matrix(o, o->out, BSW_VECTOR_INT32, results, results->ids, &ids, err);
    if (status == BSW_OK && has_values)
        status = open_matrix(o, path, BSW_VECTOR_FLOAT32, results, results->values, &values, err);
    if (status == BSW_OK) status = copy_facts(o, err);
    if (status == BSW_OK && has_values) status = bsw_vector_writer_finish(values, err);
    if (status == BSW_OK) status = bsw_vector_writer_finish(ids, err);
    bsw_vector_writer_destroy(&values);
    bsw_vector_writer_destroy(&ids);
    return status;
}

static enum bsw_status write_big_ann(const struct bsw_conversion *o,
                                     const struct bsw_results *results, struct bsw_error *err)
{
    bsw_result_writer *writer;
    int has_wide_ids = 0;
    if (!results->values) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s has ids without values, which big-ann's layout needs; .ivecs and .ibin "
                        "hold ids alone",
                        o->in);
    }
    for (uint64_t i = 0; i < results->num_queries * results->k; i++)
        has_wide_ids |= results->ids[i] > INT32_MAX;
    BSW_TRY(bsw_result_writer_create(o->out, results->num_queries, results->k, has_wide_ids,
                                     o->force, &writer, err));
    enum bsw_status status = bsw_result_writer_put(writer, 0, (size_t)results->num_queries,
                                                   results->ids, results->values, err);
    if (status == BSW_OK) status = copy_facts(o, err);
    if (status == BSW_OK) status = bsw_result_writer_finish(writer, err);
    bsw_result_writer_destroy(&writer);
    return status;
}

enum bsw_status bsw_convert_neighbours(const struct bsw_conversion *o, struct bsw_converted *done,
                                       struct bsw_error *err)
{
    struct bsw_results results;
    if (bsw_name_is_vectors(o->out) || strcmp(o->type, "auto") != 0) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s has neighbours, to be written to .ivecs, .ibin or big-ann's layout",
                        o->in);
    }
    BSW_TRY(bsw_results_read(o->in, &results, err));
    enum bsw_status status = cut_queries(o, &results, err);
    if (status == BSW_OK) {
        status =
            bsw_name_is_ids(o->out) ? write_ids(o, &results, err) : write_big_ann(o, &results, err);
    }
    *done = (struct bsw_converted){"neighbours", "ids", results.num_queries, results.k};
    bsw_results_deinit(&results);
    return status;
}
