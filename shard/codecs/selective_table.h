// SPDX-License-Identifier: Apache-2.0
// Tables of entries within a radius of the query's projection, after JUNO (Liu et al., ASPLOS 2024,
// Sections 4 and 5): what a search of --entries radius scans product codes by.
//
// For each part, a ray at the query's projection (l2: less the list's centroid) finds the entries
// within limit = (radius * scale)^2, radius as product_radii.h has it for the projection before the
// centroid is taken off, or, with radii of the nearest entries, limit is what is below for
// the ray: l2 alone. t_p(e), the number of entry e, is then
//
//   mode H  a hit adds what it adds in a full table (product_codes.h); a miss adds the bound: limit
//           under l2, (|q_p|^2 - limit) / 2 under ip and cosine; or -infinity to the key; or the
//           mean of entries outside (below)
//   mode M  1 within limit / 4 (half the radius), 0 within limit, -1 for a miss
//   mode L  1 for a hit, 0 for a miss
//
// With hit times (entries_within.h) H's hits add what the finder's times say, and back ends differ.
//
// Sums and keys are those of product_codes.h: float32, ascending in the part. Keys of M and L
// are these sums, without what lists and means add. A row that hits nothing is not ranked, nor one
// with an infinite sum. With an infinite scale every entry is hit, and H has the bytes of the full
// table.
#ifndef BITSWEEP_SHARD_SELECTIVE_TABLE_H
#define BITSWEEP_SHARD_SELECTIVE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/memory.h"
#include "kernels/entry_tables/entry_tables.h"
#include "shard/codecs/product_codes.h"
#include "shard/codecs/product_radii.h"

BSW_C_BEGIN

enum bsw_selection_mode { BSW_SELECTION_H, BSW_SELECTION_M, BSW_SELECTION_L };
#define BSW_SELECTION_MODES "H|M|L"

// {0}: all entries, as ever.
struct bsw_selection_settings {
    int is_on;
    enum bsw_selection_mode mode;
    float scale; // of radii: positive, infinity too
    int is_miss_infinite;
    enum bsw_radii_kind radii;
    int has_hit_time; // of the finder, which then gives H's distances too
    const struct bsw_entry_finder_ops *finder;
    int is_miss_mean; // with BSW_RADII_NEAREST alone, not infinite
};

// What selection leaves out. Look-ups are of a row's code in a part: full tables do all of them.
// They are counted for one query and list of BSW_SELECTION_SAMPLE, and only where an index has
// lists.
struct bsw_selection_work {
    uint64_t num_entries, num_within; // of the tables made; of them those within their radius
    uint64_t num_computed;            // of them those that the formula was computed of
    uint64_t num_lookups, num_hits;   // looked at; of them those that find an entry within
};
#define BSW_SELECTION_SAMPLE 32

// The selection of a rank's search. What is counted, and what failed, is written by all threads.
struct bsw_selection {
    struct bsw_selection_settings settings;
    const struct bsw_product_codes *codes; // borrowed
    bsw_entry_finder *finder;
    const struct bsw_entry_tables_table *tables; // in place of the finder, if it looks at all
    struct bsw_entry_map *map;                   // of BSW_RADII_NEAREST, else NULL
    enum bsw_cpu_level level;
    struct bsw_selection_work work;
    struct bsw_first_failure failure;
};

// Opens a selection for codes with radii. The finder has the book of codes->entries.
enum bsw_status bsw_selection_open(const struct bsw_selection_settings *settings,
                                   const struct bsw_product_codes *codes, enum bsw_cpu_level level,
                                   struct bsw_selection *out, struct bsw_error *err);
void bsw_selection_close(struct bsw_selection *selection); // accepts {0}
// What failed since the last report, BSW_OK if nothing did; after the threads have met.
enum bsw_status bsw_selection_report(struct bsw_selection *selection, struct bsw_error *err);

// Counts what tables that were made have: entries, and those within. Thread-safe.
static inline void bsw_selection_count(struct bsw_selection *selection, uint64_t entries,
                                       uint64_t computed, uint64_t within)
{
    __atomic_fetch_add(&selection->work.num_entries, entries, __ATOMIC_RELAXED);
    __atomic_fetch_add(&selection->work.num_computed, computed, __ATOMIC_RELAXED);
    __atomic_fetch_add(&selection->work.num_within, within, __ATOMIC_RELAXED);
}

// Whether keys are counts: then nothing is added to them.
static inline int bsw_selection_counts(const struct bsw_selection_settings *settings)
{
    return settings->is_on && settings->mode != BSW_SELECTION_H;
}

// Bits of a table's hits: [parts][bsw_selective_words], bit e % 32 of word e / 32.
static inline size_t bsw_selective_words(const struct bsw_product_codes *codes)
{
    return codes->book.bits == 8 ? 8 : 1;
}
static inline size_t bsw_selective_hits_bytes(const struct bsw_product_codes *codes)
{
    return bsw_align_size(codes->book.parts * bsw_selective_words(codes) * sizeof(uint32_t),
                          BSW_ALIGNMENT_BYTES);
}

// Limits of a query's rays, [parts]: the same for all lists. With BSW_RADII_NEAREST they are not,
// and these are 0 and not read.
void bsw_selective_limits(const struct bsw_selection *selection, const float *query, float *out);
// The sum of a row that hits nothing: the same for all lists, too, but for BSW_RADII_NEAREST.
float bsw_selective_nothing(const struct bsw_selection *selection, const float *query,
                            const float *limits);

// A table as bsw_product_table makes it, of float32, and its hits. Returns what sums are multiplied
// by. limits: bsw_selective_limits, or NULL: made of the query. room: bsw_selective_room_bytes,
// 64-byte aligned. Where the finder fails bsw_selection_report says so, and the numbers are of no
// use.
size_t bsw_selective_room_bytes(const struct bsw_product_codes *codes);
float bsw_selective_table(struct bsw_selection *selection, const struct bsw_product_terms *terms,
                          const float *limits, void *room, float *out, uint32_t *hits);
// Mode L's table of the same entries, by no finder, and without counting it.
void bsw_selective_hit_table(const struct bsw_selection *selection,
                             const struct bsw_product_terms *terms, const float *limits, float *out,
                             uint32_t *hits);
// The same as plainly as it can be had, by no finder.
float bsw_selective_plain_table(const struct bsw_selection *selection,
                                const struct bsw_product_terms *terms, float *out, uint32_t *hits);

// Keeps those of `count` candidates that are to be ranked; returns how many. bundles: of their row
// 0.
size_t bsw_selective_keep(const struct bsw_product_codes *codes, const uint32_t *hits,
                          const uint8_t *bundles, size_t bundle_bytes, uint64_t *items,
                          size_t count);

// Radii that hold the nearest quarter of a codebook's entries: for product codes with parts of 2
// dimensions, under l2.
//
// JUNO's radii (product_radii.h) go by the density of rows around a query. Where its list's
// centroid lies far from it a ray is far from all entries, and hits few of those of the rows that
// matter; where it is near, most. Here a radius is the ray's own, after the centroid is taken off:
// what holds a quarter of the entries (the share that JUNO's Section 3.2 finds in use), times a
// scale. It is looked up, not computed: each part's plane is divided into 32 x 32 cells, over the
// box that holds its entries, twice as wide and high; a cell has the radius of its middle, and what
// entries outside that are on average: the mean of their squared distances from the middle. Rays
// outside the box have the nearest cell.
//
// Made of the codebooks alone, by operations that are the same on every machine, where a search is
// opened: 1,024 cells of a part look at all its entries.

#define BSW_ENTRY_MAP_CELLS 32 // a side of a box
#define BSW_ENTRY_MAP       ((size_t)BSW_ENTRY_MAP_CELLS * BSW_ENTRY_MAP_CELLS)

// Owned arrays.
struct bsw_entry_map {
    uint32_t parts;
    float *boxes;  // [parts][4]: least x, least y, most x, most y
    float *limits; // [parts][cells of y][cells of x]: (radius * scale)^2, above 0; infinity too
    float *misses; // likewise: the mean of what is outside, at least the limit
};

// entries: [parts][2][num], num a multiple of 4; scale: positive, infinity too.
enum bsw_status bsw_entry_map_create(uint32_t parts, size_t num, const float *entries, float scale,
                                     struct bsw_entry_map **out, struct bsw_error *err);
void bsw_entry_map_destroy(struct bsw_entry_map **map); // accepts NULL inside

// The place in limits and misses of a ray of a part.
size_t bsw_entry_map_at(const struct bsw_entry_map *map, uint32_t part, float x, float y);

BSW_C_END
#endif
