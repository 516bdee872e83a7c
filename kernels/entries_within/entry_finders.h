// SPDX-License-Identifier: Apache-2.0
// The back ends of entries_within.h, for its own files.
#ifndef BITSWEEP_KERNELS_ENTRY_FINDERS_H
#define BITSWEEP_KERNELS_ENTRY_FINDERS_H

#include "kernels/entries_within/entries_within.h"

extern const struct bsw_entry_finder_ops bsw_entry_brute;
extern const struct bsw_entry_finder_ops bsw_entry_embree; // CMake's BITSWEEP_EMBREE
extern const struct bsw_entry_finder_ops bsw_entry_vulkan; // CMake's BITSWEEP_VULKAN

#endif
