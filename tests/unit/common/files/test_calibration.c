// SPDX-License-Identifier: Apache-2.0
// The table of recalls in a manifest: what is written is read back, it does not change the digest
// of the build, and tables that cannot be are refused.
#include "manifest_cases.h"

#include "common/files/calibration.h"

static const struct bsw_calibration_entry good_entries[] = {
    {.probe = 3, .ratio = 0.75, .oversample = 1, .recall = 0.5, .rows_a_query = 100.5},
    {.probe = 3, .ratio = 1.125, .oversample = 2, .recall = 0.75, .rows_a_query = 300},
    {.probe = 3,
     .ratio = 1.25,
     .oversample = 3,
     .recall = 0.9,
     .rows_a_query = 400,
     .scan_dims = 64},
    {.probe = 5, .ratio = 0, .oversample = 12, .recall = 1, .rows_a_query = 5024}};
enum { NUM_GOOD = sizeof good_entries / sizeof good_entries[0] };

static void add_table(struct bsw_manifest *manifest, uint32_t num_entries)
{
    struct bsw_calibration *table = &manifest->calibration;
    *table = (struct bsw_calibration){.k = 10,
                                      .num_queries = 77,
                                      .source = BSW_CALIBRATED_BY_QUERIES,
                                      .num_entries = num_entries};
    table->entries = allocate(num_entries, sizeof *table->entries);
    memcpy(table->entries, good_entries,
           (num_entries < NUM_GOOD ? num_entries : NUM_GOOD) * sizeof *table->entries);
}

// Five lists of 47 dimensions, and the table.
static void make_lists(struct bsw_manifest *manifest)
{
    make_plain(manifest);
    manifest->lists.count = 5;
    manifest->lists.centroids = allocate(5 * 47, sizeof(float));
    add_table(manifest, NUM_GOOD);
}

UNIT_TEST(a_table_is_read_back_as_it_was)
{
    struct bsw_manifest manifest, again;
    struct bsw_buffer first = {0}, second = {0};
    make_lists(&manifest);
    pack(&manifest, &first);
    assert_int_equal(bsw_manifest_parse("m", first.data, first.bytes, &again, &err), BSW_OK);
    const struct bsw_calibration *table = &again.calibration;
    assert_int_equal(table->k, 10);
    assert_int_equal(table->num_queries, 77);
    assert_int_equal(table->source, BSW_CALIBRATED_BY_QUERIES);
    assert_int_equal(table->num_entries, NUM_GOOD);
    for (int i = 0; i < NUM_GOOD; i++) {
        const struct bsw_calibration_entry *entry = &table->entries[i], *good = &good_entries[i];
        assert_int_equal(entry->probe, good->probe);
        assert_true(entry->ratio == good->ratio && entry->oversample == good->oversample &&
                    entry->recall == good->recall && entry->rows_a_query == good->rows_a_query);
        assert_int_equal(entry->scan_dims, good->scan_dims);
    }
    pack(&again, &second);
    assert_int_equal(first.bytes, second.bytes);
    assert_memory_equal(first.data, second.data, first.bytes);
    bsw_buffer_deinit(&first);
    bsw_buffer_deinit(&second);
    bsw_manifest_deinit(&again);
    bsw_manifest_deinit(&manifest);
}

UNIT_TEST(a_table_is_not_in_the_digest_of_the_build)
{
    struct bsw_manifest manifest;
    uint64_t with, without;
    make_lists(&manifest);
    assert_int_equal(bsw_manifest_build_digest(&manifest, &with, &err), BSW_OK);
    bsw_calibration_deinit(&manifest.calibration);
    assert_int_equal(bsw_manifest_build_digest(&manifest, &without, &err), BSW_OK);
    assert_int_equal(with, without);
    bsw_manifest_deinit(&manifest);
}

// What a change of the good table makes the parser say.
#define REFUSED(clause, ...)                             \
    do {                                                 \
        struct bsw_manifest m;                           \
        struct bsw_buffer bytes = {0};                   \
        make_lists(&m);                                  \
        __VA_ARGS__;                                     \
        pack(&m, &bytes);                                \
        assert_refused(bytes.data, bytes.bytes, clause); \
        bsw_buffer_deinit(&bytes);                       \
        bsw_manifest_deinit(&m);                         \
    } while (0)

UNIT_TEST(tables_that_cannot_be_are_refused)
{
    static const char entry[] = "an entry of the calibration is out of range";
    REFUSED("the calibration is out of range", m.calibration.k = 0);
    REFUSED("the calibration is out of range", m.calibration.k = 10001);
    REFUSED("the calibration is out of range", m.calibration.num_queries = 0);
    REFUSED("the calibration is out of range", bsw_calibration_deinit(&m.calibration);
            add_table(&m, BSW_MAX_CALIBRATION_ENTRIES + 1));
    REFUSED("a calibration without lists", m.lists.count = 0);
    REFUSED(entry, m.calibration.entries[1].probe = 0);
    REFUSED(entry, m.calibration.entries[1].probe = 6);
    REFUSED(entry, m.calibration.entries[1].ratio = -1);
    REFUSED(entry, m.calibration.entries[1].ratio = NAN);
    REFUSED(entry, m.calibration.entries[1].ratio = 1001);
    REFUSED(entry, m.calibration.entries[1].oversample = 0.5);
    REFUSED(entry, m.calibration.entries[1].oversample = NAN);
    REFUSED(entry, m.calibration.entries[1].oversample = INFINITY);
    REFUSED(entry, m.calibration.entries[1].recall = -0.1);
    REFUSED(entry, m.calibration.entries[NUM_GOOD - 1].recall = 1.1);
    REFUSED(entry, m.calibration.entries[1].recall = NAN);
    REFUSED(entry, m.calibration.entries[1].rows_a_query = -1);
    REFUSED(entry, m.calibration.entries[1].rows_a_query = INFINITY);
    REFUSED(entry, m.calibration.entries[2].scan_dims = 32);
    REFUSED("not in order", m.calibration.entries[1].recall = 0.4);
    REFUSED("not in order", m.calibration.entries[1].recall = 0.5);
}

static void take(const char *source, uint32_t num_entries, int may_have_ratio, const char *clause)
{
    Bsw__CalibrationEntry entry = BSW__CALIBRATION_ENTRY__INIT, *entries[] = {&entry};
    struct bsw_code_layout layout;
    Bsw__Calibration message = BSW__CALIBRATION__INIT;
    struct bsw_calibration table;
    bsw_code_layout_init(&layout);
    entry.probe = 1;
    entry.ratio = 1;
    entry.oversample = 1;
    message.k = 10;
    message.queries = 1;
    message.source = (char *)source;
    message.n_entries = num_entries;
    message.entries = entries;
    enum bsw_status status =
        bsw_calibration_take("m", &message, 5, may_have_ratio, &layout, &table, &err);
    assert_int_equal(status, clause ? BSW_ERROR_BAD_DATA : BSW_OK);
    if (clause) assert_non_null(strstr(err.message, clause));
    bsw_calibration_deinit(&table);
}

UNIT_TEST(messages_that_cannot_be_are_refused)
{
    take("rows", 1, 1, NULL);
    take("queries", 1, 1, NULL);
    take("", 1, 1, "unknown source");
    take("guesses", 1, 1, "unknown source");
    take("rows", 0, 1, "out of range");
    take("rows", 1, 0, "an entry of the calibration is out of range"); // a ratio of products
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
