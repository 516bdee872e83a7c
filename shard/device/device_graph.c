// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_graph.h"

#include <string.h>

#include "common/base/memory.h"
#include "common/device/device_phase.h"
#include "shard/device/device_mask.h"

// A shard of a span: no two have codes at the same place.
struct shape_codes {
    const void *planes, *masks;
    uint32_t num_bundles, first_row;
    uint64_t num_rows;
};

struct shape {
    size_t first_staged, num_queries, keep, capacity;
    int is_matrix, has_answers;
    uint32_t types;               // of tables
    int has_types, has_selection; // a type for each query; entries within a radius
    struct bsw_selection_settings selection;
    size_t num_shards;
    struct shape_codes shards[BSW_DEVICE_GRAPH_SPANS];
};

struct kept_graph {
    struct shape shape;
    struct bsw_device_graph *graph; // NULL: not recorded
    struct bsw_device_list_run end; // the group's run, as recording left it
    uint64_t used;                  // when; 0: never
    int is_refused;                 // the host waited in between
};

struct bsw_device_graphs {
    struct kept_graph kept[BSW_DEVICE_GRAPHS];
    uint64_t num_used;
    int is_off;
    struct bsw_error why; // if so
};

// ---- which ----

// 0: it has none.
static int make_shape(const struct bsw_device_group *group, struct shape *out)
{
    const struct bsw_device_span *span = group->span;
    const struct bsw_selection *selection = group->batch->selection;
    if (span->num_shards > BSW_DEVICE_GRAPH_SPANS) return 0;
    *out = (struct shape){.first_staged = group->first_staged,
                          .num_queries = group->num_queries,
                          .keep = group->run.keep,
                          .capacity = group->run.lists.capacity,
                          .is_matrix = group->is_matrix,
                          .has_answers = group->run.answers != NULL,
                          .types = group->tables.types,
                          .has_types = group->batch->tables != NULL,
                          .has_selection = selection != NULL,
                          .num_shards = span->num_shards};
    if (selection) out->selection = selection->settings;
    for (size_t s = 0; s < span->num_shards; s++) {
        const struct bsw_device_codes codes = bsw_device_masked_codes(span->shards[s]);
        out->shards[s] =
            (struct shape_codes){.planes = codes.planes[0],
                                 .masks = codes.masks,
                                 .num_bundles = codes.num_bundles,
                                 .first_row = codes.first_row,
                                 .num_rows = (uint64_t)span->shards[s]->host->shape.num_rows};
    }
    return 1;
}

static int is_same_selection(const struct bsw_selection_settings *a,
                             const struct bsw_selection_settings *b)
{
    return a->mode == b->mode && a->is_miss_infinite == b->is_miss_infinite;
}

static int is_same(const struct shape *a, const struct shape *b)
{
    if (a->first_staged != b->first_staged || a->num_queries != b->num_queries ||
        a->keep != b->keep || a->capacity != b->capacity || a->is_matrix != b->is_matrix ||
        a->has_answers != b->has_answers || a->types != b->types || a->has_types != b->has_types ||
        a->has_selection != b->has_selection || a->num_shards != b->num_shards ||
        !is_same_selection(&a->selection, &b->selection))
        return 0;
    for (size_t s = 0; s < a->num_shards; s++) {
        const struct shape_codes *x = &a->shards[s], *y = &b->shards[s];
        if (x->planes != y->planes || x->masks != y->masks || x->num_bundles != y->num_bundles ||
            x->first_row != y->first_row || x->num_rows != y->num_rows)
            return 0;
    }
    return 1;
}

static void let_go(struct bsw_device_engine *engine, struct kept_graph *kept)
{
    bsw_device_graph_free(engine->device, &kept->graph);
    memset(kept, 0, sizeof *kept);
}

// That of the shape, or a new one in the place of the one used longest ago.
static struct kept_graph *find(struct bsw_device_engine *engine, const struct shape *shape)
{
    struct bsw_device_graphs *graphs = engine->graphs;
    struct kept_graph *oldest = graphs->kept;
    for (size_t i = 0; i < BSW_DEVICE_GRAPHS; i++) {
        struct kept_graph *kept = &graphs->kept[i];
        if (kept->used > 0 && is_same(&kept->shape, shape)) return kept;
        if (kept->used < oldest->used) oldest = kept;
    }
    let_go(engine, oldest);
    oldest->shape = *shape;
    return oldest;
}

// ---- open and close ----

enum bsw_status bsw_device_graphs_open(struct bsw_device_engine *engine, struct bsw_error *err)
{
    return bsw_allocate_zero(&engine->graphs, 1, sizeof *engine->graphs, "graphs", err);
}

void bsw_device_graphs_drop(struct bsw_device_engine *engine)
{
    for (size_t i = 0; engine->graphs && i < BSW_DEVICE_GRAPHS; i++)
        let_go(engine, &engine->graphs->kept[i]);
}

void bsw_device_graphs_close(struct bsw_device_engine *engine)
{
    bsw_device_graphs_drop(engine);
    bsw_free(&engine->graphs);
}

const char *bsw_device_graphs_note(const struct bsw_device_engine *engine)
{
    return engine->graphs && engine->graphs->is_off ? engine->graphs->why.message : "";
}

// ---- a group ----

// The launches into a graph; nothing of them runs.
static enum bsw_status record(struct bsw_device_group *group, bsw_device_queue_fn queue,
                              struct kept_graph *kept, struct bsw_error *err)
{
    bsw_device *device = group->engine->device;
    const struct bsw_device_list_run before = group->run;
    struct bsw_error ended;
    BSW_TRY(bsw_device_record(device, BSW_QUEUE_SCAN, err));
    enum bsw_status status = queue(group, err);
    kept->end = group->run;
    group->run = before;
    // A recording is ended in any case, and the first error told.
    enum bsw_status end = bsw_device_recorded(device, BSW_QUEUE_SCAN, &kept->graph, &ended);
    if (status == BSW_OK && end != BSW_OK) *err = ended;
    return status != BSW_OK ? status : end;
}

static enum bsw_status run_graph(struct bsw_device_group *group, bsw_device_queue_fn queue,
                                 struct kept_graph *kept, struct bsw_error *err)
{
    struct bsw_device_engine *engine = group->engine;
    BSW_DEVICE_PHASE(SCAN);
    if (!kept->graph) BSW_TRY(record(group, queue, kept, err));
    BSW_TRY(bsw_device_graph_run(engine->device, BSW_QUEUE_SCAN, kept->graph, err));
    group->run = kept->end;
    engine->counts.num_graphs++;
    return BSW_OK;
}

enum bsw_status bsw_device_graphs_queue(struct bsw_device_group *group, bsw_device_queue_fn queue,
                                        struct bsw_error *err)
{
    struct bsw_device_engine *engine = group->engine;
    struct bsw_device_graphs *graphs = engine->graphs;
    struct shape shape;
    if (!graphs || graphs->is_off || !make_shape(group, &shape)) return queue(group, err);
    struct kept_graph *kept = find(engine, &shape);
    int is_new = kept->used == 0;
    kept->used = ++graphs->num_used;
    if (!is_new && !kept->is_refused) {
        if (run_graph(group, queue, kept, &graphs->why) == BSW_OK) return BSW_OK;
        graphs->is_off = 1; // what it is that is wrong, the launches themselves will tell
        bsw_device_graphs_drop(engine);
        return queue(group, err);
    }
    BSW_TRY(queue(group, err));
    if (is_new) kept->is_refused = group->run.num_waits > 0;
    return BSW_OK;
}
