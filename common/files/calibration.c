// SPDX-License-Identifier: Apache-2.0
#include "common/files/calibration.h"

#include <string.h>

#include "common/base/memory.h"

#define MOST_K          10000
#define MOST_OVERSAMPLE 10000.0
#define MOST_RATIO      1000.0
#define MOST_ROWS       1e19 // more than any index has

static const char *const sources[] = {
    [BSW_CALIBRATED_BY_ROWS] = "rows", [BSW_CALIBRATED_BY_QUERIES] = "queries"};

const char *bsw_calibration_source_name(enum bsw_calibration_source source)
{
    return sources[source];
}

void bsw_calibration_deinit(struct bsw_calibration *calibration)
{
    bsw_free(&calibration->entries);
    *calibration = (struct bsw_calibration){0};
}

// ---- to a file ----

enum bsw_status bsw_calibration_fill(const struct bsw_calibration *calibration,
                                     struct bsw_calibration_message *out, struct bsw_error *err)
{
    uint32_t count = calibration->num_entries;
    BSW_TRY(bsw_allocate(&out->entries, count, sizeof *out->entries, "calibration", err));
    BSW_TRY(bsw_allocate(&out->pointers, count, sizeof *out->pointers, "calibration", err));
    for (uint32_t i = 0; i < count; i++) {
        const struct bsw_calibration_entry *entry = &calibration->entries[i];
        Bsw__CalibrationEntry *to = &out->entries[i];
        bsw__calibration_entry__init(to);
        to->probe = entry->probe;
        to->ratio = entry->ratio;
        to->oversample = entry->oversample;
        to->recall = entry->recall;
        to->rows_a_query = entry->rows_a_query;
        to->scan_dims = entry->scan_dims;
        out->pointers[i] = to;
    }
    bsw__calibration__init(&out->message);
    out->message.k = calibration->k;
    out->message.queries = calibration->num_queries;
    out->message.source = (char *)bsw_calibration_source_name(calibration->source);
    out->message.n_entries = count;
    out->message.entries = out->pointers;
    return BSW_OK;
}

void bsw_calibration_message_deinit(struct bsw_calibration_message *message)
{
    bsw_free(&message->entries);
    bsw_free(&message->pointers);
}

// ---- from a file ----

static int is_between(double value, double least, double most)
{
    return value >= least && value <= most; // not of a NaN
}

static int is_entry(const Bsw__CalibrationEntry *entry, uint32_t num_lists, int may_have_ratio,
                    const struct bsw_code_layout *layout)
{
    struct bsw_code_layout first;
    int has_ratio = may_have_ratio && is_between(entry->ratio, 0.001, MOST_RATIO);
    return entry->probe >= 1 && entry->probe <= num_lists && (entry->ratio == 0 || has_ratio) &&
           is_between(entry->oversample, 1, MOST_OVERSAMPLE) && is_between(entry->recall, 0, 1) &&
           is_between(entry->rows_a_query, 0, MOST_ROWS) &&
           (entry->scan_dims == 0 || bsw_code_layout_first(layout, entry->scan_dims, &first));
}

static enum bsw_status bad(const char *name, const char *what, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s", name, what);
}

enum bsw_status bsw_calibration_take(const char *name, const Bsw__Calibration *message,
                                     uint32_t num_lists, int may_have_ratio,
                                     const struct bsw_code_layout *layout,
                                     struct bsw_calibration *out, struct bsw_error *err)
{
    *out = (struct bsw_calibration){0};
    if (!message) return BSW_OK;
    if (num_lists == 0) return bad(name, "a calibration without lists", err);
    if (message->k < 1 || message->k > MOST_K || message->queries < 1 || message->n_entries < 1 ||
        message->n_entries > BSW_MAX_CALIBRATION_ENTRIES)
        return bad(name, "the calibration is out of range", err);
    int source = BSW_CALIBRATED_BY_ROWS;
    while (source <= BSW_CALIBRATED_BY_QUERIES && strcmp(message->source, sources[source]) != 0)
        source++;
    if (source > BSW_CALIBRATED_BY_QUERIES)
        return bad(name, "the calibration's queries are of an unknown source", err);
    BSW_TRY(
        bsw_allocate(&out->entries, message->n_entries, sizeof *out->entries, "calibration", err));
    out->k = message->k;
    out->num_queries = message->queries;
    out->padded_dims = layout->padded_dims;
    out->source = (enum bsw_calibration_source)source;
    for (size_t i = 0; i < message->n_entries; i++) {
        const Bsw__CalibrationEntry *entry = message->entries[i];
        if (!is_entry(entry, num_lists, may_have_ratio, layout))
            return bad(name, "an entry of the calibration is out of range", err);
        if (i > 0 && !(entry->recall > message->entries[i - 1]->recall))
            return bad(name, "the calibration's entries are not in order", err);
        out->entries[out->num_entries++] =
            (struct bsw_calibration_entry){.probe = entry->probe,
                                           .ratio = entry->ratio,
                                           .oversample = entry->oversample,
                                           .recall = entry->recall,
                                           .rows_a_query = entry->rows_a_query,
                                           .scan_dims = entry->scan_dims};
    }
    return BSW_OK;
}
