// sweep: a grid of codes and searches over one corpus, every point measured on all ranks of a
// transport through encode_index.h, truth.h and search.h, in a folder that another run can go on
// with.
#ifndef BITSWEEP_COORDINATOR_SWEEP_JOB_H
#define BITSWEEP_COORDINATOR_SWEEP_JOB_H

#include <jansson.h>

#include "common/base/cpu_level.h"
#include "common/base/thread_pinning.h"
#include "common/net/transport.h"
#include "coordinator/job/job_events.h"
#include "coordinator/sweep/sweep_grid.h"
#include "shard/host/shard_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

// The same on all ranks but for the last group; texts are borrowed.
struct bsw_sweep_settings {
    const char *base, *queries, *folder;
    const char *groundtruth;              // NULL: computed
    const char *metric;                   // NULL: as the files say
    const char *model;                    // of codec rbe; NULL: learned from the base
    const char *axes[BSW_SWEEP_NUM_AXES]; // lists of values
    const char *plan;                     // a file with more than one grid, or NULL
    const char *device;
    uint64_t shards, repeat, batch;
    struct bsw_queue_options queue;
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
    const struct bsw_job_events *events;
};

// Of rank 0; bsw_sweep_outcome_deinit frees.
struct bsw_sweep_outcome {
    struct bsw_sweep_points points;
    uint64_t num_resumed; // points of this grid that the journal had
    int has_plots;        // 0: gnuplot is missing
    json_t *report;       // what sweep.json has
};
void bsw_sweep_outcome_deinit(struct bsw_sweep_outcome *outcome);

// All ranks, which agree on a failure. A stop ends it with BSW_ERROR_STOPPED: what was measured is
// in the folder.
enum bsw_status bsw_sweep_job_run(const struct bsw_sweep_settings *settings,
                                  struct bsw_transport *transport,
                                  struct bsw_sweep_outcome *outcome, struct bsw_error *err);

#ifdef __cplusplus
}
#endif
#endif
