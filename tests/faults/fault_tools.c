// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE // nftw
#include "tests/faults/fault_tools.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/arithmetic.h"
#include "common/base/file.h"

static char folder[64];
static pid_t folder_owner;

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    if (folder[0] && getpid() == folder_owner) nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void fault_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%d: not so: %s: ", file, line, condition);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

const char *fault_folder(void)
{
    if (folder[0]) return folder;
    const char *place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/bitsweep_fault_XXXXXX", place);
    FAULT_REQUIRE(mkdtemp(folder) != NULL, "%s", folder);
    folder_owner = getpid();
    atexit(remove_folder);
    return folder;
}

const char *fault_path(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", fault_folder(), name);
    return path;
}

void fault_load(const char *path, struct bsw_buffer *out)
{
    struct bsw_error err;
    FAULT_REQUIRE(bsw_file_read_all(path, (uint64_t)1 << 30, out, &err) == BSW_OK, "%s",
                  err.message);
}

void fault_store(const char *path, const void *data, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FAULT_REQUIRE(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes, "%s", path);
    close(fd);
}

uint64_t fault_draw(struct fault_random *random, uint64_t limit)
{
    return bsw_hash2(random->seed, random->drawn++) % limit;
}

int fault_is_sanitized(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 1;
#else
    return 0;
#endif
}

size_t fault_peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

uint64_t fault_count(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

// The child's side: does not come back.
static void start(char **words, int stderr_fd)
{
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(stderr_fd, STDERR_FILENO);
    execv(words[0], words);
    _exit(127);
}

static size_t read_all(int fd, char *text, size_t capacity)
{
    size_t used = 0;
    char rest[512];
    for (ssize_t got = 1; got > 0;) {
        int is_full = used + 1 >= capacity;
        got = read(fd, is_full ? rest : text + used, is_full ? sizeof rest : capacity - 1 - used);
        if (got > 0 && !is_full) used += (size_t)got;
    }
    text[used] = '\0';
    return used;
}

void fault_run(const char *line, struct fault_run *out)
{
    char copy[2048], *words[64];
    int count = 0, ends[2], status;
    struct rusage usage;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) words[count++] = word;
    words[count] = NULL;
    FAULT_REQUIRE(pipe(ends) == 0, "%s", line);
    pid_t child = vfork(); // fork would count this program's memory as the other's
    FAULT_REQUIRE(child >= 0, "%s", line);
    if (child == 0) start(words, ends[1]);
    close(ends[1]);
    read_all(ends[0], out->text, sizeof out->text);
    close(ends[0]);
    FAULT_REQUIRE(wait4(child, &status, 0, &usage) == child, "%s", line);
    out->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->peak_bytes = (size_t)usage.ru_maxrss * 1024;
}

void fault_run_good(const char *line)
{
    struct fault_run run;
    fault_run(line, &run);
    FAULT_REQUIRE(run.exit_code == 0, "%s: exit code %d: %s", line, run.exit_code, run.text);
}

void fault_check_refusal(const struct fault_run *run, const char *what)
{
    const char *end = strchr(run->text, '\n');
    FAULT_REQUIRE(run->exit_code == 65, "%s: exit code %d: %s", what, run->exit_code, run->text);
    FAULT_REQUIRE(strncmp(run->text, "bitsweep: ", 10) == 0 && end && end[1] == '\0', "%s: %s",
                  what, run->text);
}

void fault_check_error(enum bsw_status status, const struct bsw_error *err, const char *what)
{
    FAULT_REQUIRE(bsw_status_exit_code(status) == 65, "%s: %s: %s", what, bsw_status_name(status),
                  status == BSW_OK ? "taken" : err->message);
    FAULT_REQUIRE(err->message[0] && !strchr(err->message, '\n'), "%s: %s", what, err->message);
}
