// SPDX-License-Identifier: Apache-2.0
// cut, limit, ranks, the last step and sort against select's keep_best and a sort on the CPU, of
// candidates and of exact scores.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "common/codes/metric.h"
#include "device_check.hpp"
#include "kernels/device_exact/device_exact.h"
#include "kernels/gpu_select/gpu_select.h"
#include "kernels/select/select.h"

namespace
{

enum item_shape { RANDOM_ITEMS, TIED_ITEMS, ASCENDING, DESCENDING, BEST_SCORE, NUM_ITEM_SHAPES };

// The i'th of n; all of a list differ in their rows.
uint64_t make_item(item_shape shape, uint64_t stream, uint32_t i, uint32_t n)
{
    const uint32_t random = static_cast<uint32_t>(check_random(stream, i));
    switch (shape) {
    case TIED_ITEMS: // two scores, next to each other
        return bsw_candidate_pack(0x80001000u + random % 2, i);
    case ASCENDING:
        return bsw_candidate_pack(5 + i, i);
    case DESCENDING:
        return bsw_candidate_pack(5 + n - i, i);
    case BEST_SCORE:
        return bsw_candidate_pack(UINT32_MAX, i);
    default:
        return bsw_candidate_pack(random, i);
    }
}

struct list_case {
    uint32_t capacity;
    std::vector<uint32_t> counts;
    item_shape shape;
    uint64_t stream;
    std::vector<uint64_t> items; // [queries][capacity]
};

// What lies behind a list's items: better than all of them.
constexpr uint64_t behind = UINT64_MAX;

list_case make_lists(uint32_t capacity, const std::vector<uint32_t> &counts, item_shape shape,
                     uint64_t stream)
{
    list_case c = {capacity, counts, shape, stream, {}};
    for (size_t q = 0; q < counts.size(); q++) {
        for (uint32_t i = 0; i < capacity; i++) {
            c.items.push_back(i < counts[q] ? make_item(shape, stream + q, i, counts[q]) : behind);
        }
    }
    return c;
}

std::string describe(const list_case &c, const char *kernel)
{
    char text[200];
    snprintf(text, sizeof text, "%s of lists of %u, items %d, stream %llu", kernel, c.capacity,
             c.shape, static_cast<unsigned long long>(c.stream));
    return text;
}

std::vector<uint64_t> sorted(const uint64_t *items, size_t count)
{
    std::vector<uint64_t> out(items, items + count);
    std::sort(out.begin(), out.end(), std::greater<uint64_t>());
    return out;
}

constexpr uint32_t old_limit = 4; // of all lists, which every item reaches

// What keep_best leaves of a list.
std::vector<uint64_t> best_of(const list_case &c, size_t query, uint32_t keep)
{
    const auto begin = c.items.begin() + static_cast<long>(query * c.capacity);
    std::vector<uint64_t> own(begin, begin + c.capacity), scratch(c.capacity);
    size_t kept = bsw_select_reference.keep_best(own.data(), c.counts[query], keep, scratch.data());
    return sorted(own.data(), kept);
}

// A case in device memory.
struct lists_on_device {
    device_array<uint64_t> items;
    device_array<uint32_t> counts, limits, overflowed;
    bsw_device_lists lists;

    explicit lists_on_device(const list_case &c)
        : items(c.items), counts(c.counts),
          limits(std::vector<uint32_t>(c.counts.size(), old_limit)),
          overflowed(std::vector<uint32_t>(1, 0))
    {
        lists = {static_cast<uint32_t>(c.counts.size()),
                 c.capacity,
                 items.get(),
                 counts.get(),
                 limits.get(),
                 {},
                 overflowed.get(),
                 0,
                 nullptr,
                 nullptr};
    }
};

void check_lists(const list_case &c, uint32_t keep, bool is_cut, bool is_unordered = false)
{
    lists_on_device device(c);
    const std::string shape = describe(c, is_unordered ? "unordered cut"
                                          : is_cut     ? "cut"
                                                       : "limit");
    device.lists.is_unordered = is_unordered;
    const int code = is_cut ? bsw_device_cut(&device.lists, keep, nullptr)
                            : bsw_device_limit(&device.lists, keep, nullptr);
    if (!check_launch(code, shape)) return;
    const std::vector<uint64_t> got = device.items.values();
    const std::vector<uint32_t> counts = device.counts.values(), limits = device.limits.values();
    check_that(device.overflowed.values()[0] == 0, "%s: no list overflows", shape.c_str());
    for (uint32_t q = 0; q < c.counts.size(); q++) {
        const std::vector<uint64_t> best = best_of(c, q, keep);
        uint32_t limit = best.size() == keep ? bsw_candidate_score(best.back()) : old_limit;
        if (is_cut && !is_unordered && best.size() == keep && limit < UINT32_MAX) limit++;
        const size_t kept = is_cut ? best.size() : 0;
        const uint64_t *own = got.data() + static_cast<size_t>(q) * c.capacity;
        check_that(counts[q] == kept && limits[q] == limit &&
                       (!is_cut || sorted(own, kept) == best),
                   "%s to %u: query %u of %u items: count %u, limit %u, expected %zu, %u",
                   shape.c_str(), keep, q, c.counts[q], counts[q], limits[q], kept, limit);
    }
}

// One list's count has passed the capacity: that is told, and all are cut as if they were full.
void check_overflow(const list_case &c, uint32_t keep)
{
    list_case over = c;
    over.counts.back() = c.capacity + 5;
    const lists_on_device device(over);
    const std::string shape = describe(c, "overflow");
    if (!check_launch(bsw_device_cut(&device.lists, keep, nullptr), shape)) return;
    check_that(device.overflowed.values()[0] == 1 && device.counts.values().back() == keep,
               "%s to %u: not told, or not cut", shape.c_str(), keep);
}

void check_sort(const list_case &c)
{
    const lists_on_device device(c);
    const uint32_t num_queries = device.lists.num_queries;
    const std::string shape = describe(c, "sort");
    const size_t bytes = bsw_device_sort_bytes(num_queries, c.capacity);
    check_that(bytes > 0, "%s: no bytes", shape.c_str());
    device_array<unsigned char> scratch(bytes);
    if (!check_launch(bsw_device_sort(&device.lists, scratch.get(), nullptr), shape)) return;
    std::vector<uint64_t> got = device.items.values();
    for (uint32_t q = 0; q < num_queries; q++) {
        const uint64_t *own = c.items.data() + static_cast<size_t>(q) * c.capacity;
        const uint32_t stored = std::min(c.counts[q], c.capacity);
        std::vector<uint64_t> expected = sorted(own, stored);
        expected.insert(expected.end(), own + stored, own + c.capacity);
        check_that(std::equal(expected.begin(), expected.end(),
                              got.data() + static_cast<size_t>(q) * c.capacity),
                   "%s: query %u of %u items", shape.c_str(), q, c.counts[q]);
    }
}

// ---- ranks and the last step ----

// Rows `apart` from each other: 1: neighbours, 32: a bundle each.
void spread_rows(uint32_t apart, list_case &c)
{
    for (uint64_t &item : c.items)
        if (item != behind)
            item = bsw_candidate_pack(bsw_candidate_score(item), bsw_candidate_row(item) * apart);
}

// The score of the rank-th best bundle among so many items; `without` where it is not known.
uint32_t rank_limit(const uint64_t *items, size_t count, uint32_t rank, uint32_t without)
{
    std::map<uint32_t, uint32_t> best;
    for (size_t i = 0; i < count; i++) {
        uint32_t &score = best[bsw_candidate_row(items[i]) / 32];
        score = std::max(score, bsw_candidate_score(items[i]));
    }
    if (best.size() < rank || best.size() > BSW_MOST_RANK_BUNDLES) return without;
    std::vector<uint32_t> scores;
    for (const auto &bundle : best) scores.push_back(bundle.second);
    std::sort(scores.begin(), scores.end(), std::greater<uint32_t>());
    return scores[rank - 1];
}

// Lists with all that the host is told.
struct told_lists : lists_on_device {
    device_array<uint32_t> raised;
    device_array<uint64_t> hits;

    explicit told_lists(const list_case &c)
        : lists_on_device(c), raised(std::vector<uint32_t>(c.counts.size(), 0)),
          hits(std::vector<uint64_t>(1, 3))
    {
        lists.raised = raised.get();
        lists.hits = hits.get();
    }
};

uint64_t sum_of(const std::vector<uint32_t> &counts)
{
    uint64_t sum = 0;
    for (uint32_t count : counts) sum += count;
    return sum;
}

void check_rank(const list_case &c, const bsw_device_rank &rank)
{
    const told_lists device(c);
    const std::string shape = describe(c, "rank");
    if (!check_launch(bsw_device_rank_limit(&device.lists, &rank, nullptr), shape)) return;
    const std::vector<uint32_t> limits = device.limits.values(), raised = device.raised.values();
    check_that(device.hits.values()[0] == 3 + (rank.is_first ? 0 : sum_of(c.counts)), "%s: hits",
               shape.c_str());
    check_that(device.items.values() == c.items && sum_of(device.counts.values()) == 0,
               "%s: lists are empty, and whole", shape.c_str());
    for (uint32_t q = 0; q < c.counts.size(); q++) {
        const uint64_t *own = c.items.data() + static_cast<size_t>(q) * c.capacity;
        const uint32_t stored = std::min(c.counts[q], c.capacity);
        const uint32_t limit = rank_limit(own, stored, rank.rank, old_limit);
        check_that(limits[q] == limit && raised[q] == (limit != old_limit && !rank.is_sure),
                   "%s %u: query %u of %u items: limit %u, raised %u, expected %u", shape.c_str(),
                   rank.rank, q, c.counts[q], limits[q], raised[q], limit);
    }
}

// is_raised: limits by rank, of which the host must hear where fewer than `keep` items reach them.
void check_last_step(const list_case &c, uint32_t keep, bool is_raised)
{
    told_lists device(c);
    const std::string shape = describe(c, "last step");
    const size_t num_queries = c.counts.size();
    device_array<uint64_t> answers(std::vector<uint64_t>(num_queries * keep, behind));
    device.raised.put(std::vector<uint32_t>(num_queries, is_raised));
    if (!check_launch(bsw_device_last(&device.lists, keep, answers.get(), nullptr), shape)) return;
    const std::vector<uint64_t> items = device.items.values(), got = answers.values();
    const std::vector<uint32_t> counts = device.counts.values();
    uint32_t told = 0;
    for (size_t q = 0; q < num_queries; q++) {
        const auto own = items.begin() + static_cast<long>(q * c.capacity);
        const auto answer = got.begin() + static_cast<long>(q * keep);
        const uint32_t stored = std::min(c.counts[q], c.capacity);
        std::vector<uint64_t> best = sorted(c.items.data() + q * c.capacity, stored);
        if (best.size() > keep) best.resize(keep);
        told |= (c.counts[q] > c.capacity ? BSW_LISTS_OVERFLOWED : 0) |
                (is_raised && c.counts[q] < keep ? BSW_LISTS_SHORT : 0);
        check_that(counts[q] == best.size() && std::equal(best.begin(), best.end(), own) &&
                       std::equal(best.begin(), best.end(), answer) &&
                       std::all_of(answer + static_cast<long>(best.size()),
                                   answer + static_cast<long>(keep),
                                   [](uint64_t item) { return item == behind; }),
                   "%s to %u: query %zu of %u items", shape.c_str(), keep, q, c.counts[q]);
    }
    check_that(
        device.overflowed.values()[0] == told && device.hits.values()[0] == 3 + sum_of(c.counts),
        "%s to %u: told %u, expected %u", shape.c_str(), keep, device.overflowed.values()[0], told);
}

// ---- exact scores ----

// A list of the same shape: scores that tie or differ in their last bits too, rows in no order.
std::vector<exact_item> exact_items(const list_case &c)
{
    std::vector<exact_item> out;
    for (size_t i = 0; i < c.items.size(); i++) {
        const uint64_t score = static_cast<uint64_t>(bsw_candidate_score(c.items[i])) << 32;
        const uint64_t low = c.shape == BEST_SCORE ? 0 : check_random(c.stream, i) % 3;
        out.push_back({score + low, bsw_candidate_row(c.items[i]) * 2654435761u});
    }
    return out;
}

std::vector<exact_item> best_exact(const std::vector<exact_item> &items, const list_case &c,
                                   size_t query, uint32_t keep)
{
    const auto begin = items.begin() + static_cast<long>(query * c.capacity);
    std::vector<exact_item> own(begin, begin + static_cast<long>(c.counts[query]));
    std::sort(own.begin(), own.end(), std::greater<exact_item>());
    if (own.size() > keep) own.resize(keep);
    return own;
}

void check_exact_lists(const list_case &c, uint32_t keep, bool is_cut)
{
    const uint32_t num_queries = static_cast<uint32_t>(c.counts.size());
    const std::vector<exact_item> items = exact_items(c);
    std::vector<uint64_t> all_scores;
    std::vector<uint32_t> all_rows;
    for (const exact_item &item : items) {
        all_scores.push_back(item.score);
        all_rows.push_back(item.row);
    }
    device_array<uint64_t> scores(all_scores),
        limits(std::vector<uint64_t>(num_queries, old_limit));
    device_array<uint32_t> rows(all_rows), counts(c.counts);
    const bsw_device_exact_lists lists = {num_queries, c.capacity,   scores.get(),
                                          rows.get(),  counts.get(), limits.get()};
    const std::string shape = describe(c, is_cut ? "exact cut" : "exact limit");
    const int code = is_cut ? bsw_device_exact_cut(&lists, keep, nullptr)
                            : bsw_device_exact_limit(&lists, keep, nullptr);
    if (!check_launch(code, shape)) return;
    const std::vector<uint64_t> got_scores = scores.values(), got_limits = limits.values();
    const std::vector<uint32_t> got_rows = rows.values(), got_counts = counts.values();
    for (uint32_t q = 0; q < num_queries; q++) {
        const std::vector<exact_item> best = best_exact(items, c, q, keep);
        uint64_t limit = old_limit;
        if (best.size() == keep) limit = best.back().score + is_cut;
        std::vector<exact_item> got;
        for (size_t i = 0; is_cut && i < best.size(); i++) {
            const size_t at = static_cast<size_t>(q) * c.capacity + i;
            got.push_back({got_scores[at], got_rows[at]});
        }
        std::sort(got.begin(), got.end(), std::greater<exact_item>());
        check_that(got_counts[q] == (is_cut ? best.size() : 0) && got_limits[q] == limit &&
                       (!is_cut || got == best),
                   "%s to %u: query %u of %u items: count %u", shape.c_str(), keep, q, c.counts[q],
                   got_counts[q]);
    }
}

} // namespace

static void check_selection(const list_case &c, uint32_t keep)
{
    for (bool is_cut : {true, false}) {
        check_lists(c, keep, is_cut);
        check_exact_lists(c, keep, is_cut);
    }
    check_lists(c, keep, true, true);
}

void check_cuts()
{
    uint64_t stream = 0;
    for (int shape = 0; shape < NUM_ITEM_SHAPES; shape++) {
        const item_shape s = static_cast<item_shape>(shape);
        check_selection(make_lists(1, {1, 0}, s, stream++), 1);
        check_selection(make_lists(40, {0, 1, 9, 10, 11, 40}, s, stream++), 10);
        check_selection(make_lists(1500, {99, 100, 101, 511, 512, 513, 1025, 1500}, s, stream++),
                        100);
        check_overflow(make_lists(40, {0, 10, 40}, s, stream++), 10);
        check_overflow(make_lists(1500, {1500}, s, stream++), 1);
        check_selection(make_lists(1500, {1500, 1499}, s, stream++), 1);
        check_selection(make_lists(1500, {1500, 1499}, s, stream++), 1500);
        if (!checks.small) // more than a thread asks for at once
            check_selection(make_lists(20000, {20000, 19999, 600}, s, stream++), 5000);
    }
}

void check_ranks()
{
    uint64_t stream = 200;
    for (int shape = 0; shape < NUM_ITEM_SHAPES; shape++) {
        for (uint32_t apart : {1u, 7u, 32u}) {
            list_case c = make_lists(1500, {0, 1, 31, 33, 640, 1499, 1500, 1510},
                                     static_cast<item_shape>(shape), stream++);
            spread_rows(apart, c);
            for (uint32_t rank : {1u, 2u, 20u, 47u}) {
                check_rank(c, {rank, 0, 0});
                check_rank(c, {rank, 1, 1});
            }
        }
    }
    list_case many = make_lists(5000, {3071, 3072, 3073, 5000}, RANDOM_ITEMS, stream++);
    spread_rows(32, many); // as many bundles as there is room for, and more
    check_rank(many, {100, 0, 0});
}

void check_last_steps()
{
    uint64_t stream = 300;
    for (int shape = 0; shape < NUM_ITEM_SHAPES; shape++) {
        const item_shape s = static_cast<item_shape>(shape);
        check_last_step(make_lists(1, {1, 0}, s, stream++), 1, true);
        check_last_step(make_lists(40, {0, 1, 2, 9, 10, 11, 40, 45}, s, stream++), 10, shape % 2);
        check_last_step(make_lists(1100, {511, 512, 513, 1100}, s, stream++), 513, true);
        check_last_step(make_lists(1100, {1100, 600}, s, stream++), 600, true); // nothing to tell
    }
    const uint32_t most = BSW_MOST_LAST_KEEP;
    check_last_step(make_lists(5000, {most - 1, most, most + 1, 5000}, TIED_ITEMS, 400), 100, true);
    if (!checks.small)
        check_last_step(make_lists(5000, {5000, most}, RANDOM_ITEMS, 401), most, true);
}

void check_sorts()
{
    uint64_t stream = 100;
    for (int shape = 0; shape < NUM_ITEM_SHAPES; shape++) {
        const item_shape s = static_cast<item_shape>(shape);
        check_sort(make_lists(1, {1, 0, 1}, s, stream++));
        check_sort(make_lists(33, {0, 1, 2, 31, 33, 40}, s, stream++)); // 40: an overflow
        check_sort(make_lists(700, {700, 0, 699}, s, stream++));
    }
}
