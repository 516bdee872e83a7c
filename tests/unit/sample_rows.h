// SPDX-License-Identifier: Apache-2.0
// Samples and what training sees of them; whoever includes it gets an `err`.
#ifndef BITSWEEP_TESTS_SAMPLE_ROWS_H
#define BITSWEEP_TESTS_SAMPLE_ROWS_H

#include <stdint.h>

#include "shard/codecs/sample.h"
#include "small_index.h"

static struct bsw_error err;

static inline bsw_vectors *open_vectors(const char *source, uint64_t first, uint64_t last)
{
    bsw_vectors *vectors;
    struct bsw_row_range range = {first, last ? last : UINT64_MAX};
    assert_ok(bsw_vectors_open(source, range, &vectors, &err), &err);
    return vectors;
}

static inline struct bsw_sample make_sample(const bsw_vectors *vectors, enum bsw_metric metric,
                                            enum bsw_cpu_level level)
{
    struct bsw_sample sample;
    assert_ok(bsw_sample_create(vectors, metric, level, &sample, &err), &err);
    return sample;
}

// A row of the sample times its factor, in float32: what training sees.
struct prepared {
    float *rows; // [num_rows][dims]
    size_t num_rows, dims;
};

static inline struct prepared take_sample(struct bsw_sample *sample)
{
    struct prepared all;
    const float *rows;
    float factors[BSW_SAMPLE_TILE];
    size_t num_rows;
    all.num_rows = 0;
    all.dims = bsw_vectors_dims(sample->vectors);
    all.rows = (float *)allocate_or_fail((size_t)sample->num_rows * all.dims, sizeof *all.rows);
    bsw_sample_rewind(sample, "test");
    for (;;) {
        assert_ok(bsw_sample_next(sample, &rows, factors, &num_rows, &err), &err);
        if (num_rows == 0) return all;
        for (size_t i = 0; i < num_rows * all.dims; i++)
            all.rows[all.num_rows * all.dims + i] = rows[i] * factors[i / all.dims];
        all.num_rows += num_rows;
    }
}

#endif
