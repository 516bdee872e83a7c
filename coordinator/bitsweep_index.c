// SPDX-License-Identifier: Apache-2.0
// bitsweep.h: searching an index.
//
// A search is opened and loaded for one request, and stays for further ones that ask for the same,
// or on CPUs of one process for the same but for the lists that are looked at; another request
// takes its place.
#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/clock.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "coordinator/bitsweep_index.h"
#include "coordinator/job/index_rows.h"
#include "coordinator/job/moved_source.h"
#include "coordinator/job/same_input.h"
#include "coordinator/search/search_options.h"

_Static_assert(BITSWEEP_ALL == BSW_PROBE_ALL, "of probe");

// ---- open ----

void bitsweep_open_defaults_of(struct bitsweep_open_settings *settings, size_t size)
{
    bsw_library_default(settings, size, NULL, 0);
}

void bitsweep_search_defaults_of(struct bitsweep_search_settings *settings, size_t size)
{
    const struct bitsweep_search_settings defaults = {.k = BSW_SEARCH_K};
    bsw_library_default(settings, size, &defaults, sizeof defaults);
}

void bitsweep_search_stats_init_of(struct bitsweep_search_stats *stats, size_t size)
{
    bsw_library_default(stats, size, NULL, 0);
}

static enum bsw_status copy_text(const char *text, char **out, struct bsw_error *err)
{
    size_t bytes = strlen(text) + 1;
    BSW_TRY(bsw_allocate(out, bytes, 1, "index", err));
    memcpy(*out, text, bytes);
    return BSW_OK;
}

static void destroy(bitsweep_index *index)
{
    if (!index) return;
    bsw_search_close(&index->search);
    if (index->transport == &index->own) bsw_transport_close(&index->own, 0);
    pthread_mutex_destroy(&index->lock);
    bsw_free(&index->folder);
    bsw_free(&index->device);
    bsw_free(&index->base);
    bsw_free(&index);
}

static enum bsw_status make(const char *folder, const struct bitsweep_open_settings *settings,
                            bitsweep_index **out, struct bsw_error *err)
{
    BSW_TRY(bsw_allocate_zero(out, 1, sizeof **out, "index", err));
    bitsweep_index *index = *out;
    const char *device;
    pthread_mutex_init(&index->lock, NULL);
    index->generation = bsw_fork_generation();
    index->settings = *settings;
    bitsweep_search_stats_init(&index->stats);
    index->transport = settings->ranks ? &settings->ranks->transport : &index->own;
    if (!settings->ranks) bsw_transport_local_init(&index->own);
    if (!folder) return bsw_fail(err, BSW_ERROR_USAGE, "no folder of an index is given");
    BSW_TRY(copy_text(folder, &index->folder, err));
    BSW_TRY(bsw_fork_choose_device(settings->device, &device, err));
    BSW_TRY(copy_text(device, &index->device, err));
    if (settings->base) BSW_TRY(copy_text(settings->base, &index->base, err));
    BSW_TRY(bsw_library_check_threads(settings->threads, err));
    return bsw_setting_number("check-every", settings->check_seconds, 0, 1e9, err);
}

enum bsw_status bsw_library_index_look(bitsweep_index *index, bsw_transport *transport,
                                       struct bsw_error *err)
{
    struct bsw_manifest manifest;
    uint64_t digest = 0;
    enum bsw_status status = bsw_manifest_read(index->folder, &manifest, err);
    if (status == BSW_OK) {
        bsw_library_describe(&manifest, &index->info);
        digest = manifest.build_digest;
        bsw_manifest_deinit(&manifest);
    }
    BSW_TRY(bsw_transport_agree(transport, status, err));
    return bsw_same_input_agree(transport, digest, index->folder, err);
}

static uint64_t digest_of(const struct bitsweep_open_settings *s)
{
    const uint64_t counts[] = {s->is_unchecked != 0};
    return bsw_library_digest(&(struct bsw_library_alike){
        .counts = counts, .num_counts = 1, .numbers = &s->check_seconds, .num_numbers = 1});
}

enum bsw_status bsw_library_index_adopt(bitsweep_index *index, struct bsw_error *err)
{
    if (index->search.device.device)
        return bsw_fork_check_own(index->generation, "the index was loaded on a GPU", err);
    if (index->generation == bsw_fork_generation()) return BSW_OK;
    index->generation = bsw_fork_generation();
    index->is_open = 0;
    return BSW_OK;
}

int bitsweep_open(const char *folder, const struct bitsweep_open_settings *settings,
                  bitsweep_index **out, struct bitsweep_error *error)
{
    struct bitsweep_open_settings asked;
    struct bsw_library_call call;
    struct bsw_error err = {.rank = -1};
    bitsweep_index *index = NULL;
    *out = NULL;
    bitsweep_open_defaults(&asked);
    enum bsw_status status = bsw_library_take_settings(
        &asked, sizeof asked, offsetof(struct bitsweep_open_settings, ranks), settings, &err);
    status = bsw_library_call_begin(
        &call, &(struct bsw_library_call_needs){
                   .status = status, .threads = asked.threads, .ranks = asked.ranks, .err = &err});
    if (status == BSW_OK) status = make(folder, &asked, &index, &call.err);
    if (index) index->num_threads = call.num_threads;
    status = bsw_library_call_meet(&call, status, "open", digest_of(&asked));
    if (status == BSW_OK) status = bsw_library_index_look(index, call.transport, &call.err);
    if (status == BSW_OK)
        *out = index;
    else
        destroy(index);
    return bsw_library_call_end(&call, status, error);
}

void bitsweep_close(bitsweep_index **index)
{
    struct bsw_library_call call;
    bitsweep_index *own = *index;
    *index = NULL;
    if (!own) return;
    enum bsw_status status = bsw_library_call_begin(
        &call, &(struct bsw_library_call_needs){.ranks = own->settings.ranks});
    // One of a parent that cannot be closed here is left to it.
    if (status == BSW_OK && bsw_library_index_adopt(own, NULL) == BSW_OK) destroy(own);
    bsw_library_call_end(&call, BSW_OK, NULL);
}

// 0: nobody else is there, but a thread that is gone may have locked it.
static int lock(bitsweep_index *index)
{
    if (bsw_fork_check(NULL) != BSW_OK) return 0;
    pthread_mutex_lock(&index->lock);
    return 1;
}

void bitsweep_info(bitsweep_index *index, struct bitsweep_index_info *info)
{
    int is_locked = lock(index);
    bsw_library_tell(info, &index->info, sizeof index->info);
    if (is_locked) pthread_mutex_unlock(&index->lock);
}

// ---- calls with an index ----

enum bsw_status bsw_library_index_begin(bitsweep_index *index, struct bsw_library_call *call,
                                        const struct bsw_library_call_needs *needs)
{
    enum bsw_status status = bsw_library_call_begin(call, needs);
    if (call->is_cut_off) return status;
    pthread_mutex_lock(&index->lock);
    if (!index->settings.ranks) call->transport = index->transport;
    return status;
}

int bsw_library_index_end(bitsweep_index *index, struct bsw_library_call *call,
                          enum bsw_status status, struct bitsweep_error *error)
{
    if (!call->is_cut_off) pthread_mutex_unlock(&index->lock);
    return bsw_library_call_end(call, status, error);
}

// ---- settings of a search ----

// All of the request is zeros first, padding too, so that requests can be compared.
static enum bsw_status make_request(const struct bitsweep_search_settings *s,
                                    struct bsw_search_request *out, struct bsw_error *err)
{
    memset(out, 0, sizeof *out);
    BSW_TRY(bsw_setting_count("k", s->k, 1, BSW_SEARCH_MAX_K, err)); // 0 is no default
    return bsw_search_request_take(s, out, err);
}

// ---- a search ----

// Queries follow each other as they come.
struct bitsweep_range {
    uint64_t num_queries;
    struct bsw_range_answers answers;
};

struct search_call {
    struct bsw_library_call call;
    struct bitsweep_search_settings asked;
    bitsweep_index *index;
    struct bsw_library_rows queries;
    struct bsw_results answers;
    struct bsw_allowed_memory allow; // rank 0
    bitsweep_range *range; // in place of these, of a range search; NULL on ranks other than 0
    int is_range;
    double within;
    _Atomic uint64_t num_done;
    uint64_t num_queries;
    double load_seconds;
};

static enum bsw_status take(void *context, uint64_t first, size_t count, const int64_t *ids,
                            const float *values, struct bsw_error *err)
{
    struct search_call *c = context;
    atomic_store(&c->num_done, first + count);
    return bsw_answers_keep(&c->answers, first, count, ids, values, err);
}

static enum bsw_status take_range(void *context, uint64_t first, size_t count, const uint64_t *lims,
                                  const int64_t *ids, const float *values, struct bsw_error *err)
{
    struct search_call *c = context;
    struct bsw_range_answers *to = &c->range->answers;
    uint64_t before = to->ids.bytes / sizeof *ids;
    for (size_t q = 1; q <= count; q++) {
        const uint64_t end = before + lims[q];
        BSW_TRY(bsw_buffer_append(&to->lims, &end, sizeof end, err));
    }
    BSW_TRY(bsw_buffer_append(&to->ids, ids, (size_t)lims[count] * sizeof *ids, err));
    BSW_TRY(bsw_buffer_append(&to->values, values, (size_t)lims[count] * sizeof *values, err));
    c->range->num_queries += count;
    atomic_store(&c->num_done, first + count);
    return BSW_OK;
}

static enum bsw_status begin(void *context, uint64_t num_queries, uint64_t k, struct bsw_error *err)
{
    struct search_call *c = context;
    (void)k, (void)err;
    c->num_queries = num_queries;
    return BSW_OK;
}

// Answers may come in another thread than the one whose caller is asked.
static int ask(void *context, const char *label, uint64_t done, uint64_t total)
{
    struct search_call *c = context;
    (void)label, (void)done, (void)total;
    return c->asked.progress(c->asked.progress_context, "search", atomic_load(&c->num_done),
                             c->num_queries);
}

static enum bsw_status reopen(bitsweep_index *index, const struct bsw_search_request *request,
                              int num_threads, int has_masks, struct bsw_error *err)
{
    const struct bitsweep_open_settings *s = &index->settings;
    const char *device;
    BSW_TRY(bsw_fork_choose_device(index->device, &device, err));
    struct bsw_search_options options = {
        .index = index->folder,
        .base = index->base,
        .request = *request,
        .device = {.text = device, .most_bytes = s->device_memory},
        .check_seconds = s->check_seconds > 0 ? s->check_seconds : BSW_SEARCH_CHECK_SECONDS,
        .has_masks = has_masks,
        .is_unchecked = s->is_unchecked};
    options.request.level = bsw_cpu_level_detect();
    options.request.num_threads = num_threads;
    bsw_search_close(&index->search);
    BSW_TRY(bsw_search_open(&index->search, index->transport, &options, err));
    memcpy(&index->request, request, sizeof index->request);
    index->is_open = 1;
    return BSW_OK;
}

// Whether they ask for the same but for the lists that are looked at.
static int is_same_elsewhere(const struct bsw_search_request *a, const struct bsw_search_request *b)
{
    struct bsw_search_request like;
    memcpy(&like, a, sizeof like);
    like.probe = b->probe;
    like.probe_ratio = b->probe_ratio;
    like.recall = b->recall;
    return memcmp(&like, b, sizeof like) == 0;
}

// Lets what is loaded look at other lists, where the request is for nothing else; else *done is 0.
static enum bsw_status look_elsewhere(bitsweep_index *index,
                                      const struct bsw_search_request *request, int *done,
                                      struct bsw_error *err)
{
    struct bsw_search *search = &index->search;
    struct bsw_search_request asked;
    struct bsw_search_settings settings;
    *done = 0;
    if (!index->is_open || !search->is_loaded || search->device.device ||
        index->transport->num_ranks > 1 || !is_same_elsewhere(request, &index->request))
        return BSW_OK;
    memcpy(&asked, request, sizeof asked);
    asked.level = search->options.request.level;
    asked.num_threads = search->options.request.num_threads;
    BSW_TRY(bsw_search_settle(&asked, &search->manifest, index->folder, 1, &settings, err));
    if (settings.keep != search->settings.keep ||
        settings.probe.scan_dims != search->settings.probe.scan_dims)
        return BSW_OK;
    index->is_open = 0; // unless all goes well
    BSW_TRY(bsw_search_look(search, &settings.probe, err));
    index->is_open = 1;
    search->settings.oversample = settings.oversample;
    search->settings.recall_calibrated = settings.recall_calibrated;
    search->options.request = asked;
    memcpy(&index->request, request, sizeof index->request);
    *done = 1;
    return BSW_OK;
}

static enum bsw_status make_range(struct search_call *c, struct bsw_error *err)
{
    const uint64_t first = 0;
    BSW_TRY(bsw_allocate_zero(&c->range, 1, sizeof *c->range, "a range search", err));
    return bsw_buffer_append(&c->range->answers.lims, &first, sizeof first, err);
}

static enum bsw_status prepare(struct search_call *c, const struct bitsweep_rows *queries,
                               struct bsw_search_request *request, struct bsw_error *err)
{
    BSW_TRY(make_request(&c->asked, request, err));
    request->is_range = c->is_range;
    if (c->is_range && !isfinite(c->within))
        return bsw_fail(err, BSW_ERROR_USAGE, "within: must be a number, not %g", c->within);
    if (c->call.transport->rank != 0) return BSW_OK;
    c->answers.k = c->asked.k;
    BSW_TRY(bsw_library_allow(c->asked.allow, &c->allow, err));
    BSW_TRY(bsw_library_lend_queries(queries, &c->queries, err));
    if (c->is_range) return make_range(c, err);
    return c->queries.is_empty ? BSW_OK : bsw_library_check_room(&c->answers, err);
}

// A thread beside the scan is for batches that follow each other.
static void choose_overlap(struct search_call *c, const struct bitsweep_rows *queries)
{
    struct bsw_search *search = &c->index->search;
    int is_one = queries && !queries->file && queries->num_rows <= search->settings.batch;
    search->options.overlap = is_one ? BSW_OVERLAP_OFF : BSW_OVERLAP_AUTO;
}

// Whether rank 0 has no queries, which no rank then searches for.
static enum bsw_status share_emptiness(struct search_call *c, struct bsw_error *err)
{
    const struct bsw_message shape = {.kind = BSW_MESSAGE_QUERY_SHAPE, .name = "shape of queries"};
    int *is_empty = &c->queries.is_empty;
    if (c->call.transport->num_ranks == 1) return BSW_OK;
    return bsw_share_record(c->call.transport, &shape, is_empty, sizeof *is_empty, err);
}

static enum bsw_status check_empty(const struct search_call *c, struct bsw_error *err)
{
    uint32_t dims = c->queries.memory.dims, wanted = c->index->info.dims;
    enum bsw_status status = BSW_OK;
    if (c->call.transport->rank == 0 && dims != wanted)
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, the index has %u", c->queries.name,
                          dims, wanted);
    return bsw_transport_agree(c->call.transport, status, err);
}

static enum bsw_status search(struct search_call *c, enum bsw_status taken,
                              const struct bitsweep_rows *queries, struct bsw_error *err)
{
    bitsweep_index *index = c->index;
    struct bsw_search_request request = {0};
    const struct bsw_search_sink sink = {
        .answers = {.context = c, .take = take, .take_range = take_range, .begin = begin}};
    if (taken == BSW_OK) taken = bsw_library_index_adopt(index, err);
    if (taken == BSW_OK) taken = prepare(c, queries, &request, err);
    BSW_TRY(
        bsw_library_call_meet(&c->call, taken, "search", XXH3_64bits(&request, sizeof request)));
    BSW_TRY(share_emptiness(c, err));
    int is_ready = index->is_open && memcmp(&request, &index->request, sizeof request) == 0;
    if (!is_ready) BSW_TRY(look_elsewhere(index, &request, &is_ready, err));
    if (!is_ready) {
        index->is_open = 0;
        BSW_TRY(reopen(index, &request, c->call.num_threads, c->asked.allow || c->asked.query_tags,
                       err));
    }
    if (c->queries.is_empty) return check_empty(c, err);
    const struct bsw_search_run run = {
        .queries = c->queries.name,
        .query_rows = BSW_ALL_ROWS,
        .repeat = 1,
        .is_followed = 1,
        .allow = c->allow,
        .query_tags = c->call.transport->rank == 0 ? c->asked.query_tags : NULL,
        .sink = &sink};
    choose_overlap(c, queries);
    index->search.options.request.within = c->within; // no part of what is compared
    int was_loaded = index->search.is_loaded;
    enum bsw_status status = bsw_search_run(&index->search, &run, err);
    if (!was_loaded) c->load_seconds = index->search.service.load_seconds;
    // What is wrong with queries is found before anything is sent; what comes later may leave
    // anything.
    if (status != BSW_OK && status != BSW_ERROR_USAGE && status != BSW_ERROR_BAD_DATA)
        index->is_open = 0;
    return status;
}

static void note_stats(struct search_call *c)
{
    bitsweep_index *index = c->index;
    const struct bsw_search *search = &index->search;
    if (c->call.transport->rank != 0) return;
    const struct bsw_search_stats stats = bsw_search_stats(search);
    index->stats =
        (struct bitsweep_search_stats){.size = sizeof index->stats,
                                       .seconds = stats.seconds,
                                       .load_seconds = c->load_seconds,
                                       .oversample = search->settings.oversample,
                                       .calibrated_recall = search->settings.recall_calibrated,
                                       .lists_per_query = stats.lists_a_query,
                                       .rows_per_query = stats.rows_a_query,
                                       .resident_bytes = search->service.resident_bytes,
                                       .scan = stats.scan,
                                       .device = stats.device_kind,
                                       .coverage = search->coverage,
                                       .missing_shards = search->missing.count};
}

// Both kinds of search; what c has of its own is set.
static int run_call(struct search_call *c, const struct bitsweep_rows *queries,
                    const struct bitsweep_search_settings *settings, struct bitsweep_error *error)
{
    bitsweep_index *index = c->index;
    struct bsw_error err = {.rank = -1};
    bitsweep_search_defaults(&c->asked);
    enum bsw_status status =
        bsw_library_take_settings(&c->asked, sizeof c->asked, 0, settings, &err);
    const struct bsw_library_call_needs needs = {.status = status,
                                                 .works = 1,
                                                 .threads = index->num_threads,
                                                 .ranks = index->settings.ranks,
                                                 .progress = c->asked.progress ? ask : NULL,
                                                 .context = c,
                                                 .err = &err};
    status = bsw_library_index_begin(index, &c->call, &needs);
    status = search(c, status, queries, &c->call.err);
    if (status == BSW_OK && !c->queries.is_empty) note_stats(c);
    bsw_library_take_back(&c->queries);
    return bsw_library_index_end(index, &c->call, status, error);
}

int bitsweep_search(bitsweep_index *index, const struct bitsweep_rows *queries,
                    const struct bitsweep_search_settings *settings, float *values, int64_t *ids,
                    struct bitsweep_error *error)
{
    struct search_call c = {.index = index, .answers = {.values = values, .ids = ids}};
    return run_call(&c, queries, settings, error);
}

int bitsweep_range_search(bitsweep_index *index, const struct bitsweep_rows *queries, double within,
                          const struct bitsweep_search_settings *settings, bitsweep_range **out,
                          struct bitsweep_error *error)
{
    struct search_call c = {.index = index, .is_range = 1, .within = within};
    *out = NULL;
    int status = run_call(&c, queries, settings, error);
    if (status == BITSWEEP_OK)
        *out = c.range;
    else
        bitsweep_range_free(&c.range);
    return status;
}

uint64_t bitsweep_range_num_queries(const bitsweep_range *range)
{
    return range->num_queries;
}

const uint64_t *bitsweep_range_lims(const bitsweep_range *range)
{
    return (const uint64_t *)(const void *)range->answers.lims.data;
}

const float *bitsweep_range_values(const bitsweep_range *range)
{
    return (const float *)(const void *)range->answers.values.data;
}

const int64_t *bitsweep_range_ids(const bitsweep_range *range)
{
    return (const int64_t *)(const void *)range->answers.ids.data;
}

void bitsweep_range_free(bitsweep_range **range)
{
    if (*range) bsw_range_answers_deinit(&(*range)->answers);
    bsw_free(range);
}

void bitsweep_last_search(bitsweep_index *index, struct bitsweep_search_stats *stats)
{
    int is_locked = lock(index);
    bsw_library_tell(stats, &index->stats, sizeof index->stats);
    if (is_locked) pthread_mutex_unlock(&index->lock);
}

int bitsweep_reconstruct(bitsweep_index *index, const int64_t *ids, uint64_t num_ids, void *out,
                         struct bitsweep_error *error)
{
    struct bsw_library_call call;
    struct bsw_manifest manifest = {0};
    const struct bsw_library_call_needs needs = {.threads = 1, .ranks = index->settings.ranks};
    enum bsw_status status = bsw_library_index_begin(index, &call, &needs);
    if (status == BSW_OK && num_ids > 0 && (!ids || !out))
        status = bsw_fail(&call.err, BSW_ERROR_USAGE, "no ids, or no place for their rows");
    if (status == BSW_OK) status = bsw_manifest_read(index->folder, &manifest, &call.err);
    if (status == BSW_OK && index->base) {
        struct bsw_moved_source moved;
        status = bsw_moved_source_take(&manifest, index->folder, index->base, 0, &moved, &call.err);
    }
    if (status == BSW_OK)
        status = bsw_index_rows_read(&manifest, index->folder, ids, num_ids, out, &call.err);
    bsw_manifest_deinit(&manifest);
    return bsw_library_index_end(index, &call, status, error);
}
