// SPDX-License-Identifier: Apache-2.0
// FILE.json beside a result.
#include <string.h>

#include "coordinator/job/sidecar.h"
#include "tests/fuzz/harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct bsw_sidecar facts;
    struct bsw_error err;
    char path[BSW_PATH_BYTES] = "";
    strncat(path, fuzz_file("result.json", data, bytes), sizeof path - 1);
    *strrchr(path, '.') = '\0';
    enum bsw_status status = bsw_sidecar_read(path, &facts, &err);
    if (fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA)) && facts.refine)
        FUZZ_REQUIRE(strcmp(facts.refine, "exact") == 0 || strcmp(facts.refine, "none") == 0);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    static const char *const seeds[] = {
        "{\"metric\": \"l2\", \"refine\": \"exact\", \"k\": 10, \"L\": 40, \"codec\": \"saq\", "
        "\"rows\": 20000, \"first_row\": 0, \"first_query\": 5, \"queries_digest\": "
        "\"0123456789abcdef\", \"dims\": 128, \"bits\": 3.0, \"query_bits\": 6}",
        "{\"metric\": \"cosine\", \"refine\": \"none\"}",
        "{\"metric\": 1e400, \"refine\": null, \"a\": [[{\"\\u0000\": \"\\ud83d\\ude00\"}]]}",
        "[]",
        "{\"metric\": \"none\"} x",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        put(context, seeds[i], strlen(seeds[i]));
}
