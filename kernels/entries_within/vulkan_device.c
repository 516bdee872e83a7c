// SPDX-License-Identifier: Apache-2.0
#include "kernels/entries_within/vulkan_device.h"

#include <string.h>

#include "common/base/memory.h"

#define MOST_DEVICES  16
#define MOST_FAMILIES 32

static const char *const extensions[] = {VK_KHR_ACCELERATION_STRUCTURE_EXTENSION_NAME,
                                         VK_KHR_RAY_TRACING_PIPELINE_EXTENSION_NAME,
                                         VK_KHR_DEFERRED_HOST_OPERATIONS_EXTENSION_NAME};
enum { NUM_EXTENSIONS = sizeof extensions / sizeof extensions[0] };

enum bsw_status bsw_vulkan_fail(VkResult result, const char *call, struct bsw_error *err)
{
    int is_memory =
        result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return bsw_fail(err, is_memory ? BSW_ERROR_OUT_OF_MEMORY : BSW_ERROR_IO, "Vulkan: %.*s: %d",
                    (int)strcspn(call, "("), call, (int)result);
}

// ---- choosing a device ----

struct features {
    VkPhysicalDeviceFeatures2 all;
    VkPhysicalDeviceVulkan12Features core;
    VkPhysicalDeviceAccelerationStructureFeaturesKHR structures;
    VkPhysicalDeviceRayTracingPipelineFeaturesKHR pipelines;
};

static void link_features(struct features *f)
{
    f->all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    f->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    f->structures.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ACCELERATION_STRUCTURE_FEATURES_KHR;
    f->pipelines.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_RAY_TRACING_PIPELINE_FEATURES_KHR;
    f->all.pNext = &f->core;
    f->core.pNext = &f->structures;
    f->structures.pNext = &f->pipelines;
}

static int has_extensions(VkPhysicalDevice physical)
{
    VkExtensionProperties *had;
    uint32_t num = 0;
    int num_found = 0;
    if (vkEnumerateDeviceExtensionProperties(physical, NULL, &num, NULL) != VK_SUCCESS ||
        bsw_allocate(&had, num, sizeof *had, "extensions of Vulkan", NULL) != BSW_OK)
        return 0;
    if (vkEnumerateDeviceExtensionProperties(physical, NULL, &num, had) == VK_SUCCESS)
        for (int wanted = 0; wanted < NUM_EXTENSIONS; wanted++)
            for (uint32_t i = 0; i < num; i++)
                num_found += strcmp(had[i].extensionName, extensions[wanted]) == 0;
    bsw_free(&had);
    return num_found == NUM_EXTENSIONS;
}

// How welcome a device is, 0 if it cannot trace.
static int rank_device(VkPhysicalDevice physical)
{
    VkPhysicalDeviceProperties properties;
    struct features f = {0};
    vkGetPhysicalDeviceProperties(physical, &properties);
    if (properties.apiVersion < VK_API_VERSION_1_2 || !has_extensions(physical)) return 0;
    link_features(&f);
    vkGetPhysicalDeviceFeatures2(physical, &f.all);
    if (!f.core.bufferDeviceAddress || !f.structures.accelerationStructure ||
        !f.pipelines.rayTracingPipeline)
        return 0;
    switch (properties.deviceType) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return 2;
    default:
        return 1;
    }
}

static enum bsw_status choose_device(struct bsw_vulkan_device *device, struct bsw_error *err)
{
    VkPhysicalDevice all[MOST_DEVICES];
    uint32_t num = MOST_DEVICES;
    int best = 0;
    VkResult result = vkEnumeratePhysicalDevices(device->instance, &num, all);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) num = 0;
    for (uint32_t i = 0; i < num; i++) {
        int rank = rank_device(all[i]);
        if (rank > best) device->physical = all[i];
        if (rank > best) best = rank;
    }
    if (best == 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "none of %u Vulkan devices traces rays (VK_KHR_ray_tracing_pipeline): "
                        "deploy/install.sh --vulkan has a software driver that does, or take auto",
                        num);
    return BSW_OK;
}

static enum bsw_status choose_family(struct bsw_vulkan_device *device, struct bsw_error *err)
{
    VkQueueFamilyProperties families[MOST_FAMILIES];
    uint32_t num = MOST_FAMILIES;
    vkGetPhysicalDeviceQueueFamilyProperties(device->physical, &num, families);
    for (uint32_t i = 0; i < num; i++) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
        device->family = i;
        return BSW_OK;
    }
    return bsw_fail(err, BSW_ERROR_IO, "Vulkan: the device has no queue that computes");
}

// ---- making it ----

static void read_properties(struct bsw_vulkan_device *device)
{
    VkPhysicalDeviceAccelerationStructurePropertiesKHR structures = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ACCELERATION_STRUCTURE_PROPERTIES_KHR};
    device->tracing = (VkPhysicalDeviceRayTracingPipelinePropertiesKHR){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_RAY_TRACING_PIPELINE_PROPERTIES_KHR,
        .pNext = &structures};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &device->tracing};
    vkGetPhysicalDeviceProperties2(device->physical, &all);
    vkGetPhysicalDeviceMemoryProperties(device->physical, &device->memory);
    device->tracing.pNext = NULL;
    device->scratch_alignment = structures.minAccelerationStructureScratchOffsetAlignment;
    memcpy(device->name, all.properties.deviceName, sizeof device->name);
}

#define LOAD(member, name) device->member = (PFN_##name)vkGetDeviceProcAddr(device->device, #name)

static enum bsw_status load_functions(struct bsw_vulkan_device *device, struct bsw_error *err)
{
    LOAD(create_structure, vkCreateAccelerationStructureKHR);
    LOAD(destroy_structure, vkDestroyAccelerationStructureKHR);
    LOAD(build_sizes, vkGetAccelerationStructureBuildSizesKHR);
    LOAD(structure_address, vkGetAccelerationStructureDeviceAddressKHR);
    LOAD(build_structures, vkCmdBuildAccelerationStructuresKHR);
    LOAD(create_pipelines, vkCreateRayTracingPipelinesKHR);
    LOAD(group_handles, vkGetRayTracingShaderGroupHandlesKHR);
    LOAD(trace_rays, vkCmdTraceRaysKHR);
    if (device->create_structure && device->destroy_structure && device->build_sizes &&
        device->structure_address && device->build_structures && device->create_pipelines &&
        device->group_handles && device->trace_rays)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "Vulkan: the driver lacks a function of its extensions");
}

static enum bsw_status make_device(struct bsw_vulkan_device *device, struct bsw_error *err)
{
    const float priority = 1.0f;
    const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                            .queueFamilyIndex = device->family,
                                            .queueCount = 1,
                                            .pQueuePriorities = &priority};
    struct features wanted = {.core.bufferDeviceAddress = VK_TRUE,
                              .structures.accelerationStructure = VK_TRUE,
                              .pipelines.rayTracingPipeline = VK_TRUE};
    link_features(&wanted);
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &wanted.all,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queues,
                                     .enabledExtensionCount = NUM_EXTENSIONS,
                                     .ppEnabledExtensionNames = extensions};
    BSW_VULKAN_TRY(vkCreateDevice(device->physical, &info, NULL, &device->device), err);
    vkGetDeviceQueue(device->device, device->family, 0, &device->queue);
    return load_functions(device, err);
}

static enum bsw_status make_commands(struct bsw_vulkan_device *device, struct bsw_error *err)
{
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = device->family};
    BSW_VULKAN_TRY(vkCreateCommandPool(device->device, &pool, NULL, &device->pool), err);
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = device->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    BSW_VULKAN_TRY(vkAllocateCommandBuffers(device->device, &commands, &device->commands), err);
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    BSW_VULKAN_TRY(vkCreateFence(device->device, &fence, NULL, &device->fence), err);
    return BSW_OK;
}

enum bsw_status bsw_vulkan_device_init(struct bsw_vulkan_device *out, struct bsw_error *err)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pApplicationName = "bitsweep",
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    memset(out, 0, sizeof *out);
    VkResult result = vkCreateInstance(&info, NULL, &out->instance);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "no Vulkan driver here: deploy/install.sh --vulkan has one, or take auto");
    if (result != VK_SUCCESS) return bsw_vulkan_fail(result, "vkCreateInstance", err);
    BSW_TRY(choose_device(out, err));
    BSW_TRY(choose_family(out, err));
    read_properties(out);
    BSW_TRY(make_device(out, err));
    return make_commands(out, err);
}

void bsw_vulkan_device_deinit(struct bsw_vulkan_device *device)
{
    if (device->device) {
        vkDestroyFence(device->device, device->fence, NULL);
        vkDestroyCommandPool(device->device, device->pool, NULL);
        vkDestroyDevice(device->device, NULL);
    }
    if (device->instance) vkDestroyInstance(device->instance, NULL);
    memset(device, 0, sizeof *device);
}

// ---- memory ----

// The first memory type in `allowed` that has all of `flags`; -1: none.
static int find_memory(const struct bsw_vulkan_device *device, uint32_t allowed,
                       VkMemoryPropertyFlags flags)
{
    for (uint32_t i = 0; i < device->memory.memoryTypeCount; i++)
        if (allowed >> i & 1 && (device->memory.memoryTypes[i].propertyFlags & flags) == flags)
            return (int)i;
    return -1;
}

static int choose_memory(const struct bsw_vulkan_device *device, uint32_t allowed, int is_mapped)
{
    const VkMemoryPropertyFlags host =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryPropertyFlags best =
        is_mapped ? host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    int type = find_memory(device, allowed, best);
    return type >= 0 ? type : find_memory(device, allowed, is_mapped ? host : 0);
}

enum bsw_status bsw_vulkan_buffer_init(const struct bsw_vulkan_device *device, size_t bytes,
                                       VkBufferUsageFlags usage, int is_mapped,
                                       struct bsw_vulkan_buffer *out, struct bsw_error *err)
{
    VkMemoryRequirements needs;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = bytes,
                                     .usage = usage | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    memset(out, 0, sizeof *out);
    BSW_VULKAN_TRY(vkCreateBuffer(device->device, &info, NULL, &out->buffer), err);
    vkGetBufferMemoryRequirements(device->device, out->buffer, &needs);
    int type = choose_memory(device, needs.memoryTypeBits, is_mapped);
    if (type < 0) return bsw_fail(err, BSW_ERROR_IO, "Vulkan: no memory of the kind needed");
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                         .pNext = &flags,
                                         .allocationSize = needs.size,
                                         .memoryTypeIndex = (uint32_t)type};
    BSW_VULKAN_TRY(vkAllocateMemory(device->device, &memory, NULL, &out->memory), err);
    BSW_VULKAN_TRY(vkBindBufferMemory(device->device, out->buffer, out->memory, 0), err);
    if (is_mapped)
        BSW_VULKAN_TRY(vkMapMemory(device->device, out->memory, 0, VK_WHOLE_SIZE, 0, &out->mapped),
                       err);
    const VkBufferDeviceAddressInfo address = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = out->buffer};
    out->address = vkGetBufferDeviceAddress(device->device, &address);
    return BSW_OK;
}

void bsw_vulkan_buffer_deinit(const struct bsw_vulkan_device *device,
                              struct bsw_vulkan_buffer *buffer)
{
    if (!device->device) return;
    vkDestroyBuffer(device->device, buffer->buffer, NULL);
    vkFreeMemory(device->device, buffer->memory, NULL); // unmaps
    memset(buffer, 0, sizeof *buffer);
}

// ---- commands ----

enum bsw_status bsw_vulkan_begin(struct bsw_vulkan_device *device, struct bsw_error *err)
{
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    BSW_VULKAN_TRY(vkBeginCommandBuffer(device->commands, &info), err);
    return BSW_OK;
}

enum bsw_status bsw_vulkan_finish(struct bsw_vulkan_device *device, struct bsw_error *err)
{
    const VkMemoryBarrier to_host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(device->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                         VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, NULL, 0, NULL);
    BSW_VULKAN_TRY(vkEndCommandBuffer(device->commands), err);
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &device->commands};
    BSW_VULKAN_TRY(vkQueueSubmit(device->queue, 1, &submit, device->fence), err);
    BSW_VULKAN_TRY(vkWaitForFences(device->device, 1, &device->fence, VK_TRUE, UINT64_MAX), err);
    BSW_VULKAN_TRY(vkResetFences(device->device, 1, &device->fence), err);
    return BSW_OK;
}
