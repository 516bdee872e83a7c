// The checksum at the end of a protobuf file: `fixed64 digest = 15`, the XXH3 of all bytes before
// that field. Manifests, models and checkpoints have it.
#ifndef BITSWEEP_COMMON_SEALED_MESSAGE_H
#define BITSWEEP_COMMON_SEALED_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/memory.h"
#include "common/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Tag and 8 bytes.
#define BSW_SEAL_BYTES 9

// Appends the field to a packed message that leaves its digest 0. *digest may be NULL.
enum bsw_status bsw_message_seal(struct bsw_buffer *message, uint64_t *digest,
                                 struct bsw_error *err);

// Checks it: BSW_ERROR_BAD_DATA for an empty, truncated or changed file. name: of the file, what:
// "model" and the like, for error texts. *digest may be NULL.
enum bsw_status bsw_message_check_seal(const char *name, const char *what, const void *data,
                                       size_t bytes, uint64_t *digest, struct bsw_error *err);

#ifdef __cplusplus
}
#endif
#endif
