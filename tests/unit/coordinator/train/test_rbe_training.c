// SPDX-License-Identifier: Apache-2.0
// The loop of a training: it learns, it goes on where it stopped, the number of threads changes
// nothing, and it stops at what is not finite.
#include "unit_test.h"

#include <math.h>
#include <omp.h>

#include "common/base/arithmetic.h"
#include "common/base/file.h"
#include "coordinator/train/rbe_group.h"
#include "coordinator/train/rbe_pair_source.h"
#include "coordinator/train/rbe_training.h"
#include "temporary_folder.h"

enum { DIMS = 12, CODE_DIMS = 24, PAIRS = 400 };

static struct bsw_error err;
static uint64_t nan_pair = UINT64_MAX; // whose query has one

static double unit(uint64_t seed, uint64_t i) // in [-1, 1)
{
    return (double)(bsw_hash2(seed, i) >> 11) * 0x1p-52 - 1.0;
}

// The document of a query has its components in another order, with other signs: nothing that a
// model knows before it has learned it.
static enum bsw_status read_pair(void *context, uint64_t pair, uint64_t draw, float *query,
                                 float *document, struct bsw_error *error)
{
    (void)context;
    (void)draw;
    (void)error;
    for (uint64_t i = 0; i < DIMS; i++) query[i] = (float)(0.7 * unit(1, pair * DIMS + i));
    for (uint64_t i = 0; i < DIMS; i++)
        document[i] = query[(5 * i + 3) % DIMS] * (i % 3 == 0 ? -1.0f : 1.0f);
    if (pair == nan_pair) query[3] = NAN;
    return BSW_OK;
}

static struct bsw_rbe_training_options make_options(void)
{
    struct bsw_rbe_training_options options = {.estimator = BSW_RBE_VARIANT,
                                               .slope_growth = 1.1,
                                               .gamma = 10,
                                               .rate = 0.01,
                                               .decay = 0.95,
                                               .validation = 0.1,
                                               .negatives = 10,
                                               .batch_pairs = 300,
                                               .epochs = 4,
                                               .seed = 5};
    for (uint32_t i = 0; i < BSW_RBE_NUM_SIDES; i++)
        options.shapes[i] = (struct bsw_rbe_shape){DIMS, CODE_DIMS, 2 - i, 0, 1};
    return options;
}

// What a model may be.
static const struct kind {
    const char *name;
    enum bsw_rbe_estimator estimator;
    uint32_t query_steps, document_steps;
    int is_shared, has_residual_weights;
    double learned_loss; // that a small set gets below
    int has_float_queries;
} kinds[] = {
    {"straight-through", BSW_RBE_STRAIGHT_THROUGH, 2, 1, 0, 1, 0.25, 0},
    {"variant", BSW_RBE_VARIANT, 2, 1, 0, 1, 0.25, 0},
    {"annealing", BSW_RBE_ANNEALING, 2, 1, 0, 1, 0.25, 0},
    {"full precision", BSW_RBE_SMOOTH, 0, 0, 0, 1, 0.25, 0},
    {"float queries", BSW_RBE_ANNEALING, 0, 1, 0, 1, 0.25, 1},
    {"shared matrices", BSW_RBE_VARIANT, 3, 2, 1, 1, 0.25, 0},
    {"no residual weights", BSW_RBE_VARIANT, 2, 1, 0, 0, 0.5, 0},
    {"shared, no residual weights", BSW_RBE_STRAIGHT_THROUGH, 3, 2, 1, 0, 0.5, 0},
};
#define NUM_KINDS (sizeof kinds / sizeof kinds[0])

static struct bsw_rbe_training_options options_of(const struct kind *kind)
{
    struct bsw_rbe_training_options options = make_options();
    options.estimator = kind->estimator;
    options.has_float_queries = kind->has_float_queries;
    for (uint32_t i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        uint32_t steps = i == BSW_RBE_QUERY ? kind->query_steps : kind->document_steps;
        options.shapes[i] = (struct bsw_rbe_shape){DIMS, CODE_DIMS, steps, kind->is_shared,
                                                   kind->has_residual_weights};
    }
    return options;
}

static enum bsw_status train(const struct bsw_rbe_training_options *options,
                             struct bsw_rbe_training_result *out)
{
    const struct bsw_rbe_pairs pairs = {.num_pairs = PAIRS, .read = read_pair};
    struct bsw_transport transport = {0};
    bsw_transport_local_init(&transport);
    enum bsw_status status = bsw_rbe_train(options, &pairs, &transport, out, &err);
    bsw_transport_close(&transport, 0);
    return status;
}

static void expect_same_weights(const struct bsw_rbe_training_result *a,
                                const struct bsw_rbe_training_result *b)
{
    size_t bytes = a->state.num_parameters * sizeof(float);
    assert_true(a->state.num_updates == b->state.num_updates);
    assert_memory_equal(a->state.parameters, b->state.parameters, bytes);
    assert_memory_equal(a->state.best_parameters, b->state.best_parameters, bytes);
    assert_true(a->state.epoch == b->state.epoch && a->state.best_epoch == b->state.best_epoch);
    for (uint64_t i = 0; i < a->state.epoch; i++) {
        assert_true(a->state.epochs[i].train_loss == b->state.epochs[i].train_loss);
        assert_true(a->state.epochs[i].validation_loss == b->state.epochs[i].validation_loss);
        assert_true(a->state.epochs[i].roc_auc == b->state.epochs[i].roc_auc);
    }
    assert_memory_equal(&a->recall, &b->recall, sizeof a->recall);
}

// ---- one group ----

static double group_loss(struct bsw_rbe_worker *worker, const float *parameters, float share,
                         float *gradient)
{
    enum { GROUP = 20 };
    uint64_t ids[GROUP];
    double loss;
    for (uint64_t i = 0; i < GROUP; i++) ids[i] = 7 * i;
    struct bsw_rbe_group group = {ids, GROUP, 1, 3, 1};
    assert_ok(bsw_rbe_group_run(worker, parameters, &group, share, gradient, &loss, &err), &err);
    return loss;
}

// Both sides and the loss, of a model that has a derivative.
UNIT_TEST(a_group_has_the_gradient_of_its_loss)
{
    enum { MOST = 4096 };
    const float step = 1.0f / 128, share = 0.25f;
    struct bsw_rbe_training_options options = make_options();
    const struct bsw_rbe_pairs pairs = {.num_pairs = PAIRS, .read = read_pair};
    struct bsw_rbe_worker worker;
    float parameters[MOST], gradient[MOST];
    options.estimator = BSW_RBE_SMOOTH;
    options.gamma = 4;
    size_t first = bsw_rbe_num_parameters(&options.shapes[0]),
           count = first + bsw_rbe_num_parameters(&options.shapes[1]);
    assert_in_range(count, 1, MOST);
    bsw_rbe_initialize(&options.shapes[0], 1, parameters);
    bsw_rbe_initialize(&options.shapes[1], 2, parameters + first);
    assert_int_equal(bsw_rbe_worker_init(&options, &pairs, 20, &worker, &err), BSW_OK);
    group_loss(&worker, parameters, share, gradient);
    for (size_t i = 0; i < count; i += 11) {
        float kept = parameters[i];
        parameters[i] = kept + step;
        double above = group_loss(&worker, parameters, share, NULL);
        parameters[i] = kept - step;
        double below = group_loss(&worker, parameters, share, NULL);
        parameters[i] = kept;
        double expected = (double)share * (above - below) / (2 * (double)step);
        if (!(fabs((double)gradient[i] - expected) <= 0.02 * fabs(expected) + 1e-4))
            fail_msg("parameter %zu: %g, by differences %g", i, (double)gradient[i], expected);
    }
    bsw_rbe_worker_deinit(&worker);
}

// ---- what is learned ----

UNIT_TEST(a_small_set_is_learned)
{
    for (size_t kind = 0; kind < NUM_KINDS; kind++) {
        struct bsw_rbe_training_options options = options_of(&kinds[kind]);
        struct bsw_rbe_training_result result;
        options.batch_pairs = 100;
        options.epochs = 50;
        assert_int_equal(train(&options, &result), BSW_OK);
        const struct bsw_rbe_epoch *first = &result.state.epochs[0],
                                   *best = &result.state.epochs[result.state.best_epoch - 1];
        // One of 11 by chance: log 11 = 2.4. Held-out pairs are of the same rule.
        assert_true(first->validation_loss > 1.0);
        double most = kinds[kind].learned_loss;
        if (!(best->validation_loss < most && best->train_loss < most))
            fail_msg("%s: %g, %g held out", kinds[kind].name, best->train_loss,
                     best->validation_loss);
        assert_true(first->roc_auc > 0.5 && best->roc_auc > 0.97 && best->roc_auc <= 1);
        assert_true(result.recall.num_documents == 40 && result.recall.shares[0] > 0.5);
        assert_true(result.num_held_out == 40 && result.num_trained == 360);
        bsw_rbe_state_deinit(&result.state);
    }
}

UNIT_TEST(it_stops_when_nothing_is_gained)
{
    struct bsw_rbe_training_options options = make_options();
    struct bsw_rbe_training_result result;
    options.rate = 1e-12; // nothing moves
    options.epochs = 50;
    options.patience = 3;
    assert_int_equal(train(&options, &result), BSW_OK);
    assert_true(result.is_stopped_early && result.state.epoch < 20);
    assert_true(result.state.epoch == result.state.best_epoch + 3);
    bsw_rbe_state_deinit(&result.state);
}

// ---- the same weights ----

UNIT_TEST(threads_change_nothing)
{
    struct bsw_rbe_training_options options = make_options();
    struct bsw_rbe_training_result one, three;
    int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    assert_int_equal(train(&options, &one), BSW_OK);
    omp_set_num_threads(3);
    assert_int_equal(train(&options, &three), BSW_OK);
    omp_set_num_threads(threads);
    expect_same_weights(&one, &three);
    bsw_rbe_state_deinit(&three.state);
    options.seed++;
    assert_int_equal(train(&options, &three), BSW_OK);
    assert_memory_not_equal(one.state.parameters, three.state.parameters,
                            one.state.num_parameters * sizeof(float));
    bsw_rbe_state_deinit(&one.state);
    bsw_rbe_state_deinit(&three.state);
}

// Stopped after so many batches each time, within epochs and at their ends.
UNIT_TEST(a_resumed_training_reaches_the_same_weights)
{
    struct bsw_rbe_training_options options = make_options();
    struct bsw_rbe_training_result whole, part = {0};
    options.estimator = BSW_RBE_ANNEALING;
    options.has_near_negatives = 1;
    options.batch_pairs = 120; // 3 an epoch, 12 in all
    assert_int_equal(train(&options, &whole), BSW_OK);
    options.checkpoint = path_of("checkpoint");
    for (uint64_t most = 1; most <= 5; most++) {
        options.most_batches = most;
        options.is_resumed = 0;
        do {
            bsw_rbe_state_deinit(&part.state);
            assert_int_equal(train(&options, &part), BSW_OK);
            options.is_resumed = 1;
        } while (part.state.epoch < options.epochs);
        assert_true(part.state.num_updates == 12);
        expect_same_weights(&whole, &part);
    }
    bsw_rbe_state_deinit(&whole.state);
    bsw_rbe_state_deinit(&part.state);
}

UNIT_TEST(checkpoints_of_others_are_refused)
{
    struct bsw_rbe_training_options options = make_options();
    struct bsw_rbe_training_result result;
    options.checkpoint = path_of("other");
    options.is_resumed = 1;
    assert_int_equal(train(&options, &result), BSW_ERROR_IO); // there is none
    options.is_resumed = 0;
    options.most_batches = 1;
    assert_int_equal(train(&options, &result), BSW_OK);
    bsw_rbe_state_deinit(&result.state);
    options.is_resumed = 1;
    options.gamma = 11;
    assert_int_equal(train(&options, &result), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "gamma=10 there, gamma=11 here"));
    options.gamma = 10;

    struct bsw_buffer bytes = {0};
    assert_int_equal(bsw_file_read_all(options.checkpoint, 1u << 24, &bytes, &err), BSW_OK);
    for (size_t i = 0; i < bytes.bytes; i += 97) {
        bytes.data[i] ^= 4;
        options.checkpoint = write_test_file("damaged", bytes.data, bytes.bytes);
        assert_int_equal(train(&options, &result), BSW_ERROR_BAD_DATA);
        bytes.data[i] ^= 4;
        options.checkpoint = write_test_file("damaged", bytes.data, i);
        assert_int_equal(train(&options, &result), BSW_ERROR_BAD_DATA);
    }
    bsw_buffer_deinit(&bytes);
}

// ---- faults ----

UNIT_TEST(what_is_not_finite_stops_it)
{
    struct bsw_rbe_training_options options = make_options();
    struct bsw_rbe_training_result result;
    const char *path = path_of("kept");
    struct bsw_buffer before = {0}, after = {0};
    options.checkpoint = path;
    options.batch_pairs = 90; // 4 an epoch
    options.validation = 0;
    options.most_batches = 2;
    assert_int_equal(train(&options, &result), BSW_OK);
    bsw_rbe_state_deinit(&result.state);
    assert_int_equal(bsw_file_read_all(path, 1u << 24, &before, &err), BSW_OK);
    options.is_resumed = 1;
    options.most_batches = 0;
    // A pair of the last two batches: one that a training up to there has not read.
    for (nan_pair = 0; nan_pair < PAIRS; nan_pair++) {
        write_test_file("kept", before.data, before.bytes);
        enum bsw_status status = train(&options, &result);
        if (status == BSW_ERROR_BAD_DATA && strstr(err.message, "epoch 1, batch 4")) break;
        bsw_rbe_state_deinit(&result.state);
    }
    assert_true(nan_pair < PAIRS);
    assert_non_null(strstr(err.message, "kept"));
    nan_pair = UINT64_MAX;
    assert_int_equal(bsw_file_read_all(path, 1u << 24, &after, &err), BSW_OK);
    assert_int_equal(before.bytes, after.bytes);
    assert_memory_equal(before.data, after.data, before.bytes);
    bsw_buffer_deinit(&before);
    bsw_buffer_deinit(&after);
}

UNIT_TEST(too_few_pairs_are_refused)
{
    struct bsw_rbe_training_options options = make_options();
    struct bsw_rbe_training_result result;
    options.batch_pairs = 10; // 10 negatives take 11
    assert_int_equal(train(&options, &result), BSW_ERROR_USAGE);
    options.batch_pairs = 11;
    options.epochs = 1;
    assert_int_equal(train(&options, &result), BSW_OK);
    bsw_rbe_state_deinit(&result.state);
    options.validation = 0.02; // 8
    assert_int_equal(train(&options, &result), BSW_ERROR_USAGE);
}

// ---- the order of an epoch ----

// Pairs in cells lie nearer each other than pairs at random; every pair is still there once.
UNIT_TEST(cells_hold_near_queries)
{
    const struct bsw_rbe_pairs pairs = {.num_pairs = PAIRS, .read = read_pair};
    enum { CELL = 16, LEFT = 5, COUNT = PAIRS - PAIRS % CELL - CELL + LEFT };
    uint64_t orders[2][PAIRS];
    double distances[2] = {0, 0};
    int seen[PAIRS] = {0};
    for (int cells = 0; cells < 2; cells++) {
        for (uint64_t i = 0; i < PAIRS; i++) orders[cells][i] = i;
        bsw_rbe_shuffle(3, orders[cells], PAIRS);
    }
    assert_int_equal(bsw_rbe_order_cells(&pairs, DIMS, 1, 8, CELL, orders[1], COUNT, &err), BSW_OK);
    for (int cells = 0; cells < 2; cells++) {
        for (size_t i = 0; i < COUNT; i++) {
            float a[DIMS], b[DIMS], document[DIMS];
            read_pair(NULL, orders[cells][i], 1, a, document, NULL);
            read_pair(NULL, orders[cells][i / CELL * CELL], 1, b, document, NULL);
            for (int d = 0; d < DIMS; d++)
                distances[cells] += (double)((a[d] - b[d]) * (a[d] - b[d]));
        }
    }
    assert_true(distances[1] < 0.8 * distances[0]);
    for (size_t i = 0; i < PAIRS; i++) seen[orders[1][i]]++;
    for (size_t i = 0; i < PAIRS; i++) assert_int_equal(seen[i], 1);
}

UNIT_TEST(shifts_are_different)
{
    size_t shifts[40];
    int seen[41] = {0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        size_t pairs = 2 + seed % 40, count = 1 + bsw_hash(seed) % (pairs - 1);
        uint64_t mask = 0;
        bsw_rbe_draw_shifts(seed, pairs, count, shifts);
        for (size_t i = 0; i < count; i++) {
            assert_in_range(shifts[i], 1, pairs - 1);
            assert_true((mask & ((uint64_t)1 << shifts[i])) == 0);
            mask |= (uint64_t)1 << shifts[i];
        }
        if (pairs == 41) seen[shifts[0]]++;
    }
    for (int i = 0; i < 41; i++) assert_true(seen[i] < 5);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
