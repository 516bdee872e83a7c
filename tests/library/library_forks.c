// SPDX-License-Identifier: Apache-2.0
// What a child finds that a program forks after it has used the library, or while it does. Says
// each case that fails. usage: library_forks INDEX QUERIES
#include <stdio.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "library_support.h"

// The exit code of a child that runs this: 0 where all is well. One that hangs is ended.
static void expect_child(int (*run)(void *context), void *context, const char *what)
{
    int ended = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(run(context));
    }
    expect(child > 0 && waitpid(child, &ended, 0) == child && ended == 0, what);
}

struct family {
    const char *folder;
    bitsweep_index *index; // the parent's, which has searched
    const struct bitsweep_rows *queries;
    const struct answers *wanted;
};

static int search_in_child(void *context)
{
    struct family *f = context;
    bitsweep_index *fresh = opened_with(f->folder, 2);
    struct answers old = searched(f->index, f->queries, 10, 0),
                   new = searched(fresh, f->queries, 10, 0);
    struct bitsweep_open_settings on_device;
    bitsweep_open_defaults(&on_device);
    on_device.device = "cuda";
    bitsweep_index *none;
    int failed = !are_same(&old, f->wanted) || !are_same(&new, f->wanted);
    refused(bitsweep_open(f->folder, &on_device, &none, &error), BITSWEEP_ERROR_USAGE,
            bitsweep_has("cuda") ? "was forked after" : "no CUDA");
    bitsweep_close(&fresh);
    bitsweep_close(&f->index);
    return failed || num_failed > 0;
}

static int search_of_grandchild(void *context)
{
    expect_child(search_in_child, context, "a child of a child");
    return num_failed > 0;
}

static int be_refused(void *context)
{
    struct family *f = context;
    struct answers answers = room(f->queries->num_rows, 10);
    struct bitsweep_index_info info;
    bitsweep_index *index;
    bitsweep_index_info_init(&info);
    refused(bitsweep_open(f->folder, NULL, &index, &error), BITSWEEP_ERROR_USAGE, "was forked");
    refused(bitsweep_search(f->index, f->queries, NULL, answers.values, answers.ids, &error),
            BITSWEEP_ERROR_USAGE, "was forked while a call");
    bitsweep_info(f->index, &info);
    bitsweep_close(&f->index);
    return num_failed > 0 || info.dims != f->queries->dims;
}

static int fork_once(void *context, const char *phase, uint64_t done, uint64_t total)
{
    static int num_calls;
    (void)phase, (void)done, (void)total;
    if (num_calls++ == 0) expect_child(be_refused, context, "a child of a process in a call");
    return 0;
}

static void check_forks(const char *folder, const struct bitsweep_rows *queries)
{
    bitsweep_index *index = opened_with(folder, 2), *other = opened(folder);
    struct answers wanted = searched(index, queries, 10, 0), found = room(queries->num_rows, 10);
    struct family family = {folder, index, queries, &wanted};
    struct bitsweep_search_settings settings;
    expect_child(search_in_child, &family, "a child after a call");
    expect_child(search_of_grandchild, &family, "a child that forks");
    bitsweep_search_defaults(&settings);
    settings.progress = fork_once;
    settings.progress_context = &family;
    expect(bitsweep_search(other, queries, &settings, found.values, found.ids, &error) == 0 &&
               are_same(&found, &wanted),
           "a parent that forks in a call");
    bitsweep_close(&index), bitsweep_close(&other);
    forget(&wanted), forget(&found);
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    struct bitsweep_rows queries = load(argv[2]);
    check_forks(argv[1], &queries);
    return num_failed > 0;
}
