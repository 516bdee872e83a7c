// SPDX-License-Identifier: Apache-2.0
// Levels: names of this architecture alone, what the CPU has, and the tables that kernels have for
// it.
#include <string.h>

#include "common/base/cpu_level.h"
#include "kernels/encode/encode.h"
#include "kernels/limits/limits.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/merge/merge.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/rbe/rbe_codes.h"
#include "kernels/refine/refine.h"
#include "kernels/screen/screen.h"
#include "kernels/select/select.h"
#include "unit_test.h"

static enum bsw_cpu_level level_of(const char *name)
{
    int level = 0;
    while (level < BSW_CPU_NUM_LEVELS &&
           strcmp(name, bsw_cpu_level_name((enum bsw_cpu_level)level)))
        level++;
    assert_in_range(level, 0, BSW_CPU_NUM_LEVELS - 1);
    return (enum bsw_cpu_level)level;
}

UNIT_TEST(the_best_level_is_the_last_that_is_had)
{
    int last = BSW_CPU_REFERENCE;
    assert_true(bsw_cpu_has_level(BSW_CPU_REFERENCE));
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level++) {
        if (!bsw_cpu_has_level((enum bsw_cpu_level)level)) continue;
        assert_true(bsw_cpu_level_is_built((enum bsw_cpu_level)level));
        if (level > 0) assert_int_equal(bsw_cpu_level_next(last), level);
        last = level;
    }
    assert_int_equal(bsw_cpu_level_detect(), last);
    assert_int_equal(bsw_cpu_level_next(last), BSW_CPU_NUM_LEVELS);
}

UNIT_TEST(names_are_parsed_if_the_cpu_has_them)
{
    enum bsw_cpu_level level;
    struct bsw_error err = {0};
    assert_int_equal(bsw_cpu_level_parse("auto", &level, &err), BSW_OK);
    assert_int_equal(level, bsw_cpu_level_detect());
    for (int i = 0; i < BSW_CPU_NUM_LEVELS; i++) {
        const char *name = bsw_cpu_level_name((enum bsw_cpu_level)i);
        int is_had = bsw_cpu_has_level((enum bsw_cpu_level)i);
        assert_int_equal(bsw_cpu_level_parse(name, &level, &err),
                         is_had ? BSW_OK : BSW_ERROR_USAGE);
        if (is_had) assert_int_equal(level, i);
    }
    assert_int_equal(bsw_cpu_level_parse("avx", &level, &err), BSW_ERROR_USAGE);
}

// avx2 on Arm is no choice, and neon none elsewhere.
UNIT_TEST(choices_are_of_this_architecture)
{
    assert_memory_equal(BSW_CPU_LEVEL_CHOICES, "auto|reference", strlen("auto|reference"));
    for (int i = 0; i < BSW_CPU_NUM_LEVELS; i++) {
        const char *found =
            strstr(BSW_CPU_LEVEL_CHOICES, bsw_cpu_level_name((enum bsw_cpu_level)i));
        assert_int_equal(found != NULL, bsw_cpu_level_is_built((enum bsw_cpu_level)i));
    }
}

// A file X_LEVEL.c that its family does not name would never run. Of these levels every family has
// one.
static void check_table(const char *family, const char *name, int level)
{
    int is_own = level <= BSW_CPU_AVX2 || level == BSW_CPU_AVX512 || level == BSW_CPU_NEON;
    int found = level_of(name);
    if (is_own ? found != level : found > level || !bsw_cpu_has_level((enum bsw_cpu_level)found))
        fail_msg("%s: level %s has the table of %s", family,
                 bsw_cpu_level_name((enum bsw_cpu_level)level), name);
}

UNIT_TEST(tables_are_those_of_the_level)
{
    for (int i = 0; i < BSW_CPU_NUM_LEVELS; i = bsw_cpu_level_next(i)) {
        enum bsw_cpu_level level = (enum bsw_cpu_level)i;
        check_table("encode", bsw_encode_table_get(level)->level, i);
        check_table("limits", bsw_limits_table_get(level)->level, i);
        check_table("matrix_scan", bsw_matrix_scan_table_get(level)->level, i);
        check_table("merge", bsw_merge_table_get(level)->level, i);
        check_table("plane_scan", bsw_plane_scan_table_get(level)->level, i);
        check_table("rbe_codes", bsw_rbe_codes_table_get(level)->level, i);
        check_table("refine", bsw_refine_table_get(level)->level, i);
        check_table("screen", bsw_screen_table_get(level)->level, i);
        check_table("select", bsw_select_table_get(level)->level, i);
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
