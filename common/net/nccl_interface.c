// SPDX-License-Identifier: Apache-2.0
// nccl_library.h against NCCL's own header, where the build found one: nothing but checks.
#include <nccl.h>

#include "common/net/nccl_library.h"

#define SAME(ours, theirs) _Static_assert((ours) == (theirs), "as in nccl.h: " #theirs)
#define SAME_PLACE(ours, theirs) \
    SAME(offsetof(struct bsw_nccl_config, ours), offsetof(ncclConfig_t, theirs))

SAME(BSW_NCCL_SUCCESS, (int)ncclSuccess);
SAME(BSW_NCCL_REMOTE_ERROR, (int)ncclRemoteError);
SAME(BSW_NCCL_IN_PROGRESS, (int)ncclInProgress);
SAME(BSW_NCCL_UINT8, (int)ncclUint8);
SAME(BSW_NCCL_CONFIG_UNDEFINED, NCCL_CONFIG_UNDEF_INT);
SAME(BSW_NCCL_OLDEST_VERSION, NCCL_VERSION(2, 19, 0));
SAME(sizeof(struct bsw_nccl_unique_id), sizeof(ncclUniqueId));
SAME(sizeof(int), sizeof(ncclResult_t));
SAME(sizeof(int), sizeof(ncclDataType_t));
SAME_PLACE(size, size);
SAME_PLACE(magic, magic);
SAME_PLACE(version, version);
SAME_PLACE(blocking, blocking);
SAME_PLACE(cga_cluster_size, cgaClusterSize);
SAME_PLACE(min_ctas, minCTAs);
SAME_PLACE(max_ctas, maxCTAs);
SAME_PLACE(net_name, netName);
SAME_PLACE(split_share, splitShare);
