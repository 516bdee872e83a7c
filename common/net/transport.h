// SPDX-License-Identifier: Apache-2.0
// Messages between ranks, with deadlines.
//
// The way of a batch is point-to-point messages only: no MPI collective, so that a dead rank can
// never leave one pending for ever. Each message carries a header {epoch, batch, kind, bytes}; one
// that belongs to an earlier batch is dropped on receipt. Every call ends at its deadline with
// BSW_ERROR_TIMEOUT naming the peer and what was awaited. Waiting polls with short sleeps, so that
// more ranks than cores do not starve each other.
//
// Not thread-safe: one thread of a rank (the one that called bsw_transport_open) uses it.
#ifndef BITSWEEP_COMMON_TRANSPORT_H
#define BITSWEEP_COMMON_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/memory.h"
#include "common/base/status.h"

BSW_C_BEGIN

#define BSW_ANY_RANK (-1)

// How long another rank, or a device, is waited for, and how long a rank may be silent, unless
// somebody says otherwise: of the program and of the library.
#define BSW_TIMEOUT_SECONDS   1800
#define BSW_HEARTBEAT_SECONDS 10

// Kinds from here on belong to the transport itself (agreements). They count in a sequence of their
// own: an early word for agreement 2 is not dropped because batch 7 is awaited, nor the other way
// round.
#define BSW_KIND_RESERVED 0xffffff00u

struct bsw_message {
    uint32_t kind;    // what it is: the protocol's business; below BSW_KIND_RESERVED
    uint32_t epoch;   // raised when the set of ranks changes; 0 for now
    uint64_t batch;   // sequence number of the batch, or of the agreement; never falls
    const char *name; // for error texts, as in "awaiting <name> of batch 7"; not sent; may be NULL
};

typedef struct bsw_transport bsw_transport;
struct bsw_heartbeat;

// What a back end (transport_local.c, transport_mpi.c) supplies. Every function may block until the
// deadline (CLOCK_MONOTONIC nanoseconds), never beyond it. At a deadline it returns
// BSW_ERROR_TIMEOUT; bsw_transport_send and _receive write the text.
struct bsw_transport_ops {
    const char *name; // "local", "mpi"
    // Sends bytes (possibly 0, possibly beyond 2 GiB) with the header; returns when data may be
    // reused.
    enum bsw_status (*send)(bsw_transport *transport, int to, const struct bsw_message *message,
                            const void *data, size_t bytes, int64_t deadline_ns,
                            struct bsw_error *err);
    // Receives the next message from `from` (or BSW_ANY_RANK) of exactly this kind and batch; older
    // batches of any kind are dropped. *source (may be NULL) gets the sender. Messages of one
    // sender keep their order. The storage of *data may be exchanged for another.
    enum bsw_status (*receive)(bsw_transport *transport, int from,
                               const struct bsw_message *expected, struct bsw_buffer *data,
                               int *source, int64_t deadline_ns, struct bsw_error *err);
    // One look at what arrives, without waiting; the alarm of another rank is its error (see
    // bsw_transport_raise). send and receive look for one too.
    enum bsw_status (*poll)(bsw_transport *transport, struct bsw_error *err);
    // Ends the use of the network. With `failed` set ranks may be in any state: must not hang (no
    // MPI_Finalize that could wait for a lost peer).
    void (*close)(bsw_transport *transport, int failed);
};

struct bsw_transport {
    const struct bsw_transport_ops *ops;
    int rank;               // 0 .. num_ranks - 1; 0 is the coordinator
    int num_ranks;          // >= 1
    int local_rank;         // place among the ranks of this host that may use the same CPUs
    int num_local_ranks;    // >= 1; how many those are
    int host_rank;          // place among the ranks of this host, whatever CPUs they may use
    int num_host_ranks;     // >= 1; how many those are
    double timeout_seconds; // longest wait for one message or device; > 0 once it is open
    uint64_t num_agreements;
    // Set once sending or receiving has failed: where the other ranks stand is then unknown. From
    // there on agree returns at once and close ends the whole job with this status's exit code.
    enum bsw_status broken;
    struct bsw_error broken_error;   // what was said of it then
    struct bsw_heartbeat *heartbeat; // NULL: no watch
    int is_joined;                   // nobody ends the job when rank 0 closes
    // Who has answered heard_for: with BSW_ANY_RANK a timeout can name the ranks that are missing.
    unsigned char *heard; // [num_ranks], or NULL
    struct bsw_message heard_for;
    void *state; // the back end's own
};

// Opens MPI if the program was started by mpirun or srun (their environment variables tell), else
// one local rank. MPI errors are returned, never fatal. BSW_ERROR_USAGE when started by mpirun but
// built without MPI.
enum bsw_status bsw_transport_open(bsw_transport *transport, struct bsw_error *err);

// With `failed` 0, or after an agreement on an error, waits until the other ranks have come here
// too, then returns. A broken transport, or ranks that do not come, end the whole job at once with
// MPI_Abort: the call does not return, so print the error before it. After a failed open, too.
void bsw_transport_close(bsw_transport *transport, int failed);

// Joins a program that is not ours: over a duplicate of its communicator (MPI_Comm_c2f), called by
// all its ranks after its MPI_Init with MPI_THREAD_FUNNELED or more and before its MPI_Finalize.
// What a launcher says is not looked at. Closing ends no process and no MPI: ranks wait for each
// other for at most timeout_seconds, not at all with `failed` or a broken transport.
// BSW_ERROR_USAGE without MPI.
enum bsw_status bsw_transport_join(bsw_transport *transport, int comm, struct bsw_error *err);

// Back ends, called by bsw_transport_open and _join. The local one may be used by itself; its
// transport is {0} before, but for timeout_seconds; 0: BSW_TIMEOUT_SECONDS.
void bsw_transport_local_init(bsw_transport *transport);
enum bsw_status bsw_transport_mpi_init(bsw_transport *transport, struct bsw_error *err);
enum bsw_status bsw_transport_mpi_join(bsw_transport *transport, int comm, struct bsw_error *err);

// How long this rank waits for one message: rank 0 timeout_seconds, the others 3 to 13 s longer.
// When one rank falls silent, rank 0 waits for it directly and can name it, the others would only
// blame rank 0; so rank 0 is the first to speak, and ends the job.
double bsw_transport_patience_seconds(const bsw_transport *transport);

// All ranks call it, with the same limit, before their first message. From here on a rank that is
// stopped, lost or cut off for so long is found wherever the others are: rank 0 names it, or, where
// it is rank 0, another one, and all end with exit code 75 (common/net/heartbeat.h, stop_signal.h).
// 0: no watch. One error for all ranks.
enum bsw_status bsw_transport_watch(bsw_transport *transport, double limit_seconds,
                                    struct bsw_error *err);
// Ends the watch; part of closing. Where the transport is broken the others end with its error,
// which was printed here.
void bsw_transport_unwatch(bsw_transport *transport);

// Text of a timeout: "rank 3 did not answer within 20 s (awaiting candidates of batch 7)".
enum bsw_status bsw_transport_send(bsw_transport *transport, int to,
                                   const struct bsw_message *message, const void *data,
                                   size_t bytes, struct bsw_error *err);
enum bsw_status bsw_transport_receive(bsw_transport *transport, int from,
                                      const struct bsw_message *expected, struct bsw_buffer *data,
                                      int *source, struct bsw_error *err);

// From rank 0 to all, down a binomial tree of messages. On rank 0 data holds the bytes to send;
// elsewhere it is filled.
enum bsw_status bsw_transport_broadcast(bsw_transport *transport, const struct bsw_message *message,
                                        struct bsw_buffer *data, struct bsw_error *err);

// One look at what arrives, for loops that wait for something else than a message. Not ok where
// another rank has raised an alarm, with its status and error, or MPI failed.
enum bsw_status bsw_transport_poll(bsw_transport *transport, struct bsw_error *err);

// For a failure that leaves other ranks waiting outside the transport, for a GPU say, where no
// agreement reaches them. Every wait of rank 0 then ends with this error; rank 0 prints it and ends
// the job. The call returns the status, on other ranks than 0 only when rank 0 did not end the job
// within their patience. The transport is broken from there on.
enum bsw_status bsw_transport_raise(bsw_transport *transport, enum bsw_status status,
                                    struct bsw_error *err);

// Every rank calls it with its own status and error (err as filled by the failing call; ignored
// when status is ok). All ranks return the same: ok if all were ok, else the status and error of
// the lowest failing rank, with err->rank set to it (-1 when there is one rank only). A rank whose
// own transport failed returns that error at once, without waiting for anyone: it prints its error
// itself and closes.
enum bsw_status bsw_transport_agree(bsw_transport *transport, enum bsw_status status,
                                    struct bsw_error *err);

BSW_C_END

// Every rank's payload to rank 0, and a record of rank 0 to all.
//
// All ranks call it with the same message. They should have agreed before that each has what it
// sends (bsw_transport_agree): one that does not send leaves rank 0 waiting. Other ranks send and
// return. Rank 0 receives from ranks 1, 2, ... in this order and stops at the first error, which it
// tells the others at the next agreement.

// Rank 0's view of another rank's payload, which is the function's until it returns.
typedef enum bsw_status bsw_collect_take(void *context, int rank, const struct bsw_buffer *payload,
                                         struct bsw_error *err);
enum bsw_status bsw_collect(bsw_transport *transport, const struct bsw_message *message,
                            const void *own, size_t bytes, bsw_collect_take *take, void *context,
                            struct bsw_error *err);

// Records of the same size from all: on rank 0 to all[rank * bytes], its own too. Elsewhere all is
// not used. Another size is BSW_ERROR_PEER, naming the rank.
enum bsw_status bsw_collect_records(bsw_transport *transport, const struct bsw_message *message,
                                    const void *own, size_t bytes, void *all,
                                    struct bsw_error *err);

// On rank 0 to payloads[rank] of ranks 1 and more, whose storage is used again. Elsewhere payloads
// is not used.
enum bsw_status bsw_collect_buffers(bsw_transport *transport, const struct bsw_message *message,
                                    const struct bsw_buffer *own, struct bsw_buffer *payloads,
                                    struct bsw_error *err);

// Rank 0's record of `bytes` into data of all. Another size is BSW_ERROR_PEER.
enum bsw_status bsw_share_record(bsw_transport *transport, const struct bsw_message *message,
                                 void *data, size_t bytes, struct bsw_error *err);

#endif
