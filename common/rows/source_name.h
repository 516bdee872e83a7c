// SPDX-License-Identifier: Apache-2.0
// What the name of a file says: its kind by the ending, and the dataset in an HDF5 file.
#ifndef BITSWEEP_COMMON_SOURCE_NAME_H
#define BITSWEEP_COMMON_SOURCE_NAME_H

#include "common/base/file.h"
#include "common/rows/vectors.h"

// Datasets of ann-benchmarks' files, where a name does not say which.
#define BSW_HDF5_BASE      "train"
#define BSW_HDF5_QUERIES   "test"
#define BSW_HDF5_NEIGHBORS "neighbors"

// FILE.hdf5, FILE.h5, either with :DATASET behind it.
struct bsw_hdf5_name {
    char file[BSW_PATH_BYTES];
    const char *dataset; // inside `name`, or the fallback: borrowed
};

// 0 if `name` is not of this kind (or its path longer than any).
int bsw_hdf5_name_parse(const char *name, const char *fallback, struct bsw_hdf5_name *out);

// Formats of files of rows that are written, too; a format is a row of the list of these in
// source_name.c. In messages and help:
#define BSW_WRITTEN_ENDINGS ".fvecs .bvecs .fbin .u8bin .i8bin"
#define BSW_VECTOR_ENDINGS  BSW_WRITTEN_ENDINGS " .npy .hdf5 or .h5" // synth: has its own
enum bsw_vector_form { BSW_FORM_VECS, BSW_FORM_BIN, BSW_FORM_NPY, BSW_NUM_FORMS };
struct bsw_vector_format {
    const char *ending;
    enum bsw_vector_type type; // int32: ids; .npy: its header says
    enum bsw_vector_form form;
};
// That of the name's ending, or NULL.
const struct bsw_vector_format *bsw_vector_format_of(const char *name);

// 1 if `name` ends so, with something before it.
int bsw_name_ends_with(const char *name, const char *ending);

// 1 for what is read as vectors: their endings, synth:, and an HDF5 file but for its neighbors.
int bsw_name_is_vectors(const char *name);

// 1 for ids of neighbours without values: .ivecs, .ibin.
int bsw_name_is_ids(const char *name);

#endif
