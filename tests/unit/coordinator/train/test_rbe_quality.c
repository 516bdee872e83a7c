// SPDX-License-Identifier: Apache-2.0
// ROC AUC and recall of held-out pairs against their definitions, pair by pair.
#include "unit_test.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "coordinator/train/rbe_quality.h"

enum { DIMS = 8, CODE_DIMS = 5, PAIRS = 150, GROUP = 32, NEGATIVES = 7, WORKERS = 3 };

static struct bsw_error err;

// Documents near their queries; few dims and planes, so that many tie.
static enum bsw_status read_pair(void *context, uint64_t pair, uint64_t draw, float *query,
                                 float *document, struct bsw_error *error)
{
    (void)error;
    assert_true(draw == 0);
    if (context && pair == *(uint64_t *)context)
        return bsw_fail(error, BSW_ERROR_IO, "pair %d is lost", (int)pair);
    for (uint64_t i = 0; i < DIMS; i++) {
        query[i] = (float)(bsw_hash2(1, pair * DIMS + i) % 2001) / 1000.0f - 1.0f;
        document[i] = query[i] + (float)(bsw_hash2(2, pair * DIMS + i) % 2001) / 4000.0f - 0.25f;
    }
    return BSW_OK;
}

struct fixture {
    struct bsw_rbe_training_options options;
    struct bsw_rbe_pairs pairs;
    struct bsw_rbe_worker workers[WORKERS];
    uint64_t held_out[PAIRS];
    float *parameters;
    struct bsw_rbe_quality quality;
};

static void open_fixture(struct fixture *f, enum bsw_rbe_estimator estimator, size_t num_pairs)
{
    *f = (struct fixture){.options = {.estimator = estimator, .negatives = NEGATIVES, .seed = 4},
                          .pairs = {.num_pairs = PAIRS, .read = read_pair}};
    size_t total = 0;
    for (uint32_t i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        uint32_t steps = estimator == BSW_RBE_SMOOTH ? 0 : 1 + i;
        f->options.shapes[i] = (struct bsw_rbe_shape){DIMS, CODE_DIMS, steps, 0, 1};
        total += bsw_rbe_num_parameters(&f->options.shapes[i]);
    }
    f->parameters = malloc(total * sizeof(float));
    float *next = f->parameters;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) { // the same first layer on both sides
        bsw_rbe_initialize(&f->options.shapes[i], 11, next);
        next += bsw_rbe_num_parameters(&f->options.shapes[i]);
    }
    for (uint64_t i = 0; i < PAIRS; i++) f->held_out[i] = (i * 7 + 3) % PAIRS;
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(
            bsw_rbe_worker_init(&f->options, &f->pairs, 2 * GROUP, &f->workers[i], &err), BSW_OK);
    f->quality = (struct bsw_rbe_quality){.options = &f->options,
                                          .held_out = f->held_out,
                                          .num_pairs = num_pairs,
                                          .group_pairs = GROUP,
                                          .workers = f->workers,
                                          .num_workers = WORKERS};
    assert_int_equal(bsw_rbe_quality_init(&f->quality, &err), BSW_OK);
}

static void close_fixture(struct fixture *f)
{
    bsw_rbe_quality_deinit(&f->quality);
    for (int i = 0; i < WORKERS; i++) bsw_rbe_worker_deinit(&f->workers[i]);
    free(f->parameters);
}

// [2][PAIRS][CODE_DIMS], in groups of GROUP, the last with the rest.
static void code_all(struct fixture *f, size_t num_pairs, float *codes)
{
    for (size_t first = 0; first < num_pairs;) {
        size_t last = num_pairs - first < 2 * GROUP ? num_pairs : first + GROUP;
        const struct bsw_rbe_group group = {
            .pairs = f->held_out + first, .num_pairs = last - first, .slope = 1};
        const float *outputs[BSW_RBE_NUM_SIDES];
        assert_int_equal(
            bsw_rbe_group_forward(&f->workers[0], f->parameters, &group, outputs, &err), BSW_OK);
        for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
            memcpy(codes + ((size_t)i * PAIRS + first) * CODE_DIMS, outputs[i],
                   (last - first) * CODE_DIMS * sizeof(float));
        }
        first = last;
    }
}

// Rounded, so that what ties in exact numbers ties here.
static double cosine(const float *codes, size_t query, size_t document)
{
    double dot = 0, q = 0, d = 0;
    for (size_t i = 0; i < CODE_DIMS; i++) {
        double x = (double)codes[query * CODE_DIMS + i];
        double y = (double)codes[(PAIRS + document) * CODE_DIMS + i];
        dot += x * y;
        q += x * x;
        d += y * y;
    }
    return round(dot / sqrt(q * d) * 1e6) / 1e6;
}

static double auc_by_definition(const float *codes, size_t num_pairs, uint64_t seed)
{
    static double positives[PAIRS], negatives[PAIRS * NEGATIVES];
    size_t shifts[NEGATIVES], next = 0, g = 0;
    double sum = 0;
    for (size_t first = 0; first < num_pairs; g++) {
        size_t last = num_pairs - first < 2 * GROUP ? num_pairs : first + GROUP;
        bsw_rbe_draw_shifts(bsw_hash2(bsw_hash2(seed, 51), g), last - first, NEGATIVES, shifts);
        for (size_t i = first; i < last; i++) {
            positives[i] = cosine(codes, i, i);
            for (size_t r = 0; r < NEGATIVES; r++) {
                size_t j = first + (i - first + shifts[r]) % (last - first);
                assert_true(j != i);
                negatives[next++] = cosine(codes, i, j);
            }
        }
        first = last;
    }
    assert_true(next == num_pairs * NEGATIVES);
    for (size_t i = 0; i < num_pairs; i++) {
        for (size_t j = 0; j < next; j++)
            sum += positives[i] > negatives[j] ? 1.0 : positives[i] == negatives[j] ? 0.5 : 0.0;
    }
    return sum / ((double)num_pairs * (double)next);
}

// The share of the orders of those that tie in which the pair's document is among the first.
static double recall_by_definition(const float *codes, size_t num_pairs, size_t rank)
{
    double sum = 0;
    for (size_t i = 0; i < num_pairs; i++) {
        size_t above = 0, ties = 0, good = 0;
        for (size_t j = 0; j < num_pairs; j++) {
            above += cosine(codes, i, j) > cosine(codes, i, i);
            ties += cosine(codes, i, j) == cosine(codes, i, i);
        }
        for (size_t place = 1; place <= ties; place++) good += above + place <= rank;
        sum += (double)good / (double)ties;
    }
    return sum / (double)num_pairs;
}

static void check(enum bsw_rbe_estimator estimator, size_t num_pairs)
{
    static float codes[BSW_RBE_NUM_SIDES * PAIRS * CODE_DIMS];
    struct fixture f;
    struct bsw_rbe_recall recall;
    double auc, once_more;
    open_fixture(&f, estimator, num_pairs);
    code_all(&f, num_pairs, codes);
    assert_int_equal(bsw_rbe_quality_auc(&f.quality, f.parameters, &auc, &err), BSW_OK);
    double expected = auc_by_definition(codes, num_pairs, f.options.seed);
    if (fabs(auc - expected) > 1e-3) fail_msg("ROC AUC %g, not %g", auc, expected);
    assert_true(auc > 0.5 && auc <= 1);
    assert_int_equal(bsw_rbe_quality_recall(&f.quality, f.parameters, &recall, &err), BSW_OK);
    assert_true(recall.num_documents == num_pairs);
    for (size_t k = 0; k < BSW_RBE_NUM_RECALLS; k++) {
        expected = recall_by_definition(codes, num_pairs, bsw_rbe_recall_ranks[k]);
        if (fabs(recall.shares[k] - expected) > 1e-3)
            fail_msg("1-recall@%u %g, not %g", bsw_rbe_recall_ranks[k], recall.shares[k], expected);
    }
    assert_int_equal(bsw_rbe_quality_auc(&f.quality, f.parameters, &once_more, &err), BSW_OK);
    assert_true(auc == once_more);
    close_fixture(&f);
}

UNIT_TEST(figures_are_what_their_definitions_say)
{
    const enum bsw_rbe_estimator estimators[] = {BSW_RBE_VARIANT, BSW_RBE_ANNEALING,
                                                 BSW_RBE_SMOOTH};
    for (size_t i = 0; i < 3; i++) {
        check(estimators[i], PAIRS);
        check(estimators[i], 2 * GROUP);
        check(estimators[i], NEGATIVES + 1);
    }
}

UNIT_TEST(nothing_held_out_is_nothing)
{
    struct fixture f;
    struct bsw_rbe_recall recall;
    double auc = 1;
    open_fixture(&f, BSW_RBE_VARIANT, 0);
    assert_int_equal(bsw_rbe_quality_auc(&f.quality, f.parameters, &auc, &err), BSW_OK);
    assert_int_equal(bsw_rbe_quality_recall(&f.quality, f.parameters, &recall, &err), BSW_OK);
    assert_true(auc == 0 && recall.num_documents == 0);
    close_fixture(&f);
}

UNIT_TEST(a_pair_that_cannot_be_read_is_reported)
{
    struct fixture f;
    struct bsw_rbe_recall recall;
    uint64_t lost = 60;
    double auc;
    open_fixture(&f, BSW_RBE_VARIANT, PAIRS);
    f.pairs.context = &lost;
    assert_int_equal(bsw_rbe_quality_auc(&f.quality, f.parameters, &auc, &err), BSW_ERROR_IO);
    assert_non_null(strstr(err.message, "pair 60 is lost"));
    assert_int_equal(bsw_rbe_quality_recall(&f.quality, f.parameters, &recall, &err), BSW_ERROR_IO);
    close_fixture(&f);
}

// ---- the area alone: by sorting, against every positive with every negative ----

enum { MOST = 300 };

static double area_by_definition(const float *positives, size_t num_positives,
                                 const float *negatives, size_t num_negatives)
{
    double sum = 0;
    for (size_t i = 0; i < num_positives; i++) {
        for (size_t j = 0; j < num_negatives; j++)
            sum += positives[i] > negatives[j] ? 1.0 : positives[i] == negatives[j] ? 0.5 : 0.0;
    }
    return sum / ((double)num_positives * (double)num_negatives);
}

// One of so many values, the positives' a little higher; 0 of both signs among them.
static void fill_scores(float *values, size_t count, uint64_t seed, uint64_t num_values,
                        float shift)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = bsw_hash2(seed, i);
        float value = (float)(hash % num_values) - (float)(num_values / 2) + shift;
        values[i] = value == 0 && (hash >> 40) % 2 ? -0.0f : value;
    }
}

UNIT_TEST(the_area_is_what_the_definition_says)
{
    float positives[MOST], negatives[MOST];
    const uint64_t num_values[] = {1, 2, 7, 100, 1u << 20};
    for (uint64_t seed = 0; seed < 200; seed++) {
        size_t num_positives = 1 + bsw_hash2(seed, 1) % MOST,
               num_negatives = 1 + bsw_hash2(seed, 2) % MOST;
        fill_scores(positives, num_positives, bsw_hash2(seed, 3), num_values[seed % 5],
                    (float)(seed % 3));
        fill_scores(negatives, num_negatives, bsw_hash2(seed, 4), num_values[seed % 5], 0);
        if (seed % 4 == 0) positives[0] = -INFINITY;
        if (seed % 4 == 1) negatives[0] = INFINITY;
        double expected = area_by_definition(positives, num_positives, negatives, num_negatives);
        assert_true(bsw_roc_auc(positives, num_positives, negatives, num_negatives) == expected);
    }
}

UNIT_TEST(the_ends_of_the_scale)
{
    float high[] = {5, 3, 4}, low[] = {2, 1}, same[] = {7, 7, 7, 7};
    assert_true(bsw_roc_auc(high, 3, low, 2) == 1);
    assert_true(bsw_roc_auc(low, 2, high, 3) == 0);
    assert_true(bsw_roc_auc(same, 1, same + 1, 3) == 0.5);
    assert_true(bsw_roc_auc(high, 0, low, 2) == 0 && bsw_roc_auc(high, 3, low, 0) == 0);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
