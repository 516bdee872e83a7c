// SPDX-License-Identifier: Apache-2.0
// Rank 0's merging: gather and ladder against a full sort, on lists full of ties between shards;
// payloads that do not parse.
#include "unit_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "coordinator/search/batch_merge.h"
#include "made_assignment.h"
#include "shard/codecs/codec.h"

enum { MAX_SHARDS = 7, MAX_RANKS = 16, MAX_ROWS = 700, MAX_QUERIES = 6, FIRST_ROW = 1000 };

static struct bsw_error err;

#define FIRST_QUERY_ROW (FIRST_ROW + 3) // with exclude_self query q is the row FIRST_QUERY_ROW + q

// ---- a corpus of scores and exact values, in shards of uneven sizes ----

struct entry {
    uint32_t score;
    float value;
    uint64_t row;
    int is_listed; // 0: dropped, or below the limit
};

struct corpus {
    struct bsw_manifest manifest;
    struct bsw_shard_entry shards[MAX_SHARDS];
    struct bsw_search_settings settings;
    int num_ranks;
    size_t num_queries, num_rows;
    struct entry entries[MAX_QUERIES][MAX_ROWS];
};

// ties: how many different scores and values there are.
static void fill_corpus(struct corpus *corpus, uint64_t seed, uint32_t num_shards, uint32_t ties)
{
    memset(corpus, 0, sizeof *corpus);
    corpus->manifest.codec = &bsw_codec_xfbq;
    corpus->manifest.codec_number = 1;
    assert_int_equal(bsw_code_layout_parse("32x3", 32, &corpus->manifest.layout, &err), BSW_OK);
    corpus->manifest.num_shards = num_shards;
    corpus->manifest.shards = corpus->shards;
    corpus->manifest.first_row = FIRST_ROW;
    for (uint32_t s = 0; s < num_shards; s++) {
        corpus->shards[s].first_row = FIRST_ROW + corpus->num_rows;
        corpus->shards[s].num_rows = 1 + bsw_hash2(seed, s) % (s % 3 == 1 ? 3 : MAX_ROWS / 7 - 1);
        corpus->num_rows += (size_t)corpus->shards[s].num_rows;
    }
    corpus->manifest.num_rows = corpus->num_rows;
    corpus->num_queries = 1 + bsw_hash2(seed, 100) % MAX_QUERIES;
    for (size_t q = 0; q < corpus->num_queries; q++) {
        for (size_t r = 0; r < corpus->num_rows; r++) {
            uint64_t random = bsw_hash2(seed + 1000 * (q + 1), r);
            corpus->entries[q][r] =
                (struct entry){.score = bsw_score_from_integer((int32_t)(random % ties) - 2),
                               .value = (float)(int32_t)(random >> 32 & 0xffff) * 0x1p-16f,
                               .row = FIRST_ROW + r,
                               .is_listed = random >> 48 & 15 ? 1 : 0};
            if (ties < 10) corpus->entries[q][r].value = (float)(random >> 32 & 3) - 1.5f;
            if (q % 3 == 2) corpus->entries[q][r].is_listed &= r % 50 == 0; // nearly none is left
        }
    }
}

static void set_settings(struct corpus *corpus, uint64_t k, uint64_t keep, int is_exact,
                         enum bsw_metric metric, int num_ranks)
{
    corpus->manifest.metric = metric;
    corpus->num_ranks = num_ranks;
    corpus->settings = (struct bsw_search_settings){.query_bits = 4,
                                                    .k = k,
                                                    .keep = keep,
                                                    .is_exact = is_exact,
                                                    .level = bsw_cpu_level_detect(),
                                                    .num_threads = 2};
}

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

// Listed rows [first, first + num_rows) of a query in the total order, the best `keep` of them.
static size_t best_entries(const struct corpus *corpus, size_t query, size_t first, size_t num_rows,
                           size_t keep, struct entry *out)
{
    size_t count = 0;
    for (size_t r = first; r < first + num_rows; r++) {
        if (corpus->entries[query][r].is_listed) out[count++] = corpus->entries[query][r];
    }
    if (count > 0) qsort(out, count, sizeof *out, compare_entries);
    return count < keep ? count : keep;
}

static size_t shard_list(const struct corpus *corpus, size_t query, uint32_t shard,
                         struct entry *out)
{
    return best_entries(corpus, query, (size_t)corpus->shards[shard].first_row - FIRST_ROW,
                        (size_t)corpus->shards[shard].num_rows, (size_t)corpus->settings.keep, out);
}

// ---- what ranks would send ----

static void append(struct bsw_buffer *out, const void *data, size_t bytes)
{
    assert_int_equal(bsw_buffer_append(out, data, bytes, &err), BSW_OK);
}

static void append_ranked(struct bsw_buffer *out, const struct entry *entry, uint32_t payload)
{
    const struct bsw_ranked ranked = bsw_ranked_of_key(entry->score, payload, entry->row);
    append(out, &ranked, sizeof ranked);
}

// The list of one query in one shard, as shard_service.h describes it.
static void append_candidates(const struct corpus *corpus, size_t query, uint32_t shard,
                              struct bsw_buffer *out)
{
    struct entry list[MAX_ROWS];
    size_t count = shard_list(corpus, query, shard, list);
    uint64_t listed = count;
    if (!corpus->settings.is_ladder) {
        append(out, &listed, sizeof listed);
        for (size_t i = 0; i < count; i++) append_ranked(out, &list[i], 0);
        return;
    }
    listed = count > 0;
    for (size_t place = 1; place < count; place *= 2) listed++;
    append(out, &listed, sizeof listed);
    for (size_t place = 1; place < count; place *= 2)
        append_ranked(out, &list[place - 1], (uint32_t)place);
    if (count > 0) append_ranked(out, &list[count - 1], (uint32_t)count);
}

static int compare_rows(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

// The part of a list that a cut leaves, by ascending rows.
static size_t survivors_of(const struct corpus *corpus, size_t query, uint32_t shard,
                           const struct bsw_cut *cut, struct entry *out)
{
    struct entry list[MAX_ROWS];
    size_t count = shard_list(corpus, query, shard, list), left = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].score > cut->score || (list[i].score == cut->score && list[i].row <= cut->row))
            out[left++] = list[i];
    }
    if (left > 0) qsort(out, left, sizeof *out, compare_rows);
    return left;
}

static void append_survivors(const struct corpus *corpus, size_t first, size_t last, uint32_t shard,
                             const struct bsw_cut *cuts, struct bsw_buffer *out)
{
    struct entry list[MAX_ROWS];
    for (size_t q = first; q < last; q++) {
        uint64_t count = survivors_of(corpus, q, shard, &cuts[q], list);
        append(out, &count, sizeof count);
    }
    for (size_t q = first; q < last; q++) {
        size_t count = survivors_of(corpus, q, shard, &cuts[q], list);
        for (size_t i = 0; i < count; i++) {
            const struct bsw_survivor survivor = {
                .value = corpus->settings.is_exact ? list[i].value : 0,
                .score = list[i].score,
                .row = (uint32_t)(list[i].row - corpus->shards[shard].first_row)};
            append(out, &survivor, sizeof survivor);
        }
    }
}

// Payloads of all ranks: candidates without cuts, survivors with. An idle rank's has no data.
static void make_payloads(const struct corpus *corpus, const struct bsw_cut *cuts,
                          struct bsw_buffer *payloads)
{
    const struct bsw_assignment *table =
        made_assignment((uint32_t)corpus->num_ranks, corpus->manifest.num_shards);
    for (uint32_t slice = 0; slice < table->num_slices; slice++) {
        for (uint32_t shard = 0; shard < table->num_shards; shard++) {
            struct bsw_buffer *out = &payloads[bsw_assignment_rank(table, slice, shard)];
            size_t first, last;
            bsw_assignment_queries(table, slice, corpus->num_queries, &first, &last);
            if (cuts) {
                append_survivors(corpus, first, last, shard, cuts, out);
                continue;
            }
            for (size_t q = first; q < last; q++) append_candidates(corpus, q, shard, out);
        }
    }
}

static void free_payloads(struct bsw_buffer *payloads)
{
    for (int rank = 0; rank < MAX_RANKS; rank++) bsw_buffer_deinit(&payloads[rank]);
}

// ---- the answer ----

struct answer {
    int64_t ids[MAX_QUERIES * MAX_ROWS];
    float values[MAX_QUERIES * MAX_ROWS];
    struct bsw_cut cuts[MAX_QUERIES];
    uint64_t survivors;
};

enum kind { CANDIDATES, SURVIVORS };

static enum bsw_status merge_kind(const struct corpus *corpus, enum kind kind,
                                  const struct bsw_buffer *payloads, struct answer *answer)
{
    const struct bsw_value_terms terms[MAX_QUERIES] = {{0, 0}};
    const struct bsw_scan_round round = bsw_last_round(&corpus->settings, NULL);
    struct bsw_batch_merge merge;
    enum bsw_status status;
    err.message[0] = '\0';
    bsw_batch_merge_init(&merge, &corpus->manifest, &corpus->settings,
                         made_assignment((uint32_t)corpus->num_ranks, corpus->manifest.num_shards));
    merge.first_query_row = FIRST_QUERY_ROW;
    if (kind == CANDIDATES)
        status =
            bsw_merge_candidates(&merge, payloads, corpus->num_queries, &round, answer->cuts, &err);
    else
        status = bsw_merge_survivors(&merge, payloads, corpus->num_queries, terms, answer->ids,
                                     answer->values, &err);
    answer->survivors = merge.num_survivors;
    bsw_batch_merge_deinit(&merge);
    return status;
}

static void merge_all(struct corpus *corpus, int is_ladder, struct answer *answer)
{
    struct bsw_buffer candidates[MAX_RANKS] = {{0}}, survivors[MAX_RANKS] = {{0}};
    corpus->settings.is_ladder = is_ladder;
    make_payloads(corpus, NULL, candidates);
    assert_ok(merge_kind(corpus, CANDIDATES, candidates, answer), &err);
    make_payloads(corpus, answer->cuts, survivors);
    assert_ok(merge_kind(corpus, SURVIVORS, survivors, answer), &err);
    free_payloads(candidates);
    free_payloads(survivors);
}

static enum bsw_metric sorted_metric;

static int compare_values(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    float left = bsw_metric_key(sorted_metric, x->value);
    float right = bsw_metric_key(sorted_metric, y->value);
    if (left != right) return left < right ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

static uint64_t num_left_out;

// The best keep by (score, row); with exclude_self the best keep - 1 of the others.
static size_t list_candidates(const struct corpus *corpus, size_t query, struct entry *out)
{
    size_t keep = (size_t)corpus->settings.keep, left = 0;
    if (!corpus->settings.exclude_self)
        return best_entries(corpus, query, 0, corpus->num_rows, keep, out);
    size_t count = best_entries(corpus, query, 0, corpus->num_rows, corpus->num_rows, out);
    for (size_t i = 0; i < count; i++) {
        if (out[i].row != FIRST_QUERY_ROW + query) out[left++] = out[i];
    }
    num_left_out += count - left;
    return left < keep - 1 ? left : keep - 1;
}

// list_candidates, of those the best k by (value, row).
static void check_answer(const struct corpus *corpus, size_t query, const struct answer *answer)
{
    struct entry all[MAX_ROWS];
    size_t k = (size_t)corpus->settings.k;
    size_t count = list_candidates(corpus, query, all);
    sorted_metric = corpus->manifest.metric;
    if (corpus->settings.is_exact && count > 0) qsort(all, count, sizeof *all, compare_values);
    for (size_t i = 0; i < k; i++) {
        int64_t id = answer->ids[query * k + i];
        float value = answer->values[query * k + i];
        if (i >= count) {
            assert_true(id == -1 && isinf(value));
            assert_int_equal(value > 0, sorted_metric == BSW_METRIC_L2);
        } else {
            float expected = all[i].value; // without refinement: dot * 2^-(3 + 4), bounded
            if (!corpus->settings.is_exact) {
                expected = (float)bsw_score_to_integer(all[i].score) * 0x1p-7f;
                if (sorted_metric == BSW_METRIC_L2) expected = fmaxf(expected, 0.0f);
                if (sorted_metric == BSW_METRIC_COSINE)
                    expected = fminf(fmaxf(expected, -1.0f), 1.0f);
            }
            assert_true(id == (int64_t)all[i].row && value == expected);
        }
    }
}

// Survivors of a query under a cut, of all shards.
static size_t count_survivors(const struct corpus *corpus, size_t query, const struct bsw_cut *cut)
{
    struct entry list[MAX_ROWS];
    size_t count = 0;
    for (uint32_t s = 0; s < corpus->manifest.num_shards; s++)
        count += survivors_of(corpus, query, s, cut, list);
    return count;
}

static uint64_t num_cut_at_a_tie;

static void check_merges(struct corpus *corpus)
{
    static struct answer gathered, laddered;
    size_t keep = (size_t)corpus->settings.keep, k = (size_t)corpus->settings.k;
    uint64_t sums[2] = {0};
    merge_all(corpus, 0, &gathered);
    merge_all(corpus, 1, &laddered);
    for (size_t q = 0; q < corpus->num_queries; q++) {
        struct entry all[MAX_ROWS];
        size_t count = best_entries(corpus, q, 0, corpus->num_rows, SIZE_MAX, all);
        size_t exactly = count_survivors(corpus, q, &gathered.cuts[q]);
        size_t at_least = count_survivors(corpus, q, &laddered.cuts[q]);
        assert_int_equal(exactly, count < keep ? count : keep);
        assert_true(at_least >= exactly && at_least < 2 * keep);
        num_cut_at_a_tie += keep < count && all[keep - 1].score == all[keep].score;
        sums[0] += exactly;
        sums[1] += at_least;
        check_answer(corpus, q, &gathered);
    }
    assert_memory_equal(gathered.ids, laddered.ids, corpus->num_queries * k * sizeof(int64_t));
    assert_memory_equal(gathered.values, laddered.values, corpus->num_queries * k * sizeof(float));
    assert_true(gathered.survivors == sums[0] && laddered.survivors == sums[1]);
}

// On as many ranks as shards at most, and on more: slices of the queries, ranks without work,
// slices without a query.
UNIT_TEST(gather_and_ladder_give_the_answer_of_a_full_sort)
{
    static struct corpus corpus;
    static const uint32_t all_ties[] = {1, 2, 5, 40, 1000000};
    int num_idle = 0, num_empty = 0;
    num_cut_at_a_tie = num_left_out = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        uint32_t num_shards = 1 + (uint32_t)(seed % MAX_SHARDS);
        fill_corpus(&corpus, seed, num_shards, all_ties[seed % 5]);
        for (uint64_t trial = 0; trial < 6; trial++) {
            uint64_t random = bsw_hash2(seed, 1000 + trial);
            const uint64_t keeps[] = {1, 2, 3, 1 + random % 60, corpus.num_rows, MAX_ROWS};
            uint64_t k = 1 + (random >> 16) % keeps[trial];
            set_settings(&corpus, k, keeps[trial], (int)(random >> 40 & 1),
                         (random >> 41 & 1) && (random >> 40 & 1) ? BSW_METRIC_L2
                                                                  : BSW_METRIC_COSINE,
                         1 + (int)((random >> 8) % (trial % 2 ? MAX_RANKS : num_shards)));
            size_t num_ranks = (size_t)corpus.num_ranks;
            num_idle += num_ranks > num_shards && num_ranks % num_shards > 0;
            num_empty += num_ranks / num_shards > corpus.num_queries;
            corpus.settings.exclude_self = random >> 42 & 1;
            corpus.settings.keep += corpus.settings.exclude_self;
            check_merges(&corpus);
        }
    }
    assert_true(num_cut_at_a_tie > 1000 && num_left_out > 1000);
    assert_true(num_idle > 100 && num_empty > 100);
}

// ---- payloads that do not parse ----

static struct answer unused;

static void assert_refused(const struct corpus *corpus, enum kind kind,
                           const struct bsw_buffer *payloads, int rank)
{
    char clause[32];
    snprintf(clause, sizeof clause, "rank %d sent", rank);
    assert_int_equal(merge_kind(corpus, kind, payloads, &unused), BSW_ERROR_PEER);
    if (!strstr(err.message, clause)) fail_msg("'%s' lacks '%s'", err.message, clause);
}

// Good payloads of a kind; *counts lists the offsets of what says how much follows in rank 1's.
static size_t make_kind(struct corpus *corpus, enum kind kind, struct bsw_buffer *payloads,
                        size_t *counts)
{
    size_t num_counts = 0, at = 0;
    if (kind == SURVIVORS) {
        struct bsw_cut cuts[MAX_QUERIES];
        for (size_t q = 0; q < MAX_QUERIES; q++) cuts[q] = (struct bsw_cut){0, 0, UINT64_MAX};
        make_payloads(corpus, cuts, payloads);
        for (size_t q = 0; q < corpus->num_queries; q++) counts[num_counts++] = 8 * q;
        return num_counts;
    }
    make_payloads(corpus, NULL, payloads);
    while (at < payloads[1].bytes) {
        uint64_t count = 0;
        memcpy(&count, payloads[1].data + at, sizeof count);
        counts[num_counts++] = at;
        at += 8 + (size_t)count * sizeof(struct bsw_ranked);
    }
    return num_counts;
}

// Every length but the right one. The copy is as long as it says, so that a sanitizer sees beyond.
static void check_lengths(const struct corpus *corpus, enum kind kind, struct bsw_buffer *payloads)
{
    const struct bsw_buffer good = payloads[1];
    for (size_t bytes = 0; bytes < good.bytes + 40; bytes++) {
        unsigned char *copy = malloc(bytes ? bytes : 1);
        if (!copy) abort();
        memset(copy, 0, bytes);
        memcpy(copy, good.data, bytes < good.bytes ? bytes : good.bytes);
        payloads[1] = (struct bsw_buffer){copy, bytes, bytes};
        if (bytes == good.bytes)
            assert_int_equal(merge_kind(corpus, kind, payloads, &unused), BSW_OK);
        else
            assert_refused(corpus, kind, payloads, 1);
        free(copy);
    }
    payloads[1] = good;
}

static void check_counts(const struct corpus *corpus, enum kind kind, struct bsw_buffer *payloads,
                         const size_t *counts, size_t num_counts)
{
    static const uint64_t lies[] = {UINT64_MAX,          (uint64_t)1 << 63, (uint64_t)1 << 60,
                                    UINT64_MAX / 16 + 1, 0xffffffff,        1000000};
    size_t bytes = sizeof(uint64_t);
    for (size_t i = 0; i < num_counts; i++) {
        unsigned char *field = payloads[1].data + counts[i];
        uint64_t truth = 0;
        memcpy(&truth, field, bytes);
        // One less or more somewhere may by luck read as other lists; at the end it never does.
        for (size_t l = 0; l < (i + 1 == num_counts ? 8 : 6); l++) {
            uint64_t lie = l < 6 ? lies[l] : l == 6 ? truth + 1 : truth - 1;
            memcpy(field, &lie, bytes); // little-endian
            assert_refused(corpus, kind, payloads, 1);
        }
        memcpy(field, &truth, bytes);
    }
    assert_int_equal(merge_kind(corpus, kind, payloads, &unused), BSW_OK);
}

UNIT_TEST(payloads_that_do_not_parse_are_refused)
{
    static struct corpus corpus;
    size_t counts[MAX_QUERIES];
    for (int kind = CANDIDATES; kind <= SURVIVORS; kind++) {
        for (uint64_t seed = 20; seed < 24; seed++) {
            struct bsw_buffer payloads[MAX_RANKS] = {{0}};
            fill_corpus(&corpus, seed, 3, 5);
            set_settings(&corpus, 5, 20, 1, BSW_METRIC_IP, 3);
            corpus.settings.is_ladder = (int)(seed % 2);
            size_t num_counts = make_kind(&corpus, (enum kind)kind, payloads, counts);
            assert_int_equal(num_counts, corpus.num_queries);
            check_lengths(&corpus, (enum kind)kind, payloads);
            check_counts(&corpus, (enum kind)kind, payloads, counts, num_counts);
            payloads[2].bytes--; // the rank is named
            assert_refused(&corpus, (enum kind)kind, payloads, 2);
            payloads[2].bytes++;
            free_payloads(payloads);
        }
    }
}

// A rank that has no work may not send anything.
UNIT_TEST(an_idle_rank_that_answers_is_refused)
{
    static struct corpus corpus;
    struct bsw_buffer payloads[MAX_RANKS] = {{0}};
    const uint64_t nothing = 0;
    fill_corpus(&corpus, 1, 3, 5);
    set_settings(&corpus, 5, 20, 1, BSW_METRIC_IP, 5);
    make_payloads(&corpus, NULL, payloads);
    assert_int_equal(merge_kind(&corpus, CANDIDATES, payloads, &unused), BSW_OK);
    append(&payloads[4], &nothing, sizeof nothing);
    assert_refused(&corpus, CANDIDATES, payloads, 4);
    free_payloads(payloads);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
