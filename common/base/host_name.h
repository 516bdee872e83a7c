// SPDX-License-Identifier: Apache-2.0
// The name of this host, for people and for telling hosts apart.
#ifndef BITSWEEP_COMMON_HOST_NAME_H
#define BITSWEEP_COMMON_HOST_NAME_H

#include <stddef.h>

#define BSW_HOST_NAME_BYTES 64 // with the 0 at the end; longer names are cut

// Tells hosts apart, also where containers of one have names of their own: the boot id, or the name
// where there is none. All of out is written, capacity >= 40.
void bsw_host_id(char *out, size_t capacity);

// "unknown" where there is none; always terminated, capacity > 8.
void bsw_host_name(char *out, size_t capacity);

#endif
