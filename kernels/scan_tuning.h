// What scans are tuned by: a table per CPU level in scan_tuning_LEVEL.h, written by `bitsweep bench
// tune` and checked in.
#ifndef BITSWEEP_KERNELS_SCAN_TUNING_H
#define BITSWEEP_KERNELS_SCAN_TUNING_H

#include <stdint.h>

#include "common/code_layout.h"
#include "common/cpu_level.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bsw_scan_tuning {
    uint32_t dims, bits;          // padded dims and average bits the figures were measured at
    uint32_t matrix_from_queries; // from here on matrix_scan beats plane_scan; UINT32_MAX: never
    uint32_t tile_kib;            // of document bytes that matrix_scan unpacks at a time
    // A staged matrix scan costs, for 16 rows and a query, in dimensions of the full scan's
    // product: the stage's dims + stage_overhead, and where it goes on finish_factor a further
    // dimension.
    float stage_overhead, finish_factor;
};

// The row of the level's table nearest to the layout: bits first, then dims (both by ratio).
struct bsw_scan_tuning bsw_scan_tuning_of(enum bsw_cpu_level level,
                                          const struct bsw_code_layout *layout);

#ifdef __cplusplus
}
#endif
#endif
