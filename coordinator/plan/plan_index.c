// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan/plan_index.h"

#include <math.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/files/list_order.h"
#include "coordinator/encode/encode_index.h"
#include "coordinator/job/command.h"
#include "coordinator/search/query_source.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/product_radii.h"
#include "shard/host/list_tables.h"
#include "shard/lists/coarse_search.h"
#include "shard/lists/list_training.h"

// ---- the index as encode would make it ----

static enum bsw_status lay_out(const struct bsw_plan_settings *o, struct bsw_plan_index *index,
                               struct bsw_error *err)
{
    struct bsw_codec_forecast forecast = {.dims = o->dims,
                                          .code_dims = o->code_dims,
                                          .stage = o->stage,
                                          .bits = o->bits,
                                          .segments = o->segments,
                                          .parts = o->parts,
                                          .has_radii = o->has_radii,
                                          .query_bits = (uint32_t)o->search.query_bits};
    BSW_TRY(bsw_codec_parse(o->codec, &index->manifest.codec, err));
    return bsw_codec_forecast(&forecast, &index->manifest, err);
}

// A rank has a shard, or as many as it takes to have none of 2^32 rows.
static uint64_t usual_shards(uint64_t rows, uint64_t num_ranks)
{
    uint64_t least = (rows - 1) / UINT32_MAX + 1;
    return (least + num_ranks - 1) / num_ranks * num_ranks;
}

// As many lists as encode would make, and what places of rows they take.
static enum bsw_status place_rows(const struct bsw_plan_settings *o, struct bsw_manifest *manifest,
                                  struct bsw_error *err)
{
    BSW_TRY(bsw_encode_settle_lists(o->lists, "the index", o->rows, (uint32_t)o->dims,
                                    &manifest->lists.count, err));
    manifest->lists.is_residual =
        manifest->lists.count > 0 && manifest->codec->table->always_residuals;
    manifest->lists.has_ordered_vectors = manifest->lists.count > 0; // of a copy
    for (uint32_t s = 0; s < manifest->num_shards; s++) {
        struct bsw_shard_entry *entry = &manifest->shards[s];
        entry->num_places = bsw_plan_places(entry->num_rows, manifest->lists.count);
        if (entry->num_places >= UINT32_MAX)
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "%llu rows in %u lists take more than 2^32 - 1 places in a shard: more "
                            "--shards",
                            (unsigned long long)entry->num_rows, manifest->lists.count);
    }
    return BSW_OK;
}

static enum bsw_status cut_shards(const struct bsw_plan_settings *o, uint64_t num_ranks,
                                  struct bsw_plan_index *index, struct bsw_error *err)
{
    struct bsw_manifest *manifest = &index->manifest;
    uint64_t shards = o->shards > 0 ? o->shards : usual_shards(o->rows, num_ranks);
    if (shards > o->rows || shards > BSW_MAX_SHARDS ||
        (o->rows + shards - 1) / shards > UINT32_MAX) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%llu shards of %llu rows: 1 to %d shards of 1 to 2^32 - 1 rows each are "
                        "possible; --shards",
                        (unsigned long long)shards, (unsigned long long)o->rows, BSW_MAX_SHARDS);
    }
    manifest->num_rows = o->rows;
    BSW_TRY(bsw_manifest_cut_shards(manifest, shards, err));
    BSW_TRY(place_rows(o, manifest, err));
    return bsw_assignment_make((uint32_t)num_ranks, manifest->num_shards, &index->assignment, err);
}

// Some codecs have query bits of their own.
static enum bsw_status settle_search(const struct bsw_plan_settings *o, uint64_t num_ranks,
                                     struct bsw_plan_index *index, struct bsw_error *err)
{
    struct bsw_search_request request = o->search;
    if (strcmp(o->vectors, "none") == 0) request.refine = BSW_REFINE_NONE;
    if (index->manifest.codec->table->settle_query_bits) request.query_bits = 0;
    return bsw_search_settle(&request, &index->manifest, "the index", (int)num_ranks,
                             &index->search, err);
}

// ---- bytes ----

size_t bsw_plan_vector_bytes(const struct bsw_plan_settings *o)
{
    static const enum bsw_vector_type types[] = {BSW_VECTOR_FLOAT32, BSW_VECTOR_FLOAT16,
                                                 BSW_VECTOR_UINT8, BSW_VECTOR_INT8};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(o->vectors, bsw_vector_type_name(types[i])) == 0)
            return (size_t)o->dims * bsw_vector_type_bytes(types[i]);
    }
    return 0;
}

static struct bsw_plan_bytes shard_bytes(const struct bsw_manifest *manifest, size_t row_bytes,
                                         uint32_t shard)
{
    struct bsw_shard_shape shape;
    bsw_shard_shape_init(&shape, manifest, shard);
    return (struct bsw_plan_bytes){
        .parts = bsw_resident_parts_of(&shape, bsw_manifest_stage(manifest)),
        .codes_files = bsw_shard_codes_bytes(&shape),
        .lists_files =
            shape.num_lists > 0 ? bsw_list_order_file_bytes(shape.num_lists, shape.num_places) : 0,
        .vectors_files = row_bytes > 0 ? bsw_shard_vectors_bytes(&shape, row_bytes) : 0};
}

static void add_bytes(struct bsw_plan_bytes *sum, const struct bsw_plan_bytes *bytes)
{
    sum->parts.codes += bytes->parts.codes;
    sum->parts.scales += bytes->parts.scales;
    sum->parts.biases += bytes->parts.biases;
    sum->parts.offsets += bytes->parts.offsets;
    sum->parts.masks += bytes->parts.masks;
    sum->parts.row_digests += bytes->parts.row_digests;
    sum->parts.tails += bytes->parts.tails;
    sum->parts.most += bytes->parts.most;
    sum->parts.order += bytes->parts.order;
    sum->codes_files += bytes->codes_files;
    sum->vectors_files += bytes->vectors_files;
    sum->lists_files += bytes->lists_files;
}

// Density maps, and in memory the radii of their cells.
static void count_radii(struct bsw_plan_index *index)
{
    uint64_t parts = index->manifest.codec->table->product(&index->manifest)->book.parts;
    index->index.manifest_radii = bsw_product_radii_bytes(parts, 1);
    index->most.radii = bsw_product_radii_bytes(parts, 0);
    index->all.radii = index->assignment.num_ranks * index->most.radii;
}

// Shards follow each other on the ranks, so one pass over them visits rank after rank; further
// slices (replicas) have the same again.
static void count_bytes(const struct bsw_plan_settings *settings, struct bsw_plan_index *index)
{
    struct bsw_plan_bytes rank_bytes = {0};
    const struct bsw_manifest *manifest = &index->manifest;
    size_t row_bytes = bsw_plan_vector_bytes(settings);
    uint64_t rank_rows = 0, rank_terms = 0, most_terms = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_plan_bytes bytes = shard_bytes(manifest, row_bytes, i);
        uint32_t rank = bsw_assignment_rank(&index->assignment, 0, i);
        if (i > 0 && rank != bsw_assignment_rank(&index->assignment, 0, i - 1)) {
            rank_bytes = (struct bsw_plan_bytes){0};
            rank_rows = rank_terms = 0;
        }
        add_bytes(&rank_bytes, &bytes);
        add_bytes(&index->index, &bytes);
        rank_rows += manifest->shards[i].num_rows;
        rank_terms = bsw_list_table_rows_add(rank_terms, 8 * (uint64_t)bytes.parts.masks,
                                             BSW_LIST_TABLE_BYTES); // places: a bit each of masks
        if (rank_rows > index->most_rows) index->most_rows = rank_rows;
        if (bsw_resident_bytes(&rank_bytes.parts) > bsw_resident_bytes(&index->most.parts)) {
            index->most = rank_bytes;
            most_terms = rank_terms;
        }
    }
    for (uint32_t slice = 0; slice < index->assignment.num_slices; slice++)
        add_bytes(&index->all, &index->index);
    if (settings->has_radii) count_radii(index);
    if (manifest->lists.count == 0) return;
    index->index.manifest_centroids =
        manifest->lists.count * (uint64_t)settings->dims * sizeof(float);
    index->most.centroids = bsw_coarse_search_bytes(manifest) + index->index.manifest_centroids;
    if (manifest->codec->has_tables && manifest->lists.is_residual &&
        bsw_has_row_norms(manifest->metric))
        index->most.centroids +=
            most_terms + bsw_list_table_lists_bytes(manifest->codec->table->product(manifest),
                                                    manifest->lists.count);
    index->all.centroids = index->assignment.num_ranks * index->most.centroids;
}

size_t bsw_plan_batch_bytes(const struct bsw_plan_index *index, uint64_t num_queries)
{
    return bsw_query_payload_bytes(&index->manifest, index->search.query_bits, (size_t)num_queries);
}

// ---- the whole ----

enum bsw_status bsw_plan_index_make(const struct bsw_plan_settings *settings, uint64_t num_ranks,
                                    struct bsw_plan_index *out, struct bsw_error *err)
{
    *out = (struct bsw_plan_index){0};
    BSW_TRY(lay_out(settings, out, err));
    BSW_TRY(cut_shards(settings, num_ranks, out, err));
    BSW_TRY(settle_search(settings, num_ranks, out, err));
    count_bytes(settings, out);
    return BSW_OK;
}

void bsw_plan_index_deinit(struct bsw_plan_index *index)
{
    bsw_assignment_deinit(&index->assignment);
    bsw_manifest_deinit(&index->manifest);
}

// ---- places of lists ----

enum { SHAPE = 5 };

// Bundles of a list whose average length is `mean` rows.
static double expected_bundles(double mean)
{
    if (mean > 1000) return mean / BSW_BUNDLE_ROWS + 0.5;
    double chance = 1, share = mean / (SHAPE + mean), sum = 0, bundles = 0;
    for (int i = 0; i < SHAPE; i++) chance *= 1 - share;
    // chance: of n rows
    for (size_t n = 0; sum < 1 - 1e-9 && n < 64 * mean + 256; n++) {
        sum += chance;
        bundles += chance * (double)bsw_num_bundles(n);
        chance *= (double)(n + SHAPE) / (double)(n + 1) * share;
    }
    return bundles;
}

uint64_t bsw_plan_places(uint64_t num_rows, uint32_t num_lists)
{
    if (num_lists == 0) return 0;
    double bundles = num_lists * expected_bundles((double)num_rows / num_lists);
    uint64_t least = bsw_num_bundles((size_t)num_rows), expected = (uint64_t)(bundles + 0.5);
    return (expected > least ? expected : least) * BSW_BUNDLE_ROWS;
}

// ---- making ----

static uint64_t orders_bytes(const struct bsw_manifest *manifest)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < manifest->num_shards; s++)
        bytes += bsw_list_order_memory_bytes(manifest->lists.count, manifest->shards[s].num_rows,
                                             manifest->shards[s].num_places);
    return bytes;
}

// Multiply-adds and bytes of a training, as list_training.h has them.
static double training_products(double lists, double sample, double dims)
{
    double cells = floor(sqrt(lists)), few = cells * BSW_CELL_SAMPLE_ROWS;
    if (lists <= BSW_FLAT_LISTS) return BSW_LIST_ROUNDS * sample * lists * dims;
    if (few > sample) few = sample;
    return (BSW_LIST_ROUNDS * (few * cells + sample * lists / cells) + sample * cells) * dims;
}

static uint64_t training_bytes(uint64_t lists, uint64_t sample, uint64_t dims, uint64_t row_bytes,
                               uint64_t num_ranks)
{
    uint64_t most = lists > BSW_FLAT_LISTS ? (uint64_t)sqrt((double)lists) : lists;
    return (sample / num_ranks + 1) * (row_bytes + (most < lists ? 36 : 28)) + most * dims * 22;
}

void bsw_plan_lists_make(const struct bsw_plan_settings *settings,
                         const struct bsw_plan_index *index, uint64_t num_ranks, uint64_t threads,
                         double rate, struct bsw_plan_lists *out)
{
    uint64_t count = index->manifest.lists.count, rows = settings->rows,
             sample = count * BSW_LIST_SAMPLE_ROWS, dims = settings->dims;
    if (sample > rows) sample = rows;
    size_t row_bytes = bsw_plan_vector_bytes(settings);
    if (row_bytes == 0) row_bytes = dims * sizeof(float);
    double a_row = (double)count * (double)dims, a_second = rate * (double)(num_ranks * threads);
    *out = (struct bsw_plan_lists){
        .count = (uint32_t)count,
        .rows_a_list = (double)rows / (double)count,
        .sample_rows = sample,
        .sample_bytes = training_bytes(count, sample, dims, row_bytes, num_ranks),
        .rows_bytes = rows * sizeof(uint32_t),
        .orders_bytes = orders_bytes(&index->manifest),
        .rounds = BSW_LIST_ROUNDS,
        .training_products = training_products((double)count, (double)sample, (double)dims),
        .assigning_products = a_row * (double)rows,
        .rate = rate,
        .ranks = num_ranks,
        .threads = threads};
    out->training_seconds = out->training_products / a_second;
    out->assigning_seconds = out->assigning_products / a_second;
}

// ---- what is told ----

static void format_seconds(double seconds, char *text, size_t capacity)
{
    if (seconds < 120)
        snprintf(text, capacity, "%.3g s", seconds);
    else if (seconds < 7200)
        snprintf(text, capacity, "%.3g min", seconds / 60);
    else if (seconds < 172800)
        snprintf(text, capacity, "%.3g h", seconds / 3600);
    else
        snprintf(text, capacity, "%.4g days", seconds / 86400);
}

static void tell_step(struct bsw_facts *facts, const char *name, const char *products_name,
                      double products, const char *seconds_name, double seconds)
{
    char text[32];
    format_seconds(seconds, text, sizeof text);
    bsw_facts_say(facts, "  %-22s", name);
    bsw_fact_real(facts, products_name, products, " %12.3g");
    bsw_fact_real(facts, seconds_name, seconds, NULL);
    bsw_facts_say(facts, " %12s\n", text);
}

void bsw_plan_lists_facts(struct bsw_facts *facts, const struct bsw_plan_lists *lists)
{
    bsw_facts_open_object(facts, "lists");
    bsw_fact_integer(facts, "count", lists->count, "\n%d lists");
    bsw_fact_real(facts, "rows_a_list", lists->rows_a_list, " of %.4g rows on average");
    bsw_fact_integer(facts, "sample_rows", lists->sample_rows,
                     "; a sample of %d rows to make them");
    bsw_facts_say(facts, "\n\n  %-22s %12s\n", "encode, lists", "a rank");
    bsw_fact_bytes(facts, "sample_bytes", lists->sample_bytes, "  sample                 %12s\n");
    bsw_fact_bytes(facts, "rows_bytes", lists->rows_bytes, "  the list of each row   %12s\n");
    bsw_fact_bytes(facts, "orders_bytes", lists->orders_bytes, "  orders, on rank 0      %12s\n");
    bsw_facts_say(facts, "\n  %-22s %12s %12s\n", "", "products", "time");
    bsw_fact_integer(facts, "rounds", lists->rounds, NULL);
    tell_step(facts, "training, all rounds", "training_products", lists->training_products,
              "training_seconds", lists->training_seconds);
    tell_step(facts, "lists of all rows", "assigning_products", lists->assigning_products,
              "assigning_seconds", lists->assigning_seconds);
    bsw_fact_real(facts, "products_per_second", lists->rate,
                  "a model: %.4g multiply-adds of bytes a second and thread");
    bsw_fact_integer(facts, "ranks", lists->ranks, ", %d ranks");
    bsw_fact_integer(facts, "threads", lists->threads,
                     " x %d threads (--list-rate, "
                     "--rank-threads)\n");
    bsw_facts_close(facts);
}
