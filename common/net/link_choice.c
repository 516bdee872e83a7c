// SPDX-License-Identifier: Apache-2.0
#include "common/net/device_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/process.h"
#include "common/job/stop_signal.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"

// Thread blocks of a rank that shares its device: all must run at the same time.
#define SHARED_MAX_CTAS "4"

_Static_assert(sizeof(struct bsw_link_facts) == 16 + 64 + 40 + 40 + 256, "no padding on the wire");
_Static_assert(sizeof(struct bsw_link_verdict) == 16 + 128 + BSW_LINK_NOTE_BYTES,
               "no padding on the wire");

// ---- facts of a rank ----

static void gather_facts(const bsw_device *device, struct bsw_nccl_library *library,
                         struct bsw_link_facts *out)
{
    struct bsw_error err;
    *out = (struct bsw_link_facts){.has_device = device != NULL};
    bsw_host_id(out->host, sizeof out->host);
    if (!device) return; // and no library is loaded for nothing
    snprintf(out->id, sizeof out->id, "%s", bsw_device_id(device));
    snprintf(out->label, sizeof out->label, "%s", bsw_device_label(device));
    out->is_usable = bsw_nccl_library_load(library, &err) == BSW_OK;
    out->version = library->version;
    if (!out->is_usable) snprintf(out->problem, sizeof out->problem, "%.255s", err.message);
}

// ---- verdict of rank 0 ----

static int is_same_device(const struct bsw_link_facts *a, const struct bsw_link_facts *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->id, b->id) == 0;
}

// The first rank that has the device of one before it; 0 if there is none.
static int find_sharer(const struct bsw_link_facts *facts, int num_ranks, int *other)
{
    for (int rank = 1; rank < num_ranks; rank++) {
        for (*other = 0; *other < rank; ++*other) {
            if (is_same_device(&facts[*other], &facts[rank])) return rank;
        }
    }
    return 0;
}

// What each rank alone lacks; 1 if something was found.
static int find_fault(const struct bsw_link_facts *facts, int num_ranks, char *note,
                      size_t capacity)
{
    char text[24], first[24];
    for (int rank = 0; rank < num_ranks; rank++) {
        const struct bsw_link_facts *f = &facts[rank];
        if (!f->has_device) {
            snprintf(note, capacity, "rank %d has no GPU", rank);
            return 1;
        }
        if (!f->is_usable) {
            snprintf(note, capacity, "rank %d: %s", rank, f->problem);
            return 1;
        }
        if (f->version == facts[0].version) continue;
        bsw_nccl_version_format(facts[0].version, first, sizeof first);
        bsw_nccl_version_format(f->version, text, sizeof text);
        snprintf(note, capacity, "rank 0 has NCCL %s, rank %d has %s: all need the same", first,
                 rank, text);
        return 1;
    }
    return 0;
}

static int find_sharing_fault(const struct bsw_link_facts *facts, int num_ranks,
                              enum bsw_link_choice choice, struct bsw_link_verdict *out)
{
    char version[24];
    int other, sharer = find_sharer(facts, num_ranks, &other);
    out->is_shared = sharer > 0;
    if (sharer == 0) return 0;
    bsw_nccl_version_format(facts[0].version, version, sizeof version);
    if (facts[0].version < BSW_NCCL_SHARING_VERSION) {
        snprintf(out->note, sizeof out->note,
                 "ranks %d and %d share %s (%s), which NCCL %s refuses and 2.30 or later allows",
                 other, sharer, facts[sharer].label, facts[sharer].id, version);
        return 1;
    }
    if (choice != BSW_LINK_AUTO) return 0;
    snprintf(out->note, sizeof out->note, "ranks %d and %d share %s", other, sharer,
             facts[sharer].label);
    return 1;
}

void bsw_link_judge(const struct bsw_link_facts *facts, int num_ranks, enum bsw_link_choice choice,
                    struct bsw_link_verdict *out)
{
    char version[24], reason[BSW_LINK_NOTE_BYTES];
    *out = (struct bsw_link_verdict){.status = BSW_OK};
    if (choice == BSW_LINK_MPI) {
        snprintf(out->note, sizeof out->note, "as asked for");
        return;
    }
    if (choice == BSW_LINK_AUTO && num_ranks == 1) {
        snprintf(out->note, sizeof out->note, "one rank");
        return;
    }
    if (!find_fault(facts, num_ranks, out->note, sizeof out->note) &&
        !find_sharing_fault(facts, num_ranks, choice, out)) {
        bsw_nccl_version_format(facts[0].version, version, sizeof version);
        snprintf(out->note, sizeof out->note, "NCCL %s", version);
        out->is_linked = 1;
        return;
    }
    if (choice == BSW_LINK_AUTO) return;
    out->status = BSW_ERROR_USAGE;
    memcpy(reason, out->note, sizeof reason);
    snprintf(out->note, sizeof out->note, "--link nccl: %.300s", reason);
}

// ---- together ----

// NCCL reads its environment at its first call that needs it, which is still to come. The threads
// of signals and heartbeats read it, too, when they end the process: not meanwhile.
static void set_environment(const struct bsw_link_verdict *verdict)
{
    bsw_stop_hold();
    setenv("NCCL_COMM_BLOCKING", "0", 1); // it would overrule what this program asks for
    if (verdict->is_shared) {
        setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
        setenv("NCCL_MAX_CTAS", SHARED_MAX_CTAS, 0);
    }
    bsw_stop_release();
}

static void make_id(const struct bsw_nccl_library *library, struct bsw_link_verdict *verdict)
{
    if (!verdict->is_linked) return;
    set_environment(verdict);
    int code = library->get_unique_id(&verdict->id);
    if (code == BSW_NCCL_SUCCESS) return;
    verdict->is_linked = 0;
    verdict->status = BSW_ERROR_IO;
    snprintf(verdict->note, sizeof verdict->note, "NCCL does not start on rank 0: %s",
             library->get_error_string(code));
}

// A failure between here and the verdict would leave ranks waiting.
static enum bsw_status judge_all(bsw_transport *transport, const struct bsw_message *message,
                                 const struct bsw_link_facts *own, enum bsw_link_choice choice,
                                 struct bsw_nccl_library *library, struct bsw_buffer *buffer,
                                 struct bsw_error *err)
{
    struct bsw_link_facts *facts;
    struct bsw_link_verdict verdict;
    BSW_TRY(bsw_allocate_zero(&facts, (size_t)transport->num_ranks, sizeof *facts, "facts", err));
    enum bsw_status status = bsw_collect_records(transport, message, own, sizeof *own, facts, err);
    if (status == BSW_OK) {
        bsw_link_judge(facts, transport->num_ranks, choice, &verdict);
        make_id(library, &verdict);
        buffer->bytes = 0;
        status = bsw_buffer_append(buffer, &verdict, sizeof verdict, err);
    }
    bsw_free(&facts);
    return status;
}

static enum bsw_status exchange(bsw_transport *transport, const struct bsw_link_facts *own,
                                enum bsw_link_choice choice, struct bsw_nccl_library *library,
                                struct bsw_buffer *buffer, struct bsw_error *err)
{
    struct bsw_message message = {.kind = BSW_MESSAGE_LINK_FACTS, .name = "facts of devices"};
    enum bsw_status status = BSW_OK;
    if (transport->rank == 0)
        status = judge_all(transport, &message, own, choice, library, buffer, err);
    else
        BSW_TRY(bsw_transport_send(transport, 0, &message, own, sizeof *own, err));
    BSW_TRY(bsw_transport_agree(transport, status, err));
    message = (struct bsw_message){.kind = BSW_MESSAGE_LINK_VERDICT, .name = "choice of a link"};
    return bsw_transport_broadcast(transport, &message, buffer, err);
}

enum bsw_status bsw_link_choose(bsw_transport *transport, const bsw_device *device,
                                enum bsw_link_choice choice, struct bsw_nccl_library *library,
                                struct bsw_link_verdict *out, struct bsw_error *err)
{
    struct bsw_link_facts own;
    struct bsw_buffer buffer = {0};
    // These need no word of anyone: options and ranks are the same everywhere.
    if (choice == BSW_LINK_MPI || (choice == BSW_LINK_AUTO && transport->num_ranks == 1)) {
        bsw_link_judge(NULL, transport->num_ranks, choice, out);
        return BSW_OK;
    }
    gather_facts(device, library, &own);
    enum bsw_status status = exchange(transport, &own, choice, library, &buffer, err);
    if (status == BSW_OK && buffer.bytes != sizeof *out) {
        bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent a choice of a wrong size");
        status = bsw_transport_raise(transport, BSW_ERROR_PEER, err); // others may go on
    }
    if (status == BSW_OK) memcpy(out, buffer.data, sizeof *out);
    bsw_buffer_deinit(&buffer);
    BSW_TRY(status);
    if (out->status != BSW_OK) return bsw_fail(err, (enum bsw_status)out->status, "%s", out->note);
    if (out->is_linked) set_environment(out);
    return BSW_OK;
}
