// SPDX-License-Identifier: Apache-2.0
#include "library_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int num_failed;
struct bitsweep_error error;

void expect(int is_true, const char *what)
{
    if (is_true) return;
    printf("FAILED: %s (%s)\n", what, error.message);
    num_failed++;
}

// An error of this status whose text has these words in it.
void refused(int status, int wanted, const char *words)
{
    if (status == wanted && error.status == wanted && strstr(error.message, words)) return;
    printf("FAILED: status %s, wanted %s with '%s': %s\n", bitsweep_status_name(status),
           bitsweep_status_name(wanted), words, error.message);
    num_failed++;
}

void need(int status, const char *what)
{
    if (status == BITSWEEP_OK) return;
    printf("FAILED: %s: %s\n", what, error.message);
    exit(1);
}

// ---- rows and answers ----

// Odd addresses must do.
struct bitsweep_rows load(const char *file)
{
    struct bitsweep_rows rows;
    need(bitsweep_shape(file, &rows, &error), file);
    size_t number = rows.type == BITSWEEP_FLOAT32 ? 4 : rows.type == BITSWEEP_FLOAT16 ? 2 : 1;
    unsigned char *data = malloc(rows.num_rows * rows.dims * number + 1);
    need(bitsweep_read(file, 0, rows.num_rows, data + 1, &error), file);
    rows.data = data + 1;
    rows.file = NULL;
    return rows;
}

struct answers room(uint64_t num_queries, uint64_t k)
{
    size_t count = num_queries * k;
    return (struct answers){malloc(count * sizeof(float)), malloc(count * sizeof(int64_t)), count};
}

int are_same(const struct answers *a, const struct answers *b)
{
    return a->count == b->count && memcmp(a->ids, b->ids, a->count * sizeof *a->ids) == 0 &&
           memcmp(a->values, b->values, a->count * sizeof *a->values) == 0;
}

void forget(struct answers *answers)
{
    free(answers->values);
    free(answers->ids);
}

bitsweep_index *opened_with(const char *folder, int threads)
{
    bitsweep_index *index;
    struct bitsweep_open_settings settings;
    bitsweep_open_defaults(&settings);
    settings.threads = threads;
    settings.device = "cpu";
    need(bitsweep_open(folder, &settings, &index, &error), folder);
    return index;
}

bitsweep_index *opened(const char *folder)
{
    return opened_with(folder, 1);
}

struct answers searched(bitsweep_index *index, const struct bitsweep_rows *queries, uint64_t k,
                        double recall)
{
    struct bitsweep_search_settings settings;
    struct answers answers = room(queries->num_rows, k);
    bitsweep_search_defaults(&settings);
    settings.k = k;
    settings.recall = recall;
    need(bitsweep_search(index, queries, &settings, answers.values, answers.ids, &error), "search");
    return answers;
}
