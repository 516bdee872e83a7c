// SPDX-License-Identifier: Apache-2.0
// select: from the integers of a scanned tile to the best candidates of a shard.
//
// `threshold`: rows whose score reaches a running limit are appended to a candidate buffer; when it
// fills, the best L are kept and the limit rises to one above the worst of them (rows come in
// ascending order, so a later row with an equal score loses the tie). For long scans a few rows in
// a thousand pass: the compare dominates, not the append. `histogram`: counts of integer distances,
// XFBQ Algorithm 1. `queue`: rbeGIR's local selection, RBE Algorithm 1.
//
// Candidates are packed as in common/codes/metric.h. Nothing here can fail or allocate.
// Thread-safe.
#ifndef BITSWEEP_KERNELS_SELECT_H
#define BITSWEEP_KERNELS_SELECT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "kernels/kernel_table.h"

BSW_C_BEGIN

// T_b of RBE Algorithm 1: threads of a block, each with a queue. Row z belongs to thread z mod T_b
// of its block.
#define BSW_QUEUE_THREADS 256

struct bsw_select_table {
    const char *level;

    // Integer keys (plain codes): score = bsw_score_from_integer(dot). Appends
    // bsw_candidate_pack(score, row) for every row r of the tile whose mask bit is 1 and whose
    // score >= limit, in ascending row order; returns how many. dots [num_bundles*32], 64-byte
    // aligned; masks [num_bundles], bit lane; row of lane l of bundle b is first_row + 32*b + l;
    // out has room for num_bundles*32.
    size_t (*filter_integer)(const int32_t *dots, const uint32_t *masks, size_t num_bundles,
                             uint32_t first_row, uint32_t limit, uint64_t *out);

    // Float keys: key = fmaf(query_scale, half_to_float(scales[r]) * (float)dot, biases[r]) + 0.0f,
    // each operation rounded to float32; score = bsw_score_from_float(key). Otherwise as above.
    // scales (IEEE half, finite, >= 0), biases [num_bundles*32], 64-byte aligned.
    size_t (*filter_affine)(const int32_t *dots, const uint16_t *scales, const float *biases,
                            float query_scale, const uint32_t *masks, size_t num_bundles,
                            uint32_t first_row, uint32_t limit, uint64_t *out);

    // The places (32*b + lane) of rows that a first stage cannot rule out, ascending: mask bit 1
    // and fmaf(query_scale, half_to_float(scales[r]) * (float)dot, fmaf(reach,
    // half_to_float(tails[r]), biases[r])) >= limit, each operation rounded to float32. Returns how
    // many. dots of the stage; tails IEEE half, 64-byte aligned, limit a float (-INFINITY: all
    // pass); places has room for num_bundles*32.
    size_t (*filter_reach)(const int32_t *dots, const uint16_t *scales, const float *biases,
                           const uint16_t *tails, float query_scale, float reach,
                           const uint32_t *masks, size_t num_bundles, float limit,
                           uint32_t *places);

    // filter_affine for the rows at num_places places alone (ascending), their mask bits not asked.
    size_t (*filter_places)(const int32_t *dots, const uint16_t *scales, const float *biases,
                            float query_scale, const uint32_t *places, size_t num_places,
                            uint32_t first_row, uint32_t limit, uint64_t *out);

    // Algorithm 1's p.insert for rows of one block: every candidate into the queue of its thread
    // y = row mod BSW_QUEUE_THREADS, which keeps its best queue_length >= 1 in the total order.
    // candidates [n], rows ascending (as filters append them), all distinct; queues
    // [queue_length][BSW_QUEUE_THREADS], the best of a thread first, 0: empty; read and written.
    void (*queue_insert)(const uint64_t *candidates, size_t n, size_t queue_length,
                         uint64_t *queues);

    // Moves the `keep` largest of n distinct candidates to the front, in any order; returns min(n,
    // keep). Expected linear time whatever the input (also sorted or nearly equal). scratch: room
    // for n.
    size_t (*keep_best)(uint64_t *candidates, size_t n, size_t keep, uint64_t *scratch);

    // The same for exact scores (common/codes/metric.h), which need not be distinct, with the
    // rows they belong to: of equal scores those that come earlier are kept. The kept stay in the
    // order they came in, so that ascending rows do. 1 <= keep <= n; returns the lowest score kept.
    // scratch: room for 2 * n.
    uint64_t (*keep_exact)(uint64_t *scores, uint32_t *rows, size_t n, size_t keep,
                           uint64_t *scratch);
};

BSW_KERNEL_LEVELS(select);

BSW_C_END
#endif
