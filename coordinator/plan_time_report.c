#include "coordinator/plan_time_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/command.h"

// ---- table ----

static const char *gap_text(enum bsw_plan_gap gap)
{
    static const char *const texts[] = {
        [BSW_PLAN_COMPLETE] = "",
        [BSW_PLAN_NO_SCAN] = "no times: no rate of scans is known (--rates, --scan-rate)",
        [BSW_PLAN_NO_NETWORK] =
            "no times of several ranks: no network is known (--rates, or --alpha and --beta)",
        [BSW_PLAN_NO_MEMORY] = "no times where a rank's part is more than its memory",
    };
    return texts[gap];
}

static int has_gap(const struct bsw_plan_times *times, enum bsw_plan_gap gap)
{
    for (size_t i = 0; i < times->num_lines; i++) {
        if (times->lines[i].gap == gap) return 1;
    }
    return 0;
}

// Three digits, in a column of eight.
static void print_seconds(double seconds)
{
    if (seconds == 0)
        printf(" %8s", "-");
    else if (seconds < 0.9995e-3)
        printf(" %7.3gu", seconds * 1e6);
    else if (seconds < 0.9995)
        printf(" %7.3gm", seconds * 1e3);
    else
        printf(" %8.*f", seconds < 10 ? 2 : seconds < 100 ? 1 : 0, seconds);
}

static void print_line(const struct bsw_plan_line *line)
{
    const struct bsw_cluster_times *t = &line->times;
    char memory[32];
    bsw_format_bytes((double)line->resident_bytes, memory, sizeof memory);
    printf("  %5llu %13llu %10s", (unsigned long long)line->num_ranks,
           (unsigned long long)line->most_rows, memory);
    if (line->gap == BSW_PLAN_COMPLETE) {
        const double seconds[] = {t->encode, t->broadcast + t->candidates + t->cuts + t->answers,
                                  t->scan,   t->merge,
                                  t->refine, t->finish,
                                  t->total};
        for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) print_seconds(seconds[i]);
        printf(" %10.4g %9.1f %%", t->queries_per_second, 100 * line->efficiency);
    }
    printf("\n");
}

// Where memory cuts batches they are not the same for all numbers of ranks.
static void print_batches(const struct bsw_plan_times *times)
{
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < times->num_lines; i++) {
        if (times->lines[i].gap != BSW_PLAN_COMPLETE) continue;
        if (times->lines[i].batch < least) least = times->lines[i].batch;
        if (times->lines[i].batch > most) most = times->lines[i].batch;
    }
    printf("seconds of a batch of ");
    if (least < most) printf("%llu to ", (unsigned long long)least);
    printf("%llu queries", (unsigned long long)most);
}

static void print_rates(const struct bsw_plan_times *times)
{
    const struct bsw_model_rates *rates = &times->rates;
    const char *separator = "rates: ";
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        double value = bsw_rate_get(rates, i);
        if (!bsw_rates[i].phase || value <= 0) continue;
        printf("%s%s %.4g %s", separator, bsw_rates[i].phase, value, bsw_rates[i].unit);
        separator = ", ";
    }
    if (rates->alpha_seconds > 0 && rates->beta_seconds_per_byte > 0)
        printf("%salpha %.3g s, beta %.3g s/byte", separator, rates->alpha_seconds,
               rates->beta_seconds_per_byte);
    printf("\n");
    if (times->limits) {
        printf("scan and reading codes are computed limits of %s (%.4g multiply-adds/s, %.4g "
               "bytes/s), not measured: no scan is faster\n",
               times->limits->name, times->limits->multiply_adds_per_second,
               times->limits->bytes_per_second);
    }
}

static void print_code(const char *before, const struct bsw_rates_code *code)
{
    printf("%s%s, %g dims x %.3g bits, queries of %g bits", before, bsw_codec_name(code->codec),
           code->dims, code->bits, code->query_bits);
    if (code->keep > 0) printf(", L %g", code->keep);
}

struct factor {
    const char *phase, *key; // in the report, in JSON
    double value;
};
enum { NUM_FACTORS = 4 };

static void list_factors(const struct bsw_rates_scaling *s, struct factor out[NUM_FACTORS])
{
    const struct factor factors[NUM_FACTORS] = {{"scan", "scan_factor", s->scan},
                                                {"encode", "encode_factor", s->encode},
                                                {"refine", "refine_factor", s->refine},
                                                {"finish", "finish_factor", s->finish}};
    memcpy(out, factors, sizeof factors);
}

static int is_scaled(const struct bsw_rates_scaling *s)
{
    struct factor factors[NUM_FACTORS];
    list_factors(s, factors);
    for (size_t i = 0; i < NUM_FACTORS; i++) {
        if (factors[i].value > 0 && factors[i].value != 1) return 1;
    }
    return s->is_progressive || s->is_other_codec || s->scan_kind != s->wanted_kind;
}

// What rates of another code were multiplied with, and what that takes for granted.
static void print_scaling(const struct bsw_rates_scaling *s)
{
    struct factor factors[NUM_FACTORS];
    const char *separator = "; scaled by multiply-adds and bytes: ";
    if (!is_scaled(s)) return;
    list_factors(s, factors);
    print_code("rates were measured with ", &s->from);
    print_code("\nand are wanted for ", &s->to);
    for (size_t i = 0; i < NUM_FACTORS; i++) {
        if (factors[i].value == 1) continue;
        printf("%s%s x %.4g", separator, factors[i].phase, factors[i].value);
        separator = ", ";
    }
    printf("\n");
    if (s->is_other_codec)
        printf("a guess: choosing candidates takes as long a row as with %s\n",
               bsw_codec_name(s->from.codec));
    if (s->is_progressive)
        printf("a guess: as many rows go on after the first stage; that depends on the data\n");
    if (s->scan_kind != s->wanted_kind)
        printf("a guess: scans go over %s as measured; a batch of such codes takes %s\n",
               bsw_scan_name(s->scan_kind), bsw_scan_name(s->wanted_kind));
}

static void print_notes(const struct bsw_plan_times *times)
{
    const char *separator = "not counted, as no rate is known: ";
    double crowd = 1;
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        if (!bsw_rates[i].option || bsw_rate_get(&times->rates, i) > 0) continue;
        printf("%s%s (%s)", separator, bsw_rates[i].phase, bsw_rates[i].option);
        separator = ", ";
    }
    if (*separator == ',') printf("\n");
    for (size_t i = 0; i < times->num_lines; i++) crowd = fmax(crowd, times->lines[i].times.crowd);
    if (crowd > 1)
        printf("up to %.3g threads on a core: scans and refinement take so much longer\n", crowd);
}

void bsw_plan_times_print(const struct bsw_plan_times *times)
{
    static const enum bsw_plan_gap gaps[] = {BSW_PLAN_NO_SCAN, BSW_PLAN_NO_NETWORK,
                                             BSW_PLAN_NO_MEMORY};
    int has_times = has_gap(times, BSW_PLAN_COMPLETE);
    printf("\n  %5s %13s %10s", "ranks", "rows a rank", "memory");
    if (has_times)
        printf(" %8s %8s %8s %8s %8s %8s %8s %10s %11s", "encode", "messages", "scan", "merge",
               "refine", "finish", "batch s", "queries/s", "efficiency");
    printf("\n");
    for (size_t i = 0; i < times->num_lines; i++) print_line(&times->lines[i]);
    printf("\n");
    if (has_times) {
        print_batches(times);
        printf(", by the model of bench/scaling.md; ranks of %llu threads, hosts of %llu cores\n",
               (unsigned long long)times->threads, (unsigned long long)times->cores);
        print_rates(times);
        if (times->scaling.scan > 0) print_scaling(&times->scaling);
        print_notes(times);
    }
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++) {
        if (has_gap(times, gaps[i])) printf("%s\n", gap_text(gaps[i]));
    }
}

// ---- JSON ----

static json_t *describe_scaling(const struct bsw_rates_scaling *s)
{
    struct factor factors[NUM_FACTORS];
    list_factors(s, factors);
    json_t *object =
        json_pack("{s:s, s:f, s:f, s:f, s:b, s:b, s:b}", "codec", bsw_codec_name(s->from.codec),
                  "dims", s->from.dims, "bits", s->from.bits, "query_bits", s->from.query_bits,
                  "is_other_codec", s->is_other_codec, "is_progressive_guess", s->is_progressive,
                  "is_other_scan", s->scan_kind != s->wanted_kind);
    for (size_t i = 0; i < NUM_FACTORS; i++)
        json_object_set_new(object, factors[i].key, json_real(factors[i].value));
    return object;
}

json_t *bsw_plan_rates_describe(const struct bsw_plan_times *times)
{
    const struct bsw_model_rates *rates = &times->rates;
    json_t *object = json_pack("{s:I, s:s, s:b}", "threads", (json_int_t)rates->threads, "device",
                               times->limits            ? times->limits->name
                               : rates->scans_on_device ? "gpu"
                                                        : "cpu",
                               "scan_is_computed_limit", times->limits != NULL);
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        double value = bsw_rate_get(rates, i);
        if (value > 0) json_object_set_new(object, bsw_rates[i].key, json_real(value));
    }
    if (times->scaling.scan > 0 && is_scaled(&times->scaling))
        json_object_set_new(object, "scaled", describe_scaling(&times->scaling));
    return object;
}

static void describe_times(const struct bsw_cluster_times *t, json_t *line)
{
    json_object_set_new(line, "seconds", json_real(t->total));
    json_object_set_new(line, "queries_per_second", json_real(t->queries_per_second));
    json_object_set_new(line, "threads_a_core", json_real(t->crowd));
    json_object_set_new(line, "is_overlapped", json_boolean(t->is_overlapped));
    json_object_set_new(line, "seconds_by_phase",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "encode",
                                  t->encode, "broadcast", t->broadcast, "scan", t->scan,
                                  "candidates", t->candidates, "merge", t->merge, "cuts", t->cuts,
                                  "refine", t->refine, "answers", t->answers, "finish", t->finish));
    json_object_set_new(line, "bytes_by_exchange",
                        json_pack("{s:f, s:f, s:f, s:f}", "batch_bytes", t->batch_bytes,
                                  "candidates_bytes", t->candidates_bytes, "cuts_bytes",
                                  t->cuts_bytes, "answers_bytes", t->answers_bytes));
}

json_t *bsw_plan_lines_describe(const struct bsw_plan_times *times)
{
    static const char *const gaps[] = {[BSW_PLAN_COMPLETE] = "",
                                       [BSW_PLAN_NO_SCAN] = "no rate of scans",
                                       [BSW_PLAN_NO_NETWORK] = "no rates of the network",
                                       [BSW_PLAN_NO_MEMORY] = "more than the memory of a rank"};
    json_t *lines = json_array();
    for (size_t i = 0; i < times->num_lines; i++) {
        const struct bsw_plan_line *line = &times->lines[i];
        json_t *object = json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:I}", "ranks", (json_int_t)line->num_ranks, "shards",
            (json_int_t)line->num_shards, "replicas", (json_int_t)line->num_replicas, "rows_a_rank",
            (json_int_t)line->most_rows, "resident_bytes", (json_int_t)line->resident_bytes,
            "batch", (json_int_t)line->batch);
        if (line->gap == BSW_PLAN_COMPLETE) {
            describe_times(&line->times, object);
            json_object_set_new(object, "efficiency", json_real(line->efficiency));
        } else {
            json_object_set_new(object, "no_times", json_string(gaps[line->gap]));
        }
        json_array_append_new(lines, object);
    }
    return lines;
}
