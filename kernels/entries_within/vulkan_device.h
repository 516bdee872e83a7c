// SPDX-License-Identifier: Apache-2.0
// A Vulkan device that traces rays, its memory, and commands that are waited for: what
// vulkan_tracer.h is made of. Nothing here knows of entries.
#ifndef BITSWEEP_KERNELS_VULKAN_DEVICE_H
#define BITSWEEP_KERNELS_VULKAN_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include <vulkan/vulkan.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

struct bsw_vulkan_device {
    VkInstance instance;
    VkPhysicalDevice physical;
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    VkDevice device;
    uint32_t family; // of queues
    VkQueue queue;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t scratch_alignment;
    VkPhysicalDeviceRayTracingPipelinePropertiesKHR tracing;
    PFN_vkCreateAccelerationStructureKHR create_structure;
    PFN_vkDestroyAccelerationStructureKHR destroy_structure;
    PFN_vkGetAccelerationStructureBuildSizesKHR build_sizes;
    PFN_vkGetAccelerationStructureDeviceAddressKHR structure_address;
    PFN_vkCmdBuildAccelerationStructuresKHR build_structures;
    PFN_vkCreateRayTracingPipelinesKHR create_pipelines;
    PFN_vkGetRayTracingShaderGroupHandlesKHR group_handles;
    PFN_vkCmdTraceRaysKHR trace_rays;
};

// Calls of Vulkan that can fail: the caller returns the status with the call's name and result.
#define BSW_VULKAN_TRY(call, err)                                                       \
    do {                                                                                \
        VkResult bsw_result_ = (call);                                                  \
        if (bsw_result_ != VK_SUCCESS) return bsw_vulkan_fail(bsw_result_, #call, err); \
    } while (0)
// The name is the text of `call` up to its arguments.
enum bsw_status bsw_vulkan_fail(VkResult result, const char *call, struct bsw_error *err);

// The first device that traces rays, GPUs before CPUs. BSW_ERROR_USAGE where there is none. The
// caller deinits, also after a failure; *out is zeros or from this.
enum bsw_status bsw_vulkan_device_init(struct bsw_vulkan_device *out, struct bsw_error *err);
void bsw_vulkan_device_deinit(struct bsw_vulkan_device *device);

struct bsw_vulkan_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    void *mapped; // NULL: the device's alone
    VkDeviceAddress address;
};

enum bsw_status bsw_vulkan_buffer_init(const struct bsw_vulkan_device *device, size_t bytes,
                                       VkBufferUsageFlags usage, int is_mapped,
                                       struct bsw_vulkan_buffer *out, struct bsw_error *err);
void bsw_vulkan_buffer_deinit(const struct bsw_vulkan_device *device,
                              struct bsw_vulkan_buffer *buffer);

// Records to device->commands between the two; the second waits until they are done, and all that
// they wrote can be read here.
enum bsw_status bsw_vulkan_begin(struct bsw_vulkan_device *device, struct bsw_error *err);
enum bsw_status bsw_vulkan_finish(struct bsw_vulkan_device *device, struct bsw_error *err);

BSW_C_END
#endif
