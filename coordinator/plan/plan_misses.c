// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan/plan_misses.h"

#include <math.h>

#include "common/base/memory.h"
#include "common/base/miss_probability.h"

// Misses over all shards' threads as they are.
static double expected_misses(const struct bsw_plan_index *index, struct bsw_thread_class *classes,
                              const struct bsw_queue_options *queue, uint64_t *num_threads)
{
    size_t num = 0;
    *num_threads = 0;
    for (uint32_t i = 0; i < index->manifest.num_shards; i++) {
        struct bsw_thread_class own[3];
        size_t count = bsw_queue_classes(index->manifest.shards[i].num_rows, queue->items, own);
        for (size_t c = 0; c < count; c++) { // shards are nearly equal, and so are their classes
            size_t at = 0;
            while (at < num && classes[at].num_items != own[c].num_items) at++;
            if (at == num) classes[num++] = (struct bsw_thread_class){0, own[c].num_items};
            classes[at].num_threads += own[c].num_threads;
            *num_threads += own[c].num_threads;
        }
    }
    return bsw_expected_misses(classes, num, index->search.keep, queue->length);
}

// As if every thread had I rows; shards with fewer make threads of what they have.
static struct bsw_miss_setting even_setting(const struct bsw_plan_index *index,
                                            const struct bsw_queue_options *queue)
{
    const struct bsw_manifest *manifest = &index->manifest;
    uint64_t fewest = manifest->num_rows / manifest->num_shards, threads = 0;
    struct bsw_miss_setting setting =
        bsw_miss_setting_of(fewest, queue->items, index->search.keep, queue->length);
    for (uint32_t i = 0; i < manifest->num_shards; i++)
        threads += manifest->shards[i].num_rows / setting.num_items;
    setting.num_threads = threads;
    return setting;
}

static enum bsw_status find_distribution(const struct bsw_miss_setting *setting,
                                         struct bsw_plan_misses *misses, struct bsw_error *err)
{
    const struct bsw_thread_class even = {setting->num_threads, setting->num_items};
    // The few rows that whole threads leave out may be some of the best.
    if (setting->num_best > setting->num_threads * setting->num_items) return BSW_OK;
    double mean = bsw_expected_misses(&even, 1, setting->num_best, setting->queue_length);
    double wanted = mean + 8 * sqrt(mean) + 12;
    if (wanted > BSW_MISS_MAX_TERMS) return BSW_OK;
    misses->num_terms = (size_t)wanted;
    BSW_TRY(
        bsw_allocate(&misses->at_most, misses->num_terms, sizeof *misses->at_most, "misses", err));
    BSW_TRY(bsw_miss_probabilities(setting, misses->num_terms, misses->at_most,
                                   &misses->is_simulated, err));
    for (size_t l = 1; l < misses->num_terms; l++) misses->at_most[l] += misses->at_most[l - 1];
    return BSW_OK;
}

static uint64_t largest_items_for(const struct bsw_plan_index *index,
                                  struct bsw_thread_class *classes, uint64_t length, double target)
{
    uint64_t threads;
    for (uint64_t items = BSW_QUEUE_MAX_ITEMS; items > 0; items /= 2) {
        const struct bsw_queue_options queue = {items, length};
        double expected = expected_misses(index, classes, &queue, &threads);
        if (100 * (1 - expected / (double)index->search.keep) >= target) return items;
    }
    return 0;
}

enum bsw_status bsw_plan_misses_find(const struct bsw_plan_index *index,
                                     const struct bsw_queue_options *queue, double target,
                                     struct bsw_plan_misses *out, struct bsw_error *err)
{
    struct bsw_thread_class *classes;
    *out = (struct bsw_plan_misses){.num_best = index->search.keep};
    BSW_TRY(bsw_allocate(&classes, (size_t)3 * index->manifest.num_shards, sizeof *classes,
                         "threads", err));
    out->expected = expected_misses(index, classes, queue, &out->threads);
    out->kept = out->threads * queue->length;
    if (out->kept > index->manifest.num_rows) out->kept = index->manifest.num_rows;
    out->largest_items = largest_items_for(index, classes, queue->length, target);
    bsw_free(&classes);
    if (index->search.keep > BSW_MISS_MAX_BEST) return BSW_OK;
    const struct bsw_miss_setting setting = even_setting(index, queue);
    return find_distribution(&setting, out, err);
}

void bsw_plan_misses_deinit(struct bsw_plan_misses *misses)
{
    bsw_free(&misses->at_most);
}
