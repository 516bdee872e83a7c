// SPDX-License-Identifier: Apache-2.0
// Eq. 7 of XFBQ: the dots are the plain integer products of the odd integers that the planes stand
// for, at every level.
#include <string.h>

#include "common/base/arithmetic.h"
#include "kernels/plane_scan/plane_scan.h"
#include "unit_test.h"

#define MAX_DIMS    100
#define MAX_WORDS   4
#define NUM_BUNDLES 2
#define NUM_ROWS    (NUM_BUNDLES * BSW_BUNDLE_ROWS)

// One segment's codes and query, once as planes and once as odd integers.
struct segment_data {
    struct bsw_segment segment;
    _Alignas(64) uint32_t codes[NUM_BUNDLES * BSW_MAX_CODE_BITS * MAX_WORDS * 32];
    uint32_t query[BSW_MAX_QUERY_BITS * MAX_WORDS];
    int code_values[NUM_ROWS][MAX_DIMS];
    int query_values[MAX_DIMS];
};

static struct segment_data first, second;
static _Alignas(64) int32_t dots[NUM_ROWS];

static void put_query(struct segment_data *data, uint32_t i, unsigned u, unsigned bits)
{
    data->query_values[i] = ((1 << bits) - 1) - 2 * (int)u;
    for (unsigned p = 0; p < bits; p++) {
        uint32_t bit = u >> (bits - 1 - p) & 1u;
        data->query[p * data->segment.words + i / 32] |= bit << (i % 32);
    }
}

static void put_code(struct segment_data *data, size_t row, uint32_t i, unsigned u)
{
    unsigned bits = data->segment.bits;
    size_t words = data->segment.words, bundle = row / 32 * bits * words * 32;
    data->code_values[row][i] = ((1 << bits) - 1) - 2 * (int)u;
    for (unsigned p = 0; p < bits; p++) {
        uint32_t bit = u >> (bits - 1 - p) & 1u;
        data->codes[bundle + (p * words + i / 32) * 32 + row % 32] |= bit << (i % 32);
    }
}

// Rows 0 and 1 are the extremes, the others random.
static void make_segment(struct segment_data *data, uint32_t dims, unsigned bits,
                         unsigned query_bits, uint64_t seed)
{
    memset(data, 0, sizeof *data);
    data->segment = (struct bsw_segment){.dims = dims, .bits = bits, .words = (dims + 31) / 32};
    for (uint32_t i = 0; i < dims; i++) {
        put_query(data, i, (unsigned)(bsw_hash2(seed, i) % (1u << query_bits)), query_bits);
        for (size_t row = 0; row < NUM_ROWS; row++) {
            unsigned most = (1u << bits) - 1u;
            unsigned u = (unsigned)(bsw_hash2(seed + 1 + row, i) & most);
            put_code(data, row, i, row == 0 ? 0 : row == 1 ? most : u);
        }
    }
}

static int plain_range_dot(const struct segment_data *data, struct bsw_word_range range, size_t row)
{
    int sum = 0;
    for (uint32_t i = 32 * range.first; i < 32 * (range.first + range.count); i++) {
        if (i < data->segment.dims) sum += data->code_values[row][i] * data->query_values[i];
    }
    return sum;
}

static int plain_dot(const struct segment_data *data, size_t row)
{
    return plain_range_dot(data, bsw_all_words(&data->segment), row);
}

static void check_pair(const struct bsw_plane_scan_table *table, unsigned bits, unsigned query_bits,
                       uint32_t dims)
{
    make_segment(&first, dims, bits, query_bits, dims * 1000 + bits * 10 + query_bits);
    memset(dots, 0x77, sizeof dots);
    table->dots(&first.segment, bsw_all_words(&first.segment), first.codes, NUM_BUNDLES,
                first.query, query_bits, 0, dots);
    for (size_t row = 0; row < NUM_ROWS; row++) {
        assert_int_equal(dots[row], plain_dot(&first, row));
    }
}

static void check_accumulation(const struct bsw_plane_scan_table *table, unsigned query_bits)
{
    make_segment(&first, 33, 4, query_bits, 1);
    make_segment(&second, 96, 2, query_bits, 2);
    table->dots(&first.segment, bsw_all_words(&first.segment), first.codes, NUM_BUNDLES,
                first.query, query_bits, 0, dots);
    table->dots(&second.segment, bsw_all_words(&second.segment), second.codes, NUM_BUNDLES,
                second.query, query_bits, 1, dots);
    for (size_t row = 0; row < NUM_ROWS; row++) {
        assert_int_equal(dots[row], plain_dot(&first, row) + plain_dot(&second, row));
    }
}

static void check_level(enum bsw_cpu_level level)
{
    static const uint32_t dims[] = {1, 31, 32, 33, 96, 100};
    const struct bsw_plane_scan_table *table = bsw_plane_scan_table_get(level);
    for (unsigned bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
        for (unsigned query_bits = 1; query_bits <= BSW_MAX_QUERY_BITS; query_bits++) {
            for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
                check_pair(table, bits, query_bits, dims[i]);
            }
        }
    }
    for (unsigned query_bits = 1; query_bits <= BSW_MAX_QUERY_BITS; query_bits++) {
        check_accumulation(table, query_bits);
    }
}

UNIT_TEST(test_dots_are_integer_products)
{
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level))
        check_level((enum bsw_cpu_level)level);
}

// The two parts of a segment: dots of the first, those of the second added, to some rows alone.
static void check_parts(const struct bsw_plane_scan_table *table, unsigned bits,
                        unsigned query_bits, uint32_t dims, uint32_t first_words)
{
    static const uint32_t places[] = {0, 1, 5, 31, 32, 40, 63};
    make_segment(&first, dims, bits, query_bits, dims * 1000 + bits * 10 + query_bits);
    const struct bsw_segment *segment = &first.segment;
    const struct bsw_word_range start = {0, first_words},
                                rest = {first_words, segment->words - first_words};
    assert_int_equal(bsw_range_dims(segment, start), 32 * first_words);
    assert_int_equal(bsw_range_dims(segment, rest), dims - 32 * first_words);
    table->dots(segment, start, first.codes, NUM_BUNDLES, first.query, query_bits, 0, dots);
    for (size_t row = 0; row < NUM_ROWS; row++)
        assert_int_equal(dots[row], plain_range_dot(&first, start, row));
    table->add_rows(segment, rest, first.codes, places, sizeof places / sizeof places[0],
                    first.query, query_bits, dots);
    for (size_t row = 0, i = 0; row < NUM_ROWS; row++) {
        int is_added = i < sizeof places / sizeof places[0] && places[i] == row;
        i += (size_t)is_added;
        assert_int_equal(dots[row],
                         is_added ? plain_dot(&first, row) : plain_range_dot(&first, start, row));
    }
    table->dots(segment, rest, first.codes, NUM_BUNDLES, first.query, query_bits, 0, dots);
    table->dots(segment, start, first.codes, NUM_BUNDLES, first.query, query_bits, 1, dots);
    for (size_t row = 0; row < NUM_ROWS; row++) assert_int_equal(dots[row], plain_dot(&first, row));
}

UNIT_TEST(test_parts_of_a_segment_add_up)
{
    static const uint32_t dims[] = {33, 64, 96, 100};
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        const struct bsw_plane_scan_table *table =
            bsw_plane_scan_table_get((enum bsw_cpu_level)level);
        for (unsigned bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
            for (unsigned query_bits = 1; query_bits <= BSW_MAX_QUERY_BITS; query_bits++) {
                for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
                    for (uint32_t words = 1; 32 * words < dims[i]; words++)
                        check_parts(table, bits, query_bits, dims[i], words);
                }
            }
        }
    }
}

// One dimension, one bit each: equal bits give +1, unequal ones -1.
UNIT_TEST(test_bit_one_stands_for_minus_one)
{
    static _Alignas(64) uint32_t codes[32];
    struct bsw_segment segment = {.dims = 1, .bits = 1, .words = 1};
    uint32_t query = 1;
    memset(codes, 0, sizeof codes);
    codes[7] = 1;
    bsw_plane_scan_table_get(BSW_CPU_REFERENCE)
        ->dots(&segment, bsw_all_words(&segment), codes, 1, &query, 1, 0, dots);
    assert_int_equal(dots[6], -1);
    assert_int_equal(dots[7], 1);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
