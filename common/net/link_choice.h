// SPDX-License-Identifier: Apache-2.0
// Whether the devices of all ranks can be linked, found out by all ranks together: device_link.c's
// first step.
#ifndef BITSWEEP_COMMON_LINK_CHOICE_H
#define BITSWEEP_COMMON_LINK_CHOICE_H

#include "common/net/device_link.h"
#include "common/net/nccl_library.h"

// What a rank tells of itself; all of it travels.
struct bsw_link_facts {
    int32_t has_device;
    int32_t version;   // of NCCL; 0: none
    int32_t is_usable; // it can be used
    int32_t padding;
    char host[64]; // tells hosts apart
    char id[BSW_DEVICE_ID_BYTES];
    char label[40];    // "cuda:0"
    char problem[256]; // why it is not usable
};

// What rank 0 makes of all that; all of it travels.
struct bsw_link_verdict {
    int32_t is_linked;
    int32_t is_shared; // ranks share devices
    int32_t status;    // not ok: the note is the error of all ranks
    int32_t padding;
    struct bsw_nccl_unique_id id;
    char note[BSW_LINK_NOTE_BYTES];
};

// facts [num_ranks] to a verdict without id. Nothing but arithmetic.
void bsw_link_judge(const struct bsw_link_facts *facts, int num_ranks, enum bsw_link_choice choice,
                    struct bsw_link_verdict *out);

// Collective: loads NCCL, exchanges facts, judges. Where the verdict is a link, *library is loaded
// and its environment is set.
enum bsw_status bsw_link_choose(bsw_transport *transport, const bsw_device *device,
                                enum bsw_link_choice choice, struct bsw_nccl_library *library,
                                struct bsw_link_verdict *out, struct bsw_error *err);

#endif
