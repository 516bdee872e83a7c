// SPDX-License-Identifier: Apache-2.0
// Ranks that beat, fall silent, break off, leave and end, and strangers at the door. Both sides run
// in this process, or one of them is a bare socket that plays its part.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/net/heartbeat.h"
#include "unit_test.h"

#define LIMIT_SECONDS   1.0
#define PATIENT_SECONDS 30.0 // on a busy machine; nothing waits for it where all is well

static struct bsw_error err;

// What a rank's thread has found.
struct news {
    struct bsw_stop_cause cause;
    atomic_int has_come;
};

static void take_alarm(void *context, const struct bsw_stop_cause *cause)
{
    struct news *news = context;
    news->cause = *cause;
    assert_int_equal(atomic_exchange(&news->has_come, 1), 0);
}

static struct bsw_heartbeat_options options_of(int rank, int num_ranks, struct news *news)
{
    *news = (struct news){0};
    return (struct bsw_heartbeat_options){rank, num_ranks, LIMIT_SECONDS, take_alarm, news};
}

static bsw_heartbeat *listen_for(int num_ranks, struct bsw_heartbeat_place *place,
                                 struct news *news)
{
    bsw_heartbeat *heartbeat;
    struct bsw_heartbeat_options options = options_of(0, num_ranks, news);
    assert_int_equal(bsw_heartbeat_listen(&options, place, &heartbeat, &err), BSW_OK);
    assert_true(place->port > 0);
    return heartbeat;
}

static bsw_heartbeat *join(int rank, int num_ranks, const struct bsw_heartbeat_place *place,
                           struct news *news)
{
    bsw_heartbeat *heartbeat;
    struct bsw_heartbeat_options options = options_of(rank, num_ranks, news);
    assert_int_equal(bsw_heartbeat_join(&options, place, &heartbeat, &err), BSW_OK);
    return heartbeat;
}

static void sleep_seconds(double seconds)
{
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

static void await_alarm(struct news *news)
{
    double deadline = bsw_clock_seconds() + PATIENT_SECONDS;
    while (!atomic_load(&news->has_come) && bsw_clock_seconds() < deadline) sleep_seconds(0.002);
    assert_true(atomic_load(&news->has_come));
}

// The text that names a rank of this host.
static void assert_named(const struct news *news, int rank, const char *how)
{
    char host[BSW_HOST_NAME_BYTES], text[256];
    bsw_host_name(host, sizeof host);
    snprintf(text, sizeof text, "rank %d on host %s %s", rank, host, how);
    assert_string_equal(news->cause.error.message, text);
    assert_int_equal(news->cause.error.status, BSW_ERROR_PEER);
    assert_false(news->cause.is_said);
    assert_false(news->cause.is_expelled);
}

// ---- bare sockets ----

// As rank `rank`, welcomed.
static int connect_as(int rank, const struct bsw_heartbeat_place *place)
{
    int fd;
    assert_int_equal(bsw_heartbeat_connect(place, rank, &fd, &err), BSW_OK);
    return fd;
}

static int connect_stranger(const struct bsw_heartbeat_place *place)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)place->port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void say(int fd, const void *bytes, size_t count)
{
    assert_int_equal(send(fd, bytes, count, MSG_NOSIGNAL), count);
}

// Whether the other side has closed within the time; what comes before is dropped.
static int is_closed_within(int fd, double seconds)
{
    double deadline = bsw_clock_seconds() + seconds;
    char bytes[64];
    for (double left; (left = deadline - bsw_clock_seconds()) > 0;) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        if (poll(&entry, 1, (int)(left * 1000) + 1) == 1 && recv(fd, bytes, sizeof bytes, 0) <= 0)
            return 1;
    }
    return 0;
}

// The first byte that is no beat, and `count` - 1 behind it.
static void read_end(int fd, unsigned char *out, size_t count)
{
    for (size_t num_read = 0; num_read < count;) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&entry, 1, (int)(PATIENT_SECONDS * 1000)), 1);
        assert_true(recv(fd, out + num_read, 1, 0) == 1);
        if (num_read > 0 || out[0] != 'b') num_read++;
    }
}

struct joining {
    const struct bsw_heartbeat_options *options;
    const struct bsw_heartbeat_place *place;
    bsw_heartbeat *heartbeat;
    enum bsw_status status;
    struct bsw_error error;
};

static void *run_join(void *argument)
{
    struct joining *joining = argument;
    joining->status =
        bsw_heartbeat_join(joining->options, joining->place, &joining->heartbeat, &joining->error);
    return NULL;
}

// Takes one rank in as rank 0 would, but answers `welcome`; the connection.
static int take_in(int listener, struct joining *joining, uint64_t welcome)
{
    pthread_t thread;
    struct bsw_heartbeat_hello hello;
    struct pollfd entry = {.fd = listener, .events = POLLIN};
    assert_int_equal(pthread_create(&thread, NULL, run_join, joining), 0);
    assert_int_equal(poll(&entry, 1, (int)(PATIENT_SECONDS * 1000)), 1);
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    assert_int_equal(recv(fd, &hello, sizeof hello, MSG_WAITALL), sizeof hello);
    assert_int_equal(hello.rank, joining->options->rank);
    assert_int_equal(hello.token, joining->place->token);
    say(fd, &welcome, sizeof welcome);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return fd;
}

// ---- tests ----

UNIT_TEST(ranks_that_beat_are_left_alone_and_leave_in_good_order)
{
    enum { NUM_RANKS = 4 };
    struct bsw_heartbeat_place place;
    struct news news[NUM_RANKS];
    struct bsw_stop_cause cause;
    bsw_heartbeat *ranks[NUM_RANKS];
    ranks[0] = listen_for(NUM_RANKS, &place, &news[0]);
    for (int i = 1; i < NUM_RANKS; i++) ranks[i] = join(i, NUM_RANKS, &place, &news[i]);
    sleep_seconds(2.5 * LIMIT_SECONDS);
    for (int i = 0; i < NUM_RANKS; i++) assert_false(bsw_heartbeat_find(ranks[i], &cause));
    static const int order[NUM_RANKS] = {2, 0, 3, 1};
    for (int i = 0; i < NUM_RANKS; i++) bsw_heartbeat_close(&ranks[order[i]]);
    for (int i = 0; i < NUM_RANKS; i++) assert_false(atomic_load(&news[i].has_come));
    bsw_heartbeat_close(&ranks[0]); // of none
}

UNIT_TEST(a_silent_rank_is_named_after_the_limit_and_told_that_it_is_lost)
{
    struct bsw_heartbeat_place place;
    struct news news, other;
    unsigned char end[3];
    bsw_heartbeat *zero = listen_for(3, &place, &news);
    bsw_heartbeat *one = join(1, 3, &place, &other);
    double began = bsw_clock_seconds();
    int silent = connect_as(2, &place);
    await_alarm(&news);
    assert_true(bsw_clock_seconds() - began > 0.7 * LIMIT_SECONDS);
    assert_named(&news, 2, "has been silent for 1 s");
    assert_int_equal(news.cause.error.rank, -1);
    bsw_heartbeat_tell(zero, &news.cause.error, 1);
    read_end(silent, end, sizeof end);
    assert_memory_equal(end, "e\1\1", 3); // said, expelled
    await_alarm(&other);
    assert_true(other.cause.is_said);
    assert_false(other.cause.is_expelled);
    assert_string_equal(other.cause.error.message, news.cause.error.message);
    bsw_heartbeat_close(&one);
    bsw_heartbeat_close(&zero);
    close(silent);
}

UNIT_TEST(beats_keep_a_rank_alive)
{
    struct bsw_heartbeat_place place;
    struct news news;
    bsw_heartbeat *zero = listen_for(2, &place, &news);
    int fd = connect_as(1, &place);
    for (int i = 0; i < 25; i++) {
        say(fd, "b", 1);
        sleep_seconds(0.1 * LIMIT_SECONDS);
    }
    assert_false(atomic_load(&news.has_come));
    await_alarm(&news);
    bsw_heartbeat_close(&zero);
    close(fd);
}

// Rank 0 in a process of its own: says where it listens on `out`, and once `in` is closed ends with
// 1 if it found a rank lost, else 0.
static _Noreturn void be_rank_0(double limit_seconds, int in, int out)
{
    struct bsw_heartbeat_place place;
    struct news news;
    struct bsw_heartbeat_options options = options_of(0, 2, &news);
    struct bsw_stop_cause cause;
    bsw_heartbeat *zero;
    char byte;
    options.limit_seconds = limit_seconds;
    if (bsw_heartbeat_listen(&options, &place, &zero, &err) != BSW_OK) _exit(2);
    if (write(out, &place, sizeof place) != (ssize_t)sizeof place) _exit(2);
    (void)!read(in, &byte, 1);
    int is_lost = bsw_heartbeat_find(zero, &cause);
    bsw_heartbeat_close(&zero);
    _exit(is_lost);
}

// A job that is suspended as a whole, or a machine that sleeps: while rank 0 was not running it has
// heard nobody, and that is nobody's fault.
UNIT_TEST(time_in_which_nobody_ran_is_not_silence)
{
    const double limit = 2; // leaves both processes time on a busy machine
    struct bsw_heartbeat_place place;
    int to_child[2], from_child[2], status;
    assert_int_equal(pipe(to_child), 0);
    assert_int_equal(pipe(from_child), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(to_child[1]);
        be_rank_0(limit, to_child[0], from_child[1]);
    }
    close(to_child[0]);
    assert_int_equal(read(from_child[0], &place, sizeof place), sizeof place);
    int fd = connect_as(1, &place);
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    char beats[64];
    (void)poll(&entry, 1,
               5000); // a beat: it is about to wait, and not half way from one to the next
    sleep_seconds(0.1 * limit);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    sleep_seconds(1.1 * limit);
    while (recv(fd, beats, sizeof beats, MSG_DONTWAIT) > 0) continue;
    assert_int_equal(kill(child, SIGCONT), 0);
    (void)poll(&entry, 1, 5000); // its next beat: by then it has counted, and heard nobody
    say(fd, "b", 1);
    sleep_seconds(0.05 * limit);
    close(to_child[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(from_child[0]);
    close(from_child[1]);
    close(fd);
}

UNIT_TEST(a_broken_connection_is_noticed_but_not_after_goodbye)
{
    struct bsw_heartbeat_place place;
    struct bsw_stop_cause cause;
    struct news news;
    bsw_heartbeat *zero = listen_for(3, &place, &news);
    int leaving = connect_as(1, &place), dying = connect_as(2, &place);
    say(leaving, "bg", 2);
    close(leaving);
    sleep_seconds(0.2);
    assert_false(bsw_heartbeat_find(zero, &cause));
    close(dying);
    while (!bsw_heartbeat_find(zero, &cause)) sleep_seconds(0.001); // by itself or by its thread
    await_alarm(&news);
    assert_named(&news, 2, "is lost: its connection broke");
    bsw_heartbeat_close(&zero);
}

UNIT_TEST(bytes_that_make_no_sense_are_a_broken_connection)
{
    struct bsw_heartbeat_place place;
    struct news news;
    bsw_heartbeat *zero = listen_for(2, &place, &news);
    int fd = connect_as(1, &place);
    say(fd, "bbx", 3);
    await_alarm(&news);
    assert_named(&news, 1, "is lost: its connection broke");
    bsw_heartbeat_close(&zero);
    close(fd);
}

UNIT_TEST(ranks_speak_of_rank_0_in_turn)
{
    static const struct {
        int rank;
        double pause_seconds;
    } expected[] = {{1, 0}, {2, 0.75}, {4, 2.25}, {500, 15}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct bsw_heartbeat_place place;
        struct news news;
        int listener;
        assert_int_equal(bsw_heartbeat_open_listener(2, &listener, &place, &err), BSW_OK);
        struct bsw_heartbeat_options options = options_of(expected[i].rank, 501, &news);
        struct joining joining = {&options, &place, NULL, BSW_OK, {0}};
        int fd = take_in(listener, &joining, bsw_heartbeat_welcome(place.token));
        assert_int_equal(joining.status, BSW_OK);
        close(fd);
        await_alarm(&news);
        assert_named(&news, 0, "is lost: its connection broke");
        assert_int_equal(news.cause.error.rank, expected[i].rank);
        assert_true(news.cause.pause_seconds == expected[i].pause_seconds);
        bsw_heartbeat_close(&joining.heartbeat);
        close(listener);
    }
}

UNIT_TEST(a_rank_that_ends_the_job_says_why)
{
    for (int is_said = 0; is_said <= 1; is_said++) {
        struct bsw_heartbeat_place place;
        struct news news, other;
        struct bsw_error why;
        bsw_heartbeat *zero = listen_for(2, &place, &news);
        bsw_heartbeat *one = join(1, 2, &place, &other);
        bsw_fail(&why, BSW_ERROR_IO, "the disk is full");
        bsw_heartbeat_tell(one, &why, is_said);
        await_alarm(&news);
        assert_int_equal(news.cause.error.status, BSW_ERROR_IO);
        assert_string_equal(news.cause.error.message, "the disk is full");
        assert_int_equal(news.cause.is_said, is_said);
        assert_false(news.cause.is_expelled);
        // Who has told is no longer interested in what becomes of the others.
        bsw_heartbeat_close(&zero);
        bsw_heartbeat_await_close(one, (int)(PATIENT_SECONDS * 1000));
        bsw_heartbeat_close(&one);
        assert_false(atomic_load(&other.has_come));
    }
}

UNIT_TEST(strangers_are_dropped_and_ranks_come_in_beside_them)
{
    struct bsw_heartbeat_place place;
    struct news news, other;
    bsw_heartbeat *zero = listen_for(3, &place, &news);
    const struct bsw_heartbeat_hello wrong[] = {
        {.token = place.token ^ 1, .rank = 2}, {.token = place.token, .rank = 0},
        {.token = place.token, .rank = 3},     {.token = place.token, .rank = -1},
        {.token = place.token, .rank = 1}, // once rank 1 is there
    };
    size_t num_wrong = sizeof wrong / sizeof wrong[0];
    int mute = connect_stranger(&place), talker = connect_stranger(&place);
    say(talker, "GET / HTTP/1.0\r\n", 16);
    bsw_heartbeat *one = join(1, 3, &place, &other);
    for (size_t i = 0; i < num_wrong; i++) {
        int fd = connect_stranger(&place);
        say(fd, &wrong[i], sizeof wrong[i]);
        assert_true(is_closed_within(fd, PATIENT_SECONDS));
        close(fd);
    }
    assert_false(is_closed_within(mute, 0.1)); // it may still be a rank
    struct news last;
    bsw_heartbeat *two = join(2, 3, &place, &last);
    assert_true(is_closed_within(mute, PATIENT_SECONDS));
    assert_true(is_closed_within(talker, PATIENT_SECONDS));
    close(mute);
    close(talker);
    bsw_heartbeat_close(&zero);
    bsw_heartbeat_close(&one);
    bsw_heartbeat_close(&two);
    assert_false(atomic_load(&news.has_come) || atomic_load(&other.has_come));
}

UNIT_TEST(whoever_says_nothing_is_dropped_in_time)
{
    struct bsw_heartbeat_place place;
    struct news news;
    bsw_heartbeat *zero = listen_for(2, &place, &news);
    int fd = connect_stranger(&place);
    assert_true(is_closed_within(fd, PATIENT_SECONDS));
    close(fd);
    close(connect_as(1, &place)); // there is still room for a rank
    await_alarm(&news);
    bsw_heartbeat_close(&zero);
}

UNIT_TEST(a_place_that_cannot_be_reached_is_an_error_that_names_it)
{
    struct bsw_heartbeat_place place;
    struct news news;
    int listener;
    assert_int_equal(bsw_heartbeat_open_listener(2, &listener, &place, &err), BSW_OK);
    struct bsw_heartbeat_options options = options_of(1, 2, &news);
    // A stranger that listens where rank 0 did.
    struct bsw_heartbeat_place other = place;
    other.num_addresses = 0;
    struct joining joining = {&options, &other, NULL, BSW_OK, {0}};
    close(take_in(listener, &joining, place.token));
    assert_int_equal(joining.status, BSW_ERROR_IO);
    assert_non_null(strstr(joining.error.message, "127.0.0.1: Protocol error"));
    close(listener);
    bsw_heartbeat *heartbeat = NULL;
    assert_int_equal(bsw_heartbeat_join(&options, &other, &heartbeat, &err), BSW_ERROR_IO);
    assert_null(heartbeat);
    assert_non_null(strstr(err.message, "cannot reach rank 0 on host "));
    assert_non_null(strstr(err.message, "127.0.0.1: Connection refused; --heartbeat 0 goes"));
    snprintf(other.host, sizeof other.host, "elsewhere");
    assert_int_equal(bsw_heartbeat_join(&options, &other, &heartbeat, &err), BSW_ERROR_IO);
    assert_non_null(strstr(err.message, "host elsewhere, port"));
    assert_non_null(strstr(err.message, "it has no address; --heartbeat 0 goes without"));
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
