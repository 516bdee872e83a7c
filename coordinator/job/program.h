// SPDX-License-Identifier: Apache-2.0
// What the programs of this tree have in common: their main, and how one starts another.
#ifndef BITSWEEP_COORDINATOR_PROGRAM_H
#define BITSWEEP_COORDINATOR_PROGRAM_H

#include "coordinator/job/command.h"

struct bsw_program {
    const char *name; // in front of its commands' names, and what STATUS.json calls a run; "": none
    const char *title, *end; // of --help, before and behind the commands
    const struct bsw_command *const *commands;
    size_t num_commands;
    const char *missing, *unknown, *hint; // what is said of no word, of another one, and after both
};

// The main of a program: opens the transport, runs the command that the first word names on every
// rank, prints its error once. Returns the exit code. To be called before anything is opened:
// unless GOMP_SPINCOUNT or OMP_WAIT_POLICY is set, it starts the program again with a
// GOMP_SPINCOUNT.
int bsw_program_run(const struct bsw_program *program, int argc, char **argv);

// Replaces this process by the program beside it that has its own name and suffix: `bitsweep` and
// "-bench" make bitsweep-bench. argv becomes that program's; its argv[0] is overwritten. To be
// called before anything is opened. Returns only where the program cannot be started, with one line
// on stderr printed, the exit code of BSW_ERROR_USAGE.
int bsw_program_replace(const char *suffix, char **argv);

#endif
