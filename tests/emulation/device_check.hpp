// SPDX-License-Identifier: Apache-2.0
// device_check: every launcher of kernels/device_scan, gpu_bytes, gpu_lists, device_merge,
// device_encode, device_exact and gpu_screen against the reference kernels of the CPU, bit for bit,
// on seeded random and hostile input. One source: under the emulator (g++ or clang++) and on a GPU
// (nvcc).
#ifndef BITSWEEP_EMULATION_DEVICE_CHECK_HPP
#define BITSWEEP_EMULATION_DEVICE_CHECK_HPP

#include <string>
#include <vector>

// CHECKS_GPU: a GPU is checked and not the emulator. Files without kernels need no more of CUDA
// than its runtime, and a C++ compiler takes a third of nvcc's time for them.
#if defined(__CUDACC__) || defined(BITSWEEP_CUDA_RUNTIME_ALONE)
#define CHECKS_GPU 1
#endif
#if defined(BITSWEEP_CUDA_RUNTIME_ALONE)
#include <cuda_runtime.h>
#else
#include "kernels/cuda_switch.cuh"
#endif
#include "kernels/device_scan/device_scan.h"

struct device_check {
    uint64_t seed;
    bool small; // fewer and smaller cases, for the race detector and sanitizers
    long num_checks, num_failures;
};
extern device_check checks;

// Deterministic in (seed, stream, index).
uint64_t check_random(uint64_t stream, uint64_t index);

// Counts a check; prints and counts a failure.
void check_that(bool holds, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Waits for the device. False, and a failure with the device's words, if the launch was refused or
// failed.
bool check_launch(int error, const std::string &shape);

// A row and its exact score; the better one is the greater.
struct exact_item {
    uint64_t score;
    uint32_t row;
    bool operator>(const exact_item &other) const
    {
        return score != other.score ? score > other.score : row < other.row;
    }
    bool operator==(const exact_item &other) const
    {
        return score == other.score && row == other.row;
    }
};

void check_switch();
// While it lives, launches go to a device of the emulator's of another kind, one of its special
// devices. On a GPU launches stay there, and is_hopper tells whether it is one of that kind.
struct device_turn {
    explicit device_turn(int special);
    ~device_turn();
    device_turn(const device_turn &) = delete;
    device_turn &operator=(const device_turn &) = delete;
    bool is_hopper;

  private:
    int earlier_;
};
#if defined(CHECKS_GPU)
constexpr int on_hopper = 0, on_narrow = 0, on_wide = 0;
#else
constexpr int on_hopper = emulation::hopper_device, on_narrow = emulation::narrow_device,
              on_wide = emulation::wide_device;
#endif

void check_bounds();
void check_scans();
void check_stages();
void check_list_scans();
void check_table_scans();
void check_products();
void check_unpacked_queries();
void check_cuts();
void check_sorts();
void check_ranks();
void check_last_steps();
void check_queues();
void check_merges();
void check_refusals();
void check_encoders();
void check_coders();
void check_exact();
void check_screens();
void check_bytes();
void check_gpu_lists();

// An array in device memory, of the exact size.
template <class T> class device_array
{
  public:
    explicit device_array(size_t count) : count_(count)
    {
        if (count > 0) check_launch(cudaMalloc(&place_, count * sizeof(T)), "cudaMalloc");
    }
    explicit device_array(const std::vector<T> &values) : device_array(values.size())
    {
        put(values);
    }
    device_array(const device_array &) = delete;
    device_array &operator=(const device_array &) = delete;
    ~device_array()
    {
        (void)cudaFree(place_);
    }
    T *get() const
    {
        return place_;
    }
    void put(const std::vector<T> &values)
    {
        if (count_ > 0)
            check_launch(
                cudaMemcpy(place_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
                "copy to the device");
    }
    std::vector<T> values() const
    {
        std::vector<T> out(count_);
        if (count_ > 0)
            check_launch(cudaMemcpy(out.data(), place_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
                         "copy from the device");
        return out;
    }

  private:
    T *place_ = nullptr;
    size_t count_;
};

#endif
