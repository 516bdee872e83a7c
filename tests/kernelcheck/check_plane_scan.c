// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <string.h>

#include "bench/host/scan_case.h"
#include "common/base/arithmetic.h"
#include "kernels/plane_scan/plane_scan.h"

static const size_t bundle_counts[] = {1, 2, 3, 65};
#define NUM_BUNDLE_COUNTS (sizeof bundle_counts / sizeof bundle_counts[0])

static struct bsw_segment make_segment(uint32_t dims, uint32_t bits)
{
    return (struct bsw_segment){.dims = dims, .bits = bits, .words = (dims + 31) / 32};
}

// Codes, a query, and dots to add to; expected and found start equal. All guarded.
struct scan_case {
    size_t num_dots;
    uint32_t *codes, *query;
    int32_t *expected, *found;
};

static struct scan_case make_case(const struct kernelcheck *check, struct bsw_segment segment,
                                  size_t num_bundles, unsigned query_bits, int fill)
{
    struct scan_case c = {.num_dots = num_bundles * BSW_BUNDLE_ROWS};
    size_t codes_words = bsw_segment_bundle_words(&segment) * num_bundles;
    int query_fill = fill == BSW_PLANES_ONES    ? BSW_PLANES_ZEROS // the largest distance
                     : fill == BSW_PLANES_ZEROS ? BSW_PLANES_ONES
                                                : fill;
    c.codes = kernelcheck_allocate(codes_words * sizeof *c.codes);
    c.query = kernelcheck_allocate(query_bits * segment.words * sizeof *c.query);
    c.expected = kernelcheck_allocate(c.num_dots * sizeof *c.expected);
    c.found = kernelcheck_allocate(c.num_dots * sizeof *c.found);
    bsw_planes_fill((enum bsw_plane_fill)fill, bsw_hash2(check->seed, 1), segment.dims,
                    num_bundles * segment.bits, BSW_BUNDLE_ROWS, c.codes);
    bsw_planes_fill((enum bsw_plane_fill)query_fill, bsw_hash2(check->seed, 2), segment.dims,
                    query_bits, 1, c.query);
    for (size_t i = 0; i < c.num_dots; i++)
        c.expected[i] = (int32_t)(kernelcheck_random(check, 3, i) % 2000001) - 1000000;
    memcpy(c.found, c.expected, c.num_dots * sizeof *c.found);
    return c;
}

static void check_range(struct kernelcheck *check, struct bsw_segment segment,
                        struct bsw_word_range range, size_t num_bundles, unsigned query_bits,
                        int accumulate, int fill)
{
    struct scan_case c = make_case(check, segment, num_bundles, query_bits, fill);
    bsw_plane_scan_reference.dots(&segment, range, c.codes, num_bundles, c.query, query_bits,
                                  accumulate, c.expected);
    bsw_plane_scan_table_get(check->level)
        ->dots(&segment, range, c.codes, num_bundles, c.query, query_bits, accumulate, c.found);
    kernelcheck_case(check,
                     "%u dims, words %u + %u, %u x %u bits, %zu bundles, accumulate %d, fill %d",
                     segment.dims, range.first, range.count, query_bits, segment.bits, num_bundles,
                     accumulate, fill);
    kernelcheck_compare(check, "dots", c.expected, c.found, c.num_dots * sizeof *c.found);
    kernelcheck_free(c.codes);
}

static void check_case(struct kernelcheck *check, struct bsw_segment segment, size_t num_bundles,
                       unsigned query_bits, int accumulate, int fill)
{
    check_range(check, segment, bsw_all_words(&segment), num_bundles, query_bits, accumulate, fill);
}

// One place in `every` of the rows, ascending.
static void check_rows(struct kernelcheck *check, struct bsw_segment segment,
                       struct bsw_word_range range, size_t num_bundles, unsigned query_bits,
                       unsigned every, int fill)
{
    struct scan_case c = make_case(check, segment, num_bundles, query_bits, fill);
    uint32_t *places = kernelcheck_allocate(c.num_dots * sizeof *places);
    size_t num = 0;
    for (uint32_t i = 0; i < c.num_dots; i++) {
        if (kernelcheck_random(check, 4, i) % every == 0) places[num++] = i;
    }
    bsw_plane_scan_reference.add_rows(&segment, range, c.codes, places, num, c.query, query_bits,
                                      c.expected);
    bsw_plane_scan_table_get(check->level)
        ->add_rows(&segment, range, c.codes, places, num, c.query, query_bits, c.found);
    kernelcheck_case(check, "%u dims, words %u + %u, %u x %u bits, %zu of %zu rows, fill %d",
                     segment.dims, range.first, range.count, query_bits, segment.bits, num,
                     c.num_dots, fill);
    kernelcheck_compare(check, "add_rows", c.expected, c.found, c.num_dots * sizeof *c.found);
    kernelcheck_free(c.codes);
}

// Every pair of bits; bundle counts, fills and accumulation take turns.
static void check_dims(struct kernelcheck *check, uint32_t dims)
{
    size_t turn = 0;
    for (uint32_t bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
        for (unsigned query_bits = 1; query_bits <= BSW_MAX_QUERY_BITS; query_bits++) {
            struct bsw_segment segment = make_segment(dims, bits);
            for (int fill = 0; fill < BSW_NUM_PLANE_FILLS; fill++, turn++) {
                check_case(check, segment, bundle_counts[turn % 3], query_bits, turn % 2, fill);
            }
            check_case(check, segment, bundle_counts[NUM_BUNDLE_COUNTS - 1], query_bits, 0,
                       BSW_PLANES_RANDOM);
        }
    }
}

// More words than a kernel may keep tables for at a time.
static void check_long_rows(struct kernelcheck *check)
{
    static const uint32_t dims[] = {1024, 1025, 2080};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        for (int fill = 0; fill < BSW_NUM_PLANE_FILLS; fill++) {
            check_case(check, make_segment(dims[i], 3), 2, 6, fill % 2, fill);
            check_case(check, make_segment(dims[i], 8), 3, 7, fill % 2, fill);
        }
    }
}

// Every part of segments of up to 5 words, the last one whole and not; then long ones, beyond what
// a kernel may keep tables for at a time.
static void check_ranges(struct kernelcheck *check)
{
    static const uint32_t dims[] = {32, 33, 96, 100, 160};
    static const struct bsw_word_range long_ranges[] = {
        {0, 33}, {1, 32}, {31, 3}, {33, 1}, {7, 20}};
    static const unsigned every[] = {1, 2, 9, 50};
    size_t turn = 0;
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        for (uint32_t bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
            struct bsw_segment segment = make_segment(dims[i], bits);
            for (uint32_t first = 0; first < segment.words; first++) {
                for (uint32_t count = 1; first + count <= segment.words; count++, turn++) {
                    struct bsw_word_range range = {first, count};
                    size_t num_bundles = bundle_counts[turn % 3];
                    unsigned query_bits = 1 + (unsigned)turn % BSW_MAX_QUERY_BITS;
                    int fill = (int)(turn % BSW_NUM_PLANE_FILLS);
                    check_range(check, segment, range, num_bundles, query_bits, turn % 2, fill);
                    check_rows(check, segment, range, num_bundles, query_bits, every[turn % 4],
                               fill);
                }
            }
        }
    }
    for (size_t i = 0; i < sizeof long_ranges / sizeof long_ranges[0]; i++) {
        struct bsw_segment segment = make_segment(34 * 32 - 5, 3);
        check_range(check, segment, long_ranges[i], 3, 6, i % 2, BSW_PLANES_RANDOM);
        check_rows(check, segment, long_ranges[i], 65, 6, every[i % 4], BSW_PLANES_RANDOM);
    }
}

void check_plane_scan(struct kernelcheck *check)
{
    for (size_t i = 0; i < kernelcheck_num_dims; i++) check_dims(check, kernelcheck_dims[i]);
    check_long_rows(check);
    check_ranges(check);
}
