// SPDX-License-Identifier: Apache-2.0
// Words of encode: 32 lanes, those of kernel_sums.h, in registers of the level. Each includes this
// before its own clipped_floor and store_word, which are declared here.
#ifndef BITSWEEP_KERNELS_ENCODE_LANES_H
#define BITSWEEP_KERNELS_ENCODE_LANES_H

#include "kernels/lanes.h"

#include "common/codes/half.h"
#include "kernels/encode/encode.h"

#if defined(LANES) // nothing without it

typedef int32_t codes __attribute__((vector_size(4 * LANES)));

// Lane k * LANES + i is lane i of v[k].
struct lanes {
    floats v[WORD];
};

struct lane_codes {
    codes v[WORD];
};

// The level's: floor(v) clipped to [low, high], which are whole; a NaN gives low.
INLINE codes clipped_floor(floats v, floats low, floats high);

// The level's: the plane words of 32 codes of one document, whose floors f are: u = 2^(bits-1) - 1
// - f is f with all bits but the sign turned. word is plane 0's; planes are plane_stride apart.
INLINE void store_word(struct lane_codes f, unsigned bits, uint32_t valid, uint32_t *word,
                       size_t plane_stride);

INLINE struct lanes zero_lanes(void)
{
    return (struct lanes){{{0}}};
}

INLINE uint32_t first_lanes(size_t n)
{
    return n >= 32 ? 0xffffffffu : (1u << n) - 1u;
}

// How many of n lanes are in register k.
INLINE size_t lanes_in(size_t n, size_t k)
{
    return n > k * LANES ? n - k * LANES : 0;
}

// n floats of 32 from x; the rest is +0.0 and not read. n is a constant 32 in the loops.
INLINE struct lanes load_lanes(const float *x, size_t n)
{
    struct lanes y;
    for (size_t k = 0; k < WORD; k++) y.v[k] = load_some(x + k * LANES, lanes_in(n, k));
    return y;
}

INLINE void store_lanes(float *x, size_t n, struct lanes y)
{
    for (size_t k = 0; k < WORD; k++) store_some(x + k * LANES, lanes_in(n, k), y.v[k]);
}

// Lanes from n on keep s: adding +0.0 would turn a -0.0 there into +0.0.
INLINE struct lanes add_products(struct lanes a, struct lanes b, struct lanes s, size_t n)
{
    for (size_t k = 0; k < WORD; k++) {
        floats sum = multiply_add(a.v[k], b.v[k], s.v[k]);
        s.v[k] = n >= 32 ? sum : choose(first_marks(lanes_in(n, k)), sum, s.v[k]);
    }
    return s;
}

INLINE float lanes_sum(struct lanes s)
{
    for (size_t h = WORD / 2; h > 0; h /= 2)
        for (size_t k = 0; k < h; k++) s.v[k] = s.v[k] + s.v[k + h];
    return tree_sum(s.v[0]);
}

// Adds c^2 of places first .. last - 1 of 32.
INLINE codes add_code_squares(codes sum, struct lane_codes c, size_t first, size_t last)
{
    for (size_t k = 0; k < WORD; k++) {
        codes square = c.v[k] * c.v[k];
        if (last - first < 32)
            square = (codes)only(first_marks(lanes_in(last, k)), (floats)square) -
                     (codes)only(first_marks(lanes_in(first, k)), (floats)square);
        sum += square;
    }
    return sum;
}

INLINE uint32_t sum_codes(codes x)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < LANES; i++) sum += (uint32_t)x[i];
    return sum;
}

// Three products in this order: scale times a power of two at once would differ where y * scale is
// subnormal.
INLINE void xfbq_word(const float *x, size_t n, float factor, float scale, unsigned bits,
                      uint32_t *word, size_t plane_stride)
{
    float end = (float)(1 << (bits - 1));
    floats low = every(-end), high = every(end - 1.0f);
    struct lanes v = load_lanes(x, n);
    struct lane_codes f;
    for (int k = 0; k < WORD; k++)
        f.v[k] = clipped_floor(v.v[k] * every(factor) * every(scale) * every(end), low, high);
    store_word(f, bits, first_lanes(n), word, plane_stride);
}

// One row's lanes of mean * centered; writes centered.
INLINE struct lanes center_word(const float *x, const float *mean, float factor, size_t n,
                                struct lanes dot, float *centered)
{
    struct lanes o = load_lanes(x, n), m = load_lanes(mean, n);
    for (int k = 0; k < WORD; k++) o.v[k] = o.v[k] * every(factor) - m.v[k];
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
    codes squares = {0};
    for (size_t i = 0; i < segment->dims; i += 32, word += BSW_BUNDLE_ROWS) {
        size_t n = segment->dims - i < 32 ? segment->dims - i : 32;
        struct lanes x = load_lanes(o + i, 32), c;
        struct lane_codes f, odd;
        for (int k = 0; k < WORD; k++) {
            f.v[k] = clipped_floor(x.v[k] * every(inverse), low, high);
            odd.v[k] = f.v[k] + f.v[k] + 1;
            c.v[k] = __builtin_convertvector(odd.v[k], floats); // exact
        }
        e = add_products(x, c, e, 32);
        store_word(f, bits, first_lanes(n), word, plane_stride);
        size_t first = stage_place > i ? stage_place - i : 0;
        if (first < n) squares = add_code_squares(squares, odd, first, n);
    }
    *tail += sum_codes(squares);
    return lanes_sum(e);
}

#endif
#endif
