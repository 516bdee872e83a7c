// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/encode_training.h"

#include "coordinator/encode/code_recall.h"

// A sample of residuals finds its rows' centroids.
static enum bsw_status open_assigner(const struct bsw_encode_training *training,
                                     const struct bsw_manifest *manifest, struct bsw_sample *sample,
                                     struct bsw_error *err)
{
    if (!manifest->lists.is_residual) return BSW_OK;
    sample->centroids = manifest->lists.centroids;
    return bsw_list_assigner_open_lists(manifest, bsw_vectors_type(training->vectors),
                                        bsw_vectors_dims(training->vectors), training->level,
                                        &sample->assigner, err);
}

// A pass over the sample then gives rows as they are again.
static enum bsw_status train(const struct bsw_encode_training *training, struct bsw_sample *sample,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    enum bsw_status status = open_assigner(training, manifest, sample, err);
    if (status == BSW_OK)
        status = manifest->codec->table->train(training->code, bsw_vectors_dims(training->vectors),
                                               sample, training->model, manifest, err);
    bsw_list_assigner_close(&sample->assigner);
    sample->centroids = sample->mean = NULL;
    return status;
}

// Trains both kinds; recalls [2]: of codes of rows, of residuals.
static enum bsw_status try_both(const struct bsw_encode_training *training,
                                struct bsw_sample *sample, const struct bsw_code_recall *measure,
                                struct bsw_manifest *kinds, double *recalls, struct bsw_error *err)
{
    for (int kind = 0; kind < 2; kind++) {
        kinds[kind].lists.is_residual = kind;
        BSW_TRY(train(training, sample, &kinds[kind], err));
        BSW_TRY(bsw_code_recall_of(measure, &kinds[kind], BSW_CODE_RECALL_K, &recalls[kind], err));
    }
    return BSW_OK;
}

static enum bsw_status choose(const struct bsw_encode_training *training, struct bsw_sample *sample,
                              const struct bsw_code_recall *measure, struct bsw_manifest *manifest,
                              struct bsw_error *err)
{
    struct bsw_manifest kinds[2] = {*manifest, *manifest};
    double recalls[2] = {0};
    enum bsw_status status = try_both(training, sample, measure, kinds, recalls, err);
    int best = recalls[1] >= recalls[0] + BSW_RESIDUAL_MARGIN;
    if (status == BSW_OK) {
        *manifest = kinds[best];
        manifest->lists.plain_recall = recalls[0];
        manifest->lists.residual_recall = recalls[1];
        kinds[best].part = NULL;
    }
    for (int kind = 0; kind < 2; kind++) manifest->codec->free_part(kinds[kind].part);
    return status;
}

// Trains another way and measures it; it stays where it is better.
static enum bsw_status try_other(const struct bsw_encode_training *training,
                                 struct bsw_sample *sample, const struct bsw_code_recall *measure,
                                 struct bsw_manifest *best, struct bsw_error *err)
{
    struct bsw_manifest other = *best;
    other.part = NULL;
    other.row_dims = other.code_rule = 0;
    enum bsw_status status = train(training, sample, &other, err);
    if (status == BSW_OK) status = bsw_code_check_set(measure, &sample->far, &other, err);
    if (status == BSW_OK && other.check.recall >= best->check.recall + BSW_VARIANT_MARGIN) {
        struct bsw_manifest before = *best;
        *best = other;
        other = before;
    }
    if (other.codec->free_part) other.codec->free_part(other.part);
    return status;
}

// Where codes of the sample are poor, other ways to train are tried.
static enum bsw_status check(const struct bsw_encode_training *training, struct bsw_sample *sample,
                             const struct bsw_code_recall *measure, struct bsw_manifest *manifest,
                             struct bsw_error *err)
{
    struct bsw_codec_settings code = *training->code;
    struct bsw_encode_training other = *training;
    const struct bsw_codec_table *table = manifest->codec->table;
    other.code = &code;
    BSW_TRY(bsw_code_check_set(measure, &sample->far, manifest, err));
    while (bsw_code_check_is_low(&manifest->check) && table->vary && table->vary(&code))
        BSW_TRY(try_other(&other, sample, measure, manifest, err));
    return BSW_OK;
}

static enum bsw_status begin(const struct bsw_encode_training *training,
                             const struct bsw_manifest *manifest, struct bsw_sample *sample,
                             struct bsw_code_recall *measure, struct bsw_error *err)
{
    int may_be_residual = training->chooses_residuals || manifest->lists.is_residual;
    sample->progress = training->progress;
    BSW_TRY(bsw_sample_leave_out(sample, err));
    if (manifest->codec->table->keeps_far_rows) bsw_sample_keep_many(sample);
    if (!training->checks_codes && !training->chooses_residuals) return BSW_OK;
    return bsw_code_recall_init(measure, training->vectors, manifest, may_be_residual,
                                training->level, training->progress, err);
}

enum bsw_status bsw_encode_train(const struct bsw_encode_training *training,
                                 struct bsw_manifest *manifest, struct bsw_error *err)
{
    struct bsw_sample sample;
    struct bsw_code_recall measure = {0};
    if (!manifest->codec->table->needs_sample)
        return manifest->codec->table->train(training->code, bsw_vectors_dims(training->vectors),
                                             NULL, training->model, manifest, err);
    BSW_TRY(bsw_sample_create(training->vectors, manifest->metric, training->level, &sample, err));
    enum bsw_status status = begin(training, manifest, &sample, &measure, err);
    int is_measured = measure.num_queries > 0;
    if (status == BSW_OK)
        status = training->chooses_residuals && is_measured
                     ? choose(training, &sample, &measure, manifest, err)
                     : train(training, &sample, manifest, err);
    if (status == BSW_OK && training->checks_codes && is_measured)
        status = check(training, &sample, &measure, manifest, err);
    bsw_code_recall_deinit(&measure);
    bsw_sample_deinit(&sample);
    return status;
}
