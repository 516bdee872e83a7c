// What a block of the Hopper kernel has in shared memory, for how many threads, and the ring that
// tiles go round in (device_matrix_scan_hopper.cu).
#ifndef BITSWEEP_KERNELS_HOPPER_SHARED_CUH
#define BITSWEEP_KERNELS_HOPPER_SHARED_CUH

#include "kernels/device_scan/dot_bound.cuh"
#include "kernels/device_scan/hopper_layout.cuh"
#include "kernels/device_scan/matrix_keys.cuh"
#include "kernels/hopper_switch.cuh"

namespace bsw
{

constexpr uint32_t group_threads = 128; // a warpgroup
constexpr uint32_t num_consumers = 2;   // warpgroups
constexpr uint32_t consumer_threads = num_consumers * group_threads;
constexpr uint32_t block_threads = consumer_threads + group_threads;
constexpr uint32_t tile_bundles = hopper_rows / warp_rows; // one for each warp of the producers
constexpr uint32_t most_dims = 256;
constexpr uint32_t slot_keys = warp_rows / 2 + warp_rows; // words: scales, two a word, and biases
constexpr uint32_t rare_sums = 8; // that the rare way takes at a time: of 32 columns, one row
static_assert(tile_bundles * 32 == group_threads, "a warp of the producers for each bundle");

struct hopper_arguments {
    scan_arguments scan;
    uint32_t num_stages; // >= 2
    uint32_t num_slots;  // of a producers' warp: 4 or 8
    uint32_t slot_words; // of a bundle's planes, scales and biases
};
static_assert(sizeof(hopper_arguments) <= 4096, "more than a launch carries");

DEVICE_POINTERS(hopper_arguments, a.scan)

// words: of 32 dimensions, those of the layout or more; blocks: of 64 queries that a consumer has;
// is_split: consumers have the same queries and take tiles in turns.
template <int WORDS_, int BLOCKS_, bool IS_SPLIT_> struct hopper_shape {
    static constexpr int words = WORDS_, blocks = BLOCKS_;
    static constexpr bool is_split = IS_SPLIT_;
    static constexpr uint32_t step = is_split ? num_consumers : 1; // tiles, of a consumer
    static constexpr uint32_t queries = hopper_queries * blocks * (is_split ? 1 : num_consumers);
    static constexpr uint32_t empty_arrivals = is_split ? group_threads : consumer_threads;
    static constexpr uint32_t tile_bytes = words * tile_word_bytes;
};

// Parts of the block's shared memory.
struct hopper_shared {
    uint8_t *tiles;                       // [num_stages][tile_bytes]
    float *scales, *biases;               // [num_stages][hopper_rows]
    bundle_bound *bounds;                 // [num_stages][tile_bundles]
    int *rare;                            // [consumer_threads][rare_sums]
    uint32_t *slots;                      // [tile_bundles][num_slots][slot_words]
    uint32_t full_barrier, empty_barrier; // [num_stages], addresses
};

constexpr size_t stage_bytes(uint32_t words)
{
    return words * tile_word_bytes + hopper_rows * 2 * sizeof(float) +
           tile_bundles * sizeof(bundle_bound);
}

inline size_t shared_bytes_of(uint32_t words, const hopper_arguments &a)
{
    return a.num_stages * (stage_bytes(words) + 2 * sizeof(uint64_t)) +
           consumer_threads * rare_sums * sizeof(int) +
           static_cast<size_t>(tile_bundles) * a.num_slots * a.slot_words * sizeof(uint32_t);
}

template <class SHAPE>
__device__ __forceinline__ hopper_shared divide_shared(const hopper_arguments &a)
{
    DYNAMIC_SHARED(uint8_t, memory);
    hopper_shared out;
    out.tiles = memory;
    out.scales = reinterpret_cast<float *>(memory + a.num_stages * SHAPE::tile_bytes);
    out.biases = out.scales + a.num_stages * hopper_rows;
    out.bounds = reinterpret_cast<bundle_bound *>(out.biases + a.num_stages * hopper_rows);
    out.rare = reinterpret_cast<int *>(out.bounds + a.num_stages * tile_bundles);
    out.slots = reinterpret_cast<uint32_t *>(out.rare + consumer_threads * rare_sums);
    // slot_words is a multiple of 4, so this is one of 8 bytes.
    out.full_barrier = shared_address(out.slots + tile_bundles * a.num_slots * a.slot_words);
    out.empty_barrier = out.full_barrier + a.num_stages * 8;
    return out;
}

// Which stage, and the parity of the ring's round.
struct ring_place {
    uint32_t stage, parity;
};

__device__ __forceinline__ void advance(ring_place &at, uint32_t step, uint32_t num_stages)
{
    at.stage += step;
    if (at.stage < num_stages) return;
    at.stage -= num_stages;
    at.parity ^= 1;
}

} // namespace bsw

#endif
