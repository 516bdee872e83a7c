// SPDX-License-Identifier: Apache-2.0
// How many of the 10 nearest rows of each query are found by codes of 3 bits: all that it takes.
#include <bitsweep.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct bitsweep_rows base = {.file = argv[1]}, queries;
    struct bitsweep_encode_settings encode;
    struct bitsweep_knn_settings exact;
    struct bitsweep_error error;
    bitsweep_index *index;
    double recall;
    if (argc != 4) return 2; // BASE QUERIES FOLDER
    bitsweep_encode_defaults(&encode);
    bitsweep_knn_defaults(&exact);
    encode.metric = exact.metric = "l2";
    if (bitsweep_shape(argv[2], &queries, &error)) return fprintf(stderr, "%s\n", error.message), 1;
    float *values = malloc(queries.num_rows * 10 * sizeof *values);
    int64_t *ids = calloc(queries.num_rows, 20 * sizeof *ids), *truth = ids + queries.num_rows * 10;
    if (bitsweep_encode(argv[3], &base, &encode, NULL, &error) ||
        bitsweep_knn(&base, &queries, &exact, values, truth, &error) ||
        bitsweep_open(argv[3], NULL, &index, &error) ||
        bitsweep_search(index, &queries, NULL, values, ids, &error) ||
        bitsweep_recall(ids, 10, truth, 10, queries.num_rows, 10, &recall, &error))
        return fprintf(stderr, "%s\n", error.message), 1;
    bitsweep_close(&index);
    return printf("10-recall@10 %.4f\n", recall) < 0;
}
