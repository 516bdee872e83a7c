// SPDX-License-Identifier: Apache-2.0
// What the checks of this folder share: a folder that goes away, whole files, the program run as a
// process of its own.
#ifndef BITSWEEP_TESTS_FAULTS_FAULT_TOOLS_H
#define BITSWEEP_TESTS_FAULTS_FAULT_TOOLS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/base/status.h"

// Ends the process with 1 and a line, after removing the folder.
#define FAULT_REQUIRE(condition, ...) \
    ((condition) ? (void)0 : fault_fail(__FILE__, __LINE__, #condition, __VA_ARGS__))
void fault_fail(const char *file, int line, const char *condition, const char *format, ...)
    BSW_PRINTF(4, 5);

// Makes the folder; it is removed, with folders in it, when the process that made it ends.
const char *fault_folder(void);
// FOLDER/name; valid until the eighth call from here.
const char *fault_path(const char *name);

void fault_load(const char *path, struct bsw_buffer *out);
void fault_store(const char *path, const void *data, size_t bytes);

// A number that depends on the seed and on how many were drawn before.
struct fault_random {
    uint64_t seed, drawn;
};
uint64_t fault_draw(struct fault_random *random, uint64_t limit);

// 1 where memory is also what a sanitizer needs.
int fault_is_sanitized(void);
// Most memory of this process so far, in bytes.
size_t fault_peak_bytes(void);

// Environment variable as a count, or `otherwise`.
uint64_t fault_count(const char *variable, uint64_t otherwise);

struct fault_run {
    int exit_code; // -1: a signal
    size_t peak_bytes;
    char text[4096]; // of stderr
};
// Runs a command line (words divided by single spaces) with stdout to nowhere.
void fault_run(const char *line, struct fault_run *out);
// The same, which must exit with 0.
void fault_run_good(const char *line);

// The refusal of an input: exit code 65, one line that begins as the program's do.
void fault_check_refusal(const struct fault_run *run, const char *what);
// The same of an error of the library.
void fault_check_error(enum bsw_status status, const struct bsw_error *err, const char *what);

#endif
