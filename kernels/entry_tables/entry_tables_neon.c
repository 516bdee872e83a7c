// SPDX-License-Identifier: Apache-2.0
#include "kernels/entry_tables/entry_tables_lanes.h"
