// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/calibrate_count.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/base/memory.h"

const uint32_t bsw_calibrate_oversamples[BSW_CALIBRATE_OVERSAMPLES] = {1, 2, 3, 5, 8, 12};

// Some roundings of float32: multiples of a row have one cosine but for these.
#define TIE 4e-7f

// Rows of one query: what is left out, then what is to be found. Both ascending.
struct query_rows {
    int64_t *out, *sought;
    uint64_t num_out, num_sought;
};

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int has(const int64_t *ids, uint64_t count, int64_t id)
{
    return bsearch(&id, ids, count, sizeof id, compare) != NULL;
}

static int is_tie(float value, float other)
{
    return fabsf(value - other) <= TIE * fabsf(other);
}

// The value of a query's own row; whether it is known. Where nothing is nearer and the row itself
// is not there, its copies have taken all places.
static int find_own_value(const struct bsw_calibrate_lists *lists, uint64_t q, float *out)
{
    const struct bsw_results *truth = lists->truth;
    const int64_t *ids = truth->ids + q * truth->k;
    if (!lists->own) return 0;
    for (uint64_t i = 0; i < truth->k; i++) {
        if (ids[i] != (int64_t)lists->own[q]) continue;
        *out = truth->values[q * truth->k + i];
        return 1;
    }
    *out = truth->values[q * truth->k];
    return lists->own_is_nearest;
}

static void divide_truth(const struct bsw_calibrate_lists *lists, uint64_t q,
                         struct query_rows *rows)
{
    const struct bsw_results *truth = lists->truth;
    const int64_t *ids = truth->ids + q * truth->k;
    const float *values = truth->values + q * truth->k;
    uint64_t num_skipped = 0;
    float own_value, last = 0;
    int leaves_copies = find_own_value(lists, q, &own_value) && !lists->keeps_copies;
    rows->num_out = rows->num_sought = 0;
    if (lists->own) rows->out[rows->num_out++] = (int64_t)lists->own[q];
    for (uint64_t i = 0; i < truth->k && ids[i] >= 0; i++) {
        if (lists->own && ids[i] == (int64_t)lists->own[q]) continue;
        if (leaves_copies && is_tie(values[i], own_value)) {
            rows->out[rows->num_out++] = ids[i];
        } else if (num_skipped < lists->num_skipped) {
            rows->out[rows->num_out++] = ids[i];
            num_skipped++;
        } else if (rows->num_sought < lists->k || is_tie(values[i], last)) {
            if (rows->num_sought < lists->k) last = values[i];
            rows->sought[rows->num_sought++] = ids[i];
        } else {
            break;
        }
    }
    qsort(rows->out, rows->num_out, sizeof *rows->out, compare);
    qsort(rows->sought, rows->num_sought, sizeof *rows->sought, compare);
}

// A query that counts.
static void count_query(const struct bsw_calibrate_lists *lists, uint64_t q,
                        const struct query_rows *rows, struct bsw_calibrate_found *found)
{
    const struct bsw_results *candidates = lists->candidates;
    uint64_t most = rows->num_sought < lists->k ? rows->num_sought : lists->k;
    uint64_t place = 0, num_found = 0; // among candidates that are not left out
    found->num_queries++;
    found->num_sought += most;
    for (uint64_t i = 0; candidates && i < candidates->k && num_found < most; i++) {
        int64_t id = candidates->ids[q * candidates->k + i];
        if (id < 0) break;
        if (has(rows->out, rows->num_out, id)) continue;
        if (has(rows->sought, rows->num_sought, id)) {
            num_found++;
            for (int x = 0; x < BSW_CALIBRATE_OVERSAMPLES; x++)
                found->num_found[x] += place < lists->k * bsw_calibrate_oversamples[x];
        }
        place++;
    }
}

enum bsw_status bsw_calibrate_count(const struct bsw_calibrate_lists *lists,
                                    struct bsw_calibrate_found *all,
                                    struct bsw_calibrate_found *different, struct bsw_error *err)
{
    uint64_t most = lists->truth->k;
    struct query_rows rows;
    BSW_TRY(bsw_allocate(&rows.out, 2 * most + 1, sizeof *rows.out, "true rows", err));
    rows.sought = rows.out + most + 1;
    *all = *different = (struct bsw_calibrate_found){0};
    for (uint64_t q = 0; q < lists->truth->num_queries; q++) {
        divide_truth(lists, q, &rows);
        if (rows.num_sought < lists->k && !lists->has_all) continue;
        count_query(lists, q, &rows, all);
        if (!lists->is_copy || !lists->is_copy[q]) count_query(lists, q, &rows, different);
    }
    bsw_free(&rows.out);
    return BSW_OK;
}
