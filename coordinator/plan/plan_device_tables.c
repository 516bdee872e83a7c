// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan/plan_device_tables.h"

#include "kernels/device_scan/device_table_scan.h"
#include "shard/codecs/codec.h"

// CUDA C++ Programming Guide, "Compute Capabilities".
static const struct {
    const char *name;
    size_t block_bytes; // of shared memory that a block may have
    struct bsw_device_multiprocessor room;
} kinds[] = {{"8.6", (size_t)99 << 10, {(size_t)100 << 10, 1536}},
             {"9.0", (size_t)227 << 10, {(size_t)228 << 10, 2048}}};

void bsw_plan_device_tables_facts(struct bsw_facts *facts, const struct bsw_plan_index *index)
{
    const struct bsw_manifest *manifest = &index->manifest;
    if (!manifest->codec->has_tables) return;
    const struct bsw_product_book *book = &manifest->codec->table->product(manifest)->book;
    enum bsw_table_type type = index->most.radii > 0 ? BSW_TABLE_FLOAT32 : index->search.table;
    bsw_facts_open_list(facts, "device_tables");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const struct bsw_device_table_shape shape = bsw_device_table_shape_of(
            book->parts, book->bits, type, (uint32_t)index->search.batch, kinds[i].block_bytes);
        bsw_facts_open_object(facts, NULL);
        bsw_fact_text(facts, "capability", kinds[i].name, "  tables on a GPU of %s: ");
        bsw_fact_integer(facts, "queries", shape.queries, "%d a block, ");
        bsw_fact_bytes(facts, "shared_bytes", shape.shared_bytes, "%s of shared memory; ");
        bsw_fact_integer(facts, "blocks", bsw_device_table_blocks_of(&shape, &kinds[i].room),
                         "%d blocks at a time on a multiprocessor");
        bsw_fact_flag(facts, "is_sliced", !shape.is_whole,
                      ", made part by part for every 1024 rows");
        bsw_facts_say(facts, "\n");
        bsw_facts_close(facts);
    }
    bsw_facts_close(facts);
}
