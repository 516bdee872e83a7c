// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/centroid_codes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "kernels/screen/screen_margin.h"

#define MOST       127.0f
#define LANES      16
#define LEAST_STEP 0x1p-14   // the smallest normal half
#define MEAN_DIMS  64        // whose sums are made at once
#define MOST_UNIT  100       // exponent of g
#define FAR_ROW    0x1p40f   // components from here on are not coded
#define LEAST_ROW  0x1p-100f // those of smaller ones have the steps of this

// Added to a number below 2^22 in magnitude it leaves its nearest whole number in the low bits.
#define WHOLE      12582912.0f // 1.5 * 2^23
#define WHOLE_BITS 0x4b400000

// What codes are made from.
struct making {
    struct bsw_centroid_codes *codes;
    const float *centroids;
    double *factors; // [num_lists]: 1, or under cosine what makes a centroid's length one
    struct digest {
        uint64_t hash;
        uint32_t list;
    } * digests; // [num_lists]
    int num_threads;
};

// ---- equal centroids ----

static int compare_digests(const void *a, const void *b)
{
    const struct digest *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return (x->list > y->list) - (x->list < y->list);
}

static uint64_t hash_of(const float *centroid, size_t dims)
{
    uint64_t hash = 0;
    for (size_t d = 0; d < dims; d++) {
        uint32_t bits;
        memcpy(&bits, &centroid[d], sizeof bits);
        hash = bsw_hash(hash ^ bits);
    }
    return hash;
}

// A centroid with the bytes of an earlier one is nobody's nearest, and many of them would all have
// to be valued. Compared is with the first of those of equal hash alone: that finds nearly all.
static void mask_lists(const struct making *making)
{
    struct bsw_centroid_codes *codes = making->codes;
    struct digest *digests = making->digests;
    size_t dims = codes->dims, first = 0;
    memset(codes->masks, 0, codes->num_bundles * sizeof *codes->masks);
    for (size_t l = 0; l < codes->num_lists; l++)
        codes->masks[l / BSW_BUNDLE_ROWS] |= 1u << l % BSW_BUNDLE_ROWS;
    qsort(digests, codes->num_lists, sizeof *digests, compare_digests);
    for (size_t i = 1; i < codes->num_lists; i++) {
        size_t list = digests[i].list;
        if (digests[i].hash != digests[first].hash)
            first = i;
        else if (memcmp(making->centroids + list * dims,
                        making->centroids + digests[first].list * dims, dims * sizeof(float)) == 0)
            codes->masks[list / BSW_BUNDLE_ROWS] &= ~(1u << list % BSW_BUNDLE_ROWS);
    }
}

// ---- centroids ----

static void look_at(const struct making *making, size_t l)
{
    const struct bsw_centroid_codes *codes = making->codes;
    const float *centroid = making->centroids + l * codes->dims;
    double sum = 0.0;
    making->digests[l] = (struct digest){hash_of(centroid, codes->dims), (uint32_t)l};
    making->factors[l] = 1.0;
    if (!codes->is_cosine) return;
    for (size_t d = 0; d < codes->dims; d++) sum += (double)centroid[d] * (double)centroid[d];
    making->factors[l] = 1.0 / sqrt(sum);
}

// m of some dimensions.
static void find_mean(const struct making *making, size_t first, size_t last)
{
    size_t dims = making->codes->dims, num_lists = making->codes->num_lists;
    double sums[MEAN_DIMS] = {0};
    for (size_t l = 0; l < num_lists; l++)
        for (size_t d = first; d < last; d++)
            sums[d - first] += (double)making->centroids[l * dims + d] * making->factors[l];
    for (size_t d = first; d < last; d++)
        making->codes->mean[d] = (float)(sums[d - first] / (double)num_lists);
}

// Component d of centroid l less the mean, times `unit`.
static inline double component(const struct making *making, size_t l, size_t d, double unit)
{
    const struct bsw_centroid_codes *codes = making->codes;
    double number = (double)making->centroids[l * codes->dims + d] * making->factors[l];
    return (number - (double)codes->mean[d]) * unit;
}

static double largest_of(const struct making *making, size_t l, double unit)
{
    double largest = 0.0;
    for (size_t d = 0; d < making->codes->dims; d++) {
        double absolute = fabs(component(making, l, d, unit));
        if (absolute > largest) largest = absolute;
    }
    return largest;
}

static void find_unit(struct bsw_centroid_codes *codes, double largest)
{
    int exponent = 0;
    if (largest > 0.0) frexp(largest, &exponent);
    if (exponent < -MOST_UNIT) exponent = -MOST_UNIT;
    codes->unit = (float)ldexp(1.0, -exponent);
    codes->half_squared_unit = ldexp(0.5, -2 * exponent);
}

// Codes centroid l: the byte of dimension d at bytes[d / 4 * 64 + d % 4]. e and |x^| at most.
static void put_centroid(const struct making *making, size_t l, double *error, double *norm)
{
    struct bsw_centroid_codes *codes = making->codes;
    size_t half = l / 16;
    uint8_t *bytes = codes->bytes + half * 16 * codes->padded_dims + l % 16 * 4;
    double unit = (double)codes->unit, squared = 0.0, rests = 0.0;
    double step = largest_of(making, l, unit) / (double)MOST;
    uint16_t half_scale = bsw_half_up(step > LEAST_STEP ? step : LEAST_STEP);
    double scale = (double)bsw_half_to_float(half_scale);
    for (size_t d = 0; d < codes->dims; d++) {
        double x = component(making, l, d, unit), k = rint(x / scale), rest = x - k * scale;
        bytes[d / 4 * 64 + d % 4] = (uint8_t)(128 - (int)k);
        squared += x * x;
        rests += rest * rest;
    }
    codes->scales[l] = half_scale;
    codes->biases[l] = (float)(-0.5 * squared);
    *error = sqrt(rests) * (1.0 + 0x1p-30) + sqrt(squared) * 0x1p-30;
    *norm = sqrt(squared) + *error;
}

static void make(const struct making *making)
{
    struct bsw_centroid_codes *codes = making->codes;
    size_t num_lists = codes->num_lists, dims = codes->dims;
    double largest = 0.0, most_error = 0.0, most_norm = 0.0;
#pragma omp parallel num_threads(making->num_threads)
    {
#pragma omp for
        for (size_t l = 0; l < num_lists; l++) look_at(making, l);
#pragma omp for
        for (size_t d = 0; d < dims; d += MEAN_DIMS)
            find_mean(making, d, dims - d < MEAN_DIMS ? dims : d + MEAN_DIMS);
#pragma omp for reduction(max : largest)
        for (size_t l = 0; l < num_lists; l++) largest = fmax(largest, largest_of(making, l, 1.0));
#pragma omp single
        find_unit(codes, largest);
#pragma omp for reduction(max : most_error, most_norm)
        for (size_t l = 0; l < num_lists; l++) {
            double error, norm;
            put_centroid(making, l, &error, &norm);
            most_error = fmax(most_error, error);
            most_norm = fmax(most_norm, norm);
        }
    }
    codes->error = most_error;
    codes->norm = most_norm;
    mask_lists(making);
}

static enum bsw_status allocate(struct making *making, struct bsw_error *err)
{
    struct bsw_centroid_codes *codes = making->codes;
    size_t bundles = codes->num_bundles, rows = bundles * BSW_BUNDLE_ROWS;
    BSW_TRY(
        bsw_allocate_zero(&codes->mean, codes->padded_dims, sizeof *codes->mean, "centroids", err));
    BSW_TRY(bsw_allocate_zero(&codes->bytes, rows, codes->padded_dims, "centroids", err));
    BSW_TRY(bsw_allocate_zero(&codes->scales, rows, sizeof *codes->scales, "centroids", err));
    BSW_TRY(bsw_allocate_zero(&codes->biases, rows, sizeof *codes->biases, "centroids", err));
    BSW_TRY(bsw_allocate(&codes->masks, bundles, sizeof *codes->masks, "centroids", err));
    BSW_TRY(bsw_allocate(&making->factors, codes->num_lists, sizeof *making->factors, "centroids",
                         err));
    return bsw_allocate(&making->digests, codes->num_lists, sizeof *making->digests, "centroids",
                        err);
}

enum bsw_status bsw_centroid_codes_open(enum bsw_metric metric, const float *centroids,
                                        size_t num_lists, size_t dims, int num_threads,
                                        struct bsw_centroid_codes *out, struct bsw_error *err)
{
    struct making making = {.codes = out, .centroids = centroids, .num_threads = num_threads};
    *out = (struct bsw_centroid_codes){
        .is_cosine = bsw_has_unit_rows(metric),
        .dims = dims,
        .padded_dims = (dims + 31) / 32 * 32,
        .num_lists = num_lists,
        .num_bundles = (num_lists + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS,
        .rounding = ((double)dims + 64.0) * 0x1p-24,
    };
    enum bsw_status status = allocate(&making, err);
    if (status == BSW_OK)
        make(&making);
    else
        bsw_centroid_codes_close(out);
    bsw_free(&making.factors);
    bsw_free(&making.digests);
    return status;
}

void bsw_centroid_codes_close(struct bsw_centroid_codes *codes)
{
    bsw_free(&codes->mean);
    bsw_free(&codes->bytes);
    bsw_free(&codes->scales);
    bsw_free(&codes->biases);
    bsw_free(&codes->masks);
}

// ---- rows ----

// q of a row to [padded_dims]; the largest component by magnitude, as bits.
static int32_t shift_row(const struct bsw_centroid_codes *codes, const float *row, float factor,
                         float *restrict q)
{
    size_t dims = codes->dims;
    const float *mean = codes->mean;
    float unit = codes->unit;
    int32_t largest = 0;
    for (size_t d = 0; d < dims; d++) q[d] = (row[d] * factor - mean[d]) * unit;
    for (size_t d = dims; d < codes->padded_dims; d++) q[d] = 0.0f;
    for (size_t d = 0; d < codes->padded_dims; d++) {
        int32_t bits;
        memcpy(&bits, &q[d], sizeof bits);
        bits &= INT32_MAX;
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

static double sum_of(const float lanes[LANES])
{
    double sum = 0.0;
    for (size_t i = 0; i < LANES; i++) sum += (double)lanes[i];
    return sum;
}

// j of q / t, inverse = 1 / t: their sum. Sums of squares of q and of q / t - j.
static int32_t code_row(const float *q, size_t padded_dims, float inverse, int8_t *components,
                        double *squared, double *rests)
{
    float squares[LANES] = {0}, errors[LANES] = {0};
    int32_t sums[LANES] = {0}, sum = 0;
    for (size_t d = 0; d < padded_dims; d += LANES) {
        for (size_t i = 0; i < LANES; i++) {
            float steps = q[d + i] * inverse, whole = steps + WHOLE;
            float rest = steps - (whole - WHOLE);
            int32_t bits;
            memcpy(&bits, &whole, sizeof bits);
            sums[i] += bits - WHOLE_BITS;
            components[d + i] = (int8_t)(bits - WHOLE_BITS);
            squares[i] += q[d + i] * q[d + i];
            errors[i] += rest * rest;
        }
    }
    for (size_t i = 0; i < LANES; i++) sum += sums[i];
    *squared = sum_of(squares);
    *rests = sum_of(errors);
    return sum;
}

// What must pass, but for V / 2: squared is |q|^2, error f.
static double most_of(const struct bsw_centroid_codes *codes, double squared, double error)
{
    double E = codes->error, X = codes->norm, Q = sqrt(squared);
    double most = 0.5 * squared - E * Q - X * error;
    most -= codes->rounding * (X * X + X * Q + squared);
    return codes->is_cosine ? most - 0x1p-20 * (double)codes->unit * (Q + X) : most;
}

void bsw_centroid_codes_put_row(const struct bsw_centroid_codes *codes, const float *row,
                                float factor, float *scratch, int8_t *components,
                                struct bsw_coded_row *out)
{
    size_t padded = codes->padded_dims;
    int32_t bits = shift_row(codes, row, factor, scratch);
    double squared, rests, own = codes->is_cosine ? (double)codes->unit : 0.0;
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    *out = (struct bsw_coded_row){.most = -INFINITY};
    if (!(largest < FAR_ROW) || codes->dims > BSW_SCREEN_CODE_DIMS) {
        memset(components, 0, padded);
        return;
    }
    if (largest < LEAST_ROW) largest = LEAST_ROW;
    double step = (double)largest / (double)MOST;
    int32_t sum = code_row(scratch, padded, MOST / largest, components, &squared, &rests);
    out->scale = (float)(0.5 * step);
    out->constant = 256 * sum;
    // Quotients are off by 2^-15 at most, their squares' sum by less than 2^-8 of itself.
    double error = step * (sqrt(rests) * (1.0 + 0x1p-8) + sqrt((double)codes->dims) * 0x1p-15);
    out->most = most_of(codes, squared, error + 0x1p-22 * (sqrt(squared) + own));
}
