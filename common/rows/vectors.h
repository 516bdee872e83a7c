// SPDX-License-Identifier: Apache-2.0
// Vector sources: rows of numbers from a file or from a generator, read in blocks without loading
// the whole.
//
// Kinds, told apart by the name's ending: .fvecs .bvecs (TEXMEX: int32 dims before each row), .fbin
// .u8bin .i8bin (big-ann: uint32 count, uint32 dims; or the 16-byte form uint64 count, uint64
// dims), .npy (1 or 2 axes, f4 f2 u1 i1, C order, little endian; one axis of n numbers is one row
// of n dims), .hdf5 .h5 with :DATASET behind it (ann-benchmarks; hdf5_source.h), and
// synth:count=N,dims=D[,seed=S][,clusters=C][,type=float32|uint8][,spectrum=X] made by synth.h, and
// memory:WORD, rows that a caller has lent (memory_rows.h).
#ifndef BITSWEEP_COMMON_VECTORS_H
#define BITSWEEP_COMMON_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

enum bsw_vector_type {
    BSW_VECTOR_FLOAT32,
    BSW_VECTOR_FLOAT16,
    BSW_VECTOR_UINT8,
    BSW_VECTOR_INT8,
    BSW_VECTOR_INT32, // .ivecs .ibin only: ids of a ground truth, never a corpus or queries
    BSW_VECTOR_NUM_TYPES
};

const char *bsw_vector_type_name(enum bsw_vector_type type); // "float32", ...
size_t bsw_vector_type_bytes(enum bsw_vector_type type);

// Where rows lie inside a file, as its header and size say.
struct bsw_vector_layout {
    enum bsw_vector_type type;
    uint32_t dims;         // 1 .. BSW_MAX_DIMS
    uint64_t num_rows;     // >= 1
    uint64_t first_byte;   // of row 0's numbers
    uint64_t stride_bytes; // from row to row
    int is_vecs;           // an int32 with dims stands before each row and must be checked
};

// Parses a header from memory; the file has file_bytes in all. `head` is its first head_bytes (at
// least BSW_VECTOR_HEAD_BYTES or the whole file). Checks that header and size agree exactly. `name`
// picks the kind and is used in messages. BSW_ERROR_BAD_DATA for a wrong content, BSW_ERROR_USAGE
// for an ending that is no vector file.
#define BSW_VECTOR_HEAD_BYTES 65536
enum bsw_status bsw_vector_layout_parse(const char *name, const void *head, size_t head_bytes,
                                        uint64_t file_bytes, struct bsw_vector_layout *out,
                                        struct bsw_error *err);

// An open file of vectors.
struct bsw_vector_file {
    int fd;
    uint64_t bytes;
    struct bsw_vector_layout layout;
};

// Opens `source`, not synth:, and reads its header. `dataset`: of an HDF5 file whose name says
// none. Errors are those of bsw_vectors_open. The caller closes, after an error too.
enum bsw_status bsw_vector_file_open(const char *source, const char *dataset,
                                     struct bsw_vector_file *out, struct bsw_error *err);
void bsw_vector_file_close(struct bsw_vector_file *file);

// A part of a source: rows first .. last - 1. Row ids are those of the whole source. {0,
// UINT64_MAX} is all of it.
struct bsw_row_range {
    uint64_t first;
    uint64_t last;
};
#define BSW_ALL_ROWS ((struct bsw_row_range){0, UINT64_MAX})

typedef struct bsw_vectors bsw_vectors;

// Opens a source. `range` beyond the rows (unless UINT64_MAX) or empty is BSW_ERROR_USAGE; a
// missing file BSW_ERROR_IO; content that is wrong BSW_ERROR_BAD_DATA. .ivecs and .ibin are refused
// with a word on what they are. FILE.hdf5 alone is its dataset train, for bsw_queries_open test.
// Thread safety: an open source may be read by several threads at once.
enum bsw_status bsw_vectors_open(const char *source, struct bsw_row_range range, bsw_vectors **out,
                                 struct bsw_error *err);
enum bsw_status bsw_queries_open(const char *source, struct bsw_row_range range, bsw_vectors **out,
                                 struct bsw_error *err);
void bsw_vectors_close(bsw_vectors **vectors);

const char *bsw_vectors_name(const bsw_vectors *vectors);          // as given
enum bsw_vector_type bsw_vectors_type(const bsw_vectors *vectors); // never INT32
uint32_t bsw_vectors_dims(const bsw_vectors *vectors);
uint64_t bsw_vectors_first_row(const bsw_vectors *vectors);   // id of the first row of the range
uint64_t bsw_vectors_num_rows(const bsw_vectors *vectors);    // rows in the range
uint64_t bsw_vectors_source_rows(const bsw_vectors *vectors); // rows in the whole source
size_t bsw_vectors_row_bytes(const bsw_vectors *vectors);     // dims * bytes of a number
uint64_t bsw_vectors_file_bytes(const bsw_vectors *vectors);  // 0 for synth: and memory:

// What an HDF5 file in the manner of ann-benchmarks says is near, its attribute `distance`:
// "angular", "euclidean" or any other word, cut to fit, without control characters. "" where there
// is none, it is no text, or the source is of another kind. An attribute that cannot be read is
// BSW_ERROR_BAD_DATA.
#define BSW_DISTANCE_BYTES 32
enum bsw_status bsw_vectors_distance(const bsw_vectors *vectors, char out[BSW_DISTANCE_BYTES],
                                     struct bsw_error *err);

// Reads rows [first_row, first_row + num_rows), ids of the whole source and inside the range, as
// dense numbers [num_rows][dims] of the source's own type into out, which the caller owns. Blocks
// on the file. A dims word of a .vecs row that differs from the first is BSW_ERROR_BAD_DATA naming
// the row. Costs one copy; synth: generates.
enum bsw_status bsw_vectors_read(const bsw_vectors *vectors, uint64_t first_row, size_t num_rows,
                                 void *out, struct bsw_error *err);

// Finiteness is not checked here: the encoder and the exact scan find bad rows while they compute
// norms.

BSW_C_END
#endif
