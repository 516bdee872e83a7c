// SPDX-License-Identifier: Apache-2.0
// The number of files that this process may have open at once.
#ifndef BITSWEEP_COMMON_FILE_LIMIT_H
#define BITSWEEP_COMMON_FILE_LIMIT_H

#include <stdint.h>

#include "common/base/status.h"

// Makes room for `more` files beside those that are open and BSW_FILES_TO_SPARE others (messages,
// libraries): raises the soft limit (RLIMIT_NOFILE) where it is lower. Where the hard limit is
// lower, too, BSW_ERROR_IO with both figures. Not for several threads at once.
#define BSW_FILES_TO_SPARE 32
enum bsw_status bsw_file_limit_raise(uint64_t more, struct bsw_error *err);

#endif
