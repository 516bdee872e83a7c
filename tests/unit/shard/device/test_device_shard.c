// SPDX-License-Identifier: Apache-2.0
// Scans on an emulated device against bsw_shard_scan, which test_shard_scan.c compares with a full
// sort: blocks from host memory, and a device that fails.
#include "device_scan_case.h"

#include "shard/device/device_self_check.h"

// ---- the same lists ----

UNIT_TEST(lists_are_those_of_the_cpu)
{
    for (int i = -1; i < BSW_METRIC_NUM; i++) {
        struct small_index what = i < 0 ? duplicates(&bsw_codec_xfbq, BSW_METRIC_COSINE)
                                        : duplicates(&bsw_codec_saq, (enum bsw_metric)i);
        const size_t keeps[] = {1, 300, i % 2 ? ROWS : ROWS + 1000};
        struct scan_case scan;
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        for (size_t k = 0; k < 3; k++) {
            const struct device_case with = {.memory = ALL_MEMORY, .keep = keeps[k]};
            struct on_device on;
            open_on_device(&scan, &with, &on);
            assert_null(on.host.arrays.planes[0]); // the device has them
            assert_int_equal(on.engine.plan.block_bundles, 0);
            uint64_t allocations = bsw_device_num_allocations(on.device);
            assert_int_equal(bsw_device_used_bytes(on.device),
                             bsw_device_plan_bytes(&on.engine.plan));
            check_scan(&scan, &on, 0, QUERIES, NULL, keeps[k]);
            check_scan(&scan, &on, QUERIES - 1, 1, NULL, 1);
            check_scan(&scan, &on, 5, 0, NULL, 10);
            assert_int_equal(bsw_device_num_allocations(on.device), allocations);
            assert_int_equal(on.engine.counts.copied_bytes, 0);
            close_on_device(&on);
        }
        close_case(&scan);
    }
}

// Limits that many, few or no rows reach; all of them in groups of queries too.
UNIT_TEST(limits_and_groups_are_kept)
{
    for (int codec = 0; codec < 2; codec++) {
        const struct small_index what = duplicates(bsw_codecs[codec], BSW_METRIC_COSINE);
        struct scan_case scan;
        struct bsw_candidate_lists all = {0};
        uint32_t limits[QUERIES];
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        assert_ok(bsw_shard_scan(&scan.host, &scan.batch, 0, QUERIES, NULL, ROWS, &scan.workspace,
                                 &all, &err),
                  &err);
        for (size_t q = 0; q < QUERIES; q++) {
            size_t count;
            const uint64_t *list = bsw_candidate_list(&all, q, &count);
            size_t place = q % 3 == 0 ? count - 1 : q % 3 == 1 ? 0 : 60 * q;
            limits[q] = bsw_candidate_score(list[place]) + (q % 4 == 1);
        }
        for (size_t group = 1; group <= QUERIES; group += 4) {
            const struct device_case with[] = {
                {.keep = 50, .max_queries = group},
                {.keep = 10, .capacity = 300, .max_queries = group}}; // with a sample
            for (int i = 0; i < 2; i++) {
                struct on_device on;
                open_on_device(&scan, &with[i], &on);
                check_scan(&scan, &on, 0, QUERIES, limits, with[i].keep);
                assert_true((on.engine.counts.num_samples > 0) == (i == 1));
                close_on_device(&on);
            }
        }
        bsw_candidate_lists_deinit(&all);
        close_case(&scan);
    }
}

// One mask after another, and none: rows of codes that are all on the device, that come block by
// block, with queues and limits.
UNIT_TEST(rows_that_a_mask_has)
{
    static const struct device_case cases[] = {{.keep = 10, .capacity = 300},
                                               {.keep = ROWS, .is_plain = 1},
                                               {.keep = 50, .memory = 40000, .is_checked = 1},
                                               {.keep = 40, .queue = {1, 1}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct device_case *with = &cases[i];
        const struct small_index what = duplicates(bsw_codecs[i % 2], BSW_METRIC_COSINE);
        struct scan_case scan;
        struct on_device on;
        struct bsw_row_mask mask = {0};
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        scan.workspace.queue = with->queue;
        open_on_device(&scan, with, &on);
        for (int kind = 0; kind <= NUM_MASK_KINDS; kind++) {
            make_mask(kind, ROWS, &scan.host.order, scan.host.num_bundles, &mask);
            scan.host.mask = kind < NUM_MASK_KINDS ? &mask : NULL;
            check_scan(&scan, &on, 0, QUERIES, NULL, with->keep);
        }
        scan.host.mask = NULL;
        bsw_row_mask_deinit(&mask);
        close_on_device(&on);
        close_case(&scan);
    }
}

// Queries that a link has brought: nothing of them is read in host memory.
UNIT_TEST(queries_may_lie_on_the_device_already)
{
    for (int codec = 0; codec < 2; codec++) {
        const struct small_index what = duplicates(bsw_codecs[codec], BSW_METRIC_COSINE);
        struct scan_case scan;
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        size_t word_bytes = QUERIES * scan.batch.query_words * sizeof(uint32_t);
        size_t scale_bytes = QUERIES * sizeof(float);
        for (size_t group = 2; group <= QUERIES; group += 7) {
            const struct device_case with = {.keep = 50, .max_queries = group};
            struct bsw_device_buffer memory;
            struct on_device on;
            struct bsw_candidate_lists expected = {0}, found = {0};
            open_on_device(&scan, &with, &on);
            assert_ok(
                bsw_device_allocate(on.device, word_bytes + scale_bytes, "test", &memory, &err),
                &err);
            assert_ok(bsw_device_upload(on.device, BSW_QUEUE_LINK, memory.data, scan.batch.words,
                                        word_bytes, &err),
                      &err);
            assert_ok(bsw_device_upload(on.device, BSW_QUEUE_LINK, memory.data + word_bytes,
                                        scan.batch.scales, scale_bytes, &err),
                      &err);
            assert_ok(bsw_device_wait(on.device, BSW_QUEUE_LINK, "test", &err), &err);
            struct bsw_query_batch there = scan.batch;
            there.words = NULL;
            there.scales = NULL;
            there.d_words = (const uint32_t *)(const void *)memory.data;
            there.d_scales = (const float *)(const void *)(memory.data + word_bytes);
            assert_ok(bsw_shard_scan(&scan.host, &scan.batch, 1, QUERIES - 1, NULL, 50,
                                     &scan.workspace, &expected, &err),
                      &err);
            assert_ok(scan_shard(&on, &on.shard,
                                 &(const struct bsw_query_range){&there, 1, QUERIES - 1}, NULL, 50,
                                 &scan.workspace, &found),
                      &err);
            assert_same_lists(&expected, &found);
            bsw_candidate_lists_deinit(&expected);
            bsw_candidate_lists_deinit(&found);
            bsw_device_free(on.device, &memory);
            close_on_device(&on);
        }
        close_case(&scan);
    }
}

// Rounds of one block of queues and of more, lists that hold all rows, blocks of codes that end
// inside those of queues, groups of queries; limits that half the rows reach.
UNIT_TEST(queues_are_those_of_the_cpu)
{
    static const struct device_case cases[] = {
        {.keep = 40, .queue = {1, 1}},
        {.keep = 20, .capacity = 20 + 256, .queue = {1, 1}, .is_checked = 1},
        {.keep = 300, .max_queries = 4, .queue = {2, 2}, .is_checked = 1},
        {.keep = ROWS + 9, .queue = {BSW_QUEUE_MAX_ITEMS, BSW_QUEUE_MAX_LENGTH}, .is_checked = 1},
        {.keep = 10, .memory = 40000, .queue = {3, 1}, .is_checked = 1},
        {.keep = 50, .memory = 44000, .queue = {1, 1}, .is_checked = 1}};
    const uint32_t limits[3] = {0, 0x80000000u, 0x80000000u}; // keys of 0
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct small_index what = duplicates(bsw_codecs[i % 2], BSW_METRIC_COSINE);
        struct scan_case scan;
        struct on_device on;
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        open_on_device(&scan, &cases[i], &on);
        const struct bsw_device_plan *plan = &on.engine.plan;
        assert_true(plan->block_bundles < 8 && (cases[i].memory == 0 || plan->block_bundles > 0));
        assert_int_equal(bsw_device_used_bytes(on.device), bsw_device_plan_bytes(plan));
        uint64_t allocations = bsw_device_num_allocations(on.device);
        scan.workspace.queue = cases[i].queue;
        check_scan(&scan, &on, 0, QUERIES, NULL, cases[i].keep);
        check_scan(&scan, &on, 2, 3, limits, cases[i].keep);
        assert_int_equal(bsw_device_num_allocations(on.device), allocations);
        close_on_device(&on);
        close_case(&scan);
    }
}

// ---- the first stage ----

// Real descriptors, 128-d with the stage at 64: the device stops what the CPU's bound stops, or
// nearly so, in all but the first segment, with and without blocks.
UNIT_TEST(a_stage_stops_most_rows)
{
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        const struct small_index what = {.source = TEST_DATA_FOLDER "/sift20k_base.u8bin",
                                         .last_row = 2500,
                                         .codec = &bsw_codec_saq,
                                         .metric = (enum bsw_metric)metric,
                                         .bits = 2};
        unsigned char numbers[QUERIES * 128];
        float *vectors = allocate_or_fail(sizeof numbers, sizeof *vectors);
        bsw_vectors *queries;
        struct scan_case scan;
        assert_ok(
            bsw_vectors_open(TEST_DATA_FOLDER "/sift20k_query.u8bin", BSW_ALL_ROWS, &queries, &err),
            &err);
        assert_ok(bsw_vectors_read(queries, 0, QUERIES, numbers, &err), &err);
        for (size_t i = 0; i < sizeof numbers; i++) vectors[i] = numbers[i];
        bsw_vectors_close(&queries);
        open_case(&what, vectors, &scan);
        assert_int_equal(scan.host.stage_dims, 64);
        for (uint64_t memory = 0; memory <= 200000; memory += 200000) {
            const struct device_case with = {.memory = memory, .keep = 10, .capacity = 300};
            struct on_device on;
            open_on_device(&scan, &with, &on);
            scan.workspace.num_pairs = scan.workspace.num_stopped = 0;
            struct bsw_candidate_lists lists = {0};
            scan.workspace.scan = BSW_SCAN_PROGRESSIVE_PLANES;
            assert_ok(scan_shard(&on, &on.shard,
                                 &(const struct bsw_query_range){&scan.batch, 0, QUERIES}, NULL, 10,
                                 &scan.workspace, &lists),
                      &err);
            double share = (double)scan.workspace.num_stopped / (double)scan.workspace.num_pairs;
            assert_int_equal(scan.workspace.used, BSW_SCAN_PROGRESSIVE_MATRIX);
            if (share < 0.5 || share >= 1) fail_msg("%.1f %% stopped", 100 * share);
            bsw_candidate_lists_deinit(&lists);
            check_scan(&scan, &on, 0, QUERIES, NULL, 10);
            close_on_device(&on);
        }
        close_case(&scan);
    }
}

// ---- blocks ----

UNIT_TEST(codes_come_in_blocks)
{
    for (int codec = 0; codec < 2; codec++) {
        const struct small_index what = duplicates(bsw_codecs[codec], BSW_METRIC_COSINE);
        struct scan_case scan;
        int seen = 0; // 1: some bundles on the device, 2: none
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        for (uint64_t memory = 26000; memory < 130000; memory += memory / 3) {
            const struct device_case with = {.memory = memory, .keep = 10};
            struct on_device on;
            open_on_device(&scan, &with, &on);
            if (on.engine.plan.block_bundles > 0) {
                size_t resident = on.shard.resident.num_bundles;
                seen |= resident > 0 ? 1 : 2;
                assert_true(on.shard.num_pinned > 0);
                assert_non_null(on.host.arrays.planes[0]);
                uint64_t allocations = bsw_device_num_allocations(on.device);
                check_scan(&scan, &on, 0, QUERIES, NULL, 10);
                assert_int_equal(bsw_device_num_allocations(on.device), allocations);
                uint64_t bytes =
                    (on.shard.num_bundles - resident) *
                    bsw_device_bundle_bytes(&on.engine.plan.layout, on.engine.plan.has_affine,
                                            on.engine.plan.stage_dims > 0);
                assert_int_equal(bytes, on.engine.plan.streamed_bytes);
                assert_true(on.engine.counts.copied_bytes >=
                            3 * bytes); // 3 scans at least, all groups
                assert_int_equal(on.engine.counts.copied_bytes % bytes, 0);
            }
            assert_true(bsw_device_used_bytes(on.device) <= memory);
            assert_int_equal(bsw_device_used_bytes(on.device),
                             bsw_device_plan_bytes(&on.engine.plan));
            close_on_device(&on);
        }
        assert_true(seen & 1);
        close_case(&scan);
    }
}

// Codes that may not be pinned go through pinned blocks, whose copies never wait in the driver.
UNIT_TEST(codes_that_cannot_be_pinned_go_through_blocks)
{
    const struct small_index what = duplicates(&bsw_codec_saq, BSW_METRIC_L2);
    const struct device_case with = {.memory = 40000, .keep = 10};
    struct scan_case scan;
    unsigned turns[2]; // of the blocks, which lists come through, too
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    for (int is_refused = 0; is_refused < 2; is_refused++) {
        struct on_device on;
        if (is_refused)
            setenv("BITSWEEP_EMULATOR_REFUSE_REGISTER", "2", 1); // after the first piece
        open_on_device(&scan, &with, &on);
        unsetenv("BITSWEEP_EMULATOR_REFUSE_REGISTER");
        assert_true(on.engine.plan.block_bundles > 0 && on.shard.is_pinned == !is_refused);
        turns[is_refused] = on.engine.transfer.turn;
        check_scan(&scan, &on, 0, QUERIES, NULL, 10);
        turns[is_refused] = on.engine.transfer.turn - turns[is_refused];
        close_on_device(&on);
    }
    assert_true(turns[1] > turns[0]);
    close_case(&scan);
}

// ---- faults ----

static void check_fault(const char *variable, const char *number, const char *text)
{
    const struct small_index what = duplicates(&bsw_codec_saq, BSW_METRIC_L2);
    const struct device_case with = {.keep = 10, .timeout = 0.2};
    struct bsw_candidate_lists lists = {0};
    struct scan_case scan;
    struct on_device on;
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    open_on_device(&scan, &with, &on);
    setenv(variable, number, 1);
    assert_int_equal(scan_shard(&on, &on.shard,
                                &(const struct bsw_query_range){&scan.batch, 0, QUERIES}, NULL, 10,
                                &scan.workspace, &lists),
                     BSW_ERROR_IO);
    if (!strstr(err.message, text)) fail_msg("%s", err.message);
    assert_int_equal(strncmp(err.message, "emulated:0: ", 12), 0);
    unsetenv(variable);
    close_on_device(&on); // asks nothing of the device
    bsw_candidate_lists_deinit(&lists);
    close_case(&scan);
}

UNIT_TEST(a_silent_device_ends_at_the_deadline)
{
    check_fault("BITSWEEP_EMULATOR_STALL", "1", "not done within 0.2 s");
}

UNIT_TEST(a_failed_launch_is_told)
{
    check_fault("BITSWEEP_EMULATOR_FAIL", "1", "scan: cudaErrorLaunchFailure");
}

// Other bits in the codes that the CPU sees: no scan on the device can agree with it any more.
UNIT_TEST(wrong_bits_are_noticed_at_the_start)
{
    for (int codec = 0; codec < 2; codec++) {
        const struct small_index what = duplicates(bsw_codecs[codec], BSW_METRIC_COSINE);
        struct scan_case scan;
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        const struct device_case with = {.memory = 40000, .keep = 10}; // in blocks: codes stay
        struct on_device on;
        open_on_device(&scan, &with, &on);
        assert_true(on.engine.is_checked && on.shard.resident.num_bundles > 0);
        uint64_t segments = on.engine.counts.num_segments;
        assert_ok(bsw_device_self_check(&on.engine, &on.shard, &err), &err);
        assert_int_equal(on.engine.counts.num_segments, segments);
        // The weightiest bit of every 32nd dimension of all rows.
        const struct bsw_segment *segment = &scan.host.shape.layout.segments[0];
        for (size_t b = 0; b < on.host.num_bundles; b++) {
            uint32_t *planes = on.host.arrays.planes[0] + b * bsw_segment_bundle_words(segment);
            for (uint32_t i = 0; i < segment->words * BSW_BUNDLE_ROWS; i++) planes[i] ^= 1;
        }
        assert_int_equal(bsw_device_self_check(&on.engine, &on.shard, &err), BSW_ERROR_SELF_CHECK);
        assert_non_null(strstr(err.message, "emulated:0: the planes scan of rows 0 to "));
        close_on_device(&on);
        close_case(&scan);
    }
}

UNIT_TEST(too_little_memory_is_told_with_numbers)
{
    const struct small_index what = duplicates(&bsw_codec_saq, BSW_METRIC_L2);
    const struct bsw_device_options options = {
        .num_sharers = 1, .most_bytes = 4000, .timeout_seconds = 60};
    struct scan_case scan;
    bsw_device *device;
    struct bsw_device_engine engine;
    struct bsw_device_buffer buffer;
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    const struct bsw_device_needs needs = {.shapes = &scan.host.shape,
                                           .num_shards = 1,
                                           .query_bits = QUERY_BITS,
                                           .max_queries = 1,
                                           .keep = 10};
    assert_ok(bsw_device_open(&options, &device, &err), &err);
    assert_int_equal(bsw_device_engine_open(device, &needs, &engine, &err),
                     BSW_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(err.message, "emulated:0: 4000 bytes of device memory are free, "));
    assert_int_equal(bsw_device_allocate(device, 4001, "codes", &buffer, &err),
                     BSW_ERROR_OUT_OF_MEMORY);
    assert_string_equal(err.message,
                        "emulated:0: codes: no device memory for 4001 bytes, 4000 are free");
    assert_ok(bsw_device_allocate(device, 4000, "codes", &buffer, &err), &err);
    bsw_device_free(device, &buffer);
    bsw_device_close(&device);
    close_case(&scan);
}

// ---- spans ----

enum { SPAN_SHARDS = 4 };

struct span_case {
    struct bsw_manifest manifest;
    bsw_device *device;
    struct bsw_device_engine engine;
    struct bsw_resident_shard hosts[SPAN_SHARDS];
    struct bsw_device_shard shards[SPAN_SHARDS];
    const struct bsw_device_shard *pointers[SPAN_SHARDS];
};

// The same rows as the case's, in several shards.
static void open_span(const struct small_index *what, const struct scan_case *scan,
                      const struct device_case *with, struct span_case *out)
{
    const struct bsw_shard_range all = {0, SPAN_SHARDS};
    const struct bsw_device_options options = {
        .num_sharers = 1, .most_bytes = with->memory, .timeout_seconds = 60};
    struct small_index split = *what;
    struct bsw_shard_shape shapes[SPAN_SHARDS];
    memset(out, 0, sizeof *out);
    split.num_shards = SPAN_SHARDS;
    make_small_index(&split, temporary_folder, &out->manifest);
    for (uint32_t s = 0; s < SPAN_SHARDS; s++) {
        bsw_shard_shape_init(&shapes[s], &out->manifest, s);
        assert_ok(
            bsw_resident_shard_load(&out->manifest, temporary_folder, s, 0, &out->hosts[s], &err),
            &err);
    }
    const struct bsw_device_needs needs = {.shapes = shapes,
                                           .num_shards = SPAN_SHARDS,
                                           .spans = &all,
                                           .num_spans = 1,
                                           .query_bits = QUERY_BITS,
                                           .max_queries = QUERIES,
                                           .keep = with->keep,
                                           .capacity = with->capacity,
                                           .graphs = BSW_GRAPHS_ON,
                                           .stage_dims = scan->host.stage_dims};
    assert_ok(bsw_device_open(&options, &out->device, &err), &err);
    assert_ok(bsw_device_engine_open(out->device, &needs, &out->engine, &err), &err);
    out->engine.is_checked = 1;
    for (uint32_t s = 0; s < SPAN_SHARDS; s++) {
        assert_ok(bsw_device_shard_load(&out->engine, s, &out->hosts[s], &out->shards[s], &err),
                  &err);
        out->pointers[s] = &out->shards[s];
    }
}

static void close_span(struct span_case *span)
{
    for (uint32_t s = 0; s < SPAN_SHARDS; s++) {
        bsw_device_shard_unload(&span->engine, &span->shards[s]);
        bsw_resident_shard_unload(&span->hosts[s]);
    }
    bsw_device_engine_close(&span->engine);
    bsw_device_close(&span->device);
    bsw_manifest_deinit(&span->manifest);
}

// Each shard has its part of the mask.
static void check_span_masks(struct scan_case *scan, struct span_case *on,
                             const struct bsw_device_task *task)
{
    for (int kind = 1; kind < 5; kind += 3) {
        struct bsw_device_task masked = *task;
        struct bsw_row_mask all = {0}, masks[SPAN_SHARDS];
        struct bsw_candidate_lists expected = {0}, found = {0};
        uint64_t rows = scan->host.shape.num_rows;
        uint32_t *bits = make_mask_bits(kind, 0, rows);
        make_mask(kind, rows, &scan->host.order, scan->host.num_bundles, &all);
        memset(masks, 0, sizeof masks);
        for (uint32_t s = 0; s < SPAN_SHARDS; s++) {
            const struct bsw_shard_shape *shape = &on->hosts[s].shape;
            assert_ok(bsw_row_mask_make(bits, shape->first_row, shape->num_rows,
                                        &on->hosts[s].order, on->hosts[s].num_bundles, &masks[s],
                                        &err),
                      &err);
        }
        masked.masks = masks;
        scan->host.mask = &all;
        scan->workspace.scan = BSW_SCAN_MATRIX;
        assert_ok(bsw_shard_scan(&scan->host, &scan->batch, 1, QUERIES - 1, NULL, task->keep,
                                 &scan->workspace, &expected, &err),
                  &err);
        assert_ok(bsw_device_scan(&on->engine, &masked, &found, NULL, &err), &err);
        assert_same_lists(&expected, &found);
        scan->host.mask = NULL;
        for (uint32_t s = 0; s < SPAN_SHARDS; s++) bsw_row_mask_deinit(&masks[s]);
        bsw_row_mask_deinit(&all);
        bsw_candidate_lists_deinit(&expected);
        bsw_candidate_lists_deinit(&found);
        bsw_free(&bits);
    }
}

// Shards of no whole bundles. Where all are on the device one wait is enough for all of them; where
// a list overflows they are scanned step by step.
static void check_span(const char *source, int codec, const struct device_case *with)
{
    struct small_index what = duplicates(bsw_codecs[codec], BSW_METRIC_COSINE);
    struct bsw_candidate_lists expected = {0}, found = {0};
    struct scan_case scan;
    struct span_case on;
    what.source = path_of(source);
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    open_span(&what, &scan, with, &on);
    const struct bsw_device_task task = {.maker = &bsw_device_whole,
                                         .span = {on.pointers, SPAN_SHARDS},
                                         .queries = {&scan.batch, 1, QUERIES - 1},
                                         .keep = with->keep,
                                         .workspace = &scan.workspace};
    if (with->keep < ROWS) check_span_masks(&scan, &on, &task);
    int is_short = strcmp(source, "equal.fbin") == 0, is_streamed = with->memory > 0;
    for (int kind = BSW_SCAN_PLANES; kind <= BSW_SCAN_PROGRESSIVE_MATRIX; kind++) {
        const struct bsw_scan_counts before = on.engine.counts, *now = &on.engine.counts;
        int is_staged = bsw_scan_is_progressive((enum bsw_scan_kind)kind);
        if (is_staged && scan.host.stage_dims == 0) continue;
        scan.workspace.scan = (enum bsw_scan_kind)kind;
        assert_ok(bsw_shard_scan(&scan.host, &scan.batch, 1, QUERIES - 1, NULL, with->keep,
                                 &scan.workspace, &expected, &err),
                  &err);
        assert_ok(bsw_device_scan(&on.engine, &task, &found, NULL, &err), &err);
        assert_same_lists(&expected, &found);
        assert_int_equal(now->copied_bytes > before.copied_bytes, is_streamed);
        if (is_staged) continue;
        assert_int_equal(now->num_overflows > before.num_overflows, is_short);
        if (!is_short && !is_streamed) assert_int_equal(now->num_waits - before.num_waits, 1);
        if (with->capacity > 0) assert_true(now->num_samples > before.num_samples);
    }
    bsw_candidate_lists_deinit(&expected);
    bsw_candidate_lists_deinit(&found);
    close_span(&on);
    close_case(&scan);
}

// A device without a first stage scans in full: the same rows.
UNIT_TEST(other_devices_scan_in_full)
{
    static const struct device_case with = {.keep = 10, .capacity = 300};
    unsetenv("BITSWEEP_EMULATOR_HOPPER");
    check_span("duplicates.fbin", 1, &with);
    setenv("BITSWEEP_EMULATOR_HOPPER", "1", 1);
}

UNIT_TEST(a_span_is_scanned_as_one_shard)
{
    static const struct device_case cases[] = {
        {.keep = 10, .capacity = 300}, {.keep = ROWS}, {.keep = 50, .memory = 40000}};
    static const struct device_case short_lists = {.keep = 2, .capacity = 128};
    for (int codec = 0; codec < 2; codec++) {
        for (int i = 0; i < 3; i++) check_span("duplicates.fbin", codec, &cases[i]);
        check_span("equal.fbin", codec, &short_lists);
    }
}

// Hopper GPUs have a first stage.
int main(void)
{
    setenv("BITSWEEP_EMULATOR_HOPPER", "1", 1);
    return run_unit_tests(make_files, remove_temporary_folder);
}
