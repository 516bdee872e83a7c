#include "coordinator/plan_index.h"

#include <math.h>
#include <string.h>

#include "common/memory.h"
#include "coordinator/code_training.h"
#include "coordinator/command.h"
#include "coordinator/query_source.h"
#include "coordinator/search_sizes.h"
#include "kernels/encode/raw_codes.h"

#define RBE_CODE_DIMS  64
#define RBE_QUERY_BITS 3 // planes of a query

// ---- the index as encode would make it ----

// Bits go where the data has its energy; how many bytes that makes only depends on it where
// dimensions are no multiple of 32.
static enum bsw_status lay_out_saq(const struct bsw_plan_settings *o, struct bsw_code_layout *out,
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

static enum bsw_status lay_out_raw(const struct bsw_plan_settings *o, struct bsw_code_layout *out,
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
static enum bsw_status lay_out_whole(const struct bsw_plan_settings *o, int is_rbe,
                                     struct bsw_code_layout *out, struct bsw_error *err)
{
    uint64_t code_dims = o->code_dims > 0 ? o->code_dims : RBE_CODE_DIMS;
    uint64_t dims = is_rbe ? code_dims : o->dims;
    double bits = o->bits > 0 ? o->bits : is_rbe ? 2 : 3;
    if (bits != floor(bits)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--bits %g: --codec %s takes whole bits", bits,
                        o->codec);
    }
    return bsw_code_layout_append(out, (uint32_t)dims, (uint32_t)bits, err);
}

// What rbe alone takes, and defaults that depend on the codec.
static enum bsw_status settle_codec(const struct bsw_plan_settings *o, struct bsw_plan_index *index,
                                    struct bsw_error *err)
{
    BSW_TRY(bsw_codec_parse(o->codec, &index->manifest.codec, err));
    int is_rbe = index->manifest.codec == BSW_CODEC_RBE;
    uint32_t usual_bits = is_rbe ? RBE_QUERY_BITS : BSW_SEARCH_QUERY_BITS;
    index->query_bits = o->query_bits > 0 ? (uint32_t)o->query_bits : usual_bits;
    if (!is_rbe) {
        if (o->code_dims == 0) return BSW_OK;
        return bsw_fail(err, BSW_ERROR_USAGE, "--code-dims is for --codec rbe");
    }
    if (o->dims > BSW_RBE_MAX_ROW_DIMS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--codec rbe takes up to %d dims",
                        BSW_RBE_MAX_ROW_DIMS);
    }
    index->manifest.row_dims = (uint32_t)o->dims;
    return BSW_OK;
}

static enum bsw_status lay_out(const struct bsw_plan_settings *o, struct bsw_plan_index *index,
                               struct bsw_error *err)
{
    struct bsw_manifest *manifest = &index->manifest;
    BSW_TRY(settle_codec(o, index, err));
    bsw_code_layout_init(&manifest->layout);
    if (o->segments && (manifest->codec != BSW_CODEC_SAQ || o->bits > 0)) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--segments is for --codec saq, and names the bits itself");
    }
    if (manifest->codec == BSW_CODEC_SAQ) {
        BSW_TRY(lay_out_saq(o, &manifest->layout, err));
        manifest->stage_dims = o->stage > 0 ? (uint32_t)o->stage : manifest->layout.dims;
    } else if (manifest->codec == BSW_CODEC_RAW) {
        index->query_bits = BSW_RAW_QUERY_BITS;
        return lay_out_raw(o, &manifest->layout, err);
    } else {
        BSW_TRY(lay_out_whole(o, manifest->codec == BSW_CODEC_RBE, &manifest->layout, err));
    }
    return bsw_code_layout_check(&manifest->layout, index->query_bits, err);
}

// A rank has a shard, or as many as it takes to have none of 2^32 rows.
static uint64_t usual_shards(uint64_t rows, uint64_t num_ranks)
{
    uint64_t least = (rows - 1) / UINT32_MAX + 1;
    return (least + num_ranks - 1) / num_ranks * num_ranks;
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
    index->assignment = bsw_assignment_make((uint32_t)num_ranks, manifest->num_shards);
    return BSW_OK;
}

static void settle_candidates(const struct bsw_plan_settings *o, struct bsw_plan_index *index)
{
    index->is_refined = strcmp(o->vectors, "none") != 0 && index->manifest.codec != BSW_CODEC_RAW;
    index->keep = bsw_search_keep(o->k, index->is_refined ? o->oversample : 1, o->rows);
}

// ---- bytes ----

static size_t vector_bytes(const struct bsw_plan_settings *o)
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
    sum->codes_files += bytes->codes_files;
    sum->vectors_files += bytes->vectors_files;
}

// Shards follow each other on the ranks, so one pass over them visits rank after rank; further
// slices (replicas) have the same again.
static void count_bytes(const struct bsw_plan_settings *settings, struct bsw_plan_index *index)
{
    struct bsw_plan_bytes rank_bytes = {0};
    const struct bsw_manifest *manifest = &index->manifest;
    size_t row_bytes = vector_bytes(settings);
    uint64_t rank_rows = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_plan_bytes bytes = shard_bytes(manifest, row_bytes, i);
        uint32_t rank = bsw_assignment_rank(&index->assignment, 0, i);
        if (i > 0 && rank != bsw_assignment_rank(&index->assignment, 0, i - 1)) {
            rank_bytes = (struct bsw_plan_bytes){0};
            rank_rows = 0;
        }
        add_bytes(&rank_bytes, &bytes);
        add_bytes(&index->index, &bytes);
        rank_rows += manifest->shards[i].num_rows;
        if (rank_rows > index->most_rows) index->most_rows = rank_rows;
        if (bsw_resident_bytes(&rank_bytes.parts) > bsw_resident_bytes(&index->most.parts))
            index->most = rank_bytes;
    }
    for (uint32_t slice = 0; slice < index->assignment.num_slices; slice++)
        add_bytes(&index->all, &index->index);
}

size_t bsw_plan_batch_bytes(const struct bsw_plan_index *index, uint64_t num_queries)
{
    return bsw_query_payload_bytes(&index->manifest, index->query_bits, (size_t)num_queries);
}

// ---- the whole ----

enum bsw_status bsw_plan_index_make(const struct bsw_plan_settings *settings, uint64_t num_ranks,
                                    struct bsw_plan_index *out, struct bsw_error *err)
{
    *out = (struct bsw_plan_index){0};
    BSW_TRY(lay_out(settings, out, err));
    BSW_TRY(cut_shards(settings, num_ranks, out, err));
    settle_candidates(settings, out);
    count_bytes(settings, out);
    return BSW_OK;
}

void bsw_plan_index_deinit(struct bsw_plan_index *index)
{
    bsw_manifest_deinit(&index->manifest);
}
