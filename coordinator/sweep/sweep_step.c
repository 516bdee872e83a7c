// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_step.h"

#include <string.h>

#include "common/base/process.h"
#include "common/job/stop_signal.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/calibrate/calibrate.h"
#include "coordinator/truth/truth.h"

enum { CHECK_SECONDS = 300 };

#define LONG_SECONDS 1e9

void bsw_sweep_found_deinit(struct bsw_sweep_found *found)
{
    bsw_results_deinit(&found->answers);
}

// ---- the steps, on every rank ----

static enum bsw_status make_truth(const struct bsw_sweep_team *team,
                                  const struct bsw_sweep_step *step, struct bsw_error *err)
{
    struct bsw_truth_stats stats;
    const struct bsw_truth_settings settings = {.base = team->settings->base,
                                                .queries = team->settings->queries,
                                                .rows = team->settings->rows,
                                                .query_rows = team->settings->query_rows,
                                                .exclude_self =
                                                    team->settings->searches.exclude_self,
                                                .out = step->path,
                                                .metric = bsw_metric_name(step->metric),
                                                .k = step->k,
                                                .force = 1,
                                                .progress = team->settings->progress,
                                                .num_threads = team->settings->num_threads,
                                                .level = team->settings->level};
    return bsw_truth_run(&settings, team->transport, &stats, err);
}

// Codes that no device makes are made on CPUs, and searched where the sweep is to search.
static const char *encode_device(const struct bsw_sweep_team *team,
                                 const struct bsw_sweep_step *step, const struct bsw_codec *codec)
{
    return step->lists > 0 || codec->table->host_encode ? "cpu" : team->settings->device;
}

// Anew even where a part is there: the time of a build is that of a whole one.
static enum bsw_status encode(const struct bsw_sweep_team *team, const struct bsw_sweep_step *step,
                              struct bsw_sweep_found *found, struct bsw_error *err)
{
    const struct bsw_codec *codec;
    BSW_TRY(bsw_codec_parse(step->codec, &codec, err));
    const struct bsw_encode_settings settings = {
        .base = team->settings->base,
        .rows = team->settings->rows,
        .index = step->path,
        .codec = codec,
        .metric = bsw_metric_name(step->metric),
        .code = {.bits = step->bits,
                 .model = step->model[0] ? step->model : NULL,
                 .parts = step->parts,
                 .has_radii = step->has_radii,
                 .seed = 1},
        .shards = team->settings->shards,
        .lists = step->lists,
        .residuals = step->residuals,
        .force = 1,
        .checks_codes = 1,
        .progress = team->settings->progress,
        .device.text = encode_device(team, step, codec),
        .level = team->settings->level};
    bsw_process_peak_reset();
    const struct bsw_calibrate_settings calibration = {.num_threads = team->settings->num_threads,
                                                       .pinning = team->settings->pinning};
    struct bsw_calibrate_stats calibrated;
    int is_made;
    BSW_TRY(bsw_encode_calibrated(&settings, step->is_calibrated ? &calibration : NULL,
                                  team->transport, &found->index, &calibrated, &is_made, err));
    found->index_peak_bytes = bsw_process_peak_bytes();
    return BSW_OK;
}

static void take_numbers(const struct bsw_search *search, struct bsw_sweep_found *found)
{
    found->search = bsw_search_stats(search);
    found->times = search->batches.times;
    found->memory_bytes = 0;
    for (int rank = 0; rank < search->transport->num_ranks; rank++)
        found->memory_bytes += search->ranks[rank].memory_bytes;
}

static enum bsw_status search(const struct bsw_sweep_team *team, const struct bsw_sweep_step *step,
                              struct bsw_sweep_found *found, struct bsw_error *err)
{
    struct bsw_search job;
    struct bsw_search_options options = {.index = step->path,
                                         .request = step->request,
                                         .device.text = team->settings->device,
                                         .pinning = team->settings->pinning,
                                         .check_seconds = CHECK_SECONDS};
    const struct bsw_search_sink sink = {.answers = bsw_memory_sink(&found->answers)};
    const struct bsw_search_run run = {.queries = team->settings->queries,
                                       .query_rows = team->settings->query_rows,
                                       .warmup = step->warmup,
                                       .repeat = step->repeat,
                                       .least_seconds = step->least_seconds,
                                       .sink = &sink};
    options.request.level = team->settings->level;
    options.request.num_threads = team->settings->num_threads;
    enum bsw_status status = bsw_search_open(&job, team->transport, &options, err);
    if (status == BSW_OK) status = bsw_search_run(&job, &run, err);
    if (status == BSW_OK && team->transport->rank == 0) take_numbers(&job, found);
    bsw_search_close(&job);
    return status;
}

static enum bsw_status take(const struct bsw_sweep_team *team, const struct bsw_sweep_step *step,
                            struct bsw_sweep_found *found, struct bsw_error *err)
{
    static const char *const names[] = {[BSW_SWEEP_TRUTH] = "groundtruth",
                                        [BSW_SWEEP_ENCODE] = "encode",
                                        [BSW_SWEEP_SEARCH] = "search"};
    enum bsw_status status = step->kind == BSW_SWEEP_TRUTH    ? make_truth(team, step, err)
                             : step->kind == BSW_SWEEP_ENCODE ? encode(team, step, found, err)
                                                              : search(team, step, found, err);
    bsw_stop_begin(NULL, NULL); // a step that had something to save has ended it
    if (status == BSW_OK || status == BSW_ERROR_STOPPED) return status;
    return bsw_prefix(err, status, "%s: ", names[step->kind]);
}

// Rank 0's step to all.
static enum bsw_status share(const struct bsw_sweep_team *team, struct bsw_sweep_step *step,
                             struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_STEP, .name = "a step of the sweep"};
    return bsw_share_record(team->transport, &message, step, sizeof *step, err);
}

// ---- rank 0 ----

enum bsw_status bsw_sweep_lead(struct bsw_sweep_team *team, const struct bsw_sweep_step *step,
                               struct bsw_sweep_found *found, struct bsw_error *err)
{
    team->others_know = team->transport->num_ranks == 1;
    struct bsw_sweep_step sent = *step;
    BSW_TRY(share(team, &sent, err));
    enum bsw_status status = take(team, step, found, err);
    team->others_know |= status != BSW_OK;
    return status;
}

enum bsw_status bsw_sweep_lead_end(struct bsw_sweep_team *team, enum bsw_status status,
                                   struct bsw_error *err)
{
    struct bsw_sweep_step end = {.kind = BSW_SWEEP_END, .status = status};
    struct bsw_error local;
    if (team->others_know || team->transport->broken != BSW_OK) return status;
    if (status != BSW_OK) memcpy(end.message, err->message, sizeof end.message);
    enum bsw_status sent = share(team, &end, &local);
    if (status == BSW_OK && sent != BSW_OK && err) *err = local;
    return status == BSW_OK ? sent : status;
}

// ---- the others ----

static enum bsw_status receive(const struct bsw_sweep_team *team, struct bsw_sweep_step *step,
                               struct bsw_error *err)
{
    struct bsw_transport *transport = team->transport;
    double timeout_seconds = transport->timeout_seconds;
    if (transport->heartbeat) transport->timeout_seconds = LONG_SECONDS;
    enum bsw_status status = share(team, step, err);
    transport->timeout_seconds = timeout_seconds;
    return status;
}

enum bsw_status bsw_sweep_follow(struct bsw_sweep_team *team, struct bsw_error *err)
{
    struct bsw_sweep_found found = {0};
    struct bsw_sweep_step step;
    enum bsw_status status;
    bsw_stop_begin(NULL, NULL); // rank 0 drains
    while ((status = receive(team, &step, err)) == BSW_OK && step.kind != BSW_SWEEP_END) {
        status = take(team, &step, &found, err);
        if (status != BSW_OK) break;
    }
    bsw_stop_end();
    bsw_sweep_found_deinit(&found);
    if (status != BSW_OK || step.status == BSW_OK) return status;
    status = bsw_fail(err, step.status, "%s", step.message);
    if (err) err->rank = 0;
    return status;
}
