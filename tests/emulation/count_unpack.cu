// SPDX-License-Identifier: Apache-2.0
// unpack_word of device_unpack.cuh alone, a kernel for each number of bits, whose instructions
// check_architecture.sh counts.
#include "kernels/device_scan/device_unpack.cuh"

namespace bsw
{

template <int BITS> __global__ void unpack(const uint32_t *codes, uint32_t words, uint4 *out)
{
    uint32_t bytes[8];
    unpack_word<BITS>(codes + threadIdx.x, words, bytes);
    out[2 * threadIdx.x] = make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
    out[2 * threadIdx.x + 1] = make_uint4(bytes[4], bytes[5], bytes[6], bytes[7]);
}

template __global__ void unpack<1>(const uint32_t *, uint32_t, uint4 *);
template __global__ void unpack<2>(const uint32_t *, uint32_t, uint4 *);
template __global__ void unpack<3>(const uint32_t *, uint32_t, uint4 *);
template __global__ void unpack<4>(const uint32_t *, uint32_t, uint4 *);
template __global__ void unpack<8>(const uint32_t *, uint32_t, uint4 *);

} // namespace bsw
