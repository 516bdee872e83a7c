// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/sidecar.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/codes/metric.h"

static void add_integer(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void add_digest(json_t *object, const char *key, uint64_t value)
{
    char digest[17];
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)value);
    json_object_set_new(object, key, json_string(digest));
}

static void add_queries(json_t *object, const struct bsw_sidecar *facts)
{
    add_integer(object, "first_query", facts->first_query);
    add_digest(object, "queries_digest", facts->queries_digest);
}

static void add_allow(json_t *object, const struct bsw_allowed_facts *allow)
{
    add_integer(object, "allow_masks", allow->num_masks);
    add_integer(object, "allowed_rows", allow->num_allowed);
    add_digest(object, "allow_digest", allow->digest);
}

static enum bsw_status write_facts(const char *file, const struct bsw_sidecar *facts,
                                   struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    BSW_TRY(bsw_path_format(path, err, "%s.json", file));
    json_t *object = json_pack("{s:s, s:s, s:I, s:I, s:s, s:I, s:I}", "metric", facts->metric,
                               "refine", facts->refine, "k", (json_int_t)facts->k, "L",
                               (json_int_t)facts->candidates, "codec", facts->codec, "rows",
                               (json_int_t)facts->rows, "first_row", (json_int_t)facts->first_row);
    if (facts->queries_digest != 0) add_queries(object, facts);
    if (facts->allow.digest != 0) add_allow(object, &facts->allow);
    if (facts->coverage > 0 && facts->coverage < 1)
        json_object_set_new(object, "coverage", json_real(facts->coverage));
    add_integer(object, "dims", facts->dims);
    if (facts->bits > 0) json_object_set_new(object, "bits", json_real(facts->bits));
    if (facts->settings) json_object_update(object, facts->settings);
    if (facts->has_ids) json_object_set_new(object, "has_ids", json_true());
    if (facts->is_self_excluded) json_object_set_new(object, "exclude_self", json_true());
    return bsw_json_file_write(path, object, err);
}

// If a file could not be finished, its facts go, too.
static enum bsw_status leave_facts(const char *file, enum bsw_status finished)
{
    char path[BSW_PATH_BYTES];
    if (finished == BSW_OK || bsw_file_is_found(file)) return finished;
    if (bsw_path_format(path, NULL, "%s.json", file) == BSW_OK) unlink(path);
    return finished;
}

enum bsw_status bsw_sidecar_finish(bsw_result_writer *writer, const char *file,
                                   const struct bsw_sidecar *facts, struct bsw_error *err)
{
    BSW_TRY(write_facts(file, facts, err));
    return leave_facts(file, bsw_result_writer_finish(writer, err));
}

enum bsw_status bsw_sidecar_finish_range(bsw_range_writer *writer, const char *file,
                                         const struct bsw_sidecar *facts, struct bsw_error *err)
{
    BSW_TRY(write_facts(file, facts, err));
    return leave_facts(file, bsw_range_writer_finish(writer, err));
}

enum bsw_status bsw_sidecar_copy(const char *from, const char *to, int is_part,
                                 uint64_t first_query, int force, struct bsw_error *err)
{
    char from_path[BSW_PATH_BYTES], to_path[BSW_PATH_BYTES];
    json_t *object;
    BSW_TRY(bsw_path_format(from_path, err, "%s.json", from));
    BSW_TRY(bsw_path_format(to_path, err, "%s.json", to));
    if (bsw_file_exists(to_path) && !force)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: exists; --force replaces it", to_path);
    if (!bsw_file_exists(from_path)) {
        unlink(to_path);
        return BSW_OK;
    }
    BSW_TRY(bsw_json_file_read(from_path, &object, err));
    const json_t *first = json_object_get(object, "first_query");
    json_object_del(object, "run");
    if (is_part && json_is_integer(first))
        add_integer(object, "first_query", (uint64_t)json_integer_value(first) + first_query);
    if (is_part) json_object_del(object, "queries_digest");
    if (is_part && json_integer_value(json_object_get(object, "allow_masks")) > 1)
        json_object_del(object, "allow_digest");
    return bsw_json_file_write(to_path, object, err);
}

// ---- reading ----

static const char *known_metric(const char *text)
{
    enum bsw_metric metric;
    if (!text || bsw_metric_parse(text, &metric, NULL) != BSW_OK) return NULL;
    return bsw_metric_name(metric);
}

static void take_selection(const json_t *object, struct bsw_sidecar *facts)
{
    static const char *const names[] = {"threshold", "histogram", "queue"};
    const char *select = json_string_value(json_object_get(object, "select"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (select && strcmp(select, names[i]) == 0) facts->select = names[i];
    }
    facts->queue.items = (uint64_t)json_integer_value(json_object_get(object, "items"));
    facts->queue.length = (uint64_t)json_integer_value(json_object_get(object, "queue_length"));
}

// 0 for what is no count.
static uint64_t count_of(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

// 0 for what is none.
static uint64_t digest_of(const json_t *object, const char *key)
{
    const char *digest = json_string_value(json_object_get(object, key));
    if (!digest || strlen(digest) != 16 || strspn(digest, "0123456789abcdef") != 16) return 0;
    return strtoull(digest, NULL, 16);
}

static void take_inputs(const json_t *object, struct bsw_sidecar *facts)
{
    const json_t *first_query = json_object_get(object, "first_query");
    facts->rows = count_of(object, "rows");
    facts->first_row = count_of(object, "first_row");
    facts->has_ids = json_is_true(json_object_get(object, "has_ids"));
    facts->is_self_excluded = json_is_true(json_object_get(object, "exclude_self"));
    facts->has_first_query = json_is_integer(first_query);
    facts->first_query = count_of(object, "first_query");
    facts->queries_digest = digest_of(object, "queries_digest");
    const json_t *coverage = json_object_get(object, "coverage");
    if (json_is_number(coverage)) facts->coverage = json_number_value(coverage);
    facts->allow.digest = digest_of(object, "allow_digest");
    facts->allow.num_masks = count_of(object, "allow_masks");
}

static void take_facts(const json_t *object, struct bsw_sidecar *facts)
{
    const char *refine = json_string_value(json_object_get(object, "refine"));
    facts->metric = known_metric(json_string_value(json_object_get(object, "metric")));
    if (refine) facts->refine = strcmp(refine, "exact") == 0 ? "exact" : "none";
    facts->has_within = json_is_number(json_object_get(object, "within"));
    facts->within = json_number_value(json_object_get(object, "within"));
    take_selection(object, facts);
    take_inputs(object, facts);
}

enum bsw_status bsw_sidecar_read(const char *file, struct bsw_sidecar *facts, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    json_t *object;
    *facts = (struct bsw_sidecar){.coverage = 1};
    BSW_TRY(bsw_path_format(path, err, "%s.json", file));
    if (!bsw_file_exists(path)) return BSW_OK;
    BSW_TRY(bsw_json_file_read(path, &object, err));
    take_facts(object, facts);
    json_decref(object);
    return BSW_OK;
}

// ---- comparing ----

static enum bsw_status compare_rows(const char *name, const struct bsw_sidecar *facts,
                                    const char *other_name, const struct bsw_sidecar *other,
                                    const char *hint, struct bsw_error *err)
{
    if (facts->rows == 0 || other->rows == 0) return BSW_OK;
    if (facts->has_ids != other->has_ids)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s has ids, %s numbers of rows: write ids[rows] as its neighbours, in "
                        "Python%s",
                        facts->has_ids ? name : other_name, facts->has_ids ? other_name : name,
                        hint);
    if (facts->rows != other->rows || facts->first_row != other->first_row) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s covers rows %llu:%llu, %s %llu:%llu%s", name,
                        (unsigned long long)facts->first_row,
                        (unsigned long long)(facts->first_row + facts->rows), other_name,
                        (unsigned long long)other->first_row,
                        (unsigned long long)(other->first_row + other->rows), hint);
    }
    int is_known = (facts->allow.digest != 0) == (facts->allow.num_masks != 0) &&
                   (other->allow.digest != 0) == (other->allow.num_masks != 0); // in no part
    if (is_known && facts->allow.digest != other->allow.digest) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s and %s are not of the same rows: give both the same --allow%s", name,
                        other_name, hint);
    }
    if (facts->is_self_excluded != other->is_self_excluded) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s was made with --exclude-self, %s without%s",
                        facts->is_self_excluded ? name : other_name,
                        facts->is_self_excluded ? other_name : name, hint);
    }
    return BSW_OK;
}

static enum bsw_status compare_queries(const char *name, const struct bsw_sidecar *facts,
                                       const char *other_name, const struct bsw_sidecar *other,
                                       const char *hint, struct bsw_error *err)
{
    uint64_t digest = facts->queries_digest, other_digest = other->queries_digest;
    if (facts->has_first_query && other->has_first_query &&
        facts->first_query != other->first_query) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s starts at query row %llu, %s at %llu%s", name,
                        (unsigned long long)facts->first_query, other_name,
                        (unsigned long long)other->first_query, hint);
    }
    if (digest != 0 && other_digest != 0 && digest != other_digest) {
        return bsw_fail(
            err, BSW_ERROR_USAGE, "%s and %s have different queries (digests %016llx, %016llx)%s",
            name, other_name, (unsigned long long)digest, (unsigned long long)other_digest, hint);
    }
    return BSW_OK;
}

enum bsw_status bsw_sidecar_compare(const char *name, const struct bsw_sidecar *facts,
                                    const char *other_name, const struct bsw_sidecar *other,
                                    const char *hint, struct bsw_error *err)
{
    if (facts->metric && other->metric && strcmp(facts->metric, other->metric) != 0) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s has metric %s, %s has %s%s", name, facts->metric,
                        other_name, other->metric, hint);
    }
    if (facts->has_within && other->has_within && facts->within != other->within) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s is of --within %g, %s of %g%s", name,
                        facts->within, other_name, other->within, hint);
    }
    BSW_TRY(compare_rows(name, facts, other_name, other, hint, err));
    return compare_queries(name, facts, other_name, other, hint, err);
}
