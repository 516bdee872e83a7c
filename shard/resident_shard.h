// A shard in memory: codes, scales, biases, masks and row digests; every block checked while it is
// loaded.
#ifndef BITSWEEP_SHARD_RESIDENT_SHARD_H
#define BITSWEEP_SHARD_RESIDENT_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "common/shard_file.h"
#include "shard/raw_rows.h"

#ifdef __cplusplus
extern "C" {
#endif

// The largest scale and |bias| of a bundle's rows.
struct bsw_bundle_most {
    float scale, bias;
};

struct bsw_resident_shard {
    uint32_t index;
    struct bsw_shard_shape shape;
    struct bsw_code_arrays arrays; // owned; tails if there is a stage
    size_t num_bundles;
    size_t scan_bytes;   // of one pass: codes, scales, biases, masks
    uint32_t stage_dims; // padded dimensions of the first stage of a progressive scan; 0: none
    double tail_unit;    // of a tail half, in units of a scale half
    struct bsw_bundle_most *most; // [num_bundles] if there is a stage; owned
    struct bsw_raw_rows raw_rows;
    int has_raw_rows;
};

// Bytes of a shard in memory, array by array; its shape is enough to know them.
struct bsw_resident_parts {
    size_t codes, scales, biases, offsets, masks; // what a scan reads
    size_t row_digests, tails, most;
};
// stage_dims: of the codes' first stage, 0: none.
struct bsw_resident_parts bsw_resident_parts_of(const struct bsw_shard_shape *shape,
                                                uint32_t stage_dims);
static inline size_t bsw_resident_scan_bytes(const struct bsw_resident_parts *parts)
{
    return parts->codes + parts->scales + parts->biases + parts->offsets + parts->masks;
}
static inline size_t bsw_resident_bytes(const struct bsw_resident_parts *parts)
{
    return bsw_resident_scan_bytes(parts) + parts->row_digests + parts->tails + parts->most;
}

// Loads with all OpenMP threads, each copying the part it will scan. with_raw_rows: also opens what
// refinement needs.
enum bsw_status bsw_resident_shard_load(const struct bsw_manifest *manifest, const char *folder,
                                        uint32_t shard, int with_raw_rows,
                                        struct bsw_resident_shard *out, struct bsw_error *err);
void bsw_resident_shard_unload(struct bsw_resident_shard *shard);
// Frees what scans read, once a device has it; refinement needs the rest.
void bsw_resident_shard_drop_codes(struct bsw_resident_shard *shard);

// Bundles of part `part` of `parts`: the cut threads share the work by.
void bsw_resident_shard_part(const struct bsw_resident_shard *shard, size_t part, size_t parts,
                             size_t *first, size_t *last);

#ifdef __cplusplus
}
#endif
#endif
