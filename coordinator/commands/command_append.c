// SPDX-License-Identifier: Apache-2.0
// append: more rows for an index, coded as its others are (coordinator/encode/append_index.h).
#include "coordinator/encode/append_index.h"

#include "common/files/row_ids.h"
#include "coordinator/job/command.h"
#include "coordinator/job/facts.h"

struct append_options {
    struct bsw_common_options common;
    struct bsw_append_settings settings;
    const char *ids, *tags, *check;
};

#define OPTION(name, member, ...) BSW_OPTION(struct append_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("index", settings.index, .value_name = "FOLDER", .is_required = 1,
           .help = "index that gets the rows"),
    OPTION("base", settings.base, .value_name = "FILE", .is_required = 1,
           .help = "vectors of the type and dims that the index has, or synth:..."),
    OPTION("rows", settings.rows, .value_name = "A:B",
           .help = "only these rows of the file; in the index they follow its last row"),
    OPTION("ids", ids, .value_name = "FILE",
           .help = "ids of the rows, .npy of integers or text, for an index whose rows have ids"),
    OPTION("tags", tags, .value_name = "FILE.spmat",
           .help = "tags of the rows, for an index whose rows have tags"),
    OPTION("shards", settings.shards, .value_name = "P", .default_text = "1", .min = 1,
           .max = BSW_MAX_SHARDS, .help = "shard files for the rows"),
    OPTION("copy-vectors", settings.copies_vectors,
           .help = "keep the raw rows in the index, also where it has no copies of the others"),
    OPTION("drop-bad-rows", settings.drop_bad_rows,
           .help = "count and skip rows with NaN, Inf, squared norms above 1e37, (cosine) zeros"),
    OPTION("check", check, .choices = "auto|off", .default_text = "auto",
           .help = "auto: search a sample of the rows by their codes, and warn where they find "
                   "much less than when the index was made"),
    OPTION("keep", settings.keep, .value_name = "N", .default_text = "1", .max = 63,
           .help = "older generations whose files stay, for searches that still read them"),
    OPTION("resume", settings.resume, .help = "go on with an unfinished append; without one begin"),
    BSW_OPTION_GROUP(struct append_options, settings.device, bsw_device_option_group),
    BSW_OPTION_GROUP(struct append_options, common, bsw_common_option_group),
};

static void report_drift(struct bsw_facts *f, const struct bsw_append_stats *s)
{
    const struct bsw_code_check *now = &s->encode.check, *before = &s->before;
    if (now->num_queries == 0) {
        bsw_facts_say(
            f, "drift: not measured: rows are few, codes take no sample, or --check is off\n");
        return;
    }
    bsw_fact_real(f, "check_recall", now->recall, "drift: codes find %.3f of the nearest 10");
    if (before->num_queries > 0)
        bsw_fact_real(f, "check_recall_before", before->recall, ", of the first rows %.3f");
    bsw_facts_say(f, "\n");
    bsw_fact_flag(
        f, "has_drifted", bsw_append_has_drifted(s),
        "warning: the codes of the index fit these rows much worse than those it was made "
        "from: encode all rows anew\n");
}

static void report(const struct bsw_transport *transport, const struct append_options *o,
                   const struct bsw_append_stats *s)
{
    struct bsw_facts f;
    bsw_facts_begin(&f, bsw_common_facts_form(&o->common), NULL);
    bsw_fact_integer(&f, "appended_rows", s->encode.num_rows, "%d rows appended");
    bsw_fact_integer(&f, "first_row", s->first_row, ", from row %d on");
    bsw_fact_integer(&f, "shards", s->encode.num_shards, ", in %d shards");
    bsw_fact_integer(&f, "rows", s->num_rows, "; %d rows");
    bsw_fact_integer(&f, "generation", s->generation, ", generation %d\n");
    bsw_fact_integer(&f, "dropped_rows", s->encode.num_dropped_rows,
                     s->encode.num_dropped_rows > 0 ? "dropped rows: %d\n" : NULL);
    report_drift(&f, s);
    bsw_append_cost_facts(&f, transport, s);
    bsw_facts_end(&f, BSW_OK);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct append_options *o = options;
    struct bsw_append_settings *settings = &o->settings;
    struct bsw_append_stats stats;
    struct bsw_progress progress = {.is_shown = transport->rank == 0 && !o->common.quiet};
    int64_t *ids = NULL;
    enum bsw_status status = BSW_OK;
    if (o->ids && transport->rank == 0)
        status = bsw_integers_read(o->ids, &ids, &settings->num_ids, err);
    struct bsw_number_sets tags = {0};
    if (status == BSW_OK && o->tags && transport->rank == 0)
        status = bsw_row_tags_of_file(o->tags, &tags, err);
    BSW_TRY(bsw_transport_agree(transport, status, err));
    settings->tags = tags.first ? &tags : NULL;
    settings->ids = ids;
    settings->checks_codes = o->check[0] == 'a';
    settings->level = o->common.level;
    settings->progress = &progress;
    status = bsw_append_run(settings, transport, &stats, err);
    bsw_free(&ids);
    bsw_number_sets_deinit(&tags);
    if (status == BSW_OK && transport->rank == 0) report(transport, o, &stats);
    return status;
}

const struct bsw_command bsw_command_append = BSW_COMMAND(
    "append", "add rows to an index, with its codes", struct append_options, BSW_ALL_RANKS);
