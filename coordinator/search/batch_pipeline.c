// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/batch_pipeline.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/job/stop_signal.h"

// ---- steps, on either thread, or on the only one ----

static void pack(struct bsw_batch_pipeline *pipeline, int num_threads)
{
    struct bsw_pipeline_step *step = &pipeline->pack;
    double started = bsw_clock_seconds();
    step->status =
        bsw_batch_search_pack(pipeline->search, step->part.first, (size_t)step->part.count,
                              num_threads, step->batch, &step->error);
    step->times = (struct bsw_search_times){.encode = bsw_clock_seconds() - started};
}

static int is_range(const struct bsw_batch_pipeline *pipeline)
{
    return pipeline->search->service->settings.is_range;
}

static enum bsw_status put(const struct bsw_batch_pipeline *pipeline,
                           const struct bsw_search_batch *batch, struct bsw_error *err)
{
    const struct bsw_pipeline_options *o = &pipeline->options;
    const struct bsw_range_answers *range = &pipeline->range;
    if (!is_range(pipeline))
        return o->put(o->context, batch->first, batch->count, pipeline->ids, pipeline->values, err);
    return o->put_range(o->context, batch->first, batch->count,
                        (const uint64_t *)(const void *)range->lims.data,
                        (const int64_t *)(const void *)range->ids.data,
                        (const float *)(const void *)range->values.data, err);
}

static void finish(struct bsw_batch_pipeline *pipeline, int num_threads)
{
    struct bsw_pipeline_step *step = &pipeline->finish;
    double started = bsw_clock_seconds();
    step->status = is_range(pipeline)
                       ? bsw_batch_search_finish_range(pipeline->search, step->batch, num_threads,
                                                       &pipeline->range, &step->error)
                       : bsw_batch_search_finish(pipeline->search, step->batch, num_threads,
                                                 pipeline->ids, pipeline->values, &step->error);
    double finished = bsw_clock_seconds();
    if (step->status == BSW_OK) step->status = put(pipeline, step->batch, &step->error);
    step->times = (struct bsw_search_times){.finish = finished - started,
                                            .write = bsw_clock_seconds() - finished};
}

static void run_step(struct bsw_batch_pipeline *pipeline, const struct bsw_pipeline_step *step,
                     int num_threads)
{
    if (step == &pipeline->pack)
        pack(pipeline, num_threads);
    else
        finish(pipeline, num_threads);
}

static void account(struct bsw_batch_pipeline *pipeline, const struct bsw_pipeline_step *step,
                    int is_beside)
{
    struct bsw_search_times *times = &pipeline->search->times;
    times->encode += step->times.encode;
    times->finish += step->times.finish;
    times->write += step->times.write;
    if (is_beside) times->overlapped += step->times.encode + step->times.finish + step->times.write;
}

// With all threads, on a batch of its own.
static enum bsw_status run_alone(struct bsw_batch_pipeline *pipeline,
                                 struct bsw_pipeline_step *step, struct bsw_search_batch *batch,
                                 struct bsw_error *err)
{
    step->batch = batch;
    run_step(pipeline, step, pipeline->options.num_threads);
    account(pipeline, step, 0);
    if (step->status != BSW_OK && err) *err = step->error;
    return step->status;
}

// ---- the background thread ----

static void *run_background(void *context)
{
    struct bsw_batch_pipeline *pipeline = context;
    bsw_thread_unpin(pipeline->options.pinning);
    pthread_mutex_lock(&pipeline->lock);
    while (!pipeline->is_ending) {
        struct bsw_pipeline_step *step =
            pipeline->finish.state == BSW_PIPELINE_QUEUED ? &pipeline->finish
            : pipeline->pack.state == BSW_PIPELINE_QUEUED ? &pipeline->pack
                                                          : NULL;
        if (!step) {
            pthread_cond_wait(&pipeline->changed, &pipeline->lock);
            continue;
        }
        pthread_mutex_unlock(&pipeline->lock);
        run_step(pipeline, step, 1);
        pthread_mutex_lock(&pipeline->lock);
        step->state = BSW_PIPELINE_DONE;
        pthread_cond_broadcast(&pipeline->changed);
    }
    pthread_mutex_unlock(&pipeline->lock);
    return NULL;
}

static void run_now(struct bsw_batch_pipeline *pipeline, struct bsw_pipeline_step *step)
{
    run_step(pipeline, step, pipeline->options.num_threads);
    step->state = BSW_PIPELINE_DONE;
}

// Finishing `batch` (or not), then coding the next queries into it (or not): what is in it is used
// up by then. Without a background thread at once.
static void queue(struct bsw_batch_pipeline *pipeline, struct bsw_search_batch *batch,
                  int is_finished, int is_packed)
{
    if (!pipeline->has_thread) {
        pipeline->finish.batch = pipeline->pack.batch = batch;
        if (is_finished) run_now(pipeline, &pipeline->finish);
        if (is_packed) run_now(pipeline, &pipeline->pack);
        return;
    }
    pthread_mutex_lock(&pipeline->lock);
    pipeline->finish.batch = pipeline->pack.batch = batch;
    if (is_finished) pipeline->finish.state = BSW_PIPELINE_QUEUED;
    if (is_packed) pipeline->pack.state = BSW_PIPELINE_QUEUED;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->lock);
}

static void wait_for(struct bsw_batch_pipeline *pipeline, const struct bsw_pipeline_step *step)
{
    pthread_mutex_lock(&pipeline->lock);
    while (step->state == BSW_PIPELINE_QUEUED) {
        pthread_cond_wait(&pipeline->changed, &pipeline->lock);
    }
    pthread_mutex_unlock(&pipeline->lock);
}

// Waits for a step that may have been queued, counts its time, and makes it ready for another
// batch.
static enum bsw_status collect(struct bsw_batch_pipeline *pipeline, struct bsw_pipeline_step *step)
{
    wait_for(pipeline, step);
    if (step->state == BSW_PIPELINE_IDLE) return BSW_OK;
    step->state = BSW_PIPELINE_IDLE;
    account(pipeline, step, pipeline->has_thread);
    return step->status;
}

// How finishing the batch before went, for the agreement on this one.
static enum bsw_status settle(void *context, struct bsw_error *err)
{
    struct bsw_batch_pipeline *pipeline = context;
    const struct bsw_pipeline_step *step = &pipeline->finish;
    wait_for(pipeline, step);
    if (step->state == BSW_PIPELINE_IDLE || step->status == BSW_OK) return BSW_OK;
    if (err) *err = step->error;
    return step->status;
}

// ---- all batches ----

enum bsw_status bsw_batch_pipeline_init(struct bsw_batch_pipeline *pipeline,
                                        struct bsw_batch_search *search,
                                        const struct bsw_pipeline_options *options,
                                        struct bsw_error *err)
{
    size_t places;
    *pipeline = (struct bsw_batch_pipeline){.search = search,
                                            .options = *options,
                                            .whole = {0, search->queries->num_queries},
                                            .lock = PTHREAD_MUTEX_INITIALIZER,
                                            .changed = PTHREAD_COND_INITIALIZER};
    if (!options->parts.parts)
        pipeline->options.parts = (struct bsw_search_parts){&pipeline->whole, 1, 0};
    for (int i = 0; i < 2; i++) BSW_TRY(bsw_search_batch_init(search, &pipeline->batches[i], err));
    if (!bsw_multiply_size(options->batch, (size_t)search->service->settings.k, &places))
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "a batch of %zu queries", options->batch);
    BSW_TRY(bsw_allocate(&pipeline->ids, places, sizeof *pipeline->ids, "answers", err));
    BSW_TRY(bsw_allocate(&pipeline->values, places, sizeof *pipeline->values, "answers", err));
    search->settle = settle;
    search->settle_context = pipeline;
    if (!options->is_overlapped) return BSW_OK;
    int failure = pthread_create(&pipeline->thread, NULL, run_background, pipeline);
    pipeline->has_thread = failure == 0;
    if (failure == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "cannot start a thread: %s", strerror(failure));
}

void bsw_batch_pipeline_deinit(struct bsw_batch_pipeline *pipeline)
{
    if (!pipeline->search) return;
    if (pipeline->has_thread) {
        pthread_mutex_lock(&pipeline->lock);
        pipeline->is_ending = 1;
        pthread_cond_broadcast(&pipeline->changed);
        pthread_mutex_unlock(&pipeline->lock);
        pthread_join(pipeline->thread, NULL);
    }
    pipeline->search->settle = NULL;
    for (int i = 0; i < 2; i++) bsw_search_batch_deinit(pipeline->search, &pipeline->batches[i]);
    bsw_free(&pipeline->ids);
    bsw_free(&pipeline->values);
    bsw_range_answers_deinit(&pipeline->range);
    pipeline->search = NULL;
}

// Where a pass is among the parts.
struct place {
    size_t part;
    uint64_t done; // of that part
};

// The queries of the next batch; 0: there is none.
static int next_part(const struct bsw_pipeline_options *o, struct place *place,
                     struct bsw_query_part *out)
{
    for (; place->part < o->parts.num_parts; *place = (struct place){place->part + 1, 0}) {
        const struct bsw_query_part *part = &o->parts.parts[place->part];
        uint64_t left = part->count - place->done;
        if (left == 0) continue;
        *out =
            (struct bsw_query_part){part->first + place->done, left < o->batch ? left : o->batch};
        place->done += out->count;
        return 1;
    }
    return 0;
}

// To be packed next, into `batch`, which is to say whether one follows.
static int take_next(struct bsw_batch_pipeline *pipeline, struct place *place,
                     struct bsw_search_batch *batch)
{
    struct bsw_query_part following;
    if (!next_part(&pipeline->options, place, &pipeline->pack.part)) return 0;
    struct place peek = *place;
    batch->is_followed = next_part(&pipeline->options, &peek, &following);
    return 1;
}

// After the last batch, of which `packed` is how coding the one after it went, if that was tried.
static enum bsw_status finish_last(struct bsw_batch_pipeline *pipeline,
                                   struct bsw_search_batch *batch, enum bsw_status packed,
                                   int is_stopped, struct bsw_error *err)
{
    BSW_TRY(run_alone(pipeline, &pipeline->finish, batch, err));
    if (packed != BSW_OK && err) *err = pipeline->pack.error;
    return packed != BSW_OK ? packed : is_stopped ? bsw_stop_fail(err) : BSW_OK;
}

enum bsw_status bsw_batch_pipeline_run(struct bsw_batch_pipeline *pipeline, struct bsw_error *err)
{
    struct bsw_batch_search *search = pipeline->search;
    struct bsw_search_batch *batch = &pipeline->batches[0], *other = &pipeline->batches[1];
    struct place place = {0};
    if (!take_next(pipeline, &place, batch)) return BSW_OK;
    if (bsw_stop_is_asked()) return bsw_stop_fail(err);
    BSW_TRY(run_alone(pipeline, &pipeline->pack, batch, err));
    BSW_TRY(bsw_batch_search_begin(search, batch, err));
    for (int is_first = 1;; is_first = 0) {
        int has_next = take_next(pipeline, &place, other);
        queue(pipeline, other, !is_first, has_next);
        bsw_batch_search_scan_begun(search, batch);
        enum bsw_status packed = collect(pipeline, &pipeline->pack), status = BSW_OK;
        int is_stopped = has_next && bsw_stop_is_asked();
        int goes_on = has_next && packed == BSW_OK && !is_stopped;
        if (has_next)
            status = goes_on ? bsw_batch_search_begin(search, other, err)
                             : bsw_batch_search_pause(search, err);
        if (status == BSW_OK) status = bsw_batch_search_complete(search, batch, err);
        collect(pipeline, &pipeline->finish); // its error is that of complete, which settled it
        BSW_TRY(status);
        if (!goes_on) return finish_last(pipeline, batch, packed, is_stopped, err);
        struct bsw_search_batch *swap = batch;
        batch = other;
        other = swap;
    }
}
