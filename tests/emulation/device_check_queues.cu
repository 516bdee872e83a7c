// SPDX-License-Identifier: Apache-2.0
// Scans into rbeGIR's queues, and what is taken from them, against select's queue_insert.
#include <algorithm>

#include "common/codes/result_order.h"
#include "device_check_scan_case.hpp"
#include "kernels/select/select.h"

using namespace scan_checks;

namespace
{

struct queue_case {
    scan_case scan;
    uint32_t items, length; // of a thread
    bool has_limits;
    std::vector<uint32_t> limits; // of each query, from expect() on
};

std::string describe(const queue_case &c, const char *kernel)
{
    return scan_checks::describe(c.scan, kernel) + " from row " + std::to_string(c.scan.first_row) +
           ", items " + std::to_string(c.items) + ", length " + std::to_string(c.length) +
           (c.has_limits ? ", limits" : "");
}

struct expected_queues {
    uint32_t first_block, num_blocks;
    std::vector<uint64_t> slots; // as struct bsw_device_row_queues has them
};

// One block more than rows need, on both sides where there can be one.
expected_queues expect(queue_case &c, const host_data &data)
{
    const uint32_t block_rows = c.items * BSW_QUEUE_THREADS;
    const uint32_t first = (c.scan.first_row + c.scan.first * 32) / block_rows;
    const uint32_t last = (c.scan.first_row + c.scan.last * 32) / block_rows;
    expected_queues out = {first > 0 ? first - 1 : 0, 0, {}};
    out.num_blocks = last + 2 - out.first_block;
    const size_t queue_slots = static_cast<size_t>(c.length) * BSW_QUEUE_THREADS;
    out.slots.resize(c.scan.num_queries * out.num_blocks * queue_slots);
    for (uint32_t q = 0; q < c.scan.num_queries; q++) {
        const std::vector<uint64_t> best = reference_candidates(c.scan, data, q, 0);
        c.limits.push_back(
            c.has_limits && !best.empty() ? bsw_candidate_score(best[best.size() / (2 + q)]) : 0);
        for (uint64_t item : reference_candidates(c.scan, data, q, c.limits[q])) {
            const uint32_t block = bsw_candidate_row(item) / block_rows - out.first_block;
            bsw_select_reference.queue_insert(
                &item, 1, c.length,
                out.slots.data() + (static_cast<size_t>(q) * out.num_blocks + block) * queue_slots);
        }
    }
    return out;
}

constexpr uint64_t stood_there = 5; // in each list before the queues are taken

// The first of the blocks, or all, to the lists.
void check_take(const queue_case &c, const std::string &shape, const bsw_device_lists &with,
                const expected_queues &expected, const device_array<uint64_t> &slots)
{
    const size_t block_slots = static_cast<size_t>(c.length) * BSW_QUEUE_THREADS;
    const uint32_t taken = c.scan.stream / 1000 % 2 ? expected.num_blocks : expected.num_blocks - 1;
    const uint32_t capacity = static_cast<uint32_t>(taken * block_slots) + 1;
    device_array<uint64_t> items(
        std::vector<uint64_t>(static_cast<size_t>(c.scan.num_queries) * capacity, stood_there));
    device_array<uint32_t> counts(std::vector<uint32_t>(c.scan.num_queries, 1));
    bsw_device_lists lists = with;
    lists.capacity = capacity;
    lists.items = items.get();
    lists.counts = counts.get();
    if (!check_launch(bsw_device_row_queues_take(&lists, taken, nullptr), shape)) return;
    std::vector<uint64_t> left = expected.slots, got = items.values(), got_left = slots.values();
    std::vector<uint32_t> got_counts = counts.values();
    for (uint32_t q = 0; q < c.scan.num_queries; q++) {
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

// In two launches, so that queues go on from one to the other.
void check_kernel(const queue_case &c, const char *kernel, const scan_fn &scan,
                  const device_data &device, const expected_queues &expected)
{
    const std::string shape = describe(c, kernel);
    device_array<uint64_t> slots(std::vector<uint64_t>(expected.slots.size(), 7));
    device_array<uint32_t> limits(c.limits);
    bsw_device_lists lists = {};
    lists.num_queries = c.scan.num_queries;
    lists.limits = limits.get();
    lists.queues = {slots.get(), c.items, c.length, expected.first_block, expected.num_blocks};
    if (!check_launch(bsw_device_row_queues_clear(&lists, nullptr), shape)) return;
    const uint32_t first = c.scan.first, last = c.scan.last, middle = first + (last - first) / 3;
    const bsw_device_part parts[] = {{middle, last, 1}, {first, middle, 1}};
    for (const bsw_device_part &part : parts) {
        if (!check_launch(scan(&device.codes, &part, &device.queries, &lists, nullptr), shape))
            return;
    }
    check_that(slots.values() == expected.slots, "%s: other queues", shape.c_str());
    check_take(c, shape, lists, expected, slots);
}

// By every kernel of the matrix scan that fits.
void check_kernels(const queue_case &c, bool is_hopper, const device_data &device,
                   const expected_queues &expected)
{
    using namespace std::placeholders;
    for (uint32_t i = 0; i < BSW_NUM_SCANS; i++) {
        const bsw_scan_row &row = bsw_scan_rows[i];
        if (row.family == BSW_MATRIX_SCANS && (row.is_hopper != 0) == is_hopper &&
            bsw_device_scan_fits(i, &device.codes.layout, c.scan.query_bits, c.scan.num_queries))
            check_kernel(c, row.name, std::bind(bsw_device_scan_by, i, _1, _2, _3, _4, _5), device,
                         expected);
    }
}

void check_case(queue_case c)
{
    const host_data data = make_data(c.scan);
    const expected_queues expected = expect(c, data);
    const device_data device(c.scan, data);
    check_kernel(c, "planes to queues", bsw_device_plane_scan, device, expected);
    if (!check_launch(unpack(data, device, c.scan.query_bits), "unpack_queries")) return;
    check_kernels(c, false, device, expected);
    const device_turn turn(on_hopper);
    if (!turn.is_hopper) return;
    check_kernels(c, true, device, expected);
    check_kernel(c, "matrix on Hopper to queues", bsw_device_matrix_scan, device, expected);
}

queue_case make_queue_case(const std::string &segments, uint32_t num_queries, uint32_t num_bundles,
                           uint32_t items, uint32_t length, uint32_t turn)
{
    scan_case scan = make_case(segments, 4, num_queries, num_bundles, turn);
    scan.first = turn % 2 && num_bundles > 5 ? 5 : 0;
    scan.last = num_bundles;
    scan.step = 1;
    scan.first_row = turn % 3 * 1000;
    scan.keys = turn % 4 > 0 ? FLOAT_KEYS : INTEGER_KEYS;
    scan.fill = (turn + turn / 4) % 2 ? TIED_ROWS : RANDOM_ROWS;
    return {scan, items, length, (turn / 2 + turn / 4) % 2 == 1, {}};
}

// Rows beyond the blocks that have room, queues that keep nothing, a scan that knows none.
void check_queue_refusals()
{
    const queue_case c = make_queue_case("33x3", 2, 20, 1, 2, 10); // from row 1000 on
    const device_data device(c.scan, make_data(c.scan));
    device_array<uint64_t> slots(2 * 4 * 2 * BSW_QUEUE_THREADS);
    device_array<uint32_t> limits(std::vector<uint32_t>(2, 0));
    bsw_device_lists lists = {};
    lists.num_queries = 2;
    lists.limits = limits.get();
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
}

} // namespace

void check_queues()
{
    static const struct {
        const char *segments;
        uint32_t queries, bundles, items, length;
    } shapes[] = {{"33x3", 3, 40, 1, 1},  {"33x3", 5, 41, 2, 1}, {"20x2", 1, 50, 3, 2},
                  {"96x2", 17, 20, 7, 3}, {"64x1", 2, 61, 8, 4}, {"130x1", 2, 33, 4, 9},
                  {"1x1", 2, 70, 9, 7},   {"40x8", 1, 1, 1, 2},  {"20x2", 390, 3, 1, 1}};
    uint32_t turn = 0;
    for (const auto &own : shapes) {
        for (uint32_t i = 0; i < (checks.small ? 1u : 4u); i++, turn++)
            check_case(make_queue_case(own.segments, own.queries, own.bundles, own.items,
                                       own.length, turn));
    }
    check_queue_refusals();
}
