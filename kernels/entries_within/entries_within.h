// SPDX-License-Identifier: Apache-2.0
// entries_within: which entries of codebooks of 2 dimensions are near the projection of a query,
// after JUNO (Liu et al., ASPLOS 2024, Section 4.2).
//
// A ray is one projection of a query, with a limit of its own. It hits the entries of its subspace
// that one of two fixed float32 formulas says, dx = x - e_x and dy = y - e_y:
//
//   L2  value = fmaf(dy, dy, dx * dx), the squared distance; a hit where value <= limit
//   IP  value = fmaf(y, e_y, fmaf(x, e_x, +0.0f)), the inner product; a hit where value >= least,
//       least = 0.5f * (fmaf(y, y, x * x) - limit)
//
// Each operation rounds once, in the order written. The value of IP is, bit for bit, the entry of
// table_scan's `products` for a part of 2 dimensions.
//
// The limit is the squared threshold, already scaled. Infinity hits every entry. With IP it is
// JUNO's for spheres of radius sqrt(R^2 + |e|^2): with origins o in front, a ray at q meets such a
// sphere at t = o - sqrt(R^2 + |e|^2 - |q - e|^2) = o - sqrt(R^2 - |q|^2 + 2 <q, e>). It is a hit
// where t <= tmax = o - sqrt(R^2 - limit), that is where 2 <q, e> >= |q|^2 - limit, whatever R is.
// So limit bounds |q - e|^2 - |e|^2, which may be below 0, and so may limit; -infinity hits none.
// A limit that is not a number hits none.
//
// Two layers: bsw_entries_within_table has a ray at a CPU level; bsw_entry_finder_ops answers
// batches, and its tenants (back ends) give the same bytes. Those that trace rays find candidates,
// entries within a slightly larger limit (entry_scene.h), and the formula above decides.
#ifndef BITSWEEP_KERNELS_ENTRIES_WITHIN_H
#define BITSWEEP_KERNELS_ENTRIES_WITHIN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"
#include "kernels/kernel_table.h"

BSW_C_BEGIN

enum bsw_entry_value { BSW_ENTRY_L2, BSW_ENTRY_IP, BSW_NUM_ENTRY_VALUES };

// Coordinates of entries and rays are finite and at most this in magnitude: their squares are too.
#define BSW_ENTRY_MOST_COORDINATE 0x1p60f
#define BSW_ENTRY_MOST_SUBSPACES  4096

struct bsw_entry_book {
    enum bsw_entry_value value;
    uint32_t subspaces;
    uint32_t entries; // of a subspace: 16 or 256
    // [subspaces][2][entries], 64-byte aligned, borrowed: the layout of bsw_product_book's entries
    // with part_dims 2, so that a codec hands over its book as it is.
    const float *points;
};

// 16 bytes, so that a batch of (query, list, subspace) is one array.
struct bsw_entry_ray {
    uint32_t subspace; // below the book's
    float x, y;
    float limit;
};

// Hits of a batch: ray r has [offsets[r], offsets[r + 1]) of entries and values, entries ascending.
// Caller's memory: offsets [num_rays + 1], entries and values bsw_entry_hits_room() each. What lies
// behind the last hit may be overwritten, up to that room.
struct bsw_entry_hits {
    uint32_t *offsets;
    uint8_t *entries;
    float *values;
    uint64_t *num_computed; // grows by the entries that the formula was computed of; or NULL
};

// Rays of a batch at most: its hits stay below 2^31.
#define BSW_ENTRY_MOST_RAYS (1u << 22)

static inline size_t bsw_entry_hits_room(const struct bsw_entry_book *book, size_t num_rays)
{
    return num_rays * book->entries + 32; // a vector's width behind the last
}

// ---- a ray ----

struct bsw_entries_within_table {
    const char *level;

    // The hits of a ray, x and y [num] its subspace's coordinates, num 16 or 256; returns how many.
    // entries and values have room for num + 32. Cannot fail. Thread-safe.
    size_t (*within[BSW_NUM_ENTRY_VALUES])(const float *x, const float *y, size_t num,
                                           const struct bsw_entry_ray *ray, uint8_t *entries,
                                           float *values);
};

BSW_KERNEL_LEVELS(entries_within);

// ---- batches ----

typedef struct bsw_entry_finder bsw_entry_finder; // a tenant's own

struct bsw_entry_finder_options {
    enum bsw_cpu_level level;
    // [subspaces], read by open alone: the largest limit that rays of a subspace are likely to
    // have. Back ends that trace have spheres that just cover it, so that a ray meets fewer of
    // them, and go by the formula, entry by entry, for rays with more. NULL: the box round the
    // entries.
    const float *reach;
    // JUNO's own way: hits and values are what the ray's time of the hit says, value = R^2 -
    // (o - t)^2, for IP (|q|^2 - R^2 + (o - t)^2) / 2, within 2e-7 of the largest squared radius of
    // the formula's; so not the same bytes on all back ends. Rays whose limit no sphere covers
    // (entry_scene.h), among them infinity, still go by the formula. brute traces none and refuses.
    int has_hit_time;
};

// A back end. `find` may be called by several threads at once with one finder.
struct bsw_entry_finder_ops {
    const char *name;
    // 1: it computes the formula of every entry, so that entry_tables (kernels/entry_tables) may
    // as well make tables without it, to the same bits.
    int looks_at_all;
    // Builds what it needs for a book; the caller closes. BSW_ERROR_USAGE where the machine lacks
    // what it needs. The book's points, not the struct, are borrowed until then.
    enum bsw_status (*open)(const struct bsw_entry_book *book,
                            const struct bsw_entry_finder_options *options, bsw_entry_finder **out,
                            struct bsw_error *err);
    // Hits of all rays; num_rays at most BSW_ENTRY_MOST_RAYS, 0 too. May block, and allocate, but
    // for brute, which neither fails nor allocates.
    enum bsw_status (*find)(bsw_entry_finder *finder, const struct bsw_entry_ray *rays,
                            size_t num_rays, const struct bsw_entry_hits *hits,
                            struct bsw_error *err);
    // Nulls; accepts NULL inside.
    void (*close)(bsw_entry_finder **finder);
};

// What --entries-by takes. auto is brute, the fastest on every CPU measured.
#define BSW_ENTRY_FINDER_CHOICES "auto|brute|embree|vulkan"

// BSW_ERROR_USAGE for a name that is none of these, and for a back end that was not built in, with
// what to do about it.
enum bsw_status bsw_entry_finder_get(const char *name, const struct bsw_entry_finder_ops **out,
                                     struct bsw_error *err);

// BSW_ERROR_TOO_LARGE or BSW_ERROR_BAD_DATA for a book that no back end takes: numbers of entries
// and subspaces, coordinates. Every open calls it.
enum bsw_status bsw_entry_book_check(const struct bsw_entry_book *book, struct bsw_error *err);

// ---- back ends ----------------------------------------------------------------------------------

// The back ends of entries_within.h, for its own files.

extern const struct bsw_entry_finder_ops bsw_entry_brute;
extern const struct bsw_entry_finder_ops bsw_entry_embree; // CMake's BITSWEEP_EMBREE
extern const struct bsw_entry_finder_ops bsw_entry_vulkan; // CMake's BITSWEEP_VULKAN

BSW_C_END
#endif
