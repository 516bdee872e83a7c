#include "coordinator/search_checks.h"

#include <string.h>

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
