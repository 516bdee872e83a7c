// SPDX-License-Identifier: Apache-2.0
// Device memory, errors, and the rest of the runtime API.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "emulator_internal.hpp"

namespace emulation
{

std::recursive_mutex emulator_lock;
std::string fault;
bool failed;

static std::string kept_report; // of the error below
static cudaError_t kept_error;
struct allocation {
    size_t bytes;
    int device;
};
static std::map<const char *, allocation> allocations;
static std::map<std::pair<const void *, int>, size_t> shared_limits; // of a kernel on a device
static size_t used_bytes;

static size_t bytes_of_environment()
{
    const char *text = getenv("BITSWEEP_EMULATOR_MEMORY");
    return text ? strtoull(text, nullptr, 10) : static_cast<size_t>(4) << 30;
}

size_t device_bytes = bytes_of_environment();
uint64_t num_questions;

struct device_kind {
    int major, minor, multiprocessors;
    size_t block_bytes; // of shared memory that a block may have
    // What a multiprocessor has for blocks that run at a time.
    size_t threads, blocks, bytes;
};

static const device_kind &kind_of(int ordinal)
{
    static const device_kind least = {8, 6, 2, 99 << 10, 1536, 16, 100 << 10},
                             specials[] = {{9, 0, 2, 227 << 10, 2048, 32, 228 << 10},
                                           {8, 6, 1, 99 << 10, 1024, 1, 100 << 10},
                                           {8, 6, 500, 99 << 10, 1 << 20, 1000, 100 << 20}};
    static const bool is_hopper = getenv("BITSWEEP_EMULATOR_HOPPER") != nullptr;
    if (ordinal >= hopper_device) return specials[ordinal - hopper_device];
    return is_hopper ? specials[0] : least;
}

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

cudaError_t take_error()
{
    lock guard(emulator_lock);
    cudaError_t error = kept_error;
    kept_error = cudaSuccess;
    return error;
}

cudaError_t refuse(cudaError_t error, const char *text)
{
    lock guard(emulator_lock);
    fault = text;
    return keep_error(error);
}

void open_device(bool open)
{
#if EMULATOR_ASAN
    for (const auto &a : allocations) {
        if (open) {
            __asan_unpoison_memory_region(a.first, a.second.bytes);
        } else {
            __asan_poison_memory_region(a.first, a.second.bytes);
        }
    }
#else
    (void)open;
#endif
}

// The allocation that holds [place, place + bytes), or NULL.
static const allocation *find_allocation(const void *place, size_t bytes)
{
    const char *at = static_cast<const char *>(place);
    auto next = allocations.upper_bound(at);
    if (next == allocations.begin()) return nullptr;
    --next;
    size_t offset = static_cast<size_t>(at - next->first), size = next->second.bytes;
    return offset <= size && bytes <= size - offset ? &next->second : nullptr;
}

bool is_device_range(const void *place, size_t bytes)
{
    return find_allocation(place, bytes) != nullptr;
}

int launch_device = -1;

void check_device_pointer(const void *place, const char *what)
{
    lock guard(emulator_lock);
    if (!place) return;
    const allocation *found = find_allocation(place, 0);
    if (!found)
        note_fault(std::string(what) + " points to host memory");
    else if (launch_device >= 0 && found->device != launch_device)
        note_fault(std::string(what) + " points to memory of another device");
}

bool is_device_page(uintptr_t page)
{
    uintptr_t low = page << 12, high = low + 4096;
    auto next = allocations.lower_bound(reinterpret_cast<const char *>(high));
    if (next == allocations.begin()) return false;
    --next;
    return reinterpret_cast<uintptr_t>(next->first) + next->second.bytes > low;
}

size_t shared_limit(const void *kernel)
{
    auto found = shared_limits.find({kernel, own_device});
    return found == shared_limits.end() ? 48 << 10 : found->second;
}

cudaError_t set_attribute(const void *kernel, cudaFuncAttribute, int value)
{
    lock guard(emulator_lock);
    num_questions++;
    if (value < 0 || static_cast<size_t>(value) > kind_of(own_device).block_bytes)
        return refuse(cudaErrorInvalidValue, "more dynamic shared memory than the device has");
    shared_limits[{kernel, own_device}] =
        static_cast<size_t>(value) < 48 << 10 ? 48 << 10 : static_cast<size_t>(value);
    return cudaSuccess;
}

cudaError_t count_blocks(int *out, const void *kernel, int threads, size_t shared_bytes)
{
    lock guard(emulator_lock);
    constexpr size_t kept_bytes = 1 << 10; // of each block, by the runtime
    const device_kind &kind = kind_of(own_device);
    num_questions++;
    *out = 0;
    if (threads < 1) return refuse(cudaErrorInvalidValue, "blocks of no threads");
    if (static_cast<unsigned>(threads) > max_threads || shared_bytes > shared_limit(kernel))
        return cudaSuccess; // none fits
    *out = static_cast<int>(std::min({kind.threads / static_cast<size_t>(threads), kind.blocks,
                                      kind.bytes / (shared_bytes + kept_bytes)}));
    return cudaSuccess;
}

cudaError_t allocate_device(void **place, size_t bytes)
{
    lock guard(emulator_lock);
    *place = nullptr;
    cudaError_t refused = refuse_while_captured("cudaMalloc");
    if (refused) return refused;
    if (bytes == 0) return cudaSuccess;
    if (bytes > device_bytes - used_bytes)
        return refuse(cudaErrorMemoryAllocation, "device memory is used up");
    char *memory = static_cast<char *>(aligned_alloc(256, (bytes + 255) / 256 * 256));
    if (!memory) return refuse(cudaErrorMemoryAllocation, "host memory is used up");
    memset(memory, 0xA5, bytes); // cudaMalloc does not clear
#if EMULATOR_ASAN
    __asan_poison_memory_region(memory, (bytes + 255) / 256 * 256);
#endif
    allocations[memory] = {bytes, own_device};
    used_bytes += bytes;
    *place = memory;
    return cudaSuccess;
}

static bool reads_device(cudaMemcpyKind kind)
{
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

static bool writes_device(cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

cudaError_t copy_now(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    lock guard(emulator_lock);
    if (bytes == 0) return cudaSuccess;
    if (writes_device(kind) != is_device_range(to, bytes) ||
        reads_device(kind) != is_device_range(from, bytes))
        return refuse(cudaErrorInvalidValue, "copy: a range is not where its kind says");
    if (is_partly_registered(writes_device(kind) ? from : to, bytes))
        return refuse(cudaErrorInvalidValue, "copy: a part of the host's range is registered");
    open_device(true);
    memcpy(to, from, bytes);
    open_device(false);
    return cudaSuccess;
}

cudaError_t fill_now(void *to, int value, size_t bytes)
{
    lock guard(emulator_lock);
    if (bytes == 0) return cudaSuccess;
    if (!is_device_range(to, bytes))
        return refuse(cudaErrorInvalidValue, "memset: the range is not on the device");
    open_device(true);
    memset(to, value, bytes);
    open_device(false);
    return cudaSuccess;
}

} // namespace emulation

using emulation::lock;

cudaError_t cudaFree(void *place)
{
    lock guard(emulation::emulator_lock);
    if (!place) return cudaSuccess;
    cudaError_t refused = emulation::refuse_while_captured("cudaFree");
    if (refused) return refused;
    auto found = emulation::allocations.find(static_cast<char *>(place));
    if (found == emulation::allocations.end())
        return emulation::refuse(cudaErrorInvalidValue, "cudaFree of what cudaMalloc did not give");
    const size_t bytes = found->second.bytes;
    emulation::used_bytes -= bytes;
#if EMULATOR_ASAN
    __asan_unpoison_memory_region(place, (bytes + 255) / 256 * 256);
#endif
    emulation::allocations.erase(found);
    free(place);
    return emulation::take_error();
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    lock guard(emulation::emulator_lock);
    cudaError_t refused = emulation::refuse_while_captured("cudaMemcpy");
    if (refused) return refused;
    cudaError_t error = emulation::copy_now(to, from, bytes, kind);
    cudaError_t earlier = emulation::take_error();
    return earlier ? earlier : error;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    lock guard(emulation::emulator_lock);
    *total_bytes = emulation::device_bytes;
    const char *text = getenv("BITSWEEP_EMULATOR_TAKEN");
    size_t used = emulation::used_bytes + (text ? strtoull(text, nullptr, 10) : 0);
    *free_bytes = used < emulation::device_bytes ? emulation::device_bytes - used : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= emulation::end_of_devices) return cudaErrorInvalidDevice;
    emulation::own_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = emulation::own_device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device)
{
    if (device < 0 || device >= emulation::end_of_devices) return cudaErrorInvalidDevice;
    const emulation::device_kind &kind = emulation::kind_of(device);
    *out = {};
    snprintf(out->name, sizeof out->name, "emulated");
    out->totalGlobalMem = emulation::device_bytes;
    out->sharedMemPerBlockOptin = kind.block_bytes;
    out->major = kind.major;
    out->minor = kind.minor;
    out->multiProcessorCount = kind.multiprocessors;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr which, int device)
{
    cudaDeviceProp properties;
    emulation::num_questions++;
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

cudaError_t cudaGetLastError()
{
    return emulation::take_error();
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
    case cudaErrorNoKernelImageForDevice:
        return "cudaErrorNoKernelImageForDevice";
    case cudaErrorInsufficientDriver:
        return "cudaErrorInsufficientDriver";
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
    case cudaErrorIllegalState:
        return "cudaErrorIllegalState";
    case cudaErrorStreamCaptureUnsupported:
        return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
        return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureIsolation:
        return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent:
        return "cudaErrorCapturedEvent";
    case cudaErrorStreamCaptureWrongThread:
        return "cudaErrorStreamCaptureWrongThread";
    case cudaErrorGraphExecUpdateFailure:
        return "cudaErrorGraphExecUpdateFailure";
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
    case cudaErrorInvalidResourceHandle:
        return emulation::kept_report.empty() ? cudaGetErrorName(error) : emulation::report();
    default:
        return cudaGetErrorName(error);
    }
}
