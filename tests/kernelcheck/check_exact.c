#include "kernelcheck.h"

#include <string.h>

#include "kernels/exact/exact.h"
#include "kernels/refine/refine.h"

enum {
    FLOATS,
    SIGNED_ZEROS,
    SPREAD,
    CANCELS,
    TINY,
    BYTES,
    SIGNED_BYTES,
    MIXED_BYTES,
    FARTHEST,
    LARGEST,
    NUM_FILLS
};
static const char *const fill_names[] = {"floats",     "signed zeros", "spread", "cancels",
                                         "tiny",       "uint8",        "int8",   "uint8 x int8",
                                         "255 x -128", "255 x 255"};

struct shape {
    size_t num_rows, num_queries;
};

// Numbers as refine's to_double gives them. side: 0 rows, 1 queries.
static double fill_number(const struct kernelcheck *check, int fill, int side, size_t i)
{
    uint64_t random = kernelcheck_random(check, (uint64_t)side, i);
    switch (fill) {
    case FLOATS:
        return kernelcheck_float(check, (uint64_t)side, i);
    case SIGNED_ZEROS:
        return random % 8 == 0 ? 1.0 : random % 2 ? 0.0 : -0.0;
    case TINY: // products below the float32 range
        return (double)kernelcheck_float(check, (uint64_t)side, i) * 0x1p-90;
    case SPREAD: // float32 of magnitudes 2^-40 to 2^40
    case CANCELS:
        return (double)kernelcheck_float(check, (uint64_t)side, i) * (random % 3 == 0   ? 0x1p40
                                                                      : random % 3 == 1 ? 1.0
                                                                                        : 0x1p-40);
    case BYTES:
        return (double)(random % 256);
    case SIGNED_BYTES:
        return (double)(random % 256) - 128.0;
    case MIXED_BYTES:
        return (double)(random % 256) - (side ? 128.0 : 0.0);
    case FARTHEST:
        return side ? -128.0 : 255.0;
    default:
        return 255.0;
    }
}

// Number i of one side. Where rows cancel, sums are nothing but rounding: there their order shows,
// which float32 hides elsewhere.
static double make_number(const struct kernelcheck *check, int fill, int side, size_t i,
                          size_t dims)
{
    size_t place = i % dims, mirror = dims - 1 - place;
    if (fill != CANCELS || place < mirror) return fill_number(check, fill, side, i);
    if (side == 0 && place == mirror) return 0.0;
    double number = fill_number(check, fill, side, i - place + mirror);
    return side == 0 ? -number : number;
}

// Rows or queries with their norms.
struct side {
    double *numbers, *norms;
};

static struct side make_side(const struct kernelcheck *check, int fill, int side, size_t num,
                             size_t dims)
{
    struct side made = {.numbers = kernelcheck_allocate(num * dims * sizeof(double)),
                        .norms = kernelcheck_allocate(num * sizeof(double))};
    for (size_t i = 0; i < num * dims; i++) {
        double number = make_number(check, fill, side, i, dims);
        if (i % dims == dims - 1 && number == 0.0) number = 1.0; // cosine needs a norm
        made.numbers[i] = number;
    }
    for (size_t r = 0; r < num; r++)
        made.norms[r] = bsw_refine_reference.squared_norm(made.numbers + r * dims, dims);
    return made;
}

static void check_case(struct kernelcheck *check, struct shape shape, size_t dims, int fill)
{
    const struct bsw_exact_table *table = bsw_exact_table_get(check->level);
    const size_t nr = shape.num_rows, nq = shape.num_queries, bytes = nr * nq * sizeof(double);
    struct side rows = make_side(check, fill, 0, nr, dims);
    struct side queries = make_side(check, fill, 1, nq, dims);
    double *expected = kernelcheck_allocate(bytes), *found = kernelcheck_allocate(bytes);
    for (int m = 0; m < BSW_METRIC_NUM; m++) {
        enum bsw_metric metric = (enum bsw_metric)m;
        const double *row_norms = metric == BSW_METRIC_COSINE ? rows.norms : NULL;
        const double *query_norms = metric == BSW_METRIC_COSINE ? queries.norms : NULL;
        bsw_exact_reference.keys_double(metric, rows.numbers, nr, row_norms, queries.numbers, nq,
                                        query_norms, dims, expected);
        memset(found, 0xff, bytes);
        table->keys_double(metric, rows.numbers, nr, row_norms, queries.numbers, nq, query_norms,
                           dims, found);
        kernelcheck_case(check, "%s, %zu rows x %zu queries, %zu dims, %s", bsw_metric_name(metric),
                         nr, nq, dims, fill_names[fill]);
        kernelcheck_compare(check, "keys_double", expected, found, bytes);
    }
    kernelcheck_free(rows.numbers);
}

void check_exact(struct kernelcheck *check)
{
    static const struct shape shapes[] = {{1, 1}, {2, 3}, {7, 2}, {8, 4}, {9, 3}, {19, 5}, {49, 9}};
    const size_t num_shapes = sizeof shapes / sizeof shapes[0];
    for (size_t d = 0; d < kernelcheck_num_dims; d++) {
        // Long rows are summed slowly by a build without FMA: fewer of them.
        size_t num = kernelcheck_dims[d] > 500 ? num_shapes - 2 : num_shapes;
        for (size_t s = 0; s < num; s++) {
            for (int fill = 0; fill < NUM_FILLS; fill++)
                check_case(check, shapes[s], kernelcheck_dims[d], fill);
        }
    }
    for (size_t dims = 1; dims <= 70; dims++) { // every remainder of the vector loops
        check_case(check, (struct shape){3, 4}, dims, (int)dims % NUM_FILLS);
        check_case(check, (struct shape){5, 1}, dims, BYTES);
    }
    check_case(check, (struct shape){17, 131}, 33, MIXED_BYTES);
    check_case(check, (struct shape){2, 1}, 65536, FARTHEST); // sums beyond 2^31
    check_case(check, (struct shape){2, 1}, 65536, LARGEST);
}
