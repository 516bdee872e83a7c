#include "coordinator/job/device_choice.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/job/option_table.h"

#define ANY_ORDINAL  (-1)
#define MOST_ORDINAL 1023
// A silent device's rank is to say so before the others have waited long enough for that rank.
#define DEVICE_PATIENCE 0.75

static enum bsw_status fail_word(const char *text, struct bsw_error *err)
{
    if (strncmp(text, "cuda", 4) == 0 && strcmp(bsw_device_kind(), "cuda") != 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "--device %s: this build has no CUDA", text);
    return bsw_fail(err, BSW_ERROR_USAGE, "--device '%s' is not one of auto|cpu|cuda|cuda:N", text);
}

// `KIND` or `KIND:N`.
static enum bsw_status parse(const char *text, int *ordinal, struct bsw_error *err)
{
    const char *kind = bsw_device_kind();
    size_t length = strlen(kind);
    uint64_t number;
    *ordinal = ANY_ORDINAL;
    if (length == 0 || strncmp(text, kind, length) != 0) return fail_word(text, err);
    if (text[length] == '\0') return BSW_OK;
    if (text[length] != ':') return fail_word(text, err);
    BSW_TRY(bsw_count_parse("--device", text + length + 1, &number, err));
    if (number > MOST_ORDINAL)
        return bsw_fail(err, BSW_ERROR_USAGE, "--device %s: there is no such device", text);
    *ordinal = (int)number;
    return BSW_OK;
}

static enum bsw_status open_device(const struct bsw_device_choice *choice, int ordinal,
                                   int num_sharers, const struct bsw_transport *transport,
                                   bsw_device **out, struct bsw_error *err)
{
    const struct bsw_device_options options = {.ordinal = ordinal,
                                               .num_sharers = num_sharers,
                                               .most_bytes = choice->most_bytes,
                                               .timeout_seconds =
                                                   DEVICE_PATIENCE * transport->timeout_seconds};
    return bsw_device_open(&options, out, err);
}

static enum bsw_status open_forced(const struct bsw_device_choice *choice, int ordinal,
                                   const char *cpu_only, const struct bsw_transport *transport,
                                   bsw_device **out, struct bsw_error *err)
{
    char why[128];
    int count = bsw_device_count(why, sizeof why), ranks = transport->num_host_ranks;
    if (cpu_only) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--device %s: %s runs on the CPU only", choice->text,
                        cpu_only);
    }
    if (count == 0) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--device %s: no device can be used: %s",
                        choice->text, why);
    }
    if (ordinal >= count) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--device %s: this host has %d, numbered from 0",
                        choice->text, count);
    }
    if (ordinal >= 0) return open_device(choice, ordinal, ranks, transport, out, err);
    if (ranks > count) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--device %s: %d ranks on a host with %d: start no more ranks than "
                        "devices, or share one with %s:N",
                        choice->text, ranks, count, bsw_device_kind());
    }
    return open_device(choice, transport->host_rank, 1, transport, out, err);
}

enum bsw_status bsw_device_choice_open(const struct bsw_device_choice *choice, const char *cpu_only,
                                       const struct bsw_transport *transport, bsw_device **out,
                                       struct bsw_error *err)
{
    char why[128];
    int ordinal;
    *out = NULL;
    if (strcmp(choice->text, "cpu") == 0) return BSW_OK;
    if (strcmp(choice->text, "auto") == 0) {
        if (cpu_only || strcmp(bsw_device_kind(), "cuda") != 0 ||
            bsw_device_count(why, sizeof why) < transport->num_host_ranks)
            return BSW_OK;
        return open_device(choice, transport->host_rank, 1, transport, out, err);
    }
    BSW_TRY(parse(choice->text, &ordinal, err));
    return open_forced(choice, ordinal, cpu_only, transport, out, err);
}
