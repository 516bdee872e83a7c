// SPDX-License-Identifier: Apache-2.0
// Densities, the regressor and trained radii against plain arithmetic; the message of a manifest.
#include "small_index.h"

#include <math.h>

#include "common/base/arithmetic.h"
#include "common/rows/synth.h"
#include "shard/codecs/product_training.h"
#include "temporary_folder.h"

static struct bsw_error err;

UNIT_TEST(cells_and_densities_are_those_of_the_box)
{
    static const float points[] = {0, 0, 10, 20, 10, 20, 5, 10.05f};
    struct bsw_product_radii *radii;
    assert_ok(bsw_product_radii_create(1, &radii, &err), &err);
    bsw_product_radii_count(radii, 0, points, 2, 4);
    assert_int_equal(bsw_product_radii_cell(radii, 0, 0, 0), 0);
    assert_int_equal(bsw_product_radii_cell(radii, 0, 10, 20), 9999);
    assert_int_equal(bsw_product_radii_cell(radii, 0, -1e30f, 5.01f), 2500);
    assert_int_equal(bsw_product_radii_cell(radii, 0, 1e30f, INFINITY), 9999);
    assert_int_equal(bsw_product_radii_cell(radii, 0, 0.05f, NAN), 0);
    assert_int_equal(radii->counts[9999], 2);
    assert_int_equal(radii->counts[5050], 1);
    const double area = 0.1 * 0.2; // of a cell
    assert_true(fabs(bsw_product_radii_density(radii, 0, 9999) - log2(2 / area)) < 1e-7);
    assert_true(fabs(bsw_product_radii_density(radii, 0, 1) - log2(0.5 / area)) < 1e-7);
    bsw_product_radii_destroy(&radii);
}

UNIT_TEST(a_fit_finds_a_cubic_and_stays_within_what_it_has_seen)
{
    double densities[40], needs[40], least = INFINITY, most = 0;
    for (int i = 0; i < 40; i++) {
        double t = densities[i] = -3 + 0.4 * i;
        needs[i] = 30 - 2 * t + 0.1 * t * t - 0.003 * t * t * t;
        least = fmin(least, needs[i]);
        most = fmax(most, needs[i]);
    }
    const struct bsw_radii_fit fit = bsw_product_radii_fit(densities, needs, 40);
    for (int i = 0; i < 40; i++)
        assert_true(fabs(bsw_product_radii_of(&fit, densities[i]) - needs[i]) < 1e-8);
    assert_true(fabs(bsw_product_radii_of(&fit, -1000) - most) < 1e-8);
    assert_true(fabs(bsw_product_radii_of(&fit, 1000) - needs[39]) < 1e-8);
}

// Fewer densities than a polynomial has coefficients.
UNIT_TEST(a_fit_to_one_density_is_the_mean)
{
    static const double densities[] = {2, 2, 2, 2}, needs[] = {1, 2, 3, 6};
    const struct bsw_radii_fit fit = bsw_product_radii_fit(densities, needs, 4);
    assert_true(bsw_product_radii_of(&fit, 2) == 3);
    assert_true(bsw_product_radii_of(&fit, -7) == 3);
}

enum { ROWS = 400, DIMS = 7, PARTS = 4, NEIGHBORS = BSW_RADII_NEIGHBORS };

static float *make_rows(void)
{
    const struct bsw_synth synth = {.count = ROWS, .dims = DIMS, .seed = 3, .clusters = 5};
    float *rows = allocate_or_fail((size_t)ROWS * DIMS, sizeof *rows);
    bsw_synth_rows(&synth, 0, ROWS, rows);
    write_fbin(path_of("rows.fbin"), rows, ROWS, DIMS);
    return rows;
}

static struct bsw_product_codes *train(enum bsw_metric metric, enum bsw_cpu_level level,
                                       int num_threads)
{
    struct bsw_sample sample;
    struct bsw_product_codes *codes;
    bsw_vectors *vectors;
    assert_ok(bsw_vectors_open(path_of("rows.fbin"), BSW_ALL_ROWS, &vectors, &err), &err);
    assert_ok(bsw_sample_create(vectors, metric, level, &sample, &err), &err);
    assert_ok(bsw_product_codes_create(metric, DIMS, PARTS, 4, "none", &codes, &err), &err);
    assert_ok(bsw_product_train(&sample, 5, num_threads, codes, &err), &err);
    assert_ok(bsw_radii_train(&sample, num_threads, codes, &err), &err);
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
    return codes;
}

// Squared radii that a row as a query needs, by sorting all others.
static void plain_needs(enum bsw_metric metric, const float *rows, const float *mean, size_t own,
                        double out[PARTS])
{
    static double values[ROWS];
    const float *q = rows + own * DIMS;
    int is_l2 = metric == BSW_METRIC_L2;
    for (size_t r = 0; r < ROWS; r++) {
        values[r] = 0;
        for (int d = 0; d < DIMS; d++) {
            double x = rows[r * DIMS + d], y = q[d];
            values[r] += is_l2 ? (x - y) * (x - y) : -x * y;
        }
    }
    memset(out, 0, PARTS * sizeof *out);
    for (size_t r = 0; r < ROWS; r++) {
        size_t better = 0;
        for (size_t other = 0; other < ROWS; other++)
            better += other != own && values[other] < values[r];
        if (r == own || better >= NEIGHBORS) continue;
        for (int p = 0; p < PARTS; p++) {
            double need = 0;
            for (int d = 2 * p; d < 2 * p + 2 && d < DIMS; d++) {
                double x = rows[r * DIMS + d], y = q[d], coded = x - (double)mean[d];
                need += is_l2 ? (x - y) * (x - y) : y * y - 2 * y * coded;
            }
            out[p] = need > out[p] ? need : out[p];
        }
    }
}

static void check_training(enum bsw_metric metric)
{
    float *rows = make_rows();
    struct bsw_product_codes *codes = train(metric, BSW_CPU_REFERENCE, 1);
    double sums[PARTS] = {0}, given[PARTS] = {0}, least[PARTS], most[PARTS] = {0};
    for (int p = 0; p < PARTS; p++) least[p] = INFINITY;
    for (size_t i = 0; i < ROWS; i++) {
        double needs[PARTS];
        plain_needs(metric, rows, codes->mean, i, needs);
        for (uint32_t p = 0; p < PARTS; p++) {
            float q[2] = {0, 0};
            for (uint32_t d = 2 * p; d < 2 * p + 2 && d < DIMS; d++)
                q[d % 2] = rows[i * DIMS + d] - (metric == BSW_METRIC_L2 ? codes->mean[d] : 0.0f);
            double need = sqrt(needs[p]);
            sums[p] += need;
            least[p] = fmin(least[p], need);
            most[p] = fmax(most[p], need);
            given[p] += (double)bsw_product_radius(codes->radii, BSW_RADII_DYNAMIC, p, q[0], q[1]);
        }
    }
    for (int p = 0; p < PARTS; p++) { // least squares with a constant keep the mean
        const struct bsw_radii_fit *fit = &codes->radii->fits[p];
        assert_true(fabs(fit->least - least[p]) < 1e-5 && fabs(fit->most - most[p]) < 1e-5);
        assert_true(fabs(given[p] / sums[p] - 1) < 0.01);
        assert_true(codes->radii->ends[2 * p] <= codes->radii->ends[2 * p + 1]);
    }
    bsw_product_codes_destroy(&codes);
    bsw_free(&rows);
}

UNIT_TEST(radii_are_fitted_to_what_holds_the_true_neighbours)
{
    check_training(BSW_METRIC_L2);
    check_training(BSW_METRIC_IP);
}

UNIT_TEST(training_is_the_same_for_any_threads_and_level_and_through_a_message)
{
    float *rows = make_rows();
    struct bsw_product_codes *one = train(BSW_METRIC_COSINE, BSW_CPU_REFERENCE, 1),
                             *other = train(BSW_METRIC_COSINE, bsw_cpu_level_detect(), 3);
    struct bsw_product_radii *parsed;
    double numbers[PARTS * BSW_RADII_FIT_NUMBERS];
    size_t bytes = PARTS * BSW_RADII_MAP * sizeof(float);
    Bsw__Radii message;
    assert_memory_equal(one->radii->radii, other->radii->radii, bytes);
    bsw_radii_pack(one->radii, numbers, &message);
    assert_ok(bsw_radii_parse("x", &message, PARTS, &parsed, &err), &err);
    assert_memory_equal(one->radii->radii, parsed->radii, bytes);
    assert_memory_equal(one->radii->ends, parsed->ends, 2 * PARTS * sizeof(float));
    bsw_product_radii_destroy(&parsed);
    assert_int_equal(bsw_radii_parse("x", &message, PARTS + 1, &parsed, &err), BSW_ERROR_BAD_DATA);
    numbers[2] = numbers[3] + 1; // least above most
    assert_int_equal(bsw_radii_parse("x", &message, PARTS, &parsed, &err), BSW_ERROR_BAD_DATA);
    numbers[2] = NAN;
    assert_int_equal(bsw_radii_parse("x", &message, PARTS, &parsed, &err), BSW_ERROR_BAD_DATA);
    assert_null(parsed);
    bsw_product_codes_destroy(&one);
    bsw_product_codes_destroy(&other);
    bsw_free(&rows);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
