// SPDX-License-Identifier: Apache-2.0
// Answers of ranks to rank 0: candidates, survivors. The first byte of an input picks
// which, and how they are merged; the rest is the payload of the one rank, two shards for three
// queries.
#include <stdlib.h>
#include <string.h>

#include "coordinator/search/batch_merge.h"
#include "shard/codecs/codec.h"
#include "tests/fuzz/seed_manifest.h"

enum { NUM_QUERIES = 3, K = 2 };

static struct bsw_manifest manifest;
static struct bsw_assignment table;

static const struct bsw_search_settings settings = {
    .query_bits = 3, .k = K, .keep = 4, .num_threads = 1, .level = BSW_CPU_REFERENCE};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct bsw_value_terms terms[NUM_QUERIES];
    struct bsw_batch_merge merge;
    struct bsw_search_settings how = settings;
    struct bsw_error err;
    struct bsw_cut cuts[NUM_QUERIES];
    uint32_t limits[NUM_QUERIES];
    int64_t ids[NUM_QUERIES * K];
    float values[NUM_QUERIES * K];
    if (bytes < 1) return 0;
    if (!manifest.shards) {
        seed_manifest(&bsw_codec_xfbq, 2, &manifest);
        if (bsw_assignment_make(1, 2, &table, NULL) != BSW_OK) abort();
    }
    how.is_ladder = data[0] >> 2 & 1;
    how.is_exact = data[0] >> 3 & 1;
    bsw_batch_merge_init(&merge, &manifest, &how, &table);
    struct bsw_buffer payload = {fuzz_exact(data + 1, bytes - 1), bytes - 1, bytes - 1};
    enum bsw_status status;
    if (data[0] % 2 == 1) {
        const struct bsw_scan_round round =
            data[0] & 2 ? bsw_first_round(&how) : bsw_last_round(&how, NULL);
        status = bsw_merge_candidates(&merge, &payload, NUM_QUERIES, &round, cuts, &err);
        if (status == BSW_OK && data[0] & 2) bsw_limits_of_cuts(&merge, cuts, NUM_QUERIES, limits);
    } else {
        status = bsw_merge_survivors(&merge, &payload, NUM_QUERIES, terms, ids, values, &err);
    }
    (void)fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_PEER));
    bsw_buffer_deinit(&payload);
    bsw_batch_merge_deinit(&merge);
    return 0;
}

// Two shards, three queries, two entries each.
static size_t make_lists(unsigned char *out)
{
    size_t at = 1;
    for (uint32_t shard = 0; shard < 2; shard++) {
        for (uint32_t q = 0; q < NUM_QUERIES; q++) {
            const uint64_t count = 2;
            memcpy(out + at, &count, sizeof count);
            at += sizeof count;
            for (uint32_t i = 0; i < 2; i++, at += sizeof(struct bsw_ranked)) {
                const struct bsw_ranked entry = bsw_ranked_of_key(9 - i, i + 1, 45 * shard + i);
                memcpy(out + at, &entry, sizeof entry);
            }
        }
    }
    return at;
}

static size_t make_survivors(unsigned char *out)
{
    size_t at = 1;
    for (uint32_t shard = 0; shard < 2; shard++) {
        const uint64_t counts[NUM_QUERIES] = {1, 2, 0};
        memcpy(out + at, counts, sizeof counts);
        at += sizeof counts;
        for (uint32_t i = 0; i < 3; i++, at += sizeof(struct bsw_survivor)) {
            const struct bsw_survivor survivor = {
                .row = 45 * shard + i, .score = 7 + i, .value = 0.5f};
            memcpy(out + at, &survivor, sizeof survivor);
        }
    }
    return at;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    unsigned char seed[1024];
    memset(seed, 0, sizeof seed);
    seed[0] = 2; // a past finding: no query has a survivor
    put(context, seed, 1 + 2 * NUM_QUERIES * sizeof(uint64_t));
    for (unsigned char way = 1; way < 16; way = (unsigned char)(way + 2)) {
        seed[0] = way;
        put(context, seed, make_lists(seed));
        seed[0] = (unsigned char)(way + 1);
        put(context, seed, make_survivors(seed));
    }
}
