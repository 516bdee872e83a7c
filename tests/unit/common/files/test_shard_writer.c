// SPDX-License-Identifier: Apache-2.0
// The writer of shard files: blocks and rows in any order by several openings, names that files get
// at the end only, and what it leaves where a run goes on or gives up.
#include "shard/codecs/codec.h"
#include "small_index.h"

#include <xxhash.h>

#include "common/files/shard_writer.h"
#include "temporary_folder.h"

enum { ROWS = 90000, DIMS = 16, ROW_BYTES = DIMS * sizeof(float) }; // three blocks

static struct bsw_error err;

// A plain index of one shard whose rows are copied.
static void describe(struct bsw_manifest *manifest, struct bsw_shard_entry *entry)
{
    *entry = (struct bsw_shard_entry){.first_row = 7, .num_rows = ROWS};
    *manifest = (struct bsw_manifest){.build_digest = 77,
                                      .first_row = 7,
                                      .num_rows = ROWS,
                                      .codec = &bsw_codec_xfbq,
                                      .num_shards = 1,
                                      .shards = entry,
                                      .source_type = BSW_VECTOR_FLOAT32,
                                      .source_is_copied = 1};
    bsw_code_layout_init(&manifest->layout);
    assert_ok(bsw_code_layout_append(&manifest->layout, DIMS, 8, &err), &err);
}

static void fill_block(const struct bsw_shard_writer *writer, uint32_t block, unsigned char *out)
{
    size_t bytes = bsw_shard_block_bytes(&writer->shape, block);
    struct bsw_code_arrays arrays;
    memset(out, (int)(block + 1), bytes);
    bsw_code_arrays_in_block(&writer->shape, out, bsw_shard_block_bundles(&writer->shape, block),
                             &arrays);
    arrays.masks[bsw_shard_block_bundles(&writer->shape, block) - 1] = 1;
}

static void put_block(struct bsw_shard_writer *writer, uint32_t block, uint64_t *digests)
{
    size_t bytes = bsw_shard_block_bytes(&writer->shape, block);
    unsigned char *image = allocate_or_fail(bytes, 1), *found = allocate_or_fail(bytes, 1);
    float row[2 * DIMS];
    fill_block(writer, block, image);
    digests[block] = XXH3_64bits(image, bytes);
    assert_ok(bsw_shard_writer_put_block(writer, block, image, &err), &err);
    assert_ok(bsw_shard_writer_read_block(writer, block, found, &err), &err);
    assert_memory_equal(found, image, bytes);
    for (size_t i = 0; i < 2 * DIMS; i++) row[i] = (float)(block * 100 + i);
    uint64_t first = (uint64_t)block * writer->shape.block_bundles * BSW_BUNDLE_ROWS;
    assert_ok(bsw_shard_writer_put_rows(writer, first, row, 2, &err), &err);
    bsw_free(&image);
    bsw_free(&found);
}

static int exists(const char *ending)
{
    char path[BSW_PATH_BYTES];
    assert_ok(bsw_shard_path(path, temporary_folder, 0, 1, ending, &err), &err);
    return bsw_file_exists(path);
}

UNIT_TEST(blocks_put_in_any_order_are_the_shard)
{
    struct bsw_shard_entry entry;
    struct bsw_manifest manifest;
    struct bsw_shard_writer writer;
    uint64_t digests[8], sum = 0, rows;
    describe(&manifest, &entry);
    bsw_shard_writer_init(&writer, &manifest, temporary_folder, 0);
    uint32_t num_blocks = writer.shape.num_blocks;
    assert_in_range(num_blocks, 2, 8);
    assert_int_equal(writer.row_bytes, ROW_BYTES);
    assert_ok(bsw_shard_writer_create(&writer, &err), &err);
    for (uint32_t block = num_blocks; block-- > 0;) { // as by ranks that have one each
        assert_ok(bsw_shard_writer_open(&writer, &err), &err);
        put_block(&writer, block, digests);
        assert_ok(bsw_shard_writer_sync(&writer, &err), &err);
        if (block == 1) assert_ok(bsw_shard_writer_create(&writer, &err), &err); // stays as it is
        if (block == 0)
            assert_ok(bsw_shard_writer_digest_rows(&writer, 0, NULL, &rows, &err), &err);
        assert_ok(bsw_shard_writer_close(&writer, &err), &err);
        assert_true(writer.codes_fd < 0 && writer.vectors_fd < 0);
    }
    static const float zeros[DIMS];
    size_t in_block = (size_t)writer.shape.block_bundles * BSW_BUNDLE_ROWS;
    for (size_t r = 0; r < in_block; r++) {
        float row[DIMS] = {0};
        for (size_t i = 0; i < DIMS && r < 2; i++) row[i] = (float)(r * DIMS + i);
        sum += bsw_row_digest(r < 2 ? row : zeros, ROW_BYTES, 7 + r);
    }
    assert_int_equal(rows, sum);
    assert_ok(bsw_shard_writer_seal(&writer, digests, &entry.codes_digest, &err), &err);
    assert_true(exists(".codes.tmp") && exists(".vectors.tmp") && !exists(".codes"));
    assert_ok(bsw_shard_writer_name(&writer, &err), &err);
    assert_true(!exists(".codes.tmp") && !exists(".vectors.tmp") && exists(".vectors"));
    entry.codes_bytes = bsw_shard_codes_bytes(&writer.shape);
    entry.vectors_bytes = bsw_shard_vectors_bytes(&writer.shape, ROW_BYTES);
    struct bsw_shard_file file;
    char path[BSW_PATH_BYTES];
    int fd;
    assert_ok(bsw_shard_file_open(&manifest, temporary_folder, 0, &file, &err), &err);
    void *block = allocate_or_fail(bsw_shard_block_bytes(&writer.shape, 0), 1);
    for (uint32_t b = 0; b < num_blocks; b++)
        assert_ok(bsw_shard_file_read_block(&file, b, block, &err), &err);
    bsw_free(&block);
    bsw_shard_file_close(&file);
    assert_ok(bsw_vectors_file_open(&manifest, temporary_folder, 0, &fd, path, &err), &err);
    bsw_file_close(&fd);
}

UNIT_TEST(removing_takes_files_without_their_names)
{
    struct bsw_shard_entry entry;
    struct bsw_manifest manifest;
    struct bsw_shard_writer writer;
    describe(&manifest, &entry);
    bsw_shard_writer_init(&writer, &manifest, temporary_folder, 0);
    assert_ok(bsw_shard_writer_create(&writer, &err), &err);
    bsw_shard_writer_remove(&writer);
    assert_false(exists(".codes.tmp") || exists(".vectors.tmp"));
    bsw_shard_writer_remove(&writer); // nothing there
    assert_int_equal(bsw_shard_writer_open(&writer, &err), BSW_ERROR_IO);
    assert_int_equal(writer.codes_fd, -1);
}

UNIT_TEST(rows_go_nowhere_where_they_are_not_copied)
{
    struct bsw_shard_entry entry;
    struct bsw_manifest manifest;
    struct bsw_shard_writer writer;
    float row[DIMS] = {0};
    describe(&manifest, &entry);
    manifest.source_is_copied = 0;
    bsw_shard_writer_init(&writer, &manifest, temporary_folder, 0);
    assert_ok(bsw_shard_writer_create(&writer, &err), &err);
    assert_ok(bsw_shard_writer_open(&writer, &err), &err);
    assert_ok(bsw_shard_writer_put_rows(&writer, 0, row, 1, &err), &err);
    assert_false(exists(".vectors.tmp"));
    assert_ok(bsw_shard_writer_close(&writer, &err), &err);
    bsw_shard_writer_remove(&writer);
}

UNIT_TEST(names_are_told_from_others)
{
    assert_true(bsw_shard_file_is_named("shard-00000-of-00001.codes", 0));
    assert_true(bsw_shard_file_is_named("shard-00003-of-00010.vectors", 0));
    assert_true(bsw_shard_file_is_named("shard-00003-of-00010.vectors.tmp", 1));
    assert_false(bsw_shard_file_is_named("shard-00000-of-00001.codes", 1));
    assert_false(bsw_shard_file_is_named("shard-00000-of-00001.codes.tmp", 0));
    assert_false(bsw_shard_file_is_named("shard-00000.codes", 0));
    assert_false(bsw_shard_file_is_named("manifest.pb", 0));
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
