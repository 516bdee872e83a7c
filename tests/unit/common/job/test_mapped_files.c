// SPDX-License-Identifier: Apache-2.0
// Mapped files that become shorter: how the process ends that reads behind their end, that a page
// of zeros is found, and that other bus errors are not taken for one. Each end in a process of its
// own.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/job/stop_signal.h"
#include "temporary_folder.h"
#include "unit_test.h"

enum { FILE_BYTES = 100000, LEFT_BYTES = 5000, RETURNED = 99, HANDLED = 98 };

struct map {
    const char *path;
    volatile unsigned char *bytes;
};

// ---- in the process that is to end ----

static void check(enum bsw_status status, const struct bsw_error *err)
{
    if (status == BSW_OK) return;
    dprintf(STDERR_FILENO, "%s\n", err->message);
    _exit(RETURNED);
}

static struct map map_file(const char *name, int is_noted)
{
    struct bsw_error err;
    struct map map = {.path = path_of(name)};
    int fd = open(map.path, O_RDWR);
    map.bytes = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || map.bytes == MAP_FAILED) _exit(RETURNED);
    if (is_noted)
        check(bsw_mapped_file_note((void *)map.bytes, FILE_BYTES, fd, map.path, &err), &err);
    close(fd);
    return map;
}

static void cut_file(const struct map *map)
{
    if (truncate(map->path, LEFT_BYTES) != 0) _exit(RETURNED);
}

static void *read_end(void *context)
{
    const struct map *map = context;
    (void)map->bytes[FILE_BYTES - 1];
    return NULL;
}

static void read_one_of_two(void)
{
    struct map other = map_file("b", 1), map = map_file("a", 1);
    cut_file(&map);
    (void)other.bytes[FILE_BYTES - 1];
    read_end(&map);
}

static void read_by_many_threads(void)
{
    struct map map = map_file("a", 1);
    pthread_t threads[8];
    cut_file(&map);
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, read_end, &map);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
}

static void read_what_was_replaced(void)
{
    struct map map = map_file("a", 1);
    cut_file(&map);
    if (rename(path_of("b"), map.path) != 0) _exit(RETURNED);
    read_end(&map);
}

static void read_what_is_not_noted(void)
{
    struct map noted = map_file("b", 1), map = map_file("a", 0);
    (void)noted;
    cut_file(&map);
    read_end(&map);
}

static void read_what_was_forgotten(void)
{
    struct map map = map_file("a", 1);
    bsw_mapped_file_forget((void *)map.bytes);
    cut_file(&map);
    read_end(&map);
}

static void say_handled(int number)
{
    (void)number;
    _exit(HANDLED);
}

static void get_a_signal_of_another_process(void)
{
    signal(SIGBUS, say_handled);
    map_file("a", 1);
    kill(getpid(), SIGBUS);
    sleep(30);
}

// ---- the test ----

struct end {
    int how; // as of waitpid
    char text[1024];
};

static void make_files(void)
{
    static const unsigned char bytes[FILE_BYTES] = {1};
    write_test_file("a", bytes, sizeof bytes);
    write_test_file("b", bytes, sizeof bytes);
}

static int is_watched = 1; // as the program

static struct end run(void (*act)(void))
{
    const struct rlimit no_core = {0, 0};
    struct end end = {0};
    int ends[2];
    make_files();
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGBUS, SIG_DFL); // not that of a sanitizer
        alarm(20);
        if (is_watched) bsw_mapped_files_watch();
        act();
        _exit(RETURNED);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t count; (count = read(ends[0], end.text + used, sizeof end.text - 1 - used)) > 0;)
        used += (size_t)count;
    close(ends[0]);
    assert_int_equal(waitpid(child, &end.how, 0), child);
    return end;
}

static void expect_exit(void (*act)(void), int code, const char *text)
{
    char expected[1024];
    struct end end = run(act);
    snprintf(expected, sizeof expected, text, path_of("a"));
    assert_string_equal(end.text, expected);
    assert_true(WIFEXITED(end.how));
    assert_int_equal(WEXITSTATUS(end.how), code);
}

static void expect_bus_error(void (*act)(void))
{
    struct end end = run(act);
    assert_true(WIFSIGNALED(end.how));
    assert_int_equal(WTERMSIG(end.how), SIGBUS);
    assert_string_equal(end.text, "");
}

#define LINE                                                                                      \
    "bitsweep: %s: became shorter while it was read: 5000 of 100000 bytes are left; put it back " \
    "and start again\n"

UNIT_TEST(a_file_that_was_cut_is_one_line_and_65)
{
    expect_exit(read_one_of_two, 65, LINE);
    expect_exit(read_by_many_threads, 65, LINE);
    expect_exit(read_what_was_replaced, 65,
                "bitsweep: %s: became shorter while it was read, and has another name by now\n");
}

UNIT_TEST(other_bus_errors_stay_what_they_are)
{
    expect_bus_error(read_what_is_not_noted);
    expect_bus_error(read_what_was_forgotten);
    expect_exit(get_a_signal_of_another_process, HANDLED, "");
}

UNIT_TEST(a_program_of_others_ends_as_it_likes)
{
    is_watched = 0;
    expect_bus_error(read_one_of_two);
    is_watched = 1;
}

UNIT_TEST(zeros_behind_the_end_are_found)
{
    struct bsw_error err;
    make_files();
    struct map first = map_file("b", 1), second = map_file("b", 1), map = map_file("a", 1);
    assert_int_equal(bsw_mapped_files_check(&err), BSW_OK);
    assert_int_equal(truncate(map.path, FILE_BYTES - 1), 0);
    assert_int_equal(map.bytes[FILE_BYTES - 1], 0); // no signal
    assert_int_equal(bsw_mapped_files_check(&err), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "became shorter while it was read: 99999 of 100000"));
    bsw_mapped_file_forget((void *)map.bytes);
    assert_int_equal(bsw_mapped_files_check(&err), BSW_OK);
    cut_file(&first); // a name for both
    assert_int_equal(bsw_mapped_files_check(&err), BSW_ERROR_BAD_DATA);
    unlink(first.path); // what is left of it cannot be told
    assert_int_equal(bsw_mapped_files_check(&err), BSW_OK);
    bsw_mapped_file_forget((void *)first.bytes);
    bsw_mapped_file_forget((void *)second.bytes);
    munmap((void *)first.bytes, FILE_BYTES);
    munmap((void *)second.bytes, FILE_BYTES);
    munmap((void *)map.bytes, FILE_BYTES);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
