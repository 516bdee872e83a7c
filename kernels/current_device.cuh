// SPDX-License-Identifier: Apache-2.0
// What launchers ask the runtime about their device and their kernels: once, not at every launch.
// All that a later launch asks is which device the thread has, a variable of the runtime's.
#ifndef BITSWEEP_KERNELS_CURRENT_DEVICE_CUH
#define BITSWEEP_KERNELS_CURRENT_DEVICE_CUH

#include "kernels/cuda_switch.cuh"

namespace bsw
{

struct device_traits {
    int ordinal; // -1: not asked yet
    int major, minor, multiprocessors;
    int most_shared_bytes; // dynamic, of a block
};

inline cudaError_t ask_device(int ordinal, device_traits *out)
{
    const struct {
        cudaDeviceAttr which;
        int *value;
    } questions[] = {{cudaDevAttrComputeCapabilityMajor, &out->major},
                     {cudaDevAttrComputeCapabilityMinor, &out->minor},
                     {cudaDevAttrMultiProcessorCount, &out->multiprocessors},
                     {cudaDevAttrMaxSharedMemoryPerBlockOptin, &out->most_shared_bytes}};
    out->ordinal = -1;
    for (const auto &question : questions) {
        cudaError_t error = cudaDeviceGetAttribute(question.value, question.which, ordinal);
        if (error) return error;
    }
    out->ordinal = ordinal;
    return cudaSuccess;
}

// Traits of the calling thread's device; each thread asks for itself.
inline cudaError_t get_device_traits(device_traits *out)
{
    static thread_local device_traits known = {-1, 0, 0, 0, 0};
    int ordinal = 0;
    cudaError_t error = cudaGetDevice(&ordinal);
    if (!error && known.ordinal != ordinal) error = ask_device(ordinal, &known);
    *out = known;
    return error;
}

// A kernel as it is launched, and how many blocks of it a multiprocessor runs at a time.
struct kernel_fit {
    const void *kernel; // NULL: a free place
    int ordinal;
    unsigned threads;
    size_t shared_bytes;
    int blocks;
};

// A kernel may have all the shared memory that the device has: launches differ in how much they
// take, and one must not lower what another was allowed.
inline cudaError_t ask_kernel(const device_traits &device, kernel_fit &fit)
{
    cudaError_t error = cudaSuccess;
    if (fit.shared_bytes > 48 << 10) // beyond that the runtime wants to be told
        error = cudaFuncSetAttribute(fit.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     device.most_shared_bytes);
    if (error) return error;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &fit.blocks, fit.kernel, static_cast<int>(fit.threads), fit.shared_bytes);
}

// Before a launch of this shape, whose grid is still open: sets how many blocks of it run at a time
// on the whole device, 1 at least, and lets the kernel have the shared memory. A kernel of more
// than 48 KB must have no static shared memory beside.
inline cudaError_t count_resident_blocks(const void *kernel, const launch_shape &shape,
                                         uint32_t *num_blocks)
{
    static thread_local kernel_fit known[32]; // more than a search launches
    static thread_local unsigned num_asked;
    device_traits device;
    cudaError_t error = get_device_traits(&device);
    if (error) return error;
    const kernel_fit wanted = {kernel, device.ordinal, shape.block.x, shape.shared_bytes, 0};
    const kernel_fit *found = nullptr;
    for (const kernel_fit &fit : known) {
        if (fit.kernel == kernel && fit.ordinal == wanted.ordinal &&
            fit.threads == wanted.threads && fit.shared_bytes == wanted.shared_bytes)
            found = &fit;
    }
    if (!found) {
        kernel_fit &fit = known[num_asked++ % (sizeof known / sizeof known[0])];
        fit = wanted;
        error = ask_kernel(device, fit);
        if (error) fit.kernel = nullptr;
        found = &fit;
    }
    const int blocks = found->blocks < 1 ? 1 : found->blocks;
    *num_blocks = static_cast<uint32_t>(blocks) * static_cast<uint32_t>(device.multiprocessors);
    return error;
}

} // namespace bsw

#endif
