// matrix_scan by sdot, which multiplies signed bytes alone: 4 dimensions of 4 rows with 4 of 16
// dimensions of a query. A block is up to 4 queries against 16 rows, 16 registers of sums. Bytes
// above 127 are looked for once a tile; where there are some, u - 128 is multiplied and 128 times
// the sum of the query's components added. A block's integers go to a small array in the first
// cache, which the filters of select read.
#include <arm_neon.h>

#include "common/codes/result_order.h"
#include "kernels/matrix_scan/matrix_scan_neon.h"
#include "kernels/neon_mask.h"
#include "kernels/select/select.h"
#include "kernels/select/select_quick.h"

#define INLINE static inline __attribute__((always_inline))

// ---- planes to bytes ----

// One word of 4 documents: 8 groups of 4 dimensions, 64 bytes apart. Byte k of a word is copied to
// the four dimensions of groups 2k and 2k + 1, each of which then tests its own bit.
INLINE void unpack_word(const uint32_t *word, size_t plane_stride, unsigned bits, uint8_t *bytes)
{
    const uint8x16_t low_bits = vreinterpretq_u8_u32(vdupq_n_u32(0x08040201u));
    const uint8x16_t high_bits = vreinterpretq_u8_u32(vdupq_n_u32(0x80402010u));
    const uint8x16_t first = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    uint8x16_t u[8];
    for (int g = 0; g < 8; g++) u[g] = vdupq_n_u8(0);
    for (unsigned p = 0; p < bits; p++) {
        uint8x16_t x = vreinterpretq_u8_u32(vld1q_u32(word + p * plane_stride));
        for (int k = 0; k < 4; k++) {
            uint8x16_t byte = vqtbl1q_u8(x, vaddq_u8(first, vdupq_n_u8((uint8_t)k)));
            u[2 * k] = vsliq_n_u8(vtstq_u8(byte, low_bits), u[2 * k], 1);
            u[2 * k + 1] = vsliq_n_u8(vtstq_u8(byte, high_bits), u[2 * k + 1], 1);
        }
    }
    for (int g = 0; g < 8; g++) vst1q_u8(bytes + 64 * g, u[g]);
}

// The part of a bundle's bytes that one segment fills.
static void unpack_bundle(const struct bsw_segment *segment, const uint32_t *bundle,
                          size_t padded_dims, uint8_t *bytes)
{
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    for (size_t w = 0; w < segment->words; w++, bundle += BSW_BUNDLE_ROWS, bytes += 512) {
        for (size_t part = 0; part < 8; part++) { // 4 rows each, four parts a half bundle
            uint8_t *out = bytes + part / 4 * BSW_NEON_HALF_ROWS * padded_dims + part % 4 * 16;
            unpack_word(bundle + 4 * part, plane_stride, segment->bits, out);
        }
    }
}

void bsw_neon_unpack(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                     size_t num_bundles, uint8_t *bytes)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        uint8_t *out = bytes + BSW_NEON_HALF_ROWS * (size_t)segment->padded_dim;
        for (size_t b = 0; b < num_bundles; b++) {
            unpack_bundle(segment, planes[s] + b * bsw_segment_bundle_words(segment),
                          layout->padded_dims, out);
            out += BSW_BUNDLE_ROWS * (size_t)layout->padded_dims;
        }
    }
}

// 32 components of a query; returns their sum.
static int32_t unpack_query_word(const uint32_t *word, size_t plane_stride, unsigned query_bits,
                                 uint32_t valid, int8_t *out)
{
    const int8x16_t full = vdupq_n_s8((int8_t)((1 << query_bits) - 1));
    uint8x16_t u[2] = {vdupq_n_u8(0), vdupq_n_u8(0)}, bits[2];
    for (unsigned p = 0; p < query_bits; p++) {
        bsw_neon_spread_bits(word[p * plane_stride], &bits[0], &bits[1]);
        for (int h = 0; h < 2; h++) u[h] = vsliq_n_u8(bits[h], u[h], 1);
    }
    bsw_neon_spread_bits(valid, &bits[0], &bits[1]);
    int32_t sum = 0;
    for (int h = 0; h < 2; h++) {
        int8x16_t q = vsubq_s8(full, vreinterpretq_s8_u8(vaddq_u8(u[h], u[h])));
        q = vandq_s8(q, vreinterpretq_s8_u8(bits[h]));
        vst1q_s8(out + 16 * h, q);
        sum += vaddlvq_s8(q);
    }
    return sum;
}

void bsw_neon_unpack_query(const struct bsw_code_layout *layout, const uint32_t *words,
                           unsigned query_bits, int8_t *components, int32_t *constant)
{
    *constant = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        for (size_t w = 0; w < segment->words; w++) {
            size_t rest = segment->dims - 32 * w;
            uint32_t valid = rest < 32 ? (1u << rest) - 1 : UINT32_MAX;
            int32_t sum = unpack_query_word(words + w, segment->words, query_bits, valid,
                                            components + segment->padded_dim + 32 * w);
            *constant += ((1 << segment->bits) - 1) * sum;
        }
        words += (size_t)query_bits * segment->words;
    }
}

// ---- the tile ----

// What both scans know.
struct pass {
    const struct bsw_neon_products *products;
    const struct bsw_matrix_tile *tile;
    const struct bsw_matrix_queries *queries;
    int is_turned;
};

// Whether bytes of a tile are above 127 and the products do not take these.
static int must_turn(const struct bsw_neon_products *products, const struct bsw_matrix_tile *tile)
{
    size_t bytes = bsw_matrix_tile_bytes(tile->padded_dims, tile->num_bundles);
    uint8x16_t all = vdupq_n_u8(0);
    if (products->takes_large) return 0;
    for (size_t i = 0; i < bytes; i += 16) all = vorrq_u8(all, vld1q_u8(tile->bytes + i));
    return vmaxvq_u8(all) > 127;
}

// 128 times the components of a query, which products with u - 128 lack.
static int32_t turned_sum(const int8_t *components, size_t dims)
{
    int32x4_t sum = vdupq_n_s32(0);
    for (size_t i = 0; i < dims; i += 16)
        sum = vdotq_s32(sum, vld1q_s8(components + i), vdupq_n_s8(1));
    return 128 * vaddvq_s32(sum);
}

static void multiply(const struct pass *pass, const struct bsw_neon_factors *factors,
                     const int32_t *constants, size_t num_queries, size_t num_halves, int32_t *dots)
{
    int32_t adjusted[BSW_NEON_MAX_QUERIES];
    struct bsw_neon_factors moving = *factors;
    moving.is_turned = pass->is_turned;
    moving.stride = pass->tile->padded_dims;
    for (size_t j = 0; j < num_queries; j++) {
        adjusted[j] = constants[j];
        if (pass->is_turned)
            adjusted[j] += factors->weight *
                           turned_sum(factors->components + j * moving.stride, factors->dims);
    }
    for (size_t h = 0; h < num_halves; h++) {
        pass->products->multiply[num_queries](&moving, adjusted, dots + h * BSW_NEON_HALF_ROWS);
        moving.rows += BSW_NEON_HALF_ROWS * moving.stride;
    }
}

// Whole keys of a bundle's rows that reach the limit.
static void filter_whole(const struct bsw_matrix_tile *tile, size_t bundle, const int32_t *dots,
                         struct bsw_matrix_output *output)
{
    uint32_t scores[BSW_BUNDLE_ROWS];
    uint32x4_t reach[8];
    size_t row = bundle * BSW_BUNDLE_ROWS;
    for (size_t g = 0; g < 8; g++) {
        int32x4_t total =
            vaddq_s32(vld1q_s32(dots + 4 * g), vld1q_s32(tile->offsets + row + 4 * g));
        uint32x4_t found = veorq_u32(vreinterpretq_u32_s32(total), vdupq_n_u32(1u << 31));
        vst1q_u32(scores + 4 * g, found);
        reach[g] = vcgeq_u32(found, vdupq_n_u32(output->limit));
    }
    uint32_t pass = bsw_neon_word_mask(reach) & tile->masks[bundle];
    for (; pass; pass &= pass - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(pass);
        output->items[output->count++] =
            bsw_candidate_pack(scores[lane], tile->first_row + (uint32_t)row + lane);
    }
}

static void filter(const struct bsw_matrix_tile *tile, size_t bundle, size_t num_bundles,
                   const int32_t *dots, float scale, struct bsw_matrix_output *output)
{
    size_t row = bundle * BSW_BUNDLE_ROWS;
    uint32_t first_row = tile->first_row + (uint32_t)row;
    uint64_t *items = output->items + output->count;
    if (tile->offsets) {
        for (size_t b = 0; b < num_bundles; b++)
            filter_whole(tile, bundle + b, dots + b * BSW_BUNDLE_ROWS, output);
    } else if (!tile->scales) {
        output->count += bsw_select_neon.filter_integer(dots, tile->masks + bundle, num_bundles,
                                                        first_row, output->limit, items);
    } else {
        output->count += bsw_select_neon.filter_affine(dots, tile->scales + row, tile->biases + row,
                                                       scale, tile->masks + bundle, num_bundles,
                                                       first_row, output->limit, items);
    }
}

// A run of bundles and a block of queries, and their integers.
struct block {
    _Alignas(64) int32_t dots[BSW_NEON_MAX_QUERIES][BSW_NEON_BLOCK_BUNDLES * BSW_BUNDLE_ROWS];
    size_t bundle, num_bundles, query, num_queries;
};

// The integers of the first `dims` dimensions of the block that starts at block->bundle and
// block->query.
static void multiply_block(const struct pass *pass, const int32_t *constants, size_t dims,
                           int weight, struct block *block)
{
    const struct bsw_matrix_tile *tile = pass->tile;
    size_t bundles = tile->num_bundles - block->bundle;
    size_t rest = pass->queries->num_queries - block->query, most = pass->products->num_queries;
    block->num_bundles = bundles < BSW_NEON_BLOCK_BUNDLES ? bundles : BSW_NEON_BLOCK_BUNDLES;
    block->num_queries = rest < most ? rest : most;
    const struct bsw_neon_factors factors = {
        .rows = tile->bytes + block->bundle * BSW_BUNDLE_ROWS * tile->padded_dims,
        .components = pass->queries->components + block->query * tile->padded_dims,
        .dims = dims,
        .weight = weight};
    multiply(pass, &factors, constants + block->query, block->num_queries, 2 * block->num_bundles,
             block->dots[0]);
}

void bsw_neon_scan(const struct bsw_neon_products *products, const struct bsw_matrix_tile *tile,
                   const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs)
{
    const struct pass pass = {products, tile, queries, must_turn(products, tile)};
    int weight = tile->offsets ? queries->factor : -2;
    struct block block;
    for (block.bundle = 0; block.bundle < tile->num_bundles;
         block.bundle += BSW_NEON_BLOCK_BUNDLES) {
        for (block.query = 0; block.query < queries->num_queries;
             block.query += products->num_queries) {
            multiply_block(&pass, queries->constants, tile->padded_dims, weight, &block);
            for (size_t j = 0, q = block.query; j < block.num_queries; j++, q++)
                filter(tile, block.bundle, block.num_bundles, block.dots[j],
                       tile->scales ? queries->scales[q] : 0.0f, &outputs[q]);
        }
    }
}

// ---- stages ----

// A query's dots of a run of bundles, from those of the stage, in the halves that hold some of the
// places; returns how many halves.
static size_t finish_dots(const struct pass *pass, const struct bsw_matrix_stage *stage,
                          size_t bundle, size_t q, const uint32_t *places, size_t num_places,
                          int32_t *dots)
{
    const struct bsw_matrix_tile *tile = pass->tile;
    int32_t constant = pass->queries->constants[q] - stage->constants[q], added[BSW_NEON_HALF_ROWS];
    struct bsw_neon_factors rest = {.components = pass->queries->components +
                                                  q * tile->padded_dims + stage->dims,
                                    .dims = tile->padded_dims - stage->dims,
                                    .weight = -2};
    size_t num_halves = 0, done = SIZE_MAX;
    for (size_t i = 0; i < num_places; i++) {
        size_t half = places[i] / BSW_NEON_HALF_ROWS;
        if (half == done) continue;
        rest.rows = tile->bytes +
                    BSW_NEON_HALF_ROWS * ((2 * bundle + half) * tile->padded_dims + stage->dims);
        multiply(pass, &rest, &constant, 1, 1, added);
        for (size_t r = 0; r < BSW_NEON_HALF_ROWS; r++)
            dots[half * BSW_NEON_HALF_ROWS + r] += added[r];
        num_halves++;
        done = half;
    }
    return num_halves;
}

// One query of a block, from the stage's dots on.
static void finish_query(const struct pass *pass, const struct bsw_matrix_stage *stage,
                         struct block *block, size_t j, struct bsw_matrix_output *output,
                         struct bsw_stage_counts *counts)
{
    uint32_t places[BSW_NEON_BLOCK_BUNDLES * BSW_BUNDLE_ROWS];
    const struct bsw_matrix_tile *tile = pass->tile;
    size_t q = block->query + j, row = block->bundle * BSW_BUNDLE_ROWS;
    float scale = pass->queries->scales[q];
    size_t num_places = bsw_select_neon.filter_reach(
        block->dots[j], tile->scales + row, tile->biases + row, tile->tails + row, scale,
        stage->reaches[q], tile->masks + block->bundle, block->num_bundles,
        bsw_float_limit(output->limit) - stage->slacks[q], places);
    counts->rows += num_places;
    counts->halves +=
        finish_dots(pass, stage, block->bundle, q, places, num_places, block->dots[j]);
    output->count += bsw_select_neon.filter_places(
        block->dots[j], tile->scales + row, tile->biases + row, scale, places, num_places,
        tile->first_row + (uint32_t)row, output->limit, output->items + output->count);
}

void bsw_neon_scan_staged(const struct bsw_neon_products *products,
                          const struct bsw_matrix_tile *tile, const struct bsw_matrix_stage *stage,
                          const struct bsw_matrix_queries *queries,
                          struct bsw_matrix_output *outputs, struct bsw_stage_counts *counts)
{
    const struct pass pass = {products, tile, queries, must_turn(products, tile)};
    struct block block;
    for (block.bundle = 0; block.bundle < tile->num_bundles;
         block.bundle += BSW_NEON_BLOCK_BUNDLES) {
        for (block.query = 0; block.query < queries->num_queries;
             block.query += products->num_queries) {
            multiply_block(&pass, stage->constants, stage->dims, -2, &block);
            for (size_t j = 0; j < block.num_queries; j++)
                finish_query(&pass, stage, &block, j, &outputs[block.query + j], counts);
        }
    }
}

// ---- products by sdot ----

enum { BLOCK_QUERIES = 4 };

typedef int32x4_t block_sums[BLOCK_QUERIES][4];

// The four dimensions `group` of 16, of 16 rows: 64 bytes.
#define ADD_GROUP(group)                                                                           \
    for (size_t r = 0; r < 4; r++) {                                                               \
        int8x16_t u = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(rows + 64 * (group) + 16 * r), turn)); \
        for (size_t j = 0; j < num; j++) sums[j][r] = vdotq_laneq_s32(sums[j][r], u, q[j], group); \
    }

INLINE void add_dims(const uint8_t *rows, const int8_t *components, size_t stride, uint8x16_t turn,
                     block_sums sums, const size_t num)
{
    int8x16_t q[BLOCK_QUERIES];
    for (size_t j = 0; j < num; j++) q[j] = vld1q_s8(components + j * stride);
    ADD_GROUP(0)
    ADD_GROUP(1)
    ADD_GROUP(2)
    ADD_GROUP(3)
}

INLINE void multiply_rows(const struct bsw_neon_factors *factors, const int32_t *constants,
                          int32_t *dots, const int is_turned, const size_t num)
{
    const uint8x16_t turn = vdupq_n_u8(is_turned ? 0x80 : 0);
    const uint8_t *rows = factors->rows;
    block_sums sums;
    for (size_t j = 0; j < num; j++)
        for (size_t r = 0; r < 4; r++) sums[j][r] = vdupq_n_s32(0);
    for (size_t i = 0; i < factors->dims; i += 16, rows += 256)
        add_dims(rows, factors->components + i, factors->stride, turn, sums, num);
    for (size_t j = 0; j < num; j++, dots += BSW_NEON_BLOCK_BUNDLES * BSW_BUNDLE_ROWS)
        for (size_t r = 0; r < 4; r++)
            vst1q_s32(dots + 4 * r,
                      vmlaq_n_s32(vdupq_n_s32(constants[j]), sums[j][r], factors->weight));
}

#define MULTIPLY(num)                                                                            \
    static void multiply_##num(const struct bsw_neon_factors *factors, const int32_t *constants, \
                               int32_t *dots)                                                    \
    {                                                                                            \
        if (factors->is_turned)                                                                  \
            multiply_rows(factors, constants, dots, 1, num);                                     \
        else                                                                                     \
            multiply_rows(factors, constants, dots, 0, num);                                     \
    }
MULTIPLY(1)
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)
#undef MULTIPLY

static const struct bsw_neon_products products = {
    .num_queries = BLOCK_QUERIES,
    .takes_large = 0,
    .multiply = {NULL, multiply_1, multiply_2, multiply_3, multiply_4}};

static void scan(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                 struct bsw_matrix_output *outputs)
{
    bsw_neon_scan(&products, tile, queries, outputs);
}

static void scan_staged(const struct bsw_matrix_tile *tile, const struct bsw_matrix_stage *stage,
                        const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs,
                        struct bsw_stage_counts *counts)
{
    bsw_neon_scan_staged(&products, tile, stage, queries, outputs, counts);
}

const struct bsw_matrix_scan_table bsw_matrix_scan_neon = {
    .level = "neon",
    .unpack = bsw_neon_unpack,
    .unpack_query = bsw_neon_unpack_query,
    .scan = scan,
    .scan_staged = scan_staged,
};
