// A rank's side of the search protocol: its shards resident, one batch through them, phase by
// phase. Rank 0 has one too.
//
// A unit is one shard for one slice of the batch's queries (assignment.h). Every phase takes what
// rank 0 sent and makes one payload for rank 0: units in order of their shards, queries in order.
// All numbers little-endian.
//
//   histogram   a query: uint32 first_bin, uint32 num_bins, uint64 counts [num_bins]
//   candidates  a query: uint64 count, then struct bsw_ranked [count], of keys, in the total order.
//               gather: the best `keep` rows, payload 0; ladder: the rows at local places 1, 2, 4,
//               ... and the last, payload the place
//   survivors   a unit: uint64 counts [queries], then struct bsw_survivor [sum of counts],
//               ascending rows a query
#ifndef BITSWEEP_SHARD_SHARD_SERVICE_H
#define BITSWEEP_SHARD_SHARD_SERVICE_H

#include <stddef.h>
#include <stdint.h>

#include "common/index_manifest.h"
#include "shard/assignment.h"
#include "shard/device_refine.h"
#include "shard/device_shard.h"
#include "shard/self_check.h"
#include "shard/shard_scan.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a search is, the same on every rank but for the device.
struct bsw_search_settings {
    uint32_t query_bits;
    uint64_t k;
    uint64_t keep;         // L, or --max-candidates with histogram selection; and exclude_self
    uint64_t exclude_self; // 1: the row whose id is the query's is left out of its answer
    int is_histogram;      // else threshold, or
    struct bsw_queue_options queue; // {0}: no queues
    uint64_t extra_distance;
    uint64_t histogram_k; // rows that D_K is to reach, without exclude_self; 0: k
    int is_ladder;        // else gather
    int is_exact;         // refinement
    enum bsw_cpu_level level;
    enum bsw_scan_kind scan;
    int num_threads;
    bsw_device *device; // this rank's, borrowed: scans there; NULL: on the CPU
    size_t batch;       // most queries of a batch
    int is_checked;     // self_check.h; 0: no checks but those of a new device
};

static inline uint64_t bsw_search_histogram_rows(const struct bsw_search_settings *settings)
{
    uint64_t k = settings->histogram_k ? settings->histogram_k : settings->k;
    return k + settings->exclude_self;
}

// The worst candidate that stays, in the total order; {0, UINT64_MAX} keeps all.
struct bsw_cut {
    uint32_t score;
    uint32_t padding;
    uint64_t row; // id
};

struct bsw_unit {
    uint32_t slice, shard;
    struct bsw_resident_shard resident;
    struct bsw_device_shard on_device; // with settings.device
    struct bsw_device_raw_shard raw_on_device;
    struct bsw_candidate_lists lists;
    size_t first_query, num_queries; // of the current batch
};

struct bsw_shard_service {
    const struct bsw_manifest *manifest; // borrowed
    struct bsw_search_settings settings;
    struct bsw_assignment assignment;
    struct bsw_unit *units;
    uint32_t num_units;
    struct bsw_scan_workspace workspace;
    struct bsw_device_engine engine; // with settings.device
    struct bsw_device_refiner refiner;
    struct bsw_query_batch batch;
    struct bsw_self_check check;
    uint64_t load_allocations; // of the device, until all was loaded
    double load_seconds;
    size_t resident_bytes; // codes, scales, biases, masks, row digests, what stages need
    uint64_t
        grown_bytes; // by how much the process grew while they were loaded (without mapped files)
};

// What a rank's device will hold.
struct bsw_device_forecast {
    struct bsw_device_plan plan; // to be freed by bsw_device_plan_deinit
    size_t survivor_bytes;       // buffers of refinement
    size_t raw_bytes;            // raw rows
};
static inline size_t bsw_device_forecast_bytes(const struct bsw_device_forecast *forecast)
{
    return bsw_device_plan_bytes(&forecast->plan) + forecast->survivor_bytes + forecast->raw_bytes;
}

// Where free_bytes of it are free (settings.device is not asked): what bsw_shard_service_open will
// take, from the manifest alone.
enum bsw_status bsw_shard_service_plan(const struct bsw_manifest *manifest,
                                       const struct bsw_search_settings *settings, int rank,
                                       int num_ranks, size_t free_bytes,
                                       struct bsw_device_forecast *out, struct bsw_error *err);

// Loads the shards of this rank; `show_progress` as for bsw_progress_init. folder NULL: there is no
// index, shards are coded from the manifest's source (bsw_resident_shard_encode).
enum bsw_status bsw_shard_service_open(const struct bsw_manifest *manifest, const char *folder,
                                       const struct bsw_search_settings *settings, int rank,
                                       int num_ranks, int show_progress,
                                       struct bsw_shard_service *out, struct bsw_error *err);
void bsw_shard_service_close(struct bsw_shard_service *service);

// The best `keep` rows of a unit's shard, wherever its codes are: as bsw_shard_scan.
enum bsw_status bsw_unit_scan(struct bsw_shard_service *service, const struct bsw_unit *unit,
                              const struct bsw_query_batch *batch, size_t first_query,
                              size_t num_queries, const uint32_t *limits, size_t keep,
                              struct bsw_scan_workspace *workspace, struct bsw_candidate_lists *out,
                              struct bsw_error *err);

// Takes a batch; its arrays are borrowed until the next.
void bsw_shard_service_begin(struct bsw_shard_service *service,
                             const struct bsw_query_batch *batch);

enum bsw_status bsw_shard_service_histogram(struct bsw_shard_service *service,
                                            struct bsw_buffer *out, struct bsw_error *err);
// limits: [queries of the batch] or NULL.
enum bsw_status bsw_shard_service_scan(struct bsw_shard_service *service, const uint32_t *limits,
                                       struct bsw_buffer *out, struct bsw_error *err);
// cuts: [queries of the batch].
enum bsw_status bsw_shard_service_refine(struct bsw_shard_service *service,
                                         const struct bsw_cut *cuts, struct bsw_buffer *out,
                                         struct bsw_error *err);

#ifdef __cplusplus
}
#endif
#endif
