// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <string.h>

#include "common/codes/metric.h"
#include "kernels/merge/merge.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

enum {
    RANDOM,
    NARROW,    // scores differ in the low bits alone
    NARROWEST, // fewer of them than a digit has, with many ties
    TIES,
    ALL_EQUAL,
    ASCENDING,
    SHARDS,  // sorted lists one after the other
    OUTLIER, // one score far from all others
    EXTREME,
    NUM_FILLS
};

static uint32_t fill_score(const struct kernelcheck *check, int fill, size_t i, size_t n)
{
    uint32_t random = (uint32_t)kernelcheck_random(check, 1, i);
    switch (fill) {
    case RANDOM:
        return random;
    case NARROW:
        return 0xbf400000u + random % 3000;
    case NARROWEST:
        return 0xbf400000u + random % 7;
    case TIES:
        return 0x80000000u + (random % 3 << 20);
    case ALL_EQUAL:
        return 0xbf800000u;
    case ASCENDING:
        return 0x80000000u + (uint32_t)i;
    case SHARDS:
        return 0xc0000000u - (uint32_t)(i % (n / 8 + 1)) * 77;
    case OUTLIER:
        return i == n / 2 ? 3 : 0xbf400000u + random % 999;
    default:
        return random % 2 ? UINT32_MAX : 0;
    }
}

static void check_sort(struct kernelcheck *check, int fill, size_t n)
{
    size_t bytes = n * sizeof(uint64_t);
    uint64_t *expected = kernelcheck_allocate(bytes), *found = kernelcheck_allocate(bytes);
    uint64_t *scratch = kernelcheck_allocate(bytes);
    for (size_t i = 0; i < n; i++) { // distinct rows
        uint32_t row = (uint32_t)(i * 2654435761u);
        expected[i] = found[i] = bsw_candidate_pack(fill_score(check, fill, i, n), row);
    }
    bsw_merge_reference.sort_candidates(expected, n, scratch);
    bsw_merge_table_get(check->level)->sort_candidates(found, n, scratch);
    kernelcheck_case(check, "%zu, fill %d", n, fill);
    kernelcheck_compare(check, "sort_candidates", expected, found, bytes);
    kernelcheck_free(expected);
}

static void check_best(struct kernelcheck *check, int fill, size_t n, size_t keep, uint64_t by)
{
    size_t bytes = n * sizeof(struct bsw_ranked);
    struct bsw_ranked *expected = kernelcheck_allocate(bytes), *found = kernelcheck_allocate(bytes);
    struct bsw_ranked *scratch = kernelcheck_allocate(bytes);
    for (size_t i = 0; i < n; i++) {
        uint32_t payload = (uint32_t)kernelcheck_random(check, 2, i) >> (i % 3 ? 0 : 28);
        expected[i] = bsw_ranked_of_key(fill_score(check, fill, i, n), payload,
                                        kernelcheck_random(check, 3, i));
        found[i] = expected[i];
    }
    size_t expected_kept = bsw_merge_reference.best_ranked(expected, n, keep, by, scratch);
    size_t kept = bsw_merge_table_get(check->level)->best_ranked(found, n, keep, by, scratch);
    kernelcheck_case(check, "%zu of %zu by %s, fill %d", keep, n,
                     by == BSW_RANKED_BY_KEY ? "key" : "exact score", fill);
    kernelcheck_compare(check, "best_ranked", &expected_kept, &kept, sizeof kept);
    kernelcheck_compare(check, "best_ranked", expected, found, expected_kept * sizeof *found);
    kernelcheck_free(expected);
}

void check_merge(struct kernelcheck *check)
{
    static const size_t counts[] = {0,   1,   2,   3,   7,    8,    9,    15,  16,
                                    17,  31,  32,  33,  63,   64,   65,   127, 128,
                                    129, 191, 192, 193, 1000, 1024, 1025, 5000};
    for (size_t c = 0; c < LENGTH(counts); c++) {
        size_t n = counts[c];
        const size_t keeps[] = {0, 1, 10, n / 3, n > 0 ? n - 1 : 0, n, n + 1};
        for (int fill = 0; fill < NUM_FILLS; fill++) {
            check_sort(check, fill, n);
            for (size_t k = 0; k < LENGTH(keeps); k++) {
                check_best(check, fill, n, keeps[k], BSW_RANKED_BY_KEY);
                check_best(check, fill, n, keeps[k], BSW_RANKED_BY_EXACT);
            }
        }
    }
}
