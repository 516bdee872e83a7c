// SPDX-License-Identifier: Apache-2.0
// Headers of the vector formats, read from memory so that they can be tested without files.
#include "common/rows/vectors.h"

#include <string.h>

#include "common/codes/code_layout.h"

// Every format is little endian and its numbers are used as they lie.
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "vector files are little endian");

static const struct {
    const char *name;
    size_t bytes;
} type_facts[BSW_VECTOR_NUM_TYPES] = {
    [BSW_VECTOR_FLOAT32] = {"float32", 4}, [BSW_VECTOR_FLOAT16] = {"float16", 2},
    [BSW_VECTOR_UINT8] = {"uint8", 1},     [BSW_VECTOR_INT8] = {"int8", 1},
    [BSW_VECTOR_INT32] = {"int32", 4},
};

const char *bsw_vector_type_name(enum bsw_vector_type type)
{
    return type_facts[type].name;
}

size_t bsw_vector_type_bytes(enum bsw_vector_type type)
{
    return type_facts[type].bytes;
}

// What every parser gets; `bytes` never exceeds file_bytes.
struct head {
    const char *name;
    const unsigned char *data;
    size_t bytes;
    uint64_t file_bytes;
    struct bsw_error *err;
};

static uint32_t read_u32(const unsigned char *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static uint64_t read_u64(const unsigned char *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static enum bsw_status fail_short(const struct head *head, uint64_t needed)
{
    return bsw_fail(head->err, BSW_ERROR_BAD_DATA,
                    "%s: truncated: the header has %llu bytes, the file %llu", head->name,
                    (unsigned long long)needed, (unsigned long long)head->file_bytes);
}

// first_byte + num_rows * dims * number_bytes; 0 if 64 bits do not hold it.
static int total_bytes(uint64_t num_rows, uint64_t dims, size_t number_bytes, uint64_t first_byte,
                       uint64_t *total)
{
    return !__builtin_mul_overflow(num_rows, dims, total) &&
           !__builtin_mul_overflow(*total, (uint64_t)number_bytes, total) &&
           !__builtin_add_overflow(*total, first_byte, total);
}

static enum bsw_status check_dims(const struct head *head, uint64_t dims)
{
    if (dims >= 1 && dims <= BSW_MAX_DIMS) return BSW_OK;
    return bsw_fail(head->err, BSW_ERROR_BAD_DATA, "%s: the header says %llu dims, must be 1 to %d",
                    head->name, (unsigned long long)dims, BSW_MAX_DIMS);
}

// The layout of rows without gaps, once shape and size of the file are found to agree.
static enum bsw_status set_dense(const struct head *head, enum bsw_vector_type type,
                                 size_t number_bytes, uint64_t num_rows, uint64_t dims,
                                 uint64_t first_byte, struct bsw_vector_layout *out)
{
    uint64_t total;
    BSW_TRY(check_dims(head, dims));
    if (num_rows == 0) {
        return bsw_fail(head->err, BSW_ERROR_BAD_DATA, "%s: the header says 0 rows", head->name);
    }
    if (!total_bytes(num_rows, dims, number_bytes, first_byte, &total)) {
        return bsw_fail(head->err, BSW_ERROR_BAD_DATA,
                        "%s: the header says %llu x %llu, more than a file can hold", head->name,
                        (unsigned long long)num_rows, (unsigned long long)dims);
    }
    if (total != head->file_bytes) {
        return bsw_fail(head->err, BSW_ERROR_BAD_DATA,
                        "%s: the header says %llu x %llu (%llu bytes), the file has %llu",
                        head->name, (unsigned long long)num_rows, (unsigned long long)dims,
                        (unsigned long long)total, (unsigned long long)head->file_bytes);
    }
    *out = (struct bsw_vector_layout){.type = type,
                                      .dims = (uint32_t)dims,
                                      .num_rows = num_rows,
                                      .first_byte = first_byte,
                                      .stride_bytes = dims * number_bytes};
    return BSW_OK;
}

static enum bsw_status parse_vecs(const struct head *head, enum bsw_vector_type type,
                                  struct bsw_vector_layout *out)
{
    if (head->bytes < 4) return fail_short(head, 4);
    int32_t dims;
    memcpy(&dims, head->data, sizeof dims);
    if (dims < 1 || dims > BSW_MAX_DIMS) {
        return bsw_fail(head->err, BSW_ERROR_BAD_DATA,
                        "%s: the first row says %d dims, must be 1 to %d", head->name, dims,
                        BSW_MAX_DIMS);
    }
    uint64_t stride = 4 + (uint64_t)dims * type_facts[type].bytes;
    if (head->file_bytes % stride != 0) {
        return bsw_fail(head->err, BSW_ERROR_BAD_DATA,
                        "%s: rows of %d dims have %llu bytes, which does not divide the %llu of "
                        "the file",
                        head->name, dims, (unsigned long long)stride,
                        (unsigned long long)head->file_bytes);
    }
    *out = (struct bsw_vector_layout){.type = type,
                                      .dims = (uint32_t)dims,
                                      .num_rows = head->file_bytes / stride,
                                      .first_byte = 4,
                                      .stride_bytes = stride,
                                      .is_vecs = 1};
    return BSW_OK;
}

// Whether shape and size of the file agree.
static int fits(const struct head *head, enum bsw_vector_type type, uint64_t num_rows,
                uint64_t dims, uint64_t first_byte)
{
    uint64_t total;
    return total_bytes(num_rows, dims, type_facts[type].bytes, first_byte, &total) &&
           total == head->file_bytes;
}

static enum bsw_status parse_bin(const struct head *head, enum bsw_vector_type type,
                                 struct bsw_vector_layout *out)
{
    if (head->bytes < 8) return fail_short(head, 8);
    uint32_t num_rows = read_u32(head->data), dims = read_u32(head->data + 4);
    int is_wide = dims == 0;
    if (!is_wide && head->bytes >= 16 && !fits(head, type, num_rows, dims, 8)) {
        is_wide = fits(head, type, read_u64(head->data), read_u64(head->data + 8), 16);
    }
    size_t number_bytes = type_facts[type].bytes;
    if (!is_wide) return set_dense(head, type, number_bytes, num_rows, dims, 8, out);
    if (head->bytes < 16) return fail_short(head, 16);
    return set_dense(head, type, number_bytes, read_u64(head->data), read_u64(head->data + 8), 16,
                     out);
}

// The header of .npy is a Python dict literal; only what NumPy itself writes for plain arrays is
// taken, in any order and spacing.
struct literal {
    const char *start;
    const char *at;
    const char *end;
};

static void skip_space(struct literal *in)
{
    while (in->at < in->end && *in->at && strchr(" \t\r\n", *in->at)) in->at++;
}

// Takes the mark, with space on both sides, or leaves it and returns 0.
static int take(struct literal *in, const char *mark)
{
    size_t length = strlen(mark);
    skip_space(in);
    if ((size_t)(in->end - in->at) < length || memcmp(in->at, mark, length) != 0) return 0;
    in->at += length;
    skip_space(in);
    return 1;
}

static int take_string(struct literal *in, const char **text, int *length)
{
    skip_space(in);
    if (in->at == in->end || (*in->at != '\'' && *in->at != '"')) return 0;
    char quote = *in->at++;
    *text = in->at;
    while (in->at < in->end && *in->at != quote && *in->at != '\\' && *in->at != '\n') in->at++;
    if (in->at == in->end || *in->at != quote) return 0;
    *length = (int)(in->at++ - *text);
    skip_space(in);
    return 1;
}

static int take_number(struct literal *in, uint64_t *out)
{
    const char *first = in->at;
    *out = 0;
    for (; in->at < in->end && *in->at >= '0' && *in->at <= '9'; in->at++) {
        if (__builtin_mul_overflow(*out, (uint64_t)10, out)) return 0;
        if (__builtin_add_overflow(*out, (uint64_t)(*in->at - '0'), out)) return 0;
    }
    return in->at > first;
}

// A tuple: (), (5,), (5, 128) or (5, 128,); (5) is a number in Python.
static int take_shape(struct literal *in, struct bsw_npy_header *header)
{
    int comma = 1;
    header->num_axes = 0;
    if (!take(in, "(")) return 0;
    while (!take(in, ")")) {
        uint64_t length;
        if (!comma || !take_number(in, &length)) return 0;
        if (header->num_axes < 2) header->shape[header->num_axes] = length;
        header->num_axes++;
        comma = take(in, ",");
    }
    return header->num_axes != 1 || comma;
}

static int take_boolean(struct literal *in, int *out)
{
    *out = take(in, "True");
    return *out || take(in, "False");
}

static int take_entry(struct literal *in, struct bsw_npy_header *header, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    const char *key;
    int length;
    unsigned which = 0;
    if (!take_string(in, &key, &length) || !take(in, ":")) return 0;
    while (which < 3 &&
           (strlen(keys[which]) != (size_t)length || memcmp(keys[which], key, (size_t)length) != 0))
        which++;
    if (which == 3 || (*seen >> which & 1)) return 0;
    *seen |= 1u << which;
    if (which == 0) return take_string(in, &header->descr, &header->descr_length);
    if (which == 1) return take_boolean(in, &header->is_fortran);
    return take_shape(in, header);
}

static int take_npy_header(struct literal *in, struct bsw_npy_header *header)
{
    unsigned seen = 0;
    int comma = 1;
    if (!take(in, "{")) return 0;
    while (!take(in, "}")) {
        if (!comma || !take_entry(in, header, &seen)) return 0;
        comma = take(in, ",");
    }
    return seen == 7 && in->at == in->end;
}

// Little endian, which = and | are where this runs, and any of numbers of one byte.
int bsw_npy_is_type(const struct bsw_npy_header *header, const char *name)
{
    return header->descr_length == 3 && memcmp(header->descr + 1, name, 2) == 0 &&
           memchr(name[1] == '1' ? "<|=>" : "<|=", header->descr[0], name[1] == '1' ? 4 : 3);
}

// What people call a type that is not read.
static const char *npy_type_name(const struct bsw_npy_header *header)
{
    static const char *const names[][2] = {
        {"i2", " (int16)"},  {"i4", " (int32)"},  {"i8", " (int64)"}, {"u2", " (uint16)"},
        {"u4", " (uint32)"}, {"u8", " (uint64)"}, {"b1", " (bool)"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (bsw_npy_is_type(header, names[i][0])) return names[i][1];
    }
    return header->descr_length == 3 && header->descr[0] == '>' ? " (big endian)" : "";
}

static enum bsw_status npy_type(const struct head *head, const struct bsw_npy_header *header,
                                enum bsw_vector_type *out)
{
    static const struct {
        const char *name;
        enum bsw_vector_type type;
    } known[] = {{"f4", BSW_VECTOR_FLOAT32},
                 {"f2", BSW_VECTOR_FLOAT16},
                 {"u1", BSW_VECTOR_UINT8},
                 {"i1", BSW_VECTOR_INT8},
                 {"f8", BSW_VECTOR_FLOAT32}}; // read as that
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!bsw_npy_is_type(header, known[i].name)) continue;
        *out = known[i].type;
        return BSW_OK;
    }
    return bsw_fail(head->err, BSW_ERROR_BAD_DATA,
                    "%s: numbers are of type '%.*s'%s; float32, float16, uint8 and int8 are read: "
                    "in Python, numpy.save(FILE, rows.astype('<f4'))",
                    head->name, header->descr_length < 32 ? header->descr_length : 32,
                    header->descr, npy_type_name(header));
}

// One axis is one row, as a query saved alone is.
static enum bsw_status npy_shape(const struct head *head, const struct bsw_npy_header *header,
                                 uint64_t first_byte, struct bsw_vector_layout *out)
{
    enum bsw_vector_type type = BSW_VECTOR_FLOAT32;
    BSW_TRY(npy_type(head, header, &type));
    if (header->num_axes < 1 || header->num_axes > 2) {
        return bsw_fail(head->err, BSW_ERROR_BAD_DATA, "%s: %zu axes, must be 1 or 2", head->name,
                        header->num_axes);
    }
    uint64_t num_rows = header->num_axes == 2 ? header->shape[0] : 1;
    int is_double = bsw_npy_is_type(header, "f8");
    BSW_TRY(set_dense(head, type, is_double ? sizeof(double) : type_facts[type].bytes, num_rows,
                      header->shape[header->num_axes - 1], first_byte, out));
    out->is_double = is_double;
    out->is_fortran = header->is_fortran && header->num_axes == 2;
    return BSW_OK;
}

static enum bsw_status parse_npy_head(const struct head *head, struct bsw_npy_header *header)
{
    if (head->bytes < 10) return fail_short(head, 10);
    if (memcmp(head->data, "\x93NUMPY", 6) != 0) {
        return bsw_fail(head->err, BSW_ERROR_BAD_DATA, "%s: does not begin as a .npy file does",
                        head->name);
    }
    unsigned version = head->data[6];
    if (version < 1 || version > 3 || head->data[7] != 0) {
        return bsw_fail(head->err, BSW_ERROR_BAD_DATA, "%s: .npy version %u.%u: 1.0 to 3.0 exist",
                        head->name, version, head->data[7]);
    }
    uint64_t start = version == 1 ? 10 : 12;
    if (head->bytes < start) return fail_short(head, start);
    uint64_t first_byte = start + (version == 1 ? (uint64_t)(head->data[8] | head->data[9] << 8)
                                                : read_u32(head->data + 8));
    if (first_byte > head->file_bytes) return fail_short(head, first_byte);
    if (first_byte > head->bytes) {
        return bsw_fail(head->err, BSW_ERROR_BAD_DATA,
                        "%s: a header of %llu bytes, must be %zu at most", head->name,
                        (unsigned long long)first_byte, head->bytes);
    }
    struct literal in = {.start = (const char *)head->data,
                         .at = (const char *)head->data + start,
                         .end = (const char *)head->data + first_byte};
    *header = (struct bsw_npy_header){.first_byte = first_byte};
    if (!take_npy_header(&in, header)) {
        return bsw_fail(head->err, BSW_ERROR_BAD_DATA, "%s: the .npy header is wrong at byte %zu",
                        head->name, (size_t)(in.at - in.start));
    }
    return BSW_OK;
}

static enum bsw_status parse_npy(const struct head *head, enum bsw_vector_type type,
                                 struct bsw_vector_layout *out)
{
    struct bsw_npy_header header;
    (void)type;
    BSW_TRY(parse_npy_head(head, &header));
    return npy_shape(head, &header, header.first_byte, out);
}

enum bsw_status bsw_npy_header_parse(const char *name, const void *head, size_t head_bytes,
                                     uint64_t file_bytes, struct bsw_npy_header *out,
                                     struct bsw_error *err)
{
    const struct head parts = {name, head, head_bytes, file_bytes, err};
    return parse_npy_head(&parts, out);
}

int bsw_npy_array_find(const void *data, size_t bytes, const char *const *types,
                       struct bsw_npy_array *out)
{
    const struct head head = {"", data, bytes, bytes, NULL};
    struct bsw_npy_header header;
    uint64_t total = 0;
    if (parse_npy_head(&head, &header) != BSW_OK) return 0;
    out->first_byte = header.first_byte;
    if (header.num_axes != 2 || header.is_fortran) return 0;
    memcpy(out->shape, header.shape, sizeof out->shape);
    for (out->type = 0; types[out->type]; out->type++) {
        if (bsw_npy_is_type(&header, types[out->type])) break;
    }
    return types[out->type] && out->shape[0] > 0 && out->shape[1] > 0 &&
           total_bytes(out->shape[0], out->shape[1], (size_t)(types[out->type][1] - '0'),
                       out->first_byte, &total) &&
           total == bytes;
}

int bsw_npy_integer_type(const struct bsw_npy_header *header, struct bsw_integer_type *out)
{
    static const struct {
        const char *name;
        struct bsw_integer_type type;
    } known[] = {{"i8", {8, 1}}, {"u8", {8, 0}}, {"i4", {4, 1}}, {"u4", {4, 0}}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!bsw_npy_is_type(header, known[i].name)) continue;
        *out = known[i].type;
        return 1;
    }
    return 0;
}

enum bsw_status bsw_npy_integers_parse(const char *name, const void *data, size_t bytes,
                                       struct bsw_npy_integers *out, struct bsw_error *err)
{
    const struct head head = {
        .name = name, .data = data, .bytes = bytes, .file_bytes = bytes, .err = err};
    struct bsw_npy_header header;
    BSW_TRY(parse_npy_head(&head, &header));
    out->first_byte = header.first_byte;
    if (!bsw_npy_integer_type(&header, &out->type) || header.num_axes != 1)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: must be one axis of int64, uint64, int32 or uint32: in Python, "
                        "numpy.save(FILE, ids.astype('int64'))",
                        name);
    out->count = header.shape[0];
    if (out->count == (bytes - out->first_byte) / out->type.bytes &&
        (bytes - out->first_byte) % out->type.bytes == 0)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %zu bytes do not fit the %llu numbers it says",
                    name, bytes, (unsigned long long)out->count);
}

static enum bsw_status (*const parsers[BSW_NUM_FORMS])(const struct head *head,
                                                       enum bsw_vector_type type,
                                                       struct bsw_vector_layout *out) = {
    [BSW_FORM_VECS] = parse_vecs, [BSW_FORM_BIN] = parse_bin, [BSW_FORM_NPY] = parse_npy};

enum bsw_status bsw_vector_layout_parse(const char *name, const void *head, size_t head_bytes,
                                        uint64_t file_bytes, struct bsw_vector_layout *out,
                                        struct bsw_error *err)
{
    BSW_TRY(bsw_vector_layout_parse_any(name, head, head_bytes, file_bytes, out, err));
    if (out->is_double)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: numbers are of type float64; `bitsweep convert --type float32`, or "
                        "numpy.save(FILE, rows.astype('<f4')), makes a file that can be used",
                        name);
    if (out->is_fortran)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: is in Fortran order, column after column; `bitsweep convert` makes a "
                        "file of row after row",
                        name);
    return BSW_OK;
}

enum bsw_status bsw_vector_layout_parse_any(const char *name, const void *head, size_t head_bytes,
                                            uint64_t file_bytes, struct bsw_vector_layout *out,
                                            struct bsw_error *err)
{
    const struct bsw_vector_format *format = bsw_vector_format_of(name);
    if (!format)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: the name must end in " BSW_VECTOR_ENDINGS, name);
    if (file_bytes == 0) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: empty", name);
    struct head parts = {name, head, head_bytes, file_bytes, err};
    if (parts.bytes > file_bytes) parts.bytes = (size_t)file_bytes;
    return parsers[format->form](&parts, format->type, out);
}

// ---- names ----

int bsw_name_ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

// The colon before the dataset, or the end of the name; NULL if no file of the kind ends there.
static const char *end_of_file(const char *name, const char *ending)
{
    size_t tail = strlen(ending);
    const char *end = NULL;
    for (const char *at = strstr(name, ending); at; at = strstr(at + 1, ending)) {
        if (at > name && (at[tail] == '\0' || (at[tail] == ':' && at[tail + 1]))) end = at + tail;
    }
    return end;
}

int bsw_hdf5_name_parse(const char *name, const char *fallback, struct bsw_hdf5_name *out)
{
    const char *end = end_of_file(name, ".hdf5");
    if (!end) end = end_of_file(name, ".h5");
    if (!end || (size_t)(end - name) >= sizeof out->file) return 0;
    memcpy(out->file, name, (size_t)(end - name));
    out->file[end - name] = '\0';
    out->dataset = *end ? end + 1 : fallback;
    return 1;
}

static const struct bsw_vector_format formats[] = {
    {".fvecs", BSW_VECTOR_FLOAT32, BSW_FORM_VECS}, {".bvecs", BSW_VECTOR_UINT8, BSW_FORM_VECS},
    {".ivecs", BSW_VECTOR_INT32, BSW_FORM_VECS},   {".fbin", BSW_VECTOR_FLOAT32, BSW_FORM_BIN},
    {".u8bin", BSW_VECTOR_UINT8, BSW_FORM_BIN},    {".i8bin", BSW_VECTOR_INT8, BSW_FORM_BIN},
    {".ibin", BSW_VECTOR_INT32, BSW_FORM_BIN},     {".npy", BSW_VECTOR_FLOAT32, BSW_FORM_NPY},
};

const struct bsw_vector_format *bsw_vector_format_of(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (bsw_name_ends_with(name, formats[i].ending)) return &formats[i];
    return NULL;
}

int bsw_name_is_ids(const char *name)
{
    const struct bsw_vector_format *format = bsw_vector_format_of(name);
    return format && format->type == BSW_VECTOR_INT32;
}

int bsw_name_is_vectors(const char *name)
{
    struct bsw_hdf5_name hdf5;
    if (strncmp(name, "synth:", 6) == 0) return 1;
    if (bsw_vector_format_of(name)) return !bsw_name_is_ids(name);
    return bsw_hdf5_name_parse(name, BSW_HDF5_BASE, &hdf5) &&
           strcmp(hdf5.dataset, BSW_HDF5_NEIGHBORS) != 0;
}
