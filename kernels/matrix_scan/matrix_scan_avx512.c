// matrix_scan on AVX-512 VNNI.
//
// A block is up to 12 queries against a bundle: 24 accumulators in registers, and for 4 dimensions
// 14 loads (two of documents, a broadcast a query) to 24 dot products, so that nothing but the two
// units that multiply is busy. Sums go through the first cache to the epilogue, which ends for a
// query at one branch if none of the 32 rows reaches its limit; what passes is computed again.
//
// Integer keys take one compare: dot >= limit is sum <= (constant - limit) / 2. Float keys of short
// rows (at most 256 dimensions, even constants) start their sums at the bits of 1.5 * 2^23 less
// half the constant. As a float such a sum is 1.5 * 2^23 - dot / 2, without a conversion, and
// fma(-2 * scale, sum, 3 * 2^23 * scale) is scale * dot, rounded once: a half has 11 bits and 3 has
// 2, so the addend is exact.
//
// A staged scan multiplies the first dimensions of a block and tests the bound: a fused operation
// more than a key. What goes on is noted for a whole run of bundles and then done in one go, from
// its first dimension, so that no branch hangs on a block: one that is mispredicted costs more than
// multiplying twice.
#include <immintrin.h>
#include <string.h>

#include "common/codes/result_order.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/matrix_scan/matrix_unpack_avx512.h"
#include "kernels/select/select_quick.h"

#define INLINE         static inline __attribute__((always_inline))

#define BLOCK_QUERIES  12
#define HALF_ROWS      16
#define QUERY_LANES    16    // of a block, as a vector
#define RUN_BYTES      32768 // documents that all queries go over before the next ones
#define MAX_RUN        (RUN_BYTES / (BSW_BUNDLE_ROWS * 32)) // bundles
#define MAX_SHORT_DIMS 256                                  // 256 * 255 * 127 < 2^23
#define SHORT_START    0x4b400000                           // bits of 1.5 * 2^23

enum key_kind { INTEGER_KEYS, WHOLE_KEYS, SHORT_FLOAT_KEYS, FLOAT_KEYS };

typedef int32_t bundle_sums[BSW_BUNDLE_ROWS];

// ---- sums of a block ----

// Keeps a loaded value in its register: gcc would load it again for every use.
#define PIN(value) __asm__("" : "+v"(value))

// Queries are reached from four pointers, three each; hiding how they are related keeps compilers
// from making twelve, more than there are registers for.
#define EACH_QUERY(DO) \
    DO(0, q0, 0)       \
    DO(1, q0, 1)       \
    DO(2, q0, 2)       \
    DO(3, q3, 0)       \
    DO(4, q3, 1)       \
    DO(5, q3, 2)       \
    DO(6, q6, 0)       \
    DO(7, q6, 1)       \
    DO(8, q6, 2)       \
    DO(9, q9, 0)       \
    DO(10, q9, 1)      \
    DO(11, q9, 2)

#define START_QUERY(j, base, offset)                           \
    __m512i low##j = _mm512_setzero_si512(), high##j = low##j; \
    if (j < num) low##j = high##j = _mm512_set1_epi32(starts[j]);

#define STEP_QUERY(j, base, offset)                                   \
    if (j < num || (is_split && j >= 6 && j - 6 < num)) {             \
        __m512i q = broadcast_four(base + (size_t)offset * stride);   \
        low##j = _mm512_dpbusd_epi32(low##j, rows[j >= 6].low, q);    \
        high##j = _mm512_dpbusd_epi32(high##j, rows[j >= 6].high, q); \
    }

#define ADD_SPLIT(j, k)                               \
    if (is_split && j < num) {                        \
        low##j = _mm512_add_epi32(low##j, low##k);    \
        high##j = _mm512_add_epi32(high##j, high##k); \
    }

#define STORE_QUERY(j, base, offset)               \
    if (j < num) {                                 \
        _mm512_store_si512(sums[j], low##j);       \
        _mm512_store_si512(sums[j] + 16, high##j); \
    }

INLINE __m512i broadcast_four(const int8_t *components)
{
    int32_t four;
    memcpy(&four, components, sizeof four);
    return _mm512_set1_epi32(four);
}

// Four dimensions of a bundle.
struct four_dims {
    __m512i low, high;
};

INLINE struct four_dims load_rows(const uint8_t *bundle, size_t stride)
{
    struct four_dims rows = {_mm512_load_si512(bundle), _mm512_load_si512(bundle + 16 * stride)};
    PIN(rows.low);
    PIN(rows.high);
    return rows;
}

// sums[j][lane] = starts[j] + sum over the first `dims` of u * q, of a bundle and num queries;
// stride: dimensions of a row. Up to 5 queries are too few to hide how long a dot product takes:
// then accumulators 6 to 10 are theirs too, for every other group of dimensions.
INLINE void multiply(const uint8_t *bundle, const int8_t *components, size_t stride, size_t dims,
                     const int32_t *starts, bundle_sums *sums, const int num)
{
    const int is_split = num <= 5;
    const size_t step = is_split ? 8 : 4;
    const int8_t *q0 = components, *q3 = q0 + (num > 3 ? 3 * stride : 0);
    const int8_t *q6 = q0 + (is_split ? 4 : num > 6 ? 6 * stride : 0);
    const int8_t *q9 = q3 + (is_split ? 4 : num > 9 ? 6 * stride : 0);
    __asm__("" : "+r"(q0), "+r"(q3), "+r"(q6), "+r"(q9));
    EACH_QUERY(START_QUERY)
    for (size_t i = 0; i < dims; i += step, bundle += 16 * step) {
        const struct four_dims first = load_rows(bundle, stride);
        const struct four_dims rows[2] = {first, is_split ? load_rows(bundle + 64, stride) : first};
        EACH_QUERY(STEP_QUERY)
        q0 += step;
        q3 += step;
        q6 += step;
        q9 += step;
    }
    ADD_SPLIT(0, 6)
    ADD_SPLIT(1, 7)
    ADD_SPLIT(2, 8)
    ADD_SPLIT(3, 9)
    ADD_SPLIT(4, 10)
    EACH_QUERY(STORE_QUERY)
}

typedef void multiply_fn(const uint8_t *bundle, const int8_t *components, size_t stride,
                         size_t dims, const int32_t *starts, bundle_sums *sums);

#define MULTIPLY(num)                                                                          \
    static void multiply_##num(const uint8_t *bundle, const int8_t *components, size_t stride, \
                               size_t dims, const int32_t *starts, bundle_sums *sums)          \
    {                                                                                          \
        multiply(bundle, components, stride, dims, starts, sums, num);                         \
    }
#define EACH_NUM(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12)
EACH_NUM(MULTIPLY)
#undef MULTIPLY

#define ENTRY(num) multiply_##num,
static multiply_fn *const multiply_table[BLOCK_QUERIES + 1] = {NULL, EACH_NUM(ENTRY)};

// ---- keys ----

// The queries of a block; lanes beyond num are 0.
struct panel {
    _Alignas(64) int32_t starts[QUERY_LANES]; // of the sums
    int32_t constants[QUERY_LANES];           // dot = constant - 2 * sum, but for SHORT_FLOAT_KEYS
    int32_t most[QUERY_LANES];                // integer keys: the largest sum that passes
    int32_t least[QUERY_LANES]; // whole keys: what passes, less its constant, is not below this
    float scales[QUERY_LANES], limits[QUERY_LANES];
    const int8_t *components;
    struct bsw_matrix_output *outputs;
    size_t num;
    multiply_fn *multiply;
    int factor; // whole keys: 1 or 2
};

// Half a bundle: what a sum turns into a key with.
struct half_rows {
    __m512 factors, shifts, biases;
    __m512i offsets;
};

INLINE __m512 load_halves(const uint16_t *from)
{
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(const void *)from));
}

INLINE struct half_rows load_half(enum key_kind kind, const struct bsw_matrix_tile *tile,
                                  size_t row)
{
    struct half_rows rows = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                             _mm512_setzero_si512()};
    if (kind == INTEGER_KEYS) return rows;
    if (kind == WHOLE_KEYS) {
        rows.offsets = _mm512_load_si512(tile->offsets + row);
        return rows;
    }
    rows.factors = load_halves(tile->scales + row);
    rows.biases = _mm512_load_ps(tile->biases + row);
    if (kind == FLOAT_KEYS) return rows;
    rows.shifts = _mm512_mul_ps(rows.factors, _mm512_set1_ps(3 * 0x1p23f));
    rows.factors = _mm512_mul_ps(rows.factors, _mm512_set1_ps(-2.0f));
    return rows;
}

INLINE __m512i dots_of(const int32_t *sums, int32_t constant)
{
    __m512i sum = _mm512_load_si512(sums);
    return _mm512_sub_epi32(_mm512_set1_epi32(constant), _mm512_add_epi32(sum, sum));
}

// Whole keys but for the query's constant.
INLINE __m512i parts_of(const int32_t *sums, struct half_rows rows, const struct panel *panel)
{
    __m512i doubled =
        _mm512_sllv_epi32(_mm512_load_si512(sums), _mm512_set1_epi32(panel->factor - 1));
    return _mm512_add_epi32(doubled, rows.offsets);
}

// Scale times dot.
INLINE __m512 scaled_of(enum key_kind kind, const int32_t *sums, struct half_rows rows,
                        const struct panel *panel, size_t j)
{
    if (kind == SHORT_FLOAT_KEYS)
        return _mm512_fmadd_ps(rows.factors, _mm512_load_ps(sums), rows.shifts);
    return _mm512_mul_ps(rows.factors, _mm512_cvtepi32_ps(dots_of(sums, panel->constants[j])));
}

INLINE __m512 keys_of(enum key_kind kind, const int32_t *sums, struct half_rows rows,
                      const struct panel *panel, size_t j)
{
    __m512 scaled = scaled_of(kind, sums, rows, panel, j);
    return _mm512_fmadd_ps(_mm512_set1_ps(panel->scales[j]), scaled, rows.biases);
}

// Which of 16 rows reach the limit; of whole keys that would have to overflow for it some do not.
INLINE __mmask16 passing(enum key_kind kind, const int32_t *sums, struct half_rows rows,
                         const struct panel *panel, size_t j)
{
    if (kind == INTEGER_KEYS)
        return _mm512_cmple_epi32_mask(_mm512_load_si512(sums), _mm512_set1_epi32(panel->most[j]));
    if (kind == WHOLE_KEYS)
        return _mm512_cmpge_epi32_mask(parts_of(sums, rows, panel),
                                       _mm512_set1_epi32(panel->least[j]));
    return _mm512_cmp_ps_mask(keys_of(kind, sums, rows, panel, j), _mm512_set1_ps(panel->limits[j]),
                              _CMP_GE_OQ);
}

INLINE __m512i scores_of(enum key_kind kind, const int32_t *sums, struct half_rows rows,
                         const struct panel *panel, size_t j)
{
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    if (kind == INTEGER_KEYS) return _mm512_xor_si512(dots_of(sums, panel->constants[j]), sign);
    if (kind == WHOLE_KEYS) {
        __m512i constant = _mm512_set1_epi32(panel->constants[j]);
        return _mm512_xor_si512(_mm512_add_epi32(parts_of(sums, rows, panel), constant), sign);
    }
    __m512 keys = _mm512_add_ps(keys_of(kind, sums, rows, panel, j), _mm512_setzero_ps());
    __m512i bits = _mm512_castps_si512(keys);
    return _mm512_xor_si512(bits, _mm512_or_si512(_mm512_srai_epi32(bits, 31), sign));
}

// A whole bundle: all that queue selection asks for, and where a scan begins.
INLINE void append_all(const uint32_t *scores, uint32_t first_row, uint64_t *restrict items)
{
    for (uint32_t lane = 0; lane < BSW_BUNDLE_ROWS; lane++)
        items[lane] = bsw_candidate_pack(scores[lane], first_row + lane);
}

// Appends the rows of a bundle that pass, for one query. Both halves are computed: one branch more
// would cost more. Whole keys have yet to be compared with the limit.
static __attribute__((noinline)) void append(enum key_kind kind, const struct bsw_matrix_tile *tile,
                                             size_t row, const struct panel *panel, size_t j,
                                             const int32_t *sums, uint32_t pass)
{
    struct bsw_matrix_output *output = &panel->outputs[j];
    const __m512i limit = _mm512_set1_epi32((int32_t)output->limit);
    _Alignas(64) uint32_t scores[BSW_BUNDLE_ROWS];
    uint32_t reaching = 0;
    for (size_t h = 0; h < BSW_BUNDLE_ROWS; h += HALF_ROWS) {
        struct half_rows rows = load_half(kind, tile, row + h);
        __m512i found = scores_of(kind, sums + h, rows, panel, j);
        _mm512_store_si512(scores + h, found);
        if (kind == WHOLE_KEYS) reaching |= (uint32_t)_mm512_cmpge_epu32_mask(found, limit) << h;
    }
    if (kind == WHOLE_KEYS) pass &= reaching;
    if (pass == UINT32_MAX) {
        append_all(scores, tile->first_row + (uint32_t)row, output->items + output->count);
        output->count += BSW_BUNDLE_ROWS;
        return;
    }
    for (; pass; pass &= pass - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(pass);
        output->items[output->count++] =
            bsw_candidate_pack(scores[lane], tile->first_row + (uint32_t)row + lane);
    }
}

INLINE void scan_bundle(enum key_kind kind, const struct bsw_matrix_tile *tile, size_t bundle,
                        const struct panel *panel)
{
    _Alignas(64) bundle_sums sums[BLOCK_QUERIES];
    size_t dims = tile->padded_dims, row = bundle * BSW_BUNDLE_ROWS;
    panel->multiply(tile->bytes + row * dims, panel->components, dims, dims, panel->starts, sums);
    const struct half_rows rows[2] = {load_half(kind, tile, row),
                                      load_half(kind, tile, row + HALF_ROWS)};
    for (size_t j = 0; j < panel->num; j++) {
        __mmask16 low = passing(kind, sums[j], rows[0], panel, j);
        __mmask16 high = passing(kind, sums[j] + HALF_ROWS, rows[1], panel, j);
        if (__builtin_expect(_kortestz_mask16_u8(low, high), 1)) continue;
        uint32_t pass = _mm512_kunpackw(high, low) & tile->masks[bundle];
        if (pass) append(kind, tile, row, panel, j, sums[j], pass);
    }
}

// ---- stages ----

// A block's first stage, and its end.
struct stage_panel {
    struct panel stage; // constants, starts and limits are the stage's
    struct panel end;   // FLOAT_KEYS of all dimensions
    float reaches[QUERY_LANES];
    size_t dims; // of the stage
};

// What goes on from a block and a run of bundles.
struct survivors {
    _Alignas(64) __mmask16 rows[MAX_RUN][QUERY_LANES][2]; // of a bundle's halves
    uint32_t places[MAX_RUN * QUERY_LANES];               // bundle * QUERY_LANES + query
    size_t num_places;
};

// Which of 16 rows go on.
INLINE __mmask16 may_reach(enum key_kind kind, const int32_t *sums, struct half_rows rows,
                           __m512 tails, const struct stage_panel *panel, size_t j)
{
    __m512 most = _mm512_fmadd_ps(_mm512_set1_ps(panel->reaches[j]), tails, rows.biases);
    __m512 scaled = scaled_of(kind, sums, rows, &panel->stage, j);
    __m512 bound = _mm512_fmadd_ps(_mm512_set1_ps(panel->stage.scales[j]), scaled, most);
    return _mm512_cmp_ps_mask(bound, _mm512_set1_ps(panel->stage.limits[j]), _CMP_GE_OQ);
}

INLINE void scan_stage(enum key_kind kind, const struct bsw_matrix_tile *tile, size_t bundle,
                       const struct stage_panel *panel, __mmask16 going_on[QUERY_LANES][2])
{
    _Alignas(64) bundle_sums sums[BLOCK_QUERIES];
    size_t dims = tile->padded_dims, row = bundle * BSW_BUNDLE_ROWS;
    panel->stage.multiply(tile->bytes + row * dims, panel->stage.components, dims, panel->dims,
                          panel->stage.starts, sums);
    const struct half_rows low = load_half(kind, tile, row),
                           high = load_half(kind, tile, row + HALF_ROWS);
    const __m512 low_tails = load_halves(tile->tails + row),
                 high_tails = load_halves(tile->tails + row + HALF_ROWS);
    for (size_t j = 0; j < panel->stage.num; j++) {
        _store_mask16(&going_on[j][0], may_reach(kind, sums[j], low, low_tails, panel, j));
        _store_mask16(&going_on[j][1],
                      may_reach(kind, sums[j] + HALF_ROWS, high, high_tails, panel, j));
    }
}

static void list_survivors(const uint32_t *masks, size_t num_bundles, size_t num_queries,
                           struct survivors *survivors)
{
    const __mmask16 lanes = (__mmask16)((1u << num_queries) - 1);
    __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    uint32_t *next = survivors->places;
    for (size_t b = 0; b < num_bundles; b++) {
        __m512i rows = _mm512_load_si512(survivors->rows[b]);
        __mmask16 some =
            _mm512_mask_test_epi32_mask(lanes, rows, _mm512_set1_epi32((int32_t)masks[b]));
        _mm512_storeu_si512(next, _mm512_maskz_compress_epi32(some, place));
        next += __builtin_popcount(some);
        place = _mm512_add_epi32(place, _mm512_set1_epi32(QUERY_LANES));
    }
    survivors->num_places = (size_t)(next - survivors->places);
}

// Sums of 16 rows and a query over all dimensions.
INLINE void multiply_half(const uint8_t *rows, const int8_t *components, size_t dims, int32_t *sums)
{
    __m512i sum[4];
    for (size_t k = 0; k < 4; k++) sum[k] = _mm512_setzero_si512();
    for (size_t i = 0; i < dims; i += 16) {
        for (size_t k = 0; k < 4; k++) {
            __m512i u = _mm512_load_si512(rows + HALF_ROWS * (i + 4 * k));
            sum[k] = _mm512_dpbusd_epi32(sum[k], u, broadcast_four(components + i + 4 * k));
        }
    }
    _mm512_store_si512(
        sums, _mm512_add_epi32(_mm512_add_epi32(sum[0], sum[1]), _mm512_add_epi32(sum[2], sum[3])));
}

// Appends what reaches the limit of the rows that go on from the half of a bundle that begins with
// lane `first`.
static __attribute__((noinline)) void finish_half(const struct bsw_matrix_tile *tile, size_t row,
                                                  uint32_t first, const struct panel *panel,
                                                  size_t j, uint32_t going_on)
{
    _Alignas(64) bundle_sums sums = {0};
    size_t dims = tile->padded_dims;
    multiply_half(tile->bytes + (row + first) * dims, panel->components + j * dims, dims,
                  sums + first);
    uint32_t pass =
        passing(FLOAT_KEYS, sums + first, load_half(FLOAT_KEYS, tile, row + first), panel, j);
    pass = pass << first & going_on;
    if (__builtin_expect(pass != 0, 0)) append(FLOAT_KEYS, tile, row, panel, j, sums, pass);
}

// Mostly one of a bundle's halves has rows that go on: which one takes no branch.
static void finish_survivors(const struct bsw_matrix_tile *tile, size_t first_bundle,
                             const struct panel *panel, const struct survivors *survivors,
                             struct bsw_stage_counts *counts)
{
    for (size_t i = 0; i < survivors->num_places; i++) {
        size_t b = survivors->places[i] / QUERY_LANES, j = survivors->places[i] % QUERY_LANES;
        size_t row = (first_bundle + b) * BSW_BUNDLE_ROWS;
        const __mmask16 *halves = survivors->rows[b][j];
        uint32_t pass = halves[0] | (uint32_t)halves[1] << HALF_ROWS;
        pass &= tile->masks[first_bundle + b];
        uint32_t low = pass & 0xffff;
        finish_half(tile, row, low ? 0 : HALF_ROWS, panel, j, pass);
        counts->rows += (uint64_t)__builtin_popcount(pass);
        counts->halves++;
        if (__builtin_expect(low == 0 || low == pass, 1)) continue;
        finish_half(tile, row, HALF_ROWS, panel, j, pass);
        counts->halves++;
    }
}

// ---- the tile ----

// Whether sums of so many dimensions may start at SHORT_START less half a constant.
static int are_short(size_t dims, const int32_t *constants, size_t num_queries)
{
    if (dims > MAX_SHORT_DIMS) return 0;
    for (size_t q = 0; q < num_queries; q++) {
        if (constants[q] % 2 != 0) return 0;
    }
    return 1;
}

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

// A block is prepared once a run: with vectors, as it would show otherwise.
INLINE void prepare_panel(enum key_kind kind, const struct bsw_matrix_queries *queries,
                          const int32_t *all_constants, size_t first, size_t num, size_t dims,
                          struct bsw_matrix_output *outputs, struct panel *panel)
{
    const __mmask16 lanes = (__mmask16)((1u << num) - 1);
    const __m512i place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _Static_assert(sizeof *outputs == 24, "limits are 3 * 8 bytes apart");
    __m512i limits = _mm512_mask_i32gather_epi32(
        _mm512_setzero_si512(), lanes, _mm512_add_epi32(place, _mm512_add_epi32(place, place)),
        &outputs[first].limit, 8);
    __m512i constants = _mm512_maskz_loadu_epi32(lanes, all_constants + first);
    __m512i starts = _mm512_setzero_si512();
    panel->components = queries->components + first * dims;
    panel->outputs = outputs + first;
    panel->num = num;
    panel->multiply = multiply_table[num];
    panel->factor = kind == WHOLE_KEYS ? queries->factor : 1;
    if (kind == SHORT_FLOAT_KEYS)
        starts = _mm512_sub_epi32(_mm512_set1_epi32(SHORT_START), _mm512_srai_epi32(constants, 1));
    _mm512_store_si512(panel->starts, starts);
    _mm512_store_si512(panel->constants, constants);
    if (kind == INTEGER_KEYS) {
        limits = _mm512_xor_si512(limits, _mm512_set1_epi32(INT32_MIN));
        _mm512_store_si512(panel->most, half_difference(constants, limits));
    } else if (kind == WHOLE_KEYS) {
        for (size_t j = 0; j < num; j++)
            panel->least[j] = clamp((int64_t)bsw_score_to_integer(outputs[first + j].limit) -
                                    all_constants[first + j]);
    } else {
        _mm512_store_ps(panel->limits, float_limits(limits));
        _mm512_store_ps(panel->scales, _mm512_maskz_loadu_ps(lanes, queries->scales + first));
    }
}

// Bundles in runs that stay in the first cache, in each all queries, in blocks as equal as they can
// be: no short last one.
INLINE void scan_tile(enum key_kind kind, const struct bsw_matrix_tile *tile,
                      const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs)
{
    size_t dims = tile->padded_dims, step = RUN_BYTES / (BSW_BUNDLE_ROWS * dims);
    size_t num_blocks = (queries->num_queries + BLOCK_QUERIES - 1) / BLOCK_QUERIES;
    if (step == 0) step = 1;
    for (size_t first = 0; first < tile->num_bundles; first += step) {
        size_t last = tile->num_bundles - first < step ? tile->num_bundles : first + step;
        for (size_t block = 0, q = 0; block < num_blocks; block++) {
            struct panel panel;
            size_t num = (queries->num_queries - q) / (num_blocks - block);
            prepare_panel(kind, queries, queries->constants, q, num, dims, outputs, &panel);
            for (size_t b = first; b < last; b++) scan_bundle(kind, tile, b, &panel);
            q += num;
        }
    }
}

static void avx512_scan(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs)
{
    if (tile->offsets)
        scan_tile(WHOLE_KEYS, tile, queries, outputs);
    else if (!tile->scales)
        scan_tile(INTEGER_KEYS, tile, queries, outputs);
    else if (are_short(tile->padded_dims, queries->constants, queries->num_queries))
        scan_tile(SHORT_FLOAT_KEYS, tile, queries, outputs);
    else
        scan_tile(FLOAT_KEYS, tile, queries, outputs);
}

INLINE void prepare_stage(enum key_kind kind, const struct bsw_matrix_stage *stage,
                          const struct bsw_matrix_queries *queries, size_t first, size_t num,
                          size_t dims, struct bsw_matrix_output *outputs, struct stage_panel *panel)
{
    const __mmask16 lanes = (__mmask16)((1u << num) - 1);
    prepare_panel(kind, queries, stage->constants, first, num, dims, outputs, &panel->stage);
    prepare_panel(FLOAT_KEYS, queries, queries->constants, first, num, dims, outputs, &panel->end);
    __m512 slacks = _mm512_maskz_loadu_ps(lanes, stage->slacks + first);
    __m512 limits = _mm512_load_ps(panel->end.limits);
    _mm512_store_ps(panel->stage.limits, _mm512_sub_ps(limits, slacks));
    _mm512_storeu_ps(panel->reaches, _mm512_maskz_loadu_ps(lanes, stage->reaches + first));
    panel->dims = stage->dims;
}

// As scan_tile; of the documents the stage's bytes alone must stay in the first cache.
INLINE void scan_tile_staged(enum key_kind kind, const struct bsw_matrix_tile *tile,
                             const struct bsw_matrix_stage *stage,
                             const struct bsw_matrix_queries *queries,
                             struct bsw_matrix_output *outputs, struct bsw_stage_counts *counts)
{
    size_t dims = tile->padded_dims, step = RUN_BYTES / (BSW_BUNDLE_ROWS * (size_t)stage->dims);
    size_t num_blocks = (queries->num_queries + BLOCK_QUERIES - 1) / BLOCK_QUERIES;
    if (step == 0) step = 1;
    for (size_t first = 0; first < tile->num_bundles; first += step) {
        size_t num_bundles = tile->num_bundles - first < step ? tile->num_bundles - first : step;
        for (size_t block = 0, q = 0; block < num_blocks; block++) {
            struct stage_panel panel;
            struct survivors survivors;
            size_t num = (queries->num_queries - q) / (num_blocks - block);
            prepare_stage(kind, stage, queries, q, num, dims, outputs, &panel);
            for (size_t b = 0; b < num_bundles; b++)
                scan_stage(kind, tile, first + b, &panel, survivors.rows[b]);
            list_survivors(tile->masks + first, num_bundles, num, &survivors);
            finish_survivors(tile, first, &panel.end, &survivors, counts);
            q += num;
        }
    }
}

static void avx512_scan_staged(const struct bsw_matrix_tile *tile,
                               const struct bsw_matrix_stage *stage,
                               const struct bsw_matrix_queries *queries,
                               struct bsw_matrix_output *outputs, struct bsw_stage_counts *counts)
{
    if (are_short(stage->dims, stage->constants, queries->num_queries))
        scan_tile_staged(SHORT_FLOAT_KEYS, tile, stage, queries, outputs, counts);
    else
        scan_tile_staged(FLOAT_KEYS, tile, stage, queries, outputs, counts);
}

const struct bsw_matrix_scan_table bsw_matrix_scan_avx512 = {
    .level = "avx512",
    .unpack = bsw_unpack_avx512,
    .unpack_query = bsw_unpack_query_avx512,
    .scan = avx512_scan,
    .scan_staged = avx512_scan_staged,
};
