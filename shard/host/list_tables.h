// SPDX-License-Identifier: Apache-2.0
// Tables of queries for lists of product codes: what list_scan.h scans a list by where codes have
// tables.
//
// A table is of a query alone, but for l2 and residuals, where it is of query and list. Then what
// is of the query alone is computed once a batch, what is of the list alone once a search, both
// as far as they take no more than BSW_LIST_TABLE_BYTES; else where they are needed, to the same
// bits. A list's codes stay in the second cache while query after query goes over them.
#ifndef BITSWEEP_SHARD_LIST_TABLES_H
#define BITSWEEP_SHARD_LIST_TABLES_H

#include "shard/host/shard_scan.h"

#define BSW_LIST_TABLE_BYTES ((size_t)256 << 20) // of all lists, of all queries, of all rows

// Room of one thread: a list, and a query's table for it.
struct bsw_list_table_room {
    float *room, *query_term, *list_term, *table_room, *sums;
    void *table, *selective_room;
    const uint32_t *hits;             // of the table, where entries are selected
    const float *centroid, *list_now; // c' of the list and its term, l2 with residuals alone
    struct bsw_code_table now;        // of the query
    float multiplier;
};

// Bytes of a query's table, with its hits where entries are selected.
size_t bsw_query_table_bytes(const struct bsw_query_batch *batch);

void bsw_list_table_scratch_deinit(struct bsw_list_table_scratch *scratch);
static inline size_t bsw_list_table_most(const struct bsw_list_table_scratch *scratch)
{
    return scratch->most_bytes ? scratch->most_bytes : BSW_LIST_TABLE_BYTES;
}

// What a rank keeps of lists alone, for l2 with residuals.
uint64_t bsw_list_table_lists_bytes(const struct bsw_product_codes *codes, uint64_t num_lists);

// And of rows (list_bounds.h): shard after shard as they are scanned first, each whole or not at
// all. What is kept with one more shard, where kept_bytes are of those before it.
static inline uint64_t bsw_list_table_rows_add(uint64_t kept_bytes, uint64_t num_places,
                                               uint64_t most_bytes)
{
    uint64_t bytes = kept_bytes + num_places * sizeof(float);
    return bytes <= most_bytes ? bytes : kept_bytes;
}

// A batch under way.
struct bsw_list_tables {
    const struct bsw_resident_shard *shard;
    const struct bsw_query_range *queries;
    const struct bsw_scan_workspace *workspace;
    struct bsw_list_table_scratch *scratch;
    int is_of_lists;            // l2 with residuals
    int has_queries, has_lists; // what is computed once
    size_t query_bytes;         // of a term or table
    size_t most_rows;           // of a tile
};

// All is borrowed until the batch's end. most_rows: of a call of bsw_list_tables_find.
enum bsw_status bsw_list_tables_open(const struct bsw_resident_shard *shard,
                                     const struct bsw_query_range *queries,
                                     const struct bsw_scan_workspace *workspace, size_t most_rows,
                                     struct bsw_list_table_scratch *scratch,
                                     struct bsw_list_tables *out, struct bsw_error *err);

// q' of a query, counted in the range.
const float *bsw_list_tables_query(const struct bsw_list_tables *tables, size_t query);

// Limits of its rays (bsw_selective_limits), where entries are selected, tables are of lists and
// what is of queries is kept; else NULL.
const float *bsw_list_tables_limits(const struct bsw_list_tables *tables, size_t query);

// A thread's room; then a list; then one of its queries, counted in the range; then bundles.
struct bsw_list_table_room bsw_list_tables_room(const struct bsw_list_tables *tables,
                                                size_t thread);
void bsw_list_tables_enter(const struct bsw_list_tables *tables, uint32_t list,
                           struct bsw_list_table_room *room);
// For one query and list in BSW_SELECTION_SAMPLE, where entries are selected: counts the look-ups
// of the list's rows, and those that find an entry within its radius. Before the query is taken.
void bsw_list_tables_count(const struct bsw_list_tables *tables, uint32_t list, size_t query,
                           struct bsw_list_table_room *room);
void bsw_list_tables_take(const struct bsw_list_tables *tables, size_t query,
                          struct bsw_list_table_room *room);
// Places of rows whose keys reach the limit, as candidates; addition: to keys, 0 without. items has
// room for all rows.
size_t bsw_list_tables_find(const struct bsw_list_tables *tables,
                            const struct bsw_list_table_room *room, size_t bundle,
                            size_t num_bundles, float addition, uint32_t limit, uint64_t *items);

#endif
