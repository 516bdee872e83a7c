// SPDX-License-Identifier: Apache-2.0
// What `info` tells of an index and of a model.
#ifndef BITSWEEP_COORDINATOR_INDEX_FACTS_H
#define BITSWEEP_COORDINATOR_INDEX_FACTS_H

#include "common/files/index_manifest.h"
#include "coordinator/job/facts.h"
#include "kernels/rbe/rbe_model_file.h"

// path: the folder, as the user named it.
void bsw_index_facts(struct bsw_facts *facts, const char *path,
                     const struct bsw_manifest *manifest);
void bsw_model_facts(struct bsw_facts *facts, const char *path, const struct bsw_rbe_model *model);

#endif
