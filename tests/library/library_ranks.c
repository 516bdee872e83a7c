// SPDX-License-Identifier: Apache-2.0
// Two ranks or more of a program with its own MPI make an index and search it: rank 0 gives the
// queries and writes the answers. MPI goes on when the library is closed.
#include <bitsweep.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct bitsweep_error error;
static int rank;

static void need(int status)
{
    if (status == BITSWEEP_OK) return;
    fprintf(stderr, "rank %d: %s\n", rank, error.message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// All ranks fail alike where one does.
static void check_errors(bitsweep_index *index, const struct bitsweep_rows *queries, float *values,
                         int64_t *ids)
{
    struct bitsweep_search_settings settings;
    bitsweep_search_defaults(&settings);
    settings.k = rank == 1 ? 7 : 10;
    int status = bitsweep_search(index, queries, &settings, values, ids, &error);
    if (status != BITSWEEP_ERROR_USAGE || !strstr(error.message, "settings of the search"))
        MPI_Abort(MPI_COMM_WORLD, 2);
    settings.k = rank == 1 ? 0 : 10;
    status = bitsweep_search(index, queries, &settings, values, ids, &error);
    if (status != BITSWEEP_ERROR_USAGE || error.rank != 1 || !strstr(error.message, "--k 0"))
        MPI_Abort(MPI_COMM_WORLD, 3);
    settings.k = 5; // of which nothing of the calls before may be left
    need(bitsweep_search(index, queries, &settings, values, ids, &error));
}

int main(int argc, char **argv)
{
    struct bitsweep_rows base = {0}, queries = {0};
    struct bitsweep_encode_settings encode;
    struct bitsweep_open_settings open;
    bitsweep_ranks *ranks;
    bitsweep_index *index;
    float *values = NULL;
    int64_t *ids = NULL;
    int provided, sum = 0, num_ranks;
    if (argc != 5) return 2; // BASE QUERIES FOLDER OUT
    if (bitsweep_ranks_open(0, 0, &ranks, &error) != BITSWEEP_ERROR_USAGE) return 3; // no MPI yet
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    need(bitsweep_ranks_open((int)MPI_Comm_c2f(MPI_COMM_WORLD), 60, &ranks, &error));
    bitsweep_encode_defaults(&encode);
    bitsweep_open_defaults(&open);
    encode.ranks = open.ranks = ranks;
    encode.device = open.device = "cpu";
    encode.threads = open.threads = 1;
    encode.metric = "l2";
    encode.shards = 3;
    base.file = argv[1];
    need(bitsweep_encode(argv[3], &base, &encode, NULL, &error));
    need(bitsweep_open(argv[3], &open, &index, &error));
    if (rank == 0) {
        need(bitsweep_shape(argv[2], &queries, &error));
        values = malloc(queries.num_rows * 10 * sizeof *values);
        ids = malloc(queries.num_rows * 10 * sizeof *ids);
    }
    const struct bitsweep_rows *given = rank == 0 ? &queries : NULL;
    need(bitsweep_search(index, given, NULL, values, ids, &error));
    check_errors(index, given, values, ids);
    need(bitsweep_search(index, given, NULL, values, ids, &error));
    if (rank == 0)
        need(bitsweep_write_neighbours(argv[4], queries.num_rows, 10, values, ids, 0, &error));
    bitsweep_close(&index);
    bitsweep_ranks_close(&ranks);
    MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
    MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    free(values), free(ids);
    return sum != num_ranks;
}
