// SPDX-License-Identifier: Apache-2.0
// Planes and scales of learned codes: they hold the components that rbe_codes.h gives, every level
// the same bytes, and the key they make is the cosine of query and document code, or by projection
// what rbe_coders.h says, in float64 here.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/code_layout.h"
#include "common/codes/half.h"
#include "kernels/rbe/rbe_coders.h"
#include "unit_test.h"

enum { MOST_DIMS = 80, MOST_CODE_DIMS = 100, ROWS = 27 };

static struct bsw_error err;

static float unit(uint64_t seed, uint64_t i) // in [-1, 1)
{
    return (float)(int64_t)(bsw_hash2(seed, i) >> 40) * 0x1p-23f - 1.0f;
}

static void *allocate(size_t bytes)
{
    void *memory;
    if (bsw_allocate_zero(&memory, bytes, 1, "test", NULL) != BSW_OK) abort();
    return memory;
}

static struct bsw_rbe_model make_model(uint32_t dims, uint32_t code_dims, uint32_t query_steps,
                                       uint32_t document_steps)
{
    struct bsw_rbe_model model = {.metric = BSW_METRIC_COSINE};
    uint32_t steps[BSW_RBE_NUM_SIDES] = {query_steps, document_steps};
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        struct bsw_rbe_side *side = &model.sides[i];
        side->shape = (struct bsw_rbe_shape){dims, code_dims, steps[i], 0, 1};
        side->scale = 2.5f;
        assert_int_equal(bsw_rbe_side_allocate(side, &err), BSW_OK);
        bsw_rbe_initialize(&side->shape, 7 + (uint64_t)i, side->parameters);
        for (uint32_t d = 0; d < dims; d++) side->mean[d] = unit(3, d) * 0.1f;
    }
    return model;
}

static struct bsw_rbe_coders *make_coders(uint32_t dims, uint32_t code_dims, uint32_t query_steps,
                                          uint32_t document_steps, enum bsw_cpu_level level)
{
    struct bsw_rbe_model model = make_model(dims, code_dims, query_steps, document_steps);
    struct bsw_rbe_coders *coders;
    assert_int_equal(bsw_rbe_coders_create(&model, "m", level, &coders, &err), BSW_OK);
    return coders;
}

// Component i of what stands at planes[(plane * words + i / 32) * stride].
static int component_of(const uint32_t *planes, uint32_t bits, uint32_t words, size_t stride,
                        uint32_t i)
{
    int value = (1 << bits) - 1;
    for (uint32_t plane = 0; plane < bits; plane++) {
        uint32_t word = planes[((size_t)plane * words + i / 32) * stride];
        value -= (int)(word >> (i % 32) & 1u) << (bits - plane);
    }
    return value;
}

static void expect_components(const struct bsw_rbe_coders *coders, enum bsw_rbe_side_kind side,
                              const float *row, float factor, const uint32_t *planes, size_t stride,
                              int *out)
{
    const struct bsw_rbe_coder *coder = &coders->sides[side];
    int16_t expected[MOST_CODE_DIMS];
    float *scratch = allocate(bsw_rbe_scratch_floats(coder) * sizeof(float));
    uint32_t words = (coder->shape.code_dims + 31) / 32, bits = coder->shape.steps + 1;
    bsw_rbe_codes_reference.encode(coder, row, factor, scratch, expected);
    for (uint32_t i = 0; i < coder->shape.code_dims; i++) {
        out[i] = component_of(planes, bits, words, stride, i);
        assert_int_equal(out[i], expected[i]);
    }
    for (uint32_t i = coder->shape.code_dims; i < 32 * words; i++)
        assert_int_equal(component_of(planes, bits, words, stride, i), (1 << bits) - 1); // bits 0
    bsw_free(&scratch);
}

static double norm_of(const int *components, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += (double)components[i] * components[i];
    return sqrt(sum);
}

static void check_shape(uint32_t dims, uint32_t n, uint32_t query_steps, uint32_t document_steps)
{
    struct bsw_rbe_coders *coders =
        make_coders(dims, n, query_steps, document_steps, BSW_CPU_REFERENCE);
    size_t words = (n + 31) / 32, bundle = (document_steps + 1) * words * BSW_BUNDLE_ROWS;
    uint32_t *planes = allocate(bundle * sizeof *planes),
             *query_words = allocate((query_steps + 1) * words * sizeof *query_words);
    float rows[ROWS * MOST_DIMS], factors[ROWS], biases[ROWS], query_scale, addend;
    uint16_t scales[ROWS];
    int query[MOST_CODE_DIMS], document[MOST_CODE_DIMS];
    void *scratch = allocate(bsw_rbe_coders_scratch_bytes(coders));
    for (size_t i = 0; i < ROWS * dims; i++) rows[i] = unit(11, i);
    for (size_t r = 0; r < ROWS; r++) factors[r] = 1.0f + 0.25f * (float)r;
    factors[5] = 0; // a bad row
    bsw_rbe_encode_bundle(coders, rows, ROWS, factors, scratch, planes, scales, biases);
    bsw_rbe_encode_query(coders, rows + 3 * dims, 1.25f, scratch, query_words, &query_scale,
                         &addend);
    assert_true(addend == 0);
    for (size_t r = 0; r < ROWS; r++) assert_true(biases[r] == 0);
    expect_components(coders, BSW_RBE_QUERY, rows + 3 * dims, 1.25f, query_words, 1, query);
    double unit_scale = ldexp(1.0, coders->scale_exponent);
    for (size_t r = 0; r < BSW_BUNDLE_ROWS; r++) {
        if (r == 5 || r >= ROWS) { // nothing is there
            for (size_t w = r; w < bundle; w += BSW_BUNDLE_ROWS) assert_int_equal(planes[w], 0);
            assert_true(r >= ROWS || scales[r] == 0);
            continue;
        }
        expect_components(coders, BSW_RBE_DOCUMENT, rows + r * dims, factors[r], planes + r,
                          BSW_BUNDLE_ROWS, document);
        double dot = 0, norm = norm_of(document, n);
        for (uint32_t i = 0; i < n; i++) dot += (double)query[i] * document[i];
        double half = (double)bsw_half_to_float(scales[r]);
        assert_true(half <= 256 && half >= 0.5 && fabs(half * unit_scale * norm - 1) < 0x1p-11);
        double key = (double)query_scale * half * dot, cosine = dot / (norm * norm_of(query, n));
        assert_true(fabs(key - cosine) <= 0x1p-10 * fabs(cosine));
    }
    bsw_free(&planes);
    bsw_free(&query_words);
    bsw_free(&scratch);
    bsw_rbe_coders_destroy(&coders);
}

UNIT_TEST(planes_hold_the_components)
{
    check_shape(7, 33, 2, 1);
    check_shape(64, 64, 0, 0);
    check_shape(80, 100, 6, 7);
    check_shape(1, 1, 3, 2);
}

static void check_levels(int has_projection)
{
    enum { DIMS = 70, N = 90 };
    uint32_t planes[2][3 * 3 * BSW_BUNDLE_ROWS], words[2][4 * 3];
    float biases[2][BSW_BUNDLE_ROWS], query[2][2];
    uint16_t scales[2][BSW_BUNDLE_ROWS];
    float rows[BSW_BUNDLE_ROWS * DIMS], factors[BSW_BUNDLE_ROWS];
    for (size_t i = 0; i < BSW_BUNDLE_ROWS * DIMS; i++) rows[i] = unit(21, i);
    for (size_t r = 0; r < BSW_BUNDLE_ROWS; r++) factors[r] = 1.0f;
    for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
         level = bsw_cpu_level_next(level)) {
        int at = level != BSW_CPU_REFERENCE;
        struct bsw_rbe_model model = make_model(DIMS, N, 3, 2);
        struct bsw_rbe_coders *coders;
        model.has_projection = has_projection;
        assert_int_equal(
            bsw_rbe_coders_create(&model, "m", (enum bsw_cpu_level)level, &coders, &err), BSW_OK);
        memset(words[at], 0, sizeof words[at]);
        void *scratch = allocate(bsw_rbe_coders_scratch_bytes(coders));
        memset(planes[at], 0, sizeof planes[at]);
        bsw_rbe_encode_bundle(coders, rows, BSW_BUNDLE_ROWS, factors, scratch, planes[at],
                              scales[at], biases[at]);
        bsw_rbe_encode_query(coders, rows, 1, scratch, words[at], &query[at][0], &query[at][1]);
        assert_memory_equal(planes[0], planes[at], sizeof planes[0]);
        assert_memory_equal(scales[0], scales[at], sizeof scales[0]);
        assert_memory_equal(biases[0], biases[at], sizeof biases[0]);
        assert_memory_equal(words[0], words[at], sizeof words[0]);
        assert_memory_equal(query[0], query[at], sizeof query[0]);
        bsw_free(&scratch);
        bsw_rbe_coders_destroy(&coders);
    }
}

UNIT_TEST(levels_agree)
{
    check_levels(0);
    check_levels(1);
}

// p(x) of the query side, in float64.
static double projected(const struct bsw_rbe_side *side, const float *row, double factor,
                        uint32_t component)
{
    struct bsw_rbe_layer base = bsw_rbe_layer_of(&side->shape, side->parameters, BSW_RBE_BASE, 0);
    double sum = base.bias[component];
    for (uint32_t i = 0; i < base.num_in; i++)
        sum += (double)base.weights[(size_t)component * base.num_in + i] *
               (row[i] * factor - (double)side->mean[i]) * (double)side->scale;
    return sum;
}

UNIT_TEST(projections_give_scales_and_biases)
{
    enum { DIMS = 30, N = 40, EXPONENT = -5 };
    struct bsw_rbe_model model = make_model(DIMS, N, 3, 1);
    memcpy(model.sides[1].parameters, model.sides[0].parameters, N * (DIMS + 1) * sizeof(float));
    model.has_projection = 1;
    model.scale_exponent = EXPONENT;
    struct bsw_rbe_coders *coders;
    assert_int_equal(bsw_rbe_coders_create(&model, "m", BSW_CPU_REFERENCE, &coders, &err), BSW_OK);
    const struct bsw_rbe_side *side = &coders->model.sides[BSW_RBE_QUERY];
    float rows[BSW_BUNDLE_ROWS * DIMS], factors[BSW_BUNDLE_ROWS], biases[BSW_BUNDLE_ROWS];
    uint32_t planes[2 * 2 * BSW_BUNDLE_ROWS] = {0}, words[4 * 2] = {0};
    uint16_t scales[BSW_BUNDLE_ROWS];
    void *scratch = allocate(bsw_rbe_coders_scratch_bytes(coders));
    float query_scale, addend;
    int query[N], document[N];
    for (size_t i = 0; i < BSW_BUNDLE_ROWS * DIMS; i++) rows[i] = unit(31, i);
    for (size_t r = 0; r < BSW_BUNDLE_ROWS; r++) factors[r] = r == 3 ? 0.0f : 0.3f;
    bsw_rbe_encode_bundle(coders, rows, BSW_BUNDLE_ROWS, factors, scratch, planes, scales, biases);
    for (size_t r = 0; r < BSW_BUNDLE_ROWS; r++) {
        const float *row = rows + r * DIMS;
        double square = 0, mean_dot = 0, along = 0, squares = 0, mean_square = 0;
        if (r == 3) {
            assert_true(scales[r] == 0 && biases[r] == 0);
            continue;
        }
        memset(words, 0, sizeof words);
        bsw_rbe_encode_query(coders, row, 0.3f, scratch, words, &query_scale, &addend);
        expect_components(coders, BSW_RBE_QUERY, row, 0.3f, words, 1, query);
        expect_components(coders, BSW_RBE_DOCUMENT, row, 0.3f, planes + r, BSW_BUNDLE_ROWS,
                          document);
        for (uint32_t i = 0; i < DIMS; i++) {
            double centered = row[i] * 0.3 - (double)side->mean[i];
            square += centered * centered;
            mean_dot += centered * (double)side->mean[i];
            mean_square += (double)side->mean[i] * (double)side->mean[i];
        }
        assert_true(fabs((double)biases[r] - mean_dot) < 1e-6);
        assert_true(fabs((double)addend - mean_dot - mean_square) < 1e-6);
        for (uint32_t i = 0; i < N; i++) along += projected(side, row, 0.3, i) * document[i];
        double expected = along > 0 ? square / along : 0;
        double scale = ldexp((double)bsw_half_to_float(scales[r]), EXPONENT);
        assert_true(fabs(scale - expected) <= 0x1p-10 * expected && expected > 0);
        along = 0;
        for (uint32_t i = 0; i < N; i++) {
            along += projected(side, row, 0.3, i) * query[i];
            squares += (double)query[i] * query[i];
        }
        assert_true(fabs(ldexp((double)query_scale, -EXPONENT) - along / squares) <
                    1e-5 * fabs(along / squares));
    }
    bsw_free(&scratch);
    bsw_rbe_coders_destroy(&coders);
}

// A float query is its numbers after tanh, in 7 bits of the largest, over their length.
UNIT_TEST(float_queries_are_coded_in_7_bits)
{
    enum { DIMS = 30, N = 40 };
    struct bsw_rbe_model model = make_model(DIMS, N, 0, 1);
    struct bsw_rbe_coders *coders;
    model.has_float_queries = 1;
    assert_int_equal(bsw_rbe_coders_create(&model, "m", BSW_CPU_REFERENCE, &coders, &err), BSW_OK);
    assert_int_equal(bsw_rbe_num_planes(coders, BSW_RBE_QUERY), 7);
    assert_int_equal(bsw_rbe_num_planes(coders, BSW_RBE_DOCUMENT), 2);
    void *scratch = allocate(bsw_rbe_coders_scratch_bytes(coders));
    for (uint64_t seed = 0; seed < 20; seed++) {
        float row[DIMS], scale, addend;
        uint32_t words[7 * ((N + 31) / 32)] = {0};
        double numbers[N], square = 0, most = 0;
        for (uint32_t d = 0; d < DIMS; d++) row[d] = unit(seed + 50, d);
        bsw_rbe_encode_query(coders, row, 0.7f, scratch, words, &scale, &addend);
        assert_true(addend == 0);
        for (uint32_t i = 0; i < N; i++) {
            numbers[i] = tanh(projected(&coders->model.sides[BSW_RBE_QUERY], row, 0.7f, i));
            square += numbers[i] * numbers[i];
            most = fmax(most, fabs(numbers[i]));
        }
        double of_one = ldexp((double)scale, -coders->scale_exponent);
        for (uint32_t i = 0; i < N; i++) {
            double coded = of_one * component_of(words, 7, (N + 31) / 32, 1, i);
            assert_true(fabs(coded - numbers[i] / sqrt(square)) <=
                        1.001 * most / 127 / sqrt(square));
        }
    }
    bsw_free(&scratch);
    bsw_rbe_coders_destroy(&coders);
}

UNIT_TEST(models_without_codes_are_refused)
{
    struct bsw_rbe_model model = make_model(4, 4, 1, 1);
    struct bsw_rbe_coders *coders;
    model.is_smooth = 1;
    assert_int_equal(bsw_rbe_coders_create(&model, "m", BSW_CPU_REFERENCE, &coders, &err),
                     BSW_ERROR_USAGE);
    assert_null(coders);
    model = make_model(4, 4, 1, 1);
    model.sides[0].shape.has_residual_weights = 0;
    assert_int_equal(bsw_rbe_coders_create(&model, "m", BSW_CPU_REFERENCE, &coders, &err),
                     BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "residual weights"));
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
