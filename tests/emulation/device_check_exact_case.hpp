// SPDX-License-Identifier: Apache-2.0
// What checks of device_exact and gpu_screen share: vectors, random and hostile, and what is to be
// found of them by the reference.
#ifndef BITSWEEP_EMULATION_DEVICE_CHECK_EXACT_CASE_HPP
#define BITSWEEP_EMULATION_DEVICE_CHECK_EXACT_CASE_HPP

#include "common/codes/metric.h"
#include "common/rows/vectors.h"
#include "device_check.hpp"
#include "kernels/device_exact/device_exact.h"

// EXTREMES: for floats numbers from subnormal to such that norms stay below 1e37, for integers
// their ends; TINY: products of floats underflow; ZEROS: every other row and query is zero, of
// both signs; FAR: floats by 1000; SCALED: every vector of floats by another power of two.
enum number_fill {
    RANDOM_NUMBERS,
    EQUAL_ROWS,
    EXTREMES,
    TINY,
    ZEROS,
    FAR,
    SCALED,
    NUM_NUMBER_FILLS
};

struct exact_case {
    bsw_metric metric;
    bsw_vector_type type;
    uint32_t dims, num_rows, num_queries;
    number_fill fill;
    uint64_t stream;
};

// 31 dims, 41 rows and 5 queries.
inline exact_case small_case(int metric, int type, int fill, uint64_t stream)
{
    return {static_cast<bsw_metric>(metric),
            static_cast<bsw_vector_type>(type),
            31,
            41,
            5,
            static_cast<number_fill>(fill),
            stream};
}

std::string describe(const exact_case &c, const char *kernel);

// Vectors as a source has them and as the reference takes them.
struct numbers {
    std::vector<uint8_t> raw;
    std::vector<double> doubles, norms;
};

numbers make_numbers(const exact_case &c, uint64_t stream, uint32_t count);

constexpr uint32_t scan_first_row = 1000;
constexpr uint64_t untouched = 7; // a score

struct scan_setting {
    bsw_device_part part;
    uint32_t limit_place; // the limit is the score at this place of a query's rows; 0: none
    uint32_t capacity;    // 0: enough
};

struct scan_truth {
    std::vector<uint32_t> masks;
    std::vector<uint64_t> limits;
    std::vector<std::vector<exact_item>> neighbours; // of each query, in order
};

bool is_scanned(const bsw_device_part &part, uint32_t bundle);

scan_truth find_truth(const exact_case &c, const scan_setting &setting, const numbers &rows,
                      const numbers &queries);

// Everything expected where there is room, else some of it, and junk behind.
void check_list(const std::string &shape, uint32_t query, const uint64_t *scores,
                const uint32_t *rows, uint32_t capacity, uint32_t count,
                const std::vector<exact_item> &expected);

#endif
