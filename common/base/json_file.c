// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_file.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"

#define MAX_BYTES (1u << 20)

enum bsw_status bsw_json_file_read(const char *path, json_t **out, struct bsw_error *err)
{
    struct bsw_buffer text = {0};
    json_error_t fault;
    *out = NULL;
    enum bsw_status status = bsw_file_read_all(path, MAX_BYTES, &text, err);
    if (status == BSW_OK) *out = json_loadb((const char *)text.data, text.bytes, 0, &fault);
    bsw_buffer_deinit(&text);
    if (status != BSW_OK || json_is_object(*out)) return status;
    if (!*out)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: line %d: %s", path, fault.line, fault.text);
    json_decref(*out);
    *out = NULL;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no JSON object", path);
}

enum bsw_status bsw_json_file_write(const char *path, json_t *object, struct bsw_error *err)
{
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (!text) return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "%s: no memory", path);
    size_t bytes = strlen(text);
    text[bytes++] = '\n'; // no longer a string
    enum bsw_status status = bsw_file_write_atomic(path, text, bytes, err);
    free(text);
    return status;
}
