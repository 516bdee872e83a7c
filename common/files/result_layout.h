// SPDX-License-Identifier: Apache-2.0
// Where ids and values lie in a result file (result_file.h): for its writer and its reader.
#ifndef BITSWEEP_COMMON_RESULT_LAYOUT_H
#define BITSWEEP_COMMON_RESULT_LAYOUT_H

#include <stdint.h>

// Ids at first_byte, values behind all ids and what is between.
struct bsw_result_layout {
    uint64_t num_queries, k;
    uint64_t first_byte;    // 8 or 16; .npz: more
    uint64_t between_bytes; // .npz alone
    uint64_t id_bytes;      // 4 or 8
    uint64_t file_bytes;
    int is_npz;
};

// The layout of one form, which is .npz for a name that ends so; 0 if the file would pass what an
// offset holds.
int bsw_result_layout_make(const char *path, uint64_t num_queries, uint64_t k, int is_wide,
                           struct bsw_result_layout *out);

#endif
