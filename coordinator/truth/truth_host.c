// SPDX-License-Identifier: Apache-2.0
// groundtruth on CPUs: the rank's rows stream past all queries once, and a journal keeps the lists
// between two blocks.
#include "common/base/memory.h"
#include "common/job/stop_signal.h"
#include "coordinator/truth/truth_backend.h"

// Ranks meet every so many bytes: an error of one ends the job soon, and none waits long at the
// end.
#define BYTES_TO_AGREE ((uint64_t)256 << 20)
// Candidates of all ranks that are merged at once: 256 MiB.
#define MERGE_CANDIDATES ((uint64_t)1 << 24)

static enum bsw_status scan_block(const struct bsw_truth_pass *pass, bsw_neighbour_scan *scan,
                                  struct bsw_error *err)
{
    if (bsw_stop_is_asked()) return bsw_stop_fail(err);
    BSW_TRY(bsw_neighbour_scan_next(scan, err));
    return pass->journal->journal ? bsw_truth_journal_put(pass->journal, err) : BSW_OK;
}

// All blocks of this rank. Ranks have as many rounds, whose parts differ by one row at most; those
// of a rank that resumes end early.
static enum bsw_status scan_rows(const struct bsw_truth_pass *pass, bsw_neighbour_scan *scan,
                                 struct bsw_error *err)
{
    struct bsw_transport *transport = pass->merge->transport;
    const struct bsw_neighbour_needs *needs = &scan->needs;
    uint64_t ranks = (uint64_t)transport->num_ranks, block = needs->block_rows;
    uint64_t most_rows = (pass->num_rows + ranks - 1) / ranks;
    uint64_t rounds = (most_rows + block - 1) / block;
    uint64_t to_agree = BYTES_TO_AGREE / (block * bsw_vectors_row_bytes(needs->base)) + 1;
    enum bsw_status status = BSW_OK;
    for (uint64_t round = 0; round < rounds; round++) {
        if (status == BSW_OK) status = scan_block(pass, scan, err);
        uint64_t done = scan->next_row * ranks;
        bsw_progress_update(pass->settings->progress, done);
        bsw_events_count(pass->settings->events, done < pass->num_rows ? done : pass->num_rows,
                         pass->num_rows);
        if (round % to_agree == to_agree - 1 || round + 1 == rounds)
            BSW_TRY(bsw_transport_agree(transport, status, err));
    }
    return BSW_OK;
}

static enum bsw_status merge_answers(const struct bsw_truth_pass *pass, bsw_neighbour_scan *scan,
                                     struct bsw_error *err)
{
    uint64_t num_queries = scan->num_queries;
    uint64_t group =
        MERGE_CANDIDATES / ((uint64_t)pass->merge->transport->num_ranks * pass->merge->k);
    if (group < 1) group = 1;
    for (uint64_t first = 0; first < num_queries; first += group) {
        uint64_t left = num_queries - first;
        size_t count = (size_t)(left < group ? left : group);
        bsw_neighbour_scan_finish(scan, (size_t)first, count);
        BSW_TRY(bsw_truth_merge_group(pass->merge, first, count, scan->lists + first, err));
    }
    return BSW_OK;
}

static enum bsw_status run_host(void *state, const struct bsw_truth_pass *pass,
                                struct bsw_error *err)
{
    bsw_neighbour_scan *scan = state;
    BSW_TRY(scan_rows(pass, scan, err));
    bsw_progress_finish(pass->settings->progress);
    return merge_answers(pass, scan, err);
}

static void close_host(void *state)
{
    if (state) bsw_neighbour_scan_close(state);
    bsw_free(&state);
}

static enum bsw_status open_host(const struct bsw_neighbour_needs *needs, bsw_device *device,
                                 void **state, struct bsw_error *err)
{
    bsw_neighbour_scan *scan;
    (void)device;
    *state = NULL;
    BSW_TRY(bsw_allocate_zero(&scan, 1, sizeof *scan, "scan", err));
    enum bsw_status status = bsw_neighbour_scan_open(needs, scan, err);
    if (status != BSW_OK)
        bsw_free(&scan);
    else
        *state = scan;
    return status;
}

static bsw_neighbour_scan *scan_of(void *state)
{
    return state;
}

static uint64_t total(const void *state, uint64_t num_rows)
{
    (void)state;
    return num_rows;
}

static void tell(const void *state, struct bsw_truth_stats *out)
{
    const bsw_neighbour_scan *scan = state;
    out->num_dropped_rows = scan->dropped_rows;
    out->memory_bytes = scan->bytes;
    out->is_integer = scan->tiles.is_whole;
}

const struct bsw_truth_backend bsw_truth_host = {
    .open = open_host,
    .close = close_host,
    .scan = scan_of,
    .total = total,
    .run = run_host,
    .tell = tell,
};
