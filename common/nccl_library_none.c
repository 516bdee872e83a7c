// A build without NCCL: none can be loaded.
#include "common/nccl_library.h"

enum bsw_status bsw_nccl_library_load(struct bsw_nccl_library *out, struct bsw_error *err)
{
    return bsw_nccl_library_load_file("", out, err);
}

enum bsw_status bsw_nccl_library_load_file(const char *name, struct bsw_nccl_library *out,
                                           struct bsw_error *err)
{
    (void)name;
    *out = (struct bsw_nccl_library){0};
    return bsw_fail(err, BSW_ERROR_USAGE, "this build has no NCCL");
}
