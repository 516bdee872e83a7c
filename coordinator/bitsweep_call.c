// SPDX-License-Identifier: Apache-2.0
#include "coordinator/bitsweep_call.h"

#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/net/message_kinds.h"
#include "common/net/mpi_library.h"
#include "coordinator/job/device_choice.h"
#include "kernels/tuning/scan_tuning.h"
#include "shard/codecs/codec.h"

#define MOST_SETTINGS_BYTES 65536

#define SAME(name) \
    _Static_assert((int)BITSWEEP_##name == (int)BSW_##name, "statuses of bitsweep.h and status.h")
SAME(OK);
SAME(ERROR_USAGE);
SAME(ERROR_TOO_LARGE);
SAME(ERROR_BAD_DATA);
SAME(ERROR_IO);
SAME(ERROR_OUT_OF_MEMORY);
SAME(ERROR_TIMEOUT);
SAME(ERROR_PEER);
SAME(ERROR_STOPPED);
SAME(ERROR_SELF_CHECK);
_Static_assert((int)BITSWEEP_FLOAT32 == (int)BSW_VECTOR_FLOAT32 &&
                   (int)BITSWEEP_FLOAT16 == (int)BSW_VECTOR_FLOAT16 &&
                   (int)BITSWEEP_UINT8 == (int)BSW_VECTOR_UINT8 &&
                   (int)BITSWEEP_INT8 == (int)BSW_VECTOR_INT8,
               "types of bitsweep.h and vectors.h");

// ---- begin and end ----

static locale_t plain_locale;

static void make_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

// What BITSWEEP_TUNING names, read once: kernels look it up without a lock.
static enum bsw_status tuning_status;
static struct bsw_error tuning_error;

static void read_tuning(void)
{
    tuning_error = (struct bsw_error){.rank = -1};
    tuning_status = bsw_scan_tuning_read_named(&tuning_error);
}

static enum bsw_status take_tuning(struct bsw_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_tuning);
    if (tuning_status != BSW_OK) *err = tuning_error;
    return tuning_status;
}

// Where a fork allows no call, or none with these ranks, the call has none.
static enum bsw_status take_ranks(struct bsw_library_call *call, bitsweep_ranks *ranks)
{
    enum bsw_status status = bsw_fork_check(&call->err);
    call->is_cut_off = status != BSW_OK;
    if (status == BSW_OK && ranks)
        status = bsw_fork_check_own(ranks->generation, "its ranks were opened", &call->err);
    if (status != BSW_OK || !ranks) {
        bsw_transport_local_init(&call->own);
        call->transport = &call->own;
        return status;
    }
    call->transport = &ranks->transport;
    call->lock = &ranks->lock;
    pthread_mutex_lock(call->lock);
    return BSW_OK;
}

enum bsw_status bsw_library_call_begin(struct bsw_library_call *call,
                                       const struct bsw_library_call_needs *needs)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_locale);
    *call = (struct bsw_library_call){.caller = {.ask = needs->progress, .context = needs->context},
                                      .threads_before = omp_get_max_threads(),
                                      .err = {.rank = -1}};
    if (needs->err) call->err = *needs->err;
    call->num_threads = needs->threads > 0 ? needs->threads : call->threads_before;
    if (bsw_fork_is_alone()) call->num_threads = 1;
    bsw_fork_enter(needs->works ? call->num_threads : 0); // before it has or awaits a lock
    enum bsw_status status = take_ranks(call, needs->ranks);
    omp_set_num_threads(call->num_threads);
    call->locale_before = uselocale(plain_locale); // (locale_t)0, where there is none, changes none
    call->caller_before = bsw_caller_set(needs->progress ? &call->caller : NULL);
    if (status == BSW_OK) status = needs->status;
    return status == BSW_OK && needs->works ? take_tuning(&call->err) : status;
}

int bsw_library_call_end(struct bsw_library_call *call, enum bsw_status status,
                         struct bitsweep_error *error)
{
    bsw_caller_set(call->caller_before);
    uselocale(call->locale_before);
    omp_set_num_threads(call->threads_before);
    if (call->transport == &call->own) bsw_transport_close(&call->own, status != BSW_OK);
    if (call->lock) pthread_mutex_unlock(call->lock);
    bsw_fork_leave();
    return bsw_library_report(status, &call->err, error);
}

int bsw_library_report(enum bsw_status status, const struct bsw_error *err,
                       struct bitsweep_error *error)
{
    if (!error) return (int)status;
    *error = (struct bitsweep_error){.status = (int32_t)status, .rank = -1};
    if (status == BSW_OK) return BITSWEEP_OK;
    error->rank = err->rank;
    snprintf(error->message, sizeof error->message, "%s", err->message);
    return (int)status;
}

// ---- ranks that are open ----

static pthread_mutex_t ranks_lock = PTHREAD_MUTEX_INITIALIZER;
static bitsweep_ranks *first_ranks;

static void note_open(bitsweep_ranks *ranks)
{
    pthread_mutex_lock(&ranks_lock);
    ranks->next = first_ranks;
    first_ranks = ranks;
    pthread_mutex_unlock(&ranks_lock);
}

static void note_closed(const bitsweep_ranks *ranks)
{
    bitsweep_ranks **at = &first_ranks;
    pthread_mutex_lock(&ranks_lock);
    while (*at && *at != ranks) at = &(*at)->next;
    if (*at) *at = ranks->next;
    pthread_mutex_unlock(&ranks_lock);
}

// Whether these ranks are open; the address may be anything.
static int is_open(const bitsweep_ranks *ranks)
{
    pthread_mutex_lock(&ranks_lock);
    const bitsweep_ranks *at = first_ranks;
    while (at && at != ranks) at = at->next;
    pthread_mutex_unlock(&ranks_lock);
    return at != NULL;
}

// ---- ranks that meet ----

struct meeting {
    const char *what;
    uint64_t digest;
};

static enum bsw_status compare(void *context, int rank, const struct bsw_buffer *payload,
                               struct bsw_error *err)
{
    const struct meeting *own = context;
    if (payload->bytes == sizeof own->digest &&
        memcmp(payload->data, &own->digest, sizeof own->digest) == 0)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "settings of the %s: rank %d has others than rank 0, or makes another call",
                    own->what, rank);
}

enum bsw_status bsw_library_call_meet(struct bsw_library_call *call, enum bsw_status status,
                                      const char *what, uint64_t digest)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_CALL, .name = "settings of a call"};
    bsw_transport *transport = call->transport;
    struct meeting own = {what, XXH3_64bits_withSeed(what, strlen(what), digest)};
    BSW_TRY(bsw_transport_agree(transport, status, &call->err));
    if (transport->num_ranks == 1) return BSW_OK;
    status =
        bsw_collect(transport, &message, &own.digest, sizeof own.digest, compare, &own, &call->err);
    return bsw_transport_agree(transport, status, &call->err);
}

uint64_t bsw_library_digest(const struct bsw_library_alike *alike)
{
    uint64_t digest = XXH3_64bits(alike->counts, alike->num_counts * sizeof *alike->counts);
    digest =
        XXH3_64bits_withSeed(alike->numbers, alike->num_numbers * sizeof *alike->numbers, digest);
    for (size_t i = 0; i < alike->num_texts; i++) {
        const char *text = alike->texts[i];
        digest = XXH3_64bits_withSeed(text ? text : "", text ? strlen(text) + 1 : 0, digest);
    }
    return digest;
}

// ---- settings ----

static enum bsw_status copy_settings(void *to, size_t to_bytes, const void *from, size_t size,
                                     struct bsw_error *err)
{
    size_t known = size < to_bytes ? size : to_bytes;
    if (size <= sizeof size || size > MOST_SETTINGS_BYTES)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "settings of %zu bytes: fill them by their _defaults function", size);
    for (size_t i = known; i < size; i++) {
        if (((const unsigned char *)from)[i] != 0)
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "settings of a later version than this library, %s", BITSWEEP_VERSION);
    }
    memcpy(to, from, known);
    memcpy(to, &to_bytes, sizeof to_bytes);
    return BSW_OK;
}

enum bsw_status bsw_library_take_settings(void *to, size_t to_bytes, size_t ranks_at,
                                          const void *from, struct bsw_error *err)
{
    bitsweep_ranks *ranks;
    size_t size;
    if (!from) return BSW_OK;
    memcpy(&size, from, sizeof size);
    enum bsw_status status = copy_settings(to, to_bytes, from, size, err);
    if (status == BSW_OK || ranks_at == 0) return status;
    // No defaults: size is 0, or whatever lay there. Members of a soname's first version are there
    // in any case.
    if (size > 0 && size < ranks_at + sizeof ranks) return status;
    memcpy(&ranks, (const char *)from + ranks_at, sizeof ranks);
    if (is_open(ranks)) memcpy((char *)to + ranks_at, &ranks, sizeof ranks);
    return status;
}

void bsw_library_default(void *to, size_t size, const void *defaults, size_t known)
{
    memset(to, 0, size);
    if (defaults) memcpy(to, defaults, size < known ? size : known);
    if (size >= sizeof size) memcpy(to, &size, sizeof size);
}

void bsw_library_tell(void *to, const void *from, size_t from_bytes)
{
    size_t size;
    memcpy(&size, to, sizeof size);
    if (size <= sizeof size) return;
    size_t known = size < from_bytes ? size : from_bytes;
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size, known - sizeof size);
}

enum bsw_status bsw_library_check_threads(int threads, struct bsw_error *err)
{
    BSW_TRY(bsw_setting_number("threads", threads, 0, BSW_MAX_THREADS, err));
    return threads > 0 ? BSW_OK : bsw_setting_default_threads(omp_get_max_threads(), err);
}

// ---- rows ----

enum bsw_status bsw_library_lend(const struct bitsweep_rows *rows, const char *name,
                                 struct bsw_library_rows *out, struct bsw_error *err)
{
    *out = (struct bsw_library_rows){.name = name};
    if (!rows) return bsw_fail(err, BSW_ERROR_USAGE, "%s: no rows are given", name);
    if (rows->file) {
        out->name = rows->file;
        return BSW_OK;
    }
    out->memory = (struct bsw_memory_rows){.name = name,
                                           .numbers = rows->data,
                                           .type = (enum bsw_vector_type)rows->type,
                                           .dims = rows->dims,
                                           .num_rows = rows->num_rows};
    return bsw_memory_rows_lend(&out->memory, err);
}

enum bsw_status bsw_library_lend_queries(const struct bitsweep_rows *queries,
                                         struct bsw_library_rows *out, struct bsw_error *err)
{
    static const char name[] = BSW_MEMORY_PREFIX "queries";
    if (!queries || queries->file || queries->num_rows > 0)
        return bsw_library_lend(queries, name, out, err);
    const struct bitsweep_rows one = {name, 1, queries->dims, queries->type, NULL};
    BSW_TRY(bsw_library_lend(&one, name, out, err));
    bsw_library_take_back(out);
    out->is_empty = 1;
    return BSW_OK;
}

void bsw_library_take_back(struct bsw_library_rows *rows)
{
    bsw_memory_rows_take_back(&rows->memory);
}

// ---- answers ----

enum bsw_status bsw_library_check_room(const struct bsw_results *answers, struct bsw_error *err)
{
    if (answers->values && answers->ids) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "no room for %s is given",
                    answers->values ? "ids" : "values");
}

enum bsw_status bsw_library_allow(const struct bitsweep_allow *allow,
                                  struct bsw_allowed_memory *out, struct bsw_error *err)
{
    *out = (struct bsw_allowed_memory){0};
    if (!allow) return BSW_OK;
    if (!allow->masks && !allow->ids)
        return bsw_fail(err, BSW_ERROR_USAGE, "allow: there are no masks and no ids");
    *out = (struct bsw_allowed_memory){.masks = allow->masks,
                                       .num_masks = allow->num_masks,
                                       .mask_rows = allow->num_rows,
                                       .ids = allow->ids,
                                       .num_ids = allow->num_ids};
    return BSW_OK;
}

// ---- what an index is ----

// Whether all shards have them.
static int has_vectors(const struct bsw_manifest *manifest)
{
    for (uint32_t i = 0; i < manifest->num_shards; i++)
        if (!bsw_manifest_home(manifest, i).source_is_copied) return 0;
    return 1;
}

void bsw_library_describe(const struct bsw_manifest *manifest, struct bitsweep_index_info *out)
{
    *out =
        (struct bitsweep_index_info){.size = sizeof *out,
                                     .num_rows = manifest->num_rows,
                                     .dropped_rows = manifest->dropped_rows,
                                     .first_row = manifest->first_row,
                                     .dims = bsw_manifest_row_dims(manifest),
                                     .type = (int32_t)manifest->source_type,
                                     .codec = bsw_codec_name(manifest->codec),
                                     .metric = bsw_metric_name(manifest->metric),
                                     .bits = manifest->bits,
                                     .bytes_per_vector = bsw_manifest_row_bytes(manifest),
                                     .shards = manifest->num_shards,
                                     .lists = manifest->lists.count,
                                     .is_residual = manifest->lists.is_residual,
                                     .has_vectors = has_vectors(manifest),
                                     .deleted_rows = manifest->num_rows - manifest->dropped_rows -
                                                     bsw_manifest_live_rows(manifest),
                                     .generation = manifest->generation,
                                     .has_ids = manifest->ids_digest != 0,
                                     .has_tags = manifest->tags_digest != 0,
                                     .has_calibration = manifest->calibration.num_entries > 0,
                                     .check_recall = manifest->check.recall};
    memcpy(out->check_cause, manifest->check.cause, sizeof out->check_cause);
}

void bitsweep_index_info_init_of(struct bitsweep_index_info *info, size_t size)
{
    bsw_library_default(info, size, NULL, 0);
}

// ---- version ----

#define NUMBER_OF(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define HEADER_NUMBER \
    NUMBER_OF(BITSWEEP_VERSION_MAJOR, BITSWEEP_VERSION_MINOR, BITSWEEP_VERSION_PATCH)
_Static_assert(HEADER_NUMBER ==
                   NUMBER_OF(BITSWEEP_BUILD_MAJOR, BITSWEEP_BUILD_MINOR, BITSWEEP_BUILD_PATCH),
               "bitsweep.h has another version than the file VERSION");

const char *bitsweep_version(void)
{
    return BITSWEEP_VERSION;
}

int bitsweep_version_number(void)
{
    return HEADER_NUMBER;
}

// Whether it was built with MPI, and where that is not linked finds one.
static int has_mpi(void)
{
#ifdef BITSWEEP_HAVE_MPI
    return bsw_mpi_library_load(NULL) == BSW_OK;
#else
    return 0;
#endif
}

int bitsweep_has(const char *feature)
{
    static const char *const features[] = {
#ifdef BITSWEEP_HAVE_HDF5
        "hdf5",
#endif
#ifdef BITSWEEP_HAVE_CUDA
        "cuda",
#endif
        NULL};
    if (strcmp(feature, "mpi") == 0) return has_mpi();
    for (int i = 0; features[i]; i++)
        if (strcmp(features[i], feature) == 0) return 1;
    return 0;
}

const char *bitsweep_status_name(int status)
{
    return status >= BSW_OK && status <= BSW_ERROR_SELF_CHECK
               ? bsw_status_name((enum bsw_status)status)
               : "unknown";
}

// ---- ranks ----

// All ranks join whatever fails on one of them, which the others would wait for.
static enum bsw_status join(int comm, double timeout_seconds, bitsweep_ranks *ranks,
                            enum bsw_status status, struct bsw_error *err)
{
    bsw_transport *transport = &ranks->transport;
    struct bsw_error why = {.rank = -1};
    enum bsw_status joined = bsw_transport_join(transport, comm, &why);
    if (joined != BSW_OK) {
        if (err && status == BSW_OK) *err = why;
        bsw_transport_close(transport, 1);
        return status == BSW_OK ? joined : status;
    }
    if (status == BSW_OK && timeout_seconds != 0) transport->timeout_seconds = timeout_seconds;
    status = bsw_transport_agree(transport, status, err);
    if (status != BSW_OK) bsw_transport_close(transport, transport->broken != BSW_OK);
    return status;
}

int bitsweep_ranks_open(int comm, double timeout_seconds, bitsweep_ranks **out,
                        struct bitsweep_error *error)
{
    struct bsw_error err = {.rank = -1};
    bitsweep_ranks *ranks = NULL, nowhere = {0};
    *out = NULL;
    enum bsw_status status = BSW_OK;
    if (timeout_seconds != 0)
        status = bsw_setting_number("timeout", timeout_seconds, 0.1, 1e6, &err);
    if (status == BSW_OK) status = bsw_allocate_zero(&ranks, 1, sizeof *ranks, "ranks", &err);
    status = join(comm, timeout_seconds, ranks ? ranks : &nowhere, status, &err);
    if (status == BSW_OK) {
        pthread_mutex_init(&ranks->lock, NULL);
        ranks->generation = bsw_fork_generation();
        note_open(ranks);
        *out = ranks;
    } else {
        bsw_free(&ranks);
    }
    return bsw_library_report(status, &err, error);
}

void bitsweep_ranks_close(bitsweep_ranks **ranks)
{
    bitsweep_ranks *own = *ranks;
    *ranks = NULL;
    if (!own || own->generation != bsw_fork_generation())
        return; // those of a parent are left to it
    note_closed(own);
    bsw_transport_close(&own->transport, 0);
    pthread_mutex_destroy(&own->lock);
    bsw_free(&own);
}

int bitsweep_ranks_refuse(bitsweep_ranks *ranks, const char *why, struct bitsweep_error *error)
{
    struct bsw_library_call call;
    enum bsw_status status =
        bsw_library_call_begin(&call, &(struct bsw_library_call_needs){.ranks = ranks});
    if (status == BSW_OK) status = bsw_fail(&call.err, BSW_ERROR_USAGE, "%s", why);
    status = bsw_transport_agree(call.transport, status, &call.err);
    return bsw_library_call_end(&call, status, error);
}

// ---- processes of a program ---------------------------------------------------------------------

#define ADVICE "start processes with spawn, or fork before the first call"

static atomic_int num_calls;            // under way
static atomic_int has_worked, had_team; // this process, or one that it came of
// What a child knows: set while it has one thread.
static int generation, is_child, is_alone, is_cut_off;

static void begin_child(void)
{
    generation++;
    is_child |= atomic_load(&has_worked);
    is_alone |= atomic_load(&had_team);
    is_cut_off |= atomic_load(&num_calls) > 0;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, begin_child);
}

int bsw_fork_generation(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return generation;
}

void bsw_fork_enter(int num_threads)
{
    bsw_fork_generation();
    atomic_fetch_add(&num_calls, 1);
    if (num_threads > 0) atomic_store(&has_worked, 1);
    if (num_threads > 1) atomic_store(&had_team, 1);
}

void bsw_fork_leave(void)
{
    atomic_fetch_sub(&num_calls, 1);
}

int bsw_fork_is_alone(void)
{
    return is_alone;
}

enum bsw_status bsw_fork_check(struct bsw_error *err)
{
    if (!is_cut_off) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "this process was forked while a call of bitsweep was under way, which it "
                    "cannot end: " ADVICE);
}

enum bsw_status bsw_fork_check_own(int of_generation, const char *what, struct bsw_error *err)
{
    if (of_generation == bsw_fork_generation()) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "this process was forked after %s: " ADVICE, what);
}

enum bsw_status bsw_fork_choose_device(const char *asked, const char **out, struct bsw_error *err)
{
    *out = asked ? asked : "auto";
    BSW_TRY(bsw_device_choice_check(*out, err));
    if (!is_child || strcmp(*out, "cpu") == 0) return BSW_OK;
    if (strcmp(*out, "auto") == 0) {
        *out = "cpu";
        return BSW_OK;
    }
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--device %s: this process was forked after bitsweep had been used, and can "
                    "use no GPU: " ADVICE,
                    *out);
}
