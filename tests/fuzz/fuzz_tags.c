// SPDX-License-Identifier: Apache-2.0
// Sparse matrices of tags; what is taken is turned, and turned back.
#include <string.h>

#include "common/files/row_tags.h"
#include "tests/fuzz/harness.h"

static void check_sets(const struct bsw_number_sets *sets)
{
    FUZZ_REQUIRE(sets->first[0] == 0);
    for (uint64_t s = 0; s < sets->num_sets; s++) {
        FUZZ_REQUIRE(sets->first[s] <= sets->first[s + 1]);
        for (uint64_t i = sets->first[s]; i < sets->first[s + 1]; i++) {
            FUZZ_REQUIRE(sets->members[i] < sets->num_members);
            FUZZ_REQUIRE(i == sets->first[s] || sets->members[i - 1] < sets->members[i]);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct bsw_number_sets rows, lists, again;
    struct bsw_error err;
    enum bsw_status status = bsw_tags_parse("tags", data, bytes, &rows, &err);
    if (!fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA))) return 0;
    check_sets(&rows);
    if (rows.num_members < 1 << 16) { // a header alone may say many tags
        FUZZ_REQUIRE(bsw_number_sets_turn(&rows, &lists, &err) == BSW_OK);
        check_sets(&lists);
        FUZZ_REQUIRE(bsw_number_sets_turn(&lists, &again, &err) == BSW_OK);
        FUZZ_REQUIRE(again.num_sets == rows.num_sets && again.num_members == rows.num_members);
        uint64_t entries = rows.first[rows.num_sets];
        FUZZ_REQUIRE(again.first[again.num_sets] == entries);
        FUZZ_REQUIRE(memcmp(again.members, rows.members, entries * sizeof *rows.members) == 0);
        bsw_number_sets_deinit(&lists);
        bsw_number_sets_deinit(&again);
    }
    bsw_number_sets_deinit(&rows);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    const int64_t head[] = {2, 5, 3, 0, 2, 3};
    const int32_t tags[] = {4, 1, 4};
    const float values[] = {1, 1, 1};
    unsigned char seed[sizeof head + sizeof tags + sizeof values];
    memcpy(seed, head, sizeof head);
    memcpy(seed + sizeof head, tags, sizeof tags);
    memcpy(seed + sizeof head + sizeof tags, values, sizeof values);
    put(context, seed, sizeof seed);
    const int64_t none[] = {0, 0, 0, 0};
    put(context, none, sizeof none);
}
