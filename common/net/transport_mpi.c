// SPDX-License-Identifier: Apache-2.0
// The transport over MPI: one poll loop of non-blocking calls for everything that waits.
//
// A message is a header with up to INLINE_BYTES of payload behind it, under TAG_HEADER. A larger
// payload follows in pieces under TAG_BODY. MPI keeps the order of a sender's messages under one
// tag, so the two sequences fit together by themselves. Whoever waits, also for a send, receives
// whatever arrives into the inbox: two ranks that send to each other cannot block each other.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // sched_getaffinity
#endif
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/thread_pinning.h"
#include "common/net/mpi_library.h"
#include "common/net/transport.h"
#include "common/net/transport_inbox.h"

#define TAG_HEADER        1
#define TAG_BODY          2
#define MAGIC             0x31575342u // "BSW1"; a rank of other byte order or version shows here

#define INLINE_BYTES      ((size_t)64 * 1024)
#define PIECE_BYTES       ((size_t)1 << 30)   // MPI counts are int
#define MAX_MESSAGE_BYTES ((uint64_t)1 << 40) // beyond this a header is garbage

// Waiting: spin for some microseconds, then let others run, then sleep for longer and longer.
#define SPIN_POLLS                   200
#define YIELD_POLLS                  100
#define YIELD_POLLS_IN_TRANSFER      2000 // both sides must poll: two that sleep in turn take long
#define FIRST_SLEEP_NS               5000
#define MAX_SLEEP_NS                 200000
#define MAX_SLEEP_IN_TRANSFER_NS     20000 // large payloads in flight move only while we poll

#define FAREWELL_SECONDS_AFTER_ERROR 30.0
#define SHUTDOWN_ALARM_SECONDS       30

struct wire_header {
    uint32_t magic;
    uint32_t kind;
    uint32_t epoch;
    uint32_t reserved;
    uint64_t batch;
    uint64_t bytes;
};
_Static_assert(sizeof(struct wire_header) == 32, "no padding on the wire");

struct mpi_state {
    MPI_Comm comm; // our own: no tag of anyone else
    struct bsw_inbox inbox;
    int num_spins; // 0 where ranks share cores: spinning would keep the awaited one from running
    int is_sending;
    struct mpi_state *next; // of those that could not be freed
    unsigned char staging[sizeof(struct wire_header) + INLINE_BYTES];
};

// A message on its way in. Header first; then, for a large one, the pieces of its body.
struct incoming {
    struct bsw_envelope envelope; // first: the inbox frees it
    MPI_Request request;          // MPI_REQUEST_NULL while it waits for its turn
    int expected_count;           // of the request
    int has_header;
    size_t body_bytes;
    size_t body_received;
};

static enum bsw_status fail_mpi(struct bsw_error *err, const char *function, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
    return bsw_fail(err, BSW_ERROR_PEER, "%s: %.*s", function, length, text);
}

// Every MPI call that may fail goes through here.
#define TRY_MPI(err, function, ...)                                               \
    do {                                                                          \
        int mpi_code_ = function(__VA_ARGS__);                                    \
        if (mpi_code_ != MPI_SUCCESS) return fail_mpi(err, #function, mpi_code_); \
    } while (0)

// ---- waiting ------------------------------------------------------------------------------------

struct backoff {
    int64_t deadline_ns;
    int64_t sleep_ns;
    int polls; // without any news
};

static void backoff_begin(struct backoff *backoff, int64_t deadline_ns)
{
    *backoff = (struct backoff){deadline_ns, FIRST_SLEEP_NS, 0};
}

static void sleep_once(struct backoff *backoff, int64_t max_ns, int64_t left_ns)
{
    int64_t ns = backoff->sleep_ns < max_ns ? backoff->sleep_ns : max_ns;
    if (ns > left_ns) ns = left_ns;
    struct timespec pause = {0, (long)ns};
    nanosleep(&pause, NULL);
    if (backoff->sleep_ns < MAX_SLEEP_NS) backoff->sleep_ns *= 2;
}

// Called after a poll; `moved` tells whether that poll found anything new.
static enum bsw_status wait_a_little(const struct mpi_state *state, struct backoff *backoff,
                                     int moved, struct bsw_error *err)
{
    int64_t left_ns = backoff->deadline_ns - bsw_clock_ns();
    if (left_ns <= 0) return bsw_fail(err, BSW_ERROR_TIMEOUT, "the deadline has passed");
    if (moved) {
        backoff_begin(backoff, backoff->deadline_ns);
        return BSW_OK;
    }
    if (++backoff->polls <= state->num_spins) return BSW_OK;
    int in_transfer = state->is_sending || state->inbox.num_incomplete > 0;
    if (backoff->polls <=
        state->num_spins + (in_transfer ? YIELD_POLLS_IN_TRANSFER : YIELD_POLLS)) {
        sched_yield();
        return BSW_OK;
    }
    sleep_once(backoff, in_transfer ? MAX_SLEEP_IN_TRANSFER_NS : MAX_SLEEP_NS, left_ns);
    return BSW_OK;
}

// ---- what arrives -------------------------------------------------------------------------------

static enum bsw_status start_header(struct mpi_state *state, MPI_Message *handle,
                                    const MPI_Status *probed, struct bsw_error *err)
{
    int count;
    TRY_MPI(err, MPI_Get_count, probed, MPI_BYTE, &count);
    if (count < (int)sizeof(struct wire_header) || count > (int)sizeof state->staging) {
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %d bytes that are no message of ours",
                        probed->MPI_SOURCE, count);
    }
    struct incoming *incoming;
    BSW_TRY(bsw_allocate_zero(&incoming, 1, sizeof *incoming, "message", err));
    incoming->envelope.source = probed->MPI_SOURCE;
    incoming->request = MPI_REQUEST_NULL;
    incoming->expected_count = count;
    bsw_inbox_push(&state->inbox, &incoming->envelope);
    struct bsw_buffer *buffer = &incoming->envelope.buffer;
    BSW_TRY(bsw_buffer_reserve(buffer, (size_t)count, err));
    TRY_MPI(err, MPI_Imrecv, buffer->data, count, MPI_BYTE, handle, &incoming->request);
    buffer->bytes = (size_t)count;
    return BSW_OK;
}

static enum bsw_status read_header(struct mpi_state *state, struct incoming *incoming,
                                   struct bsw_error *err)
{
    struct bsw_envelope *envelope = &incoming->envelope;
    struct wire_header header;
    memcpy(&header, envelope->buffer.data, sizeof header);
    size_t inline_bytes = envelope->buffer.bytes - sizeof header;
    int is_inline = header.bytes <= INLINE_BYTES;
    if (header.magic != MAGIC || header.bytes > MAX_MESSAGE_BYTES ||
        inline_bytes != (is_inline ? header.bytes : 0)) {
        return bsw_fail(err, BSW_ERROR_PEER,
                        "rank %d sent a malformed header: do all ranks run the same build?",
                        envelope->source);
    }
    envelope->message = (struct bsw_message){header.kind, header.epoch, header.batch, NULL};
    incoming->has_header = 1;
    if (is_inline) {
        envelope->offset = sizeof header;
        bsw_inbox_complete(&state->inbox, envelope);
        return BSW_OK;
    }
    envelope->buffer.bytes = 0;
    incoming->body_bytes = (size_t)header.bytes;
    return bsw_buffer_reserve(&envelope->buffer, incoming->body_bytes, err);
}

// Bodies of one sender are received one after the other, as they were sent.
static enum bsw_status start_piece(struct mpi_state *state, struct incoming *incoming,
                                   struct bsw_error *err)
{
    if (bsw_inbox_is_blocked(&state->inbox, &incoming->envelope)) return BSW_OK;
    size_t left = incoming->body_bytes - incoming->body_received;
    incoming->expected_count = (int)(left < PIECE_BYTES ? left : PIECE_BYTES);
    TRY_MPI(err, MPI_Irecv, incoming->envelope.buffer.data + incoming->body_received,
            incoming->expected_count, MPI_BYTE, incoming->envelope.source, TAG_BODY, state->comm,
            &incoming->request);
    return BSW_OK;
}

static void end_piece(struct mpi_state *state, struct incoming *incoming)
{
    incoming->body_received += (size_t)incoming->expected_count;
    incoming->envelope.buffer.bytes = incoming->body_received;
    if (incoming->body_received == incoming->body_bytes)
        bsw_inbox_complete(&state->inbox, &incoming->envelope);
}

static enum bsw_status advance(struct mpi_state *state, struct incoming *incoming, int *moved,
                               struct bsw_error *err)
{
    if (incoming->request == MPI_REQUEST_NULL) return start_piece(state, incoming, err);
    int done, count;
    MPI_Status facts;
    TRY_MPI(err, MPI_Test, &incoming->request, &done, &facts);
    if (!done) return BSW_OK;
    *moved = 1;
    TRY_MPI(err, MPI_Get_count, &facts, MPI_BYTE, &count);
    if (count != incoming->expected_count) {
        return bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %d bytes where %d were announced",
                        incoming->envelope.source, count, incoming->expected_count);
    }
    if (!incoming->has_header)
        BSW_TRY(read_header(state, incoming, err));
    else
        end_piece(state, incoming);
    return incoming->envelope.complete ? BSW_OK : start_piece(state, incoming, err);
}

// One poll. Whatever waits calls this again and again.
static enum bsw_status progress(struct mpi_state *state, int *moved, struct bsw_error *err)
{
    int found;
    MPI_Message handle;
    MPI_Status probed;
    *moved = 0;
    TRY_MPI(err, MPI_Improbe, MPI_ANY_SOURCE, TAG_HEADER, state->comm, &found, &handle, &probed);
    if (found) {
        *moved = 1;
        BSW_TRY(start_header(state, &handle, &probed, err));
    }
    if (state->inbox.num_incomplete == 0) return BSW_OK;
    for (struct bsw_envelope *envelope = state->inbox.first; envelope; envelope = envelope->next) {
        if (!envelope->complete) BSW_TRY(advance(state, (struct incoming *)envelope, moved, err));
    }
    return BSW_OK;
}

static enum bsw_status receive_mpi(bsw_transport *transport, int from,
                                   const struct bsw_message *expected, struct bsw_buffer *data,
                                   int *source, int64_t deadline_ns, struct bsw_error *err)
{
    struct mpi_state *state = transport->state;
    struct backoff backoff;
    backoff_begin(&backoff, deadline_ns);
    for (;;) {
        struct bsw_envelope *envelope = bsw_inbox_take(&state->inbox, from, expected);
        if (envelope) return bsw_envelope_deliver(envelope, data, source, err);
        int moved;
        BSW_TRY(progress(state, &moved, err));
        BSW_TRY(bsw_inbox_check_alarm(&state->inbox, err));
        BSW_TRY(wait_a_little(state, &backoff, moved, err));
    }
}

static enum bsw_status poll_mpi(bsw_transport *transport, struct bsw_error *err)
{
    struct mpi_state *state = transport->state;
    int moved;
    BSW_TRY(progress(state, &moved, err));
    return bsw_inbox_check_alarm(&state->inbox, err);
}

// ---- what is sent -------------------------------------------------------------------------------

static enum bsw_status wait_for(struct mpi_state *state, MPI_Request *request, int64_t deadline_ns,
                                struct bsw_error *err)
{
    struct backoff backoff;
    backoff_begin(&backoff, deadline_ns);
    for (;;) {
        int done, moved;
        TRY_MPI(err, MPI_Test, request, &done, MPI_STATUS_IGNORE);
        if (done) return BSW_OK;
        BSW_TRY(progress(state, &moved, err));
        BSW_TRY(bsw_inbox_check_alarm(&state->inbox, err));
        BSW_TRY(wait_a_little(state, &backoff, moved, err));
    }
}

static enum bsw_status send_piece(struct mpi_state *state, int to, int tag, const void *data,
                                  size_t bytes, int64_t deadline_ns, struct bsw_error *err)
{
    MPI_Request request;
    int code = BSW_FAULT(SEND, MPI_ERR_OTHER,
                         MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, state->comm, &request));
    if (code != MPI_SUCCESS) return fail_mpi(err, "MPI_Isend", code);
    return wait_for(state, &request, deadline_ns, err);
}

static enum bsw_status send_body(struct mpi_state *state, int to, const unsigned char *data,
                                 size_t bytes, int64_t deadline_ns, struct bsw_error *err)
{
    for (size_t sent = 0; sent < bytes;) {
        size_t piece = bytes - sent < PIECE_BYTES ? bytes - sent : PIECE_BYTES;
        BSW_TRY(send_piece(state, to, TAG_BODY, data + sent, piece, deadline_ns, err));
        sent += piece;
    }
    return BSW_OK;
}

static enum bsw_status send_mpi(bsw_transport *transport, int to, const struct bsw_message *message,
                                const void *data, size_t bytes, int64_t deadline_ns,
                                struct bsw_error *err)
{
    struct mpi_state *state = transport->state;
    if (to == transport->rank)
        return bsw_inbox_push_copy(&state->inbox, to, message, data, bytes, err);
    if (bytes > MAX_MESSAGE_BYTES)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "a message of %zu bytes", bytes);
    struct wire_header header = {MAGIC, message->kind, message->epoch, 0, message->batch, bytes};
    size_t inline_bytes = bytes <= INLINE_BYTES ? bytes : 0;
    memcpy(state->staging, &header, sizeof header);
    if (inline_bytes > 0) memcpy(state->staging + sizeof header, data, inline_bytes);
    state->is_sending = 1;
    enum bsw_status status = send_piece(state, to, TAG_HEADER, state->staging,
                                        sizeof header + inline_bytes, deadline_ns, err);
    if (status == BSW_OK && inline_bytes < bytes)
        status = send_body(state, to, data, bytes, deadline_ns, err);
    state->is_sending = 0;
    return status;
}

// ---- start and end ------------------------------------------------------------------------------

// The barrier is not blocking and has a deadline. It keeps MPI_Finalize, which would wait for ever,
// from being called while some rank may never come; meanwhile what is still on its way is received.
static enum bsw_status say_farewell(struct mpi_state *state, int64_t deadline_ns,
                                    struct bsw_error *err)
{
    MPI_Request request;
    struct backoff backoff;
    int done = 0, moved;
    TRY_MPI(err, MPI_Ibarrier, state->comm, &request);
    backoff_begin(&backoff, deadline_ns);
    for (;;) {
        if (!done) TRY_MPI(err, MPI_Test, &request, &done, MPI_STATUS_IGNORE);
        BSW_TRY(progress(state, &moved, err));
        if (done && state->inbox.num_incomplete == 0) return BSW_OK;
        BSW_TRY(wait_a_little(state, &backoff, moved, err));
    }
}

// Ends all ranks. mpirun passes the code on and kills who does not go by itself.
static void end_job(enum bsw_status status)
{
    int code = bsw_status_exit_code(status);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

static void close_mpi(bsw_transport *transport, int failed)
{
    struct mpi_state *state = transport->state;
    if (transport->broken != BSW_OK && transport->num_ranks != 1) {
        bsw_transport_unwatch(transport);
        alarm(SHUTDOWN_ALARM_SECONDS); // whatever MPI does now, the process ends
        end_job(transport->broken);
    }
    double seconds = bsw_transport_patience_seconds(transport);
    if (failed && seconds > FAREWELL_SECONDS_AFTER_ERROR) seconds = FAREWELL_SECONDS_AFTER_ERROR;
    struct bsw_error err;
    enum bsw_status status = say_farewell(state, bsw_clock_ns() + (int64_t)(seconds * 1e9), &err);
    alarm(SHUTDOWN_ALARM_SECONDS);
    if (status != BSW_OK) {
        // The only line printed below the command layer: this call does not return to it.
        if (!failed)
            fprintf(stderr, "bitsweep: rank %d: not all ranks came to the end within %.6g s\n",
                    transport->rank, seconds);
        bsw_transport_unwatch(transport);
        end_job(BSW_ERROR_TIMEOUT);
    }
    bsw_transport_unwatch(transport);
    bsw_inbox_deinit(&state->inbox);
    MPI_Comm_free(&state->comm);
    bsw_free(&transport->state);
    MPI_Finalize();
    alarm(0);
}

// Closes a communicator that was joined: whatever happened, the process and its MPI go on. While
// messages may be under way, MPI reads from or writes to these buffers, so they stay for good.
static void leave_mpi(bsw_transport *transport, int failed)
{
    static struct mpi_state *left; // a chain, so that nothing counts as lost
    struct mpi_state *state = transport->state;
    struct bsw_error err;
    int is_over = 1, is_done = 0;
    int64_t deadline_ns =
        bsw_clock_ns() + (int64_t)(bsw_transport_patience_seconds(transport) * 1e9);
    if (MPI_Finalized(&is_over) != MPI_SUCCESS) is_over = 1;
    if (!is_over && !failed && transport->broken == BSW_OK)
        is_done = say_farewell(state, deadline_ns, &err) == BSW_OK;
    if (is_done) MPI_Comm_free(&state->comm); // else others may still use it
    transport->state = NULL;
    if (!is_done && !is_over) {
        state->next = left;
        left = state;
        return;
    }
    bsw_inbox_deinit(&state->inbox);
    bsw_free(&state);
}

static const struct bsw_transport_ops mpi_ops = {"mpi", send_mpi, receive_mpi, poll_mpi, close_mpi},
                                      joined_ops = {"mpi", send_mpi, receive_mpi, poll_mpi,
                                                    leave_mpi};

// Tells sets of CPUs apart: mpirun may have bound each rank of a host to CPUs of its own.
static int color_of_usable_cpus(void)
{
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 0;
    uint32_t hash = 2166136261u; // FNV-1a
    for (size_t i = 0; i < sizeof cpus; i++) {
        hash = (hash ^ ((const unsigned char *)&cpus)[i]) * 16777619u;
    }
    return (int)(hash >> 1);
}

// The ranks of this host, which share out its devices, and those of them that share CPUs.
static enum bsw_status find_neighbours(bsw_transport *transport, struct mpi_state *state,
                                       struct bsw_error *err)
{
    MPI_Comm host, neighbours;
    TRY_MPI(err, MPI_Comm_split_type, state->comm, MPI_COMM_TYPE_SHARED, transport->rank,
            MPI_INFO_NULL, &host);
    TRY_MPI(err, MPI_Comm_rank, host, &transport->host_rank);
    TRY_MPI(err, MPI_Comm_size, host, &transport->num_host_ranks);
    TRY_MPI(err, MPI_Comm_split, host, color_of_usable_cpus(), transport->rank, &neighbours);
    TRY_MPI(err, MPI_Comm_rank, neighbours, &transport->local_rank);
    TRY_MPI(err, MPI_Comm_size, neighbours, &transport->num_local_ranks);
    TRY_MPI(err, MPI_Comm_free, &neighbours);
    TRY_MPI(err, MPI_Comm_free, &host);
    state->num_spins = transport->num_local_ranks <= bsw_num_usable_cpus(NULL) ? SPIN_POLLS : 0;
    return BSW_OK;
}

static enum bsw_status init_comm(bsw_transport *transport, struct mpi_state *state, MPI_Comm comm,
                                 struct bsw_error *err)
{
    TRY_MPI(err, MPI_Comm_dup, comm, &state->comm);
    TRY_MPI(err, MPI_Comm_set_errhandler, state->comm, MPI_ERRORS_RETURN);
    TRY_MPI(err, MPI_Comm_rank, state->comm, &transport->rank);
    TRY_MPI(err, MPI_Comm_size, state->comm, &transport->num_ranks);
    return find_neighbours(transport, state, err);
}

enum bsw_status bsw_transport_mpi_init(bsw_transport *transport, struct bsw_error *err)
{
    int provided;
    BSW_TRY(bsw_mpi_library_load(err));
    TRY_MPI(err, MPI_Init_thread, NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    transport->ops = &mpi_ops;
    enum bsw_status status = BSW_OK;
    struct mpi_state *state = NULL;
    if (provided < MPI_THREAD_FUNNELED)
        status = bsw_fail(err, BSW_ERROR_PEER, "this MPI does not allow threads beside it");
    if (status == BSW_OK)
        status = bsw_allocate_zero(&state, 1, sizeof *state, "state of the transport", err);
    transport->state = state;
    if (status == BSW_OK && MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) != 0)
        status = bsw_fail(err, BSW_ERROR_PEER, "MPI_Comm_set_errhandler failed");
    if (status == BSW_OK) status = init_comm(transport, state, MPI_COMM_WORLD, err);
    transport->broken = status;
    return status;
}

// What the program that calls us must have done.
static enum bsw_status check_mpi(struct bsw_error *err)
{
    int is_there = 0, is_over = 0, provided = MPI_THREAD_SINGLE;
    TRY_MPI(err, MPI_Initialized, &is_there);
    TRY_MPI(err, MPI_Finalized, &is_over);
    if (!is_there || is_over)
        return bsw_fail(err, BSW_ERROR_USAGE, "MPI is %s: call MPI_Init_thread first",
                        is_over ? "finalized" : "not initialised");
    TRY_MPI(err, MPI_Query_thread, &provided);
    if (provided >= MPI_THREAD_FUNNELED) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "MPI allows no threads: call MPI_Init_thread with MPI_THREAD_FUNNELED");
}

enum bsw_status bsw_transport_mpi_join(bsw_transport *transport, int comm, struct bsw_error *err)
{
    struct mpi_state *state;
    BSW_TRY(bsw_mpi_library_load(err));
    BSW_TRY(check_mpi(err));
    MPI_Comm given = MPI_Comm_f2c((MPI_Fint)comm);
    if (given == MPI_COMM_NULL) return bsw_fail(err, BSW_ERROR_USAGE, "comm: MPI_COMM_NULL");
    BSW_TRY(bsw_allocate_zero(&state, 1, sizeof *state, "state of the transport", err));
    transport->ops = &joined_ops;
    transport->state = state;
    transport->broken = init_comm(transport, state, given, err);
    return transport->broken;
}
