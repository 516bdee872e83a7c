// The plots of a sweep, one panel for each k, all in one script that stands alone.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/child_process.h"
#include "coordinator/sweep_report.h"

const char *const bsw_sweep_plots[3] = {"sweep-pareto", "sweep-bytes", "sweep-ceiling"};

enum { PARETO, BYTES, CEILING, NUM_PLOTS };
enum { PANEL_WIDTH = 880, PANEL_HEIGHT = 460, NUM_COLOURS = 8 };

// Recall is drawn as -log10(1.001 - recall), which keeps 0.99 and 0.999 apart. No axis goes further
// beyond 0 and 1 than that marks there are whole.
#define STRETCH      1.001
#define LEAST_RECALL (-0.03)
#define MOST_RECALL  1.0003

struct dot {
    const char *algorithm, *select;
    double bits, oversample, recall, ceiling, qps, bytes;
    uint64_t k, query_bits;
    double x, y;       // where it is in the plot at work
    double at_x, at_y; // the same, 0 to 1 over the panel
    int is_front, is_in, is_marked;
    size_t series;
};

struct dots {
    struct dot *dots;
    size_t count;
    // Of the panel at work: the ends of the axis of recall, and of the other one.
    double low_recall, high_recall, low, high;
};

static double number_of(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

static enum bsw_status collect(json_t *rows, struct dots *out, struct bsw_error *err)
{
    const char *name;
    json_t *row;
    BSW_TRY(bsw_allocate_zero(&out->dots, json_object_size(rows) + 1, sizeof *out->dots, "points",
                              err));
    json_object_foreach(rows, name, row)
    {
        struct dot *dot = &out->dots[out->count++];
        *dot = (struct dot){.algorithm = json_string_value(json_object_get(row, "algorithm")),
                            .select = json_string_value(json_object_get(row, "select")),
                            .bits = number_of(row, "true_bits"),
                            .oversample = number_of(row, "oversample"),
                            .recall = number_of(row, "recall"),
                            .ceiling = number_of(row, "ceiling"),
                            .qps = number_of(row, "qps"),
                            .bytes = number_of(row, "bytes_per_vector"),
                            .k = (uint64_t)number_of(row, "count"),
                            .query_bits = (uint64_t)number_of(row, "query_bits"),
                            .is_front = number_of(row, "pareto") > 0};
        if (!dot->algorithm || !dot->select)
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "sweep.journal: %s is no point", name);
    }
    return BSW_OK;
}

// ---- series and marks ----

static int is_same_series(int plot, const struct dot *a, const struct dot *b)
{
    if (strcmp(a->algorithm, b->algorithm) != 0) return 0;
    if (plot != PARETO) return a->oversample == b->oversample;
    return a->bits == b->bits && strcmp(a->select, b->select) == 0;
}

// Recall and ceilings by size are drawn for a codec's finest queries of this k, and of points that
// differ in their selection alone for the first.
static int is_wanted(const struct dots *all, int plot, const struct dot *dot, uint64_t k)
{
    if (dot->k != k) return 0;
    if (plot == PARETO) return 1;
    for (size_t i = 0; i < all->count; i++) {
        const struct dot *other = &all->dots[i];
        if (other->k != k || strcmp(other->algorithm, dot->algorithm) != 0) continue;
        if (other->query_bits > dot->query_bits) return 0;
        if (other < dot && other->query_bits == dot->query_bits && other->bits == dot->bits &&
            other->oversample == dot->oversample)
            return 0;
    }
    return 1;
}

// The dots of a panel, their places and series; returns the number of series.
static size_t place_dots(struct dots *all, int plot, uint64_t k)
{
    size_t num_series = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct dot *dot = &all->dots[i];
        dot->is_in = is_wanted(all, plot, dot, k);
        dot->is_marked = 0;
        if (!dot->is_in) continue;
        dot->x = plot == PARETO ? dot->recall : plot == BYTES ? dot->bytes : dot->bits;
        dot->y = plot == PARETO ? dot->qps : plot == BYTES ? dot->recall : dot->ceiling;
        dot->series = num_series;
        for (size_t j = 0; j < i; j++) {
            if (all->dots[j].is_in && is_same_series(plot, &all->dots[j], dot))
                dot->series = all->dots[j].series;
        }
        if (dot->series == num_series) num_series++;
    }
    return num_series;
}

static double stretched(double recall)
{
    return -log10(STRETCH - recall);
}

static double unstretched(double at)
{
    return STRETCH - pow(10, -at);
}

// A little more than the dots take: a twentieth of their span, `least` where there is hardly any.
static void widen(double *low, double *high, double least)
{
    double span = *high - *low, more = span > least / 50 ? span / 20 : least;
    *low -= more;
    *high += more;
}

// What the axes show, of dots from low to high; recall as stretched, rates as logarithms.
static void choose_axes(struct dots *all, int plot, double low_recall, double high_recall,
                        double low, double high)
{
    widen(&low_recall, &high_recall, 0.05);
    all->low_recall = unstretched(fmax(low_recall, stretched(LEAST_RECALL)));
    all->high_recall = unstretched(fmin(high_recall, stretched(MOST_RECALL)));
    widen(&low, &high, plot == PARETO ? 0.02 : plot == BYTES ? 0.05 * high : 0.3);
    all->low = plot == PARETO ? pow(10, low) : low;
    all->high = plot == PARETO ? pow(10, high) : high;
}

static void scale_dots(struct dots *all, int plot)
{
    double low_x = INFINITY, low_y = INFINITY, high_x = -INFINITY, high_y = -INFINITY;
    for (size_t i = 0; i < all->count; i++) {
        struct dot *dot = &all->dots[i];
        if (!dot->is_in) continue;
        dot->at_x = plot == PARETO ? stretched(dot->x) : dot->x;
        dot->at_y = plot == PARETO ? log10(dot->y) : stretched(dot->y);
        low_x = fmin(low_x, dot->at_x), high_x = fmax(high_x, dot->at_x);
        low_y = fmin(low_y, dot->at_y), high_y = fmax(high_y, dot->at_y);
    }
    if (plot == PARETO)
        choose_axes(all, plot, low_x, high_x, low_y, high_y);
    else
        choose_axes(all, plot, low_y, high_y, low_x, high_x);
    for (size_t i = 0; i < all->count; i++) {
        struct dot *dot = &all->dots[i];
        dot->at_x = high_x > low_x ? (dot->at_x - low_x) / (high_x - low_x) : 0;
        dot->at_y = high_y > low_y ? (dot->at_y - low_y) / (high_y - low_y) : 0;
    }
}

// Of dots whose marks would overlap one is marked, of the front if there is one.
static void mark_dots(struct dots *all)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < all->count; i++) {
            struct dot *dot = &all->dots[i];
            if (!dot->is_in || dot->is_marked || dot->is_front == round) continue;
            dot->is_marked = 1;
            for (size_t j = 0; j < all->count && dot->is_marked; j++) {
                const struct dot *other = &all->dots[j];
                if (j == i || !other->is_in || !other->is_marked) continue;
                dot->is_marked =
                    fabs(other->at_x - dot->at_x) > 0.024 || fabs(other->at_y - dot->at_y) > 0.032;
            }
        }
    }
}

// ---- colours and shapes ----

static size_t place_of(const double *values, size_t count, double value)
{
    size_t place = 0;
    while (place < count && values[place] != value) place++;
    return place;
}

// What the colour tells: bits, or oversampling.
static double coloured(int plot, const struct dot *dot)
{
    return plot == PARETO ? dot->bits : dot->oversample;
}

// Its values in rising order; returns how many.
static size_t list_coloured(const struct dots *all, int plot, double out[NUM_COLOURS])
{
    size_t count = 0;
    for (size_t i = 0; i < all->count && count < NUM_COLOURS; i++) {
        double value = coloured(plot, &all->dots[i]);
        if (place_of(out, count, value) < count) continue;
        size_t place = count++;
        for (; place > 0 && out[place - 1] > value; place--) out[place] = out[place - 1];
        out[place] = value;
    }
    return count;
}

// The last is for what has no colour left.
static const char *const colours[NUM_COLOURS + 1] = {"#4477aa", "#ee6677", "#228833",
                                                     "#b8860b", "#33aacc", "#aa3377",
                                                     "#e07b00", "#000000", "#999999"};

static const char *colour_of(const struct dots *all, int plot, const struct dot *dot)
{
    double values[NUM_COLOURS];
    size_t count = list_coloured(all, plot, values),
           place = place_of(values, count, coloured(plot, dot));
    return colours[place < count ? place : NUM_COLOURS];
}

// gnuplot's point types: open and filled square, circle, triangle, diamond, and an open pentagon.
static int shape_of(const struct dot *dot)
{
    int open = strcmp(dot->algorithm, "xfbq") == 0  ? 4
               : strcmp(dot->algorithm, "saq") == 0 ? 6
               : strcmp(dot->algorithm, "rbe") == 0 ? 8
                                                    : 12;
    if (strcmp(dot->select, "histogram") == 0) return 14;
    return open + (strcmp(dot->select, "queue") == 0);
}

static const char *dashes_of(const struct dot *dot)
{
    return strcmp(dot->algorithm, "saq") == 0   ? "1"
           : strcmp(dot->algorithm, "rbe") == 0 ? "4"
                                                : "3";
}

// ---- the script ----

// A data block for each series, and one for the front: x, y, y where there is a mark.
static enum bsw_status print_data(struct bsw_buffer *out, const struct dots *all, int plot,
                                  size_t panel, size_t num_series, struct bsw_error *err)
{
    for (size_t series = 0; series <= num_series; series++) {
        int is_front = series == num_series;
        if (is_front && plot != PARETO) break;
        BSW_TRY(bsw_sweep_print(out, err, "$data_%d_%zu_%zu << END\n", plot, panel, series));
        for (size_t i = 0; i < all->count; i++) {
            const struct dot *dot = &all->dots[i];
            if (!dot->is_in || (is_front ? !dot->is_front : dot->series != series)) continue;
            BSW_TRY(bsw_sweep_print(out, err, "%.9g %.9g %.9g\n", dot->x, dot->y,
                                    dot->is_marked ? dot->y : NAN));
        }
        BSW_TRY(bsw_sweep_print(out, err, "END\n"));
    }
    return BSW_OK;
}

// The legend: what shapes and what colours tell.
static enum bsw_status print_key(struct bsw_buffer *out, const struct dots *all, int plot,
                                 struct bsw_error *err)
{
    double values[NUM_COLOURS];
    size_t count = list_coloured(all, plot, values);
    unsigned seen = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct dot *dot = &all->dots[i];
        unsigned shape = (unsigned)shape_of(dot);
        if (!dot->is_in || (seen >> shape & 1)) continue;
        seen |= 1u << shape;
        BSW_TRY(bsw_sweep_print(out, err,
                                ", \\\n    keyentry with %s pt %u lw 1.5 lc rgb "
                                "'#444444' dt %s title '%s%s%s'",
                                plot == PARETO ? "points" : "linespoints", shape, dashes_of(dot),
                                dot->algorithm, plot == PARETO ? ", " : "",
                                plot == PARETO ? dot->select : ""));
    }
    for (size_t i = 0; i < count; i++)
        BSW_TRY(bsw_sweep_print(out, err,
                                ", \\\n    keyentry with lines lw 6 lc rgb '%s' title "
                                "'%s%.5g%s'",
                                colours[i], plot == PARETO ? "" : "L = ", values[i],
                                plot != PARETO   ? " k"
                                : values[i] == 1 ? " bit/dim"
                                                 : " bits/dim"));
    for (size_t i = 0; i < all->count; i++) {
        if (!all->dots[i].is_in || place_of(values, count, coloured(plot, &all->dots[i])) < count)
            continue;
        return bsw_sweep_print(out, err,
                               ", \\\n    keyentry with lines lw 6 lc rgb '%s' title 'other %s'",
                               colours[NUM_COLOURS], plot == PARETO ? "bits/dim" : "L");
    }
    return BSW_OK;
}

// Those of a list that are on the axis, each times a power of ten from first to last.
static enum bsw_status print_listed_tics(struct bsw_buffer *out, const char *axis, double low,
                                         double high, const double *list, size_t count,
                                         double first, double last, struct bsw_error *err)
{
    const char *before = "";
    BSW_TRY(bsw_sweep_print(out, err, "  set %stics (", axis));
    for (double power = first; power > 0 && power <= last; power *= 10) {
        for (size_t i = 0; i < count; i++) {
            double tic = power * list[i];
            if (tic < low || tic > high) continue;
            BSW_TRY(bsw_sweep_print(out, err, "%s'%.10g' %.10g", before, tic, tic));
            before = ", ";
        }
    }
    return bsw_sweep_print(out, err, ")\n");
}

// Three to eight multiples of 1, 2 or 5 times a power of ten.
static enum bsw_status print_even_tics(struct bsw_buffer *out, const char *axis, double low,
                                       double high, struct bsw_error *err)
{
    double most = (high - low) / 8, step = pow(10, floor(log10(most)));
    const char *before = "";
    if (step < most) step *= 2;
    if (step < most) step *= 2.5;
    if (step < most) step *= 2;
    BSW_TRY(bsw_sweep_print(out, err, "  set %stics (", axis));
    for (double i = ceil(low / step); i * step <= high; i++) {
        BSW_TRY(bsw_sweep_print(out, err, "%s'%.10g' %.10g", before, i * step, i * step));
        before = ", ";
    }
    return bsw_sweep_print(out, err, ")\n");
}

// Of the logarithmic axis: the fewer powers of ten, the more between them; at least three.
static enum bsw_status print_rate_tics(struct bsw_buffer *out, double low, double high,
                                       struct bsw_error *err)
{
    static const double few[] = {1, 2, 5}, some[] = {1, 1.5, 2, 3, 5, 7};
    if (high <= 4 * low) return print_even_tics(out, "y", low, high, err);
    const double *steps = high > 30 * low ? few : some;
    size_t count = steps == few ? sizeof few / sizeof *few : sizeof some / sizeof *some;
    return print_listed_tics(out, "y", low, high, steps, count, pow(10, floor(log10(low))), high,
                             err);
}

// Of the stretched axis: even ones where it is hardly stretched.
static enum bsw_status print_recall_tics(struct bsw_buffer *out, const char *axis, double low,
                                         double high, struct bsw_error *err)
{
    static const double list[] = {0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1};
    if (STRETCH - low <= 10 * (STRETCH - high)) return print_even_tics(out, axis, low, high, err);
    return print_listed_tics(out, axis, low, high, list, sizeof list / sizeof *list, 1, 1, err);
}

static enum bsw_status print_axes(struct bsw_buffer *out, const struct dots *all, int plot,
                                  uint64_t k, struct bsw_error *err)
{
    static const char *const titles[NUM_PLOTS] = {
        "Queries a second against recall, k = ", "Recall against bytes a vector, k = ",
        "Ceiling of the codes by bits, k = "};
    unsigned long long count = k;
    const char *recall = plot == PARETO ? "x" : "y", *other = plot == PARETO ? "y" : "x";
    BSW_TRY(bsw_sweep_print(out, err,
                            "  set title '%s%llu'\n  set %srange [%.9g:%.9g]\n  set %srange "
                            "[%.9g:%.9g]\n",
                            titles[plot], count, recall, all->low_recall, all->high_recall, other,
                            all->low, all->high));
    BSW_TRY(print_recall_tics(out, recall, all->low_recall, all->high_recall, err));
    if (plot == PARETO) BSW_TRY(print_rate_tics(out, all->low, all->high, err));
    if (plot == CEILING)
        return bsw_sweep_print(out, err,
                               "  set xlabel 'bits a dimension'\n  set ylabel '%llu-recall@L by "
                               "code (axis stretched towards 1)'\n",
                               count);
    return bsw_sweep_print(out, err,
                           "  set %slabel '%llu-recall@%llu (axis stretched towards 1)'\n  set "
                           "%slabel '%s'\n",
                           recall, count, count, other,
                           plot == PARETO ? "queries a second (logarithmic)" : "bytes a vector");
}

static enum bsw_status print_panel(struct bsw_buffer *out, const struct dots *all, int plot,
                                   size_t panel, size_t num_series, uint64_t k,
                                   struct bsw_error *err)
{
    BSW_TRY(print_axes(out, all, plot, k, err));
    BSW_TRY(bsw_sweep_print(out, err, "  plot "));
    if (plot == PARETO)
        BSW_TRY(bsw_sweep_print(out, err,
                                "$data_%d_%zu_%zu using 1:2 smooth unique with lines lw 2 lc rgb "
                                "'black' dt 2 title 'Pareto front'",
                                plot, panel, num_series));
    for (size_t series = 0; series < num_series; series++) {
        size_t i = 0;
        while (!all->dots[i].is_in || all->dots[i].series != series) i++;
        const struct dot *dot = &all->dots[i];
        const char *colour = colour_of(all, plot, dot);
        if (plot == PARETO || series > 0) BSW_TRY(bsw_sweep_print(out, err, ", \\\n    "));
        if (plot != PARETO)
            BSW_TRY(bsw_sweep_print(out, err,
                                    "$data_%d_%zu_%zu using 1:2 smooth unique with lines lw 1.5 lc "
                                    "rgb '%s' dt %s notitle, ",
                                    plot, panel, series, colour, dashes_of(dot)));
        BSW_TRY(bsw_sweep_print(out, err,
                                "$data_%d_%zu_%zu using 1:3 with points pt %d ps 0.9 lw 1.5 lc rgb "
                                "'%s' notitle",
                                plot, panel, series, shape_of(dot), colour));
    }
    BSW_TRY(print_key(out, all, plot, err));
    return bsw_sweep_print(out, err, "\n");
}

static const char *const setup[NUM_PLOTS] = {
    "  set logscale y\n  set nonlinear x via -log10(1.001 - x) inverse 1.001 - 10 ** (-x)\n",
    "  set nonlinear y via -log10(1.001 - y) inverse 1.001 - 10 ** (-y)\n",
    "  set nonlinear y via -log10(1.001 - y) inverse 1.001 - 10 ** (-y)\n",
};

// k in the order in which they come; returns how many.
static size_t list_k(const struct dots *all, double out[BSW_SWEEP_MAX_VALUES])
{
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        double k = (double)all->dots[i].k;
        if (place_of(out, count, k) == count && count < BSW_SWEEP_MAX_VALUES) out[count++] = k;
    }
    return count;
}

static enum bsw_status print_plot(struct bsw_buffer *out, struct dots *all, int plot,
                                  struct bsw_error *err)
{
    static const char *const ids[] = {"pareto", "bytes", "ceiling"}; // of what is in an SVG
    double k[BSW_SWEEP_MAX_VALUES];
    struct bsw_buffer panels = {0};
    size_t num_panels = list_k(all, k);
    enum bsw_status status = BSW_OK;
    for (size_t p = 0; p < num_panels && status == BSW_OK; p++) {
        size_t num_series = place_dots(all, plot, (uint64_t)k[p]);
        scale_dots(all, plot);
        mark_dots(all);
        if (num_series == 0) continue;
        status = print_data(out, all, plot, p, num_series, err);
        if (status == BSW_OK)
            status = print_panel(&panels, all, plot, p, num_series, (uint64_t)k[p], err);
    }
    const char *name = bsw_sweep_plots[plot];
    int height = (int)num_panels * PANEL_HEIGHT;
    if (status == BSW_OK)
        status = bsw_sweep_print(
            out, err,
            "do for [terminal in 'svg png'] {\n  reset\n"
            "  if (terminal eq 'svg') {\n"
            "    set terminal svg size %d,%d dynamic noenhanced background rgb 'white' name '%s'\n"
            "  } else {\n    set terminal pngcairo size %d,%d noenhanced pointscale 1.5\n  }\n"
            "  set output '%s.'.terminal\n  set grid\n  set key outside right top Left reverse\n%s"
            "  set multiplot layout %zu,1\n",
            PANEL_WIDTH, height, ids[plot], PANEL_WIDTH, height, name, setup[plot], num_panels);
    if (status == BSW_OK)
        status = bsw_sweep_print(out, err, "%.*s", (int)panels.bytes,
                                 panels.bytes ? (const char *)panels.data : "");
    if (status == BSW_OK)
        status = bsw_sweep_print(out, err, "  unset multiplot\n  unset output\n}\n");
    bsw_buffer_deinit(&panels);
    return status;
}

// Those of fewer points must not stand beside a report that has none.
static enum bsw_status remove_plots(const char *folder, struct bsw_error *err)
{
    char name[64], path[BSW_PATH_BYTES];
    for (int i = 0; i < 2 * NUM_PLOTS; i++) {
        snprintf(name, sizeof name, "%s.%s", bsw_sweep_plots[i / 2], i % 2 ? "png" : "svg");
        BSW_TRY(bsw_path_join(path, folder, name, err));
        BSW_TRY(bsw_file_remove(path, err));
    }
    return BSW_OK;
}

static enum bsw_status run_gnuplot(const char *folder, int *is_drawn, struct bsw_error *err)
{
    const char *const arguments[] = {"gnuplot", "--default-settings", "sweep.gnuplot", NULL};
    char out[BSW_PATH_BYTES], said[BSW_PATH_BYTES];
    int exit_code;
    BSW_TRY(bsw_path_join(out, folder, "step.out", err));
    BSW_TRY(bsw_path_join(said, folder, "step.err", err));
    const struct bsw_child child = {
        .arguments = arguments, .folder = folder, .out = out, .err = said};
    BSW_TRY(bsw_child_run(&child, &exit_code, err));
    *is_drawn = exit_code == 0;
    if (exit_code != 0 && exit_code != 127)
        return bsw_fail(err, BSW_ERROR_IO, "gnuplot failed: %s says why", said);
    BSW_TRY(bsw_file_remove(out, err));
    return bsw_file_remove(said, err);
}

enum bsw_status bsw_sweep_plots_write(const char *folder, json_t *rows, int *is_drawn,
                                      struct bsw_error *err)
{
    struct dots all = {0};
    struct bsw_buffer script = {0};
    char path[BSW_PATH_BYTES];
    *is_drawn = 0;
    BSW_TRY(bsw_path_join(path, folder, "sweep.gnuplot", err));
    enum bsw_status status = collect(rows, &all, err);
    for (int plot = 0; plot < NUM_PLOTS && status == BSW_OK; plot++)
        status = print_plot(&script, &all, plot, err);
    if (status == BSW_OK) status = bsw_file_write_atomic(path, script.data, script.bytes, err);
    if (status == BSW_OK) status = remove_plots(folder, err);
    if (status == BSW_OK) status = run_gnuplot(folder, is_drawn, err);
    bsw_buffer_deinit(&script);
    bsw_free(&all.dots);
    return status;
}
