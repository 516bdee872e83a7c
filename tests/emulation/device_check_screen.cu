// SPDX-License-Identifier: Apache-2.0
// gpu_screen: packed halves and their terms against plain code, bit for bit; survivors against sums
// in float64, which say of nearly all pairs whether they survive; lists against refine of the CPU,
// also where survivors have no room.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "common/codes/half.h"
#include "device_check_exact_case.hpp"
#include "kernels/gpu_screen/gpu_screen.h"
#include "kernels/screen/screen_margin.h"

namespace
{

template <class T> bool same_bits(const T &a, const T &b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

// ---- the oracle of packing ----

struct half_vector {
    std::vector<uint16_t> halves;
    int exponent;
    double error; // p or r
};

half_vector pack_plainly(const double *numbers, uint32_t dims, double norm)
{
    half_vector out = {std::vector<uint16_t>(bsw_half_padded_dims(dims)), 0, 0};
    float largest = 0, lanes[32] = {};
    for (uint32_t i = 0; i < dims; i++)
        largest = std::max(largest, std::fabs(static_cast<float>(numbers[i])));
    uint32_t bits;
    memcpy(&bits, &largest, sizeof bits);
    out.exponent = bsw_screen_half_exponent(bits);
    for (uint32_t i = 0; i < dims; i++) {
        const float number = std::ldexp(static_cast<float>(numbers[i]), out.exponent);
        const uint16_t half = bsw_half_nearest(std::fabs(number));
        const float error = std::fabs(number) - bsw_half_to_float(half);
        out.halves[i] = static_cast<uint16_t>(half | (std::signbit(number) ? 0x8000 : 0));
        lanes[i % 32] = std::fma(error, error, lanes[i % 32]);
    }
    for (uint32_t h = 16; h > 0; h /= 2)
        for (uint32_t j = 0; j < h; j++) lanes[j] += lanes[j + h];
    out.error = bsw_screen_half_error(lanes[0], norm, out.exponent);
    return out;
}

std::vector<half_vector> pack_all(const numbers &vectors, uint32_t dims)
{
    std::vector<half_vector> out;
    for (size_t i = 0; i < vectors.norms.size(); i++)
        out.push_back(pack_plainly(vectors.doubles.data() + i * dims, dims, vectors.norms[i]));
    return out;
}

// What follows from halves, as the device has it.
struct plain_screen {
    std::vector<half_vector> rows, queries;
    std::vector<bsw_half_row_term> row_terms; // of rows that masks leave
    std::vector<float> units;
    std::vector<bsw_half_query_term> query_terms;
    float worst = 0;
    uint32_t padded;
};

plain_screen screen_plainly(const exact_case &c, const numbers &rows, const numbers &queries,
                            const scan_truth &truth)
{
    plain_screen out;
    out.rows = pack_all(rows, c.dims);
    out.queries = pack_all(queries, c.dims);
    out.padded = bsw_half_padded_dims(c.dims);
    for (const half_vector &query : out.queries) {
        const bool is_screened = query.error <= BSW_SCREEN_HALF_QUERY_ERROR;
        out.units.push_back(is_screened ? std::ldexp(1.0f, query.exponent) : 0.0f);
        if (is_screened) out.worst = std::max(out.worst, bsw_round_up(query.error));
    }
    const double balance =
        bsw_screen_half_balance(out.worst, out.padded, c.type == BSW_VECTOR_FLOAT32);
    for (size_t r = 0; r < out.rows.size(); r++) {
        const float scale = std::ldexp(1.0f, -out.rows[r].exponent);
        const bool is_cosine = c.metric == BSW_METRIC_COSINE;
        out.row_terms.push_back(
            {is_cosine ? static_cast<float>(scale / std::sqrt(rows.norms[r])) : scale,
             bsw_screen_half_bias(c.metric, rows.norms[r], out.rows[r].error, out.worst, balance,
                                  out.padded)});
    }
    for (size_t q = 0; q < out.queries.size(); q++) {
        const float weight =
            out.units[q] > 0 ? bsw_screen_half_weight(c.metric, queries.norms[q], out.units[q]) : 1;
        const float limit = out.units[q] > 0
                                ? bsw_screen_half_limit(c.metric, queries.norms[q], balance, weight,
                                                        truth.limits[q])
                                : -INFINITY;
        out.query_terms.push_back({weight, limit});
    }
    return out;
}

// Whether a pair survives: 1 or 0, or -1 where it depends on how a device rounds.
int survives(const exact_case &c, const plain_screen &plain, size_t r, size_t q)
{
    double dot = 0, size = 0;
    for (uint32_t i = 0; i < c.dims; i++) {
        auto number = [&](uint16_t half) { return static_cast<double>(bsw_half_to_float(half)); };
        const double product = number(plain.rows[r].halves[i]) * number(plain.queries[q].halves[i]);
        dot += product;
        size += std::fabs(product);
    }
    const bsw_half_row_term &row = plain.row_terms[r];
    const bsw_half_query_term &query = plain.query_terms[q];
    const double scaled = dot * row.scale, added = static_cast<double>(row.bias) * query.weight;
    if (std::isinf(query.limit)) return query.limit < 0;
    if (std::fabs(added) > FLT_MAX) return added > 0 ? 1 : -1;
    const double spare = bsw_screen_half_sum(plain.padded) * size * row.scale +
                         0x1p-22 * (std::fabs(scaled) + std::fabs(added)) + 0x1p-140;
    if (scaled + added - spare > query.limit) return 1;
    return scaled + added + spare < query.limit ? 0 : -1;
}

// ---- the device's ----

struct screen_data {
    device_array<uint8_t> raw_rows;
    device_array<double> row_norms, query_norms, doubles;
    device_array<uint32_t> masks, worst;
    device_array<uint16_t> row_halves, query_halves;
    device_array<bsw_half_row_term> row_terms;
    device_array<bsw_half_query_term> query_terms;
    device_array<float> units;
    device_array<bsw_device_pair> pairs;
    device_array<bsw_screen_counts> counts;
    bsw_device_raw_rows raw;
    bsw_device_exact_rows rows;
    bsw_device_vectors queries;
    bsw_half_rows half_rows;
    bsw_half_queries half_queries;

    screen_data(const exact_case &c, const numbers &row_numbers, const numbers &query_numbers,
                const scan_truth &truth, size_t num_pairs)
        : raw_rows(padded_rows(c, row_numbers, truth)), row_norms(truth.masks.size() * 32),
          query_norms(query_numbers.norms), doubles(query_numbers.doubles), masks(truth.masks),
          worst(1), row_halves(truth.masks.size() * 32 * bsw_half_padded_dims(c.dims)),
          query_halves(static_cast<size_t>(c.num_queries) * bsw_half_padded_dims(c.dims)),
          row_terms(truth.masks.size() * 32), query_terms(c.num_queries), units(c.num_queries),
          pairs(num_pairs), counts(std::vector<bsw_screen_counts>(1, {0, 0, 0}))
    {
        const uint32_t padded = bsw_half_padded_dims(c.dims);
        raw = {c.type, c.dims, c.num_rows, raw_rows.get()};
        rows = {static_cast<uint32_t>(truth.masks.size()), scan_first_row, row_norms.get(),
                masks.get()};
        queries = {c.num_queries, doubles.get(), query_norms.get()};
        half_rows = {padded, row_halves.get(), row_terms.get()};
        half_queries = {padded, query_halves.get(), units.get(), query_terms.get(), worst.get()};
        const std::string shape = describe(c, "packing of halves");
        check_launch(bsw_device_row_norms(&raw, row_norms.get(), nullptr), shape);
        check_launch(bsw_half_pack_queries(&queries, c.dims, &half_queries, nullptr), shape);
        check_launch(bsw_half_pack_rows(c.metric, &rows, &raw, &half_queries, &half_rows, nullptr),
                     shape);
    }
    // Up to the end of the last bundle.
    static std::vector<uint8_t> padded_rows(const exact_case &c, const numbers &rows,
                                            const scan_truth &truth)
    {
        std::vector<uint8_t> out = rows.raw;
        out.resize(truth.masks.size() * 32 * c.dims * bsw_vector_type_bytes(c.type), 0xff);
        return out;
    }
};

// Halves of vector i, but for those of rows that are masked.
bool are_packed(const std::vector<uint16_t> &got, const half_vector &expected, size_t i)
{
    return std::equal(expected.halves.begin(), expected.halves.end(),
                      got.begin() + static_cast<std::ptrdiff_t>(i * expected.halves.size()));
}

void check_packing(const exact_case &c, const screen_data &data, const plain_screen &plain,
                   const scan_truth &truth)
{
    const std::string shape = describe(c, "packing of halves");
    const std::vector<uint16_t> rows = data.row_halves.values(),
                                queries = data.query_halves.values();
    const std::vector<bsw_half_row_term> terms = data.row_terms.values();
    const std::vector<float> units = data.units.values();
    uint32_t worst;
    memcpy(&worst, &plain.worst, sizeof worst);
    check_that(data.worst.values()[0] == worst, "%s: the worst error", shape.c_str());
    for (size_t q = 0; q < c.num_queries; q++)
        check_that(are_packed(queries, plain.queries[q], q) && same_bits(units[q], plain.units[q]),
                   "%s: query %zu", shape.c_str(), q);
    for (size_t r = 0; r < truth.masks.size() * 32; r++) {
        if (truth.masks[r / 32] >> r % 32 & 1)
            check_that(are_packed(rows, plain.rows[r], r) &&
                           same_bits(terms[r], plain.row_terms[r]),
                       "%s: row %zu: %a, %a, expected %a, %a", shape.c_str(), r,
                       static_cast<double>(terms[r].scale), static_cast<double>(terms[r].bias),
                       static_cast<double>(plain.row_terms[r].scale),
                       static_cast<double>(plain.row_terms[r].bias));
        else
            check_that(std::isnan(terms[r].bias), "%s: row %zu is masked", shape.c_str(), r);
    }
}

// Every pair that must survive is there once, none that must not.
void check_survivors(const exact_case &c, const scan_setting &setting, const screen_data &data,
                     const plain_screen &plain, const scan_truth &truth)
{
    const std::string shape = describe(c, "survivors");
    const size_t num = data.counts.values()[0].num;
    std::vector<bsw_device_pair> pairs = data.pairs.values();
    std::set<std::pair<uint32_t, uint32_t>> found;
    check_that(num <= pairs.size(), "%s: %zu of %zu", shape.c_str(), num, pairs.size());
    for (size_t i = 0; i < std::min(num, pairs.size()); i++)
        found.insert({pairs[i].query, pairs[i].row});
    check_that(found.size() == num, "%s: some are twice there", shape.c_str());
    for (uint32_t q = 0; q < c.num_queries; q++) {
        for (const exact_item &item : truth.neighbours[q])
            check_that(found.count({q, item.row - scan_first_row}) == 1,
                       "%s: row %u of query %u is lost", shape.c_str(), item.row, q);
        for (uint32_t r = 0; r < truth.masks.size() * 32; r++) {
            const bool may_be =
                is_scanned(setting.part, r / 32) && truth.masks[r / 32] >> r % 32 & 1;
            const int expected = may_be ? survives(c, plain, r, q) : 0;
            const int got = static_cast<int>(found.count({q, r}));
            check_that(expected < 0 || got == expected, "%s: row %u, query %u: %d", shape.c_str(),
                       r, q, got);
        }
    }
}

void check_lists(const exact_case &c, const scan_setting &setting, const screen_data &data,
                 const scan_truth &truth, size_t room)
{
    const std::string shape = describe(c, room > 0 ? "screened scan" : "screened scan, no room");
    const uint32_t capacity = setting.capacity > 0 ? setting.capacity : c.num_rows + 2;
    const size_t places = static_cast<size_t>(c.num_queries) * capacity;
    device_array<uint64_t> scores(std::vector<uint64_t>(places, untouched)), limits(truth.limits);
    device_array<uint32_t> counts(std::vector<uint32_t>(c.num_queries, 0)), rows_found(places);
    const bsw_device_exact_lists lists = {c.num_queries,    capacity,     scores.get(),
                                          rows_found.get(), counts.get(), limits.get()};
    const bsw_screen_survivors survivors = {room, data.pairs.get(), data.counts.get()};
    if (!check_launch(bsw_device_screened_scan(c.metric, &data.rows, &data.raw, &data.half_rows,
                                               &setting.part, &data.queries, &data.half_queries,
                                               &survivors, &lists, nullptr),
                      shape))
        return;
    const std::vector<uint64_t> got = scores.values();
    const std::vector<uint32_t> got_counts = counts.values(), got_rows = rows_found.values();
    for (uint32_t q = 0; q < c.num_queries; q++)
        check_list(shape, q, got.data() + static_cast<size_t>(q) * capacity,
                   got_rows.data() + static_cast<size_t>(q) * capacity, capacity, got_counts[q],
                   truth.neighbours[q]);
}

// What the counts say after two scans alike.
void check_counts(const exact_case &c, const screen_data &data, const bsw_screen_counts &expected)
{
    const bsw_screen_counts got = data.counts.values()[0];
    check_that(got.num == expected.num && got.valued == expected.valued &&
                   got.overflows == expected.overflows,
               "%s: counts", describe(c, "screened scan").c_str());
}

// With room for all pairs, then for fewer than survive.
void check_screen_of(const exact_case &c, const scan_setting &setting)
{
    const numbers rows = make_numbers(c, c.stream, c.num_rows);
    const numbers queries = make_numbers(c, c.stream + 1, c.num_queries);
    const scan_truth truth = find_truth(c, setting, rows, queries);
    const size_t num_pairs = truth.masks.size() * 32 * c.num_queries;
    screen_data data(c, rows, queries, truth, num_pairs);
    const plain_screen plain = screen_plainly(c, rows, queries, truth);
    check_packing(c, data, plain, truth);
    check_lists(c, setting, data, truth, num_pairs);
    const std::vector<bsw_half_query_term> terms = data.query_terms.values();
    for (size_t q = 0; q < c.num_queries; q++)
        check_that(same_bits(terms[q], plain.query_terms[q]), "%s: query %zu: %a",
                   describe(c, "limits").c_str(), q, static_cast<double>(terms[q].limit));
    check_survivors(c, setting, data, plain, truth);
    const uint64_t num = data.counts.values()[0].num;
    if (c.num_queries < 100) {
        check_lists(c, setting, data, truth, num_pairs);
        check_counts(c, data, {num, num, 0});
    }
    data.counts.put({{0, 0, 0}});
    for (int i = 0; i < 2; i++) check_lists(c, setting, data, truth, num / 2);
    check_counts(c, data, {num, 0, num > 0});
}

void check_screen_refusals()
{
    const exact_case c = {BSW_METRIC_L2, BSW_VECTOR_FLOAT32, 5, 40, 2, RANDOM_NUMBERS, 7900};
    const scan_setting setting = {{0, 2, 1}, 3, 0};
    const numbers rows = make_numbers(c, c.stream, c.num_rows), queries = make_numbers(c, 7901, 2);
    const scan_truth truth = find_truth(c, setting, rows, queries);
    const screen_data data(c, rows, queries, truth, 128);
    bsw_half_queries narrow = data.half_queries;
    narrow.padded_dims = 5;
    check_that(bsw_half_pack_queries(&data.queries, 5, &narrow, nullptr) == cudaErrorInvalidValue,
               "halves without padding");
    bsw_device_raw_rows wrong = data.raw;
    wrong.type = BSW_VECTOR_INT32;
    check_that(bsw_half_pack_rows(c.metric, &data.rows, &wrong, &data.half_queries, &data.half_rows,
                                  nullptr) == cudaErrorInvalidValue,
               "halves of int32");
    device_array<uint64_t> scores(16), limits(2);
    device_array<uint32_t> counts(2), found(16);
    const bsw_device_exact_lists lists = {2,           8, scores.get(), found.get(), counts.get(),
                                          limits.get()};
    const bsw_screen_survivors survivors = {128, data.pairs.get(), data.counts.get()};
    auto scan = [&](const bsw_device_part &part, const bsw_half_queries &own) {
        return bsw_device_screened_scan(c.metric, &data.rows, &data.raw, &data.half_rows, &part,
                                        &data.queries, &own, &survivors, &lists, nullptr);
    };
    check_that(scan({0, 2, 1}, narrow) == cudaErrorInvalidValue, "a screen of other dims");
    check_that(scan({0, 3, 1}, data.half_queries) == cudaErrorInvalidValue,
               "a screen beyond the last bundle");
    check_that(scan({1, 1, 1}, data.half_queries) == cudaSuccess, "a screen of no bundles");
}

} // namespace

void check_screens()
{
    uint64_t stream = 8000;
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        for (int type = 0; type <= BSW_VECTOR_INT8; type++) {
            for (int fill = 0; fill < NUM_NUMBER_FILLS; fill++) {
                exact_case c = small_case(metric, type, fill, stream += 10);
                if (type != BSW_VECTOR_FLOAT32 && (fill == FAR || fill == SCALED)) continue;
                check_screen_of(c, {{0, 2, 1}, 5, 0});
                if (checks.small && type != BSW_VECTOR_FLOAT32) continue;
                // More than a tile of rows and of queries, the last ones in part; steps of bundles.
                c.dims = fill == RANDOM_NUMBERS ? 100 : 33;
                c.num_rows = 310;
                c.num_queries = fill == RANDOM_NUMBERS ? 131 : 3;
                check_screen_of(c, {{fill == ZEROS, 10, fill == EQUAL_ROWS ? 3u : 1u}, 9, 0});
                if (fill == RANDOM_NUMBERS) check_screen_of(c, {{0, 10, 2}, 0, 11});
            }
        }
    }
    check_screen_refusals();
}
