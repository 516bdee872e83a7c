// SPDX-License-Identifier: Apache-2.0
#include "common/codes/metric.h"

#include <string.h>

const struct bsw_metric_facts bsw_metrics[BSW_METRIC_NUM] = {
    [BSW_METRIC_COSINE] = {"cosine", "angular"},
    [BSW_METRIC_IP] = {"ip", "dot"},
    [BSW_METRIC_L2] = {"l2", "euclidean"}};

const char *bsw_metric_name(enum bsw_metric metric)
{
    return bsw_metrics[metric].name;
}

enum bsw_status bsw_metric_parse(const char *text, enum bsw_metric *out, struct bsw_error *err)
{
    for (int i = 0; i < BSW_METRIC_NUM; i++) {
        if (strcmp(text, bsw_metrics[i].name) == 0) {
            *out = (enum bsw_metric)i;
            return BSW_OK;
        }
    }
    return bsw_fail(err, BSW_ERROR_USAGE, "unknown metric '%s': use cosine, ip or l2", text);
}
