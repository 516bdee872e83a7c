// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_lists.h"

#include <string.h>

#include "common/codes/code_layout.h"
#include "common/device/device_phase.h"
#include "kernels/device_scan/device_tuning.h"

// A sample gives limits only if it holds some rows more than are kept.
#define SAMPLE_ROWS_A_KEPT 2
// An overflow costs a segment; more than so many standard deviations are hardly ever seen. Rows
// that are neighbours in a file are often alike, so that they reach a limit some at a time.
#define SIGMAS 8.0
#define ALIKE  8.0
// Segments on their way at once: a driver's queue that is full would keep the host waiting in it.
#define MOST_AHEAD 64

void bsw_device_list_run_begin(struct bsw_device_list_run *run)
{
    run->allowed = BSW_MOST_SEGMENT_BUNDLES;
    run->seen = run->most = run->done = 0;
    run->scanned = run->num_samples = run->num_segments = run->num_overflows = run->num_waits = 0;
    run->num_shorts = run->hits = 0;
    run->is_sorted = 0;
}

// ---- the length of a segment ----

// Whether the lists have room for what so many bundles are expected to give. The limit is a matter
// of chance too, hence the second part of the variance.
static int has_room(const struct bsw_device_list_run *run, size_t bundles)
{
    double rows = (double)(bundles * BSW_BUNDLE_ROWS), keep = (double)run->keep;
    double room = (double)(run->lists.capacity - run->most);
    if (rows <= room) return 1;
    if (run->seen <= run->keep) return 0; // all rows may pass
    double expected = rows * keep / (double)run->seen, spare = room - expected;
    double variance = ALIKE * (expected + expected * expected / keep);
    return spare > 0 && spare * spare >= SIGMAS * SIGMAS * variance;
}

// At least one bundle, of `left`.
static size_t next_segment(const struct bsw_device_list_run *run, size_t left)
{
    size_t low = 1, high = run->allowed < left ? run->allowed : left;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (has_room(run, middle))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// After so many bundles that did not overflow: slowly back to what the model says.
static void grow(struct bsw_device_list_run *run, size_t count)
{
    size_t rows = run->done * BSW_BUNDLE_ROWS;
    if (run->seen < rows) run->seen = rows;
    if (run->allowed < 2 * count) run->allowed = 2 * count;
    if (run->allowed > BSW_MOST_SEGMENT_BUNDLES) run->allowed = BSW_MOST_SEGMENT_BUNDLES;
}

// ---- one segment ----

// The counts as they are now; *most is the largest.
static enum bsw_status fetch_counts(struct bsw_device_list_run *run, uint32_t *most,
                                    struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SCAN);
    uint32_t num_queries = run->lists.num_queries;
    *most = 0;
    BSW_TRY(bsw_device_download(run->device, run->queue, run->fetched, run->lists.counts,
                                num_queries * sizeof(uint32_t), err));
    run->num_waits++;
    BSW_TRY(bsw_device_wait(run->device, run->queue, "scan", err));
    for (uint32_t q = 0; q < num_queries; q++)
        *most = run->fetched[q] > *most ? run->fetched[q] : *most;
    return BSW_OK;
}

// The best of every list, once one is full; the counts on the host become those on the device.
static enum bsw_status cut_lists(struct bsw_device_list_run *run, uint32_t most,
                                 struct bsw_error *err)
{
    uint32_t keep = (uint32_t)run->keep;
    run->most = most < keep ? most : keep;
    for (uint32_t q = 0; q < run->lists.num_queries; q++)
        run->counts[q] = run->fetched[q] < keep ? run->fetched[q] : keep;
    if (most < keep) return BSW_OK;
    BSW_DEVICE_PHASE(CUT);
    bsw_stream stream = bsw_device_stream(run->device, run->queue);
    int code = run->exact ? bsw_device_exact_cut(run->exact, keep, stream)
                          : bsw_device_cut(&run->lists, keep, stream);
    return bsw_device_launched(run->device, code, "cut", err);
}

// As if the segment had not been scanned, and the next one shorter.
static enum bsw_status step_back(struct bsw_device_list_run *run, size_t count,
                                 struct bsw_error *err)
{
    if (count == 1) {
        return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                        "%s: more candidates of %zu rows than a list has room for",
                        bsw_device_label(run->device), (size_t)BSW_BUNDLE_ROWS);
    }
    run->num_overflows++;
    run->allowed = count / 2;
    return bsw_device_upload(run->device, run->queue, run->lists.counts, run->counts,
                             run->lists.num_queries * sizeof(uint32_t), err);
}

// So many bundles, far apart.
static struct bsw_device_part sample_of(size_t num_bundles, size_t count)
{
    size_t step = num_bundles / count;
    return (struct bsw_device_part){(uint32_t)(step / 2), (uint32_t)(count * step), (uint32_t)step};
}

// First limits, where there are so many lists full of rows that a sample pays; it costs no more
// than a part of the scan (device_tuning.h). The lists are empty again. The bundles hold no more
// rows than a list, so nothing can overflow, and nothing need be waited for.
static enum bsw_status take_sample(struct bsw_device_list_run *run, size_t num_bundles,
                                   bsw_device_scan_fn scan, void *context, struct bsw_error *err)
{
    const struct bsw_device_tuning *tuning = bsw_device_tuning_current();
    size_t count = run->lists.capacity / BSW_BUNDLE_ROWS, most = num_bundles / tuning->sample_part;
    if (num_bundles < tuning->sample_lists * count) return BSW_OK;
    if (count > most) count = most;
    if (count == 0 || count * BSW_BUNDLE_ROWS < SAMPLE_ROWS_A_KEPT * run->keep) return BSW_OK;
    const struct bsw_device_part part = sample_of(num_bundles, count);
    BSW_TRY(scan(context, &part, &run->lists, err));
    BSW_DEVICE_PHASE(CUT);
    bsw_stream stream = bsw_device_stream(run->device, run->queue);
    int code = run->exact ? bsw_device_exact_limit(run->exact, (uint32_t)run->keep, stream)
                          : bsw_device_limit(&run->lists, (uint32_t)run->keep, stream);
    run->seen = count * BSW_BUNDLE_ROWS;
    run->scanned += count;
    run->num_samples++;
    return bsw_device_launched(run->device, code, "limits", err);
}

static enum bsw_status scan_segment(struct bsw_device_list_run *run, size_t first, size_t count,
                                    bsw_device_scan_fn scan, void *context, struct bsw_error *err)
{
    const struct bsw_device_part part = {(uint32_t)first, (uint32_t)(first + count), 1};
    uint32_t most;
    BSW_TRY(scan(context, &part, &run->lists, err));
    run->scanned += count;
    BSW_TRY(fetch_counts(run, &most, err));
    if (most > run->lists.capacity) return step_back(run, count, err);
    BSW_TRY(cut_lists(run, most, err));
    run->done += count;
    run->num_segments++;
    grow(run, count);
    return BSW_OK;
}

enum bsw_status bsw_device_list_run_scan(struct bsw_device_list_run *run, size_t num_bundles,
                                         bsw_device_scan_fn scan, void *context,
                                         struct bsw_error *err)
{
    size_t before = run->done;
    if (run->done == 0 && run->seen == 0)
        BSW_TRY(take_sample(run, num_bundles, scan, context, err));
    while (run->done - before < num_bundles) {
        size_t first = run->done - before;
        size_t count = next_segment(run, num_bundles - first);
        BSW_TRY(scan_segment(run, first, count, scan, context, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_device_list_run_parts(struct bsw_device_list_run *run, size_t num_parts,
                                          bsw_device_scan_fn scan, void *context,
                                          struct bsw_error *err)
{
    size_t before = run->done;
    run->allowed = num_parts;
    while (run->done - before < num_parts) {
        size_t first = run->done - before, left = num_parts - first;
        BSW_TRY(scan_segment(run, first, run->allowed < left ? run->allowed : left, scan, context,
                             err));
    }
    return BSW_OK;
}

// A segment of so many bundles and its cut.
static enum bsw_status queue_segment(struct bsw_device_list_run *run, size_t count,
                                     bsw_device_scan_fn scan, void *context, struct bsw_error *err)
{
    const struct bsw_device_part part = {(uint32_t)run->done, (uint32_t)(run->done + count), 1};
    BSW_TRY(scan(context, &part, &run->lists, err));
    BSW_DEVICE_PHASE(CUT);
    int code = bsw_device_cut(&run->lists, (uint32_t)run->keep,
                              bsw_device_stream(run->device, run->queue));
    run->scanned += count;
    run->done += count;
    run->most = run->keep;
    run->num_segments++;
    grow(run, count);
    return bsw_device_launched(run->device, code, "cut", err);
}

static enum bsw_status queue_segments(struct bsw_device_list_run *run, size_t num_bundles,
                                      bsw_device_scan_fn scan, void *context, struct bsw_error *err)
{
    BSW_TRY(take_sample(run, num_bundles, scan, context, err));
    while (run->done < num_bundles) {
        size_t count = next_segment(run, num_bundles - run->done);
        if (run->num_segments % MOST_AHEAD == MOST_AHEAD - 1) {
            run->num_waits++;
            BSW_TRY(bsw_device_wait(run->device, run->queue, "scan", err));
        }
        BSW_TRY(queue_segment(run, count, scan, context, err));
    }
    return BSW_OK;
}

// ---- by levels ----

static enum bsw_status queue_level(struct bsw_device_list_run *run, size_t num_bundles,
                                   const struct bsw_device_level *level, bsw_device_scan_fn scan,
                                   void *context, struct bsw_error *err)
{
    const struct bsw_device_part part = sample_of(num_bundles, level->bundles);
    const struct bsw_device_rank rank = {.rank = level->rank,
                                         .is_sure = level->rank >= run->keep,
                                         .is_first = run->num_samples == 0};
    BSW_TRY(scan(context, &part, &run->lists, err));
    BSW_DEVICE_PHASE(CUT);
    run->scanned += level->bundles;
    run->num_samples++;
    int code =
        bsw_device_rank_limit(&run->lists, &rank, bsw_device_stream(run->device, run->queue));
    return bsw_device_launched(run->device, code, "limits", err);
}

// Everything by one limit a query, and the last step.
static enum bsw_status queue_rest(struct bsw_device_list_run *run, size_t num_bundles,
                                  bsw_device_scan_fn scan, void *context, struct bsw_error *err)
{
    const struct bsw_device_part all = {0, (uint32_t)num_bundles, 1};
    BSW_TRY(scan(context, &all, &run->lists, err));
    BSW_DEVICE_PHASE(SORT);
    run->scanned += num_bundles;
    run->done += num_bundles;
    run->num_segments++;
    run->is_sorted = 1;
    int code = bsw_device_last(&run->lists, (uint32_t)run->keep, run->d_answers,
                               bsw_device_stream(run->device, run->queue));
    BSW_TRY(bsw_device_launched(run->device, code, "candidates", err));
    if (!run->answers) return BSW_OK;
    return bsw_device_download(run->device, run->queue, run->answers, run->d_answers,
                               run->lists.num_queries * run->keep * sizeof *run->answers, err);
}

static enum bsw_status queue_levels(struct bsw_device_list_run *run, size_t num_bundles,
                                    const struct bsw_device_levels *levels, bsw_device_scan_fn scan,
                                    void *context, struct bsw_error *err)
{
    for (size_t i = 0; i < levels->num; i++)
        BSW_TRY(queue_level(run, num_bundles, &levels->level[i], scan, context, err));
    return queue_rest(run, num_bundles, scan, context, err);
}

static void plan_levels(const struct bsw_device_list_run *run, size_t num_bundles,
                        struct bsw_device_levels *out)
{
    const struct bsw_level_needs needs = {.num_bundles = num_bundles,
                                          .keep = run->keep,
                                          .num_queries = run->lists.num_queries,
                                          .capacity = run->lists.capacity};
    *out = (struct bsw_device_levels){.num = 0};
    const struct bsw_device_tuning *tuning = bsw_device_tuning_current();
    if (tuning->has_levels && run->lists.raised && run->keep <= BSW_MOST_LAST_KEEP &&
        num_bundles <= BSW_MOST_SEGMENT_BUNDLES)
        bsw_device_levels_plan(&needs, &tuning->level_costs, out);
}

enum bsw_status bsw_device_list_run_queue_ahead(struct bsw_device_list_run *run, size_t num_bundles,
                                                bsw_device_scan_fn scan, void *context,
                                                struct bsw_error *err)
{
    struct bsw_device_levels levels;
    size_t num = run->lists.num_queries;
    plan_levels(run, num_bundles, &levels);
    BSW_TRY(levels.num > 0 ? queue_levels(run, num_bundles, &levels, scan, context, err)
                           : queue_segments(run, num_bundles, scan, context, err));
    num = run->lists.hits ? bsw_device_lists_numbers(num) : num + 1;
    return bsw_device_download(run->device, run->queue, run->fetched, run->lists.counts,
                               num * sizeof(uint32_t), err);
}

enum bsw_status bsw_device_list_run_end_ahead(struct bsw_device_list_run *run, int *is_whole,
                                              struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SCAN);
    uint32_t num_queries = run->lists.num_queries;
    run->num_waits++;
    BSW_TRY(bsw_device_wait(run->device, run->queue, "scan", err));
    memcpy(run->counts, run->fetched, num_queries * sizeof(uint32_t));
    *is_whole = run->fetched[num_queries] == 0;
    run->num_overflows += (run->fetched[num_queries] & BSW_LISTS_OVERFLOWED) != 0;
    run->num_shorts += (run->fetched[num_queries] & BSW_LISTS_SHORT) != 0;
    if (run->lists.hits && run->is_sorted)
        memcpy(&run->hits, run->fetched + bsw_device_lists_hits_place(num_queries),
               sizeof run->hits);
    return BSW_OK;
}

// Leading numbers of `size` bytes of all lists, as many as the longest has.
static enum bsw_status download_lists(const struct bsw_device_list_run *run, const void *from,
                                      size_t size, void *to, const char *what,
                                      struct bsw_error *err)
{
    BSW_DEVICE_PHASE(LISTS);
    size_t most = 0;
    for (uint32_t q = 0; q < run->lists.num_queries; q++)
        most = run->counts[q] > most ? run->counts[q] : most;
    const struct bsw_device_rows rows = {.row_bytes = most * size,
                                         .num_rows = run->lists.num_queries,
                                         .to_stride = run->keep * size,
                                         .from_stride = run->lists.capacity * size};
    return bsw_device_blocks_download(run->blocks, run->queue, to, from, &rows, what, err);
}

enum bsw_status bsw_device_list_run_sort(struct bsw_device_list_run *run, void *scratch,
                                         struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SORT);
    bsw_stream stream = bsw_device_stream(run->device, run->queue);
    uint32_t keep = (uint32_t)run->keep;
    // The last step sorts in a launch, which for short lists is quicker than CUB's eleven.
    int code = keep <= BSW_MOST_LAST_KEEP ? bsw_device_last(&run->lists, keep, NULL, stream)
                                          : bsw_device_sort(&run->lists, scratch, stream);
    return bsw_device_launched(run->device, code, "sort", err);
}

enum bsw_status bsw_device_list_run_fetch(struct bsw_device_list_run *run, uint64_t *items,
                                          struct bsw_error *err)
{
    if (run->is_sorted && run->answers) {
        memcpy(items, run->answers, run->lists.num_queries * run->keep * sizeof *items);
        return BSW_OK;
    }
    return download_lists(run, run->lists.items, sizeof *items, items, "candidates", err);
}

enum bsw_status bsw_device_list_run_fetch_exact(struct bsw_device_list_run *run, uint64_t *scores,
                                                uint32_t *rows, struct bsw_error *err)
{
    BSW_TRY(bsw_device_wait(run->device, run->queue, "cut", err)); // counts are those now
    BSW_TRY(download_lists(run, run->exact->scores, sizeof *scores, scores, "neighbours", err));
    return download_lists(run, run->exact->rows, sizeof *rows, rows, "neighbours", err);
}
