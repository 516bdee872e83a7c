// SPDX-License-Identifier: Apache-2.0
// A rank's side of the search protocol: its shards resident, one batch through them, phase by
// phase. Rank 0 has one too.
//
// A unit is one shard for one slice of the batch's queries (assignment.h); units that follow each
// other are spans (assignment.h). Every phase takes what rank 0 sent and makes one payload for rank
// 0: units in order of their shards, queries in order. All numbers little-endian.
//
//   candidates  a query: uint64 count, then struct bsw_ranked [count], of keys, in the total order.
//               gather: the best `keep` rows of the round, or what of those of its span is the
//               unit's, payload 0; ladder: the rows of that at local places 1, 2, 4, ... and the
//               last, payload the place. Where they stay on devices: a span's counts, uint64 a
//               query
//   survivors   a unit: uint64 counts [queries], then struct bsw_survivor [sum of counts],
//               ascending rows a query
#ifndef BITSWEEP_SHARD_SHARD_SERVICE_H
#define BITSWEEP_SHARD_SHARD_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes/metric.h"
#include "common/files/index_manifest.h"
#include "shard/assignment.h"
#include "shard/backend.h"
#include "shard/host/filter_masks.h"
#include "shard/host/shard_scan.h"
#include "shard/self_check.h"

struct bsw_unit {
    uint32_t slice, shard;
    struct bsw_resident_shard resident;
    struct bsw_backend_shard loaded;  // of the back end, with the unit's candidates
    size_t first_query, num_queries;  // of the current batch
    struct bsw_refined_lists refined; // what the last scan has made of its candidates
};

// A unit that could not be loaded, where that is allowed; as it travels.
struct bsw_failed_unit {
    uint32_t slice, shard;
    int32_t status; // enum bsw_status
    char why[BSW_ERROR_MESSAGE_BYTES];
};

struct bsw_shard_service {
    const struct bsw_manifest *manifest; // borrowed
    struct bsw_search_settings settings;
    const struct bsw_assignment *assignment; // borrowed
    struct bsw_unit *units;
    struct bsw_backend_shard **shards; // [num_units]: theirs
    uint32_t num_units;
    struct bsw_failed_unit *failed; // [num_failed]
    uint32_t num_failed;
    struct bsw_shard_range *spans; // [num_spans], of units
    struct bsw_kept_lists *kept;   // [num_spans], where candidates stay on a device
    uint32_t num_spans;
    struct bsw_scan_workspace workspace;
    const struct bsw_backend *backend;
    void *state; // the back end's; NULL: none is open
    uint64_t forgotten_copied, forgotten_gathered;
    uint64_t num_ahead; // as struct bsw_scan_counts has it
    struct bsw_query_batch batch;
    int is_begun; // the job, of a batch that is maybe not `batch`
    struct bsw_scan_job job;
    struct bsw_query_batch job_batch;
    struct bsw_list_choice job_choice;
    struct bsw_filter_masks masks; // of the group of queries that is scanned
    struct bsw_self_check check;
    struct bsw_coarse_search *coarse; // where queries look at some lists; else NULL
    struct bsw_list_choice choice;    // of queries [chosen_first, + choice.num_queries)
    size_t chosen_first;
    const float *chosen_vectors;    // of the batch it was made for
    int is_chosen;                  // of this batch
    uint64_t num_list_pairs;        // of query and list, looked at
    struct bsw_selection selection; // of tables' entries, if settings have one
    double load_seconds;
    size_t resident_bytes; // codes, scales, biases, masks, row digests, what stages need
    uint64_t
        grown_bytes; // by how much the process grew while they were loaded (without mapped files)
};

// Where free_bytes of a device are free (settings.device is not asked): what
// bsw_shard_service_open will take of it, from the manifest alone.
enum bsw_status bsw_shard_service_plan(const struct bsw_manifest *manifest,
                                       const struct bsw_search_settings *settings, int rank,
                                       int num_ranks, size_t free_bytes,
                                       struct bsw_memory_forecast *out, struct bsw_error *err);

// Loads the shards that the assignment, borrowed until close, gives this rank; `show_progress` as
// for bsw_progress_init. folder NULL: there is no index, shards are coded from the manifest's
// source (bsw_resident_shard_encode).
//
// With settings->is_partial files that are missing, damaged or cannot be read are no error:
// `failed` names their units, and what was loaded is to be closed and opened anew by a table that
// does not have them. All raw rows are then compared with their digests, as else they are when they
// are used.
enum bsw_status bsw_shard_service_open(const struct bsw_manifest *manifest, const char *folder,
                                       const struct bsw_search_settings *settings,
                                       const struct bsw_assignment *assignment, int rank,
                                       int show_progress, struct bsw_shard_service *out,
                                       struct bsw_error *err);
// Unit u of those that open loads; in `failed` where it cannot be and may be left out. Behind one
// that failed the others are only looked at: all is loaded anew without it.
enum bsw_status bsw_unit_load(struct bsw_shard_service *service, const char *folder, uint32_t u,
                              struct bsw_error *err);
// What queries of an index with lists look at from the next batch on; {0}: all lists.
enum bsw_status bsw_shard_service_look(struct bsw_shard_service *service,
                                       const struct bsw_probe_settings *probe,
                                       struct bsw_error *err);
void bsw_shard_service_close(struct bsw_shard_service *service);

// What the back end counted in batches, self-checks left out.
void bsw_shard_service_counts(const struct bsw_shard_service *service, struct bsw_scan_counts *out);
// Bytes copied and gathered count from here on.
void bsw_shard_service_forget(struct bsw_shard_service *service);

static inline int bsw_service_is_kept(const struct bsw_shard_service *service)
{
    return service->settings.merge_place != BSW_MERGE_ON_HOST;
}

// The best `keep` places of a unit's shard, wherever its codes are, to *out.
enum bsw_status bsw_unit_scan(struct bsw_shard_service *service, const struct bsw_unit *unit,
                              const struct bsw_query_range *queries, size_t keep,
                              struct bsw_scan_workspace *workspace, struct bsw_candidate_lists *out,
                              struct bsw_error *err);

// Takes a batch; its arrays are borrowed until the next.
void bsw_shard_service_begin(struct bsw_shard_service *service,
                             const struct bsw_query_batch *batch);

// Begins its scan, as far as that goes without waiting, on a device: bsw_shard_service_scan then
// ends it. Until then another batch may be returned to, which was scanned before it, and refined:
// its candidates stay, or are in host memory by now.
enum bsw_status bsw_shard_service_start(struct bsw_shard_service *service, struct bsw_error *err);
// To a batch that was taken before.
void bsw_shard_service_return(struct bsw_shard_service *service,
                              const struct bsw_query_batch *batch);
// What was begun is not wanted any more.
void bsw_shard_service_drop(struct bsw_shard_service *service);

enum bsw_status bsw_shard_service_scan(struct bsw_shard_service *service,
                                       const struct bsw_scan_round *round, struct bsw_buffer *out,
                                       struct bsw_error *err);
// cuts: [queries of the batch].
enum bsw_status bsw_shard_service_refine(struct bsw_shard_service *service,
                                         const struct bsw_cut *cuts, struct bsw_buffer *out,
                                         struct bsw_error *err);

#endif
