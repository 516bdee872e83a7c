// SPDX-License-Identifier: Apache-2.0
// Back ends of entries_within: all hits and no others, the same bytes as the reference, on hostile
// geometry.
#include "unit_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "kernels/entries_within/entry_scene.h"

#define SUBSPACES 5
#define RAYS      (TEST_IS_SANITIZED ? 2000 : 20000)

struct finder_case {
    struct bsw_entry_book book;
    float *points;
    struct bsw_entry_ray *rays;
    const float *reach; // or NULL
    struct bsw_entry_scene scene;
};

static const float reaches[BSW_NUM_ENTRY_VALUES][SUBSPACES] = {
    {0.05f, 0.05f * 0x1p-60f, 2e4f, 0.0f, 0.01f}, {0.4f, 0.4f * 0x1p-60f, -4e7f, -0.1f, 9.0f}};

static float number_at(uint64_t seed, size_t i) // -1 to 1
{
    return (float)(int64_t)bsw_hash2(seed, i) * 0x1p-63f;
}

// Subspaces: plain, tiny, far from the origin, entries on one another, all entries in one place.
static float point_at(uint32_t subspace, int axis, size_t entry)
{
    size_t at = 2 * entry + (size_t)axis;
    switch (subspace) {
    case 0:
        return number_at(1, at);
    case 1:
        return 0x1p-30f * number_at(2, at);
    case 2:
        return 5000.0f + 300.0f * number_at(3, at);
    case 3:
        return 0.25f * roundf(4 * number_at(4, at));
    default:
        return axis ? -3.0f : 0.0f;
    }
}

static float value_of(const struct bsw_entry_book *book, const struct bsw_entry_ray *ray, size_t e)
{
    const float *x = book->points + (size_t)ray->subspace * 2 * book->entries + e;
    return book->value == BSW_ENTRY_L2 ? bsw_entry_distance(ray, x[0], x[book->entries])
                                       : bsw_entry_product(ray, x[0], x[book->entries]);
}

// Limits that put an entry on the rim or next to it, and those that no sphere, or all, cover.
static float limit_at(const struct finder_case *c, const struct bsw_entry_ray *ray, size_t r)
{
    float square = c->scene.layers[ray->subspace].square;
    float value = value_of(&c->book, ray, bsw_hash2(7, r) % c->book.entries);
    float rim =
        c->book.value == BSW_ENTRY_L2 ? value : fmaf(ray->y, ray->y, ray->x * ray->x) - 2 * value;
    switch (r % 16) {
    case 0:
        return INFINITY;
    case 1:
        return 0.0f;
    case 2:
        return square;
    case 3:
        return nextafterf(square, 0);
    case 4:
        return 0.9999f * square;
    case 5:
        return r % 32 == 5 ? -INFINITY : NAN;
    case 6:
        return -0.01f * square;
    case 7:
        return nextafterf(rim, -INFINITY);
    case 8:
        return nextafterf(rim, INFINITY);
    case 9:
        return -1e30f;
    case 10:
        return 1e-5f * square;
    case 11:
        return 0.01f * square;
    default:
        return rim;
    }
}

static void make_rays(struct finder_case *c)
{
    for (size_t r = 0; r < RAYS; r++) {
        struct bsw_entry_ray *ray = &c->rays[r];
        uint32_t s = (uint32_t)(bsw_hash2(5, r) % SUBSPACES);
        size_t e = bsw_hash2(6, r) % c->book.entries;
        float reach = sqrtf(c->scene.layers[s].square), far = r % 5 == 4   ? 3
                                                              : r % 5 == 3 ? 1
                                                                           : 0.3f;
        *ray =
            (struct bsw_entry_ray){.subspace = s, .x = point_at(s, 0, e), .y = point_at(s, 1, e)};
        if (r % 7 == 0) continue; // on an entry
        ray->x += far * reach * number_at(8, r);
        ray->y += far * reach * number_at(9, r);
    }
    for (size_t r = 0; r < RAYS; r++) c->rays[r].limit = limit_at(c, &c->rays[r], r);
}

static void make_case(enum bsw_entry_value value, uint32_t entries, int has_reach,
                      struct finder_case *c)
{
    struct bsw_error err;
    *c = (struct finder_case){.book = {.value = value, .subspaces = SUBSPACES, .entries = entries},
                              .reach = has_reach ? reaches[value] : NULL};
    c->points = allocate_or_fail((size_t)SUBSPACES * 2 * entries, sizeof(float));
    for (uint32_t s = 0; s < SUBSPACES; s++)
        for (int axis = 0; axis < 2; axis++)
            for (size_t e = 0; e < entries; e++)
                c->points[(s * 2 + (size_t)axis) * entries + e] = point_at(s, axis, e);
    c->book.points = c->points;
    c->rays = allocate_or_fail(RAYS, sizeof *c->rays);
    assert_ok(bsw_entry_scene_init(&c->book, c->reach, &c->scene, &err), &err);
    make_rays(c);
}

static void free_case(struct finder_case *c)
{
    bsw_entry_scene_deinit(&c->scene);
    bsw_free(&c->rays);
    bsw_free(&c->points);
}

static struct bsw_entry_hits make_hits(const struct finder_case *c)
{
    size_t room = bsw_entry_hits_room(&c->book, RAYS);
    return (struct bsw_entry_hits){allocate_or_fail(RAYS + 1, sizeof(uint32_t)),
                                   allocate_or_fail(room, 1), allocate_or_fail(room, sizeof(float)),
                                   NULL};
}

static void free_hits(struct bsw_entry_hits *hits)
{
    bsw_free(&hits->offsets);
    bsw_free(&hits->entries);
    bsw_free(&hits->values);
}

static void find(const char *name, enum bsw_cpu_level level, int has_hit_time,
                 const struct finder_case *c, const struct bsw_entry_hits *hits)
{
    const struct bsw_entry_finder_ops *ops;
    const struct bsw_entry_finder_options options = {level, c->reach, has_hit_time};
    bsw_entry_finder *finder;
    struct bsw_error err;
    assert_ok(bsw_entry_finder_get(name, &ops, &err), &err);
    assert_ok(ops->open(&c->book, &options, &finder, &err), &err);
    assert_ok(ops->find(finder, c->rays, RAYS, hits, &err), &err);
    ops->close(&finder);
    assert_null(finder);
    ops->close(&finder);
}

static void assert_same_hits(const struct bsw_entry_hits *expected,
                             const struct bsw_entry_hits *found)
{
    for (size_t r = 0; r <= RAYS; r++)
        if (expected->offsets[r] != found->offsets[r])
            fail_msg("ray %zu: %u hits, not %u", r - 1, found->offsets[r] - found->offsets[r - 1],
                     expected->offsets[r] - expected->offsets[r - 1]);
    assert_memory_equal(expected->entries, found->entries, expected->offsets[RAYS]);
    assert_memory_equal(expected->values, found->values, expected->offsets[RAYS] * sizeof(float));
}

// Skips a test where the back end was not built in or has no device, and says so.
static void need(const char *name)
{
    static const float points[32];
    const struct bsw_entry_book book = {.subspaces = 1, .entries = 16, .points = points};
    const struct bsw_entry_finder_ops *ops;
    const struct bsw_entry_finder_options options = {.level = BSW_CPU_REFERENCE};
    bsw_entry_finder *finder;
    struct bsw_error err;
    enum bsw_status status = bsw_entry_finder_get(name, &ops, &err);
    if (status == BSW_OK) status = ops->open(&book, &options, &finder, &err);
    if (status == BSW_OK) {
        ops->close(&finder);
        return;
    }
    print_message("%s\n", err.message);
    assert_int_equal(status, BSW_ERROR_USAGE);
    skip();
}

static void check_equal_case(const char *name, enum bsw_entry_value value, uint32_t entries,
                             int has_reach)
{
    struct finder_case c;
    make_case(value, entries, has_reach, &c);
    struct bsw_entry_hits expected = make_hits(&c), found = make_hits(&c);
    find("brute", BSW_CPU_REFERENCE, 0, &c, &expected);
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        find(name, (enum bsw_cpu_level)level, 0, &c, &found);
        assert_same_hits(&expected, &found);
    }
    free_hits(&expected);
    free_hits(&found);
    free_case(&c);
}

// Three threads at once on one finder.
static void check_threads(const char *name)
{
    struct finder_case c;
    const struct bsw_entry_finder_ops *ops;
    const struct bsw_entry_finder_options options = {.level = bsw_cpu_level_detect()};
    bsw_entry_finder *finder;
    struct bsw_error err;
    enum bsw_status status[3];
    make_case(BSW_ENTRY_L2, 256, 0, &c);
    struct bsw_entry_hits expected = make_hits(&c), found[3];
    for (int i = 0; i < 3; i++) found[i] = make_hits(&c);
    find("brute", BSW_CPU_REFERENCE, 0, &c, &expected);
    assert_ok(bsw_entry_finder_get(name, &ops, &err), &err);
    assert_ok(ops->open(&c.book, &options, &finder, &err), &err);
#pragma omp parallel for num_threads(3)
    for (int i = 0; i < 3; i++) status[i] = ops->find(finder, c.rays, RAYS, &found[i], NULL);
    ops->close(&finder);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(status[i], BSW_OK);
        assert_same_hits(&expected, &found[i]);
        free_hits(&found[i]);
    }
    free_hits(&expected);
    free_case(&c);
}

static void check_equal(const char *name)
{
    check_threads(name);
    for (int value = 0; value < BSW_NUM_ENTRY_VALUES; value++)
        for (int has_reach = 0; has_reach < 2; has_reach++)
            for (uint32_t entries = 16; entries <= 256; entries *= 16)
                check_equal_case(name, (enum bsw_entry_value)value, entries, has_reach);
}

UNIT_TEST(brute_is_the_same_at_every_level)
{
    check_equal("brute");
}

UNIT_TEST(embree_finds_what_brute_finds)
{
    need("embree");
    check_equal("embree");
}

UNIT_TEST(vulkan_finds_what_brute_finds)
{
    need("vulkan");
    check_equal("vulkan");
}

// Infinity hits all, in order; a limit that is not a number none.
UNIT_TEST(infinity_is_all_entries)
{
    struct finder_case c;
    make_case(BSW_ENTRY_L2, 256, 0, &c);
    struct bsw_entry_hits hits = make_hits(&c);
    find("auto", bsw_cpu_level_detect(), 0, &c, &hits);
    for (size_t r = 0; r < RAYS; r++) {
        uint32_t num = hits.offsets[r + 1] - hits.offsets[r];
        if (isnan(c.rays[r].limit)) assert_int_equal(num, 0);
        if (c.rays[r].limit != INFINITY) continue;
        assert_int_equal(num, 256);
        for (uint32_t e = 0; e < num; e++) assert_int_equal(hits.entries[hits.offsets[r] + e], e);
    }
    free_hits(&hits);
    free_case(&c);
}

// ---- hit times ----

// Hits of a ray: values that both have differ by at most 2e-7 of the layer's square, and what only
// one has is as near the limit.
static void check_times(const struct finder_case *c, const struct bsw_entry_hits *expected,
                        const struct bsw_entry_hits *found, size_t r)
{
    const struct bsw_entry_ray *ray = &c->rays[r];
    const struct bsw_entry_layer *layer = &c->scene.layers[ray->subspace];
    float square = layer->origin * layer->origin, most = 2e-7f * square;
    float limit = c->book.value == BSW_ENTRY_L2 ? ray->limit : bsw_entry_least(ray);
    uint32_t i = expected->offsets[r], j = found->offsets[r];
    while (i < expected->offsets[r + 1] || j < found->offsets[r + 1]) {
        int a = i < expected->offsets[r + 1] ? expected->entries[i] : 256,
            b = j < found->offsets[r + 1] ? found->entries[j] : 256;
        size_t e = (size_t)(a < b ? a : b);
        float value = value_of(&c->book, ray, e);
        if (a == b && fabsf(found->values[j] - value) > most)
            fail_msg("ray %zu, entry %zu: %g by time, %g by formula, square %g", r, e,
                     (double)found->values[j], (double)value, (double)square);
        if (a != b && fabsf(value - limit) > 2 * most)
            fail_msg("ray %zu, entry %zu of value %g, limit %g: found by %s alone", r, e,
                     (double)value, (double)limit, a < b ? "the formula" : "time");
        i += (uint32_t)(a <= b);
        j += (uint32_t)(b <= a);
    }
}

static void check_hit_times_case(const char *name, enum bsw_entry_value value, int has_reach)
{
    struct finder_case c;
    make_case(value, 256, has_reach, &c);
    struct bsw_entry_hits expected = make_hits(&c), found = make_hits(&c);
    find("brute", bsw_cpu_level_detect(), 0, &c, &expected);
    find(name, bsw_cpu_level_detect(), 1, &c, &found);
    for (size_t r = 0; r < RAYS; r++) check_times(&c, &expected, &found, r);
    // They are times: not the formula's bits.
    assert_true(expected.offsets[RAYS] != found.offsets[RAYS] ||
                memcmp(expected.values, found.values, expected.offsets[RAYS] * sizeof(float)) != 0);
    free_hits(&expected);
    free_hits(&found);
    free_case(&c);
}

static void check_hit_times(const char *name)
{
    for (int value = 0; value < BSW_NUM_ENTRY_VALUES; value++)
        for (int has_reach = 0; has_reach < 2; has_reach++)
            check_hit_times_case(name, (enum bsw_entry_value)value, has_reach);
}

UNIT_TEST(embree_times_are_near_distances)
{
    need("embree");
    check_hit_times("embree");
}

UNIT_TEST(vulkan_times_are_near_distances)
{
    need("vulkan");
    check_hit_times("vulkan");
}

// ---- refused ----

UNIT_TEST(wrong_books_and_names_are_refused)
{
    const struct bsw_entry_finder_ops *ops;
    const struct bsw_entry_finder_options plain = {.has_hit_time = 0}, timed = {.has_hit_time = 1};
    bsw_entry_finder *finder;
    struct bsw_error err;
    float points[32] = {0};
    struct bsw_entry_book book = {.subspaces = 1, .entries = 16, .points = points};
    assert_int_equal(bsw_entry_finder_get("optix", &ops, &err), BSW_ERROR_USAGE);
    assert_string_equal(err.message, "unknown back end 'optix': use auto, brute, embree or vulkan");
    assert_ok(bsw_entry_finder_get("auto", &ops, &err), &err);
    assert_string_equal(ops->name, "brute");
    assert_int_equal(ops->open(&book, &timed, &finder, &err), BSW_ERROR_USAGE);
    book.entries = 17;
    assert_int_equal(ops->open(&book, &plain, &finder, &err), BSW_ERROR_BAD_DATA);
    book.entries = 16;
    book.subspaces = BSW_ENTRY_MOST_SUBSPACES + 1;
    assert_int_equal(ops->open(&book, &plain, &finder, &err), BSW_ERROR_TOO_LARGE);
    book.subspaces = 1;
    points[31] = NAN;
    assert_int_equal(ops->open(&book, &plain, &finder, &err), BSW_ERROR_BAD_DATA);
    assert_string_equal(err.message, "coordinate 31 of codebooks is nan");
    struct bsw_entry_scene scene;
    points[31] = 0x1p59f;
    assert_int_equal(bsw_entry_scene_init(&book, NULL, &scene, &err), BSW_ERROR_BAD_DATA);
    bsw_entry_scene_deinit(&scene);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
