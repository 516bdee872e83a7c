// SPDX-License-Identifier: Apache-2.0
// matrix_scan of levels that keep integers of a block in a small array in the first cache, which
// the filters of select read: with 16 registers, or 32 short ones, the epilogue would have to spill
// them anyway. What these levels do alike; only vector operations are theirs.
//
// A level defines BLOCK_QUERIES, the queries of a block, SELECT_TABLE, select's of its level, and
// UNPACK_ROWS, the documents whose words are in a register, before it includes this, and behind it
// the functions that are declared here and multiply_1 .. multiply_BLOCK_QUERIES.
#ifndef BITSWEEP_KERNELS_MATRIX_SCAN_BLOCKS_H
#define BITSWEEP_KERNELS_MATRIX_SCAN_BLOCKS_H

#include "common/codes/metric.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/select/select.h"
#include "kernels/select/select_quick.h"

#if defined(BLOCK_QUERIES) // nothing without it

#define INLINE        static inline __attribute__((always_inline))

#define BLOCK_BUNDLES 8 // integers of a query between scan and filter
#define HALF_ROWS     16

// ---- planes to bytes ----

// The level's: one word of UNPACK_ROWS documents to 8 groups of 4 dimensions, 64 bytes apart.
INLINE void unpack_word(const uint32_t *word, size_t plane_stride, unsigned bits, uint8_t *bytes);

// The level's: 32 components of a query, of which those whose bit in valid is 0 are 0; returns
// their sum.
INLINE int32_t unpack_query_word(const uint32_t *word, size_t plane_stride, unsigned query_bits,
                                 uint32_t valid, int8_t *out);

// The part of a bundle's bytes that one segment fills.
static void unpack_bundle(const struct bsw_segment *segment, const uint32_t *bundle,
                          size_t padded_dims, uint8_t *bytes)
{
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    for (size_t w = 0; w < segment->words; w++, bundle += BSW_BUNDLE_ROWS, bytes += 512) {
        for (size_t row = 0; row < BSW_BUNDLE_ROWS; row += UNPACK_ROWS) {
            uint8_t *out = bytes + row / HALF_ROWS * HALF_ROWS * padded_dims + row % HALF_ROWS * 4;
            unpack_word(bundle + row, plane_stride, segment->bits, out);
        }
    }
}

static void unpack(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                   size_t num_bundles, uint8_t *bytes)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        uint8_t *out = bytes + HALF_ROWS * (size_t)segment->padded_dim;
        for (size_t b = 0; b < num_bundles; b++) {
            unpack_bundle(segment, planes[s] + b * bsw_segment_bundle_words(segment),
                          layout->padded_dims, out);
            out += BSW_BUNDLE_ROWS * (size_t)layout->padded_dims;
        }
    }
}

static void unpack_query(const struct bsw_code_layout *layout, const uint32_t *words,
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

// ---- integers of a block ----

// What a block multiplies.
struct factors {
    const uint8_t *rows;      // 16, from their first dimension on
    const int8_t *components; // of the first query
    size_t stride;            // dimensions between queries
    size_t dims;              // to multiply, a multiple of 32
    size_t form;              // what tile_form says
    int weight;               // what is stored: constant + weight * sum
};

// The level's: what its products want to know of the bytes of a tile and of its queries.
static size_t tile_form(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries);

// The level's: the constants of num queries with what its products lack, in `room` or as they are.
INLINE const int32_t *complete_constants(const struct factors *factors, const int32_t *constants,
                                         size_t num, int32_t room[BLOCK_QUERIES]);

// The level's: integers of 16 rows with some queries; those of a query are BLOCK_BUNDLES bundles
// apart. dots 64-byte aligned.
typedef void multiply_fn(const struct factors *factors, const int32_t *constants, int32_t *dots);

static multiply_fn multiply_1, multiply_2, multiply_3, multiply_4;
#if BLOCK_QUERIES > 4
static multiply_fn multiply_5, multiply_6;
#endif
#if BLOCK_QUERIES > 6
static multiply_fn multiply_7, multiply_8;
#endif

static multiply_fn *const multiply_table[BLOCK_QUERIES + 1] = {
    NULL,       multiply_1, multiply_2, multiply_3, multiply_4,
#if BLOCK_QUERIES > 4
    multiply_5, multiply_6,
#endif
#if BLOCK_QUERIES > 6
    multiply_7, multiply_8,
#endif
};

// Integers of half bundles that follow each other with num queries.
INLINE void multiply_halves(struct factors factors, const int32_t *constants, size_t num,
                            size_t num_halves, int32_t *dots)
{
    int32_t room[BLOCK_QUERIES];
    const int32_t *complete = complete_constants(&factors, constants, num, room);
    for (size_t h = 0; h < num_halves; h++, factors.rows += HALF_ROWS * factors.stride)
        multiply_table[num](&factors, complete, dots + h * HALF_ROWS);
}

// ---- the tile ----

// The level's: scores of a bundle's rows by whole keys, and which are at least the limit.
INLINE uint32_t whole_scores(const int32_t *dots, const int32_t *offsets, uint32_t limit,
                             uint32_t scores[BSW_BUNDLE_ROWS]);

// Whole keys of a bundle's rows that reach the limit.
static void filter_whole(const struct bsw_matrix_tile *tile, size_t bundle, const int32_t *dots,
                         struct bsw_matrix_output *output)
{
    _Alignas(64) uint32_t scores[BSW_BUNDLE_ROWS];
    size_t row = bundle * BSW_BUNDLE_ROWS;
    uint32_t pass = whole_scores(dots, tile->offsets + row, output->limit, scores);
    for (pass &= tile->masks[bundle]; pass; pass &= pass - 1) {
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
        output->count += SELECT_TABLE.filter_integer(dots, tile->masks + bundle, num_bundles,
                                                     first_row, output->limit, items);
    } else {
        output->count += SELECT_TABLE.filter_affine(dots, tile->scales + row, tile->biases + row,
                                                    scale, tile->masks + bundle, num_bundles,
                                                    first_row, output->limit, items);
    }
}

// A run of bundles and a block of queries, and their integers.
struct block {
    _Alignas(64) int32_t dots[BLOCK_QUERIES][BLOCK_BUNDLES * BSW_BUNDLE_ROWS];
    size_t bundle, num_bundles, query, num_queries;
};

// The integers of the block that starts at block->bundle and block->query.
static void multiply_block(const struct bsw_matrix_tile *tile,
                           const struct bsw_matrix_queries *queries, const int32_t *constants,
                           struct factors factors, struct block *block)
{
    size_t dims = tile->padded_dims;
    size_t bundles = tile->num_bundles - block->bundle, rest = queries->num_queries - block->query;
    block->num_bundles = bundles < BLOCK_BUNDLES ? bundles : BLOCK_BUNDLES;
    block->num_queries = rest < BLOCK_QUERIES ? rest : BLOCK_QUERIES;
    factors.stride = dims;
    factors.components = queries->components + block->query * dims;
    factors.rows = tile->bytes + block->bundle * BSW_BUNDLE_ROWS * dims;
    multiply_halves(factors, constants + block->query, block->num_queries, 2 * block->num_bundles,
                    block->dots[0]);
}

static void scan(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                 struct bsw_matrix_output *outputs)
{
    struct factors factors = {.dims = tile->padded_dims,
                              .form = tile_form(tile, queries),
                              .weight = tile->offsets ? queries->factor : -2};
    struct block block;
    for (block.bundle = 0; block.bundle < tile->num_bundles; block.bundle += BLOCK_BUNDLES) {
        for (block.query = 0; block.query < queries->num_queries; block.query += BLOCK_QUERIES) {
            multiply_block(tile, queries, queries->constants, factors, &block);
            for (size_t j = 0, q = block.query; j < block.num_queries; j++, q++)
                filter(tile, block.bundle, block.num_bundles, block.dots[j],
                       tile->scales ? queries->scales[q] : 0.0f, &outputs[q]);
        }
    }
}

// ---- stages ----

// A query's dots of a run of bundles, from those of the stage, in the halves that hold some of the
// places; returns how many halves.
static size_t finish_dots(size_t bundle, const struct factors *rest, int32_t constant,
                          const uint32_t *places, size_t num_places, int32_t *dots)
{
    _Alignas(64) int32_t added[HALF_ROWS];
    size_t num_halves = 0, done = SIZE_MAX;
    for (size_t i = 0; i < num_places; i++) {
        size_t half = places[i] / HALF_ROWS;
        if (half == done) continue;
        struct factors factors = *rest;
        factors.rows += (2 * bundle + half) * HALF_ROWS * factors.stride;
        multiply_halves(factors, &constant, 1, 1, added);
        for (size_t r = 0; r < HALF_ROWS; r++) dots[half * HALF_ROWS + r] += added[r];
        num_halves++;
        done = half;
    }
    return num_halves;
}

// One query of a block, from the stage's dots on.
static void finish_query(const struct bsw_matrix_tile *tile, const struct bsw_matrix_stage *stage,
                         const struct bsw_matrix_queries *queries, size_t form, struct block *block,
                         size_t j, struct bsw_matrix_output *output,
                         struct bsw_stage_counts *counts)
{
    uint32_t places[BLOCK_BUNDLES * BSW_BUNDLE_ROWS];
    size_t q = block->query + j, row = block->bundle * BSW_BUNDLE_ROWS;
    size_t num_places = SELECT_TABLE.filter_reach(
        block->dots[j], tile->scales + row, tile->biases + row, tile->tails + row,
        queries->scales[q], stage->reaches[q], tile->masks + block->bundle, block->num_bundles,
        bsw_float_limit(output->limit) - stage->slacks[q], places);
    const struct factors rest = {.rows = tile->bytes + HALF_ROWS * (size_t)stage->dims,
                                 .components =
                                     queries->components + q * tile->padded_dims + stage->dims,
                                 .stride = tile->padded_dims,
                                 .dims = tile->padded_dims - stage->dims,
                                 .form = form,
                                 .weight = -2};
    counts->rows += num_places;
    counts->halves += finish_dots(block->bundle, &rest, queries->constants[q] - stage->constants[q],
                                  places, num_places, block->dots[j]);
    output->count += SELECT_TABLE.filter_places(
        block->dots[j], tile->scales + row, tile->biases + row, queries->scales[q], places,
        num_places, tile->first_row + (uint32_t)row, output->limit, output->items + output->count);
}

static void scan_staged(const struct bsw_matrix_tile *tile, const struct bsw_matrix_stage *stage,
                        const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs,
                        struct bsw_stage_counts *counts)
{
    size_t form = tile_form(tile, queries);
    struct factors factors = {.dims = stage->dims, .form = form, .weight = -2};
    struct block block;
    for (block.bundle = 0; block.bundle < tile->num_bundles; block.bundle += BLOCK_BUNDLES) {
        for (block.query = 0; block.query < queries->num_queries; block.query += BLOCK_QUERIES) {
            multiply_block(tile, queries, stage->constants, factors, &block);
            for (size_t j = 0; j < block.num_queries; j++)
                finish_query(tile, stage, queries, form, &block, j, &outputs[block.query + j],
                             counts);
        }
    }
}

#endif
#endif
