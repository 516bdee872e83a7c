#include "coordinator/rbe_group.h"

#include <string.h>

#include "common/integer_hash.h"

enum bsw_status bsw_rbe_worker_init(const struct bsw_rbe_training_options *options,
                                    size_t max_pairs, struct bsw_rbe_worker *out,
                                    struct bsw_error *err)
{
    const struct bsw_rbe_shape *shapes = options->shapes;
    size_t dims = shapes[0].dims, code_dims = shapes[0].code_dims;
    *out = (struct bsw_rbe_worker){0};
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++)
        BSW_TRY(bsw_rbe_pass_init(&shapes[i], max_pairs, &out->passes[i], err));
    BSW_TRY(bsw_allocate(&out->shifts, options->negatives, sizeof *out->shifts, "training", err));
    BSW_TRY(bsw_allocate(&out->memory, max_pairs * (dims + code_dims),
                         BSW_RBE_NUM_SIDES * sizeof(float), "training", err));
    float *next = out->memory;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        out->inputs[i] = next;
        out->gradients[i] = next + max_pairs * dims;
        next += max_pairs * (dims + code_dims);
    }
    return BSW_OK;
}

void bsw_rbe_worker_deinit(struct bsw_rbe_worker *worker)
{
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) bsw_rbe_pass_deinit(&worker->passes[i]);
    bsw_free(&worker->memory);
    bsw_free(&worker->shifts);
}

// Floyd's way to draw without replacement: one hash a number, whatever the share drawn.
void bsw_rbe_draw_shifts(uint64_t seed, size_t num_pairs, size_t count, size_t *shifts)
{
    for (size_t i = 0; i < count; i++) {
        size_t highest = num_pairs - count + i;
        size_t drawn = 1 + (size_t)(bsw_hash2(seed, i) % highest);
        for (size_t j = 0; j < i; j++) {
            if (shifts[j] != drawn) continue;
            drawn = highest;
            break;
        }
        shifts[i] = drawn;
    }
}

static enum bsw_status read_inputs(struct bsw_rbe_worker *worker, const struct bsw_rbe_pairs *pairs,
                                   const struct bsw_rbe_group *group, size_t dims,
                                   struct bsw_error *err)
{
    for (size_t i = 0; i < group->num_pairs; i++) {
        BSW_TRY(pairs->read(pairs->context, group->pairs[i], group->draw,
                            worker->inputs[BSW_RBE_QUERY] + i * dims,
                            worker->inputs[BSW_RBE_DOCUMENT] + i * dims, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_rbe_group_forward(struct bsw_rbe_worker *worker,
                                      const struct bsw_rbe_training_options *options,
                                      const struct bsw_rbe_pairs *pairs, const float *parameters,
                                      const struct bsw_rbe_group *group,
                                      const float *outputs[BSW_RBE_NUM_SIDES],
                                      struct bsw_error *err)
{
    const struct bsw_rbe_shape *shapes = options->shapes;
    BSW_TRY(read_inputs(worker, pairs, group, shapes[0].dims, err));
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        bsw_rbe_forward(&worker->passes[i], parameters, options->estimator, group->slope,
                        worker->inputs[i], group->num_pairs);
        outputs[i] = worker->passes[i].codes[shapes[i].steps];
        parameters += bsw_rbe_num_parameters(&shapes[i]);
    }
    return BSW_OK;
}

enum bsw_status bsw_rbe_group_run(struct bsw_rbe_worker *worker,
                                  const struct bsw_rbe_training_options *options,
                                  const struct bsw_rbe_pairs *pairs, const float *parameters,
                                  const struct bsw_rbe_group *group, float share, float *gradient,
                                  double *loss, struct bsw_error *err)
{
    const struct bsw_rbe_shape *shapes = options->shapes;
    size_t count = group->num_pairs, code_dims = shapes[0].code_dims;
    const float *outputs[BSW_RBE_NUM_SIDES];
    size_t offsets[BSW_RBE_NUM_SIDES] = {0, bsw_rbe_num_parameters(&shapes[0])};
    BSW_TRY(bsw_rbe_group_forward(worker, options, pairs, parameters, group, outputs, err));
    bsw_rbe_draw_shifts(group->shift_seed, count, (size_t)options->negatives, worker->shifts);
    *loss = bsw_rbe_loss(outputs[0], outputs[1], count, code_dims, worker->shifts,
                         (size_t)options->negatives, (float)options->gamma, worker->gradients[0],
                         worker->gradients[1]);
    if (!gradient) return BSW_OK;
    memset(gradient, 0, (offsets[1] + bsw_rbe_num_parameters(&shapes[1])) * sizeof *gradient);
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        for (size_t k = 0; k < count * code_dims; k++) worker->gradients[i][k] *= share;
        bsw_rbe_backward(&worker->passes[i], parameters + offsets[i], options->estimator,
                         group->slope, worker->inputs[i], count, worker->gradients[i],
                         gradient + offsets[i], NULL);
    }
    return BSW_OK;
}
