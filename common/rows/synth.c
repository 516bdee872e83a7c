// SPDX-License-Identifier: Apache-2.0
#include "common/rows/synth.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/number_parse.h"
#include "common/codes/code_layout.h"

// Component j of row i is hashed from i << 16 | j, so that no two components share a hash.
#define DIM_BITS  16
#define MAX_COUNT ((uint64_t)1 << (64 - DIM_BITS))
_Static_assert(BSW_MAX_DIMS <= 1 << DIM_BITS, "a component's number must fit");

// A sum of four uniform 16-bit numbers less its mean: standard deviation 65536 / sqrt(3).
#define SUM_MEAN  (2 * 65535)
#define SUM_SCALE 0x1p-15f

// Words of the hash that keep the streams of one seed apart.
enum stream { STREAM_NOISE = 1, STREAM_CENTRE, STREAM_CLUSTER };

struct text_span {
    const char *at;
    size_t length;
};

static enum bsw_status fail_word(struct text_span word, const char *cause, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_USAGE, "synth: '%.*s': %s",
                    (int)(word.length < 80 ? word.length : 80), word.at, cause);
}

// Returns 0 if it is not a number. Without units it is plain digits, up to 2^64 - 1: a seed.
static int parse_number(struct text_span text, int with_units, uint64_t *out)
{
    char copy[BSW_NUMBER_CHARACTERS + 1];
    uint64_t value = 0;
    if (text.length == 0 || text.length >= sizeof copy) return 0;
    memcpy(copy, text.at, text.length);
    copy[text.length] = '\0';
    if (with_units) return bsw_count_parse("", copy, out, NULL) == BSW_OK;
    for (const char *at = copy; *at; at++) {
        if (*at < '0' || *at > '9') return 0;
        if (__builtin_mul_overflow(value, (uint64_t)10, &value)) return 0;
        if (__builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) return 0;
    }
    *out = value;
    return 1;
}

static int span_is(struct text_span span, const char *text)
{
    return span.length == strlen(text) && memcmp(span.at, text, span.length) == 0;
}

enum word { WORD_COUNT, WORD_DIMS, WORD_SEED, WORD_CLUSTERS, WORD_TYPE, WORD_SPECTRUM, NUM_WORDS };

static enum bsw_status set_type(struct bsw_synth *synth, struct text_span word,
                                struct text_span value, struct bsw_error *err)
{
    if (span_is(value, "float32"))
        synth->type = BSW_VECTOR_FLOAT32;
    else if (span_is(value, "uint8"))
        synth->type = BSW_VECTOR_UINT8;
    else
        return fail_word(word, "the type is float32 or uint8", err);
    return BSW_OK;
}

enum bsw_status bsw_synth_set_spectrum(struct bsw_synth *synth, double x, const char *text,
                                       struct bsw_error *err)
{
    if (!(x >= 0 && x <= BSW_SYNTH_MAX_SPECTRUM) || x * 8 != (double)(uint32_t)(x * 8)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: a spectrum is a multiple of 0.125 from 0 to 4",
                        text);
    }
    if (x > 0 && synth->dims > BSW_SYNTH_SPECTRUM_DIMS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: a spectrum goes with up to %d dims", text,
                        BSW_SYNTH_SPECTRUM_DIMS);
    }
    synth->spectrum = (uint32_t)(x * 8);
    return BSW_OK;
}

// D or D.ddd; the range is checked when all words are known.
static enum bsw_status parse_spectrum(struct text_span word, struct text_span value, double *out,
                                      struct bsw_error *err)
{
    const char *point = memchr(value.at, '.', value.length);
    struct text_span whole = {value.at, point ? (size_t)(point - value.at) : value.length};
    uint64_t number, thousandths = 0;
    int is_good = parse_number(whole, 0, &number) && number < 1000;
    if (point) {
        struct text_span rest = {point + 1, value.length - whole.length - 1};
        is_good = is_good && rest.length <= 3 && parse_number(rest, 0, &thousandths);
        for (size_t i = rest.length; i < 3; i++) thousandths *= 10;
    }
    if (!is_good) return fail_word(word, "not a number like 0.625", err);
    *out = (double)(number * 1000 + thousandths) / 1000;
    return BSW_OK;
}

static enum bsw_status set_word(struct bsw_synth *synth, enum word which, struct text_span word,
                                struct text_span value, double *spectrum, struct bsw_error *err)
{
    uint64_t number;
    if (which == WORD_SPECTRUM) return parse_spectrum(word, value, spectrum, err);
    if (which == WORD_TYPE) return set_type(synth, word, value, err);
    if (!parse_number(value, which != WORD_SEED, &number))
        return fail_word(word, "not a number", err);
    switch (which) {
    case WORD_COUNT:
        if (number < 1 || number > MAX_COUNT) return fail_word(word, "1 to 2^48 rows", err);
        synth->count = number;
        break;
    case WORD_DIMS:
        if (number < 1 || number > BSW_MAX_DIMS) return fail_word(word, "1 to 65536 dims", err);
        synth->dims = (uint32_t)number;
        break;
    case WORD_CLUSTERS:
        if (number > UINT32_MAX) return fail_word(word, "0 to 2^32 - 1 clusters", err);
        synth->clusters = (uint32_t)number;
        break;
    default:
        synth->seed = number;
    }
    return BSW_OK;
}

// One NAME=VALUE; `seen` has a bit for each word that was there.
static enum bsw_status parse_word(struct bsw_synth *synth, struct text_span word, unsigned *seen,
                                  double *spectrum, struct bsw_error *err)
{
    static const char *const names[NUM_WORDS] = {"count",    "dims", "seed",
                                                 "clusters", "type", "spectrum"};
    const char *equals = memchr(word.at, '=', word.length);
    struct text_span name = {word.at, equals ? (size_t)(equals - word.at) : word.length};
    unsigned which = 0;
    while (which < NUM_WORDS && !span_is(name, names[which])) which++;
    if (which == NUM_WORDS)
        return fail_word(word, "count, dims, seed, clusters, type and spectrum are known", err);
    if (!equals) return fail_word(word, "has no value", err);
    if (*seen >> which & 1) return fail_word(word, "given twice", err);
    *seen |= 1u << which;
    struct text_span value = {equals + 1, word.length - name.length - 1};
    return set_word(synth, (enum word)which, word, value, spectrum, err);
}

enum bsw_status bsw_synth_parse(const char *text, struct bsw_synth *out, struct bsw_error *err)
{
    struct bsw_synth synth = {.seed = 1, .type = BSW_VECTOR_FLOAT32};
    unsigned seen = 0;
    double spectrum = 0;
    for (const char *at = text;;) {
        struct text_span word = {at, strcspn(at, ",")};
        BSW_TRY(parse_word(&synth, word, &seen, &spectrum, err));
        at += word.length;
        if (!*at) break;
        at++;
    }
    if (!(seen >> WORD_COUNT & 1) || !(seen >> WORD_DIMS & 1)) {
        return bsw_fail(err, BSW_ERROR_USAGE, "synth:%.80s: count=N and dims=D must be there",
                        text);
    }
    BSW_TRY(bsw_synth_set_spectrum(&synth, spectrum, text, err));
    *out = synth;
    return BSW_OK;
}

static uint64_t stream_key(uint64_t seed, enum stream stream)
{
    return bsw_hash2(seed, stream);
}

// The sum of the four quarters of a hash, less its mean: two quarters at a time, then both halves.
static int32_t spread(uint64_t hash)
{
    const uint64_t quarters = 0x0000ffff0000ffffu;
    uint64_t pairs = (hash & quarters) + (hash >> 16 & quarters);
    return (int32_t)((uint32_t)pairs + (uint32_t)(pairs >> 32)) - SUM_MEAN;
}

// Where a row's numbers come from: the hash keys with row and cluster folded in.
struct row_keys {
    uint64_t noise;
    uint64_t centre;
    int is_clustered;
};

static struct row_keys row_keys(const struct bsw_synth *synth, uint64_t row)
{
    struct row_keys keys = {.noise = stream_key(synth->seed, STREAM_NOISE) ^ row << DIM_BITS};
    if (synth->clusters > 0) {
        uint64_t cluster =
            bsw_hash(stream_key(synth->seed, STREAM_CLUSTER) ^ row) % synth->clusters;
        keys.centre = stream_key(synth->seed, STREAM_CENTRE) ^ cluster << DIM_BITS;
        keys.is_clustered = 1;
    }
    return keys;
}

// An exact integer, at most 6 * 65535 from 0, so that float holds it too. Centres spread twice as
// far as the noise round them: nearest neighbours then share a cluster.
static int32_t component(struct row_keys keys, uint32_t dim)
{
    int32_t sum = spread(bsw_hash(keys.noise ^ dim));
    return keys.is_clustered ? sum + 2 * spread(bsw_hash(keys.centre ^ dim)) : sum;
}

static void fill_float32(struct row_keys keys, uint32_t dims, float *out)
{
    for (uint32_t j = 0; j < dims; j++) out[j] = (float)component(keys, j) * SUM_SCALE;
}

// Mean 128, standard deviation 37 without clusters and 41 with: the halved step keeps clipping
// rare.
static uint8_t to_uint8(struct row_keys keys, int64_t sum)
{
    int shift = keys.is_clustered ? 11 : 10;
    int64_t top = ((int64_t)256 << shift) - 1, value = sum + ((int64_t)128 << shift);
    return (uint8_t)((value < 0 ? 0 : value > top ? top : value) >> shift);
}

static void fill_uint8(struct row_keys keys, uint32_t dims, uint8_t *out)
{
    for (uint32_t j = 0; j < dims; j++) out[j] = to_uint8(keys, component(keys, j));
}

// ---- spectrum ----

// Weights are integers of this unit; a row's mixed sums stay below 2^19 * 2^24 * sqrt(4096) = 2^49.
#define WEIGHT_BITS 24

struct spectrum {
    uint32_t places[BSW_SYNTH_SPECTRUM_DIMS]; // where component i goes before mixing
    int64_t weights[BSW_SYNTH_SPECTRUM_DIMS];
};

// The largest power of two that is part of `left`: the blocks that dims consist of, in descending
// order.
static uint32_t next_block(uint32_t left)
{
    uint32_t size = 1;
    while (size <= left / 2) size *= 2;
    return size;
}

// Deals the components to the blocks in turn, each as many as it has room: the next one goes where
// the smallest part of the room is taken. sizes[i]: of the block that component i is in.
static void deal_components(uint32_t dims, uint32_t *places, double *sizes)
{
    uint32_t starts[32], size_of[32], taken[32] = {0}, num_blocks = 0;
    for (uint32_t start = 0; start < dims; start += size_of[num_blocks++]) {
        starts[num_blocks] = start;
        size_of[num_blocks] = next_block(dims - start);
    }
    for (uint32_t i = 0; i < dims; i++) {
        uint32_t best = 0;
        for (uint32_t b = 1; b < num_blocks; b++) {
            if ((uint64_t)taken[b] * size_of[best] < (uint64_t)taken[best] * size_of[b]) best = b;
        }
        places[i] = starts[best] + taken[best]++;
        sizes[i] = size_of[best];
    }
}

// i^-X, X in eighths: no libm, so that the bits are the same everywhere.
static double negative_power(uint32_t i, uint32_t eighths)
{
    double root = sqrt(sqrt(sqrt((double)i))), power = 1.0;
    for (uint32_t n = 0; n < eighths; n++) power *= root;
    return 1.0 / power;
}

// A block of n butterflies gives sqrt(n) times what it gets, which the weights take back.
static void spectrum_init(const struct bsw_synth *synth, struct spectrum *out)
{
    double powers[BSW_SYNTH_SPECTRUM_DIMS], sizes[BSW_SYNTH_SPECTRUM_DIMS], energy = 0;
    deal_components(synth->dims, out->places, sizes);
    for (uint32_t i = 0; i < synth->dims; i++) {
        powers[i] = negative_power(i + 1, synth->spectrum);
        energy += powers[i] * powers[i];
    }
    for (uint32_t i = 0; i < synth->dims; i++) {
        double weight = powers[i] * sqrt((double)synth->dims / (energy * sizes[i]));
        out->weights[i] = (int64_t)(weight * (1 << WEIGHT_BITS) + 0.5);
    }
}

// Walsh-Hadamard butterflies over each power of two that dims is the sum of.
static void mix(int64_t *numbers, uint32_t dims)
{
    for (uint32_t start = 0, size; start < dims; start += size) {
        size = next_block(dims - start);
        for (uint32_t half = 1; half < size; half *= 2) {
            for (uint32_t at = start; at < start + size; at += 2 * half) {
                for (uint32_t i = at; i < at + half; i++) {
                    int64_t a = numbers[i], b = numbers[i + half];
                    numbers[i] = a + b;
                    numbers[i + half] = a - b;
                }
            }
        }
    }
}

static void fill_mixed(const struct bsw_synth *synth, const struct spectrum *spectrum,
                       struct row_keys keys, void *out)
{
    int64_t numbers[BSW_SYNTH_SPECTRUM_DIMS];
    for (uint32_t i = 0; i < synth->dims; i++)
        numbers[spectrum->places[i]] = component(keys, i) * spectrum->weights[i];
    mix(numbers, synth->dims);
    for (uint32_t j = 0; j < synth->dims; j++) {
        if (synth->type == BSW_VECTOR_UINT8)
            ((uint8_t *)out)[j] = to_uint8(keys, numbers[j] >> WEIGHT_BITS);
        else
            ((float *)out)[j] = (float)numbers[j] * (SUM_SCALE / (1 << WEIGHT_BITS));
    }
}

static void fill_mixed_rows(const struct bsw_synth *synth, uint64_t first_row, size_t num_rows,
                            void *out)
{
    struct spectrum spectrum;
    size_t row_bytes = synth->dims * bsw_vector_type_bytes(synth->type);
    spectrum_init(synth, &spectrum);
    for (size_t i = 0; i < num_rows; i++) {
        fill_mixed(synth, &spectrum, row_keys(synth, first_row + i),
                   (unsigned char *)out + i * row_bytes);
    }
}

void bsw_synth_rows(const struct bsw_synth *synth, uint64_t first_row, size_t num_rows, void *out)
{
    if (synth->spectrum > 0) {
        fill_mixed_rows(synth, first_row, num_rows, out);
        return;
    }
    for (size_t i = 0; i < num_rows; i++) {
        struct row_keys keys = row_keys(synth, first_row + i);
        if (synth->type == BSW_VECTOR_UINT8)
            fill_uint8(keys, synth->dims, (uint8_t *)out + i * synth->dims);
        else
            fill_float32(keys, synth->dims, (float *)out + i * synth->dims);
    }
}
