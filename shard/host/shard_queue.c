// SPDX-License-Identifier: Apache-2.0
#include "shard/host/shard_queue.h"

size_t bsw_queue_classes(uint64_t num_rows, uint64_t items, struct bsw_thread_class classes[3])
{
    uint64_t block_rows = items * BSW_QUEUE_THREADS, left = num_rows % block_rows;
    uint64_t whole = left / BSW_QUEUE_THREADS, more = left % BSW_QUEUE_THREADS;
    const struct bsw_thread_class all[3] = {{num_rows / block_rows * BSW_QUEUE_THREADS, items},
                                            {more, whole + 1},
                                            {BSW_QUEUE_THREADS - more, whole}};
    size_t count = 0;
    for (size_t c = 0; c < 3; c++) {
        if (all[c].num_threads > 0 && all[c].num_items > 0) classes[count++] = all[c];
    }
    return count;
}
