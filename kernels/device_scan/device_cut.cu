// SPDX-License-Identifier: Apache-2.0
// The best of every list: radix select on whole candidates, or exact scores with their rows, which
// all differ, so that the pivot parts them exactly; then compaction in place. A block a query, a
// round at most for each byte over its list. One block alone waits for memory most of the time, so
// a thread asks for several items at once. On an H200 a list of 2^16 takes 0.11 ms, 256 lists 0.23.
#include "kernels/device_exact/exact_value.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t cut_threads = 512, cut_warps = cut_threads / 32;
constexpr uint32_t digits = 256;
constexpr uint32_t loads = 8; // of a thread, under way together

struct cut_state {
    unsigned histogram[digits];
    unsigned kept_of_warp[cut_warps];
    unsigned digit, left, with_digit; // what choose_digit found
    unsigned long long worst;         // score of the items that reach the pivot
};

// What a list is ordered by: the larger `high`, then the larger `low`. Of a candidate `high` is all
// of it; of an exact score `low` is its complemented row.
struct item {
    uint64_t high;
    uint32_t low;
};

__device__ __forceinline__ item load_item(const bsw_device_lists &lists, size_t at)
{
    return {lists.items[at], 0};
}
__device__ __forceinline__ item load_item(const bsw_device_exact_lists &lists, size_t at)
{
    return {lists.scores[at], ~lists.rows[at]};
}

__device__ __forceinline__ void store_item(const bsw_device_lists &lists, size_t at,
                                           const item &value)
{
    lists.items[at] = value.high;
}
__device__ __forceinline__ void store_item(const bsw_device_exact_lists &lists, size_t at,
                                           const item &value)
{
    lists.scores[at] = value.high;
    lists.rows[at] = ~value.low;
}

__device__ __forceinline__ unsigned long long score_of(const bsw_device_lists &, const item &value)
{
    return value.high >> 32;
}
__device__ __forceinline__ unsigned long long score_of(const bsw_device_exact_lists &,
                                                       const item &value)
{
    return value.high;
}

__device__ __forceinline__ void set_limit(const bsw_device_lists &lists, unsigned long long score)
{
    lists.limits[blockIdx.x] = static_cast<uint32_t>(score < UINT32_MAX ? score : UINT32_MAX);
}
__device__ __forceinline__ void set_limit(const bsw_device_exact_lists &lists,
                                          unsigned long long score)
{
    lists.limits[blockIdx.x] = score;
}

// What a limit is above the worst score kept. Of exact lists later rows are larger.
__device__ __forceinline__ unsigned step_of(const bsw_device_lists &lists)
{
    return lists.is_unordered ? 0 : 1;
}
__device__ __forceinline__ unsigned step_of(const bsw_device_exact_lists &)
{
    return 1;
}

// Bytes that items differ in.
__device__ __forceinline__ int rounds_of(const bsw_device_lists &)
{
    return 8;
}
__device__ __forceinline__ int rounds_of(const bsw_device_exact_lists &)
{
    return 12;
}

// Byte `round` of an item, the first the highest.
__device__ __forceinline__ unsigned digit_of(const item &value, int round)
{
    const uint64_t bits =
        round < 8 ? value.high >> (56 - 8 * round) : uint64_t{value.low} >> (24 - 8 * (round - 8));
    return static_cast<unsigned>(bits) & (digits - 1);
}

// Whether the bytes before `round` are those of the pivot, whose others are 0.
__device__ __forceinline__ bool shares_prefix(const item &value, const item &pivot, int round)
{
    if (round == 0) return true;
    if (round <= 8) return (value.high ^ pivot.high) >> (64 - 8 * round) == 0;
    return value.high == pivot.high && (value.low ^ pivot.low) >> (32 - 8 * (round - 8)) == 0;
}

__device__ __forceinline__ bool reaches(const item &value, const item &pivot)
{
    return value.high > pivot.high || (value.high == pivot.high && value.low >= pivot.low);
}

// Items base, base + cut_threads ... of the list that begins at `first`; 0 from `count` on.
template <class L>
__device__ __forceinline__ void load_items(const L &lists, size_t first, uint32_t base,
                                           uint32_t count, item (&some)[loads])
{
#pragma unroll
    for (uint32_t i = 0; i < loads; i++) {
        const uint32_t at = base + i * cut_threads;
        some[i] = at < count ? load_item(lists, first + at) : item{0, 0};
    }
}

// histogram[d]: items whose digit is d, of those that share the pivot's digits above. Scores are
// often alike, so that a digit repeats: a thread adds once for a run of it, as adds to one place
// wait for each other.
template <class L>
__device__ void count_digits(const L &lists, size_t first, uint32_t count, const item &pivot,
                             int round, cut_state &state)
{
    for (uint32_t d = threadIdx.x; d < digits; d += cut_threads) state.histogram[d] = 0;
    __syncthreads();
    unsigned last = 0, run = 0;
    for (uint32_t base = threadIdx.x; base < count; base += loads * cut_threads) {
        item some[loads];
        load_items(lists, first, base, count, some);
#pragma unroll
        for (uint32_t i = 0; i < loads; i++) {
            if (base + i * cut_threads >= count) break;
            if (!shares_prefix(some[i], pivot, round)) continue;
            const unsigned digit = digit_of(some[i], round);
            if (digit != last && run > 0) {
                atomicAdd(&state.histogram[last], run);
                run = 0;
            }
            last = digit;
            run++;
        }
    }
    if (run > 0) atomicAdd(&state.histogram[last], run);
    __syncthreads();
}

// The first warp: the digit, from the largest down, at which the counts reach `left`.
__device__ void choose_digit(unsigned left, cut_state &state)
{
    const unsigned lane = threadIdx.x;
    unsigned own[8], sum = 0;
    for (unsigned i = 0; i < 8; i++) {
        own[i] = state.histogram[digits - 1 - 8 * lane - i];
        sum += own[i];
    }
    unsigned through = sum;
    for (unsigned step = 1; step < 32; step *= 2) {
        const unsigned below = __shfl_up_sync(all_lanes, through, step);
        if (lane >= step) through += below;
    }
    unsigned above = through - sum;
    if (above >= left || through < left) return;
    for (unsigned i = 0; i < 8; i++) {
        if (above + own[i] >= left) {
            state.digit = digits - 1 - 8 * lane - i;
            state.left = left - above;
            state.with_digit = own[i];
            return;
        }
        above += own[i];
    }
}

// What exactly `keep` items reach; 1 <= keep <= count.
template <class L>
__device__ item find_pivot(const L &lists, size_t first, uint32_t count, unsigned keep,
                           cut_state &state)
{
    item pivot = {0, 0};
    unsigned left = keep;
    for (int round = 0; round < rounds_of(lists); round++) {
        count_digits(lists, first, count, pivot, round, state);
        if (threadIdx.x < 32) choose_digit(left, state);
        __syncthreads();
        if (round < 8)
            pivot.high |= static_cast<uint64_t>(state.digit) << (56 - 8 * round);
        else
            pivot.low |= state.digit << (24 - 8 * (round - 8));
        left = state.left;
        if (state.with_digit == left) break; // all of them
    }
    return pivot;
}

// state.worst, once all threads have passed a barrier.
template <class L>
__device__ void find_worst(const L &lists, size_t first, uint32_t count, const item &pivot,
                           cut_state &state)
{
    unsigned long long worst = UINT64_MAX;
    for (uint32_t base = threadIdx.x; base < count; base += loads * cut_threads) {
        item some[loads];
        load_items(lists, first, base, count, some);
#pragma unroll
        for (uint32_t i = 0; i < loads; i++) {
            const unsigned long long score = score_of(lists, some[i]);
            if (base + i * cut_threads < count && reaches(some[i], pivot) && score < worst)
                worst = score;
        }
    }
    if (worst < UINT64_MAX) atomicMin(&state.worst, worst);
}

// Items that reach the pivot to the front. A step writes no further than it has read; what the next
// step reads is asked for before.
template <class L>
__device__ void compact(const L &lists, size_t first, uint32_t count, const item &pivot,
                        cut_state &state)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t kept = 0;
    item next = threadIdx.x < count ? load_item(lists, first + threadIdx.x) : item{0, 0};
    for (uint32_t base = 0; base < count; base += cut_threads) {
        const uint32_t i = base + threadIdx.x;
        const item own = next;
        next = i + cut_threads < count ? load_item(lists, first + i + cut_threads) : item{0, 0};
        const bool keeps = i < count && reaches(own, pivot);
        const unsigned lanes = __ballot_sync(all_lanes, keeps);
        if (lane == 0) state.kept_of_warp[warp] = static_cast<unsigned>(__popc(lanes));
        __syncthreads();
        unsigned before = static_cast<unsigned>(__popc(lanes & ((1u << lane) - 1))), all = 0;
        for (unsigned w = 0; w < cut_warps; w++) {
            if (w < warp) before += state.kept_of_warp[w];
            all += state.kept_of_warp[w];
        }
        if (keeps) store_item(lists, first + kept + before, own);
        kept += all;
        __syncthreads(); // counts of the warps are written anew
    }
}

// Shared by both kernels: the pivot of a list that holds `keep` items or more, and from the next
// barrier on in state.worst the lowest score of those that reach it. False for a shorter list.
template <class L>
__device__ bool find_best(const L &lists, uint32_t keep, uint32_t *count, item *pivot,
                          cut_state &state)
{
    const uint32_t stored = lists.counts[blockIdx.x];
    *count = stored < lists.capacity ? stored : lists.capacity;
    if (*count < keep) return false;
    const size_t first = static_cast<size_t>(blockIdx.x) * lists.capacity;
    if (threadIdx.x == 0) state.worst = UINT64_MAX;
    *pivot = find_pivot(lists, first, *count, keep, state); // with barriers
    find_worst(lists, first, *count, *pivot, state);
    return true;
}

template <class L> __device__ void cut_list(const L &lists, uint32_t keep, cut_state &state)
{
    uint32_t count;
    item pivot;
    if (!find_best(lists, keep, &count, &pivot, state)) return;
    compact(lists, static_cast<size_t>(blockIdx.x) * lists.capacity, count, pivot, state);
    if (threadIdx.x > 0) return;
    lists.counts[blockIdx.x] = keep;
    set_limit(lists, state.worst + step_of(lists));
}

template <class L> __device__ void raise_limit(const L &lists, uint32_t keep, cut_state &state)
{
    uint32_t count;
    item pivot;
    const bool is_full = find_best(lists, keep, &count, &pivot, state);
    __syncthreads(); // everybody has read the count, and added to the worst score
    if (threadIdx.x > 0) return;
    lists.counts[blockIdx.x] = 0;
    if (is_full) set_limit(lists, state.worst);
}

__global__ void __launch_bounds__(cut_threads)
    cut_lists(const __grid_constant__ bsw_device_lists lists, uint32_t keep)
{
    __shared__ cut_state state;
    if (threadIdx.x == 0 && lists.overflowed && lists.counts[blockIdx.x] > lists.capacity)
        atomicMax(lists.overflowed, 1u);
    cut_list(lists, keep, state);
}

__global__ void __launch_bounds__(cut_threads)
    cut_exact_lists(const __grid_constant__ bsw_device_exact_lists lists, uint32_t keep)
{
    __shared__ cut_state state;
    cut_list(lists, keep, state);
}

__global__ void __launch_bounds__(cut_threads)
    raise_limits(const __grid_constant__ bsw_device_lists lists, uint32_t keep)
{
    __shared__ cut_state state;
    raise_limit(lists, keep, state);
}

__global__ void __launch_bounds__(cut_threads)
    raise_exact_limits(const __grid_constant__ bsw_device_exact_lists lists, uint32_t keep)
{
    __shared__ cut_state state;
    raise_limit(lists, keep, state);
}

template <class L>
cudaError_t launch_a_list(void (*kernel)(L, uint32_t), const L &lists, uint32_t keep,
                          cudaStream_t stream)
{
    if (keep < 1 || keep > lists.capacity || lists.num_queries > INT32_MAX)
        return cudaErrorInvalidValue;
    if (lists.num_queries == 0) return cudaSuccess;
    return launch({dim3(lists.num_queries), dim3(cut_threads), 0, stream}, kernel, lists, keep);
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_cut(const struct bsw_device_lists *lists, uint32_t keep,
                              bsw_stream stream)
{
    return bsw::launch_a_list(bsw::cut_lists, *lists, keep, stream);
}

extern "C" int bsw_device_limit(const struct bsw_device_lists *lists, uint32_t keep,
                                bsw_stream stream)
{
    return bsw::launch_a_list(bsw::raise_limits, *lists, keep, stream);
}

extern "C" int bsw_device_exact_cut(const struct bsw_device_exact_lists *lists, uint32_t keep,
                                    bsw_stream stream)
{
    return bsw::launch_a_list(bsw::cut_exact_lists, *lists, keep, stream);
}

extern "C" int bsw_device_exact_limit(const struct bsw_device_exact_lists *lists, uint32_t keep,
                                      bsw_stream stream)
{
    return bsw::launch_a_list(bsw::raise_exact_limits, *lists, keep, stream);
}
