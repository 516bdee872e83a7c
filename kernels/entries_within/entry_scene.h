// SPDX-License-Identifier: Apache-2.0
// Spheres and rays that say which entries are near, after JUNO (Liu et al., ASPLOS 2024, Section
// 4.2): what back ends that trace rays share.
//
// Subspace s is a layer, at z = s * spacing. Entry e is a sphere there, of squared radius R_s^2 for
// L2 and R_s^2 + |e|^2 for IP. A ray starts in front of its layer by the largest radius of it, the
// origin, and goes along z: it meets a sphere at t = origin - sqrt(square - |q - e|^2), so t grows
// with the distance, and a limit is a largest t: origin - sqrt(R_s^2 - limit). Layers do not meet:
// spacing is four times the largest origin. (The paper's origins are R in front, which lie inside
// the larger spheres of IP.)
//
// t is computed from the ray and the sphere in the plane, not from z, whose digits go to the
// layer's number.
#ifndef BITSWEEP_KERNELS_ENTRY_SCENE_H
#define BITSWEEP_KERNELS_ENTRY_SCENE_H

#include <math.h>

#include "kernels/entries_within/entry_value.h"

BSW_C_BEGIN

struct bsw_entry_layer {
    float square; // R_s^2
    float origin; // the largest radius of its spheres, or a little more
};

struct bsw_entry_sphere {
    float x, y, square; // of the radius
};

struct bsw_entry_scene {
    struct bsw_entry_book book;
    float spacing;
    struct bsw_entry_layer *layers;   // [subspaces]
    struct bsw_entry_sphere *spheres; // [subspaces][entries]
};

// R_s^2 is a 1e-3rd above reach[s], so that candidates are covered too, but for L2 not above four
// times the squared diagonal of the box round the entries (a radius that large hits all of them
// from everywhere near) and for IP not above 16 times the largest |e|^2; without reach R_s is that
// diagonal, and for IP twice the largest |e|. BSW_ERROR_BAD_DATA for
// coordinates of 2^58 and more, or less with many subspaces. The caller deinits, also after a
// failure.
enum bsw_status bsw_entry_scene_init(const struct bsw_entry_book *book, const float *reach,
                                     struct bsw_entry_scene *out, struct bsw_error *err);
void bsw_entry_scene_deinit(struct bsw_entry_scene *scene);

// The box of a sphere of layer s: a little wider than it in x and y, in z its whole layer, so that
// no rounding of a traversal loses a hit.
void bsw_entry_scene_box(const struct bsw_entry_scene *scene, size_t sphere, float lower[3],
                         float upper[3]);

// Where rays of a subspace start: z.
static inline float bsw_entry_scene_start(const struct bsw_entry_scene *scene, uint32_t subspace)
{
    return (float)subspace * scene->spacing - scene->layers[subspace].origin;
}

// The largest time of a ray's hits, below 0 where there can be none. Returns 0 if no sphere is
// large enough: then the formula of entries_within.h decides for all entries. Candidates: of a
// limit larger by a 1e-4th of the radius and by 4e-6 of the squared origin, which is more than
// times and formula round.
int bsw_entry_scene_most_time(const struct bsw_entry_scene *scene, const struct bsw_entry_ray *ray,
                              int has_candidates, float *most);

// When a ray at (x, y) meets a sphere; not a number where it does not.
static inline float bsw_entry_scene_time(const struct bsw_entry_layer *layer,
                                         const struct bsw_entry_sphere *sphere, float x, float y)
{
    float dx = x - sphere->x, dy = y - sphere->y;
    return layer->origin - sqrtf(sphere->square - fmaf(dy, dy, dx * dx));
}

// The value that a time says, JUNO's.
static inline float bsw_entry_scene_value(const struct bsw_entry_scene *scene,
                                          const struct bsw_entry_ray *ray, float time)
{
    const struct bsw_entry_layer *layer = &scene->layers[ray->subspace];
    float left = layer->origin - time, rest = fmaf(-left, left, layer->square);
    if (scene->book.value == BSW_ENTRY_L2) return rest > 0 ? rest : 0.0f;
    return 0.5f * (fmaf(ray->y, ray->y, ray->x * ray->x) - rest);
}

// What a back end has found of a ray: bit e of hits, times[e] where times is not NULL. Appends them
// in ascending order, from `count` hits on; returns the new count. Without times the formula
// decides and gives the value.
size_t bsw_entry_scene_append(const struct bsw_entry_scene *scene, const struct bsw_entry_ray *ray,
                              const uint64_t hits[4], const float *times,
                              const struct bsw_entry_hits *out, size_t count);

BSW_C_END
#endif
