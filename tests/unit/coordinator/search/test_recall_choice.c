// SPDX-License-Identifier: Apache-2.0
// Entries that are worth their work, the choice among them, and what a search becomes by it.
#include "manifest_cases.h"

#include "coordinator/search/search_settings.h"

static struct bsw_calibration_entry entry(double rows, double oversample, double recall)
{
    return (struct bsw_calibration_entry){.probe = 1,
                                          .ratio = rows / 1000,
                                          .oversample = oversample,
                                          .recall = recall,
                                          .rows_a_query = rows};
}

UNIT_TEST(rows_and_candidates_are_work)
{
    const struct bsw_calibration table = {.k = 10, .padded_dims = 128};
    struct bsw_calibration_entry some = entry(1000, 2, 0.9);
    assert_true(bsw_recall_cost(&table, &some, some.oversample) == 1000 + 64 * 10 * 2);
    assert_true(bsw_recall_cost(&table, &some, 5) == 1000 + 64 * 10 * 5);
    some.scan_dims = 64; // 64 + 32 of 128 + 32
    assert_true(bsw_recall_cost(&table, &some, 2) == 600 + 64 * 10 * 2);
}

UNIT_TEST(what_others_find_for_less_goes)
{
    struct bsw_calibration_entry entries[] = {
        entry(5000, 1, 0.80),                     // 0.85 costs less
        entry(3000, 2, 0.85), entry(100, 1, 0.2), // less than can be asked for
        entry(200, 1, 0.4),   entry(9000, 3, 0.99), entry(9000, 5, 0.99),
        entry(1000, 1, 0.6),  entry(20000, 1, 0.97)};
    struct bsw_calibration table = {
        .k = 10, .num_entries = sizeof entries / sizeof entries[0], .entries = entries};
    bsw_recall_front(&table);
    static const double recalls[] = {0.6, 0.85, 0.99};
    assert_int_equal(table.num_entries, 3);
    for (int i = 0; i < 3; i++) assert_true(entries[i].recall == recalls[i]);
    assert_true(entries[2].oversample == 3);
}

UNIT_TEST(the_best_stays_even_where_it_is_little)
{
    struct bsw_calibration_entry entries[] = {entry(100, 1, 0.2), entry(200, 1, 0.3)};
    struct bsw_calibration table = {.k = 10, .num_entries = 2, .entries = entries};
    bsw_recall_front(&table);
    assert_int_equal(table.num_entries, 1);
    assert_true(entries[0].recall == 0.3);
}

// Three entries with oversamples 1, 2, 5.
static struct bsw_calibration_entry front[] = {
    {.probe = 4, .ratio = 0.9, .oversample = 1, .recall = 0.6, .rows_a_query = 1000},
    {.probe = 4, .ratio = 1.1, .oversample = 2, .recall = 0.9, .rows_a_query = 2000},
    {.probe = 5, .ratio = 0, .oversample = 5, .recall = 0.98, .rows_a_query = 5024}};
static const struct bsw_calibration front_table = {
    .k = 10, .num_queries = 100, .num_entries = 3, .entries = front};

UNIT_TEST(the_cheapest_that_reaches_it_is_chosen)
{
    assert_ptr_equal(bsw_recall_cheapest(&front_table, 0.5, 0), &front[0]);
    assert_ptr_equal(bsw_recall_cheapest(&front_table, 0.6, 0), &front[0]);
    assert_ptr_equal(bsw_recall_cheapest(&front_table, 0.61, 0), &front[1]);
    assert_ptr_equal(bsw_recall_cheapest(&front_table, 0.98, 0), &front[2]);
    assert_null(bsw_recall_cheapest(&front_table, 0.99, 0));
    assert_ptr_equal(bsw_recall_cheapest(&front_table, 0.7, 12), &front[1]);
    assert_ptr_equal(bsw_recall_cheapest(&front_table, 0.9, 2), &front[1]);
    assert_null(bsw_recall_cheapest(&front_table, 0.9, 1.5));
}

// ---- searches ----

static struct bsw_manifest manifest;

static struct bsw_search_request request_of(double recall)
{
    return (struct bsw_search_request){.k = 10, .batch = 10, .num_threads = 1, .recall = recall};
}

static void make_index(void)
{
    make_plain(&manifest);
    manifest.lists.count = 5;
    manifest.calibration = front_table;
}

static void free_index(void)
{
    manifest.calibration = (struct bsw_calibration){0};
    bsw_manifest_deinit(&manifest);
}

static struct bsw_search_settings settle(const struct bsw_search_request *request)
{
    struct bsw_search_settings out;
    assert_ok(bsw_search_settle(request, &manifest, "i", 1, &out, &err), &err);
    return out;
}

static void refuse(const struct bsw_search_request *request, const char *clause)
{
    struct bsw_search_settings out;
    assert_int_equal(bsw_search_settle(request, &manifest, "i", 1, &out, &err), BSW_ERROR_USAGE);
    if (!strstr(err.message, clause)) fail_msg("'%s' lacks '%s'", err.message, clause);
}

UNIT_TEST(a_recall_becomes_settings)
{
    make_index();
    struct bsw_search_request request = request_of(0.8);
    struct bsw_search_settings out = settle(&request);
    assert_int_equal(out.probe.probe, 4);
    assert_true(out.probe.ratio == 1.1 && out.oversample == 2 && out.recall_calibrated == 0.9);
    assert_int_equal(out.keep, 20);
    assert_int_equal(out.probe.scan_dims, 0);
    front[1].scan_dims = 64;
    assert_int_equal(settle(&request).probe.scan_dims, 64);
    front[1].scan_dims = 0;
    request.k = 100;
    assert_int_equal(settle(&request).keep, 200);
    request.k = 3; // as many candidates as were measured with
    assert_int_equal(settle(&request).keep, 20);
    request.k = 10;
    request.oversample = 7;
    out = settle(&request);
    assert_int_equal(out.keep, 70);
    assert_true(out.probe.ratio == 1.1 && out.recall_calibrated == 0.9);
    request = request_of(0.95); // all lists
    out = settle(&request);
    assert_true(out.probe.probe == 0 && out.probe.ratio == 0 && out.oversample == 5);
    free_index();
}

UNIT_TEST(without_a_word_the_best_is_taken)
{
    make_index();
    struct bsw_search_request request = request_of(0);
    struct bsw_search_settings out = settle(&request); // 0.99 there is none
    assert_true(out.recall_calibrated == 0.98 && out.oversample == 5 && out.probe.probe == 0);
    front[2].recall = 0.995;
    assert_true(settle(&request).recall_calibrated == 0.995);
    front[2].recall = 0.98;
    front[1].recall = 0.991;
    assert_int_equal(settle(&request).probe.probe, 4);
    request.oversample = 1; // fewer candidates than were measured: the lists stay
    manifest.calibration.num_entries = 2;
    out = settle(&request);
    assert_true(out.probe.ratio == 1.1 && out.recall_calibrated == 0 && out.keep == 10);
    front[1].recall = 0.9;
    request = request_of(0);
    request.refine = BSW_REFINE_NONE; // not what was measured: all lists
    out = settle(&request);
    assert_true(out.probe.probe == 0 && out.recall_calibrated == 0);
    request = request_of(0);
    request.probe = BSW_PROBE_ALL;
    out = settle(&request);
    assert_true(out.probe.probe == 0 && out.recall_calibrated == 0 && out.oversample == 5);
    request.probe_ratio = 2;
    assert_int_equal(settle(&request).probe.probe, 5);
    manifest.calibration.num_entries = 0;
    request = request_of(0);
    assert_int_equal(settle(&request).probe.probe, 0);
    free_index();
}

UNIT_TEST(recalls_that_cannot_be_are_refused)
{
    make_index();
    struct bsw_search_request request = request_of(0.99);
    refuse(&request, "the most that i has measured is 0.9800");
    request = request_of(0.95);
    request.oversample = 2;
    refuse(&request, "a larger --oversample");
    request = request_of(0.4);
    refuse(&request, "--recall 0.4: must be 0.5 to 1");
    request = request_of(NAN);
    refuse(&request, "0.5 to 1");
    request = request_of(0.9);
    request.probe = 3;
    refuse(&request, "so does --probe: give");
    request = request_of(0.9);
    request.probe_ratio = 3;
    refuse(&request, "so does --probe-ratio: give");
    request = request_of(0.9);
    request.refine = BSW_REFINE_NONE;
    refuse(&request, "--refine exact");
    request = request_of(0.9);
    request.scan_dims = 64;
    refuse(&request, "chooses --scan-dims, too");
    request = request_of(0); // the table's own
    request.scan_dims = 64;
    refuse(&request, "--scan-dims: the table of recalls of i chooses it");
    request = request_of(0.9);
    request.query_bits = 1;
    refuse(&request, "--query-bits");
    request = request_of(0.9);
    manifest.calibration.num_entries = 0;
    refuse(&request, "no table of recalls");
    manifest.lists.count = 0;
    refuse(&request, "no lists");
    free_index();
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
