// SPDX-License-Identifier: Apache-2.0
// The table of codecs: what each says of itself goes together; sq8's codes and keys by its formula.
#include "small_index.h"

#include <math.h>

#include "common/base/arithmetic.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "common/rows/synth.h"
#include "shard/codecs/codec.h"
#include "temporary_folder.h"

enum { ROWS = 300, DIMS = 37, QUERIES = 20 };

static struct bsw_error err;

UNIT_TEST(codecs_are_found_by_their_names)
{
    const struct bsw_codec *found;
    char names[128] = "";
    for (int i = 0; i < BSW_NUM_CODECS; i++) {
        assert_ok(bsw_codec_parse(bsw_codecs[i]->name, &found, &err), &err);
        assert_ptr_equal(found, bsw_codecs[i]);
        if (i > 0) strcat(names, "|");
        strcat(names, bsw_codecs[i]->name);
    }
    assert_null(bsw_codecs[BSW_NUM_CODECS]);
    assert_string_equal(names, BSW_CODEC_NAMES);
    assert_int_equal(bsw_codec_parse("sq", &found, &err), BSW_ERROR_USAGE);
    assert_string_equal(err.message, "unknown codec 'sq': use xfbq, saq, rbe, raw, sq8 or pq");
    assert_null(bsw_codec_find(""));
}

// A key is a whole number, with a value of its own, a float with a scale and a bias, or a sum.
UNIT_TEST(what_a_codec_says_goes_together)
{
    for (int i = 0; i < BSW_NUM_CODECS; i++) {
        const struct bsw_codec *codec = bsw_codecs[i];
        const struct bsw_codec_table *table = codec->table;
        assert_true(table->metrics > 0 && table->metrics < 1u << BSW_METRIC_NUM);
        assert_true(table->train && table->check_settings);
        assert_true(table->encode_tile && table->encode_query && codec->parse_part);
        assert_int_equal(codec->has_affine || codec->has_tables, table->value == NULL);
        assert_int_equal(codec->has_tables, table->product != NULL);
        assert_int_equal(codec->has_tables, table->pin_query != NULL);
        assert_true(!codec->has_tables || (!codec->has_affine && !codec->has_bytes));
        assert_int_equal(codec->part_field != 0, codec->pack_part != NULL);
        assert_int_equal(codec->part_field != 0, codec->free_part != NULL);
        assert_int_equal(table->has_model, table->open_model != NULL);
        assert_int_equal(table->has_model, table->describe_model != NULL);
        assert_true(!table->has_distances || !codec->has_bytes);
        for (int j = 0; j < i; j++)
            assert_true(codec->part_field == 0 || codec->part_field == 19 ||
                        codec->part_field != bsw_codecs[j]->part_field);
    }
}

UNIT_TEST(a_metric_that_a_codec_lacks_is_refused)
{
    assert_string_equal(bsw_codec_only_metric(&bsw_codec_xfbq), "cosine");
    assert_null(bsw_codec_only_metric(&bsw_codec_raw));
    assert_int_equal(bsw_codec_check_metric(&bsw_codec_xfbq, BSW_METRIC_L2, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "--codec xfbq knows --metric cosine only"));
    assert_int_equal(bsw_codec_check_metric(&bsw_codec_raw, BSW_METRIC_COSINE, &err),
                     BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "--codec raw has no cosine"));
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++)
        assert_ok(bsw_codec_check_metric(&bsw_codec_sq8, (enum bsw_metric)metric, &err), &err);
}

// ---- sq8 ----

static float *make_rows(size_t count)
{
    const struct bsw_synth synth = {.count = ROWS, .dims = DIMS, .seed = 5, .clusters = 7};
    float *rows = allocate_or_fail(count * DIMS, sizeof *rows);
    bsw_synth_rows(&synth, 0, count, rows);
    for (size_t i = 0; i < count * DIMS; i++) { // ends that differ, and a constant dimension
        float weight = (float)(i % DIMS);
        rows[i] = weight == 9 ? 2.5f : rows[i] * weight + weight;
    }
    return rows;
}

static void make_sq8(enum bsw_metric metric, const float *rows, struct bsw_manifest *manifest)
{
    write_fbin(path_of("sq8.fbin"), rows, ROWS, DIMS);
    const struct small_index what = {
        .source = path_of("sq8.fbin"), .codec = &bsw_codec_sq8, .metric = metric};
    make_small_index(&what, temporary_folder, manifest);
}

// As codes have it, from codec_sq8.c's formula: the ends are those of all rows, which are the
// sample.
static double decode(const float *rows, const float *factors, size_t dim, int c)
{
    double least = INFINITY, largest = -INFINITY;
    for (size_t r = 0; r < ROWS; r++) {
        double x = (double)(rows[r * DIMS + dim] * factors[r]);
        if (x < least) least = x; // not fmin: gcc 12 for Arm fails on it here
        if (x > largest) largest = x;
    }
    return (least + largest) / 2 + (largest - least) / 512 * c;
}

static double exact_value(enum bsw_metric metric, const double *x, const float *q, float factor)
{
    double sum = 0;
    for (size_t i = 0; i < DIMS; i++) {
        double y = (double)(q[i] * factor);
        sum += metric == BSW_METRIC_L2 ? (x[i] - y) * (x[i] - y) : x[i] * y;
    }
    return sum;
}

// Each component is within half a step of its row's; the value of a key is that of the decoded row
// within what the coded query takes from it.
static void check_sq8(enum bsw_metric metric)
{
    struct bsw_manifest manifest;
    struct plain_shard shard;
    struct plain_queries queries;
    float *rows = make_rows(ROWS), factors[ROWS];
    make_sq8(metric, rows, &manifest);
    assert_true(bsw_manifest_row_bytes(&manifest) == 64 + 8);
    read_plain_shard(&manifest, temporary_folder, 0, &shard);
    make_plain_queries(&manifest, rows, QUERIES, 7, &queries);
    for (size_t r = 0; r < ROWS; r++) {
        double norm = 0;
        for (size_t i = 0; i < DIMS; i++) norm += (double)rows[r * DIMS + i] * rows[r * DIMS + i];
        factors[r] = metric == BSW_METRIC_COSINE ? (float)(1 / sqrt(norm)) : 1.0f;
    }
    for (size_t r = 0; r < ROWS; r += 7) {
        double x[DIMS], middles[DIMS], scale = bsw_half_to_float(shard.scales[r]);
        if (metric == BSW_METRIC_L2) scale /= 2;
        for (size_t i = 0; i < DIMS; i++) {
            int c = shard.codes[r * DIMS + i];
            double step = (decode(rows, factors, i, 1) - decode(rows, factors, i, -1)) * scale;
            middles[i] = decode(rows, factors, i, 0);
            x[i] = middles[i] + (decode(rows, factors, i, c) - middles[i]) * scale;
            assert_true(fabs(x[i] - (double)(rows[r * DIMS + i] * factors[r])) <=
                        step / 2 * 1.01 + 1e-5);
        }
        for (size_t q = 0; q < QUERIES; q++) {
            int32_t dot = plain_dot(queries.codes + q * DIMS, shard.codes + r * DIMS, 0, DIMS);
            float key = fmaf(queries.scales[q], bsw_half_to_float(shard.scales[r]) * (float)dot,
                             shard.biases[r]);
            float value =
                bsw_value_of_score(&manifest, 7, bsw_score_from_float(key), queries.terms[q]);
            double expected =
                exact_value(metric, x, queries.vectors + q * DIMS, queries.factors[q]);
            for (size_t i = 0; i < DIMS && metric != BSW_METRIC_L2; i++) // exact beside the code
                expected += middles[i] * ((double)(rows[r * DIMS + i] * factors[r]) - x[i]) *
                            (double)queries.terms[q].unit;
            double room = (double)(queries.scales[q] * queries.terms[q].unit) * 255 * DIMS * scale *
                          (metric == BSW_METRIC_L2 ? 2 : 1);
            assert_true(fabs((double)value - expected) <= room + 1e-4 * fabs(expected));
        }
    }
    free_plain_queries(&queries);
    free_plain_shard(&shard);
    bsw_manifest_deinit(&manifest);
    bsw_free(&rows);
}

UNIT_TEST(sq8_codes_and_keys_are_those_of_its_formula)
{
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) check_sq8((enum bsw_metric)metric);
}

UNIT_TEST(sq8_comes_back_from_its_manifest)
{
    struct bsw_manifest manifest, again;
    struct bsw_buffer first = {0}, second = {0};
    float *rows = make_rows(ROWS);
    make_sq8(BSW_METRIC_L2, rows, &manifest);
    assert_ok(bsw_manifest_pack(&manifest, &first, &err), &err);
    assert_ok(bsw_manifest_parse("m", first.data, first.bytes, &again, &err), &err);
    assert_ok(bsw_manifest_pack(&again, &second, &err), &err);
    assert_int_equal(first.bytes, second.bytes);
    assert_memory_equal(first.data, second.data, first.bytes);
    assert_int_equal(bsw_codec_sq8.parse_part("m", "\xff", 1, &again, &err), BSW_ERROR_BAD_DATA);
    assert_int_equal(bsw_codec_sq8.parse_part("m", "", 0, &again, &err), BSW_ERROR_BAD_DATA);
    assert_string_equal(err.message, "m: the steps do not fit the dims");
    bsw_manifest_deinit(&again);
    bsw_manifest_deinit(&manifest);
    bsw_buffer_deinit(&first);
    bsw_buffer_deinit(&second);
    bsw_free(&rows);
}

UNIT_TEST(sq8_refuses_what_it_cannot_code)
{
    struct bsw_codec_settings settings = {.bits = 4}, model = {.model = "other"};
    assert_int_equal(bsw_codec_sq8.table->check_settings(&settings, &err), BSW_ERROR_USAGE);
    assert_string_equal(err.message, "--bits 4: --codec sq8 has 8");
    assert_int_equal(bsw_codec_sq8.table->check_settings(&model, &err), BSW_ERROR_USAGE);
    struct bsw_sample sample;
    struct bsw_manifest manifest = {.codec = &bsw_codec_sq8, .metric = BSW_METRIC_IP};
    float wide[2 * 4] = {1e18f, -1e18f, 1e18f, 1, -1e18f, 1e18f, 1, 1};
    bsw_vectors *vectors;
    write_fbin(path_of("wide.fbin"), wide, 2, 4);
    assert_ok(bsw_vectors_open(path_of("wide.fbin"), BSW_ALL_ROWS, &vectors, &err), &err);
    assert_ok(bsw_sample_create(vectors, BSW_METRIC_IP, BSW_CPU_REFERENCE, &sample, &err), &err);
    memset(&settings, 0, sizeof settings);
    assert_int_equal(bsw_codec_sq8.table->train(&settings, 4, &sample, NULL, &manifest, &err),
                     BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "numbers too large for --codec sq8"));
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
    bsw_manifest_deinit(&manifest);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
