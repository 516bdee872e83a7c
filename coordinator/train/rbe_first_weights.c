#include "coordinator/train/rbe_first_weights.h"

#include <math.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"
#include "common/base/parts.h"
#include "coordinator/train/rbe_principal_start.h"
#include "kernels/rbe/rbe_start.h"
#include "shard/codecs/saq_training.h"

#define SEED_WEIGHTS 1    // what seeds are hashed with; others: rbe_training.c
#define START_ROWS   8192 // that principal axes are found of

static void initialize(const struct bsw_rbe_training_options *o, float *parameters)
{
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        const struct bsw_rbe_shape *shape = &o->shapes[i];
        uint64_t side = (uint64_t)i;
        if (o->start == BSW_RBE_START_QUANTIZER) {
            bsw_rbe_initialize_quantizer(shape, bsw_hash2(o->seed, SEED_WEIGHTS),
                                         o->input_rms * bsw_quantizer_half_steps[shape->steps + 1],
                                         parameters);
        } else {
            bsw_rbe_initialize(shape, bsw_hash2(o->seed, SEED_WEIGHTS + side), parameters);
        }
        parameters += bsw_rbe_num_parameters(shape);
    }
}

static enum bsw_status start_principal(const struct bsw_rbe_training_options *o,
                                       const struct bsw_rbe_pairs *pairs, const uint64_t *trained,
                                       uint64_t num_trained, float *parameters,
                                       struct bsw_error *err)
{
    size_t dims = o->shapes[0].dims;
    size_t count = (size_t)(num_trained < START_ROWS ? num_trained : START_ROWS);
    float *inputs, query[BSW_RBE_MAX_DIMS];
    BSW_TRY(bsw_allocate(&inputs, count * dims, sizeof *inputs, "first weights", err));
    enum bsw_status status = BSW_OK;
    for (size_t i = 0; i < count && status == BSW_OK; i++) {
        uint64_t pair = trained[bsw_part_first(num_trained, i, count)];
        status = pairs->read(pairs->context, pair, 0, query, inputs + i * dims, err);
    }
    if (status == BSW_OK)
        status = bsw_rbe_start_principal(o->shapes, inputs, count, bsw_hash2(o->seed, SEED_WEIGHTS),
                                         parameters, err);
    bsw_free(&inputs);
    return status;
}

enum bsw_status bsw_rbe_first_weights(const struct bsw_rbe_training_options *options,
                                      const struct bsw_rbe_pairs *pairs, const uint64_t *trained,
                                      uint64_t num_trained, float *parameters,
                                      struct bsw_error *err)
{
    if (options->start == BSW_RBE_START_PRINCIPAL)
        return start_principal(options, pairs, trained, num_trained, parameters, err);
    initialize(options, parameters);
    return BSW_OK;
}

// Of `count` weights, stride apart, that belong to one component.
static void set_component_rate(const struct bsw_rbe_layer *layer, size_t first, size_t count,
                               size_t stride, float *rates)
{
    double square = 0, random = 2.0 / ((double)layer->num_out + layer->num_in); // Glorot's
    for (size_t i = 0; i < count; i++) {
        double weight = (double)layer->weights[first + i * stride];
        square += weight * weight / (double)count;
    }
    for (size_t i = 0; i < count; i++) rates[first + i * stride] = (float)sqrt(square / random);
}

static void set_rates_of(const struct bsw_rbe_training_options *o,
                         const struct bsw_rbe_layer *layer, enum bsw_rbe_layer_kind kind,
                         float *rates)
{
    size_t outs = layer->num_out, ins = layer->num_in;
    int is_random = o->start == BSW_RBE_START_RANDOM, is_back = kind == BSW_RBE_RECONSTRUCTION;
    for (size_t i = 0; i < outs * ins; i++) rates[i] = 1;
    for (size_t i = 0; i < outs; i++)
        rates[outs * ins + i] = is_random || !is_back ? 1 : (float)o->input_rms;
    if (is_random) return;
    for (size_t i = 0; i < (is_back ? ins : outs); i++) {
        if (is_back)
            set_component_rate(layer, i, outs, ins, rates);
        else
            set_component_rate(layer, i * ins, ins, 1, rates);
    }
}

void bsw_rbe_first_rates(const struct bsw_rbe_training_options *options, const float *parameters,
                         float *rates)
{
    size_t first = 0;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        const struct bsw_rbe_shape *shape = &options->shapes[i];
        uint32_t pairs = shape->is_shared && shape->steps > 0 ? 1 : shape->steps;
        for (uint32_t l = 0; l < 1 + 2 * pairs; l++) {
            enum bsw_rbe_layer_kind kind = l == 0       ? BSW_RBE_BASE
                                           : l % 2 == 1 ? BSW_RBE_RECONSTRUCTION
                                                        : BSW_RBE_RESIDUAL;
            uint32_t step = l == 0 ? 0 : (l - 1) / 2;
            struct bsw_rbe_layer layer = bsw_rbe_layer_of(shape, parameters + first, kind, step);
            set_rates_of(options, &layer, kind,
                         rates + first + bsw_rbe_layer_offset(shape, kind, step));
        }
        first += bsw_rbe_num_parameters(shape);
    }
}
