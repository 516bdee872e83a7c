// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan/model_rates.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "common/base/file.h"
#include "kernels/encode/raw_codes.h"
#include "kernels/tuning/scan_tuning.h"
#include "shard/codecs/codec.h"

#define LEAST_NUMBER 1e-15
#define MOST_NUMBER  1e18

#define RATE(field)  offsetof(struct bsw_model_rates, field)

const struct bsw_rate bsw_rates[BSW_NUM_RATES] = {
    {"alpha_seconds", NULL, NULL, NULL, RATE(alpha_seconds)},
    {"beta_seconds_per_byte", NULL, NULL, NULL, RATE(beta_seconds_per_byte)},
    {"scan_pairs_per_second", "scan", "pairs/s", NULL, RATE(scan_pairs_per_second)},
    {"scan_bytes_per_second", "reading codes", "bytes/s", NULL, RATE(scan_bytes_per_second)},
    {"encode_queries_per_second", "encode", "queries/s", "--encode-rate",
     RATE(encode_queries_per_second)},
    {"merge_candidates_per_second", "merge", "candidates/s", "--merge-rate",
     RATE(merge_candidates_per_second)},
    {"refine_rows_per_second", "refine", "rows/s", "--refine-rate", RATE(refine_rows_per_second)},
    {"finish_queries_per_second", "finish", "queries/s", "--finish-rate",
     RATE(finish_queries_per_second)},
    {"busy_core_share", NULL, NULL, NULL, RATE(busy_core_share)},
};

double bsw_rate_get(const struct bsw_model_rates *rates, size_t rate)
{
    return *(const double *)(const void *)((const char *)rates + bsw_rates[rate].offset);
}

void bsw_rate_set(struct bsw_model_rates *rates, size_t rate, double value)
{
    *(double *)(void *)((char *)rates + bsw_rates[rate].offset) = value;
}

// ---- reading ----

// Where it is read from, for error texts: "FILE: rates.code.dims ...".
struct rates_object {
    const char *path, *prefix;
    const json_t *json;
};

static int is_within(double value, double most)
{
    return value > 0 && value <= most;
}

// A positive number, or 0 where the key is missing.
static enum bsw_status read_number(const struct rates_object *object, const char *key, double *out,
                                   struct bsw_error *err)
{
    const json_t *value = json_object_get(object->json, key);
    *out = 0;
    if (!value) return BSW_OK;
    *out = json_number_value(value);
    if (json_is_number(value) && *out >= LEAST_NUMBER && *out <= MOST_NUMBER) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s.%s is no number from %g to %g", object->path,
                    object->prefix, key, LEAST_NUMBER, MOST_NUMBER);
}

// The same, whole and at most 1e6.
static enum bsw_status read_count(const struct rates_object *object, const char *key, double *out,
                                  struct bsw_error *err)
{
    BSW_TRY(read_number(object, key, out, err));
    if (*out <= 1e6 && *out == floor(*out)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s.%s is no count up to a million", object->path,
                    object->prefix, key);
}

static enum bsw_status read_codec(const struct rates_object *object, const struct bsw_codec **out,
                                  struct bsw_error *err)
{
    const char *name = json_string_value(json_object_get(object->json, "codec"));
    if (name && bsw_codec_parse(name, out, NULL) == BSW_OK) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s.codec is none that there is", object->path,
                    object->prefix);
}

// AUTO where the key is missing.
static enum bsw_status read_scan(const struct rates_object *object, enum bsw_scan_kind *out,
                                 struct bsw_error *err)
{
    const json_t *value = json_object_get(object->json, "scan");
    const char *name = json_string_value(value);
    *out = name ? bsw_scan_kind_of(name) : BSW_SCAN_AUTO;
    if (!value || (name && strcmp(name, bsw_scan_name(*out)) == 0)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s.scan is none of %s", object->path,
                    object->prefix, BSW_SCAN_NAMES);
}

static enum bsw_status read_code(const char *path, const json_t *json, struct bsw_rates_code *out,
                                 struct bsw_error *err)
{
    const struct rates_object object = {path, "rates.code", json};
    double k, oversample;
    if (!json_is_object(json))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: rates.code is no object", path);
    BSW_TRY(read_codec(&object, &out->codec, err));
    BSW_TRY(read_scan(&object, &out->scan, err));
    BSW_TRY(read_count(&object, "dims", &out->dims, err));
    BSW_TRY(read_number(&object, "bits", &out->bits, err));
    BSW_TRY(read_count(&object, "query_bits", &out->query_bits, err));
    BSW_TRY(read_count(&object, "subspaces", &out->parts, err));
    BSW_TRY(read_count(&object, "batch", &out->batch, err));
    BSW_TRY(read_count(&object, "k", &k, err));
    BSW_TRY(read_number(&object, "oversample", &oversample, err));
    out->keep = k * (oversample > 0 ? oversample : 1);
    if (out->codec->has_tables && is_within(out->dims, BSW_MAX_DIMS) &&
        (out->bits == 4 || out->bits == 8) && is_within(out->parts, out->dims) && out->batch > 0)
        return BSW_OK;
    if (out->codec->has_tables)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: rates.code: dims, bits (4 or 8), subspaces or batch are missing or "
                        "too large",
                        path);
    if (is_within(out->dims, BSW_MAX_DIMS) && is_within(out->bits, BSW_MAX_CODE_BITS) &&
        is_within(out->query_bits, BSW_RAW_QUERY_BITS) && out->batch > 0)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: rates.code: dims, bits, query_bits or batch are missing or too large",
                    path);
}

static enum bsw_status read_rates(const char *path, const json_t *json,
                                  struct bsw_measured_rates *out, struct bsw_error *err)
{
    const struct rates_object object = {path, "rates", json};
    double threads, cores;
    int num_known = 0;
    if (!json_is_object(json))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no object \"rates\" in it", path);
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        double value;
        BSW_TRY(read_number(&object, bsw_rates[i].key, &value, err));
        bsw_rate_set(&out->rates, i, value);
        num_known += value > 0;
    }
    if (num_known == 0) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no rate in it", path);
    if (out->rates.busy_core_share > 1)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: rates.busy_core_share is above 1", path);
    BSW_TRY(read_count(&object, "threads", &threads, err));
    BSW_TRY(read_count(&object, "cores", &cores, err));
    out->rates.threads = threads > 0 ? (uint64_t)threads : 1;
    out->cores = (uint64_t)cores;
    const json_t *code = json_object_get(json, "code");
    return code ? read_code(path, code, &out->code, err) : BSW_OK;
}

enum bsw_status bsw_model_rates_read(const char *path, struct bsw_measured_rates *out,
                                     struct bsw_error *err)
{
    json_t *object;
    *out = (struct bsw_measured_rates){0};
    BSW_TRY(bsw_json_file_read(path, &object, err));
    enum bsw_status status = read_rates(path, json_object_get(object, "rates"), out, err);
    json_decref(object);
    return status;
}

// ---- for another code ----

static double padded(double dims)
{
    return 32 * ceil(dims / 32);
}

// What a batch takes of such codes: the kind that is said, or full scans by the tables.
static enum bsw_status scan_of(const struct bsw_rates_code *code, enum bsw_cpu_level level,
                               enum bsw_scan_kind *out, struct bsw_error *err)
{
    struct bsw_code_layout layout;
    *out = code->codec->has_bytes ? BSW_SCAN_MATRIX : code->scan;
    if (*out != BSW_SCAN_AUTO) return BSW_OK;
    bsw_code_layout_init(&layout);
    BSW_TRY(bsw_code_layout_append(&layout, (uint32_t)code->dims, (uint32_t)ceil(code->bits), err));
    const struct bsw_scan_tuning tuning = bsw_scan_tuning_of(level, &layout);
    *out = code->batch >= tuning.matrix_from_queries ? BSW_SCAN_MATRIX : BSW_SCAN_PLANES;
    return BSW_OK;
}

// Bits on average are not always those asked for.
static int is_same_code(const struct bsw_rates_code *a, const struct bsw_rates_code *b)
{
    return a->codec == b->codec && a->dims == b->dims && fabs(a->bits - b->bits) < 0.1 &&
           a->query_bits == b->query_bits && a->parts == b->parts;
}

// The full scan that a progressive one replaces.
static enum bsw_scan_kind full_kind(enum bsw_scan_kind kind)
{
    return bsw_scan_is_matrix(kind) ? BSW_SCAN_MATRIX : BSW_SCAN_PLANES;
}

// Scans by tables of both codes: shuffles of 4-bit codes and loads of 8-bit ones say nothing of
// each other, nor of other scans.
static enum bsw_status find_tables(const char *path, struct bsw_rates_scaling *s,
                                   struct bsw_error *err)
{
    s->scan_kind = s->wanted_kind = BSW_SCAN_TABLES;
    if (s->from.codec == s->to.codec && s->from.bits == s->to.bits) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: rates of codec %s, %.3g bits, say nothing of codec %s, %.3g bits: measure "
                    "with such codes",
                    path, bsw_codec_name(s->from.codec), s->from.bits, bsw_codec_name(s->to.codec),
                    s->to.bits);
}

// The scans of both codes. Whether a stage pays is known from the measurement alone. Where the
// tables would scan the measured code as it was measured with this batch, too, another way is the
// code's.
static enum bsw_status find_kinds(const char *path, enum bsw_cpu_level level,
                                  struct bsw_rates_scaling *s, struct bsw_error *err)
{
    if (s->from.codec->has_tables || s->to.codec->has_tables) return find_tables(path, s, err);
    enum bsw_scan_kind measured, by_batch;
    struct bsw_rates_code alike = s->from;
    alike.batch = s->to.batch;
    alike.scan = BSW_SCAN_AUTO;
    BSW_TRY(scan_of(&s->from, level, &measured, err));
    BSW_TRY(scan_of(&alike, level, &by_batch, err));
    BSW_TRY(scan_of(&s->to, level, &s->wanted_kind, err));
    s->is_progressive = bsw_scan_is_progressive(measured) && !is_same_code(&s->from, &s->to);
    s->scan_kind = full_kind(measured);
    s->wanted_kind = full_kind(s->wanted_kind);
    if (s->scan_kind == s->wanted_kind || s->scan_kind == by_batch) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: rates of %s scans, but a batch of %g goes over %s: measure with such a "
                    "batch",
                    path, bsw_scan_name(measured), s->to.batch,
                    bsw_scan_is_matrix(s->wanted_kind) ? "matrix units" : "planes");
}

// Multiply-adds of coding a query; the axes or the model are matrices.
static double encode_work(const struct bsw_rates_code *code, const struct bsw_rates_code *other)
{
    const struct bsw_codec_table *codec = code->codec->table;
    int is_matrix = codec->has_matrix && !(codec->has_model && other->codec->table->has_model);
    return code->dims * (is_matrix ? padded(code->dims) : 1);
}

static void find_factors(struct bsw_rates_scaling *s)
{
    const struct bsw_rates_code *from = &s->from, *to = &s->to;
    double scan = padded(from->dims) / padded(to->dims);
    if (to->codec->has_tables)
        scan = from->parts / to->parts; // a look-up each
    else if (!bsw_scan_is_matrix(s->scan_kind) && !is_same_code(from, to))
        scan *= from->bits * from->query_bits / (to->bits * to->query_bits);
    s->factors = (struct bsw_model_rates){
        .scan_pairs_per_second = scan,
        .encode_queries_per_second = encode_work(from, to) / encode_work(to, from),
        .refine_rows_per_second = from->dims / to->dims,
        .finish_queries_per_second = from->keep > 0 ? from->keep / to->keep : 1};
    s->is_other_codec = from->codec != to->codec;
}

enum bsw_status bsw_model_rates_convert(const char *path, const struct bsw_measured_rates *measured,
                                        const struct bsw_rates_code *code, enum bsw_cpu_level level,
                                        struct bsw_model_rates *out,
                                        struct bsw_rates_scaling *scaling, struct bsw_error *err)
{
    *out = measured->rates;
    *scaling = (struct bsw_rates_scaling){.from = *code, .to = *code};
    if (!measured->code.codec) return BSW_OK;
    scaling->from = measured->code;
    BSW_TRY(find_kinds(path, level, scaling, err));
    find_factors(scaling);
    for (size_t i = 0; i < BSW_NUM_RATES; i++) {
        double factor = bsw_rate_get(&scaling->factors, i);
        if (factor > 0) bsw_rate_set(out, i, bsw_rate_get(out, i) * factor);
    }
    return BSW_OK;
}

// ---- limits of devices ----

// int8: 4096 multiply-adds a clock of 132 multiprocessors at 1.83 GHz.
static const struct bsw_device_limits device_limits[] = {
    {"h200", 141e9, 4.8e12, 989.5e12},
};

const struct bsw_device_limits *bsw_device_limits_of(const char *name)
{
    for (size_t i = 0; i < sizeof device_limits / sizeof device_limits[0]; i++) {
        if (strcmp(name, device_limits[i].name) == 0) return &device_limits[i];
    }
    return NULL;
}

void bsw_device_limits_apply(const struct bsw_device_limits *limits, double padded_dims,
                             struct bsw_model_rates *rates)
{
    rates->scan_pairs_per_second =
        padded_dims > 0 ? limits->multiply_adds_per_second / padded_dims : 0;
    rates->scan_bytes_per_second = limits->bytes_per_second;
    rates->scans_on_device = 1;
}
