// SPDX-License-Identifier: Apache-2.0
// The first weights that are a quantizer: orthonormal rows, and codes that are the levels of a
// uniform quantizer.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "kernels/rbe/rbe_codes.h"
#include "kernels/rbe/rbe_start.h"
#include "unit_test.h"

static void *allocate(size_t bytes)
{
    void *memory;
    if (bsw_allocate_zero(&memory, bytes, 1, "test", NULL) != BSW_OK) abort();
    return memory;
}

static double dot(const float *a, const float *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

UNIT_TEST(rows_are_orthonormal)
{
    enum { M = 40, N = 100 }; // two sets of 40, and 20 more
    struct bsw_rbe_shape shape = {M, N, 2, 0, 1};
    size_t bytes = bsw_rbe_num_parameters(&shape) * sizeof(float);
    float *parameters = allocate(bytes), *others = allocate(bytes);
    bsw_rbe_initialize_quantizer(&shape, 3, 0.1, parameters);
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t j = i / M * M; j <= i; j++)
            assert_true(fabs(dot(parameters + i * M, parameters + j * M, M) - (i == j)) < 1e-5);
    }
    assert_true(fabs(dot(parameters, parameters + M * M, M)) < 0.9); // another set is another one
    for (uint32_t step = 0; step < 2; step++) {
        struct bsw_rbe_layer residual =
            bsw_rbe_layer_of(&shape, parameters, BSW_RBE_RESIDUAL, step);
        assert_memory_equal(residual.weights, parameters, M * N * sizeof(float));
        for (uint32_t i = 0; i < N; i++) assert_true(residual.bias[i] == 0);
    }
    bsw_rbe_initialize_quantizer(&shape, 4, 0.1, others);
    assert_memory_not_equal(parameters, others, bytes);
    bsw_free(&parameters);
    bsw_free(&others);
}

// The odd integer whose half step is nearest, clipped.
static int level_of(double x, double half_step, uint32_t bits)
{
    int most = (1 << bits) - 1, level = 2 * (int)floor(x / (2 * half_step)) + 1;
    return level < -most ? -most : level > most ? most : level;
}

UNIT_TEST(codes_begin_as_those_of_a_quantizer)
{
    enum { M = 48, N = 48, ROWS = 100, MOST_STEPS = 5 };
    const double half_step = 0.02;
    size_t count = 0, equal = 0;
    for (uint32_t steps = 0; steps <= MOST_STEPS; steps++) {
        struct bsw_rbe_shape shape = {M, N, steps, steps % 2 == 1, 1};
        struct bsw_rbe_coder coder;
        float *parameters = allocate(bsw_rbe_num_parameters(&shape) * sizeof(float)),
              *memory = allocate(bsw_rbe_coder_floats(&shape) * sizeof(float)), mean[M] = {0};
        bsw_rbe_initialize_quantizer(&shape, 9, half_step, parameters);
        bsw_rbe_coder_init(&shape, parameters, mean, 1, memory, &coder);
        float *scratch = allocate(bsw_rbe_scratch_floats(&coder) * sizeof(float));
        for (uint64_t r = 0; r < ROWS; r++) {
            float row[M];
            int16_t components[N];
            for (uint64_t i = 0; i < M; i++)
                row[i] = 0.06f * (float)((double)(int64_t)bsw_hash2(steps, r * M + i) * 0x1p-63);
            bsw_rbe_codes_reference.encode(&coder, row, 1, scratch, components);
            for (uint32_t i = 0; i < N; i++) {
                int level = level_of(dot(parameters + i * M, row, M), half_step, steps + 1);
                equal += components[i] == level;
                count++;
            }
        }
        bsw_free(&parameters);
        bsw_free(&memory);
        bsw_free(&scratch);
    }
    if (!((double)equal > 0.98 * (double)count)) fail_msg("%zu of %zu", equal, count);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
