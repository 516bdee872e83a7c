// SPDX-License-Identifier: Apache-2.0
#include "coordinator/train/rbe_split.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"

enum { SEED_SPLIT = 3, SEED_HELD_OUT = 6 }; // what seeds are hashed with; others: rbe_training.c
#define NUM_DIRECTIONS 16                   // halvings: 65,536 cells

// ---- the order ----

struct place {
    uint64_t pair;
    float keys[NUM_DIRECTIONS];
    float key; // that it is sorted by now
};

void bsw_rbe_shuffle(uint64_t seed, uint64_t *values, uint64_t count)
{
    for (uint64_t i = count; i > 1; i--) {
        uint64_t j = bsw_hash2(seed, i) % i, kept = values[i - 1];
        values[i - 1] = values[j];
        values[j] = kept;
    }
}

// Directions of random signs: 64 of them from one hash.
static void project(const float *query, size_t dims, uint64_t seed, float *keys)
{
    for (uint64_t k = 0; k < NUM_DIRECTIONS; k++) {
        float sum = 0;
        for (size_t first = 0; first < dims; first += 64) {
            uint64_t signs = bsw_hash2(bsw_hash2(seed, k), first);
            for (size_t i = first; i < dims && i < first + 64; i++, signs >>= 1)
                sum += signs & 1 ? query[i] : -query[i];
        }
        keys[k] = sum;
    }
}

static enum bsw_status fill_places(const struct bsw_rbe_pairs *pairs, size_t dims, uint64_t draw,
                                   uint64_t seed, const uint64_t *order, uint64_t count,
                                   struct place *places, struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
#pragma omp parallel for schedule(static)
    for (uint64_t i = 0; i < count; i++) {
        float query[BSW_RBE_MAX_DIMS], document[BSW_RBE_MAX_DIMS];
        struct bsw_error read_error;
        enum bsw_status read =
            pairs->read(pairs->context, order[i], draw, query, document, &read_error);
        places[i].pair = order[i];
        if (read == BSW_OK)
            project(query, dims, seed, places[i].keys);
        else
            bsw_first_failure_note(&failure, i, read, &read_error);
    }
    return bsw_first_failure_report(&failure, err);
}

// A NaN compares as equal to all: the order is then any, and training finds it.
static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->key < y->key) return -1;
    if (x->key > y->key) return 1;
    return x->pair < y->pair ? -1 : x->pair > y->pair;
}

static void halve(struct place *places, uint64_t count, int level, uint64_t cell_pairs)
{
    if (count <= cell_pairs || level == NUM_DIRECTIONS) return;
    for (uint64_t i = 0; i < count; i++) places[i].key = places[i].keys[level];
    qsort(places, count, sizeof *places, compare_places);
    uint64_t cells = (count + cell_pairs - 1) / cell_pairs, half = cells / 2 * cell_pairs;
    halve(places, half, level + 1, cell_pairs);
    halve(places + half, count - half, level + 1, cell_pairs);
}

// Whole cells in random order; what does not fill one comes last.
static enum bsw_status shuffle_cells(const struct place *places, uint64_t count, uint64_t seed,
                                     uint64_t cell_pairs, uint64_t *order, struct bsw_error *err)
{
    uint64_t *cells, num_cells = count / cell_pairs, next = 0;
    BSW_TRY(bsw_allocate(&cells, (size_t)num_cells, sizeof *cells, "order", err));
    for (uint64_t i = 0; i < num_cells; i++) cells[i] = i;
    bsw_rbe_shuffle(seed, cells, num_cells);
    for (uint64_t i = 0; i < num_cells; i++) {
        for (uint64_t k = 0; k < cell_pairs; k++)
            order[next++] = places[cells[i] * cell_pairs + k].pair;
    }
    while (next < count) {
        order[next] = places[next].pair;
        next++;
    }
    bsw_free(&cells);
    return BSW_OK;
}

enum bsw_status bsw_rbe_order_cells(const struct bsw_rbe_pairs *pairs, size_t dims, uint64_t draw,
                                    uint64_t seed, size_t cell_pairs, uint64_t *order,
                                    uint64_t count, struct bsw_error *err)
{
    struct place *places;
    BSW_TRY(bsw_allocate(&places, (size_t)count, sizeof *places, "order", err));
    enum bsw_status status = fill_places(pairs, dims, draw, seed, order, count, places, err);
    if (status == BSW_OK) {
        halve(places, count, 0, cell_pairs);
        status = shuffle_cells(places, count, seed, cell_pairs, order, err);
    }
    bsw_free(&places);
    return status;
}

// ---- the split ----

// Trained pairs in ascending order, without those that share rows with the held-out.
static enum bsw_status list_trained(const struct bsw_rbe_pairs *pairs, struct bsw_rbe_split *split,
                                    struct bsw_error *err)
{
    uint64_t all = pairs->num_pairs;
    unsigned char *is_excluded;
    BSW_TRY(bsw_allocate_zero(&is_excluded, (size_t)all, 1, "pairs", err));
    enum bsw_status status = BSW_OK;
    if (pairs->exclude && split->num_held_out > 0) {
        status =
            pairs->exclude(pairs->context, split->held_out, split->num_held_out, is_excluded, err);
    }
    for (uint64_t i = 0; i < split->num_held_out; i++) is_excluded[split->held_out[i]] = 1;
    for (uint64_t i = 0; i < all; i++) {
        if (!is_excluded[i]) split->trained[split->num_trained++] = i;
    }
    bsw_free(&is_excluded);
    return status;
}

// After the split, as if an epoch's.
static enum bsw_status order_held_out(const struct bsw_rbe_training_options *o,
                                      const struct bsw_rbe_pairs *pairs, size_t group_pairs,
                                      struct bsw_rbe_split *split, struct bsw_error *err)
{
    if (!o->has_near_negatives || split->num_held_out == 0) return BSW_OK;
    return bsw_rbe_order_cells(pairs, o->shapes[0].dims, 0, bsw_hash2(o->seed, SEED_HELD_OUT),
                               group_pairs, split->held_out, split->num_held_out, err);
}

enum bsw_status bsw_rbe_split_init(const struct bsw_rbe_training_options *o,
                                   const struct bsw_rbe_pairs *pairs, uint64_t ranks,
                                   size_t group_pairs, struct bsw_rbe_split *split,
                                   struct bsw_error *err)
{
    uint64_t all = pairs->num_pairs, least = o->negatives + 1;
    split->num_held_out = (uint64_t)ceil((double)all * o->validation);
    if (split->num_held_out > 0 && split->num_held_out / ranks < least) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%llu pairs held out of %llu: %llu negatives take more than that on each "
                        "rank; a larger --validation, or 0",
                        (unsigned long long)split->num_held_out, (unsigned long long)all,
                        (unsigned long long)o->negatives);
    }
    BSW_TRY(bsw_allocate(&split->ids, (size_t)all, 2 * sizeof(uint64_t), "pairs", err));
    split->held_out = split->ids + all;
    split->trained = split->ids;
    for (uint64_t i = 0; i < all; i++) split->held_out[i] = i;
    bsw_rbe_shuffle(bsw_hash2(o->seed, SEED_SPLIT), split->held_out, all);
    BSW_TRY(list_trained(pairs, split, err));
    split->batch_pairs =
        (size_t)(o->batch_pairs < split->num_trained ? o->batch_pairs : split->num_trained);
    if (split->batch_pairs / ranks < least) {
        return bsw_fail(
            err, BSW_ERROR_USAGE,
            "batches of %zu from %llu pairs: %llu negatives take more than that on each "
            "rank",
            split->batch_pairs, (unsigned long long)split->num_trained,
            (unsigned long long)o->negatives);
    }
    split->num_batches = split->num_trained / split->batch_pairs;
    return order_held_out(o, pairs, group_pairs, split, err);
}

void bsw_rbe_split_deinit(struct bsw_rbe_split *split)
{
    bsw_free(&split->ids);
}
