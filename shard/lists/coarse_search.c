// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/coarse_search_parts.h"

#include <math.h>
#include <string.h>

#include "common/codes/code_layout.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "kernels/coarse_scan/coarse_scan.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/kernel_sums.h"
#include "kernels/merge/merge.h"
#include "kernels/select/select.h"

#define CENTROID_BITS BSW_COARSE_CODE_BITS
#define MOST_CODE     BSW_COARSE_MOST_CODE
#define MOST_QUERY    BSW_COARSE_MOST_QUERY
#define SOME_LISTS    48 // are sorted as soon as the best of them are chosen

// ---- centroids ----

static void find_mean(const struct bsw_manifest *manifest, size_t dims, float *mean)
{
    for (size_t d = 0; d < dims; d++) {
        double sum = 0;
        for (size_t l = 0; l < manifest->lists.count; l++)
            sum += manifest->lists.centroids[l * dims + d];
        mean[d] = (float)(sum / manifest->lists.count);
    }
}

static float find_step(const struct bsw_manifest *manifest, size_t dims, const float *mean)
{
    float most = 0;
    for (size_t i = 0; i < manifest->lists.count * dims; i++)
        most = fmaxf(most, fabsf(manifest->lists.centroids[i] - mean[i % dims]));
    return most > 0 ? most / MOST_CODE : 1;
}

// The byte u of v = 255 - 2u, v the odd integer nearest to x / step.
static uint8_t code_of(float x, float step)
{
    float u = floorf((MOST_CODE - x / step) * 0.5f + 0.5f);
    return (uint8_t)(u < 0 ? 0 : u > MOST_CODE ? MOST_CODE : u);
}

static void put_centroid(struct bsw_coarse_search *search, size_t list, const float *centroid)
{
    size_t half = list / 16, lane = list % 16;
    uint8_t *bytes = search->bytes + half * 16 * search->padded_dims;
    float norm[BSW_SUM_LANES] = {0};
    uint64_t square = 0;
    for (size_t d = 0; d < search->dims; d++) {
        float x = centroid[d] - search->mean[d];
        uint8_t byte = code_of(x, search->step);
        bytes[(d / 4 * 16 + lane) * 4 + d % 4] = byte;
        square += bsw_coarse_square(byte);
        norm[d % BSW_SUM_LANES] = fmaf(x, x, norm[d % BSW_SUM_LANES]);
    }
    if (square > search->most_square) search->most_square = square;
    search->scales[list] = bsw_half_nearest(bsw_coarse_is_l2(search) ? 2.0 : 1.0);
    search->biases[list] = bsw_coarse_is_l2(search) ? 0.0f - bsw_tree_sum_float(norm) : 0.0f;
}

uint64_t bsw_coarse_search_bytes(const struct bsw_manifest *manifest)
{
    uint64_t lists = manifest->lists.count, dims = bsw_manifest_row_dims(manifest),
             padded_dims = (dims + 31) / 32 * 32,
             places = bsw_num_bundles((size_t)lists) * BSW_BUNDLE_ROWS;
    uint64_t centred = manifest->lists.is_residual ? lists * dims * sizeof(float) : 0;
    return places * (padded_dims + sizeof(uint16_t) + sizeof(float)) + dims * sizeof(float) +
           centred;
}

static enum bsw_status allocate(struct bsw_coarse_search *search, struct bsw_error *err)
{
    size_t places = search->num_bundles * BSW_BUNDLE_ROWS;
    BSW_TRY(bsw_allocate_zero(&search->mean, search->dims, sizeof(float), "centroids", err));
    BSW_TRY(bsw_allocate_zero(&search->bytes, places, search->padded_dims, "centroids", err));
    BSW_TRY(bsw_allocate_zero(&search->scales, places, sizeof(uint16_t), "centroids", err));
    return bsw_allocate_zero(&search->biases, places, sizeof(float), "centroids", err);
}

static enum bsw_status centre(struct bsw_coarse_search *search, const struct bsw_manifest *manifest,
                              const float *center, struct bsw_error *err)
{
    search->center = center;
    BSW_TRY(bsw_allocate(&search->centred, search->num_lists * search->dims, sizeof(float),
                         "centroids", err));
    for (size_t i = 0; i < search->num_lists * search->dims; i++)
        search->centred[i] = manifest->lists.centroids[i] - center[i % search->dims];
    return BSW_OK;
}

enum bsw_status bsw_coarse_search_open(const struct bsw_manifest *manifest,
                                       const struct bsw_probe_settings *settings,
                                       const float *center, enum bsw_cpu_level level,
                                       int num_threads, struct bsw_coarse_search **out,
                                       struct bsw_error *err)
{
    struct bsw_coarse_search *search;
    struct bsw_code_layout layout;
    size_t dims = bsw_manifest_row_dims(manifest), lists = manifest->lists.count;
    *out = NULL;
    bsw_code_layout_init(&layout);
    BSW_TRY(bsw_code_layout_append(&layout, (uint32_t)dims, CENTROID_BITS, err));
    BSW_TRY(bsw_allocate_zero(&search, 1, sizeof *search, "centroids", err));
    size_t probe = settings->probe < lists ? settings->probe : lists;
    *search =
        (struct bsw_coarse_search){.settings = {.probe = (uint32_t)probe, .ratio = settings->ratio},
                                   .metric = manifest->metric,
                                   .scan = bsw_coarse_scan_table_get(level),
                                   .select = bsw_select_table_get(level),
                                   .encode = bsw_encode_table_get(level),
                                   .merge = bsw_merge_table_get(level),
                                   .num_threads = num_threads,
                                   .dims = dims,
                                   .padded_dims = layout.padded_dims,
                                   .num_lists = lists,
                                   .num_bundles = bsw_num_bundles(lists)};
    enum bsw_status status = allocate(search, err);
    if (status == BSW_OK && center) status = centre(search, manifest, center, err);
    if (status != BSW_OK) {
        bsw_coarse_search_close(&search);
        return status;
    }
    find_mean(manifest, dims, search->mean);
    search->step = find_step(manifest, dims, search->mean);
    for (size_t l = 0; l < lists; l++)
        put_centroid(search, l, manifest->lists.centroids + l * dims);
    // Components are rounded.
    search->narrow = (BSW_COARSE_NARROW - 1) / sqrt(fmax((double)search->most_square, 1)) -
                     0.5 * sqrt((double)dims);
    if (!bsw_coarse_is_l2(search)) memset(search->mean, 0, dims * sizeof(float));
    *out = search;
    return BSW_OK;
}

void bsw_coarse_search_close(struct bsw_coarse_search **search)
{
    if (!*search) return;
    bsw_free(&(*search)->mean);
    bsw_free(&(*search)->bytes);
    bsw_free(&(*search)->scales);
    bsw_free(&(*search)->biases);
    bsw_buffer_deinit(&(*search)->scratch);
    bsw_buffer_deinit(&(*search)->lists);
    bsw_buffer_deinit(&(*search)->counts);
    bsw_buffer_deinit(&(*search)->additions);
    bsw_buffer_deinit(&(*search)->coded);
    bsw_buffer_deinit(&(*search)->found);
    bsw_free(&(*search)->centred);
    bsw_free(search);
}

double bsw_coarse_search_seconds(const struct bsw_coarse_search *search)
{
    return search->seconds;
}

// ---- queries ----

// Parts of a thread's scratch; at NULL: counts the bytes alone.
size_t bsw_coarse_divide(const struct bsw_coarse_search *search, unsigned char *at,
                         struct bsw_coarse_block *out)
{
    size_t places = search->num_bundles * BSW_BUNDLE_ROWS;
    const struct bsw_memory_part parts[] = {
        {&out->components, BSW_COARSE_BLOCK_QUERIES * search->padded_dims},
        {&out->constants, BSW_COARSE_BLOCK_QUERIES * sizeof(int32_t)},
        {&out->scales, BSW_COARSE_BLOCK_QUERIES * sizeof(float)},
        {&out->norms, BSW_COARSE_BLOCK_QUERIES * sizeof(double)},
        {&out->centred, BSW_COARSE_BLOCK_QUERIES * search->dims * sizeof(float)},
        {&out->keys, BSW_COARSE_BLOCK_QUERIES * places * sizeof(float)},
        {&out->items, (places + 1) * sizeof(uint64_t)},
        {&out->room, places * sizeof(uint64_t)}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

// Rounds to the nearest integer, |x| below 2^22: no call, so that it is done for many at once.
static inline float round_to_integer(float x)
{
    return (x + 0x1.8p23f) - 0x1.8p23f;
}

// Less the mean; returns the largest component.
static float centre_query(struct bsw_coarse_block *block, size_t q, const float *vector)
{
    const struct bsw_coarse_search *search = block->search;
    float *centred = block->centred + q * search->dims, most = 0;
    for (size_t d = 0; d < search->dims; d++) {
        centred[d] = vector[d] - search->mean[d];
        most = fabsf(centred[d]) > most ? fabsf(centred[d]) : most;
    }
    return most;
}

// What components are multiplied by: as few bits less as let dots have BSW_COARSE_NARROW, where
// that costs no more than one.
static float find_factor(const struct bsw_coarse_block *block, size_t q, float most)
{
    if (!(most > 0)) return 0;
    float widest = MOST_QUERY / most,
          narrow = (float)(block->search->narrow / sqrt(block->norms[q]));
    return narrow < widest && narrow >= 0.5f * widest ? narrow : widest;
}

static void put_query(struct bsw_coarse_block *block, size_t q, float most)
{
    const struct bsw_coarse_search *search = block->search;
    const float *centred = block->centred + q * search->dims;
    int8_t *components = block->components + q * search->padded_dims;
    float factor = find_factor(block, q, most);
    int32_t sum = 0;
    for (size_t d = 0; d < search->dims; d++) {
        int32_t c = (int32_t)round_to_integer(centred[d] * factor);
        components[d] = (int8_t)c;
        sum += c;
    }
    memset(components + search->dims, 0, search->padded_dims - search->dims);
    block->constants[q] = MOST_CODE * sum;
    block->scales[q] = factor > 0 ? search->step / factor : 0;
}

void bsw_coarse_put_queries(struct bsw_coarse_block *block, const float *vectors)
{
    const struct bsw_coarse_search *search = block->search;
    float most[BSW_COARSE_BLOCK_QUERIES];
    for (size_t q = 0; q < block->num_queries; q++)
        most[q] = centre_query(block, q, vectors + q * search->dims);
    search->encode->squared_norms(block->centred, block->num_queries, search->dims, block->norms);
    for (size_t q = 0; q < block->num_queries; q++) put_query(block, q, most[q]);
    // Unit length, so that |q - c|^2 = 2 - 2 key.
    for (size_t q = 0; q < block->num_queries && bsw_has_unit_rows(search->metric); q++)
        if (block->norms[q] > 0) block->scales[q] /= (float)sqrt(block->norms[q]);
}

// ---- what is near ----

// Squared distance of a list with this key, as far as keys say; at least 0.
static float distance_of(const struct bsw_coarse_block *block, size_t q, float key)
{
    float distance =
        bsw_coarse_is_l2(block->search) ? (float)block->norms[q] - key : 2.0f - 2.0f * key;
    return distance > 0 ? distance : 0;
}

// The least key within the ratio, where the yardstick's list has this one.
float bsw_coarse_ratio_limit(const struct bsw_coarse_block *block, size_t q, float yardstick)
{
    float most = (float)block->search->settings.ratio * distance_of(block, q, yardstick);
    return (bsw_coarse_is_l2(block->search) ? (float)block->norms[q] - most : 1.0f - 0.5f * most) +
           0.0f;
}

// The key of the `rank`-th of num items, which are in order.
float bsw_coarse_key_at(const uint64_t *items, size_t num, size_t rank)
{
    return bsw_score_to_float(bsw_candidate_score(items[(rank < num ? rank : num) - 1]));
}

size_t bsw_coarse_nearest(struct bsw_coarse_block *block, const float *keys, size_t num_keys,
                          float limit, size_t most)
{
    const struct bsw_coarse_search *search = block->search;
    size_t count = search->scan->pick(keys, num_keys, limit, block->items);
    if (count > most && count > SOME_LISTS)
        count = search->select->keep_best(block->items, count, most, block->room);
    search->merge->sort_candidates(block->items, count, block->room);
    return count < most ? count : most;
}

// A key that at least `rank` lists reach, as high as the lanes' maxima tell: BSW_COARSE_LEAST_KEY
// if nothing is known.
static float reached_by(struct bsw_coarse_block *block, const float *keys, size_t rank)
{
    _Alignas(BSW_ALIGNMENT_BYTES) float most[BSW_COARSE_LANES];
    if (rank > BSW_COARSE_LANES) return BSW_COARSE_LEAST_KEY;
    block->search->scan->maxima(keys, block->search->num_lists, most);
    size_t count = bsw_coarse_nearest(block, most, BSW_COARSE_LANES, BSW_COARSE_LEAST_KEY, rank);
    return count < rank ? BSW_COARSE_LEAST_KEY : bsw_coarse_key_at(block->items, count, rank);
}

// The lists whose keys reach the limit, at most as many as are asked for, of which block->items has
// the nearest `rank` in order already: the others behind them, in the order of their numbers.
static size_t within(struct bsw_coarse_block *block, const float *keys, float limit, size_t rank)
{
    const struct bsw_coarse_search *search = block->search;
    uint64_t first[BSW_COARSE_RANK], *items = block->items, last = items[rank - 1];
    size_t num = 0, count = rank;
    if (bsw_coarse_key_at(items, rank, rank) < limit) {
        for (; num < rank && bsw_coarse_key_at(items, rank, num + 1) >= limit; num++) continue;
        return num;
    }
    memcpy(first, items, rank * sizeof *first);
    num = search->scan->pick(keys, search->num_lists, limit, block->room);
    if (num > search->settings.probe)
        num = search->select->keep_best(block->room, num, search->settings.probe, items);
    memcpy(items, first, rank * sizeof *first);
    for (size_t i = 0; i < num; i++) { // no branch: nothing tells which are among the nearest
        items[count] = block->room[i];
        count += block->room[i] < last;
    }
    return count;
}

// The lists of a query, the nearest first, into block->items.
static size_t choose(struct bsw_coarse_block *block, size_t q, const float *keys)
{
    const struct bsw_coarse_search *search = block->search;
    size_t probe = search->settings.probe, rank = probe < BSW_COARSE_RANK ? probe : BSW_COARSE_RANK;
    if (search->settings.ratio == 0)
        return bsw_coarse_nearest(block, keys, search->num_lists, reached_by(block, keys, probe),
                                  probe);
    size_t count =
        bsw_coarse_nearest(block, keys, search->num_lists, reached_by(block, keys, rank), rank);
    float limit = bsw_coarse_ratio_limit(block, q, bsw_coarse_key_at(block->items, count, rank));
    // The nearest list whatever the limit: a ratio may be below 1.
    limit = fminf(limit, bsw_coarse_key_at(block->items, count, 1));
    return count < rank ? bsw_coarse_nearest(block, keys, search->num_lists, limit, probe)
                        : within(block, keys, limit, rank);
}

void bsw_coarse_residual(const struct bsw_coarse_search *search, const float *vector, float *out)
{
    float factor = 1;
    double norm;
    if (!bsw_has_distances(search->metric))
        factor = bsw_ip_query_factor(search->center, vector, search->dims);
    if (bsw_has_unit_rows(search->metric)) {
        search->encode->squared_norms(vector, 1, search->dims, &norm);
        factor = (float)(1.0 / sqrt(norm));
    }
    for (size_t d = 0; d < search->dims; d++) out[d] = vector[d] * factor - search->center[d];
}

// What keys of residuals lack: of a query, as given, and lists. room: [dims].
static void add_products(const struct bsw_coarse_search *search, const float *vector,
                         const uint32_t *lists, size_t num, float *room, float *out)
{
    bsw_coarse_residual(search, vector, room);
    search->scan->products(room, search->centred, search->dims, lists, num, out);
    for (size_t i = 0; i < num && bsw_coarse_is_l2(search); i++) out[i] *= 2;
}

enum bsw_status bsw_coarse_search_addition(const struct bsw_coarse_search *search,
                                           const float *vector, uint32_t list, float *out,
                                           struct bsw_error *err)
{
    float *room;
    *out = 0.0f;
    if (!search->center) return BSW_OK;
    BSW_TRY(bsw_allocate(&room, search->dims, sizeof *room, "query", err));
    add_products(search, vector, &list, 1, room, out);
    bsw_free(&room);
    return BSW_OK;
}

// Query q of the block, number `at` of the call, looks at the first `count` of block->items.
void bsw_coarse_put_lists(struct bsw_coarse_block *block, size_t at, const float *vector,
                          const uint64_t *items, size_t count, const struct bsw_chosen_lists *out)
{
    const struct bsw_coarse_search *search = block->search;
    size_t first = at * search->most;
    out->counts[at] = (uint32_t)count;
    for (size_t i = 0; i < count; i++) out->lists[first + i] = bsw_candidate_row(items[i]);
    if (out->additions)
        add_products(search, vector, out->lists + first, count, block->centred,
                     out->additions + first);
}

// Chooses the lists of queries `at` and following.
void bsw_coarse_run_block(struct bsw_coarse_block *block, const float *vectors, size_t at,
                          const struct bsw_chosen_lists *out)
{
    const struct bsw_coarse_search *search = block->search;
    size_t places = search->num_bundles * BSW_BUNDLE_ROWS;
    const struct bsw_matrix_tile tile = {.bytes = search->bytes,
                                         .num_bundles = search->num_bundles,
                                         .padded_dims = (uint32_t)search->padded_dims,
                                         .scales = search->scales,
                                         .biases = search->biases};
    const struct bsw_matrix_queries queries = {.num_queries = block->num_queries,
                                               .components = block->components,
                                               .constants = block->constants,
                                               .scales = block->scales};
    bsw_coarse_put_queries(block, vectors);
    search->scan->keys(&tile, &queries, search->most_square, block->keys, places);
    for (size_t q = 0; q < block->num_queries; q++) {
        size_t count = choose(block, q, block->keys + q * places);
        if (search->filter)
            count = bsw_coarse_widen(block, at + q, block->keys + q * places, count);
        bsw_coarse_put_lists(block, at + q, vectors + q * search->dims, block->items, count, out);
    }
}
