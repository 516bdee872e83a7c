// SPDX-License-Identifier: Apache-2.0
// bench cluster --device: bytes between the devices of all ranks over NCCL, in the manner of
// nccl-tests (doc/PERFORMANCE.md there): algbw is the size over the time, busbw what of that a
// device's connection has to carry. Then a round of other bytes, each of which is compared.
#include <stdio.h>
#include <string.h>

#include "bench/cluster/bench_cluster.h"
#include "common/base/arithmetic.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/net/device_link.h"

static const struct bsw_bench_column columns[] = {
    {"case", "", "case", 10, BSW_BENCH_TEXT, 1},
    {"ranks", "", "ranks", 5, 0, 1},
    {"size", "B", "bytes", 11, 0, 1},
    {"time", "us", "seconds", 10, 2, 1e6},
    {"algbw", "GB/s", "bytes_per_second", 9, 3, 1e-9},
    {"busbw", "GB/s", "bus_bytes_per_second", 9, 3, 1e-9},
};
enum { BUS_COLUMN = 5, NUM_COLUMNS = sizeof columns / sizeof columns[0] };

struct link_case {
    struct bsw_bench_cluster *cluster;
    bsw_device *device;
    bsw_device_link *link;
    size_t rank, num_ranks, most; // bytes of a message
    struct bsw_device_buffer out, in;
    unsigned char *host;
    struct bsw_device_transfer *transfers; // [2][num_ranks]
    double *seconds;                       // [repeat]
    struct report *reports;                // [num_ranks], of rank 0
    uint64_t seed;                         // of what is sent
};

struct report {
    double seconds;
    uint64_t num_errors;
};

// A way of moving `bytes`. sender: whose bytes this rank has at a place of `in` afterwards; *from:
// where these bytes lie in that rank's `out`.
struct way {
    const char *name;
    enum bsw_status (*go)(struct link_case *c, size_t bytes, struct bsw_error *err);
    size_t (*received)(const struct link_case *c, size_t bytes);
    size_t (*sender)(const struct link_case *c, size_t bytes, size_t place, size_t *from);
    double (*bus_share)(double ranks); // of algbw
};

// ---- ways ----

static enum bsw_status exchange(struct link_case *c, size_t num_sends, size_t num_receives,
                                struct bsw_error *err)
{
    const struct bsw_device_exchange exchange = {.sends = c->transfers,
                                                 .receives = c->transfers + c->num_ranks,
                                                 .num_sends = num_sends,
                                                 .num_receives = num_receives};
    return bsw_device_link_exchange(c->link, &exchange, "bytes", err);
}

// In place, so that rank 0 keeps what it sends in `in`, too.
static enum bsw_status go_broadcast(struct link_case *c, size_t bytes, struct bsw_error *err)
{
    return bsw_device_link_broadcast(c->link, c->rank == 0 ? c->out.data : c->in.data, bytes,
                                     "bytes", err);
}

static size_t receive_from_root(const struct link_case *c, size_t bytes)
{
    return c->rank == 0 ? 0 : bytes;
}

static size_t root_sends(const struct link_case *c, size_t bytes, size_t place, size_t *from)
{
    (void)c, (void)bytes;
    *from = place;
    return 0;
}

// To the next rank, from the one before.
static enum bsw_status go_ring(struct link_case *c, size_t bytes, struct bsw_error *err)
{
    size_t num = c->num_ranks;
    c->transfers[0] = (struct bsw_device_transfer){(int)((c->rank + 1) % num), c->out.data, bytes};
    c->transfers[num] =
        (struct bsw_device_transfer){(int)((c->rank + num - 1) % num), c->in.data, bytes};
    return exchange(c, 1, 1, err);
}

static size_t receive_all(const struct link_case *c, size_t bytes)
{
    (void)c;
    return bytes;
}

static size_t last_sends(const struct link_case *c, size_t bytes, size_t place, size_t *from)
{
    (void)bytes;
    *from = place;
    return (c->rank + c->num_ranks - 1) % c->num_ranks;
}

// An equal part to each other rank, from each a part. The own one is not moved.
static enum bsw_status go_all(struct link_case *c, size_t bytes, struct bsw_error *err)
{
    size_t part = bytes / c->num_ranks, num = 0;
    for (size_t rank = 0; rank < c->num_ranks; rank++) {
        if (rank == c->rank) continue;
        c->transfers[num] =
            (struct bsw_device_transfer){(int)rank, c->out.data + rank * part, part};
        c->transfers[c->num_ranks + num++] =
            (struct bsw_device_transfer){(int)rank, c->in.data + rank * part, part};
    }
    return exchange(c, num, num, err);
}

static size_t receive_parts(const struct link_case *c, size_t bytes)
{
    return bytes / c->num_ranks * c->num_ranks;
}

static size_t each_sends(const struct link_case *c, size_t bytes, size_t place, size_t *from)
{
    size_t part = bytes / c->num_ranks;
    *from = c->rank * part + place % part;
    return place / part;
}

// A part of every rank to rank 0.
static enum bsw_status go_gather(struct link_case *c, size_t bytes, struct bsw_error *err)
{
    size_t part = bytes / c->num_ranks, num = 0;
    c->transfers[0] = (struct bsw_device_transfer){0, c->out.data, part};
    if (c->rank > 0) return exchange(c, 1, 0, err);
    for (size_t rank = 1; rank < c->num_ranks; rank++)
        c->transfers[c->num_ranks + num++] =
            (struct bsw_device_transfer){(int)rank, c->in.data + rank * part, part};
    return exchange(c, 0, num, err);
}

static size_t root_receives(const struct link_case *c, size_t bytes)
{
    return c->rank == 0 ? receive_parts(c, bytes) : 0;
}

static size_t part_sends(const struct link_case *c, size_t bytes, size_t place, size_t *from)
{
    size_t part = bytes / c->num_ranks;
    *from = place % part;
    return place / part;
}

static double all_of_it(double ranks)
{
    (void)ranks;
    return 1;
}

static double but_the_own(double ranks)
{
    return (ranks - 1) / ranks;
}

static const struct way ways[] = {
    {"broadcast", go_broadcast, receive_from_root, root_sends, all_of_it},
    {"sendrecv", go_ring, receive_all, last_sends, all_of_it},
    {"alltoall", go_all, receive_parts, each_sends, but_the_own},
    {"gather", go_gather, root_receives, part_sends, but_the_own},
};

// ---- bytes ----

static unsigned char byte_of(const struct link_case *c, size_t rank, size_t place)
{
    uint64_t word = bsw_hash2(bsw_hash2(c->seed, rank), place / 8);
    return (unsigned char)(word >> (place % 8 * 8));
}

static enum bsw_status send_bytes(struct link_case *c, size_t bytes, struct bsw_error *err)
{
    c->seed++;
    for (size_t i = 0; i < bytes; i++) c->host[i] = byte_of(c, c->rank, i);
    BSW_TRY(bsw_device_upload(c->device, BSW_QUEUE_LINK, c->out.data, c->host, bytes, err));
    return bsw_device_wait(c->device, BSW_QUEUE_LINK, "bytes", err);
}

static enum bsw_status count_errors(struct link_case *c, const struct way *way, size_t bytes,
                                    uint64_t *num_errors, struct bsw_error *err)
{
    size_t num = way->received(c, bytes), from;
    BSW_TRY(bsw_device_download(c->device, BSW_QUEUE_LINK, c->host, c->in.data, num, err));
    BSW_TRY(bsw_device_wait(c->device, BSW_QUEUE_LINK, "bytes", err));
    if (num > 0 && BSW_FAULT(FLIP, 1, 0)) c->host[num / 2] ^= 1;
    for (size_t i = 0; i < num; i++) {
        size_t sender = way->sender(c, bytes, i, &from);
        if (sender != c->rank) *num_errors += c->host[i] != byte_of(c, sender, from);
    }
    return BSW_OK;
}

// ---- measuring ----

static enum bsw_status go(struct link_case *c, const struct way *way, size_t bytes,
                          struct report *out, struct bsw_error *err)
{
    const struct bsw_bench_options *bench = &c->cluster->options.bench;
    BSW_TRY(send_bytes(c, bytes, err));
    for (uint64_t i = 0; i < bench->warmup + bench->repeat; i++) {
        double started = bsw_clock_seconds();
        BSW_TRY(way->go(c, bytes, err));
        BSW_TRY(bsw_device_link_wait(c->link, "bytes", err));
        if (i >= bench->warmup) c->seconds[i - bench->warmup] = bsw_clock_seconds() - started;
    }
    *out = (struct report){bsw_median(c->seconds, bench->repeat), 0};
    if (!bsw_bench_is_checked(bench)) return BSW_OK;
    BSW_TRY(send_bytes(c, bytes, err));
    BSW_TRY(way->go(c, bytes, err));
    BSW_TRY(bsw_device_link_wait(c->link, "bytes", err));
    return count_errors(c, way, bytes, &out->num_errors, err);
}

// The time is the slowest rank's.
static void put_row(struct link_case *c, const struct way *way, size_t bytes)
{
    struct bsw_bench_report *report = &c->cluster->report;
    struct report all = {0, 0};
    for (size_t rank = 0; rank < c->num_ranks; rank++) {
        if (c->reports[rank].seconds > all.seconds) all.seconds = c->reports[rank].seconds;
        all.num_errors += c->reports[rank].num_errors;
    }
    double rate = (double)bytes / all.seconds;
    const struct bsw_bench_value values[NUM_COLUMNS] = {
        bsw_bench_text(way->name),
        bsw_bench_number((double)c->num_ranks),
        bsw_bench_number((double)bytes),
        bsw_bench_number(all.seconds),
        bsw_bench_number(rate),
        bsw_bench_number(rate * way->bus_share((double)c->num_ranks))};
    bsw_bench_report_row(report, values,
                         bsw_bench_is_checked(&c->cluster->options.bench) ? (int64_t)all.num_errors
                                                                          : BSW_BENCH_UNCHECKED);
}

// Parts of less than a byte are nothing to measure.
static enum bsw_status measure(struct link_case *c, const struct way *way, size_t bytes,
                               struct bsw_error *err)
{
    struct bsw_bench_cluster *cluster = c->cluster;
    struct report own = {0, 0};
    if (bytes < c->num_ranks) return BSW_OK;
    enum bsw_status status = go(c, way, bytes, &own, err);
    BSW_TRY(bsw_transport_agree(cluster->transport, status, err));
    cluster->report.batch = cluster->group.batch;
    status = bsw_bench_report_gather(&cluster->report, &own, sizeof own, c->reports, err);
    cluster->group.batch = cluster->report.batch;
    BSW_TRY(bsw_transport_agree(cluster->transport, status, err));
    if (cluster->transport->rank == 0) put_row(c, way, bytes);
    return BSW_OK;
}

static enum bsw_status measure_all(struct link_case *c, struct bsw_error *err)
{
    const struct bsw_bench_options *bench = &c->cluster->options.bench;
    bsw_bench_report_table(&c->cluster->report, "link", columns, NUM_COLUMNS, BUS_COLUMN);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
        for (uint64_t size = bench->min; size; size = bsw_bench_next_size(bench, size))
            BSW_TRY(measure(c, &ways[w], (size_t)size, err));
    return BSW_OK;
}

// ---- the case ----

static enum bsw_status allocate(struct link_case *c, struct bsw_error *err)
{
    const struct bsw_bench_options *bench = &c->cluster->options.bench;
    for (uint64_t size = bench->min; size; size = bsw_bench_next_size(bench, size))
        c->most = (size_t)size;
    BSW_TRY(bsw_allocate(&c->transfers, 2 * c->num_ranks, sizeof *c->transfers, "transfers", err));
    BSW_TRY(bsw_allocate(&c->seconds, bench->repeat, sizeof *c->seconds, "times", err));
    BSW_TRY(bsw_allocate(&c->reports, c->num_ranks, sizeof *c->reports, "times", err));
    if (!c->device) return BSW_OK;
    BSW_TRY(bsw_device_allocate_host(c->device, c->most, "messages", &c->host, err));
    BSW_TRY(bsw_device_allocate(c->device, c->most, "messages", &c->out, err));
    return bsw_device_allocate(c->device, c->most, "messages", &c->in, err);
}

static void free_case(struct link_case *c)
{
    bsw_device_link_close(&c->link);
    if (c->device) {
        bsw_device_free(c->device, &c->in);
        bsw_device_free(c->device, &c->out);
        bsw_device_free_host(c->device, &c->host);
    }
    bsw_free(&c->transfers);
    bsw_free(&c->seconds);
    bsw_free(&c->reports);
}

static enum bsw_status run(struct link_case *c, struct bsw_error *err)
{
    struct bsw_bench_cluster *cluster = c->cluster;
    char note[BSW_LINK_NOTE_BYTES] = "";
    enum bsw_status status = allocate(c, err);
    BSW_TRY(bsw_transport_agree(cluster->transport, status, err));
    BSW_TRY(bsw_device_link_open(cluster->transport, c->device, cluster->options.link, &c->link,
                                 note, err));
    bsw_bench_report_note(&cluster->report, "link between devices: %s%s",
                          c->link ? "" : "none: ", note);
    return c->link ? measure_all(c, err) : BSW_OK;
}

enum bsw_status bsw_cluster_link_run(struct bsw_bench_cluster *cluster, struct bsw_error *err)
{
    struct link_case c = {.cluster = cluster,
                          .device = cluster->chosen.device,
                          .rank = (size_t)cluster->transport->rank,
                          .num_ranks = (size_t)cluster->transport->num_ranks};
    if (cluster->transport->num_ranks == 1) return BSW_OK;
    enum bsw_status status = run(&c, err);
    free_case(&c);
    return status;
}
