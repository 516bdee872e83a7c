// Where the answers of a search go, and what else is told on the way. A sink of answers alone
// (coordinator/job/memory_answers.h) is one; result_sink.h is a file that can be resumed.
//
// All ranks give one, with the same functions. Apart from open, a sink of another rank than 0 is
// not called.
#ifndef BITSWEEP_COORDINATOR_SEARCH_SINK_H
#define BITSWEEP_COORDINATOR_SEARCH_SINK_H

#include "coordinator/job/answer_sink.h"
#include "coordinator/search/batch_pipeline.h"

struct bsw_search;

// What of all queries is left to do.
struct bsw_search_parts {
    const struct bsw_query_part *parts; // in order and without overlap, borrowed; NULL: all
    size_t num_parts;
    uint64_t num_done; // queries that are in none of them
};

// What a search tells whom its answers go to. answers.take is necessary and gets those of the last
// pass, in order, possibly from the background thread; any other function may be NULL.
struct bsw_search_sink {
    struct bsw_answer_sink answers;
    void *context; // of the functions below
    // Once the queries are known and good, before any shard is loaded: rank 0, and when that went
    // well the others. *out, rank 0's, is {0}.
    enum bsw_status (*open)(void *context, const struct bsw_search *search,
                            struct bsw_search_parts *out, struct bsw_error *err);
    // As struct bsw_check_schedule's.
    void (*note_check)(void *context, int is_passed);
    // Queries of all passes that were answered, from any thread, and how many that will be.
    void (*note_progress)(void *context, uint64_t done, uint64_t total);
    // All answers were taken, the last self-check has passed on all ranks, statistics are there.
    enum bsw_status (*finish)(void *context, const struct bsw_search *search,
                              struct bsw_error *err);
};

#endif
