// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/shard_encode.h"

#include <string.h>
#include <xxhash.h>

#include "common/base/memory.h"
#include "common/device/device_blocks.h"
#include "shard/codecs/block_rows.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/device_coder.h"

#define ALIGNMENT    ((size_t)256)
#define READ_BUNDLES 8 // that a thread reads at once
#define RESULT_BYTES sizeof(float)

// Where the arrays of a piece of bundles lie in device memory.
struct piece_layout {
    size_t numbers[2], lists[2], planes[BSW_MAX_SEGMENTS], faults, results[BSW_CODER_RESULTS];
    size_t models[BSW_CODER_MODELS], rooms[BSW_CODER_ROOMS];
    size_t bytes;
};

// A block on its way.
struct block_slot {
    struct bsw_encode_place place;
    struct bsw_block_rows rows;
    size_t num_places, num_bundles, bytes;
    unsigned char *image;                               // the block as it will be in the file
    unsigned char *faults, *results[BSW_CODER_RESULTS]; // of its places, where copies reach
    struct bsw_block_result result;
};

struct encode_run {
    const struct bsw_device_encode_options *options;
    const struct bsw_device_coder *coder;
    struct bsw_coder_needs needs;
    bsw_device *device;
    int is_residual, is_lost;
    size_t row_bytes;
    size_t block_bundles, piece_bundles; // at most
    struct piece_layout layout;          // of piece_bundles
    struct bsw_device_buffer memory;
    unsigned char *numbers[2], *lists[2]; // [piece_bundles * 32] raw rows in host memory, and lists
    unsigned turn;                        // which of both the next piece takes
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

static size_t list_bytes(const struct encode_run *run)
{
    return run->is_residual ? sizeof(uint32_t) : 0;
}

static void make_layout(const struct encode_run *run, size_t num_bundles, struct piece_layout *out)
{
    const struct bsw_code_layout *layout = &run->options->manifest->layout;
    size_t rows = num_bundles * BSW_BUNDLE_ROWS, *bytes = &out->bytes;
    *out = (struct piece_layout){0};
    for (int i = 0; i < 2; i++) {
        out->numbers[i] = bsw_place_array(rows * run->row_bytes, ALIGNMENT, bytes);
        out->lists[i] = bsw_place_array(rows * list_bytes(run), ALIGNMENT, bytes);
    }
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        size_t words = num_bundles * bsw_segment_bundle_words(&layout->segments[s]);
        out->planes[s] = bsw_place_array(words * sizeof(uint32_t), ALIGNMENT, bytes);
    }
    out->faults = bsw_place_array(rows, ALIGNMENT, bytes);
    for (int i = 0; i < run->needs.num_results; i++)
        out->results[i] = bsw_place_array(rows * RESULT_BYTES, ALIGNMENT, bytes);
    for (int i = 0; i < BSW_CODER_ROOMS; i++)
        out->rooms[i] = bsw_place_array(rows * run->needs.room_bytes[i], ALIGNMENT, bytes);
    for (int i = 0; i < BSW_CODER_MODELS; i++)
        out->models[i] = bsw_place_array(run->needs.models[i].bytes, ALIGNMENT, bytes);
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
    BSW_TRY(bsw_device_allocate_host(device, rows, "rows", &slot->faults, err));
    for (int i = 0; i < run->needs.num_results; i++)
        BSW_TRY(
            bsw_device_allocate_host(device, rows * RESULT_BYTES, "rows", &slot->results[i], err));
    return BSW_OK;
}

// What the coder is given, without rows.
static struct bsw_coder_piece make_piece(const struct encode_run *run)
{
    const struct piece_layout *at = &run->layout;
    unsigned char *memory = run->memory.data;
    struct bsw_coder_piece piece = {
        .device = run->device, .manifest = run->options->manifest, .faults = memory + at->faults};
    for (int i = 0; i < BSW_CODER_MODELS; i++)
        if (run->needs.models[i].bytes > 0) piece.models[i] = memory + at->models[i];
    for (int i = 0; i < BSW_CODER_ROOMS; i++) piece.rooms[i] = memory + at->rooms[i];
    for (int i = 0; i < run->needs.num_results; i++) piece.results[i] = memory + at->results[i];
    for (uint32_t s = 0; s < piece.manifest->layout.num_segments; s++)
        piece.planes[s] = (uint32_t *)(void *)(memory + at->planes[s]);
    return piece;
}

static enum bsw_status upload_models(const struct encode_run *run, struct bsw_device_blocks *blocks,
                                     struct bsw_error *err)
{
    for (int i = 0; i < BSW_CODER_MODELS; i++) {
        const void *data = run->needs.models[i].data;
        if (data)
            BSW_TRY(bsw_device_blocks_upload(blocks, run->memory.data + run->layout.models[i], data,
                                             run->needs.models[i].bytes, "a model", err));
    }
    return BSW_OK;
}

static enum bsw_status send_models(struct encode_run *run, struct bsw_error *err)
{
    const struct bsw_coder_piece piece = make_piece(run);
    struct bsw_device_blocks blocks;
    BSW_TRY(bsw_device_blocks_open(run->device, BSW_DEVICE_BLOCK_BYTES, &blocks, err));
    enum bsw_status status = upload_models(run, &blocks, err);
    if (status == BSW_OK) status = wait_for(run, BSW_QUEUE_COPY, err);
    bsw_device_blocks_close(&blocks);
    BSW_TRY(status);
    return run->coder->start ? run->coder->start(&piece, err) : BSW_OK;
}

static enum bsw_status open_run(struct encode_run *run, struct bsw_error *err)
{
    BSW_TRY(choose_piece(run, err));
    BSW_TRY(bsw_device_allocate(run->device, run->layout.bytes, "rows", &run->memory, err));
    size_t rows = run->piece_bundles * BSW_BUNDLE_ROWS;
    for (int i = 0; i < 2; i++) {
        BSW_TRY(bsw_device_allocate_host(run->device, rows * run->row_bytes, "rows",
                                         &run->numbers[i], err));
        if (run->is_residual)
            BSW_TRY(bsw_device_allocate_host(run->device, rows * list_bytes(run), "lists",
                                             &run->lists[i], err));
        BSW_TRY(allocate_slot(run, &run->slots[i], err));
    }
    return run->needs.models[0].bytes > 0 ? send_models(run, err) : BSW_OK;
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
        bsw_device_free_host(device, &run->lists[i]);
        bsw_device_free_host(device, &run->slots[i].image);
        bsw_device_free_host(device, &run->slots[i].faults);
        for (int r = 0; r < BSW_CODER_RESULTS; r++)
            bsw_device_free_host(device, &run->slots[i].results[r]);
    }
}

// ---- reading ----

// Places of so many bundles of the block, whose last one may have fewer.
static size_t places_of(const struct block_slot *slot, size_t first_bundle, size_t num_bundles)
{
    size_t first = first_bundle * BSW_BUNDLE_ROWS, count = num_bundles * BSW_BUNDLE_ROWS;
    return count < slot->num_places - first ? count : slot->num_places - first;
}

// Some bundles of the block. at: of the piece.
static enum bsw_status read_bundles(const struct encode_run *run, const struct block_slot *slot,
                                    size_t first, size_t at, size_t num_bundles,
                                    struct bsw_block_result *out, struct bsw_error *err)
{
    size_t count = places_of(slot, first + at, num_bundles), row = at * BSW_BUNDLE_ROWS;
    uint64_t place = slot->rows.first_place + (first + at) * BSW_BUNDLE_ROWS;
    unsigned char *numbers = run->numbers[run->turn] + row * run->row_bytes;
    BSW_TRY(bsw_block_rows_read(&slot->rows, place, count, numbers, out, err));
    if (run->is_residual)
        bsw_block_rows_lists(&slot->rows, place, count,
                             (uint32_t *)(void *)run->lists[run->turn] + row);
    return BSW_OK;
}

// With all threads; the fault of the lowest rows is the one reported.
static enum bsw_status read_piece(const struct encode_run *run, struct block_slot *slot,
                                  size_t first, size_t num_bundles, struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
    uint64_t source_digest = 0, dropped_rows = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : source_digest, dropped_rows)
    for (size_t at = 0; at < num_bundles; at += READ_BUNDLES) {
        size_t count = num_bundles - at < READ_BUNDLES ? num_bundles - at : READ_BUNDLES;
        struct bsw_block_result own = {0};
        struct bsw_error own_error;
        enum bsw_status status = read_bundles(run, slot, first, at, count, &own, &own_error);
        if (status != BSW_OK) bsw_first_failure_note(&failure, at, status, &own_error);
        source_digest += own.source_digest;
        dropped_rows += own.dropped_rows;
    }
    slot->result.source_digest += source_digest;
    slot->result.dropped_rows += dropped_rows;
    return bsw_first_failure_report(&failure, err);
}

// ---- the device's part ----

// Rows that were read, and their lists, to the device.
static enum bsw_status upload_rows(const struct encode_run *run, size_t count,
                                   struct bsw_error *err)
{
    unsigned turn = run->turn;
    unsigned char *memory = run->memory.data;
    BSW_TRY(bsw_device_upload(run->device, BSW_QUEUE_COPY, memory + run->layout.numbers[turn],
                              run->numbers[turn], count * run->row_bytes, err));
    if (!run->is_residual) return BSW_OK;
    return bsw_device_upload(run->device, BSW_QUEUE_COPY, memory + run->layout.lists[turn],
                             run->lists[turn], count * list_bytes(run), err);
}

// Codes to their place in the block, the rest to the slot's results.
static enum bsw_status fetch_results(struct encode_run *run, struct block_slot *slot, size_t first,
                                     size_t num_bundles, size_t count, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &run->options->manifest->layout;
    const struct piece_layout *at = &run->layout;
    const unsigned char *memory = run->memory.data;
    size_t row = first * BSW_BUNDLE_ROWS;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        size_t words = bsw_segment_bundle_words(&layout->segments[s]);
        BSW_TRY(bsw_device_download(
            run->device, BSW_QUEUE_SCAN, slot->rows.arrays.planes[s] + first * words,
            memory + at->planes[s], num_bundles * words * sizeof(uint32_t), err));
    }
    BSW_TRY(bsw_device_download(run->device, BSW_QUEUE_SCAN, slot->faults + row,
                                memory + at->faults, count, err));
    for (int i = 0; i < run->needs.num_results; i++)
        BSW_TRY(bsw_device_download(run->device, BSW_QUEUE_SCAN,
                                    slot->results[i] + row * RESULT_BYTES, memory + at->results[i],
                                    count * RESULT_BYTES, err));
    return BSW_OK;
}

// Queues a piece whose rows have been read; waits for the one before, whose memory it takes.
static enum bsw_status queue_piece(struct encode_run *run, struct block_slot *slot, size_t first,
                                   size_t num_bundles, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = run->options->manifest;
    size_t count = places_of(slot, first, num_bundles);
    struct bsw_coder_piece piece = make_piece(run);
    unsigned char *memory = run->memory.data;
    piece.rows = (struct bsw_device_raw_rows){.type = manifest->source_type,
                                              .dims = bsw_manifest_row_dims(manifest),
                                              .num_rows = (uint32_t)count,
                                              .numbers = memory + run->layout.numbers[run->turn]};
    if (run->is_residual)
        piece.lists = (const uint32_t *)(void *)(memory + run->layout.lists[run->turn]);
    BSW_TRY(upload_rows(run, count, err));
    BSW_TRY(wait_for(run, BSW_QUEUE_SCAN, err));
    BSW_TRY(bsw_device_follow(run->device, BSW_QUEUE_SCAN, BSW_QUEUE_COPY, err));
    BSW_TRY(run->coder->launch(&piece, err));
    run->turn ^= 1;
    return fetch_results(run, slot, first, num_bundles, count, err);
}

// ---- blocks ----

static void start_slot(struct encode_run *run, struct block_slot *slot, uint64_t block)
{
    const struct bsw_device_encode_options *options = run->options;
    struct bsw_encode_place *place = &slot->place;
    options->find(options->context, block, place);
    const struct bsw_shard_shape *shape = &place->writer->shape;
    slot->num_bundles = bsw_shard_block_bundles(shape, place->block);
    slot->bytes = bsw_shard_block_bytes(shape, place->block);
    slot->rows = (struct bsw_block_rows){.manifest = options->manifest,
                                         .vectors = options->vectors,
                                         .row_bytes = run->row_bytes,
                                         .shape = shape,
                                         .order = place->order,
                                         .copies = place->writer,
                                         .drop_bad_rows = options->drop_bad_rows,
                                         .first_place = (uint64_t)place->block *
                                                        shape->block_bundles * BSW_BUNDLE_ROWS};
    slot->num_places = slot->num_bundles * BSW_BUNDLE_ROWS;
    if (slot->num_places > shape->num_places - slot->rows.first_place)
        slot->num_places = (size_t)(shape->num_places - slot->rows.first_place);
    slot->result = (struct bsw_block_result){.bytes = slot->image};
    memset(slot->image, 0, slot->bytes);
    bsw_code_arrays_in_block(shape, slot->image, slot->num_bundles, &slot->rows.arrays);
}

static enum bsw_status send_block(struct encode_run *run, uint64_t block, struct bsw_error *err)
{
    struct block_slot *slot = &run->slots[block % 2];
    start_slot(run, slot, block);
    for (size_t first = 0; first < slot->num_bundles; first += run->piece_bundles) {
        size_t left = slot->num_bundles - first,
               count = left < run->piece_bundles ? left : run->piece_bundles;
        BSW_TRY(read_piece(run, slot, first, count, err));
        enum bsw_status status = queue_piece(run, slot, first, count, err);
        run->is_lost |= status != BSW_OK;
        BSW_TRY(status);
    }
    return BSW_OK;
}

static enum bsw_status judge_rows(struct block_slot *slot, struct bsw_error *err)
{
    for (size_t i = 0; i < slot->num_places; i++)
        BSW_TRY(bsw_block_rows_judge(&slot->rows, slot->rows.first_place + i,
                                     (enum bsw_row_fault)slot->faults[i], &slot->result, err));
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
        bsw_block_encode(encoder, slot->rows.shape, slot->place.block, slot->place.order,
                         options->drop_bad_rows, NULL, &expected, err);
    if (status == BSW_OK && memcmp(expected.bytes, slot->image, slot->bytes) != 0) {
        status =
            bsw_fail(err, BSW_ERROR_SELF_CHECK,
                     "%s: codes of the rows from %llu on are not those that the CPU makes",
                     bsw_device_label(run->device),
                     (unsigned long long)(slot->rows.shape->first_row + slot->rows.first_place));
    }
    bsw_block_encoder_destroy(&encoder);
    return status;
}

static void store_results(const struct encode_run *run, const struct block_slot *slot)
{
    void *results[BSW_CODER_RESULTS];
    if (!run->coder->store) return;
    for (int i = 0; i < BSW_CODER_RESULTS; i++) results[i] = slot->results[i];
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < slot->num_places; row += BSW_BUNDLE_ROWS) {
        size_t left = slot->num_places - row,
               count = left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS;
        run->coder->store(run->options->manifest, results, row, count, &slot->rows.arrays);
    }
}

// The host's part of a block that the device is done with.
static enum bsw_status finish_block(struct encode_run *run, uint64_t block, struct bsw_error *err)
{
    struct block_slot *slot = &run->slots[block % 2];
    BSW_TRY(judge_rows(slot, err));
    store_results(run, slot);
    if (block == run->options->first) BSW_TRY(check_block(run, slot, err));
    slot->result.digest = XXH3_64bits(slot->image, slot->bytes);
    return run->options->put(run->options->context, block, &slot->result, err);
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

enum bsw_status bsw_device_encode_run(bsw_device *device,
                                      const struct bsw_device_encode_options *options,
                                      struct bsw_error *err)
{
    if (options->first == options->last) return BSW_OK;
    struct encode_run run = {.options = options,
                             .coder = options->manifest->codec->table->device_coder,
                             .device = device,
                             .is_residual = options->manifest->lists.is_residual,
                             .row_bytes = bsw_vectors_row_bytes(options->vectors),
                             .block_bundles = most_block_bundles(options)};
    run.coder->plan(options->manifest, &run.needs);
    enum bsw_status status = open_run(&run, err);
    if (status == BSW_OK) status = run_blocks(&run, err);
    close_run(&run);
    return status;
}
