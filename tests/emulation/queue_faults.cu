// SPDX-License-Identifier: Apache-2.0
// Host code over common/device/device.h that forgets a wait, in every order of queues: the emulator
// must turn each of these faults into wrong bytes, and must leave right code alone. And kernels
// that fail while they are queued: the next wait says so, in the emulator's words.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "common/device/device.h"
#include "kernels/cuda_switch.cuh"
#include "tests/emulation/emulated_queues.hpp"

namespace
{

constexpr uint32_t num_values = 300, block_threads = 64;
constexpr int num_seeds = 20;
int num_checks, num_failures;

void check_that(bool holds, const std::string &what)
{
    num_checks++;
    if (holds) return;
    num_failures++;
    printf("queue_faults: %s\n", what.c_str());
}

__global__ void multiply(uint32_t *values, uint32_t count, uint32_t factor)
{
    for (uint32_t i = threadIdx.x; i < count; i += block_threads) values[i] *= factor;
}

__global__ void trap(uint32_t *)
{
    __trap();
}

template <class... P, class... A>
int launch_on(bsw_device *device, void (*kernel)(P...), A... arguments)
{
    return bsw::launch({dim3(1), dim3(block_threads), 0, bsw_device_stream(device, BSW_QUEUE_SCAN)},
                       kernel, arguments...);
}

// ---- one piece of host code, with at most one fault ----

enum fault {
    NONE,
    READ_BEFORE_WAIT, // the result, before the queue has been waited for
    NO_FOLLOW,        // of the scan queue behind the copies that it reads
    STAGING_REUSED,   // host memory written while a copy from it is queued
    BLOCK_REUSED,     // device memory copied to while a kernel that reads it is queued
};

struct bench {
    bsw_device *device = nullptr;
    struct bsw_device_buffer values = {};
    uint32_t *staging = nullptr;
    struct bsw_error err = {};
    bool good = true;

    void try_step(enum bsw_status status)
    {
        if (status == BSW_OK) return;
        good = false;
        check_that(false, err.message);
    }
    void wait(enum bsw_device_queue queue)
    {
        try_step(bsw_device_wait(device, queue, "test", &err));
    }
    void send(uint32_t value)
    {
        for (uint32_t i = 0; i < num_values; i++) staging[i] = value + i;
        try_step(bsw_device_upload(device, BSW_QUEUE_COPY, values.data, staging,
                                   num_values * sizeof *staging, &err));
    }
};

void open_bench(bench *b, int ordinal)
{
    const struct bsw_device_options options = {ordinal, 1, 0, 10.0};
    b->try_step(bsw_device_open(&options, &b->device, &b->err));
    b->try_step(bsw_device_allocate(b->device, num_values * sizeof(uint32_t), "values", &b->values,
                                    &b->err));
    b->try_step(bsw_device_allocate_host(b->device, num_values * sizeof(uint32_t), "staging",
                                         &b->staging, &b->err));
}

void close_bench(bench *b)
{
    bsw_device_free(b->device, &b->values);
    bsw_device_free_host(b->device, &b->staging);
    bsw_device_close(&b->device);
}

// Two blocks of values through one piece of device memory, each multiplied there.
void run_blocks(bench *b, fault with, std::vector<uint32_t> *out)
{
    for (uint32_t block = 0; block < 2; block++) {
        uint32_t *to = out->data() + block * num_values;
        b->send(1000 * block);
        if (with == STAGING_REUSED) memset(b->staging, 0, num_values * sizeof *b->staging);
        if (with != NO_FOLLOW)
            b->try_step(bsw_device_follow(b->device, BSW_QUEUE_SCAN, BSW_QUEUE_COPY, &b->err));
        check_that(launch_on(b->device, multiply, reinterpret_cast<uint32_t *>(b->values.data),
                             num_values, 7u) == 0,
                   "a launch was refused");
        b->try_step(bsw_device_download(b->device, BSW_QUEUE_SCAN, to, b->values.data,
                                        num_values * sizeof *to, &b->err));
        b->wait(BSW_QUEUE_COPY); // staging is free
        if (with != BLOCK_REUSED)
            b->try_step(bsw_device_follow(b->device, BSW_QUEUE_COPY, BSW_QUEUE_SCAN, &b->err));
    }
    if (with != READ_BEFORE_WAIT) b->wait(BSW_QUEUE_SCAN);
}

bool is_right(fault with)
{
    bench b;
    std::vector<uint32_t> out(2 * num_values), seen;
    open_bench(&b, 0);
    run_blocks(&b, with, &out);
    seen = out; // what the host sees by now
    b.wait(BSW_QUEUE_COPY);
    b.wait(BSW_QUEUE_SCAN);
    close_bench(&b);
    for (uint32_t i = 0; i < 2 * num_values; i++) {
        if (seen[i] != 7 * (1000 * (i / num_values) + i % num_values)) return false;
    }
    return b.good;
}

// ---- in all orders ----

struct expectation {
    fault with;
    const char *name;
    bool late, others_first; // noticed in these orders
};

void check_orders(const expectation &e)
{
    int noticed = 0;
    emulation::options.order = emulation::order::ascending;
    check_that(is_right(e.with) != e.late, std::string(e.name) + ", as late as possible");
    emulation::options.order = emulation::order::descending;
    check_that(is_right(e.with) != e.others_first, std::string(e.name) + ", other queues first");
    emulation::options.order = emulation::order::random;
    for (int seed = 1; seed <= num_seeds; seed++) {
        emulation::options.seed = static_cast<unsigned>(seed);
        noticed += !is_right(e.with);
    }
    printf("# %-20s %s %s, random %d of %d\n", e.name, e.late ? "late" : "-",
           e.others_first ? "others first" : "-", noticed, num_seeds);
    if (e.with == NONE)
        check_that(noticed == 0, "right code, by chance");
    else
        check_that(noticed > 0, std::string(e.name) + ", by chance");
    emulation::options.order = emulation::order::ascending;
}

// ---- faults of kernels and of threads ----

void check_failed_kernel(const char *name, bool traps, const char *words)
{
    bench b, other;
    uint32_t here[num_values] = {};
    open_bench(&b, 3);
    int code = traps ? launch_on(b.device, trap, reinterpret_cast<uint32_t *>(b.values.data))
                     : launch_on(b.device, multiply, here, num_values, 7u);
    check_that(code == 0, std::string(name) + ": refused at once");
    enum bsw_status status = bsw_device_wait(b.device, BSW_QUEUE_SCAN, "test", &b.err);
    check_that(status == BSW_ERROR_IO && strstr(b.err.message, words) &&
                   strncmp(b.err.message, "emulated:3: test: ", 18) == 0,
               std::string(name) + ": " + b.err.message);
    close_bench(&b);
    open_bench(&other, 3); // nothing of it stays behind
    other.wait(BSW_QUEUE_SCAN);
    check_that(other.good, std::string(name) + " was seen by another");
    close_bench(&other);
}

// CUDA takes a launch only from a thread that has chosen the queue's device, and a kernel reaches
// the memory of no other.
void check_device_of_thread()
{
    bench first, second;
    open_bench(&first, 0);
    open_bench(&second, 1);
    int code = launch_on(first.device, multiply, reinterpret_cast<uint32_t *>(first.values.data),
                         num_values, 7u);
    enum bsw_status status = bsw_device_launched(first.device, code, "test", &first.err);
    check_that(status == BSW_ERROR_IO && strstr(first.err.message, "queue of another device"),
               std::string("launch on another device: ") + first.err.message);
    code = launch_on(second.device, multiply, reinterpret_cast<uint32_t *>(first.values.data),
                     num_values, 7u);
    status = bsw_device_wait(second.device, BSW_QUEUE_SCAN, "test", &second.err);
    check_that(code == 0 && status == BSW_ERROR_IO &&
                   strstr(second.err.message, "memory of another device"),
               std::string("memory of another device: ") + second.err.message);
    close_bench(&second);
    close_bench(&first);
}

// Memory freed twice ends the program: the driver's error would be asked for by nobody.
void check_free_twice()
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        bench b;
        if (!freopen("/dev/null", "w", stderr)) _exit(3);
        open_bench(&b, 0);
        struct bsw_device_buffer again = b.values;
        bsw_device_free(b.device, &b.values);
        bsw_device_free(b.device, &again);
        _exit(0);
    }
    int status = 0;
    check_that(child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
                   WTERMSIG(status) == SIGABRT,
               "memory freed twice was not noticed");
}

} // namespace

int main()
{
    static const expectation all[] = {
        {NONE, "right", false, false},
        {READ_BEFORE_WAIT, "read before wait", true, false},
        {NO_FOLLOW, "no follow", false, true}, // late, the copy has been waited for by then
        {STAGING_REUSED, "staging reused", true, true},
        {BLOCK_REUSED, "block reused", true, false}, // the first block's kernel comes too late
    };
    for (const expectation &e : all) check_orders(e);
    check_failed_kernel("trap", true, "__trap()");
    check_failed_kernel("host pointer", false, "a kernel argument points to host memory");
    check_device_of_thread();
    check_free_twice();
    printf("queue_faults: %d checks, %d failures\n", num_checks, num_failures);
    return num_failures > 0;
}
