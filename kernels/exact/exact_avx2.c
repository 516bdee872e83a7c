// As the AVX-512 level in half-size registers, of which there are 16. Float64: the tile of 2 rows
// by 3 queries sums 8 of the 32 lanes at a time (12 running sums). Integers: 16 rows are transposed
// so that a register holds two dimensions of 8 rows, against 4 queries. l2 is xx - 2xq + qq, which
// in integers is the same number.
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
                       size_t num, float *keys)
{
    if (metric == BSW_METRIC_COSINE)
        sums = _mm256_div_pd(sums, _mm256_mul_pd(row_roots, _mm256_set1_pd(query_root)));
    __m128 values = _mm_add_ps(_mm256_cvtpd_ps(sums), _mm_setzero_ps());
    if (metric == BSW_METRIC_L2) values = _mm_sub_ps(_mm_setzero_ps(), values);
    if (num >= 4) {
        _mm_storeu_ps(keys, values);
    } else {
        float four[4];
        _mm_storeu_ps(four, values);
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
                           const double *query_norms, float *keys)
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
                            const double *query_norms, size_t dims, float *keys)
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
                             const double *query_norms, size_t dims, float *keys)
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

enum {
    INTEGER_ROWS = 16,
    INTEGER_VECTORS = INTEGER_ROWS / 8,
    INTEGER_QUERIES = 4, // with 2 vectors of rows: 8 running sums
    QUERY_BLOCK = 128,
    CHUNK_PAIRS = 256, // pairs of dimensions
};

// 16 rows, a chunk of their dimensions at a time, against a block of queries.
struct integer_panel {
    __m256i pairs[CHUNK_PAIRS][INTEGER_VECTORS]; // [pair of dimensions][row]
    __m256i sums[QUERY_BLOCK][INTEGER_VECTORS];  // [query][row]
    // What turns products into keys: sums of squares for l2, roots of norms for cosine.
    __m256i row_squares[INTEGER_VECTORS];
    __m256d row_roots[INTEGER_ROWS / 4];
    int32_t query_squares[QUERY_BLOCK];
    double query_roots[QUERY_BLOCK];
};

// v[row][pair] to v[pair][row].
INLINE void transpose8(__m256i v[8])
{
    __m256i t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { // v[i + c]: rows i .. i+3 of columns c and 4+c
        v[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        v[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        v[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        v[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int c = 0; c < 4; c++) {
        t[c] = _mm256_permute2x128_si256(v[c], v[4 + c], 0x20);
        t[4 + c] = _mm256_permute2x128_si256(v[c], v[4 + c], 0x31);
    }
    for (int i = 0; i < 8; i++) v[i] = t[i];
}

INLINE __m256i multiply_add(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

// The 16 numbers from `numbers` on, or num of them and zeros.
INLINE __m256i load16(const int16_t *numbers, size_t num)
{
    if (num >= 16) return _mm256_loadu_si256((const __m256i *)numbers);
    int16_t some[16] = {0};
    memcpy(some, numbers, num * sizeof *some);
    return _mm256_loadu_si256((const __m256i *)some);
}

// Numbers first .. first + num - 1 of num_rows rows to panel->pairs; rows and numbers past the end
// are 0. Adds to row_squares.
static void pack_chunk(struct integer_panel *panel, const int16_t *rows, size_t num_rows,
                       size_t dims, size_t first, size_t num)
{
    for (size_t vector = 0; vector < INTEGER_VECTORS; vector++) {
        __m256i squares = panel->row_squares[vector];
        for (size_t i = 0; i < num; i += 16) {
            __m256i v[8];
            for (size_t r = 0; r < 8; r++) {
                size_t row = 8 * vector + r;
                v[r] = row < num_rows ? load16(rows + row * dims + first + i, num - i)
                                      : _mm256_setzero_si256();
            }
            transpose8(v);
            for (size_t p = 0; p < 8; p++) {
                panel->pairs[i / 2 + p][vector] = v[p];
                squares = multiply_add(squares, v[p], v[p]);
            }
        }
        panel->row_squares[vector] = squares;
    }
}

// The panel's 16 rows in one pair of dimensions, or their sums with one query. Named members, and
// named variables below: gcc keeps arrays of registers in memory where it does not unroll early.
struct column {
    __m256i a, b;
};

INLINE struct column load_column(const __m256i v[INTEGER_VECTORS])
{
    return (struct column){v[0], v[1]};
}

INLINE void store_column(struct column s, __m256i v[INTEGER_VECTORS])
{
    v[0] = s.a;
    v[1] = s.b;
}

// Adds the products with the next one or two numbers of a query.
INLINE struct column add_pair(struct column s, struct column rows, const int16_t *query, size_t num)
{
    int32_t pair = 0;
    memcpy(&pair, query, num * sizeof *query);
    __m256i both = _mm256_set1_epi32(pair);
    s.a = multiply_add(s.a, rows.a, both);
    s.b = multiply_add(s.b, rows.b, both);
    return s;
}

// Adds the chunk's products with 4 queries, of num numbers each, to sums.
static void multiply_chunk(const __m256i pairs[][INTEGER_VECTORS],
                           const int16_t *const queries[INTEGER_QUERIES], size_t num,
                           __m256i sums[INTEGER_QUERIES][INTEGER_VECTORS])
{
    struct column s0 = load_column(sums[0]), s1 = load_column(sums[1]);
    struct column s2 = load_column(sums[2]), s3 = load_column(sums[3]);
    for (size_t p = 0; p < num / 2; p++) {
        struct column rows = load_column(pairs[p]);
        s0 = add_pair(s0, rows, queries[0] + 2 * p, 2);
        s1 = add_pair(s1, rows, queries[1] + 2 * p, 2);
        s2 = add_pair(s2, rows, queries[2] + 2 * p, 2);
        s3 = add_pair(s3, rows, queries[3] + 2 * p, 2);
    }
    store_column(s0, sums[0]);
    store_column(s1, sums[1]);
    store_column(s2, sums[2]);
    store_column(s3, sums[3]);
    for (size_t q = 0; num % 2 && q < INTEGER_QUERIES; q++) {
        struct column rows = load_column(pairs[num / 2]);
        store_column(add_pair(load_column(sums[q]), rows, queries[q] + num - 1, 1), sums[q]);
    }
}

static int32_t squared_sum(const int16_t *numbers, size_t dims)
{
    __m256i sum = _mm256_setzero_si256();
    for (size_t i = 0; i < dims; i += 16) {
        __m256i v = load16(numbers + i, dims - i);
        sum = multiply_add(sum, v, v);
    }
    int32_t lanes[8], total = 0;
    _mm256_storeu_si256((__m256i *)lanes, sum);
    for (int i = 0; i < 8; i++) total += lanes[i];
    return total;
}

// All products of the panel's rows with a block of queries, to panel->sums.
static void multiply_panel(struct integer_panel *panel, const int16_t *rows, size_t num_rows,
                           const int16_t *queries, size_t num_queries, size_t dims)
{
    memset(panel->sums, 0, sizeof panel->sums);
    memset(panel->row_squares, 0, sizeof panel->row_squares);
    for (size_t first = 0; first < dims; first += 2 * CHUNK_PAIRS) {
        size_t num = dims - first < 2 * CHUNK_PAIRS ? dims - first : 2 * CHUNK_PAIRS;
        pack_chunk(panel, rows, num_rows, dims, first, num);
        for (size_t q = 0; q < num_queries; q += INTEGER_QUERIES) {
            const int16_t *four[INTEGER_QUERIES]; // the last query again where there are fewer
            for (size_t i = 0; i < INTEGER_QUERIES; i++) {
                size_t query = q + i < num_queries ? q + i : num_queries - 1;
                four[i] = queries + query * dims + first;
            }
            multiply_chunk(panel->pairs, four, num, panel->sums + q);
        }
    }
}

// 4 sums of products as float64; for l2 turned into sums of squared differences.
INLINE __m256d exact_sums(enum bsw_metric metric, __m128i products, __m128i row_squares,
                          int32_t query_square)
{
    __m256d sums = _mm256_cvtepi32_pd(products);
    if (metric != BSW_METRIC_L2) return sums;
    __m256d squares = _mm256_add_pd(_mm256_cvtepi32_pd(row_squares), _mm256_set1_pd(query_square));
    return _mm256_sub_pd(squares, _mm256_add_pd(sums, sums));
}

// The keys of the panel's rows and one query of the block.
INLINE void integer_panel_keys(enum bsw_metric metric, const struct integer_panel *panel,
                               size_t query, size_t num_rows, float *keys)
{
    const __m128i *products = (const __m128i *)panel->sums[query];
    const __m128i *row_squares = (const __m128i *)panel->row_squares;
    for (size_t r = 0; r < num_rows; r += 4) {
        __m256d sums =
            exact_sums(metric, products[r / 4], row_squares[r / 4], panel->query_squares[query]);
        store_keys(metric, sums, panel->row_roots[r / 4], panel->query_roots[query], num_rows - r,
                   keys + r);
    }
}

INLINE void all_keys_int16(enum bsw_metric metric, const int16_t *rows, size_t num_rows,
                           const double *row_norms, const int16_t *queries, size_t num_queries,
                           const double *query_norms, size_t dims, float *keys)
{
    struct integer_panel panel;
    memset(&panel, 0, sizeof panel);
    for (size_t q = 0; q < num_queries; q++) { // num_queries <= QUERY_BLOCK
        if (metric == BSW_METRIC_L2) panel.query_squares[q] = squared_sum(queries + q * dims, dims);
        if (metric == BSW_METRIC_COSINE) panel.query_roots[q] = sqrt(query_norms[q]);
    }
    for (size_t first = 0; first < num_rows; first += INTEGER_ROWS) {
        size_t num = num_rows - first < INTEGER_ROWS ? num_rows - first : INTEGER_ROWS;
        for (size_t r = 0; r < num && metric == BSW_METRIC_COSINE; r++)
            ((double *)panel.row_roots)[r] = sqrt(row_norms[first + r]);
        multiply_panel(&panel, rows + first * dims, num, queries, num_queries, dims);
        for (size_t q = 0; q < num_queries; q++)
            integer_panel_keys(metric, &panel, q, num, keys + q * num_rows + first);
    }
}

static void avx2_keys_int16(enum bsw_metric metric, const int16_t *rows, size_t num_rows,
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

const struct bsw_exact_table bsw_exact_avx2 = {
    .level = "avx2",
    .keys_double = avx2_keys_double,
    .keys_int16 = avx2_keys_int16,
};
