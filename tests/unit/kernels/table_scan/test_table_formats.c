// SPDX-License-Identifier: Apache-2.0
// The formats of tables, straight from their definition; every level of this CPU.
#include <math.h>
#include <string.h>

#include "common/base/integer_hash.h"
#include "kernels/table_scan/table_scan.h"
#include "unit_test.h"

#define NUM_NUMBERS 10000000

struct format {
    enum bsw_table_type type;
    int exponent_bits, least, most_exponent; // numbers from 2^least on, of exponents below most
    double most;                             // encoded as 255 from here on
};
static const struct format formats[] = {{BSW_TABLE_E5M3, 5, -15, 17, 122880.0},
                                        {BSW_TABLE_E4M4, 4, -7, 9, 496.0}};

// A cell begins at (1 + m / 2^V) 2^e.
static double cell_begin(const struct format *f, int u)
{
    int v = 8 - f->exponent_bits;
    return ldexp(1.0 + (double)(u & ((1 << v) - 1)) / (1 << v), f->least + (u >> v));
}

static double cell_end(const struct format *f, int u)
{
    return u < 255 ? cell_begin(f, u + 1) : ldexp(1.0, f->most_exponent);
}

UNIT_TEST(codes_stand_for_the_middle_of_their_cells)
{
    for (size_t i = 0; i < 2; i++) {
        uint32_t bits = (uint32_t)formats[i].exponent_bits;
        for (int u = 0; u < 256; u++) {
            float v = bsw_float8_decode(bits, (uint8_t)u);
            assert_true((double)v == (cell_begin(&formats[i], u) + cell_end(&formats[i], u)) / 2);
            assert_int_equal(bsw_float8_encode(bits, v), u);
            float s = bsw_float8_decode_signed(bits, (uint8_t)u);
            assert_true(fabs((double)s) == cell_end(&formats[i], u & 0xfe));
            assert_int_equal(s < 0, u & 1);
            assert_int_equal(bsw_float8_encode_signed(bits, s), u);
        }
    }
}

UNIT_TEST(ends_of_the_ranges_are_those_of_the_definition)
{
    for (size_t i = 0; i < 2; i++) {
        const struct format *f = &formats[i];
        uint32_t bits = (uint32_t)f->exponent_bits;
        assert_int_equal(bsw_float8_encode(bits, 0.0f), 0);
        assert_int_equal(bsw_float8_encode(bits, ldexpf(1.0f, f->least)), 0);
        assert_int_equal(bsw_float8_encode(bits, nextafterf((float)f->most, 0.0f)), 254);
        assert_int_equal(bsw_float8_encode(bits, (float)f->most), 255);
        assert_int_equal(bsw_float8_encode(bits, 3e38f), 255);
        assert_true((float)cell_begin(f, 255) == (float)f->most);
    }
}

// Bits of all positive floats, seeded.
static float random_float(uint64_t i)
{
    uint32_t bits = (uint32_t)bsw_hash2(77, i) & 0x7fffffffu;
    float v;
    // Half of them where the formats have their range.
    if (i % 2) bits = (bits & 0x007fffffu) | (uint32_t)(127 - 18 + bsw_hash(i) % 40) << 23;
    if (bits >= 0x7f800000u) bits &= 0x3fffffffu;
    memcpy(&v, &bits, sizeof v);
    return v;
}

// Begins of all cells and the end of the last, as bits: of positive floats in order.
static void cell_bits(const struct format *f, uint32_t bits[257])
{
    for (int u = 0; u <= 256; u++) {
        float begin = u < 256 ? (float)cell_begin(f, u) : ldexpf(1.0f, f->most_exponent);
        memcpy(&bits[u], &begin, sizeof begin);
    }
}

// Both directions: the byte's cell has the number, and the number that the byte stands for is the
// middle of that cell, within the error that is said; signed ones are the byte without its last
// bit.
UNIT_TEST(random_numbers_go_to_the_cell_that_has_them)
{
    for (size_t i = 0; i < 2; i++) {
        const struct format *f = &formats[i];
        uint32_t bits = (uint32_t)f->exponent_bits, begins[257], most;
        float end = (float)f->most, worst = 0.0f, worst_signed = 0.0f;
        memcpy(&most, &end, sizeof end);
        cell_bits(f, begins);
        size_t num_wrong = 0;
        for (uint64_t n = 0; n < NUM_NUMBERS; n++) {
            float v = random_float(n);
            uint32_t v_bits;
            memcpy(&v_bits, &v, sizeof v);
            uint8_t u = bsw_float8_encode(bits, v), s = bsw_float8_encode_signed(bits, -v);
            int is_below = v_bits < begins[0], is_above = v_bits >= most;
            num_wrong += is_below   ? u != 0
                         : is_above ? u != 255
                                    : begins[u] > v_bits || v_bits >= begins[u + 1];
            num_wrong += s != ((u & 0xfe) | (v > 0.0f)); // of -0 there is no sign
            if (is_below || is_above) continue;
            worst = fmaxf(worst, fabsf(bsw_float8_decode(bits, u) - v) / v);
            worst_signed = fmaxf(worst_signed, fabsf(bsw_float8_decode_signed(bits, s) + v) / v);
        }
        float bound = ldexpf(0.5f, f->exponent_bits - 8);
        assert_int_equal(num_wrong, 0);
        assert_true(worst <= bound && worst > 0.9f * bound);
        assert_true(worst_signed <= 2 * bound && worst_signed > 0.9f * bound);
    }
}

// Against the functions of one number, as tables are rounded.
UNIT_TEST(every_level_rounds_alike)
{
    enum { NUM = 4096 };
    static float in[NUM], expected[NUM], found[NUM];
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        const struct bsw_table_scan_table *table =
            bsw_table_scan_table_get((enum bsw_cpu_level)level);
        for (size_t f = 0; f < 2; f++) {
            for (size_t i = 0; i < NUM; i++) {
                in[i] = random_float(i) * (i % 3 ? 1.0f : -1.0f);
                uint32_t bits = (uint32_t)formats[f].exponent_bits;
                expected[i] =
                    bsw_float8_decode_signed(bits, bsw_float8_encode_signed(bits, in[i] * 4.0f));
            }
            table->round_numbers(formats[f].type, 1, 2, in, NUM, found);
            assert_memory_equal(expected, found, sizeof found);
        }
    }
}

UNIT_TEST(the_exponent_brings_the_largest_to_the_highest_cells)
{
    for (int e = -60; e < 60; e++) {
        for (int m = 0; m < 64; m++) {
            float v = ldexpf(1.0f + (float)m / 64, e);
            double half = ldexp(v, bsw_table_exponent(BSW_TABLE_FLOAT16, v)),
                   e5m3 = ldexp(v, bsw_table_exponent(BSW_TABLE_E5M3, v)),
                   e4m4 = ldexp(v, bsw_table_exponent(BSW_TABLE_E4M4, v));
            assert_true(half >= 0x1p14 && half < 0x1p15);
            assert_true(e5m3 >= 0x1p15 && e5m3 < 0x1p16);
            assert_true(e4m4 >= 248 && e4m4 < 496);
        }
    }
    assert_int_equal(bsw_table_exponent(BSW_TABLE_E4M4, 0.0f), 0);
    assert_int_equal(bsw_table_exponent(BSW_TABLE_E4M4, 0x1p-122f), BSW_TABLE_MOST_EXPONENT);
    assert_int_equal(bsw_table_exponent(BSW_TABLE_E4M4, 0x1p120f), -112);
    assert_int_equal(bsw_table_exponent(BSW_TABLE_FLOAT32, 7.0f), 0);
}

UNIT_TEST(choices_are_auto_and_the_types_in_their_order)
{
    char names[64] = "auto";
    for (int type = 0; type < BSW_NUM_TABLE_TYPES; type++) {
        strcat(strcat(names, "|"), bsw_table_name((enum bsw_table_type)type));
        assert_int_equal(bsw_table_chosen((enum bsw_table_choice)(type + 1)), type);
    }
    assert_string_equal(names, BSW_TABLE_CHOICES);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
