// SPDX-License-Identifier: Apache-2.0
// The two scans are one: with limit 0 the scores of matrix_scan are plane_scan's dots, and with any
// limit its candidates are those of plane_scan followed by a filter of select; at every level.
// A staged scan and whole keys are held against plain loops over the dimensions.
#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/select/select.h"
#include "unit_test.h"

#define MAX_PADDED_DIMS 384
#define NUM_BUNDLES     3
#define NUM_ROWS        (NUM_BUNDLES * BSW_BUNDLE_ROWS)
#define NUM_QUERIES     14
#define FIRST_ROW       7000

#define MAX_PLANE_WORDS (NUM_BUNDLES * BSW_MAX_CODE_BITS * MAX_PADDED_DIMS)
#define MAX_QUERY_WORDS (BSW_MAX_QUERY_BITS * MAX_PADDED_DIMS / 32)

// Codes and queries in both forms.
struct scan_data {
    struct bsw_code_layout layout;
    unsigned query_bits;
    _Alignas(64) uint32_t planes[MAX_PLANE_WORDS]; // segment after segment
    const uint32_t *segment_planes[BSW_MAX_SEGMENTS];
    uint32_t query_words[NUM_QUERIES][MAX_QUERY_WORDS];
    _Alignas(64) uint8_t bytes[NUM_ROWS * MAX_PADDED_DIMS];
    _Alignas(64) int8_t components[NUM_QUERIES * MAX_PADDED_DIMS];
    int32_t constants[NUM_QUERIES];
    float query_scales[NUM_QUERIES];
    uint32_t masks[NUM_BUNDLES];
    _Alignas(64) uint16_t scales[NUM_ROWS];
    _Alignas(64) float biases[NUM_ROWS];
    _Alignas(64) uint16_t tails[NUM_ROWS];
    _Alignas(64) int32_t offsets[NUM_ROWS];
    int32_t stage_constants[NUM_QUERIES];
    float reaches[NUM_QUERIES], slacks[NUM_QUERIES];
};

static struct scan_data data;
static uint64_t items[NUM_QUERIES][NUM_ROWS], expected[NUM_ROWS];
static struct bsw_matrix_output outputs[NUM_QUERIES];
static _Alignas(64) int32_t dots[NUM_ROWS];

// ---- input ----

// Random plane words [num_planes][words][lanes] with padding 0; returns how many.
static size_t fill_planes(uint64_t seed, const struct bsw_segment *segment, size_t num_planes,
                          size_t lanes, uint32_t *planes)
{
    size_t num = num_planes * segment->words * lanes;
    for (size_t at = 0; at < num; at++) {
        int is_last = at / lanes % segment->words == segment->words - 1;
        uint32_t valid =
            is_last && segment->dims % 32 ? (1u << segment->dims % 32) - 1 : UINT32_MAX;
        planes[at] = (uint32_t)bsw_hash2(seed, at) & valid;
    }
    return num;
}

static void make_rows(uint64_t seed)
{
    for (size_t r = 0; r < NUM_ROWS; r++) {
        data.scales[r] = (uint16_t)(bsw_hash2(seed + 1, r) % 0x4000);
        data.biases[r] = (float)(int32_t)bsw_hash2(seed + 2, r) * 0x1p-16f;
    }
    for (size_t b = 0; b < NUM_BUNDLES; b++)
        data.masks[b] = (uint32_t)(bsw_hash2(seed + 3, b) | bsw_hash2(seed + 4, b));
}

static void make_data(const struct bsw_matrix_scan_table *table, const char *layout, uint32_t dims,
                      unsigned query_bits)
{
    uint64_t seed = bsw_hash2(dims, query_bits);
    uint32_t *planes = data.planes;
    data.query_bits = query_bits;
    assert_int_equal(bsw_code_layout_parse(layout, dims, &data.layout, NULL), BSW_OK);
    assert_true(data.layout.padded_dims <= MAX_PADDED_DIMS);
    for (uint32_t s = 0; s < data.layout.num_segments; s++) {
        const struct bsw_segment *segment = &data.layout.segments[s];
        data.segment_planes[s] = planes;
        planes += fill_planes(seed + s, segment, NUM_BUNDLES * segment->bits, 32, planes);
    }
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        uint32_t *words = data.query_words[q];
        for (uint32_t s = 0; s < data.layout.num_segments; s++)
            words += fill_planes(seed + 1000 + q * 100 + s, &data.layout.segments[s], query_bits, 1,
                                 words);
        table->unpack_query(&data.layout, data.query_words[q], query_bits,
                            data.components + q * data.layout.padded_dims, &data.constants[q]);
        data.query_scales[q] = 0.01f * (float)(q + 1);
    }
    table->unpack(&data.layout, data.segment_planes, NUM_BUNDLES, data.bytes);
    make_rows(seed);
}

// ---- scanning ----

static struct bsw_matrix_tile make_tile(int is_affine)
{
    return (struct bsw_matrix_tile){.bytes = data.bytes,
                                    .num_bundles = NUM_BUNDLES,
                                    .padded_dims = data.layout.padded_dims,
                                    .first_row = FIRST_ROW,
                                    .masks = data.masks,
                                    .scales = is_affine ? data.scales : NULL,
                                    .biases = is_affine ? data.biases : NULL,
                                    .tails = is_affine ? data.tails : NULL};
}

static struct bsw_matrix_queries make_queries(int is_affine)
{
    return (struct bsw_matrix_queries){.num_queries = NUM_QUERIES,
                                       .components = data.components,
                                       .constants = data.constants,
                                       .scales = is_affine ? data.query_scales : NULL};
}

static void reset_outputs(uint32_t limit)
{
    for (size_t q = 0; q < NUM_QUERIES; q++)
        outputs[q] = (struct bsw_matrix_output){.items = items[q], .limit = limit};
}

static void scan(const struct bsw_matrix_scan_table *table, int is_affine, uint32_t limit)
{
    const struct bsw_matrix_tile tile = make_tile(is_affine);
    const struct bsw_matrix_queries queries = make_queries(is_affine);
    reset_outputs(limit);
    table->scan(&tile, &queries, outputs);
}

static void plane_dots(size_t query)
{
    const uint32_t *words = data.query_words[query];
    for (uint32_t s = 0; s < data.layout.num_segments; s++) {
        const struct bsw_segment *segment = &data.layout.segments[s];
        bsw_plane_scan_table_get(BSW_CPU_REFERENCE)
            ->dots(segment, bsw_all_words(segment), data.segment_planes[s], NUM_BUNDLES, words,
                   data.query_bits, s > 0, dots);
        words += segment->words * data.query_bits;
    }
}

// With limit 0 and integer keys every row that its mask lets through is there, with its dot.
static void check_dots(const struct bsw_matrix_scan_table *table)
{
    scan(table, 0, 0);
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        size_t count = 0;
        plane_dots(q);
        for (size_t row = 0; row < NUM_ROWS; row++) {
            if (!(data.masks[row / 32] >> row % 32 & 1)) continue;
            assert_true(count < outputs[q].count);
            uint64_t item = items[q][count++];
            assert_int_equal(bsw_candidate_row(item), FIRST_ROW + row);
            assert_int_equal(bsw_score_to_integer(bsw_candidate_score(item)), dots[row]);
        }
        assert_int_equal(outputs[q].count, count);
    }
}

static void check_filters(const struct bsw_matrix_scan_table *table, int is_affine, uint32_t limit)
{
    const struct bsw_select_table *select = bsw_select_table_get(BSW_CPU_REFERENCE);
    scan(table, is_affine, limit);
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        plane_dots(q);
        size_t count =
            is_affine
                ? select->filter_affine(dots, data.scales, data.biases, data.query_scales[q],
                                        data.masks, NUM_BUNDLES, FIRST_ROW, limit, expected)
                : select->filter_integer(dots, data.masks, NUM_BUNDLES, FIRST_ROW, limit, expected);
        assert_int_equal(outputs[q].count, count);
        if (count > 0) assert_memory_equal(items[q], expected, count * sizeof *expected);
    }
}

// A score in the middle of those of query 5, so that queries have many, few and no candidates.
static uint32_t some_limit(const struct bsw_matrix_scan_table *table, int is_affine)
{
    scan(table, is_affine, 0);
    return outputs[5].count > 0 ? bsw_candidate_score(items[5][outputs[5].count / 2]) : 0;
}

static void check_layout(const struct bsw_matrix_scan_table *table, const char *layout,
                         uint32_t dims, unsigned query_bits)
{
    make_data(table, layout, dims, query_bits);
    check_dots(table);
    for (int is_affine = 0; is_affine < 2; is_affine++) {
        uint32_t limit = some_limit(table, is_affine);
        check_filters(table, is_affine, 0);
        check_filters(table, is_affine, limit);
        check_filters(table, is_affine, limit + 1);
        check_filters(table, is_affine, UINT32_MAX);
    }
}

static void check_level(enum bsw_cpu_level level)
{
    static const struct {
        const char *text;
        uint32_t dims;
    } ragged[] = {{"32x4,32x2,64x1", 128}, {"33x8,31x1,1x5", 65},     {"1x1,1x8", 2},
                  {"100x3,29x7", 129},     {"31x1,2x2,65x8,1x4", 99}, {"300x2,33x6", 333}};
    const struct bsw_matrix_scan_table *table = bsw_matrix_scan_table_get(level);
    for (unsigned query_bits = 1; query_bits <= BSW_MAX_QUERY_BITS; query_bits++) {
        for (unsigned bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
            const char text[] = {'4', '5', 'x', (char)('0' + bits), '\0'};
            check_layout(table, text, 45, query_bits);
        }
        for (size_t i = 0; i < sizeof ragged / sizeof ragged[0]; i++)
            check_layout(table, ragged[i].text, ragged[i].dims, query_bits);
    }
}

UNIT_TEST(test_every_level_agrees_with_planes)
{
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level))
        check_level((enum bsw_cpu_level)level);
}

// Row 18, dimension 6 of a layout with 2 bits: half 1, group 1, row 2 of the half, byte 2.
UNIT_TEST(test_a_code_lies_where_the_header_says)
{
    struct bsw_code_layout layout;
    static _Alignas(64) uint32_t planes[2 * 32];
    static _Alignas(64) uint8_t bytes[32 * 32];
    const uint32_t *segments[] = {planes};
    assert_int_equal(bsw_code_layout_parse("10x2", 10, &layout, NULL), BSW_OK);
    planes[18] = 1u << 6;
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        memset(bytes, 0xff, sizeof bytes);
        bsw_matrix_scan_table_get((enum bsw_cpu_level)level)->unpack(&layout, segments, 1, bytes);
        for (size_t i = 0; i < sizeof bytes; i++)
            assert_int_equal(bytes[i], i == ((1 * 8 + 1) * 16 + 2) * 4 + 2 ? 2 : 0);
    }
}

UNIT_TEST(test_a_query_becomes_odd_integers)
{
    struct bsw_code_layout layout;
    const uint32_t words[] = {1, 3, 1, 0}; // u = 3, 1 in the first segment, 2 in the second
    assert_int_equal(bsw_code_layout_parse("2x1,1x3", 3, &layout, NULL), BSW_OK);
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        _Alignas(64) int8_t components[64];
        int32_t constant;
        memset(components, 0x55, sizeof components);
        bsw_matrix_scan_table_get((enum bsw_cpu_level)level)
            ->unpack_query(&layout, words, 2, components, &constant);
        for (size_t i = 0; i < sizeof components; i++)
            assert_int_equal(components[i], i == 0 ? -3 : i == 1 ? 1 : i == 32 ? -1 : 0);
        assert_int_equal(constant, 1 * (-3 + 1) + 7 * -1);
    }
}

// ---- stages ----

// The odd integer of a row in dimension i of a segment, bit by bit.
static int row_integer(uint32_t segment, size_t row, uint32_t i)
{
    const struct bsw_segment *of = &data.layout.segments[segment];
    const uint32_t *planes =
        data.segment_planes[segment] + row / 32 * of->bits * of->words * 32 + row % 32;
    int u = 0;
    if (i >= of->dims) return 0;
    for (uint32_t p = 0; p < of->bits; p++)
        u = 2 * u + (int)(planes[(p * of->words + i / 32) * 32] >> i % 32 & 1);
    return (1 << of->bits) - 1 - 2 * u;
}

// Sums over the padded dimensions [first, last): of row times query, of row squared or of query
// squared.
enum sum_kind { DOT, ROW_SQUARES, QUERY_SQUARES };

static int plain_sum(enum sum_kind kind, size_t row, size_t query, uint32_t first, uint32_t last)
{
    int sum = 0;
    for (uint32_t s = 0; s < data.layout.num_segments; s++) {
        const struct bsw_segment *segment = &data.layout.segments[s];
        for (uint32_t i = 0; i < segment->dims; i++) {
            uint32_t dim = segment->padded_dim + i;
            if (dim < first || dim >= last) continue;
            int d = row_integer(s, row, i),
                q = data.components[query * data.layout.padded_dims + dim];
            sum += kind == DOT ? d * q : kind == ROW_SQUARES ? d * d : q * q;
        }
    }
    return sum;
}

// Constants of a stage; tails and reaches by Cauchy-Schwarz over the rest, times share.
static struct bsw_matrix_stage make_stage(uint32_t dims, float share)
{
    uint32_t padded_dims = data.layout.padded_dims;
    for (size_t row = 0; row < NUM_ROWS; row++) {
        double norm = sqrt(plain_sum(ROW_SQUARES, row, 0, dims, padded_dims));
        data.tails[row] = bsw_half_up((double)bsw_half_to_float(data.scales[row]) * norm);
    }
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        double norm = sqrt(plain_sum(QUERY_SQUARES, 0, q, dims, padded_dims));
        data.reaches[q] = share * data.query_scales[q] * (float)norm;
        data.slacks[q] = share * 0.5f;
        data.stage_constants[q] = 0;
        for (uint32_t s = 0; s < data.layout.num_segments; s++) {
            const struct bsw_segment *segment = &data.layout.segments[s];
            for (uint32_t dim = segment->padded_dim;
                 dim < segment->padded_dim + 32 * segment->words && dim < dims; dim++)
                data.stage_constants[q] +=
                    ((1 << segment->bits) - 1) * data.components[q * padded_dims + dim];
        }
    }
    return (struct bsw_matrix_stage){.dims = dims,
                                     .constants = data.stage_constants,
                                     .reaches = data.reaches,
                                     .slacks = data.slacks};
}

static float key_of(size_t row, size_t query, int dot, float addend)
{
    float scaled = bsw_half_to_float(data.scales[row]) * (float)dot;
    return fmaf(data.query_scales[query], scaled, addend);
}

// What goes on after the stage, and what of it reaches the limit, into expected.
static size_t plain_staged(const struct bsw_matrix_stage *stage, size_t query, uint32_t limit,
                           struct bsw_stage_counts *counts)
{
    float least = limit == 0 ? -INFINITY : bsw_score_to_float(limit);
    size_t count = 0, last_half = SIZE_MAX;
    for (size_t row = 0; row < NUM_ROWS; row++) {
        if (!(data.masks[row / 32] >> row % 32 & 1)) continue;
        float most =
            fmaf(stage->reaches[query], bsw_half_to_float(data.tails[row]), data.biases[row]);
        float bound = key_of(row, query, plain_sum(DOT, row, query, 0, stage->dims), most);
        if (!(bound >= least - stage->slacks[query])) continue;
        counts->rows++;
        counts->halves += row / 16 != last_half;
        last_half = row / 16;
        int dot = plain_sum(DOT, row, query, 0, data.layout.padded_dims);
        uint32_t score = bsw_score_from_float(key_of(row, query, dot, data.biases[row]) + 0.0f);
        if (score >= limit)
            expected[count++] = bsw_candidate_pack(score, FIRST_ROW + (uint32_t)row);
    }
    return count;
}

static void check_staged(const struct bsw_matrix_scan_table *table,
                         const struct bsw_matrix_stage *stage, uint32_t limit)
{
    const struct bsw_matrix_tile tile = make_tile(1);
    const struct bsw_matrix_queries queries = make_queries(1);
    struct bsw_stage_counts plain = {0, 0}, counts = {0, 0};
    reset_outputs(limit);
    table->scan_staged(&tile, stage, &queries, outputs, &counts);
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        size_t count = plain_staged(stage, q, limit, &plain);
        assert_int_equal(outputs[q].count, count);
        if (count > 0) assert_memory_equal(items[q], expected, count * sizeof *expected);
    }
    assert_int_equal(counts.rows, plain.rows);
    assert_int_equal(counts.halves, plain.halves);
}

// With safe reaches nothing is lost, and something is left out: returns how many rows.
static uint64_t check_safe_stage(const struct bsw_matrix_scan_table *table,
                                 const struct bsw_matrix_stage *stage, uint32_t limit)
{
    static uint64_t kept[NUM_QUERIES][NUM_ROWS];
    const struct bsw_matrix_tile tile = make_tile(1);
    const struct bsw_matrix_queries queries = make_queries(1);
    struct bsw_stage_counts counts = {0, 0};
    size_t num_kept[NUM_QUERIES], valid = 0;
    scan(table, 1, limit);
    memcpy(kept, items, sizeof kept);
    for (size_t q = 0; q < NUM_QUERIES; q++) num_kept[q] = outputs[q].count;
    reset_outputs(limit);
    table->scan_staged(&tile, stage, &queries, outputs, &counts);
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        assert_int_equal(outputs[q].count, num_kept[q]);
        if (num_kept[q] > 0)
            assert_memory_equal(items[q], kept[q], num_kept[q] * sizeof kept[0][0]);
    }
    for (size_t b = 0; b < NUM_BUNDLES; b++) valid += (size_t)__builtin_popcount(data.masks[b]);
    return NUM_QUERIES * valid - counts.rows;
}

// Also a stage with odd constants, one that is longer than short sums, and rows that are.
UNIT_TEST(test_a_stage_leaves_out_what_cannot_reach_the_limit)
{
    static const struct {
        const char *text;
        uint32_t dims, stage_dims;
    } cases[] = {{"32x8,32x1", 64, 32},       {"32x6,32x4,64x1", 128, 64},
                 {"33x8,31x3,36x1", 100, 64}, {"33x7,31x2,36x1", 100, 32},
                 {"96x5,224x1", 320, 96},     {"288x4,32x1", 320, 288}};
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        const struct bsw_matrix_scan_table *table =
            bsw_matrix_scan_table_get((enum bsw_cpu_level)level);
        uint64_t left_out = 0;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            make_data(table, cases[i].text, cases[i].dims, 6);
            uint32_t middle = some_limit(table, 1);
            uint32_t high = bsw_score_from_float(2 * fabsf(bsw_score_to_float(middle)) + 1000.0f);
            const uint32_t limits[] = {0, middle, middle + 1, high, UINT32_MAX};
            for (size_t k = 0; k < sizeof limits / sizeof limits[0]; k++) {
                struct bsw_matrix_stage stage = make_stage(cases[i].stage_dims, 0.0f);
                check_staged(table, &stage, limits[k]);
                stage = make_stage(cases[i].stage_dims, 1.0f);
                check_staged(table, &stage, limits[k]);
                uint64_t left = check_safe_stage(table, &stage, limits[k]);
                if (limits[k] == 0) assert_int_equal(left, 0);
                if (k > 0 && k < 4) left_out += left;
            }
        }
        assert_true(left_out > 0);
    }
}

// ---- whole keys ----

// The largest product sum: what offsets and constants leave room for.
static int32_t largest_product(int factor)
{
    return factor * (int32_t)data.layout.padded_dims * 255 * 128;
}

// Any bytes, any components; query 3 and 4 have the ends, 5 and 6 nothing but their constants,
// which take the first rows to the ends of 32 bits.
static void make_whole_data(uint32_t padded_dims, int factor)
{
    data.layout = (struct bsw_code_layout){.padded_dims = padded_dims};
    const int32_t room = largest_product(factor);
    for (size_t i = 0; i < NUM_ROWS * padded_dims; i++)
        data.bytes[i] = (uint8_t)(i / 4 % 16 == 0 ? 255 : bsw_hash2(1, i));
    for (size_t i = 0; i < NUM_QUERIES * padded_dims; i++) {
        static const int fixed[] = {-128, 127, 0, 0};
        size_t q = i / padded_dims;
        data.components[i] = (int8_t)(q >= 3 && q < 7 ? (uint64_t)fixed[q - 3] : bsw_hash2(2, i));
    }
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        data.constants[q] = (int32_t)bsw_hash2(3, q) % (room / 4);
        if (q == 3 || q == 4) data.constants[q] = 0;
        if (q == 5 || q == 6) data.constants[q] = q == 5 ? room : -room;
    }
    for (size_t r = 0; r < NUM_ROWS; r++) {
        data.offsets[r] = (int32_t)bsw_hash2(4, r) / 4;
        if (r < 12) data.offsets[r] = INT32_MAX - room - 16 * (int32_t)r;
        if (r >= 12 && r < 24) data.offsets[r] = INT32_MIN + room + 16 * (int32_t)(r - 12);
    }
    for (size_t b = 0; b < NUM_BUNDLES; b++) data.masks[b] = b == 1 ? 0x7ffffff6u : UINT32_MAX;
}

static int64_t plain_whole(size_t row, size_t query, int factor)
{
    uint32_t dims = data.layout.padded_dims;
    int64_t sum = 0;
    for (uint32_t i = 0; i < dims; i++) {
        size_t place = ((row / 16 * (dims / 4) + i / 4) * 16 + row % 16) * 4 + i % 4;
        sum += data.bytes[place] * data.components[query * dims + i];
    }
    return factor * sum + data.offsets[row] + data.constants[query];
}

static void check_whole(const struct bsw_matrix_scan_table *table, int factor, uint32_t limit)
{
    struct bsw_matrix_tile tile = make_tile(0);
    struct bsw_matrix_queries queries = make_queries(0);
    tile.offsets = data.offsets;
    queries.factor = factor;
    reset_outputs(limit);
    table->scan(&tile, &queries, outputs);
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        size_t count = 0;
        for (size_t row = 0; row < NUM_ROWS; row++) {
            int64_t total = plain_whole(row, q, factor);
            assert_true(total >= INT32_MIN && total <= INT32_MAX);
            uint32_t score = bsw_score_from_integer((int32_t)total);
            if (data.masks[row / 32] >> row % 32 & 1 && score >= limit)
                expected[count++] = bsw_candidate_pack(score, FIRST_ROW + (uint32_t)row);
        }
        assert_int_equal(outputs[q].count, count);
        if (count > 0) assert_memory_equal(items[q], expected, count * sizeof *expected);
    }
}

UNIT_TEST(test_whole_keys_are_integers_to_the_ends_of_32_bits)
{
    static const int32_t keys[] = {
        INT32_MIN, INT32_MIN + 1, -12345,        -1,       0, 1, 0x1234567,
        1 << 24,   (1 << 24) + 1, INT32_MAX - 1, INT32_MAX};
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        const struct bsw_matrix_scan_table *table =
            bsw_matrix_scan_table_get((enum bsw_cpu_level)level);
        for (int factor = 1; factor <= 2; factor++) {
            for (uint32_t dims = 32; dims <= 160; dims += 64) {
                make_whole_data(dims, factor);
                assert_int_equal(plain_whole(0, 5, factor), INT32_MAX);
                assert_int_equal(plain_whole(12, 6, factor), INT32_MIN);
                check_whole(table, factor, 0);
                check_whole(table, factor, UINT32_MAX);
                for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                    check_whole(table, factor, bsw_score_from_integer(keys[i]) - 1);
                    check_whole(table, factor, bsw_score_from_integer(keys[i]));
                    check_whole(table, factor, bsw_score_from_integer(keys[i]) + 1);
                }
            }
        }
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
