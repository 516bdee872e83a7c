// SPDX-License-Identifier: Apache-2.0
// Query codes against sums in long double, and the values that keys stand for against the exact
// ones.
#include <math.h>

#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "common/rows/synth.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/codec_saq.h"
#include "shard/codecs/codec_xfbq.h"
#include "small_index.h"
#include "temporary_folder.h"

enum { MAX_DIMS = 200, QUERIES = 12 };

static struct bsw_error err;

// Queries of the base's clusters: rows beyond its count.
static float *make_queries(uint64_t count, uint32_t dims, uint32_t clusters)
{
    const struct bsw_synth synth = {.count = count, .dims = dims, .seed = 1, .clusters = clusters};
    float *rows = allocate_or_fail((size_t)QUERIES * dims, sizeof *rows);
    bsw_synth_rows(&synth, count, QUERIES, rows);
    return rows;
}

// ---- q, scale and addend of saq ----

// q' = M(q - mu) without padding, p = q' * step, their norms and the sums that addends are.
struct true_query {
    long double projected[MAX_DIMS], p[MAX_DIMS];
    long double largest, norm, mean_dot;
    long double noise; // of a component: what is left where query and mean cancel out
};

// float32 arithmetic is wrong by some units of the sums' sizes: dims * 2^-24 covers it.
static void project(const struct bsw_manifest *manifest, const float *row, float factor,
                    struct true_query *out)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    long double centered[MAX_DIMS];
    memset(out, 0, sizeof *out);
    for (uint32_t j = 0; j < layout->dims; j++) {
        long double y = (long double)row[j] * (long double)factor,
                    mean = bsw_saq_part_of(manifest)->mean[j];
        centered[j] = y - mean;
        out->mean_dot += y * mean;
        out->noise += fabsl(y) * 0x1p-23L;
    }
    for (uint32_t s = 0, at = 0; s < layout->num_segments; s++) {
        for (uint32_t i = 0; i < layout->segments[s].dims; i++, at++) {
            size_t place = layout->segments[s].padded_dim + i;
            for (uint32_t j = 0; j < layout->dims; j++) {
                out->projected[at] += centered[j] * (long double)bsw_saq_part_of(manifest)
                                                        ->rotation[j * layout->padded_dims + place];
            }
            out->p[at] = out->projected[at] * (long double)bsw_saq_part_of(manifest)->steps[s];
            out->norm += out->projected[at] * out->projected[at];
            out->largest = fmaxl(out->largest, fabsl(out->p[at]));
        }
    }
}

// norm(q')^2 or <q, mu>; the second is summed from <q', mu> and <mu, mu>, whose sizes bound its
// error.
static void check_addend(const struct bsw_manifest *manifest, const struct true_query *expected,
                         float found)
{
    int is_l2 = manifest->metric == BSW_METRIC_L2;
    long double addend = is_l2 ? expected->norm : expected->mean_dot, size = expected->norm;
    for (uint32_t j = 0; j < manifest->layout.dims && !is_l2; j++)
        size += (long double)bsw_saq_part_of(manifest)->mean[j] *
                (long double)bsw_saq_part_of(manifest)->mean[j];
    assert_true(fabsl((long double)found - addend) <= 1e-5L * size);
}

static void check_query(const struct bsw_manifest *manifest, const struct plain_queries *queries,
                        size_t q)
{
    struct true_query expected;
    uint32_t dims = manifest->layout.dims;
    project(manifest, queries->vectors + q * dims, queries->factors[q] * queries->lengths[q],
            &expected);
    long double tolerance = 0x1p-20L * dims;
    int top = (1 << queries->query_bits) - 1;
    long double scale = expected.largest / top;
    float found = ldexpf(queries->scales[q], -manifest->scale_exponent);
    assert_true(fabsl((long double)found - scale) <= tolerance * scale + expected.noise / top);
    int reaches_top = 0;
    for (uint32_t i = 0; i < dims; i++) {
        int code = queries->codes[q * dims + i];
        long double z = expected.p[i] / scale;
        assert_true(code % 2 != 0 && abs(code) <= top);
        // The nearest odd integer: max|p| is code `top`, so none is clipped by more than rounding.
        assert_true(fabsl(z - code) <= 1 + top * tolerance + expected.noise / scale);
        reaches_top |= abs(code) == top;
    }
    assert_true(reaches_top || (found == 0 && expected.largest <= expected.noise));
    check_addend(manifest, &expected, queries->terms[q].addend);
}

static void assert_zero_padding(const struct bsw_code_layout *layout, const uint32_t *words,
                                uint32_t query_bits)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        uint32_t used = segment->dims % 32;
        for (uint32_t p = 0; p < query_bits; p++, words += segment->words)
            if (used) assert_int_equal(words[segment->words - 1] >> used, 0);
    }
}

static void check_saq_queries(const char *source, uint64_t count, uint32_t clusters,
                              const char *segments, uint32_t dims)
{
    float *vectors = make_queries(count, dims, clusters);
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        struct small_index what = {.source = source,
                                   .codec = &bsw_codec_saq,
                                   .metric = (enum bsw_metric)metric,
                                   .segments = segments};
        struct bsw_manifest manifest;
        make_small_index(&what, temporary_folder, &manifest);
        for (uint32_t bits = 1; bits <= BSW_MAX_QUERY_BITS; bits++) {
            struct plain_queries queries;
            make_plain_queries(&manifest, vectors, QUERIES, bits, &queries);
            for (size_t q = 0; q < QUERIES; q++) {
                check_query(&manifest, &queries, q);
                assert_zero_padding(&manifest.layout, queries.words + q * queries.query_words,
                                    bits);
            }
            free_plain_queries(&queries);
        }
        bsw_manifest_deinit(&manifest);
    }
    bsw_free(&vectors);
}

UNIT_TEST(saq_queries_are_odd_multiples_of_their_scale)
{
    check_saq_queries("synth:count=300,dims=64,clusters=7", 300, 7, "64x3", 64);
    check_saq_queries("synth:count=300,dims=70,clusters=7", 300, 7, "33x4,5x2,32x1", 70);
    check_saq_queries("synth:count=300,dims=200", 300, 0, "96x3,104x2", 200);
    check_saq_queries("synth:count=50,dims=1", 50, 0, "1x8", 1);
    check_saq_queries("synth:count=50,dims=31", 50, 0, "30x1,1x8", 31);
}

// ---- xfbq ----

// Coded as a document is: c = 2 * floor(x * scale * 2^(Bq-1)) + 1, clipped.
UNIT_TEST(plain_queries_are_coded_as_documents)
{
    enum { DIMS = 45 };
    struct small_index what = {.source = "synth:count=200,dims=45,clusters=7",
                               .codec = &bsw_codec_xfbq,
                               .metric = BSW_METRIC_COSINE,
                               .bits = 3};
    struct bsw_manifest manifest;
    make_small_index(&what, temporary_folder, &manifest);
    float *vectors = make_queries(200, DIMS, 7);
    for (uint32_t bits = 1; bits <= BSW_MAX_QUERY_BITS; bits++) {
        struct plain_queries queries;
        make_plain_queries(&manifest, vectors, QUERIES, bits, &queries);
        for (size_t i = 0; i < QUERIES * DIMS; i++) {
            float y = queries.vectors[i] * queries.factors[i / DIMS], v = y * manifest.codec_number;
            int half = 1 << (bits - 1), f = (int)floorf(v * (float)half);
            f = f < -half ? -half : f >= half ? half - 1 : f;
            assert_int_equal(queries.codes[i], 2 * f + 1);
        }
        for (size_t q = 0; q < QUERIES; q++) {
            assert_true(queries.scales[q] == 1 && queries.terms[q].addend == 0);
            assert_zero_padding(&manifest.layout, queries.words + q * queries.query_words, bits);
        }
        free_plain_queries(&queries);
    }
    bsw_free(&vectors);
    bsw_manifest_deinit(&manifest);
}

// A rotated component in long double, of a row with its factor.
static long double rotated_component(const struct bsw_manifest *manifest, const float *row,
                                     float factor, uint32_t i)
{
    long double sum = 0;
    for (uint32_t j = 0; j < manifest->layout.dims; j++)
        sum +=
            (long double)row[j] * (long double)factor *
            (long double)bsw_xfbq_part_of(manifest)->rotation[j * manifest->layout.padded_dims + i];
    return sum;
}

// Whether c is the code of v, which is as wrong as float32 sums of numbers of a unit row are.
static int is_code_of(long double v, int bits, int c)
{
    int half = 1 << (bits - 1);
    long double error = 1e-5L * half, low = (c - 1) / 2, high = low + 1;
    if ((c - 1) / 2 > -half && v < low - error) return 0;
    return (c - 1) / 2 >= half - 1 || v <= high + error;
}

// Rows and queries of rotated codes are coded alike.
UNIT_TEST(rotated_rows_and_queries_are_coded_alike)
{
    enum { DIMS = 45, ROWS = 70 };
    struct small_index what = {.source = "synth:count=70,dims=45,clusters=7",
                               .codec = &bsw_codec_xfbq,
                               .metric = BSW_METRIC_COSINE,
                               .bits = 4,
                               .rotation = "random"};
    struct bsw_manifest manifest;
    struct plain_shard shard;
    struct plain_queries queries;
    make_small_index(&what, temporary_folder, &manifest);
    assert_int_equal(manifest.code_rule, 1);
    const struct bsw_synth synth = {.count = ROWS, .dims = DIMS, .seed = 1, .clusters = 7};
    float *rows = allocate_or_fail((size_t)ROWS * DIMS, sizeof *rows);
    bsw_synth_rows(&synth, 0, ROWS, rows);
    read_plain_shard(&manifest, temporary_folder, 0, &shard);
    make_plain_queries(&manifest, rows, ROWS, 4, &queries);
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t i = 0; i < DIMS; i++) {
            int c = shard.codes[r * DIMS + i];
            long double y =
                rotated_component(&manifest, rows + (size_t)r * DIMS, queries.factors[r], i);
            assert_true(is_code_of(y * (long double)manifest.codec_number * 8, 4, c));
            assert_int_equal(queries.codes[r * DIMS + i], c);
        }
        assert_zero_padding(&manifest.layout, queries.words + r * queries.query_words, 4);
    }
    free_plain_queries(&queries);
    free_plain_shard(&shard);
    bsw_free(&rows);
    bsw_manifest_deinit(&manifest);
}

// dot * 2^-(B + Bq) / scale^2, one rounding: float64 on the way may move it by one unit.
UNIT_TEST(plain_values_are_scaled_integers)
{
    static const float scales[] = {1, 2, 3.7f, 0.01f, 1e6f};
    static const int32_t dots[] = {0, 1, -1, 45, -1001, 1000003, -(1 << 30), (1 << 30) - 1};
    struct bsw_manifest manifest = {.codec = &bsw_codec_xfbq, .metric = BSW_METRIC_COSINE};
    for (uint32_t bits = 1; bits <= 8; bits++) {
        bsw_code_layout_init(&manifest.layout);
        assert_ok(bsw_code_layout_append(&manifest.layout, 100, bits, &err), &err);
        for (uint32_t query_bits = 1; query_bits <= 7; query_bits++) {
            for (size_t i = 0; i < 5 * 8; i++) {
                manifest.codec_number = scales[i / 8];
                long double scale = scales[i / 8], dot = dots[i % 8];
                float expected = (float)(ldexpl(dot, -(int)(bits + query_bits)) / (scale * scale));
                float found =
                    bsw_value_of_score(&manifest, query_bits, bsw_score_from_integer(dots[i % 8]),
                                       (struct bsw_value_terms){123.0f, 5.0f});
                assert_true(found == expected || found == nextafterf(expected, INFINITY) ||
                            found == nextafterf(expected, -INFINITY));
                if (i / 8 < 2) assert_true(found == expected); // powers of two are exact
                assert_false(found == 0 && signbit(found));
            }
        }
    }
}

// ---- values of saq ----

struct error_sums {
    double squares, count;
};

// The key as select.h defines it, then the value, against the exact one.
//
// A value is <q', o> with both sides coded, plus what is exact. scale_d makes the part of the
// document's error along o vanish; what stays is orthogonal to o and at most e_d * |o|, e_d the
// relative error of the code. The query's is at most one step of max|q'| / 127 a component (8 bits
// are one segment, so p is q' times one step): e_q = sqrt(D) * max|q'| / (127 * |q'|). Together
// |q'| |o| (e_d + e_q + e_d * e_q), and 2^-11 of the whole for the stored half. The best 8-bit
// quantizer of a Gaussian leaves e_d^2 = 8.7e-5; rows that are no Gaussian get three times that.
static void check_value(const struct bsw_manifest *manifest, const struct plain_queries *queries,
                        const struct plain_shard *shard, const float *row, float row_factor,
                        size_t q, size_t r, struct error_sums *errors)
{
    uint32_t dims = manifest->layout.dims;
    struct true_query query, document;
    int32_t dot = plain_dot(queries->codes + q * dims, shard->codes + r * dims, 0, dims);
    float scaled = bsw_half_to_float(shard->scales[r]) * (float)dot;
    float key = fmaf(queries->scales[q], scaled, shard->biases[r]) + 0.0f;
    float value = bsw_value_of_score(manifest, 7, bsw_score_from_float(key), queries->terms[q]) *
                  queries->lengths[q];
    project(manifest, queries->vectors + q * dims, queries->factors[q] * queries->lengths[q],
            &query);
    project(manifest, row, row_factor, &document);
    long double exact = 0, largest = 0;
    for (uint32_t i = 0; i < dims; i++) {
        long double x = (long double)row[i] * (long double)row_factor,
                    y = (long double)queries->vectors[q * dims + i] *
                        (long double)(queries->factors[q] * queries->lengths[q]);
        exact += manifest->metric == BSW_METRIC_L2 ? (x - y) * (x - y) : x * y;
        largest = fmaxl(largest, fabsl(query.projected[i]));
    }
    double size = (double)sqrtl(query.norm * document.norm);
    if (manifest->metric == BSW_METRIC_L2) size *= 2;
    double e_d = 3 * sqrt(8.7e-5),
           e_q = sqrt(dims) * (double)largest / 127 / (double)sqrtl(query.norm);
    double error = fabs((double)value - (double)exact) / size;
    if (error > e_d + e_q + e_d * e_q + 0x1p-11)
        fail_msg("value %g, exact %g, size %g", (double)value, (double)exact, size);
    errors->squares += error * error;
    errors->count++;
}

// The errors of components are as good as independent, so over D dimensions the usual error is
// smaller by sqrt(D): sqrt(e_d^2 + e_q^2 / 3) / sqrt(D), e_q some 4 / 127 for a largest component
// of 4 standard deviations. Twice that is allowed.
static void check_values(const char *source, const float *rows, size_t num_rows,
                         const float *query_rows, uint32_t num_queries, uint32_t dims)
{
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        struct small_index what = {.source = source,
                                   .last_row = num_rows,
                                   .codec = &bsw_codec_saq,
                                   .metric = (enum bsw_metric)metric,
                                   .bits = 8};
        struct bsw_manifest manifest;
        struct plain_queries queries, documents;
        struct plain_shard shard;
        struct error_sums errors = {0};
        make_small_index(&what, temporary_folder, &manifest);
        assert_int_equal(manifest.layout.num_segments, 1);
        make_plain_queries(&manifest, query_rows, num_queries, 7, &queries);
        make_plain_queries(&manifest, rows, (uint32_t)num_rows, 7, &documents); // for the factors
        read_plain_shard(&manifest, temporary_folder, 0, &shard);
        for (size_t q = 0; q < num_queries; q++) {
            for (size_t r = 0; r < num_rows; r++)
                check_value(&manifest, &queries, &shard, rows + r * dims, documents.factors[r], q,
                            r, &errors);
        }
        double usual = sqrt(8.7e-5 + pow(4.0 / 127, 2) / 3) / sqrt(dims);
        assert_true(sqrt(errors.squares / errors.count) < 2 * usual);
        free_plain_shard(&shard);
        free_plain_queries(&documents);
        free_plain_queries(&queries);
        bsw_manifest_deinit(&manifest);
    }
}

static float *read_rows(const char *path, size_t num_rows, uint32_t *dims)
{
    bsw_vectors *vectors;
    assert_ok(bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, &err), &err);
    *dims = bsw_vectors_dims(vectors);
    size_t count = num_rows * *dims;
    unsigned char *numbers = allocate_or_fail(count, 4);
    float *rows = allocate_or_fail(count, sizeof *rows);
    assert_ok(bsw_vectors_read(vectors, 0, num_rows, numbers, &err), &err);
    bsw_encode_table_get(BSW_CPU_REFERENCE)
        ->to_float(bsw_vectors_type(vectors), numbers, count, rows);
    bsw_free(&numbers);
    bsw_vectors_close(&vectors);
    return rows;
}

UNIT_TEST(values_are_near_the_exact_ones)
{
    uint32_t dims;
    const char *base = TEST_DATA_FOLDER "/sift20k_base.u8bin";
    float *rows = read_rows(base, 250, &dims);
    float *query_rows = read_rows(TEST_DATA_FOLDER "/sift20k_query.u8bin", 10, &dims);
    check_values(base, rows, 250, query_rows, 10, dims);
    bsw_free(&rows);
    bsw_free(&query_rows);
    const char *source = "synth:count=250,dims=100,clusters=20";
    rows = read_rows(source, 250, &dims);
    query_rows = make_queries(250, dims, 20);
    check_values(source, rows, 250, query_rows, QUERIES, dims);
    bsw_free(&rows);
    bsw_free(&query_rows);
}

// ---- edges ----

static void assert_finite_values(const struct bsw_manifest *manifest, const float *query,
                                 const char *folder)
{
    struct plain_queries queries;
    struct plain_shard shard;
    uint32_t dims = manifest->layout.dims;
    make_plain_queries(manifest, query, 1, 6, &queries);
    read_plain_shard(manifest, folder, 0, &shard);
    assert_true(isfinite(queries.scales[0]) && isfinite(queries.terms[0].addend));
    for (size_t r = 0; r < shard.num_rows; r++) {
        int32_t dot = plain_dot(queries.codes, shard.codes + r * dims, 0, dims);
        float scaled = bsw_half_to_float(shard.scales[r]) * (float)dot;
        float key = fmaf(queries.scales[0], scaled, shard.biases[r]) + 0.0f;
        assert_true(isfinite(key));
        assert_true(
            isfinite(bsw_value_of_score(manifest, 6, bsw_score_from_float(key), queries.terms[0])));
    }
    free_plain_shard(&shard);
    free_plain_queries(&queries);
}

// The query is the mean: q' is 0, all codes +1, and every value is that of the mean itself.
UNIT_TEST(a_query_at_the_mean_gives_finite_values)
{
    for (int metric = BSW_METRIC_IP; metric < BSW_METRIC_NUM; metric++) {
        struct small_index what = {.source = "synth:count=300,dims=40,clusters=7",
                                   .codec = &bsw_codec_saq,
                                   .metric = (enum bsw_metric)metric,
                                   .segments = "32x3,8x2"};
        struct bsw_manifest manifest;
        struct plain_queries queries;
        make_small_index(&what, temporary_folder, &manifest);
        make_plain_queries(&manifest, bsw_saq_part_of(&manifest)->mean, 1, 6, &queries);
        assert_true(queries.scales[0] == 0);
        for (uint32_t i = 0; i < 40; i++) assert_int_equal(queries.codes[i], 1);
        double norm = 0;
        for (uint32_t i = 0; i < 40; i++)
            norm +=
                (double)bsw_saq_part_of(&manifest)->mean[i] * bsw_saq_part_of(&manifest)->mean[i];
        double addend = metric == BSW_METRIC_L2 ? 0 : norm;
        assert_true(fabs(queries.terms[0].addend - addend) <= 1e-5 * addend);
        assert_finite_values(&manifest, bsw_saq_part_of(&manifest)->mean, temporary_folder);
        free_plain_queries(&queries);
        bsw_manifest_deinit(&manifest);
    }
}

// The longest and the shortest rows and queries that are let in.
UNIT_TEST(extreme_lengths_give_finite_values)
{
    enum { ROWS = 64, DIMS = 20 };
    static const float lengths[] = {3e18f, 1e-18f, 1e-30f, 0};
    float *rows = allocate_or_fail(ROWS * DIMS, sizeof *rows), query[DIMS];
    for (int metric = BSW_METRIC_IP; metric < BSW_METRIC_NUM; metric++) {
        for (size_t i = 0; i < 16; i++) {
            const struct bsw_synth synth = {.count = ROWS, .dims = DIMS, .seed = 2};
            bsw_synth_rows(&synth, 0, ROWS, rows);
            bsw_synth_rows(&synth, ROWS, 1, query);
            for (size_t j = 0; j < ROWS * DIMS; j++) rows[j] *= lengths[i / 4] / 16;
            for (size_t j = 0; j < DIMS; j++) query[j] *= lengths[i % 4] / 16;
            write_fbin(path_of("extreme.fbin"), rows, ROWS, DIMS);
            struct small_index what = {.source = path_of("extreme.fbin"),
                                       .codec = &bsw_codec_saq,
                                       .metric = (enum bsw_metric)metric,
                                       .segments = "20x3"};
            struct bsw_manifest manifest;
            make_small_index(&what, temporary_folder, &manifest);
            assert_finite_values(&manifest, query, temporary_folder);
            bsw_manifest_deinit(&manifest);
            assert_ok(bsw_manifest_read(temporary_folder, &manifest, &err), &err);
            bsw_manifest_deinit(&manifest);
        }
    }
    bsw_free(&rows);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
