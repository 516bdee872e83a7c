// SPDX-License-Identifier: Apache-2.0
// Which searches of lists are worth their work, by the table of recalls that an index has.
//
// Work is counted in rows: those that a query looks at, and for each candidate that gets an exact
// value as many as take about its time, BSW_REFINED_ROWS. What is done for a row besides products
// takes the time of BSW_ROW_DIMS of its dimensions, so that a row of which only the first are
// looked at is a part of one. These hold for every codec and machine: choices are the same on all.
#ifndef BITSWEEP_COORDINATOR_RECALL_CHOICE_H
#define BITSWEEP_COORDINATOR_RECALL_CHOICE_H

#include "common/files/index_manifest.h"

#define BSW_REFINED_ROWS 64
#define BSW_ROW_DIMS     32

// What a search by this entry of the table costs, with its own oversample or another.
double bsw_recall_cost(const struct bsw_calibration *table,
                       const struct bsw_calibration_entry *entry, double oversample);

// The entry of least cost that reaches `recall`, the first of equals; NULL: there is none.
// oversample 0: each entry with its own; else with the one given, and only entries that need no
// more count.
const struct bsw_calibration_entry *bsw_recall_cheapest(const struct bsw_calibration *table,
                                                        double recall, double oversample);

// Takes out what is not worth its work, and sorts the rest as struct bsw_calibration wants them:
// an entry stays if all others that find as much cost more, and if it reaches BSW_LEAST_RECALL or
// none does. num_entries may become less.
void bsw_recall_front(struct bsw_calibration *table);

#endif
