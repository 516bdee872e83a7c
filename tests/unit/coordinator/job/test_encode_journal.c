// SPDX-License-Identifier: Apache-2.0
// Blocks that an encode recorded and another goes on with: only those whose bytes are in the files,
// codes and copied rows, are kept.
#include "small_index.h"
#include "temporary_folder.h"

#include <xxhash.h>

#include "common/files/list_order.h"
#include "common/rows/vectors.h"
#include "coordinator/job/encode_journal.h"
#include "shard/codecs/codec.h"

enum { ROWS = 300, DIMS = 24, ROW_BYTES = DIMS * sizeof(float), LISTS = 7 };

static struct bsw_error err;

// The only shard of an index with its rows copied, open for writing, and the record of its block.
struct block_case {
    struct bsw_manifest manifest;
    struct bsw_shard_writer writer;
    struct bsw_encode_block recorded;
    struct bsw_buffer codes;
    struct bsw_list_order order; // of the copied rows; {0}: the source's
};

static int open_part(const char *suffix)
{
    char path[BSW_PATH_BYTES];
    int fd;
    assert_ok(bsw_shard_path(path, temporary_folder, 0, 1, suffix, &err), &err);
    assert_ok(bsw_file_open_write(path, &fd, &err), &err);
    return fd;
}

static uint64_t row_at(uint64_t place)
{
    return BSW_SHARD_HEADER_BYTES + place * ROW_BYTES;
}

// Puts the copied rows in the order of lists, a row of them dropped, and other bytes for codes.
static void order_rows(struct block_case *block)
{
    static unsigned char rows[ROWS][ROW_BYTES], zeros[ROW_BYTES];
    uint32_t lists[ROWS];
    uint64_t num_places;
    struct bsw_manifest *manifest = &block->manifest;
    int vectors_fd = block->writer.vectors_fd, codes_fd = block->writer.codes_fd;
    for (uint32_t r = 0; r < ROWS; r++) lists[r] = r == 17 ? BSW_NO_LIST : r * r % LISTS;
    assert_ok(bsw_list_order_count(lists, ROWS, LISTS, &num_places, &err), &err);
    assert_ok(bsw_list_order_make(lists, ROWS, LISTS, num_places, &block->order, &err), &err);
    assert_ok(bsw_file_read_at(vectors_fd, "rows", row_at(0), rows, sizeof rows, &err), &err);
    for (uint64_t p = 0; p < num_places; p++) {
        uint32_t row = block->order.rows[p];
        const unsigned char *from = row == BSW_NO_ROW ? zeros : rows[row];
        assert_ok(bsw_file_write_at(vectors_fd, "rows", row_at(p), from, ROW_BYTES, &err), &err);
    }
    manifest->lists.count = LISTS;
    manifest->lists.has_ordered_vectors = 1;
    manifest->shards[0].num_places = num_places;
    bsw_shard_writer_init(&block->writer, manifest, temporary_folder, 0);
    block->writer.codes_fd = codes_fd;
    block->writer.vectors_fd = vectors_fd;
    size_t bytes = bsw_shard_block_bytes(&block->writer.shape, 0);
    unsigned char *codes = allocate_or_fail(bytes, 1);
    for (size_t i = 0; i < bytes; i++) codes[i] = (unsigned char)(i * 31 >> 3);
    assert_ok(bsw_shard_writer_put_block(&block->writer, 0, codes, &err), &err);
    bsw_free(&codes);
}

static void record_block(struct block_case *block)
{
    unsigned char row[ROW_BYTES];
    size_t bytes = bsw_shard_block_bytes(&block->writer.shape, 0);
    void *codes = allocate_or_fail(bytes, 1);
    assert_ok(bsw_shard_writer_read_block(&block->writer, 0, codes, &err), &err);
    block->recorded.digest = XXH3_64bits(codes, bytes);
    bsw_free(&codes);
    for (uint64_t r = 0; r < ROWS; r++) {
        uint64_t place = block->order.places ? block->order.places[r] : r;
        if (place == BSW_NO_ROW) continue;
        assert_ok(
            bsw_file_read_at(block->writer.vectors_fd, "rows", row_at(place), row, ROW_BYTES, &err),
            &err);
        block->recorded.source_digest += bsw_row_digest(row, ROW_BYTES, r);
    }
}

static void open_block(struct block_case *out, int is_ordered)
{
    const struct small_index what = {.source = "synth:count=300,dims=24",
                                     .codec = &bsw_codec_saq,
                                     .metric = BSW_METRIC_L2,
                                     .bits = 2,
                                     .copies_vectors = 1};
    memset(out, 0, sizeof *out);
    make_small_index(&what, temporary_folder, &out->manifest);
    bsw_shard_writer_init(&out->writer, &out->manifest, temporary_folder, 0);
    out->writer.codes_fd = open_part(".codes");
    out->writer.vectors_fd = open_part(".vectors");
    if (is_ordered) order_rows(out);
    assert_int_equal(out->writer.shape.num_blocks, 1);
    record_block(out);
}

static void close_block(struct block_case *block)
{
    bsw_file_close(&block->writer.codes_fd);
    bsw_file_close(&block->writer.vectors_fd);
    bsw_buffer_deinit(&block->codes);
    bsw_list_order_deinit(&block->order);
    bsw_manifest_deinit(&block->manifest);
}

static int is_good(struct block_case *block, int with_rows)
{
    int good = -1;
    struct bsw_shard_writer writer = block->writer;
    if (!with_rows) writer.vectors_fd = -1;
    const struct bsw_list_order *order = block->order.rows ? &block->order : NULL;
    assert_ok(
        bsw_encode_block_check(&writer, 0, &block->recorded, order, &block->codes, &good, &err),
        &err);
    return good;
}

static void flip(int fd, uint64_t at)
{
    unsigned char byte;
    assert_ok(bsw_file_read_at(fd, "file", at, &byte, 1, &err), &err);
    byte ^= 1;
    assert_ok(bsw_file_write_at(fd, "file", at, &byte, 1, &err), &err);
}

UNIT_TEST(blocks_are_kept_with_all_their_bytes_only)
{
    struct block_case block;
    open_block(&block, 0);
    assert_true(is_good(&block, 1));
    assert_true(is_good(&block, 0));
    for (uint64_t at = 0; at < ROWS * ROW_BYTES; at += 991) {
        flip(block.writer.vectors_fd, BSW_SHARD_HEADER_BYTES + at);
        assert_false(is_good(&block, 1));
        assert_true(is_good(&block, 0)); // rows that are not copied are not looked for
        flip(block.writer.vectors_fd, BSW_SHARD_HEADER_BYTES + at);
    }
    size_t bytes = bsw_shard_block_bytes(&block.writer.shape, 0);
    for (uint64_t at = 0; at < bytes; at += 499) {
        flip(block.writer.codes_fd, bsw_shard_block_offset(&block.writer.shape, 0) + at);
        assert_false(is_good(&block, 1));
        assert_false(is_good(&block, 0));
        flip(block.writer.codes_fd, bsw_shard_block_offset(&block.writer.shape, 0) + at);
    }
    assert_true(is_good(&block, 1));
    close_block(&block);
}

// Two rows that have changed places have the bytes of the block, and not its digest.
UNIT_TEST(rows_in_another_order_are_not_the_rows)
{
    struct block_case block;
    unsigned char first[ROW_BYTES], second[ROW_BYTES];
    open_block(&block, 0);
    uint64_t at = BSW_SHARD_HEADER_BYTES + 7 * ROW_BYTES;
    assert_ok(bsw_file_read_at(block.writer.vectors_fd, "rows", at, first, ROW_BYTES, &err), &err);
    assert_ok(
        bsw_file_read_at(block.writer.vectors_fd, "rows", at + ROW_BYTES, second, ROW_BYTES, &err),
        &err);
    assert_ok(bsw_file_write_at(block.writer.vectors_fd, "rows", at, second, ROW_BYTES, &err),
              &err);
    assert_ok(
        bsw_file_write_at(block.writer.vectors_fd, "rows", at + ROW_BYTES, first, ROW_BYTES, &err),
        &err);
    assert_false(is_good(&block, 1));
    close_block(&block);
}

// ---- what is left ----

// A run of rank 0 that has a plan, with lists or without, and fails so.
static void fail_with_plan(int has_lists, enum bsw_status status)
{
    struct bsw_journal_fields fields = {0};
    struct bsw_encode_journal journal = {0};
    struct bsw_manifest manifest;
    const struct small_index what = {.source = "synth:count=300,dims=24",
                                     .codec = &bsw_codec_saq,
                                     .metric = BSW_METRIC_L2,
                                     .bits = 2};
    make_small_index(&what, temporary_folder, &manifest);
    if (has_lists) {
        manifest.lists.count = 2;
        manifest.lists.centroids = (float *)allocate_or_fail(2 * DIMS, sizeof(float));
    }
    assert_ok(bsw_encode_journal_open(&journal, temporary_folder, 0, 0, &fields, &err), &err);
    assert_ok(bsw_encode_journal_plan(&journal, &manifest, &err), &err);
    bsw_encode_journal_close(&journal, status);
    bsw_manifest_deinit(&manifest);
}

static int has_file(const char *name)
{
    return bsw_file_exists(path_of(name));
}

// Nothing else of a run is worth more than seconds until a block is recorded.
UNIT_TEST(lists_and_blocks_are_not_lost)
{
    fail_with_plan(0, BSW_ERROR_STOPPED);
    assert_true(has_file("encode.plan"));
    assert_ok(bsw_encode_refuse_loss(temporary_folder, &err), &err);
    write_test_file("encode-00001.journal", "", 0);
    assert_int_equal(bsw_encode_refuse_loss(temporary_folder, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "/encode-00001.journal: left by a run"));
    assert_int_equal(unlink(path_of("encode-00001.journal")), 0);
    fail_with_plan(1, BSW_ERROR_STOPPED);
    assert_int_equal(bsw_encode_refuse_loss(temporary_folder, &err), BSW_ERROR_USAGE);
    assert_non_null(
        strstr(err.message, "/encode.plan: left by a run that did not finish: --resume"));
    assert_int_equal(unlink(path_of("encode.plan")), 0);
    write_test_file("encode.lists", "", 0);
    assert_int_equal(bsw_encode_refuse_loss(temporary_folder, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "/encode.lists: left by a run"));
    assert_int_equal(unlink(path_of("encode.lists")), 0);
    write_test_file("encode.plan", "of no program", 13); // of which nothing can be resumed
    assert_ok(bsw_encode_refuse_loss(temporary_folder, &err), &err);
}

// A disk that is full is no reason to train lists again; rows that are wrong are.
UNIT_TEST(a_failure_leaves_lists)
{
    fail_with_plan(1, BSW_ERROR_IO);
    assert_true(has_file("encode.plan"));
    fail_with_plan(0, BSW_ERROR_IO);
    assert_false(has_file("encode.plan"));
    fail_with_plan(1, BSW_ERROR_BAD_DATA);
    assert_false(has_file("encode.plan"));
}

// What there is then stays as it is.
UNIT_TEST(what_cannot_be_resumed_says_what_to_do)
{
    const char *const plans[] = {"of no program, and longer than the head of a journal",
                                 "BSWJRNL\0\7\0\0\0, and longer than the head of a journal",
                                 "BSWJRNL\0\1\0\0\0, and longer than the head of a journal"};
    const char *const messages[] = {
        "/encode.plan: no bitsweep journal; --force without --resume starts again",
        "version 7, this program reads 1; --force without --resume starts again",
        "header is corrupt; --force without --resume starts again"};
    for (int i = 0; i < 3; i++) {
        struct bsw_journal_fields fields = {0};
        struct bsw_encode_journal journal = {0};
        write_test_file("encode.plan", plans[i], 50);
        assert_int_equal(bsw_encode_journal_open(&journal, temporary_folder, 1, 0, &fields, &err),
                         BSW_ERROR_BAD_DATA);
        if (!strstr(err.message, messages[i])) fail_msg("'%s': '%s'", err.message, messages[i]);
        bsw_encode_journal_close(&journal, BSW_ERROR_BAD_DATA);
        assert_true(has_file("encode.plan"));
    }
}

// In the order of lists a row is at its place: all bytes count but those of places without a row,
// and a row at another's place is not it.
UNIT_TEST(blocks_of_ordered_rows_are_kept)
{
    struct block_case block;
    unsigned char first[ROW_BYTES], second[ROW_BYTES];
    open_block(&block, 1);
    assert_true(is_good(&block, 1));
    assert_true(is_good(&block, 0));
    uint32_t num_empty = 0;
    for (uint32_t p = 0; p < block.order.num_places; p++) {
        int is_empty = block.order.rows[p] == BSW_NO_ROW;
        num_empty += (uint32_t)is_empty;
        flip(block.writer.vectors_fd, row_at(p) + p % ROW_BYTES);
        assert_int_equal(is_good(&block, 1), is_empty);
        assert_true(is_good(&block, 0));
        flip(block.writer.vectors_fd, row_at(p) + p % ROW_BYTES);
    }
    assert_int_equal(num_empty, block.order.num_places - (ROWS - 1));
    assert_ok(bsw_file_read_at(block.writer.vectors_fd, "rows", row_at(0), first, ROW_BYTES, &err),
              &err);
    assert_ok(bsw_file_read_at(block.writer.vectors_fd, "rows", row_at(1), second, ROW_BYTES, &err),
              &err);
    assert_ok(
        bsw_file_write_at(block.writer.vectors_fd, "rows", row_at(0), second, ROW_BYTES, &err),
        &err);
    assert_ok(bsw_file_write_at(block.writer.vectors_fd, "rows", row_at(1), first, ROW_BYTES, &err),
              &err);
    assert_false(is_good(&block, 1));
    close_block(&block);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
