// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan/plan_report.h"

#include <math.h>

#include "common/base/memory.h"
#include "common/base/miss_probability.h"
#include "kernels/device_scan/device_table_scan.h"
#include "shard/codecs/codec.h"

#define MOST_LINES 12 // of the table of misses

void bsw_plan_index_facts(struct bsw_facts *facts, const struct bsw_plan_settings *settings,
                          const struct bsw_plan_index *index, uint64_t num_ranks)
{
    const struct bsw_manifest *manifest = &index->manifest;
    uint64_t batch = settings->search.batch;
    char segments[512];
    bsw_codec_format_segments(manifest, segments, sizeof segments);
    bsw_fact_integer(facts, "rows", settings->rows, "%d rows");
    bsw_fact_integer(facts, "dims", settings->dims, " x %d dims");
    bsw_fact_text(facts, "codec", bsw_codec_name(manifest->codec), ", %s");
    bsw_fact_text(facts, "segments", segments, " %s");
    bsw_fact_real(facts, "bytes_per_vector", bsw_manifest_row_bytes(manifest), ": %g bytes a row");
    if (num_ranks > 0) {
        bsw_fact_integer(facts, "shards", manifest->num_shards, "; %d shards");
        bsw_fact_integer(facts, "ranks", num_ranks, " on %d ranks");
        bsw_fact_integer(facts, "replicas", index->assignment.num_slices, ", each row on %d");
    }
    bsw_fact_integer(facts, "k", settings->search.k, "\nk %d");
    bsw_fact_integer(facts, "L", index->search.keep, ", L %d");
    bsw_fact_integer(facts, "batch", batch, "; a batch of %d queries");
    bsw_fact_bytes(facts, "batch_bytes", bsw_plan_batch_bytes(index, batch),
                   ": %s to every rank\n");
}

// ---- bytes ----

enum { NUM_MEMORY = 12, NUM_BYTES = 17 }; // lines of memory come first, then those of disks

static const struct {
    const char *key, *name; // in JSON, in the tables
} byte_lines[NUM_BYTES] = {{"codes_bytes", "codes"},
                           {"scales_bytes", "scales"},
                           {"biases_bytes", "biases"},
                           {"offsets_bytes", "offsets"},
                           {"tails_bytes", "tails of the stage"},
                           {"masks_bytes", "masks"},
                           {"row_digests_bytes", "row digests"},
                           {"order_bytes", "order of rows in lists"},
                           {"centroids_bytes", "centroids of lists"},
                           {"radii_bytes", "radii of entries"},
                           {"resident_bytes", "in memory"},
                           {"scanned_bytes", "read in a pass"},
                           {"codes_files_bytes", ".codes files"},
                           {"lists_files_bytes", ".lists files"},
                           {"manifest_centroids_bytes", "manifest, centroids"},
                           {"manifest_radii_bytes", "manifest, radii"},
                           {"vectors_files_bytes", "raw vectors"}};

static uint64_t bytes_of_line(const struct bsw_plan_bytes *bytes, int line)
{
    const struct bsw_resident_parts *p = &bytes->parts;
    const uint64_t all[NUM_BYTES] = {p->codes,
                                     p->scales,
                                     p->biases,
                                     p->offsets,
                                     p->tails + p->most,
                                     p->masks,
                                     p->row_digests,
                                     p->order,
                                     bytes->centroids,
                                     bytes->radii,
                                     bsw_plan_memory_bytes(bytes),
                                     bsw_resident_scan_bytes(p),
                                     bytes->codes_files,
                                     bytes->lists_files,
                                     bytes->manifest_centroids,
                                     bytes->manifest_radii,
                                     bytes->vectors_files};
    return all[line];
}

static void say_bytes(struct bsw_facts *facts, int first, int last,
                      const struct bsw_plan_bytes *left, const struct bsw_plan_bytes *right)
{
    for (int i = first; i < last; i++) {
        char texts[2][32];
        uint64_t bytes = bytes_of_line(left, i);
        bsw_format_bytes((double)bytes, texts[0], sizeof texts[0]);
        bsw_format_bytes((double)bytes_of_line(right, i), texts[1], sizeof texts[1]);
        if (bytes > 0)
            bsw_facts_say(facts, "  %-22s %12s %12s\n", byte_lines[i].name, texts[0], texts[1]);
    }
}

static void tell_bytes(struct bsw_facts *facts, const char *name,
                       const struct bsw_plan_bytes *bytes)
{
    bsw_facts_open_object(facts, name);
    for (int i = 0; i < NUM_BYTES; i++)
        bsw_fact_bytes(facts, byte_lines[i].key, bytes_of_line(bytes, i), NULL);
    bsw_facts_close(facts);
}

void bsw_plan_bytes_facts(struct bsw_facts *facts, const struct bsw_plan_index *index)
{
    tell_bytes(facts, "index", &index->index);
    tell_bytes(facts, "all_ranks", &index->all);
    tell_bytes(facts, "rank", &index->most);
    bsw_facts_say(facts, "\n  %-22s %12s %12s\n", "memory", "all ranks", "a rank");
    say_bytes(facts, 0, NUM_MEMORY, &index->all, &index->most);
    bsw_facts_say(facts, "\n  %-22s %12s %12s\n", "disk", "index", "a rank");
    say_bytes(facts, NUM_MEMORY, NUM_BYTES, &index->index, &index->most);
}

// ---- misses ----

// People read the range of l where P(L <= l) rises from hardly anything to hardly less than 1.
static void tell_distribution(struct bsw_facts *facts, const struct bsw_plan_misses *misses)
{
    size_t first = 0, last = 0;
    while (first + 1 < misses->num_terms && misses->at_most[first] < 0.001) first++;
    while (last + 1 < misses->num_terms && misses->at_most[last] < 0.99995) last++;
    size_t step = (last - first) / MOST_LINES + 1;
    bsw_facts_say(facts, "\n  misses at most   probability");
    bsw_fact_flag(facts, "is_simulated", misses->is_simulated, " (simulated)");
    bsw_facts_say(facts, "\n");
    bsw_facts_open_list(facts, "probability_at_most");
    for (size_t l = 0; l < misses->num_terms; l++) {
        bsw_fact_real(facts, NULL, misses->at_most[l], NULL);
        if (l >= first && l <= last && (l - first) % step == 0)
            bsw_facts_say(facts, "  %14zu   %9.3f %%\n", l, 100 * misses->at_most[l]);
    }
    bsw_facts_close(facts);
}

void bsw_plan_misses_facts(struct bsw_facts *facts, const struct bsw_queue_options *queue,
                           double target, const struct bsw_plan_misses *misses)
{
    bsw_facts_open_object(facts, "queue");
    bsw_fact_integer(facts, "threads", misses->threads, "\nselect queue: %d threads");
    bsw_fact_integer(facts, "items", queue->items, " of %d rows");
    bsw_fact_integer(facts, "queue_length", queue->length, " keep %d each");
    bsw_fact_integer(facts, "candidates", misses->kept, ", %d candidates a query\n");
    bsw_fact_integer(facts, "best", misses->num_best, "of the %d best");
    bsw_fact_real(facts, "expected_misses", misses->expected, " %.4g are missed on average");
    bsw_fact_real(facts, "kept_percent", 100 * (1 - misses->expected / (double)misses->num_best),
                  ": %.4f %% kept\n");
    if (misses->num_terms > 0)
        tell_distribution(facts, misses);
    else
        bsw_facts_say(facts, "(too many for a table of their probabilities)\n");
    int is_found = misses->largest_items > 0;
    bsw_fact_real(facts, "target_percent", target,
                  is_found ? "\nlargest power of two that keeps %g %%" : NULL);
    bsw_fact_integer(facts, "largest_items", misses->largest_items,
                     is_found ? ": --items %d\n" : NULL);
    bsw_facts_close(facts);
}

// ---- tables on devices --------------------------------------------------------------------------

// CUDA C++ Programming Guide, "Compute Capabilities".
static const struct {
    const char *name;
    size_t block_bytes; // of shared memory that a block may have
    struct bsw_device_multiprocessor room;
} kinds[] = {{"8.6", (size_t)99 << 10, {(size_t)100 << 10, 1536}},
             {"9.0", (size_t)227 << 10, {(size_t)228 << 10, 2048}}};

void bsw_plan_device_tables_facts(struct bsw_facts *facts, const struct bsw_plan_index *index)
{
    const struct bsw_manifest *manifest = &index->manifest;
    if (!manifest->codec->has_tables) return;
    const struct bsw_product_book *book = &manifest->codec->table->product(manifest)->book;
    enum bsw_table_type type = index->most.radii > 0 ? BSW_TABLE_FLOAT32 : index->search.table;
    bsw_facts_open_list(facts, "device_tables");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct bsw_device_table_shape shape = bsw_device_table_shape_of(
            book->parts, book->bits, type, (uint32_t)index->search.batch, kinds[i].block_bytes);
        bsw_facts_open_object(facts, NULL);
        bsw_fact_text(facts, "capability", kinds[i].name, "  tables on a GPU of %s: ");
        bsw_fact_integer(facts, "queries", shape.queries, "%d a block, ");
        bsw_fact_bytes(facts, "shared_bytes", shape.shared_bytes, "%s of shared memory; ");
        bsw_fact_integer(facts, "blocks", bsw_device_table_blocks_of(&shape, &kinds[i].room),
                         "%d blocks at a time on a multiprocessor");
        bsw_fact_flag(facts, "is_sliced", !shape.is_whole,
                      ", made part by part for every 1024 rows");
        bsw_facts_say(facts, "\n");
        bsw_facts_close(facts);
    }
    bsw_facts_close(facts);
}

// ---- misses -------------------------------------------------------------------------------------

// Misses over all shards' threads as they are.
static double expected_misses(const struct bsw_plan_index *index, struct bsw_thread_class *classes,
                              const struct bsw_queue_options *queue, uint64_t *num_threads)
{
    size_t num = 0;
    *num_threads = 0;
    for (uint32_t i = 0; i < index->manifest.num_shards; i++) {
        struct bsw_thread_class own[3];
        size_t count = bsw_queue_classes(index->manifest.shards[i].num_rows, queue->items, own);
        for (size_t c = 0; c < count; c++) { // shards are nearly equal, and so are their classes
            size_t at = 0;
            while (at < num && classes[at].num_items != own[c].num_items) at++;
            if (at == num) classes[num++] = (struct bsw_thread_class){0, own[c].num_items};
            classes[at].num_threads += own[c].num_threads;
            *num_threads += own[c].num_threads;
        }
    }
    return bsw_expected_misses(classes, num, index->search.keep, queue->length);
}

// As if every thread had I rows; shards with fewer make threads of what they have.
static struct bsw_miss_setting even_setting(const struct bsw_plan_index *index,
                                            const struct bsw_queue_options *queue)
{
    const struct bsw_manifest *manifest = &index->manifest;
    uint64_t fewest = manifest->num_rows / manifest->num_shards, threads = 0;
    struct bsw_miss_setting setting =
        bsw_miss_setting_of(fewest, queue->items, index->search.keep, queue->length);
    for (uint32_t i = 0; i < manifest->num_shards; i++)
        threads += manifest->shards[i].num_rows / setting.num_items;
    setting.num_threads = threads;
    return setting;
}

static enum bsw_status find_distribution(const struct bsw_miss_setting *setting,
                                         struct bsw_plan_misses *misses, struct bsw_error *err)
{
    const struct bsw_thread_class even = {setting->num_threads, setting->num_items};
    // The few rows that whole threads leave out may be some of the best.
    if (setting->num_best > setting->num_threads * setting->num_items) return BSW_OK;
    double mean = bsw_expected_misses(&even, 1, setting->num_best, setting->queue_length);
    double wanted = mean + 8 * sqrt(mean) + 12;
    if (wanted > BSW_MISS_MAX_TERMS) return BSW_OK;
    misses->num_terms = (size_t)wanted;
    BSW_TRY(
        bsw_allocate(&misses->at_most, misses->num_terms, sizeof *misses->at_most, "misses", err));
    BSW_TRY(bsw_miss_probabilities(setting, misses->num_terms, misses->at_most,
                                   &misses->is_simulated, err));
    for (size_t l = 1; l < misses->num_terms; l++) misses->at_most[l] += misses->at_most[l - 1];
    return BSW_OK;
}

static uint64_t largest_items_for(const struct bsw_plan_index *index,
                                  struct bsw_thread_class *classes, uint64_t length, double target)
{
    uint64_t threads;
    for (uint64_t items = BSW_QUEUE_MAX_ITEMS; items > 0; items /= 2) {
        const struct bsw_queue_options queue = {items, length};
        double expected = expected_misses(index, classes, &queue, &threads);
        if (100 * (1 - expected / (double)index->search.keep) >= target) return items;
    }
    return 0;
}

enum bsw_status bsw_plan_misses_find(const struct bsw_plan_index *index,
                                     const struct bsw_queue_options *queue, double target,
                                     struct bsw_plan_misses *out, struct bsw_error *err)
{
    struct bsw_thread_class *classes;
    *out = (struct bsw_plan_misses){.num_best = index->search.keep};
    BSW_TRY(bsw_allocate(&classes, (size_t)3 * index->manifest.num_shards, sizeof *classes,
                         "threads", err));
    out->expected = expected_misses(index, classes, queue, &out->threads);
    out->kept = out->threads * queue->length;
    if (out->kept > index->manifest.num_rows) out->kept = index->manifest.num_rows;
    out->largest_items = largest_items_for(index, classes, queue->length, target);
    bsw_free(&classes);
    if (index->search.keep > BSW_MISS_MAX_BEST) return BSW_OK;
    const struct bsw_miss_setting setting = even_setting(index, queue);
    return find_distribution(&setting, out, err);
}

void bsw_plan_misses_deinit(struct bsw_plan_misses *misses)
{
    bsw_free(&misses->at_most);
}
