// SPDX-License-Identifier: Apache-2.0
// The manifest of an index, as it lies in the file and with a checksum that fits.
#include "shard/codecs/codec.h"
#include "tests/fuzz/seed_manifest.h"

// What the program computes from a manifest before it looks at any other file.
static void use(const struct bsw_manifest *manifest)
{
    char path[BSW_PATH_BYTES];
    FUZZ_REQUIRE(bsw_manifest_stage(manifest) <= manifest->layout.padded_dims);
    FUZZ_REQUIRE(bsw_manifest_row_bytes(manifest) > 0);
    (void)bsw_manifest_source(manifest, "folder", path, NULL);
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        struct bsw_shard_shape shape;
        bsw_shard_shape_init(&shape, manifest, i);
        const struct bsw_known_answers known = bsw_manifest_known(manifest, i);
        FUZZ_REQUIRE(known.num_queries <= BSW_KNOWN_QUERIES && known.num_rows <= BSW_KNOWN_ROWS);
        for (uint32_t place = 0; place < known.num_queries * known.num_rows; place++)
            FUZZ_REQUIRE(bsw_candidate_row(known.best[place]) < shape.num_rows);
        FUZZ_REQUIRE(shape.num_blocks >= 1 && bsw_shard_codes_bytes(&shape) < (uint64_t)1 << 62);
    }
    const struct bsw_calibration *table = &manifest->calibration;
    FUZZ_REQUIRE(table->num_entries == 0 || (manifest->lists.count > 0 && table->k >= 1));
    for (uint32_t i = 0; i < table->num_entries; i++) {
        const struct bsw_calibration_entry *entry = &table->entries[i];
        FUZZ_REQUIRE(entry->probe >= 1 && entry->probe <= manifest->lists.count);
        FUZZ_REQUIRE(entry->ratio >= 0 && entry->oversample >= 1 && entry->recall <= 1);
        FUZZ_REQUIRE(i == 0 || entry->recall > table->entries[i - 1].recall);
    }
}

// Two lists, and a table of recalls with two entries.
static void add_lists(struct bsw_manifest *manifest)
{
    struct bsw_calibration *table = &manifest->calibration;
    size_t numbers = (size_t)2 * bsw_manifest_row_dims(manifest);
    manifest->lists.count = 2;
    FUZZ_REQUIRE(bsw_allocate_zero(&manifest->lists.centroids, numbers, sizeof(float), "seed",
                                   NULL) == BSW_OK);
    FUZZ_REQUIRE(bsw_allocate(&table->entries, 2, sizeof *table->entries, "seed", NULL) == BSW_OK);
    table->k = 10;
    table->num_queries = 7;
    table->num_entries = 2;
    table->entries[0] = (struct bsw_calibration_entry){
        .probe = 1, .ratio = 0.5, .oversample = 1, .recall = 0.5, .rows_a_query = 40};
    table->entries[1] = (struct bsw_calibration_entry){
        .probe = 2, .oversample = 3, .recall = 0.75, .rows_a_query = 70, .scan_dims = 32};
}

// What was taken is written, and read back as the same.
static void write_and_read(const struct bsw_manifest *manifest)
{
    struct bsw_buffer first = {0}, second = {0};
    struct bsw_manifest again;
    struct bsw_error err;
    FUZZ_REQUIRE(bsw_manifest_pack(manifest, &first, &err) == BSW_OK);
    FUZZ_REQUIRE(bsw_manifest_parse("again", first.data, first.bytes, &again, &err) == BSW_OK);
    FUZZ_REQUIRE(bsw_manifest_pack(&again, &second, &err) == BSW_OK);
    FUZZ_REQUIRE(first.bytes == second.bytes);
    FUZZ_REQUIRE(memcmp(first.data, second.data, first.bytes) == 0);
    bsw_manifest_deinit(&again);
    bsw_buffer_deinit(&first);
    bsw_buffer_deinit(&second);
}

static void take(const void *data, size_t bytes)
{
    struct bsw_manifest manifest;
    struct bsw_error err;
    enum bsw_status status = bsw_manifest_parse("manifest.pb", data, bytes, &manifest, &err);
    if (!fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA))) return;
    use(&manifest);
    write_and_read(&manifest);
    bsw_manifest_deinit(&manifest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_take_sealed(take, data, bytes);
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    for (int codec = 0; codec < BSW_NUM_CODECS; codec++) {
        for (uint32_t variant = 0; variant <= 2; variant++) {
            struct bsw_manifest manifest;
            struct bsw_buffer file = {0};
            seed_manifest(bsw_codecs[codec], variant == 0 ? 1 : 2, &manifest);
            if (variant == 2) add_lists(&manifest);
            FUZZ_REQUIRE(bsw_manifest_pack(&manifest, &file, NULL) == BSW_OK);
            put(context, file.data, file.bytes);
            put(context, file.data, file.bytes - 9); // without its checksum
            bsw_buffer_deinit(&file);
            bsw_manifest_deinit(&manifest);
        }
    }
}
