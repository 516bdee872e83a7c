// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a training: what is written is read back to the bit, and numbers that are not
// finite are refused although the file is whole.
#include "unit_test.h"

#include <math.h>

#include "coordinator/train/rbe_checkpoint.h"
#include "tests/unit/temporary_folder.h"

enum { PARAMETERS = 40, ARRAYS = 4 };
static const char settings[] = "dims=20 seed=1 rate=0.01";

static struct bsw_error err;

static void make_state(struct bsw_rbe_state *state)
{
    const struct bsw_rbe_epoch epoch = {0.5, 0.75, 0.01, 0.9};
    assert_int_equal(bsw_rbe_state_init(PARAMETERS, state, &err), BSW_OK);
    for (size_t i = 0; i < ARRAYS * PARAMETERS; i++) state->parameters[i] = 0.125f * (float)i - 7;
    assert_int_equal(bsw_rbe_state_end_epoch(state, &epoch, &err), BSW_OK);
    state->batch = 3;
    state->num_updates = 12;
    state->best_epoch = 1;
    state->epochs_without_gain = 2;
    state->best_loss = 0.75;
    state->loss_sum = 1.5;
}

UNIT_TEST(what_is_written_is_read_back)
{
    struct bsw_rbe_state written, read;
    make_state(&written);
    const char *path = path_of("checkpoint");
    assert_int_equal(bsw_rbe_checkpoint_write(path, settings, &written, &err), BSW_OK);
    assert_int_equal(bsw_rbe_state_init(PARAMETERS, &read, &err), BSW_OK);
    assert_int_equal(bsw_rbe_checkpoint_read(path, settings, &read, &err), BSW_OK);
    assert_memory_equal(read.parameters, written.parameters, ARRAYS * PARAMETERS * sizeof(float));
    assert_int_equal(read.epoch, 1);
    assert_memory_equal(read.epochs, written.epochs, sizeof *read.epochs);
    assert_int_equal(read.batch, 3);
    assert_int_equal(read.num_updates, 12);
    assert_int_equal(read.best_epoch, 1);
    assert_int_equal(read.epochs_without_gain, 2);
    assert_true(read.best_loss == 0.75 && read.loss_sum == 1.5);
    bsw_rbe_state_deinit(&written);
    bsw_rbe_state_deinit(&read);
}

UNIT_TEST(numbers_that_are_not_finite_are_refused)
{
    const float wrong[] = {NAN, INFINITY, -INFINITY};
    struct bsw_rbe_state written, read;
    make_state(&written);
    assert_int_equal(bsw_rbe_state_init(PARAMETERS, &read, &err), BSW_OK);
    for (size_t i = 0; i < ARRAYS * PARAMETERS; i += PARAMETERS - 1) { // each array, both ends
        float before = written.parameters[i];
        written.parameters[i] = wrong[i % 3];
        const char *path = path_of("not finite");
        assert_int_equal(bsw_rbe_checkpoint_write(path, settings, &written, &err), BSW_OK);
        assert_int_equal(bsw_rbe_checkpoint_read(path, settings, &read, &err), BSW_ERROR_BAD_DATA);
        assert_non_null(strstr(err.message, "not finite: numbers that are not finite"));
        written.parameters[i] = before;
    }
    bsw_rbe_state_deinit(&written);
    bsw_rbe_state_deinit(&read);
}

UNIT_TEST(checkpoints_of_other_trainings_are_refused)
{
    struct bsw_rbe_state written, other;
    make_state(&written);
    const char *path = path_of("other");
    assert_int_equal(bsw_rbe_checkpoint_write(path, settings, &written, &err), BSW_OK);
    assert_int_equal(bsw_rbe_state_init(PARAMETERS - 1, &other, &err), BSW_OK);
    assert_int_equal(bsw_rbe_checkpoint_read(path, settings, &other, &err), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "do not fit the model"));
    bsw_rbe_state_deinit(&other);
    assert_int_equal(bsw_rbe_checkpoint_read(path, "dims=20 seed=2 rate=0.01", &written, &err),
                     BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "seed=1 there, seed=2 here"));
    bsw_rbe_state_deinit(&written);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
