// SPDX-License-Identifier: Apache-2.0
// Radii of queries' projections: how near an entry has to be for a search to look at it, after JUNO
// (Liu et al., ASPLOS 2024, Section 4.1). Of product codes with parts of 2 dimensions.
//
// In each part the plane of queries' projections is divided into 100 x 100 cells, over the box that
// holds those of the sample; a cell's density is the number of rows in it, over its area. A
// polynomial in the logarithm of density gives the radius: it is fitted, by least squares, to what
// some rows of the sample would have needed as queries, so that the projections of their true 100
// neighbours in the sample lie within. Projections outside the box have the nearest cell.
//
//   l2:          queries are (q - mu) R; the radius holds |q_p - x_p|
//   ip, cosine:  queries are q R; radius^2 holds |q_p|^2 - 2 <q_p, y_p>, with y_p what is coded of
//                a row: JUNO's spheres of radius sqrt(R^2 + |e|^2) (kernels/entries_within)
//
// What an index keeps is the box, the counts and the polynomial of each part. Radii of cells are
// computed from them where it is opened, by operations that are the same on every machine.
#ifndef BITSWEEP_SHARD_PRODUCT_RADII_H
#define BITSWEEP_SHARD_PRODUCT_RADII_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/memory.h"

BSW_C_BEGIN

#define BSW_RADII_CELLS     100 // a side of a box
#define BSW_RADII_MAP       ((size_t)BSW_RADII_CELLS * BSW_RADII_CELLS)
#define BSW_RADII_DEGREE    3
#define BSW_RADII_NEIGHBORS 100 // that a radius is to hold

// The fit of one part.
struct bsw_radii_fit {
    double middle, half;                       // of the logarithms of density that were fitted
    double least, most;                        // of the radii that were: what is given is between
    double coefficients[BSW_RADII_DEGREE + 1]; // of powers of (log2 density - middle) / half
};

// Owned arrays.
struct bsw_product_radii {
    uint32_t parts;
    float *boxes;               // [parts][4]: least x, least y, most x, most y
    uint16_t *counts;           // [parts][cells of y][cells of x], at most 65,535
    struct bsw_radii_fit *fits; // [parts]
    float *radii;               // [parts][cells of y][cells of x]; positive, finite
    float *ends;                // [parts][2]: the least and the largest of cells that have rows
};

// What radii are: of the projection's cell; or the least or largest of its part, whatever the cell;
// or none of these but those of selective_table.h.
enum bsw_radii_kind { BSW_RADII_DYNAMIC, BSW_RADII_SMALL, BSW_RADII_LARGE, BSW_RADII_NEAREST };
#define BSW_RADII_KINDS "dynamic|small|large|nearest"

enum bsw_status bsw_product_radii_create(uint32_t parts, struct bsw_product_radii **out,
                                         struct bsw_error *err);
// Bytes in a manifest, or in memory.
static inline uint64_t bsw_product_radii_bytes(uint64_t parts, int is_file)
{
    uint64_t cell = sizeof(uint16_t) + (is_file ? 0 : sizeof(float)),
             ends = is_file ? 0 : 2 * sizeof(float);
    return parts * (BSW_RADII_MAP * cell + 4 * sizeof(float) + sizeof(struct bsw_radii_fit) + ends);
}
void bsw_product_radii_destroy(struct bsw_product_radii **radii); // accepts NULL inside

// A part's box around num projections, two numbers each, `stride` apart, and how many lie in each
// of its cells, which are 0.
void bsw_product_radii_count(struct bsw_product_radii *radii, uint32_t part, const float *at,
                             size_t stride, size_t num);

// A projection's cell of a part: y * BSW_RADII_CELLS + x.
size_t bsw_product_radii_cell(const struct bsw_product_radii *radii, uint32_t part, float x,
                              float y);
// log2 of a cell's density; an empty one counts as half a row.
double bsw_product_radii_density(const struct bsw_product_radii *radii, uint32_t part, size_t cell);

// The fit of radii to logarithms of density, [num] each, num >= 1.
struct bsw_radii_fit bsw_product_radii_fit(const double *densities, const double *radii,
                                           size_t num);
double bsw_product_radii_of(const struct bsw_radii_fit *fit, double density);

// Radii of all cells, and their ends, once boxes, counts and fits are there.
void bsw_product_radii_finish(struct bsw_product_radii *radii);

// kind: not BSW_RADII_NEAREST.
static inline float bsw_product_radius(const struct bsw_product_radii *radii,
                                       enum bsw_radii_kind kind, uint32_t part, float x, float y)
{
    if (kind != BSW_RADII_DYNAMIC) return radii->ends[2 * part + (kind == BSW_RADII_LARGE)];
    return radii->radii[part * BSW_RADII_MAP + bsw_product_radii_cell(radii, part, x, y)];
}

BSW_C_END
#endif
