// SPDX-License-Identifier: Apache-2.0
#include "kernels/text/text_pool_rows.h"

const struct bsw_text_pool_table bsw_text_pool_avx512 = {.level = "avx512",
                                                         .pool = bsw_text_pool_text};
