// The loss curve of a training: a table, and a plot of it by gnuplot where that is installed.
#ifndef BITSWEEP_COORDINATOR_LOSS_PLOT_H
#define BITSWEEP_COORDINATOR_LOSS_PLOT_H

#include <stddef.h>

#include "common/base/file.h"
#include "common/base/status.h"
#include "coordinator/train/rbe_checkpoint.h"

// BSW_ERROR_USAGE unless the name ends in .svg.
enum bsw_status bsw_loss_plot_check(const char *svg_path, struct bsw_error *err);

// The table beside such a plot.
void bsw_loss_plot_table(const char *svg_path, char out[BSW_PATH_BYTES]);

// Writes the .tsv beside (epoch, training loss, validation loss, rate), then the .svg. *is_drawn 0:
// gnuplot is missing, only the table is there. gnuplot that fails is BSW_ERROR_IO.
enum bsw_status bsw_loss_plot_write(const char *svg_path, const struct bsw_rbe_epoch *epochs,
                                    size_t num_epochs, int *is_drawn, struct bsw_error *err);

#endif
