// The two scans are one: with limit 0 the scores of matrix_scan are plane_scan's dots, and with any
// limit its candidates are those of plane_scan followed by a filter of select; at every level.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/integer_hash.h"
#include "common/result_order.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/select/select.h"

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

static void scan(const struct bsw_matrix_scan_table *table, int is_affine, uint32_t limit)
{
    const struct bsw_matrix_tile tile = {.bytes = data.bytes,
                                         .num_bundles = NUM_BUNDLES,
                                         .padded_dims = data.layout.padded_dims,
                                         .first_row = FIRST_ROW,
                                         .masks = data.masks,
                                         .scales = is_affine ? data.scales : NULL,
                                         .biases = is_affine ? data.biases : NULL};
    const struct bsw_matrix_queries queries = {.num_queries = NUM_QUERIES,
                                               .components = data.components,
                                               .constants = data.constants,
                                               .scales = is_affine ? data.query_scales : NULL};
    for (size_t q = 0; q < NUM_QUERIES; q++)
        outputs[q] = (struct bsw_matrix_output){.items = items[q], .limit = limit};
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
    if (level > bsw_cpu_level_detect()) skip();
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

static void test_reference_agrees_with_planes(void **state)
{
    (void)state;
    check_level(BSW_CPU_REFERENCE);
}

static void test_avx2_agrees_with_planes(void **state)
{
    (void)state;
    check_level(BSW_CPU_AVX2);
}

static void test_avx512_agrees_with_planes(void **state)
{
    (void)state;
    check_level(BSW_CPU_AVX512);
}

// Row 18, dimension 6 of a layout with 2 bits: half 1, group 1, row 2 of the half, byte 2.
static void test_a_code_lies_where_the_header_says(void **state)
{
    (void)state;
    struct bsw_code_layout layout;
    static _Alignas(64) uint32_t planes[2 * 32];
    static _Alignas(64) uint8_t bytes[32 * 32];
    const uint32_t *segments[] = {planes};
    assert_int_equal(bsw_code_layout_parse("10x2", 10, &layout, NULL), BSW_OK);
    planes[18] = 1u << 6;
    for (int level = BSW_CPU_REFERENCE; level <= (int)bsw_cpu_level_detect(); level++) {
        memset(bytes, 0xff, sizeof bytes);
        bsw_matrix_scan_table_get((enum bsw_cpu_level)level)->unpack(&layout, segments, 1, bytes);
        for (size_t i = 0; i < sizeof bytes; i++)
            assert_int_equal(bytes[i], i == ((1 * 8 + 1) * 16 + 2) * 4 + 2 ? 2 : 0);
    }
}

static void test_a_query_becomes_odd_integers(void **state)
{
    (void)state;
    struct bsw_code_layout layout;
    const uint32_t words[] = {1, 3, 1, 0}; // u = 3, 1 in the first segment, 2 in the second
    assert_int_equal(bsw_code_layout_parse("2x1,1x3", 3, &layout, NULL), BSW_OK);
    for (int level = BSW_CPU_REFERENCE; level <= (int)bsw_cpu_level_detect(); level++) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_agrees_with_planes),
        cmocka_unit_test(test_avx2_agrees_with_planes),
        cmocka_unit_test(test_avx512_agrees_with_planes),
        cmocka_unit_test(test_a_code_lies_where_the_header_says),
        cmocka_unit_test(test_a_query_becomes_odd_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
