// SPDX-License-Identifier: Apache-2.0
// delete: a generation of an index without some of its rows. Codes stay as they are, with bits of
// deleted rows beside them (common/files/deleted_rows.h), until the index is compacted.
#ifndef BITSWEEP_COORDINATOR_DELETE_ROWS_H
#define BITSWEEP_COORDINATOR_DELETE_ROWS_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/net/transport.h"

struct bsw_delete_settings {
    const char *index;
    const char *rows; // A:B, or a file of row numbers; or NULL
    const char *ids;  // a file of ids; or NULL
    // Else numbers of rows, or ids, in memory. Borrowed.
    const int64_t *numbers;
    uint64_t num_numbers;
    int numbers_are_ids;
    uint64_t keep; // older generations
};

struct bsw_delete_stats {
    uint64_t generation, num_asked, num_deleted, num_left; // asked, but gone before: the rest
    uint64_t num_rows, num_gone; // of the index: all, and those that were ever deleted
};

// Called by all ranks; ends with an agreement; rank 0 does it and has the stats. A row or an id
// that the index does not have is BSW_ERROR_USAGE, and nothing is deleted; one that was deleted
// before is none. Where all were, the generation stays as it is.
enum bsw_status bsw_delete_run(const struct bsw_delete_settings *settings,
                               struct bsw_transport *transport, struct bsw_delete_stats *stats,
                               struct bsw_error *err);

#endif
