// SPDX-License-Identifier: Apache-2.0
// The best of every list, and limits that are the keep-th best of a sample.
#include "kernels/gpu_select/radix_select.cuh"

namespace bsw
{
namespace
{

__global__ void __launch_bounds__(cut_threads)
    cut_lists(const __grid_constant__ bsw_device_lists lists, uint32_t keep)
{
    __shared__ cut_state state;
    if (threadIdx.x == 0) tell(lists, keep);
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
