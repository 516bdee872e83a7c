// SPDX-License-Identifier: Apache-2.0
// A libhdf5 for fuzz_hdf5.c: its functions in so far as common/rows/hdf5_source.c calls them,
// answering what a description says, whatever a damaged file might make of it. So what is judged is
// our code alone, and not libhdf5, which itself can crash on damaged files.
//
// Every id that is given out must come back.
#ifndef BITSWEEP_TESTS_FUZZ_HDF5_STAND_IN_H
#define BITSWEEP_TESTS_FUZZ_HDF5_STAND_IN_H

#if __has_include(<hdf5.h>) // else nothing: there is no libhdf5, or its folder is not looked into
#define H5_USE_110_API
#include <hdf5.h>
#include <stdio.h>
#include <string.h>

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
    uint64_t rows, columns, storage_bytes, offset;
    int has_name; // libhdf5 gives a cause, and the attribute has a text
    char name[64];
    // ---- since then ----
    size_t cut_bytes;
    uint32_t num_calls, num_ids;
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
    for (size_t i = 0; i < stand_in.rows % 32 && code == 0; i++)
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
    const H5E_error2_t error = {.desc = stand_in.has_name ? stand_in.name : NULL};
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
    char *text = stand_in.has_name ? fuzz_exact(stand_in.name, strlen(stand_in.name) + 1) : NULL;
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
