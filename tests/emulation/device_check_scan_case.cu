// SPDX-License-Identifier: Apache-2.0
// Cases of device_check_scan.cu and device_check_queues.cu, made and judged.
#include "device_check_scan_case.hpp"

#include <algorithm>
#include <cstdio>

#include "common/codes/result_order.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/select/select.h"

namespace scan_checks
{
namespace
{

uint32_t dims_of(const std::string &segments)
{
    uint32_t dims = 0;
    for (size_t at = 0; at < segments.size(); at = segments.find(',', at) + 1) {
        dims += static_cast<uint32_t>(std::stoul(segments.substr(at)));
        if (segments.find(',', at) == std::string::npos) break;
    }
    return dims;
}

bsw_code_layout make_layout(const std::string &segments)
{
    bsw_code_layout layout;
    bsw_error error;
    if (bsw_code_layout_parse(segments.c_str(), dims_of(segments), &layout, &error) != BSW_OK)
        check_that(false, "%s: %s", segments.c_str(), error.message);
    return layout;
}

// row: the document or query; place: which of its words.
uint32_t fill_word(const scan_case &c, uint64_t stream, size_t row, size_t place)
{
    switch (c.fill) {
    case TIED_ROWS:
        return static_cast<uint32_t>(check_random(stream, place));
    case EXTREME_ROWS: // all ones or all zeros, so that the largest sums of both signs occur
        return check_random(stream, row) & 1 ? 0xffffffffu : 0;
    default:
        return static_cast<uint32_t>(check_random(stream, row << 20 | place));
    }
}

uint32_t valid_bits(const bsw_segment &segment, size_t word)
{
    return word == segment.words - 1 && segment.dims % 32 ? (1u << segment.dims % 32) - 1
                                                          : 0xffffffffu;
}

void fill_planes(const scan_case &c, host_data &data)
{
    for (uint32_t s = 0; s < data.layout.num_segments; s++) {
        const bsw_segment &segment = data.layout.segments[s];
        data.planes[s].resize(c.num_bundles * bsw_segment_bundle_words(&segment));
        const size_t row_words = segment.bits * segment.words;
        for (size_t at = 0; at < data.planes[s].size(); at++) {
            size_t row = at / 32 / row_words * 32 + at % 32, place = at / 32 % row_words;
            data.planes[s][at] =
                fill_word(c, c.stream + s, row, place) & valid_bits(segment, place % segment.words);
        }
    }
}

void fill_queries(const scan_case &c, host_data &data)
{
    data.query_words = static_cast<uint32_t>(bsw_layout_query_words(&data.layout, c.query_bits));
    for (uint32_t q = 0; q < c.num_queries; q++) {
        size_t at = 0;
        for (uint32_t s = 0; s < data.layout.num_segments; s++) {
            const bsw_segment &segment = data.layout.segments[s];
            for (size_t i = 0; i < c.query_bits * segment.words; i++, at++) {
                data.words.push_back(fill_word(c, c.stream + 50, q, at) &
                                     valid_bits(segment, i % segment.words));
            }
        }
    }
}

void fill_masks(const scan_case &c, host_data &data)
{
    for (uint32_t b = 0; b < c.num_bundles; b++) {
        uint64_t r = check_random(c.stream + 51, b);
        data.masks.push_back(r % 4 ? 0xffffffffu : static_cast<uint32_t>(r >> 32));
    }
    data.masks.back() &= 0x1ffu >> c.stream % 9; // a ragged last bundle, down to one row
}

void fill_keys(const scan_case &c, host_data &data)
{
    static const uint16_t hostile_scales[] = {0,      1,      0x03ff,
                                              0x0400, 0x3c00, 0x7bff}; // subnormal too
    static const float hostile_biases[] = {0.0f, -0.0f, 1e30f, -1e30f, 0x1p-149f, 3.5f};
    if (c.keys == INTEGER_KEYS) return;
    for (size_t i = 0; i < c.num_bundles * 32; i++) {
        uint64_t r = check_random(c.stream + 52, c.fill == TIED_ROWS ? i % 2 : i);
        data.scales.push_back(c.keys == HOSTILE_KEYS ? hostile_scales[r % 6]
                                                     : static_cast<uint16_t>(0x2c00 + r % 0x1000));
        data.biases.push_back(c.keys == HOSTILE_KEYS
                                  ? hostile_biases[r / 6 % 6]
                                  : static_cast<float>(static_cast<int>(r >> 20 & 0xffff) - 32768) /
                                        64.0f);
    }
    for (uint32_t q = 0; q < c.num_queries; q++)
        data.query_scales.push_back(static_cast<float>(1 + check_random(c.stream + 53, q) % 1000) /
                                    977.0f);
}

uint32_t choose_limit(limit_shape shape, uint32_t query, const std::vector<uint64_t> &all)
{
    if (shape == MIXED) shape = static_cast<limit_shape>(query % MIXED);
    if (shape == WIDE || (all.empty() && shape != NONE)) return 0;
    switch (shape) {
    case SOME:
        return bsw_candidate_score(all[all.size() / 8]) + query % 3 - 1;
    case WORST:
        return bsw_candidate_score(all.back());
    case BEST:
        return bsw_candidate_score(all.front());
    default:
        return UINT32_MAX;
    }
}

// What stood there before, then min(total, room) different candidates of those expected, then junk.
bool is_list(const uint64_t *items, uint32_t capacity, uint32_t query, uint32_t count,
             const std::vector<uint64_t> &expected)
{
    if (count != prefilled + expected.size()) return false;
    for (uint32_t i = 0; i < prefilled; i++) {
        if (items[i] != prefilled_item(query, i)) return false;
    }
    const uint32_t stored = std::min(count, capacity);
    std::vector<uint64_t> got(items + prefilled, items + stored);
    std::sort(got.begin(), got.end(), std::greater<uint64_t>());
    bool all_there = std::includes(expected.begin(), expected.end(), got.begin(), got.end(),
                                   std::greater<uint64_t>());
    bool all_differ = std::adjacent_find(got.begin(), got.end()) == got.end();
    return all_there && all_differ &&
           std::all_of(items + stored, items + capacity, [](uint64_t item) { return item == 7; });
}

} // namespace

std::string describe(const scan_case &c, const char *kernel)
{
    char text[300];
    snprintf(
        text, sizeof text,
        "%s %s, %u query bits, %u queries, bundles %u to %u by %u of %u, keys %d, fill %d, limits "
        "%d%s",
        kernel, c.segments.c_str(), c.query_bits, c.num_queries, c.first, c.last, c.step,
        c.num_bundles, c.keys, c.fill, c.limits, c.overflows ? ", overflow" : "");
    return text;
}

host_data make_data(const scan_case &c)
{
    host_data data;
    data.layout = make_layout(c.segments);
    fill_planes(c, data);
    fill_queries(c, data);
    fill_masks(c, data);
    fill_keys(c, data);
    return data;
}

std::vector<uint64_t> reference_candidates(const scan_case &c, const host_data &data,
                                           uint32_t query, uint32_t limit)
{
    const size_t num_bundles = c.last - c.first, rows = num_bundles * 32;
    std::vector<int32_t> dots(rows);
    const uint32_t *words = data.words.data() + query * data.query_words;
    for (uint32_t s = 0; s < data.layout.num_segments; s++) {
        const bsw_segment &segment = data.layout.segments[s];
        bsw_plane_scan_reference.dots(&segment, bsw_all_words(&segment),
                                      data.planes[s].data() +
                                          c.first * bsw_segment_bundle_words(&segment),
                                      num_bundles, words, c.query_bits, s > 0, dots.data());
        words += c.query_bits * segment.words;
    }
    std::vector<uint64_t> out(rows);
    size_t count;
    const uint32_t row = c.first_row + c.first * 32;
    std::vector<uint32_t> masks(data.masks.begin() + c.first, data.masks.begin() + c.last);
    for (size_t i = 0; i < num_bundles; i++) masks[i] = i % c.step == 0 ? masks[i] : 0;
    if (c.keys == INTEGER_KEYS) {
        count = bsw_select_reference.filter_integer(dots.data(), masks.data(), num_bundles, row,
                                                    limit, out.data());
    } else {
        count = bsw_select_reference.filter_affine(
            dots.data(), data.scales.data() + c.first * 32, data.biases.data() + c.first * 32,
            data.query_scales[query], masks.data(), num_bundles, row, limit, out.data());
    }
    out.resize(count);
    std::sort(out.begin(), out.end(), std::greater<uint64_t>());
    return out;
}

expected_lists expect(const scan_case &c, const host_data &data)
{
    expected_lists out = {{}, {}, 0};
    for (uint32_t q = 0; q < c.num_queries; q++) {
        std::vector<uint64_t> all = reference_candidates(c, data, q, 0);
        out.limits.push_back(choose_limit(c.limits, q, all));
        out.candidates.push_back(reference_candidates(c, data, q, out.limits[q]));
        out.most = std::max(out.most, out.candidates[q].size());
    }
    return out;
}

void check_scan(const scan_case &c, const char *kernel, const scan_fn &scan,
                const device_data &device, const expected_lists &expected)
{
    const std::string shape = describe(c, kernel);
    const uint32_t capacity =
        prefilled + (c.overflows ? 5 : static_cast<uint32_t>(expected.most) + 2);
    device_lists lists(c.num_queries, capacity, expected.limits);
    const bsw_device_part part = {c.first, c.last, c.step};
    if (!check_launch(scan(&device.codes, &part, &device.queries, &lists.lists, nullptr), shape))
        return;
    std::vector<uint64_t> items = lists.items.values();
    std::vector<uint32_t> counts = lists.counts.values();
    for (uint32_t q = 0; q < c.num_queries; q++) {
        check_that(is_list(items.data() + static_cast<size_t>(q) * capacity, capacity, q, counts[q],
                           expected.candidates[q]),
                   "%s: query %u: %u candidates, %zu expected", shape.c_str(), q,
                   counts[q] - prefilled, expected.candidates[q].size());
    }
    check_that(lists.limits.values() == expected.limits, "%s: limits changed", shape.c_str());
}

uint32_t check_kernels(const scan_case &c, bsw_scan_family family, bool is_hopper,
                       const device_data &device, const expected_lists &expected)
{
    using namespace std::placeholders;
    uint32_t num = 0;
    for (uint32_t i = 0; i < BSW_NUM_SCANS; i++) {
        const bsw_scan_row &row = bsw_scan_rows[i];
        if (row.family != family || (row.is_hopper != 0) != is_hopper ||
            !bsw_device_scan_fits(i, &device.codes.layout, c.query_bits, c.num_queries))
            continue;
        num++;
        check_scan(c, row.name, std::bind(bsw_device_scan_by, i, _1, _2, _3, _4, _5), device,
                   expected);
    }
    return num;
}

int unpack(const host_data &data, const device_data &device, uint32_t query_bits)
{
    return bsw_device_unpack_queries(&data.layout, device.queries.num_queries, query_bits,
                                     data.query_words, device.words.get(), device.components.get(),
                                     device.constants.get(), nullptr);
}

scan_case make_case(const std::string &segments, uint32_t query_bits, uint32_t num_queries,
                    uint32_t num_bundles, uint32_t turn)
{
    scan_case c;
    c.segments = segments;
    c.query_bits = query_bits;
    c.num_queries = num_queries;
    c.num_bundles = num_bundles;
    c.first = turn % 4 == 1 && num_bundles > 2 ? 1 : 0;
    c.last = turn % 4 == 3 && num_bundles > 3 ? num_bundles - 1 : num_bundles;
    c.step = 1 + (turn % 5 == 1) + 2 * (turn % 7 == 3);
    c.keys = static_cast<key_shape>(turn % NUM_KEY_SHAPES);
    c.limits = static_cast<limit_shape>(turn / NUM_KEY_SHAPES % NUM_LIMITS);
    c.fill = static_cast<fill_shape>((turn + turn / 18) % NUM_FILLS);
    c.overflows = turn % 11 == 2 || turn % 11 == 5;
    c.stream = 1000 * static_cast<uint64_t>(turn);
    return c;
}

} // namespace scan_checks
