#include "shard/device_lists.h"

#include "common/code_layout.h"

// Its rows and a list's capacity together stay below 2^32, as the kernels want.
#define MOST_SEGMENT_BUNDLES ((size_t)1 << 26)

void bsw_device_list_run_begin(struct bsw_device_list_run *run)
{
    run->segment = run->lists.capacity / BSW_BUNDLE_ROWS;
    run->done = 0;
    run->scanned = run->num_segments = run->num_overflows = 0;
}

// The counts as they are now; *most is the largest.
static enum bsw_status fetch_counts(const struct bsw_device_list_run *run, uint32_t *most,
                                    struct bsw_error *err)
{
    uint32_t num_queries = run->lists.num_queries;
    *most = 0;
    BSW_TRY(bsw_device_download(run->device, BSW_QUEUE_SCAN, run->fetched, run->lists.counts,
                                num_queries * sizeof(uint32_t), err));
    BSW_TRY(bsw_device_wait(run->device, BSW_QUEUE_SCAN, "scan", err));
    for (uint32_t q = 0; q < num_queries; q++)
        *most = run->fetched[q] > *most ? run->fetched[q] : *most;
    return BSW_OK;
}

// The best of every list, once one is full; the counts on the host become those on the device.
static enum bsw_status cut_lists(struct bsw_device_list_run *run, uint32_t most,
                                 struct bsw_error *err)
{
    uint32_t keep = (uint32_t)run->keep;
    for (uint32_t q = 0; q < run->lists.num_queries; q++)
        run->counts[q] = run->fetched[q] < keep ? run->fetched[q] : keep;
    if (most < keep) return BSW_OK;
    int code = bsw_device_cut(&run->lists, keep, bsw_device_stream(run->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(run->device, code, "cut", err);
}

// As if the segment had not been scanned, and the next one shorter.
static enum bsw_status step_back(struct bsw_device_list_run *run, size_t count,
                                 struct bsw_error *err)
{
    if (count == 1) {
        return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                        "%s: more candidates of %d rows than a list has room for",
                        bsw_device_label(run->device), BSW_BUNDLE_ROWS);
    }
    run->num_overflows++;
    run->segment = count / 2;
    return bsw_device_upload(run->device, BSW_QUEUE_SCAN, run->lists.counts, run->counts,
                             run->lists.num_queries * sizeof(uint32_t), err);
}

enum bsw_status bsw_device_list_run_scan(struct bsw_device_list_run *run, size_t num_bundles,
                                         bsw_device_scan_fn scan, void *context,
                                         struct bsw_error *err)
{
    for (size_t first = 0; first < num_bundles;) {
        size_t left = num_bundles - first;
        size_t count = run->segment < left ? run->segment : left;
        uint32_t most;
        if (count > MOST_SEGMENT_BUNDLES) count = MOST_SEGMENT_BUNDLES;
        const struct bsw_device_part part = {(uint32_t)first, (uint32_t)(first + count), 1};
        BSW_TRY(scan(context, &part, &run->lists, err));
        run->scanned += count;
        BSW_TRY(fetch_counts(run, &most, err));
        if (most > run->lists.capacity) {
            BSW_TRY(step_back(run, count, err));
            continue;
        }
        BSW_TRY(cut_lists(run, most, err));
        first += count;
        run->done += count;
        run->num_segments++;
        // No longer than all before it, and slowly back after an overflow.
        run->segment = 2 * run->segment < run->done ? 2 * run->segment : run->done;
    }
    return BSW_OK;
}

enum bsw_status bsw_device_list_run_fetch(struct bsw_device_list_run *run, void *scratch,
                                          uint64_t *items, struct bsw_error *err)
{
    size_t most = 0;
    for (uint32_t q = 0; q < run->lists.num_queries; q++)
        most = run->counts[q] > most ? run->counts[q] : most;
    int code =
        bsw_device_sort(&run->lists, scratch, bsw_device_stream(run->device, BSW_QUEUE_SCAN));
    BSW_TRY(bsw_device_launched(run->device, code, "sort", err));
    BSW_TRY(bsw_device_wait(run->device, BSW_QUEUE_SCAN, "sort", err));
    const struct bsw_device_rows rows = {.row_bytes = most * sizeof *items,
                                         .num_rows = run->lists.num_queries,
                                         .to_stride = run->keep * sizeof *items,
                                         .from_stride = run->lists.capacity * sizeof *items};
    BSW_TRY(
        bsw_device_download_rows(run->device, BSW_QUEUE_SCAN, items, run->lists.items, &rows, err));
    return bsw_device_wait(run->device, BSW_QUEUE_SCAN, "candidates", err);
}
