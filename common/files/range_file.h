// SPDX-License-Identifier: Apache-2.0
// Results of range searches, of which each query has as many rows as there are: big-ann's files of
// true neighbours within a radius.
//
// uint32 num_queries, uint32 rows in all, then uint32 counts [num_queries], ids (int32) and values
// (float32) of one query after the other, best first. The form of 64 bits has uint64 and int64 in
// their place; it is written where ids or the number of rows pass 2^31 - 1, and told by its size.
// Values are those of result_file.h.
#ifndef BITSWEEP_COMMON_RANGE_FILE_H
#define BITSWEEP_COMMON_RANGE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

// A file on its way. What is put lies in files without a name until the counts of all queries are
// known: in memory are 8 bytes a query.
typedef struct bsw_range_writer bsw_range_writer;

// An existing file is BSW_ERROR_USAGE unless force.
enum bsw_status bsw_range_writer_create(const char *path, uint64_t num_queries, int force,
                                        bsw_range_writer **out, struct bsw_error *err);
// The next queries: query i has places [lims[i], lims[i + 1]) of ids and values, lims[0] is 0.
enum bsw_status bsw_range_writer_put(bsw_range_writer *writer, size_t num_queries,
                                     const uint64_t *lims, const int64_t *ids, const float *values,
                                     struct bsw_error *err);
// Once all queries were put: the file is whole, and gets its name.
enum bsw_status bsw_range_writer_finish(bsw_range_writer *writer, struct bsw_error *err);
// Removes what was not finished; nulls the pointer; accepts NULL inside.
void bsw_range_writer_destroy(bsw_range_writer **writer);

// A whole file in memory: query q has places [lims[q], lims[q + 1]).
struct bsw_ranges {
    uint64_t num_queries;
    uint64_t *lims; // [num_queries + 1]
    int64_t *ids;
    float *values;
};
// Every size is checked before anything is allocated. An id below 0 or a NaN value is
// BSW_ERROR_BAD_DATA. bsw_ranges_deinit frees.
enum bsw_status bsw_ranges_parse(const char *name, const void *data, size_t bytes,
                                 struct bsw_ranges *out, struct bsw_error *err);
enum bsw_status bsw_ranges_read(const char *path, struct bsw_ranges *out, struct bsw_error *err);
void bsw_ranges_deinit(struct bsw_ranges *ranges);

#endif
