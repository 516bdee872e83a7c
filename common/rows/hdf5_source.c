// SPDX-License-Identifier: Apache-2.0
#include "common/rows/hdf5_source.h"

#define H5_USE_110_API
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/codes/code_layout.h"
#include "common/rows/chunk_filters.h"

// deflate packs 1032 bytes into one at best; a file that claims more than this claims too much.
#define MOST_PACKED     1100
#define MOST_BAND_BYTES ((uint64_t)256 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of every call of libhdf5

// Rows of the chunks that lie side by side, unpacked.
struct band {
    uint64_t chunk_rows, chunk_columns;
    struct bsw_chunk_filters filters;
    uint64_t held; // which is in `rows`; UINT64_MAX: none
    unsigned char *rows;
    unsigned char *buffers[2]; // of a chunk
};

struct bsw_hdf5_rows {
    char *name;
    hid_t file, set, space, type;
    uint64_t num_rows, num_columns;
    size_t number_bytes;
    struct band band; // chunk_rows 0: not in chunks
};

static const struct bsw_hdf5_rows closed_rows = {.file = -1, .set = -1, .space = -1, .type = -1};

// Each thread has a list of errors, which a library built for threads prints unless told not to.
static void lock_library(void)
{
    pthread_mutex_lock(&lock);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

// ---- errors ----

static herr_t take_first(unsigned place, const H5E_error2_t *error, void *text)
{
    (void)place;
    if (error->desc) snprintf(text, 160, "%s", error->desc);
    return 1; // no further
}

// "NAME: what", with the cause that libhdf5 gives. After the call that failed.
static enum bsw_status fail_in_library(const char *name, const char *what, struct bsw_error *err)
{
    char cause[160] = "no cause given";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, cause);
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s: %s", name, what, cause);
}

struct name_list {
    char text[200];
    size_t length;
};

static herr_t add_name(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    struct name_list *list = context;
    (void)group, (void)link;
    int written = snprintf(list->text + list->length, sizeof list->text - list->length, "%s%s",
                           list->length > 0 ? ", " : "", name);
    if (written < 0 || (size_t)written >= sizeof list->text - list->length) {
        list->text[list->length] = '\0';
        return 1;
    }
    list->length += (size_t)written;
    return 0;
}

static enum bsw_status fail_absent(const struct bsw_hdf5_rows *rows, const char *dataset,
                                   struct bsw_error *err)
{
    struct name_list list = {.text = ""};
    H5Literate(rows->file, H5_INDEX_NAME, H5_ITER_INC, NULL, add_name, &list);
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: no dataset '%s'; the file has: %s", rows->name,
                    dataset, list.length > 0 ? list.text : "nothing");
}

// ---- opening ----

static enum bsw_status open_file(struct bsw_hdf5_rows *rows, const char *file,
                                 struct bsw_error *err)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    const char *what = "libhdf5 cannot be set up";
    // One plain file, whatever the environment says; never written, so never locked.
    if (access >= 0 && H5Pset_fapl_sec2(access) >= 0 && H5Pset_file_locking(access, 0, 1) >= 0) {
        what = "cannot be read as HDF5";
        rows->file = H5Fopen(file, H5F_ACC_RDONLY, access);
    }
    enum bsw_status status = BSW_OK;
    if (rows->file < 0) status = fail_in_library(rows->name, what, err);
    if (access >= 0) H5Pclose(access);
    return status;
}

// A link may lead into another file, for which no check of this one's size would hold.
static int is_in_file(const struct bsw_hdf5_rows *rows)
{
    H5O_info_t file, set;
    return H5Oget_info(rows->file, &file) >= 0 && H5Oget_info(rows->set, &set) >= 0 &&
           file.fileno == set.fileno;
}

static enum bsw_status open_set(struct bsw_hdf5_rows *rows, const char *dataset,
                                struct bsw_error *err)
{
    hsize_t lengths[2] = {0};
    if (H5Lexists(rows->file, dataset, H5P_DEFAULT) <= 0) return fail_absent(rows, dataset, err);
    rows->set = H5Dopen2(rows->file, dataset, H5P_DEFAULT);
    if (rows->set < 0) return fail_in_library(rows->name, "no dataset that can be opened", err);
    if (!is_in_file(rows))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: an external link: name the file it leads to",
                        rows->name);
    rows->space = H5Dget_space(rows->set);
    rows->type = H5Dget_type(rows->set);
    if (rows->space < 0 || rows->type < 0)
        return fail_in_library(rows->name, "no shape or type", err);
    int num_axes = H5Sget_simple_extent_ndims(rows->space);
    if (num_axes != 2 || H5Sis_simple(rows->space) <= 0 ||
        H5Sget_simple_extent_dims(rows->space, lengths, NULL) != 2) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the number of axes is %d, 2 are needed",
                        rows->name, num_axes);
    }
    rows->number_bytes = H5Tget_size(rows->type);
    // libhdf5 takes an integer of no bytes as it takes others.
    if (rows->number_bytes == 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the type of its numbers has a size of 0",
                        rows->name);
    rows->num_rows = lengths[0];
    rows->num_columns = lengths[1];
    if (rows->num_rows > 0 && rows->num_columns > 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu x %llu: empty", rows->name,
                    (unsigned long long)rows->num_rows, (unsigned long long)rows->num_columns);
}

static void close_all(struct bsw_hdf5_rows *rows)
{
    if (rows->type >= 0) H5Tclose(rows->type);
    if (rows->space >= 0) H5Sclose(rows->space);
    if (rows->set >= 0) H5Dclose(rows->set);
    if (rows->file >= 0) H5Fclose(rows->file);
    bsw_free(&rows->name);
    bsw_free(&rows->band.rows);
    for (int i = 0; i < 2; i++) bsw_free(&rows->band.buffers[i]);
    *rows = closed_rows;
}

static enum bsw_status open_named(const char *name, const char *file, struct bsw_hdf5_rows *rows,
                                  struct bsw_error *err)
{
    size_t name_bytes = strlen(name) + 1;
    *rows = closed_rows;
    BSW_TRY(bsw_allocate(&rows->name, name_bytes, 1, "name", err));
    memcpy(rows->name, name, name_bytes);
    return open_file(rows, file, err);
}

static enum bsw_status open_all(const char *name, const char *file, const char *dataset,
                                struct bsw_hdf5_rows *rows, struct bsw_error *err)
{
    BSW_TRY(open_named(name, file, rows, err));
    return open_set(rows, dataset, err);
}

// ---- types ----

static void describe_type(hid_t type, char *text, size_t capacity)
{
    size_t bits = 8 * H5Tget_size(type);
    const char *order = H5Tget_order(type) == H5T_ORDER_BE ? " (big endian)" : "";
    switch (H5Tget_class(type)) {
    case H5T_FLOAT:
        snprintf(text, capacity, "float%zu%s", bits, order);
        break;
    case H5T_INTEGER:
        snprintf(text, capacity, "%sint%zu%s", H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits,
                 order);
        break;
    case H5T_ENUM:
        snprintf(text, capacity, "bool or enum (Hamming distance is no metric here)");
        break;
    default:
        snprintf(text, capacity, "neither integer nor float");
    }
}

static int is_half(hid_t type)
{
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    return H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) == 2 &&
           H5Tget_order(type) == H5T_ORDER_LE &&
           H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
           sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 &&
           mantissa_bits == 10 && H5Tget_ebias(type) == 15;
}

static enum bsw_status find_type(const struct bsw_hdf5_rows *rows, enum bsw_vector_type *out,
                                 struct bsw_error *err)
{
    hid_t type = rows->type;
    char text[64];
    *out = BSW_VECTOR_NUM_TYPES;
    if (H5Tequal(type, H5T_IEEE_F32LE) > 0) *out = BSW_VECTOR_FLOAT32;
    if (is_half(type)) *out = BSW_VECTOR_FLOAT16;
    if (H5Tequal(type, H5T_STD_U8LE) > 0 || H5Tequal(type, H5T_STD_U8BE) > 0)
        *out = BSW_VECTOR_UINT8;
    if (H5Tequal(type, H5T_STD_I8LE) > 0 || H5Tequal(type, H5T_STD_I8BE) > 0)
        *out = BSW_VECTOR_INT8;
    if (*out != BSW_VECTOR_NUM_TYPES) return BSW_OK;
    describe_type(type, text, sizeof text);
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: type %s: little-endian float32 and float16, uint8 and int8 are read",
                    rows->name, text);
}

// ---- where the numbers lie ----

static enum bsw_status find_filters(struct bsw_hdf5_rows *rows, hid_t made, struct bsw_error *err)
{
    struct bsw_chunk_filters *filters = &rows->band.filters;
    filters->count = H5Pget_nfilters(made);
    if (filters->count < 0 || filters->count > BSW_CHUNK_MAX_FILTERS)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: too many filters", rows->name);
    for (int i = 0; i < filters->count; i++) {
        unsigned flags, config;
        size_t num_values = 0;
        char filter[40] = "";
        int id = H5Pget_filter2(made, (unsigned)i, &flags, &num_values, NULL, sizeof filter - 1,
                                filter, &config);
        filters->ids[i] = id;
        if (id == BSW_FILTER_DEFLATE || id == BSW_FILTER_SHUFFLE || id == BSW_FILTER_FLETCHER32)
            continue;
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: packed by filter %d (%s): deflate (gzip), shuffle and fletcher32 are "
                        "read; h5repack changes it",
                        rows->name, id, filter);
    }
    return BSW_OK;
}

// Bytes of a chunk and of the chunks side by side; 0: more than is possible.
static int band_bytes(const struct bsw_hdf5_rows *rows, uint64_t *chunk, uint64_t *band)
{
    return !__builtin_mul_overflow(rows->band.chunk_rows, rows->band.chunk_columns, chunk) &&
           !__builtin_mul_overflow(*chunk, (uint64_t)rows->number_bytes, chunk) &&
           !__builtin_mul_overflow(rows->band.chunk_rows, rows->num_columns, band) &&
           !__builtin_mul_overflow(*band, (uint64_t)rows->number_bytes, band) &&
           *chunk <= BSW_HDF5_CHUNK_BYTES && *band <= MOST_BAND_BYTES;
}

static enum bsw_status make_band(struct bsw_hdf5_rows *rows, struct bsw_error *err)
{
    struct band *band = &rows->band;
    uint64_t chunk_bytes, bytes;
    if (!band_bytes(rows, &chunk_bytes, &bytes)) {
        return bsw_fail(
            err, BSW_ERROR_BAD_DATA,
            "%s: chunks of %llu x %llu: up to 67 MB a chunk and 268 MB a row of chunks are "
            "possible; h5repack makes others",
            rows->name, (unsigned long long)band->chunk_rows,
            (unsigned long long)band->chunk_columns);
    }
    band->held = UINT64_MAX;
    BSW_TRY(bsw_allocate(&band->rows, (size_t)bytes, 1, "HDF5 chunks", err));
    for (int i = 0; i < 2; i++)
        BSW_TRY(bsw_allocate(&band->buffers[i], bsw_chunk_room((size_t)chunk_bytes), 1,
                             "HDF5 chunk", err));
    return BSW_OK;
}

static enum bsw_status open_chunks(struct bsw_hdf5_rows *rows, hid_t made, struct bsw_error *err)
{
    hsize_t chunk[2] = {0}, num_stored = 0;
    uint64_t num_chunks;
    BSW_TRY(find_filters(rows, made, err));
    if (H5Pget_chunk(made, 2, chunk) != 2 || chunk[0] == 0 || chunk[1] == 0 ||
        H5Dget_num_chunks(rows->set, rows->space, &num_stored) < 0)
        return fail_in_library(rows->name, "no list of chunks", err);
    rows->band.chunk_rows = chunk[0];
    rows->band.chunk_columns = chunk[1];
    if (__builtin_mul_overflow((rows->num_rows - 1) / chunk[0] + 1,
                               (rows->num_columns - 1) / chunk[1] + 1, &num_chunks) ||
        num_stored != num_chunks) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: only %llu chunks are there", rows->name,
                        (unsigned long long)num_stored);
    }
    return make_band(rows, err);
}

static enum bsw_status fail_size(const struct bsw_hdf5_rows *rows, uint64_t stored,
                                 uint64_t file_bytes, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: %llu x %llu, but %llu bytes of the file's %llu hold them", rows->name,
                    (unsigned long long)rows->num_rows, (unsigned long long)rows->num_columns,
                    (unsigned long long)stored, (unsigned long long)file_bytes);
}

// Whether so many bytes from `first` on are inside the file.
static int is_inside(uint64_t first, uint64_t bytes, uint64_t file_bytes)
{
    return first <= file_bytes && bytes <= file_bytes - first;
}

// *first_byte: of numbers without gaps; UINT64_MAX: libhdf5 must read them.
static enum bsw_status check_made(struct bsw_hdf5_rows *rows, hid_t made, uint64_t file_bytes,
                                  uint64_t *first_byte, struct bsw_error *err)
{
    uint64_t stored = H5Dget_storage_size(rows->set), bytes;
    H5D_layout_t layout = H5Pget_layout(made);
    *first_byte = UINT64_MAX;
    if (layout == H5D_VIRTUAL || H5Pget_external_count(made) != 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: its numbers lie in other files", rows->name);
    if (__builtin_mul_overflow(rows->num_rows, rows->num_columns, &bytes) ||
        __builtin_mul_overflow(bytes, (uint64_t)rows->number_bytes, &bytes) || bytes > INT64_MAX ||
        stored > file_bytes || bytes / MOST_PACKED > stored)
        return fail_size(rows, stored, file_bytes, err);
    if (layout == H5D_CHUNKED) return open_chunks(rows, made, err);
    if (stored != bytes) return fail_size(rows, stored, file_bytes, err);
    if (layout == H5D_CONTIGUOUS) {
        *first_byte = H5Dget_offset(rows->set);
        if (!is_inside(*first_byte, bytes, file_bytes))
            return fail_size(rows, stored, file_bytes, err);
    }
    return BSW_OK;
}

static enum bsw_status find_numbers(struct bsw_hdf5_rows *rows, uint64_t file_bytes,
                                    uint64_t *first_byte, struct bsw_error *err)
{
    hid_t made = H5Dget_create_plist(rows->set);
    if (made < 0) return fail_in_library(rows->name, "no facts of its making", err);
    enum bsw_status status = check_made(rows, made, file_bytes, first_byte, err);
    H5Pclose(made);
    return status;
}

// ---- reading ----

static enum bsw_status read_whole(const struct bsw_hdf5_rows *rows, uint64_t first_row,
                                  size_t num_rows, void *out, struct bsw_error *err)
{
    const hsize_t start[2] = {first_row, 0}, count[2] = {num_rows, rows->num_columns};
    hid_t memory = H5Screate_simple(2, count, NULL);
    int code = memory < 0
                   ? -1
                   : H5Sselect_hyperslab(rows->space, H5S_SELECT_SET, start, NULL, count, NULL);
    if (code >= 0) code = H5Dread(rows->set, rows->type, memory, rows->space, H5P_DEFAULT, out);
    enum bsw_status status = BSW_OK;
    if (code < 0) status = fail_in_library(rows->name, "rows that cannot be read", err);
    if (memory >= 0) H5Sclose(memory);
    return status;
}

// The chunk at that row and column, unpacked: one of the buffers.
static enum bsw_status read_chunk(struct bsw_hdf5_rows *rows, uint64_t row, uint64_t column,
                                  const unsigned char **out, struct bsw_error *err)
{
    struct band *band = &rows->band;
    const hsize_t at[2] = {row, column};
    size_t chunk_bytes = (size_t)(band->chunk_rows * band->chunk_columns) * rows->number_bytes;
    hsize_t stored = 0;
    uint32_t skipped = 0;
    *out = NULL;
    if (H5Dget_chunk_storage_size(rows->set, at, &stored) < 0)
        return fail_in_library(rows->name, "a chunk that cannot be read", err);
    if (stored > 0 && stored <= bsw_chunk_room(chunk_bytes)) {
        if (H5Dread_chunk(rows->set, H5P_DEFAULT, at, &skipped, band->buffers[0]) < 0)
            return fail_in_library(rows->name, "a chunk that cannot be read", err);
        *out = bsw_chunk_unpack(&band->filters, skipped, rows->number_bytes, band->buffers,
                                (size_t)stored, chunk_bytes);
    }
    if (*out) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: rows %llu and after: a chunk of %llu bytes is damaged", rows->name,
                    (unsigned long long)row, (unsigned long long)stored);
}

static enum bsw_status hold_band(struct bsw_hdf5_rows *rows, uint64_t which, struct bsw_error *err)
{
    struct band *band = &rows->band;
    size_t row_bytes = (size_t)rows->num_columns * rows->number_bytes;
    size_t piece_bytes = (size_t)band->chunk_columns * rows->number_bytes;
    if (band->held == which) return BSW_OK;
    band->held = UINT64_MAX;
    for (uint64_t column = 0; column < rows->num_columns; column += band->chunk_columns) {
        const unsigned char *chunk;
        size_t first = (size_t)column * rows->number_bytes, bytes = row_bytes - first;
        if (bytes > piece_bytes) bytes = piece_bytes;
        BSW_TRY(read_chunk(rows, which * band->chunk_rows, column, &chunk, err));
        for (size_t r = 0; r < band->chunk_rows; r++)
            memcpy(band->rows + r * row_bytes + first, chunk + r * piece_bytes, bytes);
    }
    band->held = which;
    return BSW_OK;
}

// Rows as they lie in the file, without conversion.
static enum bsw_status read_rows(struct bsw_hdf5_rows *rows, uint64_t first_row, size_t num_rows,
                                 void *out, struct bsw_error *err)
{
    struct band *band = &rows->band;
    size_t row_bytes = (size_t)rows->num_columns * rows->number_bytes;
    unsigned char *to = out;
    if (band->chunk_rows == 0) return read_whole(rows, first_row, num_rows, out, err);
    while (num_rows > 0) {
        size_t skip = (size_t)(first_row % band->chunk_rows);
        size_t count = (size_t)band->chunk_rows - skip;
        if (count > num_rows) count = num_rows;
        BSW_TRY(hold_band(rows, first_row / band->chunk_rows, err));
        memcpy(to, band->rows + skip * row_bytes, count * row_bytes);
        first_row += count;
        num_rows -= count;
        to += count * row_bytes;
    }
    return BSW_OK;
}

// ---- for others ----

static enum bsw_status describe_rows(struct bsw_hdf5_rows *rows, uint64_t file_bytes,
                                     struct bsw_vector_layout *layout, int *is_contiguous,
                                     struct bsw_error *err)
{
    uint64_t first_byte;
    enum bsw_vector_type type;
    BSW_TRY(find_type(rows, &type, err));
    if (rows->num_columns > BSW_MAX_DIMS) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu dims, must be 1 to %d", rows->name,
                        (unsigned long long)rows->num_columns, BSW_MAX_DIMS);
    }
    BSW_TRY(find_numbers(rows, file_bytes, &first_byte, err));
    *is_contiguous = first_byte != UINT64_MAX;
    *layout =
        (struct bsw_vector_layout){.type = type,
                                   .dims = (uint32_t)rows->num_columns,
                                   .num_rows = rows->num_rows,
                                   .first_byte = *is_contiguous ? first_byte : 0,
                                   .stride_bytes = rows->num_columns * bsw_vector_type_bytes(type)};
    return BSW_OK;
}

enum bsw_status bsw_hdf5_rows_open(const char *name, const char *file, const char *dataset,
                                   uint64_t file_bytes, struct bsw_vector_layout *layout,
                                   bsw_hdf5_rows **out, struct bsw_error *err)
{
    struct bsw_hdf5_rows *rows;
    int is_contiguous = 0;
    *layout = (struct bsw_vector_layout){0};
    *out = NULL;
    BSW_TRY(bsw_allocate(&rows, 1, sizeof *rows, "HDF5 dataset", err));
    lock_library();
    enum bsw_status status = open_all(name, file, dataset, rows, err);
    if (status == BSW_OK) status = describe_rows(rows, file_bytes, layout, &is_contiguous, err);
    pthread_mutex_unlock(&lock);
    if (status != BSW_OK || is_contiguous)
        bsw_hdf5_rows_close(&rows);
    else
        *out = rows;
    return status;
}

void bsw_hdf5_rows_close(bsw_hdf5_rows **rows)
{
    if (!*rows) return;
    lock_library();
    close_all(*rows);
    pthread_mutex_unlock(&lock);
    bsw_free(rows);
}

enum bsw_status bsw_hdf5_rows_read(bsw_hdf5_rows *rows, uint64_t first_row, size_t num_rows,
                                   void *out, struct bsw_error *err)
{
    lock_library();
    enum bsw_status status = read_rows(rows, first_row, num_rows, out, err);
    pthread_mutex_unlock(&lock);
    return status;
}

static enum bsw_status read_ids(struct bsw_hdf5_rows *rows, uint64_t file_bytes, int64_t **ids,
                                struct bsw_error *err)
{
    char text[64];
    uint64_t ignored;
    if (H5Tget_class(rows->type) != H5T_INTEGER || H5Tget_size(rows->type) > sizeof(int64_t)) {
        describe_type(rows->type, text, sizeof text);
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: type %s: ids are integers", rows->name, text);
    }
    BSW_TRY(find_numbers(rows, file_bytes, &ignored, err));
    BSW_TRY(bsw_allocate(ids, (size_t)rows->num_rows, (size_t)rows->num_columns * sizeof(int64_t),
                         "result ids", err));
    BSW_TRY(read_rows(rows, 0, (size_t)rows->num_rows, *ids, err));
    if (H5Tconvert(rows->type, H5T_NATIVE_INT64, (size_t)(rows->num_rows * rows->num_columns), *ids,
                   NULL, H5P_DEFAULT) < 0)
        return fail_in_library(rows->name, "integers that cannot be converted", err);
    return BSW_OK;
}

enum bsw_status bsw_hdf5_ids_read(const char *name, const char *file, const char *dataset,
                                  uint64_t file_bytes, uint64_t *num_rows, uint64_t *num_columns,
                                  int64_t **ids, struct bsw_error *err)
{
    struct bsw_hdf5_rows rows;
    *ids = NULL;
    lock_library();
    enum bsw_status status = open_all(name, file, dataset, &rows, err);
    *num_rows = rows.num_rows;
    *num_columns = rows.num_columns;
    if (status == BSW_OK) status = read_ids(&rows, file_bytes, ids, err);
    close_all(&rows);
    pthread_mutex_unlock(&lock);
    if (status != BSW_OK) bsw_free(ids);
    return status;
}

// ---- what a file says of itself ----

static void copy_word(const char *text, size_t bytes, char out[BSW_DISTANCE_BYTES])
{
    size_t length = 0;
    while (length < bytes && length < BSW_DISTANCE_BYTES - 1 && text[length] != '\0') {
        unsigned char byte = (unsigned char)text[length];
        out[length++] = byte < ' ' || byte == 127 ? '?' : (char)byte;
    }
    out[length] = '\0';
}

// Text of any length, which libhdf5 allocates.
static herr_t read_variable_word(hid_t attribute, hid_t type, hid_t space,
                                 char out[BSW_DISTANCE_BYTES])
{
    char *text = NULL;
    if (H5Aread(attribute, type, &text) < 0) return -1;
    if (text) copy_word(text, SIZE_MAX, out);
    return H5Dvlen_reclaim(type, space, H5P_DEFAULT, &text);
}

// Text of a fixed length, which libhdf5 cuts to ours.
static herr_t read_fixed_word(hid_t attribute, hid_t type, char out[BSW_DISTANCE_BYTES])
{
    char text[BSW_DISTANCE_BYTES] = "";
    hid_t cut = H5Tcopy(type);
    herr_t code = cut < 0 ? -1 : H5Tset_size(cut, sizeof text);
    if (code >= 0) code = H5Aread(attribute, cut, text);
    if (code >= 0) copy_word(text, sizeof text, out);
    if (cut >= 0) H5Tclose(cut);
    return code;
}

static enum bsw_status read_distance(const struct bsw_hdf5_rows *rows, char out[BSW_DISTANCE_BYTES],
                                     struct bsw_error *err)
{
    htri_t is_there = H5Aexists(rows->file, "distance");
    if (is_there == 0) return BSW_OK;
    herr_t code = -1;
    hid_t attribute = is_there < 0 ? -1 : H5Aopen(rows->file, "distance", H5P_DEFAULT);
    hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
    hid_t space = attribute < 0 ? -1 : H5Aget_space(attribute);
    if (type >= 0 && space >= 0) {
        int is_text = H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1;
        htri_t is_variable = is_text ? H5Tis_variable_str(type) : 0;
        code = !is_text          ? 0
               : is_variable < 0 ? -1
               : is_variable     ? read_variable_word(attribute, type, space, out)
                                 : read_fixed_word(attribute, type, out);
    }
    enum bsw_status status = BSW_OK;
    if (code < 0) status = fail_in_library(rows->name, "its attribute 'distance'", err);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    return status;
}

enum bsw_status bsw_hdf5_distance_read(const char *name, const char *file,
                                       char out[BSW_DISTANCE_BYTES], struct bsw_error *err)
{
    struct bsw_hdf5_rows rows;
    *out = '\0';
    lock_library();
    enum bsw_status status = open_named(name, file, &rows, err);
    if (status == BSW_OK) status = read_distance(&rows, out, err);
    close_all(&rows);
    pthread_mutex_unlock(&lock);
    return status;
}
