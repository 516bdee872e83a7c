// SPDX-License-Identifier: Apache-2.0
// Loading NCCL: what is found, what is missing and what is too old. The stand-in is loaded as the
// real one is.
#include <stdlib.h>
#include <string.h>

#include "common/net/nccl_library.h"
#include "unit_test.h"

static struct bsw_error err;
static struct bsw_nccl_library library;

static enum bsw_status load_version(const char *file, const char *version)
{
    memset(&library, 0x5a, sizeof library);
    memset(&err, 0, sizeof err);
    setenv("BITSWEEP_EMULATOR_NCCL_VERSION", version, 1);
    return bsw_nccl_library_load_file(file, &library, &err);
}

UNIT_TEST(versions_read_as_people_write_them)
{
    static const struct {
        int version;
        const char *text;
    } cases[] = {{21900, "2.19.0"}, {22809, "2.28.9"}, {23012, "2.30.12"},
                 {2708, "2.7.8"},   {30102, "3.1.2"},  {20912, "2.9.12"}};
    char text[24];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bsw_nccl_version_format(cases[i].version, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

UNIT_TEST(a_good_one_has_every_function)
{
    struct bsw_nccl_unique_id id;
    int version = 0;
    assert_int_equal(load_version(NCCL_STAND_IN, "21900"), BSW_OK);
    assert_int_equal(library.version, 21900);
    assert_string_equal(library.version_text, "2.19.0");
    assert_string_equal(library.path, NCCL_STAND_IN);
    void *functions[offsetof(struct bsw_nccl_library, version) / sizeof(void *)];
    memcpy(functions, &library, sizeof functions);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        assert_non_null(functions[i]);
    assert_int_equal(library.get_version(&version), BSW_NCCL_SUCCESS);
    assert_int_equal(version, 21900);
    assert_int_equal(library.get_unique_id(&id), BSW_NCCL_SUCCESS);
    assert_string_equal(library.get_error_string(BSW_NCCL_SUCCESS), "no error");
}

UNIT_TEST(one_that_is_too_old_is_named)
{
    assert_int_equal(load_version(NCCL_STAND_IN, "21803"), BSW_ERROR_USAGE);
    assert_string_equal(err.message,
                        "NCCL 2.18.3 (" NCCL_STAND_IN ") is too old: 2.19.0 or later is needed");
    assert_int_equal(library.version, 21803);
    assert_int_equal(load_version(NCCL_STAND_IN, "2708"), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "NCCL 2.7.8"));
    assert_int_equal(load_version(NCCL_STAND_IN, "0"), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "does not tell its version"));
    assert_int_equal(library.version, 0);
}

UNIT_TEST(one_that_is_missing_is_named)
{
    assert_int_equal(load_version("/nowhere/libnccl.so.2", "22809"), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "NCCL cannot be loaded: /nowhere/libnccl.so.2: "));
    assert_int_equal(library.version, 0);
    unsetenv("BITSWEEP_EMULATOR_NCCL");
    assert_int_equal(bsw_nccl_library_load(&library, &err), BSW_ERROR_USAGE);
    setenv("BITSWEEP_EMULATOR_NCCL", NCCL_STAND_IN, 1);
    assert_int_equal(bsw_nccl_library_load(&library, &err), BSW_OK);
}

UNIT_TEST(another_library_is_none)
{
    assert_int_equal(load_version("libm.so.6", "22809"), BSW_ERROR_USAGE);
    assert_string_equal(err.message, "libm.so.6 has no ncclGetVersion: is it NCCL?");
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
