// SPDX-License-Identifier: Apache-2.0
// A rank's checks of itself during a search. A failure is BSW_ERROR_SELF_CHECK, its text names
// host, device and shard.
//
// Known answers: the pinned queries (query_codes.h) go the way of a batch, same kernels, same
// device, and must give what encode found. They see what is wrong with many rows: a kernel, a
// device, a build. BSW_CHECK_QUERIES of them or a batch, if that is smaller. If any row's key is
// wrong with probability p, each on its own, a check of n different known rows of a shard misses it
// with at most (1 - p)^n; n is up to 128, less where queries share rows.
//
// Codes: digests of what is resident against those of the blocks that were read and found as the
// manifest has them. A change of a block, one bit or all, is missed with some 2^-64. On a device
// see device_readback.h.
//
// Keys: of each batch and shard BSW_CHECK_KEYS survivors, drawn anew each time, as they travel to
// rank 0: key and exact value by the plain C references. If a share p of the survivors is wrong, r
// keys of n batches and shards find it with 1 - (1 - p)^(r n). On a device they come from the codes
// there. A row that is missing because its key was too low is for the known answers.
#ifndef BITSWEEP_SHARD_SELF_CHECK_H
#define BITSWEEP_SHARD_SELF_CHECK_H

#include "shard/codecs/query_codes.h"
#include "shard/host/shard_scan.h"

#define BSW_CHECK_QUERIES 16
#define BSW_CHECK_KEYS    8

struct bsw_assignment;    // assignment.h
struct bsw_shard_service; // shard_service.h
struct bsw_unit;

struct bsw_self_check {
    struct bsw_pinned_queries queries; // none where the index has no known answers
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists found;
    struct bsw_buffer numbers;      // of a raw row and a query
    uint32_t next_unit, next_block; // on the device, for the next check in between
    uint64_t num_draws, num_keys;   // keys computed again
    uint64_t num_answers;           // pinned queries asked
    double seconds;
};

// With the shards loaded. What it takes is freed by bsw_self_check_close, which accepts {0}.
enum bsw_status bsw_self_check_open(struct bsw_shard_service *service, struct bsw_error *err);
void bsw_self_check_close(struct bsw_self_check *check);

// Known answers of all shards of the rank; nothing where the index has none.
enum bsw_status bsw_self_check_answers(struct bsw_shard_service *service, struct bsw_error *err);
// Known answers and codes, those on a device as far as one check goes: between batches.
enum bsw_status bsw_self_check_between(struct bsw_shard_service *service, struct bsw_error *err);
// How many checks in between, one after the other, see all codes of every rank where all are on
// devices. On CPUs each one does.
uint64_t bsw_self_check_round(const struct bsw_manifest *manifest,
                              const struct bsw_assignment *table);
// Known answers and all codes: after the last batch.
enum bsw_status bsw_self_check_end(struct bsw_shard_service *service, struct bsw_error *err);

// Rows of a unit's lists: one behind the shard's last, of a mask that has changed say, is an error
// before anything is read there.
enum bsw_status bsw_self_check_rows(struct bsw_shard_service *service, const struct bsw_unit *unit,
                                    struct bsw_error *err);
// The same of survivors, of lists that a device has refined; as below.
enum bsw_status bsw_self_check_survivor_rows(struct bsw_shard_service *service,
                                             const struct bsw_unit *unit, const size_t *counts,
                                             const struct bsw_survivor *survivors,
                                             struct bsw_error *err);

// How refinement of a unit failed: raw rows that are not as their digests say may be right, where
// the digests have changed in memory. That is then the error; else status and err stay as they are.
enum bsw_status bsw_self_check_blame(const struct bsw_shard_service *service,
                                     const struct bsw_unit *unit, enum bsw_status status,
                                     struct bsw_error *err);

// Some survivors of a unit, as bsw_shard_refine gave them for the current batch; counts [queries of
// the unit].
enum bsw_status bsw_self_check_survivors(struct bsw_shard_service *service,
                                         const struct bsw_unit *unit, const size_t *counts,
                                         const struct bsw_survivor *survivors,
                                         struct bsw_error *err);

// Places where a test build may be told to damage what it has, to see that self-checks notice:
// BITSWEEP_DAMAGE=KIND:N:SEED in the environment. codes:N flips one bit of what is resident, or on
// the device, before batch N (1, 2, ...). scores:N changes keys from the Nth scan on, known answers
// counted, one in BITSWEEP_DAMAGE_SHARE (4); of lists that a device has refined its survivors'.
// Without BITSWEEP_FAULTS nothing of it is compiled;
// tests/cluster/check_self_check.sh uses it.

#ifdef BITSWEEP_FAULTS
struct bsw_shard_service;
struct bsw_candidate_lists;
struct bsw_survivor;

void bsw_damage_codes(struct bsw_shard_service *service);
void bsw_damage_scores(struct bsw_candidate_lists *lists);
void bsw_damage_survivors(struct bsw_survivor *survivors, size_t count);
#define BSW_DAMAGE(call) (call)
#else
#define BSW_DAMAGE(call) ((void)0)
#endif

#endif
