// Scans into rbeGIR's queues, and what is taken from them, against select's queue_insert.
#include <algorithm>
#include <cstdio>
#include <functional>

#include "common/codes/result_order.h"
#include "device_check.hpp"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/select/select.h"

namespace
{

constexpr uint32_t query_bits = 4;

struct queue_case {
    uint32_t dims, bits, num_queries, num_bundles;
    uint32_t first_row;     // of bundle 0
    uint32_t first, last;   // bundles that are scanned
    uint32_t items, length; // of a thread
    bool has_keys, is_tied, has_limits;
    uint64_t stream;
};

std::string describe(const queue_case &c, const char *kernel)
{
    char text[200];
    snprintf(text, sizeof text,
             "%s %ux%u, %u queries, bundles %u to %u from row %u, items %u, length %u, keys %d, "
             "ties %d, limits %d",
             kernel, c.dims, c.bits, c.num_queries, c.first, c.last, c.first_row, c.items, c.length,
             c.has_keys, c.is_tied, c.has_limits);
    return text;
}

struct queue_data {
    bsw_code_layout layout;
    std::vector<uint32_t> planes, masks, words, limits;
    std::vector<uint16_t> scales;
    std::vector<float> biases, query_scales;
};

uint32_t valid_bits(const bsw_segment &segment, size_t word)
{
    return word == segment.words - 1 && segment.dims % 32 ? (1u << segment.dims % 32) - 1
                                                          : 0xffffffffu;
}

void fill_keys(const queue_case &c, queue_data &data)
{
    for (uint32_t row = 0; c.has_keys && row < c.num_bundles * 32; row++) {
        const uint64_t r = check_random(c.stream + 2, c.is_tied ? row % 2 : row);
        data.scales.push_back(static_cast<uint16_t>(0x2c00 + r % 0x1000));
        data.biases.push_back(static_cast<float>(r >> 20 & 0xff) / 8.0f);
    }
    for (uint32_t q = 0; q < c.num_queries; q++)
        data.query_scales.push_back(0.5f + static_cast<float>(q));
}

queue_data make_data(const queue_case &c)
{
    queue_data data;
    bsw_error error;
    const std::string text = std::to_string(c.dims) + "x" + std::to_string(c.bits);
    check_that(bsw_code_layout_parse(text.c_str(), c.dims, &data.layout, &error) == BSW_OK, "%s",
               text.c_str());
    const bsw_segment &segment = data.layout.segments[0];
    const size_t row_words = segment.bits * segment.words;
    for (size_t i = 0; i < c.num_bundles * row_words * 32; i++) {
        const size_t place = i / 32 % row_words;
        const uint64_t r = check_random(c.stream, c.is_tied ? place : i);
        data.planes.push_back(static_cast<uint32_t>(r) &
                              valid_bits(segment, place % segment.words));
    }
    for (size_t i = 0; i < c.num_queries * query_bits * segment.words; i++)
        data.words.push_back(static_cast<uint32_t>(check_random(c.stream + 1, i)) &
                             valid_bits(segment, i % segment.words));
    for (uint32_t b = 0; b < c.num_bundles; b++) {
        const uint64_t r = check_random(c.stream + 3, b);
        data.masks.push_back(r % 4 ? 0xffffffffu : static_cast<uint32_t>(r >> 32));
    }
    data.masks.back() &= 0x1ffu >> c.stream / 10 % 9; // a ragged last bundle, down to one row
    fill_keys(c, data);
    return data;
}

// Rows of the case that reach the limit, ascending.
std::vector<uint64_t> find_candidates(const queue_case &c, const queue_data &data, uint32_t query,
                                      uint32_t limit)
{
    const bsw_segment &segment = data.layout.segments[0];
    const uint32_t bundles = c.last - c.first, row = c.first_row + c.first * 32;
    std::vector<int32_t> dots(bundles * 32);
    std::vector<uint64_t> out(bundles * 32);
    if (bundles == 0) return out;
    bsw_plane_scan_reference.dots(&segment, bsw_all_words(&segment),
                                  data.planes.data() + c.first * bsw_segment_bundle_words(&segment),
                                  bundles, data.words.data() + query * query_bits * segment.words,
                                  query_bits, 0, dots.data());
    const uint32_t *masks = data.masks.data() + c.first;
    out.resize(c.has_keys ? bsw_select_reference.filter_affine(
                                dots.data(), data.scales.data() + c.first * 32,
                                data.biases.data() + c.first * 32, data.query_scales[query], masks,
                                bundles, row, limit, out.data())
                          : bsw_select_reference.filter_integer(dots.data(), masks, bundles, row,
                                                                limit, out.data()));
    return out;
}

struct expected_queues {
    uint32_t first_block, num_blocks;
    std::vector<uint64_t> slots; // as struct bsw_device_row_queues has them
};

// One block more than rows need, on both sides where there can be one.
expected_queues expect(const queue_case &c, queue_data &data)
{
    const uint32_t block_rows = c.items * BSW_QUEUE_THREADS;
    const uint32_t first = (c.first_row + c.first * 32) / block_rows;
    const uint32_t last = (c.first_row + c.last * 32) / block_rows;
    expected_queues out = {first > 0 ? first - 1 : 0, 0, {}};
    out.num_blocks = last + 2 - out.first_block;
    const size_t queue_slots = static_cast<size_t>(c.length) * BSW_QUEUE_THREADS;
    out.slots.resize(c.num_queries * out.num_blocks * queue_slots);
    for (uint32_t q = 0; q < c.num_queries; q++) {
        std::vector<uint64_t> found = find_candidates(c, data, q, 0);
        std::vector<uint64_t> best = found;
        std::sort(best.begin(), best.end(), std::greater<uint64_t>());
        data.limits.push_back(
            c.has_limits && !best.empty() ? bsw_candidate_score(best[best.size() / (2 + q)]) : 0);
        found = find_candidates(c, data, q, data.limits[q]);
        for (uint64_t item : found) {
            const uint32_t block = bsw_candidate_row(item) / block_rows - out.first_block;
            bsw_select_reference.queue_insert(
                &item, 1, c.length,
                out.slots.data() + (static_cast<size_t>(q) * out.num_blocks + block) * queue_slots);
        }
    }
    return out;
}

// A case in device memory.
struct queue_device {
    device_array<uint32_t> planes, masks, words, limits;
    device_array<uint16_t> scales;
    device_array<float> biases, query_scales;
    device_array<int8_t> components;
    device_array<int32_t> constants;
    bsw_device_codes codes;
    bsw_device_queries queries;

    queue_device(const queue_case &c, const queue_data &data)
        : planes(data.planes), masks(data.masks), words(data.words), limits(data.limits),
          scales(data.scales), biases(data.biases), query_scales(data.query_scales),
          components(static_cast<size_t>(c.num_queries) * data.layout.padded_dims),
          constants(c.num_queries)
    {
        codes = {};
        codes.layout = data.layout;
        codes.planes[0] = planes.get();
        codes.scales = scales.get();
        codes.biases = biases.get();
        codes.masks = masks.get();
        codes.num_bundles = c.num_bundles;
        codes.first_row = c.first_row;
        const uint32_t query_words =
            static_cast<uint32_t>(bsw_layout_query_words(&data.layout, query_bits));
        queries = {c.num_queries,
                   query_bits,
                   query_words,
                   words.get(),
                   components.get(),
                   constants.get(),
                   c.has_keys ? query_scales.get() : nullptr};
    }
};

constexpr uint64_t stood_there = 5; // in each list before the queues are taken

// The first of the blocks, or all, to the lists.
void check_take(const queue_case &c, const std::string &shape, const bsw_device_lists &with,
                const expected_queues &expected, const device_array<uint64_t> &slots)
{
    const size_t block_slots = static_cast<size_t>(c.length) * BSW_QUEUE_THREADS;
    const uint32_t taken = c.stream / 10 % 2 ? expected.num_blocks : expected.num_blocks - 1;
    const uint32_t capacity = static_cast<uint32_t>(taken * block_slots) + 1;
    device_array<uint64_t> items(
        std::vector<uint64_t>(static_cast<size_t>(c.num_queries) * capacity, stood_there));
    device_array<uint32_t> counts(std::vector<uint32_t>(c.num_queries, 1));
    bsw_device_lists lists = with;
    lists.capacity = capacity;
    lists.items = items.get();
    lists.counts = counts.get();
    if (!check_launch(bsw_device_row_queues_take(&lists, taken, nullptr), shape)) return;
    std::vector<uint64_t> left = expected.slots, got = items.values(), got_left = slots.values();
    std::vector<uint32_t> got_counts = counts.values();
    for (uint32_t q = 0; q < c.num_queries; q++) {
        const auto begin = left.begin() + static_cast<long>(q * expected.num_blocks * block_slots);
        const auto end = begin + static_cast<long>(taken * block_slots);
        std::vector<uint64_t> list(begin, end);
        list.erase(std::remove(list.begin(), list.end(), 0u), list.end());
        std::fill(begin, end, 0u);
        const auto own = got.begin() + static_cast<long>(static_cast<size_t>(q) * capacity);
        const bool has_room = got_counts[q] == list.size() + 1;
        if (has_room) std::sort(own + 1, own + got_counts[q]);
        std::sort(list.begin(), list.end());
        check_that(has_room && *own == stood_there && std::equal(list.begin(), list.end(), own + 1),
                   "%s: %u of %u blocks taken, query %u: %u items, %zu expected", shape.c_str(),
                   taken, expected.num_blocks, q, got_counts[q] - 1, list.size());
    }
    check_that(left == got_left, "%s: what is left of %u blocks", shape.c_str(), taken);
}

typedef int scan_fn(const bsw_device_codes *, const bsw_device_part *, const bsw_device_queries *,
                    const bsw_device_lists *, bsw_stream);

// In two launches, so that queues go on from one to the other.
void check_kernel(const queue_case &c, const char *kernel, scan_fn *scan,
                  const queue_device &device, const expected_queues &expected)
{
    const std::string shape = describe(c, kernel);
    device_array<uint64_t> slots(std::vector<uint64_t>(expected.slots.size(), 7));
    bsw_device_lists lists = {};
    lists.num_queries = c.num_queries;
    lists.limits = device.limits.get();
    lists.queues = {slots.get(), c.items, c.length, expected.first_block, expected.num_blocks};
    if (!check_launch(bsw_device_row_queues_clear(&lists, nullptr), shape)) return;
    const uint32_t middle = c.first + (c.last - c.first) / 3;
    const bsw_device_part parts[] = {{middle, c.last, 1}, {c.first, middle, 1}};
    for (const bsw_device_part &part : parts) {
        if (!check_launch(scan(&device.codes, &part, &device.queries, &lists, nullptr), shape))
            return;
    }
    check_that(slots.values() == expected.slots, "%s: other queues", shape.c_str());
    check_take(c, shape, lists, expected, slots);
}

void check_case(const queue_case &c)
{
    queue_data data = make_data(c);
    const expected_queues expected = expect(c, data);
    queue_device device(c, data);
    check_kernel(c, "planes to queues", bsw_device_plane_scan, device, expected);
    if (!check_launch(bsw_device_unpack_queries(&data.layout, c.num_queries, query_bits,
                                                device.queries.query_words, device.words.get(),
                                                device.components.get(), device.constants.get(),
                                                nullptr),
                      "unpack_queries"))
        return;
    check_kernel(c, "matrix to queues", bsw_device_matrix_scan_mma, device, expected);
    const hopper_turn turn;
    if (turn.is_hopper)
        check_kernel(c, "hopper to queues", bsw_device_matrix_scan_hopper, device, expected);
}

// Rows beyond the blocks that have room, queues that keep nothing, a scan that knows none.
void check_queue_refusals()
{
    const queue_case c = {33, 3, 2, 20, 1000, 0, 20, 1, 2, true, false, false, 900};
    queue_data data = make_data(c);
    const expected_queues expected = expect(c, data);
    queue_device device(c, data);
    device_array<uint64_t> slots(expected.slots.size());
    bsw_device_lists lists = {};
    lists.num_queries = c.num_queries;
    lists.limits = device.limits.get();
    auto refuses = [&](const bsw_device_row_queues &queues, uint32_t last, const char *what) {
        const bsw_device_part part = {0, last, 1};
        lists.queues = queues;
        check_that(bsw_device_plane_scan(&device.codes, &part, &device.queries, &lists, nullptr) ==
                           cudaErrorInvalidValue &&
                       bsw_device_matrix_scan(&device.codes, &part, &device.queries, &lists,
                                              nullptr) == cudaErrorInvalidValue,
                   "%s was not refused", what);
    };
    uint64_t *place = slots.get();
    refuses({place, 1, 2, 4, 9}, 20, "a row in front of the blocks"); // row 1000 is in block 3
    refuses({place, 1, 2, 3, 3}, 20, "a row behind the blocks");      // row 1639 is in block 6
    refuses({place, 0, 2, 3, 4}, 20, "no items");
    refuses({place, 1, 0, 3, 4}, 20, "no length");
    lists.queues = {place, 1, 2, 3, 4};
    check_that(bsw_device_row_queues_take(&lists, 5, nullptr) == cudaErrorInvalidValue,
               "more blocks than there are");
    const bsw_device_stage stage = {32, nullptr, nullptr, nullptr};
    const bsw_device_part all = {0, 20, 1};
    check_that(bsw_device_progressive_scan(&device.codes, &stage, &all, &device.queries, &lists,
                                           nullptr) == cudaErrorInvalidValue,
               "a progressive scan into queues was not refused");
}

} // namespace

void check_queues()
{
    static const struct {
        uint32_t dims, bits, queries, bundles, items, length;
    } shapes[] = {{33, 3, 3, 40, 1, 1},  {33, 3, 5, 41, 2, 1}, {20, 2, 1, 50, 3, 2},
                  {96, 2, 17, 20, 7, 3}, {64, 1, 2, 61, 8, 4}, {130, 1, 2, 33, 4, 9},
                  {1, 1, 2, 70, 9, 7},   {40, 8, 1, 1, 1, 2}};
    uint32_t turn = 0;
    for (const auto &own : shapes) {
        for (uint32_t i = 0; i < (checks.small ? 1u : 4u); i++, turn++) {
            const uint32_t first = turn % 2 && own.bundles > 5 ? 5 : 0;
            check_case({own.dims, own.bits, own.queries, own.bundles, turn % 3 * 1000, first,
                        own.bundles, own.items, own.length, turn % 4 > 0,
                        (turn + turn / 4) % 2 == 1, (turn / 2 + turn / 4) % 2 == 1,
                        5000 + 10 * uint64_t{turn}});
        }
    }
    check_queue_refusals();
}
