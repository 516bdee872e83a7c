// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/index_facts.h"

#include <stdlib.h>

#include "common/files/list_order.h"
#include "shard/codecs/codec.h"

// ---- indexes ----

static void tell_segments(struct bsw_facts *facts, const struct bsw_manifest *manifest)
{
    char text[512];
    bsw_codec_format_segments(manifest, text, sizeof text);
    bsw_facts_say(facts, ", segments %s", text);
    bsw_facts_open_list(facts, "segments");
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        bsw_facts_open_object(facts, NULL);
        bsw_fact_integer(facts, "dims", manifest->layout.segments[s].dims, NULL);
        bsw_fact_integer(facts, "bits", manifest->layout.segments[s].bits, NULL);
        if (manifest->codec->table->step_of)
            bsw_fact_real(facts, "step", manifest->codec->table->step_of(manifest, s), NULL);
        bsw_facts_close(facts);
    }
    bsw_facts_close(facts);
}

// What the codec says of its codes.
static void tell_codec_facts(struct bsw_facts *facts, const struct bsw_manifest *manifest)
{
    struct bsw_codec_fact found[BSW_CODEC_FACTS] = {{0}};
    if (manifest->codec->table->describe) manifest->codec->table->describe(manifest, found);
    for (int i = 0; i < BSW_CODEC_FACTS && found[i].name; i++) {
        if (found[i].text[0])
            bsw_fact_text(facts, found[i].name, found[i].text, found[i].format);
        else
            bsw_fact_real(facts, found[i].name, found[i].number, found[i].format);
    }
}

static void tell_codes(struct bsw_facts *facts, const struct bsw_manifest *manifest)
{
    bsw_fact_text(facts, "codec", bsw_codec_name(manifest->codec), "  codec     %s");
    bsw_fact_text(facts, "metric", bsw_metric_name(manifest->metric), ", %s");
    bsw_fact_real(facts, "bits", manifest->bits,
                  manifest->codec->has_tables ? ", %g bits a subspace" : ", %g bits a dimension");
    tell_segments(facts, manifest);
    bsw_fact_integer(facts, "stage_dims", manifest->stage_dims, NULL);
    tell_codec_facts(facts, manifest);
    bsw_facts_say(facts, "\n");
}

static void tell_rows(struct bsw_facts *facts, const struct bsw_manifest *manifest)
{
    bsw_fact_integer(facts, "rows", manifest->num_rows, "  rows      %d");
    bsw_fact_integer(facts, "first_row", manifest->first_row, " from id %d");
    bsw_fact_integer(facts, "dims", bsw_manifest_row_dims(manifest), ", %d dims");
    bsw_fact_integer(facts, "dropped_rows", manifest->dropped_rows, ", %d dropped");
    bsw_fact_real(facts, "bytes_per_vector", bsw_manifest_row_bytes(manifest),
                  ", %g bytes a vector\n");
}

static void tell_learned(struct bsw_facts *facts, const struct bsw_manifest *manifest)
{
    struct bsw_codec_model_facts model;
    manifest->codec->table->describe_model(manifest, &model);
    bsw_facts_open_object(facts, "model");
    bsw_fact_digest(facts, "digest", model.digest, "  model     digest %s");
    bsw_fact_integer(facts, "code_dims", manifest->layout.dims, ", %d code dims");
    bsw_fact_integer(facts, "query_planes", model.query_planes, ", %d query planes");
    bsw_fact_integer(facts, "document_planes", manifest->layout.segments[0].bits,
                     ", %d document planes\n");
    bsw_facts_close(facts);
}

void bsw_code_check_facts(struct bsw_facts *facts, const struct bsw_code_check *check,
                          const char *begin)
{
    if (check->num_queries == 0) return;
    bsw_facts_say(facts, "%s%d-recall@%d of the sample", begin, BSW_CODE_CHECK_K,
                  BSW_CODE_CHECK_CANDIDATES);
    bsw_facts_open_object(facts, "check");
    bsw_fact_real(facts, "recall", check->recall, " %.4f");
    bsw_fact_integer(facts, "queries", check->num_queries, " (%d queries,");
    bsw_fact_integer(facts, "rows", check->num_rows, " %d rows)\n");
    bsw_fact_flag(facts, "is_low", bsw_code_check_is_low(check), NULL);
    if (check->cause[0])
        bsw_facts_say(facts, "%s%s: ", begin, bsw_code_check_is_low(check) ? "warning" : "note");
    bsw_fact_text(facts, "cause", check->cause[0] ? check->cause : NULL, "%s\n");
    bsw_facts_close(facts);
}

static void tell_source(struct bsw_facts *facts, const struct bsw_manifest *manifest)
{
    bsw_fact_text(facts, "source", manifest->source_path, "  source    %s");
    bsw_fact_text(facts, "source_type", bsw_vector_type_name(manifest->source_type), ", %s");
    bsw_fact_integer(facts, "source_rows", manifest->source_rows, ", %d rows");
    bsw_fact_digest(facts, "source_digest", manifest->source_digest, ", digest %s");
    bsw_fact_flag(facts, "vectors_copied", manifest->source_is_copied, ", copied");
    if (manifest->lists.count > 0)
        bsw_fact_flag(facts, "vectors_in_lists", manifest->lists.has_ordered_vectors,
                      " list after list");
    bsw_fact_integer(facts, "known_answers", manifest->num_known,
                     "\n  known     %d answers in each shard");
    bsw_facts_say(facts, "%s\n",
                  manifest->num_known > 0
                      ? ", by which a search checks itself"
                      : ": another version of the program made the index, and searches are not "
                        "checked");
}

static void tell_entry(struct bsw_facts *facts, const struct bsw_calibration_entry *entry,
                       uint32_t num_lists)
{
    int is_all = entry->probe >= num_lists;
    bsw_facts_open_object(facts, NULL);
    bsw_fact_real(facts, "recall", entry->recall, "    %7.4f");
    bsw_fact_integer(facts, "probe", entry->probe, is_all ? NULL : "  %5d");
    if (is_all) bsw_facts_say(facts, "    all");
    bsw_fact_real(facts, "ratio", entry->ratio, entry->ratio > 0 ? "  %6.3f" : NULL);
    if (entry->ratio == 0) bsw_facts_say(facts, "       -");
    bsw_fact_integer(facts, "scan_dims", entry->scan_dims, entry->scan_dims ? "  %4d" : NULL);
    if (entry->scan_dims == 0) bsw_facts_say(facts, "   all");
    bsw_fact_real(facts, "oversample", entry->oversample, "  %10.4g");
    bsw_fact_real(facts, "rows_a_query", entry->rows_a_query, "  %12.1f\n");
    bsw_facts_close(facts);
}

static void tell_recalls(struct bsw_facts *facts, const struct bsw_manifest *manifest)
{
    const struct bsw_calibration *table = &manifest->calibration;
    bsw_facts_say(facts, "  recalls   ");
    if (table->num_entries == 0) {
        bsw_facts_say(facts, "no table\n");
        return;
    }
    bsw_facts_open_object(facts, "calibration");
    bsw_fact_integer(facts, "k", table->k, "at k %d");
    bsw_fact_integer(facts, "queries", table->num_queries, " of %d");
    bsw_fact_text(facts, "source", bsw_calibration_source_name(table->source), " %s\n");
    bsw_facts_say(facts, "     recall  probe   ratio  dims  oversample  rows a query\n");
    bsw_facts_open_list(facts, "entries");
    for (uint32_t i = 0; i < table->num_entries; i++)
        tell_entry(facts, &table->entries[i], manifest->lists.count);
    bsw_facts_close(facts);
    bsw_facts_close(facts);
}

static void tell_shard(struct bsw_facts *facts, uint32_t shard, const struct bsw_shard_entry *entry)
{
    bsw_facts_open_object(facts, NULL);
    bsw_fact_integer(facts, "shard", shard, "  shard %-3d ");
    bsw_fact_integer(facts, "first_row", entry->first_row, "rows %d");
    bsw_facts_say(facts, " to %llu", (unsigned long long)(entry->first_row + entry->num_rows - 1));
    bsw_fact_integer(facts, "rows", entry->num_rows, NULL);
    bsw_fact_integer(facts, "dropped_rows", entry->dropped_rows, NULL);
    bsw_fact_integer(facts, "codes_bytes", entry->codes_bytes, ", %d bytes");
    bsw_fact_digest(facts, "codes_digest", entry->codes_digest, ", digest %s\n");
    bsw_facts_close(facts);
}

// From here on a compact pays: a scan looks at places of deleted rows, too.
#define MUCH_DELETED 0.1
#define MANY_PARTS   16

static void tell_changes(struct bsw_facts *facts, const struct bsw_manifest *manifest)
{
    uint64_t rows = manifest->num_rows - manifest->dropped_rows;
    uint64_t deleted = rows - bsw_manifest_live_rows(manifest);
    double share = (double)deleted / (double)rows;
    int pays = share >= MUCH_DELETED || manifest->num_parts > MANY_PARTS;
    bsw_fact_integer(facts, "generation", manifest->generation, "  changes   generation %d");
    bsw_fact_integer(facts, "parts", manifest->num_parts,
                     manifest->num_parts > 0 ? ", %d parts" : NULL);
    bsw_fact_flag(facts, "has_ids", manifest->ids_digest != 0, ", rows have ids");
    bsw_fact_flag(facts, "has_tags", manifest->tags_digest != 0, ", rows have tags");
    bsw_fact_integer(facts, "deleted_rows", deleted, ", %d rows deleted");
    bsw_fact_real(facts, "deleted_share", share, NULL);
    bsw_facts_say(facts, ", %.3g %%", 100 * share);
    bsw_fact_flag(facts, "compact_pays", pays, "; bitsweep compact pays");
    bsw_facts_say(facts, "\n");
}

void bsw_index_facts(struct bsw_facts *facts, const char *path, const struct bsw_manifest *manifest)
{
    bsw_fact_text(facts, "kind", "index", "%s");
    int version = bsw_manifest_format_version(manifest);
    bsw_fact_integer(facts, "format_version", (uint64_t)version, NULL);
    bsw_facts_say(facts, " %s", path);
    bsw_fact_digest(facts, "build", manifest->build_digest, ", build %s\n");
    tell_codes(facts, manifest);
    tell_rows(facts, manifest);
    bsw_list_facts(facts, manifest, path);
    if (manifest->codec->table->has_model) tell_learned(facts, manifest);
    bsw_code_check_facts(facts, &manifest->check, "  check     ");
    tell_source(facts, manifest);
    if (manifest->lists.count > 0) tell_recalls(facts, manifest);
    if (bsw_manifest_is_living(manifest) || manifest->tags_digest != 0)
        tell_changes(facts, manifest);
    bsw_facts_open_list(facts, "shards");
    for (uint32_t i = 0; i < manifest->num_shards; i++) tell_shard(facts, i, &manifest->shards[i]);
    bsw_facts_close(facts);
}

// ---- models ----

static int is_centered(const struct bsw_rbe_model *model)
{
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        const struct bsw_rbe_side *side = &model->sides[i];
        for (uint32_t d = 0; d < side->shape.dims; d++) {
            if (side->mean[d] != 0) return 1;
        }
    }
    return 0;
}

static void tell_side(struct bsw_facts *facts, const char *name, const struct bsw_rbe_shape *shape,
                      int is_float)
{
    int has_residuals = shape->steps > 0;
    bsw_facts_say(facts, "  %-9s ", name);
    bsw_facts_open_object(facts, name);
    bsw_fact_integer(facts, "planes", is_float ? BSW_MAX_QUERY_BITS : shape->steps + 1,
                     is_float        ? "floats, searched as %d planes"
                     : has_residuals ? "%d planes"
                                     : "%d plane");
    bsw_fact_flag(facts, "shared", shape->is_shared, NULL);
    bsw_fact_flag(facts, "residual_weights", shape->has_residual_weights, NULL);
    bsw_facts_close(facts);
    if (has_residuals)
        bsw_facts_say(facts, ", %s matrices, residuals weigh %s",
                      shape->is_shared ? "shared" : "separate",
                      shape->has_residual_weights ? "1/2, 1/4, ..." : "1");
    bsw_facts_say(facts, "\n");
}

static void tell_training(struct bsw_facts *facts, const struct bsw_rbe_origin *o)
{
    bsw_facts_open_object(facts, "training");
    bsw_fact_text(facts, "estimator", bsw_rbe_estimator_name(o->estimator), "  training  %s");
    bsw_fact_integer(facts, "pairs", o->pairs, ", %d pairs");
    bsw_fact_integer(facts, "negatives", o->negatives, ", %d negatives");
    bsw_fact_integer(facts, "batch", o->batch, ", batch %d");
    bsw_fact_real(facts, "gamma", o->gamma, ", gamma %g");
    bsw_fact_real(facts, "rate", o->rate, ", rate %g");
    bsw_fact_integer(facts, "epochs", o->epochs, ", epochs %d");
    bsw_fact_integer(facts, "seed", o->seed, ", seed %d");
    bsw_fact_integer(facts, "ranks", o->ranks, ", ranks %d\n");
    bsw_fact_real(facts, "train_loss", o->train_loss, "  loss      %.5f");
    bsw_fact_real(facts, "validation_loss", o->validation_loss,
                  o->validation_loss > 0 ? ", held out %.5f" : NULL);
    bsw_facts_say(facts, "\n");
    bsw_facts_close(facts);
}

static void tell_text(struct bsw_facts *facts, const struct bsw_text_vocabulary *vocabulary)
{
    if (vocabulary->num_grams == 0) return;
    bsw_fact_integer(facts, "trigrams", vocabulary->num_grams, "  text      %d letter trigrams");
    bsw_fact_flag(facts, "hashed", !vocabulary->keys, ", hashed");
    bsw_facts_say(facts, ", groups of %d words\n", BSW_TEXT_GROUP_WORDS);
}

void bsw_model_facts(struct bsw_facts *facts, const char *path, const struct bsw_rbe_model *model)
{
    const struct bsw_rbe_shape *query = &model->sides[BSW_RBE_QUERY].shape;
    int has_mean = is_centered(model);
    bsw_fact_text(facts, "kind", "model", "%s");
    bsw_fact_integer(facts, "format_version", bsw_rbe_model_version(model), NULL);
    bsw_facts_say(facts, " %s", path);
    bsw_fact_digest(facts, "digest", model->digest, ", digest %s\n");
    bsw_fact_integer(facts, "dims", query->dims, "  codes     %d dims");
    bsw_fact_integer(facts, "code_dims", query->code_dims, " to %d");
    bsw_fact_text(facts, "metric", bsw_metric_name(model->metric), ", %s");
    bsw_fact_text(facts, "precision",
                  model->is_smooth           ? "float"
                  : model->has_float_queries ? "query-float"
                                             : "binary",
                  ", %s");
    bsw_fact_flag(facts, "centered", has_mean, NULL);
    bsw_facts_say(facts, ", %s", has_mean ? "centered" : "not centered");
    bsw_fact_text(facts, "scales", model->has_projection ? "projection" : "norm",
                  ", scales by %s\n");
    tell_side(facts, "query", query, model->has_float_queries);
    tell_side(facts, "document", &model->sides[BSW_RBE_DOCUMENT].shape, 0);
    tell_text(facts, &model->text.vocabulary);
    tell_training(facts, &model->origin);
}

// ---- lists --------------------------------------------------------------------------------------

// ---- sizes ----

static int compare_rows(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void bsw_list_sizes_of(const struct bsw_manifest *manifest, uint32_t *rows,
                       struct bsw_list_sizes *out)
{
    uint32_t count = manifest->lists.count;
    *out = (struct bsw_list_sizes){.count = count};
    if (count == 0) return;
    qsort(rows, count, sizeof *rows, compare_rows);
    out->smallest = rows[0];
    out->median = rows[count / 2];
    out->largest = rows[count - 1];
    out->centroids_bytes = (uint64_t)count * bsw_manifest_row_dims(manifest) * sizeof(float);
    for (uint32_t s = 0; s < manifest->num_shards; s++)
        out->file_bytes += bsw_list_order_file_bytes(count, manifest->shards[s].num_places);
}

static enum bsw_status add_rows(const struct bsw_manifest *manifest, const char *folder,
                                uint32_t *rows, struct bsw_error *err)
{
    for (uint32_t s = 0; s < manifest->num_shards; s++) {
        struct bsw_list_order order;
        BSW_TRY(bsw_list_order_read(manifest, folder, s, &order, err));
        for (uint32_t l = 0; l < order.num_lists; l++) rows[l] += bsw_list_num_rows(&order, l);
        bsw_list_order_deinit(&order);
    }
    return BSW_OK;
}

enum bsw_status bsw_list_sizes_read(const struct bsw_manifest *manifest, const char *folder,
                                    struct bsw_list_sizes *out, struct bsw_error *err)
{
    uint32_t *rows;
    *out = (struct bsw_list_sizes){0};
    if (manifest->lists.count == 0) return BSW_OK;
    BSW_TRY(bsw_allocate_zero(&rows, manifest->lists.count, sizeof *rows, "lists", err));
    enum bsw_status status = add_rows(manifest, folder, rows, err);
    if (status == BSW_OK) bsw_list_sizes_of(manifest, rows, out);
    bsw_free(&rows);
    return status;
}

// ---- what is told ----

void bsw_list_sizes_facts(struct bsw_facts *facts, const struct bsw_list_sizes *sizes)
{
    bsw_fact_integer(facts, "lists", sizes->count, "%d lists");
    bsw_fact_integer(facts, "smallest_list_rows", sizes->smallest, " of %d");
    bsw_fact_integer(facts, "largest_list_rows", sizes->largest, " to %d rows");
    bsw_fact_integer(facts, "median_list_rows", sizes->median, ", median %d");
    bsw_fact_bytes(facts, "centroids_bytes", sizes->centroids_bytes, "; centroids %s");
    bsw_fact_bytes(facts, "lists_files_bytes", sizes->file_bytes, ", .lists files %s");
}

void bsw_residual_facts(struct bsw_facts *facts, const char *begin, int is_residual,
                        double residual_recall, double plain_recall)
{
    int is_measured = residual_recall > 0 || plain_recall > 0;
    bsw_fact_flag(facts, "residual", is_residual, NULL);
    if (!is_residual && !is_measured) return;
    bsw_facts_say(facts, "%s%s", begin, is_residual ? "yes" : "no");
    if (is_measured) {
        bsw_fact_real(facts, "residual_recall", residual_recall,
                      ", recall of the sample %.3f with");
        bsw_fact_real(facts, "plain_recall", plain_recall, ", %.3f without");
    }
    bsw_facts_say(facts, "\n");
}

void bsw_list_facts(struct bsw_facts *facts, const struct bsw_manifest *manifest,
                    const char *folder)
{
    struct bsw_list_sizes sizes;
    struct bsw_error err;
    if (manifest->lists.count == 0) {
        bsw_fact_integer(facts, "lists", 0, NULL);
        return;
    }
    bsw_facts_say(facts, "  lists     ");
    if (bsw_list_sizes_read(manifest, folder, &sizes, &err) == BSW_OK) {
        bsw_list_sizes_facts(facts, &sizes);
    } else {
        bsw_fact_integer(facts, "lists", manifest->lists.count, "%d lists");
        bsw_fact_text(facts, "lists_note", err.message, "; rows unknown: %s");
    }
    bsw_facts_say(facts, "\n");
    bsw_residual_facts(facts, "  residuals ", manifest->lists.is_residual,
                       manifest->lists.residual_recall, manifest->lists.plain_recall);
}
