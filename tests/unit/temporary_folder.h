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

static char temporary_folder[64];

static inline int make_temporary_folder(void **state)
{
    (void)state;
    strcpy(temporary_folder, "/tmp/bitsweep_test_XXXXXX");
    return mkdtemp(temporary_folder) ? 0 : -1;
}

static inline int remove_temporary_folder(void **state)
{
    (void)state;
    DIR *folder = opendir(temporary_folder);
    if (!folder) return -1;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        unlinkat(dirfd(folder), entry->d_name, 0);
        unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
    }
    closedir(folder);
    return rmdir(temporary_folder);
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
