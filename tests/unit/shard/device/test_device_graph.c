// SPDX-License-Identifier: Apache-2.0
// Batches that are launched as a graph against the same ones launch by launch, and against the CPU.
#include "device_scan_case.h"

#include "shard/device/device_graph.h"

enum { KEEP = 20 };

// ---- one batch ----

// The best `keep` of queries [first, first + num) of a batch with the words of scan->batch; the
// lists are those of the CPU. Returns how many graphs that took.
static uint64_t check_keep(struct scan_case *scan, struct on_device *on,
                           const struct bsw_query_batch *batch, size_t first, size_t num,
                           size_t keep)
{
    struct bsw_candidate_lists expected = {0}, found = {0};
    uint64_t before = on->engine.counts.num_graphs;
    assert_ok(bsw_shard_scan(&scan->host, &scan->batch, first, num, NULL, keep, &scan->workspace,
                             &expected, &err),
              &err);
    assert_ok(scan_shard(on, &on->shard, &(const struct bsw_query_range){batch, first, num}, NULL,
                         keep, &scan->workspace, &found),
              &err);
    assert_same_lists(&expected, &found);
    bsw_candidate_lists_deinit(&expected);
    bsw_candidate_lists_deinit(&found);
    return on->engine.counts.num_graphs - before;
}

static uint64_t check_batch(struct scan_case *scan, struct on_device *on, size_t first, size_t num)
{
    return check_keep(scan, on, &scan->batch, first, num, on->engine.plan.keep);
}

static void open_pair(struct scan_case *scan, const struct device_case *with, const char *source,
                      struct on_device *on)
{
    struct small_index what = duplicates(&bsw_codec_xfbq, BSW_METRIC_COSINE);
    what.source = path_of(source);
    open_case(&what, make_queries(DISTINCT, QUERIES), scan);
    open_on_device(scan, with, on);
    scan->workspace.scan = BSW_SCAN_MATRIX;
}

static void close_pair(struct scan_case *scan, struct on_device *on)
{
    close_on_device(on);
    close_case(scan);
}

// ---- tests ----

// From the second batch of a shape on, whatever came in between; a sample and several segments.
// Whatever is counted of the work is what the launches count one by one.
UNIT_TEST(a_shape_is_recorded_when_it_comes_again)
{
    static const struct {
        size_t first, num;
        enum bsw_scan_kind kind;
        int is_graph;
    } batches[] = {
        {0, 5, BSW_SCAN_MATRIX, 0}, {3, 5, BSW_SCAN_MATRIX, 1}, {8, 1, BSW_SCAN_MATRIX, 0},
        {2, 5, BSW_SCAN_MATRIX, 1}, {4, 1, BSW_SCAN_PLANES, 0}, {5, 1, BSW_SCAN_PLANES, 1},
        {6, 1, BSW_SCAN_MATRIX, 1}, {1, 5, BSW_SCAN_MATRIX, 1}, {7, 1, BSW_SCAN_PLANES, 1}};
    const struct device_case with = {.keep = KEEP, .capacity = 300},
                             plain = {.keep = KEEP, .capacity = 300, .is_plain = 1};
    struct scan_case scan;
    struct on_device on, other;
    open_pair(&scan, &with, "duplicates.fbin", &on);
    open_on_device(&scan, &plain, &other);
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        scan.workspace.scan = batches[i].kind;
        assert_int_equal(check_batch(&scan, &on, batches[i].first, batches[i].num),
                         batches[i].is_graph);
        assert_int_equal(check_batch(&scan, &other, batches[i].first, batches[i].num), 0);
    }
    const struct bsw_scan_counts *a = &on.engine.counts, *b = &other.engine.counts;
    assert_true(a->num_samples == sizeof batches / sizeof batches[0]);
    assert_true(a->num_segments > a->num_samples);
    assert_int_equal(a->num_samples, b->num_samples);
    assert_int_equal(a->num_segments, b->num_segments);
    assert_int_equal(a->num_overflows, b->num_overflows);
    assert_int_equal(a->num_waits, b->num_waits);
    assert_string_equal(bsw_device_graphs_note(&on.engine), "");
    assert_string_equal(bsw_device_graphs_note(&other.engine), "");
    close_on_device(&other);
    close_pair(&scan, &on);
}

// A batch is taken a group of queries at a time, the last of which is shorter.
UNIT_TEST(groups_of_a_batch_are_of_a_shape)
{
    const struct device_case with = {.keep = KEEP, .max_queries = 4};
    struct scan_case scan;
    struct on_device on;
    open_pair(&scan, &with, "duplicates.fbin", &on);
    assert_int_equal(check_batch(&scan, &on, 0, QUERIES), 1); // of 4, 4 and 1
    assert_int_equal(check_batch(&scan, &on, 0, QUERIES), 3);
    close_pair(&scan, &on);
}

// Rows that are all alike reach every limit: lists overflow, the host goes on step by step, and the
// next batch begins with the graph again.
UNIT_TEST(an_overflow_is_scanned_again)
{
    const struct device_case with = {.keep = 2, .capacity = 128};
    struct scan_case scan;
    struct on_device on;
    open_pair(&scan, &with, "equal.fbin", &on);
    assert_int_equal(check_batch(&scan, &on, 0, 3), 0);
    uint64_t overflows = on.engine.counts.num_overflows;
    assert_true(overflows > 0);
    for (int i = 0; i < 3; i++) assert_int_equal(check_batch(&scan, &on, 1, 3), 1);
    assert_int_equal(on.engine.counts.num_overflows, 4 * overflows);
    close_pair(&scan, &on);
}

// More shapes than are kept: the one used longest ago is new again.
UNIT_TEST(shapes_make_room_for_others)
{
    const struct device_case with = {.keep = KEEP};
    struct scan_case scan;
    struct on_device on;
    open_pair(&scan, &with, "duplicates.fbin", &on);
    assert_true(QUERIES > BSW_DEVICE_GRAPHS);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t num = 1; num <= BSW_DEVICE_GRAPHS; num++)
            assert_int_equal(check_batch(&scan, &on, 0, num), pass);
    }
    assert_int_equal(check_batch(&scan, &on, 0, QUERIES), 0); // in the place of 1
    assert_int_equal(check_batch(&scan, &on, 0, 2), 1);
    assert_int_equal(check_batch(&scan, &on, 0, 1), 0); // in the place of 3
    assert_int_equal(check_batch(&scan, &on, 0, 3), 0);
    assert_int_equal(check_batch(&scan, &on, 0, QUERIES), 1);
    close_pair(&scan, &on);
}

// Codes that lie elsewhere are another shape, and those that are gone leave none.
UNIT_TEST(a_shard_that_is_gone_takes_its_graphs_along)
{
    const struct device_case with = {.keep = KEEP};
    struct scan_case scan;
    struct on_device on;
    open_pair(&scan, &with, "duplicates.fbin", &on);
    check_batch(&scan, &on, 0, 4);
    assert_int_equal(check_batch(&scan, &on, 0, 4), 1);
    bsw_device_shard_unload(&on.engine, &on.shard);
    bsw_resident_shard_unload(&on.host);
    assert_ok(bsw_resident_shard_load(&scan.manifest, temporary_folder, 0, 0, &on.host, &err),
              &err);
    assert_ok(bsw_device_shard_load(&on.engine, 0, &on.host, &on.shard, &err), &err);
    assert_int_equal(check_batch(&scan, &on, 0, 4), 0);
    assert_int_equal(check_batch(&scan, &on, 0, 4), 1);
    close_pair(&scan, &on);
}

UNIT_TEST(another_keep_is_another_shape)
{
    const struct device_case with = {.keep = KEEP};
    struct scan_case scan;
    struct on_device on;
    open_pair(&scan, &with, "duplicates.fbin", &on);
    for (int turn = 0; turn < 6; turn++) {
        assert_int_equal(check_keep(&scan, &on, &scan.batch, 0, 4, turn % 2 ? 3 : KEEP), turn > 1);
    }
    close_pair(&scan, &on);
}

// Words that lie on the device, at one place and at another, and words of the host, of other
// queries each time.
UNIT_TEST(words_come_from_anywhere)
{
    const struct device_case with = {.keep = KEEP};
    struct bsw_device_buffer memory[2];
    struct scan_case scan;
    struct on_device on;
    open_pair(&scan, &with, "duplicates.fbin", &on);
    struct bsw_query_batch there = scan.batch;
    size_t bytes = QUERIES * scan.batch.query_words * sizeof(uint32_t);
    there.words = NULL;
    for (int i = 0; i < 2; i++) {
        assert_ok(bsw_device_allocate(on.device, bytes, "test", &memory[i], &err), &err);
        assert_ok(bsw_device_upload(on.device, BSW_QUEUE_SCAN, memory[i].data, scan.batch.words,
                                    bytes, &err),
                  &err);
    }
    for (size_t turn = 0; turn < 6; turn++) {
        there.d_words = (const uint32_t *)(const void *)memory[turn % 2].data;
        assert_int_equal(check_keep(&scan, &on, &there, turn % 5, 4, KEEP), turn > 0);
        assert_int_equal(check_batch(&scan, &on, (turn + 2) % 5, 4), turn > 0);
    }
    for (int i = 0; i < 2; i++) bsw_device_free(on.device, &memory[i]);
    close_pair(&scan, &on);
}

// Bundles [first, first + 16), which are all on the device, as a shard of their own.
static void take_part(const struct scan_case *scan, const struct on_device *on, size_t first,
                      struct bsw_resident_shard *host, struct bsw_device_shard *part)
{
    *host = scan->host;
    *part = on->shard;
    host->num_bundles = part->num_bundles = part->resident.num_bundles = 16;
    host->shape.num_places = host->shape.num_rows = 16 * BSW_BUNDLE_ROWS;
    bsw_code_arrays_advance(&scan->host.shape, first, &host->arrays);
    part->host = host;
    for (uint32_t s = 0; s < part->resident.layout.num_segments; s++)
        part->resident.planes[s] +=
            first * bsw_segment_bundle_words(&part->resident.layout.segments[s]);
    if (part->resident.scales) part->resident.scales += first * BSW_BUNDLE_ROWS;
    if (part->resident.biases) part->resident.biases += first * BSW_BUNDLE_ROWS;
    part->resident.masks += first;
}

// Parts of a shard that are as long as each other, in turns: codes at another place are another
// shape.
UNIT_TEST(other_codes_are_another_shape)
{
    const struct device_case with = {.keep = KEEP};
    struct bsw_candidate_lists expected = {0}, found = {0};
    struct scan_case scan;
    struct on_device on;
    open_pair(&scan, &with, "duplicates.fbin", &on);
    for (int turn = 0; turn < 6; turn++) {
        struct bsw_resident_shard host;
        struct bsw_device_shard part;
        take_part(&scan, &on, 16 * (size_t)(turn % 2), &host, &part);
        assert_ok(bsw_shard_scan(&host, &scan.batch, 0, QUERIES, NULL, KEEP, &scan.workspace,
                                 &expected, &err),
                  &err);
        assert_ok(scan_shard(&on, &part, &(const struct bsw_query_range){&scan.batch, 0, QUERIES},
                             NULL, KEEP, &scan.workspace, &found),
                  &err);
        assert_same_lists(&expected, &found);
        assert_int_equal(on.engine.counts.num_graphs, turn < 2 ? 0 : turn - 1);
    }
    bsw_candidate_lists_deinit(&expected);
    bsw_candidate_lists_deinit(&found);
    close_pair(&scan, &on);
}

// ---- where there are none ----

// From the number-th time on.
static void check_without(const char *variable, const char *number, uint64_t num_graphs,
                          const char *words)
{
    const struct device_case with = {.keep = KEEP};
    struct scan_case scan;
    struct on_device on;
    open_pair(&scan, &with, "duplicates.fbin", &on);
    setenv(variable, number, 1);
    for (int i = 0; i < 4; i++) check_batch(&scan, &on, (size_t)i, 4);
    unsetenv(variable);
    assert_int_equal(on.engine.counts.num_graphs, num_graphs);
    if (!strstr(bsw_device_graphs_note(&on.engine), words))
        fail_msg("%s: %s", variable, bsw_device_graphs_note(&on.engine));
    check_batch(&scan, &on, 0, 4); // it stays so
    assert_int_equal(on.engine.counts.num_graphs, num_graphs);
    close_pair(&scan, &on);
}

UNIT_TEST(launches_go_one_by_one_where_a_graph_cannot_be_had)
{
    // Counted by the process: no earlier test has set them.
    check_without("BITSWEEP_EMULATOR_NO_CAPTURE", "1", 0, "emulated:0: graph: ");
    check_without("BITSWEEP_EMULATOR_NO_GRAPH", "1", 0, "emulated:0: graph: no memory");
    check_without("BITSWEEP_EMULATOR_NO_GRAPH_LAUNCH", "1", 0, "emulated:0: graph: no memory");
}

UNIT_TEST(a_graph_that_is_refused_later_ends_them)
{
    check_without("BITSWEEP_EMULATOR_NO_GRAPH_LAUNCH", "4", 2, "emulated:0: graph: no memory");
}

// A failed kernel and silence are told as ever, by the wait for the graph.
UNIT_TEST(a_device_that_fails_is_told)
{
    const struct device_case with = {.keep = KEEP};
    struct bsw_candidate_lists lists = {0};
    struct scan_case scan;
    struct on_device on;
    open_pair(&scan, &with, "duplicates.fbin", &on);
    for (int i = 0; i < 2; i++) check_batch(&scan, &on, 0, 4);
    setenv("BITSWEEP_EMULATOR_FAIL", "1", 1);
    assert_int_equal(scan_shard(&on, &on.shard, &(const struct bsw_query_range){&scan.batch, 0, 4},
                                NULL, KEEP, &scan.workspace, &lists),
                     BSW_ERROR_IO);
    unsetenv("BITSWEEP_EMULATOR_FAIL");
    if (!strstr(err.message, "emulated:0: scan: ")) fail_msg("%s", err.message);
    bsw_candidate_lists_deinit(&lists);
    close_pair(&scan, &on); // asks nothing of the device
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
