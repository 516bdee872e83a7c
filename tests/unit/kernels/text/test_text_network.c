// SPDX-License-Identifier: Apache-2.0
// Levels against the plain oracle bit for bit, the oracle against the definition in float64, and
// gradients against finite differences.
#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "kernels/text/text_network.h"
#include "unit_test.h"

#define NUM_GRAMS 60
#define MOST_DIMS 70

static struct bsw_error err;

static float unit(uint64_t seed, uint64_t i) // in [-1, 1)
{
    return (float)((double)(bsw_hash2(seed, i) >> 11) * 0x1p-52 - 1.0);
}

// Texts of 0 .. 9 words of 0 .. 6 known trigrams.
struct made_text {
    uint32_t ids[64], word_ends[16];
    struct bsw_text_ids text;
};

static void make_text(uint64_t seed, struct made_text *out)
{
    uint32_t count = 0;
    out->text = (struct bsw_text_ids){out->ids, out->word_ends, bsw_hash2(seed, 0) % 10};
    for (size_t w = 0; w < out->text.num_words; w++) {
        uint32_t grams = (uint32_t)(bsw_hash2(seed, 1 + w) % 7);
        for (uint32_t i = 0; i < grams; i++, count++)
            out->ids[count] = (uint32_t)(bsw_hash2(seed, 100 + count) % NUM_GRAMS);
        out->word_ends[w] = count;
    }
}

static void fill_weights(uint64_t seed, uint32_t dims, float *weights)
{
    for (size_t i = 0; i < (NUM_GRAMS + 1) * (size_t)dims; i++) weights[i] = unit(seed, i) * 0.4f;
}

UNIT_TEST(levels_give_the_bits_of_the_oracle)
{
    float weights[(NUM_GRAMS + 1) * MOST_DIMS], scratch[4 * MOST_DIMS];
    for (uint64_t seed = 1; seed < 300; seed++) {
        uint32_t dims = 1 + (uint32_t)(bsw_hash2(seed, 7) % MOST_DIMS);
        float expected[MOST_DIMS], found[MOST_DIMS];
        uint32_t expected_groups[MOST_DIMS], groups[MOST_DIMS];
        const struct bsw_text_layer layer = {weights, weights + NUM_GRAMS * (size_t)dims, dims};
        struct made_text made;
        fill_weights(seed, dims, weights);
        make_text(seed, &made);
        bsw_text_pool_reference.pool(&layer, &made.text, scratch, expected, expected_groups);
        for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
            const struct bsw_text_pool_table *table =
                bsw_text_pool_table_get((enum bsw_cpu_level)level);
            table->pool(&layer, &made.text, scratch, found, groups);
            assert_memory_equal(found, expected, dims * sizeof *found);
            assert_memory_equal(groups, expected_groups, dims * sizeof *groups);
            table->pool(&layer, &made.text, scratch, found, NULL);
            assert_memory_equal(found, expected, dims * sizeof *found);
        }
    }
}

// The definition, a group at a time: its bag of trigrams, then the largest, then tanh.
static double slow_output(const double *weights, uint32_t dims, const struct bsw_text_ids *text,
                          uint32_t d)
{
    double largest = -HUGE_VAL;
    size_t groups = text->num_words < 3 ? 1 : text->num_words - 2;
    for (size_t g = 0; g < groups; g++) {
        size_t last = g + 3 < text->num_words ? g + 3 : text->num_words;
        double sum = 0;
        if (text->num_words > 0)
            for (uint32_t i = g > 0 ? text->word_ends[g - 1] : 0; i < text->word_ends[last - 1];
                 i++)
                sum += weights[(size_t)text->ids[i] * dims + d];
        if (sum > largest) largest = sum;
    }
    return tanh(largest + weights[(size_t)NUM_GRAMS * dims + d]);
}

UNIT_TEST(the_oracle_is_the_definition)
{
    enum { DIMS = 9 };
    float weights[(NUM_GRAMS + 1) * DIMS], found[DIMS], scratch[4 * DIMS];
    double exact[(NUM_GRAMS + 1) * DIMS];
    const struct bsw_text_layer layer = {weights, weights + NUM_GRAMS * DIMS, DIMS};
    for (uint64_t seed = 1; seed < 100; seed++) {
        struct made_text made;
        fill_weights(seed, DIMS, weights);
        make_text(seed, &made);
        for (size_t i = 0; i < (NUM_GRAMS + 1) * DIMS; i++) exact[i] = (double)weights[i];
        bsw_text_pool_reference.pool(&layer, &made.text, scratch, found, NULL);
        for (uint32_t d = 0; d < DIMS; d++) {
            double expected = slow_output(exact, DIMS, &made.text, d);
            assert_true(fabs(expected - (double)found[d]) < 1e-5);
        }
    }
}

// ---- gradients ----

static const char *const texts[] = {"the cat sat on the mat", "a dog", "", "one two three",
                                    "cats and dogs and mats and more of them"};
enum { NUM_TEXTS = sizeof texts / sizeof texts[0], DIMS = 6, HASHES = 40 };

// A loss that weighs every output by another number, in float64.
static double loss_of(const struct bsw_text_pass *pass, const double *weights)
{
    double loss = 0;
    for (size_t t = 0; t < pass->num_texts; t++) {
        const struct bsw_text_place *place = &pass->places[t];
        const uint32_t *ids = (const uint32_t *)(const void *)pass->ids.data + place->first_gram;
        const uint32_t *ends =
            (const uint32_t *)(const void *)pass->word_ends.data + place->first_word;
        for (uint32_t d = 0; d < DIMS; d++) {
            double largest = -HUGE_VAL;
            size_t groups = place->num_words < 3 ? 1 : place->num_words - 2;
            for (size_t g = 0; g < groups; g++) {
                size_t last = g + 3 < place->num_words ? g + 3 : place->num_words;
                double sum = 0;
                for (uint32_t i = g > 0 ? ends[g - 1] : 0; last > 0 && i < ends[last - 1]; i++)
                    sum += weights[(size_t)ids[i] * DIMS + d];
                if (sum > largest) largest = sum;
            }
            loss += (double)unit(99, t * DIMS + d) * tanh(largest + weights[HASHES * DIMS + d]);
        }
    }
    return loss;
}

UNIT_TEST(gradients_are_those_of_finite_differences)
{
    enum { COUNT = (HASHES + 1) * DIMS };
    const struct bsw_text_vocabulary vocabulary = {.num_grams = HASHES};
    float parameters[COUNT], gradient[COUNT] = {0}, outputs[NUM_TEXTS * DIMS],
                             from[NUM_TEXTS * DIMS];
    double exact[COUNT];
    struct bsw_text_pass pass;
    assert_int_equal(bsw_text_num_parameters(HASHES, DIMS), COUNT);
    assert_ok(bsw_text_pass_init(&vocabulary, DIMS, NUM_TEXTS, bsw_cpu_level_detect(), &pass, &err),
              &err);
    bsw_text_initialize(HASHES, DIMS, 5, parameters);
    for (size_t t = 0; t < NUM_TEXTS; t++)
        assert_ok(bsw_text_pass_add(&pass, texts[t], strlen(texts[t]), &err), &err);
    bsw_text_forward(&pass, parameters, outputs);
    for (size_t i = 0; i < NUM_TEXTS * DIMS; i++) from[i] = unit(99, i);
    bsw_text_backward(&pass, outputs, from, gradient);
    for (size_t i = 0; i < COUNT; i++) exact[i] = (double)parameters[i];
    for (size_t i = 0; i < COUNT; i++) {
        const double step = 1e-6;
        exact[i] += step;
        double above = loss_of(&pass, exact);
        exact[i] -= 2 * step;
        double slope = (above - loss_of(&pass, exact)) / (2 * step);
        exact[i] += step;
        assert_true(fabs(slope - (double)gradient[i]) < 2e-5);
    }
    bsw_text_pass_deinit(&pass);
}

UNIT_TEST(first_weights_are_of_one_size)
{
    enum { COUNT = (HASHES + 1) * DIMS };
    float parameters[COUNT], limit = sqrtf(6.0f / (HASHES + DIMS)), largest = 0;
    bsw_text_initialize(HASHES, DIMS, 5, parameters);
    for (size_t i = 0; i < HASHES * DIMS; i++) {
        assert_true(fabsf(parameters[i]) <= limit);
        largest = fmaxf(largest, fabsf(parameters[i]));
    }
    assert_true(largest > 0.9f * limit);
    for (size_t i = HASHES * DIMS; i < COUNT; i++) assert_true(parameters[i] == 0);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
