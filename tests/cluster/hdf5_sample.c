// SPDX-License-Identifier: Apache-2.0
// Samples for check_convert.sh, in the manner of ann-benchmarks: hdf5_sample BASE QUERIES
// GROUNDTRUTH OUT [plain|packed [DISTANCE]]
//
// Vectors (.u8bin, as uint8) become train and test, the ids of the ground truth neighbors; packed:
// in chunks, deflated. DISTANCE becomes the attribute of that name, a text as h5py writes it.
#define H5_USE_110_API
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/files/result_file.h"
#include "common/rows/vectors.h"

static void check(int is_good, const char *what)
{
    if (is_good) return;
    fprintf(stderr, "hdf5_sample: %s\n", what);
    exit(1);
}

static void add(hid_t file, const char *name, hid_t type, hsize_t rows, hsize_t columns,
                int is_packed, const void *numbers)
{
    const hsize_t lengths[2] = {rows, columns}, chunk[2] = {rows < 100 ? rows : 100, columns};
    hid_t space = H5Screate_simple(2, lengths, NULL), made = H5Pcreate(H5P_DATASET_CREATE);
    if (is_packed) check(H5Pset_chunk(made, 2, chunk) >= 0 && H5Pset_deflate(made, 1) >= 0, name);
    hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, made, H5P_DEFAULT);
    check(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0, name);
    H5Dclose(set);
    H5Pclose(made);
    H5Sclose(space);
}

static void add_vectors(hid_t file, const char *name, const char *path, int is_packed)
{
    struct bsw_error err;
    bsw_vectors *vectors;
    unsigned char *numbers;
    check(bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, &err) == BSW_OK, path);
    check(bsw_vectors_type(vectors) == BSW_VECTOR_UINT8, path);
    size_t num_rows = (size_t)bsw_vectors_num_rows(vectors), dims = bsw_vectors_dims(vectors);
    check(bsw_allocate(&numbers, num_rows, dims, "numbers", &err) == BSW_OK, path);
    check(bsw_vectors_read(vectors, 0, num_rows, numbers, &err) == BSW_OK, path);
    add(file, name, H5T_STD_U8LE, num_rows, dims, is_packed, numbers);
    bsw_free(&numbers);
    bsw_vectors_close(&vectors);
}

static void add_distance(hid_t file, const char *distance)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    check(H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0, distance);
    hid_t attribute = H5Acreate2(file, "distance", type, space, H5P_DEFAULT, H5P_DEFAULT);
    check(H5Awrite(attribute, type, &distance) >= 0, distance);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
}

int main(int argc, char **argv)
{
    struct bsw_results truth;
    check(argc >= 5 && argc <= 7, "usage: BASE QUERIES GROUNDTRUTH OUT [plain|packed [DISTANCE]]");
    int is_packed = argc > 5 && strcmp(argv[5], "packed") == 0;
    hid_t file = H5Fcreate(argv[4], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    check(file >= 0, argv[4]);
    add_vectors(file, "train", argv[1], is_packed);
    add_vectors(file, "test", argv[2], is_packed);
    check(bsw_results_read(argv[3], &truth, NULL) == BSW_OK, argv[3]);
    add(file, "neighbors", H5T_STD_I64LE, truth.num_queries, truth.k, is_packed, truth.ids);
    bsw_results_deinit(&truth);
    if (argc > 6) add_distance(file, argv[6]);
    return H5Fclose(file) >= 0 ? 0 : 1;
}
