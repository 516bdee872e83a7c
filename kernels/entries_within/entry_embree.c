// SPDX-License-Identifier: Apache-2.0
// The back end on Embree's rays: one scene of user geometry, all layers in it. A ray's occlusion
// test meets every sphere that it may hit, notes it and rejects it, so that the ray goes on.
#include <embree3/rtcore.h>

#include "common/base/memory.h"
#include "kernels/entries_within/entries_within.h"
#include "kernels/entries_within/entry_scene.h"

struct bsw_entry_finder {
    struct bsw_entry_scene spheres;
    const struct bsw_entries_within_table *table; // of rays that no sphere covers
    int has_hit_time;
    RTCDevice device;
    RTCScene scene;
};

// A ray under way. Embree hands on the context, which comes first.
struct trace {
    struct RTCIntersectContext context;
    const struct bsw_entry_finder *finder;
    uint64_t hits[4];
    float times[256];
};

static void sphere_bounds(const struct RTCBoundsFunctionArguments *args)
{
    const struct bsw_entry_finder *finder = args->geometryUserPtr;
    float lower[3], upper[3];
    bsw_entry_scene_box(&finder->spheres, args->primID, lower, upper);
    *args->bounds_o = (struct RTCBounds){.lower_x = lower[0],
                                         .lower_y = lower[1],
                                         .lower_z = lower[2],
                                         .upper_x = upper[0],
                                         .upper_y = upper[1],
                                         .upper_z = upper[2]};
}

// The any-hit function: notes a sphere that is met in time, and leaves the ray as it is.
static void note_hit(const struct RTCOccludedFunctionNArguments *args)
{
    struct trace *trace = (struct trace *)(void *)args->context;
    const struct bsw_entry_scene *spheres = &trace->finder->spheres;
    const struct RTCRay *ray = (const struct RTCRay *)(const void *)args->ray;
    size_t sphere = args->primID, e = sphere % spheres->book.entries;
    float time = bsw_entry_scene_time(&spheres->layers[sphere / spheres->book.entries],
                                      &spheres->spheres[sphere], ray->org_x, ray->org_y);
    if (!args->valid[0] || !(time <= ray->tfar)) return;
    trace->hits[e / 64] |= (uint64_t)1 << e % 64;
    trace->times[e] = time;
}

static enum bsw_status check_device(RTCDevice device, struct bsw_error *err)
{
    enum RTCError error = rtcGetDeviceError(device);
    if (error == RTC_ERROR_NONE) return BSW_OK;
    return bsw_fail(err, error == RTC_ERROR_OUT_OF_MEMORY ? BSW_ERROR_OUT_OF_MEMORY : BSW_ERROR_IO,
                    "Embree: error %d", (int)error);
}

static enum bsw_status build_scene(struct bsw_entry_finder *finder, struct bsw_error *err)
{
    const struct bsw_entry_book *book = &finder->spheres.book;
    finder->device = rtcNewDevice("threads=1");
    if (!finder->device) return check_device(NULL, err);
    finder->scene = rtcNewScene(finder->device);
    rtcSetSceneFlags(finder->scene, RTC_SCENE_FLAG_ROBUST);
    RTCGeometry geometry = rtcNewGeometry(finder->device, RTC_GEOMETRY_TYPE_USER);
    rtcSetGeometryUserPrimitiveCount(geometry, book->subspaces * book->entries);
    rtcSetGeometryUserData(geometry, finder);
    rtcSetGeometryBoundsFunction(geometry, sphere_bounds, NULL);
    rtcSetGeometryOccludedFunction(geometry, note_hit);
    rtcCommitGeometry(geometry);
    rtcAttachGeometry(finder->scene, geometry);
    rtcReleaseGeometry(geometry);
    rtcCommitScene(finder->scene);
    return check_device(finder->device, err);
}

static void embree_close(bsw_entry_finder **finder)
{
    if (!*finder) return;
    if ((*finder)->scene) rtcReleaseScene((*finder)->scene);
    if ((*finder)->device) rtcReleaseDevice((*finder)->device);
    bsw_entry_scene_deinit(&(*finder)->spheres);
    bsw_free(finder);
}

static enum bsw_status embree_open(const struct bsw_entry_book *book,
                                   const struct bsw_entry_finder_options *options,
                                   bsw_entry_finder **out, struct bsw_error *err)
{
    struct bsw_entry_finder *finder;
    BSW_TRY(bsw_allocate_zero(&finder, 1, sizeof *finder, "entries within a radius", err));
    finder->table = bsw_entries_within_table_get(options->level);
    finder->has_hit_time = options->has_hit_time;
    enum bsw_status status = bsw_entry_scene_init(book, options->reach, &finder->spheres, err);
    if (status == BSW_OK) status = build_scene(finder, err);
    if (status == BSW_OK)
        *out = finder;
    else
        embree_close(&finder);
    return status;
}

static size_t trace_ray(const struct bsw_entry_finder *finder, const struct bsw_entry_ray *ray,
                        float most_time, const struct bsw_entry_hits *hits, size_t count)
{
    struct trace trace; // times of what is not hit are not read
    struct RTCRay traced = {.org_x = ray->x,
                            .org_y = ray->y,
                            .org_z = bsw_entry_scene_start(&finder->spheres, ray->subspace),
                            .dir_z = 1.0f,
                            .tfar = most_time,
                            .mask = UINT32_MAX};
    rtcInitIntersectContext(&trace.context);
    trace.finder = finder;
    for (int i = 0; i < 4; i++) trace.hits[i] = 0;
    rtcOccluded1(finder->scene, &trace.context, &traced);
    return bsw_entry_scene_append(&finder->spheres, ray, trace.hits,
                                  finder->has_hit_time ? trace.times : NULL, hits, count);
}

static enum bsw_status embree_find(bsw_entry_finder *finder, const struct bsw_entry_ray *rays,
                                   size_t num_rays, const struct bsw_entry_hits *hits,
                                   struct bsw_error *err)
{
    const struct bsw_entry_book *book = &finder->spheres.book;
    size_t count = 0;
    (void)err;
    hits->offsets[0] = 0;
    for (size_t r = 0; r < num_rays; r++) {
        float most_time;
        if (bsw_entry_scene_most_time(&finder->spheres, &rays[r], !finder->has_hit_time,
                                      &most_time)) {
            count = trace_ray(finder, &rays[r], most_time, hits, count);
        } else {
            const float *x = book->points + (size_t)rays[r].subspace * 2 * book->entries;
            if (hits->num_computed) *hits->num_computed += book->entries;
            count +=
                finder->table->within[book->value](x, x + book->entries, book->entries, &rays[r],
                                                   hits->entries + count, hits->values + count);
        }
        hits->offsets[r + 1] = (uint32_t)count;
    }
    return BSW_OK;
}

const struct bsw_entry_finder_ops bsw_entry_embree = {
    .name = "embree", .open = embree_open, .find = embree_find, .close = embree_close};
