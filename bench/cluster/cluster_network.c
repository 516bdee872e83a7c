// SPDX-License-Identifier: Apache-2.0
// bench cluster, case network: messages between pairs of ranks, to all and from all, and the two
// numbers that tell what they take.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/cluster/bench_cluster.h"
#include "bench/cluster/bench_network.h"
#include "common/base/median.h"
#include "common/base/process.h"

#define HOST_BYTES 64

static const struct bsw_bench_column columns[] = {
    {"case", "", "case", 9, BSW_BENCH_TEXT, 1},
    {"from", "rank", "from", 5, BSW_BENCH_TEXT, 1},
    {"to", "rank", "to", 5, BSW_BENCH_TEXT, 1},
    {"way", "", "way", 5, BSW_BENCH_TEXT, 1},
    {"size", "B", "bytes", 10, 0, 1},
    {"time", "us", "seconds", 11, 2, 1e6},
    {"rate", "GB/s", "bytes_per_second", 9, 3, 1e-9},
    {"model", "us", "model_seconds", 11, 2, 1e6},
};
enum { RATE_COLUMN = 6, NUM_COLUMNS = sizeof columns / sizeof columns[0] };

struct host {
    char name[HOST_BYTES];
};

// The lists, which rank 0 alone fills, have room for all pairs.
struct network_case {
    struct bsw_bench_cluster *cluster;
    struct bsw_bench_network network;
    struct host *hosts;          // [num_ranks]
    double *bytes, *seconds;     // [num_sizes]
    double *alphas, *betas;      // [num_pairs] of the pairs that count
    size_t num_sizes, num_pairs; // so far
    int has_far;                 // ranks on several hosts: only their pairs count
    json_t *fits;
};

static int is_far(const struct network_case *c, int a, int b)
{
    return strcmp(c->hosts[a].name, c->hosts[b].name) != 0;
}

static void put_row(struct network_case *c, const char *name, const char *from, const char *to,
                    const char *way, double bytes, double moved,
                    const struct bsw_bench_message *message, double model)
{
    const struct bsw_bench_value values[NUM_COLUMNS] = {bsw_bench_text(name),
                                                        bsw_bench_text(from),
                                                        bsw_bench_text(to),
                                                        bsw_bench_text(way),
                                                        bsw_bench_number(bytes),
                                                        bsw_bench_number(message->seconds),
                                                        bsw_bench_number(moved / message->seconds),
                                                        bsw_bench_number(model)};
    bsw_bench_report_row(&c->cluster->report, values, message->num_errors);
}

// ---- pairs ----

// Rank 0, once a pair has all its sizes.
static void put_fit(struct network_case *c, int a, int b)
{
    struct bsw_network_fit fit;
    if (!bsw_network_fit_make(c->bytes, c->seconds, c->num_sizes, &fit)) return;
    bsw_bench_report_note(&c->cluster->report,
                          "ranks %d and %d: alpha %.3f us, beta %.5f ns/B (%.3f GB/s), off by %.0f "
                          "%% at most",
                          a, b, fit.alpha_seconds * 1e6, fit.beta_seconds_per_byte * 1e9,
                          1e-9 / fit.beta_seconds_per_byte, fit.worst * 100);
    json_array_append_new(c->fits, json_pack("{s:i, s:i, s:b, s:f, s:f, s:f}", "from", a, "to", b,
                                             "same_host", !is_far(c, a, b), "alpha_seconds",
                                             fit.alpha_seconds, "beta_seconds_per_byte",
                                             fit.beta_seconds_per_byte, "worst", fit.worst));
    if (c->has_far && !is_far(c, a, b)) return;
    c->alphas[c->num_pairs] = fit.alpha_seconds;
    c->betas[c->num_pairs++] = fit.beta_seconds_per_byte;
}

static enum bsw_status measure_pair(struct network_case *c, int a, int b, struct bsw_error *err)
{
    const struct bsw_bench_options *bench = &c->cluster->options.bench;
    int is_root = c->cluster->transport->rank == 0;
    c->num_sizes = 0;
    for (uint64_t size = bench->min; size; size = bsw_bench_next_size(bench, size)) {
        struct bsw_bench_message message;
        char from[16], to[16];
        BSW_TRY(bsw_bench_network_pair(&c->network, a, b, (size_t)size, &message, err));
        if (!is_root) continue;
        snprintf(from, sizeof from, "%d", a);
        snprintf(to, sizeof to, "%d", b);
        c->bytes[c->num_sizes] = (double)size;
        c->seconds[c->num_sizes++] = message.seconds;
        put_row(c, "message", from, to, is_far(c, a, b) ? "net" : "host", (double)size,
                (double)size, &message, (double)NAN);
    }
    if (is_root) put_fit(c, a, b);
    return BSW_OK;
}

static enum bsw_status measure_pairs(struct network_case *c, struct bsw_error *err)
{
    int num_ranks = c->cluster->transport->num_ranks;
    int last = strcmp(c->cluster->options.pairs, "all") == 0 ? num_ranks - 1 : 1;
    for (int a = 0; a < last; a++) {
        for (int b = a + 1; b < num_ranks; b++) BSW_TRY(measure_pair(c, a, b, err));
    }
    return BSW_OK;
}

// The two numbers of the network: medians over the pairs.
static void conclude_pairs(struct network_case *c)
{
    struct bsw_bench_cluster *cluster = c->cluster;
    if (c->num_pairs == 0) return;
    cluster->fit =
        (struct bsw_network_fit){.alpha_seconds = bsw_median(c->alphas, c->num_pairs),
                                 .beta_seconds_per_byte = bsw_median(c->betas, c->num_pairs)};
    cluster->has_fit = 1;
    cluster->rates.alpha_seconds = cluster->fit.alpha_seconds;
    cluster->rates.beta_seconds_per_byte = cluster->fit.beta_seconds_per_byte;
    bsw_bench_report_note(
        &cluster->report,
        "network: alpha %.3f us, beta %.5f ns/B (%.3f GB/s): medians of %zu pairs "
        "%s",
        cluster->fit.alpha_seconds * 1e6, cluster->fit.beta_seconds_per_byte * 1e9,
        1e-9 / cluster->fit.beta_seconds_per_byte, c->num_pairs,
        c->has_far ? "on different hosts" : "on one host");
}

// ---- all ranks ----

// The ways are described in bench_network.h: down the tree and an empty answer; an empty message
// down the tree and answers.
static double model_of(const struct network_case *c, int is_gather, double bytes)
{
    const struct bsw_bench_cluster *cluster = c->cluster;
    uint32_t ranks = (uint32_t)cluster->transport->num_ranks;
    if (!cluster->has_fit) return (double)NAN;
    double down = bsw_network_broadcast_seconds(&cluster->fit, ranks, is_gather ? 0 : bytes);
    return down +
           bsw_network_gather_seconds(&cluster->fit, ranks, is_gather ? bytes * (ranks - 1) : 0);
}

static enum bsw_status measure_all(struct network_case *c, int is_gather, struct bsw_error *err)
{
    const struct bsw_bench_options *bench = &c->cluster->options.bench;
    double others = c->cluster->transport->num_ranks - 1;
    for (uint64_t size = bench->min; size; size = bsw_bench_next_size(bench, size)) {
        struct bsw_bench_message message;
        BSW_TRY(bsw_bench_network_all(&c->network, is_gather, (size_t)size, &message, err));
        if (c->cluster->transport->rank != 0) continue;
        put_row(c, is_gather ? "gather" : "broadcast", is_gather ? "all" : "0",
                is_gather ? "0" : "all", c->has_far ? "net" : "host", (double)size,
                (double)size * others, &message, model_of(c, is_gather, (double)size));
    }
    return BSW_OK;
}

// ---- the case ----

static size_t count_sizes(const struct bsw_bench_options *bench)
{
    size_t count = 0;
    for (uint64_t size = bench->min; size; size = bsw_bench_next_size(bench, size)) count++;
    return count;
}

static enum bsw_status allocate(struct network_case *c, struct bsw_error *err)
{
    const struct bsw_bench_options *bench = &c->cluster->options.bench;
    size_t ranks = (size_t)c->cluster->transport->num_ranks, sizes = count_sizes(bench);
    size_t pairs = ranks * (ranks - 1) / 2;
    c->fits = json_array();
    c->network = (struct bsw_bench_network){
        .transport = c->cluster->transport, .batch = &c->cluster->group.batch, .options = bench};
    BSW_TRY(bsw_allocate(&c->network.seconds, bench->repeat, sizeof(double), "times", err));
    BSW_TRY(bsw_allocate(&c->hosts, ranks, sizeof *c->hosts, "hosts", err));
    BSW_TRY(bsw_allocate(&c->bytes, sizes, sizeof(double), "sizes", err));
    BSW_TRY(bsw_allocate(&c->seconds, sizes, sizeof(double), "sizes", err));
    BSW_TRY(bsw_allocate(&c->alphas, pairs, sizeof(double), "pairs", err));
    return bsw_allocate(&c->betas, pairs, sizeof(double), "pairs", err);
}

static void free_case(struct network_case *c)
{
    bsw_bench_network_deinit(&c->network);
    bsw_free(&c->hosts);
    bsw_free(&c->bytes);
    bsw_free(&c->seconds);
    bsw_free(&c->alphas);
    bsw_free(&c->betas);
    json_decref(c->fits);
}

static enum bsw_status find_hosts(struct network_case *c, struct bsw_error *err)
{
    struct bsw_bench_cluster *cluster = c->cluster;
    struct host own = {""};
    bsw_host_name(own.name, sizeof own.name);
    cluster->report.batch = cluster->group.batch;
    enum bsw_status status =
        bsw_bench_report_gather(&cluster->report, &own, sizeof own, c->hosts, err);
    cluster->group.batch = cluster->report.batch;
    BSW_TRY(bsw_transport_agree(cluster->transport, status, err));
    for (int rank = 1; cluster->transport->rank == 0 && rank < cluster->transport->num_ranks;
         rank++)
        c->has_far |= is_far(c, 0, rank);
    return BSW_OK;
}

static enum bsw_status run(struct network_case *c, struct bsw_error *err)
{
    BSW_TRY(find_hosts(c, err));
    BSW_TRY(measure_pairs(c, err));
    conclude_pairs(c);
    BSW_TRY(measure_all(c, 0, err));
    BSW_TRY(measure_all(c, 1, err));
    if (c->cluster->transport->rank == 0)
        bsw_bench_report_add(&c->cluster->report, "fits", json_incref(c->fits));
    return BSW_OK;
}

enum bsw_status bsw_cluster_network_run(struct bsw_bench_cluster *cluster, struct bsw_error *err)
{
    struct network_case c = {.cluster = cluster};
    if (cluster->transport->num_ranks == 1) {
        bsw_bench_report_note(&cluster->report, "one rank: there is no network to measure");
        return BSW_OK;
    }
    enum bsw_status status = allocate(&c, err);
    status = bsw_transport_agree(cluster->transport, status, err);
    bsw_bench_report_table(&cluster->report, "network", columns, NUM_COLUMNS, RATE_COLUMN);
    if (status == BSW_OK) status = run(&c, err);
    free_case(&c);
    return status;
}
