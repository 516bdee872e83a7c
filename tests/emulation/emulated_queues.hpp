// SPDX-License-Identifier: Apache-2.0
// Streams whose work waits: launches, copies and fills run when somebody asks for the stream or for
// an event behind them, and no sooner than CUDA promises. Host code that reads a result or uses
// staging memory again before it has waited, or that forgets to make one stream follow another,
// gets wrong bytes here, as it might on a GPU. emulation::options.order says when they run:
//   ascending   as late as CUDA allows
//   descending  so too, but work of all other streams comes first
//   random      by chance, at once or later, pieces of all streams in turn
// Work without a stream runs at once. Streams are used together by the thread that queued on them
// last; those of other threads are left alone.
//
// From the environment, for common/device/device.cu, below the first each N or DEVICE:N (that
// device alone):
//   BITSWEEP_EMULATOR_DEVICES=N           so many devices, -1: no driver; 64 unless set
//   BITSWEEP_EMULATOR_VISIBLE=A,B         of these only devices A and B are there, as 0 and 1
//   BITSWEEP_EMULATOR_TAKEN=N             bytes of their memory that others have taken
//   BITSWEEP_EMULATOR_HOPPER=1            devices are Hopper GPUs, of compute capability 9.0
//   BITSWEEP_EMULATOR_AUTO=1              --device auto takes them as it takes GPUs
//   BITSWEEP_EMULATOR_SLOW=MS             a stream that was given work says so many milliseconds,
//                                         from the first question on, that it is not done
//   BITSWEEP_EMULATOR_HOPPER=1            all are Hopper GPUs
//   BITSWEEP_EMULATOR_OLD=N               from the N-th question on a compute capability is 7.0
//   BITSWEEP_EMULATOR_NO_IMAGE=N          from the N-th on kernels cannot be loaded
//   BITSWEEP_EMULATOR_STALL=N             from the N-th question whether a stream is done on the
//                                         answer is no
//   BITSWEEP_EMULATOR_FAIL=N              from the N-th such question on the answer is a failed
//                                         launch
//   BITSWEEP_EMULATOR_REFUSE=N            from the N-th on allocations are refused, of device
//   BITSWEEP_EMULATOR_REFUSE_PINNED=N     memory, of host memory that stays in place,
//   BITSWEEP_EMULATOR_REFUSE_REGISTER=N   or registering host memory
//   BITSWEEP_EMULATOR_SLOW_REGISTER=N     from the N-th on registering takes 20 ms
//   BITSWEEP_EMULATOR_NO_CAPTURE=N        from the N-th on a capture breaks, without it a graph
//   BITSWEEP_EMULATOR_NO_GRAPH=N          cannot be made of one, or its launch is refused
//   BITSWEEP_EMULATOR_NO_GRAPH_LAUNCH=N   (emulated_graphs.hpp)
//   BITSWEEP_EMULATOR_FORGET=N            from the N-th on waits of a stream for an event are
//                                         forgotten: a fault that tests of ours are to notice
#ifndef BITSWEEP_EMULATION_EMULATED_QUEUES_HPP
#define BITSWEEP_EMULATION_EMULATED_QUEUES_HPP

#include <functional>

#include "tests/emulation/cuda_emulator.hpp"
#include "tests/emulation/emulated_graphs.hpp"

enum : unsigned { cudaHostRegisterDefault = 0 };
struct cudaUUID_t {
    char bytes[16];
};
struct cudaFuncAttributes {
    int numRegs;
};

namespace emulation
{
bool is_automatic();
cudaError_t count_devices(int *count);
cudaError_t choose_device(int ordinal);
cudaError_t describe_device(cudaDeviceProp *out, int ordinal);
cudaError_t get_attribute(int *out, cudaDeviceAttr which, int ordinal);
cudaError_t get_uuid(int ordinal, cudaUUID_t *out);
cudaError_t get_bus_id(char *out, int capacity, int ordinal);
cudaError_t get_kernel(cudaFuncAttributes *out, void (*kernel)());
cudaError_t allocate_kept(void **place, size_t bytes);
cudaError_t free_kept(void *place);
cudaError_t allocate_pinned(void **place, size_t bytes);
cudaError_t free_pinned(void *place);
cudaError_t register_host(void *memory, size_t bytes, unsigned flags);
cudaError_t unregister_host(void *memory);
} // namespace emulation

// Queues work of any kind. cudaErrorNotReady from it: it is not done yet and is to be called again;
// until then nothing behind it runs. Another error is the stream's from then on.
void emulated_stream_push(cudaStream_t stream, std::function<cudaError_t()> work);
// Runs what is queued, as far as it goes.
void emulated_stream_run(cudaStream_t stream);

// The same for a library of its own: work that is asked again until it says that it is done: 1; 0:
// not yet; -1: failed.
extern "C" int emulated_stream_put(cudaStream_t stream, int (*work)(void *context), void *context);
// That the calling thread has chosen.
extern "C" int emulated_current_device();

// Names of the runtime for which common/device/device.cu has these, with many devices, faults from
// the environment and memory that outlives a device that was given up.
#define cudaGetDeviceCount      emulation::count_devices
#define cudaSetDevice           emulation::choose_device
#define cudaGetDeviceProperties emulation::describe_device
#define cudaDeviceGetAttribute  emulation::get_attribute
#define cudaDeviceGetPCIBusId   emulation::get_bus_id
#define cudaFuncGetAttributes   emulation::get_kernel
#define cudaMalloc              emulation::allocate_kept
#define cudaFree                emulation::free_kept
#define cudaMallocHost          emulation::allocate_pinned
#define cudaFreeHost            emulation::free_pinned
#define cudaHostRegister        emulation::register_host
#define cudaHostUnregister      emulation::unregister_host

#endif
