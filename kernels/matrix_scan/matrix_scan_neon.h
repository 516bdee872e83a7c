// What the levels of Arm do alike in matrix_scan: planes to bytes, and blocks of queries against
// runs of bundles. A level gives its products.
#ifndef BITSWEEP_KERNELS_MATRIX_SCAN_NEON_H
#define BITSWEEP_KERNELS_MATRIX_SCAN_NEON_H

#include "kernels/matrix_scan/matrix_scan.h"

#define BSW_NEON_BLOCK_BUNDLES 8 // integers of a query between scan and filter
#define BSW_NEON_MAX_QUERIES   8 // of a block
#define BSW_NEON_HALF_ROWS     16

// What a block multiplies.
struct bsw_neon_factors {
    const uint8_t *rows;      // 16, from their first dimension on
    const int8_t *components; // of the first query
    size_t stride;            // dimensions between queries
    size_t dims;              // to multiply, a multiple of 32
    int is_turned;            // u - 128 is to be multiplied in place of u
    int weight;               // what is stored: constant + weight * sum
};

// Integers of 16 rows with some queries; those of a query are BSW_NEON_BLOCK_BUNDLES bundles apart.
// dots 64-byte aligned.
typedef void bsw_neon_multiply_fn(const struct bsw_neon_factors *factors, const int32_t *constants,
                                  int32_t *dots);

struct bsw_neon_products {
    size_t num_queries; // of a block, at most BSW_NEON_MAX_QUERIES
    int takes_large;    // multiplies bytes above 127 as they are
    bsw_neon_multiply_fn *multiply[BSW_NEON_MAX_QUERIES + 1]; // by number of queries
};

// As in bsw_matrix_scan_table.
void bsw_neon_unpack(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                     size_t num_bundles, uint8_t *bytes);
void bsw_neon_unpack_query(const struct bsw_code_layout *layout, const uint32_t *words,
                           unsigned query_bits, int8_t *components, int32_t *constant);
void bsw_neon_scan(const struct bsw_neon_products *products, const struct bsw_matrix_tile *tile,
                   const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs);
void bsw_neon_scan_staged(const struct bsw_neon_products *products,
                          const struct bsw_matrix_tile *tile, const struct bsw_matrix_stage *stage,
                          const struct bsw_matrix_queries *queries,
                          struct bsw_matrix_output *outputs, struct bsw_stage_counts *counts);

#endif
