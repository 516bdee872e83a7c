// SPDX-License-Identifier: Apache-2.0
#include "common/job/stop_signal.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/memory.h"

// Once in the list it stays there, for another mapping after this one: the handler may be looking.
struct mapping {
    struct mapping *next;
    atomic_uintptr_t begin; // 0: free
    atomic_size_t bytes;
    dev_t device;
    ino_t inode;
    char *path;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of all but what the handler reads
static _Atomic(struct mapping *) mappings;
static _Atomic(struct mapping *) struck; // the first that was
static sem_t is_struck;
static size_t num_free; // of the list
static int is_asked, is_watched;
static struct sigaction previous;

// ---- what is wrong with a file ----

// 0 if nobody can tell: another file has its name.
static int find_size(const struct mapping *mapping, uint64_t *bytes)
{
    struct stat facts;
    if (stat(mapping->path, &facts) != 0 || facts.st_dev != mapping->device ||
        facts.st_ino != mapping->inode)
        return 0;
    *bytes = (uint64_t)facts.st_size;
    return 1;
}

static enum bsw_status fail_shorter(const struct mapping *mapping, uint64_t bytes,
                                    struct bsw_error *err)
{
    const char *hint = bsw_stop_hint();
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: became shorter while it was read: %llu of %llu bytes are left; put it "
                    "back%s",
                    mapping->path, (unsigned long long)bytes,
                    (unsigned long long)atomic_load(&mapping->bytes),
                    hint[0] ? hint : " and start again");
}

static void explain(const struct mapping *mapping, struct bsw_error *err)
{
    uint64_t bytes;
    int is_known = find_size(mapping, &bytes);
    if (is_known && bytes < atomic_load(&mapping->bytes))
        fail_shorter(mapping, bytes, err);
    else if (is_known)
        bsw_fail(err, BSW_ERROR_IO, "%s: the system could not read a page of this file",
                 mapping->path);
    else
        bsw_fail(err, BSW_ERROR_BAD_DATA,
                 "%s: became shorter while it was read, and has another name by now",
                 mapping->path);
}

// ---- the signal ----

// Ranks that read the same file are struck together.
static void *end_when_struck(void *unused)
{
    struct bsw_stop_cause cause = {.is_rank0s = 1};
    (void)unused;
    while (sem_wait(&is_struck) != 0) continue;
    int rank = bsw_stop_rank();
    explain(atomic_load(&struck), &cause.error);
    if (rank > 0) bsw_prefix(&cause.error, cause.error.status, "rank %d: ", rank);
    bsw_stop_for(&cause);
}

static struct mapping *find_mapping(uintptr_t address)
{
    for (struct mapping *m = atomic_load(&mappings); m; m = m->next) {
        uintptr_t begin = atomic_load(&m->begin);
        if (begin != 0 && address >= begin && address - begin < atomic_load(&m->bytes)) return m;
    }
    return NULL;
}

// Async-signal-safe throughout.
static void on_bus_error(int number, siginfo_t *facts, void *context)
{
    struct mapping *nobody = NULL, *mapping = NULL;
    (void)context;
    if (facts->si_code > 0) mapping = find_mapping((uintptr_t)facts->si_addr);
    if (!mapping) { // the access is repeated; what a process sent is not
        sigaction(number, &previous, NULL);
        if (facts->si_code <= 0) raise(number);
        return;
    }
    if (atomic_compare_exchange_strong(&struck, &nobody, mapping)) sem_post(&is_struck);
    for (;;) pause();
}

// With the lock held, once.
static enum bsw_status watch(struct bsw_error *err)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    pthread_t thread;
    sem_init(&is_struck, 0, 0);
    int failure = pthread_create(&thread, NULL, end_when_struck, NULL);
    if (failure == 0) failure = pthread_detach(thread);
    sigfillset(&action.sa_mask);
    if (failure == 0 && sigaction(SIGBUS, &action, &previous) != 0) failure = errno;
    if (failure != 0)
        return bsw_fail(err, BSW_ERROR_IO, "cannot watch mapped files: %s", strerror(failure));
    is_watched = 1;
    return BSW_OK;
}

// ---- the list ----

static enum bsw_status take_place(struct mapping **out, struct bsw_error *err)
{
    struct mapping *first = atomic_load(&mappings);
    for (*out = first; num_free > 0 && *out; *out = (*out)->next) {
        if (atomic_load(&(*out)->begin) == 0) return BSW_OK;
    }
    BSW_TRY(bsw_allocate_zero(out, 1, sizeof **out, "mapped file", err));
    (*out)->next = first;
    atomic_store(&mappings, *out);
    num_free++;
    return BSW_OK;
}

static enum bsw_status note(const void *map, size_t bytes, const struct stat *facts,
                            const char *path, struct bsw_error *err)
{
    struct mapping *mapping;
    size_t path_bytes = strlen(path) + 1;
    if (is_asked && !is_watched) BSW_TRY(watch(err));
    BSW_TRY(take_place(&mapping, err));
    BSW_TRY(bsw_allocate(&mapping->path, path_bytes, 1, "mapped file", err));
    memcpy(mapping->path, path, path_bytes);
    mapping->device = facts->st_dev;
    mapping->inode = facts->st_ino;
    atomic_store(&mapping->bytes, bytes);
    atomic_store(&mapping->begin, (uintptr_t)map);
    num_free--;
    return BSW_OK;
}

void bsw_mapped_files_watch(void)
{
    pthread_mutex_lock(&lock);
    is_asked = 1;
    pthread_mutex_unlock(&lock);
}

enum bsw_status bsw_mapped_file_note(const void *map, size_t bytes, int fd, const char *path,
                                     struct bsw_error *err)
{
    struct stat facts;
    if (fstat(fd, &facts) != 0)
        return bsw_fail(err, BSW_ERROR_IO, "%s: cannot stat: %s", path, strerror(errno));
    pthread_mutex_lock(&lock);
    enum bsw_status status = note(map, bytes, &facts, path, err);
    pthread_mutex_unlock(&lock);
    return status;
}

void bsw_mapped_file_forget(const void *map)
{
    pthread_mutex_lock(&lock);
    for (struct mapping *m = atomic_load(&mappings); map && m; m = m->next) {
        if (atomic_load(&m->begin) != (uintptr_t)map) continue;
        atomic_store(&m->begin, 0);
        bsw_free(&m->path);
        num_free++;
    }
    pthread_mutex_unlock(&lock);
}

enum bsw_status bsw_mapped_files_check(struct bsw_error *err)
{
    const struct mapping *last = NULL;
    enum bsw_status status = BSW_OK;
    uint64_t bytes = UINT64_MAX;
    pthread_mutex_lock(&lock);
    for (struct mapping *m = atomic_load(&mappings); m && status == BSW_OK; m = m->next) {
        if (atomic_load(&m->begin) == 0) continue;
        int is_same = last && last->device == m->device && last->inode == m->inode;
        if (!is_same && !find_size(m, &bytes)) bytes = UINT64_MAX;
        if (bytes < atomic_load(&m->bytes)) status = fail_shorter(m, bytes, err);
        last = m;
    }
    pthread_mutex_unlock(&lock);
    return status;
}
