// SPDX-License-Identifier: Apache-2.0
// Results of range searches, of both forms.
#include <string.h>

#include "common/files/range_file.h"
#include "tests/fuzz/harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct bsw_ranges ranges;
    struct bsw_error err;
    enum bsw_status status = bsw_ranges_parse("result", data, bytes, &ranges, &err);
    if (!fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA))) return 0;
    FUZZ_REQUIRE(ranges.num_queries <= bytes && ranges.lims[0] == 0);
    for (uint64_t q = 0; q < ranges.num_queries; q++)
        FUZZ_REQUIRE(ranges.lims[q] <= ranges.lims[q + 1]);
    FUZZ_REQUIRE(ranges.lims[ranges.num_queries] <= bytes);
    for (uint64_t i = 0; i < ranges.lims[ranges.num_queries]; i++)
        FUZZ_REQUIRE(ranges.ids[i] >= 0 && ranges.values[i] == ranges.values[i]);
    bsw_ranges_deinit(&ranges);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    const uint32_t narrow[] = {2, 3, 1, 2, 7, 8, 9, 0, 0, 0};
    const uint64_t wide[] = {1, 2, 2, 7, 8, 0};
    const uint32_t none[] = {2, 0, 0, 0};
    put(context, narrow, sizeof narrow);
    put(context, wide, sizeof wide);
    put(context, none, sizeof none);
}
