// SPDX-License-Identifier: Apache-2.0
// The small parsers behind options. The first byte of an input picks one: counts (1.5K), numbers,
// segments (32x4,96x2), synth: sources, words such as metrics, files of tuning.
#include <math.h>
#include <string.h>

#include "common/codes/code_layout.h"
#include "common/files/index_manifest.h"
#include "common/rows/synth.h"
#include "coordinator/job/option_table.h"
#include "kernels/device_scan/device_tuning.h"
#include "kernels/rbe/rbe_model_file.h"
#include "kernels/scan_tuning.h"
#include "shard/codecs/codec.h"
#include "tests/fuzz/harness.h"

#define FUZZ_USAGE    FUZZ_BIT(BSW_ERROR_USAGE)
#define FUZZ_BAD_DATA FUZZ_BIT(BSW_ERROR_BAD_DATA)

static void take_count(const char *text)
{
    struct bsw_error err;
    uint64_t count = 0;
    if (!fuzz_is_ok(bsw_count_parse("count", text, &count, &err), &err, FUZZ_USAGE)) return;
    FUZZ_REQUIRE(count <= (uint64_t)INT64_MAX);
    size_t digits = strspn(text, "0123456789");
    if (text[digits] != '\0') return;
    char again[32];
    snprintf(again, sizeof again, "%llu", (unsigned long long)count);
    FUZZ_REQUIRE(strcmp(again, text + strspn(text, "0") - (count == 0)) == 0);
}

static void take_number(const char *text)
{
    struct bsw_error err;
    double number = 0;
    if (fuzz_is_ok(bsw_number_parse("number", text, &number, &err), &err, FUZZ_USAGE))
        FUZZ_REQUIRE(isfinite(number));
}

// What is taken is written in the same form and taken again.
static void take_segments(const char *text, uint32_t dims)
{
    struct bsw_code_layout layout, again;
    struct bsw_error err;
    char form[512];
    if (!fuzz_is_ok(bsw_code_layout_parse(text, dims, &layout, &err), &err, FUZZ_USAGE)) return;
    FUZZ_REQUIRE(layout.dims == dims && layout.num_segments <= BSW_MAX_SEGMENTS);
    bsw_code_layout_format(&layout, form, sizeof form);
    FUZZ_REQUIRE(bsw_code_layout_parse(form, dims, &again, &err) == BSW_OK);
    FUZZ_REQUIRE(memcmp(&layout, &again, sizeof layout) == 0);
}

static void take_synth(const char *text)
{
    struct bsw_synth synth;
    struct bsw_error err;
    static float row[64];
    if (!fuzz_is_ok(bsw_synth_parse(text, &synth, &err), &err, FUZZ_USAGE)) return;
    FUZZ_REQUIRE(synth.count >= 1 && synth.count <= (uint64_t)1 << 48);
    FUZZ_REQUIRE(synth.dims >= 1 && synth.dims <= BSW_MAX_DIMS && synth.spectrum <= 32);
    if (synth.dims <= 64) bsw_synth_rows(&synth, synth.count - 1, 1, row);
}

static void take_words(const char *text)
{
    struct bsw_error err;
    enum bsw_metric metric;
    const struct bsw_codec *codec;
    enum bsw_rbe_estimator estimator;
    if (fuzz_is_ok(bsw_metric_parse(text, &metric, &err), &err, FUZZ_USAGE))
        FUZZ_REQUIRE(strcmp(bsw_metric_name(metric), text) == 0);
    if (fuzz_is_ok(bsw_codec_parse(text, &codec, &err), &err, FUZZ_USAGE))
        FUZZ_REQUIRE(strcmp(bsw_codec_name(codec), text) == 0);
    if (fuzz_is_ok(bsw_rbe_estimator_parse(text, &estimator, &err), &err, FUZZ_USAGE))
        FUZZ_REQUIRE(strcmp(bsw_rbe_estimator_name(estimator), text) == 0);
}

// Rows of GPUs that are taken are written in the same form and taken again.
static void take_tuning(const char *text)
{
    static struct bsw_scan_tuning_table tables[4];
    struct bsw_device_tunings tunings = *bsw_device_tuning_built_in(), again;
    struct bsw_error err;
    char form[BSW_DEVICE_TUNING_TEXT_BYTES];
    size_t num = 0;
    if (fuzz_is_ok(bsw_scan_tuning_parse("t", text, tables, 4, &num, &err), &err, FUZZ_BAD_DATA))
        FUZZ_REQUIRE(num <= 4);
    if (!fuzz_is_ok(bsw_device_tuning_parse("t", text, &tunings, &err), &err, FUZZ_BAD_DATA))
        return;
    FUZZ_REQUIRE(tunings.num <= BSW_TUNING_MAX_DEVICES);
    again = tunings;
    for (size_t i = 0; i < tunings.num; i++) {
        FUZZ_REQUIRE(bsw_device_tuning_format(&tunings.rows[i], form, sizeof form, &err) == BSW_OK);
        FUZZ_REQUIRE(bsw_device_tuning_parse("t", form, &again, &err) == BSW_OK);
    }
    FUZZ_REQUIRE(again.num == tunings.num);
    FUZZ_REQUIRE(memcmp(again.rows, tunings.rows, again.num * sizeof again.rows[0]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    char *text = fuzz_text(data + 1, bytes - 1);
    switch (data[0] % 5) {
    case 0:
        take_count(text);
        break;
    case 1:
        take_number(text);
        break;
    case 2:
        take_segments(text, data[0] >= 128 ? 128 : 8);
        break;
    case 3:
        take_synth(text);
        break;
    default:
        (data[0] >= 128 ? take_tuning : take_words)(text);
    }
    bsw_free(&text);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    static const char *const seeds[] = {
        "\x05"
        "1500",
        "\x05"
        "1.5M",
        "\x05"
        "9.223372036854775807G",
        "\x05"
        "00",
        "\x05"
        "1_000_000",
        "\x05"
        "1.5e3",
        "\x05"
        "1.5Gi",
        "\x01"
        "-1.5e-3",
        "\x01"
        "1e308",
        "\x01"
        "1_0.5Mi",
        "\x02"
        "8x3",
        "\x02"
        "4x4,4x2",
        "\x87"
        "32x4,96x2",
        "\x03"
        "count=1G,dims=96,seed=1",
        "\x03"
        "count=3,dims=8,type=uint8,clusters=2",
        "\x03"
        "count=281474976710656,dims=33,spectrum=0.625,seed=18446744073709551615",
        "\x04"
        "cosine",
        "\x04"
        "saq",
        "\x04"
        "straight-through",
        "\x81"
        "table avx2 AuthenticAMD 26 2 8\nrow 32 16 0.5 1.25 - 4\n"
        "device 9.0 matrix_from_queries=- matrix_scans=few:32,hopper-3x128 graphs=on # mine\n"
        "device 8.9 hopper_list_bundles=-,12,1,4 tile_queries=16,64 plane_division=32,4\n",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        put(context, seeds[i], strlen(seeds[i]));
}
