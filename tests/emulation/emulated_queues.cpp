#include "tests/emulation/emulated_queues.hpp"

#include <cstdlib>
#include <deque>
#include <functional>
#include <set>

#undef cudaFree
#undef cudaGetDeviceProperties
#undef cudaFreeHost

namespace
{

struct queue {
    std::deque<std::function<cudaError_t()>> work;
    uint64_t num_done = 0; // of all work ever queued
    cudaError_t error = cudaSuccess;
};

struct mark {
    queue *where = nullptr;
    uint64_t position = 0; // num_done when all before the mark is done
};

// Everything that was made and not freed. A program that gives a device up frees nothing of it;
// that is no leak, so this outlives static objects.
std::set<const void *> &kept = *new std::set<const void *>;
std::set<const void *> &registered = *new std::set<const void *>;

uint64_t num_questions;

queue *queue_of(cudaStream_t stream)
{
    return reinterpret_cast<queue *>(stream);
}

mark *mark_of(cudaEvent_t event)
{
    return reinterpret_cast<mark *>(event);
}

void run_until(queue *q, uint64_t position)
{
    while (q->num_done < position) {
        std::function<cudaError_t()> work = std::move(q->work.front());
        q->work.pop_front();
        q->num_done++;
        cudaError_t code = work();
        if (q->error == cudaSuccess) q->error = code;
    }
}

void run_all(queue *q)
{
    run_until(q, q->num_done + q->work.size());
}

uint64_t number_from(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

} // namespace

namespace emulation
{

cudaError_t count_devices(int *count)
{
    *count = int(number_from("BITSWEEP_EMULATOR_DEVICES", 64));
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

// They differ in nothing but the number.
cudaError_t choose_device(int ordinal)
{
    int count;
    cudaError_t code = count_devices(&count);
    if (code != cudaSuccess) return code;
    return ordinal >= 0 && ordinal < count ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t describe_device(cudaDeviceProp *out, int)
{
    return cudaGetDeviceProperties(out, 0);
}

cudaError_t create_queue(cudaStream_t *stream, unsigned)
{
    queue *q = new queue;
    kept.insert(q);
    *stream = reinterpret_cast<cudaStream_t>(q);
    return cudaSuccess;
}

cudaError_t destroy_queue(cudaStream_t stream)
{
    kept.erase(queue_of(stream));
    delete queue_of(stream);
    return cudaSuccess;
}

cudaError_t ask_queue(cudaStream_t stream)
{
    queue *q = queue_of(stream);
    num_questions++;
    if (num_questions >= number_from("BITSWEEP_EMULATOR_STALL", UINT64_MAX))
        return cudaErrorNotReady;
    if (num_questions >= number_from("BITSWEEP_EMULATOR_FAIL", UINT64_MAX))
        return cudaErrorLaunchFailure;
    run_all(q);
    cudaError_t of_kernels = cudaGetLastError();
    return q->error != cudaSuccess ? q->error : of_kernels;
}

cudaError_t queue_copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream)
{
    queue_of(stream)->work.push_back([=] { return cudaMemcpy(to, from, bytes, kind); });
    return cudaSuccess;
}

cudaError_t queue_copy_rows(void *to, size_t to_stride, const void *from, size_t from_stride,
                            size_t row_bytes, size_t num_rows, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    for (size_t i = 0; i < num_rows; i++) {
        queue_copy(static_cast<char *>(to) + i * to_stride,
                   static_cast<const char *>(from) + i * from_stride, row_bytes, kind, stream);
    }
    return cudaSuccess;
}

cudaError_t create_mark(cudaEvent_t *event, unsigned)
{
    mark *m = new mark;
    kept.insert(m);
    *event = reinterpret_cast<cudaEvent_t>(m);
    return cudaSuccess;
}

cudaError_t destroy_mark(cudaEvent_t event)
{
    kept.erase(mark_of(event));
    delete mark_of(event);
    return cudaSuccess;
}

cudaError_t set_mark(cudaEvent_t event, cudaStream_t stream)
{
    queue *q = queue_of(stream);
    *mark_of(event) = mark{q, q->num_done + q->work.size()};
    return cudaSuccess;
}

cudaError_t queue_mark(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    mark m = *mark_of(event); // as it is now: the event may be recorded again
    queue_of(stream)->work.push_back([m] {
        if (m.where) run_until(m.where, m.position);
        return cudaSuccess;
    });
    return cudaSuccess;
}

cudaError_t allocate_kept(void **place, size_t bytes)
{
    cudaError_t code = allocate_device(place, bytes);
    if (code == cudaSuccess) kept.insert(*place);
    return code;
}

cudaError_t free_kept(void *place)
{
    return kept.erase(place) == 1 ? cudaFree(place) : cudaErrorInvalidValue;
}

cudaError_t allocate_pinned(void **place, size_t bytes)
{
    cudaError_t code = allocate_host(place, bytes);
    if (code == cudaSuccess) kept.insert(*place);
    return code;
}

cudaError_t free_pinned(void *place)
{
    return kept.erase(place) == 1 ? cudaFreeHost(place) : cudaErrorInvalidValue;
}

cudaError_t register_host(void *memory, size_t, unsigned)
{
    return registered.insert(memory).second ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t unregister_host(void *memory)
{
    return registered.erase(memory) == 1 ? cudaSuccess : cudaErrorInvalidValue;
}

} // namespace emulation

void emulated_stream_run(cudaStream_t stream)
{
    run_all(queue_of(stream));
}
