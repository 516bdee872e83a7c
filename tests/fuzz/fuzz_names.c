// SPDX-License-Identifier: Apache-2.0
// Lists and names of the command line that fuzz_words does not have. The first byte of an input
// picks one: a sweep's list of numbers, whole or not, or of words; a file's name and what it says;
// a CPU level; a sweep's plan. What lists must give is found here by taking them apart piece by
// piece.
#include <string.h>

#include "common/base/cpu_level.h"
#include "common/codes/code_layout.h"
#include "common/rows/source_name.h"
#include "coordinator/job/option_table.h"
#include "coordinator/search/search_settings.h"
#include "coordinator/sweep/sweep_grid.h"
#include "shard/codecs/codec.h"
#include "tests/fuzz/harness.h"

#define FUZZ_USAGE FUZZ_BIT(BSW_ERROR_USAGE)
#define COMMA()    ,

// The piece of a list at `place`, into `out` of the same size; 0 where there is none.
static int piece_of(const char *text, size_t place, char *out)
{
    for (; place > 0; place--) {
        text = strchr(text, ',');
        if (!text) return 0;
        text++;
    }
    size_t bytes = strcspn(text, ",");
    memcpy(out, text, bytes);
    out[bytes] = '\0';
    return 1;
}

static double number_of(const char *piece, int is_whole)
{
    double number = 0;
    uint64_t count = 0;
    if (!is_whole) {
        FUZZ_REQUIRE(bsw_number_parse("", piece, &number, NULL) == BSW_OK);
        return number;
    }
    FUZZ_REQUIRE(bsw_count_parse("", piece, &count, NULL) == BSW_OK);
    return (double)count;
}

static int take_list(enum bsw_sweep_axis_kind kind, const char *text, struct bsw_sweep_axis *axis)
{
    struct bsw_sweep_grid grid;
    struct bsw_error err;
    enum bsw_status status = bsw_sweep_grid_set(&grid, kind, "--", text, &err);
    if (!fuzz_is_ok(status, &err, FUZZ_USAGE)) return 0;
    *axis = grid.axes[kind];
    FUZZ_REQUIRE(axis->count >= 1 && axis->count <= BSW_SWEEP_MAX_VALUES);
    return 1;
}

static void take_numbers(const char *text, int is_whole)
{
    struct bsw_sweep_axis axis;
    double most = is_whole ? BSW_SEARCH_MAX_K : BSW_MAX_CODE_BITS;
    if (!take_list(is_whole ? BSW_SWEEP_K : BSW_SWEEP_BITS, text, &axis)) return;
    char *piece = fuzz_text((const uint8_t *)text, strlen(text));
    for (size_t i = 0; i < axis.count; i++) {
        FUZZ_REQUIRE(piece_of(text, i, piece));
        FUZZ_REQUIRE(number_of(piece, is_whole) == axis.values[i]);
        FUZZ_REQUIRE(axis.values[i] >= 1 && axis.values[i] <= most);
    }
    FUZZ_REQUIRE(!piece_of(text, axis.count, piece));
    bsw_free(&piece);
}

static void take_words(const char *text)
{
    static const char *const codecs[] = {BSW_CODEC_LIST(BSW_CODEC_TEXT, COMMA)};
    struct bsw_sweep_axis axis;
    if (!take_list(BSW_SWEEP_CODEC, text, &axis)) return;
    char *piece = fuzz_text((const uint8_t *)text, strlen(text));
    FUZZ_REQUIRE(axis.count <= sizeof codecs / sizeof codecs[0]);
    for (size_t i = 0; i < axis.count; i++) {
        FUZZ_REQUIRE(piece_of(text, i, piece));
        FUZZ_REQUIRE(strcmp(piece, codecs[(size_t)axis.values[i]]) == 0);
    }
    FUZZ_REQUIRE(!piece_of(text, axis.count, piece));
    bsw_free(&piece);
}

static void take_plan(char *text)
{
    struct bsw_sweep_grid defaults = {0};
    struct bsw_sweep_grid *grids = NULL;
    struct bsw_error err;
    size_t num_grids = 0, num_lines = 1;
    for (const char *c = text; *c; c++) num_lines += *c == '\n';
    for (int axis = 0; axis < BSW_SWEEP_NUM_AXES; axis++) defaults.axes[axis].count = 1;
    defaults.axes[BSW_SWEEP_BITS].values[0] = 2;
    defaults.axes[BSW_SWEEP_QUERY_BITS].values[0] = 6;
    defaults.axes[BSW_SWEEP_K].values[0] = 10;
    defaults.axes[BSW_SWEEP_OVERSAMPLE].values[0] = 1;
    enum bsw_status status =
        bsw_sweep_plan_parse("plan", text, &defaults, &grids, &num_grids, &err);
    if (fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA))) {
        FUZZ_REQUIRE(num_grids >= 1 && num_grids <= num_lines);
        for (size_t i = 0; i < num_grids; i++)
            for (int axis = 0; axis < BSW_SWEEP_NUM_AXES; axis++)
                FUZZ_REQUIRE(grids[i].axes[axis].count >= 1 &&
                             grids[i].axes[axis].count <= BSW_SWEEP_MAX_VALUES);
    }
    bsw_free(&grids);
}

// File and dataset make up the name again.
static void take_name(const char *text)
{
    struct bsw_hdf5_name name;
    int are_vectors = bsw_name_is_vectors(text), are_ids = bsw_name_is_ids(text);
    int is_hdf5 = bsw_hdf5_name_parse(text, "fallback", &name);
    FUZZ_REQUIRE(!are_vectors || !are_ids || is_hdf5 || strncmp(text, "synth:", 6) == 0);
    if (!is_hdf5) return;
    size_t bytes = strlen(name.file);
    FUZZ_REQUIRE(bsw_name_ends_with(name.file, ".hdf5") || bsw_name_ends_with(name.file, ".h5"));
    FUZZ_REQUIRE(strncmp(text, name.file, bytes) == 0);
    if (text[bytes] == '\0') {
        FUZZ_REQUIRE(strcmp(name.dataset, "fallback") == 0);
    } else {
        FUZZ_REQUIRE(text[bytes] == ':' && name.dataset == text + bytes + 1 && *name.dataset);
    }
}

static void take_level(const char *text)
{
    struct bsw_error err;
    enum bsw_cpu_level level;
    if (!fuzz_is_ok(bsw_cpu_level_parse(text, &level, &err), &err, FUZZ_USAGE)) return;
    FUZZ_REQUIRE(bsw_cpu_has_level(level));
    FUZZ_REQUIRE(strcmp(text, "auto") == 0 || strcmp(text, bsw_cpu_level_name(level)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    char *text = fuzz_text(data + 1, bytes - 1);
    switch ((data[0] + 4) % 6) {
    case 0:
        take_numbers(text, 0);
        break;
    case 1:
        take_numbers(text, 1);
        break;
    case 2:
        take_words(text);
        break;
    case 3:
        take_name(text);
        break;
    case 4:
        take_level(text);
        break;
    default:
        take_plan(text);
    }
    bsw_free(&text);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    // '2' is the first way, '7' the last.
    static const char *const seeds[] = {
        "21,1.5,8",
        "21e1,2",
        "2000000000000000000000000000000000015",
        "31,2K,15",
        "31,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,"
        "33",
        "31,,2",
        "4saq,xfbq",
        "4xfbq",
        "4saq,saq",
        "5a.hdf5",
        "5a.h5:train",
        "5.h5",
        "5a.h5.hdf5:x.h5:b",
        "5b.fvecs",
        "5b.ivecs",
        "5synth:a.ibin",
        "6auto",
        "6avx2",
        "6avx512",
        "6reference",
        "6x",
        "7# all\ncodec=saq bits=2,3 oversample=1,5\n\ncodec=xfbq select=histogram "
        "extra-distance=0\n",
        "7bits=9",
        "7codec=saq codec=saq",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        put(context, seeds[i], strlen(seeds[i]));
}
