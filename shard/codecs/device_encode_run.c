// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/shard_encode.h"

#include <string.h>
#include <xxhash.h>

#include "common/base/memory.h"
#include "common/device/device_blocks.h"
#include "kernels/device_encode/device_encode.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/codec_saq.h"
#include "shard/codecs/codec_xfbq.h"

#define ALIGNMENT    ((size_t)256)
#define READ_BUNDLES 8 // that a thread reads at once

// What the device gives for each row beside its codes: one byte of enum bsw_row_fault; with a frame
// products with its mean; what else bsw_store_affine takes, of saq alone.
enum row_result { FAULTS, MEAN_DOTS, NORMS, SCALES, TAILS, NUM_RESULTS };
static const size_t result_bytes[NUM_RESULTS] = {1, sizeof(float), sizeof(float), sizeof(float),
                                                 sizeof(uint32_t)};

// Where frame and arrays of a piece of bundles lie in device memory.
struct piece_layout {
    size_t numbers[2], planes[BSW_MAX_SEGMENTS], results[NUM_RESULTS];
    size_t mean, rotation, centered, projected; // with a frame
    size_t bytes;
};

// A block on its way.
struct block_slot {
    struct bsw_encode_place place;
    uint64_t first_row; // of the shard
    size_t num_rows, num_bundles, bytes;
    unsigned char *image; // the block as it will be in the file
    struct bsw_code_arrays arrays;
    unsigned char *results[NUM_RESULTS]; // of a block's rows, in host memory that copies reach
    uint64_t source_digest;
};

struct encode_run {
    const struct bsw_device_encode_options *options;
    bsw_device *device;
    int is_saq, has_frame, is_lost, num_results;
    struct bsw_saq_frame host_frame; // with a frame: what the manifest has
    size_t row_bytes;
    size_t block_bundles, piece_bundles; // at most
    struct piece_layout layout;          // of piece_bundles
    struct bsw_device_buffer memory;
    struct bsw_saq_frame frame; // with a frame
    unsigned char *numbers[2];  // [piece_bundles * 32] raw rows in host memory
    unsigned turn;              // which of both the next piece takes
    struct block_slot slots[2];
};

static enum bsw_status wait_for(struct encode_run *run, enum bsw_device_queue queue,
                                struct bsw_error *err)
{
    enum bsw_status status = bsw_device_wait(run->device, queue, "encode", err);
    run->is_lost |= status != BSW_OK;
    return status;
}

// ---- memory ----

static void make_layout(const struct encode_run *run, size_t num_bundles, struct piece_layout *out)
{
    const struct bsw_code_layout *layout = &run->options->manifest->layout;
    size_t row_dims = bsw_manifest_row_dims(run->options->manifest);
    size_t rows = num_bundles * BSW_BUNDLE_ROWS, *bytes = &out->bytes;
    *out = (struct piece_layout){0};
    for (int i = 0; i < 2; i++)
        out->numbers[i] = bsw_place_array(rows * run->row_bytes, ALIGNMENT, bytes);
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        size_t words = num_bundles * bsw_segment_bundle_words(&layout->segments[s]);
        out->planes[s] = bsw_place_array(words * sizeof(uint32_t), ALIGNMENT, bytes);
    }
    for (int i = 0; i < run->num_results; i++)
        out->results[i] = bsw_place_array(rows * result_bytes[i], ALIGNMENT, bytes);
    if (!run->has_frame) return;
    out->mean = bsw_place_array(row_dims * sizeof(float), ALIGNMENT, bytes);
    out->rotation =
        bsw_place_array(sizeof(float) * row_dims * layout->padded_dims, ALIGNMENT, bytes);
    out->centered = bsw_place_array(rows * row_dims * sizeof(float), ALIGNMENT, bytes);
    out->projected = bsw_place_array(rows * layout->padded_dims * sizeof(float), ALIGNMENT, bytes);
}

static size_t most_block_bundles(const struct bsw_device_encode_options *options)
{
    size_t most = 0;
    for (uint64_t block = options->first; block < options->last; block++) {
        struct bsw_encode_place place;
        options->find(options->context, block, &place);
        size_t bundles = bsw_shard_block_bundles(&place.writer->shape, place.block);
        if (bundles > most) most = bundles;
    }
    return most;
}

// As many bundles at once as fit, a block at most.
static enum bsw_status choose_piece(struct encode_run *run, struct bsw_error *err)
{
    size_t free_bytes, low = 1, high = run->block_bundles;
    BSW_TRY(bsw_device_free_bytes(run->device, &free_bytes, err));
    make_layout(run, 1, &run->layout);
    if (run->layout.bytes > free_bytes) {
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY,
                        "%s: %zu bytes of device memory are free, %zu are needed at least",
                        bsw_device_label(run->device), free_bytes, run->layout.bytes);
    }
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        make_layout(run, middle, &run->layout);
        if (run->layout.bytes <= free_bytes)
            low = middle;
        else
            high = middle - 1;
    }
    make_layout(run, low, &run->layout);
    run->piece_bundles = low;
    return BSW_OK;
}

static enum bsw_status allocate_slot(struct encode_run *run, struct block_slot *slot,
                                     struct bsw_error *err)
{
    bsw_device *device = run->device;
    size_t rows = run->block_bundles * BSW_BUNDLE_ROWS;
    struct bsw_encode_place place;
    run->options->find(run->options->context, run->options->first, &place);
    BSW_TRY(bsw_device_allocate_host(device,
                                     run->block_bundles * place.writer->shape.bundle_bytes + 8,
                                     "a block", &slot->image, err));
    for (int i = 0; i < run->num_results; i++)
        BSW_TRY(bsw_device_allocate_host(device, rows * result_bytes[i], "rows", &slot->results[i],
                                         err));
    return BSW_OK;
}

// Mean and rotation to the device.
static enum bsw_status send_frame(struct encode_run *run, struct bsw_error *err)
{
    const struct bsw_saq_frame *host = &run->host_frame;
    const struct bsw_code_layout *layout = &host->layout;
    size_t mean_bytes = bsw_saq_row_dims(host) * sizeof(float);
    unsigned char *mean = run->memory.data + run->layout.mean,
                  *rotation = run->memory.data + run->layout.rotation;
    run->frame = *host;
    run->frame.mean = (const float *)(void *)mean;
    run->frame.rotation = (const float *)(void *)rotation;
    struct bsw_device_blocks blocks;
    BSW_TRY(bsw_device_blocks_open(run->device, BSW_DEVICE_BLOCK_BYTES, &blocks, err));
    enum bsw_status status =
        bsw_device_blocks_upload(&blocks, mean, host->mean, mean_bytes, "the frame", err);
    if (status == BSW_OK)
        status = bsw_device_blocks_upload(&blocks, rotation, host->rotation,
                                          mean_bytes * layout->padded_dims, "the frame", err);
    if (status == BSW_OK) status = wait_for(run, BSW_QUEUE_COPY, err);
    bsw_device_blocks_close(&blocks);
    return status;
}

static enum bsw_status open_run(struct encode_run *run, struct bsw_error *err)
{
    BSW_TRY(choose_piece(run, err));
    BSW_TRY(bsw_device_allocate(run->device, run->layout.bytes, "rows", &run->memory, err));
    for (int i = 0; i < 2; i++) {
        BSW_TRY(bsw_device_allocate_host(run->device,
                                         run->piece_bundles * BSW_BUNDLE_ROWS * run->row_bytes,
                                         "rows", &run->numbers[i], err));
        BSW_TRY(allocate_slot(run, &run->slots[i], err));
    }
    return run->has_frame ? send_frame(run, err) : BSW_OK;
}

// Nothing may be under way when memory goes; a device that does not answer keeps its own.
static void close_run(struct encode_run *run)
{
    bsw_device *device = run->device;
    if (!run->is_lost && wait_for(run, BSW_QUEUE_COPY, NULL) == BSW_OK)
        wait_for(run, BSW_QUEUE_SCAN, NULL);
    bsw_device_free(device, &run->memory);
    for (int i = 0; i < 2; i++) {
        bsw_device_free_host(device, &run->numbers[i]);
        bsw_device_free_host(device, &run->slots[i].image);
        for (int r = 0; r < NUM_RESULTS; r++)
            bsw_device_free_host(device, &run->slots[i].results[r]);
    }
}

// ---- reading ----

// Some bundles of the block: raw rows, their digests, and their copy in the .vectors file. `to` is
// where the rows go.
static enum bsw_status read_bundles(const struct encode_run *run, struct block_slot *slot,
                                    size_t bundle, size_t num_bundles, unsigned char *to,
                                    uint64_t *source_digest, struct bsw_error *err)
{
    const struct bsw_encode_place *place = &slot->place;
    size_t row = bundle * BSW_BUNDLE_ROWS, count = num_bundles * BSW_BUNDLE_ROWS;
    if (count > slot->num_rows - row) count = slot->num_rows - row;
    uint64_t id = place->writer->shape.first_row + slot->first_row + row;
    BSW_TRY(bsw_vectors_read(run->options->vectors, id, count, to, err));
    for (size_t r = 0; r < count; r++) {
        uint64_t digest = bsw_row_digest(to + r * run->row_bytes, run->row_bytes, id + r);
        slot->arrays.row_digests[bundle + r / BSW_BUNDLE_ROWS] += digest;
        *source_digest += digest;
    }
    return bsw_shard_writer_put_rows(place->writer, slot->first_row + row, to, count, err);
}

// With all threads; the fault of the lowest rows is the one reported.
static enum bsw_status read_piece(const struct encode_run *run, struct block_slot *slot,
                                  size_t first, size_t num_bundles, unsigned char *to,
                                  struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
    uint64_t source_digest = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : source_digest)
    for (size_t at = 0; at < num_bundles; at += READ_BUNDLES) {
        size_t count = num_bundles - at < READ_BUNDLES ? num_bundles - at : READ_BUNDLES;
        struct bsw_error own_error;
        enum bsw_status own =
            read_bundles(run, slot, first + at, count, to + at * BSW_BUNDLE_ROWS * run->row_bytes,
                         &source_digest, &own_error);
        if (own != BSW_OK) bsw_first_failure_note(&failure, at, own, &own_error);
    }
    slot->source_digest += source_digest;
    return bsw_first_failure_report(&failure, err);
}

// ---- the device's part ----

static float *floats_at(const struct encode_run *run, size_t offset)
{
    return (float *)(void *)(run->memory.data + offset);
}

// Rows prepared and projected to the frame.
static enum bsw_status launch_frame(struct encode_run *run, const struct bsw_device_raw_rows *rows,
                                    struct bsw_error *err)
{
    const struct piece_layout *at = &run->layout;
    float *centered = floats_at(run, at->centered);
    bsw_stream stream = bsw_device_stream(run->device, BSW_QUEUE_SCAN);
    int code =
        bsw_device_saq_center(&run->frame, rows, centered, floats_at(run, at->results[MEAN_DOTS]),
                              run->memory.data + at->results[FAULTS], stream);
    BSW_TRY(bsw_device_launched(run->device, code, "center", err));
    code = bsw_device_saq_project(&run->frame, centered, rows->num_rows,
                                  floats_at(run, at->projected), stream);
    return bsw_device_launched(run->device, code, "project", err);
}

static enum bsw_status launch_xfbq(struct encode_run *run, const struct bsw_device_raw_rows *rows,
                                   struct bsw_error *err)
{
    const struct bsw_manifest *manifest = run->options->manifest;
    const struct piece_layout *at = &run->layout;
    uint32_t bits = manifest->layout.segments[0].bits,
             *planes = (uint32_t *)(void *)(run->memory.data + at->planes[0]);
    bsw_stream stream = bsw_device_stream(run->device, BSW_QUEUE_SCAN);
    int code;
    if (run->has_frame) {
        BSW_TRY(launch_frame(run, rows, err));
        code =
            bsw_device_encode_xfbq_rotated(&run->frame, floats_at(run, at->projected),
                                           rows->num_rows, manifest->codec_number, planes, stream);
    } else {
        code = bsw_device_encode_xfbq(rows, manifest->codec_number, bits, planes,
                                      run->memory.data + at->results[FAULTS], stream);
    }
    return bsw_device_launched(run->device, code, "encode", err);
}

static enum bsw_status launch_saq(struct encode_run *run, const struct bsw_device_raw_rows *rows,
                                  struct bsw_error *err)
{
    const struct piece_layout *at = &run->layout;
    struct bsw_device_saq_codes codes = {
        .norms = floats_at(run, at->results[NORMS]),
        .scales = floats_at(run, at->results[SCALES]),
        .tails = (uint32_t *)(void *)(run->memory.data + at->results[TAILS])};
    for (uint32_t s = 0; s < run->frame.layout.num_segments; s++)
        codes.planes[s] = (uint32_t *)(void *)(run->memory.data + at->planes[s]);
    BSW_TRY(launch_frame(run, rows, err));
    int code = bsw_device_saq_quantize(&run->frame, floats_at(run, at->projected), rows->num_rows,
                                       &codes, bsw_device_stream(run->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(run->device, code, "quantize", err);
}

// Codes to their place in the block, the rest to the slot's results.
static enum bsw_status fetch_results(struct encode_run *run, struct block_slot *slot, size_t first,
                                     size_t num_bundles, size_t num_rows, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &run->options->manifest->layout;
    const struct piece_layout *at = &run->layout;
    const unsigned char *memory = run->memory.data;
    size_t row = first * BSW_BUNDLE_ROWS;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        size_t words = bsw_segment_bundle_words(&layout->segments[s]);
        BSW_TRY(bsw_device_download(run->device, BSW_QUEUE_SCAN,
                                    slot->arrays.planes[s] + first * words, memory + at->planes[s],
                                    num_bundles * words * sizeof(uint32_t), err));
    }
    for (int i = 0; i < run->num_results; i++)
        BSW_TRY(bsw_device_download(run->device, BSW_QUEUE_SCAN,
                                    slot->results[i] + row * result_bytes[i],
                                    memory + at->results[i], num_rows * result_bytes[i], err));
    return BSW_OK;
}

// Queues a piece whose rows have been read; waits for the one before, whose memory it takes.
static enum bsw_status queue_piece(struct encode_run *run, struct block_slot *slot, size_t first,
                                   size_t num_bundles, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = run->options->manifest;
    bsw_device *device = run->device;
    size_t row = first * BSW_BUNDLE_ROWS, count = num_bundles * BSW_BUNDLE_ROWS;
    if (count > slot->num_rows - row) count = slot->num_rows - row;
    unsigned char *numbers = run->memory.data + run->layout.numbers[run->turn];
    const struct bsw_device_raw_rows rows = {.type = manifest->source_type,
                                             .dims = bsw_manifest_row_dims(manifest),
                                             .num_rows = (uint32_t)count,
                                             .numbers = numbers};
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_COPY, numbers, run->numbers[run->turn],
                              count * run->row_bytes, err));
    BSW_TRY(wait_for(run, BSW_QUEUE_SCAN, err));
    BSW_TRY(bsw_device_follow(device, BSW_QUEUE_SCAN, BSW_QUEUE_COPY, err));
    BSW_TRY(run->is_saq ? launch_saq(run, &rows, err) : launch_xfbq(run, &rows, err));
    run->turn ^= 1;
    return fetch_results(run, slot, first, num_bundles, count, err);
}

// ---- blocks ----

static void start_slot(struct encode_run *run, struct block_slot *slot, uint64_t block)
{
    const struct bsw_shard_shape *shape;
    run->options->find(run->options->context, block, &slot->place);
    shape = &slot->place.writer->shape;
    slot->num_bundles = bsw_shard_block_bundles(shape, slot->place.block);
    slot->bytes = bsw_shard_block_bytes(shape, slot->place.block);
    slot->first_row = (uint64_t)slot->place.block * shape->block_bundles * BSW_BUNDLE_ROWS;
    slot->num_rows = slot->num_bundles * BSW_BUNDLE_ROWS;
    if (slot->num_rows > shape->num_rows - slot->first_row)
        slot->num_rows = (size_t)(shape->num_rows - slot->first_row);
    slot->source_digest = 0;
    memset(slot->image, 0, slot->bytes);
    bsw_code_arrays_in_block(shape, slot->image, slot->num_bundles, &slot->arrays);
}

static enum bsw_status send_block(struct encode_run *run, uint64_t block, struct bsw_error *err)
{
    struct block_slot *slot = &run->slots[block % 2];
    start_slot(run, slot, block);
    for (size_t first = 0; first < slot->num_bundles; first += run->piece_bundles) {
        size_t left = slot->num_bundles - first,
               count = left < run->piece_bundles ? left : run->piece_bundles;
        BSW_TRY(read_piece(run, slot, first, count, run->numbers[run->turn], err));
        enum bsw_status status = queue_piece(run, slot, first, count, err);
        run->is_lost |= status != BSW_OK;
        BSW_TRY(status);
    }
    return BSW_OK;
}

static enum bsw_status judge_rows(const struct encode_run *run, struct block_slot *slot,
                                  struct bsw_block_result *out, struct bsw_error *err)
{
    uint64_t first_id = slot->place.writer->shape.first_row + slot->first_row;
    for (size_t r = 0; r < slot->num_rows; r++) {
        enum bsw_row_fault fault = (enum bsw_row_fault)slot->results[FAULTS][r];
        if (fault == BSW_ROW_GOOD)
            slot->arrays.masks[r / BSW_BUNDLE_ROWS] |= 1u << (r % BSW_BUNDLE_ROWS);
        else if (run->options->drop_bad_rows)
            out->dropped_rows++;
        else
            return bsw_fail_bad_row(run->options->vectors, first_id + r, fault, err);
    }
    return BSW_OK;
}

// A known answer: the rank's first block, by the host too.
static enum bsw_status check_block(const struct encode_run *run, const struct block_slot *slot,
                                   struct bsw_error *err)
{
    const struct bsw_device_encode_options *options = run->options;
    bsw_block_encoder *encoder;
    struct bsw_block_result expected;
    BSW_TRY(bsw_block_encoder_create(options->manifest, options->vectors, bsw_cpu_level_detect(),
                                     &encoder, err));
    enum bsw_status status =
        bsw_block_encode(encoder, &slot->place.writer->shape, slot->place.block, NULL,
                         options->drop_bad_rows, NULL, &expected, err);
    if (status == BSW_OK && memcmp(expected.bytes, slot->image, slot->bytes) != 0) {
        status =
            bsw_fail(err, BSW_ERROR_SELF_CHECK,
                     "%s: codes of the rows from %llu on are not those that the CPU makes",
                     bsw_device_label(run->device),
                     (unsigned long long)(slot->place.writer->shape.first_row + slot->first_row));
    }
    bsw_block_encoder_destroy(&encoder);
    return status;
}

// The host's part of a block that the device is done with.
static enum bsw_status finish_block(struct encode_run *run, uint64_t block, struct bsw_error *err)
{
    struct block_slot *slot = &run->slots[block % 2];
    const float *norms = (const float *)(const void *)slot->results[NORMS],
                *scales = (const float *)(const void *)slot->results[SCALES],
                *mean_dots = (const float *)(const void *)slot->results[MEAN_DOTS];
    const uint32_t *tails = (const uint32_t *)(const void *)slot->results[TAILS];
    struct bsw_block_result result = {.bytes = slot->image, .source_digest = slot->source_digest};
    BSW_TRY(judge_rows(run, slot, &result, err));
    if (run->is_saq) {
#pragma omp parallel for schedule(static)
        for (size_t row = 0; row < slot->num_rows; row += BSW_BUNDLE_ROWS) {
            size_t left = slot->num_rows - row,
                   count = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
            bsw_store_affine(run->options->manifest, count, norms + row, scales + row, tails + row,
                             mean_dots + row, &slot->arrays, row);
        }
    }
    if (block == run->options->first) BSW_TRY(check_block(run, slot, err));
    result.digest = XXH3_64bits(slot->image, slot->bytes);
    return run->options->put(run->options->context, block, &result, err);
}

// A block is finished when the next one has been sent, which has waited for it. If that failed, the
// fault of the lower block, if it has one, is the one to report.
static enum bsw_status run_blocks(struct encode_run *run, struct bsw_error *err)
{
    uint64_t first = run->options->first, last = run->options->last;
    for (uint64_t block = first; block <= last; block++) {
        struct bsw_error later_error;
        enum bsw_status later = block < last ? send_block(run, block, &later_error) : BSW_OK;
        if (block > first && !run->is_lost) {
            if (block == last || later != BSW_OK) BSW_TRY(wait_for(run, BSW_QUEUE_SCAN, err));
            BSW_TRY(finish_block(run, block - 1, err));
        }
        if (later != BSW_OK) {
            if (err) *err = later_error;
            return later;
        }
    }
    return BSW_OK;
}

// Whether rows are projected first.
static int find_frame(const struct bsw_manifest *manifest, struct bsw_saq_frame *out)
{
    if (manifest->codec != &bsw_codec_saq) return bsw_xfbq_frame(manifest, out);
    bsw_frame_of_manifest(manifest, out);
    return 1;
}

enum bsw_status bsw_device_encode_run(bsw_device *device,
                                      const struct bsw_device_encode_options *options,
                                      struct bsw_error *err)
{
    if (options->first == options->last) return BSW_OK;
    struct encode_run run = {.options = options,
                             .device = device,
                             .is_saq = options->manifest->codec == &bsw_codec_saq,
                             .row_bytes = bsw_vectors_row_bytes(options->vectors),
                             .block_bundles = most_block_bundles(options)};
    run.has_frame = find_frame(options->manifest, &run.host_frame);
    run.num_results = run.is_saq ? NUM_RESULTS : run.has_frame ? MEAN_DOTS + 1 : FAULTS + 1;
    enum bsw_status status = open_run(&run, err);
    if (status == BSW_OK) status = run_blocks(&run, err);
    close_run(&run);
    return status;
}
