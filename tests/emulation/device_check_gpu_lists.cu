// SPDX-License-Identifier: Apache-2.0
// gpu_lists against plain C: which lists queries look at, as choose_found and add_products of
// shard/lists/coarse_search.c have it, and what items of device_list_table.c say, in any order.
#include <algorithm>
#include <cmath>
#include <functional>

#include "common/codes/metric.h"
#include "device_check.hpp"
#include "kernels/gpu_lists/gpu_lists.h"
#include "kernels/kernel_sums.h"

namespace
{

constexpr float least_key = -3.4e38f;

struct choice_case {
    uint32_t num_queries, num_lists, probe, most, capacity, keep, rank, dims, turn;
    bool is_l2, has_additions;
    float ratio;
    uint32_t ends[BSW_LIST_STEPS];
    uint64_t stream() const
    {
        return 9000 + 20 * static_cast<uint64_t>(turn);
    }
    uint64_t random(uint64_t stream_of, uint64_t i) const
    {
        return check_random(stream() + stream_of, i);
    }
};

// Lists as they were found, in order, and what is expected of them.
struct choice_data {
    std::vector<uint64_t> items;
    std::vector<uint32_t> stored, found; // found: those that are kept
    std::vector<float> norms, vectors, centroids;
    std::vector<std::vector<uint32_t>> lists; // of each query
    std::vector<std::vector<float>> additions;
    bool is_told = true;
};

float make_key(const choice_case &c, uint32_t q, uint32_t i)
{
    const uint64_t r = c.random(1, q * 1000 + i);
    if (c.turn % 4 == 3 && r % 16 == 0) return r % 32 ? -INFINITY : -3.402e38f; // what has no key
    const float step = c.turn % 3 == 0 ? 0.25f : 0.0009f; // keys that tie, and others
    return (static_cast<float>(r % 1000) - 1000.0f) * step;
}

void fill_items(const choice_case &c, choice_data &data)
{
    for (uint32_t q = 0; q < c.num_queries; q++) {
        std::vector<uint64_t> own;
        for (uint32_t l = 0; l < c.num_lists; l++)
            own.push_back(bsw_candidate_pack(bsw_score_from_float(make_key(c, q, l) + 0.0f), l));
        std::sort(own.begin(), own.end(), std::greater<uint64_t>());
        own.resize(std::min(c.num_lists, c.capacity));
        data.stored.push_back(static_cast<uint32_t>(own.size()));
        data.found.push_back(c.keep);
        own.resize(c.capacity, UINT64_MAX); // better than all that count
        data.items.insert(data.items.end(), own.begin(), own.end());
        data.norms.push_back(static_cast<float>(c.random(2, q) % 1000) * 0.37f);
    }
}

void fill_numbers(const choice_case &c, choice_data &data)
{
    for (uint64_t i = 0; i < static_cast<uint64_t>(c.num_queries) * c.dims; i++)
        data.vectors.push_back(static_cast<float>(c.random(3, i) % 20001) * 1e-4f - 1.0f);
    for (uint64_t i = 0; i < static_cast<uint64_t>(c.num_lists) * c.dims; i++)
        data.centroids.push_back(static_cast<float>(c.random(4, i) % 20001) * 3e-3f - 30.0f);
}

float limit_of(const choice_case &c, float norm, float yardstick, float nearest)
{
    if (c.ratio == 0.0f) return least_key;
    const float distance = c.is_l2 ? norm - yardstick : 2.0f - 2.0f * yardstick;
    const float most = c.ratio * (distance > 0 ? distance : 0);
    return fminf((c.is_l2 ? norm - most : 1.0f - 0.5f * most) + 0.0f, nearest);
}

// How many of a query's lists count; 0: they do not tell.
uint32_t count_lists(const choice_case &c, const choice_data &data, uint32_t q)
{
    const uint64_t *items = data.items.data() + static_cast<size_t>(q) * c.capacity;
    const auto key = [&](uint32_t place) {
        return bsw_score_to_float(bsw_candidate_score(items[place - 1]));
    };
    uint32_t count = data.found[q], num = 0;
    bool is_whole = c.keep == c.num_lists;
    for (; count > 0 && !(key(count) >= least_key); is_whole = true) count--;
    if (count == 0 || (count < c.rank && !is_whole)) return 0;
    const float limit = limit_of(c, data.norms[q], key(std::min(count, c.rank)), key(1));
    while (num < count && num < c.probe && key(num + 1) >= limit) num++;
    return num < count || num == c.probe || is_whole ? num : 0;
}

void expect_choice(const choice_case &c, choice_data &data)
{
    for (uint32_t q = 0; q < c.num_queries; q++) {
        const uint32_t num = count_lists(c, data, q);
        data.is_told = data.is_told && num > 0;
        std::vector<uint32_t> lists;
        std::vector<float> additions;
        for (uint32_t i = 0; i < num; i++) {
            lists.push_back(bsw_candidate_row(data.items[static_cast<size_t>(q) * c.capacity + i]));
            const float sum = bsw_lane_dot_float(
                data.vectors.data() + static_cast<size_t>(q) * c.dims,
                data.centroids.data() + static_cast<size_t>(lists.back()) * c.dims, c.dims);
            additions.push_back(c.is_l2 ? sum * 2 : sum);
        }
        data.lists.push_back(lists);
        data.additions.push_back(additions);
    }
}

choice_data make_data(const choice_case &c)
{
    choice_data data;
    fill_items(c, data);
    fill_numbers(c, data);
    expect_choice(c, data);
    return data;
}

std::string describe(const choice_case &c)
{
    char text[200];
    snprintf(text, sizeof text,
             "lists of %u queries, %u of %u, %u kept, ratio %g, %s, %u dims, turn %u",
             c.num_queries, c.probe, c.num_lists, c.keep, static_cast<double>(c.ratio),
             c.is_l2 ? "l2" : "products", c.has_additions ? c.dims : 0, c.turn);
    return text;
}

// A choice in device memory.
struct choice_on_device {
    device_array<uint32_t> lists, counts, step_queries, flags;
    device_array<float> additions;
    bsw_device_choice choice;

    explicit choice_on_device(const choice_case &c)
        : lists(static_cast<size_t>(c.num_queries) * c.most), counts(c.num_queries),
          step_queries(std::vector<uint32_t>(size_t{BSW_LIST_STEPS} * c.num_lists, 77)),
          flags(std::vector<uint32_t>(1, 9)), additions(static_cast<size_t>(c.num_queries) * c.most)
    {
        choice = {c.num_queries,
                  c.num_lists,
                  c.most,
                  {c.ends[0], c.ends[1], c.ends[2]},
                  lists.get(),
                  counts.get(),
                  c.has_additions ? additions.get() : nullptr,
                  step_queries.get(),
                  flags.get()};
    }
};

// The worst first.
std::vector<uint64_t> out_of_order(const choice_case &c, const choice_data &data)
{
    std::vector<uint64_t> items = data.items;
    for (uint32_t q = 0; q < c.num_queries; q++) {
        const auto first = items.begin() + static_cast<long>(size_t{q} * c.capacity);
        std::reverse(first, first + std::min(data.stored[q], c.capacity));
    }
    return items;
}

// Queries in two calls, as the coarse step has them.
bool choose_in_two(const choice_case &c, const choice_data &data, const choice_on_device &out,
                   bool has_overflowed)
{
    const device_array<uint64_t> items(out_of_order(c, data));
    device_array<uint32_t> limits(c.num_queries), found(data.stored),
        overflowed(std::vector<uint32_t>(1, has_overflowed ? BSW_LISTS_OVERFLOWED : 0));
    const device_array<float> norms(data.norms), vectors(data.vectors), centroids(data.centroids);
    bsw_device_chooser chooser = {c.keep,  c.probe,     c.rank, least_key,     c.ratio,
                                  c.is_l2, norms.get(), c.dims, vectors.get(), centroids.get()};
    if (!check_launch(bsw_device_choice_clear(&out.choice, nullptr), describe(c))) return false;
    const uint32_t half = c.num_queries / 2;
    for (uint32_t part = 0; part < 2; part++) {
        const uint32_t first = part * half, num = part ? c.num_queries - half : half;
        bsw_device_lists lists = {};
        lists.num_queries = num;
        lists.capacity = c.capacity;
        lists.items = items.get() + static_cast<size_t>(first) * c.capacity;
        lists.counts = found.get() + first;
        lists.limits = limits.get() + first;
        lists.overflowed = overflowed.get();
        chooser.norms = norms.get() + first;
        chooser.vectors = vectors.get() + static_cast<size_t>(first) * c.dims;
        if (!check_launch(bsw_device_choose_lists(&lists, first, &chooser, &out.choice, nullptr),
                          describe(c)))
            return false;
    }
    return true;
}

void check_choice(const choice_case &c, const choice_data &data, const choice_on_device &device)
{
    const std::vector<uint32_t> lists = device.lists.values(), counts = device.counts.values(),
                                steps = device.step_queries.values();
    const std::vector<float> additions = device.additions.values();
    std::vector<uint32_t> expected(size_t{BSW_LIST_STEPS} * c.num_lists, 0);
    for (uint32_t q = 0; q < c.num_queries; q++) {
        const std::vector<uint32_t> &own = data.lists[q];
        const size_t first = static_cast<size_t>(q) * c.most;
        check_that(counts[q] == own.size() &&
                       std::equal(own.begin(), own.end(), lists.begin() + static_cast<long>(first)),
                   "%s: query %u: %u lists, %zu expected", describe(c).c_str(), q, counts[q],
                   own.size());
        for (size_t i = 0; i < own.size(); i++) {
            const size_t step = i < c.ends[0] ? 0 : i < c.ends[1] ? 1 : 2;
            expected[step * c.num_lists + own[i]]++;
            if (c.has_additions)
                check_that(additions[first + i] == data.additions[q][i], "%s: query %u: addition",
                           describe(c).c_str(), q);
        }
    }
    check_that(steps == expected, "%s: queries of lists", describe(c).c_str());
    check_that(device.flags.values()[0] == (data.is_told ? 0u : unsigned{BSW_CHOICE_UNTOLD}),
               "%s: flags", describe(c).c_str());
}

// ---- items ----

struct items_case {
    std::vector<uint32_t> first_bundles, num_rows;
    bsw_device_list_passes passes;
    uint32_t num_items, most_slots; // room
};

// Sizes of lists from none to some bundles.
items_case make_items_case(const choice_case &c)
{
    items_case out = {{0}, {}, {}, 0, 0};
    for (uint32_t l = 0; l < c.num_lists; l++) {
        const uint32_t bundles = static_cast<uint32_t>(c.random(5, l) % 8);
        out.first_bundles.push_back(out.first_bundles.back() + bundles);
        out.num_rows.push_back(bundles * 32 - (bundles > 0 ? l % 32 : 0));
    }
    out.passes.num = 4;
    out.passes.pass[0] = {0, 0, 4, 2, 0, 0, {}}; // step 0 in two parts
    out.passes.pass[1] = {0, 4, 4, 2, 0, 0, {}};
    out.passes.pass[2] = {1, 0, UINT32_MAX, 3, 0, 0, {}};
    out.passes.pass[3] = {2, 0, UINT32_MAX, 1 + c.turn % 9, 0, 0, {}};
    for (uint32_t p = 0; p < 4; p++) { // any two tiles, or one
        const uint32_t step = out.passes.pass[p].step, a = (c.turn + step) % BSW_LIST_TILES,
                       b = (c.turn / 4 + 3 * step) % BSW_LIST_TILES;
        out.passes.pass[p].narrow = std::min(a, b);
        out.passes.pass[p].wide = std::max(a, b);
    }
    return out;
}

struct seen_pair {
    uint32_t bundle, query;
    float addition;
    bool operator<(const seen_pair &other) const
    {
        return bundle != other.bundle ? bundle < other.bundle : query < other.query;
    }
    bool operator==(const seen_pair &other) const
    {
        return bundle == other.bundle && query == other.query && addition == other.addition;
    }
};

// What a pass is to look at, and how many items of each tile it takes.
struct expected_pass {
    std::vector<seen_pair> pairs;
    uint32_t num_items[BSW_LIST_TILES] = {};
    uint64_t list_pairs = 0, row_pairs = 0, bundles = 0;
};

void expect_list(const items_case &items, uint32_t list, const bsw_device_list_pass &pass,
                 const std::vector<seen_pair> &queries, expected_pass &out)
{
    const uint64_t begin = uint64_t{items.first_bundles[list]} + pass.first_bundle,
                   end =
                       std::min<uint64_t>(items.first_bundles[list + 1], begin + pass.num_bundles);
    const uint32_t num = static_cast<uint32_t>(queries.size());
    out.list_pairs += num;
    out.row_pairs += uint64_t{num} * items.num_rows[list];
    if (begin >= end || num == 0) return;
    const uint64_t cuts = (end - begin - 1) / pass.item_bundles + 1;
    const uint32_t slots = bsw_device_list_tile_slots(pass.wide), rest = num % slots;
    const bool is_narrow = rest <= bsw_device_list_tile_slots(pass.narrow);
    out.bundles += (end - begin) * ((num + slots - 1) / slots);
    out.num_items[pass.wide] += static_cast<uint32_t>(cuts * (num / slots));
    if (rest) out.num_items[is_narrow ? pass.narrow : pass.wide] += static_cast<uint32_t>(cuts);
    for (uint64_t b = begin; b < end; b++)
        for (const seen_pair &one : queries)
            out.pairs.push_back({static_cast<uint32_t>(b), one.query, one.addition});
}

expected_pass expect_pass(const choice_case &c, const choice_data &data, const items_case &items,
                          const bsw_device_list_pass &pass)
{
    std::vector<std::vector<seen_pair>> groups(c.num_lists);
    expected_pass out;
    const size_t from = pass.step > 0 ? c.ends[pass.step - 1] : 0, to = c.ends[pass.step];
    for (uint32_t q = 0; q < c.num_queries; q++)
        for (size_t i = from; i < std::min(to, data.lists[q].size()); i++)
            groups[data.lists[q][i]].push_back(
                {0, q, c.has_additions ? data.additions[q][i] : 0.0f});
    for (uint32_t l = 0; l < c.num_lists; l++) expect_list(items, l, pass, groups[l], out);
    std::sort(out.pairs.begin(), out.pairs.end());
    return out;
}

// Room for all items, in some tiles more.
void give_room(const choice_case &c, const choice_data &data, items_case &items)
{
    uint32_t at = 0;
    for (uint32_t p = 0; p < items.passes.num; p++) {
        bsw_device_list_pass &pass = items.passes.pass[p];
        const expected_pass expected = expect_pass(c, data, items, pass);
        for (uint32_t t = 0; t < BSW_LIST_TILES; t++) {
            pass.first_item[t] = at;
            at += expected.num_items[t] + t % 2;
        }
        pass.first_item[BSW_LIST_TILES] = at;
    }
    items.num_items = at;
    for (const auto &own : data.lists) items.most_slots += static_cast<uint32_t>(own.size());
}

struct items_on_device {
    device_array<uint32_t> first_bundles, num_rows;
    device_array<bsw_device_list_item> items;
    device_array<uint32_t> queries, next_slots, num_items, flags;
    device_array<float> additions;
    device_array<bsw_device_list_totals> totals;
    bsw_device_list_shape shape;
    bsw_device_list_tables tables;

    items_on_device(const choice_case &c, const items_case &own)
        : first_bundles(own.first_bundles), num_rows(own.num_rows), items(own.num_items),
          queries(own.most_slots), next_slots(size_t{BSW_LIST_STEPS} * c.num_lists),
          num_items(BSW_LIST_COUNTERS), flags(std::vector<uint32_t>(1, 0)),
          additions(own.most_slots), totals(1)
    {
        shape = {first_bundles.get(), num_rows.get()};
        tables = {items.get(),    queries.get(),    c.has_additions ? additions.get() : nullptr,
                  own.most_slots, next_slots.get(), num_items.get(),
                  totals.get()};
    }
};

// What items of the pass look at; each has the shape that it may have.
std::vector<seen_pair> see_pass(const choice_case &c, const items_on_device &device,
                                const bsw_device_list_pass &pass, const uint32_t *num_items)
{
    const std::vector<bsw_device_list_item> items = device.items.values();
    const std::vector<uint32_t> slots = device.queries.values();
    const std::vector<float> additions = device.additions.values();
    std::vector<seen_pair> out;
    for (uint32_t t = 0; t < BSW_LIST_TILES; t++) {
        for (uint32_t i = 0; i < num_items[t]; i++) {
            const bsw_device_list_item &own = items[pass.first_item[t] + i];
            check_that(
                own.num_bundles <= pass.item_bundles &&
                    own.num_slots <= bsw_device_list_tile_slots(t) &&
                    (t == pass.narrow || own.num_slots > bsw_device_list_tile_slots(pass.narrow)),
                "%s: an item of %u bundles and %u queries", describe(c).c_str(), own.num_bundles,
                own.num_slots);
            for (uint32_t b = 0; b < own.num_bundles; b++)
                for (uint32_t s = own.first_slot; s < own.first_slot + own.num_slots; s++)
                    out.push_back(
                        {own.first_bundle + b, slots[s], c.has_additions ? additions[s] : 0.0f});
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

void check_items(const choice_case &c, const choice_data &data, const choice_on_device &choice)
{
    items_case items = make_items_case(c);
    give_room(c, data, items);
    const items_on_device device(c, items);
    const std::string shape = describe(c);
    if (!check_launch(bsw_device_list_items(&choice.choice, &device.shape, &items.passes,
                                            &device.tables, device.flags.get(), nullptr),
                      shape))
        return;
    const std::vector<uint32_t> num_items = device.num_items.values();
    bsw_device_list_totals sums = {0, 0, 0};
    for (uint32_t p = 0; p < items.passes.num; p++) {
        const bsw_device_list_pass &pass = items.passes.pass[p];
        const expected_pass expected = expect_pass(c, data, items, pass);
        const uint32_t *own = num_items.data() + p * BSW_LIST_TILES;
        const bool is_same = std::equal(own, own + BSW_LIST_TILES, expected.num_items);
        check_that(is_same, "%s: numbers of items of pass %u", shape.c_str(), p);
        if (!is_same) return;
        check_that(see_pass(c, device, pass, own) == expected.pairs, "%s: items of pass %u",
                   shape.c_str(), p);
        sums.bundles += expected.bundles;
        if (pass.first_bundle > 0) continue; // the same step again
        sums.list_pairs += expected.list_pairs;
        sums.row_pairs += expected.row_pairs;
    }
    const bsw_device_list_totals got = device.totals.values()[0];
    check_that(got.list_pairs == sums.list_pairs && got.row_pairs == sums.row_pairs &&
                   got.bundles == sums.bundles,
               "%s: totals", shape.c_str());
    check_that(device.flags.values()[0] == choice.flags.values()[0], "%s: flags of items",
               shape.c_str());
}

// One item or slot less than is needed: that is told, and nothing is written beside.
void check_short_tables(const choice_case &c, const choice_data &data,
                        const choice_on_device &choice)
{
    items_case items = make_items_case(c);
    give_room(c, data, items);
    const uint32_t tile = items.passes.pass[0].narrow,
                   wanted = expect_pass(c, data, items, items.passes.pass[0]).num_items[tile];
    if (wanted == 0 || items.most_slots == 0) return;
    for (uint32_t what = 0; what < 2; what++) {
        items_case own = items;
        if (what == 0) own.most_slots--;
        if (what == 1) // room that it has beyond what is wanted, and one more
            own.passes.pass[0].first_item[tile] += 1 + tile % 2;
        const items_on_device device(c, own);
        if (!check_launch(bsw_device_list_items(&choice.choice, &device.shape, &own.passes,
                                                &device.tables, device.flags.get(), nullptr),
                          describe(c)))
            return;
        check_that(device.flags.values()[0] & BSW_ITEMS_TOO_MANY, "%s: short of %s",
                   describe(c).c_str(), what == 0 ? "slots" : "items");
    }
}

void check_case(const choice_case &c)
{
    const choice_data data = make_data(c);
    const choice_on_device device(c);
    if (!choose_in_two(c, data, device, false)) return;
    check_choice(c, data, device);
    check_items(c, data, device);
    check_short_tables(c, data, device);
}

// Nothing of lists that had overflowed.
void check_overflowed(const choice_case &c)
{
    choice_data data = make_data(c);
    const choice_on_device device(c);
    if (!choose_in_two(c, data, device, true)) return;
    for (uint32_t q = 0; q < c.num_queries; q++) data.lists[q] = {};
    data.is_told = false;
    check_choice(c, data, device);
    check_items(c, data, device);
}

// A list that had no room for all it found is no list.
void check_short_list(const choice_case &c)
{
    choice_data data = make_data(c);
    const choice_on_device device(c);
    data.stored.back() = c.capacity + 1;
    data.lists.back() = {};
    data.is_told = false;
    if (!choose_in_two(c, data, device, false)) return;
    check_choice(c, data, device);
}

void check_refused_choices()
{
    const choice_case c = {2, 5, 3, 3, 5, 5, 3, 0, 0, false, false, 0.0f, {1, 2, UINT32_MAX}};
    const choice_data data = make_data(c);
    const choice_on_device device(c);
    const items_case items = make_items_case(c);
    const items_on_device tables(c, items);
    bsw_device_lists found = {};
    bsw_device_choice choice = device.choice;
    bsw_device_list_passes passes = items.passes;
    bsw_device_chooser chooser = {};
    chooser.keep = chooser.rank = chooser.probe = 1;
    found.capacity = 1;
    const auto choose = [&]() {
        return bsw_device_choose_lists(&found, 0, &chooser, &choice, nullptr);
    };
    const auto make = [&]() {
        return bsw_device_list_items(&choice, &tables.shape, &passes, &tables.tables,
                                     tables.flags.get(), nullptr);
    };
    check_that(choose() == cudaSuccess, "lists of no queries");
    chooser.keep = 2;
    check_that(choose() == cudaErrorInvalidValue, "more candidates than lists hold");
    chooser.keep = 1;
    found.num_queries = 3;
    check_that(choose() == cudaErrorInvalidValue, "more queries than a choice has");
    passes.pass[0].item_bundles = 0;
    check_that(make() == cudaErrorInvalidValue, "items of nothing");
    passes = items.passes;
    passes.num = BSW_MOST_LIST_PASSES + 1;
    check_that(make() == cudaErrorInvalidValue, "passes beyond the last");
    passes = items.passes;
    choice.ends[2] = 2;
    check_that(make() == cudaErrorInvalidValue, "lists behind the last step");
}

} // namespace

void check_gpu_lists()
{
    static const uint32_t lists[] = {40, 7, 130, 1}, queries[] = {9, 3, 70, 300, 1, 20};
    static const float ratios[] = {0.0f, 1.5f, 0.0f, 1.01f, 0.5f};
    check_refused_choices();
    for (uint32_t turn = 0; turn < (checks.small ? 10u : 60u); turn++) {
        choice_case c = {};
        c.turn = turn;
        c.num_lists = lists[turn % 4];
        c.num_queries = queries[(turn + turn / 6) % (checks.small ? 3 : 6)];
        c.ratio = ratios[turn % 5];
        c.probe = 1 + turn * 7 % c.num_lists;
        c.rank = std::min(c.probe, 16u);
        // Without a ratio all of them are kept; with one maybe fewer, or more.
        c.keep =
            c.ratio > 0 ? std::max(c.probe / 2, std::min(c.rank, c.probe)) + turn % 7 : c.probe;
        c.keep = std::min(c.keep, c.num_lists);
        c.most = std::min(c.probe, c.keep);
        c.capacity = c.keep + turn % 3;
        c.dims = 1 + turn * 13 % 70;
        c.is_l2 = turn % 2;
        c.has_additions = turn % 3 != 1;
        c.ends[0] = 1;
        c.ends[1] = turn % 5 == 4 ? 1 : 8;
        c.ends[2] = UINT32_MAX;
        check_case(c);
        if (turn % 5 == 2) check_overflowed(c);
        if (turn % 5 == 3) check_short_list(c);
    }
    // More candidates than are sorted.
    check_case({2, 5000, 60, 60, 5000, 60, 16, 9, 1, true, true, 0.0f, {1, 8, UINT32_MAX}});
}
