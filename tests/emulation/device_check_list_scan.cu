// SPDX-License-Identifier: Apache-2.0
// The scan of lists against plane_scan and select of the CPU, list by list: every shape of tile,
// with and without additions, keys of all dimensions and of the first ones.
#include <algorithm>
#include <memory>

#include "common/codes/metric.h"
#include "device_check_scan_case.hpp"
#include "kernels/device_scan/device_list_scan.h"
#include "kernels/select/key_shift.h"

using namespace scan_checks;

namespace
{

// One list: bundles [first, end), and who looks at it.
struct checked_list {
    uint32_t first, end;
    std::vector<uint32_t> queries;
    std::vector<float> additions; // of each of them
};

struct list_case {
    scan_case scan; // part: all bundles
    bool has_additions;
    std::vector<checked_list> lists;
    std::vector<uint32_t> rows; // of each place
    uint32_t most_bundles;      // of a list, and of an item
};

constexpr uint32_t few_bundles = 6;

float make_addition(const scan_case &c, uint64_t stream, uint32_t query)
{
    static const float hostile[] = {0.0f, -0.0f, 1e30f, -1e30f, 0x1p-149f, 3.5f};
    const uint64_t r = check_random(stream, query);
    if (c.keys == HOSTILE_KEYS) return hostile[r % 6];
    return static_cast<float>(static_cast<int>(r % 65536) - 32768) / 128.0f;
}

// Lists of no bundles to most_bundles; each query looks at about `share` of 8 of them, a list in
// five has no query. Rows in another order than places.
list_case make_list_case(const scan_case &scan, uint32_t share, uint32_t most_bundles = few_bundles)
{
    list_case c = {
        scan, scan.keys != INTEGER_KEYS && scan.stream / 1000 % 3 > 0, {}, {}, most_bundles};
    c.scan.first = 0;
    c.scan.last = scan.num_bundles;
    c.scan.step = 1;
    c.scan.first_row = 0;
    for (uint32_t at = 0, l = 0; at < scan.num_bundles; l++) {
        const uint64_t r = check_random(scan.stream + 60, l);
        checked_list list = {
            at,
            std::min(scan.num_bundles, at + static_cast<uint32_t>(r % (most_bundles + 1))),
            {},
            {}};
        for (uint32_t q = 0; q < scan.num_queries && r / 1000 % 5 > 0; q++) {
            if (check_random(scan.stream + 61 + l, q) % 8 >= share) continue;
            list.queries.push_back(q);
            list.additions.push_back(make_addition(c.scan, scan.stream + 62 + 2 * l, q));
        }
        at = list.end;
        c.lists.push_back(list);
    }
    const uint32_t places = scan.num_bundles * 32; // with which 31 has no divisor in common
    for (uint32_t p = 0; p < places; p++) c.rows.push_back((p * 31 + 3) % places + 7);
    return c;
}

// What a query finds in its lists, best first: rows, with additions.
std::vector<uint64_t> find_in_lists(const list_case &c, const host_data &data, uint32_t query,
                                    uint32_t limit)
{
    std::vector<uint64_t> out;
    for (const checked_list &list : c.lists) {
        scan_case own = c.scan;
        own.first = list.first;
        own.last = list.end;
        const auto place = std::find(list.queries.begin(), list.queries.end(), query);
        if (place == list.queries.end() || list.first == list.end) continue;
        const float addition = list.additions[static_cast<size_t>(place - list.queries.begin())];
        for (uint64_t item : reference_candidates(own, data, query, 0)) {
            uint32_t score = bsw_candidate_score(item);
            if (c.has_additions) score = bsw_score_add(score, addition);
            if (score >= limit)
                out.push_back(bsw_candidate_pack(score, c.rows[bsw_candidate_row(item)]));
        }
    }
    std::sort(out.begin(), out.end(), std::greater<uint64_t>());
    return out;
}

uint32_t choose_list_limit(limit_shape shape, uint32_t query, const std::vector<uint64_t> &all)
{
    if (shape == MIXED) shape = static_cast<limit_shape>(query % MIXED);
    if (shape == NONE) return UINT32_MAX;
    if (shape == WIDE || all.empty()) return 0;
    const size_t place = shape == SOME ? all.size() / 8 : shape == WORST ? all.size() - 1 : 0;
    return bsw_candidate_score(all[place]);
}

expected_lists expect_lists(const list_case &c, const host_data &data)
{
    expected_lists out = {{}, {}, 0};
    for (uint32_t q = 0; q < c.scan.num_queries; q++) {
        const std::vector<uint64_t> all = find_in_lists(c, data, q, 0);
        out.limits.push_back(choose_list_limit(c.scan.limits, q, all));
        out.candidates.push_back(find_in_lists(c, data, q, out.limits[q]));
        out.most = std::max(out.most, out.candidates[q].size());
    }
    return out;
}

// Tables of a case for one shape of tile: items of up to `bundles` bundles, and one of nothing.
struct list_tables {
    std::vector<bsw_device_list_item> items = {{0, 0, 0, 0}};
    std::vector<uint32_t> queries;
    std::vector<float> additions;
    uint64_t num_bundles = 0; // of items

    list_tables(const list_case &c, uint32_t tile, uint32_t bundles)
    {
        const uint32_t most = bsw_device_list_tile_slots(tile);
        for (const checked_list &list : c.lists) {
            const uint32_t slot = static_cast<uint32_t>(queries.size()),
                           num = static_cast<uint32_t>(list.queries.size());
            queries.insert(queries.end(), list.queries.begin(), list.queries.end());
            additions.insert(additions.end(), list.additions.begin(), list.additions.end());
            for (uint32_t b = list.first; b < list.end; b += bundles) {
                for (uint32_t q = 0; q < num; q += most) {
                    items.push_back(
                        {b, std::min(bundles, list.end - b), slot + q, std::min(most, num - q)});
                    num_bundles += items.back().num_bundles;
                }
            }
        }
    }
};

typedef int (*list_scan)(const bsw_device_codes *, const bsw_device_list_work *, uint32_t,
                         const bsw_device_queries *, const bsw_device_lists *, bsw_stream);

void check_tile(const list_case &c, const device_data &device, const expected_lists &expected,
                uint32_t tile, const char *kernel, list_scan scan)
{
    const uint32_t turn = static_cast<uint32_t>(c.scan.stream / 1000 + tile);
    list_tables tables(c, tile, 1 + turn % c.most_bundles);
    const uint32_t num_items = static_cast<uint32_t>(tables.items.size());
    // Where device memory says how many there are: others follow, or it says more than there are.
    if (turn % 4 == 1) tables.items.resize(num_items + 3, tables.items.back());
    device_array<bsw_device_list_item> items(tables.items);
    const device_array<uint32_t> count(std::vector<uint32_t>(1, num_items + (turn % 4 == 3) * 5));
    device_array<uint32_t> queries(tables.queries), rows(c.rows);
    device_array<float> additions(tables.additions);
    const bsw_device_list_work work = {items.get(),
                                       static_cast<uint32_t>(tables.items.size()),
                                       queries.get(),
                                       c.has_additions ? additions.get() : nullptr,
                                       rows.get(),
                                       tables.num_bundles,
                                       turn % 2 ? count.get() : nullptr};
    const std::string name = std::string(kernel) + ", tile " + std::to_string(tile) +
                             (c.has_additions ? ", additions, " : ", ") +
                             (turn % 2 ? "counted there, " : "") + std::to_string(c.lists.size()) +
                             " lists,";
    check_scan(
        c.scan, name.c_str(),
        [&](const bsw_device_codes *codes, const bsw_device_part *, const bsw_device_queries *own,
            const bsw_device_lists *lists,
            bsw_stream stream) { return scan(codes, &work, tile, own, lists, stream); },
        device, expected);
}

// Where the device is one, as check_hopper of device_check_scan.cu. Its blocks take several items
// where there are more of them than run at a time.
void check_hopper_tile(const list_case &c, const device_data &device,
                       const expected_lists &expected, uint32_t tile)
{
    const device_turn turn(on_hopper);
    if (!turn.is_hopper) return;
    const bool has = bsw_device_has_hopper_lists(&device.codes.layout) != 0;
    check_that(has == (device.codes.layout.padded_dims <= 256), "%s: has_hopper_lists",
               c.scan.segments.c_str());
    if (has) check_tile(c, device, expected, tile, "list_scan_hopper", bsw_device_list_scan_hopper);
}

// first_dims: padded dimensions that keys are made of; 0: all.
void check_list_case(const list_case &c, uint32_t first_dims, uint32_t tile)
{
    host_data data = make_data(c.scan);
    device_data device(c.scan, data);
    if (first_dims > 0) {
        bsw_code_layout first;
        check_that(bsw_code_layout_first(&data.layout, first_dims, &first), "%s: no %u dimensions",
                   c.scan.segments.c_str(), first_dims);
        data.layout = first; // strides of queries stay
        device.codes.layout = first;
    }
    if (!check_launch(unpack(data, device, c.scan.query_bits), "unpack_queries")) return;
    const expected_lists expected = expect_lists(c, data);
    check_tile(c, device, expected, tile, "list_scan", bsw_device_list_scan);
    if (bsw_device_list_scan_few_fits(&device.codes.layout, tile))
        check_tile(c, device, expected, tile, "list_scan_few", bsw_device_list_scan_few);
    if (c.scan.num_queries <= 17 && !checks.small)
        check_tile(c, device, expected, (tile + 1) % BSW_LIST_TILES, "list_scan",
                   bsw_device_list_scan);
#if !defined(CHECKS_GPU)
    if (c.scan.stream / 1000 % 3 && c.most_bundles == few_bundles) return; // its blocks are slow
#endif
    check_hopper_tile(c, device, expected, tile);
}

void check_refused_lists()
{
    const list_case c = make_list_case(make_case("33x3", 4, 2, 4, 6), 8);
    const device_data device(c.scan, make_data(c.scan));
    device_lists lists(2, 40, std::vector<uint32_t>(2, 0));
    const device_array<float> additions(2);
    bsw_device_codes codes = device.codes;
    bsw_device_list_work work = {nullptr, 1, nullptr, additions.get(), nullptr, 4, nullptr};
    auto refuses = [&](uint32_t tile, const char *what) {
        check_that(bsw_device_list_scan(&codes, &work, tile, &device.queries, &lists.lists,
                                        nullptr) == cudaErrorInvalidValue,
                   "%s was not refused", what);
    };
    refuses(BSW_LIST_TILES, "a tile that there is not");
    codes.scales = nullptr;
    refuses(0, "scales of queries alone");
    bsw_device_queries integers = device.queries;
    integers.scales = nullptr;
    codes.biases = nullptr;
    check_that(bsw_device_list_scan(&codes, &work, 0, &integers, &lists.lists, nullptr) ==
                   cudaErrorInvalidValue,
               "additions to integer keys were not refused");
    codes = device.codes;
    codes.num_bundles = UINT32_MAX / 32;
    refuses(0, "more rows than 32 bits count");
    check_that(!bsw_device_list_scan_few_fits(&codes.layout, 2) &&
                   bsw_device_list_scan_few(&device.codes, &work, 2, &device.queries, &lists.lists,
                                            nullptr) == cudaErrorInvalidValue,
               "64 queries as few were not refused");
    if (!bsw_device_has_hopper_lists(&codes.layout))
        check_that(bsw_device_list_scan_hopper(&device.codes, &work, 0, &device.queries,
                                               &lists.lists, nullptr) == cudaErrorInvalidValue,
                   "lists by wgmma were not refused");
}

// The Hopper kernel: items of more tiles than its rings have places, and more items than blocks,
// few and many queries, layouts that have code of their own and others.
void check_long_lists(uint32_t &turn)
{
    static const struct {
        const char *layout;
        uint32_t num_queries, num_bundles, most_bundles, tile;
    } cases[] = {{"96x3", 20, 150, 40, 1},       {"64x2,40x5", 70, 90, 3, 2},
                 {"96x4", 230, 90, 3, 3},        {"120x8", 64, 40, 40, 2},
                 {"250x2", 140, 150, 70, 3},     {"256x3", 40, 90, 3, 2},
                 {"100x5,60x1", 260, 60, 20, 3}, {"33x1", 7, 200, 30, 0}};
    for (uint32_t i = 0; i < (checks.small ? 2u : 8u); i++, turn++) {
        const auto &own = cases[i];
        scan_case c = make_case(own.layout, 1 + turn % 7, own.num_queries, own.num_bundles, turn);
        if (i % 3 == 0) c.keys = FLOAT_KEYS;
        if (i % 3 == 0) c.limits = SOME;
        check_list_case(make_list_case(c, 8 - turn % 3, own.most_bundles), 0, own.tile);
    }
}

} // namespace

void check_list_scans()
{
    static const struct {
        const char *segments;
        uint32_t first_dims;
    } layouts[] = {{"1x1", 0},
                   {"33x3,7x2", 0},
                   {"33x3,7x2", 64},
                   {"96x3", 0},
                   {"33x8,1x1", 64},
                   {"200x8", 0},
                   {"64x2,40x5,33x7,1x6", 128},
                   {"129x3", 0}};
    static const uint32_t queries[] = {1, 5, 17, 3, 9};
    uint32_t turn = 0;
    check_refused_lists();
    for (const auto &layout : layouts) {
        for (uint32_t i = 0; i < (checks.small ? 3u : 18u); i++, turn++)
            check_list_case(make_list_case(make_case(layout.segments, 1 + turn % 7,
                                                     queries[turn % 5], 1 + turn % 16, turn),
                                           1 + turn % 8),
                            layout.first_dims, turn % BSW_LIST_TILES);
    }
    // Rows of which shared memory has no room for few queries, and the longest that has.
    check_list_case(make_list_case(make_case("6144x1", 2, 3, 1, turn++), 8), 0, 0);
    check_list_case(make_list_case(make_case("6112x1", 2, 3, 1, turn++), 8), 0, 0);
    static const uint32_t many[] = {63, 65, 70, 255, 257, 300};
    for (uint32_t i = 0; i < (checks.small ? 2u : 18u); i++, turn++)
        check_list_case(make_list_case(make_case("40x3", 4, many[i % (checks.small ? 2 : 6)],
                                                 1 + 5 * (turn % 3), turn),
                                       8 - turn % 3),
                        0, checks.small ? i % 2 + 2 : turn % BSW_LIST_TILES);
    check_long_lists(turn);
}
