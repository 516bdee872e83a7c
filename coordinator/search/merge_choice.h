// SPDX-License-Identifier: Apache-2.0
// Where cuts are found: on rank 0's CPU, or on devices (batch_device_merge.h), which is what
// `--merge auto` takes where all ranks have linked devices, or one rank has a device, with room for
// it. All ranks have the same.
#ifndef BITSWEEP_COORDINATOR_MERGE_CHOICE_H
#define BITSWEEP_COORDINATOR_MERGE_CHOICE_H

#include "common/net/transport.h"
#include "coordinator/search/batch_device_merge.h"
#include "coordinator/search/search_settings.h"

// The rule, without memory: settings->merge_place and is_ladder. has_devices: of all ranks, linked
// if there are several.
void bsw_merge_place_choose(enum bsw_search_merge asked, int has_devices,
                            const struct bsw_assignment *assignment,
                            struct bsw_search_settings *settings);

// A merge as the settings have it.
static inline struct bsw_device_merge_needs
bsw_merge_needs(const struct bsw_manifest *manifest, const struct bsw_assignment *assignment,
                const struct bsw_search_settings *settings)
{
    return (struct bsw_device_merge_needs){.rule = bsw_span_rule_of(manifest, assignment, settings),
                                           .keep = settings->keep,
                                           .batch = settings->batch,
                                           .place = settings->merge_place};
}

// How much free device memory a merge may count with; 0 where the rank's candidates would take too
// much of it, or codes of an index with lists would have to come in blocks for it.
size_t bsw_merge_room(const struct bsw_manifest *manifest,
                      const struct bsw_search_settings *settings,
                      const struct bsw_assignment *assignment, uint32_t rank, size_t free_bytes);

// Whether a merge as the settings have it, with such room on every rank, has memory for one query
// at least; if not they are those of a merge on the host.
int bsw_merge_fits(const struct bsw_manifest *manifest, const struct bsw_assignment *assignment,
                   enum bsw_search_merge asked, size_t room, struct bsw_search_settings *settings);

// All ranks call it: the settings for device (NULL: none) and link_note, which says how devices are
// linked or why not; *room: the least of all ranks. `exchange` where that cannot be is
// BSW_ERROR_USAGE on all.
enum bsw_status bsw_merge_choose(bsw_transport *transport, bsw_device *device,
                                 const bsw_device_link *link, const char *link_note,
                                 const struct bsw_manifest *manifest,
                                 const struct bsw_assignment *assignment,
                                 enum bsw_search_merge asked, struct bsw_search_settings *settings,
                                 size_t *room, struct bsw_error *err);

#endif
