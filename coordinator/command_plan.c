// plan: what an index will take in memory and on disk, and what queue selection will miss, before
// any of it is made or bought. Bytes come from the functions that indexes are made with.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/miss_probability.h"
#include "coordinator/code_training.h"
#include "coordinator/command.h"
#include "shard/assignment.h"
#include "shard/resident_shard.h"
#include "shard/shard_queue.h"

#define MOST_LINES 12 // of the table of misses

struct plan_options {
    struct bsw_common_options common;
    const char *codec, *segments, *vectors, *select;
    uint64_t rows, dims, code_dims, ranks, shards, k, query_bits, batch, stage;
    double bits, oversample, target;
    struct bsw_queue_options queue;
};

// Bytes of some shards.
struct plan_bytes {
    struct bsw_resident_parts parts;
    uint64_t codes_files, vectors_files;
};

struct plan_misses {
    uint64_t num_best;      // N
    uint64_t threads, kept; // of all shards; rows that their queues hold at most
    double expected;        // exact
    int has_distribution;   // else there are too many misses to tell them apart
    int is_simulated;
    double *at_most; // [num_terms]: P(L <= l); owned
    size_t num_terms;
    uint64_t largest_items; // power of two that reaches the target, 0: none
};

struct plan_job {
    struct plan_options options;
    struct bsw_manifest manifest; // as encode would have it, but for what is learned
    struct bsw_assignment assignment;
    uint64_t keep;                      // L
    struct plan_bytes index, most, all; // one copy; of the rank with most; over all ranks
    struct plan_misses misses;
};

static enum bsw_status parse(struct bsw_transport *transport, struct plan_options *o, int argc,
                             char **argv, int *done, struct bsw_error *err)
{
    const struct bsw_option options[] = {
        {"rows", BSW_OPTION_COUNT, &o->rows, "N", NULL, 1, 1, 1e12, NULL, "documents"},
        {"dims", BSW_OPTION_COUNT, &o->dims, "D", NULL, 1, 1, BSW_MAX_DIMS, NULL,
         "dimensions of vectors, and of their codes but for rbe"},
        {"codec", BSW_OPTION_TEXT, &o->codec, "NAME", "saq", 0, 0, 0, NULL, "as for encode"},
        {"bits", BSW_OPTION_NUMBER, &o->bits, "B", NULL, 0, 1, 8, NULL,
         "bits a dimension, for saq on average, for rbe a document's planes [3; rbe 2]"},
        {"code-dims", BSW_OPTION_COUNT, &o->code_dims, "N", NULL, 0, 1, BSW_RBE_MAX_ROW_DIMS, NULL,
         "rbe: components of a code [64]"},
        {"segments", BSW_OPTION_TEXT, &o->segments, "DxB,...", NULL, 0, 0, 0, NULL,
         "saq: dims x bits of each segment, in place of --bits"},
        {"stage", BSW_OPTION_COUNT, &o->stage, "D", "32", 0, 0, BSW_MAX_DIMS, NULL,
         "saq: dims of the first stage, which has bytes of its own; 0: none"},
        {"vectors", BSW_OPTION_CHOICE, &o->vectors, NULL, "float32", 0, 0, 0,
         "float32|float16|uint8|none", "raw vectors to refine with, on disk"},
        {"ranks", BSW_OPTION_COUNT, &o->ranks, "N", "1", 0, 1, 4096, NULL, "ranks of a search"},
        {"shards", BSW_OPTION_COUNT, &o->shards, "P", "0", 0, 0, BSW_MAX_SHARDS, NULL,
         "shards of the index; 0: as many as ranks"},
        {"k", BSW_OPTION_COUNT, &o->k, "K", "10", 0, 1, 1e6, NULL, "neighbours a query"},
        {"oversample", BSW_OPTION_NUMBER, &o->oversample, "X", "5", 0, 1, 10000, NULL,
         "candidates to refine, times k; 1 with --vectors none and codec raw"},
        {"query-bits", BSW_OPTION_COUNT, &o->query_bits, "BQ", NULL, 0, 1, BSW_MAX_QUERY_BITS, NULL,
         "bits a query component [6; rbe 3]"},
        {"batch", BSW_OPTION_COUNT, &o->batch, "N", "1000", 0, 1, 1e6, NULL, "queries at a time"},
        {"select", BSW_OPTION_CHOICE, &o->select, NULL, "threshold", 0, 0, 0, "threshold|queue",
         "queue: also what rbeGIR's selection will miss of the candidates"},
        {"items", BSW_OPTION_COUNT, &o->queue.items, "I", "256", 0, 1, BSW_QUEUE_MAX_ITEMS, NULL,
         "queue: rows that each of a block's 256 threads goes over"},
        {"queue-length", BSW_OPTION_COUNT, &o->queue.length, "Q", "1", 0, 1, BSW_QUEUE_MAX_LENGTH,
         NULL, "queue: best rows that a thread keeps"},
        {"target", BSW_OPTION_NUMBER, &o->target, "PERCENT", "99.9", 0, 0, 100, NULL,
         "queue: share of candidates to keep, for which I is sought"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {
        "plan", "memory, bytes a pass and misses of a cluster, before it is bought", options,
        sizeof options / sizeof options[0]};
    return bsw_command_parse(transport, &table, &o->common, argc, argv, done, err);
}

// ---- the index as encode would make it ----

// Bits go where the data has its energy; how many bytes that makes only depends on it where
// dimensions are no multiple of 32.
static enum bsw_status lay_out_saq(const struct plan_options *o, struct bsw_code_layout *out,
                                   struct bsw_error *err)
{
    double energies[BSW_SAQ_MAX_DIMS];
    uint32_t dims = (uint32_t)o->dims;
    if (dims > BSW_SAQ_MAX_DIMS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec saq takes up to %d dims", BSW_SAQ_MAX_DIMS);
    }
    if (o->segments) return bsw_code_layout_parse(o->segments, dims, out, err);
    for (uint32_t i = 0; i < dims; i++) energies[i] = pow(0.97, i);
    return bsw_allocate_bits(energies, dims, o->bits > 0 ? o->bits : 3, out, err);
}

static enum bsw_status lay_out_raw(const struct plan_options *o, struct bsw_code_layout *out,
                                   struct bsw_error *err)
{
    if (o->dims > BSW_RAW_MAX_DIMS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec raw takes up to %d dims", BSW_RAW_MAX_DIMS);
    }
    if (o->bits > 0 && o->bits != 8)
        return bsw_fail(err, BSW_ERROR_USAGE, "--bits %g: --codec raw keeps all 8", o->bits);
    return bsw_code_layout_append(out, (uint32_t)o->dims, 8, err);
}

// xfbq and rbe: the same whole bits in all dimensions of a code.
static enum bsw_status lay_out_whole(const struct plan_options *o, int is_rbe,
                                     struct bsw_code_layout *out, struct bsw_error *err)
{
    uint64_t dims = is_rbe ? o->code_dims : o->dims;
    double bits = o->bits > 0 ? o->bits : is_rbe ? 2 : 3;
    if (bits != floor(bits)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--bits %g: --codec %s takes whole bits", bits,
                        o->codec);
    }
    return bsw_code_layout_append(out, (uint32_t)dims, (uint32_t)bits, err);
}

// What rbe alone takes, and defaults that depend on the codec.
static enum bsw_status settle_codec(struct plan_job *job, struct bsw_error *err)
{
    struct plan_options *o = &job->options;
    BSW_TRY(bsw_codec_parse(o->codec, &job->manifest.codec, err));
    int is_rbe = job->manifest.codec == BSW_CODEC_RBE;
    if (o->query_bits == 0) o->query_bits = is_rbe ? 3 : 6;
    if (!is_rbe) {
        if (o->code_dims == 0) return BSW_OK;
        return bsw_fail(err, BSW_ERROR_USAGE, "--code-dims is for --codec rbe");
    }
    if (o->dims > BSW_RBE_MAX_ROW_DIMS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec rbe takes up to %d dims",
                        BSW_RBE_MAX_ROW_DIMS);
    }
    if (o->code_dims == 0) o->code_dims = 64;
    job->manifest.row_dims = (uint32_t)o->dims;
    return BSW_OK;
}

static enum bsw_status lay_out(struct plan_job *job, struct bsw_error *err)
{
    const struct plan_options *o = &job->options;
    struct bsw_manifest *manifest = &job->manifest;
    BSW_TRY(settle_codec(job, err));
    bsw_code_layout_init(&manifest->layout);
    if (o->segments && (manifest->codec != BSW_CODEC_SAQ || o->bits > 0)) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--segments is for --codec saq, and names the bits itself");
    }
    if (manifest->codec == BSW_CODEC_SAQ) {
        BSW_TRY(lay_out_saq(o, &manifest->layout, err));
        manifest->stage_dims = o->stage > 0 ? (uint32_t)o->stage : manifest->layout.dims;
    } else if (manifest->codec == BSW_CODEC_RAW) {
        return lay_out_raw(o, &manifest->layout, err);
    } else {
        BSW_TRY(lay_out_whole(o, manifest->codec == BSW_CODEC_RBE, &manifest->layout, err));
    }
    return bsw_code_layout_check(&manifest->layout, (uint32_t)o->query_bits, err);
}

static enum bsw_status cut_shards(struct plan_job *job, struct bsw_error *err)
{
    const struct plan_options *o = &job->options;
    struct bsw_manifest *manifest = &job->manifest;
    uint64_t shards = o->shards > 0 ? o->shards : o->ranks;
    if (shards > o->rows || shards > BSW_MAX_SHARDS ||
        (o->rows + shards - 1) / shards > UINT32_MAX) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%llu shards of %llu rows: 1 to %d shards of 1 to 2^32 - 1 rows each are "
                        "possible; --shards",
                        (unsigned long long)shards, (unsigned long long)o->rows, BSW_MAX_SHARDS);
    }
    manifest->num_rows = o->rows;
    manifest->num_shards = (uint32_t)shards;
    BSW_TRY(bsw_allocate_zero(&manifest->shards, shards, sizeof *manifest->shards, "shards", err));
    for (uint64_t i = 0; i < shards; i++) {
        manifest->shards[i].first_row = bsw_part_first(o->rows, i, shards);
        manifest->shards[i].num_rows =
            bsw_part_first(o->rows, i + 1, shards) - manifest->shards[i].first_row;
    }
    job->assignment = bsw_assignment_make((uint32_t)o->ranks, manifest->num_shards);
    return BSW_OK;
}

static void settle_candidates(struct plan_job *job)
{
    const struct plan_options *o = &job->options;
    int is_refined = strcmp(o->vectors, "none") != 0 && job->manifest.codec != BSW_CODEC_RAW;
    double wanted = is_refined ? ceil((double)o->k * o->oversample - 1e-9) : (double)o->k;
    job->keep = wanted < (double)o->rows ? (uint64_t)wanted : o->rows;
}

// ---- bytes ----

static size_t vector_bytes(const struct plan_options *o)
{
    static const enum bsw_vector_type types[] = {BSW_VECTOR_FLOAT32, BSW_VECTOR_FLOAT16,
                                                 BSW_VECTOR_UINT8};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(o->vectors, bsw_vector_type_name(types[i])) == 0)
            return (size_t)o->dims * bsw_vector_type_bytes(types[i]);
    }
    return 0;
}

static struct plan_bytes shard_bytes(const struct plan_job *job, uint32_t shard)
{
    struct bsw_shard_shape shape;
    size_t row_bytes = vector_bytes(&job->options);
    bsw_shard_shape_init(&shape, &job->manifest, shard);
    return (struct plan_bytes){
        .parts = bsw_resident_parts_of(&shape, bsw_manifest_stage(&job->manifest)),
        .codes_files = bsw_shard_codes_bytes(&shape),
        .vectors_files = row_bytes > 0 ? bsw_shard_vectors_bytes(&shape, row_bytes) : 0};
}

static void add_bytes(struct plan_bytes *sum, const struct plan_bytes *bytes)
{
    sum->parts.codes += bytes->parts.codes;
    sum->parts.scales += bytes->parts.scales;
    sum->parts.biases += bytes->parts.biases;
    sum->parts.offsets += bytes->parts.offsets;
    sum->parts.masks += bytes->parts.masks;
    sum->parts.row_digests += bytes->parts.row_digests;
    sum->parts.tails += bytes->parts.tails;
    sum->parts.most += bytes->parts.most;
    sum->codes_files += bytes->codes_files;
    sum->vectors_files += bytes->vectors_files;
}

// Shards follow each other on the ranks, so one pass over them visits rank after rank; further
// slices (replicas) have the same again.
static void count_bytes(struct plan_job *job)
{
    struct plan_bytes rank_bytes = {0};
    uint32_t num_shards = job->manifest.num_shards;
    for (uint32_t i = 0; i < num_shards; i++) {
        const struct plan_bytes bytes = shard_bytes(job, i);
        uint32_t rank = bsw_assignment_rank(&job->assignment, 0, i);
        if (i > 0 && rank != bsw_assignment_rank(&job->assignment, 0, i - 1))
            rank_bytes = (struct plan_bytes){0};
        add_bytes(&rank_bytes, &bytes);
        add_bytes(&job->index, &bytes);
        if (bsw_resident_bytes(&rank_bytes.parts) > bsw_resident_bytes(&job->most.parts))
            job->most = rank_bytes;
    }
    for (uint32_t slice = 0; slice < job->assignment.num_slices; slice++)
        add_bytes(&job->all, &job->index);
}

// Of one query as it travels to every rank: codes, scale, vector, or what raw has in their place.
static size_t query_bytes(const struct plan_job *job)
{
    const struct bsw_code_layout *layout = &job->manifest.layout;
    if (job->manifest.codec == BSW_CODEC_RAW) return layout->padded_dims + sizeof(int32_t);
    return bsw_layout_query_words(layout, (uint32_t)job->options.query_bits) * sizeof(uint32_t) +
           sizeof(float) + bsw_manifest_row_dims(&job->manifest) * sizeof(float);
}

// ---- misses ----

static int misses_wanted(const struct plan_options *o)
{
    return strcmp(o->select, "queue") == 0;
}

// Misses over all shards' threads as they are.
static double expected_misses(const struct plan_job *job, struct bsw_thread_class *classes,
                              const struct bsw_queue_options *queue, uint64_t *num_threads)
{
    size_t num = 0;
    *num_threads = 0;
    for (uint32_t i = 0; i < job->manifest.num_shards; i++) {
        struct bsw_thread_class own[3];
        size_t count = bsw_queue_classes(job->manifest.shards[i].num_rows, queue->items, own);
        for (size_t c = 0; c < count; c++) { // shards are nearly equal, and so are their classes
            size_t at = 0;
            while (at < num && classes[at].num_items != own[c].num_items) at++;
            if (at == num) classes[num++] = (struct bsw_thread_class){0, own[c].num_items};
            classes[at].num_threads += own[c].num_threads;
            *num_threads += own[c].num_threads;
        }
    }
    return bsw_expected_misses(classes, num, job->keep, queue->length);
}

// As if every thread had I rows; shards with fewer make threads of what they have.
static struct bsw_miss_setting even_setting(const struct plan_job *job)
{
    const struct bsw_manifest *manifest = &job->manifest;
    uint64_t fewest = manifest->num_rows / manifest->num_shards, threads = 0;
    struct bsw_miss_setting setting =
        bsw_miss_setting_of(fewest, job->options.queue.items, job->keep, job->options.queue.length);
    for (uint32_t i = 0; i < manifest->num_shards; i++)
        threads += manifest->shards[i].num_rows / setting.num_items;
    setting.num_threads = threads;
    return setting;
}

static enum bsw_status find_distribution(struct plan_job *job, struct bsw_error *err)
{
    struct plan_misses *misses = &job->misses;
    const struct bsw_miss_setting setting = even_setting(job);
    const struct bsw_thread_class even = {setting.num_threads, setting.num_items};
    // The few rows that whole threads leave out may be some of the best.
    if (setting.num_best > setting.num_threads * setting.num_items) return BSW_OK;
    double mean = bsw_expected_misses(&even, 1, setting.num_best, setting.queue_length);
    double wanted = mean + 8 * sqrt(mean) + 12;
    if (wanted > BSW_MISS_MAX_TERMS) return BSW_OK;
    misses->num_terms = (size_t)wanted;
    BSW_TRY(
        bsw_allocate(&misses->at_most, misses->num_terms, sizeof *misses->at_most, "misses", err));
    BSW_TRY(bsw_miss_probabilities(&setting, misses->num_terms, misses->at_most,
                                   &misses->is_simulated, err));
    for (size_t l = 1; l < misses->num_terms; l++) misses->at_most[l] += misses->at_most[l - 1];
    misses->has_distribution = 1;
    return BSW_OK;
}

static double kept_share(const struct plan_job *job, double expected)
{
    return 1 - expected / (double)job->keep;
}

static enum bsw_status plan_queue(struct plan_job *job, struct bsw_error *err)
{
    const struct plan_options *o = &job->options;
    struct plan_misses *misses = &job->misses;
    struct bsw_thread_class *classes;
    uint64_t threads;
    BSW_TRY(bsw_allocate(&classes, (size_t)3 * job->manifest.num_shards, sizeof *classes, "threads",
                         err));
    misses->num_best = job->keep;
    misses->expected = expected_misses(job, classes, &o->queue, &misses->threads);
    misses->kept = misses->threads * o->queue.length;
    if (misses->kept > o->rows) misses->kept = o->rows;
    for (uint64_t items = BSW_QUEUE_MAX_ITEMS; items > 0 && misses->largest_items == 0;
         items /= 2) {
        const struct bsw_queue_options queue = {items, o->queue.length};
        double expected = expected_misses(job, classes, &queue, &threads);
        if (100 * kept_share(job, expected) >= o->target) misses->largest_items = items;
    }
    bsw_free(&classes);
    if (job->keep > BSW_MISS_MAX_BEST) return BSW_OK;
    return find_distribution(job, err);
}

// ---- report ----

static void format_size(double bytes, char *text, size_t capacity)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 5; unit++) bytes /= 1024;
    snprintf(text, capacity, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

static void print_line(const char *name, double all, double most)
{
    char texts[2][32];
    format_size(all, texts[0], sizeof texts[0]);
    format_size(most, texts[1], sizeof texts[1]);
    printf("  %-22s %12s %12s\n", name, texts[0], texts[1]);
}

static void print_bytes(const struct plan_job *job)
{
    const struct bsw_resident_parts *all = &job->all.parts, *most = &job->most.parts;
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
    print_line(".codes files", (double)job->index.codes_files, (double)job->most.codes_files);
    if (job->index.vectors_files > 0)
        print_line("raw vectors", (double)job->index.vectors_files,
                   (double)job->most.vectors_files);
}

// The range of l where P(L <= l) rises from hardly anything to hardly less than 1.
static void print_distribution(const struct plan_misses *misses)
{
    size_t first = 0, last = 0;
    while (first + 1 < misses->num_terms && misses->at_most[first] < 0.001) first++;
    while (last + 1 < misses->num_terms && misses->at_most[last] < 0.99995) last++;
    size_t step = (last - first) / MOST_LINES + 1;
    printf("\n  misses at most   probability%s\n", misses->is_simulated ? " (simulated)" : "");
    for (size_t l = first; l <= last; l += step)
        printf("  %14zu   %9.3f %%\n", l, 100 * misses->at_most[l]);
}

static void print_queue(const struct plan_job *job)
{
    const struct plan_options *o = &job->options;
    const struct plan_misses *misses = &job->misses;
    printf("\nselect queue: %llu threads of %llu rows keep %llu each, %llu candidates a query\n",
           (unsigned long long)misses->threads, (unsigned long long)o->queue.items,
           (unsigned long long)o->queue.length, (unsigned long long)misses->kept);
    printf("of the %llu best %.4g are missed on average: %.4f %% kept\n",
           (unsigned long long)misses->num_best, misses->expected,
           100 * kept_share(job, misses->expected));
    if (misses->has_distribution)
        print_distribution(misses);
    else
        printf("(too many for a table of their probabilities)\n");
    if (misses->largest_items > 0)
        printf("\nlargest power of two that keeps %g %%: --items %llu\n", o->target,
               (unsigned long long)misses->largest_items);
}

static void print_table(const struct plan_job *job)
{
    const struct plan_options *o = &job->options;
    char segments[512], batch[32];
    bsw_code_layout_format(&job->manifest.layout, segments, sizeof segments);
    format_size((double)query_bytes(job) * (double)o->batch, batch, sizeof batch);
    printf("%llu rows x %llu dims, %s %s: %g bytes a row; %u shards on %llu ranks, each row on "
           "%u\n",
           (unsigned long long)o->rows, (unsigned long long)o->dims,
           bsw_codec_name(job->manifest.codec), segments, bsw_manifest_row_bytes(&job->manifest),
           job->manifest.num_shards, (unsigned long long)o->ranks, job->assignment.num_slices);
    printf("k %llu, L %llu; a batch of %llu queries: %s to every rank\n", (unsigned long long)o->k,
           (unsigned long long)job->keep, (unsigned long long)o->batch, batch);
    print_bytes(job);
    if (misses_wanted(o)) print_queue(job);
}

static json_t *describe_bytes(const struct plan_bytes *bytes)
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

static json_t *describe_queue(const struct plan_job *job)
{
    const struct plan_misses *misses = &job->misses;
    json_t *object = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I}", "items",
        (json_int_t)job->options.queue.items, "queue_length", (json_int_t)job->options.queue.length,
        "threads", (json_int_t)misses->threads, "candidates", (json_int_t)misses->kept, "best",
        (json_int_t)misses->num_best, "expected_misses", misses->expected, "kept_percent",
        100 * kept_share(job, misses->expected), "target_percent", job->options.target,
        "largest_items", (json_int_t)misses->largest_items);
    if (!misses->has_distribution) return object;
    json_t *at_most = json_array();
    for (size_t l = 0; l < misses->num_terms; l++)
        json_array_append_new(at_most, json_real(misses->at_most[l]));
    json_object_set_new(object, "is_simulated", json_boolean(misses->is_simulated));
    json_object_set_new(object, "probability_at_most", at_most);
    return object;
}

static void print_json(const struct plan_job *job)
{
    const struct plan_options *o = &job->options;
    char segments[512];
    bsw_code_layout_format(&job->manifest.layout, segments, sizeof segments);
    json_t *object =
        json_pack("{s:I, s:I, s:s, s:s, s:f, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:s}", "rows",
                  (json_int_t)o->rows, "dims", (json_int_t)o->dims, "codec",
                  bsw_codec_name(job->manifest.codec), "segments", segments, "bytes_per_vector",
                  bsw_manifest_row_bytes(&job->manifest), "ranks", (json_int_t)o->ranks, "shards",
                  (int)job->manifest.num_shards, "replicas", (int)job->assignment.num_slices, "k",
                  (json_int_t)o->k, "L", (json_int_t)job->keep, "batch", (json_int_t)o->batch,
                  "batch_bytes", (json_int_t)(query_bytes(job) * o->batch), "select", o->select);
    json_object_set_new(object, "index", describe_bytes(&job->index));
    json_object_set_new(object, "all_ranks", describe_bytes(&job->all));
    json_object_set_new(object, "rank", describe_bytes(&job->most));
    if (misses_wanted(o)) json_object_set_new(object, "queue", describe_queue(job));
    bsw_print_json(object);
}

// ---- the command ----

static enum bsw_status plan(struct plan_job *job, struct bsw_error *err)
{
    BSW_TRY(lay_out(job, err));
    BSW_TRY(cut_shards(job, err));
    settle_candidates(job);
    count_bytes(job);
    return misses_wanted(&job->options) ? plan_queue(job, err) : BSW_OK;
}

enum bsw_status bsw_command_plan(struct bsw_transport *transport, int argc, char **argv,
                                 struct bsw_error *err)
{
    struct plan_job job = {0};
    int done;
    BSW_TRY(parse(transport, &job.options, argc, argv, &done, err));
    if (done) return BSW_OK;
    enum bsw_status status = plan(&job, err);
    if (status == BSW_OK && transport->rank == 0) {
        if (job.options.common.json)
            print_json(&job);
        else if (!job.options.common.quiet)
            print_table(&job);
    }
    bsw_free(&job.misses.at_most);
    bsw_manifest_deinit(&job.manifest);
    return bsw_transport_agree(transport, status, err);
}
