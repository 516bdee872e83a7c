// SPDX-License-Identifier: Apache-2.0
// A plan of a sweep: a text file with a grid a line, for points that no single grid has.
//
//   # what to compare                                   a comment; empty lines are skipped, too
//   codec=saq bits=2,3 oversample=1,5                   the values that --codec, --bits, ... take
//   codec=xfbq bits=2 select=histogram extra-distance=0,40
//
// What a line does not name has the values of the command line, or their defaults.
#ifndef BITSWEEP_COORDINATOR_SWEEP_PLAN_H
#define BITSWEEP_COORDINATOR_SWEEP_PLAN_H

#include "coordinator/sweep/sweep_grid.h"

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
