// SPDX-License-Identifier: Apache-2.0
#include "common/device/device_memory.h"

#define MIB ((size_t)1 << 20)
// Figures of others; those of this program were not logged.
//
// A process's context, its kernels not among it: 555 MiB on 188 multiprocessors, 107 MiB on 34
// (ggml-org/llama.cpp pull request 23604, 2026: an RTX PRO 6000 and a 4060 Ti), so that others, the
// H200's 132 among them, take no more than the first.
#define CONTEXT_BYTES (555 * MIB)
// NCCL, on eight H100 in one host: 1.06 GB with the context and a communicator, and 3.28 GB more
// once each has sent to its seven peers (NVIDIA/nccl issue 1685, 2025). Peers on other hosts share
// one buffer (issue 1450).
#define NCCL_BYTES      (500 * MIB)
#define NCCL_PEER_BYTES (450 * MIB)
#define MOST_NCCL_PEERS 7

// A link's first transfers connect every two ranks (common/net/device_link.h). Without a wish of
// the user's, ranks that share a device are not linked by NCCL.
static size_t nccl_bytes(const struct bsw_device_crowd *crowd)
{
    int num_peers = crowd->num_ranks - 1;
    if (crowd->num_ranks == 1 || crowd->num_sharers > 1) return 0;
    if (num_peers > MOST_NCCL_PEERS) num_peers = MOST_NCCL_PEERS;
    return NCCL_BYTES + (size_t)num_peers * NCCL_PEER_BYTES;
}

size_t bsw_device_memory_forecast(const struct bsw_device_crowd *crowd, size_t total_bytes)
{
    size_t num_sharers = (size_t)crowd->num_sharers;
    size_t taken = num_sharers * CONTEXT_BYTES + nccl_bytes(crowd);
    size_t left = total_bytes > taken ? total_bytes - taken : 0;
    return bsw_device_usable_bytes(left, total_bytes) / num_sharers;
}
