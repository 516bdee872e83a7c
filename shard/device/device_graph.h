// SPDX-License-Identifier: Apache-2.0
// The launches of a group of queries as a CUDA graph: where the host decides nothing between them,
// they are the same for every batch of a shape, so a shape's are recorded once and then launched
// together.
//
// A shape is what the launches depend on but for the contents of memory: how many queries there
// are, what is kept, which kernels, where the codes lie. What changes with a batch goes through
// staging memory that stays in place, or is copied before the graph. A shape is launched piece by
// piece when it is first seen, since it may not come again, and so that kernels are loaded and
// asked about outside of a recording.
//
// Where something cannot be recorded or a graph cannot be had, the launches go one by one from then
// on; that is no error, and bsw_device_graphs_note tells why. Results, counts of work and waits are
// the same either way.
#ifndef BITSWEEP_SHARD_DEVICE_GRAPH_H
#define BITSWEEP_SHARD_DEVICE_GRAPH_H

#include "shard/device/device_group.h"

// Shapes that are kept; the one used longest ago makes room. A span of more shards has no shape.
#define BSW_DEVICE_GRAPHS      8
#define BSW_DEVICE_GRAPH_SPANS 64

struct bsw_device_graphs;

// engine->graphs, without any yet; NULL where the engine is to go without.
enum bsw_status bsw_device_graphs_open(struct bsw_device_engine *engine, struct bsw_error *err);
void bsw_device_graphs_close(struct bsw_device_engine *engine);
// Before memory that launches were given is freed.
void bsw_device_graphs_drop(struct bsw_device_engine *engine);
// Why there are none any more; "" where there are, or where none were wanted.
const char *bsw_device_graphs_note(const struct bsw_device_engine *engine);

// Queues work for a group on BSW_QUEUE_SCAN, and what group->run counts of it.
typedef enum bsw_status (*bsw_device_queue_fn)(struct bsw_device_group *group,
                                               struct bsw_error *err);

// What `queue` does, by a graph where there is one; engine->counts.num_graphs counts those. The
// group begins, and its staging memory is filled from group->first_staged on.
enum bsw_status bsw_device_graphs_queue(struct bsw_device_group *group, bsw_device_queue_fn queue,
                                        struct bsw_error *err);

#endif
