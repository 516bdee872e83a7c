// SPDX-License-Identifier: Apache-2.0
// Checks of the transport that need several ranks; check_transport.sh runs it under mpirun.
//
//   transport_ranks all            every check that ends well; rank 0 prints "ok"
//   transport_ranks pieces         one message beyond 1 GiB from the last rank to rank 0
//   transport_ranks silent RANK    that rank sleeps: timeout, exit 75
//   transport_ranks stopped RANK   that rank is stopped by a signal: the same
//   transport_ranks absent RANK    that rank agrees and then never closes: exit 75
//   transport_ranks killed RANK    that rank is killed
//   transport_ranks fail STATUS    the last rank fails, all agree on it, rank 0 prints it
//   transport_ranks alarm RANK     that rank raises an alarm while others wait for messages
//   transport_ranks polled RANK    the same, and rank 0 polls
//   transport_ranks together       every rank may use the same CPUs: places 0, 1, ... of all
//   transport_ranks apart          rank r may use the r-th CPU only: each has a place of its own
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // sched_setaffinity
#endif
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/job/run_status.h"
#include "common/net/transport.h"

#define LARGE_BYTES           ((size_t)12 * 1000 * 1000)
#define TEST_TIMEOUT_SECONDS  25.0
#define SHORT_TIMEOUT_SECONDS 2.0

enum kind { KIND_QUERIES = 1, KIND_CANDIDATES, KIND_VALUES };

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            return bsw_fail(err, BSW_ERROR_SELF_CHECK, "transport_ranks.c:%d: %s", __LINE__, \
                            #condition);                                                     \
        }                                                                                    \
    } while (0)

static uint64_t next_batch = 1;

static struct bsw_message message_of(enum kind kind, uint64_t batch)
{
    static const char *const names[] = {"", "queries", "candidates", "values"};
    return (struct bsw_message){.kind = kind, .batch = batch, .name = names[kind]};
}

static void sleep_seconds(double seconds)
{
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

// Bytes 8 i to 8 i + 7 of the message numbered seed.
static uint64_t pattern(uint64_t seed, size_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

static enum bsw_status fill(struct bsw_buffer *data, uint64_t seed, size_t bytes,
                            struct bsw_error *err)
{
    BSW_TRY(bsw_buffer_reserve(data, bytes, err));
    for (size_t i = 0; 8 * i < bytes; i++) {
        uint64_t word = pattern(seed, i);
        memcpy(data->data + 8 * i, &word, bytes - 8 * i < 8 ? bytes - 8 * i : 8);
    }
    data->bytes = bytes;
    return BSW_OK;
}

static enum bsw_status check_filled(const struct bsw_buffer *data, uint64_t seed, size_t bytes,
                                    struct bsw_error *err)
{
    CHECK(data->bytes == bytes);
    for (size_t i = 0; 8 * i < bytes; i++) {
        uint64_t word = pattern(seed, i);
        CHECK(memcmp(data->data + 8 * i, &word, bytes - 8 * i < 8 ? bytes - 8 * i : 8) == 0);
    }
    return BSW_OK;
}

// ---- checks that end well -----------------------------------------------------------------------

static enum bsw_status check_broadcast(bsw_transport *transport, struct bsw_buffer *data,
                                       struct bsw_error *err)
{
    // Around the size that fits behind a header, too.
    static const size_t sizes[] = {0, 1, 65536, 65537, 100 * 1000, LARGE_BYTES};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t batch = next_batch++;
        struct bsw_message message = message_of(KIND_QUERIES, batch);
        if (transport->rank == 0) BSW_TRY(fill(data, batch, sizes[i], err));
        BSW_TRY(bsw_transport_broadcast(transport, &message, data, err));
        BSW_TRY(check_filled(data, batch, sizes[i], err));
    }
    return BSW_OK;
}

static size_t gather_bytes(int rank)
{
    return rank % 3 == 0 ? 0 : rank % 3 == 1 ? 1000 : 300 * 1000;
}

// Everyone, rank 0 included, sends to rank 0, the later ranks first.
static enum bsw_status check_gather(bsw_transport *transport, struct bsw_buffer *data,
                                    struct bsw_error *err)
{
    uint64_t batch = next_batch++;
    struct bsw_message message = message_of(KIND_CANDIDATES, batch);
    int rank = transport->rank, num_seen = 0;
    unsigned char seen[256] = {0};
    sleep_seconds(0.01 * (transport->num_ranks - rank));
    BSW_TRY(fill(data, (uint64_t)rank, gather_bytes(rank), err));
    BSW_TRY(bsw_transport_send(transport, 0, &message, data->data, data->bytes, err));
    while (rank == 0 && num_seen < transport->num_ranks) {
        int source;
        BSW_TRY(bsw_transport_receive(transport, BSW_ANY_RANK, &message, data, &source, err));
        CHECK(source >= 0 && source < transport->num_ranks && !seen[source]);
        seen[source] = 1;
        num_seen++;
        BSW_TRY(check_filled(data, (uint64_t)source, gather_bytes(source), err));
    }
    return BSW_OK;
}

// Neighbours send to each other at the same time: none may wait for the other to receive first.
// As many numbers as the rank's own, each that number.
static enum bsw_status take_numbers(void *context, int rank, const struct bsw_buffer *payload,
                                    struct bsw_error *err)
{
    int *last = context, number;
    CHECK(rank == ++*last && payload->bytes == (size_t)rank * sizeof number);
    for (size_t at = 0; at < payload->bytes; at += sizeof number) {
        memcpy(&number, payload->data + at, sizeof number);
        CHECK(number == rank);
    }
    return BSW_OK;
}

// Payloads in the order of ranks, records beside rank 0's own, and a record of another size, which
// names its rank.
static enum bsw_status check_collect(bsw_transport *transport, struct bsw_buffer *data,
                                     struct bsw_error *err)
{
    enum { MOST = 64 };
    int own[MOST], all[MOST] = {0}, last = 0, is_last = transport->rank == transport->num_ranks - 1;
    struct bsw_buffer payloads[MOST] = {{0}};
    struct bsw_message message = message_of(KIND_VALUES, next_batch++);
    CHECK(transport->num_ranks <= MOST);
    for (int i = 0; i < MOST; i++) own[i] = transport->rank;
    BSW_TRY(bsw_collect(transport, &message, own, (size_t)transport->rank * sizeof *own,
                        take_numbers, &last, err));
    CHECK(last == (transport->rank == 0 ? transport->num_ranks - 1 : 0));
    message = message_of(KIND_VALUES, next_batch++);
    BSW_TRY(bsw_collect_records(transport, &message, own, sizeof *own, all, err));
    for (int rank = 0; transport->rank == 0 && rank < transport->num_ranks; rank++)
        CHECK(all[rank] == rank);
    message = message_of(KIND_VALUES, next_batch++);
    BSW_TRY(fill(data, (uint64_t)transport->rank, 1000, err));
    BSW_TRY(bsw_collect_buffers(transport, &message, data, payloads, err));
    for (int rank = 1; transport->rank == 0 && rank < transport->num_ranks; rank++) {
        BSW_TRY(check_filled(&payloads[rank], (uint64_t)rank, 1000, err));
        bsw_buffer_deinit(&payloads[rank]);
    }
    message = message_of(KIND_VALUES, next_batch++);
    enum bsw_status status =
        bsw_collect_records(transport, &message, own,
                            sizeof *own * (transport->rank != 0 && is_last ? 2 : 1), all, err);
    CHECK(status == (transport->rank == 0 && !is_last ? BSW_ERROR_PEER : BSW_OK));
    CHECK(status == BSW_OK || strstr(err->message, "sent 8 bytes of values, not 4"));
    return BSW_OK;
}

static enum bsw_status check_crossing(bsw_transport *transport, struct bsw_buffer *data,
                                      struct bsw_error *err)
{
    uint64_t batch = next_batch++;
    struct bsw_message message = message_of(KIND_VALUES, batch);
    int peer = transport->rank ^ 1;
    if (peer >= transport->num_ranks) return BSW_OK;
    BSW_TRY(fill(data, (uint64_t)transport->rank, LARGE_BYTES / 4, err));
    for (int i = 0; i < 2; i++)
        BSW_TRY(bsw_transport_send(transport, peer, &message, data->data, data->bytes, err));
    for (int i = 0; i < 2; i++) {
        int source;
        BSW_TRY(bsw_transport_receive(transport, peer, &message, data, &source, err));
        CHECK(source == peer);
        BSW_TRY(check_filled(data, (uint64_t)peer, LARGE_BYTES / 4, err));
    }
    return BSW_OK;
}

// Large and small messages of one sender, mixed, keep their order.
static enum bsw_status check_order(bsw_transport *transport, struct bsw_buffer *data,
                                   struct bsw_error *err)
{
    enum { NUM_MESSAGES = 40 };
    struct bsw_message message = message_of(KIND_VALUES, next_batch++);
    int last = transport->num_ranks - 1;
    for (uint64_t i = 0; transport->rank == last && i < NUM_MESSAGES; i++) {
        BSW_TRY(fill(data, i, i % 3 == 0 ? 200 * 1000 : (size_t)i, err));
        BSW_TRY(bsw_transport_send(transport, 0, &message, data->data, data->bytes, err));
    }
    for (uint64_t i = 0; transport->rank == 0 && i < NUM_MESSAGES; i++) {
        BSW_TRY(bsw_transport_receive(transport, last, &message, data, NULL, err));
        BSW_TRY(check_filled(data, i, i % 3 == 0 ? 200 * 1000 : (size_t)i, err));
    }
    return BSW_OK;
}

// What comes early waits, what comes late is dropped: batches in order 2, 1, 3 and two kinds.
static enum bsw_status check_stale(bsw_transport *transport, struct bsw_buffer *data,
                                   struct bsw_error *err)
{
    static const int order[] = {2, 1, 3};
    uint64_t base = next_batch;
    next_batch += 4;
    int last = transport->num_ranks - 1;
    for (int i = 0; transport->rank == last && i < 3; i++) {
        struct bsw_message values = message_of(KIND_VALUES, base + (uint64_t)order[i]);
        struct bsw_message candidates = message_of(KIND_CANDIDATES, base + (uint64_t)order[i]);
        BSW_TRY(fill(data, values.batch, 90 * 1000, err));
        BSW_TRY(bsw_transport_send(transport, 0, &values, data->data, data->bytes, err));
        BSW_TRY(bsw_transport_send(transport, 0, &candidates, &order[i], sizeof order[i], err));
    }
    for (int batch = 2; transport->rank == 0 && batch <= 3; batch++) {
        struct bsw_message values = message_of(KIND_VALUES, base + (uint64_t)batch);
        struct bsw_message candidates = message_of(KIND_CANDIDATES, base + (uint64_t)batch);
        BSW_TRY(bsw_transport_receive(transport, last, &candidates, data, NULL, err));
        CHECK(data->bytes == sizeof(int) && memcmp(data->data, &batch, sizeof(int)) == 0);
        BSW_TRY(bsw_transport_receive(transport, BSW_ANY_RANK, &values, data, NULL, err));
        BSW_TRY(check_filled(data, values.batch, 90 * 1000, err));
    }
    return BSW_OK;
}

// All ranks from first_bad on fail; everyone must see the text of first_bad.
static enum bsw_status check_agree_on(bsw_transport *transport, int first_bad,
                                      struct bsw_error *err)
{
    struct bsw_error agreed = {0};
    char text[64];
    enum bsw_status own = BSW_OK;
    if (transport->rank >= first_bad)
        own = bsw_fail(&agreed, BSW_ERROR_IO, "disk of rank %d is full", transport->rank);
    enum bsw_status status = bsw_transport_agree(transport, own, &agreed);
    if (first_bad >= transport->num_ranks) {
        CHECK(status == BSW_OK);
        return BSW_OK;
    }
    snprintf(text, sizeof text, "disk of rank %d is full", first_bad);
    CHECK(status == BSW_ERROR_IO && agreed.status == BSW_ERROR_IO);
    CHECK(strcmp(agreed.message, text) == 0);
    CHECK(agreed.rank == (transport->num_ranks > 1 ? first_bad : -1));
    return BSW_OK;
}

static enum bsw_status check_agree(bsw_transport *transport, struct bsw_buffer *data,
                                   struct bsw_error *err)
{
    // An answer of a batch sent before the agreement is still there after it.
    struct bsw_message message = message_of(KIND_VALUES, next_batch++);
    int last = transport->num_ranks - 1;
    if (transport->rank == last)
        BSW_TRY(bsw_transport_send(transport, 0, &message, "early", 5, err));
    for (int first_bad = transport->num_ranks; first_bad >= 0; first_bad--)
        BSW_TRY(check_agree_on(transport, first_bad, err));
    CHECK(bsw_transport_agree(transport, BSW_OK, NULL) == BSW_OK);
    if (transport->rank > 0) return BSW_OK;
    BSW_TRY(bsw_transport_receive(transport, last, &message, data, NULL, err));
    CHECK(data->bytes == 5 && memcmp(data->data, "early", 5) == 0);
    return BSW_OK;
}

static enum bsw_status check_misuse(bsw_transport *transport, struct bsw_buffer *data,
                                    struct bsw_error *err)
{
    struct bsw_message own = message_of(KIND_VALUES, next_batch), reserved = own;
    reserved.kind = BSW_KIND_RESERVED;
    struct bsw_error fault;
    int beyond = transport->num_ranks;
    CHECK(bsw_transport_send(transport, beyond, &own, "", 0, &fault) == BSW_ERROR_USAGE);
    CHECK(bsw_transport_receive(transport, -2, &own, data, NULL, &fault) == BSW_ERROR_USAGE);
    CHECK(bsw_transport_send(transport, 0, &reserved, "", 0, &fault) == BSW_ERROR_USAGE);
    return BSW_OK;
}

typedef enum bsw_status (*check_fn)(bsw_transport *, struct bsw_buffer *, struct bsw_error *);

static enum bsw_status run_all(bsw_transport *transport, const char *argument,
                               struct bsw_error *err)
{
    (void)argument;
    static const check_fn checks[] = {check_broadcast, check_gather, check_collect, check_crossing,
                                      check_order,     check_stale,  check_agree,   check_misuse};
    struct bsw_buffer data = {0};
    enum bsw_status status = BSW_OK;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && status == BSW_OK; i++)
        status = checks[i](transport, &data, err);
    bsw_buffer_deinit(&data);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK && transport->rank == 0) printf("ok\n");
    return status;
}

static enum bsw_status run_pieces(bsw_transport *transport, const char *argument,
                                  struct bsw_error *err)
{
    (void)argument;
    // The second piece is a very small one, and the next message starts right behind it.
    static const size_t sizes[] = {((size_t)1 << 30) + 100, 200 * 1000};
    struct bsw_message message = message_of(KIND_VALUES, next_batch++);
    int last = transport->num_ranks - 1;
    struct bsw_buffer data = {0};
    enum bsw_status status = BSW_OK;
    for (uint64_t seed = 0; seed < 2 && status == BSW_OK; seed++) {
        if (transport->rank == last) status = fill(&data, seed, sizes[seed], err);
        if (transport->rank == last && status == BSW_OK)
            status = bsw_transport_send(transport, 0, &message, data.data, data.bytes, err);
        if (transport->rank == 0 && status == BSW_OK)
            status = bsw_transport_receive(transport, last, &message, &data, NULL, err);
        if (transport->rank == 0 && status == BSW_OK)
            status = check_filled(&data, seed, sizes[seed], err);
    }
    bsw_buffer_deinit(&data);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK && transport->rank == 0) printf("ok\n");
    return status;
}

// ---- checks that end badly ----------------------------------------------------------------------

// Everyone but rank 0 answers; agreement follows.
static enum bsw_status answer_batch(bsw_transport *transport, struct bsw_error *err)
{
    struct bsw_message message = message_of(KIND_CANDIDATES, 7);
    struct bsw_buffer data = {0};
    enum bsw_status status = BSW_OK;
    transport->timeout_seconds = SHORT_TIMEOUT_SECONDS;
    if (transport->rank > 0) status = bsw_transport_send(transport, 0, &message, "answer", 6, err);
    for (int i = 1; transport->rank == 0 && i < transport->num_ranks && status == BSW_OK; i++)
        status = bsw_transport_receive(transport, BSW_ANY_RANK, &message, &data, NULL, err);
    bsw_buffer_deinit(&data);
    return bsw_transport_agree(transport, status, err);
}

static enum bsw_status run_silent(bsw_transport *transport, const char *argument,
                                  struct bsw_error *err)
{
    if (transport->rank == atoi(argument)) sleep_seconds(600);
    return answer_batch(transport, err);
}

static enum bsw_status run_stopped(bsw_transport *transport, const char *argument,
                                   struct bsw_error *err)
{
    if (transport->rank == atoi(argument)) raise(SIGSTOP);
    return answer_batch(transport, err);
}

static enum bsw_status run_absent(bsw_transport *transport, const char *argument,
                                  struct bsw_error *err)
{
    BSW_TRY(bsw_transport_agree(transport, BSW_OK, err));
    transport->timeout_seconds = SHORT_TIMEOUT_SECONDS;
    if (transport->rank == atoi(argument)) sleep_seconds(600);
    return BSW_OK;
}

static enum bsw_status run_killed(bsw_transport *transport, const char *argument,
                                  struct bsw_error *err)
{
    if (transport->rank == atoi(argument)) raise(SIGKILL);
    return bsw_transport_agree(transport, BSW_OK, err);
}

static enum bsw_status run_fail(bsw_transport *transport, const char *argument,
                                struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    if (transport->rank == transport->num_ranks - 1)
        status = bsw_fail(err, (enum bsw_status)atoi(argument), "it went wrong");
    return bsw_transport_agree(transport, status, err);
}

static enum bsw_status raise_alarm(bsw_transport *transport, struct bsw_error *err)
{
    enum bsw_status status = bsw_fail(err, BSW_ERROR_IO, "it went wrong");
    return bsw_transport_raise(transport, status, err);
}

static enum bsw_status run_alarm(bsw_transport *transport, const char *argument,
                                 struct bsw_error *err)
{
    if (transport->rank == atoi(argument)) return raise_alarm(transport, err);
    return bsw_transport_agree(transport, BSW_OK, err);
}

static enum bsw_status run_polled(bsw_transport *transport, const char *argument,
                                  struct bsw_error *err)
{
    if (transport->rank > 0) return run_alarm(transport, argument, err);
    for (;;) BSW_TRY(bsw_transport_poll(transport, err));
}

static enum bsw_status run_together(bsw_transport *transport, const char *argument,
                                    struct bsw_error *err)
{
    (void)argument;
    int is_good = transport->local_rank == transport->rank &&
                  transport->num_local_ranks == transport->num_ranks;
    enum bsw_status status = BSW_OK;
    if (!is_good)
        status = bsw_fail(err, BSW_ERROR_SELF_CHECK, "place %d of %d", transport->local_rank,
                          transport->num_local_ranks);
    return bsw_transport_agree(transport, status, err);
}

// Before the transport opens.
static void move_apart(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    int left = rank ? atoi(rank) : 0;
    cpu_set_t cpus, one;
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &cpus) && left-- == 0) CPU_SET(cpu, &one);
    }
    (void)sched_setaffinity(0, sizeof one, &one);
}

static enum bsw_status run_apart(bsw_transport *transport, const char *argument,
                                 struct bsw_error *err)
{
    (void)argument;
    enum bsw_status status = BSW_OK;
    if (transport->local_rank != 0 || transport->num_local_ranks != 1)
        status = bsw_fail(err, BSW_ERROR_SELF_CHECK, "place %d of %d", transport->local_rank,
                          transport->num_local_ranks);
    return bsw_transport_agree(transport, status, err);
}

// ---- the program --------------------------------------------------------------------------------

static const struct {
    const char *name;
    enum bsw_status (*run)(bsw_transport *, const char *, struct bsw_error *);
} modes[] = {{"all", run_all},         {"pieces", run_pieces},     {"silent", run_silent},
             {"stopped", run_stopped}, {"absent", run_absent},     {"killed", run_killed},
             {"fail", run_fail},       {"together", run_together}, {"apart", run_apart},
             {"alarm", run_alarm},     {"polled", run_polled}};

static enum bsw_status run_mode(bsw_transport *transport, const char *name, const char *argument,
                                struct bsw_error *err)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, name) == 0) return modes[i].run(transport, argument, err);
    }
    bsw_fail(err, BSW_ERROR_USAGE, "there is no check '%s'", name);
    return bsw_transport_agree(transport, BSW_ERROR_USAGE, err);
}

// As the main program does: after an agreement rank 0 speaks for all; a rank that lost the others
// speaks for itself.
int main(int argc, char **argv)
{
    bsw_transport transport;
    struct bsw_error err = {.rank = -1};
    if (argc > 1 && strcmp(argv[1], "apart") == 0) move_apart();
    enum bsw_status status = bsw_transport_open(&transport, &err);
    if (status == BSW_OK) {
        transport.timeout_seconds = TEST_TIMEOUT_SECONDS;
        status = run_mode(&transport, argc > 1 ? argv[1] : "all", argc > 2 ? argv[2] : "0", &err);
    }
    if (status != BSW_OK && (transport.rank == 0 || transport.broken != BSW_OK))
        fprintf(stderr, "transport_ranks: rank %d: %s\n", err.rank, err.message);
    if (transport.rank == 0)
        bsw_run_status_write(status, status != BSW_OK ? err.message : "", NULL);
    bsw_transport_close(&transport, status != BSW_OK);
    return bsw_status_exit_code(status);
}
