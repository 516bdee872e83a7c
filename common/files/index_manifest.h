// SPDX-License-Identifier: Apache-2.0
// The manifest of an index: what every rank must know before it touches a shard.
//
// manifest.pb is protobuf (common/bitsweep.proto) whose last field is the XXH3 of all bytes before
// it. It holds no time, host or rank count, so the same input and parameters give the same bytes.
#ifndef BITSWEEP_COMMON_INDEX_MANIFEST_H
#define BITSWEEP_COMMON_INDEX_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/status.h"
#include "common/codes/code_layout.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"

BSW_C_BEGIN

// What manifests and shard files must know of a codec; what it does is in shard/codecs/codec.h.

struct bsw_manifest;
struct bsw_codec_table; // shard/codecs/codec.h

struct bsw_codec {
    const char *name;

    int has_affine;      // scale, tail and bias beside the codes of a row: keys are floats
    int has_bytes;       // bytes in place of planes, offsets in place of biases: whole keys
    int has_tables;      // bytes of product codes, of one bit a dimension; keys are floats: sums
                         // of numbers of tables (kernels/table_scan)
    uint32_t known_rule; // how its pinned queries are made: BSW_KNOWN_RULE
    // The newest of its rules of coding (manifest->code_rule) that this program knows. 0: the one
    // of format versions 1 to 3, which every program reads.
    uint32_t code_rule;
    // From this rule on its codes have no biases, since all would be 0; 0: no such rule.
    uint32_t biasless_rule;

    // Its own part of a manifest, which nobody else reads: manifest->part in memory, a message as
    // bytes of field `part_field` of Manifest in the file. Without one field and functions are 0.
    uint32_t part_field;
    enum bsw_status (*pack_part)(const struct bsw_manifest *manifest, struct bsw_buffer *out,
                                 struct bsw_error *err);
    void (*free_part)(void *part); // accepts NULL

    // The last step of parsing a manifest: takes the part's bytes (of an aligned copy; 0 bytes
    // where the file has none), checks that metric, layout and source are what the codec can have,
    // and sets what of the manifest is its own. BSW_ERROR_BAD_DATA names the file.
    enum bsw_status (*parse_part)(const char *name, const void *data, size_t bytes,
                                  struct bsw_manifest *manifest, struct bsw_error *err);

    const struct bsw_codec_table *table;
};

static inline const char *bsw_codec_name(const struct bsw_codec *codec)
{
    return codec->name;
}

// Known answers of an index: a few queries that are pinned for ever (shard/codecs/query_codes.h)
// and, for each shard, their best rows, found when it was encoded and kept in the manifest. Whoever
// scans the shard later must find the same.

// Stands for how queries are made and what is kept: answers by another rule are not looked at. Raw
// answers had keys rounded to float32 once, by rule 1.
#define BSW_KNOWN_RULE        1
#define BSW_KNOWN_RULE_RAW    2
#define BSW_KNOWN_RULE_TABLES 3
#define BSW_KNOWN_QUERIES     4  // at most
#define BSW_KNOWN_ROWS        32 // of each, fewer where the shard has fewer

// Answers of one shard: lists one after another, each descending in the total order, candidates as
// common/codes/metric.h packs them.
struct bsw_known_answers {
    uint32_t num_queries; // 0: none
    uint32_t num_rows;    // of each list
    int is_short;         // rows of the lists were deleted: others may follow those that stayed
    const uint64_t *best; // [num_queries][num_rows]; borrowed
};

// Length of a shard's lists: rows are those that were not dropped.
static inline uint32_t bsw_known_rows(uint64_t num_rows)
{
    return num_rows < BSW_KNOWN_ROWS ? (uint32_t)num_rows : BSW_KNOWN_ROWS;
}

// Format versions of manifests: 2 has lists, which programs that know 1 alone must not take for a
// flat index; 3 has rows that are copied in the order of lists; 4 may have either, and its codes
// follow a rule that is newer than the codec; 5 may have all of these, and was changed since it was
// made, has ids of its own, or is a part of an index that was.
#define BSW_INDEX_FORMAT_VERSION   1
#define BSW_LISTS_FORMAT_VERSION   2
#define BSW_ORDERED_FORMAT_VERSION 3
#define BSW_RULED_FORMAT_VERSION   4
#define BSW_LIVING_FORMAT_VERSION  5
#define BSW_TAGGED_FORMAT_VERSION  6
#define BSW_MAX_SHARDS             65536
#define BSW_INDEX_MODEL_NAME       "model.rbe" // of codecs that have a model file

struct bsw_shard_entry {
    uint64_t first_row; // id in the source
    uint64_t num_rows;
    uint64_t codes_bytes;  // of the .codes file
    uint64_t codes_digest; // XXH3 of its footer
    uint64_t vectors_bytes;
    uint64_t dropped_rows;
    size_t first_known; // place in the manifest's known answers
    // Places of rows in the .codes file, a multiple of 32, as each list fills whole bundles, and no
    // fewer than the rows take. 0: those of the rows, as without lists.
    uint64_t num_places;
    uint64_t lists_digest; // XXH3 of the .lists file
    uint64_t deleted_rows; // by deletes, dropped ones not counted
    uint64_t deleted_in;   // the generation that their file is named after; 0: none
    uint64_t deleted_digest;
    uint32_t num_known_rows; // of each known answer; fewer where some of those were deleted
};

static inline uint64_t bsw_shard_places(const struct bsw_shard_entry *entry)
{
    return entry->num_places > 0 ? entry->num_places : entry->num_rows;
}

// Inverted lists (list_order.h). Centroids stand in the manifest, which every rank gets whole: one
// file less to be lost or mixed up.
#define BSW_MAX_LISTS          ((uint32_t)1 << 20)
#define BSW_MAX_CENTROID_BYTES ((uint64_t)1 << 30)
struct bsw_manifest_lists {
    uint32_t count;   // 0: none
    float *centroids; // [count][row dims]; owned
    int is_residual;  // codes are of rows less their centroids
    // What a sample found by codes of both kinds, where encode chose by that; else 0.
    double residual_recall, plain_recall;
    // .vectors files have a row at each place; else in the order of the source, as programs before
    // wrote them.
    int has_ordered_vectors;
};

// What searches that look at some of an index's lists find: a table that was measured once, when
// the index was made (coordinator/calibrate), and is kept in its manifest. A search that is asked
// for a recall takes its settings from there (coordinator/search/search_settings.h).
#define BSW_MAX_CALIBRATION_ENTRIES 1024

struct bsw_calibration_entry {
    uint32_t probe;      // lists a query at most: 1 .. number of lists
    double ratio;        // as struct bsw_probe_settings has it; 0: none
    double oversample;   // candidates that get exact values, times k: 1 .. 10000
    double recall;       // k-recall@k: 0 .. 1
    double rows_a_query; // looked at, with places that no row has
    uint32_t scan_dims;  // padded dimensions that keys are made of, the first ones; 0: all
};

enum bsw_calibration_source { BSW_CALIBRATED_BY_ROWS, BSW_CALIBRATED_BY_QUERIES };
const char *bsw_calibration_source_name(enum bsw_calibration_source source); // "rows", "queries"

// Entries by ascending recall, none twice: each finds more than all before it.
struct bsw_calibration {
    uint32_t k;           // that recall is of; 1 .. 10000
    uint64_t num_queries; // that it was measured with
    enum bsw_calibration_source source;
    uint32_t padded_dims; // of a whole code; the manifest's, not written here
    uint32_t num_entries; // 0: no table
    struct bsw_calibration_entry *entries;
};

void bsw_calibration_deinit(struct bsw_calibration *calibration); // accepts {0}

// What a search of rows of the sample by their codes has found
// (coordinator/encode/code_check.h), which people are told.
#define BSW_CODE_CHECK_K          10
#define BSW_CODE_CHECK_CANDIDATES 50
#define BSW_CODE_CHECK_LEAST      0.9 // a lower recall is worth a warning
struct bsw_code_check {
    uint32_t num_queries, num_rows; // 0: nothing was measured
    double recall;                  // of the nearest K among the best CANDIDATES by code
    char cause[192];                // of a low one, and of rows that lie far out; or ""
};

static inline int bsw_code_check_is_low(const struct bsw_code_check *check)
{
    return check->num_queries > 0 && check->recall < BSW_CODE_CHECK_LEAST;
}

// Shards that were made in one go, by encode, append or compact (docs/living.md).
#define BSW_PART_NAME_BYTES 16
struct bsw_index_part {
    char folder[BSW_PART_NAME_BYTES]; // in that of the index: "part-00001"; "": its own
    uint32_t num_shards;
    uint64_t build_digest; // in the headers of its files
    char source_path[BSW_PATH_BYTES];
    uint64_t source_file_bytes, source_rows, source_shift;
    int source_is_copied, has_ordered_vectors;
    uint64_t ids_digest, tags_digest;
};

struct bsw_manifest {
    uint64_t build_digest; // of all parameters and the source's digest; in every shard's header
    uint64_t first_row;    // id of the first encoded row
    uint64_t num_rows;     // encoded rows, dropped ones included
    uint64_t dropped_rows;
    enum bsw_metric metric;
    const struct bsw_codec *codec;
    struct bsw_code_layout layout; // holds dims: of codes
    uint32_t row_dims;             // of rows and queries; 0: those of codes
    double bits;                   // the average asked for
    uint32_t stage_dims;           // where a first stage may end; layout.dims: no stage
    int32_t scale_exponent;        // a stored scale is half * 2^scale_exponent
    int32_t tail_exponent;         // a stored tail is half * 2^tail_exponent
    uint32_t code_rule;            // of the codec, which alone reads it: struct bsw_codec
    float codec_number;            // a number that the codec alone reads
    void *part;                    // what else it alone reads, or NULL; owned: codec->free_part

    struct bsw_manifest_lists lists;
    struct bsw_calibration calibration; // of lists; not in build_digest; entries are owned

    struct bsw_code_check check; // not in build_digest

    uint32_t num_shards;
    struct bsw_shard_entry *shards; // [num_shards]; owned
    uint32_t num_known;             // queries with known answers in every shard; 0: none
    uint64_t *known;                // bsw_manifest_known says where; owned

    char source_path[BSW_PATH_BYTES]; // relative to the index folder, absolute, or synth:...
    enum bsw_vector_type source_type;
    uint64_t source_file_bytes; // 0 for synth:
    uint64_t source_rows;       // of the whole source
    uint64_t source_digest;     // sum over encoded rows of bsw_row_digest; without dropped ones
                                // where lists.has_ordered_vectors
    int source_is_copied;       // the index has .vectors files
    uint64_t source_shift;      // id of a row less its number in the source, modulo 2^64
    uint64_t ids_digest;        // XXH3 of the ids that rows have beside their numbers; 0: none
    uint64_t tags_digest;       // XXH3 of the tags that rows have; 0: none

    // Changes since the index was made; 0: none, and no parts. Else the parts have what the members
    // above say of the source, which are then those of the first part, but for source_digest.
    uint64_t generation;
    uint32_t num_parts;
    struct bsw_index_part *parts; // [num_parts], in the order of their shards; owned
};

static inline int bsw_manifest_is_living(const struct bsw_manifest *manifest)
{
    return manifest->generation > 0 || manifest->source_shift != 0 || manifest->ids_digest != 0;
}

// Whether there is a bias beside the codes of a row.
static inline int bsw_manifest_has_biases(const struct bsw_manifest *manifest)
{
    uint32_t biasless = manifest->codec->biasless_rule;
    return manifest->codec->has_affine && (biasless == 0 || manifest->code_rule < biasless);
}

// As the manifest has it.
static inline int bsw_manifest_format_version(const struct bsw_manifest *manifest)
{
    if (manifest->tags_digest != 0) return BSW_TAGGED_FORMAT_VERSION;
    if (bsw_manifest_is_living(manifest)) return BSW_LIVING_FORMAT_VERSION;
    if (manifest->code_rule > 0) return BSW_RULED_FORMAT_VERSION;
    if (manifest->lists.count == 0) return BSW_INDEX_FORMAT_VERSION;
    return manifest->lists.has_ordered_vectors ? BSW_ORDERED_FORMAT_VERSION
                                               : BSW_LISTS_FORMAT_VERSION;
}

// Digest of one raw row: XXH3 of its bytes, seeded with its id. Sums of these do not depend on how
// rows are cut.
uint64_t bsw_row_digest(const void *row, size_t bytes, uint64_t row_id);

// Dimensions of raw rows and queries.
static inline uint32_t bsw_manifest_row_dims(const struct bsw_manifest *manifest)
{
    return manifest->row_dims > 0 ? manifest->row_dims : manifest->layout.dims;
}

// Padded dimensions of the first stage of a progressive scan, or 0 if the codes have none: it must
// end between two words, so no segment before its end may have padding.
uint32_t bsw_manifest_stage(const struct bsw_manifest *manifest);

// num_shards and shards: so many equal parts of the rows, which first_row and num_rows tell.
// Digests and sizes of files are 0; what shards held is overwritten, not freed.
enum bsw_status bsw_manifest_cut_shards(struct bsw_manifest *manifest, uint64_t num_shards,
                                        struct bsw_error *err);

// Answers of a shard, borrowed from the manifest.
struct bsw_known_answers bsw_manifest_known(const struct bsw_manifest *manifest, uint32_t shard);
// Room for answers of num_queries queries, once dropped rows are known: sets num_known, known, and
// where each shard's begin.
enum bsw_status bsw_manifest_reserve_known(struct bsw_manifest *manifest, uint32_t num_queries,
                                           struct bsw_error *err);

// build_digest from everything else but the shards' digests, known answers and calibration.
enum bsw_status bsw_manifest_build_digest(const struct bsw_manifest *manifest, uint64_t *out,
                                          struct bsw_error *err);

// The bytes of the file, digest included, replacing what the buffer held; bsw_manifest_parse takes
// them.
enum bsw_status bsw_manifest_pack(const struct bsw_manifest *manifest, struct bsw_buffer *out,
                                  struct bsw_error *err);

// Writes FOLDER/manifest.pb atomically.
enum bsw_status bsw_manifest_write(const struct bsw_manifest *manifest, const char *folder,
                                   struct bsw_error *err);

// Checks the bytes of a manifest, `name` in error texts: digest, ranges, shard rows that follow
// each other, layout, and by its codec, which is one of `codecs` (ends with NULL), the codec's
// part. Wrong content is BSW_ERROR_BAD_DATA. bsw_manifest_deinit frees. shard/codecs/codec.h has
// bsw_manifest_parse and bsw_manifest_read, with all codecs there are.
enum bsw_status bsw_manifest_unpack(const struct bsw_codec *const *codecs, const char *name,
                                    const void *data, size_t bytes, struct bsw_manifest *out,
                                    struct bsw_error *err);
void bsw_manifest_deinit(struct bsw_manifest *manifest);

// ---- parts (manifest_parts.c) ----

// Where a shard lies and what its rows came from. Borrowed from the manifest.
struct bsw_shard_home {
    uint32_t shard, num_shards; // of the part
    const char *folder;         // as struct bsw_index_part has it
    uint64_t build_digest;
    const char *source_path;
    uint64_t source_file_bytes, source_rows, source_shift;
    int source_is_copied, has_ordered_vectors;
};
struct bsw_shard_home bsw_manifest_home(const struct bsw_manifest *manifest, uint32_t shard);

// What an index without parts is as one: of the folder's own.
void bsw_manifest_as_part(const struct bsw_manifest *manifest, struct bsw_index_part *out);

// Rows that searches can find.
uint64_t bsw_manifest_live_rows(const struct bsw_manifest *manifest);
static inline uint64_t bsw_shard_live_rows(const struct bsw_shard_entry *entry)
{
    return entry->num_rows - entry->dropped_rows - entry->deleted_rows;
}

// A file of a shard: suffix ".codes", ".vectors", ".lists", in the index `folder`.
enum bsw_status bsw_manifest_shard_path(char out[BSW_PATH_BYTES],
                                        const struct bsw_manifest *manifest, const char *folder,
                                        uint32_t shard, const char *suffix, struct bsw_error *err);

// Whether a name in an index folder is that of a part: "part-00001". number may be NULL.
int bsw_index_part_is_named(const char *name, uint32_t *number);

// ---- paths (index_paths.c) ----

// "shard-00003-of-00016" + suffix (".codes", ".vectors") in folder.
enum bsw_status bsw_shard_path(char out[BSW_PATH_BYTES], const char *folder, uint32_t shard,
                               uint32_t num_shards, const char *suffix, struct bsw_error *err);

// Bytes a row takes in a shard of many rows, without the 3/8 of masks and row digests: its codes
// and what stands beside them.
double bsw_manifest_row_bytes(const struct bsw_manifest *manifest);

// 1 unless rows are nowhere to be read: those that a model makes of text, without a copy.
int bsw_manifest_has_rows(const struct bsw_manifest *manifest);

// The path of the source as seen from here: source_path resolved against the index folder.
enum bsw_status bsw_manifest_source(const struct bsw_manifest *manifest, const char *folder,
                                    char out[BSW_PATH_BYTES], struct bsw_error *err);
// That of a shard, resolved against the folder of its part.
enum bsw_status bsw_shard_source(const struct bsw_shard_home *home, const char *folder,
                                 char out[BSW_PATH_BYTES], struct bsw_error *err);

// `source` relative to `folder` (both existing), or unchanged for synth:.
enum bsw_status bsw_source_relative(const char *source, const char *folder,
                                    char out[BSW_PATH_BYTES], struct bsw_error *err);

BSW_C_END
#endif
