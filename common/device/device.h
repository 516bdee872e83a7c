// SPDX-License-Identifier: Apache-2.0
// One GPU: its memory, copies, queues of work, and waiting for them with a deadline.
//
// device.cu has it over the CUDA runtime; compiled as C++ for the emulator of tests/emulation it
// gives a device in host memory. A build without CUDA has none of it (common/base/c_linkage.h).
//
// Everything but waiting and allocating only queues work and returns. Waiting polls with short
// sleeps and never blocks in the driver, so that a device that does not answer ends in an error.
// After an error while waiting the device is lost: nothing more is asked of it, not even to free
// memory.
//
// Errors are BSW_ERROR_IO, or BSW_ERROR_OUT_OF_MEMORY with what was asked and what is free; texts
// begin with the device ("cuda:0"). One thread uses a device.
#ifndef BITSWEEP_COMMON_DEVICE_H
#define BITSWEEP_COMMON_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

typedef struct bsw_device bsw_device;

// What devices of this build are called: "cuda", in test programs "emulated"; "" where there are
// none.
BSW_DEVICE_CALL const char *bsw_device_built_kind(void);
static inline const char *bsw_device_kind(void)
{
#ifdef BITSWEEP_WITHOUT_DEVICES
    if (!bsw_device_built_kind) return "";
#endif
    return bsw_device_built_kind();
}
// Whether `--device auto` is to look for them: in test programs only if the environment says so.
BSW_DEVICE_CALL int bsw_device_is_automatic(void);

// What tells a device from all others, whatever number a process has for it: its UUID, or that of
// the MIG slice that it is, as 36 characters.
#define BSW_DEVICE_ID_BYTES  40
#define BSW_DEVICE_WHY_BYTES 128
// What this process sees of a device, without taking memory of it.
struct bsw_device_sight {
    char id[BSW_DEVICE_ID_BYTES];   // "": it cannot be used
    char why[BSW_DEVICE_WHY_BYTES]; // why not
};
// ordinal: 0 .. count - 1.
BSW_DEVICE_CALL void bsw_device_look(int ordinal, struct bsw_device_sight *out);
// How many there are; 0 also where the driver is missing or fails, *why then says what it said.
BSW_DEVICE_CALL int bsw_device_count(char *why, size_t capacity);

struct bsw_device_options {
    int ordinal;            // 0 .. count - 1
    int num_sharers;        // >= 1: ranks that use this device, each an equal part of its memory
    uint64_t most_bytes;    // of its memory that may be used; 0: no such limit
    double timeout_seconds; // > 0: how long work of it is waited for
};
// Also fails where no kernel of this build can be loaded there.
BSW_DEVICE_CALL enum bsw_status bsw_device_open(const struct bsw_device_options *options,
                                                bsw_device **out, struct bsw_error *err);
// What is free by now, in equal parts for the ranks that share the device: all of them call it
// between two agreements, when what drivers and libraries take for themselves has been taken. It is
// how the device was opened, too, but then others may not have come yet.
BSW_DEVICE_CALL enum bsw_status bsw_device_share(bsw_device *device, struct bsw_error *err);
BSW_DEVICE_CALL void bsw_device_end(bsw_device *device);
// Accepts NULL inside.
static inline void bsw_device_close(bsw_device **device)
{
    if (*device) bsw_device_end(*device);
    *device = NULL;
}
// Nothing more is asked of it: for work that may never end, which freeing memory would wait for.
BSW_DEVICE_CALL void bsw_device_give_up(bsw_device *device);

BSW_DEVICE_CALL const char *bsw_device_label(const bsw_device *device); // "cuda:0"
BSW_DEVICE_CALL const char *bsw_device_name(const bsw_device *device);  // "NVIDIA H200"
BSW_DEVICE_CALL const char *bsw_device_id(const bsw_device *device);

// ---- memory ----

// Free for this rank by now: what the driver says without a small reserve, within the limits of the
// options.
BSW_DEVICE_CALL enum bsw_status bsw_device_free_bytes(bsw_device *device, size_t *out,
                                                      struct bsw_error *err);
BSW_DEVICE_CALL size_t bsw_device_used_bytes(const bsw_device *device);
// Allocations of device memory and of host memory for copies, pinning too, since it was opened.
BSW_DEVICE_CALL uint64_t bsw_device_num_allocations(const bsw_device *device);

struct bsw_device_buffer {
    unsigned char *data; // device memory, 256-byte aligned; NULL: none
    size_t bytes;
};
// Contents undefined. `what` is for the error text. {0} may be freed too.
BSW_DEVICE_CALL enum bsw_status bsw_device_allocate(bsw_device *device, size_t bytes,
                                                    const char *what, struct bsw_device_buffer *out,
                                                    struct bsw_error *err);
BSW_DEVICE_CALL void bsw_device_free(bsw_device *device, struct bsw_device_buffer *buffer);

// Host memory that copies reach at full speed, next to the device where the system tells what is;
// *out as bsw_allocate gives it.
BSW_DEVICE_CALL enum bsw_status bsw_device_allocate_host(bsw_device *device, size_t bytes,
                                                         const char *what, void *out,
                                                         struct bsw_error *err);
BSW_DEVICE_CALL void bsw_device_free_host(bsw_device *device, void *address_of_pointer);
// Memory that was there before, made such memory; {0} is none. Only uploads may start from it.
struct bsw_device_pinned {
    unsigned char *memory;
    size_t bytes;
};
// 0, and *out is none, where the system does not allow it, or it takes longer than the device's
// timeout: copies are then slower. Every other one is undone before the memory is freed.
BSW_DEVICE_CALL int bsw_device_pin(bsw_device *device, void *memory, size_t bytes,
                                   struct bsw_device_pinned *out);
BSW_DEVICE_CALL void bsw_device_unpin(bsw_device *device, struct bsw_device_pinned *pin);

// ---- queues ----

// Work of one queue runs in order, work of different queues at the same time. On LINK is what comes
// after a scan, transfers of a link too: its work goes first where a scan is under way.
enum bsw_device_queue { BSW_QUEUE_SCAN, BSW_QUEUE_COPY, BSW_QUEUE_LINK, BSW_NUM_QUEUES };

// For the launchers of kernels; to be asked for again before each launch.
BSW_DEVICE_CALL bsw_stream bsw_device_stream(bsw_device *device, enum bsw_device_queue queue);
// Makes an error of a launcher's code (0: ok).
BSW_DEVICE_CALL enum bsw_status bsw_device_launched(bsw_device *device, int code, const char *what,
                                                    struct bsw_error *err);

// Copies; host memory stays as it is until the queue has been waited for.
BSW_DEVICE_CALL enum bsw_status bsw_device_upload(bsw_device *device, enum bsw_device_queue queue,
                                                  void *to, const void *from, size_t bytes,
                                                  struct bsw_error *err);
BSW_DEVICE_CALL enum bsw_status bsw_device_download(bsw_device *device, enum bsw_device_queue queue,
                                                    void *to, const void *from, size_t bytes,
                                                    struct bsw_error *err);
// From device memory to device memory.
BSW_DEVICE_CALL enum bsw_status bsw_device_copy(bsw_device *device, enum bsw_device_queue queue,
                                                void *to, const void *from, size_t bytes,
                                                struct bsw_error *err);
// num_rows rows of row_bytes, from_stride bytes apart on the device, one behind the other on the
// host.
BSW_DEVICE_CALL enum bsw_status bsw_device_download_rows(bsw_device *device,
                                                         enum bsw_device_queue queue, void *to,
                                                         const void *from, size_t row_bytes,
                                                         size_t num_rows, size_t from_stride,
                                                         struct bsw_error *err);

// ---- graphs ----

// Work of a queue that was recorded in place of being run, as one launch.
struct bsw_device_graph;

// From record to recorded what is queued on `queue` is kept for a graph; nothing else is asked of
// the device until then, no wait or memory either, or there will be no graph. The thread that began
// ends it, also after an error in between. Arguments of launches are kept as they are, contents of
// memory, the host's too, are those when the graph runs.
BSW_DEVICE_CALL enum bsw_status bsw_device_record(bsw_device *device, enum bsw_device_queue queue,
                                                  struct bsw_error *err);
// *out is NULL after an error.
BSW_DEVICE_CALL enum bsw_status bsw_device_recorded(bsw_device *device, enum bsw_device_queue queue,
                                                    struct bsw_device_graph **out,
                                                    struct bsw_error *err);
// Queues it once. After an error nothing of it was queued.
BSW_DEVICE_CALL enum bsw_status bsw_device_graph_run(bsw_device *device,
                                                     enum bsw_device_queue queue,
                                                     struct bsw_device_graph *graph,
                                                     struct bsw_error *err);
// What was queued of it goes on. NULL inside may be freed too.
BSW_DEVICE_CALL void bsw_device_graph_free(bsw_device *device, struct bsw_device_graph **graph);

// ---- order and waiting ----

// What is queued on `queue` from now on starts after all that is queued on `other` by now.
BSW_DEVICE_CALL enum bsw_status bsw_device_follow(bsw_device *device, enum bsw_device_queue queue,
                                                  enum bsw_device_queue other,
                                                  struct bsw_error *err);
// One look, for loops that wait for more than the queue: *is_empty is 1 once all that was queued is
// done.
BSW_DEVICE_CALL enum bsw_status bsw_device_poll(bsw_device *device, enum bsw_device_queue queue,
                                                const char *what, int *is_empty,
                                                struct bsw_error *err);
// Until the queue is empty; `what` is for the error text.
BSW_DEVICE_CALL enum bsw_status bsw_device_wait(bsw_device *device, enum bsw_device_queue queue,
                                                const char *what, struct bsw_error *err);

BSW_C_END
#endif
