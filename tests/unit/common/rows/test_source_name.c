// SPDX-License-Identifier: Apache-2.0
// Names of sources: kinds by their endings, datasets behind a colon.
#include <string.h>

#include "common/rows/vectors.h"
#include "unit_test.h"

UNIT_TEST(hdf5_names_have_a_file_and_a_dataset)
{
    static const struct {
        const char *name, *file, *dataset;
    } good[] = {{"a.hdf5", "a.hdf5", "train"},
                {"a.h5", "a.h5", "train"},
                {"x/a.hdf5:test", "x/a.hdf5", "test"},
                {"a.h5:group/rows", "a.h5", "group/rows"},
                {"a.h5:one:two", "a.h5", "one:two"},
                {"a.h5.hdf5:t", "a.h5.hdf5", "t"},
                {"a.hdf5/b.hdf5", "a.hdf5/b.hdf5", "train"},
                {"c:a.h5:t", "c:a.h5", "t"}};
    static const char *const bad[] = {".hdf5", "a.hdf5:", "a.hdf5x", "a.h5.fbin",
                                      "hdf5",  ".h5:t",   "",        "a.hdf"};
    struct bsw_hdf5_name name;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(bsw_hdf5_name_parse(good[i].name, "train", &name));
        assert_string_equal(name.file, good[i].file);
        assert_string_equal(name.dataset, good[i].dataset);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(bsw_hdf5_name_parse(bad[i], "train", &name));
}

UNIT_TEST(a_path_that_is_too_long_is_no_name)
{
    static char text[BSW_PATH_BYTES + 16];
    struct bsw_hdf5_name name;
    for (size_t length = BSW_PATH_BYTES - 2; length < BSW_PATH_BYTES + 4; length++) {
        memset(text, 'a', length - 3);
        memcpy(text + length - 3, ".h5:t", 6);
        assert_int_equal(bsw_hdf5_name_parse(text, "train", &name), length < BSW_PATH_BYTES);
    }
}

UNIT_TEST(kinds_follow_the_ending)
{
    static const char *const vectors[] = {"a.fvecs", "a.bvecs", "a.fbin", "a.u8bin",   "a.i8bin",
                                          "a.npy",   "a.hdf5",  "a.h5",   "a.h5:test", "synth:"};
    static const char *const others[] = {"result", "a.ivecs", "a.ibin",     "a.h5:neighbors",
                                         "fbin",   ".fbin",   "a.fbin.json"};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        assert_true(bsw_name_is_vectors(vectors[i]) && !bsw_name_is_ids(vectors[i]));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(bsw_name_is_vectors(others[i]));
    assert_true(bsw_name_is_ids("a.ivecs") && bsw_name_is_ids("a.neighbors.ibin"));
    assert_false(bsw_name_is_ids("ivecs") || bsw_name_is_ids("a.ivecs.x"));
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
