// plane_scan: XOR and popcount of bit planes, the integers of XFBQ Eq. 10 and Eq. 7.
//
// One query over a tile of bundles. Pair by pair of planes that is one XOR, one popcount and one
// weighted add a bundle word; the SIMD levels look up the distance of 4 dimensions to all query
// planes in a table instead, so that a word costs the same for 1 to 6 query bits and one query is
// bound by memory: 36 bytes a document at 96 dims and 3 bits. Making the tables costs as much as
// scanning one or two bundles. Tiles are sized by the caller so that `dots` stays in the first
// cache.
#ifndef BITSWEEP_KERNELS_PLANE_SCAN_H
#define BITSWEEP_KERNELS_PLANE_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/code_layout.h"
#include "common/cpu_level.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bsw_plane_scan_table {
    const char *level;

    // dots[32*b + lane] = (or +=, if accumulate) d*(2^Bq - 1)*(2^B - 1) - 2*distance for one
    // segment, distance = sum over plane pairs (i of query, j of document) of popc(q_i xor d_j) <<
    // (Bq-1-i + B-1-j). codes: [num_bundles][bits][words][32], 64-byte aligned; query:
    // [query_bits][words]; query_bits 1 .. 7; dots: [num_bundles * 32], 64-byte aligned. Padding
    // lanes (codes 0) get a value too: mask them when selecting. Cannot fail; thread-safe;
    // integers, so every level gives the same.
    void (*dots)(const struct bsw_segment *segment, const uint32_t *codes, size_t num_bundles,
                 const uint32_t *query, unsigned query_bits, int accumulate, int32_t *dots);
};

const struct bsw_plane_scan_table *bsw_plane_scan_table_get(enum bsw_cpu_level level);

// The levels themselves, one a file; ask bsw_plane_scan_table_get, which knows what is built in.
extern const struct bsw_plane_scan_table bsw_plane_scan_reference;
#if defined(__x86_64__)
extern const struct bsw_plane_scan_table bsw_plane_scan_avx2;
extern const struct bsw_plane_scan_table bsw_plane_scan_avx512;
#endif

#ifdef __cplusplus
}
#endif
#endif
