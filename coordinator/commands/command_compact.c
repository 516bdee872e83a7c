// SPDX-License-Identifier: Apache-2.0
// compact: an index anew, of the rows that deletes have left, with the same codes
// (coordinator/encode/append_index.h).
#include "coordinator/encode/append_index.h"
#include "coordinator/job/command.h"
#include "coordinator/job/facts.h"

struct compact_options {
    struct bsw_common_options common;
    struct bsw_append_settings settings;
};

#define OPTION(name, member, ...) BSW_OPTION(struct compact_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("index", settings.index, .value_name = "FOLDER", .is_required = 1, .may_stand_alone = 1,
           .help = "index to compact; the name may stand alone"),
    OPTION("shards", settings.shards, .value_name = "P", .default_text = "0", .max = BSW_MAX_SHARDS,
           .help = "shard files; 0: as many as the index was made with"),
    OPTION("keep", settings.keep, .value_name = "N", .default_text = "1", .max = 63,
           .help = "older generations whose files stay, for searches that still read them; 0 frees "
                   "their space at once"),
    OPTION("resume", settings.resume,
           .help = "go on with an unfinished compact; without one begin"),
    BSW_OPTION_GROUP(struct compact_options, settings.device, bsw_device_option_group),
    BSW_OPTION_GROUP(struct compact_options, common, bsw_common_option_group),
};

static void report(const struct bsw_transport *transport, const struct compact_options *o,
                   const struct bsw_append_stats *s)
{
    struct bsw_facts f;
    bsw_facts_begin(&f, bsw_common_facts_form(&o->common), NULL);
    bsw_fact_integer(&f, "removed_rows", s->num_removed, "%d rows removed; ");
    bsw_fact_integer(&f, "rows", s->num_rows, "%d rows");
    bsw_fact_integer(&f, "shards", s->encode.num_shards, " in %d shards");
    bsw_fact_integer(&f, "generation", s->generation, ", generation %d\n");
    bsw_facts_say(&f, "rows have new numbers, from 0 on%s\n",
                  s->has_ids ? "; ids are as they were" : "");
    bsw_fact_flag(&f, "has_ids", s->has_ids, NULL);
    bsw_append_cost_facts(&f, transport, s);
    bsw_facts_end(&f, BSW_OK);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct compact_options *o = options;
    struct bsw_append_stats stats;
    struct bsw_progress progress = {.is_shown = transport->rank == 0 && !o->common.quiet};
    o->settings.level = o->common.level;
    o->settings.progress = &progress;
    BSW_TRY(bsw_compact_run(&o->settings, transport, &stats, err));
    if (transport->rank == 0) report(transport, o, &stats);
    return BSW_OK;
}

const struct bsw_command bsw_command_compact =
    BSW_COMMAND("compact", "make an index anew without its deleted rows", struct compact_options,
                BSW_ALL_RANKS);
