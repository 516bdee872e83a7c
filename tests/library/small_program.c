// SPDX-License-Identifier: Apache-2.0
// Finds the 10 nearest rows of each query by codes of 3 bits, and says how many of the true ones
// they are. All the C that it takes to use the library.
#include <bitsweep.h>
#include <stdio.h>
#include <stdlib.h>

static struct bitsweep_error error;

static void need(int status)
{
    if (status == BITSWEEP_OK) return;
    fprintf(stderr, "%s\n", error.message);
    exit(1);
}

int main(int argc, char **argv)
{
    struct bitsweep_rows base = {.file = argv[1]}, queries;
    struct bitsweep_encode_settings encode;
    struct bitsweep_knn_settings exact;
    bitsweep_index *index;
    double recall;
    if (argc != 4) return 2; // BASE QUERIES FOLDER
    need(bitsweep_shape(argv[2], &queries, &error));
    float *values = malloc(queries.num_rows * 10 * sizeof *values);
    int64_t *ids = malloc(queries.num_rows * 10 * sizeof *ids),
            *truth = malloc(queries.num_rows * 10 * sizeof *truth);
    bitsweep_encode_defaults(&encode);
    encode.metric = "l2";
    need(bitsweep_encode(argv[3], &base, &encode, NULL, &error));
    bitsweep_knn_defaults(&exact);
    exact.metric = "l2";
    need(bitsweep_knn(&base, &queries, &exact, values, truth, &error));
    need(bitsweep_open(argv[3], NULL, &index, &error));
    need(bitsweep_search(index, &queries, NULL, values, ids, &error));
    need(bitsweep_recall(ids, 10, truth, 10, queries.num_rows, 10, &recall, &error));
    printf("10-recall@10 %.4f\n", recall);
    bitsweep_close(&index);
    free(values), free(ids), free(truth);
    return 0;
}
