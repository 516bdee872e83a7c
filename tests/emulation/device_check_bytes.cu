// SPDX-License-Identifier: Apache-2.0
// gpu_bytes against the reference of matrix_scan: rows of bytes, random, all alike and at the ends
// of what a byte is, with offsets of either parity and sign, in every shape of launch.
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "common/codes/metric.h"
#include "device_check.hpp"
#include "kernels/gpu_bytes/gpu_bytes.h"
#include "kernels/matrix_scan/matrix_scan.h"

namespace
{

enum byte_fill { RANDOM_BYTES, ENDS, EQUAL_ROWS, ZEROS, NUM_BYTE_FILLS };

struct byte_case {
    uint32_t dims, num_queries, num_bundles, first, step, turn;
    int factor;
    byte_fill fill;
    uint32_t capacity; // 0: as much as is found

    uint64_t stream() const
    {
        return 7000 + 10 * static_cast<uint64_t>(turn);
    }
};

struct byte_data {
    bsw_code_layout layout;
    std::vector<uint32_t> rows, masks;
    std::vector<int8_t> queries;
    std::vector<int32_t> offsets, constants;
    std::vector<uint32_t> limits;
    std::vector<std::vector<uint64_t>> expected; // of each query, best first
    size_t most = 0;
};

uint8_t make_byte(const byte_case &c, uint64_t stream, uint64_t at, uint64_t in_row)
{
    const uint64_t r = check_random(stream, c.fill == EQUAL_ROWS ? in_row : at);
    if (c.fill == ZEROS) return 0;
    return static_cast<uint8_t>(c.fill == ENDS ? (r & 1 ? 255 : 0) : r);
}

// Bytes in the order of code_layout.h; dimensions beyond the last are 0.
void fill_rows(const byte_case &c, byte_data &data)
{
    const uint32_t padded = data.layout.padded_dims;
    std::vector<uint8_t> bytes(static_cast<size_t>(c.num_bundles) * 32 * padded);
    for (size_t row = 0; row < c.num_bundles * 32u; row++) {
        for (uint32_t d = 0; d < c.dims; d++)
            bytes[((row / 16 * (padded / 4) + d / 4) * 16 + row % 16) * 4 + d % 4] =
                make_byte(c, c.stream(), row * padded + d, d);
        const uint64_t r = check_random(c.stream() + 1, c.fill == EQUAL_ROWS ? 0 : row);
        data.offsets.push_back(c.fill == ENDS
                                   ? (r & 1 ? 1 : -1) * (100000000 + static_cast<int>(r >> 1 & 1))
                                   : static_cast<int32_t>(r % 20001) - 10000);
    }
    data.rows.resize(bytes.size() / 4);
    memcpy(data.rows.data(), bytes.data(), bytes.size());
}

void fill_queries(const byte_case &c, byte_data &data)
{
    const uint32_t padded = data.layout.padded_dims;
    for (uint32_t q = 0; q < c.num_queries; q++) {
        for (uint32_t d = 0; d < padded; d++) {
            const uint8_t byte = make_byte(c, c.stream() + 3, q * padded + d, q + d);
            data.queries.push_back(static_cast<int8_t>(d < c.dims ? byte ^ 0x80 : 0));
        }
        const int constant = static_cast<int>(check_random(c.stream() + 4, q) % 2000003) - 1000000;
        data.constants.push_back(c.fill == ENDS ? 100 * constant : constant);
    }
    for (uint32_t i = 0; i < c.num_bundles; i++)
        data.masks.push_back(i % 3 ? UINT32_MAX
                                   : static_cast<uint32_t>(check_random(c.stream() + 2, i)));
}

// What the reference finds of one query in the part.
std::vector<uint64_t> find(const byte_case &c, const byte_data &data, uint32_t query,
                           uint32_t limit)
{
    std::vector<uint64_t> items(c.num_bundles * 32u);
    std::vector<uint32_t> masks(data.masks);
    for (uint32_t i = 0; i < c.num_bundles; i++) {
        if (i < c.first || (i - c.first) % c.step) masks[i] = 0;
    }
    const bsw_matrix_tile tile = {reinterpret_cast<const uint8_t *>(data.rows.data()),
                                  c.num_bundles,
                                  data.layout.padded_dims,
                                  1000,
                                  masks.data(),
                                  nullptr,
                                  nullptr,
                                  nullptr,
                                  data.offsets.data()};
    const bsw_matrix_queries one = {
        1, data.queries.data() + static_cast<size_t>(query) * data.layout.padded_dims,
        &data.constants[query], nullptr, c.factor};
    bsw_matrix_output output = {items.data(), 0, limit};
    bsw_matrix_scan_reference.scan(&tile, &one, &output);
    items.resize(output.count);
    std::sort(items.begin(), items.end(), std::greater<uint64_t>());
    return items;
}

// Limits that every row reaches, none, or what the best, the last or one in between has, and one
// above that.
void expect(const byte_case &c, byte_data &data)
{
    for (uint32_t q = 0; q < c.num_queries; q++) {
        const std::vector<uint64_t> all = find(c, data, q, 0);
        const uint32_t kind = all.empty() ? 0 : (q + c.turn) % 6;
        const size_t at = kind == 2 ? 0 : kind == 3 ? all.size() - 1 : all.size() / 8;
        const uint32_t limit = kind == 0   ? 0
                               : kind == 1 ? UINT32_MAX
                                           : bsw_candidate_score(all[at]) + (kind == 5);
        data.limits.push_back(limit);
        data.expected.push_back(find(c, data, q, limit));
        data.most = std::max(data.most, data.expected.back().size());
    }
}

byte_data make_data(const byte_case &c)
{
    byte_data data;
    check_that(bsw_code_layout_parse((std::to_string(c.dims) + "x8").c_str(), c.dims, &data.layout,
                                     nullptr) == BSW_OK,
               "a layout of bytes");
    fill_rows(c, data);
    fill_queries(c, data);
    expect(c, data);
    return data;
}

std::string describe(const byte_case &c)
{
    char text[200];
    snprintf(text, sizeof text,
             "byte_scan, %u dims, %u queries, bundles %u by %u of %u, factor %d, fill %d, room %u",
             c.dims, c.num_queries, c.first, c.step, c.num_bundles, c.factor, c.fill, c.capacity);
    return text;
}

// A case in device memory.
struct byte_arrays {
    device_array<uint32_t> rows, masks, limits, counts;
    device_array<int8_t> queries, operands;
    device_array<int32_t> offsets, constants;
    device_array<uint64_t> items;
    bsw_device_codes codes = {};
    bsw_device_queries asked = {};
    bsw_device_lists lists = {};

    byte_arrays(const byte_case &c, const byte_data &data, uint32_t capacity)
        : rows(data.rows), masks(data.masks), limits(data.limits),
          counts(std::vector<uint32_t>(c.num_queries, 0)), queries(data.queries),
          operands(bsw_device_byte_operand_bytes(c.num_queries, data.layout.padded_dims)),
          offsets(data.offsets), constants(data.constants),
          items(static_cast<size_t>(c.num_queries) * capacity)
    {
        codes.layout = data.layout;
        codes.planes[0] = rows.get();
        codes.masks = masks.get();
        codes.offsets = offsets.get();
        codes.num_bundles = c.num_bundles;
        codes.first_row = 1000;
        asked.num_queries = lists.num_queries = c.num_queries;
        asked.components = operands.get();
        asked.constants = constants.get();
        lists.capacity = capacity;
        lists.items = items.get();
        lists.counts = counts.get();
        lists.limits = limits.get();
    }
};

// All that is expected, or where there is no room different ones of it.
bool is_found(const std::vector<uint64_t> &expected, const uint64_t *items, uint32_t count,
              uint32_t capacity)
{
    std::vector<uint64_t> got(items, items + std::min(count, capacity));
    std::sort(got.begin(), got.end(), std::greater<uint64_t>());
    return count == expected.size() &&
           std::includes(expected.begin(), expected.end(), got.begin(), got.end(),
                         std::greater<uint64_t>()) &&
           std::adjacent_find(got.begin(), got.end()) == got.end();
}

void check_case(const byte_case &c)
{
    const byte_data data = make_data(c);
    const uint32_t capacity = c.capacity ? c.capacity : static_cast<uint32_t>(data.most) + 1;
    const byte_arrays device(c, data, capacity);
    const bsw_device_part part = {c.first, c.num_bundles, c.step};
    const std::string shape = describe(c);
    if (!check_launch(bsw_device_byte_queries(c.num_queries, data.layout.padded_dims,
                                              device.queries.get(), device.operands.get(), nullptr),
                      shape) ||
        !check_launch(bsw_device_byte_scan(&device.codes, &part, &device.asked, c.factor,
                                           &device.lists, nullptr),
                      shape))
        return;
    const std::vector<uint32_t> counts = device.counts.values();
    const std::vector<uint64_t> items = device.items.values();
    for (uint32_t q = 0; q < c.num_queries; q++)
        check_that(is_found(data.expected[q], items.data() + static_cast<size_t>(q) * capacity,
                            counts[q], capacity),
                   "%s: query %u: %u candidates, %zu expected", shape.c_str(), q, counts[q],
                   data.expected[q].size());
}

// ---- lists ----

// Lists of one to three bundles, and which queries look at them; cut into items of a tile.
struct byte_lists {
    std::vector<bsw_device_list_item> items;
    std::vector<uint32_t> queries, rows;
    std::vector<uint32_t> list_of_bundle;
};

bool looks_at(const byte_case &c, uint32_t query, uint32_t list)
{
    return check_random(c.stream() + 5, query << 10 | list) % 3 != 0;
}

byte_lists make_lists(const byte_case &c, uint32_t tile)
{
    byte_lists out;
    const uint32_t most = bsw_device_list_tile_slots(tile);
    for (uint32_t place = 0; place < c.num_bundles * 32; place++) out.rows.push_back(5 * place + 3);
    for (uint32_t bundle = 0, list = 0; bundle < c.num_bundles; list++) {
        const uint32_t count = std::min(1 + (list + c.turn) % 3, c.num_bundles - bundle);
        bsw_device_list_item item = {bundle, count, static_cast<uint32_t>(out.queries.size()), 0};
        out.list_of_bundle.insert(out.list_of_bundle.end(), count, list);
        for (uint32_t q = c.num_queries; q-- > 0;) { // in another order than the batch's
            if (!looks_at(c, q, list)) continue;
            out.queries.push_back(q);
            if (++item.num_slots < most) continue;
            out.items.push_back(item);
            item.first_slot = static_cast<uint32_t>(out.queries.size());
            item.num_slots = 0;
        }
        out.items.push_back(item); // with no query, now and then
        bundle += count;
    }
    return out;
}

// What is found of the query in the lists that it looks at, best first.
std::vector<uint64_t> find_in_lists(const byte_case &c, const byte_data &data,
                                    const byte_lists &lists, uint32_t query)
{
    std::vector<uint64_t> out;
    for (uint64_t item : data.expected[query]) {
        const uint32_t place = bsw_candidate_row(item) - 1000;
        if (looks_at(c, query, lists.list_of_bundle[place / 32]))
            out.push_back(bsw_candidate_pack(bsw_candidate_score(item), lists.rows[place]));
    }
    std::sort(out.begin(), out.end(), std::greater<uint64_t>());
    return out;
}

void check_lists_case(const byte_case &c, uint32_t tile)
{
    const byte_data data = make_data(c);
    const byte_lists lists = make_lists(c, tile);
    const uint32_t capacity = c.capacity ? c.capacity : static_cast<uint32_t>(data.most) + 1;
    const byte_arrays device(c, data, capacity);
    const device_array<bsw_device_list_item> items(lists.items);
    const device_array<uint32_t> queries(lists.queries), rows(lists.rows),
        count(std::vector<uint32_t>(1, static_cast<uint32_t>(lists.items.size())));
    bsw_device_list_work work = {};
    work.items = items.get();
    work.num_items = static_cast<uint32_t>(lists.items.size()) + (c.turn % 2 ? 3 : 0);
    work.count = c.turn % 2 ? count.get() : nullptr;
    work.queries = queries.get();
    work.rows = rows.get();
    const std::string shape = describe(c) + ", lists, tile " + std::to_string(tile);
    if (!check_launch(bsw_device_byte_queries(c.num_queries, data.layout.padded_dims,
                                              device.queries.get(), device.operands.get(), nullptr),
                      shape) ||
        !check_launch(bsw_device_byte_list_scan(&device.codes, &work, tile, &device.asked, c.factor,
                                                &device.lists, nullptr),
                      shape))
        return;
    const std::vector<uint32_t> counts = device.counts.values();
    const std::vector<uint64_t> found = device.items.values();
    for (uint32_t q = 0; q < c.num_queries; q++) {
        const std::vector<uint64_t> expected = find_in_lists(c, data, lists, q);
        check_that(is_found(expected, found.data() + static_cast<size_t>(q) * capacity, counts[q],
                            capacity),
                   "%s: query %u: %u candidates, %zu expected", shape.c_str(), q, counts[q],
                   expected.size());
    }
}

void check_byte_refusals()
{
    bsw_device_codes codes = {};
    bsw_device_queries queries = {};
    bsw_device_lists lists = {};
    const bsw_device_part none = {0, 0, 1};
    device_array<int32_t> offsets(32);
    const auto scan = [&](int factor) {
        return bsw_device_byte_scan(&codes, &none, &queries, factor, &lists, nullptr);
    };
    codes.layout.num_segments = 1;
    codes.layout.segments[0].bits = 8;
    codes.layout.padded_dims = 32;
    check_that(scan(1) == cudaErrorInvalidValue, "byte_scan without offsets");
    codes.offsets = offsets.get();
    check_that(scan(1) == cudaSuccess, "byte_scan of nothing");
    check_that(scan(3) == cudaErrorInvalidValue, "byte_scan with factor 3");
    codes.layout.segments[0].bits = 7;
    check_that(scan(1) == cudaErrorInvalidValue, "byte_scan of 7 bits");
    codes.layout.segments[0].bits = 8;
    bsw_device_list_work work = {};
    const float addition = 1;
    const auto scan_lists = [&](uint32_t tile) {
        return bsw_device_byte_list_scan(&codes, &work, tile, &queries, 1, &lists, nullptr);
    };
    check_that(scan_lists(3) == cudaSuccess, "byte_list_scan of nothing");
    check_that(scan_lists(4) == cudaErrorInvalidValue, "byte_list_scan of tile 4");
    work.additions = &addition;
    check_that(scan_lists(0) == cudaErrorInvalidValue, "byte_list_scan with additions");
    check_that(bsw_device_byte_queries(1, 48, nullptr, nullptr, nullptr) == cudaErrorInvalidValue,
               "queries of 48 bytes");
}

} // namespace

void check_bytes()
{
    static const uint32_t dims[] = {1, 33, 96, 128, 131, 200},
                          queries[] = {1, 16, 17, 64, 65, 129, 7, 200};
    check_byte_refusals();
    for (uint32_t turn = 0; turn < (checks.small ? 6u : 48u); turn++) {
        byte_case c = {dims[turn % 6],
                       queries[(turn + turn / 8) % 8],
                       1 + turn % 11,
                       0,
                       1,
                       turn,
                       1 + static_cast<int>(turn / 2 % 2),
                       static_cast<byte_fill>((turn + turn / 4) % NUM_BYTE_FILLS),
                       0};
        if (turn % 5 == 1) c.step = 3;
        if (turn % 4 == 3) c.first = c.num_bundles / 2;
        if (turn % 7 == 2) c.capacity = 5;
        check_case(c);
        c.first = 0;
        c.step = 1;
        check_lists_case(c, turn % BSW_LIST_TILES);
    }
    check_lists_case({96, 300, 7, 0, 1, 101, 1, RANDOM_BYTES, 0}, 3);
    if (!checks.small) check_case({960, 20, 70, 3, 2, 100, 2, RANDOM_BYTES, 0});
}
