// SPDX-License-Identifier: Apache-2.0
// Streams and events: what is queued, and when it runs.
#include "tests/emulation/emulated_queues.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <set>
#include <thread>
#include <vector>

#include "emulator_internal.hpp"

struct CUstream_st {
    std::deque<std::function<cudaError_t()>> work;
    uint64_t num_done = 0; // of all work ever queued
    cudaError_t error = cudaSuccess;
    int device = 0;
    bool is_running = false;
    uint64_t num_known = 0; // of the work: of which somebody was told that it is done
    double asked = 0;       // ms, when the first question about the rest came; 0: none
    std::thread::id user;   // that queued last
};

struct CUevent_st {
    cudaStream_t where = nullptr;
    uint64_t position = 0; // num_done when all before the event is done
    int device = 0;
    double time = 0;      // ms, when it was recorded
    uint64_t capture = 0; // in which it was recorded
};

namespace
{

// Streams that are there, oldest first, and events. A program that gives a device up destroys
// nothing of it; that is no leak, so the lists outlive static objects. The lock is theirs alone.
std::vector<cudaStream_t> &streams = *new std::vector<cudaStream_t>;
std::set<cudaEvent_t> &events = *new std::set<cudaEvent_t>;
std::mutex streams_lock;
typedef std::lock_guard<std::mutex> list_guard;

// Those of the calling thread, newest first.
std::vector<cudaStream_t> own_streams()
{
    list_guard guard(streams_lock);
    std::vector<cudaStream_t> out;
    for (auto it = streams.rbegin(); it != streams.rend(); ++it) {
        if ((*it)->user == std::this_thread::get_id()) out.push_back(*it);
    }
    return out;
}

bool is_there(cudaStream_t stream)
{
    list_guard guard(streams_lock);
    return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

// As in CUDA a failed kernel or copy ends all that is queued on its device.
void lose_device(cudaStream_t failed, cudaError_t error)
{
    failed->error = error;
    for (cudaStream_t stream : own_streams()) {
        if (stream->device == failed->device && stream->error == cudaSuccess) stream->error = error;
    }
}

// One piece of work; false: there is none, or it cannot go on yet.
bool step(cudaStream_t stream)
{
    if (stream->work.empty() || stream->is_running) return false;
    stream->is_running = true;
    cudaError_t code = stream->error == cudaSuccess ? stream->work.front()() : cudaSuccess;
    stream->is_running = false;
    if (code == cudaErrorNotReady) return false;
    stream->work.pop_front();
    stream->num_done++;
    if (code != cudaSuccess) lose_device(stream, code);
    return true;
}

bool run_until(cudaStream_t stream, uint64_t position)
{
    while (stream->num_done < position) {
        if (!step(stream)) return false;
    }
    return true;
}

void run_to_end(cudaStream_t stream)
{
    run_until(stream, stream->num_done + stream->work.size());
}

size_t random_below(size_t end)
{
    static thread_local uint64_t state, seed;
    if (state == 0 || seed != emulation::options.seed) {
        seed = emulation::options.seed;
        state = seed * 0x9e3779b97f4a7c15u | 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<size_t>((state >> 11) % end);
}

bool is_random()
{
    return emulation::options.order == emulation::order::random;
}

// Some work of any stream, as a GPU may do between two calls of the host.
void run_by_chance()
{
    if (random_below(2) == 0) return;
    const std::vector<cudaStream_t> all = own_streams();
    for (size_t left = all.empty() ? 0 : random_below(8); left > 0; left--)
        step(all[random_below(all.size())]);
}

// To the end of `stream`, and of others what the order says.
void run_in_order(cudaStream_t stream)
{
    const std::vector<cudaStream_t> all = own_streams();
    if (emulation::options.order == emulation::order::descending) {
        for (cudaStream_t other : all) {
            if (other != stream) run_to_end(other);
        }
    }
    while (is_random() && !all.empty() && random_below(4) != 0) step(all[random_below(all.size())]);
    run_to_end(stream);
}

double milliseconds()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

} // namespace

static void push(cudaStream_t stream, std::function<cudaError_t()> work)
{
    {
        list_guard guard(streams_lock);
        stream->user = std::this_thread::get_id();
    }
    stream->work.push_back(std::move(work));
    if (is_random()) run_by_chance();
}

void emulated_stream_push(cudaStream_t stream, std::function<cudaError_t()> work)
{
    emulation::queue_piece(stream, {emulation::piece_kind::other, nullptr, std::move(work)});
}

void emulated_stream_run(cudaStream_t stream)
{
    run_in_order(stream);
}

int emulated_stream_put(cudaStream_t stream, int (*work)(void *context), void *context)
{
    emulated_stream_push(stream, [=] {
        int outcome = work(context);
        return outcome == 0  ? cudaErrorNotReady
               : outcome > 0 ? cudaSuccess
                             : cudaErrorLaunchFailure;
    });
    return 0;
}

int emulated_current_device()
{
    return emulation::own_device;
}

namespace emulation
{

int device_of(cudaStream_t stream)
{
    return stream->device;
}

cudaError_t queue_piece(cudaStream_t stream, piece work)
{
    if (!is_captured(stream)) {
        push(stream, std::move(work.run));
        return cudaSuccess;
    }
    if (work.kind == piece_kind::other)
        return invalidate(stream, cudaErrorStreamCaptureUnsupported,
                          "work of a library in a stream that is captured");
    put_in_capture(stream, std::move(work));
    return cudaSuccess;
}

void run_all_queues()
{
    for (cudaStream_t stream : own_streams()) run_to_end(stream);
}

} // namespace emulation

// ---- the runtime's names ----

using namespace emulation;

// Work without a stream is done now.
static cudaError_t queue_work(cudaStream_t stream, piece_kind kind,
                              std::function<cudaError_t()> work)
{
    if (!stream) return work();
    return queue_piece(stream, {kind, nullptr, std::move(work)});
}

static piece_kind copy_kind(cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToDevice   ? piece_kind::upload
           : kind == cudaMemcpyDeviceToHost ? piece_kind::download
                                            : piece_kind::copy;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return queue_work(stream, copy_kind(kind), [=] { return copy_now(to, from, bytes, kind); });
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    return queue_work(stream, copy_kind(kind), [=] {
        cudaError_t code = cudaSuccess;
        for (size_t i = 0; i < height && code == cudaSuccess; i++) {
            code = copy_now(static_cast<char *>(to) + i * to_pitch,
                            static_cast<const char *>(from) + i * from_pitch, width, kind);
        }
        return code;
    });
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    return queue_work(stream, piece_kind::fill, [=] { return fill_now(to, value, bytes); });
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    cudaError_t refused = refuse_while_captured("cudaMemset");
    return refused ? refused : fill_now(to, value, bytes);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = *greatest = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned, int)
{
    *stream = new CUstream_st;
    (*stream)->device = own_device;
    (*stream)->user = std::this_thread::get_id();
    list_guard guard(streams_lock);
    streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!is_there(stream)) fail("cudaStreamDestroy of what is not there, or no longer");
    if (is_captured(stream)) fail("cudaStreamDestroy of a stream that is captured");
    run_to_end(stream);
    list_guard guard(streams_lock);
    streams.erase(std::find(streams.begin(), streams.end(), stream));
    delete stream;
    return cudaSuccess;
}

// Whether the environment makes every wait a long one, and this one has not been long enough.
static bool is_slow(cudaStream_t stream)
{
    const char *text = getenv("BITSWEEP_EMULATOR_SLOW");
    const uint64_t num_all = stream->num_done + stream->work.size();
    if (!text || num_all == stream->num_known) return false;
    if (stream->asked == 0) stream->asked = milliseconds();
    if (milliseconds() - stream->asked < atof(text)) return true;
    stream->asked = 0;
    stream->num_known = num_all;
    return false;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    cudaError_t refused = refuse_of_captured(stream, "a question about, or a wait for a stream");
    if (!refused) refused = refuse_while_captured("a question about, or a wait for a stream");
    if (refused) return refused;
    if (is_struck("BITSWEEP_EMULATOR_STALL", stream->device)) return cudaErrorNotReady;
    if (is_struck("BITSWEEP_EMULATOR_FAIL", stream->device)) return cudaErrorLaunchFailure;
    if (is_slow(stream)) return cudaErrorNotReady;
    run_in_order(stream);
    if (stream->error != cudaSuccess) return stream->error;
    return stream->work.empty() ? take_error() : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (!stream) return take_error();
    cudaError_t code;
    while ((code = cudaStreamQuery(stream)) == cudaErrorNotReady) std::this_thread::yield();
    return code;
}

cudaError_t cudaDeviceSynchronize()
{
    cudaError_t refused = refuse_while_captured("cudaDeviceSynchronize");
    if (refused) return refused;
    cudaError_t first = take_error();
    for (cudaStream_t stream : own_streams()) {
        cudaError_t code = cudaStreamSynchronize(stream);
        if (first == cudaSuccess) first = code;
    }
    return first;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new CUevent_st;
    (*event)->device = own_device;
    list_guard guard(streams_lock);
    events.insert(*event);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    list_guard guard(streams_lock);
    if (events.erase(event) == 0) fail("cudaEventDestroy of what is not there, or no longer");
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    if (!event || (stream && stream->device != event->device))
        return refuse(cudaErrorInvalidResourceHandle, "event and stream are of different devices");
    event->where = stream;
    event->position = stream ? stream->num_done + stream->work.size() : 0;
    event->time = milliseconds();
    event->capture = stream ? capture_number(stream) : 0;
    return cudaSuccess;
}

// All before the event; false: it cannot go on yet.
static bool reach(const CUevent_st &event)
{
    return !event.where || !is_there(event.where) || run_until(event.where, event.position);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    if (!event) return cudaErrorInvalidResourceHandle;
    const uint64_t capture = stream ? capture_number(stream) : 0;
    if (capture != event->capture) {
        const char *text = "a wait from within a capture for what is outside, or the other way: "
                           "captures here are of one stream";
        return event->capture == 0
                   ? invalidate(stream, cudaErrorStreamCaptureIsolation, text)
                   : invalidate(event->where, cudaErrorStreamCaptureUnsupported, text);
    }
    if (capture > 0) return cudaSuccess; // what is captured is in order
    if (is_struck("BITSWEEP_EMULATOR_FORGET", own_device)) return cudaSuccess;
    const CUevent_st now = *event; // it may be recorded again
    return queue_work(stream, piece_kind::wait,
                      [now] { return reach(now) ? cudaSuccess : cudaErrorNotReady; });
}

cudaError_t cudaEventElapsedTime(float *out, cudaEvent_t from, cudaEvent_t to)
{
    if (!from || !to) return cudaErrorInvalidResourceHandle;
    if (from->capture > 0 || to->capture > 0)
        return refuse(cudaErrorCapturedEvent, "the time of an event that was captured");
    *out = static_cast<float>(to->time - from->time);
    return cudaSuccess;
}
