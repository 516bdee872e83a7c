// SPDX-License-Identifier: Apache-2.0
// Result and ground-truth files in big-ann's layout, or of NumPy, where the name ends in .npz
// (npz_file.h).
//
// uint32 num_queries, uint32 k, then ids [num_queries][k] (int32), then values [num_queries][k]
// (float32). The 16-byte form has uint64 num_queries, uint64 k and int64 ids; it is written when
// ids pass 2^31 - 1, and recognised on reading by a second uint32 of 0 or by a size that fits only
// that form. Values: similarity for cosine and ip, squared distance for l2. Unfilled places: id -1,
// value -inf (+inf for l2).
#ifndef BITSWEEP_COMMON_RESULT_FILE_H
#define BITSWEEP_COMMON_RESULT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/file.h"
#include "common/base/status.h"

// Writer: creates PATH.tmp.PID beside the final name, takes batches in any order, renames on
// finish.
typedef struct bsw_result_writer bsw_result_writer;

// wide_ids: int64 form. An existing final file is BSW_ERROR_USAGE unless force. Does not touch the
// final name yet.
enum bsw_status bsw_result_writer_create(const char *path, uint64_t num_queries, uint64_t k,
                                         int wide_ids, int force, bsw_result_writer **out,
                                         struct bsw_error *err);

// For a run that may be resumed: the temporary file is PATH.partial, which one process at a time
// has, from here until the writer is destroyed (else BSW_ERROR_USAGE), and which is left as it is
// until bsw_result_writer_begin. What other runs left at the final name, or in journals beside it,
// is looked at after this: before it, one of them may come or end in between.
enum bsw_status bsw_result_writer_open(const char *path, uint64_t num_queries, uint64_t k,
                                       int wide_ids, bsw_result_writer **out,
                                       struct bsw_error *err);
// After open. An existing final file is BSW_ERROR_USAGE unless force.
enum bsw_status bsw_result_writer_check_name(const bsw_result_writer *writer, int force,
                                             struct bsw_error *err);
// After open: whether there was no PATH.partial, or nothing in it.
int bsw_result_writer_is_new(const bsw_result_writer *writer);
// After open, of an existing final file: BSW_ERROR_USAGE where the run that has named it is still
// at work; from here on its journal stays as it is.
enum bsw_status bsw_result_writer_lock_name(bsw_result_writer *writer, struct bsw_error *err);
// After lock_name: the final file becomes PATH.partial again, in place of the one that is open.
enum bsw_status bsw_result_writer_take_back(bsw_result_writer *writer, struct bsw_error *err);
// Before the first put: empties PATH.partial, unless what earlier runs put there is kept.
enum bsw_status bsw_result_writer_begin(bsw_result_writer *writer, int is_kept,
                                        struct bsw_error *err);

// Writes queries [first_query, first_query + num_queries): ids and values are [num_queries][k].
enum bsw_status bsw_result_writer_put(bsw_result_writer *writer, uint64_t first_query,
                                      size_t num_queries, const int64_t *ids, const float *values,
                                      struct bsw_error *err);

// The digest of the bytes that the last put wrote.
uint64_t bsw_result_writer_digest(const bsw_result_writer *writer);
// Whether these queries, put with one call, have this digest in the file.
enum bsw_status bsw_result_writer_check(bsw_result_writer *writer, uint64_t first_query,
                                        uint64_t num_queries, uint64_t digest, int *is_same,
                                        struct bsw_error *err);
// fsync. Not while the writer is opened, finished or destroyed.
enum bsw_status bsw_result_writer_sync(bsw_result_writer *writer, struct bsw_error *err);
const char *bsw_result_writer_temporary(const bsw_result_writer *writer); // its name

// fsync, rename to the final name, fsync of the folder. The writer stays to be destroyed; until
// then no other process takes the file back.
enum bsw_status bsw_result_writer_finish(bsw_result_writer *writer, struct bsw_error *err);

// Removes the temporary file if not finished; nulls the pointer; accepts NULL inside.
void bsw_result_writer_destroy(bsw_result_writer **writer);
// The same, but PATH.partial stays for a run that goes on with it.
void bsw_result_writer_leave(bsw_result_writer **writer);

// A whole result file in memory. ids [num_queries][k], values likewise or NULL when the file has
// none (.ivecs, .ibin, HDF5: ann-benchmarks' distances are not these values).
struct bsw_results {
    uint64_t num_queries;
    uint64_t k;
    int64_t *ids;
    float *values;
};

// Parses from memory: big-ann's layout, or .npz, .ivecs or .ibin by the name's ending. Every size
// is checked before anything is allocated. bsw_results_deinit frees. An id below -1 or a NaN value
// is BSW_ERROR_BAD_DATA naming query and place.
enum bsw_status bsw_results_parse(const char *name, const void *data, size_t bytes,
                                  struct bsw_results *out, struct bsw_error *err);
// Reads a file; also FILE.hdf5 (its dataset neighbors, or the one named behind a colon), and
// with NAME.neighbors.ibin the values of NAME.distances.fbin, if that is there (cuVS' split files).
enum bsw_status bsw_results_read(const char *path, struct bsw_results *out, struct bsw_error *err);
void bsw_results_deinit(struct bsw_results *results);

// NAME.distances.fbin for NAME.neighbors.ibin; 0 for another name.
int bsw_split_values_path(const char *ids_path, char out[BSW_PATH_BYTES]);

#endif
