// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_coarse.h"

#include <string.h>

#include "common/base/memory.h"
#include "common/device/device_phase.h"
#include "kernels/coarse_scan/coarse_scan.h"
#include "kernels/gpu_select/gpu_select.h"
#include "shard/device/device_lists.h"
#include "shard/device/device_plan.h"

#define ALIGNMENT   ((size_t)256)
#define PART        8  // of the memory at most
#define SMALL_PART  64 // so little of it need not be saved
#define MOST_GROUP  ((size_t)1024)
#define BLOCK_BYTES ((size_t)4 << 20) // of lists on their way
// Not the scan's, which it may be beside: what it follows is done, and it goes first.
#define COARSE_QUEUE BSW_QUEUE_LINK
// Room in a list beside what it keeps (device_plan.c).
#define ROOM_PER_KEPT 2
#define LEAST_ROOM    1024
// So many centroids may all be in a list: what every row passes costs some 30 ps a row and query on
// an H200, what passes a limit 200 times as much, and no limit has to be found.
#define MOST_WHOLE ((size_t)32768)

// ---- memory ----

static size_t place(size_t bytes, size_t *total)
{
    return bsw_place_array(bytes, ALIGNMENT, total);
}

static enum bsw_status make_layout(size_t padded_dims, struct bsw_code_layout *out,
                                   struct bsw_error *err)
{
    bsw_code_layout_init(out);
    return bsw_code_layout_append(out, (uint32_t)padded_dims, BSW_COARSE_CODE_BITS, err);
}

// What is uploaded for a group of queries.
static void place_uploads(const struct bsw_device_coarse_needs *needs, size_t num,
                          struct bsw_device_coarse *out, size_t *total)
{
    int has_residuals = out->stays && needs->has_additions;
    out->at.upload = out->at.components = place(num * out->padded_dims, total);
    out->at.constants = place(num * sizeof(int32_t), total);
    out->at.scales = place(num * sizeof(float), total);
    out->at.limits = place(num * sizeof(uint32_t), total);
    out->at.counts = place((num + 1) * sizeof(uint32_t), total); // and whether one overflowed
    out->at.norms = place(out->stays ? num * sizeof(float) : 0, total);
    out->at.residuals = place(has_residuals ? num * needs->dims * sizeof(float) : 0, total);
    out->at.upload_bytes = *total - out->at.upload;
    *total += (out->num_groups - 1) * out->at.upload_bytes;
}

// A choice.
static void place_choice(const struct bsw_device_coarse_needs *needs, struct bsw_device_coarse *out,
                         size_t *total)
{
    size_t all = needs->max_queries * out->most_kept, lists = needs->num_lists;
    if (!out->stays) return;
    out->choice.most = (uint32_t)out->most_kept;
    out->at.lists = place(all * sizeof(uint32_t), total);
    out->at.list_counts = place(needs->max_queries * sizeof(uint32_t), total);
    out->at.additions = place(needs->has_additions ? all * sizeof(float) : 0, total);
    out->at.step_queries = place(BSW_LIST_STEPS * lists * sizeof(uint32_t), total);
    out->at.flags = place(sizeof(uint32_t), total);
    out->at.centred = place(needs->has_additions ? lists * needs->dims * sizeof(float) : 0, total);
}

// Everything but the device; returns the bytes.
static size_t plan_with(const struct bsw_device_coarse_needs *needs, int stays, int is_whole,
                        size_t most_group, struct bsw_device_coarse *out,
                        struct bsw_device_codes_layout *codes)
{
    size_t lists = needs->num_lists, bundles = bsw_num_bundles(lists), total = 0;
    *out = (struct bsw_device_coarse){.padded_dims = (needs->dims + 31) / 32 * 32, .stays = stays};
    size_t kept = needs->probe < BSW_COARSE_RANK ? BSW_COARSE_RANK : needs->probe;
    if (kept > BSW_DEVICE_COARSE_KEPT) kept = BSW_DEVICE_COARSE_KEPT;
    out->most_kept = kept < lists ? kept : lists;
    out->capacity = (1 + ROOM_PER_KEPT) * out->most_kept + LEAST_ROOM;
    if (is_whole || out->capacity > bundles * BSW_BUNDLE_ROWS)
        out->capacity = bundles * BSW_BUNDLE_ROWS;
    size_t num = needs->max_queries < most_group ? needs->max_queries : most_group;
    out->group_queries = num;
    out->num_groups = stays ? (needs->max_queries + num - 1) / num : 1;
    struct bsw_code_layout layout;
    struct bsw_error err;
    if (make_layout(out->padded_dims, &layout, &err) != BSW_OK) return SIZE_MAX;
    bsw_device_codes_layout_make(&layout, 1, 0, bundles, codes);
    place(codes->bytes, &total);
    place_uploads(needs, num, out, &total);
    out->at.items = place(num * out->capacity * sizeof(uint64_t), &total);
    place_choice(needs, out, &total);
    return total;
}

// Choices stay where there is room for it, made for all queries at once if that takes little; from
// lists of all centroids, if these have room, too.
static size_t plan(const struct bsw_device_coarse_needs *needs, size_t free_bytes,
                   struct bsw_device_coarse *out, struct bsw_device_codes_layout *codes)
{
    size_t all = needs->most_group > 0 ? needs->most_group : needs->max_queries,
           some = all < MOST_GROUP ? all : MOST_GROUP, bytes;
    for (int is_whole = needs->num_lists <= MOST_WHOLE; needs->stays && is_whole >= 0; is_whole--) {
        bytes = plan_with(needs, 1, is_whole, all, out, codes);
        if (bytes <= free_bytes / SMALL_PART) return bytes;
        bytes = plan_with(needs, 1, is_whole, some, out, codes);
        if (bytes <= free_bytes / (is_whole ? SMALL_PART : PART)) return bytes;
    }
    return plan_with(needs, 0, 0, MOST_GROUP, out, codes);
}

size_t bsw_device_coarse_bytes(const struct bsw_device_coarse_needs *needs, size_t free_bytes)
{
    struct bsw_device_coarse coarse;
    struct bsw_device_codes_layout codes;
    if (needs->num_lists == 0 || needs->probe == 0) return 0;
    size_t bytes = plan(needs, free_bytes, &coarse, &codes);
    int is_of_use = coarse.stays || needs->max_queries > 1; // one query is not worth a wait
    return is_of_use && bytes <= free_bytes / PART ? bytes : 0;
}

static enum bsw_status allocate(bsw_device *device, size_t bytes, struct bsw_device_coarse *coarse,
                                struct bsw_error *err)
{
    BSW_TRY(bsw_device_allocate(device, bytes, "centroids", &coarse->memory, err));
    BSW_TRY(bsw_device_allocate_host(device, coarse->num_groups * coarse->at.upload_bytes,
                                     "queries", &coarse->staging, err));
    BSW_TRY(bsw_device_allocate_host(device, (coarse->group_queries + 1) * sizeof(uint32_t),
                                     "counts", &coarse->fetched, err));
    return bsw_device_blocks_open(device, BLOCK_BYTES, &coarse->blocks, err);
}

static void point_codes(const struct bsw_device_codes_layout *at, struct bsw_device_coarse *coarse)
{
    unsigned char *memory = coarse->memory.data;
    coarse->codes.planes[0] = (const uint32_t *)(void *)(memory + at->planes[0]);
    coarse->codes.scales = (const uint16_t *)(void *)(memory + at->scales);
    coarse->codes.biases = (const float *)(void *)(memory + at->biases);
    coarse->codes.masks = (const uint32_t *)(void *)(memory + at->masks);
}

static void point_choice(const struct bsw_device_coarse_needs *needs, struct bsw_device_coarse *out)
{
    unsigned char *memory = out->memory.data;
    if (!out->stays) return;
    out->choice.num_lists = needs->num_lists;
    out->choice.ends[0] = 1;
    out->choice.ends[1] = BSW_FEW_LISTS;
    out->choice.ends[2] = UINT32_MAX;
    out->choice.lists = (uint32_t *)(void *)(memory + out->at.lists);
    out->choice.counts = (uint32_t *)(void *)(memory + out->at.list_counts);
    if (needs->has_additions) out->choice.additions = (float *)(void *)(memory + out->at.additions);
    out->choice.step_queries = (uint32_t *)(void *)(memory + out->at.step_queries);
    out->choice.flags = (uint32_t *)(void *)(memory + out->at.flags);
}

enum bsw_status bsw_device_coarse_open(bsw_device *device,
                                       const struct bsw_device_coarse_needs *needs,
                                       size_t free_bytes, struct bsw_device_coarse *out,
                                       struct bsw_error *err)
{
    struct bsw_device_codes_layout codes;
    size_t bytes = bsw_device_coarse_bytes(needs, free_bytes);
    *out = (struct bsw_device_coarse){0};
    if (bytes == 0) return BSW_OK;
    plan(needs, free_bytes, out, &codes);
    out->device = device;
    enum bsw_status status = make_layout(out->padded_dims, &out->codes.layout, err);
    if (status == BSW_OK) status = allocate(device, bytes, out, err);
    if (status != BSW_OK) {
        bsw_device_coarse_close(out);
        return status;
    }
    out->codes.num_bundles = (uint32_t)bsw_num_bundles(needs->num_lists);
    point_codes(&codes, out);
    point_choice(needs, out);
    return BSW_OK;
}

void bsw_device_coarse_close(struct bsw_device_coarse *coarse)
{
    if (!coarse->device) return;
    bsw_device_free(coarse->device, &coarse->memory);
    bsw_device_free_host(coarse->device, &coarse->staging);
    bsw_device_free_host(coarse->device, &coarse->fetched);
    bsw_device_blocks_close(&coarse->blocks);
    coarse->device = NULL;
}

// ---- centroids ----

// One centroid's bytes to planes. Dimension 4*r + j of a word is bit 8*j + r, so that unpacking
// gives dimensions in their own order, and components go to the device as they are.
static void put_planes(const struct bsw_coarse_codes *codes, size_t list, uint32_t *planes)
{
    size_t words = codes->padded_dims / 32, lane = list % BSW_BUNDLE_ROWS;
    const uint8_t *bytes = codes->bytes + list / 16 * 16 * codes->padded_dims + list % 16 * 4;
    uint32_t *own =
        planes + list / BSW_BUNDLE_ROWS * BSW_COARSE_CODE_BITS * words * BSW_BUNDLE_ROWS + lane;
    for (size_t d = 0; d < codes->padded_dims; d++) {
        uint32_t u = bytes[d / 4 * 64 + d % 4], bit = (uint32_t)(8 * (d % 4) + d % 32 / 4);
        for (size_t b = 0; b < BSW_COARSE_CODE_BITS; b++)
            own[(b * words + d / 32) * BSW_BUNDLE_ROWS] |= (u >> (BSW_COARSE_CODE_BITS - 1 - b) & 1)
                                                           << bit;
    }
}

static enum bsw_status upload(struct bsw_device_coarse *coarse, const void *to, const void *from,
                              size_t bytes, struct bsw_error *err)
{
    return bsw_device_blocks_upload(&coarse->blocks, (void *)(uintptr_t)to, from, bytes,
                                    "centroids to the device", err);
}

static enum bsw_status load(struct bsw_device_coarse *coarse, const struct bsw_coarse_codes *codes,
                            const struct bsw_coarse_rules *rules, struct bsw_error *err)
{
    size_t bundles = coarse->codes.num_bundles, lists = codes->num_lists,
           words = bundles * BSW_COARSE_CODE_BITS * codes->padded_dims;
    uint32_t *planes, *masks;
    BSW_TRY(bsw_allocate_zero(&planes, words + bundles, sizeof *planes, "centroids", err));
    masks = planes + words;
#pragma omp parallel for schedule(static) // no two bundles share a word
    for (size_t b = 0; b < bundles; b++) {
        size_t last = (b + 1) * BSW_BUNDLE_ROWS < lists ? (b + 1) * BSW_BUNDLE_ROWS : lists;
        for (size_t i = b * BSW_BUNDLE_ROWS; i < last; i++) {
            put_planes(codes, i, planes);
            masks[b] |= 1u << i % BSW_BUNDLE_ROWS;
        }
    }
    enum bsw_status status =
        upload(coarse, coarse->codes.planes[0], planes, words * sizeof *planes, err);
    if (status == BSW_OK)
        status = upload(coarse, coarse->codes.masks, masks, bundles * sizeof *masks, err);
    if (status == BSW_OK)
        status = upload(coarse, coarse->codes.scales, codes->scales,
                        bundles * BSW_BUNDLE_ROWS * sizeof *codes->scales, err);
    if (status == BSW_OK)
        status = upload(coarse, coarse->codes.biases, codes->biases,
                        bundles * BSW_BUNDLE_ROWS * sizeof *codes->biases, err);
    if (status == BSW_OK && coarse->choice.additions)
        status = upload(coarse, coarse->memory.data + coarse->at.centred, rules->centred,
                        lists * rules->dims * sizeof *rules->centred, err);
    if (status == BSW_OK)
        status = bsw_device_wait(coarse->device, BSW_QUEUE_COPY, "centroids", err);
    bsw_free(&planes);
    coarse->is_loaded = status == BSW_OK;
    return status;
}

// ---- queries ----

// A group of queries under way.
struct coarse_run {
    const struct bsw_device_coarse *coarse;
    size_t upload; // where what is uploaded for it lies, beyond the first group's
    struct bsw_device_queries queries;
    struct bsw_device_list_run run;
};

static enum bsw_status scan(void *context, const struct bsw_device_part *part,
                            const struct bsw_device_lists *lists, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SCAN);
    const struct coarse_run *own = context;
    bsw_device *device = own->coarse->device;
    int code = bsw_device_matrix_scan(&own->coarse->codes, part, &own->queries, lists,
                                      bsw_device_stream(device, COARSE_QUEUE));
    return bsw_device_launched(device, code, "coarse step", err);
}

// What the staging memory has of the group's queries, no limits, empty lists.
static enum bsw_status upload_group(const struct coarse_run *own, struct bsw_error *err)
{
    const struct bsw_device_coarse *coarse = own->coarse;
    size_t num = own->queries.num_queries, before = coarse->at.upload;
    unsigned char *to = coarse->staging + own->upload;
    memset(to + (coarse->at.limits - before), 0, num * sizeof(uint32_t));
    memset(to + (coarse->at.counts - before), 0, (num + 1) * sizeof(uint32_t));
    return bsw_device_upload(coarse->device, COARSE_QUEUE,
                             coarse->memory.data + before + own->upload, to,
                             coarse->at.upload_bytes, err);
}

// Queries from `first` on.
static enum bsw_status send(struct coarse_run *own, const struct bsw_matrix_queries *queries,
                            size_t first, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(STAGE_QUERIES);
    const struct bsw_device_coarse *coarse = own->coarse;
    size_t num = own->queries.num_queries, before = coarse->at.upload;
    unsigned char *to = coarse->staging + own->upload;
    memcpy(to + (coarse->at.components - before), queries->components + first * coarse->padded_dims,
           num * coarse->padded_dims);
    memcpy(to + (coarse->at.constants - before), queries->constants + first, num * sizeof(int32_t));
    memcpy(to + (coarse->at.scales - before), queries->scales + first, num * sizeof(float));
    return upload_group(own, err);
}

static void point(const struct bsw_device_coarse *coarse, size_t num, size_t keep, uint32_t *counts,
                  size_t group, struct coarse_run *out)
{
    unsigned char *all = coarse->memory.data, *memory = all + group * coarse->at.upload_bytes;
    out->coarse = coarse;
    out->upload = group * coarse->at.upload_bytes;
    out->queries = (struct bsw_device_queries){
        .num_queries = (uint32_t)num,
        .query_bits = BSW_COARSE_QUERY_BITS,
        .query_words =
            (uint32_t)bsw_layout_query_words(&coarse->codes.layout, BSW_COARSE_QUERY_BITS),
        .components = (const int8_t *)(memory + coarse->at.components),
        .constants = (const int32_t *)(void *)(memory + coarse->at.constants),
        .scales = (const float *)(void *)(memory + coarse->at.scales)};
    out->run = (struct bsw_device_list_run){
        .device = coarse->device,
        .queue = COARSE_QUEUE,
        .blocks = (struct bsw_device_blocks *)(uintptr_t)&coarse->blocks,
        .lists = {.num_queries = (uint32_t)num,
                  .capacity = (uint32_t)coarse->capacity,
                  .items = (uint64_t *)(void *)(all + coarse->at.items),
                  .counts = (uint32_t *)(void *)(memory + coarse->at.counts),
                  .limits = (uint32_t *)(void *)(memory + coarse->at.limits)},
        .keep = keep,
        .counts = counts,
        .fetched = coarse->fetched};
    out->run.lists.overflowed = out->run.lists.counts + num;
}

// Step by step, as a list of lists was too short; the host has waited for all before.
static enum bsw_status find_again(struct coarse_run *own, const struct bsw_matrix_queries *queries,
                                  size_t first, uint64_t *items, struct bsw_error *err)
{
    const struct bsw_device_coarse *coarse = own->coarse;
    struct bsw_device_list_run *run = &own->run;
    bsw_device_list_run_begin(run);
    memset(run->counts, 0, run->lists.num_queries * sizeof(uint32_t));
    BSW_TRY(send(own, queries, first, err));
    BSW_TRY(bsw_device_list_run_scan(run, coarse->codes.num_bundles, scan, own, err));
    BSW_TRY(bsw_device_list_run_sort(run, NULL, err));
    return bsw_device_list_run_fetch(run, items, err);
}

// Without the host until all is there: there are no fewer lists than are kept, so that it is known
// how many come.
static enum bsw_status find_group(struct coarse_run *own, const struct bsw_matrix_queries *queries,
                                  size_t first, uint64_t *items, struct bsw_error *err)
{
    const struct bsw_device_coarse *coarse = own->coarse;
    struct bsw_device_list_run *run = &own->run;
    const size_t num = run->lists.num_queries, bytes = run->keep * sizeof *items;
    const struct bsw_device_rows rows = {.row_bytes = bytes,
                                         .num_rows = num,
                                         .to_stride = bytes,
                                         .from_stride = run->lists.capacity * sizeof *items};
    bsw_device_list_run_begin(run);
    BSW_TRY(send(own, queries, first, err));
    BSW_TRY(bsw_device_list_run_queue_ahead(run, coarse->codes.num_bundles, scan, own, err));
    BSW_TRY(bsw_device_list_run_sort(run, NULL, err));
    BSW_TRY(bsw_device_blocks_download(run->blocks, COARSE_QUEUE, items, run->lists.items, &rows,
                                       "coarse step", err));
    memcpy(run->counts, run->fetched, num * sizeof(uint32_t));
    return run->fetched[num] == 0 ? BSW_OK : find_again(own, queries, first, items, err);
}

static enum bsw_status find(void *context, const struct bsw_matrix_queries *queries, size_t keep,
                            uint64_t *items, uint32_t *counts, struct bsw_error *err)
{
    struct bsw_device_coarse *coarse = context;
    size_t most = coarse->group_queries;
    for (size_t first = 0; first < queries->num_queries; first += most) {
        size_t left = queries->num_queries - first;
        struct coarse_run own;
        point(coarse, left < most ? left : most, keep, counts + first, 0, &own);
        BSW_TRY(find_group(&own, queries, first, items + first * keep, err));
    }
    coarse->num_found += queries->num_queries;
    return BSW_OK;
}

// ---- choices that stay ----

static struct bsw_coarse_queries queries_of(const struct bsw_device_coarse *coarse, size_t group)
{
    unsigned char *to = coarse->staging + group * coarse->at.upload_bytes - coarse->at.upload;
    return (struct bsw_coarse_queries){.components = (int8_t *)(to + coarse->at.components),
                                       .constants = (int32_t *)(void *)(to + coarse->at.constants),
                                       .scales = (float *)(void *)(to + coarse->at.scales),
                                       .norms = (float *)(void *)(to + coarse->at.norms),
                                       .residuals = (float *)(void *)(to + coarse->at.residuals)};
}

// Candidates in any order: where a list has room for all centroids, nothing is cut before.
static enum bsw_status queue_candidates(struct coarse_run *own, struct bsw_error *err)
{
    const struct bsw_device_coarse *coarse = own->coarse;
    const struct bsw_device_part all = {0, coarse->codes.num_bundles, 1};
    bsw_device_list_run_begin(&own->run);
    if ((size_t)all.last * BSW_BUNDLE_ROWS <= coarse->capacity)
        return scan(own, &all, &own->run.lists, err);
    return bsw_device_list_run_queue_ahead(&own->run, all.last, scan, own, err);
}

static enum bsw_status queue_choice(const struct coarse_run *own,
                                    const struct bsw_coarse_rules *rules, size_t first,
                                    struct bsw_error *err)
{
    const struct bsw_device_coarse *coarse = own->coarse;
    const unsigned char *all = coarse->memory.data, *memory = all + own->upload;
    const struct bsw_device_chooser chooser = {
        .keep = (uint32_t)own->run.keep,
        .probe = rules->probe,
        .rank = rules->rank,
        .least_key = BSW_COARSE_LEAST_KEY,
        .ratio = rules->ratio,
        .is_l2 = (uint32_t)rules->is_l2,
        .norms = (const float *)(const void *)(memory + coarse->at.norms),
        .dims = (uint32_t)rules->dims,
        .vectors = (const float *)(const void *)(memory + coarse->at.residuals),
        .centroids = (const float *)(const void *)(all + coarse->at.centred)};
    int code = bsw_device_choose_lists(&own->run.lists, (uint32_t)first, &chooser, &coarse->choice,
                                       bsw_device_stream(coarse->device, COARSE_QUEUE));
    return bsw_device_launched(coarse->device, code, "coarse step", err);
}

// Queries from `first` on, which are a group.
static enum bsw_status place_group(struct bsw_device_coarse *coarse,
                                   const struct bsw_list_choice *choice, size_t first,
                                   struct bsw_error *err)
{
    const struct bsw_coarse_rules rules = bsw_coarse_search_rules(choice->search);
    size_t left = choice->num_queries - first, group = first / coarse->group_queries,
           num = left < coarse->group_queries ? left : coarse->group_queries;
    const struct bsw_coarse_queries queries = queries_of(coarse, group);
    struct coarse_run own;
    point(coarse, num, rules.most_kept, NULL, group, &own);
    BSW_TRY(bsw_coarse_search_prepare(choice->search, choice->vectors + first * rules.dims, num,
                                      &queries, err));
    BSW_TRY(upload_group(&own, err));
    BSW_TRY(queue_candidates(&own, err));
    return queue_choice(&own, &rules, first, err);
}

int bsw_device_coarse_can_place(const struct bsw_device_coarse *coarse,
                                const struct bsw_list_choice *choice)
{
    return coarse && coarse->device && coarse->stays && !choice->lists && choice->num_queries > 0 &&
           choice->num_queries <= coarse->num_groups * coarse->group_queries &&
           !coarse->choice.additions == !bsw_list_choice_has_additions(choice) &&
           coarse->refused != choice->number;
}

enum bsw_status bsw_device_coarse_place(struct bsw_device_coarse *coarse,
                                        const struct bsw_list_choice *choice, struct bsw_error *err)
{
    if (coarse->placed == choice->number) return BSW_OK;
    coarse->placed = 0;
    coarse->choice.num_queries = (uint32_t)choice->num_queries;
    int code =
        bsw_device_choice_clear(&coarse->choice, bsw_device_stream(coarse->device, COARSE_QUEUE));
    BSW_TRY(bsw_device_launched(coarse->device, code, "coarse step", err));
    for (size_t first = 0; first < choice->num_queries; first += coarse->group_queries)
        BSW_TRY(place_group(coarse, choice, first, err));
    coarse->num_found += choice->num_queries;
    coarse->placed = choice->number;
    return BSW_OK;
}

enum bsw_status bsw_device_coarse_take(struct bsw_device_coarse *coarse,
                                       struct bsw_coarse_search *search, struct bsw_error *err)
{
    const struct bsw_coarse_codes codes = bsw_coarse_search_codes(search);
    const struct bsw_coarse_rules rules = bsw_coarse_search_rules(search);
    if (!coarse->device) return BSW_OK;
    if (!coarse->is_loaded) BSW_TRY(load(coarse, &codes, &rules, err));
    coarse->placed = coarse->refused = 0; // numbers are those of a search
    bsw_coarse_search_offload(search, find, coarse, coarse->most_kept);
    if (coarse->stays) bsw_coarse_search_defer(search);
    return BSW_OK;
}
