// SPDX-License-Identifier: Apache-2.0
#include "bench/host/scan_case.h"

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "kernels/plane_scan/plane_scan.h"

#define MAX_ARRAYS (BSW_MAX_SEGMENTS + 16)

struct array {
    void *address; // of its pointer
    size_t count, size;
};

// All arrays there are, in the order in which they are allocated.
static size_t list_arrays(struct bsw_scan_case *c, struct array arrays[MAX_ARRAYS])
{
    const size_t rows = c->num_bundles * BSW_BUNDLE_ROWS, queries = c->num_queries;
    const size_t query_words = bsw_layout_query_words(&c->layout, c->query_bits);
    const struct array others[] = {
        {&c->masks, c->num_bundles, sizeof *c->masks},
        {&c->scales, rows, sizeof *c->scales},
        {&c->biases, rows, sizeof *c->biases},
        {&c->tails, c->has_tails ? rows : 0, sizeof *c->tails},
        {&c->offsets, c->has_offsets ? rows : 0, sizeof *c->offsets},
        {&c->query_planes, queries, query_words * sizeof *c->query_planes},
        {&c->components, queries, c->layout.padded_dims},
        {&c->constants, queries, sizeof *c->constants},
        {&c->query_scales, queries, sizeof *c->query_scales},
        {&c->limits, queries, sizeof *c->limits},
        {&c->stage_constants, queries, sizeof *c->stage_constants},
        {&c->reaches, queries, sizeof *c->reaches},
        {&c->slacks, queries, sizeof *c->slacks},
        {&c->bytes, c->tile_bundles, bsw_matrix_tile_bytes(c->layout.padded_dims, 1)},
        {&c->dots, c->tile_bundles * BSW_BUNDLE_ROWS, sizeof *c->dots},
    };
    size_t num = 0;
    for (uint32_t s = 0; s < c->layout.num_segments; s++)
        arrays[num++] =
            (struct array){&c->planes[s], c->num_bundles,
                           bsw_segment_bundle_words(&c->layout.segments[s]) * sizeof(uint32_t)};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) arrays[num++] = others[i];
    return num;
}

enum bsw_status bsw_scan_case_allocate(struct bsw_scan_case *c, bsw_scan_case_allocate_fn allocate,
                                       void *context, struct bsw_error *err)
{
    struct array arrays[MAX_ARRAYS];
    size_t num = list_arrays(c, arrays);
    for (size_t i = 0; i < num; i++)
        BSW_TRY(allocate(context, arrays[i].address, arrays[i].count, arrays[i].size, err));
    return BSW_OK;
}

void bsw_scan_case_free(struct bsw_scan_case *c)
{
    struct array arrays[MAX_ARRAYS];
    for (size_t num = list_arrays(c, arrays); num-- > 0;) bsw_free(arrays[num].address);
}

// ---- filling ----

static uint32_t fill_word(enum bsw_plane_fill fill, uint64_t seed, size_t at, size_t lane)
{
    switch (fill) {
    case BSW_PLANES_ZEROS:
        return 0;
    case BSW_PLANES_ONES:
        return UINT32_MAX;
    case BSW_PLANES_ALTERNATING:
        return at % 2 ? 0xaaaaaaaau : 0x0f0ff0f0u;
    case BSW_PLANES_ENDS:
        return lane % 3 == 0 ? 0 : UINT32_MAX;
    default:
        return (uint32_t)bsw_hash2(seed, at);
    }
}

void bsw_planes_fill(enum bsw_plane_fill fill, uint64_t seed, uint32_t dims, size_t num_planes,
                     size_t lanes, uint32_t *planes)
{
    const size_t words = (dims + 31) / 32;
    const uint32_t rest = dims % 32;
    const uint32_t last =
        rest == 0 || fill == BSW_PLANES_DENSE_PADDING ? UINT32_MAX : (1u << rest) - 1;
    size_t at = 0;
    for (size_t word = 0; word < num_planes * words; word++) {
        uint32_t valid = word % words == words - 1 ? last : UINT32_MAX;
        for (size_t lane = 0; lane < lanes; lane++, at++)
            planes[at] = fill_word(fill, seed, at, lane) & valid;
    }
}

void bsw_scan_case_fill_codes(struct bsw_scan_case *c, enum bsw_plane_fill fill, uint64_t seed)
{
    for (uint32_t s = 0; s < c->layout.num_segments; s++) {
        const struct bsw_segment *segment = &c->layout.segments[s];
        bsw_planes_fill(fill, bsw_hash2(seed, s), segment->dims, c->num_bundles * segment->bits,
                        BSW_BUNDLE_ROWS, c->planes[s]);
    }
}

static uint32_t *query_planes(const struct bsw_scan_case *c, size_t query)
{
    return c->query_planes + query * bsw_layout_query_words(&c->layout, c->query_bits);
}

void bsw_scan_case_fill_query(struct bsw_scan_case *c, size_t query, enum bsw_plane_fill fill,
                              uint64_t seed)
{
    uint32_t *words = query_planes(c, query), *to = words;
    for (uint32_t s = 0; s < c->layout.num_segments; s++) {
        const struct bsw_segment *segment = &c->layout.segments[s];
        bsw_planes_fill(fill, bsw_hash2(seed, query * BSW_MAX_SEGMENTS + s), segment->dims,
                        c->query_bits, 1, to);
        to += (size_t)c->query_bits * segment->words;
    }
    bsw_matrix_scan_reference.unpack_query(&c->layout, words, c->query_bits,
                                           c->components + query * c->layout.padded_dims,
                                           &c->constants[query]);
}

void bsw_scan_case_set_stage(struct bsw_scan_case *c, size_t query, uint32_t stage_dims)
{
    const int8_t *components = c->components + query * c->layout.padded_dims;
    c->stage_constants[query] = 0;
    for (uint32_t s = 0; s < c->layout.num_segments; s++) {
        const struct bsw_segment *segment = &c->layout.segments[s];
        uint32_t end = segment->padded_dim + 32 * segment->words;
        for (uint32_t i = segment->padded_dim; i < end && i < stage_dims; i++)
            c->stage_constants[query] += ((1 << segment->bits) - 1) * components[i];
    }
}

// ---- what kernels are given ----

static const uint32_t *planes_at(const struct bsw_scan_case *c, uint32_t segment, size_t bundle)
{
    return c->planes[segment] + bundle * bsw_segment_bundle_words(&c->layout.segments[segment]);
}

void bsw_scan_case_dots(const struct bsw_scan_case *c, enum bsw_cpu_level level, size_t query,
                        size_t bundle, size_t num_bundles, int32_t *dots)
{
    const uint32_t *words = query_planes(c, query);
    for (uint32_t s = 0; s < c->layout.num_segments; s++) {
        const struct bsw_segment *segment = &c->layout.segments[s];
        bsw_plane_scan_table_get(level)->dots(segment, bsw_all_words(segment),
                                              planes_at(c, s, bundle), num_bundles, words,
                                              c->query_bits, s > 0, dots);
        words += (size_t)segment->words * c->query_bits;
    }
}

void bsw_scan_case_unpack(const struct bsw_scan_case *c, enum bsw_cpu_level level, size_t bundle,
                          size_t num_bundles, uint8_t *bytes)
{
    const uint32_t *planes[BSW_MAX_SEGMENTS];
    for (uint32_t s = 0; s < c->layout.num_segments; s++) planes[s] = planes_at(c, s, bundle);
    bsw_matrix_scan_table_get(level)->unpack(&c->layout, planes, num_bundles, bytes);
}

struct bsw_matrix_tile bsw_scan_case_tile(const struct bsw_scan_case *c, size_t bundle,
                                          size_t num_bundles)
{
    size_t row = bundle * BSW_BUNDLE_ROWS;
    return (struct bsw_matrix_tile){.bytes = c->bytes,
                                    .num_bundles = num_bundles,
                                    .padded_dims = c->layout.padded_dims,
                                    .first_row = c->first_row + (uint32_t)row,
                                    .masks = c->masks + bundle,
                                    .scales = c->scales + row,
                                    .biases = c->biases + row,
                                    .tails = (c->has_tails ? c->tails : c->scales) + row};
}

struct bsw_matrix_queries bsw_scan_case_queries(const struct bsw_scan_case *c, size_t num_queries)
{
    return (struct bsw_matrix_queries){.num_queries = num_queries,
                                       .components = c->components,
                                       .constants = c->constants,
                                       .scales = c->query_scales};
}

struct bsw_matrix_stage bsw_scan_case_stage(const struct bsw_scan_case *c, uint32_t stage_dims)
{
    return (struct bsw_matrix_stage){.dims = stage_dims,
                                     .constants = c->stage_constants,
                                     .reaches = c->reaches,
                                     .slacks = c->slacks};
}
