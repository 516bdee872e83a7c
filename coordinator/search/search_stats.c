#include "coordinator/search/search_stats.h"

#include <stdio.h>
#include <string.h>

#include "common/base/median.h"
#include "common/base/process_memory.h"
#include "common/net/collect.h"
#include "common/net/message_kinds.h"

static struct bsw_device_report report_device(const struct bsw_search *search)
{
    struct bsw_service_figures figures;
    struct bsw_device_report report = {.label = "cpu"};
    if (!search->device) return report;
    snprintf(report.label, sizeof report.label, "%s", bsw_device_label(search->device));
    snprintf(report.name, sizeof report.name, "%s", bsw_device_name(search->device));
    report.used_bytes = bsw_device_used_bytes(search->device);
    bsw_shard_service_figures(&search->service, &figures);
    report.copied_bytes = figures.counts.copied_bytes;
    report.num_samples = figures.counts.num_samples;
    report.num_segments = figures.counts.num_segments;
    report.num_overflows = figures.counts.num_overflows;
    report.batch_allocations = figures.batch_allocations;
    report.raw_bytes = figures.raw_bytes;
    report.gathered_bytes = figures.gathered_bytes;
    return report;
}

static struct bsw_search_rank report_rank(const struct bsw_search *search)
{
    const struct bsw_shard_service *service = &search->service;
    const struct bsw_scan_workspace *work = &service->workspace;
    return (struct bsw_search_rank){.load_seconds = service->load_seconds,
                                    .scan_seconds = work->scan_seconds,
                                    .refine_seconds = work->refine_seconds,
                                    .scanned_bytes = work->scanned_bytes,
                                    .resident_bytes = service->resident_bytes,
                                    .grown_bytes = service->grown_bytes,
                                    .memory_bytes = bsw_process_memory_bytes(),
                                    .mapped_bytes = bsw_process_mapped_bytes(),
                                    .num_units = service->num_units,
                                    .num_pairs = work->num_pairs,
                                    .num_stopped = work->num_stopped,
                                    .num_rescanned = work->num_rescanned,
                                    .device = report_device(search)};
}

void bsw_search_forget_rank(struct bsw_search *search)
{
    struct bsw_scan_workspace *work = &search->service.workspace;
    work->scan_seconds = work->refine_seconds = 0;
    work->scanned_bytes = work->num_pairs = work->num_stopped = work->num_rescanned = 0;
    bsw_shard_service_forget(&search->service);
}

// Ranks count over all passes, warm-up included; phases and rates are those of one pass.
static void average_over_passes(struct bsw_search *search)
{
    uint64_t passes = search->run.warmup + search->run.repeat;
    for (int rank = 0; rank < search->transport->num_ranks; rank++) {
        struct bsw_search_rank *r = &search->ranks[rank];
        r->scan_seconds /= (double)passes;
        r->refine_seconds /= (double)passes;
        r->scanned_bytes /= passes;
        r->device.copied_bytes /= passes;
        r->device.gathered_bytes /= passes;
    }
}

enum bsw_status bsw_search_gather_ranks(struct bsw_search *search, struct bsw_error *err)
{
    struct bsw_transport *transport = search->transport;
    struct bsw_message message = {
        .kind = BSW_MESSAGE_STATISTICS, .batch = search->batches.num_batches, .name = "statistics"};
    const struct bsw_search_rank own = report_rank(search);
    if (transport->rank == 0)
        BSW_TRY(bsw_allocate_zero(&search->ranks, (size_t)transport->num_ranks, sizeof own,
                                  "statistics", err));
    BSW_TRY(bsw_collect_records(transport, &message, &own, sizeof own, search->ranks, err));
    if (transport->rank == 0) average_over_passes(search);
    return BSW_OK;
}

// ---- what they add up to ----

static const char *device_kind(const struct bsw_search *search)
{
    int num_cpus = 0, num_ranks = search->transport->num_ranks;
    for (int rank = 0; rank < num_ranks; rank++)
        num_cpus += strcmp(search->ranks[rank].device.label, "cpu") == 0;
    return num_cpus == num_ranks ? "cpu" : num_cpus == 0 ? bsw_device_kind() : "mixed";
}

struct bsw_search_stats bsw_search_stats(const struct bsw_search *search)
{
    const struct bsw_scan_workspace *work = &search->service.workspace;
    uint64_t pairs = 0, stopped = 0;
    struct bsw_search_stats stats = {
        .seconds = bsw_median(search->seconds, (size_t)search->run.repeat),
        .num_searched = search->queries.num_queries - search->parts.num_done,
        .num_survivors = search->batches.finish.num_survivors,
        .received_bytes = bsw_batch_search_received_bytes(&search->batches),
        .scan = bsw_scan_name(work->used),
        .level = work->plane_scan->level,
        .device_kind = device_kind(search)};
    for (int rank = 0; rank < search->transport->num_ranks; rank++) {
        const struct bsw_search_rank *r = &search->ranks[rank];
        if (r->scan_seconds > search->ranks[stats.slowest_rank].scan_seconds)
            stats.slowest_rank = rank;
        pairs += r->num_pairs;
        stopped += r->num_stopped;
        stats.num_rescanned += r->num_rescanned;
    }
    stats.queries_per_second = (double)stats.num_searched / stats.seconds;
    stats.stopped_share = pairs > 0 ? (double)stopped / (double)pairs : 0;
    return stats;
}

const char *bsw_search_refine_name(const struct bsw_search *search)
{
    int is_exact = search->settings.is_exact || search->manifest.codec->table->has_exact_keys;
    return is_exact ? "exact" : "none";
}
