// SPDX-License-Identifier: Apache-2.0
// Both scans, and the unpacking of queries, against plane_scan, select and matrix_scan of the CPU.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>

#include "common/codes/code_layout.h"
#include "common/codes/half.h"
#include "common/codes/result_order.h"
#include "device_check_scan_case.hpp"
#include "kernels/gpu_select/gpu_select.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/select/select.h"

using namespace scan_checks;

namespace
{

// Where the device is one: under the emulator always, where it stands in for one.
void check_hopper(const scan_case &c, const device_data &device, const expected_lists &expected)
{
    const device_turn turn(on_hopper);
    if (!turn.is_hopper) return;
    uint32_t slices = 0; // of four words of a segment
    for (uint32_t s = 0; s < device.codes.layout.num_segments; s++)
        slices += (device.codes.layout.segments[s].words + 3) / 4;
    const uint32_t num = check_kernels(c, BSW_MATRIX_SCANS, true, device, expected);
    const uint32_t dims = device.codes.layout.padded_dims;
    const uint32_t least = dims <= 64 ? 2 : dims <= 96 ? 4 : dims <= 256 ? 2 : slices <= 8 ? 1 : 0;
    check_that(num >= least, "%s: %u kernels of a Hopper GPU", c.segments.c_str(), num);
    if (num > 0) check_scan(c, "matrix_scan on Hopper", bsw_device_matrix_scan, device, expected);
}

void check_case(const scan_case &c)
{
    host_data data = make_data(c);
    expected_lists expected = expect(c, data);
    device_data device(c, data);
    check_scan(c, "plane_scan", bsw_device_plane_scan, device, expected);
    check_kernels(c, BSW_PLANE_SCANS, false, device, expected);
    if (!check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries"))) return;
    check_scan(c, "matrix_scan", bsw_device_matrix_scan, device, expected);
    check_kernels(c, BSW_MATRIX_SCANS, false, device, expected);
#if !defined(CHECKS_GPU)
    if (c.stream / 1000 % 4) return; // its blocks of 384 threads are slow here
#endif
    check_hopper(c, device, expected);
    check_some_hopper_stage(c, data, device, expected);
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
    check_large("96x3", 40, 9, turn++); // code of their own, of one chunk and of two
    check_large("140x4", 17, 5, turn++);
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
    check_large("129x3", 1, 5, turn++);
    if (checks.small) return;
    check_large("1000x3", 2, 6, turn++);
    check_large("300x4,129x3,40x1", 1, 9, turn++);
    check_large("49152x1", 1, 1, turn++); // the longest of the scan by bits, and one more
    check_large("49153x1", 1, 1, turn++);
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

#if !defined(CHECKS_GPU)
// What scans launch, and what they ask the runtime.
struct launch_count {
    uint64_t blocks = emulation::counted.blocks, questions = emulation::num_questions;
};

launch_count count_launches(const scan_case &c, const device_data &device,
                            const expected_lists &expected)
{
    const launch_count before;
    check_scan(c, "plane_scan", bsw_device_plane_scan, device, expected);
    check_scan(c, "matrix_scan", bsw_device_matrix_scan, device, expected);
    launch_count out;
    out.blocks -= before.blocks;
    out.questions -= before.questions;
    return out;
}

// Devices that run one block at a time, and many: other chunks, the same candidates. What a launch
// of the same shape asked before is not asked again, on one device or on two in turns.
void check_divisions(uint32_t &turn)
{
    scan_case c = make_case("128x3", 4, 65, checks.small ? 40 : 200, turn++);
    c.limits = SOME;
    const host_data data = make_data(c);
    const expected_lists expected = expect(c, data);
    const device_data device(c, data);
    if (!check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries"))) return;
    launch_count narrow, wide, again;
    {
        const device_turn on(on_narrow);
        narrow = count_launches(c, device, expected);
        again = count_launches(c, device, expected);
    }
    check_that(narrow.questions > 0 && again.questions == 0,
               "the second scan of a shape asks the runtime %llu times, the first %llu times",
               static_cast<unsigned long long>(again.questions),
               static_cast<unsigned long long>(narrow.questions));
    {
        const device_turn on(on_wide);
        wide = count_launches(c, device, expected);
    }
    check_that(narrow.blocks < wide.blocks, "%llu blocks on a device for one, %llu on one for many",
               static_cast<unsigned long long>(narrow.blocks),
               static_cast<unsigned long long>(wide.blocks));
    const device_turn on(on_narrow);
    again = count_launches(c, device, expected);
    check_that(again.questions == 0 && again.blocks == narrow.blocks,
               "back on the first device scans ask the runtime %llu times",
               static_cast<unsigned long long>(again.questions));
}
#endif

// The Hopper kernel alone: every width that is compiled, layouts that have code of their own and
// others, with blocks of more tiles than its rings have places, few and many queries; tiles that
// end anywhere.
void check_hopper_widths(uint32_t &turn)
{
    static const char *const widths[] = {"20x2",  "64x1,9x4", "96x3",      "160x8", "200x5,40x8",
                                         "65x1",  "96x2",     "31x7,33x3", "128x4", "256x8",
                                         "250x1", "256x2",    "96x4",      "255x3", "256x4"};
    static const uint32_t queries[] = {3, 65, 130, 33, 32, 140, 64, 2};
    constexpr uint32_t num = sizeof widths / sizeof widths[0];
    for (uint32_t i = 0; i < (checks.small ? 3u : 2 * num); i++, turn++) {
        const bool is_long = i < num && (!checks.small || i == 2);
        scan_case c = make_case(widths[i % num], is_long ? 2 : 1 + turn % 7,
                                queries[(i + i / 8) % 8], 5 + turn % 8, turn);
        if (is_long) {
            c.num_bundles = c.last = c.num_queries > 65 ? 170 : 300;
            c.first = i;
            c.step = 1 + i % 4 / 3;
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

// Batches that more than one kernel takes: whole blocks of three consumers, and a rest.
void check_rests(uint32_t &turn)
{
    static const uint32_t queries[] = {390, 520, 770, 1000};
    for (uint32_t i = 0; i < (checks.small ? 1u : 4u); i++, turn++) {
        scan_case c = make_case("96x3", 4, queries[i], 3 + i % 2, turn);
        c.keys = i % 2 ? INTEGER_KEYS : FLOAT_KEYS;
        c.limits = SOME;
        c.fill = RANDOM_ROWS;
        const host_data data = make_data(c);
        const expected_lists expected = expect(c, data);
        const device_data device(c, data);
        const device_turn on(on_hopper);
        if (check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries")))
            check_scan(c, "matrix_scan", bsw_device_matrix_scan, device, expected);
    }
}

// Terms of keys that rise a thousandfold within a block, where starts of sums must follow: a
// quarter of the bundles, which the best rows are of, has small scales and large biases: as large
// as sums have room for, or larger. In the last three cases each query has its best row alone; in
// the last, biases are so small that few other pairs go on: of a warp's queries none has a row in a
// tile, or one, whichever it is, which must be noticed.
void check_rising_terms(uint32_t &turn)
{
    static const float biases[] = {0x1p9f, 0x1p5f, 0x1p9f, 0x1p5f, 2.0f};
    for (uint32_t i = 0; i < (checks.small ? 1u : 5u); i++, turn++) {
        scan_case c = make_case("96x3", 5,
                                i < 2    ? 9
                                : i == 2 ? 32
                                         : 65,
                                checks.small ? 60 : 300, turn);
        c.keys = FLOAT_KEYS;
        c.fill = RANDOM_ROWS;
        c.limits = i < 2 ? SOME : BEST;
        c.first = 0;
        c.last = c.num_bundles;
        c.step = 1;
        host_data data = make_data(c);
        for (size_t row = 0; row < data.scales.size(); row++) {
            const bool is_large = check_random(c.stream + 60, row / 32) % 4 == 0;
            data.scales[row] = is_large ? 0x0400 : 0x2c00; // 2^-14, 2^-4
            data.biases[row] = is_large ? biases[i] : -1000.0f;
        }
        const expected_lists expected = expect(c, data);
        device_data device(c, data);
        if (!check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries")))
            continue;
        check_kernels(c, BSW_MATRIX_SCANS, false, device, expected);
        check_hopper(c, device, expected);
    }
}

// Rows of scale 0 alone, whose keys are their biases and which go on for every query, under limits
// so far that half of them, over the scale of the query, is a float but infinite as bf16.
void check_far_limits(uint32_t &turn)
{
    static const char *const far_layouts[] = {"96x3", "384x2"};
    for (const char *layout : far_layouts) {
        scan_case c = make_case(layout, 4, checks.small ? 9 : 18, 5, turn++);
        c.keys = FLOAT_KEYS;
        c.fill = RANDOM_ROWS;
        c.limits = MIXED;
        host_data data = make_data(c);
        for (size_t row = 0; row < data.scales.size(); row++) {
            const uint64_t r = check_random(c.stream + 60, row);
            const float bias = 0x1.ffp48f + static_cast<float>(r >> 8 & 0x7fff) * 0x1p25f;
            data.scales[row] = 0;
            data.biases[row] = r & 1 ? bias : -bias;
        }
        for (float &scale : data.query_scales) scale = 0x1p-80f;
        const expected_lists expected = expect(c, data);
        device_data device(c, data);
        if (!check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries")))
            continue;
        check_kernels(c, BSW_MATRIX_SCANS, false, device, expected);
        check_hopper(c, device, expected);
        check_some_hopper_stage(c, data, device, expected);
    }
}

// The kernel of few queries alone: codes of every number of bits in one segment and in several, of
// more words than a step has and of fewer; every shape of queries, filled or not; warps of several
// bundles.
void check_few_widths(uint32_t &turn)
{
    static const char *const widths[] = {"96x3",  "32x5,64x2", "128x4",    "290x1",     "97x2",
                                         "100x3", "65x8",      "33x7,5x1", "64x6,64x3", "20x4"};
    static const uint32_t queries[] = {1, 32, 8, 16, 31, 9, 17};
    constexpr uint32_t num = sizeof widths / sizeof widths[0];
    const device_turn on(on_narrow); // few blocks, so that warps have many bundles
    for (uint32_t i = 0; i < (checks.small ? num : 7 * num); i++, turn++) {
        scan_case c = make_case(widths[i % num], 1 + i % 7, queries[(i + i / num) % 7],
                                i % 3 == 0 ? 70 : 3 + i % 9, turn);
        c.keys = i % 4 == 3 ? INTEGER_KEYS : FLOAT_KEYS;
        host_data data = make_data(c);
        expected_lists expected = expect(c, data);
        device_data device(c, data);
        if (check_launch(unpack(data, device, c.query_bits), describe(c, "unpack_queries")))
            check_that(check_kernels(c, BSW_MATRIX_SCANS, false, device, expected) >= 2,
                       "%s: does not fit", describe(c, "few").c_str());
    }
}

// Layouts that the Hopper kernel takes slice by slice, whole ones and others: few queries, the most
// of a block of 128, and more where the block takes 256 or 128; rings that go round.
void check_hopper_slices(uint32_t &turn)
{
    static const char *const cut[] = {"384x3",       "768x2", "1024x3",      "257x8",
                                      "300x1,500x4", "512x1", "100x5,300x7", "1000x6"};
    static const uint32_t queries[] = {5, 64, 65, 128, 129, 257, 140, 1};
    for (uint32_t i = 0; i < (checks.small ? 2u : 16u); i++, turn++) {
        scan_case c = make_case(cut[i % 8], i % 8 == 2 ? 4 : 1 + turn % 7,
                                queries[(i + i / 8) % (checks.small ? 3 : 8)], 3 + turn % 8, turn);
        if (i == 0) c.num_bundles = c.last = 200;
        if (i == 0) c.limits = SOME;
        if (i == 0) c.keys = FLOAT_KEYS; // blocks of more tiles than there are places for terms
        if (i % 8 == 7) c.fill = EXTREME_ROWS;
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
    check_few_widths(turn);
    check_hopper_widths(turn);
    check_hopper_slices(turn);
    check_rests(turn);
    check_rising_terms(turn);
    check_far_limits(turn);
#if !defined(CHECKS_GPU)
    check_divisions(turn);
#endif
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
    for (uint32_t i = 0; i < BSW_NUM_SCANS; i++)
        check_that(bsw_device_scan_fits(i, &data.layout, 4, 2) ||
                       bsw_device_scan_by(i, &device.codes, &all, &device.queries, &lists.lists,
                                          nullptr) == cudaErrorInvalidValue,
                   "%s was not refused where it does not fit", bsw_scan_rows[i].name);
    check_that(!bsw_device_scan_fits(BSW_NUM_SCANS, &data.layout, 4, 2), "no such kernel");
    check_that(bsw_device_scan_fits(BSW_SCAN_BY_few_any, &data.layout, 4, 32) &&
                   !bsw_device_scan_fits(BSW_SCAN_BY_few_any, &data.layout, 4, 33),
               "32 queries are few, 33 are not");
    check_that(!bsw_device_scan_fits(BSW_SCAN_BY_few, &data.layout, 4, 2), "few: two segments");
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
