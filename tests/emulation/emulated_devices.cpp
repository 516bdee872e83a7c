// Devices and their memory as common/device/device.cu sees them, and faults that the environment
// asks for.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "emulator_internal.hpp"

namespace emulation
{

thread_local int own_device;

// Everything that was made and not freed. A program that gives a device up frees nothing of it;
// that is no leak, so this outlives static objects.
static std::set<const void *> &kept = *new std::set<const void *>;
static std::set<const void *> &registered = *new std::set<const void *>;
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

cudaError_t count_devices(int *count)
{
    const char *text = getenv("BITSWEEP_EMULATOR_DEVICES");
    *count = text ? atoi(text) : 64;
    if (*count < 0) return cudaErrorInsufficientDriver;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

// They differ in nothing but the number.
cudaError_t choose_device(int ordinal)
{
    int count;
    cudaError_t code = count_devices(&count);
    if (code != cudaSuccess) return code;
    if (ordinal < 0 || ordinal >= count) return cudaErrorInvalidDevice;
    own_device = ordinal;
    return cudaSuccess;
}

cudaError_t describe_device(cudaDeviceProp *out, int)
{
    return cudaGetDeviceProperties(out, 0);
}

cudaError_t name_place(char *out, int capacity, int ordinal)
{
    snprintf(out, static_cast<size_t>(capacity), "emulated:%d", ordinal);
    return cudaSuccess;
}

static cudaError_t keep(cudaError_t code, void *const *place)
{
    lock guard(emulator_lock);
    if (code == cudaSuccess) kept.insert(*place);
    return code;
}

// As the driver does, freeing waits for the work that may use the memory. CUDA returns an error for
// what it did not give out, which nobody asks for: here that ends the program.
static void let_go(std::set<const void *> *from, const void *place, const char *what)
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
    if (place) let_go(&kept, place, "cudaFree");
    return cudaFree(place);
}

cudaError_t allocate_pinned(void **place, size_t bytes)
{
    *place = nullptr;
    if (is_struck("BITSWEEP_EMULATOR_REFUSE_PINNED", own_device)) return cudaErrorMemoryAllocation;
    if (bytes > 0) *place = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return keep(*place || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation, place);
}

cudaError_t free_pinned(void *place)
{
    if (place) let_go(&kept, place, "cudaFreeHost");
    free(place);
    return cudaSuccess;
}

cudaError_t register_host(void *memory, size_t, unsigned)
{
    if (is_struck("BITSWEEP_EMULATOR_REFUSE_REGISTER", own_device))
        return cudaErrorMemoryAllocation;
    lock guard(emulator_lock);
    return registered.insert(memory).second ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t unregister_host(void *memory)
{
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
