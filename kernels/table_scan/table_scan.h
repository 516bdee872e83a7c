// SPDX-License-Identifier: Apache-2.0
// table_scan: product codes (Jégou, Douze, Schmid: Product Quantization for Nearest Neighbor
// Search) against tables of their queries.
//
// A row has `parts` codes of 4 or 8 bits, each the number of an entry of its part's codebook. A
// table has what each entry adds to a query's sum, [parts][2^bits] numbers, so a row's sum is one
// look-up and one addition a part: bound by loads for 8 bits, where nothing but the table is read
// twice, by shuffles for 4.
//
// Codes lie by bundles of 32 rows: byte b of all rows side by side, b ascending. With 8 bits byte b
// is the code of part b; with 4 its low half is part 2b, its high half part 2b + 1. Bytes of a
// bundle are padded to multiples of 4 x 32, with 0.
//
// Nothing here can fail or allocate. Thread-safe. Every level gives the bits of the reference:
// products are one fma chain a number, ascending in the dimension, sums ascend in the part.
#ifndef BITSWEEP_KERNELS_TABLE_SCAN_H
#define BITSWEEP_KERNELS_TABLE_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/codes/code_layout.h"
#include "kernels/kernel_table.h"
#include "kernels/table_scan/table_formats.h"

BSW_C_BEGIN

// Arrays borrowed, 64-byte aligned.
struct bsw_product_book {
    uint32_t parts, part_dims;
    uint32_t bits;        // 4 or 8
    const float *entries; // [parts][part_dims][2^bits]: dimension by dimension
    const float *norms;   // [parts][2^bits]: <e, e>, a chain from +0.0
};

static inline size_t bsw_product_entries(const struct bsw_product_book *book)
{
    return (size_t)1 << book->bits;
}
static inline size_t bsw_product_numbers(const struct bsw_product_book *book) // of a table
{
    return (size_t)book->parts << book->bits;
}
static inline size_t bsw_table_bytes(const struct bsw_product_book *book)
{
    return bsw_product_numbers(book) * sizeof(float);
}
static inline size_t bsw_product_code_bytes(uint32_t parts, uint32_t bits) // of a row
{
    return ((size_t)parts * bits / 8 + ((size_t)parts * bits % 8 != 0));
}

// What sums are made of. numbers: [parts][2^bits]; those of another type than float32 are the
// floats that they stand for.
struct bsw_code_table {
    uint32_t parts, bits;
    const float *numbers;
};

struct bsw_table_scan_table {
    const char *level;

    // out[p][j] = chain over d ascending of fmaf(x[p * part_dims + d], entry j of p at d, sum),
    // from start[p][j], or +0.0 where start is NULL. x: [parts * part_dims]; out 64-byte aligned.
    void (*products)(const struct bsw_product_book *book, const float *x, const float *start,
                     float *out);

    // codes[r][p]: the entry with the least chain over d ascending of fmaf(-2 x, entry, sum) from
    // its norm: the nearest; of equal ones the first. x: [num_rows][stride], row r's part p from
    // p * part_dims on; codes: [num_rows][parts].
    void (*nearest)(const struct bsw_product_book *book, const float *x, size_t stride,
                    size_t num_rows, uint8_t *codes);

    // out[p][j] = max(0, (list[p][j] + query[p][j]) + bases[p]); returns the largest of them. The
    // squared distance of an entry: see shard/codecs/product_codes.h.
    float (*distances)(const struct bsw_product_book *book, const float *list, const float *query,
                       const float *bases, float *out);

    // out[i] = the float that in[i] * 2^exponent as `type`, not float32, stands for
    // (table_formats.h); float16 rounds to nearest, ties to even. n: a multiple of 16; out may be
    // in.
    void (*round_numbers)(enum bsw_table_type type, int is_signed, int exponent, const float *in,
                          size_t n, float *out);

    // sums[row] = ((t_0 + t_1) + t_2) + ... in float32, t_p the table's number for the row's code
    // of part p. codes: num_bundles of bundle_bytes; sums: [32 * num_bundles].
    void (*sums)(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                 size_t num_bundles, float *sums);

    // sums[i]: the same of row places[i] alone.
    void (*sums_at)(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                    const uint32_t *places, size_t num_places, float *sums);

    // Appends candidates, rows ascending from first_row, of masked rows whose score is at least
    // limit; returns how many. key = (sums[i] * multiplier + 0.0f + addition) + 0.0f, each
    // operation rounded. items has room for all rows.
    size_t (*filter)(const float *sums, float multiplier, float addition, const uint32_t *masks,
                     size_t num_bundles, uint32_t first_row, uint32_t limit, uint64_t *items);
};

BSW_KERNEL_LEVELS(table_scan);

BSW_C_END
#endif
