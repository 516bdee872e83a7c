// Device memory, errors, and the rest of the runtime API.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>

#include "emulator_internal.hpp"

namespace emulation
{

std::recursive_mutex emulator_lock;
std::string fault;
bool failed;

static std::string kept_report; // of the error below
static cudaError_t kept_error;
static std::map<const char *, size_t> allocations;
static std::map<const void *, size_t> shared_limits;
static size_t used_bytes;

static size_t bytes_of_environment()
{
    const char *text = getenv("BITSWEEP_EMULATOR_MEMORY");
    return text ? strtoull(text, nullptr, 10) : static_cast<size_t>(4) << 30;
}

size_t device_bytes = bytes_of_environment();

typedef std::lock_guard<std::recursive_mutex> lock;

void note_fault(const std::string &text)
{
    if (!failed) fault = text;
    failed = true;
}

const char *report()
{
    return kept_report.c_str();
}

cudaError_t keep_error(cudaError_t error)
{
    kept_error = error;
    kept_report = fault;
    return error;
}

static cudaError_t take_error()
{
    cudaError_t error = kept_error;
    kept_error = cudaSuccess;
    return error;
}

static cudaError_t refuse(cudaError_t error, const char *text)
{
    fault = text;
    return keep_error(error);
}

void open_device(bool open)
{
#if EMULATOR_ASAN
    for (const auto &a : allocations) {
        if (open) {
            __asan_unpoison_memory_region(a.first, a.second);
        } else {
            __asan_poison_memory_region(a.first, a.second);
        }
    }
#else
    (void)open;
#endif
}

// Whether [place, place + bytes) lies in one allocation.
static bool is_device_range(const void *place, size_t bytes)
{
    const char *at = static_cast<const char *>(place);
    auto next = allocations.upper_bound(at);
    if (next == allocations.begin()) return false;
    --next;
    size_t offset = static_cast<size_t>(at - next->first);
    return offset <= next->second && bytes <= next->second - offset;
}

void check_device_pointer(const void *place, const char *what)
{
    lock guard(emulator_lock);
    if (place && !is_device_range(place, 0))
        note_fault(std::string(what) + " points to host memory");
}

bool is_device_page(uintptr_t page)
{
    uintptr_t low = page << 12, high = low + 4096;
    auto next = allocations.lower_bound(reinterpret_cast<const char *>(high));
    if (next == allocations.begin()) return false;
    --next;
    return reinterpret_cast<uintptr_t>(next->first) + next->second > low;
}

size_t shared_limit(const void *kernel)
{
    auto found = shared_limits.find(kernel);
    return found == shared_limits.end() ? 48 << 10 : found->second;
}

cudaError_t set_attribute(const void *kernel, cudaFuncAttribute, int value)
{
    lock guard(emulator_lock);
    // The least of the devices built for (8.6, 8.9, 12.0) is what kernels may count on.
    if (value < 0 || value > 99 << 10)
        return refuse(cudaErrorInvalidValue, "dynamic shared memory of 0 to 99 KB is possible");
    shared_limits[kernel] =
        static_cast<size_t>(value) < 48 << 10 ? 48 << 10 : static_cast<size_t>(value);
    return cudaSuccess;
}

cudaError_t allocate_device(void **place, size_t bytes)
{
    lock guard(emulator_lock);
    *place = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (bytes > device_bytes - used_bytes)
        return refuse(cudaErrorMemoryAllocation, "device memory is used up");
    char *memory = static_cast<char *>(aligned_alloc(256, (bytes + 255) / 256 * 256));
    if (!memory) return refuse(cudaErrorMemoryAllocation, "host memory is used up");
    memset(memory, 0xA5, bytes); // cudaMalloc does not clear
#if EMULATOR_ASAN
    __asan_poison_memory_region(memory, (bytes + 255) / 256 * 256);
#endif
    allocations[memory] = bytes;
    used_bytes += bytes;
    *place = memory;
    return cudaSuccess;
}

cudaError_t allocate_host(void **place, size_t bytes)
{
    *place = bytes ? aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : nullptr;
    return *place || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

static bool reads_device(cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

static bool writes_device(cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

static cudaError_t copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    if (bytes == 0) return cudaSuccess;
    if (kind != cudaMemcpyDefault && (writes_device(kind) != is_device_range(to, bytes) ||
                                      reads_device(kind) != is_device_range(from, bytes)))
        return refuse(cudaErrorInvalidValue, "copy: a range is not where its kind says");
    open_device(true);
    memcpy(to, from, bytes);
    open_device(false);
    return cudaSuccess;
}

static double milliseconds()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

} // namespace emulation

using emulation::lock;

struct CUstream_st {
    unsigned flags;
};
struct CUevent_st {
    double time;
};

cudaError_t cudaFree(void *place)
{
    lock guard(emulation::emulator_lock);
    if (!place) return cudaSuccess;
    auto found = emulation::allocations.find(static_cast<char *>(place));
    if (found == emulation::allocations.end())
        return emulation::refuse(cudaErrorInvalidValue, "cudaFree of what cudaMalloc did not give");
    emulation::used_bytes -= found->second;
#if EMULATOR_ASAN
    __asan_unpoison_memory_region(place, (found->second + 255) / 256 * 256);
#endif
    emulation::allocations.erase(found);
    free(place);
    return emulation::take_error();
}

cudaError_t cudaFreeHost(void *place)
{
    free(place);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    lock guard(emulation::emulator_lock);
    cudaError_t error = emulation::copy(to, from, bytes, kind);
    cudaError_t earlier = emulation::take_error();
    return earlier ? earlier : error;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t)
{
    lock guard(emulation::emulator_lock);
    return emulation::copy(to, from, bytes, kind);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t)
{
    lock guard(emulation::emulator_lock);
    for (size_t row = 0; row < height; row++) {
        cudaError_t error =
            emulation::copy(static_cast<char *>(to) + row * to_pitch,
                            static_cast<const char *>(from) + row * from_pitch, width, kind);
        if (error) return error;
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t)
{
    lock guard(emulation::emulator_lock);
    if (bytes == 0) return cudaSuccess;
    if (!emulation::is_device_range(to, bytes))
        return emulation::refuse(cudaErrorInvalidValue, "memset: the range is not on the device");
    emulation::open_device(true);
    memset(to, value, bytes);
    emulation::open_device(false);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    return cudaMemsetAsync(to, value, bytes);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    lock guard(emulation::emulator_lock);
    *total_bytes = emulation::device_bytes;
    *free_bytes = emulation::device_bytes - emulation::used_bytes;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device)
{
    if (device != 0) return cudaErrorInvalidDevice;
    *out = {};
    snprintf(out->name, sizeof out->name, "emulated");
    out->totalGlobalMem = emulation::device_bytes;
    out->sharedMemPerBlockOptin = 99 << 10;
    out->major = 8;
    out->minor = 6;
    out->multiProcessorCount = 2;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device)
{
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error) return error;
    switch (which) {
    case cudaDevAttrMultiProcessorCount:
        *value = properties.multiProcessorCount;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
        *value = properties.major;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = properties.minor;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = static_cast<int>(properties.sharedMemPerBlockOptin);
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    *stream = new CUstream_st{flags};
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!stream) return cudaErrorInvalidResourceHandle;
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    lock guard(emulation::emulator_lock);
    return emulation::take_error();
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaDeviceSynchronize();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned)
{
    return event ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new CUevent_st{0};
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (!event) return cudaErrorInvalidResourceHandle;
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    if (!event) return cudaErrorInvalidResourceHandle;
    event->time = emulation::milliseconds();
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return event ? cudaDeviceSynchronize() : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return cudaEventSynchronize(event);
}

cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t from, cudaEvent_t to)
{
    if (!from || !to) return cudaErrorInvalidResourceHandle;
    *out = static_cast<float>(to->time - from->time);
    return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
    return cudaDeviceSynchronize();
}

cudaError_t cudaPeekAtLastError()
{
    lock guard(emulation::emulator_lock);
    return emulation::kept_error;
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "cudaSuccess";
    case cudaErrorInvalidValue:
        return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
        return "cudaErrorInvalidConfiguration";
    case cudaErrorNoDevice:
        return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
        return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
        return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
        return "cudaErrorNotReady";
    case cudaErrorLaunchFailure:
        return "cudaErrorLaunchFailure";
    }
    return "unknown error";
}

// The emulator's own words for the faults it finds.
const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchFailure:
    case cudaErrorMemoryAllocation:
        return emulation::kept_report.empty() ? cudaGetErrorName(error) : emulation::report();
    default:
        return cudaGetErrorName(error);
    }
}
