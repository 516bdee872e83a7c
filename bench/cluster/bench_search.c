// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/bench_search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/bench_report.h"
#include "common/base/fault_points.h"
#include "common/net/message_kinds.h"
#include "common/rows/synth.h"
#include "coordinator/encode/encode_pass.h"
#include "shard/codecs/codec.h"

// ---- answers ----

void bsw_bench_answers_deinit(struct bsw_bench_answers *answers)
{
    bsw_results_deinit(&answers->first);
    *answers = (struct bsw_bench_answers){0};
}

int64_t bsw_bench_answers_differ(const struct bsw_results *answers,
                                 const struct bsw_results *expected)
{
    int64_t num_wrong = 0;
    size_t k = (size_t)answers->k;
    for (uint64_t q = 0; q < answers->num_queries; q++) {
        num_wrong +=
            memcmp(answers->ids + q * k, expected->ids + q * k, k * sizeof *answers->ids) != 0 ||
            memcmp(answers->values + q * k, expected->values + q * k,
                   k * sizeof *answers->values) != 0;
    }
    return num_wrong;
}

// ---- the point ----

enum bsw_status bsw_bench_point_open(struct bsw_bench_point *point, struct bsw_rank_group *group,
                                     const struct bsw_bench_corpus *corpus, uint64_t rows,
                                     uint64_t shards,
                                     const struct bsw_bench_search_options *options,
                                     struct bsw_error *err)
{
    static const struct bsw_device_choice on_cpus = {.text = "cpu"};
    *point = (struct bsw_bench_point){.group = group, .first_query = corpus->max_rows};
    point->manifest = corpus->manifest;
    point->manifest.num_rows = rows;
    enum bsw_status status = bsw_manifest_cut_shards(&point->manifest, shards, err);
    BSW_TRY(bsw_transport_agree(&group->ranks, status, err));
    int has_bits = !point->manifest.codec->has_bytes && !point->manifest.codec->has_tables;
    const struct bsw_search_options search = {
        .manifest = &point->manifest,
        .request = {.k = options->k,
                    .query_bits = has_bits ? options->query_bits : 0,
                    .oversample = options->oversample,
                    // GATHER fits the smallest batch.
                    .merge = options->device ? BSW_MERGE_AUTO : BSW_MERGE_GATHER,
                    .batch = options->batch,
                    .level = options->level,
                    .num_threads = options->num_threads},
        .device = options->device ? *options->device : on_cpus,
        .link = options->device ? options->link : BSW_LINK_MPI,
        .overlap = BSW_OVERLAP_OFF,
        .is_unchecked = 1};
    BSW_TRY(bsw_search_open(&point->search, &group->ranks, &search, err));
    return bsw_search_load(&point->search, err);
}

void bsw_bench_point_close(struct bsw_bench_point *point)
{
    bsw_search_close(&point->search);
    bsw_free(&point->manifest.shards); // the rest is the corpus'
}

uint64_t bsw_bench_num_gathered(const struct bsw_bench_point *point, uint64_t num_queries)
{
    uint64_t entries = 0, keep = point->search.settings.keep;
    for (uint32_t i = 0; i < point->manifest.num_shards; i++) {
        uint64_t rows = point->manifest.shards[i].num_rows;
        entries += rows < keep ? rows : keep;
    }
    return entries * num_queries;
}

// ---- a search of it ----

// The kernels, the merge and the batch that the variant asks for, over the codes that are there.
static void adapt(struct bsw_bench_point *point, const struct bsw_bench_variant *variant)
{
    struct bsw_search *search = &point->search;
    struct bsw_shard_service *service = &search->service;
    const struct bsw_search_request *request = &search->options.request;
    enum bsw_cpu_level level = variant->is_reference ? BSW_CPU_REFERENCE : request->level;
    int has_bytes = point->manifest.codec->has_bytes;
    bsw_scan_workspace_deinit(&service->workspace);
    bsw_scan_workspace_init(&service->workspace, level, service->settings.num_threads);
    service->workspace.scan = point->manifest.codec->has_tables ? BSW_SCAN_AUTO
                              : has_bytes                       ? BSW_SCAN_MATRIX
                              : variant->is_reference           ? BSW_SCAN_PLANES
                                                                : BSW_SCAN_AUTO;
    if (point->full_batch == 0) point->full_batch = search->settings.batch;
    search->settings.batch = variant->batch > 0 ? (size_t)variant->batch : point->full_batch;
    if (search->settings.batch > variant->num_queries)
        search->settings.batch = (size_t)variant->num_queries;
    search->settings.level = service->settings.level = level;
    if (service->settings.merge_place == BSW_MERGE_ON_HOST)
        service->settings.is_ladder = variant->is_ladder;
    struct bsw_batch_merge *const merges[] = {&search->batches.merge, &search->batches.finish};
    for (int i = 0; i < 2; i++) {
        bsw_batch_merge_deinit(merges[i]);
        bsw_batch_merge_init(merges[i], &search->manifest, &service->settings, service->assignment);
    }
}

static struct bsw_bench_pass take(const struct bsw_search *search)
{
    const struct bsw_search_rank *rank = &search->ranks[0];
    struct bsw_bench_pass pass = {.seconds = search->seconds[0],
                                  .batch = search->settings.batch,
                                  .merge = bsw_search_merge_name(&search->service.settings),
                                  .times = search->batches.times,
                                  .scan_seconds = rank->scan_seconds,
                                  .refine_seconds = rank->refine_seconds,
                                  .scanned_bytes = rank->scanned_bytes,
                                  .num_survivors = search->batches.finish.num_survivors};
    memcpy(pass.exchanges, search->batches.exchanges, sizeof pass.exchanges);
    return pass;
}

static int compare_passes(const void *a, const void *b)
{
    double x = ((const struct bsw_bench_pass *)a)->seconds,
           y = ((const struct bsw_bench_pass *)b)->seconds;
    return (x > y) - (x < y);
}

// Every pass is a run of its own; `again` gets the answers of those after the first.
static enum bsw_status run_passes(struct bsw_bench_point *point,
                                  const struct bsw_bench_variant *variant,
                                  struct bsw_bench_pass *passes, struct bsw_bench_answers *answers,
                                  struct bsw_results *again, struct bsw_error *err)
{
    struct bsw_search *search = &point->search;
    for (uint64_t i = 0; i < variant->warmup + variant->repeat; i++) {
        struct bsw_results *kept = i == 0 ? &answers->first : again;
        const struct bsw_search_sink sink = {.answers = bsw_memory_sink(kept)};
        const struct bsw_search_run run = {
            .queries = point->manifest.source_path,
            .query_rows = {point->first_query, point->first_query + variant->num_queries},
            .repeat = 1,
            .sink = &sink};
        BSW_TRY(bsw_search_run(search, &run, err));
        if (search->transport->rank != 0) continue;
        if (BSW_FAULT(FLIP, 1, 0)) kept->ids[0] ^= 1;
        if (i >= variant->warmup) passes[i - variant->warmup] = take(search);
        if (i > 0) answers->num_changed += bsw_bench_answers_differ(again, &answers->first);
    }
    qsort(passes, (size_t)variant->repeat, sizeof *passes, compare_passes);
    return BSW_OK;
}

enum bsw_status bsw_bench_point_run(struct bsw_bench_point *point,
                                    const struct bsw_bench_variant *variant,
                                    struct bsw_bench_pass *pass, struct bsw_bench_answers *answers,
                                    struct bsw_error *err)
{
    struct bsw_search *search = &point->search;
    struct bsw_bench_pass *passes;
    struct bsw_results again = {0};
    bsw_bench_answers_deinit(answers);
    adapt(point, variant);
    enum bsw_status status =
        bsw_allocate_zero(&passes, variant->repeat, sizeof *passes, "passes", err);
    status = bsw_transport_agree(search->transport, status, err);
    search->batches.num_batches = point->group->batch + 1;
    if (status == BSW_OK) status = run_passes(point, variant, passes, answers, &again, err);
    point->group->batch = search->batches.num_batches;
    if (status == BSW_OK) *pass = passes[(variant->repeat - 1) / 2];
    bsw_results_deinit(&again);
    bsw_free(&passes);
    return status;
}

// ---- the corpus ----

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

// ---- groups of ranks ----

// What members have counted, for those who waited.
struct counts {
    uint64_t num_agreements, batch;
};

void bsw_rank_group_begin(struct bsw_rank_group *group, int num_ranks)
{
    group->ranks = *group->whole;
    group->ranks.num_ranks = num_ranks;
    group->first_batch = ++group->batch;
}

static enum bsw_status release(struct bsw_rank_group *group, const struct bsw_message *message,
                               struct bsw_error *err)
{
    const struct counts counts = {group->ranks.num_agreements, group->batch};
    for (int rank = group->ranks.num_ranks; rank < group->whole->num_ranks; rank++)
        BSW_TRY(bsw_transport_send(group->whole, rank, message, &counts, sizeof counts, err));
    return BSW_OK;
}

static enum bsw_status await_release(struct bsw_rank_group *group,
                                     const struct bsw_message *message, struct bsw_error *err)
{
    struct bsw_buffer data = {0};
    struct counts counts;
    enum bsw_status status = bsw_transport_receive(group->whole, 0, message, &data, NULL, err);
    if (status == BSW_OK && data.bytes != sizeof counts)
        status = bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent counts of a wrong size");
    if (status == BSW_OK) {
        memcpy(&counts, data.data, sizeof counts);
        group->whole->num_agreements = counts.num_agreements;
        group->batch = counts.batch;
    }
    bsw_buffer_deinit(&data);
    return status;
}

enum bsw_status bsw_rank_group_end(struct bsw_rank_group *group, enum bsw_status status,
                                   struct bsw_error *err)
{
    bsw_transport *whole = group->whole;
    const struct bsw_message message = {
        .kind = BSW_MESSAGE_BENCH_END, .batch = group->first_batch, .name = "the end of a group"};
    if (!bsw_rank_group_is_member(group))
        return bsw_transport_agree(whole, await_release(group, &message, err), err);
    whole->num_agreements = group->ranks.num_agreements;
    whole->broken = group->ranks.broken;
    whole->broken_error = group->ranks.broken_error;
    if (whole->broken != BSW_OK) return status != BSW_OK ? status : whole->broken;
    status = bsw_own_status(whole, status, err);
    if (whole->rank == 0) {
        struct bsw_error unsent;
        enum bsw_status released = release(group, &message, &unsent);
        if (status == BSW_OK && released != BSW_OK) {
            status = released;
            if (err) *err = unsent;
        }
    }
    return bsw_transport_agree(whole, status, err);
}
