// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_grid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/number_parse.h"
#include "common/codes/code_layout.h"
#include "coordinator/encode/encode_lists.h"
#include "coordinator/job/option_table.h"
#include "coordinator/search/search_settings.h"
#include "kernels/encode/raw_codes.h"
#include "shard/codecs/codec.h"

enum { WORD_BYTES = 32, LEARNED_QUERY_BITS = 7, MOST_WORDS = 6, AUTO = -1 };

#define COMMA() ,

static const char *const codecs[] = {BSW_CODEC_LIST(BSW_CODEC_TEXT, COMMA)}; // as in bsw_codecs
_Static_assert(sizeof codecs / sizeof codecs[0] <= BSW_SWEEP_MAX_CODECS, "bits of each");
static const char *const tables[] = {"auto", "float32", "float16", "e5m3", "e4m4"};
static const char *const entries[] = {"all", "radius"};
static const char *const modes[] = {"H", "M", "L"};
static const char *const selects[] = {"threshold", "histogram", "queue"};

// What an axis may hold: words, or numbers from min to max.
static const struct axis_rule {
    const char *name;
    const char *const *words; // NULL: numbers
    size_t num_words;
    double min, max;
    int is_whole;
    const char *word; // that stands for a number; NULL: none does
    double word_value;
} rules[BSW_SWEEP_NUM_AXES] = {
    [BSW_SWEEP_CODEC] = {"codec", codecs, sizeof codecs / sizeof codecs[0], 0, 0, 0, NULL, 0},
    [BSW_SWEEP_BITS] = {"bits", NULL, 0, 1, BSW_MAX_CODE_BITS, 0, NULL, 0},
    [BSW_SWEEP_PARTS] = {"subspaces", NULL, 0, 0, BSW_MAX_DIMS, 1, NULL, 0},
    [BSW_SWEEP_LISTS] = {"lists", NULL, 0, 0, BSW_MAX_LISTS, 1, "auto", AUTO},
    [BSW_SWEEP_QUERY_BITS] = {"query-bits", NULL, 0, 1, BSW_MAX_QUERY_BITS, 1, NULL, 0},
    [BSW_SWEEP_K] = {"k", NULL, 0, 1, BSW_SEARCH_MAX_K, 1, NULL, 0},
    [BSW_SWEEP_OVERSAMPLE] = {"oversample", NULL, 0, 1, 10000, 0, NULL, 0},
    [BSW_SWEEP_SELECT] = {"select", selects, sizeof selects / sizeof selects[0], 0, 0, 0, NULL, 0},
    [BSW_SWEEP_EXTRA_DISTANCE] = {"extra-distance", NULL, 0, 0, INT32_MAX, 1, NULL, 0},
    [BSW_SWEEP_PROBE] = {"probe", NULL, 0, 0, BSW_MAX_LISTS, 1, "all", 0},
    [BSW_SWEEP_PROBE_RATIO] = {"probe-ratio", NULL, 0, 0, 1000, 0, NULL, 0},
    [BSW_SWEEP_RECALL] = {"recall", NULL, 0, 0, 1, 0, NULL, 0},
    [BSW_SWEEP_TABLE] = {"table", tables, sizeof tables / sizeof tables[0], 0, 0, 0, NULL, 0},
    [BSW_SWEEP_ENTRIES] = {"entries", entries, sizeof entries / sizeof entries[0], 0, 0, 0, NULL,
                           0},
    [BSW_SWEEP_RADIUS_SCALE] = {"radius-scale", NULL, 0, 1e-6, 1e6, 0, NULL, 0},
    [BSW_SWEEP_MODE] = {"mode", modes, sizeof modes / sizeof modes[0], 0, 0, 0, NULL, 0},
};

int bsw_sweep_axis_of(const char *name)
{
    for (int axis = 0; axis < BSW_SWEEP_NUM_AXES; axis++) {
        if (strcmp(rules[axis].name, name) == 0) return axis;
    }
    return -1;
}

// ---- lists of values ----

static enum bsw_status parse_number(const struct axis_rule *rule, const char *what,
                                    const char *word, double *value, struct bsw_error *err)
{
    *value = rule->word_value;
    if (rule->word && strcmp(word, rule->word) == 0) return BSW_OK;
    if (rule->is_whole) {
        uint64_t count;
        BSW_TRY(rule->word ? bsw_count_parse_or(what, word, rule->word, &count, err)
                           : bsw_count_parse(what, word, &count, err));
        *value = (double)count;
    } else {
        BSW_TRY(bsw_number_parse(what, word, value, err));
    }
    if (!(*value >= rule->min && *value <= rule->max))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %s is not in %.15g .. %.15g", what, word,
                        rule->min, rule->max);
    return BSW_OK;
}

static enum bsw_status parse_choice(const struct axis_rule *rule, const char *what,
                                    const char *word, double *value, struct bsw_error *err)
{
    char all[MOST_WORDS * WORD_BYTES] = "";
    for (size_t place = 0; place < rule->num_words; place++) {
        *value = (double)place;
        if (strcmp(rule->words[place], word) == 0) return BSW_OK;
        strcat(strcat(all, place ? ", " : ""), rule->words[place]);
    }
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: '%s' is none of %s", what, word, all);
}

static enum bsw_status append(const char *what, const char *word, double value,
                              struct bsw_sweep_axis *out, struct bsw_error *err)
{
    for (size_t i = 0; i < out->count; i++) {
        if (out->values[i] == value)
            return bsw_fail(err, BSW_ERROR_USAGE, "%s: %s is there twice", what, word);
    }
    if (out->count == BSW_SWEEP_MAX_VALUES)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: more than %d values", what,
                        BSW_SWEEP_MAX_VALUES);
    out->values[out->count++] = value;
    return BSW_OK;
}

// A number, or A:B, in steps of 1. word is cut.
static enum bsw_status append_numbers(const struct axis_rule *rule, const char *what, char *word,
                                      struct bsw_sweep_axis *out, struct bsw_error *err)
{
    char *colon = strchr(word, ':');
    struct axis_rule plain = *rule;
    double first, last;
    plain.word = NULL; // no end of a range
    if (colon) *colon = '\0';
    BSW_TRY(parse_number(rule, what, word, &first, err));
    if (!colon) return append(what, word, first, out, err);
    BSW_TRY(parse_number(&plain, what, word, &first, err));
    BSW_TRY(parse_number(&plain, what, colon + 1, &last, err));
    if (last < first)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: %s:%s is no range: use the smaller number first, as in 1:4", what,
                        word, colon + 1);
    for (double value = first; value <= last; value++) {
        char text[WORD_BYTES];
        snprintf(text, sizeof text, "%.15g", value);
        BSW_TRY(append(what, text, value, out, err));
    }
    return BSW_OK;
}

// "saq", "saq:1:3", or a number behind one of these, which is the codec's, too.
static enum bsw_status append_codec(struct bsw_sweep_grid *grid, const char *what, char *word,
                                    struct bsw_error *err)
{
    const struct axis_rule *rule = &rules[BSW_SWEEP_CODEC];
    struct bsw_sweep_axis *codecs_axis = &grid->axes[BSW_SWEEP_CODEC];
    size_t last = codecs_axis->count > 0 ? (size_t)codecs_axis->values[codecs_axis->count - 1] : 0;
    struct bsw_sweep_axis *bits = &grid->own_bits[last];
    char *colon = strchr(word, ':');
    double value;
    if (bits->count > 0 && word[0] >= '0' && word[0] <= '9')
        return append_numbers(&rules[BSW_SWEEP_BITS], what, word, bits, err);
    if (colon) *colon = '\0';
    BSW_TRY(parse_choice(rule, what, word, &value, err));
    BSW_TRY(append(what, word, value, codecs_axis, err));
    if (!colon) return BSW_OK;
    if (bsw_codecs[(size_t)value]->table->fixed_bits > 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %s takes no bits", what, word);
    return append_numbers(&rules[BSW_SWEEP_BITS], what, colon + 1, &grid->own_bits[(size_t)value],
                          err);
}

enum bsw_status bsw_sweep_grid_set(struct bsw_sweep_grid *grid, enum bsw_sweep_axis_kind axis,
                                   const char *before, const char *text, struct bsw_error *err)
{
    const struct axis_rule *rule = &rules[axis];
    struct bsw_sweep_axis *out = &grid->axes[axis];
    char word[WORD_BYTES], what[300];
    out->count = 0;
    if (axis == BSW_SWEEP_CODEC) memset(grid->own_bits, 0, sizeof grid->own_bits);
    snprintf(what, sizeof what, "%s%s", before, rule->name);
    while (bsw_word_take(&text, ',', word, sizeof word)) {
        double value;
        if (axis == BSW_SWEEP_CODEC) {
            BSW_TRY(append_codec(grid, what, word, err));
        } else if (rule->words) {
            BSW_TRY(parse_choice(rule, what, word, &value, err));
            BSW_TRY(append(what, word, value, out, err));
        } else {
            BSW_TRY(append_numbers(rule, what, word, out, err));
        }
    }
    return BSW_OK;
}

// ---- what a codec and a selection know ----

static int has(const char *name, const char *word)
{
    return strcmp(name, word) == 0;
}

static void fix(struct bsw_sweep_grid *grid, enum bsw_sweep_axis_kind axis, double value)
{
    grid->axes[axis] = (struct bsw_sweep_axis){1, {value}};
}

static struct bsw_sweep_grid narrow(const struct bsw_sweep_grid *grid, size_t codec,
                                    const struct bsw_sweep_limits *limits)
{
    struct bsw_sweep_grid out = *grid;
    const struct bsw_codec_table *table = bsw_codecs[codec]->table;
    fix(&out, BSW_SWEEP_CODEC, (double)codec);
    if (grid->own_bits[codec].count > 0) out.axes[BSW_SWEEP_BITS] = grid->own_bits[codec];
    if (table->fixed_bits > 0) fix(&out, BSW_SWEEP_BITS, table->fixed_bits);
    if (table->has_parts) {
        fix(&out, BSW_SWEEP_QUERY_BITS, 1);
    } else {
        fix(&out, BSW_SWEEP_PARTS, 0);
        fix(&out, BSW_SWEEP_TABLE, BSW_TABLE_CHOICE_AUTO);
        fix(&out, BSW_SWEEP_ENTRIES, BSW_ENTRIES_ALL);
    }
    if (table->has_exact_keys) {
        fix(&out, BSW_SWEEP_QUERY_BITS, BSW_RAW_QUERY_BITS);
        fix(&out, BSW_SWEEP_OVERSAMPLE, 1);
    } else if (table->has_model && limits->model_bits > 0) {
        fix(&out, BSW_SWEEP_BITS, limits->model_bits);
        fix(&out, BSW_SWEEP_QUERY_BITS, limits->model_query_bits);
    } else if (table->has_model) {
        fix(&out, BSW_SWEEP_QUERY_BITS, LEARNED_QUERY_BITS);
    }
    return out;
}

// Why the codec cannot be used so; 0: it can.
static int find_codec_reason(const struct bsw_sweep_limits *limits, const struct bsw_sweep_point *p,
                             char *out, size_t capacity)
{
    const struct bsw_codec *codec = bsw_codec_find(p->codec);
    const struct bsw_codec_table *table = codec->table;
    int is_fixed = table->has_model && limits->model_bits > 0;
    const char *only = bsw_codec_only_metric(codec);
    if ((table->metrics >> limits->metric & 1) == 0)
        snprintf(out, capacity, "codec %s knows --metric %s only", p->codec,
                 only ? only : "ip and l2");
    else if (table->takes_numbers && !limits->is_integer)
        snprintf(out, capacity, "codec %s takes rows of uint8 or int8 only", p->codec);
    else if (table->has_whole_bits && !is_fixed && p->bits != floor(p->bits))
        snprintf(out, capacity, "codec %s with %g bits: it has whole bits", p->codec, p->bits);
    else if (table->has_parts && p->bits != 4 && p->bits != 8)
        snprintf(out, capacity, "codec %s with %g bits: it has 4 or 8 a subspace", p->codec,
                 p->bits);
    else if (p->parts > limits->dims)
        snprintf(out, capacity, "subspaces %u: rows have %u dims", p->parts, limits->dims);
    else if (table->has_parts && has(p->select, "queue"))
        snprintf(out, capacity, "select queue: codec %s is not scanned for it", p->codec);
    else if (p->entries == BSW_ENTRIES_RADIUS && p->table != BSW_TABLE_CHOICE_AUTO)
        snprintf(out, capacity, "table %s: with a radius tables are of float32", tables[p->table]);
    else if (has(p->select, "histogram") && !table->has_distances)
        snprintf(out, capacity, "select histogram: codec %s has no integer distances", p->codec);
    return *out != '\0';
}

// The same of lists.
static int find_lists_reason(const struct bsw_sweep_limits *limits, const struct bsw_sweep_point *p,
                             char *out, size_t capacity)
{
    if (p->lists > limits->num_rows)
        snprintf(out, capacity, "lists %u: the corpus has %llu rows", p->lists,
                 (unsigned long long)limits->num_rows);
    else if (p->lists > 0 && !has(p->select, "threshold"))
        snprintf(out, capacity, "select %s: an index with lists knows threshold alone", p->select);
    else if (p->recall > 0 && p->recall < BSW_LEAST_RECALL)
        snprintf(out, capacity, "recall %g: a table has %g or more", p->recall, BSW_LEAST_RECALL);
    else if (p->recall > 0 && (p->table != BSW_TABLE_CHOICE_AUTO || p->entries != BSW_ENTRIES_ALL))
        snprintf(out, capacity, "recall: what a table says holds for the usual tables and entries");
    else if (p->probe > p->lists)
        snprintf(out, capacity, "probe %u: there are %u lists", p->probe, p->lists);
    else if (p->probe_ratio > 0 && !bsw_has_distances(limits->metric))
        snprintf(out, capacity, "probe-ratio: --metric %s has no distances",
                 bsw_metric_name(limits->metric));
    return *out != '\0';
}

// Why a point cannot be; 0: it can.
static int find_reason(const struct bsw_sweep_limits *limits, const struct bsw_sweep_point *p,
                       char *out, size_t capacity)
{
    unsigned long long k = p->k;
    *out = '\0';
    if (find_codec_reason(limits, p, out, capacity)) return 1;
    if (find_lists_reason(limits, p, out, capacity)) return 1;
    if (k > limits->num_rows)
        snprintf(out, capacity, "k %llu: the corpus has %llu rows", k,
                 (unsigned long long)limits->num_rows);
    else if (k > limits->truth_k)
        snprintf(out, capacity, "k %llu: the ground truth has %llu neighbours a query", k,
                 (unsigned long long)limits->truth_k);
    else if (p->candidates > BSW_SEARCH_MAX_K)
        snprintf(out, capacity, "k %llu, oversample %g: more than %d candidates", k, p->oversample,
                 BSW_SEARCH_MAX_K);
    return *out != '\0';
}

// ---- points ----

static void add_skip(struct bsw_sweep_points *out, const char *reason)
{
    size_t place = 0;
    while (place < out->num_skips && strcmp(out->skips[place].reason, reason) != 0) place++;
    if (place == out->num_skips) {
        snprintf(out->skips[place].reason, sizeof out->skips[place].reason, "%s", reason);
        out->num_skips++;
    }
    out->skips[place].num_points++;
}

void bsw_sweep_points_skip(struct bsw_sweep_points *points, size_t place, const char *reason)
{
    struct bsw_sweep_point *point = &points->points[place];
    memmove(point, point + 1, (--points->num_points - place) * sizeof *point);
    add_skip(points, reason);
}

static int is_same(const struct bsw_sweep_point *a, const struct bsw_sweep_point *b)
{
    return a->codec == b->codec && a->select == b->select && a->bits == b->bits &&
           a->query_bits == b->query_bits && a->k == b->k && a->oversample == b->oversample &&
           a->extra_distance == b->extra_distance && a->lists == b->lists && a->probe == b->probe &&
           a->probe_ratio == b->probe_ratio && a->table == b->table && a->entries == b->entries &&
           a->recall == b->recall && a->radius_scale == b->radius_scale && a->mode == b->mode &&
           a->parts == b->parts;
}

static void add_point(const struct bsw_sweep_limits *limits, const struct bsw_sweep_point *point,
                      struct bsw_sweep_points *out)
{
    char reason[128];
    if (find_reason(limits, point, reason, sizeof reason)) {
        add_skip(out, reason);
        return;
    }
    for (size_t i = 0; i < out->num_points; i++) {
        if (is_same(&out->points[i], point)) return;
    }
    out->points[out->num_points++] = *point;
}

static size_t count_points(const struct bsw_sweep_grid *grid)
{
    size_t total = 1;
    for (int a = 0; a < BSW_SWEEP_NUM_AXES; a++) {
        if (__builtin_mul_overflow(total, grid->axes[a].count, &total)) return SIZE_MAX / 2;
    }
    return total;
}

// At least as many as the grid's codecs span.
static size_t most_points(const struct bsw_sweep_grid *grid)
{
    struct bsw_sweep_grid wide = *grid;
    for (int c = 0; c < BSW_SWEEP_MAX_CODECS; c++) {
        if (grid->own_bits[c].count > wide.axes[BSW_SWEEP_BITS].count)
            wide.axes[BSW_SWEEP_BITS] = grid->own_bits[c];
    }
    return count_points(&wide);
}

// What an axis holds that the point does not know counts once. 0: it was counted before.
static int take_rest(const double value[BSW_SWEEP_NUM_AXES], const size_t place[BSW_SWEEP_NUM_AXES],
                     struct bsw_sweep_point *point)
{
    if (has(point->select, "histogram"))
        point->extra_distance = (uint64_t)value[BSW_SWEEP_EXTRA_DISTANCE];
    else if (place[BSW_SWEEP_EXTRA_DISTANCE] > 0)
        return 0;
    if (point->entries == BSW_ENTRIES_RADIUS) {
        point->radius_scale = value[BSW_SWEEP_RADIUS_SCALE];
        point->mode = modes[(size_t)value[BSW_SWEEP_MODE]];
    } else if (place[BSW_SWEEP_RADIUS_SCALE] > 0 || place[BSW_SWEEP_MODE] > 0)
        return 0;
    if (point->lists > 0) {
        point->recall = value[BSW_SWEEP_RECALL];
        if (point->recall > 0)
            return place[BSW_SWEEP_PROBE] == 0 && place[BSW_SWEEP_PROBE_RATIO] == 0;
        point->probe = (uint32_t)value[BSW_SWEEP_PROBE];
        point->probe_ratio = value[BSW_SWEEP_PROBE_RATIO];
    } else if (place[BSW_SWEEP_PROBE] > 0 || place[BSW_SWEEP_PROBE_RATIO] > 0 ||
               place[BSW_SWEEP_RECALL] > 0)
        return 0;
    return 1;
}

// The points of a grid that has one codec.
static void expand(const struct bsw_sweep_grid *grid, const struct bsw_sweep_limits *limits,
                   struct bsw_sweep_points *out)
{
    size_t total = count_points(grid);
    for (size_t i = 0; i < total; i++) {
        double value[BSW_SWEEP_NUM_AXES];
        size_t place[BSW_SWEEP_NUM_AXES], rest = i;
        for (int a = BSW_SWEEP_NUM_AXES - 1; a >= 0; a--) {
            place[a] = rest % grid->axes[a].count;
            value[a] = grid->axes[a].values[place[a]];
            rest /= grid->axes[a].count;
        }
        struct bsw_sweep_point point = {.codec = codecs[(size_t)value[BSW_SWEEP_CODEC]],
                                        .bits = value[BSW_SWEEP_BITS],
                                        .parts = (uint32_t)value[BSW_SWEEP_PARTS],
                                        .query_bits = (uint32_t)value[BSW_SWEEP_QUERY_BITS],
                                        .k = (uint64_t)value[BSW_SWEEP_K],
                                        .oversample = value[BSW_SWEEP_OVERSAMPLE],
                                        .table = (enum bsw_table_choice)value[BSW_SWEEP_TABLE],
                                        .entries =
                                            (enum bsw_entries_choice)value[BSW_SWEEP_ENTRIES],
                                        .mode = "",
                                        .select = selects[(size_t)value[BSW_SWEEP_SELECT]]};
        point.candidates = bsw_search_keep(point.k, point.oversample, limits->num_rows);
        point.lists = value[BSW_SWEEP_LISTS] == AUTO ? bsw_encode_num_lists(limits->num_rows)
                                                     : (uint32_t)value[BSW_SWEEP_LISTS];
        if (take_rest(value, place, &point)) add_point(limits, &point, out);
    }
}

// Some axes are set by a codec, and would then have more points than were counted.
static enum bsw_status check_axes(const struct bsw_sweep_grid *grid, struct bsw_error *err)
{
    for (int a = 0; a < BSW_SWEEP_NUM_AXES; a++) {
        if (grid->axes[a].count == 0)
            return bsw_fail(err, BSW_ERROR_USAGE, "%s: no values", rules[a].name);
    }
    return BSW_OK;
}

// Whether some value of the axis, in some grid, is not 0.
static int is_asked(const struct bsw_sweep_grid *grids, size_t num_grids,
                    enum bsw_sweep_axis_kind axis)
{
    for (size_t g = 0; g < num_grids; g++) {
        for (size_t i = 0; i < grids[g].axes[axis].count; i++) {
            if (grids[g].axes[axis].values[i] != 0) return 1;
        }
    }
    return 0;
}

// As search refuses it.
static enum bsw_status check_probe(const struct bsw_sweep_grid *grids, size_t num_grids,
                                   struct bsw_error *err)
{
    if (is_asked(grids, num_grids, BSW_SWEEP_LISTS)) return BSW_OK;
    for (int a = BSW_SWEEP_PROBE; a <= BSW_SWEEP_RECALL; a++) {
        if (is_asked(grids, num_grids, (enum bsw_sweep_axis_kind)a))
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "--%s: no index of this sweep has lists; --lists makes some",
                            rules[a].name);
    }
    return BSW_OK;
}

enum bsw_status bsw_sweep_grids_expand(const struct bsw_sweep_grid *grids, size_t num_grids,
                                       const struct bsw_sweep_limits *limits,
                                       struct bsw_sweep_points *out, struct bsw_error *err)
{
    size_t total = 0;
    *out = (struct bsw_sweep_points){0};
    BSW_TRY(check_probe(grids, num_grids, err));
    for (size_t g = 0; g < num_grids; g++) {
        BSW_TRY(check_axes(&grids[g], err));
        size_t more = most_points(&grids[g]);
        total = more > BSW_SWEEP_MAX_POINTS ? more : total + more;
        if (total > BSW_SWEEP_MAX_POINTS)
            return bsw_fail(err, BSW_ERROR_USAGE, "more than %d points", BSW_SWEEP_MAX_POINTS);
    }
    BSW_TRY(bsw_allocate_zero(&out->points, total, sizeof *out->points, "points", err));
    BSW_TRY(bsw_allocate_zero(&out->skips, total, sizeof *out->skips, "points", err));
    for (size_t g = 0; g < num_grids; g++) {
        const struct bsw_sweep_axis *codec = &grids[g].axes[BSW_SWEEP_CODEC];
        for (size_t c = 0; c < codec->count; c++) {
            struct bsw_sweep_grid one = narrow(&grids[g], (size_t)codec->values[c], limits);
            expand(&one, limits, out);
        }
    }
    return BSW_OK;
}

void bsw_sweep_points_deinit(struct bsw_sweep_points *points)
{
    bsw_free(&points->points);
    bsw_free(&points->skips);
    *points = (struct bsw_sweep_points){0};
}

// ---- plans --------------------------------------------------------------------------------------

static const char blanks[] = " \t\r";

// word: "bits=2,3". named: whether a word of the line has set an axis before.
static enum bsw_status take_word(char *word, struct bsw_sweep_grid *grid,
                                 int named[BSW_SWEEP_NUM_AXES], struct bsw_error *err)
{
    char *equals = strchr(word, '=');
    if (!equals)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "'%s' is not of the form NAME=VALUE", word);
    *equals = '\0';
    int axis = bsw_sweep_axis_of(word);
    if (axis < 0) return bsw_fail(err, BSW_ERROR_BAD_DATA, "there is no '%s'", word);
    if (named[axis]++) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s is there twice", word);
    return bsw_sweep_grid_set(grid, (enum bsw_sweep_axis_kind)axis, "", equals + 1, err);
}

static enum bsw_status take_line(char *line, struct bsw_sweep_grid *grid, struct bsw_error *err)
{
    int named[BSW_SWEEP_NUM_AXES] = {0};
    char *rest = NULL;
    for (char *word = strtok_r(line, blanks, &rest); word; word = strtok_r(NULL, blanks, &rest))
        BSW_TRY(take_word(word, grid, named, err));
    return BSW_OK;
}

// Every grid has a point or more.
static size_t most_grids(const char *text)
{
    size_t lines = 1;
    for (; *text; text++) lines += *text == '\n';
    return lines < BSW_SWEEP_MAX_POINTS ? lines : BSW_SWEEP_MAX_POINTS;
}

enum bsw_status bsw_sweep_plan_parse(const char *name, char *text,
                                     const struct bsw_sweep_grid *defaults,
                                     struct bsw_sweep_grid **grids, size_t *num_grids,
                                     struct bsw_error *err)
{
    size_t most = most_grids(text);
    *num_grids = 0;
    BSW_TRY(bsw_allocate_zero(grids, most, sizeof **grids, "plan", err));
    for (size_t number = 1; *text; number++) {
        char *line = text;
        text += strcspn(text, "\n");
        if (*text) *text++ = '\0';
        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, blanks)] == '\0') continue;
        if (*num_grids == most)
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: line %zu: more than %zu points", name,
                            number, most);
        struct bsw_sweep_grid *grid = &(*grids)[(*num_grids)++];
        *grid = *defaults;
        if (take_line(line, grid, err) != BSW_OK)
            return bsw_prefix(err, BSW_ERROR_BAD_DATA, "%s: line %zu: ", name, number);
    }
    if (*num_grids == 0) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no line has a point", name);
    return BSW_OK;
}

enum bsw_status bsw_sweep_plan_read(const char *path, const struct bsw_sweep_grid *defaults,
                                    struct bsw_sweep_grid **grids, size_t *num_grids,
                                    struct bsw_error *err)
{
    struct bsw_buffer text = {0};
    *grids = NULL;
    enum bsw_status status = bsw_file_read_all(path, BSW_SWEEP_PLAN_MAX_BYTES, &text, err);
    if (status == BSW_OK) status = bsw_buffer_append(&text, "", 1, err);
    if (status == BSW_OK && strlen((const char *)text.data) + 1 != text.bytes)
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: a plan is text, this has zeros", path);
    if (status == BSW_OK)
        status = bsw_sweep_plan_parse(path, (char *)text.data, defaults, grids, num_grids, err);
    bsw_buffer_deinit(&text);
    return status;
}
