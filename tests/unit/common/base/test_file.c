// SPDX-License-Identifier: Apache-2.0
// Files: whole reads and writes, atomic replacement, messages with the path.
#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "common/base/file.h"
#include "tests/unit/temporary_folder.h"
#include "unit_test.h"

static struct bsw_error err;

// These take the place of the C library's, for what happens between two calls or on other file
// systems.
static const char *moved_from, *moved_to; // what another run renames before the next lock
static int folder_error;                  // of an fsync of a folder; 0: it works

int flock(int fd, int operation)
{
    if (moved_from) rename(moved_from, moved_to);
    moved_from = NULL;
    return (int)syscall(SYS_flock, fd, operation);
}

int fsync(int fd)
{
    struct stat facts;
    if (folder_error && fstat(fd, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        errno = folder_error;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static void assert_message(const char *path, const char *text)
{
    if (strncmp(err.message, path, strlen(path)) != 0 || !strstr(err.message, text))
        fail_msg("'%s' is not '%s: ... %s'", err.message, path, text);
}

static void assert_content(const char *path, const char *text)
{
    struct bsw_buffer buffer = {0};
    if (bsw_file_read_all(path, 1000, &buffer, &err) != BSW_OK) fail_msg("%s", err.message);
    assert_int_equal(buffer.bytes, strlen(text));
    assert_memory_equal(buffer.data, text, buffer.bytes);
    bsw_buffer_deinit(&buffer);
}

UNIT_TEST(written_bytes_are_read_back_at_their_offsets)
{
    const char *path = path_of("offsets");
    int fd;
    uint64_t bytes;
    char text[8] = "";
    assert_int_equal(bsw_file_create(path, &fd, &err), BSW_OK);
    assert_int_equal(bsw_file_write_at(fd, path, 4, "5678", 4, &err), BSW_OK);
    assert_int_equal(bsw_file_write_at(fd, path, 0, "1234", 4, &err), BSW_OK);
    assert_int_equal(bsw_file_sync_close(&fd, path, &err), BSW_OK);
    assert_int_equal(fd, -1);
    assert_int_equal(bsw_file_open_write(path, &fd, &err), BSW_OK);
    assert_int_equal(bsw_file_write_at(fd, path, 2, "xx", 2, &err), BSW_OK);
    assert_int_equal(bsw_file_sync_close(&fd, path, &err), BSW_OK);
    assert_int_equal(bsw_file_open_read(path, &fd, &bytes, &err), BSW_OK);
    assert_int_equal(bytes, 8);
    assert_int_equal(bsw_file_read_at(fd, path, 1, text, 6, &err), BSW_OK);
    assert_string_equal(text, "2xx567");
    assert_int_equal(bsw_file_read_at(fd, path, 100, text, 0, &err), BSW_OK);
    bsw_file_close(&fd);
    assert_int_equal(fd, -1);
    bsw_file_close(&fd);
}

UNIT_TEST(file_that_ends_first_is_bad_data)
{
    const char *path = write_test_file("short", "12345678", 8);
    int fd;
    uint64_t bytes;
    char text[16];
    assert_int_equal(bsw_file_open_read(path, &fd, &bytes, &err), BSW_OK);
    assert_int_equal(bsw_file_read_at(fd, path, 6, text, 5, &err), BSW_ERROR_BAD_DATA);
    assert_message(path, ": truncated: 3 bytes missing at offset 8");
    bsw_file_close(&fd);
}

UNIT_TEST(what_is_no_file_is_refused_at_once)
{
    const char *pipe_path = path_of("pipe"), *missing = path_of("missing");
    int fd;
    uint64_t bytes;
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    alarm(20); // a hang ends the program
    assert_int_equal(bsw_file_open_read(pipe_path, &fd, &bytes, &err), BSW_ERROR_IO);
    assert_message(pipe_path, ": not a regular file");
    assert_int_equal(fd, -1);
    assert_int_equal(bsw_file_open_read(temporary_folder, &fd, &bytes, &err), BSW_ERROR_IO);
    assert_message(temporary_folder, ": not a regular file");
    assert_int_equal(bsw_file_open_read("/dev/null", &fd, &bytes, &err), BSW_ERROR_IO);
    assert_int_equal(bsw_file_open_read(missing, &fd, &bytes, &err), BSW_ERROR_IO);
    assert_message(missing, ": cannot open: No such file");
    assert_int_equal(bsw_file_open_write(missing, &fd, &err), BSW_ERROR_IO);
    assert_message(missing, ": cannot open for writing: No such file");
    assert_int_equal(bsw_file_create(path_of("missing/file"), &fd, &err), BSW_ERROR_IO);
    assert_int_equal(fd, -1);
    alarm(0);
}

UNIT_TEST(full_device_is_reported)
{
    int fd;
    if (access("/dev/full", W_OK) != 0) {
        print_message("skipped: no /dev/full here\n");
        skip();
    }
    assert_int_equal(bsw_file_open_write("/dev/full", &fd, &err), BSW_OK);
    assert_int_equal(bsw_file_write_at(fd, "/dev/full", 0, "x", 1, &err), BSW_ERROR_IO);
    assert_message("/dev/full", ": cannot write: No space left");
    bsw_file_close(&fd);
}

UNIT_TEST(read_all_keeps_to_its_limit)
{
    const char *path = write_test_file("ten", "0123456789", 10);
    struct bsw_buffer buffer = {0};
    assert_int_equal(bsw_file_read_all(path, 9, &buffer, &err), BSW_ERROR_BAD_DATA);
    assert_message(path, ": 10 bytes, more than the 9 expected at most");
    assert_int_equal(bsw_file_read_all(path, 10, &buffer, &err), BSW_OK);
    assert_int_equal(buffer.bytes, 10);
    assert_memory_equal(buffer.data, "0123456789", 10);
    path = write_test_file("none", "", 0);
    assert_int_equal(bsw_file_read_all(path, 0, &buffer, &err), BSW_OK);
    assert_int_equal(buffer.bytes, 0);
    assert_int_equal(bsw_file_read_all(path_of("missing"), 9, &buffer, &err), BSW_ERROR_IO);
    bsw_buffer_deinit(&buffer);
}

UNIT_TEST(atomic_write_replaces_and_leaves_nothing_else)
{
    const char *path = path_of("atomic");
    size_t before = count_test_files();
    assert_int_equal(bsw_file_write_atomic(path, "old text", 8, &err), BSW_OK);
    assert_content(path, "old text");
    assert_int_equal(bsw_file_write_atomic(path, "new", 3, &err), BSW_OK);
    assert_content(path, "new");
    assert_int_equal(bsw_file_write_atomic(path, "", 0, &err), BSW_OK);
    assert_content(path, "");
    assert_int_equal(count_test_files(), before + 1);
}

UNIT_TEST(failed_atomic_write_leaves_nothing)
{
    const char *folder = path_of("in_the_way");
    assert_int_equal(mkdir(folder, 0700), 0);
    size_t before = count_test_files();
    assert_int_equal(bsw_file_write_atomic(folder, "x", 1, &err), BSW_ERROR_IO);
    assert_message(folder, ": cannot rename to this name");
    assert_int_equal(bsw_file_write_atomic(path_of("missing/file"), "x", 1, &err), BSW_ERROR_IO);
    assert_int_equal(count_test_files(), before);
}

UNIT_TEST(rename_moves_also_without_a_slash)
{
    int fd = open(".", O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    assert_int_equal(chdir(temporary_folder), 0);
    enum bsw_status written = bsw_file_write_atomic("bare_name", "bare", 4, &err);
    enum bsw_status renamed = bsw_file_rename("bare_name", "other_name", &err);
    assert_int_equal(fchdir(fd), 0);
    close(fd);
    assert_int_equal(written, BSW_OK);
    assert_int_equal(renamed, BSW_OK);
    assert_int_equal(bsw_file_exists(path_of("bare_name")), 0);
    assert_content(path_of("other_name"), "bare");
    assert_int_equal(bsw_file_rename(path_of("missing"), path_of("x"), &err), BSW_ERROR_IO);
}

UNIT_TEST(one_run_alone_has_a_file_that_keeps_its_name)
{
    const char *path = path_of("exclusive");
    int first, second;
    assert_int_equal(bsw_file_open_exclusive(path, &first, &err), BSW_OK);
    assert_int_equal(bsw_file_open_exclusive(path, &second, &err), BSW_ERROR_USAGE);
    assert_message(path, ": another run is writing it");
    assert_int_equal(second, -1);
    bsw_file_close(&first);
    // The other run has opened it before this one, and finishes now.
    moved_to = path_of("finished");
    moved_from = path;
    assert_int_equal(bsw_file_open_exclusive(path, &first, &err), BSW_ERROR_USAGE);
    assert_message(path, ": another run is writing it");
    assert_int_equal(bsw_file_open_exclusive(path, &first, &err), BSW_OK);
    bsw_file_close(&first);
}

// Network file systems that cannot sync a folder say EINVAL; a disk that fails says EIO.
UNIT_TEST(a_folder_that_cannot_be_synced_is_an_error_but_for_einval)
{
    const char *path = path_of("synced");
    folder_error = EINVAL;
    enum bsw_status status = bsw_file_write_atomic(path, "x", 1, &err);
    folder_error = EIO;
    enum bsw_status failed = bsw_file_write_atomic(path, "y", 1, &err);
    folder_error = 0;
    assert_int_equal(status, BSW_OK);
    assert_int_equal(failed, BSW_ERROR_IO);
    assert_message(temporary_folder, ": cannot sync folder: Input/output error");
}

UNIT_TEST(what_exists_is_told_apart)
{
    const char *file = write_test_file("file", "", 0), *link = path_of("dangling");
    assert_int_equal(symlink("nowhere", link), 0);
    assert_true(bsw_file_exists(file) && bsw_file_exists(temporary_folder));
    assert_true(!bsw_file_is_found(link));
    assert_true(bsw_file_exists(link)); // a name in use, though it leads nowhere
    assert_false(bsw_file_exists(path_of("missing")));
    assert_true(bsw_path_is_folder(temporary_folder));
    assert_false(bsw_path_is_folder(file));
    assert_false(bsw_path_is_folder(link));
    assert_false(bsw_path_is_folder(path_of("missing")));
}

static void expect_followed(const char *from, const char *to)
{
    char found[BSW_PATH_BYTES];
    assert_int_equal(bsw_file_follow(from, found, NULL), BSW_OK);
    assert_string_equal(found, to);
}

UNIT_TEST(links_are_followed_to_a_name_that_need_not_be_there)
{
    char target[BSW_PATH_BYTES], first[BSW_PATH_BYTES], second[BSW_PATH_BYTES],
        found[BSW_PATH_BYTES];
    snprintf(target, sizeof target, "%s", path_of("behind"));
    snprintf(first, sizeof first, "%s", path_of("first"));
    snprintf(second, sizeof second, "%s", path_of("second"));
    assert_int_equal(symlink("second", first), 0);
    assert_int_equal(symlink(target, second), 0);
    expect_followed(target, target);
    expect_followed(first, target);
    assert_int_equal(bsw_file_write_output(first, "x", 1, &err), BSW_OK);
    expect_followed(first, target);
    assert_true(bsw_file_is_found(target));
    assert_int_equal(unlink(second), 0);
    assert_int_equal(symlink("first", second), 0);
    assert_int_equal(bsw_file_follow(first, found, &err), BSW_ERROR_USAGE);
    assert_message(first, ": symbolic links lead in a circle: name another output");
}

// Not a process that the signal ends, nor one that is left with it blocked or pending.
UNIT_TEST(a_limit_of_file_sizes_is_an_error)
{
    struct rlimit before, limit;
    sigset_t blocked, pending;
    const char *path = path_of("limited");
    char bytes[200] = {0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    enum bsw_status status = bsw_file_write_atomic(path, bytes, sizeof bytes, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, BSW_ERROR_IO);
    assert_non_null(strstr(err.message, "cannot write: File too large"));
    assert_false(bsw_file_exists(path));
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&blocked, SIGXFSZ) || sigismember(&pending, SIGXFSZ));
}

UNIT_TEST(folder_is_created_once)
{
    const char *folder = path_of("made"), *file = write_test_file("not_a_folder", "", 0);
    assert_int_equal(bsw_folder_create(folder, &err), BSW_OK);
    assert_true(bsw_path_is_folder(folder));
    assert_int_equal(bsw_folder_create(folder, &err), BSW_OK);
    assert_int_equal(bsw_folder_create(file, &err), BSW_ERROR_IO);
    assert_message(file, ": cannot create folder: File exists");
    assert_int_equal(bsw_folder_create(path_of("missing/made"), &err), BSW_ERROR_IO);
}

UNIT_TEST(paths_that_do_not_fit_are_refused)
{
    static char name[BSW_PATH_BYTES + 10], out[BSW_PATH_BYTES];
    assert_int_equal(bsw_path_join(out, "folder", "name", &err), BSW_OK);
    assert_string_equal(out, "folder/name");
    memset(name, 'x', BSW_PATH_BYTES - 3);
    assert_int_equal(bsw_path_join(out, "f", name, &err), BSW_OK);
    assert_int_equal(strlen(out), BSW_PATH_BYTES - 1);
    name[BSW_PATH_BYTES - 3] = 'x';
    assert_int_equal(bsw_path_join(out, "f", name, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_file_write_atomic(name, "x", 1, &err), BSW_ERROR_USAGE);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
