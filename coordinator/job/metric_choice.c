// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/metric_choice.h"

#include <string.h>

static enum bsw_metric metric_of(const char *word)
{
    int metric = 0;
    while (metric < BSW_METRIC_NUM && strcmp(bsw_metrics[metric].name, word) != 0 &&
           strcmp(bsw_metrics[metric].in_files, word) != 0)
        metric++;
    return (enum bsw_metric)metric;
}

// *out: BSW_METRIC_NUM as long as nothing says it. unknown: the last word that is none of ours.
static enum bsw_status ask(const bsw_vectors *vectors, enum bsw_metric *out,
                           char unknown[BSW_DISTANCE_BYTES], struct bsw_error *err)
{
    char word[BSW_DISTANCE_BYTES];
    BSW_TRY(bsw_vectors_distance(vectors, word, err));
    if (*word == '\0') return BSW_OK;
    enum bsw_metric said = metric_of(word);
    if (said == BSW_METRIC_NUM) {
        memcpy(unknown, word, sizeof word);
    } else if (*out == BSW_METRIC_NUM) {
        *out = said;
    } else if (*out != said) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "metric %s: %s says its distance is %s (%s); convert --out FILE writes "
                        "its rows to a file that says nothing",
                        bsw_metric_name(*out), bsw_vectors_name(vectors), word,
                        bsw_metric_name(said));
    }
    return BSW_OK;
}

enum bsw_status bsw_metric_choose(const char *given, const bsw_vectors *base,
                                  const bsw_vectors *queries, enum bsw_metric *out,
                                  struct bsw_error *err)
{
    char unknown[BSW_DISTANCE_BYTES] = "";
    *out = BSW_METRIC_NUM;
    if (given) BSW_TRY(bsw_metric_parse(given, out, err));
    BSW_TRY(ask(base, out, unknown, err));
    if (queries) BSW_TRY(ask(queries, out, unknown, err));
    if (*out != BSW_METRIC_NUM) return BSW_OK;
    if (*unknown)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s says its distance is '%s', none of angular, euclidean, dot: --metric "
                        "cosine, ip or l2 is needed",
                        bsw_vectors_name(base), unknown);
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--metric cosine, ip or l2 is needed: %s does not say what is nearest",
                    bsw_vectors_name(base));
}
