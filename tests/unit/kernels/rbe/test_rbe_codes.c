// SPDX-License-Identifier: Apache-2.0
// Codes of rows: every level gives the reference's, the reference what the equations say in float64
// (where no sum is so near 0 that rounding decides); tanh is near the true one everywhere.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "kernels/rbe/rbe_codes.h"
#include "kernels/rbe_tanh.h"
#include "unit_test.h"

enum { MOST_DIMS = 300 };

static float unit(uint64_t seed, uint64_t i) // in [-1, 1)
{
    return (float)(int64_t)(bsw_hash2(seed, i) >> 40) * 0x1p-23f - 1.0f;
}

static double distance_in_units(float value, double truth)
{
    float nearest = (float)truth;
    double one = (double)nextafterf(fabsf(nearest), 2.0f) - (double)fabsf(nearest);
    return fabs((double)value - truth) / one;
}

UNIT_TEST(tanh_is_near_the_true_one)
{
    float last = 0;
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += bits < 0x38000000u ? 100003 : 211) {
        float x, y;
        memcpy(&x, &bits, sizeof x);
        y = bsw_rbe_tanh(x);
        if (distance_in_units(y, tanh((double)x)) > 2.5)
            fail_msg("tanh(%a) is %a", (double)x, (double)y);
        assert_true(y >= last && y <= 1.0f);
        assert_true(bsw_rbe_tanh(-x) == -y);
        last = y;
    }
    assert_true(bsw_rbe_tanh(INFINITY) == 1.0f && bsw_rbe_tanh(-INFINITY) == -1.0f);
    assert_true(isnan(bsw_rbe_tanh(NAN)));
}

// ---- the equations in float64 ----

static int slow_layer(const struct bsw_rbe_layer *layer, const double *in, double *out)
{
    int is_near = 0;
    for (uint32_t i = 0; i < layer->num_out; i++) {
        out[i] = (double)layer->bias[i];
        for (uint32_t j = 0; j < layer->num_in; j++)
            out[i] += (double)layer->weights[(size_t)i * layer->num_in + j] * in[j];
        is_near |= fabs(out[i]) < 1e-4;
    }
    return is_near;
}

// Gives 0 if a sum is too near 0 to say.
static int slow_codes(const struct bsw_rbe_shape *shape, const float *parameters, const double *f,
                      double *b)
{
    double sums[MOST_DIMS], back[MOST_DIMS];
    struct bsw_rbe_layer layer = bsw_rbe_layer_of(shape, parameters, BSW_RBE_BASE, 0);
    if (slow_layer(&layer, f, sums)) return 0;
    for (uint32_t i = 0; i < shape->code_dims; i++) b[i] = sums[i] <= 0 ? -1 : 1;
    for (uint32_t t = 0; t < shape->steps; t++) {
        layer = bsw_rbe_layer_of(shape, parameters, BSW_RBE_RECONSTRUCTION, t);
        slow_layer(&layer, b, back);
        for (uint32_t j = 0; j < shape->dims; j++) back[j] = f[j] - tanh(back[j]);
        layer = bsw_rbe_layer_of(shape, parameters, BSW_RBE_RESIDUAL, t);
        if (slow_layer(&layer, back, sums)) return 0;
        for (uint32_t i = 0; i < shape->code_dims; i++)
            b[i] += pow(0.5, t + 1) * (sums[i] <= 0 ? -1 : 1);
    }
    return 1;
}

// ---- comparison ----

static void input_of(const struct bsw_rbe_coder *coder, const float *row, float factor, double *f)
{
    for (uint32_t j = 0; j < coder->shape.dims; j++)
        f[j] = (double)((row[j] * factor - coder->mean[j]) * coder->scale);
}

static size_t check_shape(const struct bsw_rbe_shape *shape, uint64_t seed)
{
    size_t count = bsw_rbe_num_parameters(shape), num_sure = 0;
    float *parameters, *memory, *scratch, mean[MOST_DIMS], row[MOST_DIMS];
    int16_t expected[MOST_DIMS], found[MOST_DIMS];
    double f[MOST_DIMS], b[MOST_DIMS];
    struct bsw_rbe_coder coder;
    assert_int_equal(bsw_allocate(&parameters, count, sizeof(float), "test", NULL), BSW_OK);
    assert_int_equal(bsw_allocate(&memory, bsw_rbe_coder_floats(shape), sizeof(float), "t", NULL),
                     BSW_OK);
    bsw_rbe_initialize(shape, seed, parameters);
    for (size_t i = 0; i < count; i++) parameters[i] += 0.05f * unit(seed + 1, i);
    for (uint32_t j = 0; j < shape->dims; j++) mean[j] = 0.1f * unit(seed + 2, j);
    bsw_rbe_coder_init(shape, parameters, mean, 1.25f, memory, &coder);
    assert_int_equal(
        bsw_allocate(&scratch, bsw_rbe_scratch_floats(&coder), sizeof(float), "test", NULL),
        BSW_OK);
    for (uint64_t r = 0; r < 12; r++) {
        float factor = r % 3 ? 1.0f : 0.75f;
        for (uint32_t j = 0; j < shape->dims; j++)
            row[j] = r == 0 ? 0 : (r % 4 == 1 ? 40.0f : 1.0f) * unit(seed + 10 + r, j);
        bsw_rbe_codes_reference.encode(&coder, row, factor, scratch, expected);
        for (int level = BSW_CPU_REFERENCE; level < BSW_CPU_NUM_LEVELS;
             level = bsw_cpu_level_next(level)) {
            memset(found, 0x55, sizeof found);
            bsw_rbe_codes_table_get((enum bsw_cpu_level)level)
                ->encode(&coder, row, factor, scratch, found);
            assert_memory_equal(found, expected, shape->code_dims * sizeof *found);
            if (shape->code_dims < MOST_DIMS) assert_int_equal(found[shape->code_dims], 0x5555);
        }
        input_of(&coder, row, factor, f);
        if (!slow_codes(shape, parameters, f, b)) continue;
        num_sure++;
        for (uint32_t i = 0; i < shape->code_dims; i++)
            assert_true((double)expected[i] == ldexp(b[i], (int)shape->steps));
    }
    bsw_free(&parameters);
    bsw_free(&memory);
    bsw_free(&scratch);
    return num_sure;
}

UNIT_TEST(codes_are_those_of_the_equations)
{
    static const uint32_t dims[][2] = {{1, 1}, {16, 16}, {17, 33}, {96, 64}, {300, 5}, {40, 299}};
    size_t num_sure = 0;
    uint64_t seed = 100;
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        for (uint32_t steps = 0; steps <= BSW_RBE_MAX_STEPS; steps += 1 + (steps > 2)) {
            for (int is_shared = 0; is_shared < 2; is_shared++) {
                struct bsw_rbe_shape shape = {dims[i][0], dims[i][1], steps, is_shared, 1};
                num_sure += check_shape(&shape, seed += 100);
            }
        }
    }
    assert_true(num_sure > 300); // of 864 rows
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
