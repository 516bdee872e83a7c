// SPDX-License-Identifier: Apache-2.0
// Radii of product codes in a manifest.
#ifndef BITSWEEP_SHARD_RADII_MESSAGE_H
#define BITSWEEP_SHARD_RADII_MESSAGE_H

#include "bitsweep.pb-c.h"
#include "shard/codecs/product_radii.h"

// The message of radii, which it borrows from. numbers: room, [8 * parts].
#define BSW_RADII_FIT_NUMBERS 8
void bsw_radii_pack(const struct bsw_product_radii *radii, double *numbers, Bsw__Radii *out);

// BSW_ERROR_BAD_DATA for sizes that do not fit and for numbers that are none. name: for messages.
enum bsw_status bsw_radii_parse(const char *name, const Bsw__Radii *message, uint32_t parts,
                                struct bsw_product_radii **out, struct bsw_error *err);

#endif
