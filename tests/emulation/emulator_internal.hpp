// SPDX-License-Identifier: Apache-2.0
// What the emulator's own files share. They are compiled without sanitizers: EMULATOR_ASAN=1 tells
// them that kernels are built with ASan, EMULATOR_RACE=1 that they are built for race_detector.cpp.
#ifndef BITSWEEP_EMULATION_EMULATOR_INTERNAL_HPP
#define BITSWEEP_EMULATION_EMULATOR_INTERNAL_HPP

#include <mutex>
#include <string>
#include <vector>

#include "emulated_copies.hpp"
#include "emulated_graphs.hpp"
#include "emulated_queues.hpp"
#include "emulated_runtime.hpp"
#include "emulated_thread.hpp"

// The names are macros for kernels, and for the device layer.
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim
#undef cudaGetDeviceCount
#undef cudaSetDevice
#undef cudaGetDeviceProperties
#undef cudaDeviceGetAttribute
#undef cudaMalloc
#undef cudaFree

#if !defined(EMULATOR_ASAN)
#define EMULATOR_ASAN 0
#endif
#if !defined(EMULATOR_RACE)
#define EMULATOR_RACE 0
#endif
#if EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation
{

constexpr unsigned max_threads = 1024; // of a block
constexpr unsigned warp_lanes = 32;

// ---- fibre.cpp ----

struct fibre {
    char *stack = nullptr; // kept from block to block
    void *stack_pointer = nullptr;
    void *fake_stack = nullptr; // ASan's
    const void *low = nullptr;  // of the stack, for ASan
    size_t bytes = 0;
    bool has_returned = false; // from the kernel: nothing of it is left on the stack
};

// Makes the fibre start in `entry` when it is switched to; the stack is made at the first call.
void prepare_fibre(fibre &f, void (*entry)());

// Goes on in `to`; the call returns when something switches back to `from`. `dies`: it never will.
void switch_fibre(fibre &from, fibre &to, bool dies);

// The first thing a fibre does; host: the fibre that stands for the host thread.
void enter_fibre(fibre &host);

// ---- emulator_schedule.cpp ----

struct warp_state;

struct thread_state : thread_place {
    fibre *own_fibre;
    warp_state *warp;
    warp_operation *operation; // what it waits in, or NULL
    finish_fn finish;
    call_site barrier_site;
    const char *waits_in; // what of emulator_hopper.cpp it waits in, at barrier_site, or NULL
    bool done, at_barrier;
    std::vector<pending_copy> copies; // oldest first
    unsigned num_groups;              // of them that were committed
};

struct warp_state {
    thread_state *lanes[warp_lanes];
    unsigned exited, waiting;
};

struct barrier_state {
    unsigned arrived, phase;
    call_site site;    // of the first to arrive; file NULL: nobody
    int count, result; // result: of the last one
};

// The block that runs.
struct block_state {
    unsigned num_threads, num_live;
    thread_state threads[max_threads];
    warp_state warps[max_threads / warp_lanes];
    barrier_state barrier;
};
extern block_state block;

thread_state *self();
void make_ready(thread_state *t);
void give_way(thread_state *t, bool dies); // runs the next ready fibre; returns when t runs again
void release_barrier();
bool try_finish(warp_state &warp, const warp_operation &operation, finish_fn finish);
const char *operation_name(operation kind);

// ---- emulator_memory.cpp ----

extern std::recursive_mutex emulator_lock; // one launch or runtime call at a time
extern std::string fault; // text of the first fault since the last launch; "": none
extern bool failed;       // the launch being made or run is to end

extern int launch_device; // of the launch being made, whose memory it may use; -1: any

void note_fault(const std::string &text);
void open_device(bool open);             // ASan: device memory is for kernels alone
size_t shared_limit(const void *kernel); // dynamic shared memory that may be asked for

// Keeps a launch's error for the next call that waits, and returns `now`.
cudaError_t keep_error(cudaError_t error);
cudaError_t take_error(); // the one kept, which is then forgotten
cudaError_t refuse(cudaError_t error, const char *text);
bool is_device_page(uintptr_t page);
bool is_device_range(const void *place, size_t bytes); // whether it lies in one allocation

cudaError_t copy_now(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t fill_now(void *to, int value, size_t bytes);

// ---- emulated_queues.cpp ----

int device_of(cudaStream_t stream);
void run_all_queues(); // of the calling thread, as far as they go

// A piece of work of a stream. kernel: of a launch.
struct piece {
    piece_kind kind;
    const void *kernel;
    std::function<cudaError_t()> run;
};
// Queues it, or puts it into the stream's capture.
cudaError_t queue_piece(cudaStream_t stream, piece work);

// ---- emulated_graphs.cpp ----

bool is_captured(cudaStream_t stream);
void put_in_capture(cudaStream_t stream, piece work);
// What CUDA refuses to do to a stream, or anywhere in the thread, while it is captured: the capture
// then is of no use. cudaSuccess where there is none.
cudaError_t refuse_of_captured(cudaStream_t stream, const char *call);
cudaError_t refuse_while_captured(const char *call);
// Ends the stream's capture for good; returns the error.
cudaError_t invalidate(cudaStream_t stream, cudaError_t error, const char *text);
// A number for each capture; 0: the stream is in none.
uint64_t capture_number(cudaStream_t stream);

// ---- emulated_devices.cpp ----

extern thread_local int own_device; // that the calling thread has chosen
// Whether a fault that the environment asks for strikes now; counts. See emulated_queues.hpp.
bool is_struck(const char *variable, int ordinal);
// CUDA refuses to copy such memory: a copy lies within one registration, or outside all.
bool is_partly_registered(const void *memory, size_t bytes);

// ---- emulator_shared.cpp ----

void open_shared(size_t bytes);  // before a launch
void close_shared();             // after it
void junk_shared(size_t bytes);  // before a block: shared memory starts undefined
void check_canary(size_t bytes); // after it: nothing was written past the dynamic part
bool is_shared_address(uintptr_t address);
bool is_shared_page(uintptr_t page);

size_t shared_size(); // of the launch's dynamic part

// ---- emulator_banks.cpp ----

void count_bank_conflicts(); // after a block

// ---- emulator_hopper.cpp ----

void reset_hopper();      // before a block
void check_copies_done(); // after it

// ---- race_detector.cpp, only in race builds ----

void race_begin_launch();
void race_begin_block();
void race_sync_warp(unsigned warp, unsigned mask);
// A bulk copy by the calling thread begins, whose end an mbarrier tells.
void race_copy_to(const void *place, size_t bytes);
std::string race_findings(); // of the launch; "": none

} // namespace emulation

#endif
