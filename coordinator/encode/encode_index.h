// SPDX-License-Identifier: Apache-2.0
// encode: an index of codes from rows. Sample and training on rank 0, then one streaming pass in
// which every rank encodes its share of the blocks of all shards into files beside their final
// names; rank 0 seals them and writes the manifest last.
//
// The library under the command: it takes settings, prints nothing, installs no signal handlers.
// Where the process watches for signals (common/job/stop_signal.h), a stop leaves what there is to
// be resumed.
#ifndef BITSWEEP_COORDINATOR_ENCODE_INDEX_H
#define BITSWEEP_COORDINATOR_ENCODE_INDEX_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/codes/metric.h"
#include "common/files/index_manifest.h"
#include "common/job/journal.h"
#include "common/job/progress.h"
#include "common/net/transport.h"
#include "common/rows/vectors.h"
#include "coordinator/encode/encode_lists.h"
#include "coordinator/encode/encode_training.h"
#include "coordinator/job/device_choice.h"
#include "coordinator/job/job_events.h"
#include "shard/codecs/codec.h"

#define BSW_ENCODE_MIN_BITS 1.0
#define BSW_ENCODE_MAX_BITS 8.0

// Whether codes of an index with lists are of rows less their centroids. AUTO: as the codec or its
// model says; without a word, below BSW_RESIDUAL_BITS bits a dimension, as encode_training.h
// measures it; with more bits there is little to gain.
enum bsw_residuals { BSW_RESIDUALS_AUTO, BSW_RESIDUALS_YES, BSW_RESIDUALS_NO };
#define BSW_RESIDUAL_BITS 2.5

// The same on all ranks but for progress and level. Texts are borrowed. What is 0 or NULL is left
// to the defaults of the command.
struct bsw_encode_settings {
    const char *base;          // file of rows, or synth:...
    struct bsw_row_range rows; // of it; BSW_ALL_ROWS
    const char *index;         // folder to make
    const struct bsw_codec *codec;
    struct bsw_codec_settings code; // bits a dimension 0 or 1 .. 8
    const char *metric;             // NULL: as base or codec say
    uint64_t shards;                // files; 0: 1
    uint64_t lists;                 // that rows are ordered by; 0: none, BSW_LISTS_AUTO
    enum bsw_residuals residuals;   // with lists
    int copy_vectors, drop_bad_rows;
    int force, resume; // as --force and --resume
    const char
        *table_of; // what a table of recalls will be made of, afterwards; NULL: there is none
    // Nothing is trained: codes, metric and lists are those of this manifest, and rows get the ids
    // that follow first_id. Borrowed; NULL: none.
    const struct bsw_manifest *frame;
    uint64_t first_id;
    const int64_t *ids; // rank 0: of the rows, beside their numbers; borrowed; NULL: none
    uint64_t num_ids;
    struct bsw_device_choice device; // text NULL: auto
    enum bsw_cpu_level level;
    int checks_codes;                    // measures what they find of a sample: encode_training.h
    struct bsw_progress *progress;       // rank 0, borrowed; NULL: nothing is shown
    const struct bsw_job_events *events; // borrowed, or NULL
};

// Whether that is measured: the settings are complete, the manifest has its number of lists.
int bsw_encode_chooses_residuals(const struct bsw_encode_settings *settings,
                                 const struct bsw_manifest *manifest);

// On rank 0. On the others only what they know.
struct bsw_encode_stats {
    uint64_t num_rows, num_dropped_rows;
    uint32_t dims, num_shards;
    struct bsw_list_sizes lists;
    int is_residual;
    double residual_recall, plain_recall; // as the manifest's lists have them
    int has_model_lists;                  // lists are those of settings' model
    const struct bsw_codec *codec;
    enum bsw_metric metric;
    char segments[512];      // "32x4,96x2"
    uint32_t code_dims;      // what segments add up to
    int has_fewer_bits;      // than asked for: groups of 32 dimensions take whole bits
    double bits, bits_asked; // a dimension; asked 0: the model says them
    double bytes_per_vector;
    double codec_number; // of the manifest
    uint64_t index_bytes, input_bytes;
    double lists_seconds, train_seconds, encode_seconds;
    struct bsw_code_check check;
    int is_found;                            // was whole, and only its table is left to be made
    char device[24];                         // label of this rank's, or "cpu"
    char device_note[BSW_DEVICE_NOTE_BYTES]; // why none was taken
};

// Called by all ranks, with OpenMP's threads; ends with an agreement, so all return the same.
// Settings that make no sense are BSW_ERROR_USAGE in one line that names the option. After a
// failure nothing is left in the folder, unless there is something to resume. With table_of and
// resume an index that is whole, but for its table, stays as it is; after a success with table_of a
// stop goes on to name --resume, until the caller calls bsw_stop_end.
enum bsw_status bsw_encode_run(const struct bsw_encode_settings *settings,
                               struct bsw_transport *transport, struct bsw_encode_stats *stats,
                               struct bsw_error *err);

// What an index is a function of, as the fields of its journals: not ranks, threads or devices.

// Called on rank 0. manifest: what is known before anything is trained: source, metric, the number
// of lists and whether codes are of residuals. input_digest: of the rows
// (coordinator/job/same_input.h).
enum bsw_status bsw_encode_fields_make(const struct bsw_encode_settings *settings,
                                       const struct bsw_manifest *manifest,
                                       const struct bsw_codec_model *model, uint64_t input_digest,
                                       struct bsw_journal_fields *out, struct bsw_error *err);

#endif
