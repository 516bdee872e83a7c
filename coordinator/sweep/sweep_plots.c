// SPDX-License-Identifier: Apache-2.0
// The plots of a sweep: gnuplot draws them from sweep.csv, by a script that is the same for all.
#include <stdio.h>

#include "common/base/file.h"
#include "coordinator/job/gnuplot.h"
#include "coordinator/sweep/sweep_report.h"

// The assembler takes them in; CMakeLists.txt says where they are, and what to make anew with them.
#define TAKE_IN(name, file)                            \
    __asm__(".pushsection .rodata\n"                   \
            ".global " #name "\n" #name ":\n"          \
            ".incbin \"coordinator/sweep/" file "\"\n" \
            ".byte 0\n"                                \
            ".popsection")

TAKE_IN(bsw_sweep_script, "sweep_plots.gp");
TAKE_IN(bsw_sweep_template, "sweep_report.html");

const char *const bsw_sweep_plots[3] = {"sweep-pareto", "sweep-bytes", "sweep-ceiling"};

// Those of fewer points must not stand beside a report that has none.
static enum bsw_status remove_plots(const char *folder, struct bsw_error *err)
{
    char name[64], path[BSW_PATH_BYTES];
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "%s.%s", bsw_sweep_plots[i / 2], i % 2 ? "png" : "svg");
        BSW_TRY(bsw_path_join(path, folder, name, err));
        BSW_TRY(bsw_file_remove(path, err));
    }
    return BSW_OK;
}

// The script with its subject, as a string of gnuplot's: in single quotes, nothing is special but
// these.
static enum bsw_status print_script(FILE *out, void *subject, struct bsw_error *err)
{
    (void)err;
    fputs("# SPDX-License-Identifier: Apache-2.0\nsubject = '", out);
    for (const char *text = subject; *text; text++) {
        const char *shown = (unsigned char)*text < 32 ? "?" : *text == '\'' ? "''" : NULL;
        if (shown)
            fputs(shown, out);
        else
            fputc(*text, out);
    }
    fprintf(out, "'\n%s", bsw_sweep_script);
    return BSW_OK;
}

enum bsw_status bsw_sweep_plots_write(const char *folder, const char *subject, int *is_drawn,
                                      struct bsw_error *err)
{
    static const char *const arguments[] = {"gnuplot", "--default-settings", "sweep.gnuplot", NULL};
    char said[BSW_PATH_BYTES];
    const struct bsw_gnuplot gnuplot = {.arguments = arguments, .folder = folder, .said = said};
    *is_drawn = 0;
    BSW_TRY(bsw_path_join(said, folder, "step.err", err));
    BSW_TRY(bsw_sweep_write_file(folder, "sweep.gnuplot", print_script, (void *)subject, err));
    BSW_TRY(remove_plots(folder, err));
    BSW_TRY(bsw_gnuplot_run(&gnuplot, is_drawn, err));
    return bsw_file_remove(said, err);
}
