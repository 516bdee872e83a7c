// SPDX-License-Identifier: Apache-2.0
// delete: takes rows out of an index, by their numbers or ids (coordinator/encode/delete_rows.h).
#include "coordinator/encode/delete_rows.h"

#include "coordinator/job/command.h"
#include "coordinator/job/facts.h"

struct delete_options {
    struct bsw_common_options common;
    struct bsw_delete_settings settings;
};

#define OPTION(name, member, ...) BSW_OPTION(struct delete_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("index", settings.index, .value_name = "FOLDER", .is_required = 1,
           .help = "index that loses the rows"),
    OPTION("rows", settings.rows, .value_name = "A:B|FILE",
           .help = "rows A to B - 1, or a file of row numbers, .npy of integers or text"),
    OPTION("ids", settings.ids, .value_name = "FILE",
           .help = "the same by ids, of an index whose rows have ids"),
    OPTION("keep", settings.keep, .value_name = "N", .default_text = "1", .max = 63,
           .help = "older generations whose files stay, for searches that still read them"),
    BSW_OPTION_GROUP(struct delete_options, common, bsw_common_option_group),
};

static void report(const struct delete_options *o, const struct bsw_delete_stats *s)
{
    struct bsw_facts f;
    bsw_facts_begin(&f, bsw_common_facts_form(&o->common), NULL);
    bsw_fact_integer(&f, "deleted_rows", s->num_deleted, "%d rows deleted");
    bsw_fact_integer(&f, "gone_before", s->num_asked - s->num_deleted,
                     s->num_asked > s->num_deleted ? ", %d were gone before" : NULL);
    bsw_fact_integer(&f, "rows_left", s->num_left, "; %d rows left");
    bsw_fact_integer(&f, "rows", s->num_rows, " of %d");
    bsw_fact_integer(&f, "generation", s->generation, ", generation %d\n");
    bsw_fact_integer(&f, "all_deleted_rows", s->num_gone, NULL);
    bsw_facts_end(&f, BSW_OK);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    const struct delete_options *o = options;
    struct bsw_delete_stats stats;
    BSW_TRY(bsw_delete_run(&o->settings, transport, &stats, err));
    if (transport->rank == 0) report(o, &stats);
    return BSW_OK;
}

const struct bsw_command bsw_command_delete =
    BSW_COMMAND("delete", "take rows out of an index", struct delete_options, BSW_ALL_RANKS);
