// SPDX-License-Identifier: Apache-2.0
// Selection by histograms against XFBQ Algorithm 1 line by line, every pair of bits by itself.
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "coordinator/search/batch_merge.h"
#include "duplicate_rows.h"
#include "made_assignment.h"
#include "shard/codecs/codec.h"
#include "shard/host/shard_scan.h"
#include "small_index.h"
#include "temporary_folder.h"
#include "unit_test.h"

enum { ROWS = 5003, DISTINCT = 900, DIMS = DUPLICATE_DIMS, QUERIES = 20, QUERY_BITS = 6 };

static struct bsw_error err;

static int make_files(void **state)
{
    if (make_temporary_folder(state) != 0) return -1;
    write_duplicates(ROWS, DISTINCT);
    return 0;
}

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

// ---- XFBQ Algorithm 1 ----

enum { SHARDS = 3 };

// x (*) y of Section 3.2: every pair of bits, one after another.
static uint32_t bit_distance(int16_t q, int16_t c, uint32_t query_bits, uint32_t bits)
{
    uint32_t y = (uint32_t)((1 << query_bits) - 1 - q) / 2, x = (uint32_t)((1 << bits) - 1 - c) / 2;
    uint32_t distance = 0;
    for (uint32_t i = 0; i < bits; i++)
        for (uint32_t j = 0; j < query_bits; j++) distance += ((x >> i ^ y >> j) & 1) << (i + j);
    return distance;
}

struct algorithm_case {
    struct bsw_manifest manifest;
    struct plain_queries queries;
    struct bsw_query_batch batch;
    struct bsw_resident_shard residents[SHARDS];
    uint32_t *distances; // [QUERIES][ROWS]; UINT32_MAX: dropped
    struct bsw_scan_workspace workspace;
};

// Lines 3 to 9.
static void open_algorithm(struct algorithm_case *job, int num_threads, uint32_t query_bits)
{
    struct small_index what = duplicates(&bsw_codec_xfbq, BSW_METRIC_COSINE);
    what.num_shards = SHARDS;
    make_small_index(&what, temporary_folder, &job->manifest);
    float *vectors = make_queries(DISTINCT, QUERIES);
    make_plain_queries(&job->manifest, vectors, QUERIES, query_bits, &job->queries);
    bsw_free(&vectors);
    job->batch = (struct bsw_query_batch){.num_queries = QUERIES,
                                          .query_bits = query_bits,
                                          .query_words = job->queries.query_words,
                                          .words = job->queries.words,
                                          .scales = job->queries.scales,
                                          .vectors = job->queries.vectors};
    job->distances = allocate_or_fail((size_t)QUERIES * ROWS, sizeof *job->distances);
    for (uint32_t s = 0; s < SHARDS; s++) {
        struct plain_shard plain;
        assert_ok(bsw_resident_shard_load(&job->manifest, temporary_folder, s, 0,
                                          &job->residents[s], &err),
                  &err);
        read_plain_shard(&job->manifest, temporary_folder, s, &plain);
        for (size_t i = 0; i < plain.num_rows * QUERIES; i++) {
            size_t q = i / plain.num_rows, r = i % plain.num_rows;
            uint32_t *distance = &job->distances[q * ROWS + plain.first_row + r];
            *distance = plain.is_present[r] ? 0 : UINT32_MAX;
            for (uint32_t d = 0; d < DIMS && plain.is_present[r]; d++) {
                *distance += bit_distance(job->queries.codes[q * DIMS + d],
                                          plain.codes[r * DIMS + d], query_bits, 3);
            }
        }
        free_plain_shard(&plain);
    }
    bsw_scan_workspace_init(&job->workspace, bsw_cpu_level_detect(), num_threads);
}

static void close_algorithm(struct algorithm_case *job)
{
    bsw_scan_workspace_deinit(&job->workspace);
    for (uint32_t s = 0; s < SHARDS; s++) bsw_resident_shard_unload(&job->residents[s]);
    bsw_free(&job->distances);
    free_plain_queries(&job->queries);
    bsw_manifest_deinit(&job->manifest);
}

// Lines 12 to 16: the histogram over all rows, then the least j at which it adds up to K.
static uint64_t max_distance(const uint32_t *distances, uint32_t num_bins, uint64_t k,
                             uint64_t extra)
{
    uint64_t *histogram = allocate_or_fail(num_bins, sizeof *histogram), sum = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (distances[i] == UINT32_MAX) continue;
        assert_true(distances[i] < num_bins);
        histogram[distances[i]]++;
    }
    uint64_t j = 0;
    while (j < num_bins && (sum += histogram[j]) < k) j++;
    bsw_free(&histogram);
    return j + extra;
}

// The list of a query as a rank sends it.
static void append_list(const struct algorithm_case *job, uint32_t shard,
                        const struct bsw_candidate_lists *lists, size_t query,
                        struct bsw_buffer *payload)
{
    size_t count;
    const uint64_t *list = bsw_candidate_list(lists, query, &count);
    uint64_t num = count;
    assert_ok(bsw_buffer_append(payload, &num, sizeof num, &err), &err);
    for (size_t i = 0; i < count; i++) {
        const struct bsw_ranked entry =
            bsw_ranked_of_key(bsw_candidate_score(list[i]), 0,
                              job->manifest.shards[shard].first_row + bsw_candidate_row(list[i]));
        assert_ok(bsw_buffer_append(payload, &entry, sizeof entry, &err), &err);
    }
}

// The first round: the K best rows of every shard, cuts of all of them, limits.
static void find_limits(struct algorithm_case *job, const struct bsw_search_settings *settings,
                        int num_ranks, uint32_t *limits)
{
    const struct bsw_scan_round round = bsw_first_round(settings);
    struct bsw_buffer payloads[SHARDS] = {{0}};
    struct bsw_candidate_lists lists = {0};
    struct bsw_batch_merge merge;
    struct bsw_cut cuts[QUERIES];
    for (uint32_t s = 0; s < SHARDS; s++) {
        assert_ok(bsw_shard_scan(&job->residents[s], &job->batch, 0, QUERIES, round.limits,
                                 round.keep, &job->workspace, &lists, &err),
                  &err);
        for (size_t q = 0; q < QUERIES; q++)
            append_list(job, s, &lists, q, &payloads[num_ranks == 1 ? 0 : s]);
    }
    bsw_batch_merge_init(&merge, &job->manifest, settings,
                         made_assignment((uint32_t)num_ranks, job->manifest.num_shards));
    assert_ok(bsw_merge_candidates(&merge, payloads, QUERIES, &round, cuts, &err), &err);
    bsw_limits_of_cuts(&merge, cuts, QUERIES, limits);
    bsw_batch_merge_deinit(&merge);
    bsw_candidate_lists_deinit(&lists);
    for (int s = 0; s < SHARDS; s++) bsw_buffer_deinit(&payloads[s]);
}

// Lists of the shards as one list, rows as ids, in the total order.
static size_t join_lists(struct bsw_candidate_lists *lists, const struct algorithm_case *job,
                         size_t query, uint64_t *out)
{
    size_t total = 0;
    for (uint32_t s = 0; s < SHARDS; s++) {
        size_t count;
        const uint64_t *list = bsw_candidate_list(&lists[s], query, &count);
        for (size_t i = 0; i < count; i++) {
            out[total++] = bsw_candidate_pack(bsw_candidate_score(list[i]),
                                              (uint32_t)job->manifest.shards[s].first_row +
                                                  bsw_candidate_row(list[i]));
        }
    }
    if (total > 0) qsort(out, total, sizeof *out, compare_descending);
    return total;
}

// Lines 17 to 23, then the cut to max_candidates by (distance, row).
static size_t select_rows(const uint32_t *distances, uint64_t largest, int32_t dot_limit,
                          size_t max_candidates, uint64_t *out)
{
    size_t count = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        if (distances[i] > largest || distances[i] == UINT32_MAX) continue;
        int32_t dot = (int32_t)(dot_limit - 2 * (int64_t)distances[i]); // Eq. 7
        out[count++] = bsw_candidate_pack(bsw_score_from_integer(dot), i);
    }
    if (count > 0) qsort(out, count, sizeof *out, compare_descending);
    return count < max_candidates ? count : max_candidates;
}

// exclude_self: D_K is that of one row more.
static void check_algorithm(struct algorithm_case *job, uint64_t k, uint64_t extra,
                            size_t max_candidates, int num_ranks, uint64_t exclude_self)
{
    uint64_t reached = (k > 5 ? k - 5 : k) + exclude_self;
    static uint64_t expected[ROWS], found[ROWS];
    struct bsw_search_settings settings = {.query_bits = job->batch.query_bits,
                                           .k = k,
                                           .keep = max_candidates,
                                           .is_histogram = 1,
                                           .exclude_self = exclude_self,
                                           .histogram_k = k > 5 ? k - 5 : 0,
                                           .extra_distance = extra,
                                           .level = bsw_cpu_level_detect(),
                                           .num_threads = 1};
    struct bsw_candidate_lists lists[SHARDS] = {{0}};
    uint32_t limits[QUERIES];
    int32_t dot_limit = (int32_t)bsw_layout_dot_limit(&job->manifest.layout, job->batch.query_bits);
    find_limits(job, &settings, num_ranks, limits);
    for (uint32_t s = 0; s < SHARDS; s++) {
        assert_ok(bsw_shard_scan(&job->residents[s], &job->batch, 0, QUERIES, limits,
                                 max_candidates, &job->workspace, &lists[s], &err),
                  &err);
    }
    for (size_t q = 0; q < QUERIES; q++) {
        const uint32_t *distances = job->distances + q * ROWS;
        uint64_t largest = max_distance(distances, (uint32_t)dot_limit + 1, reached, extra);
        size_t count = select_rows(distances, largest, dot_limit, max_candidates, expected);
        size_t joined = join_lists(lists, job, q, found);
        if (joined > max_candidates) joined = max_candidates;
        assert_int_equal(joined, count);
        assert_memory_equal(found, expected, count * sizeof *found);
        // Without a cut it is every row within maxDistance: at least as many as it reaches, unless
        // there are fewer.
        size_t all = ROWS - (size_t)job->manifest.dropped_rows;
        if (max_candidates >= ROWS) assert_true(count >= (reached < all ? reached : all));
    }
    for (uint32_t s = 0; s < SHARDS; s++) bsw_candidate_lists_deinit(&lists[s]);
}

UNIT_TEST(histogram_selection_is_algorithm_1)
{
    static const uint64_t ks[] = {1, 2, 10, 100, 2000, ROWS - 200, ROWS, 1000000};
    static const uint64_t extras[] = {0, 1, 7, 200, 1000000000};
    struct algorithm_case job;
    for (int threads = 1; threads <= 2; threads++) {
        open_algorithm(&job, threads, threads == 1 ? 4 : 6);
        for (size_t i = 0; i < 8; i++) {
            for (size_t e = 0; e < 5; e++) {
                check_algorithm(&job, ks[i], extras[e], ROWS, 1 + 2 * (int)(e % 2), e % 2);
                check_algorithm(&job, ks[i], extras[e], 1, 3, 0);
                check_algorithm(&job, ks[i], extras[e], 57, 1, 1);
            }
        }
        close_algorithm(&job);
    }
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
