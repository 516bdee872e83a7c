// SPDX-License-Identifier: Apache-2.0
// Exact values of lists of candidates and the best by them: a block a query, so that nothing but
// survivors leaves it. Its warps take pairs as in kernels/device_exact, then all of it sorts.
#include "kernels/device_exact/pair_value.cuh"
#include "kernels/gpu_lists/gpu_refine.h"

namespace bsw
{
namespace
{

constexpr uint32_t list_threads = 512, list_warps = list_threads / warp_rows;
constexpr uint32_t rows_at_once = 4;

struct list_arguments {
    bsw_metric metric;
    bsw_device_raw_rows rows;
    const float *queries;
    bsw_device_lists lists;
    uint32_t keep, take, room; // room: places in shared memory, a power of two
    bsw_device_survivor *out;
};

// A list on its way through shared memory: the score of each candidate and its place in the list.
struct scored_list {
    const uint64_t *items;
    uint64_t *scores;
    uint16_t *places;
};

constexpr uint32_t no_place = 0xffff; // behind all candidates
static_assert(BSW_MOST_LAST_KEEP < no_place, "places of a list in 16 bits");

__device__ __forceinline__ uint32_t row_of(const scored_list &list, uint32_t at)
{
    const uint32_t place = list.places[at];
    return place == no_place ? UINT32_MAX : ~static_cast<uint32_t>(list.items[place]);
}

// Whether the candidate at b belongs before that at a, which comes first.
struct by_value {
    __device__ static bool is_before(const scored_list &list, uint32_t b, uint32_t a)
    {
        const uint64_t first = list.scores[a], second = list.scores[b];
        return second > first || (second == first && row_of(list, b) < row_of(list, a));
    }
};

struct by_row {
    __device__ static bool is_before(const scored_list &list, uint32_t b, uint32_t a)
    {
        return row_of(list, b) < row_of(list, a);
    }
};

// size: a power of two, 2 or more. All differ but those without a place.
template <class ORDER> __device__ void sort_list(const scored_list &list, uint32_t size)
{
    for (uint32_t run = 2; run <= size; run *= 2) {
        for (uint32_t step = run / 2; step > 0; step /= 2) {
            for (uint32_t i = threadIdx.x; i < size / 2; i += list_threads) {
                const uint32_t low = i / step * 2 * step + i % step, high = low + step;
                const bool is_falling = low & run;
                if (!ORDER::is_before(list, is_falling ? low : high, is_falling ? high : low))
                    continue;
                const uint64_t score = list.scores[low];
                const uint16_t place = list.places[low];
                list.scores[low] = list.scores[high];
                list.places[low] = list.places[high];
                list.scores[high] = score;
                list.places[high] = place;
            }
            __syncthreads();
        }
    }
}

// As many of a list's places as the sort wants, from `count` on without candidates.
__device__ uint32_t clear_behind(const scored_list &list, uint32_t count)
{
    uint32_t size = 2;
    while (size < count) size *= 2;
    for (uint32_t i = count + threadIdx.x; i < size; i += list_threads) {
        list.scores[i] = 0;
        list.places[i] = no_place;
    }
    __syncthreads();
    return size;
}

// Some candidates of a warp at a time. A row that no shard has is the host's to find.
template <class T>
__device__ void find_values(const list_arguments &a, const scored_list &list, uint32_t count)
{
    const float *query = a.queries + static_cast<size_t>(blockIdx.x) * a.rows.dims;
    for (uint32_t first = threadIdx.x / warp_rows * rows_at_once; first < count;
         first += list_warps * rows_at_once) {
        const T *rows[rows_at_once];
        double values[rows_at_once];
#pragma unroll
        for (uint32_t i = 0; i < rows_at_once; i++) {
            const uint32_t at = min(first + i, count - 1),
                           row = ~static_cast<uint32_t>(list.items[at]);
            rows[i] = row_at<T>(a.rows, row < a.rows.num_rows ? row : 0);
        }
        pair_values(a.metric, a.rows, rows, query, nullptr, values);
        if (threadIdx.x % warp_rows > 0) continue;
#pragma unroll
        for (uint32_t i = 0; i < rows_at_once; i++) {
            if (first + i >= count) break;
            list.scores[first + i] = exact_score(a.metric, values[i]);
            list.places[first + i] = static_cast<uint16_t>(first + i);
        }
    }
}

__device__ __forceinline__ double value_of(bsw_metric metric, uint64_t score)
{
    const double key = exact_key(score);
    return bsw_is_distance(metric) ? __dsub_rn(0.0, key) : key;
}

template <class T>
__global__ void __launch_bounds__(list_threads)
    refine_lists(const __grid_constant__ list_arguments a)
{
    DYNAMIC_SHARED(uint64_t, scores); // [room], then places
    const uint32_t q = blockIdx.x, count = min(a.lists.counts[q], a.keep),
                   taken = min(count, a.take);
    const scored_list list = {a.lists.items + static_cast<size_t>(q) * a.lists.capacity, scores,
                              reinterpret_cast<uint16_t *>(scores + a.room)};
    find_values<T>(a, list, count);
    if (taken < count) sort_list<by_value>(list, clear_behind(list, count));
    __syncthreads(); // values are there
    sort_list<by_row>(list, clear_behind(list, taken));
    bsw_device_survivor *out = a.out + static_cast<size_t>(q) * a.take;
    for (uint32_t i = threadIdx.x; i < taken; i += list_threads) {
        const uint64_t item = list.items[list.places[i]];
        out[i] = {value_of(a.metric, list.scores[i]), static_cast<uint32_t>(item >> 32),
                  ~static_cast<uint32_t>(item)};
    }
}

// In the order of enum bsw_vector_type.
void (*const list_kernels[])(list_arguments) = {refine_lists<float>, refine_lists<half_number>,
                                                refine_lists<uint8_t>, refine_lists<int8_t>};

bool is_valid(const list_arguments &a)
{
    return a.rows.dims >= 1 && a.rows.num_rows >= 1 && a.rows.type <= BSW_VECTOR_INT8 &&
           a.metric < BSW_METRIC_NUM && a.keep >= 1 && a.keep <= BSW_MOST_LAST_KEEP &&
           a.keep <= a.lists.capacity && a.take >= 1 && a.take <= a.keep &&
           a.lists.num_queries <= INT32_MAX;
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw::list_arguments, a.rows, a.queries, a.lists, a.out)

extern "C" int bsw_device_refine_lists(enum bsw_metric metric,
                                       const struct bsw_device_raw_rows *rows, const float *queries,
                                       const struct bsw_device_lists *lists, uint32_t keep,
                                       uint32_t take, struct bsw_device_survivor *out,
                                       bsw_stream stream)
{
    using namespace bsw;
    list_arguments a = {metric, *rows, queries, *lists, keep, take, 2, out};
    if (!is_valid(a)) return cudaErrorInvalidValue;
    if (lists->num_queries == 0) return cudaSuccess;
    while (a.room < keep) a.room *= 2;
    const size_t shared = a.room * (sizeof(uint64_t) + sizeof(uint16_t));
    return launch({dim3(lists->num_queries), dim3(list_threads), shared, stream},
                  list_kernels[rows->type], a);
}
