// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_self_check.h"

#include <string.h>

#include "common/base/integer_hash.h"
#include "shard/codecs/pinned_queries.h"
#include "shard/codecs/selective_table.h"

#define QUERY_SEED  0x5e1fc4ec0u
#define QUERY_SCALE 0x1p-6f
#define KEEP        10
// Rows that a list has room for beyond those kept.
#define LIST_BUNDLES 3

struct self_check {
    struct bsw_device_engine *engine;
    struct bsw_resident_shard host; // the leading rows, borrowed
    struct bsw_device_shard device;
    struct bsw_query_batch batch;
    struct bsw_selection selection; // as the engine's plan has it
    uint32_t *words;
    uint8_t types[BSW_SELF_CHECK_QUERIES]; // of tables
    int32_t constants[BSW_SELF_CHECK_QUERIES];
    float *scales;
    size_t keep;
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists expected, found;
};

// A query for product codes: in each dimension a number of the codebook, so that some rows are
// near.
static void put_table_query(const struct bsw_product_codes *codes, size_t query, uint32_t *words)
{
    size_t num = bsw_product_entries(&codes->book);
    memset(words, 0, codes->projected_dims * sizeof *words);
    for (uint32_t d = 0; d < codes->book.parts * codes->book.part_dims; d++) {
        uint64_t hash = bsw_hash2(QUERY_SEED + query, d / codes->book.part_dims);
        memcpy(words + d, codes->entries + d * num + (size_t)(hash % num), sizeof *words);
    }
}

// A query of bytes: padding stays 0.
static void put_byte_query(const struct bsw_device_plan *plan, size_t query, uint32_t *words)
{
    int8_t *bytes = (int8_t *)words;
    memset(words, 0, plan->query_words * sizeof *words);
    for (uint32_t d = 0; d < plan->layout.dims; d++)
        bytes[d] = (int8_t)((int)(bsw_hash2(QUERY_SEED + query, d) % 256) - 128);
}

static enum bsw_status make_queries(struct self_check *check, struct bsw_error *err)
{
    const struct bsw_device_plan *plan = &check->engine->plan;
    size_t count =
        plan->group_queries < BSW_SELF_CHECK_QUERIES ? plan->group_queries : BSW_SELF_CHECK_QUERIES;
    BSW_TRY(bsw_allocate(&check->words, count * plan->query_words, sizeof(uint32_t), "self-check",
                         err));
    BSW_TRY(bsw_allocate(&check->scales, count, sizeof(float), "self-check", err));
    for (size_t q = 0; q < count; q++) {
        uint32_t *words = check->words + q * plan->query_words;
        if (plan->product)
            put_table_query(plan->product, q, words);
        else if (plan->keys == BSW_DEVICE_KEYS_WHOLE)
            put_byte_query(plan, q, words);
        else
            bsw_pinned_words(&plan->layout, plan->query_bits, plan->query_bits, QUERY_SEED + q,
                             words);
        check->scales[q] = QUERY_SCALE;
        check->constants[q] = (int32_t)q - 7;
        check->types[q] = (uint8_t)(q % BSW_NUM_TABLE_TYPES);
    }
    check->batch = (struct bsw_query_batch){.num_queries = (uint32_t)count,
                                            .query_bits = plan->query_bits,
                                            .query_words = plan->query_words,
                                            .words = check->words,
                                            .scales = check->scales,
                                            .constants = check->constants,
                                            .factor = 1,
                                            .product = plan->product,
                                            .tables = plan->product ? check->types : NULL};
    if (!plan->selection.is_on) return BSW_OK;
    check->batch.tables = NULL;
    check->batch.selection = &check->selection;
    return bsw_selection_open(&plan->selection, plan->product, BSW_CPU_REFERENCE, &check->selection,
                              err);
}

// Both shards end after the rows that are looked at.
static void cut_shards(const struct bsw_device_shard *shard, struct self_check *check)
{
    const struct bsw_device_plan *plan = &check->engine->plan;
    size_t bundles = shard->resident.num_bundles, most = BSW_SELF_CHECK_ROWS / BSW_BUNDLE_ROWS;
    if (plan->queue_blocks > 0) most *= 2; // threads with two rows
    if (bundles > most) bundles = most;
    check->host = *shard->host;
    check->host.num_bundles = bundles;
    if (check->host.shape.num_rows > bundles * BSW_BUNDLE_ROWS)
        check->host.shape.num_rows = bundles * BSW_BUNDLE_ROWS;
    check->device = *shard;
    check->device.host = &check->host;
    check->device.num_bundles = bundles;
    check->device.resident.num_bundles = (uint32_t)bundles;
    check->keep = KEEP < check->host.shape.num_rows ? KEEP : (size_t)check->host.shape.num_rows;
    if (plan->queue_blocks > 0) { // lists have room for a round and what the plan keeps
        if (check->keep > plan->keep) check->keep = plan->keep;
        return;
    }
    // Short lists, so that there are several segments, cuts, and a first stage.
    size_t capacity = check->keep + LIST_BUNDLES * BSW_BUNDLE_ROWS;
    if (check->keep + BSW_BUNDLE_ROWS > check->engine->plan.capacity) check->keep = 1;
    if (capacity < check->engine->plan.capacity) check->engine->plan.capacity = capacity;
}

static int is_same(const struct self_check *check)
{
    for (size_t q = 0; q < check->batch.num_queries; q++) {
        size_t expected, found;
        const uint64_t *a = bsw_candidate_list(&check->expected, q, &expected);
        const uint64_t *b = bsw_candidate_list(&check->found, q, &found);
        if (expected != found || memcmp(a, b, expected * sizeof *a) != 0) return 0;
    }
    return 1;
}

static enum bsw_status compare(struct self_check *check, enum bsw_scan_kind kind, const char *name,
                               struct bsw_error *err)
{
    check->workspace.scan = kind;
    const struct bsw_device_shard *shard = &check->device;
    const struct bsw_device_task task = {.maker = &bsw_device_whole,
                                         .span = {&shard, 1},
                                         .queries = {&check->batch, 0, check->batch.num_queries},
                                         .keep = check->keep,
                                         .workspace = &check->workspace};
    BSW_TRY(bsw_device_scan(check->engine, &task, &check->found, NULL, err));
    if (is_same(check)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                    "%s: the %s scan of rows 0 to %llu of shard %u is not what the CPU finds",
                    bsw_device_label(check->engine->device), name,
                    (unsigned long long)check->host.shape.num_rows - 1, check->host.index);
}

static enum bsw_status scan_on_host(struct self_check *check, struct bsw_error *err)
{
    check->workspace.scan = BSW_SCAN_PLANES;
    check->workspace.queue = check->engine->plan.queue;
    return bsw_shard_scan(&check->host, &check->batch, 0, check->batch.num_queries, NULL,
                          check->keep, &check->workspace, &check->expected, err);
}

// By the factors of both metrics.
static enum bsw_status compare_bytes(struct self_check *check, struct bsw_error *err)
{
    BSW_TRY(compare(check, BSW_SCAN_MATRIX, "matrix", err));
    check->batch.factor = 2;
    BSW_TRY(scan_on_host(check, err));
    return compare(check, BSW_SCAN_MATRIX, "matrix", err);
}

static enum bsw_status run(struct self_check *check, struct bsw_error *err)
{
    BSW_TRY(make_queries(check, err));
    BSW_TRY(scan_on_host(check, err));
    if (check->engine->plan.product) return compare(check, BSW_SCAN_TABLES, "table", err);
    if (check->engine->plan.keys == BSW_DEVICE_KEYS_WHOLE) return compare_bytes(check, err);
    BSW_TRY(compare(check, BSW_SCAN_PLANES, "planes", err));
    BSW_TRY(compare(check, BSW_SCAN_MATRIX, "matrix", err));
    if (check->engine->plan.stage_dims == 0) return BSW_OK;
    return compare(check, BSW_SCAN_PROGRESSIVE_MATRIX, "progressive-matrix", err);
}

enum bsw_status bsw_device_self_check(struct bsw_device_engine *engine,
                                      const struct bsw_device_shard *shard, struct bsw_error *err)
{
    struct self_check check = {.engine = engine};
    struct bsw_device_engine before = *engine;
    if (shard->resident.num_bundles == 0 || shard->host->shape.num_rows == 0) return BSW_OK;
    cut_shards(shard, &check);
    bsw_scan_workspace_init(&check.workspace, BSW_CPU_REFERENCE, 1);
    enum bsw_status status = run(&check, err);
    bsw_scan_workspace_deinit(&check.workspace);
    bsw_candidate_lists_deinit(&check.expected);
    bsw_candidate_lists_deinit(&check.found);
    bsw_selection_close(&check.selection);
    bsw_free(&check.words);
    bsw_free(&check.scales);
    engine->plan.capacity = before.plan.capacity;
    engine->counts = before.counts;
    return status;
}
