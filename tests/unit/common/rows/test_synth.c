// SPDX-License-Identifier: Apache-2.0
// Generated vectors: fixed bits, right statistics, strict words.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/code_layout.h"
#include "common/rows/synth.h"
#include "unit_test.h"

static struct bsw_error err;

static struct bsw_synth synth_of(const char *text)
{
    struct bsw_synth synth;
    if (bsw_synth_parse(text, &synth, &err) != BSW_OK) fail_msg("%s: %s", text, err.message);
    return synth;
}

UNIT_TEST(words_are_parsed_in_any_order)
{
    struct bsw_synth synth = synth_of("count=1G,dims=96");
    assert_true(synth.count == 1000000000 && synth.dims == 96 && synth.seed == 1);
    assert_true(synth.clusters == 0 && synth.type == BSW_VECTOR_FLOAT32);
    synth = synth_of("type=uint8,clusters=2K,seed=18446744073709551615,dims=65536,count=3M");
    assert_true(synth.count == 3000000 && synth.dims == BSW_MAX_DIMS && synth.clusters == 2000);
    assert_true(synth.seed == UINT64_MAX && synth.type == BSW_VECTOR_UINT8);
    synth = synth_of("count=281474976710656,dims=1K,seed=0,type=float32");
    assert_true(synth.count == (uint64_t)1 << 48 && synth.dims == 1000 && synth.seed == 0);
    assert_true(synth.spectrum == 0);
    assert_int_equal(synth_of("count=1_000,dims=5").count, 1000);
    assert_int_equal(synth_of("count=1e9,dims=5").count, 1000000000);
    assert_int_equal(synth_of("count=2Gi,dims=1Ki").count, (uint64_t)1 << 31);
    assert_int_equal(synth_of("count=1.5M,dims=5").count, 1500000);
    assert_int_equal(synth_of("spectrum=0.625,count=1,dims=9").spectrum, 5);
    assert_int_equal(synth_of("count=1,dims=4096,spectrum=4").spectrum, 32);
    assert_int_equal(synth_of("count=1,dims=9,spectrum=1.5").spectrum, 12);
    assert_int_equal(synth_of("count=1,dims=65536,spectrum=0.0").spectrum, 0);
}

UNIT_TEST(wrong_words_are_refused_by_name)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "'': count, dims, seed, clusters, type and spectrum are known"},
        {"count=5", "count=5: count=N and dims=D must be there"},
        {"dims=5", "count=N and dims=D must be there"},
        {"count=5,dims=5,", "'': count, dims"},
        {",count=5,dims=5", "'': count, dims"},
        {"count=5,,dims=5", "'': count, dims"},
        {"count=5 ,dims=5", "'count=5 ': not a number"},
        {"count=5,dims=5,count=6", "'count=6': given twice"},
        {"count=5,dims=5,foo=6", "'foo=6': count, dims"},
        {"count,dims=5", "'count': has no value"},
        {"count=,dims=5", "'count=': not a number"},
        {"count=K,dims=5", "'count=K': not a number"},
        {"count=5T,dims=5", "'count=5T': not a number"},
        {"count=5KK,dims=5", "'count=5KK': not a number"},
        {"count=-5,dims=5", "'count=-5': not a number"},
        {"count=1.5,dims=5", "'count=1.5': not a number"},
        {"count=1_,dims=5", "'count=1_': not a number"},
        {"count=0x10,dims=5", "'count=0x10': not a number"},
        {"count=18446744073709551616,dims=5", "not a number"},
        {"count=18446744073709551615K,dims=5", "not a number"},
        {"count=281474976710657,dims=5", "1 to 2^48 rows"},
        {"count=0,dims=5", "'count=0': 1 to 2^48 rows"},
        {"count=5,dims=0", "'dims=0': 1 to 65536 dims"},
        {"count=5,dims=65537", "'dims=65537': 1 to 65536 dims"},
        {"count=5,dims=5,clusters=4294967296", "0 to 2^32 - 1 clusters"},
        {"count=5,dims=5,seed=1K", "'seed=1K': not a number"},
        {"count=5,dims=5,type=int8", "'type=int8': the type is float32 or uint8"},
        {"count=5,dims=5,type=", "'type=': the type is"},
        {"count=5,dims=5,spectrum=", "'spectrum=': not a number like 0.625"},
        {"count=5,dims=5,spectrum=.5", "'spectrum=.5': not a number"},
        {"count=5,dims=5,spectrum=1.", "'spectrum=1.': not a number"},
        {"count=5,dims=5,spectrum=-1", "'spectrum=-1': not a number"},
        {"count=5,dims=5,spectrum=0.6250", "not a number"},
        {"count=5,dims=5,spectrum=0.7", "spectrum=0.7: a spectrum is a multiple of 0.125"},
        {"count=5,dims=5,spectrum=4.125", "from 0 to 4"},
        {"spectrum=1,count=5,dims=4097", "a spectrum goes with up to 4096 dims"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bsw_synth synth = {.dims = 77};
        assert_int_equal(bsw_synth_parse(cases[i].text, &synth, &err), BSW_ERROR_USAGE);
        assert_int_equal(synth.dims, 77);
        if (!strstr(err.message, cases[i].message))
            fail_msg("'%s' gives '%s'", cases[i].text, err.message);
    }
}

struct golden {
    uint64_t seed;
    uint32_t clusters;
    uint64_t row;
    int numbers[4]; // float32 is this times 2^-15
    uint8_t bytes[4];
};

// Computed once apart from this code, in integers of any length.
static const struct golden golden_rows[] = {
    {1, 0, 0, {-52408, 31947, -13073, 46642}, {76, 159, 115, 173}},
    {1, 0, 1000000000, {-37966, -44058, -22260, 14698}, {90, 84, 106, 142}},
    {1, 100, 0, {-120542, -88253, 60137, -94540}, {69, 84, 157, 81}},
    {1, 100, 1000000000, {-42254, -70738, 104256, 76320}, {107, 93, 178, 165}},
    {2, 0, 0, {42286, 15391, -2449, 36659}, {169, 143, 125, 163}},
    {2, 0, 1000000000, {47047, -8150, 83497, -2986}, {173, 120, 209, 125}},
    {2, 100, 0, {19816, -130171, 77153, 140455}, {137, 64, 165, 196}},
    {2, 100, 1000000000, {35435, -60368, 62195, -132242}, {145, 98, 158, 63}},
};

UNIT_TEST(first_numbers_are_golden)
{
    for (size_t i = 0; i < sizeof golden_rows / sizeof golden_rows[0]; i++) {
        const struct golden *golden = &golden_rows[i];
        struct bsw_synth synth = {.count = 1,
                                  .dims = 4,
                                  .seed = golden->seed,
                                  .clusters = golden->clusters,
                                  .type = BSW_VECTOR_FLOAT32};
        float numbers[4];
        uint8_t bytes[4];
        bsw_synth_rows(&synth, golden->row, 1, numbers);
        synth.type = BSW_VECTOR_UINT8;
        bsw_synth_rows(&synth, golden->row, 1, bytes);
        for (size_t j = 0; j < 4; j++) {
            assert_true(numbers[j] == (float)golden->numbers[j] * 0x1p-15f);
            assert_int_equal(bytes[j], golden->bytes[j]);
        }
    }
}

#define FINGERPRINT_ROWS 100
#define FINGERPRINT_DIMS 33

UNIT_TEST(many_numbers_have_a_golden_fingerprint)
{
    static const struct {
        uint32_t clusters;
        uint64_t numbers;
        uint64_t bytes;
    } golden[] = {{0, 0x6007467d3a76a62fu, 0x38f491e7c349bf6au},
                  {7, 0x1602e3a66a340ec3u, 0x86f656086277e6e5u}};
    static float numbers[FINGERPRINT_ROWS * FINGERPRINT_DIMS];
    static uint8_t bytes[FINGERPRINT_ROWS * FINGERPRINT_DIMS];
    for (size_t i = 0; i < 2; i++) {
        struct bsw_synth synth = {
            .count = 100, .dims = FINGERPRINT_DIMS, .seed = 1, .clusters = golden[i].clusters};
        uint64_t of_numbers = 0, of_bytes = 0;
        synth.type = BSW_VECTOR_FLOAT32;
        bsw_synth_rows(&synth, 0, FINGERPRINT_ROWS, numbers);
        synth.type = BSW_VECTOR_UINT8;
        bsw_synth_rows(&synth, 0, FINGERPRINT_ROWS, bytes);
        for (size_t j = 0; j < FINGERPRINT_ROWS * FINGERPRINT_DIMS; j++) {
            of_numbers = bsw_hash(of_numbers ^ (uint64_t)(int64_t)(numbers[j] * 0x1p15f));
            of_bytes = bsw_hash(of_bytes ^ bytes[j]);
        }
        assert_true(of_numbers == golden[i].numbers);
        assert_true(of_bytes == golden[i].bytes);
    }
}

// Computed once apart from this code: integers of any length, sums of signs in place of
// butterflies.
UNIT_TEST(spectra_are_golden)
{
    static const struct {
        const char *text;
        uint64_t row;
        uint32_t numbers[7]; // bits of the floats
        uint8_t bytes[7];
    } golden[] = {
        {"count=1,dims=4,spectrum=0.625",
         0,
         {0xbed659ad, 0xc00e9728, 0xbf806d74, 0xbf86c55a},
         {114, 56, 95, 94}},
        {"count=1,dims=6,spectrum=1,clusters=100",
         1000000000,
         {0x3de47569, 0xbfc3d8f4, 0xbf121d2f, 0xc04bbf84, 0xbf589fba, 0xc00dcb96},
         {129, 103, 118, 77, 114, 92}},
        {"count=1,dims=7,spectrum=1.5,clusters=7,seed=2",
         3,
         {0x409057a9, 0x40b46959, 0x40ad2f94, 0x40ca0807, 0x3f9b66b9, 0x3fa6eac6, 0x3e46dd1c},
         {200, 218, 214, 229, 147, 148, 131}},
    };
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        struct bsw_synth synth = synth_of(golden[i].text);
        float numbers[7];
        uint8_t bytes[7];
        bsw_synth_rows(&synth, golden[i].row, 1, numbers);
        synth.type = BSW_VECTOR_UINT8;
        bsw_synth_rows(&synth, golden[i].row, 1, bytes);
        assert_memory_equal(numbers, golden[i].numbers, synth.dims * sizeof(float));
        assert_memory_equal(bytes, golden[i].bytes, synth.dims);
    }
}

UNIT_TEST(a_spectrum_of_two_blocks_has_a_golden_fingerprint)
{
    static uint32_t numbers[20 * 96];
    static uint8_t bytes[20 * 96];
    uint64_t of_numbers = 0, of_bytes = 0;
    struct bsw_synth synth = synth_of("count=20,dims=96,clusters=7,spectrum=0.625");
    bsw_synth_rows(&synth, 0, 20, numbers);
    synth.type = BSW_VECTOR_UINT8;
    bsw_synth_rows(&synth, 0, 20, bytes);
    for (size_t i = 0; i < 20 * 96; i++) {
        of_numbers = bsw_hash(of_numbers ^ numbers[i]);
        of_bytes = bsw_hash(of_bytes ^ bytes[i]);
    }
    assert_true(of_numbers == 0x4a9914decaaae1dbu);
    assert_true(of_bytes == 0x1400450fea4a9780u);
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

#define SPECTRUM_ROWS 4000
#define SPECTRUM_DIMS 96

// Component c of block `start` (a power of two long) is a sum of the block with signs, and those
// sums have the energies that were asked for.
static double component_energy(const float *rows, size_t start, size_t size, size_t c)
{
    double energy = 0;
    for (size_t r = 0; r < SPECTRUM_ROWS; r++) {
        double sum = 0;
        for (size_t j = 0; j < size; j++) {
            double x = rows[r * SPECTRUM_DIMS + start + j];
            sum += __builtin_parity((unsigned)(c & j)) ? -x : x;
        }
        energy += sum * sum / (double)size;
    }
    return energy / SPECTRUM_ROWS;
}

UNIT_TEST(energies_decay_as_asked)
{
    static float rows[SPECTRUM_ROWS * SPECTRUM_DIMS];
    double energies[SPECTRUM_DIMS], total = 0, wanted = 0;
    struct bsw_synth synth = synth_of("count=4000,dims=96,spectrum=0.75");
    bsw_synth_rows(&synth, 0, SPECTRUM_ROWS, rows);
    for (size_t i = 0; i < SPECTRUM_DIMS; i++) {
        energies[i] =
            i < 64 ? component_energy(rows, 0, 64, i) : component_energy(rows, 64, 32, i - 64);
        total += energies[i];
        wanted += pow((double)i + 1, -1.5);
    }
    qsort(energies, SPECTRUM_DIMS, sizeof(double), descending);
    assert_true(total > 0.95 * 96 * 4 / 3 && total < 1.05 * 96 * 4 / 3);
    for (size_t i = 0; i < SPECTRUM_DIMS; i++) {
        double share = energies[i] / total, expected = pow((double)i + 1, -1.5) / wanted;
        assert_true(share > 0.88 * expected && share < 1.12 * expected);
    }
}

UNIT_TEST(blocks_give_what_the_whole_gives)
{
    static float whole[1000 * 13], part[1000 * 13];
    struct bsw_synth synth = synth_of("count=1000,dims=13,clusters=5,seed=9");
    for (synth.spectrum = 0; synth.spectrum < 2; synth.spectrum++) {
        bsw_synth_rows(&synth, 0, 1000, whole);
        for (size_t row = 0, rows = 1; row < 1000; row += rows, rows = rows % 37 + 1) {
            if (rows > 1000 - row) rows = 1000 - row;
            bsw_synth_rows(&synth, row, rows, part);
            assert_memory_equal(part, whole + row * 13, rows * 13 * sizeof(float));
        }
    }
}

UNIT_TEST(seeds_and_rows_differ)
{
    static float one[500 * 20], two[500 * 20];
    struct bsw_synth synth = synth_of("count=1000,dims=20,seed=1");
    bsw_synth_rows(&synth, 0, 500, one);
    size_t equal_rows = 0, equal_seeds = 0;
    bsw_synth_rows(&synth, 500, 500, two);
    for (size_t i = 0; i < 500 * 20; i++) equal_rows += one[i] == two[i];
    synth.seed = 2;
    bsw_synth_rows(&synth, 0, 500, two);
    for (size_t i = 0; i < 500 * 20; i++) equal_seeds += one[i] == two[i];
    assert_in_range(equal_rows, 0, 10);
    assert_in_range(equal_seeds, 0, 10);
}

UNIT_TEST(mean_and_spread_are_as_stated)
{
    static float numbers[2000 * 64];
    static const struct {
        const char *text;
        double variance;
    } cases[] = {{"count=2000,dims=64", 4.0 / 3}, {"count=2000,dims=64,clusters=1M", 20.0 / 3}};
    for (size_t i = 0; i < 2; i++) {
        struct bsw_synth synth = synth_of(cases[i].text);
        bsw_synth_rows(&synth, 0, 2000, numbers);
        double sum = 0, squares = 0;
        for (size_t j = 0; j < 2000 * 64; j++) {
            sum += numbers[j];
            squares += (double)numbers[j] * numbers[j];
        }
        double mean = sum / (2000 * 64), variance = squares / (2000 * 64);
        assert_true(mean > -0.03 && mean < 0.03);
        assert_true(variance > 0.97 * cases[i].variance && variance < 1.03 * cases[i].variance);
    }
}

// Pairs of one cluster are about 64 * 2 * 4/3 = 171 apart (squared), others five times that.
UNIT_TEST(rows_of_a_cluster_are_near)
{
    static float rows[300][64];
    struct bsw_synth synth = synth_of("count=300,dims=64,clusters=10,seed=3");
    bsw_synth_rows(&synth, 0, 300, rows);
    size_t near = 0, between = 0, pairs = 300 * 299;
    for (size_t a = 0; a < 300; a++) {
        size_t near_a = 0;
        for (size_t b = 0; b < 300; b++) {
            double distance = 0;
            for (size_t j = 0; j < 64; j++) {
                double difference = (double)rows[a][j] - rows[b][j];
                distance += difference * difference;
            }
            near_a += a != b && distance < 340;
            between += distance >= 340 && distance < 420;
        }
        assert_true(near_a >= 1);
        near += near_a;
    }
    assert_true(near > pairs / 14 && near < pairs / 7);
    assert_true(between < pairs / 500);
}

UNIT_TEST(bytes_are_the_numbers_shifted_and_clipped)
{
    static float numbers[2000 * 64];
    static uint8_t bytes[2000 * 64];
    for (uint32_t clusters = 0; clusters <= 50; clusters += 50) {
        struct bsw_synth synth = synth_of("count=2000,dims=64,seed=5");
        synth.clusters = clusters;
        bsw_synth_rows(&synth, 0, 2000, numbers);
        synth.type = BSW_VECTOR_UINT8;
        bsw_synth_rows(&synth, 0, 2000, bytes);
        size_t clipped = 0, low = 0, high = 0;
        for (size_t i = 0; i < 2000 * 64; i++) {
            double value = (double)numbers[i] * (clusters ? 16 : 32) + 128;
            clipped += value < 0 || value >= 256;
            value = value < 0 ? 0 : value > 255 ? 255 : value;
            assert_int_equal(bytes[i], (uint8_t)value);
            low += bytes[i] < 64;
            high += bytes[i] > 192;
        }
        assert_true(clipped < 2000 * 64 / 100);
        assert_true(low > 1000 && high > 1000);
    }
}

UNIT_TEST(rows_beyond_count_share_the_clusters)
{
    struct bsw_synth few = synth_of("count=10,dims=8,clusters=3"), many = few;
    float one[8], two[8];
    many.count = 1000;
    bsw_synth_rows(&few, 500, 1, one);
    bsw_synth_rows(&many, 500, 1, two);
    assert_memory_equal(one, two, sizeof one);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
