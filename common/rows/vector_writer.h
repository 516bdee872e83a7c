// SPDX-License-Identifier: Apache-2.0
// Writes vectors in every format that vectors.h reads, but for HDF5: the name's ending says which.
#ifndef BITSWEEP_COMMON_VECTOR_WRITER_H
#define BITSWEEP_COMMON_VECTOR_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/rows/vectors.h"

// What a file of this name holds; .npy: `fallback`. BSW_ERROR_USAGE for a name that no vectors are
// written to. .ivecs and .ibin hold int32, the others never.
enum bsw_status bsw_vector_writer_type(const char *path, enum bsw_vector_type fallback,
                                       enum bsw_vector_type *out, struct bsw_error *err);

typedef struct bsw_vector_writer bsw_vector_writer;

// Creates PATH.tmp.PID with the header. `type` must be that of the name. num_rows >= 1, dims in 1
// .. BSW_MAX_DIMS. .fbin and its like get the 16-byte header beyond 2^32 - 1 rows. An existing file
// is BSW_ERROR_USAGE unless force.
enum bsw_status bsw_vector_writer_create(const char *path, enum bsw_vector_type type, uint32_t dims,
                                         uint64_t num_rows, int force, bsw_vector_writer **out,
                                         struct bsw_error *err);

// Writes rows [first_row, first_row + num_rows), counted from 0: dense numbers [num_rows][dims].
// The caller writes each row once, in any order.
enum bsw_status bsw_vector_writer_put(bsw_vector_writer *writer, uint64_t first_row,
                                      size_t num_rows, const void *numbers, struct bsw_error *err);

// fsync, rename to the final name, fsync of the folder. The writer stays to be destroyed.
enum bsw_status bsw_vector_writer_finish(bsw_vector_writer *writer, struct bsw_error *err);

// Removes the temporary file if not finished; nulls the pointer; accepts NULL inside.
void bsw_vector_writer_destroy(bsw_vector_writer **writer);

#endif
