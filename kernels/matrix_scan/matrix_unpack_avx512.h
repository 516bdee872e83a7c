// SPDX-License-Identifier: Apache-2.0
// unpack and unpack_query of bsw_matrix_scan_avx512: matrix_scan.h says what they do.
#ifndef BITSWEEP_KERNELS_MATRIX_UNPACK_AVX512_H
#define BITSWEEP_KERNELS_MATRIX_UNPACK_AVX512_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes/code_layout.h"

void bsw_unpack_avx512(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                       size_t num_bundles, uint8_t *bytes);
void bsw_unpack_query_avx512(const struct bsw_code_layout *layout, const uint32_t *words,
                             unsigned query_bits, int8_t *components, int32_t *constant);

#endif
