// SPDX-License-Identifier: Apache-2.0
// Exact values that the device has computed, against sums on the host: those of whole numbers are
// exact in any order.
#include "bench/device/device_bench.h"
#include "common/base/memory.h"
#include "kernels/device_exact/device_exact.h"

#define CHECKED_VALUES ((size_t)8)

static enum bsw_status fetch(const struct device_bench *bench, const void *from, void *to,
                             size_t bytes, struct bsw_error *err)
{
    BSW_TRY(bsw_device_download(bench->device, BSW_QUEUE_SCAN, to, from, bytes, err));
    return bsw_device_wait(bench->device, BSW_QUEUE_SCAN, "values", err);
}

// room: twice as many numbers as dimensions.
static enum bsw_status check_value(const struct device_bench *bench,
                                   const struct device_bench_values *values, size_t i, double *room,
                                   struct bsw_error *err)
{
    size_t dims = values->rows->dims;
    uint8_t *row = (uint8_t *)(void *)(room + dims);
    struct bsw_device_pair pair;
    double value, sum = 0;
    BSW_TRY(fetch(bench, values->pairs + i, &pair, sizeof pair, err));
    BSW_TRY(fetch(bench, values->values + i, &value, sizeof value, err));
    BSW_TRY(fetch(bench, (const uint8_t *)values->rows->numbers + pair.row * dims, row, dims, err));
    BSW_TRY(
        fetch(bench, values->queries->numbers + pair.query * dims, room, dims * sizeof *room, err));
    for (size_t d = 0; d < dims; d++) sum += (room[d] - row[d]) * (room[d] - row[d]);
    if (sum == value) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %u, row %u: value %g, the host has %g",
                    pair.query, pair.row, value, sum);
}

enum bsw_status device_bench_values_check(const struct device_bench *bench,
                                          const struct device_bench_values *values,
                                          struct bsw_error *err)
{
    size_t num = values->num < CHECKED_VALUES ? values->num : CHECKED_VALUES;
    enum bsw_status status = BSW_OK;
    double *room;
    BSW_TRY(bsw_allocate(&room, 2 * (size_t)values->rows->dims, sizeof *room, "row", err));
    for (size_t i = 0; i < num && status == BSW_OK; i++)
        status = check_value(bench, values, i * values->num / num, room, err);
    bsw_free(&room);
    return status;
}
