// SPDX-License-Identifier: Apache-2.0
// Shards that are coded where they are searched: the arrays that the same shards have when they are
// loaded from an index, and raw rows that are those of the source.
#include "shard/codecs/codec.h"
#include "tests/unit/small_index.h"
#include "tests/unit/temporary_folder.h"

#include "shard/host/resident_shard.h"

#define NUM_ROWS   1500 // of each shard 500: a last bundle that is not full
#define NUM_SHARDS 3

static struct bsw_error err;

static void assert_same(const void *a, const void *b, size_t bytes)
{
    assert_true((a == NULL) == (b == NULL));
    if (a) assert_memory_equal(a, b, bytes);
}

static void assert_same_arrays(const struct bsw_resident_shard *a,
                               const struct bsw_resident_shard *b)
{
    size_t bundles = a->num_bundles, rows = bundles * BSW_BUNDLE_ROWS;
    assert_int_equal(bundles, b->num_bundles);
    assert_int_equal(a->stage_dims, b->stage_dims);
    assert_int_equal(a->scan_bytes, b->scan_bytes);
    for (uint32_t s = 0; s < a->shape.layout.num_segments; s++)
        assert_same(a->arrays.planes[s], b->arrays.planes[s],
                    bundles * bsw_segment_bundle_words(&a->shape.layout.segments[s]) * 4);
    assert_same(a->arrays.scales, b->arrays.scales, rows * sizeof(uint16_t));
    assert_same(a->arrays.tails, b->arrays.tails, rows * sizeof(uint16_t));
    assert_same(a->arrays.biases, b->arrays.biases, rows * sizeof(float));
    assert_same(a->arrays.offsets, b->arrays.offsets, rows * sizeof(int32_t));
    assert_same(a->arrays.masks, b->arrays.masks, bundles * sizeof(uint32_t));
    assert_same(a->arrays.row_digests, b->arrays.row_digests, bundles * sizeof(uint64_t));
    assert_same(a->most, b->most, bundles * sizeof *a->most);
}

static void assert_same_rows(const struct bsw_resident_shard *a, const struct bsw_resident_shard *b,
                             size_t row_bytes)
{
    static unsigned char scratch[2][16384];
    const void *row, *other;
    assert_true(row_bytes <= sizeof scratch[0]);
    for (uint32_t i = 0; i < a->shape.num_rows; i++) {
        assert_ok(bsw_raw_rows_get(&a->raw_rows, i, a->arrays.row_digests, scratch[0], &row, &err),
                  &err);
        assert_ok(
            bsw_raw_rows_get(&b->raw_rows, i, b->arrays.row_digests, scratch[1], &other, &err),
            &err);
        assert_memory_equal(row, other, row_bytes);
    }
}

static void check_shards(const struct bsw_manifest *manifest)
{
    size_t row_bytes = manifest->layout.dims * bsw_vector_type_bytes(manifest->source_type);
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        struct bsw_resident_shard loaded, coded;
        assert_ok(bsw_resident_shard_load(manifest, temporary_folder, i, 1, &loaded, &err), &err);
        assert_ok(bsw_resident_shard_encode(manifest, i, bsw_cpu_level_detect(), 1, &coded, &err),
                  &err);
        assert_int_equal(coded.index, i);
        if (manifest->codec != &bsw_codec_saq) assert_true(coded.shape.num_blocks > 1);
        assert_same_arrays(&loaded, &coded);
        assert_true(loaded.raw_rows.is_synth && !coded.raw_rows.is_synth); // held
        assert_same_rows(&loaded, &coded, row_bytes);
        bsw_resident_shard_unload(&loaded);
        bsw_resident_shard_unload(&coded);
    }
}

UNIT_TEST(coded_shards_are_loaded_ones)
{
    const struct small_index indexes[] = {
        {.source = "synth:count=2K,dims=70,seed=3,clusters=7,spectrum=1",
         .codec = &bsw_codec_saq,
         .metric = BSW_METRIC_L2,
         .bits = 2.5},
        {.source = "synth:count=2K,dims=4000,seed=4",
         .codec = &bsw_codec_xfbq,
         .metric = BSW_METRIC_COSINE,
         .bits = 8},
        {.source = "synth:count=2K,dims=3000,seed=5,type=uint8",
         .codec = &bsw_codec_raw,
         .metric = BSW_METRIC_L2},
    };
    for (size_t i = 0; i < sizeof indexes / sizeof indexes[0]; i++) {
        struct small_index index = indexes[i];
        struct bsw_manifest manifest;
        index.first_row = 100;
        index.last_row = 100 + NUM_ROWS;
        index.num_shards = NUM_SHARDS;
        make_small_index(&index, temporary_folder, &manifest);
        check_shards(&manifest);
        bsw_manifest_deinit(&manifest);
    }
}

// Held rows that are not those the codes were made from are found like a file's.
UNIT_TEST(held_rows_are_checked)
{
    const struct small_index index = {.source = "synth:count=100,dims=40,seed=5,type=uint8",
                                      .codec = &bsw_codec_raw,
                                      .metric = BSW_METRIC_L2};
    struct bsw_manifest manifest;
    struct bsw_resident_shard shard;
    const void *row;
    make_small_index(&index, temporary_folder, &manifest);
    assert_ok(bsw_resident_shard_encode(&manifest, 0, bsw_cpu_level_detect(), 1, &shard, &err),
              &err);
    shard.arrays.row_digests[1] ^= 1;
    assert_ok(bsw_raw_rows_get(&shard.raw_rows, 31, shard.arrays.row_digests, NULL, &row, &err),
              &err);
    assert_int_equal(
        bsw_raw_rows_get(&shard.raw_rows, 32, shard.arrays.row_digests, NULL, &row, &err),
        BSW_ERROR_BAD_DATA);
    bsw_resident_shard_unload(&shard);
    bsw_manifest_deinit(&manifest);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
