// SPDX-License-Identifier: Apache-2.0
// The commands of the program and what they share. Every command runs on all ranks; ranks agree on
// a fault before any of them goes on, and main prints it once.
#ifndef BITSWEEP_COORDINATOR_COMMAND_H
#define BITSWEEP_COORDINATOR_COMMAND_H

#include <stdint.h>

#include "common/base/arithmetic.h"
#include "common/base/cpu_level.h"
#include "common/base/process.h"
#include "common/base/status.h"
#include "common/net/transport.h"
#include "coordinator/job/facts.h"
#include "coordinator/job/option_table.h"

// run takes the struct that the table's options were parsed into, of so many bytes, zeros but for
// them; struct bsw_common_options is its first member.
struct bsw_command {
    struct bsw_option_table table; // its command and summary are for main's --help too
    size_t options_bytes;
    enum bsw_status (*run)(struct bsw_transport *transport, void *options, struct bsw_error *err);
    enum { BSW_ALL_RANKS, BSW_RANK_0 } runs_on; // of rank 0 alone the others wait for how it ends
};
// A command of the option_rows and the run of its file; `type` is the struct of its options.
#define BSW_COMMAND(name, one_line, type, ranks) \
    BSW_COMMAND_OFTEN(name, one_line, type, ranks, NULL)
// The same, with the names of the options of every day.
#define BSW_COMMAND_OFTEN(name, one_line, type, ranks, often)                                \
    {                                                                                        \
        BSW_OPTION_TABLE_OFTEN(name, one_line, option_rows, often), sizeof(type), run, ranks \
    }

extern const struct bsw_command bsw_command_synth, bsw_command_encode, bsw_command_search,
    bsw_command_groundtruth, bsw_command_eval, bsw_command_info, bsw_command_convert,
    bsw_command_train, bsw_command_calibrate, bsw_command_verify, bsw_command_plan,
    bsw_command_sweep, bsw_command_append, bsw_command_delete, bsw_command_compact;

// All ranks: parses the words, applies the common options (threads of OpenMP and their cores,
// level, timeout, heartbeats) and runs the command; on --help rank 0 prints it.
enum bsw_status bsw_command_run(const struct bsw_command *command, struct bsw_transport *transport,
                                int argc, char **argv, struct bsw_error *err);

// ---- options of subjects that several commands have: a struct and its group each ----

// What every command has.
struct bsw_common_options {
    uint64_t threads;       // 0: OMP_NUM_THREADS, or all cores; after parsing how many that is
    const char *level_text; // for parsing
    enum bsw_cpu_level level;
    const char *pin; // "none", "cores"
    struct bsw_thread_pinning pinning;
    double timeout, heartbeat; // seconds
    int json;
    int quiet;
    int num_words; // the command line behind the command
    char **words;
};

extern const struct bsw_option_group bsw_common_option_group;

// --device and --device-memory, of a struct bsw_device_choice.
extern const struct bsw_option_group bsw_device_option_group;

// How facts are told: JSON with --json, else text, or nothing with --quiet.
enum bsw_facts_form bsw_common_facts_form(const struct bsw_common_options *common);

// ---- programs of this tree: their main, and how one starts another ------------------------------

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
