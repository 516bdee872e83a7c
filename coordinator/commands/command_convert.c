// SPDX-License-Identifier: Apache-2.0
// convert: vectors, or ids of neighbours with their values, from one file format to another
// (conversion.h).
#include <stdio.h>

#include "common/files/result_file.h"
#include "common/rows/vectors.h"
#include "coordinator/job/command.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/conversion.h"
#include "coordinator/job/text_model.h"

struct convert_options {
    struct bsw_common_options common;
    struct bsw_conversion files;
    const char *model;
};

#define OPTION(name, member, ...) BSW_OPTION(struct convert_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("in", files.in, .value_name = "FILE", .is_required = 1,
           .help = "vectors, a ground truth or a result; FILE.hdf5:DATASET too [train]"),
    OPTION("out", files.out, .value_name = "FILE", .is_required = 1,
           .help = "vectors: " BSW_WRITTEN_ENDINGS " .npy; neighbours: .ivecs, .ibin, "
                   "X.neighbors.ibin (values to X.distances.fbin), .npz, all other names big-ann's "
                   "layout"),
    OPTION("model", model, .value_name = "FILE", .help = BSW_TEXT_MODEL_HELP),
    OPTION("rows", files.rows, .value_name = "A:B", .help = "only these rows"),
    OPTION("as-queries", files.has_queries,
           .help = "what is read are queries: the other side of --model; of HDF5 [test]"),
    OPTION("type", files.type, .choices = "auto|float32|float16|uint8|int8", .default_text = "auto",
           .help = "numbers of a .npy file; auto: those of the input; float32: also where that has "
                   "float64"),
    OPTION("force", files.force, .help = "replace an existing file"),
    BSW_OPTION_GROUP(struct convert_options, common, bsw_common_option_group),
};

static void report(const struct convert_options *o, const struct bsw_converted *done)
{
    struct bsw_facts facts;
    bsw_facts_begin(&facts, bsw_common_facts_form(&o->common), NULL);
    bsw_fact_text(&facts, "in", o->files.in, NULL);
    bsw_fact_text(&facts, "out", o->files.out, "%s: ");
    bsw_fact_integer(&facts, "rows", done->rows, "%d rows");
    bsw_fact_integer(&facts, "dims", done->dims, " x %d");
    bsw_fact_text(&facts, "kind", done->kind, ", %s");
    bsw_fact_text(&facts, "type", done->type, " (%s)\n");
    bsw_facts_end(&facts, BSW_OK);
}

// FILE, FILE.json, and of split neighbours the file of their values.
struct file_names {
    char json[BSW_PATH_BYTES], values[BSW_PATH_BYTES];
    int has_values;
};

static enum bsw_status name_files(const char *path, struct file_names *out, struct bsw_error *err)
{
    BSW_TRY(bsw_path_format(out->json, err, "%s.json", path));
    out->has_values = bsw_split_values_path(path, out->values);
    return BSW_OK;
}

static enum bsw_status check_files(const struct bsw_conversion *o, struct bsw_error *err)
{
    struct file_names in, out;
    BSW_TRY(name_files(o->in, &in, err));
    BSW_TRY(name_files(o->out, &out, err));
    const struct bsw_command_files files = {
        .inputs = {o->in, in.json, in.has_values ? in.values : NULL},
        .outputs = {o->out, out.json, out.has_values ? out.values : NULL}};
    return bsw_command_files_check(&files, err);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct convert_options *o = options;
    const struct bsw_conversion *files = &o->files;
    struct bsw_converted done = {0};
    (void)transport;
    o->files.is_shown = !o->common.quiet;
    BSW_TRY(check_files(files, err));
    struct bsw_text_model text = {0};
    BSW_TRY(bsw_text_model_lend(&text, o->model, o->common.level, &files->in, 1, err));
    int has_vectors = bsw_name_is_vectors(files->in) || text.is_lent;
    enum bsw_status status =
        (has_vectors ? bsw_convert_vectors : bsw_convert_neighbours)(files, &done, err);
    bsw_text_model_take_back(&text);
    if (status == BSW_OK) report(o, &done);
    return status;
}

const struct bsw_command bsw_command_convert =
    BSW_COMMAND("convert", "write vectors, results or a ground truth in another format",
                struct convert_options, BSW_RANK_0);
