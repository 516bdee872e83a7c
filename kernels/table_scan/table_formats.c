// SPDX-License-Identifier: Apache-2.0
#include "kernels/table_scan/table_formats.h"

static const char *const names[BSW_NUM_TABLE_TYPES] = {[BSW_TABLE_FLOAT32] = "float32",
                                                       [BSW_TABLE_FLOAT16] = "float16",
                                                       [BSW_TABLE_E5M3] = "e5m3",
                                                       [BSW_TABLE_E4M4] = "e4m4"};

const char *bsw_table_name(enum bsw_table_type type)
{
    return names[type];
}
