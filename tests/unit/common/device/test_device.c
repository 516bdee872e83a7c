// SPDX-License-Identifier: Apache-2.0
// Memory is pinned piece by piece, so that a deadline is kept and no copy lies in two pieces.
#include <stdlib.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/device/device.h"
#include "unit_test.h"

// In pieces of 16 kB, as the emulated device has them; slow ones of 20 ms would take 0.7 s.
enum { BYTES = 35 * 16384 - 1000 };

static bsw_device *device, *impatient;
static struct bsw_device_buffer buffer;
static struct bsw_error err;
static unsigned char *memory, *found;

static int open_all(void **state)
{
    const struct bsw_device_options options = {.num_sharers = 1, .timeout_seconds = 60};
    const struct bsw_device_options hasty = {.num_sharers = 1, .timeout_seconds = 0.1};
    if (bsw_device_open(&hasty, &impatient, &err) != BSW_OK ||
        bsw_device_open(&options, &device, &err) != BSW_OK ||
        bsw_device_allocate(device, BYTES, "test", &buffer, &err) != BSW_OK ||
        bsw_allocate(&memory, BYTES, 1, "test", &err) != BSW_OK ||
        bsw_device_allocate_host(device, BYTES, "test", &found, &err) != BSW_OK)
        return 1;
    for (size_t i = 0; i < BYTES; i++) memory[i] = (unsigned char)bsw_hash2(1, i);
    return 0;
}

static int close_all(void **state)
{
    bsw_device_free_host(device, &found);
    bsw_free(&memory);
    bsw_device_free(device, &buffer);
    bsw_device_close(&device);
    bsw_device_close(&impatient);
    return 0;
}

// Where pieces were left pinned, or not all of them, the emulator fails.
static void pin_and_unpin(void)
{
    struct bsw_device_pinned pin;
    assert_true(bsw_device_pin(device, memory, BYTES, &pin));
    assert_int_equal(pin.bytes, BYTES);
    bsw_device_unpin(device, &pin);
    assert_null(pin.memory);
}

UNIT_TEST(pieces_are_undone)
{
    pin_and_unpin();
    pin_and_unpin();
}

// The emulator refuses copies out of two pieces, as CUDA does.
UNIT_TEST(uploads_start_and_end_anywhere)
{
    static const struct {
        size_t from, to;
    } cases[] = {{0, BYTES}, {1, 2}, {5, BYTES - 3}, {16384, 2 * 16384}, {40000, 90000}};
    struct bsw_device_pinned pin;
    assert_true(bsw_device_pin(device, memory, BYTES, &pin));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t from = cases[i].from, bytes = cases[i].to - from;
        assert_ok(
            bsw_device_upload(device, BSW_QUEUE_COPY, buffer.data, memory + from, bytes, &err),
            &err);
        assert_ok(bsw_device_download(device, BSW_QUEUE_COPY, found, buffer.data, bytes, &err),
                  &err);
        assert_ok(bsw_device_wait(device, BSW_QUEUE_COPY, "test", &err), &err);
        assert_memory_equal(found, memory + from, bytes);
    }
    bsw_device_unpin(device, &pin);
}

UNIT_TEST(refused_half_way_nothing_stays_pinned)
{
    struct bsw_device_pinned pin;
    setenv("BITSWEEP_EMULATOR_REFUSE_REGISTER", "20", 1);
    assert_false(bsw_device_pin(device, memory, BYTES, &pin));
    unsetenv("BITSWEEP_EMULATOR_REFUSE_REGISTER");
    assert_int_equal(pin.bytes, 0);
    pin_and_unpin();
}

UNIT_TEST(pinning_ends_at_the_deadline)
{
    struct bsw_device_pinned pin;
    setenv("BITSWEEP_EMULATOR_SLOW_REGISTER", "1", 1);
    assert_false(bsw_device_pin(impatient, memory, BYTES, &pin));
    assert_true(bsw_device_pin(device, memory, 16384, &pin));
    unsetenv("BITSWEEP_EMULATOR_SLOW_REGISTER");
    bsw_device_unpin(device, &pin);
    pin_and_unpin();
}

int main(void)
{
    return run_unit_tests(open_all, close_all);
}
