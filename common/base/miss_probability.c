// SPDX-License-Identifier: Apache-2.0
#include "common/base/miss_probability.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"

// ---- binomials ----

// log n! - (log(2 pi n) / 2 + n log n - n): Stirling's series where it converges fast.
static double stirling_rest(double n)
{
    static const double half_log_two_pi = 0.91893853320467274178;
    if (n < 16) return lgamma(n + 1) - (half_log_two_pi + (n + 0.5) * log(n) - n);
    double s = 1 / (n * n);
    return (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s / 1680))) / n;
}

// From the entropy, not from differences of factorials, which lose all digits for large n.
double bsw_log_binomial(double n, double k)
{
    static const double log_two_pi = 1.83787706640934548356;
    if (k < 0 || k > n) return -INFINITY;
    if (2 * k > n) k = n - k;
    if (k == 0) return 0;
    double entropy = k * log(n / k) - (n - k) * log1p(-k / n);
    double width = 0.5 * (log(n / k / (n - k)) - log_two_pi);
    return entropy + width + stirling_rest(n) - stirling_rest(k) - stirling_rest(n - k);
}

// ---- settings ----

struct bsw_miss_setting bsw_miss_setting_of(uint64_t num_rows, uint64_t num_items,
                                            uint64_t num_best, uint64_t queue_length)
{
    uint64_t items = num_items < num_rows ? num_items : num_rows;
    return (struct bsw_miss_setting){items > 0 ? num_rows / items : 0, items, num_best,
                                     queue_length};
}

static enum bsw_status check(const struct bsw_miss_setting *s, size_t num_terms,
                             struct bsw_error *err)
{
    double rows = (double)s->num_threads * (double)s->num_items;
    if (s->num_best < 1 || s->num_best > BSW_MISS_MAX_BEST || (double)s->num_best > rows) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "misses of the best %llu of %.0f rows: must be 1 to %d, no more than rows",
                        (unsigned long long)s->num_best, rows, BSW_MISS_MAX_BEST);
    }
    if (s->queue_length < 1 || num_terms < 1 || num_terms > BSW_MISS_MAX_TERMS) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "misses with queues of %llu, %zu terms: must be at least 1, and 1 to %d "
                        "terms",
                        (unsigned long long)s->queue_length, num_terms, BSW_MISS_MAX_TERMS);
    }
    return BSW_OK;
}

// ---- powers of D: what threads with misses add ----

// Coefficients of D(w) / (C(I, Q + 1) w) in w / I: none above 1. Long doubles, because products of
// the last ones fall below 1e-308.
static void fill_base(const struct bsw_miss_setting *s, size_t num, long double *base)
{
    double items = (double)s->num_items, length = (double)s->queue_length;
    base[0] = items > length ? 1 : 0;
    for (size_t j = 1; j < num; j++) {
        double n = length + 1 + (double)j;
        base[j] = n > items ? 0 : base[j - 1] * (items - n + 1) / (n * items);
    }
}

// power *= base, cut to num coefficients; from the top down, so in place.
static void multiply(const long double *base, size_t num, long double *power)
{
    for (size_t r = num; r-- > 0;) {
        long double sum = 0;
        for (size_t j = 0; j <= r; j++) sum += base[j] * power[r - j];
        power[r] = sum;
    }
}

// ---- powers of A: the threads that keep all they have ----

// logs[l] = log [x^(N - Qm - l)] A(x)^(T - m), l < num; -INFINITY: none.
static void fill_single(const struct bsw_miss_setting *s, size_t m, size_t num, double *logs)
{
    double threads = (double)s->num_threads - (double)m, log_items = log((double)s->num_items);
    for (size_t l = 0; l < num; l++) {
        double n = (double)s->num_best - (double)m - (double)l;
        logs[l] = n < 0 ? -INFINITY : bsw_log_binomial(threads, n) + n * log_items;
    }
}

// The same for Q > 1 by A p' = E A' p for p = A^E, term by term: n p_n = sum over k of
// ((E + 1) k - n) a_k p_(n-k), all terms >= 0 up to n = E + 1. In x / I, whose a_k <= 1; the last
// `length` terms stand at `window`, scaled by exp(shift).
static void fill_power(const struct bsw_miss_setting *s, size_t m, size_t num, double *a,
                       double *window, double *logs)
{
    size_t length = (size_t)s->queue_length;
    double power = (double)s->num_threads - (double)m, log_items = log((double)s->num_items);
    double shift = 0, last = (double)s->num_best - (double)length * (double)m;
    for (size_t l = 0; l < num; l++) logs[l] = -INFINITY;
    memset(window, 0, length * sizeof *window);
    for (size_t n = 0; (double)n <= last; n++) {
        double sum = n == 0 ? 1 : 0;
        size_t most = n < length ? n : length;
        for (size_t k = 1; k <= most; k++)
            sum += ((power + 1) * (double)k - (double)n) * a[k] * window[(n - k) % length];
        if (n > 0) sum /= (double)n;
        if (sum > 1e200 || (sum > 0 && sum < 1e-200)) {
            shift += log(sum);
            for (size_t k = 0; k < length; k++) window[k] /= sum;
            sum = 1;
        }
        window[n % length] = sum;
        double place = last - (double)n;
        if (place < (double)num && sum > 0)
            logs[(size_t)place] = log(sum) + shift + (double)n * log_items;
    }
}

static void fill_coefficients(const struct bsw_miss_setting *s, double *a)
{
    double items = (double)s->num_items;
    a[0] = 1;
    for (size_t k = 1; k <= s->queue_length; k++)
        a[k] = (double)k > items ? 0 : a[k - 1] * (items - (double)k + 1) / ((double)k * items);
}

// ---- the sum ----

struct miss_terms {
    const struct bsw_miss_setting *setting;
    size_t num;
    long double *base, *power; // [num]
    double *logs;              // [num]
    double *a, *window;        // [Q + 1], [Q]
    double log_all;            // placements
};

// What m threads with misses add: the factors are logs but for the powers of D.
static void add_terms(const struct miss_terms *terms, size_t m, double *probabilities)
{
    const struct bsw_miss_setting *s = terms->setting;
    double items = (double)s->num_items, log_items = log(items);
    double choices = bsw_log_binomial((double)s->num_threads, (double)m);
    double unit = m > 0 ? (double)m * bsw_log_binomial(items, (double)s->queue_length + 1) : 0;
    if (choices == -INFINITY || unit == -INFINITY) return;
    if (s->queue_length == 1)
        fill_single(s, m, terms->num, terms->logs);
    else
        fill_power(s, m, terms->num, terms->a, terms->window, terms->logs);
    for (size_t l = m; l < terms->num; l++) {
        long double d = terms->power[l - m];
        if (d <= 0 || terms->logs[l] == -INFINITY) continue;
        double scaled = (double)logl(d) + (double)(l - m) * log_items;
        probabilities[l] += exp(choices + unit + scaled + terms->logs[l] - terms->log_all);
    }
}

static void sum_terms(struct miss_terms *terms, double *probabilities)
{
    const struct bsw_miss_setting *s = terms->setting;
    fill_base(s, terms->num, terms->base);
    fill_coefficients(s, terms->a);
    memset(terms->power, 0, terms->num * sizeof *terms->power);
    memset(probabilities, 0, terms->num * sizeof *probabilities);
    terms->power[0] = 1;
    terms->log_all =
        bsw_log_binomial((double)s->num_threads * (double)s->num_items, (double)s->num_best);
    for (size_t m = 0; m < terms->num && m <= s->num_threads; m++) {
        // m threads miss m rows at least: they hold (Q + 1) m of the N.
        if ((double)(s->queue_length + 1) * (double)m > (double)s->num_best) break;
        if (m > 0) multiply(terms->base, terms->num - m, terms->power);
        add_terms(terms, m, probabilities);
    }
}

static enum bsw_status evaluate(const struct bsw_miss_setting *setting, size_t num_terms,
                                double *probabilities, struct bsw_error *err)
{
    // Longer queues than rows change nothing.
    struct bsw_miss_setting s = *setting;
    if (s.queue_length > s.num_items) s.queue_length = s.num_items;
    if (s.queue_length > s.num_best) s.queue_length = s.num_best;
    struct miss_terms terms = {.setting = &s, .num = num_terms};
    size_t length = (size_t)s.queue_length;
    enum bsw_status status =
        bsw_allocate(&terms.base, 2 * num_terms, sizeof *terms.base, "powers of polynomials", err);
    if (status == BSW_OK)
        status = bsw_allocate(&terms.logs, num_terms + 2 * length + 1, sizeof *terms.logs,
                              "powers of polynomials", err);
    if (status == BSW_OK) {
        terms.power = terms.base + num_terms;
        terms.a = terms.logs + num_terms;
        terms.window = terms.a + length + 1;
        sum_terms(&terms, probabilities);
    }
    bsw_free(&terms.base);
    bsw_free(&terms.logs);
    return status;
}

// ---- simulation ----

#define SIMULATED_PLACEMENTS ((uint64_t)50000000)
#define MAX_TRIALS           ((uint64_t)100000)

// One placement: rows take free places one by one; returns the misses.
static uint64_t place_once(const struct bsw_miss_setting *s, uint64_t trial, uint32_t *counts)
{
    uint64_t misses = 0, draw = bsw_hash(trial);
    memset(counts, 0, (size_t)s->num_threads * sizeof *counts);
    for (uint64_t placed = 0; placed < s->num_best;) {
        draw += 0x9e3779b97f4a7c15u;
        uint64_t place =
            (uint64_t)((unsigned __int128)bsw_hash(draw) * (s->num_threads * s->num_items) >> 64);
        uint32_t *count = &counts[place / s->num_items];
        if (place % s->num_items < *count) continue; // as many of its places are taken
        misses += *count >= s->queue_length;
        (*count)++;
        placed++;
    }
    return misses;
}

static enum bsw_status simulate(const struct bsw_miss_setting *s, size_t num_terms,
                                double *probabilities, struct bsw_error *err)
{
    uint32_t *counts;
    uint64_t trials = SIMULATED_PLACEMENTS / s->num_best;
    if (trials > MAX_TRIALS) trials = MAX_TRIALS;
    BSW_TRY(bsw_allocate(&counts, s->num_threads, sizeof *counts, "simulated threads", err));
    memset(probabilities, 0, num_terms * sizeof *probabilities);
    for (uint64_t trial = 0; trial < trials; trial++) {
        uint64_t misses = place_once(s, trial, counts);
        if (misses < num_terms) probabilities[misses] += 1;
    }
    for (size_t l = 0; l < num_terms; l++) probabilities[l] /= (double)trials;
    bsw_free(&counts);
    return BSW_OK;
}

enum bsw_status bsw_miss_probabilities(const struct bsw_miss_setting *setting, size_t num_terms,
                                       double *probabilities, int *is_simulated,
                                       struct bsw_error *err)
{
    *is_simulated = 0;
    BSW_TRY(check(setting, num_terms, err));
    *is_simulated = setting->num_best > setting->num_threads && setting->queue_length > 1;
    return *is_simulated ? simulate(setting, num_terms, probabilities, err)
                         : evaluate(setting, num_terms, probabilities, err);
}

// ---- the mean ----

// E[max(n - Q, 0)] of a thread with `items` of `rows` rows, `best` of them drawn: from the mode
// outwards terms fall, so that stopping at the last that counts is safe.
static double thread_misses(double rows, double items, double best, double length)
{
    double most = items < best ? items : best, least = best - (rows - items);
    double n = length + 1 > least ? length + 1 : least, sum = 0;
    if (n > most) return 0;
    double mode = floor((items + 1) * (best + 1) / (rows + 2));
    double log_p = bsw_log_binomial(items, n) + bsw_log_binomial(rows - items, best - n) -
                   bsw_log_binomial(rows, best);
    for (; n <= most; n++) {
        double term = (n - length) * exp(log_p);
        sum += term;
        if (n > mode + 1 && term < 1e-17 * sum) break;
        log_p += log((items - n) / (n + 1) * ((best - n) / (rows - items - best + n + 1)));
    }
    return sum;
}

double bsw_expected_misses(const struct bsw_thread_class *classes, size_t num_classes,
                           uint64_t num_best, uint64_t queue_length)
{
    double rows = 0, misses = 0;
    for (size_t c = 0; c < num_classes; c++)
        rows += (double)classes[c].num_threads * (double)classes[c].num_items;
    for (size_t c = 0; c < num_classes; c++) {
        if (classes[c].num_threads == 0) continue;
        misses +=
            (double)classes[c].num_threads * thread_misses(rows, (double)classes[c].num_items,
                                                           (double)num_best, (double)queue_length);
    }
    return misses;
}
