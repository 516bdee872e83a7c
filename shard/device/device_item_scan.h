// SPDX-License-Identifier: Apache-2.0
// Launches of work items, whoever made them.
#ifndef BITSWEEP_SHARD_DEVICE_ITEM_SCAN_H
#define BITSWEEP_SHARD_DEVICE_ITEM_SCAN_H

#include "shard/device/device_group.h"

// Items have so many bundles at least where each makes tables first.
#define BSW_TABLE_ITEM ((size_t)32)

// Items of one tile, by the codes that the group looks at; additions are left out where it has
// none.
enum bsw_status bsw_device_items_launch(struct bsw_device_group *group,
                                        const struct bsw_device_list_work *work, uint32_t tile,
                                        const struct bsw_device_lists *lists,
                                        struct bsw_error *err);

#endif
