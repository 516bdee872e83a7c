// SPDX-License-Identifier: Apache-2.0
// The papers' statements on the codes, checked on the reference; the other levels have its bits
// (kernelcheck).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/prepare_rows.h"
#include "unit_test.h"

#define ROWS 32

static const struct bsw_encode_table *reference(void)
{
    return bsw_encode_table_get(BSW_CPU_REFERENCE);
}

// In [-1, 1).
static float random_float(uint64_t stream, uint64_t index)
{
    return (float)((double)(int64_t)bsw_hash2(stream, index) * 0x1p-63);
}

// u of dimension i of document `lane` of one bundle, by the formula of code_layout.h.
static int read_u(const uint32_t *planes, unsigned bits, size_t words, size_t lane, size_t i)
{
    int u = 0;
    for (size_t p = 0; p < bits; p++) {
        uint32_t word = planes[(p * words + i / 32) * 32 + lane];
        u = 2 * u + (int)(word >> (i % 32) & 1);
    }
    return u;
}

static int read_code(const uint32_t *planes, unsigned bits, size_t words, size_t lane, size_t i)
{
    return ((1 << bits) - 1) - 2 * read_u(planes, bits, words, lane, i);
}

// ---- xfbq ----

// Section 3.2: a_{B-1-i} = sign(x - x_i >= 0), sign(0) = +1; the result times 2^B.
static int greedy_code(double x, unsigned bits)
{
    double approximation = 0.0, half = 0.5;
    for (unsigned i = 0; i < bits; i++, half /= 2) {
        approximation += x - approximation >= 0 ? half : -half;
    }
    return (int)ldexp(approximation, (int)bits);
}

// Random, boundary and clipped values; the first hundreds are boundaries and their neighbours.
static float test_value(size_t i)
{
    float boundary = (float)((int)(i / 3) - 200) * 0x1p-7f; // -1.56 .. 1.56
    if (i >= 1200) return 1.5f * random_float(1, i);
    if (i % 3 == 1) return nextafterf(boundary, 2.0f);
    return i % 3 == 2 ? nextafterf(boundary, -2.0f) : boundary;
}

#define NUM_VALUES 3200 // 100 dimensions of 32 documents

static void encode_values(float scale, unsigned bits, const float *values, uint32_t *planes)
{
    float factors[ROWS];
    for (size_t r = 0; r < ROWS; r++) factors[r] = 1.0f;
    reference()->xfbq(values, ROWS, NUM_VALUES / ROWS, factors, scale, bits, planes);
}

// For each value and every number of bits: is what x*scale, rounded, says.
static void check_values(void (*check)(double x, int code, unsigned bits))
{
    static const float scales[] = {1.0f, 2.0f, 0.8f};
    static uint32_t planes[BSW_MAX_CODE_BITS * 4 * 32];
    static float values[NUM_VALUES];
    for (size_t s = 0; s < 3; s++) {
        for (size_t i = 0; i < NUM_VALUES; i++) values[i] = test_value(i) / scales[s];
        values[NUM_VALUES - 1] = -0.0f;
        for (unsigned bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
            encode_values(scales[s], bits, values, planes);
            for (size_t i = 0; i < NUM_VALUES; i++) {
                float x = values[i] * scales[s];
                check(x, read_code(planes, bits, 4, i / 100, i % 100), bits);
            }
        }
    }
}

// Proposition 3.2.
static void check_error_bound(double x, int code, unsigned bits)
{
    assert_true(code % 2 != 0 && abs(code) < 1 << bits);
    if (fabs(x) >= 1) return;
    assert_true(fabs(ldexp(code, -(int)bits) - x) <= ldexp(1.0, -(int)bits));
}

static void check_greedy(double x, int code, unsigned bits)
{
    assert_int_equal(code, greedy_code(x, bits));
}

UNIT_TEST(test_xfbq_error_is_at_most_half_a_step)
{
    check_values(check_error_bound);
}

UNIT_TEST(test_xfbq_is_the_greedy_rule)
{
    check_values(check_greedy);
}

UNIT_TEST(test_xfbq_clips_to_the_outermost_level)
{
    const float row[4] = {1.0f, -1.5f, 1e30f, -1e30f};
    float factor = 1.0f;
    uint32_t planes[3 * 32];
    reference()->xfbq(row, 1, 4, &factor, 1.0f, 3, planes);
    const int expected[4] = {7, -7, 7, -7};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(read_code(planes, 3, 1, 0, i), expected[i]);
    }
}

UNIT_TEST(test_xfbq_of_a_zero_row_is_plus_one)
{
    const float row[5] = {0.0f, -0.0f, 1.0f, -1.0f, 3e38f};
    float factor = 0.0f;
    uint32_t planes[4 * 32];
    reference()->xfbq(row, 1, 5, &factor, 2.0f, 4, planes);
    for (size_t i = 0; i < 5; i++) assert_int_equal(read_code(planes, 4, 1, 0, i), 1);
}

UNIT_TEST(test_xfbq_uses_factor_then_scale)
{
    // 10 * 0.05 * 1.2 = 0.6: code 2 * floor(2.4) + 1 of 3 bits.
    const float row = 10.0f;
    float factor = 0.05f;
    uint32_t planes[3 * 32];
    reference()->xfbq(&row, 1, 1, &factor, 1.2f, 3, planes);
    assert_int_equal(read_code(planes, 3, 1, 0, 0), 5);
}

// Word by word, without the helper: dims 33, 2 bits, document 5, all other documents missing.
UNIT_TEST(test_xfbq_plane_and_bit_order)
{
    float rows[6][33] = {{0}};
    float factors[6] = {1, 1, 1, 1, 1, 1};
    uint32_t planes[2 * 2 * 32], expected[2 * 2 * 32] = {0};
    for (size_t i = 0; i < 33; i++) rows[5][i] = 0.9f; // u = 0
    rows[5][0] = -0.9f;                                // u = 3: bit 0 of word 0, both planes
    rows[5][31] = -0.2f;                               // u = 2: plane 0 only
    rows[5][32] = 0.2f;                                // u = 1: plane 1 only, bit 0 of word 1
    expected[(0 * 2 + 0) * 32 + 5] = 0x80000001u;
    expected[(1 * 2 + 0) * 32 + 5] = 0x00000001u;
    expected[(1 * 2 + 1) * 32 + 5] = 0x00000001u;
    for (size_t lane = 0; lane < 5; lane++) { // zeros: u = 1
        expected[(1 * 2 + 0) * 32 + lane] = 0xffffffffu;
        expected[(1 * 2 + 1) * 32 + lane] = 0x00000001u;
    }
    memset(planes, 0xee, sizeof planes);
    reference()->xfbq(&rows[0][0], 6, 33, factors, 1.0f, 2, planes);
    assert_memory_equal(planes, expected, sizeof planes);
}

// ---- conversions and sums ----

UNIT_TEST(test_halves_are_converted_exactly)
{
    const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000, 0x3555, 0x83ff, 0x7c00};
    const float expected[] = {1.0f,  -2.0f,       0x1p-24f,      65504.0f,
                              -0.0f, 0x1.554p-2f, -0x1.ff8p-15f, INFINITY};
    float found[8];
    reference()->to_float(BSW_VECTOR_FLOAT16, halves, 8, found);
    assert_memory_equal(found, expected, sizeof found);
}

UNIT_TEST(test_bytes_are_converted_exactly)
{
    const uint8_t bytes[4] = {0, 127, 128, 255};
    const float as_unsigned[4] = {0, 127, 128, 255}, as_signed[4] = {0, 127, -128, -1};
    float found[4];
    reference()->to_float(BSW_VECTOR_UINT8, bytes, 4, found);
    assert_memory_equal(found, as_unsigned, sizeof found);
    reference()->to_float(BSW_VECTOR_INT8, bytes, 4, found);
    assert_memory_equal(found, as_signed, sizeof found);
}

UNIT_TEST(test_squared_norms_of_integers_are_exact)
{
    float rows[2][100];
    double norms[2], expected = 0;
    for (int i = 0; i < 100; i++) {
        rows[0][i] = (float)(i * 997);
        rows[1][i] = -1e18f;
        expected += (double)i * i * 997 * 997;
    }
    reference()->squared_norms(&rows[0][0], 2, 100, norms);
    assert_true(norms[0] == expected);
    assert_true(fabs(norms[1] - 1e38) < 1e32);
    rows[0][99] = INFINITY;
    rows[1][0] = NAN;
    reference()->squared_norms(&rows[0][0], 2, 100, norms);
    assert_true(!isfinite(norms[0]) && !isfinite(norms[1]));
}

// ---- saq ----

// A frame with the identity as its rotation, so that projected is centered, spread over segments.
struct saq_fixture {
    struct bsw_saq_frame frame;
    float mean[100], rotation[100 * 192];
    float rows[ROWS * 100], centered[ROWS * 100], projected[ROWS * 192];
    float factors[ROWS], mean_dots[ROWS], norms[ROWS], scales[ROWS];
    uint32_t tails[ROWS], words[2][8 * 4 * 32];
};

static struct saq_fixture fixture;

static void encode_fixture(const char *segments, uint32_t dims, enum bsw_metric metric,
                           uint32_t stage_dims)
{
    struct saq_fixture *f = &fixture;
    struct bsw_code_layout *layout = &f->frame.layout;
    uint32_t *planes[2] = {f->words[0], f->words[1]};
    struct bsw_error err;
    assert_int_equal(bsw_code_layout_parse(segments, dims, layout, &err), BSW_OK);
    f->frame.metric = metric;
    f->frame.stage_dims = stage_dims;
    f->frame.mean = f->mean;
    f->frame.rotation = f->rotation;
    memset(f->rotation, 0, sizeof f->rotation);
    for (uint32_t s = 0, j = 0; s < layout->num_segments; s++) {
        for (uint32_t i = 0; i < layout->segments[s].dims; i++, j++) {
            f->rotation[j * layout->padded_dims + layout->segments[s].padded_dim + i] = 1.0f;
        }
    }
    reference()->saq_center(&f->frame, f->rows, ROWS, f->factors, f->centered, f->mean_dots);
    reference()->saq_project(&f->frame, f->centered, ROWS, f->projected);
    reference()->saq_quantize(&f->frame, f->projected, ROWS, planes, f->norms, f->scales, f->tails);
}

static void fill_fixture(uint32_t dims)
{
    struct saq_fixture *f = &fixture;
    for (uint32_t i = 0; i < dims; i++) f->mean[i] = 0.1f * random_float(3, i);
    for (uint32_t i = 0; i < ROWS * dims; i++) {
        float x = random_float(2, i);
        f->rows[i] = 3.0f * x * x * x; // some are clipped
    }
    for (size_t r = 0; r < ROWS; r++) f->factors[r] = 1.0f;
    f->frame.steps[0] = 0.2f;
    f->frame.steps[1] = 0.35f;
}

// Root mean square of a row's centered values, in float64.
static double row_rms(const float *o, uint32_t dims)
{
    double sum = 0;
    for (uint32_t i = 0; i < dims; i++) sum += (double)o[i] * o[i];
    return sqrt(sum / dims);
}

// c against o / (t * rms): no other odd integer in range is nearer.
static void check_nearest_odd(double z, int code, int bits)
{
    double tolerance = 1e-5 * (1 + fabs(z)), error = fabs(code - z);
    assert_true(code % 2 != 0 && abs(code) < 1 << bits);
    for (int other = code - 2; other <= code + 2; other += 4) {
        if (abs(other) < 1 << bits) assert_true(error <= fabs(other - z) + tolerance);
    }
}

UNIT_TEST(test_saq_codes_are_the_nearest_odd_integers)
{
    fill_fixture(100);
    for (int bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
        char segments[32];
        snprintf(segments, sizeof segments, "33x%d,67x%d", bits, 9 - bits);
        encode_fixture(segments, 100, BSW_METRIC_COSINE, 100);
        for (size_t r = 0; r < ROWS; r++) {
            const float *o = fixture.centered + r * 100;
            double rms = row_rms(o, 100);
            for (size_t i = 0; i < 33; i++) {
                int code = read_code(fixture.words[0], (unsigned)bits, 2, r, i);
                check_nearest_odd(o[i] / (0.2f * rms), code, bits);
            }
            for (size_t i = 0; i < 67; i++) {
                int code = read_code(fixture.words[1], (unsigned)(9 - bits), 3, r, i);
                check_nearest_odd(o[33 + i] / (0.35f * rms), code, 9 - bits);
            }
        }
    }
}

// scale * <o, t c> = norm(o)^2: the estimate of a row against itself is exact.
UNIT_TEST(test_saq_scale_makes_the_own_product_exact)
{
    fill_fixture(100);
    encode_fixture("40x3,60x2", 100, BSW_METRIC_COSINE, 100);
    float scales[ROWS];
    memcpy(scales, fixture.scales, sizeof scales);
    for (size_t r = 0; r < ROWS; r++) {
        const float *o = fixture.centered + r * 100;
        double product = 0, norm = row_rms(o, 100) * row_rms(o, 100) * 100;
        for (size_t i = 0; i < 100; i++) {
            int code = i < 40 ? read_code(fixture.words[0], 3, 2, r, i)
                              : read_code(fixture.words[1], 2, 2, r, i - 40);
            product += (double)o[i] * code * (i < 40 ? 0.2f : 0.35f);
        }
        assert_true(fabs(fixture.norms[r] - norm) <= 1e-5 * norm);
        assert_true(fabs(scales[r] * product - norm) <= 1e-5 * norm);
    }
    encode_fixture("40x3,60x2", 100, BSW_METRIC_L2, 100);
    for (size_t r = 0; r < ROWS; r++) assert_true(fixture.scales[r] == 2 * scales[r]);
}

// Places count without padding: with 40 + 60 dimensions place 64 is the 24th of the second segment.
UNIT_TEST(test_saq_tail_is_the_energy_beyond_the_stage)
{
    fill_fixture(100);
    const uint32_t stages[] = {0, 32, 64, 100};
    for (size_t s = 0; s < 4; s++) {
        encode_fixture("40x3,60x2", 100, BSW_METRIC_IP, stages[s]);
        for (size_t r = 0; r < ROWS; r++) {
            uint32_t tail = 0;
            for (size_t i = stages[s]; i < 100; i++) {
                int code = i < 40 ? read_code(fixture.words[0], 3, 2, r, i)
                                  : read_code(fixture.words[1], 2, 2, r, i - 40);
                tail += (uint32_t)(code * code);
            }
            assert_int_equal(fixture.tails[r], tail);
        }
    }
}

UNIT_TEST(test_saq_zero_row_gives_zeros)
{
    fill_fixture(64);
    fixture.factors[3] = 1.0f;
    memcpy(fixture.rows + 3 * 64, fixture.mean, 64 * sizeof(float)); // centered: 0
    for (size_t i = 0; i < 64; i++) fixture.rows[4 * 64 + i] = fixture.mean[i] + 1e-30f;
    encode_fixture("64x4", 64, BSW_METRIC_L2, 32);
    for (size_t r = 3; r <= 4; r++) {
        assert_true(fixture.norms[r] == 0 && fixture.scales[r] == 0 && fixture.tails[r] == 0);
        for (size_t i = 0; i < 64; i++) assert_int_equal(read_u(fixture.words[0], 4, 2, r, i), 0);
    }
    assert_true(fixture.norms[5] > 0 && fixture.scales[5] > 0 && fixture.tails[5] > 0);
}

UNIT_TEST(test_saq_padding_bits_are_zero)
{
    fill_fixture(100);
    encode_fixture("33x2,67x8", 100, BSW_METRIC_COSINE, 100);
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t i = 33; i < 64; i++) assert_int_equal(read_u(fixture.words[0], 2, 2, r, i), 0);
        for (size_t i = 67; i < 96; i++) assert_int_equal(read_u(fixture.words[1], 8, 3, r, i), 0);
    }
}

UNIT_TEST(test_saq_center_takes_the_mean_away)
{
    fill_fixture(100);
    for (size_t r = 0; r < ROWS; r++) fixture.factors[r] = (float)r * 0.25f;
    encode_fixture("100x1", 100, BSW_METRIC_COSINE, 100);
    for (size_t r = 0; r < ROWS; r++) {
        double dot = 0, size = 0;
        for (size_t i = 0; i < 100; i++) {
            float y = fixture.rows[r * 100 + i] * fixture.factors[r];
            float centered = y - fixture.mean[i];
            assert_true(fixture.centered[r * 100 + i] == centered);
            dot += (double)fixture.mean[i] * centered;
            size += fabs((double)fixture.mean[i] * centered);
        }
        assert_true(fabs(fixture.mean_dots[r] - dot) <= 1e-6 * size);
    }
}

UNIT_TEST(queries_of_products_get_no_longer_than_float32_takes)
{
    const float far[2] = {-3e18f, 0}, near[2] = {-3.0f, 0}, query[2] = {127.0f, 0},
                long_query[2] = {2e18f, 0}, along[2] = {-8.0f, 0};
    assert_true(bsw_ip_query_factor(near, query, 2) == 1024.0f * 3.0f / 127.0f);
    assert_true(bsw_ip_query_factor(near, along, 2) == 3.0f / 8.0f);
    assert_true(bsw_ip_query_factor(far, query, 2) * 127.0f <= 1.0001e18f);
    assert_true(bsw_ip_query_factor(far, query, 2) * 127.0f >= 0.9999e18f);
    assert_true(bsw_ip_query_factor(far, long_query, 2) == 1.0f);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
