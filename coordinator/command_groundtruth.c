// groundtruth: exact nearest neighbours. Every rank streams its range of rows once past all queries
// (shard/neighbour_scan.h; on a GPU truth_device.h); its best a query go to rank 0, which merges
// them in the total order.
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/process_memory.h"
#include "common/progress.h"
#include "common/result_file.h"
#include "common/run_status.h"
#include "common/stop_signal.h"
#include "common/temporary_files.h"
#include "coordinator/command.h"
#include "coordinator/command_files.h"
#include "coordinator/device_choice.h"
#include "coordinator/metric_choice.h"
#include "coordinator/query_digest.h"
#include "coordinator/same_input.h"
#include "coordinator/sidecar.h"
#include "coordinator/truth_device.h"
#include "coordinator/truth_journal.h"
#include "coordinator/truth_merge.h"
#include "coordinator/truth_split.h"
#include "shard/neighbour_scan.h"

enum { MESSAGE_RESUMED = 56, MESSAGE_DROPPED };

// Ranks meet every so many bytes: an error of one ends the job soon, and none waits long at the
// end.
#define BYTES_TO_AGREE ((uint64_t)256 << 20)
// Candidates of all ranks that are merged at once: 256 MiB.
#define MERGE_CANDIDATES ((uint64_t)1 << 24)

struct groundtruth_options {
    struct bsw_common_options common;
    const char *base, *queries, *out, *metric, *device;
    uint64_t k, device_memory, block_rows;
    struct bsw_row_range rows, query_rows;
    int drop_bad_rows, exclude_self, split, force, resume;
};

struct groundtruth_job {
    struct groundtruth_options options;
    struct bsw_transport *transport;
    enum bsw_metric metric;
    bsw_vectors *base, *queries;
    bsw_result_writer *writer; // rank 0
    struct bsw_neighbour_needs needs;
    bsw_neighbour_scan scan;
    bsw_device *device; // of this rank, or NULL
    struct bsw_truth_device on_device;
    struct bsw_truth_merge merge;
    struct bsw_journal_fields fields;
    struct bsw_truth_journal journal; // of a run on CPUs
    int is_taken;                     // rank 0: the output is this run's
    uint64_t num_resumed;             // rank 0: rows that earlier runs did, of all ranks
    uint64_t num_dropped;             // rank 0: rows with a fault, of all ranks
    uint64_t queries_digest;          // rank 0
    double seconds;
};

static enum bsw_status parse(struct groundtruth_job *job, int argc, char **argv, int *done,
                             struct bsw_error *err)
{
    struct groundtruth_options *o = &job->options;
    const struct bsw_option options[] = {
        {"base", BSW_OPTION_TEXT, &o->base, "FILE", NULL, 1, 0, 0, NULL,
         "vectors, or synth:count=N,dims=D,..."},
        {"queries", BSW_OPTION_TEXT, &o->queries, "FILE", NULL, 1, 0, 0, NULL, "query vectors"},
        {"out", BSW_OPTION_TEXT, &o->out, "FILE", NULL, 1, 0, 0, NULL,
         "ground truth (big-ann's layout)"},
        {"metric", BSW_OPTION_CHOICE, &o->metric, NULL, NULL, 0, 0, 0, "cosine|ip|l2",
         BSW_METRIC_HELP},
        {"k", BSW_OPTION_COUNT, &o->k, "K", "10", 0, 1, 1e6, NULL,
         "neighbours a query, at most the rows there are without those left out"},
        {"rows", BSW_OPTION_ROWS, &o->rows, "A:B", NULL, 0, 0, 0, NULL,
         "only these rows; ids stay those of the file"},
        {"query-rows", BSW_OPTION_ROWS, &o->query_rows, "A:B", NULL, 0, 0, 0, NULL,
         "only these queries"},
        {"exclude-self", BSW_OPTION_FLAG, &o->exclude_self, NULL, NULL, 0, 0, 0, NULL,
         "leave row i out of the answer of query i"},
        {"split", BSW_OPTION_FLAG, &o->split, NULL, NULL, 0, 0, 0, NULL,
         "also OUT.neighbors.ibin (int32) and OUT.distances.fbin (float32) for cuvs-bench, each "
         "behind uint32 queries, uint32 k"},
        {"block-rows", BSW_OPTION_COUNT, &o->block_rows, "N", "0", 0, 0, 1 << 24, NULL,
         "rows read at once, of which two blocks are in memory; 0: about 1 MB"},
        {"device", BSW_OPTION_TEXT, &o->device, "auto|cpu|cuda|cuda:N", "auto", 0, 0, 0, NULL,
         "where to compute: a GPU a rank, or all ranks of a host on GPU N; auto: the CPU"},
        {"device-memory", BSW_OPTION_COUNT, &o->device_memory, "BYTES", "0", 0, 0, 1e15, NULL,
         "most memory of a GPU that a rank uses; 0: all that is free"},
        {"drop-bad-rows", BSW_OPTION_FLAG, &o->drop_bad_rows, NULL, NULL, 0, 0, 0, NULL,
         "count and skip rows with NaN, Inf or (cosine) zeros"},
        {"force", BSW_OPTION_FLAG, &o->force, NULL, NULL, 0, 0, 0, NULL,
         "replace an existing file, begin an unfinished one anew"},
        {"resume", BSW_OPTION_FLAG, &o->resume, NULL, NULL, 0, 0, 0, NULL,
         "go on with an unfinished file, on as many ranks, on CPUs; without one begin"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"groundtruth", "exact nearest neighbours of queries",
                                           options, sizeof options / sizeof options[0]};
    return bsw_command_parse(job->transport, &table, &o->common, argc, argv, done, err);
}

// ---- set-up ----

// What everything else is measured against does not go to a GPU unasked.
static int is_on_cpu(const struct groundtruth_options *o)
{
    return strcmp(o->device, "auto") == 0 || strcmp(o->device, "cpu") == 0;
}

// Whether some query is a row that it must not find.
static int has_self(const struct groundtruth_job *job)
{
    uint64_t base = bsw_vectors_first_row(job->base), query = bsw_vectors_first_row(job->queries);
    return job->options.exclude_self && query < base + bsw_vectors_num_rows(job->base) &&
           base < query + bsw_vectors_num_rows(job->queries);
}

// Of every query: that k rows may be found. Called before anything is read, and when it is known
// how many rows were dropped.
static enum bsw_status check_k(const struct groundtruth_job *job, struct bsw_error *err)
{
    const struct groundtruth_options *o = &job->options;
    uint64_t num_rows = bsw_vectors_num_rows(job->base), num_out = job->num_dropped + has_self(job);
    char dropped[48] = "";
    if (o->k + num_out <= num_rows) return BSW_OK;
    if (job->num_dropped > 0)
        snprintf(dropped, sizeof dropped, ", %llu of them dropped",
                 (unsigned long long)job->num_dropped);
    return bsw_fail(err, BSW_ERROR_USAGE, "--k %llu: %s has %llu rows only%s%s",
                    (unsigned long long)o->k, o->base, (unsigned long long)num_rows, dropped,
                    has_self(job) ? ", one of them the query" : "");
}

static enum bsw_status open_inputs(struct groundtruth_job *job, struct bsw_error *err)
{
    const struct groundtruth_options *o = &job->options;
    BSW_TRY(bsw_vectors_open(o->base, o->rows, &job->base, err));
    BSW_TRY(bsw_queries_open(o->queries, o->query_rows, &job->queries, err));
    BSW_TRY(bsw_metric_choose(o->metric, job->base, job->queries, &job->metric, err));
    if (bsw_vectors_dims(job->queries) != bsw_vectors_dims(job->base)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, %s has %u", o->queries,
                        bsw_vectors_dims(job->queries), o->base, bsw_vectors_dims(job->base));
    }
    BSW_TRY(check_k(job, err));
    if (bsw_vectors_num_rows(job->base) / (uint64_t)job->transport->num_ranks >= UINT32_MAX) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: more than 2^32 rows a rank; use more ranks",
                        o->base);
    }
    if (o->resume && !is_on_cpu(o)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--resume: --device %s keeps no journal, a CPU does",
                        o->device);
    }
    return BSW_OK;
}

// What this rank has to find, and how results of all ranks meet. A row left out of its own answer
// would have been one of the best k + 1: so one more is kept.
static void set_needs(struct groundtruth_job *job)
{
    const struct groundtruth_options *o = &job->options;
    uint64_t num_rows = bsw_vectors_num_rows(job->base),
             base_row = bsw_vectors_first_row(job->base), rank = (uint64_t)job->transport->rank,
             ranks = (uint64_t)job->transport->num_ranks;
    uint64_t first = bsw_part_first(num_rows, rank, ranks),
             last = bsw_part_first(num_rows, rank + 1, ranks);
    // Of the largest part, so that all ranks have blocks of one size.
    size_t block_rows = o->block_rows > 0
                            ? (size_t)o->block_rows
                            : bsw_neighbour_block_rows(bsw_vectors_row_bytes(job->base),
                                                       (num_rows + ranks - 1) / ranks);
    job->needs = (struct bsw_neighbour_needs){
        .metric = job->metric,
        .level = o->common.level,
        .base = job->base,
        .queries = job->queries,
        .first_row = base_row + first,
        .num_rows = last - first,
        .keep = (size_t)o->k + (o->exclude_self ? 1 : 0),
        .block_rows = block_rows,
        .num_threads = (int)o->common.threads,
        .drop_bad_rows = o->drop_bad_rows,
        .most_bytes = bsw_available_memory_bytes() / (uint64_t)job->transport->num_host_ranks};
    job->merge = (struct bsw_truth_merge){.transport = job->transport,
                                          .merge = bsw_merge_table_get(o->common.level),
                                          .metric = job->metric,
                                          .k = (size_t)o->k,
                                          .first_row = base_row + first,
                                          .first_query_row = bsw_vectors_first_row(job->queries),
                                          .exclude_self = o->exclude_self};
}

static enum bsw_status open_device(struct groundtruth_job *job, struct bsw_error *err)
{
    const struct bsw_device_choice choice = {.text = job->options.device,
                                             .cpu_only = is_on_cpu(&job->options) ? "auto" : NULL,
                                             .most_bytes = job->options.device_memory,
                                             .timeout_seconds = job->options.common.timeout};
    BSW_TRY(bsw_device_choice_open(&choice, job->transport, &job->device, err));
    if (job->device) return bsw_truth_device_open(&job->needs, job->device, &job->on_device, err);
    return bsw_neighbour_scan_open(&job->needs, &job->scan, err);
}

// What the lists are a function of. Block rows, threads and level change no bit.
static void set_fields(struct groundtruth_job *job, uint64_t base_digest, uint64_t query_digest)
{
    const struct groundtruth_options *o = &job->options;
    struct bsw_journal_fields *fields = &job->fields;
    bsw_journal_field_text(fields, "bitsweep", BITSWEEP_VERSION);
    bsw_journal_field_text(fields, "metric", bsw_metric_name(job->metric));
    bsw_journal_field_count(fields, "k", o->k);
    bsw_journal_field_count(fields, "first row", bsw_vectors_first_row(job->base));
    bsw_journal_field_count(fields, "number of rows", bsw_vectors_num_rows(job->base));
    bsw_journal_field_count(fields, "first query", bsw_vectors_first_row(job->queries));
    bsw_journal_field_count(fields, "number of queries", bsw_vectors_num_rows(job->queries));
    bsw_journal_field_text(fields, "exclude-self", o->exclude_self ? "on" : "off");
    bsw_journal_field_text(fields, "drop-bad-rows", o->drop_bad_rows ? "on" : "off");
    bsw_journal_field_digest(fields, "base", base_digest);
    bsw_journal_field_digest(fields, "queries", query_digest);
    bsw_journal_field_count(fields, "ranks", (uint64_t)job->transport->num_ranks);
}

// Rank 0: OUT.partial, which one run at a time may have, then journals of runs before. It holds
// nothing until ranks merge, and goes whenever this run ends by itself.
static enum bsw_status take_output(struct groundtruth_job *job, struct bsw_error *err)
{
    const struct groundtruth_options *o = &job->options;
    // A run that began with --force may be resumed without it.
    int is_forced = o->force || (o->resume && bsw_truth_journals_exist(o->out));
    int wide_ids = bsw_vectors_first_row(job->base) + bsw_vectors_num_rows(job->base) >
                   (uint64_t)INT32_MAX + 1;
    const struct bsw_command_files files = {
        .inputs = {o->base, o->queries}, .outputs = {o->out}, .is_result = 1, .is_split = o->split};
    BSW_TRY(bsw_command_files_check(&files, err));
    if (o->split && wide_ids) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--split: its int32 ids do not reach the rows of %s",
                        o->base);
    }
    if (o->split) BSW_TRY(bsw_truth_split_check(o->out, is_forced, err));
    BSW_TRY(bsw_result_writer_open(o->out, bsw_vectors_num_rows(job->queries), o->k, wide_ids,
                                   is_forced, &job->writer, err));
    BSW_TRY(bsw_truth_journals_take(o->out, bsw_journal_mode_of(o->force, o->resume), &job->fields,
                                    err));
    bsw_temporary_note(bsw_result_writer_temporary(job->writer));
    BSW_TRY(bsw_result_writer_begin(job->writer, 0, err));
    job->merge.writer = job->writer;
    job->is_taken = 1;
    bsw_run_status_set_output(o->out, "rows");
    return BSW_OK;
}

// Adds the other ranks' numbers to rank 0's.
static enum bsw_status add_others(struct bsw_transport *transport,
                                  const struct bsw_message *message, uint64_t *number,
                                  struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    uint64_t theirs;
    enum bsw_status status = BSW_OK;
    if (transport->rank != 0)
        return bsw_transport_send(transport, 0, message, number, sizeof *number, err);
    for (int rank = 1; rank < transport->num_ranks && status == BSW_OK; rank++) {
        status = bsw_transport_receive(transport, rank, message, &buffer, NULL, err);
        if (status == BSW_OK && buffer.bytes != sizeof theirs)
            status = bsw_fail(err, BSW_ERROR_PEER, "rank %d sent %zu bytes", rank, buffer.bytes);
        if (status != BSW_OK) break;
        memcpy(&theirs, buffer.data, sizeof theirs);
        *number += theirs;
    }
    bsw_buffer_deinit(&buffer);
    return status;
}

// The sum over all ranks, on rank 0. Ends with an agreement.
static enum bsw_status add_up(struct groundtruth_job *job, uint32_t kind, const char *name,
                              uint64_t *number, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = kind, .batch = job->merge.num_groups, .name = name};
    return bsw_transport_agree(job->transport, add_others(job->transport, &message, number, err),
                               err);
}

static enum bsw_status open_journal(struct groundtruth_job *job, struct bsw_error *err)
{
    const struct groundtruth_options *o = &job->options;
    enum bsw_status status = bsw_truth_journal_open(&job->journal, o->out, job->transport->rank,
                                                    bsw_journal_mode_of(o->force, o->resume),
                                                    &job->fields, &job->scan, err);
    BSW_TRY(bsw_transport_agree(job->transport, status, err));
    job->num_resumed = job->journal.num_resumed;
    return add_up(job, MESSAGE_RESUMED, "resumed rows", &job->num_resumed, err);
}

// ---- the whole ----

static enum bsw_status scan_block(struct groundtruth_job *job, struct bsw_error *err)
{
    if (bsw_stop_is_asked()) return bsw_stop_fail(err);
    BSW_TRY(bsw_neighbour_scan_next(&job->scan, err));
    return bsw_truth_journal_put(&job->journal, err);
}

// All blocks of this rank. Ranks have as many rounds, whose parts differ by one row at most; those
// of a rank that resumes end early.
static enum bsw_status scan_rows(struct groundtruth_job *job, struct bsw_progress *progress,
                                 struct bsw_error *err)
{
    uint64_t ranks = (uint64_t)job->transport->num_ranks, block = job->needs.block_rows;
    uint64_t num_rows = bsw_vectors_num_rows(job->base);
    uint64_t most_rows = (num_rows + ranks - 1) / ranks;
    uint64_t rounds = (most_rows + block - 1) / block;
    uint64_t to_agree = BYTES_TO_AGREE / (block * bsw_vectors_row_bytes(job->base)) + 1;
    enum bsw_status status = BSW_OK;
    for (uint64_t round = 0; round < rounds; round++) {
        if (status == BSW_OK) status = scan_block(job, err);
        uint64_t done = job->scan.next_row * ranks;
        bsw_progress_update(progress, done);
        bsw_run_status_count(done < num_rows ? done : num_rows, num_rows);
        if (round % to_agree == to_agree - 1 || round + 1 == rounds)
            BSW_TRY(bsw_transport_agree(job->transport, status, err));
    }
    return BSW_OK;
}

static enum bsw_status merge_answers(struct groundtruth_job *job, struct bsw_error *err)
{
    uint64_t num_queries = bsw_vectors_num_rows(job->queries);
    uint64_t group = MERGE_CANDIDATES / ((uint64_t)job->transport->num_ranks * job->options.k);
    if (group < 1) group = 1;
    for (uint64_t first = 0; first < num_queries; first += group) {
        uint64_t left = num_queries - first;
        size_t count = (size_t)(left < group ? left : group);
        bsw_neighbour_scan_finish(&job->scan, (size_t)first, count);
        BSW_TRY(bsw_truth_merge_group(&job->merge, first, count, job->scan.lists + first, err));
    }
    return BSW_OK;
}

static enum bsw_status name_output(struct groundtruth_job *job, struct bsw_error *err)
{
    const struct groundtruth_options *o = &job->options;
    const struct bsw_sidecar facts = {.metric = bsw_metric_name(job->metric),
                                      .refine = "exact",
                                      .codec = "none",
                                      .k = o->k,
                                      .candidates = o->k,
                                      .rows = bsw_vectors_num_rows(job->base),
                                      .first_row = bsw_vectors_first_row(job->base),
                                      .dims = bsw_vectors_dims(job->base),
                                      .is_self_excluded = o->exclude_self,
                                      .queries_digest = job->queries_digest,
                                      .first_query = bsw_vectors_first_row(job->queries)};
    BSW_TRY(bsw_sidecar_finish(job->writer, o->out, &facts, err));
    if (o->split)
        BSW_TRY(bsw_truth_split_write(o->out, bsw_vectors_num_rows(job->queries), o->k, err));
    // Before the journals go: a run that is killed in between must not look unfinished.
    bsw_run_status_count(facts.rows, facts.rows);
    BSW_TRY(bsw_run_status_write(BSW_OK, "", err));
    return bsw_truth_journals_remove(o->out, err);
}

// A stop comes before all of it or after, where it changes nothing.
static enum bsw_status finish(struct groundtruth_job *job, struct bsw_error *err)
{
    BSW_TRY(bsw_result_writer_sync(job->writer, err)); // may take long, and be interrupted
    bsw_stop_hold();
    enum bsw_status status = name_output(job, err);
    if (status == BSW_OK) bsw_stop_conclude(0);
    bsw_stop_release();
    return status;
}

static enum bsw_status find(struct groundtruth_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    uint64_t num_rows = bsw_vectors_num_rows(job->base);
    uint64_t total =
        job->device ? bsw_truth_device_num_groups(&job->on_device) * job->needs.num_rows : num_rows;
    struct bsw_progress progress;
    bsw_progress_init(&progress, "groundtruth", "rows", total,
                      transport->rank == 0 && !job->options.common.quiet);
    enum bsw_status status =
        job->device ? bsw_truth_device_run(&job->on_device, &job->merge, &progress, err)
                    : scan_rows(job, &progress, err);
    bsw_progress_finish(&progress);
    if (status == BSW_OK && !job->device) status = merge_answers(job, err);
    return status;
}

static enum bsw_status run(struct groundtruth_job *job, struct bsw_error *err)
{
    struct bsw_transport *transport = job->transport;
    uint64_t base_digest = 0, query_digest = 0;
    enum bsw_status status = open_inputs(job, err);
    if (status == BSW_OK) set_needs(job);
    if (status == BSW_OK) status = bsw_same_input_digest(job->base, &base_digest, err);
    if (status == BSW_OK) status = bsw_same_input_digest(job->queries, &query_digest, err);
    if (status == BSW_OK && transport->rank == 0)
        status = bsw_query_digest(job->queries, &job->queries_digest, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    BSW_TRY(bsw_same_input_agree(transport, base_digest, job->options.base, err));
    BSW_TRY(bsw_same_input_agree(transport, query_digest, job->options.queries, err));
    set_fields(job, base_digest, query_digest);
    status = transport->rank == 0 ? take_output(job, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = open_device(job, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    if (!job->device) BSW_TRY(open_journal(job, err));
    double started = bsw_clock_seconds();
    BSW_TRY(find(job, err));
    job->seconds = bsw_clock_seconds() - started;
    job->num_dropped = job->device ? job->on_device.dropped_rows : job->scan.dropped_rows;
    BSW_TRY(add_up(job, MESSAGE_DROPPED, "dropped rows", &job->num_dropped, err));
    status = transport->rank == 0 ? check_k(job, err) : BSW_OK;
    // As many rows are dropped next time: nothing to go on with.
    if (status != BSW_OK) bsw_truth_journals_remove(job->options.out, NULL);
    if (status == BSW_OK && transport->rank == 0) status = finish(job, err);
    return bsw_transport_agree(transport, status, err);
}

static const char *arithmetic(const struct groundtruth_job *job)
{
    int is_whole = job->device ? job->on_device.is_integer : job->scan.tiles.is_whole;
    return is_whole ? "int32" : "float64";
}

static void report(const struct groundtruth_job *job)
{
    const struct groundtruth_options *o = &job->options;
    double rows = (double)bsw_vectors_num_rows(job->base),
           queries = (double)bsw_vectors_num_rows(job->queries);
    if (o->common.json) {
        bsw_print_json(json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:i, s:I, s:s, s:I, s:I, s:f, s:f}",
            "rows", (json_int_t)bsw_vectors_num_rows(job->base), "resumed_rows",
            (json_int_t)job->num_resumed, "dropped_rows", (json_int_t)job->num_dropped, "queries",
            (json_int_t)bsw_vectors_num_rows(job->queries), "dims",
            (json_int_t)bsw_vectors_dims(job->base), "k", (json_int_t)o->k, "metric",
            bsw_metric_name(job->metric), "arithmetic", arithmetic(job), "device",
            job->device ? bsw_device_kind() : "cpu", "ranks", job->transport->num_ranks, "threads",
            (json_int_t)o->common.threads, "level", bsw_refine_table_get(o->common.level)->level,
            "block_rows", (json_int_t)job->needs.block_rows, "memory_bytes",
            (json_int_t)job->scan.bytes, "seconds", job->seconds, "queries_per_second",
            queries / job->seconds));
        return;
    }
    if (o->common.quiet) return;
    char memory[32];
    bsw_format_bytes((double)job->scan.bytes, memory, sizeof memory);
    printf("%.0f queries x %.0f rows x %u dims, %s, k %llu, exact in %s: %.3f s, %.4g queries/s, "
           "%.4g rows/s",
           queries, rows, bsw_vectors_dims(job->base), bsw_metric_name(job->metric),
           (unsigned long long)o->k, arithmetic(job), job->seconds, queries / job->seconds,
           rows / job->seconds);
    if (!job->device) printf("; %s of memory for queries, lists and blocks", memory);
    printf("\n");
    if (job->num_dropped > 0) printf("dropped rows: %llu\n", (unsigned long long)job->num_dropped);
    printf("ground truth: %s\n", o->out);
}

static void deinit(struct groundtruth_job *job, enum bsw_status status)
{
    const char *out = job->options.out;
    bsw_truth_journal_close(&job->journal, status);
    if (status != BSW_OK && job->is_taken && !bsw_truth_journals_exist(out))
        bsw_run_status_set_output(NULL, "");
    bsw_neighbour_scan_close(&job->scan);
    bsw_truth_device_close(&job->on_device);
    bsw_truth_merge_deinit(&job->merge);
    bsw_device_close(&job->device);
    bsw_result_writer_destroy(&job->writer);
    bsw_vectors_close(&job->base);
    bsw_vectors_close(&job->queries);
}

enum bsw_status bsw_command_groundtruth(struct bsw_transport *transport, int argc, char **argv,
                                        struct bsw_error *err)
{
    struct groundtruth_job job = {.transport = transport};
    int done;
    BSW_TRY(parse(&job, argc, argv, &done, err));
    if (done) return BSW_OK;
    enum bsw_status status = run(&job, err);
    if (status == BSW_OK && transport->rank == 0) report(&job);
    deinit(&job, status);
    return status;
}
