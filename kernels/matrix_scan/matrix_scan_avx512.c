// SPDX-License-Identifier: Apache-2.0
// matrix_scan on AVX-512 VNNI.
//
// A block ends with the marks of rows that reach their query's limit (matrix_block_avx512.h). What
// is marked is listed for a whole run of bundles and then done in one go, by halves of bundles,
// from the first dimension: no branch hangs on a block, and one that is mispredicted costs more
// than multiplying twice. Where many rows are marked, as where a scan begins, sums are stored and
// what passes is taken from them.
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "common/codes/result_order.h"
#include "kernels/matrix_scan/matrix_block_avx512.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/select/select_quick.h"

#define RUN_BYTES 32768 // documents that all queries go over before the next ones
#define MAX_RUN   (RUN_BYTES / (BSW_BUNDLE_ROWS * 32)) // bundles

// ---- keys ----

INLINE __m512 keys_of(__m512i sums, struct half_rows rows, const struct panel *panel, size_t j)
{
    __m512 scaled =
        _mm512_mul_ps(rows.scales, _mm512_cvtepi32_ps(dots_of(sums, panel->constants[j])));
    return _mm512_fmadd_ps(_mm512_set1_ps(panel->scales[j]), scaled, rows.biases);
}

// Rows that reach the limit, from sums over all dimensions that start at 0. kind: MARK_INTEGERS,
// MARK_WHOLE or MARK_FLOATS.
INLINE __mmask16 passing(enum block_end kind, __m512i sums, struct half_rows rows,
                         const struct panel *panel, size_t j)
{
    if (kind != MARK_FLOATS) return reaching(kind, sums, rows, panel, j);
    return _mm512_cmp_ps_mask(keys_of(sums, rows, panel, j), _mm512_set1_ps(panel->limits[j]),
                              _CMP_GE_OQ);
}

INLINE __m512i scores_of(enum block_end kind, __m512i sums, struct half_rows rows,
                         const struct panel *panel, size_t j)
{
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    if (kind == MARK_INTEGERS) return _mm512_xor_si512(dots_of(sums, panel->constants[j]), sign);
    if (kind == MARK_WHOLE) {
        __m512i constant = _mm512_set1_epi32(panel->constants[j]);
        return _mm512_xor_si512(_mm512_add_epi32(parts_of(sums, rows, panel), constant), sign);
    }
    __m512 keys = _mm512_add_ps(keys_of(sums, rows, panel, j), _mm512_setzero_ps());
    __m512i bits = _mm512_castps_si512(keys);
    return _mm512_xor_si512(bits, _mm512_or_si512(_mm512_srai_epi32(bits, 31), sign));
}

// Appends those of 16 rows that pass, for one query; whole keys have yet to be compared with the
// limit.
static __attribute__((noinline)) void append(enum block_end kind,
                                             const struct bsw_matrix_tile *tile, size_t row,
                                             const struct panel *panel, size_t j, __m512i sums,
                                             uint32_t pass)
{
    struct bsw_matrix_output *output = &panel->outputs[j];
    uint32_t first_row = tile->first_row + (uint32_t)row;
    _Alignas(64) uint32_t scores[HALF_ROWS];
    __m512i found = scores_of(kind, sums, load_half(kind, tile, row), panel, j);
    _mm512_store_si512(scores, found);
    if (kind == MARK_WHOLE)
        pass &= _mm512_cmpge_epu32_mask(found, _mm512_set1_epi32((int32_t)output->limit));
    if (pass == UINT16_MAX) { // all that queue selection asks for, and where a scan begins
        uint64_t *items = output->items + output->count;
        for (uint32_t lane = 0; lane < HALF_ROWS; lane++)
            items[lane] = bsw_candidate_pack(scores[lane], first_row + lane);
        output->count += HALF_ROWS;
        return;
    }
    for (; pass; pass &= pass - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(pass);
        output->items[output->count++] = bsw_candidate_pack(scores[lane], first_row + lane);
    }
}

// ---- a run of bundles ----

// Which rows of a run a block marks, and queries and bundles that have such rows.
struct survivors {
    _Alignas(64) bundle_marks rows[MAX_RUN][QUERY_LANES];
    uint32_t places[MAX_RUN * QUERY_LANES]; // bundle * QUERY_LANES + query
    size_t num_places;
};

// What a run of bundles has marked of rows that take part.
static void list_survivors(const uint32_t *masks, size_t num, size_t num_queries,
                           struct survivors *survivors)
{
    const __mmask16 lanes = (__mmask16)((1u << num_queries) - 1);
    __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    uint32_t *next = survivors->places;
    for (size_t b = 0; b < num; b++) {
        __m512i rows = _mm512_load_si512(survivors->rows[b]);
        rows = _mm512_and_si512(rows, _mm512_set1_epi32((int32_t)masks[b]));
        _mm512_store_si512(survivors->rows[b], rows);
        __mmask16 some = _mm512_mask_test_epi32_mask(lanes, rows, rows);
        _mm512_storeu_si512(next, _mm512_maskz_compress_epi32(some, place));
        next += __builtin_popcount(some);
        place = _mm512_add_epi32(place, _mm512_set1_epi32(QUERY_LANES));
    }
    survivors->num_places = (size_t)(next - survivors->places);
}

// Appends what reaches the limit of the marked rows of half a bundle, that from `row` on.
INLINE void finish_half(enum block_end kind, const struct bsw_matrix_tile *tile, size_t row,
                        const struct panel *panel, size_t j, uint32_t marked)
{
    size_t dims = tile->padded_dims;
    __m512i sums = multiply_half(tile->bytes + row * dims, panel->components + j * dims, dims);
    uint32_t pass = passing(kind, sums, load_half(kind, tile, row), panel, j) & marked;
    if (pass) append(kind, tile, row, panel, j, sums, pass);
}

// Mostly one of a bundle's halves has marked rows: which one takes no branch.
static __attribute__((noinline)) void finish_run(enum block_end kind,
                                                 const struct bsw_matrix_tile *tile,
                                                 size_t first_bundle, const struct panel *panel,
                                                 const struct survivors *survivors,
                                                 struct bsw_stage_counts *counts)
{
    for (size_t i = 0; i < survivors->num_places; i++) {
        size_t b = survivors->places[i] / QUERY_LANES, j = survivors->places[i] % QUERY_LANES;
        size_t row = (first_bundle + b) * BSW_BUNDLE_ROWS;
        const __mmask16 *halves = survivors->rows[b][j];
        uint32_t low = halves[0], high = halves[1];
        int both = low != 0 && high != 0;
        finish_half(kind, tile, low ? row : row + HALF_ROWS, panel, j, low ? low : high);
        if (__builtin_expect(both, 0)) finish_half(kind, tile, row + HALF_ROWS, panel, j, high);
        counts->rows += (uint64_t)__builtin_popcount(low | high << HALF_ROWS);
        counts->halves += 1 + (uint64_t)both;
    }
}

// Every key of a bundle; returns for how many queries a row passes.
static __attribute__((noinline)) size_t scan_bundle(enum block_end kind,
                                                    const struct bsw_matrix_tile *tile,
                                                    size_t bundle, const struct panel *panel)
{
    _Alignas(64) bundle_sums sums[BLOCK_QUERIES];
    size_t row = bundle * BSW_BUNDLE_ROWS, num_passing = 0;
    multiply_table[STORE_SUMS][panel->num](tile, row, panel, sums, NULL);
    const struct half_rows rows[2] = {load_half(kind, tile, row),
                                      load_half(kind, tile, row + HALF_ROWS)};
    for (size_t j = 0; j < panel->num; j++) {
        uint32_t any = 0;
        for (size_t h = 0; h < 2; h++) {
            __m512i half = _mm512_load_si512(sums[j] + HALF_ROWS * h);
            uint32_t pass = passing(kind, half, rows[h], panel, j);
            pass &= tile->masks[bundle] >> HALF_ROWS * h;
            if (pass) append(kind, tile, row + HALF_ROWS * h, panel, j, half, pass);
            any |= pass;
        }
        num_passing += any != 0;
    }
    return num_passing;
}

// Bundles [first, first + num) with a block of queries. is_dense: rows pass for a third of queries
// and bundles, as far as the last block tells, and are taken from stored sums; told of this one.
// Not with a stage, which has to count.
INLINE void scan_run(enum block_end kind, enum block_end end, const struct bsw_matrix_tile *tile,
                     size_t first, size_t num, const struct panel *panel, int *is_dense,
                     struct bsw_stage_counts *counts)
{
    size_t num_passing = 0;
    if (*is_dense) {
        for (size_t b = 0; b < num; b++) num_passing += scan_bundle(kind, tile, first + b, panel);
    } else {
        struct survivors survivors;
        for (size_t b = 0; b < num; b++)
            multiply_table[end][panel->num](tile, (first + b) * BSW_BUNDLE_ROWS, panel, NULL,
                                            survivors.rows[b]);
        list_survivors(tile->masks + first, num, panel->num, &survivors);
        finish_run(kind, tile, first, panel, &survivors, counts);
        num_passing = survivors.num_places;
    }
    *is_dense = !panel->is_staged && 3 * num_passing > num * panel->num;
}

// ---- the tile ----

// The nearest number of 32 bits.
static int32_t clamp(int64_t value)
{
    return value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

// bsw_float_limit of a block's queries.
INLINE __m512 float_limits(__m512i limits)
{
    const __m512i lowest = _mm512_set1_epi32((int32_t)bsw_score_from_float(-INFINITY));
    __mmask16 positive = _mm512_movepi32_mask(limits);
    __m512i bits = _mm512_ternarylogic_epi32(limits, limits, limits, 0x55); // ~limits
    bits = _mm512_mask_and_epi32(bits, positive, limits, _mm512_set1_epi32(INT32_MAX));
    __mmask16 all_pass = _mm512_cmple_epu32_mask(limits, lowest);
    return _mm512_mask_mov_ps(_mm512_castsi512_ps(bits), all_pass, _mm512_set1_ps(-INFINITY));
}

// Half of constant - limit, rounded down, in 32 bits.
INLINE __m512i half_difference(__m512i constants, __m512i limits)
{
    __m512i borrow = _mm512_andnot_si512(constants, limits);
    borrow = _mm512_and_si512(borrow, _mm512_set1_epi32(1));
    __m512i halves =
        _mm512_sub_epi32(_mm512_srai_epi32(constants, 1), _mm512_srai_epi32(limits, 1));
    return _mm512_sub_epi32(halves, borrow);
}

// Float keys of all dimensions, or the bounds of a stage.
INLINE void prepare_marks(const struct bsw_matrix_stage *stage, size_t first, __mmask16 lanes,
                          struct panel *panel)
{
    __m512 limits = _mm512_load_ps(panel->limits);
    __m512i constants = _mm512_load_si512(panel->constants);
    if (stage) {
        limits = _mm512_sub_ps(limits, _mm512_maskz_loadu_ps(lanes, stage->slacks + first));
        constants = _mm512_maskz_loadu_epi32(lanes, stage->constants + first);
        _mm512_store_ps(panel->reaches, _mm512_maskz_loadu_ps(lanes, stage->reaches + first));
    }
    _mm512_store_ps(panel->mark_limits, limits);
    _mm512_store_si512(panel->mark_constants, constants);
    _mm512_store_si512(panel->starts, _mm512_sub_epi32(_mm512_set1_epi32(SHORT_START),
                                                       _mm512_srai_epi32(constants, 1)));
}

// A block is prepared once a run: with vectors, as it would show otherwise.
INLINE void prepare_panel(enum block_end kind, const struct bsw_matrix_stage *stage,
                          const struct bsw_matrix_queries *queries, size_t first, size_t num,
                          size_t dims, struct bsw_matrix_output *outputs, struct panel *panel)
{
    const __mmask16 lanes = (__mmask16)((1u << num) - 1);
    const __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _Static_assert(sizeof *outputs == 24, "limits are 3 * 8 bytes apart");
    __m512i limits = _mm512_mask_i32gather_epi32(
        _mm512_setzero_si512(), lanes, _mm512_add_epi32(place, _mm512_add_epi32(place, place)),
        &outputs[first].limit, 8);
    __m512i constants = _mm512_maskz_loadu_epi32(lanes, queries->constants + first);
    panel->components = queries->components + first * dims;
    panel->outputs = outputs + first;
    panel->num = num;
    panel->is_staged = stage != NULL;
    panel->mark_dims = stage ? stage->dims : dims;
    panel->factor = kind == MARK_WHOLE ? queries->factor : 1;
    _mm512_store_si512(panel->constants, constants);
    if (kind == MARK_INTEGERS) {
        limits = _mm512_xor_si512(limits, _mm512_set1_epi32(INT32_MIN));
        _mm512_store_si512(panel->most, half_difference(constants, limits));
    } else if (kind == MARK_WHOLE) {
        _mm512_store_si512(panel->least, _mm512_setzero_si512());
        for (size_t j = 0; j < num; j++)
            panel->least[j] = clamp((int64_t)bsw_score_to_integer(outputs[first + j].limit) -
                                    queries->constants[first + j]);
    } else {
        _mm512_store_ps(panel->limits, float_limits(limits));
        _mm512_store_ps(panel->scales, _mm512_maskz_loadu_ps(lanes, queries->scales + first));
        prepare_marks(stage, first, lanes, panel);
    }
}

// Whether sums of so many dimensions may start at SHORT_START less half a constant.
static int are_short(size_t dims, const int32_t *constants, size_t num_queries)
{
    if (dims > MAX_SHORT_DIMS) return 0;
    for (size_t q = 0; q < num_queries; q++) {
        if (constants[q] % 2 != 0) return 0;
    }
    return 1;
}

// Bundles in runs that stay in the first cache, of a stage its bytes alone; in each all queries, in
// blocks as equal as they can be: no short last one.
INLINE void scan_tile(enum block_end kind, enum block_end end, const struct bsw_matrix_tile *tile,
                      const struct bsw_matrix_stage *stage,
                      const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs,
                      struct bsw_stage_counts *counts)
{
    size_t dims = tile->padded_dims, hot_dims = stage ? stage->dims : dims;
    size_t step = RUN_BYTES / (BSW_BUNDLE_ROWS * hot_dims);
    size_t num_blocks = (queries->num_queries + BLOCK_QUERIES - 1) / BLOCK_QUERIES;
    int is_dense = !stage && outputs[0].limit <= bsw_score_from_float(-INFINITY);
    if (step == 0) step = 1;
    for (size_t first = 0; first < tile->num_bundles; first += step) {
        size_t num_bundles = tile->num_bundles - first < step ? tile->num_bundles - first : step;
        for (size_t block = 0, q = 0; block < num_blocks; block++) {
            struct panel panel;
            size_t num = (queries->num_queries - q) / (num_blocks - block);
            prepare_panel(kind, stage, queries, q, num, dims, outputs, &panel);
            scan_run(kind, end, tile, first, num_bundles, &panel, &is_dense, counts);
            q += num;
        }
    }
}

static void avx512_scan(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs)
{
    struct bsw_stage_counts counts = {0, 0};
    enum block_end end = are_short(tile->padded_dims, queries->constants, queries->num_queries)
                             ? MARK_SHORT_FLOATS
                             : MARK_FLOATS;
    if (tile->offsets)
        scan_tile(MARK_WHOLE, MARK_WHOLE, tile, NULL, queries, outputs, &counts);
    else if (!tile->scales)
        scan_tile(MARK_INTEGERS, MARK_INTEGERS, tile, NULL, queries, outputs, &counts);
    else
        scan_tile(MARK_FLOATS, end, tile, NULL, queries, outputs, &counts);
}

static void avx512_scan_staged(const struct bsw_matrix_tile *tile,
                               const struct bsw_matrix_stage *stage,
                               const struct bsw_matrix_queries *queries,
                               struct bsw_matrix_output *outputs, struct bsw_stage_counts *counts)
{
    enum block_end end = are_short(stage->dims, stage->constants, queries->num_queries)
                             ? MARK_SHORT_BOUNDS
                             : MARK_BOUNDS;
    scan_tile(MARK_FLOATS, end, tile, stage, queries, outputs, counts);
}

// ---- unpacking: bit planes to bytes, with VBMI --------------------------------------------------

#define FAR_BYTES 8192 // planes to prefetch ahead; see plane_scan_avx512.c

// One word of 16 documents: 8 groups of 4 dimensions, 64 bytes each. A byte of a window is 8 bits
// from any bit on of the 64 that two documents share; rotated, the bit wanted is where the code has
// it.
INLINE void unpack_word(const uint32_t *word, size_t plane_stride, unsigned bits, uint8_t *bytes)
{
    const __m512i first = _mm512_set1_epi64(0x2322212003020100);
    __m512i u[8];
    for (int g = 0; g < 8; g++) u[g] = _mm512_setzero_si512();
    for (unsigned p = 0; p < bits; p++) {
        unsigned place = bits - 1 - p;
        __m512i bit = _mm512_set1_epi8((char)(1 << place));
        __m512i x = _mm512_load_si512(word + p * plane_stride);
        x = _mm512_rolv_epi64(x, _mm512_set1_epi64(place));
        for (int g = 0; g < 8; g++) {
            __m512i start = _mm512_add_epi8(first, _mm512_set1_epi8((char)(4 * g)));
            __m512i window = _mm512_multishift_epi64_epi8(start, x);
            u[g] = _mm512_ternarylogic_epi32(u[g], window, bit, 0xf8); // u | (window & bit)
        }
    }
    for (int g = 0; g < 8; g++) _mm512_store_si512(bytes + 64 * g, u[g]);
}

// The part of a bundle's bytes that one segment fills.
INLINE void unpack_bundle(const struct bsw_segment *segment, const uint32_t *bundle,
                          size_t padded_dims, uint8_t *bytes)
{
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    for (size_t w = 0; w < segment->words; w++, bundle += BSW_BUNDLE_ROWS, bytes += 512) {
        for (unsigned p = 0; p < segment->bits; p++) {
            const char *ahead = (const char *)(bundle + p * plane_stride) + FAR_BYTES;
            _mm_prefetch(ahead, _MM_HINT_T1);
            _mm_prefetch(ahead + 64, _MM_HINT_T1);
        }
        unpack_word(bundle, plane_stride, segment->bits, bytes);
        unpack_word(bundle + 16, plane_stride, segment->bits, bytes + 16 * padded_dims);
    }
}

static void unpack(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                   size_t num_bundles, uint8_t *bytes)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        uint8_t *out = bytes + 16 * (size_t)segment->padded_dim;
        for (size_t b = 0; b < num_bundles; b++) {
            const uint32_t *bundle = planes[s] + b * bsw_segment_bundle_words(segment);
            unpack_bundle(segment, bundle, layout->padded_dims, out);
            out += BSW_BUNDLE_ROWS * (size_t)layout->padded_dims;
        }
    }
}

// A query's few words take AVX2 30 ns where AVX-512 took 25.
static void unpack_query(const struct bsw_code_layout *layout, const uint32_t *words,
                         unsigned query_bits, int8_t *components, int32_t *constant)
{
    bsw_matrix_scan_avx2.unpack_query(layout, words, query_bits, components, constant);
}

const struct bsw_matrix_scan_table bsw_matrix_scan_avx512 = {
    .level = "avx512",
    .unpack = unpack,
    .unpack_query = unpack_query,
    .scan = avx512_scan,
    .scan_staged = avx512_scan_staged,
};
