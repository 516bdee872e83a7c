// SPDX-License-Identifier: Apache-2.0
// The record of a sweep: what was put is there for the run that resumes, and a folder that has one
// is refused without --resume or --force.
#include "unit_test.h"

#include "coordinator/sweep/sweep_folder.h"
#include "temporary_folder.h"

static struct bsw_error err;

static enum bsw_status open_journal(struct bsw_sweep_journal *journal, int force, int resume,
                                    uint64_t shards)
{
    struct bsw_journal_fields fields = {0};
    bsw_journal_field_count(&fields, "shards", shards);
    return bsw_sweep_journal_open(journal, temporary_folder, "f", force, resume, &fields, &err);
}

UNIT_TEST(what_was_put_is_there_again)
{
    struct bsw_sweep_journal journal;
    assert_int_equal(open_journal(&journal, 0, 1, 2), BSW_OK); // nothing to resume: begins
    assert_int_equal(
        bsw_sweep_journal_put(&journal, "index", "saq-3", json_pack("{s:f}", "bits", 2.75), &err),
        BSW_OK);
    assert_int_equal(
        bsw_sweep_journal_put(&journal, "point", "p", json_pack("{s:f}", "qps", 0.1), &err),
        BSW_OK);
    bsw_sweep_journal_close(&journal);
    assert_int_equal(open_journal(&journal, 0, 1, 2), BSW_OK);
    assert_int_equal(json_object_size(journal.truths), 0);
    assert_true(json_number_value(
                    json_object_get(json_object_get(journal.indexes, "saq-3"), "bits")) == 2.75);
    assert_true(json_number_value(json_object_get(json_object_get(journal.rows, "p"), "qps")) ==
                0.1);
    bsw_sweep_journal_close(&journal);
}

UNIT_TEST(a_folder_with_a_sweep_is_refused)
{
    struct bsw_sweep_journal journal;
    assert_int_equal(open_journal(&journal, 0, 0, 2), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "f: has an unfinished sweep, of 1 points: --resume"));
    bsw_sweep_journal_close(&journal);
    assert_int_equal(open_journal(&journal, 0, 1, 3), BSW_ERROR_USAGE); // another sweep
    assert_non_null(strstr(err.message, "shards"));
    bsw_sweep_journal_close(&journal);
    assert_int_equal(open_journal(&journal, 1, 0, 3), BSW_OK);
    assert_int_equal(json_object_size(journal.rows), 0);
    bsw_sweep_journal_close(&journal);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
