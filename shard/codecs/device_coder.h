// SPDX-License-Identifier: Apache-2.0
// A codec's part of an encode on a GPU: what device_encode_run.c keeps there for it, which kernels
// it queues, and what the host makes of what they give for each row.
#ifndef BITSWEEP_SHARD_DEVICE_CODER_H
#define BITSWEEP_SHARD_DEVICE_CODER_H

#include <stddef.h>
#include <stdint.h>

#include "common/device/device.h"
#include "common/files/index_manifest.h"
#include "common/files/shard_file.h"
#include "kernels/device_encode/device_encode.h"

#define BSW_CODER_MODELS  5
#define BSW_CODER_ROOMS   3
#define BSW_CODER_RESULTS 8

struct bsw_coder_needs {
    // The manifest's arrays, which stay on the device; data NULL: room that `start` fills.
    struct {
        const void *data;
        size_t bytes;
    } models[BSW_CODER_MODELS];
    size_t room_bytes[BSW_CODER_ROOMS]; // of a row: what a kernel leaves to the next
    int num_results;                    // of a row: a fault, one byte, then so many times 4 bytes
};

// Rows on the device, and everything of the above there. A result is [rows].
struct bsw_coder_piece {
    bsw_device *device; // kernels go to its BSW_QUEUE_SCAN
    const struct bsw_manifest *manifest;
    struct bsw_device_raw_rows rows;
    const uint32_t *lists; // [rows], where codes are residuals; else NULL
    void *models[BSW_CODER_MODELS], *rooms[BSW_CODER_ROOMS];
    uint8_t *faults;
    void *results[BSW_CODER_RESULTS];
    uint32_t *planes[BSW_MAX_SEGMENTS];
};

struct bsw_device_coder {
    void (*plan)(const struct bsw_manifest *manifest, struct bsw_coder_needs *out); // *out: {0}
    // Once, without rows. NULL: nothing is to be done.
    enum bsw_status (*start)(const struct bsw_coder_piece *piece, struct bsw_error *err);
    // Only enqueues. Writes faults, results and planes.
    enum bsw_status (*launch)(const struct bsw_coder_piece *piece, struct bsw_error *err);
    // Results, in host memory, of rows [row, row + count) of a block, to its arrays. NULL: there is
    // nothing beside the planes.
    void (*store)(const struct bsw_manifest *manifest, void *const *results, size_t row,
                  size_t count, const struct bsw_code_arrays *arrays);
};

extern const struct bsw_device_coder bsw_device_coder_xfbq, bsw_device_coder_saq;

// ---- shared by coders of rows that are centred, and of residuals ----

// Models and rooms of a frame.
enum { BSW_FRAME_MEAN, BSW_FRAME_ROTATION, BSW_FRAME_CENTROIDS, BSW_FRAME_MODELS };
enum { BSW_FRAME_CENTRED, BSW_FRAME_PROJECTED, BSW_FRAME_MEAN_DOTS };

// What a frame of the manifest, with rotation NULL where there is none, takes of both.
void bsw_frame_plan(const struct bsw_manifest *manifest, const struct bsw_saq_frame *frame,
                    struct bsw_coder_needs *out);
// Centroids less the mean.
enum bsw_status bsw_frame_start(const struct bsw_coder_piece *piece, struct bsw_error *err);
// The frame with its arrays on the device.
struct bsw_saq_frame bsw_frame_on_device(const struct bsw_coder_piece *piece,
                                         const struct bsw_saq_frame *frame);
// Rows prepared, centred, less their centroids, and projected where there is a rotation. mean_dots:
// NULL: nobody needs them. norms: squares of rows before centroids were taken off, or NULL.
enum bsw_status bsw_frame_launch(const struct bsw_coder_piece *piece,
                                 const struct bsw_saq_frame *frame, float *mean_dots, float *norms,
                                 struct bsw_error *err);

#endif
