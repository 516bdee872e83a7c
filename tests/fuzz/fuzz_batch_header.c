// SPDX-License-Identifier: Apache-2.0
// The message of a batch, rank 0 to all: its head, its header and what follows.
#include <stdlib.h>
#include <string.h>

#include "bitsweep.pb-c.h"
#include "coordinator/search/query_source.h"
#include "shard/codecs/codec.h"
#include "tests/fuzz/seed_manifest.h"

#define QUERY_BITS 3

// Reads the last byte of each array of a batch, so that a sanitizer sees one that is too short.
static unsigned touch(const struct bsw_manifest *manifest, const struct bsw_query_batch *batch)
{
    size_t count = batch->num_queries, dims = bsw_manifest_row_dims(manifest);
    unsigned sum = 0;
    if (count == 0) return 0;
    if (batch->scales) sum += ((const unsigned char *)batch->scales)[count * 4 - 1];
    if (batch->constants) sum += ((const unsigned char *)batch->constants)[count * 4 - 1];
    if (batch->vectors) sum += ((const unsigned char *)batch->vectors)[count * dims * 4 - 1];
    return sum + ((const unsigned char *)batch->words)[count * batch->query_words * 4 - 1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct bsw_manifest manifests[2];
    static volatile unsigned sum;
    struct bsw_query_batch batch;
    struct bsw_error err;
    int is_last;
    if (!manifests[0].shards) {
        seed_manifest(&bsw_codec_xfbq, 1, &manifests[0]);
        seed_manifest(&bsw_codec_raw, 1, &manifests[1]);
    }
    if (bytes < 1) return 0;
    const struct bsw_manifest *manifest = &manifests[data[0] % 2];
    struct bsw_buffer message = {fuzz_exact(data + 1, bytes - 1), bytes - 1, bytes - 1};
    enum bsw_status status =
        bsw_query_unpack(manifest, QUERY_BITS, &message, NULL, 0, &batch, &is_last, &err);
    FUZZ_REQUIRE(status <= BSW_ERROR_SELF_CHECK);
    if (status == BSW_OK) sum += touch(manifest, &batch);
    bsw_buffer_deinit(&message);
    return 0;
}

static void put_batch(uint32_t num_queries, unsigned char pick, fuzz_put_fn put, void *context)
{
    Bsw__Batch header = BSW__BATCH__INIT;
    struct bsw_manifest manifest;
    unsigned char seed[1024] = {pick};
    seed_manifest(pick ? &bsw_codec_raw : &bsw_codec_xfbq, 1, &manifest);
    size_t payload = bsw_query_payload_bytes(&manifest, QUERY_BITS, num_queries);
    header.num_queries = num_queries;
    header.payload_bytes = payload;
    uint32_t head_bytes = (uint32_t)bsw__batch__pack(&header, seed + 9);
    memcpy(seed + 1, &head_bytes, 4);
    put(context, seed, 1 + 8 + (head_bytes + 7) / 8 * 8 + payload);
    bsw_manifest_deinit(&manifest);
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    const struct bsw_error why = {BSW_ERROR_IO, 0, "disk full"};
    for (uint32_t num_queries = 1; num_queries <= 3; num_queries++) {
        put_batch(num_queries, 0, put, context);
        put_batch(num_queries, 1, put, context);
    }
    for (int i = 0; i < 2; i++) {
        struct bsw_buffer message = {0}, seed = {0};
        FUZZ_REQUIRE(bsw_query_pack_end(i ? BSW_ERROR_IO : BSW_OK, &why, &message, NULL) == BSW_OK);
        FUZZ_REQUIRE(bsw_buffer_append(&seed, "", 1, NULL) == BSW_OK);
        FUZZ_REQUIRE(bsw_buffer_append(&seed, message.data, message.bytes, NULL) == BSW_OK);
        put(context, seed.data, seed.bytes);
        bsw_buffer_deinit(&message);
        bsw_buffer_deinit(&seed);
    }
}
