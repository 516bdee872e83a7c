// SPDX-License-Identifier: Apache-2.0
// Manifests of every codec made by hand, and how their refusal is checked.
#ifndef BITSWEEP_TESTS_UNIT_MANIFEST_CASES_H
#define BITSWEEP_TESTS_UNIT_MANIFEST_CASES_H

#include <math.h>
#include <xxhash.h>

#include "bitsweep.pb-c.h"
#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "common/files/index_manifest.h"
#include "kernels/encode/raw_codes.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/codec_rbe.h"
#include "shard/codecs/codec_saq.h"
#include "shard/codecs/codec_xfbq.h"
#include "temporary_folder.h"
#include "unit_test.h"

static struct bsw_error err;

static inline void *allocate(size_t count, size_t size)
{
    void *memory;
    if (bsw_allocate_zero(&memory, count, size, "test", NULL) != BSW_OK) abort();
    return memory;
}

static inline float random_float(uint64_t index)
{
    return (float)((double)(int64_t)bsw_hash2(1, index) * 0x1p-63);
}

// ---- manifests made by hand ----

static inline void cut_into_shards(struct bsw_manifest *manifest, uint32_t num_shards)
{
    manifest->num_shards = num_shards;
    manifest->shards = (struct bsw_shard_entry *)allocate(num_shards, sizeof *manifest->shards);
    manifest->dropped_rows = 0;
    for (uint32_t i = 0; i < num_shards; i++) {
        struct bsw_shard_entry *entry = &manifest->shards[i];
        entry->first_row = manifest->first_row + manifest->num_rows * i / num_shards;
        entry->num_rows =
            manifest->first_row + manifest->num_rows * (i + 1) / num_shards - entry->first_row;
        entry->codes_bytes = bsw_hash2(2, i) >> 8;
        entry->codes_digest = bsw_hash2(3, i);
        entry->vectors_bytes = bsw_hash2(4, i) >> 8;
        entry->dropped_rows = i;
        manifest->dropped_rows += i;
    }
}

// Rows are those of the shard, scores fall.
static inline void make_known(struct bsw_manifest *manifest, uint32_t num_queries)
{
    assert_int_equal(bsw_manifest_reserve_known(manifest, num_queries, &err), BSW_OK);
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_known_answers known = bsw_manifest_known(manifest, i);
        uint64_t *list = manifest->known + manifest->shards[i].first_known;
        assert_int_equal(known.num_queries, num_queries);
        assert_ptr_equal(known.best, list);
        for (uint32_t place = 0; place < num_queries * known.num_rows; place++)
            list[place] = bsw_candidate_pack(UINT32_MAX - 1000 * i - place,
                                             place * 7 % (uint32_t)manifest->shards[i].num_rows);
    }
}

static inline void make_common(struct bsw_manifest *manifest)
{
    memset(manifest, 0, sizeof *manifest);
    manifest->build_digest = 0x123456789abcdef0;
    manifest->first_row = 1000;
    manifest->num_rows = 5003;
    manifest->metric = BSW_METRIC_COSINE;
    manifest->bits = 3;
    strcpy(manifest->source_path, "../vectors/base.i8bin");
    manifest->source_type = BSW_VECTOR_INT8;
    manifest->source_file_bytes = 777777;
    manifest->source_rows = 9000;
    manifest->source_digest = 0xfedcba9876543210;
    cut_into_shards(manifest, 4);
    make_known(manifest, 3);
}

static inline void make_plain(struct bsw_manifest *manifest)
{
    make_common(manifest);
    assert_int_equal(bsw_code_layout_parse("47x3", 47, &manifest->layout, &err), BSW_OK);
    manifest->codec = &bsw_codec_xfbq;
    manifest->codec_number = 3.25f;
    manifest->stage_dims = 47;
}

// Codes of rotated rows; padding columns hold what must not come back.
static inline void make_rotated(struct bsw_manifest *manifest)
{
    make_plain(manifest);
    assert_int_equal(bsw_xfbq_part_create(manifest, &err), BSW_OK);
    for (size_t i = 0; i < (size_t)47 * 64; i++)
        bsw_xfbq_part_of(manifest)->rotation[i] = random_float(i);
}

static inline void make_raw(struct bsw_manifest *manifest)
{
    make_common(manifest);
    assert_int_equal(bsw_code_layout_parse("47x8", 47, &manifest->layout, &err), BSW_OK);
    manifest->codec = &bsw_codec_raw;
    manifest->metric = BSW_METRIC_L2;
    manifest->bits = 8;
    manifest->stage_dims = 47;
    for (uint32_t i = 0; i < manifest->num_shards; i++) manifest->shards[i].dropped_rows = 0;
    manifest->dropped_rows = 0;
}

static inline void make_rbe(struct bsw_manifest *manifest)
{
    make_common(manifest);
    assert_int_equal(bsw_code_layout_parse("64x2", 64, &manifest->layout, &err), BSW_OK);
    manifest->codec = &bsw_codec_rbe;
    manifest->bits = 2;
    manifest->stage_dims = 64;
    manifest->part = allocate(1, sizeof(struct bsw_rbe_part));
    bsw_rbe_part_of(manifest)->model_digest = 0xabcdef;
    manifest->row_dims = 200;
    bsw_rbe_part_of(manifest)->query_planes = 3;
    manifest->scale_exponent = -11;
}

// Padding columns hold what must not come back.
static inline void make_saq(struct bsw_manifest *manifest, const char *segments, uint32_t dims)
{
    make_common(manifest);
    assert_int_equal(bsw_code_layout_parse(segments, dims, &manifest->layout, &err), BSW_OK);
    size_t weights = (size_t)dims * manifest->layout.padded_dims;
    manifest->codec = &bsw_codec_saq;
    manifest->metric = BSW_METRIC_L2;
    manifest->bits = 2.25;
    assert_int_equal(bsw_saq_part_create(manifest, &err), BSW_OK);
    bsw_saq_part_of(manifest)->mean = (float *)allocate(dims, sizeof(float));
    bsw_saq_part_of(manifest)->rotation = (float *)allocate(weights, sizeof(float));
    for (uint32_t i = 0; i < dims; i++) bsw_saq_part_of(manifest)->mean[i] = random_float(i);
    for (size_t i = 0; i < weights; i++)
        bsw_saq_part_of(manifest)->rotation[i] = random_float(1000 + i);
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++)
        bsw_saq_part_of(manifest)->steps[s] = 0.5f + (float)s;
    manifest->scale_exponent = -17;
    manifest->tail_exponent = 5;
    manifest->stage_dims = dims > 32 ? 32 : dims;
    manifest->source_is_copied = 1;
    strcpy(bsw_saq_part_of(manifest)->axes, "principal");
}

static inline void pack(const struct bsw_manifest *manifest, struct bsw_buffer *buffer)
{
    assert_int_equal(bsw_manifest_pack(manifest, buffer, &err), BSW_OK);
}

// ---- refusal ----

static inline void assert_refused(const unsigned char *data, size_t bytes, const char *clause)
{
    struct bsw_manifest out;
    err.message[0] = '\0';
    assert_int_equal(bsw_manifest_parse("m", data, bytes, &out, &err), BSW_ERROR_BAD_DATA);
    assert_ptr_equal(strstr(err.message, "m: "), err.message);
    if (!strstr(err.message, clause)) fail_msg("'%s' lacks '%s'", err.message, clause);
    assert_null(out.part);
    assert_null(out.shards);
    assert_null(out.known);
}

#endif
