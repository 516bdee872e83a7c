// SPDX-License-Identifier: Apache-2.0
// Known answers: pinned queries are the same in any number of planes, what the finder keeps is what
// plain integers give, in any order of blocks, and every change of a list is noticed.
#include <math.h>

#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "shard/checks/answer_finder.h"
#include "shard/codecs/codec.h"
#include "shard/host/answer_check.h"
#include "small_index.h"
#include "temporary_folder.h"

static struct bsw_error err;

// ---- pinned queries ----

UNIT_TEST(pinned_queries_do_not_follow_query_bits)
{
    enum { DIMS = 77 };
    struct bsw_code_layout layout;
    uint32_t words[8 * 8];
    int16_t expected[DIMS], found[DIMS];
    assert_ok(bsw_code_layout_parse("40x3,5x2,32x1", DIMS, &layout, &err), &err);
    for (uint32_t i = 0; i < BSW_KNOWN_QUERIES; i++) {
        int most = (1 << bsw_pinned_planes[i]) - 1, seen = 0;
        for (uint32_t bits = bsw_pinned_planes[i]; bits <= BSW_MAX_QUERY_BITS; bits++) {
            bsw_pinned_words(&layout, bsw_pinned_planes[i], bits, 5 + i, words);
            read_plain_query(&layout, words, bits, found);
            if (bits == bsw_pinned_planes[i]) memcpy(expected, found, sizeof found);
            assert_memory_equal(found, expected, sizeof found);
            for (uint32_t plane = 0; plane < bits; plane++) // padding, of the first two segments
                assert_true(words[plane * 2 + 1] >> 8 == 0 && words[2 * bits + plane] >> 5 == 0);
        }
        for (int d = 0; d < DIMS; d++) {
            assert_true(expected[d] >= -most && expected[d] <= most && expected[d] % 2 != 0);
            seen |= expected[d] > 0 ? 1 : 2;
        }
        assert_int_equal(seen, 3);
    }
}

// ---- the finder ----

static const struct small_index indexes[] = {
    {.source = "synth:count=9000,dims=100,seed=3",
     .codec = &bsw_codec_xfbq,
     .metric = BSW_METRIC_COSINE,
     .bits = 4,
     .num_shards = 2},
    {.source = "synth:count=10000,dims=300,clusters=7,seed=4",
     .codec = &bsw_codec_saq,
     .metric = BSW_METRIC_L2,
     .bits = 3,
     .segments = "140x4,160x2",
     .random_axes = 1},
    {.source = "synth:count=70,dims=30,seed=5",
     .codec = &bsw_codec_rbe,
     .metric = BSW_METRIC_COSINE,
     .num_shards = 3}, // lists are shorter than the most
};

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return first < second ? 1 : first > second ? -1 : 0;
}

// All candidates of a shard, sorted, from plain integers.
static uint64_t *rank_rows(const struct bsw_manifest *manifest, const struct plain_shard *shard,
                           const struct bsw_pinned_queries *queries, uint32_t query)
{
    const struct bsw_query_batch *batch = &queries->batch;
    uint64_t *all = (uint64_t *)allocate_or_fail(shard->num_rows, sizeof *all);
    int16_t codes[1024];
    read_plain_query(&manifest->layout, batch->words + query * batch->query_words,
                     batch->query_bits, codes);
    for (size_t row = 0; row < shard->num_rows; row++) {
        int32_t dot = plain_dot(codes, shard->codes + row * shard->dims, 0, shard->dims);
        uint32_t score = bsw_score_from_integer(dot);
        if (manifest->codec != &bsw_codec_xfbq) {
            float scaled = bsw_half_to_float(shard->scales[row]) * (float)dot;
            score =
                bsw_score_from_float(fmaf(batch->scales[query], scaled, shard->biases[row]) + 0.0f);
        }
        all[row] = bsw_candidate_pack(score, (uint32_t)row);
    }
    qsort(all, shard->num_rows, sizeof *all, compare);
    return all;
}

// The blocks of a shard in rising or falling order, the first one twice.
static void find(const struct bsw_manifest *manifest, uint32_t shard, enum bsw_cpu_level level,
                 int is_falling, struct bsw_answer_lists *out)
{
    struct bsw_answer_finder finder;
    struct bsw_shard_file file;
    memset(out, 0, sizeof *out);
    assert_ok(bsw_answer_finder_init(&finder, manifest, level, &err), &err);
    assert_ok(bsw_shard_file_open(manifest, temporary_folder, shard, &file, &err), &err);
    uint32_t last = file.shape.num_blocks - 1;
    for (uint32_t i = 0; i <= file.shape.num_blocks; i++) {
        struct bsw_answer_lists lists;
        uint32_t block = i > last ? 0 : is_falling ? last - i : i;
        void *bytes = allocate_or_fail(bsw_shard_block_bytes(&file.shape, block), 1);
        assert_ok(bsw_shard_file_read_block(&file, block, bytes, &err), &err);
        assert_ok(bsw_answer_finder_run(&finder, &file.shape, block, bytes, &lists, &err), &err);
        bsw_answer_lists_merge(out, &lists);
        bsw_free(&bytes);
    }
    bsw_shard_file_close(&file);
    bsw_answer_finder_deinit(&finder);
}

static void check_shard(const struct bsw_manifest *manifest, uint32_t shard)
{
    struct plain_shard plain;
    struct bsw_pinned_queries queries;
    struct bsw_answer_lists lists, again;
    assert_int_equal(bsw_pinned_query_bits(manifest), 6);
    assert_ok(bsw_pinned_queries_make(manifest, 6, BSW_KNOWN_QUERIES, &queries, &err), &err);
    assert_int_equal(queries.num_queries, BSW_KNOWN_QUERIES);
    read_plain_shard(manifest, temporary_folder, shard, &plain);
    find(manifest, shard, bsw_cpu_level_detect(), 0, &lists);
    find(manifest, shard, BSW_CPU_REFERENCE, 1, &again);
    for (uint32_t q = 0; q < BSW_KNOWN_QUERIES; q++) {
        uint64_t *all = rank_rows(manifest, &plain, &queries, q);
        assert_int_equal(lists.counts[q], bsw_known_rows(plain.num_rows));
        assert_memory_equal(lists.best[q], all, lists.counts[q] * sizeof *all);
        assert_int_equal(again.counts[q], lists.counts[q]);
        assert_memory_equal(again.best[q], all, lists.counts[q] * sizeof *all);
        bsw_free(&all);
    }
    free_plain_shard(&plain);
    bsw_pinned_queries_deinit(&queries);
}

UNIT_TEST(the_finder_keeps_the_best_rows)
{
    uint32_t most_blocks = 0;
    for (size_t i = 0; i < sizeof indexes / sizeof indexes[0]; i++) {
        struct bsw_manifest manifest;
        make_small_index(&indexes[i], temporary_folder, &manifest);
        for (uint32_t shard = 0; shard < manifest.num_shards; shard++) {
            struct bsw_shard_shape shape;
            bsw_shard_shape_init(&shape, &manifest, shard);
            if (shape.num_blocks > most_blocks) most_blocks = shape.num_blocks;
            check_shard(&manifest, shard);
        }
        bsw_manifest_deinit(&manifest);
    }
    assert_true(most_blocks > 1);
    bsw_rbe_coders_destroy(&small_coders);
}

// ---- comparing ----

#define FOUND 40

UNIT_TEST(lists_that_differ_are_refused)
{
    struct bsw_shard_entry entry = {.first_row = 1000, .num_rows = 500};
    struct bsw_manifest manifest = {.num_shards = 1, .shards = &entry};
    uint64_t found[FOUND];
    assert_ok(bsw_manifest_reserve_known(&manifest, 2, &err), &err);
    for (uint32_t i = 0; i < FOUND; i++) {
        found[i] = bsw_candidate_pack(1000 - i, 3 * i);
        if (i < BSW_KNOWN_ROWS) manifest.known[BSW_KNOWN_ROWS + i] = found[i];
    }
    assert_ok(bsw_known_answer_check(&manifest, 0, 1, found, 32, 32, 0, &err), &err);
    assert_ok(bsw_known_answer_check(&manifest, 0, 1, found, 7, 7, 0, &err), &err);
    assert_ok(bsw_known_answer_check(&manifest, 0, 1, found, FOUND, FOUND, 1, &err), &err);
    assert_int_equal(bsw_known_answer_check(&manifest, 0, 1, found, 31, 32, 0, &err),
                     BSW_ERROR_SELF_CHECK);
    assert_int_equal(bsw_known_answer_check(&manifest, 0, 1, found, 0, 32, 1, &err),
                     BSW_ERROR_SELF_CHECK);
    for (size_t i = 0; i < BSW_KNOWN_ROWS; i++) {
        for (unsigned bit = 0; bit < 64; bit++) {
            found[i] ^= (uint64_t)1 << bit;
            assert_int_equal(bsw_known_answer_check(&manifest, 0, 1, found, 32, 32, 0, &err),
                             BSW_ERROR_SELF_CHECK);
            assert_non_null(strstr(err.message, "shard 0: known answer 1 has row 1"));
            found[i] ^= (uint64_t)1 << bit;
        }
    }
    bsw_free(&manifest.known);
}

// A queue leaves rows out, but not the best, and gives no row that is not among the best known.
UNIT_TEST(queues_may_leave_rows_out)
{
    struct bsw_shard_entry entry = {.num_rows = 500};
    struct bsw_manifest manifest = {.num_shards = 1, .shards = &entry};
    uint64_t found[FOUND];
    size_t count = 0;
    assert_ok(bsw_manifest_reserve_known(&manifest, 1, &err), &err);
    for (uint32_t i = 0; i < FOUND; i++) {
        uint64_t candidate = bsw_candidate_pack(1000 - i, i);
        if (i < BSW_KNOWN_ROWS) manifest.known[i] = candidate;
        if (i % 3 == 0) found[count++] = candidate;
    }
    assert_ok(bsw_known_answer_check(&manifest, 0, 0, found, count, FOUND, 1, &err), &err);
    assert_int_equal(bsw_known_answer_check(&manifest, 0, 0, found + 1, count - 1, FOUND, 1, &err),
                     BSW_ERROR_SELF_CHECK);
    for (size_t i = 0; i * 3 < BSW_KNOWN_ROWS; i++) {
        uint64_t kept = found[i];
        found[i] = bsw_candidate_pack(bsw_candidate_score(kept), 77);
        assert_int_equal(bsw_known_answer_check(&manifest, 0, 0, found, count, FOUND, 1, &err),
                         BSW_ERROR_SELF_CHECK);
        found[i] = kept;
    }
    bsw_free(&manifest.known);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
