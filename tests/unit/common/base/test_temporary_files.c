// SPDX-License-Identifier: Apache-2.0
// Files that a stop removes: those that are noted and not forgotten.
#include "common/base/file.h"
#include "temporary_folder.h"
#include "unit_test.h"

UNIT_TEST(all_that_are_noted_go_and_no_other)
{
    static const char *const names[] = {"kept", "a", "b", "forgotten", "c"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) write_test_file(names[i], "", 0);
    bsw_temporary_note(path_of("folder")); // before what is in it, and removed after it
    assert_int_equal(mkdir(path_of("folder"), 0700), 0);
    write_test_file("folder/inside", "", 0);
    bsw_temporary_note(path_of("folder/inside"));
    for (size_t i = 1; i < sizeof names / sizeof names[0]; i++)
        bsw_temporary_note(path_of(names[i]));
    bsw_temporary_forget(path_of("forgotten"));
    bsw_temporary_forget(path_of("never noted"));
    bsw_temporaries_remove(); // for good: nothing can be noted from here on
    assert_int_equal(count_test_files(), 2);
    assert_int_equal(access(path_of("kept"), F_OK), 0);
    assert_int_equal(access(path_of("forgotten"), F_OK), 0);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
