// SPDX-License-Identifier: Apache-2.0
// How the connections of common/net/heartbeat.h come about: rank 0 listens on a port that the
// system chooses, the other ranks learn it over the transport and connect. A connection counts once
// both sides have said the number that rank 0 has drawn; whoever does not know it is a stranger and
// is dropped. All sockets are non-blocking and not inherited by child processes.
#ifndef BITSWEEP_COMMON_HEARTBEAT_SOCKET_H
#define BITSWEEP_COMMON_HEARTBEAT_SOCKET_H

#include <stdint.h>

#include "common/base/process.h"
#include "common/base/status.h"

#define BSW_HEARTBEAT_ADDRESS_BYTES 48
#define BSW_HEARTBEAT_MAX_ADDRESSES 16

// Where rank 0 listens; what it sends to the others. Texts end with a zero.
struct bsw_heartbeat_place {
    uint64_t token;
    uint32_t port; // 0: rank 0 cannot listen
    uint32_t num_addresses;
    char host[BSW_HOST_NAME_BYTES]; // name of its host
    // Numeric ones of its interfaces, IPv4 and IPv6, without those that never leave the host.
    char addresses[BSW_HEARTBEAT_MAX_ADDRESSES][BSW_HEARTBEAT_ADDRESS_BYTES];
};

// First bytes of a rank on its connection; rank 0 answers with bsw_heartbeat_welcome.
struct bsw_heartbeat_hello {
    uint64_t token;
    int32_t rank;
    uint32_t reserved;
    char host[BSW_HOST_NAME_BYTES];
};
static inline uint64_t bsw_heartbeat_welcome(uint64_t token)
{
    return ~token;
}

// Rank 0: *fd listens for num_ranks - 1 connections, and *place says where. Raises the limit of
// open files where so many need it. BSW_ERROR_IO.
enum bsw_status bsw_heartbeat_open_listener(int num_ranks, int *fd,
                                            struct bsw_heartbeat_place *place,
                                            struct bsw_error *err);

// Another rank: tries the addresses one after the other, up to 3 s each until one connects and 15 s
// more for the welcome; on the host of rank 0 its loopback first. *fd is the connection, welcomed.
// BSW_ERROR_IO names all that was tried.
enum bsw_status bsw_heartbeat_connect(const struct bsw_heartbeat_place *place, int rank, int *fd,
                                      struct bsw_error *err);

#endif
