// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/selection_settings.h"

#include <math.h>
#include <string.h>

#include "common/base/number_parse.h"
#include "shard/codecs/codec.h"

#define MOST_SCALE 1e9

static const char *const modes[] = {"H", "M", "L"};
static const char *const kinds[] = {"dynamic", "small", "large", "nearest"};

const char *bsw_selection_mode_name(enum bsw_selection_mode mode)
{
    return modes[mode];
}

const char *bsw_radii_kind_name(enum bsw_radii_kind kind)
{
    return kinds[kind];
}

const char *bsw_selection_miss_name(const struct bsw_selection_settings *settings)
{
    return settings->is_miss_infinite ? "inf" : settings->is_miss_mean ? "mean" : "bound";
}

enum bsw_status bsw_radius_scale_parse(const char *text, double *out, struct bsw_error *err)
{
    *out = INFINITY;
    if (strcmp(text, "inf") == 0) return BSW_OK;
    BSW_TRY(bsw_number_parse("--radius-scale", text, out, err));
    if (*out > 1e-9 && *out <= MOST_SCALE) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--radius-scale %s: a positive number up to 1e9, or inf",
                    text);
}

// The first option that only --entries radius has, or NULL.
static const char *what_needs_radius(const struct bsw_selection_request *asked)
{
    return asked->radius_scale != 0 ? "radius-scale"
           : asked->mode[0]         ? "mode"
           : asked->miss[0]         ? "miss"
           : asked->radii[0]        ? "radii"
           : asked->finder[0]       ? "entries-by"
           : asked->has_hit_time    ? "hit-time"
                                    : NULL;
}

static int place_of(const char *name, const char *const *names, int num)
{
    int place = num - 1;
    while (place > 0 && strcmp(name, names[place]) != 0) place--;
    return place;
}

enum bsw_status bsw_selection_refuse(const struct bsw_selection_request *asked, const char *codec,
                                     struct bsw_error *err)
{
    const char *option = asked->choice == BSW_ENTRIES_RADIUS ? "entries" : what_needs_radius(asked);
    if (!option) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--%s: codec %s has no entries, pq has", option, codec);
}

static enum bsw_status check_miss(const struct bsw_selection_settings *settings,
                                  enum bsw_metric metric, struct bsw_error *err)
{
    if (settings->radii == BSW_RADII_NEAREST && metric != BSW_METRIC_L2)
        return bsw_fail(err, BSW_ERROR_USAGE, "--radii nearest is for l2, the index is of %s",
                        bsw_metric_name(metric));
    if (settings->is_miss_mean && settings->radii != BSW_RADII_NEAREST)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--miss mean is for --radii nearest: it has what entries outside are");
    if ((settings->is_miss_infinite || settings->is_miss_mean) && settings->mode != BSW_SELECTION_H)
        return bsw_fail(err, BSW_ERROR_USAGE, "--miss %s is for --mode H: M and L count",
                        bsw_selection_miss_name(settings));
    return BSW_OK;
}

enum bsw_status bsw_selection_settle(const struct bsw_selection_request *asked,
                                     const struct bsw_manifest *manifest, const char *index,
                                     int has_table, struct bsw_selection_settings *out,
                                     struct bsw_error *err)
{
    const char *option = what_needs_radius(asked);
    *out = (struct bsw_selection_settings){0};
    if (asked->choice == BSW_ENTRIES_ALL && option)
        return bsw_fail(err, BSW_ERROR_USAGE, "--%s is for --entries radius", option);
    if (asked->choice == BSW_ENTRIES_ALL) return BSW_OK;
    if (has_table)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--table is for --entries all: with radius tables are of float32");
    if (!manifest->codec->table->product(manifest)->radii)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--entries radius: %s has no radii; encode --entries radius makes some",
                        index);
    *out = (struct bsw_selection_settings){
        .is_on = 1,
        .mode = (enum bsw_selection_mode)place_of(asked->mode, modes, 3),
        .scale = asked->radius_scale != 0 ? (float)asked->radius_scale : 1.0f,
        .is_miss_infinite = strcmp(asked->miss, "inf") == 0,
        .is_miss_mean = strcmp(asked->miss, "mean") == 0,
        .radii = (enum bsw_radii_kind)place_of(asked->radii, kinds, 4),
        .has_hit_time = asked->has_hit_time};
    BSW_TRY(check_miss(out, manifest->metric, err));
    BSW_TRY(bsw_entry_finder_get(asked->finder[0] ? asked->finder : "auto", &out->finder, err));
    if (out->has_hit_time && out->finder->looks_at_all)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--hit-time: %s traces no rays, so it has no times of hits; take "
                        "--entries-by embree or vulkan",
                        out->finder->name);
    return BSW_OK;
}
