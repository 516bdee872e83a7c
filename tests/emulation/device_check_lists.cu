// SPDX-License-Identifier: Apache-2.0
// cut, limit and sort against select's keep_best and a sort on the CPU, of candidates and of exact
// scores.
#include <algorithm>
#include <cstdio>
#include <functional>

#include "common/codes/result_order.h"
#include "device_check.hpp"
#include "kernels/device_exact/device_exact.h"
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
                 0};
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
