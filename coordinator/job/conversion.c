// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/conversion.h"

#include <math.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/codes/half.h"
#include "common/files/result_file.h"
#include "common/job/progress.h"
#include "common/rows/vectors.h"
#include "coordinator/job/sidecar.h"
#include "kernels/refine/refine.h"

// ---- vectors ----

#define BLOCK_BYTES   ((size_t)4 << 20)
#define HALF_INFINITY 0x7c00
#define HALF_NAN      0x7e00

// Whether the type has the number, whose bits are then in *bits.
static int narrow_half(double number, uint16_t *bits)
{
    uint16_t sign = signbit(number) ? 0x8000 : 0;
    *bits = sign | HALF_INFINITY;
    if (isinf(number)) return 1;
    *bits |= HALF_NAN;
    if (isnan(number)) return 1;
    if (fabs(number) > (double)BSW_HALF_MAX) return 0;
    *bits = sign | bsw_half_nearest(fabs(number));
    return bsw_half_to_float(*bits) == number;
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
            if (!narrow_half(numbers[i], &half)) return i;
            memcpy((char *)out + 2 * i, &half, sizeof half);
            continue;
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

// A block on its way, in one piece of memory: wide, as it was read, and as it will be written.
struct block {
    size_t most_rows;
    double *wide;
    void *read, *write;
};

static enum bsw_status make_block(const bsw_vectors *in, struct block *block, struct bsw_error *err)
{
    size_t dims = bsw_vectors_dims(in), rows = BLOCK_BYTES / (dims * sizeof(double));
    block->most_rows = rows > 0 ? rows : 1;
    size_t numbers = block->most_rows * dims;
    BSW_TRY(bsw_allocate(&block->wide, 2 * numbers, sizeof(double), "block of vectors", err));
    block->read = block->wide + numbers;
    block->write = (char *)block->read + 4 * numbers;
    return BSW_OK;
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

static enum bsw_status copy_rows(const struct bsw_conversion *o, const bsw_vectors *in,
                                 enum bsw_vector_type type, struct block *block,
                                 bsw_vector_writer *writer, struct bsw_error *err)
{
    uint64_t first = bsw_vectors_first_row(in), num_rows = bsw_vectors_num_rows(in);
    struct bsw_progress progress;
    bsw_progress_init(&progress, "convert", "rows", num_rows, o->is_shown);
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
static enum bsw_status find_type(const struct bsw_conversion *o, enum bsw_vector_type from,
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

static enum bsw_status write_vectors(const struct bsw_conversion *o, const bsw_vectors *in,
                                     struct bsw_converted *done, struct bsw_error *err)
{
    enum bsw_vector_type type;
    bsw_vector_writer *writer;
    struct block block;
    if (bsw_vectors_is_double(in) && strcmp(o->type, "float32") != 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: has float64: --type float32 rounds it to that",
                        o->in);
    BSW_TRY(find_type(o, bsw_vectors_type(in), &type, err));
    BSW_TRY(bsw_vector_writer_create(o->out, type, bsw_vectors_dims(in), bsw_vectors_num_rows(in),
                                     o->force, &writer, err));
    enum bsw_status status = make_block(in, &block, err);
    if (status == BSW_OK) {
        status = copy_rows(o, in, type, &block, writer, err);
        bsw_free(&block.wide);
    }
    if (status == BSW_OK) status = bsw_vector_writer_finish(writer, err);
    bsw_vector_writer_destroy(&writer);
    *done = (struct bsw_converted){"vectors", bsw_vector_type_name(type), bsw_vectors_num_rows(in),
                                   bsw_vectors_dims(in)};
    return status;
}

enum bsw_status bsw_convert_vectors(const struct bsw_conversion *o, struct bsw_converted *done,
                                    struct bsw_error *err)
{
    bsw_vectors *in;
    BSW_TRY((o->has_queries ? bsw_queries_open : bsw_vectors_open_any)(o->in, o->rows, &in, err));
    enum bsw_status status = write_vectors(o, in, done, err);
    bsw_vectors_close(&in);
    return status;
}

// ---- neighbours ----

// Keeps the queries of --rows, at the front.
static enum bsw_status cut_queries(const struct bsw_conversion *o, struct bsw_results *results,
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
static enum bsw_status narrow_ids(const struct bsw_conversion *o, struct bsw_results *results,
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
static enum bsw_status copy_facts(const struct bsw_conversion *o, struct bsw_error *err)
{
    int is_part = o->rows.first != 0 || o->rows.last != UINT64_MAX;
    return bsw_sidecar_copy(o->in, o->out, is_part, o->rows.first, o->force, err);
}

static enum bsw_status open_matrix(const struct bsw_conversion *o, const char *path,
                                   enum bsw_vector_type type, const struct bsw_results *results,
                                   const void *numbers, bsw_vector_writer **out,
                                   struct bsw_error *err)
{
    uint32_t k = results->k > UINT32_MAX ? UINT32_MAX : (uint32_t)results->k;
    BSW_TRY(bsw_vector_writer_create(path, type, k, results->num_queries, o->force, out, err));
    return bsw_vector_writer_put(*out, 0, (size_t)results->num_queries, numbers, err);
}

// Both files are whole before either has its name; the ids come last.
static enum bsw_status write_ids(const struct bsw_conversion *o, struct bsw_results *results,
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

static enum bsw_status write_big_ann(const struct bsw_conversion *o,
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

enum bsw_status bsw_convert_neighbours(const struct bsw_conversion *o, struct bsw_converted *done,
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
    *done = (struct bsw_converted){"neighbours", "ids", results.num_queries, results.k};
    bsw_results_deinit(&results);
    return status;
}
