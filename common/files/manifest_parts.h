// SPDX-License-Identifier: Apache-2.0
// What format version 5 adds to the messages of a manifest, for index_manifest.c alone.
#ifndef BITSWEEP_COMMON_MANIFEST_PARTS_H
#define BITSWEEP_COMMON_MANIFEST_PARTS_H

#include "bitsweep.pb-c.h"
#include "common/files/index_manifest.h"

struct bsw_part_messages;

// The message borrows *out and the manifest. bsw_parts_free also after an error.
enum bsw_status bsw_parts_fill(const struct bsw_manifest *manifest, Bsw__Manifest *message,
                               struct bsw_part_messages **out, struct bsw_error *err);
void bsw_parts_free(struct bsw_part_messages **messages); // accepts NULL inside

// After the shards.
enum bsw_status bsw_parts_take(const char *name, const Bsw__Manifest *message,
                               struct bsw_manifest *out, struct bsw_error *err);

#endif
