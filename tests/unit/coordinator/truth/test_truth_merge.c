// SPDX-License-Identifier: Apache-2.0
// Groups of queries: whatever they are cut into, the same answers, and no row in its own.
#include "unit_test.h"

#include "coordinator/truth/truth_merge.h"
#include "shard/exact/neighbour_scan.h"
#include "temporary_folder.h"

enum { ROWS = 300, FIRST = 41, QUERIES = 23, K = 6 }; // queries are rows of the base

static struct bsw_error err;

static void open_scan(const bsw_vectors *base, const bsw_vectors *queries, bsw_neighbour_scan *scan)
{
    const struct bsw_neighbour_needs needs = {.metric = BSW_METRIC_L2,
                                              .level = BSW_CPU_REFERENCE,
                                              .base = base,
                                              .queries = queries,
                                              .num_rows = ROWS,
                                              .keep = K + 1,
                                              .block_rows = 64,
                                              .num_threads = 1};
    assert_ok(bsw_neighbour_scan_open(&needs, scan, &err), &err);
    while (scan->next_row < ROWS) assert_ok(bsw_neighbour_scan_next(scan, &err), &err);
    bsw_neighbour_scan_finish(scan, 0, QUERIES);
}

// The answers where so many queries go together.
static void merge(const bsw_neighbour_scan *scan, size_t group, int exclude_self,
                  struct bsw_results *out)
{
    struct bsw_transport transport = {.timeout_seconds = 10};
    bsw_transport_local_init(&transport);
    struct bsw_truth_merge job = {.transport = &transport,
                                  .merge = bsw_merge_table_get(BSW_CPU_REFERENCE),
                                  .metric = BSW_METRIC_L2,
                                  .k = K,
                                  .first_query_row = FIRST,
                                  .exclude_self = exclude_self};
    assert_ok(bsw_result_writer_create(path_of("truth"), QUERIES, K, 0, 1, &job.writer, &err),
              &err);
    for (size_t first = 0; first < QUERIES; first += group) {
        size_t count = QUERIES - first < group ? QUERIES - first : group;
        assert_ok(bsw_truth_merge_group(&job, first, count, scan->lists + first, &err), &err);
    }
    assert_ok(bsw_result_writer_finish(job.writer, &err), &err);
    bsw_result_writer_destroy(&job.writer);
    bsw_truth_merge_deinit(&job);
    bsw_transport_close(&transport, 0);
    assert_ok(bsw_results_read(path_of("truth"), out, &err), &err);
}

UNIT_TEST(groups_change_nothing_and_no_row_answers_itself)
{
    static const size_t groups[] = {QUERIES, 1, 4, QUERIES - 1};
    bsw_vectors *base, *queries;
    bsw_neighbour_scan scan;
    struct bsw_results with, without;
    const struct bsw_row_range range = {FIRST, FIRST + QUERIES};
    assert_ok(bsw_vectors_open("synth:count=300,dims=8", BSW_ALL_ROWS, &base, &err), &err);
    assert_ok(bsw_vectors_open("synth:count=300,dims=8", range, &queries, &err), &err);
    open_scan(base, queries, &scan);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        merge(&scan, groups[i], 0, &with);
        merge(&scan, groups[i], 1, &without);
        for (size_t q = 0; q < QUERIES; q++) {
            const int64_t *ids = with.ids + q * K;
            assert_int_equal(ids[0], FIRST + q); // nothing is nearer to a row than itself
            assert_true(with.values[q * K] == 0);
            assert_memory_equal(without.ids + q * K, ids + 1, (K - 1) * sizeof *ids);
            assert_int_not_equal(without.ids[q * K + K - 1], FIRST + q);
        }
        bsw_results_deinit(&with);
        bsw_results_deinit(&without);
    }
    bsw_neighbour_scan_close(&scan);
    bsw_vectors_close(&queries);
    bsw_vectors_close(&base);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
