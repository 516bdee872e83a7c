// SPDX-License-Identifier: Apache-2.0
#include "shard/shard_service_lists.h"

#include "shard/checks/damage_points.h"

// The lists that the unit's queries look at: those of another unit with the same queries.
static enum bsw_status choose_lists(struct bsw_shard_service *service, const struct bsw_unit *unit,
                                    const struct bsw_list_choice **out, struct bsw_error *err)
{
    size_t dims = bsw_manifest_row_dims(service->manifest);
    *out = service->coarse ? &service->choice : NULL;
    if (!service->coarse || (service->is_chosen && service->chosen_first == unit->first_query &&
                             service->chosen_vectors == service->batch.vectors &&
                             service->choice.num_queries == unit->num_queries))
        return BSW_OK;
    service->is_chosen = 0;
    service->chosen_first = unit->first_query;
    service->chosen_vectors = service->batch.vectors;
    BSW_TRY(bsw_coarse_search_run(service->coarse,
                                  service->batch.vectors + unit->first_query * dims,
                                  unit->num_queries, &service->choice, err));
    service->is_chosen = 1;
    return BSW_OK;
}

enum bsw_status bsw_service_scan_lists(struct bsw_shard_service *service, uint32_t s,
                                       const struct bsw_scan_round *round, struct bsw_error *err)
{
    struct bsw_unit *unit = &service->units[service->spans[s].first];
    const struct bsw_query_range queries = {&service->batch, unit->first_query, unit->num_queries};
    const struct bsw_search_settings *settings = &service->settings;
    int is_kept = bsw_service_is_kept(service);
    struct bsw_candidate_lists *out = is_kept ? &service->span_lists[s] : &unit->lists;
    const struct bsw_list_choice *choice;
    BSW_TRY(choose_lists(service, unit, &choice, err));
    const uint32_t *limits = round->limits ? round->limits + unit->first_query : NULL;
    if (service->backend->scan_lists)
        BSW_TRY(service->backend->scan_lists(
            service->state, s, &unit->loaded, choice, &queries, settings->probe.scan_dims, limits,
            round->keep, &service->workspace, &service->list_scratch.num_pairs, out, err));
    else
        BSW_TRY(bsw_list_scan(&unit->resident, choice, &queries, settings->probe.scan_dims, limits,
                              round->keep, &service->list_scratch, &service->workspace, out, err));
    if (!is_kept) BSW_DAMAGE(bsw_damage_scores(out));
    return BSW_OK;
}

enum bsw_status bsw_service_begin_lists(struct bsw_shard_service *service, struct bsw_error *err)
{
    struct bsw_unit *unit = &service->units[service->spans[0].first];
    const struct bsw_query_range queries = {&service->batch, unit->first_query, unit->num_queries};
    const struct bsw_list_choice *choice;
    BSW_TRY(choose_lists(service, unit, &choice, err));
    return service->backend->begin_lists(
        service->state, &unit->loaded, choice, &queries, service->settings.probe.scan_dims,
        (size_t)service->settings.keep, &service->list_scratch.num_pairs, &service->is_begun, err);
}
