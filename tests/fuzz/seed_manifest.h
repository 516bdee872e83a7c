// SPDX-License-Identifier: Apache-2.0
// Manifests of small indexes of every codec, made by hand: no vectors are needed for them.
#ifndef BITSWEEP_TESTS_FUZZ_SEED_MANIFEST_H
#define BITSWEEP_TESTS_FUZZ_SEED_MANIFEST_H

#include <string.h>

#include "bitsweep.pb-c.h"
#include "common/codes/metric.h"
#include "common/files/index_manifest.h"
#include "common/files/shard_file.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/codec_rbe.h"
#include "shard/codecs/codec_saq.h"
#include "shard/codecs/product_codes.h"
#include "tests/fuzz/harness.h"

// Arrays of a manifest; bsw_manifest_deinit frees.
static inline void seed_arrays(struct bsw_manifest *manifest, uint32_t num_shards)
{
    size_t dims = manifest->layout.dims, padded = manifest->layout.padded_dims;
    FUZZ_REQUIRE(bsw_allocate_zero(&manifest->shards, num_shards, sizeof *manifest->shards, "seed",
                                   NULL) == BSW_OK);
    manifest->num_shards = num_shards;
    if (manifest->codec != &bsw_codec_saq) return;
    FUZZ_REQUIRE(bsw_saq_part_create(manifest, NULL) == BSW_OK);
    struct bsw_saq_part *saq = bsw_saq_part_of(manifest);
    FUZZ_REQUIRE(bsw_allocate_zero(&saq->mean, dims, sizeof(float), "seed", NULL) == BSW_OK);
    FUZZ_REQUIRE(bsw_allocate_zero(&saq->rotation, dims * padded, sizeof(float), "seed", NULL) ==
                 BSW_OK);
    for (size_t i = 0; i < dims; i++) saq->rotation[i * padded] = 1.0f;
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) saq->steps[s] = 0.5f;
    memcpy(saq->axes, "random", 7);
}

// Steps of sq8, 0.5 in each dimension.
static inline void seed_steps(struct bsw_manifest *manifest)
{
    float middles[4] = {0, 1, -2, 3}, half_steps[4] = {0.5f, 0.5f, 0.5f, 0.5f};
    unsigned char bytes[64];
    Bsw__Sq8 message = BSW__SQ8__INIT;
    message.middles.len = message.half_steps.len = sizeof middles;
    message.middles.data = (uint8_t *)middles;
    message.half_steps.data = (uint8_t *)half_steps;
    size_t count = bsw__sq8__pack(&message, bytes);
    FUZZ_REQUIRE(bsw_codec_sq8.parse_part("seed", bytes, count, manifest, NULL) == BSW_OK);
}

// Once shards are cut.
static inline void seed_known_answers(struct bsw_manifest *manifest)
{
    FUZZ_REQUIRE(bsw_manifest_reserve_known(manifest, 2, NULL) == BSW_OK);
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_known_answers known = bsw_manifest_known(manifest, i);
        uint64_t *list = manifest->known + manifest->shards[i].first_known;
        for (uint32_t place = 0; place < known.num_queries * known.num_rows; place++)
            list[place] = bsw_candidate_pack(UINT32_MAX - place, place % known.num_rows);
    }
}

// Two parts of 4 bits.
static inline void seed_product(struct bsw_manifest *manifest)
{
    struct bsw_product_codes *codes;
    FUZZ_REQUIRE(bsw_product_codes_create(manifest->metric, 4, 2, 4, "none", &codes, NULL) ==
                 BSW_OK);
    for (size_t i = 0; i < 4 * 16; i++) codes->entries[i] = (float)(i % 7) - 3.0f;
    bsw_product_codes_norms(codes);
    manifest->part = codes;
    manifest->row_dims = 4;
}

// 45 rows of 4 dims in 1 shard, 25 more in a second.
static inline void seed_manifest(const struct bsw_codec *codec, uint32_t num_shards,
                                 struct bsw_manifest *out)
{
    uint64_t next = 0;
    memset(out, 0, sizeof *out);
    out->codec = codec;
    out->metric = codec == &bsw_codec_raw ? BSW_METRIC_L2 : BSW_METRIC_COSINE;
    bsw_code_layout_init(&out->layout);
    uint32_t dims = codec == &bsw_codec_saq ? 3 : 4, bits = codec->table->fixed_bits > 0 ? 8 : 2;
    int is_product = codec == &bsw_codec_pq;
    FUZZ_REQUIRE(bsw_code_layout_append(&out->layout, is_product ? 8 : dims, is_product ? 1 : bits,
                                        NULL) == BSW_OK);
    if (codec == &bsw_codec_saq)
        FUZZ_REQUIRE(bsw_code_layout_append(&out->layout, 1, 1, NULL) == BSW_OK);
    out->bits = is_product ? 4 : bits;
    out->stage_dims = out->layout.dims;
    out->codec_number = codec == &bsw_codec_xfbq ? 1.5f : 0.0f;
    if (codec == &bsw_codec_rbe) {
        FUZZ_REQUIRE(bsw_allocate_zero(&out->part, 1, sizeof(struct bsw_rbe_part), "seed", NULL) ==
                     BSW_OK);
        bsw_rbe_part_of(out)->model_digest = 7;
        bsw_rbe_part_of(out)->query_planes = 3;
        out->row_dims = 6;
    }
    if (codec == &bsw_codec_sq8) seed_steps(out);
    if (is_product) seed_product(out);
    seed_arrays(out, num_shards);
    for (uint32_t i = 0; i < num_shards; i++) {
        struct bsw_shard_shape shape;
        out->shards[i].first_row = next;
        out->shards[i].num_rows = 45 - 20 * i;
        next += out->shards[i].num_rows;
        bsw_shard_shape_init(&shape, out, i);
        out->shards[i].codes_bytes = bsw_shard_codes_bytes(&shape);
    }
    out->num_rows = out->source_rows = next;
    seed_known_answers(out);
    memcpy(out->source_path, "../base.u8bin", 14);
    out->source_type = BSW_VECTOR_UINT8;
    out->source_file_bytes = 8 + next * bsw_manifest_row_dims(out);
    FUZZ_REQUIRE(bsw_manifest_build_digest(out, &out->build_digest, NULL) == BSW_OK);
}

#endif
