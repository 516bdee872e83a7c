// SPDX-License-Identifier: Apache-2.0
// Whatever their lengths and strides, copies through two blocks bring the same bytes, and those
// that a device never finishes end at the deadline.
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/device/device_blocks.h"
#include "unit_test.h"

enum { BLOCK = 64, MOST = 5000 };

static bsw_device *device;
static struct bsw_device_blocks blocks;
static struct bsw_device_buffer memory;
static struct bsw_error err;
static unsigned char sent[MOST], found[MOST], expected[MOST];

static int open_all(void **state)
{
    const struct bsw_device_options options = {.num_sharers = 1, .timeout_seconds = 1};
    if (bsw_device_open(&options, &device, &err) != BSW_OK ||
        bsw_device_blocks_open(device, BLOCK, &blocks, &err) != BSW_OK ||
        bsw_device_allocate(device, MOST, "test", &memory, &err) != BSW_OK)
        return 1;
    for (size_t i = 0; i < MOST; i++) sent[i] = (unsigned char)bsw_hash2(1, i);
    return 0;
}

static int close_all(void **state)
{
    bsw_device_free(device, &memory);
    bsw_device_blocks_close(&blocks);
    bsw_device_close(&device);
    return 0;
}

static void upload(size_t at, const unsigned char *from, size_t bytes)
{
    assert_ok(bsw_device_blocks_upload(&blocks, memory.data + at, from, bytes, "test", &err), &err);
}

static void download(const struct bsw_device_rows *rows)
{
    assert_ok(
        bsw_device_blocks_download(&blocks, BSW_QUEUE_COPY, found, memory.data, rows, "test", &err),
        &err);
}

UNIT_TEST(pieces_of_any_length_arrive)
{
    static const size_t lengths[] = {1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 7 * BLOCK + 3};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const struct bsw_device_rows row = {lengths[i], 1, 0, 0};
        memset(found, 0, sizeof found);
        upload(0, sent + i, lengths[i]);
        download(&row);
        assert_memory_equal(found, sent + i, lengths[i]);
        assert_int_equal(found[lengths[i]], 0);
    }
    upload(0, sent, 0);
}

// The host's memory is free when an upload returns.
UNIT_TEST(uploads_follow_one_another)
{
    unsigned char own[3 * BLOCK + 5];
    const struct bsw_device_rows row = {20 * sizeof own, 1, 0, 0};
    for (size_t i = 0; i < 20; i++) {
        memcpy(own, sent + i * sizeof own, sizeof own);
        upload(i * sizeof own, own, sizeof own);
        memset(own, 0, sizeof own);
    }
    download(&row);
    assert_memory_equal(found, sent, row.row_bytes);
}

UNIT_TEST(rows_are_spread)
{
    static const size_t widths[] = {1, 5, BLOCK / 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7};
    upload(0, sent, MOST);
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        for (size_t num_rows = 0; num_rows < 18; num_rows++) {
            const struct bsw_device_rows rows = {widths[i], num_rows, widths[i] + i,
                                                 widths[i] + 2 * i};
            memset(found, 0, sizeof found);
            memset(expected, 0, sizeof expected);
            for (size_t r = 0; r < num_rows; r++)
                memcpy(expected + r * rows.to_stride, sent + r * rows.from_stride, rows.row_bytes);
            download(&rows);
            assert_memory_equal(found, expected, sizeof found);
        }
    }
}

UNIT_TEST(a_silent_device_ends_at_the_deadline)
{
    const struct bsw_device_rows row = {1, 1, 0, 0};
    setenv("BITSWEEP_EMULATOR_STALL", "1", 1);
    assert_int_equal(bsw_device_blocks_upload(&blocks, memory.data, sent, MOST, "test", &err),
                     BSW_ERROR_IO);
    assert_string_equal(err.message, "emulated:0: test: not done within 1 s");
    assert_int_equal(
        bsw_device_blocks_download(&blocks, BSW_QUEUE_COPY, found, memory.data, &row, "test", &err),
        BSW_ERROR_IO);
    unsetenv("BITSWEEP_EMULATOR_STALL");
}

int main(void)
{
    return run_unit_tests(open_all, close_all);
}
