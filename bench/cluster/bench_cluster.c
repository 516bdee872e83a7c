// SPDX-License-Identifier: Apache-2.0
// bench cluster: the network between the ranks, and searches on 1, 2, 4, ... of them.
#include "bench/cluster/bench_cluster.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/report/bench_report.h"
#include "common/base/number_parse.h"
#include "coordinator/search/search_settings.h"
#include "shard/codecs/codec.h"

#define SEARCH_CASES                                                                       \
    (BSW_CLUSTER_EXCHANGE | BSW_CLUSTER_WEAK | BSW_CLUSTER_STRONG | BSW_CLUSTER_REPLICAS | \
     BSW_CLUSTER_MERGE)

// ---- options ----

// In the order of the bits.
static enum bsw_status parse_cases(const char *text, unsigned *out, struct bsw_error *err)
{
    static const char *const names[] = {"network", "exchange", "weak",
                                        "strong",  "replicas", "merge"};
    char word[32];
    *out = 0;
    while (bsw_word_take(&text, ',', word, sizeof word)) {
        size_t i = 0;
        while (i < sizeof names / sizeof names[0] && strcmp(names[i], word) != 0) i++;
        if (i == sizeof names / sizeof names[0])
            return bsw_fail(err, BSW_ERROR_USAGE, "--case '%s': none of %s", word,
                            BSW_CLUSTER_CASES);
        *out |= 1u << i;
    }
    return BSW_OK;
}

static enum bsw_status check_parts(struct bsw_cluster_options *o, struct bsw_error *err)
{
    if (o->bits != 4 && o->bits != 8)
        return bsw_fail(err, BSW_ERROR_USAGE, "--bits %g: --codec pq has 4 or 8 a subspace",
                        o->bits);
    if (o->parts == 0) o->parts = (uint64_t)ceil(2 * (double)o->dims / o->bits);
    if (o->parts > o->dims)
        return bsw_fail(err, BSW_ERROR_USAGE, "--subspaces %llu: rows have %llu dims",
                        (unsigned long long)o->parts, (unsigned long long)o->dims);
    return BSW_OK;
}

static enum bsw_status check(struct bsw_cluster_options *o, int num_ranks, struct bsw_error *err)
{
    BSW_TRY(bsw_bench_options_check(&o->bench, err));
    BSW_TRY(parse_cases(o->cases_text, &o->cases, err));
    BSW_TRY(bsw_device_choice_check(o->device.text, err));
    BSW_TRY(bsw_codec_parse(o->codec_text, &o->codec, err));
    if (o->codec->has_tables) BSW_TRY(check_parts(o, err));
    uint64_t least = o->k > (uint64_t)num_ranks ? o->k : (uint64_t)num_ranks;
    if (o->rows < least)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--rows %llu: %llu at least, for --k %llu and a shard on each of %d ranks",
                        (unsigned long long)o->rows, (unsigned long long)least,
                        (unsigned long long)o->k, num_ranks);
    if (o->bench.least > 0 && (!(o->cases & BSW_CLUSTER_NETWORK) || num_ranks == 1))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--least %g: only case network, on two ranks or more, has an average",
                        o->bench.least);
    if (o->sample > o->queries) o->sample = o->queries;
    return BSW_OK;
}

#define OPTION(name, member, ...) BSW_OPTION(struct bsw_cluster_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("case", cases_text, .value_name = "CASE,...", .default_text = BSW_CLUSTER_CASES,
           .help = "what to measure"),
    OPTION("pairs", pairs, .choices = "root|all", .default_text = "root",
           .help = "network: rank 0 with each other rank, or each with each"),
    BSW_BENCH_OPTIONS(struct bsw_cluster_options, "bytes of a message", "8", "20M", "8", "5",
                      "GB/s"),
    OPTION("rows", rows, .value_name = "N", .default_text = "100K", .min = 1, .max = 1e9,
           .help = "rows: of each rank (weak), of all together (strong, replicas)"),
    OPTION("dims", dims, .value_name = "D", .default_text = "128", .min = 1, .max = 4096,
           .help = "dimensions"),
    OPTION("codec", codec_text, .choices = "saq|pq|raw", .default_text = "saq",
           .help = "codes; raw: uint8 rows as they are"),
    OPTION("bits", bits, .value_name = "B", .default_text = "3", .min = 1, .max = BSW_MAX_CODE_BITS,
           .help = "bits a dimension, codec saq; of a subspace, codec pq: 4 or 8"),
    OPTION("subspaces", parts, .value_name = "M", .min = 0, .max = 4096, .default_text = "0",
           .help = "parts of a code, codec pq; 0: 2 bits a dimension"),
    OPTION("query-bits", query_bits, .value_name = "BQ", .default_text = "6", .min = 1,
           .max = BSW_MAX_QUERY_BITS, .help = "bits a query component, codec saq"),
    OPTION("queries", queries, .value_name = "N", .default_text = "1000", .min = 1, .max = 1e6,
           .help = "queries of a pass"),
    OPTION("batch", batch, .value_name = "N", .default_text = BSW_SEARCH_BATCH_TEXT, .min = 1,
           .max = 1e6, .help = "queries at a time"),
    OPTION("k", k, .value_name = "K", .default_text = BSW_SEARCH_K_TEXT, .min = 1,
           .max = BSW_SEARCH_MAX_K, .help = "neighbours a query"),
    OPTION("oversample", oversample, .value_name = "X", .default_text = BSW_SEARCH_OVERSAMPLE_TEXT,
           .min = 1, .max = 10000, .help = "candidates to refine, times k; codec raw needs none"),
    OPTION("sample", sample, .value_name = "N", .default_text = "16", .min = 1, .max = 1e6,
           .help = "queries that plain C kernels answer too, for --check"),
    OPTION("device", device.text, .value_name = "cpu|auto|cuda|cuda:N", .default_text = "cpu",
           .help = "where to search; on GPUs network measures the link between them, too"),
    OPTION("link", link, .choices = "auto|mpi|nccl", .default_text = "auto",
           .help = "between GPUs, as search has it"),
    OPTION("seed", seed, .value_name = "N", .default_text = "1", .max = 1e15,
           .help = "of rows and queries"),
    BSW_OPTION_GROUP(struct bsw_cluster_options, common, bsw_common_option_group),
};

// ---- rates ----

// Left out where it was not measured, or noise has made it what plan --rates would not take.
static void add_rate(json_t *object, const char *key, double rate)
{
    if (isfinite(rate) && rate > 0) json_object_set_new(object, key, json_real(rate));
}

static json_t *describe_code(const struct bsw_cluster_options *o, const char *scan)
{
    int is_final = o->codec->table->has_exact_keys;
    json_t *code = json_pack(
        "{s:s, s:I, s:f, s:I, s:I, s:I, s:I, s:f, s:s}", "codec", bsw_codec_name(o->codec), "dims",
        (json_int_t)o->dims, "bits", is_final ? 8.0 : o->bits, "query_bits",
        is_final ? (json_int_t)8 : (json_int_t)o->query_bits, "rows", (json_int_t)o->rows, "batch",
        (json_int_t)(o->batch < o->queries ? o->batch : o->queries), "k", (json_int_t)o->k,
        "oversample", is_final ? 1.0 : o->oversample, "scan", scan);
    if (o->codec->has_tables)
        json_object_set_new(code, "subspaces", json_integer((json_int_t)o->parts));
    return code;
}

static json_t *describe_rates(const struct bsw_bench_cluster *cluster)
{
    const struct bsw_cluster_options *o = &cluster->options;
    const struct bsw_cluster_rates *rates = &cluster->rates;
    json_t *object = json_object();
    add_rate(object, "alpha_seconds", rates->alpha_seconds);
    add_rate(object, "beta_seconds_per_byte", rates->beta_seconds_per_byte);
    add_rate(object, "scan_pairs_per_second", rates->scan_pairs);
    add_rate(object, "scan_bytes_per_second", rates->scan_bytes);
    add_rate(object, "encode_queries_per_second", rates->encode_queries);
    add_rate(object, "merge_candidates_per_second", rates->merge_candidates);
    add_rate(object, "refine_rows_per_second", rates->refine_rows);
    add_rate(object, "finish_queries_per_second", rates->finish_queries);
    add_rate(object, "busy_core_share", rates->busy_core_share);
    json_object_set_new(object, "cores", json_integer(bsw_num_usable_cpus(&o->common.pinning)));
    json_object_set_new(object, "threads", json_integer((json_int_t)o->common.threads));
    json_object_set_new(object, "ranks", json_integer(cluster->transport->num_ranks));
    if (rates->scan) json_object_set_new(object, "code", describe_code(o, rates->scan));
    return object;
}

// ---- the command ----

static void note_cores(struct bsw_bench_cluster *cluster)
{
    const struct bsw_transport *transport = cluster->transport;
    uint64_t threads = cluster->options.common.threads * (uint64_t)transport->num_local_ranks;
    int cores = bsw_num_usable_cpus(&cluster->options.common.pinning);
    if (threads > (uint64_t)cores)
        bsw_bench_report_note(&cluster->report,
                              "%llu threads share %d cores on rank 0's host: more ranks cannot be "
                              "faster there",
                              (unsigned long long)threads, cores);
}

struct device_id {
    char text[BSW_DEVICE_ID_BYTES];
};

// Ranks that share a device show that everything works there, and no speed.
static enum bsw_status find_sharers(struct bsw_bench_cluster *cluster, struct bsw_error *err)
{
    size_t num_ranks = (size_t)cluster->transport->num_ranks, num_shared = 0;
    struct device_id own = {""}, *all;
    if (cluster->chosen.device)
        snprintf(own.text, sizeof own.text, "%s", bsw_device_id(cluster->chosen.device));
    enum bsw_status status = bsw_allocate(&all, num_ranks, sizeof *all, "devices", err);
    BSW_TRY(bsw_transport_agree(cluster->transport, status, err));
    cluster->report.batch = cluster->group.batch;
    status = bsw_bench_report_gather(&cluster->report, &own, sizeof own, all, err);
    cluster->group.batch = cluster->report.batch;
    for (size_t a = 0; cluster->transport->rank == 0 && a < num_ranks; a++)
        for (size_t b = 0; b < a; b++)
            num_shared += all[a].text[0] != '\0' && strcmp(all[a].text, all[b].text) == 0;
    bsw_free(&all);
    BSW_TRY(bsw_transport_agree(cluster->transport, status, err));
    cluster->is_shared = num_shared > 0;
    if (cluster->is_shared)
        bsw_bench_report_note(&cluster->report,
                              "functional: ranks share a GPU, so figures are not a cluster's");
    bsw_bench_report_add(&cluster->report, "functional", json_boolean(cluster->is_shared));
    return BSW_OK;
}

// The link between devices; searches open their own.
static enum bsw_status measure_devices(struct bsw_bench_cluster *cluster, struct bsw_error *err)
{
    enum bsw_status status = find_sharers(cluster, err);
    if (status == BSW_OK && cluster->options.cases & BSW_CLUSTER_NETWORK)
        status = bsw_cluster_link_run(cluster, err);
    bsw_device_close(&cluster->chosen.device);
    return status;
}

static enum bsw_status measure(struct bsw_bench_cluster *cluster, struct bsw_error *err)
{
    unsigned cases = cluster->options.cases;
    note_cores(cluster);
    if (cases & BSW_CLUSTER_NETWORK) BSW_TRY(bsw_cluster_network_run(cluster, err));
    if (bsw_cluster_has_devices(&cluster->options)) BSW_TRY(measure_devices(cluster, err));
    if (cases & SEARCH_CASES) BSW_TRY(bsw_cluster_scaling_run(cluster, err));
    // plan computes with rates of CPUs.
    if (cluster->transport->rank == 0 && !bsw_cluster_has_devices(&cluster->options))
        bsw_bench_report_add(&cluster->report, "rates", describe_rates(cluster));
    return BSW_OK;
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    const double none = (double)NAN;
    struct bsw_bench_cluster cluster = {
        .transport = transport,
        .rates = {none, none, none, none, none, none, none, none, none, NULL}};
    BSW_TRY(check(options, transport->num_ranks, err));
    cluster.options = *(const struct bsw_cluster_options *)options;
    if (bsw_cluster_has_devices(&cluster.options))
        BSW_TRY(
            bsw_device_choice_open(&cluster.options.device, NULL, transport, &cluster.chosen, err));
    const struct bsw_bench_report_options report = {.name = "cluster",
                                                    .common = &cluster.options.common,
                                                    .bench = &cluster.options.bench,
                                                    .device = cluster.chosen.device};
    enum bsw_status status = bsw_bench_report_open(&cluster.report, &report, transport, err);
    cluster.group = (struct bsw_rank_group){transport, *transport, cluster.report.batch, 0};
    if (status == BSW_OK) status = measure(&cluster, err);
    cluster.report.batch = cluster.group.batch;
    bsw_device_close(&cluster.chosen.device);
    return bsw_bench_report_close(&cluster.report, status, err);
}

const struct bsw_command bsw_bench_cluster =
    BSW_COMMAND("bench cluster", "messages between ranks; searches on 1, 2, 4, ... of them",
                struct bsw_cluster_options, BSW_ALL_RANKS);
