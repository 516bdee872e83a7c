// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // accept4, POLLRDHUP
#endif
#include "common/net/heartbeat.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/net/transport_inbox.h"

#define BEAT_NS       ((int64_t)1000000000)
#define BEATS_A_LIMIT 4 // at least, where the limit is short
#define HELLO_NS      ((int64_t)5000000000)
#define MAX_STRANGERS 16

// Where rank 0 is the lost one the others speak up in turn, and the first to speak ends the job: an
// interval and so long after the one before, as they look for beats once an interval, each at
// another time.
#define TURN_SECONDS 0.5
#define MAX_TURNS    20

// What goes over a connection once it is welcomed: single bytes, and ends.
#define BYTE_BEAT    'b'
#define BYTE_GOODBYE 'g' // in good order; what follows means nothing
#define BYTE_END     'e' // the first byte of struct end

struct end {
    unsigned char kind;
    unsigned char is_said;
    unsigned char is_expelled; // the receiver was found lost
    unsigned char reserved;
    struct bsw_outcome outcome;
};

struct peer {
    int fd;
    int rank; // -1: has not said yet
    int is_closed, is_leaving;
    int is_lost; // found so by this rank
    int64_t silent_ns;
    char host[BSW_HOST_NAME_BYTES];
    size_t num_bytes; // of what has come in part
    unsigned char bytes[sizeof(struct end)];
};
_Static_assert(sizeof(struct bsw_heartbeat_hello) <= sizeof(struct end), "fits in bytes");

struct bsw_heartbeat {
    struct bsw_heartbeat_options options;
    uint64_t token;
    int64_t limit_ns, interval_ns;
    int64_t counted_ns; // clock: up to when silence is counted
    int64_t beat_ns;    // clock: of the next beat
    pthread_t thread;
    pthread_mutex_t lock; // of all below
    int listener;         // -1: none, or all are there
    int wake;             // of poll
    struct peer *peers;   // only the thread adds and removes
    struct pollfd *polled;
    size_t num_peers, max_peers;
    int num_joined;
    int is_ending, has_told, has_cause;
    struct bsw_stop_cause cause;
};

// ---- causes -------------------------------------------------------------------------------------

static double turn_seconds(const bsw_heartbeat *heartbeat)
{
    int turn = heartbeat->options.rank - 1;
    double seconds = TURN_SECONDS + (double)heartbeat->interval_ns / 1e9;
    return turn > 0 ? seconds * (turn < MAX_TURNS ? turn : MAX_TURNS) : 0;
}

static void find_lost(bsw_heartbeat *heartbeat, struct peer *peer, const char *how)
{
    peer->is_lost = 1;
    if (heartbeat->has_cause || heartbeat->has_told) return;
    heartbeat->has_cause = 1;
    heartbeat->cause = (struct bsw_stop_cause){.pause_seconds = turn_seconds(heartbeat)};
    bsw_fail(&heartbeat->cause.error, BSW_ERROR_PEER, "rank %d on host %s %s%s", peer->rank,
             peer->host, how, bsw_stop_hint());
    heartbeat->cause.error.rank = heartbeat->options.rank > 0 ? heartbeat->options.rank : -1;
}

static void find_broken(bsw_heartbeat *heartbeat, struct peer *peer)
{
    peer->is_closed = 1;
    if (peer->rank >= 0 && !peer->is_leaving)
        find_lost(heartbeat, peer, "is lost: its connection broke");
}

// Takes how a peer ended. Rank 0 always prints what it ends with, and it prints for all others.
static void take_end(bsw_heartbeat *heartbeat, const struct peer *peer)
{
    struct end end;
    struct bsw_outcome outcome;
    struct bsw_error error;
    memcpy(&end, peer->bytes, sizeof end);
    if (heartbeat->has_cause || heartbeat->has_told) return;
    if (bsw_outcome_read(&end.outcome, sizeof end.outcome, peer->rank, &outcome, &error) == BSW_OK)
        bsw_fail(&error, outcome.status == BSW_OK ? BSW_ERROR_PEER : outcome.status, "%s",
                 outcome.message);
    error.rank = -1;
    heartbeat->has_cause = 1;
    heartbeat->cause = (struct bsw_stop_cause){
        .error = error, .is_said = end.is_said || peer->rank == 0, .is_expelled = end.is_expelled};
}

// ---- what comes ---------------------------------------------------------------------------------

static void drop_front(struct peer *peer, size_t bytes)
{
    peer->num_bytes -= bytes;
    memmove(peer->bytes, peer->bytes + bytes, peer->num_bytes);
}

static int is_taken(const bsw_heartbeat *heartbeat, int rank)
{
    for (size_t i = 0; i < heartbeat->num_peers; i++) {
        if (heartbeat->peers[i].rank == rank) return 1;
    }
    return 0;
}

static void take_hello(bsw_heartbeat *heartbeat, struct peer *peer)
{
    struct bsw_heartbeat_hello hello;
    uint64_t welcome = bsw_heartbeat_welcome(heartbeat->token);
    memcpy(&hello, peer->bytes, sizeof hello);
    hello.host[sizeof hello.host - 1] = '\0';
    if (hello.token != heartbeat->token || hello.rank < 1 ||
        hello.rank >= heartbeat->options.num_ranks || is_taken(heartbeat, hello.rank) ||
        send(peer->fd, &welcome, sizeof welcome, MSG_NOSIGNAL) != (ssize_t)sizeof welcome) {
        peer->is_closed = 1;
        return;
    }
    peer->rank = hello.rank;
    memcpy(peer->host, hello.host, sizeof peer->host);
    heartbeat->num_joined++;
    drop_front(peer, sizeof hello);
}

// 1 if there was something whole.
static int take_one(bsw_heartbeat *heartbeat, struct peer *peer)
{
    if (peer->is_closed || peer->num_bytes == 0) return 0;
    if (peer->rank < 0) {
        if (peer->num_bytes < sizeof(struct bsw_heartbeat_hello)) return 0;
        take_hello(heartbeat, peer);
        return 1;
    }
    if (peer->bytes[0] == BYTE_END) {
        if (peer->num_bytes < sizeof(struct end)) return 0;
        take_end(heartbeat, peer);
        drop_front(peer, sizeof(struct end));
        return 1;
    }
    if (peer->bytes[0] == BYTE_GOODBYE) peer->is_leaving = 1;
    if (peer->bytes[0] != BYTE_GOODBYE && peer->bytes[0] != BYTE_BEAT) {
        find_broken(heartbeat, peer);
        return 0;
    }
    drop_front(peer, 1);
    return 1;
}

static void receive(bsw_heartbeat *heartbeat, struct peer *peer)
{
    while (!peer->is_closed) {
        size_t room = sizeof peer->bytes - peer->num_bytes;
        ssize_t count = recv(peer->fd, peer->bytes + peer->num_bytes, room, MSG_DONTWAIT);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EAGAIN) return;
        if (count <= 0) {
            find_broken(heartbeat, peer);
            return;
        }
        if (peer->rank >= 0) peer->silent_ns = 0; // a stranger is given so long and no longer
        peer->num_bytes += (size_t)count;
        while (take_one(heartbeat, peer)) continue;
    }
}

static void receive_all(bsw_heartbeat *heartbeat)
{
    for (size_t i = 0; i < heartbeat->num_peers; i++) receive(heartbeat, &heartbeat->peers[i]);
}

static void close_listener(bsw_heartbeat *heartbeat)
{
    if (heartbeat->listener >= 0) close(heartbeat->listener);
    heartbeat->listener = -1;
}

static void accept_all(bsw_heartbeat *heartbeat)
{
    int yes = 1;
    while (heartbeat->listener >= 0 && heartbeat->num_peers < heartbeat->max_peers) {
        int fd = accept4(heartbeat->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        // Without a free descriptor poll would come back at once for ever; who waits is told by
        // the end of the listener.
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) close_listener(heartbeat);
        if (fd < 0) return;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        heartbeat->peers[heartbeat->num_peers++] = (struct peer){.fd = fd, .rank = -1};
    }
}

// ---- the thread ---------------------------------------------------------------------------------

static void count_silence(bsw_heartbeat *heartbeat)
{
    int64_t now = bsw_clock_ns(), passed = now - heartbeat->counted_ns;
    heartbeat->counted_ns = now;
    // Longer than this thread ever sleeps: it was not running, and perhaps nobody was.
    if (passed > 2 * heartbeat->interval_ns) passed = 2 * heartbeat->interval_ns;
    for (size_t i = 0; i < heartbeat->num_peers; i++) heartbeat->peers[i].silent_ns += passed;
}

static void check_silence(bsw_heartbeat *heartbeat)
{
    char how[64];
    snprintf(how, sizeof how, "has been silent for %.3g s", heartbeat->options.limit_seconds);
    for (size_t i = 0; i < heartbeat->num_peers; i++) {
        struct peer *peer = &heartbeat->peers[i];
        if (peer->rank < 0 && peer->silent_ns >= HELLO_NS) peer->is_closed = 1;
        if (peer->rank < 0 || peer->is_leaving || peer->silent_ns < heartbeat->limit_ns) continue;
        find_lost(heartbeat, peer, how);
    }
}

// Strangers, and ranks that have left. Once all are there nobody else is let in.
static void remove_closed(bsw_heartbeat *heartbeat)
{
    int is_complete = heartbeat->num_joined == heartbeat->options.num_ranks - 1;
    size_t num_kept = 0;
    for (size_t i = 0; i < heartbeat->num_peers; i++) {
        struct peer *peer = &heartbeat->peers[i];
        if (peer->is_closed || (is_complete && peer->rank < 0))
            close(peer->fd);
        else
            heartbeat->peers[num_kept++] = *peer;
    }
    heartbeat->num_peers = num_kept;
    if (is_complete) close_listener(heartbeat);
}

static void beat_if_due(bsw_heartbeat *heartbeat)
{
    const unsigned char beat = BYTE_BEAT;
    int64_t now = bsw_clock_ns();
    if (now < heartbeat->beat_ns) return;
    heartbeat->beat_ns = now + heartbeat->interval_ns;
    for (size_t i = 0; i < heartbeat->num_peers; i++) {
        struct peer *peer = &heartbeat->peers[i];
        // What cannot be sent is not missed: whoever does not read is silent, too.
        if (peer->rank >= 0) (void)send(peer->fd, &beat, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

// A beat wakes nobody: they are read once an interval. A connection that ends does, and a hello.
static size_t list_polled(bsw_heartbeat *heartbeat)
{
    size_t count = 0;
    heartbeat->polled[count++] = (struct pollfd){.fd = heartbeat->wake, .events = POLLIN};
    if (heartbeat->num_peers < heartbeat->max_peers)
        heartbeat->polled[count++] = (struct pollfd){.fd = heartbeat->listener, .events = POLLIN};
    for (size_t i = 0; i < heartbeat->num_peers; i++) {
        short events = heartbeat->peers[i].rank < 0 ? POLLIN | POLLRDHUP : POLLRDHUP;
        heartbeat->polled[count++] =
            (struct pollfd){.fd = heartbeat->peers[i].fd, .events = events};
    }
    return count;
}

static void wait_for_news(bsw_heartbeat *heartbeat)
{
    size_t count = list_polled(heartbeat);
    int64_t left_ns = heartbeat->beat_ns - bsw_clock_ns();
    int milliseconds = left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0;
    pthread_mutex_unlock(&heartbeat->lock);
    (void)poll(heartbeat->polled, count, milliseconds);
    pthread_mutex_lock(&heartbeat->lock);
}

static void *beat_and_watch(void *argument)
{
    bsw_heartbeat *heartbeat = argument;
    pthread_mutex_lock(&heartbeat->lock);
    while (!heartbeat->is_ending && !heartbeat->has_cause) {
        wait_for_news(heartbeat);
        count_silence(heartbeat);
        accept_all(heartbeat);
        receive_all(heartbeat);
        if (!heartbeat->is_ending) check_silence(heartbeat);
        remove_closed(heartbeat);
        beat_if_due(heartbeat);
    }
    int is_due = heartbeat->has_cause && !heartbeat->is_ending;
    struct bsw_stop_cause cause = heartbeat->cause;
    pthread_mutex_unlock(&heartbeat->lock);
    if (is_due) heartbeat->options.alarm(heartbeat->options.context, &cause);
    return NULL;
}

// ---- start and end ------------------------------------------------------------------------------

static void free_all(bsw_heartbeat **address)
{
    bsw_heartbeat *heartbeat = *address;
    for (size_t i = 0; i < heartbeat->num_peers; i++) close(heartbeat->peers[i].fd);
    close_listener(heartbeat);
    if (heartbeat->wake >= 0) close(heartbeat->wake);
    pthread_mutex_destroy(&heartbeat->lock);
    bsw_free(&heartbeat->peers);
    bsw_free(&heartbeat->polled);
    bsw_free(address);
}

static enum bsw_status create(const struct bsw_heartbeat_options *options, bsw_heartbeat **out,
                              struct bsw_error *err)
{
    bsw_heartbeat *heartbeat;
    BSW_TRY(bsw_allocate_zero(&heartbeat, 1, sizeof *heartbeat, "heartbeats", err));
    heartbeat->options = *options;
    heartbeat->limit_ns = (int64_t)(options->limit_seconds * 1e9);
    heartbeat->interval_ns = heartbeat->limit_ns / BEATS_A_LIMIT;
    if (heartbeat->interval_ns > BEAT_NS) heartbeat->interval_ns = BEAT_NS;
    heartbeat->listener = -1;
    heartbeat->max_peers = options->rank == 0 ? (size_t)options->num_ranks - 1 + MAX_STRANGERS : 1;
    pthread_mutex_init(&heartbeat->lock, NULL);
    heartbeat->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    enum bsw_status status = BSW_OK;
    if (heartbeat->wake < 0)
        status = bsw_fail(err, BSW_ERROR_IO, "heartbeats: %s", strerror(errno));
    if (status == BSW_OK)
        status = bsw_allocate_zero(&heartbeat->peers, heartbeat->max_peers,
                                   sizeof *heartbeat->peers, "heartbeats", err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&heartbeat->polled, heartbeat->max_peers + 2,
                                   sizeof *heartbeat->polled, "heartbeats", err);
    if (status != BSW_OK)
        free_all(&heartbeat);
    else
        *out = heartbeat;
    return status;
}

static enum bsw_status start(bsw_heartbeat *heartbeat, struct bsw_error *err)
{
    heartbeat->counted_ns = heartbeat->beat_ns = bsw_clock_ns();
    int code = pthread_create(&heartbeat->thread, NULL, beat_and_watch, heartbeat);
    if (code == 0) pthread_setname_np(heartbeat->thread, "heartbeat"); // in top -H
    if (code == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "heartbeats: no thread: %s", strerror(code));
}

// Starts what `status` says is ready, else frees it.
static enum bsw_status start_or_free(bsw_heartbeat *heartbeat, enum bsw_status status,
                                     bsw_heartbeat **out, struct bsw_error *err)
{
    if (status == BSW_OK) status = start(heartbeat, err);
    if (status != BSW_OK) free_all(&heartbeat);
    *out = heartbeat;
    return status;
}

enum bsw_status bsw_heartbeat_listen(const struct bsw_heartbeat_options *options,
                                     struct bsw_heartbeat_place *place, bsw_heartbeat **out,
                                     struct bsw_error *err)
{
    bsw_heartbeat *heartbeat;
    *out = NULL;
    BSW_TRY(create(options, &heartbeat, err));
    enum bsw_status status =
        bsw_heartbeat_open_listener(options->num_ranks, &heartbeat->listener, place, err);
    heartbeat->token = place->token;
    return start_or_free(heartbeat, status, out, err);
}

enum bsw_status bsw_heartbeat_join(const struct bsw_heartbeat_options *options,
                                   const struct bsw_heartbeat_place *place, bsw_heartbeat **out,
                                   struct bsw_error *err)
{
    bsw_heartbeat *heartbeat;
    *out = NULL;
    BSW_TRY(create(options, &heartbeat, err));
    struct peer *peer = &heartbeat->peers[0];
    enum bsw_status status = bsw_heartbeat_connect(place, options->rank, &peer->fd, err);
    if (status == BSW_OK) {
        heartbeat->num_peers = 1;
        heartbeat->num_joined = options->num_ranks - 1; // nobody is to come
        snprintf(peer->host, sizeof peer->host, "%s", place->host);
    }
    return start_or_free(heartbeat, status, out, err);
}

int bsw_heartbeat_find(bsw_heartbeat *heartbeat, struct bsw_stop_cause *cause)
{
    pthread_mutex_lock(&heartbeat->lock);
    if (!heartbeat->has_cause) receive_all(heartbeat);
    int has_cause = heartbeat->has_cause;
    *cause = heartbeat->cause;
    pthread_mutex_unlock(&heartbeat->lock);
    return has_cause;
}

static void send_end(const struct peer *peer, const struct bsw_error *error, int is_said)
{
    const unsigned char goodbye = BYTE_GOODBYE;
    struct end end = {.kind = BYTE_END,
                      .is_said = (unsigned char)(is_said != 0),
                      .is_expelled = (unsigned char)(peer->is_lost != 0)};
    if (error) {
        end.outcome = (struct bsw_outcome){.status = (int32_t)error->status, .rank = error->rank};
        snprintf(end.outcome.message, sizeof end.outcome.message, "%s", error->message);
    }
    (void)send(peer->fd, error ? (const void *)&end : &goodbye, error ? sizeof end : 1,
               MSG_DONTWAIT | MSG_NOSIGNAL);
}

void bsw_heartbeat_tell(bsw_heartbeat *heartbeat, const struct bsw_error *error, int is_said)
{
    pthread_mutex_lock(&heartbeat->lock);
    receive_all(heartbeat); // a socket that is closed with bytes unread takes back what was sent
    for (size_t i = 0; i < heartbeat->num_peers && !heartbeat->has_told; i++) {
        const struct peer *peer = &heartbeat->peers[i];
        if (peer->rank >= 0 && !peer->is_closed && !peer->is_leaving)
            send_end(peer, error, is_said);
    }
    heartbeat->has_told = 1;
    pthread_mutex_unlock(&heartbeat->lock);
}

void bsw_heartbeat_await_close(bsw_heartbeat *heartbeat, int milliseconds)
{
    const struct timespec nap = {0, 1000000};
    for (int is_closed = 0; milliseconds > 0 && !is_closed; milliseconds--) {
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&heartbeat->lock);
        is_closed = heartbeat->num_peers == 0 || heartbeat->peers[0].is_closed;
        pthread_mutex_unlock(&heartbeat->lock);
    }
}

void bsw_heartbeat_close(bsw_heartbeat **address)
{
    bsw_heartbeat *heartbeat = *address;
    const uint64_t one = 1;
    if (!heartbeat) return;
    bsw_heartbeat_tell(heartbeat, NULL, 1);
    pthread_mutex_lock(&heartbeat->lock);
    heartbeat->is_ending = 1;
    pthread_mutex_unlock(&heartbeat->lock);
    (void)!write(heartbeat->wake, &one, sizeof one);
    pthread_join(heartbeat->thread, NULL);
    free_all(address);
}
