// SPDX-License-Identifier: Apache-2.0
// Vector sources: rows of numbers from a file or from a generator, read in blocks without loading
// the whole.
//
// Kinds, told apart by the name's ending: .fvecs .bvecs (TEXMEX: int32 dims before each row), .fbin
// .u8bin .i8bin (big-ann: uint32 count, uint32 dims; or the 16-byte form uint64 count, uint64
// dims), .npy (1 or 2 axes, f4 f2 u1 i1, C order, little endian; one axis of n numbers is one row
// of n dims; convert reads f8 and Fortran order, too), .hdf5 .h5 with :DATASET behind it
// (ann-benchmarks), and
// synth:count=N,dims=D[,seed=S][,clusters=C][,type=float32|uint8][,spectrum=X] made by synth.h, and
// memory:WORD, rows that a caller has lent. Lines of .txt and columns of .tsv, :COLUMN behind it,
// are rows of float32 where a model that makes them is lent (text_lines.h).
#ifndef BITSWEEP_COMMON_VECTORS_H
#define BITSWEEP_COMMON_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/c_linkage.h"
#include "common/base/file.h"
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
    // .npy files that convert alone reads. Then the stride is a row's bytes all the same.
    int is_double;  // float64, which becomes float32, the type
    int is_fortran; // column after column
};

// Parses a header from memory; the file has file_bytes in all. `head` is its first head_bytes (at
// least BSW_VECTOR_HEAD_BYTES or the whole file). Checks that header and size agree exactly. `name`
// picks the kind and is used in messages. BSW_ERROR_BAD_DATA for a wrong content, BSW_ERROR_USAGE
// for an ending that is no vector file.
#define BSW_VECTOR_HEAD_BYTES 65536
enum bsw_status bsw_vector_layout_parse(const char *name, const void *head, size_t head_bytes,
                                        uint64_t file_bytes, struct bsw_vector_layout *out,
                                        struct bsw_error *err);
// The same, but also .npy files of float64 and in Fortran order.
enum bsw_status bsw_vector_layout_parse_any(const char *name, const void *head, size_t head_bytes,
                                            uint64_t file_bytes, struct bsw_vector_layout *out,
                                            struct bsw_error *err);

// A .npy file in memory that is a matrix in C order, of numbers of one of `types`, "i4", "f4", up
// to NULL. 0: it is not.
struct bsw_npy_array {
    unsigned type; // which of them
    uint64_t shape[2], first_byte;
};
int bsw_npy_array_find(const void *data, size_t bytes, const char *const *types,
                       struct bsw_npy_array *out);

// What a .npy file says of itself, of one axis or more and any type; not whether its size agrees.
struct bsw_npy_header {
    const char *descr; // into the head; not terminated
    int descr_length;
    int is_fortran;
    uint64_t shape[2];
    size_t num_axes; // may pass 2; then shape has the first two
    uint64_t first_byte;
};
// head as above.
enum bsw_status bsw_npy_header_parse(const char *name, const void *head, size_t head_bytes,
                                     uint64_t file_bytes, struct bsw_npy_header *out,
                                     struct bsw_error *err);
// Whether its numbers are of this type, "i4", in the order of bytes that is read.
int bsw_npy_is_type(const struct bsw_npy_header *header, const char *name);

// Integers as files have them, in little-endian order.
struct bsw_integer_type {
    size_t bytes; // 4 or 8
    int is_signed;
};
// One of them; of what is beyond int64 those bits, which are a negative number.
static inline int64_t bsw_integer_at(struct bsw_integer_type type, const void *at)
{
    uint32_t narrow;
    int64_t wide;
    if (type.bytes == sizeof wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return type.is_signed ? (int64_t)(int32_t)narrow : (int64_t)narrow;
}
// 0: a .npy file's numbers are none of int32, int64, uint32 and uint64.
int bsw_npy_integer_type(const struct bsw_npy_header *header, struct bsw_integer_type *out);

// A whole .npy file of integers with one axis, which is no vectors.
struct bsw_npy_integers {
    uint64_t first_byte, count;
    struct bsw_integer_type type;
};
enum bsw_status bsw_npy_integers_parse(const char *name, const void *data, size_t bytes,
                                       struct bsw_npy_integers *out, struct bsw_error *err);

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
// As bsw_vectors_open, but also .npy files of float64, each read as the nearest float32, and in
// Fortran order, of which reading a block takes a look at every column.
enum bsw_status bsw_vectors_open_any(const char *source, struct bsw_row_range range,
                                     bsw_vectors **out, struct bsw_error *err);
void bsw_vectors_close(bsw_vectors **vectors);

// From now on the first row of the range has this id, and the others follow; before anybody reads.
void bsw_vectors_number(bsw_vectors *vectors, uint64_t first_id);
// id of a row less its number in the source, modulo 2^64; 0 unless they were numbered.
uint64_t bsw_vectors_shift(const bsw_vectors *vectors);

const char *bsw_vectors_name(const bsw_vectors *vectors);          // as given
enum bsw_vector_type bsw_vectors_type(const bsw_vectors *vectors); // never INT32
int bsw_vectors_is_double(const bsw_vectors *vectors); // numbers of its file are float64
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

// Reads rows [first_row, first_row + num_rows), ids inside the range, as
// dense numbers [num_rows][dims] of the source's own type into out, which the caller owns. Blocks
// on the file. A dims word of a .vecs row that differs from the first is BSW_ERROR_BAD_DATA naming
// the row, as is a float64 beyond float32. Costs one copy; synth: generates.
enum bsw_status bsw_vectors_read(const bsw_vectors *vectors, uint64_t first_row, size_t num_rows,
                                 void *out, struct bsw_error *err);

// Finiteness is not checked here: the encoder and the exact scan find bad rows while they compute
// norms.

BSW_C_END

// What the name of a file says: its kind by the ending, and the dataset in an HDF5 file.

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

// Writes vectors in every format that vectors.h reads, but for HDF5: the name's ending says which.

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

// Rows that a caller of the library has in memory, as a source of vectors: lent under a name, they
// are opened by it as a file is (vectors.h), so that no job knows where its rows come from.
//
// Lent rows belong to the thread that lends them and are seen by it alone: names are no secret, two
// threads may use the same one, and nobody on a command line can name what was never lent. Jobs
// open their sources in the thread that called them.

#define BSW_MEMORY_PREFIX "memory:"

// 1 for names that begin with the prefix.
int bsw_memory_rows_is_name(const char *name);

// The caller's to keep until it is taken back; no member changes in between.
struct bsw_memory_rows {
    const char *name;             // BSW_MEMORY_PREFIX and a word, for messages and manifests
    const void *numbers;          // [num_rows][dims], any alignment, borrowed
    enum bsw_vector_type type;    // not INT32
    uint32_t dims;                // 1 .. BSW_MAX_DIMS
    uint64_t num_rows;            // 1 or more
    struct bsw_memory_rows *next; // lent before
    // Where numbers is NULL: what gives rows [first_row, first_row + num_rows). By several threads.
    enum bsw_status (*read)(void *context, uint64_t first_row, size_t num_rows, void *out,
                            struct bsw_error *err);
    void *context;
};

// Shape and pointer are checked: BSW_ERROR_USAGE. On success the calling thread takes them back,
// last lent first.
enum bsw_status bsw_memory_rows_lend(struct bsw_memory_rows *rows, struct bsw_error *err);
// Sources opened by their name must be closed. Accepts rows that were not lent.
void bsw_memory_rows_take_back(struct bsw_memory_rows *rows);

// Those of the calling thread with this name; BSW_ERROR_IO where there are none.
enum bsw_status bsw_memory_rows_find(const char *name, const struct bsw_memory_rows **out,
                                     struct bsw_error *err);

// Matrices in HDF5 files, as ann-benchmarks keeps them (train, test, neighbors), and the distance
// that they are of: hdf5_source.c is the only place that calls libhdf5.
//
// libhdf5 only says where numbers lie, for which they must lie in one piece: they are read as those
// of any other format. H5Dread would unpack chunks, too, but believes a chunk about the size it
// unpacks to, and reads beyond its buffer (1.10.8): one changed byte of a file is enough. What a
// file says of itself is checked against its size before anything is allocated. It is not
// thread-safe and is called by one thread at a time.

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

// Names of what the file has at its top, a line each, as many as fit.
#define BSW_HDF5_NAMES_BYTES 2048
enum bsw_status bsw_hdf5_names_read(const char *file, char out[BSW_HDF5_NAMES_BYTES],
                                    struct bsw_error *err);

// The file's attribute `distance`, as bsw_vectors_distance has it.
enum bsw_status bsw_hdf5_distance_read(const char *name, const char *file,
                                       char out[BSW_DISTANCE_BYTES], struct bsw_error *err);

#endif
