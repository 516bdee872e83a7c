#include "coordinator/train/loss_plot.h"

#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "coordinator/job/gnuplot.h"

// From the table as stdin to an SVG as stdout.
#define TRAINING_PLOT                                                               \
    "set terminal svg size 800,500 dynamic background rgb 'white'; "                \
    "set xlabel 'epoch'; set ylabel 'loss'; set grid; plot '/dev/stdin' using 1:2 " \
    "with linespoints lw 2 pt 7 title 'training'"
#define VALIDATION_PLOT ", '' using 1:3 with linespoints lw 2 pt 5 title 'validation'"

enum bsw_status bsw_loss_plot_check(const char *svg_path, struct bsw_error *err)
{
    size_t length = strlen(svg_path);
    if (length > 4 && length < BSW_PATH_BYTES && strcmp(svg_path + length - 4, ".svg") == 0)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--plot %s: a name that ends in .svg", svg_path);
}

void bsw_loss_plot_table(const char *svg_path, char out[BSW_PATH_BYTES])
{
    snprintf(out, BSW_PATH_BYTES, "%.*s.tsv", (int)strlen(svg_path) - 4, svg_path);
}

static enum bsw_status write_table(const char *path, const struct bsw_rbe_epoch *epochs,
                                   size_t num_epochs, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    char line[160] = "# epoch\ttrain_loss\tvalidation_loss\trate\n";
    enum bsw_status status = bsw_buffer_append(&buffer, line, strlen(line), err);
    for (size_t i = 0; i < num_epochs && status == BSW_OK; i++) {
        int length = snprintf(line, sizeof line, "%zu\t%.6f\t%.6f\t%.6g\n", i + 1,
                              epochs[i].train_loss, epochs[i].validation_loss, epochs[i].rate);
        status = bsw_buffer_append(&buffer, line, (size_t)length, err);
    }
    if (status == BSW_OK) status = bsw_file_write_atomic(path, buffer.data, buffer.bytes, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

enum bsw_status bsw_loss_plot_write(const char *svg_path, const struct bsw_rbe_epoch *epochs,
                                    size_t num_epochs, int *is_drawn, struct bsw_error *err)
{
    char table[BSW_PATH_BYTES];
    int has_validation = num_epochs > 0 && epochs[num_epochs - 1].validation_loss > 0;
    const char *const arguments[] = {
        "gnuplot", "-e", has_validation ? TRAINING_PLOT VALIDATION_PLOT : TRAINING_PLOT, NULL};
    const struct bsw_gnuplot gnuplot = {.arguments = arguments, .in = table, .out = svg_path};
    *is_drawn = 0;
    bsw_loss_plot_table(svg_path, table);
    BSW_TRY(write_table(table, epochs, num_epochs, err));
    if (num_epochs == 0) return BSW_OK;
    BSW_TRY(bsw_gnuplot_run(&gnuplot, is_drawn, err));
    return *is_drawn ? BSW_OK : bsw_file_remove(svg_path, err);
}
