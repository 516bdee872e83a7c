// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/batch_merge.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/codes/metric.h"
#include "shard/codecs/query_codes.h"

void bsw_batch_merge_init(struct bsw_batch_merge *merge, const struct bsw_manifest *manifest,
                          const struct bsw_search_settings *settings,
                          const struct bsw_assignment *assignment)
{
    *merge = (struct bsw_batch_merge){
        .manifest = manifest, .settings = *settings, .assignment = assignment};
    merge->merge = bsw_merge_table_get(settings->level);
}

void bsw_batch_merge_deinit(struct bsw_batch_merge *merge)
{
    bsw_buffer_deinit(&merge->parts);
    bsw_buffer_deinit(&merge->scratch);
    bsw_buffer_deinit(&merge->counts);
}

// ---- finding each query's parts ----

enum payload_kind { PAYLOAD_CANDIDATES, PAYLOAD_SURVIVORS };

// A payload while it is read.
struct cursor {
    const unsigned char *at;
    size_t left;
};

static const void *take(struct cursor *cursor, uint64_t count, size_t size)
{
    const void *start = cursor->at;
    size_t bytes;
    if (count > SIZE_MAX || !bsw_multiply_size((size_t)count, size, &bytes) || bytes > cursor->left)
        return NULL;
    cursor->at += bytes;
    cursor->left -= bytes;
    return start;
}

static struct bsw_part *part_of(const struct bsw_batch_merge *merge, size_t query, uint32_t shard)
{
    return (struct bsw_part *)(void *)merge->parts.data + query * merge->assignment->num_shards +
           shard;
}

// Candidates are a query after the other, each with its count.
static int read_list(struct cursor *cursor, struct bsw_part *part)
{
    uint64_t count;
    const void *head = take(cursor, 1, sizeof count);
    if (!head) return 0;
    memcpy(&count, head, sizeof count);
    part->items = take(cursor, count, sizeof(struct bsw_ranked));
    part->count = (size_t)count;
    return part->items != NULL;
}

static int read_survivors(const struct bsw_batch_merge *merge, struct cursor *cursor,
                          uint32_t shard, size_t first, size_t last)
{
    if (first == last) return 1; // a batch of fewer queries than slices; the payload may be NULL
    const unsigned char *counts = take(cursor, last - first, sizeof(uint64_t));
    if (!counts) return 0;
    for (size_t q = first; q < last; q++) {
        uint64_t count;
        memcpy(&count, counts + (q - first) * sizeof count, sizeof count);
        struct bsw_part *part = part_of(merge, q, shard);
        part->items = take(cursor, count, sizeof(struct bsw_survivor));
        part->count = (size_t)count;
        if (!part->items) return 0;
    }
    return 1;
}

static int read_unit(const struct bsw_batch_merge *merge, struct cursor *cursor,
                     enum payload_kind kind, uint32_t slice, uint32_t shard)
{
    size_t first, last;
    bsw_assignment_queries(merge->assignment, slice, merge->num_queries, &first, &last);
    if (kind == PAYLOAD_SURVIVORS) return read_survivors(merge, cursor, shard, first, last);
    for (size_t q = first; q < last; q++) {
        if (!read_list(cursor, part_of(merge, q, shard))) return 0;
    }
    return 1;
}

static enum bsw_status find_parts(struct bsw_batch_merge *merge, const struct bsw_buffer *payloads,
                                  size_t num_queries, enum payload_kind kind, struct bsw_error *err)
{
    const struct bsw_assignment *table = merge->assignment;
    size_t bytes = num_queries * table->num_shards * sizeof(struct bsw_part);
    merge->num_queries = num_queries;
    BSW_TRY(bsw_buffer_reserve(&merge->parts, bytes, err));
    if (bytes > 0) memset(merge->parts.data, 0, bytes); // of shards that nobody answers for
    for (uint32_t rank = 0; rank < table->num_ranks; rank++) {
        struct cursor cursor = {payloads[rank].data, payloads[rank].bytes};
        int is_good = 1;
        for (uint32_t slice = 0; slice < table->num_slices; slice++) {
            for (uint32_t shard = 0; shard < table->num_shards && is_good; shard++) {
                if (bsw_assignment_rank(table, slice, shard) != rank) continue;
                is_good = read_unit(merge, &cursor, kind, slice, shard);
            }
        }
        if (!is_good || cursor.left > 0) {
            return bsw_fail(err, BSW_ERROR_PEER, "rank %u sent an answer that does not parse",
                            rank);
        }
    }
    return BSW_OK;
}

// Scratch of `per_thread` items for each thread, and never none at all: where no query has an item
// its address is still computed with.
static enum bsw_status reserve_scratch(struct bsw_batch_merge *merge, size_t per_thread,
                                       struct bsw_error *err)
{
    size_t bytes = (size_t)merge->settings.num_threads * per_thread * sizeof(struct bsw_ranked);
    return bsw_buffer_reserve(&merge->scratch, bytes ? bytes : 1, err);
}

static struct bsw_ranked *thread_scratch(const struct bsw_batch_merge *merge, size_t per_thread)
{
    return (struct bsw_ranked *)(void *)merge->scratch.data +
           (size_t)omp_get_thread_num() * per_thread;
}

static size_t count_items(const struct bsw_batch_merge *merge, size_t query)
{
    size_t count = 0;
    for (uint32_t shard = 0; shard < merge->assignment->num_shards; shard++)
        count += part_of(merge, query, shard)->count;
    return count;
}

static size_t most_items(const struct bsw_batch_merge *merge)
{
    size_t most = 0;
    for (size_t q = 0; q < merge->num_queries; q++) {
        size_t count = count_items(merge, q);
        most = count > most ? count : most;
    }
    return most;
}

// ---- candidates ----

static struct bsw_cut cut_gathered(const struct bsw_batch_merge *merge, struct bsw_ranked *entries,
                                   size_t count, size_t keep, struct bsw_ranked *scratch)
{
    if (count < keep) return bsw_keep_all();
    merge->merge->best_ranked(entries, count, keep, BSW_RANKED_BY_KEY, scratch);
    return (struct bsw_cut){bsw_ranked_key(&entries[keep - 1]), 0, entries[keep - 1].row};
}

static uint32_t shard_of_row(const struct bsw_manifest *manifest, uint64_t row)
{
    uint32_t low = 0, high = manifest->num_shards - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (manifest->shards[middle].first_row <= row)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

// Sum over shards of the largest listed place so far: a lower bound of how many rows are as good.
// Returns 0 if the places of a shard do not rise.
static int cut_ladder(const struct bsw_batch_merge *merge, struct bsw_ranked *entries, size_t count,
                      size_t keep, uint32_t *places, struct bsw_ranked *scratch,
                      struct bsw_cut *cut)
{
    uint64_t reached = 0;
    memset(places, 0, merge->manifest->num_shards * sizeof *places);
    merge->merge->best_ranked(entries, count, count, BSW_RANKED_BY_KEY, scratch);
    *cut = bsw_keep_all();
    for (size_t i = 0; i < count; i++) {
        uint32_t shard = shard_of_row(merge->manifest, entries[i].row);
        uint32_t place = bsw_ranked_payload(&entries[i]);
        if (place <= places[shard]) return 0;
        reached += place - places[shard];
        places[shard] = place;
        if (reached >= keep) {
            *cut = (struct bsw_cut){bsw_ranked_key(&entries[i]), 0, entries[i].row};
            return 1;
        }
    }
    return 1;
}

enum bsw_status bsw_merge_candidates(struct bsw_batch_merge *merge,
                                     const struct bsw_buffer *payloads, size_t num_queries,
                                     const struct bsw_scan_round *round, struct bsw_cut *cuts,
                                     struct bsw_error *err)
{
    uint32_t num_shards = merge->assignment->num_shards;
    BSW_TRY(find_parts(merge, payloads, num_queries, PAYLOAD_CANDIDATES, err));
    size_t most = most_items(merge), per_thread = 2 * most + num_shards; // entries, scratch, places
    BSW_TRY(reserve_scratch(merge, per_thread, err));
    int is_good = 1;
#pragma omp parallel for schedule(dynamic, 16) num_threads(merge->settings.num_threads)
    for (size_t q = 0; q < num_queries; q++) {
        struct bsw_ranked *entries = thread_scratch(merge, per_thread), *scratch = entries + most;
        size_t count = 0;
        for (uint32_t shard = 0; shard < num_shards; shard++) {
            const struct bsw_part *part = part_of(merge, q, shard);
            if (part->count > 0) // a shard that is left out has none
                memcpy(entries + count, part->items, part->count * sizeof *entries);
            count += part->count;
        }
        if (round->is_ladder) {
            if (!cut_ladder(merge, entries, count, round->keep,
                            (uint32_t *)(void *)(scratch + most), scratch, &cuts[q])) {
#pragma omp atomic write
                is_good = 0;
            }
        } else {
            cuts[q] = cut_gathered(merge, entries, count, round->keep, scratch);
        }
    }
    if (is_good) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_PEER, "a rank listed candidates whose places do not rise");
}

void bsw_limits_of_cuts(const struct bsw_batch_merge *merge, const struct bsw_cut *cuts,
                        size_t num_queries, uint32_t *limits)
{
    int64_t least =
        -(int64_t)bsw_layout_dot_limit(&merge->manifest->layout, merge->settings.query_bits);
    for (size_t q = 0; q < num_queries; q++) {
        // dot = most - 2 * distance (XFBQ, Eq. 7); where fewer rows than K are, all are wanted.
        int64_t dot = bsw_score_to_integer(cuts[q].score);
        dot -= 2 * (int64_t)merge->settings.extra_distance;
        if (cuts[q].row == UINT64_MAX || dot < least) dot = least;
        limits[q] = bsw_score_from_integer((int32_t)dot);
    }
}

// ---- survivors ----

// Survivors of all shards by ascending row; the payload of each is the place of its exact value.
static size_t collect_survivors(const struct bsw_batch_merge *merge, size_t query,
                                struct bsw_ranked *entries, double *exact)
{
    size_t count = 0;
    for (uint32_t shard = 0; shard < merge->assignment->num_shards; shard++) {
        const struct bsw_part *part = part_of(merge, query, shard);
        const unsigned char *items = part->items;
        uint64_t first_row = merge->manifest->shards[shard].first_row;
        for (size_t i = 0; i < part->count; i++) {
            struct bsw_survivor survivor;
            memcpy(&survivor, items + i * sizeof survivor, sizeof survivor);
            entries[count] =
                bsw_ranked_of_key(survivor.score, (uint32_t)count, first_row + survivor.row);
            exact[count++] = survivor.value;
        }
    }
    return count;
}

// Where the answer of a query lies among those of the batch.
static size_t place_of(const struct bsw_batch_merge *merge, size_t query)
{
    return merge->order ? merge->order[query] : query;
}

// Leaves out the row that the query itself is; the order of the others stays.
static size_t drop_own(const struct bsw_batch_merge *merge, size_t query,
                       struct bsw_ranked *entries, size_t count)
{
    uint64_t own = merge->first_query_row + place_of(merge, query);
    size_t left = 0;
    if (!merge->settings.exclude_self) return count;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].row != own) entries[left++] = entries[i];
    }
    return left;
}

// Leaves the best `keep` by (key, row), still in ascending row order. The best keep + 1 of all rows
// hold the best keep of all but one.
static size_t cut_to_keep(const struct bsw_batch_merge *merge, struct bsw_ranked *entries,
                          size_t count, struct bsw_ranked *copy, struct bsw_ranked *scratch)
{
    size_t keep = (size_t)(merge->settings.keep - merge->settings.exclude_self), left = 0;
    if (count <= keep) return count;
    memcpy(copy, entries, count * sizeof *copy);
    merge->merge->best_ranked(copy, count, keep, BSW_RANKED_BY_KEY, scratch);
    uint32_t worst = bsw_ranked_key(&copy[keep - 1]);
    for (size_t i = 0; i < count; i++) {
        uint32_t score = bsw_ranked_key(&entries[i]);
        if (score > worst || (score == worst && entries[i].row <= copy[keep - 1].row))
            entries[left++] = entries[i];
    }
    return left;
}

// Scratch of a query with `most` survivors, in struct bsw_ranked: entries, a copy, what sorting
// wants, exact values.
static size_t survivor_scratch(size_t most)
{
    return 3 * most + most / 2 + 1;
}

// An estimate as result files have it: where no value can be, the nearest that can.
static float bounded(enum bsw_metric metric, float value)
{
    if (bsw_has_row_norms(metric)) return value < 0.0f ? 0.0f : value;
    if (!bsw_has_unit_rows(metric)) return value;
    return value < -1.0f ? -1.0f : value > 1.0f ? 1.0f : value;
}

// What result files have for an entry that is ordered. Order is by keys: it stays where values are
// bounded.
static float written_value(const struct bsw_batch_merge *merge, const struct bsw_ranked *entry,
                           struct bsw_value_terms terms)
{
    enum bsw_metric metric = merge->manifest->metric;
    if (merge->settings.is_exact)
        return bsw_metric_written(bsw_metric_value(metric, bsw_exact_score_to_key(entry->score)));
    float value = bsw_value_of_score(merge->manifest, merge->settings.query_bits,
                                     bsw_ranked_key(entry), terms);
    return bsw_selection_counts(&merge->settings.selection) ? value : bounded(metric, value);
}

static int64_t id_of(const struct bsw_batch_merge *merge, uint64_t row)
{
    return merge->row_ids ? merge->row_ids[row - merge->manifest->first_row] : (int64_t)row;
}

static void answer_query(const struct bsw_batch_merge *merge, size_t query,
                         struct bsw_value_terms terms, struct bsw_ranked *entries, size_t most,
                         int64_t *ids, float *values)
{
    enum bsw_metric metric = merge->manifest->metric;
    struct bsw_ranked *copy = entries + most, *scratch = copy + most;
    double *exact = (double *)(void *)(scratch + most);
    size_t k = (size_t)merge->settings.k, count = collect_survivors(merge, query, entries, exact);
    count = drop_own(merge, query, entries, count);
    count = cut_to_keep(merge, entries, count, copy, scratch);
    for (size_t i = 0; i < count && merge->settings.is_exact; i++) {
        double value = exact[bsw_ranked_payload(&entries[i])];
        entries[i].score = bsw_exact_score(bsw_metric_key(metric, value));
    }
    count = merge->merge->best_ranked(
        entries, count, k, merge->settings.is_exact ? BSW_RANKED_BY_EXACT : BSW_RANKED_BY_KEY,
        scratch);
    for (size_t i = 0; i < k; i++) {
        ids[i] = i < count ? id_of(merge, entries[i].row) : -1;
        if (i < count)
            values[i] = written_value(merge, &entries[i], terms);
        else
            values[i] = bsw_is_distance(metric) ? INFINITY : -INFINITY;
    }
}

enum bsw_status bsw_merge_survivors(struct bsw_batch_merge *merge,
                                    const struct bsw_buffer *payloads, size_t num_queries,
                                    const struct bsw_value_terms *terms, int64_t *ids,
                                    float *values, struct bsw_error *err)
{
    BSW_TRY(find_parts(merge, payloads, num_queries, PAYLOAD_SURVIVORS, err));
    size_t most = most_items(merge), k = (size_t)merge->settings.k;
    BSW_TRY(reserve_scratch(merge, survivor_scratch(most), err));
    for (size_t q = 0; q < num_queries; q++) merge->num_survivors += count_items(merge, q);
#pragma omp parallel for schedule(dynamic, 16) num_threads(merge->settings.num_threads)
    for (size_t q = 0; q < num_queries; q++) {
        answer_query(merge, q, terms[q], thread_scratch(merge, survivor_scratch(most)), most,
                     ids + place_of(merge, q) * k, values + place_of(merge, q) * k);
    }
    for (size_t i = 0; i < num_queries * k; i++) merge->num_empty += ids[i] < 0;
    return BSW_OK;
}

// ---- ranges ----

void bsw_range_answers_deinit(struct bsw_range_answers *answers)
{
    bsw_buffer_deinit(&answers->lims);
    bsw_buffer_deinit(&answers->ids);
    bsw_buffer_deinit(&answers->values);
}

static int is_within(enum bsw_metric metric, float value, float within)
{
    return bsw_is_distance(metric) ? value <= within : value >= within;
}

// Whether the estimate of a key is within. Scores beyond those of infinite keys are of no key.
static int is_estimate_within(const struct bsw_batch_merge *merge, uint32_t score,
                              struct bsw_value_terms terms, float reach)
{
    const struct bsw_manifest *manifest = merge->manifest;
    float value = bsw_value_of_score(manifest, merge->settings.query_bits, score, terms);
    return is_within(manifest->metric, bounded(manifest->metric, value), reach);
}

// The least score whose estimate is within; values never get worse as scores rise.
static uint32_t least_score(const struct bsw_batch_merge *merge, struct bsw_value_terms terms,
                            float reach)
{
    int is_integer = merge->manifest->codec->table->value != NULL;
    uint32_t low = is_integer ? 0 : bsw_score_from_float(-INFINITY),
             high = is_integer ? UINT32_MAX : bsw_score_from_float(INFINITY);
    if (!is_estimate_within(merge, high, terms, reach)) return UINT32_MAX;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_estimate_within(merge, middle, terms, reach))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void bsw_range_cuts(const struct bsw_batch_merge *merge, const struct bsw_value_terms *terms,
                    size_t num_queries, float reach, struct bsw_cut *cuts)
{
    for (size_t q = 0; q < num_queries; q++)
        cuts[q] = (struct bsw_cut){least_score(merge, terms[q], reach), 0, UINT64_MAX};
}

// A query's rows within, at the front of ids and values, which have room for all its survivors.
// Returns how many; *num_candidates: of how many.
static size_t answer_range(const struct bsw_batch_merge *merge, size_t query,
                           struct bsw_value_terms terms, struct bsw_ranked *entries, size_t most,
                           int64_t *ids, float *values, size_t *num_candidates)
{
    enum bsw_metric metric = merge->manifest->metric;
    struct bsw_ranked *scratch = entries + 2 * most;
    double *exact = (double *)(void *)(scratch + most);
    int is_exact = merge->settings.is_exact;
    size_t count = collect_survivors(merge, query, entries, exact), left = 0;
    *num_candidates = count = drop_own(merge, query, entries, count);
    for (size_t i = 0; i < count && is_exact; i++) {
        double value = exact[bsw_ranked_payload(&entries[i])];
        entries[i].score = bsw_exact_score(bsw_metric_key(metric, value));
    }
    merge->merge->best_ranked(entries, count, count,
                              is_exact ? BSW_RANKED_BY_EXACT : BSW_RANKED_BY_KEY, scratch);
    for (size_t i = 0; i < count; i++) {
        float value = written_value(merge, &entries[i], terms);
        if (!is_within(metric, value, merge->within)) break; // nor are those behind it
        ids[left] = id_of(merge, entries[i].row);
        values[left++] = value;
    }
    return left;
}

// Room for all survivors; lims: where those of each place of the answers begin.
static enum bsw_status reserve_answers(const struct bsw_batch_merge *merge,
                                       struct bsw_range_answers *out, struct bsw_error *err)
{
    size_t num = merge->num_queries;
    BSW_TRY(bsw_buffer_reserve(&out->lims, (num + 1) * sizeof(uint64_t), err));
    uint64_t *lims = (uint64_t *)(void *)out->lims.data;
    for (size_t q = 0; q < num; q++) lims[place_of(merge, q) + 1] = count_items(merge, q);
    lims[0] = 0;
    for (size_t q = 0; q < num; q++) lims[q + 1] += lims[q];
    BSW_TRY(bsw_buffer_reserve(&out->ids, (size_t)lims[num] * sizeof(int64_t) + 1, err));
    return bsw_buffer_reserve(&out->values, (size_t)lims[num] * sizeof(float) + 1, err);
}

// Takes out the room that answers did not need.
static void close_gaps(struct bsw_range_answers *out, size_t num, const uint64_t *counts)
{
    uint64_t *lims = (uint64_t *)(void *)out->lims.data, at = 0;
    int64_t *ids = (int64_t *)(void *)out->ids.data;
    float *values = (float *)(void *)out->values.data;
    for (size_t q = 0; q < num; q++) {
        memmove(ids + at, ids + lims[q], (size_t)counts[q] * sizeof *ids);
        memmove(values + at, values + lims[q], (size_t)counts[q] * sizeof *values);
        lims[q] = at;
        at += counts[q];
    }
    lims[num] = at;
}

static enum bsw_status fail_many(uint64_t query, uint64_t most, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_TOO_LARGE,
                    "query %llu has more than %llu candidates within: give another --within, or a "
                    "larger --max-candidates",
                    (unsigned long long)query, (unsigned long long)most);
}

enum bsw_status bsw_merge_range(struct bsw_batch_merge *merge, const struct bsw_buffer *payloads,
                                size_t num_queries, const struct bsw_value_terms *terms,
                                uint64_t most, uint64_t first_query, struct bsw_range_answers *out,
                                struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
    BSW_TRY(find_parts(merge, payloads, num_queries, PAYLOAD_SURVIVORS, err));
    size_t items = most_items(merge);
    BSW_TRY(reserve_scratch(merge, survivor_scratch(items), err));
    BSW_TRY(reserve_answers(merge, out, err));
    BSW_TRY(bsw_buffer_reserve(&merge->counts, num_queries * sizeof(uint64_t), err));
    uint64_t *counts = (uint64_t *)(void *)merge->counts.data;
    const uint64_t *lims = (const uint64_t *)(const void *)out->lims.data;
    for (size_t q = 0; q < num_queries; q++) merge->num_survivors += count_items(merge, q);
#pragma omp parallel for schedule(dynamic, 16) num_threads(merge->settings.num_threads)
    for (size_t q = 0; q < num_queries; q++) {
        size_t at = place_of(merge, q), candidates;
        struct bsw_error error;
        counts[at] =
            answer_range(merge, q, terms[q], thread_scratch(merge, survivor_scratch(items)), items,
                         (int64_t *)(void *)out->ids.data + lims[at],
                         (float *)(void *)out->values.data + lims[at], &candidates);
        if (candidates > most)
            bsw_first_failure_note(&failure, at, fail_many(first_query + at, most, &error), &error);
    }
    BSW_TRY(bsw_first_failure_report(&failure, err));
    close_gaps(out, num_queries, counts);
    return BSW_OK;
}
