// SPDX-License-Identifier: Apache-2.0
// A small index made serially, step by step as the encode command does, and its codes read back as
// plain integers by the formula of code_layout.h alone.
#ifndef BITSWEEP_TESTS_UNIT_SMALL_INDEX_H
#define BITSWEEP_TESTS_UNIT_SMALL_INDEX_H

#include <stdio.h>
#include <string.h>

#include "unit_test.h"

#include "common/base/cpu_level.h"
#include "common/files/shard_file.h"
#include "kernels/encode/prepare_rows.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/codec_rbe.h"
#include "shard/codecs/codec_saq.h"
#include "shard/codecs/query_codes.h"
#include "shard/codecs/sample.h"
#include "shard/codecs/saq_training.h"
#include "shard/codecs/shard_encode.h"

// Writes rows as a .fbin file (uint32 count, uint32 dims, floats).
static inline void write_fbin(const char *path, const float *rows, uint32_t num_rows, uint32_t dims)
{
    const uint32_t head[2] = {num_rows, dims};
    size_t count = (size_t)num_rows * dims;
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(head, sizeof head, 1, file) != 1 ||
        fwrite(rows, sizeof *rows, count, file) != count || fclose(file) != 0)
        abort();
}

// ---- making an index ----

struct small_index {
    const char *source;           // a file or synth:...
    uint64_t first_row, last_row; // 0, 0: all
    const struct bsw_codec *codec;
    enum bsw_metric metric;
    double bits;          // xfbq, and saq with segments "auto"; not raw
    const char *segments; // saq: NULL is "auto"
    const char *rotation; // xfbq: NULL is "none"
    int random_axes;
    uint64_t seed;
    uint32_t num_shards; // 0 is 1
    int copies_vectors, drops_bad_rows;
};

// Coders of the last index of codec rbe.
static struct bsw_rbe_coders *small_coders;

// A model as training begins with, 20 components in 3 and 2 planes.
static inline void make_small_model(uint32_t dims, struct bsw_manifest *manifest)
{
    struct bsw_rbe_model model;
    struct bsw_error err;
    memset(&model, 0, sizeof model);
    model.metric = BSW_METRIC_COSINE;
    for (uint32_t i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        struct bsw_rbe_side *side = &model.sides[i];
        side->shape = (struct bsw_rbe_shape){dims, 20, 2 - i, 0, 1};
        side->scale = 1.5f;
        assert_ok(bsw_rbe_side_allocate(side, &err), &err);
        memset(side->mean, 0, dims * sizeof *side->mean);
        bsw_rbe_initialize(&side->shape, i, side->parameters);
    }
    bsw_rbe_coders_destroy(&small_coders);
    assert_ok(bsw_rbe_coders_create(&model, "model", bsw_cpu_level_detect(), &small_coders, &err),
              &err);
    assert_ok(bsw_rbe_describe(small_coders, manifest, &err), &err);
}

static inline void train_small_index(const struct small_index *what, const bsw_vectors *vectors,
                                     struct bsw_manifest *manifest)
{
    struct bsw_sample sample;
    struct bsw_error err;
    uint32_t dims = bsw_vectors_dims(vectors);
    struct bsw_codec_settings settings;
    memset(&settings, 0, sizeof settings);
    if (what->codec == &bsw_codec_rbe) {
        make_small_model(dims, manifest);
        return;
    }
    assert_ok(bsw_sample_create(vectors, what->metric, bsw_cpu_level_detect(), &sample, &err),
              &err);
    if (what->codec == &bsw_codec_saq) {
        const struct bsw_saq_training training = {
            what->bits, what->segments ? what->segments : "auto", what->random_axes, what->seed, 0};
        assert_ok(bsw_train_saq_frame(&sample, &training, manifest, &err), &err);
        assert_ok(bsw_train_saq_exponents(&sample, manifest, &err), &err);
    } else {
        int has_own = what->codec->table->fixed_bits > 0 || what->codec->table->has_parts;
        settings.bits = has_own ? 0 : what->bits;
        if (what->codec == &bsw_codec_xfbq)
            settings.rotation = what->rotation ? what->rotation : "none";
        assert_ok(what->codec->table->check_settings(&settings, &err), &err);
        assert_ok(what->codec->table->train(&settings, dims, &sample, NULL, manifest, &err), &err);
    }
    bsw_sample_deinit(&sample);
}

static inline void describe_small_index(const struct small_index *what, const bsw_vectors *vectors,
                                        const char *folder, struct bsw_manifest *manifest)
{
    struct bsw_error err;
    uint64_t num_shards = what->num_shards ? what->num_shards : 1;
    memset(manifest, 0, sizeof *manifest);
    manifest->codec = what->codec;
    manifest->metric = what->metric;
    manifest->first_row = bsw_vectors_first_row(vectors);
    manifest->num_rows = bsw_vectors_num_rows(vectors);
    manifest->source_type = bsw_vectors_type(vectors);
    manifest->source_rows = bsw_vectors_source_rows(vectors);
    manifest->source_file_bytes = bsw_vectors_file_bytes(vectors);
    manifest->source_is_copied = what->copies_vectors;
    assert_ok(bsw_source_relative(what->source, folder, manifest->source_path, &err), &err);
    train_small_index(what, vectors, manifest);
    manifest->num_shards = (uint32_t)num_shards;
    manifest->shards =
        (struct bsw_shard_entry *)allocate_or_fail(num_shards, sizeof *manifest->shards);
    for (uint64_t i = 0; i < num_shards; i++) {
        uint64_t first = manifest->num_rows * i / num_shards;
        manifest->shards[i].first_row = manifest->first_row + first;
        manifest->shards[i].num_rows = manifest->num_rows * (i + 1) / num_shards - first;
    }
}

// Encodes the blocks of a shard into its files, which stay without header, footer and name.
static inline void encode_small_shard(const struct small_index *what, bsw_block_encoder *encoder,
                                      const char *folder, uint32_t shard,
                                      struct bsw_manifest *manifest, uint64_t *digests)
{
    struct bsw_error err;
    struct bsw_shard_writer writer;
    struct bsw_shard_entry *entry = &manifest->shards[shard];
    bsw_shard_writer_init(&writer, manifest, folder, shard);
    assert_ok(bsw_shard_writer_create(&writer, &err), &err);
    assert_ok(bsw_shard_writer_open(&writer, &err), &err);
    for (uint32_t block = 0; block < writer.shape.num_blocks; block++) {
        struct bsw_block_result result;
        assert_ok(bsw_block_encode(encoder, &writer.shape, block, NULL, what->drops_bad_rows,
                                   &writer, &result, &err),
                  &err);
        assert_ok(bsw_shard_writer_put_block(&writer, block, result.bytes, &err), &err);
        digests[block] = result.digest;
        manifest->source_digest += result.source_digest;
        entry->dropped_rows += result.dropped_rows;
    }
    assert_ok(bsw_shard_writer_close(&writer, &err), &err);
    manifest->dropped_rows += entry->dropped_rows;
    entry->codes_bytes = bsw_shard_codes_bytes(&writer.shape);
    if (what->copies_vectors)
        entry->vectors_bytes = bsw_shard_vectors_bytes(&writer.shape, writer.row_bytes);
}

static inline void seal_small_shard(const char *folder, uint32_t shard,
                                    struct bsw_manifest *manifest, const uint64_t *digests)
{
    struct bsw_error err;
    struct bsw_shard_writer writer;
    bsw_shard_writer_init(&writer, manifest, folder, shard);
    assert_ok(bsw_shard_writer_seal(&writer, digests, &manifest->shards[shard].codes_digest, &err),
              &err);
    assert_ok(bsw_shard_writer_name(&writer, &err), &err);
}

// Makes the index in an existing folder, whose files it replaces; bsw_manifest_deinit frees.
static inline void make_small_index(const struct small_index *what, const char *folder,
                                    struct bsw_manifest *manifest)
{
    enum { MAX_BLOCKS = 64 }; // a shard
    struct bsw_error err;
    struct bsw_row_range range = BSW_ALL_ROWS;
    bsw_vectors *vectors;
    bsw_block_encoder *encoder;
    if (what->last_row > 0) {
        range.first = what->first_row;
        range.last = what->last_row;
    }
    assert_ok(bsw_vectors_open(what->source, range, &vectors, &err), &err);
    describe_small_index(what, vectors, folder, manifest);
    uint64_t *digests =
        (uint64_t *)allocate_or_fail((size_t)manifest->num_shards * MAX_BLOCKS, sizeof *digests);
    assert_ok(bsw_block_encoder_create(manifest, vectors, bsw_cpu_level_detect(), &encoder, &err),
              &err);
    for (uint32_t shard = 0; shard < manifest->num_shards; shard++) {
        struct bsw_shard_shape shape;
        bsw_shard_shape_init(&shape, manifest, shard);
        assert_true(shape.num_blocks <= MAX_BLOCKS);
        encode_small_shard(what, encoder, folder, shard, manifest, digests + shard * MAX_BLOCKS);
    }
    assert_ok(bsw_manifest_build_digest(manifest, &manifest->build_digest, &err), &err);
    for (uint32_t shard = 0; shard < manifest->num_shards; shard++)
        seal_small_shard(folder, shard, manifest, digests + shard * MAX_BLOCKS);
    assert_ok(bsw_manifest_write(manifest, folder, &err), &err);
    bsw_block_encoder_destroy(&encoder);
    bsw_vectors_close(&vectors);
    bsw_free(&digests);
}

// An index to search in: 600 rows of 16 dims, 3 shards.
static inline void write_search_index(const char *folder)
{
    const struct small_index what = {.source = "synth:count=600,dims=16",
                                     .codec = &bsw_codec_xfbq,
                                     .metric = BSW_METRIC_COSINE,
                                     .bits = 2,
                                     .num_shards = 3};
    struct bsw_manifest manifest;
    make_small_index(&what, folder, &manifest);
    bsw_manifest_deinit(&manifest);
}

// ---- codes as plain integers ----

// What one shard file of planes holds, row by row.
struct plain_shard {
    uint64_t first_row; // id
    size_t num_rows;
    uint32_t dims;
    int16_t *codes; // [num_rows][dims]: c, segments without padding one after another
    uint16_t *scales, *tails;
    float *biases;
    unsigned char *is_present; // 0: dropped
};

// The odd number of a component whose planes are `stride` words apart.
static inline int read_component(const uint32_t *planes, uint32_t bits, size_t stride, unsigned bit)
{
    int u = 0;
    for (uint32_t p = 0; p < bits; p++) u = 2 * u + (int)(planes[p * stride] >> bit & 1);
    return (1 << bits) - 1 - 2 * u;
}

static inline void read_plain_row(const struct bsw_shard_shape *shape,
                                  const struct bsw_code_arrays *arrays, size_t place,
                                  struct plain_shard *out, size_t row)
{
    int16_t *codes = out->codes + row * out->dims;
    size_t bundle = place / 32, lane = place % 32;
    for (uint32_t s = 0; s < shape->layout.num_segments; s++) {
        const struct bsw_segment *segment = &shape->layout.segments[s];
        const uint32_t *planes =
            arrays->planes[s] + bundle * segment->bits * segment->words * 32 + lane;
        for (uint32_t i = 0; i < segment->dims; i++) {
            *codes++ = (int16_t)read_component(planes + i / 32 * 32, segment->bits,
                                               (size_t)segment->words * 32, i % 32);
        }
    }
    out->is_present[row] = arrays->masks[bundle] >> lane & 1;
    if (!shape->has_affine) return;
    out->scales[row] = arrays->scales[place];
    out->tails[row] = arrays->tails[place];
    out->biases[row] = arrays->biases ? arrays->biases[place] : 0;
}

static inline void read_plain_shard(const struct bsw_manifest *manifest, const char *folder,
                                    uint32_t shard, struct plain_shard *out)
{
    struct bsw_error err;
    struct bsw_shard_file file;
    assert_ok(bsw_shard_file_open(manifest, folder, shard, &file, &err), &err);
    size_t num_rows = (size_t)file.shape.num_rows, row = 0;
    uint32_t dims = manifest->layout.dims;
    memset(out, 0, sizeof *out);
    out->first_row = file.shape.first_row;
    out->num_rows = num_rows;
    out->dims = dims;
    out->codes = (int16_t *)allocate_or_fail(num_rows * dims, sizeof *out->codes);
    out->scales = (uint16_t *)allocate_or_fail(num_rows, sizeof *out->scales);
    out->tails = (uint16_t *)allocate_or_fail(num_rows, sizeof *out->tails);
    out->biases = (float *)allocate_or_fail(num_rows, sizeof *out->biases);
    out->is_present = (unsigned char *)allocate_or_fail(num_rows, 1);
    for (uint32_t block = 0; block < file.shape.num_blocks; block++) {
        size_t num_bundles = bsw_shard_block_bundles(&file.shape, block);
        void *bytes = allocate_or_fail(bsw_shard_block_bytes(&file.shape, block), 1);
        struct bsw_code_arrays arrays;
        assert_ok(bsw_shard_file_read_block(&file, block, bytes, &err), &err);
        bsw_code_arrays_in_block(&file.shape, bytes, num_bundles, &arrays);
        for (size_t place = 0; place < num_bundles * 32 && row < num_rows; place++)
            read_plain_row(&file.shape, &arrays, place, out, row++);
        bsw_free(&bytes);
    }
    assert_int_equal(row, num_rows);
    bsw_shard_file_close(&file);
}

static inline void free_plain_shard(struct plain_shard *shard)
{
    bsw_free(&shard->codes);
    bsw_free(&shard->scales);
    bsw_free(&shard->tails);
    bsw_free(&shard->biases);
    bsw_free(&shard->is_present);
}

// Queries as rank 0 codes them, and their components as odd numbers.
struct plain_queries {
    uint32_t num_queries, query_bits;
    size_t query_words;
    uint32_t *words; // [num_queries][query_words]
    float *scales;
    struct bsw_value_terms *terms;
    float *vectors; // [num_queries][dims], raw
    float *factors; // that make them unit vectors, or 1
    float *lengths; // what codes are of, besides: 1 / terms->unit
    int16_t *codes; // [num_queries][dims]: q
};

static inline void read_plain_query(const struct bsw_code_layout *layout, const uint32_t *words,
                                    uint32_t query_bits, int16_t *codes)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        for (uint32_t i = 0; i < segment->dims; i++)
            *codes++ = (int16_t)read_component(words + i / 32, query_bits, segment->words, i % 32);
        words += (size_t)segment->words * query_bits;
    }
}

// vectors: [num_queries][dims], copied.
static inline void make_plain_queries(const struct bsw_manifest *manifest, const float *vectors,
                                      uint32_t num_queries, uint32_t query_bits,
                                      struct plain_queries *out)
{
    const struct bsw_encode_table *table = bsw_encode_table_get(bsw_cpu_level_detect());
    const struct bsw_code_layout *layout = &manifest->layout;
    size_t dims = layout->dims, numbers = num_queries * dims;
    double *norms = (double *)allocate_or_fail(num_queries, sizeof *norms);
    float *scratch = (float *)allocate_or_fail(dims + layout->padded_dims, sizeof *scratch);
    out->num_queries = num_queries;
    out->query_bits = query_bits;
    out->query_words = bsw_layout_query_words(layout, query_bits);
    out->words = (uint32_t *)allocate_or_fail(num_queries * out->query_words, sizeof *out->words);
    out->scales = (float *)allocate_or_fail(num_queries, sizeof *out->scales);
    out->terms = (struct bsw_value_terms *)allocate_or_fail(num_queries, sizeof *out->terms);
    out->lengths = (float *)allocate_or_fail(num_queries, sizeof *out->lengths);
    out->vectors = (float *)allocate_or_fail(numbers, sizeof *out->vectors);
    out->factors = (float *)allocate_or_fail(num_queries, sizeof *out->factors);
    out->codes = (int16_t *)allocate_or_fail(numbers, sizeof *out->codes);
    size_t faults = bsw_prepare_rows(table, manifest->metric, BSW_VECTOR_FLOAT32, vectors,
                                     num_queries, dims, out->vectors, norms, out->factors, NULL);
    assert_int_equal(faults, 0);
    for (size_t q = 0; q < num_queries; q++) {
        uint32_t *words = out->words + q * out->query_words;
        bsw_query_encode(table, manifest, out->vectors + q * dims, out->factors[q], query_bits,
                         words, (union bsw_query_number *)&out->scales[q], &out->terms[q], scratch);
        out->lengths[q] =
            manifest->codec->table->query_factor
                ? manifest->codec->table->query_factor(manifest, out->vectors + q * dims)
                : 1.0f;
        assert_true(out->terms[q].unit == 1.0f / out->lengths[q]);
        read_plain_query(layout, words, query_bits, out->codes + q * dims);
    }
    bsw_free(&scratch);
    bsw_free(&norms);
}

static inline void free_plain_queries(struct plain_queries *queries)
{
    bsw_free(&queries->words);
    bsw_free(&queries->scales);
    bsw_free(&queries->terms);
    bsw_free(&queries->lengths);
    bsw_free(&queries->vectors);
    bsw_free(&queries->factors);
    bsw_free(&queries->codes);
}

// Sum of q*c over dimensions [first, last), counted without padding.
static inline int32_t plain_dot(const int16_t *q, const int16_t *c, uint32_t first, uint32_t last)
{
    int32_t sum = 0;
    for (uint32_t i = first; i < last; i++) sum += (int32_t)q[i] * c[i];
    return sum;
}

#endif
