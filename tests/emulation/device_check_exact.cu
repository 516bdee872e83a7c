// SPDX-License-Identifier: Apache-2.0
// Norms, values of pairs and of lists, and the exact scans against refine of the CPU.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>

#include "device_check_exact_case.hpp"
#include "kernels/gpu_lists/gpu_refine.h"
#include "kernels/refine/refine.h"

namespace
{

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

void check_wide(const exact_case &c, const bsw_device_raw_rows &rows, const numbers &expected)
{
    device_array<double> wide(expected.doubles.size());
    const std::string shape = describe(c, "wide");
    if (!check_launch(bsw_device_widen(&rows, wide.get(), nullptr), shape)) return;
    std::vector<double> got = wide.values();
    for (size_t i = 0; i < got.size(); i++)
        check_that(same_bits(got[i], expected.doubles[i]), "%s: number %zu: %a, expected %a",
                   shape.c_str(), i, got[i], expected.doubles[i]);
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
    check_wide(c, device_rows, rows);
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

// ---- lists ----

constexpr uint32_t list_capacity = 40;

// Query q has every row from number q on that a draw takes, best score first, up to its own count.
std::vector<uint64_t> make_list(const exact_case &c, uint32_t q, uint32_t count)
{
    std::vector<uint64_t> items;
    for (uint32_t i = 0; i < c.num_rows && items.size() < count; i++) {
        const uint64_t random = check_random(c.stream + 3, q * 1000 + i);
        if (random % 4 == 0) continue;
        items.push_back(
            bsw_candidate_pack(static_cast<uint32_t>(random >> 40), (q + 7 * i) % c.num_rows));
    }
    std::sort(items.begin(), items.end(), std::greater<uint64_t>());
    return items;
}

// What the host makes of it: shard/host/survivor_trim.h.
std::vector<bsw_device_survivor> expect_survivors(const exact_case &c, const numbers &rows,
                                                  const double *query, double norm,
                                                  std::vector<uint64_t> items, uint32_t take)
{
    std::vector<bsw_device_survivor> out;
    const size_t row_bytes = c.dims * bsw_vector_type_bytes(c.type);
    for (const uint64_t item : items) {
        const uint32_t row = bsw_candidate_row(item);
        out.push_back(
            {bsw_refine_reference.value(c.metric, c.type, rows.raw.data() + row * row_bytes, query,
                                        norm, c.dims),
             bsw_candidate_score(item), row});
    }
    std::sort(out.begin(), out.end(), [&](const auto &a, const auto &b) {
        const uint64_t first = bsw_exact_score(bsw_metric_key(c.metric, a.value)),
                       second = bsw_exact_score(bsw_metric_key(c.metric, b.value));
        return first != second ? first > second : a.row < b.row;
    });
    if (out.size() > take) out.resize(take);
    std::sort(out.begin(), out.end(), [](const auto &a, const auto &b) { return a.row < b.row; });
    return out;
}

void check_lists_of(const exact_case &c, uint32_t keep, uint32_t take)
{
    const numbers rows = make_numbers(c, c.stream, c.num_rows),
                  queries = make_numbers(c, c.stream + 1, c.num_queries);
    const std::vector<float> vectors(queries.doubles.begin(), queries.doubles.end());
    const std::string shape = describe(c, "lists");
    std::vector<uint64_t> items;
    std::vector<uint32_t> num;
    for (uint32_t q = 0; q < c.num_queries; q++) {
        std::vector<uint64_t> own = make_list(c, q, q % 5 < 3 ? keep : q % 5 == 3 ? 0 : 1);
        num.push_back(static_cast<uint32_t>(own.size()));
        own.resize(list_capacity, UINT64_MAX);
        items.insert(items.end(), own.begin(), own.end());
    }
    device_array<uint8_t> raw(rows.raw);
    device_array<float> device_queries(vectors);
    device_array<uint64_t> device_items(items);
    device_array<uint32_t> counts(num);
    const bsw_device_survivor none = {-7, 7, 7};
    device_array<bsw_device_survivor> out(
        std::vector<bsw_device_survivor>(static_cast<size_t>(c.num_queries) * take, none));
    const bsw_device_raw_rows device_rows = {c.type, c.dims, c.num_rows, raw.get()};
    bsw_device_lists lists = {};
    lists.num_queries = c.num_queries;
    lists.capacity = list_capacity;
    lists.items = device_items.get();
    lists.counts = counts.get();
    if (!check_launch(bsw_device_refine_lists(c.metric, &device_rows, device_queries.get(), &lists,
                                              keep, take, out.get(), nullptr),
                      shape))
        return;
    const std::vector<bsw_device_survivor> got = out.values();
    for (uint32_t q = 0; q < c.num_queries; q++) {
        const uint64_t *own = items.data() + static_cast<size_t>(q) * list_capacity;
        std::vector<bsw_device_survivor> expected =
            expect_survivors(c, rows, queries.doubles.data() + static_cast<size_t>(q) * c.dims,
                             queries.norms[q], {own, own + num[q]}, take);
        expected.resize(take, none);
        for (uint32_t i = 0; i < take; i++)
            check_that(same_bits(got[static_cast<size_t>(q) * take + i], expected[i]),
                       "%s: %u of %u, query %u, place %u: row %u, expected %u", shape.c_str(), take,
                       keep, q, i, got[static_cast<size_t>(q) * take + i].row, expected[i].row);
    }
}

void check_list_refusals()
{
    device_array<uint8_t> bytes(64);
    bsw_device_lists lists = {};
    lists.num_queries = 1;
    lists.capacity = 8;
    auto refine = [&](bsw_vector_type type, uint32_t keep, uint32_t take) {
        const bsw_device_raw_rows rows = {type, 4, 2, bytes.get()};
        return bsw_device_refine_lists(BSW_METRIC_L2, &rows, nullptr, &lists, keep, take, nullptr,
                                       nullptr);
    };
    check_that(refine(BSW_VECTOR_INT32, 2, 2) == cudaErrorInvalidValue, "lists of int32");
    check_that(refine(BSW_VECTOR_UINT8, 2, 3) == cudaErrorInvalidValue, "more than are kept");
    check_that(refine(BSW_VECTOR_UINT8, 9, 3) == cudaErrorInvalidValue, "more than a list has");
    check_that(refine(BSW_VECTOR_UINT8, 2, 0) == cudaErrorInvalidValue, "none of a list");
}

// ---- scans ----

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
                exact_case c = small_case(metric, type, fill, stream += 10);
                check_pairs(c);
                check_lists_of(c, 1 + stream % 7, 1);
                check_lists_of(c, 23, 1 + stream % 23);
                check_scans_of(c, {{0, 2, 1}, fill == EQUAL_ROWS ? 3u : 9u, 0});
                if (checks.small && type != fill) continue;
                c.dims = fill == RANDOM_NUMBERS ? 1 : fill == EXTREMES ? 960 : 33;
                c.num_rows = fill == EXTREMES ? 8 : 130;
                check_pairs(c);
                check_lists_of(c, list_capacity, fill % 2 ? list_capacity : 10);
                c.num_queries = fill == ZEROS ? 70 : 3; // 70: more than one step of both scans
                check_scans_of(c, {{fill == ZEROS, (c.num_rows + 31) / 32, 2}, 0, 0});
                if (fill == RANDOM_NUMBERS) check_scans_of(c, {{0, 5, 1}, 0, 11});
            }
        }
    }
    check_list_refusals();
    check_scan_refusals();
}
