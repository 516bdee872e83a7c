// SPDX-License-Identifier: Apache-2.0
// Vectors on which a screened product, or a value in too few bits, tells rows apart badly, for
// check_truth_definition.sh and check_fuzzed_searches.sh.
//
//   hostile_rows KIND ROWS QUERIES DIMS BASE QUERIES_OUT [SEED]   files by their endings: .fbin,
//   .npy (f2), .u8bin, .i8bin
//
// Kinds:
//   copies   a few vectors, each many times over, in runs and scattered
//   parts    copies but for shares of 1e-7 of some numbers
//   units    copies but for a unit in the last place of one number
//   large    squared norms just below the largest that are taken; of half precision, its largest
//   mixed    rows of all sizes, from below the normal numbers up, and both in one row
//   zeros    -0, 0, and numbers that sum up to 0
//   far      far from the origin and near to each other
//   between  rows and queries half way between two codes, every error on the same side
//   noise3   copies but for noise of 1e-3 in every number
//   noise6   the same of 1e-6
//   steps    the largest bytes, and a last one that counts up: sums that differ by one unit
//   heavy    bytes near the largest: sums of long rows beyond 2^24, near to each other
//   scaled   copies of whole numbers times 1, 2, 3 and -1 (unsigned: 5): one cosine; of floats up
//   to
//            roundings
//   broken   numbers of their own; in every 13th row NaN or Inf, or only zeros (integers: zeros)
//   plain    numbers of their own
// Numbers are cut to what a type holds; integers take one apart where floats take a share.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/half.h"

enum kind {
    COPIES,
    PARTS,
    UNITS,
    LARGE,
    MIXED,
    ZEROS,
    FAR,
    BETWEEN,
    NOISE3,
    NOISE6,
    STEPS,
    HEAVY,
    SCALED,
    BROKEN,
    PLAIN,
    NUM_KINDS
};
static const char *const kind_names[NUM_KINDS] = {"copies", "parts", "units",   "large",  "mixed",
                                                  "zeros",  "far",   "between", "noise3", "noise6",
                                                  "steps",  "heavy", "scaled",  "broken", "plain"};
enum type { FLOAT32, FLOAT16, UINT8, INT8, NUM_TYPES };
static const char *const endings[NUM_TYPES] = {".fbin", ".npy", ".u8bin", ".i8bin"};
static const size_t type_bytes[NUM_TYPES] = {4, 2, 1, 1};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "hostile_rows: %s: %s\n", what, detail);
    exit(1);
}

static uint64_t seed = 1; // of all that is drawn

// In -1 .. 1, of 24 bits.
static float uniform(uint64_t of, uint64_t i)
{
    return (float)((double)(bsw_hash2(of, i) >> 40) * 0x1p-23 - 1.0);
}

// A number of the vector that the row with this hash shares with others.
static float shared_number(uint64_t hash, uint64_t d)
{
    return uniform(hash % 5 + 5 * (seed - 1), d);
}

// Number d of the row with this hash, in -1 .. 1 but for `mixed` and `far`.
static float number_of(enum kind kind, uint64_t hash, size_t d, size_t dims)
{
    float shared = shared_number(hash, d), own = uniform(hash, d);
    switch (kind) {
    case COPIES:
        return shared;
    case PARTS:
        return shared * (1.0f + 1e-7f * (float)(int)(bsw_hash2(hash, d) % 5));
    case UNITS:
        return d == hash / 8 % dims ? nextafterf(shared, hash % 2 ? 2.0f : -2.0f) : shared;
    case LARGE:
        return d % 7 == hash % 7 ? shared : copysignf(1.0f, shared);
    case MIXED:
        return ldexpf(own, (int)(hash % 174) - 120 + (d % 4 == 0 ? (int)(hash % 13) - 6 : 0));
    case ZEROS:
        return hash % 11 == 0 || d % 3 == 0 ? copysignf(0.0f, own)
               : d % 3 == 1                 ? shared
                                            : -shared_number(hash, d - 1);
    case FAR:
        return 1000.0f + 0.001f * own;
    case NOISE3:
        return shared + 1e-3f * own;
    case NOISE6:
        return shared + 1e-6f * own;
    case BROKEN:
        if (hash % 13 != 0) return own;
        if (hash % 3 == 0) return 0.0f;
        return d != hash / 39 % dims ? own : hash % 3 == 1 ? NAN : INFINITY;
    case PLAIN:
        return own;
    default: // the largest number is 1: codes are 2/255 apart
        return d == 0 ? 1.0f
                      : (2.0f * (float)(int)(bsw_hash2(hash % 400, d) % 125) - 119.98f) / 255.0f;
    }
}

// Queries: copies of rows and vectors of their own, of `between` half way between their own codes.
// None is as good as zero, which is refused under cosine.
static float query_number(enum kind kind, uint64_t query, size_t d, size_t dims)
{
    if (kind == BETWEEN && query % 3 != 2)
        return d == 0 ? 1.0f : ((float)(bsw_hash2(query, d) % 120) + 0.49f) / 127.0f;
    uint64_t hash = bsw_hash2(seed, query % 2 ? 17 * query : 100000 + query);
    if (kind == MIXED) return ldexpf(uniform(hash, d), (int)(hash % 70) - 20);
    if (kind == ZEROS && dims == 1) return 1.0f;
    if (kind == ZEROS && hash % 11 == 0) hash++;
    return number_of(kind == BROKEN ? PLAIN : kind, hash, d, dims);
}

// Kinds whose numbers are whole in every type. Floats get bytes, of `scaled` with signs.
static int is_whole(enum kind kind)
{
    return kind == STEPS || kind == HEAVY || kind == SCALED;
}

static long whole_number(enum kind kind, enum type type, int is_query, uint64_t row, size_t d,
                         size_t dims)
{
    static const int factors[4] = {1, 2, 3, -1};
    long most = type == INT8 ? 127 : 255, least = type == INT8 ? -128 : 0;
    uint64_t hash = bsw_hash2(seed, is_query ? 100000 + row : row), drawn = bsw_hash2(hash, d);
    if (kind == STEPS && d + 1 == dims)
        return is_query ? 1 + (long)(row % 3) : least + (long)(row % 256);
    if (kind == STEPS) return most;
    if (kind == HEAVY) return most - (long)(is_query ? drawn % 3 : drawn % 64 == 0);
    long shared = lrintf(40.0f * shared_number(hash, d)), factor = factors[hash / 5 % 4];
    if (d == 0 && shared == 0) shared = 1; // no row of zeros
    return type == UINT8 ? labs(shared) * (factor < 0 ? 5 : factor) : shared * factor;
}

// Integers: 0 to 3 where floats are zero, else spread over the range.
static long whole_of(enum kind kind, float number, enum type type, uint64_t hash, size_t d)
{
    long most = type == UINT8 ? 255 : 127, least = type == UINT8 ? 0 : -128;
    if (!isfinite(number)) return 0;
    double spread = kind == ZEROS ? 3.0 : kind == FAR ? 1.0 : (double)most;
    double value = kind == FAR ? (double)most - (double)(bsw_hash2(hash, d) % 2)
                               : rint((double)fmodf(number, 1.5f) * spread);
    if (type == UINT8) value = fabs(value);
    if (kind == PARTS || kind == UNITS || kind == NOISE3 || kind == NOISE6)
        value += (double)(bsw_hash2(hash, d) % 40 == 0);
    if (kind == LARGE) value = number > 0.0f ? (double)most : (double)least;
    return value < (double)least ? least : value > (double)most ? most : (long)value;
}

static uint16_t half_of(float number)
{
    if (isnan(number)) return 0x7e00;
    if (isinf(number)) return 0x7c00;
    return (uint16_t)(bsw_half_nearest(fmin(fabs((double)number), 65504.0)) |
                      (signbit(number) ? 0x8000 : 0));
}

static void put_number(enum kind kind, enum type type, float number, long whole, size_t dims,
                       unsigned char *out)
{
    uint16_t half;
    switch (type) {
    case FLOAT32: // squares of a row add up to 1e37 at most
        if (kind == LARGE) number *= (float)(3.16e18 / sqrt((double)dims));
        memcpy(out, &number, sizeof number);
        return;
    case FLOAT16:
        if (kind == LARGE) number *= 65504.0f;
        half = half_of(number);
        memcpy(out, &half, sizeof half);
        return;
    default:
        *out = (unsigned char)whole;
    }
}

static void put_row_number(enum kind kind, enum type type, int is_query, uint64_t row, size_t d,
                           size_t dims, unsigned char *out)
{
    // Runs of a vector, over blocks and cuts between ranks.
    uint64_t hash = bsw_hash2(seed, kind == COPIES && row % 300 > 200 ? 1 : row);
    float number = is_query ? query_number(kind, row, d, dims) : number_of(kind, hash, d, dims);
    long whole = type >= UINT8 ? whole_of(kind, number, type, hash, d) : 0;
    if (is_whole(kind)) number = (float)(whole = whole_number(kind, type, is_query, row, d, dims));
    put_number(kind, type, number, whole, dims, out);
}

// A first number that is not zero, so that no query is.
static void avoid_zero(enum kind kind, enum type type, unsigned char *out)
{
    static const uint16_t one = 0x3c00;
    if (type >= UINT8 && out[0] == 0) out[0] = 1;
    if (type == FLOAT16 && kind == MIXED && out[0] == 0 && (out[1] & 0x7f) == 0)
        memcpy(out, &one, sizeof one);
}

static void write_head(FILE *file, enum type type, size_t rows, size_t dims)
{
    const uint32_t counts[2] = {(uint32_t)rows, (uint32_t)dims};
    char head[128];
    if (type != FLOAT16) {
        fwrite(counts, sizeof counts, 1, file);
        return;
    }
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    char text[100];
    int length =
        snprintf(text, sizeof text,
                 "{'descr': '<f2', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, dims);
    memcpy(head + 10, text, (size_t)length);
    head[127] = '\n';
    fwrite(head, sizeof head, 1, file);
}

static enum type type_of(const char *path)
{
    size_t bytes = strlen(path);
    for (int type = 0; type < NUM_TYPES; type++) {
        size_t end = strlen(endings[type]);
        if (bytes > end && strcmp(path + bytes - end, endings[type]) == 0) return (enum type)type;
    }
    die("not a name that ends as its type", path);
    return FLOAT32;
}

static void write_side(enum kind kind, int is_query, size_t rows, size_t dims, const char *path)
{
    enum type type = type_of(path);
    unsigned char bytes[4] = {0};
    FILE *file = fopen(path, "wb");
    if (!file) die("cannot write", path);
    write_head(file, type, rows, dims);
    for (size_t row = 0; row < rows; row++) {
        for (size_t d = 0; d < dims; d++) {
            put_row_number(kind, type, is_query, row, d, dims, bytes);
            if (is_query && d == 0) avoid_zero(kind, type, bytes);
            fwrite(bytes, type_bytes[type], 1, file);
        }
    }
    if (ferror(file) || fclose(file) != 0) die("cannot write", path);
}

int main(int argc, char **argv)
{
    int kind = 0;
    if (argc != 7 && argc != 8) die("usage", "see the head of its source");
    if (argc == 8) seed = strtoull(argv[7], NULL, 10);
    while (kind < NUM_KINDS && strcmp(argv[1], kind_names[kind]) != 0) kind++;
    if (kind == NUM_KINDS) die("no kind", argv[1]);
    size_t dims = strtoull(argv[4], NULL, 10);
    write_side((enum kind)kind, 0, strtoull(argv[2], NULL, 10), dims, argv[5]);
    write_side((enum kind)kind, 1, strtoull(argv[3], NULL, 10), dims, argv[6]);
    return 0;
}
