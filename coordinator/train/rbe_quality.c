// SPDX-License-Identifier: Apache-2.0
#include "coordinator/train/rbe_quality.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"

// What the seed is hashed with; those of training are smaller, of pairs larger.
enum { SEED_NEGATIVES = 51 };

#define QUERY_BLOCK 64 // queries whose scores a thread holds

const uint32_t bsw_rbe_recall_ranks[BSW_RBE_NUM_RECALLS] = {1, 10, 100};

enum bsw_status bsw_rbe_quality_init(struct bsw_rbe_quality *quality, struct bsw_error *err)
{
    size_t code_dims = quality->options->shapes[0].code_dims;
    size_t negatives = (size_t)quality->options->negatives;
    if (quality->num_pairs > BSW_RBE_AUC_PAIRS) quality->num_pairs = BSW_RBE_AUC_PAIRS;
    size_t count = quality->num_pairs;
    BSW_TRY(bsw_allocate(&quality->memory, count,
                         (BSW_RBE_NUM_SIDES * (code_dims + 1) + 2 + negatives) * sizeof(float),
                         "quality", err));
    float *next = quality->memory;
    for (int side = 0; side < BSW_RBE_NUM_SIDES; side++) {
        quality->codes[side] = next;
        quality->factors[side] = next + count * code_dims;
        next += count * (code_dims + 1);
    }
    quality->offsets = next;
    quality->positives = next + count;
    quality->negatives = next + 2 * count;
    return BSW_OK;
}

void bsw_rbe_quality_deinit(struct bsw_rbe_quality *quality)
{
    bsw_free(&quality->memory);
}

// ---- codes ----

static float dot_of(const float *a, const float *b, size_t code_dims)
{
    float sum = 0;
    for (size_t i = 0; i < code_dims; i++) sum += a[i] * b[i];
    return sum;
}

static float inverse_norm(const float *code, size_t code_dims)
{
    float square = dot_of(code, code, code_dims);
    return square > 0 ? 1.0f / sqrtf(square) : 1.0f;
}

static size_t num_groups_of(const struct bsw_rbe_quality *quality)
{
    size_t groups = quality->num_pairs / quality->group_pairs;
    return groups > 0 ? groups : 1;
}

// Whole cells of rbe_pair_source.h; the last group has what is left, too.
static size_t group_end(const struct bsw_rbe_quality *quality, size_t g)
{
    return g + 1 < num_groups_of(quality) ? (g + 1) * quality->group_pairs : quality->num_pairs;
}

static enum bsw_status code_group(struct bsw_rbe_quality *quality, const float *parameters,
                                  size_t g, struct bsw_error *err)
{
    size_t first = g * quality->group_pairs, code_dims = quality->options->shapes[0].code_dims;
    const struct bsw_rbe_group group = {
        .pairs = quality->held_out + first, .num_pairs = group_end(quality, g) - first, .slope = 1};
    const float *outputs[BSW_RBE_NUM_SIDES];
    struct bsw_rbe_worker *worker = &quality->workers[omp_get_thread_num()];
    int has_similarities = quality->options->has_similarities;
    BSW_TRY(bsw_rbe_group_forward(worker, parameters, &group, outputs, err));
    for (size_t i = 0; i < group.num_pairs; i++)
        quality->offsets[first + i] = has_similarities ? worker->offsets[i] : 0;
    for (int side = 0; side < BSW_RBE_NUM_SIDES; side++) {
        memcpy(quality->codes[side] + first * code_dims, outputs[side],
               group.num_pairs * code_dims * sizeof(float));
        for (size_t i = 0; i < group.num_pairs; i++)
            quality->factors[side][first + i] =
                has_similarities ? worker->weights[side][i]
                                 : inverse_norm(outputs[side] + i * code_dims, code_dims);
    }
    return BSW_OK;
}

static enum bsw_status code_pairs(struct bsw_rbe_quality *quality, const float *parameters,
                                  struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
#pragma omp parallel for schedule(dynamic) num_threads((int)quality->num_workers)
    for (size_t g = 0; g < num_groups_of(quality); g++) {
        struct bsw_error group_error;
        enum bsw_status group_status = code_group(quality, parameters, g, &group_error);
        if (group_status != BSW_OK) bsw_first_failure_note(&failure, g, group_status, &group_error);
    }
    return bsw_first_failure_report(&failure, err);
}

// ---- ROC AUC ----

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

double bsw_roc_auc(float *positives, size_t num_positives, float *negatives, size_t num_negatives)
{
    uint64_t halves = 0; // twice the count: below 2^63 for fewer than 2^62 pairs
    size_t below = 0, up_to = 0;
    if (num_positives == 0 || num_negatives == 0) return 0;
    qsort(positives, num_positives, sizeof *positives, compare_floats);
    qsort(negatives, num_negatives, sizeof *negatives, compare_floats);
    for (size_t i = 0; i < num_positives; i++) {
        while (below < num_negatives && negatives[below] < positives[i]) below++;
        while (up_to < num_negatives && negatives[up_to] <= positives[i]) up_to++;
        halves += below + up_to;
    }
    return (double)halves / (2.0 * (double)num_positives * (double)num_negatives);
}

static float score_of(const struct bsw_rbe_quality *quality, size_t query, size_t document)
{
    size_t n = quality->options->shapes[0].code_dims;
    float dot = dot_of(quality->codes[BSW_RBE_QUERY] + query * n,
                       quality->codes[BSW_RBE_DOCUMENT] + document * n, n);
    float factor =
        quality->factors[BSW_RBE_QUERY][query] * quality->factors[BSW_RBE_DOCUMENT][document];
    return dot * factor + quality->offsets[document];
}

static void score_group(struct bsw_rbe_quality *quality, size_t g, size_t *shifts)
{
    size_t first = g * quality->group_pairs, count = group_end(quality, g) - first;
    size_t negatives = (size_t)quality->options->negatives;
    uint64_t seed = bsw_hash2(quality->options->seed, SEED_NEGATIVES);
    bsw_rbe_draw_shifts(bsw_hash2(seed, g), count, negatives, shifts);
    for (size_t i = 0; i < count; i++) {
        quality->positives[first + i] = score_of(quality, first + i, first + i);
        for (size_t r = 0; r < negatives; r++) {
            quality->negatives[(first + i) * negatives + r] =
                score_of(quality, first + i, first + (i + shifts[r]) % count);
        }
    }
}

enum bsw_status bsw_rbe_quality_auc(struct bsw_rbe_quality *quality, const float *parameters,
                                    double *auc, struct bsw_error *err)
{
    *auc = 0;
    if (quality->num_pairs == 0) return BSW_OK;
    BSW_TRY(code_pairs(quality, parameters, err));
#pragma omp parallel for schedule(static) num_threads((int)quality->num_workers)
    for (size_t g = 0; g < num_groups_of(quality); g++)
        score_group(quality, g, quality->workers[omp_get_thread_num()].shifts);
    *auc = bsw_roc_auc(quality->positives, quality->num_pairs, quality->negatives,
                       quality->num_pairs * (size_t)quality->options->negatives);
    return BSW_OK;
}

// ---- recall ----

// The chance that the document at `place` is among the first `rank`.
static double found_share(const float *scores, size_t count, size_t place, uint32_t rank)
{
    size_t above = 0, ties = 0; // ties: itself included
    for (size_t i = 0; i < count; i++) {
        above += scores[i] > scores[place];
        ties += scores[i] == scores[place];
    }
    if (above >= rank) return 0;
    return above + ties <= rank ? 1 : (double)(rank - above) / (double)ties;
}

// Adds to found[query][k] of the queries first .. first + count. scores: [count][num_documents].
static void search_block(const struct bsw_rbe_quality *quality, size_t first, size_t count,
                         size_t num_documents, float *scores, double (*found)[BSW_RBE_NUM_RECALLS])
{
    size_t n = quality->options->shapes[0].code_dims;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, (int)num_documents, (int)n,
                1.0f, quality->codes[BSW_RBE_QUERY] + first * n, (int)n,
                quality->codes[BSW_RBE_DOCUMENT], (int)n, 0.0f, scores, (int)num_documents);
    for (size_t q = 0; q < count; q++) {
        float *row = scores + q * num_documents;
        float factor = quality->factors[BSW_RBE_QUERY][first + q];
        for (size_t i = 0; i < num_documents; i++)
            row[i] =
                row[i] * (factor * quality->factors[BSW_RBE_DOCUMENT][i]) + quality->offsets[i];
        for (size_t k = 0; k < BSW_RBE_NUM_RECALLS; k++)
            found[first + q][k] =
                found_share(row, num_documents, first + q, bsw_rbe_recall_ranks[k]);
    }
}

static void search_pairs(const struct bsw_rbe_quality *quality, size_t count, float *scores,
                         double (*found)[BSW_RBE_NUM_RECALLS])
{
    size_t num_blocks = (count + QUERY_BLOCK - 1) / QUERY_BLOCK;
#pragma omp parallel for schedule(dynamic) num_threads((int)quality->num_workers)
    for (size_t b = 0; b < num_blocks; b++) {
        size_t first = b * QUERY_BLOCK,
               last = first + QUERY_BLOCK < count ? first + QUERY_BLOCK : count;
        search_block(quality, first, last - first, count,
                     scores + (size_t)omp_get_thread_num() * QUERY_BLOCK * count, found);
    }
}

enum bsw_status bsw_rbe_quality_recall(struct bsw_rbe_quality *quality, const float *parameters,
                                       struct bsw_rbe_recall *recall, struct bsw_error *err)
{
    size_t count =
        quality->num_pairs < BSW_RBE_RECALL_PAIRS ? quality->num_pairs : BSW_RBE_RECALL_PAIRS;
    float *scores = NULL;
    double(*found)[BSW_RBE_NUM_RECALLS] = NULL;
    *recall = (struct bsw_rbe_recall){.num_documents = count};
    if (count == 0) return BSW_OK;
    BSW_TRY(code_pairs(quality, parameters, err));
    BSW_TRY(bsw_allocate(&scores, quality->num_workers * QUERY_BLOCK, count * sizeof *scores,
                         "recall", err));
    enum bsw_status status = bsw_allocate(&found, count, sizeof *found, "recall", err);
    if (status == BSW_OK) {
        search_pairs(quality, count, scores, found);
        for (size_t q = 0; q < count; q++) {
            for (size_t k = 0; k < BSW_RBE_NUM_RECALLS; k++)
                recall->shares[k] += found[q][k] / (double)count;
        }
    }
    bsw_free(&scores);
    bsw_free(&found);
    return status;
}
