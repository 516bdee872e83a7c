// SPDX-License-Identifier: Apache-2.0
// calibrate: makes the table of recalls of an index with lists, in place of the one that it may
// have (coordinator/calibrate/calibrate.h).
#include "coordinator/calibrate/calibrate.h"

#include "coordinator/job/command.h"
#include "coordinator/job/facts.h"

struct calibrate_options {
    struct bsw_common_options common;
    struct bsw_calibrate_settings settings;
};

#define OPTION(name, member, ...) BSW_OPTION(struct calibrate_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("index", settings.index, .value_name = "FOLDER", .is_required = 1, .may_stand_alone = 1,
           .help = "index with lists; the name may stand alone"),
    OPTION("queries", settings.queries, .value_name = "FILE",
           .help =
               "queries like those to come, in place of rows of the corpus; of an index of texts "
               "FILE.txt, FILE.tsv:COLUMN"),
    OPTION("sample", settings.num_rows, .value_name = "N", .min = 1, .max = BSW_CALIBRATE_MOST_ROWS,
           .help = "so many rows as queries [1000, or a tenth of the rows]"),
    OPTION("force", settings.is_forced,
           .help = "replace a table that was made from your own queries"),
    BSW_OPTION_GROUP(struct calibrate_options, common, bsw_common_option_group),
};

static void report(const struct calibrate_options *o, const struct bsw_calibrate_stats *stats)
{
    struct bsw_facts facts;
    bsw_facts_begin(&facts, bsw_common_facts_form(&o->common), NULL);
    bsw_calibrate_facts(&facts, stats);
    bsw_facts_end(&facts, BSW_OK);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct calibrate_options *o = options;
    struct bsw_calibrate_settings *settings = &o->settings;
    struct bsw_calibrate_stats stats;
    struct bsw_progress progress = {.is_shown = transport->rank == 0 && !o->common.quiet};
    settings->num_threads = (int)o->common.threads;
    settings->level = o->common.level;
    settings->pinning = &o->common.pinning;
    settings->progress = &progress;
    settings->is_needed = 1;
    BSW_TRY(bsw_calibrate_run(settings, transport, &stats, err));
    if (transport->rank == 0) report(o, &stats);
    return BSW_OK;
}

const struct bsw_command bsw_command_calibrate =
    BSW_COMMAND("calibrate", "measure what searches of some lists find, for search --recall",
                struct calibrate_options, BSW_ALL_RANKS);
