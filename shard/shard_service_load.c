// SPDX-License-Identifier: Apache-2.0
// Shards into memory, or what is wrong with them (shard_service.h).
#include <string.h>

#include "shard/shard_service.h"

static enum bsw_status load_files(const struct bsw_shard_service *service, const char *folder,
                                  struct bsw_unit *unit, struct bsw_error *err)
{
    const struct bsw_search_settings *settings = &service->settings;
    const struct bsw_manifest *manifest = service->manifest;
    if (!folder)
        return bsw_resident_shard_encode(manifest, unit->shard, settings->level, settings->is_exact,
                                         &unit->resident, err);
    BSW_TRY(bsw_resident_shard_load(manifest, folder, unit->shard, settings->is_exact,
                                    &unit->resident, err));
    if (!settings->is_partial || !settings->is_exact) return BSW_OK;
    enum bsw_status status = bsw_resident_shard_verify_rows(&unit->resident, err);
    if (status != BSW_OK) bsw_resident_shard_unload(&unit->resident);
    return status;
}

// What is wrong with files, not with memory or a device.
static int may_be_left_out(const struct bsw_shard_service *service, enum bsw_status status)
{
    return service->settings.is_partial && (status == BSW_ERROR_BAD_DATA || status == BSW_ERROR_IO);
}

static void note_failed(struct bsw_shard_service *service, const struct bsw_unit *unit,
                        enum bsw_status status, const struct bsw_error *why)
{
    struct bsw_failed_unit *failed = &service->failed[service->num_failed++];
    *failed = (struct bsw_failed_unit){unit->slice, unit->shard, status, ""};
    memcpy(failed->why, why->message, sizeof failed->why);
}

enum bsw_status bsw_unit_load(struct bsw_shard_service *service, const char *folder, uint32_t u,
                              struct bsw_error *err)
{
    struct bsw_unit *unit = &service->units[u];
    struct bsw_error why = {.message = ""};
    enum bsw_status status = load_files(service, folder, unit, &why);
    if (status != BSW_OK && may_be_left_out(service, status)) {
        note_failed(service, unit, status, &why);
        return BSW_OK;
    }
    if (status != BSW_OK && err) *err = why;
    if (status != BSW_OK) return status;
    if (service->num_failed > 0) {
        bsw_resident_shard_unload(&unit->resident);
        return BSW_OK;
    }
    unit->loaded.resident = &unit->resident;
    return service->backend->load(service->state, u, &unit->loaded, err);
}
