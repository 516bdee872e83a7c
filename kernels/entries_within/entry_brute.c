// SPDX-License-Identifier: Apache-2.0
// The back end that looks at every entry, on all CPUs.
#include "common/base/memory.h"
#include "kernels/entries_within/entries_within.h"

struct bsw_entry_finder {
    struct bsw_entry_book book;
    const struct bsw_entries_within_table *table;
};

static enum bsw_status brute_open(const struct bsw_entry_book *book,
                                  const struct bsw_entry_finder_options *options,
                                  bsw_entry_finder **out, struct bsw_error *err)
{
    struct bsw_entry_finder *finder;
    BSW_TRY(bsw_entry_book_check(book, err));
    if (options->has_hit_time)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "brute traces no rays, so it has no hit times; take embree");
    BSW_TRY(bsw_allocate(&finder, 1, sizeof *finder, "entries within a radius", err));
    *finder = (struct bsw_entry_finder){*book, bsw_entries_within_table_get(options->level)};
    *out = finder;
    return BSW_OK;
}

static enum bsw_status brute_find(bsw_entry_finder *finder, const struct bsw_entry_ray *rays,
                                  size_t num_rays, const struct bsw_entry_hits *hits,
                                  struct bsw_error *err)
{
    const struct bsw_entry_book *book = &finder->book;
    size_t count = 0;
    (void)err;
    hits->offsets[0] = 0;
    if (hits->num_computed) *hits->num_computed += num_rays * book->entries;
    for (size_t r = 0; r < num_rays; r++) {
        const float *x = book->points + (size_t)rays[r].subspace * 2 * book->entries;
        count += finder->table->within[book->value](x, x + book->entries, book->entries, &rays[r],
                                                    hits->entries + count, hits->values + count);
        hits->offsets[r + 1] = (uint32_t)count;
    }
    return BSW_OK;
}

static void brute_close(bsw_entry_finder **finder)
{
    bsw_free(finder);
}

const struct bsw_entry_finder_ops bsw_entry_brute = {.name = "brute",
                                                     .looks_at_all = 1,
                                                     .open = brute_open,
                                                     .find = brute_find,
                                                     .close = brute_close};
