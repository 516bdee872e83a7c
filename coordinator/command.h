// The commands of the program and what they share. Every command runs on all ranks; ranks agree on
// a fault before any of them goes on, and main prints it once.
#ifndef BITSWEEP_COORDINATOR_COMMAND_H
#define BITSWEEP_COORDINATOR_COMMAND_H

#include <jansson.h>
#include <stdint.h>

#include "common/cpu_level.h"
#include "common/option_table.h"
#include "common/parts.h"
#include "common/status.h"
#include "common/thread_pinning.h"
#include "common/transport.h"

struct bsw_command {
    const char *name;
    const char *summary;
    enum bsw_status (*run)(struct bsw_transport *transport, int argc, char **argv,
                           struct bsw_error *err);
};

enum bsw_status bsw_command_synth(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err);
enum bsw_status bsw_command_encode(struct bsw_transport *transport, int argc, char **argv,
                                   struct bsw_error *err);
enum bsw_status bsw_command_search(struct bsw_transport *transport, int argc, char **argv,
                                   struct bsw_error *err);
enum bsw_status bsw_command_groundtruth(struct bsw_transport *transport, int argc, char **argv,
                                        struct bsw_error *err);
enum bsw_status bsw_command_eval(struct bsw_transport *transport, int argc, char **argv,
                                 struct bsw_error *err);
enum bsw_status bsw_command_convert(struct bsw_transport *transport, int argc, char **argv,
                                    struct bsw_error *err);
enum bsw_status bsw_command_info(struct bsw_transport *transport, int argc, char **argv,
                                 struct bsw_error *err);
enum bsw_status bsw_command_verify(struct bsw_transport *transport, int argc, char **argv,
                                   struct bsw_error *err);
enum bsw_status bsw_command_plan(struct bsw_transport *transport, int argc, char **argv,
                                 struct bsw_error *err);
enum bsw_status bsw_command_train(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err);
enum bsw_status bsw_command_sweep(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err);
enum bsw_status bsw_command_bench(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err);

// Options that every command has.
struct bsw_common_options {
    uint64_t threads; // 0: OMP_NUM_THREADS, or all cores; after parsing how many that is
    int threads_are_given;
    const char *level_text; // for parsing
    enum bsw_cpu_level level;
    const char *pin; // "none", "cores"
    struct bsw_thread_pinning pinning;
    double timeout, heartbeat; // seconds
    int json;
    int quiet;
};

#define BSW_COMMON_OPTIONS(common)                                            \
    {"threads",                                                               \
     BSW_OPTION_COUNT,                                                        \
     &(common).threads,                                                       \
     "N",                                                                     \
     "0",                                                                     \
     0,                                                                       \
     0,                                                                       \
     4096,                                                                    \
     NULL,                                                                    \
     "threads a rank; 0: OMP_NUM_THREADS or all cores"},                      \
        {"level",                                                             \
         BSW_OPTION_CHOICE,                                                   \
         &(common).level_text,                                                \
         NULL,                                                                \
         "auto",                                                              \
         0,                                                                   \
         0,                                                                   \
         0,                                                                   \
         "auto|reference|avx2|avx512",                                        \
         "highest CPU kernels to use"},                                       \
        {"pin",                                                               \
         BSW_OPTION_CHOICE,                                                   \
         &(common).pin,                                                       \
         NULL,                                                                \
         "none",                                                              \
         0,                                                                   \
         0,                                                                   \
         0,                                                                   \
         "none|cores",                                                        \
         "cores: every thread on a core of its own"},                         \
        {"timeout",                                                           \
         BSW_OPTION_NUMBER,                                                   \
         &(common).timeout,                                                   \
         "SECONDS",                                                           \
         "1800",                                                              \
         0,                                                                   \
         0.1,                                                                 \
         1e6,                                                                 \
         NULL,                                                                \
         "longest wait for another rank"},                                    \
        {"heartbeat",                                                         \
         BSW_OPTION_NUMBER,                                                   \
         &(common).heartbeat,                                                 \
         "SECONDS",                                                           \
         "10",                                                                \
         0,                                                                   \
         0,                                                                   \
         1e6,                                                                 \
         NULL,                                                                \
         "a rank that is silent for so long is lost; 0: not looked for"},     \
        {"json",                                                              \
         BSW_OPTION_FLAG,                                                     \
         &(common).json,                                                      \
         NULL,                                                                \
         NULL,                                                                \
         0,                                                                   \
         0,                                                                   \
         0,                                                                   \
         NULL,                                                                \
         "print results as JSON on stdout"},                                  \
    {                                                                         \
        "quiet", BSW_OPTION_FLAG, &(common).quiet, NULL, NULL, 0, 0, 0, NULL, \
            "no progress, no closing table"                                   \
    }

// Parses and applies the common options (threads of OpenMP and their cores, level, timeout,
// heartbeats). *done is set after --help, printed by rank 0.
enum bsw_status bsw_command_parse(struct bsw_transport *transport,
                                  const struct bsw_option_table *table,
                                  struct bsw_common_options *common, int argc, char **argv,
                                  int *done, struct bsw_error *err);

// `info PATH` for `info --path PATH`: copies argv to words with `name` before a first word that is
// no option.
#define BSW_MAX_WORDS 256
enum bsw_status bsw_name_first_word(const char *name, int *argc, char **argv,
                                    char *words[BSW_MAX_WORDS], struct bsw_error *err);

// Prints the object on stdout and drops the reference.
void bsw_print_json(json_t *object);

// Four digits and a unit of powers of 1000: "1.5 GB", "23.44 MB", "512 B".
void bsw_format_bytes(double bytes, char *text, size_t capacity);

#endif
