// info: what is in an index, a vector file, a model or a result file.
#include <stdio.h>
#include <string.h>

#include "common/file.h"
#include "common/result_file.h"
#include "common/shard_file.h"
#include "common/source_name.h"
#include "common/vectors.h"
#include "coordinator/command.h"
#include "coordinator/search_sizes.h"
#include "kernels/rbe/rbe_model_file.h"
#include "shard/shard_service.h"

// Beside the path, a search whose use of device memory is asked for.
struct info_options {
    struct bsw_common_options common;
    const char *path, *refine, *select;
    uint64_t device_memory, k, query_bits, max_candidates, batch, ranks;
    struct bsw_queue_options queue;
    double oversample;
};

static enum bsw_status parse(struct bsw_transport *transport, struct info_options *o, int argc,
                             char **argv, int *done, struct bsw_error *err)
{
    const struct bsw_option options[] = {
        {"path", BSW_OPTION_TEXT, &o->path, "PATH", NULL, 1, 0, 0, NULL,
         "index folder, vector file, model (.rbe), result file or synth:...; the name may stand "
         "alone"},
        {"device-memory", BSW_OPTION_COUNT, &o->device_memory, "BYTES", "0", 0, 0, 1e15, NULL,
         "index: what each rank of a search with the options below takes of a GPU with so much "
         "free"},
        {"k", BSW_OPTION_COUNT, &o->k, "K", BSW_SEARCH_K_TEXT, 0, 1, BSW_SEARCH_MAX_K, NULL,
         "neighbours a query"},
        {"query-bits", BSW_OPTION_COUNT, &o->query_bits, "BQ", "6", 0, 1, BSW_MAX_QUERY_BITS, NULL,
         "bits a query component; rbe has those of its model"},
        {"oversample", BSW_OPTION_NUMBER, &o->oversample, "X", BSW_SEARCH_OVERSAMPLE_TEXT, 0, 1,
         10000, NULL, "candidates to refine, times k"},
        {"select", BSW_OPTION_CHOICE, &o->select, NULL, "threshold", 0, 0, 0,
         "threshold|histogram|queue", "how candidates are chosen"},
        {"items", BSW_OPTION_COUNT, &o->queue.items, "I", "256", 0, 1, BSW_QUEUE_MAX_ITEMS, NULL,
         "queue: rows that each of a block's 256 threads goes over"},
        {"queue-length", BSW_OPTION_COUNT, &o->queue.length, "Q", "1", 0, 1, BSW_QUEUE_MAX_LENGTH,
         NULL, "queue: best rows that a thread keeps"},
        {"max-candidates", BSW_OPTION_COUNT, &o->max_candidates, "N",
         BSW_SEARCH_MAX_CANDIDATES_TEXT, 0, 1, 1e8, NULL, "histogram: at most so many a query"},
        {"refine", BSW_OPTION_CHOICE, &o->refine, NULL, "exact", 0, 0, 0, "exact|none",
         "none: no more candidates than k"},
        {"batch", BSW_OPTION_COUNT, &o->batch, "N", BSW_SEARCH_BATCH_TEXT, 0, 1, 1e6, NULL,
         "queries at a time"},
        {"ranks", BSW_OPTION_COUNT, &o->ranks, "N", "1", 0, 1, 1e6, NULL, "ranks, a GPU each"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {
        "info", "what is in an index, a vector file, a model or a result file", options,
        sizeof options / sizeof options[0]};
    return bsw_command_parse(transport, &table, &o->common, argc, argv, done, err);
}

static json_t *describe_segments(const struct bsw_manifest *manifest)
{
    json_t *segments = json_array();
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++) {
        json_t *segment = json_pack("{s:i, s:i}", "dims", (int)manifest->layout.segments[s].dims,
                                    "bits", (int)manifest->layout.segments[s].bits);
        if (manifest->codec == BSW_CODEC_SAQ)
            json_object_set_new(segment, "step", json_real(manifest->steps[s]));
        json_array_append_new(segments, segment);
    }
    return segments;
}

static json_t *describe_shards(const struct bsw_manifest *manifest)
{
    json_t *shards = json_array();
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_shard_entry *entry = &manifest->shards[i];
        char digest[17];
        snprintf(digest, sizeof digest, "%016llx", (unsigned long long)entry->codes_digest);
        json_array_append_new(
            shards, json_pack("{s:i, s:I, s:I, s:I, s:I, s:s}", "shard", (int)i, "first_row",
                              (json_int_t)entry->first_row, "rows", (json_int_t)entry->num_rows,
                              "dropped_rows", (json_int_t)entry->dropped_rows, "codes_bytes",
                              (json_int_t)entry->codes_bytes, "codes_digest", digest));
    }
    return shards;
}

// ---- memory of devices ----

static enum bsw_status settle_search(const struct info_options *o,
                                     const struct bsw_manifest *manifest,
                                     struct bsw_search_settings *out, struct bsw_error *err)
{
    int is_exact = strcmp(o->refine, "exact") == 0;
    int is_rbe = manifest->codec == BSW_CODEC_RBE;
    *out = (struct bsw_search_settings){.query_bits = is_rbe ? manifest->query_planes
                                                             : (uint32_t)o->query_bits,
                                        .k = o->k,
                                        .is_exact = is_exact,
                                        .is_ladder = o->ranks > 1};
    if (manifest->codec == BSW_CODEC_RAW)
        return bsw_fail(err, BSW_ERROR_USAGE, "--device-memory: codec raw runs on the CPU only");
    if (o->k > manifest->num_rows) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--k %llu: the index has %llu rows only",
                        (unsigned long long)o->k, (unsigned long long)manifest->num_rows);
    }
    BSW_TRY(bsw_code_layout_check(&manifest->layout, out->query_bits, err));
    out->keep = bsw_search_keep(o->k, is_exact ? o->oversample : 1, manifest->num_rows);
    if (is_exact && strcmp(o->select, "histogram") == 0)
        out->keep = o->max_candidates < manifest->num_rows ? o->max_candidates : manifest->num_rows;
    if (strcmp(o->select, "queue") == 0) out->queue = o->queue;
    out->batch =
        (size_t)bsw_search_batch(manifest, (int)o->ranks, out->is_ladder, out->keep, o->batch);
    return BSW_OK;
}

static json_t *describe_forecast(int rank, const struct info_options *o,
                                 const struct bsw_device_forecast *forecast)
{
    const struct bsw_device_plan *plan = &forecast->plan;
    size_t used = bsw_device_forecast_bytes(forecast);
    return json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rank", rank, "codes_bytes",
        (json_int_t)plan->code_bytes, "queries_bytes", (json_int_t)plan->queries.bytes,
        "blocks_bytes", (json_int_t)(2 * plan->block_bytes), "survivors_bytes",
        (json_int_t)forecast->survivor_bytes, "raw_bytes", (json_int_t)forecast->raw_bytes,
        "used_bytes", (json_int_t)used, "free_bytes", (json_int_t)(o->device_memory - used),
        "streamed_bytes", (json_int_t)plan->streamed_bytes, "queries_at_a_time",
        (json_int_t)plan->group_queries, "list_items", (json_int_t)plan->capacity);
}

static void print_forecast(int rank, const struct info_options *o,
                           const struct bsw_device_forecast *forecast)
{
    const struct bsw_device_plan *plan = &forecast->plan;
    const double bytes[] = {(double)plan->code_bytes,
                            (double)plan->queries.bytes,
                            2 * (double)plan->block_bytes,
                            (double)forecast->survivor_bytes,
                            (double)forecast->raw_bytes,
                            (double)(o->device_memory - bsw_device_forecast_bytes(forecast)),
                            (double)plan->streamed_bytes};
    char texts[7][32];
    for (int i = 0; i < 7; i++) bsw_format_bytes(bytes[i], texts[i], sizeof texts[i]);
    printf(
        "  rank %-4d codes %s, %zu queries at a time and their lists of %zu items %s, blocks %s, "
        "survivors %s, raw vectors %s, free %s",
        rank, texts[0], plan->group_queries, plan->capacity, texts[1], texts[2], texts[3], texts[4],
        texts[5]);
    if (plan->streamed_bytes > 0) printf("; %s come from host memory for every batch", texts[6]);
    printf("\n");
}

// list NULL: prints.
static enum bsw_status info_devices(const struct info_options *o,
                                    const struct bsw_manifest *manifest,
                                    const struct bsw_search_settings *settings, json_t *list,
                                    struct bsw_error *err)
{
    for (int rank = 0; rank < (int)o->ranks; rank++) {
        struct bsw_device_forecast forecast;
        enum bsw_status status = bsw_shard_service_plan(manifest, settings, rank, (int)o->ranks,
                                                        (size_t)o->device_memory, &forecast, err);
        if (status != BSW_OK) return bsw_prefix(err, status, "rank %d: ", rank);
        if (list)
            json_array_append_new(list, describe_forecast(rank, o, &forecast));
        else
            print_forecast(rank, o, &forecast);
        bsw_device_plan_deinit(&forecast.plan);
    }
    return BSW_OK;
}

// ---- what is there ----

// What both forms tell.
struct index_facts {
    char digest[17], build[17], model[17], segments[512];
    double row_bytes;
    int is_saq, is_xfbq, is_rbe;
};

static struct index_facts find_facts(const struct bsw_manifest *manifest)
{
    struct index_facts facts = {.row_bytes = bsw_manifest_row_bytes(manifest),
                                .is_saq = manifest->codec == BSW_CODEC_SAQ,
                                .is_xfbq = manifest->codec == BSW_CODEC_XFBQ,
                                .is_rbe = manifest->codec == BSW_CODEC_RBE};
    snprintf(facts.digest, sizeof facts.digest, "%016llx",
             (unsigned long long)manifest->source_digest);
    snprintf(facts.build, sizeof facts.build, "%016llx",
             (unsigned long long)manifest->build_digest);
    snprintf(facts.model, sizeof facts.model, "%016llx",
             (unsigned long long)manifest->model_digest);
    bsw_code_layout_format(&manifest->layout, facts.segments, sizeof facts.segments);
    return facts;
}

// Of an index of codec rbe: what its manifest says of the model.
static json_t *describe_learned(const struct bsw_manifest *manifest, const char *digest)
{
    return json_pack("{s:s, s:i, s:i, s:i}", "digest", digest, "code_dims",
                     (int)manifest->layout.dims, "query_planes", (int)manifest->query_planes,
                     "document_planes", (int)manifest->layout.segments[0].bits);
}

// devices: NULL, or taken over.
static void print_index_json(const struct bsw_manifest *manifest, json_t *devices)
{
    const struct index_facts facts = find_facts(manifest);
    json_t *object = json_pack(
        "{s:s, s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:f, s:f, s:i, s:s, s:s, s:I, s:s, s:b}",
        "kind", "index", "format_version", BSW_INDEX_FORMAT_VERSION, "build", facts.build, "codec",
        bsw_codec_name(manifest->codec), "metric", bsw_metric_name(manifest->metric), "first_row",
        (json_int_t)manifest->first_row, "rows", (json_int_t)manifest->num_rows, "dropped_rows",
        (json_int_t)manifest->dropped_rows, "dims", (int)bsw_manifest_row_dims(manifest), "bits",
        manifest->bits, "bytes_per_vector", facts.row_bytes, "stage_dims",
        (int)manifest->stage_dims, "source", manifest->source_path, "source_type",
        bsw_vector_type_name(manifest->source_type), "source_rows",
        (json_int_t)manifest->source_rows, "source_digest", facts.digest, "vectors_copied",
        manifest->source_is_copied);
    if (facts.is_saq) json_object_set_new(object, "axes", json_string(manifest->axes));
    if (facts.is_xfbq) json_object_set_new(object, "scale", json_real(manifest->xfbq_scale));
    if (facts.is_rbe) json_object_set_new(object, "model", describe_learned(manifest, facts.model));
    json_object_set_new(object, "known_answers", json_integer((json_int_t)manifest->num_known));
    json_object_set_new(object, "segments", describe_segments(manifest));
    json_object_set_new(object, "shards", describe_shards(manifest));
    if (devices) json_object_set_new(object, "device_memory", devices);
    bsw_print_json(object);
}

static void print_index_text(const char *path, const struct bsw_manifest *manifest)
{
    const struct index_facts facts = find_facts(manifest);
    printf("index %s, build %s\n", path, facts.build);
    printf("  codec     %s, %s, %g bits a dimension, segments %s", bsw_codec_name(manifest->codec),
           bsw_metric_name(manifest->metric), manifest->bits, facts.segments);
    if (facts.is_saq) printf(", %s axes", manifest->axes);
    if (facts.is_xfbq) printf(", scale %g", manifest->xfbq_scale);
    printf("\n  rows      %llu from id %llu, %u dims, %llu dropped, %g bytes a vector\n",
           (unsigned long long)manifest->num_rows, (unsigned long long)manifest->first_row,
           bsw_manifest_row_dims(manifest), (unsigned long long)manifest->dropped_rows,
           facts.row_bytes);
    if (facts.is_rbe) {
        printf("  model     digest %s, %u code dims, %u query planes, %u document planes\n",
               facts.model, manifest->layout.dims, manifest->query_planes,
               manifest->layout.segments[0].bits);
    }
    printf("  source    %s, %s, %llu rows, digest %s%s\n", manifest->source_path,
           bsw_vector_type_name(manifest->source_type), (unsigned long long)manifest->source_rows,
           facts.digest, manifest->source_is_copied ? ", copied" : "");
    printf("  known     %u answers a shard%s\n", manifest->num_known,
           manifest->num_known > 0 ? ""
                                   : ": of another version of the program, searches go without");
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_shard_entry *entry = &manifest->shards[i];
        printf("  shard %-3u rows %llu to %llu, %llu bytes, digest %016llx\n", i,
               (unsigned long long)entry->first_row,
               (unsigned long long)(entry->first_row + entry->num_rows - 1),
               (unsigned long long)entry->codes_bytes, (unsigned long long)entry->codes_digest);
    }
}

static enum bsw_status print_index(const struct info_options *o,
                                   const struct bsw_manifest *manifest, struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    struct bsw_search_settings settings = {0};
    int has_devices = o->device_memory > 0;
    if (has_devices) BSW_TRY(settle_search(o, manifest, &settings, err));
    if (!o->common.json) {
        print_index_text(o->path, manifest);
        return has_devices ? info_devices(o, manifest, &settings, NULL, err) : BSW_OK;
    }
    json_t *devices = has_devices ? json_array() : NULL;
    if (devices) status = info_devices(o, manifest, &settings, devices, err);
    if (status == BSW_OK)
        print_index_json(manifest, devices);
    else
        json_decref(devices);
    return status;
}

static enum bsw_status info_index(const struct info_options *o, struct bsw_error *err)
{
    struct bsw_manifest manifest;
    BSW_TRY(bsw_manifest_read(o->path, &manifest, err));
    enum bsw_status status = print_index(o, &manifest, err);
    bsw_manifest_deinit(&manifest);
    return status;
}

static enum bsw_status info_vectors(const char *path, int is_json, struct bsw_error *err)
{
    bsw_vectors *vectors;
    BSW_TRY(bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, err));
    const char *type = bsw_vector_type_name(bsw_vectors_type(vectors));
    if (is_json) {
        bsw_print_json(json_pack("{s:s, s:s, s:I, s:I, s:I}", "kind", "vectors", "type", type,
                                 "rows", (json_int_t)bsw_vectors_num_rows(vectors), "dims",
                                 (json_int_t)bsw_vectors_dims(vectors), "bytes",
                                 (json_int_t)bsw_vectors_file_bytes(vectors)));
    } else {
        printf("%s: %llu rows x %u dims, %s\n", path,
               (unsigned long long)bsw_vectors_num_rows(vectors), bsw_vectors_dims(vectors), type);
    }
    bsw_vectors_close(&vectors);
    return BSW_OK;
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

static json_t *describe_side(const struct bsw_rbe_shape *shape)
{
    return json_pack("{s:i, s:b, s:b}", "planes", (int)shape->steps + 1, "shared", shape->is_shared,
                     "residual_weights", shape->has_residual_weights);
}

static json_t *describe_training(const struct bsw_rbe_origin *o)
{
    return json_pack("{s:s, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:i, s:f, s:f}", "estimator",
                     bsw_rbe_estimator_name(o->estimator), "gamma", o->gamma, "rate", o->rate,
                     "negatives", (json_int_t)o->negatives, "batch", (json_int_t)o->batch, "epochs",
                     (json_int_t)o->epochs, "seed", (json_int_t)o->seed, "pairs",
                     (json_int_t)o->pairs, "ranks", (int)o->ranks, "train_loss", o->train_loss,
                     "validation_loss", o->validation_loss);
}

static void print_model_json(const struct bsw_rbe_model *model, const char *digest)
{
    const struct bsw_rbe_shape *query = &model->sides[BSW_RBE_QUERY].shape;
    json_t *object = json_pack(
        "{s:s, s:i, s:s, s:s, s:i, s:i, s:s, s:b, s:s}", "kind", "model", "format_version",
        BSW_RBE_MODEL_VERSION, "digest", digest, "metric", bsw_metric_name(model->metric), "dims",
        (int)query->dims, "code_dims", (int)query->code_dims, "precision",
        model->is_smooth ? "float" : "binary", "centered", is_centered(model), "scales",
        model->has_projection ? "projection" : "norm");
    json_object_set_new(object, "query", describe_side(query));
    json_object_set_new(object, "document", describe_side(&model->sides[BSW_RBE_DOCUMENT].shape));
    json_object_set_new(object, "training", describe_training(&model->origin));
    bsw_print_json(object);
}

static void print_side(const char *name, const struct bsw_rbe_shape *shape)
{
    printf("  %-9s %u plane%s", name, shape->steps + 1, shape->steps > 0 ? "s" : "");
    if (shape->steps > 0) {
        printf(", %s matrices, residuals weigh %s", shape->is_shared ? "shared" : "separate",
               shape->has_residual_weights ? "1/2, 1/4, ..." : "1");
    }
    printf("\n");
}

static void print_model_text(const char *path, const struct bsw_rbe_model *model,
                             const char *digest)
{
    const struct bsw_rbe_shape *query = &model->sides[BSW_RBE_QUERY].shape;
    const struct bsw_rbe_origin *o = &model->origin;
    printf("model %s, digest %s\n", path, digest);
    printf("  codes     %u dims to %u, %s, %s, %s, scales by %s\n", query->dims, query->code_dims,
           bsw_metric_name(model->metric), model->is_smooth ? "float" : "binary",
           is_centered(model) ? "centered" : "not centered",
           model->has_projection ? "projection" : "norm");
    print_side("query", query);
    print_side("document", &model->sides[BSW_RBE_DOCUMENT].shape);
    printf(
        "  training  %s, %llu pairs, %llu negatives, batch %llu, gamma %g, rate %g, epochs %llu, "
        "seed %llu, ranks %u\n",
        bsw_rbe_estimator_name(o->estimator), (unsigned long long)o->pairs,
        (unsigned long long)o->negatives, (unsigned long long)o->batch, o->gamma, o->rate,
        (unsigned long long)o->epochs, (unsigned long long)o->seed, o->ranks);
    printf("  loss      %.5f", o->train_loss);
    if (o->validation_loss > 0) printf(", held out %.5f", o->validation_loss);
    printf("\n");
}

static enum bsw_status info_model(const char *path, int is_json, struct bsw_error *err)
{
    struct bsw_rbe_model model;
    char digest[17];
    BSW_TRY(bsw_rbe_model_read(path, &model, err));
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)model.digest);
    if (is_json)
        print_model_json(&model, digest);
    else
        print_model_text(path, &model, digest);
    bsw_rbe_model_deinit(&model);
    return BSW_OK;
}

static enum bsw_status info_results(const char *path, int is_json, struct bsw_error *err)
{
    struct bsw_results results;
    BSW_TRY(bsw_results_read(path, &results, err));
    if (is_json) {
        bsw_print_json(json_pack("{s:s, s:I, s:I, s:b}", "kind", "results", "queries",
                                 (json_int_t)results.num_queries, "k", (json_int_t)results.k,
                                 "has_values", results.values != NULL));
    } else {
        printf("%s: %llu queries x %llu neighbours%s\n", path,
               (unsigned long long)results.num_queries, (unsigned long long)results.k,
               results.values ? "" : ", ids only");
    }
    bsw_results_deinit(&results);
    return BSW_OK;
}

static int ends_with(const char *path, const char *ending)
{
    size_t length = strlen(path), tail = strlen(ending);
    return length >= tail && strcmp(path + length - tail, ending) == 0;
}

static enum bsw_status run(const struct info_options *o, struct bsw_error *err)
{
    int is_index = !bsw_name_is_vectors(o->path) && bsw_path_is_folder(o->path);
    if (is_index) return info_index(o, err);
    if (o->device_memory > 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "--device-memory: %s is no index", o->path);
    if (bsw_name_is_vectors(o->path)) return info_vectors(o->path, o->common.json, err);
    if (ends_with(o->path, ".rbe")) return info_model(o->path, o->common.json, err);
    return info_results(o->path, o->common.json, err);
}

enum bsw_status bsw_command_info(struct bsw_transport *transport, int argc, char **argv,
                                 struct bsw_error *err)
{
    struct info_options options = {0};
    char *words[BSW_MAX_WORDS];
    int done;
    BSW_TRY(bsw_name_first_word("--path", &argc, argv, words, err));
    BSW_TRY(parse(transport, &options, argc, words, &done, err));
    if (done) return BSW_OK;
    enum bsw_status status = transport->rank == 0 ? run(&options, err) : BSW_OK;
    return bsw_transport_agree(transport, status, err);
}
