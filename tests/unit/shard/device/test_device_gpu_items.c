// SPDX-License-Identifier: Apache-2.0
// Lists of queries and work items that an emulated device makes, against the host's choice and
// bsw_list_scan: the same candidates with one wait and few launches, nearest lists in parts,
// additions, limits; what does not fit, and what shows only in the end, is done as ever.
#include "device_lists_case.h"

#include "common/base/arithmetic.h"
#include "kernels/device_scan/device_tuning.h"
#include "shard/device/device_coarse.h"
#include "shard/host/list_scan.h"

enum { MOST_LAUNCHES = 14 }; // and one for exact values

static float centroids[LISTS * DIMS], center[DIMS];

struct gpu_case {
    size_t keep, capacity, max_queries, items, slots, most_kept; // the last three 0: as planned
    struct bsw_probe_settings probe;
    int has_additions;
    const char *file;
    // What becomes of it: the device's way is not taken, or was of no use; passes, 0: as steps.
    int is_host, is_refused, overflows;
    uint64_t segments;
};

struct gpu_lists {
    struct scan_case scan;
    struct on_device on;
    struct bsw_manifest manifest; // of centroids alone
    struct bsw_coarse_search *host, *own;
    struct bsw_device_coarse coarse;
    struct bsw_device_tuning tuning;
};

static void make_centroids(struct gpu_lists *lists)
{
    for (size_t i = 0; i < LISTS * DIMS; i++)
        centroids[i] = (float)(bsw_hash2(1, i) % 2001) * 1e-3f - 1.0f;
    for (size_t d = 0; d < DIMS; d++) center[d] = (float)(bsw_hash2(2, d) % 100) * 1e-4f;
    lists->manifest = (struct bsw_manifest){.metric = BSW_METRIC_L2,
                                            .row_dims = DIMS,
                                            .lists = {.count = LISTS, .centroids = centroids}};
}

static void open_coarse(const struct gpu_case *with, struct gpu_lists *lists)
{
    const struct bsw_device_coarse_needs needs = {.num_lists = LISTS,
                                                  .dims = DIMS,
                                                  .max_queries = QUERIES,
                                                  .probe = with->probe.probe,
                                                  .stays = 1,
                                                  .has_additions = with->has_additions};
    const float *less = with->has_additions ? center : NULL;
    struct bsw_coarse_search **searches[] = {&lists->host, &lists->own};
    for (int i = 0; i < 2; i++)
        assert_ok(bsw_coarse_search_open(&lists->manifest, &with->probe, less, BSW_CPU_REFERENCE, 2,
                                         searches[i], &err),
                  &err);
    assert_ok(
        bsw_device_coarse_open(lists->on.device, &needs, (size_t)1 << 30, &lists->coarse, &err),
        &err);
    if (with->most_kept > 0) lists->coarse.most_kept = with->most_kept;
    assert_ok(bsw_device_coarse_take(&lists->coarse, lists->own, &err), &err);
}

static void open_engine(const struct gpu_case *with, struct gpu_lists *lists)
{
    const struct bsw_device_options options = {.num_sharers = 1, .timeout_seconds = 60};
    struct on_device *on = &lists->on;
    lists->tuning = *bsw_device_tuning_find(8, 6);
    lists->tuning.has_gpu_lists = 1;
    const struct bsw_device_needs needs = {.shapes = &lists->scan.host.shape,
                                           .num_shards = 1,
                                           .query_bits = QUERY_BITS,
                                           .max_queries =
                                               with->max_queries ? with->max_queries : QUERIES,
                                           .keep = with->keep,
                                           .capacity = with->capacity,
                                           .probe = LISTS,
                                           .tuning = &lists->tuning};
    assert_ok(bsw_device_open(&options, &on->device, &err), &err);
    assert_ok(bsw_device_engine_open(on->device, &needs, &on->engine, &err), &err);
    if (with->items > 0) on->engine.plan.list_items = with->items;
    if (with->slots > 0) on->engine.plan.list_slots = with->slots;
    assert_ok(
        bsw_resident_shard_load(&lists->scan.manifest, temporary_folder, 0, 0, &on->host, &err),
        &err);
    make_order(&on->host);
    assert_ok(bsw_device_shard_load(&on->engine, 0, &on->host, &on->shard, &err), &err);
    assert_int_equal(bsw_device_used_bytes(on->device), bsw_device_plan_bytes(&on->engine.plan));
}

static void open_gpu_lists(const struct gpu_case *with, struct gpu_lists *out)
{
    memset(out, 0, sizeof *out);
    open_lists_case(with->file, 1, &out->scan);
    make_centroids(out);
    open_engine(with, out);
    open_coarse(with, out);
}

static void close_gpu_lists(struct gpu_lists *lists)
{
    bsw_coarse_search_close(&lists->host);
    bsw_coarse_search_close(&lists->own);
    bsw_device_coarse_close(&lists->coarse);
    close_on_device(&lists->on);
    close_case(&lists->scan);
}

// What both find of a batch, and how many pairs of query and list that were.
struct found_lists {
    struct bsw_candidate_lists expected, found;
    uint64_t num_expected, num_pairs;
};

static void scan_by_host(struct gpu_lists *lists, const struct bsw_device_task *task,
                         struct found_lists *out)
{
    struct bsw_list_groups groups = {0};
    struct bsw_list_choice choice;
    assert_ok(bsw_coarse_search_run(lists->host, lists->scan.batch.vectors, QUERIES, &choice, &err),
              &err);
    assert_ok(bsw_list_scan(&lists->scan.host, &choice, &task->queries, 0, task->limits, task->keep,
                            &groups, &lists->scan.workspace, &out->num_expected, &out->expected,
                            &err),
              &err);
    bsw_list_groups_deinit(&groups);
}

// A batch in two steps; returns how many kernels were launched for it.
static uint64_t scan_by_device(struct gpu_lists *lists, struct bsw_device_task *task,
                               struct found_lists *out)
{
    struct bsw_list_choice choice;
    uint64_t before = bsw_device_launches();
    assert_ok(bsw_coarse_search_run(lists->own, lists->scan.batch.vectors, QUERIES, &choice, &err),
              &err);
    assert_null(choice.lists);
    task->choice = &choice;
    uint64_t allocations = bsw_device_num_allocations(lists->on.device);
    assert_ok(bsw_device_scan_begin(&lists->on.engine, task, &err), &err);
    assert_ok(bsw_device_scan_end(&lists->on.engine, &out->found, &out->num_pairs, NULL, &err),
              &err);
    assert_int_equal(bsw_device_num_allocations(lists->on.device), allocations);
    return bsw_device_launches() - before;
}

static void check_batch(struct gpu_lists *lists, const struct gpu_case *with,
                        const uint32_t *limits)
{
    const struct bsw_device_shard *shard = &lists->on.shard;
    struct bsw_device_task task = {.maker = &bsw_device_items,
                                   .span = {&shard, 1},
                                   .queries = {&lists->scan.batch, 0, QUERIES},
                                   .coarse = &lists->coarse,
                                   .limits = limits,
                                   .keep = with->keep,
                                   .workspace = &lists->scan.workspace};
    const struct bsw_scan_counts before = lists->on.engine.counts;
    const struct bsw_scan_counts *now = &lists->on.engine.counts;
    struct found_lists both = {0};
    uint64_t pairs = lists->scan.workspace.num_pairs;
    scan_by_host(lists, &task, &both);
    uint64_t num_rows = lists->scan.workspace.num_pairs - pairs;
    uint64_t launches = scan_by_device(lists, &task, &both);
    assert_same_lists(&both.expected, &both.found);
    assert_int_equal(both.num_pairs, both.num_expected);
    assert_int_equal(lists->scan.workspace.num_pairs - pairs, 2 * num_rows);
    int is_whole = !with->is_host && !with->is_refused && !with->overflows;
    assert_int_equal(now->num_gpu_lists - before.num_gpu_lists, is_whole);
    assert_int_equal(lists->coarse.placed != 0, !with->is_host);
    assert_int_equal(lists->coarse.refused != 0, with->is_refused);
    if (!with->is_host)
        assert_int_equal(now->num_overflows > before.num_overflows, with->overflows);
    if (is_whole) assert_int_equal(now->num_waits - before.num_waits, 1);
    if (is_whole && with->segments == 3) assert_in_range(launches, 1, MOST_LAUNCHES);
    if (with->segments > 0)
        assert_int_equal(now->num_segments - before.num_segments, with->segments);
    bsw_candidate_lists_deinit(&both.expected);
    bsw_candidate_lists_deinit(&both.found);
}

// Twice, so that what a batch leaves behind is seen.
static void check(const struct gpu_case *with, const uint32_t *limits)
{
    struct gpu_lists lists;
    open_gpu_lists(with, &lists);
    for (int i = 0; i < 2; i++) check_batch(&lists, with, limits);
    close_gpu_lists(&lists);
}

UNIT_TEST(a_batch_waits_once)
{
    static const struct gpu_case cases[] = {
        {.keep = 10, .probe = {LISTS, 0, 0}, .has_additions = 1, .segments = 3},
        {.keep = 300, .probe = {LISTS, 0, 0}, .segments = 3},
        {.keep = 1, .probe = {1, 0, 0}, .segments = 1},
        {.keep = 20, .probe = {6, 1.05, 0}, .has_additions = 1, .segments = 2},
        {.keep = ROWS + 100, .probe = {5, 0, 0}, .segments = 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check(&cases[i], NULL);
}

// Nearest lists that are longer than there is room for.
UNIT_TEST(nearest_lists_come_in_parts)
{
    static const struct gpu_case with = {
        .keep = 30, .capacity = 30 + 4 * BSW_BUNDLE_ROWS, .probe = {1, 0, 0}, .has_additions = 1};
    struct gpu_lists lists;
    open_gpu_lists(&with, &lists);
    check_batch(&lists, &with, NULL);
    uint64_t longest = lists.on.shard.longest[1];
    assert_int_equal(lists.on.engine.counts.num_segments, (longest + 3) / 4);
    close_gpu_lists(&lists);
}

UNIT_TEST(limits_are_kept)
{
    static const struct gpu_case with = {
        .keep = 50, .probe = {LISTS, 0, 0}, .has_additions = 1, .segments = 3};
    uint32_t limits[QUERIES];
    for (uint32_t q = 0; q < QUERIES; q++) limits[q] = q % 3 == 0 ? 0 : 0x3f000000u + q * 1000;
    limits[4] = UINT32_MAX;
    check(&with, limits);
}

// Lists of candidates that overflow, and too few lists kept to tell those of a ratio: the host does
// it again. Tables that are too short, and batches of more than a group: it does from the first.
UNIT_TEST(what_does_not_go_is_done_by_the_host)
{
    static const struct gpu_case cases[] = {
        {.keep = 8,
         .capacity = 8 + BSW_BUNDLE_ROWS,
         .probe = {LISTS, 0, 0},
         .has_additions = 1,
         .is_host = 1}, // parts of one bundle are more than there are passes for
        {.keep = 8,
         .capacity = 8 + 2 * BSW_BUNDLE_ROWS,
         .probe = {LISTS, 0, 0},
         .file = "rising.fbin",
         .overflows = 1},
        {.keep = 10, .probe = {LISTS, 100, 0}, .most_kept = 3, .is_refused = 1},
        {.keep = 10, .probe = {LISTS, 0, 0}, .items = 3, .is_host = 1},
        {.keep = 10, .probe = {LISTS, 0, 0}, .slots = QUERIES, .is_host = 1},
        {.keep = 10, .probe = {LISTS, 0, 0}, .max_queries = 4, .is_host = 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check(&cases[i], NULL);
}

// Candidates of a batch that stay, with those of another that is begun beside them.
UNIT_TEST(candidates_may_stay)
{
    static const struct gpu_case with = {.keep = 30, .probe = {LISTS, 0, 0}, .has_additions = 1};
    static const struct bsw_shard_range whole = {0, 1};
    struct gpu_lists lists;
    struct bsw_device_kept kept;
    struct found_lists both = {0};
    struct bsw_cut cuts[QUERIES];
    open_gpu_lists(&with, &lists);
    const struct bsw_device_kept_needs needs = {&lists.scan.host.shape, &whole, 1, QUERIES,
                                                with.keep};
    const struct bsw_device_shard *shard = &lists.on.shard;
    struct bsw_device_task task = {.maker = &bsw_device_items,
                                   .span = {&shard, 1},
                                   .queries = {&lists.scan.batch, 0, QUERIES},
                                   .coarse = &lists.coarse,
                                   .keep = with.keep,
                                   .workspace = &lists.scan.workspace};
    assert_ok(bsw_device_kept_open(lists.on.device, &needs, &kept, &err), &err);
    task.kept = &kept.spans[0];
    for (size_t q = 0; q < QUERIES; q++) cuts[q] = bsw_keep_all();
    scan_by_host(&lists, &task, &both);
    scan_by_device(&lists, &task, &both);
    struct bsw_list_choice next;
    assert_ok(bsw_coarse_search_run(lists.own, lists.scan.batch.vectors, QUERIES, &next, &err),
              &err);
    task.choice = &next;
    assert_ok(bsw_device_scan_begin(&lists.on.engine, &task, &err), &err);
    assert_ok(
        bsw_device_kept_take(&kept.spans[0], &lists.on.engine.transfer, cuts, &both.found, &err),
        &err);
    assert_same_lists(&both.expected, &both.found);
    assert_ok(bsw_device_scan_end(&lists.on.engine, NULL, NULL, NULL, &err), &err);
    scan_by_device(&lists, &task, &both);
    assert_int_equal(lists.on.engine.counts.num_gpu_lists, 2);
    bsw_device_kept_close(&kept);
    bsw_candidate_lists_deinit(&both.expected);
    bsw_candidate_lists_deinit(&both.found);
    close_gpu_lists(&lists);
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
