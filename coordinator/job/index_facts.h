// SPDX-License-Identifier: Apache-2.0
// What `info` tells of an index and of a model, and encode of its codes.
#ifndef BITSWEEP_COORDINATOR_INDEX_FACTS_H
#define BITSWEEP_COORDINATOR_INDEX_FACTS_H

#include <stdint.h>

#include "common/files/index_manifest.h"
#include "coordinator/job/facts.h"
#include "kernels/rbe/rbe_model_file.h"

// path: the folder, as the user named it.
void bsw_index_facts(struct bsw_facts *facts, const char *path,
                     const struct bsw_manifest *manifest);
// What rows of the sample found by their codes; nothing where it was not measured. The line begins
// with `begin`.
void bsw_code_check_facts(struct bsw_facts *facts, const struct bsw_code_check *check,
                          const char *begin);
void bsw_model_facts(struct bsw_facts *facts, const char *path, const struct bsw_rbe_model *model);

// ---- lists --------------------------------------------------------------------------------------

// What `info` and `encode` tell of the lists of an index.

// {0}: there are none.
struct bsw_list_sizes {
    uint32_t count;
    uint32_t smallest, median, largest;   // rows of a list; of an even number the larger median
    uint64_t centroids_bytes, file_bytes; // in the manifest; of all .lists files
};

// rows [lists of the manifest] of each list, which are sorted.
void bsw_list_sizes_of(const struct bsw_manifest *manifest, uint32_t *rows,
                       struct bsw_list_sizes *out);
// Reads and checks the .lists files of all shards, one after the other.
enum bsw_status bsw_list_sizes_read(const struct bsw_manifest *manifest, const char *folder,
                                    struct bsw_list_sizes *out, struct bsw_error *err);

// "20 lists of 7 to 900 rows, median 310; centroids 2 kB, .lists files 90 kB"
void bsw_list_sizes_facts(struct bsw_facts *facts, const struct bsw_list_sizes *sizes);

// "no, recall of the sample 0.830 with, 0.950 without", where there are residuals or that was
// measured. begin: the text before it; recalls 0: not measured.
void bsw_residual_facts(struct bsw_facts *facts, const char *begin, int is_residual,
                        double residual_recall, double plain_recall);

// The lines of an index, also where files are missing or damaged: it says so.
void bsw_list_facts(struct bsw_facts *facts, const struct bsw_manifest *manifest,
                    const char *folder);

#endif
