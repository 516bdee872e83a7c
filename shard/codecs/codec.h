// SPDX-License-Identifier: Apache-2.0
// A codec: what it is called, what it can do, and the functions that code rows and queries by it.
//
// Each codec is a file, codec_X.c, and a word of the list below. Nobody else names one:
// commands ask what a codec can do. What manifests and shard files must know of it is struct
// bsw_codec (common/files/index_manifest.h); the rest is its table here. A NULL function is
// something that the codec does not need.
//
// All codecs code queries in planes of odd integers or in bytes (common/codes/code_layout.h), so
// that the same scans serve all of them. Keys and codes are functions of manifest and row, the same
// bits on every machine and for any number of threads and ranks.
#ifndef BITSWEEP_SHARD_CODEC_H
#define BITSWEEP_SHARD_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "common/files/index_manifest.h"
#include "common/files/shard_file.h"
#include "common/net/transport.h"
#include "kernels/encode/encode.h"
#include "shard/codecs/sample.h"

struct bsw_table_scan_table; // kernels/table_scan/table_scan.h
struct bsw_product_codes;    // shard/codecs/product_codes.h
struct bsw_device_coder;     // shard/codecs/device_coder.h

enum bsw_stage_choice {
    BSW_STAGE_DEFAULT, // as the model says, without one BSW_STAGE_AUTO
    BSW_STAGE_AUTO,    // by the sample
    BSW_STAGE_GIVEN
};

// What encode is asked for. NULL or 0: nothing was said.
struct bsw_codec_settings {
    double bits;          // a dimension
    const char *segments; // "auto", "32x4,96x2": dims x bits
    int random_axes, has_scale;
    double scale; // with has_scale
    enum bsw_stage_choice stage;
    uint64_t stage_dims; // with BSW_STAGE_GIVEN: 0 or more than there are: no stage
    const char *model;
    uint64_t parts;       // of product codes
    const char *rotation; // with has_rotation: "opq" (of product codes), "random", "none"
    int has_radii;        // of product codes: radii of queries' projections (product_radii.h)
    uint64_t seed;
    int may_have_fewer_bits; // set by check_settings: bits is a limit
    int has_usual_rotation;  // set by check_settings: none was asked for
    int variant;             // of training; 0: the usual one. Set by vary
};

// An index that plan lays out without its rows.
struct bsw_codec_forecast {
    uint64_t dims, code_dims, stage;
    double bits;
    const char *segments;
    uint32_t query_bits; // that a model has; 0: the usual
    uint64_t parts;
    int has_radii;
};

// A model file beside the manifest, and what was made of it.
struct bsw_codec_model {
    const struct bsw_codec *codec;
    struct bsw_buffer bytes; // of the file, where encode takes it from another folder
    void *coders;            // owned
};

#define BSW_TILE_MAX_ROWS 128
#define BSW_CODEC_FACTS   2

// A tile of rows to code.
struct bsw_codec_tile {
    const struct bsw_manifest *manifest;
    const struct bsw_encode_table *kernels;
    const struct bsw_table_scan_table *tables;
    size_t num_rows;              // 1 .. BSW_TILE_MAX_ROWS
    const unsigned char *numbers; // [num_rows] raw rows of row_bytes
    size_t row_bytes;
    const float *rows;     // [num_rows][row dims] as bsw_prepare_rows has them, with their factors;
    const float *factors;  // both NULL where takes_numbers
    void *scratch;         // table->tile_scratch_bytes
    const uint32_t *lists; // [num_rows] of rows where codes are residuals; else NULL
};

// One query to code.
struct bsw_codec_query {
    const struct bsw_manifest *manifest;
    const struct bsw_encode_table *kernels;
    const float *row; // [row dims]
    float factor;     // of bsw_prepare_rows
    uint32_t query_bits;
    void *scratch; // table->query_scratch_bytes, 64-byte aligned
};

// What multiplies half(scale_d) * dot in a key, or is added to a whole key.
union bsw_query_number {
    float scale;
    int32_t constant;
};

// How the key of a query becomes the value that is reported: (key + addend) * unit under cosine and
// ip, addend - key under l2.
struct bsw_value_terms {
    float addend, unit;
};

struct bsw_codec_fact {
    const char *name;   // in JSON
    const char *format; // in a listing, with %s or %g
    double number;      // if text is empty
    char text[64];      // else the value
};

// What a manifest says of its model.
struct bsw_codec_model_facts {
    uint64_t digest;
    uint32_t query_planes;
};

struct bsw_codec_table {
    // ---- what it can do ----
    uint32_t metrics;        // bit 1 << metric
    int has_exact_keys;      // keys are the exact values: nothing is left to refine
    int has_distances;       // keys are distances of planes, which XFBQ's histogram counts
    int has_matrix;          // a row or query is multiplied by a matrix
    int has_parts;           // product codes of so many parts
    int has_rotation;        // takes --rotation
    int has_segments;        // bits differ from dimension to dimension
    int has_model;           // needs a model file
    int needs_sample;        // training looks at rows
    int keeps_far_rows;      // also at those that lie far out, where they are many
    int has_whole_bits;      // no fractions of --bits
    double fixed_bits;       // --bits can only be this; 0: it is asked for
    int takes_numbers;       // codes rows as they are, not as floats
    int has_residuals;       // codes rows less their centroids where a manifest says so
    int always_residuals;    // and does so with lists unless told otherwise, whatever the bits
    int worth_a_device;      // encoding is quicker on a GPU
    const char *host_encode; // what to say of encode on a GPU, where there is none: "--codec rbe"
    // Rows on a GPU; NULL: the CPU codes them, too where `host_encode` does not refuse a GPU.
    const struct bsw_device_coder *device_coder;

    // ---- encode: settings, training ----
    // What only makes sense together, before anything is opened; fills in defaults.
    enum bsw_status (*check_settings)(struct bsw_codec_settings *settings, struct bsw_error *err);
    // Whether it takes rows of this type and so many dims; source is for messages.
    enum bsw_status (*check_rows)(const struct bsw_codec_settings *settings, const char *source,
                                  enum bsw_vector_type type, uint32_t dims, struct bsw_error *err);
    // Another way to train where the usual one gives poor codes of a sample, and nothing that was
    // asked for rules it out: 0 where there is none any more. NULL: there is none.
    int (*vary)(struct bsw_codec_settings *settings);
    // Rank 0: sets layout, bits, stage_dims and what else of the manifest is the codec's. dims: of
    // rows. sample: NULL without needs_sample. model: NULL without has_model; the manifest borrows.
    enum bsw_status (*train)(const struct bsw_codec_settings *settings, uint32_t dims,
                             struct bsw_sample *sample, const struct bsw_codec_model *model,
                             struct bsw_manifest *manifest, struct bsw_error *err);
    // The same without rows: layout and what else decides sizes. Bits are settled. NULL:
    // bsw_codec_lay_out_whole does it.
    enum bsw_status (*forecast)(const struct bsw_codec_forecast *forecast,
                                struct bsw_manifest *manifest, struct bsw_error *err);

    // ---- models (has_model): called by the functions of that name below ----
    enum bsw_status (*open_model)(const char *path, uint32_t dims, enum bsw_cpu_level level,
                                  struct bsw_transport *transport, struct bsw_codec_model *out,
                                  struct bsw_error *err);
    enum bsw_status (*open_index_model)(const char *folder, const struct bsw_manifest *manifest,
                                        enum bsw_cpu_level level, struct bsw_codec_model *out,
                                        struct bsw_error *err);
    void (*lend_model)(const struct bsw_codec_model *model, struct bsw_manifest *manifest);
    void (*close_model)(struct bsw_codec_model *model);

    // ---- rows ----
    size_t (*tile_scratch_bytes)(const struct bsw_manifest *manifest, size_t num_rows);
    // Codes of a tile from bundle `bundle` of arrays on, which hold 0.
    void (*encode_tile)(const struct bsw_codec_tile *tile, const struct bsw_code_arrays *arrays,
                        size_t bundle);

    // ---- queries ----
    uint32_t query_bits; // unless a search says otherwise; 0: what settle_query_bits says
    // What a search of index `name` takes; asked 0: nothing was given.
    enum bsw_status (*settle_query_bits)(const struct bsw_manifest *manifest, const char *name,
                                         uint32_t asked, uint32_t *out, struct bsw_error *err);
    // Whether a query of finite numbers can be coded; name and row are for messages.
    enum bsw_status (*check_query)(const struct bsw_manifest *manifest, const char *name,
                                   uint64_t row, const float *numbers, struct bsw_error *err);
    // uint32 words of a coded query; NULL: bsw_layout_query_words.
    size_t (*query_words)(const struct bsw_manifest *manifest);
    size_t (*query_scratch_bytes)(const struct bsw_manifest *manifest);
    // What a query is multiplied by, besides its factor: keys then are so many times what they
    // stand for. NULL: nothing.
    float (*query_factor)(const struct bsw_manifest *manifest, const float *row);
    // words: bsw_query_words, which hold 0. value = key + addend (cosine, ip) or addend -
    // key (l2); *addend 0 where `value` is there.
    void (*encode_query)(const struct bsw_codec_query *query, uint32_t *words,
                         union bsw_query_number *number, float *addend);
    // With has_residuals: what queries and rows are centred by, [row dims]. A key lacks the product
    // of query and centroid, both centred, the query with its factors (under ip it has the one of
    // bsw_ip_query_factor); under l2 twice that. NULL
    // for a metric of which keys lack nothing.
    const float *(*center)(const struct bsw_manifest *manifest);
    // For a codec of tables: what they are made from, borrowed from the manifest, and the words of
    // a query for known answers.
    const struct bsw_product_codes *(*product)(const struct bsw_manifest *manifest);
    void (*pin_query)(const struct bsw_manifest *manifest, uint64_t seed, uint32_t *words);
    // The value that a whole key stands for; NULL: keys are floats.
    float (*value)(const struct bsw_manifest *manifest, uint32_t query_bits, int32_t key);

    // ---- what info says ----
    // out: [BSW_CODEC_FACTS] of zeros; facts without a name are none.
    void (*describe)(const struct bsw_manifest *manifest, struct bsw_codec_fact *out);
    float (*step_of)(const struct bsw_manifest *manifest, uint32_t segment);
    void (*describe_model)(const struct bsw_manifest *manifest, struct bsw_codec_model_facts *out);
};

// ---- the list ----

// Their names, which are also those of their variables: bsw_codec_xfbq, ...
#define BSW_CODEC_LIST(CODEC, AND) \
    CODEC(xfbq) AND() CODEC(saq) AND() CODEC(rbe) AND() CODEC(raw) AND() CODEC(sq8) AND() CODEC(pq)

#define BSW_CODEC_NOTHING()
#define BSW_CODEC_BAR()       "|"
#define BSW_CODEC_TEXT(name)  #name
#define BSW_CODEC_ONE(name)   +1
#define BSW_CODEC_THERE(name) extern const struct bsw_codec bsw_codec_##name;

#define BSW_CODEC_NAMES       BSW_CODEC_LIST(BSW_CODEC_TEXT, BSW_CODEC_BAR) // choices of --codec
enum { BSW_NUM_CODECS = BSW_CODEC_LIST(BSW_CODEC_ONE, BSW_CODEC_NOTHING) };
BSW_CODEC_LIST(BSW_CODEC_THERE, BSW_CODEC_NOTHING)
extern const struct bsw_codec *const bsw_codecs[BSW_NUM_CODECS + 1]; // ends with NULL

// Settings of an encode that the codec does not have, or that contradict each other, are
// BSW_ERROR_USAGE; fills in defaults.
enum bsw_status bsw_codec_check_settings(const struct bsw_codec *codec,
                                         struct bsw_codec_settings *settings,
                                         struct bsw_error *err);

// NULL: none has that name.
const struct bsw_codec *bsw_codec_find(const char *name);
// BSW_ERROR_USAGE naming those there are.
enum bsw_status bsw_codec_parse(const char *text, const struct bsw_codec **out,
                                struct bsw_error *err);

// The metric of a codec that knows one alone, else NULL.
const char *bsw_codec_only_metric(const struct bsw_codec *codec);
enum bsw_status bsw_codec_check_metric(const struct bsw_codec *codec, enum bsw_metric metric,
                                       struct bsw_error *err);

// Bits of a query's component in a search: `asked`, or what the codec has.
enum bsw_status bsw_codec_query_bits(const struct bsw_manifest *manifest, const char *index,
                                     uint32_t asked, uint32_t *out, struct bsw_error *err);

// Whether rows of so many dims can take over what the index at `folder` has learned: it has the
// codec and the metric of `manifest`; model_dims: those of its rows. What differs is
// BSW_ERROR_USAGE.
enum bsw_status bsw_codec_check_model(const char *folder, const struct bsw_manifest *model,
                                      uint32_t model_dims, const struct bsw_manifest *manifest,
                                      uint32_t dims, struct bsw_error *err);

// An index of manifest->codec as encode would make it. Settings that only other codecs have are
// BSW_ERROR_USAGE.
enum bsw_status bsw_codec_forecast(const struct bsw_codec_forecast *forecast,
                                   struct bsw_manifest *manifest, struct bsw_error *err);

// ---- models; nothing is done for a codec that has none ----

// Opens the model that encode uses: rank 0 reads the file, all ranks get it; called by all, ends
// with an agreement. bsw_codec_model_close frees, also after a failure.
enum bsw_status bsw_codec_model_open(const struct bsw_codec *codec, const char *path, uint32_t dims,
                                     enum bsw_cpu_level level, struct bsw_transport *transport,
                                     struct bsw_codec_model *out, struct bsw_error *err);
// The one in the folder of an index, lent to the manifest: BSW_ERROR_BAD_DATA if it is not its own.
enum bsw_status bsw_codec_index_model_open(const char *folder, struct bsw_manifest *manifest,
                                           enum bsw_cpu_level level, struct bsw_codec_model *out,
                                           struct bsw_error *err);
// The manifest borrows what rows and queries are coded with.
void bsw_codec_model_lend(const struct bsw_codec_model *model, struct bsw_manifest *manifest);
void bsw_codec_model_close(struct bsw_codec_model *model); // accepts {0}

// "32x4,96x2", also what has no bits: "32x3,64x0".
void bsw_codec_format_segments(const struct bsw_manifest *manifest, char *text, size_t capacity);

// ---- shared by codecs ----

// Settles the bits of a codec without segments: BSW_ERROR_USAGE for those that it does not have,
// for
// --segments, --model and --stage.
enum bsw_status bsw_codec_check_plain(const struct bsw_codec *codec,
                                      struct bsw_codec_settings *settings, struct bsw_error *err);
// One segment of `dims` dimensions in `bits` planes, and no first stage.
enum bsw_status bsw_codec_lay_out_whole(struct bsw_manifest *manifest, uint32_t dims, double bits,
                                        struct bsw_error *err);

// ---- manifests of all codecs ----

// bsw_manifest_unpack of a codec of the list.
enum bsw_status bsw_manifest_parse(const char *name, const void *data, size_t bytes,
                                   struct bsw_manifest *out, struct bsw_error *err);
// The same of FOLDER/manifest.pb; a missing file is BSW_ERROR_IO.
enum bsw_status bsw_manifest_read(const char *folder, struct bsw_manifest *out,
                                  struct bsw_error *err);

#endif
