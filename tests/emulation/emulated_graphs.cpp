// SPDX-License-Identifier: Apache-2.0
// What is being captured, and graphs of it.
#include <map>
#include <set>
#include <thread>

#include "emulator_internal.hpp"

struct CUgraph_st {
    std::vector<emulation::piece> pieces;
    int device = 0;
};

struct CUgraphExec_st {
    CUgraph_st graph;
};

namespace emulation
{

struct capture {
    CUgraph_st graph;
    cudaStreamCaptureMode mode;
    std::thread::id owner;
    uint64_t number;
    bool is_valid;
};

// As in emulated_queues.cpp they outlive static objects.
static std::map<cudaStream_t, capture> &captures = *new std::map<cudaStream_t, capture>;
static std::set<const void *> &graphs = *new std::set<const void *>;
typedef std::lock_guard<std::recursive_mutex> lock;

static bool is_own(const capture &c)
{
    return c.owner == std::this_thread::get_id();
}

bool is_captured(cudaStream_t stream)
{
    lock guard(emulator_lock);
    return captures.count(stream) > 0;
}

uint64_t capture_number(cudaStream_t stream)
{
    lock guard(emulator_lock);
    auto found = captures.find(stream);
    return found == captures.end() ? 0 : found->second.number;
}

void put_in_capture(cudaStream_t stream, piece work)
{
    lock guard(emulator_lock);
    captures.at(stream).graph.pieces.push_back(std::move(work));
}

cudaError_t invalidate(cudaStream_t stream, cudaError_t error, const char *text)
{
    lock guard(emulator_lock);
    auto found = captures.find(stream);
    if (found != captures.end()) found->second.is_valid = false;
    return refuse(error, text);
}

static cudaError_t refuse_call(const char *call)
{
    return refuse(cudaErrorStreamCaptureUnsupported,
                  (std::string(call) + " while a stream is captured").c_str());
}

cudaError_t refuse_of_captured(cudaStream_t stream, const char *call)
{
    if (!is_captured(stream)) return cudaSuccess;
    invalidate(stream, cudaErrorStreamCaptureUnsupported, call);
    return refuse_call(call);
}

// Captures of the calling thread, and those that are to be safe from all threads.
cudaError_t refuse_while_captured(const char *call)
{
    bool is_refused = false;
    lock guard(emulator_lock);
    for (auto &entry : captures) {
        capture &c = entry.second;
        if (c.mode == cudaStreamCaptureModeRelaxed) continue;
        if (c.mode == cudaStreamCaptureModeThreadLocal && !is_own(c)) continue;
        c.is_valid = false;
        is_refused = true;
    }
    return is_refused ? refuse_call(call) : cudaSuccess;
}

template <class T> static T *remember(T *graph)
{
    lock guard(emulator_lock);
    graphs.insert(graph);
    return graph;
}

// The driver's answer to a graph that is not there is undefined: here that ends the program.
static void need(const void *graph, const char *call)
{
    lock guard(emulator_lock);
    if (graphs.count(graph) == 0) fail("%s of what is not there, or no longer", call);
}

template <class T> static cudaError_t forget(T *graph, const char *call)
{
    need(graph, call);
    lock guard(emulator_lock);
    graphs.erase(graph);
    delete graph;
    return cudaSuccess;
}

} // namespace emulation

using namespace emulation;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    static uint64_t number;
    if (!stream) return refuse(cudaErrorStreamCaptureUnsupported, "a capture of no stream");
    lock guard(emulator_lock);
    if (captures.count(stream) > 0)
        return refuse(cudaErrorIllegalState, "a capture of a stream that is captured");
    capture &c = captures[stream];
    c.mode = mode;
    c.owner = std::this_thread::get_id();
    c.number = ++number;
    c.is_valid = true;
    c.graph.device = device_of(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    lock guard(emulator_lock);
    *graph = nullptr;
    auto entry = captures.find(stream);
    if (entry == captures.end())
        return refuse(cudaErrorIllegalState, "the end of a capture that did not begin");
    if (!is_own(entry->second) && entry->second.mode != cudaStreamCaptureModeRelaxed)
        return refuse(cudaErrorStreamCaptureWrongThread, "another thread began the capture");
    const capture ended = std::move(entry->second);
    captures.erase(entry);
    if (!ended.is_valid || is_struck("BITSWEEP_EMULATOR_NO_CAPTURE", ended.graph.device))
        return refuse(cudaErrorStreamCaptureInvalidated, "the capture has become invalid");
    *graph = remember(new CUgraph_st(ended.graph));
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    lock guard(emulator_lock);
    auto found = captures.find(stream);
    *status = found == captures.end()  ? cudaStreamCaptureStatusNone
              : found->second.is_valid ? cudaStreamCaptureStatusActive
                                       : cudaStreamCaptureStatusInvalidated;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    need(graph, "cudaGraphInstantiate");
    *exec = nullptr;
    if (is_struck("BITSWEEP_EMULATOR_NO_GRAPH", graph->device))
        return refuse(cudaErrorMemoryAllocation, "no memory for a graph");
    *exec = remember(new CUgraphExec_st{*graph});
    return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info)
{
    need(exec, "cudaGraphExecUpdate");
    need(graph, "cudaGraphExecUpdate");
    const std::vector<piece> &now = exec->graph.pieces, &next = graph->pieces;
    info->result = now.size() == next.size() ? cudaGraphExecUpdateSuccess
                                             : cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t i = 0; i < now.size() && info->result == cudaGraphExecUpdateSuccess; i++) {
        if (now[i].kind != next[i].kind) info->result = cudaGraphExecUpdateErrorNodeTypeChanged;
    }
    if (info->result != cudaGraphExecUpdateSuccess)
        return refuse(cudaErrorGraphExecUpdateFailure, "a graph of other work");
    exec->graph = *graph;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    need(exec, "cudaGraphLaunch");
    if (!stream || device_of(stream) != exec->graph.device)
        return refuse(cudaErrorInvalidResourceHandle, "a graph on a queue of another device");
    if (is_struck("BITSWEEP_EMULATOR_NO_GRAPH_LAUNCH", exec->graph.device))
        return refuse(cudaErrorMemoryAllocation, "no memory for the launch of a graph");
    for (const piece &work : exec->graph.pieces) {
        cudaError_t code = queue_piece(stream, work);
        if (code != cudaSuccess) return code;
    }
    return cudaSuccess;
}

// What was queued of it goes on.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return forget(exec, "cudaGraphExecDestroy");
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return forget(graph, "cudaGraphDestroy");
}
