// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "bench/device/device_bench_lists.h"
#include "common/base/memory.h"
#include "common/codes/metric.h"

#define SAMPLED_ROWS ((uint64_t)4096)

// Checks one query.
struct list_check {
    const struct lists_bench *lists;
    uint32_t query;
    const uint64_t *items; // candidates
    size_t count;
    uint64_t *room; // candidates in order
};

static enum bsw_status item_of(const struct list_check *check, uint32_t row, uint64_t *out,
                               struct bsw_error *err)
{
    uint32_t score;
    BSW_TRY(device_bench_score(&check->lists->bench->codes.codes.layout, 1, &check->lists->queries,
                               check->query, row, &score, err));
    *out = bsw_candidate_pack(score, row);
    return BSW_OK;
}

// The coarse step of the host, without help, chooses the same.
static enum bsw_status check_choice(const struct list_check *check, struct bsw_error *err)
{
    const struct lists_bench *lists = check->lists;
    const struct bsw_probe_settings probe = {.probe = lists->probe};
    const struct bsw_list_choice *choice = &lists->choice;
    struct bsw_coarse_search *search;
    struct bsw_list_choice own;
    BSW_TRY(
        bsw_coarse_search_open(&lists->manifest, &probe, NULL, BSW_CPU_REFERENCE, 1, &search, err));
    enum bsw_status status = bsw_coarse_search_run(
        search, lists->vectors + (size_t)check->query * lists->raw_rows.dims, 1, &own, err);
    uint64_t sums[2] = {0, 0}; // only the first list's place is fixed
    for (uint32_t i = 0; status == BSW_OK && i < own.counts[0]; i++) {
        uint64_t list = own.lists[i], other = choice->lists[check->query * choice->most + i];
        sums[0] += list * list * list + 1;
        sums[1] += other * other * other + 1;
    }
    if (status == BSW_OK && (own.counts[0] != choice->counts[check->query] || sums[0] != sums[1]))
        status = bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %u: other lists", check->query);
    bsw_coarse_search_close(&search);
    return status;
}

static int is_chosen(const struct list_check *check, uint32_t row)
{
    const struct bsw_list_choice *choice = &check->lists->choice;
    const uint32_t *own = choice->lists + check->query * choice->most;
    uint32_t list = bsw_list_of_place(&check->lists->host.order, row);
    for (uint32_t i = 0; i < choice->counts[check->query]; i++)
        if (own[i] == list) return 1;
    return 0;
}

static enum bsw_status check_candidates(const struct list_check *check, struct bsw_error *err)
{
    for (size_t i = 0; i < check->count; i++) {
        uint32_t row = bsw_candidate_row(check->items[i]);
        uint64_t item;
        BSW_TRY(item_of(check, row, &item, err));
        if (item != check->items[i] || !is_chosen(check, row))
            return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                            "query %u, row %u: another score, or none of its lists", check->query,
                            row);
    }
    return BSW_OK;
}

// Rows of one list, of which a few are looked at.
static enum bsw_status check_missing(const struct list_check *check, uint32_t list,
                                     struct bsw_error *err)
{
    const struct lists_bench *lists = check->lists;
    const uint32_t *first = lists->host.order.first_bundles;
    uint64_t rows = bsw_list_num_rows(&lists->host.order, list),
             most = SAMPLED_ROWS / lists->choice.counts[check->query] + 1;
    uint64_t num = rows < most ? rows : most,
             worst = check->count == lists->found.keep ? check->room[check->count - 1] : 0;
    for (uint64_t i = 0; i < num; i++) {
        uint32_t row = (uint32_t)(first[list] * (uint64_t)BSW_BUNDLE_ROWS + i * rows / num);
        uint64_t item;
        BSW_TRY(item_of(check, row, &item, err));
        if (item < worst ||
            bsearch(&item, check->room, check->count, sizeof item, device_bench_descending))
            continue;
        return bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %u: row %u is missing", check->query,
                        row);
    }
    return BSW_OK;
}

static enum bsw_status check_query(const struct lists_bench *lists, uint32_t query,
                                   struct bsw_error *err)
{
    const struct bsw_list_choice *choice = &lists->choice;
    struct list_check check = {.lists = lists, .query = query};
    check.items = bsw_candidate_list(&lists->found, query, &check.count);
    BSW_TRY(check_choice(&check, err));
    BSW_TRY(check_candidates(&check, err));
    BSW_TRY(bsw_allocate(&check.room, check.count + 1, sizeof *check.room, "candidates", err));
    memcpy(check.room, check.items, check.count * sizeof *check.room);
    qsort(check.room, check.count, sizeof *check.room, device_bench_descending);
    enum bsw_status status = BSW_OK;
    for (uint32_t i = 0; i < choice->counts[query] && status == BSW_OK; i++)
        status = check_missing(&check, choice->lists[query * choice->most + i], err);
    bsw_free(&check.room);
    return status;
}

enum bsw_status device_bench_lists_check(struct lists_bench *lists, struct bsw_error *err)
{
    BSW_TRY(bsw_list_choice_complete(&lists->choice, &lists->choice, err));
    BSW_TRY(check_query(lists, 0, err));
    BSW_TRY(check_query(lists, lists->num_queries - 1, err));
    const struct device_bench_values values = {&lists->raw_rows, &lists->raw_queries,
                                               lists->d_pairs, lists->d_values,
                                               lists->num_survivors};
    return device_bench_values_check(lists->bench, &values, err);
}
