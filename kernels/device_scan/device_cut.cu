// The best of every list: radix select on whole candidates, which all differ, so that the pivot
// parts them exactly; then compaction in place. A block a query, eight rounds at most over its
// list. One block alone waits for memory most of the time, so a thread asks for several items at
// once; by the model a list of 2^16 then takes some 0.1 ms.
#include "kernels/device_scan/device_key.cuh"

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
    unsigned worst;                   // score of the items that reach the pivot
};

// Items base, base + cut_threads ...; 0 from `count` on.
__device__ __forceinline__ void load_items(const uint64_t *items, uint32_t base, uint32_t count,
                                           uint64_t (&some)[loads])
{
#pragma unroll
    for (uint32_t i = 0; i < loads; i++) {
        const uint32_t at = base + i * cut_threads;
        some[i] = at < count ? items[at] : 0;
    }
}

// histogram[d]: items whose digit is d, of those that share the pivot's digits above. Scores are
// often alike, so that a digit repeats: a thread adds once for a run of it, as adds to one place
// wait for each other.
__device__ void count_digits(const uint64_t *items, uint32_t count, uint64_t pivot, int shift,
                             cut_state &state)
{
    for (uint32_t d = threadIdx.x; d < digits; d += cut_threads) state.histogram[d] = 0;
    __syncthreads();
    unsigned last = 0, run = 0;
    for (uint32_t base = threadIdx.x; base < count; base += loads * cut_threads) {
        uint64_t some[loads];
        load_items(items, base, count, some);
#pragma unroll
        for (uint32_t i = 0; i < loads; i++) {
            if (base + i * cut_threads >= count) break;
            if (shift < 56 && some[i] >> (shift + 8) != pivot >> (shift + 8)) continue;
            const unsigned digit = some[i] >> shift & (digits - 1);
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

// A number that exactly `keep` items reach; 1 <= keep <= count.
__device__ uint64_t find_pivot(const uint64_t *items, uint32_t count, unsigned keep,
                               cut_state &state)
{
    uint64_t pivot = 0;
    unsigned left = keep;
    for (int shift = 56; shift >= 0; shift -= 8) {
        count_digits(items, count, pivot, shift, state);
        if (threadIdx.x < 32) choose_digit(left, state);
        __syncthreads();
        pivot |= static_cast<uint64_t>(state.digit) << shift;
        left = state.left;
        if (state.with_digit == left) break; // all of them
    }
    return pivot;
}

// state.worst, once all threads have passed a barrier.
__device__ void find_worst(const uint64_t *items, uint32_t count, uint64_t pivot, cut_state &state)
{
    unsigned worst = UINT32_MAX;
    for (uint32_t base = threadIdx.x; base < count; base += loads * cut_threads) {
        uint64_t some[loads];
        load_items(items, base, count, some);
#pragma unroll
        for (uint32_t i = 0; i < loads; i++) {
            const unsigned score = static_cast<unsigned>(some[i] >> 32);
            if (base + i * cut_threads < count && some[i] >= pivot && score < worst) worst = score;
        }
    }
    if (worst < UINT32_MAX) atomicMin(&state.worst, worst);
}

// Items that reach the pivot to the front. A step writes no further than it has read; what the next
// step reads is asked for before.
__device__ void compact(uint64_t *items, uint32_t count, uint64_t pivot, cut_state &state)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t kept = 0;
    uint64_t next = threadIdx.x < count ? items[threadIdx.x] : 0;
    for (uint32_t base = 0; base < count; base += cut_threads) {
        const uint32_t i = base + threadIdx.x;
        const uint64_t item = next;
        next = i + cut_threads < count ? items[i + cut_threads] : 0;
        const bool keeps = i < count && item >= pivot;
        const unsigned lanes = __ballot_sync(all_lanes, keeps);
        if (lane == 0) state.kept_of_warp[warp] = static_cast<unsigned>(__popc(lanes));
        __syncthreads();
        unsigned before = static_cast<unsigned>(__popc(lanes & ((1u << lane) - 1))), all = 0;
        for (unsigned w = 0; w < cut_warps; w++) {
            if (w < warp) before += state.kept_of_warp[w];
            all += state.kept_of_warp[w];
        }
        if (keeps) items[kept + before] = item;
        kept += all;
        __syncthreads(); // counts of the warps are written anew
    }
}

// Shared by both kernels: the pivot of a list that holds `keep` items or more, and from the next
// barrier on in state.worst the lowest score of those that reach it. False for a shorter list.
__device__ bool find_best(const bsw_device_lists &lists, uint32_t keep, uint32_t *count,
                          uint64_t *pivot, cut_state &state)
{
    const uint32_t stored = lists.counts[blockIdx.x];
    *count = stored < lists.capacity ? stored : lists.capacity;
    if (*count < keep) return false;
    const uint64_t *items = lists.items + static_cast<size_t>(blockIdx.x) * lists.capacity;
    if (threadIdx.x == 0) state.worst = UINT32_MAX;
    *pivot = find_pivot(items, *count, keep, state); // with barriers
    find_worst(items, *count, *pivot, state);
    return true;
}

__global__ void __launch_bounds__(cut_threads)
    cut_lists(const __grid_constant__ bsw_device_lists lists, uint32_t keep)
{
    __shared__ cut_state state;
    uint32_t count;
    uint64_t pivot;
    if (!find_best(lists, keep, &count, &pivot, state)) return;
    compact(lists.items + static_cast<size_t>(blockIdx.x) * lists.capacity, count, pivot, state);
    if (threadIdx.x > 0) return;
    lists.counts[blockIdx.x] = keep;
    lists.limits[blockIdx.x] = state.worst == UINT32_MAX ? UINT32_MAX : state.worst + 1;
}

__global__ void __launch_bounds__(cut_threads)
    raise_limits(const __grid_constant__ bsw_device_lists lists, uint32_t keep)
{
    __shared__ cut_state state;
    uint32_t count;
    uint64_t pivot;
    const bool is_full = find_best(lists, keep, &count, &pivot, state);
    __syncthreads(); // everybody has read the count, and added to the worst score
    if (threadIdx.x > 0) return;
    lists.counts[blockIdx.x] = 0;
    if (is_full) lists.limits[blockIdx.x] = state.worst;
}

cudaError_t launch_a_list(void (*kernel)(bsw_device_lists, uint32_t), const bsw_device_lists &lists,
                          uint32_t keep, cudaStream_t stream)
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
