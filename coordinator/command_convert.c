// convert: vectors, or ids of neighbours with their values, from one file format to another. What
// the other format cannot hold exactly is refused.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/half.h"
#include "common/progress.h"
#include "common/source_name.h"
#include "common/vector_writer.h"
#include "coordinator/command.h"
#include "coordinator/command_files.h"
#include "coordinator/sidecar.h"
#include "kernels/refine/refine.h"

#define BLOCK_BYTES ((size_t)4 << 20)

struct convert_options {
    struct bsw_common_options common;
    const char *in, *out, *type;
    struct bsw_row_range rows;
    int force;
};

// What was written, for the report.
struct converted {
    const char *kind, *type;
    uint64_t rows, dims;
};

static enum bsw_status parse(struct bsw_transport *transport, struct convert_options *o, int argc,
                             char **argv, int *done, struct bsw_error *err)
{
    const struct bsw_option options[] = {
        {"in", BSW_OPTION_TEXT, &o->in, "FILE", NULL, 1, 0, 0, NULL,
         "vectors, a ground truth or a result; FILE.hdf5:DATASET too [train]"},
        {"out", BSW_OPTION_TEXT, &o->out, "FILE", NULL, 1, 0, 0, NULL,
         "vectors: .fvecs .bvecs .fbin .u8bin .i8bin .npy; neighbours: .ivecs, .ibin, "
         "X.neighbors.ibin (values to X.distances.fbin), all other names big-ann's layout"},
        {"rows", BSW_OPTION_ROWS, &o->rows, "A:B", NULL, 0, 0, 0, NULL, "only these rows"},
        {"type", BSW_OPTION_CHOICE, &o->type, NULL, "auto", 0, 0, 0,
         "auto|float32|float16|uint8|int8", "numbers of a .npy file; auto: those of the input"},
        {"force", BSW_OPTION_FLAG, &o->force, NULL, NULL, 0, 0, 0, NULL,
         "replace an existing file"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"convert", "write a file in another format", options,
                                           sizeof options / sizeof options[0]};
    return bsw_command_parse(transport, &table, &o->common, argc, argv, done, err);
}

// ---- vectors ----

// Nearest number of the type, as its bits and as what they mean.
static double narrow_half(double number, uint16_t *bits)
{
    uint16_t sign = signbit(number) ? 0x8000 : 0;
    *bits = sign;
    if (!(fabs(number) <= (double)BSW_HALF_MAX)) return 0; // NaN, Inf and what is too large
    *bits |= bsw_half_nearest(fabs(number));
    return bsw_half_to_float(*bits);
}

static double narrow_byte(double number, double least, double most, unsigned char *out)
{
    if (!(number >= least && number <= most)) return NAN;
    int whole = (int)number;
    *out = (unsigned char)whole;
    return whole;
}

// The first of `count` numbers that the type does not hold, or count.
static size_t narrow(enum bsw_vector_type type, const double *numbers, size_t count, void *out)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        float single;
        double held = NAN;
        switch (type) {
        case BSW_VECTOR_FLOAT32: // all types fit, NaN included
            single = (float)numbers[i];
            memcpy((char *)out + 4 * i, &single, sizeof single);
            continue;
        case BSW_VECTOR_FLOAT16:
            held = narrow_half(numbers[i], &half);
            memcpy((char *)out + 2 * i, &half, sizeof half);
            break;
        case BSW_VECTOR_UINT8:
            held = narrow_byte(numbers[i], 0, 255, (unsigned char *)out + i);
            break;
        default:
            held = narrow_byte(numbers[i], -128, 127, (unsigned char *)out + i);
        }
        if (!(held == numbers[i])) return i;
    }
    return count;
}

// A block on its way: as it was read, wide, and as it will be written.
struct block {
    size_t most_rows;
    void *read, *write;
    double *wide;
};

static void deinit_block(struct block *block)
{
    bsw_free(&block->read);
    bsw_free(&block->write);
    bsw_free(&block->wide);
}

static enum bsw_status make_block(const bsw_vectors *in, struct block *block, struct bsw_error *err)
{
    size_t dims = bsw_vectors_dims(in), rows = BLOCK_BYTES / (dims * sizeof(double));
    *block = (struct block){.most_rows = rows > 0 ? rows : 1};
    enum bsw_status status = bsw_allocate(&block->wide, block->most_rows * dims, sizeof(double),
                                          "block of vectors", err);
    if (status == BSW_OK)
        status = bsw_allocate(&block->read, block->most_rows * dims, 4, "block of vectors", err);
    if (status == BSW_OK)
        status = bsw_allocate(&block->write, block->most_rows * dims, 4, "block of vectors", err);
    if (status != BSW_OK) deinit_block(block);
    return status;
}

// *out: the numbers to write, one of the block's buffers.
static enum bsw_status convert_block(const bsw_vectors *in, enum bsw_vector_type type,
                                     struct block *block, uint64_t first_row, size_t num_rows,
                                     const void **out, struct bsw_error *err)
{
    size_t dims = bsw_vectors_dims(in), count = num_rows * dims;
    BSW_TRY(bsw_vectors_read(in, first_row, num_rows, block->read, err));
    *out = block->read;
    if (bsw_vectors_type(in) == type) return BSW_OK;
    *out = block->write;
    bsw_refine_table_get(BSW_CPU_REFERENCE)
        ->to_double(bsw_vectors_type(in), block->read, count, block->wide);
    size_t misfit = narrow(type, block->wide, count, block->write);
    if (misfit == count) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu: number %zu is %.9g, which %s has not",
                    bsw_vectors_name(in), (unsigned long long)(first_row + misfit / dims),
                    misfit % dims, block->wide[misfit], bsw_vector_type_name(type));
}

static enum bsw_status copy_rows(const struct convert_options *o, const bsw_vectors *in,
                                 enum bsw_vector_type type, struct block *block,
                                 bsw_vector_writer *writer, struct bsw_error *err)
{
    uint64_t first = bsw_vectors_first_row(in), num_rows = bsw_vectors_num_rows(in);
    struct bsw_progress progress;
    bsw_progress_init(&progress, "convert", "rows", num_rows, !o->common.quiet);
    enum bsw_status status = BSW_OK;
    for (uint64_t row = 0; row < num_rows && status == BSW_OK;) {
        const void *numbers;
        uint64_t left = num_rows - row;
        size_t count = left < block->most_rows ? (size_t)left : block->most_rows;
        status = convert_block(in, type, block, first + row, count, &numbers, err);
        if (status == BSW_OK) status = bsw_vector_writer_put(writer, row, count, numbers, err);
        row += count;
        bsw_progress_update(&progress, row);
    }
    bsw_progress_finish(&progress);
    return status;
}

// From --type, the name of the output, or the input.
static enum bsw_status find_type(const struct convert_options *o, enum bsw_vector_type from,
                                 enum bsw_vector_type *out, struct bsw_error *err)
{
    enum bsw_vector_type asked = from;
    for (int type = 0; type < BSW_VECTOR_INT32; type++)
        if (strcmp(o->type, bsw_vector_type_name(type)) == 0) asked = type;
    BSW_TRY(bsw_vector_writer_type(o->out, asked, out, err));
    if (*out == BSW_VECTOR_INT32)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: holds ids, %s has vectors", o->out, o->in);
    if (strcmp(o->type, "auto") == 0 || *out == asked) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--type %s: %s holds %s", o->type, o->out,
                    bsw_vector_type_name(*out));
}

static enum bsw_status write_vectors(const struct convert_options *o, const bsw_vectors *in,
                                     struct converted *done, struct bsw_error *err)
{
    enum bsw_vector_type type;
    bsw_vector_writer *writer;
    struct block block;
    BSW_TRY(find_type(o, bsw_vectors_type(in), &type, err));
    BSW_TRY(bsw_vector_writer_create(o->out, type, bsw_vectors_dims(in), bsw_vectors_num_rows(in),
                                     o->force, &writer, err));
    enum bsw_status status = make_block(in, &block, err);
    if (status == BSW_OK) {
        status = copy_rows(o, in, type, &block, writer, err);
        deinit_block(&block);
    }
    if (status == BSW_OK) status = bsw_vector_writer_finish(writer, err);
    bsw_vector_writer_destroy(&writer);
    *done = (struct converted){"vectors", bsw_vector_type_name(type), bsw_vectors_num_rows(in),
                               bsw_vectors_dims(in)};
    return status;
}

static enum bsw_status convert_vectors(const struct convert_options *o, struct converted *done,
                                       struct bsw_error *err)
{
    bsw_vectors *in;
    BSW_TRY(bsw_vectors_open(o->in, o->rows, &in, err));
    enum bsw_status status = write_vectors(o, in, done, err);
    bsw_vectors_close(&in);
    return status;
}

// ---- neighbours ----

// Keeps the queries of --rows, at the front.
static enum bsw_status cut_queries(const struct convert_options *o, struct bsw_results *results,
                                   struct bsw_error *err)
{
    uint64_t first = o->rows.first, last = o->rows.last;
    if (last == UINT64_MAX) last = results->num_queries;
    if (first >= last || last > results->num_queries) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--rows %llu:%llu: %s has %llu queries",
                        (unsigned long long)first, (unsigned long long)last, o->in,
                        (unsigned long long)results->num_queries);
    }
    size_t skip = (size_t)(first * results->k), count = (size_t)((last - first) * results->k);
    memmove(results->ids, results->ids + skip, count * sizeof *results->ids);
    if (results->values)
        memmove(results->values, results->values + skip, count * sizeof *results->values);
    results->num_queries = last - first;
    return BSW_OK;
}

// Ids as int32, in place of the int64.
static enum bsw_status narrow_ids(const struct convert_options *o, struct bsw_results *results,
                                  struct bsw_error *err)
{
    size_t count = (size_t)(results->num_queries * results->k);
    for (size_t i = 0; i < count; i++) {
        if (results->ids[i] > INT32_MAX) {
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu has id %lld, %s holds 32 bits",
                            o->in, (unsigned long long)(i / results->k), (long long)results->ids[i],
                            o->out);
        }
        int32_t id = (int32_t)results->ids[i];
        memcpy((char *)results->ids + i * sizeof id, &id, sizeof id);
    }
    return BSW_OK;
}

// FILE.json of what was cut out.
static enum bsw_status copy_facts(const struct convert_options *o, struct bsw_error *err)
{
    int is_part = o->rows.first != 0 || o->rows.last != UINT64_MAX;
    return bsw_sidecar_copy(o->in, o->out, is_part, o->rows.first, o->force, err);
}

static enum bsw_status open_matrix(const struct convert_options *o, const char *path,
                                   enum bsw_vector_type type, const struct bsw_results *results,
                                   const void *numbers, bsw_vector_writer **out,
                                   struct bsw_error *err)
{
    uint32_t k = results->k > UINT32_MAX ? UINT32_MAX : (uint32_t)results->k;
    BSW_TRY(bsw_vector_writer_create(path, type, k, results->num_queries, o->force, out, err));
    return bsw_vector_writer_put(*out, 0, (size_t)results->num_queries, numbers, err);
}

// Both files are whole before either has its name; the ids come last.
static enum bsw_status write_ids(const struct convert_options *o, struct bsw_results *results,
                                 struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    bsw_vector_writer *ids = NULL, *values = NULL;
    int has_values = bsw_split_values_path(o->out, path) && results->values;
    BSW_TRY(narrow_ids(o, results, err));
    enum bsw_status status =
        open_matrix(o, o->out, BSW_VECTOR_INT32, results, results->ids, &ids, err);
    if (status == BSW_OK && has_values)
        status = open_matrix(o, path, BSW_VECTOR_FLOAT32, results, results->values, &values, err);
    if (status == BSW_OK) status = copy_facts(o, err);
    if (status == BSW_OK && has_values) status = bsw_vector_writer_finish(values, err);
    if (status == BSW_OK) status = bsw_vector_writer_finish(ids, err);
    bsw_vector_writer_destroy(&values);
    bsw_vector_writer_destroy(&ids);
    return status;
}

static enum bsw_status write_big_ann(const struct convert_options *o,
                                     const struct bsw_results *results, struct bsw_error *err)
{
    bsw_result_writer *writer;
    int has_wide_ids = 0;
    if (!results->values) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s has ids without values, which big-ann's layout needs; .ivecs and .ibin "
                        "hold ids alone",
                        o->in);
    }
    for (uint64_t i = 0; i < results->num_queries * results->k; i++)
        has_wide_ids |= results->ids[i] > INT32_MAX;
    BSW_TRY(bsw_result_writer_create(o->out, results->num_queries, results->k, has_wide_ids,
                                     o->force, &writer, err));
    enum bsw_status status = bsw_result_writer_put(writer, 0, (size_t)results->num_queries,
                                                   results->ids, results->values, err);
    if (status == BSW_OK) status = copy_facts(o, err);
    if (status == BSW_OK) status = bsw_result_writer_finish(writer, err);
    bsw_result_writer_destroy(&writer);
    return status;
}

static enum bsw_status convert_neighbours(const struct convert_options *o, struct converted *done,
                                          struct bsw_error *err)
{
    struct bsw_results results;
    if (bsw_name_is_vectors(o->out) || strcmp(o->type, "auto") != 0) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s has neighbours, to be written to .ivecs, .ibin or big-ann's layout",
                        o->in);
    }
    BSW_TRY(bsw_results_read(o->in, &results, err));
    enum bsw_status status = cut_queries(o, &results, err);
    if (status == BSW_OK) {
        status =
            bsw_name_is_ids(o->out) ? write_ids(o, &results, err) : write_big_ann(o, &results, err);
    }
    *done = (struct converted){"neighbours", "ids", results.num_queries, results.k};
    bsw_results_deinit(&results);
    return status;
}

static void report(const struct convert_options *o, const struct converted *done)
{
    if (o->common.json) {
        bsw_print_json(json_pack("{s:s, s:s, s:s, s:I, s:I, s:s}", "in", o->in, "out", o->out,
                                 "kind", done->kind, "rows", (json_int_t)done->rows, "dims",
                                 (json_int_t)done->dims, "type", done->type));
    } else if (!o->common.quiet) {
        printf("%s: %llu rows x %llu, %s (%s)\n", o->out, (unsigned long long)done->rows,
               (unsigned long long)done->dims, done->kind, done->type);
    }
}

// FILE, FILE.json, and of split neighbours the file of their values.
struct file_names {
    char json[BSW_PATH_BYTES], values[BSW_PATH_BYTES];
    int has_values;
};

static enum bsw_status name_files(const char *path, struct file_names *out, struct bsw_error *err)
{
    int length = snprintf(out->json, sizeof out->json, "%s.json", path);
    if (length < 0 || (size_t)length >= sizeof out->json)
        return bsw_fail(err, BSW_ERROR_USAGE, "path is too long");
    out->has_values = bsw_split_values_path(path, out->values);
    return BSW_OK;
}

static enum bsw_status check_files(const struct convert_options *o, struct bsw_error *err)
{
    struct file_names in, out;
    BSW_TRY(name_files(o->in, &in, err));
    BSW_TRY(name_files(o->out, &out, err));
    const struct bsw_command_files files = {
        .inputs = {o->in, in.json, in.has_values ? in.values : NULL},
        .outputs = {o->out, out.json, out.has_values ? out.values : NULL}};
    return bsw_command_files_check(&files, err);
}

static enum bsw_status convert(const struct convert_options *o, struct converted *done,
                               struct bsw_error *err)
{
    BSW_TRY(check_files(o, err));
    return bsw_name_is_vectors(o->in) ? convert_vectors(o, done, err)
                                      : convert_neighbours(o, done, err);
}

enum bsw_status bsw_command_convert(struct bsw_transport *transport, int argc, char **argv,
                                    struct bsw_error *err)
{
    struct convert_options options = {0};
    struct converted converted = {0};
    int done;
    BSW_TRY(parse(transport, &options, argc, argv, &done, err));
    if (done) return BSW_OK;
    enum bsw_status status = transport->rank == 0 ? convert(&options, &converted, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    if (transport->rank == 0) report(&options, &converted);
    return BSW_OK;
}
