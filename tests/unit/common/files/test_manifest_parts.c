// SPDX-License-Identifier: Apache-2.0
// Manifests of format version 5: parts, deleted rows, rows that are numbered anew.
#include <unistd.h>

#include "common/files/deleted_rows.h"
#include "manifest_cases.h"

// 4 shards, of which the last two are in parts of their own.
static void make_living(struct bsw_manifest *manifest)
{
    make_raw(manifest);
    manifest->generation = 2;
    manifest->num_parts = 3;
    manifest->parts = (struct bsw_index_part *)allocate(3, sizeof *manifest->parts);
    for (uint32_t p = 0; p < 3; p++) {
        struct bsw_index_part *part = &manifest->parts[p];
        bsw_manifest_as_part(manifest, part);
        part->num_shards = p == 0 ? 2 : 1;
        if (p > 0) snprintf(part->folder, sizeof part->folder, "part-%05u", p);
        part->build_digest = 100 + p;
        if (p > 0) part->source_shift = manifest->shards[p + 1].first_row;
    }
    manifest->shards[1].deleted_rows = 7;
    manifest->shards[1].deleted_in = 2;
    manifest->shards[1].deleted_digest = 99;
}

UNIT_TEST(parts_come_back)
{
    struct bsw_manifest in, out;
    struct bsw_buffer first = {0}, second = {0};
    make_living(&in);
    pack(&in, &first);
    assert_ok(bsw_manifest_parse("m", first.data, first.bytes, &out, &err), &err);
    assert_int_equal(bsw_manifest_format_version(&out), 5);
    assert_int_equal(out.generation, 2);
    assert_int_equal(out.num_parts, 3);
    assert_memory_equal(out.shards, in.shards, in.num_shards * sizeof *in.shards);
    assert_int_equal(bsw_manifest_live_rows(&out), out.num_rows - out.dropped_rows - 7);
    pack(&out, &second);
    assert_int_equal(first.bytes, second.bytes);
    assert_memory_equal(first.data, second.data, first.bytes);
    bsw_manifest_deinit(&in);
    bsw_manifest_deinit(&out);
    bsw_buffer_deinit(&first);
    bsw_buffer_deinit(&second);
}

UNIT_TEST(shards_lie_in_their_parts)
{
    struct bsw_manifest manifest;
    char path[BSW_PATH_BYTES];
    make_living(&manifest);
    assert_ok(bsw_manifest_shard_path(path, &manifest, "/i", 1, ".codes", &err), &err);
    assert_string_equal(path, "/i/shard-00001-of-00002.codes");
    assert_ok(bsw_manifest_shard_path(path, &manifest, "/i", 3, ".codes", &err), &err);
    assert_string_equal(path, "/i/part-00002/shard-00000-of-00001.codes");
    struct bsw_shard_home home = bsw_manifest_home(&manifest, 3);
    assert_int_equal(home.build_digest, 102);
    assert_ok(bsw_shard_source(&home, "/i", path, &err), &err);
    assert_string_equal(path, "/i/part-00002/../vectors/base.i8bin");
    bsw_manifest_deinit(&manifest);
}

UNIT_TEST(shorter_answers_come_back)
{
    struct bsw_manifest in, out;
    struct bsw_buffer bytes = {0};
    make_living(&in);
    in.shards[1].num_known_rows = 20;
    pack(&in, &bytes);
    assert_ok(bsw_manifest_parse("m", bytes.data, bytes.bytes, &out, &err), &err);
    assert_int_equal(bsw_manifest_known(&out, 1).num_rows, 20);
    assert_true(bsw_manifest_known(&out, 1).is_short);
    assert_false(bsw_manifest_known(&out, 2).is_short);
    bsw_manifest_deinit(&in);
    bsw_manifest_deinit(&out);
    bsw_buffer_deinit(&bytes);
}

#define LIE(name, statement)                       \
    static void lie_##name(struct bsw_manifest *m) \
    {                                              \
        statement;                                 \
    }
LIE(folder, strcpy(m->parts[1].folder, "../elsewhere"))
LIE(folder_number, strcpy(m->parts[1].folder, "part-1"))
LIE(shards_more, m->parts[2].num_shards = 2)
LIE(shards_fewer, m->parts[0].num_shards = 1)
LIE(shards_none, m->parts[1].num_shards = 0)
LIE(shards_wrap, m->parts[1].num_shards = UINT32_MAX)
LIE(no_parts, m->num_parts = 0)
LIE(no_generation, m->generation = 0; m->ids_digest = 1; m->shards[1].deleted_rows = 0;
    m->shards[1].deleted_in = 0)
LIE(shift_wraps, m->parts[1].source_shift += 1)
LIE(source_short, m->parts[2].source_rows = 5)
LIE(order, m->parts[2].has_ordered_vectors = 1; m->parts[2].source_is_copied = 0)
LIE(deleted_all, m->shards[1].deleted_rows = m->shards[1].num_rows + 1)
LIE(deleted_never, m->shards[1].deleted_in = 0)
LIE(deleted_later, m->shards[1].deleted_in = 3)

UNIT_TEST(parts_that_lie_are_refused)
{
    static const struct {
        void (*lie)(struct bsw_manifest *m);
        const char *clause;
    } lies[] = {{lie_folder, "the folder of a part is none"},
                {lie_folder_number, "the folder of a part is none"},
                {lie_shards_more, "shards of the parts do not add up"},
                {lie_shards_fewer, "more rows than the source of a part has"},
                {lie_shards_none, "shards of the parts do not add up"},
                {lie_shards_wrap, "shards of the parts do not add up"},
                {lie_no_parts, "number of parts"},
                {lie_no_generation, "number of parts"},
                {lie_shift_wraps, "more rows than the source of a part has"},
                {lie_source_short, "more rows than the source of a part has"},
                {lie_order, "an order of rows that are not copied"},
                {lie_deleted_all, "the deleted rows of a shard do not fit"},
                {lie_deleted_never, "the deleted rows of a shard do not fit"},
                {lie_deleted_later, "the deleted rows of a shard do not fit"}};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct bsw_manifest manifest;
        struct bsw_buffer bytes = {0};
        make_living(&manifest);
        lies[i].lie(&manifest);
        pack(&manifest, &bytes);
        assert_refused(bytes.data, bytes.bytes, lies[i].clause);
        bsw_manifest_deinit(&manifest);
        bsw_buffer_deinit(&bytes);
    }
}

UNIT_TEST(rows_numbered_beyond_the_source_are_refused)
{
    struct bsw_manifest manifest;
    struct bsw_buffer bytes = {0};
    make_raw(&manifest);
    manifest.source_shift = manifest.first_row + 1; // the first row would be row -1 of the source
    pack(&manifest, &bytes);
    assert_refused(bytes.data, bytes.bytes, "more rows than the source has");
    bsw_manifest_deinit(&manifest);
    bsw_buffer_deinit(&bytes);
}

UNIT_TEST(deleted_rows_come_back)
{
    struct bsw_manifest manifest;
    uint32_t *found, masks[64] = {[0] = 1, [39] = 0x80000000};
    char path[BSW_PATH_BYTES];
    make_living(&manifest);
    assert_ok(bsw_deleted_rows_write(&manifest, temporary_folder, 2, masks, &err), &err);
    assert_int_equal(manifest.shards[2].deleted_rows, 2);
    assert_int_equal(manifest.shards[2].deleted_in, 2);
    assert_ok(bsw_deleted_rows_read(&manifest, temporary_folder, 2, &found, &err), &err);
    assert_memory_equal(found, masks, bsw_num_bundles(manifest.shards[2].num_rows) * 4);
    bsw_free(&found);
    manifest.shards[2].deleted_digest ^= 1;
    assert_int_equal(bsw_deleted_rows_read(&manifest, temporary_folder, 2, &found, &err),
                     BSW_ERROR_BAD_DATA);
    assert_ok(bsw_path_join(path, temporary_folder, "deleted-00002-00002.bits", &err), &err);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(bsw_deleted_rows_read(&manifest, temporary_folder, 2, &found, &err),
                     BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "missing from the index"));
    bsw_manifest_deinit(&manifest);
}

UNIT_TEST(names_of_files_are_exact)
{
    uint64_t generation;
    uint32_t shard, part;
    assert_true(bsw_deleted_rows_are_named("deleted-00003-00012.bits", &generation, &shard));
    assert_true(generation == 3 && shard == 12);
    assert_false(bsw_deleted_rows_are_named("deleted-3-12.bits", NULL, NULL));
    assert_false(bsw_deleted_rows_are_named("deleted-00003-00012.bits.old", NULL, NULL));
    assert_true(bsw_index_part_is_named("part-00042", &part) && part == 42);
    assert_true(bsw_index_part_is_named("part-123456", &part) && part == 123456);
    assert_false(bsw_index_part_is_named("part-42", NULL));
    assert_false(bsw_index_part_is_named("part-00042.tmp", NULL));
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
