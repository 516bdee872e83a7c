// The rbe model of a sweep: learned from the corpus alone, with codes as wide as rows.
#ifndef BITSWEEP_COORDINATOR_SWEEP_LEARN_H
#define BITSWEEP_COORDINATOR_SWEEP_LEARN_H

#include "coordinator/sweep/sweep_point.h"

#ifdef __cplusplus
extern "C" {
#endif

// Rank 0, on its own, since weights depend on how many ranks there are: `train` writes the file
// `model`, which it replaces. *seconds: what that took.
enum bsw_status bsw_sweep_learn(const struct bsw_sweep_run *run,
                                const struct bsw_sweep_point *point, const char *model,
                                double *seconds, struct bsw_error *err);

#ifdef __cplusplus
}
#endif
#endif
