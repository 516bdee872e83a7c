// SPDX-License-Identifier: Apache-2.0
// The cluster model against sums by hand, and what must hold for any rates.
#include "unit_test.h"

#include <math.h>

#include "coordinator/plan/cluster_model.h"

static void assert_near(double found, double expected)
{
    double error = 1e-9 * fabs(expected) + 1e-15;
    if (!(fabs(found - expected) <= error)) fail_msg("%.15g, expected %.15g", found, expected);
}

// Round numbers, so that sums can be made by hand: a message takes 1 ms and 1 us a byte.
static const struct bsw_model_rates rates = {.alpha_seconds = 1e-3,
                                             .beta_seconds_per_byte = 1e-6,
                                             .scan_pairs_per_second = 1e6,
                                             .scan_bytes_per_second = 1e6,
                                             .encode_queries_per_second = 1e3,
                                             .merge_candidates_per_second = 1e5,
                                             .refine_rows_per_second = 1e4,
                                             .finish_queries_per_second = 2e3,
                                             .threads = 1};

// 8 ranks of a thread on hosts of their own, 1000 rows each.
static struct bsw_cluster_job job_of_8(void)
{
    return (struct bsw_cluster_job){.num_ranks = 8,
                                    .ranks_a_host = 1,
                                    .cores = 1,
                                    .threads = 1,
                                    .num_shards = 8,
                                    .num_replicas = 1,
                                    .rows = 1000,
                                    .shard_rows = 1000,
                                    .scanned_bytes = 50000,
                                    .batch = 100,
                                    .keep = 50,
                                    .batch_bytes = 2000,
                                    .is_ladder = 1,
                                    .is_refined = 1};
}

static struct bsw_cluster_times times_of(const struct bsw_cluster_job *job)
{
    struct bsw_cluster_times times;
    bsw_cluster_times_of(&rates, job, &times);
    return times;
}

// ---- by hand ----

UNIT_TEST(test_ladder_places)
{
    static const uint64_t places[][2] = {{0, 0}, {1, 1}, {2, 2},  {3, 3},
                                         {4, 3}, {5, 4}, {50, 7}, {64, 7}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        assert_int_equal(bsw_cluster_ladder_places(places[i][0]), places[i][1]);
}

// 3 levels of a tree; a hop of b bytes takes 1.1 ms + b us, an agreement 7 outcomes of 520 bytes in
// and one out.
UNIT_TEST(test_eight_ranks)
{
    struct bsw_cluster_job job = job_of_8();
    const struct bsw_cluster_times t = times_of(&job);
    double survivors = bsw_cluster_survivors(50, 8);
    double agreement = (7e-3 + 7 * 520e-6 + 1e-4) + 3 * (1.1e-3 + 520e-6);
    assert_near(t.encode, 0.1);
    assert_near(t.broadcast, 3 * (1.1e-3 + 2000e-6));
    assert_near(t.scan, 0.1); // 1e5 pairs; 50,000 bytes take half of that
    // A list is 8 bytes and 7 places of 16; 7 of 8 travel.
    assert_near(t.candidates_bytes, 100 * 7 * 120.0);
    assert_near(t.candidates, agreement + 7e-3 + 84000e-6 + 1e-4);
    assert_near(t.merge, 100 * 8 * 7 / 1e5);
    assert_near(t.cuts_bytes, 1600);
    assert_near(t.cuts, agreement + 3 * (1.1e-3 + 1600e-6));
    assert_near(t.refine, 100 * survivors / 8 / 1e4);
    assert_near(t.answers_bytes, 100 * 7.0 / 8 * (8 * 8 + 16 * survivors));
    assert_near(t.answers, agreement + 7e-3 + t.answers_bytes * 1e-6 + 1e-4);
    assert_near(t.finish, 100 * survivors / 50 / 2e3);
    assert_near(t.total, t.encode + t.broadcast + t.scan + t.candidates + t.merge + t.cuts +
                             t.refine + t.answers + t.finish);
    assert_near(t.queries_per_second, 100 / t.total);
    assert_false(t.is_overlapped);
}

UNIT_TEST(test_one_rank_has_no_network)
{
    struct bsw_cluster_job job = job_of_8();
    job.num_ranks = job.num_shards = 1;
    job.is_ladder = 0;
    const struct bsw_cluster_times t = times_of(&job);
    assert_near(t.broadcast + t.candidates + t.cuts + t.answers, 0);
    assert_near(t.candidates_bytes + t.answers_bytes, 0);
    assert_near(t.merge, 100 * 50 / 1e5); // gather: the whole list
    assert_near(t.refine, 100 * 50 / 1e4);
    assert_near(t.finish, 100 / 2e3);
    assert_near(t.total, 0.1 + 0.1 + 0.05 + 0.5 + 0.05);
}

UNIT_TEST(test_bytes_rule_small_batches)
{
    struct bsw_cluster_job job = job_of_8();
    job.batch = 1;
    assert_near(times_of(&job).scan, 50000 / 1e6);
    job.batch = 50; // as long either way
    assert_near(times_of(&job).scan, 50000 / 1e6);
    job.batch = 51;
    assert_near(times_of(&job).scan, 51000 / 1e6);
}

UNIT_TEST(test_gather_sends_whole_lists)
{
    struct bsw_cluster_job job = job_of_8();
    job.is_ladder = 0;
    const struct bsw_cluster_times t = times_of(&job);
    assert_near(t.candidates_bytes, 100 * 7 * (8 + 16 * 50.0));
    assert_near(t.merge, 100 * 8 * 50 / 1e5);
    assert_near(t.finish, 100 / 2e3); // exactly L survive
    job.shard_rows = 20;
    assert_near(times_of(&job).candidates_bytes, 100 * 7 * (8 + 16 * 20.0));
}

UNIT_TEST(test_replicas_share_queries)
{
    struct bsw_cluster_job job = job_of_8();
    job.scanned_bytes = 0;
    double whole = times_of(&job).scan;
    job.num_replicas = 2;
    assert_near(times_of(&job).scan, whole / 2);
    job.num_replicas = 3; // 34 of 100 queries
    assert_near(times_of(&job).scan, whole * 0.34);
}

// The busiest rank refines for all: 2 of 5 shards on 3 ranks; a rank without a shard is no help.
UNIT_TEST(test_refinement_is_the_busiest_ranks)
{
    struct bsw_cluster_job job = job_of_8();
    job.num_ranks = 3;
    job.num_shards = 5;
    assert_near(times_of(&job).refine, 100 * bsw_cluster_survivors(50, 5) * 2 / 5 / 1e4);
    job.num_shards = 2;
    assert_near(times_of(&job).refine, 100 * bsw_cluster_survivors(50, 2) / 2 / 1e4);
    job.num_ranks = 4; // each shard twice
    job.num_replicas = 2;
    assert_near(times_of(&job).refine, 50 * bsw_cluster_survivors(50, 2) / 2 / 1e4);
}

// ---- cores ----

// 8 ranks on a host of 2 cores: 4 threads on each.
UNIT_TEST(test_crowded_host)
{
    struct bsw_cluster_job job = job_of_8();
    const struct bsw_cluster_times apart = times_of(&job);
    job.ranks_a_host = 8;
    job.cores = 2;
    const struct bsw_cluster_times t = times_of(&job);
    assert_near(t.crowd, 4);
    assert_near(t.scan, 4 * apart.scan);
    assert_near(t.refine, 4 * apart.refine);
    assert_near(t.merge, apart.merge); // rank 0 alone
    // 7 copies by two cores take 3.5 turns, a tree on hosts of their own 3.
    assert_near(t.broadcast, apart.broadcast / 3 * 3.5);
    job.ranks_a_host = 1024; // no more than there are
    assert_near(times_of(&job).scan, 4 * apart.scan);
}

UNIT_TEST(test_busy_cores_are_slower)
{
    struct bsw_model_rates shared = rates;
    struct bsw_cluster_times t;
    struct bsw_cluster_job job = job_of_8();
    shared.busy_core_share = 0.8;
    job.num_ranks = job.num_shards = job.ranks_a_host = 1;
    job.cores = 5;
    bsw_cluster_times_of(&shared, &job, &t);
    assert_near(t.scan, 0.1); // alone, as it was measured
    job.threads = 3;
    bsw_cluster_times_of(&shared, &job, &t);
    assert_near(t.scan, 0.1 / 3 / 0.9);
    job.threads = 5;
    bsw_cluster_times_of(&shared, &job, &t);
    assert_near(t.scan, 0.1 / 5 / 0.8);
    shared.threads = 5; // measured on all cores: 5 threads as measured, one faster
    bsw_cluster_times_of(&shared, &job, &t);
    assert_near(t.scan, 0.1);
    job.threads = 1;
    bsw_cluster_times_of(&shared, &job, &t);
    assert_near(t.scan, 0.1 * 5 * 0.8);
}

UNIT_TEST(test_overlap_hides_the_shorter_part)
{
    struct bsw_cluster_job job = job_of_8();
    job.cores = 2;
    struct bsw_cluster_times t = times_of(&job);
    assert_true(t.is_overlapped);
    double rest = t.broadcast + t.scan + t.candidates + t.merge + t.cuts + t.refine + t.answers;
    assert_near(t.total, rest);
    job.rows = job.scanned_bytes = 0;
    job.num_ranks = job.num_shards = job.ranks_a_host = 1;
    job.is_refined = job.is_ladder = 0;
    t = times_of(&job);
    assert_near(t.total, t.encode + t.finish); // what is beside is longer now
}

UNIT_TEST(test_devices_do_not_share_cores)
{
    struct bsw_model_rates device = rates;
    struct bsw_cluster_times t;
    struct bsw_cluster_job job = job_of_8();
    double refine = times_of(&job).refine;
    device.scans_on_device = 1;
    job.ranks_a_host = 8;
    bsw_cluster_times_of(&device, &job, &t);
    assert_near(t.scan, 0.1);
    assert_near(t.refine, 8 * refine);
}

// ---- for any rates ----

UNIT_TEST(test_unknown_rates_take_no_time)
{
    const struct bsw_model_rates none = {.threads = 1, .scan_pairs_per_second = 1e6};
    struct bsw_cluster_job job = job_of_8();
    struct bsw_cluster_times t;
    job.num_ranks = job.num_shards = 1;
    bsw_cluster_times_of(&none, &job, &t);
    assert_near(t.total, 0.1);
    assert_near(t.encode + t.merge + t.refine + t.finish, 0);
}

// Twice the ranks for the same rows: scans halve exactly, all that goes to rank 0 grows.
UNIT_TEST(test_more_ranks)
{
    struct bsw_cluster_job job = job_of_8();
    struct bsw_cluster_times before = {0};
    for (uint64_t ranks = 1; ranks <= 1024; ranks *= 2) {
        job.num_ranks = job.num_shards = ranks;
        job.rows = job.shard_rows = (1u << 20) / ranks;
        job.scanned_bytes = 0;
        const struct bsw_cluster_times t = times_of(&job);
        if (ranks > 1) {
            assert_near(t.scan, before.scan / 2);
            assert_true(t.candidates > before.candidates && t.merge > before.merge);
            assert_true(t.broadcast > before.broadcast && t.answers > before.answers);
            assert_true(t.refine < before.refine);
        }
        before = t;
    }
}

UNIT_TEST(test_survivors)
{
    assert_near(bsw_cluster_survivors(50, 1), 50);
    assert_near(bsw_cluster_survivors(1, 1), 1);
    for (uint64_t keep = 1; keep <= 100000; keep *= 10) {
        for (uint64_t shards = 2; shards <= 65536; shards *= 8) {
            double survivors = bsw_cluster_survivors(keep, shards);
            assert_true(survivors >= (double)keep && survivors <= 2 * (double)keep);
        }
    }
    // So few a shard that every one is listed.
    assert_true(bsw_cluster_survivors(50, 65536) < 50.1);
    // A mean of 2500 is counted as 2048 until nearly all shards reach 4096.
    double many = bsw_cluster_survivors(10000, 4);
    assert_true(many > 4 * 3900 && many < 4 * 4096);
    // Two shards of mean m, one row counted of each: P(1..) + P(2..) + 2 P(4..) + ... = 1.
    double m = bsw_cluster_survivors(2, 2) / 2, p0 = exp(-m), sum = 1 - p0;
    for (int power = 2; power <= 32; power *= 2) {
        double below = 0, term = p0;
        for (int i = 0; i < power; i++, term *= m / i) below += term;
        sum += power / 2 * (1 - below);
    }
    assert_near(sum, 1);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
