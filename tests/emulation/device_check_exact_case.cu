// SPDX-License-Identifier: Apache-2.0
#include "device_check_exact_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>

#include "common/codes/metric.h"
#include "kernels/refine/refine.h"

std::string describe(const exact_case &c, const char *kernel)
{
    char text[200];
    snprintf(text, sizeof text, "%s, %s of %s, %u dims, %u rows, %u queries, fill %d", kernel,
             bsw_metric_name(c.metric), bsw_vector_type_name(c.type), c.dims, c.num_rows,
             c.num_queries, c.fill);
    return text;
}

namespace
{

float make_float(const exact_case &c, uint64_t random)
{
    const float number = static_cast<float>(static_cast<int32_t>(random)) * 0x1p-31f;
    if (c.fill == TINY) return number * 1e-30f;
    if (c.fill == FAR) return number + 1000.0f;
    if (c.fill != EXTREMES) return number;
    const float scales[4] = {3e16f, 1.0f, 1e-44f, 0.0f};
    return number * scales[random >> 40 & 3];
}

// Any finite half with EXTREMES, subnormal or large; else below 2.
uint16_t make_half(const exact_case &c, uint64_t random, bool is_zero)
{
    const uint16_t sign = random & 1 ? 0x8000 : 0, bits = static_cast<uint16_t>(random >> 8);
    const uint16_t largest = c.fill == EXTREMES ? 0x7bff : 0x3fff;
    return static_cast<uint16_t>(sign | (is_zero ? 0 : bits % (largest + 1)));
}

// The last vector, of floats, by a power of two.
void scale_last(const exact_case &c, uint32_t r, std::vector<uint8_t> &raw)
{
    for (uint32_t i = 0; i < c.dims; i++) {
        uint8_t *place = raw.data() + raw.size() - (i + 1) * sizeof(float);
        float number;
        memcpy(&number, place, sizeof number);
        number = std::ldexp(number, static_cast<int>(r % 7) * 20 - 70);
        memcpy(place, &number, sizeof number);
    }
}

// Appends one number of c.type.
void put_number(const exact_case &c, uint64_t random, bool is_zero, std::vector<uint8_t> &out)
{
    const float number = is_zero ? (random & 1 ? -0.0f : 0.0f) : make_float(c, random);
    uint8_t bytes[4];
    if (c.type == BSW_VECTOR_FLOAT32) {
        memcpy(bytes, &number, sizeof number);
    } else if (c.type == BSW_VECTOR_FLOAT16) {
        const uint16_t half = make_half(c, random, is_zero);
        memcpy(bytes, &half, sizeof half);
    } else {
        const uint8_t ends[2] = {static_cast<uint8_t>(c.type == BSW_VECTOR_INT8 ? 0x80 : 0),
                                 static_cast<uint8_t>(c.type == BSW_VECTOR_INT8 ? 0x7f : 0xff)};
        bytes[0] = is_zero              ? 0
                   : c.fill == EXTREMES ? ends[random >> 20 & 1]
                                        : static_cast<uint8_t>(random >> 8);
    }
    out.insert(out.end(), bytes, bytes + bsw_vector_type_bytes(c.type));
}

void put_one(const exact_case &c, uint8_t *place)
{
    const float one = 1.0f;
    const uint16_t half = 0x3c00;
    if (c.type == BSW_VECTOR_FLOAT32)
        memcpy(place, &one, sizeof one);
    else if (c.type == BSW_VECTOR_FLOAT16)
        memcpy(place, &half, sizeof half);
    else
        *place = 1;
}

} // namespace

numbers make_numbers(const exact_case &c, uint64_t stream, uint32_t count)
{
    numbers out;
    for (uint32_t r = 0; r < count; r++) {
        for (uint32_t i = 0; i < c.dims; i++) {
            const uint64_t place = (c.fill == EQUAL_ROWS ? r % 2 : r) * uint64_t{1 << 16} + i;
            put_number(c, check_random(stream, place), c.fill == ZEROS && r % 2, out.raw);
        }
        if (c.fill == SCALED && c.type == BSW_VECTOR_FLOAT32) scale_last(c, r, out.raw);
        // A zero row has no cosine.
        if (c.metric == BSW_METRIC_COSINE &&
            ((c.fill != RANDOM_NUMBERS && c.fill != SCALED) || c.dims == 1))
            put_one(c, out.raw.data() + out.raw.size() - c.dims * bsw_vector_type_bytes(c.type));
    }
    out.doubles.resize(static_cast<size_t>(count) * c.dims);
    bsw_refine_reference.to_double(c.type, out.raw.data(), out.doubles.size(), out.doubles.data());
    for (uint32_t r = 0; r < count; r++)
        out.norms.push_back(bsw_refine_reference.squared_norm(
            out.doubles.data() + static_cast<size_t>(r) * c.dims, c.dims));
    return out;
}

// ---- what is to be found ----

namespace
{

// Rows of bundles that do not exist are left out of masks, as are some others.
std::vector<uint32_t> make_masks(const exact_case &c)
{
    std::vector<uint32_t> masks((c.num_rows + 31) / 32);
    for (uint32_t b = 0; b < masks.size(); b++) {
        const uint32_t left = c.num_rows - b * 32;
        const uint32_t exist = left < 32 ? (1u << left) - 1 : 0xffffffffu;
        masks[b] = exist & ~static_cast<uint32_t>(check_random(c.stream + 3, b) &
                                                  check_random(c.stream + 4, b));
    }
    return masks;
}

} // namespace

bool is_scanned(const bsw_device_part &part, uint32_t bundle)
{
    return bundle >= part.first && bundle < part.last && (bundle - part.first) % part.step == 0;
}

scan_truth find_truth(const exact_case &c, const scan_setting &setting, const numbers &rows,
                      const numbers &queries)
{
    scan_truth out = {make_masks(c), {}, {}};
    const size_t row_bytes = c.dims * bsw_vector_type_bytes(c.type);
    for (uint32_t q = 0; q < c.num_queries; q++) {
        std::vector<exact_item> all, own;
        for (uint32_t r = 0; r < c.num_rows; r++) {
            const double value = bsw_refine_reference.value(
                c.metric, c.type, rows.raw.data() + r * row_bytes,
                queries.doubles.data() + static_cast<size_t>(q) * c.dims, queries.norms[q], c.dims);
            all.push_back({bsw_exact_score(bsw_metric_key(c.metric, value)), scan_first_row + r});
        }
        std::vector<exact_item> ordered = all;
        std::sort(ordered.begin(), ordered.end(), std::greater<exact_item>());
        uint64_t limit = 0;
        if (setting.limit_place > 0) limit = ordered[(setting.limit_place - 1) % c.num_rows].score;
        if (setting.limit_place > 1 && q == 0) limit = UINT64_MAX;
        for (uint32_t r = 0; r < c.num_rows; r++) {
            if (is_scanned(setting.part, r / 32) && (out.masks[r / 32] >> r % 32 & 1) &&
                all[r].score >= limit)
                own.push_back(all[r]);
        }
        std::sort(own.begin(), own.end(), std::greater<exact_item>());
        out.limits.push_back(limit);
        out.neighbours.push_back(own);
    }
    return out;
}

void check_list(const std::string &shape, uint32_t query, const uint64_t *scores,
                const uint32_t *rows, uint32_t capacity, uint32_t count,
                const std::vector<exact_item> &expected)
{
    const uint32_t stored = std::min(count, capacity);
    std::vector<exact_item> got;
    for (uint32_t i = 0; i < stored; i++) got.push_back({scores[i], rows[i]});
    std::sort(got.begin(), got.end(), std::greater<exact_item>());
    bool holds = count == expected.size() &&
                 std::includes(expected.begin(), expected.end(), got.begin(), got.end(),
                               std::greater<exact_item>()) &&
                 std::adjacent_find(got.begin(), got.end()) == got.end() &&
                 std::all_of(scores + stored, scores + capacity,
                             [](uint64_t score) { return score == untouched; });
    check_that(holds, "%s: query %u: %u candidates, %zu expected, or others", shape.c_str(), query,
               count, expected.size());
}
