#include "coordinator/sweep/sweep_learn.h"

#include "common/base/clock.h"
#include "coordinator/train/train.h"

enum bsw_status bsw_sweep_learn(const struct bsw_sweep_run *run,
                                const struct bsw_sweep_point *point, const char *model,
                                double *seconds, struct bsw_error *err)
{
    struct bsw_transport alone = {.timeout_seconds = run->team.transport->timeout_seconds};
    struct bsw_train_settings settings = bsw_train_settings_default();
    struct bsw_train_stats stats;
    double since = bsw_clock_seconds();
    settings.pairs.base = run->team.settings->base;
    settings.has_metric = 1;
    settings.pairs.metric = run->metric;
    settings.code_dims = run->dims;
    settings.document_planes = (uint64_t)point->bits;
    settings.query_planes = point->query_bits;
    settings.model = model;
    settings.force = 1;
    settings.pairs.level = run->team.settings->level;
    bsw_transport_local_init(&alone);
    enum bsw_status status = bsw_train_run(&settings, &alone, &stats, err);
    bsw_train_stats_deinit(&stats);
    bsw_transport_close(&alone, 0);
    *seconds = bsw_clock_seconds() - since;
    return status == BSW_OK ? BSW_OK : bsw_prefix(err, status, "train: ");
}
