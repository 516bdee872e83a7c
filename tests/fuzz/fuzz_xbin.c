// big-ann's files: .fbin, .u8bin, .i8bin, both headers.
#include "tests/fuzz/vector_target.h"

static const char *const names[] = {"v.fbin", "v.u8bin", "v.i8bin"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_vectors(names, sizeof names / sizeof names[0], data, bytes);
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    for (size_t kind = 0; kind < NUM_IMAGE_KINDS; kind++) {
        const char *ending = strchr(image_kinds[kind].name, '.');
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            if (strcmp(strchr(names[i], '.'), ending) == 0)
                fuzz_put_image(&image_kinds[kind], (unsigned char)i, put, context);
        }
    }
}
