// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/encode_device.h"

#include <stdio.h>
#include <string.h>

#include "coordinator/encode/encode_lists.h"
#include "shard/codecs/codec.h"
#include "shard/exact/device_assigner.h"

// auto: only where there is enough to compute.
static int is_worth_it(const struct bsw_encode_settings *settings, uint64_t num_rows)
{
    const struct bsw_codec_table *codec = settings->codec->table;
    if (settings->lists > 0) return bsw_encode_lists_want_device(settings->lists, num_rows);
    return codec->host_encode || codec->worth_a_device;
}

// Codes that are no more than a copy: over to a device and back would be two more.
static void leave(const struct bsw_codec *codec, struct bsw_encode_device *device)
{
    bsw_encode_device_close(device);
    snprintf(device->chosen.note, sizeof device->chosen.note,
             "codec %s copies rows, which takes no GPU", bsw_codec_name(codec));
}

enum bsw_status bsw_encode_device_open(const struct bsw_encode_settings *settings,
                                       uint64_t num_rows, struct bsw_transport *transport,
                                       struct bsw_encode_device *out, struct bsw_error *err)
{
    const struct bsw_codec_table *codec = settings->codec->table;
    int is_auto = strcmp(settings->device.text, "auto") == 0, has_lists = settings->lists > 0;
    *out = (struct bsw_encode_device){.coder = NULL};
    if (is_auto && !is_worth_it(settings, num_rows)) return BSW_OK;
    BSW_TRY(bsw_device_choice_open(&settings->device, has_lists ? NULL : codec->host_encode,
                                   transport, &out->chosen, err));
    bsw_device *device = out->chosen.device;
    if (!device) return BSW_OK;
    // One that auto took for the lists makes codes, too, where it is quicker.
    if (codec->device_coder && (!is_auto || codec->worth_a_device)) out->coder = device;
    if (has_lists) out->finder = bsw_device_list_finder(device);
    if (!has_lists && !out->coder) leave(settings->codec, out);
    return BSW_OK;
}

void bsw_encode_device_close(struct bsw_encode_device *device)
{
    bsw_device_close(&device->chosen.device);
}
