// SPDX-License-Identifier: Apache-2.0
// The progressive scan, which Hopper alone has, against plane_scan and select of the CPU: the same
// candidates, whatever goes on after the first stage.
#include <algorithm>
#include <cmath>
#include <functional>

#include "common/codes/half.h"
#include "device_check_scan_case.hpp"
#include "kernels/gpu_select/gpu_select.h"
#include "kernels/matrix_scan/matrix_scan.h"

namespace scan_checks
{
namespace
{

constexpr double tail_unit = 0.125;

// Each row's tail: a half not below what the dimensions from stage_dims on can add for each unit of
// a query's norm there.
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
stage_result run_stage(const scan_case &c, const host_data &data, const device_data &device,
                       const expected_lists &expected, uint32_t stage_dims)
{
    const std::string shape =
        describe(c, "progressive_scan_hopper") + ", stage " + std::to_string(stage_dims);
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
            return bsw_device_progressive_scan_hopper(&with_tails, &stage, part, queries, lists,
                                                      stream);
        },
        device, expected);
    const uint64_t count = survivors.values()[0] - 5;
    check_that(count >= candidates && count <= rows * c.num_queries,
               "%s: %llu of %llu pairs went on", shape.c_str(),
               static_cast<unsigned long long>(count),
               static_cast<unsigned long long>(rows * c.num_queries));
    return {count, rows * c.num_queries};
}

// Where the device is one, as check_hopper of device_check_scan.cu: else nothing goes on.
stage_result check_hopper_stage(const scan_case &c, const host_data &data,
                                const device_data &device, const expected_lists &expected,
                                uint32_t stage_dims)
{
    const device_turn turn(on_hopper);
    if (!turn.is_hopper) return {0, 1};
    uint32_t slices = 0; // of four words of a segment
    for (uint32_t s = 0; s < data.layout.num_segments; s++) {
        const bsw_segment &segment = data.layout.segments[s];
        const uint32_t end = std::min(segment.padded_dim + 32 * segment.words, stage_dims);
        if (end > segment.padded_dim) slices += (end - segment.padded_dim + 127) / 128;
    }
    const bool has = bsw_device_has_hopper_stage(&data.layout, stage_dims) != 0;
    check_that(has == (slices <= 8), "%s, stage %u: has_hopper_stage", c.segments.c_str(),
               stage_dims);
    if (!has) return {0, 1};
    return run_stage(c, data, device, expected, stage_dims);
}

bool has_stage(const scan_case &c, const host_data &data)
{
    return c.keys != INTEGER_KEYS && data.layout.padded_dims >= 64 &&
           bsw_device_stage_fits(&data.layout, c.query_bits);
}

uint32_t some_stage(const scan_case &c, const host_data &data)
{
    return 32 * (1 + static_cast<uint32_t>(c.stream / 1000) % (data.layout.padded_dims / 32 - 1));
}

} // namespace

void check_some_hopper_stage(const scan_case &c, const host_data &data, const device_data &device,
                             const expected_lists &expected)
{
    if (has_stage(c, data)) check_hopper_stage(c, data, device, expected, some_stage(c, data));
}

namespace
{

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
        const stage_result r = check_hopper_stage(c, data, device, expected, own.stage_dims);
        const bool is_light = own.segments[0] != '9'; // what comes after the stage
        check_that(r.survivors < (is_light ? r.pairs / 3 : r.pairs),
                   "%s: %llu of %llu pairs went on", describe(c, "a first stage").c_str(),
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
                check_hopper_stage(c, data, device, expected, 64);
        }
    }
}

// What the Hopper kernel is for: long rows, stages of one slice and of many, that end inside a
// slice or a segment, and of nine slices, for which it has no room; few queries, the most of a
// block of 128, and more; blocks of more tiles than there are places for terms; every shape of
// limits; one row.
void check_hopper_stages(uint32_t &turn)
{
    static const struct {
        const char *segments;
        uint32_t stage_dims, queries, bundles;
    } cases[] = {
        {"384x3", 128, 9, 5},       {"768x2", 384, 65, 7},  {"300x1,500x4", 448, 129, 5},
        {"260x6", 224, 3, 100},     {"1024x3", 512, 5, 3},  {"100x5,300x7", 160, 257, 3},
        {"384x3,384x1", 480, 1, 1}, {"1100x1", 960, 64, 2}, {"512x2,512x1,160x1", 1088, 2, 2},
        {"512x3", 256, 140, 9},     {"640x3", 64, 128, 4},  {"320x4", 32, 2, 40}};
    for (const auto &own : cases) {
        if (checks.small && own.queries * own.bundles > 100) continue;
        scan_case c = make_case(own.segments, 4, own.queries, own.bundles, turn++);
        c.keys = turn % 3 == 0 ? HOSTILE_KEYS : FLOAT_KEYS;
        const host_data data = make_data(c);
        const expected_lists expected = expect(c, data);
        device_data device(c, data);
        if (has_stage(c, data) &&
            check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries")))
            check_hopper_stage(c, data, device, expected, own.stage_dims);
    }
}

// What it must refuse without touching anything.
void check_stage_refusals(uint32_t turn)
{
    scan_case c = make_case("384x3", 4, 2, 3, turn);
    c.keys = FLOAT_KEYS;
    const host_data data = make_data(c);
    const device_data device(c, data);
    const device_lists lists(2, 8, {0, 0});
    const device_array<uint16_t> tails(make_tails(data, 128));
    const device_array<int32_t> constants(2);
    const device_array<float> reaches(2);
    const device_array<uint64_t> survivors(std::vector<uint64_t>(1, 5));
    struct {
        bsw_device_codes codes;
        bsw_device_stage stage;
        bsw_device_part part;
        bsw_device_lists lists;
    } const right = {device.codes,
                     {128, constants.get(), reaches.get(), survivors.get()},
                     {0, 3, 1},
                     lists.lists};
    const device_turn turn_of(on_hopper);
    auto refused = right;
    const auto refuses = [&](const char *what) {
        check_that(bsw_device_progressive_scan_hopper(&refused.codes, &refused.stage, &refused.part,
                                                      &device.queries, &refused.lists,
                                                      nullptr) == cudaErrorInvalidValue,
                   "a first stage was not refused: %s", what);
        refused = right;
    };
    for (uint32_t dims : {0u, 48u, 384u, 416u}) {
        refused.stage.dims = dims;
        refuses("its end");
    }
    refused.codes.tails = nullptr;
    refuses("no tails");
    refused.part = {0, 4, 1};
    refuses("bundles");
    refused.lists.queues = {survivors.get(), 4, 64, 0, 64};
    refuses("queues of threads");
    check_that(lists.counts.values() == std::vector<uint32_t>(2, prefilled) &&
                   survivors.values()[0] == 5,
               "a first stage that was refused has written");
}

// Limits that rise from part to part, as in a search: from none at all, by a cut to the best few
// behind each. What is left are the best of all rows.
void check_rising_limits(uint32_t turn)
{
    constexpr uint32_t keep = 7, ends[] = {0, 1, 4, 11, 24};
    const uint32_t num_queries = checks.small ? 9 : 130, num_bundles = checks.small ? 11 : 24;
    scan_case c = make_case("64x4,200x3", 5, num_queries, num_bundles, turn);
    c.keys = FLOAT_KEYS;
    c.fill = RANDOM_ROWS;
    c.first = 0;
    c.last = num_bundles;
    c.step = 1;
    const device_turn on(on_hopper);
    if (!on.is_hopper) return;
    const host_data data = make_data(c);
    device_data device(c, data);
    const uint32_t capacity = keep + 13 * 32;
    const device_array<uint64_t> items(static_cast<size_t>(num_queries) * capacity);
    const device_array<uint32_t> counts(std::vector<uint32_t>(num_queries, 0));
    const device_array<uint32_t> limits(std::vector<uint32_t>(num_queries, 0));
    const bsw_device_lists lists = {num_queries, capacity, items.get(), counts.get(), limits.get(),
                                    {},          nullptr,  0,           nullptr,      nullptr};
    const device_array<uint16_t> tails(make_tails(data, 128));
    const device_array<int32_t> constants(num_queries);
    const device_array<float> reaches(num_queries);
    const device_array<uint64_t> survivors(std::vector<uint64_t>(1, 0));
    const bsw_device_stage stage = {128, constants.get(), reaches.get(), survivors.get()};
    bsw_device_codes codes = device.codes;
    codes.tails = tails.get();
    int error = unpack(data, device, c.query_bits);
    if (!error)
        error = bsw_device_stage_queries(&data.layout, 128, tail_unit, &device.queries,
                                         constants.get(), reaches.get(), nullptr);
    for (uint32_t i = 1; i < 5 && ends[i] <= num_bundles && !error; i++) {
        const bsw_device_part part = {ends[i - 1], ends[i], 1};
        error = bsw_device_progressive_scan_hopper(&codes, &stage, &part, &device.queries, &lists,
                                                   nullptr);
        if (!error) error = bsw_device_cut(&lists, keep, nullptr);
    }
    if (!check_launch(error, describe(c, "rising limits"))) return;
    const std::vector<uint64_t> got = items.values();
    for (uint32_t q = 0; q < num_queries; q++) {
        std::vector<uint64_t> own(got.begin() + static_cast<long>(q) * capacity,
                                  got.begin() + static_cast<long>(q) * capacity + keep);
        std::vector<uint64_t> best = reference_candidates(c, data, q, 0);
        std::sort(own.begin(), own.end(), std::greater<uint64_t>());
        best.resize(keep);
        check_that(own == best, "%s: query %u: not the best", describe(c, "rising limits").c_str(),
                   q);
    }
    check_that(survivors.values()[0] < static_cast<uint64_t>(num_queries) * num_bundles * 32,
               "rising limits: all pairs went on");
}

} // namespace
} // namespace scan_checks

void check_stages()
{
    uint32_t turn = 500;
    scan_checks::check_stops(turn);
    scan_checks::check_steep_biases(turn);
    scan_checks::check_hopper_stages(turn);
    scan_checks::check_rising_limits(turn);
    scan_checks::check_stage_refusals(turn);
}
