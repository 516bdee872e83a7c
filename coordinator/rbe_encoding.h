// The model behind an index of codec rbe: taken from a file by encode, found in the folder by
// search and verify.
#ifndef BITSWEEP_COORDINATOR_RBE_ENCODING_H
#define BITSWEEP_COORDINATOR_RBE_ENCODING_H

#include "common/index_manifest.h"
#include "common/transport.h"
#include "kernels/rbe/rbe_coders.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bsw_rbe_encoding {
    struct bsw_buffer bytes;       // of the model file
    struct bsw_rbe_coders *coders; // owned
};

// Rank 0 reads the file, all ranks get its bytes. The model must be of cosine, of `dims`, and have
// codes: else BSW_ERROR_USAGE. Called by all ranks; ends with an agreement.
// bsw_rbe_encoding_close frees, also after a failure.
enum bsw_status bsw_rbe_encoding_open(const char *path, uint32_t dims, enum bsw_cpu_level level,
                                      struct bsw_transport *transport, struct bsw_rbe_encoding *out,
                                      struct bsw_error *err);
void bsw_rbe_encoding_close(struct bsw_rbe_encoding *encoding);

// What the manifest says of the model; coders are borrowed.
enum bsw_status bsw_rbe_describe(const struct bsw_rbe_coders *coders, struct bsw_manifest *manifest,
                                 struct bsw_error *err);

// The model in the folder of an index; BSW_ERROR_BAD_DATA if it is not the manifest's.
enum bsw_status bsw_rbe_index_model_open(const char *folder, const struct bsw_manifest *manifest,
                                         enum bsw_cpu_level level, struct bsw_rbe_coders **out,
                                         struct bsw_error *err);

#ifdef __cplusplus
}
#endif
#endif
