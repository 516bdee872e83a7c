// SPDX-License-Identifier: Apache-2.0
// What rank 0 makes of a file of queries: a digest that tells them from others, and errors that
// name the row.
#include "small_index.h"
#include "temporary_folder.h"

#include <math.h>

#include "coordinator/search/query_source.h"
#include "shard/codecs/codec.h"

enum { QUERIES = 8, DIMS = 20 };

static struct bsw_error err;
static struct bsw_manifest manifest;
static float rows[QUERIES][DIMS];

static int make_files(void **state)
{
    const struct small_index what = {.source = "synth:count=200,dims=20",
                                     .codec = &bsw_codec_saq,
                                     .metric = BSW_METRIC_L2,
                                     .bits = 2};
    if (make_temporary_folder(state) != 0) return -1;
    make_small_index(&what, temporary_folder, &manifest);
    for (size_t i = 0; i < QUERIES * DIMS; i++) rows[i / DIMS][i % DIMS] = (float)(i % 7) - 3;
    memcpy(rows[5], rows[4], sizeof rows[5]);
    write_fbin(path_of("queries.fbin"), rows[0], QUERIES, DIMS);
    return 0;
}

static int remove_files(void **state)
{
    bsw_manifest_deinit(&manifest);
    return remove_temporary_folder(state);
}

static enum bsw_status open_rows(uint64_t first, uint64_t last, uint64_t *digest)
{
    struct bsw_query_source source;
    const struct bsw_row_range range = {first, last};
    enum bsw_status status = bsw_query_source_open(path_of("queries.fbin"), range, &manifest, 6,
                                                   BSW_CPU_REFERENCE, &source, &err);
    if (status != BSW_OK) return status;
    assert_int_equal(source.num_queries, last - first);
    *digest = source.digest;
    bsw_query_source_close(&source);
    return BSW_OK;
}

// A run that is resumed must have the same rows of it: also where others hold the same numbers,
// since a query may be left out of its own answer by its row.
UNIT_TEST(digests_tell_rows_and_places_apart)
{
    uint64_t all, again, fourth, fifth, less;
    assert_ok(open_rows(0, QUERIES, &all), &err);
    assert_ok(open_rows(0, QUERIES, &again), &err);
    assert_true(all == again);
    assert_ok(open_rows(4, 5, &fourth), &err);
    assert_ok(open_rows(5, 6, &fifth), &err);
    assert_true(fourth != fifth);
    assert_ok(open_rows(0, QUERIES - 1, &less), &err);
    assert_true(all != less);
    rows[7][DIMS - 1] += 1;
    write_fbin(path_of("queries.fbin"), rows[0], QUERIES, DIMS);
    assert_ok(open_rows(0, QUERIES, &again), &err);
    assert_true(all != again);
}

UNIT_TEST(a_bad_query_is_named_by_its_row)
{
    uint64_t digest;
    float before = rows[6][3];
    rows[6][3] = NAN;
    write_fbin(path_of("queries.fbin"), rows[0], QUERIES, DIMS);
    assert_int_equal(open_rows(2, QUERIES, &digest), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "queries.fbin: row 6 "));
    assert_ok(open_rows(2, 6, &digest), &err);
    rows[6][3] = before;
}

UNIT_TEST(queries_of_other_dims_are_refused)
{
    uint64_t digest;
    write_fbin(path_of("queries.fbin"), rows[0], QUERIES, DIMS - 1);
    assert_int_equal(open_rows(0, QUERIES, &digest), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "19 dims, the index has 20"));
}

int main(void)
{
    return run_unit_tests(make_files, remove_files);
}
