// SPDX-License-Identifier: Apache-2.0
// Which of many rows are copies of others: of the same numbers, and under cosine also multiples of
// each other, as far as float32 shows it. A table of recalls counts such a row once: copies of a
// placeholder all have one list, and all find each other there.
#ifndef BITSWEEP_COORDINATOR_DIFFERENT_ROWS_H
#define BITSWEEP_COORDINATOR_DIFFERENT_ROWS_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"

// The rows that came. By 64 bits of each: of a million different rows two are taken for copies
// with a chance of 1 in 30 million.
struct bsw_different_rows {
    enum bsw_metric metric;
    enum bsw_cpu_level level;
    uint32_t dims;
    float *floats;   // of a row
    int32_t *coarse; // its direction
    uint64_t *slots; // digests by open addressing; 0: free
    uint64_t mask;   // slots less one, at least half of which stay free
};

// most: rows that will be added. deinit also after an error; it accepts {0}.
enum bsw_status bsw_different_rows_init(struct bsw_different_rows *rows, enum bsw_metric metric,
                                        enum bsw_cpu_level level, uint32_t dims, uint64_t most,
                                        struct bsw_error *err);
void bsw_different_rows_deinit(struct bsw_different_rows *rows);

// 1: added, unlike all before. 0: a copy of one that was added, or no good row.
int bsw_different_rows_add(struct bsw_different_rows *rows, enum bsw_vector_type type,
                           const void *numbers);

// is_copy[i]: of a file of queries, whether its i-th is a copy of one before. Owned by the caller;
// num_different: how many are not.
enum bsw_status bsw_find_copies(const char *queries, enum bsw_metric metric,
                                enum bsw_cpu_level level, unsigned char **is_copy,
                                uint64_t *num_different, struct bsw_error *err);

#endif
