// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/recall_choice.h"

#include <stddef.h>

#include "coordinator/search/search_settings.h"

double bsw_recall_cost(const struct bsw_calibration *table,
                       const struct bsw_calibration_entry *entry, double oversample)
{
    double rows = entry->rows_a_query;
    if (entry->scan_dims > 0)
        rows *= (double)(entry->scan_dims + BSW_ROW_DIMS) / (table->padded_dims + BSW_ROW_DIMS);
    return rows + (double)BSW_REFINED_ROWS * table->k * oversample;
}

const struct bsw_calibration_entry *bsw_recall_cheapest(const struct bsw_calibration *table,
                                                        double recall, double oversample)
{
    const struct bsw_calibration_entry *best = NULL;
    double least = 0;
    for (uint32_t i = 0; i < table->num_entries; i++) {
        const struct bsw_calibration_entry *entry = &table->entries[i];
        double cost =
            bsw_recall_cost(table, entry, oversample > 0 ? oversample : entry->oversample);
        if (entry->recall < recall || (oversample > 0 && entry->oversample > oversample)) continue;
        if (best && cost >= least) continue;
        best = entry;
        least = cost;
    }
    return best;
}

static int order(double a, double b)
{
    return (a > b) - (a < b);
}

// By cost; of equals the better first, then what looks at less.
static int compare(const struct bsw_calibration *table, const struct bsw_calibration_entry *x,
                   const struct bsw_calibration_entry *y)
{
    int by =
        order(bsw_recall_cost(table, x, x->oversample), bsw_recall_cost(table, y, y->oversample));
    if (by == 0) by = order(y->recall, x->recall);
    if (by == 0) by = order(x->oversample, y->oversample);
    if (by == 0) by = order(x->ratio, y->ratio);
    if (by == 0) by = order(x->probe, y->probe);
    return by != 0 ? by : order(x->scan_dims, y->scan_dims);
}

static void sort(struct bsw_calibration *table)
{
    for (uint32_t i = 1; i < table->num_entries; i++) { // few
        const struct bsw_calibration_entry entry = table->entries[i];
        uint32_t place = i;
        for (; place > 0 && compare(table, &table->entries[place - 1], &entry) > 0; place--)
            table->entries[place] = table->entries[place - 1];
        table->entries[place] = entry;
    }
}

void bsw_recall_front(struct bsw_calibration *table)
{
    uint32_t kept = 0;
    sort(table);
    for (uint32_t i = 0; i < table->num_entries; i++) {
        const struct bsw_calibration_entry *entry = &table->entries[i];
        if (kept > 0 && entry->recall <= table->entries[kept - 1].recall) continue;
        // What nobody can ask for gives way to what follows.
        if (kept > 0 && table->entries[kept - 1].recall < BSW_LEAST_RECALL) kept--;
        table->entries[kept++] = *entry;
    }
    table->num_entries = kept;
}
