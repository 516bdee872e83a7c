// SPDX-License-Identifier: Apache-2.0
#include "kernels/entries_within/vulkan_tracer.h"

#include <string.h>

// Made of the shaders by glslangValidator (deploy/rays.cmake).
#include "entry_hit_rahit.h"
#include "entry_none_rmiss.h"
#include "entry_sphere_rint.h"
#include "entry_trace_rgen.h"

// entry_trace.glsl has the same.
struct launch {
    VkDeviceAddress scene, rays, spheres, masks, times;
    uint32_t entries, has_times;
};

#define MASK_WORDS 8
#define MOST_TIMES 256
#define NUM_GROUPS 3
#define ALL_SHADERS                                                          \
    (VK_SHADER_STAGE_RAYGEN_BIT_KHR | VK_SHADER_STAGE_INTERSECTION_BIT_KHR | \
     VK_SHADER_STAGE_ANY_HIT_BIT_KHR)

// ---- acceleration structures ----

static enum bsw_status
build_structure(struct bsw_vulkan_device *device, VkAccelerationStructureTypeKHR type,
                const VkAccelerationStructureGeometryKHR *geometry, uint32_t count,
                VkAccelerationStructureBuildSizesInfoKHR sizes, VkDeviceAddress scratch,
                struct bsw_vulkan_structure *out, struct bsw_error *err)
{
    const VkAccelerationStructureCreateInfoKHR create = {
        .sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_CREATE_INFO_KHR,
        .buffer = out->memory.buffer,
        .size = sizes.accelerationStructureSize,
        .type = type};
    BSW_VULKAN_TRY(device->create_structure(device->device, &create, NULL, &out->structure), err);
    const VkAccelerationStructureBuildGeometryInfoKHR build = {
        .sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_BUILD_GEOMETRY_INFO_KHR,
        .type = type,
        .flags = VK_BUILD_ACCELERATION_STRUCTURE_PREFER_FAST_TRACE_BIT_KHR,
        .mode = VK_BUILD_ACCELERATION_STRUCTURE_MODE_BUILD_KHR,
        .dstAccelerationStructure = out->structure,
        .geometryCount = 1,
        .pGeometries = geometry,
        .scratchData.deviceAddress = scratch};
    const VkAccelerationStructureBuildRangeInfoKHR range = {.primitiveCount = count},
                                                   *ranges = &range;
    BSW_TRY(bsw_vulkan_begin(device, err));
    device->build_structures(device->commands, 1, &build, &ranges);
    BSW_TRY(bsw_vulkan_finish(device, err));
    const VkAccelerationStructureDeviceAddressInfoKHR address = {
        .sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_DEVICE_ADDRESS_INFO_KHR,
        .accelerationStructure = out->structure};
    out->address = device->structure_address(device->device, &address);
    return BSW_OK;
}

// Makes an acceleration structure of `count` boxes or instances.
static enum bsw_status make_structure(struct bsw_vulkan_device *device,
                                      VkAccelerationStructureTypeKHR type,
                                      const VkAccelerationStructureGeometryKHR *geometry,
                                      uint32_t count, struct bsw_vulkan_structure *out,
                                      struct bsw_error *err)
{
    struct bsw_vulkan_buffer scratch = {0};
    const VkAccelerationStructureBuildGeometryInfoKHR build = {
        .sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_BUILD_GEOMETRY_INFO_KHR,
        .type = type,
        .flags = VK_BUILD_ACCELERATION_STRUCTURE_PREFER_FAST_TRACE_BIT_KHR,
        .mode = VK_BUILD_ACCELERATION_STRUCTURE_MODE_BUILD_KHR,
        .geometryCount = 1,
        .pGeometries = geometry};
    VkAccelerationStructureBuildSizesInfoKHR sizes = {
        .sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_BUILD_SIZES_INFO_KHR};
    device->build_sizes(device->device, VK_ACCELERATION_STRUCTURE_BUILD_TYPE_DEVICE_KHR, &build,
                        &count, &sizes);
    BSW_TRY(bsw_vulkan_buffer_init(device, sizes.accelerationStructureSize,
                                   VK_BUFFER_USAGE_ACCELERATION_STRUCTURE_STORAGE_BIT_KHR, 0,
                                   &out->memory, err));
    VkDeviceSize alignment = device->scratch_alignment ? device->scratch_alignment : 1;
    enum bsw_status status =
        bsw_vulkan_buffer_init(device, sizes.buildScratchSize + alignment,
                               VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, 0, &scratch, err);
    if (status == BSW_OK)
        status =
            build_structure(device, type, geometry, count, sizes,
                            (scratch.address + alignment - 1) / alignment * alignment, out, err);
    bsw_vulkan_buffer_deinit(device, &scratch);
    return status;
}

static enum bsw_status make_bottom(struct bsw_vulkan_tracer *t, const struct bsw_entry_scene *scene,
                                   struct bsw_error *err)
{
    uint32_t num = scene->book.subspaces * scene->book.entries;
    BSW_TRY(bsw_vulkan_buffer_init(
        &t->device, num * sizeof(VkAabbPositionsKHR),
        VK_BUFFER_USAGE_ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_BIT_KHR, 1, &t->boxes, err));
    BSW_TRY(bsw_vulkan_buffer_init(&t->device, num * sizeof(float[4]),
                                   VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, 1, &t->spheres, err));
    float *box = t->boxes.mapped, *sphere = t->spheres.mapped;
    for (uint32_t i = 0; i < num; i++) {
        const struct bsw_entry_sphere *from = &scene->spheres[i];
        bsw_entry_scene_box(scene, i, box + (size_t)i * 6, box + (size_t)i * 6 + 3);
        memcpy(sphere + (size_t)i * 4, from, sizeof *from);
        sphere[(size_t)i * 4 + 3] = scene->layers[i / scene->book.entries].origin;
    }
    const VkAccelerationStructureGeometryKHR geometry = {
        .sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_KHR,
        .geometryType = VK_GEOMETRY_TYPE_AABBS_KHR,
        .geometry.aabbs = {.sType =
                               VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_AABBS_DATA_KHR,
                           .data.deviceAddress = t->boxes.address,
                           .stride = sizeof(VkAabbPositionsKHR)}};
    return make_structure(&t->device, VK_ACCELERATION_STRUCTURE_TYPE_BOTTOM_LEVEL_KHR, &geometry,
                          num, &t->bottom, err);
}

static enum bsw_status make_top(struct bsw_vulkan_tracer *t, struct bsw_error *err)
{
    const VkAccelerationStructureInstanceKHR instance = {
        .transform.matrix = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}},
        .mask = 0xff,
        .accelerationStructureReference = t->bottom.address};
    BSW_TRY(
        bsw_vulkan_buffer_init(&t->device, sizeof instance,
                               VK_BUFFER_USAGE_ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_BIT_KHR,
                               1, &t->instance, err));
    memcpy(t->instance.mapped, &instance, sizeof instance);
    const VkAccelerationStructureGeometryKHR geometry = {
        .sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_KHR,
        .geometryType = VK_GEOMETRY_TYPE_INSTANCES_KHR,
        .geometry.instances = {
            .sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_GEOMETRY_INSTANCES_DATA_KHR,
            .data.deviceAddress = t->instance.address}};
    return make_structure(&t->device, VK_ACCELERATION_STRUCTURE_TYPE_TOP_LEVEL_KHR, &geometry, 1,
                          &t->top, err);
}

// ---- pipeline ----

enum shader { TRACE, NONE, HIT, SPHERE, NUM_SHADERS };

static const struct {
    VkShaderStageFlagBits stage;
    size_t bytes;
    const uint32_t *code;
} shaders[NUM_SHADERS] = {
    [TRACE] = {VK_SHADER_STAGE_RAYGEN_BIT_KHR, sizeof bsw_entry_trace_rgen, bsw_entry_trace_rgen},
    [NONE] = {VK_SHADER_STAGE_MISS_BIT_KHR, sizeof bsw_entry_none_rmiss, bsw_entry_none_rmiss},
    [HIT] = {VK_SHADER_STAGE_ANY_HIT_BIT_KHR, sizeof bsw_entry_hit_rahit, bsw_entry_hit_rahit},
    [SPHERE] = {VK_SHADER_STAGE_INTERSECTION_BIT_KHR, sizeof bsw_entry_sphere_rint,
                bsw_entry_sphere_rint}};

static enum bsw_status link_pipeline(struct bsw_vulkan_tracer *t, const VkShaderModule *modules,
                                     struct bsw_error *err)
{
    VkPipelineShaderStageCreateInfo stages[NUM_SHADERS];
    VkRayTracingShaderGroupCreateInfoKHR groups[NUM_GROUPS];
    for (int i = 0; i < NUM_SHADERS; i++)
        stages[i] = (VkPipelineShaderStageCreateInfo){
            .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
            .stage = shaders[i].stage,
            .module = modules[i],
            .pName = "main"};
    for (uint32_t i = 0; i < NUM_GROUPS; i++)
        groups[i] = (VkRayTracingShaderGroupCreateInfoKHR){
            .sType = VK_STRUCTURE_TYPE_RAY_TRACING_SHADER_GROUP_CREATE_INFO_KHR,
            .type = VK_RAY_TRACING_SHADER_GROUP_TYPE_GENERAL_KHR,
            .generalShader = i,
            .closestHitShader = VK_SHADER_UNUSED_KHR,
            .anyHitShader = VK_SHADER_UNUSED_KHR,
            .intersectionShader = VK_SHADER_UNUSED_KHR};
    groups[2].type = VK_RAY_TRACING_SHADER_GROUP_TYPE_PROCEDURAL_HIT_GROUP_KHR;
    groups[2].generalShader = VK_SHADER_UNUSED_KHR;
    groups[2].anyHitShader = HIT;
    groups[2].intersectionShader = SPHERE;
    const VkRayTracingPipelineCreateInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_RAY_TRACING_PIPELINE_CREATE_INFO_KHR,
        .stageCount = NUM_SHADERS,
        .pStages = stages,
        .groupCount = NUM_GROUPS,
        .pGroups = groups,
        .maxPipelineRayRecursionDepth = 1,
        .layout = t->layout};
    BSW_VULKAN_TRY(t->device.create_pipelines(t->device.device, VK_NULL_HANDLE, VK_NULL_HANDLE, 1,
                                              &info, NULL, &t->pipeline),
                   err);
    return BSW_OK;
}

static enum bsw_status make_modules(const struct bsw_vulkan_device *device, VkShaderModule *modules,
                                    struct bsw_error *err)
{
    for (int i = 0; i < NUM_SHADERS; i++) {
        const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                               .codeSize = shaders[i].bytes,
                                               .pCode = shaders[i].code};
        BSW_VULKAN_TRY(vkCreateShaderModule(device->device, &info, NULL, &modules[i]), err);
    }
    return BSW_OK;
}

static enum bsw_status make_pipeline(struct bsw_vulkan_tracer *t, struct bsw_error *err)
{
    VkShaderModule modules[NUM_SHADERS] = {0};
    const VkPushConstantRange constants = {.stageFlags = ALL_SHADERS,
                                           .size = sizeof(struct launch)};
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &constants};
    BSW_VULKAN_TRY(vkCreatePipelineLayout(t->device.device, &layout, NULL, &t->layout), err);
    enum bsw_status status = make_modules(&t->device, modules, err);
    if (status == BSW_OK) status = link_pipeline(t, modules, err);
    for (int i = 0; i < NUM_SHADERS; i++) vkDestroyShaderModule(t->device.device, modules[i], NULL);
    return status;
}

// The table of shaders: a handle of each group, aligned.
static enum bsw_status make_handles(struct bsw_vulkan_tracer *t, struct bsw_error *err)
{
    uint32_t bytes = t->device.tracing.shaderGroupHandleSize,
             base = t->device.tracing.shaderGroupBaseAlignment;
    uint32_t stride = (bytes + base - 1) / base * base;
    unsigned char handles[NUM_GROUPS * 64];
    if (bytes > 64)
        return bsw_fail(err, BSW_ERROR_IO, "Vulkan: handles of shaders are %u bytes", bytes);
    BSW_VULKAN_TRY(t->device.group_handles(t->device.device, t->pipeline, 0, NUM_GROUPS,
                                           NUM_GROUPS * bytes, handles),
                   err);
    BSW_TRY(bsw_vulkan_buffer_init(&t->device, (NUM_GROUPS + 1) * stride,
                                   VK_BUFFER_USAGE_SHADER_BINDING_TABLE_BIT_KHR, 1, &t->handles,
                                   err));
    VkDeviceAddress first = (t->handles.address + base - 1) / base * base;
    for (size_t i = 0; i < NUM_GROUPS; i++) {
        unsigned char *to = t->handles.mapped;
        memcpy(to + (first - t->handles.address) + i * stride, handles + i * bytes, bytes);
        t->regions[i] = (VkStridedDeviceAddressRegionKHR){first + i * stride, stride, stride};
    }
    return BSW_OK;
}

// ---- all of it ----

static enum bsw_status make_arrays(struct bsw_vulkan_tracer *t, struct bsw_error *err)
{
    const VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    size_t timed = t->has_times ? t->most_rays : 1;
    BSW_TRY(bsw_vulkan_buffer_init(&t->device, t->most_rays * sizeof(struct bsw_vulkan_ray), usage,
                                   1, &t->rays, err));
    BSW_TRY(bsw_vulkan_buffer_init(&t->device, t->most_rays * MASK_WORDS * sizeof(uint32_t), usage,
                                   1, &t->masks, err));
    return bsw_vulkan_buffer_init(&t->device, timed * MOST_TIMES * sizeof(float), usage, 1,
                                  &t->times, err);
}

enum bsw_status bsw_vulkan_tracer_init(const struct bsw_entry_scene *scene, size_t most_rays,
                                       int has_times, struct bsw_vulkan_tracer *out,
                                       struct bsw_error *err)
{
    memset(out, 0, sizeof *out);
    out->entries = scene->book.entries;
    out->has_times = has_times;
    out->most_rays = most_rays;
    BSW_TRY(bsw_vulkan_device_init(&out->device, err));
    BSW_TRY(make_bottom(out, scene, err));
    BSW_TRY(make_top(out, err));
    BSW_TRY(make_pipeline(out, err));
    BSW_TRY(make_handles(out, err));
    return make_arrays(out, err);
}

void bsw_vulkan_tracer_deinit(struct bsw_vulkan_tracer *t)
{
    struct bsw_vulkan_buffer *const buffers[] = {&t->times,         &t->masks,      &t->rays,
                                                 &t->handles,       &t->top.memory, &t->instance,
                                                 &t->bottom.memory, &t->spheres,    &t->boxes};
    const struct bsw_vulkan_device *device = &t->device;
    if (device->device) {
        vkDestroyPipeline(device->device, t->pipeline, NULL);
        vkDestroyPipelineLayout(device->device, t->layout, NULL);
        if (t->top.structure) device->destroy_structure(device->device, t->top.structure, NULL);
        if (t->bottom.structure)
            device->destroy_structure(device->device, t->bottom.structure, NULL);
    }
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        bsw_vulkan_buffer_deinit(device, buffers[i]);
    bsw_vulkan_device_deinit(&t->device);
}

enum bsw_status bsw_vulkan_tracer_run(struct bsw_vulkan_tracer *t, size_t num_rays,
                                      struct bsw_error *err)
{
    const struct launch launch = {.scene = t->top.address,
                                  .rays = t->rays.address,
                                  .spheres = t->spheres.address,
                                  .masks = t->masks.address,
                                  .times = t->times.address,
                                  .entries = t->entries,
                                  .has_times = (uint32_t)t->has_times};
    const VkStridedDeviceAddressRegionKHR none = {0};
    VkCommandBuffer commands = t->device.commands;
    memset(t->masks.mapped, 0, num_rays * MASK_WORDS * sizeof(uint32_t));
    BSW_TRY(bsw_vulkan_begin(&t->device, err));
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_RAY_TRACING_KHR, t->pipeline);
    vkCmdPushConstants(commands, t->layout, ALL_SHADERS, 0, sizeof launch, &launch);
    t->device.trace_rays(commands, &t->regions[0], &t->regions[1], &t->regions[2], &none,
                         (uint32_t)num_rays, 1, 1);
    return bsw_vulkan_finish(&t->device, err);
}
