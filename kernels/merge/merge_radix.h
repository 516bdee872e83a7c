// SPDX-License-Identifier: Apache-2.0
// The scalar half of the merge's radix sorts: counting and scattering, which no vector unit helps
// with. A level gives the bits in which its input varies, by vector passes; digits of 8 or 11
// bits are laid over those alone, from the lowest varying bit up. Candidates that come in the order
// of their rows are sorted by their scores alone.
//
// All digits are counted in one pass over memory, in blocks that stay in the first cache.
#ifndef BITSWEEP_KERNELS_MERGE_RADIX_H
#define BITSWEEP_KERNELS_MERGE_RADIX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/merge/merge.h"

#define BSW_RADIX_BITS       8
#define BSW_RADIX_SIZE       256
#define BSW_RADIX_LONG       4096 // entries from which fewer passes are worth larger digits
#define BSW_RADIX_LONG_BITS  11
#define BSW_RADIX_MAX_SIZE   2048
#define BSW_RADIX_MAX_DIGITS 8
#define BSW_RADIX_BLOCK      1024

struct bsw_radix_plan {
    int num_digits;
    unsigned shifts[BSW_RADIX_MAX_DIGITS], size; // size: values of a digit
    // Counts, then where the next entry goes.
    size_t places[BSW_RADIX_MAX_DIGITS][BSW_RADIX_MAX_SIZE];
};

static inline void bsw_radix_plan_init(struct bsw_radix_plan *plan, size_t n, uint64_t varying)
{
    plan->num_digits = 0;
    plan->size = 1u << (n < BSW_RADIX_LONG ? BSW_RADIX_BITS : BSW_RADIX_LONG_BITS);
    while (varying) {
        unsigned shift = (unsigned)__builtin_ctzll(varying);
        memset(plan->places[plan->num_digits], 0, plan->size * sizeof plan->places[0][0]);
        plan->shifts[plan->num_digits++] = shift;
        varying &= ~((uint64_t)(plan->size - 1) << shift);
    }
}

// Counts to places, largest digit first.
static inline void bsw_radix_plan_place(struct bsw_radix_plan *plan)
{
    for (int d = 0; d < plan->num_digits; d++) {
        size_t place = 0;
        for (int digit = (int)plan->size - 1; digit >= 0; digit--) {
            size_t count = plan->places[d][digit];
            plan->places[d][digit] = place;
            place += count;
        }
    }
}

static inline unsigned bsw_radix_digit(uint64_t key, unsigned shift, unsigned size)
{
    return (unsigned)(key >> shift) & (size - 1);
}

// Sorts items by the bits of KEY(item) that vary, descending, stable; varying has the bits that are
// not the same in all of them.
#define BSW_RADIX_SORT(name, type, KEY)                                                          \
    static inline void name(type *items, size_t n, uint64_t varying, type *scratch)              \
    {                                                                                            \
        struct bsw_radix_plan plan;                                                              \
        bsw_radix_plan_init(&plan, n, varying);                                                  \
        for (size_t first = 0; first < n; first += BSW_RADIX_BLOCK) {                            \
            size_t last = n - first < BSW_RADIX_BLOCK ? n : first + BSW_RADIX_BLOCK;             \
            for (int d = 0; d < plan.num_digits; d++) {                                          \
                for (size_t i = first; i < last; i++)                                            \
                    plan.places[d][bsw_radix_digit(KEY(items[i]), plan.shifts[d], plan.size)]++; \
            }                                                                                    \
        }                                                                                        \
        bsw_radix_plan_place(&plan);                                                             \
        type *from = items, *to = scratch;                                                       \
        for (int d = 0; d < plan.num_digits; d++) {                                              \
            for (size_t i = 0; i < n; i++)                                                       \
                to[plan.places[d][bsw_radix_digit(KEY(from[i]), plan.shifts[d], plan.size)]++] = \
                    from[i];                                                                     \
            type *swap = from;                                                                   \
            from = to;                                                                           \
            to = swap;                                                                           \
        }                                                                                        \
        if (from != items) memcpy(items, from, n * sizeof *items);                               \
    }
#define BSW_RADIX_CANDIDATE(candidate) (candidate)
#define BSW_RADIX_SCORE(entry)         (entry).score
BSW_RADIX_SORT(bsw_radix_sort_candidates, uint64_t, BSW_RADIX_CANDIDATE)
BSW_RADIX_SORT(bsw_radix_sort_ranked, struct bsw_ranked, BSW_RADIX_SCORE)

// Whether each candidate's row is above that of the one before: as a scan finds them.
static inline int bsw_candidates_ascend(const uint64_t *candidates, size_t n)
{
    uint32_t num_others = 0;
    for (size_t i = 1; i < n; i++)
        num_others += (uint32_t)candidates[i] >= (uint32_t)candidates[i - 1];
    return num_others == 0;
}

// A number that the scores of at least `keep` of n entries reach, found by a histogram of the
// leading digit: the highest 8 bits in which they vary (so a narrow range of scores is still told
// apart), of those in `by` alone. 0 < keep < n.
static inline uint64_t bsw_radix_cutoff(const struct bsw_ranked *entries, size_t n, size_t keep,
                                        uint64_t by, uint64_t varying)
{
    if (varying == 0) return 0;
    size_t counts[BSW_RADIX_SIZE] = {0};
    unsigned top = 64 - (unsigned)__builtin_clzll(varying);
    unsigned shift = top > BSW_RADIX_BITS ? top - BSW_RADIX_BITS : 0;
    for (size_t i = 0; i < n; i++)
        counts[bsw_radix_digit(entries[i].score & by, shift, BSW_RADIX_SIZE)]++;
    unsigned digit = BSW_RADIX_SIZE - 1;
    for (size_t count = counts[digit]; count < keep; count += counts[digit]) digit--;
    // Bits above the digit are the same in all entries.
    uint64_t digit_mask = (uint64_t)(BSW_RADIX_SIZE - 1) << shift;
    uint64_t same = entries[0].score & by & ~digit_mask & ~((UINT64_C(1) << shift) - 1);
    return same | (uint64_t)digit << shift;
}

#endif
