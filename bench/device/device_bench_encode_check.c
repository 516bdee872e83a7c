// SPDX-License-Identifier: Apache-2.0
// The first bundle that the device has coded, against the reference.
#include <string.h>

#include "bench/device/device_bench_encode.h"
#include "common/base/memory.h"
#include "kernels/encode/prepare_rows.h"

// Codes of one bundle, on the host; made by the reference, or fetched.
struct bundle {
    float *rows, *norms, *scales;
    uint32_t *planes, *tails;
};

struct check {
    struct encoding *encoding;
    const struct bsw_encode_table *kernels;
    size_t num_rows, dims, padded_dims, words;
    struct bsw_buffer memory;
    struct bundle own, found;
    float *centered, *projected, *mean, *rotation, *mean_dots, *factors;
    double *squared;
};

static size_t divide(struct check *check, unsigned char *at)
{
    const size_t floats = check->num_rows * sizeof(float);
    const struct bsw_memory_part parts[] = {
        {&check->own.rows, floats * check->dims},
        {&check->own.norms, floats},
        {&check->own.scales, floats},
        {&check->own.tails, floats},
        {&check->own.planes, check->words * sizeof(uint32_t)},
        {&check->found.rows, floats * check->dims},
        {&check->found.norms, floats},
        {&check->found.scales, floats},
        {&check->found.tails, floats},
        {&check->found.planes, check->words * sizeof(uint32_t)},
        {&check->centered, floats * check->dims},
        {&check->projected, floats * check->padded_dims},
        {&check->mean, check->dims * sizeof(float)},
        {&check->rotation, check->dims * check->padded_dims * sizeof(float)},
        {&check->mean_dots, floats},
        {&check->factors, floats},
        {&check->squared, check->num_rows * sizeof(double)}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

static enum bsw_status fetch(const struct check *check, void *to, const void *from, size_t bytes,
                             struct bsw_error *err)
{
    bsw_device *device = check->encoding->bench->device;
    if (!from || bytes == 0) return BSW_OK;
    BSW_TRY(bsw_device_download(device, BSW_QUEUE_SCAN, to, from, bytes, err));
    return bsw_device_wait(device, BSW_QUEUE_SCAN, "codes", err);
}

static enum bsw_status fetch_all(const struct check *check, int is_saq, struct bsw_error *err)
{
    const struct encoding *encoding = check->encoding;
    const struct bsw_device_saq_codes *codes = &encoding->codes;
    size_t floats = check->num_rows * sizeof(float);
    BSW_TRY(fetch(check, check->found.rows, encoding->numbers, floats * check->dims, err));
    BSW_TRY(
        fetch(check, check->found.planes, codes->planes[0], check->words * sizeof(uint32_t), err));
    if (!is_saq) return BSW_OK;
    BSW_TRY(fetch(check, check->found.norms, codes->norms, floats, err));
    BSW_TRY(fetch(check, check->found.scales, codes->scales, floats, err));
    BSW_TRY(fetch(check, check->found.tails, codes->tails, floats, err));
    BSW_TRY(fetch(check, check->mean, encoding->mean, check->dims * sizeof(float), err));
    return fetch(check, check->rotation, encoding->rotation,
                 check->dims * check->padded_dims * sizeof(float), err);
}

static void code_saq(struct check *check)
{
    struct bsw_saq_frame frame = check->encoding->frame;
    uint32_t *planes[] = {check->own.planes};
    frame.mean = check->mean;
    frame.rotation = check->rotation;
    check->kernels->saq_center(&frame, check->own.rows, check->num_rows, check->factors,
                               check->centered, check->mean_dots);
    check->kernels->saq_project(&frame, check->centered, check->num_rows, check->projected);
    check->kernels->saq_quantize(&frame, check->projected, check->num_rows, planes,
                                 check->own.norms, check->own.scales, check->own.tails);
}

static enum bsw_status compare(const struct check *check, int is_saq, struct bsw_error *err)
{
    const struct bundle *own = &check->own, *found = &check->found;
    size_t bytes = is_saq ? check->num_rows * sizeof(float) : 0;
    int is_same = memcmp(own->planes, found->planes, check->words * sizeof(uint32_t)) == 0 &&
                  memcmp(own->norms, found->norms, bytes) == 0 &&
                  memcmp(own->scales, found->scales, bytes) == 0 &&
                  memcmp(own->tails, found->tails, bytes) == 0;
    return is_same ? BSW_OK
                   : bsw_fail(err, BSW_ERROR_SELF_CHECK, "the first bundle has other codes");
}

enum bsw_status device_bench_encode_check(struct encoding *encoding, int is_saq,
                                          struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &encoding->frame.layout;
    struct check check = {.encoding = encoding,
                          .kernels = bsw_encode_table_get(BSW_CPU_REFERENCE),
                          .num_rows = encoding->rows.num_rows < BSW_BUNDLE_ROWS
                                          ? encoding->rows.num_rows
                                          : BSW_BUNDLE_ROWS,
                          .dims = layout->dims,
                          .padded_dims = layout->padded_dims,
                          .words = bsw_segment_bundle_words(&layout->segments[0])};
    BSW_TRY(bsw_buffer_reserve(&check.memory, divide(&check, NULL), err));
    divide(&check, check.memory.data);
    enum bsw_status status = fetch_all(&check, is_saq, err);
    if (status == BSW_OK) {
        bsw_prepare_rows(check.kernels, is_saq ? BSW_METRIC_L2 : BSW_METRIC_COSINE,
                         BSW_VECTOR_FLOAT32, check.found.rows, check.num_rows, check.dims,
                         check.own.rows, check.squared, check.factors, NULL);
        if (is_saq)
            code_saq(&check);
        else
            check.kernels->xfbq(check.own.rows, check.num_rows, check.dims, check.factors,
                                DEVICE_BENCH_XFBQ_SCALE, layout->segments[0].bits,
                                check.own.planes);
        status = compare(&check, is_saq, err);
    }
    bsw_buffer_deinit(&check.memory);
    return status;
}
