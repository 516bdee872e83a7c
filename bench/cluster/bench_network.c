// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/bench_network.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/integer_hash.h"
#include "common/base/median.h"
#include "common/net/message_kinds.h"

// What a rank is to do with what it receives, and has found.
struct round {
    int is_checked;
    uint64_t num_errors;
};

void bsw_bench_network_deinit(struct bsw_bench_network *network)
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

enum bsw_status bsw_bench_network_pair(struct bsw_bench_network *network, int a, int b,
                                       size_t bytes, struct bsw_bench_message *out,
                                       struct bsw_error *err)
{
    const struct way way = {go_forth_and_back, a, b, bytes, 0};
    BSW_TRY(measure(network, &way, out, err));
    out->seconds /= 2;
    return BSW_OK;
}

enum bsw_status bsw_bench_network_all(struct bsw_bench_network *network, int is_gather,
                                      size_t bytes, struct bsw_bench_message *out,
                                      struct bsw_error *err)
{
    const struct way way = {go_round, 0, 0, bytes, is_gather};
    return measure(network, &way, out, err);
}
