// SPDX-License-Identifier: Apache-2.0
// A log of what a process does to files, for check_order.sh: linked into a program, these take the
// place of the C library's, make the same system calls, and note those that did what was asked in
// the file that BITSWEEP_CALL_LOG names, a line each, in the order in which they returned:
//   THREAD write|fsync|cut PATH    PATH has the bytes, is durable, has another size
//   THREAD rename PATH PATH, THREAD unlink PATH
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // gettid, renameat
#endif
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

// As a caller may name it from elsewhere: absolute, links in the folder resolved.
static void print_path(char *out, size_t capacity, const char *path)
{
    char copy[PATH_MAX], folder[PATH_MAX];
    const char *name = path;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *at = copy; *at; at++) {
        if (*at == '/') name = path + (at - copy) + 1;
    }
    copy[name - path] = '\0';
    if (!realpath(copy[0] ? copy : ".", folder)) folder[0] = '\0';
    snprintf(out, capacity, "%s/%s", folder, name);
}

static void note(const char *call, const char *path, const char *other)
{
    const char *log = getenv("BITSWEEP_CALL_LOG");
    int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd < 0) return;
    dprintf(fd, "%ld %s %s%s%s\n", syscall(SYS_gettid), call, path, other[0] ? " " : "", other);
    close(fd);
}

static void note_open(const char *call, int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, sizeof path - 1);
    if (bytes < 0) return;
    path[bytes] = '\0';
    note(call, path, "");
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    ssize_t result = syscall(SYS_pwrite64, fd, data, bytes, offset);
    if (result > 0) note_open("write", fd);
    return result;
}

int ftruncate(int fd, off_t bytes)
{
    int result = (int)syscall(SYS_ftruncate, fd, bytes);
    if (result == 0) note_open("cut", fd);
    return result;
}

int fsync(int fd)
{
    int result = (int)syscall(SYS_fsync, fd);
    if (result == 0) note_open("fsync", fd);
    return result;
}

int rename(const char *from, const char *to)
{
    char from_path[PATH_MAX + 256], to_path[PATH_MAX + 256];
    print_path(from_path, sizeof from_path, from);
    print_path(to_path, sizeof to_path, to);
    int result = renameat(AT_FDCWD, from, AT_FDCWD, to);
    if (result == 0) note("rename", from_path, to_path);
    return result;
}

int unlink(const char *path)
{
    char whole[PATH_MAX + 256];
    print_path(whole, sizeof whole, path);
    int result = unlinkat(AT_FDCWD, path, 0); // last, for its errno
    if (result == 0) note("unlink", whole, "");
    return result;
}
