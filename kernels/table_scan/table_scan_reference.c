// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "common/codes/result_order.h"
#include "kernels/table_scan/table_scan.h"

static const char *const names[BSW_NUM_TABLE_TYPES] = {[BSW_TABLE_FLOAT32] = "float32",
                                                       [BSW_TABLE_FLOAT16] = "float16",
                                                       [BSW_TABLE_E5M3] = "e5m3",
                                                       [BSW_TABLE_E4M4] = "e4m4"};

const char *bsw_table_name(enum bsw_table_type type)
{
    return names[type];
}

static void reference_products(const struct bsw_product_book *book, const float *x,
                               const float *start, float *out)
{
    size_t num = bsw_product_entries(book);
    for (uint32_t p = 0; p < book->parts; p++) {
        for (size_t j = 0; j < num; j++) {
            float sum = start ? start[p * num + j] : 0.0f;
            for (uint32_t d = 0; d < book->part_dims; d++) {
                size_t dim = (size_t)p * book->part_dims + d;
                sum = fmaf(x[dim], book->entries[dim * num + j], sum);
            }
            out[p * num + j] = sum;
        }
    }
}

static uint8_t nearest_entry(const struct bsw_product_book *book, uint32_t p, const float *x)
{
    size_t num = bsw_product_entries(book), best = 0;
    float least = INFINITY;
    for (size_t j = 0; j < num; j++) {
        float sum = book->norms[p * num + j];
        for (uint32_t d = 0; d < book->part_dims; d++) {
            size_t dim = (size_t)p * book->part_dims + d;
            sum = fmaf(-2.0f * x[dim], book->entries[dim * num + j], sum);
        }
        if (sum < least) {
            least = sum;
            best = j;
        }
    }
    return (uint8_t)best;
}

static void reference_nearest(const struct bsw_product_book *book, const float *x, size_t stride,
                              size_t num_rows, uint8_t *codes)
{
    for (size_t r = 0; r < num_rows; r++)
        for (uint32_t p = 0; p < book->parts; p++)
            codes[r * book->parts + p] = nearest_entry(book, p, x + r * stride);
}

static float reference_distances(const struct bsw_product_book *book, const float *list,
                                 const float *query, const float *bases, float *out)
{
    size_t num = bsw_product_entries(book);
    float largest = 0.0f;
    for (size_t i = 0; i < bsw_product_numbers(book); i++) {
        float sum = (list[i] + query[i]) + bases[i / num];
        out[i] = sum > 0.0f ? sum : 0.0f;
        largest = out[i] > largest ? out[i] : largest;
    }
    return largest;
}

static float half_of(float v)
{
    float half = bsw_half_to_float(bsw_half_nearest(fabs((double)v)));
    return v < 0 ? -half : half;
}

static void reference_round_numbers(enum bsw_table_type type, int is_signed, int exponent,
                                    const float *in, size_t n, float *out)
{
    float power = bsw_table_power(exponent);
    uint32_t bits = bsw_float8_exponent_bits(type);
    for (size_t i = 0; i < n; i++) {
        float v = in[i] * power;
        if (type == BSW_TABLE_FLOAT16)
            out[i] = half_of(v);
        else
            out[i] = is_signed ? bsw_float8_decode_signed(bits, bsw_float8_encode_signed(bits, v))
                               : bsw_float8_decode(bits, bsw_float8_encode(bits, v));
    }
}

static size_t code_of(const struct bsw_code_table *table, const uint8_t *bundle, uint32_t p,
                      size_t lane)
{
    if (table->bits == 8) return bundle[p * BSW_BUNDLE_ROWS + lane];
    uint8_t both = bundle[p / 2 * BSW_BUNDLE_ROWS + lane];
    return p % 2 ? both >> 4 : both & 15;
}

static float sum_of(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                    size_t row)
{
    const uint8_t *bundle = codes + row / BSW_BUNDLE_ROWS * bundle_bytes;
    float sum = 0.0f;
    for (uint32_t p = 0; p < table->parts; p++) {
        size_t code = code_of(table, bundle, p, row % BSW_BUNDLE_ROWS);
        sum += table->numbers[((size_t)p << table->bits) + code];
    }
    return sum;
}

static void reference_sums(const struct bsw_code_table *table, const uint8_t *codes,
                           size_t bundle_bytes, size_t num_bundles, float *sums)
{
    for (size_t row = 0; row < num_bundles * BSW_BUNDLE_ROWS; row++)
        sums[row] = sum_of(table, codes, bundle_bytes, row);
}

static void reference_sums_at(const struct bsw_code_table *table, const uint8_t *codes,
                              size_t bundle_bytes, const uint32_t *places, size_t num_places,
                              float *sums)
{
    for (size_t i = 0; i < num_places; i++) sums[i] = sum_of(table, codes, bundle_bytes, places[i]);
}

static size_t reference_filter(const float *sums, float multiplier, float addition,
                               const uint32_t *masks, size_t num_bundles, uint32_t first_row,
                               uint32_t limit, uint64_t *items)
{
    size_t count = 0;
    for (size_t i = 0; i < num_bundles * BSW_BUNDLE_ROWS; i++) {
        float key = ((sums[i] * multiplier + 0.0f) + addition) + 0.0f;
        uint32_t score = bsw_score_from_float(key);
        if (!(masks[i / BSW_BUNDLE_ROWS] >> (i % BSW_BUNDLE_ROWS) & 1) || score < limit) continue;
        items[count++] = bsw_candidate_pack(score, first_row + (uint32_t)i);
    }
    return count;
}

const struct bsw_table_scan_table bsw_table_scan_reference = {.level = "reference",
                                                              .products = reference_products,
                                                              .nearest = reference_nearest,
                                                              .distances = reference_distances,
                                                              .round_numbers =
                                                                  reference_round_numbers,
                                                              .sums = reference_sums,
                                                              .sums_at = reference_sums_at,
                                                              .filter = reference_filter};

BSW_KERNEL_TABLE_GET(table_scan, BSW_KERNEL_AVX2(table_scan) BSW_KERNEL_AVX512(table_scan)
                                     BSW_KERNEL_NEON(table_scan))
