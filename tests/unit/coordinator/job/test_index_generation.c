// SPDX-License-Identifier: Apache-2.0
// Generations in a folder: what is kept, what goes, and what is said of another one. Manifests
// alone, as files of shards are looked at by name.
#include "coordinator/job/index_generation.h"

#include <unistd.h>

#include "common/net/transport.h"
#include "manifest_cases.h"

static struct bsw_transport alone;
static struct bsw_generation generation;

static void put(const char *name)
{
    char path[BSW_PATH_BYTES];
    assert_ok(bsw_path_join(path, temporary_folder, name, &err), &err);
    assert_ok(bsw_file_write_atomic(path, "x", 1, &err), &err);
}

static void put_part(const char *name)
{
    char path[BSW_PATH_BYTES];
    assert_ok(bsw_path_join(path, temporary_folder, name, &err), &err);
    assert_ok(bsw_folder_create(path, &err), &err);
}

static int is_there(const char *name)
{
    char path[BSW_PATH_BYTES];
    assert_ok(bsw_path_join(path, temporary_folder, name, &err), &err);
    return access(path, F_OK) == 0;
}

static void begin(void)
{
    bsw_transport_local_init(&alone);
    assert_ok(bsw_generation_begin(&generation, temporary_folder, &alone, &err), &err);
}

static void write_first(void)
{
    struct bsw_manifest manifest;
    make_raw(&manifest);
    assert_ok(bsw_manifest_write(&manifest, temporary_folder, &err), &err);
    bsw_manifest_deinit(&manifest);
}

// A generation whose shards are all in one part of its own.
static void replace(uint64_t keep)
{
    char name[BSW_PART_NAME_BYTES], path[BSW_PATH_BYTES];
    struct bsw_manifest made;
    make_raw(&made);
    begin();
    assert_ok(bsw_generation_part_path(&generation, name, path, &err), &err);
    put_part(name);
    assert_ok(bsw_generation_advance(&generation.manifest, 0, &err), &err);
    assert_ok(bsw_generation_add_part(&generation.manifest, name, &made, &err), &err);
    assert_ok(bsw_generation_commit(&generation, keep, &err), &err);
    bsw_generation_end(&generation);
    bsw_manifest_deinit(&made);
}

UNIT_TEST(what_no_kept_generation_names_goes)
{
    write_first();
    put("shard-00000-of-00004.codes");
    put("deleted-00001-00000.bits"); // of a run that was killed
    put("manifest.pb.tmp.1");
    put("notes.txt"); // somebody's
    replace(1);
    assert_true(is_there("manifest-00000.pb") && is_there("shard-00000-of-00004.codes"));
    assert_true(is_there("part-00001") && is_there("notes.txt"));
    assert_false(is_there("deleted-00001-00000.bits") || is_there("manifest.pb.tmp.1"));
    replace(1);
    assert_false(is_there("manifest-00000.pb") || is_there("shard-00000-of-00004.codes"));
    assert_true(is_there("manifest-00001.pb") && is_there("part-00001"));
    assert_true(is_there("part-00002"));
    replace(0);
    assert_false(is_there("manifest-00001.pb") || is_there("manifest-00002.pb"));
    assert_false(is_there("part-00001") || is_there("part-00002"));
    assert_true(is_there("part-00003") && is_there("notes.txt"));
}

UNIT_TEST(another_generation_is_named)
{
    struct bsw_manifest first;
    write_first();
    assert_ok(bsw_manifest_read(temporary_folder, &first, &err), &err);
    bsw_fail(&err, BSW_ERROR_BAD_DATA, "a file is missing");
    assert_int_equal(bsw_generation_explain(temporary_folder, &first, BSW_ERROR_BAD_DATA, &err),
                     BSW_ERROR_BAD_DATA);
    assert_string_equal(err.message, "a file is missing");
    replace(1);
    bsw_fail(&err, BSW_ERROR_BAD_DATA, "a file is missing");
    assert_int_equal(bsw_generation_explain(temporary_folder, &first, BSW_ERROR_BAD_DATA, &err),
                     BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "was of generation 0 when this began and is of 1 now, "
                                        "begin again: a file is missing"));
    bsw_manifest_deinit(&first);
}

UNIT_TEST(an_index_that_is_replaced_leaves_no_parts)
{
    write_first();
    replace(1);
    put("deleted-00001-00000.bits");
    assert_ok(bsw_generations_remove(temporary_folder, &err), &err);
    assert_false(is_there("part-00001") || is_there("manifest-00000.pb"));
    assert_false(is_there("deleted-00001-00000.bits"));
    assert_true(is_there("manifest.pb"));
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
