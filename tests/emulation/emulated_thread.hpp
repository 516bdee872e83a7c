// SPDX-License-Identifier: Apache-2.0
// What a kernel sees of the emulator: where its thread stands, and how a launch is made.
//
// Every CUDA thread is a fibre of one host thread; blocks run one after another. A fibre gives way
// only inside collectives, barriers and (in random order, now and then) atomics. A fault that the
// emulator finds ends the launch; the text is in emulation::report() and, as in CUDA, the error
// comes back from the next call that waits for the device.
#ifndef BITSWEEP_EMULATION_EMULATED_THREAD_HPP
#define BITSWEEP_EMULATION_EMULATED_THREAD_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>

#include "emulated_types.hpp"

namespace emulation
{

struct thread_place {
    uint3 thread;
    unsigned lane;
};

struct block_place {
    uint3 block;
    dim3 block_dim, grid_dim;
};

extern __thread thread_place *current_thread; // NULL in host code
extern block_place current_block;

// The launch's dynamic shared memory.
void *dynamic_shared();

// A line of a kernel, as a default argument: the line that calls.
struct call_site {
    const char *file;
    int line;
    static constexpr call_site here(const char *file = __builtin_FILE(),
                                    int line = __builtin_LINE())
    {
        return {file, line};
    }
};

// Order in which the ready fibres of a block, and the blocks of a grid, run.
enum class order { ascending, descending, random };

// Set before a launch. Also from the environment: BITSWEEP_EMULATOR_ORDER (a name above),
// BITSWEEP_EMULATOR_SEED.
struct settings {
    enum order order = order::ascending;
    unsigned seed = 1;
};
extern settings options;

struct figures {
    uint64_t blocks, threads, switches, collectives;
};
extern figures counted;

// What the emulator had to say about the last launch that failed, or "".
const char *report();

// Ends the launch with a message.
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Atomics: in random order another fibre may run here.
void may_yield();

// Notes a fault for the launch being made, unless place is NULL or in device memory.
void check_device_pointer(const void *place, const char *what);

// DEVICE_POINTERS gives kernels' structs of pointers an overload, found by argument-dependent
// lookup, that calls check_device_pointer for each.
template <class T> void check_pointers_of(const T &)
{
}

template <class T> void check_argument(const T &value)
{
    if constexpr (std::is_pointer_v<T>) {
        check_device_pointer(const_cast<const void *>(static_cast<const volatile void *>(value)),
                             "a kernel argument");
    } else {
        check_pointers_of(value);
    }
}

inline void check_member(const char *name, const void *place)
{
    check_device_pointer(place, name);
}

template <class T> std::enable_if_t<std::is_class_v<T>> check_member(const char *, const T &value)
{
    check_pointers_of(value);
}

template <class T, size_t N> void check_member(const char *name, T *const (&places)[N])
{
    for (const T *place : places) check_device_pointer(place, name);
}

// names: "a.one, a.two", of the members that follow.
template <class... T> void check_members(const char *names, const T &...members)
{
    auto check_next = [&names](const auto &member) {
        const char *first = strchr(names, '.') + 1;
        const size_t length = strcspn(first, ",");
        check_member(std::string(first, length).c_str(), member);
        names = first + length;
    };
    (check_next(members), ...);
}

#define DEVICE_POINTERS(type, ...)                           \
    inline void check_pointers_of(const type &a)             \
    {                                                        \
        emulation::check_members(#__VA_ARGS__, __VA_ARGS__); \
    }

struct launch_size {
    dim3 grid, block;
    size_t shared_bytes;
};

// Runs it now. A kernel's fault is kept, as in CUDA, for the next call that waits.
cudaError_t run_grid(const launch_size &size, const void *kernel, void (*body)(void *),
                     void *closure);
// Has the stream run it; cudaSuccess unless CUDA would refuse it at once.
cudaError_t queue_grid(const launch_size &size, const void *kernel, cudaStream_t stream,
                       std::function<cudaError_t()> run);

// Arguments are captured by value. Without a stream the kernel has run when this returns, else it
// runs as emulated_queues.hpp says.
template <class... P, class... A>
cudaError_t launch(const launch_size &size, cudaStream_t stream, void (*kernel)(P...),
                   A &&...arguments)
{
    struct closure {
        void (*kernel)(P...);
        std::tuple<P...> arguments;
    };
    const closure call{kernel, std::tuple<P...>(static_cast<P>(arguments)...)};
    auto run = [size, call] {
        closure mine = call;
        std::apply([](const auto &...each) { (check_argument(each), ...); }, mine.arguments);
        auto body = [](void *context) {
            closure *c = static_cast<closure *>(context);
            std::apply(c->kernel, c->arguments);
        };
        return run_grid(size, reinterpret_cast<const void *>(mine.kernel), body, &mine);
    };
    if (!stream) return run();
    return queue_grid(size, reinterpret_cast<const void *>(kernel), stream, run);
}

} // namespace emulation

#define threadIdx (::emulation::current_thread->thread)
#define blockIdx  (::emulation::current_block.block)
#define blockDim  (::emulation::current_block.block_dim)
#define gridDim   (::emulation::current_block.grid_dim)

constexpr int warpSize = 32;

#endif
