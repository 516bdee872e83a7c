// SPDX-License-Identifier: Apache-2.0
// Shard files: what was encoded comes back; every damaged bit, wrong size and foreign file is found
// and named.
#include "small_shards.h"

#include "shard/host/resident_shard.h"

// ---- what was encoded comes back ----

static void assert_same_arrays(const struct bsw_shard_shape *shape,
                               const struct bsw_code_arrays *block, size_t num_bundles,
                               const struct bsw_code_arrays *all, size_t bundle)
{
    size_t rows = num_bundles * 32, first = bundle * 32;
    for (uint32_t s = 0; s < shape->layout.num_segments; s++) {
        size_t words = bsw_segment_bundle_words(&shape->layout.segments[s]);
        assert_memory_equal(block->planes[s], all->planes[s] + bundle * words,
                            num_bundles * words * sizeof(uint32_t));
    }
    assert_memory_equal(block->masks, all->masks + bundle, num_bundles * sizeof(uint32_t));
    assert_memory_equal(block->row_digests, all->row_digests + bundle,
                        num_bundles * sizeof(uint64_t));
    if (shape->has_bytes)
        assert_memory_equal(block->offsets, all->offsets + first, rows * sizeof(int32_t));
    if (!shape->has_affine) return;
    assert_memory_equal(block->scales, all->scales + first, rows * sizeof(uint16_t));
    assert_int_equal(shape->has_biases, block->biases != NULL);
    assert_int_equal(shape->has_biases, all->biases != NULL);
    if (!shape->has_biases) return;
    assert_memory_equal(block->biases, all->biases + first, rows * sizeof(float));
}

// Every block encoded once more, against the file and against the shard in memory.
static void check_shard(const struct small_index *what, const struct bsw_manifest *manifest,
                        uint32_t shard)
{
    bsw_vectors *vectors;
    bsw_block_encoder *encoder;
    struct bsw_shard_file file;
    struct bsw_resident_shard resident;
    struct bsw_block_result result;
    struct bsw_code_arrays arrays;
    assert_ok(bsw_vectors_open(what->source, BSW_ALL_ROWS, &vectors, &err), &err);
    assert_ok(bsw_block_encoder_create(manifest, vectors, BSW_CPU_REFERENCE, &encoder, &err), &err);
    assert_ok(bsw_shard_file_open(manifest, temporary_folder, shard, &file, &err), &err);
    assert_ok(bsw_resident_shard_load(manifest, temporary_folder, shard, 0, &resident, &err), &err);
    assert_int_equal(file.shape.num_rows, manifest->shards[shard].num_rows);
    for (uint32_t b = 0; b < file.shape.num_blocks; b++) {
        size_t bytes = bsw_shard_block_bytes(&file.shape, b);
        void *block = allocate_or_fail(bytes, 1);
        assert_ok(bsw_shard_file_read_block(&file, b, block, &err), &err);
        assert_ok(bsw_block_encode(encoder, &file.shape, b, NULL, what->drops_bad_rows, NULL,
                                   &result, &err),
                  &err);
        assert_memory_equal(block, result.bytes, bytes);
        size_t num_bundles = bsw_shard_block_bundles(&file.shape, b);
        bsw_code_arrays_in_block(&file.shape, block, num_bundles, &arrays);
        assert_same_arrays(&file.shape, &arrays, num_bundles, &resident.arrays,
                           (size_t)b * file.shape.block_bundles);
        bsw_free(&block);
    }
    bsw_resident_shard_unload(&resident);
    bsw_shard_file_close(&file);
    bsw_block_encoder_destroy(&encoder);
    bsw_vectors_close(&vectors);
}

UNIT_TEST(blocks_come_back)
{
    struct bsw_manifest manifest;
    for (int codec = 0; codec < BSW_NUM_CODECS; codec++) {
        struct small_index what = small(bsw_codecs[codec]);
        make_small_index(&what, temporary_folder, &manifest);
        for (uint32_t shard = 0; shard < 2; shard++) check_shard(&what, &manifest, shard);
        bsw_manifest_deinit(&manifest);
    }
    // A block holds 2 bundles of 256 KiB and a little: 9 bundles are five of them.
    struct small_index wide = {.source = "synth:count=270,dims=8192",
                               .codec = &bsw_codec_xfbq,
                               .metric = BSW_METRIC_COSINE,
                               .bits = 8};
    make_small_index(&wide, temporary_folder, &manifest);
    struct bsw_shard_shape shape;
    bsw_shard_shape_init(&shape, &manifest, 0);
    assert_int_equal(shape.num_blocks, 5);
    check_shard(&wide, &manifest, 0);
    bsw_manifest_deinit(&manifest);
}

// The bytes by the words of shard_file.h alone: 2 bundles, segments of 8 x 4 and 9 x 2 bits.
UNIT_TEST(bytes_lie_where_the_header_says)
{
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_saq);
    struct plain_shard plain;
    make_small_index(&what, temporary_folder, &manifest);
    read_plain_shard(&manifest, temporary_folder, 1, &plain);
    unsigned char *bytes, *source;
    size_t size = read_file(numbered(".codes", 1, 2), &bytes);
    read_file(what.source, &source);
    const size_t planes = 2 * (4 + 2) * 32 * 4, scales = planes, tails = scales + 128,
                 biases = tails + 128, masks = biases + 256, digests = masks + 8,
                 block_bytes = digests + 16, footer = 4096 + block_bytes;
    assert_int_equal(size, footer + 3 * 8);
    const uint64_t expected[] = {XXH3_64bits(bytes, 56), XXH3_64bits(bytes + 4096, block_bytes),
                                 XXH3_64bits(bytes + footer, 16)};
    assert_memory_equal(bytes + 56, expected, 8);
    assert_memory_equal(bytes + footer, expected, 24);
    assert_true(manifest.shards[1].codes_digest == XXH3_64bits(bytes + footer, 24));
    for (size_t row = 0; row < 35; row++) {
        uint16_t half;
        float bias;
        memcpy(&half, bytes + 4096 + scales + 2 * row, 2);
        assert_int_equal(half, plain.scales[row]);
        memcpy(&half, bytes + 4096 + tails + 2 * row, 2);
        assert_int_equal(half, plain.tails[row]);
        memcpy(&bias, bytes + 4096 + biases + 4 * row, 4);
        assert_true(bias == plain.biases[row]);
    }
    const uint32_t all_rows[2] = {0xffffffffu, 7};
    assert_memory_equal(bytes + 4096 + masks, all_rows, 8);
    uint64_t sums[2] = {0};
    for (size_t row = 0; row < 35; row++) // ids begin at 35
        sums[row / 32] += bsw_row_digest(source + 8 + (35 + row) * DIMS * 4, DIMS * 4, 35 + row);
    assert_memory_equal(bytes + 4096 + digests, sums, 16);
    free_plain_shard(&plain);
    bsw_free(&bytes);
    bsw_free(&source);
    bsw_manifest_deinit(&manifest);
}

// The same for raw: 2 bundles of 32 padded dims, offsets of l2, and nothing else.
UNIT_TEST(raw_bytes_lie_where_the_header_says)
{
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_raw);
    make_small_index(&what, temporary_folder, &manifest);
    unsigned char *file, *source;
    size_t size = read_file(numbered(".codes", 1, 2), &file);
    read_file(what.source, &source);
    const size_t offsets = 4096 + 2 * 32 * 32, masks = offsets + 2 * 32 * 4, digests = masks + 8;
    assert_int_equal(size, digests + 16 + 3 * 8);
    for (size_t r = 0; r < 64; r++) {
        const unsigned char *row = r < 35 ? source + 8 + (35 + r) * DIMS : NULL;
        int32_t offset, expected = 0;
        for (size_t i = 0; i < 32; i++) {
            int x = row && i < DIMS ? row[i] : 0;
            size_t place = 4096 + (r / 16 * 8 + i / 4) * 64 + r % 16 * 4 + i % 4;
            assert_int_equal(file[place], x);
            expected += 256 * x - x * x;
        }
        memcpy(&offset, file + offsets + 4 * r, sizeof offset);
        assert_int_equal(offset, expected);
    }
    const uint32_t all_rows[2] = {0xffffffffu, 7};
    assert_memory_equal(file + masks, all_rows, 8);
    uint64_t sums[2] = {0};
    for (size_t row = 0; row < 35; row++)
        sums[row / 32] += bsw_row_digest(source + 8 + (35 + row) * DIMS, DIMS, 35 + row);
    assert_memory_equal(file + digests, sums, 16);
    bsw_free(&file);
    bsw_free(&source);
    bsw_manifest_deinit(&manifest);
}

// A dropped row leaves its place: mask bit 0, digest counted.
UNIT_TEST(dropped_rows_keep_their_place)
{
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_saq);
    struct plain_shard plain;
    float *rows = allocate_or_fail(ROWS * 4, sizeof *rows);
    for (size_t i = 0; i < ROWS * 4; i++) rows[i] = (float)(int64_t)bsw_hash(i) * 0x1p-62f;
    memset(rows + 3 * 4, 0, 4 * sizeof *rows);
    rows[40 * 4 + 2] = __builtin_nanf("");
    rows[69 * 4] = __builtin_inff();
    write_fbin(path_of("holes.fbin"), rows, ROWS, 4);
    what.source = path_of("holes.fbin");
    what.segments = "4x3";
    what.drops_bad_rows = 1;
    make_small_index(&what, temporary_folder, &manifest);
    assert_int_equal(manifest.dropped_rows, 3);
    assert_int_equal(manifest.shards[0].dropped_rows, 1);
    for (uint32_t shard = 0; shard < 2; shard++) {
        read_plain_shard(&manifest, temporary_folder, shard, &plain);
        for (size_t i = 0; i < 35; i++) {
            size_t row = shard * 35 + i;
            assert_int_equal(plain.is_present[i], row != 3 && row != 40 && row != 69);
        }
        check_shard(&what, &manifest, shard);
        free_plain_shard(&plain);
    }
    bsw_free(&rows);
    bsw_manifest_deinit(&manifest);
}

// ---- damage ----

static const char *part_of(size_t offset, size_t size, size_t footer_bytes)
{
    if (offset < 8) return "is no bitsweep shard";
    if (offset < BSW_SHARD_HEADER_BYTES) return "header is corrupt";
    return offset < size - footer_bytes ? "block 0 of 1 (bytes 4096 to " : "footer is corrupt";
}

UNIT_TEST(every_damaged_bit_of_codes_is_found)
{
    struct bsw_manifest manifest;
    for (int codec = 0; codec < BSW_NUM_CODECS; codec++) {
        struct small_index what = small(bsw_codecs[codec]);
        make_small_index(&what, temporary_folder, &manifest);
        const char *path = numbered(".codes", 0, 2);
        unsigned char *bytes;
        size_t size = read_file(path, &bytes);
        for (size_t bit = 0; bit < size * 8; bit++) {
            size_t at = bit / 8;
            write_byte(path, at, (unsigned char)(bytes[at] ^ 1u << bit % 8));
            assert_bad(read_shard(&manifest, 0), path, part_of(at, size, 3 * 8));
            write_byte(path, at, bytes[at]);
        }
        assert_int_equal(read_shard(&manifest, 0), BSW_OK);
        bsw_free(&bytes);
        bsw_manifest_deinit(&manifest);
    }
}

// In a file of five blocks the message names the one, also when the shard is loaded by threads.
UNIT_TEST(a_damaged_block_is_named)
{
    struct bsw_manifest manifest;
    struct bsw_resident_shard resident;
    struct bsw_shard_shape shape;
    struct small_index what = {.source = "synth:count=270,dims=8192",
                               .codec = &bsw_codec_xfbq,
                               .metric = BSW_METRIC_COSINE,
                               .bits = 8};
    make_small_index(&what, temporary_folder, &manifest);
    bsw_shard_shape_init(&shape, &manifest, 0);
    const char *path = numbered(".codes", 0, 1);
    unsigned char *bytes;
    read_file(path, &bytes);
    for (uint32_t trial = 0; trial < 100; trial++) {
        uint32_t block = trial % 5;
        size_t size = bsw_shard_block_bytes(&shape, block);
        size_t at = bsw_shard_block_offset(&shape, block) + bsw_hash2(1, trial) % size;
        char clause[32];
        snprintf(clause, sizeof clause, "block %u of 5", block);
        write_byte(path, at, (unsigned char)(bytes[at] ^ 1u << trial % 8));
        assert_bad(read_shard(&manifest, 0), path, clause);
        enum bsw_status status =
            bsw_resident_shard_load(&manifest, temporary_folder, 0, 0, &resident, &err);
        assert_bad(status, path, clause);
        write_byte(path, at, bytes[at]);
    }
    bsw_free(&bytes);
    bsw_manifest_deinit(&manifest);
}

UNIT_TEST(wrong_sizes_are_refused)
{
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_saq);
    what.copies_vectors = 1;
    make_small_index(&what, temporary_folder, &manifest);
    static const char *const names[2] = {".codes", ".vectors"};
    for (int kind = 0; kind < 2; kind++) {
        const char *path = numbered(names[kind], 1, 2);
        unsigned char *bytes;
        size_t size = read_file(path, &bytes);
        for (size_t length = 0; length < size + 40; length++) {
            if (length == size) continue;
            char opened[BSW_PATH_BYTES], clause[64];
            int fd = -1;
            assert_int_equal(truncate(path, (off_t)length), 0);
            enum bsw_status status = kind == 0 ? read_shard(&manifest, 1)
                                               : bsw_vectors_file_open(&manifest, temporary_folder,
                                                                       1, &fd, opened, &err);
            snprintf(clause, sizeof clause, "%zu bytes, the manifest says %zu", length, size);
            assert_bad(status, path, clause);
            assert_int_equal(fd, -1);
        }
        write_test_file(strrchr(path, '/') + 1, bytes, size);
        bsw_free(&bytes);
    }
    assert_int_equal(read_shard(&manifest, 1), BSW_OK);
    manifest.shards[1].codes_bytes++; // a manifest that disagrees with its own rows
    assert_bad(read_shard(&manifest, 1), numbered(".codes", 1, 2), "does not fit its rows");
    bsw_manifest_deinit(&manifest);
}

// ---- foreign files ----

UNIT_TEST(missing_files_are_named)
{
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_saq);
    char opened[BSW_PATH_BYTES];
    int fd;
    what.copies_vectors = 1;
    make_small_index(&what, temporary_folder, &manifest);
    unlink(numbered(".codes", 1, 2));
    unlink(numbered(".vectors", 0, 2));
    assert_int_equal(read_shard(&manifest, 0), BSW_OK);
    assert_bad(read_shard(&manifest, 1), numbered(".codes", 1, 2), "missing from the index");
    assert_bad(bsw_vectors_file_open(&manifest, temporary_folder, 0, &fd, opened, &err),
               numbered(".vectors", 0, 2), "missing from the index");
    bsw_manifest_deinit(&manifest);
}

static void replace(const char *path, const unsigned char *bytes, size_t size)
{
    write_test_file(strrchr(path, '/') + 1, bytes, size);
}

// Files of the same shape from another seed, and from another place of the same index.
UNIT_TEST(exchanged_shards_are_refused)
{
    struct bsw_manifest first, second;
    struct small_index what = small(&bsw_codec_saq);
    static const char *const names[2] = {".codes", ".vectors"};
    unsigned char *foreign[2], *other[2];
    size_t sizes[2];
    char opened[BSW_PATH_BYTES];
    int fd;
    what.copies_vectors = 1;
    what.seed = 2;
    make_small_index(&what, temporary_folder, &first);
    for (int kind = 0; kind < 2; kind++) read_file(numbered(names[kind], 0, 2), &foreign[kind]);
    bsw_manifest_deinit(&first);
    what.seed = 1;
    make_small_index(&what, temporary_folder, &second);
    for (int kind = 0; kind < 2; kind++)
        sizes[kind] = read_file(numbered(names[kind], 1, 2), &other[kind]);
    const char *codes = numbered(".codes", 0, 2), *vectors = numbered(".vectors", 0, 2);
    replace(codes, foreign[0], sizes[0]);
    assert_bad(read_shard(&second, 0), codes, "belongs to another build");
    replace(codes, other[0], sizes[0]);
    assert_bad(read_shard(&second, 0), codes, "does not fit the manifest");
    replace(codes, other[1], sizes[1]);
    assert_bad(read_shard(&second, 0), codes, "bytes, the manifest says");
    replace(vectors, foreign[1], sizes[1]);
    assert_bad(bsw_vectors_file_open(&second, temporary_folder, 0, &fd, opened, &err), vectors,
               "belongs to another build");
    replace(vectors, other[1], sizes[1]);
    assert_bad(bsw_vectors_file_open(&second, temporary_folder, 0, &fd, opened, &err), vectors,
               "does not fit the manifest");
    for (int kind = 0; kind < 2; kind++) {
        bsw_free(&foreign[kind]);
        bsw_free(&other[kind]);
    }
    bsw_manifest_deinit(&second);
}

// Changed codes with every digest inside the file made right again: the manifest knows the footer.
UNIT_TEST(a_resealed_file_is_refused)
{
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_xfbq);
    make_small_index(&what, temporary_folder, &manifest);
    const char *path = numbered(".codes", 0, 2);
    unsigned char *bytes;
    size_t size = read_file(path, &bytes), footer = size - 24;
    bytes[4100] ^= 1;
    uint64_t digest = XXH3_64bits(bytes + 4096, footer - 4096);
    memcpy(bytes + footer + 8, &digest, 8);
    digest = XXH3_64bits(bytes + footer, 16);
    memcpy(bytes + footer + 16, &digest, 8);
    replace(path, bytes, size);
    assert_bad(read_shard(&manifest, 0), path, "belongs to another build");
    bsw_free(&bytes);
    bsw_manifest_deinit(&manifest);
}

UNIT_TEST(every_damaged_bit_of_a_vectors_header_is_found)
{
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_xfbq);
    unsigned char *bytes;
    what.copies_vectors = 1;
    make_small_index(&what, temporary_folder, &manifest);
    const char *path = numbered(".vectors", 1, 2);
    read_file(path, &bytes);
    for (size_t bit = 0; bit < BSW_SHARD_HEADER_BYTES * 8; bit++) {
        char opened[BSW_PATH_BYTES];
        int fd;
        write_byte(path, bit / 8, (unsigned char)(bytes[bit / 8] ^ 1u << bit % 8));
        assert_bad(bsw_vectors_file_open(&manifest, temporary_folder, 1, &fd, opened, &err), path,
                   bit < 64 ? "is no bitsweep shard" : "header is corrupt");
        assert_int_equal(fd, -1);
        write_byte(path, bit / 8, bytes[bit / 8]);
    }
    bsw_free(&bytes);
    bsw_manifest_deinit(&manifest);
}

// Who writes a file can make its checksums fit.
UNIT_TEST(rows_behind_the_last_are_refused)
{
    struct bsw_manifest manifest;
    struct bsw_shard_file file;
    struct bsw_code_arrays arrays;
    struct small_index what = small(&bsw_codec_xfbq);
    what.source = "synth:count=70,dims=17";
    what.num_shards = 1;
    make_small_index(&what, temporary_folder, &manifest);
    assert_ok(bsw_shard_file_open(&manifest, temporary_folder, 0, &file, &err), &err);
    size_t bytes = bsw_shard_block_bytes(&file.shape, 0);
    void *block = allocate_or_fail(bytes, 1);
    assert_ok(bsw_shard_file_read_block(&file, 0, block, &err), &err);
    bsw_code_arrays_in_block(&file.shape, block, 3, &arrays);
    assert_int_equal(arrays.masks[2], 0x3f);
    for (unsigned bit = 6; bit < 32; bit++) {
        arrays.masks[2] = 0x3f | 1u << bit;
        file.block_digests[0] = XXH3_64bits(block, bytes);
        int fd;
        assert_ok(bsw_file_open_write(file.path, &fd, &err), &err);
        assert_ok(bsw_file_write_at(fd, file.path, BSW_SHARD_HEADER_BYTES, block, bytes, &err),
                  &err);
        bsw_file_close(&fd);
        void *again = allocate_or_fail(bytes, 1);
        assert_bad(bsw_shard_file_read_block(&file, 0, again, &err), file.path,
                   "has rows behind the last");
        bsw_free(&again);
    }
    bsw_free(&block);
    bsw_shard_file_close(&file);
    bsw_manifest_deinit(&manifest);
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
