// SPDX-License-Identifier: Apache-2.0
// A ground truth's journal cut in its last three records: the scan goes on where the
// last whole record was, if its lists are still there (they have two slots), else from its
// beginning, and its lists end as those of an undisturbed scan.
#include "unit_test.h"

#include "common/base/file.h"
#include "coordinator/truth/truth_journal.h"
#include "temporary_folder.h"

enum { ROWS = 300, QUERIES = 4, KEEP = 5, BLOCK = 40, RECORD_BYTES = 16 + 32 + 8, RECORDS = 4 };

static struct bsw_error err;
static bsw_vectors *base, *queries;

static void open_scan(bsw_neighbour_scan *scan)
{
    const struct bsw_neighbour_needs needs = {.metric = BSW_METRIC_L2,
                                              .level = BSW_CPU_REFERENCE,
                                              .base = base,
                                              .queries = queries,
                                              .num_rows = ROWS,
                                              .keep = KEEP,
                                              .block_rows = BLOCK,
                                              .num_threads = 1};
    assert_int_equal(bsw_neighbour_scan_open(&needs, scan, &err), BSW_OK);
}

static void open_journal(struct bsw_truth_journal *journal, bsw_neighbour_scan *scan)
{
    struct bsw_journal_fields fields = {0};
    bsw_journal_field_count(&fields, "k", KEEP);
    assert_ok(
        bsw_truth_journal_open(journal, path_of("t"), 0, BSW_JOURNAL_RESUME, &fields, scan, &err),
        &err);
}

// The lists of a scan that is done.
static void take_lists(bsw_neighbour_scan *scan, struct bsw_ranked lists[QUERIES][KEEP])
{
    while (scan->next_row < ROWS) assert_int_equal(bsw_neighbour_scan_next(scan, &err), BSW_OK);
    bsw_neighbour_scan_finish(scan, 0, QUERIES);
    for (size_t q = 0; q < QUERIES; q++) {
        assert_int_equal(scan->lists[q].count, KEEP);
        for (size_t i = 0; i < KEEP; i++)
            lists[q][i] = (struct bsw_ranked){scan->lists[q].scores[i], scan->lists[q].rows[i]};
    }
}

// A block, then stopped, again and again.
static void stop_often(void)
{
    for (int i = 0; i < RECORDS; i++) {
        struct bsw_truth_journal journal;
        bsw_neighbour_scan scan;
        open_scan(&scan);
        open_journal(&journal, &scan);
        assert_int_equal(journal.num_resumed, i * BLOCK);
        assert_int_equal(bsw_neighbour_scan_next(&scan, &err), BSW_OK);
        bsw_truth_journal_close(&journal, BSW_ERROR_STOPPED);
        bsw_neighbour_scan_close(&scan);
    }
}

static uint64_t rows_done(size_t cut)
{
    return cut == 0 ? RECORDS * BLOCK : cut <= RECORD_BYTES ? (RECORDS - 1) * BLOCK : 0;
}

// Within a record and at its end; test_journal.c cuts at every byte.
UNIT_TEST(every_cut_gives_the_same_lists)
{
    struct bsw_ranked expected[QUERIES][KEEP], lists[QUERIES][KEEP];
    struct bsw_buffer records = {0}, slots = {0};
    struct bsw_truth_journal journal;
    bsw_neighbour_scan scan;
    open_scan(&scan);
    take_lists(&scan, expected);
    bsw_neighbour_scan_close(&scan);
    stop_often();
    read_test_file("t.00000.journal", &records);
    read_test_file("t.00000.lists", &slots);
    for (size_t cut = 0; cut <= 3 * RECORD_BYTES; cut += 8) {
        write_test_file("t.00000.journal", records.data, records.bytes - cut);
        write_test_file("t.00000.lists", slots.data, slots.bytes);
        open_scan(&scan);
        open_journal(&journal, &scan);
        assert_int_equal(journal.num_resumed, rows_done(cut));
        take_lists(&scan, lists);
        assert_memory_equal(lists, expected, sizeof lists);
        bsw_truth_journal_close(&journal, BSW_OK);
        bsw_neighbour_scan_close(&scan);
        assert_int_equal(count_test_files(), 0);
    }
    bsw_buffer_deinit(&records);
    bsw_buffer_deinit(&slots);
}

// A bit of the lists that the last record speaks of, those in the first slot: begun anew.
UNIT_TEST(lists_with_other_bytes_are_not_gone_on_with)
{
    enum { LEAST_BYTES = QUERIES * 8 * (1 + KEEP) }; // that they have, counts and items
    struct bsw_buffer records = {0}, slots = {0};
    stop_often();
    read_test_file("t.00000.journal", &records);
    read_test_file("t.00000.lists", &slots);
    for (size_t at = 0; at < LEAST_BYTES; at++) {
        struct bsw_truth_journal journal;
        bsw_neighbour_scan scan;
        slots.data[at] ^= 1;
        write_test_file("t.00000.journal", records.data, records.bytes);
        write_test_file("t.00000.lists", slots.data, slots.bytes);
        slots.data[at] ^= 1;
        open_scan(&scan);
        open_journal(&journal, &scan);
        assert_int_equal(journal.num_resumed, 0);
        assert_int_equal(scan.next_row, 0);
        bsw_truth_journal_close(&journal, BSW_OK);
        bsw_neighbour_scan_close(&scan);
    }
    bsw_buffer_deinit(&records);
    bsw_buffer_deinit(&slots);
}

static int open_sources(void **state)
{
    return make_temporary_folder(state) != 0 ||
           bsw_vectors_open("synth:count=300,dims=8", BSW_ALL_ROWS, &base, &err) != BSW_OK ||
           bsw_vectors_open("synth:count=4,dims=8,seed=2", BSW_ALL_ROWS, &queries, &err) != BSW_OK;
}

static int close_sources(void **state)
{
    bsw_vectors_close(&base);
    bsw_vectors_close(&queries);
    return remove_temporary_folder(state);
}

int main(void)
{
    return run_unit_tests(open_sources, close_sources);
}
