// SPDX-License-Identifier: Apache-2.0
// Back ends by name, and what all of them ask of a book.
#include <math.h>
#include <string.h>

#include "common/base/number_parse.h"
#include "kernels/entries_within/entries_within.h"

static const struct back_end {
    const char *name;
    const struct bsw_entry_finder_ops *ops; // NULL: not built in
    const char *remedy;
} back_ends[] = {
    {"auto", &bsw_entry_brute, NULL},
    {"brute", &bsw_entry_brute, NULL},
#ifdef BITSWEEP_HAVE_EMBREE
    {"embree", &bsw_entry_embree, NULL},
#else
    {"embree", NULL, "libembree (deploy/install.sh --embree), then build again"},
#endif
#ifdef BITSWEEP_HAVE_VULKAN
    {"vulkan", &bsw_entry_vulkan, NULL},
#else
    {"vulkan", NULL, "libvulkan and glslang (deploy/install.sh --vulkan), then build again"},
#endif
};

enum bsw_status bsw_entry_finder_get(const char *name, const struct bsw_entry_finder_ops **out,
                                     struct bsw_error *err)
{
    for (size_t i = 0; i < sizeof back_ends / sizeof back_ends[0]; i++) {
        if (strcmp(name, back_ends[i].name) != 0) continue;
        if (!back_ends[i].ops)
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "this build has no back end %s: install %s, or take auto", name,
                            back_ends[i].remedy);
        *out = back_ends[i].ops;
        return BSW_OK;
    }
    char words[BSW_CHOICES_BYTES];
    return bsw_fail(err, BSW_ERROR_USAGE, "unknown back end '%s': use %s", name,
                    bsw_choices_text(BSW_ENTRY_FINDER_CHOICES, words));
}

enum bsw_status bsw_entry_book_check(const struct bsw_entry_book *book, struct bsw_error *err)
{
    if (book->entries != 16 && book->entries != 256)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "a codebook of %u entries: 16 and 256 are taken",
                        book->entries);
    if (book->subspaces < 1 || book->subspaces > BSW_ENTRY_MOST_SUBSPACES)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%u codebooks: 1 to %u are taken",
                        book->subspaces, BSW_ENTRY_MOST_SUBSPACES);
    for (size_t i = 0; i < (size_t)book->subspaces * 2 * book->entries; i++)
        if (!(fabsf(book->points[i]) <= BSW_ENTRY_MOST_COORDINATE))
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "coordinate %zu of codebooks is %g", i,
                            (double)book->points[i]);
    return BSW_OK;
}
