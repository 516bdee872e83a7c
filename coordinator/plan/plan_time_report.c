// SPDX-License-Identifier: Apache-2.0
// The times of a plan.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/plan/plan_report.h"

// ---- lines ----

static const struct {
    const char *of_line, *of_all;
} gaps[] = {
    [BSW_PLAN_NO_SCAN] = {"no rate of scans",
                          "no times: no rate of scans is known (--rates, --scan-rate)"},
    [BSW_PLAN_NO_NETWORK] = {"no rates of the network",
                             "no times of several ranks: no network is known (--rates, or --alpha "
                             "and --beta)"},
    [BSW_PLAN_NO_MEMORY] = {"more than the memory of a rank",
                            "no times where a rank's part is more than its memory"},
};

static int has_gap(const struct bsw_plan_times *times, enum bsw_plan_gap gap)
{
    for (size_t i = 0; i < times->num_lines; i++) {
        if (times->lines[i].gap == gap) return 1;
    }
    return 0;
}

// Three digits, in a column of eight.
static void say_seconds(struct bsw_facts *facts, double seconds)
{
    if (seconds == 0)
        bsw_facts_say(facts, " %8s", "-");
    else if (seconds < 0.9995e-3)
        bsw_facts_say(facts, " %7.3gu", seconds * 1e6);
    else if (seconds < 0.9995)
        bsw_facts_say(facts, " %7.3gm", seconds * 1e3);
    else
        bsw_facts_say(facts, " %8.*f", seconds < 10 ? 2 : seconds < 100 ? 1 : 0, seconds);
}

static void tell_phases(struct bsw_facts *facts, const struct bsw_cluster_times *t)
{
    const struct {
        const char *name;
        double seconds;
    } phases[] = {
        {"encode", t->encode},         {"broadcast", t->broadcast}, {"scan", t->scan},
        {"candidates", t->candidates}, {"merge", t->merge},         {"cuts", t->cuts},
        {"refine", t->refine},         {"answers", t->answers},     {"finish", t->finish}};
    const double columns[] = {t->encode, t->broadcast + t->candidates + t->cuts + t->answers,
                              t->scan,   t->merge,
                              t->refine, t->finish};
    bsw_facts_open_object(facts, "seconds_by_phase");
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
        bsw_fact_real(facts, phases[i].name, phases[i].seconds, NULL);
    bsw_facts_close(facts);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) say_seconds(facts, columns[i]);
}

static void tell_times(struct bsw_facts *facts, const struct bsw_plan_line *line)
{
    const struct bsw_cluster_times *t = &line->times;
    tell_phases(facts, t);
    bsw_fact_real(facts, "seconds", t->total, NULL);
    say_seconds(facts, t->total);
    bsw_fact_real(facts, "queries_per_second", t->queries_per_second, " %10.4g");
    bsw_fact_real(facts, "efficiency", line->efficiency, NULL);
    bsw_facts_say(facts, " %9.1f %%", 100 * line->efficiency);
    bsw_fact_real(facts, "threads_a_core", t->crowd, NULL);
    bsw_fact_flag(facts, "is_overlapped", t->is_overlapped, NULL);
    bsw_facts_open_object(facts, "bytes_by_exchange");
    bsw_fact_real(facts, "batch_bytes", t->batch_bytes, NULL);
    bsw_fact_real(facts, "candidates_bytes", t->candidates_bytes, NULL);
    bsw_fact_real(facts, "cuts_bytes", t->cuts_bytes, NULL);
    bsw_fact_real(facts, "answers_bytes", t->answers_bytes, NULL);
    bsw_facts_close(facts);
}

static void tell_line(struct bsw_facts *facts, const struct bsw_plan_line *line)
{
    bsw_facts_open_object(facts, NULL);
    bsw_fact_integer(facts, "ranks", line->num_ranks, "  %5d");
    bsw_fact_integer(facts, "shards", line->num_shards, NULL);
    bsw_fact_integer(facts, "replicas", line->num_replicas, NULL);
    bsw_fact_integer(facts, "rows_a_rank", line->most_rows, " %13d");
    bsw_fact_bytes(facts, "resident_bytes", line->resident_bytes, " %10s");
    bsw_fact_integer(facts, "batch", line->batch, NULL);
    if (line->gap == BSW_PLAN_COMPLETE)
        tell_times(facts, line);
    else
        bsw_fact_text(facts, "no_times", gaps[line->gap].of_line, NULL);
    bsw_facts_say(facts, "\n");
    bsw_facts_close(facts);
}

static void tell_lines(struct bsw_facts *facts, const struct bsw_plan_times *times)
{
    bsw_facts_say(facts, "\n  %5s %13s %10s", "ranks", "rows a rank", "memory");
    if (has_gap(times, BSW_PLAN_COMPLETE))
        bsw_facts_say(facts, " %8s %8s %8s %8s %8s %8s %8s %10s %11s", "encode", "messages", "scan",
                      "merge", "refine", "finish", "batch s", "queries/s", "efficiency");
    bsw_facts_say(facts, "\n");
    bsw_facts_open_list(facts, "lines");
    for (size_t i = 0; i < times->num_lines; i++) tell_line(facts, &times->lines[i]);
    bsw_facts_close(facts);
    bsw_facts_say(facts, "\n");
}

// ---- rates ----

// Where memory cuts batches they are not the same for all numbers of ranks.
static void say_batches(struct bsw_facts *facts, const struct bsw_plan_times *times)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < times->num_lines; i++) {
        if (times->lines[i].gap != BSW_PLAN_COMPLETE) continue;
        if (times->lines[i].batch < least) least = times->lines[i].batch;
        if (times->lines[i].batch > most) most = times->lines[i].batch;
    }
    bsw_facts_say(facts, "seconds of a batch of ");
    if (least < most) bsw_facts_say(facts, "%llu to ", (unsigned long long)least);
    bsw_facts_say(facts, "%llu queries", (unsigned long long)most);
    bsw_facts_say(
        facts, ", by the model of bench/scaling.md; ranks of %llu threads, hosts of %llu cores\n",
        (unsigned long long)times->threads, (unsigned long long)times->cores);
}

// Rates are told where there are times of them.
static void tell_rates(struct bsw_facts *facts, const struct bsw_plan_times *times)
{
    const struct bsw_model_rates *rates = &times->rates;
    int is_said = has_gap(times, BSW_PLAN_COMPLETE);
    const char *separator = "rates: ";
    bsw_fact_integer(facts, "threads", rates->threads, NULL);
    bsw_fact_text(facts, "device",
                  times->limits            ? times->limits->name
                  : rates->scans_on_device ? "gpu"
                                           : "cpu",
                  NULL);
    bsw_fact_flag(facts, "scan_is_computed_limit", times->limits != NULL, NULL);
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        double value = bsw_rate_get(rates, i);
        if (value <= 0) continue;
        bsw_fact_real(facts, bsw_rates[i].key, value, NULL);
        if (!is_said || !bsw_rates[i].phase) continue;
        bsw_facts_say(facts, "%s%s %.4g %s", separator, bsw_rates[i].phase, value,
                      bsw_rates[i].unit);
        separator = ", ";
    }
    if (!is_said) return;
    if (rates->alpha_seconds > 0 && rates->beta_seconds_per_byte > 0)
        bsw_facts_say(facts, "%salpha %.3g s, beta %.3g s/byte", separator, rates->alpha_seconds,
                      rates->beta_seconds_per_byte);
    bsw_facts_say(facts, "\n");
    if (times->limits) {
        bsw_facts_say(facts,
                      "scan and reading codes are computed limits of %s (%.4g multiply-adds/s, "
                      "%.4g bytes/s), not measured: no scan is faster\n",
                      times->limits->name, times->limits->multiply_adds_per_second,
                      times->limits->bytes_per_second);
    }
}

static void say_code(struct bsw_facts *facts, const char *before, const struct bsw_rates_code *code)
{
    if (code->codec->has_tables)
        bsw_facts_say(facts, "%s%s, %g dims, %g subspaces of %g bits", before,
                      bsw_codec_name(code->codec), code->dims, code->parts, code->bits);
    else
        bsw_facts_say(facts, "%s%s, %g dims x %.3g bits, queries of %g bits", before,
                      bsw_codec_name(code->codec), code->dims, code->bits, code->query_bits);
    if (code->keep > 0) bsw_facts_say(facts, ", L %g", code->keep);
}

// The factor by which a rate was scaled; 1 if it was not.
static double factor_of(const struct bsw_rates_scaling *s, size_t rate)
{
    double factor = bsw_rate_get(&s->factors, rate);
    return factor > 0 ? factor : 1;
}

static int is_scaled(const struct bsw_rates_scaling *s)
{
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        if (factor_of(s, i) != 1) return 1;
    }
    return s->is_progressive || s->is_other_codec || s->scan_kind != s->wanted_kind;
}

static void tell_from(struct bsw_facts *facts, const struct bsw_rates_scaling *s)
{
    bsw_fact_text(facts, "codec", bsw_codec_name(s->from.codec), NULL);
    bsw_fact_real(facts, "dims", s->from.dims, NULL);
    bsw_fact_real(facts, "bits", s->from.bits, NULL);
    if (s->from.codec->has_tables)
        bsw_fact_real(facts, "subspaces", s->from.parts, NULL);
    else
        bsw_fact_real(facts, "query_bits", s->from.query_bits, NULL);
    bsw_fact_flag(facts, "is_other_codec", s->is_other_codec, NULL);
    bsw_fact_flag(facts, "is_progressive_guess", s->is_progressive, NULL);
    bsw_fact_flag(facts, "is_other_scan", s->scan_kind != s->wanted_kind, NULL);
}

// What rates of another code were multiplied with, and what that takes for granted.
static void say_scaling(struct bsw_facts *facts, const struct bsw_rates_scaling *s)
{
    const char *separator = "; scaled by multiply-adds and bytes: ";
    say_code(facts, "rates were measured with ", &s->from);
    say_code(facts, "\nand are wanted for ", &s->to);
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        if (factor_of(s, i) == 1) continue;
        bsw_facts_say(facts, "%s%s x %.4g", separator, bsw_rates[i].phase, factor_of(s, i));
        separator = ", ";
    }
    bsw_facts_say(facts, "\n");
    if (s->is_other_codec)
        bsw_facts_say(facts, "a guess: choosing candidates takes as long a row as with %s\n",
                      bsw_codec_name(s->from.codec));
    if (s->is_progressive)
        bsw_facts_say(facts, "a guess: as many rows go on after the first stage; that depends on "
                             "the data\n");
    if (s->scan_kind != s->wanted_kind)
        bsw_facts_say(facts,
                      "a guess: scans go over %s as measured; a batch of such codes takes %s\n",
                      bsw_scan_name(s->scan_kind), bsw_scan_name(s->wanted_kind));
}

static void tell_scaling(struct bsw_facts *facts, const struct bsw_plan_times *times)
{
    const struct bsw_rates_scaling *s = &times->scaling;
    if (!is_scaled(s)) return;
    bsw_facts_open_object(facts, "scaled");
    tell_from(facts, s);
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        char key[32];
        double factor = bsw_rate_get(&s->factors, i);
        if (factor <= 0) continue;
        snprintf(key, sizeof key, "%s_factor", bsw_rates[i].phase);
        bsw_fact_real(facts, key, factor, NULL);
    }
    bsw_facts_close(facts);
    if (has_gap(times, BSW_PLAN_COMPLETE)) say_scaling(facts, s);
}

static void say_notes(struct bsw_facts *facts, const struct bsw_plan_times *times)
{
    const char *separator = "not counted, as no rate is known: ";
    double crowd = 1;
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        if (!bsw_rates[i].option || bsw_rate_get(&times->rates, i) > 0) continue;
        bsw_facts_say(facts, "%s%s (%s)", separator, bsw_rates[i].phase, bsw_rates[i].option);
        separator = ", ";
    }
    if (*separator == ',') bsw_facts_say(facts, "\n");
    for (size_t i = 0; i < times->num_lines; i++) crowd = fmax(crowd, times->lines[i].times.crowd);
    if (crowd > 1)
        bsw_facts_say(facts,
                      "up to %.3g threads on a core: scans and refinement take so much longer\n",
                      crowd);
}

void bsw_plan_times_facts(struct bsw_facts *facts, const struct bsw_plan_times *times)
{
    int has_times = has_gap(times, BSW_PLAN_COMPLETE);
    tell_lines(facts, times);
    if (has_times) say_batches(facts, times);
    bsw_facts_open_object(facts, "rates");
    tell_rates(facts, times);
    tell_scaling(facts, times);
    bsw_facts_close(facts);
    if (has_times) say_notes(facts, times);
    for (enum bsw_plan_gap gap = BSW_PLAN_NO_SCAN; gap <= BSW_PLAN_NO_MEMORY; gap++) {
        if (has_gap(times, gap)) bsw_facts_say(facts, "%s\n", gaps[gap].of_all);
    }
}
