// SPDX-License-Identifier: Apache-2.0
#include "kernels/merge/merge_lanes.h"
