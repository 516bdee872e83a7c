// As the AVX-512 level in half-size registers, of which there are 16: the tile of 2 rows by 3
// queries sums 8 of the 32 lanes at a time (12 running sums).
//
// Lanes past the end read as zero; fma(0, 0, s) leaves s as it is (refine_avx512.c has the reason).
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/exact/exact.h"

#define INLINE static inline __attribute__((always_inline))

enum { PANEL = 4, TILE_ROWS = 2, TILE_QUERIES = 3, PASSES = 4, HALVES = 2 };

// Keeps a loaded value in its register: gcc would load it again for every use.
#define PIN(value) __asm__("" : "+x"(value))

// Running sums of a tile in one pass: lanes 8*pass .. + 3 and 8*pass + 4 .. + 7.
typedef __m256d pass_sums[HALVES][TILE_QUERIES][TILE_ROWS];

// Numbers i .. i+3; those at n or beyond are not read and give 0. A whole load if n is SIZE_MAX.
INLINE __m256d load4(const double *numbers, size_t i, size_t n)
{
    if (n == SIZE_MAX) return _mm256_loadu_pd(numbers + i);
    __m256i left = _mm256_set1_epi64x((long long)n - (long long)i);
    __m256i valid = _mm256_cmpgt_epi64(left, _mm256_set_epi64x(3, 2, 1, 0));
    return _mm256_maskload_pd(numbers + i, valid);
}

// Adds dimensions i .. i+7 of every pair of the tile.
INLINE void add_lanes(int is_l2, const double *const rows[TILE_ROWS], const double *queries,
                      size_t num_queries, size_t dims, size_t i, size_t n, pass_sums s)
{
    for (size_t half = 0; half < HALVES; half++, i += 4) {
        __m256d row[TILE_ROWS];
        for (size_t r = 0; r < TILE_ROWS; r++) {
            row[r] = load4(rows[r], i, n);
            PIN(row[r]);
        }
        for (size_t q = 0; q < num_queries; q++) {
            __m256d query = load4(queries + q * dims, i, n);
            PIN(query);
            for (size_t r = 0; r < TILE_ROWS; r++) {
                __m256d a = is_l2 ? _mm256_sub_pd(row[r], query) : row[r];
                s[half][q][r] = _mm256_fmadd_pd(a, is_l2 ? a : query, s[half][q][r]);
            }
        }
    }
}

INLINE void sum_pass(int is_l2, const double *const rows[TILE_ROWS], const double *queries,
                     size_t num_queries, size_t dims, size_t pass, pass_sums out)
{
    pass_sums s;
    for (size_t h = 0; h < HALVES; h++)
        for (size_t q = 0; q < num_queries; q++)
            for (size_t r = 0; r < TILE_ROWS; r++) s[h][q][r] = _mm256_setzero_pd();
    size_t i = 8 * pass;
    for (; i + 8 <= dims; i += 8 * PASSES)
        add_lanes(is_l2, rows, queries, num_queries, dims, i, SIZE_MAX, s);
    if (i < dims) add_lanes(is_l2, rows, queries, num_queries, dims, i, dims, s);
    for (size_t h = 0; h < HALVES; h++)
        for (size_t q = 0; q < num_queries; q++)
            for (size_t r = 0; r < TILE_ROWS; r++) out[h][q][r] = s[h][q][r];
}

// The trees down to h = 4 of the pairs of 2 rows and num_queries queries, to out[query][first_row
// and first_row + 1].
INLINE void sum_tile(int is_l2, const double *const rows[TILE_ROWS], const double *queries,
                     size_t num_queries, size_t dims, size_t first_row,
                     __m256d out[TILE_QUERIES][PANEL])
{
    pass_sums s[PASSES];
    for (size_t pass = 0; pass < PASSES; pass++)
        sum_pass(is_l2, rows, queries, num_queries, dims, pass, s[pass]);
    for (size_t q = 0; q < num_queries; q++) {
        for (size_t r = 0; r < TILE_ROWS; r++) {
            __m256d half[HALVES];
            for (size_t h = 0; h < HALVES; h++)
                half[h] = _mm256_add_pd(_mm256_add_pd(s[0][h][q][r], s[2][h][q][r]),
                                        _mm256_add_pd(s[1][h][q][r], s[3][h][q][r]));
            out[q][first_row + r] = _mm256_add_pd(half[0], half[1]);
        }
    }
}

// The trees from h = 2 down of 4 registers at once; lane r of the result is that of v[r].
INLINE __m256d tree_sums(const __m256d v[PANEL])
{
    __m256d even = _mm256_add_pd(_mm256_permute2f128_pd(v[0], v[2], 0x20),
                                 _mm256_permute2f128_pd(v[0], v[2], 0x31));
    __m256d odd = _mm256_add_pd(_mm256_permute2f128_pd(v[1], v[3], 0x20),
                                _mm256_permute2f128_pd(v[1], v[3], 0x31));
    return _mm256_add_pd(_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd));
}

// Stores the keys of num (at most 4) sums of one query; the roots are of squared norms.
INLINE void store_keys(enum bsw_metric metric, __m256d sums, __m256d row_roots, double query_root,
                       size_t num, double *keys)
{
    if (metric == BSW_METRIC_COSINE)
        sums = _mm256_div_pd(sums, _mm256_mul_pd(row_roots, _mm256_set1_pd(query_root)));
    const __m256d zero = _mm256_setzero_pd();
    sums = metric == BSW_METRIC_L2 ? _mm256_sub_pd(zero, sums) : _mm256_add_pd(sums, zero);
    if (num >= 4) {
        _mm256_storeu_pd(keys, sums);
    } else {
        double four[4];
        _mm256_storeu_pd(four, sums);
        memcpy(keys, four, num * sizeof *keys);
    }
}

// 4 rows and what their pairs with every query share.
struct row_panel {
    const double *rows[PANEL]; // the last row again where there are fewer
    size_t num_rows;
    double row_roots[PANEL];
    size_t key_stride; // from query to query
    size_t dims;
};

INLINE void row_panel_keys(enum bsw_metric metric, const struct row_panel *panel,
                           const double *queries, size_t first_query, size_t num_queries,
                           const double *query_norms, double *keys)
{
    __m256d sums[TILE_QUERIES][PANEL];
    for (size_t r = 0; r < PANEL; r += TILE_ROWS)
        sum_tile(metric == BSW_METRIC_L2, panel->rows + r, queries + first_query * panel->dims,
                 num_queries, panel->dims, r, sums);
    for (size_t q = 0; q < num_queries; q++) {
        double root = metric == BSW_METRIC_COSINE ? sqrt(query_norms[first_query + q]) : 0.0;
        store_keys(metric, tree_sums(sums[q]), _mm256_loadu_pd(panel->row_roots), root,
                   panel->num_rows, keys + (first_query + q) * panel->key_stride);
    }
}

INLINE void all_keys_double(enum bsw_metric metric, const double *rows, size_t num_rows,
                            const double *row_norms, const double *queries, size_t num_queries,
                            const double *query_norms, size_t dims, double *keys)
{
    struct row_panel panel = {.key_stride = num_rows, .dims = dims};
    for (size_t first = 0; first < num_rows; first += PANEL) {
        panel.num_rows = num_rows - first < PANEL ? num_rows - first : PANEL;
        for (size_t r = 0; r < PANEL; r++) {
            size_t row = first + (r < panel.num_rows ? r : panel.num_rows - 1);
            panel.rows[r] = rows + row * dims;
            panel.row_roots[r] = metric == BSW_METRIC_COSINE ? sqrt(row_norms[row]) : 0.0;
        }
        size_t q = 0;
        for (; q + TILE_QUERIES <= num_queries; q += TILE_QUERIES)
            row_panel_keys(metric, &panel, queries, q, TILE_QUERIES, query_norms, keys + first);
        for (; q < num_queries; q++)
            row_panel_keys(metric, &panel, queries, q, 1, query_norms, keys + first);
    }
}

static void avx2_keys_double(enum bsw_metric metric, const double *rows, size_t num_rows,
                             const double *row_norms, const double *queries, size_t num_queries,
                             const double *query_norms, size_t dims, double *keys)
{
    if (metric == BSW_METRIC_COSINE)
        all_keys_double(BSW_METRIC_COSINE, rows, num_rows, row_norms, queries, num_queries,
                        query_norms, dims, keys);
    else if (metric == BSW_METRIC_IP)
        all_keys_double(BSW_METRIC_IP, rows, num_rows, NULL, queries, num_queries, NULL, dims,
                        keys);
    else
        all_keys_double(BSW_METRIC_L2, rows, num_rows, NULL, queries, num_queries, NULL, dims,
                        keys);
}

const struct bsw_exact_table bsw_exact_avx2 = {
    .level = "avx2",
    .keys_double = avx2_keys_double,
};
