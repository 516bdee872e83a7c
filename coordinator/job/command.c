// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/command.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/job/run_status.h"
#include "coordinator/job/setting_checks.h"
#include "kernels/scan_tuning.h"

static enum bsw_status pin_threads(const struct bsw_transport *transport,
                                   struct bsw_common_options *common, struct bsw_error *err)
{
    if (strcmp(common->pin, "cores") != 0) return BSW_OK;
    return bsw_threads_pin(transport->local_rank, transport->num_local_ranks, (int)common->threads,
                           &common->pinning, err);
}

// What kernels run, and what they are tuned by.
static enum bsw_status choose_level(struct bsw_common_options *common, struct bsw_error *err)
{
    BSW_TRY(bsw_cpu_level_parse(common->level_text, &common->level, err));
    return bsw_scan_tuning_read_named(err);
}

// Hosts differ, so one rank may fail alone. The thread of the heartbeats is not pinned.
static enum bsw_status set_up(struct bsw_transport *transport, struct bsw_common_options *common,
                              struct bsw_error *err)
{
    transport->timeout_seconds = common->timeout;
    BSW_TRY(bsw_transport_watch(transport, common->heartbeat, err));
    enum bsw_status status = transport->rank == 0 ? bsw_run_status_started(err) : BSW_OK;
    if (status == BSW_OK) status = bsw_setting_default_threads((int)common->threads, err);
    if (status == BSW_OK) status = choose_level(common, err);
    if (status == BSW_OK) status = pin_threads(transport, common, err);
    return bsw_transport_agree(transport, status, err);
}

// After --help *done is set.
static enum bsw_status parse(struct bsw_transport *transport, const struct bsw_option_table *table,
                             struct bsw_common_options *common, int argc, char **argv, int *done,
                             struct bsw_error *err)
{
    BSW_TRY(bsw_option_table_parse(table, common, argc, argv, done, err));
    if (*done) {
        if (transport->rank == 0) bsw_option_table_print(table, stdout);
        return BSW_OK;
    }
    common->num_words = argc;
    common->words = argv;
    if (common->threads > 0)
        omp_set_num_threads((int)common->threads);
    else
        common->threads = (uint64_t)omp_get_max_threads();
    return set_up(transport, common, err);
}

enum bsw_status bsw_command_run(const struct bsw_command *command, struct bsw_transport *transport,
                                int argc, char **argv, struct bsw_error *err)
{
    void *options;
    int done;
    BSW_TRY(bsw_allocate_zero(&options, 1, command->options_bytes, "options", err));
    enum bsw_status status = parse(transport, &command->table, options, argc, argv, &done, err);
    if (status == BSW_OK && !done) {
        if (command->runs_on == BSW_ALL_RANKS || transport->rank == 0)
            status = command->run(transport, options, err);
        if (command->runs_on == BSW_RANK_0) status = bsw_transport_agree(transport, status, err);
    }
    bsw_free(&options);
    return status;
}

enum bsw_facts_form bsw_common_facts_form(const struct bsw_common_options *common)
{
    return common->json ? BSW_FACTS_JSON : common->quiet ? BSW_FACTS_SILENT : BSW_FACTS_TEXT;
}
