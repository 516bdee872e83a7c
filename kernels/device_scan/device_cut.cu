// The best of every list: radix select on whole candidates, which all differ, so that the pivot
// parts them exactly; then compaction in place. A block a query, eight rounds at most over its
// list.
#include "kernels/device_scan/device_key.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t cut_threads = 512, cut_warps = cut_threads / 32;
constexpr uint32_t digits = 256;

struct cut_state {
    unsigned histogram[digits];
    unsigned kept_of_warp[cut_warps];
    unsigned digit, left, with_digit; // what choose_digit found
    unsigned worst;                   // score
};

// histogram[d]: items whose digit is d, of those that share the pivot's digits above.
__device__ void count_digits(const uint64_t *items, uint32_t count, uint64_t pivot, int shift,
                             cut_state &state)
{
    for (uint32_t d = threadIdx.x; d < digits; d += cut_threads) state.histogram[d] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += cut_threads) {
        const uint64_t item = items[i];
        if (shift == 56 || item >> (shift + 8) == pivot >> (shift + 8))
            atomicAdd(&state.histogram[item >> shift & (digits - 1)], 1u);
    }
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

// Items that reach the pivot to the front. A step writes no further than it has read.
__device__ void compact(uint64_t *items, uint32_t count, uint64_t pivot, cut_state &state)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t kept = 0;
    for (uint32_t base = 0; base < count; base += cut_threads) {
        const uint32_t i = base + threadIdx.x;
        const uint64_t item = i < count ? items[i] : 0;
        const bool keeps = i < count && item >= pivot;
        const unsigned lanes = __ballot_sync(all_lanes, keeps);
        if (lane == 0) state.kept_of_warp[warp] = static_cast<unsigned>(__popc(lanes));
        __syncthreads();
        unsigned before = static_cast<unsigned>(__popc(lanes & ((1u << lane) - 1))), all = 0;
        for (unsigned w = 0; w < cut_warps; w++) {
            if (w < warp) before += state.kept_of_warp[w];
            all += state.kept_of_warp[w];
        }
        if (keeps) {
            items[kept + before] = item;
            atomicMin(&state.worst, static_cast<unsigned>(item >> 32));
        }
        kept += all;
        __syncthreads(); // counts of the warps are written anew
    }
}

__global__ void __launch_bounds__(cut_threads)
    cut_lists(const __grid_constant__ bsw_device_lists lists, uint32_t keep)
{
    __shared__ cut_state state;
    const uint32_t query = blockIdx.x;
    const uint32_t stored = lists.counts[query];
    const uint32_t count = stored < lists.capacity ? stored : lists.capacity;
    if (count < keep) return;
    uint64_t *items = lists.items + static_cast<size_t>(query) * lists.capacity;
    if (threadIdx.x == 0) state.worst = UINT32_MAX;
    const uint64_t pivot = find_pivot(items, count, keep, state);
    compact(items, count, pivot, state);
    if (threadIdx.x > 0) return;
    lists.counts[query] = keep;
    lists.limits[query] = state.worst == UINT32_MAX ? UINT32_MAX : state.worst + 1;
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_cut(const struct bsw_device_lists *lists, uint32_t keep,
                              bsw_stream stream)
{
    using namespace bsw;
    if (keep < 1 || keep > lists->capacity || lists->num_queries > INT32_MAX)
        return cudaErrorInvalidValue;
    if (lists->num_queries == 0) return cudaSuccess;
    return launch({dim3(lists->num_queries), dim3(cut_threads), 0, stream}, cut_lists, *lists,
                  keep);
}
