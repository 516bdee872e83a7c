// SPDX-License-Identifier: Apache-2.0
// bench cluster, cases weak, strong, replicas, merge and exchange: searches of a made corpus on 1,
// 2, 4, ... of the ranks, by the code of `search`.
#include <math.h>
#include <string.h>

#include "bench/cluster/bench_cluster.h"
#include "bench/cluster/bench_search.h"

// Shards of the point on one rank that tells what merging costs without a network.
#define MERGED_SHARDS 8u
// Queries of the searches of one query at a time.
#define SINGLE_QUERIES 32u
// Rows of the table of exchanges come from: twice weak, once strong, once replicas, each for up to
// 32 numbers of ranks.
#define MAX_RECORDS 128

static const struct bsw_bench_column columns[] = {
    {"case", "", "case", 8, BSW_BENCH_TEXT, 1},
    {"ranks", "", "ranks", 5, 0, 1},
    {"shards", "", "shards", 6, 0, 1},
    {"merging", "", "merge", 7, BSW_BENCH_TEXT, 1},
    {"batch", "", "batch", 6, 0, 1},
    {"rows", "", "rows", 10, 0, 1},
    {"time", "ms", "seconds", 9, 2, 1e3},
    {"queries", "1/s", "queries_per_second", 9, 1, 1},
    {"pairs", "G/s", "pairs_per_second", 8, 3, 1e-9},
    {"eff", "%", "efficiency", 6, 1, 100},
    {"encode", "ms", "encode_seconds", 8, 2, 1e3},
    {"bcast", "ms", "broadcast_seconds", 8, 2, 1e3},
    {"scan", "ms", "scan_seconds", 8, 2, 1e3},
    {"merge", "ms", "merge_seconds", 8, 2, 1e3},
    {"refine", "ms", "refine_seconds", 8, 2, 1e3},
    {"finish", "ms", "finish_seconds", 8, 2, 1e3},
};
enum { NUM_COLUMNS = sizeof columns / sizeof columns[0] };

static const struct bsw_bench_column exchange_columns[] = {
    {"case", "", "case", 8, BSW_BENCH_TEXT, 1},
    {"ranks", "", "ranks", 5, 0, 1},
    {"shards", "", "shards", 6, 0, 1},
    {"merging", "", "merge", 7, BSW_BENCH_TEXT, 1},
    {"exchange", "", "exchange", 10, BSW_BENCH_TEXT, 1},
    {"size", "B", "bytes", 11, 0, 1},
    {"wait", "us", "wait_seconds", 10, 1, 1e6},
    {"time", "us", "seconds", 10, 1, 1e6},
    {"rate", "GB/s", "bytes_per_second", 9, 3, 1e-9},
    {"model", "us", "model_seconds", 10, 1, 1e6},
    {"share", "%", "share_of_pass", 6, 2, 100},
};
enum { NUM_EXCHANGE_COLUMNS = sizeof exchange_columns / sizeof exchange_columns[0] };

// What was measured, for the table of exchanges.
struct record {
    const char *name;
    int num_ranks;
    uint32_t num_shards;
    struct bsw_bench_pass pass;
};

struct scaling {
    struct bsw_bench_cluster *cluster;
    struct bsw_bench_corpus corpus;
    struct bsw_bench_search_options search;
    struct bsw_bench_answers alone; // of one rank over the rows of one, all queries
    double alone_seconds, alone_scan_seconds;
    struct record *records; // [MAX_RECORDS]
    size_t num_records;
};

// A corpus on some ranks, and what is searched there. Answers must be those of one rank where it
// has the same rows, else a sample of them those of the reference.
struct visit {
    const char *name;
    int num_ranks;
    uint64_t rows, shards;
    int is_alone;   // the rows of one rank on one: what all is compared with
    int has_gather; // also with that merge
    int has_single; // also one query at a time
};

static int is_root(const struct scaling *s)
{
    return s->cluster->transport->rank == 0;
}

// ---- rows ----

// 1 where a rank does in the same time what one rank did alone; NAN for another kind of search.
static double efficiency_of(const struct scaling *s, const struct visit *v, double seconds)
{
    uint64_t rows = s->cluster->options.rows;
    if (v->num_ranks == 1 && !v->is_alone) return (double)NAN;
    double work = (double)v->rows / (double)rows / v->num_ranks; // of a rank, 1 when it is alone
    return s->alone_seconds * work / seconds;
}

// Cannot fail: the other ranks go on.
static void put_row(struct scaling *s, const struct visit *v, const char *name,
                    const struct bsw_bench_variant *variant, const struct bsw_bench_pass *pass,
                    int64_t errors)
{
    const struct bsw_search_times *t = &pass->times;
    double queries = (double)variant->num_queries / pass->seconds;
    int is_single = variant->batch == 1;
    const struct bsw_bench_value values[NUM_COLUMNS] = {
        bsw_bench_text(name),
        bsw_bench_number(v->num_ranks),
        bsw_bench_number((double)v->shards),
        bsw_bench_text(pass->merge),
        bsw_bench_number((double)pass->batch),
        bsw_bench_number((double)v->rows),
        bsw_bench_number(pass->seconds),
        bsw_bench_number(queries),
        bsw_bench_number(queries * (double)v->rows),
        bsw_bench_number(is_single ? (double)NAN : efficiency_of(s, v, pass->seconds)),
        bsw_bench_number(t->encode),
        bsw_bench_number(t->broadcast),
        bsw_bench_number(t->scan),
        bsw_bench_number(t->merge),
        bsw_bench_number(t->refine),
        bsw_bench_number(t->finish)};
    bsw_bench_report_row(&s->cluster->report, values, errors);
    if (v->num_ranks > 1 && s->num_records < MAX_RECORDS)
        s->records[s->num_records++] =
            (struct record){name, v->num_ranks, (uint32_t)v->shards, *pass};
}

// ---- rates ----

static void note_scan(struct scaling *s, const struct visit *v, const struct bsw_bench_point *point,
                      const struct bsw_bench_pass *pass)
{
    struct bsw_cluster_rates *rates = &s->cluster->rates;
    double queries = (double)s->corpus.num_queries;
    rates->scan = bsw_scan_name(point->search.service.workspace.used);
    rates->scan_pairs = (double)v->rows * queries / pass->scan_seconds;
    rates->encode_queries = queries / pass->times.encode;
    rates->finish_queries = queries / pass->times.finish;
    if (point->search.service.settings.is_exact)
        rates->refine_rows = (double)pass->num_survivors / pass->refine_seconds;
    bsw_bench_report_note(&s->cluster->report, "scan %s, level %s, L %llu", rates->scan,
                          point->search.service.workspace.plane_scan->level,
                          (unsigned long long)point->search.service.settings.keep);
}

// Ranks of one thread on all cores of the only host, each with as much to scan as one alone.
static void note_busy(struct scaling *s, const struct visit *v, const struct bsw_bench_pass *pass)
{
    const struct bsw_cluster_options *o = &s->cluster->options;
    const struct bsw_transport *transport = s->cluster->transport;
    int has_all_cores = o->common.threads == 1 &&
                        v->num_ranks == bsw_num_usable_cpus(&o->common.pinning) &&
                        transport->num_host_ranks == transport->num_ranks;
    if (v->num_ranks > 1 && has_all_cores && v->rows == o->rows * (uint64_t)v->num_ranks)
        s->cluster->rates.busy_core_share = fmin(1, s->alone_scan_seconds / pass->scan_seconds);
}

// Merging alone: without telling the cuts to others and waiting for them.
static void note_merge(struct scaling *s, const struct bsw_bench_point *point,
                       const struct bsw_bench_pass *pass)
{
    const struct bsw_exchange_cost *cuts = &pass->exchanges[BSW_EXCHANGE_CUTS];
    double seconds = pass->times.merge - cuts->wait_seconds - cuts->seconds;
    s->cluster->rates.merge_candidates =
        (double)bsw_bench_num_gathered(point, s->corpus.num_queries) / seconds;
}

// ---- one visit, on the members ----

static struct bsw_bench_variant usual(const struct scaling *s, int num_ranks)
{
    const struct bsw_bench_options *bench = &s->cluster->options.bench;
    return (struct bsw_bench_variant){.is_ladder = num_ranks > 1,
                                      .num_queries = s->corpus.num_queries,
                                      .warmup = bench->warmup,
                                      .repeat = bench->repeat};
}

static int is_checked(const struct scaling *s)
{
    return bsw_bench_is_checked(&s->cluster->options.bench);
}

// On rank 0, of answers that should be the first of `expected`.
static int64_t judge(const struct scaling *s, const struct bsw_bench_answers *answers,
                     const struct bsw_bench_answers *expected)
{
    if (!is_root(s) || !is_checked(s)) return BSW_BENCH_UNCHECKED;
    return bsw_bench_answers_differ(&answers->first, &expected->first) + answers->num_changed;
}

// Codes that are on a device by now the CPU has no more.
static enum bsw_status run_on_cpus(struct scaling *s, const struct visit *v,
                                   const struct bsw_bench_variant *variant,
                                   struct bsw_bench_pass *pass, struct bsw_bench_answers *answers,
                                   struct bsw_error *err)
{
    struct bsw_bench_search_options options = s->search;
    struct bsw_bench_point point;
    options.device = NULL;
    enum bsw_status status = bsw_bench_point_open(&point, &s->cluster->group, &s->corpus, v->rows,
                                                  v->shards, &options, err);
    if (status == BSW_OK) status = bsw_bench_point_run(&point, variant, pass, answers, err);
    bsw_bench_point_close(&point);
    return status;
}

// The first queries by plain C kernels and the other merge.
static enum bsw_status run_reference(struct scaling *s, const struct visit *v,
                                     struct bsw_bench_point *point,
                                     const struct bsw_bench_answers *answers, int64_t *errors,
                                     struct bsw_error *err)
{
    const struct bsw_bench_variant reference = {
        .is_reference = 1, .num_queries = s->cluster->options.sample, .repeat = 1};
    struct bsw_bench_answers sample = {0};
    struct bsw_bench_pass pass;
    *errors = BSW_BENCH_UNCHECKED;
    if (!is_checked(s)) return BSW_OK;
    enum bsw_status status = s->search.device
                                 ? run_on_cpus(s, v, &reference, &pass, &sample, err)
                                 : bsw_bench_point_run(point, &reference, &pass, &sample, err);
    if (status == BSW_OK && is_root(s)) *errors = judge(s, &sample, answers) + answers->num_changed;
    bsw_bench_answers_deinit(&sample);
    return status;
}

// The same point searched in another way: the same answers.
static enum bsw_status run_other(struct scaling *s, const struct visit *v, const char *name,
                                 const struct bsw_bench_variant *variant,
                                 struct bsw_bench_point *point,
                                 const struct bsw_bench_answers *expected,
                                 struct bsw_bench_pass *pass, struct bsw_error *err)
{
    struct bsw_bench_answers answers = {0};
    enum bsw_status status = bsw_bench_point_run(point, variant, pass, &answers, err);
    if (status == BSW_OK && is_root(s))
        put_row(s, v, name, variant, pass, judge(s, &answers, expected));
    bsw_bench_answers_deinit(&answers);
    return status;
}

static enum bsw_status run_others(struct scaling *s, const struct visit *v,
                                  struct bsw_bench_point *point,
                                  const struct bsw_bench_answers *answers, struct bsw_error *err)
{
    struct bsw_bench_variant gather = usual(s, 1), single = usual(s, v->num_ranks);
    struct bsw_bench_pass pass;
    single.batch = 1;
    if (single.num_queries > SINGLE_QUERIES) single.num_queries = SINGLE_QUERIES;
    if (v->has_gather) {
        BSW_TRY(run_other(s, v, "merge", &gather, point, answers, &pass, err));
        if (is_root(s) && v->num_ranks == 1) note_merge(s, point, &pass);
    }
    if (!v->has_single) return BSW_OK;
    BSW_TRY(run_other(s, v, "single", &single, point, answers, &pass, err));
    if (is_root(s)) s->cluster->rates.scan_bytes = (double)pass.scanned_bytes / pass.scan_seconds;
    return BSW_OK;
}

static enum bsw_status search(struct scaling *s, const struct visit *v,
                              struct bsw_bench_point *point, struct bsw_bench_answers *answers,
                              struct bsw_error *err)
{
    struct bsw_bench_variant variant = usual(s, v->num_ranks);
    struct bsw_bench_pass pass;
    int64_t errors;
    variant.is_ladder |= v->has_gather;
    BSW_TRY(bsw_bench_point_run(point, &variant, &pass, answers, err));
    if (v->is_alone && is_root(s)) {
        s->alone_seconds = pass.seconds;
        s->alone_scan_seconds = pass.scan_seconds;
        note_scan(s, v, point, &pass);
    }
    if (is_root(s)) note_busy(s, v, &pass);
    if (!v->is_alone && v->rows == s->cluster->options.rows)
        errors = judge(s, answers, &s->alone);
    else
        BSW_TRY(run_reference(s, v, point, answers, &errors, err));
    if (is_root(s)) put_row(s, v, v->name, &variant, &pass, errors);
    return run_others(s, v, point, answers, err);
}

// Whatever can fail in it members have agreed on.
static enum bsw_status visit_members(struct scaling *s, const struct visit *v,
                                     struct bsw_error *err)
{
    struct bsw_rank_group *group = &s->cluster->group;
    struct bsw_bench_point point;
    struct bsw_bench_answers answers = {0};
    enum bsw_status status =
        bsw_bench_point_open(&point, group, &s->corpus, v->rows, v->shards, &s->search, err);
    if (status == BSW_OK) status = search(s, v, &point, &answers, err);
    bsw_bench_point_close(&point);
    if (status == BSW_OK && v->is_alone)
        s->alone = answers;
    else
        bsw_bench_answers_deinit(&answers);
    return status;
}

static enum bsw_status visit(struct scaling *s, const struct visit *v, struct bsw_error *err)
{
    struct bsw_rank_group *group = &s->cluster->group;
    enum bsw_status status = BSW_OK;
    bsw_rank_group_begin(group, v->num_ranks);
    if (bsw_rank_group_is_member(group)) status = visit_members(s, v, err);
    return bsw_rank_group_end(group, status, err);
}

// ---- cases ----

// The next of 2, 4, 8, ... and all ranks; 0: none.
static int next_ranks(const struct scaling *s, int ranks)
{
    int all = s->cluster->transport->num_ranks;
    return ranks >= all ? 0 : 2 * ranks < all ? 2 * ranks : all;
}

static enum bsw_status visit_alone(struct scaling *s, struct bsw_error *err)
{
    uint64_t rows = s->cluster->options.rows;
    const struct visit alone = {
        .name = "alone", .num_ranks = 1, .rows = rows, .shards = 1, .is_alone = 1, .has_single = 1};
    const struct visit merged = {.name = "merge",
                                 .num_ranks = 1,
                                 .rows = rows,
                                 .shards = rows < MERGED_SHARDS ? rows : MERGED_SHARDS,
                                 .has_gather = 1};
    BSW_TRY(visit(s, &alone, err));
    return s->search.device ? BSW_OK : visit(s, &merged, err); // devices merge in one way
}

// The rows of one rank on every rank, or on all ranks together.
static enum bsw_status visit_ranks(struct scaling *s, int is_weak, struct bsw_error *err)
{
    const struct bsw_cluster_options *o = &s->cluster->options;
    int all = s->cluster->transport->num_ranks;
    int has_gather = is_weak && o->cases & BSW_CLUSTER_MERGE && !s->search.device;
    for (int ranks = next_ranks(s, 1); ranks; ranks = next_ranks(s, ranks)) {
        const struct visit some = {.name = is_weak ? "weak" : "strong",
                                   .num_ranks = ranks,
                                   .rows = is_weak ? o->rows * (uint64_t)ranks : o->rows,
                                   .shards = (uint64_t)ranks,
                                   .has_gather = has_gather};
        if (!is_weak || o->cases & BSW_CLUSTER_WEAK || has_gather || ranks == all)
            BSW_TRY(visit(s, &some, err));
    }
    return BSW_OK;
}

// Fewer shards than ranks: slices of every batch.
static enum bsw_status visit_replicas(struct scaling *s, struct bsw_error *err)
{
    int all = s->cluster->transport->num_ranks;
    for (int shards = 1; shards <= all / 2; shards *= 2) {
        const struct visit replicas = {.name = "replicas",
                                       .num_ranks = all,
                                       .rows = s->cluster->options.rows,
                                       .shards = (uint64_t)shards};
        BSW_TRY(visit(s, &replicas, err));
    }
    return BSW_OK;
}

static enum bsw_status visit_all(struct scaling *s, struct bsw_error *err)
{
    unsigned cases = s->cluster->options.cases;
    BSW_TRY(visit_alone(s, err));
    if (cases & (BSW_CLUSTER_WEAK | BSW_CLUSTER_MERGE | BSW_CLUSTER_EXCHANGE))
        BSW_TRY(visit_ranks(s, 1, err));
    if (cases & BSW_CLUSTER_STRONG) BSW_TRY(visit_ranks(s, 0, err));
    return cases & BSW_CLUSTER_REPLICAS ? visit_replicas(s, err) : BSW_OK;
}

// ---- exchanges ----

static int is_to_root(enum bsw_exchange exchange)
{
    return exchange == BSW_EXCHANGE_CANDIDATES || exchange == BSW_EXCHANGE_SURVIVORS;
}

// What the network's two numbers say, summed over the batches of a pass.
static double model_of(const struct scaling *s, const struct record *record,
                       enum bsw_exchange exchange)
{
    const struct bsw_network_fit *fit = &s->cluster->fit;
    uint64_t batch = record->pass.batch;
    double batches = (double)((s->corpus.num_queries + batch - 1) / batch);
    double bytes = (double)record->pass.exchanges[exchange].bytes / batches;
    uint32_t ranks = (uint32_t)record->num_ranks;
    if (!s->cluster->has_fit || s->search.device) return (double)NAN; // fit: of MPI alone
    if (is_to_root(exchange)) return batches * bsw_network_gather_seconds(fit, ranks, bytes);
    return batches * bsw_network_broadcast_seconds(fit, ranks, bytes / (ranks - 1));
}

static void put_exchange(struct scaling *s, const struct record *record, enum bsw_exchange exchange)
{
    const struct bsw_exchange_cost *cost = &record->pass.exchanges[exchange];
    if (cost->bytes == 0) return;
    const struct bsw_bench_value values[NUM_EXCHANGE_COLUMNS] = {
        bsw_bench_text(record->name),
        bsw_bench_number(record->num_ranks),
        bsw_bench_number(record->num_shards),
        bsw_bench_text(record->pass.merge),
        bsw_bench_text(bsw_exchange_name(exchange)),
        bsw_bench_number((double)cost->bytes),
        bsw_bench_number(cost->wait_seconds),
        bsw_bench_number(cost->seconds),
        bsw_bench_number((double)cost->bytes / cost->seconds),
        bsw_bench_number(model_of(s, record, exchange)),
        bsw_bench_number((cost->seconds + cost->wait_seconds) / record->pass.seconds)};
    bsw_bench_report_row(&s->cluster->report, values, BSW_BENCH_UNCHECKED);
}

static void put_exchanges(struct scaling *s)
{
    bsw_bench_report_table(&s->cluster->report, "exchanges", exchange_columns, NUM_EXCHANGE_COLUMNS,
                           NUM_EXCHANGE_COLUMNS);
    for (size_t i = 0; i < s->num_records; i++) {
        for (int exchange = 0; exchange < BSW_NUM_EXCHANGES; exchange++)
            put_exchange(s, &s->records[i], (enum bsw_exchange)exchange);
    }
}

// ---- all of it ----

static enum bsw_status prepare(struct scaling *s, struct bsw_error *err)
{
    struct bsw_bench_cluster *cluster = s->cluster;
    const struct bsw_cluster_options *o = &cluster->options;
    const struct bsw_bench_corpus_options corpus = {
        .codec = o->codec,
        .dims = (uint32_t)o->dims,
        .bits = o->bits,
        .parts = o->parts,
        .rows = o->rows,
        .max_rows = o->rows * (uint64_t)cluster->transport->num_ranks,
        .queries = o->queries,
        .seed = o->seed,
        .level = o->common.level};
    s->search =
        (struct bsw_bench_search_options){.k = o->k,
                                          .batch = o->batch,
                                          .oversample = o->oversample,
                                          .query_bits = (uint32_t)o->query_bits,
                                          .level = o->common.level,
                                          .num_threads = (int)o->common.threads,
                                          .device = bsw_cluster_has_devices(o) ? &o->device : NULL,
                                          .link = o->link};
    enum bsw_status status =
        bsw_allocate(&s->records, MAX_RECORDS, sizeof *s->records, "records", err);
    BSW_TRY(bsw_transport_agree(cluster->transport, status, err));
    return bsw_bench_corpus_make(&corpus, cluster->transport, &cluster->group.batch, &s->corpus,
                                 err);
}

enum bsw_status bsw_cluster_scaling_run(struct bsw_bench_cluster *cluster, struct bsw_error *err)
{
    struct scaling s = {.cluster = cluster};
    enum bsw_status status = prepare(&s, err);
    bsw_bench_report_table(&cluster->report, "scaling", columns, NUM_COLUMNS, NUM_COLUMNS);
    if (status == BSW_OK) status = visit_all(&s, err);
    if (status == BSW_OK && is_root(&s) && s.num_records > 0) put_exchanges(&s);
    bsw_bench_answers_deinit(&s.alone);
    bsw_free(&s.records);
    bsw_manifest_deinit(&s.corpus.manifest);
    return status;
}
