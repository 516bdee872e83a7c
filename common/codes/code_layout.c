// SPDX-License-Identifier: Apache-2.0
#include "common/codes/code_layout.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

void bsw_code_layout_init(struct bsw_code_layout *layout)
{
    *layout = (struct bsw_code_layout){0};
}

enum bsw_status bsw_code_layout_append(struct bsw_code_layout *layout, uint32_t dims, uint32_t bits,
                                       struct bsw_error *err)
{
    if (bits < 1 || bits > BSW_MAX_CODE_BITS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "segment bits %u: must be 1 to %d", bits,
                        BSW_MAX_CODE_BITS);
    }
    if (dims < 1 || dims > BSW_MAX_DIMS || layout->dims + dims > BSW_MAX_DIMS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "segment dims %u: must be 1 to %d in all", dims,
                        BSW_MAX_DIMS);
    }
    if (layout->num_segments == BSW_MAX_SEGMENTS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "more than %d segments", BSW_MAX_SEGMENTS);
    }
    struct bsw_segment *segment = &layout->segments[layout->num_segments++];
    segment->dims = dims;
    segment->bits = bits;
    segment->words = (dims + 31) / 32;
    segment->padded_dim = layout->padded_dims;
    layout->dims += dims;
    layout->padded_dims += segment->words * 32;
    return BSW_OK;
}

enum bsw_status bsw_code_layout_parse(const char *text, uint32_t dims, struct bsw_code_layout *out,
                                      struct bsw_error *err)
{
    struct bsw_code_layout layout;
    bsw_code_layout_init(&layout);
    const char *at = text;
    for (;;) {
        char *end;
        if (*at < '0' || *at > '9') goto malformed;
        unsigned long segment_dims = strtoul(at, &end, 10);
        if (*end != 'x' || end[1] < '0' || end[1] > '9') goto malformed;
        unsigned long bits = strtoul(end + 1, &end, 10);
        if (segment_dims > BSW_MAX_DIMS || bits > BSW_MAX_CODE_BITS) {
            return bsw_fail(err, BSW_ERROR_USAGE, "segments '%s': at most %d dims and %d bits each",
                            text, BSW_MAX_DIMS, BSW_MAX_CODE_BITS);
        }
        BSW_TRY(bsw_code_layout_append(&layout, (uint32_t)segment_dims, (uint32_t)bits, err));
        if (*end == '\0') break;
        if (*end != ',') goto malformed;
        at = end + 1;
    }
    if (layout.dims != dims) {
        return bsw_fail(err, BSW_ERROR_USAGE, "segments '%s' have %u dims, the vectors %u", text,
                        layout.dims, dims);
    }
    *out = layout;
    return BSW_OK;
malformed:
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "segments '%s' are not of the form 32x4,96x2 (dims x bits)", text);
}

int bsw_code_layout_first(const struct bsw_code_layout *layout, uint32_t padded_dims,
                          struct bsw_code_layout *out)
{
    *out = *layout;
    out->dims = out->padded_dims = out->num_segments = 0;
    while (out->num_segments < layout->num_segments && out->padded_dims < padded_dims) {
        const struct bsw_segment *segment = &layout->segments[out->num_segments++];
        out->dims += segment->dims;
        out->padded_dims += 32 * segment->words;
    }
    return out->padded_dims == padded_dims && padded_dims > 0;
}

void bsw_code_layout_format(const struct bsw_code_layout *layout, char *text, size_t capacity)
{
    size_t used = 0;
    if (capacity > 0) text[0] = '\0';
    for (uint32_t s = 0; s < layout->num_segments && used < capacity; s++) {
        int written = snprintf(text + used, capacity - used, "%s%ux%u", s ? "," : "",
                               layout->segments[s].dims, layout->segments[s].bits);
        if (written > 0) used += (size_t)written;
    }
}

enum bsw_status bsw_code_layout_check(const struct bsw_code_layout *layout, uint32_t query_bits,
                                      struct bsw_error *err)
{
    if (query_bits < 1 || query_bits > BSW_MAX_QUERY_BITS) {
        return bsw_fail(err, BSW_ERROR_USAGE, "query bits %u: must be 1 to %d", query_bits,
                        BSW_MAX_QUERY_BITS);
    }
    int64_t limit = bsw_layout_dot_limit(layout, query_bits);
    if (limit > INT32_MAX / 2) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%u dims with %u query bits give distances up to %lld, more than 32 bits "
                        "hold: fewer bits",
                        layout->dims, query_bits, (long long)(2 * limit));
    }
    return BSW_OK;
}
