// SPDX-License-Identifier: Apache-2.0
// Where an index finds its source and its shards: paths of bsw_source_relative, there and back.
#include "common/files/index_manifest.h"
#include "temporary_folder.h"
#include "unit_test.h"

static struct bsw_error err;

struct place {
    const char *folder, *source, *expected;
};

// The relative path leads from the folder to the source, and is the short one.
static void check_relative(const struct place *place)
{
    char folder[512], source[512], out[BSW_PATH_BYTES], back[BSW_PATH_BYTES];
    struct stat there, found;
    struct bsw_manifest manifest;
    snprintf(folder, sizeof folder, "%s/%s", temporary_folder, place->folder);
    snprintf(source, sizeof source, "%s/%s", temporary_folder, place->source);
    assert_int_equal(bsw_source_relative(source, folder, out, &err), BSW_OK);
    assert_string_equal(out, place->expected);
    memset(&manifest, 0, sizeof manifest);
    strcpy(manifest.source_path, out);
    assert_int_equal(bsw_manifest_source(&manifest, folder, back, &err), BSW_OK);
    assert_int_equal(stat(source, &there), 0);
    assert_int_equal(stat(back, &found), 0);
    assert_true(there.st_ino == found.st_ino && there.st_dev == found.st_dev);
}

UNIT_TEST(sources_are_found_from_their_index)
{
    static const char *const folders[] = {"a", "a/b", "a/b/c", "ab", "abc"};
    static const char *const files[] = {"f", "a/f", "a/b/f", "a/b/c/f", "ab/f", "abc/f", "a/bf"};
    static const struct place places[] = {
        {"a", "a/f", "f"},
        {"a/b", "a/b/f", "f"},
        {"a", "f", "../f"},
        {"a/b/c", "f", "../../../f"},
        {"a/b/c", "a/f", "../../f"},
        {"a", "a/b/c/f", "b/c/f"},
        {"ab", "abc/f", "../abc/f"}, // a name that begins like the other is another name
        {"abc", "ab/f", "../ab/f"},
        {"a", "ab/f", "../ab/f"},
        {"a/b", "a/bf", "../bf"},
        {"a/b/c", "abc/f", "../../../abc/f"},
        {"a/./b/../b", "a//b/c/../f", "f"},
        {"link", "a/b/f", "f"}, // to a/b
        {"link", "f", "../../f"},
        {"a", "link/f", "b/f"},
    };
    for (size_t i = 0; i < 5; i++) assert_int_equal(mkdir(path_of(folders[i]), 0777), 0);
    for (size_t i = 0; i < 7; i++) write_test_file(files[i], files[i], 1);
    assert_int_equal(symlink("a/b", path_of("link")), 0);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) check_relative(&places[i]);
    char out[BSW_PATH_BYTES], expected[512];
    assert_int_equal(bsw_source_relative(path_of("a/f"), "/", out, &err), BSW_OK);
    snprintf(expected, sizeof expected, "%s/a/f", temporary_folder + 1);
    assert_string_equal(out, expected);
    assert_int_equal(bsw_source_relative(path_of("nowhere"), path_of("a"), out, &err),
                     BSW_ERROR_IO);
    assert_int_equal(bsw_source_relative(path_of("f"), path_of("nowhere"), out, &err),
                     BSW_ERROR_IO);
    for (size_t i = 0; i < 7; i++) unlink(path_of(files[i]));
    unlink(path_of("link"));
    for (size_t i = 5; i-- > 0;) rmdir(path_of(folders[i]));
}

UNIT_TEST(other_sources_stay_as_they_are)
{
    struct bsw_manifest manifest = {.source_path = "synth:count=5,dims=3"};
    char out[BSW_PATH_BYTES];
    assert_int_equal(bsw_source_relative("synth:count=5,dims=3", "/nowhere", out, &err), BSW_OK);
    assert_string_equal(out, "synth:count=5,dims=3");
    assert_int_equal(bsw_manifest_source(&manifest, "/index", out, &err), BSW_OK);
    assert_string_equal(out, "synth:count=5,dims=3");
    strcpy(manifest.source_path, "/data/base.fbin");
    assert_int_equal(bsw_manifest_source(&manifest, "/index", out, &err), BSW_OK);
    assert_string_equal(out, "/data/base.fbin");
    assert_int_equal(bsw_shard_path(out, "/index", 3, 16, ".codes", &err), BSW_OK);
    assert_string_equal(out, "/index/shard-00003-of-00016.codes");
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
