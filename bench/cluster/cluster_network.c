// SPDX-License-Identifier: Apache-2.0
// bench cluster, case network: messages between pairs of ranks, to all and from all, and the two
// numbers that tell what they take.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/cluster/bench_cluster.h"
#include "bench/report/bench_report.h"
#include "common/base/arithmetic.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/memory.h"
#include "common/base/process.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"

// Messages between ranks, timed and checked: what `bench cluster` knows of a network.
//
// Every call is of all ranks and ends with their agreement. Rank 0 gets the result. A message of
// the timed rounds is not looked at; after them one more round goes the same way with bytes that
// are a hash of a seed of its own and their place, and every byte of it is compared where it
// arrives.

struct bsw_bench_network {
    struct bsw_transport *transport;         // borrowed
    uint64_t *batch;                         // of the last message; counted on (transport.h)
    const struct bsw_bench_options *options; // rounds before those that count; those; the check
    struct bsw_buffer out, in;
    double *seconds; // [repeat], allocated by the caller
};

struct bsw_bench_message {
    double seconds;     // median
    int64_t num_errors; // wrong or missing bytes; BSW_BENCH_UNCHECKED
};

// What a rank is to do with what it receives, and has found.
struct round {
    int is_checked;
    uint64_t num_errors;
};

// accepts {0}
static void bsw_bench_network_deinit(struct bsw_bench_network *network)
{
    bsw_buffer_deinit(&network->out);
    bsw_buffer_deinit(&network->in);
    bsw_free(&network->seconds);
}

static struct bsw_message message_of(const struct bsw_bench_network *network, uint32_t kind)
{
    static const char *const names[] = {"a message", "an answer", "a report"};
    return (struct bsw_message){
        .kind = kind, .batch = *network->batch, .name = names[kind - BSW_MESSAGE_BENCH_FORTH]};
}

// ---- what messages hold ----

// The seed of what rank `from` sends: other bytes for every measurement and every sender.
static uint64_t seed_of(const struct bsw_bench_network *network, int from)
{
    return bsw_hash2(*network->batch, (uint64_t)from);
}

static unsigned char byte_of(uint64_t word, size_t place)
{
    return (unsigned char)(word >> (place % 8 * 8));
}

// out has room for them.
static void fill(struct bsw_bench_network *network, size_t bytes)
{
    uint64_t seed = seed_of(network, network->transport->rank), word = 0;
    network->out.bytes = bytes;
    for (size_t i = 0; i < bytes; i++) {
        if (i % 8 == 0) word = bsw_hash2(seed, i / 8);
        network->out.data[i] = byte_of(word, i);
    }
}

// Wrong bytes of the message in `in`; one of another size is wrong altogether.
static uint64_t count_errors(struct bsw_bench_network *network, int from, size_t bytes)
{
    uint64_t seed = seed_of(network, from), word = 0, errors = 0;
    if (network->in.bytes != bytes) return bytes > 0 ? bytes : 1;
    if (bytes > 0 && BSW_FAULT(FLIP, 1, 0)) network->in.data[bytes / 2] ^= 1;
    for (size_t i = 0; i < bytes; i++) {
        if (i % 8 == 0) word = bsw_hash2(seed, i / 8);
        errors += network->in.data[i] != byte_of(word, i);
    }
    return errors;
}

// ---- messages ----

static enum bsw_status send(struct bsw_bench_network *network, int to, uint32_t kind, size_t bytes,
                            struct bsw_error *err)
{
    const struct bsw_message message = message_of(network, kind);
    return bsw_transport_send(network->transport, to, &message, network->out.data, bytes, err);
}

static enum bsw_status receive(struct bsw_bench_network *network, int from, uint32_t kind,
                               size_t bytes, struct round *round, struct bsw_error *err)
{
    const struct bsw_message message = message_of(network, kind);
    BSW_TRY(bsw_transport_receive(network->transport, from, &message, &network->in, NULL, err));
    if (round->is_checked) round->num_errors += count_errors(network, from, bytes);
    return BSW_OK;
}

// From rank 0; `bytes` of out there.
static enum bsw_status spread(struct bsw_bench_network *network, size_t bytes, struct round *round,
                              struct bsw_error *err)
{
    const struct bsw_message message = message_of(network, BSW_MESSAGE_BENCH_FORTH);
    if (network->transport->rank == 0) {
        size_t whole = network->out.bytes;
        network->out.bytes = bytes;
        enum bsw_status status =
            bsw_transport_broadcast(network->transport, &message, &network->out, err);
        network->out.bytes = whole;
        return status;
    }
    BSW_TRY(bsw_transport_broadcast(network->transport, &message, &network->in, err));
    if (round->is_checked) round->num_errors += count_errors(network, 0, bytes);
    return BSW_OK;
}

static enum bsw_status answer_all(struct bsw_bench_network *network, size_t bytes,
                                  struct round *round, struct bsw_error *err)
{
    if (network->transport->rank != 0) return send(network, 0, BSW_MESSAGE_BENCH_BACK, bytes, err);
    for (int rank = 1; rank < network->transport->num_ranks; rank++)
        BSW_TRY(receive(network, rank, BSW_MESSAGE_BENCH_BACK, bytes, round, err));
    return BSW_OK;
}

// ---- ways: a round of one measurement on one rank ----

struct way {
    enum bsw_status (*go)(struct bsw_bench_network *network, const struct way *way,
                          struct round *round, struct bsw_error *err);
    int a, b; // the first of them has the clock
    size_t bytes;
    int is_gather;
};

static enum bsw_status go_forth_and_back(struct bsw_bench_network *network, const struct way *way,
                                         struct round *round, struct bsw_error *err)
{
    int rank = network->transport->rank;
    if (rank == way->a) {
        BSW_TRY(send(network, way->b, BSW_MESSAGE_BENCH_FORTH, way->bytes, err));
        return receive(network, way->b, BSW_MESSAGE_BENCH_BACK, way->bytes, round, err);
    }
    if (rank != way->b) return BSW_OK;
    BSW_TRY(receive(network, way->a, BSW_MESSAGE_BENCH_FORTH, way->bytes, round, err));
    return send(network, way->a, BSW_MESSAGE_BENCH_BACK, way->bytes, err);
}

// To all, then from all: one of the two ways is the message's, the other one's are empty.
static enum bsw_status go_round(struct bsw_bench_network *network, const struct way *way,
                                struct round *round, struct bsw_error *err)
{
    BSW_TRY(spread(network, way->is_gather ? 0 : way->bytes, round, err));
    return answer_all(network, way->is_gather ? way->bytes : 0, round, err);
}

// ---- measuring ----

static enum bsw_status go(struct bsw_bench_network *network, const struct way *way,
                          struct round *round, struct bsw_error *err)
{
    fill(network, way->bytes);
    for (uint64_t i = 0; i < network->options->warmup + network->options->repeat; i++) {
        double started = bsw_clock_seconds();
        BSW_TRY(way->go(network, way, round, err));
        if (i >= network->options->warmup)
            network->seconds[i - network->options->warmup] = bsw_clock_seconds() - started;
    }
    if (!bsw_bench_is_checked(network->options)) return BSW_OK;
    ++*network->batch; // other bytes than those of the timed rounds
    fill(network, way->bytes);
    round->is_checked = 1;
    return way->go(network, way, round, err);
}

// What a rank has to say of a measurement.
struct report {
    double seconds;
    uint64_t num_errors;
};

static enum bsw_status collect(struct bsw_bench_network *network, const struct way *way,
                               struct report *own, struct bsw_error *err)
{
    struct bsw_transport *transport = network->transport;
    const struct bsw_message message = message_of(network, BSW_MESSAGE_BENCH_REPORT);
    if (transport->rank != 0)
        return bsw_transport_send(transport, 0, &message, own, sizeof *own, err);
    for (int rank = 1; rank < transport->num_ranks; rank++) {
        struct report other;
        BSW_TRY(bsw_transport_receive(transport, rank, &message, &network->in, NULL, err));
        if (network->in.bytes != sizeof other)
            return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent a report of a wrong size", rank);
        memcpy(&other, network->in.data, sizeof other);
        own->num_errors += other.num_errors;
        if (rank == way->a) own->seconds = other.seconds;
    }
    return BSW_OK;
}

static enum bsw_status measure(struct bsw_bench_network *network, const struct way *way,
                               struct bsw_bench_message *out, struct bsw_error *err)
{
    struct round round = {0};
    ++*network->batch;
    enum bsw_status status = bsw_buffer_reserve(&network->out, way->bytes, err);
    BSW_TRY(bsw_transport_agree(network->transport, status, err)); // nobody is at anything else
    status = go(network, way, &round, err);
    BSW_TRY(bsw_transport_agree(network->transport, status, err));
    struct report report = {bsw_median(network->seconds, network->options->repeat),
                            round.num_errors};
    ++*network->batch;
    status = collect(network, way, &report, err);
    *out = (struct bsw_bench_message){report.seconds, bsw_bench_is_checked(network->options)
                                                          ? (int64_t)report.num_errors
                                                          : BSW_BENCH_UNCHECKED};
    return bsw_transport_agree(network->transport, status, err);
}

// Half of the time that a message takes from rank a to rank b and another back. a < b.
static enum bsw_status bsw_bench_network_pair(struct bsw_bench_network *network, int a, int b,
                                              size_t bytes, struct bsw_bench_message *out,
                                              struct bsw_error *err)
{
    const struct way way = {go_forth_and_back, a, b, bytes, 0};
    BSW_TRY(measure(network, &way, out, err));
    out->seconds /= 2;
    return BSW_OK;
}

// From rank 0 to all, down the tree, until an empty message of every rank that has it is back;
// is_gather: an empty message down the tree, then `bytes` of every other rank to rank 0.
static enum bsw_status bsw_bench_network_all(struct bsw_bench_network *network, int is_gather,
                                             size_t bytes, struct bsw_bench_message *out,
                                             struct bsw_error *err)
{
    const struct way way = {go_round, 0, 0, bytes, is_gather};
    return measure(network, &way, out, err);
}

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

// The ways are described above: down the tree and an empty answer; an empty message
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
