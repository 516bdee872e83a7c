// SPDX-License-Identifier: Apache-2.0
// A folder for the files of one test program: made by its group setup, removed by its teardown.
#ifndef BITSWEEP_TESTS_UNIT_TEMPORARY_FOLDER_H
#define BITSWEEP_TESTS_UNIT_TEMPORARY_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file.h"
#include "unit_test.h"

static char temporary_folder[64];

static inline int make_temporary_folder(void **state)
{
    (void)state;
    strcpy(temporary_folder, "/tmp/bitsweep_test_XXXXXX");
    return mkdtemp(temporary_folder) ? 0 : -1;
}

// With all that is in it.
static inline int remove_test_folder(const char *path)
{
    char name[BSW_PATH_BYTES];
    DIR *folder = opendir(path);
    if (!folder) return -1;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (bsw_path_join(name, path, entry->d_name, NULL) == BSW_OK && unlink(name) != 0)
            remove_test_folder(name);
    }
    closedir(folder);
    return rmdir(path);
}

static inline int remove_temporary_folder(void **state)
{
    (void)state;
    return remove_test_folder(temporary_folder);
}

// Path of a file in the folder; valid until eight calls later.
static inline const char *path_of(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", temporary_folder, name);
    return path;
}

static inline const char *write_test_file(const char *name, const void *data, size_t bytes)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0) abort();
    return path;
}

// The bytes of a file in the folder, in place of those before. The caller frees.
static inline void read_test_file(const char *name, struct bsw_buffer *out)
{
    out->bytes = 0;
    if (bsw_file_read_all(path_of(name), 1 << 24, out, NULL) != BSW_OK)
        fail_msg("%s: cannot read", path_of(name));
}

static inline void assert_same_file(const char *name, const char *other)
{
    struct bsw_buffer a = {0}, b = {0};
    read_test_file(name, &a);
    read_test_file(other, &b);
    assert_int_equal(a.bytes, b.bytes);
    assert_memory_equal(a.data, b.data, a.bytes);
    bsw_buffer_deinit(&a);
    bsw_buffer_deinit(&b);
}

static inline size_t count_test_files(void)
{
    size_t count = 0;
    DIR *folder = opendir(temporary_folder);
    if (!folder) abort();
    for (struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

#endif
