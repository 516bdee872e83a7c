// The part of the CUDA runtime that host code here uses, for one emulated device. Work without a
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

// Bytes that cudaMalloc gives out in all; also BITSWEEP_EMULATOR_MEMORY in the environment.
extern size_t device_bytes;

// Compute capability and dynamic shared memory that a block may have. The least of the devices
// built for (8.6, 8.9, 12.0) is what kernels may count on.
struct device_kind {
    int major, minor, shared_bytes;
};
constexpr device_kind small_device = {8, 6, 99 << 10}, hopper_device = {9, 0, 227 << 10};
extern device_kind emulated_device; // small_device at first
} // namespace emulation

template <class T> cudaError_t cudaMalloc(T **place, size_t bytes)
{
    return emulation::allocate_device(reinterpret_cast<void **>(place), bytes);
}

template <class F> cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute which, int value)
{
    return emulation::set_attribute(reinterpret_cast<const void *>(kernel), which, value);
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

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
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
