// SPDX-License-Identifier: Apache-2.0
#include "shard/host/query_gather.h"

#include <string.h>

void bsw_query_gather_deinit(struct bsw_query_gather *gather)
{
    bsw_buffer_deinit(&gather->memory);
}

// So many queries' parts of an array, `size` bytes each, to `to`; returns what lies behind them.
static unsigned char *take(const void *array, size_t size, size_t first, const uint32_t *places,
                           size_t num, unsigned char *to)
{
    const unsigned char *from = (const unsigned char *)array + first * size;
    if (!array) return to;
    for (size_t i = 0; i < num; i++)
        memcpy(to + i * size, from + (places ? places[i] : i) * size, size);
    return to + num * size;
}

enum bsw_status bsw_query_gather_run(const struct bsw_query_batch *from, size_t first,
                                     const uint32_t *places, size_t num,
                                     struct bsw_query_gather *out, struct bsw_error *err)
{
    size_t word_bytes = from->query_words * sizeof *from->words;
    BSW_TRY(
        bsw_buffer_reserve(&out->memory, num * (word_bytes + 2 * sizeof(uint32_t) + 1) + 1, err));
    unsigned char *words = out->memory.data;
    unsigned char *scales = take(from->words, word_bytes, first, places, num, words);
    unsigned char *constants = take(from->scales, sizeof *from->scales, first, places, num, scales);
    unsigned char *tables =
        take(from->constants, sizeof *from->constants, first, places, num, constants);
    take(from->tables, sizeof *from->tables, first, places, num, tables);
    out->batch = (struct bsw_query_batch){
        .num_queries = (uint32_t)num,
        .query_bits = from->query_bits,
        .query_words = from->query_words,
        .words = (const uint32_t *)(const void *)words,
        .scales = from->scales ? (const float *)(const void *)scales : NULL,
        .constants = from->constants ? (const int32_t *)(const void *)constants : NULL,
        .factor = from->factor,
        .product = from->product,
        .centroids = from->centroids,
        .table = from->table,
        .tables = from->tables ? tables : NULL,
        .selection = from->selection};
    return BSW_OK;
}
