// SPDX-License-Identifier: Apache-2.0
// Rows for the checks of encoders, hostile ones too, and what they are compared by.
#ifndef BITSWEEP_EMULATION_DEVICE_CHECK_ROWS_HPP
#define BITSWEEP_EMULATION_DEVICE_CHECK_ROWS_HPP

#include <cmath>
#include <cstdio>
#include <cstring>

#include "device_check.hpp"
#include "kernels/device_encode/device_encode.h"
#include "kernels/encode/prepare_rows.h"

enum row_kind {
    GAUSSIAN_ROW, // about
    ZERO_ROW,     // of both signs
    NAN_ROW,
    INF_ROW,
    LARGE_ROW, // a squared norm on both sides of 1e37
    TINY_ROW,  // subnormal numbers, or squares below 1e-37
    EQUAL_ROW, // one magnitude: codes fall on boundaries
    MIXED_ROW, // signed zeros, subnormal and ordinary numbers
    NUM_ROW_KINDS
};

inline float uniform(uint64_t stream, uint64_t index) // -1 .. 1
{
    return static_cast<float>(static_cast<int>(check_random(stream, index) >> 40) - (1 << 23)) *
           0x1p-23f;
}

inline float number_of(row_kind kind, uint64_t stream, uint64_t row, uint64_t i)
{
    const uint64_t at = row << 17 | i, random = check_random(stream + 1, at);
    const float sum = uniform(stream, at) + uniform(stream + 2, at) + uniform(stream + 3, at);
    switch (kind) {
    case ZERO_ROW:
        return random & 1 ? 0.0f : -0.0f;
    case NAN_ROW:
        return i == row % 7 ? NAN : sum;
    case INF_ROW:
        return i == 0 ? (random & 1 ? INFINITY : -INFINITY) : sum;
    case LARGE_ROW:
        return sum * (row % 3 ? 3e17f : 4e18f);
    case TINY_ROW:
        return sum * (row % 3 ? 1e-20f : 1e-40f);
    case EQUAL_ROW:
        return std::ldexp(random & 1 ? 1.0f : -1.0f, static_cast<int>(row % 5) - 2);
    case MIXED_ROW:
        return random % 4 == 0 ? -0.0f : random % 4 == 1 ? sum * 1e-40f : sum;
    default:
        return sum;
    }
}

inline const char *const type_names[] = {"float32", "float16", "uint8", "int8"};

// Rows of a type, kinds taking turns; halves and bytes are random bits, all halves that there are
// and rows of zeros among them.
inline std::vector<unsigned char> make_numbers(bsw_vector_type type, uint32_t num_rows,
                                               uint32_t dims, uint64_t stream)
{
    const size_t bytes = bsw_vector_type_bytes(type);
    std::vector<unsigned char> numbers(num_rows * static_cast<size_t>(dims) * bytes);
    for (uint32_t row = 0; row < num_rows; row++) {
        for (uint32_t i = 0; i < dims; i++) {
            unsigned char *to = numbers.data() + (static_cast<size_t>(row) * dims + i) * bytes;
            const float x =
                number_of(static_cast<row_kind>((row + stream) % NUM_ROW_KINDS), stream, row, i);
            uint64_t bits = row % 5 == 4 ? 0 : check_random(stream, row << 17 | i);
            if (type == BSW_VECTOR_FLOAT16 && row % 5 != 3) bits &= 0xbfff; // finite
            if (type == BSW_VECTOR_FLOAT32)
                memcpy(to, &x, sizeof x);
            else
                memcpy(to, &bits, bytes);
        }
    }
    return numbers;
}

// What bsw_prepare_rows makes of them.
struct prepared_rows {
    std::vector<float> rows, factors;
    std::vector<uint8_t> faults;
};

inline prepared_rows prepare(bsw_metric metric, bsw_vector_type type,
                             const std::vector<unsigned char> &numbers, uint32_t num_rows,
                             uint32_t dims)
{
    prepared_rows out;
    std::vector<double> norms(num_rows);
    std::vector<bsw_row_fault> faults(num_rows);
    out.rows.resize(static_cast<size_t>(num_rows) * dims);
    out.factors.resize(num_rows);
    bsw_prepare_rows(&bsw_encode_reference, metric, type, numbers.data(), num_rows, dims,
                     out.rows.data(), norms.data(), out.factors.data(), faults.data());
    for (bsw_row_fault fault : faults) out.faults.push_back(static_cast<uint8_t>(fault));
    return out;
}

// Bits, but that a NaN is any NaN.
inline bool is_same(float a, float b)
{
    return (a != a && b != b) || memcmp(&a, &b, sizeof a) == 0;
}

template <class T> bool is_same(T a, T b)
{
    return a == b;
}

template <class T>
void compare(const std::string &shape, const char *what, const std::vector<T> &expected,
             const std::vector<T> &found)
{
    size_t i = 0;
    while (i < expected.size() && is_same(expected[i], found[i])) i++;
    check_that(i == expected.size(), "%s: %s differ at %zu of %zu: %.9g instead of %.9g",
               shape.c_str(), what, i, expected.size(),
               i < found.size() ? static_cast<double>(found[i]) : 0.0,
               i < found.size() ? static_cast<double>(expected[i]) : 0.0);
}

template <class T> std::vector<T> junk(size_t count)
{
    std::vector<T> out(count);
    if (count > 0) memset(static_cast<void *>(out.data()), 0x5a, count * sizeof(T));
    return out;
}

inline uint32_t rows_of_bundle(uint32_t num_rows, uint32_t bundle)
{
    return num_rows - bundle * 32 < 32 ? num_rows - bundle * 32 : 32;
}

#endif
