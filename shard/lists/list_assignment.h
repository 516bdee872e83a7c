// SPDX-License-Identifier: Apache-2.0
// The nearest centroid of every row, exact: what list it belongs to.
//
// Rows are the queries of matrix_scan and centroids, packed once, its documents; with a proven
// margin (centroid_codes.h) it leaves a few centroids a row, and those get exact values
// (kernels/refine). So the answer is that of an exact value for every pair, for every level and
// number of threads; of centroids that are equally near the smaller list wins.
//
// What is near: under l2 and ip the distance of the raw row, under cosine the cosine. Lists of ip
// are cells of distance because a largest product would give the longest centroids nearly all rows,
// and a cell of rows that lie close to each other is what a residual's code wants; a search for
// products then takes the lists whose centroids have the largest products.
//
// Work a row and centroid: dims multiply-adds of bytes. Memory: codes of the centroids, and about
// a megabyte and 130 rows a thread. A device does it in its own way, which gives the same lists.
#ifndef BITSWEEP_SHARD_LIST_ASSIGNMENT_H
#define BITSWEEP_SHARD_LIST_ASSIGNMENT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/codes/metric.h"
#include "common/job/progress.h"
#include "common/rows/vectors.h"

struct bsw_manifest; // common/files/index_manifest.h

// What a row with a fault gets (kernels/encode/prepare_rows.h): not finite, too large, zero under
// cosine.
#define BSW_NO_LIST UINT32_MAX

struct bsw_list_finder;

struct bsw_list_assigner_needs {
    enum bsw_metric metric;
    enum bsw_vector_type type; // of rows
    size_t dims;
    const float *centroids; // [num_lists][dims] finite, not 0 under cosine; borrowed until close
    size_t num_lists;       // 1 .. BSW_NO_LIST - 1
    enum bsw_cpu_level level;
    int num_threads;
    const struct bsw_list_finder *finder; // NULL: here
    size_t finder_rows;                   // of a call of it at most; 0: BSW_FINDER_ROWS
};

#define BSW_FINDER_ROWS ((size_t)65536) // of a call of a finder, at most

// Who finds the nearest centroids elsewhere: the same ones. One tenant: device_assigner.h of
// shard/exact, a room that this one may not include.
struct bsw_list_finder {
    void *context;        // borrowed
    uint64_t least_pairs; // of row and centroid; with fewer opening it does not pay
    // Where this is out of memory, rows are assigned here.
    enum bsw_status (*open)(void *context, const struct bsw_list_assigner_needs *needs,
                            void **state, struct bsw_error *err);
    // rows without faults, and their squared norms. metric: cosine or l2.
    enum bsw_status (*find)(void *state, const void *rows, const double *norms, size_t num_rows,
                            uint32_t *lists, double *keys, struct bsw_error *err);
    void (*close)(void *state);
};
// Takes the finder for so many rows in all, where it pays.
static inline void bsw_list_assigner_take_finder(struct bsw_list_assigner_needs *needs,
                                                 const struct bsw_list_finder *finder,
                                                 uint64_t num_rows)
{
    needs->finder = finder && num_rows * needs->num_lists >= finder->least_pairs ? finder : NULL;
    needs->finder_rows = num_rows < BSW_FINDER_ROWS ? (size_t)num_rows : BSW_FINDER_ROWS;
}

typedef struct bsw_list_assigner bsw_list_assigner;

// The caller closes *out; NULL after an error. A centroid with a fault is BSW_ERROR_BAD_DATA.
enum bsw_status bsw_list_assigner_open(const struct bsw_list_assigner_needs *needs,
                                       bsw_list_assigner **out, struct bsw_error *err);
// What the lists of a manifest need, whose centroids are borrowed, with all OpenMP threads and no
// finder; and an assigner of that. type, dims: of rows.
struct bsw_list_assigner_needs bsw_list_assigner_needs_of(const struct bsw_manifest *manifest,
                                                          enum bsw_vector_type type, size_t dims,
                                                          enum bsw_cpu_level level);
enum bsw_status bsw_list_assigner_open_lists(const struct bsw_manifest *manifest,
                                             enum bsw_vector_type type, size_t dims,
                                             enum bsw_cpu_level level, bsw_list_assigner **out,
                                             struct bsw_error *err);
void bsw_list_assigner_close(bsw_list_assigner **assigner);

// What is known of rows, and what is asked. Arrays [num_rows], borrowed for the call.
struct bsw_list_assignment {
    const void *rows; // dense, of the assigner's type; 4-byte aligned
    size_t num_rows;
    // Lists that may be the nearest, for speed alone: where there are some, most rows should have
    // one. BSW_NO_LIST: none. May be the array of lists. NULL: of no row.
    const uint32_t *guesses;
    uint32_t *lists; // out
    double *keys;    // out: bsw_metric_key of cosine, else of l2; -INFINITY without a list. Or NULL
};
// Not by two threads at once with one assigner: it takes num_threads itself.
enum bsw_status bsw_list_assigner_assign(bsw_list_assigner *assigner,
                                         const struct bsw_list_assignment *assignment,
                                         struct bsw_error *err);

// lists: [num_rows], of rows [first_row, + num_rows) of a source, ids as for bsw_vectors_read. One
// thread reads ahead of the others. Two blocks of some megabytes are held. A stop that was asked
// for ends it between two blocks with BSW_ERROR_STOPPED. progress counts rows; it is begun here.
enum bsw_status bsw_lists_assign(const bsw_vectors *vectors, uint64_t first_row, uint64_t num_rows,
                                 bsw_list_assigner *assigner, struct bsw_progress *progress,
                                 uint32_t *lists, struct bsw_error *err);

#endif
