// SPDX-License-Identifier: Apache-2.0
// NumPy's files.
#include "tests/fuzz/vector_target.h"

static const char *const names[] = {"v.npy"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_vectors(names, sizeof names / sizeof names[0], data, bytes);
}

// What NumPy may write and is not read, and products that overflow.
static void put_headers(fuzz_put_fn put, void *context)
{
    static const char *const dicts[] = {
        "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 5), }\n",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (3, 5), }\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (60,), }\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4, 5), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 5), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 5), }\n",
    };
    for (size_t i = 0; i < sizeof dicts / sizeof dicts[0]; i++) {
        unsigned char seed[256] = {0};
        put(context, seed, 2 + npy_header(1, dicts[i], seed + 2) + 60);
    }
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    fuzz_put_images(names, sizeof names / sizeof names[0], put, context);
    put_headers(put, context);
}
