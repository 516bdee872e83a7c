// SPDX-License-Identifier: Apache-2.0
#include "coordinator/truth/recall.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

// A returned id with its column.
struct bsw_returned {
    int64_t id;
    size_t column;
};

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int compare_returned(const void *a, const void *b)
{
    const struct bsw_returned *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->column > y->column) - (x->column < y->column);
}

static void add_figures(struct bsw_recall *recall, size_t num_columns)
{
    recall->figures[recall->num_figures++] =
        (struct bsw_recall_figure){.num_true = recall->k, .num_columns = num_columns};
    if (recall->k > 1)
        recall->figures[recall->num_figures++] =
            (struct bsw_recall_figure){.num_true = 1, .num_columns = num_columns};
}

enum bsw_status bsw_recall_init(struct bsw_recall *recall, size_t k, size_t width,
                                struct bsw_error *err)
{
    *recall = (struct bsw_recall){.k = k, .width = width};
    if (width >= k) add_figures(recall, k);
    if (width != k) add_figures(recall, width);
    BSW_TRY(bsw_allocate(&recall->true_ids, k, sizeof *recall->true_ids, "ids", err));
    return bsw_allocate(&recall->returned, width, sizeof *recall->returned, "ids", err);
}

void bsw_recall_deinit(struct bsw_recall *recall)
{
    bsw_free(&recall->true_ids);
    bsw_free(&recall->returned);
}

static int is_true(const struct bsw_recall *recall, const struct bsw_recall_query *query,
                   size_t num_true, int64_t id)
{
    if (num_true == 1) return id == query->true_ids[0];
    return bsearch(&id, recall->true_ids, num_true, sizeof id, compare_ids) != NULL;
}

// Whether the last of the true ones has a value that may be tied with.
static int has_last(const struct bsw_recall_query *query, size_t num_true)
{
    return query->values && query->true_ids[num_true - 1] >= 0;
}

static void count(const struct bsw_recall *recall, const struct bsw_recall_query *query,
                  struct bsw_recall_figure *figure)
{
    double last = figure->num_true == 1 ? query->first_value : query->last_value;
    int ties_count = has_last(query, figure->num_true);
    size_t found = 0, tied = 0;
    for (size_t i = 0; i < recall->width; i++) {
        struct bsw_returned returned = recall->returned[i];
        if (returned.id < 0 || returned.column >= figure->num_columns) continue;
        if (i > 0 && recall->returned[i - 1].id == returned.id) continue; // returned twice
        if (is_true(recall, query, figure->num_true, returned.id))
            found++;
        else if (ties_count && query->values[returned.column] == last)
            tied++;
    }
    if (tied > figure->num_true - found) tied = figure->num_true - found;
    figure->found += found;
    figure->tied += tied;
}

// Looks for what no truth has. Both lists are sorted by id.
static void look_at_truth(struct bsw_recall *recall, const struct bsw_recall_query *query)
{
    uint64_t nearer = 0;
    for (size_t i = 0; i < recall->k; i++) {
        if (recall->true_ids[i] < 0)
            recall->num_empty++;
        else if (i > 0 && recall->true_ids[i - 1] == recall->true_ids[i])
            recall->num_repeated++;
    }
    if (!query->has_keys || !has_last(query, recall->k)) return;
    for (size_t i = 0; i < recall->width; i++) {
        struct bsw_returned returned = recall->returned[i];
        if (returned.id < 0 || !(query->values[returned.column] > query->last_value)) continue;
        if (i > 0 && recall->returned[i - 1].id == returned.id) continue;
        nearer +=
            !bsearch(&returned.id, recall->true_ids, recall->k, sizeof returned.id, compare_ids);
    }
    recall->num_nearer += nearer;
    recall->num_nearer_queries += nearer > 0;
}

void bsw_recall_add(struct bsw_recall *recall, const struct bsw_recall_query *query)
{
    memcpy(recall->true_ids, query->true_ids, recall->k * sizeof *recall->true_ids);
    qsort(recall->true_ids, recall->k, sizeof *recall->true_ids, compare_ids);
    for (size_t i = 0; i < recall->width; i++)
        recall->returned[i] = (struct bsw_returned){query->ids[i], i};
    qsort(recall->returned, recall->width, sizeof *recall->returned, compare_returned);
    for (size_t i = 0; i < recall->num_figures; i++) count(recall, query, &recall->figures[i]);
    look_at_truth(recall, query);
    recall->num_queries++;
}

const struct bsw_recall_figure *bsw_recall_widest(const struct bsw_recall *recall)
{
    const struct bsw_recall_figure *figure = recall->figures;
    while (figure->num_true != recall->k || figure->num_columns != recall->width) figure++;
    return figure;
}

double bsw_recall_by_ids(const struct bsw_recall *recall, const struct bsw_recall_figure *figure)
{
    return (double)figure->found / ((double)recall->num_queries * (double)figure->num_true);
}

double bsw_recall_with_ties(const struct bsw_recall *recall, const struct bsw_recall_figure *figure)
{
    return (double)(figure->found + figure->tied) /
           ((double)recall->num_queries * (double)figure->num_true);
}
