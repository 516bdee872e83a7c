// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/files/npz_file.h"
#include "common/files/result_file.h"
#include "common/files/result_layout.h"
#include "common/rows/vectors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "result files are little endian");

int bsw_result_layout_make(const char *path, uint64_t num_queries, uint64_t k, int is_wide,
                           struct bsw_result_layout *out)
{
    uint64_t places, bytes;
    int is_npz = bsw_name_ends_with(path, ".npz");
    *out = (struct bsw_result_layout){.num_queries = num_queries,
                                      .k = k,
                                      .is_npz = is_npz,
                                      .first_byte = is_npz    ? BSW_NPZ_HEAD_BYTES
                                                    : is_wide ? 16
                                                              : 8,
                                      .between_bytes = is_npz ? BSW_NPZ_HEAD_BYTES : 0,
                                      .id_bytes = is_wide ? 8 : 4};
    uint64_t others = out->first_byte + out->between_bytes + (is_npz ? BSW_NPZ_TAIL_BYTES : 0);
    if (__builtin_mul_overflow(num_queries, k, &places)) return 0;
    if (__builtin_mul_overflow(places, out->id_bytes + sizeof(float), &bytes)) return 0;
    if (bytes > (uint64_t)INT64_MAX - others) return 0;
    out->file_bytes = others + bytes;
    return 1;
}

// The header of big-ann's layout; head has the file's first 16 bytes, or all if it is shorter.
static enum bsw_status read_header(const char *name, const unsigned char *head, uint64_t file_bytes,
                                   struct bsw_result_layout *out, struct bsw_error *err)
{
    uint32_t narrow[2] = {0};
    uint64_t wide[2] = {0};
    struct bsw_result_layout narrow_form, wide_form;
    if (file_bytes == 0) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: empty", name);
    if (file_bytes >= sizeof narrow) memcpy(narrow, head, sizeof narrow);
    if (file_bytes >= sizeof wide) memcpy(wide, head, sizeof wide);
    if (file_bytes < sizeof narrow || (narrow[1] == 0 && file_bytes < sizeof wide)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: truncated inside the header: %llu bytes",
                        name, (unsigned long long)file_bytes);
    }
    int is_narrow = bsw_result_layout_make(name, narrow[0], narrow[1], 0, &narrow_form) &&
                    narrow[1] != 0 && narrow_form.file_bytes == file_bytes;
    int is_wide = bsw_result_layout_make(name, wide[0], wide[1], 1, &wide_form) &&
                  wide_form.file_bytes == file_bytes;
    *out = is_narrow || (narrow[1] != 0 && !is_wide) ? narrow_form : wide_form;
    if (is_narrow || is_wide) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: the header says %llu queries x %llu (%llu bytes), the file has %llu", name,
                    (unsigned long long)out->num_queries, (unsigned long long)out->k,
                    (unsigned long long)out->file_bytes, (unsigned long long)file_bytes);
}

// No header of ours is: it would count hundreds of millions of queries and of neighbours.
static int is_text(const unsigned char *head, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if ((head[i] < ' ' || head[i] > '~') && !strchr("\t\r\n", head[i])) return 0;
    }
    return bytes > 0;
}

// What a file is, where it is no result, and what to do with it.
static enum bsw_status explain(const char *path, const unsigned char *head, size_t bytes,
                               enum bsw_status status, struct bsw_error *err)
{
    if (!err) return status;
    if (status != BSW_ERROR_BAD_DATA || bytes == 0) return status;
    if (bsw_name_is_vectors(path))
        return bsw_fail(err, status,
                        "%s: holds vectors, not neighbours: `bitsweep groundtruth` makes true "
                        "neighbours, `bitsweep search` a result",
                        path);
    if (is_text(head, bytes))
        return bsw_fail(err, status,
                        "%s: is text, which is not read; vectors in it become a file that is by "
                        "Python's numpy.save('X.npy', numpy.loadtxt(FILE, 'f4'))",
                        path);
    const struct bsw_error why = *err;
    return bsw_fail(err, status, "%.160s: no result; names of vectors end in " BSW_VECTOR_ENDINGS,
                    why.message);
}

static enum bsw_status check_header(const char *name, const unsigned char *head,
                                    uint64_t file_bytes, struct bsw_result_layout *out,
                                    struct bsw_error *err)
{
    *out = (struct bsw_result_layout){0};
    enum bsw_status status = read_header(name, head, file_bytes, out, err);
    if (status != BSW_OK)
        return explain(name, head, file_bytes < 16 ? (size_t)file_bytes : 16, status, err);
    if (out->num_queries > 0 && out->k > 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the header says %llu queries x %llu", name,
                    (unsigned long long)out->num_queries, (unsigned long long)out->k);
}

static enum bsw_status check_id(const char *name, int64_t id, uint64_t place, uint64_t k,
                                struct bsw_error *err)
{
    if (id >= -1) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu, place %llu: id %lld", name,
                    (unsigned long long)(place / k), (unsigned long long)(place % k),
                    (long long)id);
}

// ids of `count` places, int32 or int64 by id_bytes, widened; first_place is for messages.
static enum bsw_status take_ids(const char *name, const unsigned char *from, uint64_t id_bytes,
                                uint64_t first_place, size_t count, struct bsw_results *out,
                                struct bsw_error *err)
{
    int64_t *ids = out->ids + first_place;
    for (size_t i = 0; i < count; i++) {
        if (id_bytes == 8) {
            memcpy(&ids[i], from + i * 8, 8);
        } else {
            int32_t id;
            memcpy(&id, from + i * 4, 4);
            ids[i] = id;
        }
        BSW_TRY(check_id(name, ids[i], first_place + i, out->k, err));
    }
    return BSW_OK;
}

static enum bsw_status take_values(const char *name, const unsigned char *from,
                                   struct bsw_results *out, struct bsw_error *err)
{
    size_t count = (size_t)(out->num_queries * out->k);
    memcpy(out->values, from, count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        if (!isnan(out->values[i])) continue;
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu, place %llu: the value is NaN",
                        name, (unsigned long long)(i / out->k), (unsigned long long)(i % out->k));
    }
    return BSW_OK;
}

static enum bsw_status parse_big_ann(const char *name, const unsigned char *data, size_t bytes,
                                     struct bsw_results *out, struct bsw_error *err)
{
    struct bsw_result_layout layout = {0};
    BSW_TRY(check_header(name, data, bytes, &layout, err));
    size_t count = (size_t)(layout.num_queries * layout.k);
    const unsigned char *ids = data + layout.first_byte;
    out->num_queries = layout.num_queries;
    out->k = layout.k;
    BSW_TRY(bsw_allocate(&out->ids, count, sizeof(int64_t), "result ids", err));
    BSW_TRY(bsw_allocate(&out->values, count, sizeof(float), "result values", err));
    BSW_TRY(take_ids(name, ids, layout.id_bytes, 0, count, out, err));
    return take_values(name, ids + count * layout.id_bytes, out, err);
}

// The int32 that stands before each row of .ivecs.
static enum bsw_status check_row_head(const char *name, const struct bsw_vector_layout *layout,
                                      uint64_t row, const unsigned char *ids, struct bsw_error *err)
{
    int32_t dims;
    if (!layout->is_vecs) return BSW_OK;
    memcpy(&dims, ids - 4, sizeof dims);
    if (dims == (int32_t)layout->dims) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu says %d ids, the first row %u", name,
                    (unsigned long long)row, dims, layout->dims);
}

static enum bsw_status parse_ids(const char *name, const unsigned char *data, size_t bytes,
                                 struct bsw_results *out, struct bsw_error *err)
{
    struct bsw_vector_layout layout;
    BSW_TRY(bsw_vector_layout_parse(name, data, bytes, bytes, &layout, err));
    out->num_queries = layout.num_rows;
    out->k = layout.dims;
    BSW_TRY(bsw_allocate(&out->ids, (size_t)(layout.num_rows * layout.dims), sizeof(int64_t),
                         "result ids", err));
    for (uint64_t row = 0; row < layout.num_rows; row++) {
        const unsigned char *ids = data + layout.first_byte + row * layout.stride_bytes;
        BSW_TRY(check_row_head(name, &layout, row, ids, err));
        BSW_TRY(take_ids(name, ids, 4, row * layout.dims, layout.dims, out, err));
    }
    return BSW_OK;
}

// Arrays of NumPy: ids of either width, values beside them.
static enum bsw_status parse_npz(const char *name, const unsigned char *data, size_t bytes,
                                 struct bsw_results *out, struct bsw_error *err)
{
    struct bsw_npz_arrays arrays;
    BSW_TRY(bsw_npz_parse(name, data, bytes, &arrays, err));
    size_t count = (size_t)(arrays.num_queries * arrays.k);
    out->num_queries = arrays.num_queries;
    out->k = arrays.k;
    BSW_TRY(bsw_allocate(&out->ids, count, sizeof(int64_t), "result ids", err));
    BSW_TRY(bsw_allocate(&out->values, count, sizeof(float), "result values", err));
    BSW_TRY(take_ids(name, arrays.ids, arrays.id_bytes, 0, count, out, err));
    return take_values(name, arrays.values, out, err);
}

enum bsw_status bsw_results_parse(const char *name, const void *data, size_t bytes,
                                  struct bsw_results *out, struct bsw_error *err)
{
    struct bsw_results results = {0};
    enum bsw_status status =
        (bsw_name_is_ids(name)              ? parse_ids
         : bsw_name_ends_with(name, ".npz") ? parse_npz
                                            : parse_big_ann)(name, data, bytes, &results, err);
    if (status != BSW_OK) bsw_results_deinit(&results);
    *out = results;
    return status;
}

// Looks at the header alone first: a base file given by mistake is refused before it is loaded.
static enum bsw_status check_header_of_file(const char *path, struct bsw_error *err)
{
    unsigned char head[16] = {0};
    struct bsw_result_layout layout;
    struct bsw_vector_layout ids;
    uint64_t file_bytes;
    int fd;
    BSW_TRY(bsw_file_open_read(path, &fd, &file_bytes, err));
    size_t head_bytes = file_bytes < sizeof head ? (size_t)file_bytes : sizeof head;
    enum bsw_status status = bsw_file_read_at(fd, path, 0, head, head_bytes, err);
    bsw_file_close(&fd);
    BSW_TRY(status);
    if (bsw_name_is_ids(path))
        return bsw_vector_layout_parse(path, head, head_bytes, file_bytes, &ids, err);
    if (bsw_name_ends_with(path, ".npz")) return bsw_npz_check(path, head, head_bytes, err);
    return check_header(path, head, file_bytes, &layout, err);
}

static enum bsw_status read_hdf5(const char *name, const struct bsw_hdf5_name *hdf5,
                                 struct bsw_results *out, struct bsw_error *err)
{
    uint64_t file_bytes;
    int fd;
    BSW_TRY(bsw_file_open_read(hdf5->file, &fd, &file_bytes, err));
    enum bsw_status status = bsw_hdf5_ids_read(name, hdf5->file, hdf5->dataset, fd, file_bytes,
                                               &out->num_queries, &out->k, &out->ids, err);
    bsw_file_close(&fd);
    BSW_TRY(status);
    for (uint64_t i = 0; i < out->num_queries * out->k; i++)
        BSW_TRY(check_id(name, out->ids[i], i, out->k, err));
    return BSW_OK;
}

int bsw_split_values_path(const char *ids_path, char out[BSW_PATH_BYTES])
{
    static const char ids_ending[] = ".neighbors.ibin";
    if (!bsw_name_ends_with(ids_path, ids_ending)) return 0;
    int stem = (int)(strlen(ids_path) - strlen(ids_ending));
    return snprintf(out, BSW_PATH_BYTES, "%.*s.distances.fbin", stem, ids_path) < BSW_PATH_BYTES;
}

// The values of split files, if they are there.
static enum bsw_status read_split_values(const char *ids_path, struct bsw_results *out,
                                         struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_buffer buffer = {0};
    struct bsw_vector_layout layout;
    if (!bsw_split_values_path(ids_path, path) || !bsw_file_exists(path)) return BSW_OK;
    enum bsw_status status = bsw_file_read_all(path, UINT64_MAX, &buffer, err);
    if (status == BSW_OK) {
        status =
            bsw_vector_layout_parse(path, buffer.data, buffer.bytes, buffer.bytes, &layout, err);
    }
    if (status == BSW_OK && (layout.num_rows != out->num_queries || layout.dims != out->k)) {
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu x %u values, %s has %llu x %llu", path,
                          (unsigned long long)layout.num_rows, layout.dims, ids_path,
                          (unsigned long long)out->num_queries, (unsigned long long)out->k);
    }
    if (status == BSW_OK)
        status = bsw_allocate(&out->values, buffer.bytes, 1, "result values", err);
    if (status == BSW_OK) status = take_values(path, buffer.data + layout.first_byte, out, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

static enum bsw_status read_file(const char *path, struct bsw_results *out, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    BSW_TRY(check_header_of_file(path, err));
    enum bsw_status status = bsw_file_read_all(path, UINT64_MAX, &buffer, err);
    if (status == BSW_OK) status = bsw_results_parse(path, buffer.data, buffer.bytes, out, err);
    bsw_buffer_deinit(&buffer);
    return status == BSW_OK ? read_split_values(path, out, err) : status;
}

enum bsw_status bsw_results_read(const char *path, struct bsw_results *out, struct bsw_error *err)
{
    struct bsw_hdf5_name hdf5;
    *out = (struct bsw_results){0};
    enum bsw_status status = bsw_hdf5_name_parse(path, BSW_HDF5_NEIGHBORS, &hdf5)
                                 ? read_hdf5(path, &hdf5, out, err)
                                 : read_file(path, out, err);
    if (status != BSW_OK) bsw_results_deinit(out);
    return status;
}

void bsw_results_deinit(struct bsw_results *results)
{
    bsw_free(&results->ids);
    bsw_free(&results->values);
    *results = (struct bsw_results){0};
}
