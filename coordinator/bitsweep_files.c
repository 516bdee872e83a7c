// SPDX-License-Identifier: Apache-2.0
// bitsweep.h: files of vectors, of results and of ground truth.
#include <math.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/files/result_file.h"
#include "common/rows/vectors.h"
#include "coordinator/bitsweep_call.h"
#include "coordinator/job/conversion.h"

// ---- vectors ----

int bitsweep_shape(const char *file, struct bitsweep_rows *rows, struct bitsweep_error *error)
{
    struct bsw_library_call call;
    bsw_vectors *vectors = NULL;
    enum bsw_status status = bsw_library_call_begin(&call, &(struct bsw_library_call_needs){0});
    if (status == BSW_OK) status = bsw_vectors_open(file, BSW_ALL_ROWS, &vectors, &call.err);
    if (status == BSW_OK)
        *rows = (struct bitsweep_rows){.num_rows = bsw_vectors_num_rows(vectors),
                                       .dims = bsw_vectors_dims(vectors),
                                       .type = (int32_t)bsw_vectors_type(vectors),
                                       .file = file};
    bsw_vectors_close(&vectors);
    return bsw_library_call_end(&call, status, error);
}

static enum bsw_status read_rows(const bsw_vectors *vectors, uint64_t first, uint64_t num,
                                 void *out, struct bsw_error *err)
{
    uint64_t rows = bsw_vectors_num_rows(vectors);
    if (first <= rows && num <= rows - first)
        return bsw_vectors_read(vectors, first, (size_t)num, out, err);
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: %llu rows from %llu on: it has %llu",
                    bsw_vectors_name(vectors), (unsigned long long)num, (unsigned long long)first,
                    (unsigned long long)rows);
}

int bitsweep_read(const char *file, uint64_t first_row, uint64_t num_rows, void *out,
                  struct bitsweep_error *error)
{
    struct bsw_library_call call;
    bsw_vectors *vectors = NULL;
    enum bsw_status status = bsw_library_call_begin(&call, &(struct bsw_library_call_needs){0});
    if (status == BSW_OK) status = bsw_vectors_open(file, BSW_ALL_ROWS, &vectors, &call.err);
    if (status == BSW_OK) status = read_rows(vectors, first_row, num_rows, out, &call.err);
    bsw_vectors_close(&vectors);
    return bsw_library_call_end(&call, status, error);
}

int bitsweep_write(const char *file, const struct bitsweep_rows *rows, int force,
                   struct bitsweep_error *error)
{
    struct bsw_library_call call;
    struct bsw_library_rows lent = {.name = NULL};
    struct bsw_converted done;
    enum bsw_status status = bsw_library_call_begin(&call, &(struct bsw_library_call_needs){0});
    if (status == BSW_OK)
        status = bsw_library_lend(rows, BSW_MEMORY_PREFIX "rows", &lent, &call.err);
    const struct bsw_conversion conversion = {
        .in = lent.name, .out = file, .type = "auto", .rows = BSW_ALL_ROWS, .force = force};
    if (status == BSW_OK) status = bsw_convert_vectors(&conversion, &done, &call.err);
    bsw_library_take_back(&lent);
    return bsw_library_call_end(&call, status, error);
}

// ---- neighbours ----

int bitsweep_neighbours_shape(const char *file, uint64_t *num_queries, uint64_t *k, int *has_values,
                              struct bitsweep_error *error)
{
    struct bsw_library_call call;
    struct bsw_results results = {0};
    enum bsw_status status = bsw_library_call_begin(&call, &(struct bsw_library_call_needs){0});
    if (status == BSW_OK) status = bsw_results_read(file, &results, &call.err);
    if (status == BSW_OK) {
        *num_queries = results.num_queries;
        *k = results.k;
        *has_values = results.values != NULL;
    }
    bsw_results_deinit(&results);
    return bsw_library_call_end(&call, status, error);
}

int bitsweep_read_neighbours(const char *file, float *values, int64_t *ids,
                             struct bitsweep_error *error)
{
    struct bsw_library_call call;
    struct bsw_results results = {0};
    enum bsw_status status = bsw_library_call_begin(&call, &(struct bsw_library_call_needs){0});
    if (status == BSW_OK) status = bsw_results_read(file, &results, &call.err);
    size_t count = status == BSW_OK ? (size_t)(results.num_queries * results.k) : 0;
    if (ids && count > 0) memcpy(ids, results.ids, count * sizeof *ids);
    for (size_t i = 0; values && i < count; i++)
        values[i] = results.values ? results.values[i] : NAN;
    bsw_results_deinit(&results);
    return bsw_library_call_end(&call, status, error);
}

// Ids that int32 holds, which is what .ivecs and .ibin have.
static enum bsw_status write_ids(const char *file, uint64_t num_queries, uint64_t k,
                                 const int64_t *ids, int force, struct bsw_error *err)
{
    bsw_vector_writer *writer = NULL;
    int32_t *row = NULL;
    if (k > BSW_MAX_DIMS)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: %llu ids a query", file,
                        (unsigned long long)k);
    enum bsw_status status = bsw_vector_writer_create(file, BSW_VECTOR_INT32, (uint32_t)k,
                                                      num_queries, force, &writer, err);
    if (status == BSW_OK) status = bsw_allocate(&row, (size_t)k, sizeof *row, "ids", err);
    for (uint64_t q = 0; q < num_queries && status == BSW_OK; q++) {
        for (uint64_t i = 0; i < k; i++) {
            int64_t id = ids[q * k + i];
            if (id < -1 || id > INT32_MAX)
                status = bsw_fail(err, BSW_ERROR_USAGE, "query %llu has id %lld, %s holds 32 bits",
                                  (unsigned long long)q, (long long)id, file);
            row[i] = (int32_t)id;
        }
        if (status == BSW_OK) status = bsw_vector_writer_put(writer, q, 1, row, err);
    }
    if (status == BSW_OK) status = bsw_vector_writer_finish(writer, err);
    bsw_vector_writer_destroy(&writer);
    bsw_free(&row);
    return status;
}

static enum bsw_status write_results(const char *file, uint64_t num_queries, uint64_t k,
                                     const float *values, const int64_t *ids, int force,
                                     struct bsw_error *err)
{
    bsw_result_writer *writer = NULL;
    int has_wide_ids = 0;
    if (!values)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: ids without values fit .ivecs and .ibin alone",
                        file);
    for (uint64_t i = 0; i < num_queries * k; i++) has_wide_ids |= ids[i] > INT32_MAX;
    enum bsw_status status =
        bsw_result_writer_create(file, num_queries, k, has_wide_ids, force, &writer, err);
    if (status == BSW_OK)
        status = bsw_result_writer_put(writer, 0, (size_t)num_queries, ids, values, err);
    if (status == BSW_OK) status = bsw_result_writer_finish(writer, err);
    bsw_result_writer_destroy(&writer);
    return status;
}

static enum bsw_status check_neighbours(const char *file, uint64_t num_queries, uint64_t k,
                                        const int64_t *ids, struct bsw_error *err)
{
    if (!ids || num_queries < 1 || k < 1)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: no ids are given", file);
    if (!bsw_name_is_vectors(file)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: vectors; neighbours go to .ivecs, .ibin or big-ann's layout", file);
}

int bitsweep_write_neighbours(const char *file, uint64_t num_queries, uint64_t k,
                              const float *values, const int64_t *ids, int force,
                              struct bitsweep_error *error)
{
    struct bsw_library_call call;
    enum bsw_status status = bsw_library_call_begin(&call, &(struct bsw_library_call_needs){0});
    if (status == BSW_OK) status = check_neighbours(file, num_queries, k, ids, &call.err);
    if (status == BSW_OK && bsw_name_is_ids(file))
        status = write_ids(file, num_queries, k, ids, force, &call.err);
    else if (status == BSW_OK)
        status = write_results(file, num_queries, k, values, ids, force, &call.err);
    return bsw_library_call_end(&call, status, error);
}
