// SPDX-License-Identifier: Apache-2.0
// Lists of several shards to cuts, and what cuts leave of them, against sorting all of them.
#include <algorithm>

#include "device_check.hpp"
#include "kernels/device_merge/device_merge.h"
#include "kernels/gpu_select/gpu_select.h"

namespace
{

struct merge_case {
    uint32_t num_shards, num_queries, most; // items of a list
    uint32_t num_scores;                    // few: ties
    uint64_t keep;
};

std::string describe(const merge_case &c, const char *what)
{
    return std::string(what) + ": " + std::to_string(c.num_shards) + " shards, " +
           std::to_string(c.num_queries) + " queries, at most " + std::to_string(c.most) +
           " items of " + std::to_string(c.num_scores) + " scores, keep " + std::to_string(c.keep);
}

// Lists with gaps of junk between them; [num_shards][num_queries].
struct ragged_lists {
    std::vector<uint64_t> items, offsets, first_rows;
    std::vector<uint32_t> counts;
};

constexpr uint64_t junk = 0xfffffffffffffffeu; // better than all

ragged_lists make_lists(const merge_case &c)
{
    ragged_lists out;
    for (uint32_t s = 0; s < c.num_shards; s++) {
        out.first_rows.push_back(s * 5000000000u + (s > 0 ? 7 : 0)); // ids beyond 32 bits
        for (uint32_t q = 0; q < c.num_queries; q++) {
            const uint64_t stream = 1000 + s * 100 + q;
            const uint64_t draw = check_random(stream, 0);
            const uint32_t count = draw % 4 == 0   ? 0
                                   : draw % 4 == 1 ? c.most
                                                   : static_cast<uint32_t>(draw / 4 % (c.most + 1));
            std::vector<uint64_t> list;
            for (uint32_t i = 0; i < count; i++) {
                const uint64_t x = check_random(stream, 1 + i);
                const uint32_t score = static_cast<uint32_t>(x % c.num_scores) * 77777777u;
                list.push_back(bsw_candidate_pack(score, i * 3 + static_cast<uint32_t>(x >> 62)));
            }
            std::sort(list.begin(), list.end(), std::greater<uint64_t>());
            out.items.insert(out.items.end(), draw / 64 % 3, junk);
            out.offsets.push_back(out.items.size());
            out.counts.push_back(count);
            out.items.insert(out.items.end(), list.begin(), list.end());
        }
    }
    out.items.push_back(junk);
    return out;
}

struct place {
    uint32_t score;
    uint64_t id;
    bool operator<(const place &other) const // better
    {
        return score != other.score ? score > other.score : id < other.id;
    }
};

std::vector<place> places_of(const merge_case &c, const ragged_lists &lists, uint32_t shard,
                             uint32_t query)
{
    std::vector<place> out;
    const size_t list = static_cast<size_t>(shard) * c.num_queries + query;
    for (uint32_t i = 0; i < lists.counts[list]; i++) {
        const uint64_t item = lists.items[lists.offsets[list] + i];
        out.push_back(
            {bsw_candidate_score(item), lists.first_rows[shard] + bsw_candidate_row(item)});
    }
    return out;
}

bsw_cut expected_cut(const merge_case &c, const ragged_lists &lists, uint32_t query)
{
    std::vector<place> all;
    for (uint32_t s = 0; s < c.num_shards; s++) {
        const std::vector<place> more = places_of(c, lists, s, query);
        all.insert(all.end(), more.begin(), more.end());
    }
    if (all.size() < c.keep) return bsw_keep_all();
    std::sort(all.begin(), all.end());
    return {all[c.keep - 1].score, 0, all[c.keep - 1].id};
}

// What of the case lies on the device.
struct on_device {
    device_array<uint64_t> items, offsets, first_rows;
    device_array<uint32_t> counts;
    explicit on_device(const ragged_lists &lists)
        : items(lists.items), offsets(lists.offsets), first_rows(lists.first_rows),
          counts(lists.counts)
    {
    }
    bsw_device_ragged lists(size_t first, uint32_t num) const
    {
        return {items.get(), offsets.get() + first, counts.get() + first, num};
    }
};

std::vector<bsw_cut> check_cuts_of(const merge_case &c, const ragged_lists &host,
                                   const on_device &device)
{
    const uint32_t capacity = c.num_shards * c.most + 1;
    device_array<uint64_t> items(static_cast<size_t>(c.num_queries) * capacity);
    device_array<uint32_t> counts(c.num_queries);
    device_array<unsigned char> scratch(bsw_device_sort_bytes(c.num_queries, capacity));
    device_array<bsw_cut> cuts(c.num_queries);
    bsw_device_merge merge = {};
    merge.lists = device.lists(0, c.num_shards * c.num_queries);
    merge.first_rows = device.first_rows.get();
    merge.num_queries = c.num_queries;
    merge.num_shards = c.num_shards;
    merge.keep = c.keep;
    bsw_device_lists keys = {};
    keys.num_queries = c.num_queries;
    keys.capacity = capacity;
    keys.items = items.get();
    keys.counts = counts.get();
    check_launch(bsw_device_merge_keys(&merge, &keys, nullptr), describe(c, "keys"));
    check_launch(bsw_device_sort(&keys, scratch.get(), nullptr), describe(c, "sort"));
    check_launch(bsw_device_merge_cuts(&merge, &keys, cuts.get(), nullptr), describe(c, "cuts"));
    const std::vector<bsw_cut> found = cuts.values();
    for (uint32_t q = 0; q < c.num_queries; q++) {
        const bsw_cut expected = expected_cut(c, host, q);
        check_that(found[q].score == expected.score && found[q].row == expected.row, "%s: query %u",
                   describe(c, "cuts").c_str(), q);
    }
    return found;
}

void check_survivors(const merge_case &c, const ragged_lists &host, const on_device &device,
                     const std::vector<bsw_cut> &cuts)
{
    const device_array<bsw_cut> d_cuts(cuts);
    for (uint32_t s = 0; s < c.num_shards; s++) {
        device_array<uint32_t> counts(c.num_queries);
        const bsw_device_ragged lists =
            device.lists(static_cast<size_t>(s) * c.num_queries, c.num_queries);
        check_launch(bsw_device_count_survivors(&lists, host.first_rows[s], d_cuts.get(),
                                                counts.get(), nullptr),
                     describe(c, "survivors"));
        const std::vector<uint32_t> found = counts.values();
        for (uint32_t q = 0; q < c.num_queries; q++) {
            uint32_t expected = 0;
            for (const place &at : places_of(c, host, s, q))
                expected += !(place{cuts[q].score, cuts[q].row} < at);
            check_that(found[q] == expected, "%s: shard %u, query %u",
                       describe(c, "survivors").c_str(), s, q);
        }
    }
}

// All lists one behind the other, the last first.
void check_pack(const merge_case &c, const ragged_lists &host, const on_device &device)
{
    std::vector<uint64_t> offsets(host.counts.size()), expected;
    for (size_t l = host.counts.size(); l-- > 0;) {
        const auto begin = host.items.begin() + static_cast<long>(host.offsets[l]);
        offsets[l] = expected.size();
        expected.insert(expected.end(), begin, begin + host.counts[l]);
    }
    const device_array<uint64_t> to(expected.size() + 1), to_offsets(offsets);
    const bsw_device_ragged from = device.lists(0, c.num_shards * c.num_queries);
    check_launch(bsw_device_pack_lists(&from, to.get(), to_offsets.get(), nullptr),
                 describe(c, "pack"));
    std::vector<uint64_t> found = to.values();
    found.pop_back();
    check_that(found == expected, "%s", describe(c, "pack").c_str());
}

} // namespace

void check_merges()
{
    const uint32_t shards[] = {1, 2, 7}, queries[] = {1, 3, 65}, most[] = {1, 40, 600};
    for (uint32_t num_shards : shards) {
        for (uint32_t num_queries : queries) {
            for (uint32_t length : most) {
                if (checks.small && num_shards * num_queries * length > 3000) continue;
                for (uint32_t num_scores : {1u, 3u, 50u}) {
                    merge_case c = {num_shards, num_queries, length, num_scores, 1};
                    const ragged_lists host = make_lists(c);
                    const on_device device(host);
                    for (uint64_t keep : {uint64_t(1), uint64_t(length), uint64_t(length) + 1,
                                          uint64_t(num_shards) * length,
                                          uint64_t(num_shards) * length + 1, uint64_t(1) << 40}) {
                        c.keep = keep;
                        check_survivors(c, host, device, check_cuts_of(c, host, device));
                    }
                    check_pack(c, host, device);
                }
            }
        }
    }
}
