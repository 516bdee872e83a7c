// SPDX-License-Identifier: Apache-2.0
// What libbitsweep does in the hands of another program: check_library.sh compares the files that
// it writes with those of the program, the rest is asserted here. Says each case that fails.
#include <bitsweep.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library_support.h"

static struct bitsweep_rows as_floats(const struct bitsweep_rows *bytes)
{
    float *data = malloc(bytes->num_rows * bytes->dims * sizeof *data);
    for (size_t i = 0; i < bytes->num_rows * bytes->dims; i++)
        data[i] = ((const unsigned char *)bytes->data)[i];
    return (struct bitsweep_rows){data, bytes->num_rows, bytes->dims, BITSWEEP_FLOAT32, NULL};
}

// ---- what files are compared of ----

// INDEX QUERIES K RECALL OUT: queries in memory.
static void search_to_file(char **words)
{
    struct bitsweep_rows queries = load(words[1]);
    uint64_t k = strtoull(words[2], NULL, 10);
    bitsweep_index *index = opened(words[0]);
    struct answers answers = searched(index, &queries, k, strtod(words[3], NULL));
    need(bitsweep_write_neighbours(words[4], queries.num_rows, k, answers.values, answers.ids, 0,
                                   &error),
         words[4]);
    bitsweep_close(&index);
    forget(&answers);
}

// BASE LISTS FOLDER: from memory.
static void encode_to_folder(char **words)
{
    struct bitsweep_rows base = load(words[0]);
    struct bitsweep_encode_settings settings;
    struct bitsweep_index_info info;
    bitsweep_encode_defaults(&settings);
    bitsweep_index_info_init(&info);
    settings.metric = "l2";
    settings.lists = strtoull(words[1], NULL, 10);
    settings.calibrate_rows = settings.lists > 0 ? 200 : 0;
    settings.device = "cpu";
    need(bitsweep_encode(words[2], &base, &settings, &info, &error), words[2]);
    expect(info.num_rows == base.num_rows && info.dims == base.dims && info.has_vectors &&
               info.has_calibration == (settings.lists > 0) && strcmp(info.codec, "saq") == 0,
           "what was made");
}

// BASE QUERIES K OUT
static void truth_to_file(char **words)
{
    struct bitsweep_rows base = load(words[0]), queries = load(words[1]);
    struct bitsweep_knn_settings settings;
    bitsweep_knn_defaults(&settings);
    settings.k = strtoull(words[2], NULL, 10);
    settings.metric = "l2";
    struct answers answers = room(queries.num_rows, settings.k);
    need(bitsweep_knn(&base, &queries, &settings, answers.values, answers.ids, &error), "knn");
    need(bitsweep_write_neighbours(words[3], queries.num_rows, settings.k, answers.values,
                                   answers.ids, 0, &error),
         words[3]);
}

// ---- cases ----

static void check_bad_folders(void)
{
    bitsweep_index *index = (bitsweep_index *)&num_failed;
    refused(bitsweep_open("nowhere", NULL, &index, &error), BITSWEEP_ERROR_IO, "nowhere");
    expect(index == NULL, "no index of a missing folder");
    bitsweep_close(&index);
    expect(bitsweep_open("nowhere", NULL, &index, NULL) == BITSWEEP_ERROR_IO, "no error is asked");
}

// What rows of texts are, the package's tests compare with the program's.
static void check_bad_texts(const char *folder)
{
    bitsweep_text_model *model = (bitsweep_text_model *)&num_failed;
    uint32_t dims;
    refused(bitsweep_text_open("nowhere", &model, &dims, &error), BITSWEEP_ERROR_IO, "nowhere");
    expect(model == NULL, "no model of a missing file");
    bitsweep_text_close(&model);
    refused(bitsweep_text_open(NULL, &model, &dims, &error), BITSWEEP_ERROR_USAGE, "no model");
    refused(bitsweep_text_open(folder, &model, NULL, &error), BITSWEEP_ERROR_USAGE,
            "is no index of texts");
}

static void check_bad_searches(bitsweep_index *index, const struct bitsweep_rows *queries)
{
    struct bitsweep_search_settings settings, unfilled = {0};
    struct answers answers = room(queries->num_rows, 10), good = searched(index, queries, 10, 0);
    struct bitsweep_rows floats = as_floats(queries), wrong = *queries;
    bitsweep_search_defaults(&settings);
#define SEARCH(rows) bitsweep_search(index, rows, &settings, answers.values, answers.ids, &error)
    settings.k = 0;
    refused(SEARCH(queries), BITSWEEP_ERROR_USAGE, "--k 0: must be 1 to 10000");
    settings.k = 10;
    settings.oversample = NAN;
    refused(SEARCH(queries), BITSWEEP_ERROR_USAGE, "--oversample 'nan' is not a number");
    settings.oversample = 0;
    settings.scan = "bits";
    refused(SEARCH(queries), BITSWEEP_ERROR_USAGE, "unknown --scan 'bits': use auto, planes");
    settings.scan = NULL;
    settings.recall = 0.9;
    refused(SEARCH(queries), BITSWEEP_ERROR_USAGE, "has no lists");
    settings.recall = 0;
    wrong.dims = 64;
    refused(SEARCH(&wrong), BITSWEEP_ERROR_BAD_DATA, "64 dims, the index has 128");
    wrong.dims = 0;
    refused(SEARCH(&wrong), BITSWEEP_ERROR_USAGE, "0 dims");
    refused(SEARCH(NULL), BITSWEEP_ERROR_USAGE, "no rows");
    ((float *)floats.data)[3 * 128 + 5] = NAN;
    refused(SEARCH(&floats), BITSWEEP_ERROR_BAD_DATA, "row 3");
    refused(bitsweep_search(index, queries, &unfilled, answers.values, answers.ids, &error),
            BITSWEEP_ERROR_USAGE, "_defaults");
    refused(bitsweep_search(index, queries, NULL, NULL, answers.ids, &error), BITSWEEP_ERROR_USAGE,
            "no room");
#undef SEARCH
    expect(bitsweep_search(index, queries, NULL, answers.values, answers.ids, &error) == 0 &&
               are_same(&answers, &good),
           "the index works on after errors");
    forget(&answers);
    forget(&good);
}

static void check_reconstruct(const char *folder, const struct bitsweep_rows *base)
{
    bitsweep_index *index = opened(folder);
    uint64_t last = base->num_rows - 1;
    int64_t ids[] = {3, (int64_t)last, 0, 3}, wrong[] = {0, (int64_t)base->num_rows};
    unsigned char rows[4 * 128];
    const unsigned char *numbers = base->data;
    need(bitsweep_reconstruct(index, ids, 4, rows, &error), "rows by ids");
    for (int i = 0; i < 4; i++)
        expect(memcmp(rows + i * 128, numbers + ids[i] * 128, 128) == 0, "rows by ids");
    refused(bitsweep_reconstruct(index, wrong, 2, rows, &error), BITSWEEP_ERROR_USAGE, "has rows");
    refused(bitsweep_reconstruct(index, NULL, 1, rows, &error), BITSWEEP_ERROR_USAGE, "no ids");
    need(bitsweep_reconstruct(index, NULL, 0, NULL, &error), "no rows");
    bitsweep_close(&index);
}

// No queries have no answers, which need no room; all else is checked.
static void check_no_queries(bitsweep_index *index, const struct bitsweep_rows *base,
                             const struct bitsweep_rows *queries)
{
    struct bitsweep_search_settings search;
    struct bitsweep_knn_settings exact;
    struct bitsweep_rows none = {NULL, 0, queries->dims, queries->type, NULL}, wrong = none;
    bitsweep_search_defaults(&search);
    bitsweep_knn_defaults(&exact);
    exact.metric = "l2";
    need(bitsweep_search(index, &none, &search, NULL, NULL, &error), "a search for nothing");
    need(bitsweep_knn(base, &none, &exact, NULL, NULL, &error), "neighbours of nothing");
    wrong.dims = 64;
    refused(bitsweep_search(index, &wrong, &search, NULL, NULL, &error), BITSWEEP_ERROR_BAD_DATA,
            "64 dims, the index has 128");
    refused(bitsweep_knn(base, &wrong, &exact, NULL, NULL, &error), BITSWEEP_ERROR_BAD_DATA,
            "64 dims, memory:base has 128");
    wrong.dims = 128;
    wrong.type = 9;
    refused(bitsweep_search(index, &wrong, &search, NULL, NULL, &error), BITSWEEP_ERROR_USAGE,
            "type 9");
    search.k = exact.k = 0;
    refused(bitsweep_search(index, &none, &search, NULL, NULL, &error), BITSWEEP_ERROR_USAGE,
            "--k 0");
    refused(bitsweep_knn(base, &none, &exact, NULL, NULL, &error), BITSWEEP_ERROR_USAGE, "--k 0");
    wrong.type = base->type;
    exact.k = 10;
    refused(bitsweep_knn(&none, &none, &exact, NULL, NULL, &error), BITSWEEP_ERROR_USAGE, "base");
}

// Devices are looked for when they are needed; words that are none are refused at once.
static void check_bad_devices(const char *folder, const struct bitsweep_rows *base)
{
    struct bitsweep_open_settings open;
    struct bitsweep_encode_settings encode;
    struct bitsweep_knn_settings exact;
    bitsweep_index *index;
    bitsweep_open_defaults(&open);
    bitsweep_encode_defaults(&encode);
    bitsweep_knn_defaults(&exact);
    open.device = encode.device = exact.device = "gpu";
    encode.metric = exact.metric = "l2";
    refused(bitsweep_open(folder, &open, &index, &error), BITSWEEP_ERROR_USAGE, "'gpu'");
    refused(bitsweep_encode("bad", base, &encode, NULL, &error), BITSWEEP_ERROR_USAGE, "'gpu'");
    refused(bitsweep_knn(base, base, &exact, NULL, NULL, &error), BITSWEEP_ERROR_USAGE, "'gpu'");
}

// Settings that the library does not know yet must not be left out in silence.
static void check_later_settings(bitsweep_index *index, const struct bitsweep_rows *queries)
{
    struct {
        struct bitsweep_search_settings known;
        uint64_t later;
    } settings = {.later = 0};
    struct answers answers = room(queries->num_rows, 10);
    bitsweep_search_defaults(&settings.known);
    settings.known.size = sizeof settings;
    expect(bitsweep_search(index, queries, &settings.known, answers.values, answers.ids, &error) ==
               0,
           "larger settings");
    settings.later = 1;
    refused(bitsweep_search(index, queries, &settings.known, answers.values, answers.ids, &error),
            BITSWEEP_ERROR_USAGE, "later version");
    forget(&answers);
}

// As called by a program that was compiled when the struct had no more than two members.
static void check_earlier_settings(void)
{
    uint64_t raw[3] = {0, 0, 7};
    struct bitsweep_search_settings *earlier = (struct bitsweep_search_settings *)(void *)raw;
    bitsweep_search_defaults_of(earlier, 2 * sizeof *raw);
    expect(raw[0] == 2 * sizeof *raw && raw[1] == 10 && raw[2] == 7, "smaller settings");
}

// By turns, and with other settings in between.
static void check_two_indexes(const char *flat, const char *lists,
                              const struct bitsweep_rows *queries)
{
    bitsweep_index *first = opened(flat), *second = opened(lists);
    struct answers a = searched(first, queries, 10, 0), b = searched(second, queries, 10, 0.9),
                   more = searched(first, queries, 25, 0), c = searched(first, queries, 10, 0),
                   d = searched(second, queries, 10, 0.9);
    struct bitsweep_search_stats stats;
    bitsweep_search_stats_init(&stats);
    bitsweep_last_search(second, &stats);
    expect(are_same(&a, &c) && are_same(&b, &d), "two indexes by turns");
    expect(more.ids[0] == a.ids[0] && more.ids[25] == a.ids[10], "another k in between");
    expect(stats.calibrated_recall >= 0.9 && stats.lists_per_query >= 1 &&
               strcmp(stats.device, "cpu") == 0 && stats.load_seconds == 0,
           "what the last search did");
    forget(&a), forget(&b), forget(&c), forget(&d), forget(&more);
    bitsweep_close(&first);
    bitsweep_close(&second);
    expect(first == NULL, "a closed index is NULL");
}

static struct answers probed(bitsweep_index *index, const struct bitsweep_rows *queries,
                             uint64_t probe, double ratio)
{
    struct bitsweep_search_settings settings;
    struct answers answers = room(queries->num_rows, 10);
    bitsweep_search_defaults(&settings);
    settings.oversample = 3;
    settings.probe = probe;
    settings.probe_ratio = ratio;
    need(bitsweep_search(index, queries, &settings, answers.values, answers.ids, &error), "probe");
    return answers;
}

static struct answers allowed(bitsweep_index *index, const struct bitsweep_rows *queries,
                              const struct bitsweep_allow *allow)
{
    struct bitsweep_search_settings settings;
    struct answers answers = room(queries->num_rows, 10);
    bitsweep_search_defaults(&settings);
    settings.allow = allow;
    need(bitsweep_search(index, queries, &settings, answers.values, answers.ids, &error), "allow");
    return answers;
}

// The same rows as masks and as ids, without what is loaded being loaded again; none.
static void check_allow(const char *folder, const struct bitsweep_rows *queries, uint64_t num_rows)
{
    bitsweep_index *index = opened(folder);
    struct bitsweep_search_stats stats;
    bitsweep_search_stats_init(&stats);
    uint8_t *masks = calloc(queries->num_rows, num_rows);
    int64_t *ids = calloc(num_rows, sizeof *ids);
    struct bitsweep_allow one = {.masks = masks, .num_masks = 1, .num_rows = num_rows},
                          each = {.masks = masks,
                                  .num_masks = queries->num_rows,
                                  .num_rows = num_rows},
                          some = {.ids = ids}, none = {.ids = ids};
    for (uint64_t i = 0; i < queries->num_rows * num_rows; i++) masks[i] = i % num_rows % 7 == 3;
    for (uint64_t row = 3; row < num_rows; row += 7) ids[some.num_ids++] = (int64_t)row;
    struct answers a = allowed(index, queries, &one), b = allowed(index, queries, &each),
                   c = allowed(index, queries, &some), d = allowed(index, queries, &none);
    bitsweep_last_search(index, &stats);
    expect(are_same(&a, &b) && are_same(&a, &c) && a.ids[0] % 7 == 3, "masks and ids");
    expect(d.ids[0] == -1 && stats.load_seconds == 0, "no rows, of what is loaded");
    forget(&a), forget(&b), forget(&c), forget(&d);
    struct answers e = allowed(index, queries, NULL), f = searched(index, queries, 10, 0);
    expect(are_same(&e, &f), "all rows again");
    forget(&e), forget(&f);
    free(masks), free(ids);
    bitsweep_close(&index);
}

// Other lists than before, of what is loaded; nothing is left of the search before.
static void check_other_lists(const char *lists, const struct bitsweep_rows *queries)
{
    const struct {
        uint64_t probe;
        double ratio;
    } cases[] = {{1, 0}, {7, 0}, {BITSWEEP_ALL, 0}, {0, 0.9}, {1, 0}, {5, 0.8}};
    bitsweep_index *index = opened(lists);
    struct bitsweep_search_stats stats;
    bitsweep_search_stats_init(&stats);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bitsweep_index *fresh = opened(lists);
        struct answers found = probed(index, queries, cases[i].probe, cases[i].ratio),
                       wanted = probed(fresh, queries, cases[i].probe, cases[i].ratio);
        bitsweep_last_search(index, &stats);
        expect(are_same(&found, &wanted), "other lists of what is loaded");
        expect((stats.load_seconds > 0) == (i == 0), "what is loaded serves other lists");
        forget(&found), forget(&wanted);
        bitsweep_close(&fresh);
    }
    bitsweep_close(&index);
}

struct searcher {
    bitsweep_index *index;
    const struct bitsweep_rows *queries;
    const struct answers *wanted;
    uint64_t k;
    int num_wrong;
};

static void *search_often(void *context)
{
    struct searcher *s = context;
    for (int i = 0; i < 5; i++) {
        struct answers answers = searched(s->index, s->queries, s->k, 0);
        s->num_wrong += !are_same(&answers, s->wanted);
        forget(&answers);
    }
    return NULL;
}

// Two threads on one index with settings of their own, a third on another one.
static void check_threads(const char *folder, const struct bitsweep_rows *queries)
{
    bitsweep_index *index = opened(folder), *other = opened(folder);
    struct answers ten = searched(index, queries, 10, 0), seven = searched(index, queries, 7, 0);
    struct searcher searchers[3] = {{index, queries, &ten, 10, 0},
                                    {index, queries, &seven, 7, 0},
                                    {other, queries, &ten, 10, 0}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, search_often, &searchers[i]);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        expect(searchers[i].num_wrong == 0, "searches of several threads");
    }
    forget(&ten), forget(&seven);
    bitsweep_close(&index);
    bitsweep_close(&other);
}

static int stop_at_once(void *context, const char *phase, uint64_t done, uint64_t total)
{
    (void)phase, (void)done, (void)total;
    return ++*(int *)context > 0;
}

static int count_calls(void *context, const char *phase, uint64_t done, uint64_t total)
{
    if (done > total || phase[0] == '\0') num_failed++;
    ++*(int *)context;
    return 0;
}

static void check_stops(bitsweep_index *index, const struct bitsweep_rows *base,
                        const struct bitsweep_rows *queries)
{
    struct bitsweep_search_settings search;
    struct bitsweep_encode_settings encode;
    struct bitsweep_knn_settings exact;
    struct answers answers = room(queries->num_rows, 10);
    int num_calls = 0;
    bitsweep_search_defaults(&search);
    bitsweep_encode_defaults(&encode);
    bitsweep_knn_defaults(&exact);
    search.progress = encode.progress = exact.progress = stop_at_once;
    search.progress_context = encode.progress_context = exact.progress_context = &num_calls;
    encode.metric = exact.metric = "l2";
    encode.force = 1;
    refused(bitsweep_search(index, queries, &search, answers.values, answers.ids, &error),
            BITSWEEP_ERROR_STOPPED, "stopped by its caller");
    refused(bitsweep_encode("stopped", base, &encode, NULL, &error), BITSWEEP_ERROR_STOPPED,
            "stopped by its caller");
    refused(bitsweep_knn(base, queries, &exact, answers.values, answers.ids, &error),
            BITSWEEP_ERROR_STOPPED, "stopped by its caller");
    expect(num_calls == 3, "one call each");
    search.progress = encode.progress = exact.progress = count_calls;
    expect(bitsweep_search(index, queries, &search, answers.values, answers.ids, &error) == 0,
           "a search that is not stopped");
    expect(bitsweep_encode("stopped", base, &encode, NULL, &error) == 0, "nor an encode");
    expect(num_calls > 4, "progress was told");
    forget(&answers);
}

// The table of LISTS by these queries; a search that was loaded by the table before is settled
// anew.
static void calibrate(const char *lists, const struct bitsweep_rows *queries)
{
    struct bitsweep_calibrate_settings settings;
    struct bitsweep_calibrate_stats stats;
    struct bitsweep_index_info info;
    struct answers before, found, wanted;
    bitsweep_index *index = opened(lists), *fresh;
    int num_calls = 0;
    bitsweep_calibrate_defaults(&settings);
    bitsweep_calibrate_stats_init(&stats);
    bitsweep_index_info_init(&info);
    before = searched(index, queries, 10, 0.9);
    settings.progress = stop_at_once;
    settings.progress_context = &num_calls;
    refused(bitsweep_calibrate(index, &settings, NULL, &error), BITSWEEP_ERROR_STOPPED, "stopped");
    found = searched(index, queries, 10, 0.9);
    expect(num_calls == 1 && are_same(&found, &before), "the table stays after a stop");
    forget(&found);
    settings.progress = count_calls;
    settings.queries = queries;
    need(bitsweep_calibrate(index, &settings, &stats, &error), "calibrate");
    bitsweep_info(index, &info);
    expect(info.has_calibration && stats.num_queries == queries->num_rows && stats.k == 10 &&
               stats.num_entries > 0 && stats.least_recall < stats.best_recall &&
               stats.best_recall <= 1 && num_calls > 2,
           "what was calibrated");
    fresh = opened(lists);
    found = searched(index, queries, 10, 0.9), wanted = searched(fresh, queries, 10, 0.9);
    expect(are_same(&found, &wanted), "a search by the new table");
    forget(&before), forget(&found), forget(&wanted);
    bitsweep_close(&fresh), bitsweep_close(&index);
}

// LISTS QUERIES
static void calibrate_by_file(char **words)
{
    struct bitsweep_rows queries = load(words[1]);
    calibrate(words[0], &queries);
}

static void check_bad_calibrations(const char *flat, const char *lists,
                                   const struct bitsweep_rows *queries)
{
    struct bitsweep_calibrate_settings settings;
    struct bitsweep_rows narrow = *queries;
    bitsweep_index *index = opened(flat);
    bitsweep_calibrate_defaults(&settings);
    refused(bitsweep_calibrate(index, &settings, NULL, &error), BITSWEEP_ERROR_USAGE, "no lists");
    bitsweep_close(&index);
    index = opened(lists);
    settings.sample = 10000000;
    refused(bitsweep_calibrate(index, &settings, NULL, &error), BITSWEEP_ERROR_USAGE, "--sample");
    settings.sample = 10;
    settings.queries = queries;
    refused(bitsweep_calibrate(index, &settings, NULL, &error), BITSWEEP_ERROR_USAGE, "--sample");
    settings.sample = 0;
    settings.queries = &narrow;
    narrow.dims = 64;
    refused(bitsweep_calibrate(index, &settings, NULL, &error), BITSWEEP_ERROR_BAD_DATA, "64");
    bitsweep_close(&index);
}

static void check_bad_encodes(const struct bitsweep_rows *base)
{
    struct bitsweep_encode_settings settings;
    struct bitsweep_rows floats = as_floats(base);
    bitsweep_encode_defaults(&settings);
    refused(bitsweep_encode("bad", base, &settings, NULL, &error), BITSWEEP_ERROR_USAGE,
            "--metric");
    settings.metric = "l2";
    settings.bits = 9;
    refused(bitsweep_encode("bad", base, &settings, NULL, &error), BITSWEEP_ERROR_USAGE,
            "--bits 9: must be 1 to 8");
    settings.bits = 0;
    settings.threads = 100000;
    refused(bitsweep_encode("bad", base, &settings, NULL, &error), BITSWEEP_ERROR_USAGE,
            "--threads 100000: must be 0 to 4096");
    settings.threads = 0;
    settings.codec = "zip";
    refused(bitsweep_encode("bad", base, &settings, NULL, &error), BITSWEEP_ERROR_USAGE, "zip");
    settings.codec = NULL;
    ((float *)floats.data)[7 * 128] = INFINITY;
    refused(bitsweep_encode("bad", &floats, &settings, NULL, &error), BITSWEEP_ERROR_BAD_DATA,
            "memory:base: row 7");
    refused(bitsweep_encode("stopped", base, &settings, NULL, &error), BITSWEEP_ERROR_USAGE,
            "stopped");
    free((void *)floats.data);
}

static void check_files(const struct bitsweep_rows *base)
{
    struct bitsweep_rows few = *base, back, halves;
    uint64_t num_queries, k;
    int has_values;
    const int64_t ids[4] = {3, 1, -1, 2}, truth[4] = {1, 3, 5, 2};
    int64_t ids_back[4];
    float values_back[4];
    double recall;
    few.num_rows = 50;
    need(bitsweep_write("few.npy", &few, 0, &error), "few.npy");
    refused(bitsweep_write("few.npy", &few, 0, &error), BITSWEEP_ERROR_USAGE, "few.npy");
    refused(bitsweep_write("few.i8bin", &few, 0, &error), BITSWEEP_ERROR_BAD_DATA, "int8");
    need(bitsweep_write("few.fvecs", &few, 0, &error), "few.fvecs");
    back = load("few.npy");
    expect(back.type == BITSWEEP_UINT8 && back.num_rows == 50 && back.dims == 128 &&
               memcmp(back.data, few.data, 50 * 128) == 0,
           "rows come back from .npy");
    back = load("few.fvecs");
    halves = as_floats(&few);
    expect(back.type == BITSWEEP_FLOAT32 && memcmp(back.data, halves.data, 50 * 128 * 4) == 0,
           "rows come back from .fvecs");
    refused(bitsweep_read("few.npy", 40, 11, ids_back, &error), BITSWEEP_ERROR_USAGE, "it has 50");
    need(bitsweep_write_neighbours("ids.ivecs", 2, 2, NULL, ids, 0, &error), "ids.ivecs");
    refused(bitsweep_write_neighbours("ids", 2, 2, NULL, ids, 0, &error), BITSWEEP_ERROR_USAGE,
            "without values");
    need(bitsweep_neighbours_shape("ids.ivecs", &num_queries, &k, &has_values, &error), "ids");
    need(bitsweep_read_neighbours("ids.ivecs", values_back, ids_back, &error), "ids.ivecs");
    expect(num_queries == 2 && k == 2 && !has_values && memcmp(ids, ids_back, sizeof ids) == 0 &&
               isnan(values_back[0]),
           "ids come back");
    need(bitsweep_recall(ids, 2, truth, 2, 2, 2, &recall, &error), "recall");
    expect(recall == 0.75, "recall of ids");
    refused(bitsweep_recall(ids, 2, truth, 2, 2, 3, &recall, &error), BITSWEEP_ERROR_USAGE,
            "--k 3");
}

// Nothing of the process changes.
static void check_process(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGBUS, SIGSEGV, SIGPIPE, SIGUSR1};
    struct sigaction action;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        expect(sigaction(signals[i], NULL, &action) == 0 && action.sa_handler == SIG_DFL,
               "signals are left alone");
}

// BASE QUERIES FLAT LISTS
static void check_all(char **words)
{
    struct bitsweep_rows base = load(words[0]), queries = load(words[1]);
    bitsweep_index *index = opened(words[2]);
    setlocale(LC_ALL, "de_DE.UTF-8"); // where it is there: a comma in numbers
    expect(bitsweep_version_number() == BITSWEEP_VERSION_MAJOR * 10000 +
                                            BITSWEEP_VERSION_MINOR * 100 + BITSWEEP_VERSION_PATCH,
           "version");
    check_bad_folders();
    check_bad_texts(words[2]);
    check_bad_searches(index, &queries);
    check_reconstruct(words[2], &base);
    check_reconstruct(words[3], &base);
    check_no_queries(index, &base, &queries);
    check_bad_devices(words[2], &base);
    check_later_settings(index, &queries);
    check_earlier_settings();
    check_two_indexes(words[2], words[3], &queries);
    check_allow(words[2], &queries, base.num_rows);
    check_allow(words[3], &queries, base.num_rows);
    check_range(words[2], &queries);
    check_range(words[3], &queries);
    check_other_lists(words[3], &queries);
    check_threads(words[2], &queries);
    check_stops(index, &base, &queries);
    check_bad_encodes(&base);
    check_bad_calibrations(words[2], words[3], &queries);
    check_files(&base);
    check_process();
    bitsweep_close(&index);
}

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "search") == 0)
        search_to_file(argv + 2);
    else if (argc == 5 && strcmp(argv[1], "encode") == 0)
        encode_to_folder(argv + 2);
    else if (argc == 6 && strcmp(argv[1], "truth") == 0)
        truth_to_file(argv + 2);
    else if (argc == 4 && strcmp(argv[1], "calibrate") == 0)
        calibrate_by_file(argv + 2);
    else if (argc == 6 && strcmp(argv[1], "cases") == 0)
        check_all(argv + 2);
    else if (argc == 3 && strcmp(argv[1], "has") == 0)
        return !bitsweep_has(argv[2]);
    else
        return 2;
    return num_failed > 0;
}
