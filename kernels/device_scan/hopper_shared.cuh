// SPDX-License-Identifier: Apache-2.0
// What a block of the Hopper kernel has in shared memory, for how many threads, and the ring that
// tiles go round in (device_matrix_scan_hopper.cu).
#ifndef BITSWEEP_KERNELS_HOPPER_SHARED_CUH
#define BITSWEEP_KERNELS_HOPPER_SHARED_CUH

#include "kernels/device_scan/dot_bound.cuh"
#include "kernels/device_scan/hopper_layout.cuh"
#include "kernels/device_scan/key_terms.cuh"
#include "kernels/device_scan/pair_queue.cuh"
#include "kernels/hopper_switch.cuh"

namespace bsw
{

constexpr uint32_t group_threads = 128;                    // a warpgroup
constexpr uint32_t tile_bundles = hopper_rows / warp_rows; // one for each warp of the producers
constexpr uint32_t most_dims = 256;
constexpr uint32_t most_slot_bundles = 4;
constexpr uint32_t key_words = warp_rows / 2 + warp_rows; // scales, two a word, and biases
static_assert(tile_bundles * 32 == group_threads, "a warp of the producers for each bundle");

struct hopper_arguments {
    scan_arguments scan;
    uint32_t num_stages;   // >= 2
    uint32_t num_slots;    // of a producers' warp, >= 2
    uint32_t slot_bundles; // 1, 2 or 4
    uint32_t bundle_words; // of a bundle's planes, scales and biases
};
static_assert(sizeof(hopper_arguments) <= 4096, "more than a launch carries");

DEVICE_POINTERS(hopper_arguments, a.scan)

// words: of 32 dimensions, those of the layout or more; blocks: of 64 queries that a consumer has;
// consumers: warpgroups, each with queries of its own.
template <int WORDS_, int BLOCKS_, int CONSUMERS_> struct hopper_shape {
    static constexpr int words = WORDS_, blocks = BLOCKS_, consumers = CONSUMERS_;
    static constexpr uint32_t consumer_threads = consumers * group_threads;
    static constexpr uint32_t threads = consumer_threads + group_threads;
    static constexpr uint32_t blocks_together = consumers == 1 ? 2 : 1; // on a multiprocessor
    static constexpr uint32_t queries = hopper_queries * blocks * consumers;
    static constexpr uint32_t tile_bytes = words * tile_word_bytes;

    // Of a thread: what the launch gives, and from three consumers on what producers leave of it
    // to the others, whose sums and queries need it.
    static constexpr int launched = 65536 / (blocks_together * threads) / 8 * 8;
    static constexpr bool moves_registers = consumers > 2;
    static constexpr int of_producers = consumers == 3 ? 56 : 64;
    static constexpr int of_consumers = launched + (launched - of_producers) / consumers / 8 * 8;
};

// What a block scans. Bundle i of tile t is bundle begin + i * num_tiles + t of the part, where
// that is below end: so every warp of the producers has bundles that follow each other.
struct block_work {
    uint32_t first_query, begin, end, num_tiles;
};

// queries: of a block.
__device__ __forceinline__ block_work work_of_block(const scan_arguments &a, uint32_t queries)
{
    const uint32_t begin = blockIdx.x / a.num_groups * a.chunk;
    const uint32_t end = a.num_bundles - begin < a.chunk ? a.num_bundles : begin + a.chunk;
    return {blockIdx.x % a.num_groups * queries, begin, end,
            (end - begin + tile_bundles - 1) / tile_bundles};
}

// The first query of the consumer's block of 64.
template <class SHAPE>
__device__ __forceinline__ uint32_t first_of_block(uint32_t first_query, uint32_t consumer,
                                                   uint32_t block)
{
    return first_query + (block * SHAPE::consumers + consumer) * hopper_queries;
}

// Parts of the block's shared memory.
struct hopper_shared {
    uint8_t *tiles;       // [num_stages][tile_bytes]
    bundle_bound *bounds; // [num_stages][tile_bundles]
    pair *pairs;          // [consumer_threads / 32][queue_pairs]
    uint32_t *waiting;    // [consumer_threads / 32], of those
    // Where sums start with terms of keys, in place of bounds:
    row_caps *caps;         // [num_stages, by slices term_places][tile_bundles]
    uint4 *terms;           // the same [hopper_rows]
    key_pair *words;        // [blocks][consumer_threads]
    key_start *starts;      // [blocks][consumer_threads / 4], a thread's two queries
    row_caps *started;      // [consumer_threads / 32], that these are for
    uint32_t *slots;        // [tile_bundles][num_slots][slot_bundles * bundle_words]
    uint32_t ring_barriers; // [num_stages] full and empty, address
    uint32_t slot_barriers; // [tile_bundles][num_slots], address
};

constexpr uint32_t ring_barrier_bytes = 2 * 8;

__device__ __forceinline__ uint32_t full_barrier(const hopper_shared &shared, uint32_t stage)
{
    return shared.ring_barriers + stage * ring_barrier_bytes;
}

__device__ __forceinline__ uint32_t empty_barrier(const hopper_shared &shared, uint32_t stage)
{
    return shared.ring_barriers + stage * ring_barrier_bytes + 8;
}

// By one thread.
__device__ __forceinline__ void init_barriers(const hopper_shared &shared, uint32_t num_stages,
                                              uint32_t num_slots, uint32_t num_consumers)
{
    for (uint32_t i = 0; i < num_stages; i++) {
        barrier_init(full_barrier(shared, i), tile_bundles * warp_arrivals);
        barrier_init(empty_barrier(shared, i), num_consumers * group_threads / 32 * warp_arrivals);
    }
    for (uint32_t i = 0; i < tile_bundles * num_slots; i++)
        barrier_init(shared.slot_barriers + i * 8, 1);
    fence_for_async_accesses(); // copies arrive on them
}

constexpr size_t queue_bytes = queue_pairs * sizeof(pair) + sizeof(uint32_t); // of a warp

// queries: of a block.
inline size_t shared_bytes_of(uint32_t words, uint32_t consumers, uint32_t queries,
                              const hopper_arguments &a)
{
    const size_t stage = words * tile_word_bytes + tile_bundles * sizeof(bundle_bound) +
                         hopper_rows * sizeof(uint4) + ring_barrier_bytes;
    const size_t slot = static_cast<size_t>(a.slot_bundles) * a.bundle_words * sizeof(uint32_t) + 8;
    return a.num_stages * stage + tile_bundles * a.num_slots * slot +
           consumers * (group_threads / 32) * (queue_bytes + sizeof(row_caps)) +
           queries * (2 * sizeof(key_pair) + sizeof(key_start) / 2);
}

// Every part but the barriers is a multiple of 16 bytes long.
template <class SHAPE>
__device__ __forceinline__ hopper_shared divide_shared(const hopper_arguments &a)
{
    DYNAMIC_SHARED(uint8_t, memory);
    hopper_shared out;
    out.tiles = memory;
    out.bounds = reinterpret_cast<bundle_bound *>(memory + a.num_stages * SHAPE::tile_bytes);
    out.pairs = reinterpret_cast<pair *>(out.bounds + a.num_stages * tile_bundles);
    out.waiting =
        reinterpret_cast<uint32_t *>(out.pairs + SHAPE::consumer_threads / 32 * queue_pairs);
    out.caps = reinterpret_cast<row_caps *>(out.bounds);
    out.words = reinterpret_cast<key_pair *>(out.waiting + SHAPE::consumer_threads / 32);
    out.starts = reinterpret_cast<key_start *>(out.words + SHAPE::queries * 2);
    out.started = reinterpret_cast<row_caps *>(out.starts + SHAPE::queries / 2);
    out.terms = reinterpret_cast<uint4 *>(out.started + SHAPE::consumer_threads / 32);
    out.slots = reinterpret_cast<uint32_t *>(out.terms + a.num_stages * hopper_rows);
    out.ring_barriers =
        shared_address(out.slots + tile_bundles * a.num_slots * a.slot_bundles * a.bundle_words);
    out.slot_barriers = out.ring_barriers + a.num_stages * ring_barrier_bytes;
    return out;
}

// A place of a ring, and the parity of its round.
struct ring_place {
    uint32_t index, parity;
};

__device__ __forceinline__ void advance(ring_place &at, uint32_t length)
{
    if (++at.index < length) return;
    at.index = 0;
    at.parity ^= 1;
}

// Whether pieces of all arrays start where bulk copies may.
inline bool is_aligned(const bsw_device_codes &codes)
{
    uintptr_t all =
        reinterpret_cast<uintptr_t>(codes.scales) | reinterpret_cast<uintptr_t>(codes.biases);
    for (uint32_t s = 0; s < codes.layout.num_segments; s++)
        all |= reinterpret_cast<uintptr_t>(codes.planes[s]);
    return all % 16 == 0;
}

} // namespace bsw

#endif
