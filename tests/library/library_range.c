// SPDX-License-Identifier: Apache-2.0
// Range searches of an index, for library_cases.c.
#include <math.h>
#include <string.h>

#include "library_support.h"

// As many rows as the search for the best k has within the value of the last of them, at least.
void check_range(const char *folder, const struct bitsweep_rows *queries)
{
    bitsweep_index *index = opened(folder);
    struct bitsweep_search_settings settings;
    struct bitsweep_rows none = {NULL, 0, queries->dims, queries->type, NULL};
    struct answers best = searched(index, queries, 10, 0);
    bitsweep_range *range;
    bitsweep_search_defaults(&settings);
    need(bitsweep_range_search(index, queries, best.values[9], &settings, &range, &error), "range");
    const uint64_t *lims = bitsweep_range_lims(range);
    expect(bitsweep_range_num_queries(range) == queries->num_rows && lims[0] == 0 && lims[1] >= 10,
           "rows of each query");
    expect(memcmp(bitsweep_range_ids(range), best.ids, 9 * sizeof *best.ids) == 0 &&
               memcmp(bitsweep_range_values(range), best.values, 9 * sizeof *best.values) == 0,
           "the best rows come first");
    bitsweep_range_free(&range);
    expect(range == NULL, "a range that was freed is NULL");
    bitsweep_range_free(&range);
    need(bitsweep_range_search(index, &none, 1, NULL, &range, &error), "a range of no queries");
    expect(bitsweep_range_num_queries(range) == 0 && bitsweep_range_lims(range)[0] == 0,
           "no queries");
    bitsweep_range_free(&range);
    refused(bitsweep_range_search(index, queries, NAN, NULL, &range, &error), BITSWEEP_ERROR_USAGE,
            "within: must be a number");
    settings.max_candidates = 3;
    refused(bitsweep_range_search(index, queries, 1e9, &settings, &range, &error),
            BITSWEEP_ERROR_TOO_LARGE, "more than 3 candidates");
    expect(range == NULL, "nothing of a range that failed");
    forget(&best);
    bitsweep_close(&index);
}
