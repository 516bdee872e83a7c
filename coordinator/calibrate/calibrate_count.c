// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/calibrate_count.h"

#include <stddef.h>

#include "common/base/memory.h"

const uint32_t bsw_calibrate_oversamples[BSW_CALIBRATE_OVERSAMPLES] = {1, 2, 3, 5, 8, 12};

// Rows of one query: what is left out, then what is to be found.
struct query_rows {
    int64_t *out, *sought;
    uint64_t num_out, num_sought;
};

static int has(const int64_t *ids, uint64_t count, int64_t id)
{
    for (uint64_t i = 0; i < count; i++) {
        if (ids[i] == id) return 1;
    }
    return 0;
}

static void divide_truth(const struct bsw_calibrate_lists *lists, uint64_t q,
                         struct query_rows *rows)
{
    const struct bsw_results *truth = lists->truth;
    rows->num_out = rows->num_sought = 0;
    if (lists->own) rows->out[rows->num_out++] = (int64_t)lists->own[q];
    uint64_t most_out = rows->num_out + lists->num_skipped;
    for (uint64_t i = 0; i < truth->k && rows->num_sought < lists->k; i++) {
        int64_t id = truth->ids[q * truth->k + i];
        if (lists->own && id == (int64_t)lists->own[q]) continue;
        if (rows->num_out < most_out)
            rows->out[rows->num_out++] = id;
        else
            rows->sought[rows->num_sought++] = id;
    }
}

static void count_query(const struct bsw_calibrate_lists *lists, uint64_t q,
                        const struct query_rows *rows, uint64_t found[BSW_CALIBRATE_OVERSAMPLES])
{
    const struct bsw_results *candidates = lists->candidates;
    uint64_t place = 0; // among candidates that are not left out
    for (uint64_t i = 0; i < candidates->k; i++) {
        int64_t id = candidates->ids[q * candidates->k + i];
        if (id < 0) break;
        if (has(rows->out, rows->num_out, id)) continue;
        if (has(rows->sought, rows->num_sought, id))
            for (int x = 0; x < BSW_CALIBRATE_OVERSAMPLES; x++)
                found[x] += place < lists->k * bsw_calibrate_oversamples[x];
        place++;
    }
}

enum bsw_status bsw_calibrate_count(const struct bsw_calibrate_lists *lists,
                                    uint64_t found[BSW_CALIBRATE_OVERSAMPLES],
                                    struct bsw_error *err)
{
    uint64_t most_out = lists->num_skipped + 1;
    struct query_rows rows;
    BSW_TRY(bsw_allocate(&rows.out, most_out + lists->k, sizeof *rows.out, "true rows", err));
    rows.sought = rows.out + most_out;
    for (int x = 0; x < BSW_CALIBRATE_OVERSAMPLES; x++) found[x] = 0;
    for (uint64_t q = 0; q < lists->truth->num_queries; q++) {
        divide_truth(lists, q, &rows);
        count_query(lists, q, &rows, found);
    }
    bsw_free(&rows.out);
    return BSW_OK;
}
