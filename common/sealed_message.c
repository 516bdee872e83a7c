#include "common/sealed_message.h"

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
