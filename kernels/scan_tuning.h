// What scans are tuned by: a table per CPU level in scan_tuning_LEVEL.h, written by `bitsweep bench
// tune` and checked in.
#ifndef BITSWEEP_KERNELS_SCAN_TUNING_H
#define BITSWEEP_KERNELS_SCAN_TUNING_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/codes/code_layout.h"

struct bsw_scan_tuning {
    uint32_t dims, bits;          // padded dims and average bits the figures were measured at
    uint32_t matrix_from_queries; // from here on matrix_scan beats plane_scan; UINT32_MAX: never
    uint32_t tile_kib;            // of document bytes that matrix_scan unpacks at a time
    // A staged matrix scan costs, for 16 rows and a query, in dimensions of the full scan's
    // product: the stage's dims + stage_overhead, and where it goes on finish_factor a further
    // dimension.
    float stage_overhead, finish_factor;
};

// A row of a level's table: what depends on dims alone is there once.
#define BSW_TUNING_MAX_BITS 8
struct bsw_scan_tuning_row {
    uint32_t dims, tile_kib;
    float stage_overhead, finish_factor;
    uint32_t matrix_from_queries[BSW_TUNING_MAX_BITS]; // of the table's numbers of bits
};

// What the level's table has for the numbers of bits and of dims nearest to the layout's, by ratio.
struct bsw_scan_tuning bsw_scan_tuning_of(enum bsw_cpu_level level,
                                          const struct bsw_code_layout *layout);

#endif
