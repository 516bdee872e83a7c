// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "coordinator/sweep/sweep_report.h"

enum { LOCK_SECONDS = 5, NAP_MICROSECONDS = 50000 };

static enum bsw_status lock_folder(const char *path, int *lock, struct bsw_error *err)
{
    double since = bsw_clock_seconds();
    *lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (*lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        if (bsw_clock_seconds() - since > LOCK_SECONDS)
            return bsw_fail(err, BSW_ERROR_USAGE, "%s: another sweep is at work there", path);
        usleep(NAP_MICROSECONDS);
    }
    return BSW_OK; // a file system without locks has none
}

enum bsw_status bsw_sweep_folder_open(const char *path, char absolute[BSW_PATH_BYTES], int *lock,
                                      struct bsw_error *err)
{
    BSW_TRY(bsw_folder_create(path, err));
    char *real = realpath(path, NULL);
    int fits = real && strlen(real) + 64 <= BSW_PATH_BYTES;
    if (fits) strcpy(absolute, real);
    free(real);
    if (!fits) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot be used as a folder", path);
    return lock_folder(path, lock, err);
}

static int is_left_over(const char *name)
{
    static const char *const steps[] = {"step.out", "step.err", "step.result"};
    static const char *const made[] = {"sweep.", "sweep-", "report.html", "groundtruth", "index-"};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (strncmp(name, steps[i], strlen(steps[i])) == 0) return 1;
    }
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        if (strncmp(name, made[i], strlen(made[i])) == 0) return strstr(name, ".tmp.") != NULL;
    }
    return 0;
}

int bsw_sweep_folder_makes(const char *name)
{
    static const char *const made[] = {"sweep.journal", "sweep.csv", "sweep.json", "sweep.gnuplot",
                                       "report.html"};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++) {
        if (strcmp(name, made[i]) == 0) return 1;
    }
    for (size_t i = 0; i < sizeof bsw_sweep_plots / sizeof bsw_sweep_plots[0]; i++) {
        size_t length = strlen(bsw_sweep_plots[i]);
        if (strncmp(name, bsw_sweep_plots[i], length) == 0 && name[length] == '.') return 1;
    }
    return is_left_over(name);
}

enum bsw_status bsw_sweep_folder_clean(const char *folder, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    const struct dirent *entry;
    enum bsw_status status = BSW_OK;
    DIR *open_folder = opendir(folder);
    if (!open_folder) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot list it", folder);
    while (status == BSW_OK && (entry = readdir(open_folder)) != NULL) {
        if (!is_left_over(entry->d_name)) continue;
        status = bsw_path_join(path, folder, entry->d_name, err);
        if (status == BSW_OK) status = bsw_file_remove(path, err);
    }
    closedir(open_folder);
    return status;
}
