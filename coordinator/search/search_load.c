// SPDX-License-Identifier: Apache-2.0
// Devices, links and shards of a search (search.h).
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/files/row_ids.h"
#include "common/net/transport.h"
#include "coordinator/job/index_generation.h"
#include "coordinator/search/merge_choice.h"
#include "coordinator/search/search.h"

// Kernels find entries themselves, as `brute` does.
static const char *what_needs_cpu(const struct bsw_search *search)
{
    const struct bsw_selection_settings *selection = &search->settings.selection;
    if (search->settings.is_range) return "--within";
    if (selection->is_on && strcmp(selection->finder->name, "brute") != 0)
        return "--entries-by other than brute";
    if (selection->is_on && selection->radii == BSW_RADII_NEAREST) return "--radii nearest";
    return NULL;
}

static enum bsw_status open_device(struct bsw_search *search, struct bsw_error *err)
{
    BSW_TRY(bsw_device_choice_open(&search->options.device, what_needs_cpu(search),
                                   search->transport, &search->device, err));
    search->settings.device = search->device.device;
    return BSW_OK;
}

// Whether a rank's device has room, as far as that is known before link and merge.
static enum bsw_status find_room(const struct bsw_search *search, struct bsw_error *err)
{
    const bsw_transport *transport = search->transport;
    struct bsw_memory_forecast forecast;
    size_t free_bytes;
    if (!search->device.device) return BSW_OK;
    BSW_TRY(bsw_device_free_bytes(search->device.device, &free_bytes, err));
    enum bsw_status status =
        bsw_shard_service_plan(&search->manifest, &search->settings, transport->rank,
                               transport->num_ranks, free_bytes, &forecast, err);
    if (status == BSW_OK && forecast.streamed_bytes > 0)
        status = bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY,
                          "%zu bytes of device memory are free, and %zu bytes of codes of an index "
                          "with lists would come from host memory for every batch",
                          free_bytes, forecast.streamed_bytes);
    if (status == BSW_OK) return BSW_OK;
    return bsw_prefix(err, status, "%s: ", bsw_device_label(search->device.device));
}

// `auto` takes CPUs where a device has too little memory for the codes of an index with lists: the
// bus is slower than a CPU's memory, and lists leave little else to do. All ranks.
static enum bsw_status leave_full_devices(struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_chosen_device *chosen = &search->device;
    struct bsw_error why;
    if (strcmp(search->options.device.text, "auto") != 0 || search->manifest.lists.count == 0)
        return BSW_OK;
    enum bsw_status status = find_room(search, &why);
    status = bsw_transport_agree(search->transport, status, &why);
    if (status == BSW_OK) return BSW_OK;
    if (err) *err = why;
    if (status != BSW_ERROR_OUT_OF_MEMORY) return status;
    if (chosen->device) snprintf(chosen->note, sizeof chosen->note, "%.255s", why.message);
    bsw_device_close(&chosen->device);
    search->settings.device = NULL;
    return BSW_OK;
}

// All ranks, each with its device or none. Before shards are loaded, which get what memory is left.
static enum bsw_status open_link(struct bsw_search *search, struct bsw_error *err)
{
    BSW_TRY(bsw_device_link_open(search->transport, search->device.device, search->options.link,
                                 &search->link, search->link_note, err)); // all return alike
    enum bsw_status status =
        bsw_batch_link_open(search->link, search->device.device, search->transport,
                            &search->manifest, &search->settings, &search->batch_link, err);
    BSW_TRY(bsw_transport_agree(search->transport, status, err));
    if (search->device.device) status = bsw_device_share(search->device.device, err);
    return bsw_transport_agree(search->transport, status, err);
}

// Where cuts are found. After the link, which takes memory too.
static enum bsw_status open_merge(struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_search_settings *settings = &search->settings;
    size_t room;
    BSW_TRY(bsw_merge_choose(search->transport, search->device.device, search->link,
                             search->link_note, &search->manifest, &search->assignment,
                             search->options.request.merge, settings, &room, err));
    if (settings->merge_place == BSW_MERGE_ON_HOST) return BSW_OK;
    const struct bsw_device_merge_needs needs =
        bsw_merge_needs(&search->manifest, &search->assignment, settings);
    enum bsw_status status =
        bsw_batch_device_merge_open(&needs, search->link, search->device.device, search->transport,
                                    room, &search->device_merge, err);
    return bsw_transport_agree(search->transport, status, err);
}

// From now on. Checks on CPUs look at all codes, others at a part of them: only a round of those
// shows that what was answered before it is right. Another rank may have a device where this one
// has none.
static struct bsw_check_schedule schedule_checks(const struct bsw_search *search)
{
    const struct bsw_search_options *o = &search->options;
    int is_cpu = strcmp(o->device.text, "cpu") == 0 || bsw_device_kind()[0] == '\0';
    return (struct bsw_check_schedule){
        .seconds = o->is_unchecked ? 0 : o->check_seconds,
        .checked_at = bsw_clock_seconds(),
        .round = is_cpu ? 1 : bsw_self_check_round(&search->manifest, &search->assignment)};
}

// Rank 0, which answers.
static enum bsw_status read_ids(struct bsw_search *search, struct bsw_error *err)
{
    const struct bsw_search_options *o = &search->options;
    if (search->transport->rank != 0 || !o->index || o->answers_rows) return BSW_OK;
    BSW_TRY(bsw_row_ids_read(&search->manifest, o->index, &search->row_ids, err));
    search->batches.finish.row_ids = search->row_ids;
    return BSW_OK;
}

static enum bsw_status open_service(struct bsw_search *search, struct bsw_error *err)
{
    const struct bsw_progress *progress = search->options.progress;
    const bsw_transport *transport = search->transport;
    int is_shown = transport->rank == 0 && progress && progress->is_shown;
    return bsw_shard_service_open(&search->manifest, search->options.index, &search->settings,
                                  &search->assignment, transport->rank, is_shown, &search->service,
                                  err);
}

// Shards that can be loaded, by tables with ever fewer of those that cannot be. All ranks; all
// return alike.
static enum bsw_status load_some(struct bsw_search *search, struct bsw_error *err)
{
    int is_found = 1;
    bsw_missing_shards_deinit(&search->missing); // of a load that failed
    while (is_found) {
        BSW_TRY(open_merge(search, err));
        enum bsw_status status = open_service(search, err);
        status = bsw_generation_explain(search->options.index, &search->manifest, status, err);
        BSW_TRY(bsw_transport_agree(search->transport, status, err));
        BSW_TRY(bsw_missing_shards_find(search->transport, &search->service, search->options.index,
                                        &search->assignment, &search->missing, &is_found, err));
        if (!is_found) break;
        bsw_shard_service_close(&search->service);
        bsw_batch_device_merge_close(&search->device_merge);
    }
    return BSW_OK;
}

enum bsw_status bsw_search_load(struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_transport *transport = search->transport;
    if (search->is_loaded) return BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, open_device(search, err), err));
    BSW_TRY(leave_full_devices(search, err));
    BSW_TRY(bsw_assignment_share(transport, search->manifest.num_shards, &search->assignment, err));
    BSW_TRY(open_link(search, err));
    enum bsw_status status = BSW_OK;
    if (search->settings.is_partial) {
        BSW_TRY(load_some(search, err));
    } else {
        BSW_TRY(open_merge(search, err));
        status = open_service(search, err);
    }
    search->coverage = bsw_missing_shards_coverage(&search->manifest, &search->assignment);
    if (status == BSW_OK) {
        status = bsw_batch_search_init(&search->batches, transport, &search->service,
                                       &search->queries, err);
    }
    if (status == BSW_OK) status = read_ids(search, err);
    status = bsw_generation_explain(search->options.index, &search->manifest, status, err);
    if (status == BSW_OK) status = bsw_self_check_answers(&search->service, err);
    if (search->link) search->batches.link = &search->batch_link;
    search->batches.filter = &search->filter;
    if (search->device_merge.device) search->batches.device_merge = &search->device_merge;
    search->batches.checks = schedule_checks(search);
    search->is_loaded = status == BSW_OK;
    return bsw_transport_agree(transport, status, err);
}

enum bsw_status bsw_search_look(struct bsw_search *search, const struct bsw_probe_settings *probe,
                                struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    search->settings.probe = *probe;
    if (search->is_loaded) status = bsw_shard_service_look(&search->service, probe, err);
    return bsw_transport_agree(search->transport, status, err);
}
