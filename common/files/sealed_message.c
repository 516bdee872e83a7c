// SPDX-License-Identifier: Apache-2.0
#include "common/files/sealed_message.h"

#include <string.h>
#include <xxhash.h>

// Field 15, 64 bits fixed.
#define SEAL_TAG 0x79

enum bsw_status bsw_message_seal(struct bsw_buffer *message, uint64_t *digest,
                                 struct bsw_error *err)
{
    uint64_t value = XXH3_64bits(message->data, message->bytes);
    unsigned char field[BSW_SEAL_BYTES] = {SEAL_TAG};
    for (int i = 0; i < 8; i++) field[1 + i] = (unsigned char)(value >> (8 * i));
    if (digest) *digest = value;
    return bsw_buffer_append(message, field, sizeof field, err);
}

enum bsw_status bsw_message_check_seal(const char *name, const char *what, const void *data,
                                       size_t bytes, uint64_t *digest, struct bsw_error *err)
{
    const unsigned char *all = data;
    if (bytes == 0) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: empty", name);
    if (bytes <= BSW_SEAL_BYTES || all[bytes - BSW_SEAL_BYTES] != SEAL_TAG)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: truncated, or no bitsweep %s", name, what);
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value |= (uint64_t)all[bytes - 8 + (size_t)i] << (8 * i);
    if (value != XXH3_64bits(all, bytes - BSW_SEAL_BYTES))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: checksum does not match", name);
    if (digest) *digest = value;
    return BSW_OK;
}

// ---- packing and unpacking ----

struct room {
    size_t left;
    int lacked_memory; // the heap had none
};

static void *take_room(void *context, size_t bytes)
{
    struct room *room = context;
    void *memory = NULL;
    size_t taken; // as the heap sees it
    if (!bsw_add_size(bytes, 2 * BSW_ALIGNMENT_BYTES, &taken) || taken > room->left) return NULL;
    if (bsw_allocate(&memory, bytes, 1, "message", NULL) != BSW_OK)
        room->lacked_memory = 1;
    else
        room->left -= taken;
    return memory;
}

static void give_back(void *context, void *memory)
{
    (void)context;
    bsw_free(&memory);
}

enum bsw_status bsw_message_pack(const ProtobufCMessage *message, struct bsw_buffer *out,
                                 struct bsw_error *err)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    out->bytes = 0;
    BSW_TRY(bsw_buffer_reserve(out, bytes + BSW_SEAL_BYTES, err));
    out->bytes = protobuf_c_message_pack(message, out->data);
    return BSW_OK;
}

enum bsw_status bsw_message_unpack(const ProtobufCMessageDescriptor *type, const char *name,
                                   const char *what, const void *data, size_t bytes, void *out,
                                   struct bsw_error *err)
{
    struct room room = {.left = SIZE_MAX};
    ProtobufCAllocator allocator = {take_room, give_back, &room};
    size_t most;
    if (bsw_multiply_size(bytes, 2, &most) && bsw_add_size(most, BSW_MESSAGE_ROOM_BYTES, &most))
        room.left = most;
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, bytes, data);
    memcpy(out, &message, sizeof message);
    if (message) return BSW_OK;
    if (room.lacked_memory)
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "%s: no memory to unpack it", name);
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no bitsweep %s", name, what);
}

void bsw_message_free(void *message)
{
    ProtobufCAllocator allocator = {NULL, give_back, NULL};
    protobuf_c_message_free_unpacked(message, &allocator);
}
