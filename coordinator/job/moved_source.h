// SPDX-License-Identifier: Apache-2.0
// The file that an index refers to for its raw rows, where it has moved.
#ifndef BITSWEEP_COORDINATOR_MOVED_SOURCE_H
#define BITSWEEP_COORDINATOR_MOVED_SOURCE_H

#include <stdint.h>

#include "common/files/index_manifest.h"
#include "common/net/transport.h"

// What of an index took the file.
struct bsw_moved_source {
    uint32_t num_parts;     // that refer to the file now
    uint32_t num_referring; // that refer to some file
    uint64_t num_rows;      // of those parts that refer to this one
    uint64_t generation;
};

// Has every part whose rows are those of `file` refer to it, in the manifest in memory alone. Size,
// type, dims and rows must be those that the manifest has, and digests of rows those that the codes
// have: of one block of a part or, with is_thorough, of the first, middle and last block of every
// shard. A search looks at the others as it uses them. A part whose codes cannot be read is taken
// at its word unless is_thorough. No part refers to a file: BSW_ERROR_USAGE; the rows of none are
// those of the file: BSW_ERROR_BAD_DATA, saying why the first does not fit.
enum bsw_status bsw_moved_source_take(struct bsw_manifest *manifest, const char *index,
                                      const char *file, int is_thorough,
                                      struct bsw_moved_source *out, struct bsw_error *err);

// The same for ever: thorough, and as a new generation (index_generation.h), of which `keep` stay.
// All ranks; all return alike. *out: of rank 0.
enum bsw_status bsw_moved_source_set(const char *index, const char *file, uint64_t keep,
                                     struct bsw_transport *transport, struct bsw_moved_source *out,
                                     struct bsw_error *err);

#endif
