// SPDX-License-Identifier: Apache-2.0
// Shard files. The first byte of an input picks codec and way:
//   0  the rest is the file
//   1  a good file, with the rest as changes of it: uint16 place, uint8 what is added
//   2  the rest is the blocks of a file whose checksums are all made to fit, as who means harm does
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

#include "shard/codecs/codec.h"
#include "tests/fuzz/seed_manifest.h"

static struct bsw_manifest manifests[BSW_NUM_CODECS];
static struct bsw_buffer files[BSW_NUM_CODECS];

#define NAME "shard-00000-of-00001.codes"

// Seals blocks that are in place, in the file and in the manifest, and reads the file back.
static void seal(struct bsw_manifest *manifest, struct bsw_buffer *file)
{
    struct bsw_shard_shape shape;
    uint64_t digest;
    bsw_shard_shape_init(&shape, manifest, 0);
    FUZZ_REQUIRE(shape.num_blocks == 1);
    digest = XXH3_64bits(file->data + BSW_SHARD_HEADER_BYTES, bsw_shard_block_bytes(&shape, 0));
    const char *path = fuzz_file(NAME, file->data, file->bytes);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    FUZZ_REQUIRE(fd >= 0);
    FUZZ_REQUIRE(bsw_shard_file_seal(fd, path, &shape, manifest, 0, &digest,
                                     &manifest->shards[0].codes_digest, NULL) == BSW_OK);
    FUZZ_REQUIRE(pread(fd, file->data, file->bytes, 0) == (ssize_t)file->bytes);
    close(fd);
}

static void make_files(void)
{
    for (int codec = 0; codec < BSW_NUM_CODECS; codec++) {
        struct bsw_manifest *manifest = &manifests[codec];
        struct bsw_buffer *file = &files[codec];
        seed_manifest(bsw_codecs[codec], 1, manifest);
        size_t bytes = (size_t)manifest->shards[0].codes_bytes;
        FUZZ_REQUIRE(bsw_buffer_reserve(file, bytes, NULL) == BSW_OK);
        file->bytes = bytes;
        memset(file->data, 0, file->bytes);
        seal(manifest, file);
    }
}

// Reads the one block of a file that is open, and looks at the mask of its last bundle.
static enum bsw_status read_block(const struct bsw_shard_file *file, struct bsw_error *err)
{
    struct bsw_code_arrays arrays;
    uint64_t rows = file->shape.num_rows, rest = rows % BSW_BUNDLE_ROWS;
    size_t num_bundles = bsw_shard_block_bundles(&file->shape, 0);
    uint64_t *block;
    FUZZ_REQUIRE(bsw_allocate(&block, bsw_shard_block_bytes(&file->shape, 0), 1, "block", NULL) ==
                 BSW_OK);
    enum bsw_status status = bsw_shard_file_read_block(file, 0, block, err);
    bsw_code_arrays_in_block(&file->shape, block, num_bundles, &arrays);
    if (status == BSW_OK) FUZZ_REQUIRE(arrays.masks[num_bundles - 1] >> rest == 0);
    bsw_free(&block);
    return status;
}

// 1 if the file is taken, with all its blocks.
static int is_taken(const struct bsw_manifest *manifest, const void *data, size_t bytes)
{
    struct bsw_shard_file file;
    struct bsw_error err;
    const char *path = fuzz_file(NAME, data, bytes);
    enum bsw_status status = bsw_shard_file_open(manifest, fuzz_folder(), 0, &file, &err);
    if (status == BSW_OK) {
        status = read_block(&file, &err);
        bsw_shard_file_close(&file);
    }
    if (fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA))) return 1;
    FUZZ_REQUIRE(strstr(err.message, path) != NULL);
    return 0;
}

static void take_changed(int codec, const uint8_t *data, size_t bytes)
{
    const struct bsw_buffer *good = &files[codec];
    unsigned char *file = malloc(good->bytes);
    FUZZ_REQUIRE(file != NULL);
    memcpy(file, good->data, good->bytes);
    for (; bytes >= 3; data += 3, bytes -= 3) {
        size_t place = (size_t)(data[0] | data[1] << 8) % good->bytes;
        file[place] = (unsigned char)(file[place] + data[2]);
    }
    int is_same = memcmp(file, good->data, good->bytes) == 0;
    FUZZ_REQUIRE(is_taken(&manifests[codec], file, good->bytes) == is_same);
    free(file);
}

static void take_sealed(int codec, const uint8_t *data, size_t bytes)
{
    struct bsw_manifest manifest = manifests[codec];
    struct bsw_shard_entry entry = manifest.shards[0];
    struct bsw_buffer file = {0};
    FUZZ_REQUIRE(bsw_buffer_append(&file, files[codec].data, files[codec].bytes, NULL) == BSW_OK);
    size_t room = file.bytes - BSW_SHARD_HEADER_BYTES;
    memcpy(file.data + BSW_SHARD_HEADER_BYTES, data, bytes < room ? bytes : room);
    manifest.shards = &entry;
    seal(&manifest, &file);
    (void)is_taken(&manifest, file.data, file.bytes);
    bsw_buffer_deinit(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (!files[0].data) make_files();
    if (bytes < 1) return 0;
    int codec = data[0] % BSW_NUM_CODECS, way = data[0] / BSW_NUM_CODECS % 3;
    if (way == 0) {
        int is_same =
            bytes - 1 == files[codec].bytes && memcmp(data + 1, files[codec].data, bytes - 1) == 0;
        FUZZ_REQUIRE(is_taken(&manifests[codec], data + 1, bytes - 1) == is_same);
    } else if (way == 1) {
        take_changed(codec, data + 1, bytes - 1);
    } else {
        take_sealed(codec, data + 1, bytes - 1);
    }
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    unsigned char seed[8192];
    make_files();
    for (int codec = 0; codec < BSW_NUM_CODECS; codec++) {
        const struct bsw_buffer *file = &files[codec];
        FUZZ_REQUIRE(file->bytes < sizeof seed);
        seed[0] = (unsigned char)codec;
        memcpy(seed + 1, file->data, file->bytes);
        put(context, seed, file->bytes + 1);
        seed[0] = (unsigned char)(codec + BSW_NUM_CODECS);
        memcpy(seed + 1, "\0\x10\x01\x08\0\xff", 6);
        put(context, seed, 7);
        seed[0] = (unsigned char)(codec + 2 * BSW_NUM_CODECS);
        memset(seed + 1, 0x55, file->bytes - BSW_SHARD_HEADER_BYTES);
        put(context, seed, file->bytes - BSW_SHARD_HEADER_BYTES + 1);
        memset(seed + 1, 0, file->bytes - BSW_SHARD_HEADER_BYTES);
        put(context, seed, file->bytes - BSW_SHARD_HEADER_BYTES + 1);
        bsw_manifest_deinit(&manifests[codec]);
        bsw_buffer_deinit(&files[codec]);
    }
}
