// SPDX-License-Identifier: Apache-2.0
// The checksum at the end of a protobuf file: `fixed64 digest = 15`, the XXH3 of all bytes before
// that field. Manifests, models and checkpoints have it.
#ifndef BITSWEEP_COMMON_SEALED_MESSAGE_H
#define BITSWEEP_COMMON_SEALED_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/base/status.h"

// Tag and 8 bytes.
#define BSW_SEAL_BYTES 9

// Appends the field to a packed message that leaves its digest 0. *digest may be NULL.
enum bsw_status bsw_message_seal(struct bsw_buffer *message, uint64_t *digest,
                                 struct bsw_error *err);

// Checks it: BSW_ERROR_BAD_DATA for an empty, truncated or changed file. name: of the file, what:
// "model" and the like, for error texts. *digest may be NULL.
enum bsw_status bsw_message_check_seal(const char *name, const char *what, const void *data,
                                       size_t bytes, uint64_t *digest, struct bsw_error *err);

// Packs a message in place of what out has, with room for a seal.
enum bsw_status bsw_message_pack(const ProtobufCMessage *message, struct bsw_buffer *out,
                                 struct bsw_error *err);

// *(X **)out = a message of that type, to bsw_message_free. BSW_ERROR_BAD_DATA: there is none in
// the bytes. An empty submessage has two bytes in a file and some hundred in memory; a file of
// nothing else would take all memory there is, long before its content is looked at. So a message
// gets room for its bytes twice, and BSW_MESSAGE_ROOM_BYTES for what stands around them; one that
// wants more is malformed.
#define BSW_MESSAGE_ROOM_BYTES ((size_t)32 << 20) // 65,536 shards, or 100,000 epochs: some 16 MiB
enum bsw_status bsw_message_unpack(const ProtobufCMessageDescriptor *type, const char *name,
                                   const char *what, const void *data, size_t bytes, void *out,
                                   struct bsw_error *err);
void bsw_message_free(void *message);

#endif
