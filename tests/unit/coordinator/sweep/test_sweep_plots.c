// SPDX-License-Identifier: Apache-2.0
// What the plots show of points that no single grid has: gnuplot itself runs the script, and says.
#include "unit_test.h"

#include <stdio.h>

#include "common/base/file.h"
#include "coordinator/sweep/sweep_report.h"
#include "tests/unit/temporary_folder.h"

static void add_row(json_t *rows, int k, int query_bits, double bits, const char *select)
{
    char name[40];
    snprintf(name, sizeof name, "%zu", json_object_size(rows));
    json_object_set_new(rows, name,
                        json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "algorithm",
                                  "saq", "select", select, "count", k, "query_bits", query_bits,
                                  "true_bits", bits, "oversample", 1.0, "recall", 0.5 + bits / 100,
                                  "ceiling", 0.5 + bits / 100, "qps", 1000 - bits,
                                  "bytes_per_vector", 16 * bits));
}

static void need_gnuplot(void)
{
    if (system("gnuplot --version >/dev/null 2>&1") != 0) skip();
}

// Runs the script for one of the plots: what its last panel's axes show, its points, and then its
// SVG. text ends with a 0.
static void draw(json_t *rows, const char *plot, struct bsw_buffer *text)
{
    char line[1024], path[BSW_PATH_BYTES];
    struct bsw_buffer svg = {0};
    text->bytes = 0;
    assert_int_equal(bsw_sweep_write_csv(temporary_folder, rows, NULL), BSW_OK);
    assert_int_equal(bsw_path_join(path, temporary_folder, "sweep.gnuplot", NULL), BSW_OK);
    assert_int_equal(bsw_file_write_atomic(path, bsw_sweep_script, strlen(bsw_sweep_script), NULL),
                     BSW_OK);
    snprintf(line, sizeof line,
             "cd '%s' && gnuplot --default-settings -e \"plots = '%s'; load 'sweep.gnuplot'; set "
             "print '-'; print axes; print \\$points\" 2>said",
             temporary_folder, plot);
    FILE *said = popen(line, "r");
    assert_non_null(said);
    while (fgets(line, sizeof line, said))
        assert_int_equal(bsw_buffer_append(text, line, strlen(line), NULL), BSW_OK);
    assert_int_equal(pclose(said), 0);
    snprintf(line, sizeof line, "sweep-%s.svg", plot);
    assert_int_equal(bsw_path_join(path, temporary_folder, line, NULL), BSW_OK);
    assert_int_equal(bsw_file_read_all(path, 1 << 20, &svg, NULL), BSW_OK);
    assert_int_equal(bsw_buffer_append(text, svg.data, svg.bytes, NULL), BSW_OK);
    assert_int_equal(bsw_buffer_append(text, "", 1, NULL), BSW_OK);
    bsw_buffer_deinit(&svg);
}

// Lines of points of the panel: series, each behind the other, then the front.
static int num_points(const struct bsw_buffer *text, int series)
{
    const char *at = strstr((const char *)text->data, "\ny [");
    int lines = 0;
    assert_non_null(at);
    at = strchr(at + 1, '\n') + 1; // behind the axes
    while (*at == '\n') at++;
    for (; series >= 0; series--) {
        for (lines = 0; *at != '\n'; lines++) at = strchr(at, '\n') + 1;
        while (*at == '\n') at++;
    }
    return lines;
}

// The axis shows low to high of the dots and not much more, and has tics to read them by.
static void check_axis(const struct bsw_buffer *text, const char *axis, double low, double high,
                       double most_low, double most_high)
{
    char name[8], *at;
    size_t count = 0;
    snprintf(name, sizeof name, "%s [", axis);
    at = strstr((char *)text->data, name);
    assert_non_null(at);
    double first = strtod(at + 3, &at), last = strtod(at + 1, &at);
    if (!(most_low <= first && first < low && high < last && last <= most_high))
        fail_msg("%s: %g to %g for dots from %g to %g", axis, first, last, low, high);
    for (at = strchr(at, '('); *at != ')'; count++) {
        at = strchr(strchr(at, '\'') + 1, '\'') + 1; // behind the label
        double tic = strtod(at, &at);
        assert_true(first <= tic && tic <= last);
    }
    assert_in_range(count, 3, 24);
}

UNIT_TEST(axes_are_chosen_from_the_points)
{
    const struct {
        double low, high, most_low, most_high;   // recall
        double slow, fast, most_slow, most_fast; // queries a second
    } cases[] = {{0.95, 1, 0.93, 1.0003, 1000, 20000, 800, 25000},
                 {0.4, 0.6, 0.3, 0.65, 100, 130, 90, 140},
                 {0.9712, 0.9718, 0.971, 0.972, 5000, 5010, 4999, 5011},
                 {0.1, 0.9999, -0.0301, 1.0003, 1, 1e6, 0.4, 2.5e6},
                 {0.8, 0.8, 0.75, 0.83, 300, 300, 280, 320},
                 {1, 1, 0.9998, 1.0003, 300, 300, 280, 320},
                 {0, 0, -0.0301, 0.2, 300, 300, 280, 320}};
    need_gnuplot();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *rows = json_object();
        struct bsw_buffer text = {0};
        for (int d = 0; d < 2; d++) {
            add_row(rows, 10, 6, 2 + d, "threshold");
            json_t *row = json_object_get(rows, d ? "1" : "0");
            json_object_set_new(row, "recall", json_real(d ? cases[i].high : cases[i].low));
            json_object_set_new(row, "qps", json_real(d ? cases[i].slow : cases[i].fast));
            if (cases[i].low == cases[i].high) break; // one point
        }
        draw(rows, "pareto", &text);
        check_axis(&text, "x", cases[i].low, cases[i].high, cases[i].most_low, cases[i].most_high);
        check_axis(&text, "y", cases[i].slow, cases[i].fast, cases[i].most_slow,
                   cases[i].most_fast);
        draw(rows, "bytes", &text);
        assert_null(strstr((const char *)text.data, "x [0:"));
        bsw_buffer_deinit(&text);
        json_decref(rows);
    }
}

// No codec is missing because its first selection, or its finest queries, are of other points. The
// panel of the last k is looked at.
UNIT_TEST(finest_queries_and_first_selections_are_drawn)
{
    json_t *rows = json_object();
    struct bsw_buffer text = {0};
    need_gnuplot();
    add_row(rows, 100, 4, 2, "threshold");
    add_row(rows, 10, 4, 2, "queue");
    add_row(rows, 10, 6, 2, "threshold");
    add_row(rows, 10, 6, 2, "queue");
    add_row(rows, 10, 6, 3, "queue");
    draw(rows, "pareto", &text);
    assert_int_equal(num_points(&text, 0), 2); // 2 bits, queue
    for (int plot = 0; plot < 2; plot++) {
        draw(rows, plot ? "ceiling" : "bytes", &text);
        assert_int_equal(num_points(&text, 0), 2); // 2 bits, threshold; 3 bits
    }
    add_row(rows, 7, 4, 2, "threshold");
    draw(rows, "bytes", &text);
    assert_int_equal(num_points(&text, 0), 1);
    bsw_buffer_deinit(&text);
    json_decref(rows);
}

static void set_lists(json_t *rows, const char *name, int lists, int probe, double recall)
{
    json_t *row = json_object_get(rows, name);
    json_object_set_new(row, "lists", json_integer(lists));
    json_object_set_new(row, "probe", json_integer(probe));
    json_object_set_new(row, "recall", json_real(recall));
}

// One front over both; the plots of codes show all rows, or what comes nearest to it.
UNIT_TEST(lists_are_drawn_beside_flat_indexes)
{
    json_t *rows = json_object();
    struct bsw_buffer text = {0};
    need_gnuplot();
    for (int i = 0; i < 5; i++) add_row(rows, 10, 6, i < 3 ? 2 : 3, "threshold");
    set_lists(rows, "0", 8, 2, 0.4);
    set_lists(rows, "1", 0, 0, 0.9);
    set_lists(rows, "2", 8, 0, 0.9);
    set_lists(rows, "3", 8, 1, 0.5);
    set_lists(rows, "4", 8, 4, 0.8);
    json_object_set_new(json_object_get(rows, "0"), "qps", json_real(5000));
    draw(rows, "pareto", &text);
    assert_int_equal(num_points(&text, 0), 2); // lists, 2 bits
    assert_int_equal(num_points(&text, 1), 1); // flat
    assert_int_equal(num_points(&text, 2), 2); // lists, 3 bits
    assert_int_equal(num_points(&text, 3), 3); // the front: 0, and 1 and 2, which are alike
    assert_non_null(strstr((const char *)text.data, "saq, lists"));
    assert_non_null(strstr((const char *)text.data, "saq, threshold"));
    draw(rows, "bytes", &text);
    assert_int_equal(num_points(&text, 0), 2);
    assert_non_null(strstr((const char *)text.data, "\n32 0.9 "));
    assert_non_null(strstr((const char *)text.data, "\n48 0.8 "));
    bsw_buffer_deinit(&text);
    json_decref(rows);
}

UNIT_TEST(colours_that_run_out_are_in_the_legend)
{
    json_t *rows = json_object();
    struct bsw_buffer text = {0};
    need_gnuplot();
    for (int bits = 0; bits < 8; bits++) add_row(rows, 10, 6, 1 + bits / 2.0, "threshold");
    draw(rows, "pareto", &text);
    assert_null(strstr((const char *)text.data, "other bits/dim"));
    add_row(rows, 10, 6, 8, "threshold");
    draw(rows, "pareto", &text);
    assert_non_null(strstr((const char *)text.data, "other bits/dim"));
    bsw_buffer_deinit(&text);
    json_decref(rows);
}

// Colours, the axis and points that are the same go by the bits that codes have, not by what was
// asked for.
UNIT_TEST(true_bits_are_drawn)
{
    const char *name;
    json_t *row, *rows = json_object();
    struct bsw_buffer text = {0};
    need_gnuplot();
    add_row(rows, 10, 6, 4.0 / 3, "threshold");
    add_row(rows, 10, 6, 2, "threshold");
    json_object_foreach(rows, name, row) json_object_set_new(row, "bits", json_real(7));
    draw(rows, "pareto", &text);
    assert_non_null(strstr((const char *)text.data, "1.3333 bits/dim"));
    assert_null(strstr((const char *)text.data, "7 bits/dim"));
    draw(rows, "ceiling", &text);
    assert_non_null(strstr((const char *)text.data, "\n1.33333333 0.513333333 ")); // bits, ceiling
    bsw_buffer_deinit(&text);
    json_decref(rows);
}

// The table may have any name for the corpus.
UNIT_TEST(odd_names_do_no_harm)
{
    json_t *rows = json_object();
    struct bsw_buffer text = {0};
    need_gnuplot();
    add_row(rows, 10, 6, 2, "threshold");
    add_row(rows, 10, 6, 3, "threshold");
    json_object_set_new(json_object_get(rows, "0"), "dataset",
                        json_string("<b>\"&, '.u\n8,\"\"bin"));
    draw(rows, "ceiling", &text);
    assert_int_equal(num_points(&text, 0), 2);
    assert_non_null(strstr((const char *)text.data, "\n2 0.52 0.52 ")); // bits, ceiling, mark
    bsw_buffer_deinit(&text);
    json_decref(rows);
}

// The script's own words are not the subject's: no quote ends it, nothing in it is run.
UNIT_TEST(titles_name_the_subject)
{
    json_t *rows = json_object();
    char path[BSW_PATH_BYTES];
    struct bsw_buffer svg = {0};
    int is_drawn = 0;
    need_gnuplot();
    add_row(rows, 10, 6, 2, "threshold");
    assert_int_equal(bsw_sweep_write_csv(temporary_folder, rows, NULL), BSW_OK);
    assert_int_equal(
        bsw_sweep_plots_write(temporary_folder, "it's `date`: 7 rows, %d", &is_drawn, NULL),
        BSW_OK);
    assert_true(is_drawn);
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.svg", bsw_sweep_plots[i]);
        assert_int_equal(bsw_path_join(path, temporary_folder, name, NULL), BSW_OK);
        assert_int_equal(bsw_file_read_all(path, 1 << 20, &svg, NULL), BSW_OK);
        assert_int_equal(bsw_buffer_append(&svg, "", 1, NULL), BSW_OK);
        assert_non_null(strstr((const char *)svg.data, "`date`: 7 rows, %d"));
        svg.bytes = 0;
    }
    bsw_buffer_deinit(&svg);
    json_decref(rows);
}

// Last, as it takes gnuplot away: the script is there for another time.
UNIT_TEST(without_gnuplot_the_script_is_written)
{
    char path[BSW_PATH_BYTES];
    struct bsw_buffer text = {0};
    int is_drawn = 1;
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(bsw_sweep_plots_write(temporary_folder, "it's\n1 row", &is_drawn, NULL),
                     BSW_OK);
    assert_false(is_drawn);
    assert_int_equal(bsw_path_join(path, temporary_folder, "sweep.gnuplot", NULL), BSW_OK);
    assert_int_equal(bsw_file_read_all(path, 1 << 20, &text, NULL), BSW_OK);
    assert_int_equal(bsw_buffer_append(&text, "", 1, NULL), BSW_OK);
    const char *script = strstr((const char *)text.data, "\nsubject = 'it''s?1 row'\n");
    assert_non_null(script);
    assert_string_equal(strchr(script + 1, '\n') + 1, bsw_sweep_script);
    bsw_buffer_deinit(&text);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
