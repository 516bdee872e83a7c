// SPDX-License-Identifier: Apache-2.0
// Small files that hold one JSON object.
#ifndef BITSWEEP_COMMON_JSON_FILE_H
#define BITSWEEP_COMMON_JSON_FILE_H

#include <jansson.h>

#include "common/base/status.h"

// The caller's to json_decref(). A missing file is BSW_ERROR_IO; one above 1 MiB, or that is no
// JSON object, BSW_ERROR_BAD_DATA.
enum bsw_status bsw_json_file_read(const char *path, json_t **out, struct bsw_error *err);

// Atomically and durably, indented by 2, numbers with 9 digits. Takes the reference to object,
// which may be NULL where there was no memory for it.
enum bsw_status bsw_json_file_write(const char *path, json_t *object, struct bsw_error *err);

#endif
