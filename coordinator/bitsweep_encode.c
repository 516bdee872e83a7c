// SPDX-License-Identifier: Apache-2.0
// bitsweep.h: making an index.
#include <cblas.h>
#include <stddef.h>
#include <string.h>

#include "coordinator/bitsweep_call.h"
#include "coordinator/calibrate/calibrate.h"
#include "shard/codecs/codec.h"

_Static_assert(BITSWEEP_AUTO == BSW_LISTS_AUTO, "of lists");

void bitsweep_encode_defaults_of(struct bitsweep_encode_settings *settings, size_t size)
{
    bsw_library_default(settings, size, NULL, 0);
}

struct encode_call {
    struct bsw_library_call call;
    struct bitsweep_encode_settings asked;
    struct bsw_encode_settings settings;
    struct bsw_calibrate_settings calibration;
    int is_calibrated;
    struct bsw_library_rows rows, queries;
    struct bsw_progress progress; // nothing is shown; the caller is told
    struct bsw_number_sets tags;  // rank 0
};

static enum bsw_status take_codes(const struct bitsweep_encode_settings *asked,
                                  struct bsw_encode_settings *out, struct bsw_error *err)
{
    struct bsw_codec_settings *code = &out->code;
    unsigned axes, unused;
    BSW_TRY(bsw_codec_parse(asked->codec ? asked->codec : "saq", &out->codec, err));
    BSW_TRY(bsw_setting_choice("axes", "principal|random", asked->axes, &axes, err));
    BSW_TRY(bsw_setting_choice("rotation", "opq|random|none", asked->rotation, &unused, err));
    BSW_TRY(bsw_setting_choice("metric", BSW_METRIC_NAMES, asked->metric, &unused, err));
    BSW_TRY(bsw_setting_count("subspaces", asked->subspaces, 0, BSW_MAX_DIMS, err));
    *code = (struct bsw_codec_settings){.bits = asked->bits,
                                        .segments = asked->segments,
                                        .random_axes = (int)axes,
                                        .has_scale = asked->scale != 0,
                                        .scale = asked->scale,
                                        .model = asked->model,
                                        .parts = asked->subspaces,
                                        .rotation = asked->rotation,
                                        .seed = asked->seed ? asked->seed : 1};
    if (asked->stage_dims == 0) return BSW_OK;
    code->stage = BSW_STAGE_GIVEN;
    code->stage_dims = asked->stage_dims == BITSWEEP_NONE ? 0 : asked->stage_dims;
    return BSW_OK;
}

static enum bsw_status take_rows(const struct bitsweep_encode_settings *asked,
                                 struct bsw_encode_settings *out, struct bsw_error *err)
{
    uint64_t first = asked->first_row, num = asked->num_rows;
    out->rows = (struct bsw_row_range){first, num == 0 ? UINT64_MAX : first + num};
    if (num == 0 || out->rows.last > first) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--rows: %llu from %llu on end beyond 2^64",
                    (unsigned long long)num, (unsigned long long)first);
}

// Whether there will be a table of recalls, and of which queries.
static enum bsw_status take_calibration(struct encode_call *c, struct bsw_error *err)
{
    const struct bitsweep_encode_settings *asked = &c->asked;
    int is_off = asked->calibrate_rows == BITSWEEP_NONE;
    c->is_calibrated = asked->lists > 0 && (!is_off || asked->calibrate_queries);
    if (asked->calibrate_rows > 0 && asked->calibrate_queries)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--calibrate-queries: --calibrate is for rows as queries");
    if (asked->lists == 0 && (asked->calibrate_queries || (asked->calibrate_rows > 0 && !is_off)))
        return bsw_fail(err, BSW_ERROR_USAGE, "--calibrate%s: there are no lists without --lists",
                        asked->calibrate_queries ? "-queries" : "");
    if (!is_off)
        BSW_TRY(
            bsw_setting_count("calibrate", asked->calibrate_rows, 0, BSW_CALIBRATE_MOST_ROWS, err));
    c->calibration = (struct bsw_calibrate_settings){.num_threads = c->call.num_threads};
    if (!is_off) c->calibration.num_rows = asked->calibrate_rows;
    if (!asked->calibrate_queries) return BSW_OK;
    BSW_TRY(bsw_library_lend(asked->calibrate_queries, BSW_MEMORY_PREFIX "calibrate-queries",
                             &c->queries, err));
    c->calibration.queries = c->queries.name;
    return BSW_OK;
}

static enum bsw_status prepare(struct encode_call *c, const char *folder,
                               const struct bitsweep_rows *rows, struct bsw_error *err)
{
    const struct bitsweep_encode_settings *asked = &c->asked;
    const char *device;
    unsigned residual;
    BSW_TRY(bsw_fork_choose_device(asked->device, &device, err));
    c->settings =
        (struct bsw_encode_settings){.index = folder,
                                     .metric = asked->metric,
                                     .shards = asked->shards,
                                     .lists = asked->lists,
                                     .copy_vectors = asked->copy_vectors,
                                     .drop_bad_rows = asked->drop_bad_rows,
                                     .force = asked->force,
                                     .resume = asked->resume,
                                     .device = {.text = device, .most_bytes = asked->device_memory},
                                     .level = bsw_cpu_level_detect(),
                                     .checks_codes = !asked->skip_check,
                                     .ids = c->call.transport->rank == 0 ? asked->ids : NULL,
                                     .num_ids = asked->num_ids,
                                     .progress = &c->progress};
    BSW_TRY(bsw_library_check_threads(asked->threads, err));
    BSW_TRY(bsw_library_lend(rows, BSW_MEMORY_PREFIX "base", &c->rows, err));
    c->settings.base = c->rows.name;
    if (!rows->file) c->settings.copy_vectors = 1; // there is no file to refine from
    BSW_TRY(take_codes(asked, &c->settings, err));
    BSW_TRY(take_rows(asked, &c->settings, err));
    BSW_TRY(bsw_setting_choice("residual", "auto|yes|no", asked->residual, &residual, err));
    c->settings.residuals = (enum bsw_residuals)residual;
    if (asked->tags && c->call.transport->rank == 0) {
        BSW_TRY(bsw_row_tags_of_file(asked->tags, &c->tags, err));
        c->settings.tags = &c->tags;
    }
    return take_calibration(c, err);
}

static enum bsw_status tell(const char *folder, struct bitsweep_index_info *info,
                            struct bsw_error *err)
{
    struct bsw_manifest manifest;
    struct bitsweep_index_info made;
    if (!info) return BSW_OK;
    BSW_TRY(bsw_manifest_read(folder, &manifest, err));
    bsw_library_describe(&manifest, &made);
    bsw_manifest_deinit(&manifest);
    bsw_library_tell(info, &made, sizeof made);
    return BSW_OK;
}

// OpenBLAS has one number of threads for the whole process, and sums depend on it: the first of
// several calls at once sets it to one, the last one puts it back.
static pthread_mutex_t blas_lock = PTHREAD_MUTEX_INITIALIZER;
static int num_encodes, blas_threads;

static void begin_blas(void)
{
    pthread_mutex_lock(&blas_lock);
    if (num_encodes++ == 0) {
        blas_threads = openblas_get_num_threads();
        openblas_set_num_threads(1);
    }
    pthread_mutex_unlock(&blas_lock);
}

static void end_blas(void)
{
    pthread_mutex_lock(&blas_lock);
    if (--num_encodes == 0) openblas_set_num_threads(blas_threads);
    pthread_mutex_unlock(&blas_lock);
}

static uint64_t digest(const struct bitsweep_encode_settings *s)
{
    const char *const texts[] = {s->codec,    s->metric, s->segments, s->axes,
                                 s->rotation, s->model,  s->residual};
    const uint64_t counts[] = {s->subspaces,
                               s->stage_dims,
                               s->seed,
                               s->shards,
                               s->lists,
                               s->calibrate_rows,
                               s->calibrate_queries != NULL,
                               s->first_row,
                               s->num_rows,
                               s->copy_vectors != 0,
                               s->drop_bad_rows != 0,
                               s->force != 0,
                               s->resume != 0,
                               s->skip_check != 0};
    const double numbers[] = {s->bits, s->scale};
    return bsw_library_digest(&(struct bsw_library_alike){
        texts, sizeof texts / sizeof *texts, counts, sizeof counts / sizeof *counts, numbers,
        sizeof numbers / sizeof *numbers});
}

static enum bsw_status encode(struct encode_call *c, struct bsw_error *err)
{
    struct bsw_encode_stats stats;
    struct bsw_calibrate_stats calibrated;
    int is_made;
    begin_blas();
    enum bsw_status status =
        bsw_encode_calibrated(&c->settings, c->is_calibrated ? &c->calibration : NULL,
                              c->call.transport, &stats, &calibrated, &is_made, err);
    end_blas();
    return status;
}

int bitsweep_encode(const char *folder, const struct bitsweep_rows *rows,
                    const struct bitsweep_encode_settings *settings,
                    struct bitsweep_index_info *info, struct bitsweep_error *error)
{
    struct encode_call c = {0};
    struct bsw_error err = {.rank = -1};
    bitsweep_encode_defaults(&c.asked);
    enum bsw_status status = bsw_library_take_settings(
        &c.asked, sizeof c.asked, offsetof(struct bitsweep_encode_settings, ranks), settings, &err);
    status = bsw_library_call_begin(&c.call, &BSW_CALL_NEEDS(&c.asked, status, &err));
    if (status == BSW_OK) status = prepare(&c, folder, rows, &c.call.err);
    status = bsw_library_call_meet(&c.call, status, "encode", digest(&c.asked));
    if (status == BSW_OK) status = encode(&c, &c.call.err);
    if (status == BSW_OK)
        status =
            bsw_transport_agree(c.call.transport, tell(folder, info, &c.call.err), &c.call.err);
    bsw_library_take_back(&c.queries);
    bsw_library_take_back(&c.rows);
    bsw_number_sets_deinit(&c.tags);
    return bsw_library_call_end(&c.call, status, error);
}
