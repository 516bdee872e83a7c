// SPDX-License-Identifier: Apache-2.0
// Norms, values of pairs and the exact scans against refine of the CPU.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "device_check.hpp"
#include "kernels/device_exact/device_exact.h"
#include "kernels/refine/refine.h"

namespace
{

// EXTREMES: for floats numbers from subnormal to such that norms stay below 1e37, for integers
// their ends; TINY: products of floats underflow; ZEROS: every other row and query is zero, of
// both signs.
enum number_fill { RANDOM_NUMBERS, EQUAL_ROWS, EXTREMES, TINY, ZEROS, NUM_NUMBER_FILLS };

struct exact_case {
    bsw_metric metric;
    bsw_vector_type type;
    uint32_t dims, num_rows, num_queries;
    number_fill fill;
    uint64_t stream;
};

std::string describe(const exact_case &c, const char *kernel)
{
    char text[200];
    snprintf(text, sizeof text, "%s, %s of %s, %u dims, %u rows, %u queries, fill %d", kernel,
             bsw_metric_name(c.metric), bsw_vector_type_name(c.type), c.dims, c.num_rows,
             c.num_queries, c.fill);
    return text;
}

float make_float(const exact_case &c, uint64_t random)
{
    const float number = static_cast<float>(static_cast<int32_t>(random)) * 0x1p-31f;
    if (c.fill == TINY) return number * 1e-30f;
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

// Vectors as a source has them and as the reference takes them.
struct numbers {
    std::vector<uint8_t> raw;
    std::vector<double> doubles, norms;
};

numbers make_numbers(const exact_case &c, uint64_t stream, uint32_t count)
{
    numbers out;
    for (uint32_t r = 0; r < count; r++) {
        for (uint32_t i = 0; i < c.dims; i++) {
            const uint64_t place = (c.fill == EQUAL_ROWS ? r % 2 : r) * uint64_t{1 << 16} + i;
            put_number(c, check_random(stream, place), c.fill == ZEROS && r % 2, out.raw);
        }
        // A zero row has no cosine.
        if (c.metric == BSW_METRIC_COSINE && (c.fill != RANDOM_NUMBERS || c.dims == 1))
            put_one(c, out.raw.data() + out.raw.size() - c.dims * bsw_vector_type_bytes(c.type));
    }
    out.doubles.resize(static_cast<size_t>(count) * c.dims);
    bsw_refine_reference.to_double(c.type, out.raw.data(), out.doubles.size(), out.doubles.data());
    for (uint32_t r = 0; r < count; r++)
        out.norms.push_back(bsw_refine_reference.squared_norm(
            out.doubles.data() + static_cast<size_t>(r) * c.dims, c.dims));
    return out;
}

template <class T> bool same_bits(const T &a, const T &b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

// ---- pairs ----

void check_norms(const exact_case &c, const bsw_device_raw_rows &rows, const numbers &expected)
{
    device_array<double> norms(c.num_rows);
    const std::string shape = describe(c, "norms");
    if (!check_launch(bsw_device_row_norms(&rows, norms.get(), nullptr), shape)) return;
    std::vector<double> got = norms.values();
    for (uint32_t r = 0; r < c.num_rows; r++)
        check_that(same_bits(got[r], expected.norms[r]), "%s: row %u: %a, expected %a",
                   shape.c_str(), r, got[r], expected.norms[r]);
}

void check_pairs(const exact_case &c)
{
    const numbers rows = make_numbers(c, c.stream, c.num_rows);
    const numbers queries = make_numbers(c, c.stream + 1, c.num_queries);
    device_array<uint8_t> raw(rows.raw);
    device_array<double> doubles(queries.doubles), norms(queries.norms);
    const bsw_device_raw_rows device_rows = {c.type, c.dims, c.num_rows, raw.get()};
    const bsw_device_vectors device_queries = {c.num_queries, doubles.get(), norms.get()};
    check_norms(c, device_rows, rows);
    std::vector<bsw_device_pair> pairs;
    for (uint32_t i = 0; i < 37; i++) {
        const uint64_t random = check_random(c.stream + 2, i);
        pairs.push_back({static_cast<uint32_t>(random % c.num_queries),
                         static_cast<uint32_t>((random >> 32) % c.num_rows)});
    }
    device_array<bsw_device_pair> device_pairs(pairs);
    device_array<double> values(pairs.size());
    const std::string shape = describe(c, "pairs");
    if (!check_launch(bsw_device_refine(c.metric, &device_rows, &device_queries, device_pairs.get(),
                                        pairs.size(), values.get(), nullptr),
                      shape))
        return;
    std::vector<double> got = values.values();
    const size_t row_bytes = c.dims * bsw_vector_type_bytes(c.type);
    for (size_t i = 0; i < pairs.size(); i++) {
        const double expected = bsw_refine_reference.value(
            c.metric, c.type, rows.raw.data() + pairs[i].row * row_bytes,
            queries.doubles.data() + static_cast<size_t>(pairs[i].query) * c.dims,
            queries.norms[pairs[i].query], c.dims);
        check_that(same_bits(got[i], expected), "%s: row %u, query %u: %a, expected %a",
                   shape.c_str(), pairs[i].row, pairs[i].query, got[i], expected);
    }
}

// ---- scans ----

constexpr uint32_t scan_first_row = 1000;
constexpr uint64_t untouched = 7; // a score

struct scan_setting {
    bsw_device_part part;
    uint32_t limit_place; // the limit is the score at this place of a query's rows; 0: none
    uint32_t capacity;    // 0: enough
};

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

struct scan_truth {
    std::vector<uint32_t> masks;
    std::vector<uint64_t> limits;
    std::vector<std::vector<exact_item>> neighbours; // of each query, in order
};

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

// Vectors in device memory for one of the scans; the last bundle's memory reaches to its end.
struct scan_data {
    device_array<uint8_t> raw_rows, raw_queries;
    device_array<double> row_norms, query_norms, doubles;
    device_array<uint8_t> row_bytes, query_bytes;
    device_array<bsw_device_packed_term> row_terms, query_terms;
    bsw_device_raw_rows raw;
    bsw_device_packed packed_rows, packed_queries;

    scan_data(const exact_case &c, const numbers &rows, const numbers &queries)
        : raw_rows(padded(c, rows)), raw_queries(queries.raw), row_norms(num_rows(c)),
          query_norms(queries.norms), doubles(queries.doubles),
          row_bytes(packed_bytes(c, num_rows(c))), query_bytes(packed_bytes(c, c.num_queries)),
          row_terms(num_rows(c)), query_terms(c.num_queries)
    {
        raw = {c.type, c.dims, c.num_rows, raw_rows.get()};
        const uint32_t dims = bsw_device_packed_dims(c.dims);
        packed_rows = {dims, row_bytes.get(), row_terms.get()};
        packed_queries = {dims, query_bytes.get(), query_terms.get()};
        const std::string shape = describe(c, "norms and packing");
        check_launch(bsw_device_row_norms(&raw, row_norms.get(), nullptr), shape);
        if (c.type != BSW_VECTOR_UINT8 && c.type != BSW_VECTOR_INT8) return;
        const bsw_device_raw_rows own = {c.type, c.dims, c.num_queries, raw_queries.get()};
        check_launch(bsw_device_pack(c.metric, &raw, 0, row_bytes.get(), row_terms.get(), nullptr),
                     shape);
        check_launch(
            bsw_device_pack(c.metric, &own, 1, query_bytes.get(), query_terms.get(), nullptr),
            shape);
    }
    static size_t num_rows(const exact_case &c)
    {
        return (static_cast<size_t>(c.num_rows) + 31) / 32 * 32;
    }
    static size_t packed_bytes(const exact_case &c, size_t count)
    {
        return count * bsw_device_packed_dims(c.dims);
    }
    static std::vector<uint8_t> padded(const exact_case &c, const numbers &rows)
    {
        std::vector<uint8_t> out = rows.raw;
        out.resize(num_rows(c) * c.dims * bsw_vector_type_bytes(c.type), 0xff);
        return out;
    }
};

// Everything expected where there is room, else some of it, and junk behind.
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

void check_scan(const exact_case &c, const scan_setting &setting, bool is_integer,
                const scan_data &data, const scan_truth &truth)
{
    const std::string shape = describe(c, is_integer ? "integer scan" : "float64 scan");
    const uint32_t capacity = setting.capacity > 0 ? setting.capacity : c.num_rows + 2;
    const uint32_t num_queries = c.num_queries;
    const size_t places = static_cast<size_t>(num_queries) * capacity;
    device_array<uint64_t> scores(std::vector<uint64_t>(places, untouched)), limits(truth.limits);
    device_array<uint32_t> counts(std::vector<uint32_t>(num_queries, 0)), rows_found(places),
        masks(truth.masks);
    const bsw_device_exact_lists lists = {num_queries,      capacity,     scores.get(),
                                          rows_found.get(), counts.get(), limits.get()};
    const bsw_device_exact_rows rows = {static_cast<uint32_t>(truth.masks.size()), scan_first_row,
                                        data.row_norms.get(), masks.get()};
    const bsw_device_vectors queries = {num_queries, data.doubles.get(), data.query_norms.get()};
    const int code = is_integer
                         ? bsw_device_exact_integer_scan(c.metric, &rows, &data.packed_rows,
                                                         &setting.part, &data.packed_queries,
                                                         data.query_norms.get(), &lists, nullptr)
                         : bsw_device_exact_scan(c.metric, &rows, &data.raw, &setting.part,
                                                 &queries, &lists, nullptr);
    if (!check_launch(code, shape)) return;
    std::vector<uint64_t> got = scores.values();
    std::vector<uint32_t> got_counts = counts.values(), got_rows = rows_found.values();
    for (uint32_t q = 0; q < num_queries; q++)
        check_list(shape, q, got.data() + static_cast<size_t>(q) * capacity,
                   got_rows.data() + static_cast<size_t>(q) * capacity, capacity, got_counts[q],
                   truth.neighbours[q]);
}

void check_scans_of(const exact_case &c, const scan_setting &setting)
{
    const numbers rows = make_numbers(c, c.stream, c.num_rows);
    const numbers queries = make_numbers(c, c.stream + 1, c.num_queries);
    const scan_data data(c, rows, queries);
    const scan_truth truth = find_truth(c, setting, rows, queries);
    check_scan(c, setting, false, data, truth);
    if (c.type == BSW_VECTOR_UINT8 || c.type == BSW_VECTOR_INT8)
        check_scan(c, setting, true, data, truth);
}

void check_scan_refusals()
{
    const exact_case c = {BSW_METRIC_L2, BSW_VECTOR_UINT8, 5, 40, 2, RANDOM_NUMBERS, 900};
    const numbers rows = make_numbers(c, c.stream, c.num_rows);
    const scan_data data(c, rows, make_numbers(c, c.stream + 1, c.num_queries));
    device_array<uint64_t> scores(16), limits(2);
    device_array<uint32_t> counts(std::vector<uint32_t>(2, 3)), found(16), masks(2);
    const bsw_device_exact_rows tile = {2, 0, data.row_norms.get(), masks.get()};
    const bsw_device_vectors queries = {2, data.doubles.get(), data.query_norms.get()};
    bsw_device_exact_lists lists = {2, 8, scores.get(), found.get(), counts.get(), limits.get()};
    auto scan = [&](bsw_device_part part, const bsw_device_raw_rows &raw) {
        return bsw_device_exact_scan(c.metric, &tile, &raw, &part, &queries, &lists, nullptr);
    };
    bsw_device_raw_rows wrong = data.raw;
    wrong.type = BSW_VECTOR_INT32;
    check_that(scan({0, 2, 1}, wrong) == cudaErrorInvalidValue, "a scan of int32");
    check_that(bsw_device_row_norms(&wrong, data.row_norms.get(), nullptr) == cudaErrorInvalidValue,
               "norms of int32");
    check_that(scan({0, 3, 1}, data.raw) == cudaErrorInvalidValue, "bundles beyond the last");
    check_that(scan({0, 2, 0}, data.raw) == cudaErrorInvalidValue, "a step of 0");
    check_that(scan({2, 2, 1}, data.raw) == cudaSuccess, "no bundles");
    check_launch(0, "no bundles");
    check_that(counts.values() == std::vector<uint32_t>(2, 3), "no bundles: counts");
    lists.capacity = UINT32_MAX - 10;
    check_that(scan({0, 2, 1}, data.raw) == cudaErrorInvalidValue, "too long lists");
    wrong.type = BSW_VECTOR_FLOAT32;
    check_that(bsw_device_pack(c.metric, &wrong, 0, data.row_bytes.get(), data.row_terms.get(),
                               nullptr) == cudaErrorInvalidValue,
               "packing of floats");
}

} // namespace

void check_exact()
{
    uint64_t stream = 5000;
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        for (int type = 0; type <= BSW_VECTOR_INT8; type++) {
            for (int fill = 0; fill < NUM_NUMBER_FILLS; fill++) {
                exact_case c = {static_cast<bsw_metric>(metric),
                                static_cast<bsw_vector_type>(type),
                                31,
                                41,
                                5,
                                static_cast<number_fill>(fill),
                                stream += 10};
                check_pairs(c);
                check_scans_of(c, {{0, 2, 1}, fill == EQUAL_ROWS ? 3u : 9u, 0});
                if (checks.small && type != fill) continue;
                c.dims = fill == RANDOM_NUMBERS ? 1 : fill == EXTREMES ? 960 : 33;
                c.num_rows = fill == EXTREMES ? 8 : 130;
                check_pairs(c);
                c.num_queries = fill == ZEROS ? 70 : 3; // 70: more than one step of both scans
                check_scans_of(c, {{fill == ZEROS, (c.num_rows + 31) / 32, 2}, 0, 0});
                if (fill == RANDOM_NUMBERS) check_scans_of(c, {{0, 5, 1}, 0, 11});
            }
        }
    }
    check_scan_refusals();
}
