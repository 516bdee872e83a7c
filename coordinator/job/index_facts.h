// SPDX-License-Identifier: Apache-2.0
// What `info` tells of an index and of a model, and encode of its codes.
#ifndef BITSWEEP_COORDINATOR_INDEX_FACTS_H
#define BITSWEEP_COORDINATOR_INDEX_FACTS_H

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

#endif
