// SPDX-License-Identifier: Apache-2.0
// Codes, tables and keys of pq by their formulas, in float64; training is the same for any number
// of threads, and OPQ brings rows closer to what their codes stand for.
#include "small_index.h"

#include <math.h>
#include <omp.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "common/rows/synth.h"
#include "shard/codecs/product_codes.h"
#include "shard/codecs/product_training.h"
#include "temporary_folder.h"

enum { ROWS = 700, DIMS = 21, PARTS = 4 }; // parts of 6 dimensions, 3 of them padding

static struct bsw_error err;

static float *make_rows(void)
{
    const struct bsw_synth synth = {.count = ROWS, .dims = DIMS, .seed = 9, .clusters = 11};
    float *rows = allocate_or_fail((size_t)ROWS * DIMS, sizeof *rows);
    bsw_synth_rows(&synth, 0, ROWS, rows);
    for (size_t i = 0; i < (size_t)ROWS * DIMS; i++)
        rows[i] = rows[i] * (float)(1 + i % DIMS) + 3.0f;
    write_fbin(path_of("rows.fbin"), rows, ROWS, DIMS);
    return rows;
}

// num_far: rows that are left out of means and rotations.
static struct bsw_product_codes *train_far(enum bsw_metric metric, uint32_t bits,
                                           const char *rotation, int num_threads, uint64_t num_far)
{
    struct bsw_sample sample;
    struct bsw_product_codes *codes;
    bsw_vectors *vectors;
    assert_ok(bsw_vectors_open(path_of("rows.fbin"), BSW_ALL_ROWS, &vectors, &err), &err);
    assert_ok(bsw_sample_create(vectors, metric, bsw_cpu_level_detect(), &sample, &err), &err);
    if (num_far > 0) assert_ok(bsw_sample_leave_out(&sample, &err), &err);
    assert_int_equal(sample.far.num_rows, num_far);
    assert_ok(bsw_product_codes_create(metric, DIMS, PARTS, bits, rotation, &codes, &err), &err);
    assert_ok(bsw_product_train(&sample, 5, num_threads, codes, &err), &err);
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
    return codes;
}

static struct bsw_product_codes *train(enum bsw_metric metric, uint32_t bits, const char *rotation,
                                       int num_threads)
{
    return train_far(metric, bits, rotation, num_threads, 0);
}

// x' of a row, and its nearest entries.
static void code_row(const struct bsw_product_codes *codes, const float *row, float factor,
                     float *projected, uint8_t *out)
{
    _Alignas(64) float room[64];
    bsw_product_project_vector(codes, &bsw_encode_reference, row, factor, codes->mean, room,
                               projected);
    bsw_table_scan_reference.nearest(&codes->book, projected, codes->projected_dims, 1, out);
}

static double squared_error(const struct bsw_product_codes *codes, const float *projected,
                            const uint8_t *code)
{
    const struct bsw_product_book *book = &codes->book;
    double sum = 0;
    for (uint32_t d = 0; d < book->parts * book->part_dims; d++) {
        double e = book->entries[(d << book->bits) + code[d / book->part_dims]];
        sum += (projected[d] - e) * (projected[d] - e);
    }
    return sum;
}

static double mean_error(const struct bsw_product_codes *codes, const float *rows)
{
    _Alignas(64) float projected[64];
    double sum = 0;
    for (size_t r = 0; r < ROWS; r++) {
        uint8_t code[PARTS];
        code_row(codes, rows + r * DIMS, 1.0f, projected, code);
        sum += squared_error(codes, projected, code);
    }
    return sum / ROWS;
}

UNIT_TEST(training_is_the_same_for_any_number_of_threads)
{
    float *rows = make_rows();
    static const char *const rotations[] = {"none", "random", "opq"};
    for (int i = 0; i < 3; i++) {
        struct bsw_product_codes *one = train(BSW_METRIC_L2, 8, rotations[i], 1),
                                 *three = train(BSW_METRIC_L2, 8, rotations[i], 3);
        size_t numbers = bsw_product_numbers(&one->book) * one->book.part_dims;
        assert_memory_equal(one->entries, three->entries, numbers * sizeof(float));
        assert_int_equal(one->matrix != NULL, i > 0);
        if (one->matrix)
            assert_memory_equal(one->matrix, three->matrix,
                                (size_t)DIMS * one->projected_dims * sizeof(float));
        bsw_product_codes_destroy(&one);
        bsw_product_codes_destroy(&three);
    }
    bsw_free(&rows);
}

// Rows of the matrix are orthonormal, so that distances stay.
UNIT_TEST(rotations_keep_lengths_and_opq_has_the_least_error)
{
    float *rows = make_rows();
    struct bsw_product_codes *all[] = {train(BSW_METRIC_L2, 4, "none", 2),
                                       train(BSW_METRIC_L2, 4, "random", 2),
                                       train(BSW_METRIC_L2, 4, "opq", 2)};
    for (int i = 1; i < 3; i++) {
        for (uint32_t a = 0; a < DIMS; a++) {
            for (uint32_t b = 0; b <= a; b++) {
                double sum = 0;
                for (uint32_t d = 0; d < all[i]->projected_dims; d++)
                    sum += (double)all[i]->matrix[a * all[i]->projected_dims + d] *
                           (double)all[i]->matrix[b * all[i]->projected_dims + d];
                assert_true(fabs(sum - (a == b)) < 1e-5);
            }
        }
    }
    double none = mean_error(all[0], rows), random = mean_error(all[1], rows),
           opq = mean_error(all[2], rows);
    assert_true(opq < 0.9 * none && opq < 0.9 * random);
    for (int i = 0; i < 3; i++) bsw_product_codes_destroy(&all[i]);
    bsw_free(&rows);
}

// And the others lose next to nothing by it.
UNIT_TEST(a_row_far_out_has_a_code_of_its_own)
{
    float *rows = make_rows(), *far = rows + 77 * DIMS;
    _Alignas(64) float projected[64];
    uint8_t code[PARTS];
    double square = 0;
    struct bsw_product_codes *without = train(BSW_METRIC_IP, 8, "opq", 1);
    double error = mean_error(without, rows);
    for (size_t d = 0; d < DIMS; d++) {
        far[d] *= 50;
        square += far[d] * far[d];
    }
    write_fbin(path_of("rows.fbin"), rows, ROWS, DIMS);
    struct bsw_product_codes *with = train_far(BSW_METRIC_IP, 8, "opq", 1, 1);
    code_row(with, far, 1.0f, projected, code);
    assert_true(squared_error(with, projected, code) < 1e-6 * square);
    for (size_t d = 0; d < DIMS; d++) far[d] /= 50;
    assert_true(mean_error(with, rows) < 1.1 * error);
    bsw_product_codes_destroy(&without);
    bsw_product_codes_destroy(&with);
    bsw_free(&rows);
}

// Many dims would take an SVD of them a round.
UNIT_TEST(few_rows_keep_the_order_of_dims)
{
    float *rows = make_rows();
    write_fbin(path_of("rows.fbin"), rows, DIMS - 1, DIMS);
    struct bsw_product_codes *codes = train(BSW_METRIC_L2, 8, "opq", 2);
    for (uint32_t a = 0; a < DIMS; a++)
        for (uint32_t b = 0; b < codes->projected_dims; b++)
            assert_true(codes->matrix[a * codes->projected_dims + b] == (a == b ? 1.0f : 0.0f));
    bsw_product_codes_destroy(&codes);
    bsw_free(&rows);
}

// What a key stands for: distance, or product, of the query and the decoded row.
static double decoded_value(const struct bsw_product_codes *codes, const float *query,
                            const uint8_t *code)
{
    if (codes->metric == BSW_METRIC_L2) return -squared_error(codes, query, code);
    double sum = 0;
    for (uint32_t d = 0; d < codes->book.parts * codes->book.part_dims; d++)
        sum += (double)query[d] *
               (double)codes->entries[(d << codes->book.bits) + code[d / codes->book.part_dims]];
    return sum;
}

static void put_bundle(uint32_t bits, uint8_t codes[BSW_BUNDLE_ROWS][PARTS], uint8_t *bundle)
{
    memset(bundle, 0, PARTS * BSW_BUNDLE_ROWS);
    for (size_t r = 0; r < BSW_BUNDLE_ROWS; r++) {
        for (size_t p = 0; p < PARTS; p++) {
            size_t byte = bits == 8 ? p : p / 2;
            bundle[byte * BSW_BUNDLE_ROWS + r] |= (uint8_t)(codes[r][p] << (bits == 4) * p % 2 * 4);
        }
    }
}

static void check_keys(enum bsw_metric metric, uint32_t bits, int has_centroid)
{
    static const double tolerances[] = {1e-5, 2e-3, 0.13, 0.13};
    float *rows = make_rows();
    struct bsw_product_codes *codes = train(metric, bits, "random", 2);
    _Alignas(64) float query[64], projected[64], room[64], centre[64] = {0};
    const float *centroid = has_centroid ? rows + 7 * DIMS : NULL;
    uint8_t of_rows[BSW_BUNDLE_ROWS][PARTS], bundle[PARTS * BSW_BUNDLE_ROWS];
    uint32_t places[BSW_BUNDLE_ROWS], scores[BSW_BUNDLE_ROWS];
    for (uint32_t r = 0; r < BSW_BUNDLE_ROWS; r++) {
        code_row(codes, rows + r * DIMS, 1.0f, projected, of_rows[r]);
        places[r] = r;
    }
    put_bundle(bits, of_rows, bundle);
    bsw_product_project_vector(codes, &bsw_encode_reference, rows + 100 * DIMS, 1.0f,
                               metric == BSW_METRIC_L2 ? codes->mean : codes->zeros, room, query);
    if (centroid)
        bsw_product_project_vector(codes, &bsw_encode_reference, centroid, 1.0f, codes->mean, room,
                                   centre);
    const struct bsw_product_rows what = {bundle, sizeof bundle, BSW_BUNDLE_ROWS, places};
    for (int type = 0; type < BSW_NUM_TABLE_TYPES; type++) {
        assert_ok(bsw_product_plain_scores(codes, (enum bsw_table_type)type, NULL, query, centroid,
                                           &what, scores, &err),
                  &err);
        for (uint32_t r = 0; r < BSW_BUNDLE_ROWS; r++) {
            float less[64]; // q' - c' under l2
            for (int d = 0; d < 64; d++)
                less[d] = query[d] - (metric == BSW_METRIC_L2 ? centre[d] : 0.0f);
            double key = bsw_score_to_float(scores[r]), all = 0,
                   expected = decoded_value(codes, less, of_rows[r]);
            for (uint32_t d = 0; d < codes->projected_dims; d++) all += fabs((double)less[d]);
            double scale = metric == BSW_METRIC_L2 ? fabs(expected) : all * 30;
            assert_true(fabs(key - expected) <= tolerances[type] * scale + 1e-3);
        }
    }
    bsw_product_codes_destroy(&codes);
    bsw_free(&rows);
}

UNIT_TEST(keys_are_those_of_decoded_rows)
{
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        for (uint32_t bits = 4; bits <= 8; bits += 4) {
            check_keys((enum bsw_metric)metric, bits, 0);
            check_keys((enum bsw_metric)metric, bits, 1);
        }
    }
}

// Every level's table of a query and list.
UNIT_TEST(tables_are_the_same_on_every_level)
{
    float *rows = make_rows();
    struct bsw_product_codes *codes = train(BSW_METRIC_L2, 8, "none", 2);
    enum { NUMBERS = PARTS * 256 };
    _Alignas(64) static float term[NUMBERS], list[NUMBERS], space[NUMBERS + PARTS];
    _Alignas(64) static float expected[NUMBERS], found[NUMBERS];
    _Alignas(64) float query[64], centroid[64], room[64];
    bsw_product_project_vector(codes, &bsw_encode_reference, rows, 1.0f, codes->mean, room, query);
    bsw_product_project_vector(codes, &bsw_encode_reference, rows + 9 * DIMS, 1.0f, codes->mean,
                               room, centroid);
    const struct bsw_product_terms terms = {query, term, centroid, list};
    for (int type = 0; type < BSW_NUM_TABLE_TYPES; type++) {
        for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
            const struct bsw_table_scan_table *kernels =
                bsw_table_scan_table_get((enum bsw_cpu_level)level);
            float *to = level == BSW_CPU_REFERENCE ? expected : found;
            bsw_product_query_term(codes, kernels, query, room, term);
            bsw_product_list_term(codes, kernels, centroid, room, list);
            bsw_product_table(codes, kernels, (enum bsw_table_type)type, &terms, space, to);
            assert_memory_equal(expected, to, sizeof expected);
        }
    }
    bsw_product_codes_destroy(&codes);
    bsw_free(&rows);
}

// ---- tables of a huge range ----

enum { WIDE_PARTS = 6, WIDE_ROWS = BSW_BUNDLE_ROWS };

// One dimension a part; entries of all sizes, from 2^-least on, of part p up to sizes[p].
static struct bsw_product_codes *make_wide(enum bsw_metric metric, const float *sizes)
{
    struct bsw_product_codes *codes;
    assert_ok(bsw_product_codes_create(metric, WIDE_PARTS, WIDE_PARTS, 8, "none", &codes, &err),
              &err);
    for (uint32_t p = 0; p < WIDE_PARTS; p++)
        for (int j = 0; j < 256; j++)
            codes->entries[p * 256 + (uint32_t)j] =
                ldexpf(sizes[p] * (1.0f + (float)(bsw_hash2(p, (uint64_t)j) % 997) / 997.0f),
                       -j / 3) *
                (j % 2 ? -1.0f : 1.0f);
    bsw_product_codes_norms(codes);
    return codes;
}

// A byte by the definition of the format, in float64, and the number that it stands for.
static double cell_middle(int exponent_bits, int is_signed, double v)
{
    int bits = 8 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1, exponent, u;
    double size = fabs(v), fraction = 2 * frexp(size, &exponent);
    if (size < ldexp(1.0, -bias))
        u = 0;
    else if (size >= ldexp(2.0 - ldexp(1.0, -bits), bias + 1))
        u = 255;
    else
        u = (exponent - 1 + bias) << bits | (int)floor(ldexp(fraction - 1, bits));
    int step = is_signed ? 2 : 1, first = u / step * step;
    double begin = ldexp(1.0 + ldexp((double)(first % (1 << bits)), -bits), (first >> bits) - bias),
           wide = ldexp((double)step, (first >> bits) - bias - bits), middle = begin + wide / 2;
    return is_signed && v < 0 ? -middle : middle;
}

// The power of two that brings the largest number to the highest cells (of e4m4 below 496).
static int wide_exponent(int exponent_bits, double largest)
{
    int x = 0, most = 1 << (exponent_bits - 1);
    double end = exponent_bits == 4 ? 496.0 : ldexp(1.0, most);
    if (largest == 0) return 0;
    while (ldexp(largest, x) >= end) x--;
    while (ldexp(largest, x + 1) < end) x++;
    return x;
}

static void check_wide(const struct bsw_product_codes *codes, enum bsw_table_type type,
                       const float *query)
{
    int exponent_bits = (int)bsw_float8_exponent_bits(type), is_l2 = codes->metric == BSW_METRIC_L2;
    uint8_t bundle[8 * BSW_BUNDLE_ROWS];
    uint32_t places[WIDE_ROWS], scores[WIDE_ROWS];
    float numbers[WIDE_PARTS * 256];
    double largest = 0;
    for (size_t i = 0; i < sizeof bundle; i++) bundle[i] = (uint8_t)bsw_hash2(4, i);
    for (uint32_t r = 0; r < WIDE_ROWS; r++) places[r] = r;
    for (uint32_t i = 0; i < WIDE_PARTS * 256; i++) {
        float e = codes->entries[i], q = query[i / 256], distance = (e * e + -2 * q * e) + q * q;
        numbers[i] = is_l2 ? (distance > 0 ? distance : 0) : q * e;
        largest = fmax(largest, fabs((double)numbers[i]));
    }
    int x = wide_exponent(exponent_bits, largest);
    const struct bsw_product_rows what = {bundle, sizeof bundle, WIDE_ROWS, places};
    assert_ok(bsw_product_plain_scores(codes, type, NULL, query, NULL, &what, scores, &err), &err);
    for (uint32_t r = 0; r < WIDE_ROWS; r++) {
        float sum = 0;
        for (uint32_t p = 0; p < WIDE_PARTS; p++) {
            // In float32: what is so small that it gets 0 loses its sign.
            float v = ldexpf(numbers[p * 256 + bundle[p * BSW_BUNDLE_ROWS + r]], x);
            sum += (float)cell_middle(exponent_bits, !is_l2, (double)v);
        }
        double key = ldexp(is_l2 ? -(double)sum : (double)sum, -x);
        assert_true((double)bsw_score_to_float(scores[r]) == key);
    }
}

// 2^100 between parts, 2^85 between entries of one: what lies below the cells is the middle of the
// lowest one, bit for bit as the formats are defined.
UNIT_TEST(tables_of_a_huge_range_are_those_of_the_definition)
{
    static const float sizes[WIDE_PARTS] = {0x1p50f, 0x1p-50f, 1.0f, 3.0f, 0x1p20f, 0x1p-10f};
    _Alignas(64) const float query[32] = {0x1p49f, 3.0f, -2.0f, 0x1p-30f, 0.0f, -0x1p40f};
    for (int metric = 0; metric < 2; metric++) {
        struct bsw_product_codes *codes = make_wide(metric ? BSW_METRIC_IP : BSW_METRIC_L2, sizes);
        check_wide(codes, BSW_TABLE_E4M4, query);
        check_wide(codes, BSW_TABLE_E5M3, query);
        bsw_product_codes_destroy(&codes);
    }
}

// The largest vectors and entries that are taken: tables have neither NaN nor infinity, on any
// level.
UNIT_TEST(no_table_has_a_number_that_is_none)
{
    enum { NUMBERS = WIDE_PARTS * 256 };
    static const float sizes[WIDE_PARTS] = {7e17f, 7e17f, 7e17f, 0x1p-60f, 0.0f, 7e17f};
    _Alignas(64) const float query[32] = {-1.4e18f, 1.4e18f, -1.4e18f, 1.4e18f, 1.4e18f, 0x1p-70f};
    _Alignas(64) static float term[NUMBERS], space[NUMBERS + WIDE_PARTS], table[NUMBERS];
    _Alignas(64) float room[64];
    for (int metric = 0; metric < 2; metric++) {
        struct bsw_product_codes *codes = make_wide(metric ? BSW_METRIC_IP : BSW_METRIC_L2, sizes);
        const struct bsw_product_terms terms = {query, term, NULL, codes->norms};
        for (int i = 0; i < BSW_NUM_TABLE_TYPES * BSW_CPU_NUM_LEVELS; i++) {
            enum bsw_cpu_level level = (enum bsw_cpu_level)(i / BSW_NUM_TABLE_TYPES);
            enum bsw_table_type type = (enum bsw_table_type)(i % BSW_NUM_TABLE_TYPES);
            if (level != BSW_CPU_REFERENCE && level > bsw_cpu_level_detect()) continue;
            const struct bsw_table_scan_table *kernels = bsw_table_scan_table_get(level);
            bsw_product_query_term(codes, kernels, query, room, term);
            float multiplier = bsw_product_table(codes, kernels, type, &terms, space, table);
            assert_true(isfinite(multiplier) && multiplier != 0);
            for (size_t n = 0; n < NUMBERS; n++) assert_true(isfinite(table[n]));
        }
        bsw_product_codes_destroy(&codes);
    }
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
