// SPDX-License-Identifier: Apache-2.0
// Ranks of which one makes a mistake that the others do not make: all of them get the same error,
// none waits until its timeout, and the group goes on.
#include <bitsweep.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, num_failed;
static bitsweep_ranks *ranks;
static struct bitsweep_error error;
static const char *base_file, *queries_file, *folder;
static struct bitsweep_rows base, queries;
static float values[200 * 10];
static int64_t ids[200 * 10];

// The same status and text on all ranks, within far less than the timeout.
static void refused(const char *name, int status, const char *words, double started)
{
    struct bitsweep_error first = error;
    double seconds = MPI_Wtime() - started;
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (status == BITSWEEP_ERROR_USAGE && strstr(error.message, words) && seconds < 20 &&
        strcmp(first.message, error.message) == 0 && first.status == error.status)
        return;
    printf("FAILED: %s: rank %d after %.1f s: status %d, '%s'\n", name, rank, seconds, status,
           error.message);
    num_failed++;
}

// ---- calls, of which rank 1 makes a wrong one ----

static int is_wrong(void)
{
    return rank == 1;
}

static int encode(const char *to, const struct bitsweep_encode_settings *settings)
{
    return bitsweep_encode(to, &base, settings, NULL, &error);
}

static struct bitsweep_encode_settings encode_settings(void)
{
    struct bitsweep_encode_settings settings;
    bitsweep_encode_defaults(&settings);
    settings.ranks = ranks;
    settings.metric = "l2";
    settings.threads = 1;
    settings.device = "cpu";
    settings.force = 1;
    return settings;
}

static void check_encode(void)
{
    struct bitsweep_encode_settings settings = encode_settings();
    double started = MPI_Wtime();
    if (is_wrong()) settings.size = 0; // as after = {0}
    refused("no defaults", encode(folder, &settings), "settings of 0 bytes", started);
    settings = encode_settings();
    if (is_wrong()) settings.bits = 9;
    refused("other bits", encode(folder, &settings), "settings of the encode: rank 1", started);
    settings.bits = 9;
    refused("bad bits of all", encode(folder, &settings), "--bits 9", started);
    settings = encode_settings();
    if (is_wrong()) settings.metric = "l3";
    refused("bad metric", encode(folder, &settings), "l3", started);
    settings = encode_settings();
    refused("no folder", encode(is_wrong() ? NULL : folder, &settings), "--index", started);
    refused("no rows", bitsweep_encode(folder, is_wrong() ? NULL : &base, &settings, NULL, &error),
            "no rows", started);
}

static void check_later(void)
{
    struct {
        struct bitsweep_encode_settings settings;
        char more[8];
    } later = {.settings = encode_settings()};
    double started = MPI_Wtime();
    later.settings.size = is_wrong() ? sizeof later : later.settings.size;
    later.more[0] = 1;
    refused("a later version", encode(folder, &later.settings), "later version", started);
}

static void check_open(void)
{
    struct bitsweep_open_settings settings;
    bitsweep_index *index = NULL;
    double started = MPI_Wtime();
    for (int is_unset = 0; is_unset < 2; is_unset++) {
        bitsweep_open_defaults(&settings);
        settings.ranks = ranks;
        if (is_wrong() && is_unset) settings.size = 0;
        if (is_wrong() && !is_unset) settings.is_unchecked = 1;
        refused("open", bitsweep_open(folder, &settings, &index, &error),
                is_unset ? "settings of 0 bytes" : "settings of the open", started);
    }
    bitsweep_open_defaults(&settings);
    settings.ranks = ranks;
    refused("open nothing", bitsweep_open(is_wrong() ? NULL : folder, &settings, &index, &error),
            "no folder", started);
    // Another call than the others make.
    struct bitsweep_encode_settings encoding = encode_settings();
    int status =
        is_wrong() ? encode(folder, &encoding) : bitsweep_open(folder, &settings, &index, &error);
    refused("two calls", status, "makes another call", started);
    status = is_wrong() ? bitsweep_ranks_refuse(ranks, "a line of mine", &error)
                        : bitsweep_open(folder, &settings, &index, &error);
    refused("one refuses", status, "a line of mine", started);
}

static void check_knn(void)
{
    struct bitsweep_knn_settings settings;
    const struct bitsweep_rows *given = rank == 0 ? &queries : NULL;
    double started = MPI_Wtime();
    for (int is_unset = 0; is_unset < 2; is_unset++) {
        bitsweep_knn_defaults(&settings);
        settings.metric = "l2";
        settings.ranks = ranks;
        if (is_wrong() && is_unset) settings.size = (size_t)-1;
        if (is_wrong() && !is_unset) settings.k = 3;
        refused("knn", bitsweep_knn(&base, given, &settings, values, ids, &error),
                is_unset ? "settings of 1844" : "settings of the knn", started);
    }
    bitsweep_knn_defaults(&settings);
    settings.metric = "l2";
    settings.ranks = ranks;
    refused("knn of nothing", bitsweep_knn(&base, NULL, &settings, values, ids, &error), "queries",
            started);
    settings.k = 0;
    refused("k of all", bitsweep_knn(&base, given, &settings, values, ids, &error), "--k 0",
            started);
}

static void check_search(void)
{
    struct bitsweep_open_settings open;
    struct bitsweep_search_settings settings;
    const struct bitsweep_rows *given = rank == 0 ? &queries : NULL;
    bitsweep_index *index;
    double started = MPI_Wtime();
    bitsweep_open_defaults(&open);
    open.ranks = ranks;
    open.device = "cpu";
    if (bitsweep_open(folder, &open, &index, &error) != BITSWEEP_OK) MPI_Abort(MPI_COMM_WORLD, 3);
    bitsweep_search_defaults(&settings);
    if (is_wrong()) settings.size = 3;
    refused("search", bitsweep_search(index, given, &settings, values, ids, &error),
            "settings of 3 bytes", started);
    bitsweep_search_defaults(&settings);
    if (is_wrong()) settings.oversample = 2;
    refused("other search", bitsweep_search(index, given, &settings, values, ids, &error),
            "settings of the search: rank 1", started);
    refused("no queries", bitsweep_search(index, NULL, NULL, values, ids, &error), "queries",
            started);
    refused("no room", bitsweep_search(index, given, NULL, rank == 0 ? NULL : values, ids, &error),
            "room", started);
    if (bitsweep_search(index, given, NULL, values, ids, &error) != BITSWEEP_OK) num_failed++;
    bitsweep_close(&index);
}

// MPI is there, and a group is refused to all where one cannot have it.
static void check_group(void)
{
    bitsweep_ranks *none;
    double started = MPI_Wtime();
    refused(
        "timeout",
        bitsweep_ranks_open((int)MPI_Comm_c2f(MPI_COMM_WORLD), is_wrong() ? -1 : 60, &none, &error),
        "--timeout -1", started);
    if (none) num_failed++;
}

int main(int argc, char **argv)
{
    int provided, sum;
    if (argc != 4) return 2; // BASE QUERIES FOLDER
    base_file = argv[1], queries_file = argv[2], folder = argv[3];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    base.file = base_file;
    check_group();
    if (bitsweep_ranks_open((int)MPI_Comm_c2f(MPI_COMM_WORLD), 60, &ranks, &error) != BITSWEEP_OK ||
        bitsweep_shape(queries_file, &queries, &error) != BITSWEEP_OK || queries.num_rows > 200)
        MPI_Abort(MPI_COMM_WORLD, 1);
    check_encode();
    check_later();
    struct bitsweep_encode_settings settings = encode_settings();
    if (encode(folder, &settings) != BITSWEEP_OK) MPI_Abort(MPI_COMM_WORLD, 2); // still of use
    check_open();
    check_knn();
    check_search();
    bitsweep_ranks_close(&ranks);
    MPI_Allreduce(&num_failed, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum > 0;
}
