// SPDX-License-Identifier: Apache-2.0
// Generated vectors: row i is a function of the seed and i alone, the same bits on every machine.
//
// float32: a component is the exact sum of hashed integers times a power of two (approximately
// Gaussian by the central limit theorem: no libm), added to one of C cluster centres when clusters
// > 0. uint8: the same, shifted and clipped.
// Standard deviation: 1.15 round a centre, 2.31 of the centres; uint8 about 128 with 37, or 41 with
// clusters.
//
// With a spectrum X > 0 the energies of principal components decay as those of real data do: the
// standard deviation of component i = 0, 1, ... is proportional to (i + 1)^-X, round a centre and
// of the centres; the mean energy of a dimension stays as it is. Components are then mixed, by
// Walsh-Hadamard butterflies over the powers of two that dims is the sum of (components are dealt
// to these in turn), so that no dimension stands out much. All in integers; the weights come from
// float64 additions, products, quotients and square roots, which IEEE 754 rounds the same
// everywhere. X = 0.625 resembles SIFT: its first 32, 64, 96 of 128 components hold 0.86, 0.93,
// 0.97 of the energy, those of two sets of real SIFT 0.80 to 0.83, 0.93 to 0.94, 0.98.
#ifndef BITSWEEP_COMMON_SYNTH_H
#define BITSWEEP_COMMON_SYNTH_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"
#include "common/rows/vectors.h"

BSW_C_BEGIN

#define BSW_SYNTH_SPECTRUM_DIMS 4096
#define BSW_SYNTH_MAX_SPECTRUM  4.0

struct bsw_synth {
    uint64_t count;            // rows, 1 .. 2^48
    uint32_t dims;             // 1 .. BSW_MAX_DIMS
    uint64_t seed;             // default 1
    uint32_t clusters;         // 0: none
    enum bsw_vector_type type; // FLOAT32 (default) or UINT8
    uint32_t spectrum;         // X in eighths, 0 .. 32; 0: none. dims up to BSW_SYNTH_SPECTRUM_DIMS
};

// Parses what follows "synth:", e.g. "count=1G,dims=96,seed=1": count and dims must be there; sizes
// are numbers of number_parse.h. An unknown or repeated word, a missing or bad value:
// BSW_ERROR_USAGE naming it.
enum bsw_status bsw_synth_parse(const char *text, struct bsw_synth *out, struct bsw_error *err);

// X as a number to eighths: BSW_ERROR_USAGE unless it is a multiple of 0.125 within the range, and
// 0 where dims are above BSW_SYNTH_SPECTRUM_DIMS. `text` is for the message.
enum bsw_status bsw_synth_set_spectrum(struct bsw_synth *synth, double x, const char *text,
                                       struct bsw_error *err);

// Rows [first_row, first_row + num_rows) as [num_rows][dims] of the type. They may lie beyond
// count, up to 2^48: queries made so share the rows' clusters.
void bsw_synth_rows(const struct bsw_synth *synth, uint64_t first_row, size_t num_rows, void *out);

BSW_C_END
#endif
