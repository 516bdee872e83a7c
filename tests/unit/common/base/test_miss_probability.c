// SPDX-License-Identifier: Apache-2.0
// The formulas against all placements of small cases one by one, the paper's own sum, its Table 7,
// and random placements.
#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/miss_probability.h"
#include "common/codes/metric.h"
#include "kernels/select/select.h"
#include "shard/host/shard_queue.h"
#include "unit_test.h"

enum { MAX_ROWS = 18, TERMS = 64 };

static struct bsw_error err;

static void probabilities_of(const struct bsw_miss_setting *setting, size_t num, double *out,
                             int *is_simulated)
{
    enum bsw_status status = bsw_miss_probabilities(setting, num, out, is_simulated, &err);
    if (status != BSW_OK) fail_msg("%s", err.message);
}

static void assert_near(double found, double expected, double error)
{
    if (!(fabs(found - expected) <= error)) fail_msg("%.12g, expected %.12g", found, expected);
}

// ---- binomials ----

UNIT_TEST(test_log_binomial)
{
    double row[61] = {1}; // of Pascal's triangle, exact
    for (size_t n = 1; n <= 60; n++) {
        for (size_t k = n; k > 0; k--) row[k] += row[k - 1];
        for (size_t k = 0; k <= n; k++)
            assert_near(bsw_log_binomial((double)n, (double)k), log(row[k]), 1e-12);
    }
    assert_true(bsw_log_binomial(5, 6) == -INFINITY);
    long double log_large = 0; // C(1e9, 1000), factor by factor
    for (int i = 0; i < 1000; i++) log_large += logl((1e9L - i) / (i + 1));
    assert_near(bsw_log_binomial(1e9, 1000), (double)log_large, 1e-9);
}

// ---- every placement of a small case ----

// counts[l] of the placements of num_best among rows whose thread is threads[row].
static double enumerate(unsigned num_rows, const unsigned *threads, unsigned num_best,
                        unsigned queue_length, double counts[MAX_ROWS + 1])
{
    double all = 0;
    memset(counts, 0, (MAX_ROWS + 1) * sizeof *counts);
    for (uint32_t rows = 0; rows < 1u << num_rows; rows++) {
        unsigned of_thread[MAX_ROWS] = {0}, misses = 0;
        if ((unsigned)__builtin_popcount(rows) != num_best) continue;
        for (unsigned r = 0; r < num_rows; r++) {
            if (rows >> r & 1) misses += of_thread[threads[r]]++ >= queue_length;
        }
        counts[misses]++;
        all++;
    }
    return all;
}

static void check_small(unsigned num_threads, unsigned num_items, unsigned num_best,
                        unsigned queue_length)
{
    const struct bsw_miss_setting setting = {num_threads, num_items, num_best, queue_length};
    const struct bsw_thread_class class = {num_threads, num_items};
    unsigned threads[MAX_ROWS], num_rows = num_threads * num_items;
    double counts[MAX_ROWS + 1], found[TERMS], mean = 0;
    int is_simulated;
    for (unsigned r = 0; r < num_rows; r++) threads[r] = r % num_threads;
    double all = enumerate(num_rows, threads, num_best, queue_length, counts);
    probabilities_of(&setting, TERMS, found, &is_simulated);
    assert_int_equal(is_simulated, queue_length > 1 && num_best > num_threads);
    for (unsigned l = 0; l < TERMS; l++) {
        double expected = l <= num_rows ? counts[l] / all : 0;
        double error = is_simulated ? 6 * sqrt(expected * (1 - expected) / 1e5) : 1e-10;
        assert_near(found[l], expected, error);
        mean += l * expected;
    }
    assert_near(bsw_expected_misses(&class, 1, num_best, queue_length), mean, 1e-10);
}

UNIT_TEST(test_all_placements)
{
    static const unsigned shapes[][2] = {{1, 1}, {1, 5}, {5, 1}, {2, 3}, {3, 4}, {6, 2}, {4, 4}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        unsigned num_rows = shapes[s][0] * shapes[s][1];
        for (unsigned num_best = 1; num_best <= num_rows; num_best++) {
            for (unsigned length = 1; length <= 3; length++)
                check_small(shapes[s][0], shapes[s][1], num_best, length);
        }
    }
}

// ---- the paper ----

// P(L = l) as Appendix B has it, in closed form: C(T, N - l) I^(N - l) [x^l] (sum over n of
// C(I, n + 1) x^n / I)^(N - l) / C(C, N).
static double paper_probability(double threads, double items, size_t num_best, size_t misses)
{
    double base[TERMS] = {1}, power[TERMS] = {1}, place = (double)(num_best - misses);
    for (size_t n = 1; n <= misses; n++)
        base[n] = base[n - 1] * (items - (double)n) / ((double)n + 1);
    for (size_t i = 0; i < num_best - misses; i++) {
        for (size_t r = misses + 1; r-- > 0;) {
            double sum = 0;
            for (size_t j = 0; j <= r; j++) sum += base[j] * power[r - j];
            power[r] = sum;
        }
    }
    return exp(bsw_log_binomial(threads, place) + place * log(items) + log(power[misses]) -
               bsw_log_binomial(threads * items, (double)num_best));
}

UNIT_TEST(test_paper)
{
    static const double table7[] = {0.88040, 0.99256, 0.99969}; // the paper cut the first
    const struct bsw_miss_setting setting = bsw_miss_setting_of(1000000000, 256, 1000, 1);
    double found[TERMS], sum = 0;
    int is_simulated;
    assert_int_equal(setting.num_threads, 3906250);
    probabilities_of(&setting, TERMS, found, &is_simulated);
    assert_false(is_simulated);
    for (size_t l = 0; l < 12; l++) {
        double expected = paper_probability(3906250, 256, 1000, l);
        assert_near(found[l], expected, 1e-8 * expected);
        sum += found[l];
        if (l < 3) assert_near(sum, table7[l], 5e-6);
    }
}

// ---- large settings ----

static void check_sum(const struct bsw_miss_setting *setting)
{
    static double found[BSW_MISS_MAX_TERMS];
    const struct bsw_thread_class class = {setting->num_threads, setting->num_items};
    double sum = 0, mean = 0;
    int is_simulated;
    double expected = bsw_expected_misses(&class, 1, setting->num_best, setting->queue_length);
    size_t num = (size_t)(expected + 12 * sqrt(expected) + 30);
    assert_true(num <= BSW_MISS_MAX_TERMS);
    probabilities_of(setting, num, found, &is_simulated);
    assert_false(is_simulated);
    for (size_t l = 0; l < num; l++) {
        assert_true(found[l] >= 0);
        sum += found[l];
        mean += (double)l * found[l];
    }
    assert_near(sum, 1, 1e-8);
    assert_near(mean, expected, 1e-8 * (1 + expected));
}

UNIT_TEST(test_sums)
{
    static const struct bsw_miss_setting settings[] = {
        {3906250, 256, 1000, 1}, {3906, 256, 1000, 1},      {3906, 256, 1000, 2},
        {3906, 256, 3906, 4},    {100000, 16, 100000, 8},   {100000, 1 << 20, 100000, 5},
        {390625, 256, 10000, 2}, {4000000, 256, 100000, 2}, {300, 1, 300, 2},
        {1, 300, 200, 1},        {2, 300, 500, 1},          {512, 1 << 24, 500, 3},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) check_sum(&settings[i]);
}

// Settings that formula and simulation both have: the formula's at N = T, the simulation's one row
// beyond, where little differs.
UNIT_TEST(test_simulation_joins_formula)
{
    double formula[TERMS], simulated[TERMS];
    int is_simulated;
    for (uint64_t length = 2; length <= 4; length++) {
        struct bsw_miss_setting setting = {500, 64, 500, length};
        double below = 0, above = 0;
        probabilities_of(&setting, TERMS, formula, &is_simulated);
        assert_false(is_simulated);
        setting.num_best++;
        probabilities_of(&setting, TERMS, simulated, &is_simulated);
        assert_true(is_simulated);
        for (size_t l = 0; l < TERMS; l++) {
            below += formula[l];
            above += simulated[l];
            assert_near(above, below, 0.02);
        }
    }
}

// ---- rows that are no multiple of the items ----

// Real threads of a shard, T_b = 256, against what the formula assumes: never fewer misses, and
// hardly more where there are many blocks.
UNIT_TEST(test_ragged)
{
    static const struct {
        uint64_t rows, items, best;
        double most; // relative
    } cases[] = {{1000000, 256, 1000, 0.02},   {1000000, 64, 1000, 0.01}, {65537, 256, 100, 0.01},
                 {10000000, 256, 1000, 0.002}, {65536, 256, 100, 1e-9},   {5000, 3, 50, 0.06}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint64_t length = 1; length <= 2; length++) {
            struct bsw_thread_class classes[3];
            size_t num = bsw_queue_classes(cases[i].rows, cases[i].items, classes);
            double real = bsw_expected_misses(classes, num, cases[i].best, length);
            struct bsw_miss_setting setting =
                bsw_miss_setting_of(cases[i].rows, cases[i].items, cases[i].best, length);
            const struct bsw_thread_class even = {setting.num_threads, setting.num_items};
            double assumed = bsw_expected_misses(&even, 1, cases[i].best, length);
            assert_true(assumed >= real * (1 - 1e-12));
            assert_true(assumed <= real * (1 + (double)length * cases[i].most));
        }
    }
}

// The mean over uneven threads and the assumption, against all placements.
UNIT_TEST(test_ragged_placements)
{
    for (unsigned num_rows = 1; num_rows <= 14; num_rows++) {
        unsigned threads[MAX_ROWS];
        struct bsw_thread_class classes[MAX_ROWS] = {{0, 0}};
        for (unsigned r = 0; r < num_rows; r++) { // threads of 4 rows, the last of fewer
            threads[r] = r / 4;
            classes[threads[r]].num_threads = 1;
            classes[threads[r]].num_items++;
        }
        for (unsigned num_best = 1; num_best <= num_rows; num_best += 2) {
            for (unsigned length = 1; length <= 2; length++) {
                double counts[MAX_ROWS + 1], mean = 0;
                double all = enumerate(num_rows, threads, num_best, length, counts);
                for (unsigned l = 0; l <= num_rows; l++) mean += l * counts[l] / all;
                assert_near(bsw_expected_misses(classes, (num_rows + 3) / 4, num_best, length),
                            mean, 1e-10);
                struct bsw_miss_setting setting =
                    bsw_miss_setting_of(num_rows, 4, num_best, length);
                const struct bsw_thread_class even = {setting.num_threads, setting.num_items};
                if (num_best > even.num_threads * even.num_items) continue;
                double assumed = bsw_expected_misses(&even, 1, num_best, length);
                assert_true(assumed >= mean - 1e-12);
            }
        }
    }
}

UNIT_TEST(test_classes)
{
    for (uint64_t items = 1; items <= 5; items++) {
        for (uint64_t rows = 1; rows < 4000; rows += 7) {
            struct bsw_thread_class classes[3];
            uint64_t counts[BSW_QUEUE_THREADS * 4000 / BSW_QUEUE_THREADS] = {0}, sizes[7] = {0};
            for (uint64_t z = 0; z < rows; z++) {
                uint64_t block = z / (items * BSW_QUEUE_THREADS);
                counts[block * BSW_QUEUE_THREADS + z % BSW_QUEUE_THREADS]++;
            }
            for (size_t t = 0; t < 4000; t++) sizes[counts[t]]++;
            size_t num = bsw_queue_classes(rows, items, classes);
            for (size_t c = 0; c < num; c++) sizes[classes[c].num_items] -= classes[c].num_threads;
            for (size_t n = 1; n < 7; n++) assert_int_equal(sizes[n], 0);
        }
    }
}

// ---- measured ----

// Scores of all rows of a made-up query: unique, random.
static uint32_t score_of(uint64_t query, uint32_t row)
{
    return 1 + (uint32_t)(bsw_hash2(query, row) >> 33);
}

enum { MEASURED_ROWS = 1000000, MEASURED_BEST = 1000, MEASURED_QUERIES = 200, ITEMS = 256 };

// Rows of one query through the queues, block by block: how many of the best are lost.
static size_t measure_misses(uint64_t query, size_t length)
{
    const struct bsw_select_table *select = bsw_select_table_get(bsw_cpu_level_detect());
    static uint64_t tile[BSW_QUEUE_THREADS], best[8 * MEASURED_BEST], scratch[8 * MEASURED_BEST];
    static uint64_t queues[2 * BSW_QUEUE_THREADS], kept[2 * MEASURED_ROWS / ITEMS + 4096];
    size_t num_best = 0, num_kept = 0, found = 0;
    // Some 2000 rows reach it, 1000 surely.
    uint32_t limit = (uint32_t)((1ull << 31) / 1000 * 998);
    for (uint32_t row = 0; row < MEASURED_ROWS;) {
        size_t num = 0;
        if (row % (ITEMS * BSW_QUEUE_THREADS) == 0) memset(queues, 0, sizeof queues);
        for (; num < BSW_QUEUE_THREADS && row < MEASURED_ROWS; row++) {
            tile[num] = bsw_candidate_pack(score_of(query, row), row);
            if (bsw_candidate_score(tile[num]) >= limit) best[num_best++] = tile[num];
            num++;
        }
        select->queue_insert(tile, num, length, queues);
        if (row % (ITEMS * BSW_QUEUE_THREADS) == 0 || row == MEASURED_ROWS) {
            memcpy(kept + num_kept, queues, length * BSW_QUEUE_THREADS * sizeof *queues);
            num_kept += length * BSW_QUEUE_THREADS;
        }
    }
    assert_true(num_best > MEASURED_BEST);
    select->keep_best(best, num_best, MEASURED_BEST, scratch);
    uint64_t worst = UINT64_MAX;
    for (size_t i = 0; i < MEASURED_BEST; i++) worst = best[i] < worst ? best[i] : worst;
    for (size_t i = 0; i < num_kept; i++) found += kept[i] >= worst;
    return MEASURED_BEST - found;
}

// The share kept, its spread and the whole distribution, within sampling error.
static void check_measured(size_t length, double share)
{
    static size_t counts[MEASURED_BEST + 1];
    static double formula[BSW_MISS_MAX_TERMS];
    struct bsw_thread_class classes[3];
    double sum = 0, squares = 0, measured = 0, predicted = 0;
    int is_simulated;
    memset(counts, 0, sizeof counts);
    for (uint64_t query = 0; query < MEASURED_QUERIES; query++) {
        size_t misses = measure_misses(query, length);
        counts[misses]++;
        sum += (double)misses;
        squares += (double)misses * (double)misses;
    }
    double mean = sum / MEASURED_QUERIES;
    double error = sqrt((squares / MEASURED_QUERIES - mean * mean) / MEASURED_QUERIES);
    size_t num = bsw_queue_classes(MEASURED_ROWS, ITEMS, classes);
    assert_near(mean, bsw_expected_misses(classes, num, MEASURED_BEST, length), 4 * error);
    assert_near(1 - mean / MEASURED_BEST, share, 0.002);
    const struct bsw_miss_setting setting =
        bsw_miss_setting_of(MEASURED_ROWS, ITEMS, MEASURED_BEST, length);
    probabilities_of(&setting, 300, formula, &is_simulated);
    assert_false(is_simulated);
    for (size_t l = 0; l < 300; l++) {
        measured += (double)counts[l] / MEASURED_QUERIES;
        predicted += formula[l];
        assert_near(measured, predicted, 2.2 / sqrt(MEASURED_QUERIES)); // Kolmogorov, 1 in 8000
    }
}

UNIT_TEST(test_measured)
{
    check_measured(1, 0.883);
    check_measured(2, 0.9905);
}

UNIT_TEST(test_bad_settings)
{
    static const struct bsw_miss_setting bad[] = {
        {10, 10, 101, 1}, {10, 10, 0, 1}, {10, 10, 5, 0}, {0, 10, 1, 1}, {1000000, 10, 100001, 1}};
    double out[4];
    int is_simulated;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(bsw_miss_probabilities(&bad[i], 4, out, &is_simulated, &err),
                         BSW_ERROR_USAGE);
    const struct bsw_miss_setting good = {10, 10, 5, 1};
    assert_int_equal(bsw_miss_probabilities(&good, 0, out, &is_simulated, &err), BSW_ERROR_USAGE);
    assert_int_equal(
        bsw_miss_probabilities(&good, BSW_MISS_MAX_TERMS + 1, out, &is_simulated, &err),
        BSW_ERROR_USAGE);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
