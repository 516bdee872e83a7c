// SPDX-License-Identifier: Apache-2.0
// stage_choice: where the first stage ends, on data made so that the answer is known.
#include "common/base/arithmetic.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/codec_saq.h"
#include "small_index.h"
#include "temporary_folder.h"

enum { ROWS = 6000, DIMS = 128 };

// About Gaussian.
static float noise(uint64_t seed, uint64_t place)
{
    uint64_t h = bsw_hash2(seed, place);
    double sum = (double)(h & 0xffff) + (double)(h >> 16 & 0xffff) + (double)(h >> 32 & 0xffff) +
                 (double)(h >> 48);
    return (float)(sum / 65535 - 2);
}

// Rows whose first `wide` dimensions are as long as all and whose others are `rest` times that.
static const char *write_rows(const char *name, uint32_t wide, float rest)
{
    const char *path = path_of(name);
    float *rows = allocate_or_fail((size_t)ROWS * DIMS, sizeof *rows);
    for (size_t i = 0; i < (size_t)ROWS * DIMS; i++)
        rows[i] = noise(7, i) * (i % DIMS < wide ? 1 : rest);
    write_fbin(path, rows, ROWS, DIMS);
    bsw_free(&rows);
    return path;
}

static uint32_t choose(const char *source, enum bsw_metric metric, enum bsw_cpu_level level)
{
    struct bsw_error error;
    struct bsw_sample sample;
    struct bsw_manifest manifest = {.metric = metric, .codec = &bsw_codec_saq};
    const struct bsw_saq_training training = {2, "auto", 0, 1, 0};
    bsw_vectors *vectors;
    assert_ok(bsw_vectors_open(source, BSW_ALL_ROWS, &vectors, &error), &error);
    assert_ok(bsw_sample_create(vectors, metric, level, &sample, &error), &error);
    assert_ok(bsw_train_saq_frame(&sample, &training, &manifest, &error), &error);
    assert_ok(bsw_choose_stage(&sample, &manifest, &error), &error);
    uint32_t dims = manifest.stage_dims;
    bsw_sample_deinit(&sample);
    bsw_manifest_deinit(&manifest);
    bsw_vectors_close(&vectors);
    return dims;
}

// With nearly all of the energy in 32 or 64 dimensions the bound is tight from there on.
UNIT_TEST(the_stage_ends_where_the_energy_does)
{
    const char *of32 = write_rows("32.fbin", 32, 0.01f), *of64 = write_rows("64.fbin", 64, 0.01f);
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        assert_int_equal(choose(of32, (enum bsw_metric)metric, BSW_CPU_REFERENCE), 32);
        assert_int_equal(choose(of64, (enum bsw_metric)metric, BSW_CPU_REFERENCE), 64);
    }
}

// Equal energy everywhere: half the dimensions say nothing that would stop a row.
UNIT_TEST(without_a_falling_spectrum_there_is_none)
{
    const char *flat = write_rows("flat.fbin", DIMS, 0);
    assert_int_equal(choose(flat, BSW_METRIC_L2, BSW_CPU_REFERENCE), DIMS);
}

// One row, two rows, less than a block of dimensions.
UNIT_TEST(tiny_corpora_have_a_choice_too)
{
    const float rows[2][40] = {{1, 2, 3}, {-1, 0.5f, 2}};
    for (uint32_t num_rows = 1; num_rows <= 2; num_rows++) {
        const char *path = path_of("tiny.fbin");
        write_fbin(path, rows[0], num_rows, 40);
        uint32_t dims = choose(path, BSW_METRIC_L2, bsw_cpu_level_detect());
        assert_true(dims == 32 || dims == 40);
        write_fbin(path, rows[0], num_rows, 20);
        assert_int_equal(choose(path, BSW_METRIC_L2, bsw_cpu_level_detect()), 20);
    }
}

UNIT_TEST(the_cost_is_counted_in_dimensions)
{
    const struct bsw_scan_tuning tuning = {.stage_overhead = 5, .finish_factor = 4};
    assert_true(bsw_stage_cost(&tuning, 32, 128, 0) == 37);
    assert_true(bsw_stage_cost(&tuning, 64, 128, 0.25) == 64 + 5 + 64);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
