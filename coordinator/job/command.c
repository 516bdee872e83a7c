// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/command.h"

#include <cblas.h>
#include <errno.h>
#include <limits.h>
#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/memory.h"
#include "common/job/run_status.h"
#include "common/job/stop_signal.h"
#include "coordinator/job/device_choice.h"
#include "coordinator/job/option_table.h"
#include "kernels/tuning/scan_tuning.h"

// ---- every command ----

#define COMMON(name, member, ...) BSW_OPTION(struct bsw_common_options, name, member, __VA_ARGS__)

static const struct bsw_option common_options[] = {
    COMMON("threads", threads, .value_name = "N", .default_text = "0", .max = BSW_MAX_THREADS,
           .help = "threads a rank; 0: OMP_NUM_THREADS or all cores"),
    COMMON("level", level_text, .choices = BSW_CPU_LEVEL_CHOICES, .default_text = "auto",
           .help = "highest CPU kernels to use"),
    COMMON("pin", pin, .choices = "none|cores", .default_text = "none",
           .help = "cores: every thread on a core of its own"),
    COMMON("timeout", timeout, .value_name = "SECONDS",
           .default_text = BSW_TEXT_OF(BSW_TIMEOUT_SECONDS), .min = 0.1, .max = 1e6,
           .help = "longest wait for another rank"),
    COMMON("heartbeat", heartbeat, .value_name = "SECONDS",
           .default_text = BSW_TEXT_OF(BSW_HEARTBEAT_SECONDS), .max = 1e6,
           .help = "a rank that sends nothing for this long counts as lost; 0: no heartbeats"),
    COMMON("json", json, .help = "print results as JSON on stdout"),
    COMMON("quiet", quiet, .help = "no progress, no closing table"),
};
const struct bsw_option_group bsw_common_option_group = BSW_OPTIONS_OF(common_options);

// ---- devices ----

#define DEVICE(name, member, ...) BSW_OPTION(struct bsw_device_choice, name, member, __VA_ARGS__)

static const struct bsw_option device_options[] = {
    DEVICE("device", text, .value_name = "auto|cpu|cuda|cuda:N", .default_text = "auto",
           .help =
               "where to compute: a GPU a rank, or all ranks of a host on GPU N; auto: GPUs if "
               "each rank has one, but encode takes them for saq alone, and groundtruth the CPU"),
    DEVICE("device-memory", most_bytes, .value_name = "BYTES", .default_text = "0", .max = 1e15,
           .help = "most memory of a GPU that a rank uses; 0: all that is free"),
};
const struct bsw_option_group bsw_device_option_group = BSW_OPTIONS_OF(device_options);

// ---- running one ----

static enum bsw_status pin_threads(const struct bsw_transport *transport,
                                   struct bsw_common_options *common, struct bsw_error *err)
{
    if (strcmp(common->pin, "cores") != 0) return BSW_OK;
    return bsw_threads_pin(transport->local_rank, transport->num_local_ranks, (int)common->threads,
                           &common->pinning, err);
}

// What kernels run, and what they are tuned by.
static enum bsw_status choose_level(struct bsw_common_options *common, struct bsw_error *err)
{
    BSW_TRY(bsw_cpu_level_parse(common->level_text, &common->level, err));
    return bsw_scan_tuning_read_named(err);
}

// Hosts differ, so one rank may fail alone. The thread of the heartbeats is not pinned.
static enum bsw_status set_up(struct bsw_transport *transport, struct bsw_common_options *common,
                              struct bsw_error *err)
{
    transport->timeout_seconds = common->timeout;
    BSW_TRY(bsw_transport_watch(transport, common->heartbeat, err));
    enum bsw_status status = transport->rank == 0 ? bsw_run_status_started(err) : BSW_OK;
    if (status == BSW_OK) status = bsw_setting_default_threads((int)common->threads, err);
    if (status == BSW_OK) status = choose_level(common, err);
    if (status == BSW_OK) status = pin_threads(transport, common, err);
    return bsw_transport_agree(transport, status, err);
}

// After --help *done is set.
static enum bsw_status parse(struct bsw_transport *transport, const struct bsw_option_table *table,
                             struct bsw_common_options *common, int argc, char **argv, int *done,
                             struct bsw_error *err)
{
    BSW_TRY(bsw_option_table_parse(table, common, argc, argv, done, err));
    if (*done) {
        if (transport->rank == 0) bsw_option_table_print(table, *done, stdout);
        return BSW_OK;
    }
    common->num_words = argc;
    common->words = argv;
    if (common->threads > 0)
        omp_set_num_threads((int)common->threads);
    else
        common->threads = (uint64_t)omp_get_max_threads();
    return set_up(transport, common, err);
}

enum bsw_status bsw_command_run(const struct bsw_command *command, struct bsw_transport *transport,
                                int argc, char **argv, struct bsw_error *err)
{
    void *options;
    int done;
    BSW_TRY(bsw_allocate_zero(&options, 1, command->options_bytes, "options", err));
    enum bsw_status status = parse(transport, &command->table, options, argc, argv, &done, err);
    if (status == BSW_OK && !done) {
        if (command->runs_on == BSW_ALL_RANKS || transport->rank == 0)
            status = command->run(transport, options, err);
        if (command->runs_on == BSW_RANK_0) status = bsw_transport_agree(transport, status, err);
    }
    bsw_free(&options);
    return status;
}

enum bsw_facts_form bsw_common_facts_form(const struct bsw_common_options *common)
{
    return common->json ? BSW_FACTS_JSON : common->quiet ? BSW_FACTS_SILENT : BSW_FACTS_TEXT;
}

// ---- programs -----------------------------------------------------------------------------------

// How often a thread of OpenMP that waits for others looks before it sleeps. libgomp's own 300,000
// are some 10 ms, in which it may keep the one it waits for from running.
#define SPIN_TURNS "10000"

// A fault that all ranks agreed on is printed by rank 0; one of the transport itself by whoever met
// it.
static void print_error(const struct bsw_transport *transport, const struct bsw_error *err)
{
    if (err->message[0] == '\0') return;
    if (transport->rank != 0 && !transport->broken) return;
    if (err->rank >= 0 && transport->num_ranks > 1 && err->status != BSW_PARTIAL)
        fprintf(stderr, "bitsweep: rank %d: %s\n", err->rank, err->message);
    else
        fprintf(stderr, "bitsweep: %s\n", err->message);
}

// Whether standard output is a pipe that nobody reads any more, as behind `| head`: they have what
// they wanted, and no line of ours would help them. The exit code tells that not all was written.
static int is_reader_gone(void)
{
    struct pollfd end = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0;
}

// How the run ended, for whoever asks: the last thing but closing, which ends the process where the
// transport is broken. A run that cannot say that it is complete has failed.
static enum bsw_status conclude(const struct bsw_transport *transport, enum bsw_status status,
                                struct bsw_error *err)
{
    if (status != BSW_OK && transport->num_ranks == 1) bsw_stop_yield();
    bsw_stop_conclude(bsw_status_exit_code(status));
    if (status != BSW_OK) print_error(transport, err);
    if (transport->rank != 0) return status;
    if (status != BSW_OK) {
        bsw_run_status_write(status, err->message, NULL); // one line is enough
        return status;
    }
    status = bsw_run_status_write(status, "", err);
    bsw_stop_conclude(bsw_status_exit_code(status));
    if (status != BSW_OK) print_error(transport, err);
    return status;
}

static const char *name_of(const struct bsw_program *program, const struct bsw_command *command)
{
    return command->table.command + (*program->name ? strlen(program->name) + 1 : 0);
}

static const struct bsw_command *find_command(const struct bsw_program *program, const char *name)
{
    for (size_t i = 0; i < program->num_commands; i++) {
        if (strcmp(name, name_of(program, program->commands[i])) == 0) return program->commands[i];
    }
    return NULL;
}

static void print_usage(const struct bsw_program *program)
{
    fputs(program->title, stdout);
    for (size_t i = 0; i < program->num_commands; i++)
        printf("  %-12s %s\n", name_of(program, program->commands[i]),
               program->commands[i]->table.summary);
    fputs(program->end, stdout);
}

static enum bsw_status run(const struct bsw_program *program, struct bsw_transport *transport,
                           int argc, char **argv, struct bsw_error *err)
{
    if (argc < 1) return bsw_fail(err, BSW_ERROR_USAGE, "%s%s", program->missing, program->hint);
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 ||
        strcmp(argv[0], "help") == 0) {
        if (transport->rank == 0) print_usage(program);
        return BSW_OK;
    }
    if (strcmp(argv[0], "--version") == 0) {
        if (transport->rank == 0) printf("bitsweep %s\n", BITSWEEP_VERSION);
        return BSW_OK;
    }
    const struct bsw_command *command = find_command(program, argv[0]);
    if (command) return bsw_command_run(command, transport, argc - 1, argv + 1, err);
    struct bsw_setting_guess guess = {NULL, 0};
    for (size_t i = 0; i < program->num_commands; i++)
        bsw_setting_consider(&guess, argv[0], strlen(argv[0]),
                             name_of(program, program->commands[i]));
    if (!guess.word)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s '%s'; %s", program->unknown, argv[0],
                        program->hint);
    return bsw_fail(err, BSW_ERROR_USAGE, "%s '%s': did you mean %s? %s", program->unknown, argv[0],
                    guess.word, program->hint);
}

// The file of this program and a suffix behind its name; -1 and errno where that fails.
static ssize_t own_path(char path[PATH_MAX], const char *suffix)
{
    size_t room = PATH_MAX - strlen(suffix);
    ssize_t length = readlink("/proc/self/exe", path, room);
    if (length >= 0 && (size_t)length < room) {
        memcpy(path + length, suffix, strlen(suffix) + 1);
        return length;
    }
    if (length >= 0) errno = ENAMETOOLONG;
    return -1;
}

// libgomp reads it when it is loaded, before main: so the program starts again with it. Without
// /proc it goes on as it is.
static void limit_spinning(char **argv)
{
    char path[PATH_MAX];
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") || own_path(path, "") < 0) return;
    if (setenv("GOMP_SPINCOUNT", SPIN_TURNS, 1) == 0) execv(path, argv);
}

int bsw_program_run(const struct bsw_program *program, int argc, char **argv)
{
    struct bsw_transport transport = {0};
    struct bsw_error err = {0};
    const struct bsw_command *command = argc > 1 ? find_command(program, argv[1]) : NULL;
    if (command) limit_spinning(argv);
    signal(SIGPIPE, SIG_IGN); // a closed stdout is a write error, not a death
    signal(SIGXFSZ, SIG_IGN); // and so is a limit of file sizes
    openblas_set_num_threads(1);
    bsw_mapped_files_watch();
    enum bsw_status status = bsw_stop_watch(&err);
    if (status == BSW_OK) status = bsw_transport_open(&transport, &err);
    if (status != BSW_OK) {
        fprintf(stderr, "bitsweep: %s\n", err.message);
        if (bsw_stop_is_rank0()) bsw_run_status_write(status, err.message, NULL);
        return bsw_status_exit_code(status);
    }
    bsw_stop_set_rank(transport.rank);
    if (transport.rank == 0)
        bsw_run_status_begin(*program->name || !command ? program->name : command->table.command);
    status = run(program, &transport, argc - 1, argv + 1, &err);
    if (status == BSW_OK && transport.rank == 0 && (fflush(stdout) != 0 || ferror(stdout))) {
        status =
            bsw_fail(&err, BSW_ERROR_IO, is_reader_gone() ? "" : "cannot write to standard output");
    }
    status = conclude(&transport, status, &err);
    bsw_transport_close(&transport, status != BSW_OK && status != BSW_PARTIAL);
    return bsw_status_exit_code(status);
}

int bsw_program_replace(const char *suffix, char **argv)
{
    char path[PATH_MAX];
    if (own_path(path, suffix) < 0) {
        fprintf(stderr, "bitsweep: the program beside this one is not found: /proc/self/exe: %s\n",
                strerror(errno));
        return bsw_status_exit_code(BSW_ERROR_USAGE);
    }
    argv[0] = path;
    execv(path, argv);
    fprintf(stderr, "bitsweep: %s: cannot be started: %s; it must lie beside this program\n", path,
            strerror(errno));
    return bsw_status_exit_code(BSW_ERROR_USAGE);
}
