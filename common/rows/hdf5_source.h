// SPDX-License-Identifier: Apache-2.0
// Matrices in HDF5 files, as ann-benchmarks keeps them (train, test, neighbors), and the distance
// that they are of: the only place that calls libhdf5.
//
// Rows that lie one after another in the file are not read through libhdf5 but as those of any
// other format: it only says where. Chunks it reads as they are stored, by one thread at a time,
// because it is not thread-safe; they are unpacked here, and those last used stay unpacked. What a
// file says of itself is checked against its size before anything is allocated.
#ifndef BITSWEEP_COMMON_HDF5_SOURCE_H
#define BITSWEEP_COMMON_HDF5_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/rows/vectors.h"

// Most bytes of a chunk, before compression: libhdf5 unpacks a chunk whole.
#define BSW_HDF5_CHUNK_BYTES ((uint64_t)64 << 20)

typedef struct bsw_hdf5_rows bsw_hdf5_rows; // an open dataset

// Finds `dataset` of `file` (file_bytes long) and what its rows are; `name` is for messages and
// copied. Rows without gaps give *out NULL and a layout with their first byte; others a dataset to
// be read here, and first_byte 0. BSW_ERROR_USAGE: there is no such dataset (the message lists
// those that are), or the program was built without libhdf5; BSW_ERROR_BAD_DATA: no HDF5 file, or
// not two axes of little-endian float32, float16, uint8 or int8, or data that lie in other files or
// not all in this one.
enum bsw_status bsw_hdf5_rows_open(const char *name, const char *file, const char *dataset,
                                   uint64_t file_bytes, struct bsw_vector_layout *layout,
                                   bsw_hdf5_rows **out, struct bsw_error *err);
void bsw_hdf5_rows_close(bsw_hdf5_rows **rows); // accepts NULL inside

// Rows [first_row, first_row + num_rows), all inside the dataset, as dense numbers into out.
enum bsw_status bsw_hdf5_rows_read(bsw_hdf5_rows *rows, uint64_t first_row, size_t num_rows,
                                   void *out, struct bsw_error *err);

// A whole dataset of integers (two axes, up to 64 bits): *ids [num_rows][num_columns], to be freed
// by bsw_free. Errors as above.
enum bsw_status bsw_hdf5_ids_read(const char *name, const char *file, const char *dataset,
                                  uint64_t file_bytes, uint64_t *num_rows, uint64_t *num_columns,
                                  int64_t **ids, struct bsw_error *err);

// The file's attribute `distance`, as bsw_vectors_distance has it.
enum bsw_status bsw_hdf5_distance_read(const char *name, const char *file,
                                       char out[BSW_DISTANCE_BYTES], struct bsw_error *err);

#endif
