// What the programs of this tree have in common: their main, and how one starts another.
#ifndef BITSWEEP_COORDINATOR_PROGRAM_H
#define BITSWEEP_COORDINATOR_PROGRAM_H

#include "coordinator/job/command.h"

// The main of a program: opens the transport, calls run on every rank with the words behind the
// program's name, prints its error once. command is what STATUS.json calls this run; borrowed.
// Returns the exit code.
int bsw_program_run(const char *command,
                    enum bsw_status (*run)(struct bsw_transport *transport, int argc, char **argv,
                                           struct bsw_error *err),
                    int argc, char **argv);

// Replaces this process by the program beside it that has its own name and suffix: `bitsweep` and
// "-bench" make bitsweep-bench. argv becomes that program's; its argv[0] is overwritten. To be
// called before anything is opened. Returns only where the program cannot be started, with one line
// on stderr printed, the exit code of BSW_ERROR_USAGE.
int bsw_program_replace(const char *suffix, char **argv);

#endif
