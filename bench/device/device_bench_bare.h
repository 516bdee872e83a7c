// SPDX-License-Identifier: Apache-2.0
// A scan's kernel alone: launches over all bundles, one for each batch of queries, which append to
// lists as they are.
#ifndef BITSWEEP_BENCH_DEVICE_BENCH_BARE_H
#define BITSWEEP_BENCH_DEVICE_BENCH_BARE_H

#include "bench/device/device_bench.h"
#include "kernels/device_scan/device_list_scan.h"

struct device_bench_bare {
    struct device_bench *bench;
    const struct device_bench_shape *shape;
    struct bsw_device_codes codes;
    struct bsw_device_buffer memory;
    struct bsw_device_queries queries;
    struct bsw_device_lists lists;
    struct bsw_device_list_work work; // where the shape has lists
    uint32_t *numbers;                // host: counts, which are 0, then limits
    size_t num_launches;
};

// capacity: of a query's list; limits [queries of a batch], NULL: nothing reaches them.
enum bsw_status device_bench_bare_open(struct device_bench *bench,
                                       const struct device_bench_shape *shape, uint64_t num_rows,
                                       const struct device_bench_queries *queries,
                                       uint32_t capacity, const uint32_t *limits,
                                       struct device_bench_bare *out, struct bsw_error *err);
void device_bench_bare_close(struct device_bench_bare *bare);
// Both are device_bench_work_fn: empty lists; all launches.
enum bsw_status device_bench_bare_empty(void *bare, struct bsw_error *err);
enum bsw_status device_bench_bare_run(void *bare, struct bsw_error *err);

int device_bench_is_matrix(const struct device_bench_shape *shape,
                           const struct bsw_code_layout *layout);

#endif
