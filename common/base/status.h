// SPDX-License-Identifier: Apache-2.0
// Status codes and the error text that travels with them.
//
// Every fallible function returns enum bsw_status (0 is ok) and takes a struct bsw_error * last,
// which may be NULL. Whoever detects a fault first writes the message, with values; callers return
// the status unchanged or prefix one clause. Only the command layer prints, and only it turns a
// status into an exit code.
#ifndef BITSWEEP_COMMON_STATUS_H
#define BITSWEEP_COMMON_STATUS_H

#include <stdarg.h>
#include <stdint.h>

#include "common/base/c_linkage.h"

BSW_C_BEGIN

// One list makes the enum, the names and the exit codes. Groups tell what is lost:
//   request  the call was wrong or asks for what is not there; nothing else is affected
//   shard    one shard, file or device failed
//   cluster  ranks lost each other
#define BSW_STATUS_LIST(X)                                                                     \
    X(OK, 0, "ok")                                                                             \
    X(ERROR_USAGE, 2, "usage")              /* request: option, value, existing output */      \
    X(ERROR_TOO_LARGE, 2, "too large")      /* request: asks for more than a stated limit */   \
    X(ERROR_BAD_DATA, 65, "bad data")       /* shard: content of a file is wrong or corrupt */ \
    X(ERROR_IO, 74, "input/output")         /* shard: the system refused or failed */          \
    X(ERROR_OUT_OF_MEMORY, 74, "no memory") /* shard */                                        \
    X(ERROR_TIMEOUT, 75, "timeout")         /* cluster: a peer did not answer in time */       \
    X(ERROR_PEER, 75, "peer lost")          /* cluster: transport failed */                    \
    X(ERROR_STOPPED, 75, "stopped")         /* request: a signal asked for it */               \
    X(ERROR_SELF_CHECK, 70, "self-check")   /* an answer of our own was found wrong */         \
    X(PARTIAL, 76, "partial")               /* all is done, by the rows that are there */

enum bsw_status {
#define X(name, exit_code, text) BSW_##name,
    BSW_STATUS_LIST(X)
#undef X
};

#define BSW_ERROR_MESSAGE_BYTES 512

struct bsw_error {
    enum bsw_status status;
    int rank;                              // where it was detected; -1 when the program runs alone
    char message[BSW_ERROR_MESSAGE_BYTES]; // one line, no newline, always terminated
};

#if defined(__GNUC__)
#define BSW_PRINTF(format_index, first) __attribute__((format(printf, format_index, first)))
#else
#define BSW_PRINTF(format_index, first)
#endif

// Writes the message into err (if not NULL) and returns status, so that `return bsw_fail(err, ...)`
// reads well. Control characters from hostile file names are replaced by '?', so that the message
// stays one line.
enum bsw_status bsw_fail(struct bsw_error *err, enum bsw_status status, const char *format, ...)
    BSW_PRINTF(3, 4);

// Puts a clause before the message of an error that is already set; returns its status.
enum bsw_status bsw_prefix(struct bsw_error *err, enum bsw_status status, const char *format, ...)
    BSW_PRINTF(3, 4);

const char *bsw_status_name(enum bsw_status status);

// Several threads work on numbered places: keeps the lowest that failed, whatever order they came
// to it in. {0} before the first.
struct bsw_first_failure {
    uint64_t place;
    enum bsw_status status; // BSW_OK: none so far
    struct bsw_error error;
};
// status is not BSW_OK. Any number of OpenMP threads at once.
void bsw_first_failure_note(struct bsw_first_failure *failure, uint64_t place,
                            enum bsw_status status, const struct bsw_error *error);
// Its status and error, BSW_OK if there was none; after the threads have met.
enum bsw_status bsw_first_failure_report(const struct bsw_first_failure *failure,
                                         struct bsw_error *err);

// Exit code of the main program for a status: 0, 2, 65, 70, 74, 75 or 76.
int bsw_status_exit_code(enum bsw_status status);

// Returns the status to the caller if it is not ok.
#define BSW_TRY(call)                                          \
    do {                                                       \
        enum bsw_status bsw_try_status_ = (call);              \
        if (bsw_try_status_ != BSW_OK) return bsw_try_status_; \
    } while (0)

// Sets the local variable `status` and jumps to label if the call fails.
#define BSW_TRY_GOTO(call, label)         \
    do {                                  \
        status = (call);                  \
        if (status != BSW_OK) goto label; \
    } while (0)

BSW_C_END
#endif
