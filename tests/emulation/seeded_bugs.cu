// SPDX-License-Identifier: Apache-2.0
// Kernels with a bug each, which the emulator must report, and kernels without, about which it must
// say nothing. Every one runs in a process of its own, for ASan ends the process. Races are looked
// for in the race build, what ASan and UBSan find in theirs.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda_switch.cuh"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_RACE_BUILD 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define IS_RACE_BUILD 1
#endif
#if !defined(IS_RACE_BUILD)
#define IS_RACE_BUILD 0
#endif

namespace
{

constexpr unsigned full = 0xffffffffu;
constexpr unsigned block_threads = 128;

// ---- races ----

template <bool RIGHT> __global__ void read_neighbour(unsigned *out)
{
    DYNAMIC_SHARED(unsigned, values);
    values[threadIdx.x] = threadIdx.x;
    if (RIGHT) __syncthreads();
    out[threadIdx.x] = values[(threadIdx.x + 33) % block_threads];
}

template <bool RIGHT> __global__ void reuse_in_loop(unsigned *out)
{
    DYNAMIC_SHARED(unsigned, values);
    unsigned sum = 0;
    for (unsigned round = 0; round < 3; round++) {
        values[threadIdx.x] = threadIdx.x + round;
        __syncthreads();
        sum += values[(threadIdx.x + 33) % block_threads];
        if (RIGHT) __syncthreads();
    }
    out[threadIdx.x] = sum;
}

template <bool RIGHT> __global__ void trust_the_warp(unsigned *out)
{
    DYNAMIC_SHARED(unsigned, values);
    values[threadIdx.x] = threadIdx.x;
    if (RIGHT) __syncwarp();
    out[threadIdx.x] = values[threadIdx.x ^ 1];
}

template <bool RIGHT> __global__ void count_in_shared(unsigned *out)
{
    DYNAMIC_SHARED(unsigned, count);
    if (threadIdx.x == 0) *count = 0;
    __syncthreads();
    if (RIGHT) {
        atomicAdd(count, 1u);
    } else {
        ++*count;
    }
    __syncthreads();
    if (threadIdx.x == 0) out[0] = *count;
}

template <bool RIGHT> __global__ void add_from_blocks(unsigned *out)
{
    if (threadIdx.x > 0) return;
    if (RIGHT) {
        atomicAdd(&out[0], 1u);
    } else {
        out[0] += 1;
    }
}

// As rows go into queues.
template <bool RIGHT> __global__ void raise_maximum(unsigned *out)
{
    unsigned long long *best = reinterpret_cast<unsigned long long *>(out);
    const unsigned long long item = threadIdx.x * 7 % block_threads + blockIdx.x + 1;
    const unsigned long long seen = RIGHT ? bsw::load_relaxed(best) : *best;
    if (seen < item) atomicMax(best, item);
}

// ---- collectives ----

__global__ void barrier_in_branches(unsigned *out)
{
    if (threadIdx.x < 64) {
        __syncthreads();
        out[threadIdx.x] = 1;
    } else {
        __syncthreads();
        out[threadIdx.x] = 2;
    }
}

__global__ void barrier_skipped(unsigned *out)
{
    if (threadIdx.x / 32 != 3) __syncthreads();
    out[threadIdx.x] = static_cast<unsigned>(__syncthreads_count(1));
}

__global__ void barrier_against_shuffle(unsigned *out)
{
    if (threadIdx.x == 5) __syncthreads();
    out[threadIdx.x] = __shfl_sync(full, threadIdx.x, 0);
}

__global__ void shuffle_in_branch(unsigned *out)
{
    unsigned value = threadIdx.x;
    if (threadIdx.x % 2) value = __shfl_sync(full, value, 1);
    out[threadIdx.x] = __ballot_sync(full, value > 7);
}

__global__ void shuffle_from_outside(unsigned *out)
{
    unsigned value = threadIdx.x;
    if (threadIdx.x % 32 < 16) value = __shfl_sync(0xffffu, value, 20);
    out[threadIdx.x] = value;
}

__global__ void mask_without_self(unsigned *out)
{
    out[threadIdx.x] = __ballot_sync(0xfffffffeu, 1);
}

__global__ void mma_of_half_a_warp(unsigned *out)
{
    int d[4] = {0, 0, 0, 0};
    const unsigned a[4] = {1, 2, 3, 4}, b[2] = {5, 6};
    if (threadIdx.x % 32 >= 16) return;
    bsw::mma_s8_u8(d, a, b);
    out[threadIdx.x] = static_cast<unsigned>(d[0]);
}

__global__ void trap(unsigned *)
{
    __trap();
}

// ---- memory ----

__global__ void write_past_shared(unsigned)
{
    DYNAMIC_SHARED(unsigned, values);
    values[threadIdx.x] = threadIdx.x; // with 4 bytes too few asked for
}

__global__ void write_past_global(unsigned *out)
{
    out[threadIdx.x + 1] = threadIdx.x;
}

__global__ void read_misaligned(unsigned *out)
{
    const unsigned char *bytes = reinterpret_cast<const unsigned char *>(out);
    out[threadIdx.x] = *reinterpret_cast<const unsigned *>(bytes + 1);
}

__global__ void trust_shared_to_be_zero(unsigned *out)
{
    DYNAMIC_SHARED(unsigned, values);
    out[threadIdx.x] = values[threadIdx.x];
}

__global__ void do_nothing(unsigned *)
{
}

// ---- asynchronous copies: rounds of 16 bytes a thread through two places, a copy ahead ----

enum copy_bug { COPY_RIGHT, WAITS_FOR_FEWER, NEVER_COMMITS, NO_BARRIER_AFTER, NO_BARRIER_BEFORE };
constexpr unsigned copy_rounds = 4, copy_threads = 64;

template <copy_bug BUG>
__global__ void copy_ahead(const uint4 *in, unsigned *out, unsigned from_neighbour)
{
    DYNAMIC_SHARED(uint4, places);
    unsigned sum = 0;
    for (unsigned round = 0; round <= copy_rounds; round++) {
        if (round < copy_rounds) {
            bsw::cp_async_16(&places[round % 2 * copy_threads + threadIdx.x],
                             &in[round * copy_threads + threadIdx.x]);
        }
        if (BUG != NEVER_COMMITS) bsw::cp_async_commit();
        if (round == 0) continue;
        if (BUG == WAITS_FOR_FEWER) {
            bsw::cp_async_wait<2>();
        } else {
            bsw::cp_async_wait<1>();
        }
        if (BUG != NO_BARRIER_AFTER) __syncthreads();
        sum +=
            places[(round - 1) % 2 * copy_threads + (threadIdx.x + from_neighbour) % copy_threads]
                .y;
        if (BUG != NO_BARRIER_BEFORE) __syncthreads();
    }
    out[threadIdx.x] = sum;
}

__global__ void copy_misaligned(unsigned *out)
{
    DYNAMIC_SHARED(unsigned, values);
    bsw::cp_async_16(values, out + 1);
}

__global__ void copy_from_shared(unsigned *)
{
    DYNAMIC_SHARED(unsigned, values);
    bsw::cp_async_16(values, values);
}

__global__ void load_by_half_a_warp(unsigned *out)
{
    DYNAMIC_SHARED(unsigned, values);
    unsigned loaded[4];
    if (threadIdx.x % 32 >= 16) return;
    bsw::load_matrices(loaded, values);
    out[threadIdx.x] = loaded[0];
}

// ---- right ----

__global__ void leave_before_ballot(unsigned *out)
{
    if (threadIdx.x >= 100) return; // lanes that have returned need not come
    out[threadIdx.x] = __ballot_sync(full, threadIdx.x % 2);
}

__global__ void sum_of_warps(unsigned *out)
{
    __shared__ unsigned sums[block_threads / 32];
    const unsigned sum = __reduce_add_sync(full, threadIdx.x);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    out[threadIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
}

// ---- the runs ----

unsigned *device_out()
{
    unsigned *out = nullptr;
    if (cudaMalloc(&out, block_threads * sizeof *out) != cudaSuccess) _exit(3);
    (void)cudaMemset(out, 0, block_threads * sizeof *out);
    return out;
}

// Says on stderr what the launch or the wait for it returned.
void say(int error)
{
    int waited = cudaDeviceSynchronize();
    if (error || waited)
        fprintf(stderr, "%s\n",
                cudaGetErrorString(static_cast<cudaError_t>(error ? error : waited)));
}

typedef void (*kernel_fn)(unsigned *);

template <kernel_fn KERNEL, unsigned BLOCKS = 1> void run()
{
    say(bsw::launch({dim3(BLOCKS), dim3(block_threads), block_threads * sizeof(unsigned), nullptr},
                    KERNEL, device_out()));
}

void run_past_shared()
{
    say(bsw::launch({dim3(1), dim3(block_threads), (block_threads - 1) * sizeof(unsigned), nullptr},
                    write_past_shared, 0u));
}

void run_junk_shared()
{
    run<trust_shared_to_be_zero>();
    unsigned *out = device_out(), value = 0;
    say(bsw::launch({dim3(1), dim3(1), 4, nullptr}, trust_shared_to_be_zero, out));
    (void)cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost);
    fprintf(stderr, "shared memory starts as %x\n", value);
}

void run_without_opt_in()
{
    say(emulation::launch({dim3(1), dim3(32), 49 << 10}, nullptr, do_nothing, device_out()));
}

void run_too_many_threads()
{
    say(bsw::launch({dim3(1), dim3(1025), 0, nullptr}, do_nothing, device_out()));
}

void run_on_host_memory()
{
    unsigned out[block_threads] = {};
    say(bsw::launch({dim3(1), dim3(32), 0, nullptr}, do_nothing, out));
}

void run_host_read()
{
    fprintf(stderr, "host code read %u\n", device_out()[0]);
}

void run_wrong_copy()
{
    unsigned here = 0;
    say(cudaMemcpy(&here, device_out(), sizeof here, cudaMemcpyHostToDevice));
}

void run_long_copy()
{
    unsigned here[block_threads + 1] = {};
    say(cudaMemcpy(device_out(), here, sizeof here, cudaMemcpyHostToDevice));
}

template <copy_bug BUG> void run_copies()
{
    constexpr unsigned num_words = copy_rounds * copy_threads * 4, neighbour = 33;
    unsigned words[num_words], sums[copy_threads], *in = nullptr, *out = device_out();
    for (unsigned i = 0; i < num_words; i++) words[i] = i * 2654435761u;
    if (cudaMalloc(&in, sizeof words) != cudaSuccess) _exit(3);
    (void)cudaMemcpy(in, words, sizeof words, cudaMemcpyHostToDevice);
    say(bsw::launch({dim3(1), dim3(copy_threads), 2 * copy_threads * sizeof(uint4), nullptr},
                    copy_ahead<BUG>, reinterpret_cast<const uint4 *>(in), out, neighbour));
    (void)cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost);
    for (unsigned i = 0; i < copy_threads; i++) {
        for (unsigned round = 0; round < copy_rounds; round++)
            sums[i] -= words[(round * copy_threads + (i + neighbour) % copy_threads) * 4 + 1];
        if (sums[i] == 0) continue;
        fprintf(stderr, "wrong sums\n");
        return;
    }
}

enum { PLAIN = 1, ASAN = 2, RACE = 4, ALL = PLAIN | ASAN | RACE };
constexpr int this_build = EMULATION_ASAN ? ASAN : IS_RACE_BUILD ? RACE : PLAIN;

struct seeded {
    const char *name;
    void (*run)();
    int builds;         // in which it runs
    const char *report; // what is said there, in part; NULL: nothing
};

const seeded all[] = {
    {"read_neighbour", run<read_neighbour<false>>, RACE, "data races"},
    {"reuse_in_loop", run<reuse_in_loop<false>>, RACE, "data races"},
    {"trust_the_warp", run<trust_the_warp<false>>, RACE, "data races"},
    {"count_in_shared", run<count_in_shared<false>>, RACE, "data races"},
    {"add_from_blocks", run<add_from_blocks<false>, 3>, RACE, "data races"},
    {"raise_maximum", run<raise_maximum<false>, 3>, RACE, "data races"},
    {"barrier_in_branches", run<barrier_in_branches>, ALL, "__syncthreads at different places: "},
    {"barrier_skipped", run<barrier_skipped>, ALL, "__syncthreads at different places: "},
    {"barrier_against_shuffle", run<barrier_against_shuffle>, ALL, "deadlock in block (0,0)"},
    {"shuffle_in_branch", run<shuffle_in_branch>, ALL, "mismatched warp collectives: "},
    {"shuffle_from_outside", run<shuffle_from_outside>, ALL, "shuffles from lane 20"},
    {"mask_without_self", run<mask_without_self>, ALL, "which leaves it out"},
    {"mma_of_half_a_warp", run<mma_of_half_a_warp>, ALL, "mma.sync needs all 32 lanes"},
    {"trap", run<trap>, ALL, "__trap()"},
    {"write_past_shared", run_past_shared, PLAIN | RACE, "beyond the launch's dynamic shared"},
    {"write_past_shared", run_past_shared, ASAN, "AddressSanitizer"},
    {"write_past_global", run<write_past_global>, ASAN, "AddressSanitizer"},
    {"read_misaligned", run<read_misaligned>, ASAN, "misaligned address"},
    {"trust_shared_to_be_zero", run_junk_shared, ALL, "starts as cdcdcdcd"},
    {"without_opt_in", run_without_opt_in, ALL, "invalid launch"},
    {"too_many_threads", run_too_many_threads, ALL, "invalid launch"},
    {"on_host_memory", run_on_host_memory, ALL, "points to host memory"},
    {"host_read", run_host_read, ASAN, "use-after-poison"},
    {"wrong_copy", run_wrong_copy, ALL, "not where its kind says"},
    {"long_copy", run_long_copy, ALL, "not where its kind says"},
    {"copies: waits for fewer", run_copies<WAITS_FOR_FEWER>, ALL, "wrong sums"},
    {"copies: never commits", run_copies<NEVER_COMMITS>, ALL, "wrong sums"},
    {"copies: no barrier after", run_copies<NO_BARRIER_AFTER>, RACE, "data races"},
    {"copies: no barrier before", run_copies<NO_BARRIER_BEFORE>, RACE, "data races"},
    {"copy_misaligned", run<copy_misaligned>, ALL, "not 16-byte aligned"},
    {"copy_from_shared", run<copy_from_shared>, ALL, "outside device memory"},
    {"load_by_half_a_warp", run<load_by_half_a_warp>, ALL, "has returned"},
    {"right: copies", run_copies<COPY_RIGHT>, ALL, nullptr},
    {"right: read_neighbour", run<read_neighbour<true>>, ALL, nullptr},
    {"right: reuse_in_loop", run<reuse_in_loop<true>>, ALL, nullptr},
    {"right: trust_the_warp", run<trust_the_warp<true>>, ALL, nullptr},
    {"right: count_in_shared", run<count_in_shared<true>>, ALL, nullptr},
    {"right: add_from_blocks", run<add_from_blocks<true>, 3>, ALL, nullptr},
    {"right: raise_maximum", run<raise_maximum<true>, 3>, ALL, nullptr},
    {"right: leave_before_ballot", run<leave_before_ballot>, ALL, nullptr},
    {"right: sum_of_warps", run<sum_of_warps>, ALL, nullptr},
};

// What the run writes to stderr.
std::string output_of(const seeded &s)
{
    int ends[2];
    if (pipe(ends) != 0) return "pipe failed";
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        s.run();
        fflush(stderr);
        _exit(0);
    }
    close(ends[1]);
    std::string out;
    char part[4096];
    ssize_t bytes;
    while ((bytes = read(ends[0], part, sizeof part)) > 0) out.append(part, part + bytes);
    close(ends[0]);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return "fork failed";
    if (WIFSIGNALED(status)) out += "ended by signal " + std::to_string(WTERMSIG(status));
    return out;
}

} // namespace

int main()
{
    static const emulation::order orders[] = {
        emulation::order::ascending, emulation::order::descending, emulation::order::random};
    int runs = 0, failures = 0;
    for (const seeded &s : all) {
        if (!(s.builds & this_build)) continue;
        for (emulation::order order : orders) {
            emulation::options.order = order;
            std::string out = output_of(s);
            bool good = s.report ? out.find(s.report) != std::string::npos : out.empty();
            runs++;
            if (good) continue;
            failures++;
            printf("%s, order %d: expected '%s', got '%s'\n", s.name, static_cast<int>(order),
                   s.report ? s.report : "", out.c_str());
        }
    }
    printf("seeded_bugs: %d runs, %d failures\n", runs, failures);
    return failures > 0 || runs == 0;
}
