// SPDX-License-Identifier: Apache-2.0
// Raw rows of an index by their ids.
#ifndef BITSWEEP_COORDINATOR_INDEX_ROWS_H
#define BITSWEEP_COORDINATOR_INDEX_ROWS_H

#include <stdint.h>

#include "common/files/index_manifest.h"

// ids: as searches answer them. Into out [num_ids][row bytes], numbers of the source's type: of the
// index's copy, else of the source, which must be as it was when the index was made. A dropped row
// that a copy lacks is zeros. An id that is none of the index is BSW_ERROR_USAGE, and nothing is
// read. Blocks on files; reads a block of codes, where the digests of rows are, for each block that
// has one of the rows.
enum bsw_status bsw_index_rows_read(const struct bsw_manifest *manifest, const char *index,
                                    const int64_t *ids, uint64_t num_ids, void *out,
                                    struct bsw_error *err);

#endif
