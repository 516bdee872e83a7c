// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan/plan_index.h"

#include <string.h>

#include "common/base/memory.h"
#include "common/files/list_order.h"
#include "coordinator/encode/encode_index.h"
#include "coordinator/job/command.h"
#include "coordinator/plan/plan_lists.h"
#include "coordinator/search/query_source.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/product_radii.h"
#include "shard/host/list_tables.h"
#include "shard/lists/coarse_search.h"

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
                                                 BSW_VECTOR_UINT8};
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
        bsw_metrics[manifest->metric].is_distance)
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
