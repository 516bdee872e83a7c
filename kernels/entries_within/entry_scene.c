// SPDX-License-Identifier: Apache-2.0
#include "kernels/entries_within/entry_scene.h"

#include "common/base/memory.h"

// Squared radii are at least this, and the 2^-26th of the largest |e|^2: boxes of less would be
// lost in the digits of their centres.
#define LEAST_SQUARE 0x1p-100f

// Boxes stay within this: Embree leaves out what is beyond 1.8e18.
#define MOST_REACH 0x1p60f

// Measures entries [entries]: the squared diagonal of the box round them, and the largest squared
// norm.
static void measure(const float *x, size_t entries, float *diagonal, float *norm)
{
    const float *y = x + entries;
    float left = x[0], right = x[0], low = y[0], high = y[0];
    *norm = 0;
    for (size_t e = 0; e < entries; e++) {
        left = fminf(left, x[e]);
        right = fmaxf(right, x[e]);
        low = fminf(low, y[e]);
        high = fmaxf(high, y[e]);
        *norm = fmaxf(*norm, fmaf(y[e], y[e], x[e] * x[e]));
    }
    *diagonal = fmaf(high - low, high - low, (right - left) * (right - left));
}

static void make_layer(struct bsw_entry_scene *scene, uint32_t s, const float *reach)
{
    const struct bsw_entry_book *book = &scene->book;
    size_t entries = book->entries;
    const float *x = book->points + s * 2 * entries, *y = x + entries;
    struct bsw_entry_layer *layer = &scene->layers[s];
    struct bsw_entry_sphere *spheres = scene->spheres + s * entries;
    float diagonal, norm;
    int is_l2 = book->value == BSW_ENTRY_L2;
    measure(x, entries, &diagonal, &norm);
    float usual = is_l2 ? diagonal : 4 * norm, wanted = usual;
    // Rays with more than that go by the formula.
    if (reach) wanted = usual > 0 ? fminf(reach[s], 4 * usual) : reach[s];
    wanted += fmaf(1e-3f, fabsf(wanted), is_l2 ? 0.0f : 1e-5f * norm);
    layer->square = fmaxf(wanted, fmaxf(0x1p-26f * norm, LEAST_SQUARE));
    layer->origin = nextafterf(sqrtf(is_l2 ? layer->square : layer->square + norm), INFINITY);
    for (size_t e = 0; e < entries; e++) {
        float more = is_l2 ? 0.0f : fmaf(y[e], y[e], x[e] * x[e]);
        spheres[e] = (struct bsw_entry_sphere){x[e], y[e], layer->square + more};
    }
}

enum bsw_status bsw_entry_scene_init(const struct bsw_entry_book *book, const float *reach,
                                     struct bsw_entry_scene *out, struct bsw_error *err)
{
    float largest = 0, centre = 0;
    *out = (struct bsw_entry_scene){.book = *book};
    BSW_TRY(bsw_entry_book_check(book, err));
    BSW_TRY(
        bsw_allocate(&out->layers, book->subspaces, sizeof *out->layers, "layers of spheres", err));
    BSW_TRY(bsw_allocate(&out->spheres, (size_t)book->subspaces * book->entries,
                         sizeof *out->spheres, "spheres", err));
    for (uint32_t s = 0; s < book->subspaces; s++) {
        make_layer(out, s, reach);
        largest = fmaxf(largest, out->layers[s].origin);
    }
    for (size_t i = 0; i < (size_t)book->subspaces * 2 * book->entries; i++)
        centre = fmaxf(centre, fabsf(book->points[i]));
    out->spacing = 4 * largest;
    if (!(fmaxf((float)book->subspaces * out->spacing, 2 * (centre + largest)) < MOST_REACH))
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "coordinates of codebooks up to %g are too large to trace rays; take brute",
                        (double)centre);
    return BSW_OK;
}

void bsw_entry_scene_deinit(struct bsw_entry_scene *scene)
{
    bsw_free(&scene->layers);
    bsw_free(&scene->spheres);
}

void bsw_entry_scene_box(const struct bsw_entry_scene *scene, size_t sphere, float lower[3],
                         float upper[3])
{
    const struct bsw_entry_sphere *at = &scene->spheres[sphere];
    const float centre[3] = {at->x, at->y, (float)(sphere / scene->book.entries) * scene->spacing};
    for (int i = 0; i < 3; i++) {
        // What rounding of the sum may take, too.
        float half = i < 2 ? fmaf(fabsf(centre[i]), 0x1p-22f, sqrtf(at->square) * 1.0001f)
                           : 0.375f * scene->spacing;
        lower[i] = centre[i] - half;
        upper[i] = centre[i] + half;
    }
}

int bsw_entry_scene_most_time(const struct bsw_entry_scene *scene, const struct bsw_entry_ray *ray,
                              int has_candidates, float *most)
{
    const struct bsw_entry_layer *layer = &scene->layers[ray->subspace];
    float square = layer->origin * layer->origin, limit = ray->limit;
    if (has_candidates) limit += fmaf(2e-4f, fabsf(limit), 4e-6f * square);
    if (limit >= layer->square) return 0;
    // What is not a number, -infinity too: a limit that no entry can be within, as |e| is below the
    // origin.
    if (!(limit > -3 * square)) limit = -3 * square;
    *most = layer->origin - sqrtf(layer->square - limit);
    return 1;
}

static int is_hit(const struct bsw_entry_book *book, const struct bsw_entry_ray *ray, size_t e,
                  float *value)
{
    const float *x = book->points + (size_t)ray->subspace * 2 * book->entries + e;
    if (book->value == BSW_ENTRY_L2) {
        *value = bsw_entry_distance(ray, x[0], x[book->entries]);
        return *value <= ray->limit;
    }
    *value = bsw_entry_product(ray, x[0], x[book->entries]);
    return *value >= bsw_entry_least(ray);
}

size_t bsw_entry_scene_append(const struct bsw_entry_scene *scene, const struct bsw_entry_ray *ray,
                              const uint64_t hits[4], const float *times,
                              const struct bsw_entry_hits *out, size_t count)
{
    for (size_t word = 0; word < 4; word++) {
        if (out->num_computed && !times)
            *out->num_computed += (uint64_t)__builtin_popcountll(hits[word]);
        for (uint64_t rest = hits[word]; rest; rest &= rest - 1) {
            size_t e = 64 * word + (size_t)__builtin_ctzll(rest);
            float value;
            if (times)
                value = bsw_entry_scene_value(scene, ray, times[e]);
            else if (!is_hit(&scene->book, ray, e, &value))
                continue;
            out->entries[count] = (uint8_t)e;
            out->values[count++] = value;
        }
    }
    return count;
}
