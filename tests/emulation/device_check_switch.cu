// SPDX-License-Identifier: Apache-2.0
// What kernels/cuda_switch.cuh has beside mma: asynchronous copies and loads of matrices.
#include "device_check.hpp"

namespace
{

constexpr unsigned tile_rows = 32, row_bytes = 16, tile_bytes = tile_rows * row_bytes;
constexpr unsigned num_places = 3;

// Tiles of 32 rows of 16 bytes through three places in shared memory, two copies ahead; of every
// tile out gets what the lanes of each warp load, times the tile's number.
__global__ void load_tiles(const unsigned char *tiles, unsigned num_tiles, unsigned *out)
{
    __shared__ __align__(16) unsigned char places[num_places][tile_bytes];
    const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    for (unsigned tile = 0; tile < num_tiles + 2; tile++) {
        if (tile < num_tiles && thread < tile_rows) {
            bsw::cp_async_16(places[tile % num_places] + thread * row_bytes,
                             tiles + tile * tile_bytes + thread * row_bytes);
        }
        bsw::cp_async_commit();
        if (tile < 2) continue;
        bsw::cp_async_wait<2>();
        __syncthreads();
        unsigned loaded[4];
        const unsigned row = (lane + warp * 5) % tile_rows; // another order for each warp
        bsw::load_matrices(loaded, places[(tile - 2) % num_places] + row * row_bytes);
        for (unsigned j = 0; j < 4; j++)
            out[((tile - 2) * blockDim.x + thread) * 4 + j] = loaded[j] * (tile - 1);
        __syncthreads();
    }
}

unsigned expected_word(const std::vector<unsigned char> &tiles, unsigned tile, unsigned thread,
                       unsigned j)
{
    const unsigned warp = thread / 32, lane = thread % 32;
    const unsigned row = (8 * j + lane / 4 + warp * 5) % tile_rows;
    const unsigned char *at = tiles.data() + tile * tile_bytes + row * row_bytes + lane % 4 * 4;
    const unsigned word = at[0] | static_cast<unsigned>(at[1]) << 8 |
                          static_cast<unsigned>(at[2]) << 16 | static_cast<unsigned>(at[3]) << 24;
    return word * (tile + 1);
}

} // namespace

void check_switch()
{
    constexpr unsigned threads = 96;
    for (unsigned num_tiles : {1u, 2u, 3u, 11u}) {
        std::vector<unsigned char> tiles(num_tiles * tile_bytes);
        for (size_t i = 0; i < tiles.size(); i++)
            tiles[i] = static_cast<unsigned char>(check_random(70, i));
        const device_array<unsigned char> d_tiles(tiles);
        const device_array<unsigned> d_out(num_tiles * threads * 4);
        const int error = bsw::launch({dim3(1), dim3(threads), 0, nullptr}, load_tiles,
                                      d_tiles.get(), num_tiles, d_out.get());
        if (!check_launch(error, "load_tiles")) return;
        const std::vector<unsigned> out = d_out.values();
        bool same = true;
        for (size_t i = 0; i < out.size(); i++) {
            const unsigned at = static_cast<unsigned>(i);
            same = same &&
                   out[i] == expected_word(tiles, at / (4 * threads), at / 4 % threads, at % 4);
        }
        check_that(same, "cp.async and ldmatrix of %u tiles", num_tiles);
    }
}
