// SPDX-License-Identifier: Apache-2.0
// info: what is in an index, a vector file, a model or a result file.
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "common/device/device_node.h"
#include "common/files/result_file.h"
#include "common/files/shard_file.h"
#include "common/net/device_link.h"
#include "common/rows/vectors.h"
#include "coordinator/job/command.h"
#include "coordinator/job/index_facts.h"
#include "coordinator/job/index_folder.h"
#include "coordinator/search/batch_link.h"
#include "coordinator/search/merge_choice.h"
#include "coordinator/search/search_options.h"
#include "shard/codecs/codec.h"
#include "shard/shard_service.h"

// Beside the path, a search whose use of device memory is asked for.
struct info_options {
    struct bsw_common_options common;
    const char *path;
    uint64_t gpu_memory, sharers, device_memory, ranks;
    enum bsw_link_choice link;
    struct bsw_search_request request;
};

#define OPTION(name, member, ...) BSW_OPTION(struct info_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("path", path, .value_name = "PATH", .is_required = 1, .may_stand_alone = 1,
           .help =
               "index folder, vector file, model (.rbe), result file or synth:...; of FILE.hdf5 "
               "all its datasets; the name may stand alone"),
    OPTION("device-memory", device_memory, .value_name = "BYTES", .default_text = "0", .max = 1e15,
           .help = "index: what each rank of a search with the options below takes of a GPU, if "
                   "so much is free for it"),
    OPTION("gpu-memory", gpu_memory, .value_name = "BYTES", .default_text = "0", .max = 1e15,
           .help = "the same of a GPU with so much in all, some of which CUDA and NCCL take"),
    BSW_OPTION_SOME(struct info_options, request, bsw_search_option_group,
                    "k|query-bits|entries|oversample|select|items|queue-length|max-candidates|"
                    "probe|refine|merge|batch"),
    OPTION("ranks", ranks, .value_name = "N", .default_text = "1", .min = 1, .max = 1e6,
           .help = "ranks of the search"),
    OPTION("sharers", sharers, .value_name = "N", .default_text = "1", .min = 1, .max = 1e6,
           .help = "of them on a GPU, for --gpu-memory"),
    OPTION("link", link, .choices = "auto|mpi", .default_text = "auto",
           .help = "auto: as if NCCL linked the GPUs, if each rank has its own"),
    BSW_OPTION_GROUP(struct info_options, common, bsw_common_option_group),
};

// ---- memory of devices ----

static const char *memory_option(const struct info_options *o)
{
    return o->gpu_memory > 0 ? "--gpu-memory" : "--device-memory";
}

// What is free for each rank.
static size_t memory_of(const struct info_options *o)
{
    const struct bsw_device_crowd crowd = {(int)o->ranks, (int)o->sharers};
    if (o->gpu_memory == 0) return (size_t)o->device_memory;
    size_t part = bsw_device_memory_forecast(&crowd, (size_t)o->gpu_memory);
    return o->device_memory > 0 && o->device_memory < part ? (size_t)o->device_memory : part;
}

static enum bsw_status settle_search(const struct info_options *o,
                                     const struct bsw_manifest *manifest,
                                     struct bsw_search_settings *out, struct bsw_error *err)
{
    return bsw_search_settle(&o->request, manifest, o->path, (int)o->ranks, out, err);
}

// What a search will take of the devices of its ranks, from the manifest alone: in the order in
// which search.c takes it.
struct forecast {
    size_t link_bytes, merge_bytes; // batch_link.h, batch_device_merge.h
    struct bsw_memory_forecast shards;
    size_t used_bytes; // all of it
};

struct outlook {
    enum bsw_search_merge merge;
    int is_linked; // ranks' devices, if there are several ranks
    int num_ranks;
    const size_t *free_bytes; // [num_ranks]
};

// Forecasts the link of each rank; then where candidates meet, and with what memory.
static void forecast_merge(const struct bsw_manifest *manifest, const struct outlook *outlook,
                           const struct bsw_assignment *assignment,
                           struct bsw_search_settings *settings, struct forecast *out)
{
    size_t least = SIZE_MAX;
    int is_alone = outlook->num_ranks == 1;
    bsw_merge_place_choose(outlook->merge, outlook->is_linked || is_alone, assignment, settings);
    for (int rank = 0; rank < outlook->num_ranks; rank++) {
        size_t left = outlook->free_bytes[rank];
        out[rank] = (struct forecast){.link_bytes = 0};
        if (outlook->is_linked && !is_alone)
            out[rank].link_bytes = bsw_batch_link_bytes(manifest, settings);
        left = left > out[rank].link_bytes ? left - out[rank].link_bytes : 0;
        left = bsw_merge_room(manifest, settings, assignment, (uint32_t)rank, left);
        least = left < least ? left : least;
    }
    if (settings->merge_place == BSW_MERGE_ON_HOST ||
        !bsw_merge_fits(manifest, assignment, outlook->merge, least, settings))
        return;
    const struct bsw_device_merge_needs needs = bsw_merge_needs(manifest, assignment, settings);
    for (int rank = 0; rank < outlook->num_ranks; rank++) {
        struct bsw_device_merge_plan plan;
        bsw_device_merge_plan_make(&needs, (uint32_t)rank, least, &plan);
        out[rank].merge_bytes = plan.bytes;
    }
}

// out [num_ranks]; settings get the place where candidates meet. BSW_ERROR_OUT_OF_MEMORY, naming
// the rank, where a search will have that.
static enum bsw_status forecast_search(const struct bsw_manifest *manifest,
                                       const struct outlook *outlook,
                                       struct bsw_search_settings *settings, struct forecast *out,
                                       struct bsw_error *err)
{
    struct bsw_assignment assignment;
    BSW_TRY(
        bsw_assignment_make((uint32_t)outlook->num_ranks, manifest->num_shards, &assignment, err));
    forecast_merge(manifest, outlook, &assignment, settings, out);
    bsw_assignment_deinit(&assignment);
    for (int rank = 0; rank < outlook->num_ranks; rank++) {
        size_t before = out[rank].link_bytes + out[rank].merge_bytes;
        size_t left = outlook->free_bytes[rank];
        left = left > before ? left - before : 0;
        enum bsw_status status = bsw_shard_service_plan(
            manifest, settings, rank, outlook->num_ranks, left, &out[rank].shards, err);
        if (status != BSW_OK) return bsw_prefix(err, status, "rank %d: ", rank);
        out[rank].used_bytes = before + out[rank].shards.used_bytes;
    }
    return BSW_OK;
}

static void tell_forecast(struct bsw_facts *facts, int rank, size_t memory,
                          const struct forecast *of)
{
    const struct bsw_memory_forecast *forecast = &of->shards;
    size_t used = of->used_bytes, merge = of->merge_bytes + forecast->kept_bytes;
    bsw_facts_open_object(facts, NULL);
    bsw_fact_integer(facts, "rank", (uint64_t)rank, "  rank %-4d ");
    bsw_fact_bytes(facts, "memory_bytes", memory, "of %s: ");
    bsw_fact_bytes(facts, "codes_bytes", forecast->code_bytes, "codes %s");
    bsw_fact_integer(facts, "queries_at_a_time", forecast->group_queries, ", %d queries at a time");
    bsw_fact_integer(facts, "list_items", forecast->list_items, " and their lists of %d items");
    bsw_fact_bytes(facts, "queries_bytes", forecast->query_bytes, " %s");
    bsw_fact_bytes(facts, "blocks_bytes", forecast->block_bytes, ", blocks %s");
    bsw_fact_bytes(facts, "items_bytes", forecast->list_bytes,
                   forecast->list_bytes > 0 ? ", items of lists %s" : NULL);
    bsw_fact_bytes(facts, "centroids_bytes", forecast->coarse_bytes,
                   forecast->coarse_bytes > 0 ? ", centroids %s" : NULL);
    bsw_fact_bytes(facts, "codebooks_bytes", forecast->book_bytes,
                   forecast->book_bytes > 0 ? ", codebooks %s" : NULL);
    bsw_fact_bytes(facts, "survivors_bytes", forecast->survivor_bytes, ", survivors %s");
    bsw_fact_bytes(facts, "raw_bytes", forecast->raw_bytes, ", raw vectors %s");
    bsw_fact_bytes(facts, "link_bytes", of->link_bytes, of->link_bytes > 0 ? ", link %s" : NULL);
    bsw_fact_bytes(facts, "merge_bytes", merge, merge > 0 ? ", merge %s" : NULL);
    bsw_fact_bytes(facts, "used_bytes", used, NULL);
    bsw_fact_bytes(facts, "free_bytes", memory - used, ", free %s");
    bsw_fact_bytes(facts, "streamed_bytes", forecast->streamed_bytes,
                   forecast->streamed_bytes > 0 ? "; %s come from host memory for every batch"
                                                : NULL);
    bsw_facts_say(facts, "\n");
    bsw_facts_close(facts);
}

static enum bsw_status tell_devices(struct bsw_facts *facts, const struct info_options *o,
                                    const struct bsw_manifest *manifest,
                                    struct bsw_search_settings *settings, struct bsw_error *err)
{
    int num_ranks = (int)o->ranks;
    size_t *memory = NULL;
    struct forecast *forecasts = NULL;
    enum bsw_status status =
        bsw_allocate(&memory, o->ranks, sizeof *memory, "memory of ranks", err);
    if (status == BSW_OK)
        status = bsw_allocate(&forecasts, o->ranks, sizeof *forecasts, "memory of ranks", err);
    for (int rank = 0; rank < num_ranks && status == BSW_OK; rank++) memory[rank] = memory_of(o);
    const struct outlook outlook = {.merge = o->request.merge,
                                    .is_linked = o->link == BSW_LINK_AUTO && num_ranks > 1 &&
                                                 o->sharers == 1,
                                    .num_ranks = num_ranks,
                                    .free_bytes = memory};
    if (status == BSW_OK) status = forecast_search(manifest, &outlook, settings, forecasts, err);
    if (status == BSW_OK) bsw_facts_open_list(facts, "device_memory");
    for (int rank = 0; rank < num_ranks && status == BSW_OK; rank++)
        tell_forecast(facts, rank, memory[rank], &forecasts[rank]);
    if (status == BSW_OK) bsw_facts_close(facts);
    bsw_free(&memory);
    bsw_free(&forecasts);
    return status;
}

// ---- what is there ----

static enum bsw_status tell_manifest(struct bsw_facts *facts, const struct info_options *o,
                                     const struct bsw_manifest *manifest, struct bsw_error *err)
{
    struct bsw_search_settings settings = {0};
    int has_devices = o->device_memory > 0 || o->gpu_memory > 0;
    if (has_devices) BSW_TRY(settle_search(o, manifest, &settings, err));
    bsw_index_facts(facts, o->path, manifest);
    return has_devices ? tell_devices(facts, o, manifest, &settings, err) : BSW_OK;
}

static enum bsw_status tell_index(struct bsw_facts *facts, const struct info_options *o,
                                  struct bsw_error *err)
{
    struct bsw_manifest manifest;
    BSW_TRY(bsw_manifest_read(o->path, &manifest, err));
    enum bsw_status status = tell_manifest(facts, o, &manifest, err);
    bsw_manifest_deinit(&manifest);
    return status;
}

static enum bsw_status tell_vectors(struct bsw_facts *facts, const char *path,
                                    struct bsw_error *err)
{
    bsw_vectors *vectors;
    BSW_TRY(bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, err));
    bsw_fact_text(facts, "kind", "vectors", NULL);
    bsw_facts_say(facts, "%s: ", path);
    bsw_fact_integer(facts, "rows", bsw_vectors_num_rows(vectors), "%d rows");
    bsw_fact_integer(facts, "dims", bsw_vectors_dims(vectors), " x %d dims");
    bsw_fact_text(facts, "type", bsw_vector_type_name(bsw_vectors_type(vectors)), ", %s\n");
    bsw_fact_integer(facts, "bytes", bsw_vectors_file_bytes(vectors), NULL);
    bsw_vectors_close(&vectors);
    return BSW_OK;
}

static enum bsw_status tell_model(struct bsw_facts *facts, const char *path, struct bsw_error *err)
{
    struct bsw_rbe_model model;
    BSW_TRY(bsw_rbe_model_read(path, &model, err));
    bsw_model_facts(facts, path, &model);
    bsw_rbe_model_deinit(&model);
    return BSW_OK;
}

static enum bsw_status tell_results(struct bsw_facts *facts, const char *path,
                                    struct bsw_error *err)
{
    struct bsw_results results;
    BSW_TRY(bsw_results_read(path, &results, err));
    bsw_fact_text(facts, "kind", "results", NULL);
    bsw_facts_say(facts, "%s: ", path);
    bsw_fact_integer(facts, "queries", results.num_queries, "%d queries");
    bsw_fact_integer(facts, "k", results.k, " x %d neighbours");
    bsw_fact_flag(facts, "has_values", results.values != NULL, NULL);
    bsw_facts_say(facts, "%s\n", results.values ? "" : ", ids only");
    bsw_results_deinit(&results);
    return BSW_OK;
}

// One that is neither vectors nor neighbours is said to be so, and is no fault of the file.
static enum bsw_status tell_dataset(struct bsw_facts *facts, const char *file, const char *name,
                                    struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_error why = {0};
    BSW_TRY(bsw_path_format(path, err, "%s:%s", file, name));
    bsw_facts_open_object(facts, NULL);
    bsw_fact_text(facts, "name", name, NULL);
    enum bsw_status status =
        (bsw_name_is_vectors(path) ? tell_vectors : tell_results)(facts, path, &why);
    if (status != BSW_OK) bsw_fact_text(facts, "refused", why.message, "%s\n");
    bsw_facts_close(facts);
    return BSW_OK;
}

static enum bsw_status tell_hdf5(struct bsw_facts *facts, const char *file, struct bsw_error *err)
{
    char names[BSW_HDF5_NAMES_BYTES], name[BSW_HDF5_NAMES_BYTES];
    BSW_TRY(bsw_hdf5_names_read(file, names, err));
    bsw_fact_text(facts, "kind", "hdf5", NULL);
    bsw_facts_open_list(facts, "datasets");
    enum bsw_status status = BSW_OK;
    for (const char *at = *names ? names : NULL;
         status == BSW_OK && bsw_word_take(&at, '\n', name, sizeof name);)
        status = tell_dataset(facts, file, name, err);
    bsw_facts_close(facts);
    return status;
}

static enum bsw_status tell(struct bsw_facts *facts, const struct info_options *o,
                            struct bsw_error *err)
{
    struct bsw_hdf5_name hdf5;
    const char *slash = strrchr(o->path, '/'), *name = slash ? slash + 1 : o->path;
    int is_index = !bsw_name_is_vectors(o->path) && bsw_path_is_folder(o->path);
    if (is_index) return tell_index(facts, o, err);
    if (o->device_memory > 0 || o->gpu_memory > 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %s is no index", memory_option(o), o->path);
    if (bsw_hdf5_name_parse(o->path, "", &hdf5) && *hdf5.dataset == '\0')
        return tell_hdf5(facts, hdf5.file, err);
    if (bsw_name_is_vectors(o->path)) return tell_vectors(facts, o->path, err);
    if (bsw_name_ends_with(o->path, ".rbe")) return tell_model(facts, o->path, err);
    if (bsw_index_folder_makes(name))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: is part of an index; info takes its folder",
                        o->path);
    return tell_results(facts, o->path, err);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    const struct info_options *o = options;
    struct bsw_facts facts;
    (void)transport;
    if (o->sharers > o->ranks)
        return bsw_fail(err, BSW_ERROR_USAGE, "--sharers %d: there are --ranks %d only",
                        (int)o->sharers, (int)o->ranks);
    bsw_facts_begin(&facts, o->common.json ? BSW_FACTS_JSON : BSW_FACTS_TEXT, NULL);
    enum bsw_status status = tell(&facts, o, err);
    bsw_facts_end(&facts, status);
    return status;
}

const struct bsw_command bsw_command_info =
    BSW_COMMAND_OFTEN("info", "what is in an index, a model, a vector file or a result file",
                      struct info_options, BSW_RANK_0,
                      "device-memory|gpu-memory|"
                      "ranks|json");
