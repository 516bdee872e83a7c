// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of a test: messages go through inboxes in its memory, for functions that
// all ranks call together.
#ifndef BITSWEEP_TESTS_UNIT_THREAD_RANKS_H
#define BITSWEEP_TESTS_UNIT_THREAD_RANKS_H

#include <pthread.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/net/transport.h"
#include "common/net/transport_inbox.h"
#include "unit_test.h"

enum { MOST_RANKS = 8 };

struct thread_ranks {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct bsw_inbox inboxes[MOST_RANKS];
};

static inline enum bsw_status send_to_thread(bsw_transport *transport, int to,
                                             const struct bsw_message *message, const void *data,
                                             size_t bytes, int64_t deadline_ns,
                                             struct bsw_error *err)
{
    struct thread_ranks *ranks = (struct thread_ranks *)transport->state;
    (void)deadline_ns;
    pthread_mutex_lock(&ranks->lock);
    enum bsw_status status =
        bsw_inbox_push_copy(&ranks->inboxes[to], transport->rank, message, data, bytes, err);
    pthread_cond_broadcast(&ranks->arrived);
    pthread_mutex_unlock(&ranks->lock);
    return status;
}

static inline enum bsw_status receive_in_thread(bsw_transport *transport, int from,
                                                const struct bsw_message *expected,
                                                struct bsw_buffer *data, int *source,
                                                int64_t deadline_ns, struct bsw_error *err)
{
    struct thread_ranks *ranks = (struct thread_ranks *)transport->state;
    struct bsw_envelope *envelope;
    pthread_mutex_lock(&ranks->lock);
    while (!(envelope = bsw_inbox_take(&ranks->inboxes[transport->rank], from, expected)) &&
           bsw_clock_ns() < deadline_ns) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++; // then it looks at the deadline
        pthread_cond_timedwait(&ranks->arrived, &ranks->lock, &until);
    }
    pthread_mutex_unlock(&ranks->lock);
    return envelope ? bsw_envelope_deliver(envelope, data, source, err) : BSW_ERROR_TIMEOUT;
}

static inline enum bsw_status poll_in_thread(bsw_transport *transport, struct bsw_error *err)
{
    (void)transport, (void)err;
    return BSW_OK;
}

static inline void close_in_thread(bsw_transport *transport, int failed)
{
    (void)transport, (void)failed;
}

static const struct bsw_transport_ops thread_rank_ops = {
    "threads", send_to_thread, receive_in_thread, poll_in_thread, close_in_thread};

// What every rank does.
typedef enum bsw_status rank_fn(bsw_transport *transport, void *context, struct bsw_error *err);

struct rank_thread {
    pthread_t thread;
    bsw_transport transport;
    rank_fn *run;
    void *context;
    enum bsw_status status;
    struct bsw_error err;
};

static inline void *run_rank(void *argument)
{
    struct rank_thread *rank = (struct rank_thread *)argument;
    rank->status = rank->run(&rank->transport, rank->context, &rank->err);
    return NULL;
}

// statuses, errors: [num_ranks] of what each rank returned. All messages have been received.
static inline void run_ranks(int num_ranks, rank_fn *run, void *context, enum bsw_status *statuses,
                             struct bsw_error *errors)
{
    static struct rank_thread threads[MOST_RANKS];
    struct thread_ranks ranks = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                 .arrived = PTHREAD_COND_INITIALIZER};
    for (int r = 0; r < num_ranks; r++) {
        threads[r] = (struct rank_thread){
            .transport = {.ops = &thread_rank_ops,
                          .rank = r,
                          .num_ranks = num_ranks,
                          .timeout_seconds = 100,
                          .state = &ranks},
            .run = run,
            .context = context,
        };
        if (pthread_create(&threads[r].thread, NULL, run_rank, &threads[r]) != 0) abort();
    }
    for (int r = 0; r < num_ranks; r++) {
        pthread_join(threads[r].thread, NULL);
        statuses[r] = threads[r].status;
        errors[r] = threads[r].err;
    }
    for (int r = 0; r < num_ranks; r++) {
        assert_null(ranks.inboxes[r].first);
        bsw_inbox_deinit(&ranks.inboxes[r]);
    }
}

#endif
