// SPDX-License-Identifier: Apache-2.0
// What a calibration has to say, for the commands that make one.
#ifndef BITSWEEP_COORDINATOR_CALIBRATE_FACTS_H
#define BITSWEEP_COORDINATOR_CALIBRATE_FACTS_H

#include "coordinator/calibrate/calibrate.h"
#include "coordinator/job/facts.h"

// An object of the facts that are open; a line of text where there is a table.
void bsw_calibrate_facts(struct bsw_facts *facts, const struct bsw_calibrate_stats *stats);

#endif
