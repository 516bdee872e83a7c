#include "coordinator/sweep_grid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/memory.h"
#include "common/option_table.h"
#include "coordinator/search_sizes.h"

const char *const bsw_sweep_codecs[2] = {"xfbq", "saq"};
const char *const bsw_sweep_selects[2] = {"threshold", "queue"};

// ---- axes ----

enum { WORD_BYTES = 32 };

// The next of a comma-separated list; 0 when there is no more.
static int take_word(const char **text, char word[WORD_BYTES])
{
    size_t length;
    if (!*text) return 0;
    length = strcspn(*text, ",");
    snprintf(word, WORD_BYTES, "%.*s", (int)(length < WORD_BYTES ? length : WORD_BYTES - 1), *text);
    *text = (*text)[length] == ',' ? *text + length + 1 : NULL;
    return 1;
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

enum bsw_status bsw_sweep_axis_numbers(const char *what, const char *text, double min, double max,
                                       int is_whole, struct bsw_sweep_axis *out,
                                       struct bsw_error *err)
{
    char word[WORD_BYTES];
    out->count = 0;
    while (take_word(&text, word)) {
        double value;
        uint64_t count;
        if (is_whole) {
            BSW_TRY(bsw_count_parse(what, word, &count, err));
            value = (double)count;
        } else {
            BSW_TRY(bsw_number_parse(what, word, &value, err));
        }
        if (!(value >= min && value <= max))
            return bsw_fail(err, BSW_ERROR_USAGE, "%s: %s is not in %g .. %g", what, word, min,
                            max);
        BSW_TRY(append(what, word, value, out, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_sweep_axis_words(const char *what, const char *text, const char *const *choices,
                                     size_t num_choices, struct bsw_sweep_axis *out,
                                     struct bsw_error *err)
{
    char word[WORD_BYTES];
    out->count = 0;
    while (take_word(&text, word)) {
        size_t place = 0;
        while (place < num_choices && strcmp(choices[place], word) != 0) place++;
        if (place == num_choices) {
            return bsw_fail(err, BSW_ERROR_USAGE, "%s: '%s' is none of %s, %s", what, word,
                            choices[0], choices[num_choices - 1]);
        }
        BSW_TRY(append(what, word, (double)place, out, err));
    }
    return BSW_OK;
}

// ---- points ----

// Why a point cannot be, or is another one; 0: it can.
static int find_reason(const struct bsw_sweep_limits *limits, const struct bsw_sweep_point *p,
                       char *out, size_t capacity)
{
    unsigned long long k = p->k;
    *out = '\0';
    if (strcmp(p->codec, "xfbq") == 0 && !limits->is_cosine)
        snprintf(out, capacity, "codec xfbq knows --metric cosine only");
    else if (strcmp(p->codec, "xfbq") == 0 && p->bits != floor(p->bits))
        snprintf(out, capacity, "codec xfbq with %g bits: it has whole bits", p->bits);
    else if (k > limits->num_rows)
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

static void add_point(const struct bsw_sweep_limits *limits, struct bsw_sweep_point *point,
                      struct bsw_sweep_points *out)
{
    char reason[128];
    point->candidates = bsw_search_keep(point->k, point->oversample, limits->num_rows);
    if (find_reason(limits, point, reason, sizeof reason))
        add_skip(out, reason);
    else
        out->points[out->num_points++] = *point;
}

enum bsw_status bsw_sweep_grid_expand(const struct bsw_sweep_grid *grid,
                                      const struct bsw_sweep_limits *limits,
                                      struct bsw_sweep_points *out, struct bsw_error *err)
{
    const struct bsw_sweep_axis *axes[] = {&grid->codecs, &grid->bits,        &grid->query_bits,
                                           &grid->k,      &grid->oversamples, &grid->selects};
    enum { NUM_AXES = sizeof axes / sizeof axes[0], MAX_POINTS = 100000 };
    size_t total = 1;
    *out = (struct bsw_sweep_points){0};
    for (int a = 0; a < NUM_AXES; a++) total *= axes[a]->count; // at most 2 * 2 * 32^4
    if (total > MAX_POINTS)
        return bsw_fail(err, BSW_ERROR_USAGE, "a grid of %zu points, %d at most", total,
                        (int)MAX_POINTS);
    BSW_TRY(bsw_allocate_zero(&out->points, total, sizeof *out->points, "points", err));
    BSW_TRY(bsw_allocate_zero(&out->skips, total, sizeof *out->skips, "points", err));
    for (size_t i = 0; i < total; i++) {
        double value[NUM_AXES];
        size_t rest = i;
        for (int a = NUM_AXES - 1; a >= 0; a--) {
            value[a] = axes[a]->values[rest % axes[a]->count];
            rest /= axes[a]->count;
        }
        struct bsw_sweep_point point = {.codec = bsw_sweep_codecs[(size_t)value[0]],
                                        .bits = value[1],
                                        .query_bits = (uint32_t)value[2],
                                        .k = (uint64_t)value[3],
                                        .oversample = value[4],
                                        .select = bsw_sweep_selects[(size_t)value[5]]};
        add_point(limits, &point, out);
    }
    return BSW_OK;
}

void bsw_sweep_points_deinit(struct bsw_sweep_points *points)
{
    bsw_free(&points->points);
    bsw_free(&points->skips);
    *points = (struct bsw_sweep_points){0};
}

int bsw_sweep_is_better(double recall_a, double rate_a, double recall_b, double rate_b)
{
    return recall_a >= recall_b && rate_a >= rate_b && (recall_a > recall_b || rate_a > rate_b);
}
