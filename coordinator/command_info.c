// info: what is in an index, a vector file or a result file.
#include <stdio.h>
#include <string.h>

#include "common/file.h"
#include "common/result_file.h"
#include "common/shard_file.h"
#include "common/vectors.h"
#include "coordinator/command.h"

struct info_options {
    struct bsw_common_options common;
    const char *path;
};

static enum bsw_status parse(struct bsw_transport *transport, struct info_options *o, int argc,
                             char **argv, int *done, struct bsw_error *err)
{
    const struct bsw_option options[] = {
        {"path", BSW_OPTION_TEXT, &o->path, "PATH", NULL, 1, 0, 0, NULL,
         "index folder, vector file, result file or synth:...; the name may stand alone"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"info",
                                           "what is in an index, a vector file or a result file",
                                           options, sizeof options / sizeof options[0]};
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

static enum bsw_status info_index(const char *path, int is_json, struct bsw_error *err)
{
    struct bsw_manifest manifest;
    char digest[17], build[17], segments[512];
    BSW_TRY(bsw_manifest_read(path, &manifest, err));
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)manifest.source_digest);
    snprintf(build, sizeof build, "%016llx", (unsigned long long)manifest.build_digest);
    bsw_code_layout_format(&manifest.layout, segments, sizeof segments);
    int is_saq = manifest.codec == BSW_CODEC_SAQ;
    double row_bytes = bsw_manifest_row_bytes(&manifest);
    if (is_json) {
        json_t *object = json_pack(
            "{s:s, s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:i, s:f, s:f, s:i, s:s, s:s, s:I, s:s, s:b}",
            "kind", "index", "format_version", BSW_INDEX_FORMAT_VERSION, "build", build, "codec",
            bsw_codec_name(manifest.codec), "metric", bsw_metric_name(manifest.metric), "first_row",
            (json_int_t)manifest.first_row, "rows", (json_int_t)manifest.num_rows, "dropped_rows",
            (json_int_t)manifest.dropped_rows, "dims", (int)manifest.layout.dims, "bits",
            manifest.bits, "bytes_per_vector", row_bytes, "stage_dims", (int)manifest.stage_dims,
            "source", manifest.source_path, "source_type",
            bsw_vector_type_name(manifest.source_type), "source_rows",
            (json_int_t)manifest.source_rows, "source_digest", digest, "vectors_copied",
            manifest.source_is_copied);
        if (is_saq)
            json_object_set_new(object, "axes", json_string(manifest.axes));
        else if (manifest.codec == BSW_CODEC_XFBQ)
            json_object_set_new(object, "scale", json_real(manifest.xfbq_scale));
        json_object_set_new(object, "segments", describe_segments(&manifest));
        json_object_set_new(object, "shards", describe_shards(&manifest));
        bsw_print_json(object);
    } else {
        printf("index %s, build %s\n", path, build);
        printf("  codec     %s, %s, %g bits a dimension, segments %s",
               bsw_codec_name(manifest.codec), bsw_metric_name(manifest.metric), manifest.bits,
               segments);
        if (is_saq)
            printf(", %s axes\n", manifest.axes);
        else if (manifest.codec == BSW_CODEC_XFBQ)
            printf(", scale %g\n", manifest.xfbq_scale);
        else
            printf("\n");
        printf("  rows      %llu from id %llu, %u dims, %llu dropped, %g bytes a vector\n",
               (unsigned long long)manifest.num_rows, (unsigned long long)manifest.first_row,
               manifest.layout.dims, (unsigned long long)manifest.dropped_rows, row_bytes);
        printf("  source    %s, %s, %llu rows, digest %s%s\n", manifest.source_path,
               bsw_vector_type_name(manifest.source_type), (unsigned long long)manifest.source_rows,
               digest, manifest.source_is_copied ? ", copied" : "");
        for (uint32_t i = 0; i < manifest.num_shards; i++) {
            const struct bsw_shard_entry *entry = &manifest.shards[i];
            printf("  shard %-3u rows %llu to %llu, %llu bytes, digest %016llx\n", i,
                   (unsigned long long)entry->first_row,
                   (unsigned long long)(entry->first_row + entry->num_rows - 1),
                   (unsigned long long)entry->codes_bytes, (unsigned long long)entry->codes_digest);
        }
    }
    bsw_manifest_deinit(&manifest);
    return BSW_OK;
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

static int is_vector_name(const char *path)
{
    static const char *const endings[] = {".fvecs", ".bvecs", ".fbin", ".u8bin", ".i8bin", ".npy"};
    size_t length = strlen(path);
    if (strncmp(path, "synth:", 6) == 0) return 1;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t tail = strlen(endings[i]);
        if (length >= tail && strcmp(path + length - tail, endings[i]) == 0) return 1;
    }
    return 0;
}

static enum bsw_status run(const struct info_options *o, struct bsw_error *err)
{
    if (is_vector_name(o->path)) return info_vectors(o->path, o->common.json, err);
    if (bsw_path_is_folder(o->path)) return info_index(o->path, o->common.json, err);
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
