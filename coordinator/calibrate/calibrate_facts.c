// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/calibrate_facts.h"

static void tell_copies(struct bsw_facts *facts, const struct bsw_calibrate_stats *stats)
{
    bsw_fact_integer(facts, "different_queries", stats->num_different, NULL);
    if (stats->num_entries == 0) return;
    if (stats->num_different < stats->num_wanted)
        bsw_facts_say(facts, " (no more rows differ)");
    else if (stats->num_wanted == 0 && stats->num_different < stats->num_queries)
        bsw_facts_say(facts, " (%llu of them different)", (unsigned long long)stats->num_different);
}

void bsw_calibrate_facts(struct bsw_facts *facts, const struct bsw_calibrate_stats *stats)
{
    int has_table = stats->num_entries > 0;
    bsw_facts_open_object(facts, "calibration");
    bsw_fact_integer(facts, "queries", stats->num_queries,
                     has_table ? "calibrated with %d queries" : NULL);
    tell_copies(facts, stats);
    bsw_fact_integer(facts, "k", stats->k, NULL);
    bsw_fact_integer(facts, "searches", stats->num_searches, has_table ? ", %d searches" : NULL);
    bsw_fact_real(facts, "seconds", stats->seconds, has_table ? " in %.2f s" : NULL);
    bsw_fact_real(facts, "groundtruth_seconds", stats->truth_seconds, NULL);
    bsw_fact_integer(facts, "entries", stats->num_entries, NULL);
    bsw_fact_real(facts, "least_recall", stats->least_recall, has_table ? ": recall %.4f" : NULL);
    bsw_fact_real(facts, "best_recall", stats->best_recall, has_table ? " to %.4f\n" : NULL);
    if (!has_table) bsw_facts_say(facts, "too few rows for a table of recalls\n");
    bsw_facts_close(facts);
}
