// SPDX-License-Identifier: Apache-2.0
// What `bench cluster` searches: generated rows and queries, and what codes learn from them. No
// files: every rank generates and codes the shards it is to search.
#ifndef BITSWEEP_BENCH_BENCH_CORPUS_H
#define BITSWEEP_BENCH_BENCH_CORPUS_H

#include "common/base/cpu_level.h"
#include "common/files/index_manifest.h"
#include "common/net/transport.h"

struct bsw_bench_corpus_options {
    const struct bsw_codec *codec; // saq or raw
    uint32_t dims;
    double bits;                // saq
    uint64_t parts;             // of product codes
    uint64_t rows;              // what the code learns from
    uint64_t max_rows, queries; // the source: most rows of a corpus, then the queries
    uint64_t seed;
    enum bsw_cpu_level level;
};

struct bsw_bench_corpus {
    struct bsw_manifest manifest; // its shards are of no use; metric l2; the caller frees it
    uint64_t max_rows, num_queries;
};

// All ranks, which agree. Rank 0 learns, so that all code alike. `batch`: of the last message,
// counted on (common/net/transport.h).
enum bsw_status bsw_bench_corpus_make(const struct bsw_bench_corpus_options *options,
                                      struct bsw_transport *transport, uint64_t *batch,
                                      struct bsw_bench_corpus *out, struct bsw_error *err);

#endif
