// SPDX-License-Identifier: Apache-2.0
// Damage to shard files that are as the manifest has them: every bit of a small one, random bits of
// a larger one, blocks that are swapped, dropped, doubled or of another build. All of it is
// refused, and the block that is damaged is named.
//
// usage: check_damage BITSWEEP_BINARY; FAULT_FLIPS random flips (1,000), FAULT_SEED
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/files/shard_file.h"
#include "shard/codecs/codec.h"
#include "tests/faults/fault_tools.h"

static const char *program;

// ---- reading ----

// Every block of a shard.
static enum bsw_status read_shard(const struct bsw_manifest *manifest, const char *folder,
                                  uint32_t shard, struct bsw_error *err)
{
    static struct bsw_buffer block;
    struct bsw_shard_file file;
    BSW_TRY(bsw_shard_file_open(manifest, folder, shard, &file, err));
    enum bsw_status status = BSW_OK;
    for (uint32_t b = 0; b < file.shape.num_blocks && status == BSW_OK; b++) {
        status = bsw_buffer_reserve(&block, bsw_shard_block_bytes(&file.shape, b), err);
        if (status == BSW_OK) status = bsw_shard_file_read_block(&file, b, block.data, err);
    }
    bsw_shard_file_close(&file);
    return status;
}

// The clause of the message for damage at this byte.
static void expected_clause(const struct bsw_shard_shape *shape, uint64_t byte, char *out,
                            size_t capacity)
{
    if (byte < 8) {
        snprintf(out, capacity, "is no bitsweep shard");
        return;
    }
    snprintf(out, capacity,
             byte < BSW_SHARD_HEADER_BYTES ? "header is corrupt" : "footer is corrupt");
    for (uint32_t b = 0; b < shape->num_blocks; b++) {
        uint64_t first = bsw_shard_block_offset(shape, b);
        if (byte >= first && byte < first + bsw_shard_block_bytes(shape, b))
            snprintf(out, capacity, "block %u of %u ", b, shape->num_blocks);
    }
}

struct shard {
    struct bsw_manifest manifest;
    struct bsw_shard_shape shape;
    char folder[256], path[BSW_PATH_BYTES];
    struct bsw_buffer file;
    int fd;
};

static void open_shard(const char *folder, uint32_t index, struct shard *out)
{
    struct bsw_error err;
    memset(out, 0, sizeof *out);
    snprintf(out->folder, sizeof out->folder, "%s", fault_path(folder));
    FAULT_REQUIRE(bsw_manifest_read(out->folder, &out->manifest, &err) == BSW_OK, "%s",
                  err.message);
    bsw_shard_shape_init(&out->shape, &out->manifest, index);
    FAULT_REQUIRE(bsw_shard_path(out->path, out->folder, index, out->manifest.num_shards, ".codes",
                                 &err) == BSW_OK,
                  "%s", err.message);
    fault_load(out->path, &out->file);
    out->fd = open(out->path, O_RDWR | O_CLOEXEC);
    FAULT_REQUIRE(out->fd >= 0, "%s", out->path);
    FAULT_REQUIRE(read_shard(&out->manifest, out->folder, index, &err) == BSW_OK, "%s",
                  err.message);
}

static void close_shard(struct shard *shard)
{
    close(shard->fd);
    bsw_buffer_deinit(&shard->file);
    bsw_manifest_deinit(&shard->manifest);
}

static void put(const struct shard *shard, uint64_t offset, const void *bytes, size_t count)
{
    FAULT_REQUIRE(pwrite(shard->fd, bytes, count, (off_t)offset) == (ssize_t)count, "%s",
                  shard->path);
}

// ---- bits ----

static void flip_bit(const struct shard *shard, uint32_t index, uint64_t bit)
{
    struct bsw_error err = {0};
    char clause[64], what[64];
    unsigned char was = shard->file.data[bit / 8], is = (unsigned char)(was ^ 1u << bit % 8);
    snprintf(what, sizeof what, "bit %llu flipped", (unsigned long long)bit);
    put(shard, bit / 8, &is, 1);
    fault_check_error(read_shard(&shard->manifest, shard->folder, index, &err), &err, what);
    expected_clause(&shard->shape, bit / 8, clause, sizeof clause);
    FAULT_REQUIRE(strstr(err.message, shard->path) && strstr(err.message, clause), "%s: %s", what,
                  err.message);
    put(shard, bit / 8, &was, 1);
}

static uint64_t flip_every_bit(const char *folder)
{
    struct shard shard;
    open_shard(folder, 0, &shard);
    uint64_t bits = shard.file.bytes * 8;
    for (uint64_t bit = 0; bit < bits; bit++) flip_bit(&shard, 0, bit);
    close_shard(&shard);
    return bits;
}

static void flip_random_bits(const char *folder, uint64_t count, struct fault_random *random)
{
    struct shard shard;
    open_shard(folder, 0, &shard);
    FAULT_REQUIRE(shard.shape.num_blocks >= 3, "%u blocks", shard.shape.num_blocks);
    for (uint64_t i = 0; i < count; i++)
        flip_bit(&shard, 0, fault_draw(random, shard.file.bytes * 8));
    printf("random bits of a file of %zu bytes, %u blocks: %llu flipped, all refused, the block "
           "named\n",
           shard.file.bytes, shard.shape.num_blocks, (unsigned long long)count);
    close_shard(&shard);
}

// ---- blocks ----

static uint64_t num_cases;

// The shard is refused, with what it says; then it is as it was.
static void expect_refusal(const struct shard *shard, const char *what, const char *clause)
{
    struct bsw_error err = {0};
    fault_check_error(read_shard(&shard->manifest, shard->folder, 0, &err), &err, what);
    FAULT_REQUIRE(strstr(err.message, clause), "%s: %s", what, err.message);
    fault_store(shard->path, shard->file.data, shard->file.bytes);
    FAULT_REQUIRE(read_shard(&shard->manifest, shard->folder, 0, &err) == BSW_OK, "%s: %s", what,
                  err.message);
    num_cases++;
}

static const unsigned char *block_of(const struct shard *shard, uint32_t block)
{
    return shard->file.data + bsw_shard_block_offset(&shard->shape, block);
}

static void swap_blocks(const struct shard *shard)
{
    uint32_t num_full = shard->shape.num_blocks - 1; // the last is shorter
    size_t bytes = bsw_shard_block_bytes(&shard->shape, 0);
    for (uint32_t a = 0; a < num_full; a++) {
        for (uint32_t b = a + 1; b < num_full; b++) {
            char clause[64];
            snprintf(clause, sizeof clause, "block %u of ", a);
            put(shard, bsw_shard_block_offset(&shard->shape, a), block_of(shard, b), bytes);
            put(shard, bsw_shard_block_offset(&shard->shape, b), block_of(shard, a), bytes);
            expect_refusal(shard, "swapped", clause);
        }
    }
}

// Without a block the file is shorter, with one twice it is longer; filled up to its size, what
// moved is found.
static void drop_and_double_blocks(const struct shard *shard)
{
    static struct bsw_buffer changed;
    size_t bytes = bsw_shard_block_bytes(&shard->shape, 0), size = shard->file.bytes;
    for (uint32_t b = 0; b + 1 < shard->shape.num_blocks; b++) {
        size_t first = (size_t)bsw_shard_block_offset(&shard->shape, b), behind = first + bytes;
        char clause[64];
        snprintf(clause, sizeof clause, "block %u of ", b);
        FAULT_REQUIRE(bsw_buffer_reserve(&changed, size + bytes, NULL) == BSW_OK, "no memory");
        memcpy(changed.data, shard->file.data, behind);
        memcpy(changed.data + behind, shard->file.data + first, size - first);
        fault_store(shard->path, changed.data, size + bytes);
        expect_refusal(shard, "doubled", "the manifest says");
        memcpy(changed.data + first, shard->file.data + behind, size - behind);
        fault_store(shard->path, changed.data, size - bytes);
        expect_refusal(shard, "dropped", "the manifest says");
        memcpy(changed.data + size - bytes - 64, shard->file.data + size - bytes - 64, bytes + 64);
        fault_store(shard->path, changed.data, size);
        expect_refusal(shard, "dropped and filled up", clause);
    }
    fault_store(shard->path, shard->file.data, size);
    for (size_t extra = 1; extra <= 4096; extra *= 4) {
        FAULT_REQUIRE(ftruncate(shard->fd, (off_t)(size + extra)) == 0, "%s", shard->path);
        expect_refusal(shard, "appended", "the manifest says");
    }
}

// Parts of a build of the same shape, from other rows.
static void mix_builds(const struct shard *shard, const struct shard *other)
{
    const struct bsw_shard_shape *shape = &shard->shape;
    FAULT_REQUIRE(other->file.bytes == shard->file.bytes, "%zu bytes", other->file.bytes);
    for (uint32_t b = 0; b < shape->num_blocks; b++) {
        char clause[64];
        snprintf(clause, sizeof clause, "block %u of ", b);
        put(shard, bsw_shard_block_offset(shape, b), block_of(other, b),
            bsw_shard_block_bytes(shape, b));
        expect_refusal(shard, "a block of another build", clause);
    }
    size_t footer = (shape->num_blocks + 2) * sizeof(uint64_t), at = shard->file.bytes - footer;
    put(shard, 0, other->file.data, BSW_SHARD_HEADER_BYTES);
    expect_refusal(shard, "header of another build", "belongs to another build");
    put(shard, at, other->file.data + at, footer);
    expect_refusal(shard, "footer of another build", "footer is corrupt");
    fault_store(shard->path, other->file.data, other->file.bytes);
    expect_refusal(shard, "file of another build", "belongs to another build");
}

static void mix_shards(const struct shard *shard, const struct shard *next)
{
    fault_store(shard->path, next->file.data, next->file.bytes);
    struct bsw_error err = {0};
    fault_check_error(read_shard(&shard->manifest, shard->folder, 0, &err), &err, "next shard");
    fault_store(shard->path, shard->file.data, shard->file.bytes);
    unlink(shard->path);
    expect_refusal(shard, "no file", "missing from the index");
}

static void change_blocks(void)
{
    struct shard shard, other, next;
    open_shard("large", 0, &shard);
    open_shard("other", 0, &other);
    open_shard("large", 1, &next);
    swap_blocks(&shard);
    drop_and_double_blocks(&shard);
    mix_builds(&shard, &other);
    mix_shards(&shard, &next);
    printf("blocks swapped, dropped, doubled, appended, of another build or shard: %llu, all "
           "refused\n",
           (unsigned long long)num_cases);
    close_shard(&shard);
    close_shard(&other);
    close_shard(&next);
}

// ---- making ----

static void make_index(const char *base, const char *name, const char *options)
{
    char line[1024], folder[256];
    snprintf(folder, sizeof folder, "%s", fault_path(name));
    snprintf(line, sizeof line, "%s encode --base %s --index %s --threads 1 --quiet %s", program,
             base, folder, options);
    fault_run_good(line);
}

int main(int argc, char **argv)
{
    static const char *const small[][2] = {{"xfbq", "--codec xfbq --bits 2 --metric cosine"},
                                           {"saq", "--codec saq --bits 3 --metric l2"},
                                           {"raw", "--codec raw --metric ip"}};
    struct fault_random random = {fault_count("FAULT_SEED", 1), 0};
    FAULT_REQUIRE(argc == 2, "usage: check_damage BITSWEEP_BINARY");
    program = argv[1];
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++) {
        make_index("synth:count=70,dims=8,type=uint8,seed=3", small[i][0], small[i][1]);
        bits += flip_every_bit(small[i][0]);
    }
    printf("every bit of small files of %zu codecs: %llu flipped, all refused, the block named\n",
           sizeof small / sizeof small[0], (unsigned long long)bits);
    const char *large = "--codec xfbq --bits 8 --metric cosine --shards 2";
    make_index("synth:count=100K,dims=64,seed=3", "large", large);
    make_index("synth:count=100K,dims=64,seed=4", "other", large);
    flip_random_bits("large", fault_count("FAULT_FLIPS", 1000), &random);
    change_blocks();
    return 0;
}
