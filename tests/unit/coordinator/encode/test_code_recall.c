// SPDX-License-Identifier: Apache-2.0
// Whether codes are of residuals, where nobody has said it: as a sample of the rows has it.
#include "unit_test.h"

#include <math.h>

#include "common/base/arithmetic.h"
#include "common/net/transport.h"
#include "common/rows/vectors.h"
#include "coordinator/encode/encode_index.h"
#include "coordinator/encode/encode_training.h"
#include "temporary_folder.h"

enum { ROWS = 1500, DIMS = 32, LISTS = 24 };

static struct bsw_error err;
static struct bsw_transport transport = {.timeout_seconds = 10};
static float numbers[ROWS * DIMS];
static struct bsw_memory_rows base = {.name = BSW_MEMORY_PREFIX "base",
                                      .numbers = numbers,
                                      .type = BSW_VECTOR_FLOAT32,
                                      .dims = DIMS,
                                      .num_rows = ROWS};

// About normal.
static float noise(uint64_t seed, uint64_t i)
{
    double sum = 0;
    for (uint64_t n = 0; n < 12; n++) sum += ldexp((double)bsw_hash2(seed + n, i), -64);
    return (float)(sum - 6);
}

// About num_groups centres; 0: one cloud.
static void make_rows(int num_groups)
{
    for (int row = 0; row < ROWS; row++) {
        for (int d = 0; d < DIMS; d++) {
            uint64_t at = (uint64_t)(row * DIMS + d);
            numbers[at] = noise(1, at);
            if (num_groups > 0)
                numbers[at] =
                    0.4f * numbers[at] + noise(2, (uint64_t)(row % num_groups * DIMS + d));
        }
    }
}

static struct bsw_encode_stats encode(const char *metric, double bits, uint64_t rows,
                                      enum bsw_residuals residuals)
{
    const struct bsw_encode_settings settings = {.base = base.name,
                                                 .rows = {0, rows},
                                                 .index = path_of("index"),
                                                 .codec = &bsw_codec_saq,
                                                 .metric = metric,
                                                 .code = {.bits = bits, .seed = 1},
                                                 .lists = LISTS,
                                                 .residuals = residuals,
                                                 .copy_vectors = 1,
                                                 .force = 1,
                                                 .level = bsw_cpu_level_detect()};
    struct bsw_encode_stats stats;
    assert_ok(bsw_memory_rows_lend(&base, &err), &err);
    assert_ok(bsw_encode_run(&settings, &transport, &stats, &err), &err);
    bsw_memory_rows_take_back(&base);
    return stats;
}

static void expect_measured(const struct bsw_encode_stats *stats, int is_residual)
{
    struct bsw_manifest manifest;
    assert_int_equal(stats->is_residual, is_residual);
    assert_in_range((int)(stats->plain_recall * 100), 20, 100);
    assert_in_range((int)(stats->residual_recall * 100), 20, 100);
    assert_int_equal(stats->residual_recall >= stats->plain_recall + BSW_RESIDUAL_MARGIN,
                     is_residual);
    assert_ok(bsw_manifest_read(path_of("index"), &manifest, &err), &err);
    assert_int_equal(manifest.lists.is_residual, is_residual);
    assert_true(manifest.lists.plain_recall == stats->plain_recall);
    assert_true(manifest.lists.residual_recall == stats->residual_recall);
    bsw_manifest_deinit(&manifest);
}

UNIT_TEST(residuals_are_chosen_by_the_sample)
{
    struct bsw_encode_stats stats;
    make_rows(LISTS);
    stats = encode("l2", 2, ROWS, BSW_RESIDUALS_AUTO);
    expect_measured(&stats, 1);
    stats = encode("cosine", 2, ROWS, BSW_RESIDUALS_AUTO);
    expect_measured(&stats, 1);
    make_rows(0);
    stats = encode("cosine", 2, ROWS, BSW_RESIDUALS_AUTO);
    expect_measured(&stats, 0);
}

UNIT_TEST(nothing_is_measured_where_that_is_settled)
{
    const struct {
        double bits;
        uint64_t rows;
        enum bsw_residuals residuals;
    } cases[] = {{3, ROWS, BSW_RESIDUALS_AUTO},
                 {2, 150, BSW_RESIDUALS_AUTO}, // too few rows
                 {2, ROWS, BSW_RESIDUALS_NO},
                 {2, ROWS, BSW_RESIDUALS_YES}};
    make_rows(LISTS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bsw_encode_stats stats =
            encode("l2", cases[i].bits, cases[i].rows, cases[i].residuals);
        assert_int_equal(stats.is_residual, cases[i].residuals == BSW_RESIDUALS_YES);
        assert_true(stats.plain_recall == 0 && stats.residual_recall == 0);
    }
}

// By codes of the index, whose rows are all in the sample.
static double recall_of_index(void)
{
    struct bsw_code_recall measure = {0};
    struct bsw_manifest manifest;
    bsw_vectors *vectors;
    double recall;
    assert_ok(bsw_manifest_read(path_of("index"), &manifest, &err), &err);
    assert_ok(bsw_memory_rows_lend(&base, &err), &err);
    assert_ok(bsw_vectors_open(base.name, BSW_ALL_ROWS, &vectors, &err), &err);
    assert_ok(bsw_code_recall_init(&measure, vectors, &manifest, manifest.lists.is_residual,
                                   bsw_cpu_level_detect(), NULL, &err),
              &err);
    assert_int_equal(measure.num_rows, ROWS);
    assert_ok(bsw_code_recall_of(&measure, &manifest, BSW_CODE_RECALL_K, &recall, &err), &err);
    bsw_code_recall_deinit(&measure);
    bsw_vectors_close(&vectors);
    bsw_memory_rows_take_back(&base);
    bsw_manifest_deinit(&manifest);
    return recall;
}

// Far from the origin too, where keys of residuals lack most. Queries have 6 bits.
UNIT_TEST(good_codes_find_nearly_all)
{
    make_rows(LISTS);
    for (int i = 0; i < ROWS * DIMS; i++) numbers[i] += (float)(i % 3);
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        encode(bsw_metric_name((enum bsw_metric)metric), 8, ROWS, BSW_RESIDUALS_YES);
        double recall = recall_of_index();
        if (!(recall > 0.85)) fail_msg("metric %d: recall %.3f", metric, recall);
    }
    encode("l2", 8, ROWS, BSW_RESIDUALS_NO);
    assert_true(recall_of_index() > 0.9);
}

int main(void)
{
    bsw_transport_local_init(&transport);
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
