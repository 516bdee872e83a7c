// SPDX-License-Identifier: Apache-2.0
#include "shard/self_check.h"

#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/clock.h"
#include "common/base/process.h"
#include "common/codes/metric.h"
#include "kernels/select/key_shift.h"
#include "shard/device/device_readback.h"
#include "shard/host/answer_check.h"
#include "shard/host/plain_score.h"
#include "shard/shard_service.h"

#define DRAW_SEED 0xd4a3u

enum bsw_status bsw_self_check_open(struct bsw_shard_service *service, struct bsw_error *err)
{
    struct bsw_self_check *check = &service->check;
    const struct bsw_search_settings *settings = &service->settings;
    size_t most = settings->batch < BSW_CHECK_QUERIES ? settings->batch : BSW_CHECK_QUERIES;
    bsw_scan_workspace_init(&check->workspace, settings->level, settings->num_threads);
    check->workspace.queue = settings->queue;
    if (service->manifest->num_known == 0 || service->num_units == 0) return BSW_OK;
    return bsw_pinned_queries_make(service->manifest, settings->query_bits,
                                   most < BSW_KNOWN_QUERIES ? BSW_KNOWN_QUERIES : most,
                                   &check->queries, err);
}

void bsw_self_check_close(struct bsw_self_check *check)
{
    bsw_pinned_queries_deinit(&check->queries);
    bsw_scan_workspace_deinit(&check->workspace);
    bsw_candidate_lists_deinit(&check->found);
    bsw_buffer_deinit(&check->numbers);
}

// Says where it was found; rank 0 adds the rank.
static enum bsw_status name_place(const struct bsw_shard_service *service, enum bsw_status status,
                                  struct bsw_error *err)
{
    char host[BSW_HOST_NAME_BYTES];
    if (status != BSW_ERROR_SELF_CHECK) return status;
    bsw_host_name(host, sizeof host);
    return bsw_prefix(err, status, "self-check: host %s, %s: ", host,
                      service->backend->label(service->state));
}

// ---- known answers ----

// Counts are those of batches alone.
static enum bsw_status scan_quietly(struct bsw_shard_service *service, const struct bsw_unit *unit,
                                    size_t first, size_t count, size_t keep, struct bsw_error *err)
{
    struct bsw_self_check *check = &service->check;
    const struct bsw_query_range queries = {&check->queries.batch, first, count};
    const struct bsw_scan_counts before = *service->backend->counts(service->state);
    enum bsw_status status =
        bsw_unit_scan(service, unit, &queries, keep, &check->workspace, &check->found, err);
    *service->backend->counts(service->state) = before;
    return status;
}

static enum bsw_status ask(struct bsw_shard_service *service, const struct bsw_unit *unit,
                           enum bsw_scan_kind kind, size_t first, size_t count,
                           struct bsw_error *err)
{
    struct bsw_self_check *check = &service->check;
    size_t keep =
        service->settings.keep < BSW_KNOWN_ROWS ? (size_t)service->settings.keep : BSW_KNOWN_ROWS;
    check->workspace.scan = kind;
    BSW_TRY(scan_quietly(service, unit, first, count, keep, err));
    for (size_t i = 0; i < count; i++) {
        size_t num, query = (first + i) % check->queries.num_queries;
        const uint64_t *list = bsw_candidate_list(&check->found, i, &num);
        if (query >= service->manifest->num_known) continue;
        check->num_answers++;
        enum bsw_status status =
            bsw_known_answer_check(service->manifest, unit->shard, (uint32_t)query, list, num, keep,
                                   service->settings.queue.length > 0, err);
        if (status != BSW_OK)
            return bsw_prefix(err, status, "%s scan: ", bsw_scan_name(check->workspace.used));
    }
    return BSW_OK;
}

// In parts of a batch at most.
static enum bsw_status ask_all(struct bsw_shard_service *service, const struct bsw_unit *unit,
                               enum bsw_scan_kind kind, struct bsw_error *err)
{
    size_t num = service->check.queries.batch.num_queries, batch = service->settings.batch;
    for (size_t first = 0; first < num; first += batch)
        BSW_TRY(ask(service, unit, kind, first, num - first < batch ? num - first : batch, err));
    return BSW_OK;
}

// A stage that is gone through for every row does not pay with pinned queries, whose energy is not
// in the first dimensions: as AUTO it is tried, and the family's full scan besides.
//
// AUTO chooses by the number of queries, so a batch may go another way than a few pinned queries:
// the family that the last one took is asked, too, and both before there was one.
static enum bsw_status check_unit(struct bsw_shard_service *service, const struct bsw_unit *unit,
                                  struct bsw_error *err)
{
    enum bsw_scan_kind kind = service->settings.scan, last = service->workspace.used;
    int is_matrix = bsw_scan_is_matrix(kind);
    if (kind == BSW_SCAN_AUTO || bsw_scan_is_progressive(kind)) {
        BSW_TRY(ask_all(service, unit, BSW_SCAN_AUTO, err));
        int was_matrix = bsw_scan_is_matrix(service->check.workspace.used);
        if (kind == BSW_SCAN_AUTO) {
            is_matrix = last == BSW_SCAN_AUTO ? !was_matrix : bsw_scan_is_matrix(last);
            if (is_matrix == was_matrix) return BSW_OK;
        }
    }
    return ask_all(service, unit, is_matrix ? BSW_SCAN_MATRIX : BSW_SCAN_PLANES, err);
}

static enum bsw_status check_answers(struct bsw_shard_service *service, struct bsw_error *err)
{
    for (uint32_t u = 0; u < service->num_units; u++)
        BSW_TRY(check_unit(service, &service->units[u], err));
    return BSW_OK;
}

// ---- codes ----

// The next blocks that are the back end's, of one unit after another (bsw_self_check_round).
static enum bsw_status check_some_blocks(struct bsw_shard_service *service, struct bsw_error *err)
{
    struct bsw_self_check *check = &service->check;
    if (check->next_unit >= service->num_units) check->next_unit = 0;
    BSW_TRY(service->backend->check(service->state, service->shards[check->next_unit],
                                    &check->next_block, err));
    if (check->next_block == 0) check->next_unit++;
    return BSW_OK;
}

uint64_t bsw_self_check_round(const struct bsw_manifest *manifest,
                              const struct bsw_assignment *table)
{
    uint64_t most = 1, sum = 0;
    for (uint32_t shard = 0; shard < manifest->num_shards; shard++) {
        struct bsw_shard_shape shape;
        bsw_shard_shape_init(&shape, manifest, shard);
        uint32_t blocks = bsw_device_readback_most(&shape);
        if (shard > 0 &&
            bsw_assignment_rank(table, 0, shard) != bsw_assignment_rank(table, 0, shard - 1))
            sum = 0;
        sum += ((uint64_t)shape.num_blocks + blocks - 1) / blocks;
        most = sum > most ? sum : most;
    }
    return most;
}

static enum bsw_status check_codes(struct bsw_shard_service *service, int is_end,
                                   struct bsw_error *err)
{
    for (uint32_t u = 0; u < service->num_units; u++) {
        BSW_TRY(bsw_resident_shard_check(&service->units[u].resident, err));
        if (is_end) BSW_TRY(service->backend->check(service->state, service->shards[u], NULL, err));
    }
    return is_end || service->num_units == 0 ? BSW_OK : check_some_blocks(service, err);
}

static enum bsw_status run(struct bsw_shard_service *service, int has_codes, int is_end,
                           struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    enum bsw_status status = BSW_OK;
    if (!service->settings.is_checked) return BSW_OK;
    if (service->check.queries.num_queries > 0) status = check_answers(service, err);
    if (status == BSW_OK && has_codes) status = check_codes(service, is_end, err);
    service->check.seconds += bsw_clock_seconds() - started;
    return name_place(service, status, err);
}

enum bsw_status bsw_self_check_answers(struct bsw_shard_service *service, struct bsw_error *err)
{
    return run(service, 0, 0, err);
}

enum bsw_status bsw_self_check_between(struct bsw_shard_service *service, struct bsw_error *err)
{
    return run(service, 1, 0, err);
}

enum bsw_status bsw_self_check_end(struct bsw_shard_service *service, struct bsw_error *err)
{
    return run(service, 1, 1, err);
}

// ---- keys of a batch ----

static enum bsw_status fail_row(const struct bsw_shard_service *service,
                                const struct bsw_unit *unit, uint32_t row, struct bsw_error *err)
{
    enum bsw_status status =
        bsw_fail(err, BSW_ERROR_SELF_CHECK, "shard %u: a scan finds row %u of %llu", unit->shard,
                 row, (unsigned long long)unit->resident.shape.num_rows);
    return name_place(service, status, err);
}

// What is found, the bits of the filter have: no scan has lost its mask. bits: of the row's query;
// rows that no shard has are seen elsewhere.
static enum bsw_status check_allowed(const struct bsw_shard_service *service,
                                     const struct bsw_unit *unit, const uint32_t *bits,
                                     uint32_t row, struct bsw_error *err)
{
    uint64_t id = unit->resident.shape.first_row + row;
    if (row >= unit->resident.shape.num_rows ||
        bsw_row_bit(bits, id - service->batch.filter->first_row))
        return BSW_OK;
    enum bsw_status status =
        bsw_fail(err, BSW_ERROR_SELF_CHECK, "shard %u: a scan finds row %llu, which is not allowed",
                 unit->shard, (unsigned long long)id);
    return name_place(service, status, err);
}

static const uint32_t *allowed_bits(const struct bsw_shard_service *service,
                                    const struct bsw_unit *unit, size_t query)
{
    const struct bsw_row_filter *filter = service->batch.filter;
    return bsw_row_filter_bits(filter, bsw_row_filter_group(filter, unit->first_query + query));
}

static enum bsw_status check_filter(const struct bsw_shard_service *service,
                                    const struct bsw_unit *unit, struct bsw_error *err)
{
    for (size_t q = 0; q < unit->num_queries && service->batch.filter; q++) {
        size_t count;
        const uint64_t *list = bsw_candidate_list(&unit->loaded.lists, q, &count);
        const uint32_t *bits = allowed_bits(service, unit, q);
        for (size_t i = 0; i < count; i++)
            BSW_TRY(check_allowed(service, unit, bits, bsw_candidate_row(list[i]), err));
    }
    return BSW_OK;
}

enum bsw_status bsw_self_check_rows(struct bsw_shard_service *service, const struct bsw_unit *unit,
                                    struct bsw_error *err)
{
    uint32_t last = 0;
    BSW_TRY(check_filter(service, unit, err));
    for (size_t q = 0; q < unit->num_queries; q++) {
        size_t count;
        const uint64_t *list = bsw_candidate_list(&unit->loaded.lists, q, &count);
        for (size_t i = 0; i < count; i++) {
            uint32_t row = bsw_candidate_row(list[i]);
            last = row > last ? row : last;
        }
    }
    return last < unit->resident.shape.num_rows ? BSW_OK : fail_row(service, unit, last, err);
}

enum bsw_status bsw_self_check_survivor_rows(struct bsw_shard_service *service,
                                             const struct bsw_unit *unit, const size_t *counts,
                                             const struct bsw_survivor *survivors,
                                             struct bsw_error *err)
{
    for (size_t q = 0; q < unit->num_queries; survivors += counts[q++]) {
        const uint32_t *bits = service->batch.filter ? allowed_bits(service, unit, q) : NULL;
        for (size_t i = 0; i < counts[q]; i++) {
            uint32_t row = survivors[i].row;
            if (row >= unit->resident.shape.num_rows) return fail_row(service, unit, row, err);
            if (bits) BSW_TRY(check_allowed(service, unit, bits, row, err));
        }
    }
    return BSW_OK;
}

enum bsw_status bsw_self_check_blame(const struct bsw_shard_service *service,
                                     const struct bsw_unit *unit, enum bsw_status status,
                                     struct bsw_error *err)
{
    struct bsw_error found;
    if (status != BSW_ERROR_BAD_DATA || !service->settings.is_checked) return status;
    enum bsw_status checked = bsw_resident_shard_check(&unit->resident, &found);
    if (checked == BSW_OK) return status;
    if (err) *err = found;
    return name_place(service, checked, err);
}

// A survivor that was drawn.
struct drawn_key {
    const struct bsw_unit *unit;
    size_t query; // in the batch
    const struct bsw_survivor *survivor;
};

static enum bsw_status fail_key(const struct drawn_key *key, const char *what, int digits,
                                uint64_t expected, uint64_t found, struct bsw_error *err)
{
    return bsw_fail(
        err, BSW_ERROR_SELF_CHECK,
        "shard %u: the %s of row %llu and query %zu of a batch is %0*llx, the reference has %0*llx",
        key->unit->shard, what,
        (unsigned long long)(key->unit->resident.shape.first_row + key->survivor->row), key->query,
        digits, (unsigned long long)found, digits, (unsigned long long)expected);
}

// The score by the reference, over the dimensions that the search looks at, and with what keys of
// residuals lack. place: of the unit, row: of what is given of it.
static enum bsw_status plain_score(const struct bsw_shard_service *service,
                                   const struct drawn_key *key, uint32_t place,
                                   const struct bsw_resident_shard *shard, uint32_t row,
                                   uint32_t *out, struct bsw_error *err)
{
    const struct bsw_list_order *order = &key->unit->resident.order;
    size_t dims_of_row = bsw_manifest_row_dims(service->manifest);
    float addition;
    struct bsw_resident_shard first = *shard;
    uint32_t dims = service->settings.probe.scan_dims;
    if (dims > 0) bsw_code_layout_first(&shard->shape.layout, dims, &first.shape.layout);
    int is_residual = service->manifest->lists.is_residual;
    uint32_t list = is_residual ? bsw_list_of_place(order, place) : 0;
    if (shard->shape.has_tables)
        BSW_TRY(bsw_plain_table_scores(
            shard, &service->batch, key->query,
            is_residual ? service->manifest->lists.centroids + list * dims_of_row : NULL, &row, 1,
            out, err));
    else
        *out = bsw_plain_score(&first, &service->batch, key->query, row);
    if (!is_residual || bsw_selection_counts(&service->settings.selection)) return BSW_OK;
    BSW_TRY(bsw_coarse_search_addition(
        service->coarse, service->batch.vectors + key->query * dims_of_row, list, &addition, err));
    *out = bsw_score_add(*out, addition);
    return BSW_OK;
}

static enum bsw_status check_key(struct bsw_shard_service *service, const struct drawn_key *key,
                                 struct bsw_error *err)
{
    const struct bsw_resident_shard *shard = &key->unit->resident;
    struct bsw_resident_shard fetched;
    uint32_t place = bsw_resident_place(shard, key->survivor->row), row, expected;
    if (service->settings.selection.has_hit_time) return BSW_OK; // near the formula's, not equal
    BSW_TRY(
        service->backend->fetch(service->state, &key->unit->loaded, place, &fetched, &row, err));
    BSW_TRY(plain_score(service, key, place, &fetched, row, &expected, err));
    if (key->survivor->score == expected) return BSW_OK;
    return fail_key(key, "key", 8, expected, key->survivor->score, err);
}

static enum bsw_status check_value(struct bsw_shard_service *service, const struct drawn_key *key,
                                   struct bsw_error *err)
{
    const struct bsw_manifest *manifest = service->manifest;
    const struct bsw_resident_shard *shard = &key->unit->resident;
    const struct bsw_refine_table *table = &bsw_refine_reference;
    size_t dims = bsw_manifest_row_dims(manifest);
    struct bsw_buffer *numbers = &service->check.numbers;
    const void *row;
    BSW_TRY(bsw_buffer_reserve(numbers, dims * sizeof(double) + shard->raw_rows.row_bytes, err));
    double *query = (double *)(void *)numbers->data;
    BSW_TRY(bsw_raw_rows_get(&shard->raw_rows, key->survivor->row, shard->arrays.row_digests,
                             query + dims, &row, err));
    table->to_double(BSW_VECTOR_FLOAT32, service->batch.vectors + key->query * dims, dims, query);
    double value = table->value(manifest->metric, manifest->source_type, row, query,
                                table->squared_norm(query, dims), dims);
    uint64_t expected, found;
    memcpy(&expected, &value, sizeof expected);
    memcpy(&found, &key->survivor->value, sizeof found);
    return found == expected ? BSW_OK : fail_key(key, "exact value", 16, expected, found, err);
}

static enum bsw_status check_survivor(struct bsw_shard_service *service,
                                      const struct drawn_key *key, struct bsw_error *err)
{
    service->check.num_keys++;
    BSW_TRY(check_key(service, key, err));
    return service->settings.is_exact ? check_value(service, key, err) : BSW_OK;
}

enum bsw_status bsw_self_check_survivors(struct bsw_shard_service *service,
                                         const struct bsw_unit *unit, const size_t *counts,
                                         const struct bsw_survivor *survivors,
                                         struct bsw_error *err)
{
    struct bsw_self_check *check = &service->check;
    double started = bsw_clock_seconds();
    enum bsw_status status = BSW_OK;
    size_t total = 0;
    for (size_t q = 0; q < unit->num_queries; q++) total += counts[q];
    for (int i = 0; i < BSW_CHECK_KEYS && total > 0 && status == BSW_OK; i++) {
        size_t place = (size_t)(bsw_hash2(DRAW_SEED, check->num_draws++) % total), query = 0;
        struct drawn_key key = {.unit = unit, .survivor = &survivors[place]};
        while (place >= counts[query]) place -= counts[query++];
        key.query = unit->first_query + query;
        status = check_survivor(service, &key, err);
    }
    check->seconds += bsw_clock_seconds() - started;
    if (status == BSW_ERROR_BAD_DATA) return bsw_self_check_blame(service, unit, status, err);
    return name_place(service, status, err);
}
