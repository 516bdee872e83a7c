// SPDX-License-Identifier: Apache-2.0
// The library on a device that takes its time: every call gives the bytes that it gives on the CPU,
// with the settings that a caller gets who says no more than which device.
// usage: library_device BASE QUERIES FOLDER [DEVICE]   FOLDER is new; DEVICE is "emulated" unless
// given
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/library/library_support.h"

#define K 5

static const char *device_name = "emulated";

static void expect_same(struct answers found, struct answers wanted, const char *what)
{
    expect(are_same(&found, &wanted), what);
    forget(&found), forget(&wanted);
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

static struct answers search(const char *folder, const struct bitsweep_rows *queries,
                             const char *device)
{
    struct bitsweep_open_settings settings;
    struct bitsweep_search_stats stats;
    bitsweep_index *index;
    bitsweep_open_defaults(&settings);
    bitsweep_search_stats_init(&stats);
    settings.device = device;
    need(bitsweep_open(folder, &settings, &index, &error), folder);
    struct answers answers = searched(index, queries, K, 0);
    bitsweep_last_search(index, &stats);
    expect(strcmp(stats.device, device) == 0, "where it was searched");
    bitsweep_close(&index);
    return answers;
}

static struct answers neighbours(const struct bitsweep_rows *base,
                                 const struct bitsweep_rows *queries, const char *device)
{
    struct bitsweep_knn_settings settings;
    struct answers answers = room(queries->num_rows, K);
    bitsweep_knn_defaults(&settings);
    settings.k = K;
    settings.metric = "l2";
    settings.device = device;
    need(bitsweep_knn(base, queries, &settings, answers.values, answers.ids, &error), "knn");
    return answers;
}

static void check_index(const char *folder, const struct bitsweep_rows *base,
                        const struct bitsweep_rows *queries, uint64_t lists)
{
    char of_cpu[4096], of_device[4096];
    snprintf(of_cpu, sizeof of_cpu, "%s/cpu.%d", folder, (int)lists);
    snprintf(of_device, sizeof of_device, "%s/device.%d", folder, (int)lists);
    encode(of_cpu, base, lists, "cpu");
    encode(of_device, base, lists, lists > 0 ? "cpu" : device_name); // lists are made on CPUs alone
    expect_same(search(of_device, queries, device_name), search(of_cpu, queries, "cpu"),
                lists > 0 ? "search of lists" : "search");
}

int main(int argc, char **argv)
{
    static struct bitsweep_rows base, queries; // no leak, then
    if (argc != 4 && argc != 5) return 2;
    if (argc == 5) device_name = argv[4];
    base = load(argv[1]), queries = load(argv[2]);
    base.num_rows = 600, queries.num_rows = 7;
    if (mkdir(argv[3], 0700) != 0) return 2;
    check_index(argv[3], &base, &queries, 0);
    check_index(argv[3], &base, &queries, 8);
    expect_same(neighbours(&base, &queries, device_name), neighbours(&base, &queries, "cpu"),
                "knn");
    return num_failed > 0;
}
