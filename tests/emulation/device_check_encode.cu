// SPDX-License-Identifier: Apache-2.0
// The encoders against bsw_encode_reference and bsw_prepare_rows.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "device_check.hpp"
#include "kernels/device_encode/device_encode.h"
#include "kernels/encode/prepare_rows.h"

namespace
{

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

float uniform(uint64_t stream, uint64_t index) // -1 .. 1
{
    return static_cast<float>(static_cast<int>(check_random(stream, index) >> 40) - (1 << 23)) *
           0x1p-23f;
}

float number_of(row_kind kind, uint64_t stream, uint64_t row, uint64_t i)
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

const char *const type_names[] = {"float32", "float16", "uint8", "int8"};

// Rows of a type, kinds taking turns; halves and bytes are random bits, all halves that there are
// and rows of zeros among them.
std::vector<unsigned char> make_numbers(bsw_vector_type type, uint32_t num_rows, uint32_t dims,
                                        uint64_t stream)
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

prepared_rows prepare(bsw_metric metric, bsw_vector_type type,
                      const std::vector<unsigned char> &numbers, uint32_t num_rows, uint32_t dims)
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
bool is_same(float a, float b)
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

uint32_t rows_of_bundle(uint32_t num_rows, uint32_t bundle)
{
    return num_rows - bundle * 32 < 32 ? num_rows - bundle * 32 : 32;
}

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

void check_saq(const saq_case &c, uint64_t stream)
{
    const frames both(c, stream);
    const std::vector<float> projected = check_projection(c, both, stream),
                             hostile = hostile_projection(both.host().layout, c.num_rows, stream);
    check_quantize(describe(c), both, projected, c.num_rows);
    check_quantize(describe(c) + ", hostile", both, hostile, c.num_rows);
    check_rotated(describe(c) + ", rotated xfbq", both, projected, c.num_rows);
    check_rotated(describe(c) + ", hostile, rotated xfbq", both, hostile, c.num_rows);
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
