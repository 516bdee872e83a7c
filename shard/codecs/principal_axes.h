// SPDX-License-Identifier: Apache-2.0
// Orthonormal axes for codes: principal ones of a sample, and random ones. LAPACK in float64: bits
// depend on the machine.
#ifndef BITSWEEP_SHARD_PRINCIPAL_AXES_H
#define BITSWEEP_SHARD_PRINCIPAL_AXES_H

#include <stdint.h>

#include "common/base/memory.h"

// Eigenvectors of a covariance [dims][dims], symmetric, overwritten: axes [dims][dims], a row each,
// in order of falling energy; energies [dims].
enum bsw_status bsw_principal_axes(uint32_t dims, double *covariance, double *energies,
                                   double *axes, struct bsw_error *err);

// A random orthogonal matrix [dims][dims]: Q of the QR factorisation of hashed Gaussians.
enum bsw_status bsw_random_rotation(uint64_t seed, uint32_t dims, double *matrix,
                                    struct bsw_error *err);

#endif
