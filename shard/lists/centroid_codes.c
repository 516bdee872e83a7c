#include "shard/lists/centroid_codes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"
#include "common/codes/half.h"
#include "common/codes/result_order.h"
#include "kernels/screen/screen_margin.h"

#define MOST      127.0f
#define LANES     16
#define LEAST_S   0x1p-14 // the smallest normal half
#define MOST_UNIT 100     // exponent of g
#define FAR_ROW   0x1p40f // components from here on are not coded

// Added to a number below 2^22 in magnitude it leaves its nearest whole number in the low bits.
#define WHOLE      12582912.0f // 1.5 * 2^23
#define WHOLE_BITS 0x4b400000

// ---- equal centroids ----

struct digest {
    uint64_t hash;
    uint32_t list;
};

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
static enum bsw_status mask_lists(struct bsw_centroid_codes *codes, const float *centroids,
                                  struct bsw_error *err)
{
    struct digest *digests;
    size_t dims = codes->dims, first = 0;
    BSW_TRY(bsw_allocate(&digests, codes->num_lists, sizeof *digests, "centroids", err));
    memset(codes->masks, 0, codes->num_bundles * sizeof *codes->masks);
    for (size_t l = 0; l < codes->num_lists; l++) {
        digests[l] = (struct digest){hash_of(centroids + l * dims, dims), (uint32_t)l};
        codes->masks[l / BSW_BUNDLE_ROWS] |= 1u << l % BSW_BUNDLE_ROWS;
    }
    qsort(digests, codes->num_lists, sizeof *digests, compare_digests);
    for (size_t i = 1; i < codes->num_lists; i++) {
        size_t list = digests[i].list;
        if (digests[i].hash != digests[first].hash)
            first = i;
        else if (memcmp(centroids + list * dims, centroids + digests[first].list * dims,
                        dims * sizeof *centroids) == 0)
            codes->masks[list / BSW_BUNDLE_ROWS] &= ~(1u << list % BSW_BUNDLE_ROWS);
    }
    bsw_free(&digests);
    return BSW_OK;
}

// ---- centroids ----

// 1, or under cosine what makes the centroid's length one.
static double factor_of(const struct bsw_centroid_codes *codes, const float *centroid)
{
    double sum = 0.0;
    if (!codes->is_cosine) return 1.0;
    for (size_t d = 0; d < codes->dims; d++) sum += (double)centroid[d] * (double)centroid[d];
    return 1.0 / sqrt(sum);
}

// m, and the largest component by magnitude that is left. means: [dims] of room.
static double find_mean(struct bsw_centroid_codes *codes, const float *centroids, double *means)
{
    size_t dims = codes->dims, num_lists = codes->num_lists;
    double largest = 0.0;
    memset(means, 0, dims * sizeof *means);
    for (size_t l = 0; l < num_lists; l++) {
        double factor = factor_of(codes, centroids + l * dims);
        for (size_t d = 0; d < dims; d++) means[d] += (double)centroids[l * dims + d] * factor;
    }
    memset(codes->mean, 0, codes->padded_dims * sizeof *codes->mean);
    for (size_t d = 0; d < dims; d++) codes->mean[d] = (float)(means[d] / (double)num_lists);
    for (size_t l = 0; l < num_lists; l++) {
        double factor = factor_of(codes, centroids + l * dims);
        for (size_t d = 0; d < dims; d++) {
            double rest = fabs((double)centroids[l * dims + d] * factor - (double)codes->mean[d]);
            if (rest > largest) largest = rest;
        }
    }
    return largest;
}

static void find_unit(struct bsw_centroid_codes *codes, double largest)
{
    int exponent = 0;
    if (largest > 0.0) frexp(largest, &exponent);
    if (exponent < -MOST_UNIT) exponent = -MOST_UNIT;
    codes->unit = (float)ldexp(1.0, -exponent);
}

// Codes centroid l, x in `x`: its byte of dimension d at bytes[d / 4 * 64 + d % 4].
static void put_centroid(struct bsw_centroid_codes *codes, size_t l, const double *x)
{
    size_t bundle = l / BSW_BUNDLE_ROWS, half = l % BSW_BUNDLE_ROWS / 16;
    uint8_t *bytes = codes->bytes + (2 * bundle + half) * 16 * codes->padded_dims + l % 16 * 4;
    double largest = 0.0, squared = 0.0, error = 0.0;
    for (size_t d = 0; d < codes->dims; d++) {
        if (fabs(x[d]) > largest) largest = fabs(x[d]);
        squared += x[d] * x[d];
    }
    uint16_t half_scale =
        bsw_half_up(largest / (double)MOST > LEAST_S ? largest / (double)MOST : LEAST_S);
    double scale = (double)bsw_half_to_float(half_scale);
    for (size_t d = 0; d < codes->dims; d++) {
        double k = rint(x[d] / scale), rest = x[d] - k * scale;
        bytes[d / 4 * 64 + d % 4] = (uint8_t)(128 - (int)k);
        error += rest * rest;
    }
    double norm = sqrt(squared);
    error = sqrt(error) * (1.0 + 0x1p-30) + norm * 0x1p-30;
    codes->scales[l] = half_scale;
    codes->biases[l] = (float)(-0.5 * squared);
    if (error > codes->errors[bundle]) codes->errors[bundle] = error;
    if (norm + error > codes->norms[bundle]) codes->norms[bundle] = norm + error;
}

static void put_centroids(struct bsw_centroid_codes *codes, const float *centroids, double *x)
{
    size_t dims = codes->dims;
    for (size_t l = 0; l < codes->num_lists; l++) {
        const float *centroid = centroids + l * dims;
        double factor = factor_of(codes, centroid);
        for (size_t d = 0; d < dims; d++)
            x[d] = ((double)centroid[d] * factor - (double)codes->mean[d]) * (double)codes->unit;
        put_centroid(codes, l, x);
    }
}

static enum bsw_status allocate(struct bsw_centroid_codes *codes, struct bsw_error *err)
{
    size_t bundles = codes->num_bundles, rows = bundles * BSW_BUNDLE_ROWS;
    BSW_TRY(bsw_allocate(&codes->mean, codes->padded_dims, sizeof *codes->mean, "centroids", err));
    BSW_TRY(bsw_allocate_zero(&codes->bytes, rows, codes->padded_dims, "centroids", err));
    BSW_TRY(bsw_allocate_zero(&codes->scales, rows, sizeof *codes->scales, "centroids", err));
    BSW_TRY(bsw_allocate_zero(&codes->biases, rows, sizeof *codes->biases, "centroids", err));
    BSW_TRY(bsw_allocate(&codes->masks, bundles, sizeof *codes->masks, "centroids", err));
    BSW_TRY(bsw_allocate_zero(&codes->errors, bundles, sizeof *codes->errors, "centroids", err));
    return bsw_allocate_zero(&codes->norms, bundles, sizeof *codes->norms, "centroids", err);
}

enum bsw_status bsw_centroid_codes_open(enum bsw_metric metric, const float *centroids,
                                        size_t num_lists, size_t dims,
                                        struct bsw_centroid_codes *out, struct bsw_error *err)
{
    double *scratch = NULL;
    *out = (struct bsw_centroid_codes){
        .is_cosine = metric == BSW_METRIC_COSINE,
        .dims = dims,
        .padded_dims = (dims + 31) / 32 * 32,
        .num_lists = num_lists,
        .num_bundles = (num_lists + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS,
        .rounding = ((double)dims + 64.0) * 0x1p-24,
    };
    enum bsw_status status = allocate(out, err);
    if (status == BSW_OK) status = bsw_allocate(&scratch, dims, sizeof *scratch, "centroids", err);
    if (status == BSW_OK) status = mask_lists(out, centroids, err);
    if (status == BSW_OK) {
        find_unit(out, find_mean(out, centroids, scratch));
        put_centroids(out, centroids, scratch);
    } else {
        bsw_centroid_codes_close(out);
    }
    bsw_free(&scratch);
    return status;
}

void bsw_centroid_codes_close(struct bsw_centroid_codes *codes)
{
    bsw_free(&codes->mean);
    bsw_free(&codes->bytes);
    bsw_free(&codes->scales);
    bsw_free(&codes->biases);
    bsw_free(&codes->masks);
    bsw_free(&codes->errors);
    bsw_free(&codes->norms);
}

// ---- rows ----

// q of a row to [padded_dims]; the largest component by magnitude, as bits.
static int32_t shift_row(const struct bsw_centroid_codes *codes, const float *row, float factor,
                         float *q)
{
    size_t dims = codes->dims;
    int32_t largest = 0;
    for (size_t d = 0; d < dims; d++) q[d] = (row[d] * factor - codes->mean[d]) * codes->unit;
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

void bsw_centroid_codes_put_row(const struct bsw_centroid_codes *codes, const float *row,
                                float factor, float *scratch, int8_t *components,
                                struct bsw_coded_row *out)
{
    size_t padded = codes->padded_dims;
    int32_t bits = shift_row(codes, row, factor, scratch);
    float largest;
    double rests;
    memcpy(&largest, &bits, sizeof largest);
    *out = (struct bsw_coded_row){.squared = -1.0};
    if (!(largest < FAR_ROW) || codes->dims > BSW_SCREEN_CODE_DIMS) {
        memset(components, 0, padded);
        return;
    }
    // Numbers below 2^-100 of the centroids' are all 0: the error is as small.
    if (largest < 0x1p-100f) largest = 0x1p-100f;
    double step = (double)largest / (double)MOST;
    int32_t sum = code_row(scratch, padded, MOST / largest, components, &out->squared, &rests);
    out->scale = (float)(0.5 * step);
    out->constant = 256 * sum;
    out->norm = sqrt(out->squared);
    // Quotients are off by 2^-15 at most, their squares' sum by less than 2^-8 of itself.
    out->error = step * (sqrt(rests) * (1.0 + 0x1p-8) + sqrt((double)codes->dims) * 0x1p-15) +
                 0x1p-22 * (out->norm + (codes->is_cosine ? (double)codes->unit : 0.0));
}

uint32_t bsw_centroid_codes_limit(const struct bsw_centroid_codes *codes,
                                  const struct bsw_coded_row *row, double E, double X, double key)
{
    double unit = (double)codes->unit, Q = row->norm;
    if (row->squared < 0.0 || key == -INFINITY) return 0;
    double V = codes->is_cosine ? 2.0 - 2.0 * key + 0x1p-33 : -key * (1.0 + 0x1p-35);
    double limit = 0.5 * (row->squared - V * unit * unit) - E * Q - X * row->error;
    limit -= codes->rounding * (X * X + X * Q + row->squared);
    if (codes->is_cosine) limit -= 0x1p-20 * unit * (Q + X);
    return limit < -1e38 ? 0 : bsw_score_from_float(bsw_round_down(limit));
}
