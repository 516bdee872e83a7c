// SPDX-License-Identifier: Apache-2.0
// How the codes of 32 documents lie in memory: bundles, segment after segment.
//
// A coded vector is a row of segments. A segment has `dims` dimensions in `bits` planes; word w of
// plane p of document 32*b + lane is at ((b*bits + p)*words + w)*32 + lane of the segment's own
// array, words = ceil(dims / 32). One warp load, or two AVX-512 registers, is one plane word of 32
// documents. Dimension i of the segment is bit i mod 32 of word i / 32. Plane 0 weighs most. Bit 1
// stands for -1 (XFBQ Eq. 1). Padding bits are 0 in documents and in queries.
//
// Read as an integer with plane 0 on top the bits of a component are u in [0, 2^bits - 1]; its
// value is the odd integer c = (2^bits - 1) - 2u.
//
// raw has one segment of 8 bits whose bundles hold as many bytes in another order, the one that
// matrix_scan takes: no planes, but u of row 16*h + r (h: half of the bundle), padded dimension
// 4*g + i as the byte at ((h * 8*words + g) * 16 + r) * 4 + i. Padding is 0 here too.
#ifndef BITSWEEP_COMMON_CODE_LAYOUT_H
#define BITSWEEP_COMMON_CODE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

#define BSW_BUNDLE_ROWS    32
#define BSW_MAX_SEGMENTS   32
#define BSW_MAX_CODE_BITS  8
#define BSW_MAX_QUERY_BITS 7
#define BSW_MAX_DIMS       65536

// CALL(bits), with the bits of a code as a constant.
#define BSW_SWITCH_BITS(bits, CALL) \
    switch (bits) {                 \
        BSW_CASE_BITS(1, CALL)      \
        BSW_CASE_BITS(2, CALL)      \
        BSW_CASE_BITS(3, CALL)      \
        BSW_CASE_BITS(4, CALL)      \
        BSW_CASE_BITS(5, CALL)      \
        BSW_CASE_BITS(6, CALL)      \
        BSW_CASE_BITS(7, CALL)      \
    default:                        \
        CALL(8);                    \
    }
#define BSW_CASE_BITS(constant, CALL) \
    case constant:                    \
        CALL(constant);               \
        break;

struct bsw_segment {
    uint32_t dims;  // 1 .. BSW_MAX_DIMS
    uint32_t bits;  // 1 .. 8
    uint32_t words; // ceil(dims / 32)
    uint32_t
        padded_dim; // where the segment starts among padded dimensions: 32 * words of those before
};

struct bsw_code_layout {
    uint32_t dims;        // sum of the segments' dims
    uint32_t padded_dims; // sum of 32 * words
    uint32_t num_segments;
    struct bsw_segment segments[BSW_MAX_SEGMENTS];
};

// Starts an empty layout; then one call per segment. Fails (BSW_ERROR_USAGE) on bits or dims out of
// range or too many.
void bsw_code_layout_init(struct bsw_code_layout *layout);
enum bsw_status bsw_code_layout_append(struct bsw_code_layout *layout, uint32_t dims, uint32_t bits,
                                       struct bsw_error *err);

// Parses "128x3" or "32x4,96x2" (dims x bits); the sum must be `dims`.
enum bsw_status bsw_code_layout_parse(const char *text, uint32_t dims, struct bsw_code_layout *out,
                                      struct bsw_error *err);

// Writes the same form back; capacity in bytes, truncated but terminated.
void bsw_code_layout_format(const struct bsw_code_layout *layout, char *text, size_t capacity);

// The largest |dot| and distance with queries of query_bits must fit int32: BSW_ERROR_USAGE with
// the numbers if not.
enum bsw_status bsw_code_layout_check(const struct bsw_code_layout *layout, uint32_t query_bits,
                                      struct bsw_error *err);

// The segments of the first padded_dims padded dimensions, which have to end with one; 0 if they do
// not. Codes and queries of the whole layout then serve as those of the first dimensions.
int bsw_code_layout_first(const struct bsw_code_layout *layout, uint32_t padded_dims,
                          struct bsw_code_layout *out);

// uint32 words of one bundle of one segment: bits * words * 32.
static inline size_t bsw_segment_bundle_words(const struct bsw_segment *segment)
{
    return (size_t)segment->bits * segment->words * BSW_BUNDLE_ROWS;
}

// uint32 words of one query: the sum over segments of query_bits * words. A query's segment s is
// [query_bits][words], segments one after another.
static inline size_t bsw_layout_query_words(const struct bsw_code_layout *layout,
                                            uint32_t query_bits)
{
    return (size_t)(layout->padded_dims / 32) * query_bits;
}

// Bytes of the planes of one document, averaged over a full bundle.
static inline double bsw_layout_row_bytes(const struct bsw_code_layout *layout)
{
    size_t words = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        words += (size_t)layout->segments[s].bits * layout->segments[s].words;
    }
    return (double)words * 4;
}

// d*(2^Bq - 1)*(2^B - 1) summed over segments: dot = this - 2*distance (XFBQ Eq. 7).
static inline int64_t bsw_layout_dot_limit(const struct bsw_code_layout *layout,
                                           uint32_t query_bits)
{
    int64_t limit = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        limit += (int64_t)segment->dims * ((1 << query_bits) - 1) * ((1 << segment->bits) - 1);
    }
    return limit;
}

static inline size_t bsw_num_bundles(size_t num_rows)
{
    return num_rows / BSW_BUNDLE_ROWS + (num_rows % BSW_BUNDLE_ROWS != 0);
}

// ---- bits of rows ----

// Row i is bit i % 32 of word i / 32.
static inline size_t bsw_row_bit_words(uint64_t num_rows)
{
    return (size_t)((num_rows + 31) / 32);
}

static inline int bsw_row_bit(const uint32_t *bits, uint64_t row)
{
    return bits[row / 32] >> row % 32 & 1;
}

static inline void bsw_row_bit_set(uint32_t *bits, uint64_t row)
{
    bits[row / 32] |= 1u << row % 32;
}

BSW_C_END
#endif
