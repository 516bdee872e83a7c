#include "coordinator/train/roc_auc.h"

#include <stdint.h>
#include <stdlib.h>

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

double bsw_roc_auc(float *positives, size_t num_positives, float *negatives, size_t num_negatives)
{
    uint64_t halves = 0; // twice the count: below 2^63 for fewer than 2^62 pairs
    size_t below = 0, up_to = 0;
    if (num_positives == 0 || num_negatives == 0) return 0;
    qsort(positives, num_positives, sizeof *positives, compare_floats);
    qsort(negatives, num_negatives, sizeof *negatives, compare_floats);
    for (size_t i = 0; i < num_positives; i++) {
        while (below < num_negatives && negatives[below] < positives[i]) below++;
        while (up_to < num_negatives && negatives[up_to] <= positives[i]) up_to++;
        halves += below + up_to;
    }
    return (double)halves / (2.0 * (double)num_positives * (double)num_negatives);
}
