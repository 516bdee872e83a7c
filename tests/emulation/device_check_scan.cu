// Both scans, and the unpacking of queries, against plane_scan, select and matrix_scan of the CPU.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>

#include "common/code_layout.h"
#include "common/half.h"
#include "common/result_order.h"
#include "device_check.hpp"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/select/select.h"

namespace
{

enum key_shape { INTEGER_KEYS, FLOAT_KEYS, HOSTILE_KEYS, NUM_KEY_SHAPES };
enum fill_shape { RANDOM_ROWS, TIED_ROWS, EXTREME_ROWS, NUM_FILLS };
// WIDE: every row passes; NONE: none does; SOME: about an eighth; WORST, BEST: the limit is just
// what the last or the first row has; MIXED: these in turns.
enum limit_shape { WIDE, NONE, SOME, WORST, BEST, MIXED, NUM_LIMITS };

struct scan_case {
    std::string segments;
    uint32_t query_bits, num_queries, num_bundles, first, last, step;
    key_shape keys;
    fill_shape fill;
    limit_shape limits;
    bool overflows; // room for a few rows alone
    uint64_t stream;
};

constexpr uint32_t prefilled = 3; // items that stand in a list before the scan

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

// Everything of a case on the host.
struct host_data {
    bsw_code_layout layout;
    std::vector<uint32_t> planes[BSW_MAX_SEGMENTS];
    std::vector<uint32_t> masks, words;
    std::vector<uint16_t> scales;
    std::vector<float> biases, query_scales;
    uint32_t query_words;
};

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

constexpr uint32_t first_row = 1000; // of bundle 0

// Candidates of one query over the case's bundles that reach the limit, best first.
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
    const uint32_t row = first_row + c.first * 32;
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

struct expected_lists {
    std::vector<uint32_t> limits;
    std::vector<std::vector<uint64_t>> candidates;
    size_t most; // candidates of a query
};

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

uint64_t prefilled_item(uint32_t query, uint32_t i)
{
    return check_random(99, query * prefilled + i);
}

// A case in device memory.
struct device_data {
    std::vector<std::unique_ptr<device_array<uint32_t>>> planes;
    device_array<uint32_t> masks, words;
    device_array<uint16_t> scales;
    device_array<float> biases, query_scales;
    device_array<int8_t> components;
    device_array<int32_t> constants;
    bsw_device_codes codes;
    bsw_device_queries queries;

    device_data(const scan_case &c, const host_data &data)
        : masks(data.masks), words(data.words), scales(data.scales), biases(data.biases),
          query_scales(data.query_scales),
          components(static_cast<size_t>(c.num_queries) * data.layout.padded_dims),
          constants(c.num_queries)
    {
        codes = {};
        codes.layout = data.layout;
        for (uint32_t s = 0; s < data.layout.num_segments; s++) {
            planes.emplace_back(new device_array<uint32_t>(data.planes[s]));
            codes.planes[s] = planes[s]->get();
        }
        codes.scales = scales.get();
        codes.biases = biases.get();
        codes.masks = masks.get();
        codes.num_bundles = c.num_bundles;
        codes.first_row = first_row;
        queries = {c.num_queries,    c.query_bits,    data.query_words,  words.get(),
                   components.get(), constants.get(), query_scales.get()};
    }
};

// Lists with some items in each already, the rest junk.
struct device_lists {
    device_array<uint64_t> items;
    device_array<uint32_t> counts, limits;
    bsw_device_lists lists;

    device_lists(uint32_t num_queries, uint32_t capacity, const std::vector<uint32_t> &limits_)
        : items(std::vector<uint64_t>(static_cast<size_t>(num_queries) * capacity, 7)),
          counts(std::vector<uint32_t>(num_queries, prefilled)), limits(limits_)
    {
        std::vector<uint64_t> first = items.values();
        for (uint32_t q = 0; q < num_queries; q++) {
            for (uint32_t i = 0; i < prefilled; i++)
                first[static_cast<size_t>(q) * capacity + i] = prefilled_item(q, i);
        }
        items.put(first);
        lists = {num_queries, capacity, items.get(), counts.get(), limits.get(), {}};
    }
};

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

typedef std::function<int(const bsw_device_codes *, const bsw_device_part *,
                          const bsw_device_queries *, const bsw_device_lists *, bsw_stream)>
    scan_fn;

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

int unpack(const host_data &data, const device_data &device, uint32_t query_bits)
{
    return bsw_device_unpack_queries(&data.layout, device.queries.num_queries, query_bits,
                                     data.query_words, device.words.get(), device.components.get(),
                                     device.constants.get(), nullptr);
}

// ---- the progressive scan ----

constexpr double tail_unit = 0.125;

// Of each row: a half not below what the dimensions from stage_dims on can add for each unit of a
// query's norm there.
std::vector<uint16_t> make_tails(const host_data &data, uint32_t stage_dims)
{
    std::vector<uint16_t> tails;
    for (size_t row = 0; row < data.scales.size(); row++) {
        uint64_t squares = 0;
        for (uint32_t s = 0; s < data.layout.num_segments; s++) {
            const bsw_segment &segment = data.layout.segments[s];
            const uint32_t *planes =
                data.planes[s].data() + row / 32 * bsw_segment_bundle_words(&segment) + row % 32;
            for (uint32_t i = 0; i < segment.dims; i++) {
                int u = 0;
                if (segment.padded_dim + i < stage_dims) continue;
                for (uint32_t p = 0; p < segment.bits; p++)
                    u = 2 * u +
                        static_cast<int>(planes[(p * segment.words + i / 32) * 32] >> i % 32 & 1);
                const int code = (1 << segment.bits) - 1 - 2 * u;
                squares += static_cast<uint64_t>(code * code);
            }
        }
        tails.push_back(bsw_half_up(bsw_half_to_float(data.scales[row]) *
                                    std::sqrt(static_cast<double>(squares)) / tail_unit *
                                    (1 + 0x1p-40)));
    }
    return tails;
}

void check_stage_numbers(const scan_case &c, const host_data &data, uint32_t stage_dims,
                         const std::vector<int32_t> &constants, const std::vector<float> &reaches)
{
    std::vector<int8_t> q(data.layout.padded_dims);
    for (uint32_t i = 0; i < c.num_queries; i++) {
        int32_t whole, constant = 0;
        double beyond = 0;
        bsw_matrix_scan_reference.unpack_query(
            &data.layout, data.words.data() + i * data.query_words, c.query_bits, q.data(), &whole);
        for (uint32_t s = 0; s < data.layout.num_segments; s++) {
            const bsw_segment &segment = data.layout.segments[s];
            for (uint32_t dim = segment.padded_dim; dim < segment.padded_dim + 32 * segment.words;
                 dim++) {
                if (dim < stage_dims)
                    constant += ((1 << segment.bits) - 1) * q[dim];
                else
                    beyond += q[dim] * q[dim];
            }
        }
        const double reach =
            static_cast<double>(data.query_scales[i]) * tail_unit * std::sqrt(beyond);
        check_that(constants[i] == constant && reaches[i] >= reach &&
                       reaches[i] <= reach * (1 + 0x1p-19),
                   "%s: query %u: constant %d, reach %g, expected %d, %g",
                   describe(c, "stage_queries").c_str(), i, constants[i],
                   static_cast<double>(reaches[i]), constant, reach);
    }
}

struct stage_result {
    uint64_t survivors, pairs;
};

// With the stage's end as given; queries are unpacked.
stage_result check_stage(const scan_case &c, const host_data &data, const device_data &device,
                         const expected_lists &expected, uint32_t stage_dims)
{
    const std::string shape =
        describe(c, "progressive_scan") + ", stage " + std::to_string(stage_dims);
    device_array<uint16_t> tails(make_tails(data, stage_dims));
    device_array<int32_t> constants(c.num_queries);
    device_array<float> reaches(c.num_queries);
    device_array<uint64_t> survivors(std::vector<uint64_t>(1, 5));
    const bsw_device_stage stage = {stage_dims, constants.get(), reaches.get(), survivors.get()};
    uint64_t rows = 0, candidates = 0;
    for (uint32_t b = c.first; b < c.last; b += c.step)
        rows += static_cast<uint64_t>(__builtin_popcount(data.masks[b]));
    for (const std::vector<uint64_t> &list : expected.candidates) candidates += list.size();
    if (!check_launch(bsw_device_stage_queries(&data.layout, stage_dims, tail_unit, &device.queries,
                                               constants.get(), reaches.get(), nullptr),
                      shape))
        return {0, 0};
    check_stage_numbers(c, data, stage_dims, constants.values(), reaches.values());
    check_scan(
        c, shape.c_str(),
        [&](const bsw_device_codes *codes, const bsw_device_part *part,
            const bsw_device_queries *queries, const bsw_device_lists *lists, bsw_stream stream) {
            bsw_device_codes with_tails = *codes;
            with_tails.tails = tails.get();
            return bsw_device_progressive_scan(&with_tails, &stage, part, queries, lists, stream);
        },
        device, expected);
    const uint64_t count = survivors.values()[0] - 5;
    check_that(count >= candidates && count <= rows * c.num_queries,
               "%s: %llu of %llu pairs went on", shape.c_str(),
               static_cast<unsigned long long>(count),
               static_cast<unsigned long long>(rows * c.num_queries));
    return {count, rows * c.num_queries};
}

void check_some_stage(const scan_case &c, const host_data &data, const device_data &device,
                      const expected_lists &expected)
{
    const uint32_t words = data.layout.padded_dims / 32;
    if (c.keys == INTEGER_KEYS || words < 2 || !bsw_device_stage_fits(&data.layout, c.query_bits))
        return;
    check_stage(c, data, device, expected,
                32 * (1 + static_cast<uint32_t>(c.stream / 1000) % (words - 1)));
}

// Where the device is one: under the emulator always, where it stands in for one.
void check_hopper(const scan_case &c, const device_data &device, const expected_lists &expected)
{
    const hopper_turn turn;
    if (!turn.is_hopper) return;
    const bool has = bsw_device_has_hopper(&device.codes.layout) != 0;
    check_that(has == (device.codes.layout.padded_dims <= 256), "%s: has_hopper",
               c.segments.c_str());
    if (has) check_scan(c, "matrix_scan_hopper", bsw_device_matrix_scan_hopper, device, expected);
}

void check_case(const scan_case &c)
{
    host_data data = make_data(c);
    expected_lists expected = expect(c, data);
    device_data device(c, data);
    check_scan(c, "plane_scan", bsw_device_plane_scan, device, expected);
    if (!check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries"))) return;
    check_scan(c, "matrix_scan", bsw_device_matrix_scan, device, expected);
    check_some_stage(c, data, device, expected);
#if !defined(__CUDACC__)
    if (c.stream / 1000 % 4) return; // its blocks of 384 threads are slow here
#endif
    check_hopper(c, device, expected);
}

// Turns through all shapes: 18 turns have every pair of keys and limits.
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

const char *const layouts[] = {"1x1",  "31x3",  "32x8",     "33x3,7x2",
                               "96x3", "100x4", "33x8,1x1", "64x2,40x5,33x7,1x6"};

// Every layout with every shape of keys and limits.
void check_layouts(uint32_t &turn)
{
    static const uint32_t queries[] = {1, 2, 3, 5, 9};
    for (const char *layout : layouts) {
        for (uint32_t i = 0; i < (checks.small ? 3u : 18u); i++, turn++)
            check_case(make_case(layout, 1 + turn % 7, queries[turn % 5], 1 + turn % 4, turn));
    }
}

void check_bits(uint32_t &turn)
{
    for (uint32_t bits = 1; bits <= 8; bits++) {
        for (uint32_t query_bits = 1; query_bits <= 7; query_bits++, turn++) {
            if (checks.small && turn % 5 > 0) continue;
            check_case(make_case("97x" + std::to_string(bits), query_bits, 2, 3, turn));
        }
    }
}

void check_large(const char *layout, uint32_t num_queries, uint32_t num_bundles, uint32_t turn)
{
    scan_case c = make_case(layout, 4, num_queries, num_bundles, turn);
    c.keys = FLOAT_KEYS; // no bias so large that a wrong dot would not show
    c.fill = RANDOM_ROWS;
    c.limits = SOME;
    check_case(c);
}

// Tiles, groups and blocks: numbers of queries and bundles next to theirs.
void check_sizes(uint32_t &turn)
{
    static const uint32_t queries[] = {8, 15, 16, 17, 63, 64, 65, 255, 256, 257};
    static const uint32_t bundles[] = {7, 8, 9, 2, 5};
    for (uint32_t i = 0; i < (checks.small ? 8u : 20u); i++, turn++) {
        if (checks.small && queries[i % 10] > 65) continue;
        check_case(make_case("33x2,20x3", 4, queries[i % 10], bundles[i % 5], turn));
    }
    if (checks.small) return;
    check_large("33x3,7x2", 3, 700, turn++); // blocks of several tiles
    check_large("40x3", 70, 150, turn++);
    check_large("9x2", 1, 1100, turn++); // warps of several bundles
    check_large("9x2", 260, 90, turn++);
    check_large("150x2", 7, 130, turn++); // of several chunks, too
    check_large("128x3", 200, 5, turn++); // more than 48 KB of shared memory
}

// Rows of several chunks of shared memory; dots of 2^22 and more; a query that fills shared memory.
void check_long_rows(uint32_t &turn)
{
    static const char *const long_layouts[] = {"129x3", "200x8", "1000x3", "260x1,300x4"};
    for (const char *layout : long_layouts) {
        for (uint32_t i = 0; i < (checks.small ? 1u : 6u); i++, turn++)
            check_case(make_case(layout, turn % 2 ? 7 : 6, 1 + turn % 18, 2, turn));
    }
    if (checks.small) return;
    scan_case c = make_case("60000x1", 7, 1, 1, turn++); // a query of 52 KB
    c.keys = FLOAT_KEYS;
    check_case(c);
    for (uint32_t query_bits = 6; query_bits <= 7; query_bits++) {
        c = make_case("260x8", query_bits, query_bits == 6 ? 5 : 70, 3,
                      turn++); // dots from 2^22 on
        c.keys = FLOAT_KEYS;
        c.fill = EXTREME_ROWS;
        c.limits = WIDE;
        check_case(c);
    }
}

// Codes whose last dimensions weigh little: nearly all pairs stop that do not belong to the answer.
// Few and many queries; tiles of one and of more chunks; a stage that ends inside a segment.
void check_stops(uint32_t &turn)
{
    static const struct {
        const char *segments;
        uint32_t stage_dims, queries, bundles;
    } cases[] = {{"64x4,32x1", 64, 3, 40},
                 {"32x4,64x1", 32, 40, 9},
                 {"96x3", 64, 70, 6},
                 {"64x4,32x1", 64, 260, 20},
                 {"128x4,64x4,32x1", 192, 20, 9}};
    for (const auto &own : cases) {
        scan_case c = make_case(own.segments, 5, own.queries, own.bundles, turn++);
        if (checks.small && own.queries > 40) continue;
        c.keys = FLOAT_KEYS;
        c.fill = RANDOM_ROWS;
        c.limits = SOME;
        c.overflows = false;
        c.first = 0;
        c.last = own.bundles;
        c.step = 1;
        const host_data data = make_data(c);
        const expected_lists expected = expect(c, data);
        device_data device(c, data);
        if (!check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries")))
            continue;
        const stage_result r = check_stage(c, data, device, expected, own.stage_dims);
        const bool is_light = own.segments[0] != '9'; // what comes after the stage
        check_that(r.survivors < (is_light ? r.pairs / 3 : r.pairs),
                   "%s: %llu of %llu pairs went on", describe(c, "progressive_scan").c_str(),
                   static_cast<unsigned long long>(r.survivors),
                   static_cast<unsigned long long>(r.pairs));
    }
}

// Biases from those of ordinary rows up to where the bound's arithmetic has no room for them.
void check_steep_biases(uint32_t &turn)
{
    for (int power = 6; power < (checks.small ? 10 : 18); power++) {
        for (limit_shape limits : {SOME, MIXED}) {
            scan_case c = make_case("64x4,32x1", 5, 9, 5, turn++);
            c.keys = FLOAT_KEYS;
            c.fill = RANDOM_ROWS;
            c.limits = limits;
            host_data data = make_data(c);
            for (float &bias : data.biases) bias = std::ldexp(bias, power);
            const expected_lists expected = expect(c, data);
            device_data device(c, data);
            if (check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries")))
                check_stage(c, data, device, expected, 64);
        }
    }
}

// The Hopper kernel alone: every width that is compiled, with blocks of more tiles than its rings
// have places, few and many queries; tiles that end anywhere.
void check_hopper_widths(uint32_t &turn)
{
    static const char *const widths[] = {"20x2",       "64x1,9x4",  "96x3",  "160x8",
                                         "200x5,40x8", "31x7,33x3", "128x4", "256x8"};
    static const uint32_t queries[] = {3, 65, 130, 33, 5, 140, 64, 2};
    for (uint32_t i = 0; i < (checks.small ? 2u : 16u); i++, turn++) {
        const bool is_long = i < 8 && (!checks.small || i == 0);
        scan_case c = make_case(widths[i % 8], is_long ? 2 : 1 + turn % 7, queries[(i + i / 8) % 8],
                                5 + turn % 8, turn);
        if (is_long) {
            c.num_bundles = c.last = c.num_queries > 65 ? 170 : 300;
            c.first = i;
            c.step = 1;
            c.limits = SOME;
        }
        c.fill = i % 4 == 3 ? EXTREME_ROWS : RANDOM_ROWS;
        host_data data = make_data(c);
        expected_lists expected = expect(c, data);
        device_data device(c, data);
        if (check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries")))
            check_hopper(c, device, expected);
    }
}

} // namespace

void check_scans()
{
    uint32_t turn = 0;
    check_layouts(turn);
    check_bits(turn);
    check_sizes(turn);
    check_long_rows(turn);
    check_stops(turn);
    check_steep_biases(turn);
    check_hopper_widths(turn);
}

void check_unpacked_queries()
{
    static const char *const some_layouts[] = {"1x1", "33x3,7x2", "64x2,40x5,33x7,1x6", "5000x2"};
    uint32_t turn = 0;
    for (const char *layout : some_layouts) {
        for (uint32_t query_bits = 1; query_bits <= 7; query_bits++) {
            scan_case c = make_case(layout, query_bits, 1 + turn % 3, 1, turn);
            turn++;
            host_data data = make_data(c);
            device_data device(c, data);
            if (!check_launch(unpack(data, device, query_bits), describe(c, "unpack_queries")))
                continue;
            std::vector<int8_t> got = device.components.values();
            std::vector<int32_t> constants = device.constants.values();
            const uint32_t dims = data.layout.padded_dims;
            for (uint32_t q = 0; q < c.num_queries; q++) {
                std::vector<int8_t> plain(dims), expected(dims);
                int32_t constant;
                bsw_matrix_scan_reference.unpack_query(&data.layout,
                                                       data.words.data() + q * data.query_words,
                                                       query_bits, plain.data(), &constant);
                for (uint32_t i = 0; i < dims; i++) // device order
                    expected[i] = plain[i / 32 * 32 + i % 4 * 8 + i % 32 / 4];
                bool same = std::equal(expected.begin(), expected.end(), got.begin() + q * dims) &&
                            constants[q] == constant;
                check_that(same, "%s: query %u", describe(c, "unpack_queries").c_str(), q);
            }
        }
    }
}

// What a launcher must refuse without touching anything, and what it must do nothing for.
void check_refusals()
{
    scan_case c = make_case("33x3,7x2", 4, 2, 3, 0);
    host_data data = make_data(c);
    device_data device(c, data);
    device_lists lists(2, 8, {0, 0});
    auto refuses = [&](const bsw_device_part &part, const bsw_device_queries &queries,
                       const bsw_device_lists &to) {
        check_that(bsw_device_plane_scan(&device.codes, &part, &queries, &to, nullptr) ==
                           cudaErrorInvalidValue &&
                       bsw_device_matrix_scan(&device.codes, &part, &queries, &to, nullptr) ==
                           cudaErrorInvalidValue,
                   "a scan of bundles %u to %u by %u, query bits %u, was not refused", part.first,
                   part.last, part.step, queries.query_bits);
    };
    const bsw_device_part all = {0, 3, 1}, none = {3, 3, 1};
    if (!bsw_device_has_hopper(&data.layout))
        check_that(bsw_device_matrix_scan_hopper(&device.codes, &all, &device.queries, &lists.lists,
                                                 nullptr) == cudaErrorInvalidValue,
                   "the Hopper kernel was not refused on another device");
    refuses({2, 1, 1}, device.queries, lists.lists);
    refuses({0, 4, 1}, device.queries, lists.lists);
    refuses({0, 3, 0}, device.queries, lists.lists);
    bsw_device_queries wrong = device.queries;
    wrong.query_bits = 8;
    refuses(all, wrong, lists.lists);
    wrong = device.queries;
    wrong.query_words++;
    refuses(all, wrong, lists.lists);
    bsw_device_lists long_lists = lists.lists;
    long_lists.capacity = UINT32_MAX - 95;
    refuses(all, device.queries, long_lists);
    check_that(bsw_device_cut(&lists.lists, 0, nullptr) == cudaErrorInvalidValue, "cut to 0");
    check_that(bsw_device_cut(&lists.lists, 9, nullptr) == cudaErrorInvalidValue,
               "cut to more than the capacity");
    check_launch(
        bsw_device_plane_scan(&device.codes, &none, &device.queries, &lists.lists, nullptr),
        "no bundles");
    check_that(lists.counts.values() == std::vector<uint32_t>(2, prefilled), "no bundles: counts");
}
