// SPDX-License-Identifier: Apache-2.0
// When a device scans progressively: what follows from shares that go well, badly, or change.
#include "shard/device/device_stage.h"
#include "unit_test.h"

enum { QUERIES = 7 };

static struct bsw_device_stage_run new_run(int is_always)
{
    return (struct bsw_device_stage_run){.is_always = is_always, .words = 4, .stage_words = 1};
}

// One part, as the engine does it: the share of pairs that go on is given. Returns the bundles
// scanned staged.
static uint64_t scan_part(struct bsw_device_stage_run *run, const struct bsw_device_part *part,
                          double share, uint64_t *survivors)
{
    struct bsw_device_part pieces[2] = {*part, *part};
    enum bsw_device_stage_step step = bsw_device_stage_next(run, part, &pieces[0]);
    uint64_t staged = 0;
    pieces[1].first = pieces[0].last;
    if (step == BSW_STAGE_BEGINNING) {
        assert_true(pieces[0].first == part->first && pieces[0].last < part->last);
        assert_int_equal(pieces[0].step, part->step);
        assert_int_equal((pieces[0].last - part->first) % part->step, 0);
    }
    for (int i = 0; i < 2; i++) {
        uint64_t bundles =
            (pieces[i].last - pieces[i].first + part->step - 1) / (uint64_t)part->step;
        if (step == BSW_STAGE_FULL || bundles == 0) break;
        bsw_device_stage_launched(run, &pieces[i], QUERIES);
        staged += bundles;
        *survivors += (uint64_t)((double)(bundles * BSW_BUNDLE_ROWS * QUERIES) * share);
        bsw_device_stage_settle(run, *survivors);
        if (run->resting > 0) break;
    }
    return staged;
}

UNIT_TEST(the_first_launch_is_full_and_the_others_staged)
{
    for (int is_always = 0; is_always < 2; is_always++) {
        struct bsw_device_stage_run run = new_run(is_always);
        uint64_t survivors = 0, staged = 0;
        bsw_device_stage_end_part(&run, 0);
        for (uint32_t first = 0, last = 100; last <= 102400; first = last, last *= 2) {
            const struct bsw_device_part part = {first, last, 1};
            uint64_t own = scan_part(&run, &part, 0.001, &survivors);
            assert_int_equal(own, first == 0 ? 0 : last - first);
            staged += own;
            bsw_device_stage_end_part(&run, 0);
        }
        assert_true(run.stopped == staged * BSW_BUNDLE_ROWS * QUERIES - survivors);
    }
}

// Hostile rows: of a scan no more than a small part is tried in vain; unless it was asked for.
UNIT_TEST(what_does_not_pay_is_not_done)
{
    struct bsw_device_stage_run run = new_run(0), always = new_run(1);
    uint64_t survivors = 0, always_survivors = 0, staged = 0, total = 0;
    for (uint32_t first = 0, last = 1 << 10; last <= 1 << 24; first = last, last *= 2) {
        const struct bsw_device_part part = {first, last, 2};
        uint64_t bundles = (part.last - part.first) / 2;
        staged += scan_part(&run, &part, 1, &survivors);
        total += bundles;
        assert_int_equal(scan_part(&always, &part, 1, &always_survivors), first == 0 ? 0 : bundles);
    }
    assert_true(staged > 0 && staged * 50 < total);
    // Once it pays it is taken up again, and a later part is not tried on its beginning.
    uint64_t own = 0;
    const struct bsw_device_part part = {0, 1 << 20, 1};
    for (int i = 0; i < 2; i++) own += scan_part(&run, &part, 0, &survivors);
    assert_true(own >= part.last);
    struct bsw_device_part beginning;
    assert_int_equal(bsw_device_stage_next(&run, &part, &beginning), BSW_STAGE_STAGED);
}

UNIT_TEST(parts_that_overflow_stop_nothing)
{
    struct bsw_device_stage_run run = new_run(1);
    const struct bsw_device_part part = {0, 10, 1};
    uint64_t survivors = 0, overflows = 3;
    bsw_device_stage_end_part(&run, overflows);
    assert_int_equal(scan_part(&run, &part, 0, &survivors), 0);
    assert_int_equal(scan_part(&run, &part, 0, &survivors), 10);
    bsw_device_stage_end_part(&run, ++overflows);
    assert_true(run.stopped == 0);
    assert_int_equal(scan_part(&run, &part, 0, &survivors), 10);
    bsw_device_stage_end_part(&run, overflows);
    assert_true(run.stopped == 10 * BSW_BUNDLE_ROWS * QUERIES);
}

UNIT_TEST(costs_follow_the_share)
{
    assert_true(bsw_device_stage_pays(4, 1, 0));
    assert_true(bsw_device_stage_pays(4, 2, 0.001));
    assert_false(bsw_device_stage_pays(4, 1, 0.5));
    for (uint32_t words = 2; words < 64; words++) {
        for (double share = 0; share < 1; share += 0.01) {
            if (bsw_device_stage_pays(words, 1, share + 0.01))
                assert_true(bsw_device_stage_pays(words, 1, share));
        }
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
