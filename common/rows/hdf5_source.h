// SPDX-License-Identifier: Apache-2.0
// Matrices in HDF5 files, as ann-benchmarks keeps them (train, test, neighbors), and the distance
// that they are of: the only place that calls libhdf5.
//
// It only says where numbers lie, for which they must lie in one piece: they are read as those of
// any other format. H5Dread would unpack chunks, too, but believes a chunk about the size it
// unpacks to, and reads beyond its buffer (1.10.8): one changed byte of a file is enough. What a
// file says of itself is checked against its size before anything is allocated. libhdf5 is not
// thread-safe: it is called by one thread at a time.
#ifndef BITSWEEP_COMMON_HDF5_SOURCE_H
#define BITSWEEP_COMMON_HDF5_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/rows/vectors.h"

// Finds `dataset` of `file` (file_bytes long) and where its rows are; `name` is for messages.
// BSW_ERROR_USAGE: there is no such dataset (the message lists those that are), or the program was
// built without libhdf5; BSW_ERROR_BAD_DATA: no HDF5 file, or not two axes of little-endian
// float32, float16, uint8 or int8, or data in chunks, in other files or not all in this one.
enum bsw_status bsw_hdf5_layout_read(const char *name, const char *file, const char *dataset,
                                     uint64_t file_bytes, struct bsw_vector_layout *layout,
                                     struct bsw_error *err);

// A whole dataset of integers (two axes, up to 64 bits): *ids [num_rows][num_columns], to be freed
// by bsw_free; fd reads `file`. Errors as above.
enum bsw_status bsw_hdf5_ids_read(const char *name, const char *file, const char *dataset, int fd,
                                  uint64_t file_bytes, uint64_t *num_rows, uint64_t *num_columns,
                                  int64_t **ids, struct bsw_error *err);

// The file's attribute `distance`, as bsw_vectors_distance has it.
enum bsw_status bsw_hdf5_distance_read(const char *name, const char *file,
                                       char out[BSW_DISTANCE_BYTES], struct bsw_error *err);

#endif
