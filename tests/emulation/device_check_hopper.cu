// SPDX-License-Identifier: Apache-2.0
// The layouts of hopper_layout.cuh, which the kernel computes with, against those that the emulator
// reads off the PTX manual: a product of two matrices is that by the definition. And bugs around
// mbarriers, copies and wgmma, which the emulator must report. Under the emulator alone: on a GPU
// the kernel itself is checked.
#include <cstring>

#include "device_check.hpp"

#if defined(__CUDACC__)

void check_products()
{
}

#else

#include "kernels/device_scan/hopper_layout.cuh"
#include "kernels/hopper_switch.cuh"

namespace
{

using namespace bsw;

constexpr uint32_t num_words = 3, num_dims = num_words * hopper_word_dims, num_threads = 128;

enum class bug {
    none,
    none_in_shared,
    no_fence,
    no_wait,
    no_init,
    phase_that_never_ends,
    early_read,
    bits_beyond
};

struct product_arguments {
    const int8_t *a;  // [hopper_queries][num_dims]
    const uint8_t *b; // [hopper_rows][num_dims]
    int *d;           // [hopper_queries][hopper_rows]
};

DEVICE_POINTERS(product_arguments, a.a, a.b, a.d)

// A thread copies a row of B, 16 bytes at a time.
template <bug BUG> void copy_tile(const product_arguments &p, uint8_t *tile)
{
    for (uint32_t chunk = 0; chunk < num_dims / 16; chunk++)
        cp_async_16(tile + tile_offset(threadIdx.x, chunk),
                    p.b + threadIdx.x * num_dims + chunk * 16);
    cp_async_commit();
    if (BUG != bug::early_read) cp_async_wait<0>();
    fence_for_async_accesses();
}

// A to shared memory, behind the tile, by the first 64 threads.
constexpr uint32_t a_chunk_bytes = hopper_queries * 16, a_bytes = num_dims / 16 * a_chunk_bytes;

void copy_a(const product_arguments &p, uint8_t *place)
{
    for (uint32_t chunk = 0; chunk < num_dims / 16 && threadIdx.x < hopper_queries; chunk++)
        memcpy(place + chunk * a_chunk_bytes + threadIdx.x * 16,
               p.a + threadIdx.x * num_dims + chunk * 16, 16);
}

void load_fragments(const product_arguments &p, unsigned (&fragments)[num_words][4])
{
    for (uint32_t word = 0; word < num_words; word++) {
        for (uint32_t r = 0; r < 4; r++)
            memcpy(&fragments[word][r],
                   p.a + fragment_row(threadIdx.x, r % 2) * num_dims + word * hopper_word_dims +
                       fragment_k(threadIdx.x, r),
                   4);
    }
}

void store_sums(const product_arguments &p, const int (&sums)[64])
{
    for (uint32_t n = 0; n < hopper_rows / 8; n++) {
        for (uint32_t half = 0; half < 2; half++) {
            for (uint32_t c = 0; c < 2; c++)
                p.d[fragment_row(threadIdx.x, half) * hopper_rows + sum_column(threadIdx.x, n, c)] =
                    sums[sum_register(n, half, c)];
        }
    }
}

template <bug BUG> void multiply(product_arguments p)
{
    DYNAMIC_SHARED(uint8_t, tile);
    uint8_t *a = tile + num_words * tile_word_bytes;
    const uint32_t barrier = shared_address(a + a_bytes);
    if (threadIdx.x == 0 && BUG != bug::no_init) barrier_init(barrier, num_threads);
    __syncthreads();
    copy_a(p, a);
    copy_tile<BUG>(p, tile);
    barrier_arrive(barrier, true);
    barrier_wait(barrier, 0);
    if (BUG == bug::phase_that_never_ends) barrier_wait(barrier, 1);
    unsigned fragments[num_words][4];
    load_fragments(p, fragments);
    int sums[64] = {};
    if (BUG != bug::no_fence) begin_products();
    for (uint32_t word = 0; word < num_words; word++) {
        const uint64_t b = tile_descriptor(shared_address(tile), word) |
                           (BUG == bug::bits_beyond ? 1ull << 62 : 0);
        if (BUG == bug::none_in_shared)
            multiply_64x128(
                sums,
                matrix_descriptor(shared_address(a) + 2 * word * a_chunk_bytes, a_chunk_bytes), b,
                word > 0);
        else
            multiply_64x128(sums, fragments[word], b, word > 0);
    }
    if (BUG == bug::no_wait) store_sums(p, sums);
    finish_products(sums);
    if (BUG != bug::no_wait) store_sums(p, sums);
}

struct operands {
    std::vector<int8_t> a;
    std::vector<uint8_t> b;
    std::vector<int> d;
};

// Every value of both types occurs, and the largest sums.
operands make_operands()
{
    operands out;
    for (uint32_t i = 0; i < hopper_queries * num_dims; i++)
        out.a.push_back(static_cast<int8_t>(i < num_dims ? -128 : check_random(70, i)));
    for (uint32_t i = 0; i < hopper_rows * num_dims; i++)
        out.b.push_back(static_cast<uint8_t>(i < num_dims ? 255 : check_random(71, i)));
    for (uint32_t q = 0; q < hopper_queries; q++) {
        for (uint32_t row = 0; row < hopper_rows; row++) {
            int sum = 0;
            for (uint32_t k = 0; k < num_dims; k++)
                sum += out.a[q * num_dims + k] * out.b[row * num_dims + k];
            out.d.push_back(sum);
        }
    }
    return out;
}

// "" if the product is right, "wrong" if not, or what the emulator says.
template <bug BUG> std::string run_product(const operands &all)
{
    device_array<int8_t> a(all.a);
    device_array<uint8_t> b(all.b);
    device_array<int> d(std::vector<int>(all.d.size(), 0));
    (void)launch({dim3(1), dim3(num_threads), num_words * tile_word_bytes + a_bytes + 8, nullptr},
                 multiply<BUG>, product_arguments{a.get(), b.get(), d.get()});
    if (cudaDeviceSynchronize() != cudaSuccess) return emulation::report();
    return d.values() == all.d ? "" : "wrong";
}

template <bug BUG> void expect_report(const operands &all, const char *text)
{
    const std::string report = run_product<BUG>(all);
    check_that(report.find(text) != std::string::npos, "products: '%s' expected, got '%s'", text,
               report.c_str());
}

// ---- bulk copies: a slot is filled, read by a warp, filled again ----

enum class copy_bug {
    none,
    early_read,
    early_copy,
    too_few_bytes,
    too_many_bytes,
    no_wait_at_the_end,
    odd_size,
    odd_place,
    second_arrival
};

constexpr uint32_t copied = 32 * 16, copy_rounds = 3; // bytes of a round

template <copy_bug BUG>
__device__ void begin_round(const uint8_t *from, uint8_t *slot, uint32_t barrier, uint32_t round)
{
    if (threadIdx.x != 0) return;
    const uint32_t bytes = BUG == copy_bug::odd_size ? copied - 8 : copied;
    barrier_arrive_expecting(barrier, BUG == copy_bug::too_few_bytes    ? bytes - 16
                                      : BUG == copy_bug::too_many_bytes ? bytes + 16
                                                                        : bytes);
    if (BUG == copy_bug::second_arrival) barrier_arrive(barrier, true);
    const uint32_t half = copied / 2; // in two pieces
    bulk_copy(shared_address(slot), from + round * copied, half, barrier);
    bulk_copy(shared_address(slot) + half,
              from + round * copied + half + (BUG == copy_bug::odd_place ? 4 : 0), bytes - half,
              barrier);
}

template <copy_bug BUG> __global__ void copy_in_rounds(const uint8_t *from, uint4 *out)
{
    DYNAMIC_SHARED(uint8_t, slot);
    const uint32_t barrier = shared_address(slot + copied);
    if (threadIdx.x == 0) {
        barrier_init(barrier, 1);
        fence_for_async_accesses();
    }
    __syncthreads();
    begin_round<BUG>(from, slot, barrier, 0);
    for (uint32_t round = 0; round < copy_rounds; round++) {
        const bool is_last = round + 1 == copy_rounds;
        if (BUG != copy_bug::early_read) barrier_wait(barrier, round % 2);
        out[round * 32 + threadIdx.x] = reinterpret_cast<const uint4 *>(slot)[threadIdx.x];
        if (BUG == copy_bug::early_copy && !is_last)
            begin_round<BUG>(from, slot, barrier, round + 1);
        __syncwarp();
        if (BUG == copy_bug::early_read) barrier_wait(barrier, round % 2);
        if (BUG != copy_bug::early_copy && !is_last)
            begin_round<BUG>(from, slot, barrier, round + 1);
    }
    if (BUG == copy_bug::no_wait_at_the_end) begin_round<BUG>(from, slot, barrier, copy_rounds - 1);
}

template <copy_bug BUG> std::string run_copies()
{
    std::vector<uint8_t> bytes(copy_rounds * copied + 16);
    for (size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<uint8_t>(check_random(72, i));
    const device_array<uint8_t> from(bytes);
    device_array<uint4> out(copy_rounds * 32);
    (void)launch({dim3(1), dim3(32), copied + 8, nullptr}, copy_in_rounds<BUG>,
                 static_cast<const uint8_t *>(from.get()), out.get());
    if (cudaDeviceSynchronize() != cudaSuccess) return emulation::report();
    const std::vector<uint4> got = out.values();
    return memcmp(got.data(), bytes.data(), copy_rounds * copied) == 0 ? "" : "wrong";
}

template <copy_bug BUG> void expect_copies(const char *text)
{
    const std::string report = run_copies<BUG>();
    check_that(report.find(text) != std::string::npos && report.empty() == !*text,
               "bulk copies: '%s' expected, got '%s'", text, report.c_str());
}

void check_copies()
{
    expect_copies<copy_bug::none>("");
#if defined(__SANITIZE_THREAD__) // the race detector's build
    expect_copies<copy_bug::early_copy>("data races");
    expect_copies<copy_bug::early_read>("data races");
#else
    expect_copies<copy_bug::early_read>("wrong");
#endif
    expect_copies<copy_bug::too_few_bytes>("that expects 496");
    expect_copies<copy_bug::no_wait_at_the_end>("ends with bulk copies under way");
    expect_copies<copy_bug::odd_size>("no multiple of 16");
    expect_copies<copy_bug::odd_place>("no multiple of 16");
    expect_copies<copy_bug::second_arrival>("more arrivals than");
    if (!EMULATION_ASAN) // a deadlock leaves its report's memory behind
        expect_copies<copy_bug::too_many_bytes>("wait in mbarrier at");
}

} // namespace

void check_products()
{
    check_copies();
    const operands all = make_operands();
    const std::string report = run_product<bug::none>(all);
    check_that(report.empty(), "products: %s", report.c_str());
    const std::string in_shared = run_product<bug::none_in_shared>(all);
    check_that(in_shared.empty(), "products of shared memory: %s", in_shared.c_str());
    expect_report<bug::no_fence>(all, "wgmma without wgmma.fence");
    expect_report<bug::no_wait>(all, "wrong");
    expect_report<bug::no_init>(all, "mbarrier that was not initialised");
    if (!EMULATION_ASAN) // a deadlock leaves its report's memory behind
        expect_report<bug::phase_that_never_ends>(all, "wait in mbarrier at");
    if (emulation::options.order != emulation::order::descending) // in which copies run at once
        expect_report<bug::early_read>(all, "wrong");
    expect_report<bug::bits_beyond>(all, "has bits beyond");
}

#endif
