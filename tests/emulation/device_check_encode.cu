// SPDX-License-Identifier: Apache-2.0
// The encoders against bsw_encode_reference and bsw_prepare_rows.
#include <memory>

#include "device_check_rows.hpp"
#include "kernels/kernel_sums.h"

namespace
{

// ---- xfbq ----

void check_xfbq(bsw_vector_type type, uint32_t num_rows, uint32_t dims, uint32_t bits,
                uint64_t stream)
{
    char shape[100];
    snprintf(shape, sizeof shape, "encode_xfbq %s, %u rows x %u, %u bits", type_names[type],
             num_rows, dims, bits);
    const bsw_segment segment = {dims, bits, (dims + 31) / 32, 0};
    const size_t bundle_words = bsw_segment_bundle_words(&segment);
    const size_t num_bundles = bsw_num_bundles(num_rows);
    const float scale = stream % 4 == 0 ? 1e6f : std::sqrt(static_cast<float>(dims)) * 0.4f;
    std::vector<unsigned char> numbers = make_numbers(type, num_rows, dims, stream);
    prepared_rows from = prepare(BSW_METRIC_COSINE, type, numbers, num_rows, dims);
    std::vector<uint32_t> expected(num_bundles * bundle_words);
    for (uint32_t b = 0; b < num_bundles; b++) {
        bsw_encode_reference.xfbq(from.rows.data() + static_cast<size_t>(b) * 32 * dims,
                                  rows_of_bundle(num_rows, b), dims, from.factors.data() + b * 32,
                                  scale, bits, expected.data() + b * bundle_words);
    }
    device_array<unsigned char> d_numbers(numbers);
    device_array<uint32_t> d_planes(junk<uint32_t>(expected.size()));
    device_array<uint8_t> d_faults(junk<uint8_t>(num_rows));
    const bsw_device_raw_rows rows = {type, dims, num_rows, d_numbers.get()};
    if (!check_launch(
            bsw_device_encode_xfbq(&rows, scale, bits, d_planes.get(), d_faults.get(), nullptr),
            shape))
        return;
    compare(shape, "faults", from.faults, d_faults.values());
    compare(shape, "planes", expected, d_planes.values());
}

void check_xfbq_shapes()
{
    static const uint32_t all_dims[] = {1, 31, 33, 200, 960};
    static const uint32_t all_rows[] = {1, 32, 70, 31, 9, 257};
    uint64_t stream = 7000;
    for (int type = BSW_VECTOR_FLOAT32; type <= BSW_VECTOR_INT8; type++) {
        for (uint32_t bits = 1; bits <= (checks.small ? 2 : BSW_MAX_CODE_BITS); bits++, stream++) {
            const uint32_t dims = all_dims[(bits + static_cast<uint32_t>(type)) % 5];
            check_xfbq(static_cast<bsw_vector_type>(type), all_rows[stream % 6], dims, bits,
                       stream);
            if (dims < 960) // whole bundles and a partial one, every kind of rows
                check_xfbq(static_cast<bsw_vector_type>(type), 70, dims, bits, stream + 100);
        }
    }
}

// ---- saq ----

struct saq_case {
    const char *segments;
    uint32_t dims, num_rows, stage_dims;
    bsw_metric metric;
    bsw_vector_type type;
    uint32_t coded; // dims of codes that leave some axes out; 0: dims
};

std::string describe(const saq_case &c)
{
    char text[120];
    snprintf(text, sizeof text, "saq %s, %u rows, %s, %s, stage %u", c.segments, c.num_rows,
             type_names[c.type], bsw_metric_name(c.metric), c.stage_dims);
    return text;
}

// A frame on host and device; its rotation is no rotation, which nobody here needs.
class frames
{
  public:
    frames(const saq_case &c, uint64_t stream)
        : host_(make_host(c, stream)), mean_(make_mean(stream)), rotation_(make_rotation(stream)),
          d_mean_(mean_), d_rotation_(rotation_)
    {
        host_.mean = mean_.data();
        host_.rotation = rotation_.data();
    }
    const bsw_saq_frame &host() const
    {
        return host_;
    }
    bsw_saq_frame device() const
    {
        bsw_saq_frame out = {};
        out.layout = host_.layout;
        out.metric = host_.metric;
        out.mean = d_mean_.get();
        out.rotation = d_rotation_.get();
        memcpy(out.steps, host_.steps, sizeof out.steps);
        out.stage_dims = host_.stage_dims;
        out.row_dims = host_.row_dims;
        return out;
    }

  private:
    static bsw_saq_frame make_host(const saq_case &c, uint64_t stream)
    {
        bsw_saq_frame out = {};
        bsw_error error;
        out.row_dims = c.coded > 0 ? c.dims : 0;
        if (bsw_code_layout_parse(c.segments, c.coded > 0 ? c.coded : c.dims, &out.layout,
                                  &error) != BSW_OK)
            check_that(false, "%s: %s", c.segments, error.message);
        out.metric = c.metric;
        out.stage_dims = c.stage_dims;
        for (uint32_t s = 0; s < out.layout.num_segments; s++)
            out.steps[s] = std::ldexp(0.3f + std::fabs(uniform(stream + 10, s)),
                                      2 - static_cast<int>(out.layout.segments[s].bits));
        return out;
    }
    std::vector<float> make_mean(uint64_t stream) const
    {
        std::vector<float> out(bsw_saq_row_dims(&host_));
        for (size_t j = 0; j < out.size(); j++)
            out[j] = stream % 2 ? 0.3f * uniform(stream + 11, j) : 0;
        return out;
    }
    // Tiny weights too: products that vanish leave sums of -0, which must stay.
    std::vector<float> make_rotation(uint64_t stream) const
    {
        const bsw_code_layout &layout = host_.layout;
        const uint32_t row_dims = bsw_saq_row_dims(&host_);
        std::vector<float> out(static_cast<size_t>(row_dims) * layout.padded_dims);
        for (uint32_t j = 0; j < row_dims; j++) {
            for (uint32_t s = 0; s < layout.num_segments; s++) {
                const bsw_segment &segment = layout.segments[s];
                for (uint32_t i = segment.padded_dim; i < segment.padded_dim + segment.dims; i++)
                    out[static_cast<size_t>(j) * layout.padded_dims + i] =
                        uniform(stream + 12, static_cast<uint64_t>(j) << 17 | i) *
                        (i % 9 == 5 ? -1e-44f : 1.0f);
            }
        }
        return out;
    }
    bsw_saq_frame host_;
    std::vector<float> mean_, rotation_;
    device_array<float> d_mean_, d_rotation_;
};

struct saq_results {
    std::vector<uint32_t> planes[BSW_MAX_SEGMENTS];
    std::vector<float> norms, scales;
    std::vector<uint32_t> tails;
};

saq_results quantize_on_host(const bsw_saq_frame &frame, const std::vector<float> &projected,
                             uint32_t num_rows)
{
    saq_results out;
    const size_t num_bundles = bsw_num_bundles(num_rows);
    out.norms.resize(num_rows);
    out.scales.resize(num_rows);
    out.tails.resize(num_rows);
    for (uint32_t s = 0; s < frame.layout.num_segments; s++)
        out.planes[s].resize(num_bundles * bsw_segment_bundle_words(&frame.layout.segments[s]));
    for (uint32_t b = 0; b < num_bundles; b++) {
        uint32_t *planes[BSW_MAX_SEGMENTS];
        for (uint32_t s = 0; s < frame.layout.num_segments; s++)
            planes[s] =
                out.planes[s].data() + b * bsw_segment_bundle_words(&frame.layout.segments[s]);
        bsw_encode_reference.saq_quantize(
            &frame, projected.data() + static_cast<size_t>(b) * 32 * frame.layout.padded_dims,
            rows_of_bundle(num_rows, b), planes, out.norms.data() + b * 32,
            out.scales.data() + b * 32, out.tails.data() + b * 32);
    }
    return out;
}

void check_quantize(const std::string &shape, const frames &both,
                    const std::vector<float> &projected, uint32_t num_rows)
{
    const bsw_saq_frame &frame = both.host();
    const bsw_saq_frame device_frame = both.device();
    saq_results expected = quantize_on_host(frame, projected, num_rows);
    std::vector<std::unique_ptr<device_array<uint32_t>>> d_planes;
    device_array<float> d_projected(projected), d_norms(junk<float>(num_rows)),
        d_scales(junk<float>(num_rows));
    device_array<uint32_t> d_tails(junk<uint32_t>(num_rows));
    bsw_device_saq_codes codes = {};
    for (uint32_t s = 0; s < frame.layout.num_segments; s++) {
        d_planes.push_back(
            std::make_unique<device_array<uint32_t>>(junk<uint32_t>(expected.planes[s].size())));
        codes.planes[s] = d_planes[s]->get();
    }
    codes.norms = d_norms.get();
    codes.scales = d_scales.get();
    codes.tails = d_tails.get();
    if (!check_launch(
            bsw_device_saq_quantize(&device_frame, d_projected.get(), num_rows, &codes, nullptr),
            shape))
        return;
    for (uint32_t s = 0; s < frame.layout.num_segments; s++)
        compare(shape, "planes", expected.planes[s], d_planes[s]->values());
    compare(shape, "norms", expected.norms, d_norms.values());
    compare(shape, "scales", expected.scales, d_scales.values());
    compare(shape, "tails", expected.tails, d_tails.values());
}

// xfbq of projected rows, of frames of one segment.
void check_rotated(const std::string &shape, const frames &both,
                   const std::vector<float> &projected, uint32_t num_rows)
{
    const bsw_code_layout &layout = both.host().layout;
    const bsw_segment &segment = layout.segments[0];
    if (layout.num_segments != 1) return;
    const bsw_saq_frame device_frame = both.device();
    const size_t bundle_words = bsw_segment_bundle_words(&segment);
    const float scale = std::sqrt(static_cast<float>(segment.dims)) * 0.4f;
    const std::vector<float> ones(32, 1.0f);
    std::vector<float> dense;
    for (uint32_t r = 0; r < num_rows; r++) {
        const float *row = projected.data() + static_cast<size_t>(r) * layout.padded_dims;
        dense.insert(dense.end(), row, row + segment.dims);
    }
    std::vector<uint32_t> expected(bsw_num_bundles(num_rows) * bundle_words);
    for (uint32_t b = 0; b < bsw_num_bundles(num_rows); b++) {
        bsw_encode_reference.xfbq(dense.data() + static_cast<size_t>(b) * 32 * segment.dims,
                                  rows_of_bundle(num_rows, b), segment.dims, ones.data(), scale,
                                  segment.bits, expected.data() + b * bundle_words);
    }
    device_array<float> d_projected(projected);
    device_array<uint32_t> d_planes(junk<uint32_t>(expected.size()));
    if (check_launch(bsw_device_encode_xfbq_rotated(&device_frame, d_projected.get(), num_rows,
                                                    scale, d_planes.get(), nullptr),
                     shape))
        compare(shape, "planes", expected, d_planes.values());
}

// Raw rows through center and project; returns the projected ones.
std::vector<float> check_projection(const saq_case &c, const frames &both, uint64_t stream)
{
    const std::string shape = describe(c);
    const bsw_saq_frame &frame = both.host();
    const bsw_saq_frame device_frame = both.device();
    const uint32_t padded = frame.layout.padded_dims;
    std::vector<unsigned char> numbers = make_numbers(c.type, c.num_rows, c.dims, stream);
    prepared_rows from = prepare(c.metric, c.type, numbers, c.num_rows, c.dims);
    std::vector<float> centered(from.rows.size()), mean_dots(c.num_rows),
        projected(static_cast<size_t>(c.num_rows) * padded);
    bsw_encode_reference.saq_center(&frame, from.rows.data(), c.num_rows, from.factors.data(),
                                    centered.data(), mean_dots.data());
    bsw_encode_reference.saq_project(&frame, centered.data(), c.num_rows, projected.data());
    device_array<unsigned char> d_numbers(numbers);
    device_array<float> d_centered(junk<float>(centered.size())), d_dots(junk<float>(c.num_rows)),
        d_projected(junk<float>(projected.size()));
    device_array<uint8_t> d_faults(junk<uint8_t>(c.num_rows));
    const bsw_device_raw_rows rows = {c.type, c.dims, c.num_rows, d_numbers.get()};
    if (check_launch(bsw_device_saq_center(&device_frame, &rows, d_centered.get(), d_dots.get(),
                                           d_faults.get(), nullptr),
                     shape) &&
        check_launch(bsw_device_saq_project(&device_frame, d_centered.get(), c.num_rows,
                                            d_projected.get(), nullptr),
                     shape)) {
        compare(shape, "faults", from.faults, d_faults.values());
        compare(shape, "centered", centered, d_centered.values());
        compare(shape, "mean_dots", mean_dots, d_dots.values());
        compare(shape, "projected", projected, d_projected.values());
    }
    return projected;
}

// Rows as a projection would not give them: zeros, norms about 2^-126, numbers on boundaries.
std::vector<float> hostile_projection(const bsw_code_layout &layout, uint32_t num_rows,
                                      uint64_t stream)
{
    static const row_kind kinds[] = {GAUSSIAN_ROW, ZERO_ROW,  TINY_ROW,
                                     LARGE_ROW,    EQUAL_ROW, MIXED_ROW};
    std::vector<float> out(static_cast<size_t>(num_rows) * layout.padded_dims);
    for (uint32_t r = 0; r < num_rows; r++) {
        for (uint32_t s = 0; s < layout.num_segments; s++) {
            const bsw_segment &segment = layout.segments[s];
            for (uint32_t i = segment.padded_dim; i < segment.padded_dim + segment.dims; i++)
                out[static_cast<size_t>(r) * layout.padded_dims + i] =
                    number_of(kinds[r % 6], stream + 20, r, i);
        }
    }
    return out;
}

// ---- residuals ----

constexpr uint32_t num_lists = 5;

std::vector<uint32_t> random_lists(uint32_t num_rows, uint64_t stream)
{
    std::vector<uint32_t> out;
    for (uint32_t r = 0; r < num_rows; r++)
        out.push_back(static_cast<uint32_t>(check_random(stream + 30, r) % num_lists));
    return out;
}

// Centroids less the mean, and rows less those.
void check_subtraction(const saq_case &c, const frames &both, uint64_t stream)
{
    const std::string shape = describe(c) + ", residuals";
    const bsw_saq_frame &frame = both.host();
    const uint32_t dims = c.dims;
    const std::vector<unsigned char> numbers = make_numbers(c.type, c.num_rows, dims, stream);
    const prepared_rows from = prepare(c.metric, c.type, numbers, c.num_rows, dims);
    const std::vector<uint32_t> lists = random_lists(c.num_rows, stream);
    std::vector<float> centroids, rows(from.rows.size()), mean_dots(c.num_rows), norms;
    for (uint32_t i = 0; i < num_lists * dims; i++)
        centroids.push_back(number_of(i / dims % 2 ? MIXED_ROW : LARGE_ROW, stream + 31, 1, i));
    bsw_encode_reference.saq_center(&frame, from.rows.data(), c.num_rows, from.factors.data(),
                                    rows.data(), mean_dots.data());
    device_array<float> d_mean(std::vector<float>(frame.mean, frame.mean + dims)),
        d_centroids(centroids), d_rows(rows), d_others(rows), d_norms(junk<float>(c.num_rows));
    device_array<uint32_t> d_lists(lists);
    std::vector<double> squares(c.num_rows);
    bsw_encode_reference.squared_norms(rows.data(), c.num_rows, dims, squares.data());
    for (double square : squares) norms.push_back(static_cast<float>(square));
    for (uint32_t i = 0; i < num_lists * dims; i++) centroids[i] -= frame.mean[i % dims];
    for (size_t i = 0; i < rows.size(); i++)
        rows[i] -= centroids[lists[i / dims] * dims + i % dims];
    if (!check_launch(
            bsw_device_center_lists(d_mean.get(), dims, num_lists, d_centroids.get(), nullptr),
            shape) ||
        !check_launch(bsw_device_subtract_lists(d_centroids.get(), d_lists.get(), dims, c.num_rows,
                                                d_rows.get(), d_norms.get(), nullptr),
                      shape) ||
        !check_launch(bsw_device_subtract_lists(d_centroids.get(), d_lists.get(), dims, c.num_rows,
                                                d_others.get(), nullptr, nullptr),
                      shape))
        return;
    compare(shape, "centroids", centroids, d_centroids.values());
    compare(shape, "rows", rows, d_rows.values());
    compare(shape, "rows without norms", rows, d_others.values());
    compare(shape, "norms", norms, d_norms.values());
}

// Sums of one row, as plainly as they are said.
void multiply_list(const bsw_saq_frame &frame, const float *row, const float *centroid, float norm,
                   float *exact, float *coded)
{
    float exact_sums[BSW_SUM_LANES] = {}, coded_sums[BSW_SUM_LANES] = {};
    const float rms = std::sqrt(norm / static_cast<float>(frame.layout.dims));
    for (uint32_t s = 0; s < frame.layout.num_segments && norm >= 0x1p-126f; s++) {
        const bsw_segment &segment = frame.layout.segments[s];
        const float end = static_cast<float>(1 << (segment.bits - 1));
        const float inverse = 1.0f / ((2.0f * frame.steps[s]) * rms);
        for (uint32_t d = segment.padded_dim; d < segment.padded_dim + segment.dims; d++) {
            const float f = std::fmin(std::fmax(std::floor(row[d] * inverse), -end), end - 1);
            exact_sums[d % BSW_SUM_LANES] += centroid[d] * row[d];
            coded_sums[d % BSW_SUM_LANES] += centroid[d] * (frame.steps[s] * (2 * f + 1));
        }
    }
    *exact = bsw_tree_sum_float(exact_sums);
    *coded = bsw_tree_sum_float(coded_sums);
}

void check_list_products(const std::string &shape, const frames &both,
                         const std::vector<float> &projected, uint32_t num_rows, uint64_t stream)
{
    const bsw_saq_frame &frame = both.host();
    const bsw_saq_frame device_frame = both.device();
    const size_t stride = frame.layout.padded_dims;
    const std::vector<uint32_t> lists = random_lists(num_rows, stream);
    const saq_results codes = quantize_on_host(frame, projected, num_rows);
    std::vector<float> centroids, exact(num_rows), coded(num_rows);
    for (size_t i = 0; i < num_lists * stride; i++)
        centroids.push_back(number_of(i / stride % 2 ? MIXED_ROW : EQUAL_ROW, stream + 32, 1, i));
    for (uint32_t r = 0; r < num_rows; r++)
        multiply_list(frame, projected.data() + r * stride, centroids.data() + lists[r] * stride,
                      codes.norms[r], &exact[r], &coded[r]);
    device_array<float> d_projected(projected), d_centroids(centroids), d_norms(codes.norms),
        d_exact(junk<float>(num_rows)), d_coded(junk<float>(num_rows));
    device_array<uint32_t> d_lists(lists);
    const bsw_device_list_products products = {d_lists.get(), d_centroids.get(), d_norms.get(),
                                               d_exact.get(), d_coded.get()};
    if (!check_launch(bsw_device_saq_list_products(&device_frame, d_projected.get(), num_rows,
                                                   &products, nullptr),
                      shape))
        return;
    compare(shape, "exact products", exact, d_exact.values());
    compare(shape, "coded products", coded, d_coded.values());
}

void check_saq(const saq_case &c, uint64_t stream)
{
    const frames both(c, stream);
    const std::vector<float> projected = check_projection(c, both, stream),
                             hostile = hostile_projection(both.host().layout, c.num_rows, stream);
    check_quantize(describe(c), both, projected, c.num_rows);
    check_quantize(describe(c) + ", hostile", both, hostile, c.num_rows);
    check_rotated(describe(c) + ", rotated xfbq", both, projected, c.num_rows);
    check_rotated(describe(c) + ", hostile, rotated xfbq", both, hostile, c.num_rows);
    check_subtraction(c, both, stream);
    check_list_products(describe(c) + ", lists", both, projected, c.num_rows, stream);
    check_list_products(describe(c) + ", hostile, lists", both, hostile, c.num_rows, stream);
}

void check_saq_shapes()
{
    static const saq_case cases[] = {
        {"31x1", 31, 70, 31, BSW_METRIC_COSINE, BSW_VECTOR_FLOAT32, 0},
        {"33x2", 33, 33, 32, BSW_METRIC_L2, BSW_VECTOR_INT8, 0},
        {"1x8", 1, 9, 1, BSW_METRIC_IP, BSW_VECTOR_FLOAT32, 0},
        {"20x3,1x8,33x5,10x1,32x6,8x7,64x4", 168, 139, 96, BSW_METRIC_L2, BSW_VECTOR_FLOAT32, 0},
        {"64x4,136x2", 200, 40, 64, BSW_METRIC_COSINE, BSW_VECTOR_FLOAT16, 0},
        {"32x8,96x7", 128, 32, 32, BSW_METRIC_IP, BSW_VECTOR_UINT8, 0},
        {"96x3", 96, 130, 96, BSW_METRIC_COSINE, BSW_VECTOR_UINT8, 0},
        {"320x6,640x2", 960, 10, 320, BSW_METRIC_L2, BSW_VECTOR_FLOAT32, 0},
        {"32x3", 96, 70, 32, BSW_METRIC_L2, BSW_VECTOR_FLOAT32, 32},
        {"32x3,5x1", 150, 33, 32, BSW_METRIC_IP, BSW_VECTOR_UINT8, 37},
    };
    uint64_t stream = 7500;
    for (const saq_case &c : cases) {
        if (checks.small && c.dims * c.num_rows > 6000) continue;
        check_saq(c, stream);
        stream += 31;
    }
}

void check_encode_refusals()
{
    const saq_case c = {"32x2", 32, 1, 32, BSW_METRIC_L2, BSW_VECTOR_FLOAT32, 0};
    const frames both(c, 1);
    const bsw_saq_frame frame = both.device();
    bsw_device_raw_rows rows = {BSW_VECTOR_INT32, 32, 1, nullptr};
    check_that(bsw_device_encode_xfbq(&rows, 1, 3, nullptr, nullptr, nullptr) ==
                   cudaErrorInvalidValue,
               "encode_xfbq takes int32");
    rows.type = BSW_VECTOR_FLOAT32;
    for (uint32_t bits : {0u, 9u}) {
        check_that(bsw_device_encode_xfbq(&rows, 1, bits, nullptr, nullptr, nullptr) ==
                       cudaErrorInvalidValue,
                   "encode_xfbq takes %u bits", bits);
    }
    bsw_saq_frame wide = frame;
    wide.layout.segments[0].bits = 9;
    check_that(bsw_device_encode_xfbq_rotated(&wide, nullptr, 1, 1, nullptr, nullptr) ==
                   cudaErrorInvalidValue,
               "encode_xfbq_rotated takes 9 bits");
    rows.dims = 31;
    check_that(bsw_device_saq_center(&frame, &rows, nullptr, nullptr, nullptr, nullptr) ==
                   cudaErrorInvalidValue,
               "saq_center takes other dims");
    rows = {BSW_VECTOR_FLOAT32, 32, 0, nullptr};
    check_that(bsw_device_encode_xfbq(&rows, 1, 3, nullptr, nullptr, nullptr) == cudaSuccess &&
                   bsw_device_saq_center(&frame, &rows, nullptr, nullptr, nullptr, nullptr) ==
                       cudaSuccess &&
                   bsw_device_saq_project(&frame, nullptr, 0, nullptr, nullptr) == cudaSuccess &&
                   bsw_device_encode_xfbq_rotated(&frame, nullptr, 0, 1, nullptr, nullptr) ==
                       cudaSuccess,
               "no rows are refused");
}

} // namespace

void check_encoders()
{
    check_encode_refusals();
    check_xfbq_shapes();
    check_saq_shapes();
}
