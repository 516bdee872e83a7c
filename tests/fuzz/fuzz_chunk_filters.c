// SPDX-License-Identifier: Apache-2.0
// Chunks as HDF5 packs them. The first byte of an input says how many filters, the second what is
// in their place; sizes follow, then the chunk:
//   0  the rest is the chunk as it is stored, bit i of a byte says that filter i was not applied
//   1  the rest is numbers: packed here they must come out as they were
#include <string.h>
#include <zlib.h>

#include "common/rows/chunk_filters.h"
#include "tests/fuzz/harness.h"

enum { MOST_BYTES = 4096, MOST_FILTERS = 4 };

static const int filter_ids[] = {BSW_FILTER_DEFLATE, BSW_FILTER_SHUFFLE, BSW_FILTER_FLETCHER32, 4};

static void make_buffers(size_t chunk_bytes, unsigned char *buffers[2])
{
    for (int i = 0; i < 2; i++) buffers[i] = fuzz_exact(NULL, bsw_chunk_room(chunk_bytes));
}

static void free_buffers(unsigned char *buffers[2])
{
    for (int i = 0; i < 2; i++) bsw_free(&buffers[i]);
}

// Whether all filters that were applied leave a size that is known: *bytes of the chunk.
static int is_size_known(const struct bsw_chunk_filters *filters, uint32_t skipped, size_t *bytes)
{
    for (int i = filters->count - 1; i >= 0; i--) {
        if (skipped >> i & 1) continue;
        if (filters->ids[i] == BSW_FILTER_DEFLATE) return 0;
        if (filters->ids[i] == BSW_FILTER_FLETCHER32 && *bytes >= 4) *bytes -= 4;
    }
    return 1;
}

static void take_any(const struct bsw_chunk_filters *filters, const uint8_t *data, size_t bytes)
{
    unsigned char *buffers[2];
    if (bytes < 4) return;
    size_t number_bytes = data[0] % 9 + 1u, chunk_bytes = data[1] | data[2] << 8;
    uint32_t skipped = data[3];
    data += 4;
    bytes -= 4;
    if (chunk_bytes > MOST_BYTES || bytes > bsw_chunk_room(chunk_bytes)) return;
    make_buffers(chunk_bytes, buffers);
    memcpy(buffers[0], data, bytes);
    const unsigned char *chunk =
        bsw_chunk_unpack(filters, skipped, number_bytes, buffers, bytes, chunk_bytes);
    FUZZ_REQUIRE(chunk == NULL || chunk == buffers[0] || chunk == buffers[1]);
    if (chunk && is_size_known(filters, skipped, &bytes)) FUZZ_REQUIRE(bytes == chunk_bytes);
    free_buffers(buffers);
}

// ---- packing, as HDF5's documents say ----

static size_t do_deflate(unsigned char *to, size_t room, const unsigned char *from, size_t bytes)
{
    uLongf packed = room;
    return compress2(to, &packed, from, bytes, 1) == Z_OK ? packed : 0;
}

static size_t do_shuffle(unsigned char *to, const unsigned char *from, size_t bytes, size_t number)
{
    size_t count = bytes / number;
    memcpy(to, from, bytes);
    for (size_t i = 0; i < count * number; i++) to[i % number * count + i / number] = from[i];
    return bytes;
}

static size_t do_fletcher32(unsigned char *to, const unsigned char *from, size_t bytes)
{
    uint64_t low = 0, high = 0; // as they are: there are few bytes
    for (size_t i = 0; i < bytes; i += 2) {
        low += (uint64_t)from[i] << 8 | (i + 1 < bytes ? from[i + 1] : 0u);
        high += low;
    }
    uint32_t sums[2] = {(uint32_t)(low % 65535), (uint32_t)(high % 65535)};
    // A sum that is a multiple of 65535 and not 0 stands as 65535.
    if (sums[0] == 0 && low > 0) sums[0] = 65535;
    if (sums[1] == 0 && high > 0) sums[1] = 65535;
    uint32_t sum = sums[1] << 16 | sums[0];
    memcpy(to, from, bytes);
    memcpy(to + bytes, &sum, sizeof sum);
    return bytes + sizeof sum;
}

// Bytes of the chunk as it is stored, in *from; 0: it has grown beyond its room.
static size_t pack(const struct bsw_chunk_filters *filters, size_t number_bytes, size_t bytes,
                   unsigned char **from, unsigned char **to, size_t room)
{
    for (int i = 0; i < filters->count && bytes > 0; i++) {
        if (bytes + 4 > room) return 0;
        if (filters->ids[i] == BSW_FILTER_DEFLATE)
            bytes = do_deflate(*to, room, *from, bytes);
        else if (filters->ids[i] == BSW_FILTER_SHUFFLE)
            bytes = do_shuffle(*to, *from, bytes, number_bytes);
        else
            bytes = do_fletcher32(*to, *from, bytes);
        unsigned char *swap = *from;
        *from = *to;
        *to = swap;
    }
    return bytes;
}

static void take_packed(const struct bsw_chunk_filters *filters, const uint8_t *data, size_t bytes)
{
    unsigned char *buffers[2], *from, *to;
    if (bytes < 2 || bytes > MOST_BYTES) return;
    size_t number_bytes = data[0] % 9 + 1u, room = bsw_chunk_room(bytes - 1);
    for (int i = 0; i < filters->count; i++)
        if (filters->ids[i] == 4) return; // no filter of these
    make_buffers(bytes - 1, buffers);
    from = buffers[0];
    to = buffers[1];
    memcpy(from, data + 1, bytes - 1);
    size_t stored = pack(filters, number_bytes, bytes - 1, &from, &to, room);
    unsigned char *const order[2] = {from, to};
    const unsigned char *chunk = NULL;
    if (stored > 0) chunk = bsw_chunk_unpack(filters, 0, number_bytes, order, stored, bytes - 1);
    FUZZ_REQUIRE(stored == 0 || (chunk && memcmp(chunk, data + 1, bytes - 1) == 0));
    free_buffers(buffers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 2) return 0;
    struct bsw_chunk_filters filters = {.count = data[0] / 2 % (MOST_FILTERS + 1)};
    for (int i = 0; i < filters.count; i++) filters.ids[i] = filter_ids[data[1] >> 2 * i & 3];
    if (data[0] % 2 == 0)
        take_any(&filters, data + 2, bytes - 2);
    else
        take_packed(&filters, data + 2, bytes - 2);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    unsigned char numbers[67], seed[160];
    for (size_t i = 0; i < sizeof numbers; i++) numbers[i] = (unsigned char)(i / 3);
    for (unsigned char order = 0; order < 64; order = (unsigned char)(order + 3)) {
        seed[0] = (unsigned char)(2 * (order % (MOST_FILTERS + 1)) + 1);
        seed[1] = order;
        seed[2] = 3;
        memcpy(seed + 3, numbers, sizeof numbers);
        put(context, seed, 3 + sizeof numbers);
    }
    // Stored: deflate, then the same behind a checksum.
    const unsigned char head[] = {2, 0, 3, sizeof numbers, 0, 0};
    memcpy(seed, head, sizeof head);
    size_t packed = do_deflate(seed + 6, sizeof seed - 6, numbers, sizeof numbers);
    put(context, seed, 6 + packed);
    unsigned char sealed[160];
    memcpy(sealed, seed, 6);
    sealed[0] = 4;
    sealed[1] = 8;
    put(context, sealed, 6 + do_fletcher32(sealed + 6, seed + 6, packed));
    // One that unpacks to more than there is room for.
    static const unsigned char zeros[2 * MOST_BYTES];
    const unsigned char bomb[] = {2, 0, 0, 64, 0, 0};
    memcpy(seed, bomb, sizeof bomb);
    put(context, seed, 6 + do_deflate(seed + 6, sizeof seed - 6, zeros, sizeof zeros));
    // As it is, and one byte more than it should have.
    const unsigned char plain[] = {0, 0, 0, 3, 0, 0, 'a', 'b', 'c', 'd'};
    put(context, plain, sizeof plain - 1);
    put(context, plain, sizeof plain);
}
