#include "coordinator/train/rbe_split.h"

#include <math.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"
#include "coordinator/train/rbe_order.h"

enum { SEED_SPLIT = 3, SEED_HELD_OUT = 6 }; // what seeds are hashed with; others: rbe_training.c

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
