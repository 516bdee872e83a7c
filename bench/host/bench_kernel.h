// SPDX-License-Identifier: Apache-2.0
// What bench kernels measures: a kernel of one family on made-up input in memory, tile after tile
// as a search or an encoding goes through it, and the same tiles by the plain reference.
#ifndef BITSWEEP_BENCH_BENCH_KERNEL_H
#define BITSWEEP_BENCH_BENCH_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/codes/code_layout.h"
#include "common/codes/metric.h"

#define BSW_KERNEL_MAX_ARRAYS (BSW_MAX_SEGMENTS + 24)

// No padding: gcc 12 with -ftrivial-auto-var-init, told to clear padding behind an array of structs
// in a variable with an initializer, clears a part of the array instead.
struct bsw_kernel_shape {
    size_t rows; // a multiple of BSW_BUNDLE_ROWS
    size_t queries;
    struct bsw_code_layout layout;
    enum bsw_cpu_level level;
    uint32_t query_bits;
    enum bsw_metric metric;
};
// What a kernel's rate is a share of; measured beside it.
enum bsw_kernel_limit {
    BSW_LIMIT_READ, // reading as many bytes
    BSW_LIMIT_COPY, // copying: as many bytes read and written together
    BSW_LIMIT_INT8, // multiply-adds in registers
    BSW_LIMIT_FLOAT32,
    BSW_NUM_LIMITS
};

// What a tile gives: num_lists lists of at most list_values values; a list that is always full has
// that many.
struct bsw_kernel_output {
    size_t num_lists, list_values, value_bytes;
    unsigned char *values; // [num_lists][list_values][value_bytes], 64-byte aligned
    size_t *counts;        // [num_lists]
};

// A kernel on its input. make fills it.
struct bsw_kernel_run {
    int variant; // of the case, set before
    void *input;
    void *arrays[BSW_KERNEL_MAX_ARRAYS]; // from bsw_kernel_allocate; the driver frees them
    size_t num_arrays;
    size_t num_tiles; // 0: the shape has no such kernel
    // Tile `tile` by the functions of `level`, every value and count of the output set.
    void (*run_tile)(void *input, enum bsw_cpu_level level, size_t tile,
                     struct bsw_kernel_output *output);
    size_t num_lists, list_values, value_bytes; // of the output
    // Work of all tiles; 0: not counted. Operations: what bench/README.md says of the family.
    double bytes, operations;
    size_t queries; // 0: none
};

// Zeroed memory of a run's input (a bsw_scan_case_allocate_fn).
enum bsw_status bsw_kernel_allocate(void *run, void *out, size_t count, size_t size,
                                    struct bsw_error *err);

struct bsw_kernel_case {
    const char *family, *name;
    enum bsw_kernel_limit limit;
    int variant; // what else tells cases with the same make apart
    enum bsw_status (*make)(const struct bsw_kernel_shape *shape, struct bsw_kernel_run *out,
                            struct bsw_error *err);
};

// Each list ends with {NULL}.
extern const struct bsw_kernel_case bsw_kernel_scans[];   // plane_scan, matrix_scan, select
extern const struct bsw_kernel_case bsw_kernel_codings[]; // encode
extern const struct bsw_kernel_case
    bsw_kernel_values[]; // exact, refine, screen, merge, keep_best of select
extern const struct bsw_kernel_case bsw_kernel_entries[]; // entries_within
extern const struct bsw_kernel_case bsw_kernel_tables[];  // table_scan and table_bounds

// Values of a tile that differ from the reference's, and those that only one of them has.
uint64_t bsw_kernel_count_wrong(const struct bsw_kernel_output *reference,
                                const struct bsw_kernel_output *found);

#endif
