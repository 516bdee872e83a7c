// Exact near neighbours of rows among themselves: pairs to learn from when there is a corpus alone.
#ifndef BITSWEEP_COORDINATOR_RBE_NEIGHBOURS_H
#define BITSWEEP_COORDINATOR_RBE_NEIGHBOURS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/codes/metric.h"
#include "common/net/transport.h"
#include "common/rows/vectors.h"

struct bsw_neighbour_search {
    const bsw_vectors *vectors;
    const uint64_t *rows; // [num_rows] of the source, ascending
    size_t num_rows;
    enum bsw_metric metric;
    size_t num_neighbours; // below num_rows
    enum bsw_cpu_level level;
    int is_shown; // progress on stderr
};

// neighbours [num_rows][num_neighbours]: places in `rows`, best first, ties by the smaller place,
// the row itself left out. Values are those of kernels/exact. Ranks share the work and all get the
// whole. A bad row (NaN, Inf, zero under cosine) is BSW_ERROR_BAD_DATA. Called by all ranks; ends
// with an agreement. Cost: num_rows^2 * dims fused multiply-adds in float64.
enum bsw_status bsw_find_neighbours(const struct bsw_neighbour_search *search,
                                    struct bsw_transport *transport, uint64_t *neighbours,
                                    struct bsw_error *err);

#endif
