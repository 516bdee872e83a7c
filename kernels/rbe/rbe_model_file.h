// SPDX-License-Identifier: Apache-2.0
// model.rbe: a learned model, all that coding a row needs.
//
// Protobuf (common/bitsweep.proto, RbeModel) whose last field is the XXH3 of all bytes before it.
// It holds no time, host or path, so the same training gives the same bytes.
#ifndef BITSWEEP_KERNELS_RBE_MODEL_FILE_H
#define BITSWEEP_KERNELS_RBE_MODEL_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "kernels/rbe/rbe_gradient.h"
#include "kernels/rbe/rbe_model.h"
#include "kernels/text/text_network.h"

#define BSW_RBE_MODEL_VERSION   2 // of float queries; all others are written as version 1
#define BSW_RBE_MODEL_MAX_BYTES (1ull << 31) // protobuf ends there

enum bsw_rbe_side_kind { BSW_RBE_QUERY, BSW_RBE_DOCUMENT, BSW_RBE_NUM_SIDES };

// Input of the layers: (row * factor - mean) * scale, rounded at each operation.
struct bsw_rbe_side {
    struct bsw_rbe_shape shape;
    float *mean; // [dims]; owned
    float scale;
    float *parameters; // [bsw_rbe_num_parameters]; owned
};

// What it was trained with: for people.
struct bsw_rbe_origin {
    enum bsw_rbe_estimator estimator;
    double gamma, rate, train_loss, validation_loss; // validation_loss 0: none
    uint64_t negatives, batch, epochs, seed, pairs;
    uint32_t ranks;
};

// What stands in front of a model of texts: vocabulary.num_grams 0 if nothing does.
struct bsw_rbe_text_network {
    struct bsw_text_vocabulary vocabulary; // owned, as parameters
    float *parameters[BSW_RBE_NUM_SIDES];  // [bsw_text_num_parameters of num_grams, dims]
};

struct bsw_rbe_model {
    enum bsw_metric metric; // whose factor rows get, and whose neighbours were learned
    int has_projection;     // scales by projection, not by norm: rbe_coders.h
    int32_t scale_exponent; // with projection, -126 .. 126: as the manifest's
    int is_smooth;          // tanh in place of signs: for comparison, has no codes
    int has_float_queries;  // so for the query's side alone, of no steps: the paper's m_5
    struct bsw_rbe_side sides[BSW_RBE_NUM_SIDES]; // dims and code_dims of both agree
    // Rows are its outputs: inputs of the layers as they are, of factor 1, mean 0 and scale 1.
    struct bsw_rbe_text_network text;
    struct bsw_rbe_origin origin;
    uint64_t digest; // of the file: set by reading and packing
};

const char *bsw_rbe_estimator_name(enum bsw_rbe_estimator estimator);
enum bsw_status bsw_rbe_estimator_parse(const char *text, enum bsw_rbe_estimator *out,
                                        struct bsw_error *err);

// The version that the model is written as.
static inline uint32_t bsw_rbe_model_version(const struct bsw_rbe_model *model)
{
    return model->has_float_queries ? BSW_RBE_MODEL_VERSION : 1;
}

// Arrays of a side, uninitialised, for the shape in it. bsw_rbe_model_deinit frees.
enum bsw_status bsw_rbe_side_allocate(struct bsw_rbe_side *side, struct bsw_error *err);
void bsw_rbe_model_deinit(struct bsw_rbe_model *model);

// The bytes of the file, replacing what the buffer held.
enum bsw_status bsw_rbe_model_pack(struct bsw_rbe_model *model, struct bsw_buffer *out,
                                   struct bsw_error *err);
// Writes atomically. Refuses what reading would refuse.
enum bsw_status bsw_rbe_model_write(struct bsw_rbe_model *model, const char *path,
                                    struct bsw_error *err);

// Reads and checks: digest, version, ranges, sizes of arrays, numbers that are finite. A missing
// file is BSW_ERROR_IO, wrong content BSW_ERROR_BAD_DATA.
enum bsw_status bsw_rbe_model_read(const char *path, struct bsw_rbe_model *out,
                                   struct bsw_error *err);
enum bsw_status bsw_rbe_model_parse(const char *name, const void *data, size_t bytes,
                                    struct bsw_rbe_model *out, struct bsw_error *err);

// BSW_ERROR_USAGE for a model that has no codes: smooth, or without residual weights (they exist
// to be compared in training).
enum bsw_status bsw_rbe_model_check_codes(const struct bsw_rbe_model *model, const char *name,
                                          struct bsw_error *err);

#endif
