// SPDX-License-Identifier: Apache-2.0
// A libhdf5 for fuzz_hdf5.c: its functions in so far as common/rows/hdf5_source.c calls them,
// answering what a description says, whatever a damaged file might make of it. So what is judged is
// our code alone, and not libhdf5, which itself can crash on damaged files.
//
// Numbers have a known pattern by row and byte, so that what is read can be compared. Every id that
// is given out must come back.
#ifndef BITSWEEP_TESTS_FUZZ_HDF5_STAND_IN_H
#define BITSWEEP_TESTS_FUZZ_HDF5_STAND_IN_H

#if __has_include(<hdf5.h>) // else nothing: there is no libhdf5, or its folder is not looked into
#define H5_USE_110_API
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

#include "common/rows/chunk_filters.h"
#include "tests/fuzz/harness.h"

enum stand_in_type {
    STAND_IN_FLOAT32,
    STAND_IN_HALF,
    STAND_IN_UINT8,
    STAND_IN_INT8,
    STAND_IN_INT32,
    STAND_IN_INT64,
    STAND_IN_BIG_INT16,
    STAND_IN_BFLOAT16,
    STAND_IN_ENUM,
    STAND_IN_TEXT,
    STAND_IN_NUM_TYPES,
};

struct stand_in {
    uint32_t fails_at; // the call that fails, counted from 1; 0: none
    enum stand_in_type type;
    size_t text_bytes; // of STAND_IN_TEXT
    int num_axes, layout, num_external, is_elsewhere, is_absent;
    uint64_t rows, columns, chunk_rows, chunk_columns, num_chunks;
    uint64_t storage_bytes, offset;
    int num_filters, filters[BSW_CHUNK_MAX_FILTERS + 2];
    int has_stored; // chunks have these bytes; else the pattern's, as many as there should be
    const uint8_t *stored;
    size_t stored_bytes;
    uint64_t padding_bytes; // zeros behind these
    uint32_t skipped;       // filters
    char name[64];
    // ---- since then ----
    size_t cut_bytes;
    uint32_t num_calls, num_ids;
    hsize_t start[2], count[2], memory[2]; // selected
};
static struct stand_in stand_in;

static int stand_in_fails(void)
{
    return ++stand_in.num_calls == stand_in.fails_at;
}

static hid_t stand_in_id(hid_t id)
{
    if (stand_in_fails()) return -1;
    stand_in.num_ids++;
    return id;
}

static herr_t stand_in_close(void)
{
    FUZZ_REQUIRE(stand_in.num_ids > 0);
    stand_in.num_ids--;
    return 0;
}

static herr_t stand_in_code(void)
{
    return stand_in_fails() ? -1 : 0;
}

static size_t stand_in_number_bytes(void)
{
    static const size_t bytes[] = {4, 2, 1, 1, 4, 8, 2, 2, 1, 0};
    return stand_in.type == STAND_IN_TEXT ? stand_in.text_bytes : bytes[stand_in.type];
}

static unsigned char stand_in_byte(uint64_t row, uint64_t byte)
{
    return (unsigned char)(row * 31 + byte * 7 + (row >> 8) + 1);
}

// ---- files and sets ----

hid_t H5T_IEEE_F32LE_g = 100 + STAND_IN_FLOAT32, H5T_STD_U8LE_g = 100 + STAND_IN_UINT8,
      H5T_STD_U8BE_g = 200, H5T_STD_I8LE_g = 100 + STAND_IN_INT8, H5T_STD_I8BE_g = 201,
      H5T_NATIVE_INT64_g = 100 + STAND_IN_INT64, H5P_CLS_FILE_ACCESS_ID_g = 300;

herr_t H5open(void)
{
    return 0;
}
herr_t H5check_version(unsigned major, unsigned minor, unsigned release)
{
    (void)major, (void)minor, (void)release;
    return 0;
}
hid_t H5Pcreate(hid_t class)
{
    (void)class;
    return stand_in_id(1);
}
herr_t H5Pset_fapl_sec2(hid_t list)
{
    (void)list;
    return stand_in_code();
}
herr_t H5Pset_file_locking(hid_t list, hbool_t is_used, hbool_t ignored)
{
    (void)list, (void)is_used, (void)ignored;
    return stand_in_code();
}
hid_t H5Fopen(const char *name, unsigned flags, hid_t list)
{
    FUZZ_REQUIRE(name && flags == H5F_ACC_RDONLY && list >= 0);
    return stand_in_id(2);
}
herr_t H5Oget_info(hid_t object, H5O_info_t *info)
{
    memset(info, 0, sizeof *info);
    info->fileno = object == 3 && stand_in.is_elsewhere ? 8 : 7;
    return stand_in_code();
}
htri_t H5Lexists(hid_t file, const char *name, hid_t list)
{
    (void)file, (void)list;
    FUZZ_REQUIRE(name);
    return stand_in_fails() ? -1 : !stand_in.is_absent;
}
herr_t H5Literate(hid_t group, H5_index_t by, H5_iter_order_t order, hsize_t *at,
                  H5L_iterate_t visit, void *context)
{
    const H5L_info_t link = {.type = H5L_TYPE_HARD};
    (void)by, (void)order, (void)at;
    herr_t code = stand_in_code();
    for (size_t i = 0; i < stand_in.stored_bytes % 32 && code == 0; i++)
        code = visit(group, stand_in.name, &link, context);
    return code;
}
herr_t H5Eset_auto2(hid_t stack, H5E_auto2_t print, void *context)
{
    (void)stack, (void)print, (void)context;
    return 0;
}
herr_t H5Ewalk2(hid_t stack, H5E_direction_t direction, H5E_walk2_t visit, void *context)
{
    const H5E_error2_t error = {.desc = stand_in.has_stored ? stand_in.name : NULL};
    (void)stack, (void)direction;
    return visit(0, &error, context);
}
hid_t H5Dopen2(hid_t file, const char *name, hid_t list)
{
    (void)file, (void)name, (void)list;
    return stand_in_id(3);
}
hid_t H5Dget_space(hid_t set)
{
    (void)set;
    return stand_in_id(4);
}
hid_t H5Dget_type(hid_t set)
{
    (void)set;
    return stand_in_id(5);
}
hid_t H5Dget_create_plist(hid_t set)
{
    (void)set;
    return stand_in_id(6);
}
hid_t H5Screate_simple(int rank, const hsize_t *lengths, const hsize_t *most)
{
    FUZZ_REQUIRE(rank == 2 && !most);
    memcpy(stand_in.memory, lengths, sizeof stand_in.memory);
    return stand_in_id(7);
}

herr_t H5Pclose(hid_t list)
{
    (void)list;
    return stand_in_close();
}
herr_t H5Fclose(hid_t file)
{
    (void)file;
    return stand_in_close();
}
herr_t H5Dclose(hid_t set)
{
    (void)set;
    return stand_in_close();
}
herr_t H5Sclose(hid_t space)
{
    (void)space;
    return stand_in_close();
}
herr_t H5Tclose(hid_t type)
{
    (void)type;
    return stand_in_close();
}

// ---- shape and type ----

int H5Sget_simple_extent_ndims(hid_t space)
{
    (void)space;
    return stand_in_fails() ? -1 : stand_in.num_axes;
}
htri_t H5Sis_simple(hid_t space)
{
    (void)space;
    return stand_in_fails() ? -1 : 1;
}
// As libhdf5 does, as many lengths as there are axes.
int H5Sget_simple_extent_dims(hid_t space, hsize_t *lengths, hsize_t *most)
{
    (void)space, (void)most;
    if (stand_in_fails()) return -1;
    for (int i = 0; i < stand_in.num_axes; i++) lengths[i] = i ? stand_in.columns : stand_in.rows;
    return stand_in.num_axes;
}
size_t H5Tget_size(hid_t type)
{
    (void)type;
    return stand_in_fails() ? 0 : stand_in_number_bytes();
}
H5T_class_t H5Tget_class(hid_t type)
{
    (void)type;
    switch (stand_in.type) {
    case STAND_IN_FLOAT32:
    case STAND_IN_HALF:
    case STAND_IN_BFLOAT16:
        return H5T_FLOAT;
    case STAND_IN_ENUM:
        return H5T_ENUM;
    case STAND_IN_TEXT:
        return H5T_STRING;
    default:
        return H5T_INTEGER;
    }
}
H5T_order_t H5Tget_order(hid_t type)
{
    (void)type;
    return stand_in.type == STAND_IN_BIG_INT16 ? H5T_ORDER_BE : H5T_ORDER_LE;
}
H5T_sign_t H5Tget_sign(hid_t type)
{
    (void)type;
    return stand_in.type == STAND_IN_UINT8 ? H5T_SGN_NONE : H5T_SGN_2;
}
herr_t H5Tget_fields(hid_t type, size_t *sign, size_t *exponent, size_t *exponent_bits,
                     size_t *mantissa, size_t *mantissa_bits)
{
    int is_half = stand_in.type == STAND_IN_HALF;
    (void)type;
    *sign = 15;
    *exponent = is_half ? 10 : 7;
    *exponent_bits = is_half ? 5 : 8;
    *mantissa = 0;
    *mantissa_bits = is_half ? 10 : 7;
    return stand_in_code();
}
size_t H5Tget_ebias(hid_t type)
{
    (void)type;
    return stand_in.type == STAND_IN_HALF ? 15 : 127;
}
htri_t H5Tequal(hid_t type, hid_t other)
{
    (void)type;
    return stand_in_fails() ? -1 : other == 100 + (hid_t)stand_in.type;
}
// In place: the room must be that of 64-bit numbers.
herr_t H5Tconvert(hid_t from, hid_t to, size_t count, void *data, void *background, hid_t list)
{
    (void)from, (void)background, (void)list;
    FUZZ_REQUIRE(to == H5T_NATIVE_INT64_g);
    if (stand_in_fails()) return -1;
    size_t bytes = stand_in_number_bytes();
    unsigned char *numbers = (unsigned char *)data;
    for (size_t i = count; i-- > 0;) {
        uint64_t number = 0;
        memcpy(&number, numbers + i * bytes, bytes);
        memcpy(numbers + i * sizeof number, &number, sizeof number);
    }
    return 0;
}

// ---- how it is stored ----

H5D_layout_t H5Pget_layout(hid_t made)
{
    (void)made;
    return stand_in_fails() ? H5D_LAYOUT_ERROR : (H5D_layout_t)stand_in.layout;
}
int H5Pget_external_count(hid_t made)
{
    (void)made;
    return stand_in_fails() ? -1 : stand_in.num_external;
}
int H5Pget_nfilters(hid_t made)
{
    (void)made;
    return stand_in_fails() ? -1 : stand_in.num_filters;
}
H5Z_filter_t H5Pget_filter2(hid_t made, unsigned which, unsigned *flags, size_t *num_values,
                            unsigned *values, size_t name_bytes, char *name, unsigned *config)
{
    (void)made, (void)values;
    FUZZ_REQUIRE((int)which < stand_in.num_filters && num_values && *num_values == 0);
    if (stand_in_fails()) return -1;
    snprintf(name, name_bytes, "%s", stand_in.name);
    *flags = *config = 0;
    return stand_in.filters[which];
}
// As libhdf5 does: the number of axes, whatever the room.
int H5Pget_chunk(hid_t made, int most, hsize_t *lengths)
{
    (void)made;
    FUZZ_REQUIRE(most == 2);
    if (stand_in_fails()) return -1;
    lengths[0] = stand_in.chunk_rows;
    lengths[1] = stand_in.chunk_columns;
    return 2;
}
herr_t H5Dget_num_chunks(hid_t set, hid_t space, hsize_t *count)
{
    (void)set, (void)space;
    *count = stand_in.num_chunks;
    return stand_in_code();
}
hsize_t H5Dget_storage_size(hid_t set)
{
    (void)set;
    return stand_in_fails() ? 0 : stand_in.storage_bytes;
}
haddr_t H5Dget_offset(hid_t set)
{
    (void)set;
    return stand_in_fails() ? HADDR_UNDEF : stand_in.offset;
}

// ---- numbers ----

herr_t H5Sselect_hyperslab(hid_t space, H5S_seloper_t how, const hsize_t *start,
                           const hsize_t *stride, const hsize_t *count, const hsize_t *block)
{
    (void)space;
    FUZZ_REQUIRE(how == H5S_SELECT_SET && !stride && !block);
    memcpy(stand_in.start, start, sizeof stand_in.start);
    memcpy(stand_in.count, count, sizeof stand_in.count);
    return stand_in_code();
}
herr_t H5Dread(hid_t set, hid_t type, hid_t memory, hid_t space, hid_t list, void *out)
{
    const hsize_t *start = stand_in.start, *count = stand_in.count;
    size_t row_bytes = (size_t)stand_in.columns * stand_in_number_bytes();
    (void)set, (void)type, (void)memory, (void)space, (void)list;
    FUZZ_REQUIRE(count[0] == stand_in.memory[0] && count[1] == stand_in.memory[1]);
    FUZZ_REQUIRE(start[1] == 0 && count[1] == stand_in.columns);
    FUZZ_REQUIRE(start[0] <= stand_in.rows && count[0] <= stand_in.rows - start[0]);
    if (stand_in_fails()) return -1;
    unsigned char *to = (unsigned char *)out;
    for (hsize_t r = 0; r < count[0]; r++)
        for (size_t b = 0; b < row_bytes; b++) *to++ = stand_in_byte(start[0] + r, b);
    return 0;
}
static size_t stand_in_chunk_bytes(void)
{
    return (size_t)(stand_in.chunk_rows * stand_in.chunk_columns) * stand_in_number_bytes();
}
herr_t H5Dget_chunk_storage_size(hid_t set, const hsize_t *at, hsize_t *bytes)
{
    (void)set;
    FUZZ_REQUIRE(at[0] < stand_in.rows && at[1] < stand_in.columns);
    FUZZ_REQUIRE(at[0] % stand_in.chunk_rows == 0 && at[1] % stand_in.chunk_columns == 0);
    *bytes = stand_in.has_stored ? stand_in.stored_bytes + stand_in.padding_bytes
                                 : stand_in_chunk_bytes();
    return stand_in_code();
}
herr_t H5Dread_chunk(hid_t set, hid_t list, const hsize_t *at, uint32_t *skipped, void *out)
{
    size_t number = stand_in_number_bytes(), piece = (size_t)stand_in.chunk_columns * number;
    unsigned char *to = (unsigned char *)out;
    (void)set, (void)list;
    if (stand_in_fails()) return -1;
    *skipped = stand_in.skipped;
    if (stand_in.has_stored) {
        memcpy(to, stand_in.stored, stand_in.stored_bytes);
        memset(to + stand_in.stored_bytes, 0, (size_t)stand_in.padding_bytes);
        return 0;
    }
    for (uint64_t r = 0; r < stand_in.chunk_rows; r++)
        for (size_t b = 0; b < piece; b++) *to++ = stand_in_byte(at[0] + r, at[1] * number + b);
    return 0;
}

// ---- an attribute: the name, as a text of a fixed length or of any ----

hid_t H5T_C_S1_g = 202;

htri_t H5Aexists(hid_t file, const char *name)
{
    (void)file;
    FUZZ_REQUIRE(name);
    return stand_in_fails() ? -1 : !stand_in.is_absent;
}
hid_t H5Aopen(hid_t file, const char *name, hid_t list)
{
    (void)file, (void)name, (void)list;
    return stand_in_id(8);
}
hid_t H5Aget_type(hid_t attribute)
{
    (void)attribute;
    return stand_in_id(9);
}
hid_t H5Aget_space(hid_t attribute)
{
    (void)attribute;
    return stand_in_id(10);
}
hssize_t H5Sget_simple_extent_npoints(hid_t space)
{
    (void)space;
    return stand_in_fails() ? -1 : (hssize_t)stand_in.rows;
}
static int stand_in_is_variable(void)
{
    return stand_in.text_bytes == 0;
}
htri_t H5Tis_variable_str(hid_t type)
{
    (void)type;
    return stand_in_fails() ? -1 : stand_in_is_variable();
}
hid_t H5Tcopy(hid_t type)
{
    FUZZ_REQUIRE(type == 9);
    return stand_in_id(11);
}
herr_t H5Tset_size(hid_t type, size_t bytes)
{
    FUZZ_REQUIRE(type == 11);
    stand_in.cut_bytes = bytes;
    return stand_in_code();
}
// A text of a fixed length need not end with 0.
herr_t H5Aread(hid_t attribute, hid_t type, void *out)
{
    (void)attribute;
    if (stand_in_fails()) return -1;
    if (!stand_in_is_variable()) {
        FUZZ_REQUIRE(type == 11 && stand_in.cut_bytes > 0);
        for (size_t i = 0; i < stand_in.cut_bytes; i++)
            ((char *)out)[i] = stand_in.name[i % sizeof stand_in.name];
        return 0;
    }
    char *text = stand_in.has_stored ? fuzz_exact(stand_in.name, strlen(stand_in.name) + 1) : NULL;
    memcpy(out, &text, sizeof text);
    return 0;
}
herr_t H5Dvlen_reclaim(hid_t type, hid_t space, hid_t list, void *texts)
{
    char *text;
    FUZZ_REQUIRE(type == 9 && space == 10 && list == H5P_DEFAULT);
    memcpy(&text, texts, sizeof text);
    bsw_free(&text);
    return stand_in_code();
}
herr_t H5Aclose(hid_t attribute)
{
    FUZZ_REQUIRE(attribute == 8);
    return stand_in_close();
}

#endif
#endif
