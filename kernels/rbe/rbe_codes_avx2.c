// SPDX-License-Identifier: Apache-2.0
#include "kernels/rbe/rbe_codes_rows.h"

const struct bsw_rbe_codes_table bsw_rbe_codes_avx2 = {
    .level = "avx2", .encode = bsw_rbe_encode_row, .project = bsw_rbe_project_row};
