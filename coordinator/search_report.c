#include "coordinator/search_job.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/median.h"
#include "common/process_memory.h"
#include "coordinator/search_checks.h"
#include "coordinator/search_sizes.h"

const char *bsw_search_select_name(const struct bsw_search_job *job)
{
    return job->settings.queue.length > 0 ? "queue"
           : job->settings.is_histogram   ? "histogram"
                                          : "threshold";
}

uint64_t bsw_search_num_candidates(const struct bsw_search_job *job)
{
    return job->settings.keep - job->settings.exclude_self;
}

static int slowest_rank(const struct bsw_search_job *job)
{
    int slowest = 0;
    for (int rank = 1; rank < job->transport->num_ranks; rank++) {
        if (job->statistics[rank].scan_seconds > job->statistics[slowest].scan_seconds)
            slowest = rank;
    }
    return slowest;
}

static const char *scan_name(const struct bsw_search_job *job)
{
    return bsw_scan_name(job->service.workspace.used);
}

const char *bsw_search_refine_name(const struct bsw_search_job *job)
{
    return job->settings.is_exact || job->manifest.codec == BSW_CODEC_RAW ? "exact" : "none";
}

// "cpu", or the kind of the devices; "mixed" where ranks differ.
static const char *device_kind(const struct bsw_search_job *job)
{
    int num_cpus = 0, num_ranks = job->transport->num_ranks;
    for (int rank = 0; rank < num_ranks; rank++)
        num_cpus += strcmp(job->statistics[rank].device.label, "cpu") == 0;
    return num_cpus == num_ranks ? "cpu" : num_cpus == 0 ? bsw_device_kind() : "mixed";
}

// What moves queries and survivors between the ranks.
static const char *link_name(const struct bsw_search_job *job)
{
    return job->link ? "nccl" : "mpi";
}

// Of all pairs of row and query those that the first stage stopped.
static double stopped_share(const struct bsw_search_job *job)
{
    uint64_t pairs = 0, stopped = 0;
    for (int rank = 0; rank < job->transport->num_ranks; rank++) {
        pairs += job->statistics[rank].num_pairs;
        stopped += job->statistics[rank].num_stopped;
    }
    return pairs > 0 ? (double)stopped / (double)pairs : 0;
}

// Queries that a shard scanned twice, in all passes.
static uint64_t rescanned_queries(const struct bsw_search_job *job)
{
    uint64_t queries = 0;
    for (int rank = 0; rank < job->transport->num_ranks; rank++)
        queries += job->statistics[rank].num_rescanned;
    return queries;
}

// In a pass of this run.
static uint64_t num_searched(const struct bsw_search_job *job)
{
    return job->queries.num_queries - job->result.num_done;
}

static json_t *describe(const struct bsw_search_job *job)
{
    const struct bsw_search_settings *settings = &job->settings;
    return json_pack("{s:I, s:I, s:I, s:i, s:I, s:I, s:f, s:s, s:s, s:i, s:i, s:I, s:s}", "queries",
                     (json_int_t)job->queries.num_queries, "dims",
                     (json_int_t)bsw_manifest_row_dims(&job->manifest), "rows",
                     (json_int_t)job->manifest.num_rows, "shards", (int)job->manifest.num_shards,
                     "k", (json_int_t)settings->k, "L", (json_int_t)bsw_search_num_candidates(job),
                     "oversample", job->options.oversample, "codec",
                     bsw_codec_name(job->manifest.codec), "metric",
                     bsw_metric_name(job->manifest.metric), "query_bits", (int)settings->query_bits,
                     "ranks", job->transport->num_ranks, "threads",
                     (json_int_t)settings->num_threads, "pin", job->options.common.pin);
}

static json_t *describe_ranks(const struct bsw_search_job *job)
{
    json_t *ranks = json_array();
    for (int rank = 0; rank < job->transport->num_ranks; rank++) {
        const struct bsw_search_statistics *s = &job->statistics[rank];
        json_t *facts =
            json_pack("{s:i, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I}", "rank", rank, "units",
                      (json_int_t)s->num_units, "load_seconds", s->load_seconds, "scan_seconds",
                      s->scan_seconds, "refine_seconds", s->refine_seconds, "scanned_bytes",
                      (json_int_t)s->scanned_bytes, "resident_bytes", (json_int_t)s->resident_bytes,
                      "resident_memory_bytes", (json_int_t)s->grown_bytes, "memory_bytes",
                      (json_int_t)s->memory_bytes, "mapped_bytes", (json_int_t)s->mapped_bytes);
        json_object_set_new(facts, "device", bsw_device_report_describe(&s->device));
        json_array_append_new(ranks, facts);
    }
    return ranks;
}

void bsw_search_print_json(const struct bsw_search_job *job)
{
    const struct bsw_search_times *t = &job->search.times;
    double seconds = bsw_median(job->seconds, (size_t)job->options.repeat);
    json_t *object = describe(job);
    json_t *more = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:i}", "scan",
        scan_name(job), "level", job->service.workspace.plane_scan->level, "select",
        bsw_search_select_name(job), "merge", job->settings.is_ladder ? "ladder" : "gather",
        "refine", bsw_search_refine_name(job), "device", device_kind(job), "batch",
        (json_int_t)job->batch, "repeat", (json_int_t)job->options.repeat, "seconds", seconds,
        "queries_per_second", (double)num_searched(job) / seconds, "survivors",
        (json_int_t)job->search.finish.num_survivors, "received_bytes",
        (json_int_t)bsw_batch_search_received_bytes(&job->search), "extra_distance",
        (json_int_t)job->settings.extra_distance, "slowest_rank", slowest_rank(job));
    json_object_update(object, more);
    json_decref(more);
    json_object_set_new(object, "seconds_by_phase",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "encode", t->encode,
                                  "broadcast", t->broadcast, "histogram", t->histogram, "scan",
                                  t->scan, "merge", t->merge, "refine", t->refine, "finish",
                                  t->finish, "write", t->write));
    json_object_set_new(object, "link", json_string(link_name(job)));
    json_object_set_new(object, "link_note", json_string(job->link_note));
    json_object_set_new(object, "exclude_self", json_boolean(job->options.exclude_self));
    json_object_set_new(object, "resumed_queries", json_integer((json_int_t)job->result.num_done));
    json_object_set_new(object, "overlapped_seconds", json_real(t->overlapped));
    if (job->settings.queue.length > 0) {
        json_object_set_new(object, "items", json_integer((json_int_t)job->settings.queue.items));
        json_object_set_new(object, "queue_length",
                            json_integer((json_int_t)job->settings.queue.length));
    }
    json_object_set_new(object, "stopped_share", json_real(stopped_share(job)));
    json_object_set_new(object, "rescanned_queries",
                        json_integer((json_int_t)rescanned_queries(job)));
    json_object_set_new(object, "self_checks", bsw_search_checks_describe(&job->search));
    json_object_set_new(object, "per_rank", describe_ranks(job));
    bsw_print_json(object);
}

static void print_devices(const struct bsw_search_job *job)
{
    if (strcmp(device_kind(job), "cpu") == 0) return;
    printf("\nlink: %s (%s)\n", link_name(job), job->link_note);
    printf("\n  rank  device                                    memory  copied in blocks\n");
    for (int rank = 0; rank < job->transport->num_ranks; rank++) {
        const struct bsw_device_report *d = &job->statistics[rank].device;
        char device[96], used[32], copied[32];
        snprintf(device, sizeof device, "%s %s", d->label, d->name);
        bsw_format_bytes((double)d->used_bytes, used, sizeof used);
        bsw_format_bytes((double)d->copied_bytes, copied, sizeof copied);
        printf("  %4d  %-36s %11s  %16s\n", rank, device, used, copied);
    }
}

void bsw_search_print_table(const struct bsw_search_job *job)
{
    const struct bsw_search_times *t = &job->search.times;
    double seconds = bsw_median(job->seconds, (size_t)job->options.repeat),
           queries = (double)num_searched(job);
    char bytes[32], resident[32], mapped[32];
    printf(
        "%llu queries, k %llu, L %llu over %llu rows x %u dims (%s, %s): %.4g queries/s, %.3f s\n",
        (unsigned long long)job->queries.num_queries, (unsigned long long)job->settings.k,
        (unsigned long long)bsw_search_num_candidates(job),
        (unsigned long long)job->manifest.num_rows, bsw_manifest_row_dims(&job->manifest),
        bsw_codec_name(job->manifest.codec), bsw_metric_name(job->manifest.metric),
        queries / seconds, seconds);
    printf("%d ranks x %d threads, level %s, scan %s, select %s, merge %s, refine %s, batch %llu\n",
           job->transport->num_ranks, job->settings.num_threads,
           job->service.workspace.plane_scan->level, scan_name(job), bsw_search_select_name(job),
           job->settings.is_ladder ? "ladder" : "gather", bsw_search_refine_name(job),
           (unsigned long long)job->batch);
    printf("\n  phase       seconds\n");
    const struct {
        const char *name;
        double seconds;
        int may_overlap;
    } phases[] = {{"encode", t->encode, 1},       {"broadcast", t->broadcast, 0},
                  {"histogram", t->histogram, 0}, {"scan", t->scan, 0},
                  {"merge", t->merge, 0},         {"refine", t->refine, 0},
                  {"finish", t->finish, 1},       {"write", t->write, 1}};
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        if (phases[i].seconds > 0)
            printf("  %-10s %8.3f%s\n", phases[i].name, phases[i].seconds,
                   phases[i].may_overlap && t->overlapped > 0 ? "  beside the scan" : "");
    }
    printf("\n  rank  shards   load s   scan s  refine s     scanned    resident  of it mapped\n");
    int slowest = slowest_rank(job);
    for (int rank = 0; rank < job->transport->num_ranks; rank++) {
        const struct bsw_search_statistics *s = &job->statistics[rank];
        bsw_format_bytes((double)s->scanned_bytes, bytes, sizeof bytes);
        bsw_format_bytes((double)(s->memory_bytes + s->mapped_bytes), resident, sizeof resident);
        bsw_format_bytes((double)s->mapped_bytes, mapped, sizeof mapped);
        printf("  %4d  %6llu %8.3f %8.3f  %8.3f  %10s  %10s  %12s%s\n", rank,
               (unsigned long long)s->num_units, s->load_seconds, s->scan_seconds,
               s->refine_seconds, bytes, resident, mapped,
               rank == slowest && job->transport->num_ranks > 1 ? "  slowest" : "");
    }
    print_devices(job);
    if (job->result.num_done > 0)
        printf("\nresumed: %llu queries were done before\n",
               (unsigned long long)job->result.num_done);
    if (stopped_share(job) > 0)
        printf("\nfirst stage: stopped %.4g %% of all rows\n", 100 * stopped_share(job));
    printf("\nresults: %s\n", job->options.out);
}
