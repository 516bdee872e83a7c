// SPDX-License-Identifier: Apache-2.0
// What tables of product codes take on a GPU, by arithmetic on the shape that the kernel chooses.
#ifndef BITSWEEP_COORDINATOR_PLAN_DEVICE_TABLES_H
#define BITSWEEP_COORDINATOR_PLAN_DEVICE_TABLES_H

#include "coordinator/job/facts.h"
#include "coordinator/plan/plan_index.h"

// A line for each of some kinds of GPUs; nothing where codes have no tables.
void bsw_plan_device_tables_facts(struct bsw_facts *facts, const struct bsw_plan_index *index);

#endif
