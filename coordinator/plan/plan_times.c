// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan/plan_times.h"

#include <stdio.h>
#include <string.h>

#include "common/base/number_parse.h"
#include "coordinator/job/option_table.h"
#include "shard/codecs/codec.h"
#include "shard/codecs/product_codes.h"

#define WORD_BYTES 32

// ---- numbers of ranks ----

static enum bsw_status parse_count(const char *word, uint64_t *out, struct bsw_error *err)
{
    BSW_TRY(bsw_count_parse("--ranks", word, out, err));
    if (*out >= 1 && *out <= BSW_PLAN_MAX_RANKS) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--ranks %s: must be 1 to %d", word, BSW_PLAN_MAX_RANKS);
}

static enum bsw_status add_ranks(uint64_t count, uint64_t *ranks, size_t *num_ranks,
                                 struct bsw_error *err)
{
    if (*num_ranks == BSW_PLAN_MAX_LINES) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--ranks: more than %d numbers", BSW_PLAN_MAX_LINES);
    }
    ranks[(*num_ranks)++] = count;
    return BSW_OK;
}

static enum bsw_status parse_doubled(const char *text, uint64_t *ranks, size_t *num_ranks,
                                     struct bsw_error *err)
{
    const char *end = text;
    char word[WORD_BYTES];
    uint64_t first, last;
    bsw_word_take(&end, ':', word, sizeof word);
    BSW_TRY(parse_count(word, &first, err));
    BSW_TRY(parse_count(end, &last, err));
    if (first > last) return bsw_fail(err, BSW_ERROR_USAGE, "--ranks '%s' is an empty range", text);
    for (uint64_t count = first; count < last; count *= 2)
        BSW_TRY(add_ranks(count, ranks, num_ranks, err));
    return add_ranks(last, ranks, num_ranks, err);
}

enum bsw_status bsw_plan_ranks_parse(const char *text, uint64_t *ranks, size_t *num_ranks,
                                     struct bsw_error *err)
{
    char word[WORD_BYTES];
    *num_ranks = 0;
    if (strchr(text, ':')) return parse_doubled(text, ranks, num_ranks, err);
    while (bsw_word_take(&text, ',', word, sizeof word)) {
        uint64_t count;
        BSW_TRY(parse_count(word, &count, err));
        BSW_TRY(add_ranks(count, ranks, num_ranks, err));
    }
    return BSW_OK;
}

// ---- rates ----

static void take_given(const struct bsw_model_rates *given, struct bsw_model_rates *rates)
{
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        double value = bsw_rate_get(given, i);
        if (value > 0) bsw_rate_set(rates, i, value);
    }
}

// A rate that is given is not one that was scaled.
static void forget_given(const struct bsw_model_rates *given, int has_limits,
                         struct bsw_rates_scaling *scaling)
{
    struct bsw_model_rates *factors = &scaling->factors;
    if (given->scan_pairs_per_second > 0 || has_limits) {
        if (factors->scan_pairs_per_second > 0) factors->scan_pairs_per_second = 1;
        scaling->is_progressive = 0;
        scaling->wanted_kind = scaling->scan_kind;
    }
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        if (bsw_rate_get(given, i) > 0 && bsw_rate_get(factors, i) > 0) bsw_rate_set(factors, i, 1);
    }
}

// Average bits of a dimension, padding included on both sides; of product codes bits of a part.
static struct bsw_rates_code code_of(const struct bsw_plan_index *index, uint64_t batch)
{
    const struct bsw_code_layout *layout = &index->manifest.layout;
    if (index->manifest.codec->has_tables) {
        const struct bsw_product_book *book =
            &index->manifest.codec->table->product(&index->manifest)->book;
        return (struct bsw_rates_code){.codec = index->manifest.codec,
                                       .dims = bsw_manifest_row_dims(&index->manifest),
                                       .bits = book->bits,
                                       .parts = book->parts,
                                       .batch = (double)batch,
                                       .keep = (double)index->search.keep};
    }
    return (struct bsw_rates_code){.codec = index->manifest.codec,
                                   .dims = layout->dims,
                                   .bits = bsw_layout_row_bytes(layout) * 8 / layout->padded_dims,
                                   .query_bits = index->search.query_bits,
                                   .batch = (double)batch,
                                   .keep = (double)index->search.keep};
}

static enum bsw_status settle_rates(const struct bsw_plan_time_settings *settings,
                                    const struct bsw_plan_index *index, uint64_t batch,
                                    struct bsw_plan_times *out, struct bsw_error *err)
{
    struct bsw_measured_rates measured = {.rates.threads = 1};
    const struct bsw_rates_code code = code_of(index, batch);
    if (settings->rates_path) {
        BSW_TRY(bsw_model_rates_read(settings->rates_path, &measured, err));
        BSW_TRY(bsw_model_rates_convert(settings->rates_path, &measured, &code, settings->level,
                                        &out->rates, &out->scaling, err));
    } else {
        out->rates = measured.rates;
        if (settings->threads > 0)
            out->rates.threads = settings->threads; // of a rank as it will be
    }
    out->limits = bsw_device_limits_of(settings->device);
    out->rates.scans_on_device = strcmp(settings->device, "gpu") == 0;
    if (out->limits) {
        if (settings->given.scan_pairs_per_second > 0 || settings->given.scan_bytes_per_second > 0)
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "--device %s has limits in place of rates of scans: --device gpu takes "
                            "those of a GPU",
                            settings->device);
        int has_tables = index->manifest.codec->has_tables;
        bsw_device_limits_apply(out->limits, has_tables ? 0 : index->manifest.layout.padded_dims,
                                &out->rates);
        out->memory_bytes = (uint64_t)out->limits->memory_bytes;
    }
    take_given(&settings->given, &out->rates);
    if (settings->rates_path) forget_given(&settings->given, out->limits != NULL, &out->scaling);
    if (settings->memory_bytes > 0) out->memory_bytes = settings->memory_bytes;
    out->threads = settings->threads > 0 ? settings->threads : out->rates.threads;
    out->cores = settings->cores > 0 ? settings->cores : measured.cores;
    if (out->cores == 0) out->cores = out->threads * settings->ranks_a_host;
    return BSW_OK;
}

// ---- lines ----

static struct bsw_cluster_job job_of(const struct bsw_plan_time_settings *settings,
                                     const struct bsw_plan_index *index,
                                     const struct bsw_plan_times *times, uint64_t num_ranks)
{
    return (struct bsw_cluster_job){
        .num_ranks = num_ranks,
        .ranks_a_host = settings->ranks_a_host,
        .cores = times->cores,
        .threads = times->threads,
        .num_shards = index->manifest.num_shards,
        .num_replicas = index->assignment.num_slices,
        .rows = index->most_rows,
        .shard_rows = index->manifest.num_rows / index->manifest.num_shards,
        .scanned_bytes = bsw_resident_scan_bytes(&index->most.parts),
        .batch = index->search.batch,
        .batch_bytes = bsw_plan_batch_bytes(index, index->search.batch),
        .keep = index->search.keep,
        .is_ladder = index->search.is_ladder,
        .is_refined = index->search.is_exact,
    };
}

static enum bsw_plan_gap gap_of(const struct bsw_plan_times *times,
                                const struct bsw_plan_line *line)
{
    const struct bsw_model_rates *rates = &times->rates;
    if (rates->scan_pairs_per_second <= 0 && rates->scan_bytes_per_second <= 0)
        return BSW_PLAN_NO_SCAN;
    if (times->memory_bytes > 0 && line->resident_bytes > times->memory_bytes)
        return BSW_PLAN_NO_MEMORY;
    int has_network = rates->alpha_seconds > 0 && rates->beta_seconds_per_byte > 0;
    return line->num_ranks > 1 && !has_network ? BSW_PLAN_NO_NETWORK : BSW_PLAN_COMPLETE;
}

static void time_line(const struct bsw_plan_time_settings *settings,
                      const struct bsw_plan_index *index, uint64_t num_ranks,
                      struct bsw_plan_times *out)
{
    struct bsw_plan_line *line = &out->lines[out->num_lines++];
    const struct bsw_cluster_job job = job_of(settings, index, out, num_ranks);
    *line = (struct bsw_plan_line){.num_ranks = num_ranks,
                                   .num_shards = job.num_shards,
                                   .num_replicas = job.num_replicas,
                                   .most_rows = job.rows,
                                   .resident_bytes = bsw_plan_memory_bytes(&index->most),
                                   .batch = job.batch};
    line->gap = gap_of(out, line);
    if (line->gap == BSW_PLAN_COMPLETE) bsw_cluster_times_of(&out->rates, &job, &line->times);
}

static void compare_lines(struct bsw_plan_times *times)
{
    double first = 0;
    for (size_t i = 0; i < times->num_lines; i++) {
        struct bsw_plan_line *line = &times->lines[i];
        if (line->gap != BSW_PLAN_COMPLETE) continue;
        double a_rank = line->times.queries_per_second / (double)line->num_ranks;
        if (first == 0) first = a_rank;
        line->efficiency = a_rank / first;
    }
}

enum bsw_status bsw_plan_times_make(const struct bsw_plan_settings *index_settings,
                                    const struct bsw_plan_time_settings *settings,
                                    const uint64_t *ranks, size_t num_ranks,
                                    struct bsw_plan_times *out, struct bsw_error *err)
{
    *out = (struct bsw_plan_times){.num_lines = 0};
    for (size_t i = 0; i < num_ranks; i++) {
        struct bsw_plan_index index;
        enum bsw_status status = bsw_plan_index_make(index_settings, ranks[i], &index, err);
        if (status == BSW_OK && i == 0)
            status = settle_rates(settings, &index, index_settings->search.batch, out, err);
        if (status == BSW_OK) time_line(settings, &index, ranks[i], out);
        bsw_plan_index_deinit(&index);
        BSW_TRY(status);
    }
    compare_lines(out);
    return BSW_OK;
}
