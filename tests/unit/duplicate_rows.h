// SPDX-License-Identifier: Apache-2.0
// Rows of which each comes several times, scattered and some of them bad, and queries of their
// kind: equal keys at every cut of a list.
#ifndef BITSWEEP_TESTS_UNIT_DUPLICATE_ROWS_H
#define BITSWEEP_TESTS_UNIT_DUPLICATE_ROWS_H

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/rows/synth.h"
#include "small_index.h"
#include "temporary_folder.h"

enum { DUPLICATE_DIMS = 40 };

// Rows in 12 clusters.
static inline struct bsw_synth distinct_rows(uint64_t num_distinct)
{
    struct bsw_synth synth;
    memset(&synth, 0, sizeof synth);
    synth.count = num_distinct;
    synth.dims = DUPLICATE_DIMS;
    synth.seed = 1;
    synth.clusters = 12;
    return synth;
}

static inline int is_bad_row(uint64_t row, uint64_t num_rows)
{
    return row % 61 == 5 || row == num_rows - 1;
}

// Writes duplicates.fbin into the temporary folder.
static inline void write_duplicates(uint64_t num_rows, uint64_t num_distinct)
{
    const struct bsw_synth synth = distinct_rows(num_distinct);
    float *rows = (float *)allocate_or_fail(num_rows * DUPLICATE_DIMS, sizeof *rows);
    for (uint64_t row = 0; row < num_rows; row++) {
        float *vector = rows + row * DUPLICATE_DIMS;
        bsw_synth_rows(&synth, bsw_hash(row) % num_distinct, 1, vector);
        if (is_bad_row(row, num_rows)) vector[row % DUPLICATE_DIMS] = NAN;
    }
    write_fbin(path_of("duplicates.fbin"), rows, (uint32_t)num_rows, DUPLICATE_DIMS);
    bsw_free(&rows);
}

// [num_queries][DUPLICATE_DIMS], of the same clusters; bsw_free frees.
static inline float *make_queries(uint64_t num_distinct, size_t num_queries)
{
    const struct bsw_synth synth = distinct_rows(num_distinct);
    float *vectors = (float *)allocate_or_fail(num_queries * DUPLICATE_DIMS, sizeof *vectors);
    bsw_synth_rows(&synth, num_distinct, num_queries, vectors);
    return vectors;
}

// An index of duplicates.fbin; 3 bits, saq in two segments.
static inline struct small_index duplicates(const struct bsw_codec *codec, enum bsw_metric metric)
{
    struct small_index what;
    memset(&what, 0, sizeof what);
    what.source = path_of("duplicates.fbin");
    what.codec = codec;
    what.metric = metric;
    what.bits = 3;
    what.segments = "33x3,7x2";
    what.drops_bad_rows = 1;
    return what;
}

#endif
