// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/base/clock.h"
#include "shard/lists/coarse_search_parts.h"

// What a call is offloaded with.
struct offload {
    size_t num_queries, keep;
    struct bsw_coarse_block all; // of all queries: what is coded, and their norms
    uint64_t *items;
    uint32_t *counts;
};

struct bsw_coarse_codes bsw_coarse_search_codes(const struct bsw_coarse_search *search)
{
    return (struct bsw_coarse_codes){search->padded_dims, search->num_lists, search->bytes,
                                     search->scales, search->biases};
}

void bsw_coarse_search_offload(struct bsw_coarse_search *search, bsw_coarse_finder find,
                               void *context, size_t most_kept)
{
    search->find = find;
    search->finder = context;
    search->most_kept = most_kept < search->num_lists ? most_kept : search->num_lists;
}

// Without a ratio all lists that are looked at have to be found.
static int can_be_found(const struct bsw_coarse_search *search)
{
    return search->find && !search->filter && search->most_kept > 0 &&
           (search->settings.ratio > 0 || search->settings.probe <= search->most_kept);
}

// One query is not worth a wait.
static int is_offloaded(const struct bsw_coarse_search *search, size_t num_queries)
{
    return num_queries > 1 && can_be_found(search);
}

// As choose, of the best lists; 0: they do not tell.
static size_t choose_found(const struct bsw_coarse_block *all, size_t q, const uint64_t *items,
                           size_t count, size_t keep)
{
    const struct bsw_coarse_search *search = all->search;
    size_t probe = search->settings.probe, rank = probe < BSW_COARSE_RANK ? probe : BSW_COARSE_RANK,
           num = 0;
    int is_whole = keep == search->num_lists;
    for (; count > 0 && !(bsw_coarse_key_at(items, count, count) >= BSW_COARSE_LEAST_KEY);
         is_whole = 1)
        count--;
    if (count == 0 || (count < rank && !is_whole)) return 0;
    float limit = BSW_COARSE_LEAST_KEY;
    if (search->settings.ratio > 0)
        limit = fminf(bsw_coarse_ratio_limit(all, q, bsw_coarse_key_at(items, count, rank)),
                      bsw_coarse_key_at(items, count, 1));
    while (num < count && num < probe && bsw_coarse_key_at(items, count, num + 1) >= limit) num++;
    return num < count || num == probe || is_whole ? num : 0;
}

static enum bsw_status reserve_offload(struct bsw_coarse_search *search, struct offload *out,
                                       struct bsw_error *err)
{
    size_t num = out->num_queries;
    const struct bsw_memory_part coded[] = {
        {&out->all.components, num * search->padded_dims},
        {&out->all.constants, num * sizeof(int32_t)},
        {&out->all.scales, num * sizeof(float)},
        {&out->all.norms, num * sizeof(double)},
        {&out->all.centred, num * search->dims * sizeof(float)}};
    const struct bsw_memory_part found[] = {{&out->items, num * out->keep * sizeof(uint64_t)},
                                            {&out->counts, num * sizeof(uint32_t)}};
    BSW_TRY(bsw_buffer_reserve(&search->coded, bsw_divide_memory(coded, 5, NULL), err));
    BSW_TRY(bsw_buffer_reserve(&search->found, bsw_divide_memory(found, 2, NULL), err));
    bsw_divide_memory(coded, 5, search->coded.data);
    bsw_divide_memory(found, 2, search->found.data);
    return BSW_OK;
}

// Queries [first, first + num) of all of them.
static struct bsw_coarse_block part_of(const struct offload *offload, size_t first, size_t num)
{
    const struct bsw_coarse_search *search = offload->all.search;
    struct bsw_coarse_block part = offload->all;
    part.num_queries = num;
    part.components += first * search->padded_dims;
    part.constants += first;
    part.scales += first;
    part.norms += first;
    part.centred += first * search->dims;
    return part;
}

static enum bsw_status find_lists(struct bsw_coarse_search *search, const float *vectors,
                                  struct offload *offload, struct bsw_error *err)
{
    size_t num_queries = offload->num_queries;
    BSW_TRY(reserve_offload(search, offload, err));
#pragma omp parallel for schedule(static) num_threads(search->num_threads)
    for (size_t first = 0; first < num_queries; first += BSW_COARSE_BLOCK_QUERIES) {
        size_t left = num_queries - first;
        struct bsw_coarse_block block = part_of(
            offload, first, left < BSW_COARSE_BLOCK_QUERIES ? left : BSW_COARSE_BLOCK_QUERIES);
        bsw_coarse_put_queries(&block, vectors + first * search->dims);
    }
    const struct bsw_matrix_queries queries = {.num_queries = num_queries,
                                               .components = offload->all.components,
                                               .constants = offload->all.constants,
                                               .scales = offload->all.scales};
    return search->find(search->finder, &queries, offload->keep, offload->items, offload->counts,
                        err);
}

// The lists of query q, number 0 of a block of its own where keys are made here.
static void choose_offloaded(const struct offload *offload, size_t q, const float *vector,
                             struct bsw_coarse_block *block, const struct bsw_chosen_lists *out)
{
    const uint64_t *items = offload->items + q * offload->keep;
    size_t count = choose_found(&offload->all, q, items, offload->counts[q], offload->keep);
    block->num_queries = 1;
    if (count > 0)
        bsw_coarse_put_lists(block, q, vector, items, count, out);
    else
        bsw_coarse_run_block(block, vector, q, out);
}

static enum bsw_status choose_all(struct bsw_coarse_search *search, const float *vectors,
                                  size_t num_queries, struct bsw_list_choice *out,
                                  struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    struct bsw_coarse_block any;
    search->completed.number = 0; // what it is made of is written anew
    size_t bytes = bsw_coarse_divide(search, NULL, &any),
           most = search->filter ? search->num_lists : search->settings.probe;
    search->most = most;
    BSW_TRY(bsw_buffer_reserve(&search->scratch, (size_t)search->num_threads * bytes, err));
    BSW_TRY(bsw_buffer_reserve(&search->lists, num_queries * most * sizeof(uint32_t), err));
    BSW_TRY(bsw_buffer_reserve(&search->counts, num_queries * sizeof(uint32_t), err));
    if (search->center)
        BSW_TRY(bsw_buffer_reserve(&search->additions, num_queries * most * sizeof(float), err));
    const struct bsw_chosen_lists lists = {
        (uint32_t *)(void *)search->lists.data, (uint32_t *)(void *)search->counts.data,
        search->center ? (float *)(void *)search->additions.data : NULL};
    struct offload offload = {num_queries, search->most_kept, {.search = search}, NULL, NULL};
    int is_found = is_offloaded(search, num_queries);
    if (is_found) BSW_TRY(find_lists(search, vectors, &offload, err));
#pragma omp parallel for schedule(dynamic) num_threads(search->num_threads)
    for (size_t first = 0; first < num_queries; first += BSW_COARSE_BLOCK_QUERIES) {
        size_t left = num_queries - first,
               num = left < BSW_COARSE_BLOCK_QUERIES ? left : BSW_COARSE_BLOCK_QUERIES;
        struct bsw_coarse_block block = {.search = search, .num_queries = num};
        bsw_coarse_divide(search, search->scratch.data + (size_t)omp_get_thread_num() * bytes,
                          &block);
        if (!is_found) bsw_coarse_run_block(&block, vectors + first * search->dims, first, &lists);
        for (size_t q = first; is_found && q < first + num; q++)
            choose_offloaded(&offload, q, vectors + q * search->dims, &block, &lists);
    }
    *out = (struct bsw_list_choice){.num_queries = num_queries,
                                    .most = most,
                                    .lists = lists.lists,
                                    .counts = lists.counts,
                                    .additions = lists.additions};
    search->seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}

enum bsw_status bsw_coarse_search_run(struct bsw_coarse_search *search, const float *vectors,
                                      size_t num_queries, struct bsw_list_choice *out,
                                      struct bsw_error *err)
{
    if (!search->is_deferred || num_queries == 0 || !can_be_found(search))
        return choose_all(search, vectors, num_queries, out, err);
    *out = (struct bsw_list_choice){.num_queries = num_queries,
                                    .most = search->settings.probe,
                                    .search = search,
                                    .vectors = vectors,
                                    .number = ++search->number};
    return BSW_OK;
}

// ---- chosen elsewhere ----

void bsw_coarse_search_defer(struct bsw_coarse_search *search)
{
    search->is_deferred = 1;
}

enum bsw_status bsw_list_choice_complete(const struct bsw_list_choice *choice,
                                         struct bsw_list_choice *out, struct bsw_error *err)
{
    struct bsw_coarse_search *search = choice->search;
    *out = *choice;
    if (choice->lists) return BSW_OK;
    if (search->completed.number != choice->number) {
        BSW_TRY(choose_all(search, choice->vectors, choice->num_queries, &search->completed, err));
        search->completed.number = choice->number;
    }
    *out = search->completed;
    return BSW_OK;
}

int bsw_list_choice_has_additions(const struct bsw_list_choice *choice)
{
    return choice->lists ? choice->additions != NULL : choice->search->center != NULL;
}

struct bsw_coarse_rules bsw_coarse_search_rules(const struct bsw_coarse_search *search)
{
    uint32_t probe = search->settings.probe;
    return (struct bsw_coarse_rules){.dims = search->dims,
                                     .most_kept = search->most_kept,
                                     .probe = probe,
                                     .rank = probe < BSW_COARSE_RANK ? probe : BSW_COARSE_RANK,
                                     .ratio = (float)search->settings.ratio,
                                     .is_l2 = bsw_coarse_is_l2(search),
                                     .centred = search->center ? search->centred : NULL};
}

// Queries [first, first + block->num_queries), by a thread with the block as its scratch.
static void prepare_block(struct bsw_coarse_block *block, const float *vectors, size_t first,
                          const struct bsw_coarse_queries *out)
{
    const struct bsw_coarse_search *search = block->search;
    size_t dims = search->dims;
    block->components = out->components + first * search->padded_dims;
    block->constants = out->constants + first;
    block->scales = out->scales + first;
    bsw_coarse_put_queries(block, vectors + first * dims);
    for (size_t q = 0; q < block->num_queries; q++) {
        out->norms[first + q] = (float)block->norms[q];
        if (search->center)
            bsw_coarse_residual(search, vectors + (first + q) * dims,
                                out->residuals + (first + q) * dims);
    }
}

enum bsw_status bsw_coarse_search_prepare(struct bsw_coarse_search *search, const float *vectors,
                                          size_t num, const struct bsw_coarse_queries *out,
                                          struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    struct bsw_coarse_block any;
    size_t bytes = bsw_coarse_divide(search, NULL, &any);
    BSW_TRY(bsw_buffer_reserve(&search->scratch, (size_t)search->num_threads * bytes, err));
#pragma omp parallel for schedule(static) num_threads(search->num_threads)
    for (size_t first = 0; first < num; first += BSW_COARSE_BLOCK_QUERIES) {
        size_t left = num - first;
        struct bsw_coarse_block block = {
            .search = search,
            .num_queries = left < BSW_COARSE_BLOCK_QUERIES ? left : BSW_COARSE_BLOCK_QUERIES};
        bsw_coarse_divide(search, search->scratch.data + (size_t)omp_get_thread_num() * bytes,
                          &block);
        prepare_block(&block, vectors, first, out);
    }
    search->seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}
