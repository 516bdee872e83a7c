#include "coordinator/bench_search.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/fault_points.h"
#include "coordinator/batch_pipeline.h"
#include "coordinator/search_sizes.h"
#include "kernels/encode/raw_codes.h"

// ---- answers ----

void bsw_bench_answers_deinit(struct bsw_bench_answers *answers)
{
    bsw_free(&answers->ids);
    bsw_free(&answers->values);
    *answers = (struct bsw_bench_answers){0};
}

static enum bsw_status prepare_answers(struct bsw_bench_answers *answers, uint64_t num_queries,
                                       uint64_t k, struct bsw_error *err)
{
    bsw_bench_answers_deinit(answers);
    BSW_TRY(
        bsw_allocate_zero(&answers->ids, num_queries, k * sizeof *answers->ids, "answers", err));
    BSW_TRY(bsw_allocate_zero(&answers->values, num_queries, k * sizeof *answers->values, "answers",
                              err));
    answers->num_queries = num_queries;
    answers->k = k;
    return BSW_OK;
}

static enum bsw_status put_answers(void *context, uint64_t first, size_t count, const int64_t *ids,
                                   const float *values, struct bsw_error *err)
{
    struct bsw_bench_answers *answers = context;
    size_t k = (size_t)answers->k;
    (void)err;
    memcpy(answers->ids + first * k, ids, count * k * sizeof *ids);
    memcpy(answers->values + first * k, values, count * k * sizeof *values);
    if (BSW_FAULT(FLIP, 1, 0)) answers->ids[first * k] ^= 1;
    return BSW_OK;
}

int64_t bsw_bench_answers_differ(const struct bsw_bench_answers *answers,
                                 const struct bsw_bench_answers *expected)
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

static struct bsw_search_settings settle(const struct bsw_bench_search_options *options,
                                         const struct bsw_manifest *manifest)
{
    int is_raw = manifest->codec == BSW_CODEC_RAW;
    struct bsw_search_settings settings = {.query_bits =
                                               is_raw ? BSW_RAW_QUERY_BITS : options->query_bits,
                                           .k = options->k,
                                           .is_exact = !is_raw,
                                           .level = options->level,
                                           .num_threads = options->num_threads};
    settings.keep =
        is_raw ? options->k : bsw_search_keep(options->k, options->oversample, manifest->num_rows);
    return settings;
}

static enum bsw_status open_queries(struct bsw_bench_point *point,
                                    const struct bsw_bench_corpus *corpus, struct bsw_error *err)
{
    const struct bsw_row_range range = {corpus->max_rows, corpus->max_rows + corpus->num_queries};
    const struct bsw_search_settings *settings = &point->service.settings;
    return bsw_query_source_open(point->manifest.source_path, range, &point->manifest,
                                 settings->query_bits, settings->level, &point->queries, err);
}

enum bsw_status bsw_bench_point_open(struct bsw_bench_point *point, struct bsw_rank_group *group,
                                     const struct bsw_bench_corpus *corpus, uint64_t rows,
                                     uint64_t shards,
                                     const struct bsw_bench_search_options *options,
                                     struct bsw_error *err)
{
    const bsw_transport *ranks = &group->ranks;
    *point = (struct bsw_bench_point){.group = group};
    enum bsw_status status = bsw_bench_corpus_cut(corpus, rows, shards, &point->manifest, err);
    if (status == BSW_OK) {
        const struct bsw_search_settings settings = settle(options, &point->manifest);
        point->batch = (size_t)bsw_search_batch(&point->manifest, ranks->num_ranks, 0,
                                                settings.keep, options->batch);
        status = bsw_shard_service_open(&point->manifest, NULL, &settings, ranks->rank,
                                        ranks->num_ranks, 0, &point->service, err);
        point->is_open = 1;
    }
    if (status == BSW_OK && ranks->rank == 0) status = open_queries(point, corpus, err);
    return bsw_transport_agree(&group->ranks, status, err);
}

void bsw_bench_point_close(struct bsw_bench_point *point)
{
    if (point->is_open) {
        bsw_query_source_close(&point->queries);
        bsw_shard_service_close(&point->service);
    }
    bsw_free(&point->manifest.shards); // the rest is the corpus'
    point->is_open = 0;
}

uint64_t bsw_bench_num_gathered(const struct bsw_bench_point *point, uint64_t num_queries)
{
    uint64_t entries = 0, keep = point->service.settings.keep;
    for (uint32_t i = 0; i < point->manifest.num_shards; i++) {
        uint64_t rows = point->manifest.shards[i].num_rows;
        entries += rows < keep ? rows : keep;
    }
    return entries * num_queries;
}

// ---- a search of it ----

// What a search needs on one rank.
struct running {
    struct bsw_batch_search search;
    struct bsw_batch_pipeline pipeline; // the rest is rank 0's
    struct bsw_bench_pass *passes;      // [repeat]
    struct bsw_query_part part;
    struct bsw_bench_answers again; // of passes after the first
};

// The kernels and the merge that the variant asks for, over the codes that are there.
static void adapt(struct bsw_bench_point *point, const struct bsw_bench_variant *variant,
                  enum bsw_cpu_level level)
{
    struct bsw_shard_service *service = &point->service;
    int is_raw = point->manifest.codec == BSW_CODEC_RAW;
    bsw_scan_workspace_deinit(&service->workspace);
    bsw_scan_workspace_init(&service->workspace, level, service->settings.num_threads);
    service->workspace.scan = is_raw                  ? BSW_SCAN_MATRIX
                              : variant->is_reference ? BSW_SCAN_PLANES
                                                      : BSW_SCAN_AUTO;
    service->settings.level = level;
    service->settings.is_ladder = variant->is_ladder;
    point->queries.level = level;
}

static void reset(struct bsw_batch_search *search)
{
    struct bsw_scan_workspace *workspace = &search->service->workspace;
    search->times = (struct bsw_search_times){0};
    memset(search->exchanges, 0, sizeof search->exchanges);
    search->finish.num_survivors = 0;
    workspace->scan_seconds = workspace->refine_seconds = 0;
    workspace->scanned_bytes = 0;
}

static struct bsw_bench_pass take(const struct bsw_batch_search *search, double seconds,
                                  size_t batch)
{
    const struct bsw_scan_workspace *workspace = &search->service->workspace;
    struct bsw_bench_pass pass = {.seconds = seconds,
                                  .batch = batch,
                                  .times = search->times,
                                  .scan_seconds = workspace->scan_seconds,
                                  .refine_seconds = workspace->refine_seconds,
                                  .scanned_bytes = workspace->scanned_bytes,
                                  .num_survivors = search->finish.num_survivors};
    memcpy(pass.exchanges, search->exchanges, sizeof pass.exchanges);
    return pass;
}

static int compare_passes(const void *a, const void *b)
{
    double x = ((const struct bsw_bench_pass *)a)->seconds,
           y = ((const struct bsw_bench_pass *)b)->seconds;
    return (x > y) - (x < y);
}

// Rank 0.
static enum bsw_status run_passes(struct running *running, const struct bsw_bench_variant *variant,
                                  struct bsw_bench_answers *answers, struct bsw_error *err)
{
    struct bsw_batch_search *search = &running->search;
    struct bsw_batch_pipeline *pipeline = &running->pipeline;
    struct bsw_bench_pass *passes = running->passes;
    for (uint64_t i = 0; i < variant->warmup + variant->repeat; i++) {
        reset(search);
        pipeline->options.context = i == 0 ? answers : &running->again;
        double started = bsw_clock_seconds();
        BSW_TRY(bsw_batch_pipeline_run(pipeline, err));
        double seconds = bsw_clock_seconds() - started;
        if (i >= variant->warmup)
            passes[i - variant->warmup] = take(search, seconds, pipeline->options.batch);
        if (i > 0) answers->num_changed += bsw_bench_answers_differ(&running->again, answers);
    }
    qsort(passes, (size_t)variant->repeat, sizeof *passes, compare_passes);
    return BSW_OK;
}

// Rank 0's side, from the moment that the others serve.
static enum bsw_status lead(struct running *running, const struct bsw_bench_variant *variant,
                            struct bsw_bench_pass *median, struct bsw_bench_answers *answers,
                            struct bsw_error *err)
{
    enum bsw_status status = run_passes(running, variant, answers, err);
    if (status == BSW_OK) *median = running->passes[(variant->repeat - 1) / 2];
    return bsw_batch_search_end(&running->search, status, err);
}

static enum bsw_status prepare_lead(struct bsw_bench_point *point,
                                    const struct bsw_bench_variant *variant,
                                    struct running *running, struct bsw_bench_answers *answers,
                                    struct bsw_error *err)
{
    uint64_t batch = variant->batch > 0 ? variant->batch : point->batch;
    if (batch > variant->num_queries) batch = variant->num_queries;
    running->part = (struct bsw_query_part){0, variant->num_queries};
    const struct bsw_pipeline_options options = {.batch = (size_t)batch,
                                                 .num_threads = point->service.settings.num_threads,
                                                 .put = put_answers,
                                                 .parts = &running->part,
                                                 .num_parts = 1};
    BSW_TRY(
        bsw_allocate(&running->passes, variant->repeat, sizeof *running->passes, "passes", err));
    BSW_TRY(prepare_answers(answers, variant->num_queries, point->service.settings.k, err));
    BSW_TRY(prepare_answers(&running->again, variant->num_queries, point->service.settings.k, err));
    return bsw_batch_pipeline_init(&running->pipeline, &running->search, &options, err);
}

static enum bsw_status search_point(struct bsw_bench_point *point,
                                    const struct bsw_bench_variant *variant,
                                    struct running *running, struct bsw_bench_pass *pass,
                                    struct bsw_bench_answers *answers, struct bsw_error *err)
{
    bsw_transport *ranks = &point->group->ranks;
    struct bsw_batch_search *search = &running->search;
    enum bsw_status status = bsw_batch_search_init(search, ranks, &point->manifest, &point->service,
                                                   &point->queries, err);
    search->num_batches = point->group->batch + 1;
    if (status == BSW_OK && ranks->rank == 0)
        status = prepare_lead(point, variant, running, answers, err);
    BSW_TRY(bsw_transport_agree(ranks, status, err));
    status = ranks->rank == 0 ? lead(running, variant, pass, answers, err)
                              : bsw_batch_search_serve(search, err);
    point->group->batch = search->num_batches;
    return status; // which all have been told
}

enum bsw_status bsw_bench_point_run(struct bsw_bench_point *point,
                                    const struct bsw_bench_variant *variant,
                                    struct bsw_bench_pass *pass, struct bsw_bench_answers *answers,
                                    struct bsw_error *err)
{
    enum bsw_cpu_level level = point->service.settings.level;
    struct running running = {.passes = NULL};
    adapt(point, variant, variant->is_reference ? BSW_CPU_REFERENCE : level);
    enum bsw_status status = search_point(point, variant, &running, pass, answers, err);
    bsw_batch_pipeline_deinit(&running.pipeline);
    if (running.search.payloads) bsw_batch_search_deinit(&running.search);
    bsw_bench_answers_deinit(&running.again);
    bsw_free(&running.passes);
    point->service.settings.level = level;
    return status;
}
