// SPDX-License-Identifier: Apache-2.0
// What manifests and shard files must know of a codec; what it does is in shard/codecs/codec.h.
#ifndef BITSWEEP_COMMON_MANIFEST_CODEC_H
#define BITSWEEP_COMMON_MANIFEST_CODEC_H

#include <stdint.h>

#include "common/base/memory.h"
#include "common/base/status.h"

struct bsw_manifest;
struct bsw_codec_table; // shard/codecs/codec.h

struct bsw_codec {
    const char *name;

    int has_affine;      // scale, tail and bias beside the codes of a row: keys are floats
    int has_bytes;       // bytes in place of planes, offsets in place of biases: whole keys
    int has_tables;      // bytes of product codes, of one bit a dimension; keys are floats: sums
                         // of numbers of tables (kernels/table_scan)
    uint32_t known_rule; // how its pinned queries are made: known_answers.h
    // The newest of its rules of coding (manifest->code_rule) that this program knows. 0: the one
    // of format versions 1 to 3, which every program reads.
    uint32_t code_rule;
    // From this rule on its codes have no biases, since all would be 0; 0: no such rule.
    uint32_t biasless_rule;

    // Its own part of a manifest, which nobody else reads: manifest->part in memory, a message as
    // bytes of field `part_field` of Manifest in the file. Without one field and functions are 0.
    uint32_t part_field;
    enum bsw_status (*pack_part)(const struct bsw_manifest *manifest, struct bsw_buffer *out,
                                 struct bsw_error *err);
    void (*free_part)(void *part); // accepts NULL

    // The last step of parsing a manifest: takes the part's bytes (of an aligned copy; 0 bytes
    // where the file has none), checks that metric, layout and source are what the codec can have,
    // and sets what of the manifest is its own. BSW_ERROR_BAD_DATA names the file.
    enum bsw_status (*parse_part)(const char *name, const void *data, size_t bytes,
                                  struct bsw_manifest *manifest, struct bsw_error *err);

    const struct bsw_codec_table *table;
};

static inline const char *bsw_codec_name(const struct bsw_codec *codec)
{
    return codec->name;
}

#endif
