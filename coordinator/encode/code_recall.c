// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/code_recall.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/base/integer_hash.h"
#include "common/base/parts.h"
#include "common/codes/half.h"
#include "coordinator/job/different_rows.h"
#include "kernels/encode/prepare_rows.h"
#include "kernels/plane_scan/plane_scan.h"
#include "shard/codecs/query_codes.h"

#define MOST_ROWS    8192
#define MOST_NUMBERS ((size_t)4 << 20) // fewer rows above 512 dims
#define MOST_QUERIES 200
#define LEAST_ROWS   200
#define LEAST_LISTS  64
#define LIST_SEED    0x7265636du
#define LANES        8
#define TILE_ROWS    BSW_SAMPLE_TILE

enum { K = BSW_CODE_RECALL_K };

void bsw_code_recall_deinit(struct bsw_code_recall *measure)
{
    bsw_free(&measure->rows);
    bsw_free(&measure->lists);
    bsw_free(&measure->truth);
}

// ---- rows ----

// What a pass over the sample takes rows by.
struct choice {
    struct bsw_sample *sample;
    bsw_list_assigner *assigner; // of rows with their factors
    struct bsw_different_rows different;
    uint32_t num_lists;
    size_t most;
    uint64_t place;
};

// All rows of some lists, which have their neighbours about them as in the index; of few lists rows
// from everywhere.
static int is_taken(const struct choice *choice, uint64_t place, uint32_t list)
{
    uint64_t rows = choice->sample->num_rows, most = choice->most;
    if (rows <= most) return 1;
    if (choice->num_lists >= LEAST_LISTS) return bsw_hash2(LIST_SEED, list) % rows < most;
    return bsw_part_first(most, place, rows) != bsw_part_first(most, place + 1, rows);
}

static void take_tile(struct bsw_code_recall *measure, struct choice *choice, const float *rows,
                      const float *factors, size_t num)
{
    uint32_t lists[BSW_SAMPLE_TILE], dims = measure->dims;
    float *tile = measure->rows + measure->num_rows * dims; // the first of which stay
    for (size_t i = 0; i < num * dims; i++) tile[i] = rows[i] * factors[i / dims];
    const struct bsw_list_assignment assignment = {.rows = tile, .num_rows = num, .lists = lists};
    bsw_list_assigner_assign(choice->assigner, &assignment);
    for (size_t r = 0; r < num && measure->num_rows < choice->most; r++) {
        float *to = measure->rows + measure->num_rows * dims;
        if (!is_taken(choice, choice->place++, lists[r]) || lists[r] == BSW_NO_LIST ||
            !bsw_different_rows_add(&choice->different, BSW_VECTOR_FLOAT32, tile + r * dims))
            continue;
        memmove(to, tile + r * dims, dims * sizeof *to);
        measure->lists[measure->num_rows++] = lists[r];
    }
}

static enum bsw_status take_rows(struct bsw_code_recall *measure, struct choice *choice,
                                 struct bsw_error *err)
{
    bsw_sample_rewind(choice->sample, "training, residuals");
    for (;;) {
        const float *rows;
        float factors[BSW_SAMPLE_TILE];
        size_t num;
        BSW_TRY(bsw_sample_next(choice->sample, &rows, factors, &num, err));
        if (num == 0) return BSW_OK;
        take_tile(measure, choice, rows, factors, num);
    }
}

static enum bsw_status choose_rows(struct bsw_code_recall *measure,
                                   const struct bsw_manifest *manifest, struct bsw_sample *sample,
                                   size_t most, struct bsw_error *err)
{
    struct choice choice = {.sample = sample, .num_lists = manifest->lists.count, .most = most};
    enum bsw_status status = bsw_different_rows_init(&choice.different, measure->metric,
                                                     measure->level, measure->dims, most, err);
    if (status == BSW_OK)
        status = bsw_list_assigner_open_lists(manifest, BSW_VECTOR_FLOAT32, measure->dims,
                                              measure->level, &choice.assigner, err);
    if (status == BSW_OK) status = take_rows(measure, &choice, err);
    bsw_list_assigner_close(&choice.assigner);
    bsw_different_rows_deinit(&choice.different);
    return status;
}

// ---- true neighbours ----

static size_t row_of_query(const struct bsw_code_recall *measure, size_t query)
{
    return (size_t)bsw_part_first(measure->num_rows, query, measure->num_queries);
}

// In lanes, so that the compiler takes several at once.
static double exact_key(const struct bsw_code_recall *measure, const float *query, const float *row)
{
    double sums[LANES] = {0}, sum = 0;
    int is_l2 = measure->metric == BSW_METRIC_L2;
    for (uint32_t first = 0; first < measure->dims; first += LANES) {
        uint32_t num = measure->dims - first < LANES ? measure->dims - first : LANES;
        for (uint32_t i = 0; i < num; i++) {
            double x = query[first + i], y = row[first + i];
            sums[i] += is_l2 ? -(x - y) * (x - y) : x * y;
        }
    }
    for (uint32_t i = 0; i < LANES; i++) sum += sums[i];
    return sum;
}

// The best rows of a query but for itself, the first of equals.
static void find_neighbours(const struct bsw_code_recall *measure, size_t query)
{
    uint32_t *best = measure->truth + query * K;
    size_t own = row_of_query(measure, query), num = 0;
    double keys[K];
    for (size_t row = 0; row < measure->num_rows; row++) {
        if (row == own) continue;
        double key = exact_key(measure, measure->rows + own * measure->dims,
                               measure->rows + row * measure->dims);
        size_t place = num;
        while (place > 0 && keys[place - 1] < key) place--;
        if (place == K) continue;
        for (size_t i = num < K ? num++ : K - 1; i > place; i--)
            keys[i] = keys[i - 1], best[i] = best[i - 1];
        keys[place] = key, best[place] = (uint32_t)row;
    }
}

enum bsw_status bsw_code_recall_init(struct bsw_code_recall *measure,
                                     const struct bsw_manifest *manifest, struct bsw_sample *sample,
                                     struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(sample->vectors);
    size_t most = MOST_NUMBERS / dims < MOST_ROWS ? MOST_NUMBERS / dims : MOST_ROWS;
    *measure = (struct bsw_code_recall){
        .metric = manifest->metric, .level = sample->level, .kernels = sample->table, .dims = dims};
    BSW_TRY(bsw_allocate(&measure->rows, most + TILE_ROWS, dims * sizeof(float), "sample", err));
    BSW_TRY(bsw_allocate(&measure->lists, most, sizeof *measure->lists, "sample", err));
    BSW_TRY(bsw_allocate(&measure->truth, (size_t)MOST_QUERIES * K, sizeof *measure->truth,
                         "sample", err));
    BSW_TRY(choose_rows(measure, manifest, sample, most, err));
    if (measure->num_rows < LEAST_ROWS) measure->num_rows = 0;
    measure->num_queries = measure->num_rows < MOST_QUERIES ? measure->num_rows : MOST_QUERIES;
#pragma omp parallel for schedule(dynamic)
    for (size_t q = 0; q < measure->num_queries; q++) find_neighbours(measure, q);
    return BSW_OK;
}

// ---- codes ----

// The rows as codes, and what a thread needs to code a query and to compare it with them.
struct coded_rows {
    const struct bsw_code_recall *measure;
    struct bsw_manifest manifest; // a copy with one shard, which borrows
    struct bsw_shard_entry entry;
    struct bsw_code_arrays arrays; // in block
    size_t num_bundles;
    void *block;
    uint32_t query_bits;
    size_t query_words, num_places;
    struct bsw_buffer scratch; // of all threads
    size_t scratch_bytes;      // of one
    int32_t *dots;             // [threads][places]
    float *keys;               // [threads][places]
};

static enum bsw_status lay_out(struct coded_rows *coded, struct bsw_error *err)
{
    const struct bsw_code_recall *measure = coded->measure;
    struct bsw_manifest *manifest = &coded->manifest;
    struct bsw_shard_shape shape;
    coded->entry = (struct bsw_shard_entry){.num_rows = measure->num_rows};
    manifest->shards = &coded->entry;
    manifest->num_shards = 1;
    manifest->lists.count = 0; // places are rows
    bsw_shard_shape_init(&shape, manifest, 0);
    coded->num_bundles = (measure->num_rows + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS;
    BSW_TRY(bsw_allocate_zero(&coded->block, coded->num_bundles, shape.bundle_bytes, "codes", err));
    bsw_code_arrays_in_block(&shape, coded->block, coded->num_bundles, &coded->arrays);
    BSW_TRY(bsw_codec_query_bits(manifest, "", 0, &coded->query_bits, err));
    coded->query_words = bsw_query_words(manifest, coded->query_bits);
    size_t tile = manifest->codec->table->tile_scratch_bytes(manifest, TILE_ROWS),
           query = bsw_align_size(coded->query_words * sizeof(uint32_t), BSW_ALIGNMENT_BYTES) +
                   bsw_query_scratch_bytes(manifest),
           threads = (size_t)omp_get_max_threads();
    coded->scratch_bytes = bsw_align_size(tile > query ? tile : query, BSW_ALIGNMENT_BYTES);
    BSW_TRY(bsw_buffer_reserve(&coded->scratch, threads * coded->scratch_bytes, err));
    coded->num_places = coded->num_bundles * BSW_BUNDLE_ROWS;
    BSW_TRY(bsw_allocate(&coded->dots, threads * coded->num_places, sizeof(int32_t), "keys", err));
    return bsw_allocate(&coded->keys, threads * coded->num_places, sizeof(float), "keys", err);
}

static void *own_scratch(const struct coded_rows *coded)
{
    return coded->scratch.data + (size_t)omp_get_thread_num() * coded->scratch_bytes;
}

static void encode_tile(const struct coded_rows *coded, size_t first)
{
    const struct bsw_code_recall *measure = coded->measure;
    size_t left = measure->num_rows - first;
    float factors[TILE_ROWS];
    for (size_t r = 0; r < TILE_ROWS; r++) factors[r] = 1;
    const struct bsw_codec_tile tile = {
        .manifest = &coded->manifest,
        .kernels = measure->kernels,
        .num_rows = left < TILE_ROWS ? left : TILE_ROWS,
        .rows = measure->rows + first * measure->dims,
        .factors = factors,
        .scratch = own_scratch(coded),
        .lists = coded->manifest.lists.is_residual ? measure->lists + first : NULL};
    coded->manifest.codec->table->encode_tile(&tile, &coded->arrays, first / BSW_BUNDLE_ROWS);
}

// A query as keys of residuals lack its products: with its factor, and what it is centred by.
struct lacking_query {
    const float *row, *center; // center NULL: keys lack nothing
    double factor;
};

static struct lacking_query lacking(const struct coded_rows *coded, const float *row)
{
    const struct bsw_manifest *manifest = &coded->manifest;
    struct lacking_query query = {.row = row, .factor = 1};
    if (manifest->lists.is_residual) query.center = manifest->codec->table->center(manifest);
    if (query.center && manifest->metric == BSW_METRIC_IP)
        query.factor = (double)bsw_ip_query_factor(query.center, row, coded->measure->dims);
    return query;
}

// What the key of a row lacks.
static float addition(const struct coded_rows *coded, const struct lacking_query *query, size_t row)
{
    const struct bsw_code_recall *measure = coded->measure;
    const float *centroid =
        coded->manifest.lists.centroids + (size_t)measure->lists[row] * measure->dims;
    double sums[LANES] = {0}, sum = 0;
    for (uint32_t first = 0; first < measure->dims; first += LANES) {
        uint32_t num = measure->dims - first < LANES ? measure->dims - first : LANES;
        for (uint32_t i = 0; i < num; i++) {
            double center = query->center[first + i];
            sums[i] += ((double)query->row[first + i] * query->factor - center) *
                       ((double)centroid[first + i] - center);
        }
    }
    for (uint32_t i = 0; i < LANES; i++) sum += sums[i];
    return (float)(measure->metric == BSW_METRIC_L2 ? 2 * sum : sum);
}

// The coded query with all rows.
static void multiply(const struct coded_rows *coded, const uint32_t *words, int32_t *dots)
{
    const struct bsw_code_layout *layout = &coded->manifest.layout;
    const struct bsw_plane_scan_table *scan = bsw_plane_scan_table_get(coded->measure->level);
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        scan->dots(segment, bsw_all_words(segment), coded->arrays.planes[s], coded->num_bundles,
                   words, coded->query_bits, s > 0, dots);
        words += (size_t)segment->words * coded->query_bits;
    }
}

static void find_keys(const struct coded_rows *coded, size_t own, int32_t *dots, float *keys)
{
    const struct bsw_code_recall *measure = coded->measure;
    const float *row = measure->rows + own * measure->dims;
    struct lacking_query query = lacking(coded, row);
    uint32_t *words = own_scratch(coded);
    size_t word_bytes = bsw_align_size(coded->query_words * sizeof(uint32_t), BSW_ALIGNMENT_BYTES);
    union bsw_query_number number;
    struct bsw_value_terms value;
    memset(words, 0, word_bytes);
    bsw_query_encode(measure->kernels, &coded->manifest, row, 1, coded->query_bits, words, &number,
                     &value, (unsigned char *)words + word_bytes);
    multiply(coded, words, dots);
    for (size_t r = 0; r < measure->num_rows; r++) {
        float scaled = bsw_half_to_float(coded->arrays.scales[r]) * (float)dots[r];
        keys[r] = fmaf(number.scale, scaled, coded->arrays.biases[r]);
        if (query.center) keys[r] += addition(coded, &query, r);
    }
}

// Neighbours of a query that fewer rows precede than there are candidates.
static uint64_t count_found(const struct coded_rows *coded, size_t query)
{
    const struct bsw_code_recall *measure = coded->measure;
    size_t own = row_of_query(measure, query);
    float *keys = coded->keys + (size_t)omp_get_thread_num() * coded->num_places;
    int32_t *dots = coded->dots + (size_t)omp_get_thread_num() * coded->num_places;
    uint64_t found = 0;
    find_keys(coded, own, dots, keys);
    for (int i = 0; i < K; i++) {
        uint32_t row = measure->truth[query * K + (size_t)i];
        size_t before = 0;
        for (size_t r = 0; r < measure->num_rows; r++)
            before += r != own && (keys[r] > keys[row] || (keys[r] == keys[row] && r < row));
        found += before < BSW_CODE_RECALL_CANDIDATES;
    }
    return found;
}

enum bsw_status bsw_code_recall_of(const struct bsw_code_recall *measure,
                                   const struct bsw_manifest *manifest, double *out,
                                   struct bsw_error *err)
{
    struct coded_rows coded = {.measure = measure, .manifest = *manifest};
    uint64_t found = 0;
    enum bsw_status status = lay_out(&coded, err);
    if (status == BSW_OK) {
#pragma omp parallel for schedule(dynamic)
        for (size_t first = 0; first < measure->num_rows; first += TILE_ROWS)
            encode_tile(&coded, first);
#pragma omp parallel for schedule(dynamic) reduction(+ : found)
        for (size_t q = 0; q < measure->num_queries; q++) found += count_found(&coded, q);
        *out = (double)found / (double)(measure->num_queries * K);
    }
    bsw_free(&coded.block);
    bsw_free(&coded.dots);
    bsw_free(&coded.keys);
    bsw_buffer_deinit(&coded.scratch);
    return status;
}
