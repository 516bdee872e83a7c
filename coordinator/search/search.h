// SPDX-License-Identifier: Apache-2.0
// A search of an index by all ranks of a transport: open it once, run any number of query files
// through it, close it. The command, `sweep` and the benches are built on it.
//
// It takes settings, prints nothing but progress that it is given, installs no signal handlers and
// writes no file: answers go to a sink. Where the process watches for signals
// (common/job/stop_signal.h), a run that is asked to stop ends after the batch it is at.
//
// All ranks make the same calls in the same order; each call ends with an agreement, so that all
// return the same. Several searches may be open in a process, one at a time in a call. The thread
// that opened the transport uses them.
#ifndef BITSWEEP_COORDINATOR_SEARCH_H
#define BITSWEEP_COORDINATOR_SEARCH_H

#include <stdint.h>

#include "common/base/process.h"
#include "common/job/progress.h"
#include "coordinator/job/device_choice.h"
#include "coordinator/job/job_events.h"
#include "coordinator/job/text_model.h"
#include "coordinator/search/batch_pipeline.h"
#include "coordinator/search/missing_shards.h"
#include "coordinator/search/search_settings.h"
#include "shard/codecs/codec.h"

// A background thread beside the scan, and scans that begin ahead on devices; AUTO: where a core is
// to spare, or scans can begin ahead.
enum bsw_search_overlap { BSW_OVERLAP_AUTO, BSW_OVERLAP_ON, BSW_OVERLAP_OFF };

#define BSW_CHECK_NEVER (-1)

// What search_options.h lists, and where queries go on. Texts and pointers are borrowed until the
// search is closed.
struct bsw_search_options {
    struct bsw_search_request request;
    const char *extra_distance; // --extra-distance, which implies histogram selection; or NULL
    const char *within;         // --within, a range in place of the best k; or NULL
    const char *index;          // folder
    const char *query_tags;     // file of tags that rows must have, in place of it; NULL: none
    const char *base;           // the file that the index refers to, where it has moved; or NULL
    const char *allow;          // file of rows that queries may find (allowed_rows.h); NULL: all
    int has_masks;              // runs bring some in memory
    // With index NULL: shards are coded from the source that it names; its own arrays are borrowed.
    const struct bsw_manifest *manifest;
    struct bsw_device_choice device;
    enum bsw_link_choice link;
    enum bsw_search_overlap overlap;
    enum bsw_search_graphs graphs;
    const struct bsw_thread_pinning *pinning; // of the caller's threads; NULL: none
    // Self-checks at the start, so often and at the end; 0: start and end; or BSW_CHECK_NEVER.
    double check_seconds;
    int is_unchecked;              // no self-checks, but those of a new device
    int answers_rows;              // numbers, also where rows have ids
    struct bsw_progress *progress; // rank 0; NULL: nothing is shown
};

struct bsw_search;

// Where the answers of a search go, and what else is told on the way. A sink of answers alone
// (coordinator/job/job_events.h) is one; result_journal.h has a file that can be resumed.
//
// All ranks give one, with the same functions. Apart from open, a sink of another rank than 0 is
// not called. answers.take is necessary and gets those of the last pass of repeat, in order,
// possibly from the background thread; any other function may be NULL.
struct bsw_search_sink {
    struct bsw_answer_sink answers;
    void *context; // of the functions below
    // Once the queries are known and good, before any shard is loaded: rank 0, and when that went
    // well the others. *out, rank 0's, is {0}.
    enum bsw_status (*open)(void *context, const struct bsw_search *search,
                            struct bsw_search_parts *out, struct bsw_error *err);
    // As struct bsw_check_schedule's.
    void (*note_check)(void *context, int is_passed);
    // Rank 0, before the first answer: the share of the rows that queries can find; 1 but where
    // shards are missing.
    void (*note_coverage)(void *context, double coverage);
    // Queries of all passes that were answered, from any thread, and how many that will be.
    void (*note_progress)(void *context, uint64_t done, uint64_t total);
    // All answers were taken, the last self-check has passed on all ranks, statistics are there.
    enum bsw_status (*finish)(void *context, const struct bsw_search *search,
                              struct bsw_error *err);
};

enum { BSW_SEARCH_MAX_PASSES = 1000 }; // timed ones

// One run; sink on all ranks, the rest is read on rank 0 alone.
struct bsw_search_run {
    const char *queries; // file
    struct bsw_row_range query_rows;
    uint64_t warmup, repeat; // passes over all queries: untimed, then timed; repeat >= 1
    // More timed passes go on behind these until all took so long together, at most
    // BSW_SEARCH_MAX_PASSES. Their answers are not taken.
    double least_seconds;
    // All ranks: more runs come. The self-check of the end and a rank's bytes of memory are left
    // out.
    int is_followed;
    struct bsw_allowed_memory allow; // in place of a file of rows that queries may find
    const char *query_tags;          // likewise, of tags
    const struct bsw_search_sink *sink;
};

// What a rank reports of its device.
struct bsw_device_report {
    char label[24], name[64];         // "cpu" and "" without one
    char note[BSW_DEVICE_NOTE_BYTES]; // why `auto` has left a device alone
    uint64_t used_bytes;
    struct bsw_scan_counts counts;
};

// What each rank reports of a run; times and bytes are those of an average pass.
struct bsw_search_rank {
    double load_seconds, scan_seconds, refine_seconds, cpu_seconds;
    uint64_t scanned_bytes, resident_bytes, grown_bytes, memory_bytes, mapped_bytes, num_units;
    uint64_t num_pairs, num_stopped, num_rescanned;
    uint64_t num_list_pairs;             // of query and list
    struct bsw_selection_work selection; // of tables by radius
    double coarse_seconds;
    struct bsw_device_report device;
};

// {0} is closed. To be read by sinks and reports; on ranks other than 0 queries, seconds and ranks
// are not there.
struct bsw_search {
    struct bsw_transport *transport;
    struct bsw_search_options options;
    struct bsw_manifest manifest;
    struct bsw_search_settings settings;
    struct bsw_codec_model model;        // rank 0
    struct bsw_chosen_device device;     // of this rank
    bsw_device_link *link;               // of all ranks, or NULL
    char link_note[BSW_LINK_NOTE_BYTES]; // what it is, or why there is none
    struct bsw_batch_link batch_link;
    struct bsw_batch_device_merge device_merge; // where cuts are found on devices
    struct bsw_assignment assignment;
    struct bsw_shard_service service;
    struct bsw_batch_search batches;
    struct bsw_missing_shards missing; // rank 0
    double coverage;                   // of each query, once shards are loaded
    int64_t *row_ids;                  // rank 0: of an index whose rows have ids; owned
    int is_loaded;
    // The last run.
    struct bsw_search_run run;
    struct bsw_query_source queries;
    struct bsw_text_model text;      // the index's, for queries of text; rank 0
    struct bsw_number_sets row_tags; // rank 0: of the index, once they are asked for
    struct bsw_allowed_rows allowed;
    struct bsw_batch_filter filter;
    struct bsw_search_parts parts;
    struct bsw_batch_pipeline pipeline;
    uint64_t num_asked, num_answered; // queries of all passes
    uint64_t num_within;              // rows of all answers of a range search
    uint64_t pass;                    // from 0 on; after the run how many there were
    double *seconds;                  // [timed passes]
    double passes_seconds;            // all passes, as rank 0 has it
    double cpu_started, cpu_seconds;  // of this process and its threads, over all passes
    struct bsw_search_rank *ranks;    // [num_ranks]
};

// On rank 0, after a run.
struct bsw_search_stats {
    double seconds;        // of the median pass
    uint64_t num_timed;    // passes
    double cpu_seconds;    // of all ranks, of an average pass
    double busy_cores;     // of all ranks, on average over all passes
    uint64_t num_searched; // queries of a pass
    double queries_per_second;
    uint64_t num_survivors, received_bytes; // of the last pass; all ranks
    uint64_t num_empty;                     // of the last pass: places without a row
    int slowest_rank;                       // in scanning
    double stopped_share;   // of all pairs of row and query: those that the first stage stopped
    uint64_t num_rescanned; // queries that a shard scanned twice
    double rows_a_query, lists_a_query;  // looked at; lists of an index that has some
    struct bsw_selection_work selection; // of all ranks and passes
    // Shares of tables by radius: entries within; those whose distance was computed; look-ups that
    // find one within, sampled, 0 without lists.
    double entries_share, computed_share, lookups_share;
    const char *scan, *level;
    const char *device_kind; // "cpu", or the kind of the devices; "mixed" where ranks differ
};

// Reads the manifest, makes the settings valid, and looks whether all ranks have the same index.
// *search must stay where it is until it is closed, which also a failed open needs.
enum bsw_status bsw_search_open(struct bsw_search *search, struct bsw_transport *transport,
                                const struct bsw_search_options *options, struct bsw_error *err);
// Loads the shards and checks them. The first run does it where it was not done before, once
// queries and sink are known to be good: so a mistake in these shows at once.
enum bsw_status bsw_search_load(struct bsw_search *search, struct bsw_error *err);
// What queries of the runs to come look at; {0}: all lists. Of an index with lists.
enum bsw_status bsw_search_look(struct bsw_search *search, const struct bsw_probe_settings *probe,
                                struct bsw_error *err);
// Searches all queries and gives the answers to the sink.
enum bsw_status bsw_search_run(struct bsw_search *search, const struct bsw_search_run *run,
                               struct bsw_error *err);
struct bsw_search_stats bsw_search_stats(const struct bsw_search *search);
// Accepts {0}.
void bsw_search_close(struct bsw_search *search);

// L: what stays of keep when the query's own row is left out.
static inline uint64_t bsw_search_num_candidates(const struct bsw_search *search)
{
    return search->settings.keep - search->settings.exclude_self;
}
// What the reported values are: "exact" or "none".
const char *bsw_search_refine_name(const struct bsw_search *search);

#endif
