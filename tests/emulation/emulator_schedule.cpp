// SPDX-License-Identifier: Apache-2.0
// Launches: which fibre runs next, what happens when none can.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>

#include "emulator_internal.hpp"

namespace emulation
{

__thread thread_place *current_thread;
block_place current_block;
figures counted;
block_state block;

static fibre host_fibre, fibres[max_threads];
static void (*kernel_body)(void *);
static void *kernel_closure;
static uint64_t random_state;

// Ready threads: a queue in fixed orders, a bag in random order.
static thread_state *ready[max_threads + 1];
static unsigned num_ready, ready_head;

static settings settings_of_environment()
{
    settings out;
    const char *name = getenv("BITSWEEP_EMULATOR_ORDER"), *seed = getenv("BITSWEEP_EMULATOR_SEED");
    if (name && strcmp(name, "descending") == 0) {
        out.order = order::descending;
    } else if (name && strcmp(name, "random") == 0) {
        out.order = order::random;
    } else if (name && strcmp(name, "ascending") != 0) {
        fprintf(stderr, "BITSWEEP_EMULATOR_ORDER is ascending, descending or random\n");
        abort();
    }
    if (seed) out.seed = static_cast<unsigned>(strtoul(seed, nullptr, 10));
    return out;
}

settings options = settings_of_environment();

static uint64_t next_random()
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void seed_random()
{
    random_state = options.seed * 0x9e3779b97f4a7c15ull | 1;
    for (int i = 0; i < 8; i++) next_random();
}

void make_ready(thread_state *t)
{
    ready[(ready_head + num_ready++) % (max_threads + 1)] = t;
}

static thread_state *take_ready()
{
    if (num_ready == 0) return nullptr;
    num_ready--;
    if (options.order != order::random) {
        thread_state *t = ready[ready_head];
        ready_head = (ready_head + 1) % (max_threads + 1);
        return t;
    }
    unsigned pick = static_cast<unsigned>(next_random() % (num_ready + 1));
    unsigned at = (ready_head + pick) % (max_threads + 1);
    thread_state *t = ready[at];
    ready[at] = ready[(ready_head + num_ready) % (max_threads + 1)];
    return t;
}

thread_state *self()
{
    return static_cast<thread_state *>(current_thread);
}

static std::string where_waiting(const thread_state &t)
{
    char text[400] = "?";
    if (t.at_barrier) {
        snprintf(text, sizeof text, "__syncthreads at %s:%d", t.barrier_site.file,
                 t.barrier_site.line);
    } else if (t.waits_in) {
        snprintf(text, sizeof text, "%s at %s:%d", t.waits_in, t.barrier_site.file,
                 t.barrier_site.line);
    } else if (t.operation) {
        snprintf(text, sizeof text, "%s with mask %08x at %s:%d", operation_name(t.operation->kind),
                 t.operation->mask, t.operation->site.file, t.operation->site.line);
    }
    return text;
}

// Nobody can run: who waits for what.
[[noreturn]] static void fail_deadlock()
{
    std::map<std::string, std::pair<unsigned, unsigned>> waiting; // how many, the first
    for (unsigned i = 0; i < block.num_threads; i++) {
        if (block.threads[i].done) continue;
        auto &entry = waiting[where_waiting(block.threads[i])];
        if (entry.first++ == 0) entry.second = i;
    }
    std::string text = "deadlock in block (" + std::to_string(current_block.block.x) + "," +
                       std::to_string(current_block.block.y) + "):";
    for (const auto &entry : waiting) {
        text += "\n    " + std::to_string(entry.second.first) +
                " threads (first: " + std::to_string(entry.second.second) + ") wait in " +
                entry.first;
    }
    if (block.num_live < block.num_threads) {
        text += "\n    " + std::to_string(block.num_threads - block.num_live) +
                " threads have returned";
    }
    fail("%s", text.c_str());
}

void give_way(thread_state *t, bool dies)
{
    thread_state *next = failed ? nullptr : take_ready();
    if (next == t) return;
    if (!next && block.num_live > 0 && !failed) fail_deadlock();
    current_thread = next;
    switch_fibre(*t->own_fibre, next ? *next->own_fibre : host_fibre, dies);
}

void fail(const char *format, ...)
{
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!current_thread) {
        fprintf(stderr, "emulator: %s\n", text);
        abort();
    }
    note_fault(text);
    give_way(self(), true); // to the host; this fibre and the others are left where they are
    __builtin_trap();
}

void may_yield()
{
    if (options.order != order::random || !current_thread || (next_random() & 7) != 0) return;
    make_ready(self());
    give_way(self(), false);
}

// The lanes that wait for one that has returned may be complete now.
static void leave_warp(thread_state *t)
{
    t->warp->exited |= 1u << t->lane;
    for (thread_state *other : t->warp->lanes) {
        if (other && other->operation && (other->operation->mask >> t->lane & 1) &&
            try_finish(*t->warp, *other->operation, other->finish))
            break;
    }
}

static void thread_main()
{
    enter_fibre(host_fibre);
    thread_state *t = self();
    kernel_body(kernel_closure);
    t->done = true;
    t->own_fibre->has_returned = true;
    block.num_live--;
    leave_warp(t);
    if (block.num_live > 0 && block.barrier.arrived == block.num_live) release_barrier();
    give_way(t, true);
    __builtin_trap();
}

static void prepare_thread(unsigned i, dim3 dim)
{
    thread_state &t = block.threads[i];
    t.thread = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
    t.lane = i % warp_lanes;
    t.own_fibre = &fibres[i];
    t.warp = &block.warps[i / warp_lanes];
    t.warp->lanes[t.lane] = &t;
    t.operation = nullptr;
    t.waits_in = nullptr;
    t.done = t.at_barrier = false;
    t.copies.clear();
    t.num_groups = 0;
    prepare_fibre(fibres[i], thread_main);
}

static void prepare_block(unsigned num_threads, dim3 dim)
{
    block.num_threads = block.num_live = num_threads;
    num_ready = ready_head = 0;
    block.barrier = {};
    unsigned num_warps = (num_threads + warp_lanes - 1) / warp_lanes;
    for (unsigned w = 0; w < num_warps; w++) block.warps[w] = {};
    for (unsigned i = 0; i < num_threads; i++) prepare_thread(i, dim);
    if (num_threads % warp_lanes)
        block.warps[num_warps - 1].exited = ~0u << num_threads % warp_lanes;
    bool descends = options.order == order::descending;
    for (unsigned i = 0; i < num_threads; i++)
        make_ready(&block.threads[descends ? num_threads - 1 - i : i]);
    counted.blocks++;
    counted.threads += num_threads;
}

// The step'th block to run is step * stride + offset modulo the number of blocks.
struct block_order {
    uint64_t num_blocks, stride, offset;
};

static block_order order_of_blocks(uint64_t num_blocks)
{
    block_order out = {num_blocks, 1, 0};
    if (options.order == order::descending) {
        out.stride = num_blocks - 1; // minus one
        out.offset = num_blocks - 1;
        if (num_blocks == 1) out.stride = 1;
    } else if (options.order == order::random && num_blocks > 2) {
        out.stride = (2654435761u % num_blocks) | 1;
        while (std::gcd(out.stride, num_blocks) != 1) out.stride += 2;
        out.offset = next_random() % num_blocks;
    }
    return out;
}

static uint3 block_at(const block_order &o, uint64_t step, dim3 grid)
{
    uint64_t at = (step * (o.stride % o.num_blocks) + o.offset) % o.num_blocks;
    return {static_cast<unsigned>(at % grid.x), static_cast<unsigned>(at / grid.x % grid.y),
            static_cast<unsigned>(at / grid.x / grid.y)};
}

static bool is_valid_size(const launch_size &size, const void *kernel)
{
    dim3 grid = size.grid, dim = size.block;
    uint64_t num_threads = static_cast<uint64_t>(dim.x) * dim.y * dim.z;
    uint64_t num_blocks = static_cast<uint64_t>(grid.x) * grid.y * grid.z;
    return num_threads > 0 && num_threads <= max_threads && dim.z <= 64 && num_blocks > 0 &&
           grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535 &&
           size.shared_bytes <= shared_limit(kernel);
}

// A launch that CUDA would not take.
static cudaError_t refuse_size()
{
    note_fault("invalid launch: size of block or grid, or dynamic shared memory above what the "
               "kernel may have");
    failed = false;
    return keep_error(cudaErrorInvalidConfiguration);
}

static void run_block(dim3 dim, size_t shared_bytes)
{
    junk_shared(shared_bytes);
    reset_hopper();
#if EMULATOR_RACE
    race_begin_block();
#endif
    prepare_block(dim.x * dim.y * dim.z, dim);
    thread_state *first = take_ready();
    current_thread = first;
    switch_fibre(host_fibre, *first->own_fibre, false);
    check_canary(shared_bytes);
    check_copies_done();
    count_bank_conflicts();
}

static void run_blocks(dim3 grid, dim3 dim, size_t shared_bytes)
{
    block_order o = order_of_blocks(static_cast<uint64_t>(grid.x) * grid.y * grid.z);
    for (uint64_t step = 0; step < o.num_blocks && !failed; step++) {
        current_block.block = block_at(o, step, grid);
        run_block(dim, shared_bytes);
    }
}

cudaError_t queue_grid(const launch_size &size, const void *kernel, cudaStream_t stream,
                       std::function<cudaError_t()> run)
{
    std::lock_guard<std::recursive_mutex> guard(emulator_lock);
    if (!is_valid_size(size, kernel)) return refuse_size();
    const int device = device_of(stream);
    if (device != own_device) {
        note_fault("launch on a queue of another device than the calling thread's");
        failed = false;
        return keep_error(cudaErrorInvalidResourceHandle);
    }
    auto work = [device, run = std::move(run)] {
        std::lock_guard<std::recursive_mutex> running(emulator_lock);
        launch_device = device;
        cudaError_t refused = run();
        launch_device = -1;
        return refused ? refused : take_error();
    };
    return queue_piece(stream, {piece_kind::kernel, kernel, std::move(work)});
}

cudaError_t run_grid(const launch_size &size, const void *kernel, void (*body)(void *),
                     void *closure)
{
    std::lock_guard<std::recursive_mutex> guard(emulator_lock);
    dim3 grid = size.grid, dim = size.block;
    size_t shared_bytes = size.shared_bytes;
    if (failed) { // an argument
        failed = false;
        return keep_error(cudaErrorInvalidValue);
    }
    if (!is_valid_size(size, kernel)) return refuse_size();
    fault.clear();
    kernel_body = body;
    kernel_closure = closure;
    current_block.block_dim = dim;
    current_block.grid_dim = grid;
    host_fibre.low = nullptr;
    seed_random();
    open_shared(shared_bytes);
    open_device(true);
#if EMULATOR_RACE
    race_begin_launch();
#endif
    run_blocks(grid, dim, shared_bytes);
    open_device(false);
    close_shared();
#if EMULATOR_RACE
    if (!race_findings().empty()) { // perhaps the cause of what ended the launch: first
        const std::string then = failed ? "\n  then: " + fault : "";
        failed = true;
        fault = race_findings() + then;
    }
#endif
    if (!failed) return cudaSuccess;
    failed = false;
    keep_error(cudaErrorLaunchFailure);
    return cudaSuccess; // as in CUDA: the launch was accepted
}

} // namespace emulation
