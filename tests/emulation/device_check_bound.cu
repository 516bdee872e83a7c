// SPDX-License-Identifier: Apache-2.0
// The bound on dots of dot_bound.cuh against every row by itself: no dot below it passes, whatever
// scales, biases and limits are, and with rows that are all alike it is hardly below the least that
// does. The same of the bit that key_terms.cuh has for every row.
#include <cmath>

#include "device_check.hpp"
#include "kernels/device_scan/dot_bound.cuh"
#include "kernels/device_scan/key_terms.cuh"

namespace
{

using namespace bsw;

constexpr int most_small = (1 << 21) - 1, most_any = INT32_MAX;

struct bound_case {
    float scales[warp_rows], biases[warp_rows];
    float limit, query_scale;
};

__global__ void find_bounds(const bound_case *cases, int *small, int *any)
{
    const bound_case &c = cases[blockIdx.x];
    const bundle_bound bundle = make_bundle_bound(c.scales[threadIdx.x], c.biases[threadIdx.x]);
    const query_bound query = make_query_bound(c.limit, c.query_scale);
    if (threadIdx.x != 0) return;
    small[blockIdx.x] = least_dot<key_kind::small_float>(query, bundle);
    any[blockIdx.x] = least_dot<key_kind::any_float>(query, bundle);
}

// The same of four cases a block; scales are halves.
__global__ void find_four_bounds(const bound_case *cases, const uint16_t *halves, int *small,
                                 int *any)
{
    const uint32_t lane = threadIdx.x, own = blockIdx.x * 4 + lane / 8, row = lane % 8 * 4;
    const bound_case &c = cases[own];
    const uint16_t *h = halves + own * warp_rows + row;
    const bundle_bound bundle = make_four_bounds(
        {h[0] | static_cast<unsigned>(h[1]) << 16, h[2] | static_cast<unsigned>(h[3]) << 16},
        {c.biases[row], c.biases[row + 1], c.biases[row + 2], c.biases[row + 3]});
    const query_bound query = make_query_bound(c.limit, c.query_scale);
    if (lane % 8 != 0) return;
    small[own] = least_dot<key_kind::small_float>(query, bundle);
    any[own] = least_dot<key_kind::any_float>(query, bundle);
}

// Bit r: the pair of row r and the case's query, of this dot, may pass. dots: [cases][warp_rows],
// as odd as the case's constant.
__global__ void find_below(const bound_case *cases, const int *constants, const int *dots,
                           uint32_t *below)
{
    __shared__ __align__(16) uint4 terms[warp_rows];
    const bound_case &c = cases[blockIdx.x];
    const int constant = constants[blockIdx.x];
    const uint32_t lane = threadIdx.x;
    row_caps caps = {0, 0};
    terms[lane] = make_row_terms(c.scales[lane], c.biases[lane], true, caps);
    __syncwarp();
    const key_query query = key_query_of(c.limit, c.query_scale, constant);
    const key_start start = make_start(query, query, caps);
    const key_pair words = make_words(query, query, caps, lane % 4);
    unsigned rows[4];
    load_matrices(rows, terms + lane);
    uint32_t bits = 0;
    for (uint32_t n = 0; n < 4; n++) {
        int sums[4];
        begin_sums(sums, words, rows[n], start);
        for (uint32_t i = 0; i < 2; i++) {
            const uint32_t row = 8 * n + lane % 4 * 2 + i;
            const int sum = sums[i] + (constant - dots[blockIdx.x * warp_rows + row]) / 2;
            if (!(static_cast<uint32_t>(sum) & still_above)) bits |= 1u << row;
        }
    }
    bits = __reduce_or_sync(all_lanes, bits);
    if (lane == 0) below[blockIdx.x] = bits;
}

float key_of(const bound_case &c, uint32_t row, int dot)
{
    return std::fma(c.query_scale, c.scales[row] * static_cast<float>(dot), c.biases[row]);
}

bool passes(const bound_case &c, uint32_t row, int dot)
{
    return key_of(c, row, dot) >= c.limit;
}

// Keys rise with dots where scales are not negative: the least of -most .. most that passes, or
// most + 1.
int64_t least_passing(const bound_case &c, uint32_t row, int most)
{
    int64_t low = -most, high = int64_t{most} + 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (passes(c, row, static_cast<int>(middle)))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool is_low_enough(const bound_case &c, uint32_t row, int most, int bound)
{
    if (c.scales[row] >= 0 && c.query_scale >= 0) {
        const int64_t least = least_passing(c, row, most);
        return least > most || least >= bound;
    }
    for (int i = -1000; i <= 1000; i++) {
        const int dot = static_cast<int>(static_cast<int64_t>(most) * i / 1000);
        if (passes(c, row, dot) && dot < bound) return false;
    }
    return true;
}

double unit(uint64_t stream, uint64_t index)
{
    return static_cast<double>(check_random(stream, index) >> 11) * 0x1p-53;
}

// As a half has it: 0, or 2^-24 .. 65504.
float make_scale(uint64_t index, int spread)
{
    const double value =
        std::ldexp(1 + unit(80, index), static_cast<int>(unit(81, index) * spread) - 12);
    const int exponent = std::max(std::ilogb(value), -14) - 10;
    return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent));
}

const float odd[] = {0.0f,     -0.0f, INFINITY, -INFINITY, NAN,   -NAN,  0x1p-149f,
                     0x1p-24f, -1.0f, 0x1p126f, 0x1p127f,  3e38f, -3e38f};

// Odd values that a half can have.
const float odd_scales[] = {-0.0f, INFINITY, -INFINITY, NAN, -NAN, 0x1p-24f, -1.0f, 65504.0f};

// One kind of hostility after the other: spread scales, far exponents, limits that are a row's key
// or its neighbour, single odd values anywhere.
bound_case make_case(uint64_t number)
{
    bound_case c;
    const uint64_t first = number * 100;
    const int far = number % 5 == 1 ? 200 : number % 5 == 2 ? 40 : 6;
    const int spread = number % 3 == 0 ? 1 : number % 3 == 1 ? 4 : 24;
    const double bias = number % 7 == 0 ? 0
                                        : std::ldexp(unit(82, first) - 0.5,
                                                     static_cast<int>(unit(83, first) * far));
    for (uint32_t row = 0; row < warp_rows; row++) {
        c.scales[row] = make_scale(first + (number % 2 ? row : 0), spread);
        c.biases[row] =
            static_cast<float>(bias * (1 + (number % 11 ? unit(84, first + row) * 0.01 : 0)));
    }
    c.query_scale = static_cast<float>(
        std::ldexp(1 + unit(85, first), static_cast<int>((unit(86, first) - 0.5) * far)));
    const uint32_t row = static_cast<uint32_t>(unit(87, first) * warp_rows);
    const int dot =
        static_cast<int>((unit(88, first) - 0.3) * (number % 13 ? most_small : most_any));
    c.limit = key_of(c, row, number % 17 ? dot : dot % 16);
    if (number % 4 == 1) c.limit = std::nextafter(c.limit, INFINITY);
    if (number % 19 == 0) c.limit = odd[number % (sizeof odd / sizeof odd[0])];
    if (number % 23 == 0) c.query_scale = odd[number % (sizeof odd / sizeof odd[0])];
    if (number % 29 == 0)
        c.scales[row] = odd_scales[number % (sizeof odd_scales / sizeof odd_scales[0])];
    if (number % 31 == 0) c.biases[row] = odd[number % (sizeof odd / sizeof odd[0])];
    if (number % 37 == 0) c.scales[row] = 0;
    return c;
}

struct bounds {
    std::vector<int> small, any;
};

bool find(const std::vector<bound_case> &cases, bounds &out)
{
    const device_array<bound_case> d_cases(cases);
    const device_array<int> small(cases.size()), any(cases.size());
    const int error =
        launch({dim3(static_cast<unsigned>(cases.size())), dim3(warp_rows), 0, nullptr},
               find_bounds, static_cast<const bound_case *>(d_cases.get()), small.get(), any.get());
    if (!check_launch(error, "find_bounds")) return false;
    out = {small.values(), any.values()};
    return true;
}

// The half of a value that a half can hold.
uint16_t half_of(float value)
{
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return sign | 0x7e00;
    if (std::isinf(value)) return sign | 0x7c00;
    return sign | bsw_half_nearest(std::fabs(value));
}

// cases: a multiple of 4.
bool find_by_four(const std::vector<bound_case> &cases, bounds &out)
{
    std::vector<uint16_t> halves;
    for (const bound_case &c : cases) {
        for (float scale : c.scales) halves.push_back(half_of(scale));
    }
    const device_array<bound_case> d_cases(cases);
    const device_array<uint16_t> d_halves(halves);
    const device_array<int> small(cases.size()), any(cases.size());
    const int error =
        launch({dim3(static_cast<unsigned>(cases.size() / 4)), dim3(warp_rows), 0, nullptr},
               find_four_bounds, static_cast<const bound_case *>(d_cases.get()),
               static_cast<const uint16_t *>(d_halves.get()), small.get(), any.get());
    if (!check_launch(error, "find_four_bounds")) return false;
    out = {small.values(), any.values()};
    return true;
}

// 65504 and 2^-24 at once leave no bound; ordinary rows do.
bool is_close(int bound, int64_t least)
{
    return least - bound <= 3 + std::abs(least) / (1 << 16);
}

void check_low_enough(const std::vector<bound_case> &cases, const bounds &found, const char *how)
{
    long num_wrong = 0;
    for (size_t i = 0; i < cases.size(); i++) {
        for (uint32_t row = 0; row < warp_rows; row++) {
            num_wrong += !is_low_enough(cases[i], row, most_small, found.small[i]);
            num_wrong += !is_low_enough(cases[i], row, most_any, found.any[i]);
        }
    }
    check_that(num_wrong == 0, "bounds of dots, %s: %ld of %zu cases are too high for a row", how,
               num_wrong, cases.size());
}

void check_close(const std::vector<bound_case> &cases, const bounds &found, const char *how)
{
    long num_loose = 0;
    for (size_t i = 0; i < cases.size(); i++)
        num_loose += !is_close(found.small[i], least_passing(cases[i], 0, most_small)) ||
                     !is_close(found.any[i], least_passing(cases[i], 0, most_any));
    check_that(num_loose == 0, "bounds of dots, %s: %ld of %zu cases of rows all alike are loose",
               how, num_loose, cases.size());
}

struct below_cases {
    std::vector<bound_case> cases;
    std::vector<int> constants, dots;
};

bool find(const below_cases &all, std::vector<uint32_t> &out)
{
    const device_array<bound_case> d_cases(all.cases);
    const device_array<int> constants(all.constants), dots(all.dots);
    const device_array<uint32_t> below(all.cases.size());
    const int error = launch(
        {dim3(static_cast<unsigned>(all.cases.size())), dim3(warp_rows), 0, nullptr}, find_below,
        static_cast<const bound_case *>(d_cases.get()), static_cast<const int *>(constants.get()),
        static_cast<const int *>(dots.get()), below.get());
    if (!check_launch(error, "find_below")) return false;
    out = below.values();
    return true;
}

// The least dot of each row that passes, as odd as the constant, or one `less` than it.
below_cases make_below(const std::vector<bound_case> &cases, int less)
{
    below_cases out = {cases, {}, {}};
    for (size_t i = 0; i < cases.size(); i++) {
        const int constant = static_cast<int>((unit(95, i) - 0.5) * 2 * most_small);
        out.constants.push_back(constant);
        for (uint32_t row = 0; row < warp_rows; row++) {
            int64_t dot = least_passing(cases[i], row, most_small) - less;
            if ((dot ^ constant) & 1) dot += dot < most_small ? 1 : -1;
            out.dots.push_back(static_cast<int>(std::min(dot, int64_t{most_small})));
        }
    }
    return out;
}

void check_terms(const std::vector<bound_case> &cases)
{
    const below_cases all = make_below(cases, 0);
    std::vector<uint32_t> found;
    long num_lost = 0, num_passing = 0;
    if (!find(all, found)) return;
    for (size_t i = 0; i < cases.size(); i++) {
        for (uint32_t row = 0; row < warp_rows; row++) {
            if (!passes(cases[i], row, all.dots[i * warp_rows + row])) continue;
            num_passing++;
            num_lost += !(found[i] >> row & 1);
        }
    }
    check_that(num_lost == 0 && num_passing > static_cast<long>(cases.size()),
               "terms of keys: %ld of %ld rows that pass are lost", num_lost, num_passing);
}

// Twice the slack, whose terms are not above 1.25 * 2^20.
void check_terms_close(const std::vector<bound_case> &cases)
{
    std::vector<uint32_t> found;
    long num_loose = 0;
    if (!find(make_below(cases, 2 * (2 * 24 + 2 * 160)), found)) return;
    for (uint32_t bits : found) num_loose += bits != 0;
    check_that(num_loose == 0, "terms of keys: %ld of %zu cases of rows all alike are loose",
               num_loose, cases.size());
}

} // namespace

void check_bounds()
{
    std::vector<bound_case> cases(checks.small ? 300 : 6000);
    bounds found;
    for (size_t i = 0; i < cases.size(); i++) cases[i] = make_case(i);
    if (find(cases, found)) check_low_enough(cases, found, "one bundle");
    if (find_by_four(cases, found)) check_low_enough(cases, found, "four bundles");
    check_terms(cases);
    for (size_t i = 0; i < cases.size(); i++) {
        bound_case &c = cases[i];
        for (uint32_t row = 0; row < warp_rows; row++) {
            c.scales[row] = make_scale(100 * i, 10);
            c.biases[row] = 0;
        }
        c.query_scale = static_cast<float>(0.01 + unit(90, i));
        c.limit = key_of(c, 0, static_cast<int>((unit(91, i) - 0.5) * most_small));
    }
    if (find(cases, found)) check_close(cases, found, "one bundle");
    if (find_by_four(cases, found)) check_close(cases, found, "four bundles");
    check_terms_close(cases);
}
