// SPDX-License-Identifier: Apache-2.0
#include "kernels/text/text_pool_rows.h"

const struct bsw_text_pool_table bsw_text_pool_neon = {.level = "neon", .pool = bsw_text_pool_text};
