// SPDX-License-Identifier: Apache-2.0
// What scans are tuned by: tables by CPU level and CPU, measured by `bitsweep bench tune`. Those in
// kernels/tuning/scan_tuning.txt are in the program. A CPU that has none takes the first of its
// vendor, else the first of the level; a user's file goes before them all, and may hold rows of
// GPUs too (device_scan/device_tuning.h). They decide about time, never about answers.
#ifndef BITSWEEP_KERNELS_SCAN_TUNING_H
#define BITSWEEP_KERNELS_SCAN_TUNING_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/codes/code_layout.h"

#define BSW_TUNING_MAX_TABLES     64 // of a file
#define BSW_TUNING_MAX_FILE_BYTES (1 << 20)

struct bsw_scan_tuning {
    uint32_t dims, bits;          // padded dims and average bits the figures were measured at
    uint32_t matrix_from_queries; // from here on matrix_scan beats plane_scan; UINT32_MAX: never
    uint32_t tile_kib;            // of document bytes that matrix_scan unpacks at a time
    // A staged matrix scan costs, for 16 rows and a query, in dimensions of the full scan's
    // product: the stage's dims + stage_overhead, and where it goes on finish_factor a further
    // dimension.
    float stage_overhead, finish_factor;
};

// A row of a table: what depends on dims alone is there once.
#define BSW_TUNING_STANDARD_LEVEL BSW_CPU_AVX512
#define BSW_TUNING_MAX_BITS       8
#define BSW_TUNING_MAX_ROWS       8
struct bsw_scan_tuning_row {
    uint32_t dims, tile_kib;
    float stage_overhead, finish_factor;
    uint32_t matrix_from_queries[BSW_TUNING_MAX_BITS]; // of the table's numbers of bits
};

// What was measured of a level on a CPU.
struct bsw_scan_tuning_table {
    enum bsw_cpu_level level;
    struct bsw_cpu_identity cpu;
    uint32_t bits[BSW_TUNING_MAX_BITS];
    size_t num_bits, num_rows; // >= 1
    struct bsw_scan_tuning_row rows[BSW_TUNING_MAX_ROWS];
};

// Tables of a text in the form of kernels/tuning/scan_tuning.txt, at most max_tables. Else
// BSW_ERROR_BAD_DATA, which names the line. Tables of levels that this build does not know are left
// out, and so are lines of GPUs.
enum bsw_status bsw_scan_tuning_parse(const char *name, const char *text,
                                      struct bsw_scan_tuning_table *tables, size_t max_tables,
                                      size_t *num_tables, struct bsw_error *err);

// Takes a user's file, GPUs' rows included, for all calls that follow. Before other threads ask.
enum bsw_status bsw_scan_tuning_read(const char *path, struct bsw_error *err);
// The file that BITSWEEP_TUNING in the environment names, if it does.
enum bsw_status bsw_scan_tuning_read_named(struct bsw_error *err);

// What the tables have for this CPU, and for the numbers of bits and of dims nearest to the
// layout's, by ratio. Thread-safe.
struct bsw_scan_tuning bsw_scan_tuning_of(enum bsw_cpu_level level,
                                          const struct bsw_code_layout *layout);

// The same of the program's first table for AVX-512, on every machine: for what is written into an
// index.
struct bsw_scan_tuning bsw_scan_tuning_standard(const struct bsw_code_layout *layout);

// The tables that are in the program.
const struct bsw_scan_tuning_table *bsw_scan_tuning_built_in(size_t *num_tables);

#endif
