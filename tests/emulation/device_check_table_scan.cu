// SPDX-License-Identifier: Apache-2.0
// The scans by tables of product codes against the reference of the CPU, bit for bit: every type of
// table, entries within a radius, both sizes of codes, shards and lists, residuals, tables that do
// not fit; hostile numbers, ties, ragged lists. And the bank conflicts of their look-ups.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "common/codes/metric.h"
#include "device_check_scan_case.hpp"
#include "kernels/device_scan/device_table_scan.h"
#include "shard/codecs/selective_table.h"

namespace
{

enum number_fill { TIED, SMOOTH, HOSTILE, NUM_NUMBER_FILLS };
constexpr uint32_t num_lists = 5;

struct table_case {
    uint32_t parts, part_dims, bits, num_queries, num_bundles;
    bsw_metric metric = BSW_METRIC_L2;
    bool has_centroids = false, is_mixed = false; // of types
    bsw_table_type type = BSW_TABLE_FLOAT32;
    number_fill fill = TIED;
    uint64_t stream = 0;
    bsw_selection_settings selection = {};
};

std::string describe(const table_case &c, const char *what)
{
    return std::string(what) + " " + std::to_string(c.parts) + "x" + std::to_string(c.part_dims) +
           " dims, " + std::to_string(c.bits) + " bits, " + bsw_table_name(c.type) +
           (c.is_mixed ? " and others, " : ", ") + (c.metric == BSW_METRIC_L2 ? "l2" : "ip") +
           (c.has_centroids ? ", residuals, " : ", ") + std::to_string(c.num_queries) +
           " queries, " + std::to_string(c.num_bundles) + " bundles, stream " +
           std::to_string(c.stream) + (c.selection.is_on ? ", within radii" : "");
}

float make_number(const table_case &c, uint64_t stream, uint64_t i)
{
    static const float hostile[] = {0.0f,  -0.0f,   1.0f,    -1.0f,     1e15f,
                                    -3e8f, 1e-30f,  -1e-38f, 0x1p-149f, 65504.0f,
                                    0.1f,  -7e-12f, 496.0f,  -1e4f,     0x1.fffffep3f};
    const uint64_t r = check_random(c.stream * 100 + stream, i);
    if (c.fill == TIED) return static_cast<float>(static_cast<int>(r % 3) - 1);
    if (c.fill == HOSTILE && r % 4 == 0) return hostile[r / 4 % 15];
    return static_cast<float>(static_cast<int>(r % 65536) - 32768) / 4096.0f;
}

std::vector<float> make_numbers(const table_case &c, uint64_t stream, size_t num)
{
    std::vector<float> out(num);
    for (size_t i = 0; i < num; i++) out[i] = make_number(c, stream, i);
    return out;
}

// ---- a case, and what is to be found ----

struct case_data {
    bsw_product_codes *codes = nullptr;
    bsw_selection selection = {};
    bsw_code_layout layout = {};
    std::vector<float> queries, centroids; // [..][projected_dims], padding 0
    std::vector<uint8_t> types;
    std::vector<uint32_t> words, masks, rows, list_of; // list_of: each bundle
    size_t bundle_words;

    explicit case_data(const table_case &c)
    {
        bsw_error err;
        check_that(bsw_product_codes_create(c.metric, c.parts * c.part_dims, c.parts, c.bits,
                                            "none", &codes, &err) == BSW_OK,
                   "no codebooks");
        const std::vector<float> entries =
            make_numbers(c, 1, bsw_product_numbers(&codes->book) * c.part_dims);
        std::copy(entries.begin(), entries.end(), codes->entries);
        bsw_product_codes_norms(codes);
        if (c.selection.is_on) make_radii(c);
        queries = pad(make_numbers(c, 2, c.num_queries * codes->dims));
        centroids = pad(make_numbers(c, 3, num_lists * codes->dims));
        for (uint32_t q = 0; q < c.num_queries; q++)
            types.push_back(static_cast<uint8_t>((c.type + (c.is_mixed ? q : 0)) % 4));
        check_that(bsw_code_layout_parse((std::to_string(c.parts * c.bits) + "x1").c_str(),
                                         c.parts * c.bits, &layout, &err) == BSW_OK,
                   "no layout");
        bundle_words = bsw_segment_bundle_words(&layout.segments[0]);
        make_codes(c);
    }
    case_data(const case_data &) = delete;
    case_data &operator=(const case_data &) = delete;
    ~case_data()
    {
        bsw_product_codes_destroy(&codes);
    }

  private:
    std::vector<float> pad(const std::vector<float> &dense) const
    {
        std::vector<float> out(dense.size() / codes->dims * codes->projected_dims, 0.0f);
        for (size_t i = 0; i < dense.size(); i++)
            out[i / codes->dims * codes->projected_dims + i % codes->dims] = dense[i];
        return out;
    }

    void make_radii(const table_case &c)
    {
        bsw_error err;
        check_that(bsw_product_radii_create(c.parts, &codes->radii, &err) == BSW_OK, "no radii");
        for (uint32_t p = 0; p < c.parts; p++) {
            const float box[] = {-8.0f, -8.0f, 8.0f, 8.0f}, ends[] = {0.5f, 6.0f};
            std::copy(box, box + 4, codes->radii->boxes + 4 * p);
            std::copy(ends, ends + 2, codes->radii->ends + 2 * p);
        }
        for (size_t i = 0; i < c.parts * BSW_RADII_MAP; i++)
            codes->radii->radii[i] = std::max(std::fabs(make_number(c, 8, i)), 0x1p-20f);
        selection.settings = c.selection;
        selection.codes = codes;
    }

    // Random bytes, half of the rows of a bundle of ties alike; padding as it is, 0.
    void make_codes(const table_case &c)
    {
        const size_t bytes = bsw_product_code_bytes(c.parts, c.bits);
        words.resize(c.num_bundles * bundle_words);
        uint8_t *at = reinterpret_cast<uint8_t *>(words.data());
        for (uint32_t b = 0; b < c.num_bundles; b++, at += bundle_words * 4) {
            for (size_t i = 0; i < bytes * 32; i++) {
                const uint64_t r = check_random(c.stream * 100 + 4, b * bytes * 32 + i);
                at[i] = static_cast<uint8_t>(c.fill == TIED && i % 2 ? 0x11 : r);
                if (c.bits == 4 && c.parts % 2 && i / 32 == bytes - 1) at[i] &= 15;
            }
            const uint64_t r = check_random(c.stream * 100 + 5, b);
            masks.push_back(r % 5 == 0 ? 0 : static_cast<uint32_t>(r >> 8 | (r & 7)));
            list_of.push_back(b * num_lists / c.num_bundles);
        }
        const uint32_t places = c.num_bundles * 32;
        for (uint32_t p = 0; p < places; p++) rows.push_back((p * 31 + 3) % places + 7);
    }
};

// Candidates of some bundles, which are of one list; rows are places. num_within: NULL, or the
// entries of the table that are selected are added to it.
std::vector<uint64_t> find_rows(const case_data &data, uint32_t query, uint32_t first,
                                uint32_t num_bundles, const float *centroid, float addition,
                                uint64_t *num_within = nullptr)
{
    const bsw_table_scan_table *kernels = &bsw_table_scan_reference;
    const bsw_product_codes *codes = data.codes;
    const size_t numbers = bsw_product_numbers(&codes->book);
    const bsw_table_type type = static_cast<bsw_table_type>(data.types[query]);
    std::vector<float> room(codes->projected_dims), query_term(numbers), list_term(numbers),
        table_room(numbers + codes->book.parts), table(numbers), sums(num_bundles * 32);
    std::vector<uint64_t> out(num_bundles * 32);
    const float *own = data.queries.data() + static_cast<size_t>(query) * codes->projected_dims;
    bsw_product_query_term(codes, kernels, own, room.data(), query_term.data());
    bsw_product_list_term(codes, kernels, centroid, room.data(), list_term.data());
    const bsw_product_terms terms = {own, query_term.data(), centroid, list_term.data()};
    std::vector<uint32_t> hits(bsw_selective_hits_bytes(codes) / sizeof(uint32_t));
    const bool selects = data.selection.settings.is_on;
    const float multiplier =
        selects ? bsw_selective_plain_table(&data.selection, &terms, table.data(), hits.data())
                : bsw_product_table(codes, kernels, type, &terms, table_room.data(), table.data());
    const bsw_code_table of = bsw_product_code_table(codes, table.data());
    kernels->sums(&of,
                  reinterpret_cast<const uint8_t *>(data.words.data() + first * data.bundle_words),
                  data.bundle_words * 4, num_bundles, sums.data());
    out.resize(kernels->filter(sums.data(), multiplier, addition, data.masks.data() + first,
                               num_bundles, first * 32, 0, out.data()));
    if (num_within)
        for (uint32_t word : hits) *num_within += static_cast<uint64_t>(__builtin_popcount(word));
    if (selects)
        out.resize(bsw_selective_keep(codes, hits.data(),
                                      reinterpret_cast<const uint8_t *>(data.words.data()),
                                      data.bundle_words * 4, out.data(), out.size()));
    return out;
}

uint32_t choose_limit(uint64_t shape, std::vector<uint64_t> found)
{
    std::sort(found.begin(), found.end(), std::greater<uint64_t>());
    if (shape % 5 == 0 || found.empty()) return 0;
    if (shape % 5 == 1) return UINT32_MAX;
    const size_t place = shape % 5 == 2 ? 0 : shape % 5 == 3 ? found.size() / 8 : found.size() - 1;
    return bsw_candidate_score(found[place]);
}

// ---- on the device ----

struct device_case {
    device_array<uint32_t> words, masks, rows, list_of;
    device_array<float> entries, norms, queries, centroids;
    device_array<uint8_t> types;
    device_array<float> limits, nothing;
    device_array<uint64_t> entry_counts;
    bsw_device_codes codes = {};
    bsw_device_tables tables = {};

    device_case(const table_case &c, const case_data &data)
        : words(data.words), masks(data.masks), rows(data.rows), list_of(data.list_of),
          entries(copy(data.codes->entries, bsw_product_numbers(&data.codes->book) * c.part_dims)),
          norms(copy(data.codes->norms, bsw_product_numbers(&data.codes->book))),
          queries(data.queries), centroids(data.centroids), types(data.types),
          limits(static_cast<size_t>(c.num_queries) * c.parts), nothing(c.num_queries),
          entry_counts(std::vector<uint64_t>(2, 0))
    {
        codes.layout = data.layout;
        codes.planes[0] = words.get();
        codes.masks = masks.get();
        codes.num_bundles = c.num_bundles;
        codes.first_row = 1000;
        tables = {c.num_queries,
                  c.parts,
                  c.part_dims,
                  c.bits,
                  c.metric == BSW_METRIC_L2,
                  c.type,
                  data.codes->projected_dims,
                  entries.get(),
                  norms.get(),
                  queries.get(),
                  c.is_mixed ? types.get() : nullptr,
                  c.has_centroids ? centroids.get() : nullptr,
                  c.has_centroids ? list_of.get() : nullptr,
                  {}};
        if (c.selection.is_on) select(c, data);
    }

  private:
    void select(const table_case &c, const case_data &data)
    {
        std::vector<float> all(static_cast<size_t>(c.num_queries) * c.parts), own(c.num_queries);
        for (uint32_t q = 0; q < c.num_queries; q++) {
            const float *query =
                data.queries.data() + static_cast<size_t>(q) * data.codes->projected_dims;
            float *of_query = all.data() + static_cast<size_t>(q) * c.parts;
            bsw_selective_limits(&data.selection, query, of_query);
            own[q] = bsw_selective_nothing(&data.selection, query, of_query);
        }
        limits.put(all);
        nothing.put(own);
        const bool is_h = c.selection.mode == BSW_SELECTION_H,
                   is_m = c.selection.mode == BSW_SELECTION_M;
        const float far = c.metric == BSW_METRIC_L2 ? INFINITY : -INFINITY, miss = is_h   ? far
                                                                                   : is_m ? -1.0f
                                                                                          : 0.0f;
        tables.selection = {limits.get(),
                            nothing.get(),
                            entry_counts.get(),
                            is_h ? 0u : 1u,
                            is_h && !c.selection.is_miss_infinite ? 1u : 0u,
                            1.0f,
                            is_m ? 0.0f : 1.0f,
                            miss};
    }

    static std::vector<float> copy(const float *from, size_t num)
    {
        return std::vector<float>(from, from + num);
    }
};

typedef std::function<int(const bsw_device_tables &, const bsw_device_lists &)> table_launch;

// A launch for each type that there is, into lists with something in them.
void check_found(const table_case &c, const char *what, const device_case &device,
                 std::vector<std::vector<uint64_t>> expected, const std::vector<uint32_t> &limits,
                 const table_launch &launch)
{
    size_t most = scan_checks::prefilled + 1;
    for (const auto &own : expected) most = std::max(most, own.size() + scan_checks::prefilled);
    scan_checks::device_lists lists(c.num_queries, static_cast<uint32_t>(most), limits);
    for (int type = 0; type < BSW_NUM_TABLE_TYPES; type++) {
        bsw_device_tables tables = device.tables;
        if (!c.is_mixed && type != c.type) continue;
        tables.type = static_cast<bsw_table_type>(type);
        if (!check_launch(launch(tables, lists.lists), describe(c, what))) return;
    }
    const std::vector<uint32_t> counts = lists.counts.values();
    const std::vector<uint64_t> items = lists.items.values();
    for (uint32_t q = 0; q < c.num_queries; q++) {
        const auto begin = items.begin() + static_cast<ptrdiff_t>(q * most);
        for (uint32_t i = 0; i < scan_checks::prefilled; i++)
            expected[q].push_back(scan_checks::prefilled_item(q, i));
        check_that(counts[q] == expected[q].size(), "%s: query %u: %u candidates, not %zu",
                   describe(c, what).c_str(), q, counts[q], expected[q].size());
        if (counts[q] != expected[q].size()) continue;
        std::vector<uint64_t> found(begin, begin + counts[q]);
        std::sort(found.begin(), found.end());
        std::sort(expected[q].begin(), expected[q].end());
        check_that(found == expected[q], "%s: query %u: other candidates",
                   describe(c, what).c_str(), q);
    }
}

void keep_reaching(std::vector<uint64_t> &items, uint32_t limit)
{
    items.erase(std::remove_if(items.begin(), items.end(),
                               [limit](uint64_t i) { return bsw_candidate_score(i) < limit; }),
                items.end());
}

// A part of a whole shard.
void check_shard(const table_case &c, const case_data &data, const device_case &device)
{
    const uint32_t step = 1 + static_cast<uint32_t>(c.stream % 2),
                   first = std::min(c.num_bundles, static_cast<uint32_t>(c.stream % 3));
    const bsw_device_part part = {first, c.num_bundles, step};
    std::vector<std::vector<uint64_t>> expected(c.num_queries);
    std::vector<uint32_t> limits;
    uint64_t num_within = 0;
    for (uint32_t q = 0; q < c.num_queries; q++) {
        for (uint64_t item : find_rows(data, q, 0, c.num_bundles, nullptr, 0.0f, &num_within)) {
            const uint32_t row = bsw_candidate_row(item), bundle = row / 32;
            if (bundle >= first && (bundle - first) % step == 0)
                expected[q].push_back(bsw_candidate_pack(bsw_candidate_score(item), row + 1000));
        }
        limits.push_back(choose_limit(c.stream + q, expected[q]));
        keep_reaching(expected[q], limits[q]);
    }
    check_found(c, "table_scan", device, expected, limits,
                [&](const bsw_device_tables &tables, const bsw_device_lists &lists) {
                    return bsw_device_table_scan(&device.codes, &part, &tables, &lists, nullptr);
                });
    if (!c.selection.is_on || first == c.num_bundles) return;
    // Tables of all queries are made equally often.
    const std::vector<uint64_t> counted = device.entry_counts.values();
    const uint64_t entries = c.num_queries * bsw_product_numbers(&data.codes->book);
    check_that(counted[0] >= entries && counted[1] * entries == num_within * counted[0],
               "%s: another share of entries", describe(c, "table_scan").c_str());
}

// Items of up to 40 bundles of each list, for most of the queries, at most 16 an item.
void check_lists(const table_case &c, const case_data &data, const device_case &device)
{
    std::vector<bsw_device_list_item> items = {{0, 0, 0, 0}};
    std::vector<std::vector<uint64_t>> expected(c.num_queries);
    std::vector<uint32_t> slots, limits;
    std::vector<float> additions;
    const bool has_additions = c.stream % 3 != 0;
    for (uint32_t b = 0, end; b < c.num_bundles; b = end) {
        const uint32_t list = data.list_of[b], first_slot = static_cast<uint32_t>(slots.size());
        for (end = b; end < c.num_bundles && end < b + 40 && data.list_of[end] == list;) end++;
        for (uint32_t q = 0; q < c.num_queries; q++) {
            if (check_random(c.stream * 100 + 6 + b, q) % 5 == 0) continue;
            slots.push_back(q);
            additions.push_back(make_number(c, 7, b * 64 + q));
            const float *centroid =
                data.centroids.data() + static_cast<size_t>(list) * data.codes->projected_dims;
            for (uint64_t item :
                 find_rows(data, q, b, end - b, c.has_centroids ? centroid : nullptr,
                           has_additions ? additions.back() : 0.0f))
                expected[q].push_back(bsw_candidate_pack(bsw_candidate_score(item),
                                                         data.rows[bsw_candidate_row(item)]));
        }
        for (uint32_t s = first_slot; s < slots.size(); s += 16)
            items.push_back(
                {b, end - b, s, std::min(16u, static_cast<uint32_t>(slots.size()) - s)});
    }
    for (uint32_t q = 0; q < c.num_queries; q++) {
        limits.push_back(choose_limit(c.stream + q, expected[q]));
        keep_reaching(expected[q], limits[q]);
    }
    // Items that are not to be scanned follow where device memory says how many are.
    const uint32_t num = static_cast<uint32_t>(items.size());
    const device_array<uint32_t> count(std::vector<uint32_t>(1, num));
    if (c.stream % 2 && num > 0) items.resize(num + 3, items.back());
    const device_array<bsw_device_list_item> items_there(items);
    const device_array<uint32_t> slots_there(slots);
    const device_array<float> additions_there(additions);
    const bsw_device_list_work work = {items_there.get(),
                                       static_cast<uint32_t>(items.size()),
                                       slots_there.get(),
                                       has_additions ? additions_there.get() : nullptr,
                                       device.rows.get(),
                                       0,
                                       c.stream % 2 ? count.get() : nullptr};
    check_found(c, "table_list_scan", device, expected, limits,
                [&](const bsw_device_tables &tables, const bsw_device_lists &lists) {
                    return bsw_device_table_list_scan(&device.codes, &work, 1, &tables, &lists,
                                                      nullptr);
                });
}

void check_case(const table_case &c)
{
    const case_data data(c);
    const device_case device(c, data);
    check_shard(c, data, device);
    check_lists(c, data, device);
}

typedef std::function<void(bsw_device_codes &, bsw_device_tables &, bsw_device_part &)> damage;

void check_refused()
{
    const table_case c = {5, 3, 8, 2, 3, BSW_METRIC_IP, false, false, BSW_TABLE_E5M3, SMOOTH, 1};
    const case_data data(c);
    const device_case device(c, data);
    const scan_checks::device_lists lists(2, 40, std::vector<uint32_t>(2, 0));
    auto refuses = [&](const char *what, const damage &make) {
        bsw_device_codes codes = device.codes;
        bsw_device_tables tables = device.tables;
        bsw_device_part part = {0, 3, 1};
        make(codes, tables, part);
        check_that(bsw_device_table_scan(&codes, &part, &tables, &lists.lists, nullptr) ==
                       cudaErrorInvalidValue,
                   "%s was not refused", what);
    };
    refuses("5 bits", [](auto &, auto &tables, auto &) { tables.bits = 5; });
    refuses("more parts than codes", [](auto &, auto &tables, auto &) { tables.parts = 6; });
    refuses("more dimensions than a query has",
            [](auto &, auto &tables, auto &) { tables.part_dims = 7; });
    refuses("centroids of inner products",
            [](auto &, auto &tables, auto &) { tables.centroids = tables.queries; });
    refuses("a radius with parts of three dimensions", [](auto &, auto &tables, auto &) {
        tables.type = BSW_TABLE_FLOAT32;
        tables.selection.limits = tables.selection.nothing = tables.queries;
        tables.selection.counts = reinterpret_cast<uint64_t *>(1);
    });
    refuses("a layout of two bits",
            [](auto &codes, auto &, auto &) { codes.layout.segments[0].bits = 2; });
    refuses("more rows than 32 bits count",
            [](auto &codes, auto &, auto &) { codes.num_bundles = UINT32_MAX / 32; });
    refuses("a part beyond the codes", [](auto &, auto &, auto &part) { part = {2, 4, 1}; });
}

// What of each type runs at a time, as the runtime has it.
void print_blocks()
{
    const table_case c = {64, 2, 8, 100, 1, BSW_METRIC_L2, false, false, BSW_TABLE_E5M3, SMOOTH, 1};
    const case_data data(c);
    bsw_device_tables tables = device_case(c, data).tables;
    for (int type = 0; type < BSW_NUM_TABLE_TYPES; type++) {
        uint32_t blocks = 0;
        tables.type = static_cast<bsw_table_type>(type);
        check_that(bsw_device_table_blocks(&tables, &blocks) == cudaSuccess && blocks >= 1,
                   "%s: %u blocks of tables", bsw_table_name(tables.type), blocks);
        if (!checks.small)
            printf("# tables of 64 parts, %s: %u blocks a multiprocessor\n",
                   bsw_table_name(tables.type), blocks);
    }
}

// What the plan of shared memory says, for the devices that there are.
void check_shapes()
{
    const size_t on_8_6 = 99 << 10, on_9_0 = 227 << 10;
    auto shape = [](uint32_t parts, uint32_t bits, bsw_table_type type, uint32_t queries,
                    size_t most) {
        return bsw_device_table_shape_of(parts, bits, type, queries, most);
    };
    for (size_t most : {on_8_6, on_9_0}) {
        for (uint32_t parts : {1u, 16u, 64u, 96u, 300u, 4096u}) {
            for (int type = 0; type < 4; type++) {
                const auto s = shape(parts, 8, static_cast<bsw_table_type>(type), 100, most);
                check_that(s.shared_bytes <= most && s.slice_parts >= (s.is_whole ? 1u : 4u),
                           "%u parts: %zu bytes of %zu", parts, s.shared_bytes, most);
            }
        }
    }
    check_that(shape(64, 8, BSW_TABLE_E5M3, 100, on_9_0).queries == 4, "four tables of 16 KB");
    check_that(shape(64, 8, BSW_TABLE_FLOAT32, 100, on_9_0).queries == 1, "one table of 64 KB");
    check_that(shape(64, 8, BSW_TABLE_E5M3, 1, on_9_0).queries == 1, "one query");
    check_that(shape(96, 8, BSW_TABLE_FLOAT32, 100, on_8_6).is_whole, "96 KB of 99");
    check_that(!shape(100, 8, BSW_TABLE_FLOAT32, 100, on_8_6).is_whole, "100 KB of 99");
}

// ---- bank conflicts ----

#if defined(CHECKS_GPU)
void check_banks()
{
}
#else
// Transactions of a look-up of random codes.
double transactions_of(bsw_table_type type, uint32_t bits, uint32_t num_queries, uint64_t *most,
                       const bsw_selection_settings &selection = {})
{
    const table_case c = {8,     2,     bits, num_queries, 128, BSW_METRIC_L2,
                          false, false, type, SMOOTH,      77,  selection};
    const case_data data(c);
    const device_case device(c, data);
    scan_checks::device_lists lists(num_queries, 8, std::vector<uint32_t>(num_queries, UINT32_MAX));
    const bsw_device_part part = {0, 128, 1};
    emulation::count_banks(true);
    check_launch(bsw_device_table_scan(&device.codes, &part, &device.tables, &lists.lists, nullptr),
                 "look-ups whose conflicts are counted");
    emulation::count_banks(false);
    check_that(emulation::counted_banks.loads == 8u * 128, "%llu look-ups",
               static_cast<unsigned long long>(emulation::counted_banks.loads));
    *most = emulation::counted_banks.most;
    return static_cast<double>(emulation::counted_banks.transactions) /
           static_cast<double>(emulation::counted_banks.loads);
}

// The paper's section I-D: of 256 numbers 8, 4 and 2 share a bank with 4, 2 and 1 bytes.
void check_banks()
{
    static const bsw_table_type types[] = {BSW_TABLE_FLOAT32, BSW_TABLE_FLOAT16, BSW_TABLE_E5M3};
    static const uint64_t worst[] = {8, 4, 2};
    double before = 32;
    for (int i = 0; i < 3; i++) {
        uint64_t most, most_of_four, most_of_16;
        const double one = transactions_of(types[i], 8, 1, &most),
                     four = transactions_of(types[i], 8, 4, &most_of_four) / 4,
                     small = transactions_of(types[i], 4, 1, &most_of_16);
        if (!checks.small)
            printf("# transactions of a look-up, %s: %.2f, %llu at most; of 4 queries %.2f each; "
                   "4 bits %.2f\n",
                   bsw_table_name(types[i]), one, static_cast<unsigned long long>(most), four,
                   small);
        check_that(most <= worst[i] && one > 1, "%s: a look-up of %llu transactions",
                   bsw_table_name(types[i]), static_cast<unsigned long long>(most));
        check_that(one < 0.9 * before, "%s: %.2f transactions a look-up, no fewer than %.2f",
                   bsw_table_name(types[i]), one, before);
        check_that(four < one, "%s: %.2f for each of four queries, %.2f for one",
                   bsw_table_name(types[i]), four, one);
        check_that(small == 1 && most_of_16 == 1, "%s: conflicts of 16 numbers",
                   bsw_table_name(types[i]));
        before = one;
    }
    // Look-ups of entries within a radius are those of float32.
    const bsw_selection_settings selection = {1, BSW_SELECTION_H, 1.0f, 0, BSW_RADII_LARGE,
                                              0, nullptr,         0};
    for (uint32_t num_queries : {1u, 4u}) {
        uint64_t most;
        const double all = transactions_of(BSW_TABLE_FLOAT32, 8, num_queries, &most),
                     some = transactions_of(BSW_TABLE_FLOAT32, 8, num_queries, &most, selection);
        check_that(all == some, "%u queries: %.2f transactions a look-up within a radius, not %.2f",
                   num_queries, some, all);
    }
}
#endif

// Modes, misses, kinds and scales of radii in turns; with ties some entries are on the rim.
void check_selections()
{
    static const struct {
        uint32_t parts, bits;
    } books[] = {{64, 4}, {12, 8}, {7, 4}, {33, 8}, {1, 8}};
    static const uint32_t queries[] = {5, 1, 17, 2, 3}, bundles[] = {40, 7, 3, 70};
    static const float scales[] = {1.0f, 0.25f, INFINITY, 0x1p-9f};
    static const bsw_selection_mode modes[] = {BSW_SELECTION_H, BSW_SELECTION_H, BSW_SELECTION_M,
                                               BSW_SELECTION_L};
    for (uint32_t turn = 0; turn < (checks.small ? 13u : 40u); turn++) {
        const bool is_l2 = turn % 3 != 1, is_infinite = turn % 4 < 2 && turn % 5 == 0;
        table_case c = {books[turn % 5].parts, 2, books[turn % 5].bits, queries[turn / 3 % 5],
                        bundles[turn % 4]};
        if (checks.small) c.num_bundles = c.num_bundles / 3 + 1;
        c.metric = is_l2 ? BSW_METRIC_L2 : BSW_METRIC_IP;
        c.has_centroids = is_l2 && turn % 2 == 0;
        c.fill = static_cast<number_fill>((turn / 3 + turn + 2) % NUM_NUMBER_FILLS);
        c.stream = turn + 301;
        c.selection = {1,
                       modes[turn % 4],
                       scales[turn / 3 % 4],
                       is_infinite,
                       static_cast<bsw_radii_kind>(turn / 4 % 3),
                       0,
                       nullptr,
                       0};
        check_case(c);
    }
    table_case c = {237, 2, 8, 2, 35}; // shared memory has no room for its tables
    c.fill = SMOOTH;
    c.has_centroids = true;
    c.selection = {1, BSW_SELECTION_H, 0.5f, 0, BSW_RADII_DYNAMIC, 0, nullptr, 0};
    if (!checks.small) check_case(c);
}

} // namespace

void check_table_scans()
{
    static const struct {
        uint32_t parts, part_dims, bits;
    } books[] = {{1, 1, 8}, {7, 4, 8}, {33, 1, 4}, {16, 5, 8}, {9, 3, 4}, {64, 2, 4}, {12, 2, 8}};
    static const uint32_t queries[] = {1, 2, 5, 17, 3}, bundles[] = {1, 40, 7, 3, 70, 16};
    check_refused();
    check_shapes();
    print_blocks();
    for (uint32_t turn = 0; turn < (checks.small ? 10u : 56u); turn++) {
        const auto &book = books[turn % 7];
        const bool is_l2 = turn / 4 % 3 != 1;
        check_case({book.parts, book.part_dims, book.bits, queries[turn % 5],
                    checks.small ? bundles[turn % 3] / 2 + 1 : bundles[turn % 6],
                    is_l2 ? BSW_METRIC_L2 : BSW_METRIC_IP, is_l2 && turn % 5 > 1, turn % 6 == 5,
                    static_cast<bsw_table_type>((turn + turn / 4) % 4),
                    static_cast<number_fill>(turn % NUM_NUMBER_FILLS), turn + 1});
    }
    // Tables that shared memory has no room for, the first on 8.6, the others anywhere.
    check_case({99, 1, 8, 1, 3, BSW_METRIC_L2, false, false, BSW_TABLE_FLOAT32, SMOOTH, 199});
    for (int type = 0; type < (checks.small ? 0 : 2); type++)
        check_case({type == 0 ? 237u : 470u, 1, 8, 2, 35, type == 0 ? BSW_METRIC_L2 : BSW_METRIC_IP,
                    type == 0, false, static_cast<bsw_table_type>(type), SMOOTH, 200});
    check_selections();
    check_banks();
}
