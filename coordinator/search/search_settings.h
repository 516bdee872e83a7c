// SPDX-License-Identifier: Apache-2.0
// What a search is asked for, and the one place that makes it valid. `search`, `sweep`, `plan`,
// `info --device-memory` and the benches all take their numbers from here.
#ifndef BITSWEEP_COORDINATOR_SEARCH_SETTINGS_H
#define BITSWEEP_COORDINATOR_SEARCH_SETTINGS_H

#include <stdint.h>

#include "common/base/number_parse.h"
#include "common/files/calibration.h"
#include "common/files/index_manifest.h"
#include "coordinator/job/option_table.h"
#include "shard/shard_service.h"

#define BSW_SEARCH_MAX_K 10000
// Defaults of options that several commands have, and of the library's settings.
#define BSW_SEARCH_K               10
#define BSW_SEARCH_K_TEXT          BSW_TEXT_OF(BSW_SEARCH_K)
#define BSW_SEARCH_OVERSAMPLE      5.0
#define BSW_SEARCH_OVERSAMPLE_TEXT "5"
#define BSW_SEARCH_MAX_CANDIDATES  100000 // of a histogram
#define BSW_SEARCH_MAX_WITHIN      10000  // of a range
#define BSW_SEARCH_MARGIN_TEXT     "0.1"
#define BSW_SEARCH_BATCH           1000
#define BSW_SEARCH_BATCH_TEXT      BSW_TEXT_OF(BSW_SEARCH_BATCH)
#define BSW_SEARCH_CHECK_SECONDS   300

#define BSW_PROBE_ALL              UINT64_MAX
#define BSW_SEARCH_RECALL          0.99
#define BSW_LEAST_RECALL           0.5

// How candidates are chosen, and how those of all shards meet.
enum bsw_search_select { BSW_SELECT_THRESHOLD, BSW_SELECT_HISTOGRAM, BSW_SELECT_QUEUE };
enum bsw_search_merge { BSW_MERGE_AUTO, BSW_MERGE_GATHER, BSW_MERGE_LADDER, BSW_MERGE_EXCHANGE };

#define BSW_SELECT_NAMES "threshold|histogram|queue"
const char *bsw_search_select_name(enum bsw_search_select select);
#define BSW_HOST_MERGE_NAMES "auto|gather|ladder"
#define BSW_MERGE_NAMES      BSW_HOST_MERGE_NAMES "|exchange"

// Which entries a query's tables have: all, or those within a radius.
enum bsw_entries_choice { BSW_ENTRIES_ALL, BSW_ENTRIES_RADIUS };
#define BSW_ENTRIES_CHOICES "all|radius"
#define BSW_MISS_CHOICES    "bound|inf|mean"

// Used with BSW_ENTRIES_RADIUS. 0 means that nothing was said, and then scale 1 or the first word;
// words count from 1 on.
struct bsw_selection_request {
    enum bsw_entries_choice choice;
    double radius_scale; // infinity too
    unsigned mode;       // of BSW_SELECTION_MODES
    unsigned miss;       // of BSW_MISS_CHOICES
    unsigned radii;      // of BSW_RADII_KINDS
    unsigned finder;     // of BSW_ENTRY_FINDER_CHOICES
    int has_hit_time;    // entries_within.h
};

// By exact values; codec raw has nothing to refine.
enum bsw_search_refine { BSW_REFINE_EXACT, BSW_REFINE_NONE };
#define BSW_REFINE_NAMES "exact|none"

// The same on all ranks but for level and num_threads.
struct bsw_search_request {
    uint64_t k;          // 1 .. BSW_SEARCH_MAX_K
    uint64_t query_bits; // 0: the usual
    // 1 .. 10000; candidates to refine, times k. 0: of the index's table, where that says what is
    // looked at, else BSW_SEARCH_OVERSAMPLE.
    double oversample;
    enum bsw_search_refine refine;
    enum bsw_scan_kind scan;
    enum bsw_table_choice table;          // of codes that have tables
    struct bsw_selection_request entries; // of codes with radii
    enum bsw_search_select select;
    struct bsw_queue_options queue; // of BSW_SELECT_QUEUE
    // All rows within a value, in place of the nearest k: `within` as result files have values, of
    // rank 0 alone. Candidates for exact values are rows whose estimate is within that and `margin`
    // times its size.
    int is_range;
    double within, margin;
    // A query's: a range may have no more, BSW_SELECT_HISTOGRAM takes the best; 0: as above.
    uint64_t max_candidates;
    // For BSW_SELECT_HISTOGRAM: what is added to D_K, also as a share of what distances run over,
    // and the rows that D_K reaches (0: k).
    uint64_t extra_distance;
    double extra_share;
    uint64_t histogram_k;
    enum bsw_search_merge
        merge;        // AUTO: on several ranks exchange, or ladder without linked devices
    uint64_t batch;   // queries at a time, at most
    int exclude_self; // row i is not in the answer of query i
    int is_partial;   // answers of the shards that can be loaded, if some cannot
    // For an index with lists: at most so many a query (BSW_PROBE_ALL: all), and none further away
    // than this times the yardstick of coarse_search.h. Or the recall that is asked for: the
    // cheapest entry of the index's table that reaches it gives probe, ratio and, unless that is
    // given, oversample. All 0: BSW_SEARCH_RECALL, or the best that the table has; without a table
    // all lists.
    uint64_t probe;
    double probe_ratio;
    double recall;
    uint64_t scan_dims; // with lists: keys of the first dimensions, up to a segment's end; 0: all
    enum bsw_cpu_level level;
    int num_threads;
};

// --extra-distance into a request: a distance, or "5%" of what distances run over.
enum bsw_status bsw_extra_distance_parse(const char *text, struct bsw_search_request *out,
                                         struct bsw_error *err);

// From what is asked for and the manifest to what every rank works with, but for the device,
// where candidates meet (merge_choice.h) and is_checked. index: for messages. What cannot be is
// BSW_ERROR_USAGE in one line that names the option.
enum bsw_status bsw_search_settle(const struct bsw_search_request *request,
                                  const struct bsw_manifest *manifest, const char *index,
                                  int num_ranks, struct bsw_search_settings *out,
                                  struct bsw_error *err);

// Lists of a query at most where a ratio alone is asked for.
uint32_t bsw_search_most_probe(const struct bsw_manifest *manifest);

// How candidates meet on rank 0's CPU.
int bsw_search_is_ladder(enum bsw_search_merge merge, int num_ranks);
// "gather", "ladder" or "exchange".
const char *bsw_search_merge_name(const struct bsw_search_settings *settings);

// Candidates to refine: k * oversample, rounded up, at most num_rows. k in 1 .. BSW_SEARCH_MAX_K,
// oversample 1 or more.
uint64_t bsw_search_keep(uint64_t k, double oversample, uint64_t num_rows);

const char *bsw_selection_finder_name(const struct bsw_selection_request *asked,
                                      char word[BSW_WORD_BYTES]);
const char *bsw_selection_miss_name(const struct bsw_selection_settings *settings); // of --miss

// ---- the table of recalls -----------------------------------------------------------------------

// Which searches of lists are worth their work, by the table of recalls that an index has.
//
// Work is counted in rows: those that a query looks at, and for each candidate that gets an exact
// value as many as take about its time, BSW_REFINED_ROWS. What is done for a row besides products
// takes the time of BSW_ROW_DIMS of its dimensions, so that a row of which only the first are
// looked at is a part of one. These hold for every codec and machine: choices are the same on all.

#define BSW_REFINED_ROWS 64
#define BSW_ROW_DIMS     32

// What a search by this entry of the table costs, with its own oversample or another.
double bsw_recall_cost(const struct bsw_calibration *table,
                       const struct bsw_calibration_entry *entry, double oversample);

// The entry of least cost that reaches `recall`, the first of equals; NULL: there is none.
// oversample 0: each entry with its own; else with the one given, and only entries that need no
// more count.
const struct bsw_calibration_entry *bsw_recall_cheapest(const struct bsw_calibration *table,
                                                        double recall, double oversample);

// Takes out what is not worth its work, and sorts the rest as struct bsw_calibration wants them:
// an entry stays if all others that find as much cost more, and if it reaches BSW_LEAST_RECALL or
// none does. num_entries may become less.
void bsw_recall_front(struct bsw_calibration *table);

#endif
