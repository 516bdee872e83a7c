// One step of a sweep: this program again, as a child with --json, alone or under a launcher that
// starts it on several ranks.
#ifndef BITSWEEP_COORDINATOR_SWEEP_STEP_H
#define BITSWEEP_COORDINATOR_SWEEP_STEP_H

#include <jansson.h>

#include "common/file.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BSW_LAUNCHER_WORDS = 64, BSW_STEP_WORDS = 128, BSW_STEP_NUMBER_BYTES = 32 };

// What stands before the command: "deploy/run.sh -n 4", "mpirun -n 4 bitsweep".
struct bsw_launcher {
    char text[BSW_PATH_BYTES];
    const char *words[BSW_LAUNCHER_WORDS]; // into text
    size_t num_words;                      // 0: none, this program starts at once
};

// Cuts text at blanks, but for those behind a backslash, which takes any character as it is (as
// `printf %q` writes them). NULL: none. Too long: BSW_ERROR_USAGE. *out must stay where it is.
enum bsw_status bsw_launcher_split(const char *text, struct bsw_launcher *out,
                                   struct bsw_error *err);

// What all steps have.
struct bsw_step_place {
    const char *folder; // absolute; step.out and step.err are there
    const char *level;
    double timeout, heartbeat; // seconds
    uint64_t threads;          // of a step that is started at once
    uint64_t launched_threads; // of each rank; 0: as the launcher says
    struct bsw_launcher launcher;
};

struct bsw_step {
    const struct bsw_step_place *place;
    const char *words[BSW_STEP_WORDS]; // launcher or program, command, options, NULL; borrowed
    size_t num_words;
    char numbers[BSW_STEP_WORDS][BSW_STEP_NUMBER_BYTES];
    const char *command;
    int is_launched;
};

// Also adds the options that all commands have. is_parallel: by the launcher, if there is one.
void bsw_step_begin(struct bsw_step *step, const struct bsw_step_place *place, const char *command,
                    int is_parallel);
// value NULL: a flag. Both are borrowed until the step has run.
void bsw_step_add(struct bsw_step *step, const char *option, const char *value);
void bsw_step_add_number(struct bsw_step *step, const char *option, double value);

// Runs it to its end. *said: what it printed, a new reference, set only on success. A failure is
// the error of its exit code, with the first line it said.
enum bsw_status bsw_step_run(struct bsw_step *step, json_t **said, struct bsw_error *err);

// A number that a step must have said.
enum bsw_status bsw_step_number(const json_t *said, const char *name, double *out,
                                struct bsw_error *err);

#ifdef __cplusplus
}
#endif
#endif
