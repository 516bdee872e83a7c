// SPDX-License-Identifier: Apache-2.0
// Words of encode of levels whose struct lanes is an array of registers, v[32 / LANES]. Each
// includes this behind that, its types floats and integers, every, multiply_add, load_lanes,
// store_lanes, add_products, tree_sum, clipped_floor, store_word, add_code_squares and
// sum_integers.
#ifndef BITSWEEP_KERNELS_ENCODE_LANES_H
#define BITSWEEP_KERNELS_ENCODE_LANES_H

#include "kernels/encode/encode.h"

#if defined(LANES) // nothing without it

INLINE struct lanes zero_lanes(void)
{
    return (struct lanes){{{0}}};
}

INLINE uint32_t first_lanes(size_t n)
{
    return n >= 32 ? 0xffffffffu : (1u << n) - 1u;
}

// Three products in this order: scale times a power of two at once would differ where y * scale is
// subnormal.
INLINE void xfbq_word(const float *x, size_t n, float factor, float scale, unsigned bits,
                      uint32_t *word, size_t plane_stride)
{
    float end = (float)(1 << (bits - 1));
    floats low = every(-end), high = every(end - 1.0f);
    struct lanes v = load_lanes(x, n);
    for (int k = 0; k < 32 / LANES; k++)
        v.v[k] = clipped_floor(v.v[k] * every(factor) * every(scale) * every(end), low, high);
    store_word(v, bits, first_lanes(n), word, plane_stride);
}

// One row's lanes of mean * centered; writes centered.
INLINE struct lanes center_word(const float *x, const float *mean, float factor, size_t n,
                                struct lanes dot, float *centered)
{
    struct lanes o = load_lanes(x, n), m = load_lanes(mean, n);
    for (int k = 0; k < 32 / LANES; k++) o.v[k] = o.v[k] * every(factor) - m.v[k];
    store_lanes(centered, n, o);
    return add_products(m, o, dot, n);
}

// One segment of one row; returns e_s. Places count in this segment; word is the document's first.
INLINE float quantize_segment(const struct bsw_segment *segment, const float *o, float inverse,
                              size_t stage_place, unsigned bits, uint32_t *word, uint32_t *tail)
{
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    float end = (float)(1 << (bits - 1));
    floats low = every(-end), high = every(end - 1.0f);
    struct lanes e = zero_lanes();
    integers squares = {0};
    for (size_t i = 0; i < segment->dims; i += 32, word += BSW_BUNDLE_ROWS) {
        size_t n = segment->dims - i < 32 ? segment->dims - i : 32;
        struct lanes x = load_lanes(o + i, 32), f, c;
        for (int k = 0; k < 32 / LANES; k++) {
            f.v[k] = clipped_floor(x.v[k] * every(inverse), low, high);
            c.v[k] = multiply_add(every(2.0f), f.v[k], every(1.0f)); // exact
        }
        e = add_products(x, c, e, 32);
        store_word(f, bits, first_lanes(n), word, plane_stride);
        size_t first = stage_place > i ? stage_place - i : 0;
        if (first < n) squares = add_code_squares(squares, c, first, n);
    }
    *tail += sum_integers(squares);
    return tree_sum(e);
}

#endif
#endif
