// Float64: a tile is 2 rows by 3 queries, whose 32 lanes are 24 running sums in registers; 5 loads
// feed 6 fused multiply-adds. The trees of 8 rows are then finished side by side.
//
// Integers: 48 rows are transposed so that a register holds two dimensions of 16 rows; a query's
// two numbers are broadcast against it, and no sum is ever horizontal. l2 is xx - 2xq + qq, which
// in integers is the same number, and each of its parts fits int32 where the whole may not (uint8
// rows against int8 queries).
//
// Lanes past the end read as zero; fma(0, 0, s) leaves s as it is (refine_avx512.c has the reason).
#include <immintrin.h>
#include <math.h>
#include <string.h>

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
INLINE __m256 keys_of_sums(enum bsw_metric metric, __m512d sums, __m512d row_roots,
                           double query_root)
{
    if (metric == BSW_METRIC_COSINE)
        sums = _mm512_div_pd(sums, _mm512_mul_pd(row_roots, _mm512_set1_pd(query_root)));
    __m256 values = _mm256_add_ps(_mm512_cvtpd_ps(sums), _mm256_setzero_ps());
    return metric == BSW_METRIC_L2 ? _mm256_sub_ps(_mm256_setzero_ps(), values) : values;
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
                           const double *query_norms, float *keys)
{
    __m512d sums[TILE_QUERIES][PANEL];
    for (size_t r = 0; r < PANEL; r += TILE_ROWS)
        sum_tile(metric == BSW_METRIC_L2, panel->rows + r, queries + first_query * panel->dims,
                 num_queries, panel->dims, r, sums);
    for (size_t q = 0; q < num_queries; q++) {
        double root = metric == BSW_METRIC_COSINE ? sqrt(query_norms[first_query + q]) : 0.0;
        __m256 key = keys_of_sums(metric, tree_sums(sums[q]), panel->row_roots, root);
        _mm256_mask_storeu_ps(keys + (first_query + q) * panel->key_stride, panel->valid_rows, key);
    }
}

INLINE void all_keys_double(enum bsw_metric metric, const double *rows, size_t num_rows,
                            const double *row_norms, const double *queries, size_t num_queries,
                            const double *query_norms, size_t dims, float *keys)
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
                               const double *query_norms, size_t dims, float *keys)
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

enum {
    PANEL_ROWS = 48,
    PANEL_VECTORS = PANEL_ROWS / 16,
    PANEL_QUERIES = 8, // with 3 vectors of rows: 24 running sums
    QUERY_BLOCK = 128,
    CHUNK_PAIRS = 128, // pairs of dimensions
};

// 48 rows, a chunk of their dimensions at a time, against a block of queries.
struct panel {
    __m512i pairs[CHUNK_PAIRS][PANEL_VECTORS]; // [pair of dimensions][row]
    __m512i sums[QUERY_BLOCK][PANEL_VECTORS];  // [query][row]
    // What turns products into keys: sums of squares for l2, roots of norms for cosine.
    __m512i row_squares[PANEL_VECTORS];
    __m512d row_roots[PANEL_ROWS / 8];
    int32_t query_squares[QUERY_BLOCK];
    double query_roots[QUERY_BLOCK];
};

// v[row][pair] to v[pair][row].
INLINE void transpose16(__m512i v[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { // v[i + c]: rows i .. i+3 of columns c, 4+c, 8+c, 12+c
        v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int c = 0; c < 4; c++) {
        t[c] = _mm512_shuffle_i32x4(v[c], v[4 + c], 0x44);
        t[4 + c] = _mm512_shuffle_i32x4(v[c], v[4 + c], 0xee);
        t[8 + c] = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0x44);
        t[12 + c] = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0xee);
    }
    for (int c = 0; c < 4; c++) {
        v[c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0x88);
        v[4 + c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0xdd);
        v[8 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0x88);
        v[12 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0xdd);
    }
}

// Numbers first .. first + num - 1 of num_rows rows to panel->pairs; rows and numbers past the end
// are 0. Adds to row_squares.
static void pack_chunk(struct panel *panel, const int16_t *rows, size_t num_rows, size_t dims,
                       size_t first, size_t num)
{
    for (size_t vector = 0; vector < PANEL_VECTORS; vector++) {
        __m512i squares = panel->row_squares[vector];
        for (size_t i = 0; i < num; i += 32) {
            __mmask32 valid = num - i < 32 ? (__mmask32)((1u << (num - i)) - 1) : UINT32_MAX;
            __m512i v[16];
            for (size_t r = 0; r < 16; r++) {
                size_t row = 16 * vector + r;
                v[r] =
                    _mm512_maskz_loadu_epi16(row < num_rows ? valid : 0,
                                             rows + (row < num_rows ? row : 0) * dims + first + i);
            }
            transpose16(v);
            for (size_t p = 0; p < 16; p++) {
                panel->pairs[i / 2 + p][vector] = v[p];
                squares = _mm512_dpwssd_epi32(squares, v[p], v[p]);
            }
        }
        panel->row_squares[vector] = squares;
    }
}

// The panel's 48 rows in one pair of dimensions, or their sums with one query. Named members, and
// named variables below: gcc keeps an array of so many registers in memory.
struct column {
    __m512i a, b, c;
};

INLINE struct column load_column(const __m512i v[PANEL_VECTORS])
{
    return (struct column){v[0], v[1], v[2]};
}

INLINE void store_column(struct column s, __m512i v[PANEL_VECTORS])
{
    v[0] = s.a;
    v[1] = s.b;
    v[2] = s.c;
}

// Adds the products with the next one or two numbers of a query.
INLINE struct column add_pair(struct column s, struct column rows, const int16_t *query, size_t num)
{
    int32_t pair = 0;
    memcpy(&pair, query, num * sizeof *query);
    __m512i both = _mm512_set1_epi32(pair);
    s.a = _mm512_dpwssd_epi32(s.a, rows.a, both);
    s.b = _mm512_dpwssd_epi32(s.b, rows.b, both);
    s.c = _mm512_dpwssd_epi32(s.c, rows.c, both);
    return s;
}

// Adds the chunk's products with 8 queries, of num numbers each, to sums.
static void multiply_chunk(const __m512i pairs[][PANEL_VECTORS],
                           const int16_t *const queries[PANEL_QUERIES], size_t num,
                           __m512i sums[PANEL_QUERIES][PANEL_VECTORS])
{
    struct column s0 = load_column(sums[0]), s1 = load_column(sums[1]);
    struct column s2 = load_column(sums[2]), s3 = load_column(sums[3]);
    struct column s4 = load_column(sums[4]), s5 = load_column(sums[5]);
    struct column s6 = load_column(sums[6]), s7 = load_column(sums[7]);
    for (size_t p = 0; p < num / 2; p++) {
        struct column rows = load_column(pairs[p]);
        s0 = add_pair(s0, rows, queries[0] + 2 * p, 2);
        s1 = add_pair(s1, rows, queries[1] + 2 * p, 2);
        s2 = add_pair(s2, rows, queries[2] + 2 * p, 2);
        s3 = add_pair(s3, rows, queries[3] + 2 * p, 2);
        s4 = add_pair(s4, rows, queries[4] + 2 * p, 2);
        s5 = add_pair(s5, rows, queries[5] + 2 * p, 2);
        s6 = add_pair(s6, rows, queries[6] + 2 * p, 2);
        s7 = add_pair(s7, rows, queries[7] + 2 * p, 2);
    }
    store_column(s0, sums[0]);
    store_column(s1, sums[1]);
    store_column(s2, sums[2]);
    store_column(s3, sums[3]);
    store_column(s4, sums[4]);
    store_column(s5, sums[5]);
    store_column(s6, sums[6]);
    store_column(s7, sums[7]);
    for (size_t q = 0; num % 2 && q < PANEL_QUERIES; q++) {
        struct column rows = load_column(pairs[num / 2]);
        store_column(add_pair(load_column(sums[q]), rows, queries[q] + num - 1, 1), sums[q]);
    }
}

static int32_t squared_sum(const int16_t *numbers, size_t dims)
{
    __m512i sum = _mm512_setzero_si512();
    for (size_t i = 0; i < dims; i += 32) {
        __mmask32 valid = dims - i < 32 ? (__mmask32)((1u << (dims - i)) - 1) : UINT32_MAX;
        __m512i v = _mm512_maskz_loadu_epi16(valid, numbers + i);
        sum = _mm512_dpwssd_epi32(sum, v, v);
    }
    return _mm512_reduce_add_epi32(sum);
}

// All products of the panel's rows with a block of queries, to panel->sums.
static void multiply_panel(struct panel *panel, const int16_t *rows, size_t num_rows,
                           const int16_t *queries, size_t num_queries, size_t dims)
{
    memset(panel->sums, 0, sizeof panel->sums);
    memset(panel->row_squares, 0, sizeof panel->row_squares);
    for (size_t first = 0; first < dims; first += 2 * CHUNK_PAIRS) {
        size_t num = dims - first < 2 * CHUNK_PAIRS ? dims - first : 2 * CHUNK_PAIRS;
        pack_chunk(panel, rows, num_rows, dims, first, num);
        for (size_t q = 0; q < num_queries; q += PANEL_QUERIES) {
            const int16_t *eight[PANEL_QUERIES]; // the last query again where there are fewer
            for (size_t i = 0; i < PANEL_QUERIES; i++) {
                size_t query = q + i < num_queries ? q + i : num_queries - 1;
                eight[i] = queries + query * dims + first;
            }
            multiply_chunk(panel->pairs, eight, num, panel->sums + q);
        }
    }
}

// 8 sums of products as float64; for l2 turned into sums of squared differences.
INLINE __m512d exact_sums(enum bsw_metric metric, __m256i products, __m256i row_squares,
                          int32_t query_square)
{
    __m512d sums = _mm512_cvtepi32_pd(products);
    if (metric != BSW_METRIC_L2) return sums;
    __m512d squares = _mm512_add_pd(_mm512_cvtepi32_pd(row_squares), _mm512_set1_pd(query_square));
    return _mm512_sub_pd(squares, _mm512_add_pd(sums, sums));
}

// The keys of the panel's rows and one query of the block.
INLINE void panel_keys(enum bsw_metric metric, const struct panel *panel, size_t query,
                       size_t num_rows, float *keys)
{
    const __m256i *products = (const __m256i *)panel->sums[query];
    const __m256i *row_squares = (const __m256i *)panel->row_squares;
    for (size_t r = 0; r < num_rows; r += 8) {
        __mmask8 valid = num_rows - r < 8 ? (__mmask8)((1u << (num_rows - r)) - 1) : (__mmask8)0xff;
        __m512d sums =
            exact_sums(metric, products[r / 8], row_squares[r / 8], panel->query_squares[query]);
        __m256 key = keys_of_sums(metric, sums, panel->row_roots[r / 8], panel->query_roots[query]);
        _mm256_mask_storeu_ps(keys + r, valid, key);
    }
}

INLINE void all_keys_int16(enum bsw_metric metric, const int16_t *rows, size_t num_rows,
                           const double *row_norms, const int16_t *queries, size_t num_queries,
                           const double *query_norms, size_t dims, float *keys)
{
    struct panel panel;
    memset(&panel, 0, sizeof panel);
    for (size_t q = 0; q < num_queries; q++) { // num_queries <= QUERY_BLOCK
        if (metric == BSW_METRIC_L2) panel.query_squares[q] = squared_sum(queries + q * dims, dims);
        if (metric == BSW_METRIC_COSINE) panel.query_roots[q] = sqrt(query_norms[q]);
    }
    for (size_t first = 0; first < num_rows; first += PANEL_ROWS) {
        size_t num = num_rows - first < PANEL_ROWS ? num_rows - first : PANEL_ROWS;
        for (size_t r = 0; r < num && metric == BSW_METRIC_COSINE; r++)
            ((double *)panel.row_roots)[r] = sqrt(row_norms[first + r]);
        multiply_panel(&panel, rows + first * dims, num, queries, num_queries, dims);
        for (size_t q = 0; q < num_queries; q++)
            panel_keys(metric, &panel, q, num, keys + q * num_rows + first);
    }
}

static void avx512_keys_int16(enum bsw_metric metric, const int16_t *rows, size_t num_rows,
                              const double *row_norms, const int16_t *queries, size_t num_queries,
                              const double *query_norms, size_t dims, float *keys)
{
    for (size_t q = 0; q < num_queries; q += QUERY_BLOCK) {
        size_t num = num_queries - q < QUERY_BLOCK ? num_queries - q : QUERY_BLOCK;
        const int16_t *block = queries + q * dims;
        float *block_keys = keys + q * num_rows;
        if (metric == BSW_METRIC_COSINE)
            all_keys_int16(BSW_METRIC_COSINE, rows, num_rows, row_norms, block, num,
                           query_norms + q, dims, block_keys);
        else if (metric == BSW_METRIC_IP)
            all_keys_int16(BSW_METRIC_IP, rows, num_rows, NULL, block, num, NULL, dims, block_keys);
        else
            all_keys_int16(BSW_METRIC_L2, rows, num_rows, NULL, block, num, NULL, dims, block_keys);
    }
}

const struct bsw_exact_table bsw_exact_avx512 = {
    .level = "avx512",
    .keys_double = avx512_keys_double,
    .keys_int16 = avx512_keys_int16,
};
