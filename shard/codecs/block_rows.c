// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/block_rows.h"

#include <string.h>

static uint32_t row_at(const struct bsw_block_rows *rows, uint64_t place)
{
    return rows->order ? rows->order->rows[place] : (uint32_t)place;
}

static void add_digest(const struct bsw_block_rows *rows, uint64_t place, uint32_t row,
                       const unsigned char *numbers, struct bsw_block_result *out)
{
    uint64_t digest = bsw_row_digest(numbers, rows->row_bytes, rows->shape->first_row + row);
    rows->arrays.row_digests[(place - rows->first_place) / BSW_BUNDLE_ROWS] += digest;
    out->source_digest += digest;
}

static enum bsw_status copy_rows(const struct bsw_block_rows *rows, uint64_t first,
                                 const unsigned char *numbers, size_t count, struct bsw_error *err)
{
    if (!rows->copies) return BSW_OK;
    return bsw_shard_writer_put_rows(rows->copies, first, numbers, count, err);
}

// Rows [first, first + count) of the shard, in the source's order.
static enum bsw_status read_rows(const struct bsw_block_rows *rows, uint64_t first, size_t count,
                                 unsigned char *numbers, struct bsw_block_result *out,
                                 struct bsw_error *err)
{
    BSW_TRY(bsw_vectors_read(rows->vectors, rows->shape->first_row + first, count, numbers, err));
    for (size_t r = 0; r < count; r++)
        add_digest(rows, first + r, (uint32_t)(first + r), numbers + r * rows->row_bytes, out);
    return copy_rows(rows, first, numbers, count, err);
}

// The rows at places; what no row has is 0.
static enum bsw_status read_places(const struct bsw_block_rows *rows, uint64_t place, size_t count,
                                   unsigned char *numbers, struct bsw_error *err)
{
    for (size_t i = 0; i < count; i++, numbers += rows->row_bytes) {
        uint32_t row = row_at(rows, place + i);
        if (row == BSW_NO_ROW)
            memset(numbers, 0, rows->row_bytes);
        else
            BSW_TRY(bsw_vectors_read(rows->vectors, rows->shape->first_row + row, 1, numbers, err));
    }
    return BSW_OK;
}

// Copies that lie at places are accounted for as they lie.
static enum bsw_status account_places(const struct bsw_block_rows *rows, uint64_t place,
                                      size_t count, const unsigned char *numbers,
                                      struct bsw_block_result *out, struct bsw_error *err)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t row = row_at(rows, place + i);
        if (row != BSW_NO_ROW) add_digest(rows, place + i, row, numbers + i * rows->row_bytes, out);
    }
    return copy_rows(rows, place, numbers, count, err);
}

// Bad rows are in no list, which whoever made the order has allowed.
static void count_dropped(const struct bsw_block_rows *rows, uint64_t first, size_t count,
                          struct bsw_block_result *out)
{
    for (size_t r = 0; r < count; r++)
        if (rows->order->places[first + r] == BSW_NO_ROW) out->dropped_rows++;
}

enum bsw_status bsw_block_rows_read(const struct bsw_block_rows *rows, uint64_t place, size_t count,
                                    unsigned char *numbers, struct bsw_block_result *out,
                                    struct bsw_error *err)
{
    // So many rows of the shard from `place` on are this block's to be accounted for.
    uint64_t left = place < rows->shape->num_rows ? rows->shape->num_rows - place : 0;
    size_t num_rows = left < count ? (size_t)left : count;
    if (!rows->order) return read_rows(rows, place, num_rows, numbers, out, err);
    count_dropped(rows, place, num_rows, out);
    int are_copies_ordered = rows->manifest->lists.has_ordered_vectors;
    if (!are_copies_ordered && num_rows > 0)
        BSW_TRY(read_rows(rows, place, num_rows, numbers, out, err));
    BSW_TRY(read_places(rows, place, count, numbers, err));
    return are_copies_ordered ? account_places(rows, place, count, numbers, out, err) : BSW_OK;
}

void bsw_block_rows_lists(const struct bsw_block_rows *rows, uint64_t place, size_t count,
                          uint32_t *lists)
{
    for (size_t i = 0; i < count; i++)
        lists[i] = bsw_list_of_place(rows->order, (uint32_t)(place + i));
}

enum bsw_status bsw_block_rows_judge(const struct bsw_block_rows *rows, uint64_t place,
                                     enum bsw_row_fault fault, struct bsw_block_result *out,
                                     struct bsw_error *err)
{
    uint32_t row = row_at(rows, place);
    uint64_t at = place - rows->first_place;
    if (row == BSW_NO_ROW) return BSW_OK;
    if (fault == BSW_ROW_GOOD)
        rows->arrays.masks[at / BSW_BUNDLE_ROWS] |= 1u << (at % BSW_BUNDLE_ROWS);
    else if (rows->drop_bad_rows)
        out->dropped_rows++;
    else
        return bsw_fail_bad_row(rows->vectors, rows->shape->first_row + row, fault, err);
    return BSW_OK;
}
