// Vectors on which a screened product tells rows apart badly, for check_truth_definition.sh.
//
//   hostile_rows KIND ROWS QUERIES DIMS BASE QUERIES_OUT   files by their endings: .fbin, .npy
//   (f2), .u8bin, .i8bin
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
// Numbers are cut to what a type holds; integers take one apart where floats take a share.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/half.h"
#include "common/integer_hash.h"

enum kind { COPIES, PARTS, UNITS, LARGE, MIXED, ZEROS, FAR, BETWEEN, NUM_KINDS };
static const char *const kind_names[NUM_KINDS] = {"copies", "parts", "units", "large",
                                                  "mixed",  "zeros", "far",   "between"};
enum type { FLOAT32, FLOAT16, UINT8, INT8, NUM_TYPES };
static const char *const endings[NUM_TYPES] = {".fbin", ".npy", ".u8bin", ".i8bin"};
static const size_t type_bytes[NUM_TYPES] = {4, 2, 1, 1};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "hostile_rows: %s: %s\n", what, detail);
    exit(1);
}

// In -1 .. 1, of 24 bits.
static float uniform(uint64_t seed, uint64_t i)
{
    return (float)((double)(bsw_hash2(seed, i) >> 40) * 0x1p-23 - 1.0);
}

// Number d of the row with this hash, in -1 .. 1 but for `mixed` and `far`.
static float number_of(enum kind kind, uint64_t hash, size_t d, size_t dims)
{
    float shared = uniform(hash % 5, d), own = uniform(hash, d);
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
                                            : -uniform(hash % 5, d - 1);
    case FAR:
        return 1000.0f + 0.001f * own;
    default: // the largest number is 1: codes are 2/255 apart
        return d == 0 ? 1.0f
                      : (2.0f * (float)(int)(bsw_hash2(hash % 400, d) % 125) - 119.98f) / 255.0f;
    }
}

// Queries: copies of rows and vectors of their own, of `between` half way between their own codes.
static float query_number(enum kind kind, uint64_t query, size_t d, size_t dims)
{
    if (kind == BETWEEN && query % 3 != 2)
        return d == 0 ? 1.0f : ((float)(bsw_hash2(query, d) % 120) + 0.49f) / 127.0f;
    uint64_t hash = bsw_hash2(1, query % 2 ? 17 * query : 100000 + query);
    if (kind == MIXED)
        return ldexpf(uniform(hash, d), (int)(hash % 70) - 20); // not as good as zero
    if (kind == ZEROS && hash % 11 == 0) hash++; // a query of zeros is refused under cosine
    return number_of(kind, hash, d, dims);
}

// Integers: 0 to 3 where floats are zero, else spread over the range.
static long whole_of(enum kind kind, float number, enum type type, uint64_t hash, size_t d)
{
    long most = type == UINT8 ? 255 : 127, least = type == UINT8 ? 0 : -128;
    double spread = kind == ZEROS ? 3.0 : kind == FAR ? 1.0 : (double)most;
    double value = kind == FAR ? (double)most - (double)(bsw_hash2(hash, d) % 2)
                               : rint((double)fmodf(number, 1.5f) * spread);
    if (type == UINT8) value = fabs(value);
    if (kind == PARTS || kind == UNITS) value += (double)(bsw_hash2(hash, d) % 40 == 0);
    if (kind == LARGE) value = number > 0.0f ? (double)most : (double)least;
    return value < (double)least ? least : value > (double)most ? most : (long)value;
}

static void put_number(enum kind kind, enum type type, float number, uint64_t hash, size_t d,
                       size_t dims, unsigned char *out)
{
    long whole = type >= UINT8 ? whole_of(kind, number, type, hash, d) : 0;
    uint16_t half;
    switch (type) {
    case FLOAT32: // squares of a row add up to 1e37 at most
        if (kind == LARGE) number *= (float)(3.16e18 / sqrt((double)dims));
        memcpy(out, &number, sizeof number);
        return;
    case FLOAT16:
        if (kind == LARGE) number *= 65504.0f;
        half = (uint16_t)(bsw_half_nearest(fmin(fabs((double)number), 65504.0)) |
                          (signbit(number) ? 0x8000 : 0));
        memcpy(out, &half, sizeof half);
        return;
    default:
        *out = (unsigned char)whole;
    }
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
        // Runs of a vector, over blocks and cuts between ranks.
        uint64_t hash = bsw_hash2(1, kind == COPIES && row % 300 > 200 ? 1 : row);
        for (size_t d = 0; d < dims; d++) {
            float number =
                is_query ? query_number(kind, row, d, dims) : number_of(kind, hash, d, dims);
            put_number(kind, type, number, hash, d, dims, bytes);
            if (is_query && type >= UINT8 && d == 0 && bytes[0] == 0) bytes[0] = 1; // none of zeros
            fwrite(bytes, type_bytes[type], 1, file);
        }
    }
    if (ferror(file) || fclose(file) != 0) die("cannot write", path);
}

int main(int argc, char **argv)
{
    int kind = 0;
    if (argc != 7) die("usage", "see the head of its source");
    while (kind < NUM_KINDS && strcmp(argv[1], kind_names[kind]) != 0) kind++;
    if (kind == NUM_KINDS) die("no kind", argv[1]);
    size_t dims = strtoull(argv[4], NULL, 10);
    write_side((enum kind)kind, 0, strtoull(argv[2], NULL, 10), dims, argv[5]);
    write_side((enum kind)kind, 1, strtoull(argv[3], NULL, 10), dims, argv[6]);
    return 0;
}
