// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/encode/encode.h"

enum row_kind {
    GAUSSIAN,
    ZERO,
    EQUAL,    // one magnitude, often a power of two: codes fall on boundaries, or an ulp off
    BOUNDARY, // multiples of 2^-8 and their neighbours
    HUGE_ROW, // about 1e18
    ON_STEP,  // an eighth of the numbers at 2 * t * rms, where saq's floor turns on one ulp
    TINY,     // about 1e-20: squares are subnormal
    MIXED,    // signed zeros, subnormals, ordinary numbers
    NUM_ROW_KINDS
};

static const float saq_steps[] = {0.5f, 0.25f, 0.7979f, 0.0153f, 0x1p-10f};
#define NUM_STEPS (sizeof saq_steps / sizeof saq_steps[0])

// If seven of eight numbers are 1 and one is this, it is 2 * t * rms.
static float on_step(double t)
{
    return (float)sqrt(4 * t * t * 0.875 / (1 - 4 * t * t / 8));
}

static float hostile_number(const struct kernelcheck *check, enum row_kind kind, uint64_t stream,
                            uint64_t row, uint64_t i)
{
    uint64_t random = kernelcheck_random(check, stream + 1000, row * 65536 + i);
    float gaussian = kernelcheck_float(check, stream, row * 65536 + i);
    uint64_t row_random = kernelcheck_random(check, stream + 2000, row);
    float power = ldexpf(1.0f, (int)(row_random % 5) - 3);
    float magnitude = row_random >> 32 & 1 ? power : kernelcheck_float(check, stream + 3000, row);
    float boundary = ((float)(random % 1025) - 512.0f) * 0x1p-8f;
    switch (kind) {
    case ZERO:
        return random % 2 ? 0.0f : -0.0f;
    case EQUAL:
        return random % 4 ? magnitude : -magnitude;
    case BOUNDARY:
        return random >> 32 & 1 ? boundary : nextafterf(boundary, random >> 33 & 1 ? 2.0f : -2.0f);
    case ON_STEP:
        return i % 8 ? magnitude : magnitude * on_step(saq_steps[row_random / 5 % NUM_STEPS]);
    case HUGE_ROW:
        return gaussian * 1e18f;
    case TINY:
        return gaussian * 1e-20f * power;
    case MIXED:
        if (random % 4 == 0) return random >> 32 & 1 ? 0.0f : -0.0f;
        return random % 4 == 1 ? gaussian * 1e-40f : gaussian;
    default:
        return gaussian;
    }
}

// Rows of every kind take turns, from kind `first` on. Dense, `stride` numbers apart; what is
// beyond dims is left alone.
static void fill_rows(const struct kernelcheck *check, uint64_t stream, int first, float *rows,
                      size_t num_rows, size_t dims, size_t stride)
{
    for (size_t r = 0; r < num_rows; r++) {
        enum row_kind kind = (enum row_kind)((r + (size_t)first) % NUM_ROW_KINDS);
        for (size_t i = 0; i < dims; i++) {
            rows[r * stride + i] = hostile_number(check, kind, stream, r, i);
        }
    }
}

static float *allocate_floats(size_t n)
{
    return kernelcheck_allocate(n * sizeof(float));
}

static const struct bsw_encode_table *candidate_of(const struct kernelcheck *check)
{
    return bsw_encode_table_get(check->level);
}

// ---- to_float ----

// All halves, NaN too; random bytes of the other types.
static void check_to_float(struct kernelcheck *check)
{
    static const size_t counts[] = {1, 7, 8, 9, 15, 16, 17, 31, 33, 100, 1000, 65536};
    for (int type = BSW_VECTOR_FLOAT32; type <= BSW_VECTOR_INT8; type++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            size_t n = counts[c];
            size_t bytes = n * (type == BSW_VECTOR_FLOAT32   ? 4
                                : type == BSW_VECTOR_FLOAT16 ? 2
                                                             : 1);
            unsigned char *numbers = kernelcheck_allocate(bytes);
            float *expected = allocate_floats(n), *found = allocate_floats(n);
            for (size_t i = 0; i < bytes; i++) {
                numbers[i] = (unsigned char)kernelcheck_random(check, 1 + c, i);
                if (type == BSW_VECTOR_FLOAT16 && n == 65536) {
                    numbers[i] = (unsigned char)(i % 2 ? i / 512 : i / 2);
                }
            }
            bsw_encode_reference.to_float((enum bsw_vector_type)type, numbers, n, expected);
            candidate_of(check)->to_float((enum bsw_vector_type)type, numbers, n, found);
            kernelcheck_case(check, "type %d, %zu numbers", type, n);
            kernelcheck_compare(check, "to_float", expected, found, n * sizeof *found);
            kernelcheck_free(numbers);
        }
    }
}

// ---- squared_norms ----

static void check_squared_norms(struct kernelcheck *check, size_t num_rows, size_t dims)
{
    float *rows = allocate_floats(num_rows * dims);
    double *expected = kernelcheck_allocate(num_rows * sizeof *expected);
    double *found = kernelcheck_allocate(num_rows * sizeof *found);
    fill_rows(check, 1, 0, rows, num_rows, dims, dims);
    bsw_encode_reference.squared_norms(rows, num_rows, dims, expected);
    candidate_of(check)->squared_norms(rows, num_rows, dims, found);
    kernelcheck_case(check, "%zu rows of %zu", num_rows, dims);
    kernelcheck_compare(check, "squared_norms", expected, found, num_rows * sizeof *found);
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) { // which NaN is left open
        rows[kernelcheck_random(check, 2, b) % (num_rows * dims)] = bad[b];
        bsw_encode_reference.squared_norms(rows, num_rows, dims, expected);
        candidate_of(check)->squared_norms(rows, num_rows, dims, found);
        for (size_t r = 0; r < num_rows; r++) {
            int finite[2] = {isfinite(expected[r]) != 0, isfinite(found[r]) != 0};
            kernelcheck_case(check, "row %zu of %zu with NaN or Inf", r, dims);
            kernelcheck_compare(check, "squared_norms", &finite[0], &finite[1], sizeof finite[0]);
        }
    }
    kernelcheck_free(rows);
}

// ---- xfbq ----

static float xfbq_factor(const struct kernelcheck *check, uint64_t row)
{
    static const float factors[] = {1.0f, 0.0f, 0.25f, 1e-18f, 1e20f, 0x1p-149f, 3e38f};
    uint64_t random = kernelcheck_random(check, 3, row);
    return random % 2 ? factors[random / 2 % 7] : fabsf(kernelcheck_float(check, 4, row));
}

static void check_xfbq(struct kernelcheck *check, size_t num_rows, size_t dims, unsigned bits,
                       float scale, int kind)
{
    size_t planes_bytes = bits * ((dims + 31) / 32) * BSW_BUNDLE_ROWS * sizeof(uint32_t);
    float *rows = allocate_floats(num_rows * dims), *factors = allocate_floats(num_rows);
    uint32_t *expected = kernelcheck_allocate(planes_bytes);
    uint32_t *found = kernelcheck_allocate(planes_bytes);
    fill_rows(check, 5, kind, rows, num_rows, dims, dims);
    for (size_t r = 0; r < num_rows; r++) factors[r] = xfbq_factor(check, r);
    // A row that is not finite is refused before, but its codes must not depend on the level.
    if (num_rows > 20) rows[20 * dims + dims / 2] = NAN;
    if (num_rows > 21) rows[21 * dims] = INFINITY;
    bsw_encode_reference.xfbq(rows, num_rows, dims, factors, scale, bits, expected);
    candidate_of(check)->xfbq(rows, num_rows, dims, factors, scale, bits, found);
    kernelcheck_case(check, "%zu rows of %zu, %u bits, scale %a, kind %d", num_rows, dims, bits,
                     (double)scale, kind);
    kernelcheck_compare(check, "xfbq", expected, found, planes_bytes);
    kernelcheck_free(rows);
}

static void check_xfbq_shapes(struct kernelcheck *check, size_t dims)
{
    static const float scales[] = {1.0f, 2.0f, 3.7f, 0x1p-130f, 1e30f};
    int turn = 0;
    for (unsigned bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++, turn++) {
            check_xfbq(check, 1, dims, bits, scales[s], turn % NUM_ROW_KINDS);
            check_xfbq(check, 31, dims, bits, scales[s], turn % NUM_ROW_KINDS);
            check_xfbq(check, 32, dims, bits, scales[s], turn % NUM_ROW_KINDS);
        }
    }
}

// ---- saq ----

// A frame on guarded memory; the mean was allocated first.
static struct bsw_saq_frame make_frame(const struct kernelcheck *check, const char *segments,
                                       uint32_t coded, uint32_t dims)
{
    struct bsw_saq_frame frame = {
        .metric = BSW_METRIC_COSINE, .stage_dims = coded, .row_dims = dims > coded ? dims : 0};
    if (bsw_code_layout_parse(segments, coded, &frame.layout, NULL) != BSW_OK) __builtin_trap();
    size_t padded_dims = frame.layout.padded_dims;
    float *mean = allocate_floats(dims), *rotation = allocate_floats(dims * padded_dims);
    for (size_t j = 0; j < dims; j++) mean[j] = kernelcheck_float(check, 6, j);
    memset(rotation, 0, dims * padded_dims * sizeof(float));
    for (uint32_t s = 0; s < frame.layout.num_segments; s++) {
        const struct bsw_segment *segment = &frame.layout.segments[s];
        for (size_t j = 0; j < dims; j++) {
            float *row = rotation + j * padded_dims + segment->padded_dim;
            for (size_t i = 0; i < segment->dims; i++)
                row[i] = kernelcheck_float(check, 7 + s, j * 65536 + i) * 0.1f;
        }
        frame.steps[s] = saq_steps[(s + dims) % NUM_STEPS];
    }
    frame.mean = mean;
    frame.rotation = rotation;
    return frame;
}

static void check_center(struct kernelcheck *check, const struct bsw_saq_frame *frame,
                         size_t num_rows, int kind)
{
    size_t dims = bsw_saq_row_dims(frame);
    float *rows = allocate_floats(num_rows * dims), *factors = allocate_floats(num_rows);
    float *expected = allocate_floats(num_rows * dims), *found = allocate_floats(num_rows * dims);
    float *expected_dots = allocate_floats(num_rows), *dots = allocate_floats(num_rows);
    fill_rows(check, 50, kind, rows, num_rows, dims, dims);
    for (size_t r = 0; r < num_rows; r++) factors[r] = r % 3 ? 1.0f : 0.37f * (float)r;
    bsw_encode_reference.saq_center(frame, rows, num_rows, factors, expected, expected_dots);
    candidate_of(check)->saq_center(frame, rows, num_rows, factors, found, dots);
    kernelcheck_case(check, "%zu rows of %zu, kind %d", num_rows, dims, kind);
    kernelcheck_compare(check, "saq_center", expected, found, num_rows * dims * sizeof *found);
    kernelcheck_compare(check, "saq_center (dots)", expected_dots, dots, num_rows * sizeof *dots);
    kernelcheck_free(rows);
}

// A mean of subnormals against tiny rows: products round to -0.0, which sums must keep.
static void check_negative_zero_sums(struct kernelcheck *check, uint32_t dims)
{
    float *mean = allocate_floats(dims);
    for (size_t j = 0; j < dims; j++) mean[j] = 1e-40f;
    struct bsw_saq_frame frame = {.mean = mean, .layout.dims = dims};
    float *rows = allocate_floats(dims), factor = 1.0f, expected_dot, dot;
    float *expected = allocate_floats(dims), *found = allocate_floats(dims);
    for (size_t j = 0; j < dims; j++) rows[j] = -1e-30f;
    bsw_encode_reference.saq_center(&frame, rows, 1, &factor, expected, &expected_dot);
    candidate_of(check)->saq_center(&frame, rows, 1, &factor, found, &dot);
    kernelcheck_case(check, "-0.0, %u dims", dims);
    kernelcheck_compare(check, "saq_center", &expected_dot, &dot, sizeof dot);
    kernelcheck_free(mean);
}

static void check_project(struct kernelcheck *check, const struct bsw_saq_frame *frame,
                          size_t num_rows)
{
    size_t dims = bsw_saq_row_dims(frame), padded_dims = frame->layout.padded_dims;
    float *centered = allocate_floats(num_rows * dims);
    float *expected = allocate_floats(num_rows * padded_dims);
    float *found = allocate_floats(num_rows * padded_dims);
    fill_rows(check, 60, 0, centered, num_rows, dims, dims);
    bsw_encode_reference.saq_project(frame, centered, num_rows, expected);
    candidate_of(check)->saq_project(frame, centered, num_rows, found);
    kernelcheck_case(check, "%zu rows of %zu to %zu", num_rows, dims, padded_dims);
    kernelcheck_compare(check, "saq_project", expected, found,
                        num_rows * padded_dims * sizeof *found);
    kernelcheck_free(centered);
}

// What saq_quantize writes; one array of planes a segment.
struct quantized {
    uint32_t *planes[BSW_MAX_SEGMENTS];
    float *norms, *scales;
    uint32_t *tails;
};

static size_t planes_bytes_of(const struct bsw_code_layout *layout, uint32_t s)
{
    return bsw_segment_bundle_words(&layout->segments[s]) * sizeof(uint32_t);
}

static void allocate_quantized(const struct bsw_code_layout *layout, size_t num_rows,
                               struct quantized *out)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        out->planes[s] = kernelcheck_allocate(planes_bytes_of(layout, s));
    }
    out->norms = allocate_floats(num_rows);
    out->scales = allocate_floats(num_rows);
    out->tails = kernelcheck_allocate(num_rows * sizeof *out->tails);
}

static void check_quantize(struct kernelcheck *check, const struct bsw_saq_frame *frame,
                           size_t num_rows, int kind)
{
    const struct bsw_code_layout *layout = &frame->layout;
    size_t dims = layout->padded_dims; // padding too: it counts in the sums, whatever it is
    float *projected = allocate_floats(num_rows * dims);
    struct quantized expected, found;
    allocate_quantized(layout, num_rows, &expected);
    allocate_quantized(layout, num_rows, &found);
    fill_rows(check, 70, kind, projected, num_rows, dims, dims);
    bsw_encode_reference.saq_quantize(frame, projected, num_rows, expected.planes, expected.norms,
                                      expected.scales, expected.tails);
    candidate_of(check)->saq_quantize(frame, projected, num_rows, found.planes, found.norms,
                                      found.scales, found.tails);
    char text[64];
    bsw_code_layout_format(layout, text, sizeof text);
    kernelcheck_case(check, "%zu rows of %s, metric %d, stage %u, kind %d", num_rows, text,
                     (int)frame->metric, frame->stage_dims, kind);
    for (uint32_t s = 0; s < layout->num_segments; s++)
        kernelcheck_compare(check, "saq_quantize (planes)", expected.planes[s], found.planes[s],
                            planes_bytes_of(layout, s));
    size_t bytes = num_rows * 4;
    kernelcheck_compare(check, "saq_quantize (norms)", expected.norms, found.norms, bytes);
    kernelcheck_compare(check, "saq_quantize (scales)", expected.scales, found.scales, bytes);
    kernelcheck_compare(check, "saq_quantize (tails)", expected.tails, found.tails, bytes);
    kernelcheck_free(projected);
}

static void check_quantize_shapes(struct kernelcheck *check, struct bsw_saq_frame *frame)
{
    static const size_t row_counts[] = {1, 31, 32};
    uint32_t dims = frame->layout.dims;
    const uint32_t stages[] = {dims, 0, 32, 64, 96};
    int turn = 0;
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        frame->metric = (enum bsw_metric)metric;
        for (size_t s = 0; s < sizeof stages / sizeof stages[0]; s++) {
            if (stages[s] > dims) continue;
            frame->stage_dims = stages[s];
            for (size_t r = 0; r < 3; r++, turn++) {
                check_quantize(check, frame, row_counts[r], turn % NUM_ROW_KINDS);
            }
        }
    }
}

// num_rows up to 13 meets every tile height, and the first two heights together.
static void check_project_shapes(struct kernelcheck *check, const struct bsw_saq_frame *frame)
{
    static const size_t row_counts[] = {24, 25, 31, 32, 33, 64, 97, 128, 130};
    int is_large = frame->layout.dims > 200;
    for (size_t num_rows = 1; num_rows <= 13; num_rows += is_large ? 6 : 1) {
        check_project(check, frame, num_rows);
    }
    for (size_t i = 0; i < sizeof row_counts / sizeof row_counts[0]; i++) {
        if (!is_large || row_counts[i] == 31) check_project(check, frame, row_counts[i]);
    }
}

// dims: of rows, more than `coded` where codes leave some axes out.
static void check_frame(struct kernelcheck *check, const char *segments, uint32_t coded,
                        uint32_t dims)
{
    static const size_t row_counts[] = {1, 31, 32, 33};
    struct bsw_saq_frame frame = make_frame(check, segments, coded, dims);
    for (int kind = 0; kind < 2 * NUM_ROW_KINDS; kind++) {
        frame.metric = kind < NUM_ROW_KINDS ? BSW_METRIC_COSINE : BSW_METRIC_L2;
        check_center(check, &frame, row_counts[kind % 4], kind % NUM_ROW_KINDS);
    }
    check_project_shapes(check, &frame);
    check_quantize_shapes(check, &frame);
    kernelcheck_free((void *)frame.mean);
}

static void check_saq(struct kernelcheck *check)
{
    check_frame(check, "32x3", 32, 96);
    check_frame(check, "32x3,5x1", 37, 150);
    static const struct {
        uint32_t dims;
        const char *segments;
    } layouts[] = {
        {1, "1x1"},
        {31, "31x8"},
        {32, "32x4"},
        {33, "1x8,32x1"},
        {96, "96x3"},
        {96, "32x4,64x2"},
        {100, "33x1,1x8,31x3,35x5"},
        {100, "40x2,60x7"},
        {128, "128x6"},
        {128, "1x1,2x2,3x3,4x4,5x5,6x6,7x7,100x8"},
        {1000, "32x8,301x4,667x2"},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        check_frame(check, layouts[i].segments, layouts[i].dims, layouts[i].dims);
    }
}

void check_encode(struct kernelcheck *check)
{
    check_to_float(check);
    for (size_t i = 0; i < kernelcheck_num_dims; i++) {
        check_squared_norms(check, 1, kernelcheck_dims[i]);
        check_squared_norms(check, 33, kernelcheck_dims[i]);
        check_xfbq_shapes(check, kernelcheck_dims[i]);
        check_negative_zero_sums(check, kernelcheck_dims[i]);
    }
    check_saq(check);
}
