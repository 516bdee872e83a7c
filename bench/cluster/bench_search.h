// SPDX-License-Identifier: Apache-2.0
// One point of `bench cluster`: part of the corpus coded on some ranks, and searches of it by the
// code that `search` runs, timed pass by pass.
#ifndef BITSWEEP_BENCH_BENCH_SEARCH_H
#define BITSWEEP_BENCH_BENCH_SEARCH_H

#include "bench/cluster/bench_corpus.h"
#include "bench/report/rank_group.h"
#include "coordinator/job/job_events.h"
#include "coordinator/search/search.h"

struct bsw_bench_search_options {
    uint64_t k, batch; // batch: at most
    double oversample;
    uint32_t query_bits; // not of codec raw
    enum bsw_cpu_level level;
    int num_threads;
    const struct bsw_device_choice *device; // borrowed; NULL: CPUs
    enum bsw_link_choice link;
};

// Open on the members of a group until closed; {0} is closed.
struct bsw_bench_point {
    struct bsw_rank_group *group; // borrowed
    struct bsw_manifest manifest;
    struct bsw_search search;
    uint64_t first_query; // row of the source
    size_t full_batch;    // that of the options; 0: not known yet
};

// A search of the point; all members say the same.
struct bsw_bench_variant {
    int is_ladder;        // else gather; not asked where devices merge
    int is_reference;     // plain C kernels over bit planes, or bytes of raw, all rows
    uint64_t num_queries; // the first so many
    uint64_t batch;       // 0: that of the options
    uint64_t warmup, repeat;
};

// What rank 0 saw of the pass whose time is the median; of an even number the shorter of the two.
struct bsw_bench_pass {
    double seconds;
    size_t batch;
    const char *merge; // its name
    struct bsw_search_times times;
    struct bsw_exchange_cost exchanges[BSW_NUM_EXCHANGES];
    double scan_seconds, refine_seconds; // of rank 0 alone
    uint64_t scanned_bytes;              // likewise
    uint64_t num_survivors;              // of all ranks
};

// Answers of rank 0; {0} is none.
struct bsw_bench_answers {
    struct bsw_results first; // of the first pass
    int64_t num_changed;      // answers of later passes, warm-up included, that were other bytes
};
void bsw_bench_answers_deinit(struct bsw_bench_answers *answers);
// Queries among those of `answers` whose ids or values are not the bytes of `expected`, which has
// as many or more.
int64_t bsw_bench_answers_differ(const struct bsw_results *answers,
                                 const struct bsw_results *expected);

// The members, which agree: codes the first `rows` in `shards` shards. shards >= 1, rows >= shards
// and k. What the point had is to be closed.
enum bsw_status bsw_bench_point_open(struct bsw_bench_point *point, struct bsw_rank_group *group,
                                     const struct bsw_bench_corpus *corpus, uint64_t rows,
                                     uint64_t shards,
                                     const struct bsw_bench_search_options *options,
                                     struct bsw_error *err);
void bsw_bench_point_close(struct bsw_bench_point *point);

// The members, which agree. pass and answers (replaced) are rank 0's.
enum bsw_status bsw_bench_point_run(struct bsw_bench_point *point,
                                    const struct bsw_bench_variant *variant,
                                    struct bsw_bench_pass *pass, struct bsw_bench_answers *answers,
                                    struct bsw_error *err);

// Entries of candidate lists that rank 0 merges in a pass of `gather`, by threshold selection.
uint64_t bsw_bench_num_gathered(const struct bsw_bench_point *point, uint64_t num_queries);

#endif
