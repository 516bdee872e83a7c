// SPDX-License-Identifier: Apache-2.0
// Two shard files of 35 rows each, and ways to read and to damage them.
#ifndef BITSWEEP_TESTS_SMALL_SHARDS_H
#define BITSWEEP_TESTS_SMALL_SHARDS_H

#include "shard/codecs/codec.h"
#include "small_index.h"

#include <xxhash.h>

#include "common/base/arithmetic.h"
#include "common/rows/synth.h"
#include "temporary_folder.h"

enum { ROWS = 70, DIMS = 17 };

static struct bsw_error err;

static inline const char *numbered(const char *name, unsigned shard, unsigned num_shards)
{
    char text[64];
    snprintf(text, sizeof text, "shard-%05u-of-%05u%s", shard, num_shards, name);
    return path_of(text);
}

// 70 rows in 2 shards of 35: two bundles each, the second nearly empty.
static inline struct small_index small(const struct bsw_codec *codec)
{
    struct small_index what;
    int is_raw = codec == &bsw_codec_raw;
    memset(&what, 0, sizeof what);
    what.source = path_of(is_raw ? "base.u8bin" : "base.fbin");
    what.codec = codec;
    what.metric = is_raw ? BSW_METRIC_L2 : BSW_METRIC_COSINE;
    what.bits = 3;
    what.segments = "8x4,9x2";
    what.num_shards = 2;
    return what;
}

static inline void write_source(const char *name, uint32_t num_rows, uint32_t dims)
{
    struct bsw_synth synth;
    memset(&synth, 0, sizeof synth);
    synth.count = num_rows;
    synth.dims = dims;
    synth.seed = 3;
    synth.clusters = 5;
    float *rows = (float *)allocate_or_fail((size_t)num_rows * dims, sizeof *rows);
    bsw_synth_rows(&synth, 0, num_rows, rows);
    write_fbin(path_of(name), rows, num_rows, dims);
    bsw_free(&rows);
}

static inline int make_files(void **state)
{
    if (make_temporary_folder(state) != 0) return -1;
    write_source("base.fbin", ROWS, DIMS);
    unsigned char bytes[8 + ROWS * DIMS] = {ROWS, 0, 0, 0, DIMS, 0, 0, 0};
    for (size_t i = 8; i < sizeof bytes; i++) bytes[i] = (unsigned char)bsw_hash(i);
    write_test_file("base.u8bin", bytes, sizeof bytes);
    return 0;
}

static inline size_t read_file(const char *path, unsigned char **out)
{
    struct bsw_buffer buffer;
    memset(&buffer, 0, sizeof buffer);
    assert_ok(bsw_file_read_all(path, 64 << 20, &buffer, &err), &err);
    *out = buffer.data;
    return buffer.bytes;
}

static inline void write_byte(const char *path, uint64_t offset, unsigned char byte)
{
    int fd;
    assert_ok(bsw_file_open_write(path, &fd, &err), &err);
    assert_ok(bsw_file_write_at(fd, path, offset, &byte, 1, &err), &err);
    bsw_file_close(&fd);
}

// Opens a shard and reads all its blocks.
static inline enum bsw_status read_shard(const struct bsw_manifest *manifest, uint32_t shard)
{
    struct bsw_shard_file file;
    static unsigned char block[2 << 20];
    err.message[0] = '\0';
    BSW_TRY(bsw_shard_file_open(manifest, temporary_folder, shard, &file, &err));
    enum bsw_status status = BSW_OK;
    for (uint32_t b = 0; b < file.shape.num_blocks && status == BSW_OK; b++) {
        assert_true(bsw_shard_block_bytes(&file.shape, b) <= sizeof block);
        status = bsw_shard_file_read_block(&file, b, block, &err);
    }
    bsw_shard_file_close(&file);
    return status;
}

static inline void assert_bad(enum bsw_status status, const char *path, const char *clause)
{
    assert_int_equal(status, BSW_ERROR_BAD_DATA);
    if (strncmp(err.message, path, strlen(path)) != 0 || !strstr(err.message, clause))
        fail_msg("'%s' is not about %s or lacks '%s'", err.message, path, clause);
}

#endif
