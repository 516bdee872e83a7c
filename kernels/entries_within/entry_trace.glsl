// What the shaders of the back end on Vulkan share: where a launch finds its arrays.
#extension GL_EXT_ray_tracing : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_buffer_reference_uvec2 : require

layout(buffer_reference, std430) readonly buffer Rays {
    vec4 ray[]; // x, y, z of the start, largest time
};
layout(buffer_reference, std430) readonly buffer Spheres {
    vec4 sphere[]; // x, y, square of the radius, origin of its layer
};
layout(buffer_reference, std430) buffer Masks {
    uint mask[]; // [rays][8]: bit e of a ray's 256
};
layout(buffer_reference, std430) buffer Times {
    float time[]; // [rays][256]
};

// struct launch of vulkan_tracer.h
layout(push_constant, std430) uniform Launch {
    uvec2 scene;
    Rays rays;
    Spheres spheres;
    Masks masks;
    Times times;
    uint entries;
    uint has_times;
};
