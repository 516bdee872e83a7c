// SPDX-License-Identifier: Apache-2.0
// Checks of codes on an emulated device, a few blocks at a time: each comes round to every block of
// every shard. How many that is a check is 1 GiB's worth; here the linker puts 2 in its place
// (-Wl,--wrap), so that small shards take several.
#include "made_assignment.h"
#include "small_index.h"
#include "temporary_folder.h"

#include "shard/device/device_backend.h"
#include "shard/device/device_readback.h"
#include "shard/shard_service.h"

enum { BLOCKS_A_CHECK = 2, BLOCKS = 5, BLOCK_ROWS = 64, SHARDS = 2, CHECKS = 3 }; // of a shard

static struct bsw_error err;
static struct bsw_manifest manifest;
static struct bsw_shard_service service;
static bsw_device *device;

uint32_t __wrap_bsw_device_readback_most(const struct bsw_shard_shape *shape);
uint32_t __wrap_bsw_device_readback_most(const struct bsw_shard_shape *shape)
{
    (void)shape;
    return BLOCKS_A_CHECK;
}

static const struct bsw_device_unit *unit_of(uint32_t shard)
{
    return (const struct bsw_device_unit *)service.units[shard].loaded.own;
}

static int open_service(void **state)
{
    const struct small_index what = {.source = "synth:count=635,dims=8192",
                                     .codec = &bsw_codec_xfbq,
                                     .metric = BSW_METRIC_COSINE,
                                     .bits = 8,
                                     .num_shards = SHARDS};
    const struct bsw_device_options options = {.num_sharers = 1, .timeout_seconds = 60};
    struct bsw_search_settings settings = {.query_bits = 1,
                                           .k = 1,
                                           .keep = 1,
                                           .level = bsw_cpu_level_detect(),
                                           .num_threads = 2,
                                           .batch = 1,
                                           .is_checked = 1};
    if (make_temporary_folder(state) != 0) return -1;
    make_small_index(&what, temporary_folder, &manifest);
    assert_ok(bsw_device_open(&options, &device, &err), &err);
    settings.device = device;
    assert_ok(bsw_shard_service_open(&manifest, temporary_folder, &settings,
                                     made_assignment(1, SHARDS), 0, 0, &service, &err),
              &err);
    assert_int_equal(service.num_units, SHARDS);
    for (uint32_t u = 0; u < SHARDS; u++) {
        assert_int_equal(bsw_device_shard_blocks(&unit_of(u)->codes), BLOCKS);
        assert_int_equal(service.units[u].resident.shape.block_bundles * BSW_BUNDLE_ROWS,
                         BLOCK_ROWS);
    }
    return 0;
}

static int close_service(void **state)
{
    bsw_shard_service_close(&service);
    bsw_device_close(&device);
    bsw_manifest_deinit(&manifest);
    return remove_temporary_folder(state);
}

// A bit of the codes of the block's first bundle.
static void flip(uint32_t shard, uint32_t block)
{
    const struct bsw_device_codes *codes = &unit_of(shard)->codes.resident;
    const struct bsw_segment *segment = &manifest.layout.segments[0];
    size_t bundle = (size_t)block * BLOCK_ROWS / BSW_BUNDLE_ROWS;
    uint32_t *at =
        (uint32_t *)(uintptr_t)(codes->planes[0] + bundle * bsw_segment_bundle_words(segment));
    uint32_t word;
    assert_ok(bsw_device_download(device, BSW_QUEUE_COPY, &word, at, sizeof word, &err), &err);
    assert_ok(bsw_device_wait(device, BSW_QUEUE_COPY, "test", &err), &err);
    word ^= 1;
    assert_ok(bsw_device_upload(device, BSW_QUEUE_COPY, at, &word, sizeof word, &err), &err);
    assert_ok(bsw_device_wait(device, BSW_QUEUE_COPY, "test", &err), &err);
}

static void assert_named(uint32_t shard, uint32_t block)
{
    char text[64];
    snprintf(text, sizeof text, "shard %u: codes of block %u of %d (rows ", shard, block, BLOCKS);
    if (!strstr(err.message, text)) fail_msg("'%s' is not of %s", err.message, text);
}

UNIT_TEST(every_block_is_seen_when_its_turn_comes)
{
    assert_int_equal(bsw_self_check_round(&manifest, made_assignment(1, SHARDS)), SHARDS * CHECKS);
    assert_int_equal(bsw_self_check_round(&manifest, made_assignment(2, SHARDS)), CHECKS);
    for (uint32_t i = 0; i < SHARDS * BLOCKS; i++) {
        uint32_t shard = i / BLOCKS, block = i % BLOCKS;
        uint32_t turn = shard * CHECKS + block / BLOCKS_A_CHECK;
        service.check.next_unit = service.check.next_block = 0;
        flip(shard, block);
        for (uint32_t check = 0; check < turn; check++)
            assert_ok(bsw_self_check_between(&service, &err), &err);
        assert_int_equal(bsw_self_check_between(&service, &err), BSW_ERROR_SELF_CHECK);
        assert_named(shard, block);
        assert_int_equal(bsw_self_check_end(&service, &err), BSW_ERROR_SELF_CHECK); // all at once
        assert_named(shard, block);
        flip(shard, block);
    }
    assert_ok(bsw_self_check_end(&service, &err), &err);
}

UNIT_TEST(a_round_ends_where_it_began)
{
    service.check.next_unit = service.check.next_block = 0;
    for (int round = 0; round < 3; round++) {
        for (int check = 0; check < SHARDS * CHECKS; check++) {
            assert_int_equal(service.check.next_unit % SHARDS, check / CHECKS);
            assert_int_equal(service.check.next_block, check % CHECKS * BLOCKS_A_CHECK);
            assert_ok(bsw_self_check_between(&service, &err), &err);
        }
    }
}

int main(void)
{
    return run_unit_tests(open_service, close_service);
}
