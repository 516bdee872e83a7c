// SPDX-License-Identifier: Apache-2.0
// Spheres of entry_scene.h on a Vulkan device: acceleration structures over their boxes and a
// ray-tracing pipeline. entry_trace.rgen starts a ray, entry_sphere.rint says when it meets a
// sphere, entry_hit.rahit notes the entry and rejects it.
#ifndef BITSWEEP_KERNELS_VULKAN_TRACER_H
#define BITSWEEP_KERNELS_VULKAN_TRACER_H

#include "kernels/entries_within/entry_scene.h"
#include "kernels/entries_within/vulkan_device.h"

BSW_C_BEGIN

struct bsw_vulkan_ray {
    float x, y, z, most_time; // below 0: not traced
};

struct bsw_vulkan_structure {
    VkAccelerationStructureKHR structure;
    struct bsw_vulkan_buffer memory;
    VkDeviceAddress address;
};

struct bsw_vulkan_tracer {
    struct bsw_vulkan_device device;
    uint32_t entries; // of a subspace
    int has_times;
    size_t most_rays;
    struct bsw_vulkan_buffer boxes, spheres, instance;
    struct bsw_vulkan_structure bottom, top;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    struct bsw_vulkan_buffer handles; // of shaders
    VkStridedDeviceAddressRegionKHR regions[3];
    // What a run reads and writes, mapped: struct bsw_vulkan_ray [most_rays]; uint32_t
    // [most_rays][8], bit e of a ray; float [most_rays][256] where has_times, else of one ray.
    struct bsw_vulkan_buffer rays, masks, times;
};

// The caller deinits, also after a failure.
enum bsw_status bsw_vulkan_tracer_init(const struct bsw_entry_scene *scene, size_t most_rays,
                                       int has_times, struct bsw_vulkan_tracer *out,
                                       struct bsw_error *err);
void bsw_vulkan_tracer_deinit(struct bsw_vulkan_tracer *tracer);

// Traces the first num_rays of `rays`, at least one, to `masks`, which it clears, and `times`.
// Blocks. One thread at a time.
enum bsw_status bsw_vulkan_tracer_run(struct bsw_vulkan_tracer *tracer, size_t num_rays,
                                      struct bsw_error *err);

BSW_C_END
#endif
