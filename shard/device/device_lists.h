// SPDX-License-Identifier: Apache-2.0
// Candidate lists of a group of queries on a device, filled by scanning bundles of rows in
// segments, whatever the scan is.
//
// Where there are many more bundles than a list holds, every n-th of them is scanned first: the
// keep-th best of a sample is a limit that all of the best reach, so nothing need be repaired, and
// the data may lie in any order. Then all rows are scanned, ascending. Of n rows about keep * n / s
// reach a limit that is the keep-th best of s, so a segment is as long as leaves room in the lists
// for that many and eight standard deviations more: one query over 10^9 rows takes a sample and
// three or four segments.
//
// Where nothing else decides between them, all of it is queued ahead and the host waits once:
// limits by rank from one or two samples, a scan of everything by them, and a last step that sorts
// (device_levels.h); or where lists are too short for that, segments and cuts, as long as they may
// be if all lists are full. Only if a list overflowed then, or too few rows reached a limit, or
// where the host has to look in between, the scan goes step by step: after a segment it looks at
// the counts; if a list overflowed, all counts are put back and half the segment is tried; else
// `cut` keeps the best and raises the limits. No order of rows makes a list overflow for good: half
// of a segment is one bundle in the end, and that always fits.
#ifndef BITSWEEP_SHARD_DEVICE_LISTS_H
#define BITSWEEP_SHARD_DEVICE_LISTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/device/device_blocks.h"
#include "kernels/device_exact/device_exact.h"
#include "kernels/gpu_select/gpu_select.h"
#include "shard/device/device_levels.h"

// The most of a launch: its rows and a list's capacity together stay below 2^32, as the kernels
// want.
#define BSW_MOST_SEGMENT_BUNDLES ((size_t)1 << 26)

// Queues a scan of the part's rows on the run's queue that appends to `lists` (or to the exact ones
// of the run), as bsw_device_plane_scan does.
typedef enum bsw_status (*bsw_device_scan_fn)(void *context, const struct bsw_device_part *part,
                                              const struct bsw_device_lists *lists,
                                              struct bsw_error *err);

struct bsw_device_list_run {
    bsw_device *device;               // borrowed
    enum bsw_device_queue queue;      // all of it is there; BSW_QUEUE_SCAN unless it is said
    struct bsw_device_blocks *blocks; // borrowed: what lists travel through
    struct bsw_device_lists lists;
    // Lists of exact scores instead: then of `lists` num_queries, capacity and counts are theirs.
    const struct bsw_device_exact_lists *exact; // borrowed, or NULL
    size_t keep;                                // 1 .. capacity - 32
    uint32_t *counts;  // host, [num_queries], borrowed: of the lists after the last segment
    uint32_t *fetched; // host, borrowed: what downloads go to; bsw_device_lists_numbers of them
    // Where queue_ahead brings the answers besides: device memory for as many, and host memory
    // that stays in place. Borrowed; NULL: nowhere.
    uint64_t *d_answers, *answers; // [num_queries][keep]
    // Since it began:
    size_t seen;      // rows, of which about `keep` reach the limits, or fewer
    size_t most;      // items of the longest list
    size_t allowed;   // bundles of the next segment, fewer after an overflow
    size_t done;      // bundles
    uint64_t scanned; // bundles, with the sample and those that overflowed
    uint64_t num_samples, num_segments, num_overflows, num_waits;
    uint64_t num_shorts; // passes done again since too few rows reached a limit by rank
    uint64_t hits;       // of passes by levels: what lists had, but for their first level's
    int is_sorted;       // the lists, by queue_ahead
};

// Before the first bundle; counts on host and device are 0.
void bsw_device_list_run_begin(struct bsw_device_list_run *run);

// Bundles 0 .. num_bundles - 1 of what `scan` knows by these numbers; they follow those done so
// far. The first limits come from a sample of the first bundles that are given. When it returns all
// scans are over, and the counts on the host become those on the device once work queued is
// done.
enum bsw_status bsw_device_list_run_scan(struct bsw_device_list_run *run, size_t num_bundles,
                                         bsw_device_scan_fn scan, void *context,
                                         struct bsw_error *err);

// Parts 0 .. num_parts - 1 of what `scan` knows by these numbers, whatever they are, as long as
// each finds no more rows of a query than a list has room for beside `keep`: all at once, or where
// that overflows half, then a quarter. Without a sample.
enum bsw_status bsw_device_list_run_parts(struct bsw_device_list_run *run, size_t num_parts,
                                          bsw_device_scan_fn scan, void *context,
                                          struct bsw_error *err);

// The same for all bundles of a shard at once, in two steps: queue returns before they are scanned,
// end waits; between them nothing else of the run, and the counts on the host are of no use.
// lists.overflowed is the number behind counts, 0. By levels (device_levels.h) where lists.raised,
// 0 for each query, and lists.hits are there and that is quicker; then the lists are sorted.
// *is_whole: 0 where a list was too short, or a limit too high: nothing of what it holds is of use,
// and the run has to begin again, limits included. Not of exact lists.
enum bsw_status bsw_device_list_run_queue_ahead(struct bsw_device_list_run *run, size_t num_bundles,
                                                bsw_device_scan_fn scan, void *context,
                                                struct bsw_error *err);
enum bsw_status bsw_device_list_run_end_ahead(struct bsw_device_list_run *run, int *is_whole,
                                              struct bsw_error *err);

// Queues that the lists are brought into the total order. scratch: device memory for
// bsw_device_sort. Not of exact lists.
enum bsw_status bsw_device_list_run_sort(struct bsw_device_list_run *run, void *scratch,
                                         struct bsw_error *err);

// Sorted lists to host memory: list q at items + q * keep; counts are those of the run.
enum bsw_status bsw_device_list_run_fetch(struct bsw_device_list_run *run, uint64_t *items,
                                          struct bsw_error *err);

// Exact lists, in any order, to host memory: list q at scores + q * keep and rows + q * keep.
enum bsw_status bsw_device_list_run_fetch_exact(struct bsw_device_list_run *run, uint64_t *scores,
                                                uint32_t *rows, struct bsw_error *err);

#endif
