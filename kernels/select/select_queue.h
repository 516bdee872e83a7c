// SPDX-License-Identifier: Apache-2.0
// queue_insert of select.h for the vector levels. Candidates come in runs of consecutive rows, so
// eight of them go to eight threads side by side, by the level's put_lanes; gaps (rows masked out)
// and runs that wrap round a stripe's end go one by one.
#ifndef BITSWEEP_KERNELS_SELECT_QUEUE_H
#define BITSWEEP_KERNELS_SELECT_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes/metric.h"
#include "kernels/select/select.h"

#define BSW_QUEUE_LANES 8

static inline void bsw_queue_put_one(uint64_t value, size_t queue_length, uint64_t *queues)
{
    uint64_t *place = queues + bsw_candidate_row(value) % BSW_QUEUE_THREADS;
    for (size_t slot = 0; slot < queue_length; slot++, place += BSW_QUEUE_THREADS) {
        uint64_t other = *place;
        *place = value > other ? value : other;
        value = value > other ? other : value;
    }
}

// Eight candidates into the queues of eight threads, the first of them at `queues`: of each pair
// the better stays, the other sinks on.
typedef void bsw_queue_put_lanes_fn(const uint64_t *candidates, size_t queue_length,
                                    uint64_t *queues);

static inline void bsw_queue_insert(const uint64_t *candidates, size_t n, size_t queue_length,
                                    uint64_t *queues, bsw_queue_put_lanes_fn *put_lanes)
{
    size_t i = 0;
    while (i < n) {
        size_t y = bsw_candidate_row(candidates[i]) % BSW_QUEUE_THREADS;
        // Rows ascend, so the eighth tells whether those between are there.
        if (i + BSW_QUEUE_LANES <= n && y + BSW_QUEUE_LANES <= BSW_QUEUE_THREADS &&
            bsw_candidate_row(candidates[i + BSW_QUEUE_LANES - 1]) ==
                bsw_candidate_row(candidates[i]) + BSW_QUEUE_LANES - 1) {
            put_lanes(candidates + i, queue_length, queues + y);
            i += BSW_QUEUE_LANES;
        } else {
            bsw_queue_put_one(candidates[i++], queue_length, queues);
        }
    }
}

#endif
