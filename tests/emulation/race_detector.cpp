// SPDX-License-Identifier: Apache-2.0
// Data races between CUDA threads, by CUDA's rules: two accesses to a byte race when they fall into
// one launch, one of them writes, not both are atomic, and no barrier of the block and no
// __syncwarp lies between them; those of different blocks always. Collectives other than these
// order nothing.
//
// Kernels are compiled with -fsanitize=thread but linked without it: the functions that this
// inserts are here. Threads are fibres of one host thread, so nothing is locked.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <unordered_map>

#include "emulator_internal.hpp"

namespace emulation
{

namespace
{

struct access_note {
    unsigned launch, block, phase; // phase: barriers before it
    unsigned epoch;                // of the lane: __syncwarps before it
    uint16_t thread;
    uint8_t bytes; // of the cell, a bit each
    bool atomic;
    void *code;
};

// Four bytes: the last write, and the last reads of two threads, which are enough to judge a write.
struct cell {
    access_note write, reads[2];
};

constexpr unsigned page_bits = 12, page_cells = 1u << (page_bits - 2);
constexpr size_t most_findings = 8;

std::unordered_map<uintptr_t, cell *> pages; // NULL: neither device nor shared memory
struct cached_page {
    uintptr_t page;
    cell *cells;
};
cached_page cache[1024];
constexpr uintptr_t no_page = ~static_cast<uintptr_t>(0);

unsigned launch_number, block_number;
unsigned clocks[max_threads / warp_lanes][warp_lanes]
               [warp_lanes]; // [warp][lane][what it knows of lane]
std::set<std::pair<void *, void *>> seen;
std::string findings;
unsigned num_findings;

bool is_watched(uintptr_t page)
{
    return is_device_page(page) || is_shared_page(page);
}

cell *find_cell(uintptr_t address)
{
    uintptr_t page = address >> page_bits;
    cached_page &entry = cache[page % 1024];
    if (entry.page != page) {
        auto found = pages.find(page);
        if (found == pages.end()) {
            cell *cells =
                is_watched(page) ? static_cast<cell *>(calloc(page_cells, sizeof(cell))) : nullptr;
            found = pages.emplace(page, cells).first;
        }
        entry = {page, found->second};
    }
    return entry.cells ? entry.cells + (address >> 2) % page_cells : nullptr;
}

bool is_of_emulator(const std::string &line)
{
    return line.find("/emulated_") != std::string::npos ||
           line.find("/cuda_switch.") != std::string::npos;
}

// FILE:LINE of an instruction, from addr2line where it is installed, outside the emulator's own
// headers; else the nearest name.
std::string source_line(void *code)
{
    Dl_info info;
    if (!dladdr(code, &info)) return "?";
    char command[600], line[600];
    snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%zx 2>/dev/null", info.dli_fname,
             static_cast<size_t>(static_cast<char *>(code) - static_cast<char *>(info.dli_fbase)) -
                 1);
    std::string out;
    if (FILE *pipe = popen(command, "r")) {
        while (fgets(line, sizeof line, pipe)) {
            line[strcspn(line, "\n")] = '\0';
            if (out.empty() || is_of_emulator(out)) out = line;
        }
        pclose(pipe);
    }
    if (!out.empty()) return out;
    return info.dli_sname ? info.dli_sname : "?";
}

std::string describe(const access_note &a, bool writes)
{
    return std::string(writes ? "write" : "read") + (a.atomic ? " (atomic)" : "") + " by block " +
           std::to_string(a.block - 1) + " thread " + std::to_string(a.thread) + " at " +
           source_line(a.code);
}

void note_race(const access_note &earlier, const access_note &later, uintptr_t address,
               bool earlier_writes, bool later_writes)
{
    num_findings++;
    if (seen.size() >= most_findings || !seen.insert({earlier.code, later.code}).second) return;
    thread_place *running = current_thread;
    current_thread = nullptr; // what follows is no access of the kernel
    char place[64];
    snprintf(place, sizeof place,
             "\n    %s memory %#zx: ", is_shared_address(address) ? "shared" : "global",
             static_cast<size_t>(address));
    findings +=
        place + describe(earlier, earlier_writes) + "\n      and " + describe(later, later_writes);
    current_thread = running;
}

bool is_race(const access_note &earlier, const access_note &later, bool shared)
{
    if (earlier.launch != later.launch || !(earlier.bytes & later.bytes) ||
        (earlier.atomic && later.atomic))
        return false;
    if (earlier.block != later.block) return !shared;
    if (earlier.thread == later.thread || earlier.phase != later.phase) return false;
    unsigned warp = later.thread / warp_lanes;
    return earlier.thread / warp_lanes != warp ||
           clocks[warp][later.thread % warp_lanes][earlier.thread % warp_lanes] < earlier.epoch;
}

void access_cell(cell &c, const access_note &mine, uintptr_t address, bool writes)
{
    bool shared = is_shared_address(address);
    if (is_race(c.write, mine, shared)) note_race(c.write, mine, address, true, writes);
    if (writes) {
        for (const access_note &read : c.reads) {
            if (is_race(read, mine, shared)) note_race(read, mine, address, false, true);
        }
        c.write = mine;
        return;
    }
    access_note &last = c.reads[0];
    bool is_own =
        last.launch == mine.launch && last.block == mine.block && last.thread == mine.thread;
    if (!is_own) c.reads[1] = last;
    last = mine;
}

void access(const volatile void *place, size_t bytes, bool writes, bool atomic, void *code)
{
    if (!current_thread) return;
    unsigned thread = static_cast<unsigned>(self() - block.threads);
    unsigned lane = thread % warp_lanes;
    uintptr_t at = reinterpret_cast<uintptr_t>(place), end = at + bytes;
    while (at < end) {
        uintptr_t next = std::min((at | 3) + 1, end);
        if (cell *c = find_cell(at)) {
            uint8_t mask = static_cast<uint8_t>(((1u << (next - at)) - 1) << (at & 3));
            access_note mine{launch_number,
                             block_number,
                             block.barrier.phase,
                             clocks[thread / warp_lanes][lane][lane],
                             static_cast<uint16_t>(thread),
                             mask,
                             atomic,
                             code};
            access_cell(*c, mine, at, writes);
        }
        at = next;
    }
}

} // namespace

void race_begin_launch()
{
    launch_number++;
    block_number = 0;
    num_findings = 0;
    findings.clear();
    seen.clear();
    for (cached_page &entry : cache) entry = {no_page, nullptr};
    for (auto it = pages.begin(); it != pages.end();) {
        // Memory may have become the device's since, or the host's: a thread's stack.
        bool stays = it->second && is_watched(it->first);
        if (!stays) free(it->second);
        it = stays ? std::next(it) : pages.erase(it);
    }
}

void race_begin_block()
{
    block_number++;
    for (auto &warp : clocks) {
        for (unsigned i = 0; i < warp_lanes; i++) {
            for (unsigned j = 0; j < warp_lanes; j++) warp[i][j] = i == j;
        }
    }
}

void race_sync_warp(unsigned warp, unsigned mask)
{
    unsigned newest[warp_lanes] = {};
    for (unsigned i = 0; i < warp_lanes; i++) {
        if (!(mask >> i & 1)) continue;
        for (unsigned j = 0; j < warp_lanes; j++)
            newest[j] = std::max(newest[j], clocks[warp][i][j]);
    }
    for (unsigned i = 0; i < warp_lanes; i++) {
        if (!(mask >> i & 1)) continue;
        std::copy(newest, newest + warp_lanes, clocks[warp][i]);
        clocks[warp][i][i]++;
    }
}

// Races with what was there before. Who reads it later has waited, or finds junk.
void race_copy_to(const void *place, size_t bytes)
{
    access(place, bytes, true, false, __builtin_return_address(0));
    const uintptr_t first = reinterpret_cast<uintptr_t>(place);
    for (uintptr_t at = first; at < first + bytes; at += 4) {
        if (cell *c = find_cell(at)) c->write = {};
    }
}

std::string race_findings()
{
    if (num_findings == 0) return "";
    return std::to_string(num_findings) + " data races:" + findings;
}

} // namespace emulation

using emulation::access;
#define CODE __builtin_return_address(0)

extern "C" {

void __tsan_init()
{
}
void __tsan_func_entry(void *)
{
}
void __tsan_func_exit()
{
}
void __tsan_vptr_update(void **, void *)
{
}
void __tsan_vptr_read(void **)
{
}

#define ACCESS_FUNCTIONS(kind, bytes)             \
    void __tsan_##kind##read##bytes(void *place)  \
    {                                             \
        access(place, bytes, false, false, CODE); \
    }                                             \
    void __tsan_##kind##write##bytes(void *place) \
    {                                             \
        access(place, bytes, true, false, CODE);  \
    }
#define ACCESS_OF(bytes) \
    ACCESS_FUNCTIONS(, bytes) ACCESS_FUNCTIONS(unaligned_, bytes) ACCESS_FUNCTIONS(volatile_, bytes)
ACCESS_OF(1)
ACCESS_OF(2)
ACCESS_OF(4)
ACCESS_OF(8)
ACCESS_OF(16)

void __tsan_read_range(void *place, size_t bytes)
{
    access(place, bytes, false, false, CODE);
}

void __tsan_write_range(void *place, size_t bytes)
{
    access(place, bytes, true, false, CODE);
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    access(from, bytes, false, false, CODE);
    access(to, bytes, true, false, CODE);
    return memcpy(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    access(from, bytes, false, false, CODE);
    access(to, bytes, true, false, CODE);
    return memmove(to, from, bytes);
}

void *__tsan_memset(void *to, int value, size_t bytes)
{
    access(to, bytes, true, false, CODE);
    return memset(to, value, bytes);
}

#define FETCH(type, bits, name)                                                \
    type __tsan_atomic##bits##_fetch_##name(volatile type *place, type v, int) \
    {                                                                          \
        access(place, sizeof(type), true, true, CODE);                         \
        return __atomic_fetch_##name(place, v, __ATOMIC_RELAXED);              \
    }
#define COMPARE_EXCHANGE(type, bits, strength)                                                  \
    int __tsan_atomic##bits##_compare_exchange_##strength(volatile type *place, type *expected, \
                                                          type v, int, int)                     \
    {                                                                                           \
        access(place, sizeof(type), true, true, CODE);                                          \
        if (*place == *expected) {                                                              \
            *place = v;                                                                         \
            return 1;                                                                           \
        }                                                                                       \
        *expected = *place;                                                                     \
        return 0;                                                                               \
    }
#define ATOMICS(type, bits)                                                                      \
    FETCH(type, bits, add)                                                                       \
    FETCH(type, bits, sub)                                                                       \
    FETCH(type, bits, and)                                                                       \
    FETCH(type, bits, or)                                                                        \
    FETCH(type, bits, xor)                                                                       \
    COMPARE_EXCHANGE(type, bits, strong)                                                         \
    COMPARE_EXCHANGE(type, bits, weak)                                                           \
    type __tsan_atomic##bits##_load(const volatile type *place, int)                             \
    {                                                                                            \
        access(place, sizeof(type), false, true, CODE);                                          \
        return *place;                                                                           \
    }                                                                                            \
    void __tsan_atomic##bits##_store(volatile type *place, type v, int)                          \
    {                                                                                            \
        access(place, sizeof(type), true, true, CODE);                                           \
        *place = v;                                                                              \
    }                                                                                            \
    type __tsan_atomic##bits##_exchange(volatile type *place, type v, int)                       \
    {                                                                                            \
        access(place, sizeof(type), true, true, CODE);                                           \
        type old = *place;                                                                       \
        *place = v;                                                                              \
        return old;                                                                              \
    }                                                                                            \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *place, type expected, type v, \
                                                    int, int)                                    \
    {                                                                                            \
        access(place, sizeof(type), true, true, CODE);                                           \
        type old = *place;                                                                       \
        if (old == expected) *place = v;                                                         \
        return old;                                                                              \
    }
ATOMICS(uint8_t, 8)
ATOMICS(uint16_t, 16)
ATOMICS(uint32_t, 32)
ATOMICS(uint64_t, 64)

} // extern "C"
