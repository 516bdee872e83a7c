// SPDX-License-Identifier: Apache-2.0
// rbeGIR's selection over a resident shard (RBE, Algorithm 1), in place of thresholds.
//
// A shard's rows are divided among threads as the paper divides them on a GPU: thread y of block x
// takes rows z = x * T_b * I + y + i * T_b, i = 0 .. I - 1, T_b = BSW_QUEUE_THREADS, and keeps its
// best Q in the total order; rows beyond the shard and dropped ones do not count. What all threads
// keep is the shard's answer, cut to the best `keep`. So the answer follows the shard's cut, I and
// Q, and nothing else: CPU threads take blocks and queries in any order.
//
// Every key is computed and looked at: no limits, no stages. A tile's candidates stay in the
// second cache on their way to the queues.
#ifndef BITSWEEP_SHARD_SHARD_QUEUE_H
#define BITSWEEP_SHARD_SHARD_QUEUE_H

#include "common/base/c_linkage.h"
#include "common/base/memory.h"
#include "common/base/miss_probability.h"
#include "kernels/select/select.h"
#include "shard/codecs/query_batch.h"

BSW_C_BEGIN

// The threads of a shard that have rows, by how many they have, most first; returns how many
// classes there are (1 .. 3).
size_t bsw_queue_classes(uint64_t num_rows, uint64_t items, struct bsw_thread_class classes[3]);

BSW_C_END
#endif
