// SPDX-License-Identifier: Apache-2.0
#include "common/job/stop_signal.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/job/progress.h"
#include "common/job/run_status.h"

#define SAVE_NS     700000000
#define LEAVE_NS    900000000
#define NAP_NS      5000000
#define END_SECONDS 10 // for a disk that does not answer

static atomic_int rank_here = -1, is_asked, is_signalled, has_begun, concluded = -1;

static sigset_t watched;
static pthread_t watcher;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of save; held by who must not be stopped
static void (*save)(void *context);
static void *save_context;
static struct bsw_stop_observer observer;

static void *run_save(void *context)
{
    sem_t *saved = context;
    save(save_context);
    sem_post(saved);
    return NULL;
}

// In a thread of its own, since a disk may take its time: what is saved is good at any moment.
static void save_in_time(void)
{
    static sem_t saved; // stays for a thread that comes late
    pthread_t thread;
    struct timespec deadline;
    if (!save || sem_init(&saved, 0, 0) != 0) return;
    if (pthread_create(&thread, NULL, run_save, &saved) != 0) return;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += SAVE_NS;
    deadline.tv_sec += deadline.tv_nsec / 1000000000;
    deadline.tv_nsec %= 1000000000;
    while (sem_timedwait(&saved, &deadline) != 0 && errno == EINTR) continue;
}

static const char *name_of(int number)
{
    return number == SIGTERM ? "SIGTERM" : number == SIGINT ? "SIGINT" : "SIGUSR1";
}

// Before MPI has said which rank this is, its launcher has.
int bsw_stop_is_rank0(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    int rank = atomic_load(&rank_here);
    for (int i = 0; i < 3 && rank < 0; i++) {
        const char *text = getenv(names[i]);
        if (text) rank = strcmp(text, "0") != 0;
    }
    return rank <= 0;
}

// ---- the end, with the lock held for good ----

static void tell(const struct bsw_error *error, int is_said)
{
    if (observer.tell) observer.tell(observer.context, error, is_said);
}

static void print_cause(const struct bsw_stop_cause *cause)
{
    if (cause->is_said) return;
    if (cause->error.rank >= 0)
        dprintf(STDERR_FILENO, "bitsweep: rank %d: %s\n", cause->error.rank, cause->error.message);
    else
        dprintf(STDERR_FILENO, "bitsweep: %s\n", cause->error.message);
}

static _Noreturn void leave_soon(void)
{
    const struct timespec pause = {0, LEAVE_NS};
    tell(NULL, 1);
    nanosleep(&pause, NULL);
    _exit(atomic_load(&concluded));
}

static _Noreturn void end_process(const struct bsw_stop_cause *cause)
{
    const struct bsw_error *error = &cause->error;
    alarm(END_SECONDS);
    print_cause(cause);
    if (atomic_load(&concluded) >= 0) leave_soon();
    if (!cause->is_expelled) {
        save_in_time();
        if (bsw_stop_is_rank0()) bsw_run_status_write(error->status, error->message, NULL);
    }
    tell(error, 1);
    if (!cause->is_expelled) bsw_temporaries_remove();
    _exit(bsw_status_exit_code(error->status));
}

static int find_cause(struct bsw_stop_cause *cause)
{
    return observer.find && observer.find(observer.context, cause);
}

// A signal ends the pause: whoever sent it may kill this process soon.
static void pause_for(double seconds)
{
    const struct timespec nap = {0, NAP_NS};
    for (double left_ns = seconds * 1e9; left_ns > 0 && !atomic_load(&is_signalled);
         left_ns -= NAP_NS)
        nanosleep(&nap, NULL);
}

static _Noreturn void end_for(struct bsw_stop_cause *cause)
{
    pause_for(cause->pause_seconds);
    if (!bsw_stop_is_rank0() && atomic_load(&is_signalled)) cause->is_said = 1;
    end_process(cause);
}

// mpirun ends all ranks by a signal where one has failed: that one's reason is the better one.
static _Noreturn void stop(int number)
{
    struct bsw_stop_cause cause;
    atomic_store(&is_signalled, 1);
    pthread_mutex_lock(&lock);
    if (atomic_load(&concluded) >= 0) leave_soon();
    if (find_cause(&cause) && cause.error.status != BSW_ERROR_STOPPED) end_for(&cause);
    cause = (struct bsw_stop_cause){.is_said = !bsw_stop_is_rank0()};
    bsw_fail(&cause.error, BSW_ERROR_STOPPED, "stopped by %s%s", name_of(number), bsw_stop_hint());
    cause.error.rank = -1;
    if (cause.is_said) tell(&cause.error, 0); // rank 0 may not have had the signal
    end_process(&cause);
}

void bsw_stop_for(const struct bsw_stop_cause *given)
{
    struct bsw_stop_cause cause = *given;
    pthread_mutex_lock(&lock);
    if (cause.is_rank0s && observer.tell && !bsw_stop_is_rank0()) {
        tell(&cause.error, 0);
        cause.is_said = 1;
    }
    end_for(&cause);
}

// Those that whoever started us has not turned off, as nohup and shells do.
static void fill(sigset_t *signals)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1};
    struct sigaction action;
    sigemptyset(signals);
    for (int i = 0; i < 3; i++) {
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(signals, numbers[i]);
    }
}

static void *watch(void *unused)
{
    int number;
    (void)unused;
    for (;;) {
        if (sigwait(&watched, &number) != 0) continue;
        if (number == SIGUSR1 && (atomic_load(&has_begun) || atomic_load(&concluded) >= 0))
            atomic_store(&is_asked, 1);
        else
            stop(number);
    }
    return NULL;
}

// In a thread that is older than main, as OpenBLAS has them, and does not leave signals alone.
static void pass_on(int number)
{
    pthread_kill(watcher, number);
}

enum bsw_status bsw_stop_watch(struct bsw_error *err)
{
    fill(&watched);
    int failure = pthread_sigmask(SIG_BLOCK, &watched, NULL);
    if (failure == 0) failure = pthread_create(&watcher, NULL, watch, NULL);
    if (failure == 0) failure = pthread_detach(watcher);
    if (failure != 0)
        return bsw_fail(err, BSW_ERROR_IO, "cannot watch for signals: %s", strerror(failure));
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int number = 1; number < 32; number++) {
        if (sigismember(&watched, number) == 1) sigaction(number, &action, NULL);
    }
    return BSW_OK;
}

void bsw_stop_set_rank(int rank)
{
    atomic_store(&rank_here, rank);
}

int bsw_stop_rank(void)
{
    return atomic_load(&rank_here);
}

static void set_save(void (*function)(void *context), void *context, int begun)
{
    pthread_mutex_lock(&lock);
    save = function;
    save_context = context;
    atomic_store(&has_begun, begun);
    pthread_mutex_unlock(&lock);
}

void bsw_stop_begin(void (*function)(void *context), void *context)
{
    set_save(function, context, 1);
}

void bsw_stop_end(void)
{
    set_save(NULL, NULL, 0);
}

const char *bsw_stop_hint(void)
{
    return atomic_load(&has_begun) ? "; --resume goes on" : "";
}

int bsw_stop_is_asked(void)
{
    return atomic_load(&is_asked) || bsw_caller_is_stopping();
}

enum bsw_status bsw_stop_fail(struct bsw_error *err)
{
    if (!atomic_load(&is_asked)) return bsw_fail(err, BSW_ERROR_STOPPED, "stopped by its caller");
    return bsw_fail(err, BSW_ERROR_STOPPED, "stopped by SIGUSR1; --resume goes on");
}

void bsw_stop_hold(void)
{
    struct bsw_stop_cause cause;
    pthread_mutex_lock(&lock);
    if (find_cause(&cause)) end_for(&cause);
}

void bsw_stop_release(void)
{
    pthread_mutex_unlock(&lock);
}

void bsw_stop_conclude(int exit_code)
{
    atomic_store(&concluded, exit_code);
}

void bsw_stop_yield(void)
{
    while (atomic_load(&is_signalled)) pause();
}

void bsw_stop_set_observer(const struct bsw_stop_observer *given)
{
    pthread_mutex_lock(&lock);
    observer = given ? *given : (struct bsw_stop_observer){0};
    pthread_mutex_unlock(&lock);
}
