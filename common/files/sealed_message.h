// The checksum at the end of a protobuf file: `fixed64 digest = 15`, the XXH3 of all bytes before
// that field. Manifests, models and checkpoints have it.
#ifndef BITSWEEP_COMMON_SEALED_MESSAGE_H
#define BITSWEEP_COMMON_SEALED_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/base/status.h"

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

// Memory for unpacking one message. An empty submessage has two bytes in a file and some hundred in
// memory; a file of nothing else would take all memory there is, long before its content is looked
// at. So a message gets room for its bytes twice, and BSW_MESSAGE_ROOM_BYTES for what stands around
// them; unpacking one that wants more gives NULL, as a malformed one does.
#define BSW_MESSAGE_ROOM_BYTES ((size_t)32 << 20) // 65,536 shards, or 100,000 epochs: some 16 MiB
struct bsw_message_room {
    ProtobufCAllocator allocator; // for X__unpack and X__free_unpacked
    size_t left;
    int lacked_memory; // the heap had none
};
// The room points to itself: it must not move.
void bsw_message_room_init(struct bsw_message_room *room, size_t message_bytes);
// What to return where X__unpack gave NULL: BSW_ERROR_OUT_OF_MEMORY, or BSW_ERROR_BAD_DATA.
enum bsw_status bsw_message_fail(const struct bsw_message_room *room, const char *name,
                                 const char *what, struct bsw_error *err);

#ifdef __cplusplus
}
#endif
#endif
