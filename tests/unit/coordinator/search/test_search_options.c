// SPDX-License-Identifier: Apache-2.0
// The list of settings of a search: what the library is asked for is checked as options are, and an
// open search tells journal, sidecar and report what became of each.
#include "shard/codecs/codec.h"
#include "small_index.h"
#include "temporary_folder.h"

#include <string.h>

#include "coordinator/search/search_options.h"

static struct bsw_error err;

// ---- the library ----

static struct bsw_search_request taken;

static enum bsw_status take(const struct bitsweep_search_settings *asked)
{
    taken = (struct bsw_search_request){0};
    return bsw_search_request_take(asked, &taken, &err);
}

static void refused(const struct bitsweep_search_settings *asked, const char *message)
{
    assert_int_equal(take(asked), BSW_ERROR_USAGE);
    assert_string_equal(err.message, message);
}

UNIT_TEST(what_is_not_asked_is_as_without_the_option)
{
    const struct bitsweep_search_settings asked = {.k = 10};
    assert_ok(take(&asked), &err);
    assert_int_equal(taken.k, 10);
    assert_int_equal(taken.batch, BSW_SEARCH_BATCH);
    assert_int_equal(taken.query_bits, 0);
    assert_true(taken.oversample == 0 && taken.recall == 0);
    assert_true(taken.refine == BSW_REFINE_EXACT && taken.scan == BSW_SCAN_AUTO);
}

UNIT_TEST(what_is_asked_arrives)
{
    const struct bitsweep_search_settings asked = {.k = 3,
                                                   .oversample = 2.5,
                                                   .refine = "none",
                                                   .probe = BITSWEEP_ALL,
                                                   .probe_ratio = 1.5,
                                                   .scan_dims = 64,
                                                   .scan = "matrix",
                                                   .table = "e5m3",
                                                   .query_bits = 4,
                                                   .exclude_self = 5,
                                                   .batch = 7};
    assert_ok(take(&asked), &err);
    assert_true(taken.k == 3 && taken.oversample == 2.5 && taken.refine == BSW_REFINE_NONE);
    assert_true(taken.probe == BSW_PROBE_ALL && taken.probe_ratio == 1.5);
    assert_true(taken.scan_dims == 64 && taken.scan == BSW_SCAN_MATRIX);
    assert_true(taken.table == BSW_TABLE_CHOICE_E5M3 && taken.query_bits == 4);
    assert_true(taken.exclude_self == 1 && taken.batch == 7);
}

UNIT_TEST(what_an_option_may_not_be_the_library_refuses)
{
    struct bitsweep_search_settings asked = {.k = 10, .query_bits = 9};
    refused(&asked, "--query-bits 9: must be 1 to 7");
    asked = (struct bitsweep_search_settings){.k = 10, .oversample = 0.5};
    refused(&asked, "--oversample 0.5: must be 1 to 10000");
    asked = (struct bitsweep_search_settings){.k = 10, .probe_ratio = 0.001};
    refused(&asked, "--probe-ratio 0.001: must be 0.01 to 1000");
    asked = (struct bitsweep_search_settings){.k = 10, .probe = 2000000};
    refused(&asked, "--probe 2000000: must be 1 to 1048576, or all");
    asked = (struct bitsweep_search_settings){.k = 10, .refine = ""};
    refused(&asked, "unknown --refine '': use exact or none");
}

// ---- an open search ----

static char index_path[512];

static int make_data(void **state)
{
    if (make_temporary_folder(state) != 0) return -1;
    strcpy(index_path, temporary_folder);
    write_search_index(index_path);
    return 0;
}

// Opens a search of a request, and what it tells of one use in one line of JSON.
static char *told(const struct bsw_search_request *request, enum bsw_settings_use use,
                  struct bsw_journal_fields *fields)
{
    struct bsw_transport transport = {.timeout_seconds = 10};
    struct bsw_search search;
    struct bsw_search_options options = {
        .request = *request, .index = index_path, .device.text = "cpu"};
    options.request.level = bsw_cpu_level_detect();
    options.request.num_threads = 1;
    bsw_transport_local_init(&transport);
    assert_ok(bsw_search_open(&search, &transport, &options, &err), &err);
    json_t *object = bsw_search_settings_told(&search, use);
    char *text = json_dumps(object, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (fields) bsw_search_settings_identify(&search, fields);
    bsw_search_close(&search);
    bsw_transport_close(&transport, 0);
    return text;
}

static void assert_told(const struct bsw_search_request *request, enum bsw_settings_use use,
                        const char *wanted)
{
    char *text = told(request, use, NULL);
    assert_string_equal(text, wanted);
    free(text);
}

UNIT_TEST(settings_that_play_no_part_are_not_told)
{
    const struct bsw_search_request plain = {.k = 5, .batch = 4};
    struct bsw_search_request histogram = {.k = 5,
                                           .batch = 4,
                                           .select = BSW_SELECT_HISTOGRAM,
                                           .extra_distance = 3,
                                           .max_candidates = 20,
                                           .exclude_self = 1};
    assert_told(&plain, BSW_IN_SIDECAR, "{\"query_bits\": 6, \"select\": \"threshold\"}");
    assert_told(&histogram, BSW_IN_SIDECAR,
                "{\"query_bits\": 6, \"select\": \"histogram\", \"extra_distance\": 3, "
                "\"max_candidates\": 20}");
    assert_told(&histogram, BSW_IN_REPORT,
                "{\"query_bits\": 6, \"oversample\": 5.0, \"extra_distance\": 3, "
                "\"exclude_self\": true}");
    histogram = (struct bsw_search_request){
        .k = 5, .batch = 4, .select = BSW_SELECT_QUEUE, .queue = {64, 2}};
    assert_told(&histogram, BSW_IN_SIDECAR,
                "{\"query_bits\": 6, \"select\": \"queue\", \"items\": 64, \"queue_length\": 2}");
}

// What decides the bytes of a result is in the journal, whatever it is.
UNIT_TEST(the_journal_has_all_that_decides)
{
    const struct bsw_search_request request = {.k = 5, .batch = 4, .exclude_self = 1};
    static const char *const wanted[][2] = {
        {"k", "5"},          {"query-bits", "6"},     {"table", "float32"},
        {"entries", "all"},  {"select", "threshold"}, {"items", "0"},
        {"probe", "all"},    {"probe-ratio", "0"},    {"scan-dims", "all"},
        {"refine", "exact"}, {"exclude-self", "1"},   {"candidates", "26"}};
    struct bsw_journal_fields fields = {0};
    free(told(&request, BSW_IN_JOURNAL, &fields));
    for (size_t w = 0; w < sizeof wanted / sizeof wanted[0]; w++) {
        size_t f = 0;
        while (f < fields.count && strcmp(fields.fields[f].name, wanted[w][0]) != 0) f++;
        if (f == fields.count) fail_msg("no %s", wanted[w][0]);
        assert_string_equal(fields.fields[f].value, wanted[w][1]);
    }
}

int main(void)
{
    return run_unit_tests(make_data, remove_temporary_folder);
}
