// plan: what an index will take in memory and on disk, what queue selection will miss and how long
// a batch will take, before any of it is made or bought. Bytes come from the functions that indexes
// are made with.
#include <stdio.h>
#include <string.h>

#include "coordinator/command.h"
#include "coordinator/plan_index.h"
#include "coordinator/plan_misses.h"
#include "coordinator/plan_time_report.h"
#include "coordinator/plan_times.h"
#include "coordinator/search_sizes.h"

#define MOST_LINES 12 // of the table of misses

struct plan_options {
    struct bsw_common_options common;
    struct bsw_plan_settings index;
    struct bsw_plan_time_settings times;
    const char *ranks, *select;
    uint64_t scan_rate, scan_bandwidth, encode_rate, merge_rate, refine_rate, finish_rate;
    double target;
    struct bsw_queue_options queue;
};

struct plan_job {
    struct plan_options options;
    uint64_t ranks[BSW_PLAN_MAX_LINES];
    size_t num_ranks;
    struct bsw_plan_index index; // for the first of them
    struct bsw_plan_misses misses;
    struct bsw_plan_times times;
};

static enum bsw_status parse(struct bsw_transport *transport, struct plan_options *o, int argc,
                             char **argv, int *done, struct bsw_error *err)
{
    struct bsw_model_rates *given = &o->times.given;
    const struct bsw_option options[] = {
        {"rows", BSW_OPTION_COUNT, &o->index.rows, "N", NULL, 1, 1, 1e12, NULL, "documents"},
        {"dims", BSW_OPTION_COUNT, &o->index.dims, "D", NULL, 1, 1, BSW_MAX_DIMS, NULL,
         "dimensions of vectors, and of their codes but for rbe"},
        {"codec", BSW_OPTION_TEXT, &o->index.codec, "NAME", "saq", 0, 0, 0, NULL, "as for encode"},
        {"bits", BSW_OPTION_NUMBER, &o->index.bits, "B", NULL, 0, 1, 8, NULL,
         "bits a dimension, for saq on average, for rbe a document's planes [3; rbe 2]"},
        {"code-dims", BSW_OPTION_COUNT, &o->index.code_dims, "N", NULL, 0, 1, BSW_RBE_MAX_ROW_DIMS,
         NULL, "rbe: components of a code [64]"},
        {"segments", BSW_OPTION_TEXT, &o->index.segments, "DxB,...", NULL, 0, 0, 0, NULL,
         "saq: dims x bits of each segment, in place of --bits"},
        {"stage", BSW_OPTION_COUNT, &o->index.stage, "D", "32", 0, 0, BSW_MAX_DIMS, NULL,
         "saq: dims of the first stage, which has bytes of its own; 0: none"},
        {"vectors", BSW_OPTION_CHOICE, &o->index.vectors, NULL, "float32", 0, 0, 0,
         "float32|float16|uint8|none", "raw vectors to refine with, on disk"},
        {"ranks", BSW_OPTION_TEXT, &o->ranks, "N", "1", 0, 0, 0, NULL,
         "ranks of a search, up to 4096; 1,2,8 or 1:1024 (doubled): a line for each, with times"},
        {"shards", BSW_OPTION_COUNT, &o->index.shards, "P", "0", 0, 0, BSW_MAX_SHARDS, NULL,
         "shards of the index; 0: as many as ranks, or so many more that none has 2^32 rows"},
        {"k", BSW_OPTION_COUNT, &o->index.k, "K", BSW_SEARCH_K_TEXT, 0, 1, BSW_SEARCH_MAX_K, NULL,
         "neighbours a query"},
        {"oversample", BSW_OPTION_NUMBER, &o->index.oversample, "X", BSW_SEARCH_OVERSAMPLE_TEXT, 0,
         1, 10000, NULL, "candidates to refine, times k; 1 with --vectors none and codec raw"},
        {"query-bits", BSW_OPTION_COUNT, &o->index.query_bits, "BQ", NULL, 0, 1, BSW_MAX_QUERY_BITS,
         NULL, "bits a query component [6; rbe 3]"},
        {"batch", BSW_OPTION_COUNT, &o->times.batch, "N", BSW_SEARCH_BATCH_TEXT, 0, 1, 1e6, NULL,
         "queries at a time"},
        {"select", BSW_OPTION_CHOICE, &o->select, NULL, "threshold", 0, 0, 0, "threshold|queue",
         "queue: also what rbeGIR's selection will miss of the candidates"},
        {"items", BSW_OPTION_COUNT, &o->queue.items, "I", "256", 0, 1, BSW_QUEUE_MAX_ITEMS, NULL,
         "queue: rows that each of a block's 256 threads goes over"},
        {"queue-length", BSW_OPTION_COUNT, &o->queue.length, "Q", "1", 0, 1, BSW_QUEUE_MAX_LENGTH,
         NULL, "queue: best rows that a thread keeps"},
        {"target", BSW_OPTION_NUMBER, &o->target, "PERCENT", "99.9", 0, 0, 100, NULL,
         "queue: share of candidates to keep, for which I is sought"},
        {"rates", BSW_OPTION_TEXT, &o->times.rates_path, "FILE", NULL, 0, 0, 0, NULL,
         "JSON of bench cluster: what times are computed from, scaled for other codes; the options "
         "below go before it"},
        {"alpha", BSW_OPTION_NUMBER, &given->alpha_seconds, "SECONDS", NULL, 0, 1e-12, 100, NULL,
         "a message of no bytes between ranks"},
        {"beta", BSW_OPTION_NUMBER, &given->beta_seconds_per_byte, "SECONDS", NULL, 0, 1e-15, 1,
         NULL, "each byte of a message: 1 / bandwidth"},
        {"scan-rate", BSW_OPTION_COUNT, &o->scan_rate, "N", NULL, 0, 1, 1e18, NULL,
         "pairs of row and query a rank scans a second"},
        {"scan-bandwidth", BSW_OPTION_COUNT, &o->scan_bandwidth, "BYTES", NULL, 0, 1, 1e18, NULL,
         "codes a rank reads from memory a second"},
        {"encode-rate", BSW_OPTION_COUNT, &o->encode_rate, "N", NULL, 0, 1, 1e18, NULL,
         "queries rank 0 codes a second"},
        {"merge-rate", BSW_OPTION_COUNT, &o->merge_rate, "N", NULL, 0, 1, 1e18, NULL,
         "candidates rank 0 merges a second"},
        {"refine-rate", BSW_OPTION_COUNT, &o->refine_rate, "N", NULL, 0, 1, 1e18, NULL,
         "rows a rank refines a second"},
        {"finish-rate", BSW_OPTION_COUNT, &o->finish_rate, "N", NULL, 0, 1, 1e18, NULL,
         "queries rank 0 ranks and writes a second"},
        {"device", BSW_OPTION_CHOICE, &o->times.device, NULL, "cpu", 0, 0, 0, "cpu|gpu|h200",
         "gpu: rates of scans are of a GPU a rank; h200: its computed limits, not measured"},
        {"merge", BSW_OPTION_CHOICE, &o->times.merge, NULL, "auto", 0, 0, 0, "auto|gather|ladder",
         "as for search"},
        {"rank-threads", BSW_OPTION_COUNT, &o->times.threads, "N", "0", 0, 0, 4096, NULL,
         "threads of a rank; 0: as many as rates were measured with"},
        {"cores", BSW_OPTION_COUNT, &o->times.cores, "N", "0", 0, 0, 65536, NULL,
         "cores of a host; 0: as measured, or one a thread"},
        {"ranks-a-host", BSW_OPTION_COUNT, &o->times.ranks_a_host, "N", "1", 0, 1, 4096, NULL,
         "ranks that share the cores of a host"},
        {"memory", BSW_OPTION_COUNT, &o->times.memory_bytes, "BYTES", "0", 0, 0, 1e15, NULL,
         "of a rank: no times where its part is more; 0: enough, or the device's"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {
        "plan", "memory, bytes, misses and seconds of a cluster, before it is bought", options,
        sizeof options / sizeof options[0]};
    return bsw_command_parse(transport, &table, &o->common, argc, argv, done, err);
}

static int misses_wanted(const struct plan_options *o)
{
    return strcmp(o->select, "queue") == 0;
}

// Times, or what is missing for them, or at least the memory of several numbers of ranks.
static int times_wanted(const struct plan_job *job)
{
    const struct plan_options *o = &job->options;
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        if (bsw_rate_get(&o->times.given, i) > 0) return 1;
    }
    return job->num_ranks > 1 || o->times.rates_path || strcmp(o->times.device, "cpu") != 0;
}

static enum bsw_status settle(struct plan_job *job, struct bsw_error *err)
{
    struct plan_options *o = &job->options;
    struct bsw_model_rates *given = &o->times.given;
    given->scan_pairs_per_second = (double)o->scan_rate;
    given->scan_bytes_per_second = (double)o->scan_bandwidth;
    given->encode_queries_per_second = (double)o->encode_rate;
    given->merge_candidates_per_second = (double)o->merge_rate;
    given->refine_rows_per_second = (double)o->refine_rate;
    given->finish_queries_per_second = (double)o->finish_rate;
    o->times.level = o->common.level;
    BSW_TRY(bsw_plan_ranks_parse(o->ranks, job->ranks, &job->num_ranks, err));
    if (job->num_ranks > 1 && misses_wanted(o))
        return bsw_fail(err, BSW_ERROR_USAGE, "--select queue takes one number of --ranks");
    return BSW_OK;
}

// ---- report ----

static void print_line(const char *name, double all, double most)
{
    char texts[2][32];
    bsw_format_bytes(all, texts[0], sizeof texts[0]);
    bsw_format_bytes(most, texts[1], sizeof texts[1]);
    printf("  %-22s %12s %12s\n", name, texts[0], texts[1]);
}

static void print_bytes(const struct bsw_plan_index *index)
{
    const struct bsw_resident_parts *all = &index->all.parts, *most = &index->most.parts;
    const struct {
        const char *name;
        size_t all, most;
    } lines[] = {
        {"codes", all->codes, most->codes},
        {"scales", all->scales, most->scales},
        {"biases", all->biases, most->biases},
        {"offsets", all->offsets, most->offsets},
        {"tails of the stage", all->tails + all->most, most->tails + most->most},
        {"masks", all->masks, most->masks},
        {"row digests", all->row_digests, most->row_digests},
        {"in memory", bsw_resident_bytes(all), bsw_resident_bytes(most)},
        {"read in a pass", bsw_resident_scan_bytes(all), bsw_resident_scan_bytes(most)},
    };
    printf("\n  %-22s %12s %12s\n", "memory", "all ranks", "a rank");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (lines[i].all > 0)
            print_line(lines[i].name, (double)lines[i].all, (double)lines[i].most);
    }
    printf("\n  %-22s %12s %12s\n", "disk", "index", "a rank");
    print_line(".codes files", (double)index->index.codes_files, (double)index->most.codes_files);
    if (index->index.vectors_files > 0)
        print_line("raw vectors", (double)index->index.vectors_files,
                   (double)index->most.vectors_files);
}

// The range of l where P(L <= l) rises from hardly anything to hardly less than 1.
static void print_distribution(const struct bsw_plan_misses *misses)
{
    size_t first = 0, last = 0;
    while (first + 1 < misses->num_terms && misses->at_most[first] < 0.001) first++;
    while (last + 1 < misses->num_terms && misses->at_most[last] < 0.99995) last++;
    size_t step = (last - first) / MOST_LINES + 1;
    printf("\n  misses at most   probability%s\n", misses->is_simulated ? " (simulated)" : "");
    for (size_t l = first; l <= last; l += step)
        printf("  %14zu   %9.3f %%\n", l, 100 * misses->at_most[l]);
}

static void print_queue(const struct plan_options *o, const struct bsw_plan_misses *misses)
{
    printf("\nselect queue: %llu threads of %llu rows keep %llu each, %llu candidates a query\n",
           (unsigned long long)misses->threads, (unsigned long long)o->queue.items,
           (unsigned long long)o->queue.length, (unsigned long long)misses->kept);
    printf("of the %llu best %.4g are missed on average: %.4f %% kept\n",
           (unsigned long long)misses->num_best, misses->expected,
           bsw_plan_kept_percent(misses, misses->expected));
    if (misses->has_distribution)
        print_distribution(misses);
    else
        printf("(too many for a table of their probabilities)\n");
    if (misses->largest_items > 0)
        printf("\nlargest power of two that keeps %g %%: --items %llu\n", o->target,
               (unsigned long long)misses->largest_items);
}

static void print_shape(const struct plan_job *job)
{
    const struct plan_options *o = &job->options;
    const struct bsw_plan_index *index = &job->index;
    char segments[512], batch[32];
    bsw_code_layout_format(&index->manifest.layout, segments, sizeof segments);
    bsw_format_bytes((double)bsw_plan_batch_bytes(index, o->times.batch), batch, sizeof batch);
    printf("%llu rows x %llu dims, %s %s: %g bytes a row", (unsigned long long)o->index.rows,
           (unsigned long long)o->index.dims, bsw_codec_name(index->manifest.codec), segments,
           bsw_manifest_row_bytes(&index->manifest));
    if (job->num_ranks == 1) {
        printf("; %u shards on %llu ranks, each row on %u", index->manifest.num_shards,
               (unsigned long long)job->ranks[0], index->assignment.num_slices);
    }
    printf("\nk %llu, L %llu; a batch of %llu queries: %s to every rank\n",
           (unsigned long long)o->index.k, (unsigned long long)index->keep,
           (unsigned long long)o->times.batch, batch);
}

static void print_table(const struct plan_job *job)
{
    print_shape(job);
    if (job->num_ranks == 1) print_bytes(&job->index);
    if (misses_wanted(&job->options)) print_queue(&job->options, &job->misses);
    if (times_wanted(job)) bsw_plan_times_print(&job->times);
}

static json_t *describe_bytes(const struct bsw_plan_bytes *bytes)
{
    const struct bsw_resident_parts *p = &bytes->parts;
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "codes_bytes",
        (json_int_t)p->codes, "scales_bytes", (json_int_t)p->scales, "biases_bytes",
        (json_int_t)p->biases, "offsets_bytes", (json_int_t)p->offsets, "tails_bytes",
        (json_int_t)(p->tails + p->most), "masks_bytes", (json_int_t)p->masks, "row_digests_bytes",
        (json_int_t)p->row_digests, "resident_bytes", (json_int_t)bsw_resident_bytes(p),
        "scanned_bytes", (json_int_t)bsw_resident_scan_bytes(p), "codes_files_bytes",
        (json_int_t)bytes->codes_files, "vectors_files_bytes", (json_int_t)bytes->vectors_files);
}

static json_t *describe_queue(const struct plan_options *o, const struct bsw_plan_misses *misses)
{
    json_t *object =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I}", "items",
                  (json_int_t)o->queue.items, "queue_length", (json_int_t)o->queue.length,
                  "threads", (json_int_t)misses->threads, "candidates", (json_int_t)misses->kept,
                  "best", (json_int_t)misses->num_best, "expected_misses", misses->expected,
                  "kept_percent", bsw_plan_kept_percent(misses, misses->expected), "target_percent",
                  o->target, "largest_items", (json_int_t)misses->largest_items);
    if (!misses->has_distribution) return object;
    json_t *at_most = json_array();
    for (size_t l = 0; l < misses->num_terms; l++)
        json_array_append_new(at_most, json_real(misses->at_most[l]));
    json_object_set_new(object, "is_simulated", json_boolean(misses->is_simulated));
    json_object_set_new(object, "probability_at_most", at_most);
    return object;
}

// What depends on the number of ranks, where there is one.
static void describe_ranks(const struct plan_job *job, json_t *object)
{
    const struct bsw_plan_index *index = &job->index;
    json_object_set_new(object, "ranks", json_integer((json_int_t)job->ranks[0]));
    json_object_set_new(object, "shards", json_integer(index->manifest.num_shards));
    json_object_set_new(object, "replicas", json_integer(index->assignment.num_slices));
    json_object_set_new(object, "index", describe_bytes(&index->index));
    json_object_set_new(object, "all_ranks", describe_bytes(&index->all));
    json_object_set_new(object, "rank", describe_bytes(&index->most));
}

static void print_json(const struct plan_job *job)
{
    const struct plan_options *o = &job->options;
    const struct bsw_plan_index *index = &job->index;
    char segments[512];
    bsw_code_layout_format(&index->manifest.layout, segments, sizeof segments);
    json_t *object =
        json_pack("{s:I, s:I, s:s, s:s, s:f, s:I, s:I, s:I, s:I, s:s}", "rows",
                  (json_int_t)o->index.rows, "dims", (json_int_t)o->index.dims, "codec",
                  bsw_codec_name(index->manifest.codec), "segments", segments, "bytes_per_vector",
                  bsw_manifest_row_bytes(&index->manifest), "k", (json_int_t)o->index.k, "L",
                  (json_int_t)index->keep, "batch", (json_int_t)o->times.batch, "batch_bytes",
                  (json_int_t)bsw_plan_batch_bytes(index, o->times.batch), "select", o->select);
    if (job->num_ranks == 1) describe_ranks(job, object);
    if (misses_wanted(o)) json_object_set_new(object, "queue", describe_queue(o, &job->misses));
    if (times_wanted(job)) {
        json_object_set_new(object, "rates", bsw_plan_rates_describe(&job->times));
        json_object_set_new(object, "lines", bsw_plan_lines_describe(&job->times));
    }
    bsw_print_json(object);
}

// ---- the command ----

static enum bsw_status plan(struct plan_job *job, struct bsw_error *err)
{
    const struct plan_options *o = &job->options;
    BSW_TRY(settle(job, err));
    BSW_TRY(bsw_plan_index_make(&o->index, job->ranks[0], &job->index, err));
    if (misses_wanted(o))
        BSW_TRY(bsw_plan_misses_find(&job->index, &o->queue, o->target, &job->misses, err));
    if (!times_wanted(job)) return BSW_OK;
    return bsw_plan_times_make(&o->index, &o->times, job->ranks, job->num_ranks, &job->times, err);
}

enum bsw_status bsw_command_plan(struct bsw_transport *transport, int argc, char **argv,
                                 struct bsw_error *err)
{
    struct plan_job job = {0};
    int done;
    BSW_TRY(parse(transport, &job.options, argc, argv, &done, err));
    if (done) return BSW_OK;
    enum bsw_status status = transport->rank == 0 ? plan(&job, err) : BSW_OK;
    if (status == BSW_OK && transport->rank == 0) {
        if (job.options.common.json)
            print_json(&job);
        else if (!job.options.common.quiet)
            print_table(&job);
    }
    bsw_plan_misses_deinit(&job.misses);
    bsw_plan_index_deinit(&job.index);
    return bsw_transport_agree(transport, status, err);
}
