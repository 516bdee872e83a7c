// SPDX-License-Identifier: Apache-2.0
// xfbq and saq on a GPU: both may have a frame that rows are projected to.
#include "shard/codecs/codec_saq.h"
#include "shard/codecs/codec_xfbq.h"
#include "shard/codecs/device_coder.h"

// ---- frames ----

void bsw_frame_plan(const struct bsw_manifest *manifest, const struct bsw_saq_frame *frame,
                    struct bsw_coder_needs *out)
{
    size_t mean = bsw_saq_row_dims(frame) * sizeof(float),
           projected = frame->rotation ? frame->layout.padded_dims * sizeof(float) : 0;
    out->models[BSW_FRAME_MEAN].data = frame->mean;
    out->models[BSW_FRAME_MEAN].bytes = mean;
    out->models[BSW_FRAME_ROTATION].data = frame->rotation;
    out->models[BSW_FRAME_ROTATION].bytes = bsw_saq_row_dims(frame) * projected;
    out->room_bytes[BSW_FRAME_CENTRED] = mean;
    out->room_bytes[BSW_FRAME_PROJECTED] = projected;
    out->room_bytes[BSW_FRAME_MEAN_DOTS] = sizeof(float);
    if (!manifest->lists.is_residual) return;
    out->models[BSW_FRAME_CENTROIDS].data = manifest->lists.centroids;
    out->models[BSW_FRAME_CENTROIDS].bytes = manifest->lists.count * mean;
}

enum bsw_status bsw_frame_start(const struct bsw_coder_piece *piece, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = piece->manifest;
    if (!manifest->lists.is_residual) return BSW_OK;
    int code = bsw_device_center_lists(
        piece->models[BSW_FRAME_MEAN], bsw_manifest_row_dims(manifest), manifest->lists.count,
        piece->models[BSW_FRAME_CENTROIDS], bsw_device_stream(piece->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(piece->device, code, "center lists", err);
}

struct bsw_saq_frame bsw_frame_on_device(const struct bsw_coder_piece *piece,
                                         const struct bsw_saq_frame *frame)
{
    struct bsw_saq_frame out = *frame;
    out.mean = piece->models[BSW_FRAME_MEAN];
    out.rotation = piece->models[BSW_FRAME_ROTATION];
    return out;
}

enum bsw_status bsw_frame_launch(const struct bsw_coder_piece *piece,
                                 const struct bsw_saq_frame *frame, float *mean_dots, float *norms,
                                 struct bsw_error *err)
{
    const struct bsw_saq_frame own = bsw_frame_on_device(piece, frame);
    const struct bsw_device_raw_rows *rows = &piece->rows;
    float *centred = piece->rooms[BSW_FRAME_CENTRED];
    bsw_stream stream = bsw_device_stream(piece->device, BSW_QUEUE_SCAN);
    int code = bsw_device_saq_center(&own, rows, centred,
                                     mean_dots ? mean_dots : piece->rooms[BSW_FRAME_MEAN_DOTS],
                                     piece->faults, stream);
    BSW_TRY(bsw_device_launched(piece->device, code, "center", err));
    if (piece->lists) {
        code = bsw_device_subtract_lists(piece->models[BSW_FRAME_CENTROIDS], piece->lists,
                                         rows->dims, rows->num_rows, centred, norms, stream);
        BSW_TRY(bsw_device_launched(piece->device, code, "subtract lists", err));
    }
    if (!frame->rotation) return BSW_OK;
    code = bsw_device_saq_project(&own, centred, rows->num_rows, piece->rooms[BSW_FRAME_PROJECTED],
                                  stream);
    return bsw_device_launched(piece->device, code, "project", err);
}

// ---- xfbq ----

static void xfbq_plan(const struct bsw_manifest *manifest, struct bsw_coder_needs *out)
{
    struct bsw_saq_frame frame;
    if (bsw_xfbq_frame(manifest, &frame)) bsw_frame_plan(manifest, &frame, out);
}

static enum bsw_status xfbq_launch(const struct bsw_coder_piece *piece, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = piece->manifest;
    bsw_stream stream = bsw_device_stream(piece->device, BSW_QUEUE_SCAN);
    struct bsw_saq_frame frame;
    int code;
    if (bsw_xfbq_frame(manifest, &frame)) {
        BSW_TRY(bsw_frame_launch(piece, &frame, NULL, NULL, err));
        code = bsw_device_encode_xfbq_rotated(&frame, piece->rooms[BSW_FRAME_PROJECTED],
                                              piece->rows.num_rows, manifest->codec_number,
                                              piece->planes[0], stream);
    } else {
        code = bsw_device_encode_xfbq(&piece->rows, manifest->codec_number,
                                      manifest->layout.segments[0].bits, piece->planes[0],
                                      piece->faults, stream);
    }
    return bsw_device_launched(piece->device, code, "encode", err);
}

const struct bsw_device_coder bsw_device_coder_xfbq = {.plan = xfbq_plan, .launch = xfbq_launch};

// ---- saq ----

enum { CENTROIDS_PROJECTED = BSW_FRAME_MODELS }; // a model that is made on the device
// The last three are there where biases of residuals need them.
enum { MEAN_DOTS, NORMS, SCALES, TAILS, ROW_NORMS, EXACT, CODED, NUM_RESULTS };
_Static_assert(NUM_RESULTS <= BSW_CODER_RESULTS, "results of saq");
_Static_assert(CENTROIDS_PROJECTED < BSW_CODER_MODELS, "models of saq");

static void saq_plan(const struct bsw_manifest *manifest, struct bsw_coder_needs *out)
{
    struct bsw_saq_frame frame;
    bsw_frame_of_manifest(manifest, &frame);
    bsw_frame_plan(manifest, &frame, out);
    out->num_results = ROW_NORMS;
    if (!bsw_saq_corrects_lists(manifest)) return;
    out->num_results = NUM_RESULTS;
    out->models[CENTROIDS_PROJECTED].bytes =
        manifest->lists.count * out->room_bytes[BSW_FRAME_PROJECTED];
}

static enum bsw_status saq_start(const struct bsw_coder_piece *piece, struct bsw_error *err)
{
    struct bsw_saq_frame frame;
    BSW_TRY(bsw_frame_start(piece, err));
    if (!bsw_saq_corrects_lists(piece->manifest)) return BSW_OK;
    bsw_frame_of_manifest(piece->manifest, &frame);
    frame = bsw_frame_on_device(piece, &frame);
    int code = bsw_device_saq_project(
        &frame, piece->models[BSW_FRAME_CENTROIDS], piece->manifest->lists.count,
        piece->models[CENTROIDS_PROJECTED], bsw_device_stream(piece->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(piece->device, code, "project lists", err);
}

static enum bsw_status saq_launch(const struct bsw_coder_piece *piece, struct bsw_error *err)
{
    const float *projected = piece->rooms[BSW_FRAME_PROJECTED];
    uint32_t num_rows = piece->rows.num_rows;
    bsw_stream stream = bsw_device_stream(piece->device, BSW_QUEUE_SCAN);
    int has_corrections = bsw_saq_corrects_lists(piece->manifest);
    struct bsw_saq_frame frame;
    struct bsw_device_saq_codes codes = {.norms = piece->results[NORMS],
                                         .scales = piece->results[SCALES],
                                         .tails = piece->results[TAILS]};
    bsw_frame_of_manifest(piece->manifest, &frame);
    for (uint32_t s = 0; s < frame.layout.num_segments; s++) codes.planes[s] = piece->planes[s];
    BSW_TRY(bsw_frame_launch(piece, &frame, piece->results[MEAN_DOTS],
                             has_corrections ? piece->results[ROW_NORMS] : NULL, err));
    int code = bsw_device_saq_quantize(&frame, projected, num_rows, &codes, stream);
    BSW_TRY(bsw_device_launched(piece->device, code, "quantize", err));
    if (!has_corrections) return BSW_OK;
    const struct bsw_device_list_products products = {.lists = piece->lists,
                                                      .centroids =
                                                          piece->models[CENTROIDS_PROJECTED],
                                                      .norms = codes.norms,
                                                      .exact = piece->results[EXACT],
                                                      .coded = piece->results[CODED]};
    code = bsw_device_saq_list_products(&frame, projected, num_rows, &products, stream);
    return bsw_device_launched(piece->device, code, "products with lists", err);
}

static void saq_store(const struct bsw_manifest *manifest, void *const *results, size_t row,
                      size_t count, const struct bsw_code_arrays *arrays)
{
    const float *floats[NUM_RESULTS] = {0};
    const uint32_t *tails = results[TAILS];
    int has_corrections = bsw_saq_corrects_lists(manifest);
    for (int i = 0; i < (has_corrections ? NUM_RESULTS : ROW_NORMS); i++)
        floats[i] = (const float *)results[i] + row;
    bsw_store_affine(manifest, count, floats[NORMS], floats[SCALES], tails + row, floats[MEAN_DOTS],
                     arrays, row);
    for (size_t r = 0; r < count && has_corrections; r++)
        bsw_saq_store_bias(manifest, floats[ROW_NORMS][r], floats[MEAN_DOTS][r], floats[EXACT][r],
                           floats[CODED][r], arrays, row + r);
}

const struct bsw_device_coder bsw_device_coder_saq = {
    .plan = saq_plan, .start = saq_start, .launch = saq_launch, .store = saq_store};
