// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/device_choice.h"

#include <stdio.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/process.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/job/option_table.h"

#define MOST_ORDINAL 1023
// A silent device's rank is to say so before the others have waited long enough for that rank.
#define DEVICE_PATIENCE 0.75

_Static_assert(sizeof(struct bsw_device_list) ==
                   64 + BSW_DEVICE_WHY_BYTES + 8 + BSW_MOST_DEVICES * BSW_DEVICE_ID_BYTES,
               "no padding on the wire");

// ---- words ----

static enum bsw_status fail_word(const char *text, struct bsw_error *err)
{
    if (strncmp(text, "cuda", 4) == 0 && strcmp(bsw_device_kind(), "cuda") != 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--device %s: this build has no CUDA; deploy/build.sh --gpu auto adds "
                        "it, where nvcc and a GPU are",
                        text);
    return bsw_fail(err, BSW_ERROR_USAGE, "--device '%s' is not one of auto|cpu|cuda|cuda:N", text);
}

// `auto`, `KIND` or `KIND:N`.
static enum bsw_status parse(const char *text, int *wish, struct bsw_error *err)
{
    const char *kind = bsw_device_kind();
    size_t length = strlen(kind);
    uint64_t number;
    *wish = BSW_DEVICE_AUTO;
    if (strcmp(text, "auto") == 0) return BSW_OK;
    *wish = BSW_DEVICE_ANY;
    if (length == 0 || strncmp(text, kind, length) != 0) return fail_word(text, err);
    if (text[length] == '\0') return BSW_OK;
    if (text[length] != ':') return fail_word(text, err);
    BSW_TRY(bsw_count_parse("--device", text + length + 1, &number, err));
    if (number > MOST_ORDINAL)
        return bsw_fail(err, BSW_ERROR_USAGE, "--device %s: there is no such device", text);
    *wish = (int)number;
    return BSW_OK;
}

enum bsw_status bsw_device_choice_check(const char *text, struct bsw_error *err)
{
    int wish;
    return strcmp(text, "cpu") == 0 ? BSW_OK : parse(text, &wish, err);
}

// ---- who gets which ----

struct host {
    const struct bsw_device_list *lists;
    int ranks[BSW_MOST_DEVICES]; // with a device of their own
    const char *ids[BSW_MOST_DEVICES];
    int num_taken;
    unsigned char is_tried[BSW_MOST_DEVICES];
};

static int number_of(const struct bsw_device_list *list, const char *id)
{
    for (int ordinal = 0; ordinal < list->count; ordinal++) {
        if (strcmp(list->ids[ordinal], id) == 0) return ordinal;
    }
    return -1;
}

static int owner_of(const struct host *host, const char *id) // its place in ids, or num_taken
{
    int i = 0;
    while (i < host->num_taken && strcmp(host->ids[i], id) != 0) i++;
    return i;
}

// Berge's theorem: a larger matching, if there is one, begins at a rank without a device and goes
// on through devices that ranks have, each of which then takes another. Free ones come first, so
// that where all ranks see all devices each gets that of its place.
static int find_device(struct host *host, int rank)
{
    const struct bsw_device_list *list = &host->lists[rank];
    for (int ordinal = 0; ordinal < list->count; ordinal++) {
        int place = owner_of(host, list->ids[ordinal]);
        if (!list->ids[ordinal][0] || place < host->num_taken) continue;
        if (place == BSW_MOST_DEVICES) return 0;
        host->ids[host->num_taken] = list->ids[ordinal];
        host->ranks[host->num_taken++] = rank;
        return 1;
    }
    for (int ordinal = 0; ordinal < list->count; ordinal++) {
        int place = owner_of(host, list->ids[ordinal]);
        if (!list->ids[ordinal][0] || host->is_tried[place]) continue;
        host->is_tried[place] = 1;
        if (!find_device(host, host->ranks[place])) continue;
        host->ranks[place] = rank;
        return 1;
    }
    return 0;
}

static int is_of_host(const struct bsw_device_list *lists, int rank, int first)
{
    return strcmp(lists[rank].host, lists[first].host) == 0;
}

// Different ones that ranks of the host see and can use.
static int count_devices(const struct bsw_device_list *lists, int num_ranks, int first)
{
    struct host all = {.lists = lists};
    for (int rank = first; rank < num_ranks; rank++) {
        for (int i = 0; is_of_host(lists, rank, first) && i < lists[rank].count; i++) {
            int place = owner_of(&all, lists[rank].ids[i]);
            if (lists[rank].ids[i][0] && place == all.num_taken && place < BSW_MOST_DEVICES)
                all.ids[all.num_taken++] = lists[rank].ids[i];
        }
    }
    return all.num_taken;
}

static enum bsw_status fail_host(const struct bsw_device_list *lists, int num_ranks, int first,
                                 const char *text, struct bsw_error *err)
{
    int num_here = 0, num_devices = count_devices(lists, num_ranks, first);
    for (int rank = first; rank < num_ranks; rank++) {
        if (!is_of_host(lists, rank, first)) continue;
        num_here++;
        int num_usable = count_devices(lists + rank, 1, 0);
        if (num_usable > 0) continue;
        return bsw_fail(err, BSW_ERROR_USAGE, "--device %s: no device can be used: %s", text,
                        lists[rank].why);
    }
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--device %s: %d ranks on a host with %d: start no more ranks than devices, or "
                    "share one with %s:N",
                    text, num_here, num_devices, bsw_device_kind());
}

// The ranks of the host of rank `first`. 0: not all of them have a device of their own.
static int assign_host(const struct bsw_device_list *lists, int num_ranks, int first,
                       struct bsw_device_verdict *verdicts)
{
    struct host host = {.lists = lists};
    for (int rank = first; rank < num_ranks; rank++) {
        if (!is_of_host(lists, rank, first)) continue;
        memset(host.is_tried, 0, sizeof host.is_tried);
        if (!find_device(&host, rank)) return 0;
    }
    for (int i = 0; i < host.num_taken; i++) {
        int rank = host.ranks[i];
        verdicts[rank] = (struct bsw_device_verdict){number_of(&lists[rank], host.ids[i]), 1};
    }
    return 1;
}

static enum bsw_status assign_number(const struct bsw_device_list *lists, int num_ranks, int rank,
                                     int ordinal, const char *text,
                                     struct bsw_device_verdict *verdict, struct bsw_error *err)
{
    const struct bsw_device_list *list = &lists[rank];
    if (list->count == 0 || (ordinal < list->count && !list->ids[ordinal][0])) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--device %s: no device can be used: %s", text,
                        list->why);
    }
    if (ordinal >= list->count) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--device %s: this host has %d, numbered from 0",
                        text, list->count);
    }
    *verdict = (struct bsw_device_verdict){.ordinal = ordinal};
    for (int other = 0; other < num_ranks; other++) {
        verdict->num_sharers += is_of_host(lists, other, rank) && ordinal < lists[other].count &&
                                strcmp(lists[other].ids[ordinal], list->ids[ordinal]) == 0;
    }
    return BSW_OK;
}

enum bsw_status bsw_device_assign(const struct bsw_device_list *lists, int num_ranks, int wish,
                                  const char *text, struct bsw_device_verdict *verdicts,
                                  struct bsw_error *err)
{
    for (int rank = 0; rank < num_ranks; rank++) verdicts[rank].ordinal = -1;
    for (int rank = 0; rank < num_ranks; rank++) {
        int first = 0;
        if (wish >= 0) {
            BSW_TRY(assign_number(lists, num_ranks, rank, wish, text, &verdicts[rank], err));
            continue;
        }
        while (!is_of_host(lists, first, rank)) first++;
        if (first < rank || assign_host(lists, num_ranks, rank, verdicts)) continue;
        if (wish != BSW_DEVICE_AUTO) return fail_host(lists, num_ranks, rank, text, err);
    }
    return BSW_OK;
}

// ---- together ----

static void list_devices(struct bsw_device_list *out)
{
    struct bsw_device_sight sight;
    memset(out, 0, sizeof *out);
    bsw_host_id(out->host, sizeof out->host);
    out->count = bsw_device_count(out->why, sizeof out->why);
    if (out->count > BSW_MOST_DEVICES) out->count = BSW_MOST_DEVICES;
    if (out->count > 0) out->why[0] = '\0';
    for (int ordinal = 0; ordinal < out->count; ordinal++) {
        bsw_device_look(ordinal, &sight);
        memcpy(out->ids[ordinal], sight.id, sizeof sight.id);
        if (!sight.id[0] && !out->why[0])
            snprintf(out->why, sizeof out->why, "%s:%d: %.100s", bsw_device_kind(), ordinal,
                     sight.why);
    }
}

// Rank 0 judges for all; an error is the same for all.
static enum bsw_status judge(bsw_transport *transport, const struct bsw_device_list *own,
                             struct bsw_device_list *lists, int wish, const char *text,
                             struct bsw_device_verdict *verdicts, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_DEVICES, .name = "devices"},
                             answer = {.kind = BSW_MESSAGE_DEVICE_VERDICT,
                                       .name = "choice of devices"};
    size_t num_ranks = (size_t)transport->num_ranks;
    enum bsw_status status = bsw_collect_records(transport, &message, own, sizeof *own, lists, err);
    if (status == BSW_OK && transport->rank == 0)
        status = bsw_device_assign(lists, transport->num_ranks, wish, text, verdicts, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    return bsw_share_record(transport, &answer, verdicts, num_ranks * sizeof *verdicts, err);
}

static enum bsw_status open_device(const struct bsw_device_choice *choice, int wish,
                                   const struct bsw_device_verdict *verdict,
                                   const struct bsw_transport *transport,
                                   struct bsw_chosen_device *out, struct bsw_error *err)
{
    const struct bsw_device_options options = {.ordinal = verdict->ordinal,
                                               .num_sharers = verdict->num_sharers,
                                               .most_bytes = choice->most_bytes,
                                               .timeout_seconds =
                                                   DEVICE_PATIENCE * transport->timeout_seconds};
    struct bsw_error why;
    if (wish != BSW_DEVICE_AUTO) return bsw_device_open(&options, &out->device, err);
    if (bsw_device_open(&options, &out->device, &why) != BSW_OK)
        snprintf(out->note, sizeof out->note, "%.255s", why.message);
    return BSW_OK;
}

static enum bsw_status choose(const struct bsw_device_choice *choice, int wish,
                              bsw_transport *transport, struct bsw_chosen_device *out,
                              struct bsw_error *err)
{
    struct bsw_device_list own, *lists = NULL;
    struct bsw_device_verdict *verdicts = NULL;
    size_t num_ranks = (size_t)transport->num_ranks;
    enum bsw_status status =
        bsw_allocate_zero(&verdicts, num_ranks, sizeof *verdicts, "choice of devices", err);
    if (status == BSW_OK && transport->rank == 0)
        status = bsw_allocate(&lists, num_ranks, sizeof *lists, "lists of devices", err);
    status = bsw_transport_agree(transport, status, err);
    list_devices(&own);
    if (status == BSW_OK) status = judge(transport, &own, lists, wish, choice->text, verdicts, err);
    if (status == BSW_OK && verdicts[transport->rank].ordinal >= 0)
        status = open_device(choice, wish, &verdicts[transport->rank], transport, out, err);
    else if (status == BSW_OK && own.why[0] && own.count > 0)
        snprintf(out->note, sizeof out->note, "%s", own.why);
    bsw_free(&lists);
    bsw_free(&verdicts);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = out->device ? bsw_device_share(out->device, err) : BSW_OK;
    return bsw_transport_agree(transport, status, err);
}

enum bsw_status bsw_device_choice_open(const struct bsw_device_choice *choice, const char *cpu_only,
                                       bsw_transport *transport, struct bsw_chosen_device *out,
                                       struct bsw_error *err)
{
    int wish;
    *out = (struct bsw_chosen_device){.device = NULL};
    if (strcmp(choice->text, "cpu") == 0) return BSW_OK;
    BSW_TRY(parse(choice->text, &wish, err));
    if (wish == BSW_DEVICE_AUTO &&
        (cpu_only || !bsw_device_kind()[0] || !bsw_device_is_automatic()))
        return BSW_OK;
    if (cpu_only) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--device %s: %s runs on the CPU only", choice->text,
                        cpu_only);
    }
    return choose(choice, wish, transport, out, err);
}
