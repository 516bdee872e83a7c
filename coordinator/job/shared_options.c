// SPDX-License-Identifier: Apache-2.0
// Options of subjects that several commands have.
#include "coordinator/job/command.h"
#include "coordinator/job/device_choice.h"
#include "coordinator/job/setting_checks.h"

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
