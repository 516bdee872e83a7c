// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // pthread_timedjoin_np, on_exit
#endif
#include "common/net/device_link.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/net/nccl_library.h"

// Ranks other than 0 speak up 3 s after it: by then it has given up its link and printed its error.
#define ENDING_SECONDS 2.0
// How long `auto` waits for NCCL to start before the transport is taken, and which part of the time
// that messages are waited for that may be.
#define STARTING_SECONDS 30.0
#define STARTING_PART    0.5
// How long rank 0 waits for the word of the rank that it was told has failed.
#define CULPRIT_SECONDS 2.5

struct bsw_device_link {
    bsw_transport *transport;
    bsw_device *device;
    bsw_stream stream;
    struct bsw_nccl_library nccl;
    bsw_nccl_comm comm;
    int is_refused;    // before ranks joined
    int may_fall_back; // a failure is agreed on, not raised: `auto`, while it starts
    int64_t started;   // ns
    int is_broken;
};

static const char *const joining = "joining all ranks";

// ---- failures ----

static enum bsw_status end_link(bsw_device_link *link, enum bsw_status status,
                                struct bsw_error *err)
{
    link->is_broken = 1;
    if (link->may_fall_back) return status;
    bsw_device_give_up(link->device);
    return bsw_transport_raise(link->transport, status, err);
}

// Where NCCL blames another rank, that rank's own words are better.
static enum bsw_status ask_for_culprit(bsw_device_link *link, struct bsw_error *err)
{
    int64_t started = bsw_clock_ns(), waited = 0;
    while ((double)waited < CULPRIT_SECONDS * 1e9) {
        BSW_TRY(bsw_transport_poll(link->transport, err));
        bsw_clock_pause(waited);
        waited = bsw_clock_ns() - started;
    }
    return BSW_OK;
}

static enum bsw_status fail_nccl(bsw_device_link *link, int code, const char *what,
                                 struct bsw_error *err)
{
    const char *more = link->nccl.get_last_error(link->comm);
    if (code == BSW_NCCL_REMOTE_ERROR && link->transport->rank == 0)
        BSW_TRY(ask_for_culprit(link, err));
    return bsw_fail(err, BSW_ERROR_IO, "%s: %s over NCCL: %s%s%s", bsw_device_label(link->device),
                    what, link->nccl.get_error_string(code), more && more[0] ? ": " : "",
                    more ? more : "");
}

static int is_bad(int code)
{
    return code != BSW_NCCL_SUCCESS && code != BSW_NCCL_IN_PROGRESS;
}

// ---- waiting ----

// One round. *done: NCCL has taken what it was given and, if asked for, the queue is empty.
static enum bsw_status look(bsw_device_link *link, const char *what, int is_queue, int *done,
                            struct bsw_error *err)
{
    int state = BSW_NCCL_SUCCESS;
    int code = link->nccl.comm_get_async_error(link->comm, &state);
    *done = 0;
    if (code != BSW_NCCL_SUCCESS) return fail_nccl(link, code, what, err);
    if (is_bad(state)) return fail_nccl(link, state, what, err);
    BSW_TRY(bsw_transport_poll(link->transport, err));
    // While NCCL is at it, an empty queue does not mean that anything was done.
    *done = state == BSW_NCCL_SUCCESS;
    if (!*done || !is_queue) return BSW_OK;
    return bsw_device_poll(link->device, BSW_QUEUE_LINK, what, done, err);
}

static enum bsw_status poll_until_done(bsw_device_link *link, const char *what, int is_queue,
                                       double seconds, struct bsw_error *err)
{
    int64_t started = bsw_clock_ns(), waited = 0;
    for (int done;;) {
        BSW_TRY(look(link, what, is_queue, &done, err));
        if (done) return BSW_OK;
        waited = bsw_clock_ns() - started;
        if ((double)waited > seconds * 1e9) break;
        bsw_clock_pause(waited);
    }
    return bsw_fail(err, BSW_ERROR_IO, "%s: %s over NCCL: not done within %.6g s",
                    bsw_device_label(link->device), what, seconds);
}

static double patience_of(const bsw_device_link *link)
{
    double seconds = bsw_transport_patience_seconds(link->transport);
    if (!link->may_fall_back) return seconds;
    seconds = STARTING_PART * link->transport->timeout_seconds;
    if (seconds > STARTING_SECONDS) seconds = STARTING_SECONDS;
    return seconds - (double)(bsw_clock_ns() - link->started) * 1e-9;
}

// The end of every operation: the first failure ends the link.
static enum bsw_status await(bsw_device_link *link, const char *what, int is_queue,
                             struct bsw_error *err)
{
    double seconds = patience_of(link);
    enum bsw_status status = poll_until_done(link, what, is_queue, seconds, err);
    return status == BSW_OK ? status : end_link(link, status, err);
}

// `code`: of the call that gave NCCL the operation. Until it has taken it: what is queued after
// that comes after it.
static enum bsw_status settle(bsw_device_link *link, int code, const char *what,
                              struct bsw_error *err)
{
    if (is_bad(code)) return end_link(link, fail_nccl(link, code, what, err), err);
    return await(link, what, 0, err);
}

enum bsw_status bsw_device_link_wait(bsw_device_link *link, const char *what, struct bsw_error *err)
{
    return await(link, what, 1, err);
}

// ---- transfers ----

enum bsw_status bsw_device_link_broadcast(bsw_device_link *link, void *data, size_t bytes,
                                          const char *what, struct bsw_error *err)
{
    if (bytes == 0) return BSW_OK;
    int code = link->nccl.broadcast(data, data, bytes, BSW_NCCL_UINT8, 0, link->comm, link->stream);
    return settle(link, code, what, err);
}

// A group, so that no transfer waits for another.
static int queue_exchange(bsw_device_link *link, const struct bsw_device_exchange *exchange)
{
    int code = link->nccl.group_start();
    for (size_t i = 0; i < exchange->num_sends && !is_bad(code); i++) {
        const struct bsw_device_transfer *t = &exchange->sends[i];
        if (t->bytes > 0)
            code = link->nccl.send(t->data, t->bytes, BSW_NCCL_UINT8, t->rank, link->comm,
                                   link->stream);
    }
    for (size_t i = 0; i < exchange->num_receives && !is_bad(code); i++) {
        const struct bsw_device_transfer *t = &exchange->receives[i];
        if (t->bytes > 0)
            code = link->nccl.receive(t->data, t->bytes, BSW_NCCL_UINT8, t->rank, link->comm,
                                      link->stream);
    }
    int ended = link->nccl.group_end();
    return is_bad(code) ? code : ended;
}

enum bsw_status bsw_device_link_exchange(bsw_device_link *link,
                                         const struct bsw_device_exchange *exchange,
                                         const char *what, struct bsw_error *err)
{
    return settle(link, queue_exchange(link, exchange), what, err);
}

// ---- start ----

// NCCL refuses at once what it finds on this rank alone, such as a driver that is too old for it.
static enum bsw_status begin_joining(bsw_device_link *link, const struct bsw_link_verdict *verdict,
                                     struct bsw_error *err)
{
    struct bsw_nccl_config config = {.size = sizeof config,
                                     .magic = BSW_NCCL_CONFIG_MAGIC,
                                     .version = BSW_NCCL_OLDEST_VERSION,
                                     .blocking = 0,
                                     .cga_cluster_size = BSW_NCCL_CONFIG_UNDEFINED,
                                     .min_ctas = BSW_NCCL_CONFIG_UNDEFINED,
                                     .max_ctas = BSW_NCCL_CONFIG_UNDEFINED,
                                     .split_share = BSW_NCCL_CONFIG_UNDEFINED};
    int code = link->nccl.comm_init_rank_config(&link->comm, link->transport->num_ranks,
                                                verdict->id, link->transport->rank, &config);
    return is_bad(code) ? fail_nccl(link, code, joining, err) : BSW_OK;
}

struct first_memory {
    struct bsw_device_buffer device; // [num_ranks + 1] bytes: one of each rank, the one of rank 0
    unsigned char *host;             // the same
    struct bsw_device_transfer *all; // [2][num_ranks]: to all other ranks, from all others
};

// Before the ranks depend on each other: a failure is agreed on as any other.
static enum bsw_status allocate_first(bsw_device_link *link, struct first_memory *memory,
                                      struct bsw_error *err)
{
    size_t num_ranks = (size_t)link->transport->num_ranks, own = (size_t)link->transport->rank;
    *memory = (struct first_memory){.host = NULL};
    BSW_TRY(bsw_allocate(&memory->all, 2 * num_ranks, sizeof *memory->all, "places", err));
    BSW_TRY(bsw_device_allocate_host(link->device, num_ranks + 1, "link", &memory->host, err));
    BSW_TRY(bsw_device_allocate(link->device, num_ranks + 1, "link", &memory->device, err));
    memset(memory->host, 0, num_ranks + 1);
    for (size_t rank = 0; rank < num_ranks; rank++) {
        unsigned char *data = memory->device.data;
        memory->all[rank] = (struct bsw_device_transfer){(int)rank, data + num_ranks, rank != own};
        memory->all[num_ranks + rank] =
            (struct bsw_device_transfer){(int)rank, data + rank, rank != own};
    }
    return BSW_OK;
}

static void free_first(bsw_device_link *link, struct first_memory *memory)
{
    bsw_device_free(link->device, &memory->device);
    bsw_device_free_host(link->device, &memory->host);
    bsw_free(&memory->all);
}

// First transfers of all kinds: a byte to all ranks, and that byte from each to each. NCCL
// allocates much of what it needs only now; and a link that mixes ranks up shows here.
static enum bsw_status make_first_transfers(bsw_device_link *link, struct first_memory *memory,
                                            struct bsw_error *err)
{
    static const char *const what = "first transfer";
    static const unsigned char byte = 0xa5;
    size_t num_ranks = (size_t)link->transport->num_ranks, own = (size_t)link->transport->rank;
    unsigned char *data = memory->device.data;
    const struct bsw_device_exchange exchange = {.sends = memory->all,
                                                 .receives = memory->all + num_ranks,
                                                 .num_sends = num_ranks,
                                                 .num_receives = num_ranks};
    memory->host[own] = byte;
    if (own == 0) memory->host[num_ranks] = byte;
    BSW_TRY(
        bsw_device_upload(link->device, BSW_QUEUE_LINK, data, memory->host, num_ranks + 1, err));
    BSW_TRY(bsw_device_link_broadcast(link, data + num_ranks, 1, what, err));
    BSW_TRY(bsw_device_link_exchange(link, &exchange, what, err));
    BSW_TRY(
        bsw_device_download(link->device, BSW_QUEUE_LINK, memory->host, data, num_ranks + 1, err));
    BSW_TRY(bsw_device_link_wait(link, what, err));
    for (size_t i = 0; i <= num_ranks; i++) {
        if (memory->host[i] == byte) continue;
        return bsw_fail(err, BSW_ERROR_SELF_CHECK, "%s: %s over NCCL brought another byte",
                        bsw_device_label(link->device), what);
    }
    return BSW_OK;
}

// From here on each rank depends on the others.
static enum bsw_status end_joining(bsw_device_link *link, struct first_memory *memory,
                                   struct bsw_error *err)
{
    enum bsw_status status = await(link, joining, 0, err);
    if (status == BSW_OK) status = make_first_transfers(link, memory, err);
    if (link->may_fall_back) return bsw_transport_agree(link->transport, status, err);
    // Others wait for this rank, whatever has failed.
    return status == BSW_OK || link->is_broken ? status : end_link(link, status, err);
}

static enum bsw_status join(bsw_device_link *link, const struct bsw_link_verdict *verdict,
                            struct first_memory *memory, struct bsw_error *err)
{
    enum bsw_status status = allocate_first(link, memory, err);
    BSW_TRY(bsw_transport_agree(link->transport, status, err));
    status = bsw_transport_agree(link->transport, begin_joining(link, verdict, err), err);
    link->is_refused = status != BSW_OK;
    return status == BSW_OK ? end_joining(link, memory, err) : status;
}

// ---- giving up ----

// An ending that blocks has a thread to block.
struct ending {
    int (*end)(bsw_nccl_comm comm);
    bsw_nccl_comm comm;
};

static void *run_ending(void *context)
{
    const struct ending *ending = context;
    ending->end(ending->comm);
    return NULL;
}

// With a thread of NCCL's stuck, leaving as usual could wait for it.
static void leave_at_once(int code, void *context)
{
    (void)context;
    fflush(NULL);
    _exit(code);
}

// 0: it did not end in time.
static int end_in_thread(int (*end)(bsw_nccl_comm comm), bsw_nccl_comm comm)
{
    struct ending *ending;
    pthread_t thread;
    struct timespec until;
    if (bsw_allocate(&ending, 1, sizeof *ending, "end of a link", NULL) != BSW_OK) return 0;
    *ending = (struct ending){end, comm};
    if (pthread_create(&thread, NULL, run_ending, ending) != 0) {
        bsw_free(&ending);
        return 0;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)ENDING_SECONDS;
    if (pthread_timedjoin_np(thread, NULL, &until) == 0) {
        bsw_free(&ending);
        return 1;
    }
    pthread_detach(thread); // it keeps `ending`
    on_exit(leave_at_once, NULL);
    return 0;
}

// Until BSW_QUEUE_LINK is empty, or that has lasted too long.
static enum bsw_status drain(bsw_device_link *link, struct bsw_error *err)
{
    int64_t started = bsw_clock_ns(), waited = 0;
    for (int is_empty = 0; (double)waited < ENDING_SECONDS * 1e9;) {
        BSW_TRY(bsw_device_poll(link->device, BSW_QUEUE_LINK, joining, &is_empty, err));
        if (is_empty) return BSW_OK;
        bsw_clock_pause(waited);
        waited = bsw_clock_ns() - started;
    }
    bsw_device_give_up(link->device);
    return bsw_fail(err, BSW_ERROR_IO, "%s: what NCCL began on it does not end",
                    bsw_device_label(link->device));
}

// All ranks have agreed on the error. The device is to be as it was: nothing of NCCL's may hang on
// it.
static enum bsw_status fall_back(bsw_device_link *link, char note[BSW_LINK_NOTE_BYTES],
                                 struct bsw_error *err)
{
    const char *text = err ? err->message : "NCCL does not start";
    snprintf(note, BSW_LINK_NOTE_BYTES, "rank %d: %.300s", err ? err->rank : 0, text);
    if (link->comm) end_in_thread(link->nccl.comm_abort, link->comm);
    link->comm = NULL;
    return bsw_transport_agree(link->transport, drain(link, err), err);
}

// *is_linked: 0 where the transport is to be used.
static enum bsw_status start(bsw_device_link *link, const struct bsw_link_verdict *verdict,
                             char note[BSW_LINK_NOTE_BYTES], int *is_linked, struct bsw_error *err)
{
    struct first_memory memory;
    link->started = bsw_clock_ns();
    enum bsw_status status = join(link, verdict, &memory, err);
    *is_linked = status == BSW_OK;
    // A link that brings wrong bytes is a fault of the machine.
    if (!*is_linked && link->may_fall_back && link->transport->broken == BSW_OK &&
        status != BSW_ERROR_SELF_CHECK)
        status = fall_back(link, note, err);
    else if (!*is_linked)
        bsw_device_give_up(link->device);
    link->may_fall_back = 0;
    free_first(link, &memory);
    return status;
}

enum bsw_status bsw_device_link_open(bsw_transport *transport, bsw_device *device,
                                     enum bsw_link_choice choice, bsw_device_link **out,
                                     char note[BSW_LINK_NOTE_BYTES], struct bsw_error *err)
{
    struct bsw_link_verdict verdict;
    bsw_device_link *link;
    int is_linked;
    *out = NULL;
    enum bsw_status status = bsw_allocate_zero(&link, 1, sizeof *link, "link between devices", err);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK)
        status = bsw_link_choose(transport, device, choice, &link->nccl, &verdict, err);
    if (status != BSW_OK || !verdict.is_linked) {
        if (status == BSW_OK) memcpy(note, verdict.note, BSW_LINK_NOTE_BYTES);
        bsw_free(&link);
        return status;
    }
    memcpy(note, verdict.note, BSW_LINK_NOTE_BYTES);
    link->transport = transport;
    link->device = device;
    link->stream = bsw_device_stream(device, BSW_QUEUE_LINK);
    link->may_fall_back = choice == BSW_LINK_AUTO;
    status = start(link, &verdict, note, &is_linked, err);
    if (is_linked)
        *out = link;
    else
        bsw_device_link_close(&link);
    return status;
}

// ---- end ----

// All ranks come here, so that what is under way can end.
static int is_finalized(bsw_device_link *link)
{
    int code = link->nccl.comm_finalize(link->comm);
    if (code == BSW_NCCL_SUCCESS || code == BSW_NCCL_IN_PROGRESS)
        return poll_until_done(link, "end", 0, ENDING_SECONDS, NULL) == BSW_OK;
    return 0;
}

void bsw_device_link_close(bsw_device_link **address)
{
    bsw_device_link *link = *address;
    if (!link) return;
    if (link->comm) {
        int is_whole = !link->is_refused && !link->is_broken && link->transport->broken == BSW_OK;
        int is_good = is_whole && is_finalized(link);
        int has_ended =
            end_in_thread(is_good ? link->nccl.comm_destroy : link->nccl.comm_abort, link->comm);
        // A communicator that was refused has nothing on the device that could hang.
        if (!has_ended || !(is_good || link->is_refused)) bsw_device_give_up(link->device);
    }
    bsw_free(address);
}
