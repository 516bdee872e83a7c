// SPDX-License-Identifier: Apache-2.0
// TEXMEX' files: .fvecs, .bvecs, .ivecs.
#include "tests/fuzz/vector_target.h"

static const char *const names[] = {"v.fvecs", "v.bvecs", "v.ivecs"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_vectors(names, sizeof names / sizeof names[0], data, bytes);
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    fuzz_put_images(names, sizeof names / sizeof names[0], put, context);
}
