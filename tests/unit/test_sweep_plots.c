// What the script of the plots has of points that no single grid has.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "common/file.h"
#include "coordinator/sweep_report.h"
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

// Without gnuplot: the script alone. text ends with a 0.
static void write_script(json_t *rows, struct bsw_buffer *text)
{
    char path[BSW_PATH_BYTES];
    int is_drawn = 1;
    setenv("PATH", "/nowhere", 1);
    assert_int_equal(bsw_sweep_plots_write(temporary_folder, rows, &is_drawn, NULL), BSW_OK);
    assert_false(is_drawn);
    assert_int_equal(bsw_path_join(path, temporary_folder, "sweep.gnuplot", NULL), BSW_OK);
    assert_int_equal(bsw_file_read_all(path, 1 << 20, text, NULL), BSW_OK);
    assert_int_equal(bsw_buffer_append(text, "", 1, NULL), BSW_OK);
}

// Points of plots 0 to 2 (queries a second, bytes, ceilings), panel for panel; -1: there is none.
static int num_points(const struct bsw_buffer *text, const char *block)
{
    const char *at = strstr((const char *)text->data, block);
    int lines = -1;
    for (; at && strncmp(at, "END", 3) != 0; at = strchr(at, '\n') + 1) lines++;
    return lines;
}

// The numbers behind "set NAME [" or "set NAME (" of the first panel; returns how many.
static size_t find_setting(const struct bsw_buffer *text, const char *name, double *out,
                           size_t capacity)
{
    const char *at = strstr((const char *)text->data, name);
    size_t count = 0;
    assert_non_null(at);
    for (at += strlen(name); *at != '\n' && count < capacity; count++) {
        if (*at == '\'') at = strchr(at + 1, '\'') + 1; // the label of a tic
        char *end;
        out[count] = strtod(at, &end);
        assert_ptr_not_equal(end, at);
        at = end + strcspn(end, "':\n");
        if (*at == ':') at++;
    }
    return count;
}

// The axis shows low to high of the dots and not much more, and has tics to read them by.
static void check_axis(const struct bsw_buffer *text, const char *axis, double low, double high,
                       double most_low, double most_high)
{
    double range[2], tics[32];
    char name[32];
    snprintf(name, sizeof name, "set %srange [", axis);
    assert_int_equal(find_setting(text, name, range, 2), 2);
    if (!(most_low <= range[0] && range[0] < low && high < range[1] && range[1] <= most_high))
        fail_msg("%s: %g to %g for dots from %g to %g", axis, range[0], range[1], low, high);
    snprintf(name, sizeof name, "set %stics (", axis);
    size_t count = find_setting(text, name, tics, 32);
    assert_in_range(count, 3, 24);
    for (size_t i = 0; i < count; i++) assert_true(range[0] <= tics[i] && tics[i] <= range[1]);
}

static void axes_are_chosen_from_the_points(void **state)
{
    (void)state;
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
        write_script(rows, &text);
        check_axis(&text, "x", cases[i].low, cases[i].high, cases[i].most_low, cases[i].most_high);
        check_axis(&text, "y", cases[i].slow, cases[i].fast, cases[i].most_slow,
                   cases[i].most_fast);
        assert_null(strstr((const char *)text.data, "set xrange [0:")); // of bytes
        bsw_buffer_deinit(&text);
        json_decref(rows);
    }
}

// No codec is missing because its first selection, or its finest queries, are of other points.
static void finest_queries_and_first_selections_are_drawn(void **state)
{
    (void)state;
    json_t *rows = json_object();
    struct bsw_buffer text = {0};
    add_row(rows, 10, 4, 2, "queue");
    add_row(rows, 10, 6, 2, "threshold");
    add_row(rows, 10, 6, 2, "queue");
    add_row(rows, 10, 6, 3, "queue");
    add_row(rows, 100, 4, 2, "threshold");
    write_script(rows, &text);
    assert_int_equal(num_points(&text, "$data_0_0_0 <<"), 2); // 2 bits, queue
    for (int plot = 1; plot < 3; plot++) {
        char block[40];
        snprintf(block, sizeof block, "$data_%d_0_0 <<", plot);
        assert_int_equal(num_points(&text, block), 2); // 2 bits, threshold; 3 bits
        snprintf(block, sizeof block, "$data_%d_1_0 <<", plot);
        assert_int_equal(num_points(&text, block), 1); // k 100
    }
    bsw_buffer_deinit(&text);
    json_decref(rows);
}

static void colours_that_run_out_are_in_the_legend(void **state)
{
    (void)state;
    json_t *rows = json_object();
    struct bsw_buffer text = {0};
    for (int bits = 0; bits < 8; bits++) add_row(rows, 10, 6, 1 + bits / 2.0, "threshold");
    write_script(rows, &text);
    assert_null(strstr((const char *)text.data, "other bits/dim"));
    add_row(rows, 10, 6, 8, "threshold");
    write_script(rows, &text);
    assert_non_null(strstr((const char *)text.data, "other bits/dim"));
    bsw_buffer_deinit(&text);
    json_decref(rows);
}

// Colours, the axis and points that are the same go by the bits that codes have, not by what was
// asked for.
static void true_bits_are_drawn(void **state)
{
    (void)state;
    const char *name;
    json_t *row, *rows = json_object();
    struct bsw_buffer text = {0};
    add_row(rows, 10, 6, 4.0 / 3, "threshold");
    add_row(rows, 10, 6, 2, "threshold");
    json_object_foreach(rows, name, row) json_object_set_new(row, "bits", json_real(7));
    write_script(rows, &text);
    const char *script = (const char *)text.data;
    assert_non_null(strstr(script, "'1.3333 bits/dim'"));
    assert_non_null(strstr(script, "\n1.33333333 0.513333333 ")); // bits, ceiling
    assert_null(strstr(script, "'7 bits/dim'"));
    bsw_buffer_deinit(&text);
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_are_chosen_from_the_points),
        cmocka_unit_test(finest_queries_and_first_selections_are_drawn),
        cmocka_unit_test(colours_that_run_out_are_in_the_legend),
        cmocka_unit_test(true_bits_are_drawn),
    };
    return cmocka_run_group_tests(tests, make_temporary_folder, remove_temporary_folder);
}
