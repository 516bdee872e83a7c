// SPDX-License-Identifier: Apache-2.0
#include "common/base/temporary_files.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEMPORARIES 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *paths[MAX_TEMPORARIES];

void bsw_temporary_note(const char *path)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_TEMPORARIES; i++) {
        if (paths[i]) continue;
        paths[i] = strdup(path);
        break;
    }
    pthread_mutex_unlock(&lock);
}

void bsw_temporary_forget(const char *path)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_TEMPORARIES; i++) {
        if (!paths[i] || strcmp(paths[i], path) != 0) continue;
        free(paths[i]);
        paths[i] = NULL;
        break;
    }
    pthread_mutex_unlock(&lock);
}

void bsw_temporaries_remove(void)
{
    pthread_mutex_lock(&lock); // for good
    for (int i = MAX_TEMPORARIES - 1; i >= 0; i--) {
        if (paths[i]) remove(paths[i]);
    }
}
