// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/malformed_formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/codes/code_layout.h"
#include "common/files/list_order.h"
#include "common/files/result_file.h"
#include "common/files/sealed_message.h"
#include "common/files/shard_file.h"
#include "coordinator/job/sidecar.h"
#include "coordinator/train/rbe_checkpoint.h"
#include "kernels/rbe/rbe_model_file.h"
#include "shard/codecs/codec.h"
#include "shard/host/raw_rows.h"
#include "tests/unit/vector_images.h"

#define MAX_FORMATS       32
#define ROWS              6
#define DIMS              5
#define TRAINING_NUMBERS  4
#define TRAINING_SETTINGS "pairs=3 rate=0.1"

static struct malformed_format formats[MAX_FORMATS];
static size_t num_formats;

// ---- reading ----

static enum bsw_status read_vectors(const char *path, struct bsw_error *err)
{
    bsw_vectors *vectors;
    unsigned char *row = NULL;
    BSW_TRY(bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, err));
    enum bsw_status status = bsw_allocate(&row, bsw_vectors_row_bytes(vectors), 1, "row", err);
    for (uint64_t i = 0; i < bsw_vectors_num_rows(vectors) && status == BSW_OK; i++)
        status = bsw_vectors_read(vectors, i, 1, row, err);
    bsw_free(&row);
    bsw_vectors_close(&vectors);
    return status;
}

static enum bsw_status read_results(const char *path, struct bsw_error *err)
{
    struct bsw_results results;
    enum bsw_status status = bsw_results_read(path, &results, err);
    bsw_results_deinit(&results);
    return status;
}

static void folder_of(const char *path, char out[BSW_PATH_BYTES])
{
    snprintf(out, BSW_PATH_BYTES, "%s", path);
    *strrchr(out, '/') = '\0';
}

static enum bsw_status read_manifest(const char *path, struct bsw_error *err)
{
    struct bsw_manifest manifest;
    char folder[BSW_PATH_BYTES];
    folder_of(path, folder);
    enum bsw_status status = bsw_manifest_read(folder, &manifest, err);
    bsw_manifest_deinit(&manifest);
    return status;
}

static enum bsw_status read_blocks(const struct bsw_shard_file *file,
                                   const struct bsw_raw_rows *raw, struct bsw_error *err)
{
    static uint64_t scratch[64];
    struct bsw_buffer block = {0};
    struct bsw_code_arrays arrays;
    size_t num_bundles = bsw_shard_block_bundles(&file->shape, 0);
    enum bsw_status status =
        bsw_buffer_reserve(&block, bsw_shard_block_bytes(&file->shape, 0), err);
    if (status == BSW_OK) status = bsw_shard_file_read_block(file, 0, block.data, err);
    if (status == BSW_OK) bsw_code_arrays_in_block(&file->shape, block.data, num_bundles, &arrays);
    for (size_t b = 0; b < num_bundles && status == BSW_OK; b++)
        status = bsw_raw_rows_verify(raw, b, arrays.row_digests[b], scratch, err);
    bsw_buffer_deinit(&block);
    return status;
}

// The whole index: codes and the copies of the rows.
static enum bsw_status read_index(const char *path, struct bsw_error *err)
{
    struct bsw_manifest manifest;
    struct bsw_shard_file file = {.fd = -1};
    struct bsw_raw_rows raw = {0};
    const struct bsw_list_order none = {0};
    char folder[BSW_PATH_BYTES];
    folder_of(path, folder);
    enum bsw_status status = bsw_manifest_read(folder, &manifest, err);
    if (status == BSW_OK) status = bsw_shard_file_open(&manifest, folder, 0, &file, err);
    if (status == BSW_OK) status = bsw_raw_rows_open(&manifest, folder, 0, &none, &raw, err);
    if (status == BSW_OK) status = read_blocks(&file, &raw, err);
    bsw_raw_rows_close(&raw);
    bsw_shard_file_close(&file);
    bsw_manifest_deinit(&manifest);
    return status;
}

// The bytes alone, which may still be an order, and then as the manifest has them.
static enum bsw_status read_orders(const char *path, struct bsw_error *err)
{
    struct bsw_manifest manifest;
    struct bsw_list_order order = {0};
    struct bsw_buffer bytes = {0};
    char folder[BSW_PATH_BYTES];
    folder_of(path, folder);
    BSW_TRY(bsw_manifest_read(folder, &manifest, err));
    fault_load(path, &bytes);
    enum bsw_status status = bsw_list_order_parse(
        path, bytes.data, bytes.bytes, manifest.build_digest, manifest.lists.count,
        manifest.shards[0].num_rows, manifest.shards[0].num_places, &order, err);
    bsw_list_order_deinit(&order);
    if (status == BSW_OK || status == BSW_ERROR_BAD_DATA)
        status = bsw_list_order_read(&manifest, folder, 0, &order, err);
    bsw_list_order_deinit(&order);
    bsw_buffer_deinit(&bytes);
    bsw_manifest_deinit(&manifest);
    return status;
}

static enum bsw_status read_model(const char *path, struct bsw_error *err)
{
    struct bsw_rbe_model model;
    enum bsw_status status = bsw_rbe_model_read(path, &model, err);
    bsw_rbe_model_deinit(&model);
    return status;
}

// Settings that changed are another training, exit 2: here they are bad data as all else.
static enum bsw_status read_checkpoint(const char *path, struct bsw_error *err)
{
    struct bsw_rbe_state state;
    BSW_TRY(bsw_rbe_state_init(TRAINING_NUMBERS, &state, err));
    enum bsw_status status = bsw_rbe_checkpoint_read(path, TRAINING_SETTINGS, &state, err);
    bsw_rbe_state_deinit(&state);
    return status == BSW_ERROR_USAGE ? BSW_ERROR_BAD_DATA : status;
}

static enum bsw_status read_sidecar(const char *path, struct bsw_error *err)
{
    struct bsw_sidecar facts;
    char result[BSW_PATH_BYTES];
    snprintf(result, sizeof result, "%s", path);
    *strrchr(result, '.') = '\0';
    return bsw_sidecar_read(result, &facts, err);
}

// ---- good files ----

static struct malformed_format *
add_format(const char *label, const char *name, enum malformed_family family,
           enum bsw_status (*read)(const char *path, struct bsw_error *err))
{
    FAULT_REQUIRE(num_formats < MAX_FORMATS, "%s", label);
    struct malformed_format *format = &formats[num_formats++];
    char *path;
    FAULT_REQUIRE(bsw_allocate(&path, 512, 1, "path", NULL) == BSW_OK, "%s", label);
    snprintf(path, 512, "%s", fault_path(name));
    *format =
        (struct malformed_format){.label = label, .path = path, .family = family, .read = read};
    return format;
}

static void add_field(struct malformed_format *format, uint32_t offset, uint32_t bytes)
{
    format->fields[format->num_fields].offset = offset;
    format->fields[format->num_fields++].bytes = bytes;
}

static void set_command(struct malformed_format *format, const char *program, const char *words)
{
    snprintf(format->command, sizeof format->command, "%s %s %s", program, words, format->path);
}

static void set_groundtruth(struct malformed_format *format, const char *program)
{
    snprintf(format->command, sizeof format->command,
             "%s groundtruth --base %s --queries %s --k 1 --metric l2 --threads 1 --quiet --out %s",
             program, format->path, format->path, fault_path("truth"));
}

static void add_vectors(const char *program)
{
    for (size_t i = 0; i < NUM_IMAGE_KINDS; i++) {
        const struct image_kind *kind = &image_kinds[i];
        int is_vecs = kind->form == FORM_VECS, is_npy = kind->form >= FORM_NPY_1;
        int is_ids = kind->type == BSW_VECTOR_INT32;
        struct malformed_format *format =
            add_format(kind->name, kind->name, is_npy ? FAMILY_NPY : FAMILY_FIELDS,
                       is_ids ? read_results : read_vectors);
        struct image image = make_image(kind, ROWS, DIMS);
        uint32_t width = kind->form == FORM_BIN_WIDE ? 8 : 4;
        if (is_vecs) format->row_bytes = 4 + DIMS * kind->number_bytes;
        if (is_vecs) memset(image.data, 0, image.bytes); // good ids, and numbers
        size_t number_bytes = (size_t)ROWS * DIMS * kind->number_bytes;
        if (is_ids && !is_vecs) memset(image.data + image.bytes - number_bytes, 0, number_bytes);
        for (uint32_t row = 0; is_vecs && row < ROWS; row++) {
            memcpy(image.data + row * format->row_bytes, &(uint32_t){DIMS}, 4);
            add_field(format, (uint32_t)(row * format->row_bytes), 4);
        }
        if (!is_vecs && !is_npy) {
            format->number_bytes = (uint32_t)kind->number_bytes;
            add_field(format, 0, width);
            add_field(format, width, width);
        }
        fault_store(format->path, image.data, image.bytes);
        // info does not read rows, each of which has a header in .vecs.
        if (is_vecs && !is_ids)
            set_groundtruth(format, program);
        else if (!is_ids)
            set_command(format, program, "info --path");
        free(image.data);
    }
}

static void write_results(const char *path, int wide)
{
    static const int64_t ids[] = {0, 1, 2, 3, 4, 5};
    static const float values[] = {0, 1, 2, 3, 4, 5};
    bsw_result_writer *writer;
    struct bsw_error err;
    FAULT_REQUIRE(bsw_result_writer_create(path, 2, 3, wide, 1, &writer, &err) == BSW_OK &&
                      bsw_result_writer_put(writer, 0, 2, ids, values, &err) == BSW_OK &&
                      bsw_result_writer_finish(writer, &err) == BSW_OK,
                  "%s", err.message);
    bsw_result_writer_destroy(&writer);
}

static void add_results(const char *program)
{
    static const char *const names[] = {"result", "result_wide"};
    for (int wide = 0; wide < 2; wide++) {
        struct malformed_format *format =
            add_format(names[wide], names[wide], FAMILY_FIELDS, read_results);
        add_field(format, 0, wide ? 8 : 4);
        add_field(format, wide ? 8 : 4, wide ? 8 : 4);
        format->number_bytes = 8; // an int32 id and a value
        write_results(format->path, wide);
        set_command(format, program, "info --path");
    }
    struct malformed_format *format =
        add_format("sidecar", "result.json", FAMILY_JSON, read_sidecar);
    static const char text[] =
        "{\"metric\": \"l2\", \"refine\": \"exact\", \"k\": 3, \"rows\": 6, \"first_row\": 0, "
        "\"first_query\": 0, \"queries_digest\": \"0123456789abcdef\", \"dims\": 5}";
    fault_store(format->path, text, sizeof text - 1);
    snprintf(format->command, sizeof format->command, "%s eval --results %s --groundtruth %s",
             program, fault_path("result"), fault_path("result"));
}

static void add_shard_fields(struct malformed_format *format)
{
    for (uint32_t i = 0; i < 4; i++) add_field(format, 8 + 4 * i, 4);
    for (uint32_t i = 0; i < 5; i++) add_field(format, 24 + 8 * i, 8);
    add_field(format, 0, 8);
    add_field(format, 4088, 8);
}

static void add_index(const char *program, const char *codec, const char *options)
{
    char line[1024], name[64], folder[256];
    struct malformed_format *format;
    char *labels; // live as long as the formats
    FAULT_REQUIRE(bsw_allocate(&labels, 3, 32, "labels", NULL) == BSW_OK, "%s", codec);
    snprintf(folder, sizeof folder, "%s", fault_path(codec));
    snprintf(line, sizeof line,
             "%s encode --base synth:count=70,dims=8,type=uint8 --index %s --copy-vectors "
             "--threads 1 --quiet --codec %s %s",
             program, folder, codec, options);
    fault_run_good(line);
    snprintf(name, sizeof name, "%s/manifest.pb", codec);
    snprintf(labels, 32, "manifest %s", codec);
    format = add_format(labels, name, FAMILY_PROTOBUF, read_manifest);
    snprintf(format->command, sizeof format->command, "%s verify --threads 1 --index %s", program,
             folder);
    static const char *const kinds[] = {"codes", "vectors"};
    for (int i = 0; i < 2; i++) {
        char *label = labels + 32 * (i + 1);
        snprintf(label, 32, "%s %s", kinds[i], codec);
        snprintf(name, sizeof name, "%s/shard-00000-of-00001.%s", codec, kinds[i]);
        struct malformed_format *part = add_format(label, name, FAMILY_FIELDS, read_index);
        add_shard_fields(part);
        memcpy(part->command, format->command, sizeof part->command);
    }
}

// An index with lists and a table of recalls.
static void add_lists(const char *program)
{
    char line[1024];
    const char *folder = fault_path("lists");
    snprintf(line, sizeof line,
             "%s encode --base synth:count=70,dims=8,type=uint8 --index %s --copy-vectors "
             "--threads 1 --quiet --metric l2 --lists 3",
             program, folder);
    fault_run_good(line);
    struct malformed_format *manifest =
        add_format("manifest lists", "lists/manifest.pb", FAMILY_PROTOBUF, read_manifest);
    snprintf(manifest->command, sizeof manifest->command, "%s verify --threads 1 --index %s",
             program, fault_path("lists"));
    struct malformed_format *format =
        add_format("orders", "lists/shard-00000-of-00001.lists", FAMILY_FIELDS, read_orders);
    for (uint32_t i = 0; i < 5; i++) add_field(format, 8 * i, 8);      // magic, build, counts
    for (uint32_t i = 0; i < 7; i++) add_field(format, 40 + 4 * i, 4); // bundles and rows
    memcpy(format->command, manifest->command, sizeof format->command);
}

static void add_model(void)
{
    struct malformed_format *format = add_format("model", "model.rbe", FAMILY_PROTOBUF, read_model);
    struct bsw_rbe_model model = {.metric = BSW_METRIC_COSINE};
    struct bsw_error err = {0};
    for (uint32_t i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        struct bsw_rbe_side *side = &model.sides[i];
        side->shape = (struct bsw_rbe_shape){3, 2, 2 - i, 0, 1};
        side->scale = 1.5f;
        FAULT_REQUIRE(bsw_rbe_side_allocate(side, &err) == BSW_OK, "%s", err.message);
        memset(side->mean, 0, 3 * sizeof(float));
        bsw_rbe_initialize(&side->shape, i, side->parameters);
    }
    FAULT_REQUIRE(bsw_rbe_model_write(&model, format->path, &err) == BSW_OK, "%s", err.message);
    bsw_rbe_model_deinit(&model);
}

static void add_checkpoint(void)
{
    struct malformed_format *format =
        add_format("checkpoint", "checkpoint", FAMILY_PROTOBUF, read_checkpoint);
    struct bsw_rbe_state state;
    const struct bsw_rbe_epoch epoch = {0.5, 0.25, 0.1, 0.75};
    FAULT_REQUIRE(bsw_rbe_state_init(TRAINING_NUMBERS, &state, NULL) == BSW_OK &&
                      bsw_rbe_state_end_epoch(&state, &epoch, NULL) == BSW_OK &&
                      bsw_rbe_checkpoint_write(format->path, TRAINING_SETTINGS, &state, NULL) ==
                          BSW_OK,
                  "%s", format->path);
    bsw_rbe_state_deinit(&state);
}

struct malformed_format *malformed_formats_make(const char *program, size_t *count)
{
    struct bsw_error err;
    add_vectors(program);
    add_results(program);
    add_index(program, "saq", "--metric l2 --bits 3");
    add_index(program, "raw", "--metric ip");
    add_lists(program);
    add_model();
    add_checkpoint();
    for (size_t i = 0; i < num_formats; i++) {
        fault_load(formats[i].path, &formats[i].good);
        FAULT_REQUIRE(formats[i].read(formats[i].path, &err) == BSW_OK, "%s: %s", formats[i].label,
                      err.message);
    }
    *count = num_formats;
    return formats;
}

// ---- changes ----

// A number that somebody might put in place of another.
static uint64_t hostile_number(struct fault_random *random, uint64_t was)
{
    static const uint64_t fixed[] = {0,
                                     1,
                                     2,
                                     3,
                                     0x7f,
                                     0xff,
                                     65536,
                                     65537,
                                     0x7ffffffe,
                                     0x7fffffff,
                                     0x80000000,
                                     0xfffffffe,
                                     0xffffffff,
                                     0x100000000,
                                     0x3333333333333334, // times 5 is 4 more than 2^64
                                     0x4000000000000000,
                                     0x7fffffffffffffff,
                                     0x8000000000000000,
                                     0xffffffffffffffff};
    switch (fault_draw(random, 6)) {
    case 0:
        return was + 1;
    case 1:
        return was - 1;
    case 2:
        return 0 - was;
    case 3:
        return was + ((uint64_t)1 << fault_draw(random, 64));
    default:
        return fixed[fault_draw(random, sizeof fixed / sizeof fixed[0])];
    }
}

static void change_field(const struct malformed_format *format, struct fault_random *random,
                         unsigned char *data)
{
    size_t which = fault_draw(random, format->num_fields);
    uint64_t number = 0;
    unsigned char *at = data + format->fields[which].offset;
    memcpy(&number, at, format->fields[which].bytes);
    number = hostile_number(random, number);
    memcpy(at, &number, format->fields[which].bytes);
}

// Headers of shards carry a digest; half of the changes make it fit.
static size_t change_fields(const struct malformed_format *format, struct fault_random *random,
                            unsigned char *out)
{
    for (uint64_t i = 1 + fault_draw(random, 2); i > 0; i--) change_field(format, random, out);
    if (format->good.bytes > 4096 && fault_draw(random, 2)) {
        uint64_t digest = XXH3_64bits(out, 56);
        memcpy(out + 56, &digest, sizeof digest);
    }
    return format->good.bytes;
}

// The dict anew, with one of its parts wrong.
static size_t change_npy(struct fault_random *random, unsigned char *out)
{
    static const char *const types[] = {"<f4", ">f4", "<f8", "|O",  "<U99999999999",
                                        "",    "f4",  "|u1", "|i1", "<f2"};
    static const char *const orders[] = {"False", "True", "false", "0", "None", ""};
    static const char *const forms[] = {
        "{'descr': '%s', 'fortran_order': %s, 'shape': (%llu, %llu), }\n",
        "{'descr': '%s', 'fortran_order': %s, 'shape': (%llu, %llu, 1)}\n",
        "{'descr': '%s', 'fortran_order': %s, 'shape': (%lld, %lld), }\n",
        "{'descr': '%s', 'fortran_order': %s, 'shape': (%lluL, %llu), }\n",
        "{'descr': '%s', 'fortran_order': %s, 'shape': (%llu, %llu, }\n",
        "{'descr': '%s, 'fortran_order': %s, 'shape': (%llu, %llu), }\n",
        "{'shape': '%s', 'fortran_order': %s, 'shape': (%llu, %llu), }\n",
        "{'descr': '%s', 'fortran_order': %s, 'shape': (%llu99999999999999999999, %llu), }\n",
    };
    char dict[256];
    uint64_t rows = ROWS, dims = DIMS;
    if (fault_draw(random, 2)) rows = hostile_number(random, rows);
    if (fault_draw(random, 2)) dims = hostile_number(random, dims);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(dict, sizeof dict, forms[fault_draw(random, sizeof forms / sizeof forms[0])],
             types[fault_draw(random, sizeof types / sizeof types[0])],
             orders[fault_draw(random, 3) ? 0 : fault_draw(random, 6)], (unsigned long long)rows,
             (unsigned long long)dims);
#pragma GCC diagnostic pop
    size_t head = npy_header((int)(1 + fault_draw(random, 3)), dict, out);
    if (fault_draw(random, 4) == 0)
        out[fault_draw(random, 12)] ^= (unsigned char)(1 + fault_draw(random, 255));
    size_t rest = ROWS * DIMS * 4;
    memset(out + head, 0, rest);
    return head + rest;
}

// Bytes of a varint that begins there; 0 if it does not end.
static size_t varint_bytes(const unsigned char *data, size_t left)
{
    for (size_t i = 0; i < left && i < 10; i++) {
        if (data[i] < 0x80) return i + 1;
    }
    return 0;
}

// Changes a byte of a tag, number or length; half of the changes make the checksum fit.
static size_t change_protobuf(const struct malformed_format *format, struct fault_random *random,
                              unsigned char *out)
{
    size_t bytes = format->good.bytes - BSW_SEAL_BYTES;
    size_t at = fault_draw(random, bytes < 160 || fault_draw(random, 2) ? bytes : 160);
    size_t length = varint_bytes(out + at, bytes - at);
    uint64_t number = hostile_number(random, out[at]);
    for (size_t i = 0; i < length; i++, number >>= 7)
        out[at + i] = (unsigned char)((number & 0x7f) | (i + 1 < length ? 0x80 : 0));
    if (length == 0 || fault_draw(random, 4) == 0) out[at] = (unsigned char)fault_draw(random, 256);
    if (fault_draw(random, 2)) {
        struct bsw_buffer sealed = {0};
        FAULT_REQUIRE(bsw_buffer_append(&sealed, out, bytes, NULL) == BSW_OK &&
                          bsw_message_seal(&sealed, NULL, NULL) == BSW_OK,
                      "%s", format->label);
        memcpy(out, sealed.data, sealed.bytes);
        bsw_buffer_deinit(&sealed);
    }
    return format->good.bytes;
}

static size_t change_json(const struct malformed_format *format, struct fault_random *random,
                          unsigned char *out)
{
    static const char hostile[] = "{}[]\":,0\\\xff\x80\x01 e-";
    out[fault_draw(random, format->good.bytes)] =
        (unsigned char)hostile[fault_draw(random, sizeof hostile)];
    return format->good.bytes;
}

size_t malformed_change(const struct malformed_format *format, struct fault_random *random,
                        unsigned char *out, size_t room)
{
    size_t bytes = 0;
    FAULT_REQUIRE(format->good.bytes + 1024 <= room, "%s", format->label);
    memcpy(out, format->good.data, format->good.bytes);
    switch (format->family) {
    case FAMILY_FIELDS:
        bytes = change_fields(format, random, out);
        break;
    case FAMILY_NPY:
        bytes = change_npy(random, out);
        break;
    case FAMILY_PROTOBUF:
        bytes = change_protobuf(format, random, out);
        break;
    case FAMILY_JSON:
        bytes = change_json(format, random, out);
        break;
    }
    if (fault_draw(random, 8) == 0) { // and a size that is not the header's
        size_t more = 1 + fault_draw(random, 64);
        memset(out + bytes, 0, more);
        bytes = fault_draw(random, 2) ? bytes + more : bytes - (more < bytes ? more : bytes);
    }
    return bytes;
}

// ---- what must be refused ----

// A header of two numbers, of either width, that explains the size.
static int is_dense(const struct malformed_format *format, const unsigned char *data, size_t bytes)
{
    uint32_t narrow[2];
    uint64_t wide[2];
    unsigned __int128 number = format->number_bytes;
    int is_result = format->read == read_results;
    if (bytes >= 8) {
        memcpy(narrow, data, 8);
        if (8 + (unsigned __int128)narrow[0] * narrow[1] * number == bytes) return 1;
    }
    if (bytes < 16) return 0;
    memcpy(wide, data, 16);
    number += is_result ? 4 : 0; // ids of 64 bits
    // Products of both wrap nowhere: a factor above 2^32 is more than the file holds.
    return wide[0] <= UINT32_MAX && wide[1] <= UINT32_MAX &&
           16 + (unsigned __int128)wide[0] * wide[1] * number == bytes;
}

// Every row says the same dims, as many as its bytes.
static int is_vecs(const struct malformed_format *format, const unsigned char *data, size_t bytes)
{
    uint32_t first, dims;
    size_t number = (format->row_bytes - 4) / DIMS;
    if (bytes < 4) return 0;
    memcpy(&first, data, 4);
    if (first < 1 || first > BSW_MAX_DIMS || bytes % (4 + first * number) != 0) return 0;
    for (size_t at = 0; at < bytes; at += 4 + first * number) {
        memcpy(&dims, data + at, 4);
        if (dims != first) return 0;
    }
    return 1;
}

int malformed_must_refuse(const struct malformed_format *format, const unsigned char *data,
                          size_t bytes)
{
    int is_changed = bytes != format->good.bytes || memcmp(data, format->good.data, bytes) != 0;
    if (!is_changed) return 0;
    if (format->row_bytes > 0) return !is_vecs(format, data, bytes);
    if (format->number_bytes > 0) return !is_dense(format, data, bytes);
    // A part of an index is bound to it; other texts and messages may still be good ones.
    return format->family == FAMILY_FIELDS;
}
