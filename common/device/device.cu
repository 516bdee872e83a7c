// SPDX-License-Identifier: Apache-2.0
// A device over the CUDA runtime, or over the emulator's stand-in for it.
#include "common/device/device.h"

#include <cstdio>
#include <cstring>

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/device/device_node.h"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#define DEVICE_KIND "cuda"
// Memory is pinned piece by piece, cut at these addresses, where pages end: a GB takes 0.1 s, and
// drivers from R580 on refuse 550 GB at once (vllm-project/vllm pull request 51081, 2026: H200).
#define PIN_BYTES ((size_t)1 << 30)
#else
#include "tests/emulation/emulated_queues.hpp"
#define DEVICE_KIND                "emulated"
#define PIN_BYTES                  ((size_t)1 << 14) // several in what tests pin
#define BITSWEEP_OLDEST_CAPABILITY 80
#endif

// Multiples that the driver's own allocations are counted in.
static const size_t ALIGNMENT = 256;

struct bsw_device {
    struct bsw_device_options options;
    cudaStream_t streams[BSW_NUM_QUEUES];
    cudaEvent_t event;
    size_t total_bytes, limit_bytes, used_bytes;
    uint64_t num_allocations;
    int is_lost;
    char label[24], name[64];
    struct bsw_device_sight sight;
    struct bsw_device_node node; // {NULL}: not known
};

static enum bsw_status fail_call(struct bsw_device *device, cudaError_t code, const char *what,
                                 struct bsw_error *err)
{
    cudaGetLastError(); // the next call is not to see this error again
    return bsw_fail(err, BSW_ERROR_IO, "%s: %s: %s", device->label, what, cudaGetErrorString(code));
}

#define TRY_CUDA(device, what, err, call)                                     \
    do {                                                                      \
        cudaError_t code_ = (call);                                           \
        if (code_ != cudaSuccess) return fail_call(device, code_, what, err); \
    } while (0)

const char *bsw_device_built_kind(void)
{
    return DEVICE_KIND;
}

int bsw_device_is_automatic(void)
{
#if defined(__CUDACC__)
    return 1;
#else
    return emulation::is_automatic();
#endif
}

// The runtime speaks of an old driver where there is none.
static const char *words_of(cudaError_t code)
{
    int version = 0;
    if (code == cudaErrorInsufficientDriver && cudaDriverGetVersion(&version) == cudaSuccess &&
        version == 0)
        return "no NVIDIA driver is installed";
    return cudaGetErrorString(code);
}

int bsw_device_count(char *why, size_t capacity)
{
    int count = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess) {
        cudaGetLastError();
        snprintf(why, capacity, "%s", words_of(code));
        return 0;
    }
    snprintf(why, capacity, "this host has no device");
    return count;
}

// ---- what a process sees ----

// From driver 11.4 on it is that of the MIG slice where the device is one.
static cudaError_t get_uuid(int ordinal, cudaUUID_t *out)
{
#if defined(__CUDACC__)
    typedef int call_t(cudaUUID_t *, int); // CUresult (CUuuid *, CUdevice); 0 is success
    void *call = NULL;
    cudaDriverEntryPointQueryResult found;
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuDeviceGetUuid", &call, 11040,
                                                        cudaEnableDefault, &found);
    if (code != cudaSuccess) return code;
    if (found != cudaDriverEntryPointSuccess) return cudaErrorInsufficientDriver;
    return reinterpret_cast<call_t *>(call)(out, ordinal) == 0 ? cudaSuccess
                                                               : cudaErrorInvalidDevice;
#else
    return emulation::get_uuid(ordinal, out);
#endif
}

static void format_uuid(const cudaUUID_t *uuid, char *out)
{
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *out++ = '-';
        out += snprintf(out, 3, "%02x", static_cast<unsigned char>(uuid->bytes[i]));
    }
}

void bsw_device_look(int ordinal, struct bsw_device_sight *out)
{
    int major = 0, minor = 0;
    cudaUUID_t uuid;
    memset(out, 0, sizeof *out);
    cudaError_t code = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
    if (code == cudaSuccess)
        code = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal);
    if (code == cudaSuccess) code = get_uuid(ordinal, &uuid);
    if (code != cudaSuccess) {
        cudaGetLastError();
        snprintf(out->why, sizeof out->why, "%s", words_of(code));
    } else if (10 * major + minor < BITSWEEP_OLDEST_CAPABILITY) {
        snprintf(out->why, sizeof out->why,
                 "its compute capability is %d.%d, and kernels of this build need %d.%d", major,
                 minor, BITSWEEP_OLDEST_CAPABILITY / 10, BITSWEEP_OLDEST_CAPABILITY % 10);
    } else {
        format_uuid(&uuid, out->id);
    }
}

// The runtime knows its place on the bus, the system which memory is near.
static void find_node(int ordinal, struct bsw_device_node *out)
{
    char bus_id[32];
    *out = {NULL, NULL};
    if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, ordinal) == cudaSuccess)
        bsw_device_node_open(bus_id, out);
    else
        cudaGetLastError();
}

// ---- open and close ----

// Compiled for what all others are compiled for: whether the device has an image of it, or the
// driver can make one of its PTX, shows when it is asked for.
__global__ static void first_kernel()
{
}

static enum bsw_status load_kernel(struct bsw_device *device, struct bsw_error *err)
{
    cudaFuncAttributes attributes;
    TRY_CUDA(device, "kernels of this build cannot run on it", err,
             cudaFuncGetAttributes(&attributes, first_kernel));
    return BSW_OK;
}

// Not the reserve.
static enum bsw_status get_free(struct bsw_device *device, size_t *out, struct bsw_error *err)
{
    size_t free_bytes;
    TRY_CUDA(device, "memory", err, cudaMemGetInfo(&free_bytes, &device->total_bytes));
    *out = bsw_device_usable_bytes(free_bytes, device->total_bytes);
    return BSW_OK;
}

enum bsw_status bsw_device_share(bsw_device *device, struct bsw_error *err)
{
    const struct bsw_device_options *options = &device->options;
    size_t free_bytes = 0;
    BSW_TRY(get_free(device, &free_bytes, err));
    device->limit_bytes = device->used_bytes + free_bytes / (size_t)options->num_sharers;
    if (options->most_bytes > 0 && options->most_bytes < device->limit_bytes)
        device->limit_bytes = (size_t)options->most_bytes;
    return BSW_OK;
}

static enum bsw_status create_streams(struct bsw_device *device, struct bsw_error *err)
{
    int least = 0, greatest = 0;
    TRY_CUDA(device, "stream", err, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    for (int queue = 0; queue < BSW_NUM_QUEUES; queue++) {
        int priority = queue == BSW_QUEUE_LINK ? greatest : least;
        TRY_CUDA(
            device, "stream", err,
            cudaStreamCreateWithPriority(&device->streams[queue], cudaStreamNonBlocking, priority));
    }
    return BSW_OK;
}

static enum bsw_status set_up(struct bsw_device *device, struct bsw_error *err)
{
    const struct bsw_device_options *options = &device->options;
    cudaDeviceProp properties;
    TRY_CUDA(device, "open", err, cudaSetDevice(options->ordinal));
    TRY_CUDA(device, "properties", err, cudaGetDeviceProperties(&properties, options->ordinal));
    BSW_TRY(load_kernel(device, err));
    snprintf(device->name, sizeof device->name, "%.63s", properties.name);
    bsw_device_look(options->ordinal, &device->sight);
    if (!device->sight.id[0])
        return bsw_fail(err, BSW_ERROR_IO, "%s: %s", device->label, device->sight.why);
    find_node(options->ordinal, &device->node);
    BSW_TRY(bsw_device_share(device, err));
    BSW_TRY(create_streams(device, err));
    TRY_CUDA(device, "event", err,
             cudaEventCreateWithFlags(&device->event, cudaEventDisableTiming));
    return BSW_OK;
}

enum bsw_status bsw_device_open(const struct bsw_device_options *options, bsw_device **out,
                                struct bsw_error *err)
{
    struct bsw_device *device;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&device, 1, sizeof *device, "device", err));
    device->options = *options;
    snprintf(device->label, sizeof device->label, "%s:%d", DEVICE_KIND, options->ordinal);
    enum bsw_status status = set_up(device, err);
    if (status != BSW_OK)
        bsw_device_close(&device);
    else
        *out = device;
    return status;
}

void bsw_device_end(struct bsw_device *device)
{
    if (!device->is_lost) {
        if (device->event) cudaEventDestroy(device->event);
        for (int queue = 0; queue < BSW_NUM_QUEUES; queue++) {
            if (device->streams[queue]) cudaStreamDestroy(device->streams[queue]);
        }
    }
    bsw_device_node_close(&device->node);
    bsw_free(&device);
}

void bsw_device_give_up(bsw_device *device)
{
    device->is_lost = 1;
}

const char *bsw_device_label(const bsw_device *device)
{
    return device->label;
}

const char *bsw_device_name(const bsw_device *device)
{
    return device->name;
}

const char *bsw_device_id(const bsw_device *device)
{
    return device->sight.id;
}

// ---- memory ----

enum bsw_status bsw_device_free_bytes(bsw_device *device, size_t *out, struct bsw_error *err)
{
    size_t left = 0;
    *out = 0;
    BSW_TRY(get_free(device, &left, err));
    size_t allowed =
        device->limit_bytes > device->used_bytes ? device->limit_bytes - device->used_bytes : 0;
    *out = left < allowed ? left : allowed;
    return BSW_OK;
}

size_t bsw_device_used_bytes(const bsw_device *device)
{
    return device->used_bytes;
}

uint64_t bsw_device_num_allocations(const bsw_device *device)
{
    return device->num_allocations;
}

enum bsw_status bsw_device_allocate(bsw_device *device, size_t bytes, const char *what,
                                    struct bsw_device_buffer *out, struct bsw_error *err)
{
    size_t free_bytes;
    void *data = NULL;
    out->data = NULL;
    out->bytes = 0;
    device->num_allocations++;
    BSW_TRY(bsw_device_free_bytes(device, &free_bytes, err));
    if (bytes > free_bytes || cudaMalloc(&data, bytes > 0 ? bytes : ALIGNMENT) != cudaSuccess) {
        cudaGetLastError();
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY,
                        "%s: %s: no device memory for %zu bytes, %zu are free", device->label, what,
                        bytes, free_bytes);
    }
    out->data = static_cast<unsigned char *>(data);
    out->bytes = bytes;
    device->used_bytes += bytes;
    return BSW_OK;
}

void bsw_device_free(bsw_device *device, struct bsw_device_buffer *buffer)
{
    if (buffer->data) {
        if (!device->is_lost) cudaFree(buffer->data);
        device->used_bytes -= buffer->bytes;
    }
    buffer->data = NULL;
    buffer->bytes = 0;
}

enum bsw_status bsw_device_allocate_host(bsw_device *device, size_t bytes, const char *what,
                                         void *out, struct bsw_error *err)
{
    void *data = NULL;
    struct bsw_device_node_before before;
    memcpy(out, &data, sizeof data);
    device->num_allocations++;
    bsw_device_node_enter(&device->node, &before);
    cudaError_t code = cudaMallocHost(&data, bytes > 0 ? bytes : ALIGNMENT);
    bsw_device_node_leave(&device->node, &before);
    if (code != cudaSuccess) {
        cudaGetLastError();
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY,
                        "%s: %s: no host memory for %zu bytes that stay in place", device->label,
                        what, bytes);
    }
    memcpy(out, &data, sizeof data);
    return BSW_OK;
}

void bsw_device_free_host(bsw_device *device, void *address_of_pointer)
{
    void *data;
    memcpy(&data, address_of_pointer, sizeof data);
    if (data && !device->is_lost) cudaFreeHost(data);
    data = NULL;
    memcpy(address_of_pointer, &data, sizeof data);
}

// Bytes of this memory up to the next cut.
static size_t piece_bytes(const void *memory, size_t bytes)
{
    size_t left = PIN_BYTES - (uintptr_t)memory % PIN_BYTES;
    return bytes < left ? bytes : left;
}

static int is_late(const bsw_device *device, int64_t started)
{
    return (double)(bsw_clock_ns() - started) > device->options.timeout_seconds * 1e9;
}

int bsw_device_pin(bsw_device *device, void *memory, size_t bytes, struct bsw_device_pinned *out)
{
    int64_t started = bsw_clock_ns();
    *out = {static_cast<unsigned char *>(memory), 0};
    device->num_allocations++;
    while (out->bytes < bytes) {
        unsigned char *piece = out->memory + out->bytes;
        size_t count = piece_bytes(piece, bytes - out->bytes);
        if (is_late(device, started) ||
            cudaHostRegister(piece, count, cudaHostRegisterDefault) != cudaSuccess) {
            cudaGetLastError();
            bsw_device_unpin(device, out);
            return 0;
        }
        out->bytes += count;
    }
    return 1;
}

void bsw_device_unpin(bsw_device *device, struct bsw_device_pinned *pin)
{
    for (size_t done = 0, count; done < pin->bytes && !device->is_lost; done += count) {
        count = piece_bytes(pin->memory + done, pin->bytes - done);
        cudaHostUnregister(pin->memory + done);
    }
    *pin = {NULL, 0};
}

// ---- queues ----

bsw_stream bsw_device_stream(bsw_device *device, enum bsw_device_queue queue)
{
    return device->streams[queue];
}

enum bsw_status bsw_device_launched(bsw_device *device, int code, const char *what,
                                    struct bsw_error *err)
{
    TRY_CUDA(device, what, err, static_cast<cudaError_t>(code));
    return BSW_OK;
}

enum bsw_status bsw_device_upload(bsw_device *device, enum bsw_device_queue queue, void *to,
                                  const void *from, size_t bytes, struct bsw_error *err)
{
    unsigned char *target = static_cast<unsigned char *>(to);
    const unsigned char *source = static_cast<const unsigned char *>(from);
    for (size_t done = 0, count; done < bytes; done += count) {
        count = piece_bytes(source + done, bytes - done);
        TRY_CUDA(device, "copy to the device", err,
                 cudaMemcpyAsync(target + done, source + done, count, cudaMemcpyHostToDevice,
                                 device->streams[queue]));
    }
    return BSW_OK;
}

enum bsw_status bsw_device_download(bsw_device *device, enum bsw_device_queue queue, void *to,
                                    const void *from, size_t bytes, struct bsw_error *err)
{
    TRY_CUDA(device, "copy from the device", err,
             cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device->streams[queue]));
    return BSW_OK;
}

enum bsw_status bsw_device_copy(bsw_device *device, enum bsw_device_queue queue, void *to,
                                const void *from, size_t bytes, struct bsw_error *err)
{
    TRY_CUDA(device, "copy on the device", err,
             cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, device->streams[queue]));
    return BSW_OK;
}

enum bsw_status bsw_device_download_rows(bsw_device *device, enum bsw_device_queue queue, void *to,
                                         const void *from, size_t row_bytes, size_t num_rows,
                                         size_t from_stride, struct bsw_error *err)
{
    TRY_CUDA(device, "copy from the device", err,
             cudaMemcpy2DAsync(to, row_bytes, from, from_stride, row_bytes, num_rows,
                               cudaMemcpyDeviceToHost, device->streams[queue]));
    return BSW_OK;
}

// ---- graphs ----

static cudaGraphExec_t exec_of(struct bsw_device_graph *graph)
{
    return reinterpret_cast<cudaGraphExec_t>(graph);
}

// What other threads of the process do is none of its business.
enum bsw_status bsw_device_record(bsw_device *device, enum bsw_device_queue queue,
                                  struct bsw_error *err)
{
    TRY_CUDA(device, "graph", err,
             cudaStreamBeginCapture(device->streams[queue], cudaStreamCaptureModeThreadLocal));
    return BSW_OK;
}

enum bsw_status bsw_device_recorded(bsw_device *device, enum bsw_device_queue queue,
                                    struct bsw_device_graph **out, struct bsw_error *err)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    *out = NULL;
    cudaError_t code = cudaStreamEndCapture(device->streams[queue], &graph);
    if (code == cudaSuccess) code = cudaGraphInstantiate(&exec, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    if (code != cudaSuccess) return fail_call(device, code, "graph", err);
    *out = reinterpret_cast<struct bsw_device_graph *>(exec);
    return BSW_OK;
}

enum bsw_status bsw_device_graph_run(bsw_device *device, enum bsw_device_queue queue,
                                     struct bsw_device_graph *graph, struct bsw_error *err)
{
    TRY_CUDA(device, "graph", err, cudaGraphLaunch(exec_of(graph), device->streams[queue]));
    return BSW_OK;
}

void bsw_device_graph_free(bsw_device *device, struct bsw_device_graph **graph)
{
    if (*graph && !device->is_lost) cudaGraphExecDestroy(exec_of(*graph));
    *graph = NULL;
}

// ---- order and waiting ----

enum bsw_status bsw_device_follow(bsw_device *device, enum bsw_device_queue queue,
                                  enum bsw_device_queue other, struct bsw_error *err)
{
    TRY_CUDA(device, "order of queues", err,
             cudaEventRecord(device->event, device->streams[other]));
    TRY_CUDA(device, "order of queues", err,
             cudaStreamWaitEvent(device->streams[queue], device->event, 0));
    return BSW_OK;
}

enum bsw_status bsw_device_poll(bsw_device *device, enum bsw_device_queue queue, const char *what,
                                int *is_empty, struct bsw_error *err)
{
    cudaError_t code = cudaStreamQuery(device->streams[queue]);
    *is_empty = code == cudaSuccess;
    if (code == cudaSuccess || code == cudaErrorNotReady) return BSW_OK;
    device->is_lost = 1;
    return fail_call(device, code, what, err);
}

enum bsw_status bsw_device_wait(bsw_device *device, enum bsw_device_queue queue, const char *what,
                                struct bsw_error *err)
{
    int64_t started = bsw_clock_ns(), waited = 0;
    if (device->is_lost)
        return bsw_fail(err, BSW_ERROR_IO, "%s: %s: it was given up before", device->label, what);
    for (int is_empty = 0;;) {
        BSW_TRY(bsw_device_poll(device, queue, what, &is_empty, err));
        if (is_empty) return BSW_OK;
        waited = bsw_clock_ns() - started;
        if (is_late(device, started)) break;
        bsw_clock_pause(waited);
    }
    device->is_lost = 1;
    return bsw_fail(err, BSW_ERROR_IO, "%s: %s: not done within %g s", device->label, what,
                    device->options.timeout_seconds);
}
