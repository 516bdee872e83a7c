// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/calibrate.h"

#include <stdio.h>

#include "common/base/memory.h"
#include "common/job/stop_signal.h"
#include "common/rows/vectors.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/text_model.h"
#include "kernels/encode/prepare_rows.h"
#include "shard/codecs/shard_encode.h"

// ---- numbers that would stop the table once the index is made ----

// A file of queries, read in blocks.
struct query_check {
    const bsw_vectors *queries;
    const struct bsw_encode_table *table;
    enum bsw_metric metric;
    unsigned char *numbers; // of a block
    float *floats;
};

enum { BLOCK_QUERIES = 128 };

static enum bsw_status check_blocks(const struct query_check *check, struct bsw_error *err)
{
    uint64_t first = bsw_vectors_first_row(check->queries),
             last = first + bsw_vectors_num_rows(check->queries);
    double norms[BLOCK_QUERIES];
    float factors[BLOCK_QUERIES];
    enum bsw_row_fault faults[BLOCK_QUERIES];
    for (uint64_t row = first; row < last; row += BLOCK_QUERIES) {
        size_t count = last - row < BLOCK_QUERIES ? (size_t)(last - row) : BLOCK_QUERIES;
        BSW_TRY(bsw_vectors_read(check->queries, row, count, check->numbers, err));
        bsw_prepare_rows(check->table, check->metric, bsw_vectors_type(check->queries),
                         check->numbers, count, bsw_vectors_dims(check->queries), check->floats,
                         norms, factors, faults);
        for (size_t i = 0; i < count; i++) {
            if (faults[i] != BSW_ROW_GOOD)
                return bsw_fail_bad_row(check->queries, row + i, faults[i], err);
        }
    }
    return BSW_OK;
}

static enum bsw_status check_numbers(const struct bsw_encode_settings *settings,
                                     const bsw_vectors *rows, const bsw_vectors *queries,
                                     struct bsw_error *err)
{
    struct query_check check = {.queries = queries, .table = bsw_encode_table_get(settings->level)};
    const char *metric =
        settings->metric ? settings->metric : bsw_codec_only_metric(settings->codec);
    BSW_TRY(bsw_metric_choose(metric, rows, NULL, &check.metric, err));
    enum bsw_status status =
        bsw_allocate(&check.numbers, BLOCK_QUERIES, bsw_vectors_row_bytes(queries), "queries", err);
    if (status == BSW_OK)
        status = bsw_allocate(&check.floats, BLOCK_QUERIES,
                              bsw_vectors_dims(queries) * sizeof *check.floats, "queries", err);
    if (status == BSW_OK) status = check_blocks(&check, err);
    bsw_free(&check.numbers);
    bsw_free(&check.floats);
    return status;
}

// reads: whether this rank reads the queries.
static enum bsw_status check_queries(const struct bsw_encode_settings *settings, const char *source,
                                     const bsw_vectors *rows, int reads, struct bsw_error *err)
{
    bsw_vectors *queries;
    BSW_TRY(bsw_queries_open(source, BSW_ALL_ROWS, &queries, err));
    enum bsw_status status = BSW_OK;
    if (bsw_vectors_dims(queries) != bsw_vectors_dims(rows))
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: queries of %u dims, but %s has %u", source,
                          bsw_vectors_dims(queries), settings->base, bsw_vectors_dims(rows));
    if (status == BSW_OK && reads) status = check_numbers(settings, rows, queries, err);
    bsw_vectors_close(&queries);
    return status;
}

// ---- both ----

// rows: those of base.
static enum bsw_status check(const struct bsw_encode_settings *settings,
                             const struct bsw_calibrate_settings *table, const bsw_vectors *rows,
                             int rank, struct bsw_error *err)
{
    uint64_t num_rows = bsw_vectors_num_rows(rows);
    if (table->queries) return check_queries(settings, table->queries, rows, rank == 0, err);
    if (table->num_rows <= num_rows) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--calibrate %llu: %s has %llu rows only",
                    (unsigned long long)table->num_rows, settings->base,
                    (unsigned long long)num_rows);
}

// What the table will be made of, as text, if that is possible. Without a base encode refuses.
static enum bsw_status settle(const struct bsw_encode_settings *settings,
                              const struct bsw_calibrate_settings *table, int rank,
                              char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    int has_range = settings->rows.first > 0 || settings->rows.last > 0;
    uint64_t num_rows = table->num_rows;
    bsw_vectors *rows;
    if (settings->base) {
        BSW_TRY(bsw_vectors_open(settings->base, has_range ? settings->rows : BSW_ALL_ROWS, &rows,
                                 err));
        enum bsw_status status = check(settings, table, rows, rank, err);
        if (num_rows == 0) num_rows = bsw_calibrate_usual_rows(bsw_vectors_num_rows(rows));
        bsw_vectors_close(&rows);
        BSW_TRY(status);
    }
    if (table->queries)
        snprintf(out, BSW_PATH_BYTES, "queries %s", table->queries);
    else
        snprintf(out, BSW_PATH_BYTES, "%llu rows", (unsigned long long)num_rows);
    return BSW_OK;
}

static enum bsw_status run(const struct bsw_encode_settings *settings,
                           const struct bsw_calibrate_settings *calibration,
                           struct bsw_transport *transport, struct bsw_encode_stats *stats,
                           struct bsw_calibrate_stats *calibrated, int *is_made,
                           struct bsw_error *err)
{
    struct bsw_encode_settings encode = *settings;
    struct bsw_job_events events =
        settings->events ? *settings->events : (struct bsw_job_events){0};
    *is_made = 0;
    if (!calibration) {
        BSW_TRY(bsw_encode_run(&encode, transport, stats, err));
        *is_made = 1;
        return BSW_OK;
    }
    struct bsw_calibrate_settings table = *calibration;
    table.index = settings->index;
    table.is_forced = 1; // a run that was killed may have made it
    table.level = settings->level;
    table.progress = settings->progress;
    char table_of[BSW_PATH_BYTES];
    enum bsw_status status = settle(settings, &table, transport->rank, table_of, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    events.complete = NULL; // there is more to do
    encode.events = &events;
    encode.table_of = table_of;
    BSW_TRY(bsw_encode_run(&encode, transport, stats, err));
    *is_made = 1;
    bsw_stop_begin(NULL, NULL); // also where the index was found
    status = bsw_calibrate_run(&table, transport, calibrated, err);
    bsw_stop_end();
    if (status == BSW_OK) return BSW_OK;
    return bsw_prefix(err, status,
                      "the index is made, but has no table of recalls, which encode --resume or "
                      "bitsweep calibrate makes: ");
}

enum bsw_status bsw_encode_calibrated(const struct bsw_encode_settings *settings,
                                      const struct bsw_calibrate_settings *calibration,
                                      struct bsw_transport *transport,
                                      struct bsw_encode_stats *stats,
                                      struct bsw_calibrate_stats *calibrated, int *is_made,
                                      struct bsw_error *err)
{
    const char *const names[] = {settings->base, calibration ? calibration->queries : NULL};
    struct bsw_text_model text = {0};
    enum bsw_status status =
        bsw_text_model_lend(&text, settings->code.model, settings->level, names, 2, err);
    if (status == BSW_OK)
        status = run(settings, calibration, transport, stats, calibrated, is_made, err);
    bsw_text_model_take_back(&text);
    return status;
}
