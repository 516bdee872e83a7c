// SPDX-License-Identifier: Apache-2.0
// One point of `bench cluster`: part of the corpus coded on some ranks, and searches of it by the
// code that `search` runs, timed pass by pass.
#ifndef BITSWEEP_BENCH_BENCH_SEARCH_H
#define BITSWEEP_BENCH_BENCH_SEARCH_H

#include "common/base/cpu_level.h"
#include "common/files/index_manifest.h"
#include "common/net/transport.h"
#include "coordinator/job/job_events.h"
#include "coordinator/search/search.h"

// The first ranks of a job as a job of their own, while the others wait: so that one job can
// measure 1, 2, 4, ... ranks, on the hosts and with the connections it has.
//
// All ranks: begin, then the members their work, then end. A rank that waits looks for a message
// several thousand times a second, as all waiting ranks do: on a host with fewer cores than ranks
// that costs the members some of their time.

struct bsw_rank_group {
    bsw_transport *whole; // borrowed; not to be used between begin and end
    bsw_transport ranks;  // the members' own; what it says of ranks on this host is of all ranks
    // Number of the last message, alike on all ranks outside and on all members inside. Numbers on
    // a transport never fall: who sends messages counts on from here, and leaves the last one here.
    uint64_t batch;
    uint64_t first_batch;
};

// num_ranks: 1 .. those of the whole.
void bsw_rank_group_begin(struct bsw_rank_group *group, int num_ranks);
static inline int bsw_rank_group_is_member(const struct bsw_rank_group *group)
{
    return group->whole->rank < group->ranks.num_ranks;
}

// status, err: how a member's work went, on which members have agreed; ignored of others. All ranks
// return the same.
enum bsw_status bsw_rank_group_end(struct bsw_rank_group *group, enum bsw_status status,
                                   struct bsw_error *err);

// What `bench cluster` searches: generated rows and queries, and what codes learn from them. No
// files: every rank generates and codes the shards it is to search.

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
