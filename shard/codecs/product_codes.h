// SPDX-License-Identifier: Apache-2.0
// Product codes: what codec pq codes rows by, and the tables that its queries are scanned with.
//
// With mu the mean of the sample and R the rotation (or nothing), a row's x' = (x - mu) R is cut
// into parts, and each part is coded as the number of its nearest codebook entry. With lists of
// residuals it is x' less (c - mu) R, c the list's centroid. Under cosine rows and queries are of
// unit length. `e` is a row's entry of part p:
//   l2:          q' = (q - mu) R, c' = (c - mu) R or 0;  key = -(sum over p of d_p(e))
//                d_p(e) = max(0, ((|e|^2 + 2 <c'_p, e>) + -2 <q'_p, e>) + |q'_p - c'_p|^2)
//   ip, cosine:  q' = q R;                               key = sum over p of <q'_p, e>
// What the key lacks under ip and cosine: <q, mu>, which is of the query alone, or with residuals
// <q, c>, of query and list (bsw_coarse_search_addition with a center of 0).
// d_p has a term of the list alone and one of the query alone, which is why it is written so: each
// is computed once. All is float32, chains of fma ascending in the dimension.
#ifndef BITSWEEP_SHARD_PRODUCT_CODES_H
#define BITSWEEP_SHARD_PRODUCT_CODES_H

#include "common/base/c_linkage.h"
#include "common/codes/metric.h"
#include "kernels/encode/encode.h"
#include "kernels/table_scan/table_scan.h"

struct bsw_product_radii; // shard/codecs/product_radii.h
struct bsw_selection;     // shard/codecs/selective_table.h
BSW_C_BEGIN

#define BSW_PRODUCT_MAX_DIMS  4096 // of rows, as R is dims^2 floats
#define BSW_PRODUCT_MAX_PARTS 4096

// Owned arrays are freed with the manifest that has it as its part.
struct bsw_product_codes {
    enum bsw_metric metric;
    uint32_t dims; // of rows
    uint32_t
        projected_dims; // of x': parts * part_dims, and padding to a multiple of 32, which is 0
    struct bsw_product_book book;
    char rotation[8];                // "opq", "random", "none"
    float *mean;                     // [dims]; owned
    float *matrix;                   // R: [dims][projected_dims]; owned; NULL without rotation
    float *entries, *norms;          // of the book; owned
    float *zeros;                    // [dims]; owned
    struct bsw_product_radii *radii; // of queries' projections (product_radii.h); owned; NULL: none
};

// Sizes of an index with so many parts: part_dims, projected_dims, empty arrays but for R.
enum bsw_status bsw_product_codes_create(enum bsw_metric metric, uint32_t dims, uint32_t parts,
                                         uint32_t bits, const char *rotation,
                                         struct bsw_product_codes **out, struct bsw_error *err);
void bsw_product_codes_destroy(struct bsw_product_codes **codes); // accepts NULL inside
// The entries' norms, once entries are there.
void bsw_product_codes_norms(struct bsw_product_codes *codes);

// What centres and projects rows; borrows. Its rotation may be NULL.
void bsw_product_frame(const struct bsw_product_codes *codes, struct bsw_saq_frame *out);
// Centred rows [num_rows][dims] to x' [num_rows][projected_dims], 64-byte aligned.
void bsw_product_project(const struct bsw_product_codes *codes,
                         const struct bsw_encode_table *kernels, const float *centred,
                         size_t num_rows, float *out);
// The same of one vector: `vector` * factor - mean. room: [dims].
void bsw_product_project_vector(const struct bsw_product_codes *codes,
                                const struct bsw_encode_table *kernels, const float *vector,
                                float factor, const float *mean, float *room, float *out);

// ---- tables ----

// A table's term of the query q' alone; room: [projected_dims].
void bsw_product_query_term(const struct bsw_product_codes *codes,
                            const struct bsw_table_scan_table *kernels, const float *query,
                            float *room, float *out);
// l2: that of the list alone. centroid: c', or NULL; room: [projected_dims].
void bsw_product_list_term(const struct bsw_product_codes *codes,
                           const struct bsw_table_scan_table *kernels, const float *centroid,
                           float *room, float *out);

// What a table is made of.
struct bsw_product_terms {
    const float *query, *query_term;   // q'
    const float *centroid, *list_term; // l2 alone: c' or NULL, and its term
};
// The table of a query, for a list: floats, rounded to what `type` has. out: [numbers], 64-byte
// aligned; bases: room, [parts]. Returns what its sums are multiplied by.
float bsw_product_table(const struct bsw_product_codes *codes,
                        const struct bsw_table_scan_table *kernels, enum bsw_table_type type,
                        const struct bsw_product_terms *terms, float *bases, float *out);
static inline struct bsw_code_table bsw_product_code_table(const struct bsw_product_codes *codes,
                                                           const float *numbers)
{
    return (struct bsw_code_table){
        .parts = codes->book.parts, .bits = codes->book.bits, .numbers = numbers};
}

// A query's scores of some rows, as plainly as they can be had: by the reference alone. selection:
// of entries, or NULL; a row that is not ranked has 0. centroid: of the rows' list, as given, or
// NULL; rows count from the first bundle. Without what keys lack.
struct bsw_product_rows {
    const uint8_t *bundles;
    size_t bundle_bytes, num;
    const uint32_t *rows; // [num]
};
enum bsw_status bsw_product_plain_scores(const struct bsw_product_codes *codes,
                                         enum bsw_table_type type,
                                         const struct bsw_selection *selection, const float *query,
                                         const float *centroid, const struct bsw_product_rows *rows,
                                         uint32_t *out, struct bsw_error *err);

BSW_C_END
#endif
