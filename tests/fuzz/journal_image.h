// SPDX-License-Identifier: Apache-2.0
// Journals made by hand, from what common/job/journal.h says of their bytes and not by its code:
// with checksums that fit whatever they hold.
#ifndef BITSWEEP_TESTS_FUZZ_JOURNAL_IMAGE_H
#define BITSWEEP_TESTS_FUZZ_JOURNAL_IMAGE_H

#include <string.h>
#include <xxhash.h>

#include "common/job/journal.h"
#include "tests/fuzz/harness.h"

#define JOURNAL_HEAD_BYTES   32
#define JOURNAL_RECORD_BYTES (16 + 8) // of a record, beside its payload
#define JOURNAL_RUN_ID       0x0123456789abcdefull

static inline void journal_add(struct bsw_buffer *out, const void *data, size_t bytes)
{
    if (out->capacity < out->bytes + bytes)
        FUZZ_REQUIRE(bsw_buffer_reserve(out, 2 * (out->bytes + bytes), NULL) == BSW_OK);
    if (bytes > 0) memcpy(out->data + out->bytes, data, bytes);
    out->bytes += bytes;
}

// A name or a value: its bytes in front.
static inline void journal_add_text(struct bsw_buffer *out, const void *text, size_t bytes)
{
    uint16_t length = (uint16_t)bytes;
    journal_add(out, &length, sizeof length);
    journal_add(out, text, bytes);
}

// Empties out; fields follow by journal_add_text, then journal_end_head.
static inline void journal_begin(struct bsw_buffer *out)
{
    static const unsigned char head[JOURNAL_HEAD_BYTES] = "BSWJRNL";
    const uint64_t run_id = JOURNAL_RUN_ID;
    out->bytes = 0;
    journal_add(out, head, sizeof head);
    memcpy(out->data + 16, &run_id, sizeof run_id);
}

static inline void journal_end_head(struct bsw_buffer *out, uint32_t num_fields)
{
    const uint32_t version = 1;
    const uint64_t bytes = out->bytes + sizeof(uint64_t);
    memcpy(out->data + 8, &version, sizeof version);
    memcpy(out->data + 12, &num_fields, sizeof num_fields);
    memcpy(out->data + 24, &bytes, sizeof bytes);
    uint64_t digest = XXH3_64bits(out->data, out->bytes);
    journal_add(out, &digest, sizeof digest);
}

static inline void journal_add_fields(struct bsw_buffer *out,
                                      const struct bsw_journal_fields *fields)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct bsw_journal_field *field = &fields->fields[i];
        journal_add_text(out, field->name, strlen(field->name));
        journal_add_text(out, field->value, strlen(field->value));
    }
    journal_end_head(out, (uint32_t)fields->count);
}

// zero: 0 in a good record; claimed: bytes of the payload as its head says.
static inline void journal_add_record(struct bsw_buffer *out, uint64_t sequence, uint32_t zero,
                                      uint32_t claimed, const void *payload, size_t bytes)
{
    size_t first = out->bytes;
    journal_add(out, &claimed, sizeof claimed);
    journal_add(out, &zero, sizeof zero);
    journal_add(out, &sequence, sizeof sequence);
    journal_add(out, payload, bytes);
    uint64_t digest = XXH3_64bits_withSeed(out->data + first, out->bytes - first, JOURNAL_RUN_ID);
    journal_add(out, &digest, sizeof digest);
}

#endif
