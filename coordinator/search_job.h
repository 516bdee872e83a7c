// What `search` is at work on, and what it reports: command_search.c runs it, search_report.c
// tells.
#ifndef BITSWEEP_COORDINATOR_SEARCH_JOB_H
#define BITSWEEP_COORDINATOR_SEARCH_JOB_H

#include <stdint.h>

#include "common/progress.h"
#include "coordinator/batch_pipeline.h"
#include "coordinator/command.h"
#include "coordinator/device_choice.h"
#include "coordinator/result_journal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bsw_search_options {
    struct bsw_common_options common;
    const char *index, *queries, *out, *scan, *select, *refine, *merge, *overlap, *device, *link,
        *extra_distance, *check_every;
    uint64_t k, query_bits, batch, max_candidates, histogram_k, device_memory, warmup, repeat;
    struct bsw_queue_options queue;
    double oversample;
    struct bsw_row_range query_rows;
    int exclude_self, force, resume;
};

// What each rank reports at the end; on rank 0 times and bytes become those of an average pass.
struct bsw_search_statistics {
    double load_seconds, scan_seconds, refine_seconds;
    uint64_t scanned_bytes, resident_bytes, grown_bytes, memory_bytes, mapped_bytes, num_units;
    uint64_t num_pairs, num_stopped, num_rescanned;
    struct bsw_device_report device;
};

struct bsw_search_job {
    struct bsw_search_options options;
    struct bsw_transport *transport;
    struct bsw_manifest manifest;
    struct bsw_rbe_coders *coders; // codec rbe, rank 0
    struct bsw_search_settings settings;
    uint64_t batch;
    double check_seconds;
    bsw_device *device;                  // of this rank, or NULL
    bsw_device_link *link;               // of all ranks, or NULL
    char link_note[BSW_LINK_NOTE_BYTES]; // what it is, or why there is none
    struct bsw_batch_link batch_link;
    struct bsw_shard_service service;
    struct bsw_query_source queries;  // rank 0
    struct bsw_result_journal result; // rank 0
    struct bsw_batch_search search;
    struct bsw_batch_pipeline pipeline;       // rank 0
    struct bsw_progress progress;             // rank 0, like the two below
    uint64_t num_answered;                    // queries of all passes
    int is_written;                           // the last pass
    struct bsw_search_statistics *statistics; // rank 0: [num_ranks]
    double *seconds;                          // [repeat]
};

// L: what stays of keep when the query's own row is left out.
uint64_t bsw_search_num_candidates(const struct bsw_search_job *job);
const char *bsw_search_select_name(const struct bsw_search_job *job);
// What the reported values are: "exact" or "none".
const char *bsw_search_refine_name(const struct bsw_search_job *job);

// Rank 0, once statistics of all ranks are there.
void bsw_search_print_json(const struct bsw_search_job *job);
void bsw_search_print_table(const struct bsw_search_job *job);

#ifdef __cplusplus
}
#endif
#endif
