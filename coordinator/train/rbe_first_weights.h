// First weights of a training of rbe, and the rates that go with them.
#ifndef BITSWEEP_COORDINATOR_RBE_FIRST_WEIGHTS_H
#define BITSWEEP_COORDINATOR_RBE_FIRST_WEIGHTS_H

#include "coordinator/train/rbe_training.h"

#ifdef __cplusplus
extern "C" {
#endif

// parameters of both sides, as options->start says. From principal axes of documents of `trained`
// [num_trained] pairs, so alike on all ranks only if one has made them; the others are a function
// of the options.
enum bsw_status bsw_rbe_first_weights(const struct bsw_rbe_training_options *options,
                                      const struct bsw_rbe_pairs *pairs, const uint64_t *trained,
                                      uint64_t num_trained, float *parameters,
                                      struct bsw_error *err);

// rates [num_parameters], which the rate of each weight is multiplied by. A step of Adam is of one
// size for all weights, whatever theirs: right for random first weights, which are of one size, but
// those of a quantizer are not, and what is small would be noise after a few steps. So the rate of
// a weight goes with the root mean square of the first ones of its component (row of W and R,
// column of B) over that of random ones; of a bias with what the layer gives: numbers around 1, or
// inputs. For a random start all are 1.
void bsw_rbe_first_rates(const struct bsw_rbe_training_options *options, const float *parameters,
                         float *rates);

#ifdef __cplusplus
}
#endif
#endif
