// The times of a plan as a table and as JSON.
#ifndef BITSWEEP_COORDINATOR_PLAN_TIME_REPORT_H
#define BITSWEEP_COORDINATOR_PLAN_TIME_REPORT_H

#include <jansson.h>

#include "coordinator/plan_times.h"

#ifdef __cplusplus
extern "C" {
#endif

// A line for each number of ranks, what the rates are, and what is not counted, on stdout.
void bsw_plan_times_print(const struct bsw_plan_times *times);

// "rates", "lines"; a new reference each.
json_t *bsw_plan_rates_describe(const struct bsw_plan_times *times);
json_t *bsw_plan_lines_describe(const struct bsw_plan_times *times);

#ifdef __cplusplus
}
#endif
#endif
