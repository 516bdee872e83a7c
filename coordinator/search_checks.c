#include "coordinator/search_checks.h"

#include <string.h>

#include "common/clock.h"
#include "common/device.h"
#include "common/option_table.h"

enum bsw_status bsw_check_every_parse(const char *text, int *is_checked, double *seconds,
                                      struct bsw_error *err)
{
    *seconds = 0;
    *is_checked = strcmp(text, "never") != 0;
    if (!*is_checked) return BSW_OK;
    BSW_TRY(bsw_number_parse("--check-every", text, seconds, err));
    if (*seconds >= 0 && *seconds <= 1e9) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--check-every %s: 0 to 1e9 seconds, or never", text);
}

struct bsw_check_schedule bsw_search_checks_schedule(const struct bsw_manifest *manifest,
                                                     const struct bsw_transport *transport,
                                                     const char *device, double seconds,
                                                     struct bsw_result_journal *result)
{
    // Another rank may have a device where this one has none.
    int is_cpu = strcmp(device, "cpu") == 0 || manifest->codec == BSW_CODEC_RAW ||
                 bsw_device_kind()[0] == '\0';
    return (struct bsw_check_schedule){
        .seconds = seconds,
        .checked_at = bsw_clock_seconds(),
        .round = is_cpu ? 1 : bsw_self_check_round(manifest, (uint32_t)transport->num_ranks),
        .note = transport->rank == 0 ? bsw_result_journal_note_check : NULL,
        .context = result};
}

enum bsw_status bsw_search_checks_end(struct bsw_shard_service *service,
                                      struct bsw_transport *transport, struct bsw_error *err)
{
    enum bsw_status status = bsw_self_check_end(service, err);
    return bsw_transport_agree(transport, status, err);
}

json_t *bsw_search_checks_describe(const struct bsw_batch_search *search)
{
    const struct bsw_shard_service *service = search->service;
    if (!service->settings.is_checked) return json_null();
    return json_pack("{s:i, s:I, s:I, s:I, s:f}", "known_answers",
                     (int)service->manifest->num_known, "passed",
                     (json_int_t)(search->checks.num_passed + 2), "answers",
                     (json_int_t)service->check.num_answers, "keys",
                     (json_int_t)service->check.num_keys, "check_seconds", service->check.seconds);
}
