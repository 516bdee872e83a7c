// SPDX-License-Identifier: Apache-2.0
// FILE.coverage.npy beside a result file: of each query the share of the rows that it could find,
// where that is not all of them. NumPy's float64, [num_queries].
#ifndef BITSWEEP_COMMON_COVERAGE_FILE_H
#define BITSWEEP_COMMON_COVERAGE_FILE_H

#include <stdint.h>

#include "common/base/file.h"
#include "common/base/status.h"

enum bsw_status bsw_coverage_path(char out[BSW_PATH_BYTES], const char *result,
                                  struct bsw_error *err);
// Written atomically.
enum bsw_status bsw_coverage_write(const char *result, const double *shares, uint64_t num_queries,
                                   struct bsw_error *err);

#endif
