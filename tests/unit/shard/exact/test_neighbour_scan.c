// SPDX-License-Identifier: Apache-2.0
// Streamed neighbours are those of the plain definition, an exact value for every pair and a full
// sort, bit for bit: on data that leaves a float32 screen little to go by, for every level, metric,
// block and number of threads, and after a stop between blocks.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/screen/screen_margin.h"
#include "shard/exact/neighbour_codes.h"
#include "shard/exact/neighbour_scan.h"
#include "tests/unit/temporary_folder.h"
#include "unit_test.h"

enum { NUM_ROWS = 211, NUM_QUERIES = 14, MAX_DIMS = 40 };
enum { CLUSTERED, NEAR_TIES, LARGE, TINY, FAR, RISING, SPREAD, BAD, BYTES, NUM_KINDS };
static const char *const kind_names[] = {"clustered", "near ties", "large", "tiny", "far",
                                         "rising",    "spread",    "bad",   "bytes"};

static float uniform(uint64_t seed, uint64_t i)
{
    return (float)((double)(bsw_hash2(seed, i) >> 11) * 0x1p-52 - 1.0);
}

// Number d of vector i; queries are vectors of their own and copies of rows.
static float number_of(int kind, int is_query, size_t i, size_t d, size_t dims)
{
    size_t row = is_query && i % 2 ? 17 * i % NUM_ROWS : i + (is_query ? 1000 : 0);
    float base = uniform(row % 5, d), own = uniform(100 + row, d);
    switch (kind) {
    case CLUSTERED: // copies, and copies in all but one number
        return d == row % dims && row % 3 == 0 ? base * 0.5f : base;
    case NEAR_TIES:
        return base * (1.0f + 1e-7f * (float)(bsw_hash2(row, d) % 4));
    case LARGE: // squared norms up to 1e37
        return (base + 1e-6f * own) * 3e18f / sqrtf((float)dims);
    case TINY: // squared distances below the float32 range
        return (base + 0.1f * own + (base < 0 ? -1.0f : 1.0f)) * 1e-18f;
    case FAR: // far from the origin
        return 1000.0f + 0.001f * own;
    case RISING: // every row is nearer to the queries than those before it
        return 1.0f + (is_query ? 0.0f : 1.0f / (float)(row + 1)) + 1e-4f * base;
    case SPREAD:
        return own * exp2f((float)(int)(bsw_hash2(7, row) % 40) - 20.0f);
    case BAD:
        if (!is_query && bsw_hash2(3, row) % 4 == 0) return d == 0 && row % 2 ? NAN : 0.0f;
        return own;
    default: { // no query of zeros
        uint64_t number = bsw_hash2(row % 20, d) % (row % 3 ? 256 : 3);
        return (float)(is_query && d == 0 && number == 0 ? 1 : number);
    }
    }
}

struct data {
    size_t dims, num_rows;
    int is_bytes;
    bsw_vectors *base, *queries;
    unsigned char *rows, *asked;
};

static const char *write_side(int kind, int is_query, struct data *data)
{
    static unsigned char file[8 + NUM_ROWS * MAX_DIMS * 4];
    const uint32_t head[2] = {is_query ? NUM_QUERIES : (uint32_t)data->num_rows,
                              (uint32_t)data->dims};
    memcpy(file, head, sizeof head);
    size_t count = head[0] * data->dims;
    for (size_t i = 0; i < count; i++) {
        float number = number_of(kind, is_query, i / data->dims, i % data->dims, data->dims);
        if (data->is_bytes)
            file[8 + i] = (unsigned char)number;
        else
            memcpy(file + 8 + 4 * i, &number, sizeof number);
    }
    char name[32];
    snprintf(name, sizeof name, "%s.%s", is_query ? "query" : "base",
             data->is_bytes ? "u8bin" : "fbin");
    return write_test_file(name, file, 8 + count * (data->is_bytes ? 1 : 4));
}

static void read_side(const bsw_vectors *vectors, size_t count, unsigned char **out)
{
    assert_int_equal(bsw_allocate(out, count, bsw_vectors_row_bytes(vectors), "rows", NULL), 0);
    assert_int_equal(bsw_vectors_read(vectors, 0, count, *out, NULL), BSW_OK);
}

static struct data make_data(int kind, size_t dims, size_t num_rows)
{
    struct data data = {.dims = dims, .num_rows = num_rows, .is_bytes = kind == BYTES};
    const char *base = write_side(kind, 0, &data), *queries = write_side(kind, 1, &data);
    assert_int_equal(bsw_vectors_open(base, BSW_ALL_ROWS, &data.base, NULL), BSW_OK);
    assert_int_equal(bsw_vectors_open(queries, BSW_ALL_ROWS, &data.queries, NULL), BSW_OK);
    read_side(data.base, num_rows, &data.rows);
    read_side(data.queries, NUM_QUERIES, &data.asked);
    return data;
}

static void free_data(struct data *data)
{
    bsw_vectors_close(&data->base);
    bsw_vectors_close(&data->queries);
    bsw_free(&data->rows);
    bsw_free(&data->asked);
}

// ---- the definition ----

struct neighbour {
    double key;
    uint32_t row;
};

static int compare_neighbours(const void *a, const void *b)
{
    const struct neighbour *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

static struct neighbour expected[NUM_QUERIES][NUM_ROWS];
static size_t num_good;

static void define(const struct data *data, enum bsw_metric metric)
{
    const struct bsw_refine_table *refine = &bsw_refine_reference;
    enum bsw_vector_type type = bsw_vectors_type(data->base);
    size_t row_bytes = bsw_vectors_row_bytes(data->base);
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        double query[MAX_DIMS], row[MAX_DIMS];
        refine->to_double(type, data->asked + q * row_bytes, data->dims, query);
        double norm = refine->squared_norm(query, data->dims);
        assert_int_equal(bsw_row_fault_of(norm, metric), BSW_ROW_GOOD);
        num_good = 0;
        for (size_t r = 0; r < data->num_rows; r++) {
            const unsigned char *raw = data->rows + r * row_bytes;
            refine->to_double(type, raw, data->dims, row);
            if (bsw_row_fault_of(refine->squared_norm(row, data->dims), metric) != BSW_ROW_GOOD)
                continue;
            double value = refine->value(metric, type, raw, query, norm, data->dims);
            expected[q][num_good++] =
                (struct neighbour){bsw_metric_key(metric, value), (uint32_t)r};
        }
        qsort(expected[q], num_good, sizeof expected[q][0], compare_neighbours);
    }
}

// ---- scans ----

struct way {
    enum bsw_cpu_level level;
    enum bsw_metric metric;
    size_t keep, block_rows;
    int num_threads;
};

static struct bsw_neighbour_needs needs_of(const struct data *data, struct way way)
{
    return (struct bsw_neighbour_needs){.metric = way.metric,
                                        .level = way.level,
                                        .base = data->base,
                                        .queries = data->queries,
                                        .num_rows = data->num_rows,
                                        .keep = way.keep,
                                        .block_rows = way.block_rows,
                                        .num_threads = way.num_threads,
                                        .drop_bad_rows = 1};
}

static int is_expected(const struct bsw_exact_best *list, size_t q, size_t want)
{
    if (list->count != want) return 0;
    for (size_t i = 0; i < want; i++) {
        if (list->rows[i] != expected[q][i].row ||
            bsw_exact_score_to_key(list->scores[i]) != expected[q][i].key)
            return 0;
    }
    return 1;
}

static void finish_and_compare(bsw_neighbour_scan *scan, const struct data *data, struct way way,
                               const char *name)
{
    size_t want = num_good < way.keep ? num_good : way.keep;
    while (scan->next_row < data->num_rows)
        assert_int_equal(bsw_neighbour_scan_next(scan, NULL), BSW_OK);
    assert_int_equal(scan->dropped_rows, data->num_rows - num_good);
    bsw_neighbour_scan_finish(scan, 0, NUM_QUERIES);
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        if (is_expected(&scan->lists[q], q, want)) continue;
        fail_msg("%s, %zu dims, %zu rows, %s, level %d, keep %zu, blocks of %zu: query %zu", name,
                 data->dims, data->num_rows, bsw_metric_name(way.metric), (int)way.level, way.keep,
                 way.block_rows, q);
    }
}

static void check_way(const struct data *data, struct way way, const char *name)
{
    const struct bsw_neighbour_needs needs = needs_of(data, way);
    bsw_neighbour_scan scan;
    assert_int_equal(bsw_neighbour_scan_open(&needs, &scan, NULL), BSW_OK);
    assert_int_equal(scan.tiles.is_whole, data->is_bytes && way.metric != BSW_METRIC_COSINE);
    finish_and_compare(&scan, data, way, name);
    bsw_neighbour_scan_close(&scan);
}

UNIT_TEST(all_data_give_the_neighbours_of_the_definition)
{
    static const size_t all_dims[] = {1, 33, MAX_DIMS}, blocks[] = {NUM_ROWS, 32, 7, 100, 1000};
    const size_t num_rows[] = {NUM_ROWS, NUM_ROWS, 40}; // the last with fewer than a long step
    unsigned turn = 0;
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        for (size_t d = 0; d < 3; d++) {
            struct data data = make_data(kind, all_dims[d], num_rows[d]);
            const size_t keeps[] = {1, 10, data.num_rows};
            for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
                define(&data, (enum bsw_metric)metric);
                for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
                    struct way way = {.level = (enum bsw_cpu_level)level,
                                      .metric = (enum bsw_metric)metric,
                                      .keep = keeps[turn % 3],
                                      .block_rows = blocks[turn % 5],
                                      .num_threads = 1 + (int)(turn % 2) * 2};
                    check_way(&data, way, kind_names[kind]);
                    turn++;
                }
            }
            free_data(&data);
        }
    }
}

// Ordinary rows are screened by codes, where the level has them; those of which codes tell nothing
// are given up, step after step.
UNIT_TEST(codes_are_used_where_they_tell_rows_apart)
{
    struct bsw_neighbour_needs needs = {.metric = BSW_METRIC_L2,
                                        .level = bsw_cpu_level_detect(),
                                        .num_rows = 3000,
                                        .keep = 5,
                                        .block_rows = 1000,
                                        .num_threads = 1};
    bsw_vectors *rows, *queries;
    bsw_neighbour_scan scan;
    assert_int_equal(bsw_vectors_open("synth:count=3000,dims=33", BSW_ALL_ROWS, &rows, NULL), 0);
    assert_int_equal(bsw_vectors_open("synth:count=9,dims=33,seed=2", BSW_ALL_ROWS, &queries, NULL),
                     0);
    needs.base = rows;
    needs.queries = queries;
    assert_int_equal(bsw_neighbour_scan_open(&needs, &scan, NULL), BSW_OK);
    for (int block = 0; block < 3; block++)
        assert_int_equal(bsw_neighbour_scan_next(&scan, NULL), BSW_OK);
    if (scan.tiles.is_coded) assert_int_equal(scan.tiles.pauses[0].last, 0);
    bsw_neighbour_scan_close(&scan);
    bsw_vectors_close(&rows);
    bsw_vectors_close(&queries);

    struct data data = make_data(FAR, 33, NUM_ROWS);
    needs = needs_of(&data, (struct way){needs.level, BSW_METRIC_L2, 1, 32, 1});
    assert_int_equal(bsw_neighbour_scan_open(&needs, &scan, NULL), BSW_OK);
    while (scan.next_row < NUM_ROWS) assert_int_equal(bsw_neighbour_scan_next(&scan, NULL), BSW_OK);
    if (scan.tiles.is_coded) assert_true(scan.tiles.pauses[0].last > 1);
    bsw_neighbour_scan_close(&scan);
    free_data(&data);
}

// Lists carried over: the limits are made anew.
UNIT_TEST(a_scan_goes_on_where_another_stopped)
{
    struct data data = make_data(NEAR_TIES, 33, NUM_ROWS);
    struct way way = {bsw_cpu_level_detect(), BSW_METRIC_L2, 10, 50, 1};
    const struct bsw_neighbour_needs needs = needs_of(&data, way);
    define(&data, way.metric);
    for (size_t blocks = 0; blocks <= NUM_ROWS / 50 + 1; blocks++) {
        bsw_neighbour_scan first, second;
        assert_int_equal(bsw_neighbour_scan_open(&needs, &first, NULL), BSW_OK);
        assert_int_equal(bsw_neighbour_scan_open(&needs, &second, NULL), BSW_OK);
        for (size_t i = 0; i < blocks; i++)
            assert_int_equal(bsw_neighbour_scan_next(&first, NULL), BSW_OK);
        for (size_t q = 0; q < NUM_QUERIES; q++) {
            size_t count = first.lists[q].count;
            second.lists[q].count = count;
            for (size_t i = 0; i < count; i++) {
                second.lists[q].scores[i] = first.lists[q].scores[i];
                second.lists[q].rows[i] = first.lists[q].rows[i];
            }
        }
        bsw_neighbour_scan_restore(&second, first.next_row, first.dropped_rows);
        finish_and_compare(&second, &data, way, "restored");
        bsw_neighbour_scan_close(&first);
        bsw_neighbour_scan_close(&second);
    }
    free_data(&data);
}

UNIT_TEST(what_does_not_fit_or_is_bad_is_refused)
{
    struct data data = make_data(BAD, 33, NUM_ROWS);
    struct way way = {BSW_CPU_REFERENCE, BSW_METRIC_L2, 10, 50, 1};
    struct bsw_neighbour_needs needs = needs_of(&data, way);
    bsw_neighbour_scan scan;
    struct bsw_error err = {0};
    needs.most_bytes = 10000;
    assert_int_equal(bsw_neighbour_scan_open(&needs, &scan, &err), BSW_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(err.message, "--query-rows"));
    needs.most_bytes = 0;
    needs.drop_bad_rows = 0;
    size_t first_bad = 0; // under l2 zeros are good
    while (!isnan(number_of(BAD, 0, first_bad, 0, 33))) first_bad++;
    char text[32];
    snprintf(text, sizeof text, "row %zu has a NaN", first_bad);
    assert_int_equal(bsw_neighbour_scan_open(&needs, &scan, NULL), BSW_OK);
    enum bsw_status status = BSW_OK;
    while (status == BSW_OK && scan.next_row < NUM_ROWS)
        status = bsw_neighbour_scan_next(&scan, &err);
    assert_int_equal(status, BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, text));
    bsw_neighbour_scan_close(&scan);
    free_data(&data);
}

UNIT_TEST(blocks_hold_a_range_and_no_more)
{
    assert_int_equal(bsw_neighbour_block_rows(512, 1 << 20), 2048);
    assert_int_equal(bsw_neighbour_block_rows(512, 96), 96);
    assert_int_equal(bsw_neighbour_block_rows(512, 97), 128);
    assert_int_equal(bsw_neighbour_block_rows(4 * 65536, 1 << 20), 32);
    assert_int_equal(bsw_neighbour_block_rows(1, UINT32_MAX), 65536);
}

// ---- the margin ----

// Whether codes let a row through to a query whose list has this limit.
static int passes_codes(const struct bsw_neighbour_tiles *tiles, const struct data *data, size_t q,
                        uint32_t row, uint64_t limit)
{
    struct bsw_exact_best lists[NUM_QUERIES] = {0};
    struct bsw_matrix_output outputs[BSW_NEIGHBOUR_TILE_QUERIES];
    const struct bsw_neighbour_step step = {.first_query = q,
                                            .num_queries = 1,
                                            .bundle = row / BSW_BUNDLE_ROWS,
                                            .num_bundles = 1,
                                            .raw = data->rows,
                                            .num_rows = data->num_rows,
                                            .masks = tiles->masks};
    lists[q].limit = limit;
    outputs[0].count = SIZE_MAX;
    tiles->pauses[0].left = 0;
    bsw_neighbour_codes_scan(tiles, 0, &step, lists, outputs);
    if (outputs[0].count == SIZE_MAX) return 1; // left to float32
    for (size_t i = 0; i < outputs[0].count; i++)
        if (bsw_candidate_row(outputs[0].items[i]) == row % BSW_BUNDLE_ROWS) return 1;
    return 0;
}

// In order as define has left them, each at the highest limit that it reaches.
static void check_codes(const struct data *data, enum bsw_metric metric, const char *name)
{
    enum bsw_cpu_level level = bsw_cpu_level_detect();
    if (level == BSW_CPU_AVX2) level = BSW_CPU_REFERENCE; // has codes
    const struct bsw_neighbour_needs needs =
        needs_of(data, (struct way){level, metric, 1, data->num_rows, 1});
    size_t row_bytes = bsw_vectors_row_bytes(data->base);
    enum bsw_row_fault faults[BSW_BUNDLE_ROWS];
    bsw_neighbour_scan scan;
    assert_int_equal(bsw_neighbour_scan_open(&needs, &scan, NULL), BSW_OK);
    assert_true(scan.tiles.is_coded);
    bsw_neighbour_tiles_begin(&scan.tiles, data->rows, data->num_rows);
    for (size_t first = 0; first < data->num_rows; first += BSW_BUNDLE_ROWS) {
        size_t left = data->num_rows - first;
        bsw_neighbour_tiles_pack(&scan.tiles, 0, first / BSW_BUNDLE_ROWS,
                                 data->rows + first * row_bytes,
                                 left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS, faults);
    }
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        for (size_t i = 0; i < num_good; i++) {
            uint32_t row = expected[q][i].row;
            if (!passes_codes(&scan.tiles, data, q, row, bsw_exact_score(expected[q][i].key)))
                fail_msg("%s, %s: query %zu, row %u", name, bsw_metric_name(metric), q, row);
        }
    }
    bsw_neighbour_scan_close(&scan);
}

UNIT_TEST(codes_rule_out_no_row_at_its_own_value)
{
    for (int kind = 0; kind < BYTES; kind++) {
        struct data data = make_data(kind, 33, NUM_ROWS);
        for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
            define(&data, (enum bsw_metric)metric);
            check_codes(&data, (enum bsw_metric)metric, kind_names[kind]);
        }
        free_data(&data);
    }
}

// Screened numbers of ordinary data rule out nearly all rows, or all of the above proved nothing.
UNIT_TEST(a_screen_lets_few_rows_through)
{
    for (int m = 0; m < BSW_METRIC_NUM; m++) {
        enum bsw_metric metric = (enum bsw_metric)m;
        // A row whose value equals the limit passes, one a ten-thousandth worse does not.
        for (int worse = 0; worse < 2; worse++) {
            float row[32], query[BSW_SCREEN_QUERIES * 32] = {0}, packed[32 * 32];
            double squares[2] = {0}, sum = 0;
            for (size_t d = 0; d < 32; d++) {
                double x = row[d] = uniform(1, d), q = uniform(2, d);
                squares[0] += x * x;
                squares[1] += q * q;
                sum += m == BSW_METRIC_L2 ? (x - q) * (x - q) : x * q;
            }
            for (size_t d = 0; d < 32; d++)
                query[d * BSW_SCREEN_QUERIES] =
                    (float)(uniform(2, d) * bsw_screen_query_scale(metric, squares[1]));
            if (m == BSW_METRIC_COSINE) sum /= sqrt(squares[0]) * sqrt(squares[1]);
            double key = bsw_metric_key(metric, sum);
            float scale = bsw_screen_row_scale(metric, squares[0]);
            float bias[32] = {bsw_screen_row_bias(metric, squares[0], bsw_screen_share(32), 32)};
            float limit =
                bsw_screen_limit(metric, squares[1], bsw_screen_share(32),
                                 bsw_exact_score(worse ? key + 1e-4 * (1.0 + fabs(key)) : key));
            uint32_t mask = 1, place[32];
            struct bsw_screen_output output = {place, 0};
            bsw_screen_reference.pack(row, &scale, 1, 32, packed);
            bsw_screen_reference.scan(&(struct bsw_screen_tile){packed, bias, &mask, 1, 32},
                                      &(struct bsw_screen_queries){query, &limit, 1}, &output);
            assert_int_equal(output.count, !worse);
        }
    }
}

enum { LOSSY_DIMS = 1000 };

// Every product but the first is a little less than half of the sum's last place, and is lost.
static void make_lossy(enum bsw_metric metric, float row[LOSSY_DIMS], float query[LOSSY_DIMS])
{
    for (size_t d = 0; d < LOSSY_DIMS; d++) {
        row[d] = query[d] = 0x1p-12f * (metric == BSW_METRIC_COSINE ? 0.7f : 0.999f);
    }
    row[0] = metric == BSW_METRIC_IP ? 1.001f : 1.0f;
    query[0] = 1.0f;
}

// Whether the row passes at its own key with `share` in its margin.
static int passes_screen(enum bsw_metric metric, const float *row, const float *query, double share)
{
    static float packed[32 * LOSSY_DIMS], screened[BSW_SCREEN_QUERIES * LOSSY_DIMS];
    static double numbers[2][LOSSY_DIMS];
    const struct bsw_refine_table *refine = &bsw_refine_reference;
    refine->to_double(BSW_VECTOR_FLOAT32, row, LOSSY_DIMS, numbers[0]);
    refine->to_double(BSW_VECTOR_FLOAT32, query, LOSSY_DIMS, numbers[1]);
    double squares = refine->squared_norm(numbers[0], LOSSY_DIMS);
    double query_squares = refine->squared_norm(numbers[1], LOSSY_DIMS);
    double value =
        refine->value(metric, BSW_VECTOR_FLOAT32, row, numbers[1], query_squares, LOSSY_DIMS);
    double query_scale = bsw_screen_query_scale(metric, query_squares);
    for (size_t d = 0; d < LOSSY_DIMS; d++)
        screened[d * BSW_SCREEN_QUERIES] = (float)(numbers[1][d] * query_scale);
    float scale = bsw_screen_row_scale(metric, squares);
    float bias[32] = {bsw_screen_row_bias(metric, squares, share, LOSSY_DIMS)};
    float limit = bsw_screen_limit(metric, query_squares, share,
                                   bsw_exact_score(bsw_metric_key(metric, value)));
    uint32_t mask = 1, place[32];
    struct bsw_screen_output output = {place, 0};
    bsw_screen_reference.pack(row, &scale, 1, LOSSY_DIMS, packed);
    bsw_screen_reference.scan(&(struct bsw_screen_tile){packed, bias, &mask, 1, LOSSY_DIMS},
                              &(struct bsw_screen_queries){screened, &limit, 1}, &output);
    return output.count > 0;
}

UNIT_TEST(roundings_that_all_go_one_way_lose_no_row)
{
    static float row[LOSSY_DIMS], query[LOSSY_DIMS];
    for (int m = 0; m < BSW_METRIC_NUM; m++) {
        enum bsw_metric metric = (enum bsw_metric)m;
        double share = bsw_screen_share(LOSSY_DIMS);
        make_lossy(metric, row, query);
        assert_true(passes_screen(metric, row, query, share));
        // Cosines are below 1, where a place is half as large.
        double too_small = metric == BSW_METRIC_COSINE ? 0.4 : 0.9;
        assert_false(passes_screen(metric, row, query, too_small * share));
    }
}

// What a code's error holds already, 2^-14 of a step for each number, is as much as the four
// roundings can take, so no row shows this constant: it has to be what the proof adds up to.
UNIT_TEST(the_share_of_codes_is_that_of_four_roundings)
{
    const double roundings = 4, lengths = 4, u = 0x1p-24; // |x^||q^| <= 4 |x||q|
    assert_true(BSW_SCREEN_CODE_SHARE >= 1.01 * roundings * lengths * u);
    assert_true(bsw_screen_code_share(BSW_METRIC_IP, 0.0, 0.0, 1.0) == BSW_SCREEN_CODE_SHARE);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
