// SPDX-License-Identifier: Apache-2.0
// gnuplot, run to its end: no shell between, so that names are what they are.
#ifndef BITSWEEP_COORDINATOR_GNUPLOT_H
#define BITSWEEP_COORDINATOR_GNUPLOT_H

#include "common/base/status.h"

struct bsw_gnuplot {
    const char *const *arguments; // NULL at the end; [0] is "gnuplot"
    const char *folder;           // to run in; NULL: here
    const char *in;               // file that it reads as stdin; NULL: nothing
    const char *out;              // file that gets its stdout, replaced; NULL: as stderr
    const char *said;             // the same of its stderr; NULL: ours
};

// *is_drawn 0: gnuplot is missing. One that fails is BSW_ERROR_IO. It is killed when the calling
// thread ends, however that comes about.
enum bsw_status bsw_gnuplot_run(const struct bsw_gnuplot *gnuplot, int *is_drawn,
                                struct bsw_error *err);

#endif
