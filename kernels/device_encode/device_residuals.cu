// SPDX-License-Identifier: Apache-2.0
// What codes of residuals take beside those of rows: centroids come off, and saq's biases need
// products with them. Bound by memory; centroids come from the caches, as rows lie list after list.
#include "kernels/device_encode/device_encode_rows.cuh"

namespace bsw
{
namespace
{

// ---- centroids less the mean ----

struct list_arguments {
    const float *mean;
    uint32_t dims;
    uint64_t count; // of numbers
    float *centroids;
};

DEVICE_POINTERS(list_arguments, a.mean, a.centroids)

__global__ void __launch_bounds__(encode_threads)
    center_lists(const __grid_constant__ list_arguments a)
{
    const uint64_t i = static_cast<uint64_t>(blockIdx.x) * encode_threads + threadIdx.x;
    if (i < a.count) a.centroids[i] = __fsub_rn(a.centroids[i], a.mean[i % a.dims]);
}

// ---- rows less centroids ----

struct subtract_arguments {
    const float *centroids;
    const uint32_t *lists;
    uint32_t dims, num_rows;
    float *centered, *norms;
};

DEVICE_POINTERS(subtract_arguments, a.centroids, a.lists, a.centered, a.norms)

// Those of 8 rows; where there is no row, one that is not looked at.
__device__ __forceinline__ void load_lists(const uint32_t *lists, const row_group &group,
                                           uint32_t (&out)[group_rows])
{
#pragma unroll
    for (int r = 0; r < group_rows; r++)
        out[r] = group.exists >> r & 1 ? lists[group.first + r] : 0;
}

__device__ __forceinline__ float centroid_at(const float *centroids, uint32_t list, uint32_t stride,
                                             uint32_t dim)
{
    return centroids[static_cast<size_t>(list) * stride + dim];
}

// rows: the group's first.
__device__ __forceinline__ void store_norms(const subtract_arguments &a, const row_group &group,
                                            const float *rows)
{
    double sums[group_rows] = {};
    const uint32_t lane = threadIdx.x % warp_lanes, own = lane / lanes_per_row;
    for (uint32_t i = lane; i < a.dims; i += warp_lanes) {
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            if (group.exists >> r & 1) sums[r] = add_square(sums[r], rows[r * a.dims + i]);
        }
    }
    const double norm = tree_sum(sums);
    if (lane % lanes_per_row == 0 && group.exists >> own & 1)
        a.norms[group.first + own] = __double2float_rn(norm);
}

__global__ void __launch_bounds__(encode_threads)
    subtract_lists(const __grid_constant__ subtract_arguments a)
{
    row_group group;
    if (!find_group(a.num_rows, &group)) return;
    float *rows = a.centered + static_cast<size_t>(group.first) * a.dims;
    if (a.norms) store_norms(a, group, rows);
    uint32_t lists[group_rows];
    load_lists(a.lists, group, lists);
    for (uint32_t i = threadIdx.x % warp_lanes; i < a.dims; i += warp_lanes) {
        float o[group_rows] = {};
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            if (group.exists >> r & 1)
                o[r] =
                    __fsub_rn(rows[r * a.dims + i], centroid_at(a.centroids, lists[r], a.dims, i));
        }
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            if (group.exists >> r & 1) rows[r * a.dims + i] = o[r];
        }
    }
}

// ---- products with centroids ----

struct product_arguments {
    bsw_saq_frame frame;
    bsw_device_list_products products;
    const float *projected;
    uint32_t num_rows;
};

DEVICE_POINTERS(product_arguments, a.products.lists, a.products.centroids, a.products.norms,
                a.products.exact, a.products.coded, a.projected)

struct product_sums {
    float exact[group_rows], coded[group_rows];
};

// Adds a segment. inverses: by which its numbers become codes.
__device__ __forceinline__ void add_segment(const product_arguments &a, const row_group &group,
                                            uint32_t s, const float (&inverses)[group_rows],
                                            const uint32_t (&lists)[group_rows], product_sums &sums)
{
    const bsw_segment &segment = a.frame.layout.segments[s];
    const uint32_t stride = a.frame.layout.padded_dims;
    const int end = 1 << (segment.bits - 1);
    const float *rows = a.projected + static_cast<size_t>(group.first) * stride;
    for (uint32_t i = threadIdx.x % warp_lanes; i < segment.dims; i += warp_lanes) {
        const uint32_t dim = segment.padded_dim + i;
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            const float o = group.good >> r & 1 ? rows[r * stride + dim] : 0.0f;
            const float centroid = centroid_at(a.products.centroids, lists[r], stride, dim);
            const int f = clipped_floor(__fmul_rn(o, inverses[r]), end);
            const float c = __fmul_rn(a.frame.steps[s], __int2float_rn(2 * f + 1));
            sums.exact[r] = __fadd_rn(sums.exact[r], __fmul_rn(centroid, o));
            sums.coded[r] = __fadd_rn(sums.coded[r], __fmul_rn(centroid, c));
        }
    }
}

__global__ void __launch_bounds__(encode_threads)
    multiply_lists(const __grid_constant__ product_arguments a)
{
    row_group group;
    if (!find_group(a.num_rows, &group)) return;
    const uint32_t lane = threadIdx.x % warp_lanes, own = lane / lanes_per_row;
    const bool is_there = group.exists >> own & 1;
    const float norm = is_there ? a.products.norms[group.first + own] : 0.0f;
    const bool is_zero = norm < 0x1p-126f;
    group.good &= row_bits(!is_zero);
    const float rms =
        __fsqrt_rn(__fdiv_rn(norm, __int2float_rn(static_cast<int>(a.frame.layout.dims))));
    uint32_t lists[group_rows];
    load_lists(a.products.lists, group, lists);
    product_sums sums = {};
    for (uint32_t s = 0; s < a.frame.layout.num_segments; s++) {
        const float inverse = __fdiv_rn(1.0f, __fmul_rn(__fmul_rn(2.0f, a.frame.steps[s]), rms));
        float inverses[group_rows];
#pragma unroll
        for (int r = 0; r < group_rows; r++) inverses[r] = of_row(inverse, r);
        add_segment(a, group, s, inverses, lists, sums);
    }
    const float exact = tree_sum(sums.exact), coded = tree_sum(sums.coded);
    if (lane % lanes_per_row != 0 || !is_there) return;
    a.products.exact[group.first + own] = is_zero ? 0.0f : exact;
    a.products.coded[group.first + own] = is_zero ? 0.0f : coded;
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_center_lists(const float *mean, uint32_t dims, uint32_t num,
                                       float *centroids, bsw_stream stream)
{
    using namespace bsw;
    const list_arguments a = {mean, dims, static_cast<uint64_t>(num) * dims, centroids};
    const uint64_t blocks = (a.count + encode_threads - 1) / encode_threads;
    if (dims < 1 || blocks > INT32_MAX) return cudaErrorInvalidValue;
    if (num == 0) return cudaSuccess;
    return launch({dim3(static_cast<uint32_t>(blocks)), dim3(encode_threads), 0, stream},
                  center_lists, a);
}

extern "C" int bsw_device_subtract_lists(const float *centroids, const uint32_t *lists,
                                         uint32_t dims, uint32_t num_rows, float *centered,
                                         float *norms, bsw_stream stream)
{
    using namespace bsw;
    if (dims < 1 || num_rows > INT32_MAX) return cudaErrorInvalidValue;
    if (num_rows == 0) return cudaSuccess;
    const subtract_arguments a = {centroids, lists, dims, num_rows, centered, norms};
    return launch({dim3(num_encode_blocks(num_rows)), dim3(encode_threads), 0, stream},
                  subtract_lists, a);
}

extern "C" int bsw_device_saq_list_products(const struct bsw_saq_frame *frame,
                                            const float *projected, uint32_t num_rows,
                                            const struct bsw_device_list_products *products,
                                            bsw_stream stream)
{
    using namespace bsw;
    if (num_rows > INT32_MAX) return cudaErrorInvalidValue;
    if (num_rows == 0) return cudaSuccess;
    const product_arguments a = {*frame, *products, projected, num_rows};
    return launch({dim3(num_encode_blocks(num_rows)), dim3(encode_threads), 0, stream},
                  multiply_lists, a);
}
