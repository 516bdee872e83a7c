// SPDX-License-Identifier: Apache-2.0
// Where a training stands, as it lies in the file and with a checksum that fits.
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "coordinator/train/rbe_checkpoint.h"
#include "tests/fuzz/harness.h"

#define NUM_PARAMETERS 5
#define SETTINGS       "pairs=3 rate=0.1"

static void take(const void *data, size_t bytes)
{
    struct bsw_rbe_state state;
    struct bsw_error err;
    FUZZ_REQUIRE(bsw_rbe_state_init(NUM_PARAMETERS, &state, &err) == BSW_OK);
    enum bsw_status status =
        bsw_rbe_checkpoint_parse("checkpoint", data, bytes, SETTINGS, &state, &err);
    if (fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA) | FUZZ_BIT(BSW_ERROR_USAGE))) {
        const struct bsw_rbe_epoch epoch = {1, 2, 3, 0.5};
        FUZZ_REQUIRE(state.epoch <= BSW_RBE_MAX_EPOCHS && state.best_epoch <= state.epoch);
        FUZZ_REQUIRE(bsw_rbe_state_end_epoch(&state, &epoch, &err) == BSW_OK);
    }
    bsw_rbe_state_deinit(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_take_sealed(take, data, bytes);
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    static const char *const settings[] = {SETTINGS, "pairs=3 rate=0.2", SETTINGS " seed=1", ""};
    const struct bsw_rbe_epoch epoch = {0.5, 0.25, 0.1, 0.75};
    char path[128];
    snprintf(path, sizeof path, "%s/seed", fuzz_folder());
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        struct bsw_rbe_state state;
        struct bsw_buffer file = {0};
        FUZZ_REQUIRE(bsw_rbe_state_init(NUM_PARAMETERS, &state, NULL) == BSW_OK);
        for (size_t e = 0; e < i; e++)
            FUZZ_REQUIRE(bsw_rbe_state_end_epoch(&state, &epoch, NULL) == BSW_OK);
        FUZZ_REQUIRE(bsw_rbe_checkpoint_write(path, settings[i], &state, NULL) == BSW_OK);
        FUZZ_REQUIRE(bsw_file_read_all(path, 1 << 20, &file, NULL) == BSW_OK);
        put(context, file.data, file.bytes);
        put(context, file.data, file.bytes - 9);
        bsw_buffer_deinit(&file);
        bsw_rbe_state_deinit(&state);
    }
}
