// SPDX-License-Identifier: Apache-2.0
// The steps of a sweep, which all ranks take together: ground truth, an index, a search. Rank 0
// leads and says which one comes; the others follow until it says that there is none left.
#ifndef BITSWEEP_COORDINATOR_SWEEP_STEP_H
#define BITSWEEP_COORDINATOR_SWEEP_STEP_H

#include <jansson.h>

#include "common/base/file.h"
#include "common/base/process.h"
#include "coordinator/encode/encode_index.h"
#include "coordinator/job/job_events.h"
#include "coordinator/search/search.h"
#include "coordinator/sweep/sweep_grid.h"

// The same on all ranks but for the last group; texts are borrowed.
struct bsw_sweep_settings {
    const char *base, *queries, *folder;
    struct bsw_row_range rows, query_rows;
    struct bsw_search_request searches;   // what all searches share: batch, queues and the like
    const char *groundtruth;              // NULL: computed
    const char *metric;                   // NULL: as the files say
    const char *model;                    // of codec rbe; NULL: learned from the base
    const char *axes[BSW_SWEEP_NUM_AXES]; // lists of values
    const char *plan;                     // a file with more than one grid, or NULL
    const char *targets;                  // recalls to answer for: sweep_report.h
    const char *device;
    enum bsw_residuals residuals; // of indexes with lists
    uint64_t shards, repeat;
    double least_seconds; // of timed passes together, beyond repeat: search.h
    int counts_ties, force, resume;
    enum bsw_cpu_level level;
    const char *level_text;
    int num_threads;
    const struct bsw_thread_pinning *pinning;
    // Rank 0: what the report says of how it was started, and whom points are told, each once it is
    // done; before the first with name and row NULL. May be NULL.
    int num_arguments;
    char **arguments;
    void (*note_point)(void *context, const char *name, const json_t *row);
    void *context;
    struct bsw_progress *progress; // NULL: nothing is shown
    const struct bsw_job_events *events;
};

struct bsw_sweep_team {
    struct bsw_transport *transport;
    const struct bsw_sweep_settings *settings;
    int others_know; // rank 0: of the error that ended the sweep
};

enum bsw_sweep_step_kind { BSW_SWEEP_END, BSW_SWEEP_TRUTH, BSW_SWEEP_ENCODE, BSW_SWEEP_SEARCH };

// Sent to the other ranks as it is.
struct bsw_sweep_step {
    enum bsw_sweep_step_kind kind;
    enum bsw_metric metric;    // of a ground truth or an index
    char path[BSW_PATH_BYTES]; // file of the ground truth, folder of the index; replaced if made
    uint64_t k;                // of a ground truth
    char codec[16];            // name; of an index, as the six below
    double bits;               // 0: those of the model
    uint64_t parts;            // of product codes; 0: the usual
    uint64_t lists;            // 0: none
    enum bsw_residuals residuals;
    int has_radii;                     // of codes with subspaces
    int is_calibrated;                 // with a table of recalls
    char model[BSW_PATH_BYTES];        // "": none
    struct bsw_search_request request; // of a search, but for level and num_threads
    uint64_t warmup, repeat;
    double least_seconds;
    enum bsw_status status; // of the end, with its message
    char message[BSW_ERROR_MESSAGE_BYTES];
};

// What rank 0 has of the last steps.
struct bsw_sweep_found {
    struct bsw_encode_stats index;
    uint64_t index_peak_bytes; // most memory of rank 0 while the index was made
    struct bsw_search_stats search;
    struct bsw_search_times times;
    uint64_t memory_bytes; // of all ranks, with the index of the search loaded
    struct bsw_results answers;
};
void bsw_sweep_found_deinit(struct bsw_sweep_found *found);

// Rank 0: sends the step to the others and takes it. All ranks agree on a failure.
enum bsw_status bsw_sweep_lead(struct bsw_sweep_team *team, const struct bsw_sweep_step *step,
                               struct bsw_sweep_found *found, struct bsw_error *err);
// Rank 0: tells the others that there is no step left (status ok), or why; unless they know.
enum bsw_status bsw_sweep_lead_end(struct bsw_sweep_team *team, enum bsw_status status,
                                   struct bsw_error *err);
// The others: all steps to the end. They wait for the next one as long as heartbeats say that rank
// 0 is there, since it may have much to do in between.
enum bsw_status bsw_sweep_follow(struct bsw_sweep_team *team, struct bsw_error *err);

#endif
