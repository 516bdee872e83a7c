// SPDX-License-Identifier: Apache-2.0
#include "common/net/mpi_library.h"

#ifndef BITSWEEP_MPI_LOADED

enum bsw_status bsw_mpi_library_load(struct bsw_error *err)
{
    (void)err;
    return BSW_OK;
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define FILE_NAME      "libmpi.so.40" // of Open MPI 4 and 5

struct bsw_mpi_library bsw_mpi;

struct symbol {
    const char *name;
    size_t place; // of the pointer in struct bsw_mpi_library
};

#define FUNCTION(name) {"MPI_" #name, offsetof(struct bsw_mpi_library, name)},
#define OBJECT(name)   {"ompi_" #name, offsetof(struct bsw_mpi_library, name)},
static const struct symbol symbols[] = {BSW_MPI_FUNCTIONS(FUNCTION) BSW_MPI_OBJECTS(OBJECT)};

// Global, as the modules of Open MPI, which it loads itself, look for its symbols.
enum bsw_status bsw_mpi_library_load_file(const char *name, struct bsw_mpi_library *out,
                                          struct bsw_error *err)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!handle)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "MPI cannot be loaded: %s; install Open MPI, in Debian openmpi-bin",
                        dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(handle, symbols[i].name);
        if (!address)
            return bsw_fail(err, BSW_ERROR_USAGE, "%s has no %s: is it Open MPI?", name,
                            symbols[i].name);
        // A pointer to a function, which dlsym gives as one to data.
        memcpy((unsigned char *)out + symbols[i].place, &address, sizeof address);
    }
    return BSW_OK;
}

static struct bsw_error load_error;
static enum bsw_status load_status;

static void load(void)
{
    load_status = bsw_mpi_library_load_file(FILE_NAME, &bsw_mpi, &load_error);
}

enum bsw_status bsw_mpi_library_load(struct bsw_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return load_status == BSW_OK ? BSW_OK : bsw_fail(err, load_status, "%s", load_error.message);
}

#endif
