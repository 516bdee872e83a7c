// SPDX-License-Identifier: Apache-2.0
// What a search through libbitsweep costs beside the same search through
// coordinator/search/search.h, which the program uses: CPU time of the process, in pairs, of which
// each begins with the other of the two. Both have the queries in memory and put answers into
// arrays; the answers must be the same. usage: library_cost INDEX QUERIES [PAIRS [THREADS]]
#include <bitsweep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/median.h"
#include "common/rows/memory_rows.h"
#include "coordinator/job/job_events.h"
#include "coordinator/search/search.h"

#define K          10
#define CHECKS     300 // seconds; the library's default
#define MOST_PAIRS 101

struct costs {
    struct bitsweep_rows queries;
    const char *folder;
    int num_threads;
    // through the library
    bitsweep_index *index;
    float *values;
    int64_t *ids;
    // directly
    bsw_transport transport;
    struct bsw_search search;
    struct bsw_memory_rows lent;
    struct bsw_results answers;
};

static void fail(const char *message)
{
    fprintf(stderr, "library_cost: %s\n", message);
    exit(1);
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void need(int status, const struct bitsweep_error *error)
{
    if (status != BITSWEEP_OK) fail(error->message);
}

static void need_directly(enum bsw_status status, const struct bsw_error *err)
{
    if (status != BSW_OK) fail(err->message);
}

// ---- the two ----

static void read_queries(struct costs *c, const char *file)
{
    struct bitsweep_error error;
    need(bitsweep_shape(file, &c->queries, &error), &error);
    uint64_t numbers = c->queries.num_rows * c->queries.dims;
    void *data = malloc(numbers * sizeof(float));
    c->values = malloc(c->queries.num_rows * K * sizeof *c->values);
    c->ids = malloc(c->queries.num_rows * K * sizeof *c->ids);
    if (!data || !c->values || !c->ids) fail("no memory");
    need(bitsweep_read(file, 0, c->queries.num_rows, data, &error), &error);
    c->queries.data = data;
    c->queries.file = NULL;
}

static void open_library(struct costs *c)
{
    struct bitsweep_open_settings settings;
    struct bitsweep_error error;
    bitsweep_open_defaults(&settings);
    settings.threads = c->num_threads;
    settings.device = "cpu";
    need(bitsweep_open(c->folder, &settings, &c->index, &error), &error);
}

static void open_directly(struct costs *c)
{
    struct bsw_error err;
    const struct bsw_search_options options = {.index = c->folder,
                                               .request = {.k = K,
                                                           .batch = 1000,
                                                           .level = bsw_cpu_level_detect(),
                                                           .num_threads = c->num_threads},
                                               .device.text = "cpu",
                                               .check_seconds = CHECKS};
    c->lent = (struct bsw_memory_rows){.name = BSW_MEMORY_PREFIX "direct",
                                       .numbers = c->queries.data,
                                       .type = (enum bsw_vector_type)c->queries.type,
                                       .dims = c->queries.dims,
                                       .num_rows = c->queries.num_rows};
    bsw_transport_local_init(&c->transport);
    need_directly(bsw_memory_rows_lend(&c->lent, &err), &err);
    need_directly(bsw_search_open(&c->search, &c->transport, &options, &err), &err);
}

static void search_library(struct costs *c)
{
    struct bitsweep_error error;
    need(bitsweep_search(c->index, &c->queries, NULL, c->values, c->ids, &error), &error);
}

static void search_directly(struct costs *c)
{
    struct bsw_error err;
    const struct bsw_search_sink sink = {.answers = bsw_memory_sink(&c->answers)};
    const struct bsw_search_run run = {.queries = c->lent.name,
                                       .query_rows = BSW_ALL_ROWS,
                                       .repeat = 1,
                                       .is_followed = 1,
                                       .sink = &sink};
    need_directly(bsw_search_run(&c->search, &run, &err), &err);
}

// ---- pairs ----

static double time_of(void (*search)(struct costs *), struct costs *c)
{
    double started = cpu_seconds();
    search(c);
    return cpu_seconds() - started;
}

static void check_answers(const struct costs *c)
{
    size_t count = (size_t)c->queries.num_rows * K;
    if (c->answers.num_queries != c->queries.num_rows ||
        memcmp(c->ids, c->answers.ids, count * sizeof *c->ids) != 0 ||
        memcmp(c->values, c->answers.values, count * sizeof *c->values) != 0)
        fail("the answers differ");
}

static void report(double *library, double *directly, double *ratios, size_t num_pairs)
{
    for (size_t i = 0; i < num_pairs; i++) ratios[i] = library[i] / directly[i];
    double middle = bsw_median(ratios, num_pairs); // sorts
    printf("library %.4f s, search.h %.4f s of CPU time, medians of %zu; of pairs: median %.4f, "
           "%.4f to %.4f\n",
           bsw_median(library, num_pairs), bsw_median(directly, num_pairs), num_pairs, middle,
           ratios[0], ratios[num_pairs - 1]);
}

int main(int argc, char **argv)
{
    static double library[MOST_PAIRS], directly[MOST_PAIRS], ratios[MOST_PAIRS];
    static struct costs c;
    if (argc < 3) fail("usage: library_cost INDEX QUERIES [PAIRS [THREADS]]");
    int pairs = argc > 3 ? atoi(argv[3]) : 7;
    c.folder = argv[1];
    c.num_threads = argc > 4 ? atoi(argv[4]) : 1;
    if (pairs < 1 || pairs > MOST_PAIRS || c.num_threads < 1)
        fail("1 to 101 pairs, 1 thread or more");
    read_queries(&c, argv[2]);
    open_library(&c);
    open_directly(&c);
    search_library(&c), search_directly(&c); // load
    for (int i = 0; i < pairs; i++) {
        if (i % 2 == 0) library[i] = time_of(search_library, &c);
        directly[i] = time_of(search_directly, &c);
        if (i % 2 == 1) library[i] = time_of(search_library, &c);
        check_answers(&c);
    }
    report(library, directly, ratios, (size_t)pairs);
    bitsweep_close(&c.index);
    bsw_search_close(&c.search);
    bsw_memory_rows_take_back(&c.lent);
    bsw_results_deinit(&c.answers);
    return 0;
}
