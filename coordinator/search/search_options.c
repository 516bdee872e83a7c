// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/search_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/job/command.h"
#include "coordinator/job/option_table.h"
#include "kernels/entries_within/entries_within.h"
#include "kernels/table_scan/table_formats.h"

_Static_assert(offsetof(struct bsw_search_options, request) == 0, "its options stand alone, too");

// The only value that is no member.
static json_t *finder_of(const struct bsw_search *search)
{
    return json_string(search->settings.selection.finder->name);
}

// A member of struct bsw_search, once it is open.
struct place {
    enum { NOWHERE, FLAG, COUNT, WIDE_COUNT, NUMBER, FLOAT } kind;
    size_t offset;
};

struct setting {
    struct bsw_option option; // without help: no option but a fact, told with the others
    enum bsw_option_kind library_kind;
    size_t library; // in struct bitsweep_search_settings; 0: not there
    struct place value;
    const char *words;                                // "a|b": which one is meant by 0, 1
    json_t *(*make)(const struct bsw_search *search); // in place of a member
    const char *zero;                                 // what the journal calls 0
    unsigned told, told_if; // enum bsw_settings_use: always, and where `with` is not 0
    struct place with;
};

#define OPTION(name, member, ...) \
    .option = BSW_OPTION(struct bsw_search_options, name, member, __VA_ARGS__)
#define FACT(fact_name) .option.name = fact_name
#define IN_LIBRARY(member)                                                           \
    .library_kind = BSW_OPTION_KIND(((struct bitsweep_search_settings *)0)->member), \
    .library = offsetof(struct bitsweep_search_settings, member)
#define IS(member)            .value = PLACE(member)
#define TOLD(uses)            .told = (uses)
#define TOLD_IF(uses, member) .told_if = (uses), .with = PLACE(member)
#define PLACE(member)                                                                     \
    {                                                                                     \
        PLACE_KIND(((struct bsw_search *)0)->member), offsetof(struct bsw_search, member) \
    }
// clang-format off
#define PLACE_KIND(member)           \
    _Generic((member),               \
             int: FLAG,              \
             unsigned: COUNT,        \
             uint64_t: WIDE_COUNT,   \
             double: NUMBER,         \
             float: FLOAT)
// clang-format on
enum { JOURNAL = BSW_IN_JOURNAL, SIDECAR = BSW_IN_SIDECAR, REPORT = BSW_IN_REPORT };

static const struct setting list[] = {
    {OPTION("k", request.k, .value_name = "K", .default_text = BSW_SEARCH_K_TEXT, .min = 1,
            .max = BSW_SEARCH_MAX_K, .help = "neighbours a query"),
     IN_LIBRARY(k), IS(settings.k), TOLD(JOURNAL)},
    {OPTION("query-bits", request.query_bits, .value_name = "BQ", .min = 1,
            .max = BSW_MAX_QUERY_BITS,
            .help = "bits a query component, not for codecs raw and pq [6]"),
     IN_LIBRARY(query_bits), IS(settings.query_bits), TOLD(JOURNAL | REPORT),
     TOLD_IF(SIDECAR, settings.query_bits)},
    {OPTION("table", request.table, .choices = BSW_TABLE_CHOICES, .default_text = "auto",
            .help = "pq: numbers of a query's tables; auto: float32"),
     IN_LIBRARY(table), IS(settings.table), .words = BSW_TABLE_NAMES, TOLD(JOURNAL)},
    {OPTION("entries", request.entries.choice, .choices = BSW_ENTRIES_CHOICES,
            .default_text = "all",
            .help = "pq: all entries of a codebook, or those within a radius of the query, which "
                    "encode --entries radius has learned"),
     IS(settings.selection.is_on), .words = BSW_ENTRIES_CHOICES, TOLD(JOURNAL)},
    {OPTION("radius-scale", request.entries.radius_scale, .value_name = "X|inf", .min = 1e-9,
            .max = 1e9, .word = "inf", .word_number = INFINITY,
            .help = "radius: times this; inf: what all entries find [1]"),
     IS(settings.selection.scale), TOLD_IF(JOURNAL, settings.selection.is_on)},
    {OPTION("mode", request.entries.mode, .choices = BSW_SELECTION_MODES,
            .help = "radius: H sums distances, L counts hits, M hits of half the radius less "
                    "misses [H]"),
     IS(settings.selection.mode), .words = BSW_SELECTION_MODES,
     TOLD_IF(JOURNAL, settings.selection.is_on)},
    {OPTION("miss", request.entries.miss, .choices = BSW_MISS_CHOICES,
            .help = "radius, mode H: what an entry outside adds: the radius squared, or inf, which "
                    "leaves its rows out; mean, of radii nearest: what those outside add [bound]"),
     IS(options.request.entries.miss), .words = "bound|" BSW_MISS_CHOICES,
     TOLD_IF(JOURNAL | REPORT, settings.selection.is_on)},
    {OPTION("radii", request.entries.radii, .choices = BSW_RADII_KINDS,
            .help = "radius: by density around the query; the least or largest of a subspace; l2, "
                    "a CPU: what holds the nearest quarter of the entries [dynamic]"),
     IS(settings.selection.radii), .words = BSW_RADII_KINDS,
     TOLD_IF(JOURNAL | REPORT, settings.selection.is_on)},
    {OPTION("entries-by", request.entries.finder, .choices = BSW_ENTRY_FINDER_CHOICES,
            .help = "radius: what finds entries; the same bytes for all; a GPU has brute alone "
                    "[auto]"),
     .make = finder_of, TOLD_IF(REPORT, settings.selection.is_on)},
    {OPTION("hit-time", request.entries.has_hit_time,
            .help = "radius, embree or vulkan: distances from the times of hits, as JUNO has them; "
                    "then not the same bytes for all"),
     IS(settings.selection.has_hit_time), TOLD_IF(REPORT, settings.selection.is_on)},
    // Times of hits are those of the back end.
    {FACT("hit-time"), .make = finder_of, TOLD_IF(JOURNAL, settings.selection.has_hit_time)},
    {OPTION("oversample", request.oversample, .value_name = "X", .min = 1, .max = 10000,
            .help = "candidates to refine, times k; codec raw needs none "
                    "[" BSW_SEARCH_OVERSAMPLE_TEXT ", or as --recall has it]"),
     IN_LIBRARY(oversample), IS(settings.oversample), TOLD(REPORT)},
    {OPTION("scan", request.scan, .choices = BSW_SCAN_NAMES, .default_text = "auto",
            .help = "bit planes or int8 units, in full or progressively; auto: what measured "
                    "faster; of GPUs only Hopper scans progressively"),
     IN_LIBRARY(scan)},
    {OPTION("select", request.select, .choices = BSW_SELECT_NAMES, .default_text = "threshold",
            .help = "how candidates are chosen; queue: rbeGIR's, which may miss some"),
     IS(options.request.select), .words = BSW_SELECT_NAMES, TOLD(JOURNAL | SIDECAR)},
    {OPTION("items", request.queue.items, .value_name = "I", .default_text = "256", .min = 1,
            .max = BSW_QUEUE_MAX_ITEMS,
            .help = "queue: rows that each of a block's 256 threads goes over"),
     IS(settings.queue.items), TOLD(JOURNAL), TOLD_IF(SIDECAR | REPORT, settings.queue.length)},
    {OPTION("queue-length", request.queue.length, .value_name = "Q", .default_text = "1", .min = 1,
            .max = BSW_QUEUE_MAX_LENGTH, .help = "queue: best rows that a thread keeps"),
     IS(settings.queue.length), TOLD(JOURNAL), TOLD_IF(SIDECAR | REPORT, settings.queue.length)},
    {OPTION("extra-distance", extra_distance, .value_name = "E|X%",
            .help =
                "histogram: all within D_K + E, or X percent of what distances run over; implies "
                "--select histogram"),
     IS(settings.extra_distance), TOLD(JOURNAL | REPORT), TOLD_IF(SIDECAR, settings.is_histogram)},
    {OPTION("within", within, .value_name = "D",
            .help = "all rows within a value in place of the best k: l2 a squared distance of at "
                    "most D, ip and cosine a similarity of at least D"),
     IS(options.request.within), TOLD_IF(SIDECAR | REPORT, settings.is_range)},
    {OPTION("margin", request.margin, .value_name = "M", .default_text = BSW_SEARCH_MARGIN_TEXT,
            .max = 1000,
            .help = "within: exact values are computed of rows whose estimate by code is within D "
                    "and M times its size"),
     IN_LIBRARY(margin), IS(options.request.margin), TOLD_IF(SIDECAR | REPORT, settings.is_range)},
    {OPTION("max-candidates", request.max_candidates, .value_name = "N", .min = 1, .max = 1e8,
            .help = "at most so many a query: histogram takes the best [100K], within refuses more "
                    "[10K]"),
     IN_LIBRARY(max_candidates), IS(settings.most_candidates),
     TOLD_IF(SIDECAR, settings.most_candidates)},
    {OPTION("histogram-k", request.histogram_k, .value_name = "K", .min = 1,
            .max = BSW_SEARCH_MAX_K, .help = "histogram: rows that D_K reaches, at most --k [--k]"),
     IS(settings.histogram_k), TOLD(JOURNAL)},
    {FACT("lists"), IS(manifest.lists.count), TOLD_IF(SIDECAR, manifest.lists.count)},
    {OPTION("recall", request.recall, .value_name = "X", .min = BSW_LEAST_RECALL, .max = 1,
            .help = "with lists: take probe, probe-ratio, scan-dims and oversample from the table "
                    "that encode --calibrate made, the cheapest that found this share of the true "
                    "neighbours [0.99 or the most there is; all lists without a table]"),
     IN_LIBRARY(recall)},
    {OPTION("probe", request.probe, .value_name = "N|all", .min = 1, .max = BSW_MAX_LISTS,
            .word = "all", .word_count = BSW_PROBE_ALL,
            .help = "with lists: look at the N nearest to a query"),
     IN_LIBRARY(probe), IS(settings.probe.probe), .zero = "all", TOLD(JOURNAL),
     TOLD_IF(SIDECAR | REPORT, manifest.lists.count)},
    {OPTION("probe-ratio", request.probe_ratio, .value_name = "R", .min = 0.01, .max = 1000,
            .help = "with lists: none whose squared distance is above R times that of the 16th"),
     IN_LIBRARY(probe_ratio), IS(settings.probe.ratio), TOLD(JOURNAL),
     TOLD_IF(SIDECAR | REPORT, manifest.lists.count)},
    {OPTION("scan-dims", request.scan_dims, .value_name = "D", .min = 1, .max = BSW_MAX_DIMS,
            .help = "with lists: candidates by the first D dimensions alone, a segment's end; with "
                    "a table of recalls only beside --probe or --probe-ratio [all, or --recall's]"),
     IN_LIBRARY(scan_dims), IS(settings.probe.scan_dims), .zero = "all", TOLD(JOURNAL),
     TOLD_IF(SIDECAR | REPORT, manifest.lists.count)},
    {FACT("recall-calibrated"), IS(settings.recall_calibrated),
     TOLD_IF(SIDECAR, settings.recall_calibrated)},
    {OPTION("refine", request.refine, .choices = BSW_REFINE_NAMES, .default_text = "exact",
            .help = "order by exact values of the raw vectors, or by code; codec raw is exact "
                    "anyway"),
     IN_LIBRARY(refine), IS(settings.is_exact), .words = "none|exact", TOLD(JOURNAL)},
    {OPTION("merge", request.merge, .choices = BSW_MERGE_NAMES, .default_text = "auto",
            .help = "how candidates of shards meet; auto, on several ranks: exchange between "
                    "linked GPUs, else ladder")},
    {OPTION("batch", request.batch, .value_name = "N", .default_text = BSW_SEARCH_BATCH_TEXT,
            .min = 1, .max = 1e6, .help = "queries at a time"),
     IN_LIBRARY(batch)},
    {OPTION("overlap", overlap, .choices = "auto|on|off", .default_text = "auto",
            .help = "other batches beside the scan; auto: where a core is to spare, or GPUs "
                    "merge")},
    {OPTION("graphs", graphs, .choices = "auto|on|off", .default_text = "auto",
            .help = "launches of a batch on a GPU as one CUDA graph; auto: where the GPU's tuning "
                    "says so; off: one by one")},
    {.option = BSW_OPTION_GROUP(struct bsw_search_options, device, bsw_device_option_group)},
    {OPTION("link", link, .choices = "auto|mpi|nccl", .default_text = "auto",
            .help = "what moves GPU data between ranks; auto: NCCL where each has a GPU of its "
                    "own")},
    {OPTION("check-every", check_seconds, .value_name = "SECONDS|never", .max = 1e9,
            .default_text = BSW_TEXT_OF(BSW_SEARCH_CHECK_SECONDS), .word = "never",
            .word_number = BSW_CHECK_NEVER,
            .help = "self-checks at the start, so often and at the end; 0: start and end")},
    {OPTION("allow", allow, .value_name = "FILE",
            .help = "find these rows alone: .npy of bools [rows] or [queries, rows], or ids: "
                    ".npy .u32bin .ivecs")},
    {OPTION("query-tags", query_tags, .value_name = "FILE.spmat",
            .help = "find rows that have all tags of their query, of an index with tags")},
    {FACT("allow-masks"), IS(allowed.num_masks), TOLD_IF(REPORT, allowed.is_given)},
    {FACT("allowed-rows"), IS(allowed.num_allowed), TOLD_IF(REPORT, allowed.is_given)},
    {OPTION("exclude-self", request.exclude_self,
            .help = "leave row i out of the answer of query i: for queries that are the base"),
     IN_LIBRARY(exclude_self), IS(options.request.exclude_self), TOLD(JOURNAL | REPORT)},
    {OPTION("allow-partial", request.is_partial,
            .help = "answer from the shards that can be read, if some cannot: exit code 76, and "
                    "FILE.coverage.npy has the share of the rows that each query saw"),
     IN_LIBRARY(allow_partial), IS(settings.is_partial), TOLD_IF(REPORT, settings.is_partial)},
    {FACT("candidates"), IS(settings.keep), TOLD(JOURNAL)},
};

enum { NUM_SETTINGS = sizeof list / sizeof list[0] };
const struct bsw_option_group bsw_search_option_group = BSW_OPTIONS_OF(list);

// ---- the library ----

// A member as the text of the option; NULL: 0, as without the option.
static const char *text_of(const struct setting *setting, const void *member, char text[32])
{
    enum bsw_option_kind kind = setting->library_kind;
    uint64_t count = kind == BSW_OPTION_COUNT ? *(const uint64_t *)member : 0;
    double number = kind == BSW_OPTION_NUMBER ? *(const double *)member : 0;
    if (kind == BSW_OPTION_TEXT) return *(const char *const *)member;
    if (kind == BSW_OPTION_FLAG) return *(const int *)member ? "" : NULL;
    if (count > 0 && setting->option.word && count == setting->option.word_count)
        return setting->option.word;
    if (count > 0) snprintf(text, 32, "%llu", (unsigned long long)count);
    if (number != 0) snprintf(text, 32, "%.17g", number);
    return count > 0 || number != 0 ? text : NULL;
}

enum bsw_status bsw_search_request_take(const struct bitsweep_search_settings *asked,
                                        struct bsw_search_request *out, struct bsw_error *err)
{
    for (size_t i = 0; i < NUM_SETTINGS; i++) {
        const struct bsw_option *option = &list[i].option;
        char number[32];
        if (list[i].library == 0) continue;
        const char *text = text_of(&list[i], (const char *)asked + list[i].library, number);
        if (!text) text = option->default_text;
        if (text) BSW_TRY(bsw_option_set(option, (char *)out + option->offset, text, err));
    }
    return BSW_OK;
}

// ---- values ----

static double number_at(const struct bsw_search *search, const struct place *place)
{
    const void *at = (const char *)search + place->offset;
    return place->kind == NUMBER       ? *(const double *)at
           : place->kind == FLOAT      ? (double)*(const float *)at
           : place->kind == WIDE_COUNT ? (double)*(const uint64_t *)at
                                       : *(const unsigned *)at;
}

// A new reference. No count is above 2^53.
static json_t *value_of(const struct setting *setting, const struct bsw_search *search)
{
    double number = number_at(search, &setting->value);
    char word[BSW_WORD_BYTES];
    if (setting->make) return setting->make(search);
    if (setting->words)
        return json_string(bsw_setting_word(setting->words, (unsigned)number, word));
    if (setting->value.kind == FLAG) return json_boolean(number != 0);
    if (setting->value.kind == COUNT || setting->value.kind == WIDE_COUNT)
        return json_integer((json_int_t)number);
    return isinf(number) ? json_string("inf") : json_real(number);
}

static int is_told(const struct setting *setting, const struct bsw_search *search,
                   enum bsw_settings_use use)
{
    return (setting->told & use) ||
           ((setting->told_if & use) && number_at(search, &setting->with) != 0);
}

json_t *bsw_search_settings_told(const struct bsw_search *search, enum bsw_settings_use use)
{
    json_t *object = json_object();
    for (size_t i = 0; i < NUM_SETTINGS; i++) {
        char name[BSW_WORD_BYTES];
        if (!is_told(&list[i], search, use)) continue;
        snprintf(name, sizeof name, "%s", list[i].option.name);
        for (char *at = name; *at; at++) *at = *at == '-' ? '_' : *at;
        json_object_set_new(object, name, value_of(&list[i], search));
    }
    return object;
}

void bsw_search_settings_identify(const struct bsw_search *search,
                                  struct bsw_journal_fields *fields)
{
    for (size_t i = 0; i < NUM_SETTINGS; i++) {
        const char *name = list[i].option.name;
        if (!is_told(&list[i], search, BSW_IN_JOURNAL)) continue;
        json_t *value = value_of(&list[i], search);
        const char *text = json_string_value(value);
        double number = number_at(search, &list[i].value);
        if (!text && number == 0) text = list[i].zero;
        if (text)
            bsw_journal_field_text(fields, name, text);
        else
            bsw_journal_field_number(fields, name, number);
        json_decref(value);
    }
}
