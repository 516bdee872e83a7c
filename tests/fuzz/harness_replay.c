// SPDX-License-Identifier: Apache-2.0
// Runs a target without libFuzzer: its seeds, then the files of the folders named, then changes of
// all these by a small mutator of its own.
//
// usage: fuzz_X_replay [--mutations N] [--seed S] [--write-seeds FOLDER] [FOLDER...]
// A crash or sanitizer report leaves the input in fuzz_X_replay.crash of the current folder.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/arithmetic.h"
#include "tests/fuzz/harness.h"

#define MAX_INPUTS 4096

struct input {
    unsigned char *data;
    size_t bytes;
};

static struct input inputs[MAX_INPUTS];
static size_t num_inputs;
static const struct input *current; // for the signal handler
static char crash_path[256];
static const char *seeds_folder;

static void keep_crash(int signal_number)
{
    int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0 && current && write(fd, current->data, current->bytes) < 0) _exit(3);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void put_input(void *context, const void *data, size_t bytes)
{
    (void)context;
    FUZZ_REQUIRE(num_inputs < MAX_INPUTS);
    struct input *input = &inputs[num_inputs++];
    FUZZ_REQUIRE(bsw_allocate(&input->data, bytes, 1, "input", NULL) == BSW_OK);
    memcpy(input->data, data, bytes);
    input->bytes = bytes;
}

static void put_file(const char *path)
{
    struct stat facts;
    int fd = open(path, O_RDONLY);
    FUZZ_REQUIRE(fd >= 0 && fstat(fd, &facts) == 0);
    if (S_ISREG(facts.st_mode)) {
        char *data = malloc((size_t)facts.st_size + 1);
        FUZZ_REQUIRE(data && read(fd, data, (size_t)facts.st_size) == facts.st_size);
        put_input(NULL, data, (size_t)facts.st_size);
        free(data);
    }
    close(fd);
}

// A folder that is not there has no findings yet.
static void put_folder(const char *path)
{
    DIR *handle = opendir(path);
    char name[1024];
    if (!handle) return;
    for (struct dirent *entry; (entry = readdir(handle));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        put_file(name);
    }
    closedir(handle);
}

static void write_seeds(const char *path)
{
    char name[1024];
    mkdir(path, 0777);
    for (size_t i = 0; i < num_inputs; i++) {
        snprintf(name, sizeof name, "%s/seed-%03zu", path, i);
        FILE *file = fopen(name, "wb");
        FUZZ_REQUIRE(file && fwrite(inputs[i].data, 1, inputs[i].bytes, file) == inputs[i].bytes);
        FUZZ_REQUIRE(fclose(file) == 0);
    }
}

// ---- mutations ----

static uint64_t random_state;

static uint64_t draw(uint64_t limit)
{
    return bsw_hash(++random_state) % limit;
}

static void set_number(struct input *input)
{
    static const uint64_t numbers[] = {
        0,          1,          2,          0x7f,           0x80,      0xff,
        0x7fffffff, 0x80000000, 0xffffffff, 0x100000000ull, ~0ull,     ~0ull >> 1,
        1ull << 63, 65536,      65537,      0x40000000,     ~0ull - 1, 0x5555555555555556ull,
        1ull << 61, 1000,
    };
    uint64_t number = numbers[draw(sizeof numbers / sizeof numbers[0])];
    size_t width = (size_t)1 << draw(4);
    if (input->bytes >= width) memcpy(input->data + draw(input->bytes - width + 1), &number, width);
}

// Takes out or doubles a run of bytes; room for twice the bytes is there.
static void cut_or_double(struct input *input)
{
    if (input->bytes == 0) return;
    size_t first = draw(input->bytes), run = draw(input->bytes - first) % 64 + 1;
    if (run > input->bytes - first) run = input->bytes - first;
    unsigned char *from = input->data + first, *behind = from + run;
    size_t rest = input->bytes - first - run;
    if (draw(2)) {
        memmove(from, behind, rest);
        input->bytes -= run;
    } else {
        memmove(behind + run, behind, rest);
        memcpy(behind, from, run);
        input->bytes += run;
    }
}

static void mutate(struct input *input)
{
    for (uint64_t changes = 1 + draw(4); changes > 0 && input->bytes > 0; changes--) {
        switch (draw(5)) {
        case 0:
            input->data[draw(input->bytes)] ^= (unsigned char)(1u << draw(8));
            break;
        case 1:
            input->data[draw(input->bytes)] = (unsigned char)draw(256);
            break;
        case 2:
            set_number(input);
            break;
        case 3:
            input->bytes = draw(input->bytes + 1);
            break;
        default:
            if (changes == 1) cut_or_double(input); // once: there is room for one
        }
    }
}

static void run(const struct input *input)
{
    // A copy of exactly these bytes, so that a sanitizer sees what lies outside.
    struct input copy = {NULL, input->bytes};
    copy.data = malloc(input->bytes ? input->bytes : 1);
    FUZZ_REQUIRE(copy.data != NULL);
    memcpy(copy.data, input->data, input->bytes);
    current = &copy;
    LLVMFuzzerTestOneInput(copy.data, copy.bytes);
    current = NULL;
    free(copy.data);
}

static void run_mutations(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const struct input *from = &inputs[draw(num_inputs)];
        struct input changed = {malloc(2 * from->bytes + 64), from->bytes};
        FUZZ_REQUIRE(changed.data != NULL);
        memcpy(changed.data, from->data, from->bytes);
        mutate(&changed);
        run(&changed);
        free(changed.data);
    }
}

int main(int argc, char **argv)
{
    uint64_t num_mutations = 0;
    snprintf(crash_path, sizeof crash_path, "%.240s.crash", argv[0]);
    signal(SIGABRT, keep_crash);
    signal(SIGFPE, keep_crash);
    fuzz_make_seeds(put_input, NULL);
    size_t num_seeds = num_inputs;
    FUZZ_REQUIRE(num_seeds > 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--mutations") == 0 && i + 1 < argc)
            num_mutations = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            random_state = strtoull(argv[++i], NULL, 10) << 32;
        else if (strcmp(argv[i], "--write-seeds") == 0 && i + 1 < argc)
            seeds_folder = argv[++i];
        else
            put_folder(argv[i]);
    }
    if (seeds_folder) {
        write_seeds(seeds_folder);
    } else {
        for (size_t i = 0; i < num_inputs; i++) run(&inputs[i]);
        run_mutations(num_mutations);
        printf("%zu seeds, %zu files, %llu mutations\n", num_seeds, num_inputs - num_seeds,
               (unsigned long long)num_mutations);
    }
    for (size_t i = 0; i < num_inputs; i++) bsw_free(&inputs[i].data);
    return 0;
}
