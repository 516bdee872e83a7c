// SPDX-License-Identifier: Apache-2.0
// Meeting of lanes and threads, and what collectives compute.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "emulated_arithmetic.hpp"
#include "emulator_internal.hpp"

namespace emulation
{

const char *operation_name(operation kind)
{
    static const char *const names[] = {"__syncwarp", "__shfl_sync",     "__ballot_sync",
                                        "__any_sync", "__reduce_*_sync", "__match_any_sync",
                                        "mma.sync"};
    return names[static_cast<int>(kind)];
}

static bool is_same_site(call_site a, call_site b)
{
    return a.line == b.line && (a.file == b.file || strcmp(a.file, b.file) == 0);
}

// ---- the block ----

void release_barrier()
{
    barrier_state &b = block.barrier;
    b.result = b.count;
    b.arrived = 0;
    b.phase++;
    b.site = {nullptr, 0};
    b.count = 0;
    for (unsigned i = 0; i < block.num_threads; i++) {
        thread_state &t = block.threads[i];
        if (!t.at_barrier) continue;
        t.at_barrier = false;
        if (&t != current_thread) make_ready(&t);
    }
}

int meet_block(int predicate, call_site site)
{
    thread_state *t = self();
    barrier_state &b = block.barrier;
    if (b.site.file && !is_same_site(b.site, site)) {
        fail("threads meet in __syncthreads at different places: %s:%d and %s:%d (thread %d)",
             b.site.file, b.site.line, site.file, site.line, static_cast<int>(t - block.threads));
    }
    b.site = site;
    b.count += predicate != 0;
    t->at_barrier = true;
    t->barrier_site = site;
    if (++b.arrived == block.num_live) {
        release_barrier();
    } else {
        give_way(t, false);
    }
    return b.result;
}

// ---- the warp ----

// A lane waits in something else: an error if it waits for a lane that waits for it.
static void check_mismatch(const warp_state &warp, const warp_operation &mine,
                           const warp_operation &other, unsigned needed)
{
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if (!((other.mask & needed) >> lane & 1) || warp.lanes[lane]->operation != &mine) continue;
        fail("mismatched warp collectives: %s with mask %08x at %s:%d against %s with mask %08x at "
             "%s:%d",
             operation_name(mine.kind), mine.mask, mine.site.file, mine.site.line,
             operation_name(other.kind), other.mask, other.site.file, other.site.line);
    }
}

// Whether all lanes that are needed wait in the same operation.
static bool gather(const warp_state &warp, const warp_operation &mine, unsigned needed,
                   warp_operation **lanes)
{
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if (!(needed >> lane & 1)) continue;
        warp_operation *other = warp.lanes[lane]->operation;
        if (!other) return false;
        if (other->mask != mine.mask || other->kind != mine.kind) {
            check_mismatch(warp, mine, *other, needed);
            return false;
        }
        if (!is_same_site(other->site, mine.site)) {
            fail("lanes of a warp meet in %s from different lines: %s:%d and %s:%d",
                 operation_name(mine.kind), mine.site.file, mine.site.line, other->site.file,
                 other->site.line);
        }
        lanes[lane] = other;
    }
    return true;
}

bool try_finish(warp_state &warp, const warp_operation &mine, finish_fn finish)
{
    unsigned needed = mine.mask & ~warp.exited;
    if (needed & ~warp.waiting) return false;
    warp_operation *lanes[warp_lanes] = {};
    if (!gather(warp, mine, needed, lanes)) return false;
    counted.collectives++;
#if EMULATOR_RACE
    if (mine.kind == operation::sync_warp)
        race_sync_warp(static_cast<unsigned>(&warp - block.warps), needed);
#endif
    finish(lanes, needed);
    warp.waiting &= ~needed;
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if (!(needed >> lane & 1)) continue;
        thread_state *t = warp.lanes[lane];
        t->operation = nullptr;
        if (t != current_thread) make_ready(t);
    }
    return true;
}

void meet_warp(warp_operation &mine, finish_fn finish)
{
    thread_state *t = self();
    if (!(mine.mask >> t->lane & 1)) {
        fail("lane %u calls %s with mask %08x, which leaves it out (%s:%d)", t->lane,
             operation_name(mine.kind), mine.mask, mine.site.file, mine.site.line);
    }
    t->operation = &mine;
    t->finish = finish;
    t->warp->waiting |= 1u << t->lane;
    if (!try_finish(*t->warp, mine, finish)) give_way(t, false);
}

// ---- what they compute ----

static void finish_shuffle(warp_operation **lanes, unsigned live)
{
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if (!(live >> lane & 1)) continue;
        warp_operation &o = *lanes[lane];
        if (!(live >> o.source & 1)) {
            fail("lane %u shuffles from lane %d, which mask %08x leaves out or which has returned "
                 "(%s:%d)",
                 lane, o.source, o.mask, o.site.file, o.site.line);
        }
        o.out = lanes[o.source]->in;
    }
}

uint64_t shuffle(unsigned mask, uint64_t value, int source, call_site site)
{
    warp_operation mine{operation::shuffle, mask, site, value, 0, source, nullptr, nullptr};
    meet_warp(mine, finish_shuffle);
    return mine.out;
}

static void finish_vote(warp_operation **lanes, unsigned live)
{
    unsigned ones = 0;
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if ((live >> lane & 1) && lanes[lane]->in == 1) ones |= 1u << lane;
    }
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if (!(live >> lane & 1)) continue;
        warp_operation &o = *lanes[lane];
        o.out = o.kind == operation::any ? ones != 0 : ones;
    }
}

unsigned vote(operation kind, unsigned mask, uint64_t value, call_site site)
{
    warp_operation mine{kind, mask, site, value, 0, 0, nullptr, nullptr};
    meet_warp(mine, finish_vote);
    return static_cast<unsigned>(mine.out);
}

static void finish_reduction(warp_operation **lanes, unsigned live)
{
    uint64_t total = 0; // of unsigned numbers, so that it changes no result
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if (!(live >> lane & 1)) continue;
        const warp_operation &o = *lanes[lane];
        total = o.source == static_cast<int>(reduction::add)   ? total + o.in
                : o.source == static_cast<int>(reduction::max) ? std::max(total, o.in)
                                                               : total | o.in;
    }
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if (live >> lane & 1) lanes[lane]->out = total;
    }
}

static void finish_match(warp_operation **lanes, unsigned live)
{
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        if (!(live >> lane & 1)) continue;
        lanes[lane]->out = 0;
        for (unsigned other = 0; other < warp_lanes; other++)
            if (live >> other & 1 && lanes[other]->in == lanes[lane]->in)
                lanes[lane]->out |= uint64_t{1} << other;
    }
}

unsigned match(unsigned mask, uint64_t value, call_site site)
{
    warp_operation mine{operation::match, mask, site, value, 0, 0, nullptr, nullptr};
    meet_warp(mine, finish_match);
    return static_cast<unsigned>(mine.out);
}

uint64_t reduce(reduction which, unsigned mask, uint64_t value, call_site site)
{
    warp_operation mine{operation::reduce,       mask,    site,   value, 0,
                        static_cast<int>(which), nullptr, nullptr};
    meet_warp(mine, finish_reduction);
    return mine.out;
}

// ---- mma.m16n8k32 of bytes, mma.m16n8k128 of bits, mma.m16n8k16 of bf16 and f16: fragments as in
// the PTX manual ----

namespace
{

struct byte_tile {
    typedef int sum;
    typedef unsigned kept_sum; // modulo 2^32, as the device
    int8_t a[16][32];
    uint8_t b[32][8];
    kept_sum c[16][8];
};

// a of u8, b of s8.
struct row_byte_tile {
    typedef int sum;
    typedef unsigned kept_sum;
    uint8_t a[16][32];
    int8_t b[32][8];
    kept_sum c[16][8];
};

struct bit_tile {
    typedef int sum;
    typedef unsigned kept_sum;
    uint32_t a[16][4], b[4][8]; // words of 32 bits of k
    kept_sum c[16][8];
};

struct bf16_tile {
    typedef float sum, kept_sum;
    float a[16][16], b[16][8], c[16][8];
    static float number(uint16_t bits)
    {
        return __uint_as_float(static_cast<unsigned>(bits) << 16);
    }
};

struct f16_tile {
    typedef float sum, kept_sum;
    float a[16][16], b[16][8], c[16][8];
    static float number(uint16_t bits)
    {
        return bsw_half_to_float(bits);
    }
};

template <class TILE> struct fragment {
    typename TILE::sum c[4];
    unsigned a[4], b[2];
};

template <class TILE> void put_bytes(const fragment<TILE> &f, unsigned lane, TILE &out)
{
    unsigned group = lane / 4, place = lane % 4;
    for (unsigned i = 0; i < 16; i++) { // a0, a2: row g; a1, a3: row g + 8; a2, a3: k + 16
        unsigned row = group + (i / 4 % 2 ? 8 : 0), k = place * 4 + i % 4 + (i >= 8 ? 16 : 0);
        out.a[row][k] =
            static_cast<std::remove_reference_t<decltype(out.a[0][0])>>(f.a[i / 4] >> 8 * (i % 4));
    }
    for (unsigned i = 0; i < 8; i++) {
        unsigned k = place * 4 + i % 4 + (i >= 4 ? 16 : 0);
        out.b[k][group] =
            static_cast<std::remove_reference_t<decltype(out.b[0][0])>>(f.b[i / 4] >> 8 * (i % 4));
    }
}

template <class TILE> void multiply_bytes(TILE &t)
{
    for (unsigned row = 0; row < 16; row++) {
        for (unsigned column = 0; column < 8; column++) {
            int sum = 0; // at most 32 * 128 * 255
            for (unsigned k = 0; k < 32; k++) sum += t.a[row][k] * t.b[k][column];
            t.c[row][column] += static_cast<unsigned>(sum);
        }
    }
}

void put_operands(const fragment<byte_tile> &f, unsigned lane, byte_tile &out)
{
    put_bytes(f, lane, out);
}

void put_operands(const fragment<row_byte_tile> &f, unsigned lane, row_byte_tile &out)
{
    put_bytes(f, lane, out);
}

void multiply(byte_tile &t)
{
    multiply_bytes(t);
}

void multiply(row_byte_tile &t)
{
    multiply_bytes(t);
}

void put_operands(const fragment<bit_tile> &f, unsigned lane, bit_tile &out)
{
    unsigned group = lane / 4, place = lane % 4;
    out.a[group][place] = f.a[0];
    out.a[group + 8][place] = f.a[1];
    out.b[place][group] = f.b[0];
}

void multiply(bit_tile &t)
{
    for (unsigned row = 0; row < 16; row++) {
        for (unsigned column = 0; column < 8; column++) {
            for (unsigned k = 0; k < 4; k++)
                t.c[row][column] +=
                    static_cast<unsigned>(__builtin_popcount(t.a[row][k] & t.b[k][column]));
        }
    }
}

template <class TILE> void put_pairs(const fragment<TILE> &f, unsigned lane, TILE &out)
{
    auto half_of = [](unsigned pair, unsigned place) {
        return TILE::number(static_cast<uint16_t>(pair >> 16 * place));
    };
    unsigned group = lane / 4, place = lane % 4;
    for (unsigned i = 0; i < 8; i++) { // a0, a2: row g; a1, a3: row g + 8; a2, a3: k + 8
        unsigned k = place * 2 + i % 2 + (i >= 4 ? 8 : 0);
        out.a[group + (i / 2 % 2 ? 8 : 0)][k] = half_of(f.a[i / 2], i % 2);
        if (i < 4) out.b[place * 2 + i % 2 + (i >= 2 ? 8 : 0)][group] = half_of(f.b[i / 2], i % 2);
    }
}

void put_operands(const fragment<bf16_tile> &f, unsigned lane, bf16_tile &out)
{
    put_pairs(f, lane, out);
}

void put_operands(const fragment<f16_tile> &f, unsigned lane, f16_tile &out)
{
    put_pairs(f, lane, out);
}

// Products of bf16 or f16 are exact in double, and so is a sum of what is left of them.
float sum_cut(const double *addends, unsigned count)
{
    double largest = 0;
    for (unsigned i = 0; i < count; i++) {
        if (!std::isfinite(addends[i])) return NAN;
        largest = std::max(largest, std::fabs(addends[i]));
    }
    if (largest == 0) return 0;
    const int last_bit = std::ilogb(largest) - 23;
    const double unit = std::ldexp(1.0, last_bit), inverse = std::ldexp(1.0, -last_bit);
    int64_t units = 0;
    for (unsigned i = 0; i < count; i++) units += static_cast<int64_t>(addends[i] * inverse);
    const double sum = static_cast<double>(units) * unit;
    if (std::fabs(sum) > FLT_MAX) return NAN;
    float out = static_cast<float>(sum);
    return std::fabs(static_cast<double>(out)) > std::fabs(sum) ? std::nextafterf(out, 0) : out;
}

template <class TILE> void multiply_cut(TILE &t)
{
    for (unsigned row = 0; row < 16; row++) {
        for (unsigned column = 0; column < 8; column++) {
            double addends[17] = {t.c[row][column]};
            for (unsigned k = 0; k < 16; k++)
                addends[k + 1] = static_cast<double>(t.a[row][k]) * t.b[k][column];
            t.c[row][column] = sum_cut(addends, 17);
        }
    }
}

void multiply(bf16_tile &t)
{
    multiply_cut(t);
}

void multiply(f16_tile &t)
{
    multiply_cut(t);
}

// Sum i of a lane.
template <class TILE> auto &sum_at(TILE &t, unsigned lane, unsigned i)
{
    return t.c[lane / 4 + (i >= 2 ? 8 : 0)][lane % 4 * 2 + i % 2];
}

template <class TILE> void finish_mma(warp_operation **lanes, unsigned live)
{
    if (live != ~0u)
        fail("mma.sync needs all 32 lanes (%s:%d)", lanes[__builtin_ctz(live)]->site.file,
             lanes[__builtin_ctz(live)]->site.line);
    TILE t;
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        const fragment<TILE> &f = *static_cast<const fragment<TILE> *>(lanes[lane]->fragment);
        put_operands(f, lane, t);
        for (unsigned i = 0; i < 4; i++)
            sum_at(t, lane, i) = static_cast<typename TILE::kept_sum>(f.c[i]);
    }
    multiply(t);
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        auto *d = static_cast<typename TILE::sum *>(lanes[lane]->result);
        for (unsigned i = 0; i < 4; i++) d[i] = static_cast<typename TILE::sum>(sum_at(t, lane, i));
    }
}

template <class TILE>
void mma(typename TILE::sum *d, const unsigned *a, const unsigned *b, const typename TILE::sum *c,
         call_site site)
{
    fragment<TILE> f;
    memcpy(f.c, c, sizeof f.c);
    memcpy(f.a, a, sizeof f.a);
    memcpy(f.b, b, sizeof f.b);
    warp_operation mine{operation::mma, ~0u, site, 0, 0, 0, &f, d};
    meet_warp(mine, finish_mma<TILE>);
}

} // namespace

void mma_s8_u8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], call_site site)
{
    mma<byte_tile>(d, a, b, d, site);
}

void mma_u8_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], call_site site)
{
    mma<row_byte_tile>(d, a, b, d, site);
}

void mma_bits(int (&d)[4], const unsigned (&a)[2], unsigned b, call_site site)
{
    const unsigned rows[4] = {a[0], a[1], 0, 0}, columns[2] = {b, 0};
    mma<bit_tile>(d, rows, columns, d, site);
}

void mma_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const float (&c)[4],
              call_site site)
{
    mma<bf16_tile>(d, a, b, c, site);
}

void mma_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], call_site site)
{
    mma<f16_tile>(d, a, b, d, site);
}

} // namespace emulation
