// SPDX-License-Identifier: Apache-2.0
// Exact neighbours from their definition alone, row by row and sorted whole: the oracle of
// check_groundtruth.sh, check_truth_definition.sh, check_fuzzed_searches.sh and check_sweep.sh.
//
//   brute_force truth BASE A:B QUERIES A:B METRIC K OUT [OPTION ...]
//       to the bit what groundtruth, codec raw and a search that refines must find, in big-ann's
//       layout. Options: exclude-self (row i is not an answer of query i); among FILE (only the
//       rows that FILE, a result with the same queries, has for a query: a search's candidates)
//   brute_force good BASE A:B METRIC       prints how many rows have a value; truth drops the
//   others brute_force sorted FILE METRIC         each query's values in order, equal ones by row,
//   no row
//                                          twice, unfilled places last: what --refine none promises
//   brute_force compare EXPECTED FOUND     the same bytes, or where they first differ
//   brute_force scale BASE OUT SEED        rows times seeded factors 0.25 to 4, .fbin
//
// The order is (exact value, row). Integer rows and queries have it in integers: int64 under l2 and
// ip, by the sign of xq, then xq^2 times the other row's xx under cosine. All else is float64:
// number i goes to lane i mod 32 by s = fma(a, b, s), then s[j] += s[j + h] for h = 16, 8, 4, 2, 1;
// l2 sums (x - q)^2, cosine is xq / (sqrt(xx) * sqrt(qq)), of integer rows the root of
// (xq^2 / xx) / qq with the sign of xq. Only what is written is rounded to float32.
//
// The definition is checked too, against plain sums in long double (64 bits of mantissa or more):
// no value may be further off than the roundings of float64 allow, and no row may stand before one
// that is better by more than that. Nothing is shared with the program but the reading of vectors.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/rows/vectors.h"

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "brute_force: %s: %s\n", what, detail);
    exit(1);
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) die("no memory", "");
    return memory;
}

// ---- vectors ----

struct rows {
    uint64_t first_row;
    size_t num_rows, dims;
    int is_integer;
    double *numbers; // exact for every type
};

static double half_number(unsigned bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double size = exponent == 31  ? (mantissa ? NAN : INFINITY)
                  : exponent == 0 ? ldexp(mantissa, -24)
                                  : ldexp(1024 + mantissa, exponent - 25);
    return bits & 0x8000 ? -size : size;
}

static double number_at(enum bsw_vector_type type, const unsigned char *bytes, size_t i)
{
    uint16_t half;
    float single;
    switch (type) {
    case BSW_VECTOR_FLOAT32:
        memcpy(&single, bytes + 4 * i, sizeof single);
        return (double)single;
    case BSW_VECTOR_FLOAT16:
        memcpy(&half, bytes + 2 * i, sizeof half);
        return half_number(half);
    case BSW_VECTOR_UINT8:
        return bytes[i];
    default:
        return (int8_t)bytes[i];
    }
}

static struct bsw_row_range parse_range(const char *text)
{
    unsigned long long first, last;
    if (sscanf(text, "%llu:%llu", &first, &last) != 2) die("no range A:B", text);
    return (struct bsw_row_range){first, last};
}

static struct rows load(const char *source, const char *range)
{
    struct bsw_error err;
    bsw_vectors *vectors;
    if (bsw_vectors_open(source, range ? parse_range(range) : BSW_ALL_ROWS, &vectors, &err) !=
        BSW_OK)
        die("cannot open", err.message);
    enum bsw_vector_type type = bsw_vectors_type(vectors);
    struct rows rows = {.first_row = bsw_vectors_first_row(vectors),
                        .num_rows = (size_t)bsw_vectors_num_rows(vectors),
                        .dims = bsw_vectors_dims(vectors),
                        .is_integer = type == BSW_VECTOR_UINT8 || type == BSW_VECTOR_INT8};
    void *raw = allocate(rows.num_rows, bsw_vectors_row_bytes(vectors));
    if (bsw_vectors_read(vectors, rows.first_row, rows.num_rows, raw, &err) != BSW_OK)
        die("cannot read", err.message);
    rows.numbers = allocate(rows.num_rows * rows.dims, sizeof *rows.numbers);
    for (size_t i = 0; i < rows.num_rows * rows.dims; i++)
        rows.numbers[i] = number_at(type, raw, i);
    free(raw);
    bsw_vectors_close(&vectors);
    return rows;
}

// ---- values ----

enum metric { COSINE, IP, L2 };

static enum metric parse_metric(const char *name)
{
    if (strcmp(name, "cosine") == 0) return COSINE;
    if (strcmp(name, "ip") == 0) return IP;
    if (strcmp(name, "l2") != 0) die("no metric", name);
    return L2;
}

struct pair {
    enum metric metric;
    int is_integer, has_integer_row;
    const double *x, *q;
    size_t dims;
};

struct neighbour {
    int64_t id;
    int64_t whole;   // the value where rows and queries are integers, not cosine
    double real;     // elsewhere
    int64_t product; // cosine of integers: xq and xx; else norm is 0
    uint64_t norm;
    long double plain, bound; // |value - plain| <= bound
    float written;
};

// s[j] += s[j + h] for h = 16, 8, 4, 2, 1.
static double tree_sum(double s[32])
{
    for (size_t h = 16; h > 0; h /= 2) {
        for (size_t j = 0; j < h; j++) s[j] += s[j + h];
    }
    return s[0];
}

static int64_t whole_value(const struct pair *p)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->dims; i++) {
        int64_t x = (int64_t)p->x[i], q = (int64_t)p->q[i];
        sum += p->metric == L2 ? (x - q) * (x - q) : x * q;
    }
    return sum;
}

static double real_value(const struct pair *p)
{
    double xq[32] = {0}, xx[32] = {0}, qq[32] = {0}, apart[32] = {0};
    for (size_t i = 0; i < p->dims; i++) {
        double x = p->x[i], q = p->q[i];
        if (p->metric == L2) {
            apart[i % 32] = fma(x - q, x - q, apart[i % 32]);
            continue;
        }
        xq[i % 32] = fma(x, q, xq[i % 32]);
        if (p->metric == IP) continue;
        xx[i % 32] = fma(x, x, xx[i % 32]);
        qq[i % 32] = fma(q, q, qq[i % 32]);
    }
    if (p->metric == L2) return tree_sum(apart);
    if (p->metric == IP) return tree_sum(xq);
    double s = tree_sum(xq), n = tree_sum(xx), norm = tree_sum(qq);
    if (!p->has_integer_row) return s / (sqrt(n) * sqrt(norm));
    // For integers the square needs 64 bits, so many as a long double has.
    double share =
        p->is_integer ? (double)((long double)s * (long double)s / (long double)n) : s * s / n;
    return copysign(sqrt(share / norm), s);
}

static void take_integers(const struct pair *p, struct neighbour *n)
{
    for (size_t i = 0; i < p->dims; i++) {
        int64_t x = (int64_t)p->x[i], q = (int64_t)p->q[i];
        n->product += x * q;
        n->norm += (uint64_t)(x * x);
    }
}

// The value in long double, and how far float64 may be from it. A rounding of float64 errs by a
// share of u = 2^-53. A term meets one of its own lane's n = ceil(dims / 32) sums and 5 of the
// tree, and l2's difference is rounded before it is squared: (n + 7) u of the sum S of the terms'
// sizes. A cosine adds that share of the norms' squares, half of it for each root, two roots, a
// product and a quotient: (n + 9) u of itself. So (n + 12) * 2^-52 is twice too much, in which
// second orders and the errors of long double, 2^-64 a term, find room.
static void check_value(const struct pair *p, struct neighbour *n)
{
    long double xq = 0, xx = 0, qq = 0, apart = 0, sizes = 0;
    for (size_t i = 0; i < p->dims; i++) {
        long double x = (long double)p->x[i], q = (long double)p->q[i];
        xq += x * q;
        sizes += fabsl(x * q);
        xx += x * x;
        qq += q * q;
        apart += (x - q) * (x - q);
    }
    long double share = (long double)((p->dims + 31) / 32 + 12) * 0x1p-52L;
    long double norms = sqrtl(xx) * sqrtl(qq);
    n->plain = p->metric == L2 ? apart : p->metric == IP ? xq : xq / norms;
    n->bound = p->is_integer && p->metric != COSINE ? 0
               : p->metric == L2                    ? share * apart
               : p->metric == IP                    ? share * sizes
                                                    : share * (sizes / norms + fabsl(n->plain));
    long double value =
        p->is_integer && p->metric != COSINE ? (long double)n->whole : (long double)n->real;
    if (!(fabsl(value - n->plain) <= n->bound)) die("a value is off", "the definition is at fault");
}

static struct neighbour neighbour_of(const struct pair *p, uint64_t id)
{
    struct neighbour n = {.id = (int64_t)id};
    if (p->is_integer && p->metric != COSINE) {
        n.whole = whole_value(p);
        n.written = (float)n.whole + 0.0f;
    } else {
        n.real = real_value(p);
        n.written = (float)n.real + 0.0f;
        if (p->is_integer) take_integers(p, &n);
    }
    check_value(p, &n);
    return n;
}

// Rows with NaN or Inf, or as good as that, have no value; under cosine also those below 1e-70,
// zeros among them.
static int has_value(enum metric metric, const double *x, size_t dims)
{
    double squares = 0;
    for (size_t i = 0; i < dims; i++) squares += x[i] * x[i];
    return squares <= 1e37 && (metric != COSINE || squares >= 1e-70);
}

// ---- order ----

__extension__ typedef unsigned __int128 wide;

// Cosines with the same query: above 0 where x's is larger.
static int compare_cosines(const struct neighbour *x, const struct neighbour *y)
{
    int sign = (x->product > 0) - (x->product < 0), other = (y->product > 0) - (y->product < 0);
    uint64_t s = (uint64_t)llabs(x->product), t = (uint64_t)llabs(y->product);
    wide left = (wide)(s * s) * y->norm, right = (wide)(t * t) * x->norm;
    if (sign != other) return sign > other ? 1 : -1;
    return left == right ? 0 : (left > right) == (sign > 0) ? 1 : -1;
}

// One of whole and real is 0 in both.
static int compare_similar(const void *a, const void *b)
{
    const struct neighbour *x = a, *y = b;
    if (x->norm > 0) {
        int order = compare_cosines(x, y);
        return order ? -order : (x->id > y->id) - (x->id < y->id);
    }
    if (x->whole != y->whole) return x->whole < y->whole ? 1 : -1;
    if (x->real != y->real) return x->real < y->real ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static int compare_near(const void *a, const void *b)
{
    const struct neighbour *x = a, *y = b;
    if (x->whole != y->whole) return x->whole > y->whole ? 1 : -1;
    if (x->real != y->real) return x->real > y->real ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

// No row is better than one before it by more than both may be off.
static void check_order(enum metric metric, const struct neighbour *sorted, size_t count)
{
    long double worst = INFINITY; // what a later row may have at most
    for (size_t i = 0; i < count; i++) {
        long double plain = metric == L2 ? -sorted[i].plain : sorted[i].plain;
        if (plain - sorted[i].bound > worst) die("rows out of order", "the definition is at fault");
        worst = fminl(worst, plain + sorted[i].bound);
    }
}

// ---- files of results ----

struct truth {
    uint32_t num_queries, k;
    int32_t *ids;
    float *values;
};

static struct truth make_truth(size_t num_queries, size_t k)
{
    struct truth truth = {.num_queries = (uint32_t)num_queries, .k = (uint32_t)k};
    truth.ids = allocate(num_queries * k, sizeof *truth.ids);
    truth.values = allocate(num_queries * k, sizeof *truth.values);
    return truth;
}

static void free_truth(struct truth *truth)
{
    free(truth->ids);
    free(truth->values);
}

static void write_truth(const char *path, const struct truth *truth)
{
    size_t count = (size_t)truth->num_queries * truth->k;
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(&truth->num_queries, 4, 1, file) != 1 ||
        fwrite(&truth->k, 4, 1, file) != 1 || fwrite(truth->ids, 4, count, file) != count ||
        fwrite(truth->values, 4, count, file) != count || fclose(file) != 0)
        die("cannot write", path);
}

static struct truth read_truth(const char *path)
{
    uint32_t head[2];
    FILE *file = fopen(path, "rb");
    if (!file || fread(head, 4, 2, file) != 2) die("cannot read", path);
    struct truth truth = make_truth(head[0], head[1]);
    size_t count = (size_t)head[0] * head[1];
    if (fread(truth.ids, 4, count, file) != count || fread(truth.values, 4, count, file) != count ||
        fgetc(file) != EOF)
        die("is not as long as its head says", path);
    fclose(file);
    return truth;
}

// ---- truth ----

struct question {
    struct rows base, queries;
    enum metric metric;
    size_t k;
    int is_self_excluded;
    struct truth among; // k 0: all rows
};

static int is_candidate(const struct question *question, size_t query, uint64_t id)
{
    const struct truth *among = &question->among;
    if (question->is_self_excluded && id == question->queries.first_row + query) return 0;
    for (size_t i = 0; i < among->k; i++) {
        if (among->ids[query * among->k + i] == (int64_t)id) return 1;
    }
    return among->k == 0;
}

// The rows that can answer a query, best first.
static size_t rank_rows(const struct question *question, size_t query, struct neighbour *all)
{
    const struct rows *base = &question->base, *queries = &question->queries;
    size_t count = 0, dims = base->dims;
    for (size_t r = 0; r < base->num_rows; r++) {
        const struct pair pair = {
            question->metric,         base->is_integer && queries->is_integer, base->is_integer,
            base->numbers + r * dims, queries->numbers + query * dims,         dims};
        uint64_t id = base->first_row + r;
        if (is_candidate(question, query, id) && has_value(question->metric, pair.x, dims))
            all[count++] = neighbour_of(&pair, id);
    }
    qsort(all, count, sizeof *all, question->metric == L2 ? compare_near : compare_similar);
    check_order(question->metric, all, count);
    return count;
}

static void answer(const struct question *question, const char *path)
{
    size_t k = question->k, num_queries = question->queries.num_rows;
    struct truth truth = make_truth(num_queries, k);
    struct neighbour *all = allocate(question->base.num_rows, sizeof *all);
    for (size_t q = 0; q < num_queries; q++) {
        size_t count = rank_rows(question, q, all);
        for (size_t i = 0; i < k; i++) {
            truth.ids[q * k + i] = i < count ? (int32_t)all[i].id : -1;
            truth.values[q * k + i] = i < count                ? all[i].written
                                      : question->metric == L2 ? INFINITY
                                                               : -INFINITY;
        }
    }
    write_truth(path, &truth);
    free(all);
    free_truth(&truth);
}

static int run_truth(int count, char **argv)
{
    struct question question = {.base = load(argv[0], argv[1]),
                                .queries = load(argv[2], argv[3]),
                                .metric = parse_metric(argv[4]),
                                .k = strtoul(argv[5], NULL, 10)};
    for (int i = 7; i < count; i++) {
        if (strcmp(argv[i], "exclude-self") == 0)
            question.is_self_excluded = 1;
        else if (strcmp(argv[i], "among") == 0 && i + 1 < count)
            question.among = read_truth(argv[++i]);
        else
            die("no option", argv[i]);
    }
    if (question.queries.dims != question.base.dims || question.k < 1) die("does not fit", argv[2]);
    if (question.among.k > 0 && question.among.num_queries != question.queries.num_rows)
        die("has other queries", argv[2]);
    answer(&question, argv[6]);
    free_truth(&question.among);
    free(question.base.numbers);
    free(question.queries.numbers);
    return 0;
}

static int run_good(const char *source, const char *range, const char *metric)
{
    struct rows rows = load(source, range);
    size_t count = 0;
    for (size_t r = 0; r < rows.num_rows; r++)
        count += (size_t)has_value(parse_metric(metric), rows.numbers + r * rows.dims, rows.dims);
    printf("%zu\n", count);
    free(rows.numbers);
    return 0;
}

// ---- compare ----

static int run_sorted(const char *path, enum metric metric)
{
    struct truth found = read_truth(path);
    for (size_t i = 0; i < (size_t)found.num_queries * found.k; i++) {
        size_t start = i / found.k * found.k;
        float sign = metric == L2 ? -1.0f : 1.0f, value = sign * found.values[i];
        int is_good = found.ids[i] >= 0 ? isfinite(value) : value == -INFINITY;
        if (i > start) is_good &= sign * found.values[i - 1] >= value;
        for (size_t j = start; j < i && found.ids[i] >= 0; j++)
            is_good &= found.ids[j] != found.ids[i];
        if (is_good) continue;
        printf("query %zu, place %zu: row %d of %.9g is not in order\n", start / found.k, i - start,
               found.ids[i], (double)found.values[i]);
        return 1;
    }
    free_truth(&found);
    return 0;
}

// Where values are alike, only rows whose values are rounded to the same float32 took other places.
static int run_compare(const char *expected_path, const char *found_path)
{
    struct truth expected = read_truth(expected_path), found = read_truth(found_path);
    size_t k = expected.k, count = expected.num_queries * k, others = 0, first = 0;
    if (found.num_queries != expected.num_queries || found.k != k)
        die("another number of queries or k", found_path);
    for (size_t i = count; i-- > 0;) {
        if (expected.ids[i] == found.ids[i] &&
            memcmp(&expected.values[i], &found.values[i], sizeof(float)) == 0)
            continue;
        others++;
        first = i;
    }
    int are_values_alike = memcmp(expected.values, found.values, count * sizeof(float)) == 0;
    if (others > 0) {
        printf("query %zu, place %zu: row %d of %.9g instead of row %d of %.9g; %zu of %zu places, "
               "%s values\n",
               first / k, first % k, found.ids[first], (double)found.values[first],
               expected.ids[first], (double)expected.values[first], others, count,
               are_values_alike ? "the same" : "other");
    }
    free_truth(&expected);
    free_truth(&found);
    return others > 0;
}

// ---- scale ----

static int run_scale(const char *source, const char *out, uint64_t seed)
{
    struct rows rows = load(source, NULL);
    const uint32_t head[2] = {(uint32_t)rows.num_rows, (uint32_t)rows.dims};
    FILE *file = fopen(out, "wb");
    if (!file || fwrite(head, sizeof head, 1, file) != 1) die("cannot write", out);
    for (size_t r = 0; r < rows.num_rows; r++) {
        double place = (double)(bsw_hash2(seed, r) >> 11) * 0x1p-53;
        float factor = (float)exp2(4 * place - 2);
        for (size_t i = 0; i < rows.dims; i++) {
            float number = (float)rows.numbers[r * rows.dims + i] * factor;
            fwrite(&number, sizeof number, 1, file);
        }
    }
    if (ferror(file) || fclose(file) != 0) die("cannot write", out);
    free(rows.numbers);
    return 0;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (strcmp(command, "truth") == 0 && argc >= 9) return run_truth(argc - 2, argv + 2);
    if (strcmp(command, "good") == 0 && argc == 5) return run_good(argv[2], argv[3], argv[4]);
    if (strcmp(command, "sorted") == 0 && argc == 4)
        return run_sorted(argv[2], parse_metric(argv[3]));
    if (strcmp(command, "compare") == 0 && argc == 4) return run_compare(argv[2], argv[3]);
    if (strcmp(command, "scale") == 0 && argc == 5)
        return run_scale(argv[2], argv[3], strtoull(argv[4], NULL, 10));
    fprintf(stderr, "usage: brute_force truth|good|sorted|compare|scale ...: see the head of its "
                    "source\n");
    return 2;
}
