// SPDX-License-Identifier: Apache-2.0
#include "shard/exact/neighbour_codes.h"

#include <math.h>
#include <string.h>

#include "common/codes/metric.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/screen/screen_margin.h"

#define QUERY_MOST 127.0
// One pair in so many may pass: an exact value costs about 8 times a float32 product.
#define PAIRS_A_PASS 8
#define MAX_PAUSE    16
// Halves reach from 2^-14 to 2^16: room for rows that are larger than those looked at.
#define UNIT_ROOM 64

// ---- queries ----

// How a query's numbers in steps were rounded.
struct query_rounding {
    double squares; // sum of squared errors
    double rest;    // the largest error by magnitude, the number less its code
    size_t place;   // of that
    int32_t sum;    // of codes
};

static struct query_rounding round_query(const double *query, double step, size_t dims,
                                         int8_t *components)
{
    struct query_rounding rounding = {0};
    for (size_t d = 0; d < dims; d++) {
        double code = rint(query[d] / step), rest = query[d] / step - code;
        components[d] = (int8_t)code;
        rounding.sum += components[d];
        rounding.squares += rest * rest;
        if (fabs(rest) <= fabs(rounding.rest)) continue;
        rounding.rest = rest;
        rounding.place = d;
    }
    return rounding;
}

// Makes the sum even, and so the constant, which the fast keys of matrix_scan ask for. The number
// nearest to another code pays for that.
static void make_even(struct query_rounding *rounding, int8_t *components)
{
    int8_t *component = &components[rounding->place];
    int is_up = rounding->rest > 0.0 ? *component < 127 : *component == -127;
    if (rounding->sum % 2 == 0) return;
    *component = (int8_t)(*component + (is_up ? 1 : -1));
    rounding->sum += is_up ? 1 : -1;
    // A number at the end, off by a rounding of its quotient, may have to go the other way.
    rounding->squares += 1.0 - 2.0 * fabs(rounding->rest) + 1e-11;
}

void bsw_neighbour_codes_put_query(struct bsw_neighbour_tiles *tiles, size_t q, double scale)
{
    const double *query = tiles->numbers + q * tiles->dims;
    int8_t *components = tiles->components + q * tiles->padded_dims;
    double largest = 0.0;
    memset(components, 0, tiles->padded_dims);
    tiles->constants[q] = 0;
    tiles->steps[q] = 0.0;
    for (size_t d = 0; d < tiles->dims; d++) largest = fmax(largest, fabs(query[d]));
    if (largest == 0.0) return;
    double step = largest / QUERY_MOST;
    struct query_rounding rounding = round_query(query, step, tiles->dims, components);
    make_even(&rounding, components);
    tiles->constants[q] = 255 * rounding.sum;
    tiles->steps[q] = step * scale;
    double error = sqrt(rounding.squares) * step / sqrt(tiles->norms[q]) * (1.0 + 0x1p-30);
    tiles->query_error = fmax(tiles->query_error, error);
}

// ---- rows ----

// F of screen_margin.h: f of rows whose codes are as good as the worst query's.
static double balance_of(const struct bsw_neighbour_tiles *tiles)
{
    return fmax(2.0 * tiles->query_error, 0x1p-8);
}

void bsw_neighbour_codes_begin(struct bsw_neighbour_tiles *tiles)
{
    tiles->unit = 0x1p-140; // no more than that of any row
}

void bsw_neighbour_codes_look_at(struct bsw_neighbour_tiles *tiles, const float *row)
{
    double norm, largest = 0.0;
    int exponent;
    tiles->encode->squared_norms(row, 1, tiles->dims, &norm);
    if (bsw_row_fault_of(norm, tiles->metric) != BSW_ROW_GOOD) return;
    for (size_t d = 0; d < tiles->dims; d++) { // not fmax: gcc 12 for Arm fails on it here
        double absolute = fabs((double)row[d]);
        if (absolute > largest) largest = absolute;
    }
    if (largest == 0.0) return;
    if (bsw_has_unit_rows(tiles->metric)) largest /= sqrt(norm);
    frexp(largest / (255.0 * UNIT_ROOM), &exponent);
    tiles->unit = fmax(tiles->unit, ldexp(1.0, exponent));
}

void bsw_neighbour_codes_pack(struct bsw_neighbour_tiles *tiles, size_t bundle, const float *rows,
                              const double *norms, size_t num_rows, uint32_t mask)
{
    float steps[BSW_BUNDLE_ROWS], squared_errors[BSW_BUNDLE_ROWS];
    size_t first = bundle * BSW_BUNDLE_ROWS, bytes = BSW_BUNDLE_ROWS * tiles->padded_dims;
    float *biases = tiles->biases + first;
    uint16_t *scales = tiles->scales + first;
    int is_cosine = bsw_has_unit_rows(tiles->metric);
    double balance = balance_of(tiles);
    memset(tiles->bytes + bundle * bytes, 0, bytes);
    memset(biases, 0, BSW_BUNDLE_ROWS * sizeof *biases);
    memset(scales, 0, BSW_BUNDLE_ROWS * sizeof *scales);
    memcpy(tiles->row_norms + first, norms, num_rows * sizeof *norms);
    tiles->screen->pack_codes(rows, num_rows, tiles->dims, tiles->bytes + bundle * bytes, steps,
                              squared_errors);
    for (size_t r = 0; r < num_rows; r++) {
        if (!(mask >> r & 1)) continue;
        double error = bsw_screen_code_error(steps[r], squared_errors[r], norms[r], tiles->dims);
        double step = is_cosine ? (double)steps[r] / sqrt(norms[r]) : (double)steps[r];
        scales[r] = bsw_screen_code_scale(step, tiles->unit, &error);
        double share = bsw_screen_code_share(tiles->metric, error, tiles->query_error, balance);
        biases[r] = bsw_screen_row_bias(tiles->metric, norms[r], share, tiles->dims);
    }
}

// ---- comparison ----

// scales [num_queries] in the block's unit; 0 if some are below what the margin allows.
static int find_scales(const struct bsw_neighbour_tiles *tiles,
                       const struct bsw_neighbour_step *step, float *scales)
{
    const double *steps = tiles->steps + step->first_query;
    for (size_t q = 0; q < step->num_queries; q++) {
        double scale = steps[q] * tiles->unit;
        if (scale < BSW_SCREEN_LEAST_SCALE && scale != 0.0) return 0;
        scales[q] = (float)scale;
    }
    return 1;
}

static uint32_t limit_of(const struct bsw_neighbour_tiles *tiles, size_t query,
                         const struct bsw_exact_best *list)
{
    double share = BSW_SCREEN_CODE_SHARE + balance_of(tiles);
    float limit = bsw_screen_limit(tiles->metric, tiles->norms[query], share, list->limit);
    return limit == INFINITY ? UINT32_MAX : bsw_score_from_float(limit);
}

static void scan(const struct bsw_neighbour_tiles *tiles, const struct bsw_neighbour_step *step,
                 const float *scales, struct bsw_matrix_output *outputs)
{
    size_t first = step->bundle * BSW_BUNDLE_ROWS;
    const struct bsw_matrix_tile tile = {.bytes = tiles->bytes + first * tiles->padded_dims,
                                         .num_bundles = step->num_bundles,
                                         .padded_dims = (uint32_t)tiles->padded_dims,
                                         .masks = step->masks + step->bundle,
                                         .scales = tiles->scales + first,
                                         .biases = tiles->biases + first};
    const struct bsw_matrix_queries queries = {.num_queries = step->num_queries,
                                               .components = tiles->components +
                                                             step->first_query * tiles->padded_dims,
                                               .constants = tiles->constants + step->first_query,
                                               .scales = scales};
    tiles->matrix_scan->scan(&tile, &queries, outputs);
}

// Whether codes rule out enough of the step.
static int try_scan(const struct bsw_neighbour_tiles *tiles, size_t thread,
                    const struct bsw_neighbour_step *step, const struct bsw_exact_best *lists,
                    struct bsw_matrix_output *outputs)
{
    uint64_t *items = tiles->items + thread * BSW_NEIGHBOUR_TILE_QUERIES * BSW_NEIGHBOUR_STEP_ROWS;
    float scales[BSW_NEIGHBOUR_TILE_QUERIES];
    size_t total = 0, pairs = step->num_queries * step->num_bundles * BSW_BUNDLE_ROWS;
    if (!find_scales(tiles, step, scales)) return 0;
    for (size_t q = 0; q < step->num_queries; q++) {
        size_t query = step->first_query + q;
        outputs[q] = (struct bsw_matrix_output){items + q * BSW_NEIGHBOUR_STEP_ROWS, 0,
                                                limit_of(tiles, query, &lists[query])};
    }
    scan(tiles, step, scales, outputs);
    for (size_t q = 0; q < step->num_queries; q++) total += outputs[q].count;
    return total * PAIRS_A_PASS <= pairs;
}

int bsw_neighbour_codes_scan(const struct bsw_neighbour_tiles *tiles, size_t thread,
                             const struct bsw_neighbour_step *step,
                             const struct bsw_exact_best *lists,
                             struct bsw_matrix_output outputs[BSW_NEIGHBOUR_TILE_QUERIES])
{
    struct bsw_neighbour_pause *pause = &tiles->pauses[thread];
    if (pause->left > 0) {
        pause->left--;
        return 0;
    }
    if (try_scan(tiles, thread, step, lists, outputs)) {
        pause->last = 0;
        return 1;
    }
    pause->last = pause->last == 0 ? 1 : 2 * pause->last;
    if (pause->last > MAX_PAUSE) pause->last = MAX_PAUSE;
    pause->left = pause->last;
    return 0;
}
