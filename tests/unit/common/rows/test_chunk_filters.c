// SPDX-License-Identifier: Apache-2.0
// Packed chunks: unpacked as they were, whole or not at all.
#include <string.h>
#include <zlib.h>

#include "common/base/integer_hash.h"
#include "common/rows/chunk_filters.h"
#include "unit_test.h"

enum { CHUNK = 1200, ROOM = CHUNK + CHUNK / 64 + 4096 };

static unsigned char first[ROOM], second[ROOM];
static unsigned char *const buffers[2] = {first, second};

static unsigned char number_byte(size_t i)
{
    return (unsigned char)(bsw_hash(i) % 7);
}

// HDF5's checksum in its plainest form.
static uint32_t sums_of(const unsigned char *data, size_t bytes)
{
    uint64_t low = 0, high = 0;
    for (size_t i = 0; i < bytes; i += 2) {
        low = (low + (data[i] * 256u) + (i + 1 < bytes ? data[i + 1] : 0u)) % 65535;
        high = (high + low) % 65535;
    }
    return (uint32_t)(high << 16 | low);
}

// Into buffers[0]; returns the bytes.
static size_t pack(const struct bsw_chunk_filters *filters, size_t number_bytes, size_t bytes)
{
    static unsigned char now[ROOM], next[ROOM];
    for (size_t i = 0; i < bytes; i++) now[i] = number_byte(i);
    for (int f = 0; f < filters->count; f++) {
        size_t count = bytes / number_bytes;
        uint32_t sum = sums_of(now, bytes);
        uLongf packed = sizeof next;
        switch (filters->ids[f]) {
        case BSW_FILTER_SHUFFLE:
            memcpy(next, now, bytes);
            for (size_t i = 0; i < count * number_bytes; i++)
                next[i % number_bytes * count + i / number_bytes] = now[i];
            memcpy(now, next, bytes);
            break;
        case BSW_FILTER_DEFLATE:
            assert_int_equal(compress(next, &packed, now, bytes), Z_OK);
            bytes = packed;
            memcpy(now, next, bytes);
            break;
        default:
            memcpy(now + bytes, &sum, sizeof sum);
            bytes += sizeof sum;
        }
    }
    memcpy(first, now, bytes);
    return bytes;
}

static const struct bsw_chunk_filters all_filters[] = {
    {0, {0}}, {1, {1}}, {1, {2}}, {1, {3}}, {2, {2, 1}}, {3, {2, 1, 3}}, {3, {3, 2, 1}}};
#define NUM_FILTERS (sizeof all_filters / sizeof all_filters[0])

UNIT_TEST(chunks_come_out_as_they_were)
{
    static const size_t sizes[] = {1, 2, 4, 8};
    for (size_t i = 0; i < 4 * NUM_FILTERS; i++) {
        const struct bsw_chunk_filters *filters = &all_filters[i / 4];
        for (size_t bytes = CHUNK - 5; bytes <= CHUNK; bytes++) {
            size_t stored = pack(filters, sizes[i % 4], bytes);
            unsigned char *out = bsw_chunk_unpack(filters, 0, sizes[i % 4], buffers, stored, bytes);
            assert_non_null(out);
            for (size_t b = 0; b < bytes; b++) assert_int_equal(out[b], number_byte(b));
        }
    }
}

UNIT_TEST(a_filter_that_was_not_applied_is_skipped)
{
    const struct bsw_chunk_filters shuffled = {1, {BSW_FILTER_SHUFFLE}};
    const struct bsw_chunk_filters both = {2, {BSW_FILTER_SHUFFLE, BSW_FILTER_DEFLATE}};
    size_t stored = pack(&shuffled, 4, CHUNK);
    unsigned char *out = bsw_chunk_unpack(&both, 2, 4, buffers, stored, CHUNK);
    assert_non_null(out);
    for (size_t b = 0; b < CHUNK; b++) assert_int_equal(out[b], number_byte(b));
}

UNIT_TEST(another_size_is_refused)
{
    for (size_t i = 0; i < NUM_FILTERS; i++) {
        for (size_t bytes = CHUNK - 40; bytes < CHUNK; bytes += 13) {
            size_t stored = pack(&all_filters[i], 4, bytes);
            assert_null(bsw_chunk_unpack(&all_filters[i], 0, 4, buffers, stored, CHUNK));
            stored = pack(&all_filters[i], 4, CHUNK);
            assert_null(bsw_chunk_unpack(&all_filters[i], 0, 4, buffers, stored, bytes));
        }
    }
    // More than any buffer has.
    const struct bsw_chunk_filters deflate = {1, {BSW_FILTER_DEFLATE}};
    static unsigned char many[1 << 20];
    uLongf packed = ROOM;
    assert_int_equal(compress(first, &packed, many, sizeof many), Z_OK);
    assert_null(bsw_chunk_unpack(&deflate, 0, 4, buffers, packed, CHUNK));
}

UNIT_TEST(damage_is_refused)
{
    const struct bsw_chunk_filters summed = {1, {BSW_FILTER_FLETCHER32}};
    const struct bsw_chunk_filters deflate = {1, {BSW_FILTER_DEFLATE}};
    const struct bsw_chunk_filters unknown = {1, {32000}};
    size_t stored = pack(&summed, 4, CHUNK);
    for (size_t i = 0; i < stored; i += 7) {
        pack(&summed, 4, CHUNK);
        first[i] ^= 0x10;
        assert_null(bsw_chunk_unpack(&summed, 0, 4, buffers, stored, CHUNK));
    }
    for (size_t cut = 1; cut < 100; cut += 9) {
        stored = pack(&deflate, 4, CHUNK);
        assert_null(bsw_chunk_unpack(&deflate, 0, 4, buffers, stored - cut, CHUNK));
    }
    assert_null(bsw_chunk_unpack(&unknown, 0, 4, buffers, CHUNK, CHUNK));
    assert_null(bsw_chunk_unpack(&summed, 0, 4, buffers, 3, CHUNK));
}

int main(void)
{
    assert_int_equal(bsw_chunk_room(CHUNK), ROOM);
    return run_unit_tests(NULL, NULL);
}
