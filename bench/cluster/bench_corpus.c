// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/bench_corpus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/net/message_kinds.h"
#include "common/rows/synth.h"
#include "coordinator/encode/encode_index.h"
#include "shard/codecs/codec.h"

// Clusters and a spectrum as SIFT's, so that scans that leave rows out find some to leave out.
#define NUM_CLUSTERS  1000
#define SPECTRUM_TEXT "0.625"

static enum bsw_status describe(const struct bsw_bench_corpus_options *options,
                                struct bsw_manifest *manifest, struct bsw_error *err)
{
    int takes_bytes = options->codec->table->takes_numbers;
    int length =
        snprintf(manifest->source_path, sizeof manifest->source_path,
                 "synth:count=%" PRIu64 ",dims=%" PRIu32 ",seed=%" PRIu64 ",clusters=%d%s%s",
                 options->max_rows + options->queries, options->dims, options->seed, NUM_CLUSTERS,
                 takes_bytes ? ",type=uint8" : "",
                 options->dims <= BSW_SYNTH_SPECTRUM_DIMS ? ",spectrum=" SPECTRUM_TEXT : "");
    if (length < 0 || (size_t)length >= sizeof manifest->source_path)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "the name of the corpus is too long");
    manifest->codec = options->codec;
    manifest->metric = BSW_METRIC_L2;
    manifest->source_type = takes_bytes ? BSW_VECTOR_UINT8 : BSW_VECTOR_FLOAT32;
    manifest->source_rows = options->max_rows + options->queries;
    manifest->num_rows = options->rows;
    return BSW_OK;
}

static enum bsw_status learn(const struct bsw_bench_corpus_options *options,
                             struct bsw_manifest *manifest, struct bsw_error *err)
{
    const struct bsw_codec_table *codec = manifest->codec->table;
    const struct bsw_row_range range = {0, options->rows};
    struct bsw_codec_settings settings = {.bits = codec->fixed_bits > 0 ? 0 : options->bits,
                                          .parts = options->parts,
                                          .seed = options->seed};
    if (manifest->codec->has_tables) settings.rotation = "none"; // rows have axes of their own
    struct bsw_sample sample;
    bsw_vectors *vectors;
    BSW_TRY(codec->check_settings(&settings, err));
    if (!codec->needs_sample)
        return codec->train(&settings, options->dims, NULL, NULL, manifest, err);
    BSW_TRY(bsw_vectors_open(manifest->source_path, range, &vectors, err));
    enum bsw_status status =
        bsw_sample_create(vectors, manifest->metric, options->level, &sample, err);
    if (status == BSW_OK)
        status = codec->train(&settings, options->dims, &sample, NULL, manifest, err);
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
    return status;
}

// A manifest travels with shards; every point is cut anew (bench_search.c).
static enum bsw_status make(const struct bsw_bench_corpus_options *options,
                            struct bsw_manifest *manifest, struct bsw_error *err)
{
    BSW_TRY(describe(options, manifest, err));
    BSW_TRY(learn(options, manifest, err));
    return bsw_manifest_cut_shards(manifest, 1, err);
}

enum bsw_status bsw_bench_corpus_make(const struct bsw_bench_corpus_options *options,
                                      struct bsw_transport *transport, uint64_t *batch,
                                      struct bsw_bench_corpus *out, struct bsw_error *err)
{
    const struct bsw_message message = {
        .kind = BSW_MESSAGE_BENCH_CORPUS, .batch = ++*batch, .name = "a corpus"};
    enum bsw_status status = BSW_OK;
    *out =
        (struct bsw_bench_corpus){.max_rows = options->max_rows, .num_queries = options->queries};
    if (transport->rank == 0) status = make(options, &out->manifest, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = bsw_manifest_share(transport, &message, &out->manifest, err);
    return bsw_transport_agree(transport, status, err);
}
