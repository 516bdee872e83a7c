// Streams whose work waits: copies are done as late as CUDA allows, when somebody asks for the
// stream, launches on it, or waits for an event behind them. Host code that reads a copy, or uses
// its source again, before it has waited gets wrong bytes here, as it might on a GPU.
//
// For common/device.cu alone, in place of what emulated_runtime.hpp has; kernels run at once, so
// emulated_stream_run comes before a launch. From the environment:
//   BITSWEEP_EMULATOR_DEVICES=N   so many devices; 64 unless set
//   BITSWEEP_EMULATOR_STALL=N     from the N-th question whether a stream is done on the answer is
//   no BITSWEEP_EMULATOR_FAIL=N      from the N-th such question on the answer is a failed launch
#ifndef BITSWEEP_EMULATION_EMULATED_QUEUES_HPP
#define BITSWEEP_EMULATION_EMULATED_QUEUES_HPP

#include "tests/emulation/cuda_emulator.hpp"

enum : unsigned { cudaHostRegisterDefault = 0 };

namespace emulation
{
cudaError_t count_devices(int *count);
cudaError_t choose_device(int ordinal);
cudaError_t describe_device(cudaDeviceProp *out, int ordinal);
cudaError_t create_queue(cudaStream_t *stream, unsigned flags);
cudaError_t destroy_queue(cudaStream_t stream);
cudaError_t ask_queue(cudaStream_t stream);
cudaError_t queue_copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                       cudaStream_t stream);
cudaError_t queue_copy_rows(void *to, size_t to_stride, const void *from, size_t from_stride,
                            size_t row_bytes, size_t num_rows, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t create_mark(cudaEvent_t *event, unsigned flags);
cudaError_t destroy_mark(cudaEvent_t event);
cudaError_t set_mark(cudaEvent_t event, cudaStream_t stream);
cudaError_t queue_mark(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t allocate_kept(void **place, size_t bytes);
cudaError_t free_kept(void *place);
cudaError_t allocate_pinned(void **place, size_t bytes);
cudaError_t free_pinned(void *place);
cudaError_t register_host(void *memory, size_t bytes, unsigned flags);
cudaError_t unregister_host(void *memory);
} // namespace emulation

void emulated_stream_run(cudaStream_t stream);

#define cudaGetDeviceCount        emulation::count_devices
#define cudaSetDevice             emulation::choose_device
#define cudaGetDeviceProperties   emulation::describe_device
#define cudaStreamCreateWithFlags emulation::create_queue
#define cudaStreamDestroy         emulation::destroy_queue
#define cudaStreamQuery           emulation::ask_queue
#define cudaMemcpyAsync           emulation::queue_copy
#define cudaMemcpy2DAsync         emulation::queue_copy_rows
#define cudaEventCreateWithFlags  emulation::create_mark
#define cudaEventDestroy          emulation::destroy_mark
#define cudaEventRecord           emulation::set_mark
#define cudaStreamWaitEvent       emulation::queue_mark
#define cudaMalloc                emulation::allocate_kept
#define cudaFree                  emulation::free_kept
#define cudaMallocHost            emulation::allocate_pinned
#define cudaFreeHost              emulation::free_pinned
#define cudaHostRegister          emulation::register_host
#define cudaHostUnregister        emulation::unregister_host

#endif
