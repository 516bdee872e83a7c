// SPDX-License-Identifier: Apache-2.0
// Files of rates, as `bench cluster --json` prints them and `plan --rates` reads them: what is
// taken is finite and above 0, and stays so for other codes.
#include <math.h>
#include <string.h>

#include "coordinator/plan/model_rates.h"
#include "shard/codecs/codec.h"
#include "tests/fuzz/harness.h"

static void require_rates(const struct bsw_model_rates *rates)
{
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        double rate = bsw_rate_get(rates, i);
        FUZZ_REQUIRE(isfinite(rate) && rate >= 0); // 0: not known
    }
    FUZZ_REQUIRE(rates->busy_core_share <= 1);
    FUZZ_REQUIRE(rates->threads >= 1);
}

static void convert(const struct bsw_measured_rates *measured, const struct bsw_codec *codec)
{
    static const double dims[] = {1, 96, BSW_MAX_DIMS};
    struct bsw_rates_code code = {.codec = codec,
                                  .bits = 3,
                                  .query_bits = 6,
                                  .batch = 1000,
                                  .keep = 50,
                                  .scan = measured->code.scan};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        struct bsw_model_rates rates;
        struct bsw_rates_scaling scaling;
        struct bsw_error err;
        code.dims = dims[i];
        enum bsw_status status = bsw_model_rates_convert("rates.json", measured, &code,
                                                         BSW_CPU_REFERENCE, &rates, &scaling, &err);
        if (fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_USAGE))) require_rates(&rates);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct bsw_measured_rates measured;
    struct bsw_error err;
    const char *path = fuzz_file("rates.json", data, bytes);
    enum bsw_status status = bsw_model_rates_read(path, &measured, &err);
    if (!fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA))) return 0;
    require_rates(&measured.rates);
    for (int codec = 0; codec < BSW_NUM_CODECS; codec++) convert(&measured, bsw_codecs[codec]);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    static const char *const seeds[] = {
        "{\"rates\": {\"alpha_seconds\": 7e-7, \"beta_seconds_per_byte\": 4.8e-10, "
        "\"scan_pairs_per_second\": 1.7e9, \"scan_bytes_per_second\": 1e10, "
        "\"encode_queries_per_second\": 376683.5, \"merge_candidates_per_second\": 5.8e7, "
        "\"refine_rows_per_second\": 3e6, \"finish_queries_per_second\": 1.7e6, "
        "\"busy_core_share\": 0.92, \"cores\": 2, \"threads\": 1, \"ranks\": 4, \"code\": "
        "{\"codec\": \"saq\", \"dims\": 96, \"bits\": 3.0, \"query_bits\": 6, \"rows\": 300000, "
        "\"batch\": 1000, \"k\": 10, \"oversample\": 5.0, \"scan\": \"progressive-matrix\"}}}",
        "{\"rates\": {\"scan_pairs_per_second\": 1e18, \"refine_rows_per_second\": 1e-15, "
        "\"code\": "
        "{\"codec\": \"xfbq\", \"dims\": 4096, \"bits\": 1e-15, \"query_bits\": 1, \"batch\": 1}}}",
        "{\"rates\": {\"scan_pairs_per_second\": 1, \"code\": {\"codec\": \"raw\", \"dims\": 1, "
        "\"bits\": 8, \"query_bits\": 8, \"batch\": 1e6, \"k\": 1e6, \"oversample\": 1e18, "
        "\"scan\": \"planes\"}}}",
        "{\"rates\": {\"busy_core_share\": 1.5}}",
        "{\"rates\": {\"alpha_seconds\": 1e400}}",
        "{\"rates\": []}",
        "{}",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        put(context, seeds[i], strlen(seeds[i]));
}
