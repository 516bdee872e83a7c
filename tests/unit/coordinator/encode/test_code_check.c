// SPDX-License-Identifier: Apache-2.0
// What encode says of the codes that it makes: good ones, too few bits, rows far out, copies.
#include <math.h>

#include "common/base/arithmetic.h"
#include "common/net/transport.h"
#include "coordinator/encode/encode_index.h"
#include "small_index.h"
#include "temporary_folder.h"

enum { ROWS = 2000, DIMS = 48 };

static struct bsw_error err;
static struct bsw_transport transport = {.timeout_seconds = 10};
static float numbers[ROWS * DIMS];
static const char *source; // NULL: the numbers

// About Gaussian.
static void make_rows(void)
{
    for (uint64_t i = 0; i < ROWS * DIMS; i++) {
        float sum = -6;
        for (uint64_t j = 0; j < 12; j++) sum += (float)(bsw_hash2(i, j) % 65536) / 65536;
        numbers[i] = sum;
    }
}

struct what {
    const struct bsw_codec *codec;
    const char *metric;
    double bits;
    uint64_t lists;
    enum bsw_residuals residuals;
    enum bsw_cpu_level level;
};

static struct bsw_code_check check_of(struct what what)
{
    write_fbin(path_of("rows.fbin"), numbers, ROWS, DIMS);
    const struct bsw_encode_settings settings = {.base = source ? source : path_of("rows.fbin"),
                                                 .rows = BSW_ALL_ROWS,
                                                 .index = path_of("index"),
                                                 .codec = what.codec,
                                                 .metric = what.metric,
                                                 .code = {.bits = what.bits, .seed = 1},
                                                 .lists = what.lists,
                                                 .residuals = what.residuals,
                                                 .force = 1,
                                                 .device.text = "cpu",
                                                 .level = what.level,
                                                 .checks_codes = 1};
    struct bsw_encode_stats stats;
    struct bsw_manifest manifest;
    assert_ok(bsw_encode_run(&settings, &transport, &stats, &err), &err);
    assert_ok(bsw_manifest_read(path_of("index"), &manifest, &err), &err);
    assert_memory_equal(&manifest.check, &stats.check, sizeof stats.check);
    bsw_manifest_deinit(&manifest);
    return stats.check;
}

UNIT_TEST(good_codes_have_a_recall_and_no_cause)
{
    enum bsw_cpu_level level = bsw_cpu_level_detect();
    const struct what all[] = {{&bsw_codec_saq, "l2", 4, 0, 0, level},
                               {&bsw_codec_saq, "cosine", 4, 16, BSW_RESIDUALS_NO, level},
                               {&bsw_codec_saq, "l2", 4, 16, BSW_RESIDUALS_YES, level},
                               {&bsw_codec_saq, "ip", 4, 16, BSW_RESIDUALS_YES, level},
                               {&bsw_codec_sq8, "ip", 0, 0, 0, level},
                               {&bsw_codec_pq, "l2", 0, 16, 0, level}};
    make_rows();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct bsw_code_check check = check_of(all[i]);
        assert_true(check.num_queries == 200 && check.num_rows == ROWS);
        if (check.recall < 0.95) fail_msg("%zu: recall %.4f", i, check.recall);
        assert_string_equal(check.cause, "");
    }
}

UNIT_TEST(levels_find_the_same)
{
    struct what what = {&bsw_codec_saq, "cosine", 1, 8, BSW_RESIDUALS_YES, BSW_CPU_REFERENCE};
    make_rows();
    struct bsw_code_check plain = check_of(what);
    what.level = bsw_cpu_level_detect();
    struct bsw_code_check best = check_of(what);
    assert_memory_equal(&plain, &best, sizeof best);
}

UNIT_TEST(too_few_bits_are_a_cause)
{
    make_rows();
    struct bsw_code_check check =
        check_of((struct what){&bsw_codec_saq, "l2", 1, 0, 0, bsw_cpu_level_detect()});
    assert_true(bsw_code_check_is_low(&check));
    assert_non_null(strstr(check.cause, "too few bits"));
}

UNIT_TEST(tight_groups_are_a_cause)
{
    make_rows();
    for (int i = 0; i < ROWS * DIMS; i++) numbers[i] += i / DIMS % 2 ? 1000.0f : 0.0f;
    struct bsw_code_check check =
        check_of((struct what){&bsw_codec_saq, "l2", 3, 0, 0, bsw_cpu_level_detect()});
    assert_true(bsw_code_check_is_low(&check));
    assert_non_null(strstr(check.cause, "tight groups"));
}

// The others are coded as if they were not there, and people are told which they are.
UNIT_TEST(rows_far_out_are_named)
{
    const struct bsw_codec *const codecs[] = {&bsw_codec_saq, &bsw_codec_sq8};
    make_rows();
    for (int d = 0; d < DIMS; d++) numbers[777 * DIMS + d] *= 1e6f;
    for (int i = 0; i < 4; i++) {
        struct bsw_code_check check = check_of((struct what){
            codecs[i % 2], i / 2 ? "ip" : "l2", i % 2 ? 0 : 4, 0, 0, bsw_cpu_level_detect()});
        // Under ip it is among the nearest of every other query.
        if (check.recall < 0.98) fail_msg("%d: recall %.4f", i, check.recall);
        assert_non_null(strstr(check.cause, "row 777"));
        assert_non_null(strstr(check.cause, "1 of 2000 rows"));
    }
}

// Copies count once as queries, and rows that are equally near are all the same.
UNIT_TEST(copies_do_not_lower_the_recall)
{
    make_rows();
    for (int r = 0; r < ROWS; r++)
        if (r % 10) memcpy(numbers + r * DIMS, numbers, DIMS * sizeof *numbers);
    struct bsw_code_check check =
        check_of((struct what){&bsw_codec_saq, "l2", 4, 0, 0, bsw_cpu_level_detect()});
    assert_true(check.num_queries >= 60 && check.recall >= 0.95);
}

UNIT_TEST(few_rows_and_exact_codes_are_not_checked)
{
    make_rows();
    for (int r = 199; r < ROWS; r++) // as many as differ
        memcpy(numbers + r * DIMS, numbers + r % 199 * DIMS, DIMS * sizeof *numbers);
    struct bsw_code_check check =
        check_of((struct what){&bsw_codec_sq8, "l2", 0, 0, 0, bsw_cpu_level_detect()});
    assert_true(check.num_queries == 0 && check.cause[0] == '\0');
    source = "synth:count=1000,dims=8,type=uint8";
    check = check_of((struct what){&bsw_codec_raw, "l2", 0, 0, 0, bsw_cpu_level_detect()});
    source = NULL;
    assert_int_equal(check.num_queries, 0);
}

int main(void)
{
    bsw_transport_local_init(&transport);
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
