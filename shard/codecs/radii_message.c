// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/radii_message.h"

#include <math.h>
#include <string.h>

#define MOST_NUMBER 1e18 // of radii and what they are made from; their squares are floats

void bsw_radii_pack(const struct bsw_product_radii *radii, double *numbers, Bsw__Radii *out)
{
    size_t parts = radii->parts;
    _Static_assert(BSW_RADII_FIT_NUMBERS == 4 + BSW_RADII_DEGREE + 1, "numbers of a fit");
    for (size_t p = 0; p < parts; p++) {
        const struct bsw_radii_fit *fit = &radii->fits[p];
        double *to = numbers + p * BSW_RADII_FIT_NUMBERS;
        const double first[] = {fit->middle, fit->half, fit->least, fit->most};
        memcpy(to, first, sizeof first);
        memcpy(to + 4, fit->coefficients, sizeof fit->coefficients);
    }
    bsw__radii__init(out);
    out->boxes = (ProtobufCBinaryData){parts * 4 * sizeof(float), (uint8_t *)radii->boxes};
    out->counts =
        (ProtobufCBinaryData){parts * BSW_RADII_MAP * sizeof(uint16_t), (uint8_t *)radii->counts};
    out->fits =
        (ProtobufCBinaryData){parts * BSW_RADII_FIT_NUMBERS * sizeof(double), (uint8_t *)numbers};
}

static int are_boxes(const float *boxes, size_t parts)
{
    for (size_t p = 0; p < parts; p++, boxes += 4) {
        for (int i = 0; i < 4; i++)
            if (!(fabs((double)boxes[i]) <= MOST_NUMBER)) return 0;
        if (boxes[0] > boxes[2] || boxes[1] > boxes[3]) return 0;
    }
    return 1;
}

static int are_fits(const struct bsw_radii_fit *fits, size_t parts)
{
    for (size_t p = 0; p < parts; p++) {
        const struct bsw_radii_fit *fit = &fits[p];
        if (!(fabs(fit->middle) <= MOST_NUMBER) || !(fit->half >= 0 && fit->half <= MOST_NUMBER) ||
            !(fit->least >= 0 && fit->least <= fit->most && fit->most <= MOST_NUMBER))
            return 0;
        for (int c = 0; c <= BSW_RADII_DEGREE; c++)
            if (!(fabs(fit->coefficients[c]) <= MOST_NUMBER)) return 0;
    }
    return 1;
}

static void take(const Bsw__Radii *message, struct bsw_product_radii *radii)
{
    memcpy(radii->boxes, message->boxes.data, message->boxes.len);
    memcpy(radii->counts, message->counts.data, message->counts.len);
    for (size_t p = 0; p < radii->parts; p++) {
        struct bsw_radii_fit *fit = &radii->fits[p];
        double from[BSW_RADII_FIT_NUMBERS];
        memcpy(from, message->fits.data + p * sizeof from, sizeof from);
        *fit = (struct bsw_radii_fit){from[0], from[1], from[2], from[3], {0}};
        memcpy(fit->coefficients, from + 4, sizeof fit->coefficients);
    }
}

enum bsw_status bsw_radii_parse(const char *name, const Bsw__Radii *message, uint32_t parts,
                                struct bsw_product_radii **out, struct bsw_error *err)
{
    size_t num = parts;
    *out = NULL;
    if (message->boxes.len != num * 4 * sizeof(float) ||
        message->counts.len != num * BSW_RADII_MAP * sizeof(uint16_t) ||
        message->fits.len != num * BSW_RADII_FIT_NUMBERS * sizeof(double))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the radii do not fit the subspaces", name);
    BSW_TRY(bsw_product_radii_create(parts, out, err));
    take(message, *out);
    if (are_boxes((*out)->boxes, num) && are_fits((*out)->fits, num)) {
        bsw_product_radii_finish(*out);
        return BSW_OK;
    }
    bsw_product_radii_destroy(out);
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the radii have numbers that are out of range",
                    name);
}
