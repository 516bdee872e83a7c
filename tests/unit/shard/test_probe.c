// SPDX-License-Identifier: Apache-2.0
// Work items and row masks: random ones, scanned in every way on every back end, against keys of
// the plain C references, sorted.
#include "small_index.h"
#include "temporary_folder.h"

#include "common/base/integer_hash.h"
#include "common/codes/result_order.h"
#include "kernels/encode/raw_codes.h"
#include "shard/codecs/pinned_queries.h"
#include "shard/host/plain_score.h"
#include "shard/host/shard_scan.h"
#include "shard/probe.h"

enum {
    QUERIES = 11,
    KEEP = 40,
    MOST_ITEMS = 6,
    MOST_ROWS = 1400,
    ROUNDS = TEST_IS_SANITIZED ? 4 : 12
};

static struct bsw_error err;
static uint64_t num_draws;

static uint64_t draw(uint64_t range)
{
    return bsw_hash2(0x9b0be, num_draws++) % range;
}

// ---- a shard on a back end ----

struct probed {
    struct bsw_manifest manifest;
    struct bsw_search_settings settings;
    const struct bsw_backend *backend;
    void *state;
    bsw_device *device;
    struct bsw_resident_shard resident, plain; // plain: with its codes, whatever the back end does
    struct bsw_backend_shard shard;
    struct bsw_pinned_queries queries;
    uint32_t (*scores)[MOST_ROWS]; // [QUERIES]
};

static void open_probed(const struct small_index *index, struct bsw_queue_options queue,
                        uint64_t device_memory, int on_device, struct probed *out)
{
    const struct bsw_device_options options = {
        .num_sharers = 1, .most_bytes = device_memory, .timeout_seconds = 60};
    memset(out, 0, sizeof *out);
    make_small_index(index, temporary_folder, &out->manifest);
    out->settings =
        (struct bsw_search_settings){.query_bits = index->codec == &bsw_codec_raw ? 8 : 5,
                                     .k = KEEP,
                                     .keep = KEEP,
                                     .queue = queue,
                                     .level = bsw_cpu_level_detect(),
                                     .num_threads = 2,
                                     .batch = QUERIES,
                                     .has_masks = 1,
                                     .has_additions = queue.length == 0};
    if (on_device) assert_ok(bsw_device_open(&options, &out->device, &err), &err);
    out->settings.device = out->device;
    out->backend = bsw_backend_of(&out->settings);
    struct bsw_resident_shard *both[] = {&out->resident, &out->plain};
    for (int i = 0; i < 2; i++)
        assert_ok(bsw_resident_shard_load(&out->manifest, temporary_folder, 0, 0, both[i], &err),
                  &err);
    const struct bsw_backend_needs needs = {.manifest = &out->manifest,
                                            .settings = &out->settings,
                                            .shapes = &out->plain.shape,
                                            .num_shards = 1};
    assert_ok(out->backend->open(&needs, &out->state, &err), &err);
    out->shard.resident = &out->resident;
    if (out->backend->load) assert_ok(out->backend->load(out->state, 0, &out->shard, &err), &err);
    assert_ok(bsw_pinned_queries_make(&out->manifest, out->settings.query_bits, QUERIES,
                                      &out->queries, &err),
              &err);
    out->scores = allocate_or_fail(QUERIES, sizeof *out->scores);
    assert_true(out->plain.shape.num_rows <= MOST_ROWS);
    for (size_t q = 0; q < QUERIES; q++) {
        for (uint32_t row = 0; row < out->plain.shape.num_rows; row++)
            out->scores[q][row] = bsw_plain_score(&out->plain, &out->queries.batch, q, row);
    }
}

static void close_probed(struct probed *probed)
{
    if (probed->backend->unload) probed->backend->unload(probed->state, &probed->shard);
    probed->backend->close(probed->state);
    if (probed->device) assert_int_equal(bsw_device_used_bytes(probed->device), 0);
    bsw_device_close(&probed->device);
    bsw_resident_shard_unload(&probed->resident);
    bsw_resident_shard_unload(&probed->plain);
    bsw_pinned_queries_deinit(&probed->queries);
    bsw_manifest_deinit(&probed->manifest);
    bsw_free(&probed->scores);
}

// ---- random probes ----

struct drawn {
    struct bsw_probe probe;
    struct bsw_work_item items[MOST_ITEMS];
    uint32_t queries[MOST_ITEMS][QUERIES];
    union bsw_addition additions[MOST_ITEMS][QUERIES];
    uint32_t masks[MOST_ROWS / BSW_BUNDLE_ROWS + 1];
};

// Small ones, ones that make keys equal by rounding, and for integers some beyond int32.
static union bsw_addition draw_addition(const struct probed *probed, size_t query)
{
    union bsw_addition g;
    uint32_t score = probed->scores[query][draw(probed->plain.shape.num_rows)];
    static const float factors[] = {0, 0.125f, -0.5f, 3e4f, -3e6f};
    static const int32_t integers[] = {0, 3, -70, INT32_MAX, INT32_MIN};
    if (probed->plain.shape.has_affine)
        g.number = bsw_score_to_float(score) * factors[draw(5)];
    else
        g.integer = integers[draw(5)];
    return g;
}

static void draw_items(const struct probed *probed, int has_additions, struct drawn *out)
{
    size_t bundles = probed->plain.num_bundles, num = 1 + draw(MOST_ITEMS), bundle = 0;
    for (size_t i = 0; i < num; i++) {
        struct bsw_work_item *item = &out->items[i];
        bundle += draw(2) * draw(4);
        size_t left = bundles > bundle ? bundles - bundle : 0;
        item->first_bundle = left > 0 ? bundle : bundles;
        item->num_bundles = i + 1 == num ? left : left * draw(100) / 130;
        bundle += item->num_bundles;
        if (draw(3) > 0) item->queries = out->queries[i];
        for (uint32_t q = QUERIES; q-- > 0;) { // in any order
            if (draw(2)) out->queries[i][item->num_queries++] = q;
        }
        if (has_additions && draw(3) > 0) item->additions = out->additions[i];
        size_t count = item->queries ? item->num_queries : QUERIES;
        for (size_t q = 0; q < count; q++)
            out->additions[i][q] = draw_addition(probed, item->queries ? item->queries[q] : q);
    }
    for (size_t i = num; i-- > 1;) { // the order of items is nobody's business
        size_t other = draw(i + 1);
        struct bsw_work_item item = out->items[i];
        out->items[i] = out->items[other];
        out->items[other] = item;
    }
    out->probe.items = out->items;
    out->probe.num_items = num;
}

static void draw_probe(const struct probed *probed, int has_additions, struct drawn *out)
{
    memset(out, 0, sizeof *out);
    uint64_t form = draw(4); // 0: masks alone
    if (form > 0) draw_items(probed, has_additions, out);
    for (size_t b = 0; b < probed->plain.num_bundles; b++)
        out->masks[b] = (uint32_t)draw((uint64_t)1 << 32) | (draw(2) ? 0xffff0000u : 0);
    if (form != 1) out->probe.masks = out->masks;
}

// ---- what must be found ----

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

// The item's candidate of a row, 0 where it does not take part.
static uint64_t candidate_of(const struct probed *probed, const struct drawn *drawn,
                             const struct bsw_work_item *item, size_t place, size_t query,
                             uint64_t row)
{
    uint32_t lane = (uint32_t)1 << row % BSW_BUNDLE_ROWS;
    size_t bundle = (size_t)row / BSW_BUNDLE_ROWS;
    if (row >= probed->plain.shape.num_rows || bundle < item->first_bundle ||
        bundle >= item->first_bundle + item->num_bundles ||
        !(probed->plain.arrays.masks[bundle] & lane) ||
        (drawn->probe.masks && !(drawn->probe.masks[bundle] & lane)))
        return 0;
    uint32_t score = probed->scores[query][row];
    if (item->additions && probed->plain.shape.has_affine) {
        score =
            bsw_score_from_float(bsw_score_to_float(score) + item->additions[place].number + 0.0f);
    } else if (item->additions) {
        int64_t sum = (int64_t)bsw_score_to_integer(score) + item->additions[place].integer;
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
        score = bsw_score_from_integer((int32_t)sum);
    }
    return bsw_candidate_pack(score, (uint32_t)row);
}

// Whether the row's thread keeps it: it has fewer than `length` better ones.
static int is_kept(const struct probed *probed, const struct drawn *drawn,
                   const struct bsw_work_item *item, size_t place, size_t query, uint64_t row)
{
    const struct bsw_queue_options *queue = &probed->settings.queue;
    if (queue->length == 0) return 1;
    uint64_t own = candidate_of(probed, drawn, item, place, query, row), better = 0;
    uint64_t first = (uint64_t)item->first_bundle * BSW_BUNDLE_ROWS, z = row - first;
    uint64_t block_rows = queue->items * BSW_QUEUE_THREADS;
    uint64_t other = z / block_rows * block_rows + z % BSW_QUEUE_THREADS;
    for (uint64_t i = 0; i < queue->items; i++, other += BSW_QUEUE_THREADS)
        better += candidate_of(probed, drawn, item, place, query, first + other) > own;
    return better < queue->length;
}

static size_t find_best(const struct probed *probed, const struct drawn *drawn, size_t query,
                        uint32_t limit, uint64_t *out)
{
    const struct bsw_work_item all = {.num_bundles = probed->plain.num_bundles};
    size_t num_items = drawn->probe.items ? drawn->probe.num_items : 1, count = 0;
    for (size_t i = 0; i < num_items; i++) {
        const struct bsw_work_item *item = drawn->probe.items ? &drawn->probe.items[i] : &all;
        size_t place = query;
        if (item->queries) {
            for (place = 0; place < item->num_queries && item->queries[place] != query;) place++;
            if (place == item->num_queries) continue;
        }
        for (uint64_t row = 0; row < probed->plain.shape.num_rows; row++) {
            uint64_t candidate = candidate_of(probed, drawn, item, place, query, row);
            if (candidate != 0 && bsw_candidate_score(candidate) >= limit &&
                is_kept(probed, drawn, item, place, query, row))
                out[count++] = candidate;
        }
    }
    qsort(out, count, sizeof *out, compare_descending);
    return count < KEEP ? count : KEEP;
}

static void check_lists(const struct probed *probed, const struct drawn *drawn,
                        const uint32_t *limits, const struct bsw_candidate_lists *lists)
{
    static uint64_t expected[MOST_ROWS];
    for (size_t q = 0; q < QUERIES; q++) {
        size_t count, num = find_best(probed, drawn, q, limits ? limits[q] : 0, expected);
        const uint64_t *list = bsw_candidate_list(lists, q, &count);
        assert_int_equal(count, num);
        assert_memory_equal(list, expected, num * sizeof *list);
    }
}

static void check_scans(const struct probed *probed, const struct drawn *drawn,
                        const uint32_t *limits)
{
    const struct bsw_query_range queries = {&probed->queries.batch, 0, QUERIES};
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists lists = {0};
    for (int kind = BSW_SCAN_AUTO; kind <= BSW_SCAN_PROGRESSIVE_MATRIX; kind++) {
        bsw_scan_workspace_init(&workspace, probed->settings.level, 1 + (int)draw(3));
        workspace.scan = (enum bsw_scan_kind)kind;
        workspace.queue = probed->settings.queue;
        assert_ok(bsw_probe_scan(probed->backend, probed->state, &probed->shard, &drawn->probe,
                                 &queries, limits, KEEP, &workspace, &lists, &err),
                  &err);
        check_lists(probed, drawn, limits, &lists);
        bsw_scan_workspace_deinit(&workspace);
        if (probed->plain.shape.has_bytes) break; // there is one kind
    }
    bsw_candidate_lists_deinit(&lists);
}

static void check_probes(const struct small_index *index, struct bsw_queue_options queue,
                         uint64_t device_memory, int on_device)
{
    struct probed probed;
    static struct drawn drawn;
    static const struct drawn everything;
    uint32_t limits[QUERIES];
    open_probed(index, queue, device_memory, on_device, &probed);
    check_scans(&probed, &everything, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        int has_additions = queue.length == 0 || !on_device;
        draw_probe(&probed, has_additions, &drawn);
        for (size_t q = 0; q < QUERIES; q++)
            limits[q] = draw(2) ? 0 : probed.scores[q][draw(probed.plain.shape.num_rows)];
        check_scans(&probed, &drawn, round % 2 ? limits : NULL);
    }
    close_probed(&probed);
}

static const struct small_index plain = {.source = "synth:count=1311,dims=70,seed=3",
                                         .codec = &bsw_codec_xfbq,
                                         .metric = BSW_METRIC_COSINE,
                                         .bits = 2};
static const struct small_index staged = {.source = "synth:count=1311,dims=64,seed=2",
                                          .codec = &bsw_codec_saq,
                                          .metric = BSW_METRIC_L2,
                                          .bits = 2,
                                          .segments = "32x3,32x1"};
static const struct small_index bytes = {.source = "synth:count=1311,dims=45,seed=5,type=uint8",
                                         .codec = &bsw_codec_raw,
                                         .metric = BSW_METRIC_L2};
static const struct bsw_queue_options no_queue, queue = {3, 2};

UNIT_TEST(items_on_the_host)
{
    check_probes(&plain, no_queue, 0, 0);
    check_probes(&staged, no_queue, 0, 0);
    check_probes(&bytes, no_queue, 0, 0);
    check_probes(&plain, queue, 0, 0);
    check_probes(&staged, queue, 0, 0);
}

UNIT_TEST(items_on_a_device)
{
    if (bsw_device_kind()[0] == '\0') skip();
    check_probes(&plain, no_queue, 0, 1);
    check_probes(&staged, no_queue, 0, 1);
    check_probes(&staged, no_queue, 90000, 1); // most codes come in blocks
    check_probes(&plain, queue, 0, 1);
}

// ---- what is refused ----

UNIT_TEST(items_beyond_the_shard_are_refused)
{
    struct probed probed;
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists lists = {0};
    const struct bsw_work_item item = {.first_bundle = 40, .num_bundles = 2};
    const struct bsw_probe probe = {.items = &item, .num_items = 1};
    open_probed(&plain, no_queue, 0, 0, &probed);
    bsw_scan_workspace_init(&workspace, probed.settings.level, 1);
    const struct bsw_query_range queries = {&probed.queries.batch, 0, QUERIES};
    assert_int_equal(bsw_probe_scan(probed.backend, probed.state, &probed.shard, &probe, &queries,
                                    NULL, KEEP, &workspace, &lists, &err),
                     BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "bundles 40 to 42: the shard has 41"));
    bsw_scan_workspace_deinit(&workspace);
    bsw_candidate_lists_deinit(&lists);
    close_probed(&probed);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
