// SPDX-License-Identifier: Apache-2.0
// CUDA's events behind C, so that the same bench runs on the emulator, whose times mean nothing.
#include "kernels/cuda_switch.cuh"

#include "bench/device/device_bench.h"
#include "kernels/current_device.cuh"

extern "C" int device_bench_capability(int *major, int *minor)
{
    bsw::device_traits device;
    cudaError_t error = bsw::get_device_traits(&device);
    *major = device.major;
    *minor = device.minor;
    return error;
}

extern "C" int device_bench_event_make(device_bench_event *out)
{
    return cudaEventCreate(out);
}

extern "C" void device_bench_event_free(device_bench_event *event)
{
    if (*event) (void)cudaEventDestroy(*event);
    *event = nullptr;
}

// The emulator keeps its streams to common/device/device.cu: what stood on them is done by now.
extern "C" int device_bench_event_record(device_bench_event event, bsw_stream stream)
{
#if defined(__CUDACC__)
    return cudaEventRecord(event, stream);
#else
    (void)stream;
    return cudaEventRecord(event);
#endif
}

extern "C" int device_bench_event_seconds(device_bench_event from, device_bench_event to,
                                          double *out)
{
    float milliseconds = 0;
    cudaError_t error = cudaEventElapsedTime(&milliseconds, from, to);
    *out = milliseconds * 1e-3;
    return error;
}
