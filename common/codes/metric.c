// SPDX-License-Identifier: Apache-2.0
#include "common/codes/metric.h"

#include <string.h>

static const char *const names[BSW_METRIC_NUM] = {"cosine", "ip", "l2"};

const char *bsw_metric_name(enum bsw_metric metric)
{
    return names[metric];
}

enum bsw_status bsw_metric_parse(const char *text, enum bsw_metric *out, struct bsw_error *err)
{
    for (int i = 0; i < BSW_METRIC_NUM; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum bsw_metric)i;
            return BSW_OK;
        }
    }
    return bsw_fail(err, BSW_ERROR_USAGE, "unknown metric '%s': use cosine, ip or l2", text);
}
