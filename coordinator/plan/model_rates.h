// SPDX-License-Identifier: Apache-2.0
// Rates for the cluster model: from a file of measurements, for the code they were measured on or
// another one, and the limits of devices, which were computed.
//
// The file is JSON with an object "rates", as `bench cluster --json` prints it: keys named as the
// fields of struct bsw_model_rates, "cores" and "ranks" of the measurement, and an object "code":
// codec, dims, bits, query_bits, batch, k, oversample, scan. Of "code" the first five must be
// there, of the rates one; other keys are ignored. Codes with tables have bits of a subspace, 4 or
// 8, and "subspaces" in place of query_bits.
#ifndef BITSWEEP_COORDINATOR_MODEL_RATES_H
#define BITSWEEP_COORDINATOR_MODEL_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/files/index_manifest.h"
#include "coordinator/plan/cluster_model.h"
#include "shard/host/shard_scan.h"

// The numbers of struct bsw_model_rates, one by one.
struct bsw_rate {
    const char *key;          // in files of rates and in reports
    const char *phase, *unit; // of an amount a second: "merge", "candidates/s"; else NULL
    const char *option;       // of plan, of a phase that is not counted where its rate is not known
    size_t offset;
};
#define BSW_NUM_RATES 9
extern const struct bsw_rate bsw_rates[BSW_NUM_RATES];

double bsw_rate_get(const struct bsw_model_rates *rates, size_t rate);
void bsw_rate_set(struct bsw_model_rates *rates, size_t rate, double value);

// What was searched when rates were measured, or is to be. 0: not known.
struct bsw_rates_code {
    const struct bsw_codec *codec;
    double dims, bits, query_bits; // of codes; bits on average; with tables of rows, of a part
    double parts;                  // with tables; else 0
    double batch, keep;            // keep: L
    enum bsw_scan_kind scan;       // AUTO: not known, or whatever the tables of tuning choose
};

struct bsw_measured_rates {
    struct bsw_model_rates rates;
    uint64_t cores;             // of the host; 0: not known
    struct bsw_rates_code code; // codec NULL: not known
};

// A missing file is BSW_ERROR_IO; what is no JSON, has no rates, or numbers that cannot be (not
// above 0, a share above 1, half a dimension) is BSW_ERROR_BAD_DATA.
enum bsw_status bsw_model_rates_read(const char *path, struct bsw_measured_rates *out,
                                     struct bsw_error *err);

// What was done to rates for another code: measured * factor; 0: nothing.
struct bsw_rates_scaling {
    struct bsw_rates_code from, to;
    struct bsw_model_rates factors;
    // Guesses behind the factors.
    int is_progressive;             // the same share of rows goes on to the second stage
    int is_other_codec;             // choosing candidates takes as long a row
    enum bsw_scan_kind scan_kind;   // as measured, a matrix scan or one over planes, ...
    enum bsw_scan_kind wanted_kind; // ... and what a batch of the code takes
};

// The rates for other codes and batches, from those of `measured`, by multiply-adds and bytes
// (bench/scaling.md); scans as measured even where a batch of the code would take the other way.
// Scans by tables go with subspaces; rates of other codes, or of another number of bits, say
// nothing of them: BSW_ERROR_USAGE, too. All others stay: bytes a second of codes are those of any
// code. level: for the tables that tell which scan a batch takes. Rates of the other way because of
// the batch, not of the code, say nothing about it: BSW_ERROR_USAGE with the reason, naming `path`.
enum bsw_status bsw_model_rates_convert(const char *path, const struct bsw_measured_rates *measured,
                                        const struct bsw_rates_code *code, enum bsw_cpu_level level,
                                        struct bsw_model_rates *out,
                                        struct bsw_rates_scaling *scaling, struct bsw_error *err);

// A device's limits, computed from its data sheet and not measured: no scan is faster.
struct bsw_device_limits {
    const char *name;
    double memory_bytes;
    double bytes_per_second;         // of its memory
    double multiply_adds_per_second; // int8, dense
};
// NULL: none of that name.
const struct bsw_device_limits *bsw_device_limits_of(const char *name);
// Replaces the rates of scans. padded_dims 0: of codes with tables, for which bytes alone tell.
void bsw_device_limits_apply(const struct bsw_device_limits *limits, double padded_dims,
                             struct bsw_model_rates *rates);

#endif
