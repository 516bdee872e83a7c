// SPDX-License-Identifier: Apache-2.0
// table_bounds: which rows of product codes may reach a query's limit, without a table for query
// and list; an idea of Quick ADC (André, Kermarrec, Le Scouarnec) and FAISS's fast scan, but as a
// filter before sums in float32, so that answers keep their bytes.
//
// A squared distance is a sum over parts of
//   d_p(j) = max(0, ((L_p[j] + Q_p[j]) + B_p)),  L of the list, Q of the query, B of both
// (shard/codecs/product_codes.h). For a row the sum of its L_p, R, is of its list alone; what is
// left to look up is Q, which is of the query alone: so one table a query serves all lists. Its
// numbers are rounded down to bytes: Q_p[j] >= least_p + unit * numbers[p][j]. A row passes if
//   R + unit * sum over p of numbers[p][code] <= most
// and `most` is such that no row fails which the query wants (bsw_bound_most). Of rows that pass
// the sums are computed as they are defined.
//
// 4-bit codes are looked up by shuffles, once a query. With 8 bits the bytes of 16 queries lie side
// by side, so that a row's code reads all of them at once.
//
// Where a query has one table for all rows, of any type, bytes are of that table itself, and R is 0
// (bsw_bound_most_of_table).
//
// Nothing here can fail or allocate. Thread-safe. Every level gives the bits of the reference.
#ifndef BITSWEEP_KERNELS_TABLE_BOUNDS_H
#define BITSWEEP_KERNELS_TABLE_BOUNDS_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/c_linkage.h"
#include "common/codes/code_layout.h"
#include "kernels/kernel_table.h"
#include "kernels/table_scan/table_scan.h"

BSW_C_BEGIN

#define BSW_BOUND_QUERIES   16  // of a call
#define BSW_BOUND_MAX_PARTS 257 // sums of their bytes are below 2^16

// Bytes of a query's table: with 4 bits of an even number of parts.
static inline size_t bsw_bound_bytes(const struct bsw_product_book *book)
{
    return (size_t)(book->parts + (book->parts & 1)) << book->bits;
}

// Bytes of scratch of a call of `pass`.
#define BSW_BOUND_PART_BLOCK 8
static inline size_t bsw_bound_room_bytes(size_t num_bundles)
{
    return (size_t)BSW_BOUND_PART_BLOCK * 256 * BSW_BOUND_QUERIES +
           num_bundles * BSW_BUNDLE_ROWS * BSW_BOUND_QUERIES * sizeof(uint16_t);
}

// Rows of one list. Arrays borrowed; terms 64-byte aligned.
struct bsw_bound_rows {
    uint32_t parts, bits;
    const uint8_t *codes; // as table_scan has them
    size_t bundle_bytes, num_bundles;
    const float *terms;    // R: [32 * num_bundles], finite
    const uint32_t *masks; // rows that count
};

struct bsw_bound_query {
    const uint8_t *numbers; // bsw_bound_bytes
    float unit, most;       // most: -infinity: none passes
};

// What rows' exact sums are made of. Arrays borrowed.
struct bsw_bound_terms {
    const struct bsw_product_book *book;
    const float *list;  // L: [parts][2^bits]
    const float *query; // what Q is the product of with entries: [parts * part_dims]
    const float *bases; // B: [parts]
};

// The scale of a query's numbers.
struct bsw_bound_scale {
    float unit;
    double least; // sum over p of least_p
};

struct bsw_table_bounds_table {
    const char *level;

    // numbers[p][j] = trunc((terms[p][j] - least_p) * (1 / unit) less a little), at most 255, where
    // least_p is the part's least number and unit the widest part's range / 255. terms:
    // [parts][2^bits], finite; numbers: bsw_bound_bytes, zeros behind an odd last part.
    struct bsw_bound_scale (*narrow)(const struct bsw_product_book *book, const float *terms,
                                     uint8_t *numbers);

    // masks[q][bundle]: rows that pass, of rows->masks. num_queries: 1 to BSW_BOUND_QUERIES; room:
    // bsw_bound_room_bytes, 64-byte aligned.
    void (*pass)(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                 size_t num_queries, void *room, uint32_t *masks);

    // The sum over d of (x[d] - y[d])^2, each lane d % 16 a chain of fma from +0.0, lanes added in
    // ascending order. dims: a multiple of 16.
    float (*gap)(const float *x, const float *y, size_t dims);

    // bases[p]: the chain over d ascending of fmaf(x - y, x - y, sum) from +0.0 of part p.
    void (*bases)(const struct bsw_product_book *book, const float *x, const float *y,
                  float *bases);

    // sums[i]: over p ascending of max(0, (L + Q) + B) of row places[i], Q a chain over d ascending
    // of fmaf(query, entry, sum) from +0.0: the bits that tables and `sums` of table_scan give.
    void (*sums)(const struct bsw_bound_terms *terms, const uint8_t *codes, size_t bundle_bytes,
                 const uint32_t *places, size_t num_places, float *sums);
};

BSW_KERNEL_LEVELS(table_bounds);

// What narrow divides by: the unit for a range, and its inverse; 0 where all numbers are 0. The
// inverse is 2^-20 smaller, which is more than the four roundings on the way to a number can add
// (of unit, of the inverse, of the difference, of the product: 2^-24 each), so unit * number <= the
// difference.
static inline float bsw_bound_unit(float range, float *inverse)
{
    float unit = range * (1.0f / 255);
    *inverse = 0.0f;
    if (!(unit >= 0x1p-100f)) return 0.0f;
    *inverse = (1.0f - 0x1p-20f) / unit;
    return unit;
}

// `most` of a query and a list. With u = 2^-24 and A at least the sum over p of |L_p| + |Q_p| + B_p
// for any codes: a float d_p is no less than L + Q + B - 3 u A_p (three roundings of numbers no
// larger than A_p; max only raises it), their float sum S no less than (1 - M u) times that of d_p
// (all >= 0), R no more than the sum of its L_p + 1.01 M u A, and `base` no more than the sum of
// B_p + (2 dims + 4) u base, as both are sums of the same squares. So S <= limit implies
//   R + unit * (sum of numbers) <= limit (1 + 2 M u) - least - base
//                                  + (3 + 1.01 M + 2 dims + 4) u A
// in real numbers. The kernel's one fma rounds monotonously, and `most` is rounded up.
// A: |L_p| <= |e|^2 + 2 |c'_p| |e| and |Q_p| <= 2 |q'_p| |e|, so with the inequality of Cauchy and
// Schwarz over parts, and a hundredth for the roundings of L, Q and B themselves,
//   A = 1.01 (entries + base + 2 (|q'| + |c'|) sqrt(entries)).
// Squares below 2^-126 lose up to 2^-150 each, which no share of A covers: entries are taken 2^-148
// a dimension larger, and the sums of squares of base and B differ by no more than that.
// limit >= 0: of sums, may be infinite; least: of narrow; base: of gap, of all dimensions; entries:
// sum over p of the largest |e|^2; lengths: |q'| + |c'|.
static inline double bsw_bound_size(const struct bsw_product_book *book, double base,
                                    double entries, double lengths)
{
    double dims = (double)book->parts * book->part_dims, tiny = 0x1p-148 * dims;
    return 1.01 * (entries + tiny + base + 2 * lengths * sqrt(entries + tiny));
}

static inline float bsw_bound_most(const struct bsw_product_book *book, double limit, double least,
                                   double base, double entries, double lengths)
{
    double u = 0x1p-24, dims = (double)book->parts * book->part_dims, parts = book->parts,
           tiny = 0x1p-148 * dims, all = bsw_bound_size(book, base, entries, lengths),
           slack = (8 + 1.25 * parts + 2 * dims) * u * all + 2.5 * parts * u * limit + tiny;
    return nextafterf((float)(limit - least - base + slack), INFINITY);
}

// The limit of float32 sums that stands for one of tables of another type. Their numbers are
// t_p = decode(encode(d_p 2^x)), x such that the largest is below what encode cuts off. A byte
// stands for the middle of its cell, whose end is at most 1 + 2^-V times its begin (V bits of
// mantissa), so
//   t_p >= c d_p 2^x,  c = 1 - 1 / (2 (2^V + 1));  below the cells t_p is larger than d_p 2^x.
// A half is nearest: t_p >= (1 - 2^-11) d_p 2^x - 2^-25, and 2^-x is at most 2^-14 of the largest
// d_p, or 2^-120 where x ends. Products with 2^x may round by 2^-150 on either side. So with `size`
// (of bsw_bound_size) not below any d_p, a float sum of t_p times 2^-x of at most `limit` implies
//   sum over p of d_p <= ((limit + 2^-149) (1 + 2 M u) + M max(2^-39 size, 2^-145)) / c
// in real numbers, the last summand of halves alone.
static inline double bsw_bound_type_limit(enum bsw_table_type type, uint32_t parts, double limit,
                                          double size)
{
    double u = 0x1p-24,
           lost = type == BSW_TABLE_FLOAT16 ? 0x1p-11
                  : type == BSW_TABLE_E5M3  ? 1.0 / 18
                                            : 1.0 / 34,
           halves = type == BSW_TABLE_FLOAT16 ? parts * fmax(0x1p-39 * size, 0x1p-145) : 0;
    if (type == BSW_TABLE_FLOAT32) return limit;
    return ((limit + 0x1p-149) * (1 + 2.5 * parts * u) + halves) / (1 - lost);
}

// ---- one table for all rows ----
//
// Without lists of residuals, and under ip and cosine, a query has one table for all rows, of
// numbers t_p(j) of any type. Then bytes are of these numbers themselves, s t_p with s = -1 where
// more is better (keys that grow with sums), else 1; all R are 0. A key is
//   fl(fl(S m) + addition),  S the float sum of t_p,  |m| a power of two, s = -sign(m).
// With A = sum over p of max over j of |t_p(j)|, S is within 1.01 M u A of the sum of t_p. S m
// loses at most 2^-150, where it is subnormal. Rounding is monotonous, so a key of at least `limit`
// has
//   S m + addition >= limit - u |limit| - 2^-149
// and, all divided by |m|, its row
//   unit * (sum of numbers) <= (addition - limit) / |m| - least + 1.01 M u A
//                              + (u |limit| + 2^-149) / |m|
// in real numbers. What is added covers doubles, too: 2^-53 of each of these. The kernel's one fma
// rounds monotonously, and the result is rounded up.
// least: of narrow; size: A, finite; limit: finite. Of large numbers, where S m may not be finite,
// infinity: all rows pass.
#define BSW_BOUND_MOST_SIZE 0x1p100
static inline float bsw_bound_most_of_table(uint32_t parts, double least, double size,
                                            double multiplier, double addition, double limit)
{
    double u = 0x1p-24, m = fabs(multiplier),
           slack = (1.25 * parts + 2) * u * size +
                   (1.25 * u * (fabs(limit) + fabs(addition)) + 0x1p-149) / m;
    if (!(size * m <= BSW_BOUND_MOST_SIZE)) return INFINITY;
    double most = (addition - limit) / m - least + slack;
    return most <= (double)FLT_MAX ? nextafterf((float)most, INFINITY) : INFINITY;
}

// A; numbers: of a table, [parts][2^bits]. Infinity where one of them is that, or NaN: bits of
// these are above those of all other floats without sign.
static inline double bsw_bound_table_size(const struct bsw_product_book *book, const float *numbers)
{
    size_t num = bsw_product_entries(book);
    double sum = 0;
    for (uint32_t p = 0; p < book->parts; p++) {
        uint32_t most = 0;
        float largest;
        for (size_t j = 0; j < num; j++) {
            uint32_t bits;
            memcpy(&bits, &numbers[p * num + j], sizeof bits);
            bits &= 0x7fffffffu;
            most = bits > most ? bits : most;
        }
        if (most > 0x7f800000u) most = 0x7f800000u;
        memcpy(&largest, &most, sizeof largest);
        sum += (double)largest;
    }
    return sum;
}

// Sum over parts of the largest |e|^2.
static inline double bsw_bound_entries(const struct bsw_product_book *book)
{
    size_t num = bsw_product_entries(book);
    double sum = 0;
    for (uint32_t p = 0; p < book->parts; p++) {
        float largest = 0.0f;
        for (size_t i = p * num; i < (p + 1) * num; i++)
            largest = book->norms[i] > largest ? book->norms[i] : largest;
        sum += (double)largest;
    }
    return sum;
}

BSW_C_END
#endif
