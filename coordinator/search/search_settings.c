// SPDX-License-Identifier: Apache-2.0
#include "coordinator/search/search_settings.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "common/base/number_parse.h"
#include "coordinator/job/option_table.h"
#include "shard/codecs/codec.h"

// Memory a batch's candidates may take on one rank; larger batches are cut, which changes no byte
// of the answer.
#define BATCH_BUDGET_BYTES ((uint64_t)256 << 20)

static const char *const selects[] = {[BSW_SELECT_THRESHOLD] = "threshold",
                                      [BSW_SELECT_HISTOGRAM] = "histogram",
                                      [BSW_SELECT_QUEUE] = "queue"};

const char *bsw_search_select_name(enum bsw_search_select select)
{
    return selects[select];
}

uint64_t bsw_search_keep(uint64_t k, double oversample, uint64_t num_rows)
{
    uint64_t keep = (uint64_t)ceil((double)k * oversample - 1e-9);
    return keep < num_rows ? keep : num_rows;
}

// What a search is made valid from, and into.
struct settling {
    const struct bsw_search_request *asked;
    const struct bsw_manifest *manifest;
    const char *index;
    struct bsw_search_settings *out;
};

static enum bsw_status settle_scan(const struct settling *s, struct bsw_error *err)
{
    s->out->scan = s->asked->scan;
    if (bsw_scan_is_progressive(s->asked->scan) && bsw_manifest_stage(s->manifest) == 0) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--scan %s: the codes of %s have no first stage",
                        bsw_scan_name(s->asked->scan), s->index);
    }
    return BSW_OK;
}

// ---- entries of tables ----

const char *bsw_selection_miss_name(const struct bsw_selection_settings *settings)
{
    return settings->is_miss_infinite ? "inf" : settings->is_miss_mean ? "mean" : "bound";
}

// Words of the request count from 1 on, 0 is the first.
static unsigned place_of(unsigned word)
{
    return word > 0 ? word - 1 : 0;
}

const char *bsw_selection_finder_name(const struct bsw_selection_request *asked,
                                      char word[BSW_WORD_BYTES])
{
    return bsw_setting_word(BSW_ENTRY_FINDER_CHOICES, place_of(asked->finder), word);
}

// The first option that only --entries radius has, or NULL.
static const char *what_needs_radius(const struct bsw_selection_request *asked)
{
    return asked->radius_scale != 0 ? "radius-scale"
           : asked->mode            ? "mode"
           : asked->miss            ? "miss"
           : asked->radii           ? "radii"
           : asked->finder          ? "entries-by"
           : asked->has_hit_time    ? "hit-time"
                                    : NULL;
}

static enum bsw_status refuse_entries(const struct settling *s, struct bsw_error *err)
{
    const char *option = s->asked->entries.choice == BSW_ENTRIES_RADIUS
                             ? "entries"
                             : what_needs_radius(&s->asked->entries);
    if (!option) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--%s: codec %s has no entries, pq has", option,
                    bsw_codec_name(s->manifest->codec));
}

static enum bsw_status check_miss(const struct bsw_selection_settings *settings,
                                  enum bsw_metric metric, struct bsw_error *err)
{
    if (settings->radii == BSW_RADII_NEAREST && !bsw_has_row_norms(metric))
        return bsw_fail(err, BSW_ERROR_USAGE, "--radii nearest is for l2, the index is of %s",
                        bsw_metric_name(metric));
    if (settings->is_miss_mean && settings->radii != BSW_RADII_NEAREST)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--miss mean is for --radii nearest: it has what entries outside are");
    if ((settings->is_miss_infinite || settings->is_miss_mean) && settings->mode != BSW_SELECTION_H)
        return bsw_fail(err, BSW_ERROR_USAGE, "--miss %s is for --mode H: M and L count",
                        bsw_selection_miss_name(settings));
    return BSW_OK;
}

static enum bsw_status check_radius(const struct settling *s, struct bsw_error *err)
{
    if (s->asked->table != 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--table is for --entries all: with radius tables are of float32");
    if (!s->manifest->codec->table->product(s->manifest)->radii)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--entries radius: %s has no radii; encode --entries radius makes some",
                        s->index);
    return BSW_OK;
}

static enum bsw_status settle_entries(const struct settling *s, struct bsw_error *err)
{
    const struct bsw_selection_request *asked = &s->asked->entries;
    struct bsw_selection_settings *out = &s->out->selection;
    const char *option = what_needs_radius(asked);
    char finder[BSW_WORD_BYTES];
    if (asked->choice == BSW_ENTRIES_ALL && option)
        return bsw_fail(err, BSW_ERROR_USAGE, "--%s is for --entries radius", option);
    if (asked->choice == BSW_ENTRIES_ALL) return BSW_OK;
    BSW_TRY(check_radius(s, err));
    *out = (struct bsw_selection_settings){
        .is_on = 1,
        .mode = (enum bsw_selection_mode)place_of(asked->mode),
        .scale = asked->radius_scale != 0 ? (float)asked->radius_scale : 1.0f,
        .is_miss_infinite = place_of(asked->miss) == 1,
        .is_miss_mean = place_of(asked->miss) == 2,
        .radii = (enum bsw_radii_kind)place_of(asked->radii),
        .has_hit_time = asked->has_hit_time};
    BSW_TRY(check_miss(out, s->manifest->metric, err));
    BSW_TRY(bsw_entry_finder_get(bsw_selection_finder_name(asked, finder), &out->finder, err));
    if (out->has_hit_time && out->finder->looks_at_all)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--hit-time: %s traces no rays, so it has no times of hits; take "
                        "--entries-by embree or vulkan",
                        out->finder->name);
    return BSW_OK;
}

// ---- codes ----

// What tables are made of, and that nothing else scans codes that have them.
static enum bsw_status settle_table(const struct settling *s, struct bsw_error *err)
{
    const struct bsw_codec *codec = s->manifest->codec;
    if (!codec->has_tables && s->asked->table)
        return bsw_fail(err, BSW_ERROR_USAGE, "--table: codec %s has no tables, pq has",
                        bsw_codec_name(codec));
    if (!codec->has_tables) return refuse_entries(s, err);
    if (s->asked->scan != BSW_SCAN_AUTO)
        return bsw_fail(err, BSW_ERROR_USAGE, "--scan %s: codec %s is scanned by tables: auto",
                        bsw_scan_name(s->asked->scan), bsw_codec_name(codec));
    if (s->asked->select == BSW_SELECT_QUEUE)
        return bsw_fail(err, BSW_ERROR_USAGE, "--select queue: codec %s is not scanned for it",
                        bsw_codec_name(codec));
    s->out->scan = BSW_SCAN_TABLES;
    s->out->table = bsw_table_chosen(s->asked->table);
    return settle_entries(s, err);
}

// Where keys are exact values, or there are no rows, nothing is left to refine.
static enum bsw_status settle_codes(const struct settling *s, struct bsw_error *err)
{
    const struct bsw_codec *codec = s->manifest->codec;
    BSW_TRY(bsw_codec_query_bits(s->manifest, s->index, (uint32_t)s->asked->query_bits,
                                 &s->out->query_bits, err));
    if (codec->table->has_exact_keys || !bsw_manifest_has_rows(s->manifest)) s->out->is_exact = 0;
    BSW_TRY(settle_table(s, err));
    if (!codec->has_bytes) return BSW_OK;
    if (s->asked->scan == BSW_SCAN_PLANES) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--scan planes: codec %s has no bit planes: auto or matrix", codec->name);
    }
    s->out->scan = BSW_SCAN_MATRIX;
    return BSW_OK;
}

static enum bsw_status settle_queue(const struct settling *s, struct bsw_error *err)
{
    if (bsw_scan_is_progressive(s->out->scan)) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--select queue looks at every key, --scan %s leaves most rows out",
                        bsw_scan_name(s->out->scan));
    }
    s->out->queue = s->asked->queue;
    return BSW_OK;
}

enum bsw_status bsw_extra_distance_parse(const char *text, struct bsw_search_request *out,
                                         struct bsw_error *err)
{
    char number[BSW_NUMBER_CHARACTERS + 1];
    size_t length = strlen(text);
    if (length < 2 || length > BSW_NUMBER_CHARACTERS || text[length - 1] != '%')
        return bsw_count_parse("--extra-distance", text, &out->extra_distance, err);
    memcpy(number, text, length - 1);
    number[length - 1] = 0;
    double percent;
    BSW_TRY(bsw_number_parse("--extra-distance", number, &percent, err));
    out->extra_share = percent / 100;
    if (percent >= 0 && percent <= 100) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--extra-distance %s: must be 0%% to 100%%", text);
}

// Two units of a key are one of distance, as similarities from -1 to 1 are two.
static uint64_t extra_of_share(const struct settling *s)
{
    float unit = s->manifest->codec->table->value(s->manifest, s->out->query_bits, 1);
    return (uint64_t)fmin(round(s->asked->extra_share / (double)unit), INT32_MAX);
}

static enum bsw_status settle_histogram(const struct settling *s, struct bsw_error *err)
{
    const struct bsw_search_request *asked = s->asked;
    if (asked->extra_distance > INT32_MAX) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--extra-distance %llu: distances end at 2^31",
                        (unsigned long long)asked->extra_distance);
    }
    if (!s->manifest->codec->table->has_distances) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "histogram selection needs integer distances: codec %s has none, xfbq has",
                        bsw_codec_name(s->manifest->codec));
    }
    uint64_t most = asked->max_candidates > 0 ? asked->max_candidates : BSW_SEARCH_MAX_CANDIDATES;
    if (most < asked->k) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--max-candidates %llu is below --k %llu",
                        (unsigned long long)most, (unsigned long long)asked->k);
    }
    s->out->is_histogram = 1;
    s->out->most_candidates = most;
    s->out->extra_distance = asked->extra_distance;
    if (asked->extra_share > 0) s->out->extra_distance = extra_of_share(s);
    s->out->histogram_k = asked->histogram_k;
    return BSW_OK;
}

static enum bsw_status settle_select(const struct settling *s, struct bsw_error *err)
{
    int is_histogram = s->asked->select == BSW_SELECT_HISTOGRAM;
    if (s->asked->select == BSW_SELECT_QUEUE) BSW_TRY(settle_queue(s, err));
    if (is_histogram) BSW_TRY(settle_histogram(s, err));
    if (s->asked->histogram_k > (is_histogram ? s->asked->k : 0))
        return bsw_fail(err, BSW_ERROR_USAGE, "--histogram-k: no histogram, or above --k");
    return BSW_OK;
}

// What orders or counts in another way than by values, or is measured for the nearest k.
static const char *what_range_cannot(const struct settling *s)
{
    const struct bsw_search_request *asked = s->asked;
    return asked->select != BSW_SELECT_THRESHOLD ? "--select histogram and queue"
           : s->out->selection.is_on             ? "--entries radius"
           : asked->recall != 0     ? "--recall (--probe N or --probe-ratio can be given)"
           : asked->scan_dims != 0  ? "--scan-dims"
           : asked->oversample != 0 ? "--oversample (--margin has its place)"
           : asked->is_partial      ? "--allow-partial"
                                    : NULL;
}

// Candidates of a query, and one more, which tells that there are too many.
static enum bsw_status settle_range(const struct settling *s, struct bsw_error *err)
{
    const char *other = what_range_cannot(s);
    uint64_t most = s->asked->max_candidates > 0 ? s->asked->max_candidates : BSW_SEARCH_MAX_WITHIN;
    if (other) return bsw_fail(err, BSW_ERROR_USAGE, "--within is for searches without %s", other);
    s->out->is_range = 1;
    s->out->k = 0;
    s->out->most_candidates = most;
    most += 1 + s->out->exclude_self;
    s->out->keep = most < s->manifest->num_rows ? most : s->manifest->num_rows;
    return BSW_OK;
}

static enum bsw_status settle_candidates(const struct settling *s, struct bsw_error *err)
{
    const struct bsw_search_request *asked = s->asked;
    struct bsw_search_settings *out = s->out;
    out->exclude_self = asked->exclude_self ? 1 : 0;
    out->is_partial = asked->is_partial != 0;
    if (asked->is_range) return settle_range(s, err);
    uint64_t num_rows = s->manifest->num_rows - out->exclude_self; // that an answer may have
    if (asked->k > num_rows) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--k %llu: the index has %llu rows only%s",
                        (unsigned long long)asked->k, (unsigned long long)s->manifest->num_rows,
                        asked->exclude_self ? ", one of them the query" : "");
    }
    BSW_TRY(settle_select(s, err));
    uint64_t candidates = !out->is_exact ? asked->k
                          : out->is_histogram
                              ? out->most_candidates
                              : bsw_search_keep(asked->k, out->oversample, s->manifest->num_rows);
    // A query that is no row of the index may have all of them.
    if (candidates > s->manifest->num_rows) candidates = s->manifest->num_rows;
    out->keep = candidates + out->exclude_self;
    return BSW_OK;
}

// ---- lists ----

// What is left out behind so many is far away.
#define MOST_PROBE 1024

// Candidates by the first dimensions alone are for exact values to be ordered by.
static enum bsw_status settle_scan_dims(const struct settling *s, struct bsw_error *err)
{
    struct bsw_code_layout first;
    uint64_t dims = s->asked->scan_dims;
    if (dims == 0) return BSW_OK;
    if (s->manifest->lists.count == 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "--scan-dims: %s has no lists", s->index);
    if (!s->out->is_exact || s->manifest->codec->has_bytes)
        return bsw_fail(err, BSW_ERROR_USAGE, "--scan-dims: candidates have to be refined");
    if (s->manifest->codec->has_tables)
        return bsw_fail(err, BSW_ERROR_USAGE, "--scan-dims: codec %s has no first dimensions",
                        bsw_codec_name(s->manifest->codec));
    if (dims > UINT32_MAX || !bsw_code_layout_first(&s->manifest->layout, (uint32_t)dims, &first))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--scan-dims %llu: no segment of %s ends there; info shows them",
                        (unsigned long long)dims, s->index);
    s->out->probe.scan_dims = (uint32_t)dims;
    return BSW_OK;
}

uint32_t bsw_search_most_probe(const struct bsw_manifest *manifest)
{
    return manifest->lists.count < MOST_PROBE ? manifest->lists.count : MOST_PROBE;
}

// What was measured holds for candidates that get exact values, by keys that are no coarser.
static int is_as_calibrated(const struct settling *s)
{
    uint32_t usual = 0;
    if (bsw_codec_query_bits(s->manifest, s->index, 0, &usual, NULL) != BSW_OK) return 0;
    return (s->asked->refine == BSW_REFINE_EXACT || s->manifest->codec->table->has_exact_keys) &&
           s->out->query_bits >= usual &&
           s->out->table == bsw_table_chosen(BSW_TABLE_CHOICE_AUTO) && !s->out->selection.is_on;
}

// Takes the entry's settings. For fewer neighbours than it was measured with, as many candidates as
// then.
static void take_entry(const struct settling *s, const struct bsw_calibration_entry *entry)
{
    double k = (double)s->asked->k, calibrated_k = s->manifest->calibration.k,
           least = entry->oversample;
    int is_all = entry->ratio == 0 && entry->probe == s->manifest->lists.count;
    if (k < calibrated_k) least *= calibrated_k / k;
    if (s->asked->oversample == 0) s->out->oversample = least;
    if (s->out->oversample >= entry->oversample) s->out->recall_calibrated = entry->recall;
    if (!is_all)
        s->out->probe = (struct bsw_probe_settings){.probe = entry->probe, .ratio = entry->ratio};
    s->out->probe.scan_dims = entry->scan_dims;
}

static const struct bsw_calibration_entry *best_of(const struct bsw_calibration *table)
{
    return &table->entries[table->num_entries - 1];
}

static enum bsw_status check_recall(const struct settling *s, struct bsw_error *err)
{
    const struct bsw_search_request *asked = s->asked;
    if (asked->probe > 0 || asked->probe_ratio > 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--recall chooses how many lists are looked at, and so does --%s: give "
                        "one of them",
                        asked->probe > 0 ? "probe" : "probe-ratio");
    if (asked->scan_dims > 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--recall chooses --scan-dims, too: give one of them");
    BSW_TRY(bsw_setting_number("recall", asked->recall, BSW_LEAST_RECALL, 1, err));
    if (s->manifest->lists.count == 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--recall: %s has no lists; encode --lists makes some", s->index);
    if (s->manifest->calibration.num_entries == 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--recall: %s has no table of recalls; bitsweep calibrate makes one",
                        s->index);
    if (!is_as_calibrated(s))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--recall: what %s has measured holds for --refine exact and %s; leave "
                        "these as they are, or give --probe",
                        s->index,
                        s->out->selection.is_on          ? "the default --entries"
                        : s->manifest->codec->has_tables ? "the default --table"
                                                         : "at least the default --query-bits");
    return BSW_OK;
}

static enum bsw_status settle_recall(const struct settling *s, struct bsw_error *err)
{
    const struct bsw_calibration *table = &s->manifest->calibration;
    BSW_TRY(check_recall(s, err));
    const struct bsw_calibration_entry *entry =
        bsw_recall_cheapest(table, s->asked->recall, s->asked->oversample);
    if (entry) {
        take_entry(s, entry);
        return BSW_OK;
    }
    entry = best_of(table);
    if (entry->recall >= s->asked->recall)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--recall %g: %s needs a larger --oversample for it; without the option it "
                        "is chosen",
                        s->asked->recall, s->index);
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--recall %g: the most that %s has measured is %.4f; ask for less, or take "
                    "--probe all and a larger --oversample",
                    s->asked->recall, s->index, entry->recall);
}

// Nothing was said of how many lists. Entries of the table are of scan dims of their own.
static enum bsw_status settle_default(const struct settling *s, struct bsw_error *err)
{
    const struct bsw_calibration *table = &s->manifest->calibration;
    if (table->num_entries == 0 || !is_as_calibrated(s)) return BSW_OK;
    if (s->asked->scan_dims > 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--scan-dims: the table of recalls of %s chooses it, unless you give "
                        "--probe or --probe-ratio, too",
                        s->index);
    const struct bsw_calibration_entry *entry =
        bsw_recall_cheapest(table, BSW_SEARCH_RECALL, s->asked->oversample);
    take_entry(s, entry ? entry : best_of(table));
    return BSW_OK;
}

// --probe and --probe-ratio.
static enum bsw_status settle_probe(const struct settling *s, struct bsw_error *err)
{
    const struct bsw_search_request *asked = s->asked;
    uint32_t lists = s->manifest->lists.count;
    const char *option = asked->probe > 0 ? "--probe" : "--probe-ratio";
    int is_all = asked->probe == BSW_PROBE_ALL;
    if (is_all && asked->probe_ratio == 0) return BSW_OK;
    if (lists == 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %s has no lists; encode --lists makes some",
                        option, s->index);
    if (asked->probe > lists && !is_all)
        return bsw_fail(err, BSW_ERROR_USAGE, "--probe %llu: %s has %u lists",
                        (unsigned long long)asked->probe, s->index, lists);
    if (asked->probe_ratio > 0 && !bsw_has_distances(s->manifest->metric))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--probe-ratio compares distances, and metric %s has none; give --probe N",
                        bsw_metric_name(s->manifest->metric));
    uint32_t probe = is_all             ? lists
                     : asked->probe > 0 ? (uint32_t)asked->probe
                                        : bsw_search_most_probe(s->manifest);
    s->out->probe = (struct bsw_probe_settings){.probe = probe, .ratio = asked->probe_ratio};
    return BSW_OK;
}

static enum bsw_status settle_lists(const struct settling *s, struct bsw_error *err)
{
    const struct bsw_search_request *asked = s->asked;
    if (s->manifest->lists.count > 0 && asked->select != BSW_SELECT_THRESHOLD)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--select %s: %s has lists, which only threshold can search",
                        bsw_search_select_name(asked->select), s->index);
    s->out->oversample = asked->oversample > 0 ? asked->oversample : BSW_SEARCH_OVERSAMPLE;
    if (asked->recall != 0) return settle_recall(s, err);
    if (asked->probe > 0 || asked->probe_ratio > 0) return settle_probe(s, err);
    return asked->is_range ? BSW_OK : settle_default(s, err); // what was measured is of k
}

int bsw_search_is_ladder(enum bsw_search_merge merge, int num_ranks)
{
    return merge == BSW_MERGE_LADDER || (merge != BSW_MERGE_GATHER && num_ranks > 1);
}

const char *bsw_search_merge_name(const struct bsw_search_settings *settings)
{
    if (settings->merge_place == BSW_MERGE_ON_ALL_DEVICES) return "exchange";
    return settings->is_ladder ? "ladder" : "gather";
}

// Queries of a batch: as many as are wanted, or fewer where their candidates would take too much of
// a rank's host memory; at least one.
static size_t fit_batch(const struct settling *s, int num_ranks)
{
    const struct bsw_manifest *manifest = s->manifest;
    uint64_t units = (manifest->num_shards + (uint64_t)num_ranks - 1) / (uint64_t)num_ranks;
    // Rank 0 holds every shard's list when they are gathered, a rank those of its own shards.
    uint64_t lists = s->out->is_ladder ? units + 2 : manifest->num_shards + 1;
    uint64_t query_bytes = lists * s->out->keep * 24 + bsw_manifest_row_dims(manifest) * 24ull +
                           s->out->probe.probe * 8ull;
    uint64_t fit = BATCH_BUDGET_BYTES / query_bytes, wanted = s->asked->batch;
    return (size_t)(fit < 1 ? 1 : fit < wanted ? fit : wanted);
}

enum bsw_status bsw_search_settle(const struct bsw_search_request *request,
                                  const struct bsw_manifest *manifest, const char *index,
                                  int num_ranks, struct bsw_search_settings *out,
                                  struct bsw_error *err)
{
    const struct settling settling = {request, manifest, index, out};
    *out =
        (struct bsw_search_settings){.k = request->k,
                                     .is_exact = request->refine == BSW_REFINE_EXACT,
                                     .is_ladder = bsw_search_is_ladder(request->merge, num_ranks),
                                     .level = request->level,
                                     .num_threads = request->num_threads};
    BSW_TRY(settle_scan(&settling, err));
    BSW_TRY(settle_codes(&settling, err));
    BSW_TRY(settle_lists(&settling, err));
    BSW_TRY(settle_scan_dims(&settling, err));
    BSW_TRY(settle_candidates(&settling, err));
    out->batch = fit_batch(&settling, num_ranks);
    return BSW_OK;
}

// ---- the table of recalls -----------------------------------------------------------------------

double bsw_recall_cost(const struct bsw_calibration *table,
                       const struct bsw_calibration_entry *entry, double oversample)
{
    double rows = entry->rows_a_query;
    if (entry->scan_dims > 0)
        rows *= (double)(entry->scan_dims + BSW_ROW_DIMS) / (table->padded_dims + BSW_ROW_DIMS);
    return rows + (double)BSW_REFINED_ROWS * table->k * oversample;
}

const struct bsw_calibration_entry *bsw_recall_cheapest(const struct bsw_calibration *table,
                                                        double recall, double oversample)
{
    const struct bsw_calibration_entry *best = NULL;
    double least = 0;
    for (uint32_t i = 0; i < table->num_entries; i++) {
        const struct bsw_calibration_entry *entry = &table->entries[i];
        double cost =
            bsw_recall_cost(table, entry, oversample > 0 ? oversample : entry->oversample);
        if (entry->recall < recall || (oversample > 0 && entry->oversample > oversample)) continue;
        if (best && cost >= least) continue;
        best = entry;
        least = cost;
    }
    return best;
}

static int order(double a, double b)
{
    return (a > b) - (a < b);
}

// By cost; of equals the better first, then what looks at less.
static int compare(const struct bsw_calibration *table, const struct bsw_calibration_entry *x,
                   const struct bsw_calibration_entry *y)
{
    int by =
        order(bsw_recall_cost(table, x, x->oversample), bsw_recall_cost(table, y, y->oversample));
    if (by == 0) by = order(y->recall, x->recall);
    if (by == 0) by = order(x->oversample, y->oversample);
    if (by == 0) by = order(x->ratio, y->ratio);
    if (by == 0) by = order(x->probe, y->probe);
    return by != 0 ? by : order(x->scan_dims, y->scan_dims);
}

static void sort(struct bsw_calibration *table)
{
    for (uint32_t i = 1; i < table->num_entries; i++) { // few
        const struct bsw_calibration_entry entry = table->entries[i];
        uint32_t place = i;
        for (; place > 0 && compare(table, &table->entries[place - 1], &entry) > 0; place--)
            table->entries[place] = table->entries[place - 1];
        table->entries[place] = entry;
    }
}

void bsw_recall_front(struct bsw_calibration *table)
{
    uint32_t kept = 0;
    sort(table);
    for (uint32_t i = 0; i < table->num_entries; i++) {
        const struct bsw_calibration_entry *entry = &table->entries[i];
        if (kept > 0 && entry->recall <= table->entries[kept - 1].recall) continue;
        // What nobody can ask for gives way to what follows.
        if (kept > 0 && table->entries[kept - 1].recall < BSW_LEAST_RECALL) kept--;
        table->entries[kept++] = *entry;
    }
    table->num_entries = kept;
}
