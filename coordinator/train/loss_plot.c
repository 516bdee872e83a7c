#include "coordinator/train/loss_plot.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/file.h"

extern char **environ;

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

// As gnuplot's '...' wants it: a quote doubled.
static void append_quoted(char *out, size_t capacity, const char *text)
{
    size_t used = strlen(out);
    out[used++] = '\'';
    for (; *text && used + 4 < capacity; text++) {
        if (*text == '\'') out[used++] = '\'';
        out[used++] = *text;
    }
    out[used++] = '\'';
    out[used] = '\0';
}

static void write_script(char *out, size_t capacity, const char *table, const char *svg,
                         int has_validation)
{
    snprintf(out, capacity,
             "set terminal svg size 800,500 dynamic background rgb 'white'; "
             "set xlabel 'epoch'; set ylabel 'loss'; set grid; set output ");
    append_quoted(out, capacity / 2, svg);
    strcat(out, "; plot ");
    append_quoted(out, capacity - 200, table);
    strcat(out, " using 1:2 with linespoints lw 2 pt 7 title 'training'");
    if (has_validation) strcat(out, ", '' using 1:3 with linespoints lw 2 pt 5 title 'validation'");
}

// No shell between, so that names are what they are.
static enum bsw_status run_gnuplot(char *script, int *is_drawn, struct bsw_error *err)
{
    char program[] = "gnuplot", option[] = "-e";
    char *arguments[] = {program, option, script, NULL};
    pid_t child;
    int state, fault = posix_spawnp(&child, program, NULL, NULL, arguments, environ);
    if (fault == ENOENT) return BSW_OK;
    if (fault != 0) return bsw_fail(err, BSW_ERROR_IO, "gnuplot: %s", strerror(fault));
    while (waitpid(child, &state, 0) < 0) {
        if (errno != EINTR) return bsw_fail(err, BSW_ERROR_IO, "gnuplot: %s", strerror(errno));
    }
    if (WIFEXITED(state) && WEXITSTATUS(state) == 127) return BSW_OK; // how some systems say ENOENT
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
        return bsw_fail(err, BSW_ERROR_IO, "gnuplot failed");
    *is_drawn = 1;
    return BSW_OK;
}

enum bsw_status bsw_loss_plot_write(const char *svg_path, const struct bsw_rbe_epoch *epochs,
                                    size_t num_epochs, int *is_drawn, struct bsw_error *err)
{
    char table[BSW_PATH_BYTES], script[6 * BSW_PATH_BYTES];
    *is_drawn = 0;
    BSW_TRY(bsw_loss_plot_check(svg_path, err));
    bsw_loss_plot_table(svg_path, table);
    BSW_TRY(write_table(table, epochs, num_epochs, err));
    if (num_epochs == 0) return BSW_OK;
    write_script(script, sizeof script, table, svg_path,
                 epochs[num_epochs - 1].validation_loss > 0);
    return run_gnuplot(script, is_drawn, err);
}
