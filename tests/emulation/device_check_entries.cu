// SPDX-License-Identifier: Apache-2.0
// Entries within a radius against the reference of kernels/entries_within.
#include <cmath>
#include <cstring>

#include "device_check.hpp"
#include "kernels/device_entries/device_entries.h"
#include "kernels/entries_within/entry_value.h"

namespace
{

struct entries_case {
    bsw_entry_value value;
    uint32_t subspaces, entries, num_rays;
};

std::string describe(const entries_case &c)
{
    return std::string(c.value == BSW_ENTRY_L2 ? "l2, " : "ip, ") + std::to_string(c.subspaces) +
           " subspaces of " + std::to_string(c.entries) + " entries, " +
           std::to_string(c.num_rays) + " rays";
}

float number(uint64_t stream, uint64_t index) // -1 to 1
{
    return static_cast<float>(static_cast<int64_t>(check_random(stream, index))) * 0x1p-63f;
}

// Some lie on others.
std::vector<float> make_points(const entries_case &c)
{
    std::vector<float> points(static_cast<size_t>(c.subspaces) * 2 * c.entries);
    for (size_t i = 0; i < points.size(); i++)
        points[i] = number(2001, i % c.entries % 7 ? i : i / 7);
    return points;
}

// Limits on the rim of an entry or a float beside it, and those that all, or none, are within.
std::vector<bsw_entry_ray> make_rays(const entries_case &c, const std::vector<float> &points)
{
    std::vector<bsw_entry_ray> rays;
    for (uint32_t r = 0; r < c.num_rays; r++) {
        const uint64_t draw = check_random(2002, r);
        bsw_entry_ray ray = {static_cast<uint32_t>(draw % c.subspaces), number(2003, r),
                             number(2004, r), 0.0f};
        const float *x = points.data() + static_cast<size_t>(ray.subspace) * 2 * c.entries +
                         draw / 4096 % c.entries;
        if (r % 5 == 0) ray.x = x[0], ray.y = x[c.entries];
        const float norm = fmaf(ray.y, ray.y, ray.x * ray.x),
                    rim = c.value == BSW_ENTRY_L2
                              ? bsw_entry_distance(&ray, x[0], x[c.entries])
                              : norm - 2 * bsw_entry_product(&ray, x[0], x[c.entries]);
        const float limits[] = {INFINITY,
                                0.0f,
                                -INFINITY,
                                NAN,
                                rim,
                                nextafterf(rim, -INFINITY),
                                nextafterf(rim, INFINITY),
                                0.25f};
        ray.limit = limits[r % 8];
        rays.push_back(ray);
    }
    return rays;
}

void check_case(const entries_case &c)
{
    const std::vector<float> points = make_points(c);
    const std::vector<bsw_entry_ray> rays = make_rays(c, points);
    const size_t room = static_cast<size_t>(c.num_rays) * c.entries;
    device_array<float> d_points(points), d_values(room);
    device_array<bsw_entry_ray> d_rays(rays);
    device_array<uint32_t> d_counts(c.num_rays);
    device_array<uint8_t> d_entries(room);
    const bsw_device_entry_book book = {d_points.get(), c.subspaces, c.entries, c.value};
    const bsw_device_entry_hits hits = {d_counts.get(), d_entries.get(), d_values.get()};
    if (!check_launch(bsw_device_entries_within(&book, d_rays.get(), c.num_rays, &hits, nullptr),
                      describe(c)))
        return;
    const std::vector<uint32_t> counts = d_counts.values();
    const std::vector<uint8_t> entries = d_entries.values();
    const std::vector<float> values = d_values.values();
    for (uint32_t r = 0; r < c.num_rays; r++) {
        uint8_t expected_entries[256 + 32];
        float expected[256 + 32];
        const float *x = points.data() + static_cast<size_t>(rays[r].subspace) * 2 * c.entries;
        const size_t count = bsw_entries_within_reference.within[c.value](
                         x, x + c.entries, c.entries, &rays[r], expected_entries, expected),
                     first = static_cast<size_t>(r) * c.entries;
        check_that(counts[r] == count &&
                       memcmp(expected_entries, entries.data() + first, count) == 0 &&
                       memcmp(expected, values.data() + first, count * sizeof(float)) == 0,
                   "%s: ray %u, limit %g: %u hits, not %zu, or others", describe(c).c_str(), r,
                   static_cast<double>(rays[r].limit), counts[r], count);
    }
}

} // namespace

void check_entries()
{
    const bsw_device_entry_book odd = {nullptr, 1, 32, BSW_ENTRY_L2};
    const bsw_device_entry_hits none = {};
    check_that(bsw_device_entries_within(&odd, nullptr, 1, &none, nullptr) == cudaErrorInvalidValue,
               "32 entries were taken");
    for (uint32_t entries = 16; entries <= 256; entries *= 16) {
        for (bsw_entry_value value : {BSW_ENTRY_L2, BSW_ENTRY_IP}) {
            check_case({value, 1, entries, 1});
            check_case({value, 3, entries, 8});
            check_case({value, 5, entries, checks.small ? 41u : 403u});
        }
    }
}
