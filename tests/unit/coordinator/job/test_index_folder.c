// SPDX-License-Identifier: Apache-2.0
// The folder of an index that is made: one run at a time, and a manifest that stays only if it and
// the shard files can be read back.
#include "shard/codecs/codec.h"
#include "small_index.h"
#include "temporary_folder.h"

#include "coordinator/job/index_folder.h"

static struct bsw_error err;
static struct bsw_manifest manifest;

static const char *const parts[] = {"shard-00000-of-00002.codes", "shard-00001-of-00002.codes",
                                    "shard-00000-of-00002.vectors", "shard-00001-of-00002.vectors"};
enum { NUM_PARTS = sizeof parts / sizeof parts[0] };

// An index whose files have their temporary names again, begun.
static struct bsw_index_folder begin_index(void)
{
    const struct small_index what = {.source = "synth:count=300,dims=20,seed=3",
                                     .codec = &bsw_codec_saq,
                                     .metric = BSW_METRIC_L2,
                                     .bits = 2,
                                     .copies_vectors = 1,
                                     .num_shards = 2};
    struct bsw_index_folder folder = {0};
    bsw_manifest_deinit(&manifest);
    make_small_index(&what, temporary_folder, &manifest);
    assert_int_equal(unlink(path_of("manifest.pb")), 0);
    for (int i = 0; i < NUM_PARTS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.tmp", parts[i]);
        assert_int_equal(rename(path_of(parts[i]), path_of(name)), 0);
    }
    assert_ok(bsw_index_folder_begin(&folder, temporary_folder, &err), &err);
    folder.has_files = 1;
    return folder;
}

static void flip_byte(const char *name, long offset)
{
    FILE *file = fopen(path_of(name), "r+b");
    int byte = file && fseek(file, offset, offset < 0 ? SEEK_END : SEEK_SET) == 0 ? getc(file) : -1;
    assert_true(byte >= 0);
    assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
    assert_true(putc(byte ^ 1, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

// part: of the files as they are named at last.
static void expect_refusal(const char *temporary, const char *part, long offset, int is_cut)
{
    struct bsw_index_folder folder = begin_index();
    if (is_cut)
        assert_int_equal(truncate(path_of(temporary), offset), 0);
    else
        flip_byte(temporary, offset);
    assert_int_equal(bsw_index_folder_commit(&folder, &manifest, &err), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, part));
    assert_int_not_equal(access(path_of("manifest.pb"), F_OK), 0);
    bsw_index_folder_abandon(&folder, &manifest);
    assert_int_equal(count_test_files(), 0);
}

UNIT_TEST(what_cannot_has_no_manifest)
{
    expect_refusal("shard-00001-of-00002.codes.tmp", parts[1], 30, 0);  // its header
    expect_refusal("shard-00000-of-00002.codes.tmp", parts[0], -12, 0); // its digests
    expect_refusal("shard-00001-of-00002.codes.tmp", parts[1], 4000, 1);
    expect_refusal("shard-00001-of-00002.vectors.tmp", parts[3], 20, 0);
    expect_refusal("shard-00000-of-00002.vectors.tmp", parts[2], 5000, 1);
    struct bsw_index_folder folder = begin_index();
    manifest.shards[0].codes_digest ^= 1; // as if another program had written the file
    assert_int_equal(bsw_index_folder_commit(&folder, &manifest, &err), BSW_ERROR_BAD_DATA);
    bsw_index_folder_abandon(&folder, &manifest);
}

UNIT_TEST(one_run_has_the_folder)
{
    struct bsw_index_folder first = {0}, second = {0};
    assert_ok(bsw_index_folder_begin(&first, temporary_folder, &err), &err);
    assert_int_equal(bsw_index_folder_begin(&second, temporary_folder, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "another run is writing it"));
    bsw_index_folder_abandon(&second, &manifest);
    assert_int_equal(access(path_of("encode.lock"), F_OK), 0);
    bsw_index_folder_release(&first);
    assert_int_equal(count_test_files(), 0);
    write_test_file("encode.lock", "", 0); // of a run that was killed
    assert_ok(bsw_index_folder_begin(&second, temporary_folder, &err), &err);
    bsw_index_folder_abandon(&second, &manifest);
    assert_int_equal(count_test_files(), 0);
}

UNIT_TEST(names_that_encode_makes)
{
    static const char *const made[] = {"manifest.pb",
                                       "model.rbe",
                                       "encode.lock",
                                       "encode.plan",
                                       "encode.lists",
                                       "encode.table",
                                       "encode-00003.journal",
                                       "shard-00000-of-00004.codes",
                                       "shard-00000-of-00004.vectors.tmp",
                                       "manifest.pb.tmp.77"};
    static const char *const others[] = {"base.fbin", "encode.fbin", "manifest.pb.bak",
                                         "shard-00000-of-00004.fbin", "encode-00003.journals"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        assert_true(bsw_index_folder_makes(made[i]));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(bsw_index_folder_makes(others[i]));
}

// Its files stay.
UNIT_TEST(what_can_be_read_back_stays)
{
    struct bsw_index_folder folder = begin_index();
    assert_ok(bsw_index_folder_commit(&folder, &manifest, &err), &err);
    bsw_index_folder_release(&folder);
    assert_int_equal(count_test_files(), 1 + NUM_PARTS);
}

static int remove_all(void **state)
{
    bsw_manifest_deinit(&manifest);
    return remove_temporary_folder(state);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_all);
}
