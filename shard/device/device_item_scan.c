// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_item_scan.h"

#include "kernels/gpu_bytes/gpu_bytes.h"

static int launch_tables(const struct bsw_device_group *group,
                         const struct bsw_device_list_work *work, uint32_t tile,
                         const struct bsw_device_lists *lists)
{
    bsw_stream stream = bsw_device_stream(group->engine->device, BSW_QUEUE_SCAN);
    struct bsw_device_tables tables = group->tables.tables;
    int code = 0;
    tables.lists = group->items.bundle_lists;
    tables.centroids = group->items.centroids;
    for (int t = bsw_device_next_type(&group->tables, 0); t < BSW_NUM_TABLE_TYPES && !code;
         t = bsw_device_next_type(&group->tables, t + 1)) {
        tables.type = (enum bsw_table_type)t;
        code = bsw_device_table_list_scan(&group->items.codes, work, tile, &tables, lists, stream);
    }
    return code;
}

static int launch_items(const struct bsw_device_group *group,
                        const struct bsw_device_list_work *work, uint32_t tile,
                        const struct bsw_device_lists *lists)
{
    const struct bsw_device_codes *codes = &group->items.codes;
    bsw_stream stream = bsw_device_stream(group->engine->device, BSW_QUEUE_SCAN);
    if (group->engine->plan.product) return launch_tables(group, work, tile, lists);
    if (codes->offsets)
        return bsw_device_byte_list_scan(codes, work, tile, &group->queries, group->batch->factor,
                                         lists, stream);
    return bsw_device_list_scan(codes, work, tile, &group->queries, lists, stream);
}

enum bsw_status bsw_device_items_launch(struct bsw_device_group *group,
                                        const struct bsw_device_list_work *items, uint32_t tile,
                                        const struct bsw_device_lists *lists, struct bsw_error *err)
{
    struct bsw_device_list_work work = *items;
    if (!group->items.has_additions) work.additions = NULL;
    return bsw_device_launched(group->engine->device, launch_items(group, &work, tile, lists),
                               "scan", err);
}
