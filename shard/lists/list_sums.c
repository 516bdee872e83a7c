// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/list_sums.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/base/memory.h"
#include "kernels/encode/encode.h"

// Rows of a list lie anywhere: they are asked for some ahead.
#define PREFETCH_ROWS  4
#define PREFETCH_BYTES ((size_t)1024)
#define SUM_BITS       62
#define NUMBER_BITS    50
// Added to a number up to 2^50 in magnitude it leaves its nearest whole number in the low bits.
#define WHOLE 0x1.8p52

double bsw_list_scale(double largest, uint64_t num_rows)
{
    int of_sum = 0, of_number = 0;
    if (largest > 0.0) {
        frexp(largest * (1.0 + 0x1p-30), &of_number);
        frexp(largest * (double)num_rows * (1.0 + 0x1p-30), &of_sum);
    }
    int exponent = SUM_BITS - of_sum;
    if (exponent > NUMBER_BITS - of_number) exponent = NUMBER_BITS - of_number;
    return ldexp(1.0, exponent);
}

static inline int64_t whole(double number)
{
    const double none = WHOLE;
    int64_t bits, none_bits;
    number += none;
    memcpy(&bits, &number, sizeof bits);
    memcpy(&none_bits, &none, sizeof none_bits);
    return bits - none_bits;
}

// ---- memory ----

enum bsw_status bsw_list_totals_open(size_t num_lists, size_t dims, struct bsw_list_totals *out,
                                     struct bsw_error *err)
{
    *out = (struct bsw_list_totals){
        .num_words = 1 + num_lists * (dims + 2), .num_lists = num_lists, .dims = dims};
    return bsw_allocate(&out->words, out->num_words, sizeof *out->words, "sums of lists", err);
}

void bsw_list_totals_close(struct bsw_list_totals *totals)
{
    bsw_free(&totals->words);
}

enum bsw_status bsw_list_sums_open(size_t num_rows, size_t num_lists, size_t dims,
                                   struct bsw_list_sums *sums, struct bsw_error *err)
{
    size_t threads = (size_t)sums->num_threads;
    BSW_TRY(bsw_allocate(&sums->order, num_rows, sizeof *sums->order, "rows by list", err));
    BSW_TRY(bsw_allocate(&sums->firsts, num_lists + 1, sizeof *sums->firsts, "rows by list", err));
    return bsw_allocate(&sums->rows, threads * dims, sizeof *sums->rows, "rows by list", err);
}

void bsw_list_sums_close(struct bsw_list_sums *sums)
{
    bsw_free(&sums->order);
    bsw_free(&sums->firsts);
    bsw_free(&sums->rows);
}

// ---- rows by list ----

static void order_rows(struct bsw_list_sums *sums, size_t num_rows, size_t num_lists,
                       const uint32_t *lists)
{
    size_t *firsts = sums->firsts;
    memset(firsts, 0, (num_lists + 1) * sizeof *firsts);
    for (size_t i = 0; i < num_rows; i++)
        if (lists[i] < num_lists) firsts[lists[i] + 1]++;
    for (size_t l = 0; l < num_lists; l++) firsts[l + 1] += firsts[l];
    for (size_t i = 0; i < num_rows; i++)
        if (lists[i] < num_lists) sums->order[firsts[lists[i]]++] = (uint32_t)i;
    // Each has moved to the end of its list, which is where the next one begins.
    memmove(firsts + 1, firsts, num_lists * sizeof *firsts);
    firsts[0] = 0;
}

// ---- sums ----

static void add_numbers(const float *restrict row, float factor, const double *restrict scales,
                        size_t dims, int64_t *restrict out)
{
    for (size_t d = 0; d < dims; d++) out[d] += whole((double)(row[d] * factor) * scales[d]);
}

static void add_row(const struct bsw_list_sums *sums, const struct bsw_encode_table *encode,
                    const struct bsw_list_rows *rows, size_t i, size_t dims, int64_t *out)
{
    float *row = sums->rows + (size_t)omp_get_thread_num() * dims;
    encode->to_float(sums->type, rows->raw + i * dims * bsw_vector_type_bytes(sums->type), dims,
                     row);
    add_numbers(row, rows->factors ? rows->factors[i] : 1.0f, sums->scales.components, dims, out);
}

static void prefetch_row(const struct bsw_list_sums *sums, const struct bsw_list_rows *rows,
                         size_t i, size_t dims)
{
    size_t row_bytes = dims * bsw_vector_type_bytes(sums->type);
    for (size_t at = 0; at < row_bytes && at < PREFETCH_BYTES; at += 64)
        __builtin_prefetch(rows->raw + i * row_bytes + at);
}

// How far a row is from its centroid, under cosine as vectors of length one.
static int64_t distance_of(const struct bsw_list_sums *sums, double key)
{
    double squared = bsw_has_unit_rows(sums->metric) ? fmax(2.0 - 2.0 * key, 0.0) : -key;
    return whole(sqrt(squared) * sums->scales.distance);
}

static void add_list(const struct bsw_list_sums *sums, const struct bsw_encode_table *encode,
                     const struct bsw_list_rows *rows, const double *keys,
                     const struct bsw_list_totals *totals, size_t list)
{
    size_t first = sums->firsts[list], last = sums->firsts[list + 1], dims = totals->dims;
    int64_t *out = bsw_totals_sums(totals) + list * dims, distance = 0;
    memset(out, 0, dims * sizeof *out);
    for (size_t at = first; at < last; at++) {
        size_t i = sums->order[at];
        if (at + PREFETCH_ROWS < last)
            prefetch_row(sums, rows, sums->order[at + PREFETCH_ROWS], dims);
        add_row(sums, encode, rows, i, dims, out);
        if (keys) distance += distance_of(sums, keys[i]);
    }
    bsw_totals_counts(totals)[list] = (int64_t)(last - first);
    bsw_totals_distances(totals)[list] = distance;
}

void bsw_list_sums_add(struct bsw_list_sums *sums, const struct bsw_list_rows *rows,
                       const uint32_t *lists, const double *keys,
                       const struct bsw_list_totals *totals)
{
    const struct bsw_encode_table *encode = bsw_encode_table_get(sums->level);
    order_rows(sums, rows->num_rows, totals->num_lists, lists);
#pragma omp parallel for schedule(dynamic, 4) num_threads(sums->num_threads)
    for (size_t list = 0; list < totals->num_lists; list++)
        add_list(sums, encode, rows, keys, totals, list);
}
