// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/setting_checks.h"

#include <string.h>

#include "common/base/number_parse.h"

enum bsw_status bsw_setting_choice(const char *option, const char *choices, const char *text,
                                   unsigned *out, struct bsw_error *err)
{
    size_t length = text ? strlen(text) : 0;
    unsigned place = 0;
    *out = 0;
    if (!text) return BSW_OK;
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        if (length > 0 && strcspn(at, "|") == length && memcmp(at, text, length) == 0) {
            *out = place;
            return BSW_OK;
        }
        place++;
    }
    char words[BSW_CHOICES_BYTES];
    return bsw_fail(err, BSW_ERROR_USAGE, "unknown --%s '%s': use %s", option, text,
                    bsw_choices_text(choices, words));
}

enum bsw_status bsw_setting_number(const char *option, double value, double least, double most,
                                   struct bsw_error *err)
{
    if (value >= least && value <= most) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--%s %.10g: must be %.10g to %.10g", option, value,
                    least, most);
}

enum bsw_status bsw_setting_count(const char *option, uint64_t value, uint64_t least, uint64_t most,
                                  struct bsw_error *err)
{
    if (value >= least && value <= most) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--%s %llu: must be %llu to %llu", option,
                    (unsigned long long)value, (unsigned long long)least, (unsigned long long)most);
}

enum bsw_status bsw_setting_default_threads(int threads, struct bsw_error *err)
{
    if (threads >= 1 && threads <= BSW_MAX_THREADS) return BSW_OK;
    return bsw_fail(
        err, BSW_ERROR_USAGE,
        "OpenMP has %d threads, must be 1 to %d: change OMP_NUM_THREADS or give --threads", threads,
        BSW_MAX_THREADS);
}
