// synth: generated vectors to a file, and queries from the same clusters behind them.
#include <stdio.h>
#include <string.h>

#include "common/progress.h"
#include "common/synth.h"
#include "common/vector_writer.h"
#include "coordinator/command.h"
#include "coordinator/command_files.h"

#define BLOCK_BYTES ((size_t)4 << 20)

struct synth_options {
    struct bsw_common_options common;
    uint64_t count, dims, clusters, seed, queries;
    double spectrum;
    const char *type, *out, *queries_out;
    int force;
};

static enum bsw_status parse(struct bsw_transport *transport, struct synth_options *o, int argc,
                             char **argv, int *done, struct bsw_error *err)
{
    const struct bsw_option options[] = {
        {"count", BSW_OPTION_COUNT, &o->count, "N", NULL, 1, 1, 1e14, NULL, "rows"},
        {"dims", BSW_OPTION_COUNT, &o->dims, "D", NULL, 1, 1, 65536, NULL, "numbers a row"},
        {"clusters", BSW_OPTION_COUNT, &o->clusters, "C", "0", 0, 0, 4e9, NULL,
         "cluster centres; 0: one cloud"},
        {"spectrum", BSW_OPTION_NUMBER, &o->spectrum, "X", "0", 0, 0, BSW_SYNTH_MAX_SPECTRUM, NULL,
         "principal component i has a standard deviation like i^-X, X in steps of 0.125; 0.625 "
         "resembles SIFT"},
        {"seed", BSW_OPTION_COUNT, &o->seed, "S", "1", 0, 0, 9e15, NULL, "seed"},
        {"type", BSW_OPTION_CHOICE, &o->type, NULL, "float32", 0, 0, 0, "float32|uint8",
         "type of the numbers"},
        {"out", BSW_OPTION_TEXT, &o->out, "FILE", NULL, 1, 0, 0, NULL,
         "vectors to write: .fbin .u8bin .fvecs .bvecs .npy"},
        {"queries", BSW_OPTION_COUNT, &o->queries, "N", "1000", 0, 1, 1e12, NULL,
         "rows of --queries-out"},
        {"queries-out", BSW_OPTION_TEXT, &o->queries_out, "FILE", NULL, 0, 0, 0, NULL,
         "further rows of the same clusters, as queries"},
        {"force", BSW_OPTION_FLAG, &o->force, NULL, NULL, 0, 0, 0, NULL, "replace existing files"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"synth", "write generated vectors", options,
                                           sizeof options / sizeof options[0]};
    return bsw_command_parse(transport, &table, &o->common, argc, argv, done, err);
}

static enum bsw_status create(const struct synth_options *o, const struct bsw_synth *synth,
                              const char *path, uint64_t num_rows, bsw_vector_writer **out,
                              struct bsw_error *err)
{
    return bsw_vector_writer_create(path, synth->type, synth->dims, num_rows, o->force, out, err);
}

static enum bsw_status write_rows(bsw_vector_writer *writer, const struct bsw_synth *synth,
                                  uint64_t first_row, uint64_t num_rows, int is_shown,
                                  struct bsw_error *err)
{
    size_t row_bytes = synth->dims * bsw_vector_type_bytes(synth->type);
    uint64_t step = BLOCK_BYTES / row_bytes ? BLOCK_BYTES / row_bytes : 1;
    struct bsw_progress progress;
    void *block;
    BSW_TRY(bsw_allocate(&block, (size_t)step, row_bytes, "rows", err));
    bsw_progress_init(&progress, "synth", "rows", num_rows, is_shown);
    enum bsw_status status = BSW_OK;
    for (uint64_t row = 0; row < num_rows && status == BSW_OK; row += step) {
        size_t count = (size_t)(num_rows - row < step ? num_rows - row : step);
        bsw_synth_rows(synth, first_row + row, count, block);
        status = bsw_vector_writer_put(writer, row, count, block, err);
        bsw_progress_update(&progress, row + count);
    }
    bsw_progress_finish(&progress);
    bsw_free(&block);
    return status;
}

// Both names are checked before any row is made.
static enum bsw_status write_files(const struct synth_options *o, const struct bsw_synth *synth,
                                   struct bsw_error *err)
{
    const struct bsw_command_files files = {.outputs = {o->out, o->queries_out}};
    bsw_vector_writer *base = NULL, *queries = NULL;
    int is_shown = !o->common.quiet;
    BSW_TRY(bsw_command_files_check(&files, err));
    enum bsw_status status = create(o, synth, o->out, o->count, &base, err);
    if (status == BSW_OK && o->queries_out)
        status = create(o, synth, o->queries_out, o->queries, &queries, err);
    if (status == BSW_OK) status = write_rows(base, synth, 0, o->count, is_shown, err);
    if (status == BSW_OK) status = bsw_vector_writer_finish(base, err);
    if (status == BSW_OK && queries)
        status = write_rows(queries, synth, o->count, o->queries, is_shown, err);
    if (status == BSW_OK && queries) status = bsw_vector_writer_finish(queries, err);
    bsw_vector_writer_destroy(&base);
    bsw_vector_writer_destroy(&queries);
    return status;
}

static enum bsw_status run(const struct synth_options *o, struct bsw_error *err)
{
    struct bsw_synth synth = {.count = o->count,
                              .dims = (uint32_t)o->dims,
                              .seed = o->seed,
                              .clusters = (uint32_t)o->clusters,
                              .type = strcmp(o->type, "uint8") == 0 ? BSW_VECTOR_UINT8
                                                                    : BSW_VECTOR_FLOAT32};
    char text[40];
    snprintf(text, sizeof text, "--spectrum %g", o->spectrum);
    BSW_TRY(bsw_synth_set_spectrum(&synth, o->spectrum, text, err));
    return write_files(o, &synth, err);
}

static void report(const struct synth_options *o)
{
    if (o->common.json) {
        bsw_print_json(json_pack("{s:I, s:I, s:s, s:I, s:f, s:I, s:s}", "rows",
                                 (json_int_t)o->count, "dims", (json_int_t)o->dims, "type", o->type,
                                 "clusters", (json_int_t)o->clusters, "spectrum", o->spectrum,
                                 "seed", (json_int_t)o->seed, "out", o->out));
    } else if (!o->common.quiet) {
        printf("%s: %llu rows x %llu dims, %s\n", o->out, (unsigned long long)o->count,
               (unsigned long long)o->dims, o->type);
    }
}

enum bsw_status bsw_command_synth(struct bsw_transport *transport, int argc, char **argv,
                                  struct bsw_error *err)
{
    struct synth_options options = {0};
    int done;
    BSW_TRY(parse(transport, &options, argc, argv, &done, err));
    if (done) return BSW_OK;
    enum bsw_status status = transport->rank == 0 ? run(&options, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    if (transport->rank == 0) report(&options);
    return BSW_OK;
}
