// SPDX-License-Identifier: Apache-2.0
#include "common/rows/vectors.h"

#ifdef BITSWEEP_WITHOUT_HDF5

static enum bsw_status fail_without(const char *name, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: this program was built without libhdf5 (BITSWEEP_HDF5), which reads HDF5",
                    name);
}

enum bsw_status bsw_hdf5_layout_read(const char *name, const char *file, const char *dataset,
                                     uint64_t file_bytes, struct bsw_vector_layout *layout,
                                     struct bsw_error *err)
{
    (void)file, (void)dataset, (void)file_bytes, (void)layout;
    return fail_without(name, err);
}

enum bsw_status bsw_hdf5_ids_read(const char *name, const char *file, const char *dataset, int fd,
                                  uint64_t file_bytes, uint64_t *num_rows, uint64_t *num_columns,
                                  int64_t **ids, struct bsw_error *err)
{
    (void)file, (void)dataset, (void)fd, (void)file_bytes, (void)num_rows, (void)num_columns;
    *ids = NULL;
    return fail_without(name, err);
}

enum bsw_status bsw_hdf5_names_read(const char *file, char out[BSW_HDF5_NAMES_BYTES],
                                    struct bsw_error *err)
{
    *out = '\0';
    return fail_without(file, err);
}

enum bsw_status bsw_hdf5_distance_read(const char *name, const char *file,
                                       char out[BSW_DISTANCE_BYTES], struct bsw_error *err)
{
    (void)file;
    *out = '\0';
    return fail_without(name, err);
}

#else

#define H5_USE_110_API
#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/codes/code_layout.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of every call of libhdf5

// An open dataset.
struct set {
    char *name;
    hid_t file, set, space, type;
    uint64_t num_rows, num_columns;
    size_t number_bytes;
};

static const struct set closed_set = {.file = -1, .set = -1, .space = -1, .type = -1};

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
    char *text;
    size_t capacity, length;
    const char *between;
};

static herr_t add_name(hid_t group, const char *name, const H5L_info_t *link, void *context)
{
    struct name_list *list = context;
    (void)group, (void)link;
    int written = snprintf(list->text + list->length, list->capacity - list->length, "%s%s",
                           list->length > 0 ? list->between : "", name);
    if (written < 0 || (size_t)written >= list->capacity - list->length) {
        list->text[list->length] = '\0';
        return 1;
    }
    list->length += (size_t)written;
    return 0;
}

static enum bsw_status fail_absent(const struct set *set, const char *dataset,
                                   struct bsw_error *err)
{
    char text[200] = "";
    struct name_list list = {text, sizeof text, 0, ", "};
    H5Literate(set->file, H5_INDEX_NAME, H5_ITER_INC, NULL, add_name, &list);
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: no dataset '%s'; the file has: %s", set->name,
                    dataset, list.length > 0 ? list.text : "nothing");
}

// ---- opening ----

static enum bsw_status open_file(struct set *set, const char *file, struct bsw_error *err)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    const char *what = "libhdf5 cannot be set up";
    // One plain file, whatever the environment says; never written, so never locked.
    if (access >= 0 && H5Pset_fapl_sec2(access) >= 0 && H5Pset_file_locking(access, 0, 1) >= 0) {
        what = "cannot be read as HDF5";
        set->file = H5Fopen(file, H5F_ACC_RDONLY, access);
    }
    enum bsw_status status = BSW_OK;
    if (set->file < 0) status = fail_in_library(set->name, what, err);
    if (access >= 0) H5Pclose(access);
    return status;
}

// A link may lead into another file, for which no check of this one's size would hold.
static int is_in_file(const struct set *set)
{
    H5O_info_t file, found;
    return H5Oget_info(set->file, &file) >= 0 && H5Oget_info(set->set, &found) >= 0 &&
           file.fileno == found.fileno;
}

static enum bsw_status open_set(struct set *set, const char *dataset, struct bsw_error *err)
{
    hsize_t lengths[2] = {0};
    if (H5Lexists(set->file, dataset, H5P_DEFAULT) <= 0) return fail_absent(set, dataset, err);
    set->set = H5Dopen2(set->file, dataset, H5P_DEFAULT);
    if (set->set < 0) return fail_in_library(set->name, "no dataset that can be opened", err);
    if (!is_in_file(set))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: an external link: name the file it leads to",
                        set->name);
    set->space = H5Dget_space(set->set);
    set->type = H5Dget_type(set->set);
    if (set->space < 0 || set->type < 0) return fail_in_library(set->name, "no shape or type", err);
    int num_axes = H5Sget_simple_extent_ndims(set->space);
    if (num_axes != 2 || H5Sis_simple(set->space) <= 0 ||
        H5Sget_simple_extent_dims(set->space, lengths, NULL) != 2) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the number of axes is %d, 2 are needed",
                        set->name, num_axes);
    }
    set->number_bytes = H5Tget_size(set->type);
    // libhdf5 takes an integer of no bytes as it takes others.
    if (set->number_bytes == 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the type of its numbers has a size of 0",
                        set->name);
    set->num_rows = lengths[0];
    set->num_columns = lengths[1];
    if (set->num_rows > 0 && set->num_columns > 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu x %llu: empty", set->name,
                    (unsigned long long)set->num_rows, (unsigned long long)set->num_columns);
}

static void close_all(struct set *set)
{
    if (set->type >= 0) H5Tclose(set->type);
    if (set->space >= 0) H5Sclose(set->space);
    if (set->set >= 0) H5Dclose(set->set);
    if (set->file >= 0) H5Fclose(set->file);
    bsw_free(&set->name);
    *set = closed_set;
}

static enum bsw_status open_named(const char *name, const char *file, struct set *set,
                                  struct bsw_error *err)
{
    size_t name_bytes = strlen(name) + 1;
    *set = closed_set;
    BSW_TRY(bsw_allocate(&set->name, name_bytes, 1, "name", err));
    memcpy(set->name, name, name_bytes);
    return open_file(set, file, err);
}

static enum bsw_status open_all(const char *name, const char *file, const char *dataset,
                                struct set *set, struct bsw_error *err)
{
    BSW_TRY(open_named(name, file, set, err));
    return open_set(set, dataset, err);
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

static enum bsw_status find_type(const struct set *set, enum bsw_vector_type *out,
                                 struct bsw_error *err)
{
    hid_t type = set->type;
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
                    set->name, text);
}

// ---- where the numbers lie ----

static enum bsw_status fail_size(const struct set *set, uint64_t stored, uint64_t file_bytes,
                                 struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: %llu x %llu, but %llu bytes of the file's %llu hold them", set->name,
                    (unsigned long long)set->num_rows, (unsigned long long)set->num_columns,
                    (unsigned long long)stored, (unsigned long long)file_bytes);
}

// Whether so many bytes from `first` on are inside the file.
static int is_inside(uint64_t first, uint64_t bytes, uint64_t file_bytes)
{
    return first <= file_bytes && bytes <= file_bytes - first;
}

static enum bsw_status check_made(struct set *set, hid_t made, uint64_t file_bytes,
                                  uint64_t *first_byte, struct bsw_error *err)
{
    uint64_t stored = H5Dget_storage_size(set->set), bytes;
    H5D_layout_t layout = H5Pget_layout(made);
    if (layout == H5D_VIRTUAL || H5Pget_external_count(made) != 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: its numbers lie in other files", set->name);
    if (layout != H5D_CONTIGUOUS)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: its numbers are in chunks or compact: `h5repack -f NONE -l CONTI IN "
                        "OUT` makes a file that can be read",
                        set->name);
    if (__builtin_mul_overflow(set->num_rows, set->num_columns, &bytes) ||
        __builtin_mul_overflow(bytes, (uint64_t)set->number_bytes, &bytes) || bytes > INT64_MAX ||
        stored != bytes)
        return fail_size(set, stored, file_bytes, err);
    *first_byte = H5Dget_offset(set->set);
    return is_inside(*first_byte, bytes, file_bytes) ? BSW_OK
                                                     : fail_size(set, stored, file_bytes, err);
}

static enum bsw_status find_numbers(struct set *set, uint64_t file_bytes, uint64_t *first_byte,
                                    struct bsw_error *err)
{
    hid_t made = H5Dget_create_plist(set->set);
    if (made < 0) return fail_in_library(set->name, "no facts of its making", err);
    enum bsw_status status = check_made(set, made, file_bytes, first_byte, err);
    H5Pclose(made);
    return status;
}

// ---- for others ----

static enum bsw_status describe_rows(struct set *set, uint64_t file_bytes,
                                     struct bsw_vector_layout *layout, struct bsw_error *err)
{
    uint64_t first_byte;
    enum bsw_vector_type type;
    BSW_TRY(find_type(set, &type, err));
    if (set->num_columns > BSW_MAX_DIMS) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu dims, must be 1 to %d", set->name,
                        (unsigned long long)set->num_columns, BSW_MAX_DIMS);
    }
    BSW_TRY(find_numbers(set, file_bytes, &first_byte, err));
    *layout =
        (struct bsw_vector_layout){.type = type,
                                   .dims = (uint32_t)set->num_columns,
                                   .num_rows = set->num_rows,
                                   .first_byte = first_byte,
                                   .stride_bytes = set->num_columns * bsw_vector_type_bytes(type)};
    return BSW_OK;
}

enum bsw_status bsw_hdf5_layout_read(const char *name, const char *file, const char *dataset,
                                     uint64_t file_bytes, struct bsw_vector_layout *layout,
                                     struct bsw_error *err)
{
    struct set set;
    *layout = (struct bsw_vector_layout){0};
    lock_library();
    enum bsw_status status = open_all(name, file, dataset, &set, err);
    if (status == BSW_OK) status = describe_rows(&set, file_bytes, layout, err);
    close_all(&set);
    pthread_mutex_unlock(&lock);
    return status;
}

static enum bsw_status read_ids(struct set *set, int fd, uint64_t file_bytes, int64_t **ids,
                                struct bsw_error *err)
{
    char text[64];
    uint64_t first_byte;
    if (H5Tget_class(set->type) != H5T_INTEGER || H5Tget_size(set->type) > sizeof(int64_t)) {
        describe_type(set->type, text, sizeof text);
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: type %s: ids are integers", set->name, text);
    }
    BSW_TRY(find_numbers(set, file_bytes, &first_byte, err));
    size_t count = (size_t)(set->num_rows * set->num_columns);
    BSW_TRY(bsw_allocate(ids, count, sizeof(int64_t), "result ids", err));
    BSW_TRY(bsw_file_read_at(fd, set->name, first_byte, *ids, count * set->number_bytes, err));
    if (H5Tconvert(set->type, H5T_NATIVE_INT64, count, *ids, NULL, H5P_DEFAULT) < 0)
        return fail_in_library(set->name, "integers that cannot be converted", err);
    return BSW_OK;
}

enum bsw_status bsw_hdf5_ids_read(const char *name, const char *file, const char *dataset, int fd,
                                  uint64_t file_bytes, uint64_t *num_rows, uint64_t *num_columns,
                                  int64_t **ids, struct bsw_error *err)
{
    struct set set;
    *ids = NULL;
    lock_library();
    enum bsw_status status = open_all(name, file, dataset, &set, err);
    *num_rows = set.num_rows;
    *num_columns = set.num_columns;
    if (status == BSW_OK) status = read_ids(&set, fd, file_bytes, ids, err);
    close_all(&set);
    pthread_mutex_unlock(&lock);
    if (status != BSW_OK) bsw_free(ids);
    return status;
}

// ---- what a file says of itself ----

enum bsw_status bsw_hdf5_names_read(const char *file, char out[BSW_HDF5_NAMES_BYTES],
                                    struct bsw_error *err)
{
    struct set set;
    struct name_list list = {out, BSW_HDF5_NAMES_BYTES, 0, "\n"};
    *out = '\0';
    lock_library();
    enum bsw_status status = open_named(file, file, &set, err);
    if (status == BSW_OK) H5Literate(set.file, H5_INDEX_NAME, H5_ITER_INC, NULL, add_name, &list);
    close_all(&set);
    pthread_mutex_unlock(&lock);
    return status;
}

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

static enum bsw_status read_distance(const struct set *set, char out[BSW_DISTANCE_BYTES],
                                     struct bsw_error *err)
{
    htri_t is_there = H5Aexists(set->file, "distance");
    if (is_there == 0) return BSW_OK;
    herr_t code = -1;
    hid_t attribute = is_there < 0 ? -1 : H5Aopen(set->file, "distance", H5P_DEFAULT);
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
    if (code < 0) status = fail_in_library(set->name, "its attribute 'distance'", err);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    return status;
}

enum bsw_status bsw_hdf5_distance_read(const char *name, const char *file,
                                       char out[BSW_DISTANCE_BYTES], struct bsw_error *err)
{
    struct set set;
    *out = '\0';
    lock_library();
    enum bsw_status status = open_named(name, file, &set, err);
    if (status == BSW_OK) status = read_distance(&set, out, err);
    close_all(&set);
    pthread_mutex_unlock(&lock);
    return status;
}

#endif
