// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/query_source.h"

#include <omp.h>
#include <string.h>
#include <xxhash.h>

#include "bitsweep.pb-c.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/same_input.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/encode/raw_codes.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/query_codes.h"

#define CHECK_ROWS 1024

static size_t pad8(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static size_t num_threads(const struct bsw_query_source *source)
{
    return source->num_threads > 0 ? (size_t)source->num_threads : 1;
}

// Scratch of one thread, a multiple of the alignment.
static size_t scratch_bytes(const struct bsw_query_source *source)
{
    return bsw_query_scratch_bytes(source->manifest);
}

static enum bsw_status reserve(struct bsw_query_source *source, size_t count, struct bsw_error *err)
{
    size_t dims = bsw_manifest_row_dims(source->manifest);
    BSW_TRY(
        bsw_buffer_reserve(&source->numbers, count * bsw_vectors_row_bytes(source->vectors), err));
    BSW_TRY(bsw_buffer_reserve(&source->floats, count * dims * sizeof(float), err));
    BSW_TRY(bsw_buffer_reserve(&source->norms, count * sizeof(double), err));
    BSW_TRY(bsw_buffer_reserve(&source->factors, count * sizeof(float), err));
    BSW_TRY(bsw_buffer_reserve(&source->values, count * sizeof(struct bsw_value_terms), err));
    return bsw_buffer_reserve(&source->scratch, num_threads(source) * scratch_bytes(source), err);
}

// Numbers of a batch in the order that it is to have.
static enum bsw_status put_in_order(struct bsw_query_source *source, size_t count,
                                    struct bsw_error *err)
{
    size_t bytes = bsw_vectors_row_bytes(source->vectors);
    if (!source->order) return BSW_OK;
    BSW_TRY(bsw_buffer_reserve(&source->ordered, count * bytes, err));
    for (size_t q = 0; q < count; q++)
        memcpy(source->ordered.data + q * bytes, source->numbers.data + source->order[q] * bytes,
               bytes);
    struct bsw_buffer swap = source->numbers;
    source->numbers = source->ordered;
    source->ordered = swap;
    return BSW_OK;
}

// Reads and prepares queries [first, first + count) of the range; a bad one is an error.
static enum bsw_status prepare(struct bsw_query_source *source, uint64_t first, size_t count,
                               struct bsw_error *err)
{
    uint64_t row = bsw_vectors_first_row(source->vectors) + first;
    BSW_TRY(reserve(source, count, err));
    BSW_TRY(bsw_vectors_read(source->vectors, row, count, source->numbers.data, err));
    BSW_TRY(put_in_order(source, count, err));
    const struct bsw_manifest *manifest = source->manifest;
    const struct bsw_codec_table *codec = manifest->codec->table;
    double *norms = (double *)(void *)source->norms.data;
    float *floats = (float *)(void *)source->floats.data;
    size_t dims = bsw_manifest_row_dims(manifest);
    size_t faults =
        bsw_prepare_rows(bsw_encode_table_get(source->level), manifest->metric,
                         bsw_vectors_type(source->vectors), source->numbers.data, count, dims,
                         floats, norms, (float *)(void *)source->factors.data, NULL);
    for (size_t i = 0; i < count && (faults > 0 || codec->check_query); i++) {
        enum bsw_row_fault fault = bsw_row_fault_of(norms[i], manifest->metric);
        if (fault != BSW_ROW_GOOD) {
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu %s",
                            bsw_vectors_name(source->vectors), (unsigned long long)(row + i),
                            bsw_row_fault_text(fault));
        }
        if (codec->check_query) {
            BSW_TRY(codec->check_query(manifest, bsw_vectors_name(source->vectors), row + i,
                                       floats + i * dims, err));
        }
    }
    return BSW_OK;
}

enum bsw_status bsw_query_source_open(const char *path, struct bsw_row_range range,
                                      const struct bsw_manifest *manifest, uint32_t query_bits,
                                      enum bsw_cpu_level level, struct bsw_query_source *out,
                                      struct bsw_error *err)
{
    *out =
        (struct bsw_query_source){.manifest = manifest, .query_bits = query_bits, .level = level};
    BSW_TRY(bsw_queries_open(path, range, &out->vectors, err));
    enum bsw_metric metric;
    enum bsw_status status =
        bsw_metric_choose(bsw_metric_name(manifest->metric), out->vectors, NULL, &metric, err);
    out->num_queries = bsw_vectors_num_rows(out->vectors);
    out->digest = bsw_vectors_first_row(out->vectors);
    if (status == BSW_OK && bsw_vectors_dims(out->vectors) != bsw_manifest_row_dims(manifest)) {
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, the index has %u", path,
                          bsw_vectors_dims(out->vectors), bsw_manifest_row_dims(manifest));
    }
    for (uint64_t first = 0; first < out->num_queries && status == BSW_OK; first += CHECK_ROWS) {
        uint64_t left = out->num_queries - first;
        size_t count = left < CHECK_ROWS ? (size_t)left : CHECK_ROWS;
        status = prepare(out, first, count, err);
        if (status == BSW_OK) {
            out->digest = XXH3_64bits_withSeed(
                out->numbers.data, count * bsw_vectors_row_bytes(out->vectors), out->digest);
            bsw_query_digest_add(&out->numbers_digest,
                                 (const float *)(const void *)out->floats.data, count,
                                 bsw_vectors_dims(out->vectors));
        }
    }
    if (status != BSW_OK) bsw_query_source_close(out);
    return status;
}

void bsw_query_source_close(struct bsw_query_source *source)
{
    bsw_vectors_close(&source->vectors);
    bsw_buffer_deinit(&source->numbers);
    bsw_buffer_deinit(&source->ordered);
    bsw_buffer_deinit(&source->floats);
    bsw_buffer_deinit(&source->norms);
    bsw_buffer_deinit(&source->factors);
    bsw_buffer_deinit(&source->values);
    bsw_buffer_deinit(&source->scratch);
}

static enum bsw_status pack_header(const Bsw__Batch *header, size_t payload_bytes,
                                   struct bsw_buffer *out, struct bsw_error *err)
{
    size_t bytes = bsw__batch__get_packed_size(header);
    const uint32_t head[2] = {(uint32_t)bytes, 0};
    BSW_TRY(bsw_buffer_reserve(out, sizeof head + pad8(bytes) + payload_bytes, err));
    memset(out->data, 0, sizeof head + pad8(bytes));
    memcpy(out->data, head, sizeof head);
    bsw__batch__pack(header, out->data + sizeof head);
    out->bytes = sizeof head + pad8(bytes);
    return BSW_OK;
}

// What follows the header of a message: where its parts begin, and its bytes in all.
struct payload_shape {
    size_t query_words;
    size_t words, vectors, bytes; // scales, or constants, come first
};

static struct payload_shape payload_of(const struct bsw_manifest *manifest, uint32_t query_bits,
                                       size_t count)
{
    // For refinement, and to find lists by.
    int has_vectors = !manifest->codec->table->has_exact_keys || manifest->lists.count > 0;
    size_t vectors = has_vectors ? count * bsw_manifest_row_dims(manifest) : 0;
    struct payload_shape shape = {.query_words = bsw_query_words(manifest, query_bits)};
    shape.words = pad8(count * sizeof(float));
    shape.vectors = shape.words + pad8(count * shape.query_words * sizeof(uint32_t));
    shape.bytes = shape.vectors + pad8(vectors * sizeof(float));
    return shape;
}

static void encode_queries(const struct bsw_query_source *source, size_t count,
                           const struct payload_shape *shape, unsigned char *payload)
{
    const struct bsw_manifest *manifest = source->manifest;
    const float *rows = (const float *)(void *)source->floats.data;
    const float *factors = (const float *)(void *)source->factors.data;
    struct bsw_value_terms *values = (struct bsw_value_terms *)(void *)source->values.data;
    union bsw_query_number *queries = (union bsw_query_number *)(void *)payload;
    uint32_t *words = (uint32_t *)(void *)(payload + shape->words);
    size_t dims = bsw_manifest_row_dims(manifest);
#pragma omp parallel for schedule(static) num_threads((int)num_threads(source))
    for (size_t q = 0; q < count; q++) {
        unsigned char *scratch =
            source->scratch.data + (size_t)omp_get_thread_num() * scratch_bytes(source);
        bsw_query_encode(bsw_encode_table_get(source->level), manifest, rows + q * dims, factors[q],
                         source->query_bits, words + q * shape->query_words, &queries[q],
                         &values[q], scratch);
        if (source->has_no_addends) values[q].addend = 0.0f;
    }
    if (shape->bytes > shape->vectors)
        memcpy(payload + shape->vectors, rows, count * dims * sizeof(float));
}

enum bsw_status bsw_query_source_pack(struct bsw_query_source *source, uint64_t first, size_t count,
                                      struct bsw_buffer *out, struct bsw_error *err)
{
    struct payload_shape shape = payload_of(source->manifest, source->query_bits, count);
    Bsw__Batch header = BSW__BATCH__INIT;
    header.num_queries = (uint32_t)count;
    header.payload_bytes = shape.bytes;
    header.is_check_due = source->is_check_due;
    header.is_followed = source->is_followed;
    BSW_TRY(prepare(source, first, count, err));
    BSW_TRY(pack_header(&header, shape.bytes, out, err));
    unsigned char *payload = out->data + out->bytes;
    memset(payload, 0, shape.bytes);
    encode_queries(source, count, &shape, payload);
    out->bytes += shape.bytes;
    return BSW_OK;
}

enum bsw_status bsw_query_pack_end(enum bsw_status status, const struct bsw_error *why,
                                   struct bsw_buffer *out, struct bsw_error *err)
{
    char message[BSW_ERROR_MESSAGE_BYTES] = "";
    Bsw__Batch header = BSW__BATCH__INIT;
    header.is_last = 1;
    header.status = (uint32_t)status;
    if (status != BSW_OK) memcpy(message, why->message, sizeof message);
    header.message = message;
    return pack_header(&header, 0, out, err);
}

enum bsw_status bsw_query_pack_pause(struct bsw_buffer *out, struct bsw_error *err)
{
    const Bsw__Batch header = BSW__BATCH__INIT;
    return pack_header(&header, 0, out, err);
}

static enum bsw_status fail_malformed(struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent a batch that does not parse");
}

size_t bsw_query_head_bytes(const struct bsw_buffer *message)
{
    uint32_t head[2];
    memcpy(head, message->data, sizeof head);
    return sizeof head + pad8(head[0]);
}

size_t bsw_query_payload_bytes(const struct bsw_manifest *manifest, uint32_t query_bits,
                               size_t count)
{
    return payload_of(manifest, query_bits, count).bytes;
}

// Points a batch into its payload.
static struct bsw_query_batch batch_of(const struct bsw_manifest *manifest, uint32_t query_bits,
                                       size_t count, const unsigned char *payload)
{
    struct payload_shape shape = payload_of(manifest, query_bits, count);
    struct bsw_query_batch batch = {.num_queries = (uint32_t)count,
                                    .query_bits = query_bits,
                                    .query_words = shape.query_words,
                                    .words =
                                        (const uint32_t *)(const void *)(payload + shape.words)};
    if (manifest->codec->has_bytes) {
        batch.constants = (const int32_t *)(const void *)payload;
        batch.factor = bsw_raw_factor(manifest->metric);
    } else {
        batch.scales = (const float *)(const void *)payload;
    }
    if (manifest->codec->has_tables) {
        batch.product = manifest->codec->table->product(manifest);
        if (manifest->lists.is_residual) batch.centroids = manifest->lists.centroids;
    }
    if (shape.bytes > shape.vectors)
        batch.vectors = (const float *)(const void *)(payload + shape.vectors);
    return batch;
}

enum bsw_status bsw_query_unpack(const struct bsw_manifest *manifest, uint32_t query_bits,
                                 const struct bsw_buffer *message, const unsigned char *payload,
                                 size_t capacity, struct bsw_query_batch *batch, int *is_last,
                                 struct bsw_error *err)
{
    uint32_t head[2];
    if (message->bytes < sizeof head) return fail_malformed(err);
    memcpy(head, message->data, sizeof head);
    if (head[0] > message->bytes - sizeof head) return fail_malformed(err);
    Bsw__Batch *header = bsw__batch__unpack(NULL, head[0], message->data + sizeof head);
    if (!header) return fail_malformed(err);
    enum bsw_status status = BSW_OK;
    size_t start = sizeof head + pad8(head[0]);
    size_t bytes = bsw_query_payload_bytes(manifest, query_bits, header->num_queries);
    *is_last = header->is_last;
    if (header->status != BSW_OK && header->status <= BSW_ERROR_SELF_CHECK) {
        status = bsw_fail(err, (enum bsw_status)header->status, "%s", header->message);
        if (err) err->rank = 0;
    } else if (!*is_last && (payload ? message->bytes != start || bytes > capacity
                                     : message->bytes != start + bytes)) {
        status = fail_malformed(err);
    }
    size_t count = status == BSW_OK && !*is_last ? header->num_queries : 0;
    *batch = batch_of(manifest, query_bits, count, payload ? payload : message->data + start);
    batch->is_check_due = header->is_check_due;
    batch->is_followed = header->is_followed;
    bsw__batch__free_unpacked(header, NULL);
    return status;
}

void bsw_query_place_on_device(const struct bsw_manifest *manifest, const unsigned char *d_payload,
                               struct bsw_query_batch *batch)
{
    struct bsw_query_batch there =
        batch_of(manifest, batch->query_bits, batch->num_queries, d_payload);
    batch->d_words = there.words;
    batch->d_scales = there.scales;
    batch->d_constants = there.constants;
}
