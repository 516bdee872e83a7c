// Exact neighbours, row by row and sorted whole, for check_groundtruth.sh,
// check_truth_definition.sh.
//
//   brute_force truth BASE A:B QUERIES A:B METRIC K OUT   ground truth in big-ann's layout, from
//                                                         sums in long double
//   brute_force define ...                                the same by the definition of exact
//                                                         values: to the bit what must be found
//   brute_force compare EXPECTED FOUND [exactly]          ids equal up to ties, values to one unit
//   brute_force scale BASE OUT SEED                       rows times seeded factors 0.25 to 4,
//   .fbin
//
// Nothing is shared with the program under test but the reading of vectors. Of truth sums run in
// order, in 64 bits of mantissa, are rounded once to float, and rows are ordered by that value and
// their id.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/half.h"
#include "common/integer_hash.h"
#include "common/metric.h"
#include "common/vectors.h"

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
    float *numbers; // every type fits float
};

static float number_at(enum bsw_vector_type type, const void *numbers, size_t i)
{
    uint16_t half;
    float single;
    switch (type) {
    case BSW_VECTOR_FLOAT32:
        memcpy(&single, (const char *)numbers + 4 * i, sizeof single);
        return single;
    case BSW_VECTOR_FLOAT16:
        memcpy(&half, (const char *)numbers + 2 * i, sizeof half);
        return bsw_half_to_float(half);
    case BSW_VECTOR_UINT8:
        return ((const uint8_t *)numbers)[i];
    default:
        return ((const int8_t *)numbers)[i];
    }
}

static struct rows load(const char *source, struct bsw_row_range range)
{
    struct bsw_error err;
    bsw_vectors *vectors;
    if (bsw_vectors_open(source, range, &vectors, &err) != BSW_OK) die("cannot open", err.message);
    struct rows rows = {.first_row = bsw_vectors_first_row(vectors),
                        .num_rows = (size_t)bsw_vectors_num_rows(vectors),
                        .dims = bsw_vectors_dims(vectors)};
    void *raw = allocate(rows.num_rows, bsw_vectors_row_bytes(vectors));
    if (bsw_vectors_read(vectors, rows.first_row, rows.num_rows, raw, &err) != BSW_OK)
        die("cannot read", err.message);
    rows.numbers = allocate(rows.num_rows * rows.dims, sizeof *rows.numbers);
    for (size_t i = 0; i < rows.num_rows * rows.dims; i++)
        rows.numbers[i] = number_at(bsw_vectors_type(vectors), raw, i);
    free(raw);
    bsw_vectors_close(&vectors);
    return rows;
}

static struct bsw_row_range parse_range(const char *text)
{
    unsigned long long first, last;
    if (sscanf(text, "%llu:%llu", &first, &last) != 2) die("no range A:B", text);
    return (struct bsw_row_range){first, last};
}

// ---- truth ----

struct neighbour {
    float value, key;
    int32_t id;
};

static float value_of(enum bsw_metric metric, const float *x, const float *q, size_t dims)
{
    long double xq = 0, xx = 0, qq = 0, apart = 0;
    for (size_t i = 0; i < dims; i++) {
        long double a = (long double)x[i], b = (long double)q[i];
        xq += a * b;
        xx += a * a;
        qq += b * b;
        apart += (a - b) * (a - b);
    }
    if (metric == BSW_METRIC_COSINE) return (float)(xq / (sqrtl(xx) * sqrtl(qq))) + 0.0f;
    return (float)(metric == BSW_METRIC_IP ? xq : apart) + 0.0f;
}

// s[j] += s[j + h] for h = 16, 8, 4, 2, 1.
static double tree_sum(double s[32])
{
    for (size_t h = 16; h > 0; h /= 2) {
        for (size_t j = 0; j < h; j++) s[j] += s[j + h];
    }
    return s[0];
}

// The definition: float64, lane i mod 32 ascending by fma from +0.0, a tree over the lanes, rounded
// once.
static float defined_value(enum bsw_metric metric, const float *x, const float *q, size_t dims)
{
    double xq[32] = {0}, xx[32] = {0}, qq[32] = {0}, apart[32] = {0};
    for (size_t i = 0; i < dims; i++) {
        double a = (double)x[i], b = (double)q[i];
        xq[i % 32] = fma(a, b, xq[i % 32]);
        xx[i % 32] = fma(a, a, xx[i % 32]);
        qq[i % 32] = fma(b, b, qq[i % 32]);
        apart[i % 32] = fma(a - b, a - b, apart[i % 32]);
    }
    if (metric == BSW_METRIC_L2) return (float)tree_sum(apart) + 0.0f;
    if (metric == BSW_METRIC_IP) return (float)tree_sum(xq) + 0.0f;
    return (float)(tree_sum(xq) / (sqrt(tree_sum(xx)) * sqrt(tree_sum(qq)))) + 0.0f;
}

// Rows that are as good as zero have no cosine.
static int has_value(enum bsw_metric metric, const float *x, size_t dims)
{
    double squares = 0;
    for (size_t i = 0; i < dims; i++) squares += (double)x[i] * (double)x[i];
    return metric != BSW_METRIC_COSINE || squares >= 1e-37;
}

static int compare_neighbours(const void *a, const void *b)
{
    const struct neighbour *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static void write_truth(const char *path, size_t num_queries, size_t k, const int32_t *ids,
                        const float *values)
{
    const uint32_t head[2] = {(uint32_t)num_queries, (uint32_t)k};
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(head, sizeof head, 1, file) != 1 ||
        fwrite(ids, sizeof *ids, num_queries * k, file) != num_queries * k ||
        fwrite(values, sizeof *values, num_queries * k, file) != num_queries * k ||
        fclose(file) != 0)
        die("cannot write", path);
}

static int run_truth(char **argv, int is_defined)
{
    struct rows base = load(argv[0], parse_range(argv[1]));
    struct rows queries = load(argv[2], parse_range(argv[3]));
    size_t k = (size_t)atoi(argv[5]), dims = base.dims;
    enum bsw_metric metric;
    if (bsw_metric_parse(argv[4], &metric, NULL) != BSW_OK) die("no metric", argv[4]);
    if (queries.dims != dims || k < 1 || k > base.num_rows) die("does not fit", argv[2]);
    struct neighbour *all = allocate(base.num_rows, sizeof *all);
    int32_t *ids = allocate(queries.num_rows * k, sizeof *ids);
    float *values = allocate(queries.num_rows * k, sizeof *values);
    for (size_t q = 0; q < queries.num_rows; q++) {
        const float *query = queries.numbers + q * dims;
        size_t count = 0;
        for (size_t r = 0; r < base.num_rows; r++) {
            const float *row = base.numbers + r * dims;
            if (!has_value(metric, row, dims)) continue;
            float value = (is_defined ? defined_value : value_of)(metric, row, query, dims);
            all[count++] = (struct neighbour){value, metric == BSW_METRIC_L2 ? -value : value,
                                              (int32_t)(base.first_row + r)};
        }
        if (k > count) die("fewer than k rows have a value", argv[0]);
        qsort(all, count, sizeof *all, compare_neighbours);
        for (size_t i = 0; i < k; i++) {
            ids[q * k + i] = all[i].id;
            values[q * k + i] = all[i].value;
        }
    }
    write_truth(argv[6], queries.num_rows, k, ids, values);
    free(all);
    free(ids);
    free(values);
    free(base.numbers);
    free(queries.numbers);
    return 0;
}

// ---- compare ----

struct truth {
    uint32_t num_queries, k;
    int32_t *ids;
    float *values;
};

static struct truth read_truth(const char *path)
{
    struct truth truth;
    FILE *file = fopen(path, "rb");
    if (!file || fread(&truth.num_queries, 4, 1, file) != 1 || fread(&truth.k, 4, 1, file) != 1)
        die("cannot read", path);
    size_t count = (size_t)truth.num_queries * truth.k;
    truth.ids = allocate(count, sizeof *truth.ids);
    truth.values = allocate(count, sizeof *truth.values);
    if (fread(truth.ids, 4, count, file) != count || fread(truth.values, 4, count, file) != count ||
        fgetc(file) != EOF)
        die("is not as long as its head says", path);
    fclose(file);
    return truth;
}

// Units in the last place between two finite floats.
static int64_t units_apart(float a, float b)
{
    int32_t bits[2];
    int64_t places[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    for (int i = 0; i < 2; i++)
        places[i] = bits[i] < 0 ? -(int64_t)(bits[i] & 0x7fffffff) : bits[i];
    return llabs(places[0] - places[1]);
}

static int is_tie(float a, float b)
{
    return isfinite(a) && isfinite(b) && units_apart(a, b) <= 1;
}

// Place i of a query: the same value, and the same id or one that ties with the expected one.
static int is_good_place(const struct truth *expected, const struct truth *found, size_t start,
                         size_t i)
{
    size_t k = expected->k;
    int32_t id = found->ids[start + i];
    for (size_t j = 0; j < i; j++) {
        if (found->ids[start + j] == id) return 0; // returned twice
    }
    if (!is_tie(expected->values[start + i], found->values[start + i])) return 0;
    for (size_t j = 0; j < k; j++) {
        if (expected->ids[start + j] == id)
            return is_tie(expected->values[start + j], expected->values[start + i]);
    }
    return is_tie(expected->values[start + k - 1], found->values[start + i]);
}

static int run_compare(const char *expected_path, const char *found_path, int exactly)
{
    struct truth expected = read_truth(expected_path), found = read_truth(found_path);
    size_t k = expected.k, others = 0;
    if (found.num_queries != expected.num_queries || found.k != k)
        die("another number of queries or k", found_path);
    for (size_t i = 0; i < expected.num_queries * k; i++) {
        int is_same = expected.ids[i] == found.ids[i] && expected.values[i] == found.values[i];
        if (is_same) continue;
        others++;
        if (!exactly && is_good_place(&expected, &found, i / k * k, i % k)) continue;
        printf("query %zu, place %zu: row %d of %.9g instead of row %d of %.9g\n", i / k, i % k,
               found.ids[i], (double)found.values[i], expected.ids[i], (double)expected.values[i]);
        return 1;
    }
    printf("%zu places, %zu of them other rows that tie\n", expected.num_queries * k, others);
    free(expected.ids);
    free(expected.values);
    free(found.ids);
    free(found.values);
    return 0;
}

// ---- scale ----

static int run_scale(const char *source, const char *out, uint64_t seed)
{
    struct rows rows = load(source, BSW_ALL_ROWS);
    const uint32_t head[2] = {(uint32_t)rows.num_rows, (uint32_t)rows.dims};
    for (size_t r = 0; r < rows.num_rows; r++) {
        double place = (double)(bsw_hash2(seed, r) >> 11) * 0x1p-53;
        float factor = (float)exp2(4 * place - 2);
        for (size_t i = 0; i < rows.dims; i++) rows.numbers[r * rows.dims + i] *= factor;
    }
    FILE *file = fopen(out, "wb");
    size_t count = rows.num_rows * rows.dims;
    if (!file || fwrite(head, sizeof head, 1, file) != 1 ||
        fwrite(rows.numbers, sizeof(float), count, file) != count || fclose(file) != 0)
        die("cannot write", out);
    free(rows.numbers);
    return 0;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (strcmp(command, "truth") == 0 && argc == 9) return run_truth(argv + 2, 0);
    if (strcmp(command, "define") == 0 && argc == 9) return run_truth(argv + 2, 1);
    if (strcmp(command, "compare") == 0 && argc == 4) return run_compare(argv[2], argv[3], 0);
    if (strcmp(command, "compare") == 0 && argc == 5 && strcmp(argv[4], "exactly") == 0)
        return run_compare(argv[2], argv[3], 1);
    if (strcmp(command, "scale") == 0 && argc == 5)
        return run_scale(argv[2], argv[3], strtoull(argv[4], NULL, 10));
    fprintf(stderr,
            "usage: brute_force truth|define|compare|scale ...: see the head of its source\n");
    return 2;
}
