// SPDX-License-Identifier: Apache-2.0
#include "common/net/transport.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/net/heartbeat.h"
#include "common/net/transport_inbox.h"

#define KIND_OUTCOME        (BSW_KIND_RESERVED + 0) // a rank's own status, to rank 0
#define KIND_VERDICT        (BSW_KIND_RESERVED + 1) // what all agree on, from rank 0

#define MAX_TIMEOUT_SECONDS 1e9
#define MAX_NAMED_RANKS     3

// ---- start and end ------------------------------------------------------------------------------

// What launchers set for each process they start. Slurm's own variables are no sign: a batch script
// has them too.
static int was_started_by_mpi_launcher(void)
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "PMI_FD",
        "MV2_COMM_WORLD_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (getenv(names[i])) return 1;
    }
    return 0;
}

// Number of processes the launcher says it started; 1 where none says so.
static long num_started(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE",
                                        "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        long number = value ? strtol(value, NULL, 10) : 0;
        if (number > 0) return number;
    }
    return 1;
}

static enum bsw_status init_back_end(bsw_transport *transport, struct bsw_error *err)
{
    if (!was_started_by_mpi_launcher()) {
        if (num_started() > 1) {
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "srun started %ld processes that do not know of each other: use srun "
                            "--mpi=pmix or bitsweep-ranks (deploy/run.sh)",
                            num_started());
        }
        bsw_transport_local_init(transport);
        return BSW_OK;
    }
#ifdef BITSWEEP_HAVE_MPI
    return bsw_transport_mpi_init(transport, err);
#else
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "started by mpirun or srun, but built without MPI: build with "
                    "-DBITSWEEP_MPI=ON or start it alone");
#endif
}

// Another MPI's mpirun makes every process the only one of its own world: each would then do the
// whole job and write the same files.
static enum bsw_status check_num_ranks(bsw_transport *transport, struct bsw_error *err)
{
    long expected = num_started();
    if (expected == 1 || expected == transport->num_ranks) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%ld processes were started, but MPI sees %d: is mpirun of the same MPI as "
                    "this program?",
                    expected, transport->num_ranks);
}

enum bsw_status bsw_transport_open(bsw_transport *transport, struct bsw_error *err)
{
    *transport = (bsw_transport){.timeout_seconds = BSW_TIMEOUT_SECONDS};
    BSW_TRY(init_back_end(transport, err));
    enum bsw_status status = check_num_ranks(transport, err);
    if (status == BSW_OK) {
        status = bsw_allocate_zero(&transport->heard, (size_t)transport->num_ranks, 1,
                                   "table of ranks", err);
    }
    transport->broken = status;
    return status;
}

enum bsw_status bsw_transport_join(bsw_transport *transport, int comm, struct bsw_error *err)
{
    *transport = (bsw_transport){.timeout_seconds = BSW_TIMEOUT_SECONDS, .is_joined = 1};
#ifdef BITSWEEP_HAVE_MPI
    BSW_TRY(bsw_transport_mpi_join(transport, comm, err));
    transport->broken = bsw_allocate_zero(&transport->heard, (size_t)transport->num_ranks, 1,
                                          "table of ranks", err);
    return transport->broken;
#else
    (void)comm;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "built without MPI, which ranks need: build with -DBITSWEEP_MPI=ON");
#endif
}

void bsw_transport_close(bsw_transport *transport, int failed)
{
    if (!transport->ops) return;
    transport->ops->close(transport, failed);
    transport->ops = NULL;
    bsw_free(&transport->heard);
}

// ---- deadlines and their texts ------------------------------------------------------------------

// Where rank 0 itself is the silent one, the others speak up one after the other, and the first of
// them ends the job.
double bsw_transport_patience_seconds(const bsw_transport *transport)
{
    double seconds = transport->timeout_seconds;
    if (transport->rank > 0) {
        int turn = transport->rank < 40 ? transport->rank : 40;
        seconds += 3.0 + 0.25 * turn;
    }
    return seconds < MAX_TIMEOUT_SECONDS ? seconds : MAX_TIMEOUT_SECONDS;
}

static int64_t deadline_from_now(const bsw_transport *transport)
{
    return bsw_clock_ns() + (int64_t)(bsw_transport_patience_seconds(transport) * 1e9);
}

static void describe_message(char *out, size_t capacity, const struct bsw_message *message)
{
    if (message->kind >= BSW_KIND_RESERVED)
        snprintf(out, capacity, "agreement %" PRIu64, message->batch);
    else if (message->name)
        snprintf(out, capacity, "%s of batch %" PRIu64, message->name, message->batch);
    else
        snprintf(out, capacity, "messages of kind %" PRIu32 " of batch %" PRIu64, message->kind,
                 message->batch);
}

static int is_heard_for(const bsw_transport *transport, const struct bsw_message *message)
{
    return transport->heard && transport->heard_for.kind == message->kind &&
           transport->heard_for.epoch == message->epoch &&
           transport->heard_for.batch == message->batch;
}

static void note_heard(bsw_transport *transport, const struct bsw_message *message, int source)
{
    if (!transport->heard) return;
    if (!is_heard_for(transport, message)) {
        memset(transport->heard, 0, (size_t)transport->num_ranks);
        transport->heard_for = *message;
        transport->heard_for.name = NULL;
    }
    transport->heard[source] = 1;
}

// "rank 3" or "ranks 1, 2, 3 and 4 others": all ranks that have not sent this message yet. "no
// rank" where each has sent one and more were awaited.
static void describe_missing(char *out, size_t capacity, const bsw_transport *transport,
                             const struct bsw_message *message)
{
    int table_is_valid = is_heard_for(transport, message), missing = 0;
    char list[MAX_NAMED_RANKS * 16] = "";
    for (int rank = 0; rank < transport->num_ranks; rank++) {
        if (rank == transport->rank || (table_is_valid && transport->heard[rank])) continue;
        size_t used = strlen(list);
        if (missing < MAX_NAMED_RANKS)
            snprintf(list + used, sizeof list - used, "%s%d", missing ? ", " : "", rank);
        missing++;
    }
    if (missing == 0)
        snprintf(out, capacity, "no rank");
    else if (missing <= MAX_NAMED_RANKS)
        snprintf(out, capacity, "rank%s %s", missing > 1 ? "s" : "", list);
    else
        snprintf(out, capacity, "ranks %s and %d others", list, missing - MAX_NAMED_RANKS);
}

static enum bsw_status fail_receive_timeout(const bsw_transport *transport, int from,
                                            const struct bsw_message *message,
                                            struct bsw_error *err)
{
    char who[96], what[96];
    if (from == BSW_ANY_RANK)
        describe_missing(who, sizeof who, transport, message);
    else
        snprintf(who, sizeof who, "rank %d", from);
    describe_message(what, sizeof what, message);
    const char *verb = strcmp(who, "no rank") == 0 ? "answered" : "did not answer";
    return bsw_fail(err, BSW_ERROR_TIMEOUT, "%s %s within %.6g s (awaiting %s)", who, verb,
                    bsw_transport_patience_seconds(transport), what);
}

static enum bsw_status fail_send_timeout(const bsw_transport *transport, int to,
                                         const struct bsw_message *message, struct bsw_error *err)
{
    char what[96];
    describe_message(what, sizeof what, message);
    return bsw_fail(err, BSW_ERROR_TIMEOUT, "rank %d did not take %s within %.6g s", to, what,
                    bsw_transport_patience_seconds(transport));
}

// A failed call leaves a message half way, so nothing that follows could be trusted.
static enum bsw_status break_transport(bsw_transport *transport, enum bsw_status status,
                                       struct bsw_error *err)
{
    transport->broken = status;
    // The error of an alarm has its rank already.
    if (err && transport->num_ranks > 1 && err->rank < 0) err->rank = transport->rank;
    if (err) transport->broken_error = *err;
    return status;
}

// ---- messages -----------------------------------------------------------------------------------

static enum bsw_status check_usable(const bsw_transport *transport, int peer, struct bsw_error *err)
{
    if (transport->broken != BSW_OK) {
        return bsw_fail(err, transport->broken, "the connection between the ranks failed before");
    }
    if (peer < 0 || peer >= transport->num_ranks) {
        return bsw_fail(err, BSW_ERROR_USAGE, "there is no rank %d among %d", peer,
                        transport->num_ranks);
    }
    return BSW_OK;
}

static enum bsw_status send_until(bsw_transport *transport, int to,
                                  const struct bsw_message *message, const void *data, size_t bytes,
                                  int64_t deadline_ns, struct bsw_error *err)
{
    BSW_TRY(check_usable(transport, to, err));
    enum bsw_status status =
        transport->ops->send(transport, to, message, data, bytes, deadline_ns, err);
    if (status == BSW_OK) return status;
    if (status == BSW_ERROR_TIMEOUT) fail_send_timeout(transport, to, message, err);
    return break_transport(transport, status, err);
}

static enum bsw_status receive_until(bsw_transport *transport, int from,
                                     const struct bsw_message *expected, struct bsw_buffer *data,
                                     int *source, int64_t deadline_ns, struct bsw_error *err)
{
    int sender;
    BSW_TRY(check_usable(transport, from == BSW_ANY_RANK ? 0 : from, err));
    enum bsw_status status =
        transport->ops->receive(transport, from, expected, data, &sender, deadline_ns, err);
    if (status == BSW_OK) {
        if (from == BSW_ANY_RANK) note_heard(transport, expected, sender);
        if (source) *source = sender;
        return status;
    }
    if (status == BSW_ERROR_TIMEOUT) fail_receive_timeout(transport, from, expected, err);
    return break_transport(transport, status, err);
}

static enum bsw_status check_kind(const struct bsw_message *message, struct bsw_error *err)
{
    if (message->kind < BSW_KIND_RESERVED) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "message kind %" PRIu32 " is the transport's own",
                    message->kind);
}

enum bsw_status bsw_transport_send(bsw_transport *transport, int to,
                                   const struct bsw_message *message, const void *data,
                                   size_t bytes, struct bsw_error *err)
{
    BSW_TRY(check_kind(message, err));
    return send_until(transport, to, message, data, bytes, deadline_from_now(transport), err);
}

enum bsw_status bsw_transport_receive(bsw_transport *transport, int from,
                                      const struct bsw_message *expected, struct bsw_buffer *data,
                                      int *source, struct bsw_error *err)
{
    BSW_TRY(check_kind(expected, err));
    return receive_until(transport, from, expected, data, source, deadline_from_now(transport),
                         err);
}

// Binomial tree: a rank's parent is the rank without its lowest set bit, its children are the rank
// plus each power of two below that bit; the child with the largest subtree is served first.
static enum bsw_status broadcast_until(bsw_transport *transport, const struct bsw_message *message,
                                       struct bsw_buffer *data, int64_t deadline_ns,
                                       struct bsw_error *err)
{
    int64_t rank = transport->rank, span = 1;
    while (span < transport->num_ranks && !(rank & span)) span *= 2;
    if (rank > 0) {
        BSW_TRY(
            receive_until(transport, (int)(rank - span), message, data, NULL, deadline_ns, err));
    }
    for (span /= 2; span > 0; span /= 2) {
        if (rank + span >= transport->num_ranks) continue;
        BSW_TRY(send_until(transport, (int)(rank + span), message, data->data, data->bytes,
                           deadline_ns, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_transport_broadcast(bsw_transport *transport, const struct bsw_message *message,
                                        struct bsw_buffer *data, struct bsw_error *err)
{
    BSW_TRY(check_kind(message, err));
    return broadcast_until(transport, message, data, deadline_from_now(transport), err);
}

// ---- agreement ----------------------------------------------------------------------------------

static struct bsw_outcome outcome_of(const bsw_transport *transport, enum bsw_status status,
                                     const struct bsw_error *err)
{
    struct bsw_outcome outcome = {.status = (int32_t)status, .rank = transport->rank};
    if (status != BSW_OK) {
        snprintf(outcome.message, sizeof outcome.message, "%s",
                 err ? err->message : bsw_status_name(status));
    }
    return outcome;
}

// Rank 0: the outcome of the lowest rank that failed, its own included.
static enum bsw_status collect_outcomes(bsw_transport *transport, struct bsw_outcome *worst,
                                        struct bsw_buffer *data, int64_t deadline_ns,
                                        struct bsw_error *err)
{
    struct bsw_message message = {.kind = KIND_OUTCOME, .batch = transport->num_agreements};
    for (int i = 1; i < transport->num_ranks; i++) {
        struct bsw_outcome outcome;
        int source;
        BSW_TRY(receive_until(transport, BSW_ANY_RANK, &message, data, &source, deadline_ns, err));
        BSW_TRY(bsw_outcome_read(data->data, data->bytes, source, &outcome, err));
        outcome.rank = source;
        if (outcome.status == BSW_OK) continue;
        if (worst->status == BSW_OK || outcome.rank < worst->rank) *worst = outcome;
    }
    return BSW_OK;
}

static enum bsw_status exchange_outcomes(bsw_transport *transport, struct bsw_outcome *outcome,
                                         struct bsw_buffer *data, struct bsw_error *err)
{
    int64_t deadline_ns = deadline_from_now(transport);
    struct bsw_message message = {.kind = KIND_OUTCOME, .batch = transport->num_agreements};
    if (transport->rank == 0) {
        BSW_TRY(collect_outcomes(transport, outcome, data, deadline_ns, err));
        data->bytes = 0;
        BSW_TRY(bsw_buffer_append(data, outcome, sizeof *outcome, err));
    } else {
        BSW_TRY(send_until(transport, 0, &message, outcome, sizeof *outcome, deadline_ns, err));
    }
    message.kind = KIND_VERDICT;
    BSW_TRY(broadcast_until(transport, &message, data, deadline_ns, err));
    return bsw_outcome_read(data->data, data->bytes, 0, outcome, err);
}

enum bsw_status bsw_transport_agree(bsw_transport *transport, enum bsw_status status,
                                    struct bsw_error *err)
{
    int is_broken = transport->broken != BSW_OK;
    if (err && status != BSW_OK && !(is_broken && err->rank >= 0)) // an alarm's error has its rank
        err->rank = transport->num_ranks > 1 ? transport->rank : -1;
    if (transport->num_ranks == 1) return status;
    // Once broken, no word of ours can be relied on to arrive: the others learn it from the end of
    // the job.
    if (is_broken && status != BSW_OK) return status;
    transport->num_agreements++;
    struct bsw_outcome outcome = outcome_of(transport, status, err);
    struct bsw_buffer data = {0};
    enum bsw_status exchanged = exchange_outcomes(transport, &outcome, &data, err);
    bsw_buffer_deinit(&data);
    if (exchanged != BSW_OK) return break_transport(transport, exchanged, err);
    if (outcome.status == BSW_OK) return BSW_OK;
    bsw_fail(err, (enum bsw_status)outcome.status, "%s", outcome.message);
    if (err) err->rank = outcome.rank;
    return (enum bsw_status)outcome.status;
}

// ---- alarm --------------------------------------------------------------------------------------

enum bsw_status bsw_transport_poll(bsw_transport *transport, struct bsw_error *err)
{
    BSW_TRY(check_usable(transport, 0, err));
    enum bsw_status status = transport->ops->poll(transport, err);
    return status == BSW_OK ? status : break_transport(transport, status, err);
}

// Until mpirun ends this process. What else arrives is of no use any more.
static void await_end(bsw_transport *transport)
{
    const struct timespec nap = {0, 1000000};
    int64_t deadline_ns = deadline_from_now(transport);
    do {
        if (transport->ops->poll(transport, NULL) != BSW_OK) return;
        nanosleep(&nap, NULL);
    } while (bsw_clock_ns() < deadline_ns);
}

enum bsw_status bsw_transport_raise(bsw_transport *transport, enum bsw_status status,
                                    struct bsw_error *err)
{
    if (transport->num_ranks > 1 && transport->rank > 0 && transport->broken == BSW_OK) {
        const struct bsw_message message = {.kind = BSW_KIND_ALARM, .batch = BSW_ALARM_BATCH};
        struct bsw_outcome outcome = outcome_of(transport, status, err);
        if (transport->ops->send(transport, 0, &message, &outcome, sizeof outcome,
                                 deadline_from_now(transport), NULL) == BSW_OK &&
            !transport->is_joined)
            await_end(transport);
    }
    return break_transport(transport, status, err);
}

// ---- from all, to all ----

enum bsw_status bsw_collect(bsw_transport *transport, const struct bsw_message *message,
                            const void *own, size_t bytes, bsw_collect_take *take, void *context,
                            struct bsw_error *err)
{
    struct bsw_buffer payload = {0};
    enum bsw_status status = BSW_OK;
    if (transport->rank != 0) return bsw_transport_send(transport, 0, message, own, bytes, err);
    // Also after a failure of take: what was left would be taken for messages of a call to come.
    for (int rank = 1; rank < transport->num_ranks; rank++) {
        struct bsw_error *where = status == BSW_OK ? err : NULL;
        enum bsw_status got =
            bsw_transport_receive(transport, rank, message, &payload, NULL, where);
        if (status == BSW_OK) status = got;
        if (got != BSW_OK) break;
        if (status == BSW_OK) status = take(context, rank, &payload, err);
    }
    bsw_buffer_deinit(&payload);
    return status;
}

struct records {
    unsigned char *all;
    size_t bytes;
    const char *name;
};

static enum bsw_status take_record(void *context, int rank, const struct bsw_buffer *payload,
                                   struct bsw_error *err)
{
    const struct records *records = context;
    if (payload->bytes != records->bytes)
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %zu bytes of %s, not %zu", rank,
                        payload->bytes, records->name, records->bytes);
    memcpy(records->all + (size_t)rank * records->bytes, payload->data, records->bytes);
    return BSW_OK;
}

enum bsw_status bsw_collect_records(bsw_transport *transport, const struct bsw_message *message,
                                    const void *own, size_t bytes, void *all, struct bsw_error *err)
{
    struct records records = {all, bytes, message->name ? message->name : "a message"};
    if (transport->rank == 0) memcpy(all, own, bytes);
    return bsw_collect(transport, message, own, bytes, take_record, &records, err);
}

enum bsw_status bsw_collect_buffers(bsw_transport *transport, const struct bsw_message *message,
                                    const struct bsw_buffer *own, struct bsw_buffer *payloads,
                                    struct bsw_error *err)
{
    if (transport->rank != 0)
        return bsw_transport_send(transport, 0, message, own->data, own->bytes, err);
    for (int rank = 1; rank < transport->num_ranks; rank++)
        BSW_TRY(bsw_transport_receive(transport, rank, message, &payloads[rank], NULL, err));
    return BSW_OK;
}

enum bsw_status bsw_share_record(bsw_transport *transport, const struct bsw_message *message,
                                 void *data, size_t bytes, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    enum bsw_status status = BSW_OK;
    if (transport->num_ranks == 1) return BSW_OK;
    if (transport->rank == 0) status = bsw_buffer_append(&buffer, data, bytes, err);
    if (status == BSW_OK) status = bsw_transport_broadcast(transport, message, &buffer, err);
    if (status == BSW_OK && buffer.bytes != bytes)
        status = bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent %zu bytes of %s, not %zu", buffer.bytes,
                          message->name, bytes);
    if (status == BSW_OK && transport->rank != 0) memcpy(data, buffer.data, bytes);
    bsw_buffer_deinit(&buffer);
    return status;
}

// ---- the watch ----

// The watch over the ranks of a transport: common/net/heartbeat.h, set up over its messages, and
// ended with it.

#define KIND_PLACE      (BSW_KIND_RESERVED - 1) // of no batch: it comes before all others
#define TOLD_TO_WAIT_MS 1000

static void end_process(void *context, const struct bsw_stop_cause *cause)
{
    (void)context;
    bsw_stop_for(cause);
}

static int find(void *context, struct bsw_stop_cause *cause)
{
    return bsw_heartbeat_find(context, cause);
}

static void tell(void *context, const struct bsw_error *error, int is_said)
{
    bsw_heartbeat_tell(context, error, is_said);
}

// Where rank 0 cannot listen it says so by a place without a port, and by the agreement.
static enum bsw_status meet(bsw_transport *transport, const struct bsw_heartbeat_options *options,
                            struct bsw_error *err)
{
    const struct bsw_message message = {.kind = KIND_PLACE, .name = "heartbeats"};
    struct bsw_heartbeat_place place = {0};
    enum bsw_status status = BSW_OK;
    if (transport->rank == 0)
        status = bsw_heartbeat_listen(options, &place, &transport->heartbeat, err);
    BSW_TRY(
        bsw_share_record(transport, &message, &place, sizeof place, status == BSW_OK ? err : NULL));
    if (transport->rank > 0 && place.port > 0)
        status = bsw_heartbeat_join(options, &place, &transport->heartbeat, err);
    return status;
}

enum bsw_status bsw_transport_watch(bsw_transport *transport, double limit_seconds,
                                    struct bsw_error *err)
{
    if (transport->num_ranks == 1 || limit_seconds <= 0) return BSW_OK;
    const struct bsw_heartbeat_options options = {transport->rank, transport->num_ranks,
                                                  limit_seconds, end_process, NULL};
    enum bsw_status status = meet(transport, &options, err);
    status = bsw_transport_agree(transport, status, err);
    if (status != BSW_OK) {
        bsw_transport_unwatch(transport);
        return status;
    }
    const struct bsw_stop_observer observer = {find, tell, transport->heartbeat};
    bsw_stop_set_observer(&observer);
    return BSW_OK;
}

void bsw_transport_unwatch(bsw_transport *transport)
{
    if (!transport->heartbeat) return;
    bsw_stop_set_observer(NULL);
    if (transport->broken != BSW_OK) {
        bsw_heartbeat_tell(transport->heartbeat, &transport->broken_error, 1);
        if (transport->rank > 0) bsw_heartbeat_await_close(transport->heartbeat, TOLD_TO_WAIT_MS);
    }
    bsw_heartbeat_close(&transport->heartbeat);
}
