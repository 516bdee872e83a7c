// SPDX-License-Identifier: Apache-2.0
// Shared memory of the block that runs.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "emulator_internal.hpp"

namespace emulation
{

static constexpr unsigned char junk = 0xCD;
static size_t dynamic_size; // of the launch

#if EMULATOR_ASAN

// A heap block of the exact size, with ASan's red zones.
static unsigned char *dynamic_part;

void open_shared(size_t bytes)
{
    dynamic_size = bytes;
    dynamic_part = static_cast<unsigned char *>(
        aligned_alloc(16, std::max<size_t>(16, (bytes + 15) / 16 * 16)));
    __asan_poison_memory_region(dynamic_part + bytes, bytes % 16 ? 16 - bytes % 16
                                                      : bytes    ? 0
                                                                 : 16);
}

void close_shared()
{
    free(dynamic_part);
    dynamic_part = nullptr;
}

void junk_shared(size_t bytes)
{
    memset(dynamic_part, junk, bytes);
}

void check_canary(size_t)
{
}

bool is_shared_address(uintptr_t)
{
    return false; // for the race detector alone
}

bool is_shared_page(uintptr_t)
{
    return false;
}

#else

static constexpr size_t canary_bytes = 4096, dynamic_bytes = 228 * 1024;

extern "C" unsigned char __start_bsw_shared[], __stop_bsw_shared[];
__attribute__((section("bsw_shared"),
               aligned(1024))) static unsigned char dynamic_part[dynamic_bytes + canary_bytes];

void open_shared(size_t bytes)
{
    dynamic_size = bytes;
}

void close_shared()
{
}

void junk_shared(size_t bytes)
{
    unsigned char *end = dynamic_part + sizeof dynamic_part;
    memset(__start_bsw_shared, junk, static_cast<size_t>(dynamic_part - __start_bsw_shared));
    memset(end, junk, static_cast<size_t>(__stop_bsw_shared - end));
    memset(dynamic_part, junk, bytes + canary_bytes);
}

void check_canary(size_t bytes)
{
    for (size_t i = bytes; i < bytes + canary_bytes && !failed; i++) {
        if (dynamic_part[i] == junk) continue;
        note_fault("write beyond the launch's dynamic shared memory, at byte " + std::to_string(i) +
                   " of " + std::to_string(bytes));
    }
}

bool is_shared_address(uintptr_t address)
{
    return address >= reinterpret_cast<uintptr_t>(__start_bsw_shared) &&
           address < reinterpret_cast<uintptr_t>(__stop_bsw_shared);
}

bool is_shared_page(uintptr_t page)
{
    uintptr_t low = page << 12, high = low + 4096;
    return low < reinterpret_cast<uintptr_t>(__stop_bsw_shared) &&
           high > reinterpret_cast<uintptr_t>(__start_bsw_shared);
}

#endif

size_t shared_size()
{
    return dynamic_size;
}

void *dynamic_shared()
{
    return dynamic_part;
}

// ---- asynchronous copies ----

void check_shared_place(const void *place, unsigned alignment, const char *what, call_site site)
{
    uintptr_t address = reinterpret_cast<uintptr_t>(place);
    if (address % alignment)
        fail("%s of a place that is not %u-byte aligned (%s:%d)", what, alignment, site.file,
             site.line);
    // Under ASan shared variables have no section of their own, and ASan watches the access.
    if (!EMULATOR_ASAN && !is_shared_address(address))
        fail("%s of a place that is not in shared memory (%s:%d)", what, site.file, site.line);
}

void begin_copy(void *to, const void *from, unsigned bytes, call_site site)
{
    check_shared_place(to, bytes, "cp.async", site);
    if (reinterpret_cast<uintptr_t>(from) % bytes)
        fail("cp.async from a place that is not %u-byte aligned (%s:%d)", bytes, site.file,
             site.line);
    if (!is_device_range(from, bytes))
        fail("cp.async from outside device memory (%s:%d)", site.file, site.line);
    self()->copies.push_back({to, from, bytes, self()->num_groups});
}

void commit_copies()
{
    self()->num_groups++;
}

bool take_copy(unsigned left, pending_copy *out)
{
    thread_state *t = self();
    if (t->copies.empty() || t->copies.front().group + left >= t->num_groups) return false;
    *out = t->copies.front();
    t->copies.erase(t->copies.begin());
    return true;
}

} // namespace emulation
