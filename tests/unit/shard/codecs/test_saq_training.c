// SPDX-License-Identifier: Apache-2.0
// What codes learn from the sample: the plain scale, bits, frame and exponents.
#include <cblas.h>
#include <float.h>
#include <math.h>
#include <unistd.h>

#include "common/base/arithmetic.h"
#include "common/rows/synth.h"
#include "sample_rows.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/codec_saq.h"
#include "shard/codecs/saq_training.h"
#include "small_index.h"
#include "temporary_folder.h"

// ---- the plain scale ----

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static enum bsw_status train_scale(struct bsw_sample *sample, float *scale)
{
    const struct bsw_codec_settings settings = {.bits = 3, .rotation = "none"};
    struct bsw_manifest manifest = {.codec = &bsw_codec_xfbq};
    uint32_t dims = bsw_vectors_dims(sample->vectors);
    enum bsw_status status =
        bsw_codec_xfbq.table->train(&settings, dims, sample, NULL, &manifest, &err);
    *scale = manifest.codec_number;
    return status;
}

// 1 / the ceil(0.98 n)-th smallest |x|, by a full sort.
static void check_plain_scale(const char *source)
{
    bsw_vectors *vectors = open_vectors(source, 0, 0);
    struct bsw_sample sample = make_sample(vectors, BSW_METRIC_COSINE, bsw_cpu_level_detect());
    float scale = 0;
    assert_ok(train_scale(&sample, &scale), &err);
    struct prepared all = take_sample(&sample);
    size_t count = all.num_rows * all.dims;
    for (size_t i = 0; i < count; i++) all.rows[i] = fabsf(all.rows[i]);
    qsort(all.rows, count, sizeof(float), compare_floats);
    size_t place = (98 * count + 99) / 100; // from 1
    float quantile = all.rows[place - 1] >= FLT_MIN ? all.rows[place - 1] : all.rows[count - 1];
    if (scale != 1.0f / quantile) {
        fail_msg("%s: scale %a, the %zu-th of %zu gives %a", source, (double)scale, place, count,
                 (double)(1.0f / quantile));
    }
    bsw_free(&all.rows);
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
}

UNIT_TEST(plain_scale_is_the_quantile_of_a_full_sort)
{
    static const char *const sources[] = {"synth:count=1,dims=1",
                                          "synth:count=1,dims=49",
                                          "synth:count=1,dims=50",
                                          "synth:count=1,dims=51",
                                          "synth:count=7,dims=13",
                                          "synth:count=5000,dims=24,clusters=9",
                                          "synth:count=999,dims=33",
                                          "synth:count=300,dims=96,type=uint8",
                                          "synth:count=80000,dims=4,clusters=3"};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) check_plain_scale(sources[i]);
}

// Mostly zeros, or numbers whose reciprocal is no float: the largest takes the quantile's place.
UNIT_TEST(a_zero_quantile_gives_way_to_the_largest)
{
    enum { ROWS = 50, DIMS = 200 };
    static const float fillers[] = {0, 0x1p-149f, 0x1p-130f, 0x1.fffffcp-127f};
    float *rows = allocate_or_fail(ROWS * DIMS, sizeof *rows);
    for (size_t f = 0; f < 4; f++) {
        for (size_t i = 0; i < ROWS * DIMS; i++) rows[i] = fillers[f];
        for (size_t r = 0; r < ROWS; r++) {
            rows[r * DIMS + r] = 0.6f;
            rows[r * DIMS + 150 + r % 50] = 0.8f;
        }
        write_fbin(path_of("sparse.fbin"), rows, ROWS, DIMS);
        check_plain_scale(path_of("sparse.fbin"));
    }
    bsw_free(&rows);
}

// A corpus without any good row has no scale and no frame.
UNIT_TEST(an_empty_sample_is_refused)
{
    const float zeros[6] = {0};
    struct bsw_manifest manifest = {.metric = BSW_METRIC_COSINE, .codec = &bsw_codec_saq};
    const struct bsw_saq_training training = {3, "auto", 0, 1, 0};
    float scale;
    write_fbin(path_of("zeros.fbin"), zeros, 3, 2);
    bsw_vectors *vectors = open_vectors(path_of("zeros.fbin"), 0, 0);
    struct bsw_sample sample = make_sample(vectors, BSW_METRIC_COSINE, BSW_CPU_REFERENCE);
    assert_int_equal(train_scale(&sample, &scale), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "no good row"));
    assert_int_equal(bsw_train_saq_frame(&sample, &training, &manifest, &err), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "no good row"));
    bsw_manifest_deinit(&manifest);
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
}

// ---- bits ----

static uint64_t count_bits(const struct bsw_code_layout *layout)
{
    uint64_t bits = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++)
        bits += (uint64_t)layout->segments[s].dims * layout->segments[s].bits;
    return bits;
}

// Falling energies of several shapes; from shape 7 on noise, as no training gives it.
static void make_energies(int shape, uint32_t dims, double *energies)
{
    for (uint32_t i = 0; i < dims; i++) {
        double x = (double)i / dims;
        const double shapes[] = {1, 1 - x, exp(-5 * x), exp(-20 * x), 1 / (1 + i), i < 40 ? 1 : 0,
                                 0};
        energies[i] =
            shape < 7 ? shapes[shape] : (double)(bsw_hash2((uint64_t)shape, i / 32) % 1000);
    }
}

static void check_layout(const double *energies, uint32_t dims, double bits, int is_falling)
{
    struct bsw_code_layout layout;
    assert_ok(bsw_allocate_bits(energies, dims, bits, 1, &layout, &err), &err);
    assert_int_equal(layout.dims, dims);
    uint64_t total = count_bits(&layout), most = (uint64_t)floor(bits * dims + 1e-9);
    assert_true(total <= most && total >= dims);
    for (uint32_t s = 0; s < layout.num_segments; s++) {
        const struct bsw_segment *segment = &layout.segments[s];
        assert_true(segment->bits >= 1 && segment->bits <= 8);
        // Segments begin at groups of 32; equal neighbours are one segment.
        if (s + 1 < layout.num_segments) {
            assert_int_equal(segment->dims % 32, 0);
            assert_int_not_equal(segment->bits, layout.segments[s + 1].bits);
        }
        if (is_falling && dims % 32 == 0 && s > 0)
            assert_true(segment->bits < layout.segments[s - 1].bits);
    }
    if (bits == 1 || bits == 8) {
        assert_int_equal(layout.num_segments, 1);
        assert_int_equal(layout.segments[0].bits, bits);
    }
    // What is left would not buy one more bit for any group, unless all have 8.
    uint32_t smallest = dims % 32 ? dims % 32 : 32;
    if (is_falling && bits < 8 && dims % 32 == 0) assert_true(most - total < smallest);
}

UNIT_TEST(bits_stay_within_what_was_asked)
{
    static const uint32_t all_dims[] = {1, 31, 32, 33, 64, 128, 200, 1000, 4096};
    double *energies = allocate_or_fail(4096, sizeof *energies);
    for (size_t d = 0; d < 9; d++) {
        for (int shape = 0; shape < 12; shape++) {
            if (shape >= 7 && all_dims[d] > 1024) continue; // every group could be a segment
            make_energies(shape, all_dims[d], energies);
            for (double bits = 1; bits <= 8; bits += 0.125)
                check_layout(energies, all_dims[d], bits, shape < 7);
        }
    }
    bsw_free(&energies);
}

UNIT_TEST(quarters_are_met_exactly_at_128_dims)
{
    double energies[128];
    struct bsw_code_layout layout;
    for (int shape = 0; shape < 12; shape++) {
        make_energies(shape, 128, energies);
        for (double bits = 1; bits <= 8; bits += 0.25) {
            assert_ok(bsw_allocate_bits(energies, 128, bits, 1, &layout, &err), &err);
            assert_int_equal(count_bits(&layout), (uint64_t)(bits * 128));
        }
    }
}

// Two groups, one with more energy: Max's errors say which bit removes more for its price.
UNIT_TEST(bits_go_where_they_remove_most_error)
{
    double energies[64];
    char text[64];
    struct bsw_code_layout layout;
    static const struct {
        uint32_t dims;
        double ratio, bits;
        const char *expected;
    } cases[] = {
        {64, 1, 1.5, "32x2,32x1"},     // equal: the first
        {64, 1, 2, "64x2"},            // then the other
        {64, 2.9, 2, "64x2"},          // the third bit removes 1 / 3.006 of what the second does,
        {64, 3.1, 2, "32x3,32x1"},     // (0.3634 - 0.1188) / (0.1188 - 0.03744)
        {64, 1e9, 4.5, "32x8,32x1"},   // everything to the first
        {40, 1 / 0.9, 2.6, "32x2,8x5"} // a short group costs less: its second bit before a third
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int j = 0; j < 64; j++) energies[j] = j < 32 ? cases[i].ratio : 1;
        assert_ok(bsw_allocate_bits(energies, cases[i].dims, cases[i].bits, 1, &layout, &err),
                  &err);
        bsw_code_layout_format(&layout, text, sizeof text);
        assert_string_equal(text, cases[i].expected);
    }
}

// ---- frame ----

struct frame_case {
    const char *source;
    enum bsw_metric metric;
    struct bsw_saq_training training;
};

static void train(const struct frame_case *what, enum bsw_cpu_level level,
                  struct bsw_manifest *manifest)
{
    bsw_vectors *vectors = open_vectors(what->source, 0, 0);
    struct bsw_sample sample = make_sample(vectors, what->metric, level);
    *manifest = (struct bsw_manifest){.metric = what->metric, .codec = &bsw_codec_saq};
    assert_ok(bsw_train_saq_frame(&sample, &what->training, manifest, &err), &err);
    assert_ok(bsw_train_saq_exponents(&sample, manifest, &err), &err);
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
}

// Place of output i (without padding) in a row of the rotation.
static size_t padded_place(const struct bsw_code_layout *layout, uint32_t i)
{
    uint32_t s = 0;
    while (i >= layout->segments[s].dims) i -= layout->segments[s++].dims;
    return layout->segments[s].padded_dim + i;
}

static void assert_orthonormal(const struct bsw_manifest *manifest)
{
    const struct bsw_code_layout *layout = &manifest->layout;
    uint32_t dims = layout->dims;
    for (uint32_t a = 0; a < dims; a++) {
        size_t place_a = padded_place(layout, a);
        for (uint32_t b = 0; b <= a; b++) {
            size_t place_b = padded_place(layout, b);
            double columns = 0;
            for (uint32_t j = 0; j < dims; j++) {
                const float *row =
                    bsw_saq_part_of(manifest)->rotation + (size_t)j * layout->padded_dims;
                columns += (double)row[place_a] * (double)row[place_b];
            }
            if (fabs(columns - (a == b)) > 1e-5)
                fail_msg("columns %u and %u of %u: %g", a, b, dims, columns);
        }
    }
    for (size_t i = 0; i < layout->padded_dims; i++) {
        int is_padding = 1;
        for (uint32_t a = 0; a < dims; a++) is_padding &= padded_place(layout, a) != i;
        for (uint32_t j = 0; j < dims && is_padding; j++)
            assert_true(bsw_saq_part_of(manifest)->rotation[(size_t)j * layout->padded_dims + i] ==
                        0);
    }
}

static void assert_mean(const struct frame_case *what, const struct bsw_manifest *manifest)
{
    bsw_vectors *vectors = open_vectors(what->source, 0, 0);
    struct bsw_sample sample = make_sample(vectors, what->metric, BSW_CPU_REFERENCE);
    struct prepared all = take_sample(&sample);
    for (size_t j = 0; j < all.dims; j++) {
        long double sum = 0, size = 0;
        for (size_t r = 0; r < all.num_rows; r++) {
            sum += (long double)all.rows[r * all.dims + j];
            size += fabsl((long double)all.rows[r * all.dims + j]);
        }
        long double mean = sum / all.num_rows;
        // Half a unit of the float, and what float64 loses by adding.
        assert_true(fabsl(mean - (long double)bsw_saq_part_of(manifest)->mean[j]) <=
                    fabsl(mean) * 0x1.01p-24L + size * 0x1p-52L);
    }
    bsw_free(&all.rows);
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
}

static void check_frame(const struct frame_case *what)
{
    struct bsw_manifest manifest;
    train(what, bsw_cpu_level_detect(), &manifest);
    assert_orthonormal(&manifest);
    assert_mean(what, &manifest);
    for (uint32_t s = 0; s < manifest.layout.num_segments; s++)
        assert_true(bsw_saq_part_of(&manifest)->steps[s] > 0 &&
                    isfinite(bsw_saq_part_of(&manifest)->steps[s]));
    assert_true(manifest.bits <= what->training.bits + 1e-9);
    assert_string_equal(bsw_saq_part_of(&manifest)->axes,
                        what->training.random_axes ? "random" : "principal");
    uint32_t stage = manifest.stage_dims, dims = manifest.layout.dims;
    assert_true(stage >= 1 && stage <= dims && (stage % 32 == 0 || stage == dims));
    bsw_manifest_deinit(&manifest);
}

UNIT_TEST(frames_are_orthonormal_with_the_right_mean)
{
    static const char *const sources[] = {
        "synth:count=1000,dims=1", "synth:count=500,dims=31,clusters=5", "synth:count=20,dims=33",
        "synth:count=3000,dims=96,clusters=20,type=uint8", "synth:count=1500,dims=200,clusters=50"};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
            const struct frame_case what = {
                sources[i], (enum bsw_metric)metric, {2.5, "auto", metric == 1, 1, 0}};
            check_frame(&what);
        }
    }
}

static void assert_same_frame(const struct bsw_manifest *a, const struct bsw_manifest *b)
{
    size_t weights = (size_t)a->layout.dims * a->layout.padded_dims;
    assert_memory_equal(&a->layout, &b->layout, sizeof a->layout);
    assert_memory_equal(bsw_saq_part_of(a)->mean, bsw_saq_part_of(b)->mean,
                        a->layout.dims * sizeof(float));
    assert_memory_equal(bsw_saq_part_of(a)->rotation, bsw_saq_part_of(b)->rotation,
                        weights * sizeof(float));
    assert_memory_equal(bsw_saq_part_of(a)->steps, bsw_saq_part_of(b)->steps,
                        sizeof bsw_saq_part_of(a)->steps);
    assert_true(a->stage_dims == b->stage_dims && a->scale_exponent == b->scale_exponent &&
                a->tail_exponent == b->tail_exponent);
}

// Twice the same bits, at every level and whatever number of BLAS threads was set before.
UNIT_TEST(frames_depend_on_data_and_seed_alone)
{
    for (int random_axes = 0; random_axes < 2; random_axes++) {
        struct frame_case what = {"synth:count=1000,dims=300,clusters=30",
                                  BSW_METRIC_COSINE,
                                  {2.5, "auto", random_axes, 7, 0}};
        struct bsw_manifest first, second, other;
        openblas_set_num_threads(2);
        train(&what, bsw_cpu_level_detect(), &first);
        for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
            openblas_set_num_threads(1 + level % 2);
            train(&what, (enum bsw_cpu_level)level, &second);
            assert_same_frame(&first, &second);
            bsw_manifest_deinit(&second);
        }
        what.training.seed = 8;
        train(&what, bsw_cpu_level_detect(), &other);
        assert_memory_equal(bsw_saq_part_of(&first)->mean, bsw_saq_part_of(&other)->mean,
                            300 * sizeof(float));
        assert_memory_not_equal(bsw_saq_part_of(&first)->rotation,
                                bsw_saq_part_of(&other)->rotation, 300 * sizeof(float));
        bsw_manifest_deinit(&first);
        bsw_manifest_deinit(&other);
    }
}

// Principal axes: segments come in the order of their energy, and with given bits their steps tell
// how uneven it is.
UNIT_TEST(principal_axes_gather_the_energy)
{
    enum { ROWS = 2000, DIMS = 64 };
    float *rows = allocate_or_fail(ROWS * DIMS, sizeof *rows);
    const struct bsw_synth synth = {.count = ROWS, .dims = DIMS, .seed = 5};
    bsw_synth_rows(&synth, 0, ROWS, rows);
    for (size_t i = 0; i < ROWS * DIMS; i++)
        rows[i] = rows[i] * (i % DIMS % 2 ? 10.0f : 1.0f) + 100.0f; // odd dims are loud
    write_fbin(path_of("loud.fbin"), rows, ROWS, DIMS);
    struct frame_case what = {path_of("loud.fbin"), BSW_METRIC_L2, {0, "32x3,32x3", 0, 1, 0}};
    struct bsw_manifest manifest;
    train(&what, bsw_cpu_level_detect(), &manifest);
    // The first segment sees odd input dimensions alone, nearly.
    double odd = 0, even = 0;
    for (uint32_t j = 0; j < DIMS; j++) {
        for (uint32_t i = 0; i < 32; i++) {
            double weight = bsw_saq_part_of(&manifest)->rotation[j * DIMS + i];
            *(j % 2 ? &odd : &even) += weight * weight;
        }
    }
    assert_true(odd > 31.9 && even < 0.1);
    // The odd dims have 100 of 101 parts of the energy: root mean squares of 1.407 and 0.1407,
    // times 0.2930.
    assert_true(fabs(bsw_saq_part_of(&manifest)->steps[0] - 0.2930 * sqrt(2 * 100 / 101.0)) <
                0.003);
    assert_true(fabs(bsw_saq_part_of(&manifest)->steps[1] - 0.2930 * sqrt(2 * 1 / 101.0)) < 0.003);
    bsw_manifest_deinit(&manifest);
    what.training.random_axes = 1;
    train(&what, bsw_cpu_level_detect(), &manifest);
    assert_true(fabs(bsw_saq_part_of(&manifest)->steps[0] - bsw_saq_part_of(&manifest)->steps[1]) <
                0.1);
    bsw_manifest_deinit(&manifest);
    bsw_free(&rows);
}

// Nothing to learn: one row, equal rows, one dimension, one row of one dimension.
UNIT_TEST(poor_samples_give_usable_frames)
{
    float rows[40 * 40];
    for (size_t i = 0; i < 1600; i++) rows[i] = 1.5f + (float)(i % 40);
    write_fbin(path_of("equal.fbin"), rows, 40, 40);
    const char *const sources[] = {path_of("equal.fbin"), "synth:count=1,dims=70",
                                   "synth:count=1,dims=1", "synth:count=50,dims=1",
                                   "synth:count=2,dims=129"};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
            for (int random_axes = 0; random_axes < 2; random_axes++) {
                const struct frame_case what = {
                    sources[i], (enum bsw_metric)metric, {3, "auto", random_axes, 1, 0}};
                check_frame(&what);
            }
        }
    }
}

UNIT_TEST(bad_segments_are_refused)
{
    static const char *const bad[] = {"32x3", "65x3", "64x9", "64x0", "x", "", "32x3,33x3"};
    bsw_vectors *vectors = open_vectors("synth:count=100,dims=64", 0, 0);
    struct bsw_sample sample = make_sample(vectors, BSW_METRIC_L2, BSW_CPU_REFERENCE);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct bsw_manifest manifest = {.metric = BSW_METRIC_L2, .codec = &bsw_codec_saq};
        const struct bsw_saq_training training = {3, bad[i], 0, 1, 0};
        assert_int_equal(bsw_train_saq_frame(&sample, &training, &manifest, &err), BSW_ERROR_USAGE);
        bsw_manifest_deinit(&manifest);
    }
    bsw_sample_deinit(&sample);
    bsw_vectors_close(&vectors);
}

// Axes of little energy: where they may have no bits, what they had goes to the others.
UNIT_TEST(bits_leave_axes_of_little_energy)
{
    double energies[96];
    struct bsw_code_layout layout;
    for (int i = 0; i < 96; i++) energies[i] = i < 32 ? 1 : 1e-3;
    assert_ok(bsw_allocate_bits(energies, 96, 1, 0, &layout, &err), &err);
    assert_true(layout.num_segments == 1 && layout.dims == 32 && layout.segments[0].bits == 3);
    for (int i = 0; i < 96; i++) energies[i] = 1;
    assert_ok(bsw_allocate_bits(energies, 96, 1, 0, &layout, &err), &err);
    assert_true(layout.num_segments == 1 && layout.dims == 96 && layout.segments[0].bits == 1);
}

UNIT_TEST(the_last_segment_may_have_no_bits)
{
    static const char *const bad[] = {"96x0",      "32x3,65x0", "32x3,63x0", "32x0,64x3",
                                      "32x3,0x0",  "32x3,-1x0", "32x3,x0",   "32x3,32x0,32x0",
                                      "32x3,96x0", "32x3,64x00"};
    struct bsw_code_layout layout;
    assert_ok(bsw_saq_parse_segments("32x3,64x0", 96, &layout, &err), &err);
    assert_true(layout.num_segments == 1 && layout.dims == 32);
    assert_ok(bsw_saq_parse_segments("32x3,1x2,63x0", 96, &layout, &err), &err);
    assert_true(layout.num_segments == 2 && layout.dims == 33);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(bsw_saq_parse_segments(bad[i], 96, &layout, &err), BSW_ERROR_USAGE);
}

// A manifest of fewer axes is read as it was written, codes and all.
UNIT_TEST(codes_of_fewer_axes_come_back)
{
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        const struct small_index what = {.source = "synth:count=300,dims=70",
                                         .codec = &bsw_codec_saq,
                                         .metric = (enum bsw_metric)metric,
                                         .segments = "33x3,37x0"};
        struct bsw_manifest manifest, again;
        make_small_index(&what, temporary_folder, &manifest);
        assert_int_equal(manifest.code_rule, BSW_SAQ_FEWER_AXES);
        assert_int_equal(bsw_manifest_format_version(&manifest), 4);
        assert_ok(bsw_manifest_read(temporary_folder, &again, &err), &err);
        assert_int_equal(bsw_manifest_row_dims(&again), 70);
        assert_int_equal(again.layout.dims, 33);
        assert_memory_equal(bsw_saq_part_of(&again)->rotation, bsw_saq_part_of(&manifest)->rotation,
                            70 * again.layout.padded_dims * sizeof(float));
        bsw_manifest_deinit(&again);
        bsw_manifest_deinit(&manifest);
    }
}

// ---- exponents ----

// The largest scale of the sample comes to lie at 2^7 to 2^8, however long the rows are, and no
// tail passes its scale.
UNIT_TEST(exponents_fit_the_sample)
{
    enum { ROWS = 200, DIMS = 48 };
    float *rows = allocate_or_fail(ROWS * DIMS, sizeof *rows);
    const struct bsw_synth synth = {.count = ROWS, .dims = DIMS, .seed = 5};
    for (int power = -50; power <= 50; power += 10) {
        bsw_synth_rows(&synth, 0, ROWS, rows);
        for (size_t i = 0; i < ROWS * DIMS; i++) rows[i] = ldexpf(rows[i], power);
        write_fbin(path_of("long.fbin"), rows, ROWS, DIMS);
        const struct small_index what = {.source = path_of("long.fbin"),
                                         .codec = &bsw_codec_saq,
                                         .metric = power % 20 == 0 ? BSW_METRIC_L2 : BSW_METRIC_IP,
                                         .segments = "32x4,16x2"};
        struct bsw_manifest manifest;
        struct plain_shard shard;
        uint16_t largest = 0;
        make_small_index(&what, temporary_folder, &manifest);
        read_plain_shard(&manifest, temporary_folder, 0, &shard);
        for (size_t r = 0; r < ROWS; r++) {
            largest = shard.scales[r] > largest ? shard.scales[r] : largest;
            assert_true(shard.scales[r] > 0 && shard.tails[r] > 0);
            assert_true(shard.tails[r] <= shard.scales[r]);
        }
        assert_true(largest >= 0x5800 && largest <= 0x5c00); // halves of 2^7 and 2^8
        free_plain_shard(&shard);
        bsw_manifest_deinit(&manifest);
    }
    bsw_free(&rows);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
