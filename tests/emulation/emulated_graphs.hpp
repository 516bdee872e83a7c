// SPDX-License-Identifier: Apache-2.0
// Stream capture and graphs of the runtime, over the streams of emulated_queues.hpp: what is queued
// on a stream that is captured is kept in place of being run, with its arguments as they were; a
// graph's launch queues it once more, piece by piece.
//
// As with the driver, what cannot be captured makes the capture invalid, and the call that ends it
// says so: a question about the stream or a wait for it, and, unless the mode is relaxed, all that
// allocates, frees or pins memory, copies or fills without a stream, or waits for a device or for
// another stream. Stricter than the driver are a wait for an event of another stream, which there
// takes that stream along, and the calls of libraries.
#ifndef BITSWEEP_EMULATION_EMULATED_GRAPHS_HPP
#define BITSWEEP_EMULATION_EMULATED_GRAPHS_HPP

#include <cstddef>

#include "emulated_types.hpp"

namespace emulation
{
enum class piece_kind { kernel, upload, download, copy, fill, wait, other };
}

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
};
enum cudaGraphExecUpdateResult {
    cudaGraphExecUpdateSuccess = 0,
    cudaGraphExecUpdateErrorTopologyChanged = 2,
    cudaGraphExecUpdateErrorNodeTypeChanged = 3
};
struct cudaGraphExecUpdateResultInfo {
    cudaGraphExecUpdateResult result;
};

typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
// Pieces of the same kinds, with other arguments.
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);

#endif
