// The words of a launcher.
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_end_at_blanks),
        cmocka_unit_test(what_is_no_launcher_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
