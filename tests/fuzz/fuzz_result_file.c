// SPDX-License-Identifier: Apache-2.0
// Result and ground-truth files: big-ann's two forms, .ivecs, .ibin and .npz; the first byte of an
// input picks the name, and whether it is also read as a file.
#include <stdlib.h>
#include <string.h>

#include "common/files/npz_file.h"
#include "common/files/result_file.h"
#include "tests/fuzz/harness.h"

static const char *const names[] = {"result", "result.ivecs", "result.ibin", "result.npz"};

static void check(const struct bsw_results *results, int are_ids, size_t bytes)
{
    unsigned __int128 places = (unsigned __int128)results->num_queries * results->k;
    FUZZ_REQUIRE(results->num_queries >= 1 && results->k >= 1 && results->ids);
    FUZZ_REQUIRE(places <= bytes && (results->values != NULL) == !are_ids);
    for (size_t i = 0; i < (size_t)places; i++) {
        FUZZ_REQUIRE(results->ids[i] >= -1);
        if (results->values) FUZZ_REQUIRE(results->values[i] == results->values[i]);
    }
}

// A file of the same bytes gives the same.
static void read_file(const char *name, const uint8_t *data, size_t bytes)
{
    struct bsw_results parsed, read;
    struct bsw_error err, file_err;
    const char *path = fuzz_file(name, data, bytes);
    enum bsw_status status = bsw_results_parse(path, data, bytes, &parsed, &err);
    FUZZ_REQUIRE(bsw_results_read(path, &read, &file_err) == status);
    if (status != BSW_OK) FUZZ_REQUIRE(strcmp(err.message, file_err.message) == 0);
    FUZZ_REQUIRE(read.num_queries == parsed.num_queries && read.k == parsed.k);
    bsw_results_deinit(&parsed);
    bsw_results_deinit(&read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct bsw_results parsed;
    struct bsw_error err;
    if (bytes < 1) return 0;
    int which = data[0] % 4;
    enum bsw_status status = bsw_results_parse(names[which], data + 1, bytes - 1, &parsed, &err);
    if (fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA)))
        check(&parsed, which == 1 || which == 2, bytes);
    bsw_results_deinit(&parsed);
    if (data[0] < 16) read_file(names[which], data + 1, bytes - 1);
    return 0;
}

// Header, ids 0, 1, 2, ..., values 0.5 of them.
static size_t make_big_ann(int is_wide, unsigned char *out)
{
    size_t at = 0;
    uint64_t head[2] = {2, 3};
    uint32_t narrow[2] = {2, 3};
    out[at++] = 0;
    memcpy(out + at, is_wide ? (void *)head : (void *)narrow, is_wide ? 16 : 8);
    at += is_wide ? 16 : 8;
    for (uint64_t id = 0; id < 6; id++, at += is_wide ? 8 : 4)
        memcpy(out + at, &id, is_wide ? 8 : 4);
    for (int i = 0; i < 6; i++, at += 4) memcpy(out + at, &(float){0.5f * (float)i}, 4);
    return at;
}

static size_t make_npz(unsigned char *out)
{
    struct bsw_result_layout layout;
    if (!bsw_result_layout_make("result.npz", 1, 3, 0, &layout)) return 0;
    struct bsw_npz_frame frame = {.layout = &layout};
    bsw_npz_frame_begin(&frame);
    bsw_npz_frame_end(&frame); // of no matter what checksums
    memset(out, 0, 1 + (size_t)layout.file_bytes);
    out[0] = 3;
    memcpy(out + 1, frame.before, sizeof frame.before);
    memcpy(out + 1 + BSW_NPZ_HEAD_BYTES + 12, frame.between, sizeof frame.between);
    memcpy(out + 1 + layout.file_bytes - BSW_NPZ_TAIL_BYTES, frame.behind, sizeof frame.behind);
    return 1 + (size_t)layout.file_bytes;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    static const int32_t ivecs[] = {3, 10, 11, 12, 3, 20, 21, -1};
    unsigned char seed[1024];
    put(context, seed, make_big_ann(0, seed));
    put(context, seed, make_big_ann(1, seed));
    seed[0] = 1;
    memcpy(seed + 1, ivecs, sizeof ivecs);
    put(context, seed, 1 + sizeof ivecs);
    const uint32_t ibin[] = {2, 2, 10, 11, 12, 13};
    seed[0] = 2;
    memcpy(seed + 1, ibin, sizeof ibin);
    put(context, seed, 1 + sizeof ibin);
    put(context, seed, make_npz(seed));
}
