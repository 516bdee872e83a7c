// SPDX-License-Identifier: Apache-2.0
#include "common/rows/memory_rows.h"

#include <string.h>

#include "common/base/memory.h"
#include "common/codes/code_layout.h"

static _Thread_local struct bsw_memory_rows *lent; // the last one first

int bsw_memory_rows_is_name(const char *name)
{
    return strncmp(name, BSW_MEMORY_PREFIX, strlen(BSW_MEMORY_PREFIX)) == 0;
}

static enum bsw_status check(const struct bsw_memory_rows *rows, struct bsw_error *err)
{
    size_t bytes;
    if (!rows->numbers)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: no array and no file", rows->name);
    if ((unsigned)rows->type >= BSW_VECTOR_INT32)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: unknown type %d of numbers", rows->name,
                        (int)rows->type);
    if (rows->dims < 1 || rows->dims > BSW_MAX_DIMS)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %u dims, must be 1 to %d", rows->name,
                        rows->dims, BSW_MAX_DIMS);
    if (rows->num_rows < 1) return bsw_fail(err, BSW_ERROR_USAGE, "%s: 0 rows", rows->name);
    if (rows->num_rows > SIZE_MAX ||
        !bsw_multiply_size((size_t)rows->num_rows, rows->dims * bsw_vector_type_bytes(rows->type),
                           &bytes))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %llu rows are more than memory holds",
                        rows->name, (unsigned long long)rows->num_rows);
    return BSW_OK;
}

enum bsw_status bsw_memory_rows_lend(struct bsw_memory_rows *rows, struct bsw_error *err)
{
    BSW_TRY(check(rows, err));
    rows->next = lent;
    lent = rows;
    return BSW_OK;
}

void bsw_memory_rows_take_back(struct bsw_memory_rows *rows)
{
    for (struct bsw_memory_rows **place = &lent; *place; place = &(*place)->next) {
        if (*place != rows) continue;
        *place = rows->next;
        return;
    }
}

enum bsw_status bsw_memory_rows_find(const char *name, const struct bsw_memory_rows **out,
                                     struct bsw_error *err)
{
    for (const struct bsw_memory_rows *rows = lent; rows; rows = rows->next) {
        if (strcmp(rows->name, name) != 0) continue;
        *out = rows;
        return BSW_OK;
    }
    return bsw_fail(err, BSW_ERROR_IO,
                    "%s: rows in the memory of the program that made this; they are gone", name);
}
