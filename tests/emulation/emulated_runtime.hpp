// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA runtime that host code here uses, for emulated devices. Work without a
// stream is done when the call returns; emulated_queues.hpp says when that of streams is. Device
// memory starts as junk; under ASan host code may not touch it.
#ifndef BITSWEEP_EMULATION_EMULATED_RUNTIME_HPP
#define BITSWEEP_EMULATION_EMULATED_RUNTIME_HPP

#include "emulated_thread.hpp"

enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum : unsigned { cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2 };

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlockOptin;
    int major, minor;
    int multiProcessorCount;
};

typedef struct CUevent_st *cudaEvent_t;

namespace emulation
{
cudaError_t allocate_device(void **place, size_t bytes);
cudaError_t set_attribute(const void *kernel, cudaFuncAttribute which, int value);
cudaError_t count_blocks(int *out, const void *kernel, int threads, size_t shared_bytes);

// Bytes that cudaMalloc gives out in all; also BITSWEEP_EMULATOR_MEMORY in the environment.
extern size_t device_bytes;

// Devices that cudaSetDevice chooses beside those of emulated_queues.hpp, all of which are like the
// least that kernels are built for (8.6, 8.9, 12.0): a Hopper GPU, and the least one with one
// multiprocessor for one block, and with many for many.
enum special_device : int { hopper_device = 64, narrow_device, wide_device, end_of_devices };

// Questions about devices and kernels' launches, of all threads: launchers ask once.
extern uint64_t num_questions;
} // namespace emulation

template <class T> cudaError_t cudaMalloc(T **place, size_t bytes)
{
    return emulation::allocate_device(reinterpret_cast<void **>(place), bytes);
}

template <class F> cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute which, int value)
{
    return emulation::set_attribute(reinterpret_cast<const void *>(kernel), which, value);
}

// As many blocks as there are threads and shared memory for; the emulator knows of no registers.
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F *kernel, int threads,
                                                          size_t shared_bytes)
{
    return emulation::count_blocks(blocks, reinterpret_cast<const void *>(kernel), threads,
                                   shared_bytes);
}

cudaError_t cudaFree(void *place);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *to, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);

cudaError_t cudaDriverGetVersion(int *version); // 0: none
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device);

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to);

// A fault of a kernel is kept until one of these, or a call that waits, has returned it.
cudaError_t cudaGetLastError();
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

#endif
