// SPDX-License-Identifier: Apache-2.0
// synth: generated vectors to a file, and queries from the same clusters behind them.
#include <stdio.h>
#include <string.h>

#include "common/job/progress.h"
#include "common/rows/synth.h"
#include "common/rows/vectors.h"
#include "coordinator/job/command.h"
#include "coordinator/job/command_files.h"

#define BLOCK_BYTES ((size_t)4 << 20)

struct synth_options {
    struct bsw_common_options common;
    uint64_t count, dims, clusters, seed, queries;
    double spectrum;
    const char *type, *out, *queries_out;
    int force;
};

#define OPTION(name, member, ...) BSW_OPTION(struct synth_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("count", count, .value_name = "N", .is_required = 1, .min = 1, .max = 1e14,
           .help = "rows"),
    OPTION("dims", dims, .value_name = "D", .is_required = 1, .min = 1, .max = 65536,
           .help = "numbers a row"),
    OPTION("clusters", clusters, .value_name = "C", .default_text = "0", .max = 4e9,
           .help = "cluster centres; 0: one cloud"),
    OPTION("spectrum", spectrum, .value_name = "X", .default_text = "0",
           .max = BSW_SYNTH_MAX_SPECTRUM,
           .help = "principal component i has a standard deviation like i^-X, X in steps of 0.125; "
                   "0.625 resembles SIFT"),
    OPTION("seed", seed, .value_name = "S", .default_text = "1", .max = 9e15, .help = "seed"),
    OPTION("type", type, .choices = "float32|uint8", .default_text = "float32",
           .help = "type of the numbers"),
    OPTION("out", out, .value_name = "FILE", .is_required = 1,
           .help = "vectors to write: .fbin .u8bin .fvecs .bvecs .npy"),
    OPTION("queries", queries, .value_name = "N", .default_text = "1000", .min = 1, .max = 1e12,
           .help = "rows of --queries-out"),
    OPTION("queries-out", queries_out, .value_name = "FILE",
           .help = "further rows of the same clusters, as queries"),
    OPTION("force", force, .help = "replace existing files"),
    BSW_OPTION_GROUP(struct synth_options, common, bsw_common_option_group),
};

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

static void report(const struct synth_options *o)
{
    struct bsw_facts facts;
    bsw_facts_begin(&facts, bsw_common_facts_form(&o->common), NULL);
    bsw_fact_text(&facts, "out", o->out, "%s: ");
    bsw_fact_integer(&facts, "rows", o->count, "%d rows x ");
    bsw_fact_integer(&facts, "dims", o->dims, "%d dims, ");
    bsw_fact_text(&facts, "type", o->type, "%s\n");
    bsw_fact_integer(&facts, "clusters", o->clusters, NULL);
    bsw_fact_real(&facts, "spectrum", o->spectrum, NULL);
    bsw_fact_integer(&facts, "seed", o->seed, NULL);
    bsw_facts_end(&facts, BSW_OK);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    const struct synth_options *o = options;
    struct bsw_synth synth = {.count = o->count,
                              .dims = (uint32_t)o->dims,
                              .seed = o->seed,
                              .clusters = (uint32_t)o->clusters,
                              .type = strcmp(o->type, "uint8") == 0 ? BSW_VECTOR_UINT8
                                                                    : BSW_VECTOR_FLOAT32};
    char text[40];
    (void)transport;
    snprintf(text, sizeof text, "--spectrum %g", o->spectrum);
    BSW_TRY(bsw_synth_set_spectrum(&synth, o->spectrum, text, err));
    BSW_TRY(write_files(o, &synth, err));
    report(o);
    return BSW_OK;
}

const struct bsw_command bsw_command_synth =
    BSW_COMMAND("synth", "write generated vectors", struct synth_options, BSW_RANK_0);
