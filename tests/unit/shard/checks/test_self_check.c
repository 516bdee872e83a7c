// SPDX-License-Identifier: Apache-2.0
// Self-checks of a rank: every bit of what is resident, wrong keys and values of survivors as often
// as the formula says, known answers, and indexes that have none.
#include <math.h>

#include "common/base/integer_hash.h"
#include "common/codes/result_order.h"
#include "coordinator/encode/shard_answers.h"
#include "made_assignment.h"
#include "shard/codecs/codec.h"
#include "shard/shard_service.h"
#include "small_index.h"
#include "temporary_folder.h"

#define NUM_QUERIES 20
#define KEEP        10

static struct bsw_error err;

// An index and its service, with a batch that has been through.
struct checked {
    struct bsw_manifest manifest;
    struct bsw_shard_service service;
    struct plain_queries queries;
    struct bsw_query_batch batch;
    float *vectors;
};

static void find_answers(struct bsw_manifest *manifest)
{
    struct bsw_shard_answers answers;
    assert_ok(bsw_shard_answers_open(&answers, manifest, BSW_CPU_REFERENCE, &err), &err);
    for (uint32_t shard = 0; shard < manifest->num_shards; shard++) {
        struct bsw_shard_file file;
        assert_ok(bsw_shard_file_open(manifest, temporary_folder, shard, &file, &err), &err);
        for (uint32_t block = 0; block < file.shape.num_blocks; block++) {
            void *bytes = allocate_or_fail(bsw_shard_block_bytes(&file.shape, block), 1);
            assert_ok(bsw_shard_file_read_block(&file, block, bytes, &err), &err);
            assert_ok(bsw_shard_answers_add(&answers, shard, &file.shape, block, bytes, &err),
                      &err);
            bsw_free(&bytes);
        }
        bsw_shard_file_close(&file);
    }
    assert_ok(bsw_shard_answers_store(&answers, manifest, &err), &err);
    bsw_shard_answers_close(&answers);
}

static void open_service(const struct small_index *index, int has_answers, struct checked *out)
{
    memset(out, 0, sizeof *out);
    make_small_index(index, temporary_folder, &out->manifest);
    if (has_answers) find_answers(&out->manifest);
    const struct bsw_search_settings settings = {.query_bits = 5,
                                                 .k = KEEP,
                                                 .keep = KEEP,
                                                 .is_exact = 1,
                                                 .level = bsw_cpu_level_detect(),
                                                 .num_threads = 2,
                                                 .batch = NUM_QUERIES,
                                                 .is_checked = 1};
    assert_ok(bsw_shard_service_open(&out->manifest, temporary_folder, &settings,
                                     made_assignment(1, out->manifest.num_shards), 0, 0,
                                     &out->service, &err),
              &err);
    size_t numbers = NUM_QUERIES * out->manifest.layout.dims;
    out->vectors = (float *)allocate_or_fail(numbers, sizeof(float));
    for (size_t i = 0; i < numbers; i++) out->vectors[i] = (float)(bsw_hash2(9, i) % 200) - 90;
    make_plain_queries(&out->manifest, out->vectors, NUM_QUERIES, 5, &out->queries);
    out->batch = (struct bsw_query_batch){.num_queries = NUM_QUERIES,
                                          .query_bits = 5,
                                          .query_words = out->queries.query_words,
                                          .words = out->queries.words,
                                          .scales = out->queries.scales,
                                          .vectors = out->vectors};
}

static void close_service(struct checked *checked)
{
    bsw_shard_service_close(&checked->service);
    free_plain_queries(&checked->queries);
    bsw_free(&checked->vectors);
    bsw_manifest_deinit(&checked->manifest);
}

static const struct small_index staged = {.source = "synth:count=300,dims=64,seed=2",
                                          .codec = &bsw_codec_saq,
                                          .metric = BSW_METRIC_L2,
                                          .bits = 2,
                                          .segments = "32x3,32x1",
                                          .num_shards = 2};

// ---- resident codes ----

static uint64_t num_flipped;

// Every bit of an array, of a shard that is otherwise whole.
static void flip_all(const struct bsw_resident_shard *shard, void *array, size_t bytes,
                     const char *what)
{
    char expected[64];
    snprintf(expected, sizeof expected, "shard %u: %s of block 0 of 1 (rows ", shard->index, what);
    for (size_t bit = 0; bit < bytes * 8; bit++) {
        unsigned char *byte = (unsigned char *)array + bit / 8;
        *byte ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(bsw_resident_shard_check(shard, &err), BSW_ERROR_SELF_CHECK);
        assert_ptr_equal(strstr(err.message, expected), err.message);
        *byte ^= (unsigned char)(1u << bit % 8);
        num_flipped++;
    }
}

UNIT_TEST(every_resident_bit_is_seen)
{
    struct checked checked;
    open_service(&staged, 1, &checked);
    for (uint32_t u = 0; u < checked.service.num_units; u++) {
        struct bsw_resident_shard *shard = &checked.service.units[u].resident;
        struct bsw_code_arrays *arrays = &shard->arrays;
        size_t bundles = shard->num_bundles, rows = bundles * BSW_BUNDLE_ROWS;
        assert_ok(bsw_resident_shard_check(shard, &err), &err);
        for (uint32_t s = 0; s < 2; s++)
            flip_all(shard, arrays->planes[s],
                     bundles * bsw_segment_bundle_words(&shard->shape.layout.segments[s]) * 4,
                     "codes");
        flip_all(shard, arrays->scales, rows * 2, "codes");
        flip_all(shard, arrays->biases, rows * 4, "codes");
        flip_all(shard, arrays->masks, bundles * 4, "codes");
        flip_all(shard, arrays->row_digests, bundles * 8, "row digests");
        if (shard->stage_dims > 0) {
            flip_all(shard, arrays->tails, rows * 2, "tails");
            flip_all(shard, shard->most, bundles * sizeof *shard->most, "bounds of bundles");
        }
        assert_ok(bsw_resident_shard_check(shard, &err), &err);
    }
    assert_true(checked.service.units[0].resident.stage_dims > 0);
    print_message("%llu bits flipped, all seen\n", (unsigned long long)num_flipped);
    close_service(&checked);
}

// ---- known answers ----

UNIT_TEST(known_answers_are_asked)
{
    struct checked checked;
    open_service(&staged, 1, &checked);
    assert_ok(bsw_self_check_answers(&checked.service, &err), &err);
    assert_int_equal(checked.service.check.num_answers, 4 * BSW_CHECK_QUERIES); // both families
    // Later the family of the last batch, besides what AUTO is by itself: one of the two here.
    static const enum bsw_scan_kind kinds[] = {BSW_SCAN_PLANES, BSW_SCAN_PROGRESSIVE_MATRIX};
    for (size_t i = 0; i < 2; i++) {
        checked.service.workspace.used = kinds[i];
        assert_ok(bsw_self_check_answers(&checked.service, &err), &err);
        assert_int_equal(bsw_scan_is_matrix(checked.service.check.workspace.used), i);
    }
    assert_int_equal(checked.service.check.num_answers, (4 + 2 + 4) * BSW_CHECK_QUERIES);
    uint64_t *known = checked.manifest.known + checked.manifest.shards[1].first_known;
    known[2] += (uint64_t)1 << 32;
    assert_int_equal(bsw_self_check_answers(&checked.service, &err), BSW_ERROR_SELF_CHECK);
    assert_ptr_equal(strstr(err.message, "self-check: host "), err.message);
    assert_non_null(strstr(err.message, ", cpu: "));
    assert_non_null(strstr(err.message, "shard 1: known answer 0 has row "));
    close_service(&checked);
}

UNIT_TEST(an_index_without_known_answers_is_searched)
{
    struct checked checked;
    open_service(&staged, 0, &checked);
    assert_ok(bsw_self_check_end(&checked.service, &err), &err);
    assert_int_equal(checked.service.check.num_answers, 0);
    checked.service.units[0].resident.arrays.planes[0][5] ^= 1;
    assert_int_equal(bsw_self_check_end(&checked.service, &err), BSW_ERROR_SELF_CHECK);
    close_service(&checked);
}

// ---- rounds ----

UNIT_TEST(rounds_see_the_shards_of_every_rank)
{
    struct bsw_manifest manifest;
    make_small_index(&staged, temporary_folder, &manifest);
    assert_int_equal(bsw_self_check_round(&manifest, made_assignment(1, 2)), 2);
    assert_int_equal(bsw_self_check_round(&manifest, made_assignment(2, 2)), 1);
    assert_int_equal(bsw_self_check_round(&manifest, made_assignment(5, 2)), 1);
    bsw_manifest_deinit(&manifest);
}

// ---- keys ----

#define TRIALS 2000

static void run_batch(struct checked *checked, struct bsw_buffer *survivors)
{
    struct bsw_buffer candidates = {0};
    struct bsw_cut cuts[NUM_QUERIES];
    const struct bsw_scan_round round = bsw_last_round(&checked->service.settings, NULL);
    for (int q = 0; q < NUM_QUERIES; q++) cuts[q] = (struct bsw_cut){0, 0, UINT64_MAX};
    bsw_shard_service_begin(&checked->service, &checked->batch);
    assert_ok(bsw_shard_service_scan(&checked->service, &round, &candidates, &err), &err);
    assert_ok(bsw_shard_service_refine(&checked->service, cuts, survivors, &err), &err);
    bsw_buffer_deinit(&candidates);
}

// How many of TRIALS checks over survivors of which a share p is wrong notice it; within five
// standard deviations of what the header says.
static void check_share(struct checked *checked, const struct bsw_survivor *survivors,
                        const size_t *counts, size_t total, size_t one_in, int is_value)
{
    struct bsw_survivor *wrong = (struct bsw_survivor *)allocate_or_fail(total, sizeof *wrong);
    size_t num_wrong = 0, num_caught = 0;
    memcpy(wrong, survivors, total * sizeof *wrong);
    for (size_t i = 0; i < total; i += one_in, num_wrong++) {
        if (is_value)
            wrong[i].value = nextafterf(wrong[i].value, INFINITY);
        else
            wrong[i].score ^= 1u << i % 32;
    }
    for (int trial = 0; trial < TRIALS; trial++) {
        enum bsw_status status = bsw_self_check_survivors(
            &checked->service, &checked->service.units[0], counts, wrong, &err);
        num_caught += status != BSW_OK;
        if (status == BSW_OK) continue;
        assert_int_equal(status, BSW_ERROR_SELF_CHECK);
        assert_non_null(
            strstr(err.message, is_value ? ": the exact value of row " : ": the key of row "));
    }
    double p = (double)num_wrong / (double)total, expected = 1 - pow(1 - p, BSW_CHECK_KEYS);
    double deviation = sqrt(expected * (1 - expected) / TRIALS);
    print_message("%s wrong in %.3f of survivors: seen in %.3f of batches, 1-(1-p)^%d is %.3f\n",
                  is_value ? "values" : "keys", p, (double)num_caught / TRIALS, BSW_CHECK_KEYS,
                  expected);
    assert_true(fabs((double)num_caught / TRIALS - expected) <= 5 * deviation + 1e-9);
    bsw_free(&wrong);
}

UNIT_TEST(wrong_keys_are_seen_as_often_as_said)
{
    struct checked checked;
    struct bsw_buffer survivors = {0};
    size_t counts[NUM_QUERIES], total = 0;
    uint64_t count;
    open_service(&staged, 1, &checked);
    run_batch(&checked, &survivors);
    assert_int_equal(checked.service.check.num_keys, 2 * BSW_CHECK_KEYS);
    for (size_t q = 0; q < NUM_QUERIES; q++, total += (size_t)count) {
        memcpy(&count, survivors.data + q * sizeof count, sizeof count);
        counts[q] = (size_t)count;
    }
    const struct bsw_survivor *list =
        (const struct bsw_survivor *)(const void *)(survivors.data + NUM_QUERIES * sizeof count);
    static const size_t shares[] = {1, 3, 20, 200};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        check_share(&checked, list, counts, total, shares[i], 0);
        check_share(&checked, list, counts, total, shares[i], 1);
    }
    check_share(&checked, list, counts, total, SIZE_MAX / 2, 0); // one alone
    bsw_buffer_deinit(&survivors);
    close_service(&checked);
}

// Row digests that have changed in memory are to blame, not the rows.
UNIT_TEST(row_digests_are_blamed)
{
    struct checked checked;
    struct bsw_buffer survivors = {0};
    size_t counts[NUM_QUERIES];
    uint64_t count;
    open_service(&staged, 1, &checked);
    run_batch(&checked, &survivors);
    struct bsw_unit *unit = &checked.service.units[0];
    for (size_t q = 0; q < NUM_QUERIES; q++) {
        memcpy(&count, survivors.data + q * sizeof count, sizeof count);
        counts[q] = (size_t)count;
    }
    // Rows that are generated for each use are not checked.
    assert_ok(bsw_raw_rows_hold(&unit->resident.raw_rows, &err), &err);
    for (size_t b = 0; b < unit->resident.num_bundles; b++)
        unit->resident.arrays.row_digests[b] ^= 1;
    const struct bsw_survivor *list =
        (const struct bsw_survivor *)(const void *)(survivors.data + NUM_QUERIES * sizeof count);
    assert_int_equal(bsw_self_check_survivors(&checked.service, unit, counts, list, &err),
                     BSW_ERROR_SELF_CHECK);
    assert_ptr_equal(strstr(err.message, "self-check: host "), err.message);
    assert_non_null(strstr(err.message, "shard 0: row digests of block 0 of 1"));
    bsw_buffer_deinit(&survivors);
    close_service(&checked);
}

// A mask that has a row too many leads nowhere.
UNIT_TEST(rows_behind_the_last_are_seen)
{
    struct checked checked;
    struct bsw_buffer candidates = {0};
    open_service(&staged, 1, &checked);
    struct bsw_unit *unit = &checked.service.units[0];
    const struct bsw_scan_round round = bsw_last_round(&checked.service.settings, NULL);
    bsw_shard_service_begin(&checked.service, &checked.batch);
    assert_ok(bsw_shard_service_scan(&checked.service, &round, &candidates, &err), &err);
    uint64_t *items = (uint64_t *)(void *)unit->loaded.lists.items.data;
    items[3] = bsw_candidate_pack(bsw_candidate_score(items[3]), 150);
    assert_int_equal(bsw_self_check_rows(&checked.service, unit, &err), BSW_ERROR_SELF_CHECK);
    assert_non_null(strstr(err.message, "shard 0: a scan finds row 150 of 150"));
    bsw_buffer_deinit(&candidates);
    close_service(&checked);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
