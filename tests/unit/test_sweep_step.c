// The words of a launcher, and of a step.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "coordinator/sweep_step.h"

static void words_end_at_blanks(void **state)
{
    (void)state;
    static const char *const expected[] = {"/a b/run.sh", "-n", "2", "x\\y", "\\"};
    struct bsw_launcher launcher;
    assert_int_equal(bsw_launcher_split("  /a\\ b/run.sh -n  2 x\\\\y \\", &launcher, NULL),
                     BSW_OK);
    assert_int_equal(launcher.num_words, 5);
    for (size_t i = 0; i < launcher.num_words; i++)
        assert_string_equal(launcher.words[i], expected[i]);
    assert_int_equal(bsw_launcher_split("run.sh ", &launcher, NULL), BSW_OK);
    assert_int_equal(launcher.num_words, 1);
    assert_int_equal(bsw_launcher_split(NULL, &launcher, NULL), BSW_OK);
    assert_int_equal(launcher.num_words, 0);
}

static void what_is_no_launcher_is_refused(void **state)
{
    (void)state;
    static char text[BSW_PATH_BYTES + 1];
    struct bsw_launcher launcher;
    assert_int_equal(bsw_launcher_split("", &launcher, NULL), BSW_ERROR_USAGE);
    assert_int_equal(bsw_launcher_split("  ", &launcher, NULL), BSW_ERROR_USAGE);
    for (size_t i = 0; i <= BSW_LAUNCHER_WORDS; i++) strcat(text, "a ");
    assert_int_equal(bsw_launcher_split(text, &launcher, NULL), BSW_ERROR_USAGE);
    memset(text, 'a', BSW_PATH_BYTES);
    assert_int_equal(bsw_launcher_split(text, &launcher, NULL), BSW_ERROR_USAGE);
}

static const char *value_of(const struct bsw_step *step, const char *option)
{
    for (size_t i = 0; i + 1 < step->num_words; i++) {
        if (strcmp(step->words[i], option) == 0) return step->words[i + 1];
    }
    return NULL;
}

static void a_launcher_shares_out_threads_unless_told(void **state)
{
    (void)state;
    struct bsw_step_place place = {.level = "auto", .timeout = 60, .heartbeat = 0.5, .threads = 7};
    struct bsw_step step;
    bsw_step_begin(&step, &place, "search", 1);
    assert_false(step.is_launched);
    assert_string_equal(value_of(&step, "--threads"), "7");
    assert_int_equal(bsw_launcher_split("run.sh -n 2", &place.launcher, NULL), BSW_OK);
    bsw_step_begin(&step, &place, "search", 1);
    assert_true(step.is_launched);
    assert_null(value_of(&step, "--threads"));
    assert_string_equal(value_of(&step, "--timeout"), "60");
    assert_string_equal(value_of(&step, "--heartbeat"), "0.5");
    place.launched_threads = 3;
    bsw_step_begin(&step, &place, "search", 1);
    assert_string_equal(value_of(&step, "--threads"), "3");
    bsw_step_begin(&step, &place, "eval", 0);
    assert_string_equal(value_of(&step, "--threads"), "7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_end_at_blanks),
        cmocka_unit_test(what_is_no_launcher_is_refused),
        cmocka_unit_test(a_launcher_shares_out_threads_unless_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
