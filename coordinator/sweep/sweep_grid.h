// SPDX-License-Identifier: Apache-2.0
// The grid of a sweep: lists of values, the points they span, and which of those are worth looking
// at.
#ifndef BITSWEEP_COORDINATOR_SWEEP_GRID_H
#define BITSWEEP_COORDINATOR_SWEEP_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "coordinator/search/search_settings.h"
#include "kernels/table_scan/table_formats.h"

enum { BSW_SWEEP_MAX_VALUES = 32 }; // of an axis
enum { BSW_SWEEP_MAX_CODECS = 6 };
enum { BSW_SWEEP_MAX_POINTS = 10000 }; // of all grids of a sweep, those left out among them

enum bsw_sweep_axis_kind {
    BSW_SWEEP_CODEC,
    BSW_SWEEP_BITS,
    BSW_SWEEP_PARTS, // subspaces of product codes; 0: the usual
    BSW_SWEEP_LISTS, // of the index; 0: none
    BSW_SWEEP_QUERY_BITS,
    BSW_SWEEP_K,
    BSW_SWEEP_OVERSAMPLE,
    BSW_SWEEP_SELECT,
    BSW_SWEEP_EXTRA_DISTANCE, // of histogram selection alone
    BSW_SWEEP_PROBE,          // of indexes with lists alone, as the next; 0: all lists
    BSW_SWEEP_PROBE_RATIO,    // 0: not asked
    BSW_SWEEP_RECALL,         // 0: not asked; in place of the two before
    BSW_SWEEP_TABLE,          // of product codes alone, as the next
    BSW_SWEEP_ENTRIES,
    BSW_SWEEP_RADIUS_SCALE, // of entries within a radius alone, as the next
    BSW_SWEEP_MODE,
    BSW_SWEEP_NUM_AXES
};

// Words of a choice, whole numbers or numbers in the order given.
struct bsw_sweep_axis {
    size_t count;
    double values[BSW_SWEEP_MAX_VALUES]; // a word: its place in the choices
};

struct bsw_sweep_grid {
    struct bsw_sweep_axis axes[BSW_SWEEP_NUM_AXES];
    struct bsw_sweep_axis own_bits[BSW_SWEEP_MAX_CODECS]; // of a codec; empty: as all have them
};

// By the name of the option, which is also that in a plan: "query-bits"; -1: no axis has it.
int bsw_sweep_axis_of(const char *name);

// Replaces the values of an axis by those of text, "1,1.5,4:6" or "xfbq,saq:1:3,6,pq:8": A:B is A,
// A + 1, ... B, and numbers behind the name of a codec are its own bits. Each must be in its range
// or among its words, none there twice: BSW_ERROR_USAGE, the message begins with `before` and the
// axis' name.
enum bsw_status bsw_sweep_grid_set(struct bsw_sweep_grid *grid, enum bsw_sweep_axis_kind axis,
                                   const char *before, const char *text, struct bsw_error *err);

struct bsw_sweep_point {
    const char *codec, *select; // static
    double bits, oversample, probe_ratio, recall;
    uint32_t parts, lists, probe, query_bits;
    uint64_t k, candidates, extra_distance;
    enum bsw_table_choice table;
    enum bsw_entries_choice entries;
    double radius_scale; // of a radius, as mode; 0: of all entries
    const char *mode;    // static; ""
};

// What a point must fit.
struct bsw_sweep_limits {
    uint64_t num_rows, truth_k; // truth_k: neighbours a query that the ground truth has
    uint32_t dims;
    enum bsw_metric metric;
    int is_integer; // rows are uint8 or int8
    // From the rbe model that is given; 0: one is learned for every number of bits.
    double model_bits;
    uint32_t model_query_bits;
};

// So many points left out for one reason.
struct bsw_sweep_skip {
    char reason[128];
    uint64_t num_points;
};

struct bsw_sweep_points {
    struct bsw_sweep_point *points; // [num_points], grid by grid: codec outermost, then bits,
    size_t num_points;              // subspaces, lists, ... as axes stand
    struct bsw_sweep_skip *skips;   // [num_skips]
    size_t num_skips;
};

// A point that several grids have is there once. An axis that a codec or a selection does not know
// counts as one value: rbe has the query bits of its model (7 where one is learned), raw 8 bits, 8
// query bits and oversampling 1, extra distance is 0 but for histogram, subspaces but for product
// codes, probe, ratio and recall but for an index with lists, of which recall stands alone. Lists
// "auto" are as many as encode makes of the rows. bsw_sweep_points_deinit frees, after an error
// too. An axis without values, too many points, and probe or ratio where no grid has lists, are
// BSW_ERROR_USAGE.
enum bsw_status bsw_sweep_grids_expand(const struct bsw_sweep_grid *grids, size_t num_grids,
                                       const struct bsw_sweep_limits *limits,
                                       struct bsw_sweep_points *out, struct bsw_error *err);
void bsw_sweep_points_deinit(struct bsw_sweep_points *points);
// Takes a point out again, as one left out for a reason that only its index tells.
void bsw_sweep_points_skip(struct bsw_sweep_points *points, size_t place, const char *reason);

// ---- plans --------------------------------------------------------------------------------------

// A plan of a sweep: a text file with a grid a line, for points that no single grid has.
//
//   # what to compare                                   a comment; empty lines are skipped, too
//   codec=saq bits=2,3 oversample=1,5                   the values that --codec, --bits, ... take
//   codec=xfbq bits=2 select=histogram extra-distance=0,40
//
// What a line does not name has the values of the command line, or their defaults.

enum { BSW_SWEEP_PLAN_MAX_BYTES = 1 << 20 };

// *grids: [*num_grids], at least one; the caller's to bsw_free, after an error too. What is wrong
// in the file is BSW_ERROR_BAD_DATA naming it and the line.
enum bsw_status bsw_sweep_plan_read(const char *path, const struct bsw_sweep_grid *defaults,
                                    struct bsw_sweep_grid **grids, size_t *num_grids,
                                    struct bsw_error *err);

// The same from text, which ends with a 0 and is cut into words. name: for messages.
enum bsw_status bsw_sweep_plan_parse(const char *name, char *text,
                                     const struct bsw_sweep_grid *defaults,
                                     struct bsw_sweep_grid **grids, size_t *num_grids,
                                     struct bsw_error *err);

#endif
