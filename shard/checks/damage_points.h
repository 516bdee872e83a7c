// SPDX-License-Identifier: Apache-2.0
// Places where a test build may be told to damage what it has, to see that self-checks notice:
// BITSWEEP_DAMAGE=KIND:N:SEED in the environment. codes:N flips one bit of what is resident, or on
// the device, before batch N (1, 2, ...). scores:N changes keys from the Nth scan on, known answers
// counted, one in BITSWEEP_DAMAGE_SHARE (4). Without BITSWEEP_FAULTS nothing of it is compiled;
// tests/cluster/check_self_check.sh uses it.
#ifndef BITSWEEP_SHARD_DAMAGE_POINTS_H
#define BITSWEEP_SHARD_DAMAGE_POINTS_H

#ifdef BITSWEEP_FAULTS
struct bsw_shard_service;
struct bsw_candidate_lists;

void bsw_damage_codes(struct bsw_shard_service *service);
void bsw_damage_scores(struct bsw_candidate_lists *lists);
#define BSW_DAMAGE(call) (call)
#else
#define BSW_DAMAGE(call) ((void)0)
#endif
#endif
