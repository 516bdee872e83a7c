// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/list_training.h"

#include <math.h>
#include <string.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"
#include "shard/lists/list_cells.h"
#include "shard/lists/lloyd_rounds.h"
#include "shard/lists/training_sample.h"

#define SAMPLE_SEED UINT64_C(0x6c6973747361) // so that rows of the sample are not those of lists

struct training {
    const struct bsw_list_training *needs;
    struct bsw_training_sample sample;
    struct bsw_lloyd lloyd;
    struct bsw_row_counts counts;
};

static struct bsw_list_rows rows_of(const struct bsw_training_sample *sample)
{
    return (struct bsw_list_rows){sample->raw, sample->factors, sample->num_rows};
}

static enum bsw_status check(const struct bsw_list_training *needs, struct bsw_error *err)
{
    uint64_t num_rows = bsw_vectors_num_rows(needs->vectors);
    if (needs->num_lists >= 1 && needs->num_lists <= num_rows) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: %lu lists of %llu rows; there are from 1 to %llu",
                    bsw_vectors_name(needs->vectors), (unsigned long)needs->num_lists,
                    (unsigned long long)num_rows, (unsigned long long)num_rows);
}

static enum bsw_status open_sample(struct training *training, struct bsw_error *err)
{
    const struct bsw_list_training *needs = training->needs;
    uint64_t all = bsw_vectors_num_rows(needs->vectors);
    uint64_t most = (uint64_t)needs->num_lists * BSW_LIST_SAMPLE_ROWS;
    const struct bsw_training_sample_needs sample = {
        .vectors = needs->vectors,
        .metric = needs->metric,
        .level = needs->level,
        .seed = bsw_hash2(needs->seed, SAMPLE_SEED),
        .num_rows = all < most ? all : most,
        .rank = training->lloyd.transport->rank,
        .num_ranks = training->lloyd.transport->num_ranks,
        .progress = needs->progress,
    };
    BSW_TRY(check(needs, err));
    BSW_TRY(bsw_training_sample_open(&sample, &training->sample, err));
    return bsw_allocate(&training->lloyd.scales.components, training->lloyd.dims, sizeof(double),
                        "sums of lists", err);
}

// ---- what all ranks know ----

// The largest component of each dimension to sample.largest.
static enum bsw_status share_largest(struct training *training, struct bsw_error *err)
{
    size_t dims = training->lloyd.dims;
    int64_t *words;
    enum bsw_status status = bsw_allocate(&words, dims, sizeof *words, "sums of lists", err);
    status = bsw_transport_agree(training->lloyd.transport, status, err);
    // The bits of numbers that are not negative have their order.
    for (size_t d = 0; d < dims && status == BSW_OK; d++) {
        uint32_t bits;
        memcpy(&bits, &training->sample.largest[d], sizeof bits);
        words[d] = (int64_t)bits;
    }
    if (status == BSW_OK)
        status = bsw_lloyd_combine(&training->lloyd, BSW_COMBINE_MOST, words, dims, err);
    for (size_t d = 0; d < dims && status == BSW_OK; d++) {
        uint32_t bits = (uint32_t)words[d];
        memcpy(&training->sample.largest[d], &bits, sizeof bits);
    }
    bsw_free(&words);
    return status;
}

static void find_scales(struct training *training)
{
    struct bsw_list_scales *scales = &training->lloyd.scales;
    double most = 0.0; // squared: a centroid has no larger components than rows, but for a split's
                       // step, which is less than the rest
    for (size_t d = 0; d < training->lloyd.dims; d++) {
        double largest = (double)training->sample.largest[d];
        scales->components[d] = bsw_list_scale(largest, training->counts.total);
        most += 8.0 * largest * largest;
    }
    if (training->lloyd.metric == BSW_METRIC_COSINE) most = 5.0;
    scales->distance = bsw_list_scale(sqrt(most), training->counts.total);
}

static enum bsw_status train(struct training *training, float *centroids, struct bsw_error *err)
{
    struct bsw_lloyd *lloyd = &training->lloyd;
    const struct bsw_list_training *needs = training->needs;
    struct bsw_list_rows rows = rows_of(&training->sample);
    BSW_TRY(share_largest(training, err));
    BSW_TRY(bsw_lloyd_count(lloyd, rows.num_rows, &training->counts, err));
    if (training->counts.total == 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no good row in the sample",
                        bsw_vectors_name(needs->vectors));
    find_scales(training);
    if (needs->num_lists > BSW_FLAT_LISTS)
        return bsw_list_cells_train(lloyd, &rows, needs->num_lists, needs->seed, centroids, err);
    bsw_progress_begin(lloyd->progress, "lists, training", "rows",
                       (uint64_t)rows.num_rows * lloyd->rounds);
    return bsw_lloyd_run(lloyd, &rows, needs->num_lists, needs->seed, centroids, err);
}

enum bsw_status bsw_lists_train(const struct bsw_list_training *needs,
                                struct bsw_transport *transport, float *centroids,
                                struct bsw_error *err)
{
    struct training training = {
        .needs = needs,
        .lloyd = {.metric = needs->metric,
                  .type = bsw_vectors_type(needs->vectors),
                  .dims = bsw_vectors_dims(needs->vectors),
                  .rounds = needs->rounds > 0 ? needs->rounds : BSW_LIST_ROUNDS,
                  .level = needs->level,
                  .num_threads = needs->num_threads,
                  .transport = transport,
                  .progress = needs->progress,
                  .is_kept = needs->is_kept,
                  .journal = needs->journal},
    };
    enum bsw_status status = open_sample(&training, err);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK) status = train(&training, centroids, err);
    bsw_progress_finish(needs->progress);
    bsw_training_sample_close(&training.sample);
    bsw_free(&training.lloyd.scales.components);
    return status;
}
