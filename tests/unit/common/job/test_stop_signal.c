// SPDX-License-Identifier: Apache-2.0
// How a process ends for a cause that another thread has learnt, or a signal whose cause it has:
// what is printed, saved, told, written, and the exit code. Each time in a process of its own.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/job/run_status.h"
#include "common/job/stop_signal.h"
#include "temporary_folder.h"
#include "unit_test.h"

#define RETURNED 99 // the process was not ended

// A process to be ended.
struct scene {
    int rank;
    struct bsw_stop_cause cause;
    int is_known; // to the observer
    void (*act)(const struct scene *scene);
    char text[2048]; // what it printed, said with "saved\n" and "told"
};

// ---- the process ----

static void save(void *context)
{
    (void)context;
    dprintf(STDERR_FILENO, "saved\n");
}

static int find(void *context, struct bsw_stop_cause *cause)
{
    const struct scene *scene = context;
    *cause = scene->cause;
    return scene->is_known;
}

static void tell(void *context, const struct bsw_error *error, int is_said)
{
    (void)context;
    dprintf(STDERR_FILENO, "told %s %d\n", error ? error->message : "nothing", is_said);
}

static void end_for_cause(const struct scene *scene)
{
    bsw_stop_for(&scene->cause);
}

static void hold(const struct scene *scene)
{
    (void)scene;
    bsw_stop_hold();
    bsw_stop_release();
}

// A stop comes while an output gets its name: 0.2 s are enough for the one that would not wait.
static void hold_through_a_signal(const struct scene *scene)
{
    const struct timespec nap = {0, 200000000};
    (void)scene;
    alarm(15);
    bsw_stop_hold();
    kill(getpid(), SIGTERM);
    nanosleep(&nap, NULL);
    dprintf(STDERR_FILENO, "named\n");
    bsw_stop_release();
    sleep(30);
}

static void get_signal(const struct scene *scene)
{
    (void)scene;
    alarm(15); // until then it must have begun to end
    kill(getpid(), SIGTERM);
    sleep(30);
}

static void conclude_and_end(const struct scene *scene)
{
    bsw_stop_conclude(0);
    bsw_stop_for(&scene->cause);
}

static void play(struct scene *scene, const char *status_path)
{
    struct bsw_error err;
    const struct bsw_stop_observer observer = {find, tell, scene};
    setenv("BITSWEEP_STATUS", status_path, 1);
    bsw_run_status_begin("test");
    if (bsw_stop_watch(&err) != BSW_OK) _exit(RETURNED);
    bsw_stop_set_rank(scene->rank);
    bsw_stop_set_observer(&observer);
    bsw_stop_begin(save, NULL);
    scene->act(scene);
    _exit(RETURNED);
}

// ---- the test ----

// Plays the scene and compares all that was printed, in order.
static void expect(struct scene *scene, int exit_code, int has_status, const char *text)
{
    const char *path = path_of("status");
    int ends[2], how;
    unlink(path);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        play(scene, path);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t count;
         (count = read(ends[0], scene->text + used, sizeof scene->text - 1 - used)) > 0;)
        used += (size_t)count;
    scene->text[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_string_equal(scene->text, text);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), exit_code);
    assert_int_equal(access(path, F_OK) == 0, has_status);
}

static struct scene scene_of(int rank, enum bsw_status status, void (*act)(const struct scene *))
{
    struct scene scene = {.rank = rank, .act = act};
    bsw_fail(&scene.cause.error, status, "rank 3 is lost");
    scene.cause.error.rank = rank > 0 ? rank : -1;
    return scene;
}

UNIT_TEST(a_cause_is_printed_saved_written_and_told)
{
    struct scene scene = scene_of(0, BSW_ERROR_IO, end_for_cause);
    expect(&scene, 74, 1, "bitsweep: rank 3 is lost\nsaved\ntold rank 3 is lost 1\n");
    scene = scene_of(2, BSW_ERROR_PEER, end_for_cause); // STATUS is rank 0's
    expect(&scene, 75, 0, "bitsweep: rank 2: rank 3 is lost\nsaved\ntold rank 3 is lost 1\n");
}

UNIT_TEST(what_is_said_elsewhere_is_not_printed)
{
    struct scene scene = scene_of(0, BSW_ERROR_PEER, end_for_cause);
    scene.cause.is_said = 1;
    expect(&scene, 75, 1, "saved\ntold rank 3 is lost 1\n");
}

UNIT_TEST(what_several_ranks_may_have_met_is_left_to_rank_0)
{
    struct scene scene = scene_of(2, BSW_ERROR_BAD_DATA, end_for_cause);
    scene.cause.is_rank0s = 1;
    expect(&scene, 65, 0, "told rank 3 is lost 0\nsaved\ntold rank 3 is lost 1\n");
    scene.rank = 0;
    scene.cause.error.rank = -1;
    expect(&scene, 65, 1, "bitsweep: rank 3 is lost\nsaved\ntold rank 3 is lost 1\n");
}

UNIT_TEST(an_expelled_rank_writes_nothing)
{
    struct scene scene = scene_of(0, BSW_ERROR_PEER, end_for_cause);
    scene.cause.is_said = scene.cause.is_expelled = 1;
    expect(&scene, 75, 0, "told rank 3 is lost 1\n");
}

UNIT_TEST(nothing_is_held_where_there_is_a_cause)
{
    struct scene scene = scene_of(0, BSW_ERROR_PEER, hold);
    expect(&scene, RETURNED, 0, "");
    scene.is_known = scene.cause.is_said = scene.cause.is_expelled = 1;
    expect(&scene, 75, 0, "told rank 3 is lost 1\n");
}

UNIT_TEST(a_stop_waits_for_what_must_be_done_whole)
{
    struct scene scene = scene_of(0, BSW_ERROR_PEER, hold_through_a_signal);
    expect(&scene, 75, 1,
           "named\nbitsweep: stopped by SIGTERM; --resume goes on\nsaved\n"
           "told stopped by SIGTERM; --resume goes on 1\n");
}

UNIT_TEST(a_signal_gives_way_to_a_cause_that_is_known)
{
    struct scene scene = scene_of(0, BSW_ERROR_BAD_DATA, get_signal);
    scene.is_known = 1;
    expect(&scene, 65, 1, "bitsweep: rank 3 is lost\nsaved\ntold rank 3 is lost 1\n");
    scene = scene_of(0, BSW_ERROR_STOPPED, get_signal); // another rank has had the signal, too
    scene.is_known = 1;
    const char *stopped = "stopped by SIGTERM; --resume goes on";
    char text[256];
    snprintf(text, sizeof text, "bitsweep: %s\nsaved\ntold %s 1\n", stopped, stopped);
    expect(&scene, 75, 1, text);
    scene.is_known = 0;
    expect(&scene, 75, 1, text);
    scene.rank = 1; // rank 0 is to print it
    snprintf(text, sizeof text, "told %s 0\nsaved\ntold %s 1\n", stopped, stopped);
    expect(&scene, 75, 0, text);
}

UNIT_TEST(a_signal_cuts_a_pause_short)
{
    struct scene scene = scene_of(2, BSW_ERROR_PEER, get_signal);
    scene.is_known = 1;
    scene.cause.pause_seconds = 25; // longer than get_signal gives it
    expect(&scene, 75, 0, "saved\ntold rank 3 is lost 1\n");
}

UNIT_TEST(a_run_that_has_its_outcome_keeps_it)
{
    struct scene scene = scene_of(0, BSW_ERROR_PEER, conclude_and_end);
    expect(&scene, 0, 0, "bitsweep: rank 3 is lost\ntold nothing 1\n");
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
