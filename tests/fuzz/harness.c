// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files/sealed_message.h"

static char folder[64];

void fuzz_fail(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    abort();
}

int fuzz_is_ok(enum bsw_status status, const struct bsw_error *err, unsigned allowed)
{
    if (status == BSW_OK) return 1;
    FUZZ_REQUIRE(allowed >> status & 1);
    FUZZ_REQUIRE(err->status == status);
    FUZZ_REQUIRE(memchr(err->message, '\0', sizeof err->message) != NULL);
    FUZZ_REQUIRE(strlen(err->message) > 0);
    for (const char *at = err->message; *at; at++) FUZZ_REQUIRE((unsigned char)*at >= 0x20);
    return 0;
}

static void remove_folder(void)
{
    DIR *handle = opendir(folder);
    if (!handle) return;
    for (struct dirent *entry; (entry = readdir(handle));) {
        if (entry->d_name[0] != '.') unlinkat(dirfd(handle), entry->d_name, 0);
    }
    closedir(handle);
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (folder[0]) return folder;
    const char *place = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(folder, sizeof folder, "%s/bitsweep_fuzz_XXXXXX", place);
    FUZZ_REQUIRE(mkdtemp(folder) != NULL);
    atexit(remove_folder);
    return folder;
}

const char *fuzz_file(const char *name, const void *data, size_t bytes)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", fuzz_folder(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_REQUIRE(fd >= 0);
    FUZZ_REQUIRE(write(fd, data, bytes) == (ssize_t)bytes);
    close(fd);
    return path;
}

void *fuzz_exact(const void *data, size_t bytes)
{
    void *room = NULL;
    FUZZ_REQUIRE(posix_memalign(&room, BSW_ALIGNMENT_BYTES, bytes ? bytes : 1) == 0);
    if (data && bytes > 0) memcpy(room, data, bytes);
    return room;
}

uint8_t fuzz_next_byte(struct fuzz_input *input)
{
    if (input->bytes == 0) return 0;
    input->bytes--;
    return *input->data++;
}

char *fuzz_text(const uint8_t *data, size_t bytes)
{
    char *text = fuzz_exact(NULL, bytes + 1);
    for (size_t i = 0; i < bytes; i++) text[i] = data[i] ? (char)data[i] : ' ';
    text[bytes] = '\0';
    return text;
}

int fuzz_take_sealed(void (*take)(const void *data, size_t bytes), const void *data, size_t bytes)
{
    static struct bsw_buffer sealed;
    take(data, bytes);
    sealed.bytes = 0;
    FUZZ_REQUIRE(bsw_buffer_append(&sealed, data, bytes, NULL) == BSW_OK);
    FUZZ_REQUIRE(bsw_message_seal(&sealed, NULL, NULL) == BSW_OK);
    take(sealed.data, sealed.bytes);
    return 0;
}
