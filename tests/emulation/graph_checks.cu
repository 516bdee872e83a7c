// SPDX-License-Identifier: Apache-2.0
// Capture and graphs of the emulator: what is captured does not run before a graph of it does, and
// then with what lies in memory by that time; and every call that the driver refuses inside of a
// capture is refused here, and breaks it.
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda_switch.cuh"
#include "tests/emulation/emulated_queues.hpp"

namespace
{

constexpr uint32_t num_values = 100, block_threads = 32;
int num_checks, num_failures;

void check_that(bool holds, const std::string &what)
{
    num_checks++;
    if (holds) return;
    num_failures++;
    printf("graph_checks: %s\n", what.c_str());
}

void check_code(cudaError_t found, cudaError_t expected, const std::string &what)
{
    check_that(found == expected,
               what + ": " + cudaGetErrorName(found) + " and not " + cudaGetErrorName(expected));
    cudaGetLastError();
}

__global__ void multiply(uint32_t *values, uint32_t count, uint32_t factor)
{
    for (uint32_t i = threadIdx.x; i < count; i += block_threads) values[i] *= factor;
}

__global__ void trap(uint32_t *)
{
    __trap();
}

// Numbers on the host, through memory of the device and back, multiplied there.
struct bench {
    cudaStream_t stream = nullptr, other = nullptr;
    cudaEvent_t event = nullptr;
    uint32_t *device = nullptr, *host = nullptr, *out = nullptr;

    bench()
    {
        const size_t bytes = num_values * sizeof(uint32_t);
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0);
        cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, 0);
        cudaEventCreate(&event);
        cudaMalloc(reinterpret_cast<void **>(&device), bytes);
        cudaMallocHost(reinterpret_cast<void **>(&host), bytes);
        cudaMallocHost(reinterpret_cast<void **>(&out), bytes);
        memset(out, 0, bytes);
    }
    ~bench()
    {
        cudaFree(device);
        cudaFreeHost(host);
        cudaFreeHost(out);
        cudaEventDestroy(event);
        cudaStreamDestroy(stream);
        cudaStreamDestroy(other);
    }
    void set(uint32_t first)
    {
        for (uint32_t i = 0; i < num_values; i++) host[i] = first + i;
    }
    bool is_out(uint32_t first, uint32_t factor) const
    {
        for (uint32_t i = 0; i < num_values; i++) {
            if (out[i] != (first + i) * factor) return false;
        }
        return true;
    }
    cudaError_t upload()
    {
        return cudaMemcpyAsync(device, host, num_values * sizeof *host, cudaMemcpyHostToDevice,
                               stream);
    }
    cudaError_t launch(uint32_t factor)
    {
        return bsw::launch({dim3(1), dim3(block_threads), 0, stream}, multiply, device, num_values,
                           factor);
    }
    cudaError_t download()
    {
        return cudaMemcpyAsync(out, device, num_values * sizeof *out, cudaMemcpyDeviceToHost,
                               stream);
    }
    cudaGraph_t capture(uint32_t factor, bool has_download = true)
    {
        cudaGraph_t graph;
        check_code(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess,
                   "begin");
        check_code(upload(), cudaSuccess, "upload");
        check_code(launch(factor), cudaSuccess, "launch");
        if (has_download) check_code(download(), cudaSuccess, "download");
        check_code(cudaStreamEndCapture(stream, &graph), cudaSuccess, "end");
        return graph;
    }
};

// ---- right use ----

void check_replay(const char *order)
{
    bench b;
    cudaGraphExec_t exec;
    b.set(5);
    cudaGraph_t graph = b.capture(3);
    check_code(cudaStreamSynchronize(b.stream), cudaSuccess, "wait after a capture");
    check_that(b.out[1] == 0, std::string(order) + ": a capture ran what it took");
    check_code(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess, "instantiate");
    check_code(cudaGraphDestroy(graph), cudaSuccess, "destroy");
    for (uint32_t first = 7; first < 10; first++) {
        b.set(first);
        check_code(cudaGraphLaunch(exec, b.stream), cudaSuccess, "launch of a graph");
        check_code(cudaStreamSynchronize(b.stream), cudaSuccess, "wait");
        check_that(b.is_out(first, 3), std::string(order) + ": a graph's numbers");
    }
    // Behind other work of the stream, and what is queued goes on without the graph.
    b.set(20);
    b.upload();
    cudaGraphLaunch(exec, b.stream);
    b.launch(2);
    b.download();
    check_code(cudaGraphExecDestroy(exec), cudaSuccess, "destroy");
    check_code(cudaStreamSynchronize(b.stream), cudaSuccess, "wait");
    check_that(b.is_out(20, 6), std::string(order) + ": a graph between other work");
}

// Host memory used again before the graph has run is as wrong as with plain launches.
void check_late_reading()
{
    bench b;
    cudaGraphExec_t exec;
    cudaGraph_t graph = b.capture(3);
    cudaGraphInstantiate(&exec, graph, 0);
    b.set(1);
    cudaGraphLaunch(exec, b.stream);
    b.set(50);
    cudaStreamSynchronize(b.stream);
    check_that(b.is_out(50, 3), "late: staging memory is read when the graph runs");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}

void check_update()
{
    bench b;
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info;
    cudaGraph_t first = b.capture(3), second = b.capture(4), shorter = b.capture(5, false);
    cudaGraphInstantiate(&exec, first, 0);
    check_code(cudaGraphExecUpdate(exec, second, &info), cudaSuccess, "update");
    b.set(9);
    cudaGraphLaunch(exec, b.stream);
    cudaStreamSynchronize(b.stream);
    check_that(b.is_out(9, 4), "an update's arguments");
    check_code(cudaGraphExecUpdate(exec, shorter, &info), cudaErrorGraphExecUpdateFailure,
               "update by a shorter graph");
    check_that(info.result == cudaGraphExecUpdateErrorTopologyChanged, "what differs");
    cudaGraphLaunch(exec, b.stream);
    cudaStreamSynchronize(b.stream);
    check_that(b.is_out(9, 4), "a refused update leaves the graph as it was");
    cudaGraphExecDestroy(exec);
    for (cudaGraph_t graph : {first, second, shorter}) cudaGraphDestroy(graph);
}

void check_failed_kernel()
{
    bench b;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal);
    bsw::launch({dim3(1), dim3(1), 0, b.stream}, trap, b.device);
    check_code(cudaStreamEndCapture(b.stream, &graph), cudaSuccess, "a kernel that will fail");
    cudaGraphInstantiate(&exec, graph, 0);
    check_code(cudaGraphLaunch(exec, b.stream), cudaSuccess, "its launch");
    check_code(cudaStreamSynchronize(b.stream), cudaErrorLaunchFailure, "its end");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}

// ---- what is refused ----

typedef std::function<cudaError_t(bench &)> call_fn;

// Checks a call inside of a capture; the capture is broken by it unless the mode allows it.
void check_refused(const char *what, const call_fn &call, cudaError_t expected,
                   cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal)
{
    bench b;
    cudaGraph_t graph;
    cudaStreamCaptureStatus status;
    cudaStreamBeginCapture(b.stream, mode);
    check_code(b.upload(), cudaSuccess, what);
    check_code(call(b), expected, what);
    cudaStreamIsCapturing(b.stream, &status);
    check_that(status ==
                   (expected ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive),
               std::string(what) + ": status");
    check_code(b.launch(2), cudaSuccess, what); // more work is taken, for nothing
    check_code(cudaStreamEndCapture(b.stream, &graph),
               expected ? cudaErrorStreamCaptureInvalidated : cudaSuccess,
               std::string(what) + ", end");
    check_that((graph == nullptr) == (expected != cudaSuccess), std::string(what) + ": a graph");
    if (graph) cudaGraphDestroy(graph);
    // The stream is as before.
    b.set(3);
    b.upload();
    b.launch(5);
    b.download();
    check_code(cudaStreamSynchronize(b.stream), cudaSuccess, std::string(what) + ", after it");
    check_that(b.is_out(3, 5), std::string(what) + ": numbers after it");
}

cudaError_t allocate(bench &)
{
    void *place = nullptr;
    cudaError_t code = cudaMalloc(&place, 64);
    check_that(code == cudaSuccess || !place, "memory in spite of an error");
    if (code == cudaSuccess) cudaFree(place);
    return code;
}

cudaError_t wait_for_other(bench &b)
{
    cudaEventRecord(b.event, b.other);
    return cudaStreamWaitEvent(b.stream, b.event, 0);
}

cudaError_t take_other_along(bench &b)
{
    cudaEventRecord(b.event, b.stream);
    return cudaStreamWaitEvent(b.other, b.event, 0);
}

cudaError_t wait_for_itself(bench &b)
{
    cudaEventRecord(b.event, b.stream);
    return cudaStreamWaitEvent(b.stream, b.event, 0);
}

cudaError_t pin(bench &b)
{
    return cudaHostRegister(&b, sizeof b, cudaHostRegisterDefault);
}

cudaError_t allocate_pinned(bench &)
{
    void *place = nullptr;
    return cudaMallocHost(&place, 64);
}

void check_all_refused()
{
    const cudaError_t unsupported = cudaErrorStreamCaptureUnsupported;
    check_refused(
        "a question", [](bench &b) { return cudaStreamQuery(b.stream); }, unsupported);
    check_refused(
        "a wait", [](bench &b) { return cudaStreamSynchronize(b.stream); }, unsupported);
    check_refused(
        "a wait, relaxed", [](bench &b) { return cudaStreamSynchronize(b.stream); }, unsupported,
        cudaStreamCaptureModeRelaxed);
    check_refused(
        "a wait for the device", [](bench &) { return cudaDeviceSynchronize(); }, unsupported);
    check_refused("cudaMalloc", allocate, unsupported);
    check_refused("cudaMalloc, relaxed", allocate, cudaSuccess, cudaStreamCaptureModeRelaxed);
    check_refused("cudaMallocHost", allocate_pinned, unsupported);
    check_refused(
        "cudaFree", [](bench &b) { return cudaFree(b.device); }, unsupported);
    check_refused(
        "cudaFreeHost", [](bench &b) { return cudaFreeHost(b.host); }, unsupported);
    check_refused("cudaHostRegister", pin, unsupported);
    check_refused(
        "cudaMemcpy",
        [](bench &b) { return cudaMemcpy(b.device, b.host, 4, cudaMemcpyHostToDevice); },
        unsupported);
    check_refused(
        "cudaMemset", [](bench &b) { return cudaMemset(b.device, 0, 4); }, unsupported);
    check_refused("a wait for an event outside", wait_for_other, cudaErrorStreamCaptureIsolation);
    check_refused("a wait from outside", take_other_along, unsupported);
    check_refused("a wait for an event of its own", wait_for_itself, cudaSuccess);
    check_refused(
        "work of a library",
        [](bench &b) {
            emulated_stream_push(b.stream, [] { return cudaSuccess; });
            return cudaGetLastError();
        },
        unsupported);
}

void check_of_threads()
{
    bench b;
    cudaGraph_t graph;
    cudaError_t code = cudaSuccess, refused = cudaSuccess;
    cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal);
    std::thread([&] {
        void *place = nullptr;
        refused = cudaMalloc(&place, 64);
        cudaFree(place);
        code = cudaStreamEndCapture(b.stream, &graph);
        cudaGetLastError();
    }).join();
    check_code(refused, cudaSuccess, "memory for another thread");
    check_code(code, cudaErrorStreamCaptureWrongThread, "another thread's end");
    check_code(cudaStreamEndCapture(b.stream, &graph), cudaSuccess, "its own");
    cudaGraphDestroy(graph);
}

void check_order_of_calls()
{
    bench b;
    cudaGraph_t graph;
    float time;
    check_code(cudaStreamEndCapture(b.stream, &graph), cudaErrorIllegalState, "no begin");
    check_code(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
               cudaErrorStreamCaptureUnsupported, "no stream");
    cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeGlobal);
    check_code(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeGlobal), cudaErrorIllegalState,
               "two begins");
    cudaEventRecord(b.event, b.stream);
    check_code(cudaStreamEndCapture(b.stream, &graph), cudaSuccess, "end");
    check_code(cudaEventElapsedTime(&time, b.event, b.event), cudaErrorCapturedEvent,
               "an event that was captured");
    cudaGraphDestroy(graph);
}

// What tests of the device layer ask for by the environment.
void check_environment()
{
    bench b;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    setenv("BITSWEEP_EMULATOR_NO_CAPTURE", "1", 1);
    cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal);
    check_code(cudaStreamEndCapture(b.stream, &graph), cudaErrorStreamCaptureInvalidated,
               "a capture that breaks");
    unsetenv("BITSWEEP_EMULATOR_NO_CAPTURE");
    graph = b.capture(2);
    setenv("BITSWEEP_EMULATOR_NO_GRAPH", "1", 1);
    check_code(cudaGraphInstantiate(&exec, graph, 0), cudaErrorMemoryAllocation, "no graph");
    unsetenv("BITSWEEP_EMULATOR_NO_GRAPH");
    cudaGraphInstantiate(&exec, graph, 0);
    setenv("BITSWEEP_EMULATOR_NO_GRAPH_LAUNCH", "1", 1);
    check_code(cudaGraphLaunch(exec, b.stream), cudaErrorMemoryAllocation, "no launch");
    unsetenv("BITSWEEP_EMULATOR_NO_GRAPH_LAUNCH");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}

} // namespace

int main()
{
    const struct {
        const char *name;
        emulation::order order;
    } orders[] = {{"ascending", emulation::order::ascending},
                  {"descending", emulation::order::descending},
                  {"random", emulation::order::random}};
    for (const auto &each : orders) {
        emulation::options.order = each.order;
        check_replay(each.name);
    }
    emulation::options.order = emulation::order::ascending;
    check_late_reading();
    check_update();
    check_failed_kernel();
    check_all_refused();
    check_of_threads();
    check_order_of_calls();
    check_environment();
    printf("graph_checks: %d checks, %d failures\n", num_checks, num_failures);
    return num_failures > 0;
}
