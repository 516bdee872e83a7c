// SPDX-License-Identifier: Apache-2.0
// What programs of this folder that assert something share.
#ifndef BITSWEEP_TESTS_LIBRARY_SUPPORT_H
#define BITSWEEP_TESTS_LIBRARY_SUPPORT_H

#if __has_include(<bitsweep.h>)
#include <bitsweep.h> // as it is installed
#else
#include "coordinator/bitsweep.h"
#endif

extern int num_failed; // cases, each of which was said
extern struct bitsweep_error error;

void expect(int is_true, const char *what);
// An error of this status whose text has these words in it.
void refused(int status, int wanted, const char *words);
// Ends the program after an error.
void need(int status, const char *what);

// Loads a file into memory at an odd address, which must do.
struct bitsweep_rows load(const char *file);

struct answers {
    float *values;
    int64_t *ids;
    size_t count;
};
struct answers room(uint64_t num_queries, uint64_t k);
int are_same(const struct answers *a, const struct answers *b);
void forget(struct answers *answers);

// On the CPU, with so many threads or one.
bitsweep_index *opened_with(const char *folder, int threads);
bitsweep_index *opened(const char *folder);
// recall 0: the usual.
struct answers searched(bitsweep_index *index, const struct bitsweep_rows *queries, uint64_t k,
                        double recall);

// library_range.c
void check_range(const char *folder, const struct bitsweep_rows *queries);

#endif
