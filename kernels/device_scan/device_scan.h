// SPDX-License-Identifier: Apache-2.0
// device_scan: scan and selection on a GPU, fused: codes and queries in device memory, candidates
// out, no array of distances.
//
// The same keys as plane_scan and select give (kernels/plane_scan/plane_scan.h,
// kernels/select/select.h), so the same candidates as on a CPU. A segment of bundles is scanned for
// all queries of a batch with limits fixed for the launch; rows that reach a query's limit are
// appended to its list in any order; `cut` then keeps the best and raises the limit to one above
// the worst kept (rows of later segments are larger, so they lose ties). Lists are sorted at the
// end: the answer does not depend on the order of appends.
//
// A launcher checks what it is given, queues its kernels on the stream and returns at once; it does
// not allocate, and fails (CUDA's error code, 0 is success) only where a launch was refused:
// cudaErrorInvalidValue for numbers out of range. All pointers in these structs are device
// pointers, but for the structs themselves and arrays inside struct bsw_code_layout. Errors while a
// kernel runs surface at the next synchronisation, as CUDA has it.
//
// Compiled by nvcc, or as C++ for the emulator of tests/emulation; C linkage.
#ifndef BITSWEEP_KERNELS_DEVICE_SCAN_H
#define BITSWEEP_KERNELS_DEVICE_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/device_call.h"
#include "common/codes/code_layout.h"

BSW_C_BEGIN

// Codes of a run of bundles; planes[s]: [num_bundles][bits][words][32], 128-byte aligned.
struct bsw_device_codes {
    struct bsw_code_layout layout;
    const uint32_t *planes[BSW_MAX_SEGMENTS];
    const uint16_t *scales; // [num_bundles * 32] IEEE half, 16-byte aligned; NULL: integer keys
    const float *biases;    // [num_bundles * 32], 16-byte aligned; NULL: integer keys
    const uint32_t *masks;  // [num_bundles]
    uint32_t num_bundles;
    uint32_t first_row;    // of bundle 0, lane 0: candidates' rows count from there
    const uint16_t *tails; // [num_bundles * 32] IEEE half >= 0, 16-byte aligned; for the
                           // progressive scan, else NULL
    // Where planes are bytes (kernels/gpu_bytes): [num_bundles * 32], 16-byte aligned; else NULL.
    const int32_t *offsets;
};

// components: 16-byte aligned. Device order is what unpacking a document's planes gives cheapest:
// of every 32 padded dimensions, place 4*r + j (r 0 .. 7, j 0 .. 3) holds dimension 8*j + r.
// Padding is 0.
struct bsw_device_queries {
    uint32_t num_queries;
    uint32_t query_bits;
    uint32_t query_words;
    const uint32_t *words;    // [num_queries][query_words], as struct bsw_query_batch
    const int8_t *components; // [num_queries][padded_dims] in device order; for the matrix scan
    const int32_t *constants; // [num_queries]: sum over dimensions of (2^B - 1) * q; likewise
    const float *scales;      // [num_queries]; NULL: integer keys
};

// The first stage of a progressive scan: what the leading dimensions say of a row at most. The rest
// of a key is at most reach * tail. Arrays [num_queries].
struct bsw_device_stage {
    uint32_t dims;            // padded: a multiple of 32, 32 .. padded_dims - 32
    const int32_t *constants; // sum over the stage's dimensions of (2^B - 1) * q
    const float *reaches;     // >= 0; infinity: nothing is known
    uint64_t *survivors;      // one number: added to
};

// rbeGIR's queues (shard/host/shard_queue.h, kernels/select/select.h): row z is kept by thread
// z mod BSW_QUEUE_THREADS of block z / (BSW_QUEUE_THREADS * items). Blocks first_block ..
// first_block + num_blocks - 1 have room.
struct bsw_device_row_queues {
    uint64_t *slots; // [num_queries][num_blocks][length][BSW_QUEUE_THREADS]: the best of a thread
                     // first, 0: empty; NULL: there are no queues
    uint32_t items, length; // >= 1
    uint32_t first_block, num_blocks;
};

// Candidate lists of a batch: packed as in common/codes/result_order.h.
struct bsw_device_lists {
    uint32_t num_queries;
    uint32_t capacity;
    uint64_t *items;  // [num_queries][capacity]
    uint32_t *counts; // [num_queries]: may pass capacity, then items beyond were not written
    uint32_t *limits; // [num_queries], inclusive scores
    struct bsw_device_row_queues queues;
    uint32_t *overflowed; // one number, to which selection adds bits (gpu_select.h); NULL: there is
                          // none
    uint32_t is_unordered; // 1: rows of later segments may be smaller, so that cut's limit is the
                           // worst score kept, and not one above
    // For limits by rank (gpu_select.h); NULL: there are none.
    uint32_t *raised; // [num_queries], 1: the limit may be above the keep-th best
    uint64_t *hits;   // one number: items that lists had, but for a first sample's
};

// The bundles first, first + step, first + 2 * step ... below last; first <= last <= num_bundles,
// step >= 1.
struct bsw_device_part {
    uint32_t first, last, step;
};

// Appends every row of the part whose mask bit is 1 and whose score reaches its query's limit.
// counts beyond capacity tell of an overflow: the caller restores counts and scans smaller parts;
// items within the capacity are whole, and what stood in front of them is untouched. No rows or no
// queries: nothing is done. capacity and rows of the part together stay below 2^32. The layout has
// passed bsw_code_layout_check.
// With queues those rows go there instead, each to its thread, which keeps its best `length` of all
// that it was given since it was empty, whatever their order; items and counts are not touched.
// Every row of the part belongs to a block that has room.
// By kernels of scan_kernels.h that fit, as device_tuning.h says: planes by mma of bits or by XOR
// and popcount, matrix by int8 products; the same candidates.
BSW_DEVICE_CALL int bsw_device_plane_scan(const struct bsw_device_codes *codes,
                                          const struct bsw_device_part *part,
                                          const struct bsw_device_queries *queries,
                                          const struct bsw_device_lists *lists, bsw_stream stream);
BSW_DEVICE_CALL int bsw_device_matrix_scan(const struct bsw_device_codes *codes,
                                           const struct bsw_device_part *part,
                                           const struct bsw_device_queries *queries,
                                           const struct bsw_device_lists *lists, bsw_stream stream);

// Whether so many queries take the matrix scan, where it may be chosen: from the tuning's
// matrix_from_queries on. Fewer, too, where the plane scan would count bits and the matrix scan
// would unpack documents in registers; but not where the tuning never takes it.
BSW_DEVICE_CALL int bsw_device_takes_matrix(const struct bsw_code_layout *layout,
                                            uint32_t query_bits, uint32_t num_queries);

// All queues empty.
BSW_DEVICE_CALL int bsw_device_row_queues_clear(const struct bsw_device_lists *lists,
                                                bsw_stream stream);

// What the first num_blocks blocks that have room keep, appended to the lists; those are empty
// then.
BSW_DEVICE_CALL int bsw_device_row_queues_take(const struct bsw_device_lists *lists,
                                               uint32_t num_blocks, bsw_stream stream);

// The candidates of the two others, for float keys and without queues: pairs of row and query whose
// bound after the stage falls short of the query's limit are not looked at further; those that went
// on are added to stage->survivors. Pays where nearly all pairs stop; with limits of 0 all go on,
// one at a time. Wants bsw_device_stage_fits, and a Hopper GPU (sm_90a): cudaErrorInvalidValue
// where bsw_device_has_hopper_stage is 0, as the current device is another one, the build has no
// code for it, or the stage is more than eight slices of up to 128 dimensions of one segment; and
// where codes or tails are not aligned to 16 bytes.
BSW_DEVICE_CALL int bsw_device_has_hopper_stage(const struct bsw_code_layout *layout,
                                                uint32_t stage_dims);
BSW_DEVICE_CALL int bsw_device_progressive_scan_hopper(const struct bsw_device_codes *codes,
                                                       const struct bsw_device_stage *stage,
                                                       const struct bsw_device_part *part,
                                                       const struct bsw_device_queries *queries,
                                                       const struct bsw_device_lists *lists,
                                                       bsw_stream stream);

// Dots of 2^21 and more have no place in the bound's arithmetic.
static inline int bsw_device_stage_fits(const struct bsw_code_layout *layout, uint32_t query_bits)
{
    return bsw_layout_dot_limit(layout, query_bits) < 1 << 21;
}

// Constants and reaches of a stage of stage_dims from what bsw_device_unpack_queries gives, as
// bsw_scan_stage_init of shard/host/scan_stage.h. tail_unit: of a tail, in units of a row's scale.
BSW_DEVICE_CALL int bsw_device_stage_queries(const struct bsw_code_layout *layout,
                                             uint32_t stage_dims, double tail_unit,
                                             const struct bsw_device_queries *queries,
                                             int32_t *constants, float *reaches, bsw_stream stream);

// Query planes to components, in device order, and constants, as unpack_query of
// kernels/matrix_scan. query_words: from a query to the next, more where the layout has the first
// segments alone.
BSW_DEVICE_CALL int bsw_device_unpack_queries(const struct bsw_code_layout *layout,
                                              uint32_t num_queries, uint32_t query_bits,
                                              uint32_t query_words, const uint32_t *words,
                                              int8_t *components, int32_t *constants,
                                              bsw_stream stream);

BSW_C_END
#endif
