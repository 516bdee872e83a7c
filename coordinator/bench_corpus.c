#include "coordinator/bench_corpus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/synth.h"
#include "coordinator/code_training.h"
#include "coordinator/stage_choice.h"

enum { MESSAGE_CORPUS = 81 };

// Clusters and a spectrum as SIFT's, so that scans that leave rows out find some to leave out.
#define NUM_CLUSTERS  1000
#define SPECTRUM_TEXT "0.625"

static enum bsw_status describe(const struct bsw_bench_corpus_options *options,
                                struct bsw_manifest *manifest, struct bsw_error *err)
{
    int is_raw = options->codec == BSW_CODEC_RAW;
    int length =
        snprintf(manifest->source_path, sizeof manifest->source_path,
                 "synth:count=%" PRIu64 ",dims=%" PRIu32 ",seed=%" PRIu64 ",clusters=%d%s%s",
                 options->max_rows + options->queries, options->dims, options->seed, NUM_CLUSTERS,
                 is_raw ? ",type=uint8" : "",
                 options->dims <= BSW_SYNTH_SPECTRUM_DIMS ? ",spectrum=" SPECTRUM_TEXT : "");
    if (length < 0 || (size_t)length >= sizeof manifest->source_path)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "the name of the corpus is too long");
    manifest->codec = options->codec;
    manifest->metric = BSW_METRIC_L2;
    manifest->source_type = is_raw ? BSW_VECTOR_UINT8 : BSW_VECTOR_FLOAT32;
    manifest->source_rows = options->max_rows + options->queries;
    manifest->num_rows = options->rows;
    return BSW_OK;
}

static enum bsw_status train(const struct bsw_bench_corpus_options *options, bsw_vectors *vectors,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    const struct bsw_saq_training training = {
        .bits = options->bits, .segments = "auto", .seed = options->seed};
    struct bsw_sample sample;
    BSW_TRY(bsw_sample_create(vectors, manifest->metric, options->level, &sample, err));
    enum bsw_status status = bsw_train_saq_frame(&sample, &training, manifest, err);
    if (status == BSW_OK) status = bsw_choose_stage(&sample, manifest, err);
    if (status == BSW_OK) status = bsw_train_saq_exponents(&sample, manifest, err);
    bsw_sample_deinit(&sample);
    return status;
}

static enum bsw_status learn(const struct bsw_bench_corpus_options *options,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    const struct bsw_row_range range = {0, options->rows};
    bsw_vectors *vectors;
    if (manifest->codec == BSW_CODEC_RAW) {
        bsw_code_layout_init(&manifest->layout);
        manifest->bits = 8;
        manifest->stage_dims = options->dims;
        return bsw_code_layout_append(&manifest->layout, options->dims, 8, err);
    }
    BSW_TRY(bsw_vectors_open(manifest->source_path, range, &vectors, err));
    enum bsw_status status = train(options, vectors, manifest, err);
    bsw_vectors_close(&vectors);
    return status;
}

// A manifest travels with shards; every point is cut anew (bsw_bench_corpus_cut).
static enum bsw_status pack(const struct bsw_bench_corpus_options *options,
                            struct bsw_manifest *manifest, struct bsw_buffer *out,
                            struct bsw_error *err)
{
    BSW_TRY(describe(options, manifest, err));
    BSW_TRY(learn(options, manifest, err));
    BSW_TRY(bsw_manifest_cut_shards(manifest, 1, err));
    return bsw_manifest_pack(manifest, out, err);
}

static enum bsw_status receive(struct bsw_transport *transport, const struct bsw_message *message,
                               struct bsw_buffer *buffer, struct bsw_bench_corpus *out,
                               struct bsw_error *err)
{
    enum bsw_status status = bsw_transport_broadcast(transport, message, buffer, err);
    if (status == BSW_OK && transport->rank != 0)
        status = bsw_manifest_parse("corpus from rank 0", buffer->data, buffer->bytes,
                                    &out->manifest, err);
    return bsw_transport_agree(transport, status, err);
}

enum bsw_status bsw_bench_corpus_make(const struct bsw_bench_corpus_options *options,
                                      struct bsw_transport *transport, uint64_t *batch,
                                      struct bsw_bench_corpus *out, struct bsw_error *err)
{
    const struct bsw_message message = {
        .kind = MESSAGE_CORPUS, .batch = ++*batch, .name = "a corpus"};
    struct bsw_buffer buffer = {0};
    enum bsw_status status = BSW_OK;
    *out =
        (struct bsw_bench_corpus){.max_rows = options->max_rows, .num_queries = options->queries};
    if (transport->rank == 0) status = pack(options, &out->manifest, &buffer, err);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK) status = receive(transport, &message, &buffer, out, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

void bsw_bench_corpus_deinit(struct bsw_bench_corpus *corpus)
{
    bsw_manifest_deinit(&corpus->manifest);
}

enum bsw_status bsw_bench_corpus_cut(const struct bsw_bench_corpus *corpus, uint64_t rows,
                                     uint64_t shards, struct bsw_manifest *out,
                                     struct bsw_error *err)
{
    *out = corpus->manifest;
    out->num_rows = rows;
    return bsw_manifest_cut_shards(out, shards, err);
}
