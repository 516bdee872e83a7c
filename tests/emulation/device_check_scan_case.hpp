// SPDX-License-Identifier: Apache-2.0
// Cases of device_check_scan.cu and device_check_queues.cu: codes, queries and keys of every shape,
// on the host and on the device, and what a scan must find.
#ifndef BITSWEEP_TESTS_DEVICE_CHECK_SCAN_CASE_HPP
#define BITSWEEP_TESTS_DEVICE_CHECK_SCAN_CASE_HPP

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/codes/code_layout.h"
#include "device_check.hpp"
#include "kernels/device_scan/scan_kernels.h"

namespace scan_checks
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
    uint32_t first_row = 1000; // of bundle 0
};

constexpr uint32_t prefilled = 3; // items that stand in a list before the scan

// Everything of a case on the host.
struct host_data {
    bsw_code_layout layout;
    std::vector<uint32_t> planes[BSW_MAX_SEGMENTS];
    std::vector<uint32_t> masks, words;
    std::vector<uint16_t> scales;
    std::vector<float> biases, query_scales;
    uint32_t query_words;
};

struct expected_lists {
    std::vector<uint32_t> limits;
    std::vector<std::vector<uint64_t>> candidates;
    size_t most; // candidates of a query
};

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
        codes.first_row = c.first_row;
        queries = {c.num_queries,    c.query_bits,    data.query_words,  words.get(),
                   components.get(), constants.get(), query_scales.get()};
    }
};

inline uint64_t prefilled_item(uint32_t query, uint32_t i)
{
    return check_random(99, query * prefilled + i);
}

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
        lists = {num_queries, capacity, items.get(), counts.get(), limits.get(),
                 {},          nullptr,  0,           nullptr,      nullptr};
    }
};

typedef std::function<int(const bsw_device_codes *, const bsw_device_part *,
                          const bsw_device_queries *, const bsw_device_lists *, bsw_stream)>
    scan_fn;

std::string describe(const scan_case &c, const char *kernel);

// Turns through all shapes: 18 turns have every pair of keys and limits.
scan_case make_case(const std::string &segments, uint32_t query_bits, uint32_t num_queries,
                    uint32_t num_bundles, uint32_t turn);
host_data make_data(const scan_case &c);
// Candidates of one query over the case's bundles that reach the limit, best first.
std::vector<uint64_t> reference_candidates(const scan_case &c, const host_data &data,
                                           uint32_t query, uint32_t limit);
expected_lists expect(const scan_case &c, const host_data &data);

// Every kernel of scan_kernels.h that the current device has and that takes the case: of a family,
// on a Hopper GPU or any. How many there were.
uint32_t check_kernels(const scan_case &c, bsw_scan_family family, bool is_hopper,
                       const device_data &device, const expected_lists &expected);

// A scan into lists that hold something, against what is expected.
void check_scan(const scan_case &c, const char *kernel, const scan_fn &scan,
                const device_data &device, const expected_lists &expected);
// Unpacks the queries of a case on the device; the status of the launch.
int unpack(const host_data &data, const device_data &device, uint32_t query_bits);

// The progressive scan of the case on Hopper, where the device is one and the case may have a first
// stage, with some end of that. Queries are unpacked.
void check_some_hopper_stage(const scan_case &c, const host_data &data, const device_data &device,
                             const expected_lists &expected);

} // namespace scan_checks

#endif
