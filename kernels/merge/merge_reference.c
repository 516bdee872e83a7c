// SPDX-License-Identifier: Apache-2.0
// The oracle: qsort, and the textbook merge sort, which is stable.
#include <stdlib.h>

#include "kernels/merge/merge.h"

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static void reference_sort_candidates(uint64_t *candidates, size_t n, uint64_t *scratch)
{
    (void)scratch;
    if (n > 0) qsort(candidates, n, sizeof *candidates, compare_descending);
}

// Merges the sorted halves of entries; of equal scores the left half's come first.
static void merge_halves(struct bsw_ranked *entries, size_t middle, size_t n, uint64_t by,
                         struct bsw_ranked *scratch)
{
    size_t left = 0, right = middle;
    for (size_t i = 0; i < n; i++) {
        int take_left = right == n || (left < middle &&
                                       (entries[left].score & by) >= (entries[right].score & by));
        scratch[i] = entries[take_left ? left++ : right++];
    }
    for (size_t i = 0; i < n; i++) entries[i] = scratch[i];
}

static void merge_sort(struct bsw_ranked *entries, size_t n, uint64_t by,
                       struct bsw_ranked *scratch)
{
    if (n < 2) return;
    merge_sort(entries, n / 2, by, scratch);
    merge_sort(entries + n / 2, n - n / 2, by, scratch);
    merge_halves(entries, n / 2, n, by, scratch);
}

static size_t reference_best_ranked(struct bsw_ranked *entries, size_t n, size_t keep, uint64_t by,
                                    struct bsw_ranked *scratch)
{
    merge_sort(entries, n, by, scratch);
    return n < keep ? n : keep;
}

const struct bsw_merge_table bsw_merge_reference = {
    .level = "reference",
    .sort_candidates = reference_sort_candidates,
    .best_ranked = reference_best_ranked,
};

BSW_KERNEL_TABLE_GET(merge, BSW_KERNEL_AVX2(merge) BSW_KERNEL_AVX512(merge) BSW_KERNEL_NEON(merge))
