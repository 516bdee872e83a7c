// SPDX-License-Identifier: Apache-2.0
// Rows that a caller of the library has in memory, as a source of vectors: lent under a name, they
// are opened by it as a file is (vectors.h), so that no job knows where its rows come from.
//
// Lent rows belong to the thread that lends them and are seen by it alone: names are no secret, two
// threads may use the same one, and nobody on a command line can name what was never lent. Jobs
// open their sources in the thread that called them.
#ifndef BITSWEEP_COMMON_MEMORY_ROWS_H
#define BITSWEEP_COMMON_MEMORY_ROWS_H

#include "common/base/status.h"
#include "common/rows/vectors.h"

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
};

// Shape and pointer are checked: BSW_ERROR_USAGE. On success the calling thread takes them back,
// last lent first.
enum bsw_status bsw_memory_rows_lend(struct bsw_memory_rows *rows, struct bsw_error *err);
// Sources opened by their name must be closed. Accepts rows that were not lent.
void bsw_memory_rows_take_back(struct bsw_memory_rows *rows);

// Those of the calling thread with this name; BSW_ERROR_IO where there are none.
enum bsw_status bsw_memory_rows_find(const char *name, const struct bsw_memory_rows **out,
                                     struct bsw_error *err);

#endif
