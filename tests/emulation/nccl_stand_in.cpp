// SPDX-License-Identifier: Apache-2.0
// A stand-in for NCCL between the processes of one host, on emulated devices: a library with the
// functions of common/net/nccl_library.h, loaded as NCCL is. bitsweep_emulated finds it through
// BITSWEEP_EMULATOR_NCCL=FILE.
//
// It behaves as NCCL with blocking 0 does, at its worst: calls return "in progress", and a transfer
// takes its place in the stream only once somebody has asked for the outcome twice; it moves on
// when the stream is asked. Ranks meet at a socket of rank 0, whose name is the unique id; once all
// are there, each two of them are connected. A second operation before the first was taken, sizes
// that differ, ranks that share a device without permission, and the end of a process are errors.
//
// From the environment, on every rank or on rank BITSWEEP_EMULATOR_NCCL_RANK alone:
//   BITSWEEP_EMULATOR_NCCL_VERSION=N   the version, in ncclGetVersion's form; 22809 unless set
//   BITSWEEP_EMULATOR_NCCL_STALL=N     from the N-th operation on none ends; 0: joining neither
//   BITSWEEP_EMULATOR_NCCL_FAIL=N      from the N-th operation on there is an error; 0: at joining
//   BITSWEEP_EMULATOR_NCCL_KILL=N      the process is killed at the N-th operation
//   BITSWEEP_EMULATOR_NCCL_REFUSE=1    joining fails at once, before other ranks are needed
//   BITSWEEP_EMULATOR_NCCL_HANG=1      abort and destroy do not return
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include "common/net/nccl_library.h"
#include "tests/emulation/emulated_queues.hpp"

namespace
{

enum result { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };

const uint32_t MAGIC = 0x4c43434e;
const uint64_t NEVER = UINT64_MAX;

struct hello {
    uint32_t magic;
    int32_t rank, num_ranks, device;
};

struct head {
    uint64_t magic, bytes;
};

// One socket's half of an operation: head and payload, one way.
struct transfer {
    int is_send, peer;
    void *device;
    size_t bytes;
    std::vector<unsigned char> wire; // head and payload; made when its turn in the stream comes
    size_t moved;
    bool is_done = false;
};

uint64_t number_from(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

int first_listener = -1; // of rank 0, before there is a communicator
int depth;               // of groups

} // namespace

// Named as NCCL's, which common/net/nccl_library.h has a pointer to.
struct ncclComm {
    int num_ranks, rank;
    std::vector<int> sockets; // by peer; -1: none
    std::vector<int> devices; // by peer; -1: unknown
    std::string id;
    int listener = -1; // for ranks above this one
    bool is_judged = false, is_joined = false, is_ended = false;
    int error = SUCCESS;
    std::string text;
    std::vector<transfer> untaken; // by the stream
    cudaStream_t stream = nullptr;
    int num_looks = 0; // since then
    uint64_t num_operations = 0;
    uint64_t stall = NEVER, fail = NEVER, kill = NEVER;
    bool is_stalled = false;
};

namespace
{

std::vector<std::unique_ptr<ncclComm>> &comms = *new std::vector<std::unique_ptr<ncclComm>>;
ncclComm *group_comm; // that the open group is of

bool is_meant(int rank)
{
    return number_from("BITSWEEP_EMULATOR_NCCL_RANK", uint64_t(rank)) == uint64_t(rank);
}

int version_of_library()
{
    return int(number_from("BITSWEEP_EMULATOR_NCCL_VERSION", 22809));
}

int note(ncclComm *comm, int error, const char *text)
{
    if (comm->error == SUCCESS) {
        comm->error = error;
        comm->text = text;
    }
    return error;
}

// Moves what the socket takes or has. false: an error was noted.
bool move(ncclComm *comm, int socket, bool is_send, unsigned char *bytes, size_t size,
          size_t *moved)
{
    while (*moved < size) {
        ssize_t count = is_send ? send(socket, bytes + *moved, size - *moved, MSG_NOSIGNAL)
                                : recv(socket, bytes + *moved, size - *moved, 0);
        if (count > 0) {
            *moved += size_t(count);
        } else if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            return true;
        } else {
            note(comm, BSW_NCCL_REMOTE_ERROR, "a connection was closed");
            return false;
        }
    }
    return true;
}

// ---- joining ----

void make_nonblocking(int socket)
{
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

// Where a rank is to be met; rank 0's is the unique id itself.
sockaddr_un address_of(const std::string &id, int rank)
{
    sockaddr_un address = {};
    address.sun_family = AF_UNIX; // no file
    if (rank == 0)
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%.80s", id.c_str());
    else
        snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%.80s-%d", id.c_str(), rank);
    return address;
}

// -1: it cannot.
int listen_at(const std::string &id, int rank)
{
    sockaddr_un address = address_of(id, rank);
    int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket >= 0 && bind(socket, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 &&
        listen(socket, 64) == 0)
        return socket;
    return -1;
}

// To a rank below, with a greeting. false: it cannot.
bool connect_to(ncclComm *comm, int rank)
{
    const hello greeting = {MAGIC, comm->rank, comm->num_ranks, emulated_current_device()};
    sockaddr_un address = address_of(comm->id, rank);
    int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0 || connect(socket, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
        return false;
    make_nonblocking(socket);
    comm->sockets[size_t(rank)] = socket;
    return send(socket, &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting;
}

// As NCCL: who shares a device needs 2.30 and the variable.
int judge(ncclComm *comm)
{
    const char *allowed = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    if (version_of_library() >= BSW_NCCL_SHARING_VERSION && allowed && strcmp(allowed, "1") == 0)
        return SUCCESS;
    for (int a = 0; a < comm->num_ranks; a++) {
        for (int b = 0; b < a; b++) {
            if (comm->devices[size_t(a)] == comm->devices[size_t(b)]) return INVALID_USAGE;
        }
    }
    return SUCCESS;
}

// Accepts one of the ranks above, whichever has come.
void accept_one(ncclComm *comm)
{
    hello greeting;
    int socket = accept4(comm->listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    // Its greeting was sent before, or is about to come.
    if (recv(socket, &greeting, sizeof greeting, MSG_WAITALL) != sizeof greeting ||
        greeting.magic != MAGIC || greeting.num_ranks != comm->num_ranks ||
        greeting.rank <= comm->rank || greeting.rank >= comm->num_ranks ||
        comm->sockets[size_t(greeting.rank)] >= 0) {
        note(comm, INVALID_USAGE, "ranks do not fit together");
        return;
    }
    make_nonblocking(socket);
    comm->sockets[size_t(greeting.rank)] = socket;
    comm->devices[size_t(greeting.rank)] = greeting.device;
}

bool knows_all(const ncclComm *comm)
{
    for (int peer = 0; peer < comm->num_ranks; peer++) {
        if (peer != comm->rank && comm->sockets[size_t(peer)] < 0) return false;
    }
    return true;
}

// Rank 0, once all have come: to them what it thinks of their devices.
void tell_verdict(ncclComm *comm)
{
    int verdict = judge(comm);
    for (int socket : comm->sockets) {
        size_t moved = 0;
        if (socket >= 0) // a few bytes, which a new connection takes
            move(comm, socket, true, reinterpret_cast<unsigned char *>(&verdict), sizeof verdict,
                 &moved);
    }
    if (verdict != SUCCESS) note(comm, verdict, "two ranks have the same device");
}

// Others: the verdict, then connections to the ranks below.
void hear_verdict(ncclComm *comm)
{
    int verdict = SUCCESS;
    size_t moved = 0;
    if (!move(comm, comm->sockets[0], false, reinterpret_cast<unsigned char *>(&verdict),
              sizeof verdict, &moved) ||
        moved < sizeof verdict)
        return;
    comm->is_judged = true;
    if (verdict != SUCCESS) note(comm, verdict, "two ranks have the same device");
    for (int peer = 1; peer < comm->rank && verdict == SUCCESS; peer++) {
        if (!connect_to(comm, peer)) note(comm, SYSTEM_ERROR, "cannot reach another rank");
    }
}

int begin_joining(ncclComm *comm)
{
    comm->devices[size_t(comm->rank)] = emulated_current_device();
    comm->listener = comm->rank == 0 ? first_listener : listen_at(comm->id, comm->rank);
    if (comm->listener < 0) return SYSTEM_ERROR;
    return comm->rank == 0 || connect_to(comm, 0) ? SUCCESS : SYSTEM_ERROR;
}

// ---- operations ----

// Device memory is read when the turn of a transfer comes, and written when all has come.
bool advance(ncclComm *comm, transfer *t)
{
    if (t->wire.empty()) {
        head h = {MAGIC, t->bytes};
        t->wire.resize(sizeof h + t->bytes);
        memcpy(t->wire.data(), &h, sizeof h);
        if (t->is_send && cudaMemcpy(t->wire.data() + sizeof h, t->device, t->bytes,
                                     cudaMemcpyDeviceToHost) != cudaSuccess)
            note(comm, INVALID_ARGUMENT, "what is sent is not in device memory");
    }
    if (t->moved == t->wire.size()) return true;
    int socket = comm->sockets[size_t(t->peer)];
    move(comm, socket, t->is_send != 0, t->wire.data(), t->wire.size(), &t->moved);
    if (!t->is_send && t->moved >= sizeof(head)) {
        head h;
        memcpy(&h, t->wire.data(), sizeof h);
        if (h.magic != MAGIC || h.bytes != t->bytes)
            note(comm, INVALID_USAGE, "the other side sends another number of bytes");
    }
    if (comm->error != SUCCESS || t->moved < t->wire.size()) return false;
    if (!t->is_send && cudaMemcpy(t->device, t->wire.data() + sizeof(head), t->bytes,
                                  cudaMemcpyHostToDevice) != cudaSuccess)
        note(comm, INVALID_ARGUMENT, "what is received does not go to device memory");
    return true;
}

struct operation {
    ncclComm *comm;
    std::vector<transfer> transfers;
};

// Transfers of the same two ranks and one way follow each other, as their connection has them.
bool is_behind(const std::vector<transfer> &transfers, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        const transfer &a = transfers[j], &b = transfers[i];
        if (a.is_send == b.is_send && a.peer == b.peer && !a.is_done) return true;
    }
    return false;
}

// An operation of a communicator in error never ends, as a kernel of NCCL, unless that is aborted.
int run_operation(void *context)
{
    operation *o = static_cast<operation *>(context);
    bool is_done = true;
    if (o->comm->is_ended) {
        delete o;
        return 1;
    }
    if (o->comm->is_stalled || o->comm->error != SUCCESS) return 0;
    for (size_t i = 0; i < o->transfers.size(); i++) {
        transfer &t = o->transfers[i];
        if (!t.is_done && !is_behind(o->transfers, i)) t.is_done = advance(o->comm, &t);
        is_done = is_done && t.is_done;
    }
    if (!is_done || o->comm->error != SUCCESS) return 0;
    delete o;
    return 1;
}

int begin_operation(ncclComm *comm)
{
    uint64_t number = ++comm->num_operations;
    if (number >= comm->kill) raise(SIGKILL);
    comm->is_stalled = number >= comm->stall;
    if (number >= comm->fail) note(comm, SYSTEM_ERROR, "as told by the environment");
    comm->num_looks = 0;
    return BSW_NCCL_IN_PROGRESS;
}

bool is_usable(const ncclComm *comm)
{
    return comm->is_joined && !comm->is_ended && comm->error == SUCCESS;
}

int add(ncclComm *comm, cudaStream_t stream, const std::vector<transfer> &transfers)
{
    if (!is_usable(comm) || (depth == 0 && !comm->untaken.empty()))
        return note(comm, INVALID_USAGE, "an operation before the one before was taken");
    comm->untaken.insert(comm->untaken.end(), transfers.begin(), transfers.end());
    comm->stream = stream;
    if (depth == 0) return begin_operation(comm);
    group_comm = comm;
    return SUCCESS;
}

void give_to_stream(ncclComm *comm)
{
    if (comm->untaken.empty() || ++comm->num_looks < 2) return;
    operation *o = new operation{comm, comm->untaken};
    emulated_stream_put(comm->stream, run_operation, o);
    comm->untaken.clear();
}

void join(ncclComm *comm)
{
    if (comm->is_joined || comm->stall == 0 || comm->error != SUCCESS) return;
    if (comm->fail == 0)
        note(comm, SYSTEM_ERROR, "as told by the environment");
    else if (comm->rank > 0 && !comm->is_judged)
        hear_verdict(comm);
    else
        accept_one(comm);
    bool is_known = comm->rank == 0 || comm->is_judged;
    comm->is_joined = comm->error == SUCCESS && is_known && knows_all(comm);
    if (comm->is_joined && comm->rank == 0) tell_verdict(comm);
}

int end(ncclComm *comm)
{
    if (number_from("BITSWEEP_EMULATOR_NCCL_HANG", 0) == 1 && is_meant(comm->rank)) {
        for (;;) pause();
    }
    for (int socket : comm->sockets) {
        if (socket >= 0) shutdown(socket, SHUT_RDWR);
    }
    comm->is_ended = true;
    return SUCCESS;
}

} // namespace

// ---- the library's functions ----

extern "C" {

int ncclGetVersion(int *version)
{
    *version = version_of_library();
    return SUCCESS;
}

int ncclGetUniqueId(bsw_nccl_unique_id *id)
{
    static int num_ids; // a process may have one communicator after the other
    memset(id, 0, sizeof *id);
    snprintf(id->bytes, sizeof id->bytes, "bitsweep-stand-in-%d-%d", int(getpid()), num_ids++);
    first_listener = listen_at(id->bytes, 0);
    return first_listener >= 0 ? SUCCESS : SYSTEM_ERROR;
}

int ncclCommInitRankConfig(ncclComm **out, int num_ranks, bsw_nccl_unique_id id, int rank,
                           bsw_nccl_config *config)
{
    if (config->size != sizeof *config || config->magic != BSW_NCCL_CONFIG_MAGIC ||
        config->version < BSW_NCCL_OLDEST_VERSION || config->blocking != 0 || rank < 0 ||
        rank >= num_ranks)
        return INVALID_ARGUMENT;
    comms.emplace_back(new ncclComm);
    ncclComm *comm = *out = comms.back().get();
    comm->num_ranks = num_ranks;
    comm->rank = rank;
    comm->sockets.assign(size_t(num_ranks), -1);
    comm->devices.assign(size_t(num_ranks), -1);
    if (is_meant(rank)) {
        comm->stall = number_from("BITSWEEP_EMULATOR_NCCL_STALL", NEVER);
        comm->fail = number_from("BITSWEEP_EMULATOR_NCCL_FAIL", NEVER);
        comm->kill = number_from("BITSWEEP_EMULATOR_NCCL_KILL", NEVER);
    }
    if (is_meant(rank) && number_from("BITSWEEP_EMULATOR_NCCL_REFUSE", 0) == 1)
        return note(comm, SYSTEM_ERROR, "as told by the environment");
    comm->id = id.bytes;
    int code = begin_joining(comm);
    return code == SUCCESS ? int(BSW_NCCL_IN_PROGRESS) : note(comm, code, "cannot reach rank 0");
}

int ncclCommGetAsyncError(ncclComm *comm, int *state)
{
    join(comm);
    if (comm->error == SUCCESS) give_to_stream(comm);
    bool is_busy = !comm->is_joined || !comm->untaken.empty();
    *state = comm->error != SUCCESS ? comm->error : is_busy ? int(BSW_NCCL_IN_PROGRESS) : SUCCESS;
    return SUCCESS;
}

int ncclCommFinalize(ncclComm *comm)
{
    return is_usable(comm) ? int(BSW_NCCL_IN_PROGRESS) : INVALID_USAGE;
}

int ncclCommDestroy(ncclComm *comm)
{
    return end(comm);
}

int ncclCommAbort(ncclComm *comm)
{
    return end(comm);
}

int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, ncclComm *comm,
                  cudaStream_t stream)
{
    std::vector<transfer> transfers;
    if (type != BSW_NCCL_UINT8 || root != 0 || from != to || depth > 0) return INVALID_ARGUMENT;
    for (int peer = 0; peer < comm->num_ranks; peer++) {
        int is_root = comm->rank == 0;
        if (is_root ? peer == 0 : peer > 0) continue;
        transfers.push_back(transfer{is_root, peer, to, count, {}, 0});
    }
    if (transfers.empty()) return is_usable(comm) ? SUCCESS : INVALID_USAGE; // one rank
    return add(comm, stream, transfers);
}

int ncclSend(const void *from, size_t count, int type, int peer, ncclComm *comm,
             cudaStream_t stream)
{
    if (type != BSW_NCCL_UINT8 || peer == comm->rank || peer < 0 || peer >= comm->num_ranks)
        return INVALID_ARGUMENT;
    return add(comm, stream, {transfer{1, peer, const_cast<void *>(from), count, {}, 0}});
}

int ncclRecv(void *to, size_t count, int type, int peer, ncclComm *comm, cudaStream_t stream)
{
    if (type != BSW_NCCL_UINT8 || peer == comm->rank || peer < 0 || peer >= comm->num_ranks)
        return INVALID_ARGUMENT;
    return add(comm, stream, {transfer{0, peer, to, count, {}, 0}});
}

int ncclGroupStart()
{
    depth++;
    return SUCCESS;
}

int ncclGroupEnd()
{
    if (depth == 0) return INVALID_USAGE;
    ncclComm *comm = group_comm;
    if (--depth > 0 || !comm) return SUCCESS;
    group_comm = nullptr;
    return begin_operation(comm);
}

const char *ncclGetErrorString(int result)
{
    switch (result) {
    case SUCCESS:
        return "no error";
    case SYSTEM_ERROR:
        return "unhandled system error";
    case INVALID_ARGUMENT:
        return "invalid argument";
    case INVALID_USAGE:
        return "invalid usage";
    case BSW_NCCL_REMOTE_ERROR:
        return "remote process exited or there was a network error";
    case BSW_NCCL_IN_PROGRESS:
        return "operation in progress";
    default:
        return "unknown result code";
    }
}

const char *ncclGetLastError(ncclComm *comm)
{
    return comm ? comm->text.c_str() : "";
}

} // extern "C"
