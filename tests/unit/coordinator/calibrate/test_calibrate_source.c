// SPDX-License-Identifier: Apache-2.0
// An index of rows in memory: rows that are lent under their name are taken where they are those
// that were encoded, else the index's copy, if that is what it was.
#include "unit_test.h"

#include <math.h>

#include "common/net/transport.h"
#include "coordinator/calibrate/calibrate_rows.h"
#include "coordinator/encode/encode_index.h"
#include "temporary_folder.h"

enum { ROWS = 300, DIMS = 8, FIRST = 20, LISTS = 4, BAD_ROW = 77 };

static struct bsw_error err;
static struct bsw_transport transport = {.timeout_seconds = 10};
static float numbers[ROWS * DIMS];
static struct bsw_memory_rows base = {.name = BSW_MEMORY_PREFIX "base",
                                      .numbers = numbers,
                                      .type = BSW_VECTOR_FLOAT32,
                                      .dims = DIMS,
                                      .num_rows = ROWS};

static void make_index(void)
{
    const struct bsw_encode_settings settings = {.base = base.name,
                                                 .rows = {FIRST, ROWS},
                                                 .index = path_of("index"),
                                                 .codec = &bsw_codec_saq,
                                                 .metric = "l2",
                                                 .code = {.bits = 2, .seed = 1},
                                                 .shards = 2,
                                                 .lists = LISTS,
                                                 .copy_vectors = 1,
                                                 .drop_bad_rows = 1,
                                                 .device.text = "cpu",
                                                 .level = BSW_CPU_REFERENCE};
    struct bsw_encode_stats stats;
    for (int i = 0; i < ROWS * DIMS; i++) numbers[i] = (float)(i * 37 % 101);
    numbers[BAD_ROW * DIMS + 3] = NAN;
    assert_ok(bsw_memory_rows_lend(&base, &err), &err);
    assert_ok(bsw_encode_run(&settings, &transport, &stats, &err), &err);
    assert_int_equal(stats.num_dropped_rows, 1);
    bsw_memory_rows_take_back(&base);
}

// Whether a copy was lent; it then has the rows.
static int lends_copy(const struct bsw_manifest *manifest)
{
    struct bsw_calibrate_source source;
    const struct bsw_memory_rows *found;
    assert_ok(bsw_calibrate_source_lend(manifest, path_of("index"), 0, &source, &err), &err);
    int is_copy = source.numbers != NULL;
    assert_ok(bsw_memory_rows_find(base.name, &found, &err), &err);
    const float *rows = (const float *)found->numbers;
    for (int row = FIRST; row < ROWS && is_copy; row++) {
        if (row == BAD_ROW) continue;
        assert_memory_equal(rows + row * DIMS, numbers + row * DIMS, DIMS * sizeof(float));
    }
    bsw_calibrate_source_take_back(&source);
    return is_copy;
}

UNIT_TEST(rows_are_those_that_were_encoded)
{
    static float others[ROWS * DIMS];
    struct bsw_manifest manifest;
    struct bsw_memory_rows lent = base;
    make_index();
    assert_ok(bsw_manifest_read(path_of("index"), &manifest, &err), &err);
    assert_true(lends_copy(&manifest)); // nothing is lent
    assert_ok(bsw_memory_rows_lend(&lent, &err), &err);
    assert_false(lends_copy(&manifest));
    bsw_memory_rows_take_back(&lent);
    memcpy(others, numbers, sizeof others);
    lent.numbers = others;
    assert_ok(bsw_memory_rows_lend(&lent, &err), &err);
    others[0]++; // before the first row
    assert_false(lends_copy(&manifest));
    others[FIRST * DIMS]++;
    assert_true(lends_copy(&manifest));
    bsw_memory_rows_take_back(&lent);
    lent.numbers = numbers;
    lent.num_rows--;
    assert_ok(bsw_memory_rows_lend(&lent, &err), &err);
    assert_true(lends_copy(&manifest));
    bsw_memory_rows_take_back(&lent);
    bsw_manifest_deinit(&manifest);
}

UNIT_TEST(a_copy_that_was_changed_is_refused)
{
    struct bsw_manifest manifest;
    struct bsw_calibrate_source source;
    const struct bsw_memory_rows *found;
    const char *path = path_of("index/shard-00001-of-00002.vectors");
    float number;
    int fd = open(path, O_RDWR);
    off_t at = lseek(fd, 0, SEEK_END) / 2 / (off_t)sizeof number * (off_t)sizeof number;
    assert_int_equal(pread(fd, &number, sizeof number, at), sizeof number);
    number++;
    assert_int_equal(pwrite(fd, &number, sizeof number, at), sizeof number);
    close(fd);
    assert_ok(bsw_manifest_read(path_of("index"), &manifest, &err), &err);
    assert_int_equal(bsw_calibrate_source_lend(&manifest, path_of("index"), 0, &source, &err),
                     BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "/index: its copy of the rows has digest "));
    assert_null(source.numbers);
    assert_int_equal(bsw_memory_rows_find(base.name, &found, NULL), BSW_ERROR_IO);
    bsw_manifest_deinit(&manifest);
}

int main(void)
{
    bsw_transport_local_init(&transport);
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
