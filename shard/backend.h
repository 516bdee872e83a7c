// SPDX-License-Identifier: Apache-2.0
// Where a rank's shards are scanned: a table of functions with two tenants, host (CPU cores,
// shard/host/) and device (a GPU, shard/device/). A function that a tenant does not need or cannot
// have is NULL; beside it stands why.
//
// A tenant's state and what it keeps for each shard are its own. Every shard is resident in host
// memory first; load gives it to the tenant, who may free what the host then no longer needs. A
// batch is begun, which waits for nothing, and ended. All tenants find the same bytes. One thread
// calls; tenants share work among their own.
#ifndef BITSWEEP_SHARD_BACKEND_H
#define BITSWEEP_SHARD_BACKEND_H

#include "common/base/c_linkage.h"
#include "common/base/cpu_level.h"
#include "common/device/device.h"
#include "common/files/index_manifest.h"
#include "common/files/shard_file.h"
#include "shard/codecs/query_batch.h"
#include "shard/codecs/selective_table.h"
#include "shard/lists/coarse_search.h"
#include "shard/scan/candidate_lists.h"
#include "shard/scan/row_mask.h"

BSW_C_BEGIN

struct bsw_cut;
struct bsw_resident_shard;
struct bsw_scan_workspace;
struct bsw_survivor;

// Where cuts are found: by rank 0's CPU, by rank 0's device, or by the devices of all ranks, each
// for a part of the queries. Devices keep their candidates until then.
enum bsw_merge_place { BSW_MERGE_ON_HOST, BSW_MERGE_ON_DEVICE, BSW_MERGE_ON_ALL_DEVICES };

// Whether devices take the launches of a batch as one graph, where they can; AUTO: as their tuning
// says (device_tuning.h).
enum bsw_search_graphs { BSW_GRAPHS_AUTO, BSW_GRAPHS_ON, BSW_GRAPHS_OFF };

// What a search is, the same on every rank but for the device.
struct bsw_search_settings {
    uint32_t query_bits;
    uint64_t k;
    uint64_t keep;         // L, or --max-candidates with histogram selection; and exclude_self
    uint64_t exclude_self; // 1: the row whose id is the query's is left out of its answer
    int is_range;          // all rows within limits that come with a batch, `keep` at most; or
    int is_histogram;      // else threshold, or
    struct bsw_queue_options queue; // {0}: no queues
    uint64_t extra_distance;
    uint64_t most_candidates; // of a query, with is_range and is_histogram
    uint64_t histogram_k;     // rows that D_K is to reach, without exclude_self; 0: k
    int is_ladder;            // else gather; on the host alone
    enum bsw_merge_place merge_place;
    int is_exact; // refinement
    enum bsw_cpu_level level;
    enum bsw_scan_kind scan;
    enum bsw_table_type table;               // of codes that are scanned by tables
    struct bsw_selection_settings selection; // of entries of these tables
    struct bsw_probe_settings probe;         // of an index with lists; {0}: all of them
    double oversample;                       // what keep was made with
    double recall_calibrated; // of the entry of the index's table that was taken; 0: none
    int num_threads;
    bsw_device *device; // this rank's, borrowed: scans there; NULL: on the CPU
    size_t batch;       // most queries of a batch
    enum bsw_search_graphs graphs;
    int has_masks;  // of rows that may be found: a device keeps memory for them
    int is_partial; // shards that cannot be loaded may be left out
    int is_checked; // self_check.h; 0: no checks but those of a new device
};

// Whether all that is found of a query's only list is refined, whatever else is found.
static inline int bsw_all_found_survives(const struct bsw_search_settings *settings,
                                         uint32_t num_shards)
{
    return settings->is_exact && num_shards == 1 && settings->merge_place == BSW_MERGE_ON_HOST &&
           !settings->is_histogram;
}

// Survivors of such a list that can be in an answer: its best by exact value, but where a query's
// own row is among them, which is not known here.
static inline uint64_t bsw_most_survivors(const struct bsw_search_settings *settings)
{
    return settings->exclude_self || settings->k > settings->keep ? settings->keep : settings->k;
}

// A pass over all shards with its candidates and cuts. Histogram selection (XFBQ, Algorithm 1) has
// two: the K best rows, of which the last is at distance D_K, where the histogram of distances adds
// up to K; then all rows within D_K + extra. Other selections have the last alone.
struct bsw_scan_round {
    const uint32_t *limits; // [queries of the batch]: scores, inclusive; NULL: none
    size_t keep;
    int is_ladder;
};

static inline struct bsw_scan_round bsw_first_round(const struct bsw_search_settings *settings)
{
    uint64_t k = settings->histogram_k ? settings->histogram_k : settings->k;
    const struct bsw_scan_round round = {NULL, (size_t)(k + settings->exclude_self), 0};
    return round;
}

// Limits decide; of what is listed nothing travels before it is refined.
static inline struct bsw_scan_round bsw_range_round(const struct bsw_search_settings *settings,
                                                    const uint32_t *limits)
{
    const struct bsw_scan_round round = {limits, (size_t)settings->keep, 1};
    return round;
}

static inline struct bsw_scan_round bsw_last_round(const struct bsw_search_settings *settings,
                                                   const uint32_t *limits)
{
    const struct bsw_scan_round round = {limits, (size_t)settings->keep, settings->is_ladder};
    return round;
}

// Shards [first, first + num) of a rank, one behind the other in the index and of the same slice,
// with fewer than 2^32 rows together: a span, which is scanned as one (assignment.h).
struct bsw_shard_range {
    size_t first, num;
};

// What a tenant is opened for. All is borrowed; shapes and spans until the call returns.
struct bsw_backend_needs {
    const struct bsw_manifest *manifest;
    const struct bsw_search_settings *settings;
    const struct bsw_shard_shape *shapes; // [num_shards]: the rank's, in the order of load
    size_t num_shards;
    const struct bsw_shard_range *spans; // [num_spans]: in order, every shard in one
    size_t num_spans;
};

// Bytes that a rank's device will hold, and what goes through it.
struct bsw_memory_forecast {
    size_t code_bytes, query_bytes, block_bytes; // block_bytes: of both blocks
    size_t survivor_bytes;                       // buffers of refinement
    size_t kept_bytes;                           // candidates that stay for a merge
    size_t raw_bytes;                            // raw rows
    size_t list_bytes;                           // tables of work items, with lists
    size_t coarse_bytes;                         // centroids, and what their coarse step takes
    size_t book_bytes;                           // codebooks, and centroids for their tables
    size_t used_bytes;                           // all of these
    size_t streamed_bytes; // of codes that come from host memory for every group of queries
    size_t group_queries,
        list_items; // queries at a time, and candidates that a list of theirs holds
};

#define BSW_GRAPH_NOTE_BYTES 128

// What a tenant has counted since it was opened; 0 where it has nothing to count.
struct bsw_scan_counts {
    uint64_t num_samples, num_segments, num_overflows; // segments scanned, tries that overflowed
    uint64_t num_waits;                                // of the host for scans
    uint64_t num_refine_waits;                         // of the host for exact values
    uint64_t num_ahead;     // batches that were on it while the one before was refined
    uint64_t num_shorts;    // groups of queries scanned again: a limit by rank was too high
    uint64_t num_gpu_lists; // groups of queries whose lists and work items the device made
    uint64_t num_launches;  // kernels of batches, not of self-checks
    uint64_t num_hits;      // items that lists had in scans with limits by rank
    uint64_t num_graphs;    // groups of queries whose launches were one graph
    uint64_t copied_bytes;  // of codes, block by block
    uint64_t raw_bytes, gathered_bytes;    // raw rows that it has; those sent to it for refinement
    uint64_t num_allocations;              // since all shards were loaded
    char graph_note[BSW_GRAPH_NOTE_BYTES]; // why it launches no graphs any more; "" if it could
};

// One shard as a tenant has it.
struct bsw_backend_shard {
    struct bsw_resident_shard *resident; // in host memory; borrowed
    void *own;                           // the tenant's; NULL: nothing
    struct bsw_candidate_lists lists;    // found by the last scan; the owner frees them
};

// Queries [first_query, first_query + num_queries) of a batch.
struct bsw_query_range {
    const struct bsw_query_batch *batch;
    size_t first_query, num_queries;
};

// Sorted candidates of the last scan of a span that stay in device memory: list q is items
// [offsets[q], offsets[q + 1]).
struct bsw_kept_lists {
    const uint64_t *items;   // device
    const uint64_t *offsets; // host: [num_queries + 1]
    size_t num_queries;
};

// Survivors of lists: those of list q from number q * stride on, as many as the list has or
// `stride`, in ascending order of rows.
struct bsw_refined_lists {
    const struct bsw_survivor *survivors; // NULL: lists are not refined
    size_t stride;
};

// The best `keep` rows of each shard of a span, or at least what of the best of the span is there,
// for some queries. All that it points to stays as it is from begin to end.
struct bsw_scan_job {
    size_t span, first;                      // of the needs; `first`: of the shards
    struct bsw_backend_shard *const *shards; // [num_shards], in order of load
    size_t num_shards;
    const struct bsw_row_mask *masks; // [num_shards]: rows that may be found; NULL: all
    struct bsw_query_range queries;
    const struct bsw_list_choice *choice; // with lists: which; NULL: all queries look at all
    uint32_t scan_dims;                   // with lists: as struct bsw_probe_settings has them
    const uint32_t *limits;               // [queries]: scores, inclusive; NULL: none
    size_t keep;
    int is_continued; // items that stay are added to those of the job before, of other queries
    int is_of_places; // with lists: all places, which are taken for rows (known answers)
    int stays;        // items stay where a device merges them, lists of the first shard have counts
    int is_final;     // all that is found survives: it may be refined at once (`refined`)
    struct bsw_scan_workspace *workspace;
    uint64_t num_list_pairs;    // out: of query and list
    struct bsw_kept_lists kept; // out, where items stay; until the next scan of the span
    // out, of a final job, of which lists then have the counts alone; until the second scan that is
    // begun from now on.
    struct bsw_refined_lists refined;
};

// One tenant: forecast, take_coarse and take, which are about the memory of a device.
struct bsw_backend {
    // What open and load will take where free_bytes of device memory are free. Host: NULL, it takes
    // what codes take.
    enum bsw_status (*forecast)(const struct bsw_backend_needs *needs, size_t free_bytes,
                                struct bsw_memory_forecast *out, struct bsw_error *err);

    // Everything but the shards. On error nothing is left. close accepts NULL.
    enum bsw_status (*open)(const struct bsw_backend_needs *needs, void **state,
                            struct bsw_error *err);
    void (*close)(void *state);
    const char *(*label)(const void *state); // "cpu", "cuda:0"

    // Shard `index` of the needs, shard->resident set, which stays where it is; shard->own is made.
    // With the last one raw rows come, too, as far as there is room for them.
    enum bsw_status (*load)(void *state, size_t index, struct bsw_backend_shard *shard,
                            struct bsw_error *err);
    void (*unload)(void *state, struct bsw_backend_shard *shard);

    // Makes the coarse step of the search the tenant's, where it has room for that; until the
    // search or the tenant is closed. Host: NULL.
    enum bsw_status (*take_coarse)(void *state, struct bsw_coarse_search *search,
                                   struct bsw_error *err);

    // begin queues as much of the job as needs no wait, which may be nothing; end does the rest,
    // and fills in the lists of the job's shards. In between nothing else is begun, but what was
    // found before may be taken and refined. end also after an error of begin; with NULL the job is
    // of no use any more, and waited for.
    enum bsw_status (*begin)(void *state, const struct bsw_scan_job *job, struct bsw_error *err);
    enum bsw_status (*end)(void *state, struct bsw_scan_job *job, struct bsw_error *err);
    // What of items that stayed is within its query's cut, cuts [queries], to the lists of the
    // job's shards. Host: NULL, its items are there.
    enum bsw_status (*take)(void *state, const struct bsw_scan_job *job, const struct bsw_cut *cuts,
                            struct bsw_error *err);
    // The first counts[q] items of each list of the shard, as bsw_shard_refine of
    // shard/host/shard_scan.h.
    enum bsw_status (*refine)(void *state, const struct bsw_backend_shard *shard,
                              const struct bsw_query_range *queries, const size_t *counts,
                              struct bsw_scan_workspace *workspace, struct bsw_survivor *out,
                              struct bsw_error *err);

    // For self-checks. Codes of a place as scans read them: *row of *out, which may be a shard of
    // one bundle and is good until the next call.
    enum bsw_status (*fetch)(void *state, const struct bsw_backend_shard *shard, uint32_t place,
                             struct bsw_resident_shard *out, uint32_t *row, struct bsw_error *err);
    // Blocks of the shard's file from *next on against their digests, as far as the tenant has them
    // in memory of its own: as many as one check between batches takes. *next: where it goes on; 0:
    // that was the end. next NULL: all of them.
    enum bsw_status (*check)(void *state, const struct bsw_backend_shard *shard, uint32_t *next,
                             struct bsw_error *err);

    // To be read, or put back after scans that are not to count.
    struct bsw_scan_counts *(*counts)(void *state);
};

extern const struct bsw_backend bsw_host_backend, bsw_device_backend;

// The only choice there is. No device can be open in a build without any.
static inline const struct bsw_backend *bsw_backend_of(const struct bsw_search_settings *settings)
{
    return settings->device ? &bsw_device_backend : &bsw_host_backend;
}

BSW_C_END
#endif
