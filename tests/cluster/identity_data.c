// SPDX-License-Identifier: Apache-2.0
// Hostile vectors for check_identity.sh and check_raw.sh, and a count of the ties that its results
// hold.
//
//   identity_data write FOLDER
//       base.fbin, base.u8bin, tiny.fbin, query.fbin, query.u8bin, and whole.fbin: the queries of
//       bytes as floats
//   identity_data ties BASE RESULT PLACE...
//       queries whose rows at PLACE and PLACE + 1 (from 1) are copies with equal values; a line
//       "PLACE COUNT" each
//
// An answer that depends on the order in which shards, threads or messages come shows where rows
// tie at the last place kept. So each vector stands in the base about four times, one of them in a
// long run, and on both sides of every shard cut; ties at a given place are then the rule, and
// `ties` proves it. Only copies count: rows of equal keys by definition, not by a rounding.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/files/result_file.h"
#include "common/rows/vectors.h"
#include "coordinator/job/command.h"

enum {
    NUM_ROWS = 1037, // 32 bundles and 13 rows: a partial bundle for every number of shards
    NUM_TINY = 13,
    NUM_QUERIES = 19,
    NUM_VECTORS = 260, // distinct ones
    DIMS = 45,         // one word of a plane and 13 bits
    RUN_FIRST = 470,   // a run of one vector, over several bundles and a cut
    RUN_LAST = 600,
    ZEROS_FIRST = 700, // u8bin only: more than a bundle of zero rows, which cosine has to drop
    ZEROS_LAST = 745
};

static const uint64_t cut_parts[] = {4, 7};

// Which vector stands in a row: by hash, but in the run and left and right of a cut the same one.
static uint32_t vector_of_row(uint32_t row)
{
    if (row >= RUN_FIRST && row < RUN_LAST) return 0;
    for (size_t i = 0; i < sizeof cut_parts / sizeof cut_parts[0]; i++) {
        for (uint64_t part = 1; part < cut_parts[i]; part++) {
            uint64_t cut = bsw_part_first(NUM_ROWS, part, cut_parts[i]);
            if (row + 3 >= cut && row < cut + 3) return (uint32_t)part;
        }
    }
    return (uint32_t)(bsw_hash2(1, row) % NUM_VECTORS);
}

// In -1020 to 1140, about Gaussian, off centre, with less energy in later dimensions.
static int number_of(uint32_t seed, uint32_t dim)
{
    uint64_t h = bsw_hash2(seed, dim);
    int sum = 0;
    for (int i = 0; i < 8; i++) sum += (int)(h >> (8 * i) & 255);
    return (sum - 1020) * 8 / (int)(8 + dim) + (dim % 5 == 0 ? 120 : 0);
}

// Norms differ by powers of two: every odd vector points the way of the even one before it, so that
// it ties with it for cosine and for no other metric.
static void float_vector(uint32_t vector, float out[DIMS])
{
    float factor = (float)(1 << vector % 7) / 64;
    for (uint32_t d = 0; d < DIMS; d++) out[d] = (float)number_of(vector / 2, d) * factor;
    if (vector % 3 == 0) out[DIMS - 1] = -0.0f;
}

static void byte_vector(uint32_t vector, uint8_t out[DIMS])
{
    for (uint32_t d = 0; d < DIMS; d++) {
        int value = 128 + number_of(vector, d) / (int)(4 + vector % 5 * 4);
        out[d] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

// Copies of rows, neighbours of rows, and vectors of their own.
static void float_query(uint32_t query, float out[DIMS])
{
    float_vector(query % 3 == 2 ? NUM_VECTORS + query : query * 5 % NUM_VECTORS, out);
    if (query % 3 == 1) out[query % DIMS] += 1.5f;
    if (query == 18) memset(out + 1, 0, (DIMS - 1) * sizeof *out); // all rows of equal first number
}

static void byte_query(uint32_t query, uint8_t out[DIMS])
{
    byte_vector(query % 3 == 2 ? NUM_VECTORS + query : query * 5 % NUM_VECTORS, out);
    if (query % 3 == 1) out[query % DIMS] ^= 3;
}

static FILE *create(const char *folder, const char *name, uint32_t num_rows)
{
    char path[4096];
    const uint32_t head[2] = {num_rows, DIMS};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(head, sizeof head, 1, file) != 1) {
        perror(path);
        exit(1);
    }
    return file;
}

static void finish(FILE *file)
{
    if (ferror(file) || fclose(file) != 0) {
        perror("identity_data");
        exit(1);
    }
}

static void write_floats(const char *folder, const char *name, uint32_t num_rows, int is_query)
{
    FILE *file = create(folder, name, num_rows);
    for (uint32_t row = 0; row < num_rows; row++) {
        float numbers[DIMS];
        if (is_query)
            float_query(row, numbers);
        else
            float_vector(vector_of_row(row), numbers);
        fwrite(numbers, sizeof numbers, 1, file);
    }
    finish(file);
}

static void write_bytes(const char *folder, const char *name, uint32_t num_rows, int is_query)
{
    FILE *file = create(folder, name, num_rows);
    for (uint32_t row = 0; row < num_rows; row++) {
        uint8_t numbers[DIMS];
        if (is_query)
            byte_query(row, numbers);
        else
            byte_vector(vector_of_row(row), numbers);
        if (!is_query && row >= ZEROS_FIRST && row < ZEROS_LAST) memset(numbers, 0, sizeof numbers);
        fwrite(numbers, sizeof numbers, 1, file);
    }
    finish(file);
}

// The queries of bytes as floats.
static void write_whole_floats(const char *folder, const char *name)
{
    FILE *file = create(folder, name, NUM_QUERIES);
    for (uint32_t query = 0; query < NUM_QUERIES; query++) {
        uint8_t bytes[DIMS];
        float numbers[DIMS];
        byte_query(query, bytes);
        for (uint32_t d = 0; d < DIMS; d++) numbers[d] = bytes[d];
        fwrite(numbers, sizeof numbers, 1, file);
    }
    finish(file);
}

// Bit for bit; rows of bytes fill a part of the room only.
static int are_copies(const bsw_vectors *base, const int64_t ids[2])
{
    unsigned char rows[2][DIMS * sizeof(float)] = {{0}};
    if (ids[0] < 0 || ids[1] < 0 || ids[0] == ids[1]) return 0;
    for (int i = 0; i < 2; i++) {
        if (bsw_vectors_read(base, (uint64_t)ids[i], 1, rows[i], NULL) != BSW_OK) return 0;
    }
    return memcmp(rows[0], rows[1], sizeof rows[0]) == 0;
}

static enum bsw_status print_tie_counts(const bsw_vectors *base, const struct bsw_results *results,
                                        int num_places, char **places, struct bsw_error *err)
{
    for (int i = 0; i < num_places; i++) {
        uint64_t place = strtoull(places[i], NULL, 10), count = 0;
        if (place < 1 || place >= results->k)
            return bsw_fail(err, BSW_ERROR_USAGE, "no place behind %s", places[i]);
        for (uint64_t q = 0; q < results->num_queries; q++) {
            uint64_t at = q * results->k + place - 1;
            int is_equal = results->values[at] == results->values[at + 1];
            count += is_equal && are_copies(base, results->ids + at);
        }
        printf("%s %llu\n", places[i], (unsigned long long)count);
    }
    return BSW_OK;
}

static int print_ties(const char *base_path, const char *path, int num_places, char **places)
{
    struct bsw_results results = {0};
    struct bsw_error err;
    bsw_vectors *base = NULL;
    enum bsw_status status = bsw_vectors_open(base_path, BSW_ALL_ROWS, &base, &err);
    if (status == BSW_OK && bsw_vectors_dims(base) != DIMS)
        status = bsw_fail(&err, BSW_ERROR_BAD_DATA, "%s: not of this program", base_path);
    if (status == BSW_OK) status = bsw_results_read(path, &results, &err);
    if (status == BSW_OK) status = print_tie_counts(base, &results, num_places, places, &err);
    if (status != BSW_OK) fprintf(stderr, "identity_data: %s\n", err.message);
    bsw_results_deinit(&results);
    bsw_vectors_close(&base);
    return bsw_status_exit_code(status);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "write") == 0) {
        write_floats(argv[2], "base.fbin", NUM_ROWS, 0);
        write_floats(argv[2], "tiny.fbin", NUM_TINY, 0);
        write_floats(argv[2], "query.fbin", NUM_QUERIES, 1);
        write_bytes(argv[2], "base.u8bin", NUM_ROWS, 0);
        write_bytes(argv[2], "query.u8bin", NUM_QUERIES, 1);
        write_whole_floats(argv[2], "whole.fbin");
        return 0;
    }
    if (argc > 4 && strcmp(argv[1], "ties") == 0)
        return print_ties(argv[2], argv[3], argc - 4, argv + 4);
    fprintf(stderr, "usage: identity_data write FOLDER | ties BASE RESULT PLACE...\n");
    return 2;
}
