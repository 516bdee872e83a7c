// SPDX-License-Identifier: Apache-2.0
// When xfbq rotates rows, the scale that rotated rows have, and what settings can be.
#include <float.h>
#include <math.h>

#include "common/base/arithmetic.h"
#include "sample_rows.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/codec_xfbq.h"
#include "small_index.h"
#include "temporary_folder.h"

enum { ROWS = 700, DIMS = 40 };

static double uniform(uint64_t seed, uint64_t index) // of [0, 1)
{
    return (double)(bsw_hash2(seed, index) >> 11) * 0x1p-53;
}

static double gaussian(uint64_t seed, uint64_t index) // nearly
{
    double sum = 0;
    for (uint64_t i = 0; i < 12; i++) sum += uniform(seed, 12 * index + i);
    return sum - 6;
}

static double component(const char *kind, uint64_t row, uint64_t dim)
{
    double g = gaussian(1, row * DIMS + dim);
    if (strcmp(kind, "even") == 0) return 2 * uniform(2, row * DIMS + dim) - 1;
    if (strcmp(kind, "fading") == 0) return g * pow(0.9, (double)dim);
    if (strcmp(kind, "one dimension") == 0) return dim == 7 ? 20 * g : g;
    if (strcmp(kind, "one component") == 0) return dim == row % DIMS ? 1 + fabs(g) : 0;
    return g;
}

static bsw_vectors *make_rows(const char *kind)
{
    float *rows = allocate_or_fail((size_t)ROWS * DIMS, sizeof *rows);
    for (size_t i = 0; i < (size_t)ROWS * DIMS; i++)
        rows[i] = (float)component(kind, i / DIMS, i % DIMS);
    write_fbin(path_of("rows.fbin"), rows, ROWS, DIMS);
    bsw_free(&rows);
    return open_vectors(path_of("rows.fbin"), 0, 0);
}

// bsw_manifest_deinit frees.
static struct bsw_manifest train(const bsw_vectors *vectors,
                                 const struct bsw_codec_settings *settings,
                                 enum bsw_cpu_level level)
{
    struct bsw_manifest manifest = {.codec = &bsw_codec_xfbq, .metric = BSW_METRIC_COSINE};
    struct bsw_sample sample = make_sample(vectors, BSW_METRIC_COSINE, level);
    assert_ok(bsw_codec_xfbq.table->train(settings, bsw_vectors_dims(vectors), &sample, NULL,
                                          &manifest, &err),
              &err);
    bsw_sample_deinit(&sample);
    return manifest;
}

static void check_choice(const char *kind, double scale, int is_rotated)
{
    bsw_vectors *vectors = make_rows(kind);
    for (int bits = 1; bits <= 8; bits += 7) { // which do not matter
        const struct bsw_codec_settings settings = {
            .bits = bits, .seed = 1, .has_scale = scale > 0, .scale = scale};
        struct bsw_manifest manifest = train(vectors, &settings, bsw_cpu_level_detect());
        if ((manifest.part != NULL) != is_rotated || (manifest.code_rule == 1) != is_rotated)
            fail_msg("%s, scale %g: rule %u", kind, scale, manifest.code_rule);
        if (scale > 0) assert_true(manifest.codec_number == (float)scale);
        bsw_manifest_deinit(&manifest);
    }
    bsw_vectors_close(&vectors);
}

UNIT_TEST(rows_are_rotated_where_some_components_are_large)
{
    check_choice("gaussian", 0, 0);
    check_choice("even", 0, 0);
    check_choice("fading", 0, 1);
    check_choice("one dimension", 0, 1);
    check_choice("one component", 0, 1);
    check_choice("fading", 2, 1); // more is clipped
    check_choice("gaussian", 2, 0);
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// Orthogonal, and the scale is the quantile of rotated rows by a full sort.
UNIT_TEST(the_scale_is_that_of_rotated_rows)
{
    const struct bsw_codec_settings settings = {.bits = 3, .seed = 5, .rotation = "random"};
    bsw_vectors *vectors = make_rows("even");
    struct bsw_manifest manifest = train(vectors, &settings, bsw_cpu_level_detect()),
                        other = train(vectors, &settings, BSW_CPU_REFERENCE);
    const float *rotation = bsw_xfbq_part_of(&manifest)->rotation;
    size_t padded = manifest.layout.padded_dims;
    assert_memory_equal(rotation, bsw_xfbq_part_of(&other)->rotation, DIMS * padded * 4);
    assert_true(manifest.codec_number == other.codec_number);
    for (size_t i = 0; i < DIMS; i++) {
        for (size_t j = 0; j < DIMS; j++) {
            double sum = 0;
            for (size_t d = 0; d < DIMS; d++)
                sum += (double)rotation[i * padded + d] * (double)rotation[j * padded + d];
            assert_true(fabs(sum - (i == j)) < 1e-6);
        }
    }
    struct bsw_sample sample = make_sample(vectors, BSW_METRIC_COSINE, BSW_CPU_REFERENCE);
    struct prepared all = take_sample(&sample);
    float *found = allocate_or_fail(all.num_rows * DIMS, sizeof *found);
    for (size_t r = 0; r < all.num_rows; r++) {
        for (size_t i = 0; i < DIMS; i++) {
            float sum = 0;
            for (size_t j = 0; j < DIMS; j++)
                sum = fmaf(all.rows[r * DIMS + j], rotation[j * padded + i], sum);
            found[r * DIMS + i] = fabsf(sum);
        }
    }
    qsort(found, all.num_rows * DIMS, sizeof *found, compare_floats);
    assert_true(manifest.codec_number == 1.0f / found[(98 * all.num_rows * DIMS + 99) / 100 - 1]);
    bsw_free(&found);
    bsw_free(&all.rows);
    bsw_sample_deinit(&sample);
    bsw_manifest_deinit(&manifest);
    bsw_manifest_deinit(&other);
    bsw_vectors_close(&vectors);
}

// Also what is forgotten: neither rule nor part is left.
UNIT_TEST(rotations_have_seeds_and_none_is_rule_0)
{
    struct bsw_codec_settings settings = {.bits = 3, .seed = 1, .rotation = "random"};
    bsw_vectors *vectors = make_rows("fading");
    struct bsw_manifest one = train(vectors, &settings, bsw_cpu_level_detect());
    settings.seed = 2;
    struct bsw_manifest two = train(vectors, &settings, bsw_cpu_level_detect());
    assert_memory_not_equal(bsw_xfbq_part_of(&one)->rotation, bsw_xfbq_part_of(&two)->rotation,
                            DIMS * sizeof(float));
    settings.rotation = "none";
    struct bsw_manifest none = train(vectors, &settings, bsw_cpu_level_detect());
    assert_null(none.part);
    assert_int_equal(none.code_rule, 0);
    assert_true(none.codec_number != one.codec_number);
    bsw_manifest_deinit(&one);
    bsw_manifest_deinit(&two);
    bsw_manifest_deinit(&none);
    bsw_vectors_close(&vectors);
}

UNIT_TEST(settings_of_rotations)
{
    const struct bsw_codec_table *table = bsw_codec_xfbq.table;
    struct bsw_codec_settings settings = {.rotation = "opq"};
    assert_int_equal(bsw_codec_check_settings(&bsw_codec_xfbq, &settings, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "--rotation opq is for --codec pq"));
    settings.rotation = "random";
    assert_ok(bsw_codec_check_settings(&bsw_codec_xfbq, &settings, &err), &err);
    assert_ok(table->check_rows(&settings, "b.fbin", BSW_VECTOR_FLOAT32, 4096, &err), &err);
    assert_int_equal(table->check_rows(&settings, "b.fbin", BSW_VECTOR_FLOAT32, 4097, &err),
                     BSW_ERROR_USAGE);
    assert_string_equal(err.message,
                        "--rotation random takes up to 4096 dims, b.fbin has 4097: say none");
    settings.rotation = NULL;
    assert_ok(table->check_rows(&settings, "b.fbin", BSW_VECTOR_FLOAT32, 4097, &err), &err);
    settings = (struct bsw_codec_settings){.rotation = "none"};
    assert_int_equal(bsw_codec_check_settings(&bsw_codec_saq, &settings, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "--rotation is for --codec pq and xfbq"));
}

// None where the matrix would be too large for a manifest.
UNIT_TEST(wide_rows_are_not_rotated_unasked)
{
    const struct bsw_codec_settings settings = {.bits = 1};
    float *rows = allocate_or_fail(2 * 4100, sizeof *rows);
    memset(rows, 0, 2 * 4100 * sizeof *rows);
    rows[3] = rows[4200] = 1;
    write_fbin(path_of("wide.fbin"), rows, 2, 4100);
    bsw_vectors *vectors = open_vectors(path_of("wide.fbin"), 0, 0);
    struct bsw_manifest manifest = train(vectors, &settings, bsw_cpu_level_detect());
    assert_int_equal(manifest.code_rule, 0);
    bsw_manifest_deinit(&manifest);
    bsw_vectors_close(&vectors);
    bsw_free(&rows);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
