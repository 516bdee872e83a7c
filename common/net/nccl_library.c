// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // dladdr
#endif
#include "common/net/nccl_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "libnccl.so.2"

struct symbol {
    const char *name;
    size_t place; // of the pointer in struct bsw_nccl_library
};

#define SYMBOL(name, member)                            \
    {                                                   \
        name, offsetof(struct bsw_nccl_library, member) \
    }

static const struct symbol symbols[] = {
    SYMBOL("ncclGetUniqueId", get_unique_id),
    SYMBOL("ncclCommInitRankConfig", comm_init_rank_config),
    SYMBOL("ncclCommGetAsyncError", comm_get_async_error),
    SYMBOL("ncclCommFinalize", comm_finalize),
    SYMBOL("ncclCommDestroy", comm_destroy),
    SYMBOL("ncclCommAbort", comm_abort),
    SYMBOL("ncclBroadcast", broadcast),
    SYMBOL("ncclSend", send),
    SYMBOL("ncclRecv", receive),
    SYMBOL("ncclGroupStart", group_start),
    SYMBOL("ncclGroupEnd", group_end),
    SYMBOL("ncclGetErrorString", get_error_string),
    SYMBOL("ncclGetLastError", get_last_error),
};

// The member is a pointer to a function, which dlsym gives as one to data.
static int find_symbol(void *handle, const struct symbol *symbol, struct bsw_nccl_library *out)
{
    void *address = dlsym(handle, symbol->name);
    memcpy((unsigned char *)out + symbol->place, &address, sizeof address);
    return address != NULL;
}

static enum bsw_status fail_symbol(const struct bsw_nccl_library *library, const char *name,
                                   struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_USAGE, "%s has no %s: is it NCCL?", library->path, name);
}

static enum bsw_status check_version(struct bsw_nccl_library *library, struct bsw_error *err)
{
    char oldest[24];
    if (library->get_version(&library->version) != BSW_NCCL_SUCCESS || library->version <= 0) {
        library->version = 0;
        return bsw_fail(err, BSW_ERROR_USAGE, "%s does not tell its version", library->path);
    }
    bsw_nccl_version_format(library->version, library->version_text, sizeof library->version_text);
    if (library->version >= BSW_NCCL_OLDEST_VERSION) return BSW_OK;
    bsw_nccl_version_format(BSW_NCCL_OLDEST_VERSION, oldest, sizeof oldest);
    return bsw_fail(err, BSW_ERROR_USAGE, "NCCL %s (%s) is too old: %s or later is needed",
                    library->version_text, library->path, oldest);
}

enum bsw_status bsw_nccl_library_load_file(const char *name, struct bsw_nccl_library *out,
                                           struct bsw_error *err)
{
    static const struct symbol version = SYMBOL("ncclGetVersion", get_version);
    Dl_info facts;
    *out = (struct bsw_nccl_library){0};
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return bsw_fail(err, BSW_ERROR_USAGE, "NCCL cannot be loaded: %s", dlerror());
    snprintf(out->path, sizeof out->path, "%s", name);
    if (!find_symbol(handle, &version, out)) return fail_symbol(out, version.name, err);
    void *address = dlsym(handle, version.name);
    if (dladdr(address, &facts) && facts.dli_fname)
        snprintf(out->path, sizeof out->path, "%s", facts.dli_fname);
    BSW_TRY(check_version(out, err));
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        if (!find_symbol(handle, &symbols[i], out)) return fail_symbol(out, symbols[i].name, err);
    }
    return BSW_OK;
}

enum bsw_status bsw_nccl_library_load(struct bsw_nccl_library *out, struct bsw_error *err)
{
    const char *name = FILE_NAME;
#ifdef BITSWEEP_WITHOUT_NCCL
    *out = (struct bsw_nccl_library){0};
    return bsw_fail(err, BSW_ERROR_USAGE, "this build has no NCCL");
#endif
#ifdef BITSWEEP_NCCL_FROM_ENVIRONMENT
    // Test programs alone, whose streams the real one could not serve.
    name = getenv("BITSWEEP_EMULATOR_NCCL");
    if (!name || !name[0]) name = "no-libnccl.so.2";
#endif
    return bsw_nccl_library_load_file(name, out, err);
}

// With or without NCCL: versions of other ranks are shown too.
// Up to 2.8 the code had one digit less for the minor number.
void bsw_nccl_version_format(int version, char *out, size_t capacity)
{
    int major = version < 10000 ? version / 1000 : version / 10000;
    int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
    snprintf(out, capacity, "%d.%d.%d", major, minor, version % 100);
}
