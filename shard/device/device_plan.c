// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_plan.h"

#include "common/base/memory.h"
#include "kernels/device_scan/device_list_scan.h"
#include "kernels/device_scan/device_tuning.h"
#include "kernels/gpu_bytes/gpu_bytes.h"
#include "kernels/gpu_lists/gpu_lists.h"
#include "kernels/gpu_select/gpu_select.h"
#include "shard/codecs/product_codes.h"

// Alignment of every array: what cudaMalloc gives.
#define ALIGNMENT ((size_t)256)
// Part of the memory for lists and queries where codes have to share it.
#define LISTS_PART 4
// A shorter list would make segments too short: one as long as all before it adds about `keep` rows
// where rows come in no order; twice that and some leave room for chance.
#define ROOM_PER_KEPT 2
#define LEAST_ROOM    1024
// Longer lists make for fewer segments (device_plan.h), within this part of the memory.
#define LONG_LISTS_PART 8
// Copies of this size run at full speed.
#define MOST_BLOCK_BYTES ((size_t)64 << 20)
// Tables of work items: the more there is in them, the less often the host waits. Slots of 2^21
// take 16 MiB: 1000 queries that look at 2000 lists. A block of a GPU takes an item.
#define MOST_SLOTS ((size_t)1 << 21)
#define MOST_WORK  ((size_t)1 << 16)
#define LEAST_WORK ((size_t)256)
// Where a device makes items there is room for as many as there may be at most (2 MiB).
#define MOST_GPU_WORK ((size_t)1 << 17)
// Each of the two blocks takes no more than this part of what is left for codes.
#define BLOCK_PART 8

// Places an array at the end of what is there.
static size_t place(size_t bytes, size_t *total)
{
    return bsw_place_array(bytes, ALIGNMENT, total);
}

void bsw_device_codes_layout_make(const struct bsw_code_layout *layout, enum bsw_device_keys keys,
                                  int has_tails, size_t num_bundles,
                                  struct bsw_device_codes_layout *out)
{
    size_t rows = num_bundles * BSW_BUNDLE_ROWS;
    int has_affine = keys == BSW_DEVICE_KEYS_FLOAT;
    *out = (struct bsw_device_codes_layout){.bytes = 0};
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        size_t words = bsw_segment_bundle_words(&layout->segments[s]);
        out->planes[s] = place(num_bundles * words * sizeof(uint32_t), &out->bytes);
    }
    out->scales = place(has_affine ? rows * sizeof(uint16_t) : 0, &out->bytes);
    out->biases = place(has_affine ? rows * sizeof(float) : 0, &out->bytes);
    out->tails = place(has_tails ? rows * sizeof(uint16_t) : 0, &out->bytes);
    out->offsets = place(keys == BSW_DEVICE_KEYS_WHOLE ? rows * sizeof(int32_t) : 0, &out->bytes);
    out->masks = place(num_bundles * sizeof(uint32_t), &out->bytes);
}

size_t bsw_device_bundle_bytes(const struct bsw_code_layout *layout, enum bsw_device_keys keys,
                               int has_tails)
{
    static const size_t row_bytes[] = {[BSW_DEVICE_KEYS_FLOAT] = sizeof(uint16_t) + sizeof(float),
                                       [BSW_DEVICE_KEYS_WHOLE] = sizeof(int32_t)};
    size_t words = 1; // the mask
    for (uint32_t s = 0; s < layout->num_segments; s++)
        words += bsw_segment_bundle_words(&layout->segments[s]);
    return words * sizeof(uint32_t) +
           BSW_BUNDLE_ROWS * (row_bytes[keys] + (has_tails ? sizeof(uint16_t) : 0));
}

void bsw_device_tables_layout_make(size_t num_items, size_t num_slots,
                                   struct bsw_device_tables_layout *out)
{
    *out = (struct bsw_device_tables_layout){.bytes = 0};
    out->items = place(num_items * sizeof(struct bsw_device_list_item), &out->bytes);
    out->queries = place(num_slots * sizeof(uint32_t), &out->bytes);
    out->additions = place(num_slots * sizeof(float), &out->bytes);
}

size_t bsw_device_places_bytes(size_t num_bundles)
{
    return bsw_align_size(num_bundles * BSW_BUNDLE_ROWS * sizeof(uint32_t), ALIGNMENT);
}

size_t bsw_device_bundle_lists_bytes(size_t num_bundles)
{
    return bsw_align_size(num_bundles * sizeof(uint32_t), ALIGNMENT);
}

static size_t codes_bytes(const struct bsw_device_plan *plan, size_t num_bundles)
{
    struct bsw_device_codes_layout codes;
    if (num_bundles == 0) return 0;
    bsw_device_codes_layout_make(&plan->layout, plan->keys, plan->stage_dims > 0, num_bundles,
                                 &codes);
    return codes.bytes + (plan->has_lists ? bsw_device_places_bytes(num_bundles) : 0) +
           (plan->num_centroids > 0 ? bsw_device_bundle_lists_bytes(num_bundles) : 0);
}

// Slots of a block of queues.
static size_t queue_slots(const struct bsw_device_plan *plan)
{
    return (size_t)plan->queue.length * BSW_QUEUE_THREADS;
}

// Queues of as many blocks as a list has room for beside what it keeps; one at least: a list that
// is shorter has room for a whole shard.
static void set_capacity(struct bsw_device_plan *plan, size_t capacity)
{
    plan->capacity = capacity;
    if (plan->queue.length == 0) return;
    size_t room = capacity > plan->keep ? capacity - plan->keep : 0;
    size_t blocks = room / queue_slots(plan);
    if (blocks > plan->most_queue_blocks) blocks = plan->most_queue_blocks;
    plan->queue_blocks = blocks > 0 ? blocks : 1;
}

// What a matrix scan takes of queries.
static size_t component_bytes(const struct bsw_device_plan *plan, size_t num_queries)
{
    uint32_t dims = plan->layout.padded_dims;
    if (plan->product) return 0;
    if (plan->keys == BSW_DEVICE_KEYS_WHOLE)
        return bsw_device_byte_operand_bytes((uint32_t)num_queries, dims);
    return num_queries * dims;
}

static void lay_out_queries(const struct bsw_device_plan *plan, size_t num_queries,
                            struct bsw_device_queries_layout *out)
{
    size_t total = 0;
    out->words = place(num_queries * plan->query_words * sizeof(uint32_t), &total);
    out->scales = place(num_queries * sizeof(float), &total);
    out->limits = place(num_queries * sizeof(uint32_t), &total);
    out->counts = place(bsw_device_lists_numbers(num_queries) * sizeof(uint32_t), &total);
    out->raised = place(num_queries * sizeof(uint32_t), &total);
    out->survivors = place(plan->stage_dims > 0 ? sizeof(uint64_t) : 0, &total);
    out->types = place(plan->product ? num_queries : 0, &total);
    size_t selecting = plan->selection.is_on ? num_queries : 0;
    size_t parts = plan->product ? plan->product->book.parts : 0;
    out->entry_limits = place(selecting * parts * sizeof(float), &total);
    out->nothing = place(selecting * sizeof(float), &total);
    out->entry_counts = place(selecting > 0 ? 2 * sizeof(uint64_t) : 0, &total);
    out->upload_bytes = total;
    out->components = place(component_bytes(plan, num_queries), &total);
    out->constants = place(plan->product ? 0 : num_queries * sizeof(int32_t), &total);
    out->stage_constants = place(plan->stage_dims > 0 ? num_queries * sizeof(int32_t) : 0, &total);
    out->reaches = place(plan->stage_dims > 0 ? num_queries * sizeof(float) : 0, &total);
    out->items = place(num_queries * plan->capacity * sizeof(uint64_t), &total);
    out->sort =
        place(bsw_device_sort_bytes((uint32_t)num_queries, (uint32_t)plan->capacity), &total);
    out->slots =
        place(num_queries * plan->queue_blocks * queue_slots(plan) * sizeof(uint64_t), &total);
    out->bytes = total;
}

// As many queries as fit at once, at least one.
static void choose_group(struct bsw_device_plan *plan, size_t max_queries, size_t bytes)
{
    plan->group_queries = max_queries;
    lay_out_queries(plan, max_queries, &plan->queries);
    while (plan->queries.bytes > bytes && plan->group_queries > 1) {
        plan->group_queries = (plan->group_queries + 1) / 2;
        lay_out_queries(plan, plan->group_queries, &plan->queries);
    }
}

// A thread has no more rows than the largest span gives it, and keeps no more than it has.
static void fit_queues(const struct bsw_queue_options *wanted, size_t most_rows,
                       struct bsw_device_plan *plan)
{
    uint64_t most = (most_rows + BSW_QUEUE_THREADS - 1) / BSW_QUEUE_THREADS;
    if (wanted->length == 0 || most == 0) return;
    plan->queue.items = wanted->items < most ? wanted->items : most;
    plan->queue.length = wanted->length < plan->queue.items ? wanted->length : plan->queue.items;
    plan->most_queue_blocks = (size_t)((most + plan->queue.items - 1) / plan->queue.items);
}

// The least that will do, unless the needs say how much.
static enum bsw_status choose_capacity(const struct bsw_device_needs *needs, size_t most_rows,
                                       struct bsw_device_plan *plan, struct bsw_error *err)
{
    size_t keep = needs->keep < most_rows ? needs->keep : most_rows;
    size_t room = plan->queue.length > 0 ? queue_slots(plan) : ROOM_PER_KEPT * keep + LEAST_ROOM;
    size_t capacity = needs->capacity > 0 ? needs->capacity : keep + room;
    if (capacity > most_rows) capacity = most_rows; // then none can overflow
    plan->keep = keep;
    set_capacity(plan, capacity);
    if (plan->capacity > UINT32_MAX / 2) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE,
                        "%zu candidates a query are too many for a device", needs->keep);
    }
    return BSW_OK;
}

static const struct bsw_device_tuning *tuning_of(const struct bsw_device_needs *needs)
{
    return needs->tuning ? needs->tuning : bsw_device_tuning_find(0, 0);
}

// Longer lists for a whole batch, where `left` bytes are left for it.
static void lengthen_lists(const struct bsw_device_needs *needs, size_t most_rows, size_t left,
                           size_t free_bytes, struct bsw_device_plan *plan)
{
    const struct bsw_device_tuning *tuning = tuning_of(needs);
    size_t low = plan->capacity, high = tuning->all_list_items / needs->max_queries;
    size_t bytes = free_bytes / LONG_LISTS_PART < left ? free_bytes / LONG_LISTS_PART : left;
    if (needs->capacity > 0 || plan->group_queries < needs->max_queries) return;
    if (high > tuning->list_items) high = tuning->list_items;
    if (high > most_rows) high = most_rows;
    size_t most = plan->keep + plan->most_queue_blocks * queue_slots(plan);
    if (plan->queue.length > 0 && high > most) high = most;
    while (low < high) {
        set_capacity(plan, low + (high - low + 1) / 2);
        lay_out_queries(plan, plan->group_queries, &plan->queries);
        if (plan->queries.bytes <= bytes)
            low = plan->capacity;
        else
            high = plan->capacity - 1;
    }
    set_capacity(plan, low);
    lay_out_queries(plan, plan->group_queries, &plan->queries);
}

// The bundles, at most `most`, whose codes take no more than `bytes`.
static size_t bundles_within(const struct bsw_device_plan *plan, size_t bytes, size_t most)
{
    size_t low = 0,
           high = bytes / bsw_device_bundle_bytes(&plan->layout, plan->keys, plan->stage_dims > 0);
    if (high > most) high = most;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (codes_bytes(plan, middle) <= bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static enum bsw_status plan_blocks(const struct bsw_device_needs *needs, size_t free_bytes,
                                   size_t all_bytes, size_t most_bundles,
                                   struct bsw_device_plan *plan, struct bsw_error *err)
{
    size_t two_bundles = 2 * codes_bytes(plan, 1);
    if (plan->queries.bytes + two_bundles > free_bytes) choose_group(plan, 1, 0);
    if (plan->queries.bytes + two_bundles > free_bytes) {
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY,
                        "%zu bytes of device memory are free, %zu are needed at least: %zu for one "
                        "query's candidates, %zu for codes, block by block; all at once need %zu",
                        free_bytes, plan->queries.bytes + two_bundles, plan->queries.bytes,
                        two_bundles, all_bytes);
    }
    size_t left = free_bytes - plan->queries.bytes;
    size_t block = left / BLOCK_PART < MOST_BLOCK_BYTES ? left / BLOCK_PART : MOST_BLOCK_BYTES;
    plan->block_bundles = bundles_within(plan, block, most_bundles);
    if (plan->block_bundles == 0) plan->block_bundles = 1;
    plan->block_bytes = codes_bytes(plan, plan->block_bundles);
    left -= 2 * plan->block_bytes;
    for (size_t i = 0; i < needs->num_shards; i++) {
        size_t bundles = bsw_num_bundles((size_t)needs->shapes[i].num_places);
        plan->resident_bundles[i] = bundles_within(plan, left, bundles);
        size_t bytes = codes_bytes(plan, plan->resident_bundles[i]);
        plan->code_bytes += bytes;
        plan->streamed_bytes +=
            (bundles - plan->resident_bundles[i]) *
            bsw_device_bundle_bytes(&plan->layout, plan->keys, plan->stage_dims > 0);
        left -= bytes;
    }
    return BSW_OK;
}

// Codes of lists: all of them are there, if that is possible with fewer queries at a time.
static int do_lists_fit(const struct bsw_device_needs *needs, size_t free_bytes, size_t all_codes,
                        struct bsw_device_plan *plan)
{
    choose_group(plan, needs->max_queries, free_bytes > all_codes ? free_bytes - all_codes : 0);
    plan->code_bytes = all_codes;
    return plan->queries.bytes + all_codes <= free_bytes;
}

// Rows of the largest span, in whole bundles.
static size_t most_span_rows(const struct bsw_device_needs *needs)
{
    size_t num = needs->spans ? needs->num_spans : needs->num_shards, most = 0;
    for (size_t i = 0; i < num; i++) {
        const struct bsw_shard_range one = {i, 1}, *span = needs->spans ? &needs->spans[i] : &one;
        size_t bundles = 0;
        for (size_t s = span->first; s < span->first + span->num; s++)
            bundles += bsw_num_bundles((size_t)needs->shapes[s].num_places);
        most = bundles > most ? bundles : most;
    }
    return most * BSW_BUNDLE_ROWS;
}

static enum bsw_status share_memory(const struct bsw_device_needs *needs, size_t free_bytes,
                                    struct bsw_device_plan *plan, struct bsw_error *err)
{
    size_t most_bundles = 0, all_codes = 0;
    for (size_t i = 0; i < needs->num_shards; i++) {
        size_t bundles = bsw_num_bundles((size_t)needs->shapes[i].num_places);
        plan->resident_bundles[i] = bundles;
        all_codes += codes_bytes(plan, bundles);
        if (bundles > most_bundles) most_bundles = bundles;
    }
    size_t most_rows = most_span_rows(needs);
    fit_queues(&needs->queue, most_rows, plan);
    BSW_TRY(choose_capacity(needs, most_rows, plan, err));
    choose_group(plan, needs->max_queries, SIZE_MAX);
    size_t all_bytes = all_codes + plan->queries.bytes;
    if (all_bytes > free_bytes && plan->has_lists &&
        do_lists_fit(needs, free_bytes, all_codes, plan))
        return BSW_OK;
    if (all_bytes > free_bytes) choose_group(plan, needs->max_queries, free_bytes / LISTS_PART);
    int fits = all_codes + plan->queries.bytes <= free_bytes;
    size_t codes = fits ? all_codes : 2 * codes_bytes(plan, 1);
    lengthen_lists(needs, most_rows, codes < free_bytes ? free_bytes - codes : 0, free_bytes, plan);
    plan->code_bytes = fits ? all_codes : 0;
    return fits ? BSW_OK : plan_blocks(needs, free_bytes, all_bytes, most_bundles, plan, err);
}

static void plan_gpu_lists(const struct bsw_device_needs *needs, struct bsw_device_plan *plan)
{
    struct bsw_device_gpu_lists_layout *at = &plan->gpu_lists;
    size_t lists = needs->shapes[0].num_lists;
    plan->list_items = MOST_GPU_WORK;
    at->next_slots = place(BSW_LIST_STEPS * lists * sizeof(uint32_t), &at->bytes);
    at->num_items = place(BSW_LIST_COUNTERS * sizeof(uint32_t), &at->bytes);
    at->totals = place(sizeof(struct bsw_device_list_totals), &at->bytes);
    at->shapes = at->bytes;
    place((lists + 1) * sizeof(uint32_t), &at->shape_bytes);
    at->shape_rows = place(lists * sizeof(uint32_t), &at->shape_bytes);
    at->bytes += needs->num_shards * at->shape_bytes;
}

// Room for a batch, or for some of it at least.
static void plan_tables(const struct bsw_device_needs *needs, int has_gpu_lists,
                        struct bsw_device_plan *plan)
{
    struct bsw_device_tables_layout tables;
    size_t lists = needs->probe > 0 ? needs->probe : 1, most = 0;
    for (size_t i = 0; i < needs->num_shards; i++) {
        size_t bundles = bsw_num_bundles((size_t)needs->shapes[i].num_places);
        most = bundles > most ? bundles : most;
    }
    plan->list_slots = lists < MOST_SLOTS / needs->max_queries ? lists * needs->max_queries
                       : needs->max_queries < MOST_SLOTS       ? MOST_SLOTS
                                                               : needs->max_queries;
    size_t widest = bsw_device_list_tile_slots(BSW_LIST_TILES - 1),
           least = (needs->max_queries + widest - 1) / widest; // a run of bundles for all queries
    if (least < LEAST_WORK) least = LEAST_WORK;
    plan->list_items = most < MOST_WORK ? most : MOST_WORK;
    if (plan->list_items < least) plan->list_items = least;
    if (has_gpu_lists) plan_gpu_lists(needs, plan);
    bsw_device_tables_layout_make(plan->list_items, plan->list_slots, &tables);
    plan->list_bytes = tables.bytes;
}

static void plan_book(const struct bsw_device_needs *needs, struct bsw_device_plan *plan)
{
    const struct bsw_product_codes *codes = needs->product;
    struct bsw_device_book_layout *book = &plan->book;
    if (!codes) return;
    size_t numbers = bsw_product_numbers(&codes->book) * sizeof(float),
           centroids = (size_t)needs->num_centroids * codes->projected_dims * sizeof(float);
    plan->product = codes;
    plan->num_centroids = needs->num_centroids;
    plan->selection = needs->selection;
    book->entries = place(numbers * codes->book.part_dims, &book->bytes);
    book->norms = place(numbers, &book->bytes);
    book->centroids = place(centroids, &book->bytes);
}

// As many as if all bundles were resident.
static size_t mask_bytes(const struct bsw_device_needs *needs)
{
    size_t bytes = 0;
    for (size_t i = 0; i < needs->num_shards && needs->has_masks; i++)
        place(bsw_num_bundles((size_t)needs->shapes[i].num_places) * sizeof(uint32_t), &bytes);
    return bytes;
}

static enum bsw_status make_plan(const struct bsw_device_needs *needs, size_t free_bytes,
                                 int has_gpu_lists, struct bsw_device_plan *out,
                                 struct bsw_error *err)
{
    *out = (struct bsw_device_plan){.query_bits = needs->query_bits};
    if (needs->num_shards == 0) return BSW_OK;
    out->has_lists = needs->shapes[0].num_lists > 0;
    if (out->has_lists) plan_tables(needs, has_gpu_lists, out);
    plan_book(needs, out);
    out->mask_bytes = mask_bytes(needs);
    size_t before = out->list_bytes + out->gpu_lists.bytes + out->book.bytes + out->mask_bytes;
    free_bytes -= free_bytes < before ? free_bytes : before;
    out->layout = needs->shapes[0].layout;
    out->has_affine = needs->shapes[0].has_affine;
    out->keys = out->has_affine              ? BSW_DEVICE_KEYS_FLOAT
                : needs->shapes[0].has_bytes ? BSW_DEVICE_KEYS_WHOLE
                                             : BSW_DEVICE_KEYS_INTEGER;
    if (bsw_device_stage_fits(&out->layout, needs->query_bits)) out->stage_dims = needs->stage_dims;
    out->query_words = out->product ? out->product->projected_dims
                                    : bsw_layout_query_words(&out->layout, needs->query_bits);
    BSW_TRY(bsw_allocate_zero(&out->resident_bundles, needs->num_shards, sizeof(size_t),
                              "resident bundles", err));
    enum bsw_status status = share_memory(needs, free_bytes, out, err);
    if (status != BSW_OK) bsw_device_plan_deinit(out);
    return status;
}

// A device makes work items itself where the tuning says so and all codes fit beside what that
// takes.
enum bsw_status bsw_device_plan_make(const struct bsw_device_needs *needs, size_t free_bytes,
                                     struct bsw_device_plan *out, struct bsw_error *err)
{
    struct bsw_error unsaid;
    int wants = needs->num_shards > 0 && needs->shapes[0].num_lists > 0 && needs->probe > 0 &&
                tuning_of(needs)->has_gpu_lists;
    if (wants && make_plan(needs, free_bytes, 1, out, &unsaid) == BSW_OK) {
        if (out->block_bundles == 0) return BSW_OK;
        bsw_device_plan_deinit(out);
    }
    return make_plan(needs, free_bytes, 0, out, err);
}

size_t bsw_device_plan_bytes(const struct bsw_device_plan *plan)
{
    return plan->queries.bytes + 2 * plan->block_bytes + plan->code_bytes + plan->list_bytes +
           plan->gpu_lists.bytes + plan->book.bytes + plan->mask_bytes;
}

void bsw_device_plan_deinit(struct bsw_device_plan *plan)
{
    bsw_free(&plan->resident_bundles);
}
