// SPDX-License-Identifier: Apache-2.0
// Tags: matrices turned into lists, masks of all that lists have in common.
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/codes/code_layout.h"
#include "common/files/row_tags.h"
#include "tests/unit/temporary_folder.h"
#include "unit_test.h"

enum { ROWS = 203, TAGS = 9 };

static struct bsw_error err;
static unsigned char has[ROWS][TAGS]; // the oracle
static struct bsw_number_sets lists;

// A matrix of these, entries of a row from the last tag on, the first of them twice.
static unsigned char *make_matrix(size_t *bytes)
{
    int64_t head[3] = {ROWS, TAGS, 0}, starts[ROWS + 1] = {0};
    static int32_t tags[2 * ROWS * TAGS];
    int64_t count = 0;
    for (int row = 0; row < ROWS; row++) {
        for (int tag = TAGS; tag-- > 0;) {
            if (has[row][tag]) tags[count++] = tag;
        }
        if (count > starts[row]) tags[count] = tags[starts[row]], count++;
        starts[row + 1] = count;
    }
    head[2] = count;
    *bytes = sizeof head + sizeof starts + (size_t)count * 8;
    unsigned char *out = calloc(1, *bytes);
    assert_non_null(out);
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head, starts, sizeof starts);
    memcpy(out + sizeof head + sizeof starts, tags, (size_t)count * 4);
    return out;
}

static int make_lists(void **state)
{
    struct bsw_number_sets rows;
    size_t bytes;
    for (int row = 0; row < ROWS; row++) {
        for (int tag = 0; tag < TAGS; tag++)
            has[row][tag] = (row * 7 + row / 5 + tag * 3) % (tag + 2) == 0 && tag < TAGS - 1;
    }
    unsigned char *matrix = make_matrix(&bytes);
    assert_ok(bsw_tags_parse("tags", matrix, bytes, &rows, &err), &err);
    free(matrix);
    assert_ok(bsw_number_sets_turn(&rows, &lists, &err), &err);
    bsw_number_sets_deinit(&rows);
    return 0;
}

static int drop_lists(void **state)
{
    bsw_number_sets_deinit(&lists);
    return 0;
}

UNIT_TEST(lists_have_the_rows_of_their_tags)
{
    assert_true(lists.num_sets == TAGS && lists.num_members == ROWS);
    for (uint32_t tag = 0; tag < TAGS; tag++) {
        uint64_t at = lists.first[tag];
        for (uint32_t row = 0; row < ROWS; row++)
            if (has[row][tag]) assert_int_equal(lists.members[at++], row);
        assert_int_equal(at, lists.first[tag + 1]);
    }
}

static void check_mask(const uint32_t *tags, uint64_t num_tags, uint64_t first, uint64_t count)
{
    uint32_t bits[ROWS / 32 + 2];
    bsw_row_tags_mask(&lists, tags, num_tags, first, count, bits);
    for (uint64_t i = 0; i < bsw_row_bit_words(count) * 32; i++) {
        int wanted = i < count;
        for (uint64_t t = 0; t < num_tags && wanted; t++) wanted = has[first + i][tags[t]];
        assert_int_equal(bsw_row_bit(bits, i), wanted);
    }
}

UNIT_TEST(masks_have_rows_with_all_tags)
{
    for (uint32_t set = 0; set < 1u << TAGS; set += 3) {
        uint32_t tags[TAGS], num = 0;
        for (uint32_t tag = 0; tag < TAGS; tag++)
            if (set >> tag & 1) tags[num++] = tag;
        check_mask(tags, num, 0, ROWS);
        check_mask(tags, num, 64, 97);
        check_mask(tags, num, ROWS, 0);
    }
}

// Under a digest that fits.
static enum bsw_status read_file(const void *bytes, size_t num_bytes, struct bsw_number_sets *out)
{
    struct bsw_shard_entry shard = {.num_rows = 4};
    struct bsw_manifest manifest = {.num_rows = 4,
                                    .num_shards = 1,
                                    .shards = &shard,
                                    .tags_digest = XXH3_64bits(bytes, num_bytes)};
    write_test_file(BSW_ROW_TAGS_NAME, bytes, num_bytes);
    return bsw_row_tags_read(&manifest, temporary_folder, out, &err);
}

UNIT_TEST(lists_of_a_file_are_looked_at)
{
    struct {
        uint64_t head[3], first[3];
        uint32_t rows[4];
    } file = {{2, 4, 3}, {0, 2, 3}, {1, 3, 0}}, wrong;
    size_t bytes = sizeof file - sizeof file.rows[3];
    struct bsw_number_sets read;
    assert_ok(read_file(&file, bytes, &read), &err);
    assert_true(read.num_sets == 2 && read.num_members == 4 && read.members[1] == 3);
    bsw_number_sets_deinit(&read);
#define REFUSED(change)                                                    \
    wrong = file;                                                          \
    change;                                                                \
    assert_int_equal(read_file(&wrong, bytes, &read), BSW_ERROR_BAD_DATA); \
    assert_non_null(strstr(err.message, "its lists are none of 4 rows"));  \
    assert_null(read.first)
    REFUSED(wrong.rows[1] = 4);
    REFUSED(wrong.rows[1] = 1);
    REFUSED(wrong.first[1] = 9);
    REFUSED(wrong.first[0] = 1);
    REFUSED(wrong.first[2] = 2);
    wrong = file;
    wrong.head[1] = 5;
    assert_int_equal(read_file(&wrong, bytes, &read), BSW_ERROR_BAD_DATA);
    assert_int_equal(read_file(&file, 20, &read), BSW_ERROR_BAD_DATA);
    assert_int_equal(read_file(&file, 0, &read), BSW_ERROR_BAD_DATA);
}

static int set_up(void **state)
{
    return make_temporary_folder(state) != 0 || make_lists(state) != 0;
}

static int tear_down(void **state)
{
    drop_lists(state);
    return remove_temporary_folder(state);
}

int main(void)
{
    return run_unit_tests(set_up, tear_down);
}
