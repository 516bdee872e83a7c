// Area under the receiver operating characteristic: the chance that a positive scores above a
// negative.
#ifndef BITSWEEP_COORDINATOR_ROC_AUC_H
#define BITSWEEP_COORDINATOR_ROC_AUC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// Mann and Whitney's count: of all pairs of a positive and a negative, those in which the positive
// is larger, and half of those that tie, over all. Exact but for the last division. Both arrays,
// numbers and no NaN, are sorted in place. 0 if one of them is empty.
// Cost: that of sorting.
double bsw_roc_auc(float *positives, size_t num_positives, float *negatives, size_t num_negatives);

#ifdef __cplusplus
}
#endif
#endif
