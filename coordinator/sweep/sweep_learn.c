#include "coordinator/sweep/sweep_learn.h"

#include "common/base/clock.h"
#include "coordinator/train/train.h"

// What `train --base` does where nothing is said.
static struct bsw_train_settings usual_training(void)
{
    return (struct bsw_train_settings){.estimator = BSW_RBE_VARIANT,
                                       .sample = 32768,
                                       .batch = 512,
                                       .patience = 5,
                                       .seed = 1,
                                       .checkpoint_batches = 1000,
                                       .decay = 0.93,
                                       .slope_growth = 1.1,
                                       .validation = 0.05};
}

enum bsw_status bsw_sweep_learn(const struct bsw_sweep_run *run,
                                const struct bsw_sweep_point *point, const char *model,
                                double *seconds, struct bsw_error *err)
{
    struct bsw_transport alone = {.timeout_seconds = run->team.transport->timeout_seconds};
    struct bsw_train_settings settings = usual_training();
    struct bsw_train_stats stats;
    double since = bsw_clock_seconds();
    settings.base = run->team.base;
    settings.has_metric = 1;
    settings.metric = run->metric;
    settings.code_dims = run->dims;
    settings.document_planes = (uint64_t)point->bits;
    settings.query_planes = point->query_bits;
    settings.model = model;
    settings.force = 1;
    settings.level = run->team.level;
    bsw_transport_local_init(&alone);
    enum bsw_status status = bsw_train_run(&settings, &alone, &stats, err);
    bsw_train_stats_deinit(&stats);
    bsw_transport_close(&alone, 0);
    *seconds = bsw_clock_seconds() - since;
    return status == BSW_OK ? BSW_OK : bsw_prefix(err, status, "train: ");
}
