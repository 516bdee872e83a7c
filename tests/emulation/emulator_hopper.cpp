// SPDX-License-Identifier: Apache-2.0
// mbarriers, bulk copies and wgmma.
#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "emulated_hopper.hpp"
#include "emulator_internal.hpp"

namespace emulation
{

namespace
{

constexpr unsigned group_threads = 128, most_groups = max_threads / group_threads;
constexpr unsigned tile_rows = 64, tile_columns = 128, tile_k = 32;

bool is_used; // since the last reset, anything but mbarriers

// What a thread waits for, if it does.
const void *waits_for[max_threads];

void wait_for(const void *what, const char *name, call_site site)
{
    thread_state *t = self();
    waits_for[t - block.threads] = what;
    t->waits_in = name;
    t->barrier_site = site;
    give_way(t, false);
}

bool is_awaited(const void *what)
{
    return std::find(waits_for, waits_for + block.num_threads, what) !=
           waits_for + block.num_threads;
}

void wake(const void *what)
{
    for (unsigned i = 0; i < block.num_threads; i++) {
        if (waits_for[i] != what) continue;
        waits_for[i] = nullptr;
        block.threads[i].waits_in = nullptr;
        make_ready(&block.threads[i]);
    }
}

unsigned char *place_of(unsigned address, unsigned bytes, call_site site)
{
    const size_t end = shared_size() + shared_window;
    if (address < shared_window || address > end || bytes > end - address)
        fail(
            "shared address %#x with %u bytes is not in the launch's dynamic shared memory (%s:%d)",
            address, bytes, site.file, site.line);
    return static_cast<unsigned char *>(dynamic_shared()) + (address - shared_window);
}

} // namespace

unsigned shared_address(const void *place)
{
    return static_cast<unsigned>(static_cast<const char *>(place) -
                                 static_cast<const char *>(dynamic_shared())) +
           shared_window;
}

// ---- mbarriers ----

namespace
{

constexpr uint16_t barrier_mark = 0xb417;

struct barrier_word {
    uint16_t mark, expected, missing, phase;
};

struct bulk_transfer {
    void *to;
    const void *from;
    unsigned bytes;
};

// What the phase of a barrier waits for beside arrivals.
struct barrier_copies {
    size_t expected, under_way; // bytes
    std::vector<bulk_transfer> transfers;
};

std::map<barrier_word *, barrier_copies> copies_of;

barrier_word *barrier_at(unsigned address, call_site site)
{
    if (address % 8) fail("mbarrier at a place that is no multiple of 8");
    barrier_word *barrier =
        reinterpret_cast<barrier_word *>(place_of(address, sizeof(barrier_word), site));
    if (barrier->mark != barrier_mark)
        fail("mbarrier that was not initialised (%s:%d)", site.file, site.line);
    return barrier;
}

void end_phase(barrier_word *word)
{
    auto found = copies_of.find(word);
    if (found != copies_of.end()) {
        for (const bulk_transfer &own : found->second.transfers)
            memcpy(own.to, own.from, own.bytes);
        copies_of.erase(found);
    }
    word->missing = word->expected;
    word->phase++;
    wake(word);
}

// All have arrived, and all bytes are on their way.
bool may_end(const barrier_word *word, call_site site)
{
    auto found = copies_of.find(const_cast<barrier_word *>(word));
    if (word->missing > 0) return false;
    if (found == copies_of.end()) return true;
    if (found->second.under_way > found->second.expected)
        fail("copies of %zu bytes tell an mbarrier that expects %zu (%s:%d)",
             found->second.under_way, found->second.expected, site.file, site.line);
    return found->second.under_way == found->second.expected;
}

void arrive(barrier_word *word, call_site site)
{
    if (word->missing == 0)
        fail("more arrivals than a phase of an mbarrier takes (%s:%d)", site.file, site.line);
    word->missing--;
    if (may_end(word, site) && (!copies_of.count(word) || is_awaited(word))) {
        end_phase(word); // those who wait run first: what this thread has forgotten to do before is
        make_ready(self()); // not done yet
        give_way(self(), false);
    }
    may_yield();
}

} // namespace

void barrier_init(unsigned barrier, unsigned arrivals)
{
    const barrier_word word = {barrier_mark, static_cast<uint16_t>(arrivals),
                               static_cast<uint16_t>(arrivals), 0};
    memcpy(place_of(barrier, sizeof word, call_site::here()), &word, sizeof word);
}

void barrier_arrive(unsigned barrier, bool arrives, call_site site)
{
    if (arrives) arrive(barrier_at(barrier, site), site);
}

void barrier_arrive_expecting(unsigned barrier, unsigned bytes, call_site site)
{
    barrier_word *word = barrier_at(barrier, site);
    copies_of[word].expected += bytes;
    arrive(word, site);
}

void barrier_wait(unsigned barrier, unsigned parity, call_site site)
{
    barrier_word *word = barrier_at(barrier, site);
    if (parity > 1) fail("parity %u (%s:%d)", parity, site.file, site.line);
    while (word->phase % 2 == parity) {
        if (may_end(word, site))
            end_phase(word);
        else
            wait_for(word, "mbarrier", site);
    }
}

// ---- bulk copies ----

void bulk_copy(unsigned to, const void *from, unsigned bytes, unsigned barrier, call_site site)
{
    barrier_word *word = barrier_at(barrier, site);
    unsigned char *place = place_of(to, bytes, site);
    if (bytes == 0 || bytes % 16 || to % 16 || reinterpret_cast<uintptr_t>(from) % 16)
        fail("bulk copy of %u bytes, or from or to a place, that is no multiple of 16 (%s:%d)",
             bytes, site.file, site.line);
    if (!is_device_range(from, bytes))
        fail("bulk copy from outside device memory (%s:%d)", site.file, site.line);
#if EMULATOR_RACE
    race_copy_to(place, bytes);
#endif
    memset(place, 0xCD, bytes);
    barrier_copies &own = copies_of[word];
    own.under_way += bytes;
    own.transfers.push_back({place, from, bytes});
    if (is_awaited(word) && may_end(word, site)) end_phase(word);
    may_yield();
}

void check_copies_done()
{
    if (!copies_of.empty() && !failed) note_fault("a block ends with bulk copies under way");
}

// ---- wgmma ----

namespace
{

struct product {
    unsigned a[4];        // registers, or
    uint64_t a_in_shared; // a descriptor; 0: registers
    uint64_t b;
    bool adds;
    call_site site;
};

struct multiplying_thread {
    bool begun;
    int *d;
    int before[64];
    std::vector<product> products;
} multiplying[max_threads];

unsigned finishing[most_groups]; // threads of the warpgroup that wait

// "matrix-descriptor-encode(x) = (x & 0x3FFFF) >> 4" at the given bit, read back.
unsigned descriptor_field(uint64_t descriptor, unsigned bit)
{
    return static_cast<unsigned>(descriptor >> bit & 0x3fff) << 4;
}

void check_descriptor(uint64_t descriptor, call_site site)
{
    const uint64_t known = 0x3fffull | 0x3fffull << 16 | 0x3fffull << 32;
    if (descriptor & ~known)
        fail("wgmma: descriptor %#llx has bits beyond address and offsets (%s:%d)",
             static_cast<unsigned long long>(descriptor), site.file, site.line);
}

// Element (k, i) of B's columns or A's rows is at ((8,m),(T,2k)):((1T,SBO),(1,LBO)) with T = 16,
// without swizzle.
template <class T8, unsigned NUM>
void read_matrix(uint64_t descriptor, call_site site, int16_t (&out)[NUM][tile_k])
{
    check_descriptor(descriptor, site);
    const unsigned start = descriptor_field(descriptor, 0),
                   leading = descriptor_field(descriptor, 16),
                   stride = descriptor_field(descriptor, 32);
    const unsigned T = 16, last = 7 * T + (NUM / 8 - 1) * stride + T - 1 + leading;
    const unsigned char *from = place_of(start, last + 1, site);
    for (unsigned i = 0; i < NUM; i++) {
        for (unsigned k = 0; k < tile_k; k++)
            out[i][k] = static_cast<T8>(from[i % 8 * T + i / 8 * stride + k % T + k / T * leading]);
    }
}

// Rows and k of A's elements a0 .. a15 of a thread, four a register.
void put_fragment(const product &p, unsigned thread, int16_t (&a)[tile_rows][tile_k])
{
    const unsigned group = thread % 32 / 4, place = thread % 4;
    for (unsigned i = 0; i < 16; i++) {
        const unsigned row = 16 * (thread / 32) + group + (i / 4 % 2 == 1 ? 8 : 0);
        const unsigned k = place * 4 + i % 4 + (i >= 8 ? 16 : 0);
        a[row][k] = static_cast<int8_t>(p.a[i / 4] >> 8 * (i % 4));
    }
}

// Where register i of a thread's D is.
void place_of_sum(unsigned thread, unsigned i, unsigned *row, unsigned *column)
{
    *row = 16 * (thread / 32) + thread % 32 / 4 + (i % 4 >= 2 ? 8 : 0);
    *column = i / 4 * 8 + thread % 4 * 2 + i % 2;
}

void multiply(multiplying_thread *threads, size_t which, unsigned (&d)[tile_rows][tile_columns])
{
    const product &first = threads[0].products[which];
    static int16_t a[tile_rows][tile_k], b[tile_columns][tile_k];
    for (unsigned t = 0; t < group_threads; t++) {
        const product &own = threads[t].products[which];
        if (own.b != first.b || own.adds != first.adds || own.a_in_shared != first.a_in_shared)
            fail("wgmma: threads of a warpgroup differ in descriptor or scale-d (%s:%d)",
                 own.site.file, own.site.line);
        put_fragment(own, t, a);
    }
    if (!first.adds) memset(d, 0, sizeof d);
    if (first.a_in_shared) read_matrix<int8_t>(first.a_in_shared, first.site, a);
    read_matrix<uint8_t>(first.b, first.site, b);
    for (unsigned row = 0; row < tile_rows; row++) {
        for (unsigned column = 0; column < tile_columns; column++) {
            int sum = 0; // at most 32 * 128 * 255
            for (unsigned k = 0; k < tile_k; k++) sum += a[row][k] * b[column][k];
            d[row][column] += static_cast<unsigned>(sum);
        }
    }
}

void multiply_all(multiplying_thread *threads)
{
    static unsigned d[tile_rows][tile_columns];
    unsigned row, column;
    for (unsigned t = 0; t < group_threads; t++) {
        if (threads[t].products.size() != threads[0].products.size())
            fail("wgmma: threads of a warpgroup have queued %zu and %zu products",
                 threads[0].products.size(), threads[t].products.size());
        for (unsigned i = 0; i < 64; i++) {
            place_of_sum(t, i, &row, &column);
            d[row][column] = static_cast<unsigned>(threads[t].before[i]);
        }
    }
    for (size_t i = 0; i < threads[0].products.size(); i++) multiply(threads, i, d);
    for (unsigned t = 0; t < group_threads; t++) {
        for (unsigned i = 0; i < 64; i++) {
            place_of_sum(t, i, &row, &column);
            threads[t].d[i] = static_cast<int>(d[row][column]);
        }
        threads[t].products.clear();
        threads[t].begun = false;
        threads[t].d = nullptr;
    }
}

} // namespace

void begin_products(call_site site)
{
    multiplying_thread &own = multiplying[self() - block.threads];
    if (own.d) fail("wgmma.fence while products are under way (%s:%d)", site.file, site.line);
    own.begun = is_used = true;
}

static void queue_product(int (&d)[64], const product &p)
{
    multiplying_thread &own = multiplying[self() - block.threads];
    if (!own.begun) fail("wgmma without wgmma.fence (%s:%d)", p.site.file, p.site.line);
    if (own.d && own.d != d)
        fail("the emulator has one matrix of sums under way a warpgroup (%s:%d)", p.site.file,
             p.site.line);
    if (!own.d) {
        memcpy(own.before, d, sizeof own.before);
        memset(d, 0x5a, sizeof own.before); // undefined until waited for
        own.d = d;
    }
    own.products.push_back(p);
    may_yield();
}

void multiply_64x128(int (&d)[64], const unsigned (&a)[4], uint64_t b, bool adds, call_site site)
{
    queue_product(d, {{a[0], a[1], a[2], a[3]}, 0, b, adds, site});
}

void multiply_64x128(int (&d)[64], uint64_t a, uint64_t b, bool adds, call_site site)
{
    queue_product(d, {{0, 0, 0, 0}, a, b, adds, site});
}

void finish_products(int (&d)[64], call_site site)
{
    const size_t thread = static_cast<size_t>(self() - block.threads);
    const size_t group = thread / group_threads;
    if (multiplying[thread].d != d)
        fail("a wait for products that were not queued (%s:%d)", site.file, site.line);
    if (++finishing[group] < group_threads) {
        wait_for(&finishing[group], "wgmma.wait_group", site);
        return;
    }
    finishing[group] = 0;
    multiply_all(multiplying + group * group_threads);
    wake(&finishing[group]);
}

void reset_hopper()
{
    std::fill(waits_for, waits_for + max_threads, nullptr);
    std::fill(finishing, finishing + most_groups, 0);
    for (unsigned i = 0; i < max_threads && is_used; i++) {
        multiplying[i].begun = false;
        multiplying[i].d = nullptr;
        multiplying[i].products.clear();
    }
    is_used = false;
    copies_of.clear();
}

} // namespace emulation
