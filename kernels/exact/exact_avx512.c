// A tile is 2 rows by 3 queries, whose 32 lanes are 24 running sums in registers; 5 loads feed 6
// fused multiply-adds. The trees of 8 rows are then finished side by side.
//
// Lanes past the end read as zero; fma(0, 0, s) leaves s as it is (refine_avx512.c has the reason).
#include <immintrin.h>
#include <math.h>

#include "kernels/exact/exact.h"

#define INLINE static inline __attribute__((always_inline))

enum { PANEL = 8, TILE_ROWS = 2, TILE_QUERIES = 3, LANE_GROUPS = 4 };

// Keeps a loaded value in its register: gcc would load it again for every use.
#define PIN(value) __asm__("" : "+v"(value))

// The running sums of a tile: [lane group][query][row].
typedef __m512d tile_sums[LANE_GROUPS][TILE_QUERIES][TILE_ROWS];

// Which of the numbers i .. i+7 are below n.
INLINE __mmask8 valid_lanes(size_t i, size_t n)
{
    if (i >= n) return 0;
    return n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : (__mmask8)0xff;
}

// Adds 8 dimensions of every pair of the tile to one lane group.
INLINE void add_lanes(int is_l2, const double *const rows[TILE_ROWS], size_t i,
                      const double *queries, size_t num_queries, size_t dims, __mmask8 valid,
                      __m512d s[TILE_QUERIES][TILE_ROWS])
{
    __m512d row[TILE_ROWS];
    for (size_t r = 0; r < TILE_ROWS; r++) {
        row[r] = _mm512_maskz_loadu_pd(valid, rows[r] + i);
        PIN(row[r]);
    }
    for (size_t q = 0; q < num_queries; q++) {
        __m512d query = _mm512_maskz_loadu_pd(valid, queries + q * dims + i);
        PIN(query);
        for (size_t r = 0; r < TILE_ROWS; r++) {
            __m512d a = is_l2 ? _mm512_sub_pd(row[r], query) : row[r];
            s[q][r] = _mm512_fmadd_pd(a, is_l2 ? a : query, s[q][r]);
        }
    }
}

// The trees down to h = 8 of the pairs of 2 rows and num_queries queries, to out[query][first_row
// and first_row + 1].
INLINE void sum_tile(int is_l2, const double *const rows[TILE_ROWS], const double *queries,
                     size_t num_queries, size_t dims, size_t first_row,
                     __m512d out[TILE_QUERIES][PANEL])
{
    tile_sums s;
    for (size_t g = 0; g < LANE_GROUPS; g++)
        for (size_t q = 0; q < num_queries; q++)
            for (size_t r = 0; r < TILE_ROWS; r++) s[g][q][r] = _mm512_setzero_pd();
    size_t i = 0;
    for (; i + 32 <= dims; i += 32)
        for (size_t g = 0; g < LANE_GROUPS; g++)
            add_lanes(is_l2, rows, i + 8 * g, queries, num_queries, dims, 0xff, s[g]);
    if (i < dims) {
        for (size_t g = 0; g < LANE_GROUPS; g++)
            add_lanes(is_l2, rows, i + 8 * g, queries, num_queries, dims,
                      valid_lanes(i + 8 * g, dims), s[g]);
    }
    for (size_t q = 0; q < num_queries; q++)
        for (size_t r = 0; r < TILE_ROWS; r++)
            out[q][first_row + r] = _mm512_add_pd(_mm512_add_pd(s[0][q][r], s[2][q][r]),
                                                  _mm512_add_pd(s[1][q][r], s[3][q][r]));
}

// The trees from h = 4 down of 8 registers at once; lane r of the result is that of v[r].
INLINE __m512d tree_sums(const __m512d v[8])
{
    __m512d four[4], two[2];
    for (int i = 0; i < 4; i++) { // rows 0 2, 4 6, 1 3, 5 7
        __m512d a = v[i % 2 * 4 + i / 2], b = v[i % 2 * 4 + i / 2 + 2];
        four[i] = _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x44), _mm512_shuffle_f64x2(a, b, 0xee));
    }
    for (int i = 0; i < 2; i++) { // rows 0 2 4 6, 1 3 5 7
        __m512d a = four[2 * i], b = four[2 * i + 1];
        two[i] = _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x88), _mm512_shuffle_f64x2(a, b, 0xdd));
    }
    return _mm512_add_pd(_mm512_unpacklo_pd(two[0], two[1]), _mm512_unpackhi_pd(two[0], two[1]));
}

// The keys of 8 sums of one query; the roots are of squared norms.
INLINE __m512d keys_of_sums(enum bsw_metric metric, __m512d sums, __m512d row_roots,
                            double query_root)
{
    if (metric == BSW_METRIC_COSINE)
        sums = _mm512_div_pd(sums, _mm512_mul_pd(row_roots, _mm512_set1_pd(query_root)));
    const __m512d zero = _mm512_setzero_pd();
    return metric == BSW_METRIC_L2 ? _mm512_sub_pd(zero, sums) : _mm512_add_pd(sums, zero);
}

// 8 rows and what their pairs with every query share.
struct row_panel {
    const double *rows[PANEL]; // the last row again where there are fewer
    __mmask8 valid_rows;
    __m512d row_roots;
    size_t key_stride; // from query to query
    size_t dims;
};

INLINE void row_panel_keys(enum bsw_metric metric, const struct row_panel *panel,
                           const double *queries, size_t first_query, size_t num_queries,
                           const double *query_norms, double *keys)
{
    __m512d sums[TILE_QUERIES][PANEL];
    for (size_t r = 0; r < PANEL; r += TILE_ROWS)
        sum_tile(metric == BSW_METRIC_L2, panel->rows + r, queries + first_query * panel->dims,
                 num_queries, panel->dims, r, sums);
    for (size_t q = 0; q < num_queries; q++) {
        double root = metric == BSW_METRIC_COSINE ? sqrt(query_norms[first_query + q]) : 0.0;
        __m512d key = keys_of_sums(metric, tree_sums(sums[q]), panel->row_roots, root);
        _mm512_mask_storeu_pd(keys + (first_query + q) * panel->key_stride, panel->valid_rows, key);
    }
}

INLINE void all_keys_double(enum bsw_metric metric, const double *rows, size_t num_rows,
                            const double *row_norms, const double *queries, size_t num_queries,
                            const double *query_norms, size_t dims, double *keys)
{
    struct row_panel panel = {
        .row_roots = _mm512_setzero_pd(), .key_stride = num_rows, .dims = dims};
    for (size_t first = 0; first < num_rows; first += PANEL) {
        size_t num = num_rows - first < PANEL ? num_rows - first : PANEL;
        for (size_t r = 0; r < PANEL; r++)
            panel.rows[r] = rows + (first + (r < num ? r : num - 1)) * dims;
        panel.valid_rows = (__mmask8)((1u << num) - 1);
        if (metric == BSW_METRIC_COSINE)
            panel.row_roots =
                _mm512_sqrt_pd(_mm512_maskz_loadu_pd(panel.valid_rows, row_norms + first));
        size_t q = 0;
        for (; q + TILE_QUERIES <= num_queries; q += TILE_QUERIES)
            row_panel_keys(metric, &panel, queries, q, TILE_QUERIES, query_norms, keys + first);
        for (; q < num_queries; q++)
            row_panel_keys(metric, &panel, queries, q, 1, query_norms, keys + first);
    }
}

static void avx512_keys_double(enum bsw_metric metric, const double *rows, size_t num_rows,
                               const double *row_norms, const double *queries, size_t num_queries,
                               const double *query_norms, size_t dims, double *keys)
{
    switch (metric) {
    case BSW_METRIC_COSINE:
        all_keys_double(BSW_METRIC_COSINE, rows, num_rows, row_norms, queries, num_queries,
                        query_norms, dims, keys);
        break;
    case BSW_METRIC_IP:
        all_keys_double(BSW_METRIC_IP, rows, num_rows, row_norms, queries, num_queries, query_norms,
                        dims, keys);
        break;
    default:
        all_keys_double(BSW_METRIC_L2, rows, num_rows, row_norms, queries, num_queries, query_norms,
                        dims, keys);
        break;
    }
}

const struct bsw_exact_table bsw_exact_avx512 = {
    .level = "avx512",
    .keys_double = avx512_keys_double,
};
