// SPDX-License-Identifier: Apache-2.0
// Devices and their memory as common/device/device.cu sees them, and faults that the environment
// asks for.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <set>

#include "emulator_internal.hpp"

namespace emulation
{

thread_local int own_device;

// Everything that was made and not freed. A program that gives a device up frees nothing of it;
// that is no leak, so this outlives static objects.
static std::set<const void *> &kept = *new std::set<const void *>;
static std::map<const void *, size_t> &registered = *new std::map<const void *, size_t>;
static std::map<std::string, uint64_t> &counts = *new std::map<std::string, uint64_t>;

typedef std::lock_guard<std::recursive_mutex> lock;

bool is_struck(const char *variable, int ordinal)
{
    const char *text = getenv(variable);
    char *end;
    if (!text) return false;
    uint64_t number = strtoull(text, &end, 10);
    if (*end == ':') {
        if (number != static_cast<uint64_t>(ordinal)) return false;
        number = strtoull(end + 1, nullptr, 10);
    }
    lock guard(emulator_lock);
    return ++counts[variable] >= number;
}

bool is_automatic()
{
    return getenv("BITSWEEP_EMULATOR_AUTO") != nullptr;
}

// How many the process sees; *found: which of the host's number `ordinal` is, -1: none.
static cudaError_t look_up(int ordinal, int *count, int *found)
{
    const char *all = getenv("BITSWEEP_EMULATOR_DEVICES"),
               *visible = getenv("BITSWEEP_EMULATOR_VISIBLE");
    int num_all = all ? atoi(all) : 64;
    *found = !visible && ordinal < num_all ? ordinal : -1;
    *count = visible ? 0 : num_all;
    if (num_all < 0) return cudaErrorInsufficientDriver;
    for (char *end; visible && *visible; visible = *end == ',' ? end + 1 : end) {
        long device = strtol(visible, &end, 10);
        if (end == visible) break;
        if ((*count)++ == ordinal) *found = static_cast<int>(device);
    }
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t count_devices(int *count)
{
    int found;
    return look_up(0, count, &found);
}

// They differ in nothing but the number.
cudaError_t choose_device(int ordinal)
{
    int count, found;
    cudaError_t code = look_up(ordinal, &count, &found);
    if (code != cudaSuccess) return code;
    if (ordinal < 0 || found < 0) return cudaErrorInvalidDevice;
    own_device = found;
    return cudaSuccess;
}

cudaError_t get_attribute(int *out, cudaDeviceAttr which, int ordinal)
{
    int count, found;
    cudaError_t code = look_up(ordinal, &count, &found);
    if (code != cudaSuccess) return code;
    if (which == cudaDevAttrComputeCapabilityMajor)
        *out = is_struck("BITSWEEP_EMULATOR_OLD", found) ? 7 : 8;
    else
        *out = 0;
    return cudaSuccess;
}

cudaError_t get_uuid(int ordinal, cudaUUID_t *out)
{
    int count, found;
    cudaError_t code = look_up(ordinal, &count, &found);
    memset(out, 0, sizeof *out);
    out->bytes[14] = static_cast<char>(found >> 8);
    out->bytes[15] = static_cast<char>(found);
    return code;
}

// On no machine's bus.
cudaError_t get_bus_id(char *out, int capacity, int ordinal)
{
    int count, found;
    cudaError_t code = look_up(ordinal, &count, &found);
    snprintf(out, static_cast<size_t>(capacity), "FFFF:%02X:00.0", static_cast<unsigned>(found));
    return code;
}

cudaError_t get_kernel(cudaFuncAttributes *, void (*)())
{
    return is_struck("BITSWEEP_EMULATOR_NO_IMAGE", own_device) ? cudaErrorNoKernelImageForDevice
                                                               : cudaSuccess;
}

cudaError_t describe_device(cudaDeviceProp *out, int)
{
    return cudaGetDeviceProperties(out, 0);
}

static cudaError_t keep(cudaError_t code, void *const *place)
{
    lock guard(emulator_lock);
    if (code == cudaSuccess) kept.insert(*place);
    return code;
}

// As the driver does, freeing waits for the work that may use the memory. CUDA returns an error for
// what it did not give out, which nobody asks for: here that ends the program.
template <typename container>
static void let_go(container *from, const void *place, const char *what)
{
    run_all_queues();
    lock guard(emulator_lock);
    if (from->erase(place) == 0) fail("%s of what is not there, or no longer", what);
}

cudaError_t allocate_kept(void **place, size_t bytes)
{
    *place = nullptr;
    if (is_struck("BITSWEEP_EMULATOR_REFUSE", own_device)) return cudaErrorMemoryAllocation;
    return keep(allocate_device(place, bytes), place);
}

cudaError_t free_kept(void *place)
{
    cudaError_t refused = refuse_while_captured("cudaFree");
    if (refused) return refused;
    if (place) let_go(&kept, place, "cudaFree");
    return cudaFree(place);
}

cudaError_t allocate_pinned(void **place, size_t bytes)
{
    *place = nullptr;
    cudaError_t refused = refuse_while_captured("cudaMallocHost");
    if (refused) return refused;
    if (is_struck("BITSWEEP_EMULATOR_REFUSE_PINNED", own_device)) return cudaErrorMemoryAllocation;
    if (bytes > 0) *place = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return keep(*place || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation, place);
}

cudaError_t free_pinned(void *place)
{
    cudaError_t refused = refuse_while_captured("cudaFreeHost");
    if (refused) return refused;
    if (place) let_go(&kept, place, "cudaFreeHost");
    free(place);
    return cudaSuccess;
}

// The bytes of a range that are registered, of the first piece of it only.
static size_t registered_bytes(const void *memory, size_t bytes)
{
    const char *begin = static_cast<const char *>(memory), *end = begin + bytes;
    for (auto &piece : registered) {
        const char *from = static_cast<const char *>(piece.first), *to = from + piece.second;
        if (from < end && begin < to) return std::min(end, to) - std::max(begin, from);
    }
    return 0;
}

bool is_partly_registered(const void *memory, size_t bytes)
{
    lock guard(emulator_lock);
    size_t inside = registered_bytes(memory, bytes);
    return inside > 0 && inside < bytes;
}

cudaError_t register_host(void *memory, size_t bytes, unsigned)
{
    const timespec pause = {0, 20000000};
    if (is_struck("BITSWEEP_EMULATOR_REFUSE_REGISTER", own_device))
        return cudaErrorMemoryAllocation;
    if (is_struck("BITSWEEP_EMULATOR_SLOW_REGISTER", own_device)) nanosleep(&pause, nullptr);
    cudaError_t refused = refuse_while_captured("cudaHostRegister");
    if (refused) return refused;
    lock guard(emulator_lock);
    if (bytes == 0 || registered_bytes(memory, bytes) > 0) return cudaErrorInvalidValue;
    registered[memory] = bytes;
    return cudaSuccess;
}

cudaError_t unregister_host(void *memory)
{
    cudaError_t refused = refuse_while_captured("cudaHostUnregister");
    if (refused) return refused;
    let_go(&registered, memory, "cudaHostUnregister");
    return cudaSuccess;
}

} // namespace emulation

cudaError_t cudaDriverGetVersion(int *version)
{
    int count;
    bool is_there = emulation::count_devices(&count) != cudaErrorInsufficientDriver;
    *version = is_there ? 13000 : 0;
    return cudaSuccess;
}
