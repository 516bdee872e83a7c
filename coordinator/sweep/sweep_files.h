// Files that the program has with it, as texts that end with 0: an installed one has no source
// tree.
#ifndef BITSWEEP_COORDINATOR_SWEEP_FILES_H
#define BITSWEEP_COORDINATOR_SWEEP_FILES_H

#ifdef __cplusplus
extern "C" {
#endif

extern const char bsw_sweep_script[];   // sweep_plots.gp
extern const char bsw_sweep_template[]; // sweep_report.html

#ifdef __cplusplus
}
#endif
#endif
