// SPDX-License-Identifier: Apache-2.0
// Codes, tables and keys of pq by their formulas, in float64; training is the same for any number
// of threads, and OPQ brings rows closer to what their codes stand for.
#include "small_index.h"

#include <math.h>
#include <omp.h>

#include "common/base/integer_hash.h"
#include "common/codes/result_order.h"
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

static struct bsw_product_codes *train(enum bsw_metric metric, uint32_t bits, const char *rotation,
                                       int num_threads)
{
    struct bsw_sample sample;
    struct bsw_product_codes *codes;
    bsw_vectors *vectors;
    assert_ok(bsw_vectors_open(path_of("rows.fbin"), BSW_ALL_ROWS, &vectors, &err), &err);
    assert_ok(bsw_sample_create(vectors, metric, bsw_cpu_level_detect(), &sample, &err), &err);
    assert_ok(bsw_product_codes_create(metric, DIMS, PARTS, bits, rotation, &codes, &err), &err);
    assert_ok(bsw_product_train(&sample, 5, num_threads, codes, &err), &err);
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
    return codes;
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
    _Alignas(64) static unsigned char expected[NUMBERS * 4 + 4], found[NUMBERS * 4 + 4];
    _Alignas(64) float query[64], centroid[64], room[64];
    bsw_product_project_vector(codes, &bsw_encode_reference, rows, 1.0f, codes->mean, room, query);
    bsw_product_project_vector(codes, &bsw_encode_reference, rows + 9 * DIMS, 1.0f, codes->mean,
                               room, centroid);
    const struct bsw_product_terms terms = {query, term, centroid, list};
    for (int type = 0; type < BSW_NUM_TABLE_TYPES; type++) {
        for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
            const struct bsw_table_scan_table *kernels =
                bsw_table_scan_table_get((enum bsw_cpu_level)level);
            unsigned char *to = level == BSW_CPU_REFERENCE ? expected : found;
            bsw_product_query_term(codes, kernels, query, room, term);
            bsw_product_list_term(codes, kernels, centroid, room, list);
            bsw_product_table(codes, kernels, (enum bsw_table_type)type, &terms, space, to);
            assert_memory_equal(expected, to,
                                NUMBERS * bsw_table_number_bytes((enum bsw_table_type)type));
        }
    }
    bsw_product_codes_destroy(&codes);
    bsw_free(&rows);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
