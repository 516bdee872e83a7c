// SPDX-License-Identifier: Apache-2.0
// Lists on an emulated device against bsw_list_scan: candidate lists that overflow, tables that are
// too short, groups of queries, additions, rows that are better and better or all alike;
// candidates that stay on the device; lists that come in blocks.
#include "device_lists_case.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "shard/host/list_scan.h"

struct chosen {
    uint32_t lists[QUERIES * LISTS], counts[QUERIES];
    float additions[QUERIES * LISTS];
    struct bsw_list_choice choice;
};

// The first query looks at one list, others at more; each begins somewhere else.
static void choose(int has_additions, struct chosen *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t q = 0; q < QUERIES; q++) {
        out->counts[q] = 1 + q % LISTS;
        for (uint32_t i = 0; i < LISTS; i++) {
            out->lists[q * LISTS + i] = (q * 4 + i * 2) % LISTS;
            out->additions[q * LISTS + i] =
                (float)((int)(bsw_hash2(q, i) % 2001) - 1000) * (i % 3 == 0 ? 1e-3f : 1e-6f);
        }
    }
    out->choice = (struct bsw_list_choice){.num_queries = QUERIES,
                                           .most = LISTS,
                                           .lists = out->lists,
                                           .counts = out->counts,
                                           .additions = has_additions ? out->additions : NULL};
}

// ---- on a device ----

struct lists_case {
    size_t keep, capacity, max_queries, items, slots; // the last two 0: as planned
    uint64_t memory;                                  // 0: enough
    int is_streamed;                                  // nothing of the codes stays there
};

static void open_lists(const struct scan_case *scan, const struct lists_case *with,
                       struct on_device *out)
{
    const struct bsw_device_options options = {
        .num_sharers = 1, .timeout_seconds = 60, .most_bytes = with->memory};
    const struct bsw_device_needs needs = {.shapes = &scan->host.shape,
                                           .num_shards = 1,
                                           .query_bits = QUERY_BITS,
                                           .max_queries =
                                               with->max_queries ? with->max_queries : QUERIES,
                                           .keep = with->keep,
                                           .capacity = with->capacity,
                                           .probe = LISTS};
    assert_ok(bsw_device_open(&options, &out->device, &err), &err);
    assert_ok(bsw_device_engine_open(out->device, &needs, &out->engine, &err), &err);
    if (with->items > 0) out->engine.plan.list_items = with->items;
    if (with->slots > 0) out->engine.plan.list_slots = with->slots;
    if (with->is_streamed) out->engine.plan.resident_bundles[0] = 0;
    assert_ok(bsw_resident_shard_load(&scan->manifest, temporary_folder, 0, 0, &out->host, &err),
              &err);
    make_order(&out->host);
    assert_ok(bsw_device_shard_load(&out->engine, 0, &out->host, &out->shard, &err), &err);
    if (!with->is_streamed)
        assert_int_equal(bsw_device_used_bytes(out->device),
                         bsw_device_plan_bytes(&out->engine.plan));
}

static struct bsw_device_task task_of(struct scan_case *scan,
                                      const struct bsw_device_shard *const *shard,
                                      const struct bsw_list_choice *choice, size_t keep)
{
    return (struct bsw_device_task){.maker = &bsw_device_items,
                                    .span = {shard, 1},
                                    .queries = {&scan->batch, 0, QUERIES},
                                    .choice = choice,
                                    .masks = scan->host.mask,
                                    .keep = keep,
                                    .workspace = &scan->workspace};
}

// As the CPU finds them; what was looked at is counted alike.
static void check_batch(struct scan_case *scan, struct on_device *on,
                        const struct bsw_list_choice *choice, const uint32_t *limits, size_t keep)
{
    struct bsw_candidate_lists expected = {0}, found = {0};
    struct bsw_list_groups groups = {0};
    const struct bsw_device_shard *shard = &on->shard;
    struct bsw_device_task task = task_of(scan, &shard, choice, keep);
    uint64_t num_pairs = 0, num_expected = 0, before = scan->workspace.num_pairs;
    task.limits = limits;
    assert_ok(bsw_list_scan(&scan->host, choice, &task.queries, 0, limits, keep, &groups,
                            &scan->workspace, &num_expected, &expected, &err),
              &err);
    uint64_t num_rows = scan->workspace.num_pairs - before;
    uint64_t allocations = bsw_device_num_allocations(on->device);
    assert_ok(bsw_device_scan(&on->engine, &task, &found, &num_pairs, &err), &err);
    assert_same_lists(&expected, &found);
    assert_int_equal(num_pairs, num_expected);
    assert_int_equal(scan->workspace.num_pairs - before, 2 * num_rows);
    assert_int_equal(bsw_device_num_allocations(on->device), allocations);
    bsw_candidate_lists_deinit(&expected);
    bsw_candidate_lists_deinit(&found);
    bsw_list_groups_deinit(&groups);
}

// Twice: the mask crosses with the first scan, for which memory is taken.
static void check_masked_batch(struct scan_case *scan, struct on_device *on,
                               const struct bsw_list_choice *choice, size_t keep)
{
    const struct bsw_device_shard *shard = &on->shard;
    const struct bsw_device_task task = task_of(scan, &shard, choice, keep);
    struct bsw_candidate_lists found = {0};
    assert_ok(bsw_device_scan(&on->engine, &task, &found, NULL, &err), &err);
    bsw_candidate_lists_deinit(&found);
    check_batch(scan, on, choice, NULL, keep);
}

// In every way: what queries chose, with additions where keys are floats, and all lists.
static void check_everything(struct scan_case *scan, const struct lists_case *with,
                             struct bsw_scan_counts *counts)
{
    struct on_device on;
    struct chosen chosen;
    open_lists(scan, with, &on);
    for (int has_additions = 0; has_additions <= scan->host.shape.has_affine; has_additions++) {
        choose(has_additions, &chosen);
        check_batch(scan, &on, &chosen.choice, NULL, with->keep);
    }
    check_batch(scan, &on, NULL, NULL, with->keep);
    *counts = on.engine.counts;
    close_on_device(&on);
}

UNIT_TEST(lists_are_those_of_the_cpu)
{
    static const struct lists_case cases[] = {{.keep = 10},
                                              {.keep = 1, .capacity = 33},
                                              {.keep = 100, .max_queries = 4},
                                              {.keep = ROWS + 100}};
    for (int codec = 0; codec < 2; codec++) {
        struct scan_case scan;
        struct bsw_scan_counts counts;
        open_lists_case(NULL, codec, &scan);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            check_everything(&scan, &cases[i], &counts);
        close_case(&scan);
    }
}

// One mask after another, then none.
static void check_masks(struct scan_case *scan, const struct lists_case *with)
{
    struct on_device on;
    struct chosen chosen;
    struct bsw_row_mask mask = {0};
    open_lists(scan, with, &on);
    choose(scan->host.shape.has_affine, &chosen);
    for (int kind = 0; kind < NUM_MASK_KINDS; kind++) {
        make_mask(kind, scan->host.shape.num_rows, &scan->host.order, scan->host.num_bundles,
                  &mask);
        scan->host.mask = &mask;
        check_masked_batch(scan, &on, &chosen.choice, with->keep);
        check_masked_batch(scan, &on, NULL, with->keep);
    }
    scan->host.mask = NULL;
    bsw_row_mask_deinit(&mask);
    check_batch(scan, &on, &chosen.choice, NULL, with->keep);
    close_on_device(&on);
}

UNIT_TEST(rows_that_a_mask_has)
{
    static const struct lists_case cases[] = {{.keep = 10}, {.keep = 100, .max_queries = 4}};
    struct scan_case scan;
    open_lists_case(NULL, 1, &scan);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_masks(&scan, &cases[i]);
    close_case(&scan);
}

// The host waits once for a batch whose lists have room.
UNIT_TEST(a_batch_is_queued_ahead)
{
    const struct lists_case with = {.keep = 20};
    struct scan_case scan;
    struct on_device on;
    struct chosen chosen;
    open_lists_case(NULL, 1, &scan);
    open_lists(&scan, &with, &on);
    choose(1, &chosen);
    check_batch(&scan, &on, &chosen.choice, NULL, 20);
    assert_int_equal(on.engine.counts.num_waits, 1);
    assert_int_equal(on.engine.counts.num_overflows, 0);
    close_on_device(&on);
    close_case(&scan);
}

// Tables that hold a few items or the queries of one list alone.
UNIT_TEST(tables_may_be_short)
{
    static const struct lists_case cases[] = {{.keep = 10, .items = 3},
                                              {.keep = 10, .slots = QUERIES},
                                              {.keep = 10, .items = 1, .slots = QUERIES + 2},
                                              {.keep = 5, .capacity = 200, .items = 2}};
    struct scan_case scan;
    struct bsw_scan_counts counts;
    open_lists_case(NULL, 1, &scan);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_everything(&scan, &cases[i], &counts);
    close_case(&scan);
}

// Rows of which each is better than all before, and rows that all tie, so that those that come last
// in their list have the smallest numbers: lists of candidates overflow.
UNIT_TEST(lists_that_overflow_are_scanned_again)
{
    static const char *const files[] = {"rising.fbin", "equal.fbin"};
    static const struct lists_case with = {.keep = 8, .capacity = 8 + 2 * BSW_BUNDLE_ROWS};
    for (int file = 0; file < 2; file++) {
        struct scan_case scan;
        struct bsw_scan_counts counts;
        open_lists_case(files[file], file == 0, &scan);
        check_everything(&scan, &with, &counts);
        assert_true(counts.num_overflows > 0);
        close_case(&scan);
    }
}

// Where codes do not fit, a part is on the device, or nothing; the last list is longer than any
// block, others share one.
UNIT_TEST(lists_that_do_not_fit_come_in_blocks)
{
    for (int codec = 0; codec < 2; codec++) {
        struct scan_case scan;
        open_lists_case(NULL, codec, &scan);
        for (int i = 0; i < 3; i++) {
            struct lists_case with = {.keep = 10, .capacity = 10 + 4 * BSW_BUNDLE_ROWS};
            struct bsw_scan_counts counts;
            struct on_device on;
            open_lists(&scan, &with, &on); // what there is beside the codes
            with.memory = bsw_device_plan_bytes(&on.engine.plan) - on.engine.plan.code_bytes / 2;
            close_on_device(&on);
            with.is_streamed = i > 0;
            with.slots = i == 2 ? QUERIES : 0;
            open_lists(&scan, &with, &on);
            assert_in_range(on.engine.plan.block_bundles, 2, 8);
            assert_int_equal(on.shard.resident.num_bundles == 0, i > 0);
            assert_true(on.shard.resident.num_bundles < on.shard.num_bundles);
            close_on_device(&on);
            check_everything(&scan, &with, &counts);
            check_masks(&scan, &with);
            assert_true(counts.copied_bytes > 0);
        }
        close_case(&scan);
    }
}

// Lists that stayed, as they lie there and as a take without cuts brings them.
static void check_kept(const struct scan_case *scan, struct on_device *on,
                       struct bsw_device_kept_span *kept,
                       const struct bsw_candidate_lists *expected)
{
    struct bsw_candidate_lists taken = {0};
    struct bsw_cut cuts[QUERIES];
    assert_int_equal(kept->num_queries, QUERIES);
    assert_int_equal(kept->first_row, scan->host.shape.first_row);
    assert_ok(bsw_device_wait(on->device, BSW_QUEUE_LINK, "candidates", &err), &err);
    for (size_t q = 0; q < QUERIES; q++) cuts[q] = bsw_keep_all();
    assert_ok(bsw_device_kept_take(kept, &on->engine.transfer, cuts, &taken, &err), &err);
    for (size_t q = 0; q < QUERIES; q++) {
        size_t count, num_taken;
        const uint64_t *list = bsw_candidate_list(expected, q, &count);
        const uint64_t *own = bsw_candidate_list(&taken, q, &num_taken);
        assert_int_equal(kept->offsets[q + 1] - kept->offsets[q], count);
        assert_memory_equal(kept->items + kept->offsets[q], list, count * sizeof *list);
        assert_int_equal(num_taken, count);
        assert_memory_equal(own, list, count * sizeof *list);
    }
    bsw_candidate_lists_deinit(&taken);
}

// For a merge on devices, one group of queries after another; a batch takes the place of the one
// before.
UNIT_TEST(candidates_may_stay)
{
    static const struct lists_case cases[] = {{.keep = 30}, {.keep = 300, .max_queries = 4}};
    static const struct bsw_shard_range whole = {0, 1};
    struct bsw_candidate_lists expected = {0}, found = {0};
    struct bsw_list_groups groups = {0};
    struct scan_case scan;
    struct chosen chosen;
    open_lists_case(NULL, 1, &scan);
    choose(1, &chosen);
    for (size_t i = 0; i < 2; i++) {
        const struct bsw_device_kept_needs needs = {&scan.host.shape, &whole, 1, QUERIES,
                                                    cases[i].keep};
        struct on_device on;
        struct bsw_device_kept kept;
        open_lists(&scan, &cases[i], &on);
        assert_ok(bsw_device_kept_open(on.device, &needs, &kept, &err), &err);
        for (int is_all = 0; is_all < 2; is_all++) {
            const struct bsw_list_choice *choice = is_all ? NULL : &chosen.choice;
            const struct bsw_device_shard *shard = &on.shard;
            struct bsw_device_task task = task_of(&scan, &shard, choice, needs.keep);
            uint64_t num_pairs = 0;
            task.kept = &kept.spans[0];
            assert_ok(bsw_list_scan(&scan.host, choice, &task.queries, 0, NULL, needs.keep, &groups,
                                    &scan.workspace, &num_pairs, &expected, &err),
                      &err);
            assert_ok(bsw_device_scan(&on.engine, &task, &found, NULL, &err), &err);
            for (size_t q = 0; q < QUERIES; q++)
                assert_int_equal(((const size_t *)(const void *)found.counts.data)[q],
                                 ((const size_t *)(const void *)expected.counts.data)[q]);
            check_kept(&scan, &on, &kept.spans[0], &expected);
        }
        bsw_device_kept_close(&kept);
        close_on_device(&on);
    }
    bsw_candidate_lists_deinit(&expected);
    bsw_candidate_lists_deinit(&found);
    bsw_list_groups_deinit(&groups);
    close_case(&scan);
}

// ---- in two steps ----

// A scan of `before` whose candidates stay, and of `next`, which was begun before they are taken.
struct begun_case {
    struct lists_case with;
    const char *file;
    int waits; // tables are too short to be queued at once
};

// What the host sees of a scan once it has waited: overwritten to tell whether it has.
static void forget_counts(const struct on_device *on)
{
    memset(on->engine.list_counts, 0xa5, QUERIES * sizeof *on->engine.list_counts);
}
// Only where a scan has to wait; in its random order the emulator may run what is queued at once.
static void check_forgotten(const struct on_device *on, int expected)
{
    const char *order = getenv("BITSWEEP_EMULATOR_ORDER");
    if (order && strcmp(order, "random") == 0) return;
    assert_int_equal(on->engine.list_counts[0] == 0xa5a5a5a5u, expected);
}

static void scan_to_stay(struct scan_case *scan, struct on_device *on, const struct chosen *chosen,
                         struct bsw_device_kept_span *kept, size_t keep)
{
    const struct bsw_device_shard *shard = &on->shard;
    struct bsw_device_task task = task_of(scan, &shard, &chosen->choice, keep);
    struct bsw_candidate_lists found = {0};
    task.kept = kept;
    assert_ok(bsw_device_scan(&on->engine, &task, &found, NULL, &err), &err);
    bsw_candidate_lists_deinit(&found);
}

static void check_begun(struct scan_case *scan, struct on_device *on, const struct begun_case *what,
                        struct bsw_device_kept_span *kept)
{
    const size_t keep = what->with.keep;
    const struct bsw_device_shard *shard = &on->shard;
    struct bsw_candidate_lists before = {0}, next = {0}, found = {0};
    struct bsw_list_groups groups = {0};
    struct chosen first, second;
    uint64_t num_pairs = 0, num_expected = 0;
    choose(1, &first);
    choose(1, &second);
    for (uint32_t q = 0; q < QUERIES; q++) second.counts[q] = LISTS - q % LISTS;
    struct bsw_device_task task = task_of(scan, &shard, &second.choice, keep);
    task.kept = kept;
    bsw_list_scan(&scan->host, &first.choice, &task.queries, 0, NULL, keep, &groups,
                  &scan->workspace, &num_expected, &before, &err);
    num_expected = 0;
    bsw_list_scan(&scan->host, &second.choice, &task.queries, 0, NULL, keep, &groups,
                  &scan->workspace, &num_expected, &next, &err);
    scan_to_stay(scan, on, &first, kept, keep);
    forget_counts(on);
    assert_ok(bsw_device_scan_begin(&on->engine, &task, &err), &err);
    check_forgotten(on, !what->waits);
    check_kept(scan, on, kept, &before);
    check_forgotten(on, !what->waits);
    assert_ok(bsw_device_scan_end(&on->engine, &found, &num_pairs, NULL, &err), &err);
    check_kept(scan, on, kept, &next);
    assert_int_equal(num_pairs, num_expected);
    // Begun and not wanted any more.
    assert_ok(bsw_device_scan_begin(&on->engine, &task, &err), &err);
    assert_ok(bsw_device_scan_end(&on->engine, NULL, NULL, NULL, &err), &err);
    scan_to_stay(scan, on, &first, kept, keep);
    check_kept(scan, on, kept, &before);
    bsw_candidate_lists_deinit(&before);
    bsw_candidate_lists_deinit(&next);
    bsw_candidate_lists_deinit(&found);
    bsw_list_groups_deinit(&groups);
}

// When candidates of the scan before are taken, the device has done nothing yet for the one that
// was begun, unless its tables are too short; a list that overflows, codes that come in blocks.
UNIT_TEST(a_scan_may_be_begun_beside_candidates)
{
    static const struct begun_case cases[] = {
        {{.keep = 30}, NULL, 0},
        {{.keep = 30, .items = 2}, NULL, 1},
        {{.keep = 8, .capacity = 8 + 2 * BSW_BUNDLE_ROWS}, "rising.fbin", 0},
        {{.keep = 10, .capacity = 10 + BSW_BUNDLE_ROWS, .is_streamed = 1}, NULL, 0},
        {{.keep = 10, .max_queries = QUERIES - 1}, NULL, 0}};
    static const struct bsw_shard_range whole = {0, 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct begun_case what = cases[i];
        const size_t keep = what.with.keep;
        struct scan_case scan;
        struct on_device on;
        struct bsw_device_kept kept;
        open_lists_case(what.file, 1, &scan);
        const struct bsw_device_kept_needs needs = {&scan.host.shape, &whole, 1, QUERIES, keep};
        open_lists(&scan, &what.with, &on);
        if (what.with.is_streamed) { // once more, with blocks
            what.with.memory =
                bsw_device_plan_bytes(&on.engine.plan) - on.engine.plan.code_bytes / 2;
            close_on_device(&on);
            open_lists(&scan, &what.with, &on);
            assert_in_range(on.engine.plan.block_bundles, 2, 8);
        }
        struct bsw_scan_counts *counts = &on.engine.counts;
        if (what.with.is_streamed && on.engine.plan.group_queries < QUERIES) {
            close_on_device(&on); // the small corpus of a race program: queries come in groups then
            close_case(&scan);
            continue;
        }
        assert_ok(bsw_device_kept_open(on.device, &needs, &kept, &err), &err);
        check_begun(&scan, &on, &what, &kept.spans[0]);
        bsw_device_kept_close(&kept);
        assert_int_equal(counts->num_overflows > 0, what.file != NULL);
        assert_int_equal(counts->copied_bytes > 0, what.with.is_streamed);
        close_on_device(&on);
        close_case(&scan);
    }
}

UNIT_TEST(limits_are_kept)
{
    static const struct lists_case with = {.keep = 50, .max_queries = 5};
    struct bsw_candidate_lists all = {0};
    struct scan_case scan;
    struct on_device on;
    struct chosen chosen;
    uint32_t limits[QUERIES];
    open_lists_case(NULL, 1, &scan);
    assert_ok(
        bsw_shard_scan(&scan.host, &scan.batch, 0, QUERIES, NULL, 300, &scan.workspace, &all, &err),
        &err);
    for (size_t q = 0; q < QUERIES; q++) {
        size_t count;
        const uint64_t *list = bsw_candidate_list(&all, q, &count);
        limits[q] = bsw_candidate_score(list[q % 3 == 0 ? 0 : 30 * q]) + (q % 4 == 1);
    }
    open_lists(&scan, &with, &on);
    choose(1, &chosen);
    check_batch(&scan, &on, &chosen.choice, limits, 50);
    check_batch(&scan, &on, NULL, limits, 50);
    bsw_candidate_lists_deinit(&all);
    close_on_device(&on);
    close_case(&scan);
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
