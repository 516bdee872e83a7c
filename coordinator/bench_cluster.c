// bench cluster: the network between the ranks, and searches on 1, 2, 4, ... of them.
#include "coordinator/bench_cluster.h"

#include <math.h>
#include <string.h>

#include "common/word_list.h"
#include "coordinator/command_bench.h"
#include "coordinator/search_sizes.h"

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

static enum bsw_status check(struct bsw_cluster_options *o, int num_ranks, struct bsw_error *err)
{
    BSW_TRY(bsw_bench_options_check(&o->bench, err));
    BSW_TRY(parse_cases(o->cases_text, &o->cases, err));
    BSW_TRY(bsw_codec_parse(o->codec_text, &o->codec, err));
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

static enum bsw_status parse(struct bsw_bench_cluster *cluster, int argc, char **argv, int *done,
                             struct bsw_error *err)
{
    struct bsw_cluster_options *o = &cluster->options;
    const struct bsw_option options[] = {
        {"case", BSW_OPTION_TEXT, &o->cases_text, "CASE,...", BSW_CLUSTER_CASES, 0, 0, 0, NULL,
         "what to measure"},
        {"pairs", BSW_OPTION_CHOICE, &o->pairs, NULL, "root", 0, 0, 0, "root|all",
         "network: rank 0 with each other rank, or each with each"},
        BSW_BENCH_OPTIONS(o->bench, "bytes of a message", "8", "20M", "8", "5", "GB/s"),
        {"rows", BSW_OPTION_COUNT, &o->rows, "N", "100K", 0, 1, 1e9, NULL,
         "rows: of each rank (weak), of all together (strong, replicas)"},
        {"dims", BSW_OPTION_COUNT, &o->dims, "D", "128", 0, 1, BSW_SAQ_MAX_DIMS, NULL,
         "dimensions"},
        {"codec", BSW_OPTION_CHOICE, &o->codec_text, NULL, "saq", 0, 0, 0, "saq|raw",
         "codes; raw: uint8 rows as they are"},
        {"bits", BSW_OPTION_NUMBER, &o->bits, "B", "3", 0, 1, BSW_MAX_CODE_BITS, NULL,
         "bits a dimension, codec saq"},
        {"query-bits", BSW_OPTION_COUNT, &o->query_bits, "BQ", "6", 0, 1, BSW_MAX_QUERY_BITS, NULL,
         "bits a query component, codec saq"},
        {"queries", BSW_OPTION_COUNT, &o->queries, "N", "1000", 0, 1, 1e6, NULL,
         "queries of a pass"},
        {"batch", BSW_OPTION_COUNT, &o->batch, "N", BSW_SEARCH_BATCH_TEXT, 0, 1, 1e6, NULL,
         "queries at a time"},
        {"k", BSW_OPTION_COUNT, &o->k, "K", BSW_SEARCH_K_TEXT, 0, 1, BSW_SEARCH_MAX_K, NULL,
         "neighbours a query"},
        {"oversample", BSW_OPTION_NUMBER, &o->oversample, "X", BSW_SEARCH_OVERSAMPLE_TEXT, 0, 1,
         10000, NULL, "candidates to refine, times k; codec raw needs none"},
        {"sample", BSW_OPTION_COUNT, &o->sample, "N", "16", 0, 1, 1e6, NULL,
         "queries that plain C kernels answer too, for --check"},
        {"seed", BSW_OPTION_COUNT, &o->seed, "N", "1", 0, 0, 1e15, NULL, "of rows and queries"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {
        "bench cluster", "messages between ranks; searches on 1, 2, 4, ... of them; on CPUs",
        options, sizeof options / sizeof options[0]};
    BSW_TRY(bsw_command_parse(cluster->transport, &table, &o->common, argc, argv, done, err));
    if (*done) return BSW_OK;
    return check(o, cluster->transport->num_ranks, err);
}

// ---- rates ----

// Left out where it was not measured, or noise has made it what plan --rates would not take.
static void add_rate(json_t *object, const char *key, double rate)
{
    if (isfinite(rate) && rate > 0) json_object_set_new(object, key, json_real(rate));
}

static json_t *describe_code(const struct bsw_cluster_options *o, const char *scan)
{
    int is_raw = o->codec == BSW_CODEC_RAW;
    return json_pack(
        "{s:s, s:I, s:f, s:I, s:I, s:I, s:I, s:f, s:s}", "codec", bsw_codec_name(o->codec), "dims",
        (json_int_t)o->dims, "bits", is_raw ? 8.0 : o->bits, "query_bits",
        is_raw ? (json_int_t)8 : (json_int_t)o->query_bits, "rows", (json_int_t)o->rows, "batch",
        (json_int_t)(o->batch < o->queries ? o->batch : o->queries), "k", (json_int_t)o->k,
        "oversample", is_raw ? 1.0 : o->oversample, "scan", scan);
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

static enum bsw_status measure(struct bsw_bench_cluster *cluster, struct bsw_error *err)
{
    unsigned cases = cluster->options.cases;
    note_cores(cluster);
    if (cases & BSW_CLUSTER_NETWORK) BSW_TRY(bsw_cluster_network_run(cluster, err));
    if (cases & SEARCH_CASES) BSW_TRY(bsw_cluster_scaling_run(cluster, err));
    if (cluster->transport->rank == 0)
        bsw_bench_report_add(&cluster->report, "rates", describe_rates(cluster));
    return BSW_OK;
}

enum bsw_status bsw_bench_cluster(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err)
{
    const double none = (double)NAN;
    struct bsw_bench_cluster cluster = {
        .transport = transport,
        .rates = {none, none, none, none, none, none, none, none, none, NULL}};
    int done;
    BSW_TRY(parse(&cluster, argc, argv, &done, err));
    if (done) return BSW_OK;
    const struct bsw_bench_report_options options = {.name = "cluster",
                                                     .argc = argc,
                                                     .argv = argv,
                                                     .common = &cluster.options.common,
                                                     .bench = &cluster.options.bench};
    enum bsw_status status = bsw_bench_report_open(&cluster.report, &options, transport, err);
    bsw_rank_group_init(&cluster.group, transport, cluster.report.batch);
    if (status == BSW_OK) status = measure(&cluster, err);
    cluster.report.batch = cluster.group.batch;
    return bsw_bench_report_close(&cluster.report, status, err);
}
