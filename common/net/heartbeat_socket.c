// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // SOCK_NONBLOCK
#endif
#include "common/net/heartbeat_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/process.h"

#define CONNECT_NS  ((int64_t)3000000000)  // of one address
#define WELCOME_NS  ((int64_t)15000000000) // rank 0 may be paused, and its system has accepted
#define SPARE_FILES 256                    // beside the connections

// ---- rank 0 -------------------------------------------------------------------------------------

static void raise_file_limit(int num_ranks)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)num_ranks + SPARE_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
    limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); // what is missing shows when ranks connect
}

static int is_useful(const struct ifaddrs *entry)
{
    unsigned wanted = IFF_UP | IFF_RUNNING;
    if (!entry->ifa_addr || (entry->ifa_flags & wanted) != wanted) return 0;
    if (entry->ifa_flags & IFF_LOOPBACK) return 0;
    if (entry->ifa_addr->sa_family == AF_INET) return 1;
    if (entry->ifa_addr->sa_family != AF_INET6) return 0;
    const struct sockaddr_in6 *address = (const void *)entry->ifa_addr;
    return !IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr); // it would need the interface's name
}

static void list_addresses(struct bsw_heartbeat_place *place)
{
    struct ifaddrs *first;
    if (getifaddrs(&first) != 0) return; // the loopback is left
    for (const struct ifaddrs *entry = first; entry; entry = entry->ifa_next) {
        if (place->num_addresses == BSW_HEARTBEAT_MAX_ADDRESSES || !is_useful(entry)) continue;
        socklen_t bytes = entry->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                                                : sizeof(struct sockaddr_in6);
        if (getnameinfo(entry->ifa_addr, bytes, place->addresses[place->num_addresses],
                        BSW_HEARTBEAT_ADDRESS_BYTES, NULL, 0, NI_NUMERICHOST) == 0)
            place->num_addresses++;
    }
    freeifaddrs(first);
}

// Listens on all addresses, for both families where the system has IPv6.
static int bind_anywhere(uint32_t *port)
{
    int no = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_storage any = {.ss_family = AF_INET6};
    socklen_t bytes = sizeof(struct sockaddr_in6);
    if (fd >= 0) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
        if (bind(fd, (const struct sockaddr *)&any, bytes) != 0) {
            close(fd);
            fd = -1;
        }
    }
    if (fd < 0) {
        any = (struct sockaddr_storage){.ss_family = AF_INET};
        bytes = sizeof(struct sockaddr_in);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0 || bind(fd, (const struct sockaddr *)&any, bytes) != 0) return fd;
    }
    bytes = sizeof any;
    if (getsockname(fd, (struct sockaddr *)&any, &bytes) != 0) return fd;
    // The port stands at the same place in both.
    *port = ntohs(((const struct sockaddr_in *)(const void *)&any)->sin_port);
    return fd;
}

enum bsw_status bsw_heartbeat_open_listener(int num_ranks, int *fd,
                                            struct bsw_heartbeat_place *place,
                                            struct bsw_error *err)
{
    *place = (struct bsw_heartbeat_place){0};
    raise_file_limit(num_ranks);
    *fd = bind_anywhere(&place->port);
    if (*fd < 0 || place->port == 0 || listen(*fd, num_ranks) != 0 ||
        getrandom(&place->token, sizeof place->token, 0) != (ssize_t)sizeof place->token) {
        bsw_fail(err, BSW_ERROR_IO, "heartbeats: cannot listen: %s; --heartbeat 0 goes without",
                 strerror(errno));
        if (*fd >= 0) close(*fd);
        place->port = 0;
        return BSW_ERROR_IO;
    }
    bsw_host_name(place->host, sizeof place->host);
    list_addresses(place);
    return BSW_OK;
}

// ---- other ranks --------------------------------------------------------------------------------

// 0 once the socket is ready, else -1 with errno.
static int await(int fd, short events, int64_t deadline_ns)
{
    struct pollfd entry = {.fd = fd, .events = events};
    for (;;) {
        int64_t left_ns = deadline_ns - bsw_clock_ns();
        int count = left_ns > 0 ? poll(&entry, 1, (int)(left_ns / 1000000) + 1) : 0;
        if (count > 0) return 0;
        if (count == 0) errno = ETIMEDOUT;
        if (count == 0 || errno != EINTR) return -1;
    }
}

static int finish_connecting(int fd, int64_t deadline_ns)
{
    int code = 0, yes = 1;
    socklen_t bytes = sizeof code;
    if (await(fd, POLLOUT, deadline_ns) != 0) return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) != 0) return -1;
    if (code != 0) {
        errno = code;
        return -1;
    }
    return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static int connect_to(const char *address, uint32_t port, int64_t deadline_ns)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char service[16];
    snprintf(service, sizeof service, "%u", port);
    if (getaddrinfo(address, service, &hints, &found) != 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int code = fd < 0 ? -1 : connect(fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (code != 0 && fd >= 0 && errno == EINPROGRESS) code = 0;
    if (code == 0) code = finish_connecting(fd, deadline_ns);
    if (code != 0 && fd >= 0) {
        int cause = errno;
        close(fd);
        errno = cause;
    }
    return code == 0 ? fd : -1;
}

static int exchange_hello(int fd, const struct bsw_heartbeat_place *place, int rank,
                          int64_t deadline_ns)
{
    struct bsw_heartbeat_hello hello = {.token = place->token, .rank = rank};
    uint64_t answer = 0;
    size_t num_read = 0;
    bsw_host_name(hello.host, sizeof hello.host);
    if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != (ssize_t)sizeof hello) return -1;
    while (num_read < sizeof answer) {
        if (await(fd, POLLIN, deadline_ns) != 0) return -1;
        ssize_t count = recv(fd, (char *)&answer + num_read, sizeof answer - num_read, 0);
        if (count == 0) errno = ECONNRESET;
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return -1;
        if (count > 0) num_read += (size_t)count;
    }
    if (answer == bsw_heartbeat_welcome(place->token)) return 0;
    errno = EPROTO;
    return -1;
}

static int try_address(const struct bsw_heartbeat_place *place, const char *address, int rank)
{
    int fd = connect_to(address, place->port, bsw_clock_ns() + CONNECT_NS);
    if (fd < 0 || exchange_hello(fd, place, rank, bsw_clock_ns() + WELCOME_NS) == 0) return fd;
    int cause = errno;
    close(fd);
    errno = cause;
    return -1;
}

enum bsw_status bsw_heartbeat_connect(const struct bsw_heartbeat_place *place, int rank, int *fd,
                                      struct bsw_error *err)
{
    char host[BSW_HOST_NAME_BYTES], tried[256] = "";
    bsw_host_name(host, sizeof host);
    *fd = -1;
    // Hosts may have the same name; then no one listens there, or a stranger who does not answer.
    if (strcmp(host, place->host) == 0) {
        *fd = try_address(place, "127.0.0.1", rank);
        snprintf(tried, sizeof tried, " 127.0.0.1: %s;", strerror(errno));
    }
    for (uint32_t i = 0; i < place->num_addresses && *fd < 0; i++) {
        *fd = try_address(place, place->addresses[i], rank);
        size_t used = strlen(tried);
        snprintf(tried + used, sizeof tried - used, " %s: %s;", place->addresses[i],
                 strerror(errno));
    }
    if (*fd >= 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO,
                    "heartbeats: cannot reach rank 0 on host %s, port %u:%s --heartbeat 0 goes "
                    "without",
                    place->host, place->port, tried[0] ? tried : " it has no address;");
}
