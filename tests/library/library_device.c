// SPDX-License-Identifier: Apache-2.0
// The library on a device that takes its time: every call gives the bytes that it gives on the CPU,
// with the settings that a caller gets who says no more than which device.
// usage: library_device BASE QUERIES FOLDER   FOLDER is new
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coordinator/bitsweep.h"

#define DEVICE      "emulated"
#define NUM_ROWS    600
#define NUM_QUERIES 7
#define K           5

static struct bitsweep_error error;
static int num_failed;

struct answers {
    float values[NUM_QUERIES * K];
    int64_t ids[NUM_QUERIES * K];
};

static void need(int status, const char *what)
{
    if (status == BITSWEEP_OK) return;
    printf("FAILED: %s: %s\n", what, error.message);
    exit(1);
}

static void expect_same(const struct answers *a, const struct answers *b, const char *what)
{
    if (memcmp(a->values, b->values, sizeof a->values) == 0 &&
        memcmp(a->ids, b->ids, sizeof a->ids) == 0)
        return;
    printf("FAILED: %s: other bytes than on the CPU\n", what);
    num_failed++;
}

static struct bitsweep_rows load(const char *file, uint64_t num_rows)
{
    struct bitsweep_rows rows;
    need(bitsweep_shape(file, &rows, &error), file);
    void *data = malloc(num_rows * rows.dims);
    need(bitsweep_read(file, 0, num_rows, data, &error), file);
    return (struct bitsweep_rows){data, num_rows, rows.dims, rows.type, NULL};
}

static void encode(const char *folder, const struct bitsweep_rows *base, uint64_t lists,
                   const char *device)
{
    struct bitsweep_encode_settings settings;
    bitsweep_encode_defaults(&settings);
    settings.metric = "l2";
    settings.lists = lists;
    settings.calibrate_rows = lists > 0 ? BITSWEEP_NONE : 0;
    settings.device = device;
    need(bitsweep_encode(folder, base, &settings, NULL, &error), device);
}

static void search(const char *folder, const struct bitsweep_rows *queries, const char *device,
                   struct answers *out)
{
    struct bitsweep_open_settings open;
    struct bitsweep_search_settings settings;
    struct bitsweep_search_stats stats;
    bitsweep_index *index;
    bitsweep_open_defaults(&open);
    open.device = device;
    bitsweep_search_defaults(&settings);
    bitsweep_search_stats_init(&stats);
    settings.k = K;
    need(bitsweep_open(folder, &open, &index, &error), folder);
    need(bitsweep_search(index, queries, &settings, out->values, out->ids, &error), device);
    bitsweep_last_search(index, &stats);
    if (strcmp(stats.device, device) != 0) need(-1, "it was not on the device");
    bitsweep_close(&index);
}

static void knn(const struct bitsweep_rows *base, const struct bitsweep_rows *queries,
                const char *device, struct answers *out)
{
    struct bitsweep_knn_settings settings;
    bitsweep_knn_defaults(&settings);
    settings.k = K;
    settings.metric = "l2";
    settings.device = device;
    need(bitsweep_knn(base, queries, &settings, out->values, out->ids, &error), "knn");
}

static void check_index(const char *folder, const struct bitsweep_rows *base,
                        const struct bitsweep_rows *queries, uint64_t lists)
{
    struct answers expected, found;
    char of_cpu[4096], of_device[4096];
    snprintf(of_cpu, sizeof of_cpu, "%s/cpu.%d", folder, (int)lists);
    snprintf(of_device, sizeof of_device, "%s/device.%d", folder, (int)lists);
    encode(of_cpu, base, lists, "cpu");
    encode(of_device, base, lists, lists > 0 ? "cpu" : DEVICE); // lists are made on CPUs alone
    search(of_cpu, queries, "cpu", &expected);
    search(of_device, queries, DEVICE, &found);
    expect_same(&found, &expected, lists > 0 ? "search of lists" : "search");
}

int main(int argc, char **argv)
{
    struct answers expected, found;
    if (argc != 4) return 2;
    struct bitsweep_rows base = load(argv[1], NUM_ROWS), queries = load(argv[2], NUM_QUERIES);
    if (mkdir(argv[3], 0700) != 0) return 2;
    check_index(argv[3], &base, &queries, 0);
    check_index(argv[3], &base, &queries, 8);
    knn(&base, &queries, "cpu", &expected);
    knn(&base, &queries, DEVICE, &found);
    expect_same(&found, &expected, "knn");
    free((void *)base.data);
    free((void *)queries.data);
    return num_failed > 0;
}
