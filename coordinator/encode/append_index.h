// SPDX-License-Identifier: Apache-2.0
// append and compact: an encode of more shards into a folder inside an index, with the frame that
// the index has, and a generation of its manifest that names them (job/index_generation.h).
#ifndef BITSWEEP_COORDINATOR_APPEND_INDEX_H
#define BITSWEEP_COORDINATOR_APPEND_INDEX_H

#include "common/files/row_tags.h"
#include "coordinator/encode/encode_index.h"
#include "coordinator/job/facts.h"

#define BSW_KEEP_GENERATIONS 1 // older ones, by default

// What a drop of the recall by code, from that of the index to that of rows that are appended, is
// worth a warning.
#define BSW_APPEND_DRIFT 0.05

struct bsw_append_settings {
    const char *index;
    const char *base;          // NULL: compact, the rows of the index that are left
    struct bsw_row_range rows; // of base
    const int64_t *ids;        // rank 0: of these rows; borrowed; NULL: none
    uint64_t num_ids;
    const struct bsw_number_sets *tags; // rank 0: lists of these rows by tag; borrowed; NULL: none
    uint64_t shards;                    // 0: 1; compact: as many as the index was made with
    int copies_vectors;                 // beside what the index does
    int drop_bad_rows, resume, checks_codes;
    uint64_t keep; // older generations
    struct bsw_device_choice device;
    enum bsw_cpu_level level;
    struct bsw_progress *progress; // rank 0, borrowed; NULL: nothing is shown
};

// On rank 0.
struct bsw_append_stats {
    struct bsw_encode_stats encode;
    uint64_t generation, first_row, num_rows; // of the index, afterwards; first_row: of new rows
    uint64_t num_removed;                     // compact: rows that are gone
    int has_ids, has_tags;
    struct bsw_code_check before; // recall by code when the index was made
};

// Called by all ranks; ends with an agreement. After a failure the index is as it was.
enum bsw_status bsw_append_run(const struct bsw_append_settings *settings,
                               struct bsw_transport *transport, struct bsw_append_stats *stats,
                               struct bsw_error *err);
enum bsw_status bsw_compact_run(const struct bsw_append_settings *settings,
                                struct bsw_transport *transport, struct bsw_append_stats *stats,
                                struct bsw_error *err);

// Whether codes find so much less of new rows than of those the index was made from.
int bsw_append_has_drifted(const struct bsw_append_stats *stats);

// What it took, at the end of a report on rank 0.
void bsw_append_cost_facts(struct bsw_facts *facts, const struct bsw_transport *transport,
                           const struct bsw_append_stats *stats);

#endif
