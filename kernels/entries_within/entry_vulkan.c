// SPDX-License-Identifier: Apache-2.0
// The back end on Vulkan's ray tracing: batches in turns of a bounded number of rays, one thread at
// a time, as a device has one queue here.
#include <pthread.h>
#include <string.h>

#include "common/base/memory.h"
#include "kernels/entries_within/entries_within.h"
#include "kernels/entries_within/vulkan_tracer.h"

#define TURN_RAYS 4096

struct bsw_entry_finder {
    struct bsw_entry_scene scene;
    const struct bsw_entries_within_table *table; // of rays that no sphere covers
    int has_hit_time;
    pthread_mutex_t turn;
    struct bsw_vulkan_tracer tracer;
    uint8_t is_traced[TURN_RAYS];
};

static void vulkan_close(bsw_entry_finder **finder)
{
    if (!*finder) return;
    bsw_vulkan_tracer_deinit(&(*finder)->tracer);
    bsw_entry_scene_deinit(&(*finder)->scene);
    pthread_mutex_destroy(&(*finder)->turn);
    bsw_free(finder);
}

static enum bsw_status vulkan_open(const struct bsw_entry_book *book,
                                   const struct bsw_entry_finder_options *options,
                                   bsw_entry_finder **out, struct bsw_error *err)
{
    struct bsw_entry_finder *finder;
    BSW_TRY(bsw_allocate_zero(&finder, 1, sizeof *finder, "entries within a radius", err));
    pthread_mutex_init(&finder->turn, NULL);
    finder->table = bsw_entries_within_table_get(options->level);
    finder->has_hit_time = options->has_hit_time;
    enum bsw_status status = bsw_entry_scene_init(book, options->reach, &finder->scene, err);
    if (status == BSW_OK)
        status = bsw_vulkan_tracer_init(&finder->scene, TURN_RAYS, options->has_hit_time,
                                        &finder->tracer, err);
    if (status == BSW_OK)
        *out = finder;
    else
        vulkan_close(&finder);
    return status;
}

static void put_rays(bsw_entry_finder *finder, const struct bsw_entry_ray *rays, size_t num_rays)
{
    struct bsw_vulkan_ray *to = finder->tracer.rays.mapped;
    for (size_t r = 0; r < num_rays; r++) {
        float most_time = -1.0f;
        finder->is_traced[r] = (uint8_t)bsw_entry_scene_most_time(
            &finder->scene, &rays[r], !finder->has_hit_time, &most_time);
        to[r] = (struct bsw_vulkan_ray){rays[r].x, rays[r].y,
                                        bsw_entry_scene_start(&finder->scene, rays[r].subspace),
                                        most_time};
    }
}

static size_t take_hits(const bsw_entry_finder *finder, const struct bsw_entry_ray *rays,
                        size_t num_rays, const struct bsw_entry_hits *hits, size_t first,
                        size_t count)
{
    const struct bsw_entry_book *book = &finder->scene.book;
    const uint32_t *masks = finder->tracer.masks.mapped;
    const float *times = finder->tracer.times.mapped;
    for (size_t r = 0; r < num_rays; r++) {
        uint64_t found[4];
        for (size_t i = 0; i < 4; i++)
            found[i] = masks[r * 8 + 2 * i] | (uint64_t)masks[r * 8 + 2 * i + 1] << 32;
        if (finder->is_traced[r]) {
            count =
                bsw_entry_scene_append(&finder->scene, &rays[r], found,
                                       finder->has_hit_time ? times + r * 256 : NULL, hits, count);
        } else {
            const float *x = book->points + (size_t)rays[r].subspace * 2 * book->entries;
            if (hits->num_computed) *hits->num_computed += book->entries;
            count +=
                finder->table->within[book->value](x, x + book->entries, book->entries, &rays[r],
                                                   hits->entries + count, hits->values + count);
        }
        hits->offsets[first + r + 1] = (uint32_t)count;
    }
    return count;
}

static enum bsw_status vulkan_find(bsw_entry_finder *finder, const struct bsw_entry_ray *rays,
                                   size_t num_rays, const struct bsw_entry_hits *hits,
                                   struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    size_t count = 0;
    hits->offsets[0] = 0;
    pthread_mutex_lock(&finder->turn);
    for (size_t first = 0; first < num_rays && status == BSW_OK; first += TURN_RAYS) {
        size_t left = num_rays - first, num = left < TURN_RAYS ? left : TURN_RAYS;
        put_rays(finder, rays + first, num);
        status = bsw_vulkan_tracer_run(&finder->tracer, num, err);
        if (status == BSW_OK) count = take_hits(finder, rays + first, num, hits, first, count);
    }
    pthread_mutex_unlock(&finder->turn);
    return status;
}

const struct bsw_entry_finder_ops bsw_entry_vulkan = {
    .name = "vulkan", .open = vulkan_open, .find = vulkan_find, .close = vulkan_close};
