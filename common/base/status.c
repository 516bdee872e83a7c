// SPDX-License-Identifier: Apache-2.0
#include "common/base/status.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_code;
} status_facts[] = {
#define X(name, exit_code, text) {text, exit_code},
    BSW_STATUS_LIST(X)
#undef X
};

static void make_one_line(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
    }
}

enum bsw_status bsw_fail(struct bsw_error *err, enum bsw_status status, const char *format, ...)
{
    if (!err) return status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err->message, sizeof err->message, format, arguments);
    va_end(arguments);
    make_one_line(err->message);
    err->status = status;
    err->rank = -1;
    return status;
}

enum bsw_status bsw_prefix(struct bsw_error *err, enum bsw_status status, const char *format, ...)
{
    if (!err) return status;
    char old[BSW_ERROR_MESSAGE_BYTES];
    err->status = status;
    memcpy(old, err->message, sizeof old);
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(err->message, sizeof err->message, format, arguments);
    va_end(arguments);
    if (used >= 0 && (size_t)used < sizeof err->message) {
        snprintf(err->message + used, sizeof err->message - (size_t)used, "%s", old);
    }
    make_one_line(err->message);
    return status;
}

const char *bsw_status_name(enum bsw_status status)
{
    return status_facts[status].name;
}

int bsw_status_exit_code(enum bsw_status status)
{
    return status_facts[status].exit_code;
}

void bsw_first_failure_note(struct bsw_first_failure *failure, uint64_t place,
                            enum bsw_status status, const struct bsw_error *error)
{
#pragma omp critical(bsw_first_failure)
    if (failure->status == BSW_OK || place < failure->place) {
        failure->place = place;
        failure->status = status;
        failure->error = *error;
    }
}

enum bsw_status bsw_first_failure_report(const struct bsw_first_failure *failure,
                                         struct bsw_error *err)
{
    if (failure->status != BSW_OK && err) *err = failure->error;
    return failure->status;
}
