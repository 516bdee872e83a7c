// SPDX-License-Identifier: Apache-2.0
// The encoders of product codes, against bsw_table_scan_reference, and of sq8.
#include "device_check_rows.hpp"
#include "kernels/encode/sq8_codes.h"

namespace
{

// ---- product codes ----

struct product_case {
    uint32_t parts, part_dims, bits, dims, num_rows, bundle_bytes; // dims: of rows that are there
};

std::string describe(const product_case &c)
{
    char text[120];
    snprintf(text, sizeof text, "product codes %u x %u of %u bits, %u dims, %u rows", c.parts,
             c.part_dims, c.bits, c.dims, c.num_rows);
    return text;
}

// Entries that are alike, and numbers of all kinds: distances tie, overflow and are NaN.
std::vector<float> make_entries(const product_case &c, uint64_t stream)
{
    const uint64_t num = 1u << c.bits;
    std::vector<float> out;
    for (uint64_t i = 0; i < c.parts * c.part_dims * num; i++) {
        const uint64_t entry = i % num, twin = entry % 7 == 3 ? entry / 2 : entry;
        const row_kind kind = entry % 16 == 9   ? EQUAL_ROW
                              : entry % 16 == 2 ? LARGE_ROW
                              : entry % 16 == 5 ? MIXED_ROW
                                                : GAUSSIAN_ROW;
        out.push_back(number_of(kind, stream, twin, i / num));
    }
    return out;
}

std::vector<float> norms_of(const product_case &c, const std::vector<float> &entries)
{
    const size_t num = static_cast<size_t>(1) << c.bits;
    std::vector<float> out(c.parts * num);
    for (size_t dim = 0; dim < static_cast<size_t>(c.parts) * c.part_dims; dim++) {
        for (size_t j = 0; j < num; j++) {
            float &norm = out[dim / c.part_dims * num + j];
            norm = std::fma(entries[dim * num + j], entries[dim * num + j], norm);
        }
    }
    return out;
}

// Rows of all kinds; an infinite number makes every distance of its part NaN or infinite.
std::vector<float> make_rows(const product_case &c, uint64_t stream)
{
    std::vector<float> out;
    for (uint32_t r = 0; r < c.num_rows; r++) {
        for (uint32_t i = 0; i < c.dims; i++)
            out.push_back(number_of(static_cast<row_kind>(r % NUM_ROW_KINDS), stream + 3, r, i));
    }
    return out;
}

std::vector<uint8_t> code_on_host(const product_case &c, const bsw_product_book &book,
                                  const std::vector<float> &rows)
{
    const size_t stride = static_cast<size_t>(c.parts) * c.part_dims;
    std::vector<float> padded(c.num_rows * stride);
    std::vector<uint8_t> codes(static_cast<size_t>(c.num_rows) * c.parts),
        out(bsw_num_bundles(c.num_rows) * c.bundle_bytes * 32);
    for (size_t r = 0; r < c.num_rows; r++) {
        for (size_t i = 0; i < c.dims && i < stride; i++)
            padded[r * stride + i] = rows[r * c.dims + i];
    }
    bsw_table_scan_reference.nearest(&book, padded.data(), stride, c.num_rows, codes.data());
    for (size_t r = 0; r < c.num_rows; r++) {
        for (size_t p = 0; p < c.parts; p++) {
            const size_t byte = p * c.bits / 8;
            out[(r / 32 * c.bundle_bytes + byte) * 32 + r % 32] |=
                static_cast<uint8_t>(codes[r * c.parts + p] << p * c.bits % 8);
        }
    }
    return out;
}

void check_product_codes(const product_case &c, uint64_t stream)
{
    const std::vector<float> entries = make_entries(c, stream), norms = norms_of(c, entries),
                             rows = make_rows(c, stream);
    const bsw_product_book book = {c.parts, c.part_dims, c.bits, entries.data(), norms.data()};
    const std::vector<uint8_t> expected = code_on_host(c, book, rows);
    device_array<float> d_entries(entries), d_norms(norms), d_rows(rows);
    device_array<uint8_t> d_codes(junk<uint8_t>(expected.size()));
    const bsw_product_book device_book = {c.parts, c.part_dims, c.bits, d_entries.get(),
                                          d_norms.get()};
    if (check_launch(bsw_device_product_codes(&device_book, d_rows.get(), c.dims, c.num_rows,
                                              c.bundle_bytes, d_codes.get(), nullptr),
                     describe(c)))
        compare(describe(c), "codes", expected, d_codes.values());
}

void check_product_shapes()
{
    static const product_case cases[] = {
        {1, 1, 8, 1, 1, 4},     {5, 4, 8, 18, 70, 8},   {24, 4, 8, 96, 129, 24},
        {3, 33, 8, 97, 40, 4},  {1, 70, 8, 70, 131, 4}, {7, 2, 4, 14, 300, 4},
        {13, 2, 4, 25, 128, 8}, {2, 40, 4, 96, 33, 4},  {16, 8, 4, 128, 31, 8},
        {9, 1, 4, 9, 257, 8},
    };
    uint64_t stream = 8100;
    for (const product_case &c : cases) {
        if (!checks.small || c.num_rows * c.dims << c.bits < 1u << 19)
            check_product_codes(c, stream);
        stream += 31;
    }
}

void check_product_refusals()
{
    bsw_product_book book = {4, 2, 5, nullptr, nullptr};
    check_that(bsw_device_product_codes(&book, nullptr, 8, 1, 4, nullptr, nullptr) ==
                   cudaErrorInvalidValue,
               "product_codes takes 5 bits");
    book.bits = 8;
    check_that(bsw_device_product_codes(&book, nullptr, 8, 1, 3, nullptr, nullptr) ==
                   cudaErrorInvalidValue,
               "product_codes writes beyond a row");
    check_that(bsw_device_product_codes(&book, nullptr, 8, 0, 4, nullptr, nullptr) == cudaSuccess,
               "no rows are refused");
}

// ---- sq8 ----

struct sq8_results {
    std::vector<uint32_t> planes;
    std::vector<float> factors, sums;
};

sq8_results code_sq8(bsw_metric metric, const prepared_rows &from, uint32_t num_rows,
                     const std::vector<float> &middles, const std::vector<float> &half_steps)
{
    const size_t dims = middles.size(), bundle_words = (dims + 31) / 32 * 8 * 32;
    const std::vector<float> ones(32, 1.0f);
    std::vector<float> y(num_rows * dims);
    sq8_results out;
    out.factors.resize(num_rows);
    out.sums.resize(num_rows);
    out.planes.resize(bsw_num_bundles(num_rows) * bundle_words);
    const bsw_sq8_steps steps = {middles.data(), half_steps.data(), dims};
    for (size_t r = 0; r < num_rows; r++)
        out.factors[r] = bsw_sq8_center(&steps, from.rows.data() + r * dims, from.factors[r],
                                        y.data() + r * dims, &out.sums[r]);
    for (uint32_t b = 0; b < bsw_num_bundles(num_rows); b++)
        bsw_encode_reference.xfbq(y.data() + b * 32 * dims, rows_of_bundle(num_rows, b), dims,
                                  ones.data(), 1.0f, 8, out.planes.data() + b * bundle_words);
    for (size_t r = 0; r < num_rows && metric == BSW_METRIC_L2; r++)
        out.sums[r] = bsw_sq8_squared_norm(&steps, out.factors[r], y.data() + r * dims);
    return out;
}

void check_sq8(bsw_metric metric, bsw_vector_type type, uint32_t num_rows, uint32_t dims,
               uint64_t stream)
{
    const std::string shape = std::string("sq8 ") + type_names[type] + ", " +
                              bsw_metric_name(metric) + ", " + std::to_string(num_rows) + " x " +
                              std::to_string(dims);
    const std::vector<unsigned char> numbers = make_numbers(type, num_rows, dims, stream);
    const prepared_rows from = prepare(metric, type, numbers, num_rows, dims);
    std::vector<float> middles(dims), half_steps(dims);
    for (uint32_t i = 0; i < dims; i++) { // steps that numbers fit, and the least there is
        middles[i] = stream % 3 ? 0.5f * uniform(stream + 5, i) : 100.0f;
        half_steps[i] = i % 11 == 7 && stream % 2
                            ? 0x1p-100f
                            : std::fabs(uniform(stream + 6, i)) * 0.02f + 1e-6f;
    }
    const sq8_results expected = code_sq8(metric, from, num_rows, middles, half_steps);
    device_array<unsigned char> d_numbers(numbers);
    device_array<float> d_middles(middles), d_half_steps(half_steps),
        d_factors(junk<float>(num_rows)), d_sums(junk<float>(num_rows));
    device_array<uint32_t> d_planes(junk<uint32_t>(expected.planes.size()));
    device_array<uint8_t> d_faults(junk<uint8_t>(num_rows));
    const bsw_device_raw_rows rows = {type, dims, num_rows, d_numbers.get()};
    const bsw_device_sq8_codes codes = {d_middles.get(), d_half_steps.get(), d_planes.get(),
                                        d_faults.get(),  d_factors.get(),    d_sums.get()};
    if (!check_launch(bsw_device_encode_sq8(&rows, metric, &codes, nullptr), shape)) return;
    compare(shape, "faults", from.faults, d_faults.values());
    compare(shape, "factors", expected.factors, d_factors.values());
    compare(shape, "sums", expected.sums, d_sums.values());
    compare(shape, "planes", expected.planes, d_planes.values());
}

void check_sq8_shapes()
{
    static const uint32_t all_dims[] = {1, 31, 33, 200, 96}, all_rows[] = {70, 1, 32, 9};
    static const bsw_metric metrics[] = {BSW_METRIC_L2, BSW_METRIC_COSINE, BSW_METRIC_IP};
    uint64_t stream = 8600;
    for (int type = BSW_VECTOR_FLOAT32; type <= BSW_VECTOR_INT8; type++) {
        for (uint32_t turn = 0; turn < (checks.small ? 3 : 15); turn++, stream += 7)
            check_sq8(metrics[turn % 3], static_cast<bsw_vector_type>(type), all_rows[turn % 4],
                      all_dims[turn % 5], stream);
    }
    const bsw_device_raw_rows rows = {BSW_VECTOR_INT32, 32, 1, nullptr};
    const bsw_device_sq8_codes codes = {};
    check_that(bsw_device_encode_sq8(&rows, BSW_METRIC_L2, &codes, nullptr) ==
                   cudaErrorInvalidValue,
               "encode_sq8 takes int32");
}

} // namespace

void check_coders()
{
    check_sq8_shapes();
    check_product_refusals();
    check_product_shapes();
}
