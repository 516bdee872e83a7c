// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/product_radii.h"

#include <math.h>
#include <string.h>

enum bsw_status bsw_product_radii_create(uint32_t parts, struct bsw_product_radii **out,
                                         struct bsw_error *err)
{
    struct bsw_product_radii *radii;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&radii, 1, sizeof *radii, "radii", err));
    radii->parts = parts;
    enum bsw_status status =
        bsw_allocate_zero(&radii->boxes, parts, 4 * sizeof(float), "radii", err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&radii->counts, parts, BSW_RADII_MAP * sizeof(uint16_t), "radii",
                                   err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&radii->fits, parts, sizeof *radii->fits, "radii", err);
    if (status == BSW_OK)
        status =
            bsw_allocate_zero(&radii->radii, parts, BSW_RADII_MAP * sizeof(float), "radii", err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&radii->ends, parts, 2 * sizeof(float), "radii", err);
    if (status != BSW_OK) bsw_product_radii_destroy(&radii);
    *out = radii;
    return status;
}

void bsw_product_radii_destroy(struct bsw_product_radii **radii)
{
    if (!*radii) return;
    bsw_free(&(*radii)->boxes);
    bsw_free(&(*radii)->counts);
    bsw_free(&(*radii)->fits);
    bsw_free(&(*radii)->radii);
    bsw_free(&(*radii)->ends);
    bsw_free(radii);
}

// ---- density ----

static void find_box(const float *at, size_t stride, size_t num, float *box)
{
    for (size_t r = 0; r < num; r++) {
        for (size_t d = 0; d < 2; d++) {
            float v = at[r * stride + d];
            if (r == 0 || v < box[d]) box[d] = v;
            if (r == 0 || v > box[2 + d]) box[2 + d] = v;
        }
    }
}

void bsw_product_radii_count(struct bsw_product_radii *radii, uint32_t part, const float *at,
                             size_t stride, size_t num)
{
    uint16_t *counts = radii->counts + part * BSW_RADII_MAP;
    find_box(at, stride, num, radii->boxes + 4 * (size_t)part);
    for (size_t r = 0; r < num; r++) {
        const float *point = at + r * stride;
        uint16_t *count = counts + bsw_product_radii_cell(radii, part, point[0], point[1]);
        *count = (uint16_t)(*count + (*count < UINT16_MAX));
    }
}

static size_t cell_of(float v, float least, float most)
{
    float width = most - least, at = width > 0.0f ? (v - least) / width * BSW_RADII_CELLS : 0.0f;
    if (!(at > 0.0f)) return 0;
    return at < BSW_RADII_CELLS ? (size_t)at : BSW_RADII_CELLS - 1;
}

size_t bsw_product_radii_cell(const struct bsw_product_radii *radii, uint32_t part, float x,
                              float y)
{
    const float *box = radii->boxes + 4 * (size_t)part;
    return cell_of(y, box[1], box[3]) * BSW_RADII_CELLS + cell_of(x, box[0], box[2]);
}

// log2 of a positive normal number, the same bits everywhere: the series of atanh around 1, where
// 6 terms are within 1e-9 for a mantissa between sqrt(1/2) and sqrt(2).
static double log2_of(double v)
{
    static const double two_over_ln2 = 2.8853900817779268;
    int exponent;
    double mantissa = frexp(v, &exponent), sum = 0;
    if (mantissa < 0.70710678118654752) {
        mantissa *= 2;
        exponent--;
    }
    double t = (mantissa - 1) / (mantissa + 1), square = t * t;
    for (int term = 13; term >= 1; term -= 2) sum = fma(sum, square, 1.0 / term);
    return fma(sum * t, two_over_ln2, exponent);
}

// A side that has no width counts as 1.
static double side(float least, float most)
{
    double width = ((double)most - (double)least) / BSW_RADII_CELLS;
    return width > 0 ? width : 1;
}

double bsw_product_radii_density(const struct bsw_product_radii *radii, uint32_t part, size_t cell)
{
    const float *box = radii->boxes + 4 * (size_t)part;
    uint16_t count = radii->counts[part * BSW_RADII_MAP + cell];
    return log2_of(count > 0 ? (double)count : 0.5) -
           (log2_of(side(box[0], box[2])) + log2_of(side(box[1], box[3])));
}

// ---- the regressor ----

#define TERMS (BSW_RADII_DEGREE + 1)

// Solves the normal equations by elimination, with the largest pivot first. 0: they are singular.
static int solve(double m[TERMS][TERMS + 1], double *out)
{
    for (int c = 0; c < TERMS; c++) {
        int best = c;
        for (int r = c + 1; r < TERMS; r++)
            if (fabs(m[r][c]) > fabs(m[best][c])) best = r;
        if (!(fabs(m[best][c]) > 1e-9 * m[0][0])) return 0;
        for (int i = 0; i <= TERMS && best != c; i++) {
            double swap = m[c][i];
            m[c][i] = m[best][i];
            m[best][i] = swap;
        }
        for (int r = 0; r < TERMS; r++) {
            double factor = r == c ? 0 : m[r][c] / m[c][c];
            for (int i = c; i <= TERMS && r != c; i++) m[r][i] -= factor * m[c][i];
        }
    }
    for (int c = 0; c < TERMS; c++) out[c] = m[c][TERMS] / m[c][c];
    return 1;
}

static void add_up(const struct bsw_radii_fit *fit, const double *densities, const double *radii,
                   size_t num, double sums[TERMS][TERMS + 1])
{
    for (size_t i = 0; i < num; i++) {
        double t = fit->half > 0 ? (densities[i] - fit->middle) / fit->half : 0, powers[TERMS];
        powers[0] = 1;
        for (int c = 1; c < TERMS; c++) powers[c] = powers[c - 1] * t;
        for (int r = 0; r < TERMS; r++) {
            for (int c = 0; c < TERMS; c++) sums[r][c] += powers[r] * powers[c];
            sums[r][TERMS] += powers[r] * radii[i];
        }
    }
}

struct bsw_radii_fit bsw_product_radii_fit(const double *densities, const double *radii, size_t num)
{
    double low = densities[0], high = densities[0], sums[TERMS][TERMS + 1] = {{0}};
    struct bsw_radii_fit fit = {.least = radii[0], .most = radii[0]};
    for (size_t i = 1; i < num; i++) {
        low = densities[i] < low ? densities[i] : low;
        high = densities[i] > high ? densities[i] : high;
        fit.least = radii[i] < fit.least ? radii[i] : fit.least;
        fit.most = radii[i] > fit.most ? radii[i] : fit.most;
    }
    fit.middle = (low + high) / 2;
    fit.half = (high - low) / 2;
    add_up(&fit, densities, radii, num, sums);
    double mean = sums[0][TERMS] / sums[0][0];
    if (solve(sums, fit.coefficients)) return fit;
    memset(fit.coefficients, 0, sizeof fit.coefficients); // too few densities: the mean for all
    fit.coefficients[0] = mean;
    return fit;
}

double bsw_product_radii_of(const struct bsw_radii_fit *fit, double density)
{
    double t = fit->half > 0 ? (density - fit->middle) / fit->half : 0, sum = 0;
    t = t < -1 ? -1 : t > 1 ? 1 : t; // no polynomial beyond what it was fitted to
    for (int c = BSW_RADII_DEGREE; c >= 0; c--) sum = fma(sum, t, fit->coefficients[c]);
    return sum < fit->least ? fit->least : sum > fit->most ? fit->most : sum;
}

// A radius of 0 would stay 0 however it is scaled.
#define LEAST_RADIUS 0x1p-60f

static float radius_of(const struct bsw_product_radii *radii, uint32_t part, size_t cell)
{
    float radius = (float)bsw_product_radii_of(&radii->fits[part],
                                               bsw_product_radii_density(radii, part, cell));
    return radius > LEAST_RADIUS ? radius : LEAST_RADIUS;
}

#define KNOWN_COUNTS 256 // cells with as few rows have their radius by their count: most have

void bsw_product_radii_finish(struct bsw_product_radii *radii)
{
    for (uint32_t p = 0; p < radii->parts; p++) {
        float *ends = radii->ends + 2 * p, known[KNOWN_COUNTS] = {0};
        int is_first = 1;
        for (size_t cell = 0; cell < BSW_RADII_MAP; cell++) {
            uint16_t count = radii->counts[p * BSW_RADII_MAP + cell];
            float radius =
                count < KNOWN_COUNTS && known[count] > 0 ? known[count] : radius_of(radii, p, cell);
            if (count < KNOWN_COUNTS) known[count] = radius;
            radii->radii[p * BSW_RADII_MAP + cell] = radius;
            if (radii->counts[p * BSW_RADII_MAP + cell] == 0) continue;
            if (is_first || radius < ends[0]) ends[0] = radius;
            if (is_first || radius > ends[1]) ends[1] = radius;
            is_first = 0;
        }
        if (is_first) ends[0] = ends[1] = radii->radii[p * BSW_RADII_MAP];
    }
}
